/* SPDX-License-Identifier: Apache-2.0
 *
 * cli/guests.c - WebAssembly guests of the running scheduler, for `berth plugins`
 */
#include <errno.h>
#include <unistd.h>

#include "cli/cli.h"
#include "scheduler/explain/explain.h"
#include "common/control/ask.h"
#include "scheduler/explain/grid.h"

#define DIGEST_SHOWN 12 /* characters, as git shows commits */

int bh_cli_guests(const char *runtime_dir, struct bh_arena *a, struct bh_json **ret,
                  struct bh_err *err)
{
    const Berth__ControlReply *r = NULL;
    struct bh_ask k = {0};
    int rc = bh_ask_open(&k, runtime_dir, err);

    *ret = bh_json_new(a, BH_JSON_ARRAY);
    if (rc == -ENOENT)
        return 0;
    rc = rc < 0 ? rc : bh_ask_for(&k, BERTH__CONTROL_WHAT__CONTROL_CONFIG, &r, err);
    const char *text = rc == 0 && r->config ? r->config->guests_json : NULL;
    if (text) {
        rc = bh_json_parse(a, text, strlen(text), BH_JSON_STRICT, ret, err);
        if (rc == 0 && (*ret)->type != BH_JSON_ARRAY)
            rc = bh_err_set(err, -EPROTO, "the scheduler's guests: a list is needed");
        if (rc < 0)
            bh_err_prefix(err, rc, "the scheduler's guests");
    }
    bh_ask_close(&k);
    return rc;
}

static void add_row(struct bh_grid *g, const struct bh_json *p)
{
    struct bh_buf hooks BH_CLEANUP(bh_buf_fini) = {0};
    int64_t calls = bh_json_get_i64(p, "calls", 0), traps = bh_json_get_i64(p, "traps", 0),
            us = bh_json_get_i64(p, "microseconds", 0);

    bh_json_each(h, bh_json_get_list(p, "hooks"))
        bh_buf_addf(&hooks, "%s%s", hooks.n ? "," : "", bh_json_get_text(h, "name"));
    bh_grid_members(g, 0, p, "name >calls");
    bh_grid_cell(g, BH_CELL_RIGHT | (traps ? BH_CELL_BAD : 0), "%ld", (long)traps);
    bh_grid_cell(g, BH_CELL_RIGHT, "%.2f", calls ? (double)us / (double)calls : 0);
    bh_grid_cell(g, BH_CELL_RIGHT, "%.1f", (double)bh_json_get_i64(p, "memoryBytes", 0) / 1048576);
    bh_grid_members(g, 0, p, ">instances >events");
    bh_grid_cell(g, 0, "%.*s", DIGEST_SHOWN, bh_json_get_text(p, "sha256"));
    bh_grid_cell(g, 0, "%s", bh_json_get_bool(p, "compiled", false) ? "compiled" : "interpreted");
    bh_grid_cell(g, 0, "%s", bh_buf_str(&hooks));
    bh_grid_members(g, 0, p, "url");
    bh_grid_row(g);
}

/* A stack trace, line by line; the text is a guest's. */
static void add_lines(struct bh_buf *out, const char *text)
{
    while (*text) {
        size_t n = strcspn(text, "\n");
        BH_CLEANUP(bh_freep) char *line = bh_strndup(text, n);
        const char *p = line + (*line == '\t');
        bh_buf_adds(out, *line == '\t' ? "    " : "  ");
        bh_text_add(out, 0, false, p);
        bh_buf_addc(out, '\n');
        text += n + (text[n] == '\n');
    }
}

void bh_cli_add_guests(struct bh_buf *out, const struct bh_json *guests)
{
    struct bh_grid g BH_CLEANUP(bh_grid_fini) = {0};
    bool colour = bh_colour_wanted(STDOUT_FILENO);

    if (!guests->c.n)
        return;
    if (out->n)
        bh_buf_addc(out, '\n');
    bh_grid_heading(&g, 0, "GUEST", ">CALLS", ">TRAPS", ">US/CALL", ">MIB", ">INSTANCES", ">EVENTS",
                    "SHA256", "CODE", "HOOKS", "URL", NULL);
    bh_json_each(p, guests)
        add_row(&g, p);
    bh_grid_print(&g, out, 0, colour);
    bh_json_each(p, guests) {
        const char *trap = bh_json_get_text(p, "lastTrap");
        if (!*trap)
            continue;
        bh_buf_addf(out, "\nLast trap of %s:\n", bh_json_get_text(p, "name"));
        add_lines(out, trap);
    }
}
