/* SPDX-License-Identifier: Apache-2.0
 *
 * common/cel/cel_int.h - what the files of this folder share
 *
 * A program is an array of nodes, children before parents, the last node being the result. Every
 * node carries its static type; a node that passed check.c has operands its operator may accept,
 * unless one of them is dyn, which is decided while evaluating.
 *
 * Values are 16 bytes and refer to bytes of the program, of the device or of the scratch arena;
 * they never own anything. An error is a value of kind CEL_ERROR (its text is the string), so that
 * && and || can absorb it. Running over the cost limit is not a value: it sets cel_eval.exhausted,
 * and every loop ends when it sees it.
 */
#ifndef BH_CEL_INT_H
#define BH_CEL_INT_H

#include <errno.h>

#include "common/base/arena.h"
#include "common/k8s/quantity.h"
#include "common/base/utf8.h"
#include "common/regex/regex.h"
#include "common/cel/cel.h"

enum {
    CEL_TEXT_MAX = 10 * 1024, /* bytes of an expression, as upstream's validation */
    CEL_NESTING_MAX = 64,     /* brackets, calls and operators that wait for an operand */
    CEL_DEPTH_MAX = 256,      /* of the tree, which a long chain of + makes deep without nesting */
    CEL_VARS_MAX = 128,       /* two for each level of nesting */
    CEL_WORK_LIMIT = 5000000, /* half a second, a hundred MB */
    CEL_ARGS_MAX = 4,         /* of a function; literals have no limit of their own */
};

enum cel_kind {
    CEL_ERROR,
    CEL_NULL,
    CEL_BOOL,
    CEL_INT,
    CEL_UINT,
    CEL_DOUBLE,
    CEL_STRING,
    CEL_BYTES,
    CEL_LIST,
    CEL_MAP,
    CEL_QUANTITY,
    CEL_SEMVER,
    CEL_IP,
    CEL_CIDR,
    CEL_URL,
    CEL_FORMAT, /* i: which one */
    CEL_TYPE,
    CEL_OPTIONAL,
    CEL_TIMESTAMP, /* i: nanoseconds since 1970 */
    CEL_DURATION,  /* i: nanoseconds */
    CEL_DEVICE,
    CEL_OBJECT, /* static only: a map whose members the schema names */
    CEL_LAZY,   /* of a slot only: i is the node that gives it its value, n is 1 when that is an
                 optional whose value is meant */
    CEL_DYN,    /* static only: known while evaluating */
};

/* Sets of kinds: of numbers, of a map's keys, of what has an order. */
enum {
    CEL_NUMBERS = 1u << CEL_INT | 1u << CEL_UINT | 1u << CEL_DOUBLE,
    CEL_KEYS = CEL_NUMBERS | 1u << CEL_BOOL | 1u << CEL_STRING,
    CEL_ORDERED = CEL_KEYS | 1u << CEL_BYTES | 1u << CEL_TIMESTAMP | 1u << CEL_DURATION,
};
static inline bool cel_in(uint32_t kind, uint32_t set)
{
    return set >> kind & 1;
}
/* What a sum or difference of times and spans of time is; CEL_ERROR: there is none. */
static inline enum cel_kind cel_time_sum(bool minus, uint32_t a, uint32_t b)
{
    if (b == CEL_DURATION && (a == CEL_DURATION || a == CEL_TIMESTAMP))
        return (enum cel_kind)a;
    if (b == CEL_TIMESTAMP && a == (minus ? CEL_TIMESTAMP : CEL_DURATION))
        return minus ? CEL_DURATION : CEL_TIMESTAMP;
    return CEL_ERROR;
}

struct cel_semver {
    uint64_t major, minor, patch;
    struct bh_str pre; /* "" = release; build metadata is dropped, it never decides */
};
struct cel_net {
    uint8_t addr[16]; /* the first 4 of an IPv4 address */
    uint8_t n;        /* 4 or 16 */
    uint8_t bits;     /* of a CIDR's prefix */
};
struct cel_url {
    const char *text;                         /* whole, in one form: equal URLs have equal texts */
    const char *scheme, *host, *path, *query; /* path: escaped */
};
struct cel_value {
    uint32_t kind; /* enum cel_kind */
    uint32_t n;    /* bytes of a string, items of a list, 1 for a present optional */
    union {
        bool b;
        int64_t i; /* also enum cel_kind of a CEL_TYPE */
        uint64_t u;
        double d;
        const char *s; /* not NUL-terminated; of CEL_ERROR it is */
        const struct cel_value *list;
        const struct cel_map *map;
        const bh_nano *q;
        const struct cel_semver *v;
        const struct cel_net *net;
        const struct cel_url *url;
        const struct cel_value *opt;
        const struct bh_cel_device *dev;
    };
};
struct cel_entry {
    struct cel_value key, value;
};
struct cel_map {
    const struct cel_entry *entry;
    uint32_t n;
    bool absent_is_empty; /* looking up an unknown key gives an empty map: domains of a device */
};

/* Static type. elem: of a list, map value or optional; key: of a map. schema: of an object; NULL =
 * its metadata. root: kind, apiVersion and metadata are there, too. */
struct cel_type {
    uint8_t kind;
    const struct cel_type *elem, *key;
    const struct bh_json *schema;
    bool root;
};
/* Of kind CEL_DYN: an attribute's value, which upstream keeps apart from dyn. */
extern const struct cel_type bh_cel_any;
extern const struct cel_type bh_cel_types[CEL_DYN + 1]; /* the ones without parameters, by kind */

enum cel_op {
    OP_CONST,
    OP_VAR,    /* slot */
    OP_DEVICE, /* the variable device */
    OP_SELECT, /* arg[0].name */
    OP_HAS,    /* has(arg[0].name) */
    OP_OPT_SELECT,
    OP_INDEX,
    OP_OPT_INDEX,
    OP_AND, /* any number of operands, so that long chains stay shallow */
    OP_OR,
    OP_NOT,
    OP_NEG,
    OP_COND,
    OP_EQ,
    OP_NE,
    OP_LT,
    OP_LE,
    OP_GT,
    OP_GE,
    OP_IN,
    OP_ADD,
    OP_SUB,
    OP_MUL,
    OP_DIV,
    OP_MOD,
    OP_LIST,
    OP_MAP,   /* key, value, key, value ... */
    OP_CALL,  /* func */
    OP_BIND,  /* arg[0] into slot when it is used, then arg[1] */
    OP_ENTRY, /* of a literal: arg[0] is an optional, which leaves nothing when it is empty */
    OP_ALL,   /* the macros: arg[0] = range, slot = variable, arg[1] = condition */
    OP_EXISTS,
    OP_EXISTS_ONE,
    OP_FILTER,
    OP_MAP_MACRO,   /* arg[1] = transform, arg[2] = condition when there are three */
    OP_OPT_MAP,     /* the result is wrapped */
    OP_OPT_FLATMAP, /* the result is an optional already */
    OP_TO_LIST,     /* transformList: as OP_MAP_MACRO with two variables */
    OP_TO_MAP,      /* transformMap: the keys stay */
    OP_TO_ENTRIES,  /* transformMapEntry: arg[1] is a map */
    OP_SORT_BY,     /* arg[1] is the key */
};
struct cel_node {
    uint8_t op;
    bool two_vars; /* a macro with (index or key, value): slot and slot + 1 */
    bool many;     /* a call whose overload shows while evaluating */
    bool no_root;  /* the root of a chain of members that costs nothing: see eval.c */
    uint16_t slot;
    uint16_t depth;
    uint32_t pos;   /* in the text, for messages */
    uint32_t first; /* of its operands in cel_program.arg */
    uint32_t n_args;
    const struct cel_type *type;
    union {
        struct cel_value value; /* OP_CONST; folded ones as well */
        struct bh_str name;     /* OP_SELECT, OP_HAS, OP_OPT_SELECT */
        struct {
            const struct cel_func *func;  /* OP_CALL: first row of its name */
            const struct bh_regex *regex; /* a pattern known while compiling */
        } call;
    };
};
struct bh_cel_program {
    struct bh_arena arena;
    const char *text;
    size_t text_n;
    struct cel_node *node;
    uint32_t *arg;
    uint32_t n_nodes, n_args, cap_nodes, cap_args;
    uint32_t root;
    uint16_t n_slots;
    /* Of a rule: self and oldSelf are the first two slots. */
    const struct cel_type *self;
    unsigned flags;
    bool uses_old;
};

struct cel_eval {
    const struct bh_cel_program *prog;
    struct bh_arena *arena;
    struct cel_value device[4]; /* driver, attributes, capacity, allowMultipleAllocations */
    struct cel_value *slot;
    const struct cel_node *node; /* the call being made */
    int how;                     /* of its row, see cel_func */
    uint64_t cost;               /* as upstream counts */
    uint64_t work;               /* what is done here beyond it, see bh_cel_work() */
    bool exhausted;
};

/* One overload. `args` has a letter for each operand, the receiver first when member; see
 * functions.c. Called with as many operands of those kinds, none of them an error. */
typedef struct cel_value cel_fn(struct cel_eval *e, const struct cel_value *arg);
struct cel_func {
    const char *name;
    bool member;
    const char *args;
    char ret;
    char cost;
    cel_fn *fn;
    int how; /* which of several things fn does; CEL_TEST: whether it can be done without an error */
};
enum { CEL_TEST = 1000 };

/* ---- lexer ---- */
enum cel_token {
    TOK_END,
    TOK_BAD,
    TOK_IDENT,
    TOK_INT,
    TOK_UINT,
    TOK_DOUBLE,
    TOK_STRING,
    TOK_BYTES,
    TOK_AND,
    TOK_OR,
    TOK_EQ,
    TOK_NE,
    TOK_LE,
    TOK_GE,
    TOK_CHAR, /* punctuation of one character: cel_lexer.ch */
};
struct cel_lexer {
    const char *text;
    size_t n, at;
    struct bh_arena *arena;
    char *pool; /* room for the rest of the text's strings */
    enum cel_token tok;
    char ch;
    size_t pos, end;        /* of the token in the text */
    struct cel_value value; /* of a literal */
    uint64_t magnitude;     /* of TOK_INT, so that -9223372036854775808 can be written */
    const char *why;        /* of TOK_BAD */
};
void bh_cel_lex(struct cel_lexer *l); /* next token */

/* ---- parser and checker ---- */
struct cel_parser {
    struct bh_cel_program *p;
    struct cel_lexer lex;
    struct bh_err *err;
    int rc;
    unsigned nesting;
    unsigned n_vars;
    unsigned in_format; /* calls of format() around this place: their lists may be mixed */
    struct {
        struct bh_str name;
        const struct cel_type *type;
        uint16_t slot;
    } var[CEL_VARS_MAX];
};
#define CEL_NONE UINT32_MAX /* instead of a node: failed, err is set */
int bh_cel_parse(struct bh_cel_program *p, struct bh_err *err);
/* Records the first failure only. Returns CEL_NONE. */
uint32_t bh_cel_fail(struct cel_parser *ps, size_t pos, const char *fmt, ...) BH_PRINTF(3, 4);
/* Finds the node's static type from those of its operands; false = failed. */
bool bh_cel_check(struct cel_parser *ps, struct cel_node *n);
bool bh_cel_check_call(struct cel_parser *ps, struct cel_node *n, struct bh_str name, bool member);
/* Does a literal list fit the literal text that is formatted with it? */
bool bh_cel_check_format(struct cel_parser *ps, const struct cel_node *call);
extern const char *const bh_cel_op_name[]; /* of the operators, "_+_" */
/* What iterating over a value of this type yields; NULL = it cannot be iterated over. For two
 * variables *ret_first is the type of the index or key. */
const struct cel_type *bh_cel_iter_type(const struct cel_type *t, bool two,
                                        const struct cel_type **ret_first);
const char *bh_cel_type_text(struct cel_parser *ps, const struct cel_type *t);

/* ---- values ---- */
struct cel_value bh_cel_error(struct cel_eval *e, const char *fmt, ...) BH_PRINTF(2, 3);
struct cel_value bh_cel_no_overload(struct cel_eval *e, const char *name,
                                    const struct cel_value *arg, unsigned n);
struct cel_value bh_cel_take_text(struct cel_eval *e, struct bh_buf *b); /* and frees it */
const char *bh_cel_kind_name(uint32_t kind);                             /* as type() prints it */
struct cel_value bh_cel_type_name(const struct cel_value *type);
/* With quotes and the escapes of CEL, or of Go's %q: those of what cannot be printed, too. */
void bh_cel_add_quoted(struct bh_buf *b, struct bh_str s, bool go);
/* Equality never fails: values of different kinds differ. Charges for what it walks over. */
bool bh_cel_equal(struct cel_eval *e, const struct cel_value *a, const struct cel_value *b);
/* Is comparing the two an error? */
bool bh_cel_no_equality(const struct cel_value *a, const struct cel_value *b);
/* -1, 0, 1; 2 = not comparable (kinds that have no order together, NaN). */
int bh_cel_compare(const struct cel_value *a, const struct cel_value *b);
/* The same; long texts are work. */
int bh_cel_compare_paid(struct cel_eval *e, const struct cel_value *a, const struct cel_value *b);
const struct cel_value *bh_cel_map_find(struct cel_eval *e, const struct cel_map *m,
                                        const struct cel_value *key);
size_t bh_cel_size(const struct cel_value *v); /* as size(); 1 for what has none */
/* The same; that a text's characters are counted is work. */
size_t bh_cel_size_paid(struct cel_eval *e, const struct cel_value *v);
uint64_t bh_cel_tenths(double n); /* of n, rounded up */
/* n cost units; false = the limit is reached and the evaluation must end. */
bool bh_cel_charge(struct cel_eval *e, uint64_t n);
/* The same for what upstream does not charge but takes time or memory here. The limit is so far
 * away that only an expression made for it gets there. */
bool bh_cel_work(struct cel_eval *e, uint64_t n);
/* Does the node stand for a chain of members, as upstream's planner sees it? */
bool bh_cel_is_attribute(const struct cel_node *n);
struct cel_value bh_cel_eval(struct cel_eval *e, uint32_t node);
struct cel_value bh_cel_binary(struct cel_eval *e, enum cel_op op, const struct cel_value *a,
                               const struct cel_value *b);
/* What an operator with two operands costs; they may be errors. */
uint64_t bh_cel_binary_cost(struct cel_eval *e, const struct cel_node *n, const struct cel_value *a,
                            const struct cel_value *b);
struct cel_value bh_cel_negate(struct cel_eval *e, const struct cel_value *a);
/* Every macro that loops. */
struct cel_value bh_cel_comprehension(struct cel_eval *e, const struct cel_node *n);
struct cel_value bh_cel_call(struct cel_eval *e, const struct cel_node *n);

static inline struct cel_value cel_bool(bool b)
{
    return (struct cel_value){.kind = CEL_BOOL, .b = b};
}
static inline struct cel_value cel_int(int64_t i)
{
    return (struct cel_value){.kind = CEL_INT, .i = i};
}
static inline struct cel_value cel_str(const char *s, size_t n)
{
    return (struct cel_value){.kind = CEL_STRING, .n = (uint32_t)n, .s = s};
}
static inline struct cel_value cel_list(const struct cel_value *v, size_t n)
{
    return (struct cel_value){.kind = CEL_LIST, .n = (uint32_t)n, .list = v};
}
static inline struct cel_value cel_optional(const struct cel_value *v)
{
    return (struct cel_value){.kind = CEL_OPTIONAL, .n = v ? 1 : 0, .opt = v};
}

/* ---- device ---- */
/* Fills e->device. 0 or -EINVAL with the attribute's name in err. */
int bh_cel_bind_device(struct cel_eval *e, const struct bh_cel_device *d, struct bh_err *err);

/* ---- rules ---- */
/* NULL: the schema says nothing that could be typed. */
const struct cel_type *bh_cel_schema_type(struct bh_arena *a, const struct bh_json *schema,
                                          bool root);
/* NULL: the object has no such field. *name becomes the one that the value has. */
const struct cel_type *bh_cel_field_type(struct bh_arena *a, const struct cel_type *t,
                                         struct bh_str *name);

/* ---- costs before anything runs (cost.c), and sizes by a schema's bounds (sizes.c) ---- */
enum { CEL_UNFOLDED = 1 << 16 }; /* beside BH_CEL_*: constants stay as they are written */
enum cel_step_kind {
    CEL_STEP_FIELD,
    CEL_STEP_VALUES, /* a list's items, a map's values */
    CEL_STEP_KEYS,
    CEL_STEP_INDICES,
};
struct cel_step {
    enum cel_step_kind what;
    const char *name; /* of a field */
};
struct cel_sized { /* a place of a schema */
    const struct bh_json *schema;
    bool root, meta, key; /* an object with kind and metadata; its metadata; a map's key */
};
/* False: there is no such place. */
bool bh_cel_sized_step(struct cel_sized *v, const struct cel_step *step);
int64_t bh_cel_max_elements(const struct cel_sized *v); /* as size() counts, text in bytes */
/* Of an unfolded program, whose self is as the schema says. */
uint64_t bh_cel_estimate(const struct bh_cel_program *p, const struct bh_json *schema);

/* ---- libraries: rows of the table in functions.c ---- */
extern const struct cel_func bh_cel_funcs[];
extern const size_t bh_cel_n_funcs;
bool bh_cel_func_accepts(char letter, uint32_t kind);
uint32_t bh_cel_letter_kind(char letter); /* CEL_DYN when it is none or several */
/* May it have n operands? Then letters has those of its operands. */
bool bh_cel_func_takes(const struct cel_func *f, uint32_t n, char letters[static CEL_ARGS_MAX]);
bool bh_cel_func_accepts_item(char letter, uint32_t kind);
/* NULL or why not. The strings of *ret point into s or the arena. */
const char *bh_cel_semver_parse(struct bh_arena *a, struct bh_str s, bool normalize,
                                struct cel_semver *ret);
int bh_cel_semver_compare(const struct cel_semver *a, const struct cel_semver *b);

/* What the rows refer to. What depends on the length of an operand is charged by the dispatcher. */
/* convert.c */
cel_fn bh_cel_size_fn, bh_cel_int, bh_cel_uint, bh_cel_double, bh_cel_string, bh_cel_to_bool,
    bh_cel_bytes, bh_cel_dyn, bh_cel_type, bh_cel_time, bh_cel_time_part, bh_cel_time_part_at;
/* strings.c */
cel_fn bh_cel_contains, bh_cel_starts_with, bh_cel_ends_with, bh_cel_map_ascii, bh_cel_trim,
    bh_cel_char_at, bh_cel_index_of, bh_cel_last_index_of, bh_cel_substring, bh_cel_split,
    bh_cel_replace, bh_cel_join, bh_cel_quote, bh_cel_format, bh_cel_matches, bh_cel_find,
    bh_cel_find_all;
/* lists.c */
cel_fn bh_cel_sets, bh_cel_includes, bh_cel_is_sorted, bh_cel_sum, bh_cel_extreme,
    bh_cel_list_index_of, bh_cel_optional_of, bh_cel_optional_none, bh_cel_optional_non_zero,
    bh_cel_has_value, bh_cel_value, bh_cel_slice, bh_cel_flatten, bh_cel_range, bh_cel_distinct,
    bh_cel_reverse, bh_cel_sort, bh_cel_end_of;
/* Items of the list in the order of their keys. */
struct cel_value bh_cel_sort_by(struct cel_eval *e, const struct cel_value *list,
                                const struct cel_value *keys);
/* What it costs to compare each item with each. */
uint64_t bh_cel_self_compare_cost(const struct cel_value *list);
/* net.c */
cel_fn bh_cel_ip, bh_cel_cidr_ip, bh_cel_ip_is_canonical, bh_cel_family, bh_cel_net_is, bh_cel_cidr,
    bh_cel_contains_ip, bh_cel_contains_cidr, bh_cel_prefix_length, bh_cel_masked,
    bh_cel_net_string;
enum {
    NET_UNSPECIFIED,
    NET_LOOPBACK,
    NET_LINK_LOCAL_MULTICAST,
    NET_LINK_LOCAL_UNICAST,
    NET_GLOBAL_UNICAST
};
/* An IP address, perhaps with a zone; false with netip's reason. */
bool bh_cel_parse_ip(const char *text, struct cel_net *ret, struct bh_buf *why);
/* url.c */
cel_fn bh_cel_url, bh_cel_url_part, bh_cel_url_query;
enum { URL_SCHEME, URL_HOST, URL_HOSTNAME, URL_PORT, URL_PATH };
/* False with Go's error in why. */
bool bh_cel_parse_url(struct bh_arena *a, const struct cel_value *v, struct cel_url *ret,
                      struct bh_buf *why);
/* named.c */
cel_fn bh_cel_format_of, bh_cel_format_named, bh_cel_validate;
uint64_t bh_cel_validate_cost(int64_t format, size_t size);
/* quantity.c */
cel_fn bh_cel_quantity, bh_cel_quantity_sign, bh_cel_quantity_float, bh_cel_quantity_int,
    bh_cel_quantity_sum;
/* semver.c */
cel_fn bh_cel_semver, bh_cel_semver_part, bh_cel_order; /* bh_cel_order: also of quantities */
#endif
