/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/replay/apply.c - one record into the store
 */
#include "simulator/replay/engine_int.h"

#include <stdio.h>

#include "common/data/patch.h"

#define CLEAR_BURST 256

/* ---- pods of the replay ---------------------------------------------------------------------- */

struct bh_player_pod *bh_player_pod_get(struct bh_player *r, const char *ns, const char *name)
{
    char key[600];
    int n = snprintf(key, sizeof(key), "%.253s/%.253s", ns, name);

    return bh_map_get(&r->pods, key, (size_t)n);
}

static void pod_add(struct bh_player *r, const struct bh_sim_obj *o)
{
    struct bh_player_pod *p = bh_player_pod_get(r, o->ns, o->name);
    char key[600];
    int n = snprintf(key, sizeof(key), "%.253s/%.253s", o->ns, o->name);

    if (!p) {
        p = bh_calloc(1, sizeof(*p));
        bh_map_put(&r->pods, key, (size_t)n, p);
    } else if (!p->gone) { /* its end has not been told yet */
        r->waiting -= p->node == NULL;
        r->undecided -= !p->decided;
    }
    free(p->recorded);
    free(p->node);
    *p = (struct bh_player_pod){.given = *o->node_name != '\0', .decided = *o->node_name != '\0'};
    snprintf(p->uid, sizeof(p->uid), "%s", o->uid);
    p->node = p->given ? bh_strdup(o->node_name) : NULL;
    r->waiting += !p->given;
    r->undecided += !p->given;
}

void bh_player_compare(struct bh_player *r, const char *ns, const char *name,
                       struct bh_player_pod *p)
{
    if (p->given || p->counted || r->follow || !p->recorded || !p->node)
        return;
    p->counted = true;
    if (bh_streq(p->recorded, p->node)) {
        r->same++;
        return;
    }
    r->different++;
    if (r->n_diffs == BH_REPLAY_LISTED)
        return;
    if (!r->diffs)
        r->diffs = bh_calloc(BH_REPLAY_LISTED, sizeof(*r->diffs));
    r->diffs[r->n_diffs++] = (struct bh_player_difference){
        bh_arena_strdup(&r->told, ns), bh_arena_strdup(&r->told, name),
        bh_arena_strdup(&r->told, p->recorded), bh_arena_strdup(&r->told, p->node)};
}

/* ---- writing --------------------------------------------------------------------------------- */

struct item {
    const struct bh_player_entry *e;
    const struct bh_clean_kind *k;
    const struct bh_sim_type *t;
    const char *ns, *name;
    struct bh_json *obj;
};

static void refused(struct bh_player *r, const struct item *i, const struct bh_sim_error *e)
{
    bh_player_error(&r->errors, i->e->line, "line %u: %s %s%s%s: %s", i->e->line, i->k->kind, i->ns,
                    *i->ns ? "/" : "", i->name, e->message);
}

/* A volume's claim has another uid here. */
static void link_claim(struct bh_player *r, struct bh_json *obj)
{
    struct bh_json *ref = bh_json_path(obj, "spec.claimRef");

    if (!ref)
        return;
    const struct bh_sim_obj *claim = bh_sim_get(
        r->sim, r->claim_type, bh_json_get_text(ref, "namespace"), bh_json_get_text(ref, "name"));
    bh_json_unset(ref, "uid");
    if (claim)
        bh_json_set_str(&r->arena, ref, "uid", claim->uid);
}

/* Users of a resource claim have other uids, too. */
static void link_users(struct bh_player *r, const struct item *i, struct bh_json *status)
{
    struct bh_json *users = bh_json_get_list(status, "reservedFor");
    struct bh_json *list = bh_json_new(&r->arena, BH_JSON_ARRAY);

    if (!users)
        return;
    bh_json_each(u, users) {
        const struct bh_sim_obj *o =
            bh_sim_get(r->sim, r->pod_type, i->ns, bh_json_get_text(u, "name"));
        struct bh_json *copy = o ? bh_json_clone(&r->arena, u) : NULL;
        if (!copy)
            continue;
        bh_json_set_str(&r->arena, copy, "uid", o->uid);
        bh_json_push(list, copy);
    }
    bh_json_set(&r->arena, status, "reservedFor", list);
}

static bool set_status(void *arg, struct bh_arena *a, struct bh_json *obj)
{
    struct bh_json *status = bh_json_obj_at(a, obj, "status");

    bh_json_each(m, (const struct bh_json *)arg)
        bh_json_set(a, status, m->key.p, bh_json_clone(a, m));
    return true;
}

/* Does a pod use this claim that was placed before the recording began? */
static bool serves_given(struct bh_player *r, const struct item *i)
{
    bh_json_each(u, bh_json_path(i->obj, "status.reservedFor")) {
        const struct bh_player_pod *p = bh_player_pod_get(r, i->ns, bh_json_get_text(u, "name"));
        if (p && p->given)
            return true;
    }
    return false;
}

/* Claims of pods that this cluster places are this cluster's to allocate; and those that were made
 * for one of them, by a controller or the scheduler, are made here again. false: not to be created.
 */
static bool own_claim(struct bh_player *r, struct item *i)
{
    const struct bh_json *notes = bh_json_path(i->obj, "metadata.annotations");

    if (!bh_streq(i->k->kind, "ResourceClaim") || serves_given(r, i))
        return true;
    bh_json_unset(i->obj, "status");
    return !bh_json_get(notes, "resource.kubernetes.io/pod-claim-name") &&
           !bh_json_get(notes, "resource.kubernetes.io/extended-resource-claim");
}

static void create(struct bh_player *r, struct item *i)
{
    struct bh_sim_error e = {0};
    struct bh_sim_obj *made = NULL;

    if (!own_claim(r, i))
        return;
    if (*i->ns && !bh_sim_get(r->sim, r->namespace_type, "", i->ns))
        (void)bh_sim_create(r->sim, r->namespace_type, "", &r->arena,
                            bh_json_make(&r->arena, "metadata: {name: %s}", i->ns), NULL, NULL);
    struct bh_json *status = bh_clean_new(&r->arena, i->k, i->obj);
    link_claim(r, i->obj);
    link_users(r, i, status);
    struct bh_json *spec = bh_json_get(i->obj, "spec");
    if (i->t == r->pod_type && r->follow && !*bh_json_get_text(spec, "nodeName"))
        bh_json_set_str(&r->arena, spec, "schedulerName", BH_REPLAY_FOLLOWER);
    if (bh_sim_create(r->sim, i->t, i->ns, &r->arena, i->obj, &made, &e)) {
        refused(r, i, &e);
        return;
    }
    if (i->t == r->pod_type)
        pod_add(r, made);
    else if (status && !bh_streq(i->k->kind, "Node"))
        (void)bh_sim_edit(r->sim, i->t, i->ns, i->name, NULL, BH_SIM_STATUS, set_status, status,
                          NULL, NULL);
    bh_sim_obj_unref(made);
}

static bool change(void *arg, struct bh_arena *a, struct bh_json *obj)
{
    const struct item *i = arg;
    struct bh_json *merged, *own;
    const char *why;

    if (bh_streq(i->k->kind, "ResourceClaim")) { /* allocated by this cluster's scheduler */
        own = bh_json_get(bh_clean(a, i->k, obj, NULL, &why), "status");
        bh_json_unset(i->obj, "status");
        if (own)
            bh_json_set(a, i->obj, "status", bh_json_clone(a, own));
    }
    struct bh_json *patch = bh_clean_diff(a, i->k, obj, i->obj);
    if (!patch || bh_patch_merge(a, obj, patch, &merged, NULL) < 0)
        return false;
    obj->c = merged->c;
    return true;
}

static void note_node(struct bh_player *r, const struct item *i)
{
    const char *node = bh_json_get_text(bh_json_get(i->obj, "spec"), "nodeName");
    struct bh_player_pod *p = bh_player_pod_get(r, i->ns, i->name);
    struct bh_sim_error e = {0};

    if (!*node || !p || p->recorded || p->given)
        return;
    p->recorded = bh_strdup(node);
    if (!r->follow)
        bh_player_compare(r, i->ns, i->name, p);
    else if (!p->gone && bh_sim_bind(r->sim, i->ns, i->name, p->uid, node, NULL, NULL, &e))
        refused(r, i, &e);
}

/* Add and Update alike: what is there is changed, what is not is made. A pod that was here and that
 * this cluster has removed, by preemption say, is not brought back by the rest of its life. */
static void upsert(struct bh_player *r, struct item *i)
{
    const struct bh_player_pod *p =
        i->t == r->pod_type ? bh_player_pod_get(r, i->ns, i->name) : NULL;
    const char *phase = bh_json_get_text(bh_json_get(i->obj, "status"), "phase");

    if (bh_sim_get(r->sim, i->t, i->ns, i->name)) {
        struct bh_sim_error e = {0};
        if (i->t == r->pod_type)
            note_node(r, i);
        link_claim(r, i->obj);
        if (bh_sim_edit(r->sim, i->t, i->ns, i->name, NULL, BH_SIM_WHOLE, change, i, NULL, &e))
            refused(r, i, &e);
    } else if (i->e->event == BH_RECORD_ADD)
        create(r, i);
    else if (!p && !bh_streq(phase, "Succeeded") && !bh_streq(phase, "Failed"))
        create(r, i);
}

static void delete (struct bh_player *r, const struct item *i)
{
    static const struct bh_sim_delete_options at_once = {.grace_s = 0};
    struct bh_sim_error e = {0};
    int code = bh_sim_delete(r->sim, i->t, i->ns, i->name, &at_once, &e);

    if (code && code != 404)
        refused(r, i, &e);
}

void bh_player_apply(struct bh_player *r, const struct bh_player_entry *e)
{
    struct item i = {.e = e};
    struct bh_err err;

    bh_arena_reset(&r->arena);
    if (bh_json_parse(&r->arena, r->file.text.p + e->at, e->n, BH_JSON_NUL, &i.obj, &err) < 0) {
        bh_player_error(&r->errors, e->line, "line %u: %s", e->line, err.msg);
        return;
    }
    i.k =
        bh_clean_kind_find(bh_json_get_text(i.obj, "apiVersion"), bh_json_get_text(i.obj, "kind"));
    i.t = i.k ? bh_sim_type_find(i.k->group, i.k->version, i.k->plural) : NULL;
    if (!i.t)
        return;
    const struct bh_json *meta = bh_json_get(i.obj, "metadata");
    i.name = bh_json_get_text(meta, "name");
    i.ns = i.k->flags & BH_CLEAN_NAMESPACED ? bh_json_get_text(meta, "namespace") : "";
    if ((i.k->flags & BH_CLEAN_NAMESPACED) && !*i.ns)
        i.ns = "default";
    if (e->event == BH_RECORD_DELETE)
        delete (r, &i);
    else
        upsert(r, &i);
}

/* ---- an empty cluster to begin with ---------------------------------------------------------- */

/* Namespaces stay: they take their time to go, and the record wants them back. */
static bool stays(const struct bh_clean_kind *k, const struct bh_sim_obj *o)
{
    if (bh_streq(k->kind, "Namespace"))
        return true;
    if (bh_streq(k->kind, "PriorityClass"))
        return strncmp(o->name, "system-", 7) == 0;
    return bh_streq(k->kind, "Service") && bh_streq(o->name, "kubernetes");
}

bool bh_player_clear_some(struct bh_player *r)
{
    static const struct bh_sim_delete_options at_once = {.grace_s = 0};
    size_t left = CLEAR_BURST;

    while (r->clear_kind && left) {
        const struct bh_clean_kind *k = &bh_clean_kinds[r->clear_kind - 1];
        const struct bh_sim_type *t = bh_sim_type_find(k->group, k->version, k->plural);
        BH_CLEANUP(bh_sim_objs_fini) struct bh_sim_objs l = {0};
        size_t i = 0;
        if (t)
            l = bh_sim_listed(r->sim, t, NULL);
        for (; i < l.n && left; i++) {
            if (stays(k, l.v[i]) || l.v[i]->deleting)
                continue;
            (void)bh_sim_delete(r->sim, t, l.v[i]->ns, l.v[i]->name, &at_once, NULL);
            left--;
        }
        if (i == l.n)
            r->clear_kind--;
    }
    return r->clear_kind != 0;
}
