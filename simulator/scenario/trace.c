/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/scenario/trace.c - the action `load`: recorded workloads at their own times
 *
 * The pods of the openb trace come at creation_time and go at deletion_time, both divided by speed;
 * or one `every` so often, in the order of the file. With `stay` none goes. All of it is read at
 * once; what is due later is put off. Record files are played by the simulator's player (replay/),
 * which follows the store's clock.
 */
#include <errno.h>

#include "simulator/replay/engine.h"
#include "simulator/scenario/openb.h"
#include "simulator/scenario/scenario_int.h"

#define SECOND_NS 1e9

struct traced { /* one pod, in r->keep */
    const char *name;
    struct bh_str json;
    int64_t gone_ns; /* -1 = stays */
};
struct loading {
    struct bh_run *r;
    double speed;
    int64_t begin_ns, from_ns, left, every_ns, n;
    bool stay;
};

static int create_text(struct bh_run *r, struct bh_str json, struct bh_err *err)
{
    struct bh_json *obj;

    bh_arena_reset(&r->a);
    int rc = bh_json_parse(&r->a, json.p, json.n, BH_JSON_NUL, &obj, err);
    return rc < 0 ? rc : bh_run_create(r, obj, err);
}

static void trace_gone(struct bh_run *r, void *arg)
{
    const struct traced *t = arg;

    (void)bh_sim_delete(r->w.sim, bh_sim_type_find("", "v1", "pods"), "default", t->name, NULL,
                        NULL); /* preempted is gone, too */
}

static void trace_comes(struct bh_run *r, void *arg)
{
    struct traced *t = arg;
    struct bh_err err = {0};
    int rc = create_text(r, t->json, &err);

    if (rc < 0)
        bh_run_trouble(r, bh_err_prefix(&err, rc, "trace"), &err);
    if (t->gone_ns >= 0)
        bh_run_later(r, t->gone_ns, trace_gone, t);
}

static int node_row(void *arg, struct bh_openb_row *row, struct bh_err *err)
{
    struct loading *l = arg;

    return create_text(l->r, bh_str_c(bh_buf_str(&row->json)), err);
}

/* When something of the trace happens in the run. */
static int64_t when(const struct loading *l, int64_t s)
{
    double at = ((double)s * SECOND_NS - (double)l->from_ns) / l->speed;

    return l->begin_ns + (at > 0 ? (int64_t)at : 0);
}

static int pod_row(void *arg, struct bh_openb_row *row, struct bh_err *err BH_UNUSED)
{
    struct loading *l = arg;
    struct bh_run *r = l->r;
    int64_t created = BH_MAX(row->created_s, 0);

    if (l->left-- <= 0 || (row->deleted_s >= 0 && row->deleted_s * SECOND_NS < (double)l->from_ns))
        return 0; /* over before the part that is wanted */
    struct traced *t = bh_arena_new(&r->keep, struct traced);
    t->name = bh_arena_strdup(&r->keep, row->name);
    t->json = (struct bh_str){bh_arena_strndup(&r->keep, row->json.p, row->json.n), row->json.n};
    t->gone_ns = row->deleted_s >= 0 && !l->stay ? when(l, BH_MAX(row->deleted_s, created)) : -1;
    int64_t comes = l->every_ns ? l->begin_ns + l->n++ * l->every_ns : when(l, created);
    bh_run_later(r, comes, trace_comes, t);
    return 0;
}

static int load_openb(struct bh_run *r, const struct bh_json *what, struct bh_err *err)
{
    const char *nodes = bh_json_get_str(what, "nodes"), *pods = bh_json_get_str(what, "pods");
    BH_CLEANUP(bh_freep) char *nodes_path = nodes ? bh_scenario_path(r->s, nodes) : NULL;
    BH_CLEANUP(bh_freep) char *pods_path = pods ? bh_scenario_path(r->s, pods) : NULL;
    const struct bh_json *speed = bh_json_get(what, "speed");
    struct loading l = {.r = r,
                        .speed = speed ? strtod(speed->s.p, NULL) : 1,
                        .begin_ns = bh_run_at(r),
                        .from_ns = bh_field_duration(what, "from", 0),
                        .every_ns = bh_field_duration(what, "every", 0),
                        .stay = bh_json_get_bool(what, "stay", false),
                        .left = bh_json_get_i64(what, "limit", INT64_MAX)};
    int rc = nodes ? bh_openb_read(nodes_path, false, node_row, &l, err) : 0;

    return rc == 0 && pods ? bh_openb_read(pods_path, true, pod_row, &l, err) : rc;
}

/* The player reads in a thread of its own; until it has done so no virtual time passes. */
static int load_record(struct bh_run *r, const struct bh_json *what, struct bh_err *err)
{
    const char *file = bh_json_get_text(what, "file");
    const struct bh_json *speed = bh_json_get(what, "speed");
    const struct bh_player_options o = {.name = file,
                                        .speed = speed ? strtod(speed->s.p, NULL) : 1};
    BH_CLEANUP(bh_freep) char *path = bh_scenario_path(r->s, file);
    BH_CLEANUP(bh_freep) char *text = NULL;
    size_t n;
    int rc = bh_read_file(path, BH_REPLAY_BODY_MAX, &text, &n);

    if (rc < 0)
        return bh_err_set(err, rc, "could not read \"%.200s\": %s", file, strerror(-rc));
    if (!r->player)
        r->player = bh_player_new(r->w.sim);
    rc = bh_player_start(r->player, text, n, &o, err);
    if (rc < 0)
        return rc;
    for (;;) {
        const struct bh_json *state = bh_player_state(r->player, &r->a);
        const char *phase = bh_json_get_text(state, "phase");
        if (bh_streq(phase, "Failed"))
            return bh_err_set(err, -EINVAL, "%.200s: %s", file, bh_json_get_text(state, "message"));
        if (!bh_streq(phase, "Loading"))
            return 0;
        bh_arena_reset(&r->a);
        uv_run(&r->w.loop, UV_RUN_ONCE);
    }
}

int bh_action_load(struct bh_run *r, const struct bh_json *what, struct bh_err *err)
{
    return bh_streq(bh_json_get_text(what, "format"), "record") ? load_record(r, what, err)
                                                                : load_openb(r, what, err);
}
