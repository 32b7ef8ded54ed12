/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/wasm/load.c - from pluginConfig's args to a guest that the framework finds by name
 *
 * Invariants: a name has one guest for the life of the process: descriptors are not changed under an
 *             engine. Another file under the same name is refused.
 * Upstream:   kube-scheduler-wasm-extension, scheduler/cmd/scheduler/config.go, plugin/{config,
 *             url,vfs}.go.
 */
#include <ctype.h>
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <time.h>

#include "common/base/log.h"
#include "common/base/metrics.h"
#include "common/base/opt.h"
#include "common/wasm/store.h"
#include "scheduler/wasm/guest_int.h"

#define LOOK_NS 20000000

#define MAIN_HOOKS                                                                                 \
    (BH_GUEST_BIT(BH_GUEST_FILTER) | BH_GUEST_BIT(BH_GUEST_SCORE) |                                \
     BH_GUEST_BIT(BH_GUEST_RESERVE) | BH_GUEST_BIT(BH_GUEST_UNRESERVE) |                           \
     BH_GUEST_BIT(BH_GUEST_PERMIT) | BH_GUEST_BIT(BH_GUEST_BIND))

const struct bh_guest_export bh_guest_exports[BH_GUEST_HOOKS] = {
    {"enqueue", ":"},         {"prefilter", ":i"},  {"addpod", ":i"},   {"removepod", ":i"},
    {"filter", ":i"},         {"postfilter", ":I"}, {"prescore", ":i"}, {"score", ":I"},
    {"normalizescore", ":i"}, {"reserve", ":i"},    {"unreserve", ":"}, {"permit", ":I"},
    {"prebind", ":i"},        {"bind", ":i"},       {"postbind", ":"},
};

const char *bh_guest_signature(const char *type)
{
    return bh_streq(type, ":") ? "() -> ()" : type[1] == 'i' ? "() -> (i32)" : "() -> (i64)";
}

struct seen { /* a guest of the configuration that is being read again */
    struct seen *next;
    char *name, sha256[65];
    bool node_local;
};
static struct {
    pthread_mutex_t lock;
    struct bh_guest_plugin *first;
    const struct bh_plugin *(*others)(const char *name);
    struct bh_guest_sources sources;
    struct seen *seen;
    bool changed; /* a known name has another guest in a configuration that was read since */
} all = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- args ------------------------------------------------------------------------------------ */

/* What a pod's cycle may take, unless args say it: so many hooks that are as slow as one may be. A guest that
 * is, at each of thousands of nodes, would keep all other pods waiting, and cost the lease. */
#define HOOKS_A_CYCLE 100

static const char *go_type(const struct bh_json *v)
{
    switch (v->type) {
    case BH_JSON_STRING:
        return "string";
    case BH_JSON_BOOL:
        return "bool";
    case BH_JSON_ARRAY:
        return "array";
    case BH_JSON_OBJECT:
        return "object";
    default:
        return "number";
    }
}

static int wrong_type(const char *name, const struct bh_json *v, const char *field,
                      const char *wanted, struct bh_err *err)
{
    return bh_err_set(err, -EINVAL,
                      "failed to decode into %s PluginConfig: json: cannot unmarshal %s into Go "
                      "struct field PluginConfig.%s of type %s",
                      name, go_type(v), field, wanted);
}

/* A text, which the guest gets as a C string. */
static int check_text(const char *name, const struct bh_json *v, const char *field,
                      struct bh_err *err)
{
    if (v->type != BH_JSON_STRING)
        return wrong_type(name, v, field, "string", err);
    return memchr(v->s.p, 0, v->s.n)
               ? bh_err_set(err, -EINVAL,
                            "failed to decode into %s PluginConfig: %s must not contain a NUL byte",
                            name, field)
               : 0;
}

static int read_text(const char *name, const struct bh_json *args, const char *field,
                     const char **ret, struct bh_err *err)
{
    const struct bh_json *v = bh_json_get(args, field);

    if (!v || v->type == BH_JSON_NULL)
        return 0;
    *ret = bh_json_cstr(v);
    return check_text(name, v, field, err);
}

/* Stays as it is when the field is absent. */
static int read_duration(const char *name, const struct bh_json *args, const char *field,
                         const char *example, int64_t *ret_ns, struct bh_err *err)
{
    const char *text = NULL;
    int rc = read_text(name, args, field, &text, err);

    if (rc == 0 && text && (bh_parse_duration_ns(text, ret_ns) < 0 || *ret_ns <= 0))
        rc = bh_err_set(
            err, -EINVAL,
            "failed to decode into %s PluginConfig: %s \"%s\" is no duration above 0, as "
            "\"%s\"",
            name, field, text, example);
    return rc;
}

static int read_argv(struct bh_arena *a, const char *name, const struct bh_json *v,
                     struct bh_guest_args *ret, struct bh_err *err)
{
    if (!v || v->type == BH_JSON_NULL)
        return 0;
    if (v->type != BH_JSON_ARRAY)
        return wrong_type(name, v, "Args", "[]string", err);
    bh_json_each(e, v) {
        int rc = check_text(name, e, "Args", err);
        if (rc < 0)
            return rc;
        ret->argc++;
    }
    ret->argv = bh_arena_new_array(a, const char *, ret->argc + 1);
    uint32_t i = 0;
    bh_json_each(e, v)
        ret->argv[i++] = bh_json_cstr(e);
    return 0;
}

int bh_guest_args_read(struct bh_arena *a, const char *name, const struct bh_json *args,
                       struct bh_guest_args *ret, struct bh_err *err)
{
    const struct bh_wasm_limits limits = BH_WASM_LIMITS;
    const struct bh_json *local = bh_json_get(args, "nodeLocal");
    const struct bh_json *severity = bh_json_get(args, "logSeverity"),
                         *argv = bh_json_get(args, "args");
    const char *digest = NULL;
    int64_t level = bh_json_get_i64(args, "logSeverity", INT64_MIN);

    *ret = (struct bh_guest_args){.timeout_ns = (int64_t)limits.call_ns};
    int rc = read_text(name, args, "guestURL", &ret->url, err);
    if (rc == 0)
        rc = read_text(name, args, "guestConfig", &ret->config, err);
    if (rc == 0)
        rc = read_duration(name, args, "hookTimeout", "50ms", &ret->timeout_ns, err);
    if (rc == 0) {
        ret->cycle_ns = BH_MIN(ret->timeout_ns, INT64_MAX / HOOKS_A_CYCLE) * HOOKS_A_CYCLE;
        rc = read_duration(name, args, "cycleTimeout", "5s", &ret->cycle_ns, err);
    }
    if (rc == 0)
        rc = read_text(name, args, "guestDigest", &digest, err);
    if (rc == 0 && severity && severity->type != BH_JSON_NULL &&
        (level < INT32_MIN || level > INT32_MAX))
        rc = wrong_type(name, severity, "logSeverity", "int32", err);
    if (rc == 0)
        rc = read_argv(a, name, argv ? argv : bh_json_get(args, "Args"), ret, err);
    if (rc == 0 && local && local->type != BH_JSON_NULL && local->type != BH_JSON_BOOL)
        rc = wrong_type(name, local, "nodeLocal", "bool", err);
    ret->node_local = local && local->type == BH_JSON_BOOL && local->b;
    if (rc == 0 && digest && bh_wasm_digest_read(digest, ret->sha256) < 0)
        rc = bh_err_set(err, -EINVAL,
                        "failed to decode into %s PluginConfig: guestDigest \"%s\" is not sha256: "
                        "and 64 hexadecimal digits",
                        name, digest);
    ret->severity = level == INT64_MIN ? 0 : (int32_t)level;
    return rc;
}

/* ---- the file -------------------------------------------------------------------------------- */

static int unread(const char *url, struct bh_err *err, int rc, const char *fmt, ...)
    BH_PRINTF(4, 5);
static int unread(const char *url, struct bh_err *err, int rc, const char *fmt, ...)
{
    char why[sizeof err->msg];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(why, sizeof why, fmt, ap);
    va_end(ap);
    return bh_err_set(err, rc, "wasm: error reading guestURL %s: %s", url, why);
}

static int read_named(const struct bh_guest_args *args, char **ret, size_t *ret_n,
                      struct bh_err *err)
{
    const char *path = args->url + strlen("file://");
    int rc = bh_read_file(path, BH_WASM_BYTES_MAX, ret, ret_n);
    char why[128];

    if (rc == 0 && *args->sha256)
        rc = bh_wasm_digest_check(*ret, *ret_n, args->sha256, err);
    if (rc == 0)
        return 0;
    if (rc == -EBADMSG)
        return unread(args->url, err, rc, "%s", err->msg);
    snprintf(why, sizeof why, "%s", strerror(-rc)); /* as Go says it */
    why[0] = (char)tolower((unsigned char)why[0]);
    return unread(args->url, err, rc, "%s %s: %s", rc == -EISDIR ? "read" : "open", path, why);
}

/* What berth-watcher has put there; it may be at it. */
static int read_stored(const struct bh_guest_args *args, char **ret, size_t *ret_n,
                       struct bh_err *err)
{
    const struct bh_guest_sources *from = &all.sources;
    const uint64_t end = bh_mono_ns() + from->wait_ns;
    const int64_t since = bh_wall_ns() / 1000000000;
    char *failure = NULL;
    int rc;

    while ((rc = bh_wasm_store_get(from->store, args->sha256, ret, ret_n, err)) == -ENOENT) {
        failure = bh_wasm_store_failure(from->store, args->sha256, from->wait_ns ? since : 0);
        if (failure || bh_mono_ns() >= end)
            break;
        (void)nanosleep(&(struct timespec){.tv_nsec = LOOK_NS}, NULL);
    }
    if (rc == -ENOENT)
        rc = unread(args->url, err, rc, "%s",
                    failure ? failure : "berth-watcher has not downloaded it yet");
    else if (rc < 0)
        rc = unread(args->url, err, rc, "%s", err->msg);
    free(failure);
    return rc;
}

static int read_remote(const struct bh_guest_args *args, char **ret, size_t *ret_n,
                       struct bh_err *err)
{
    const struct bh_guest_sources *from = &all.sources;
    struct bh_buf b = {0};

    if (!*args->sha256)
        return unread(args->url, err, -EINVAL,
                      "guestDigest is required with it: \"sha256:\" and 64 hexadecimal digits, as "
                      "sha256sum prints them");
    if (!from->download && !from->store)
        return unread(args->url, err, -EOPNOTSUPP, "this program does not download guests");
    if (!from->download)
        return read_stored(args, ret, ret_n, err);
    int rc = from->download(args->url, BH_WASM_BYTES_MAX, NULL, &b, err);
    if (rc == 0)
        rc = bh_wasm_digest_check(bh_buf_str(&b), b.n, args->sha256, err);
    if (rc < 0) {
        bh_buf_fini(&b);
        return unread(args->url, err, rc, "%s", err->msg);
    }
    *ret = bh_memdup(bh_buf_str(&b), b.n + 1);
    *ret_n = b.n;
    bh_buf_fini(&b);
    return 0;
}

static int read_guest(const struct bh_guest_args *args, char **ret, size_t *ret_n,
                      struct bh_err *err)
{
    const char *url = args->url ? args->url : "", *colon = strchr(url, ':');

    if (!*url)
        return bh_err_set(err, -EINVAL, "wasm: guestURL is required");
    if (!colon)
        return unread(url, err, -EINVAL, "invalid URL: %s", url);
    if (strncmp(url, "http://", 7) == 0 || strncmp(url, "https://", 8) == 0)
        return read_remote(args, ret, ret_n, err);
    if (strncmp(url, "file://", 7) != 0)
        return unread(url, err, -EINVAL, "unsupported URL scheme: %.*s%s", (int)(colon - url), url,
                      strncmp(url, "oci:", 4) == 0
                          ? ": images are not read, name the module's file or its http(s) URL"
                          : "");
    return read_named(args, ret, ret_n, err);
}

/* Which objects it can ask for. */
static unsigned needs_of(const struct bh_wasm_module *m)
{
    static const struct {
        const char *name;
        unsigned needs;
    } readers[] = {{"currentPod", BH_EXT_NEED_PENDING},
                   {"handle.get_waiting_pod", BH_EXT_NEED_PENDING},
                   {"targetPod", BH_EXT_NEED_PENDING | BH_EXT_NEED_ASSIGNED},
                   {"node", BH_EXT_NEED_NODES},
                   {"nodeList", BH_EXT_NEED_NODES},
                   {"pod", BH_EXT_NEED_PENDING},
                   {"podInfo", BH_EXT_NEED_PENDING | BH_EXT_NEED_ASSIGNED}};
    size_t n;
    const struct bh_wasm_item *v = bh_wasm_imports(m, &n);
    unsigned needs = 0;

    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < BH_ARRAY_LEN(readers); k++)
            if (bh_str_eq(v[i].name, bh_str_c(readers[k].name)))
                needs |= readers[k].needs;
    return needs;
}

/* A guest with a run time of its own, as the original's SDK, may keep the nodes that it is asked about; with
 * what it answers being of the node alone it need not. */
static bool may_forget(const struct bh_guest_plugin *p)
{
    uint32_t start;

    return p->node_local && p->runs & BH_GUEST_BIT(BH_GUEST_PREFILTER) &&
           bh_wasm_find(p->m, "_start", ":", &start, NULL) == 0;
}

/* Does it have the names of v0.1.0? They are not mixed: one SDK made the guest. */
static bool is_first_abi(const struct bh_wasm_module *m)
{
    static const char *const names[] = {"nodeName", "pod", "podInfo"};
    size_t n;
    const struct bh_wasm_item *v = bh_wasm_imports(m, &n);

    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < BH_ARRAY_LEN(names); k++)
            if (bh_str_eqc(v[i].module, "k8s.io/api") && bh_str_eqc(v[i].name, names[k]))
                return true;
    return false;
}

/* Hooks that a guest may have only because its SDK exports all of them: with nothing in them they need no call. Not
 * enqueue, which is asked once, and postfilter, whose Success ends the chain. */
static uint32_t can_skip(const struct bh_guest_plugin *p)
{
    uint32_t stubs = 0;

    for (unsigned h = 0; h < BH_GUEST_HOOKS; h++)
        if (p->hooks & BH_GUEST_BIT(h) && bh_wasm_is_stub(p->m, p->func[h]))
            stubs |= BH_GUEST_BIT(h);
    return stubs & ~(BH_GUEST_BIT(BH_GUEST_ENQUEUE) | BH_GUEST_BIT(BH_GUEST_POSTFILTER));
}

static int find_hooks(struct bh_guest_plugin *p, struct bh_err *err)
{
    uint32_t none[2] = {0};
    size_t n;
    const struct bh_wasm_item *v = bh_wasm_exports(p->m, &n);

    for (size_t i = 0; i < n; i++)
        none[0] |= v[i].kind == BH_WASM_MEMORY && bh_str_eq(v[i].name, bh_str_c("memory"));
    if (!none[0])
        return bh_err_set(err, -EINVAL, "wasm: guest doesn't export memory[memory]");
    for (unsigned h = 0; h < BH_GUEST_HOOKS; h++) {
        const struct bh_guest_export *e = &bh_guest_exports[h];
        int rc = bh_wasm_find(p->m, e->name, e->type, &p->func[h], NULL);
        if (rc == -EPROTOTYPE)
            return bh_err_set(err, -EINVAL,
                              "wasm: guest exports the wrong signature for func[%s]. should be %s",
                              e->name, bh_guest_signature(e->type));
        if (rc == 0)
            p->hooks |= BH_GUEST_BIT(h);
    }
    p->runs = p->hooks & ~can_skip(p);
    if (!p->hooks)
        return bh_err_set(err, -EINVAL, "wasm: guest does not export any plugin functions");
    if (!(p->hooks & MAIN_HOOKS) && p->hooks != BH_GUEST_BIT(BH_GUEST_PREFILTER))
        return bh_err_set(err, -EINVAL,
                          "wasm: filter, score, reserve, permit or bind must be exported");
    return 0;
}

/* ---- names ----------------------------------------------------------------------------------- */

static void drop(struct bh_guest_plugin *p)
{
    bh_wasm_unload(p->m);
    free(p->bytes);
    free(p->name);
    free(p->url);
    free((void *)(uintptr_t)p->d.events);
    free(p);
}

/* What berth wasmc made of it, if it did. */
static void find_compiled(struct bh_guest_plugin *p)
{
    struct bh_err err = {0};

    if (bh_wasm_use_compiled(p->m, p->sha256, &err) < 0)
        bh_log_warn("A compiled guest is not used, it is interpreted", bh_kv_s("plugin", p->name),
                    bh_kv_s("err", err.msg));
}

static int load(struct bh_guest_plugin *p, const struct bh_guest_args *args, struct bh_err *err)
{
    struct bh_event_reg *events = NULL;
    int rc = bh_wasm_load(p->bytes, p->n_bytes, &p->m, err);

    if (rc < 0)
        return bh_err_prefix(err, rc, "wasm: error compiling guest");
    if ((rc = find_hooks(p, err)) < 0)
        return rc;
    bh_wasm_digest(p->bytes, p->n_bytes, p->sha256);
    find_compiled(p);
    p->needs = needs_of(p->m);
    p->url = bh_strdup(args->url);
    p->node_local = args->node_local;
    p->first_abi = is_first_abi(p->m);
    p->may_forget = may_forget(p);
    if ((rc = bh_guest_events(p, args, &events, err)) < 0)
        return rc;
    bh_guest_describe(p, args->node_local, events);
    return 0;
}

static struct bh_guest_plugin *known(const char *name)
{
    struct bh_guest_plugin *p = all.first;

    while (p && !bh_streq(p->name, name))
        p = p->next;
    return p;
}

/* In one configuration a name has one guest, whichever is loaded now. */
static int check_seen(struct bh_guest_plugin *neu, const struct bh_guest_args *args,
                      struct bh_err *err)
{
    struct seen *s = all.seen;

    bh_wasm_digest(neu->bytes, neu->n_bytes, neu->sha256);
    while (s && !bh_streq(s->name, neu->name))
        s = s->next;
    if (s)
        return bh_streq(s->sha256, neu->sha256) && s->node_local == args->node_local
                   ? 0
                   : bh_err_set(err, -EINVAL,
                                "wasm: %s has another guest or nodeLocal in another profile: one "
                                "name has one",
                                neu->name);
    s = bh_calloc(1, sizeof *s);
    *s = (struct seen){all.seen, bh_strdup(neu->name), {0}, args->node_local};
    memcpy(s->sha256, neu->sha256, sizeof s->sha256);
    all.seen = s;
    return 0;
}

/* Is it the one that is known by the name? Where that may change, another one is looked at. */
static int check_known(const struct bh_guest_plugin *p, struct bh_guest_plugin *neu,
                       const struct bh_guest_args *args, struct bh_err *err)
{
    bool other = p->n_bytes != neu->n_bytes || memcmp(p->bytes, neu->bytes, p->n_bytes) != 0;

    if (!other && args->node_local == p->node_local)
        return 0;
    if (all.sources.may_change) {
        int rc = load(neu, args, err);
        all.changed |= rc == 0;
        return rc;
    }
    return other
               ? bh_err_set(err, -EBUSY,
                            "wasm: %s is another guest than the one this process has loaded as "
                            "%s: start it anew",
                            args->url, p->name)
               : bh_err_set(err, -EBUSY,
                            "nodeLocal of %s is %s in this process, in other profiles or since it "
                            "started: one name has one",
                            p->name, p->node_local ? "true" : "false");
}

static int declare_locked(const char *name, const struct bh_guest_args *args, struct bh_err *err)
{
    struct bh_guest_plugin *p = known(name), *neu = bh_calloc(1, sizeof *neu);
    int rc = read_guest(args, &neu->bytes, &neu->n_bytes, err);

    neu->name = bh_strdup(name);
    if (rc == 0 && all.sources.may_change)
        rc = check_seen(neu, args, err);
    if (rc == 0)
        rc = p ? check_known(p, neu, args, err) : load(neu, args, err);
    if (rc < 0 || p) {
        drop(neu);
        return rc < 0 ? rc : (int)p->needs;
    }
    neu->next = all.first;
    all.first = neu;
    return (int)neu->needs;
}

static int declare(const char *name, const struct bh_json *json, struct bh_err *err)
{
    struct bh_arena a = {0};
    struct bh_guest_args args;

    bh_arena_init(&a, 0);
    int rc = bh_guest_args_read(&a, name, json, &args, err);
    if (rc == 0) {
        pthread_mutex_lock(&all.lock);
        rc = declare_locked(name, &args, err);
        pthread_mutex_unlock(&all.lock);
    }
    bh_arena_fini(&a);
    return rc;
}

static const struct bh_plugin *find(const char *name)
{
    pthread_mutex_lock(&all.lock);
    const struct bh_guest_plugin *p = known(name);
    pthread_mutex_unlock(&all.lock);
    return p ? &p->d : all.others ? all.others(name) : NULL;
}

void bh_guest_start(void)
{
    if (!all.others && bh_plugin_find_more != find)
        all.others = bh_plugin_find_more;
    bh_plugin_find_more = find;
    bh_plugin_declare_guest = declare;
}

bool bh_guest_changed(void)
{
    pthread_mutex_lock(&all.lock);
    bool changed = all.changed;
    all.changed = false;
    for (struct seen *s = all.seen, *next; s; s = next) {
        next = s->next;
        free(s->name);
        free(s);
    }
    all.seen = NULL;
    pthread_mutex_unlock(&all.lock);
    return changed;
}

void bh_guest_set_sources(const struct bh_guest_sources *s)
{
    pthread_mutex_lock(&all.lock);
    all.sources = *s;
    pthread_mutex_unlock(&all.lock);
}

/* ---- metrics --------------------------------------------------------------------------------- */

static void on_scrape(void *arg)
{
    struct bh_metrics *m = arg;
    struct bh_metric *calls = bh_metric_find(m, "berth_wasm_calls_total"),
                     *traps = bh_metric_find(m, "berth_wasm_traps_total"),
                     *seconds = bh_metric_find(m, "berth_wasm_seconds_total"),
                     *compiled = bh_metric_find(m, "berth_wasm_compiled"),
                     *memory = bh_metric_find(m, "berth_wasm_memory_bytes"),
                     *instances = bh_metric_find(m, "berth_wasm_instances");

    pthread_mutex_lock(&all.lock);
    for (const struct bh_guest_plugin *p = all.first; p; p = p->next) {
        for (unsigned h = 0; h < BH_GUEST_HOOKS; h++) {
            const char *hook = bh_guest_exports[h].name;
            if (!(p->hooks & BH_GUEST_BIT(h)))
                continue;
            bh_cell_advance(bh_metric_cell(calls, p->name, hook), (double)p->calls[h]);
            bh_cell_advance(bh_metric_cell(traps, p->name, hook), (double)p->traps[h]);
            bh_cell_advance(bh_metric_cell(seconds, p->name, hook), (double)p->ns[h] / 1e9);
        }
        bh_cell_set(bh_metric_cell(memory, p->name), (double)p->pages * (double)BH_WASM_PAGE);
        bh_cell_set(bh_metric_cell(instances, p->name), p->instances);
        bh_cell_set(bh_metric_cell(compiled, p->name), bh_wasm_is_compiled(p->m));
    }
    pthread_mutex_unlock(&all.lock);
}

void bh_guest_set_metrics(struct bh_metrics *m)
{
    if (!all.first || bh_metric_find(m, "berth_wasm_calls_total"))
        return; /* there are no guests, or another engine of the process has said it */
    bh_metric_new(m, BH_COUNTER, "berth_wasm_calls_total", "Hooks of WebAssembly guests that ran.",
                  "plugin,hook", NULL, 0);
    bh_metric_new(m, BH_COUNTER, "berth_wasm_traps_total",
                  "Hooks of WebAssembly guests that trapped.", "plugin,hook", NULL, 0);
    bh_metric_new(m, BH_COUNTER, "berth_wasm_seconds_total",
                  "Time that hooks of WebAssembly guests took; of small ones an estimate.",
                  "plugin,hook", NULL, 0);
    bh_metric_new(m, BH_GAUGE, "berth_wasm_compiled",
                  "1: the guest runs as berth wasmc has compiled it; 0: it is interpreted.",
                  "plugin", NULL, 0);
    bh_metric_new(m, BH_GAUGE, "berth_wasm_memory_bytes",
                  "The most memory that an instance of a WebAssembly guest has had.", "plugin",
                  NULL, 0);
    bh_metric_new(m, BH_GAUGE, "berth_wasm_instances", "Instances of WebAssembly guests.", "plugin",
                  NULL, 0);
    bh_metrics_on_scrape(m, on_scrape, m);
}

/* ---- for people ------------------------------------------------------------------------------ */

static void add_hooks(struct bh_arena *a, const struct bh_guest_plugin *p, struct bh_json *to)
{
    uint64_t calls = 0, traps = 0, ns = 0;
    struct bh_json *hooks = bh_json_new(a, BH_JSON_ARRAY);

    for (unsigned h = 0; h < BH_GUEST_HOOKS; h++) {
        if (!(p->hooks & BH_GUEST_BIT(h)))
            continue;
        bh_json_append(a, hooks, "name: %s, calls: %lu, traps: %lu, microseconds: %lu",
                       bh_guest_exports[h].name, p->calls[h], p->traps[h], p->ns[h] / 1000);
        calls += p->calls[h];
        traps += p->traps[h];
        ns += p->ns[h];
    }
    bh_json_add(a, to, "hooks: %p, calls: %lu, traps: %lu, microseconds: %lu", hooks, calls, traps,
                ns / 1000);
}

struct bh_json *bh_guests_json(struct bh_arena *a)
{
    struct bh_json *list = bh_json_new(a, BH_JSON_ARRAY);

    pthread_mutex_lock(&all.lock);
    for (const struct bh_guest_plugin *p = all.first; p; p = p->next) {
        struct bh_json *o = bh_json_append(a, list, "name: %s, url: %s, sha256: %s, bytes: %zu",
                                           p->name, p->url, p->sha256, p->n_bytes);
        add_hooks(a, p, o);
        bh_json_add(a, o, "memoryBytes: %zu, instances: %u, events: %lu, eventsDropped: %lu",
                    p->pages * BH_WASM_PAGE, p->instances, p->events, p->events_dropped);
        bh_json_add(a, o, "nodeLocal: %i, compiled: %i", p->node_local, bh_wasm_is_compiled(p->m));
        if (*p->last_trap)
            bh_json_add(a, o, "lastTrap: %s", p->last_trap);
    }
    pthread_mutex_unlock(&all.lock);
    return list;
}
