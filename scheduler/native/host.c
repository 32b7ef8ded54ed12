/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/native/host.c - the functions that plugins call
 *
 * Each looks first whether this thread is in a callback of the instance and whether the handle is
 * that callback's: a plugin that calls from a thread of its own, or with a handle that is over, gets
 * nothing, and nothing of ours is touched. Then whether the plugin declared what it asks for.
 *
 * Runs in: the engine's thread; log() and publish() in any.
 */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdatomic.h>

#include "common/base/log.h"
#include "common/k8s/quantity.h"
#include "scheduler/cache/pod_facts.h"
#include "scheduler/native/native_int.h"

#define ALLOC_MAX  ((uint64_t)64 << 20)
#define CYCLE_MAX  ((size_t)256 << 20)
#define LOG_MAX    1024u
#define ERRORS_MAX 64u /* of arguments */

/* ---- may it? --------------------------------------------------------------------------------- */

static void stray(const char *what)
{
    static atomic_bool told;

    if (!atomic_exchange(&told, true))
        bh_log_error(
            "A plugin called the host outside of its callbacks: from a thread of its own, or "
            "with a handle that is over",
            bh_kv_s("function", what));
}

/* The instance whose callback c is, if it may use what the bits say; NULL. */
static struct bh_native *may(const struct berth_call *c, uint32_t reads, const char *what)
{
    struct bh_native *in = bh_native_inside;

    if (bh_unlikely(!in || !c || (const void *)in->call != (const void *)c)) {
        stray(what);
        return NULL;
    }
    if (bh_unlikely(reads & ~in->may)) {
        in->broke = what;
        return NULL;
    }
    return in;
}
struct bh_native *bh_native_callback(const struct berth_call *c, const char *what)
{
    return may(c, 0, what);
}
/* What an accessor is called in an error, with what it needs. */
#define UNDECLARED(what, bit) "it used " what " without " bit " in its reads"

static struct bh_native *home_of(const struct berth_home *home, const char *what)
{
    struct bh_native *in = bh_native_inside;

    if (in && (const void *)in == (const void *)home)
        return in;
    stray(what);
    return NULL;
}

static struct berth_str str_of(struct bh_str s)
{
    return (struct berth_str){s.p, s.n};
}
static inline struct berth_str sym_text(const struct bh_native *in, bh_sym s)
{
    const struct bh_sym_texts *all = in->texts;

    return bh_likely(s < all->n) ? str_of(all->of[s]) : (struct berth_str){"", 0};
}

/* ---- base ------------------------------------------------------------------------------------ */

static void *base_alloc(struct berth_call *c, uint64_t bytes)
{
    struct bh_native *in = may(c, 0, "alloc");

    if (!in || !in->call->arena || bytes > ALLOC_MAX ||
        in->call->arena->used_bytes + bytes > CYCLE_MAX)
        return NULL;
    return bh_arena_zalloc(in->call->arena, bytes ? bytes : 1);
}

static void base_log(const struct berth_home *home, uint32_t severity, struct berth_str text)
{
    const struct bh_native *in = (const struct bh_native *)(const void *)home;
    char line[LOG_MAX];
    size_t n = BH_MIN(text.n, (uint64_t)sizeof line - 1);

    memcpy(line, text.p, n);
    line[n] = '\0';
    if (severity >= BERTH_LOG_DEBUG)
        bh_log_debug("A plugin says", bh_kv_s("plugin", in->of->d.name), bh_kv_s("text", line));
    else
        bh_log_at(severity == BERTH_LOG_INFO      ? BH_LOG_INFO
                  : severity == BERTH_LOG_WARNING ? BH_LOG_WARN
                                                  : BH_LOG_ERROR,
                  "A plugin says", bh_kv_s("plugin", in->of->d.name), bh_kv_s("text", line));
}

static berth_sym base_intern(struct berth_home *home, struct berth_str text)
{
    const struct bh_native *in = home_of(home, "intern");

    return in ? bh_sym_intern(in->tab, text.p, text.n) : BH_SYM_NONE;
}

static struct berth_str base_text(const struct berth_home *home, berth_sym symbol)
{
    const struct bh_native *in = home_of(home, "text");

    return in ? sym_text(in, symbol) : (struct berth_str){"", 0};
}

static int64_t base_now(struct berth_call *c)
{
    const struct bh_native *in = may(c, BERTH_READS_TIME, UNDECLARED("now", "BERTH_READS_TIME"));

    return in ? in->call->now_ns : 0;
}

static void **base_filter_state(struct berth_call *c)
{
    static _Thread_local void *nowhere;
    struct bh_native *in = may(c, 0, "filter_state");

    return in ? &in->call->pre_filter_state : &nowhere;
}

static void **base_score_state(struct berth_call *c)
{
    static _Thread_local void *nowhere;
    struct bh_native *in = may(c, 0, "score_state");

    return in ? &in->call->pre_score_state : &nowhere;
}

static void base_wake(const struct berth_home *home)
{
    struct bh_native *in = (struct bh_native *)(uintptr_t)home;

    bh_asks_wake(&in->waker);
}

static void base_wake_at(struct berth_home *home, int64_t at_ns)
{
    struct bh_native *in = home_of(home, "wake_at");

    if (in)
        bh_asks_wake_at(&in->waker, at_ns);
}

static const struct berth_host_base base = {
    .size = sizeof base,
    .alloc = base_alloc,
    .log = base_log,
    .intern = base_intern,
    .text = base_text,
    .now = base_now,
    .filter_state = base_filter_state,
    .score_state = base_score_state,
    .wake = base_wake,
    .wake_at = base_wake_at,
};

/* ---- values ---------------------------------------------------------------------------------- */

static const struct bh_json *json(const struct berth_value *v)
{
    return (const struct bh_json *)(const void *)v;
}
static const struct berth_value *value(const struct bh_json *v)
{
    return (const struct berth_value *)(const void *)v;
}

static uint32_t value_type(const struct berth_value *v)
{
    static const uint32_t types[] = {
        [BH_JSON_NULL] = BERTH_NULL,     [BH_JSON_BOOL] = BERTH_BOOL,
        [BH_JSON_NUMBER] = BERTH_NUMBER, [BH_JSON_STRING] = BERTH_STRING,
        [BH_JSON_ARRAY] = BERTH_ARRAY,   [BH_JSON_OBJECT] = BERTH_OBJECT,
    };
    return v ? types[json(v)->type] : BERTH_NULL;
}

static const struct berth_value *value_get(const struct berth_value *object,
                                           struct berth_str member)
{
    bh_json_each(v, json(object))
        if (bh_str_eq(v->key, (struct bh_str){member.p, member.n}))
            return value(v);
    return NULL;
}

static const struct berth_value *value_first(const struct berth_value *v)
{
    return value(bh_json_first(json(v)));
}

static const struct berth_value *value_next(const struct berth_value *child)
{
    return child ? value(json(child)->next) : NULL;
}

static struct berth_str value_key(const struct berth_value *member)
{
    return member && json(member)->key.p ? str_of(json(member)->key) : (struct berth_str){"", 0};
}

static struct berth_str value_text(const struct berth_value *v)
{
    uint32_t t = value_type(v);

    return t == BERTH_STRING || t == BERTH_NUMBER ? str_of(json(v)->s) : (struct berth_str){"", 0};
}

static int32_t value_integer(const struct berth_value *v, int64_t *ret)
{
    return bh_json_i64(json(v), ret);
}

static int32_t value_number(const struct berth_value *v, double *ret)
{
    if (value_type(v) != BERTH_NUMBER)
        return 0;
    double d = strtod(json(v)->s.p, NULL);
    if (!isfinite(d))
        return 0;
    *ret = d;
    return 1;
}

static int32_t value_boolean(const struct berth_value *v, int32_t *ret)
{
    if (value_type(v) != BERTH_BOOL)
        return 0;
    *ret = json(v)->b;
    return 1;
}

static void value_error(struct berth_errors *errors, struct berth_str path, struct berth_str text)
{
    const struct bh_native_errors *e = (const struct bh_native_errors *)(const void *)errors;

    if (!bh_native_inside || bh_native_inside->tab) { /* not in check_args() */
        stray("error");
        return;
    }
    if (e->errs->n >= ERRORS_MAX)
        return;
    if (!bh_native_is_text(path) || !bh_native_is_text(text))
        bh_field_error(e->errs, "%s: plugin \"%s\" gave an error that is not printable UTF-8",
                       e->path, bh_native_inside->of->d.name);
    else
        bh_field_error(e->errs, "%s%s%.*s: %.*s", e->path, path.n && *e->path ? "." : "",
                       (int)BH_MIN(path.n, (uint64_t)LOG_MAX), path.p,
                       (int)BH_MIN(text.n, (uint64_t)LOG_MAX), text.p);
}

static const struct berth_value *value_path(const struct berth_value *v, struct berth_str path)
{
    const char *p = path.p, *end = path.p + path.n;

    while (v && p < end) {
        const char *dot = memchr(p, '.', (size_t)(end - p));
        struct berth_str name = {p, (uint64_t)((dot ? dot : end) - p)};
        if (value_type(v) == BERTH_ARRAY) {
            uint64_t i = 0;
            for (uint64_t k = 0; k < name.n; k++) {
                if (name.p[k] < '0' || name.p[k] > '9' || name.n > 9)
                    return NULL;
                i = i * 10 + (uint64_t)(name.p[k] - '0');
            }
            v = name.n ? value(bh_json_at(json(v), i)) : NULL;
        } else {
            v = value_get(v, name);
        }
        p = dot ? dot + 1 : end;
        if (dot && p == end) /* a name is missing behind it */
            return NULL;
    }
    return v;
}

static uint64_t value_count(const struct berth_value *v)
{
    uint32_t t = value_type(v);

    return t == BERTH_ARRAY || t == BERTH_OBJECT ? json(v)->c.n : 0;
}

static int32_t value_quantity(const struct berth_value *v, int32_t milli, int64_t *ret)
{
    struct berth_str s = value_text(v);
    bh_nano q;

    if (!s.n || bh_quantity_parse(s.p, s.n, &q) < 0)
        return 0;
    *ret = milli ? bh_quantity_milli_value(q) : bh_quantity_value(q);
    return 1;
}

static int32_t value_time(const struct berth_value *v, int64_t *ret)
{
    int64_t ns;

    if (value_type(v) != BERTH_STRING || bh_time_parse_ns(json(v)->s.p, &ns) == -EINVAL)
        return 0;
    *ret = ns;
    return 1;
}

static const struct berth_host_values values = {
    .size = sizeof values,
    .type = value_type,
    .get = value_get,
    .first = value_first,
    .next = value_next,
    .key = value_key,
    .text = value_text,
    .integer = value_integer,
    .number = value_number,
    .boolean = value_boolean,
    .error = value_error,
    .path = value_path,
    .count = value_count,
    .quantity = value_quantity,
    .time = value_time,
};

/* ---- pods ------------------------------------------------------------------------------------ */

static const struct bh_pod_info *pod_of(const struct berth_pod *p)
{
    return bh_pod_behind(p);
}

static const struct berth_pod *pod_current(struct berth_call *c)
{
    const struct bh_native *in = may(c, 0, "current");

    return in ? bh_pod_handle(in->call->pod) : NULL;
}

static struct berth_str pod_namespace(struct berth_call *c, const struct berth_pod *pod)
{
    struct bh_native *in = may(c, 0, "namespace_");

    return in ? sym_text(in, pod_of(pod)->shape->namespace_) : (struct berth_str){"", 0};
}

static int32_t pod_priority(struct berth_call *c, const struct berth_pod *pod)
{
    return may(c, 0, "priority") ? pod_of(pod)->shape->priority : 0;
}

/* rec: the record that has them. */
static berth_sym label_in(const void *rec, struct bh_slice labels, berth_sym key)
{
    bh_sym value;

    return bh_labels_get(bh_rec_at(rec, labels, struct bh_kv), labels.n, key, &value)
               ? value
               : BERTH_SYM_ABSENT;
}

static void label_number(const void *rec, struct bh_slice labels, uint32_t i, berth_sym *key,
                         berth_sym *value)
{
    const struct bh_kv *kv = bh_rec_at(rec, labels, struct bh_kv);

    *key = i < labels.n ? kv[i].key : BERTH_SYM_ABSENT;
    *value = i < labels.n ? kv[i].value : BERTH_SYM_ABSENT;
}

static berth_sym pod_label(struct berth_call *c, const struct berth_pod *pod, berth_sym key)
{
    const struct bh_shape_rec *s = may(c, 0, "label") ? pod_of(pod)->shape : NULL;

    return s ? label_in(s, s->labels, key) : BERTH_SYM_ABSENT;
}

static uint32_t pod_n_labels(struct berth_call *c, const struct berth_pod *pod)
{
    return may(c, 0, "n_labels") ? pod_of(pod)->shape->labels.n : 0;
}

static void pod_label_at(struct berth_call *c, const struct berth_pod *pod, uint32_t i,
                         berth_sym *key, berth_sym *value)
{
    const struct bh_shape_rec *s = may(c, 0, "label_at") ? pod_of(pod)->shape : NULL;

    *key = *value = BERTH_SYM_ABSENT;
    if (s)
        label_number(s, s->labels, i, key, value);
}

static int64_t pod_request(struct berth_call *c, const struct berth_pod *pod, berth_sym resource)
{
    const struct bh_native *in = may(c, 0, "request");
    bool present;

    if (!in)
        return 0;
    const struct bh_shape_rec *s = pod_of(pod)->shape;
    if (resource == in->cpu)
        return s->fit.cpu_milli;
    if (resource == in->memory)
        return s->fit.memory_bytes;
    if (resource == in->ephemeral)
        return s->fit.ephemeral_bytes;
    return bh_requests_scalar(s, &s->fit, resource, &present);
}

/* What is the pod's alone; NULL: it may not be asked for. */
static const struct bh_pod_rec *identity(struct berth_call *c, const struct berth_pod *pod,
                                         const char *what)
{
    /* In change_pod() it is a pod of the node at hand, or nominated to it: the answer is that node's. */
    const struct bh_native *now = bh_native_inside;
    const bool moved = now && now->hook == BH_HOOK_CHANGE_POD && now->call &&
                       (const void *)pod != (const void *)now->call->pod;
    const struct bh_native *in = may(c, moved ? 0 : BERTH_READS_IDENTITY, what);

    if (in && in->by_pod && pod_of(pod) == in->call->pod)
        *in->by_pod = true;
    return in ? pod_of(pod)->rec : NULL;
}

static struct berth_str pod_name(struct berth_call *c, const struct berth_pod *pod)
{
    const struct bh_pod_rec *r = identity(c, pod, UNDECLARED("name", "BERTH_READS_IDENTITY"));

    return r ? str_of(bh_rec_text(r, r->name)) : (struct berth_str){"", 0};
}

static struct berth_str pod_uid(struct berth_call *c, const struct berth_pod *pod)
{
    const struct bh_pod_rec *r = identity(c, pod, UNDECLARED("uid", "BERTH_READS_IDENTITY"));

    return r ? str_of(bh_rec_text(r, r->uid)) : (struct berth_str){"", 0};
}

static int64_t pod_created(struct berth_call *c, const struct berth_pod *pod)
{
    const struct bh_pod_rec *r = identity(c, pod, UNDECLARED("created", "BERTH_READS_IDENTITY"));

    return r ? r->creation_ns : 0;
}

static int32_t pod_terminating(struct berth_call *c, const struct berth_pod *pod)
{
    const struct bh_pod_rec *r =
        identity(c, pod, UNDECLARED("terminating", "BERTH_READS_IDENTITY"));

    return r && r->flags & BH_POD_TERMINATING;
}

static berth_sym pod_nominated_node(struct berth_call *c, const struct berth_pod *pod)
{
    const struct bh_pod_rec *r =
        identity(c, pod, UNDECLARED("nominated_node", "BERTH_READS_IDENTITY"));

    return r ? r->nominated_node : BH_SYM_NONE;
}

/* The container, if there is such; the record that it lies in is the pod's shape. */
static const struct bh_container *container_of(struct berth_call *c, const struct berth_pod *pod,
                                               uint32_t i, const char *what)
{
    const struct bh_shape_rec *s = may(c, 0, what) ? pod_of(pod)->shape : NULL;

    return s && i < s->containers.n ? &bh_rec_at(s, s->containers, struct bh_container)[i] : NULL;
}

static uint32_t pod_n_containers(struct berth_call *c, const struct berth_pod *pod)
{
    return may(c, 0, "n_containers") ? pod_of(pod)->shape->containers.n : 0;
}

static uint32_t pod_container_kind(struct berth_call *c, const struct berth_pod *pod, uint32_t i)
{
    const struct bh_container *k = container_of(c, pod, i, "container_kind");

    return !k || !k->flags                   ? BERTH_CONTAINER
           : k->flags & BH_CONTAINER_SIDECAR ? BERTH_CONTAINER_SIDECAR
                                             : BERTH_CONTAINER_INIT;
}

static int64_t pod_container_request(struct berth_call *c, const struct berth_pod *pod, uint32_t i,
                                     berth_sym resource)
{
    const struct bh_container *k = container_of(c, pod, i, "container_request");

    return k ? bh_res_get(pod_of(pod)->shape, k->requests, resource, -1) : -1;
}

static int64_t pod_container_limit(struct berth_call *c, const struct berth_pod *pod, uint32_t i,
                                   berth_sym resource)
{
    const struct bh_container *k = container_of(c, pod, i, "container_limit");

    return k ? bh_res_get(pod_of(pod)->shape, k->limits, resource, -1) : -1;
}

static berth_sym pod_container_name(struct berth_call *c, const struct berth_pod *pod, uint32_t i)
{
    const struct bh_container *k = container_of(c, pod, i, "container_name");

    return k ? k->name : BH_SYM_NONE;
}

static int64_t pod_overhead(struct berth_call *c, const struct berth_pod *pod, berth_sym resource)
{
    const struct bh_shape_rec *s = may(c, 0, "overhead") ? pod_of(pod)->shape : NULL;

    return s ? bh_res_get(s, s->overhead, resource, 0) : 0;
}

static uint32_t pod_n_extended(struct berth_call *c, const struct berth_pod *pod)
{
    return may(c, 0, "n_extended of a pod") ? pod_of(pod)->shape->fit.scalars.n : 0;
}

static berth_sym extended_in(const void *rec, struct bh_slice list, uint32_t i)
{
    return i < list.n ? bh_rec_at(rec, list, struct bh_res)[i].name : BERTH_SYM_ABSENT;
}

static berth_sym pod_extended_at(struct berth_call *c, const struct berth_pod *pod, uint32_t i)
{
    const struct bh_shape_rec *s = may(c, 0, "extended_at of a pod") ? pod_of(pod)->shape : NULL;

    return s ? extended_in(s, s->fit.scalars, i) : BERTH_SYM_ABSENT;
}

/* Of pods on nodes: that it became known is no change of the node's pods, unless somebody asks. */
static int64_t pod_started(struct berth_call *c, const struct berth_pod *pod)
{
    const struct bh_native *in = bh_native_inside;
    bool on_node = in && in->call && pod_of(pod) != in->call->pod;
    const struct bh_pod_rec *r;

    if (!on_node || !(in->may & BERTH_READS_PODS)) {
        r = identity(c, pod, UNDECLARED("started", "BERTH_READS_PODS or BERTH_READS_IDENTITY"));
        return r ? r->start_ns : 0;
    }
    if (!may(c, BERTH_READS_PODS, "started"))
        return 0;
    if (in->call->cache)
        in->call->cache->starts_count = true;
    return pod_of(pod)->rec->start_ns;
}

#define ANNOTATIONS UNDECLARED("an annotation", "BERTH_READS_ANNOTATIONS")

/* p NULL: there is none, or it may not be asked for. */
static struct berth_str annotation(struct berth_call *c, enum bh_annotations_of of,
                                   struct bh_str object, struct berth_str key)
{
    const struct bh_native *in = may(c, BERTH_READS_ANNOTATIONS, ANNOTATIONS);

    return in ? str_of(bh_annotations_get(&in->call->cache->annotations, of, object,
                                          (struct bh_str){key.p, key.n}))
              : (struct berth_str){NULL, 0};
}

static struct berth_str pod_annotation(struct berth_call *c, const struct berth_pod *pod,
                                       struct berth_str key)
{
    const struct bh_pod_rec *r =
        identity(c, pod, UNDECLARED("a pod's annotation", "BERTH_READS_IDENTITY"));

    return r ? annotation(c, BH_ANNOTATIONS_PODS, bh_rec_text(r, r->uid), key)
             : (struct berth_str){NULL, 0};
}

static berth_sym pod_scheduler_name(struct berth_call *c, const struct berth_pod *pod)
{
    return may(c, 0, "scheduler_name") ? pod_of(pod)->shape->scheduler_name : BH_SYM_NONE;
}

/* Of pods, with annotations: where they are kept, and the pod's uid. NULL: it may not be asked for. */
static const struct bh_annotations *kept_of(struct berth_call *c, const struct berth_pod *pod,
                                            const char *what, struct bh_str *ret_uid)
{
    const struct bh_pod_rec *r = identity(c, pod, what);
    const struct bh_native *in = r ? may(c, BERTH_READS_ANNOTATIONS, what) : NULL;

    if (!in)
        return NULL;
    *ret_uid = bh_rec_text(r, r->uid);
    return &in->call->cache->annotations;
}
#define KEPT(what) UNDECLARED(what, "BERTH_READS_ANNOTATIONS and IDENTITY")

static struct berth_str pod_annotation_at(struct berth_call *c, const struct berth_pod *pod,
                                          uint32_t i, struct berth_str *ret_key)
{
    struct bh_str uid, key = {"", 0}, v = {NULL, 0};
    const struct bh_annotations *a = kept_of(c, pod, KEPT("annotation_at"), &uid);

    if (a)
        v = bh_annotations_at(a, BH_ANNOTATIONS_PODS, uid, i, &key);
    *ret_key = str_of(key);
    return str_of(v);
}

static struct bh_pod_facts facts_of(struct berth_call *c, const struct berth_pod *pod,
                                    const char *what)
{
    struct bh_str uid;
    const struct bh_annotations *a = kept_of(c, pod, what, &uid);

    return a ? bh_pod_facts(a, uid) : (struct bh_pod_facts){0};
}

static struct berth_str pod_priority_class(struct berth_call *c, const struct berth_pod *pod)
{
    return str_of(facts_of(c, pod, KEPT("priority_class")).priority_class);
}

static int64_t pod_scheduled(struct berth_call *c, const struct berth_pod *pod)
{
    return facts_of(c, pod, KEPT("scheduled")).scheduled_ns;
}

static struct berth_str pod_seccomp_profile(struct berth_call *c, const struct berth_pod *pod,
                                            uint32_t i)
{
    const struct bh_pod_facts f = facts_of(c, pod, KEPT("seccomp_profile"));

    return i < f.n_profiles ? str_of(bh_pod_facts_profile(&f, i)) : (struct berth_str){NULL, 0};
}

static const struct berth_pod *pod_nominated(struct berth_call *c, uint64_t *at, berth_sym *node)
{
    const struct bh_native *in =
        may(c, BERTH_READS_OTHERS, UNDECLARED("nominated", "BERTH_READS_OTHERS"));
    const struct bh_cache *cache = in ? in->call->cache : NULL;
    const struct bh_map_entry *e;

    for (size_t it = *at; cache && (e = bh_map_next(&cache->nominations, &it));) {
        const struct bh_nomination *n = e->value;
        *at = it;
        if (!bh_cache_node(cache, n->node))
            continue;
        if (node)
            *node = n->node;
        return bh_pod_handle(&n->info);
    }
    return NULL;
}

static const struct berth_host_pods pods = {
    .size = sizeof pods,
    .current = pod_current,
    .namespace_ = pod_namespace,
    .priority = pod_priority,
    .label = pod_label,
    .n_labels = pod_n_labels,
    .label_at = pod_label_at,
    .request = pod_request,
    .name = pod_name,
    .uid = pod_uid,
    .created = pod_created,
    .terminating = pod_terminating,
    .nominated_node = pod_nominated_node,
    .n_containers = pod_n_containers,
    .container_kind = pod_container_kind,
    .container_request = pod_container_request,
    .container_limit = pod_container_limit,
    .overhead = pod_overhead,
    .n_extended = pod_n_extended,
    .extended_at = pod_extended_at,
    .started = pod_started,
    .annotation = pod_annotation,
    .scheduler_name = pod_scheduler_name,
    .nominated = pod_nominated,
    .annotation_at = pod_annotation_at,
    .priority_class = pod_priority_class,
    .scheduled = pod_scheduled,
    .seccomp_profile = pod_seccomp_profile,
    .container_name = pod_container_name,
};

/* ---- nodes ----------------------------------------------------------------------------------- */

#define NODE_DATA(what) UNDECLARED(what, "BERTH_READS_NODE")

static const struct bh_node_info *info_of(const struct berth_node *n)
{
    return bh_node_behind(n);
}
/* The node's object; NULL: it may not be asked for. */
static const struct bh_node_rec *rec_of(struct berth_call *c, const struct berth_node *n,
                                        const char *what)
{
    return may(c, BERTH_READS_NODE, what) ? info_of(n)->rec : NULL;
}

static uint32_t node_row(struct berth_call *c, const struct berth_node *node)
{
    return may(c, 0, "row") ? info_of(node)->row : BH_ROW_NONE;
}

static berth_sym node_name(struct berth_call *c, const struct berth_node *node)
{
    return may(c, BERTH_READS_NODE, NODE_DATA("a node's name")) ? info_of(node)->name : BH_SYM_NONE;
}

static berth_sym node_label(struct berth_call *c, const struct berth_node *node, berth_sym key)
{
    const struct bh_node_rec *r = rec_of(c, node, NODE_DATA("a node's label"));

    return r ? label_in(r, r->labels, key) : BERTH_SYM_ABSENT;
}

static uint32_t node_n_labels(struct berth_call *c, const struct berth_node *node)
{
    const struct bh_node_rec *r = rec_of(c, node, NODE_DATA("n_labels of a node"));

    return r ? r->labels.n : 0;
}

static void node_label_at(struct berth_call *c, const struct berth_node *node, uint32_t i,
                          berth_sym *key, berth_sym *value)
{
    const struct bh_node_rec *r = rec_of(c, node, NODE_DATA("label_at of a node"));

    *key = *value = BERTH_SYM_ABSENT;
    if (r)
        label_number(r, r->labels, i, key, value);
}

static int32_t node_unschedulable(struct berth_call *c, const struct berth_node *node)
{
    const struct bh_node_rec *r = rec_of(c, node, NODE_DATA("unschedulable"));

    return r && r->flags & BH_NODE_UNSCHEDULABLE;
}

static uint32_t node_n_taints(struct berth_call *c, const struct berth_node *node)
{
    const struct bh_node_rec *r = rec_of(c, node, NODE_DATA("n_taints"));

    return r ? r->taints.n : 0;
}

static void node_taint_at(struct berth_call *c, const struct berth_node *node, uint32_t i,
                          berth_sym *key, berth_sym *value, uint32_t *effect)
{
    const struct bh_node_rec *r = rec_of(c, node, NODE_DATA("taint_at"));
    const struct bh_taint *t =
        r && i < r->taints.n ? &bh_rec_at(r, r->taints, struct bh_taint)[i] : NULL;

    *key = t ? t->key : BERTH_SYM_ABSENT;
    *value = t ? t->value : BERTH_SYM_ABSENT;
    *effect = t && t->effect <= BH_NO_EXECUTE ? t->effect : 0;
}

static int64_t node_allocatable(struct berth_call *c, const struct berth_node *node,
                                berth_sym resource)
{
    const struct bh_node_rec *r = rec_of(c, node, NODE_DATA("allocatable"));
    const struct bh_native *in = bh_native_inside;
    bool present;

    if (!r)
        return 0;
    if (resource == in->cpu)
        return r->alloc_cpu_milli;
    if (resource == in->memory)
        return r->alloc_memory_bytes;
    if (resource == in->ephemeral)
        return r->alloc_ephemeral_bytes;
    if (resource == in->pods)
        return r->alloc_pods;
    return bh_node_rec_scalar(r, resource, &present);
}

static int64_t node_capacity(struct berth_call *c, const struct berth_node *node,
                             berth_sym resource)
{
    const struct bh_node_rec *r = rec_of(c, node, NODE_DATA("capacity"));

    return r ? bh_res_get(r, r->capacity, resource, node_allocatable(c, node, resource)) : 0;
}

static uint32_t node_n_extended(struct berth_call *c, const struct berth_node *node)
{
    const struct bh_node_rec *r = rec_of(c, node, NODE_DATA("n_extended of a node"));

    return r ? r->scalars.n : 0;
}

static berth_sym node_extended_at(struct berth_call *c, const struct berth_node *node, uint32_t i)
{
    const struct bh_node_rec *r = rec_of(c, node, NODE_DATA("extended_at of a node"));

    return r ? extended_in(r, r->scalars, i) : BERTH_SYM_ABSENT;
}

#define REQUESTED UNDECLARED("requested", "BERTH_READS_SUMS")

static int64_t node_requested(struct berth_call *c, const struct berth_node *node,
                              berth_sym resource)
{
    const struct bh_native *in = may(c, BERTH_READS_SUMS, REQUESTED);
    const struct bh_node_info *ni = info_of(node);

    if (!in)
        return 0;
    if (resource == in->cpu)
        return bh_sum_i64(ni->used_cpu_milli);
    if (resource == in->memory)
        return bh_sum_i64(ni->used_memory_bytes);
    if (resource == in->ephemeral)
        return bh_sum_i64(ni->used_ephemeral_bytes);
    if (resource == in->pods)
        return ni->n_pods;
    return bh_sum_i64(bh_node_info_used_scalar(ni, resource));
}

static uint32_t node_n_pods(struct berth_call *c, const struct berth_node *node)
{
    return may(c, BERTH_READS_PODS, UNDECLARED("n_pods", "BERTH_READS_PODS"))
               ? info_of(node)->n_pods
               : 0;
}

static const struct berth_pod *node_pod_at(struct berth_call *c, const struct berth_node *node,
                                           uint32_t i)
{
    const struct bh_native *in = may(c, BERTH_READS_PODS, UNDECLARED("pod_at", "BERTH_READS_PODS"));

    return in && i < info_of(node)->n_pods ? bh_pod_handle(info_of(node)->pods[i]) : NULL;
}

static uint32_t node_count(struct berth_call *c)
{
    const struct bh_native *in =
        may(c, BERTH_READS_OTHERS, UNDECLARED("count", "BERTH_READS_OTHERS"));

    return in ? in->call->cache->n_nodes : 0;
}

static const struct berth_node *node_find(struct berth_call *c, berth_sym name)
{
    const struct bh_native *in =
        may(c, BERTH_READS_OTHERS, UNDECLARED("find", "BERTH_READS_OTHERS"));

    return in ? bh_node_handle(bh_cache_node(in->call->cache, name)) : NULL;
}

static struct berth_str node_annotation(struct berth_call *c, const struct berth_node *node,
                                        struct berth_str key)
{
    const struct bh_node_rec *r = rec_of(c, node, NODE_DATA("a node's annotation"));

    return r ? annotation(c, BH_ANNOTATIONS_NODES,
                          bh_sym_str(bh_native_inside->tab, info_of(node)->name), key)
             : (struct berth_str){NULL, 0};
}

/* Moments are positions in the change log, from 1 on. */
static uint64_t node_changed(struct berth_call *c, uint64_t since,
                             void (*fn)(void *arg, const struct berth_node *node), void *arg)
{
    const struct bh_native *in =
        may(c, BERTH_READS_OTHERS, UNDECLARED("changed", "BERTH_READS_OTHERS"));
    const struct bh_cache *cache = in ? in->call->cache : NULL;

    if (!cache)
        return since;
    const uint64_t end = cache->log_end;
    bool all = !since || since - 1 < cache->log_begin || since - 1 > end;
    for (uint64_t i = all ? 0 : since - 1; i < (all ? cache->cols.n_rows : end); i++) {
        const struct bh_node_info *ni = cache->rows[all ? i : cache->log[i & (cache->log_cap - 1)]];
        if (ni)
            fn(arg, bh_node_handle(ni));
    }
    return end + 1;
}

static uint32_t node_n_terminating(struct berth_call *c, const struct berth_node *node)
{
    return may(c, BERTH_READS_PODS, UNDECLARED("n_terminating", "BERTH_READS_PODS"))
               ? info_of(node)->n_terminating
               : 0;
}

static uint32_t node_n_nominated(struct berth_call *c, const struct berth_node *node)
{
    return may(c, BERTH_READS_PODS, UNDECLARED("n_nominated", "BERTH_READS_PODS"))
               ? info_of(node)->n_nominated
               : 0;
}

static const struct berth_host_nodes nodes = {
    .size = sizeof nodes,
    .row = node_row,
    .name = node_name,
    .label = node_label,
    .n_labels = node_n_labels,
    .label_at = node_label_at,
    .unschedulable = node_unschedulable,
    .n_taints = node_n_taints,
    .taint_at = node_taint_at,
    .allocatable = node_allocatable,
    .requested = node_requested,
    .n_pods = node_n_pods,
    .pod_at = node_pod_at,
    .count = node_count,
    .find = node_find,
    .capacity = node_capacity,
    .n_extended = node_n_extended,
    .extended_at = node_extended_at,
    .annotation = node_annotation,
    .changed = node_changed,
    .n_terminating = node_n_terminating,
    .n_nominated = node_n_nominated,
};

/* ---- columns --------------------------------------------------------------------------------- */

static const int64_t *column_allocatable(struct berth_call *c, berth_sym resource)
{
    const struct bh_native *in = may(c, BERTH_READS_NODE, NODE_DATA("the column of allocatable"));
    const struct bh_columns *cols = in ? &in->call->cache->cols : NULL;

    if (!cols)
        return NULL;
    if (resource == in->cpu)
        return cols->alloc_cpu_milli;
    if (resource == in->memory)
        return cols->alloc_memory_bytes;
    if (resource == in->ephemeral)
        return cols->alloc_ephemeral_bytes;
    const struct bh_scalar_column *s = bh_columns_scalar(cols, resource);
    return s ? s->alloc : NULL;
}

static const int64_t *column_requested(struct berth_call *c, berth_sym resource)
{
    const struct bh_native *in = may(c, BERTH_READS_SUMS, REQUESTED);
    const struct bh_columns *cols = in ? &in->call->cache->cols : NULL;

    if (!cols)
        return NULL;
    if (resource == in->cpu)
        return cols->used_cpu_milli;
    if (resource == in->memory)
        return cols->used_memory_bytes;
    if (resource == in->ephemeral)
        return cols->used_ephemeral_bytes;
    const struct bh_scalar_column *s = bh_columns_scalar(cols, resource);
    return s ? s->used : NULL;
}

static const berth_sym *column_label(struct berth_call *c, berth_sym key)
{
    struct bh_native *in = may(c, BERTH_READS_NODE, NODE_DATA("the column of a label"));
    uint32_t i = 0;

    if (!in)
        return NULL;
    while (i < in->n_labels && in->label_key[i] != key)
        i++;
    if (i == BH_LABEL_COLUMNS)
        return NULL;
    if (i == in->n_labels)
        in->label_key[in->n_labels++] = key;
    if (!in->labels)
        in->labels = bh_calloc(1, sizeof *in->labels);
    return bh_label_column(in->labels, in->call->cache, key);
}

static const uint64_t *column_fact(struct berth_call *c, uint32_t which)
{
    static const enum bh_row_bit bits[] = {[BERTH_FACT_UNSCHEDULABLE] = BH_ROW_UNSCHEDULABLE,
                                           [BERTH_FACT_HARD_TAINT] = BH_ROW_HARD_TAINT,
                                           [BERTH_FACT_SOFT_TAINT] = BH_ROW_SOFT_TAINT};
    const struct bh_native *in = may(c, BERTH_READS_NODE, NODE_DATA("fact"));

    return in && which > 0 && which < BH_ARRAY_LEN(bits) ? in->call->cache->cols.bits[bits[which]]
                                                         : NULL;
}

static const struct berth_node *column_node(struct berth_call *c, uint32_t row)
{
    const struct bh_native *in = may(c, 0, "node");
    const struct bh_cache *cache = in ? in->call->cache : NULL;

    return cache && row < cache->cols.n_rows ? bh_node_handle(cache->rows[row]) : NULL;
}

static uint32_t column_n_rows(struct berth_call *c)
{
    const struct bh_native *in =
        may(c, BERTH_READS_OTHERS, UNDECLARED("n_rows", "BERTH_READS_OTHERS"));

    return in ? in->call->cache->cols.n_rows : 0;
}

/* *at: a position of the log and one, so that 0 is none. */
static uint32_t column_changed(struct berth_call *c, uint64_t *at, uint32_t *rows, uint32_t max)
{
    const struct bh_native *in =
        may(c, BERTH_READS_OTHERS, UNDECLARED("changed", "BERTH_READS_OTHERS"));
    const struct bh_cache *cache = in ? in->call->cache : NULL;
    uint32_t n = 0;

    if (!cache)
        return 0;
    if (!*at || *at - 1 < cache->log_begin || *at - 1 > cache->log_end) {
        *at = cache->log_end + 1;
        return UINT32_MAX;
    }
    for (; n < max && *at - 1 < cache->log_end; ++*at)
        rows[n++] = cache->log[(*at - 1) & (cache->log_cap - 1)];
    return n;
}

static const struct berth_host_columns columns = {
    .size = sizeof columns,
    .allocatable = column_allocatable,
    .requested = column_requested,
    .label = column_label,
    .fact = column_fact,
    .node = column_node,
    .n_rows = column_n_rows,
    .changed = column_changed,
};

/* ---- waiting pods ---------------------------------------------------------------------------- */

static int32_t waiting_allow(struct berth_home *home, struct berth_str uid)
{
    const struct bh_native *in = home_of(home, "allow");

    return in && in->waiting &&
           bh_waiting_allow(in->waiting, (struct bh_str){uid.p, uid.n}, in->of->d.name);
}

static int32_t waiting_reject(struct berth_home *home, struct berth_str uid,
                              struct berth_str reason)
{
    const struct bh_native *in = home_of(home, "reject");

    if (!in || !in->waiting)
        return 0;
    BH_CLEANUP(bh_freep)
    char *text = bh_native_is_text(reason)
                     ? bh_strndup(reason.p, BH_MIN(reason.n, (uint64_t)LOG_MAX))
                     : bh_strdup("it gave a reason that is not printable UTF-8");
    return bh_waiting_reject(in->waiting, (struct bh_str){uid.p, uid.n}, in->of->d.name, text);
}

static void waiting_activate(struct berth_home *home, struct berth_str uid)
{
    struct bh_native *in = home_of(home, "activate");

    if (in && in->waiting && !bh_waiting_activate(in->waiting, (struct bh_str){uid.p, uid.n}))
        in->broke =
            "it wants a pod tried whose uid has more than 128 bytes, or more than 65536 at once";
}

struct walk { /* of the pods that wait */
    void (*fn)(void *arg, struct berth_str uid);
    void *arg;
};
static void visit_waiting(void *arg, struct bh_str uid)
{
    const struct walk *w = arg;

    w->fn(w->arg, str_of(uid));
}

static void waiting_each(struct berth_home *home, void (*fn)(void *arg, struct berth_str uid),
                         void *arg)
{
    const struct bh_native *in = home_of(home, "each");
    struct walk w = {fn, arg};

    if (in && in->waiting)
        bh_waiting_each(in->waiting, visit_waiting, &w);
}

static const struct berth_pod *waiting_get(struct berth_call *c, struct berth_str uid,
                                           berth_sym *node)
{
    const struct bh_native *in =
        may(c, BERTH_READS_OTHERS, UNDECLARED("get", "BERTH_READS_OTHERS"));
    const struct bh_str key = {uid.p, uid.n};
    const struct bh_cache_pod *p = in && in->waiting && bh_waiting_find(in->waiting, key)
                                       ? bh_cache_pod(in->call->cache, key)
                                       : NULL;

    if (!p)
        return NULL;
    if (node)
        *node = p->node->name;
    return bh_pod_handle(&p->info);
}

static const struct berth_host_waiting waiting = {
    .size = sizeof waiting,
    .allow = waiting_allow,
    .reject = waiting_reject,
    .activate = waiting_activate,
    .each = waiting_each,
    .get = waiting_get,
};

/* ---- events ---------------------------------------------------------------------------------- */

#define EVENTS_A_SECOND 32u
#define EVENT_REASON    128u
#define EVENT_NOTE      1024u

static bool may_emit(struct bh_native *in)
{
    static const uint32_t hooks = 1u << BH_HOOK_PRE_ENQUEUE | 1u << BH_HOOK_POST_FILTER |
                                  1u << BH_HOOK_RESERVE | 1u << BH_HOOK_PERMIT |
                                  1u << BH_HOOK_PRE_BIND | 1u << BH_HOOK_BIND |
                                  1u << BH_HOOK_POST_BIND | 1u << BH_HOOK_UNRESERVE;

    if (hooks >> in->hook & 1)
        return true;
    in->broke = "it emitted an event where answers may be kept: PreEnqueue, PostFilter and from "
                "Reserve on it may";
    return false;
}

static bool is_reason(struct berth_str s)
{
    if (!s.n || s.n > EVENT_REASON || !isalpha((unsigned char)*s.p))
        return false;
    for (uint64_t i = 0; i < s.n; i++)
        if (!isalnum((unsigned char)s.p[i]))
            return false;
    return true;
}

static bool within_rate(struct bh_native *in)
{
    const uint64_t second = bh_mono_ns() / 1000000000;

    if (second != in->events_second)
        in->n_events = 0;
    in->events_second = second;
    return in->n_events++ < EVENTS_A_SECOND;
}

static int32_t events_emit(struct berth_call *c, const struct berth_pod *pod, uint32_t type,
                           struct berth_str why, struct berth_str note)
{
    struct bh_native *in = may(c, 0, "emit");

    if (!in || !may_emit(in))
        return 0;
    if (!pod || type > BERTH_EVENT_WARNING || !is_reason(why) || note.n > EVENT_NOTE ||
        !bh_native_is_text(note)) {
        in->broke =
            "it emitted an event without a pod, or whose type is neither Normal nor Warning, "
            "whose reason is not 1 to 128 letters and digits, or whose note is not printable "
            "UTF-8 of at most 1024 bytes";
        return 0;
    }
    if (!in->asks || !within_rate(in))
        return 0;
    const struct bh_pod_rec *r = pod_of(pod)->rec;
    struct bh_arena *a = in->call->arena;
    const struct bh_asked_event ev = {.namespace_ = bh_rec_namespace(r),
                                      .name = bh_rec_text(r, r->name).p,
                                      .uid = bh_rec_uid(r).p,
                                      .controller =
                                          bh_sym_text(in->tab, pod_of(pod)->shape->scheduler_name),
                                      .warning = type == BERTH_EVENT_WARNING,
                                      .reason = bh_arena_strndup(a, why.p, why.n),
                                      .note = bh_arena_strndup(a, note.p, note.n)};
    return bh_asks_event(in->asks, &ev);
}

static const struct berth_host_events events = {
    .size = sizeof events,
    .emit = events_emit,
};

/* ---- user columns ---------------------------------------------------------------------------- */

static int32_t user_publish(struct berth_home *home, uint32_t column, const struct berth_str *names,
                            const double *numbers, uint64_t n)
{
    const struct bh_native *in = (const struct bh_native *)(const void *)home;

    return in->user && bh_native_user_publish(in->user, column, names, numbers, n);
}

static const double *user_column(struct berth_call *c, uint32_t column)
{
    const struct bh_native *in = may(c, BERTH_READS_NODE, NODE_DATA("a user column"));

    return in && in->user ? bh_native_user_column(in->user, in->call, column) : NULL;
}

static void user_measured(struct berth_home *home, int64_t at_ns, uint64_t n_nodes)
{
    const struct bh_native *in = (const struct bh_native *)(const void *)home;

    bh_native_measured((struct bh_native_plugin *)(uintptr_t)in->of, at_ns, n_nodes);
}

static const struct berth_host_user user = {
    .size = sizeof user,
    .publish = user_publish,
    .column = user_column,
    .measured = user_measured,
};

/* ---- objects of the plugin's kinds ----------------------------------------------------------- */

#define OBJECTS(what) UNDECLARED(what, "BERTH_READS_OBJECTS")

static const struct bh_object *object_of(const struct berth_object *o)
{
    return (const struct bh_object *)(const void *)o;
}
static const struct berth_object *object(const struct bh_object *o)
{
    return (const struct berth_object *)(const void *)o;
}

/* The kind that the plugin means, if it may look. */
static bool kind_at(struct berth_call *c, uint32_t i, const char *what, enum bh_kind *ret)
{
    const struct bh_native *in = may(c, BERTH_READS_OBJECTS, what);

    if (!in || i >= in->of->p.n_kinds)
        return false;
    *ret = in->of->kind[i];
    return true;
}

static const struct berth_object *object_find(struct berth_call *c, uint32_t kind,
                                              struct berth_str ns, struct berth_str name)
{
    char texts[2][256];
    enum bh_kind k;

    if (!kind_at(c, kind, OBJECTS("find of objects"), &k) || ns.n >= sizeof texts[0] ||
        name.n >= sizeof texts[1])
        return NULL;
    snprintf(texts[0], sizeof texts[0], "%.*s", (int)ns.n, ns.n ? ns.p : "");
    snprintf(texts[1], sizeof texts[1], "%.*s", (int)name.n, name.n ? name.p : "");
    return object(bh_objects_find(bh_native_inside->call->objects, k, texts[0], texts[1]));
}

static const struct berth_object *object_first(struct berth_call *c, uint32_t kind)
{
    enum bh_kind k;

    return kind_at(c, kind, OBJECTS("first of objects"), &k)
               ? object(bh_native_inside->call->objects->first[k])
               : NULL;
}

static const struct berth_object *object_next(struct berth_call *c, const struct berth_object *o)
{
    return may(c, BERTH_READS_OBJECTS, OBJECTS("next of objects")) && o ? object(object_of(o)->next)
                                                                        : NULL;
}

/* NULL: it may not be looked at. */
static const struct bh_json *whole(struct berth_call *c, const struct berth_object *o)
{
    return may(c, BERTH_READS_OBJECTS, OBJECTS("an object")) && o ? object_of(o)->json : NULL;
}

static struct berth_str text_at(const struct bh_json *v, const char *path)
{
    const struct bh_json *t = bh_json_path(v, path);

    return t && t->type == BH_JSON_STRING ? str_of(t->s) : (struct berth_str){"", 0};
}

static struct berth_str object_namespace(struct berth_call *c, const struct berth_object *o)
{
    return text_at(whole(c, o), "metadata.namespace");
}

static struct berth_str object_name(struct berth_call *c, const struct berth_object *o)
{
    return text_at(whole(c, o), "metadata.name");
}

static struct berth_str object_uid(struct berth_call *c, const struct berth_object *o)
{
    return text_at(whole(c, o), "metadata.uid");
}

static struct berth_str object_label(struct berth_call *c, const struct berth_object *o,
                                     struct berth_str key)
{
    const struct berth_value *v =
        value_get(value(bh_json_path(whole(c, o), "metadata.labels")), key);

    return value_type(v) == BERTH_STRING ? str_of(json(v)->s) : (struct berth_str){NULL, 0};
}

static const struct berth_value *object_value(struct berth_call *c, const struct berth_object *o)
{
    return value(whole(c, o));
}

static uint64_t object_version(struct berth_call *c, uint32_t kind)
{
    enum bh_kind k;

    return kind_at(c, kind, OBJECTS("version of objects"), &k)
               ? bh_native_inside->call->objects->version[k]
               : 0;
}

static const struct berth_host_objects objects = {
    .size = sizeof objects,
    .find = object_find,
    .first = object_first,
    .next = object_next,
    .namespace_ = object_namespace,
    .name = object_name,
    .uid = object_uid,
    .label = object_label,
    .value = object_value,
    .version = object_version,
};

const struct berth_host bh_native_host = {
    .size = sizeof bh_native_host,
    .abi_minor = BERTH_ABI_MINOR,
    .version = {BH_VERSION, sizeof BH_VERSION - 1},
    .base = &base,
    .values = &values,
    .pods = &pods,
    .nodes = &nodes,
    .columns = &columns,
    .waiting = &waiting,
    .user = &user,
    .events = &events,
    .writes = &bh_native_writes,
    .metrics = &bh_native_metrics_table,
    .objects = &objects,
    .preemption = &bh_native_preemption,
};
