/* SPDX-License-Identifier: Apache-2.0
 *
 * common/regex/match.c - the Pike machine
 *
 * All alternatives advance together, one code point at a time; a program of m instructions over a
 * text of n is at most m * n steps, whatever the pattern. Threads stand in the order of preference,
 * and each knows where it began, which gives the leftmost match that a backtracking matcher would
 * prefer.
 */
#include "common/base/utf8.h"
#include "common/regex/regex_int.h"

struct thread {
    uint32_t pc;
    size_t from;
};
/* Sparse set: `at[pc]` is where pc stands in list, if list agrees. */
struct threads {
    struct thread *list;
    uint32_t *at, n;
};
struct machine {
    const struct bh_regex *re;
    struct bh_str s;
    uint32_t *stack;
    uint64_t steps, max_steps;
};

static bool is_word(struct bh_str s, size_t i)
{
    char c = i < s.n ? s.p[i] : ' ';
    return c == '_' || bh_is_digit(c) || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
}

static bool holds(uint32_t op, struct bh_str s, size_t at)
{
    switch (op) {
    case RE_BEGIN:
        return at == 0;
    case RE_END:
        return at == s.n;
    case RE_LINE_BEGIN:
        return at == 0 || s.p[at - 1] == '\n';
    case RE_LINE_END:
        return at == s.n || s.p[at] == '\n';
    default:
        return ((at > 0 && is_word(s, at - 1)) != is_word(s, at)) == (op == RE_WORD);
    }
}

/* Adds pc and everything it reaches without reading. Each pc is entered once a position. */
static void add(struct machine *m, struct threads *t, uint32_t pc, size_t from, size_t at)
{
    uint32_t top = 0;

    m->stack[top++] = pc;
    while (top > 0) {
        pc = m->stack[--top];
        const struct regex_inst *i = &m->re->inst[pc];
        if (t->at[pc] < t->n && t->list[t->at[pc]].pc == pc)
            continue;
        m->steps++;
        t->at[pc] = t->n;
        t->list[t->n++] = (struct thread){pc, from};
        if (i->op == RE_SPLIT) {
            m->stack[top++] = pc + (uint32_t)i->y;
            m->stack[top++] = pc + (uint32_t)i->x;
        } else if (i->op == RE_JUMP) {
            m->stack[top++] = pc + (uint32_t)i->x;
        } else if (i->op >= RE_BEGIN && holds(i->op, m->s, at)) {
            m->stack[top++] = pc + 1;
        }
    }
}

static bool in_class(const struct regex_inst *i, uint32_t c)
{
    uint32_t lo = 0, hi = i->n_ranges;

    while (lo < hi) {
        uint32_t mid = (lo + hi) / 2;
        if (c > i->range[mid].hi)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < i->n_ranges && c >= i->range[lo].lo;
}

static bool reads(const struct regex_inst *i, uint32_t c)
{
    return i->op == RE_ANY || (i->op == RE_ANY_NOT_NL && c != '\n') ||
           (i->op == RE_CLASS && in_class(i, c));
}

static struct threads new_threads(struct bh_arena *a, uint32_t n)
{
    return (struct threads){bh_arena_alloc(a, n * sizeof(struct thread)),
                            bh_arena_new_array(a, uint32_t, n), 0};
}

/* Lets every thread read the rune at `at`. A match cuts off what is less preferred. */
static bool step(struct machine *m, struct threads *now, struct threads *then, size_t at,
                 uint32_t rune, size_t width, size_t *ret_from)
{
    for (uint32_t k = 0; k < now->n; k++) {
        struct thread t = now->list[k];
        const struct regex_inst *i = &m->re->inst[t.pc];
        m->steps++;
        if (i->op == RE_MATCH) {
            *ret_from = t.from;
            return true;
        }
        if (width && reads(i, rune))
            add(m, then, t.pc + 1, t.from, at + width);
    }
    return false;
}

static bool run(struct machine *m, struct threads now, struct threads then, size_t at,
                size_t *ret_from, size_t *ret_to)
{
    bool found = false;

    for (;;) {
        uint32_t rune = 0;
        size_t width = 0;
        if (!found)
            add(m, &now, 0, at, at); /* the least preferred: it begins later than the others */
        if (at < m->s.n)
            rune = bh_utf8_get(m->s.p + at, m->s.n - at, &width);
        then.n = 0;
        if (step(m, &now, &then, at, rune, width, ret_from)) {
            *ret_to = at;
            found = true;
        }
        if (width == 0 || (found && then.n == 0) || m->steps > m->max_steps)
            return found && m->steps <= m->max_steps;
        at += width;
        struct threads swap = now;
        now = then;
        then = swap;
    }
}

bool bh_regex_find(const struct bh_regex *re, struct bh_arena *scratch, struct bh_str s,
                   size_t from, size_t *ret_from, size_t *ret_to, uint64_t *steps,
                   uint64_t max_steps)
{
    struct bh_arena_mark mark = bh_arena_mark(scratch);
    struct machine m = {.re = re, .s = s, .max_steps = max_steps, .steps = re->n / 8};
    size_t match_from = 0, match_to = 0;

    /* The steps begin with the sets' clearing, which counts when many short texts are searched.
     * A split pushes two and was popped itself, and each instruction is expanded once. */
    m.stack = bh_arena_alloc(scratch, (re->n + 2) * sizeof(*m.stack));
    struct threads a = new_threads(scratch, re->n), b = new_threads(scratch, re->n);
    bool found = run(&m, a, b, from, &match_from, &match_to);
    bh_arena_rewind(scratch, mark);
    *steps += m.steps;
    if (found) {
        *ret_from = match_from;
        *ret_to = match_to;
    }
    return found;
}
