/* SPDX-License-Identifier: Apache-2.0
 *
 * common/base/base.c - allocation that cannot fail, assertions
 *
 * Fails with: nothing; ends the process. Both ways out write one line with write(2) only, because
 *             the heap may be what is broken.
 * Runs in:    any thread.
 */
#include "common/base/base.h"

#include <unistd.h>

BH_NORETURN static void die(const char *line, int n)
{
    if (n > 0) {
        ssize_t ignored BH_UNUSED = write(STDERR_FILENO, line, (size_t)n);
    }
    abort();
}

void bh_assert_fail(const char *expr, const char *file, int line, const char *func)
{
    char buf[512];
    int n =
        snprintf(buf, sizeof(buf), "assertion failed: %s (%s:%d, %s)\n", expr, file, line, func);
    die(buf, BH_MIN(n, (int)sizeof(buf) - 1));
}

BH_NORETURN static void out_of_memory(size_t n)
{
    char buf[96];
    int len = snprintf(buf, sizeof(buf), "out of memory: could not get %zu bytes\n", n);
    die(buf, len);
}

_Thread_local uint64_t bh_allocations;

void *bh_malloc(size_t n)
{
    void *p = malloc(n ? n : 1);
    bh_allocations++;
    if (bh_unlikely(!p))
        out_of_memory(n);
    return p;
}

void *bh_calloc(size_t n, size_t size)
{
    void *p = n && size ? calloc(n, size) : calloc(1, 1);
    bh_allocations++;
    if (bh_unlikely(!p))
        out_of_memory(size && n > SIZE_MAX / size ? SIZE_MAX : n * size);
    return p;
}

void *bh_realloc(void *p, size_t n)
{
    void *q = realloc(p, n ? n : 1);
    bh_allocations++;
    if (bh_unlikely(!q))
        out_of_memory(n);
    return q;
}

void *bh_reallocarray(void *p, size_t n, size_t size)
{
    size_t bytes;
    if (bh_unlikely(__builtin_mul_overflow(n, size, &bytes)))
        out_of_memory(SIZE_MAX);
    return bh_realloc(p, bytes);
}

void *bh_regrown(void *p, size_t from, size_t n, size_t size)
{
    char *v = bh_reallocarray(p, n, size);

    memset(v + from * size, 0, (n - from) * size);
    return v;
}

int bh_by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

size_t bh_sort_unique(void *v, size_t n, size_t size, int (*compare)(const void *, const void *))
{
    char *p = v;
    size_t kept = 0;

    if (n > 1)
        qsort(v, n, size, compare);
    for (size_t i = 0; i < n; i++) {
        if (i && compare(p + i * size, p + (kept - 1) * size) == 0)
            continue;
        if (i != kept)
            memcpy(p + kept * size, p + i * size, size);
        kept++;
    }
    return kept;
}

/* By hand: most words part at their first letter, and each container asks for some. */
int bh_word_at(const char *words, const char *s)
{
    for (int i = 0; *words; i++) {
        const char *p = s;
        for (; *p && *p == *words && *p != ' '; p++)
            words++;
        if (!*p && (!*words || *words == ' '))
            return i;
        words = strchrnul(words, ' ');
        words += *words == ' ';
    }
    return -1;
}

#define EDITS_MAX 253u
unsigned bh_edits(const char *a, const char *b)
{
    unsigned row[EDITS_MAX + 2];
    size_t n = strnlen(b, EDITS_MAX);

    for (size_t j = 0; j <= n; j++)
        row[j] = (unsigned)j;
    for (size_t i = 1; a[i - 1]; i++) {
        unsigned diagonal = row[0];
        row[0] = (unsigned)i;
        for (size_t j = 1; j <= n; j++) {
            unsigned up = row[j];
            row[j] = BH_MIN(BH_MIN(up, row[j - 1]) + 1, diagonal + (a[i - 1] != b[j - 1]));
            diagonal = up;
        }
    }
    return row[n];
}

bool bh_is_nearer(const char *word, const char *candidate, unsigned *best)
{
    const size_t n = strnlen(word, EDITS_MAX);
    unsigned away =
        n >= BH_NEAR && strncmp(word, candidate, n) == 0 ? BH_NEAR - 1 : bh_edits(word, candidate);

    if (away >= *best || away >= n)
        return false;
    *best = away;
    return true;
}

void bh_near_word(char out[static 64], const char *words, const char *s)
{
    *out = '\0';
    for (unsigned best = BH_NEAR; *words; words += strspn(words, " ")) {
        char word[32];
        snprintf(word, sizeof(word), "%.*s", (int)strcspn(words, " "), words);
        words += strcspn(words, " ");
        if (bh_is_nearer(s, word, &best))
            snprintf(out, 64, ", did you mean %s?", word);
    }
}

char *bh_strdup(const char *s)
{
    return bh_memdup(s, strlen(s) + 1);
}

char *bh_strndup(const char *s, size_t n)
{
    size_t len = strnlen(s, n);
    char *p = bh_malloc(len + 1);
    memcpy(p, s, len);
    p[len] = '\0';
    return p;
}

void *bh_memdup(const void *p, size_t n)
{
    void *q = bh_malloc(n);
    if (n)
        memcpy(q, p, n);
    return q;
}

char *bh_asprintf(const char *fmt, ...)
{
    va_list ap;
    char *p = NULL;

    va_start(ap, fmt);
    int n = vasprintf(&p, fmt, ap);
    va_end(ap);
    if (n < 0)
        out_of_memory(0);
    return p;
}

void bh_wipe(char *s)
{
    if (s)
        explicit_bzero(s, strlen(s));
    free(s);
}

void bh_freep(void *pp)
{
    /* memcpy, because *pp has a type of the caller's that this function does not know. */
    void *p;
    memcpy(&p, pp, sizeof(p));
    free(p);
    p = NULL;
    memcpy(pp, &p, sizeof(p));
}
