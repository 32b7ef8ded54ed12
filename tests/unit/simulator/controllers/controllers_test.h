/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/simulator/controllers/controllers_test.h - a server with controllers, turned by hand
 *
 * UNTIL() turns the loop until a condition holds or a deadline passes. With bind set, every pod
 * that waits for a node is bound meanwhile: to the node its affinity names, else to n1.
 */
#ifndef BH_CONTROLLERS_TEST_H
#define BH_CONTROLLERS_TEST_H

#include "simulator/controllers/controllers.h"
#include "tests/unit/simulator/admission/admission_test.h"

#define DEADLINE_NS 120000000000u

struct world {
    struct fixture f;
    uv_timer_t tick; /* keeps a turn of the loop short while nothing happens */
    bool bind;
};

static inline void on_tick(uv_timer_t *t)
{
    (void)t;
}

static inline void world_init(struct world *w, const struct bh_sim_options *o)
{
    const struct bh_sim_options plain = {.first_revision = 100};

    memset(w, 0, sizeof(*w));
    fixture_init(&w->f, o ? o : &plain, false);
    uv_timer_init(&w->f.loop, &w->tick);
    uv_timer_start(&w->tick, on_tick, 5, 5);
    w->bind = true;
}

static inline void world_fini(struct world *w)
{
    fixture_fini(&w->f);
}

static inline const char *pinned(struct fixture *f, const struct bh_sim_obj *pod)
{
    const char *at = strstr(pod->json, "\"metadata.name\",\"operator\":\"In\",\"values\":[\"");
    const char *end;

    if (!at)
        return "n1";
    at = strstr(at, "[\"") + 2;
    end = strchr(at, '"');
    return bh_arena_strndup(&f->a, at, (size_t)(end - at));
}

static inline void bind_all(struct world *w)
{
    struct bh_sim_objs l = {0};

    bh_sim_pods_on_node(w->f.s, "", &l);
    for (size_t i = 0; i < l.n; i++)
        bh_sim_bind(w->f.s, l.v[i]->ns, l.v[i]->name, NULL, pinned(&w->f, l.v[i]), NULL, NULL,
                    NULL);
    bh_sim_objs_fini(&l);
}

static inline void turn_world(struct world *w)
{
    if (w->bind)
        bind_all(w);
    uv_run(&w->f.loop, UV_RUN_ONCE);
}

#define UNTIL(w, cond)                                                                             \
    do {                                                                                           \
        uint64_t end_ = bh_mono_ns() + DEADLINE_NS;                                                \
        while (!(cond) && bh_mono_ns() < end_)                                                     \
            turn_world(w);                                                                         \
        CU_ASSERT(!!(cond));                                                                       \
    } while (0)
/* A few turns in which nothing may happen. */
static inline void settle(struct world *w)
{
    for (int i = 0; i < 30; i++)
        turn_world(w);
}

/* The same under a manual clock: no turns of a loop, no waiting. */
#define SECOND 1000000000

static inline void world_manual(struct world *w, struct bh_sim_options o)
{
    o.manual_clock = true;
    o.seed = 1;
    world_init(w, &o);
}

/* Settles what is due, lets time pass, settles again; pods are bound in between when bind is
 * set. */
static inline void pass(struct world *w, double seconds)
{
    int64_t end = bh_sim_now_ns(w->f.s) + (int64_t)(seconds * SECOND), next;

    for (;;) {
        CU_ASSERT_EQUAL(bh_sim_advance(w->f.s, 0), 0);
        if (w->bind)
            bind_all(w);
        next = bh_sim_next_ns(w->f.s);
        if (next > end)
            break;
        CU_ASSERT_EQUAL(bh_sim_advance(w->f.s, next), 0);
    }
    CU_ASSERT_EQUAL(bh_sim_advance(w->f.s, end), 0);
    if (w->bind)
        bind_all(w);
    CU_ASSERT_EQUAL(bh_sim_advance(w->f.s, 0), 0);
}

/* Number at a path of an object; -1 when the object is gone, 0 when the field is absent. */
static inline int64_t num(struct world *w, const char *plural, const char *name, const char *path)
{
    struct bh_sim_obj *o = get(&w->f, plural, "default", name);
    struct bh_arena a;
    int64_t n;

    if (!o)
        return -1;
    bh_arena_init(&a, 0);
    n = bh_tree_i64(bh_sim_obj_tree(&a, o), path, 0);
    bh_arena_fini(&a);
    return n;
}

static inline size_t count_pods(struct world *w, const char *phase)
{
    struct bh_sim_objs l = {0};
    size_t n = 0;

    bh_sim_list(w->f.s, type_of("pods"), NULL, &l);
    for (size_t i = 0; i < l.n; i++)
        n += !phase || bh_streq(l.v[i]->phase, phase);
    bh_sim_objs_fini(&l);
    return n;
}

#define NODE(n) "metadata: {name: " n "}"
#define TEMPLATE                                                                                   \
    "  selector: {matchLabels: {app: x}}\n"                                                        \
    "  template: {metadata: {labels: {app: x}}, spec: {containers: [{name: c, image: i}]}}\n"

#endif
