/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/scheduler/daemon/test_tend.c - what plugins want written for no pod: it goes out, is not asked for
 * again while it is out, later where it is refused, and ends with the term
 */
#include "scheduler/cache/write.h"
#include "scheduler/framework/asks.h"
#include "scheduler/framework/plugin.h"
#include "tests/unit/scheduler/daemon/fixture.h"

#define PATCH    BERTH__WORK_KIND__WORK_PATCH
#define DONE     BERTH__OUTCOME__OUTCOME_DONE
#define REJECTED BERTH__OUTCOME__OUTCOME_REJECTED
#define SECOND   UINT64_C(1000000000)
#define HELD     (600 * SECOND)

static const char *const names[] = {"a", "b", "c"};

static struct {
    struct bh_plugin_asks *asks;
    unsigned asked; /* so often */
    unsigned wants; /* the first so many of names */
} t;

static int tends_new(const struct bh_plugin_env *env, const struct bh_json *args, void **ret,
                     struct bh_err *err)
{
    (void)args, (void)err;
    t.asks = env->asks;
    *ret = NULL;
    return 0;
}
static const struct bh_status *filter(struct bh_call *c, const struct bh_node_info *node)
{
    (void)c, (void)node;
    return NULL;
}
static void tend(struct bh_call *c)
{
    static const struct bh_patch p = {
        .api_version = "x.io/v1", .resource = "things", .subresource = "status", .body = "{}"};

    CU_ASSERT(!c->pod && !c->cycle);
    t.asked++;
    for (unsigned i = 0; i < t.wants; i++)
        CU_ASSERT(bh_asks_write(t.asks, &(struct bh_write){.what = BH_WRITE_PATCH,
                                                           .namespace_ = i ? "ns" : "",
                                                           .name = names[i],
                                                           .uid = i ? "u" : "",
                                                           .patch = &p,
                                                           .plugin = "Tends"}));
}

static const struct bh_plugin plugin = {.abi = BH_PLUGIN_ABI,
                                        .size = sizeof(struct bh_plugin),
                                        .name = "Tends",
                                        .args_new = tends_new,
                                        .filter = filter,
                                        .tend = tend};
const struct bh_plugin *const bh_plugins_extra[] = {&plugin, NULL};

static void begin(struct fixture *f)
{
    t.asked = 0;
    t.wants = BH_ARRAY_LEN(names);
    setup_with(f, "profiles:\n- schedulerName: default-scheduler\n  plugins: {filter: {enabled: "
                  "[{name: Tends}]}}\n"
                  "- schedulerName: other\n  plugins: {filter: {enabled: [{name: Tends}]}}\n");
}

/* It is time again. */
static void again(struct fixture *f)
{
    const unsigned before = t.asked;

    t.wants = BH_ARRAY_LEN(names);
    f->d.tended_ns = 0;
    SPIN(f, t.asked > before);
}

/* How each is answered: r, refused, or done; then it is asked again after so long. */
static void answered(struct fixture *f, const char *how, uint64_t then_s)
{
    for (unsigned i = 0; how[i]; i++) {
        struct item *it = await(f, &f->b[0], PATCH, names[i]);
        f->d.tended_ns = 0;
        for (int k = 0; k < 5; k++)
            one_turn(f);
        CU_ASSERT_EQUAL(f->d.n_tended, strlen(how) - i); /* and nobody was asked */
        answer(&f->b[0], it, how[i] == 'r' ? REJECTED : DONE, "no");
        t.wants = 0; /* whenever it is asked next */
        SPIN(f, f->d.n_tended == strlen(how) - i - 1);
    }
    CU_ASSERT_EQUAL(f->d.tend_every_ns, then_s * SECOND);
}

static void test_refusals(void)
{
    struct fixture f;

    begin(&f);
    go(&f);
    SPIN(&f, t.asked == 1); /* of one profile's instance */
    answered(&f, "ddd", 1);
    again(&f);
    answered(&f, "rrr", 2); /* of one time, as one */
    again(&f);
    answered(&f, "rdd", 4);
    again(&f);
    answered(&f, "ddr", 8);
    f.d.tend_every_ns = 200 * SECOND;
    again(&f);
    answered(&f, "rrr", 300);
    again(&f);
    answered(&f, "ddd", 1);
    teardown(&f);
}

/* What no binder has by the end of the term is wanted anew in the next one. */
static void test_end_of_a_term(void)
{
    struct fixture f;

    begin(&f);
    f.b[0].window = 0;
    bh_snap_set_lease(f.snap, 7, bh_boot_ns() + HELD);
    go(&f);
    SPIN(&f, f.d.n_tended == 3);
    bh_snap_set_lease(f.snap, 7, 0);
    SPIN(&f, f.d.n_tended == 0);
    const unsigned asked = t.asked;
    f.d.tended_ns = 0;
    for (int i = 0; i < 20; i++)
        one_turn(&f);
    CU_ASSERT_EQUAL(t.asked, asked);
    f.b[0].window = 32;
    bh_snap_set_lease(f.snap, 8, bh_boot_ns() + HELD);
    for (unsigned i = 0; i < BH_ARRAY_LEN(names); i++)
        answer(&f.b[0], await(&f, &f.b[0], PATCH, names[i]), DONE, NULL);
    SPIN(&f, f.d.n_tended == 0);
    CU_ASSERT_EQUAL(f.b[0].term, 8);
    teardown(&f);
}

BH_TESTS("scheduler/daemon/tend", {"what is refused is asked for later", test_refusals},
         {"a term ends", test_end_of_a_term})
