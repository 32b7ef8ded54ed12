/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/decisions/places.c - what is packed goes by places: of nodes' names, and of verdicts
 *
 * Runs in: the scheduler's thread, between a decision and the next one.
 */
#include "scheduler/decisions/record.h"

/* ---- names of nodes -------------------------------------------------------------------------- */

uint32_t bh_node_list_place(struct bh_node_list *l, bh_sym name)
{
    if (name >= l->n_place) {
        uint32_t n = BH_MAX(BH_MAX(l->n_place * 2, name + 1), 1024u);
        l->place = bh_regrown(l->place, l->n_place, n, sizeof *l->place);
        l->n_place = n;
    }
    if (l->place[name])
        return l->place[name] - 1;
    BH_GROW(l->name, l->n, l->cap);
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
    free(p->placed.mark);
    free(p->placed.score);
    free(p->placed.verdicts);
    free(p->verdict_hash);
    free(p->slots);
    *p = (struct bh_packer){0};
}

/* ---- verdicts: each kind once ---------------------------------------------------------------- */

static void grow_verdicts(struct bh_packer *p)
{
    p->cap_verdicts = BH_MAX(p->cap_verdicts * 2, 16u);
    p->placed.verdicts =
        bh_reallocarray(p->placed.verdicts, p->cap_verdicts, sizeof(*p->placed.verdicts));
    p->verdict_hash = bh_reallocarray(p->verdict_hash, p->cap_verdicts, sizeof(*p->verdict_hash));
    p->n_slots = p->cap_verdicts * 4;
    p->slots = bh_reallocarray(p->slots, p->n_slots, sizeof(*p->slots));
    memset(p->slots, 0, p->n_slots * sizeof(*p->slots));
    for (uint32_t i = 0; i < p->placed.n_verdicts; i++) {
        uint64_t at = p->verdict_hash[i];
        while (p->slots[at & (p->n_slots - 1)])
            at++;
        p->slots[at & (p->n_slots - 1)] = i + 1;
    }
}

static uint32_t verdict_number(struct bh_packer *p, const struct bh_status *s)
{
    uint64_t h = s->plugin ? bh_hash(s->plugin, strlen(s->plugin), s->code) : s->code;
    uint32_t *slot;

    for (uint32_t i = 0; i < s->n_reasons; i++)
        h = bh_hash(s->reasons[i], strlen(s->reasons[i]), h);
    if (p->placed.n_verdicts == p->cap_verdicts)
        grow_verdicts(p);
    for (uint64_t at = h; *(slot = &p->slots[at & (p->n_slots - 1)]); at++)
        if (p->verdict_hash[*slot - 1] == h && bh_status_equal(p->placed.verdicts[*slot - 1], s))
            return *slot - 1;
    p->placed.verdicts[p->placed.n_verdicts] = s;
    p->verdict_hash[p->placed.n_verdicts] = h;
    *slot = ++p->placed.n_verdicts;
    return *slot - 1;
}

/* ---- nodes ----------------------------------------------------------------------------------- */

static void place_node(void *list, bh_sym name)
{
    (void)bh_node_list_place(list, name);
}

static void mark_unseen(void *arg, bh_sym name)
{
    struct bh_packer *p = arg;

    p->placed.mark[bh_node_list_place(&p->list, name)] = BH_NODE_UNSEEN;
}

void bh_packer_place(struct bh_packer *p, struct bh_engine *e, const struct bh_decision *d)
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
    if (p->cap_places < p->list.n) {
        p->cap_places = p->list.cap;
        p->placed.mark = bh_reallocarray(p->placed.mark, p->cap_places, sizeof(*p->placed.mark));
        p->placed.score = bh_reallocarray(p->placed.score, p->cap_places, sizeof(*p->placed.score));
    }
    if (p->list.n)
        memset(p->placed.mark, 0, p->list.n * sizeof(*p->placed.mark));
    if (some_unseen)
        bh_engine_each_node(e, mark_unseen, p);
    if (p->n_slots)
        memset(p->slots, 0, p->n_slots * sizeof(*p->slots));
    p->placed.n_verdicts = 0;
    for (uint32_t i = 0; i < d->n_rejected; i++) {
        if (d->rejected[i].status != last)
            number = verdict_number(p, last = d->rejected[i].status);
        p->placed.mark[bh_node_list_place(&p->list, d->rejected[i].node)] =
            BH_NODE_VERDICTS + number;
    }
    for (uint32_t i = 0; i < d->n_scores; i++) {
        uint32_t at = bh_node_list_place(&p->list, d->scores[i].node);
        p->placed.mark[at] = BH_NODE_FEASIBLE;
        p->placed.score[at] = i;
    }
    p->placed.n = p->list.n;
    for (uint32_t at = 0, n = 0; at < p->list.n; at++)
        if (p->placed.mark[at] == BH_NODE_FEASIBLE)
            p->placed.score[n++] = p->placed.score[at];
}
