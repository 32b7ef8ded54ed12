/* SPDX-License-Identifier: Apache-2.0
 *
 * cli/record.c - `berth record`: a real cluster's changes to a file
 *
 * Lines are written to the file at least every FLUSH_MS: a killed recorder loses no more.
 */
#include "cli/cluster.h"

#include <errno.h>

#include "cli/record.h"

#define WHO      "berth record"
#define FLUSH_MS 500u

struct record {
    struct bh_session session;
    struct bh_take take;
    struct bh_follow *follow;
    uv_timer_t end;
    struct bh_record_file out;
    int64_t start_ns; /* of the state at the beginning */
    int64_t duration_ns;
    bool header;
};

/* ---- following ------------------------------------------------------------------------------- */

static void on_change(void *arg, const struct bh_clean_kind *k, bool added, bool initial,
                      const struct bh_json *obj)
{
    struct record *r = arg;

    (void)k;
    bh_record_file_add(&r->out, initial ? r->start_ns : bh_wall_ns(),
                       added ? BH_RECORD_ADD : BH_RECORD_UPDATE, obj);
}

static void on_gone(void *arg, const struct bh_clean_kind *k, const char *ns, const char *name)
{
    struct record *r = arg;
    struct bh_arena a BH_CLEANUP(bh_arena_fini) = {0};
    char av[80];

    bh_record_file_add(&r->out, bh_wall_ns(), BH_RECORD_DELETE,
                       bh_record_tombstone(&a, bh_clean_api_version(k, av), k->kind, ns, name));
}

static void on_all_synced(void *arg)
{
    struct record *r = arg;

    bh_record_file_flush(&r->out);
    fprintf(stderr, "berth record: %llu objects are there; recording changes, Ctrl-C ends it\n",
            (unsigned long long)r->out.records);
}

static void on_timer(uv_timer_t *t)
{
    struct record *r = t->data;

    bh_record_file_flush(&r->out);
    bh_progress_draw(&r->session.progress, 0, 0, "%llu records, %llu KiB",
                     (unsigned long long)r->out.records, (unsigned long long)r->out.bytes >> 10);
    if (r->out.error)
        r->session.stopping = true;
}

static void on_end(uv_timer_t *t)
{
    ((struct record *)t->data)->session.stopping = true;
}

static int follow_source(struct record *r, struct bh_err *err)
{
    const struct bh_follow_options o = {.from = &r->session.from,
                                        .take = &r->take,
                                        .on_change = on_change,
                                        .on_gone = on_gone,
                                        .on_all_synced = on_all_synced,
                                        .arg = r,
                                        .program = "berth record"};
    int rc = bh_session_connect(&r->session, "berth-record", err);

    if (rc < 0)
        return rc;
    r->start_ns = bh_wall_ns();
    if (r->header)
        bh_record_file_header(&r->out, r->start_ns, r->take.anonymise);
    rc = bh_follow_start(&o, &r->follow, err);
    uv_timer_init(&r->session.loop, &r->end);
    r->end.data = r;
    if (r->duration_ns > 0)
        uv_timer_start(&r->end, on_end, (uint64_t)(r->duration_ns / 1000000), 0);
    while (rc == 0 && !r->session.stopping)
        uv_run(&r->session.loop, UV_RUN_ONCE);
    bh_progress_end(&r->session.progress);
    return rc;
}

/* ---- command --------------------------------------------------------------------------------- */

struct arguments {
    const char *output, *kwok;
    int64_t start_ns, end_ns;
    bool force;
    bool openb;
    struct bh_record_openb c;
};

static int check_arguments(const struct arguments *a, bool from, struct bh_err *err)
{
    if (!a->output)
        return bh_err_set(err, -EINVAL, "--output is required: the file to write");
    if (a->openb + from + (a->kwok != NULL) != 1)
        return bh_err_set(err, -EINVAL, "one of --from, --openb and --kwok is required");
    if (a->start_ns < 0 || a->end_ns < 0)
        return bh_err_set(err, -EINVAL, "--start and --end must not be negative");
    if (a->openb && (!a->c.nodes || !a->c.pods))
        return bh_err_set(err, -EINVAL, "--openb needs --nodes FILE and --pods FILE");
    if (!a->openb && (a->c.nodes || a->c.pods))
        return bh_err_set(err, -EINVAL, "--nodes and --pods are files of --openb");
    return 0;
}

static int run(struct record *r, const struct arguments *a, struct bh_err *err)
{
    struct bh_err second;
    int rc = bh_record_file_open(&r->out, a->output, a->force, err);

    if (rc == 0)
        rc = a->openb  ? bh_record_openb(&r->out, &a->c, err)
             : a->kwok ? bh_record_kwok(&r->out, a->kwok, r->header, err)
                       : follow_source(r, err);
    if (bh_record_file_close(&r->out, &second) < 0 && rc == 0) {
        *err = second;
        rc = -EIO;
    }
    if (rc == 0)
        fprintf(stderr, "berth record: %llu records in %s (%llu bytes)\n",
                (unsigned long long)r->out.records, a->output, (unsigned long long)r->out.bytes);
    return rc;
}

int bh_cmd_record(int argc, char **argv)
{
    struct arguments a = {0};
    struct record *r = bh_calloc(1, sizeof(*r));
    struct bh_err err = {0};
    const struct bh_opt table[] = {
        BH_FROM_OPTS(&r->session, "record"),
        {"output", 'o', BH_OPT_STR, &a.output, "FILE", "JSON lines; packed when it ends in .gz"},
        {"force", 0, BH_OPT_BOOL, &a.force, NULL, "replace the file"},
        {"header", 0, BH_OPT_BOOL, &r->header, NULL,
         "begin with a line about the recording (kube-scheduler-simulator does not know it)"},
        {"duration", 0, BH_OPT_DURATION_NS, &r->duration_ns, "DURATION", "stop after this long"},
        BH_TAKE_OPTS(&r->take),
        {"", 0, BH_OPT_SECTION, NULL, NULL, "The openb trace"},
        {"openb", 0, BH_OPT_BOOL, &a.openb, NULL, "make a record of the trace's files"},
        {"nodes", 0, BH_OPT_STR, &a.c.nodes, "FILE", "its CSV of nodes"},
        {"pods", 0, BH_OPT_STR, &a.c.pods, "FILE", "its CSV of pods"},
        {"start", 0, BH_OPT_DURATION_NS, &a.start_ns, "DURATION",
         "begin here; pods that were alive then are there at the beginning"},
        {"end", 0, BH_OPT_DURATION_NS, &a.end_ns, "DURATION", "stop here (default: its end)"},
        {"", 0, BH_OPT_SECTION, NULL, NULL, "A recording of kwokctl"},
        {"kwok", 0, BH_OPT_STR, &a.kwok, "FILE", "YAML: objects, then ResourcePatch documents"},
        {0},
    };
    int rc = bh_opt_parse(table, bh_cli_help(WHO), argc, argv, NULL, &err);
    if (rc == 0)
        rc = check_arguments(&a, r->session.from_spec != NULL, &err);
    a.c.header = r->header;
    a.c.start_s = a.start_ns / 1000000000;
    a.c.end_s = a.end_ns ? a.end_ns / 1000000000 : -1;
    rc = rc == 0 ? bh_take_init(&r->take, &err) : rc;

    if (rc != 0) {
        bh_take_fini(&r->take);
        free(r);
        return bh_cli_usage(WHO, rc, &err);
    }
    bh_session_begin(&r->session, FLUSH_MS, on_timer, r);
    rc = run(r, &a, &err);
    bh_follow_free(r->follow);
    bh_session_end(&r->session);
    bh_take_fini(&r->take);
    free(r);
    return rc < 0 ? bh_cli_fail(WHO, &err) : BH_EXIT_OK;
}
