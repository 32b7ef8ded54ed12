/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/scheduler/queue/test_pods.c - handles: one a uid, as long as one is held; phases
 */
#include "scheduler/queue/pods.h"

#include "tests/unit/harness.h"

static void test_one_handle_a_uid(void)
{
    struct bh_pods t = {0};
    struct bh_pod_state *a = bh_pods_hold(&t, BH_STR("uid-a")), *b;

    CU_ASSERT(bh_pods_hold(&t, BH_STR("uid-a")) == a);
    CU_ASSERT(bh_pods_find(&t, BH_STR("uid-a")) == a);
    CU_ASSERT(!bh_pods_find(&t, BH_STR("uid-b")));
    b = bh_pods_hold(&t, BH_STR("uid-b"));
    CU_ASSERT(b != a);
    CU_ASSERT_STRING_EQUAL(b->uid, "uid-b");
    CU_ASSERT(bh_str_eqc(bh_pod_uid(a), "uid-a"));
    bh_pod_drop(a);
    CU_ASSERT(bh_pods_find(&t, BH_STR("uid-a")) == a); /* held twice */
    bh_pod_drop(a);
    CU_ASSERT(!bh_pods_find(&t, BH_STR("uid-a")));
    bh_pod_drop(b);
    bh_pods_fini(&t);
}

static enum bh_pod_phase phase(enum bh_queue_place place, bool bind, bool prebind, bool adopted)
{
    static char something;
    void *p = &something;

    return bh_pod_phase(&(struct bh_pod_state){.place = place,
                                               .bind = bind ? p : NULL,
                                               .prebind = prebind ? p : NULL,
                                               .adopted = adopted ? p : NULL});
}

static void test_the_phase_is_what_hangs_there(void)
{
    CU_ASSERT(phase(BH_Q_NONE, false, false, false) == BH_POD_NONE);
    CU_ASSERT(phase(BH_Q_NONE, true, false, false) == BH_POD_NONE); /* deleted with its bind out */
    for (enum bh_queue_place p = BH_Q_ACTIVE; p <= BH_Q_GATED; p++)
        CU_ASSERT(phase(p, false, true, false) == BH_POD_QUEUED); /* PostFilter's writes */
    CU_ASSERT(phase(BH_Q_IN_FLIGHT, false, false, false) == BH_POD_DECIDING);
    CU_ASSERT(phase(BH_Q_WAITING, false, true, false) == BH_POD_PREBIND);
    CU_ASSERT(phase(BH_Q_BINDING, false, true, false) == BH_POD_PREBIND);
    CU_ASSERT(phase(BH_Q_BINDING, true, false, false) == BH_POD_BINDING);
    CU_ASSERT(phase(BH_Q_BINDING, false, false, true) == BH_POD_ADOPTED);
    CU_ASSERT(phase(BH_Q_BINDING, false, false, false) == BH_POD_LOST);
    CU_ASSERT(phase(BH_Q_WAITING, false, false, false) == BH_POD_LOST);
}

BH_TESTS("scheduler/queue/pods", {"one handle a uid, as long as it is held", test_one_handle_a_uid},
         {"the phase is what hangs on the handle", test_the_phase_is_what_hangs_there})
