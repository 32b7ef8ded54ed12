/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/native/aside.c - what stands in for a plugin that was put aside
 *
 * Callbacks of the same shapes, none of which runs code of the plugin: they fail, or have no say.
 */
#include "scheduler/native/native_int.h"

static int32_t stand_in(struct berth_why *why)
{
    const struct bh_native_plugin *p = bh_native_inside->of;

    why->reason = (struct berth_str){p->aside, strlen(p->aside)};
    return p->skips ? BERTH_SUCCESS : BERTH_ERROR;
}

static int32_t create(struct berth_home *h BH_UNUSED, const struct berth_value *args BH_UNUSED,
                      void **ret BH_UNUSED, struct berth_why *why BH_UNUSED)
{
    return BERTH_SUCCESS;
}
static int32_t pre_enqueue(void *self BH_UNUSED, struct berth_call *c BH_UNUSED,
                           struct berth_why *why)
{
    return stand_in(why);
}
/* The adapter knows the order of who has none. */
static int32_t less(void *self BH_UNUSED, struct berth_call *c BH_UNUSED,
                    const struct berth_queued *a BH_UNUSED, const struct berth_queued *b BH_UNUSED)
{
    return 0;
}
static int32_t pre_filter(void *self BH_UNUSED, struct berth_call *c BH_UNUSED,
                          const berth_sym **names BH_UNUSED, uint64_t *n BH_UNUSED,
                          struct berth_why *why)
{
    return stand_in(why);
}
static int32_t change_pod(void *self BH_UNUSED, struct berth_call *c BH_UNUSED,
                          const struct berth_pod *pod BH_UNUSED,
                          const struct berth_node *node BH_UNUSED, int32_t by BH_UNUSED,
                          struct berth_why *why)
{
    return stand_in(why);
}
static void *clone_state(void *self BH_UNUSED, struct berth_call *c BH_UNUSED,
                         const void *state BH_UNUSED)
{
    return NULL;
}
static int32_t filter(void *self BH_UNUSED, struct berth_call *c BH_UNUSED,
                      const struct berth_node *node BH_UNUSED, struct berth_why *why)
{
    return stand_in(why);
}
static int32_t filter_rows(void *self BH_UNUSED, struct berth_call *c BH_UNUSED,
                           const uint32_t *rows BH_UNUSED, uint64_t n, uint64_t *keep,
                           struct berth_why *why)
{
    memset(keep, 0xff, (n + 63) / 64 * sizeof *keep);
    return stand_in(why);
}
static int32_t post_filter(void *self BH_UNUSED, struct berth_call *c BH_UNUSED,
                           struct berth_post_filter *ret BH_UNUSED, struct berth_why *why)
{
    int32_t code = stand_in(why);
    return code == BERTH_SUCCESS ? BERTH_UNSCHEDULABLE : code; /* the next one is asked */
}
static int32_t pre_score(void *self BH_UNUSED, struct berth_call *c BH_UNUSED,
                         const uint32_t *rows BH_UNUSED, uint64_t n BH_UNUSED,
                         struct berth_why *why)
{
    return stand_in(why);
}
static int32_t score(void *self BH_UNUSED, struct berth_call *c BH_UNUSED,
                     const struct berth_node *node BH_UNUSED, int64_t *ret, struct berth_why *why)
{
    *ret = 0;
    return stand_in(why);
}
static int32_t score_rows(void *self BH_UNUSED, struct berth_call *c BH_UNUSED,
                          const uint32_t *rows BH_UNUSED, uint64_t n, int64_t *ret,
                          struct berth_why *why)
{
    memset(ret, 0, n * sizeof *ret);
    return stand_in(why);
}
static int32_t normalize(void *self BH_UNUSED, struct berth_call *c BH_UNUSED, int64_t *scores,
                         uint64_t n, struct berth_why *why)
{
    memset(scores, 0, n * sizeof *scores);
    return stand_in(why);
}
static int32_t on_node(void *self BH_UNUSED, struct berth_call *c BH_UNUSED,
                       berth_sym node BH_UNUSED, struct berth_why *why)
{
    return stand_in(why);
}
static int32_t bind(void *self BH_UNUSED, struct berth_call *c BH_UNUSED, berth_sym node BH_UNUSED,
                    struct berth_why *why)
{
    int32_t code = stand_in(why);
    return code == BERTH_SUCCESS ? BERTH_SKIP : code; /* the next one's turn */
}
static int32_t permit(void *self BH_UNUSED, struct berth_call *c BH_UNUSED,
                      berth_sym node BH_UNUSED, int64_t *wait_ns BH_UNUSED, struct berth_why *why)
{
    return stand_in(why);
}
static void tends_nothing(void *self BH_UNUSED, struct berth_call *c BH_UNUSED)
{
}

static void nothing_on_node(void *self BH_UNUSED, struct berth_call *c BH_UNUSED,
                            berth_sym node BH_UNUSED)
{
}

void bh_native_put_aside(struct bh_native_plugin *p, bool skip)
{
    const struct berth_plugin was = p->p;

    p->aside = "it is put aside: it ended the scheduler three times within ten minutes";
    p->skips = skip;
    p->p = (struct berth_plugin){
        .size = was.size,
        .name = was.name,
        .reads = was.reads,
        .normal = was.normal,
        .events = was.events,
        .n_events = was.n_events,
        .create = create,
        .pre_enqueue = was.pre_enqueue ? pre_enqueue : NULL,
        .pre_filter = was.pre_filter ? pre_filter : NULL,
        .change_pod = was.change_pod ? change_pod : NULL,
        .clone_state = was.clone_state ? clone_state : NULL,
        .filter = was.filter ? filter : NULL,
        .filter_rows = was.filter_rows ? filter_rows : NULL,
        .post_filter = was.post_filter ? post_filter : NULL,
        .pre_score = was.pre_score ? pre_score : NULL,
        .score = was.score ? score : NULL,
        .score_rows = was.score_rows ? score_rows : NULL,
        .normalize = was.normalize ? normalize : NULL,
        .reserve = was.reserve ? on_node : NULL,
        .unreserve = was.unreserve ? nothing_on_node : NULL,
        .permit = was.permit ? permit : NULL,
        .less = was.less ? less : NULL,
        .pre_bind = was.pre_bind ? on_node : NULL,
        .bind = was.bind ? bind : NULL,
        .post_bind = was.post_bind ? nothing_on_node : NULL,
        .tend = was.tend ? tends_nothing : NULL,
    };
    bh_native_describe(p);
}
