/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/decisions/pack.c - an attempt becomes bytes
 *
 * Runs in: the scheduler's thread, between a decision and the next one.
 * The order of the parts is that of unpack.c.
 */
#include "scheduler/decisions/pack_int.h"

const char *const bh_record_modes[] = {"off", "summary", "full", NULL};
const char *const bh_record_results[] = {
    [BH_DECIDED] = "Scheduled", [BH_NO_FIT] = "Unschedulable", [BH_DECISION_ERROR] = "Error"};

static void add_u(struct bh_buf *b, uint64_t v)
{
    bh_wire_add_varint(b, v);
}

static void add_i(struct bh_buf *b, int64_t v)
{
    add_u(b, (uint64_t)v << 1 ^ (uint64_t)(v >> 63));
}

static void add_str(struct bh_buf *b, struct bh_str s)
{
    add_u(b, s.n);
    bh_buf_add(b, s.p, s.n);
}

static void add_text(struct bh_buf *b, const char *s)
{
    add_str(b, bh_str_c(s));
}

static void add_texts(struct bh_buf *b, const char *const *v, uint32_t n)
{
    add_u(b, n);
    for (uint32_t i = 0; i < n; i++)
        add_text(b, v[i]);
}

/* 0: no status. */
static void add_status(struct bh_buf *b, const struct bh_status *s)
{
    add_u(b, s ? 1 + (unsigned)s->code : 0);
    if (!s)
        return;
    add_text(b, s->plugin);
    add_texts(b, s->reasons, s->n_reasons);
}

/* ---- names of nodes ----------------------------------------------------------------------------
 */

uint32_t bh_node_list_place(struct bh_node_list *l, bh_sym name)
{
    if (name >= l->n_place) {
        uint32_t n = BH_MAX(BH_MAX(l->n_place * 2, name + 1), 1024u);
        l->place = bh_reallocarray(l->place, n, sizeof *l->place);
        memset(l->place + l->n_place, 0, (n - l->n_place) * sizeof *l->place);
        l->n_place = n;
    }
    if (l->place[name])
        return l->place[name] - 1;
    if (l->n == l->cap) {
        l->cap = BH_MAX(l->cap * 2, 256u);
        l->name = bh_reallocarray(l->name, l->cap, sizeof *l->name);
    }
    if (!l->id)
        l->id = 1;
    l->name[l->n] = name;
    l->place[name] = ++l->n;
    return l->n - 1;
}

void bh_node_list_review(struct bh_node_list *l, uint32_t n_nodes)
{
    if (l->n < 1024 || l->n / 2 <= n_nodes)
        return;
    for (uint32_t i = 0; i < l->n; i++)
        l->place[l->name[i]] = 0;
    l->n = 0;
    l->id++;
}

void bh_node_list_fini(struct bh_node_list *l)
{
    free(l->place);
    free(l->name);
    *l = (struct bh_node_list){0};
}

void bh_packer_fini(struct bh_packer *p)
{
    bh_node_list_fini(&p->list);
    free(p->verdict_of);
    free(p->score_at);
    free(p->column);
    free(p->verdicts);
    free(p->verdict_hash);
    free(p->slots);
    *p = (struct bh_packer){0};
}

/* ---- head --------------------------------------------------------------------------------------
 */

void bh_record_pack_head(struct bh_buf *out, const struct bh_record_head *h)
{
    bh_buf_addc(out, BH_RECORD_VERSION);
    add_u(out, h->mode);
    add_u(out, h->result);
    add_u(out, h->attempt);
    add_u(out, h->n_nodes);
    add_u(out, h->evaluated);
    add_u(out, h->feasible);
    add_u(out, h->n_victims);
    add_i(out, h->priority);
    add_u(out, h->duration_ns);
    add_text(out, h->profile);
    add_text(out, h->trigger);
    add_text(out, h->reason);
    add_text(out, h->message);
    add_text(out, h->nominated);
    add_u(out, h->fit_n);
    add_u(out, h->post_n);
}

void bh_record_pack_points(struct bh_buf *out, const struct bh_record_head *h)
{
    add_u(out, h->n_points);
    for (uint32_t i = 0; i < h->n_points; i++) {
        add_text(out, h->points[i].point);
        add_u(out, h->points[i].ns);
    }
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

/* ---- verdicts: each kind once ------------------------------------------------------------------
 */

static uint64_t hash_status(const struct bh_status *s)
{
    uint64_t h = s->code;

    if (s->plugin)
        h = bh_hash(s->plugin, strlen(s->plugin), h);
    for (uint32_t i = 0; i < s->n_reasons; i++)
        h = bh_hash(s->reasons[i], strlen(s->reasons[i]), h);
    return h;
}

static bool same_status(const struct bh_status *a, const struct bh_status *b)
{
    if (a == b)
        return true;
    if (a->code != b->code || a->n_reasons != b->n_reasons || !a->plugin != !b->plugin ||
        (a->plugin && !bh_streq(a->plugin, b->plugin)))
        return false;
    for (uint32_t i = 0; i < a->n_reasons; i++)
        if (!bh_streq(a->reasons[i], b->reasons[i]))
            return false;
    return true;
}

static void grow_verdicts(struct bh_packer *p)
{
    p->cap_verdicts = BH_MAX(p->cap_verdicts * 2, 16u);
    p->verdicts = bh_reallocarray(p->verdicts, p->cap_verdicts, sizeof(*p->verdicts));
    p->verdict_hash = bh_reallocarray(p->verdict_hash, p->cap_verdicts, sizeof(*p->verdict_hash));
    p->n_slots = p->cap_verdicts * 4;
    p->slots = bh_reallocarray(p->slots, p->n_slots, sizeof(*p->slots));
    memset(p->slots, 0, p->n_slots * sizeof(*p->slots));
    for (uint32_t i = 0; i < p->n_verdicts; i++) {
        uint64_t at = p->verdict_hash[i];
        while (p->slots[at & (p->n_slots - 1)])
            at++;
        p->slots[at & (p->n_slots - 1)] = i + 1;
    }
}

static uint32_t verdict_number(struct bh_packer *p, const struct bh_status *s)
{
    uint64_t h = hash_status(s), at = h;
    uint32_t *slot;

    if (p->n_verdicts == p->cap_verdicts)
        grow_verdicts(p);
    for (; *(slot = &p->slots[at & (p->n_slots - 1)]); at++)
        if (p->verdict_hash[*slot - 1] == h && same_status(p->verdicts[*slot - 1], s))
            return *slot - 1;
    p->verdicts[p->n_verdicts] = s;
    p->verdict_hash[p->n_verdicts] = h;
    *slot = ++p->n_verdicts;
    return *slot - 1;
}

/* ---- columns -----------------------------------------------------------------------------------
 */

/* The smallest, bytes for each, and what each is above the smallest. */
static void add_column(struct bh_buf *b, const int64_t *v, uint32_t n)
{
    int64_t min = n ? v[0] : 0, max = min;
    unsigned width = 0;

    for (uint32_t i = 1; i < n; i++) {
        min = BH_MIN(min, v[i]);
        max = BH_MAX(max, v[i]);
    }
    for (uint64_t span = (uint64_t)max - (uint64_t)min; span; span >>= 8)
        width++;
    add_i(b, min);
    bh_buf_addc(b, (char)width);
    bh_buf_reserve(b, (size_t)n * width + 1);
    for (uint32_t i = 0; width && i < n; i++) {
        uint64_t x = (uint64_t)v[i] - (uint64_t)min;
        for (unsigned k = 0; k < width; k++, x >>= 8)
            b->p[b->n++] = (char)(x & 0xff);
    }
    if (b->p)
        b->p[b->n] = '\0';
}

static void add_places(struct bh_packer *p, struct bh_buf *b, const bh_sym *v, uint32_t n)
{
    add_u(b, n);
    for (uint32_t i = 0; i < n; i++)
        add_u(b, bh_node_list_place(&p->list, v[i]));
}

static void add_notes(struct bh_packer *p, struct bh_buf *b, const struct bh_plugin_note *v,
                      uint32_t n)
{
    add_u(b, n);
    for (uint32_t i = 0; i < n; i++) {
        add_text(b, v[i].plugin);
        add_status(b, v[i].status);
        add_u(b, v[i].narrowed);
        if (v[i].narrowed)
            add_places(p, b, v[i].nodes, v[i].n_nodes);
    }
}

/* ---- nodes -------------------------------------------------------------------------------------
 */

static void place_node(void *list, bh_sym name)
{
    (void)bh_node_list_place(list, name);
}

static void grow_places(struct bh_packer *p)
{
    if (p->cap_places >= p->list.n)
        return;
    p->cap_places = p->list.cap;
    p->verdict_of = bh_reallocarray(p->verdict_of, p->cap_places, sizeof(*p->verdict_of));
    p->score_at = bh_reallocarray(p->score_at, p->cap_places, sizeof(*p->score_at));
}

struct marking {
    struct bh_packer *p;
    uint32_t mark;
};

static void mark_node(void *arg, bh_sym name)
{
    const struct marking *m = arg;

    m->p->verdict_of[bh_node_list_place(&m->p->list, name)] = m->mark;
}

/* Fills verdict_of and score_at for every place. */
static void place_nodes(struct bh_packer *p, struct bh_engine *e, const struct bh_decision *d)
{
    bool some_unseen = d->n_rejected + d->n_scores < d->n_nodes;
    const struct bh_status *last = NULL;
    uint32_t number = 0;

    if (some_unseen || !p->list.n)
        bh_engine_each_node(e, place_node, &p->list);
    for (uint32_t i = 0; i < d->n_rejected; i++)
        (void)bh_node_list_place(&p->list, d->rejected[i].node);
    for (uint32_t i = 0; i < d->n_scores; i++)
        (void)bh_node_list_place(&p->list, d->scores[i].node);
    grow_places(p);
    if (p->list.n)
        memset(p->verdict_of, 0, p->list.n * sizeof(*p->verdict_of));
    if (some_unseen)
        bh_engine_each_node(e, mark_node, &(struct marking){p, BH_NODE_UNSEEN});
    if (p->n_slots)
        memset(p->slots, 0, p->n_slots * sizeof(*p->slots));
    p->n_verdicts = 0;
    for (uint32_t i = 0; i < d->n_rejected; i++) {
        if (d->rejected[i].status != last)
            number = verdict_number(p, last = d->rejected[i].status);
        p->verdict_of[bh_node_list_place(&p->list, d->rejected[i].node)] =
            BH_NODE_VERDICTS + number;
    }
    for (uint32_t i = 0; i < d->n_scores; i++) {
        uint32_t at = bh_node_list_place(&p->list, d->scores[i].node);
        p->verdict_of[at] = BH_NODE_FEASIBLE;
        p->score_at[at] = i;
    }
}

static void add_nodes(const struct bh_packer *p, struct bh_buf *b)
{
    uint32_t n = p->list.n;
    unsigned width = p->n_verdicts + BH_NODE_VERDICTS <= 0x100     ? 1
                     : p->n_verdicts + BH_NODE_VERDICTS <= 0x10000 ? 2
                                                                   : 4;

    add_u(b, p->n_verdicts);
    for (uint32_t i = 0; i < p->n_verdicts; i++)
        add_status(b, p->verdicts[i]);
    add_u(b, n);
    bh_buf_addc(b, (char)width);
    bh_buf_reserve(b, (size_t)n * width + 1);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t x = p->verdict_of[i];
        for (unsigned k = 0; k < width; k++, x >>= 8)
            b->p[b->n++] = (char)(x & 0xff);
    }
    if (b->p)
        b->p[b->n] = '\0';
}

/* ---- scores ------------------------------------------------------------------------------------
 */

enum score_field { RAW, NORMALIZED, WEIGHTED };

static int64_t score_of(const struct bh_decision *d, uint32_t i, uint32_t plugin,
                        enum score_field f)
{
    const struct bh_plugin_score *s = &d->scores[i].plugins[plugin];

    return f == RAW ? s->raw : f == NORMALIZED ? s->normalized : s->weighted;
}

static void add_field(struct bh_packer *p, struct bh_buf *b, const struct bh_decision *d,
                      uint32_t plugin, enum score_field f)
{
    uint32_t n = 0;

    for (uint32_t at = 0; at < p->list.n; at++)
        if (p->verdict_of[at] == BH_NODE_FEASIBLE)
            p->column[n++] = score_of(d, p->score_at[at], plugin, f);
    add_column(b, p->column, n);
}

static void add_plugin_scores(struct bh_packer *p, struct bh_buf *b, const struct bh_decision *d,
                              uint32_t plugin)
{
    const struct bh_plugin_score *first = &d->scores[0].plugins[plugin];
    unsigned fields = 0;

    for (uint32_t i = 0; i < d->n_scores; i++) {
        const struct bh_plugin_score *s = &d->scores[i].plugins[plugin];
        if (s->normalized != s->raw)
            fields |= 1u << NORMALIZED;
        if (s->weighted != s->normalized * s->weight)
            fields |= 1u << WEIGHTED;
    }
    add_text(b, first->plugin);
    add_i(b, first->weight);
    add_u(b, fields);
    add_field(p, b, d, plugin, RAW);
    if (fields & 1u << NORMALIZED)
        add_field(p, b, d, plugin, NORMALIZED);
    if (fields & 1u << WEIGHTED)
        add_field(p, b, d, plugin, WEIGHTED);
}

static void add_totals(struct bh_packer *p, struct bh_buf *b, const struct bh_decision *d)
{
    bool sums = true;
    uint32_t n = 0;

    for (uint32_t i = 0; i < d->n_scores && sums; i++) {
        int64_t sum = 0;
        for (uint32_t k = 0; d->scores[i].plugins && k < d->n_score_plugins; k++)
            sum += d->scores[i].plugins[k].weighted;
        sums = sum == d->scores[i].total;
    }
    add_u(b, sums);
    if (sums)
        return;
    for (uint32_t at = 0; at < p->list.n; at++)
        if (p->verdict_of[at] == BH_NODE_FEASIBLE)
            p->column[n++] = d->scores[p->score_at[at]].total;
    add_column(b, p->column, n);
}

static void add_scores(struct bh_packer *p, struct bh_buf *b, const struct bh_decision *d)
{
    bool plugins = d->scored && d->n_scores && d->scores[0].plugins;

    if (p->cap_column < d->n_scores) {
        p->cap_column = BH_MAX(d->n_scores, p->cap_column * 2);
        p->column = bh_reallocarray(p->column, p->cap_column, sizeof(*p->column));
    }
    add_u(b, d->scored);
    if (!d->scored)
        return;
    add_u(b, plugins ? d->n_score_plugins : 0);
    for (uint32_t k = 0; plugins && k < d->n_score_plugins; k++)
        add_plugin_scores(p, b, d, k);
    add_totals(p, b, d);
}

/* ---- the whole ---------------------------------------------------------------------------------
 */

static void add_victims(struct bh_buf *b, const struct bh_victim *v, uint32_t n)
{
    add_u(b, n);
    for (uint32_t i = 0; i < n; i++) {
        add_str(b, v[i].namespace_);
        add_str(b, v[i].name);
        add_str(b, v[i].uid);
        add_i(b, v[i].priority);
    }
}

static void add_preemption(struct bh_packer *p, struct bh_buf *b, const struct bh_decision *d)
{
    add_u(b, d->nominated_node != BH_SYM_NONE);
    if (d->nominated_node == BH_SYM_NONE)
        return;
    add_places(p, b, &d->nominated_node, 1);
    add_u(b, d->victims_violating);
    add_victims(b, d->victims, d->n_victims);
    add_u(b, d->n_preemptions);
    for (uint32_t i = 0; i < d->n_preemptions; i++) {
        add_u(b, bh_node_list_place(&p->list, d->preemptions[i].node));
        add_victims(b, d->preemptions[i].victims,
                    i < BH_RECORD_WAYS ? d->preemptions[i].n_victims : 0);
    }
}

void bh_record_pack(struct bh_packer *p, struct bh_engine *e, const struct bh_decision *d,
                    struct bh_buf *out)
{
    bh_node_list_review(&p->list, d->n_nodes);
    bh_buf_addc(out, BH_RECORD_VERSION);
    add_u(out, d->kind);
    add_u(out, d->node != BH_SYM_NONE);
    if (d->node != BH_SYM_NONE)
        add_places(p, out, &d->node, 1);
    add_notes(p, out, d->pre_filters, d->n_pre_filters);
    add_notes(p, out, d->pre_scores, d->n_pre_scores);
    add_notes(p, out, d->post_filters, d->n_post_filters);
    add_texts(out, d->filter_plugins, d->n_filter_plugins);
    add_texts(out, d->unschedulable_plugins, d->n_unschedulable_plugins);
    add_texts(out, d->pending_plugins, d->n_pending_plugins);
    add_status(out, d->pre_filter);
    add_status(out, d->absent);
    if (d->absent) {
        add_texts(out, d->pre_filter_plugins, d->n_pre_filter_plugins);
        add_places(p, out, d->pre_filter_nodes, d->n_pre_filter_nodes);
    }
    add_preemption(p, out, d);
    place_nodes(p, e, d);
    add_nodes(p, out);
    add_scores(p, out, d);
}

static void add_steps(struct bh_buf *out, const struct bh_record_step *v, uint32_t n)
{
    add_u(out, n);
    for (uint32_t i = 0; i < n; i++) {
        add_text(out, v[i].plugin);
        add_text(out, v[i].message);
        add_i(out, v[i].timeout_ns);
    }
}

void bh_record_pack_after(struct bh_buf *out, const struct bh_record_after *after)
{
    add_u(out, after->overruled);
    add_steps(out, after->reserve, after->n_reserve);
    add_steps(out, after->permit, after->n_permit);
    add_texts(out, after->pre_bind, after->n_pre_bind);
    add_texts(out, after->bind, after->n_bind);
}
