/* SPDX-License-Identifier: Apache-2.0
 *
 * cli/get.c - `berth get nodes|pods`: what the scheduler decides from, as kubectl get shows it
 *
 * No API server is asked (view.h). JSON and YAML have the API's form, with what is known here, and
 * `requested` beside it.
 */
#include <errno.h>
#include <stdio.h>
#include <time.h>

#include "cli/cli.h"
#include "cli/view.h"
#include "common/k8s/quantity.h"
#include "common/k8s/selector.h"
#include "scheduler/explain/explain.h"
#include "scheduler/explain/grid.h"

#define WHO "berth get"
#define WATCH_EVERY                                                                                \
    {                                                                                              \
        .tv_sec = 1                                                                                \
    }
#define NANO 1000000000

struct arguments {
    const char *runtime, *ns, *selector_text, *output;
    bool all_namespaces, no_headers, watch;
    bool pods;                /* nodes otherwise */
    struct bh_opt_list names; /* none: all */
    struct bh_selector *selector;
};
struct printer {
    const struct arguments *a;
    struct bh_view view;
    struct bh_arena arena; /* of one round's documents */
    bool wide, documents;  /* JSON and YAML */
    uint64_t round;
};

/* ---- which rows ------------------------------------------------------------------------------ */

static const char *name_of(const struct printer *p, const struct bh_view_row *r)
{
    return bh_view_name(&p->view, r);
}

static bool is_wanted(const struct printer *p, const struct bh_view_row *r)
{
    const struct arguments *a = p->a;
    const void *rec = r->node ? (const void *)r->node : r->shape;
    struct bh_slice labels = r->node ? r->node->labels : r->shape->labels;
    bool named = !a->names.n;

    for (size_t i = 0; i < a->names.n; i++)
        named |= bh_streq(a->names.v[i], name_of(p, r));
    return named &&
           (r->node || !a->ns || a->all_namespaces ||
            bh_str_eqc(bh_rec_text(r->pod, r->pod->namespace_), a->ns)) &&
           (!a->selector ||
            bh_selector_match_labels(a->selector, bh_rec_at(rec, labels, struct bh_kv), labels.n,
                                     p->view.symtab));
}

static const char *status_of(const struct bh_view_row *r)
{
    if (r->deleted)
        return "Deleted";
    if (r->node)
        return r->node->flags & BH_NODE_UNSCHEDULABLE ? "SchedulingDisabled" : "Schedulable";
    if (r->pod->flags & BH_POD_TERMINATING)
        return "Terminating";
    if (r->pod->node != BH_SYM_NONE)
        return "Bound";
    return r->shape->gates.n ? "SchedulingGated" : r->reason && *r->reason ? r->reason : "Pending";
}

/* ---- tables ---------------------------------------------------------------------------------- */

static int percent(__int128 used, int64_t of)
{
    return of > 0 ? (int)(used * 100 / of) : 0;
}

/* Texts of view.h, "<none>" as kubectl. */
static void add_text_cell(struct bh_grid *g, char *text)
{
    bh_grid_cell(g, 0, "%s", *text ? text : "<none>");
    free(text);
}

static void add_node_row(struct bh_grid *g, const struct printer *p, const struct bh_view_row *r)
{
    const struct bh_node_rec *n = r->node;

    bh_grid_cell(g, 0, "%s", name_of(p, r));
    bh_grid_cell(g, 0, "%s", status_of(r));
    bh_grid_cell(g, BH_CELL_RIGHT, "%lldm", (long long)r->cpu_milli);
    bh_grid_cell(g, BH_CELL_RIGHT, "%d%%", percent(r->cpu_milli, n->alloc_cpu_milli));
    bh_grid_cell(g, BH_CELL_RIGHT, "%lldMi", (long long)(r->memory_bytes >> 20));
    bh_grid_cell(g, BH_CELL_RIGHT, "%d%%", percent(r->memory_bytes, n->alloc_memory_bytes));
    bh_grid_cell(g, BH_CELL_RIGHT, "%llu/%lld", (unsigned long long)r->pods,
                 (long long)n->alloc_pods);
    if (p->wide) {
        bh_grid_cell(g, BH_CELL_RIGHT, "%lldm", (long long)n->alloc_cpu_milli);
        bh_grid_cell(g, BH_CELL_RIGHT, "%lldMi", (long long)(n->alloc_memory_bytes >> 20));
        add_text_cell(g, bh_view_taints_text(&p->view, n));
        add_text_cell(g, bh_view_labels_text(&p->view, n, n->labels));
    }
}

static void add_pod_row(struct bh_grid *g, const struct printer *p, const struct bh_view_row *r)
{
    const struct bh_symtab *tab = p->view.symtab;
    const struct bh_pod_rec *pod = r->pod;
    const bool bound = pod->node != BH_SYM_NONE;

    bh_grid_cell(g, 0, "%s", bh_rec_text(pod, pod->namespace_).p);
    bh_grid_cell(g, 0, "%s", name_of(p, r));
    bh_grid_cell(g, 0, "%s", status_of(r));
    bh_grid_cell(g, 0, "%s", bound ? bh_sym_text(tab, pod->node) : "<none>");
    bh_grid_cell(g, BH_CELL_RIGHT, "%lldm", (long long)r->cpu_milli);
    bh_grid_cell(g, BH_CELL_RIGHT, "%lldMi", (long long)(r->memory_bytes >> 20));
    if (p->wide) {
        const char *nominated = bh_sym_text(tab, pod->nominated_node);
        struct bh_buf age BH_CLEANUP(bh_buf_fini) = {0};
        bh_human_duration(&age, (bh_wall_ns() - pod->creation_ns) / NANO);
        bh_grid_cell(g, 0, "%s", pod->creation_ns ? bh_buf_str(&age) : "<unknown>");
        bh_grid_cell(g, BH_CELL_RIGHT, "%d", (int)r->shape->priority);
        bh_grid_cell(g, 0, "%s", bh_sym_text(tab, r->shape->scheduler_name));
        bh_grid_cell(g, 0, "%s", *nominated ? nominated : "<none>");
        add_text_cell(g, bh_view_labels_text(&p->view, r->shape, r->shape->labels));
        bh_grid_cell(g, 0, "%s", r->message && *r->message ? r->message : "-");
    }
}

static void add_heading(struct bh_grid *g, const struct printer *p)
{
    if (p->a->pods)
        bh_grid_heading(g, 0, "NAMESPACE", "NAME", "STATUS", "NODE", ">CPU", ">MEMORY",
                        p->wide ? "AGE" : NULL, ">PRIORITY", "SCHEDULER", "NOMINATED", "LABELS",
                        "MESSAGE", NULL);
    else
        bh_grid_heading(g, 0, "NAME", "STATUS", ">CPU", ">CPU%", ">MEMORY", ">MEM%", ">PODS",
                        p->wide ? ">CPU-ALLOC" : NULL, ">MEMORY-ALLOC", "TAINTS", "LABELS", NULL);
}

/* ---- documents ------------------------------------------------------------------------------- */

static void write_document(struct bh_buf *out, const struct arguments *a, const struct bh_json *doc)
{
    bool yaml = bh_streq(a->output, "yaml");

    if (yaml && a->watch)
        bh_buf_adds(out, "---\n");
    bh_form_write(out, doc, yaml ? BH_FORM_YAML : BH_FORM_JSON);
}

/* A List, one object that is named alone, or, of a watch, object by object. */
static void print_documents(struct printer *p, struct bh_view_row *const *rows, size_t n,
                            struct bh_buf *out)
{
    struct bh_json *list =
        bh_json_make(&p->arena, "apiVersion: v1, kind: List, metadata: {resourceVersion: ''}, "
                                "items: []");
    const bool alone = p->a->names.n == 1 && n == 1;

    for (size_t i = 0; i < n; i++) {
        struct bh_json *o = rows[i]->node ? bh_view_node_json(&p->view, &p->arena, rows[i])
                                          : bh_view_pod_json(&p->view, &p->arena, rows[i]);
        if (p->a->watch || alone)
            write_document(out, p->a, o);
        else
            bh_json_push(bh_json_get(list, "items"), o);
    }
    if (!p->a->watch && !alone)
        write_document(out, p->a, list);
}

/* ---- printing -------------------------------------------------------------------------------- */

static void print_table(const struct printer *p, struct bh_view_row *const *rows, size_t n,
                        struct bh_buf *out)
{
    struct bh_grid g BH_CLEANUP(bh_grid_fini) = {0};

    if (!p->a->no_headers && p->round == 0 && n)
        add_heading(&g, p);
    for (size_t i = 0; i < n; i++) {
        (rows[i]->node ? add_node_row : add_pod_row)(&g, p, rows[i]);
        bh_grid_row(&g);
    }
    bh_grid_print(&g, out, 0, bh_colour_wanted(STDOUT_FILENO));
}

static void print_rows(struct printer *p, struct bh_view_row *const *rows, size_t n,
                       struct bh_buf *out)
{
    if (p->documents)
        print_documents(p, rows, n, out);
    else if (bh_streq(p->a->output, "name"))
        for (size_t i = 0; i < n; i++)
            bh_buf_addf(out, "%s/%s\n", rows[i]->node ? "node" : "pod", name_of(p, rows[i]));
    else
        print_table(p, rows, n, out);
    bh_arena_reset(&p->arena);
}

/* Every name that was given is there. */
static int check_names(const struct printer *p, struct bh_view_row *const *rows, size_t n)
{
    int status = BH_EXIT_OK;

    for (size_t i = 0; i < p->a->names.n; i++) {
        bool found = false;
        for (size_t k = 0; k < n && !found; k++)
            found = bh_streq(p->a->names.v[i], name_of(p, rows[k]));
        if (found)
            continue;
        status = BH_EXIT_FAIL;
        fprintf(stderr, WHO ": %s \"%s\" not found%s%s%s\n", p->a->pods ? "pod" : "node",
                p->a->names.v[i], p->a->pods && p->a->ns ? " in namespace \"" : "",
                p->a->pods && p->a->ns ? p->a->ns : "", p->a->pods && p->a->ns ? "\"" : "");
    }
    return status;
}

/* The wanted ones among n, in their order; of a watch what differs from the last round. */
static size_t keep_wanted(struct printer *p, struct bh_view_row **rows, size_t n)
{
    size_t kept = 0;

    for (size_t i = 0; i < n; i++) {
        struct bh_view_row *r = rows[i];
        if (!is_wanted(p, r))
            continue;
        if (p->a->watch) {
            struct bh_buf text BH_CLEANUP(bh_buf_fini) = {0};
            bh_json_write(&text, r->node ? bh_view_node_json(&p->view, &p->arena, r)
                                         : bh_view_pod_json(&p->view, &p->arena, r));
            uint64_t hash = bh_hash(text.p, text.n,
                                    r->deleted ? 2
                                    : r->pod   ? r->pod->flags
                                               : 0) |
                            1;
            bh_arena_reset(&p->arena);
            if (hash == r->printed)
                continue;
            r->printed = hash;
        }
        rows[kept++] = r;
    }
    return kept;
}

static int print_round(struct printer *p)
{
    size_t n = 0;
    struct bh_view_row **rows = bh_view_rows(&p->view, p->a->pods, &n);
    struct bh_buf out = {0};
    int status = BH_EXIT_OK;

    n = keep_wanted(p, rows, n);
    if (!n && !p->a->names.n && !p->documents && p->round == 0)
        fprintf(stderr, "No %s found%s%s.\n", p->a->pods ? "pods" : "nodes",
                p->a->pods && p->a->ns ? " in namespace " : "",
                p->a->pods && p->a->ns ? p->a->ns : "");
    if (n || (p->documents && !p->a->names.n))
        print_rows(p, rows, n, &out);
    if (bh_cli_print(WHO, &out) != BH_EXIT_OK)
        status = BH_EXIT_FAIL;
    else if (p->round == 0)
        status = check_names(p, rows, n);
    p->round += n > 0 || p->round > 0;
    free(rows);
    return status;
}

static int run(struct printer *p, struct bh_err *err)
{
    static const struct timespec pause = WATCH_EVERY;
    BH_CLEANUP(bh_freep) char *trouble = NULL;
    char dir[108];
    int rc = bh_cli_find_dir(WHO, p->a->runtime, dir, err);

    if (rc == 0)
        rc = bh_view_open(&p->view, dir, p->a->pods, &trouble, err);
    if (trouble)
        fprintf(stderr, WHO ": pending pods are not shown: %s\n", trouble);
    if (rc < 0)
        return rc;
    int status = print_round(p);
    while (p->a->watch && status == BH_EXIT_OK && rc == 0) {
        (void)nanosleep(&pause, NULL);
        rc = bh_view_follow(&p->view, err);
        status = rc == 0 ? print_round(p) : status;
    }
    return rc < 0 ? rc : status;
}

/* ---- command --------------------------------------------------------------------------------- */

/* 0: nodes, 1: pods, by the names that kubectl knows; n: of the word's bytes. */
static int find_resource(const char *word, struct bh_err *err)
{
    static const char *const names[] = {"nodes node no", "pods pod po"}, *const plural[] = {"nodes",
                                                                                            "pods"};

    for (int i = 0; i < 2; i++)
        if (bh_word_at(names[i], word) >= 0)
            return i;
    for (int i = 0; i < 2; i++)
        if (bh_is_nearer(word, plural[i], &(unsigned){BH_NEAR}))
            return bh_err_set(err, -EINVAL, "unknown resource \"%s\" (did you mean %s?)", word,
                              plural[i]);
    return bh_err_set(err, -EINVAL, "unknown resource \"%s\", expected nodes or pods", word);
}

/* TYPE [NAME...] or TYPE/NAME... of one type; the names stay in words, which are argv's. */
static int read_words(struct arguments *a, struct bh_opt_list *words, struct bh_err *err)
{
    if (words->n == 0)
        return bh_err_set(err, -EINVAL, "say what to get: nodes or pods");
    const char *first = words->v[0];
    const bool slashes = strchr(first, '/');
    for (size_t i = 0; i < (slashes ? words->n : 1); i++) {
        char word[64];
        const char *slash = strchr(words->v[i], '/');
        if (slashes && (!slash || !slash[1]))
            return bh_err_set(err, -EINVAL, "\"%s\": expected TYPE/NAME, as in \"%s\"", words->v[i],
                              first);
        snprintf(word, sizeof(word), "%.*s", slash ? (int)BH_MIN(slash - words->v[i], 63) : 63,
                 words->v[i]);
        int what = find_resource(word, err);
        if (what < 0)
            return what;
        if (i && a->pods != (what == 1))
            return bh_err_set(err, -EINVAL,
                              "nodes and pods have different columns: one type at a "
                              "time");
        a->pods = what == 1;
        if (slashes)
            words->v[i] = slash + 1;
    }
    a->names = (struct bh_opt_list){words->v + !slashes, words->n - !slashes};
    if (a->names.n && a->selector_text)
        return bh_err_set(err, -EINVAL, "name cannot be provided when a selector is specified");
    return 0;
}

int bh_cmd_get(int argc, char **argv)
{
    struct arguments a = {.output = "table"};
    const struct bh_opt table[] = {
        {"namespace", 'n', BH_OPT_STR, &a.ns, "NS", "only pods of this namespace (default: all)"},
        {"all-namespaces", 'A', BH_OPT_BOOL, &a.all_namespaces, NULL,
         "pods of all namespaces, also with --namespace"},
        {"selector", 'l', BH_OPT_STR, &a.selector_text, "SELECTOR",
         "only objects whose labels match, as in kubectl: a=b,c!=d,e in (f,g),!h"},
        {"output", 'o', BH_OPT_CHOICE, &a.output, "table|wide|json|yaml|name",
         "form of the output"},
        {"no-headers", 0, BH_OPT_BOOL, &a.no_headers, NULL, "tables without their first line"},
        {"watch", 'w', BH_OPT_BOOL, &a.watch, NULL, "go on and print what changes, once a second"},
        {"runtime-dir", 0, BH_OPT_STR, &a.runtime, "DIR", "instance to read " BH_INSTANCE_DEFAULT},
        {0},
    };
    struct bh_opt_list rest BH_CLEANUP(bh_opt_list_fini) = {0};
    struct printer p = {.a = &a};
    struct bh_err err = {0};
    int rc = bh_opt_parse(table, bh_cli_help(WHO), argc, argv, &rest, &err);

    if (rc == BH_OPT_WORDS && argc > 2) { /* berth get pods ... */
        int what = find_resource(argv[1], &err);
        if (what >= 0)
            bh_cli_print_names(WHO, what ? "" : NULL, what ? NULL : "");
    }
    rc = rc == 0 ? read_words(&a, &rest, &err) : rc;
    if (rc == 0 && a.selector_text)
        rc = bh_selector_parse(a.selector_text, &a.selector, &err);
    if (rc != 0)
        return bh_cli_usage(WHO, rc, &err);
    p.wide = bh_streq(a.output, "wide");
    p.documents = bh_streq(a.output, "json") || bh_streq(a.output, "yaml");
    rc = run(&p, &err);
    if (p.view.symtab)
        bh_view_close(&p.view);
    bh_selector_free(a.selector);
    bh_arena_fini(&p.arena);
    return rc < 0 ? bh_cli_fail(WHO, &err) : rc;
}
