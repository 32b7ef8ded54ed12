/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/fuzz/fuzz_sched_config.c - any text as scheduler configuration: profiles or errors
 *
 * Invariants: a refusal has a summary and at least one error, on a line of the text. What is
 * accepted makes an engine, or fails with a text as well; it is written as v1, which is accepted
 * again, makes the same, and is written the same.
 */
#include "scheduler/engine/engine.h"

#include "scheduler/config/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_refusal(struct bh_config_report *r, size_t size)
{
    if (!*r->summary || !r->errors.n)
        abort();
    for (uint32_t i = 0; i < r->errors.n; i++)
        if (r->errors.v[i].line > size + 1 || !*r->errors.v[i].text)
            abort();
    (void)bh_config_report_line(r, "file");
}

static void check_same(const struct bh_profile_config *a, const struct bh_profile_config *b)
{
    for (unsigned pt = 0; pt < BH_POINT_COUNT; pt++) {
        if (a->n_points[pt] != b->n_points[pt])
            abort();
        for (uint32_t i = 0; i < a->n_points[pt]; i++)
            if (!bh_streq(a->points[pt][i].name, b->points[pt][i].name) ||
                a->points[pt][i].weight != b->points[pt][i].weight)
                abort();
    }
}

static void check_round_trip(const struct bh_sched_config *c)
{
    struct bh_buf once = {0}, twice = {0};
    struct bh_sched_config *again = NULL;
    struct bh_config_report r;

    bh_sched_config_write(c, BH_SCHED_CONFIG_YAML, true, &once);
    bh_config_report_init(&r);
    if (bh_sched_config_read(bh_buf_str(&once), once.n, &again, &r) < 0)
        abort();
    bh_sched_config_write(again, BH_SCHED_CONFIG_YAML, true, &twice);
    if (once.n != twice.n || memcmp(once.p, twice.p, once.n) != 0 ||
        c->n_profiles != again->n_profiles || c->n_extenders != again->n_extenders)
        abort();
    for (uint32_t i = 0; i < c->n_profiles; i++)
        check_same(&c->profiles[i], &again->profiles[i]);
    bh_sched_config_free(again);
    bh_config_report_fini(&r);
    bh_buf_fini(&once);
    bh_buf_fini(&twice);
}

static void check_engine(const struct bh_sched_config *c)
{
    const struct bh_engine_options o = {.config = c};
    struct bh_engine *e = NULL;
    struct bh_err err = {{0}};

    if (bh_engine_new(&o, &e, &err) < 0 && !err.msg[0])
        abort();
    bh_engine_free(e);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bh_sched_config *c = NULL;
    struct bh_config_report r;

    bh_config_report_init(&r);
    if (bh_sched_config_read((const char *)data, size, &c, &r) < 0) {
        check_refusal(&r, size);
    } else {
        check_round_trip(c);
        check_engine(c);
    }
    bh_sched_config_free(c);
    bh_config_report_fini(&r);
    return 0;
}
