/* SPDX-License-Identifier: Apache-2.0
 *
 * cli/apply.c - objects into a destination, many at a time, in order for each of them
 *
 * One object takes: POST; when it is there already GET and, if it says something else, PATCH; then
 * PATCH of its status where it has one. A slot lives as long as something of its object is wanted
 * or under way; so memory follows the backlog, not the cluster.
 */
#include "cli/cluster.h"

#include <errno.h>

#include "common/k8s/codec.h"
#include "simulator/replay/engine.h"

#define REQUEST_NS UINT64_C(60000000000)
#define TRIES      3

enum step { CREATE, READ, PATCH_MAIN, PATCH_STATUS, BIND, REMOVE, REMOVE_FIRST };
struct slot {
    struct bh_applier *ap;
    struct slot *next; /* in the queue */
    const struct bh_clean_kind *k;
    char *ns, *name, *key;
    char *want; /* text of the newest version; NULL: nothing, or delete */
    bool wanted, remove, queued, running;
    /* of the run */
    struct bh_arena arena;
    struct bh_json *obj, *status, *patch;
    const char *source_uid, *node;
    enum step step;
    enum bh_applied outcome;
    bool created;
    unsigned tries;
};
struct bh_applier {
    struct bh_applier_options o;
    struct bh_map slots; /* plural/ns/name */
    struct bh_map uids;  /* source's uid -> destination's, of what others name by uid */
    struct slot *first, **last;
    size_t n_queued, n_running;
    bool stopping;
};

static void fill(struct bh_applier *ap);
static void go(struct slot *s, enum step step);

/* ---- slots ----------------------------------------------------------------------------------- */

static void slot_free(struct slot *s)
{
    bh_arena_fini(&s->arena);
    free(s->ns);
    free(s->name);
    free(s->key);
    free(s->want);
    free(s);
}

static struct slot *slot_of(struct bh_applier *ap, const struct bh_clean_kind *k, const char *ns,
                            const char *name)
{
    char *key = bh_asprintf("%s/%s/%s", k->plural, ns, name);
    struct slot *s = bh_map_get(&ap->slots, key, strlen(key));

    if (s) {
        free(key);
        return s;
    }
    s = bh_calloc(1, sizeof(*s));
    *s = (struct slot){.ap = ap, .k = k, .ns = bh_strdup(ns), .name = bh_strdup(name), .key = key};
    bh_map_put(&ap->slots, key, strlen(key), s);
    return s;
}

static void enqueue(struct slot *s)
{
    struct bh_applier *ap = s->ap;

    s->wanted = true;
    if (s->queued || s->running)
        return;
    s->queued = true;
    s->next = NULL;
    *ap->last = s;
    ap->last = &s->next;
    ap->n_queued++;
}

static void finish(struct slot *s, enum bh_applied what, const char *message)
{
    struct bh_applier *ap = s->ap;

    ap->n_running--;
    s->running = false;
    if (ap->o.on_result && !ap->stopping)
        ap->o.on_result(ap->o.arg, s->k, s->ns, s->name, what, message);
    if (s->wanted) {
        enqueue(s);
    } else {
        bh_map_del(&ap->slots, s->key, strlen(s->key));
        slot_free(s);
    }
    if (!ap->stopping)
        fill(ap);
}

/* ---- uids that others name ------------------------------------------------------------------- */

static void note_uid(struct slot *s, const struct bh_json *made)
{
    const char *uid = bh_json_get_text(bh_json_get(made, "metadata"), "uid");

    if (*uid && s->source_uid && *s->source_uid)
        free(bh_map_put(&s->ap->uids, s->source_uid, strlen(s->source_uid), bh_strdup(uid)));
}

static const char *uid_there(const struct bh_applier *ap, const char *source_uid)
{
    return bh_map_get(&ap->uids, source_uid, strlen(source_uid));
}

/* Those of a list that are there, with their uids there. kind NULL: any. */
static struct bh_json *relinked(struct slot *s, const struct bh_json *list, const char *kind)
{
    struct bh_json *there = bh_json_new(&s->arena, BH_JSON_ARRAY);

    bh_json_each(o, list) {
        const char *uid = uid_there(s->ap, bh_json_get_text(o, "uid"));
        if (!uid || (kind && !bh_streq(bh_json_get_text(o, "kind"), kind)))
            continue;
        struct bh_json *copy = bh_json_clone(&s->arena, o);
        bh_json_set_str(&s->arena, copy, "uid", uid);
        bh_json_push(there, copy);
    }
    return there;
}

/* ---- requests -------------------------------------------------------------------------------- */

static void on_reply(void *arg, const struct bh_api_reply *r);

static const struct bh_json *body_for(struct slot *s)
{
    switch (s->step) {
    case CREATE:
        return s->obj;
    case PATCH_MAIN:
        return s->patch;
    case PATCH_STATUS:
        return bh_json_make(&s->arena, "status: %p", s->status);
    case BIND:
        return bh_json_make(&s->arena,
                            "apiVersion: v1, kind: Binding, metadata: {name: %s}, target: "
                            "{apiVersion: v1, kind: Node, name: %s}",
                            s->name, s->node);
    default:
        return NULL;
    }
}

static void go(struct slot *s, enum step step)
{
    static const struct {
        const char *method, *behind; /* the name; NULL: the collection */
    } requests[] = {[CREATE] = {"POST", NULL},
                    [READ] = {"GET", ""},
                    [PATCH_MAIN] = {"PATCH", ""},
                    [PATCH_STATUS] = {"PATCH", "/status"},
                    [BIND] = {"POST", "/binding"},
                    [REMOVE] = {"DELETE", "?gracePeriodSeconds=0"},
                    [REMOVE_FIRST] = {"DELETE", "?gracePeriodSeconds=0"}};
    struct bh_buf path BH_CLEANUP(bh_buf_fini) = {0}, b BH_CLEANUP(bh_buf_fini) = {0};
    bool patch = step == PATCH_MAIN || step == PATCH_STATUS;

    s->step = step;
    bh_clean_path(s->k, s->ns, &path);
    if (requests[step].behind) {
        bh_buf_addc(&path, '/');
        bh_url_escape(&path, s->name);
        bh_buf_adds(&path, requests[step].behind);
    }
    const struct bh_json *body = body_for(s);
    if (body)
        bh_json_write(&b, body);
    const struct bh_api_call call = {.method = requests[step].method,
                                     .path = bh_buf_str(&path),
                                     .content_type = !body   ? NULL
                                                     : patch ? "application/merge-patch+json"
                                                             : "application/json",
                                     .body = b.p,
                                     .body_n = b.n,
                                     .timeout_ns = REQUEST_NS,
                                     .retry_429_5xx = true,
                                     .on_done = on_reply,
                                     .arg = s};
    if (!bh_api_start(s->ap->o.to->client, &call))
        finish(s, BH_APPLIED_FAILED, "stopped");
}

/* ---- one object ------------------------------------------------------------------------------ */

static bool is_pod(const struct slot *s)
{
    return bh_streq(s->k->kind, "Pod");
}

static void start(struct slot *s)
{
    struct bh_err err;

    bh_arena_reset(&s->arena);
    s->wanted = false;
    s->tries = 0;
    s->created = false;
    s->outcome = BH_APPLIED_UNCHANGED;
    s->status = NULL;
    if (s->remove) {
        go(s, REMOVE);
        return;
    }
    bh_assert(bh_json_parse(&s->arena, s->want, strlen(s->want), BH_JSON_NUL, &s->obj, &err) == 0);
    struct bh_json *meta = bh_json_get(s->obj, "metadata");
    s->source_uid = bh_arena_strdup(&s->arena, bh_json_get_text(meta, "uid"));
    s->node = bh_arena_strdup(&s->arena, bh_json_get_text(bh_json_get(s->obj, "spec"), "nodeName"));
    struct bh_json *owners = bh_json_get_list(meta, "ownerReferences");
    s->status = bh_clean_new(&s->arena, s->k, s->obj);
    /* Owners that went before: a node, of its slices and drivers. Without them slices would
     * never be collected; with a uid of the source all would be. */
    struct bh_json *there = relinked(s, owners, "Node");
    if (there->c.n)
        bh_json_set(&s->arena, bh_json_get(s->obj, "metadata"), "ownerReferences", there);
    struct bh_json *ref = bh_json_path(s->obj, "spec.claimRef");
    if (ref) {
        const char *uid = uid_there(s->ap, bh_json_get_text(ref, "uid"));
        bh_json_unset(ref, "uid");
        bh_json_set_text(&s->arena, ref, "uid", uid);
    }
    /* Users of a resource claim that are not here would hold it for ever. Claims come after
     * pods, so all are known that are here, unless this program did not write them. */
    const struct bh_json *users = bh_json_get_list(s->status, "reservedFor");
    if (users)
        bh_json_set(&s->arena, s->status, "reservedFor", relinked(s, users, NULL));
    if (is_pod(s) && s->ap->o.follow && !*s->node)
        bh_json_set_str(&s->arena, bh_json_obj_at(&s->arena, s->obj, "spec"), "schedulerName",
                        BH_REPLAY_FOLLOWER);
    go(s, CREATE);
}

static void fill(struct bh_applier *ap)
{
    while (ap->first && ap->n_running < ap->o.parallel) {
        struct slot *s = ap->first;
        ap->first = s->next;
        if (!ap->first)
            ap->last = &ap->first;
        ap->n_queued--;
        s->queued = false;
        s->running = true;
        ap->n_running++;
        start(s);
    }
}

/* What follows the object itself. */
static void then_status(struct slot *s)
{
    bool node = bh_streq(s->k->kind, "Node");

    if (s->status && bh_json_first(s->status) && !(node && s->created)) {
        go(s, PATCH_STATUS);
        return;
    }
    finish(s, s->outcome, NULL);
}

/* The destination has it: what is to be changed? */
static void changes(struct slot *s, const struct bh_json *cur)
{
    struct bh_json *want = s->obj, *patch;
    const char *why;

    if (s->ap->o.decides && bh_streq(s->k->kind, "ResourceClaim")) /* its scheduler's allocation */
        s->status = bh_json_get(bh_clean(&s->arena, s->k, cur, NULL, &why), "status");
    if (s->status)
        bh_json_set(&s->arena, want, "status", bh_json_clone(&s->arena, s->status));
    patch = bh_clean_diff(&s->arena, s->k, cur, want);
    s->status = bh_json_get(patch, "status");
    if (s->status)
        s->status = bh_json_clone(&s->arena, s->status);
    if (patch)
        bh_json_unset(patch, "status");
    s->patch = patch;
    if (patch)
        s->outcome = BH_APPLIED_UPDATED;
    if (bh_json_first(patch))
        go(s, PATCH_MAIN);
    else
        then_status(s);
}

static void there(struct slot *s, const struct bh_json *cur)
{
    const char *node = bh_json_get_text(bh_json_get(cur, "spec"), "nodeName");
    char text[600];

    note_uid(s, cur);
    if (!is_pod(s) || !*s->node || bh_streq(node, s->node)) {
        changes(s, cur);
    } else if (s->ap->o.follow && !*node) {
        go(s, BIND);
    } else if (s->ap->o.follow) {
        go(s, REMOVE_FIRST); /* bound by hand, or by another: made anew where the source has it */
    } else if (*node && !s->ap->o.decides) {
        snprintf(text, sizeof(text), "on node %s, in the source on %s", node, s->node);
        finish(s, BH_APPLIED_DIFFERENT, text);
    } else {
        changes(s, cur);
    }
}

static void good(struct slot *s, const struct bh_api_reply *r)
{
    struct bh_json *v = NULL; /* the reply's object, NULL when it is none */

    if (s->step == CREATE || s->step == READ)
        (void)bh_json_parse(&s->arena, r->body.p, r->body.n, BH_JSON_NUL, &v, NULL);
    switch (s->step) {
    case CREATE:
        note_uid(s, v);
        s->created = true;
        s->outcome = BH_APPLIED_CREATED;
        then_status(s);
        break;
    case READ:
        if (v)
            there(s, v);
        else
            finish(s, BH_APPLIED_FAILED, "the reply is no object");
        break;
    case PATCH_MAIN:
        then_status(s);
        break;
    case PATCH_STATUS:
        finish(s, s->outcome, NULL);
        break;
    case BIND:
        finish(s, BH_APPLIED_BOUND, NULL);
        break;
    case REMOVE:
        finish(s, BH_APPLIED_DELETED, NULL);
        break;
    case REMOVE_FIRST:
        go(s, CREATE);
        break;
    }
}

static void on_reply(void *arg, const struct bh_api_reply *r)
{
    struct slot *s = arg;
    bool unclear = r->outcome == BH_API_TRANSPORT || r->outcome == BH_API_TIMEOUT;

    if (r->outcome == BH_API_CANCELED || s->ap->stopping)
        finish(s, BH_APPLIED_FAILED, "stopped");
    else if (unclear && ++s->tries < TRIES)
        go(s, s->step); /* every step may be repeated: what happened is found done */
    else if (r->outcome == BH_API_OK && r->code < 300)
        good(s, r);
    else if (r->code == 409 && s->step == CREATE && ++s->tries <= TRIES)
        go(s, READ);
    else if (r->code == 404 && s->step == READ)
        go(s, CREATE);
    else if (r->code == 404 && s->step == REMOVE)
        finish(s, BH_APPLIED_UNCHANGED, NULL);
    else if (r->code == 404 && s->step == REMOVE_FIRST)
        go(s, CREATE);
    else {
        struct bh_api_status st = {0};
        char text[700];
        if (r->outcome == BH_API_OK)
            bh_decode_status(r->body.p, r->body.n, r->code, &st);
        snprintf(text, sizeof(text), "%s",
                 r->outcome == BH_API_OK ? st.message
                 : r->error              ? r->error
                                         : "no reply");
        finish(s, BH_APPLIED_FAILED, text);
    }
}

/* ---- interface ------------------------------------------------------------------------------- */

struct bh_applier *bh_applier_new(const struct bh_applier_options *o)
{
    struct bh_applier *ap = bh_calloc(1, sizeof(*ap));

    ap->o = *o;
    ap->last = &ap->first;
    return ap;
}

void bh_applier_put(struct bh_applier *ap, const struct bh_clean_kind *k, const struct bh_json *obj)
{
    const struct bh_json *meta = bh_json_get(obj, "metadata");
    struct slot *s =
        slot_of(ap, k, bh_json_get_text(meta, "namespace"), bh_json_get_text(meta, "name"));
    struct bh_buf b = {0};

    bh_json_write(&b, obj);
    free(s->want);
    s->want = bh_buf_take(&b);
    s->remove = false;
    enqueue(s);
    fill(ap);
}

void bh_applier_delete(struct bh_applier *ap, const struct bh_clean_kind *k, const char *ns,
                       const char *name)
{
    struct slot *s = slot_of(ap, k, ns, name);

    s->remove = true;
    enqueue(s);
    fill(ap);
}

size_t bh_applier_backlog(const struct bh_applier *ap)
{
    return ap->n_queued + ap->n_running;
}

void bh_applier_free(struct bh_applier *ap)
{
    struct bh_map_entry *e;

    if (!ap)
        return;
    ap->stopping = true;
    bh_api_client_free(ap->o.to->client); /* ends what is under way: callbacks come from the loop */
    ap->o.to->client = NULL;
    while (ap->n_running)
        uv_run(ap->o.to->loop, UV_RUN_ONCE);
    for (size_t it = 0; (e = bh_map_next(&ap->slots, &it));)
        slot_free(e->value);
    bh_map_fini(&ap->slots);
    for (size_t it = 0; (e = bh_map_next(&ap->uids, &it));)
        free(e->value);
    bh_map_fini(&ap->uids);
    free(ap);
}
