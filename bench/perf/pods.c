/* SPDX-License-Identifier: Apache-2.0
 *
 * bench/perf/pods.c - operations about pods: createPods, barrier
 *
 * Upstream: test/integration/scheduler_perf/{operations,executor,scheduler_perf}.go; differences:
 * in engine mode all pods of an operation are there before the first of them is tried; waiting ends
 * with the event (pipeline mode: at most 5 ms after it), not with a poll once a second.
 */
#include <errno.h>
#include <inttypes.h>

#include "bench/perf/perf.h"

#define WAIT_NS (INT64_C(600) * 1000000000) /* without one more pod that gets a node */

/* ---- waiting --------------------------------------------------------------------------------- */

static struct bh_bench_wait wait_begin(struct bh_bench_world *w, int64_t until_ns)
{
    return (struct bh_bench_wait){
        .progress_ns = w->driver->now(w), .until_ns = until_ns, .bound = w->bound};
}

/* One step of waiting. 1: go on; 0: until_ns is there; -ETIMEDOUT: nothing has moved for long. */
static int wait_step(struct bh_bench_world *w, struct bh_bench_wait *x, bool *ret_idle,
                     struct bh_err *err)
{
    int64_t give_up = x->progress_ns + WAIT_NS;
    int rc = w->driver->advance(w, x, BH_MIN(give_up, x->until_ns), ret_idle, err);

    if (rc < 0)
        return rc;
    int64_t now = w->driver->now(w);
    if (w->bound != x->bound) {
        x->bound = w->bound;
        x->progress_ns = now;
    }
    if (now >= x->until_ns)
        return 0;
    if (now - x->progress_ns >= WAIT_NS)
        return bh_err_set(err, -ETIMEDOUT, "no pod got a node for ten minutes");
    return 1;
}

/* counter: pods of the namespace that have a node, or got one since the start. */
static int wait_for(struct bh_bench_world *w, const struct bh_bench_namespace *ns,
                    const int64_t *counter, int64_t wanted, int64_t until_ns, struct bh_err *err)
{
    struct bh_bench_wait x = wait_begin(w, until_ns);
    int64_t from = *counter;
    int rc = 1;
    bool idle;

    w->total = (size_t)BH_MAX(wanted - from, 0);
    while (rc > 0 && *counter < wanted) {
        rc = wait_step(w, &x, &idle, err);
        w->done = (size_t)BH_MAX(*counter - from, 0);
    }
    if (rc == -ETIMEDOUT)
        bh_err_prefix(err, rc, "namespace %s: %" PRId64 " of %" PRId64 " pods have a node",
                      ns->name, *counter, wanted);
    return BH_MIN(rc, 0);
}

/* ---- createPods ------------------------------------------------------------------------------ */

static const char base_pod[] =
    "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"generateName\":\"pod-\"},\"spec\":"
    "{\"containers\":[{\"name\":\"pause\",\"image\":\"registry.k8s.io/pause:3.10.1\",\"ports\":"
    "[{\"containerPort\":80}],\"resources\":{\"limits\":{\"cpu\":\"100m\",\"memory\":\"500Mi\"},"
    "\"requests\":{\"cpu\":\"100m\",\"memory\":\"500Mi\"}}}]}}";

struct maker { /* of pods, and of the volumes that go with them */
    struct bh_bench_world *w;
    const struct bh_bench_step *s;
    struct bh_bench_template pod, pv, pvc;
    bool volumes;
};

static int must_be(const struct bh_json *o, const char *kind, struct bh_err *err)
{
    return bh_streq(bh_json_get_text(o, "kind"), kind)
               ? 0
               : bh_err_set(err, -EINVAL, "kind: must be %s", kind);
}

/* A volume that belongs to claim number .Index: its only one. */
static int edit_pod(void *arg, struct bh_arena *a, struct bh_json *pod, struct bh_err *err)
{
    struct maker *m = arg;

    if (m->volumes)
        bh_json_add(a, pod,
                    "spec: {volumes: [{name: vol, persistentVolumeClaim: {claimName: "
                    "'pvc-{{.Index}}'}}]}");
    return must_be(pod, "Pod", err);
}

/* Claim and volume number .Index, bound to each other before the pod is there. */
static int edit_claim(void *arg, struct bh_arena *a, struct bh_json *o, struct bh_err *err)
{
    const struct maker *m = arg;

    bh_json_add(a, o,
                "metadata: {name: 'pvc-{{.Index}}'}, spec: {volumeName: %s}, status: {phase: "
                "Bound}",
                bh_arena_printf(a, "%s-vol-{{.Index}}", m->s->namespace_));
    return must_be(o, "PersistentVolumeClaim", err);
}

static int edit_volume(void *arg, struct bh_arena *a, struct bh_json *o, struct bh_err *err)
{
    const char *ns = ((const struct maker *)arg)->s->namespace_;
    const char *name = bh_arena_printf(a, "%s-vol-{{.Index}}", ns);

    if (bh_json_path(o, "spec.awsElasticBlockStore"))
        bh_json_add(a, o, "spec: {awsElasticBlockStore: {volumeID: 'vol-{{.Index}}'}}");
    if (bh_json_path(o, "spec.csi"))
        bh_json_add(a, o, "spec: {csi: {volumeHandle: %s}}", name);
    bh_json_add(a, o,
                "metadata: {name: %s}, spec: {claimRef: {kind: PersistentVolumeClaim, apiVersion: "
                "v1, namespace: %s, name: 'pvc-{{.Index}}'}}, status: {phase: Bound}",
                name, ns);
    return must_be(o, "PersistentVolume", err);
}

/* The object, and its status as a second write. */
static int make_bound(struct maker *m, const struct bh_bench_template *t, const char *ns,
                      const char *name, int64_t i, struct bh_err *err)
{
    struct bh_bench_world *w = m->w;
    int rc = bh_bench_create(w, t, i, m->s->count, ns, false, err);

    if (rc >= 0)
        rc = w->driver->update(w, t->type, ns, name, "status",
                               (struct bh_str){w->text.p, w->text.n}, err);
    return rc < 0 ? bh_err_prefix(err, rc, "%s", t->path) : 0;
}

static int make_pods(struct maker *m, struct bh_err *err)
{
    const char *ns = m->s->namespace_;
    char name[300];
    int rc = 0;

    for (int64_t i = -1; bh_bench_next(m->w, m->s->count, &i, &rc, err);) {
        if (m->volumes) {
            snprintf(name, sizeof name, "pvc-%" PRId64, i);
            rc = make_bound(m, &m->pvc, ns, name, i, err);
            snprintf(name, sizeof name, "%s-vol-%" PRId64, ns, i);
        }
        if (rc >= 0 && m->volumes)
            rc = make_bound(m, &m->pv, "", name, i, err);
        if (rc >= 0)
            rc = bh_bench_create(m->w, &m->pod, i, m->s->count, ns, true, err);
    }
    return rc;
}

static int steady(struct maker *m, struct bh_bench_namespace *ns, struct bh_err *err)
{
    struct bh_bench_world *w = m->w;
    int64_t until_ns = w->driver->now(w) + m->s->duration_ns, began = ns->bound;
    int rc = 0;

    while (rc >= 0 && w->driver->now(w) < until_ns) {
        int64_t from = ns->bound;
        rc = make_pods(m, err);
        if (rc >= 0)
            rc = wait_for(w, ns, &ns->bound, from + m->s->count, until_ns, err);
        if (rc >= 0 && w->driver->now(w) < until_ns)
            rc = w->driver->remove_pods(w, m->s->namespace_, NULL, true, err);
    }
    if (rc >= 0 && ns->bound == began)
        rc = bh_err_set(err, -ETIMEDOUT, "no pod got a node in all of the steady state");
    return rc;
}

int bh_bench_create_pods(struct bh_bench_world *w, const struct bh_bench_step *s,
                         struct bh_err *err)
{
    const char *path = s->pod_template ? s->pod_template : w->target->test_case->default_pod;
    struct maker m = {.w = w, .s = s, .volumes = s->pvc_template && s->pv_template};
    struct bh_arena *a = &w->report->arena; /* a window outlives an operation that fails */
    int rc = bh_bench_know_namespace(w, s->namespace_, false, err);

    if (rc < 0)
        return rc;
    struct bh_bench_namespace *known = bh_bench_namespace(w, s->namespace_);
    if (m.volumes)
        rc = bh_bench_open_template(w, s->pvc_template, NULL, true, edit_claim, &m, &m.pvc, err);
    if (rc >= 0 && m.volumes)
        rc = bh_bench_open_template(w, s->pv_template, NULL, true, edit_volume, &m, &m.pv, err);
    if (rc >= 0)
        rc = bh_bench_open_template(w, path, base_pod, false, edit_pod, &m, &m.pod, err);
    if (rc >= 0 && s->collect)
        rc = bh_bench_window_begin(
            w, bh_arena_strdup(a, s->namespace_),
            bh_json_get(bh_json_make(a, "namespaces: [%s]", s->namespace_), "namespaces"), NULL,
            err);
    if (rc >= 0 && s->steady) {
        rc = steady(&m, known, err);
    } else if (rc >= 0) {
        rc = make_pods(&m, err);
        if (s->skip_wait)
            known->expected += s->count;
        else if (rc >= 0)
            rc = wait_for(w, known, &known->scheduled, s->count, INT64_MAX, err);
    }
    if (rc >= 0)
        rc = w->driver->settle(w, err);
    if (rc >= 0 && s->collect)
        bh_bench_window_end(w);
    bh_bench_template_fini(&m.pod);
    bh_bench_template_fini(&m.pv);
    bh_bench_template_fini(&m.pvc);
    return rc;
}

/* ---- barrier --------------------------------------------------------------------------------- */

struct tally {
    int64_t n;
    bool attempted;
};

static void count_one(void *arg, const struct bh_bench_seen *o)
{
    struct tally *t = arg;

    t->n += o->bound || (t->attempted && o->attempted);
}

/* Pods that the barrier waits for. */
static int count_pods(struct bh_bench_world *w, const struct bh_bench_namespace *ns,
                      const struct bh_bench_step *s, bool attempted, int64_t *ret,
                      struct bh_err *err)
{
    struct tally t = {.attempted = attempted};
    int rc = 0;

    if (!attempted && !s->selector)
        t.n = ns->scheduled;
    else
        rc = w->driver->list(w, bh_sim_type_find("", "v1", "pods"), ns->name, s->selector,
                             count_one, &t, err);
    *ret = t.n;
    return rc;
}

static int barrier_for(struct bh_bench_world *w, const struct bh_bench_namespace *ns,
                       const struct bh_bench_step *s, bool attempted, struct bh_err *err)
{
    struct bh_bench_wait x = wait_begin(w, INT64_MAX);
    int64_t have;
    int rc = count_pods(w, ns, s, attempted, &have, err);
    bool idle;

    rc = rc < 0 ? rc : 1;
    w->total = (size_t)ns->expected;
    while (rc > 0 && have < ns->expected) {
        rc = wait_step(w, &x, &idle, err);
        if (rc <= 0 || (!idle && (attempted || s->selector)))
            continue;
        rc = count_pods(w, ns, s, attempted, &have, err);
        rc = rc < 0 ? rc : 1;
        w->done = (size_t)have;
    }
    if (rc == -ETIMEDOUT)
        bh_err_prefix(err, rc, "namespace %s: %" PRId64 " of %" PRId64 " pods are %s", ns->name,
                      have, ns->expected, attempted ? "attempted" : "scheduled");
    return BH_MIN(rc, 0);
}

static bool named(const struct bh_json *list, const char *ns)
{
    bh_json_each(m, list) {
        if (bh_streq(m->s.p, ns))
            return true;
    }
    return !list || !list->c.n;
}

int bh_bench_barrier(struct bh_bench_world *w, const struct bh_bench_step *s, struct bh_err *err)
{
    bool attempted = s->stage && bh_streq(s->stage, "Attempted");
    int rc = w->driver->flush(w, err);
    struct bh_map_entry *e;

    bh_json_each(m, rc >= 0 ? s->namespaces : NULL) {
        if (rc >= 0 && !bh_bench_namespace(w, m->s.p)->known)
            rc = bh_err_set(err, -EINVAL, "namespaces: no pods were created in \"%s\"", m->s.p);
    }
    for (size_t it = 0; rc >= 0 && (e = bh_map_next(&w->namespaces, &it));) {
        const struct bh_bench_namespace *ns = e->value;
        if (ns->known && named(s->namespaces, ns->name))
            rc = barrier_for(w, ns, s, attempted, err);
    }
    for (size_t it = 0; rc >= 0 && !attempted && (e = bh_map_next(&w->namespaces, &it));) {
        struct bh_bench_namespace *ns = e->value;
        if (ns->known && named(s->namespaces, ns->name)) {
            ns->known = false;
            ns->expected = 0;
        }
    }
    return rc;
}
