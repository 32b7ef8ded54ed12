/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/fuzz/fuzz_sched_config.c - any text as KubeSchedulerConfiguration: profiles or one line of error
 *
 * A configuration that is accepted must make an engine, or fail with a text as well.
 */
#include "common/data/yaml.h"
#include "scheduler/engine.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bh_sched_config *c = NULL;
    struct bh_engine *e = NULL;
    struct bh_err err = {{0}};
    struct bh_json *tree;
    struct bh_arena a;

    bh_arena_init(&a, (size_t)16 << 20);
    int rc = bh_yaml_parse(&a, (const char *)data, size, BH_JSON_STRICT, &tree, &err);
    if (rc >= 0)
        rc = bh_sched_config_new(tree, &c, &err);
    if (rc >= 0) {
        const struct bh_engine_options o = {.config = c};
        rc = bh_engine_new(&o, &e, &err);
    }
    if (rc < 0 && !err.msg[0])
        abort();
    bh_engine_free(e);
    bh_sched_config_free(c);
    bh_arena_fini(&a);
    return 0;
}
