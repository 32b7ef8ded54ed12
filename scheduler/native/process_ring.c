/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/native/process_ring.c - messages in shared memory, and passing the word
 *
 * Runs in: both sides of process.h.
 */
#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "scheduler/native/process.h"

#define LOOK_NS 10000000 /* while asleep: is the other side still there? */
#define SOON_NS 50000u
#define LOOKS   32u /* between two looks at the clock */

static size_t padded(size_t n)
{
    return (n + 7) & ~(size_t)7;
}

void *bh_px_room(struct bh_px_out *o, size_t n)
{
    if (o->full || n > o->cap || padded(n) > o->cap - o->n) {
        o->full = true;
        return NULL;
    }
    void *p = o->p + o->n;
    o->n += padded(n);
    return p;
}

void bh_px_put(struct bh_px_out *o, const void *p, size_t n)
{
    void *to = bh_px_room(o, n);

    if (to && n)
        memcpy(to, p, n);
}

void bh_px_put_u64(struct bh_px_out *o, uint64_t v)
{
    bh_px_put(o, &v, sizeof v);
}

void bh_px_put_str(struct bh_px_out *o, const char *p, uint64_t n)
{
    bh_px_put_u64(o, n);
    bh_px_put(o, p, n);
}

const void *bh_px_get(struct bh_px_in *in, size_t n)
{
    const size_t left = (size_t)(in->end - in->p);

    if (in->bad || n > left || padded(n) > left) {
        in->bad = true;
        return NULL;
    }
    const void *p = in->p;
    in->p += padded(n);
    return p;
}

uint64_t bh_px_get_u64(struct bh_px_in *in)
{
    const void *p = bh_px_get(in, sizeof(uint64_t));
    uint64_t v = 0;

    if (p)
        memcpy(&v, p, sizeof v);
    return v;
}

struct berth_str bh_px_get_str(struct bh_px_in *in)
{
    const uint64_t n = bh_px_get_u64(in);
    const char *p = bh_px_get(in, n);

    return p ? (struct berth_str){p, n} : (struct berth_str){"", 0};
}

/* ---- rows and scores ------------------------------------------------------------------------- */

#define BLOCK 64u
struct run {
    uint32_t first, n;
};

static uint64_t length_of_run(const uint32_t *rows, uint64_t n)
{
    uint64_t len = 1;
    uint32_t other = 0;

    for (; len + BLOCK <= n && !other; len += other ? 0 : BLOCK) /* mostly it is one run */
        for (uint32_t i = 0; i < BLOCK; i++)
            other |= rows[len + i] ^ (rows[0] + (uint32_t)len + i);
    while (len < n && rows[len] == rows[0] + (uint32_t)len)
        len++;
    return len;
}

void bh_px_put_rows(struct bh_px_out *o, const uint32_t *rows, uint64_t n)
{
    bh_px_put_u64(o, n);
    for (uint64_t i = 0; i < n;) {
        const struct run r = {rows[i], (uint32_t)length_of_run(rows + i, n - i)};
        bh_px_put(o, &r, sizeof r);
        i += r.n;
    }
}

static struct run get_run(struct bh_px_in *in, uint64_t left)
{
    struct run r = {0, 0};
    const void *p = bh_px_get(in, sizeof r);

    if (p)
        memcpy(&r, p, sizeof r);
    in->bad |= !r.n || r.n > left;
    return r;
}

uint32_t *bh_px_get_rows(struct bh_px_in *in, struct bh_arena *a, uint64_t *ret_n)
{
    const uint64_t n = *ret_n = bh_px_get_u64(in);
    uint32_t *rows =
        !in->bad && n <= BH_PX_ROWS_MAX ? bh_arena_alloc(a, (n + 1) * sizeof *rows) : NULL;

    for (uint64_t i = 0; rows && i < n;) {
        const struct run r = get_run(in, n - i);
        if (in->bad)
            return NULL;
        for (uint32_t k = 0; k < r.n; k++)
            rows[i + k] = r.first + k;
        i += r.n;
    }
    return rows;
}

bool bh_px_same_rows(struct bh_px_in in, const uint32_t *rows, uint64_t n)
{
    if (bh_px_get_u64(&in) != n)
        return false;
    for (uint64_t i = 0; i < n;) {
        const struct run r = get_run(&in, n - i);
        if (in.bad || rows[i] != r.first || length_of_run(rows + i, r.n) != r.n)
            return false;
        i += r.n;
    }
    return true;
}

void bh_px_put_scores(struct bh_px_out *o, const int64_t *scores, uint64_t n)
{
    uint64_t all = 0;

    for (uint64_t i = 0; i < n; i++)
        all |= (uint64_t)scores[i];
    const bool small = all <= UINT8_MAX;
    bh_px_put_u64(o, small ? sizeof(uint8_t) : sizeof *scores);
    if (!small) {
        bh_px_put(o, scores, n * sizeof *scores);
        return;
    }
    uint8_t *to = bh_px_room(o, n);
    for (uint64_t i = 0; to && i < n; i++)
        to[i] = (uint8_t)scores[i];
}

bool bh_px_get_scores(struct bh_px_in *in, int64_t *ret, uint64_t n)
{
    const uint64_t bytes = bh_px_get_u64(in);

    in->bad |= (bytes != sizeof(uint8_t) && bytes != sizeof *ret) || n > BH_PX_ROWS_MAX;
    const uint8_t *p = in->bad ? NULL : bh_px_get(in, n * bytes);
    if (p && bytes == sizeof *ret)
        memcpy(ret, p, n * sizeof *ret);
    for (uint64_t i = 0; p && bytes == sizeof *p && i < n; i++)
        ret[i] = p[i];
    return p != NULL;
}

/* ---- the word -------------------------------------------------------------------------------- */

/* Leaves the core to its other thread. */
static inline void pause_a_little(void)
{
#ifdef __aarch64__
    __asm__ volatile("yield");
#else
    __builtin_ia32_pause();
#endif
}

/* The other side spoke while this one looked, and as soon as it would have without. */
static bool comes_soon(struct bh_px_area *mine, const _Atomic uint32_t *seq, uint32_t seen)
{
    if (mine->blind) {
        mine->blind--;
        return false;
    }
    const uint64_t until = bh_mono_ns() + SOON_NS;
    bool in_time;
    do {
        for (unsigned i = 0; i < LOOKS && atomic_load(seq) == seen; i++)
            pause_a_little();
        in_time = bh_mono_ns() < until;
    } while (in_time && atomic_load(seq) == seen);
    mine->blind_next = in_time ? 0 : BH_MIN(2 * mine->blind_next + 1, BH_PX_BLIND_MAX);
    mine->blind = mine->blind_next;
    return atomic_load(seq) != seen;
}

static void sleep_on(const _Atomic uint32_t *seq, uint32_t seen)
{
    const struct timespec ts = {0, LOOK_NS};

    (void)syscall(SYS_futex, (const uint32_t *)(const void *)seq, FUTEX_WAIT, seen, &ts, NULL, 0);
}

int bh_px_listen(struct bh_px_area *mine, const struct bh_px_area *other, uint32_t seen,
                 uint64_t deadline_ns, bool (*gone)(void *arg), void *arg)
{
    int rc = 0;

    if (comes_soon(mine, &other->seq, seen))
        return 0;
    atomic_store(&mine->sleeps, 1);
    while (rc == 0 && atomic_load(&other->seq) == seen) {
        if (gone && gone(arg))
            rc = -EPIPE;
        else if (deadline_ns && bh_mono_ns() >= deadline_ns)
            rc = -ETIMEDOUT;
        else
            sleep_on(&other->seq, seen);
    }
    atomic_store(&mine->sleeps, 0);
    return atomic_load(&other->seq) != seen ? 0 : rc;
}

struct bh_px_out bh_px_main(struct bh_px_area *mine)
{
    return (struct bh_px_out){.p = mine->data, .cap = BH_PX_MAIN_BYTES};
}

struct bh_px_out bh_px_side(struct bh_px_area *mine)
{
    return (struct bh_px_out){.p = mine->data + BH_PX_MAIN_BYTES, .cap = BH_PX_SIDE_BYTES};
}

struct bh_px_in bh_px_heard(const struct bh_px_area *other, bool aside)
{
    const uint64_t n = *(const volatile uint64_t *)&other->bytes;
    const char *p = aside ? other->data + BH_PX_MAIN_BYTES : other->data;
    const bool bad = n > (aside ? BH_PX_SIDE_BYTES : BH_PX_MAIN_BYTES);

    return (struct bh_px_in){.p = p, .end = bad ? p : p + n, .bad = bad};
}

void bh_px_say(struct bh_px_area *mine, const struct bh_px_area *other, size_t bytes, bool aside)
{
    mine->bytes = bytes;
    mine->aside = aside;
    atomic_fetch_add(&mine->seq, 1);
    if (atomic_load(&other->sleeps))
        (void)syscall(SYS_futex, (uint32_t *)(void *)&mine->seq, FUTEX_WAKE, 1, NULL, NULL, 0);
}
