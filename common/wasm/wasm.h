/* SPDX-License-Identifier: Apache-2.0
 *
 * common/wasm/wasm.h - WebAssembly: a stranger's program, run with bounds
 *
 * A module is decoded, validated and translated once; instances of it have a memory, globals and
 * tables of their own. WebAssembly 1.0 with mutable globals, sign extension, saturating truncation,
 * bulk memory, multi-value and reference types (tables hold functions only). What is newer is
 * refused by name: "at 0x2a: SIMD is not supported".
 *
 * Owns:       a module owns a copy of its bytes; it outlives its instances.
 * Invariants: whatever the bytes are, nothing but the instance's own memory is read or written, and
 *             a call ends: by a result or by a trap.
 * Errors:     bh_wasm_load() and bh_wasm_new(): negative errno and a text that names the place in
 *             the file ("function 3 at 0x1f2: ...") or the import. Running: enum bh_wasm_trap.
 * Limits:     below; a module above one of the format's is refused by name.
 * Threads:    a module never changes, any thread may use it; an instance runs in one at a time.
 */
#ifndef BH_WASM_H
#define BH_WASM_H

#include "common/base/buf.h"
#include "common/wasm/trap.h"

#define BH_WASM_BYTES_MAX ((size_t)32 << 20) /* of a module's file */
#define BH_WASM_PAGE      ((size_t)64 << 10)
#define BH_WASM_NO_MAX    UINT32_MAX

/* ---- modules --------------------------------------------------------------------------------- */
struct bh_wasm_module;
/* -EINVAL: malformed, invalid, or uses what is not supported; -EFBIG: above a limit. */
int bh_wasm_load(const void *bytes, size_t n, struct bh_wasm_module **ret, struct bh_err *err);
void bh_wasm_unload(struct bh_wasm_module *m); /* NULL allowed */

enum bh_wasm_kind { BH_WASM_FUNC, BH_WASM_TABLE, BH_WASM_MEMORY, BH_WASM_GLOBAL };
/* Names are UTF-8 and else anything: not for a terminal as they are. */
struct bh_wasm_item {
    enum bh_wasm_kind kind;
    uint32_t index;       /* among those of its kind */
    struct bh_str module; /* of an import; else empty */
    struct bh_str name;
};
/* In the file's order. */
const struct bh_wasm_item *bh_wasm_imports(const struct bh_wasm_module *m, size_t *ret_n);
const struct bh_wasm_item *bh_wasm_exports(const struct bh_wasm_module *m, size_t *ret_n);
/* "func (i32,i64) -> (i32)", "memory 2 pages, at most 16", "table 5 funcref", "global mut i32". */
void bh_wasm_add_type(const struct bh_wasm_module *m, const struct bh_wasm_item *item,
                      struct bh_buf *b);
/* What the module needs beyond WebAssembly 1.0: "bulk memory, sign extension"; "" for nothing. */
void bh_wasm_add_features(const struct bh_wasm_module *m, struct bh_buf *b);
/* What translating made of the module's functions, in bytes. */
size_t bh_wasm_code_bytes(const struct bh_wasm_module *m);
/* ---- compiled ahead of time: a shared object of the module's code, by the digest of its file ----- */
#define BH_WASM_CACHE "/var/cache/berth/wasm" /* where they lie, but $BERTH_WASM_CACHE says it */
const char *bh_wasm_cache_dir(void);
/* The module as C that needs a C compiler and its library, and nothing else. -EFBIG. */
int bh_wasm_add_c(const struct bh_wasm_module *m, const char *sha256, struct bh_buf *b,
                  struct bh_err *err);
/* What a compiler may take. A file of C that does not end in its time is compiled again, with less
 * optimisation, and ends the whole where that does not either: so it takes at most twice that for each. */
struct bh_wasm_build {
    const char *cc;
    uint32_t part;         /* instructions of one file; 0: 20,000 */
    uint32_t cpu_s;        /* of CPU time; 0: 60 */
    uint32_t files, hasty; /* that were made, and those of them with less optimisation: returned */
};
/* Made with the compiler, which writes to our standard error; *ret_path is the caller's. -ETIMEDOUT. SIGINT, SIGTERM
 * and SIGHUP come once its files are gone; between two parts they end it (-EINTR). */
int bh_wasm_build(const struct bh_wasm_module *m, const char *sha256, const char *dir,
                  struct bh_wasm_build *how, char **ret_path, struct bh_err *err);
/* Instances that are made from now on run what lies in the cache's folder for it. 1: so it is; 0:
 * there is nothing; -EPERM, ...: it may not be used, and why (owner and mode as plugins' files have
 * to be; of another guest; made by another version). */
int bh_wasm_use_compiled(struct bh_wasm_module *m, const char *sha256, struct bh_err *err);
bool bh_wasm_is_compiled(const struct bh_wasm_module *m);
/* Does instantiating run a function of it (its start section)? */
bool bh_wasm_has_start(const struct bh_wasm_module *m);
/* Is there nothing in the function's body but the constant 0, or nothing at all? It need not be called then.
 * Of a function without parameters. */
bool bh_wasm_is_stub(const struct bh_wasm_module *m, uint32_t func);

/* Types of functions are a word here: a letter a value (i i32, I i64, f f32, F f64, r funcref,
 * x externref), parameters, ':', results: "iI:i".
 * The exported function of that name. -ENOENT; -EPROTOTYPE: it has another type than the one given;
 * type NULL: any. ret_type (NULL allowed): its own. */
int bh_wasm_find(const struct bh_wasm_module *m, const char *name, const char *type,
                 uint32_t *ret_func, const char **ret_type);

/* ---- instances ------------------------------------------------------------------------------- */
struct bh_wasm;
/* A function that the module may import. v: the arguments in their order, and then the results; a
 * float is its bits, 32 bits are in the lower half. false: the call of the module ends with a trap,
 * bh_wasm_fail() says why. It may not call into the instance. */
struct bh_wasm_host {
    const char *module, *name, *type; /* as above, numbers only */
    bool (*call)(struct bh_wasm *w, void *user, uint64_t *v);
};
struct bh_wasm_limits {
    uint32_t pages;    /* of memory */
    uint32_t elements; /* of all tables */
    uint32_t depth;    /* calls within calls */
    uint32_t slots;    /* values on the stack, 8 bytes each */
    uint64_t
        call_ns;    /* what one call may take by the clock, host functions included; 0: no limit */
    uint64_t steps; /* ... in steps of the interpreter, the same on every machine; 0: no limit */
};
#define BH_WASM_LIMITS                                                                             \
    {                                                                                              \
        .pages = 1024, .elements = 1 << 20, .depth = 10000, .slots = 1 << 18, .call_ns = 50000000  \
    }
/* The module with its segments in place. Its start function did not run yet: bh_wasm_start().
 * -ENOENT: an import is in none of the hosts; -EPROTOTYPE: it has another type there; -EOPNOTSUPP:
 * it is no function; -E2BIG: needs more memory or elements than the limits; -EFAULT: a segment does
 * not fit into memory or table; -ENOMEM. hosts stay the caller's, as long as the instance. */
int bh_wasm_new(const struct bh_wasm_module *m, const struct bh_wasm_host *hosts, size_t n_hosts,
                void *user, const struct bh_wasm_limits *limits, struct bh_wasm **ret,
                struct bh_err *err);
void bh_wasm_free(struct bh_wasm *w); /* NULL allowed */
/* Runs the start section's function, if there is one. */
enum bh_wasm_trap bh_wasm_start(struct bh_wasm *w);
/* v: the arguments, and then the results: it has room for the more of them. The function takes no
 * references. After a trap v is untouched, and the instance is as the trap left it. */
enum bh_wasm_trap bh_wasm_call(struct bh_wasm *w, uint32_t func, uint64_t *v);
/* One function about many texts, call after call, as if bh_wasm_call() were repeated. Its result is a pair
 * of 32 bits, as guests pack them: a code in the lower half, what it says (signed) in the upper. */
struct bh_wasm_questions {
    uint32_t func;              /* of type ":I" */
    const struct bh_str *texts; /* they stay where they are while it runs */
    const uint32_t *about;      /* n of them, of which bh_wasm_about() is the call's */
    uint32_t n;
    /* The host function that gives it: (buffer, limit) -> length, as bh_wasm_read_text(). Where it can be, it is
     * answered without being called. NULL: none. */
    bool (*reader)(struct bh_wasm *w, void *user, uint64_t *v);
    /* Between two calls, at least if the first one called another host function. NULL allowed. */
    void (*between)(void *user);
    int64_t *ret; /* n of what it says */
};
/* Until one traps, or says a code that is not 0: *ret_code then is that result, else 0. *ret_done: how many
 * were answered before. */
enum bh_wasm_trap bh_wasm_ask(struct bh_wasm *w, const struct bh_wasm_questions *q,
                              uint32_t *ret_done, uint64_t *ret_code);
/* For host functions: what the call is about; p NULL: it is none of those. */
struct bh_str bh_wasm_about(const struct bh_wasm *w);
/* The calls from now on end with BH_WASM_TIME, too, when they look at the clock after that moment
 * (bh_mono_ns()): what all of them may take together. 0: no moment. */
void bh_wasm_set_due(struct bh_wasm *w, uint64_t mono_ns);
/* Why the last call trapped, and where:
 *   wasm error: out of bounds memory access
 *   wasm stack trace:
 *   	main.inner(i32,i32) i32
 *   	main.$12()
 * with the names of the module's name section, at most 30 frames. */
void bh_wasm_add_trap(const struct bh_wasm *w, struct bh_buf *b);

/* From now on, before its first call: an interpreted instance does each call of a compiled one, too,
 * and is told by host functions what they told the compiled one. */
int bh_wasm_verify(struct bh_wasm *w, struct bh_err *err);
/* What the two did not do alike; NULL: nothing so far. As long as the instance. */
const char *bh_wasm_differs(const struct bh_wasm *w);
/* For host functions: false, with the text of the trap. */
bool bh_wasm_fail(struct bh_wasm *w, const char *fmt, ...) BH_PRINTF(2, 3);
/* n bytes of memory from `at` on; NULL when that is not all memory. Good until the guest runs. */
void *bh_wasm_memory(struct bh_wasm *w, uint32_t at, uint32_t n);
uint32_t bh_wasm_pages(const struct bh_wasm *w); /* as many as it has now */
#endif
