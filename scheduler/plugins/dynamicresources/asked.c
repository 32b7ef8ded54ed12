/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/plugins/dynamicresources/asked.c - what pods ask for, and which nodes have it
 *
 * Invariants: between two asks verdict[row] is what filter said of the row when everything before
 * log_pos (cache) and moved_pos (devices) had happened; n_yes and n_failed count verdicts.
 */
#include "common/k8s/codec.h"
#include "scheduler/plugins/dynamicresources/asked.h"

enum { DEAD, TO_DO, YES, NO, FAILS }; /* DEAD: no node; TO_DO: in the list */

struct bh_dra_question {
    struct bh_dra_named named; /* the claims' requests; the shape with extended resources */
    uint64_t index, classes, log_pos, moved_pos;
    uint8_t *verdict;
    uint32_t n_rows, n_yes, n_failed;
};

/* ---- which question ---- */

static void put_number(struct bh_buf *b, uint64_t v)
{
    bh_buf_add(b, &v, sizeof v);
}

/* false: verdicts cannot be kept. Lengths stand before texts, so no two questions look alike. */
static bool describe(const struct bh_call *c, const struct bh_dra_cycle *st, struct bh_buf *ret)
{
    put_number(ret, st->n_claims);
    for (uint32_t i = 0; i < st->n_claims; i++) {
        const struct bh_dra_claim_state *cs = &st->claims[i];
        const K8s__DeviceClaim *d = bh_dra_devices_of(cs->msg);
        if (cs->allocation || (cs->special && cs->msg))
            return false;
        put_number(ret, cs->special);
        if (cs->special) { /* what it stands for is a matter of the pod's containers */
            put_number(ret, c->pod->shape_id);
            put_number(ret, c->cache->shapes.e[c->pod->shape_id].born);
        }
        put_number(ret, d ? protobuf_c_message_get_packed_size(&d->base) : UINT64_MAX);
        if (d)
            bh_pb_pack(ret, &d->base);
    }
    return true;
}

static void drop(struct bh_dra_named *named)
{
    struct bh_dra_question *q = (void *)named;

    if (!q)
        return;
    free(q->named.text);
    free(q->verdict);
    free(q);
}

void bh_dra_forget_asked(struct bh_dra *d)
{
    for (unsigned i = 0; i < BH_DRA_ASKED; i++)
        drop(d->asked[i]);
    free(d->todo);
    bh_buf_fini(&d->asking);
}

/* ---- keeping it current ---- */

static void forget(struct bh_dra *d, struct bh_dra_question *q, uint32_t row)
{
    if (row >= q->n_rows || q->verdict[row] == TO_DO)
        return;
    q->n_yes -= q->verdict[row] == YES;
    q->n_failed -= q->verdict[row] == FAILS;
    q->verdict[row] = TO_DO;
    d->todo[d->n_todo++] = row;
}

/* false: what happened since cannot be told row by row. */
static bool follow(struct bh_call *c, struct bh_dra *d, struct bh_dra_question *q)
{
    const struct bh_cache *cache = c->cache;

    if (q->index != d->index_generation || q->classes != c->objects->version[BH_KIND_DEVICECLASS] ||
        q->n_rows < cache->cols.cap_rows || q->log_pos < cache->log_begin ||
        d->moved_end - q->moved_pos > BH_DRA_MOVED)
        return false;
    for (uint64_t pos = q->moved_pos; pos < d->moved_end; pos++) {
        bh_sym node = d->moved[pos % BH_DRA_MOVED];
        const struct bh_node_info *ni = node == BH_SYM_NONE ? NULL : bh_cache_node(cache, node);
        if (node == BH_SYM_NONE)
            return false;
        if (ni)
            forget(d, q, ni->row);
    }
    for (uint64_t pos = q->log_pos; pos < cache->log_end; pos++)
        if (cache->log_what[pos & (cache->log_cap - 1)] == BH_ROW_NODE)
            forget(d, q, cache->log[pos & (cache->log_cap - 1)]);
    return true;
}

/* The last search, for nodes that need none because they see the same. */
struct last {
    uint32_t group; /* 0: its verdict was its own */
    uint32_t reach; /* UINT32_MAX: it says nothing about nodes of other groups */
    struct bh_dra_sight sight;
    uint8_t verdict;
};

static void search(struct bh_call *c, struct bh_dra *d, struct bh_dra_question *q,
                   const struct bh_status *(*filter)(struct bh_call *c,
                                                     const struct bh_node_info *node))
{
    struct bh_dra_cycle *st = c->pre_filter_state;
    struct last last = {0};

    for (uint32_t i = 0; i < d->n_todo; i++) {
        uint32_t row = d->todo[i], group = 0;
        q->verdict[row] = DEAD;
        if (!bh_row_bit(&c->cache->cols, BH_ROW_LIVE, row))
            continue;
        /* Extended resources are a matter of the node as well. */
        const struct bh_dra_sight *v =
            st->special ? NULL : bh_dra_sight_of(d, c->cache, c->cache->rows[row], &group);
        /* A node that sees the same, or begins with the same where that was enough, fares as the
         * last one did. */
        bool known = last.group && v &&
                     ((group == last.group && !v->per_device) ||
                      (last.verdict == YES && bh_dra_begin_alike(&last.sight, v, last.reach)));
        if (!known) {
            const struct bh_status *s = filter(c, c->cache->rows[row]);
            last.verdict = !s ? YES : bh_status_rejected(s) ? NO : FAILS;
            last.group = v ? group : 0;
            last.reach = st->pod.reach;
            last.sight = v ? *v : (struct bh_dra_sight){0};
        }
        q->verdict[row] = last.verdict;
        q->n_yes += last.verdict == YES;
        q->n_failed += last.verdict == FAILS;
    }
    d->n_todo = 0;
}

const struct bh_dra_question *
bh_dra_ask(struct bh_call *c, struct bh_dra_cycle *st,
           const struct bh_status *(*filter)(struct bh_call *c, const struct bh_node_info *node))
{
    struct bh_dra *d = st->pod.d;

    bh_buf_reset(&d->asking);
    if (d->odd_counters || !st->n_to_allocate || !describe(c, st, &d->asking))
        return NULL;
    struct bh_dra_question *q =
        (void *)bh_dra_named_for(d, d->asked, BH_DRA_ASKED, &d->asking, sizeof *q, drop);
    if (!follow(c, d, q)) {
        const struct bh_columns *cols = &c->cache->cols;
        if (q->n_rows < cols->cap_rows) {
            q->n_rows = cols->cap_rows;
            q->verdict = bh_reallocarray(q->verdict, q->n_rows, sizeof *q->verdict);
            if (d->cap_todo < q->n_rows)
                d->todo = bh_reallocarray(d->todo, d->cap_todo = q->n_rows, sizeof *d->todo);
        }
        memset(q->verdict, DEAD, q->n_rows * sizeof *q->verdict);
        q->n_yes = q->n_failed = d->n_todo = 0;
        for (uint32_t row = 0; row < cols->n_rows; row++)
            forget(d, q, row);
    }
    search(c, d, q, filter);
    q->index = d->index_generation;
    q->classes = c->objects->version[BH_KIND_DEVICECLASS];
    q->log_pos = c->cache->log_end;
    q->moved_pos = d->moved_end;
    return q->n_failed ? NULL : q;
}

bool bh_dra_answer(const struct bh_dra_question *q, uint32_t row)
{
    return row < q->n_rows && q->verdict[row] == YES;
}

uint32_t bh_dra_n_yes(const struct bh_dra_question *q)
{
    return q->n_yes;
}

uint32_t bh_dra_yes_rows(const struct bh_dra_question *q, uint32_t *rows)
{
    uint32_t n = 0;

    for (uint32_t row = 0; row < q->n_rows && n < q->n_yes; row++)
        if (q->verdict[row] == YES)
            rows[n++] = row;
    return n;
}
