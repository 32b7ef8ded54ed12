/* SPDX-License-Identifier: Apache-2.0
 *
 * cli/import.c - `berth import`: a real cluster's scheduling state, once, into another API server
 *
 * Kind by kind in the order in which they refer to one another, page by page; a page is written
 * before the next is asked for, so memory does not grow with the cluster. A list that expires in
 * the middle (410) begins again: what was written already is found unchanged.
 */
#include "cli/cluster.h"

#include <errno.h>
#include <unistd.h>

#include "common/data/yaml.h"
#include "common/k8s/codec.h"
#include "scheduler/explain/grid.h"

#define WHO           "berth import"
#define PAGE          500
#define RELISTS       3
#define PARALLEL      32
#define LISTED        20
#define MESSAGE_BYTES 400

struct count {
    uint64_t read, by[BH_APPLIED_COUNT], skipped, finished;
    char refused[MESSAGE_BYTES]; /* the source does not let us read this kind */
};
struct failure {
    const char *kind;
    char *name, *message;
};
struct import {
    struct bh_session session; /* its arena: of a page */
    struct bh_take take;
    struct bh_applier *applier;
    FILE *manifests;
    struct count count[64]; /* by kind's place in the table */
    struct failure fail[LISTED];
    size_t n_fail;
    uint64_t total;
    bool dry_run;
};

static struct count *count_of(struct import *im, const struct bh_clean_kind *k)
{
    bh_assert(bh_clean_n_kinds <= BH_ARRAY_LEN(im->count));
    return &im->count[k - bh_clean_kinds];
}

static void on_result(void *arg, const struct bh_clean_kind *k, const char *ns, const char *name,
                      enum bh_applied what, const char *message)
{
    struct import *im = arg;
    bool bad = what == BH_APPLIED_FAILED || what == BH_APPLIED_DIFFERENT;

    count_of(im, k)->by[what]++;
    if (!bad || im->n_fail == LISTED)
        return;
    im->fail[im->n_fail++] = (struct failure){
        k->kind, bh_asprintf("%s%s%s", ns, *ns ? "/" : "", name), bh_strdup(message)};
}

/* ---- reading --------------------------------------------------------------------------------- */

static void take_one(struct import *im, const struct bh_clean_kind *k, struct bh_json *obj)
{
    struct count *n = count_of(im, k);
    const char *why;
    char av[80];

    bh_json_add(&im->session.arena, obj, "apiVersion: %s, kind: %s", bh_clean_api_version(k, av),
                k->kind);
    struct bh_json *o = bh_take_object(&im->take, &im->session.arena, k, obj, &why);
    n->read++;
    if (why) {
        n->skipped++;
        n->finished += bh_streq(why, "finished");
        return;
    }
    if (im->manifests) {
        struct bh_buf b BH_CLEANUP(bh_buf_fini) = {0};
        struct bh_json *status = bh_clean_new(&im->session.arena, k, o);
        if (bh_streq(k->kind, "Pod") && status)
            bh_json_set(&im->session.arena, o, "status", status);
        bh_buf_adds(&b, "---\n");
        bh_yaml_write(&b, o);
        fwrite(b.p, 1, b.n, im->manifests);
    } else if (!im->dry_run)
        bh_applier_put(im->applier, k, o);
}

static int read_pages(struct import *im, const struct bh_clean_kind *k, struct bh_err *err)
{
    BH_CLEANUP(bh_freep) char *cont = bh_strdup("");
    int rc;

    do {
        struct bh_json *list = NULL;
        bh_arena_reset(&im->session.arena);
        struct bh_buf query BH_CLEANUP(bh_buf_fini) = {0}, body BH_CLEANUP(bh_buf_fini) = {0};
        bh_buf_addf(&query, "?limit=%d%s", PAGE, *cont ? "&continue=" : "");
        bh_url_escape(&query, cont);
        rc = bh_cluster_list(&im->session.from, k, bh_buf_str(&query), &body, err);
        rc = rc < 0 ? rc
                    : bh_json_parse(&im->session.arena, body.p, body.n, BH_JSON_NUL, &list, err);
        if (rc < 0)
            return rc;
        for (struct bh_json *m = bh_json_first(bh_json_get(list, "items")), *after; m; m = after) {
            after = m->next;
            if (m->type == BH_JSON_OBJECT)
                take_one(im, k, m);
        }
        im->total = count_of(im, k)->read;
        while (im->applier && bh_applier_backlog(im->applier) && !im->session.stopping)
            uv_run(&im->session.loop, UV_RUN_ONCE);
        bh_progress_draw(&im->session.progress, 0, 0, "%s: %llu", k->plural,
                         (unsigned long long)im->total);
        const char *next = bh_json_get_text(bh_json_get(list, "metadata"), "continue");
        if (*next && bh_streq(next, cont))
            return bh_err_set(err, -EPROTO, "%s: the list goes round in circles", k->plural);
        free(cont);
        cont = bh_strdup(next);
    } while (*cont && !im->session.stopping);
    return 0;
}

/* A kind that cannot be read is reported; only a source that is gone ends the import. */
static int read_kind(struct import *im, const struct bh_clean_kind *k, struct bh_err *err)
{
    struct count *n = count_of(im, k);
    int rc = -ESTALE;

    for (unsigned i = 0; rc == -ESTALE && i < RELISTS; i++) {
        n->read = n->skipped = n->finished = 0; /* what was written is now found unchanged */
        rc = read_pages(im, k, err);
    }
    if (rc == -ENOENT)
        return 0; /* an older server, or an API group that is not on */
    if (rc == -EACCES || rc == -EIO || rc == -ESTALE) {
        snprintf(n->refused, sizeof(n->refused), "%.*s", MESSAGE_BYTES - 1, err->msg);
        return 0;
    }
    return rc;
}

/* ---- report ---------------------------------------------------------------------------------- */

static struct bh_json *report_json(const struct import *im, struct bh_arena *a)
{
    static const char *const names[] = {"created", "updated",   "unchanged", "deleted",
                                        "bound",   "different", "failed"};
    struct bh_json *o = bh_json_make(a, "dryRun: %i, kinds: [], failures: []", im->dry_run);

    for (size_t i = 0; i < bh_clean_n_kinds; i++) {
        const struct count *n = &im->count[i];
        if (!n->read && !*n->refused)
            continue;
        struct bh_json *k = bh_json_append(a, bh_json_get(o, "kinds"), "kind: %s, read: %lu",
                                           bh_clean_kinds[i].kind, n->read);
        for (size_t j = 0; j < BH_ARRAY_LEN(names); j++)
            if (j != BH_APPLIED_DELETED && j != BH_APPLIED_BOUND)
                bh_json_set_i64(a, k, names[j], (int64_t)n->by[j]);
        bh_json_add(a, k, "skipped: %lu, finished: %lu, refused?: %s", n->skipped, n->finished,
                    n->refused);
    }
    for (size_t i = 0; i < im->n_fail; i++)
        bh_json_append(a, bh_json_get(o, "failures"), "kind: %s, name: %s, message: %s",
                       im->fail[i].kind, im->fail[i].name, im->fail[i].message);
    return o;
}

static void print_table(const struct import *im, struct bh_buf *out)
{
    struct bh_grid g BH_CLEANUP(bh_grid_fini) = {0};

    bh_grid_heading(&g, 0, "KIND", ">READ", ">CREATED", ">UPDATED", ">UNCHANGED", ">SKIPPED",
                    ">FAILED", NULL);
    for (size_t i = 0; i < bh_clean_n_kinds; i++) {
        const struct count *n = &im->count[i];
        const uint64_t cells[] = {n->read,
                                  n->by[BH_APPLIED_CREATED],
                                  n->by[BH_APPLIED_UPDATED],
                                  n->by[BH_APPLIED_UNCHANGED],
                                  n->skipped,
                                  n->by[BH_APPLIED_FAILED] + n->by[BH_APPLIED_DIFFERENT]};
        if (!n->read)
            continue;
        bh_grid_cell(&g, 0, "%s", bh_clean_kinds[i].plural);
        for (size_t j = 0; j < BH_ARRAY_LEN(cells); j++)
            bh_grid_cell(&g, BH_CELL_RIGHT, "%llu", (unsigned long long)cells[j]);
        bh_grid_row(&g);
    }
    bh_grid_print(&g, out, 0, false);
    for (size_t i = 0; i < bh_clean_n_kinds; i++)
        if (*im->count[i].refused)
            bh_buf_addf(out, "%s could not be read: %s\n", bh_clean_kinds[i].plural,
                        im->count[i].refused);
    for (size_t i = 0; i < im->n_fail; i++) {
        bh_buf_addf(out, "%s ", im->fail[i].kind);
        bh_text_add(out, 0, false, im->fail[i].name);
        bh_buf_adds(out, ": ");
        bh_text_add(out, 0, false, im->fail[i].message);
        bh_buf_addc(out, '\n');
    }
}

/* Returns the exit status. */
static int report(const struct import *im, bool json)
{
    FILE *to = im->manifests == stdout ? stderr : stdout;
    struct bh_buf out BH_CLEANUP(bh_buf_fini) = {0};
    struct bh_arena a BH_CLEANUP(bh_arena_fini) = {0};
    uint64_t bad = 0;

    if (json) {
        bh_json_write_pretty(&out, report_json(im, &a));
        bh_buf_addc(&out, '\n');
    } else {
        print_table(im, &out);
    }
    fputs(bh_buf_str(&out), to);
    for (size_t i = 0; i < bh_clean_n_kinds; i++)
        bad += im->count[i].by[BH_APPLIED_FAILED] + im->count[i].by[BH_APPLIED_DIFFERENT] +
               (*im->count[i].refused != '\0');
    return bad ? 3 : BH_EXIT_OK;
}

/* ---- command --------------------------------------------------------------------------------- */

struct arguments {
    const char *manifests, *output;
};

static int close_manifests(struct import *im, const char *path, struct bh_err *err)
{
    FILE *f = bh_take_ptr(im->manifests);
    bool bad = f && (ferror(f) || fflush(f) != 0);

    if (f && f != stdout && fclose(f) != 0)
        bad = true;
    return bad ? bh_err_set(err, -EIO, "could not write \"%s\" to its end", path) : 0;
}

static int parse(struct import *im, struct arguments *a, int argc, char **argv, struct bh_err *err)
{
    const struct bh_opt table[] = {
        BH_FROM_OPTS(&im->session, "read"),
        BH_TO_OPTS(&im->session),
        {"manifests", 0, BH_OPT_STR, &a->manifests, "FILE", "write YAML instead (- = output)"},
        {"dry-run", 0, BH_OPT_BOOL, &im->dry_run, NULL, "only read, and report"},
        BH_TAKE_OPTS(&im->take),
        {"output", 'o', BH_OPT_CHOICE, &a->output, "table|json", "form of the report"},
        {0},
    };
    int rc = bh_opt_parse(table, bh_cli_help(WHO), argc, argv, NULL, err);

    if (rc == 0 && !im->session.from_spec)
        rc = bh_err_set(err, -EINVAL, "--from is required: the cluster to read");
    if (rc == 0 && (im->session.to_spec != NULL) + (a->manifests != NULL) + im->dry_run != 1)
        rc = bh_err_set(err, -EINVAL, "one of --to, --manifests and --dry-run is required");
    return rc == 0 ? bh_take_init(&im->take, err) : rc;
}

int bh_cmd_import(int argc, char **argv)
{
    struct arguments a = {.output = "table"};
    struct import *im = bh_calloc(1, sizeof(*im));
    struct bh_err err = {0};
    int status = BH_EXIT_OK, rc = parse(im, &a, argc, argv, &err);

    if (rc != 0) {
        bh_take_fini(&im->take);
        free(im);
        return bh_cli_usage(WHO, rc, &err);
    }
    bh_session_begin(&im->session, 0, NULL, NULL);
    const struct bh_applier_options o = {
        .to = &im->session.to, .parallel = PARALLEL, .on_result = on_result, .arg = im};
    rc = bh_session_connect(&im->session, "berth-import", &err);
    if (rc == 0 && im->session.to_spec)
        im->applier = bh_applier_new(&o);
    if (rc == 0 && a.manifests) {
        im->manifests = bh_streq(a.manifests, "-") ? stdout : fopen(a.manifests, "we");
        if (!im->manifests)
            rc = bh_err_set(&err, -errno, "could not write \"%s\": %s", a.manifests,
                            strerror(errno));
    }
    if (rc == 0) {
        for (size_t i = 0; i < bh_clean_n_kinds && rc == 0 && !im->session.stopping; i++)
            if (bh_take_kind(&im->take, &bh_clean_kinds[i], true))
                rc = read_kind(im, &bh_clean_kinds[i], &err);
        bh_progress_end(&im->session.progress);
        rc = rc < 0 ? bh_err_prefix(&err, rc, "reading from %s", im->session.from.cfg->server) : 0;
    }
    if (rc == 0 && im->session.stopping)
        rc = bh_err_set(&err, -EINTR, "stopped; what was imported stays");
    if (rc == 0)
        status = report(im, bh_streq(a.output, "json"));
    if (rc == 0)
        rc = close_manifests(im, a.manifests, &err);
    bh_applier_free(im->applier);
    bh_session_end(&im->session);
    bh_take_fini(&im->take);
    for (size_t i = 0; i < im->n_fail; i++) {
        free(im->fail[i].name);
        free(im->fail[i].message);
    }
    free(im);
    return rc < 0 ? bh_cli_fail(WHO, &err) : status;
}
