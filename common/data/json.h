/* SPDX-License-Identifier: Apache-2.0
 *
 * common/data/json.h - JSON: strict reader into an arena tree, writer, stream splitter
 *
 * The tree is also what YAML becomes (yaml.h) and what the simulator patches (patch.h). Objects
 * keep the order of their members; a duplicate key is an error in strict reading (message
 * `duplicate field "x"`), last wins otherwise. Numbers are kept as text: int64 stays exact, 1.0
 * stays 1.0. Depth is limited to BH_JSON_MAX_DEPTH, strings are checked UTF-8. A NUL in a string is an
 * error, since most readers of a tree take C strings; with BH_JSON_NUL a string may hold NUL (n counts
 * it), a member name never.
 * Ownership: everything lives in the arena given; a tree is freed by resetting it.
 */
#ifndef BH_JSON_H
#define BH_JSON_H

#include "common/base/arena.h"
#include "common/base/buf.h"

#define BH_JSON_MAX_DEPTH 128

enum bh_json_type {
    BH_JSON_NULL,
    BH_JSON_BOOL,
    BH_JSON_NUMBER,
    BH_JSON_STRING,
    BH_JSON_ARRAY,
    BH_JSON_OBJECT
};
struct bh_json {
    enum bh_json_type type;
    uint32_t line;        /* 1-based line of the source, 0 when made by code */
    struct bh_str key;    /* name when a member of an object; NUL-terminated */
    struct bh_json *next; /* next sibling */
    union {
        bool b;
        struct bh_str s; /* string, or number text; NUL-terminated */
        struct {
            struct bh_json *first, *last;
            size_t n;
        } c; /* array, object */
    };
};

/* Stands for a text that holds NUL where C strings are read: U+001A SUBSTITUTE. */
#define BH_NUL_TEXT "\x1a"

enum bh_json_flags {
    BH_JSON_STRICT = 1, /* duplicate keys are errors */
    BH_JSON_FIRST = 2,  /* what follows the first value is not looked at */
    BH_JSON_NUL = 8,    /* for objects of the API: annotations and values may hold NUL */
    BH_JSON_REPEATS = 4 /* repeated members all stay, for a caller that tells each of them */
};
/* 0 or -EINVAL (err: "line 3, column 7: ...") or -E2BIG (arena limit, depth). Trailing bytes other
 * than white space are an error, unless told otherwise. */
int bh_json_parse(struct bh_arena *a, const char *p, size_t n, unsigned flags,
                  struct bh_json **ret_v, struct bh_err *err);

/* Look-up; NULL-tolerant (a NULL v or wrong type gives NULL / the default). */
struct bh_json *bh_json_get(const struct bh_json *obj, const char *key);
struct bh_json *bh_json_path(const struct bh_json *v, const char *dotted); /* "spec.nodeName" */
struct bh_json *bh_json_at(const struct bh_json *arr, size_t i);
/* A string's text; NULL: not a string; BH_NUL_TEXT: it holds NUL, so that it is equal to no name. */
const char *bh_json_cstr(const struct bh_json *v);
const char *bh_json_get_str(const struct bh_json *obj, const char *key); /* or NULL */
bool bh_json_i64(const struct bh_json *v, int64_t *ret); /* integral number in range */
const char *bh_json_get_text(const struct bh_json *obj, const char *key);     /* or "" */
struct bh_json *bh_json_get_list(const struct bh_json *obj, const char *key); /* array or NULL */
int64_t bh_json_get_i64(const struct bh_json *obj, const char *key, int64_t dflt);
bool bh_json_get_bool(const struct bh_json *obj, const char *key, bool dflt);
bool bh_json_equal(const struct bh_json *a, const struct bh_json *b); /* object order ignored */
/* Children of an array or object; of anything else, and of NULL, there are none. */
static inline struct bh_json *bh_json_first(const struct bh_json *v)
{
    return v && (v->type == BH_JSON_ARRAY || v->type == BH_JSON_OBJECT) ? v->c.first : NULL;
}
#define bh_json_each(child, parent)                                                                \
    for (struct bh_json *child = bh_json_first(parent); child; child = child->next)

/* Building. Keys and strings are copied into the arena. */
struct bh_json *bh_json_new(struct bh_arena *a, enum bh_json_type t);
struct bh_json *bh_json_new_str(struct bh_arena *a, const char *s, size_t n);
struct bh_json *bh_json_new_cstr(struct bh_arena *a, const char *s);
struct bh_json *bh_json_new_i64(struct bh_arena *a, int64_t v);
struct bh_json *bh_json_new_bool(struct bh_arena *a, bool b);
/* Sets or replaces a member (in place); v must not be linked anywhere else. Returns v. */
struct bh_json *bh_json_set(struct bh_arena *a, struct bh_json *obj, const char *key,
                            struct bh_json *v);
struct bh_json *bh_json_set_str(struct bh_arena *a, struct bh_json *obj, const char *key,
                                const char *s);
/* Only when there is something to say: NULL and "" set nothing. */
void bh_json_set_text(struct bh_arena *a, struct bh_json *obj, const char *key, const char *s);
struct bh_json *bh_json_set_i64(struct bh_arena *a, struct bh_json *obj, const char *key,
                                int64_t v);
struct bh_json *bh_json_set_bool(struct bh_arena *a, struct bh_json *obj, const char *key, bool b);
/* The member's object, created when absent or not an object; the member's list. */
struct bh_json *bh_json_obj_at(struct bh_arena *a, struct bh_json *obj, const char *key);
struct bh_json *bh_json_list_at(struct bh_arena *a, struct bh_json *obj, const char *key);
bool bh_json_unset(struct bh_json *obj, const char *key); /* true when it was there */
/* Without children. */
static inline void bh_json_clear(struct bh_json *container)
{
    container->c.first = container->c.last = NULL;
    container->c.n = 0;
}
/* Unsets them all: "uid resourceVersion". */
void bh_json_drop(struct bh_json *obj, const char *names);
void bh_json_push(struct bh_json *arr, struct bh_json *v);
bool bh_json_remove(struct bh_json *container, struct bh_json *child);
struct bh_json *bh_json_clone(struct bh_arena *a, const struct bh_json *v);

/* Members by a template that looks like what it makes (json_make.c):
 *   "kind: Pod, metadata: {name: %s, labels: {%s: %s}}, count: %ld, ready: %i, list: [], of?: %p"
 * %s text, %d %u %ld %lu %zu number, %i true or false, %p a tree that is linked nowhere else (NULL:
 * null); a name may be %s as well. Other values are literal: a word is a text, but for numbers,
 * true, false and null; 'with quotes' anything is. With "name?:" an empty value ("", NULL, 0, false,
 * {}) takes the member away. Objects that are there are added to, everything else is replaced. */
struct bh_json *bh_json_make(struct bh_arena *a, const char *fmt, ...) BH_PRINTF(2, 3);
struct bh_json *bh_json_add(struct bh_arena *a, struct bh_json *obj, const char *fmt, ...)
    BH_PRINTF(3, 4);
struct bh_json *bh_json_vadd(struct bh_arena *a, struct bh_json *obj, const char *fmt, va_list ap)
    BH_PRINTF(3, 0);
/* A new last element; returns it. */
struct bh_json *bh_json_append(struct bh_arena *a, struct bh_json *arr, const char *fmt, ...)
    BH_PRINTF(3, 4);

/* Compact, or indented by two spaces a level. Numbers and order as in the tree. */
void bh_json_write(struct bh_buf *b, const struct bh_json *v);
void bh_json_write_pretty(struct bh_buf *b, const struct bh_json *v);

/* Byte-level splitter for long inputs, works across arbitrary chunk borders. Two uses: the elements
 * of the top-level member "items" of a list, and the concatenated documents of a watch stream.
 * Holds at most one element (bounded by max_bytes: -EFBIG). */
struct bh_json_split;
enum bh_json_split_mode { BH_JSON_SPLIT_DOCS, BH_JSON_SPLIT_ITEMS };
/* DOCS: each document. ITEMS: each element of "items"; at finish `rest` gets the document without
 * them ("items":[]), for kind and metadata. */
struct bh_json_split *bh_json_split_new(enum bh_json_split_mode mode, size_t max_bytes,
                                        int (*on_item)(void *arg, const char *p, size_t n),
                                        void *arg);
/* 0, -EINVAL (not JSON at this level), -EFBIG, or on_item's non-zero result (stops). */
int bh_json_split_feed(struct bh_json_split *s, const char *p, size_t n);
int bh_json_split_finish(struct bh_json_split *s, struct bh_buf *rest); /* -EINVAL if cut short */
void bh_json_split_free(struct bh_json_split *s);
#endif
