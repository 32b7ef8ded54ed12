/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/native/process_up.c - the host functions of the public header in a plugin's process
 *
 * Most are host.c's: the cluster is here. This file has those that the scheduler must hear of: in the
 * middle of a call by an upcall, from the plugin's own threads by a frame on the socket, which is dropped
 * when the scheduler does not read fast enough.
 */
#include <sys/socket.h>

#include "scheduler/native/process_host.h"

/* ---- asking ---------------------------------------------------------------------------------- */

static struct bh_px_out question(enum bh_px_up up)
{
    struct bh_px_out o = bh_px_side(bh_px_here.up);

    bh_px_put_u64(&o, up);
    return o;
}

static struct bh_px_in ask(struct bh_px_out *o)
{
    if (o->full)
        return (struct bh_px_in){.bad = true};
    bh_px_say(bh_px_here.up, bh_px_here.down, o->n, true);
    (void)bh_px_listen(bh_px_here.up, bh_px_here.down, bh_px_here.seen, 0, NULL, NULL);
    bh_px_here.seen = atomic_load(&bh_px_here.down->seq);
    return bh_px_heard(bh_px_here.down, true);
}

static void put(struct bh_px_out *o, struct berth_str s)
{
    bh_px_put_str(o, s.p, s.p ? s.n : 0);
}

static struct bh_native *home_of(const struct berth_home *home)
{
    struct bh_native *in = bh_native_inside;

    return in && (const void *)in == (const void *)home ? in : NULL;
}

static berth_sym base_intern(struct berth_home *home, struct berth_str text)
{
    struct bh_native *in = home_of(home);

    if (!in)
        return BH_SYM_NONE;
    berth_sym s = bh_sym_find(in->tab, text.p, text.n);
    if (s != BH_SYM_NONE || !text.n)
        return s;
    struct bh_px_out o = question(BH_PX_UP_INTERN);
    put(&o, text);
    struct bh_px_in a = ask(&o);
    s = (berth_sym)bh_px_get_u64(&a);
    while (!a.bad && bh_symtab_count(in->tab) <= s) { /* those before it, too */
        struct berth_str t = bh_px_get_str(&a);
        if (!a.bad)
            (void)bh_sym_intern(in->tab, t.p, t.n);
    }
    return s;
}

/* ---- pods of nodes --------------------------------------------------------------------------- */

static void fetch_pods(const struct berth_node *node)
{
    struct bh_native *in = bh_native_inside;
    const struct bh_node_info *ni = bh_node_behind(node);

    if (!in || !in->call || !ni || !(in->may & BERTH_READS_PODS) || bh_px_world_has_pods(ni))
        return;
    struct bh_px_out o = question(BH_PX_UP_PODS);
    bh_px_put_u64(&o, bh_px_here_node_is_given(ni) ? BH_ROW_NONE : ni->row);
    struct bh_px_in a = ask(&o);
    bh_px_here_put_pods(ni, &a);
}

static uint32_t node_n_pods(struct berth_call *c, const struct berth_node *node)
{
    fetch_pods(node);
    return bh_native_host.nodes->n_pods(c, node);
}

static const struct berth_pod *node_pod_at(struct berth_call *c, const struct berth_node *node,
                                           uint32_t i)
{
    fetch_pods(node);
    return bh_node_behind(node)->pods ? bh_native_host.nodes->pod_at(c, node, i) : NULL;
}

/* ---- annotations ----------------------------------------------------------------------------- */

/* what: the accessor's check, made by asking for something that it needs as well. */
static struct berth_str annotation(uint32_t of, uint32_t needs, const char *broke,
                                   struct bh_str object, struct berth_str key)
{
    struct bh_native *in = bh_native_inside;
    struct berth_str none = {NULL, 0};

    if (!in || !in->call)
        return none;
    if (needs & ~in->may) {
        in->broke = broke;
        return none;
    }
    struct bh_px_out o = question(BH_PX_UP_ANNOTATION);
    bh_px_put_u64(&o, of);
    bh_px_put_str(&o, object.p, object.n);
    put(&o, key);
    struct bh_px_in a = ask(&o);
    if (!bh_px_get_u64(&a))
        return none;
    struct berth_str s = bh_px_get_str(&a);
    return (struct berth_str){bh_arena_strndup(in->call->arena, s.p, s.n), s.n};
}

static struct berth_str node_annotation(struct berth_call *c BH_UNUSED,
                                        const struct berth_node *node, struct berth_str key)
{
    const struct bh_node_info *ni = bh_node_behind(node);
    const struct bh_native *in = bh_native_inside;

    return annotation(BH_ANNOTATIONS_NODES, BERTH_READS_ANNOTATIONS | BERTH_READS_NODE,
                      "it used a node's annotation without BERTH_READS_ANNOTATIONS and NODE in its "
                      "reads",
                      in ? bh_sym_str(in->tab, ni->name) : (struct bh_str){"", 0}, key);
}

static struct berth_str pod_annotation(struct berth_call *c BH_UNUSED, const struct berth_pod *pod,
                                       struct berth_str key)
{
    const struct bh_pod_info *p = bh_pod_behind(pod);

    return annotation(BH_ANNOTATIONS_PODS, BERTH_READS_ANNOTATIONS | BERTH_READS_IDENTITY,
                      "it used a pod's annotation without BERTH_READS_ANNOTATIONS and IDENTITY in "
                      "its reads",
                      bh_rec_text(p->rec, p->rec->uid), key);
}

/* ---- of pods, what is kept with them ----------------------------------------------------------- */

struct bh_px_facts {
    struct berth_str uid, priority_class;
    int64_t scheduled_ns;
    uint64_t n_profiles, n_annotations;
    struct berth_str *profile, *annotation; /* of these key, value, key ... */
};

static struct berth_str get_text(struct bh_px_in *a, struct bh_arena *to)
{
    const bool is = bh_px_get_u64(a);
    struct berth_str s = bh_px_get_str(a);

    return is && !a->bad ? (struct berth_str){bh_arena_strndup(to, s.p, s.n), s.n}
                         : (struct berth_str){NULL, 0};
}

static struct berth_str *get_texts(struct bh_px_in *a, struct bh_arena *to, unsigned each,
                                   uint64_t *ret_n)
{
    const uint64_t n = bh_px_get_u64(a);
    struct berth_str *all =
        n <= BH_PX_SIDE_BYTES / 16 ? bh_arena_new_array(to, struct berth_str, n * each + 1) : NULL;

    *ret_n = all ? n : 0;
    for (uint64_t i = 0; all && i < n * each; i++)
        all[i] = get_text(a, to);
    return all;
}

/* Asked once for the accessors that follow about the same pod. NULL: it may not. */
static const struct bh_px_facts *facts_of(const struct berth_pod *pod, const char *broke)
{
    const uint32_t needs = BERTH_READS_ANNOTATIONS | BERTH_READS_IDENTITY;
    struct bh_native *in = bh_native_inside;
    const struct bh_pod_info *p = bh_pod_behind(pod);

    if (!in || !in->call)
        return NULL;
    if (needs & ~in->may) {
        in->broke = broke;
        return NULL;
    }
    if (in->by_pod && p == in->call->pod)
        *in->by_pod = true;
    const struct bh_str uid = bh_rec_uid(p->rec);
    const struct bh_px_facts *had = bh_px_here.facts;
    if (had && bh_str_eq((struct bh_str){had->uid.p, had->uid.n}, uid))
        return had;
    struct bh_px_out o = question(BH_PX_UP_FACTS);
    bh_px_put_str(&o, uid.p, uid.n);
    struct bh_px_in a = ask(&o);
    struct bh_arena *to = in->call->arena;
    struct bh_px_facts *f = bh_arena_new(to, struct bh_px_facts);
    f->uid = (struct berth_str){bh_arena_strndup(to, uid.p, uid.n), uid.n};
    f->priority_class = get_text(&a, to);
    f->scheduled_ns = (int64_t)bh_px_get_u64(&a);
    f->profile = get_texts(&a, to, 1, &f->n_profiles);
    f->annotation = get_texts(&a, to, 2, &f->n_annotations);
    bh_px_here.facts = f;
    return f;
}
#define KEPT(what) "it used " what " without BERTH_READS_ANNOTATIONS and IDENTITY in its reads"

static struct berth_str pod_annotation_at(struct berth_call *c BH_UNUSED,
                                          const struct berth_pod *pod, uint32_t i,
                                          struct berth_str *ret_key)
{
    const struct bh_px_facts *f = facts_of(pod, KEPT("annotation_at"));
    const bool is = f && i < f->n_annotations;

    *ret_key = is ? f->annotation[2 * i] : (struct berth_str){"", 0};
    return is ? f->annotation[2 * i + 1] : (struct berth_str){NULL, 0};
}

static struct berth_str pod_priority_class(struct berth_call *c BH_UNUSED,
                                           const struct berth_pod *pod)
{
    const struct bh_px_facts *f = facts_of(pod, KEPT("priority_class"));

    return f ? f->priority_class : (struct berth_str){NULL, 0};
}

static int64_t pod_scheduled(struct berth_call *c BH_UNUSED, const struct berth_pod *pod)
{
    const struct bh_px_facts *f = facts_of(pod, KEPT("scheduled"));

    return f ? f->scheduled_ns : 0;
}

static struct berth_str pod_seccomp_profile(struct berth_call *c BH_UNUSED,
                                            const struct berth_pod *pod, uint32_t i)
{
    const struct bh_px_facts *f = facts_of(pod, KEPT("seccomp_profile"));

    return f && i < f->n_profiles ? f->profile[i] : (struct berth_str){NULL, 0};
}

/* ---- waiting pods ---------------------------------------------------------------------------- */

static int32_t about_uid(struct berth_home *home, enum bh_px_up up, struct berth_str uid,
                         struct berth_str reason)
{
    if (!home_of(home))
        return 0;
    struct bh_px_out o = question(up);
    put(&o, uid);
    put(&o, reason);
    struct bh_px_in a = ask(&o);
    return (int32_t)bh_px_get_u64(&a);
}

static int32_t waiting_allow(struct berth_home *home, struct berth_str uid)
{
    return about_uid(home, BH_PX_UP_ALLOW, uid, (struct berth_str){NULL, 0});
}

static int32_t waiting_reject(struct berth_home *home, struct berth_str uid,
                              struct berth_str reason)
{
    return about_uid(home, BH_PX_UP_REJECT, uid, reason);
}

static void waiting_activate(struct berth_home *home, struct berth_str uid)
{
    (void)about_uid(home, BH_PX_UP_ACTIVATE, uid, (struct berth_str){NULL, 0});
}

static void waiting_each(struct berth_home *home, void (*fn)(void *arg, struct berth_str uid),
                         void *arg)
{
    struct bh_native *in = home_of(home);

    if (!in || !in->call)
        return;
    struct bh_px_out o = question(BH_PX_UP_EACH);
    struct bh_px_in a = ask(&o);
    const uint64_t n = bh_px_get_u64(&a);
    struct bh_arena *mine = in->call->arena; /* fn may ask, too */
    struct berth_str *uids =
        n <= BH_PX_ROWS_MAX ? bh_arena_new_array(mine, struct berth_str, n + 1) : NULL;
    for (uint64_t i = 0; uids && i < n; i++) {
        struct berth_str s = bh_px_get_str(&a);
        uids[i] = (struct berth_str){bh_arena_strndup(mine, s.p, s.n), s.n};
    }
    for (uint64_t i = 0; uids && i < n && !a.bad; i++)
        fn(arg, uids[i]);
}

/* A pod that came with a message, for the rest of the call. */
static const struct berth_pod *kept_pod(struct bh_px_in *a, struct bh_arena *to)
{
    struct bh_pod_info *p = bh_px_world_pod(a, to);

    if (!p)
        return NULL;
    p->rec = bh_arena_memdup(to, p->rec, p->rec->h.size);
    p->shape = bh_arena_memdup(to, p->shape, p->shape->h.size);
    return bh_pod_handle(p);
}

static const struct berth_pod *waiting_get(struct berth_call *c, struct berth_str uid,
                                           berth_sym *node)
{
    struct bh_native *in = bh_native_callback(c, "get");

    if (!in)
        return NULL;
    if (!(in->may & BERTH_READS_OTHERS)) {
        in->broke = "it used get without BERTH_READS_OTHERS in its reads";
        return NULL;
    }
    struct bh_px_out o = question(BH_PX_UP_GET);
    put(&o, uid);
    struct bh_px_in a = ask(&o);
    const berth_sym on = (berth_sym)bh_px_get_u64(&a);
    const struct berth_pod *p = kept_pod(&a, in->call->arena);
    if (p && node)
        *node = on;
    return p;
}

/* ---- nominations and preemption ---------------------------------------------------------------- */

static const struct berth_pod *pod_nominated(struct berth_call *c, uint64_t *at, berth_sym *node)
{
    struct bh_native *in = bh_native_callback(c, "nominated");

    if (!in)
        return NULL;
    if (!(in->may & BERTH_READS_OTHERS)) {
        in->broke = "it used nominated without BERTH_READS_OTHERS in its reads";
        return NULL;
    }
    struct bh_px_out o = question(BH_PX_UP_NOMINATED);
    bh_px_put_u64(&o, *at);
    struct bh_px_in a = ask(&o);
    *at = bh_px_get_u64(&a);
    const berth_sym on = (berth_sym)bh_px_get_u64(&a);
    const struct berth_pod *p = kept_pod(&a, in->call->arena);
    if (p && node)
        *node = on;
    return p;
}

/* One question of the dry runs; the answer is said. */
static void answer_rule(struct berth_call *c, const struct berth_preemption *how, uint64_t rule,
                        struct bh_px_in *m)
{
    struct bh_arena *to = bh_native_inside->call->arena;
    struct berth_why why = {.size = sizeof why};
    const uint64_t n = bh_px_get_u64(m);
    const struct berth_pod *pod = kept_pod(m, to);
    const struct berth_node *node = bh_px_here_node(m, to);
    int32_t code = 0;

    if (rule == BH_PX_RULE_WAITS && pod && how->waits_for)
        code = how->waits_for(how->arg, c, pod);
    else if (rule == BH_PX_RULE_EVICTS && pod && how->evicts)
        code = how->evicts(how->arg, c, pod);
    else if (rule == BH_PX_RULE_BEGIN && node && how->begin)
        how->begin(how->arg, c, node);
    else if (rule == BH_PX_RULE_MOVED && pod && how->moved)
        how->moved(how->arg, c, pod, (int32_t)n);
    else if (rule == BH_PX_RULE_CHECK && node && how->check)
        code = how->check(how->arg, c, node, (uint32_t)n, &why);
    struct bh_px_out o = question(BH_PX_UP_RULED);
    bh_px_put_u64(&o, (uint64_t)(int64_t)code);
    bh_px_put_str(&o, why.reason.p,
                  why.reason.p ? BH_MIN(why.reason.n, (uint64_t)BH_PX_TEXT_MAX + 1) : 0);
    bh_px_say(bh_px_here.up, bh_px_here.down, o.n, true);
}

static int32_t preemption_run(struct berth_call *c, const struct berth_preemption *how,
                              struct berth_why *why)
{
    struct bh_native *in = bh_native_callback(c, "run");

    if (!in)
        return BERTH_ERROR;
    if (how->size < sizeof *how) {
        in->broke = "it called preemption->run without waits_for() or evicts()";
        return BERTH_ERROR;
    }
    struct bh_px_out o = question(BH_PX_UP_RUN);
    bh_px_put_u64(&o, how->flags);
    bh_px_put_u64(&o, (uint64_t)(int64_t)how->min_candidates_percentage);
    bh_px_put_u64(&o, (uint64_t)(int64_t)how->min_candidates_absolute);
    bh_px_put_u64(&o, (uint64_t)(how->waits_for != NULL) << BH_PX_RULE_WAITS |
                          (uint64_t)(how->evicts != NULL) << BH_PX_RULE_EVICTS |
                          (uint64_t)(how->begin != NULL) << BH_PX_RULE_BEGIN |
                          (uint64_t)(how->moved != NULL) << BH_PX_RULE_MOVED |
                          (uint64_t)(how->check != NULL) << BH_PX_RULE_CHECK);
    struct bh_px_in m = ask(&o);
    for (uint64_t rule; (rule = bh_px_get_u64(&m)) != BH_PX_RULE_DONE;) {
        answer_rule(c, how, rule, &m);
        (void)bh_px_listen(bh_px_here.up, bh_px_here.down, bh_px_here.seen, 0, NULL, NULL);
        bh_px_here.seen = atomic_load(&bh_px_here.down->seq);
        m = bh_px_heard(bh_px_here.down, true);
    }
    const int32_t code = (int32_t)bh_px_get_u64(&m);
    struct berth_str text = bh_px_get_str(&m);
    if (text.n) {
        why->reason = (struct berth_str){bh_arena_strndup(in->call->arena, text.p, text.n), text.n};
        bh_px_here.run_said = why->reason.p;
    }
    return code;
}

static const struct berth_host_preemption preemption = {.size = sizeof preemption,
                                                        .run = preemption_run};

/* ---- events, writes, metrics ----------------------------------------------------------------- */

static int32_t answered(struct bh_native *in, struct bh_px_out *o)
{
    if (o->full) {
        in->broke = "it said more than 8 MiB at once";
        return 0;
    }
    struct bh_px_in a = ask(o);
    return (int32_t)bh_px_get_u64(&a);
}

static int32_t events_emit(struct berth_call *c, const struct berth_pod *pod, uint32_t type,
                           struct berth_str why, struct berth_str note)
{
    struct bh_native *in = bh_native_callback(c, "emit");

    if (!in)
        return 0;
    struct bh_px_out o = question(BH_PX_UP_EMIT);
    const struct bh_pod_info *p = bh_pod_behind(pod);
    struct bh_str uid = p ? bh_rec_uid(p->rec) : (struct bh_str){"", 0};
    bh_px_put_str(&o, uid.p, uid.n);
    bh_px_put_u64(&o, type);
    put(&o, why);
    put(&o, note);
    return answered(in, &o);
}

static int32_t writes_patch(struct berth_call *c, const struct berth_patch *p)
{
    struct bh_native *in = bh_native_callback(c, "patch");

    if (!in)
        return 0;
    struct bh_px_out o = question(BH_PX_UP_PATCH);
    bh_px_put_u64(&o, p != NULL);
    if (p && p->size >= sizeof *p) {
        const struct berth_str texts[] = {p->api_version,      p->resource, p->subresource,
                                          p->namespace_,       p->name,     p->uid,
                                          p->resource_version, p->body};
        bh_px_put_u64(&o, p->size);
        bh_px_put_u64(&o, p->type);
        for (unsigned i = 0; i < BH_ARRAY_LEN(texts); i++)
            put(&o, texts[i]);
    } else if (p) {
        bh_px_put_u64(&o, p->size);
        bh_px_put_u64(&o, 0);
        for (unsigned i = 0; i < 8; i++)
            put(&o, (struct berth_str){NULL, 0});
    } else {
        for (unsigned i = 0; i < 10; i++)
            bh_px_put_u64(&o, 0);
    }
    return answered(in, &o);
}

static uint32_t metrics_define(struct berth_home *home, uint32_t kind, struct berth_str name,
                               struct berth_str help, const double *bounds, uint64_t n)
{
    struct bh_native *in = home_of(home);

    if (!in || n > 64)
        return 0;
    struct bh_px_out o = question(BH_PX_UP_DEFINE);
    bh_px_put_u64(&o, kind);
    put(&o, name);
    put(&o, help);
    bh_px_put_u64(&o, bounds != NULL);
    bh_px_put_u64(&o, n);
    bh_px_put(&o, bounds, bounds ? n * sizeof *bounds : 0);
    return (uint32_t)answered(in, &o);
}

static void base_wake_at(struct berth_home *home, int64_t at_ns)
{
    struct bh_native *in = home_of(home);

    if (!in)
        return;
    struct bh_px_out o = question(BH_PX_UP_WAKE_AT);
    bh_px_put_u64(&o, (uint64_t)at_ns);
    (void)answered(in, &o);
}

/* ---- from any thread ------------------------------------------------------------------------- */

static void tell(const struct berth_home *home, struct bh_px_frame f, struct berth_str text)
{
    struct iovec v[2] = {{&f, sizeof f},
                         {(void *)(uintptr_t)text.p, BH_MIN(text.n, (uint64_t)BH_PX_TEXT_MAX)}};
    const struct msghdr m = {.msg_iov = v, .msg_iovlen = 2};

    f.instance = bh_px_here_instance(home);
    f.n = (uint32_t)v[1].iov_len;
    (void)sendmsg(BH_PX_FD_SOCK, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
}
#define NO_TEXT ((struct berth_str){"", 0})

static void base_log(const struct berth_home *home, uint32_t severity, struct berth_str text)
{
    tell(home, (struct bh_px_frame){.told = BH_PX_LOG, .number = severity}, text);
}
static void base_wake(const struct berth_home *home)
{
    tell(home, (struct bh_px_frame){.told = BH_PX_WAKE}, NO_TEXT);
}
static void user_measured(struct berth_home *home, int64_t at_ns, uint64_t n_nodes)
{
    tell(home, (struct bh_px_frame){.told = BH_PX_MEASURED, .at_ns = at_ns, .n_nodes = n_nodes},
         NO_TEXT);
}
static void metrics_add(const struct berth_home *home, uint32_t metric, double v)
{
    tell(home, (struct bh_px_frame){.told = BH_PX_ADD, .number = metric, .value = v}, NO_TEXT);
}
static void metrics_set(const struct berth_home *home, uint32_t metric, double v)
{
    tell(home, (struct bh_px_frame){.told = BH_PX_SET, .number = metric, .value = v}, NO_TEXT);
}
static void metrics_observe(const struct berth_home *home, uint32_t metric, double v)
{
    tell(home, (struct bh_px_frame){.told = BH_PX_OBSERVE, .number = metric, .value = v}, NO_TEXT);
}

static void value_error(struct berth_errors *errors BH_UNUSED, struct berth_str path,
                        struct berth_str text)
{
    bh_px_argument_error(path, text);
}

/* ---- the tables ------------------------------------------------------------------------------ */

const struct berth_host *bh_px_host_tables(void)
{
    static struct berth_host all;
    static struct berth_host_base base;
    static struct berth_host_values values;
    static struct berth_host_pods pods;
    static struct berth_host_nodes nodes;
    static struct berth_host_user user;
    static const struct berth_host_waiting waiting = {.size = sizeof waiting,
                                                      .allow = waiting_allow,
                                                      .reject = waiting_reject,
                                                      .activate = waiting_activate,
                                                      .each = waiting_each,
                                                      .get = waiting_get};
    static const struct berth_host_events events = {.size = sizeof events, .emit = events_emit};
    static const struct berth_host_writes writes = {.size = sizeof writes, .patch = writes_patch};
    static const struct berth_host_metrics metrics = {.size = sizeof metrics,
                                                      .define = metrics_define,
                                                      .add = metrics_add,
                                                      .set = metrics_set,
                                                      .observe = metrics_observe};

    all = bh_native_host;
    base = *all.base;
    base.log = base_log;
    base.intern = base_intern;
    base.wake = base_wake;
    base.wake_at = base_wake_at;
    values = *all.values;
    values.error = value_error;
    pods = *all.pods;
    pods.annotation = pod_annotation;
    nodes = *all.nodes;
    nodes.n_pods = node_n_pods;
    nodes.pod_at = node_pod_at;
    nodes.annotation = node_annotation;
    user = *all.user;
    user.measured = user_measured;
    pods.annotation_at = pod_annotation_at;
    pods.priority_class = pod_priority_class;
    pods.scheduled = pod_scheduled;
    pods.seccomp_profile = pod_seccomp_profile;
    pods.nominated = pod_nominated;
    all.preemption = &preemption;
    all.base = &base;
    all.values = &values;
    all.pods = &pods;
    all.nodes = &nodes;
    all.user = &user;
    all.waiting = &waiting;
    all.events = &events;
    all.writes = &writes;
    all.metrics = &metrics;
    return &all;
}
