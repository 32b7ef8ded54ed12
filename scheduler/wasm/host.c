/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/wasm/host.c - what a guest may ask of the scheduler, and how it answers
 *
 * Readers have (buffer, limit) -> length: what does not fit is not written. An address outside of
 * the guest's memory ends the hook where the original's does, and is passed over where it passes
 * over it.
 *
 * Upstream: kube-scheduler-wasm-extension, scheduler/plugin/host.go.
 */
#include <endian.h>

#include "common/base/log.h"
#include "scheduler/wasm/guest_int.h"

#define WORDS_MAX  32u   /* of a line that a guest logs */
#define REASON_MAX 1024u /* bytes of a reason: there may be one for each node */
/* Bytes of other answers, and of a line that a guest logs: message, keys and values. */
#define EVENTS_MAX     4096u
#define NAMES_MAX      ((size_t)8 << 20)
#define NODE_NAME_MAX  253u
#define LINE_BYTES     4096u
#define LINES_A_SECOND 256u /* of a guest; the rest is dropped */

static const char memory[] = "out of memory";

/* v[at], v[at + 1]: buffer and limit. oob: the trap's text, NULL: none. */
static bool give(struct bh_wasm *w, uint64_t *v, unsigned at, const void *p, size_t n,
                 const char *oob)
{
    if (n && n <= (uint32_t)v[at + 1]) {
        void *to = bh_wasm_memory(w, (uint32_t)v[at], (uint32_t)n);
        if (!to && oob)
            return bh_wasm_fail(w, "%s", oob);
        if (to)
            memcpy(to, p, n);
    }
    v[0] = (uint32_t)n;
    return true;
}

static bool give_buf(struct bh_wasm *w, uint64_t *v, unsigned at, struct bh_buf *b, const char *oob)
{
    bool good = give(w, v, at, bh_buf_str(b), b->n, oob);

    bh_buf_fini(b);
    return good;
}

/* v[at], v[at + 1]: address and length of what the guest says. NULL: it is not all memory. */
static const char *said(struct bh_wasm *w, const uint64_t *v, unsigned at, struct bh_str *ret)
{
    ret->n = (uint32_t)v[at + 1];
    ret->p = ret->n ? bh_wasm_memory(w, (uint32_t)v[at], (uint32_t)ret->n) : "";
    return ret->p;
}

size_t bh_guest_fits(struct bh_str s, size_t max)
{
    if (s.n <= max)
        return s.n;
    while (max && ((unsigned char)s.p[max] & 0xc0) == 0x80)
        max--;
    return max;
}

static bool keep(struct bh_wasm *w, const uint64_t *v, struct bh_buf *to, size_t max,
                 const char *what)
{
    struct bh_str s;

    if (!said(w, v, 0, &s))
        return bh_wasm_fail(w, "out of memory reading %s", what);
    if (s.n > max)
        return bh_wasm_fail(w, "%s has %zu bytes, at most %zu are allowed", what, s.n, max);
    bh_buf_reset(to);
    bh_buf_add(to, s.p, s.n);
    return true;
}

static struct bh_ext *whole(const struct bh_guest_run *r)
{
    return r->g->env.ext ? *r->g->env.ext : NULL;
}

/* ---- pods and nodes -------------------------------------------------------------------------- */

static bool give_pod(struct bh_guest_run *r, uint64_t *v, const struct bh_pod_info *pod)
{
    struct bh_str ns, name;
    size_t n = 0;
    const void *p = NULL;

    if (!pod)
        return give(r->w, v, 0, "", 0, memory);
    if (whole(r))
        p = bh_ext_whole_pod(whole(r), bh_rec_uid(pod->rec), &n);
    if (p)
        return give(r->w, v, 0, p, n, memory);
    if (pod == r->c->pod && r->pod.n)
        return give(r->w, v, 0, r->pod.p, r->pod.n, memory);
    ns = bh_rec_text(pod->rec, pod->rec->namespace_);
    name = bh_rec_text(pod->rec, pod->rec->name);
    return bh_wasm_fail(r->w, "the object of pod %.*s/%.*s is not known", (int)ns.n, ns.p,
                        (int)name.n, name.p);
}

static bool current_pod(struct bh_wasm *w BH_UNUSED, void *user, uint64_t *v)
{
    struct bh_guest_run *r = user;

    return give_pod(r, v, r->c ? r->c->pod : NULL);
}

static bool target_pod(struct bh_wasm *w BH_UNUSED, void *user, uint64_t *v)
{
    struct bh_guest_run *r = user;

    return give_pod(r, v, r->target);
}

/* Of the hook's node; "" where it has none. */
static struct bh_str hooks_node_name(const struct bh_guest_run *r)
{
    const struct bh_str one_of_many = bh_wasm_about(r->w);

    if (one_of_many.p)
        return one_of_many;
    return r->c ? bh_sym_str(r->c->tab, r->node) : (struct bh_str){"", 0};
}

bool bh_guest_current_node_name(struct bh_wasm *w, void *user, uint64_t *v)
{
    struct bh_str name = hooks_node_name(user);

    return give(w, v, 0, name.p, name.n, NULL);
}

/* The node that the guest names. NULL: the cluster has none. */
static const struct bh_node_info *named(const struct bh_guest_run *r, struct bh_str name)
{
    bh_sym s = r->c ? bh_sym_find(r->c->tab, name.p, name.n) : BH_SYM_NONE;

    return s ? bh_cache_node(r->c->cache, s) : NULL;
}

static bool node(struct bh_wasm *w, void *user, uint64_t *v)
{
    struct bh_guest_run *r = user;
    const struct bh_node_info *ni;
    const void *p = NULL;
    struct bh_str name;
    size_t n = 0;

    if (!said(w, v, 0, &name))
        return bh_wasm_fail(w, "out of memory reading nodeName");
    ni = named(r, name);
    if (ni && whole(r))
        p = bh_ext_whole_node(whole(r), bh_sym_text(r->c->tab, ni->name), &n);
    return give(w, v, 2, p, p ? n : 0, memory);
}

/* Of v0.1.0: that of the hook. */
static bool hooks_node(struct bh_wasm *w, void *user, uint64_t *v)
{
    struct bh_guest_run *r = user;
    struct bh_str name = hooks_node_name(r);
    size_t n = 0;
    const void *p = name.n && whole(r) ? bh_ext_whole_node(whole(r), name.p, &n) : NULL;

    return give(w, v, 0, p, p ? n : 0, memory);
}

static void add_varint(struct bh_buf *b, uint64_t n)
{
    for (; n > 127; n >>= 7)
        bh_buf_addc(b, (char)(n | 128));
    bh_buf_addc(b, (char)n);
}

static void add_item(struct bh_buf *b, const struct bh_guest_run *r, const struct bh_node_info *ni)
{
    size_t n = 0;
    const void *p =
        ni && ni->rec ? bh_ext_whole_node(whole(r), bh_sym_text(r->c->tab, ni->name), &n) : NULL;

    if (!p)
        return;
    bh_buf_addc(b, 18);
    add_varint(b, n);
    bh_buf_add(b, p, n);
}

/* v1.NodeList: metadata without a word, items. */
static bool node_list(struct bh_wasm *w, void *user, uint64_t *v)
{
    static const char metadata[] = {10, 6, 10, 0, 18, 0, 26, 0};
    struct bh_guest_run *r = user;
    struct bh_cache *c = r->c ? r->c->cache : NULL;
    struct bh_buf b = {0};

    bh_buf_add(&b, metadata, sizeof metadata);
    if (r->g->of->first_abi) /* v0.1.0: those that PreScore is given */
        for (uint32_t i = 0; c && whole(r) && i < r->n_rows; i++)
            add_item(&b, r, c->rows[r->rows[i]]);
    else
        for (uint32_t row = 0; c && whole(r) && row < c->cap_rows; row++)
            add_item(&b, r, c->rows[row]);
    return give_buf(w, v, 0, &b, memory);
}

/* ---- lists as JSON --------------------------------------------------------------------------- */

static void add_name(struct bh_buf *b, const struct bh_guest_run *r, bh_sym name)
{
    struct bh_str s = bh_sym_str(r->c->tab, name);

    bh_buf_add_json_str(b, s.p, s.n);
}

static bool filtered_node_list(struct bh_wasm *w, void *user, uint64_t *v)
{
    struct bh_guest_run *r = user;
    struct bh_buf b = {0};

    bh_buf_addc(&b, '[');
    for (uint32_t i = 0; i < r->n_rows; i++) {
        bh_buf_adds(&b, i ? "," : "");
        add_name(&b, r, r->c->cache->rows[r->rows[i]]->name);
    }
    bh_buf_addc(&b, ']');
    return give_buf(w, v, 0, &b, NULL);
}

/* Names with a number, in the order of the names, as Go writes a map. */
struct named_number {
    const char *name;
    int64_t number;
};

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct named_number *)a)->name, ((const struct named_number *)b)->name);
}

static bool give_numbers(struct bh_wasm *w, uint64_t *v, struct named_number *list, size_t n)
{
    struct bh_buf b = {0};

    qsort(list, n, sizeof *list, by_name);
    bh_buf_addc(&b, '{');
    for (size_t i = 0; i < n; i++) {
        bh_buf_adds(&b, i ? "," : "");
        bh_buf_add_json_str(&b, list[i].name, strlen(list[i].name));
        bh_buf_addc(&b, ':');
        bh_buf_addi64(&b, list[i].number);
    }
    bh_buf_addc(&b, '}');
    free(list);
    return give_buf(w, v, 0, &b, NULL);
}

static bool node_score_list(struct bh_wasm *w, void *user, uint64_t *v)
{
    struct bh_guest_run *r = user;
    size_t n = r->scores ? r->g->n_scored : 0;
    struct named_number *list = bh_calloc(n + 1, sizeof *list);

    for (size_t i = 0; i < n; i++)
        list[i] = (struct named_number){bh_sym_text(r->c->tab, r->g->scored[i]), r->scores[i]};
    return give_numbers(w, v, list, n);
}

static bool node_to_status_map(struct bh_wasm *w, void *user, uint64_t *v)
{
    struct bh_guest_run *r = user;
    const struct bh_diagnosis *d = r->why;
    uint32_t n_rows = d && d->by_row ? BH_MIN(d->n_rows, r->c->cache->cap_rows) : 0;
    struct named_number *list = bh_calloc(n_rows + 1u, sizeof *list);
    size_t n = 0;

    for (uint32_t row = 0; row < n_rows; row++)
        if (d->by_row[row] && r->c->cache->rows[row])
            list[n++] = (struct named_number){bh_sym_text(r->c->tab, r->c->cache->rows[row]->name),
                                              d->by_row[row]->code};
    return give_numbers(w, v, list, n);
}

static bool node_image_states(struct bh_wasm *w, void *user, uint64_t *v)
{
    struct bh_guest_run *r = user;
    struct bh_buf b = {0};
    struct bh_str name;

    if (!said(w, v, 0, &name))
        return bh_wasm_fail(w, "out of memory reading nodeName");
    const struct bh_node_info *ni = named(r, name);
    if (!ni)
        return give(w, v, 2, "null", 4, NULL);
    const struct bh_image *image = bh_rec_at(ni->rec, ni->rec->images, struct bh_image);
    uint32_t n = ni->rec->images.n;
    struct named_number *list = bh_calloc(n + 1u, sizeof *list);
    for (uint32_t i = 0; i < n; i++)
        list[i] = (struct named_number){bh_sym_text(r->c->tab, image[i].name), image[i].name};
    qsort(list, n, sizeof *list, by_name);
    for (uint32_t i = 0; i < n; i++) {
        const struct bh_image_state *s = bh_node_info_image(ni, (bh_sym)list[i].number);
        if (!s)
            continue;
        bh_buf_addc(&b, b.n ? ',' : '{');
        bh_buf_add_json_str(&b, list[i].name, strlen(list[i].name));
        bh_buf_addf(&b, ":{\"Size\":%lld,\"NumNodes\":%u,\"Nodes\":null}", (long long)s->size_bytes,
                    s->node_count);
    }
    free(list);
    bh_buf_adds(&b, b.n ? "}" : "{}");
    return give_buf(w, v, 2, &b, NULL);
}

/* ---- answers --------------------------------------------------------------------------------- */

static bool get_config(struct bh_wasm *w, void *user, uint64_t *v)
{
    const char *config = ((struct bh_guest_run *)user)->g->args.config;

    return give(w, v, 0, config, config ? strlen(config) : 0, NULL);
}

static bool cluster_events(struct bh_wasm *w, void *user, uint64_t *v)
{
    return keep(w, v, &((struct bh_guest_run *)user)->events, EVENTS_MAX, "clusterEvents");
}

static bool node_names(struct bh_wasm *w, void *user, uint64_t *v)
{
    return keep(w, v, &((struct bh_guest_run *)user)->node_names, NAMES_MAX, "nodeNames");
}

static bool nominated_node_name(struct bh_wasm *w, void *user, uint64_t *v)
{
    return keep(w, v, &((struct bh_guest_run *)user)->nominated, NODE_NAME_MAX,
                "nominatedNodeName");
}

static bool status_reason(struct bh_wasm *w, void *user, uint64_t *v)
{
    struct bh_buf *to = &((struct bh_guest_run *)user)->reason;
    struct bh_str s;

    bh_buf_reset(to);
    if (said(w, v, 0, &s))
        bh_buf_add(to, s.p, bh_guest_fits(s, REASON_MAX));
    else
        bh_buf_adds(to, "BUG: out of memory reading message");
    return true;
}

static bool normalized_score_list(struct bh_wasm *w, void *user, uint64_t *v)
{
    struct bh_guest_run *r = user;
    struct bh_err err = {0};
    struct bh_str s;

    if (!said(w, v, 0, &s))
        return bh_wasm_fail(w, "out of memory reading normalizedScoreList");
    bh_arena_reset(&r->arena);
    if (bh_json_parse(&r->arena, s.p, s.n, 0, &r->normalized, &err) == 0)
        return true;
    r->normalized = NULL;
    return bh_wasm_fail(w, "normalized scores: %s", err.msg);
}

/* ---- handle ---------------------------------------------------------------------------------- */

static bool waits(const struct bh_guest_run *r, struct bh_str uid)
{
    const char *who[1];
    int64_t until = 0;

    return r->g->env.waiting && uid.n &&
           (bh_waiting_for(bh_waiting_find(r->g->env.waiting, uid), who, 1, &until) || until);
}

static bool write64(struct bh_wasm *w, uint64_t at, uint64_t value)
{
    void *p = bh_wasm_memory(w, (uint32_t)at, 8);

    value = htole64(value);
    if (p)
        memcpy(p, &value, 8);
    return p;
}

static bool reject_waiting_pod(struct bh_wasm *w, void *user, uint64_t *v)
{
    struct bh_guest_run *r = user;
    struct bh_str uid;
    bool done = said(w, v, 0, &uid) && waits(r, uid) &&
                bh_waiting_reject(r->g->env.waiting, uid, r->g->of->name, "removed");

    (void)write64(w, v[2], done);
    return true;
}

static bool get_waiting_pod(struct bh_wasm *w, void *user, uint64_t *v)
{
    struct bh_guest_run *r = user;
    struct bh_str uid;
    size_t n = 0;
    const void *p = NULL;

    if (!said(w, v, 0, &uid))
        return bh_wasm_fail(w, "out of memory reading uid");
    if (waits(r, uid) && whole(r))
        p = bh_ext_whole_pod(whole(r), uid, &n);
    if (!p)
        return write64(w, v[2], 0) || bh_wasm_fail(w, "%s", memory);
    return give(w, v, 2, p, n, memory);
}

static bool eventf(struct bh_wasm *w, void *user, uint64_t *v)
{
    struct bh_str s;

    return said(w, v, 0, &s) ? bh_guest_eventf(user, s)
                             : bh_wasm_fail(w, "out of memory reading event");
}

/* ---- klog ------------------------------------------------------------------------------------ */

static bool severity(struct bh_wasm *w BH_UNUSED, void *user, uint64_t *v)
{
    v[0] = (uint32_t)((struct bh_guest_run *)user)->g->args.severity;
    return true;
}

/* Keys stand in a log's line as they are: one of a guest's must not begin another line, or a value. */
static char *as_key(char *s)
{
    for (char *c = s; *c; c++)
        if ((unsigned char)*c <= ' ' || *c == '=' || *c == '"' || *c == '\x7f')
            *c = '_';
    return s;
}

/* kvs: texts with a NUL behind each: key, value, key ... Empty ones do not count, as the original
 * splits them. */
static void write_log(const struct bh_guest_run *r, int32_t level, struct bh_str msg,
                      struct bh_str kvs)
{
    struct bh_log_kv kv[WORDS_MAX + 2] = {bh_kv_s("plugin", r->g->of->name)};
    msg.n = bh_guest_fits(msg, LINE_BYTES);
    kvs.n = bh_guest_fits(kvs, LINE_BYTES);
    char *text = bh_strndup(msg.p, msg.n), *words = bh_calloc(kvs.n + 1, 1), *key = NULL;
    size_t n = strlen(text);
    unsigned n_kv = 1;

    memcpy(words, kvs.p, kvs.n); /* NULs and all */
    while (n && text[n - 1] == '\n')
        text[--n] = '\0';
    for (char *p = words, *end = words + kvs.n; p < end && n_kv <= WORDS_MAX; p += strlen(p) + 1) {
        if (!*p)
            continue;
        if (key)
            kv[n_kv++] = bh_kv_s(as_key(key), p);
        key = key ? NULL : p;
    }
    kv[n_kv] = (struct bh_log_kv){.kind = BH_LOG_END};
    bh_log_write(level <= 0   ? BH_LOG_INFO
                 : level == 1 ? BH_LOG_WARN
                              : BH_LOG_ERROR,
                 __FILE__, __LINE__, text, kv);
    free(text);
    free(words);
}

static bool may_log(struct bh_guest_plugin *p)
{
    const uint64_t second = bh_mono_ns() / 1000000000;

    if (second != p->logs_second)
        p->n_logs = 0;
    p->logs_second = second;
    if (p->n_logs == LINES_A_SECOND)
        bh_log_warn("Lines of a guest are dropped: it logs too many", bh_kv_s("plugin", p->name),
                    bh_kv_u("aSecond", LINES_A_SECOND));
    p->n_logs += p->n_logs <= LINES_A_SECOND;
    return p->n_logs <= LINES_A_SECOND;
}

static bool logs(struct bh_wasm *w, void *user, uint64_t *v)
{
    struct bh_guest_run *r = user;
    struct bh_str msg, kvs;

    if ((int32_t)v[0] >= r->g->args.severity && said(w, v, 1, &msg) && said(w, v, 3, &kvs) &&
        may_log(r->g->of))
        write_log(r, (int32_t)v[0], msg, kvs);
    return true;
}

static bool log_line(struct bh_wasm *w, void *user, uint64_t *v)
{
    struct bh_guest_run *r = user;
    struct bh_str msg;

    if ((int32_t)v[0] >= r->g->args.severity && said(w, v, 1, &msg) && may_log(r->g->of))
        write_log(r, (int32_t)v[0], msg, (struct bh_str){"", 0});
    return true;
}

const struct bh_wasm_host bh_guest_host[] = {
    {"k8s.io/scheduler", "get_config", "ii:i", get_config},
    {"k8s.io/scheduler", "currentPod", "ii:i", current_pod},
    {"k8s.io/scheduler", "targetPod", "ii:i", target_pod},
    {"k8s.io/scheduler", "currentNodeName", "ii:i", bh_guest_current_node_name},
    {"k8s.io/scheduler", "filteredNodeList", "ii:i", filtered_node_list},
    {"k8s.io/scheduler", "nodeScoreList", "ii:i", node_score_list},
    {"k8s.io/scheduler", "nodeToStatusMap", "ii:i", node_to_status_map},
    {"k8s.io/scheduler", "nodeImageStates", "iiii:i", node_image_states},
    {"k8s.io/scheduler", "result.cluster_events", "ii:", cluster_events},
    {"k8s.io/scheduler", "result.node_names", "ii:", node_names},
    {"k8s.io/scheduler", "result.nominated_node_name", "ii:", nominated_node_name},
    {"k8s.io/scheduler", "result.status_reason", "ii:", status_reason},
    {"k8s.io/scheduler", "result.normalized_score_list", "ii:", normalized_score_list},
    {"k8s.io/scheduler", "handle.eventrecorder.eventf", "ii:", eventf},
    {"k8s.io/scheduler", "handle.reject_waiting_pod", "iiii:", reject_waiting_pod},
    {"k8s.io/scheduler", "handle.get_waiting_pod", "iiii:", get_waiting_pod},
    {"k8s.io/api", "node", "iiii:i", node},
    {"k8s.io/api", "nodeList", "ii:i", node_list},
    /* Names of v0.1.0; its node is told apart by its type. */
    {"k8s.io/api", "node", "ii:i", hooks_node},
    {"k8s.io/api", "nodeName", "ii:i", bh_guest_current_node_name},
    {"k8s.io/api", "pod", "ii:i", current_pod},
    {"k8s.io/api", "podInfo", "ii:i", target_pod},
    {"k8s.io/klog", "severity", ":i", severity},
    {"k8s.io/klog", "log", "iii:", log_line},
    {"k8s.io/klog", "logs", "iiiii:", logs},
};
const size_t bh_guest_n_host = BH_ARRAY_LEN(bh_guest_host);
