/* SPDX-License-Identifier: Apache-2.0
 *
 * cli/sync.c - `berth sync`: a copy of a real cluster's scheduling state that stays up to date
 *
 * The source is followed (follow.c), the destination written (apply.c). Pods that were bound when
 * they were first seen are bound in the copy. What becomes of the others is --pods: `schedule`
 * leaves them to the destination's scheduler and counts where the two differ; `follow` keeps them
 * from it and binds them as the source did.
 */
#include "cli/sync_compare.h"

#include <errno.h>

#define WHO       "berth sync"
#define PARALLEL  32
#define LISTED    20
#define REPORT_NS UINT64_C(10000000000)

struct sync {
    struct bh_session session;
    struct bh_take take;
    struct bh_follow *follow;
    struct bh_applier *applier;
    struct bh_compare *compare; /* --pods schedule */
    uint64_t count[BH_APPLIED_COUNT], reported, told_ns;
    unsigned n_shown;
    bool schedule, once, synced, settled;
};

/* ---- from the source ------------------------------------------------------------------------- */

static void on_change(void *arg, const struct bh_clean_kind *k, bool added, bool initial,
                      const struct bh_json *obj)
{
    struct sync *s = arg;
    bool given = initial && *bh_json_get_text(bh_json_get(obj, "spec"), "nodeName");

    bh_arena_reset(&s->session.arena);
    if (s->compare && bh_streq(k->kind, "Pod"))
        bh_compare_source(s->compare, obj, added, given);
    if (added && !initial && s->schedule) {
        /* The destination's scheduler decides: what the source chose is not taken over. */
        struct bh_json *copy = bh_json_clone(&s->session.arena, obj);
        if (bh_streq(k->kind, "Pod"))
            bh_json_unset(bh_json_get(copy, "spec"), "nodeName");
        else if (bh_streq(k->kind, "ResourceClaim"))
            bh_json_unset(copy, "status");
        obj = copy;
    }
    bh_applier_put(s->applier, k, obj);
}

static void on_gone(void *arg, const struct bh_clean_kind *k, const char *ns, const char *name)
{
    struct sync *s = arg;

    if (s->compare && bh_streq(k->kind, "Pod"))
        bh_compare_gone(s->compare, ns, name);
    bh_applier_delete(s->applier, k, ns, name);
}

static void on_all_synced(void *arg)
{
    ((struct sync *)arg)->synced = true;
}

/* ---- from the destination -------------------------------------------------------------------- */

static void say(struct sync *s, const char *kind, const char *name, const char *text)
{
    if (s->n_shown++ < LISTED)
        fprintf(stderr, "berth sync: %s %s: %s\n", kind, name, text);
    else if (s->n_shown == LISTED + 1)
        fprintf(stderr, "berth sync: more of these are only counted\n");
}

static void on_result(void *arg, const struct bh_clean_kind *k, const char *ns, const char *name,
                      enum bh_applied what, const char *message)
{
    struct sync *s = arg;
    char key[600];

    s->count[what]++;
    snprintf(key, sizeof(key), "%.253s%s%.253s", ns, *ns ? "/" : "", name);
    if (what == BH_APPLIED_FAILED)
        say(s, k->kind, key, message);
}

static void on_different(void *arg, const char *pod, const char *source, const char *here)
{
    char text[600];

    snprintf(text, sizeof(text), "on %.253s here, on %.253s in the source", here, source);
    say(arg, "Pod", pod, text);
}

static uint64_t sum(const struct sync *s)
{
    uint64_t n = 0;

    for (unsigned i = 0; i < BH_APPLIED_COUNT; i++)
        n += s->count[i];
    return n;
}

static void tell(struct sync *s)
{
    const uint64_t *n = s->count;
    struct bh_compare_counts c = {0};

    printf("created %llu  updated %llu  deleted %llu  bound %llu  unchanged %llu  failed %llu  "
           "waiting %zu\n",
           (unsigned long long)n[BH_APPLIED_CREATED], (unsigned long long)n[BH_APPLIED_UPDATED],
           (unsigned long long)n[BH_APPLIED_DELETED], (unsigned long long)n[BH_APPLIED_BOUND],
           (unsigned long long)n[BH_APPLIED_UNCHANGED], (unsigned long long)n[BH_APPLIED_FAILED],
           bh_applier_backlog(s->applier));
    if (s->compare)
        c = bh_compare_counts(s->compare);
    if (c.same + c.different + c.waiting)
        printf("new pods: same node %llu  another node %llu  not placed here %zu\n",
               (unsigned long long)c.same, (unsigned long long)c.different, c.waiting);
    fflush(stdout);
    s->reported = sum(s);
    s->told_ns = bh_mono_ns();
}

static void on_timer(uv_timer_t *t)
{
    struct sync *s = t->data;

    if (s->synced && !s->settled && bh_applier_backlog(s->applier) == 0) {
        s->settled = true;
        bh_progress_end(&s->session.progress);
        printf("in step with %s\n", s->session.from.cfg->server);
        tell(s);
        s->session.stopping = s->once;
    } else if (!s->settled) {
        bh_progress_draw(&s->session.progress, 0, 0, "%llu objects written",
                         (unsigned long long)sum(s));
    } else if (sum(s) != s->reported && bh_mono_ns() - s->told_ns > REPORT_NS) {
        tell(s);
    }
}

/* ---- command --------------------------------------------------------------------------------- */

static int run(struct sync *s, struct bh_err *err)
{
    const struct bh_applier_options ao = {.to = &s->session.to,
                                          .parallel = PARALLEL,
                                          .follow = !s->schedule,
                                          .decides = s->schedule,
                                          .on_result = on_result,
                                          .arg = s};
    const struct bh_follow_options fo = {.from = &s->session.from,
                                         .take = &s->take,
                                         .on_change = on_change,
                                         .on_gone = on_gone,
                                         .on_all_synced = on_all_synced,
                                         .arg = s,
                                         .program = "berth sync"};
    int rc = bh_session_connect(&s->session, "berth-sync", err);

    if (rc < 0)
        return rc;
    s->applier = bh_applier_new(&ao);
    if (s->schedule && !s->once)
        s->compare = bh_compare_new(&s->session.to, on_different, s);
    rc = bh_follow_start(&fo, &s->follow, err);
    while (rc == 0 && !s->session.stopping)
        uv_run(&s->session.loop, UV_RUN_ONCE);
    bh_progress_end(&s->session.progress);
    if (rc == 0 && !s->once)
        tell(s);
    return rc;
}

int bh_cmd_sync(int argc, char **argv)
{
    struct sync *s = bh_calloc(1, sizeof(*s));
    struct bh_err err = {0};
    const char *pods = "schedule";
    const struct bh_opt table[] = {
        BH_FROM_OPTS(&s->session, "follow"),
        BH_TO_OPTS(&s->session),
        {"pods", 0, BH_OPT_CHOICE, &pods, "schedule|follow",
         "new pods: the destination's scheduler decides, or they are bound as in the source"},
        {"once", 0, BH_OPT_BOOL, &s->once, NULL, "end when the copy is in step"},
        BH_TAKE_OPTS(&s->take),
        {0},
    };
    int rc = bh_opt_parse(table, bh_cli_help(WHO), argc, argv, NULL, &err);
    if (rc == 0 && (!s->session.from_spec || !s->session.to_spec))
        rc = bh_err_set(&err, -EINVAL, "--from and --to are required");
    s->schedule = bh_streq(pods, "schedule");
    rc = rc == 0 ? bh_take_init(&s->take, &err) : rc;

    if (rc != 0) {
        bh_take_fini(&s->take);
        free(s);
        return bh_cli_usage(WHO, rc, &err);
    }
    bh_session_begin(&s->session, 100, on_timer, s);
    rc = run(s, &err);
    bh_follow_free(s->follow);
    bh_compare_free(s->compare);
    bh_applier_free(s->applier);
    bh_session_end(&s->session);
    bh_take_fini(&s->take);
    free(s);
    return rc < 0 ? bh_cli_fail(WHO, &err) : BH_EXIT_OK;
}
