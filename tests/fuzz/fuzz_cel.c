/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/fuzz/fuzz_cel.c - expressions from anywhere, on one device; what they cost as rules of a schema
 *
 * Whatever compiles evaluates to a bool, an error with a text, or the cost limit, twice the same,
 * and within a bounded amount of memory. What does not compile says why.
 */
#include <errno.h>
#include <stdlib.h>

#include "common/cel/cel.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static int match(const struct bh_cel_program *prog, const K8s__Device *device, bool *ret,
                 uint64_t *ret_cost, struct bh_err *err)
{
    struct bh_cel_device d = {"dra.example.com", device};
    struct bh_arena scratch;
    int rc;

    bh_arena_init(&scratch, 0);
    rc = bh_cel_match_device(prog, &d, &scratch, ret, ret_cost, err);
    if (scratch.used_bytes > ((size_t)512 << 20))
        abort();
    bh_arena_fini(&scratch);
    return rc;
}

static void evaluate(const struct bh_cel_program *prog)
{
    K8s__DeviceAttribute value[2] = {K8S__DEVICE_ATTRIBUTE__INIT, K8S__DEVICE_ATTRIBUTE__INIT};
    K8s__DeviceAttributeEntry entry[2] = {K8S__DEVICE_ATTRIBUTE_ENTRY__INIT,
                                          K8S__DEVICE_ATTRIBUTE_ENTRY__INIT};
    K8s__DeviceAttributeEntry *entries[2] = {&entry[0], &entry[1]};
    K8s__Device device = K8S__DEVICE__INIT;
    struct bh_err err = {""}, again_err = {""};
    uint64_t cost, again_cost;
    bool b = false, again = false;

    entry[0].key = (char *)"name";
    entry[0].value = &value[0];
    value[0].string = (char *)"fish";
    entry[1].key = (char *)"other.example.com/version";
    entry[1].value = &value[1];
    value[1].version = (char *)"1.2.3-rc.1";
    device.n_attributes = 2;
    device.attributes = entries;
    int rc = match(prog, &device, &b, &cost, &err);
    int rc2 = match(prog, &device, &again, &again_cost, &again_err);
    if (rc != rc2 || b != again || cost != again_cost || strcmp(err.msg, again_err.msg) != 0)
        abort();
    if (rc != 0 && ((rc != -EINVAL && rc != -E2BIG) || !err.msg[0]))
        abort();
    if ((rc == -E2BIG) != (cost > BH_CEL_COST_LIMIT))
        abort();
}

/* A rule that compiles has an estimate, twice the same. */
static void estimate(const char *text)
{
    static const char schema[] =
        "{\"type\":\"object\",\"properties\":{\"s\":{\"type\":\"string\",\"maxLength\":9},"
        "\"l\":{\"type\":\"array\",\"items\":{\"type\":\"object\",\"properties\":{\"k\":{"
        "\"type\":\"string\"}}}},\"m\":{\"type\":\"object\",\"additionalProperties\":{"
        "\"x-kubernetes-int-or-string\":true}}}}";
    struct bh_cel_program *prog = NULL;
    struct bh_arena a BH_CLEANUP(bh_arena_fini);
    struct bh_json *v = NULL;
    uint64_t cost = 0, again = 0;

    bh_arena_init(&a, 0);
    if (bh_json_parse(&a, schema, strlen(schema), 0, &v, NULL) < 0)
        abort();
    bool good = bh_cel_compile_rule(text, v, BH_CEL_ROOT, &prog, NULL) == 0;
    bh_cel_free(prog);
    if (good && (bh_cel_estimate_rule(text, v, BH_CEL_ROOT, &cost) != 0 ||
                 bh_cel_estimate_rule(text, v, BH_CEL_ROOT, &again) != 0 || cost != again))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    struct bh_cel_program *prog = NULL;
    struct bh_err err = {""};
    char *text = bh_strndup((const char *)p, n);

    if (bh_cel_compile(text, &prog, &err) == 0)
        evaluate(prog);
    else if (prog || !err.msg[0])
        abort();
    bh_cel_free(prog);
    estimate(text);
    free(text);
    return 0;
}
