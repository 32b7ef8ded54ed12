/* SPDX-License-Identifier: Apache-2.0
 *
 * cli/conformance.c - `berth conformance`: are these decisions those of kube-scheduler?
 *
 * Reads recorded cases (one JSON object a line, plain or gzipped), replays each against an engine
 * of its own and compares every decision field by field. Every pod is decided by both paths of the
 * engine (verify) unless --no-verify.
 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <zlib.h>

#include "cli/cli.h"
#include "cli/conformance.h"

#define WHO            "berth conformance"
#define LINE_MAX_BYTES ((size_t)256 << 20)
#define SHOWN_TEXT_MAX 400
/* Cases without expectations are printed in the compact form from this many nodes on. */
#define COMPACT_NODES 64

struct totals {
    uint64_t decisions, equal, cases, failed_cases;
};
struct run {
    bool verify, no_verify, through_record;
    struct bh_opt_list filters;
    bool print;
    int64_t max_shown;
    FILE *cases, *report; /* cases: NULL unless printing */
    struct totals all;
    uint64_t shown;
};

static void shorten(char out[static SHOWN_TEXT_MAX], const struct bh_json *v)
{
    struct bh_buf b BH_CLEANUP(bh_buf_fini) = {0};

    if (v)
        bh_json_write(&b, v);
    snprintf(out, SHOWN_TEXT_MAX, "%s%s", v ? bh_buf_str(&b) : "(absent)",
             b.n >= SHOWN_TEXT_MAX ? " ..." : "");
}

static int run_steps(struct run *r, struct bh_replay *rep, struct bh_arena *a, struct bh_json *cas,
                     struct totals *t, struct bh_err *err)
{
    const char *name = bh_json_get_str(cas, "name");
    unsigned nodes = 0;
    size_t i = 0;

    bh_json_each(o, bh_json_get(cas, "objects"))
        nodes += bh_streq(bh_json_get_text(o, "kind"), "Node");
    for (struct bh_json *s = bh_json_first(bh_json_get(cas, "steps")); s; s = s->next, i++) {
        struct bh_arena_mark mark = bh_arena_mark(a);
        const struct bh_json *expect = bh_json_get(s, "expect"), *got, *want, *have;
        /* "feasibleCount" tells the compact form; without expectations the cluster's size does. */
        bool compact =
            expect ? bh_json_get(expect, "feasibleCount") != NULL : nodes >= COMPACT_NODES;
        int rc = bh_replay_step(rep, a, s, expect, compact, &got, err);
        if (rc < 0)
            return bh_err_prefix(err, rc, "step %zu", i);
        const char *field = got && expect ? bh_expect_diff(a, expect, got, &want, &have) : NULL;
        t->decisions += got && expect;
        t->equal += got && expect && !field;
        if (field && (int64_t)r->shown++ < r->max_shown) {
            char w[SHOWN_TEXT_MAX], h[SHOWN_TEXT_MAX];
            shorten(w, want);
            shorten(h, have);
            fprintf(r->report, "  %s step %zu: %s differs\n    expected %s\n    got      %s\n",
                    name ? name : "(no name)", i, field, w, h);
        }
        if (got && r->cases) {
            struct bh_json *own = bh_json_clone(a, got);
            bh_only_first_preemption(own);
            bh_json_set(a, s, "expect", own);
        } else {
            bh_arena_rewind(a, mark);
        }
    }
    return 0;
}

static void run_line(struct run *r, const char *file, size_t line, const struct bh_buf *text,
                     struct totals *t)
{
    struct bh_err err = {{0}};
    struct bh_json *cas;
    struct bh_arena a BH_CLEANUP(bh_arena_fini) = {0};

    int rc = bh_json_parse(&a, text->p, text->n, 0, &cas, &err);
    if (rc >= 0) {
        const struct bh_json *config = bh_json_get(cas, "config");
        struct bh_replay *rep = NULL;
        if (config && config->type == BH_JSON_NULL)
            config = NULL;
        rc = bh_replay_new(config, !r->no_verify, r->through_record, &rep, &err);
        bh_json_each(obj, bh_json_get(cas, "objects")) {
            if (rc >= 0)
                rc = bh_replay_put(rep, obj, &err);
        }
        if (rc >= 0)
            rc = run_steps(r, rep, &a, cas, t, &err);
        bh_replay_free(rep);
        if (rc >= 0 && r->cases) {
            struct bh_buf b BH_CLEANUP(bh_buf_fini) = {0};
            bh_json_write(&b, cas);
            fprintf(r->cases, "%s\n", bh_buf_str(&b));
        }
    }
    t->cases++;
    if (rc < 0) {
        t->failed_cases++;
        fprintf(r->report, "  %s:%zu: %s\n", file, line, err.msg);
    }
}

/* Reads one line of any length; false at the end. */
static bool read_line(gzFile f, struct bh_buf *line, bool *too_long)
{
    char chunk[65536];

    bh_buf_reset(line);
    while (gzgets(f, chunk, sizeof chunk)) {
        size_t n = strlen(chunk);
        bool ends = n && chunk[n - 1] == '\n';
        bh_buf_add(line, chunk, ends ? n - 1 : n);
        *too_long = line->n > LINE_MAX_BYTES;
        if (ends || *too_long)
            return true;
    }
    return line->n > 0;
}

static int run_file(struct run *r, const char *path)
{
    const char *base = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
    struct totals t = {0};
    struct bh_buf line BH_CLEANUP(bh_buf_fini) = {0};
    size_t number = 0;
    bool too_long = false;

    for (size_t i = 0, hit = 0; r->filters.n && !hit; i++) {
        if (i == r->filters.n)
            return 0;
        hit = strstr(base, r->filters.v[i]) != NULL;
    }
    gzFile f = gzopen(path, "rb");
    if (!f) {
        fprintf(stderr, "berth conformance: cannot open %s: %s\n", path, strerror(errno));
        return -EIO;
    }
    gzbuffer(f, 1 << 17);
    while (read_line(f, &line, &too_long) && !too_long) {
        number++;
        if (line.n)
            run_line(r, base, number, &line, &t);
    }
    int zerr = Z_OK;
    const char *ztext = gzerror(f, &zerr);
    bool broken = too_long || (zerr != Z_OK && zerr != Z_STREAM_END);
    if (broken)
        fprintf(stderr, "berth conformance: %s: %s\n", path, too_long ? "line too long" : ztext);
    gzclose(f);
    fprintf(r->report, "%-28s %llu/%llu equal, %llu cases%s\n", base, (unsigned long long)t.equal,
            (unsigned long long)t.decisions, (unsigned long long)t.cases,
            t.failed_cases ? ", some not readable" : "");
    fflush(r->report);
    r->all.decisions += t.decisions;
    r->all.equal += t.equal;
    r->all.cases += t.cases;
    r->all.failed_cases += t.failed_cases;
    return broken ? -EIO : 0;
}

static int is_recording(const struct dirent *d)
{
    size_t n = strlen(d->d_name);

    return (n > 6 && bh_streq(d->d_name + n - 6, ".jsonl")) ||
           (n > 9 && bh_streq(d->d_name + n - 9, ".jsonl.gz"));
}

static int run_path(struct run *r, const char *path)
{
    struct dirent **names = NULL;
    int rc = 0;
    int n = scandir(path, &names, is_recording, alphasort);

    if (n < 0)
        return run_file(r, path);
    for (int i = 0; i < n; i++) {
        BH_CLEANUP(bh_freep) char *full = bh_asprintf("%s/%s", path, names[i]->d_name);
        int one = run_file(r, full);
        rc = one < 0 ? one : rc;
        free(names[i]);
    }
    free(names);
    return rc;
}

int bh_cmd_conformance(int argc, char **argv)
{
    struct run r = {.max_shown = 20};
    const struct bh_opt table[] = {
        {"verify", 0, BH_OPT_BOOL, &r.verify, NULL,
         "decide every pod by both paths and abort on a difference (the default)"},
        {"no-verify", 0, BH_OPT_BOOL, &r.no_verify, NULL, "the reference path only"},
        {"through-record", 0, BH_OPT_BOOL, &r.through_record, NULL,
         "pack and unpack every decision as --record-decisions=full does, and compare what comes "
         "back"},
        {"file-filter", 0, BH_OPT_STRLIST, &r.filters, "TEXT",
         "only files whose name contains TEXT (may be repeated)"},
        {"print", 0, BH_OPT_BOOL, &r.print, NULL,
         "write every case back with Berth's own decisions as expect"},
        {"max-diffs", 0, BH_OPT_INT, &r.max_shown, "N", "differences to show (20)"},
        {0},
    };
    struct bh_opt_list paths BH_CLEANUP(bh_opt_list_fini) = {0};
    struct bh_err err = {{0}};
    bool failed = false;
    int rc = bh_opt_parse(table, bh_cli_help(WHO), argc, argv, &paths, &err);

    if (rc == 0 && !paths.n)
        rc = bh_err_set(&err, -EINVAL, "no file or folder given");
    if (rc != 0)
        return bh_cli_usage(WHO, rc, &err);
    r.report = r.print ? stderr : stdout;
    r.cases = r.print ? stdout : NULL;
    for (size_t i = 0; i < paths.n; i++)
        failed |= run_path(&r, paths.v[i]) < 0;
    if (fflush(stdout) != 0)
        failed = true;
    fprintf(r.report, "decisions: %llu/%llu equal\n", (unsigned long long)r.all.equal,
            (unsigned long long)r.all.decisions);
    free(r.filters.v);
    failed |= r.all.failed_cases != 0 || (!r.print && r.all.equal != r.all.decisions);
    return failed ? BH_EXIT_FAIL : BH_EXIT_OK;
}
