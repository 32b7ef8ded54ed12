/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/scheduler/config/fixture.h - texts of configurations and what reading them must give
 */
#ifndef BH_CONFIG_FIXTURE_H
#define BH_CONFIG_FIXTURE_H

#include <errno.h>
#include <stdio.h>

#include "common/data/yaml.h"
#include "scheduler/config/config.h"
#include "tests/unit/harness.h"

#define HEAD   "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
#define BETA3  "apiVersion: kubescheduler.config.k8s.io/v1beta3\nkind: KubeSchedulerConfiguration\n"
#define BETA2  "apiVersion: kubescheduler.config.k8s.io/v1beta2\nkind: KubeSchedulerConfiguration\n"
#define ARGS   HEAD "profiles:\n- pluginConfig:\n"
#define SCHEME "in scheme \"pkg/scheduler/apis/config/scheme/scheme.go:29\""

struct fx_read { /* one file that was read; fx_done() */
    struct bh_sched_config *c;
    struct bh_config_report r;
};

static inline int fx_text(struct fx_read *f, const char *text)
{
    f->c = NULL;
    bh_config_report_init(&f->r);
    return bh_sched_config_read(text, strlen(text), &f->c, &f->r);
}

static inline void fx_done(struct fx_read *f)
{
    bh_sched_config_free(f->c);
    bh_config_report_fini(&f->r);
}

/* The file must be accepted. */
BH_UNUSED static struct fx_read fx_good(const char *text)
{
    struct fx_read f;

    if (fx_text(&f, text) < 0)
        fprintf(stderr, "  refused: %s\n", f.r.summary);
    CU_ASSERT_FATAL(f.c != NULL);
    return f;
}

struct fx_bad { /* the whole text, and the line of its first error (0 = none) */
    const char *yaml, *message;
    uint32_t line;
};

BH_UNUSED static void fx_refused(const struct fx_bad *cases, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct fx_read f;
        int rc = fx_text(&f, cases[i].yaml);
        uint32_t line = f.r.errors.n ? f.r.errors.v[0].line : 0;
        bool same = rc < 0 && bh_streq(f.r.summary, cases[i].message);
        if (!same || line != cases[i].line)
            fprintf(stderr, "  case %zu: have %u \"%s\"\n           want %u \"%s\"\n", i, line,
                    rc == 0 ? "(accepted)" : f.r.summary, cases[i].line, cases[i].message);
        CU_ASSERT(same);
        CU_ASSERT(line == cases[i].line);
        fx_done(&f);
    }
}

/* The plugins of a point as "A B", or "A:2 B:1" for scores. */
static inline const char *fx_plugins(struct bh_arena *a, const struct bh_profile_config *p,
                                     enum bh_point pt)
{
    const char *text = "";

    for (uint32_t i = 0; i < p->n_points[pt]; i++) {
        const struct bh_plugin_ref *r = &p->points[pt][i];
        text = bh_arena_printf(a, "%s%s%s", text, i ? " " : "", r->name);
        if (pt == BH_POINT_SCORE)
            text = bh_arena_printf(a, "%s:%d", text, r->weight);
    }
    return text;
}

BH_UNUSED static void fx_expect_plugins(const struct bh_sched_config *c, unsigned profile,
                                        enum bh_point pt, const char *want)
{
    struct bh_arena a;

    bh_arena_init(&a, 0);
    const char *have = fx_plugins(&a, &c->profiles[profile], pt);
    if (!bh_streq(have, want))
        fprintf(stderr, "  have %s\n  want %s\n", have, want);
    CU_ASSERT(bh_streq(have, want));
    bh_arena_fini(&a);
}

BH_UNUSED static bool fx_warned(const struct fx_read *f, uint32_t line, const char *part)
{
    for (uint32_t i = 0; i < f->r.warnings.n; i++)
        if (f->r.warnings.v[i].line == line && strstr(f->r.warnings.v[i].text, part))
            return true;
    return false;
}
#endif
