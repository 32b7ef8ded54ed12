/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/property/shrink.c - the same finding with less
 *
 * First operations go in ever smaller blocks, then members and elements of what is left, one by
 * one. Every candidate is played in a process of its own; it is taken when the finding is of the
 * same kind.
 */
#include <time.h>

#include "tests/property/property.h"

struct shrinker {
    struct bh_arena *a;
    struct bh_json *best; /* candidates are made in place and undone */
    const struct finding *f;
    unsigned tries;
    uint64_t end_ns;
};

static bool spent(const struct shrinker *s)
{
    return s->tries == 0 || bh_mono_ns() > s->end_ns;
}

static bool still(struct shrinker *s)
{
    struct finding f = {.kind = ""};
    struct counts n = {0};

    if (spent(s))
        return false;
    s->tries--;
    return !play_apart(s->best, 20, &n, &f) && bh_streq(f.kind, s->f->kind);
}

/* The list without the elements [at, at + n), as another list; the elements are shared. */
static void cut(struct bh_json *list, size_t at, size_t n, struct bh_json **ret_before,
                struct bh_json **ret_after)
{
    struct bh_json **link = &list->c.first, *end;

    for (size_t i = 0; i < at; i++)
        link = &(*link)->next;
    *ret_before = *link;
    end = *link;
    for (size_t i = 0; i < n; i++)
        end = end->next;
    *ret_after = end;
}

/* Takes n children out at a position; put_back undoes it. */
struct hole {
    struct bh_json *list, *prev, *first, *last, *after;
    size_t n;
};

static struct hole take_out(struct bh_json *list, size_t at, size_t n)
{
    struct hole h = {.list = list, .n = n};

    cut(list, at, n, &h.first, &h.after);
    for (struct bh_json *c = list->c.first; c != h.first; c = c->next)
        h.prev = c;
    for (h.last = h.first; h.last->next != h.after;)
        h.last = h.last->next;
    *(h.prev ? &h.prev->next : &list->c.first) = h.after;
    if (!h.after)
        list->c.last = h.prev;
    list->c.n -= n;
    return h;
}

static void put_back(const struct hole *h)
{
    *(h->prev ? &h->prev->next : &h->list->c.first) = h->first;
    h->last->next = h->after;
    if (!h->after)
        h->list->c.last = h->last;
    h->list->c.n += h->n;
}

static bool fewer_ops(struct shrinker *s, struct bh_json *list)
{
    bool any = false;

    for (size_t block = list->c.n / 2; block > 0 && !spent(s); block /= 2) {
        for (size_t end = list->c.n; end > 0 && !spent(s);) {
            size_t n = BH_MIN(block, end);
            struct hole h = take_out(list, end - n, n);
            end -= n;
            if (still(s))
                any = true;
            else
                put_back(&h);
        }
    }
    return any;
}

/* What every object needs to be one. */
static bool needed(const char *key)
{
    static const char *const keys[] = {
        "op",   "object",    "apiVersion", "kind",          "metadata",
        "name", "namespace", "uid",        "schedulerName", "pod"};

    for (unsigned i = 0; i < BH_ARRAY_LEN(keys); i++)
        if (bh_streq(keys[i], key))
            return true;
    return false;
}

static bool fewer_members(struct shrinker *s, struct bh_json *v)
{
    bool any = false;

    if (v->type != BH_JSON_OBJECT && v->type != BH_JSON_ARRAY)
        return false;
    for (size_t i = v->c.n; i > 0 && !spent(s); i--) {
        struct bh_json *c = bh_json_at(v, 0);
        c = v->c.first;
        for (size_t k = 1; k < i; k++)
            c = c->next;
        if (v->type == BH_JSON_OBJECT && needed(c->key.p)) {
            any |= fewer_members(s, c);
            continue;
        }
        struct hole h = take_out(v, i - 1, 1);
        if (still(s)) {
            any = true;
        } else {
            put_back(&h);
            any |= fewer_members(s, c);
        }
    }
    return any;
}

struct bh_json *shrink(struct bh_arena *a, const struct bh_json *scenario, const struct finding *f,
                       unsigned tries, unsigned seconds)
{
    struct shrinker s = {.a = a,
                         .best = bh_json_clone(a, scenario),
                         .f = f,
                         .tries = tries,
                         .end_ns = bh_mono_ns() + (uint64_t)seconds * 1000000000};
    struct bh_json *ops = bh_json_get(s.best, "ops");

    while (ops && fewer_ops(&s, ops) && !spent(&s))
        ;
    if (bh_json_get(s.best, "config"))
        (void)fewer_members(&s, bh_json_get(s.best, "config"));
    while (ops && fewer_members(&s, ops) && !spent(&s))
        ;
    return s.best;
}
