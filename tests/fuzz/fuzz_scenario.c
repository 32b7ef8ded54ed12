/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/fuzz/fuzz_scenario.c - any text as a scenario, and as a result of one
 *
 * A refusal says why, and on which line if it knows. What is accepted runs, for ten minutes of its
 * own time at most, twice to the same result, or fails with a text; a result makes a report. Text
 * that begins with '{' is read as a result, too.
 */
#include "common/base/buf.h"
#include "simulator/scenario/scenario.h"

#include <errno.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

#define RUN_NS      (INT64_C(600) * 1000000000)
#define OBJECTS_MAX 60u
#define TICKS_MAX   200u

struct patience {
    struct bh_scenario_progress progress;
    unsigned ticks;
};

static void on_tick(void *arg)
{
    struct patience *p = arg;

    if (++p->ticks > TICKS_MAX)
        p->progress.cancel = true;
}

static int run(const struct bh_scenario *s, struct bh_buf *out)
{
    struct patience p = {.ticks = 0};
    const struct bh_scenario_options o = {.progress = &p.progress,
                                          .tick = on_tick,
                                          .arg = &p,
                                          .max_events = 200,
                                          .max_objects = OBJECTS_MAX};
    struct bh_err err = {""};
    bool passed;
    int rc = bh_scenario_run(s, &o, out, &passed, &err);

    bh_assert(rc == 0 || rc == -ECANCELED || *err.msg);
    return rc;
}

static void report(const char *json, size_t n, bool ours)
{
    struct bh_buf out = {0};
    struct bh_err err = {""};

    int rc = bh_scenario_html(json, n, &out, &err);
    bh_assert(rc == 0 ? out.n : *err.msg && !ours);
    bh_buf_reset(&out);
    rc = bh_scenario_text(json, n, false, &out, &err);
    bh_assert(rc == 0 ? out.n : *err.msg && !ours);
    bh_buf_fini(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    const struct bh_scenario_source src = {.text = (const char *)data, .n = n};
    struct bh_scenario_error e;
    struct bh_scenario *s = NULL;
    struct bh_err err = {""};
    struct bh_buf first = {0}, second = {0};

    if (n && data[0] == '{')
        report((const char *)data, n, false);
    if (bh_scenario_read(&src, &s, &e, &err) < 0) {
        bh_assert(*err.msg && *e.message);
        return 0;
    }
    s->most_ns = BH_MIN(s->most_ns, RUN_NS);
    if (run(s, &first) == 0) {
        report(bh_buf_str(&first), first.n, true);
        bh_assert(run(s, &second) == 0 && bh_streq(bh_buf_str(&first), bh_buf_str(&second)));
    }
    bh_buf_fini(&first);
    bh_buf_fini(&second);
    bh_scenario_free(s);
    return 0;
}
