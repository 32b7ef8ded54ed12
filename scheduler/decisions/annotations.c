/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/decisions/annotations.c - an attempt as kube-scheduler-simulator writes it onto a pod
 *
 * Keys, JSON and text as that project's: maps sorted by key, Go's escapes, "" for plugins that
 * skipped, score maps empty when one node was feasible. What is different on purpose: filter
 * results are those of the attempt itself, not of preemption's dry runs; scores use the weights of
 * the pod's own profile; everything together stays below a bound. Extenders' requests and answers
 * are not recorded, so there are no extender-* keys.
 * Upstream: kube-scheduler-simulator, simulator/scheduler/plugin/resultstore.
 */
#include <errno.h>

#include "common/base/opt.h"
#include "scheduler/decisions/store.h"
#include "scheduler/decisions/writer.h"
#include "scheduler/explain/explain.h"

#define HISTORY_MAX  100u
#define MARKER_BYTES 512u /* what the truncation marker may take */
#define ALL_NODES    UINT32_MAX

enum key {
    BIND,
    FILTER,
    FINAL_SCORE,
    PERMIT,
    PERMIT_TIMEOUT,
    POST_FILTER,
    PRE_BIND,
    PRE_FILTER,
    PRE_FILTER_STATUS,
    PRE_SCORE,
    RESERVE,
    SCORE,
    SELECTED_NODE,
    KEYS
};
static const char *const keys[KEYS] = {
    /* sorted */
    [BIND] = BH_ANNOTATION_PREFIX "bind-result",
    [FILTER] = BH_ANNOTATION_PREFIX "filter-result",
    [FINAL_SCORE] = BH_ANNOTATION_PREFIX "finalscore-result",
    [PERMIT] = BH_ANNOTATION_PREFIX "permit-result",
    [PERMIT_TIMEOUT] = BH_ANNOTATION_PREFIX "permit-result-timeout",
    [POST_FILTER] = BH_ANNOTATION_PREFIX "postfilter-result",
    [PRE_BIND] = BH_ANNOTATION_PREFIX "prebind-result",
    [PRE_FILTER] = BH_ANNOTATION_PREFIX "prefilter-result",
    [PRE_FILTER_STATUS] = BH_ANNOTATION_PREFIX "prefilter-result-status",
    [PRE_SCORE] = BH_ANNOTATION_PREFIX "prescore-result",
    [RESERVE] = BH_ANNOTATION_PREFIX "reserve-result",
    [SCORE] = BH_ANNOTATION_PREFIX "score-result",
    [SELECTED_NODE] = BH_ANNOTATION_PREFIX "selected-node",
};
#define HISTORY_KEY BH_ANNOTATION_PREFIX "result-history"

struct set { /* of one attempt */
    const char *value[KEYS];
    uint32_t left_out; /* nodes */
};

/* ---- Go's JSON ------------------------------------------------------------------------------- */

/* What bh_buf_add_json_str writes, with <, >, &, U+2028 and U+2029 escaped as well. */
static void add_go_string(struct bh_buf *b, const char *s, size_t n)
{
    struct bh_buf plain = {0};

    bh_buf_add_json_str(&plain, s, n);
    for (size_t i = 0; i < plain.n; i++) {
        unsigned char c = (unsigned char)plain.p[i];
        bool line = c == 0xe2 && i + 2 < plain.n && (unsigned char)plain.p[i + 1] == 0x80 &&
                    ((unsigned char)plain.p[i + 2] & 0xfe) == 0xa8;
        if (c == '<' || c == '>' || c == '&') {
            bh_buf_addf(b, "\\u%04x", c);
        } else if (line) {
            bh_buf_addf(b, "\\u202%x", (unsigned char)plain.p[i + 2] & 0xf);
            i += 2;
        } else {
            bh_buf_addc(b, (char)c);
        }
    }
    bh_buf_fini(&plain);
}

struct pair {
    const char *key, *value;
};

static int by_key(const void *a, const void *b)
{
    return strcmp(((const struct pair *)a)->key, ((const struct pair *)b)->key);
}

static void add_pairs(struct bh_buf *b, struct pair *v, uint32_t n)
{
    if (n > 1)
        qsort(v, n, sizeof(*v), by_key);
    bh_buf_addc(b, '{');
    for (uint32_t i = 0; i < n; i++) {
        if (i)
            bh_buf_addc(b, ',');
        add_go_string(b, v[i].key, strlen(v[i].key));
        bh_buf_addc(b, ':');
        add_go_string(b, v[i].value, strlen(v[i].value));
    }
    bh_buf_addc(b, '}');
}

static const char *taken(struct bh_arena *a, struct bh_buf *b)
{
    const char *s = bh_arena_strndup(a, bh_buf_str(b), b->n);

    bh_buf_fini(b);
    return s;
}

static const char *map_of(struct bh_arena *a, struct pair *v, uint32_t n)
{
    struct bh_buf b = {0};

    add_pairs(&b, v, n);
    return taken(a, &b);
}

/* ---- plugins --------------------------------------------------------------------------------- */

static const char *note_map(struct bh_arena *a, const struct bh_plugin_note *v, uint32_t n)
{
    struct pair *p = bh_arena_new_array(a, struct pair, n + 1);

    for (uint32_t i = 0; i < n; i++)
        p[i] = (struct pair){v[i].plugin, !v[i].status ? "success"
                                          : v[i].status->code == BH_SKIP
                                              ? ""
                                              : bh_status_message(a, v[i].status)};
    return map_of(a, p, n);
}

static int by_plugin(const void *a, const void *b)
{
    return strcmp(((const struct bh_plugin_note *)a)->plugin,
                  ((const struct bh_plugin_note *)b)->plugin);
}

static const char *pre_filter_nodes(struct bh_arena *a, const struct bh_symtab *tab,
                                    const struct bh_decision *d)
{
    struct bh_plugin_note *v = bh_arena_new_array(a, struct bh_plugin_note, d->n_pre_filters + 1);
    struct bh_buf b = {0};
    uint32_t n = 0;

    for (uint32_t i = 0; i < d->n_pre_filters; i++)
        if (d->pre_filters[i].narrowed)
            v[n++] = d->pre_filters[i];
    if (n > 1)
        qsort(v, n, sizeof(*v), by_plugin);
    bh_buf_addc(&b, '{');
    for (uint32_t i = 0; i < n; i++) {
        if (i)
            bh_buf_addc(&b, ',');
        add_go_string(&b, v[i].plugin, strlen(v[i].plugin));
        bh_buf_adds(&b, ":[");
        for (uint32_t k = 0; k < v[i].n_nodes; k++) {
            struct bh_str name = bh_sym_str(tab, v[i].nodes[k]);
            bh_buf_adds(&b, k ? "," : "");
            add_go_string(&b, name.p, name.n);
        }
        bh_buf_addc(&b, ']');
    }
    bh_buf_addc(&b, '}');
    return taken(a, &b);
}

static const char *step_map(struct bh_arena *a, const struct bh_record_step *v, uint32_t n,
                            bool timeouts)
{
    struct pair *p = bh_arena_new_array(a, struct pair, n + 1);

    for (uint32_t i = 0; i < n; i++) {
        char text[32];
        bh_format_duration_ns(v[i].timeout_ns, text);
        p[i] = (struct pair){v[i].plugin, timeouts ? bh_arena_strdup(a, text) : v[i].message};
    }
    return map_of(a, p, n);
}

/* The text behind the head, which the arena has; NULL: it begins in another way. */
static const char *behind(const char *text, const char *head)
{
    size_t n = strlen(head);

    return strncmp(text, head, n) == 0 ? text + n : NULL;
}

/* Of a bound pod every plugin says success; of a failed one those before the one that failed. */
static const char *outcome_map(struct bh_arena *a, const struct bh_decision_row *row,
                               const char *point, const char *const *plugins, uint32_t n)
{
    struct pair *p = bh_arena_new_array(a, struct pair, n + 1);
    bool binding = bh_streq(point, "Bind"), failed = row->outcome >= BH_OUTCOME_FAILED;
    uint32_t k = 0;

    if (failed && binding && !strstr(row->outcome_message, "running Bind plugin"))
        n = 0; /* it did not come to that */
    for (uint32_t i = 0; row->outcome >= BH_OUTCOME_BOUND && i < n; i++) {
        /* The plugin's own words out of `running Bind plugin "X": words`. */
        const char *words = NULL;
        if (failed)
            words = behind(row->outcome_message,
                           bh_arena_printf(a, "running %s plugin \"%s\": ", point, plugins[i]));
        p[k++] = (struct pair){plugins[i], words ? words : "success"};
        if (words)
            break;
    }
    return map_of(a, p, k);
}

/* ---- nodes ----------------------------------------------------------------------------------- */

struct kept { /* which nodes are written; both lists are sorted by name */
    bool *score, *rejected;
    uint32_t left_out;
};

/* At most `most`: the best feasible ones, and rejected ones from all over the list. */
static struct kept choose_nodes(struct bh_arena *a, const struct bh_decision *d, uint32_t most)
{
    const struct bh_node_score **ranked = bh_explain_ranked(a, d);
    struct kept k = {.score = bh_arena_new_array(a, bool, d->n_scores + 1),
                     .rejected = bh_arena_new_array(a, bool, d->n_rejected + 1)};
    uint32_t n_rejected = BH_MIN(d->n_rejected, d->n_scores ? most / 4 : most), n_scores;

    if (d->n_scores + (uint64_t)d->n_rejected <= most)
        n_rejected = d->n_rejected;
    n_scores = BH_MIN(d->n_scores, most - n_rejected);
    for (uint32_t i = 0; i < n_scores; i++)
        k.score[ranked[i] - d->scores] = true;
    for (uint32_t i = 0; i < n_rejected; i++)
        k.rejected[(uint64_t)i * d->n_rejected / n_rejected] = true;
    k.left_out = d->n_scores - n_scores + d->n_rejected - n_rejected;
    return k;
}

static void begin_node(struct bh_buf *b, const struct bh_symtab *tab, bh_sym node)
{
    struct bh_str name = bh_sym_str(tab, node);

    bh_buf_addc(b, b->n > 1 ? ',' : '{');
    add_go_string(b, name.p, name.n);
    bh_buf_addc(b, ':');
}

static const char *end_nodes(struct bh_arena *a, struct bh_buf *b)
{
    if (!b->n)
        bh_buf_addc(b, '{');
    bh_buf_addc(b, '}');
    return taken(a, b);
}

/* Filters of one node up to the one that rejected it; s NULL: all passed. */
static const char *filters_of(struct bh_arena *a, const struct bh_decision *d,
                              const struct bh_status *s)
{
    struct pair *p = bh_arena_new_array(a, struct pair, d->n_filter_plugins + 1);
    const char *text = s ? bh_status_message(a, s) : "", *words = NULL;
    uint32_t n = 0;

    if (s && s->code == BH_ERROR && s->plugin) /* without what the framework put before it */
        words = behind(text, bh_arena_printf(a, "running \"%s\" filter plugin: ", s->plugin));
    for (uint32_t i = 0; i < d->n_filter_plugins; i++) {
        bool by = s && s->plugin && bh_streq(s->plugin, d->filter_plugins[i]);
        p[n++] = (struct pair){d->filter_plugins[i], !by ? "passed" : words ? words : text};
        if (by)
            break;
    }
    return map_of(a, p, n);
}

static const char *filter_map(struct bh_arena *a, const struct bh_symtab *tab,
                              const struct bh_decision *d, const struct kept *k)
{
    const char *all = filters_of(a, d, NULL), *last_text = "";
    const struct bh_status *last = NULL;
    uint32_t s = 0, r = 0;
    struct bh_buf b = {0};

    /* The promised node was taken without a look at the others: those are recorded for people. */
    if (d->evaluated < d->n_scores + d->n_rejected && d->n_scores == 1)
        r = d->n_rejected;
    while (s < d->n_scores || r < d->n_rejected) {
        bool feasible = s < d->n_scores &&
                        (r == d->n_rejected || strcmp(bh_sym_text(tab, d->scores[s].node),
                                                      bh_sym_text(tab, d->rejected[r].node)) < 0);
        if (feasible ? !k->score[s] : !k->rejected[r]) {
            feasible ? s++ : r++;
            continue;
        }
        begin_node(&b, tab, feasible ? d->scores[s].node : d->rejected[r].node);
        if (!feasible && d->rejected[r].status != last) {
            last = d->rejected[r].status;
            last_text = filters_of(a, d, last);
        }
        bh_buf_adds(&b, feasible ? all : last_text);
        feasible ? s++ : r++;
    }
    return end_nodes(a, &b);
}

static const char *post_filter_map(struct bh_arena *a, const struct bh_symtab *tab,
                                   const struct bh_decision *d, const struct kept *k)
{
    const char *plugin = "DefaultPreemption";
    struct bh_buf b = {0};

    for (uint32_t i = 0; i < d->n_post_filters; i++)
        if (!d->post_filters[i].status)
            plugin = d->post_filters[i].plugin;
    for (uint32_t i = 0; d->n_post_filters && i < d->n_rejected; i++) {
        bool nominated =
            d->nominated_node != BH_SYM_NONE && d->rejected[i].node == d->nominated_node;
        if (!k->rejected[i] && !nominated)
            continue;
        begin_node(&b, tab, d->rejected[i].node);
        add_pairs(&b, &(struct pair){plugin, "preemption victim"}, nominated);
    }
    return end_nodes(a, &b);
}

static const char *score_map(struct bh_arena *a, const struct bh_symtab *tab,
                             const struct bh_decision *d, const struct kept *k, bool final)
{
    struct pair *p = bh_arena_new_array(a, struct pair, d->n_score_plugins + 1);
    char(*text)[24] = bh_arena_alloc(a, (d->n_score_plugins + 1) * sizeof(*text));
    struct bh_buf b = {0};

    for (uint32_t i = 0; d->scored && i < d->n_scores; i++) {
        const struct bh_plugin_score *v = d->scores[i].plugins;
        uint32_t n = 0;
        if (!k->score[i])
            continue;
        for (uint32_t j = 0; v && j < d->n_score_plugins; j++) {
            if (strchr(v[j].plugin, '/'))
                continue; /* extenders score, too, but they are no plugins */
            snprintf(text[n], sizeof(text[n]), "%lld",
                     (long long)(final ? v[j].weighted : v[j].raw));
            p[n] = (struct pair){v[j].plugin, text[n]};
            n++;
        }
        begin_node(&b, tab, d->scores[i].node);
        add_pairs(&b, p, n);
    }
    return end_nodes(a, &b);
}

/* ---- one attempt ----------------------------------------------------------------------------- */

static void build(struct bh_decisions *d, struct bh_arena *a, uint32_t most, struct set *ret)
{
    const struct bh_decision *dec = &d->got.d;
    const struct bh_record_after *after = &d->got.after;
    const struct bh_symtab *tab = d->names.tab;

    *ret = (struct set){.left_out = 0};
    if (!d->has_body) {
        const struct bh_decision_row *row = &d->row;
        for (unsigned i = 0; i < KEYS; i++)
            ret->value[i] = "{}";
        ret->value[SELECTED_NODE] = row->result == BH_DECIDED ? row->node : "";
        return;
    }
    struct kept k = choose_nodes(a, dec, most);
    ret->left_out = k.left_out;
    ret->value[PRE_FILTER_STATUS] = note_map(a, dec->pre_filters, dec->n_pre_filters);
    ret->value[PRE_FILTER] = pre_filter_nodes(a, tab, dec);
    ret->value[FILTER] = filter_map(a, tab, dec, &k);
    ret->value[POST_FILTER] = post_filter_map(a, tab, dec, &k);
    ret->value[PRE_SCORE] = note_map(a, dec->pre_scores, dec->n_pre_scores);
    ret->value[SCORE] = score_map(a, tab, dec, &k, false);
    ret->value[FINAL_SCORE] = score_map(a, tab, dec, &k, true);
    ret->value[RESERVE] = step_map(a, after->reserve, after->n_reserve, false);
    ret->value[PERMIT] = step_map(a, after->permit, after->n_permit, false);
    ret->value[PERMIT_TIMEOUT] = step_map(a, after->permit, after->n_permit, true);
    ret->value[PRE_BIND] = outcome_map(a, &d->row, "PreBind", after->pre_bind, after->n_pre_bind);
    ret->value[BIND] = outcome_map(a, &d->row, "Bind", after->bind, after->n_bind);
    ret->value[SELECTED_NODE] = dec->kind == BH_DECIDED ? bh_sym_text(tab, dec->node) : "";
}

static size_t size_of(const struct set *s)
{
    size_t n = 0;

    for (unsigned i = 0; i < KEYS; i++)
        n += strlen(keys[i]) + strlen(s->value[i]);
    return n;
}

/* As many nodes as fit. */
static void build_within(struct bh_decisions *d, struct bh_arena *a, uint32_t most, size_t max,
                         struct set *ret)
{
    for (;;) {
        build(d, a, most, ret);
        size_t n = size_of(ret);
        if (n <= max || !most)
            return;
        most = BH_MIN(most, d->got.d.n_scores + d->got.d.n_rejected);
        most = (uint32_t)((uint64_t)most * max / n * 15 / 16);
    }
}

/* ---- history --------------------------------------------------------------------------------- */

/* Ids of the pod's attempts up to this one, newest first; how many there are in all. */
static uint32_t list_history(struct bh_decisions *d, int64_t *ret, uint32_t *ret_all)
{
    sqlite3_stmt *s = bh_decisions_ask(
        d, "SELECT id FROM attempts WHERE pod = ?1 AND uid = ?2 AND id <= ?3 ORDER BY id DESC");
    uint32_t n = 0;

    *ret_all = 0;
    if (!s)
        return 0;
    sqlite3_bind_int64(s, 1,
                       bh_decisions_pod_hash(bh_str_c(d->row.namespace_), bh_str_c(d->row.name)));
    sqlite3_bind_text(s, 2, d->row.uid, -1, SQLITE_TRANSIENT);
    sqlite3_bind_int64(s, 3, d->row.id);
    while (sqlite3_step(s) == SQLITE_ROW) {
        if (n < HISTORY_MAX)
            ret[n++] = sqlite3_column_int64(s, 0);
        ++*ret_all;
    }
    sqlite3_finalize(s);
    return n;
}

/* Newest first until room is used up; written oldest first. Returns how many were left out. */
static uint32_t build_history(struct bh_decisions *d, struct bh_arena *a, const struct set *newest,
                              uint32_t most, size_t room, const char **ret)
{
    int64_t id[HISTORY_MAX];
    const char *entry[HISTORY_MAX];
    uint32_t all, n = list_history(d, id, &all), k = 0;
    struct bh_buf b = {0};
    size_t used = 2;

    for (; k < n; k++) {
        struct set s = *newest;
        if (k && bh_decisions_load(d, id[k], NULL) < 0)
            break;
        if (k)
            build(d, a, most, &s);
        struct pair p[KEYS];
        for (unsigned i = 0; i < KEYS; i++)
            p[i] = (struct pair){keys[i], s.value[i]};
        entry[k] = map_of(a, p, KEYS);
        used += strlen(entry[k]) + 1;
        if (used > room)
            break;
    }
    bh_buf_addc(&b, '[');
    for (uint32_t i = k; i-- > 0;) {
        bh_buf_adds(&b, entry[i]);
        bh_buf_adds(&b, i ? "," : "");
    }
    bh_buf_addc(&b, ']');
    *ret = taken(a, &b);
    return all - k;
}

int bh_decisions_annotations(struct bh_decisions *d, struct bh_arena *a, int64_t id,
                             const struct bh_annotations_query *q, struct bh_json **ret,
                             struct bh_err *err)
{
    size_t max = q && q->max_bytes ? q->max_bytes : BH_ANNOTATIONS_BYTES;
    uint32_t most = q && q->max_nodes ? q->max_nodes : ALL_NODES, attempts = 0;
    const char *history = NULL;
    struct set live;
    int rc = bh_decisions_load(d, id, err);

    *ret = NULL;
    if (rc < 0)
        return rc;
    max -= BH_MIN(max, (size_t)MARKER_BYTES + strlen(HISTORY_KEY));
    build_within(d, a, most, max, &live);
    /* Copied: the attempt's names may go when another one is loaded. */
    for (unsigned i = 0; i < KEYS; i++)
        live.value[i] = bh_arena_strdup(a, live.value[i]);
    size_t used = size_of(&live);
    if (!q || !q->no_history)
        attempts = build_history(d, a, &live, most, max - BH_MIN(used, max), &history);
    struct bh_json *o = bh_json_new(a, BH_JSON_OBJECT);
    if (live.left_out || attempts)
        bh_json_set_str(
            a, o, BH_ANNOTATION_TRUNCATED,
            bh_arena_printf(a,
                            "{\"attempt\":%lld,\"nodesLeftOut\":%u,\"attemptsLeftOut\":%u,"
                            "\"more\":\"berth decisions show %lld; /berth/v1/decisions/%lld\"}",
                            (long long)id, live.left_out, attempts, (long long)id, (long long)id));
    for (unsigned i = 0; i < KEYS; i++) {
        if (i == SCORE && history)
            bh_json_set_str(a, o, HISTORY_KEY, history);
        bh_json_set_str(a, o, keys[i], live.value[i]);
    }
    *ret = o;
    return 0;
}
