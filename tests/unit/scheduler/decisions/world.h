/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/scheduler/decisions/world.h - an engine with some nodes, and a recorder beside it
 */
#ifndef BH_DECISIONS_WORLD_H
#define BH_DECISIONS_WORLD_H

#include <time.h>
#include <unistd.h>

#include "scheduler/decisions/decisions.h"
#include "scheduler/decisions/recorder.h"
#include "scheduler/explain/explain.h"
#include "tests/unit/scheduler/engine/fixture.h"

struct world {
    struct fx f;
    char path[256];
    struct bh_recorder *r;
    struct bh_decisions *d;
    struct bh_arena a;
};

/* n nodes in three zones, each fourth one tainted; pods on the first eight. */
static void world_nodes(struct fx *f, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        const char *name = bh_arena_printf(&f->arena, "node-%u", i * 7919 % 100003);
        const char *labels = bh_arena_printf(
            &f->arena, "'topology.kubernetes.io/zone':'z%u','kubernetes.io/hostname':'%s'", i % 3,
            name);
        fx_node(
            f, name,
            i % 2 ? "'cpu':'4','memory':'8Gi','pods':'10'" : "'cpu':'2','memory':'4Gi','pods':'10'",
            labels,
            i % 4 == 3 ? "'taints':[{'key':'dedicated','value':'x','effect':'NoSchedule'}]" : "",
            "");
        if (i < 8)
            fx_place(f, fx_pod(f, bh_arena_printf(&f->arena, "on-%u", i), "'cpu':'1500m'", ""),
                     name);
    }
}

BH_UNUSED static void world_init(struct world *w, unsigned n_nodes, enum bh_record_mode mode,
                                 int64_t max_bytes)
{
    static unsigned serial;
    struct bh_recorder_options o = {.mode = mode, .max_bytes = max_bytes};

    memset(w, 0, sizeof(*w));
    bh_arena_init(&w->a, 0);
    fx_init_with(&w->f, NULL, (struct bh_engine_options){.tie_break = BH_TIE_FIRST});
    world_nodes(&w->f, n_nodes);
    snprintf(w->path, sizeof(w->path), "%s/decisions %u'?.db", bh_test_tmpdir(), serial++);
    o.path = w->path;
    if (mode)
        w->r = bh_recorder_new(&o);
    w->d = bh_decisions_new(w->path);
}

BH_UNUSED static void world_fini(struct world *w)
{
    bh_decisions_free(w->d);
    bh_recorder_free(w->r);
    bh_arena_fini(&w->a);
    fx_fini(&w->f);
}

/* Decides the pod as a daemon with a recorder does; returns the attempt's number. */
BH_UNUSED static uint64_t world_attempt(struct world *w, struct fx_pod p, unsigned attempt,
                                        const struct bh_decision **ret_d)
{
    static const struct bh_record_after none;
    struct bh_record_after after = {
        .n_reserve = 1,
        .reserve = {{"VolumeBinding", "success", 0}},
        .n_pre_bind = 1,
        .pre_bind = {"VolumeBinding"},
        .n_bind = 1,
        .bind = {"DefaultBinder"},
    };
    const struct bh_pending pending = {.pod = p.rec, .shape = p.shape};
    const struct bh_recorder_pod pod = {
        .namespace_ = bh_rec_text(p.rec, p.rec->namespace_),
        .name = bh_rec_text(p.rec, p.rec->name),
        .uid = bh_rec_text(p.rec, p.rec->uid),
        .profile = "default-scheduler",
        .trigger = "UnschedulablePodAdd",
        .attempt = attempt,
        .priority = bh_engine_shape_rec(w->f.e, p.shape)->priority,
        .time_ns = INT64_C(1893456000123456789),
    };
    unsigned flags = bh_recorder_next(w->r, attempt > 1) ? BH_EXPLAIN | BH_RECORD : 0;
    const struct bh_decision *d = bh_engine_schedule(w->f.e, &pending, flags, 0);
    uint64_t number = bh_recorder_begin(w->r, w->f.e, &pod, d, 1234);

    bh_recorder_point(w->r, "Filter", 1000);
    bh_recorder_end(w->r, d->kind == BH_DECIDED ? &after : &none, NULL);
    if (ret_d)
        *ret_d = d;
    return number;
}

/* Until everything is in the file. */
BH_UNUSED static void world_settle(struct world *w, uint64_t recorded)
{
    static const struct timespec pause = {.tv_nsec = 2000000};
    struct bh_recorder_stats s;
    uint64_t until = bh_mono_ns() + UINT64_C(120000000000); /* a hang, not a slow disk */

    do {
        bh_recorder_turn(w->r);
        nanosleep(&pause, NULL);
        bh_recorder_stats(w->r, &s);
    } while (s.recorded < recorded && bh_mono_ns() < until);
    FX_INT(s.recorded, recorded);
}

BH_UNUSED static const char *world_text(struct world *w, const struct bh_json *v)
{
    struct bh_buf b = {0};
    const char *s;

    bh_json_write(&b, v);
    s = bh_arena_strdup(&w->a, bh_buf_str(&b));
    bh_buf_fini(&b);
    return s;
}
#endif
