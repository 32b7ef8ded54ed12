/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/scheduler/wasm/wish.h - an engine with the guest tests/guests/wish.c, which does what its configuration says
 */
#ifndef BH_TEST_WISH_H
#define BH_TEST_WISH_H

#include <unistd.h>

#include "scheduler/wasm/guest_int.h"
#include "tests/unit/scheduler/engine/fixture.h"

#define TIME (INT64_C(1893456000) * 1000000000)

static char url[512]; /* of the guest */
static const char *wish_file(void)
{
    const char *build = getenv("BUILD");

    snprintf(url, sizeof url, "file://%s%s", build && *build ? build : "build",
             "/tests/guests/wish.wasm");
    return url;
}

BH_UNUSED static bool absent(void)
{
    bool no = access(wish_file() + strlen("file://"), R_OK) != 0;

    if (no)
        bh_test_skip("the guest is not built: clang and wasm-ld are needed");
    return no;
}

BH_UNUSED static const char *profile(struct bh_arena *a, const char *name, const char *args)
{
    return bh_arena_printf(a,
                           "{'schedulerName':'default-scheduler','plugins':{'multiPoint':"
                           "{'enabled':[{'name':'%s','weight':10}]},'bind':{'disabled':"
                           "[{'name':'DefaultBinder'}]}},'pluginConfig':[{'name':'%s',"
                           "'args':%s}]}",
                           name, name, args);
}

BH_UNUSED static void put_pod_object(struct fx *f, const char *name, const char *node)
{
    bh_engine_put_raw_message(
        f->e, BH_KIND_POD,
        fx_message(f, &k8s__pod__descriptor,
                   fx_json(f, bh_arena_printf(&f->arena,
                                              "{'metadata':{'name':'%s','namespace':'default',"
                                              "'uid':'uid-%s'},'spec':{'containers':[{'name':'c'}],"
                                              "'nodeName':'%s'}}",
                                              name, name, node))));
}

BH_UNUSED static void put_node_object(struct fx *f, const char *name, const char *more)
{
    bh_engine_put_raw_message(
        f->e, BH_KIND_NODE,
        fx_message(
            f, &k8s__node__descriptor,
            fx_json(f, bh_arena_printf(&f->arena, "{'metadata':{'name':'%s'%s}}", name, more))));
}

/* Three nodes, and the guest with what it is wished. A minute, so that no busy machine is a trap. */
BH_UNUSED static void begin_with(struct fx *f, const char *wish, const char *timeout)
{
    static const char *const nodes[] = {"a", "b", "c"};
    struct bh_arena a = {0};

    bh_arena_init(&a, 0);
    bh_guest_start();
    const char *args = bh_arena_printf(
        &a, "{'guestURL':'%s','guestConfig':'%s','hookTimeout':'%s'}", wish_file(), wish, timeout);
    fx_init_with(f, profile(&a, "Wish", args),
                 (struct bh_engine_options){.tie_break = BH_TIE_FIRST, .verify = true});
    bh_arena_fini(&a);
    for (unsigned i = 0; i < 3; i++) {
        fx_node(f, nodes[i], "'cpu':'4','memory':'8Gi','pods':'110'", "", "", "");
        put_node_object(f, nodes[i], "");
    }
}
BH_UNUSED static void begin(struct fx *f, const char *wish)
{
    begin_with(f, wish, "1m");
}

BH_UNUSED static const struct bh_decision *decide(struct fx *f, const char *name)
{
    put_pod_object(f, name, "");
    return fx_schedule(f, fx_pod(f, name, "'cpu':'10m'", ""));
}

#define HAS(have, want)                                                                            \
    do {                                                                                           \
        const char *h_ = (have), *w_ = (want);                                                     \
        if (!h_ || !strstr(h_, w_))                                                                \
            fprintf(stderr, "  line %d: have \"%s\"\n           want \"%s\"\n", __LINE__,          \
                    h_ ? h_ : "(null)", w_);                                                       \
        CU_ASSERT(h_ &&strstr(h_, w_));                                                            \
    } while (0)

BH_UNUSED static const struct bh_json *of_wish(struct fx *f)
{
    bh_json_each(p, bh_guests_json(&f->arena))
        if (bh_streq(bh_json_get_text(p, "name"), "Wish"))
            return p;
    return NULL;
}

BH_UNUSED static struct bh_pending pending(struct fx *f, const char *name)
{
    struct fx_pod p = fx_pod(f, name, "'cpu':'10m'", "");

    put_pod_object(f, name, "");
    return (struct bh_pending){.pod = p.rec, .shape = p.shape};
}

/* Its node, where it is assumed from now on. */
BH_UNUSED static bh_sym choose(struct fx *f, const struct bh_pending *p)
{
    const bh_sym node = bh_engine_schedule(f->e, p, 0, TIME)->node;

    CU_ASSERT_FATAL(node != BH_SYM_NONE);
    CU_ASSERT(bh_engine_assume(f->e, p, node) == 0);
    return node;
}
#endif
