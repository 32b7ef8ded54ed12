/* SPDX-License-Identifier: Apache-2.0
 *
 * A guest whose answers may be kept (nodeLocal), or not: config "size": the score is of the node's
 * object; "turns": another one each time; "trap": it traps; "tenth": a node whose object has less than
 * 10 bytes is none; "few": it traps when it is asked about more than 128 nodes after one prefilter;
 * "event": prefilter and prescore record an Event each; "doubts": prefilter says another thing the second time;
 * "balks", "late": prefilter, prescore traps then.
 */
#include "plugins/wasm/guest.h"

static char name[254], config[16];
static uint8_t node[1 << 16];
static uint32_t n_config, n_scores, n_asked, n_prefilters, n_prescores;

void start(void)
    __attribute__((export_name("_start"))); /* it has a run time, as those of the SDK */
void start(void)
{
}

static bool wished(const char *what)
{
    n_config = guest_config(config, sizeof config);
    return n_config <= sizeof config && guest_is(config, n_config, what);
}

static uint32_t size_of_node(void)
{
    return guest_node(name, guest_current_node_name(name, sizeof name), node, sizeof node);
}

static int32_t about_pod(void)
{
    static const char event[] =
        "{\"RegardingReference\":{\"Kind\":\"Pod\",\"Name\":\"p\"},\"Eventtype\":\"Normal\","
        "\"Reason\":\"R\",\"Action\":\"A\",\"Note\":\"\"}";

    if (wished("event"))
        guest_event_json(event, sizeof event - 1);
    return GUEST_SUCCESS;
}

GUEST_HOOK(prefilter, int32_t)
{
    const bool again = n_prefilters++ > 0;

    n_asked = 0;
    if (again && wished("balks"))
        __builtin_trap();
    return again && wished("doubts") ? GUEST_UNSCHEDULABLE : about_pod();
}

GUEST_HOOK(prescore, int32_t)
{
    if (n_prescores++ > 0 && wished("late"))
        __builtin_trap();
    return about_pod();
}

static void one_more(void)
{
    if (wished("few") && ++n_asked > 128)
        __builtin_trap();
}

GUEST_HOOK(filter, int32_t)
{
    one_more();
    if (wished("tenth") && size_of_node() < 10)
        return guest_status(GUEST_UNSCHEDULABLE, "too little is known of the node");
    return GUEST_SUCCESS;
}

GUEST_HOOK(score, int64_t)
{
    one_more();
    if (wished("trap"))
        __builtin_trap();
    if (wished("turns"))
        return guest_scored((int32_t)(++n_scores % 100), GUEST_SUCCESS);
    return guest_scored((int32_t)(size_of_node() % 100), GUEST_SUCCESS);
}
