/* SPDX-License-Identifier: Apache-2.0
 *
 * cli/queue.c - `berth queue`: the pods that wait for a node, as the running scheduler keeps them
 *
 * The scheduler is asked over its control socket; no API server is needed.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "common/control/ask.h"
#include "cli/cli.h"
#include "common/base/map.h"
#include "scheduler/explain/explain.h"
#include "scheduler/explain/grid.h"

#define WHO           "berth queue"
#define MESSAGE_SHOWN 80u /* bytes of a message in the table form, on a terminal */
#define WATCH_EVERY_S 1

struct row {
    struct bh_json *doc; /* in the listing's arena */
    Berth__QueuePlace place;
    int64_t created_ns, added_ns;
    int64_t backoff_ns; /* its end; at Permit the end of the plugins' patience */
};
struct listing {
    struct bh_arena arena;
    struct row *rows;
    size_t n;
    int64_t now_ns; /* the scheduler's clock */
    uint64_t expected;
    struct bh_progress progress;
    bool groups; /* some pod has one */
};
struct arguments {
    const char *runtime, *ns, *output;
    bool all, watch, no_headers;
    enum bh_form form;
};

/* ---- asking ---------------------------------------------------------------------------------- */

static void on_pod(void *arg, const Berth__QueuePod *p)
{
    struct listing *l = arg;

    l->rows = bh_reallocarray(l->rows, l->n + 1, sizeof(*l->rows));
    l->rows[l->n++] = (struct row){
        .doc = bh_queue_pod_json(&l->arena, p),
        .place = p->place,
        .created_ns = p->created_ns,
        .added_ns = p->added_ns,
        .backoff_ns = p->backoff_ns ? p->backoff_ns : p->permit_ns,
    };
    l->groups |= p->group != NULL;
    bh_progress_draw(&l->progress, l->n, BH_MAX(l->expected, l->n + 1), "%zu pods", l->n);
}

static int by_name(const void *a, const void *b)
{
    const struct bh_json *x = ((const struct row *)a)->doc, *y = ((const struct row *)b)->doc;
    int c = strcmp(bh_json_get_text(x, "namespace"), bh_json_get_text(y, "namespace"));

    return c ? c : strcmp(bh_json_get_text(x, "name"), bh_json_get_text(y, "name"));
}

static int ask(struct bh_ask *k, const struct arguments *a, struct listing *l, struct bh_err *err)
{
    const uint32_t waiting =
        1u << BERTH__QUEUE_PLACE__QUEUE_ACTIVE | 1u << BERTH__QUEUE_PLACE__QUEUE_BACKOFF |
        1u << BERTH__QUEUE_PLACE__QUEUE_ERROR_BACKOFF |
        1u << BERTH__QUEUE_PLACE__QUEUE_UNSCHEDULABLE | 1u << BERTH__QUEUE_PLACE__QUEUE_GATED |
        1u << BERTH__QUEUE_PLACE__QUEUE_WAITING;
    const Berth__ControlReply *r;
    int rc = bh_ask_for(k, BERTH__CONTROL_WHAT__CONTROL_STATUS, &r, err);

    bh_arena_reset(&l->arena);
    l->n = 0;
    if (rc < 0)
        return rc;
    l->now_ns = r->status ? r->status->now_ns : bh_wall_ns();
    l->expected = r->status ? r->status->active + r->status->backoff + r->status->unschedulable +
                                  r->status->gated
                            : 0;
    bh_progress_patient(&l->progress);
    rc = bh_ask_queue(k, a->ns, a->all ? 0 : waiting, on_pod, l, err);
    bh_progress_end(&l->progress);
    if (l->n > 1)
        qsort(l->rows, l->n, sizeof(*l->rows), by_name);
    return rc;
}

/* ---- printing -------------------------------------------------------------------------------- */

static void seconds_cell(struct bh_grid *g, int64_t ns)
{
    struct bh_buf b BH_CLEANUP(bh_buf_fini) = {0};

    bh_human_duration(&b, ns / 1000000000);
    bh_grid_cell(g, 0, "%s", bh_buf_str(&b));
}

static void group_cell(struct bh_grid *g, const struct bh_json *group)
{
    if (group)
        bh_grid_cell(g, 0, "%s: %s", bh_json_get_text(group, "name"),
                     bh_json_get_text(group, "state"));
    else
        bh_grid_cell(g, 0, "-");
}

static void add_row(struct bh_grid *g, const struct listing *l, const struct row *r, bool wide)
{
    static const unsigned looks[] = {[BERTH__QUEUE_PLACE__QUEUE_UNSCHEDULABLE] = BH_CELL_BAD,
                                     [BERTH__QUEUE_PLACE__QUEUE_ERROR_BACKOFF] = BH_CELL_BAD,
                                     [BERTH__QUEUE_PLACE__QUEUE_GATED] = BH_CELL_DIM,
                                     [BERTH__QUEUE_PLACE__QUEUE_BINDING] = BH_CELL_GOOD,
                                     [BERTH__QUEUE_PLACE__QUEUE_IN_FLIGHT] = BH_CELL_GOOD};
    struct bh_buf plugins BH_CLEANUP(bh_buf_fini) = {0};
    size_t place = (size_t)r->place;

    bh_grid_members(g, 0, r->doc, "namespace name");
    bh_grid_cell(g, place < BH_ARRAY_LEN(looks) ? looks[place] : 0, "%s",
                 bh_queue_place_name(r->place));
    bh_grid_members(g, 0, r->doc, ">attempts");
    seconds_cell(g, l->now_ns - (r->created_ns ? r->created_ns : r->added_ns));
    if (r->backoff_ns > l->now_ns)
        seconds_cell(g, r->backoff_ns - l->now_ns + 999999999);
    else
        bh_grid_cell(g, 0, "-");
    if (wide)
        bh_grid_members(g, 0, r->doc,
                        ">priority schedulerName nominatedNode binding.node binding.binder");
    if (l->groups)
        group_cell(g, bh_json_get(r->doc, "group"));
    bh_text_join(&plugins, bh_json_get_list(r->doc, "plugins"), ",");
    bh_grid_cell(g, 0, "%s", plugins.n ? bh_buf_str(&plugins) : "-");
    const char *m = bh_json_get_str(r->doc, "message");
    if (m && !wide && isatty(STDOUT_FILENO) && strlen(m) > MESSAGE_SHOWN)
        bh_grid_cell(g, 0, "%.*s...", (int)MESSAGE_SHOWN - 3, m);
    else
        bh_grid_members(g, 0, r->doc, "message");
    bh_grid_row(g);
}

static void table(const struct listing *l, const struct arguments *a, struct bh_buf *out)
{
    struct bh_grid g BH_CLEANUP(bh_grid_fini) = {0};

    if (!l->n) {
        fprintf(stderr, a->ns ? "No pods wait in namespace \"%s\".\n" : "No pods wait.%.0s\n",
                a->ns ? a->ns : "");
        return;
    }
    bool wide = a->form == BH_FORM_WIDE;
    const char *last[] = {"GROUP", "PLUGINS", "MESSAGE", NULL}, **t = last + !l->groups;
    if (!a->no_headers && wide)
        bh_grid_heading(&g, 0, "NAMESPACE", "NAME", "QUEUE", ">ATTEMPTS", "AGE", "BACKOFF",
                        ">PRIORITY", "SCHEDULER", "NOMINATED", "NODE", "BINDER", t[0], t[1], t[2],
                        NULL);
    else if (!a->no_headers)
        bh_grid_heading(&g, 0, "NAMESPACE", "NAME", "QUEUE", ">ATTEMPTS", "AGE", "BACKOFF", t[0],
                        t[1], t[2], NULL);
    for (size_t i = 0; i < l->n; i++)
        add_row(&g, l, &l->rows[i], wide);
    bh_grid_print(&g, out, 0, bh_colour_wanted(STDOUT_FILENO));
}

static int print(struct listing *l, const struct arguments *a)
{
    struct bh_buf out = {0};

    if (a->form == BH_FORM_TABLE || a->form == BH_FORM_WIDE) {
        table(l, a, &out);
    } else {
        struct bh_json *doc = bh_json_make(
            &l->arena, "kind: QueuedPodList, apiVersion: " BH_EXPLAIN_API ", items: []");
        for (size_t i = 0; i < l->n; i++)
            bh_json_push(bh_json_get(doc, "items"), l->rows[i].doc);
        bh_form_write(&out, doc, a->form);
    }
    return bh_cli_print(WHO, &out);
}

/* ---- watching -------------------------------------------------------------------------------- */

struct seen { /* a pod that was printed; its hash tells whether it has to be again */
    uint64_t hash, round;
    char *ns, *name;
};

static void seen_free(struct seen *s)
{
    free(s->ns);
    free(s->name);
    free(s);
}

/* Leaves only the rows that say something new, and adds one for each pod that left. */
static void keep_news(struct listing *l, struct bh_map *known, uint64_t round)
{
    struct bh_map_entry *e;
    size_t n = 0;

    for (size_t i = 0; i < l->n; i++) {
        struct row *r = &l->rows[i];
        const char *uid = bh_json_get_text(r->doc, "uid");
        struct seen *s = bh_map_get(known, uid, strlen(uid));
        const char *m = bh_json_get_str(r->doc, "message");
        const int64_t v[] = {(int64_t)r->place, bh_json_get_i64(r->doc, "attempts", 0)};
        uint64_t hash = bh_hash(v, sizeof(v), m ? bh_hash(m, strlen(m), 1) : 0);
        bool news = !s || s->hash != hash;
        if (!s) {
            s = bh_calloc(1, sizeof(*s));
            s->ns = bh_strdup(bh_json_get_text(r->doc, "namespace"));
            s->name = bh_strdup(bh_json_get_text(r->doc, "name"));
            (void)bh_map_put(known, uid, strlen(uid), s);
        }
        s->hash = hash;
        s->round = round;
        if (news)
            l->rows[n++] = *r;
    }
    l->n = n;
    for (size_t it = 0; (e = bh_map_next(known, &it));) {
        struct seen *s = e->value;
        Berth__QueuePod gone = BERTH__QUEUE_POD__INIT;
        if (s->round == round)
            continue;
        gone.namespace_ = s->ns;
        gone.name = s->name;
        gone.uid = e->key;
        on_pod(l, &gone);
        l->rows[l->n - 1].created_ns = l->now_ns;
        seen_free(bh_map_del(known, e->key, e->key_len));
    }
}

/* As long as it can: < 0, or BH_EXIT_FAIL when that was told. */
static int watch(struct bh_ask *k, struct arguments *a, struct listing *l, struct bh_err *err)
{
    struct bh_map known = {0};
    struct bh_map_entry *m;
    int rc = 0;

    for (uint64_t round = 1; rc == 0; round++) {
        rc = ask(k, a, l, err);
        if (rc < 0)
            break;
        keep_news(l, &known, round);
        if (l->n && (rc = print(l, a)) != BH_EXIT_OK)
            break;
        a->no_headers = a->no_headers || l->n;
        (void)nanosleep(&(struct timespec){.tv_sec = WATCH_EVERY_S}, NULL);
    }
    for (size_t it = 0; (m = bh_map_next(&known, &it));)
        seen_free(m->value);
    bh_map_fini(&known);
    return rc;
}

/* ---- command --------------------------------------------------------------------------------- */

int bh_cmd_queue(int argc, char **argv)
{
    struct arguments a = {.output = "table"};
    struct listing l = {.n = 0};
    struct bh_err err = {0};
    struct bh_ask k = {.id = 0};
    char dir[108];
    const struct bh_opt table[] = {
        {"namespace", 'n', BH_OPT_STR, &a.ns, "NS", "only this namespace (default: all)"},
        {"all", 0, BH_OPT_BOOL, &a.all, NULL,
         "also pods whose decision is being taken or written to the API server"},
        {"output", 'o', BH_OPT_STR, &a.output, BH_FORMS, "form of the output"},
        {"watch", 'w', BH_OPT_BOOL, &a.watch, NULL, "go on and print what changes, once a second"},
        {"no-headers", 0, BH_OPT_BOOL, &a.no_headers, NULL, "tables without their first line"},
        {"runtime-dir", 0, BH_OPT_STR, &a.runtime, "DIR", "instance to ask " BH_INSTANCE_DEFAULT},
        {0},
    };
    int rc = bh_opt_parse(table, bh_cli_help(WHO), argc, argv, NULL, &err);
    rc = rc != 0 ? rc : bh_form_parse(a.output, &a.form, &err);

    if (rc != 0)
        return bh_cli_usage(WHO, rc, &err);
    rc = bh_cli_find_dir(WHO, a.runtime, dir, &err);
    if (rc == 0)
        rc = bh_ask_open(&k, dir, &err);
    if (rc == 0 && a.watch) {
        rc = watch(&k, &a, &l, &err);
    } else if (rc == 0) {
        rc = ask(&k, &a, &l, &err);
        if (rc == 0)
            rc = print(&l, &a);
    }
    bh_ask_close(&k);
    bh_arena_fini(&l.arena);
    free(l.rows);
    return rc < 0 ? bh_cli_fail(WHO, &err) : rc;
}
