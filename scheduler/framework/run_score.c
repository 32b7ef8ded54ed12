/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/framework/run_score.c - PreScore, Score, Normalize, weights
 *
 * Upstream: pkg/scheduler/framework/runtime/framework.go (RunPreScorePlugins, RunScorePlugins),
 *           plugins/helper/normalize_score.go.
 */
#include <inttypes.h>

#include "scheduler/framework/framework.h"

const struct bh_status *bh_run_pre_score(struct bh_cycle *cy, const uint32_t *rows, uint32_t n)
{
    const struct bh_framework *fw = cy->fw;

    bh_each_plugin(i, fw, BH_POINT_PRE_SCORE) {
        const struct bh_plugin *p = fw->plugins[i].plugin;
        if (cy->left_out >> i & 1)
            continue;
        uint64_t t = bh_sample_begin(cy);
        const struct bh_status *s = p->pre_score(&cy->calls[i], rows, n);
        bh_sample_end(cy, i, BH_SEEN_PRE_SCORE, bh_status_code(s), t);
        fw->evaluations[i].pre_score += bh_status_code(s) != BH_SKIP;
        if (bh_unlikely(cy->notes))
            cy->notes->pre_score[cy->notes->n_pre_score++] =
                (struct bh_plugin_note){.plugin = p->name, .status = s};
        if (bh_status_code(s) == BH_SKIP)
            cy->skip_score |= (uint64_t)1 << i;
        else if (bh_status_code(s) != BH_SUCCESS)
            return bh_run_failed(cy, "PreScore", p, s);
    }
    return NULL;
}

void bh_default_normalize(int64_t *scores, uint32_t n, bool reverse)
{
    int64_t max = 0;

    for (uint32_t i = 0; i < n; i++)
        max = BH_MAX(max, scores[i]);
    for (uint32_t i = 0; i < n; i++)
        scores[i] = bh_normalized(reverse ? BH_NORMAL_MAX_REVERSE : BH_NORMAL_MAX, scores[i], max);
}

/* One whose batch form asks node by node is entered once for all of them here, too. false: it is to be asked
 * alone, and to say what is wrong. */
static bool score_all(struct bh_cycle *cy, unsigned i, const uint32_t *rows, uint32_t n,
                      int64_t *scores)
{
    const struct bh_plugin *p = cy->fw->plugins[i].plugin;

    if (!p->scores_alone || !p->score_rows || cy->replaced || !n)
        return false;
    uint64_t t = bh_sample_begin(cy);
    p->score_rows(&cy->calls[i], rows, n, scores);
    if (cy->score_failed) {
        cy->score_failed = false;
        return false;
    }
    bh_sample_end(cy, i, BH_SEEN_SCORE, BH_SUCCESS, t);
    return true;
}

static const struct bh_status *score_one(struct bh_cycle *cy, unsigned i, const uint32_t *rows,
                                         uint32_t n, int64_t *scores)
{
    const struct bh_plugin *p = cy->fw->plugins[i].plugin;
    const struct bh_status *fails = cy->fw->plugins[i].no_pre_score ? p->without_pre_score : NULL;
    struct bh_call *call = &cy->calls[i];
    const bool timed = cy->samples;

    cy->fw->evaluations[i].score += n;
    if (!fails && score_all(cy, i, rows, n, scores))
        return NULL;
    for (uint32_t k = 0; k < n; k++) {
        uint64_t t = timed ? bh_sample_begin(cy) : 0;
        const struct bh_status *s =
            fails ? fails : p->score(call, bh_scored_node(cy, call->cache, rows[k]), &scores[k]);
        if (bh_unlikely(timed))
            bh_sample_end(cy, i, BH_SEEN_SCORE, bh_status_code(s), t);
        if (bh_status_code(s) != BH_SUCCESS)
            return bh_status_new(cy->arena, BH_ERROR, p->name,
                                 "running Score plugins: plugin \"%s\" failed with: %s", p->name,
                                 bh_status_message(cy->arena, s));
    }
    return NULL;
}

const struct bh_status *bh_run_score(struct bh_cycle *cy, const uint32_t *rows, uint32_t n,
                                     int64_t *ret_total, int64_t *ret_raw, int64_t *ret_weighted)
{
    const struct bh_framework *fw = cy->fw;
    int64_t *scores = bh_arena_new_array(cy->arena, int64_t, n ? n : 1);

    for (uint32_t k = 0; k < n; k++)
        ret_total[k] = 0;
    for (uint32_t k = 0; k < fw->n_point[BH_POINT_SCORE]; k++) {
        unsigned i = fw->point[BH_POINT_SCORE][k];
        const struct bh_plugin *p = fw->plugins[i].plugin;
        const int64_t weight = fw->plugins[i].weight;
        if (cy->skip_score >> i & 1)
            continue;
        const struct bh_status *s = score_one(cy, i, rows, n, scores);
        if (s)
            return s;
        if (ret_raw)
            memcpy(ret_raw + (size_t)k * n, scores, n * sizeof *scores);
        if (p->normalize || p->normal != BH_NORMAL_NONE) {
            uint64_t t = bh_sample_begin(cy);
            if (p->normalize)
                p->normalize(&cy->calls[i], scores, n);
            else
                bh_default_normalize(scores, n, p->normal == BH_NORMAL_MAX_REVERSE);
            bh_sample_end(cy, i, BH_SEEN_NORMALIZE, BH_SUCCESS, t);
        }
        for (uint32_t j = 0; j < n; j++) {
            if (scores[j] < 0 || scores[j] > 100)
                return bh_status_new(
                    cy->arena, BH_ERROR, p->name,
                    "applying score defaultWeights on Score plugins: plugin \"%s\" returns an "
                    "invalid score %" PRId64
                    ", it should in the range of [0, 100] after normalizing",
                    p->name, scores[j]);
            ret_total[j] += scores[j] * weight;
        }
        for (uint32_t j = 0; ret_weighted && j < n; j++)
            ret_weighted[(size_t)k * n + j] = scores[j] * weight;
    }
    return NULL;
}
