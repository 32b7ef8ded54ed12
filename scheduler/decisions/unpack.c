/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/decisions/unpack.c - bytes become an attempt again
 *
 * Nothing of the input is believed: a wrong length, number or position makes the whole -EIO.
 */
#include <errno.h>

#include "scheduler/decisions/pack_int.h"

#define PLUGINS_MAX 128u
#define SCORES_MAX  (64u << 20)

struct in {
    const uint8_t *p, *end;
    struct bh_arena *a;
    bool bad;
};

static uint64_t take_u(struct in *in)
{
    uint64_t v = 0;

    for (unsigned shift = 0; shift < 64 && in->p < in->end; shift += 7) {
        uint8_t c = *in->p++;
        v |= (uint64_t)(c & 0x7f) << shift;
        if (!(c & 0x80))
            return v;
    }
    in->bad = true;
    in->p = in->end;
    return 0;
}

static int64_t take_i(struct in *in)
{
    uint64_t v = take_u(in);

    return (int64_t)(v >> 1 ^ -(v & 1));
}

static uint32_t take_u32(struct in *in)
{
    uint64_t v = take_u(in);

    in->bad |= v > UINT32_MAX;
    return v > UINT32_MAX ? 0 : (uint32_t)v;
}

/* How many there are of something that takes at least one byte each. */
static uint32_t take_count(struct in *in)
{
    uint32_t n = take_u32(in);

    in->bad |= n > (size_t)(in->end - in->p);
    return in->bad ? 0 : n;
}

static uint32_t take_at_most(struct in *in, uint32_t max)
{
    uint32_t n = take_count(in);

    in->bad |= n > max;
    return in->bad ? 0 : n;
}

static const uint8_t *take_bytes(struct in *in, size_t n)
{
    const uint8_t *p = in->p;

    if (in->bad || n > (size_t)(in->end - in->p)) {
        in->bad = true;
        return NULL;
    }
    in->p += n;
    return p;
}

static struct bh_str take_str(struct in *in)
{
    uint32_t n = take_count(in);
    const uint8_t *p = take_bytes(in, n);
    const char *s = p ? bh_arena_strndup(in->a, (const char *)p, n) : "";

    in->bad |= strlen(s) != (p ? n : 0);
    return (struct bh_str){s, p ? n : 0};
}

static const char *take_text(struct in *in)
{
    return take_str(in).p;
}

static const char *const *take_texts(struct in *in, uint32_t *ret_n)
{
    uint32_t n = take_count(in);
    const char **v = bh_arena_new_array(in->a, const char *, n + 1);

    for (uint32_t i = 0; i < n; i++)
        v[i] = take_text(in);
    *ret_n = n;
    return v;
}

static const struct bh_status *take_status(struct in *in)
{
    uint32_t code = take_u32(in);
    struct bh_status *s;

    if (!code)
        return NULL;
    in->bad |= code - 1 > BH_PENDING;
    s = bh_arena_new(in->a, struct bh_status);
    s->code = in->bad ? BH_ERROR : (enum bh_code)(code - 1);
    s->plugin = take_text(in);
    if (!*s->plugin)
        s->plugin = NULL;
    s->reasons = take_texts(in, &s->n_reasons);
    return s;
}

/* ---- head --------------------------------------------------------------------------------------
 */

static void take_points(struct in *in, struct bh_record_head *h)
{
    uint32_t n = take_count(in);

    for (uint32_t i = 0; i < n; i++) {
        struct bh_record_point p = {.point = take_text(in)};
        p.ns = take_u(in);
        if (h->n_points < BH_ARRAY_LEN(h->points))
            h->points[h->n_points++] = p;
    }
}

int bh_record_unpack_head(struct bh_arena *a, const void *p, size_t n, struct bh_record_head *h)
{
    struct in in = {.p = p, .end = (const uint8_t *)p + n, .a = a};
    uint32_t mode, result;

    *h = (struct bh_record_head){0};
    if (!n || *in.p++ != BH_RECORD_VERSION)
        return -EIO;
    mode = take_u32(&in);
    result = take_u32(&in);
    if (mode > BH_RECORD_FULL || result > BH_DECISION_ERROR)
        return -EIO;
    h->mode = (enum bh_record_mode)mode;
    h->result = (enum bh_decision_kind)result;
    h->attempt = take_u32(&in);
    h->n_nodes = take_u32(&in);
    h->evaluated = take_u32(&in);
    h->feasible = take_u32(&in);
    h->n_victims = take_u32(&in);
    h->priority = (int32_t)take_i(&in);
    h->duration_ns = take_u(&in);
    h->profile = take_text(&in);
    h->trigger = take_text(&in);
    h->reason = take_text(&in);
    h->message = take_text(&in);
    h->nominated = take_text(&in);
    h->fit_n = take_u32(&in);
    h->post_n = take_u32(&in);
    take_points(&in, h);
    in.bad |= h->fit_n > strlen(h->message) || h->post_n > strlen(h->message);
    return in.bad ? -EIO : 0;
}

/* ---- nodes -------------------------------------------------------------------------------------
 */

static bh_sym take_place(struct in *in, const struct bh_record_names *names)
{
    uint32_t at = take_u32(in);

    in->bad |= at >= names->n;
    return in->bad ? BH_SYM_NONE : names->name[at];
}

static const bh_sym *take_places(struct in *in, const struct bh_record_names *names,
                                 uint32_t *ret_n)
{
    uint32_t n = take_count(in);
    bh_sym *v = bh_arena_new_array(in->a, bh_sym, n + 1);

    for (uint32_t i = 0; i < n; i++)
        v[i] = take_place(in, names);
    *ret_n = n;
    return v;
}

static const struct bh_plugin_note *take_notes(struct in *in, const struct bh_record_names *names,
                                               uint32_t *ret_n)
{
    uint32_t n = take_at_most(in, PLUGINS_MAX);
    struct bh_plugin_note *v = bh_arena_new_array(in->a, struct bh_plugin_note, n + 1);

    for (uint32_t i = 0; i < n; i++) {
        v[i].plugin = take_text(in);
        v[i].status = take_status(in);
        v[i].narrowed = take_u(in);
        if (v[i].narrowed)
            v[i].nodes = take_places(in, names, &v[i].n_nodes);
    }
    *ret_n = n;
    return v;
}

struct placed { /* what became of each place */
    uint32_t *mark, n;
    uint32_t *nth; /* FEASIBLE: how many are before it */
    uint32_t n_feasible, n_rejected, n_unseen;
    const struct bh_status **verdicts;
    uint32_t n_verdicts;
};

static uint64_t little_endian(const uint8_t *p, unsigned width)
{
    uint64_t v = 0;

    for (unsigned k = 0; k < width; k++)
        v |= (uint64_t)p[k] << (8 * k);
    return v;
}

static void count_place(struct in *in, struct placed *pl, uint32_t at)
{
    switch (pl->mark[at]) {
    case BH_NODE_ABSENT:
        break;
    case BH_NODE_UNSEEN:
        pl->n_unseen++;
        break;
    case BH_NODE_FEASIBLE:
        pl->nth[at] = pl->n_feasible++;
        break;
    default:
        pl->n_rejected++;
        in->bad |= pl->mark[at] - BH_NODE_VERDICTS >= pl->n_verdicts;
        break;
    }
}

static void take_nodes(struct in *in, const struct bh_record_names *names, struct placed *pl)
{
    const uint8_t *bytes;
    unsigned width;

    pl->n_verdicts = take_count(in);
    pl->verdicts = bh_arena_new_array(in->a, const struct bh_status *, pl->n_verdicts + 1);
    for (uint32_t i = 0; i < pl->n_verdicts; i++) {
        pl->verdicts[i] = take_status(in);
        in->bad |= !pl->verdicts[i];
    }
    pl->n = take_u32(in);
    in->bad |= pl->n > names->n;
    bytes = take_bytes(in, 1);
    width = bytes ? *bytes : 0;
    in->bad |= width != 1 && width != 2 && width != 4;
    bytes = take_bytes(in, in->bad ? 0 : (size_t)pl->n * width);
    if (in->bad)
        return;
    pl->mark = bh_arena_new_array(in->a, uint32_t, pl->n + 1);
    pl->nth = bh_arena_new_array(in->a, uint32_t, pl->n + 1);
    for (uint32_t at = 0; at < pl->n; at++) {
        pl->mark[at] = (uint32_t)little_endian(bytes + (size_t)at * width, width);
        count_place(in, pl, at);
    }
}

/* The lists of a decision, sorted by name. */
static void list_nodes(struct in *in, const struct bh_record_names *names, const struct placed *pl,
                       uint32_t *ret_order, struct bh_recorded *ret)
{
    struct bh_node_verdict *rejected =
        bh_arena_new_array(in->a, struct bh_node_verdict, pl->n_rejected + 1);
    bh_sym *others = bh_arena_new_array(in->a, bh_sym, pl->n_unseen + 1);
    uint32_t n_scores = 0, n_rejected = 0;

    for (uint32_t i = 0; i < names->n; i++) {
        uint32_t at = names->by_name[i];
        uint32_t mark = at < pl->n ? pl->mark[at] : BH_NODE_ABSENT;
        if (mark == BH_NODE_UNSEEN)
            others[ret->n_others++] = names->name[at];
        else if (mark == BH_NODE_FEASIBLE)
            ret_order[n_scores++] = at;
        else if (mark >= BH_NODE_VERDICTS)
            rejected[n_rejected++] =
                (struct bh_node_verdict){names->name[at], pl->verdicts[mark - BH_NODE_VERDICTS]};
    }
    ret->others = others;
    ret->d.rejected = rejected;
    ret->d.n_rejected = n_rejected;
}

/* ---- scores ------------------------------------------------------------------------------------
 */

struct column {
    int64_t min;
    unsigned width;
    const uint8_t *bytes;
};

static struct column take_column(struct in *in, uint32_t n)
{
    struct column c = {.min = take_i(in)};
    const uint8_t *w = take_bytes(in, 1);

    c.width = w ? *w : 0;
    in->bad |= c.width > 8;
    c.bytes = take_bytes(in, in->bad ? 0 : (size_t)n * c.width);
    return c;
}

static int64_t at_column(const struct column *c, uint32_t i)
{
    return (int64_t)((uint64_t)c->min + little_endian(c->bytes + (size_t)i * c->width, c->width));
}

struct score_columns {
    const char *plugin;
    int32_t weight;
    unsigned fields;
    struct column raw, normalized, weighted;
};

static struct score_columns take_score_columns(struct in *in, uint32_t n)
{
    struct score_columns s = {.plugin = take_text(in)};

    s.weight = (int32_t)take_i(in);
    s.fields = take_u32(in);
    s.raw = take_column(in, n);
    if (s.fields & 2)
        s.normalized = take_column(in, n);
    if (s.fields & 4)
        s.weighted = take_column(in, n);
    return s;
}

static struct bh_plugin_score score_at(const struct score_columns *s, uint32_t i)
{
    struct bh_plugin_score v = {.plugin = s->plugin, .weight = s->weight};

    v.raw = at_column(&s->raw, i);
    v.normalized = s->fields & 2 ? at_column(&s->normalized, i) : v.raw;
    v.weighted = s->fields & 4 ? at_column(&s->weighted, i)
                               : (int64_t)((uint64_t)v.normalized * (uint64_t)(int64_t)v.weight);
    return v;
}

static void take_scores(struct in *in, const struct bh_record_names *names, const struct placed *pl,
                        const uint32_t *order, struct bh_decision *d)
{
    uint32_t n = pl->n_feasible;
    struct bh_node_score *v = bh_arena_new_array(in->a, struct bh_node_score, n + 1);
    struct score_columns *s;
    struct column total = {0};
    bool sums = true;

    d->scored = take_u(in);
    d->n_score_plugins = d->scored ? take_at_most(in, PLUGINS_MAX) : 0;
    in->bad |= (uint64_t)n * d->n_score_plugins > SCORES_MAX;
    s = bh_arena_new_array(in->a, struct score_columns, d->n_score_plugins + 1);
    for (uint32_t k = 0; k < d->n_score_plugins && !in->bad; k++)
        s[k] = take_score_columns(in, n);
    if (d->scored) {
        sums = take_u(in);
        if (!sums)
            total = take_column(in, n);
    }
    d->scores = v;
    d->n_scores = n;
    for (uint32_t i = 0; i < n && !in->bad; i++) {
        struct bh_plugin_score *p =
            bh_arena_new_array(in->a, struct bh_plugin_score, d->n_score_plugins + 1);
        uint32_t nth = pl->nth[order[i]];
        v[i].node = names->name[order[i]];
        v[i].total = sums ? 0 : at_column(&total, nth);
        for (uint32_t k = 0; k < d->n_score_plugins; k++) {
            p[k] = score_at(&s[k], nth);
            v[i].total =
                sums ? (int64_t)((uint64_t)v[i].total + (uint64_t)p[k].weighted) : v[i].total;
        }
        v[i].plugins = d->n_score_plugins ? p : NULL;
    }
}

/* Those with the highest total; of an unscored one, the only feasible one. */
static void list_best(struct in *in, struct bh_decision *d)
{
    bh_sym *v = bh_arena_new_array(in->a, bh_sym, d->n_scores + 1);
    int64_t max = INT64_MIN;
    uint32_t n = 0;

    for (uint32_t i = 0; i < d->n_scores; i++)
        max = BH_MAX(max, d->scores[i].total);
    for (uint32_t i = 0; i < d->n_scores && (d->scored || d->n_scores == 1); i++)
        if (d->scores[i].total == max)
            v[n++] = d->scores[i].node;
    d->best = v;
    d->n_best = n;
}

/* ---- the whole ---------------------------------------------------------------------------------
 */

static const struct bh_victim *take_victims(struct in *in, uint32_t *ret_n)
{
    uint32_t n = take_count(in);
    struct bh_victim *v = bh_arena_new_array(in->a, struct bh_victim, n + 1);

    for (uint32_t i = 0; i < n; i++) {
        v[i].namespace_ = take_str(in);
        v[i].name = take_str(in);
        v[i].uid = take_str(in);
        v[i].priority = (int32_t)take_i(in);
    }
    *ret_n = n;
    return v;
}

static void take_preemption(struct in *in, const struct bh_record_names *names,
                            struct bh_decision *d)
{
    struct bh_preemption *v;
    uint32_t one;

    if (!take_u(in))
        return;
    d->nominated_node = *take_places(in, names, &one);
    d->victims_violating = take_u32(in);
    d->victims = take_victims(in, &d->n_victims);
    d->n_preemptions = take_count(in);
    d->preemptions = v = bh_arena_new_array(in->a, struct bh_preemption, d->n_preemptions + 1);
    for (uint32_t i = 0; i < d->n_preemptions; i++) {
        v[i].node = take_place(in, names);
        v[i].victims = take_victims(in, &v[i].n_victims);
    }
}

static uint32_t take_steps(struct in *in, struct bh_record_step *v)
{
    uint32_t n = take_at_most(in, BH_RECORD_STEPS);

    for (uint32_t i = 0; i < n && !in->bad; i++) {
        v[i].plugin = take_text(in);
        v[i].message = take_text(in);
        v[i].timeout_ns = take_i(in);
    }
    return in->bad ? 0 : n;
}

static uint32_t take_names(struct in *in, const char **v)
{
    uint32_t n;
    const char *const *names = take_texts(in, &n);

    in->bad |= n > BH_RECORD_STEPS;
    for (uint32_t i = 0; i < n && !in->bad; i++)
        v[i] = names[i];
    return in->bad ? 0 : n;
}

static void take_after(struct in *in, struct bh_record_after *after)
{
    after->overruled = take_u(in);
    after->n_reserve = take_steps(in, after->reserve);
    after->n_permit = take_steps(in, after->permit);
    after->n_pre_bind = take_names(in, after->pre_bind);
    after->n_bind = take_names(in, after->bind);
}

static void take_texts_of(struct in *in, const struct bh_record_head *h, struct bh_decision *d)
{
    size_t n = strlen(h->message);

    d->evaluated = h->evaluated;
    d->feasible = h->feasible;
    d->n_nodes = h->n_nodes;
    if (d->kind == BH_DECIDED)
        return;
    d->reason = h->reason;
    d->message = h->message;
    if (h->fit_n)
        d->fit_message = bh_arena_strndup(in->a, h->message, h->fit_n);
    d->post_filter_message = h->message + (n - h->post_n);
}

int bh_record_unpack(struct bh_arena *a, const struct bh_record_names *names,
                     const struct bh_record_head *head, const void *p, size_t n,
                     struct bh_recorded *ret)
{
    struct in in = {.p = p, .end = (const uint8_t *)p + n, .a = a};
    struct bh_decision *d = &ret->d;
    struct placed pl = {0};
    uint32_t kind, one, *order;

    *ret = (struct bh_recorded){0};
    if (!n || *in.p++ != BH_RECORD_VERSION)
        return -EIO;
    kind = take_u32(&in);
    if (kind > BH_DECISION_ERROR)
        return -EIO;
    d->kind = (enum bh_decision_kind)kind;
    if (take_u(&in))
        d->node = *take_places(&in, names, &one);
    d->pre_filters = take_notes(&in, names, &d->n_pre_filters);
    d->pre_scores = take_notes(&in, names, &d->n_pre_scores);
    d->post_filters = take_notes(&in, names, &d->n_post_filters);
    d->filter_plugins = take_texts(&in, &d->n_filter_plugins);
    d->unschedulable_plugins = take_texts(&in, &d->n_unschedulable_plugins);
    d->pending_plugins = take_texts(&in, &d->n_pending_plugins);
    d->pre_filter = take_status(&in);
    d->absent = take_status(&in);
    if (d->absent) {
        d->pre_filter_plugins = take_texts(&in, &d->n_pre_filter_plugins);
        d->pre_filter_nodes = take_places(&in, names, &d->n_pre_filter_nodes);
    }
    take_preemption(&in, names, d);
    take_nodes(&in, names, &pl);
    if (in.bad)
        return -EIO;
    order = bh_arena_new_array(a, uint32_t, pl.n_feasible + 1);
    list_nodes(&in, names, &pl, order, ret);
    take_scores(&in, names, &pl, order, d);
    list_best(&in, d);
    if (!in.bad)
        take_after(&in, &ret->after);
    take_texts_of(&in, head, d);
    return in.bad ? -EIO : 0;
}
