/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/native/user.c - user columns: numbers a node that plugins publish from threads of their
 * own
 *
 * A thread hands over a whole column by node name; it is put into a map outside of the lock and
 * swapped in. The engine's thread looks once a cycle whether something was published, or nodes came
 * or went, and lays the values out by row: what callbacks of one pod see does not change under them,
 * and the kept results' epoch is the number of what was laid out.
 *
 * Invariants: told[] and published change under the lock; the rest is the engine's thread's.
 */
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>

#include "common/base/map.h"
#include "common/base/pages.h"
#include "scheduler/native/native_int.h"

#define NODES_MAX (UINT64_C(1) << 20)

struct told { /* a column as it was published */
    struct bh_map by_name;
    double *values; /* the map points into it */
};
struct bh_native_user {
    pthread_mutex_t lock;
    struct told told[BH_USER_COLUMNS];
    _Atomic uint64_t published; /* how often */
    bool verify;
    /* ---- laid out by row ---- */
    double *column[BH_USER_COLUMNS];
    uint32_t cap;
    uint64_t seen, membership;
    int64_t now_ns; /* of the cycle that looked last */
};

static void told_free(struct told *t)
{
    bh_map_fini(&t->by_name);
    free(t->values);
}

struct bh_native_user *bh_native_user_new(bool verify)
{
    struct bh_native_user *u = bh_calloc(1, sizeof *u);

    pthread_mutex_init(&u->lock, NULL);
    u->verify = verify;
    return u;
}

void bh_native_user_free(struct bh_native_user *u)
{
    if (!u)
        return;
    for (uint32_t i = 0; i < BH_USER_COLUMNS; i++) {
        told_free(&u->told[i]);
        bh_pages_free(u->column[i], u->cap * sizeof(double));
    }
    pthread_mutex_destroy(&u->lock);
    free(u);
}

bool bh_native_user_publish(struct bh_native_user *u, uint32_t column,
                            const struct berth_str *nodes, const double *values, uint64_t n)
{
    if (column >= BH_USER_COLUMNS || n > NODES_MAX)
        return false;
    struct told t = {.values = bh_calloc(n + 1, sizeof *values)};
    for (uint64_t i = 0; i < n; i++) {
        t.values[i] = values[i];
        (void)bh_map_put(&t.by_name, nodes[i].p, nodes[i].n, &t.values[i]);
    }
    pthread_mutex_lock(&u->lock);
    struct told was = u->told[column];
    u->told[column] = t;
    u->published++;
    pthread_mutex_unlock(&u->lock);
    told_free(&was);
    return true;
}

static void make_room(struct bh_native_user *u, uint32_t rows)
{
    if (u->cap >= rows)
        return;
    for (uint32_t i = 0; i < BH_USER_COLUMNS; i++)
        u->column[i] =
            bh_pages_resize(u->column[i], u->cap * sizeof(double), rows * sizeof(double));
    u->cap = rows; /* as long as the cache's own columns: a multiple of 64 */
}

static void lay_out(struct bh_native_user *u, const struct bh_call *c)
{
    const struct bh_cache *cache = c->cache;

    make_room(u, cache->cols.cap_rows);
    pthread_mutex_lock(&u->lock);
    for (uint32_t row = 0; row < cache->cols.n_rows; row++) {
        struct bh_str name =
            cache->rows[row] ? bh_sym_str(c->tab, cache->rows[row]->name) : (struct bh_str){"", 0};
        for (uint32_t i = 0; i < BH_USER_COLUMNS; i++) {
            const double *v =
                u->told[i].by_name.len ? bh_map_get(&u->told[i].by_name, name.p, name.n) : NULL;
            u->column[i][row] = v ? *v : NAN;
        }
    }
    u->seen = u->published;
    pthread_mutex_unlock(&u->lock);
    u->membership = cache->membership;
}

/* later: what came meanwhile is let in. */
static void look(struct bh_native_user *u, const struct bh_call *c, bool later)
{
    bool moved = !u->cap || u->membership != c->cache->membership;

    u->now_ns = u->verify ? BH_MAX(u->now_ns, c->now_ns) : c->now_ns;
    if (moved || (later && u->published != u->seen))
        lay_out(u, c);
}

const double *bh_native_user_column(struct bh_native_user *u, const struct bh_call *c,
                                    uint32_t column)
{
    if (column >= BH_USER_COLUMNS || !c->cache)
        return NULL;
    /* A cycle that is kept has the moment of the one that made it; where both paths are compared, the
     * first one to decide about a pod is never of an earlier moment. */
    look(u, c, u->verify ? c->now_ns > u->now_ns : c->now_ns != u->now_ns);
    return u->column[column];
}

uint64_t bh_native_user_epoch(struct bh_native_user *u, const struct bh_call *c)
{
    /* Asked when a pod's turn begins; where both paths are compared, once for each. */
    look(u, c, !u->verify || c->now_ns > u->now_ns);
    return u->seen;
}
