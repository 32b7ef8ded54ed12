/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/offline/explain.c - one decision as a document, and what two of them differ in
 */
#include "simulator/offline/offline.h"

#include "scheduler/explain/explain.h"

struct bh_json *bh_offline_explain(struct bh_offline *w, const struct bh_pending *p,
                                   struct bh_arena *a)
{
    struct bh_explain_subject subject = bh_explain_subject_of(w->engine, p);
    const struct bh_status *gate = bh_engine_pre_enqueue(w->engine, p);

    if (gate)
        return bh_explain_gated(a, &subject, gate);
    return bh_explain_decision(
        a, &subject, bh_engine_symtab(w->engine),
        bh_engine_schedule(w->engine, p, w->o.flags | BH_EXPLAIN, w->now_ns));
}

/* ---- the difference -------------------------------------------------------------------------- */

static char *verdict_of(struct bh_arena *a, const struct bh_json *rejected)
{
    BH_CLEANUP(bh_buf_fini) struct bh_buf b = {0};

    bh_buf_addf(&b, "%s:", bh_json_get_text(rejected, "plugin"));
    bh_json_each(r, bh_json_get_list(rejected, "reasons"))
        bh_buf_addf(&b, "%s %s", b.p[b.n - 1] == ':' ? "" : ",",
                    bh_json_cstr(r) ? bh_json_cstr(r) : "");
    return bh_arena_strdup(a, bh_buf_str(&b));
}

/* Node -> how it came out, as text. */
static void outcomes(struct bh_arena *a, const struct bh_json *explanation, struct bh_map *map)
{
    bool scored = bh_json_get_bool(explanation, "scored", false);

    bh_json_each(v, bh_json_get_list(explanation, "ranking")) {
        const char *node = bh_json_get_text(v, "node");
        char *s = scored ? bh_arena_printf(a, "feasible, rank %lld, score %lld",
                                           (long long)bh_json_get_i64(v, "rank", 0),
                                           (long long)bh_json_get_i64(v, "total", 0))
                         : bh_arena_strdup(a, "feasible");
        (void)bh_map_put(map, node, strlen(node), s);
    }
    bh_json_each(v, bh_json_get_list(explanation, "rejected")) {
        const char *node = bh_json_get_text(v, "node");
        (void)bh_map_put(map, node, strlen(node), verdict_of(a, v));
    }
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static struct bh_json *changed_nodes(struct bh_arena *a, const struct bh_map *before,
                                     const struct bh_map *after, int64_t *ret_same)
{
    const char **names = bh_calloc(before->len + after->len + 1, sizeof(*names));
    struct bh_json *list = bh_json_new(a, BH_JSON_ARRAY);
    struct bh_map_entry *m;
    size_t n = 0;

    *ret_same = 0;
    for (size_t it = 0; (m = bh_map_next(before, &it));) {
        const char *y = bh_map_get(after, m->key, m->key_len);
        if (y && bh_streq(y, m->value))
            ++*ret_same;
        else
            names[n++] = m->key;
    }
    for (size_t it = 0; (m = bh_map_next(after, &it));)
        if (!bh_map_get(before, m->key, m->key_len))
            names[n++] = m->key;
    if (n > 1)
        qsort(names, n, sizeof(*names), by_text);
    for (size_t i = 0; i < n; i++) {
        const char *x = bh_map_get(before, names[i], strlen(names[i]));
        const char *y = bh_map_get(after, names[i], strlen(names[i]));
        bh_json_append(a, list, "node: %s, before: %s, after: %s", names[i], x ? x : "-",
                       y ? y : "-");
    }
    free(names);
    return list;
}

static char *result_of(struct bh_arena *a, const struct bh_json *e)
{
    const struct bh_json *p = bh_json_get(e, "preemption");
    const char *node = bh_json_get_text(e, "nodeName");
    const struct bh_json *victims = bh_json_get_list(p, "victims");

    if (*node)
        return bh_arena_printf(a, "%s on %s", bh_json_get_text(e, "result"), node);
    if (p)
        return bh_arena_printf(a, "%s, evicts %zu for node %s: %s", bh_json_get_text(e, "result"),
                               victims ? victims->c.n : 0, bh_json_get_text(p, "nominatedNode"),
                               bh_json_get_text(e, "message"));
    return bh_arena_printf(a, "%s: %s", bh_json_get_text(e, "result"),
                           bh_json_get_text(e, "message"));
}

struct bh_json *bh_explain_difference(struct bh_arena *a, const struct bh_json *before,
                                      const struct bh_json *after)
{
    BH_CLEANUP(bh_map_fini) struct bh_map x = {0}, y = {0};
    int64_t same;

    outcomes(a, before, &x);
    outcomes(a, after, &y);
    struct bh_json *nodes = changed_nodes(a, &x, &y, &same);
    return bh_json_make(a, "result: {before: %s, after: %s}, nodes: %p, unchanged: %ld",
                        result_of(a, before), result_of(a, after), nodes, same);
}
