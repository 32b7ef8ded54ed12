/* SPDX-License-Identifier: Apache-2.0
 *
 * cli/observer.c - a running system in an engine of one's own
 */
#include "cli/observer.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>

#include "common/control/ask.h"
#include "cli/cli.h"
#include "common/data/yaml.h"
#include "common/k8s/codec.h"
#include "common/k8s/coscheduling.h"
#include "proto/kubernetes/kubernetes.pb-c.h"

#define FOLLOW_EVENTS 65536u
#define MESSAGES      64u
#define IDLE_MS       5
/* Nothing at all for this long: the watcher does not answer. */
#define PATIENCE_NS    UINT64_C(10000000000)
#define NEAR_EDITS     2u
#define NAME_MAX_BYTES 253u

/* ---- what comes in --------------------------------------------------------------------------- */

static void pod_free(struct bh_observer *o, struct bh_observed_pod *p)
{
    if (!p)
        return;
    if (p->pod)
        bh_engine_shape_unref(o->w.engine, p->shape);
    free(p->pod);
    free(p->reason);
    free(p->message);
    free(p->object);
    free(p);
}

static void pod_set(struct bh_observer *o, struct bh_observed_pod *p, const struct bh_pod_rec *pod,
                    const struct bh_shape_rec *shape)
{
    bh_shape_id id = bh_engine_shape(o->w.engine, shape);

    if (p->pod)
        bh_engine_shape_unref(o->w.engine, p->shape);
    free(p->pod);
    p->pod = bh_memdup(pod, pod->h.size);
    p->shape = id;
}

/* The same name elsewhere, one that begins like it, or one with a slip of the finger. */
static bool comes_near(const struct bh_observer *o, const char *ns, const char *name)
{
    size_t n = strlen(o->near_name), m = strlen(name);

    if (strncmp(name, o->near_name, n) == 0)
        return true;
    if (!bh_streq(ns, o->near_ns) || n <= NEAR_EDITS || n > NAME_MAX_BYTES)
        return false;
    return (n > 3 && strncmp(name, o->near_name, n - 1) == 0) ||
           ((n > m ? n - m : m - n) <= NEAR_EDITS && bh_edits(o->near_name, name) <= NEAR_EDITS);
}

static void note_name(struct bh_observer *o, const char *ns, const char *name)
{
    if (!o->near_name)
        return;
    o->pods_in_namespace += bh_streq(ns, o->near_ns);
    if (o->n_hints < BH_OBSERVER_HINTS && comes_near(o, ns, name))
        o->hints[o->n_hints++] = bh_asprintf("%s/%s", ns, name);
}

static struct bh_observed_pod *wanted(const struct bh_observer *o, const char *ns, const char *name)
{
    char key[1100];
    int n = snprintf(key, sizeof(key), "%s/%s", ns, name);

    return n > 0 && (size_t)n < sizeof(key) ? bh_map_get(&o->wanted, key, (size_t)n) : NULL;
}

static void on_assigned(void *arg, const struct bh_pod_rec *pod, const struct bh_shape_rec *shape)
{
    struct bh_observer *o = arg;
    const char *ns = bh_rec_text(pod, pod->namespace_).p, *name = bh_rec_text(pod, pod->name).p;
    struct bh_observed_pod *w = wanted(o, ns, name);

    if (w)
        pod_set(o, w, pod, shape);
    note_name(o, ns, name);
}

static char *as_json(const K8s__Pod *pod)
{
    struct bh_arena a BH_CLEANUP(bh_arena_fini) = {0};
    struct bh_buf b = {0};
    struct bh_json *tree = bh_pb_to_json(&a, &pod->base);

    bh_json_write(&b, bh_json_add(&a, tree, "apiVersion: v1, kind: Pod"));
    return bh_buf_take(&b);
}

/* By whichever of the two ways there are to name one. */
static bool of_group(const struct bh_observer *o, const struct bh_pod_rec *pod,
                     const struct bh_shape_rec *shape)
{
    struct bh_symtab *tab = bh_engine_symtab(o->w.engine);
    const bh_sym label = bh_sym_find(tab, BH_COSCHEDULING_LABEL, strlen(BH_COSCHEDULING_LABEL));
    bh_sym name = pod->group;

    if (!o->group || !bh_str_eqc(bh_rec_text(pod, pod->namespace_), o->group_ns))
        return false;
    if (name != BH_SYM_NONE && bh_streq(bh_sym_text(tab, name), o->group))
        return true;
    return bh_labels_get(bh_rec_at(shape, shape->labels, struct bh_kv), shape->labels.n, label,
                         &name) &&
           bh_streq(bh_sym_text(tab, name), o->group);
}

static void on_pending(void *arg, const struct bh_intake_pod *in)
{
    struct bh_observer *o = arg;
    struct bh_str uid = bh_rec_text(in->pod, in->pod->uid);
    struct bh_observed_pod *p = bh_map_get(&o->pending, uid.p, uid.n);

    if (!p) {
        p = bh_calloc(1, sizeof(*p));
        (void)bh_map_put(&o->pending, uid.p, uid.n, p);
        note_name(o, bh_rec_text(in->pod, in->pod->namespace_).p,
                  bh_rec_text(in->pod, in->pod->name).p);
    }
    pod_set(o, p, in->pod, in->shape);
    const K8s__Pod *object = in->object;
    free(p->reason);
    free(p->message);
    p->reason = p->message = NULL;
    if (wanted(o, bh_rec_text(in->pod, in->pod->namespace_).p,
               bh_rec_text(in->pod, in->pod->name).p) ||
        of_group(o, in->pod, in->shape)) {
        free(p->object);
        p->object = as_json(object);
    }
    for (size_t i = 0; object->status && i < object->status->n_conditions; i++) {
        const K8s__PodCondition *c = object->status->conditions[i];
        if (!c->type || !bh_streq(c->type, "PodScheduled") || p->reason)
            continue;
        p->reason = bh_strdup(c->reason ? c->reason : "");
        p->message = bh_strdup(c->message ? c->message : "");
    }
}

static void on_gone(void *arg, const char *uid)
{
    struct bh_observer *o = arg;

    pod_free(o, bh_map_del(&o->pending, uid, strlen(uid)));
}

static void forget_pending(void *arg)
{
    struct bh_observer *o = arg;
    struct bh_map_entry *m;

    for (size_t it = 0; (m = bh_map_next(&o->pending, &it));)
        pod_free(o, m->value);
    bh_map_clear(&o->pending);
}

/* ---- the scheduler's configuration ----------------------------------------------------------- */

int bh_observer_config(struct bh_ask *ask, struct bh_arena *a, struct bh_feature_gates *gates,
                       struct bh_sched_config **ret, const char **ret_from, bool *ret_draws,
                       struct bh_err *err)
{
    const Berth__ControlReply *r;
    struct bh_json *doc = NULL;
    int rc = bh_ask_for(ask, BERTH__CONTROL_WHAT__CONTROL_CONFIG, &r, err);

    if (rc < 0 || !r->config)
        return rc < 0 ? rc : bh_err_set(err, -EPROTO, "the scheduler tells no configuration");
    const Berth__ControlConfig *c = r->config;
    *ret_draws = !c->tie_break_first;
    *ret_from = c->path && *c->path ? bh_arena_strdup(a, c->path) : "defaults";
    if (c->in_force && *c->in_force)
        rc = bh_yaml_parse(a, c->in_force, strlen(c->in_force), 0, &doc, err);
    if (rc == 0) {
        /* Extenders are not asked, so what they are asked with is not needed; what they manage counts
         * all the same. */
        bh_json_each(e, bh_json_get_list(doc, "extenders"))
            if (e->type == BH_JSON_OBJECT)
                (void)bh_json_unset(e, "tlsConfig");
        rc = bh_sched_config_new(doc, ret, err);
    }
    if (rc == 0 && c->feature_gates && *c->feature_gates) {
        rc = bh_feature_gates_parse(gates, c->feature_gates, err);
        (*ret)->gates = rc == 0 ? gates : NULL;
    }
    const bool lost = rc < 0 && strstr(err->msg, "does not exist") && !getenv("BERTH_PLUGIN_DIR");
    return rc < 0
               ? bh_err_prefix(err, rc,
                               "the scheduler's configuration, which --config could replace%s",
                               lost ? " (plugins out of files are found by $BERTH_PLUGIN_DIR)" : "")
               : 0;
}

/* ---- life ------------------------------------------------------------------------------------ */

int bh_observer_open(struct bh_observer *o, const char *runtime_dir,
                     const struct bh_sched_config *config, struct bh_err *err)
{
    const struct bh_offline_options oo = {
        .config = config, .tie_break = BH_TIE_FIRST, .no_queue = true};

    *o = (struct bh_observer){.n_hints = 0};
    int rc = bh_ask_probe(runtime_dir, "watcher", "berth-watcher", err);
    if (rc == 0)
        rc = bh_offline_init(&o->w, &oo, err);
    if (rc < 0)
        return rc;
    const struct bh_intake_options in = {.runtime_dir = runtime_dir,
                                         .engine = o->w.engine,
                                         .epoch = bh_boot_ns(),
                                         .observer = true,
                                         .cb = {.begin = forget_pending,
                                                .assigned = on_assigned,
                                                .pending = on_pending,
                                                .deleted = on_gone,
                                                .bound = on_gone,
                                                .arg = o}};
    return bh_intake_init(&o->in, &in, err);
}

void bh_observer_close(struct bh_observer *o)
{
    struct bh_map_entry *m;

    if (!o->w.engine)
        return;
    bh_intake_fini(&o->in);
    forget_pending(o);
    bh_map_fini(&o->pending);
    for (size_t it = 0; (m = bh_map_next(&o->wanted, &it));)
        pod_free(o, m->value);
    bh_map_fini(&o->wanted);
    for (unsigned i = 0; i < o->n_hints; i++)
        free(o->hints[i]);
    bh_offline_fini(&o->w);
    o->w.engine = NULL;
}

void bh_observer_want(struct bh_observer *o, const char *ns, const char *name)
{
    BH_CLEANUP(bh_freep) char *key = bh_asprintf("%s/%s", ns, name);

    if (!o->near_name) {
        o->near_ns = ns;
        o->near_name = name;
    }
    if (!bh_map_get(&o->wanted, key, strlen(key)))
        (void)bh_map_put(&o->wanted, key, strlen(key),
                         bh_calloc(1, sizeof(struct bh_observed_pod)));
}

/* ---- reading --------------------------------------------------------------------------------- */

static int gave_up(const struct bh_observer *o, const char *runtime_dir, struct bh_err *err)
{
    if (*o->in.feed.refused)
        return bh_err_set(err, -EBUSY, "berth-watcher in \"%s\": %s", runtime_dir,
                          o->in.feed.refused);
    if (*o->in.snapshot_trouble)
        return bh_err_set(err, -ENOENT, "snapshot of \"%s\": %s", runtime_dir,
                          o->in.snapshot_trouble);
    if (!o->in.feed.begun)
        return bh_err_set(err, -ETIMEDOUT, "berth-watcher in \"%s\" does not answer", runtime_dir);
    return bh_err_set(err, -ETIMEDOUT,
                      "berth-watcher in \"%s\" has not listed the API server's objects yet",
                      runtime_dir);
}

int bh_observer_read(struct bh_observer *o, const char *runtime_dir, struct bh_err *err)
{
    uint64_t began = bh_mono_ns(), news = began;
    struct bh_progress progress;
    struct bh_snap_stats s;
    int rc = 0;

    bh_progress_patient(&progress);
    while (rc == 0) {
        unsigned work = bh_intake_follow(&o->in, FOLLOW_EVENTS);
        work += bh_feed_drain(&o->in.feed, MESSAGES);
        bh_intake_tick(&o->in);
        if (bh_intake_complete(&o->in)) /* a busy cluster always has news */
            break;
        if (work)
            news = bh_mono_ns();
        if ((*o->in.feed.refused && bh_mono_ns() - began > PATIENCE_NS) ||
            bh_mono_ns() - news > PATIENCE_NS ||
            (!o->in.snapshot_ready && bh_snap_reader_absent(o->in.reader)))
            rc = gave_up(o, runtime_dir, err);
        else if (!work)
            bh_bus_wait(o->in.feed.bus, IDLE_MS);
        uint64_t nodes = bh_engine_node_count(o->w.engine);
        uint64_t pods = bh_engine_pod_count(o->w.engine);
        if (progress.on && bh_snap_reader_info(o->in.reader, &s))
            bh_progress_draw(&progress, nodes + pods, s.nodes + s.pods,
                             "reading %u nodes, %u pods, %zu pending", (unsigned)nodes,
                             (unsigned)pods, o->pending.len);
    }
    bh_progress_end(&progress);
    return rc;
}

/* ---- looking --------------------------------------------------------------------------------- */

const struct bh_observed_pod *bh_observer_pending(const struct bh_observer *o, const char *ns,
                                                  const char *name)
{
    struct bh_map_entry *m;

    for (size_t it = 0; (m = bh_map_next(&o->pending, &it));) {
        const struct bh_observed_pod *p = m->value;
        if (bh_str_eqc(bh_rec_text(p->pod, p->pod->name), name) &&
            bh_str_eqc(bh_rec_text(p->pod, p->pod->namespace_), ns))
            return p;
    }
    return NULL;
}

const struct bh_observed_pod *bh_observer_bound(const struct bh_observer *o, const char *ns,
                                                const char *name)
{
    const struct bh_observed_pod *w = wanted(o, ns, name);

    /* Seen once, and still there. */
    return w && w->pod && bh_engine_find_pod(o->w.engine, bh_rec_text(w->pod, w->pod->uid), NULL)
               ? w
               : NULL;
}

void bh_observer_hint(const struct bh_observer *o, struct bh_buf *out)
{
    for (unsigned i = 0; i < o->n_hints; i++)
        bh_buf_addf(out, "%s%s", i ? ", " : "did you mean ", o->hints[i]);
    if (o->n_hints)
        bh_buf_adds(out, "? ");
    bh_buf_addf(out, "%llu pods are in namespace \"%s\", %u nodes and %llu pods in all",
                (unsigned long long)o->pods_in_namespace, o->near_ns,
                bh_engine_node_count(o->w.engine),
                (unsigned long long)bh_engine_pod_count(o->w.engine) + o->pending.len);
}
