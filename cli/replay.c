/* SPDX-License-Identifier: Apache-2.0
 *
 * cli/replay.c - `berth replay`: a record file into the simulator's replay, watched and steered
 */
#include "cli/cluster.h"

#include <errno.h>
#include <math.h>
#include <unistd.h>

#include "simulator/replay/engine.h"

#define WHO       "berth replay"
#define TURN_MS   20u
#define POLL_NS   UINT64_C(200000000)
#define ASK_NS    UINT64_C(60000000000)
#define SPEED_MAX 1e6
#define STEP_MAX  1000000
#define SHOWN     10

struct replay {
    struct bh_session session; /* from: the server */
    struct bh_json *state;     /* in its arena */
};
struct arguments {
    const char *speed, *output, *file;
    bool pause, resume, stop, status, paused, clear, follow, compare, no_wait;
    int64_t step;
    bool has_speed;
};

/* ---- asking ---------------------------------------------------------------------------------- */

/* GET of something else than the state; the value lives in a. */
static int read_json(struct replay *r, const char *path, struct bh_buf *reply, struct bh_arena *a,
                     struct bh_json **ret)
{
    const struct bh_api_call call = {.method = "GET", .path = path, .timeout_ns = ASK_NS};
    struct bh_err ignored;
    int code = 0;

    bh_buf_reset(reply);
    return bh_api_do(&r->session.loop, r->session.from.client, &call, &code, reply, &ignored) ==
                       0 &&
                   code == 200
               ? bh_json_parse(a, reply->p, reply->n, 0, ret, &ignored)
               : -ENOENT;
}

/* The answer's state; an error's text into err. */
static int ask(struct replay *r, const char *method, const char *path, const char *type,
               const void *body, size_t n, struct bh_err *err)
{
    const struct bh_api_call call = {.method = method,
                                     .path = path,
                                     .content_type = type,
                                     .body = body,
                                     .body_n = n,
                                     .timeout_ns = ASK_NS};
    struct bh_buf reply BH_CLEANUP(bh_buf_fini) = {0};
    int code = 0,
        rc = bh_api_do(&r->session.loop, r->session.from.client, &call, &code, &reply, err);

    bh_arena_reset(&r->session.arena);
    r->state = NULL;
    if (rc == 0 && bh_json_parse(&r->session.arena, reply.p, reply.n, 0, &r->state, err) < 0)
        rc = bh_err_set(err, -EPROTO, "%s answers with %d: is it Berth's simulator?",
                        r->session.from.cfg->server, code);
    if (rc == 0 && code >= 300) {
        const char *text = bh_json_get_str(r->state, "message");
        rc = bh_err_set(err, code == 409 ? -EBUSY : -EIO, "%s", text ? text : "refused");
        if (code == 404 && bh_streq(bh_json_get_text(r->state, "kind"), "Status"))
            bh_err_set(err, -ENOENT, "%s has no replay: is it Berth's simulator?",
                       r->session.from.cfg->server);
    }
    return rc;
}

static int upload(struct replay *r, const struct arguments *a, struct bh_err *err)
{
    BH_CLEANUP(bh_freep) char *text = NULL;
    const char *name = strrchr(a->file, '/');
    struct bh_buf path BH_CLEANUP(bh_buf_fini) = {0};
    size_t n = 0;
    int rc = bh_read_file(a->file, BH_REPLAY_BODY_MAX, &text, &n);

    if (rc == -EFBIG)
        return bh_err_set(err, rc, "\"%s\" is larger than %zu MiB; pack it with gzip", a->file,
                          BH_REPLAY_BODY_MAX >> 20);
    if (rc < 0)
        return bh_err_set(err, rc, "could not read \"%s\": %s", a->file, strerror(-rc));
    bh_buf_adds(&path, "/berth/v1/replay?name=");
    bh_url_escape(&path, name ? name + 1 : a->file);
    bh_buf_addf(&path, "&speed=%s%s%s%s", a->speed, a->paused ? "&paused=true" : "",
                a->clear ? "&clear=true" : "", a->follow ? "&follow=true" : "");
    return ask(r, "POST", bh_buf_str(&path), "application/x-ndjson", text, n, err);
}

static int steer(struct replay *r, const struct arguments *a, struct bh_err *err)
{
    struct bh_buf b BH_CLEANUP(bh_buf_fini) = {0};

    bh_buf_addc(&b, '{');
    if (a->has_speed)
        bh_buf_addf(&b, "\"speed\":\"%s\",", a->speed);
    if (a->pause || a->resume)
        bh_buf_addf(&b, "\"paused\":%s,", a->pause ? "true" : "false");
    if (a->step)
        bh_buf_addf(&b, "\"step\":%lld,", (long long)a->step);
    b.p[b.n - 1] = '}'; /* something was asked for: check_arguments() */
    return ask(r, "PATCH", "/berth/v1/replay", "application/json", b.p, b.n, err);
}

/* ---- ties ------------------------------------------------------------------------------------ */

/* Whether this cluster's scheduler gave the recorded node the score of the one it took: the two choices
 * then agree. By its recorded decision; "" where that is not kept in full. */
static const char *compare_scores(struct replay *r, struct bh_arena *a, const struct bh_json *d)
{
    const char *ns = bh_json_get_text(d, "namespace"), *name = bh_json_get_text(d, "name");
    struct bh_buf path BH_CLEANUP(bh_buf_fini) = {0}, reply BH_CLEANUP(bh_buf_fini) = {0};
    struct bh_json *v = NULL;
    long long id = 0;

    bh_url_addf(&path, "/berth/v1/pods/%s/%s/decisions", ns, name);
    if (read_json(r, path.p, &reply, a, &v) < 0)
        return "";
    bh_json_each(x, bh_json_get_list(v, "items")) {
        if (!id && bh_streq(bh_json_get_text(x, "nodeName"), bh_json_get_text(d, "actual")))
            id = bh_json_get_i64(x, "id", 0);
    }
    bh_buf_reset(&path);
    bh_buf_addf(&path, "/berth/v1/decisions/%lld", id);
    bh_url_addf(&path, "/nodes/%s", bh_json_get_text(d, "recorded"));
    if (!id || read_json(r, path.p, &reply, a, &v) < 0)
        return "";
    if (!bh_streq(bh_json_get_text(v, "status"), "feasible"))
        return "infeasible";
    return bh_json_get_i64(v, "total", 0) ==
                   bh_json_get_i64(bh_json_get(v, "winner"), "total", INT64_MIN)
               ? "tie"
               : "lowerScore";
}

/* How each listed pod differs, as `how`, and how many of them are ties, as compared.ties. */
static void find_ties(struct replay *r)
{
    struct bh_json *compared = bh_json_get(r->state, "compared");
    uint64_t ties = 0;

    bh_json_each(d, bh_json_get_list(compared, "differences")) {
        struct bh_arena a BH_CLEANUP(bh_arena_fini) = {0};
        const char *how = compare_scores(r, &a, d);
        ties += bh_streq(how, "tie");
        bh_json_add(&r->session.arena, d, "how?: %s", how);
    }
    if (compared)
        bh_json_add(&r->session.arena, compared, "ties: %lu", ties);
}

/* ---- showing --------------------------------------------------------------------------------- */

static const char *explain_how(const char *how)
{
    return bh_streq(how, "tie")          ? ", of equal score"
           : bh_streq(how, "lowerScore") ? ", which scores higher here"
           : bh_streq(how, "infeasible") ? ", the recorded node is rejected here"
                                         : ", scores are not recorded";
}

static long long number(const struct replay *r, const char *path)
{
    int64_t v = 0;

    (void)bh_json_i64(bh_json_path(r->state, path), &v);
    return v;
}

static bool in_phase(const struct replay *r, const char *phase)
{
    return bh_streq(bh_json_get_text(r->state, "phase"), phase);
}

static void print_state(struct replay *r, const struct arguments *a)
{
    struct bh_buf b = {0};

    find_ties(r);
    if (bh_streq(a->output, "json")) {
        bh_json_write_pretty(&b, r->state);
        puts(bh_buf_str(&b));
        bh_buf_fini(&b);
        return;
    }
    printf("%s  %s  %lld of %lld records, at %s\n", bh_json_get_text(r->state, "phase"),
           bh_json_get_text(r->state, "name"), number(r, "applied"), number(r, "total"),
           bh_json_get_text(r->state, "at"));
    printf("pods waiting %lld  same node %lld  another of equal score %lld  another node %lld  "
           "errors %lld  late %.1f ms, at most %.1f ms\n",
           number(r, "waiting"), number(r, "compared.same"), number(r, "compared.ties"),
           number(r, "compared.different") - number(r, "compared.ties"), number(r, "errorCount"),
           (double)number(r, "lateness.mean_ns") / 1e6, (double)number(r, "lateness.max_ns") / 1e6);
    if (*bh_json_get_text(r->state, "message"))
        printf("%s\n", bh_json_get_text(r->state, "message"));
    unsigned n = 0;
    bh_json_each(e, bh_json_get(r->state, "errors"))
        if (n++ < SHOWN)
            printf("  %s\n", bh_json_get_text(e, "message"));
    if (number(r, "errorCount") > SHOWN)
        printf("  ... %lld errors in all\n", number(r, "errorCount"));
    bh_json_each(d, a->compare ? bh_json_path(r->state, "compared.differences") : NULL)
        printf("  %s/%s: recorded %s, here %s%s\n", bh_json_get_text(d, "namespace"),
               bh_json_get_text(d, "name"), bh_json_get_text(d, "recorded"),
               bh_json_get_text(d, "actual"), explain_how(bh_json_get_text(d, "how")));
}

/* Until it ends, or a signal: the replay itself goes on without us. */
static int watch(struct replay *r, struct bh_err *err)
{
    int rc = 0;

    while (rc == 0 && !r->session.stopping && (in_phase(r, "Running") || in_phase(r, "Loading"))) {
        bh_progress_draw(&r->session.progress, (uint64_t)number(r, "applied"),
                         (uint64_t)number(r, "total"), "%s  %lld/%lld  waiting %lld",
                         bh_json_get_text(r->state, "at"), number(r, "applied"), number(r, "total"),
                         number(r, "waiting"));
        for (uint64_t end = bh_mono_ns() + POLL_NS; bh_mono_ns() < end && !r->session.stopping;)
            uv_run(&r->session.loop, UV_RUN_ONCE);
        if (!r->session.stopping)
            rc = ask(r, "GET", "/berth/v1/replay", NULL, NULL, 0, err);
    }
    bh_progress_end(&r->session.progress);
    if (r->session.stopping)
        fprintf(stderr, "berth replay: no longer watching; `berth replay --stop` ends it\n");
    return rc;
}

/* ---- command --------------------------------------------------------------------------------- */

static int check_arguments(const struct arguments *a, struct bh_err *err)
{
    bool asks = a->pause || a->resume || a->step || a->has_speed || a->stop || a->status;
    char *end;
    double v = strtod(a->speed, &end);

    if (!(bh_streq(a->speed, "max") ||
          (end != a->speed && !*end && isfinite(v) && v > 0 && v <= SPEED_MAX)))
        return bh_err_set(err, -EINVAL,
                          "invalid value \"%s\" for --speed: a number above 0 up to %.0f, or max",
                          a->speed, SPEED_MAX);
    if (a->step < 0 || a->step > STEP_MAX)
        return bh_err_set(err, -EINVAL, "invalid value %lld for --step: 1 to %d",
                          (long long)a->step, STEP_MAX);
    if (a->pause && a->resume)
        return bh_err_set(err, -EINVAL, "--pause and --resume contradict each other");
    if (a->file && (a->pause || a->resume || a->step || a->stop || a->status))
        return bh_err_set(err, -EINVAL,
                          "--pause, --resume, --step, --stop and --status are for a replay that "
                          "runs: not with a file");
    if (!a->file && (a->paused || a->clear || a->follow))
        return bh_err_set(err, -EINVAL, "--paused, --clear and --follow need a file");
    if (!a->file && !asks)
        return bh_err_set(err, -EINVAL, "say which file to play");
    return 0;
}

static int parse(struct replay *r, struct arguments *a, int argc, char **argv, struct bh_err *err)
{
    const struct bh_opt table[] = {
        {"server", 0, BH_OPT_STR, &r->session.from_spec, "KUBECONFIG|URL",
         "the simulator " BH_CLUSTER_DEFAULT},
        {"context", 0, BH_OPT_STR, &r->session.context, "NAME", "context of the kubeconfig"},
        {"speed", 0, BH_OPT_STR, &a->speed, "X|max",
         "so many times as fast; max: as fast as the scheduler decides"},
        {"paused", 0, BH_OPT_BOOL, &a->paused, NULL,
         "load the file, begin with --resume or --step"},
        {"clear", 0, BH_OPT_BOOL, &a->clear, NULL, "delete what is in the simulator first"},
        {"follow", 0, BH_OPT_BOOL, &a->follow, NULL,
         "bind pods as recorded; no scheduler decides about them"},
        {"no-wait", 0, BH_OPT_BOOL, &a->no_wait, NULL, "do not wait for the end"},
        {"compare", 0, BH_OPT_BOOL, &a->compare, NULL, "list the pods that got another node"},
        {"", 0, BH_OPT_SECTION, NULL, NULL, "A replay that runs"},
        {"status", 0, BH_OPT_BOOL, &a->status, NULL, "show where it is"},
        {"pause", 0, BH_OPT_BOOL, &a->pause, NULL, "stop its clock"},
        {"resume", 0, BH_OPT_BOOL, &a->resume, NULL, "let it go on"},
        {"step", 0, BH_OPT_INT, &a->step, "N", "apply the next N records, while paused"},
        {"stop", 0, BH_OPT_BOOL, &a->stop, NULL, "end and forget it"},
        {"output", 'o', BH_OPT_CHOICE, &a->output, "table|json", "form of the report"},
        {0},
    };
    bool given[BH_ARRAY_LEN(table)] = {false};
    struct bh_opt_list rest BH_CLEANUP(bh_opt_list_fini) = {0};
    int rc = bh_opt_parse_given(table, bh_cli_help(WHO), argc, argv, &rest, given, err);

    a->has_speed = given[2];
    if (rc == 0 && rest.n > 1)
        rc = bh_err_set(err, -EINVAL, "unexpected argument \"%s\"", rest.v[1]);
    a->file = rest.n ? rest.v[0] : NULL;
    return rc == 0 ? check_arguments(a, err) : rc;
}

static int run(struct replay *r, const struct arguments *a, struct bh_err *err)
{
    BH_CLEANUP(bh_freep) char *spec = NULL;
    int rc = 0;

    if (!r->session.context) /* which is of the user's own file */
        rc = bh_cli_find_cluster(WHO, r->session.from_spec, NULL, &spec, err);
    if (rc == 0)
        rc = bh_cluster_open(&r->session.from, &r->session.loop, spec ? spec : r->session.from_spec,
                             r->session.context, "berth-replay", err);
    if (rc < 0)
        return rc;
    if (a->file)
        rc = upload(r, a, err);
    else if (a->stop)
        rc = ask(r, "DELETE", "/berth/v1/replay", NULL, NULL, 0, err);
    else if (a->status)
        rc = ask(r, "GET", "/berth/v1/replay", NULL, NULL, 0, err);
    else
        rc = steer(r, a, err);
    if (rc == 0 && a->file && !a->no_wait)
        rc = watch(r, err);
    if (rc == 0)
        print_state(r, a);
    return rc;
}

int bh_cmd_replay(int argc, char **argv)
{
    struct arguments a = {.speed = "1", .output = "table"};
    struct replay r = {0};
    struct bh_err err = {0};
    int status = BH_EXIT_OK, rc = parse(&r, &a, argc, argv, &err);

    if (rc != 0)
        return bh_cli_usage(WHO, rc, &err);
    bh_session_begin(&r.session, TURN_MS, NULL, NULL);
    rc = run(&r, &a, &err);
    if (rc < 0)
        status = bh_cli_fail(WHO, &err);
    else if (in_phase(&r, "Failed"))
        status = BH_EXIT_FAIL;
    else if (a.file && in_phase(&r, "Done") && number(&r, "errorCount"))
        status = 3;
    bh_session_end(&r.session);
    return status;
}
