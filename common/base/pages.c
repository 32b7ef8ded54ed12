/* SPDX-License-Identifier: Apache-2.0
 *
 * common/base/pages.c - memory of large arrays that are read and written here and there
 *
 * Blocks of an area and more have a mapping of their own; its last part, less than a large page, is
 * of small ones, so nothing is wasted.
 */
#include "common/base/pages.h"

#include <pthread.h>
#include <sys/mman.h>

#define LINE  ((size_t)64)
#define UNITS (BH_PAGES_LARGE / BH_PAGES_UNIT)
_Static_assert(UNITS == 32, "one bit of area.taken each");

struct area {
    struct area *next;
    char *at;
    uint32_t taken; /* units */
};
static size_t mapped; /* bytes, atomic */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct area *areas; /* under the lock */

static size_t rounded(size_t n, size_t to)
{
    return (n + to - 1) / to * to;
}

/* Address space for the boundary in front, which is given back. */
static char *map(size_t n)
{
    size_t all = n + BH_PAGES_LARGE;
    char *p = mmap(NULL, all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    bh_assert(p != MAP_FAILED); /* out of memory */
    size_t front = (size_t)(-(uintptr_t)p & (BH_PAGES_LARGE - 1));
    if (front)
        munmap(p, front);
    munmap(p + front + n, all - front - n);
    if (__atomic_add_fetch(&mapped, n, __ATOMIC_RELAXED) > BH_PAGES_FEW)
        madvise(p + front, n, MADV_HUGEPAGE); /* where the kernel has none, small ones do */
    return p + front;
}

static void unmap(void *p, size_t n)
{
    munmap(p, n);
    __atomic_sub_fetch(&mapped, n, __ATOMIC_RELAXED);
}

/* ---- areas that several blocks share --------------------------------------------------------- */

static uint32_t mask_of(size_t n, unsigned at)
{
    return (uint32_t)(((uint64_t)1 << n / BH_PAGES_UNIT) - 1) << at;
}

static void *take_units(struct area *a, size_t n)
{
    for (unsigned at = 0; at + n / BH_PAGES_UNIT <= UNITS; at++) {
        if (a->taken & mask_of(n, at))
            continue;
        a->taken |= mask_of(n, at);
        return a->at + at * BH_PAGES_UNIT;
    }
    return NULL;
}

static void shared_free(char *p, size_t n)
{
    struct area **at = &areas;

    pthread_mutex_lock(&lock);
    while (*at && (uintptr_t)(*at)->at != ((uintptr_t)p & ~(uintptr_t)(BH_PAGES_LARGE - 1)))
        at = &(*at)->next;
    bh_assert(*at);
    struct area *a = *at;
    uint32_t mask = mask_of(n, (unsigned)((size_t)(p - a->at) / BH_PAGES_UNIT));
    bh_assert((a->taken & mask) == mask);
    a->taken &= ~mask;
    if (!a->taken) {
        *at = a->next;
        unmap(a->at, BH_PAGES_LARGE);
        free(a);
    }
    pthread_mutex_unlock(&lock);
}

/* ---- blocks ---------------------------------------------------------------------------------- */

static size_t room(size_t n)
{
    return n < BH_PAGES_MIN ? rounded(n ? n : 1, LINE) : rounded(n, BH_PAGES_UNIT);
}

void *bh_pages_new(size_t n)
{
    size_t bytes = room(n);

    bh_assert(n <= SIZE_MAX / 2);
    bh_allocations++;
    if (bytes >= BH_PAGES_LARGE)
        return map(bytes);
    if (bytes >= BH_PAGES_MIN) {
        void *p = NULL;
        pthread_mutex_lock(&lock);
        for (struct area *a = areas; a && !p; a = a->next)
            p = take_units(a, bytes);
        if (!p) {
            struct area *a = bh_malloc(sizeof *a);
            *a = (struct area){.next = areas, .at = map(BH_PAGES_LARGE)};
            areas = a;
            p = take_units(a, bytes);
        } else {
            memset(p, 0, bytes); /* it may have been in use */
        }
        pthread_mutex_unlock(&lock);
        return p;
    }
    void *p = aligned_alloc(LINE, bytes);
    bh_assert(p);
    memset(p, 0, bytes);
    return p;
}

void bh_pages_free(void *p, size_t n)
{
    size_t bytes = room(n);

    if (!p)
        return;
    if (bytes >= BH_PAGES_LARGE)
        unmap(p, bytes);
    else if (bytes >= BH_PAGES_MIN)
        shared_free(p, bytes);
    else
        free(p);
}

void *bh_pages_resize(void *p, size_t old, size_t n)
{
    void *q = bh_pages_new(n);

    if (p)
        memcpy(q, p, BH_MIN(old, n));
    bh_pages_free(p, old);
    return q;
}
