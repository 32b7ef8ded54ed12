/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/scenario/text.c - a short account of a result, for a terminal
 */
#include <errno.h>

#include "scheduler/explain/grid.h"
#include "simulator/scenario/result.h"

#define REASONS_SHOWN 5

struct bh_json *bh_result_parse(struct bh_arena *a, const char *json, size_t n, struct bh_err *err)
{
    struct bh_json *v;

    if (bh_json_parse(a, json, n, 0, &v, err) < 0)
        return NULL;
    if (bh_streq(bh_json_get_text(v, "kind"), "ScenarioResult") &&
        bh_json_first(bh_json_get_list(v, "schedulers")))
        return v;
    bh_err_set(err, -EINVAL, "this is no ScenarioResult with schedulers");
    return NULL;
}

double bh_result_number(const struct bh_json *obj, const char *key)
{
    const struct bh_json *v = bh_json_get(obj, key);

    return v && v->type == BH_JSON_NUMBER ? strtod(v->s.p, NULL) : 0;
}

static void summaries(struct bh_grid *g, const struct bh_json *list)
{
    bh_grid_cell(g, BH_CELL_BOLD, "METRIC");
    bh_json_each(s, list)
        bh_grid_cell(g, BH_CELL_BOLD | BH_CELL_RIGHT, "%s", bh_json_get_text(s, "name"));
    bh_grid_row(g);
    bh_json_each(m, bh_json_get(bh_json_first(list), "summary")) {
        bh_grid_cell(g, 0, "%s", m->key.p);
        bh_json_each(s, list) {
            const struct bh_json *v = bh_json_get(bh_json_get(s, "summary"), m->key.p);
            bh_grid_cell(g, BH_CELL_RIGHT, "%s", v && v->type == BH_JSON_NUMBER ? v->s.p : "-");
        }
        bh_grid_row(g);
    }
}

static void reasons(const struct bh_json *s, bool colour, struct bh_buf *out)
{
    unsigned n = 0;

    bh_json_each(p, bh_json_get(s, "pendingReasons")) {
        if (n++ == REASONS_SHOWN) {
            bh_buf_adds(out, "  ...\n");
            break;
        }
        bh_buf_addf(out, "%s%.0f pending (", n == 1 ? "\n" : "", bh_result_number(p, "count"));
        bh_text_add(out, 0, colour, bh_json_get_text(s, "name"));
        bh_buf_adds(out, "): ");
        bh_text_add(out, 0, colour, bh_json_get_text(p, "message"));
        bh_buf_addc(out, '\n');
    }
}

int bh_scenario_text(const char *json, size_t n, bool colour, struct bh_buf *out,
                     struct bh_err *err)
{
    struct bh_grid g = {0};
    BH_CLEANUP(bh_arena_fini) struct bh_arena a = {.limit_bytes = (size_t)4 << 30};

    const struct bh_json *v = bh_result_parse(&a, json, n, err);
    if (!v)
        return -EINVAL;
    const struct bh_json *list = bh_json_get(v, "schedulers");
    summaries(&g, list);
    bh_grid_print(&g, out, 0, colour);
    bh_grid_fini(&g);
    const struct bh_json *c = bh_json_path(v, "comparison.pods");
    if (c)
        bh_buf_addf(out, "\n%.0f pods on the same node everywhere, %.0f on different ones\n",
                    bh_result_number(c, "same"), bh_result_number(c, "different"));
    bh_json_each(s, list)
        reasons(s, colour, out);
    if (bh_json_first(bh_json_get(bh_json_first(list), "expectations")))
        bh_buf_addc(out, '\n');
    bh_json_each(s, list) {
        bh_json_each(e, bh_json_get(s, "expectations")) {
            bool passed = bh_json_get_bool(e, "passed", false);
            bh_text_add(out, BH_CELL_BOLD | (passed ? BH_CELL_GOOD : BH_CELL_BAD), colour,
                        passed ? "passed" : "FAILED");
            bh_buf_adds(out, "  ");
            bh_text_add(out, 0, colour, bh_json_get_text(s, "name"));
            bh_buf_addf(out, " at %.3f s: ", bh_result_number(e, "at_ns") / 1e9);
            bh_text_add(out, 0, colour, bh_json_get_text(e, "expected"));
            bh_buf_adds(out, "; found ");
            bh_text_add(out, 0, colour, bh_json_get_text(e, "found"));
            bh_buf_addc(out, '\n');
        }
    }
    return 0;
}
