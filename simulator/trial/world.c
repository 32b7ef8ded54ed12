/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/trial/world.c - objects of the files into the offline world
 */
#include <errno.h>

#include "simulator/trial/trial.h"
#include "common/k8s/quantity.h"
#include "simulator/admission/admission.h"

/* An object costs more decoded than as text; beyond this it is hostile. */
#define DECODED_MAX(n) (((size_t)4 << 20) + 64 * (n))

struct bh_trial_pod *bh_trial_pod_of(const struct bh_trial *t, struct bh_str uid)
{
    return bh_map_get(&t->pods, uid.p, uid.n);
}

struct bh_trial_pod *bh_trial_find_pod(const struct bh_trial *t, const char *ns, const char *name)
{
    for (size_t i = 0; i < t->n_list; i++) {
        if (bh_streq(bh_trial_pod_ns(t->list[i]), ns) &&
            bh_streq(bh_trial_pod_name(t->list[i]), name))
            return t->list[i];
    }
    return NULL;
}

struct bh_trial_pod *bh_trial_add_pod(struct bh_trial *t, const struct bh_pod_rec *rec,
                                      const struct bh_shape_rec *shape)
{
    struct bh_trial_pod *p = bh_calloc(1, sizeof *p);

    p->shape = bh_engine_shape(t->w.engine, shape);
    p->rec = bh_memdup(rec, rec->h.size);
    p->rec->shape = p->shape;
    p->order = (uint32_t)t->n_list;
    BH_GROW(t->list, t->n_list, t->cap_list);
    t->list[t->n_list++] = p;
    bh_map_put(&t->pods, bh_trial_uid(p).p, bh_trial_uid(p).n, p);
    return p;
}

/* ---- one object ------------------------------------------------------------------------------ */

/* name: "ns/name" */
static bool is_named(const struct bh_trial_item *it, const char *name)
{
    size_t n = strlen(it->ns);

    return name && strncmp(name, it->ns, n) == 0 && name[n] == '/' &&
           bh_streq(name + n + 1, it->name);
}

/* Pending: may it take part? */
static bool takes_part(struct bh_trial *t, const struct bh_trial_item *it,
                       const struct bh_pod_rec *rec, const struct bh_shape_rec *shape)
{
    const char *scheduler = bh_sym_text(bh_engine_symtab(t->w.engine), shape->scheduler_name);

    if (t->o.only && !is_named(it, t->o.only))
        return false;
    if (rec->flags & BH_POD_TERMINATING) {
        t->n_terminating++;
        return false;
    }
    if (!bh_engine_responsible(t->w.engine, scheduler)) {
        uintptr_t n = (uintptr_t)bh_map_get(&t->foreign, scheduler, strlen(scheduler));
        (void)bh_map_put(&t->foreign, scheduler, strlen(scheduler), (void *)(n + 1));
        t->n_foreign++;
        return false;
    }
    return true;
}

static int put_pod(struct bh_trial *t, const struct bh_trial_item *it, struct bh_offline_object *x,
                   struct bh_err *err)
{
    struct bh_str uid = bh_rec_text(x->pod, x->pod->uid);

    if (x->finished) {
        t->n_finished++;
        return 0;
    }
    if (bh_trial_pod_of(t, uid) || bh_engine_find_pod(t->w.engine, uid, NULL))
        return bh_err_set(err, -EINVAL, "metadata.uid: Duplicate value: another pod has it");
    if (is_named(it, t->o.unbind))
        x->pod->node = BH_SYM_NONE;
    if (x->pod->node != BH_SYM_NONE) {
        (void)bh_offline_put(&t->w, x, NULL);
        t->n_placed_before++;
    } else if (takes_part(t, it, x->pod, x->shape)) { /* it waits until all are sorted */
        bh_engine_put_raw_message(t->w.engine, BH_KIND_POD, x->message);
        bh_trial_add_pod(t, x->pod, x->shape)->rank = it->at.rank;
    }
    bh_trial_budgets_see(t, x->shape, x->pod->node != BH_SYM_NONE);
    return 0;
}

/* ---- quantities ------------------------------------------------------------------------------ */

/* No amount is below zero: an API server would have refused it. path: where obj stands. */
static int check_amounts(const struct bh_json *obj, const char *path, int depth, struct bh_err *err)
{
    int rc = 0;

    bh_json_each(m, obj) {
        bool map = obj->type == BH_JSON_OBJECT && m->type == BH_JSON_OBJECT;
        BH_CLEANUP(bh_freep)
        char *here = bh_asprintf("%.200s%s%.100s", path, *path && m->key.p ? "." : "",
                                 m->key.p ? m->key.p : "[]");
        bool amounts = /* by resource name */
            map && bh_word_at("requests limits overhead capacity allocatable", m->key.p) >= 0;
        bh_json_each(q, amounts ? m : NULL) {
            bh_nano v;
            if (rc == 0 && (q->type == BH_JSON_STRING || q->type == BH_JSON_NUMBER) &&
                bh_quantity_parse(q->s.p, q->s.n, &v) == 0 && v < 0)
                rc = bh_err_set(err, -EINVAL,
                                "%s.%.100s: Invalid value: %.40s: must be greater "
                                "than or equal to 0",
                                here, q->key.p, q->s.p);
        }
        if (rc == 0 && depth < 8 && (m->type == BH_JSON_OBJECT || m->type == BH_JSON_ARRAY))
            rc = check_amounts(m, here, depth + 1, err);
    }
    return rc;
}

/* ---- an item --------------------------------------------------------------------------------- */

static int put_item(struct bh_trial *t, struct bh_arena *a, const struct bh_trial_item *it,
                    struct bh_err *err)
{
    struct bh_offline_object x;
    struct bh_json *obj;
    int rc = bh_json_parse(a, it->json, it->n, BH_JSON_NUL, &obj, err);

    if (rc < 0)
        return rc;
    bh_api_defaults(a, obj);
    if (it->kind->namespaced)
        bh_json_set_str(a, bh_json_get(obj, "metadata"), "namespace", it->ns);
    if (it->kind->kind == BH_KIND_PODDISRUPTIONBUDGET)
        return bh_trial_budgets_add(t, a, it, obj, err);
    rc = it->kind->kind <= BH_KIND_POD ? check_amounts(obj, "", 0, err) : 0;
    rc = rc < 0 ? rc : bh_offline_read(t->w.engine, a, it->kind, obj, &x, err);
    if (rc < 0)
        return rc;
    t->n_nodes += x.node != NULL;
    rc = x.pod ? put_pod(t, it, &x, err) : bh_offline_put(&t->w, &x, err);
    /* A plugin may read objects of a kind that the scheduler itself knows. */
    const struct bh_kind_info *asked = bh_kind_declared(it->api_version, it->kind->plural);
    return rc < 0 || !asked || asked == it->kind ? rc
                                                 : bh_offline_put_tree(&t->w, a, asked, obj, err);
}

/* ---- all of them ----------------------------------------------------------------------------- */

static int put_all(struct bh_trial *t, struct bh_err *err)
{
    BH_CLEANUP(bh_arena_fini) struct bh_arena a = {0};
    size_t done = 0;
    int rc = 0;

    for (unsigned turn = 0; turn < 3 && rc >= 0; turn++) {
        for (size_t i = 0; i < t->n_items && rc >= 0; i++) {
            const struct bh_trial_item *it = &t->items[i];
            if (it->replaced || !it->kind)
                continue;
            enum bh_kind kind = it->kind->kind; /* pods come last: nodes and budgets are there */
            if (turn != (kind == BH_KIND_POD ? 2u : kind == BH_KIND_NODE ? 1u : 0u))
                continue;
            a.limit_bytes = DECODED_MAX(it->n);
            rc = put_item(t, &a, it, err);
            if (rc < 0)
                bh_trial_blame(err, rc, it);
            bh_arena_reset(&a);
            bh_trial_progress(t, "reading", done++, t->n_items);
            if (rc >= 0 && bh_trial_stopped(t))
                rc = bh_err_set(err, -ECANCELED, "cancelled");
        }
    }
    return rc;
}

static int by_age(const void *pa, const void *pb)
{
    const struct bh_trial_pod *a = *(struct bh_trial_pod *const *)pa,
                              *b = *(struct bh_trial_pod *const *)pb;
    int cmp = BH_CMP(a->rec->creation_ns, b->rec->creation_ns);

    cmp = cmp ? cmp : BH_CMP(a->rank, b->rank);
    return cmp ? cmp : BH_CMP(a->order, b->order);
}

int bh_trial_prepare(struct bh_trial *t, struct bh_err *err)
{
    int rc = bh_trial_admit(t, err);

    rc = rc < 0 ? rc : put_all(t, err);
    if (rc < 0)
        return rc;
    bh_trial_budgets_settle(t);
    /* Upstream's queue sees pods in the order of their creation. */
    if (t->n_list > 1)
        qsort(t->list, t->n_list, sizeof *t->list, by_age);
    for (size_t i = 0; i < t->n_list; i++) {
        struct bh_trial_pod *p = t->list[i];
        bh_offline_pend(&t->w, p->rec, bh_engine_shape_rec(t->w.engine, p->shape));
    }
    bh_trial_groups_warn(t);
    if (!t->n_nodes)
        bh_trial_warn(t, "the files hold no node");
    return 0;
}

static int on_object(void *arg, const struct bh_trial_source *at, struct bh_arena *a BH_UNUSED,
                     struct bh_json *obj, struct bh_err *err)
{
    struct bh_trial_source place = *at;
    struct bh_trial *t = arg;

    place.rank = ++t->n_read;
    bh_json_unset(bh_json_get(obj, "metadata"), "managedFields");
    int rc = bh_trial_known(at, obj, err);
    return rc < 0 ? rc : bh_trial_add_item(t, &place, obj, err);
}

static void warn_gate(void *arg, const char *name, bool enabled, const char *instead)
{
    bh_trial_warn(arg, "feature gate %s=%s has no effect: %s", name, enabled ? "true" : "false",
                  instead);
}

static int by_key(const void *a, const void *b)
{
    return strcmp((*(struct bh_map_entry *const *)a)->key, (*(struct bh_map_entry *const *)b)->key);
}

/* Pods that no profile is responsible for would only be missing in the tables. */
static void warn_foreign(struct bh_trial *t)
{
    struct bh_map_entry **v = bh_calloc(t->foreign.len + 1, sizeof *v), *e;
    size_t n = 0;

    for (size_t it = 0; (e = bh_map_next(&t->foreign, &it));)
        v[n++] = e;
    if (n > 1)
        qsort(v, n, sizeof *v, by_key);
    for (size_t i = 0; i < n; i++)
        bh_trial_warn(t,
                      "%zu pending pod%s not decided: spec.schedulerName is \"%s\", and the "
                      "configuration has no such profile",
                      (size_t)(uintptr_t)v[i]->value,
                      (uintptr_t)v[i]->value == 1 ? " was" : "s were", v[i]->key);
    free(v);
}

int bh_trial_load(struct bh_trial *t, const char *const *paths, size_t n, struct bh_err *err)
{
    int rc = 0;

    for (size_t i = 0; i < n && rc >= 0; i++)
        rc = bh_trial_read(paths[i], &t->names, on_object, t, err);
    if (rc >= 0 && !t->n_items)
        rc = bh_err_set(err, -EINVAL, "no object in the files says anything about scheduling");
    rc = rc < 0 ? rc : bh_trial_prepare(t, err);
    if (rc >= 0) {
        bh_sched_gates_each_idle(&t->gates, warn_gate, t);
        warn_foreign(t);
    }
    return rc;
}

/* ---- life ------------------------------------------------------------------------------------ */

int bh_trial_new(const struct bh_trial_options *o, struct bh_trial **ret, struct bh_err *err)
{
    struct bh_trial *t = bh_calloc(1, sizeof *t);

    t->o = *o;
    int rc = o->config_object ? bh_sched_config_new(o->config_object, &t->config, err)
                              : bh_sched_config_load(o->config, &t->config, err);
    if (rc >= 0 && o->gates) {
        t->gates = *o->gates;
        bh_sched_config_apply_gates(t->config, &t->gates);
    }
    if (rc >= 0 && o->no_extenders)
        t->config->n_extenders = 0;
    if (rc >= 0) {
        const struct bh_offline_options oo = {.config = t->config,
                                              .tie_break = o->tie_break,
                                              .seed = o->seed,
                                              .verify = o->verify,
                                              /* files have no history that a cache could hold */
                                              .rebuilt_snapshot = true,
                                              .events_only = true,
                                              .flags = (o->explain ? BH_EXPLAIN : 0) |
                                                       (o->no_preemption ? BH_NO_PREEMPTION : 0),
                                              .now_ns = o->now_ns,
                                              .observer = o->observer};
        rc = bh_offline_init(&t->w, &oo, err);
    }
    if (rc < 0) {
        bh_trial_free(t);
        return rc;
    }
    *ret = t;
    return 0;
}

void bh_trial_free(struct bh_trial *t)
{
    if (!t)
        return;
    for (size_t i = 0; i < t->n_list; i++) {
        struct bh_trial_pod *p = t->list[i];
        bh_engine_shape_unref(t->w.engine, p->shape);
        free(p->rec);
        free(p->reason);
        free(p->message);
        bh_buf_fini(&p->explanations);
        free(p);
    }
    free(t->list);
    bh_map_fini(&t->pods);
    bh_map_fini(&t->groups);
    bh_trial_budgets_fini(t);
    bh_trial_items_fini(t);
    bh_offline_fini(&t->w);
    bh_sched_config_free(t->config);
    bh_arena_fini(&t->names);
    free(t->warnings);
    free(t);
}
