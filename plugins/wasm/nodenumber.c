/* SPDX-License-Identifier: Apache-2.0
 *
 * nodenumber.c - NodeNumber as a guest: a pod and a node whose names end in the same digit belong
 * together
 *
 * Config "reverse": those that do not. Config "strict": others are no candidates at all. Config
 * "digit": ten times the node's digit, whatever the pod is (plugins/nodenumber, `berth bench plugins`).
 */
#include "guest.h"

static char name[254];
static uint8_t pod[1 << 20]; /* the memory is the instance's own */
static int digit;            /* of the pod; -1: it has none */
static bool reverse, strict, ten;

static int last_digit(const void *text, uint32_t n)
{
    const char *s = text;

    return n && s[n - 1] >= '0' && s[n - 1] <= '9' ? s[n - 1] - '0' : -1;
}

GUEST_HOOK(prefilter, int32_t)
{
    struct guest_field metadata, f;
    char config[16];
    uint32_t n = guest_config(config, sizeof config);

    reverse = n <= sizeof config && guest_is(config, n, "reverse");
    strict = n <= sizeof config && guest_is(config, n, "strict");
    ten = n <= sizeof config && guest_is(config, n, "digit");
    digit = -1;
    if (ten)
        return GUEST_SUCCESS;
    n = guest_current_pod(pod, sizeof pod);
    if (n > sizeof pod)
        return guest_status(GUEST_ERROR, "the pod has more than 1 MiB");
    if (guest_find(guest_open(pod, n), 1, &metadata) &&
        guest_find(guest_open(metadata.bytes, metadata.n), 1, &f))
        digit = last_digit(f.bytes, f.n);
    return GUEST_SUCCESS;
}

static bool fits(void)
{
    uint32_t n = guest_current_node_name(name, sizeof name);

    return digit >= 0 && n <= sizeof name && last_digit(name, n) == digit;
}

GUEST_HOOK(filter, int32_t)
{
    if (!strict || digit < 0 || fits())
        return GUEST_SUCCESS;
    return guest_status(GUEST_UNSCHEDULABLE, "node(s) had another number than the pod");
}

GUEST_HOOK(score, int64_t)
{
    if (ten) {
        uint32_t n = guest_current_node_name(name, sizeof name);
        int of_node = n <= sizeof name ? last_digit(name, n) : -1;
        return guest_scored(of_node > 0 ? 10 * of_node : 0, GUEST_SUCCESS);
    }
    return guest_scored(digit >= 0 && fits() != reverse ? 100 : 0, GUEST_SUCCESS);
}
