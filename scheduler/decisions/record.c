/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/decisions/record.c - an attempt becomes bytes, and bytes an attempt again
 *
 * One walk for both directions: a function lays down what it is given a pointer to, or reads it from
 * what was laid down. So the order of the parts stands here once.
 *
 * Runs in: packing: the scheduler's thread, between a decision and the next one; nothing that is
 * packed is written to. Reading: anywhere. Nothing of the input is believed: a wrong length, number
 * or position makes the whole -EIO.
 */
#include <errno.h>

#include "common/k8s/wire.h"
#include "scheduler/decisions/record.h"

#define PLUGINS_MAX 128u
#define SCORES_MAX  (64u << 20)

const char *const bh_record_modes[] = {"off", "summary", "full", "auto", NULL};
const char *const bh_record_results[] = {
    [BH_DECIDED] = "Scheduled", [BH_NO_FIT] = "Unschedulable", [BH_DECISION_ERROR] = "Error"};

struct walk {
    struct bh_buf *out; /* packing; NULL: reading */
    struct bh_packer *packer;
    /* reading */
    const uint8_t *p, *end;
    struct bh_arena *a; /* what is read lives here */
    const struct bh_record_names *names;
    bool bad;
};

/* One walk packs and reads. What it packs is const for the caller; it writes only when it reads. */
static void *walked(const void *p)
{
    return (void *)(uintptr_t)p;
}

/* ---- numbers and texts ----------------------------------------------------------------------- */

static void do_u64(struct walk *w, uint64_t *v)
{
    if (w->out) {
        bh_wire_add_varint(w->out, *v);
        return;
    }
    *v = 0;
    for (unsigned shift = 0; shift < 64 && w->p < w->end; shift += 7) {
        uint8_t c = *w->p++;
        *v |= (uint64_t)(c & 0x7f) << shift;
        if (!(c & 0x80))
            return;
    }
    w->bad = true;
    w->p = w->end;
    *v = 0;
}

static void do_i64(struct walk *w, int64_t *v)
{
    uint64_t u = (uint64_t)*v << 1 ^ (uint64_t)(*v >> 63);

    do_u64(w, &u);
    if (!w->out)
        *v = (int64_t)(u >> 1 ^ -(u & 1));
}

static void do_i32(struct walk *w, int32_t *v)
{
    int64_t i = *v;

    do_i64(w, &i);
    if (!w->out)
        *v = (int32_t)i;
}

/* At most max. */
static void do_upto(struct walk *w, uint32_t *v, uint32_t max)
{
    uint64_t u = *v;

    do_u64(w, &u);
    if (w->out)
        return;
    w->bad |= u > max;
    *v = u > max ? 0 : (uint32_t)u;
}

static void do_u32(struct walk *w, uint32_t *v)
{
    do_upto(w, v, UINT32_MAX);
}

static void do_bool(struct walk *w, bool *v)
{
    uint64_t u = *v;

    do_u64(w, &u);
    if (!w->out)
        *v = u;
}

/* How many there are of something that takes at least one byte each. */
static void do_count(struct walk *w, uint32_t *n, uint32_t max)
{
    do_upto(w, n, max);
    if (w->out)
        return;
    w->bad |= *n > (size_t)(w->end - w->p);
    *n = w->bad ? 0 : *n;
}

/* The place of n bytes, to be written or read; NULL: there are no so many. */
static uint8_t *do_bytes(struct walk *w, size_t n)
{
    uint8_t *p = walked(w->p);

    if (w->out) {
        bh_buf_reserve(w->out, n + 1);
        p = (uint8_t *)w->out->p + w->out->n;
        w->out->n += n;
        p[n] = '\0';
        return p;
    }
    w->bad |= n > (size_t)(w->end - w->p);
    if (w->bad)
        return NULL;
    w->p += n;
    return p;
}

static void do_byte(struct walk *w, unsigned *v)
{
    uint8_t *p = do_bytes(w, 1);

    if (w->out)
        *p = (uint8_t)*v;
    else
        *v = p ? *p : 0;
}

static void do_version(struct walk *w)
{
    unsigned version = BH_RECORD_VERSION;

    do_byte(w, &version);
    w->bad |= version != BH_RECORD_VERSION;
}

static void do_str(struct walk *w, struct bh_str *s)
{
    uint32_t n = (uint32_t)s->n;

    do_count(w, &n, UINT32_MAX);
    if (w->out) {
        bh_buf_add(w->out, s->p, n);
        return;
    }
    const uint8_t *p = do_bytes(w, n);
    *s = (struct bh_str){p ? bh_arena_strndup(w->a, (const char *)p, n) : "", n};
    w->bad |= strlen(s->p) != n;
}

static void do_text(struct walk *w, const char **s)
{
    struct bh_str str = bh_str_c(*s);

    do_str(w, &str);
    if (!w->out)
        *s = str.p;
}

/* ---- lists and verdicts ---------------------------------------------------------------------- */

/* Their number, and the list: for reading a new one. */
static void *do_list(struct walk *w, const void *list, uint32_t *n, uint32_t max, size_t size)
{
    do_count(w, n, max);
    return w->out ? walked(list) : bh_arena_array(w->a, *n + (size_t)1, size);
}

static void do_texts(struct walk *w, const char *const **list, uint32_t *n)
{
    const char **v = do_list(w, *list, n, UINT32_MAX, sizeof(*v));

    for (uint32_t i = 0; i < *n; i++)
        do_text(w, &v[i]);
    if (!w->out)
        *list = v;
}

/* The name of a node, by its place. */
static void do_place(struct walk *w, bh_sym *name)
{
    uint32_t at = w->out ? bh_node_list_place(&w->packer->list, *name) : 0;

    do_u32(w, &at);
    if (w->out)
        return;
    w->bad |= at >= w->names->n;
    *name = w->bad ? BH_SYM_NONE : w->names->name[at];
}

static void do_places(struct walk *w, const bh_sym **list, uint32_t *n)
{
    bh_sym *v = do_list(w, *list, n, UINT32_MAX, sizeof(*v));

    for (uint32_t i = 0; i < *n; i++)
        do_place(w, &v[i]);
    if (!w->out)
        *list = v;
}

/* 0: no status. */
static void do_status(struct walk *w, const struct bh_status **ret)
{
    struct bh_status *s = walked(*ret);
    uint32_t code = s ? 1 + (unsigned)s->code : 0;

    do_upto(w, &code, BH_PENDING + 1);
    if (!code)
        return;
    if (!w->out) {
        *ret = s = bh_arena_new(w->a, struct bh_status);
        s->code = (enum bh_code)(code - 1);
    }
    do_text(w, &s->plugin);
    do_texts(w, &s->reasons, &s->n_reasons);
    if (!w->out && !*s->plugin)
        s->plugin = NULL;
}

static void do_notes(struct walk *w, const struct bh_plugin_note **list, uint32_t *n)
{
    struct bh_plugin_note *v = do_list(w, *list, n, PLUGINS_MAX, sizeof(*v));

    for (uint32_t i = 0; i < *n; i++) {
        do_text(w, &v[i].plugin);
        do_status(w, &v[i].status);
        do_bool(w, &v[i].narrowed);
        if (v[i].narrowed)
            do_places(w, &v[i].nodes, &v[i].n_nodes);
    }
    if (!w->out)
        *list = v;
}

/* ---- head ------------------------------------------------------------------------------------ */

static void do_head(struct walk *w, struct bh_record_head *h)
{
    uint32_t mode = h->mode, result = h->result;

    do_version(w);
    do_upto(w, &mode, BH_RECORD_FULL);
    do_upto(w, &result, BH_DECISION_ERROR);
    if (!w->out) {
        h->mode = (enum bh_record_mode)mode;
        h->result = (enum bh_decision_kind)result;
    }
    do_u32(w, &h->attempt);
    do_u32(w, &h->n_nodes);
    do_u32(w, &h->evaluated);
    do_u32(w, &h->feasible);
    do_u32(w, &h->n_victims);
    do_i32(w, &h->priority);
    do_u64(w, &h->duration_ns);
    do_text(w, &h->profile);
    do_text(w, &h->trigger);
    do_text(w, &h->reason);
    do_text(w, &h->message);
    do_text(w, &h->nominated);
    do_u32(w, &h->fit_n);
    do_u32(w, &h->post_n);
}

void bh_record_pack_head(struct bh_buf *out, const struct bh_record_head *h)
{
    do_head(&(struct walk){.out = out}, walked(h));
}

/* Whatever is behind the last one that there is room for is read, and forgotten. */
static void do_points(struct walk *w, struct bh_record_head *h)
{
    uint32_t n = h->n_points;

    do_count(w, &n, UINT32_MAX);
    for (uint32_t i = 0; i < n; i++) {
        struct bh_record_point beyond, *p = i < BH_ARRAY_LEN(h->points) ? &h->points[i] : &beyond;
        do_text(w, &p->point);
        do_u64(w, &p->ns);
    }
    if (!w->out)
        h->n_points = BH_MIN(n, (uint32_t)BH_ARRAY_LEN(h->points));
}

void bh_record_pack_points(struct bh_buf *out, const struct bh_record_head *h)
{
    do_points(&(struct walk){.out = out}, walked(h));
}

int bh_record_unpack_head(struct bh_arena *a, const void *p, size_t n, struct bh_record_head *h)
{
    struct walk w = {.p = p, .end = (const uint8_t *)p + n, .a = a};

    *h = (struct bh_record_head){0};
    do_head(&w, h);
    do_points(&w, h);
    w.bad |= h->fit_n > strlen(h->message) || h->post_n > strlen(h->message);
    return w.bad ? -EIO : 0;
}

void bh_record_set_texts(struct bh_record_head *h, const struct bh_decision *d)
{
    const char *message = d->kind == BH_DECIDED || !d->message ? "" : d->message;
    const char *fit_text = d->fit_message ? d->fit_message : "";
    const char *post_text = d->post_filter_message ? d->post_filter_message : "";
    size_t n = strlen(message), fit = strlen(fit_text), post = strlen(post_text);

    h->result = d->kind;
    /* An error that says "Unschedulable" (an empty cluster) is no failure of the scheduler. */
    if (d->kind == BH_DECISION_ERROR && bh_streq(d->reason, "Unschedulable"))
        h->result = BH_NO_FIT;
    h->reason = d->kind == BH_DECIDED ? "" : d->reason;
    h->message = message;
    h->fit_n = fit <= n && memcmp(message, fit_text, fit) == 0 ? (uint32_t)fit : 0;
    h->post_n = post <= n && memcmp(message + n - post, post_text, post) == 0 ? (uint32_t)post : 0;
}

/* ---- nodes ----------------------------------------------------------------------------------- */

static void put_number(uint8_t *p, uint64_t v, unsigned width)
{
    for (unsigned k = 0; k < width; k++, v >>= 8)
        p[k] = (uint8_t)v;
}

static uint64_t get_number(const uint8_t *p, unsigned width)
{
    uint64_t v = 0;

    for (unsigned k = 0; k < width; k++)
        v |= (uint64_t)p[k] << (8 * k);
    return v;
}

/* What became of each place: of those that are packed, or in arrays of the arena. */
static void do_nodes(struct walk *w, struct bh_placed *pl)
{
    unsigned width = pl->n_verdicts + BH_NODE_VERDICTS <= 0x100     ? 1
                     : pl->n_verdicts + BH_NODE_VERDICTS <= 0x10000 ? 2
                                                                    : 4;

    pl->verdicts = do_list(w, pl->verdicts, &pl->n_verdicts, UINT32_MAX, sizeof(*pl->verdicts));
    for (uint32_t i = 0; i < pl->n_verdicts; i++) {
        do_status(w, &pl->verdicts[i]);
        w->bad |= !pl->verdicts[i];
    }
    do_u32(w, &pl->n);
    do_byte(w, &width);
    if (!w->out)
        w->bad |= pl->n > w->names->n || (width != 1 && width != 2 && width != 4);
    uint8_t *bytes = do_bytes(w, w->bad ? 0 : (size_t)pl->n * width);
    if (w->bad)
        return;
    if (!w->out)
        pl->mark = bh_arena_new_array(w->a, uint32_t, pl->n + 1);
    for (uint32_t at = 0; at < pl->n; at++) {
        if (w->out) {
            put_number(bytes + (size_t)at * width, pl->mark[at], width);
            continue;
        }
        pl->mark[at] = (uint32_t)get_number(bytes + (size_t)at * width, width);
        w->bad |= pl->mark[at] >= BH_NODE_VERDICTS + pl->n_verdicts;
    }
}

/* The lists of a decision, sorted by name. */
static void list_nodes(struct walk *w, struct bh_placed *pl, struct bh_recorded *ret)
{
    const struct bh_record_names *names = w->names;
    uint32_t n[3] = {0}, *nth = bh_arena_new_array(w->a, uint32_t, pl->n + 1);

    for (uint32_t at = 0; at < pl->n; at++) {
        nth[at] = n[1];
        if (pl->mark[at] != BH_NODE_ABSENT)
            n[BH_MIN(pl->mark[at], (uint32_t)BH_NODE_VERDICTS) - BH_NODE_UNSEEN]++;
    }
    bh_sym *others = bh_arena_new_array(w->a, bh_sym, n[0] + 1);
    struct bh_node_score *scores = bh_arena_new_array(w->a, struct bh_node_score, n[1] + 1);
    struct bh_node_verdict *rejected = bh_arena_new_array(w->a, struct bh_node_verdict, n[2] + 1);
    pl->score = bh_arena_new_array(w->a, uint32_t, n[1] + 1);
    ret->others = others;
    ret->d.scores = scores;
    ret->d.rejected = rejected;
    for (uint32_t i = 0; i < names->n; i++) {
        uint32_t at = names->by_name[i], mark = at < pl->n ? pl->mark[at] : BH_NODE_ABSENT;
        if (mark == BH_NODE_UNSEEN) {
            others[ret->n_others++] = names->name[at];
        } else if (mark == BH_NODE_FEASIBLE) {
            pl->score[nth[at]] = ret->d.n_scores;
            scores[ret->d.n_scores++].node = names->name[at];
        } else if (mark >= BH_NODE_VERDICTS) {
            rejected[ret->d.n_rejected++] =
                (struct bh_node_verdict){names->name[at], pl->verdicts[mark - BH_NODE_VERDICTS]};
        }
    }
}

/* ---- scores ---------------------------------------------------------------------------------- */

enum score_field { NORMALIZED = 1, WEIGHTED };

#define TOTAL SIZE_MAX
#define SCORE(plugin, member)                                                                      \
    ((plugin) * sizeof(struct bh_plugin_score) + offsetof(struct bh_plugin_score, member))

/* A node's total, or a number of one of its plugins' scores. */
static int64_t *number_of(const struct bh_node_score *s, size_t off)
{
    return off == TOTAL ? walked(&s->total) : (int64_t *)((char *)walked(s->plugins) + off);
}

/* The smallest, bytes for each, and what each is above the smallest, in the order of places. */
static void do_column(struct walk *w, const struct bh_placed *pl, const struct bh_decision *d,
                      size_t off)
{
    int64_t min = 0, max = 0;
    unsigned width = 0;

    for (uint32_t i = 0; w->out && i < d->n_scores; i++) {
        int64_t v = *number_of(&d->scores[i], off);
        min = i ? BH_MIN(min, v) : v;
        max = i ? BH_MAX(max, v) : v;
    }
    for (uint64_t span = (uint64_t)max - (uint64_t)min; span; span >>= 8)
        width++;
    do_i64(w, &min);
    do_byte(w, &width);
    if (w->out && !width) /* they are all the same */
        return;
    w->bad |= width > 8;
    uint8_t *bytes = do_bytes(w, w->bad ? 0 : (size_t)d->n_scores * width);
    for (uint32_t i = 0; !w->bad && i < d->n_scores; i++, bytes += width) {
        int64_t *v = number_of(&d->scores[pl->score[i]], off);
        if (w->out)
            put_number(bytes, (uint64_t)*v - (uint64_t)min, width);
        else
            *v = (int64_t)((uint64_t)min + get_number(bytes, width));
    }
}

static void do_plugin_scores(struct walk *w, const struct bh_placed *pl,
                             const struct bh_decision *d, uint32_t plugin)
{
    struct bh_plugin_score one = {0};
    uint32_t fields = 0; /* columns that do not follow from others */

    if (w->out)
        one = d->scores[0].plugins[plugin];
    for (uint32_t i = 0; w->out && i < d->n_scores; i++) {
        const struct bh_plugin_score *s = &d->scores[i].plugins[plugin];
        fields |= s->normalized != s->raw ? 1u << NORMALIZED : 0;
        fields |= s->weighted != s->normalized * s->weight ? 1u << WEIGHTED : 0;
    }
    do_text(w, &one.plugin);
    do_i32(w, &one.weight);
    do_u32(w, &fields);
    for (uint32_t i = 0; !w->out && i < d->n_scores; i++)
        *(struct bh_plugin_score *)walked(&d->scores[i].plugins[plugin]) = one;
    do_column(w, pl, d, SCORE(plugin, raw));
    if (fields & 1u << NORMALIZED)
        do_column(w, pl, d, SCORE(plugin, normalized));
    if (fields & 1u << WEIGHTED)
        do_column(w, pl, d, SCORE(plugin, weighted));
    for (uint32_t i = 0; !w->out && i < d->n_scores; i++) {
        struct bh_plugin_score *s = walked(&d->scores[i].plugins[plugin]);
        if (!(fields & 1u << NORMALIZED))
            s->normalized = s->raw;
        if (!(fields & 1u << WEIGHTED))
            s->weighted = (int64_t)((uint64_t)s->normalized * (uint64_t)(int64_t)s->weight);
    }
}

static int64_t sum_of(const struct bh_decision *d, const struct bh_node_score *s)
{
    uint64_t sum = 0;

    for (uint32_t k = 0; s->plugins && k < d->n_score_plugins; k++)
        sum += (uint64_t)s->plugins[k].weighted;
    return (int64_t)sum;
}

static void do_scores(struct walk *w, const struct bh_placed *pl, struct bh_decision *d)
{
    uint32_t n = d->n_scores && d->scores[0].plugins ? d->n_score_plugins : 0;

    do_bool(w, &d->scored);
    if (!d->scored)
        return;
    do_count(w, &n, PLUGINS_MAX);
    w->bad |= (uint64_t)n * d->n_scores > SCORES_MAX;
    if (w->bad)
        return;
    if (!w->out) {
        struct bh_node_score *v = walked(d->scores);
        struct bh_plugin_score *all =
            bh_arena_new_array(w->a, struct bh_plugin_score, (size_t)n * d->n_scores + 1);
        d->n_score_plugins = n;
        for (uint32_t i = 0; n && i < d->n_scores; i++)
            v[i].plugins = all + (size_t)i * n;
    }
    for (uint32_t k = 0; k < n && !w->bad; k++)
        do_plugin_scores(w, pl, d, k);
    bool sums = true;
    for (uint32_t i = 0; w->out && sums && i < d->n_scores; i++)
        sums = sum_of(d, &d->scores[i]) == d->scores[i].total;
    do_bool(w, &sums);
    if (!sums)
        do_column(w, pl, d, TOTAL);
    for (uint32_t i = 0; !w->out && sums && i < d->n_scores; i++)
        *number_of(&d->scores[i], TOTAL) = sum_of(d, &d->scores[i]);
}

/* ---- the whole ------------------------------------------------------------------------------- */

static void do_victims(struct walk *w, const struct bh_victim **list, uint32_t *n)
{
    struct bh_victim *v = do_list(w, *list, n, UINT32_MAX, sizeof(*v));

    for (uint32_t i = 0; i < *n; i++) {
        do_str(w, &v[i].namespace_);
        do_str(w, &v[i].name);
        do_str(w, &v[i].uid);
        do_i32(w, &v[i].priority);
    }
    if (!w->out)
        *list = v;
}

/* A node, or none. */
static bool do_node(struct walk *w, bh_sym *name)
{
    bool there = *name != BH_SYM_NONE;
    uint32_t one = 1;

    do_bool(w, &there);
    if (there) {
        do_upto(w, &one, 1);
        do_place(w, name);
    }
    return there;
}

/* What of a decision does not go by nodes. */
static void do_decision(struct walk *w, struct bh_decision *d)
{
    uint32_t kind = d->kind;

    do_version(w);
    do_upto(w, &kind, BH_DECISION_ERROR);
    if (!w->out)
        d->kind = (enum bh_decision_kind)kind;
    (void)do_node(w, &d->node);
    do_notes(w, &d->pre_filters, &d->n_pre_filters);
    do_notes(w, &d->pre_scores, &d->n_pre_scores);
    do_notes(w, &d->post_filters, &d->n_post_filters);
    do_texts(w, &d->filter_plugins, &d->n_filter_plugins);
    do_texts(w, &d->unschedulable_plugins, &d->n_unschedulable_plugins);
    do_texts(w, &d->pending_plugins, &d->n_pending_plugins);
    do_status(w, &d->pre_filter);
    do_status(w, &d->absent);
    if (d->absent) {
        do_texts(w, &d->pre_filter_plugins, &d->n_pre_filter_plugins);
        do_places(w, &d->pre_filter_nodes, &d->n_pre_filter_nodes);
    }
    if (do_node(w, &d->nominated_node)) {
        do_u32(w, &d->victims_violating);
        do_victims(w, &d->victims, &d->n_victims);
        const struct bh_preemption **list = &d->preemptions;
        uint32_t *n = &d->n_preemptions;
        struct bh_preemption *v = do_list(w, *list, n, UINT32_MAX, sizeof(*v));
        for (uint32_t i = 0; i < *n; i++) {
            uint32_t victims = i < BH_RECORD_WAYS ? v[i].n_victims : 0;
            do_place(w, &v[i].node);
            do_victims(w, &v[i].victims, &victims);
            if (!w->out)
                v[i].n_victims = victims;
        }
        if (!w->out)
            *list = v;
    }
}

static void do_steps(struct walk *w, struct bh_record_step *v, uint32_t *n)
{
    do_count(w, n, BH_RECORD_STEPS);
    for (uint32_t i = 0; i < *n; i++) {
        do_text(w, &v[i].plugin);
        do_text(w, &v[i].message);
        do_i64(w, &v[i].timeout_ns);
    }
}

static void do_plugins(struct walk *w, const char **v, uint32_t *n)
{
    do_count(w, n, BH_RECORD_STEPS);
    for (uint32_t i = 0; i < *n; i++)
        do_text(w, &v[i]);
}

static void do_after(struct walk *w, struct bh_record_after *after)
{
    do_bool(w, &after->overruled);
    do_steps(w, after->reserve, &after->n_reserve);
    do_steps(w, after->permit, &after->n_permit);
    do_plugins(w, after->pre_bind, &after->n_pre_bind);
    do_plugins(w, after->bind, &after->n_bind);
}

void bh_record_pack(struct bh_packer *p, struct bh_engine *e, const struct bh_decision *d,
                    struct bh_buf *out)
{
    struct walk w = {.out = out, .packer = p};

    bh_node_list_review(&p->list, d->n_nodes);
    do_decision(&w, walked(d));
    bh_packer_place(p, e, d);
    do_nodes(&w, &p->placed);
    do_scores(&w, &p->placed, walked(d));
}

void bh_record_pack_after(struct bh_buf *out, const struct bh_record_after *after)
{
    do_after(&(struct walk){.out = out}, walked(after));
}

int bh_record_unpack(struct bh_arena *a, const struct bh_record_names *names,
                     const struct bh_record_head *head, const void *p, size_t n,
                     struct bh_recorded *ret)
{
    struct walk w = {.p = p, .end = (const uint8_t *)p + n, .a = a, .names = names};
    struct bh_placed pl = {0};

    *ret = (struct bh_recorded){0};
    do_decision(&w, &ret->d);
    do_nodes(&w, &pl);
    if (w.bad)
        return -EIO;
    list_nodes(&w, &pl, ret);
    do_scores(&w, &pl, &ret->d);
    /* Those with the highest total; of an unscored one, the only feasible one. */
    struct bh_decision *d = &ret->d;
    bh_sym *v = bh_arena_new_array(w.a, bh_sym, d->n_scores + 1);
    int64_t max = INT64_MIN;
    for (uint32_t i = 0; i < d->n_scores; i++)
        max = BH_MAX(max, d->scores[i].total);
    for (uint32_t i = 0; i < d->n_scores && (d->scored || d->n_scores == 1); i++)
        if (d->scores[i].total == max)
            v[d->n_best++] = d->scores[i].node;
    d->best = v;
    do_after(&w, &ret->after);
    d->evaluated = head->evaluated;
    d->feasible = head->feasible;
    d->n_nodes = head->n_nodes;
    if (d->kind != BH_DECIDED) {
        d->reason = head->reason;
        d->message = head->message;
        if (head->fit_n)
            d->fit_message = bh_arena_strndup(a, head->message, head->fit_n);
        d->post_filter_message = head->message + (strlen(head->message) - head->post_n);
    }
    return w.bad ? -EIO : 0;
}
