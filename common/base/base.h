/* SPDX-License-Identifier: Apache-2.0
 *
 * common/base/base.h - what every file of Berth may rely on
 *
 * Allocation: bh_malloc() and friends never return NULL. Berth is crash-only (ARCHITECTURE.md): a
 * process that cannot get ordinary memory writes one line and aborts, and its supervisor restarts
 * it, which is the same path as SIGKILL. Memory whose size an outsider controls comes from an arena
 * with a limit instead (arena.h) and can fail.
 *
 * Errors: three disjoint domains, never mixed in one return type: int = 0 or negative errno for
 * system failures; an enum for protocol outcomes; struct bh_status for scheduling verdicts.
 * Output parameters are called ret_x and are untouched on failure.
 */
#ifndef BH_BASE_H
#define BH_BASE_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define BH_PRINTF(f, a)                    __attribute__((format(printf, f, a)))
#define BH_CLEANUP(fn)                     __attribute__((cleanup(fn)))
#define BH_NORETURN                        __attribute__((noreturn))
#define BH_UNUSED                          __attribute__((unused))
#define BH_ARRAY_LEN(a)                    (sizeof(a) / sizeof((a)[0]))
#define BH_MIN(a, b)                       ((a) < (b) ? (a) : (b))
#define BH_MAX(a, b)                       ((a) > (b) ? (a) : (b))
#define BH_CMP(a, b)                       (((a) > (b)) - ((a) < (b))) /* for qsort() */
#define bh_container_of(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))
#define bh_likely(x)                       __builtin_expect(!!(x), 1)
#define bh_unlikely(x)                     __builtin_expect(!!(x), 0)
#define bh_streq(a, b)                     (strcmp((a), (b)) == 0)

/* bh_take_ptr(p): hand ownership over; p is NULL afterwards. */
#define bh_take_ptr(p)                                                                             \
    ({                                                                                             \
        __auto_type bh_taken_ = (p);                                                               \
        (p) = NULL;                                                                                \
        bh_taken_;                                                                                 \
    })

/* A fact that only our own bug can break. Stays on in release builds. External input is validated,
 * never asserted. */
#define bh_assert(e)                                                                               \
    do {                                                                                           \
        if (bh_unlikely(!(e)))                                                                     \
            bh_assert_fail(#e, __FILE__, __LINE__, __func__);                                      \
    } while (0)
BH_NORETURN void bh_assert_fail(const char *expr, const char *file, int line, const char *func);

/* Calls of the three below that the thread has made; a benchmark's differences. */
extern _Thread_local uint64_t bh_allocations;
void *bh_malloc(size_t n);
void *bh_calloc(size_t n, size_t size);
void *bh_realloc(void *p, size_t n);
/* Array growth: returns p with room for n items of size bytes; overflow of the product aborts. */
void *bh_reallocarray(void *p, size_t n, size_t size);
/* The same, with zeros from element `from` on. */
void *bh_regrown(void *p, size_t from, size_t n, size_t size);
/* Sorts n elements and keeps the first of equal ones. Returns how many are left. */
size_t bh_sort_unique(void *v, size_t n, size_t size, int (*compare)(const void *, const void *));
int bh_by_text(const void *a, const void *b); /* for an array of texts: compares as strcmp() */
/* Room for one more behind the n elements of the heap array v, which has room for cap. */
#define BH_GROW(v, n, cap)                                                                         \
    do {                                                                                           \
        if ((n) == (cap)) {                                                                        \
            (cap) = (cap) ? (cap)*2 : 8;                                                           \
            (v) = bh_reallocarray((v), (cap), sizeof *(v));                                        \
        }                                                                                          \
    } while (0)
char *bh_strdup(const char *s);
char *bh_strndup(const char *s, size_t n);
void *bh_memdup(const void *p, size_t n);
char *bh_asprintf(const char *fmt, ...) BH_PRINTF(1, 2);
void bh_freep(void *pp); /* for BH_CLEANUP on any pointer variable: frees *pp */
void bh_wipe(char *s);   /* frees a text that was a secret; NULL allowed */

/* Which of the words, with one space between them, s is; -1: none of them. */
int bh_word_at(const char *words, const char *s);
/* How many letters must be put in, taken out or changed to make a of b; of b the first 253 are
 * looked at. For "did you mean". */
unsigned bh_edits(const char *a, const char *b);
/* Whether candidate may be what word was meant to be, and nearer than *best, which it then replaces:
 * at most two edits, fewer than word has letters, or word begins it. Begin with *best = BH_NEAR. */
#define BH_NEAR 3u
bool bh_is_nearer(const char *word, const char *candidate, unsigned *best);
/* ", did you mean X?" for messages, of words with one space between them; "": none comes near. */
void bh_near_word(char out[static 64], const char *words, const char *s);

/* A borrowed byte string; not NUL-terminated unless its source says so. */
struct bh_str {
    const char *p;
    size_t n;
};
static inline int bh_hex_value(char c) /* of a digit; -1: it is none */
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return (c | 0x20) >= 'a' && (c | 0x20) <= 'f' ? (c | 0x20) - 'a' + 10 : -1;
}
#define BH_STR(lit) ((struct bh_str){(lit), sizeof(lit) - 1})
static inline struct bh_str bh_str_c(const char *s)
{
    return (struct bh_str){s, s ? strlen(s) : 0};
}
static inline bool bh_str_eq(struct bh_str a, struct bh_str b)
{
    return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}
static inline bool bh_str_eqc(struct bh_str a, const char *b)
{
    return bh_str_eq(a, bh_str_c(b));
}

/* ASCII, whatever the locale. */
static inline bool bh_is_digit(char c)
{
    return c >= '0' && c <= '9';
}
static inline void bh_lower(char *s)
{
    for (; *s; s++)
        if (*s >= 'A' && *s <= 'Z')
            *s = (char)(*s | 0x20);
}

/* Human-readable cause of a failure, filled by the function that knows it (config, kubeconfig,
 * decoding ...). One line, lower case, names the object and the field. Always NUL-terminated. */
struct bh_err {
    char msg[512];
};
/* Writes the message and returns rc, so that callers can `return bh_err_set(err, -EINVAL, ...)`.
 * err may be NULL. */
int bh_err_set(struct bh_err *err, int rc, const char *fmt, ...) BH_PRINTF(3, 4);
/* Puts "fmt: " before the present message. Returns rc. */
int bh_err_prefix(struct bh_err *err, int rc, const char *fmt, ...) BH_PRINTF(3, 4);
/* Descriptors or memory are used up (EMFILE, ENFILE, ENOMEM, ENOBUFS): says which limit it is and
 * how it is raised, and returns -e. 0: e is another error, err stays. */
int bh_err_lack(struct bh_err *err, int e);
/* Are n descriptors to be had? Libraries abort without a word where theirs are not. -EMFILE,
 * -ENFILE, -ENOMEM. */
int bh_err_spare_fds(unsigned n, struct bh_err *err);

/* Time. Every duration uses the monotonic or boot clock; the wall clock is only for timestamps that
 * appear in API objects. */
uint64_t bh_mono_ns(void);
uint64_t bh_boot_ns(void);
int64_t bh_wall_ns(void);

/* xoshiro256**; one named stream per purpose so that draws in one do not shift another. */
struct bh_rand {
    uint64_t s[4];
};
void bh_rand_seed(struct bh_rand *r, uint64_t seed);
uint64_t bh_rand_u64(struct bh_rand *r);
uint64_t bh_rand_below(struct bh_rand *r, uint64_t bound); /* uniform in [0, bound), bound > 0 */
double bh_rand_unit(struct bh_rand *r);                    /* [0, 1) */
uint64_t bh_rand_entropy(void);                            /* getrandom(2) */
void bh_uuid_text(const uint8_t b[static 16], char out[static 37]);
void bh_uuid4(char out[static 37]);
void bh_uuid4_rand(struct bh_rand *r, char out[static 37]); /* the same one for the same stream */

uint64_t bh_hash(const void *p, size_t n, uint64_t seed); /* XXH3_64 */

/* Whole small file (configuration, tokens, certificates), NUL-terminated, at most max bytes.
 * 0 or -errno; -EFBIG above max. Caller frees *ret_p. */
int bh_read_file(const char *path, size_t max, char **ret_p, size_t *ret_n);
int bh_read_fd(int fd, size_t max, char **ret_p, size_t *ret_n); /* from where it is to its end */
/* Writes path atomically (temporary file + rename). */
int bh_write_file(const char *path, const void *p, size_t n, unsigned mode);
/* Waits until what is at path, a file's content or a folder's names, would be there after a power
 * failure. 0 or -errno. */
int bh_sync_path(const char *path);
/* Gives an open file its first bytes for good, so that a mapping of them never raises SIGBUS (a
 * longer size alone is no memory). 0, -ENOSPC (also above a limit of sizes), -errno. */
int bh_reserve_file(int fd, uint64_t bytes);

/* Runtime directory of this instance (sockets, the snapshot's announcement): --runtime-dir, else
 * $BERTH_RUNTIME_DIR, else /run/berth. Creates it (0750) when missing. A relative one is completed
 * with the working directory: the path in out is always absolute. 0 or -errno. */
int bh_runtime_dir(const char *from_option, char out[static 108], struct bh_err *err);
/* The same for readers: a missing one is -ENOENT. */
int bh_runtime_dir_find(const char *from_option, char out[static 108], struct bh_err *err);

#ifndef BH_VERSION
#define BH_VERSION "0.1.0"
#endif
#ifdef __clang__
#define BH_COMPILER "clang"
#else
#define BH_COMPILER "gcc"
#endif
#ifdef __aarch64__
#define BH_ARCH "arm64" /* Go's names, as in the labels of kubernetes_build_info */
#else
#define BH_ARCH "amd64"
#endif

#include "common/base/banned.h"
#endif
