/* SPDX-License-Identifier: Apache-2.0
 *
 * cli/bench_ops.c - operations about pods, time and measuring
 *
 * Upstream: test/integration/scheduler_perf/{operations,executor,scheduler_perf}.go; differences:
 * all pods of an operation are there before the first of them is tried, and waiting ends with the
 * event, not with a poll after it.
 */
#include "cli/bench_ops.h"

#include <errno.h>
#include <inttypes.h>

#define WAIT_NS    (INT64_C(600) * 1000000000) /* without one more pod that gets a node */
#define SECOND_NS  INT64_C(1000000000)
#define CHURN_MS   500
#define NAME_TRIES 7
#define LOOK_EVERY 512u /* attempts between two looks at pods by label */

static const struct bh_sim_type *pods_type(void)
{
    return bh_sim_type_find("", "v1", "pods");
}

static struct bh_selector *selector_of(struct bh_bench_world *w, const struct bh_json *labels,
                                       struct bh_err *err, int *ret_rc)
{
    struct bh_selector *sel = NULL;

    *ret_rc = 0;
    if (!labels || !labels->c.n)
        return NULL;
    bh_arena_reset(&w->arena);
    struct bh_json *v = bh_json_new(&w->arena, BH_JSON_OBJECT);
    bh_json_set(&w->arena, v, "matchLabels", bh_json_clone(&w->arena, labels));
    *ret_rc = bh_selector_from_json(v, &sel, err);
    if (*ret_rc < 0)
        bh_err_prefix(err, *ret_rc, "labelSelector");
    return sel;
}

static const char *label(void *arg, const char *key)
{
    return bh_sim_obj_label(arg, key);
}

/* ---- waiting -----------------------------------------------------------------------------------
 */

struct wait {
    struct bh_bench_world *w;
    int64_t progress_ns, until_ns; /* until_ns: an end without error; INT64_MAX = none */
    uint64_t bound;
    bool looked; /* the caller has seen that nobody can be tried */
};

static struct wait wait_begin(struct bh_bench_world *w, int64_t until_ns)
{
    return (struct wait){
        .w = w, .progress_ns = w->cluster.now_ns, .until_ns = until_ns, .bound = w->bound};
}

/* One step. 1: go on; 0: until_ns is there; -ETIMEDOUT: nothing has moved for long. */
static int wait_step(struct wait *x, bool *ret_idle, struct bh_err *err)
{
    struct bh_bench_world *w = x->w;
    int64_t give_up = x->progress_ns + WAIT_NS;

    *ret_idle = false;
    if (bh_bench_attempt(w) || bh_bench_controllers(w)) {
        x->looked = false;
    } else if (!x->looked) {
        x->looked = *ret_idle = true;
    } else {
        x->looked = false;
        if (!bh_bench_jump(w, BH_MIN(give_up, x->until_ns)))
            w->cluster.now_ns = BH_MIN(give_up, x->until_ns);
    }
    if (w->cluster.trouble_rc < 0)
        return bh_bench_settle(w, err);
    if (w->bound != x->bound) {
        x->bound = w->bound;
        x->progress_ns = w->cluster.now_ns;
    }
    if (w->cluster.now_ns >= x->until_ns)
        return 0;
    if (w->cluster.now_ns - x->progress_ns >= WAIT_NS)
        return bh_err_set(err, -ETIMEDOUT, "no pod got a node for ten minutes");
    return 1;
}

/* until: pods of the namespace that have a node, or got one since the start (counter). */
static int wait_for(struct bh_bench_world *w, const struct bh_bench_namespace *ns,
                    const int64_t *counter, int64_t wanted, int64_t until_ns, struct bh_err *err)
{
    struct wait x = wait_begin(w, until_ns);
    int64_t from = *counter;
    int rc = 1;
    bool idle;

    w->total = (size_t)BH_MAX(wanted - from, 0);
    while (rc > 0 && *counter < wanted) {
        rc = wait_step(&x, &idle, err);
        w->done = (size_t)BH_MAX(*counter - from, 0);
    }
    if (rc == -ETIMEDOUT)
        bh_err_prefix(err, rc, "namespace %s: %" PRId64 " of %" PRId64 " pods have a node",
                      ns->name, *counter, wanted);
    return BH_MIN(rc, 0);
}

/* ---- createPods --------------------------------------------------------------------------------
 */

static const char base_pod[] =
    "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"generateName\":\"pod-\"},\"spec\":"
    "{\"containers\":[{\"name\":\"pause\",\"image\":\"registry.k8s.io/pause:3.10.1\",\"ports\":"
    "[{\"containerPort\":80}],\"resources\":{\"limits\":{\"cpu\":\"100m\",\"memory\":\"500Mi\"},"
    "\"requests\":{\"cpu\":\"100m\",\"memory\":\"500Mi\"}}}]}}";

struct maker { /* of pods, and of the volumes that go with them */
    struct bh_bench_world *w;
    const struct bh_bench_step *s;
    const char *ns, *path; /* path: of the pod's template */
    char *pod, *pv, *pvc;  /* texts; pod NULL = the base pod */
    struct bh_arena kept;
    struct bh_json *fixed; /* the pod, when its text holds no action */
};

static int maker_init(struct maker *m, struct bh_bench_world *w, const struct bh_bench_step *s,
                      const char *ns, struct bh_err *err)
{
    const struct bh_sim_type *t;
    struct bh_json *o;
    int rc = 0;

    *m = (struct maker){.w = w, .s = s, .ns = ns};
    m->path = s->pod_template ? s->pod_template : w->target->test_case->default_pod;
    bh_arena_init(&m->kept, 0);
    if (m->path)
        rc = bh_bench_template_read(w, m->path, &m->pod, err);
    if (rc >= 0 && s->pv_template)
        rc = bh_bench_template_read(w, s->pv_template, &m->pv, err);
    if (rc >= 0 && s->pvc_template)
        rc = bh_bench_template_read(w, s->pvc_template, &m->pvc, err);
    if (rc < 0 || (m->pod && strstr(m->pod, "{{")))
        return rc;
    rc = bh_bench_object(w, m->pod ? m->pod : base_pod, true, 0, 0, &o, &t, err);
    if (rc < 0)
        return bh_err_prefix(err, rc, "%s", m->path ? m->path : "pod");
    m->fixed = bh_json_clone(&m->kept, o);
    return 0;
}

static void maker_fini(struct maker *m)
{
    bh_arena_fini(&m->kept);
    free(m->pod);
    free(m->pv);
    free(m->pvc);
}

static bool set_phase_bound(void *arg, struct bh_arena *a, struct bh_json *obj)
{
    (void)arg;
    bh_json_set_str(a, bh_json_obj_at(a, obj, "status"), "phase", "Bound");
    return true;
}

static int create_bound(struct bh_bench_world *w, const struct bh_sim_type *t, const char *ns,
                        struct bh_json *o, struct bh_err *err)
{
    struct bh_sim_obj *made = NULL;
    struct bh_sim_error e = {0};
    int rc = bh_bench_create(w, t, ns, o, &made, err);

    if (rc >= 0 && bh_sim_edit(w->cluster.sim, t, ns, made->name, NULL, BH_SIM_STATUS,
                               set_phase_bound, NULL, NULL, &e))
        rc = bh_err_set(err, -EINVAL, "%s", e.message);
    bh_sim_obj_unref(made);
    return rc;
}

/* Claim and volume number i, bound to each other before the pod is there. */
static int make_volume(struct maker *m, int64_t i, struct bh_err *err)
{
    struct bh_bench_world *w = m->w;
    BH_CLEANUP(bh_freep) char *volume = bh_asprintf("%s-vol-%" PRId64, m->ns, i);
    BH_CLEANUP(bh_freep) char *claim = bh_asprintf("pvc-%" PRId64, i);
    const struct bh_sim_type *t;
    struct bh_json *o, *spec, *source;
    int rc = bh_bench_object(w, m->pvc, true, 0, 0, &o, &t, err);

    if (rc < 0)
        return bh_err_prefix(err, rc, "%s", m->s->pvc_template);
    bh_json_set_str(&w->arena, bh_json_obj_at(&w->arena, o, "metadata"), "name", claim);
    bh_json_set_str(&w->arena, bh_json_obj_at(&w->arena, o, "spec"), "volumeName", volume);
    rc = create_bound(w, t, m->ns, o, err);
    if (rc < 0)
        return bh_err_prefix(err, rc, "%s", m->s->pvc_template);
    rc = bh_bench_object(w, m->pv, true, 0, 0, &o, &t, err);
    if (rc < 0)
        return bh_err_prefix(err, rc, "%s", m->s->pv_template);
    spec = bh_json_obj_at(&w->arena, o, "spec");
    bh_json_set_str(&w->arena, bh_json_obj_at(&w->arena, o, "metadata"), "name", volume);
    source = bh_json_get(spec, "awsElasticBlockStore");
    if (source)
        bh_json_set_str(&w->arena, source, "volumeID",
                        bh_arena_printf(&w->arena, "vol-%" PRId64, i));
    source = bh_json_get(spec, "csi");
    if (source)
        bh_json_set_str(&w->arena, source, "volumeHandle", volume);
    struct bh_json *ref = bh_json_obj_at(&w->arena, spec, "claimRef");
    bh_json_set_str(&w->arena, ref, "kind", "PersistentVolumeClaim");
    bh_json_set_str(&w->arena, ref, "apiVersion", "v1");
    bh_json_set_str(&w->arena, ref, "namespace", m->ns);
    bh_json_set_str(&w->arena, ref, "name", claim);
    rc = create_bound(w, t, "", o, err);
    return rc < 0 ? bh_err_prefix(err, rc, "%s", m->s->pv_template) : 0;
}

static int render_pod(struct maker *m, int64_t i, struct bh_json **ret, struct bh_err *err)
{
    struct bh_bench_world *w = m->w;
    const struct bh_sim_type *t;
    int rc = 0;

    if (m->fixed) {
        bh_arena_reset(&w->arena);
        *ret = bh_json_clone(&w->arena, m->fixed);
    } else {
        rc = bh_bench_object(w, m->pod, false, i, m->s->count, ret, &t, err);
    }
    if (rc >= 0 && !bh_streq(bh_json_get_text(*ret, "kind"), "Pod"))
        rc = bh_err_set(err, -EINVAL, "kind: must be Pod");
    if (rc < 0 || !m->pvc)
        return rc;
    struct bh_json *list = bh_json_new(&w->arena, BH_JSON_ARRAY);
    struct bh_json *v = bh_bench_literal(w, "{\"name\":\"vol\",\"persistentVolumeClaim\":{}}");
    bh_json_set_str(&w->arena, bh_json_get(v, "persistentVolumeClaim"), "claimName",
                    bh_arena_printf(&w->arena, "pvc-%" PRId64, i));
    bh_json_push(list, v);
    bh_json_set(&w->arena, bh_json_obj_at(&w->arena, *ret, "spec"), "volumes", list);
    return 0;
}

static int make_pod(struct maker *m, int64_t i, struct bh_err *err)
{
    struct bh_json *o;
    int rc = m->pvc ? make_volume(m, i, err) : 0;

    if (rc < 0)
        return rc;
    for (int tries = 0; tries < NAME_TRIES; tries++) {
        rc = render_pod(m, i, &o, err);
        if (rc >= 0)
            rc = bh_bench_give_class(m->w, o, err);
        bool drawn = rc >= 0 && !bh_json_get_str(bh_json_get(o, "metadata"), "name");
        if (rc >= 0)
            rc = bh_bench_create(m->w, pods_type(), m->ns, o, NULL, err);
        if (rc == -EEXIST && !drawn)
            rc = 0; /* as upstream */
        if (rc != -EEXIST)
            break;
    }
    return rc < 0 ? bh_err_prefix(err, rc, "%s", m->path ? m->path : "pod") : 0;
}

static int make_pods(struct maker *m, struct bh_err *err)
{
    struct bh_bench_world *w = m->w;
    int rc = 0;

    w->total = (size_t)m->s->count;
    for (int64_t i = 0; i < m->s->count && rc >= 0; i++) {
        w->done = (size_t)i;
        rc = make_pod(m, i, err);
        if (rc >= 0)
            rc = bh_bench_settle(w, err);
    }
    return rc;
}

static int delete_all(struct bh_bench_world *w, const char *ns, struct bh_err *err)
{
    const struct bh_sim_delete_options at_once = {.grace_s = 0};
    struct bh_sim_objs l = {0};

    bh_sim_list(w->cluster.sim, pods_type(), ns, &l);
    for (size_t i = 0; i < l.n; i++)
        (void)bh_sim_delete(w->cluster.sim, pods_type(), ns, l.v[i]->name, &at_once, NULL);
    bh_sim_objs_fini(&l);
    return bh_bench_settle(w, err);
}

static int steady(struct maker *m, struct bh_bench_namespace *ns, struct bh_err *err)
{
    struct bh_bench_world *w = m->w;
    int64_t until_ns = w->cluster.now_ns + m->s->duration_ns, began = ns->bound;
    int rc = 0;

    while (rc >= 0 && w->cluster.now_ns < until_ns) {
        int64_t from = ns->bound;
        rc = make_pods(m, err);
        if (rc >= 0)
            rc = wait_for(w, ns, &ns->bound, from + m->s->count, until_ns, err);
        if (rc >= 0 && w->cluster.now_ns < until_ns) {
            rc = delete_all(w, m->ns, err);
            bh_bench_controllers(w);
        }
    }
    if (rc >= 0 && ns->bound == began)
        rc = bh_err_set(err, -ETIMEDOUT, "no pod got a node in all of the steady state");
    return rc;
}

int bh_bench_create_pods(struct bh_bench_world *w, const struct bh_bench_step *s,
                         struct bh_err *err)
{
    BH_CLEANUP(bh_freep)
    char *ns = s->namespace_ ? bh_strdup(s->namespace_) : bh_asprintf("namespace-%u", s->index);
    struct bh_arena names;
    struct maker m;
    int rc = bh_bench_know_namespace(w, ns, false, err);

    if (rc < 0)
        return rc;
    struct bh_bench_namespace *known = bh_bench_namespace(w, ns);
    bh_arena_init(&names, 0);
    rc = maker_init(&m, w, s, ns, err);
    if (rc >= 0 && s->collect) {
        struct bh_json *list = bh_json_new(&names, BH_JSON_ARRAY);
        bh_json_push(list, bh_json_new_cstr(&names, ns));
        rc = bh_bench_window_begin(w, ns, list, NULL, err);
    }
    if (rc >= 0 && s->steady) {
        rc = steady(&m, known, err);
    } else if (rc >= 0) {
        rc = make_pods(&m, err);
        if (s->skip_wait)
            known->expected += s->count;
        else if (rc >= 0)
            rc = wait_for(w, known, &known->scheduled, s->count, INT64_MAX, err);
    }
    if (rc >= 0 && s->collect)
        bh_bench_window_end(w);
    maker_fini(&m);
    bh_arena_fini(&names);
    return rc;
}

/* ---- barrier -----------------------------------------------------------------------------------
 */

static int64_t count_pods(struct bh_bench_world *w, const char *ns, const struct bh_selector *sel,
                          bool attempted)
{
    struct bh_sim_objs l = {0};
    int64_t n = 0;

    bh_sim_list(w->cluster.sim, pods_type(), ns, &l);
    for (size_t i = 0; i < l.n; i++) {
        struct bh_sim_obj *o = l.v[i];
        if (sel && !bh_selector_match(sel, label, o))
            continue;
        n += *o->node_name || (attempted && (bh_map_get(&w->attempted, o->uid, strlen(o->uid)) ||
                                             strstr(o->json, "\"PodScheduled\"")));
    }
    bh_sim_objs_fini(&l);
    return n;
}

static int barrier_for(struct bh_bench_world *w, const struct bh_bench_namespace *ns,
                       const struct bh_selector *sel, bool attempted, struct bh_err *err)
{
    struct wait x = wait_begin(w, INT64_MAX);
    int64_t have = count_pods(w, ns->name, sel, attempted);
    unsigned since = 0;
    int rc = 1;
    bool idle;

    w->total = (size_t)ns->expected;
    while (rc > 0 && have < ns->expected) {
        rc = wait_step(&x, &idle, err);
        if (!idle && ++since < LOOK_EVERY)
            continue;
        since = 0;
        have = count_pods(w, ns->name, sel, attempted);
        w->done = (size_t)have;
    }
    if (rc == -ETIMEDOUT)
        bh_err_prefix(err, rc, "namespace %s: %" PRId64 " of %" PRId64 " pods are %s", ns->name,
                      have, ns->expected, attempted ? "attempted" : "scheduled");
    return BH_MIN(rc, 0);
}

static bool named(const struct bh_json *list, const char *ns)
{
    bh_json_each (m, list) {
        if (bh_streq(m->s.p, ns))
            return true;
    }
    return !list || !list->c.n;
}

int bh_bench_barrier(struct bh_bench_world *w, const struct bh_bench_step *s, struct bh_err *err)
{
    bool attempted = s->stage && bh_streq(s->stage, "Attempted");
    int rc;
    struct bh_selector *sel = selector_of(w, s->selector, err, &rc);
    struct bh_map_entry *e;

    bh_json_each (m, rc >= 0 ? s->namespaces : NULL) {
        if (rc >= 0 && !bh_bench_namespace(w, m->s.p)->known)
            rc = bh_err_set(err, -EINVAL, "namespaces: no pods were created in \"%s\"", m->s.p);
    }
    for (size_t it = 0; rc >= 0 && (e = bh_map_next(&w->namespaces, &it));) {
        const struct bh_bench_namespace *ns = e->value;
        if (ns->known && named(s->namespaces, ns->name))
            rc = barrier_for(w, ns, sel, attempted, err);
    }
    for (size_t it = 0; rc >= 0 && !attempted && (e = bh_map_next(&w->namespaces, &it));) {
        struct bh_bench_namespace *ns = e->value;
        if (ns->known && named(s->namespaces, ns->name)) {
            ns->known = false;
            ns->expected = 0;
        }
    }
    bh_selector_free(sel);
    return rc;
}

/* ---- deletePods --------------------------------------------------------------------------------
 */

static void delete_one(struct bh_bench_world *w, struct bh_bench_victim *v)
{
    const struct bh_sim_delete_options own_grace = {.grace_s = -1};

    (void)bh_sim_delete(w->cluster.sim, v->type, v->ns, v->name, &own_grace,
                        NULL); /* gone is as good */
    free(v->name);
    v->name = NULL;
}

static bool delete_tick(struct bh_bench_world *w, struct bh_bench_background *b)
{
    if ((size_t)b->n < b->n_slots)
        delete_one(w, &b->slots[b->n]);
    return (size_t)++b->n < b->n_slots;
}

static struct bh_bench_background *
background(struct bh_bench_world *w, const struct bh_bench_step *s, int64_t interval_ns,
           bool (*tick)(struct bh_bench_world *, struct bh_bench_background *))
{
    struct bh_bench_background *b = bh_calloc(1, sizeof *b);

    *b = (struct bh_bench_background){.next = w->background,
                                      .due_ns = w->cluster.now_ns + interval_ns,
                                      .interval_ns = interval_ns,
                                      .tick = tick,
                                      .step = s};
    return w->background = b;
}

int bh_bench_delete_pods(struct bh_bench_world *w, const struct bh_bench_step *s,
                         struct bh_err *err)
{
    int64_t tick = s->per_second > 0 ? BH_MAX((int64_t)(1e9 / s->per_second), 1) : 0;
    int rc;
    struct bh_selector *sel = selector_of(w, s->selector, err, &rc);
    struct bh_bench_background *b;
    struct bh_sim_objs l = {0};

    if (rc < 0)
        return rc;
    if (!s->namespace_)
        return bh_err_set(err, -EINVAL, "namespace: missing");
    bh_sim_list(w->cluster.sim, pods_type(), s->namespace_, &l);
    b = background(w, s, tick, delete_tick);
    b->slots = bh_calloc(l.n + 1, sizeof *b->slots);
    for (size_t i = 0; i < l.n; i++)
        if (!sel || bh_selector_match(sel, label, l.v[i]))
            b->slots[b->n_slots++] = (struct bh_bench_victim){pods_type(), bh_strdup(l.v[i]->ns),
                                                              bh_strdup(l.v[i]->name)};
    bh_sim_objs_fini(&l);
    bh_selector_free(sel);
    if (s->skip_wait)
        return 0;
    if (!tick) {
        for (size_t i = 0; i < b->n_slots; i++)
            delete_one(w, &b->slots[i]);
        b->n = (int64_t)b->n_slots;
        return bh_bench_settle(w, err);
    }
    bh_bench_pass(w, w->cluster.now_ns + tick * (int64_t)b->n_slots);
    return bh_bench_settle(w, err);
}

/* ---- churn -------------------------------------------------------------------------------------
 */

/* Errors are no trouble for upstream either, but nobody should have to guess. */
static void churn_create(struct bh_bench_world *w, struct bh_bench_background *b, size_t k,
                         struct bh_bench_victim *slot)
{
    const char *path = bh_json_at(b->step->template_paths, k)->s.p;
    BH_CLEANUP(bh_freep)
    char *ns = b->step->namespace_ ? bh_strdup(b->step->namespace_)
                                   : bh_asprintf("namespace-%u", b->step->index);
    struct bh_sim_obj *made = NULL;
    const struct bh_sim_type *t;
    struct bh_err err = {0};
    struct bh_json *o;
    int rc = bh_bench_object(w, b->texts[k], true, 0, 0, &o, &t, &err);
    const char *in = rc >= 0 && (t->flags & BH_SIM_NAMESPACED) ? ns : "";

    if (rc >= 0 && bh_streq(t->kind, "Pod"))
        rc = bh_bench_give_class(w, o, &err);
    if (rc >= 0)
        rc = bh_bench_create(w, t, in, o, &made, &err);
    if (rc < 0)
        bh_bench_note(w->report, w->target->name, "churn: %s: %s", path, err.msg);
    else if (slot)
        *slot = (struct bh_bench_victim){t, bh_strdup(in), bh_strdup(made->name)};
    bh_sim_obj_unref(made);
}

static bool churn_tick(struct bh_bench_world *w, struct bh_bench_background *b)
{
    const struct bh_bench_step *s = b->step;
    bool again = bh_streq(s->mode, "recreate");
    size_t slot = again ? (size_t)(b->n % s->number) * b->n_texts : 0;

    for (size_t k = 0; k < b->n_texts; k++) {
        struct bh_bench_victim *v = again ? &b->slots[slot + k] : NULL;
        if (v && v->name) {
            delete_one(w, v);
            free(v->ns);
            *v = (struct bh_bench_victim){0};
        } else {
            churn_create(w, b, k, v);
        }
    }
    b->n++;
    return again || !s->number || b->n < s->number;
}

int bh_bench_churn(struct bh_bench_world *w, const struct bh_bench_step *s, struct bh_err *err)
{
    BH_CLEANUP(bh_freep)
    char *ns = s->namespace_ ? bh_strdup(s->namespace_) : bh_asprintf("namespace-%u", s->index);
    int64_t ms = s->interval_ms ? s->interval_ms : CHURN_MS;
    struct bh_bench_background *b = background(w, s, ms * (SECOND_NS / 1000), churn_tick);
    int rc = bh_bench_know_namespace(w, ns, true, err);

    b->texts = bh_calloc(s->template_paths->c.n, sizeof *b->texts);
    bh_json_each (p, s->template_paths) {
        if (rc >= 0)
            rc = bh_bench_template_read(w, p->s.p, &b->texts[b->n_texts++], err);
    }
    if (rc >= 0 && bh_streq(s->mode, "recreate")) {
        b->n_slots = (size_t)s->number * b->n_texts;
        b->slots = bh_calloc(b->n_slots, sizeof *b->slots);
    }
    return rc;
}

/* ---- time, measuring ---------------------------------------------------------------------------
 */

int bh_bench_sleep(struct bh_bench_world *w, const struct bh_bench_step *s, struct bh_err *err)
{
    bh_bench_pass(w, w->cluster.now_ns + s->duration_ns);
    return bh_bench_settle(w, err);
}

int bh_bench_start_collecting(struct bh_bench_world *w, const struct bh_bench_step *s,
                              struct bh_err *err)
{
    int rc;
    struct bh_selector *sel = selector_of(w, s->selector, err, &rc);

    return rc < 0 ? rc : bh_bench_window_begin(w, s->name ? s->name : "", s->namespaces, sel, err);
}

int bh_bench_stop_collecting(struct bh_bench_world *w, const struct bh_bench_step *s,
                             struct bh_err *err)
{
    (void)s;
    if (!w->window.on)
        return bh_err_set(err, -EINVAL, "nothing is being collected");
    bh_bench_window_end(w);
    return 0;
}

/* ---- a workload --------------------------------------------------------------------------------
 */

/* What the scheduler can do at once it does between two operations, too. */
static int between(struct bh_bench_world *w, struct bh_err *err)
{
    while (w->cluster.trouble_rc >= 0 && bh_bench_attempt(w))
        ;
    return bh_bench_settle(w, err);
}

int bh_bench_run(struct bh_bench_world *w, const struct bh_bench_step *steps, uint32_t n,
                 struct bh_err *err)
{
    int rc = 0;

    for (uint32_t i = 0; i < n && rc >= 0; i++) {
        w->done = w->total = 0;
        w->step = &steps[i];
        rc = steps[i].op->run(w, &steps[i], err);
        if (rc >= 0 && i + 1 < n)
            rc = between(w, err);
        if (rc < 0)
            bh_err_prefix(err, rc, "op %u (%s)", steps[i].index, steps[i].op->name);
    }
    if (rc >= 0 && w->window.on)
        rc = bh_err_set(err, -EINVAL, "startCollectingMetrics without stopCollectingMetrics");
    return rc;
}
