/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/console/import.c - POST /api/v1/import: a cluster out of one document
 *
 * The body is read in a worker thread into single objects; the store takes them in portions, so
 * that others are answered meanwhile, and controllers hear of all of them at the end, so that none
 * makes anew what comes a little later. Uids are the server's:
 * references to owners and claims are put right with those of the objects that came along, and
 * references to owners that are nowhere are dropped, since the garbage collector would follow them.
 * What a document says about an object's status is kept. A definition of custom resources is taken where the
 * server has none of its name; its objects come after it.
 * Order: what others refer to goes first; volumes last, because their claims have uids by then.
 */
#include "simulator/console/parts.h"

#include <errno.h>
#include <limits.h>

#include "common/data/yaml.h"
#include "simulator/schema/schema.h"
#include "simulator/trial/trial.h"

#define TREE_BYTES ((size_t)1 << 30)
#define ERRORS_MAX 1000
#define MOMENT_NS  UINT64_C(8000000)
#define NO_KIND    "this server has no such kind"

struct entry {
    unsigned turn;
    size_t at;                      /* order in the document */
    const char *api_version, *kind; /* version NULL: any */
    const char *ns, *name;          /* as the document has them */
    char *json;
    size_t n;
    char *fault; /* why it is not taken, NULL = nothing is wrong so far */
};
struct import_job {
    const char *runtime_dir;
    char *text;
    size_t n;
    bool merge;
    bool dry_run;          /* only read: what would become of it */
    struct bh_arena names; /* of the reader, and of kinds */
    struct entry *v;
    size_t n_v, cap;
    char *config, *config_error; /* schedulerConfig; why it was not taken */
};
struct bh_console_applying {
    struct bh_sim *s;
    struct import_job job;
    size_t at; /* in the job's objects */
    struct bh_http_req *http;
    uint64_t start_ns;
    struct bh_sim_timer *timer;
    struct bh_arena a;  /* of the object at hand */
    struct bh_map uids; /* of the document -> of the store */
    struct bh_arena kept;
    struct bh_json *errors, *left_out;
    int64_t created, updated, deleted, skipped;
};

/* ---- in the worker: objects ------------------------------------------------------------------ */

static unsigned turn_of(const char *kind)
{
    static const char order[] =
        "CustomResourceDefinition Namespace PriorityClass StorageClass RuntimeClass LimitRange "
        "Node "
        "ServiceAccount ConfigMap Secret Service PersistentVolumeClaim ResourceClaimTemplate "
        "ResourceClaim Deployment StatefulSet DaemonSet CronJob Job ReplicaSet "
        "ReplicationController PodDisruptionBudget Pod";
    int at = bh_word_at(order, kind);

    return at >= 0 ? (unsigned)at : bh_streq(kind, "PersistentVolume") ? UINT_MAX : UINT_MAX - 1;
}

/* line: where the object begins; 0 = not known */
static void keep(struct import_job *k, struct bh_json *obj, uint32_t line)
{
    struct bh_buf b = {0};
    struct bh_err err;
    bool good = bh_oas_refuse_unknown(obj, line, &err) == 0;
    const char *version = bh_json_get_str(obj, "apiVersion");
    const struct bh_json *meta = bh_json_get(obj, "metadata");

    BH_GROW(k->v, k->n_v, k->cap);
    struct entry *e = &k->v[k->n_v];
    bh_json_write(&b, obj);
    *e = (struct entry){.turn = turn_of(bh_json_get_text(obj, "kind")),
                        .at = k->n_v++,
                        .api_version = version ? bh_arena_strdup(&k->names, version) : NULL,
                        .kind = bh_arena_strdup(&k->names, bh_json_get_text(obj, "kind")),
                        .ns = bh_arena_strdup(&k->names, bh_json_get_text(meta, "namespace")),
                        .name = bh_arena_strdup(&k->names, bh_json_get_text(meta, "name")),
                        .n = b.n};
    e->fault = good ? NULL : bh_strdup(err.msg);
    e->json = bh_buf_take(&b);
}

static int on_object(void *arg, const struct bh_trial_source *at, struct bh_arena *a BH_UNUSED,
                     struct bh_json *obj, struct bh_err *err BH_UNUSED)
{
    keep(arg, obj, at->line);
    return 0;
}

static int by_turn(const void *pa, const void *pb)
{
    const struct entry *a = pa, *b = pb;

    return a->turn != b->turn ? BH_CMP(a->turn, b->turn) : BH_CMP(a->at, b->at);
}

/* Does the text begin a document of lists, which has no kind? */
static bool is_document(const struct bh_json *v)
{
    if (!v || v->type != BH_JSON_OBJECT || bh_json_get(v, "kind"))
        return false;
    if (bh_json_get(v, "schedulerConfig"))
        return true;
    for (size_t i = 0; bh_console_lists[i].name; i++)
        if (bh_json_get(v, bh_console_lists[i].name))
            return true;
    return false;
}

static int read_document(struct import_job *k, struct bh_arena *a, const struct bh_json *v,
                         struct bh_err *err)
{
    const struct bh_json *config = bh_json_get(v, "schedulerConfig");
    struct bh_buf b = {0};

    for (size_t i = 0; i < BH_CONSOLE_LISTS; i++) {
        const struct bh_console_list *l = &bh_console_lists[i];
        const struct bh_json *list = bh_json_get(v, l->name ? l->name : "others");
        if (list && list->type != BH_JSON_ARRAY && list->type != BH_JSON_NULL)
            return bh_err_set(err, -EINVAL, "line %u: %s: expected a list", list->line,
                              l->name ? l->name : "others");
        bh_json_each(o, bh_json_first(list) ? list : NULL) {
            if (o->type != BH_JSON_OBJECT)
                return bh_err_set(err, -EINVAL, "line %u: expected an object", o->line);
            if (l->name && !bh_json_get(o, "kind")) {
                bh_json_set_str(a, o, "apiVersion", l->api_version);
                bh_json_set_str(a, o, "kind", l->kind);
            }
            keep(k, o, o->line);
        }
    }
    if (config && config->type == BH_JSON_OBJECT) {
        bh_json_write(&b, config);
        k->config = bh_buf_take(&b);
    }
    return 0;
}

/* Told from manifests by its beginning, so that long lists of manifests need never be one tree. */
static bool may_be_document(const char *p)
{
    p += strspn(p, " \t\r\n");
    while (*p == '#' || strncmp(p, "---", 3) == 0) { /* before the first member */
        p += strcspn(p, "\n");
        p += strspn(p, " \t\r\n");
    }
    for (size_t i = 0; i < BH_CONSOLE_LISTS; i++) {
        const char *name = bh_console_lists[i].name ? bh_console_lists[i].name : "schedulerConfig";
        const char *q = *p == '{' ? p + 1 + strspn(p + 1, " \t\r\n") : p;
        q += *q == '"';
        if (strncmp(q, name, strlen(name)) == 0)
            return true;
    }
    return false;
}

static int read_body(struct import_job *k, struct bh_err *err)
{
    struct bh_json *v = NULL;
    BH_CLEANUP(bh_arena_fini) struct bh_arena a = {.limit_bytes = TREE_BYTES};

    if (!may_be_document(k->text))
        return bh_trial_read_text("body", k->text, k->n, &k->names, on_object, k, err);
    int rc = bh_yaml_parse(&a, k->text, k->n, BH_JSON_STRICT | BH_JSON_NUL, &v, err);
    if (rc == 0 && is_document(v))
        rc = read_document(k, &a, v, err);
    else if (rc == 0)
        rc = bh_err_set(err, -EINVAL, "neither a document of lists nor manifests");
    return rc;
}

static void run(struct bh_console_job *j, void *arg)
{
    struct import_job *k = arg;
    struct bh_console_place at;
    struct bh_err err = {0};

    if (read_body(k, &err) < 0) {
        bh_console_job_fail(j, 400, NULL, bh_console_line_of(&err), "%s", err.msg);
        return;
    }
    if (!k->n_v && !k->config) {
        bh_console_job_fail(j, 400, NULL, 0, "there is no object in it");
        return;
    }
    if (k->n_v > 1)
        qsort(k->v, k->n_v, sizeof(*k->v), by_turn);
    if (k->config && k->runtime_dir && !k->dry_run &&
        bh_console_config_apply(k->runtime_dir, k->config, strlen(k->config), &at, &err) < 0)
        k->config_error = bh_strdup(err.msg);
}

/* ---- in the loop: into the store ------------------------------------------------------------- */

static void name_object(struct bh_arena *a, struct bh_json *list, const char *kind, const char *ns,
                        const char *name, const char *message)
{
    if (list->c.n < ERRORS_MAX)
        bh_json_append(a, list, "kind: %s, namespace: %s, name: %s, message: %s", kind, ns, name,
                       message);
}

static void refuse(struct bh_console_applying *p, const char *kind, const char *ns,
                   const char *name, const char *message)
{
    name_object(&p->kept, p->errors, kind, ns, name, message);
}

static void link_owners(struct bh_console_applying *p, struct bh_json *meta)
{
    struct bh_json *list = bh_json_get_list(meta, "ownerReferences"), *next;

    for (struct bh_json *o = list ? list->c.first : NULL; o; o = next) {
        const char *old = bh_json_get_text(o, "uid");
        const char *uid = *old ? bh_map_get(&p->uids, old, strlen(old)) : NULL;
        next = o->next;
        if (uid)
            bh_json_set_str(&p->a, o, "uid", uid);
        else
            bh_json_remove(list, o);
    }
    if (list && !list->c.n)
        bh_json_unset(meta, "ownerReferences");
}

static void link_claim(struct bh_console_applying *p, struct bh_json *obj)
{
    struct bh_json *ref = bh_json_path(obj, "spec.claimRef");

    if (!ref || ref->type != BH_JSON_OBJECT)
        return;
    const struct bh_sim_obj *claim =
        bh_sim_get(p->s, bh_sim_type_find("", "v1", "persistentvolumeclaims"),
                   bh_json_get_text(ref, "namespace"), bh_json_get_text(ref, "name"));
    bh_json_unset(ref, "resourceVersion");
    if (claim)
        bh_json_set_str(&p->a, ref, "uid", claim->uid);
    else
        bh_json_unset(ref, "uid");
}

/* Leaves what an author would have written. Returns the uid it had. */
static const char *strip(struct bh_console_applying *p, struct bh_json *obj)
{
    struct bh_json *meta = bh_json_obj_at(&p->a, obj, "metadata");
    const char *uid = bh_json_get_str(meta, "uid");

    uid = uid ? bh_arena_strdup(&p->a, uid) : NULL;
    bh_json_drop(meta, "uid resourceVersion generation selfLink managedFields deletionTimestamp "
                       "deletionGracePeriodSeconds");
    link_owners(p, meta);
    if (bh_streq(bh_json_get_text(obj, "kind"), "PersistentVolume"))
        link_claim(p, obj);
    return uid;
}

/* Creation leaves the status out, as an API server does. */
static struct bh_sim_obj *put_status(struct bh_console_applying *p, struct bh_sim_obj *o,
                                     const struct bh_json *status)
{
    struct bh_sim_obj *after = NULL;
    struct bh_sim_error e = {0};

    if (!status || status->type != BH_JSON_OBJECT || !(o->type->flags & BH_SIM_HAS_STATUS) ||
        (o->type->flags & BH_SIM_KEEP_STATUS))
        return o;
    struct bh_json *v = bh_sim_obj_tree(&p->a, o);
    bh_json_set(&p->a, v, "status", bh_json_clone(&p->a, status));
    if (bh_sim_update(p->s, o->type, o->ns, o->name, BH_SIM_STATUS, &p->a, v, &after, &e))
        refuse(p, o->type->kind, o->ns, o->name, e.message);
    if (!after)
        return o;
    bh_sim_obj_unref(o);
    return after;
}

static int store(struct bh_console_applying *p, const struct bh_sim_type *t, const char *ns,
                 const char *name, struct bh_json *obj, struct bh_sim_obj **ret,
                 struct bh_sim_error *e)
{
    const struct bh_sim_obj *there = *name ? bh_sim_get(p->s, t, ns, name) : NULL;
    int rc;

    if (!there) {
        rc = bh_sim_create(p->s, t, ns, &p->a, obj, ret, e);
        p->created += rc == 0;
        return rc;
    }
    rc = bh_sim_update(p->s, t, ns, name, BH_SIM_MAIN, &p->a, obj, ret, e);
    p->updated += rc == 0;
    return rc;
}

/* NULL: nothing can be stored of such a kind. */
static const struct bh_sim_type *type_of(const struct bh_sim *s, const struct entry *x)
{
    const struct bh_sim_type *t = bh_sim_find_kind(s, x->api_version, x->kind);

    return t && !(t->flags & BH_SIM_REVIEW) ? t : NULL;
}

/* Why an object is left out; NULL: it is imported. */
static const char *why_skipped(struct bh_sim *s, const struct bh_sim_type *t, const char *ns,
                               const char *name)
{
    if (t->flags & BH_SIM_DEFINES)
        return bh_sim_get(s, t, ns, name) ? "the server has a definition of this name" : NULL;
    if (bh_streq(t->kind, "Event"))
        return "events are not imported";
    return bh_console_is_system(t, ns, name) ? "the server makes it by itself" : NULL;
}

static const char *namespace_of(const struct bh_sim_type *t, const char *ns)
{
    return !(t->flags & BH_SIM_NAMESPACED) ? "" : *ns ? ns : "default";
}

static void put(struct bh_console_applying *p, const struct entry *x)
{
    struct bh_sim_obj *o = NULL;
    struct bh_sim_error e = {0};
    struct bh_json *obj;

    if (bh_json_parse(&p->a, x->json, x->n, BH_JSON_NUL, &obj, NULL) < 0)
        return; /* we wrote it */
    const char *kind = bh_json_get_text(obj, "kind");
    const struct bh_sim_type *t = type_of(p->s, x);
    const struct bh_json *meta = bh_json_get(obj, "metadata");
    const char *name = bh_json_get_text(meta, "name"), *ns = bh_json_get_text(meta, "namespace");
    if (!t) {
        refuse(p, kind, ns, name, NO_KIND);
        return;
    }
    ns = namespace_of(t, ns);
    if (x->fault) {
        refuse(p, kind, ns, name, x->fault);
        return;
    }
    const char *why = why_skipped(p->s, t, ns, name);
    if (why) {
        p->skipped++;
        name_object(&p->kept, p->left_out, kind, ns, name, why);
        return;
    }
    ns = bh_arena_strdup(&p->a, ns);
    name = bh_arena_strdup(&p->a, name);
    const struct bh_json *status = bh_json_clone(&p->a, bh_json_get(obj, "status"));
    const char *uid = strip(p, obj);
    if (store(p, t, ns, name, obj, &o, &e)) {
        refuse(p, kind, ns, name, e.message);
        return;
    }
    if (!o) /* an update that changed nothing */
        o = bh_sim_get(p->s, t, ns, name) ? bh_sim_obj_ref(bh_sim_get(p->s, t, ns, name)) : NULL;
    if (o && !(t->flags & BH_SIM_DEFINES)) /* whether names are accepted says this server */
        o = put_status(p, o, status);
    if (o && uid)
        (void)bh_map_put(&p->uids, uid, strlen(uid), bh_arena_strdup(&p->kept, o->uid));
    bh_sim_obj_unref(o);
}

static void job_fini(struct import_job *k)
{
    for (size_t i = 0; i < k->n_v; i++) {
        free(k->v[i].json);
        free(k->v[i].fault);
    }
    free(k->v);
    free(k->config);
    free(k->config_error);
    free(k->text);
    bh_arena_fini(&k->names);
}

/* Controllers hear of everything from now on. */
static void let_go(struct bh_console_applying *p)
{
    p->s->draining = false;
    p->s->console->importing = NULL;
    bh_sim_cancel(p->timer);
    job_fini(&p->job);
    bh_map_fini(&p->uids);
    bh_arena_fini(&p->a);
    bh_arena_fini(&p->kept);
    free(p);
}

static void put_some(void *arg)
{
    struct bh_console_applying *p = arg;
    uint64_t end = bh_mono_ns() + MOMENT_NS;

    p->timer = NULL;
    while (p->at < p->job.n_v && bh_mono_ns() < end) {
        put(p, &p->job.v[p->at++]);
        bh_arena_reset(&p->a);
    }
    if (p->at < p->job.n_v)
        p->timer = bh_sim_after(p->s, 0, put_some, p);
    else {
        struct bh_sim_req r = bh_console_late_req(p->s, p->http, &p->a, p->start_ns);
        bh_console_past_note(p->s->console, "import", p->job.merge ? "merge" : "replace");
        if (p->http)
            bh_console_reply(&r, 200,
                             bh_json_make(&p->kept,
                                          "created: %ld, updated: %ld, deleted: %ld, skipped: %ld, "
                                          "leftOut: %p, errors: %p",
                                          p->created, p->updated, p->deleted, p->skipped,
                                          p->left_out, p->errors));
        bh_buf_fini(&r.warnings);
        let_go(p);
    }
}

static void on_abort(void *arg)
{
    struct bh_console_applying *p = arg;

    p->http = NULL; /* it is done all the same: a half is nothing */
}

/* A document of which nothing can be taken replaces nothing: what is wrong with its objects, or that
 * the server has no such kinds, is all that is told. */
static bool usable(const struct bh_sim *s, const struct import_job *k)
{
    for (size_t i = 0; i < k->n_v; i++)
        if (!k->v[i].fault && type_of(s, &k->v[i]))
            return true;
    return false;
}

/* ---- a dry run ------------------------------------------------------------------------------- */

/* Does the document itself define the kind? */
static bool is_defined(struct bh_arena *a, const struct import_job *k, const char *kind)
{
    struct bh_json *v;

    for (size_t i = 0; i < k->n_v && k->v[i].turn == 0; i++)
        if (bh_json_parse(a, k->v[i].json, k->v[i].n, 0, &v, NULL) == 0 &&
            bh_streq(bh_json_get_text(bh_json_path(v, "spec.names"), "kind"), kind))
            return true;
    return false;
}

static bool is_same_kind(const struct entry *a, const struct entry *b)
{
    return bh_streq(a->kind, b->kind) && !a->api_version == !b->api_version &&
           (!a->api_version || bh_streq(a->api_version, b->api_version));
}

static void count_kind(struct bh_arena *a, struct bh_json *kinds, const char *kind)
{
    bh_json_each(k, kinds)
        if (bh_streq(bh_json_get_text(k, "kind"), kind)) {
            bh_json_set_i64(a, k, "count", bh_json_get_i64(k, "count", 0) + 1);
            return;
        }
    bh_json_append(a, kinds, "kind: %s, count: 1", kind);
}

/* Which kinds would be imported, what would be left out and refused. Objects are in turns: those of
 * one kind stand together. */
static void answer_dry_run(struct bh_sim_req *r, struct bh_sim *s, const struct import_job *k)
{
    struct bh_json *kinds = bh_json_new(r->a, BH_JSON_ARRAY);
    struct bh_json *left_out = bh_json_new(r->a, BH_JSON_ARRAY);
    struct bh_json *errors = bh_json_new(r->a, BH_JSON_ARRAY);
    const struct bh_sim_type *t = NULL;
    bool defined = false;

    for (size_t i = 0; i < k->n_v; i++) {
        const struct entry *e = &k->v[i];
        if (!i || !is_same_kind(e, e - 1)) {
            t = type_of(s, e);
            defined = !t && is_defined(r->a, k, e->kind);
        }
        const char *ns = t ? namespace_of(t, e->ns) : e->ns;
        const char *why = t ? why_skipped(s, t, ns, e->name) : NULL;
        if (e->fault || (!t && !defined))
            name_object(r->a, errors, e->kind, ns, e->name, e->fault ? e->fault : NO_KIND);
        else if (why)
            name_object(r->a, left_out, e->kind, ns, e->name, why);
        else
            count_kind(r->a, kinds, e->kind);
    }
    bh_console_reply(r, 200,
                     bh_json_make(r->a, "kinds: %p, leftOut: %p, errors: %p, schedulerConfig: %i",
                                  kinds, left_out, errors, k->config != NULL));
}

static void done(struct bh_sim_req *r, struct bh_sim *s, void *arg)
{
    struct import_job *k = arg;

    if (k->dry_run) {
        if (r)
            answer_dry_run(r, s, k);
        return;
    }
    if (s->console->importing) {
        if (r)
            bh_console_fail(r, 409, NULL, 0, "another import is under way");
        return;
    }
    struct bh_console_applying *p = bh_calloc(1, sizeof(*p));
    p->s = s;
    p->job = *k;
    *k = (struct import_job){.n = 0}; /* nothing is left to release */
    p->errors = bh_json_new(&p->kept, BH_JSON_ARRAY);
    p->left_out = bh_json_new(&p->kept, BH_JSON_ARRAY);
    if (p->job.config_error)
        refuse(p, "KubeSchedulerConfiguration", "", "", p->job.config_error);
    s->console->importing = p;
    s->draining = true; /* holds the listeners back */
    if (!p->job.merge && usable(s, &p->job))
        p->deleted = (int64_t)bh_console_wipe(s);
    if (r) {
        p->http = r->http;
        p->start_ns = r->start_ns;
        bh_http_on_abort(p->http, on_abort, p);
        r->done = true;
    }
    p->timer = bh_sim_after(s, 0, put_some, p);
}

void bh_console_import_stop(struct bh_console *c)
{
    if (c->importing)
        let_go(c->importing);
}

/* ---- the request ----------------------------------------------------------------------------- */

static void release(void *arg)
{
    job_fini(arg);
    free(arg);
}

void bh_console_import(struct bh_console_req *c)
{
    const char *mode = bh_http_query(c->r->http, "mode");

    if (mode && !bh_streq(mode, "replace") && !bh_streq(mode, "merge")) {
        bh_console_fail(c->r, 400, "mode", 0, "replace or merge");
        return;
    }
    const char *dry_run = bh_http_query(c->r->http, "dryRun");
    if (dry_run && !bh_streq(dry_run, "All")) {
        bh_console_fail(c->r, 400, "dryRun", 0, "All");
        return;
    }
    struct import_job *k = bh_calloc(1, sizeof(*k));
    k->dry_run = dry_run != NULL;
    k->merge = mode && bh_streq(mode, "merge");
    k->runtime_dir = c->r->sim->opt.runtime_dir;
    k->text = bh_console_body(c->r, &k->n);
    bh_console_work_then(c, run, done, release, k);
}

/* Members that the object's kind does not have; they stay in obj. NULL: none. */
static struct bh_json *problems_of(struct bh_arena *a, const struct bh_json *obj)
{
    struct bh_oas_report rep = {0};
    struct bh_json *list = bh_json_new(a, BH_JSON_ARRAY);

    bh_oas_check_whole(bh_json_clone(a, obj), &rep);
    for (unsigned i = 0; i < BH_MIN(rep.n, BH_OAS_NAMED); i++) {
        BH_CLEANUP(bh_buf_fini) struct bh_buf b = {0};
        bh_oas_sentence(&rep, i, &b);
        bh_json_append(a, list, "line: %u, message: %s", rep.at[i].line, bh_buf_str(&b));
    }
    bh_buf_fini(&rep.unknown);
    return rep.n ? list : NULL;
}

/* YAML, read as the server reads it. */
void bh_console_manifest(struct bh_console_req *c)
{
    struct bh_sim_req *r = c->r;
    struct bh_str body = bh_http_body(r->http);
    struct bh_json *docs = NULL, *v = bh_json_make(r->a, "documents: []"), *next;
    struct bh_err err = {0};
    int rc = bh_yaml_parse_all(r->a, body.p ? body.p : "", body.n, BH_JSON_STRICT | BH_JSON_NUL,
                               &docs, &err);

    if (rc < 0) {
        bh_console_fail(r, 400, NULL, bh_console_line_of(&err), "%s", err.msg);
        return;
    }
    for (struct bh_json *d = docs->c.first; d; d = next) {
        next = d->next;
        d->next = NULL;
        bh_json_append(r->a, bh_json_get(v, "documents"), "line: %u, problems?: %p, object: %p",
                       d->line, problems_of(r->a, d), d);
    }
    bh_console_reply(r, 200, v);
}
