/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/fuzz/fuzz_extender.c - what an HTTP extender may answer
 *
 * The first byte chooses the verb. What is accepted obeys the bounds that the engine relies on:
 * texts are short and without control characters, lists are as long as they say, names are there.
 */
#include "scheduler/extender/ext_int.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void check_text(const char *s)
{
    bh_assert(strlen(s) <= BH_EXT_TEXT_MAX);
    for (; *s; s++)
        bh_assert((unsigned char)*s >= ' ' && *s != 0x7f);
}

static void check_filter(struct bh_arena *a, struct bh_str body, bool names)
{
    struct bh_ext_filtered f;
    const char *says = NULL;
    struct bh_err err = {{0}};

    if (bh_ext_decode_filter(a, body, names, &f, &says, &err) < 0) {
        bh_assert(*err.msg);
        return;
    }
    if (says)
        check_text(says);
    for (uint32_t i = 0; i < f.n; i++)
        bh_assert(f.nodes[i].name && (f.nodes[i].object != NULL) == f.copies);
    for (uint32_t i = 0; i < f.n_failed; i++) {
        bh_assert(f.failed[i].node);
        check_text(f.failed[i].reason);
    }
}

static void check_scores(struct bh_arena *a, struct bh_str body)
{
    struct bh_ext_scores s = {0};
    struct bh_err err = {{0}};

    if (bh_ext_decode_scores(a, body, &s, &err) < 0)
        bh_assert(*err.msg);
    for (uint32_t i = 0; i < s.n; i++)
        bh_assert(s.hosts[i].host);
}

static void check_victims(struct bh_arena *a, struct bh_str body)
{
    struct bh_ext_victims *v = NULL;
    struct bh_err err = {{0}};
    uint32_t n = 0;

    if (bh_ext_decode_victims(a, body, &v, &n, &err) < 0)
        bh_assert(*err.msg);
    for (uint32_t i = 0; i < n; i++) {
        bh_assert(i == 0 || strcmp(v[i - 1].node, v[i].node) < 0);
        for (uint32_t k = 0; k < v[i].n_pods; k++)
            bh_assert(v[i].pods[k].uid.p);
    }
}

static void check_bound(struct bh_arena *a, struct bh_str body)
{
    const char *says = NULL;
    struct bh_err err = {{0}};

    if (bh_ext_decode_bound(a, body, &says, &err) < 0)
        bh_assert(*err.msg);
    else if (says)
        check_text(says);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct bh_arena a;
    struct bh_str body;

    if (n == 0)
        return 0;
    body = (struct bh_str){(const char *)data + 1, n - 1};
    bh_arena_init(&a, (size_t)64 << 20);
    switch (data[0] % 5) {
    case 0:
    case 1:
        check_filter(&a, body, data[0] % 5);
        break;
    case 2:
        check_scores(&a, body);
        break;
    case 3:
        check_victims(&a, body);
        break;
    default:
        check_bound(&a, body);
        break;
    }
    bh_arena_fini(&a);
    return 0;
}
