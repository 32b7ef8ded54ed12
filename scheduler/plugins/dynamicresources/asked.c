/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/plugins/dynamicresources/asked.c - what pods ask for, and which nodes have it
 *
 * Invariants: between two asks verdict[row] is what filter said of the row when everything before
 * log_pos (cache) and moved_pos (devices) had happened; n_yes and n_failed count verdicts.
 * Runs in:    the engine's thread.
 */
#include "common/k8s/codec.h"
#include "scheduler/plugins/dynamicresources/asked.h"

enum { DEAD, TO_DO, YES, NO, FAILS }; /* DEAD: no node; TO_DO: in the list */

struct bh_dra_question {
    char *text; /* the claims' requests, and the shape when it asks for extended resources */
    size_t n;
    uint64_t used;
    uint64_t index, classes, log_pos, moved_pos;
    uint8_t *verdict;
    uint32_t *todo, n_todo;
    uint32_t n_rows, n_yes, n_failed;
};

/* ---- which question ----------------------------------------------------------------------------
 */

static void put_number(struct bh_buf *b, uint64_t v)
{
    bh_buf_add(b, &v, sizeof v);
}

/* false: verdicts cannot be kept. Lengths stand before texts, so that no two questions look alike.
 */
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

static void drop(struct bh_dra_question *q)
{
    if (!q)
        return;
    free(q->text);
    free(q->verdict);
    free(q->todo);
    free(q);
}

void bh_dra_forget_asked(struct bh_dra *d)
{
    for (unsigned i = 0; i < BH_DRA_ASKED; i++)
        drop(d->asked[i]);
    bh_buf_fini(&d->asking);
}

static struct bh_dra_question *find(struct bh_dra *d, const struct bh_buf *b)
{
    struct bh_dra_question **oldest = &d->asked[0], *q;

    for (unsigned i = 0; i < BH_DRA_ASKED; i++) {
        q = d->asked[i];
        if (q && q->n == b->n && memcmp(q->text, b->p, b->n) == 0) {
            q->used = ++d->asked_clock;
            return q;
        }
        if (!q || (*oldest && q->used < (*oldest)->used))
            oldest = &d->asked[i];
        if (!q)
            break; /* they fill from the front */
    }
    drop(*oldest);
    q = *oldest = bh_calloc(1, sizeof *q);
    q->text = bh_memdup(b->p, b->n);
    q->n = b->n;
    q->used = ++d->asked_clock;
    return q;
}

/* ---- keeping it current ------------------------------------------------------------------------
 */

static void forget(struct bh_dra_question *q, uint32_t row)
{
    if (row >= q->n_rows || q->verdict[row] == TO_DO)
        return;
    q->n_yes -= q->verdict[row] == YES;
    q->n_failed -= q->verdict[row] == FAILS;
    q->verdict[row] = TO_DO;
    q->todo[q->n_todo++] = row;
}

static void start_anew(struct bh_call *c, struct bh_dra_question *q)
{
    const struct bh_columns *cols = &c->cache->cols;

    if (q->n_rows < cols->cap_rows) {
        q->n_rows = cols->cap_rows;
        q->verdict = bh_reallocarray(q->verdict, q->n_rows, sizeof *q->verdict);
        q->todo = bh_reallocarray(q->todo, q->n_rows, sizeof *q->todo);
    }
    memset(q->verdict, DEAD, q->n_rows * sizeof *q->verdict);
    q->n_yes = q->n_failed = q->n_todo = 0;
    for (uint32_t row = 0; row < cols->n_rows; row++)
        forget(q, row);
}

/* false: what happened since cannot be told row by row. */
static bool follow(struct bh_call *c, const struct bh_dra *d, struct bh_dra_question *q)
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
            forget(q, ni->row);
    }
    for (uint64_t pos = q->log_pos; pos < cache->log_end; pos++)
        if (cache->log_what[pos & (cache->log_cap - 1)] == BH_ROW_NODE)
            forget(q, cache->log[pos & (cache->log_cap - 1)]);
    return true;
}

static void search(struct bh_call *c, struct bh_dra_question *q,
                   const struct bh_status *(*filter)(struct bh_call *c,
                                                     const struct bh_node_info *node))
{
    const struct bh_dra_cycle *st = c->pre_filter_state;
    uint32_t group = 0, last = 0;
    uint8_t verdict = DEAD;

    for (uint32_t i = 0; i < q->n_todo; i++) {
        uint32_t row = q->todo[i];
        q->verdict[row] = DEAD;
        if (!bh_row_bit(&c->cache->cols, BH_ROW_LIVE, row))
            continue;
        group = st->special ? 0 : bh_dra_alike(st->pod.d, c->cache, c->cache->rows[row]);
        if (!group || group != last) { /* groups mostly come in a row */
            const struct bh_status *s = filter(c, c->cache->rows[row]);
            verdict = !s ? YES : bh_status_rejected(s) ? NO : FAILS;
        }
        last = group;
        q->verdict[row] = verdict;
        q->n_yes += verdict == YES;
        q->n_failed += verdict == FAILS;
    }
    q->n_todo = 0;
}

const struct bh_dra_question *
bh_dra_ask(struct bh_call *c, struct bh_dra_cycle *st,
           const struct bh_status *(*filter)(struct bh_call *c, const struct bh_node_info *node))
{
    struct bh_dra *d = st->pod.d;
    struct bh_dra_question *q;

    bh_buf_reset(&d->asking);
    if (d->odd_counters || !st->n_to_allocate || !describe(c, st, &d->asking))
        return NULL;
    q = find(d, &d->asking);
    if (!follow(c, d, q))
        start_anew(c, q);
    search(c, q, filter);
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
