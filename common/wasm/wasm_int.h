/* SPDX-License-Identifier: Apache-2.0
 *
 * common/wasm/wasm_int.h - a module after decoding, the translated code, an instance
 *
 * A function's frame is an array of 64 bit slots: parameters, locals, then one slot for each depth
 * of the operand stack. An instruction names slots. 32 bit values have zeros above.
 * References are numbers: 0 is null, a function is its index + 1.
 */
#ifndef BH_WASM_INT_H
#define BH_WASM_INT_H

#include "common/base/arena.h"
#include "common/wasm/compiled.h"
#include "common/wasm/wasm.h"

#define MAX_INSTRUCTIONS (1u << 24)
#define MAX_SLOTS        65535u /* of a frame */
#define MAX_TABLES       1000u  /* an instruction has 16 bits for one */
#define MAX_PAGES        65536u
#define NONE             UINT32_MAX
#define BH_WASM_READER   "ii:i" /* the type of a host function that may be a reader (compiled.h) */

/* Value types by their code in the file. */
enum type { I32 = 0x7f, I64 = 0x7e, F32 = 0x7d, F64 = 0x7c, FUNCREF = 0x70, EXTERNREF = 0x6f };

/* What a module uses beyond 1.0, bits; bh_wasm_add_features() has the names. */
enum feature {
    SIGN_EXTENSION = 1,
    SATURATING = 2,
    BULK = 4,
    MULTI_VALUE = 8,
    REFERENCES = 16,
    MUTABLE_GLOBALS = 32
};

/* ---- reading --------------------------------------------------------------------------------- */
/* The first error stays; after it all reads are 0 and nothing is left. */
struct reader {
    const uint8_t *file, *p, *end;
    struct bh_err *err;
    uint32_t func; /* whose body is read; NONE */
    int rc;        /* 0 or the error */
};
/* at: in the file. */
void bh_wasm_bad(struct reader *r, int rc, const uint8_t *at, const char *fmt, ...) BH_PRINTF(4, 5);
uint8_t bh_wasm_u8(struct reader *r);
uint32_t bh_wasm_u32(struct reader *r);
int64_t bh_wasm_leb(struct reader *r, unsigned bits); /* signed */
uint64_t bh_wasm_fixed(struct reader *r, unsigned bytes);
/* How many things of at least one byte each follow. */
uint32_t bh_wasm_count(struct reader *r, uint32_t max, const char *what);
uint8_t bh_wasm_type(struct reader *r);
const char *bh_wasm_type_name(uint8_t type);

/* Text from a module, without control characters. */
void bh_wasm_add_name(struct bh_buf *b, struct bh_str name);
void bh_wasm_add_func_type(struct bh_buf *b, const char *word); /* "(i32) -> ()" */

/* ---- modules --------------------------------------------------------------------------------- */
struct func_type {
    const uint8_t *v; /* parameters, results */
    uint32_t params, results;
    uint32_t id;      /* the first type that is equal */
    const char *word; /* "ii:i" */
};
/* An instruction, or a row of br_table (`to` only), or the wide constant before it. */
struct ins {
    union {
        const void *run; /* the interpreter's label */
        uint64_t wide;
    };
    uint16_t d, a;
    union {
        uint32_t k;
        int32_t to; /* relative to this instruction */
        struct {
            uint16_t b, c;
        };
    };
};
struct func {
    uint32_t type;
    uint32_t code;  /* its first instruction; of an import: none */
    uint32_t slots; /* of its frame */
    uint32_t params;
    uint32_t zeros; /* locals behind the parameters */
    uint32_t
        cost; /* steps that a call is charged at once: at least what runs without a jump back */
    bool declared; /* may be named by ref.func */
    bool stub;     /* its body is the constant 0, or nothing */
    struct bh_str name;
};
struct limits {
    uint32_t min, max;
};
struct table {
    struct limits size;
};
struct constant {
    bool imported; /* value is the index of a global */
    uint64_t value;
};
struct global {
    uint8_t type;
    bool mutable;
    struct constant init;
};
struct segment {
    const uint8_t *bytes; /* of data */
    uint32_t *refs;       /* of elements */
    uint32_t n;
    bool active, declared; /* at once, never: then it is dropped when an instance begins */
    uint8_t type;          /* of elements */
    uint32_t table;
    struct constant offset;
};
struct bh_wasm_module {
    struct bh_arena arena;
    const uint8_t *file;
    size_t file_n;
    struct func_type *types;
    struct func *funcs;
    struct table *tables;
    struct global *globals;
    struct bh_wasm_item *imports, *exports;
    struct bh_wasm_item **by_name; /* exports */
    struct segment *elems, *datas;
    struct ins *code; /* [0] and [1]: where calls from outside return to */
    uint32_t n_types, n_funcs, n_imported_funcs, n_tables, n_memories, n_globals,
        n_imported_globals;
    uint32_t n_imports, n_exports, n_elems, n_datas, n_code, cap_code;
    uint32_t start;      /* NONE */
    uint32_t said_datas; /* the data count section's number; NONE */
    struct limits memory;
    unsigned features;
    struct bh_str name;
    const struct bh_wasm_compiled *compiled; /* NULL: it is interpreted */
};
/* Everything that one function body needs while it is translated. */
struct compiler;
struct compiler *bh_wasm_compiler_new(struct bh_wasm_module *m);
void bh_wasm_compiler_free(struct compiler *c);
/* Validates the body that r holds, and appends its code. */
void bh_wasm_compile(struct compiler *c, struct reader *r, uint32_t func);
/* The name section; what is wrong in it is left out. */
void bh_wasm_read_names(struct bh_wasm_module *m, const uint8_t *p, const uint8_t *end);

/* ---- instances ------------------------------------------------------------------------------- */
struct bh_wasm {
    struct bh_wasm_view x; /* first: what compiled code is given */
    const struct bh_wasm_module *m;
    bh_wasm_entry *const *compiled;    /* NULL: it is interpreted */
    uint64_t memory_cap;               /* address space that is kept for the memory */
    uint32_t n_elements;               /* of all tables */
    const struct bh_wasm_host **hosts; /* by function */
    struct bh_wasm_twin *twin;         /* NULL: it runs alone */
    bool noted; /* what a host function takes of the memory is written down, for the twin */
    struct bh_wasm_limits limits;
    uint64_t *stack;
    const struct ins **returns; /* limits.depth of them */
    /* the call that runs, or the last one */
    bool running;
    uint64_t until_ns; /* 0: the clock was not looked at yet */
    uint64_t due_ns;   /* bh_wasm_set_due() */
    uint64_t steps;    /* left */
    enum bh_wasm_trap trap;
    const struct ins *at;        /* where it trapped */
    const struct ins **returned; /* end of the returns at that time */
    struct bh_buf why;           /* what it said of its failure */
};
/* Looks at the clock, and gives steps until the next look. false: the time is over. */
bool bh_wasm_more_time(struct bh_wasm *w, int64_t *steps);
/* Runs the function whose arguments are at w->stack. With w NULL: the labels, by operation. */
enum bh_wasm_trap bh_wasm_run(struct bh_wasm *w, uint32_t func, const void *const **ret_labels);
/* Bulk operations; false is a trap. */
bool bh_wasm_memory_init(struct bh_wasm *w, uint32_t data, uint32_t to, uint32_t from, uint32_t n);
bool bh_wasm_table_init(struct bh_wasm *w, uint32_t table, uint32_t elem, uint32_t to,
                        uint32_t from, uint32_t n);
bool bh_wasm_table_copy(struct bh_wasm *w, uint32_t table, uint32_t other, uint32_t to,
                        uint32_t from, uint32_t n);
bool bh_wasm_table_fill(struct bh_wasm *w, uint32_t table, uint32_t at, uint32_t ref, uint32_t n);
uint32_t bh_wasm_table_grow(struct bh_wasm *w, uint32_t table, uint32_t n, uint32_t ref);
uint32_t bh_wasm_memory_grow(struct bh_wasm *w, uint32_t pages);

/* ---- compiled ahead of time -------------------------------------------------------------------- */
/* The C of the functions from ... to - 1, as a file that is linked with those of the others, or of all as one
 * that needs none. The last one has the table. -EFBIG. */
int bh_wasm_add_part(const struct bh_wasm_module *m, const char *sha256, uint32_t from, uint32_t to,
                     struct bh_buf *b, struct bh_err *err);
/* Where the part ends that begins at `from` and has about so many instructions. */
uint32_t bh_wasm_part(const struct bh_wasm_module *m, uint32_t from, uint32_t most);
/* The digest of everything that a compiled guest and the program that runs it have to agree in. */
void bh_wasm_made_with(char out[static 65]);
extern const struct bh_wasm_help bh_wasm_help;

/* ---- header.c: what a compiled guest's code is ----------------------------------------------- */
#define BH_WASM_HEADER_BYTES (18 + (10 + 65) + (6 + 65) + (5 + 65) + (6 + 11))
#define BH_WASM_CODE_MAX     ((uint64_t)1 << 30) /* of a shared object, as bh_owned_open() has it */
struct bh_wasm_header {
    char made_with[65], guest[65], code[65]; /* SHA-256 */
    uint64_t bytes;                          /* at most BH_WASM_CODE_MAX */
};
void bh_wasm_header_write(const struct bh_wasm_header *h,
                          char out[static BH_WASM_HEADER_BYTES + 1]);
/* p: n bytes, and a NUL behind them. 0 or -EINVAL. */
int bh_wasm_header_read(const char *p, size_t n, struct bh_wasm_header *ret);
/* compiled.c: writes the header of the shared object at path, which a guest of that digest was made into. Both are on
 * the disk then. */
int bh_wasm_seal(const char *path, const char *sha256, struct bh_err *err);

/* ---- twin.c: compiled and interpreted side by side ------------------------------------------- */
enum bh_wasm_trap bh_wasm_call_once(struct bh_wasm *w, uint32_t func, uint64_t *v);
enum bh_wasm_trap bh_wasm_call_twice(struct bh_wasm *w, uint32_t func, uint64_t *v);
void bh_wasm_note(struct bh_wasm *w, uint32_t at, uint32_t n);
void bh_wasm_twin_free(struct bh_wasm_twin *t); /* NULL allowed */

/* ---- operations ------------------------------------------------------------------------------ */
/* Numeric ones, loads and stores have the number of their opcode; saturating truncations follow
 * at SATURATE. Comparisons and integer arithmetic have a form with a constant (k, signed) at
 * + WITH_K; comparisons two more that jump: slots d and a, or slot d and the constant a (signed). */
enum operation {
    OP_UNREACHABLE,
    OP_LEAVE, /* back to the caller outside */
    OP_COPY,
    OP_COPY_MANY,
    OP_CONST_U, /* 32 bits, zeros above */
    OP_CONST_S, /* 32 bits, sign above */
    OP_CONST_WIDE,
    OP_SELECT,
    OP_GLOBAL_GET,
    OP_GLOBAL_SET,
    OP_JUMP,
    OP_JUMP_IF,
    OP_JUMP_UNLESS,
    OP_JUMP_TABLE,
    OP_RETURN,
    OP_RETURN_ONE,
    OP_RETURN_MANY,
    OP_CALL,
    OP_CALL_HOST,
    OP_CALL_INDIRECT,
    OP_MEMORY_SIZE,
    OP_MEMORY_GROW,
    OP_MEMORY_INIT,
    OP_DATA_DROP,
    OP_MEMORY_COPY,
    OP_MEMORY_FILL,
    OP_TABLE_INIT,
    OP_ELEM_DROP,
    OP_TABLE_COPY,
    OP_TABLE_GET,
    OP_TABLE_SET,
    OP_TABLE_GROW,
    OP_TABLE_SIZE,
    OP_TABLE_FILL,
    /* 0x28 ... 0xc4: as in the file */
    SATURATE = 0xc8,
    WITH_K = 0x100,
    COMPARE_JUMP = 0x200,
    COMPARE_JUMP_K = 0x300,
    OPERATIONS = 0x400
};
#endif
