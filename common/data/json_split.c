/* SPDX-License-Identifier: Apache-2.0
 *
 * common/data/json_split.c - cut a long JSON input into its elements without parsing them
 *
 * Only brackets, strings and commas are looked at; what is inside an element is judged by the
 * reader that gets it. An element that lies in one chunk is handed out in place, only one that
 * crosses a chunk border is copied.
 *
 * Invariants: part holds the bytes of the present element that came with earlier chunks; at most
 *             max_bytes. The first error stays (dead), later calls repeat it.
 */
#include "common/data/json.h"
#include "common/data/json_scan.h"

#include <errno.h>

enum where {
    BEFORE,     /* between documents (DOCS), before the list (ITEMS) */
    OUTER,      /* in the list object, outside its items */
    WANT_ITEM,  /* in items: an element must follow */
    FIRST_ITEM, /* in items: an element or the end */
    AFTER_ITEM, /* in items: comma or the end */
    ELEMENT,    /* inside an element that is an object or an array */
    STRING,     /* inside an element that is a string */
    WORD,       /* inside an element that is a number, true, false or null */
    DONE        /* behind the list object */
};

struct bh_json_split {
    enum bh_json_split_mode mode;
    enum where where;
    size_t max_bytes, depth;
    bool in_string, escaped;
    /* OUTER: at a name of the list object; bytes of "items" matched so far (NO_MATCH: another
     * name); the name was items and its value comes next. */
    bool at_name, is_items;
    unsigned matched;
    struct bh_buf part, rest;
    int (*on_item)(void *arg, const char *p, size_t n);
    void *arg;
    int dead;
};

static const char items_name[] = "items";
#define NO_MATCH 99u

struct bh_json_split *bh_json_split_new(enum bh_json_split_mode mode, size_t max_bytes,
                                        int (*on_item)(void *arg, const char *p, size_t n),
                                        void *arg)
{
    struct bh_json_split *s = bh_calloc(1, sizeof(*s));
    s->mode = mode;
    s->max_bytes = max_bytes;
    s->on_item = on_item;
    s->arg = arg;
    return s;
}

void bh_json_split_free(struct bh_json_split *s)
{
    if (!s)
        return;
    bh_buf_fini(&s->part);
    bh_buf_fini(&s->rest);
    free(s);
}

static inline bool is_space(char c)
{
    return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

/* ---- the list object around the items -------------------------------------------------------- */

static int keep_rest(struct bh_json_split *s, const char *p, size_t n)
{
    if (n > s->max_bytes - s->rest.n)
        return -EFBIG;
    bh_buf_add(&s->rest, p, n);
    return 0;
}

static void outer_byte(struct bh_json_split *s, char c)
{
    if (s->in_string) {
        if (s->escaped) {
            s->escaped = false;
            s->matched = NO_MATCH; /* the API never escapes a letter of a field name */
        } else if (c == '\\') {
            s->escaped = true;
        } else if (c == '"') {
            s->in_string = false;
            s->is_items = s->at_name && s->matched == sizeof(items_name) - 1;
            s->at_name = false;
        } else if (s->at_name) {
            bool hit = s->matched < sizeof(items_name) - 1 && c == items_name[s->matched];
            s->matched = hit ? s->matched + 1 : NO_MATCH;
        }
        return;
    }
    switch (c) {
    case '"':
        s->in_string = true;
        s->matched = 0;
        return;
    case '[':
        if (s->is_items && s->depth == 1) {
            s->is_items = false;
            s->where = FIRST_ITEM;
            return;
        }
        s->depth++;
        break;
    case '{':
        s->depth++;
        s->at_name = s->depth == 1;
        break;
    case '}':
    case ']':
        s->depth--;
        if (s->depth == 0)
            s->where = DONE;
        break;
    case ',':
        s->at_name = s->depth == 1;
        break;
    default:
        if (c == ':' || is_space(c))
            return;
        break;
    }
    s->is_items = false;
}

/* Takes bytes until the list object ends or its items begin; how many stands in *ret_n. */
static int feed_outer(struct bh_json_split *s, const char *p, size_t n, size_t *ret_n)
{
    size_t i = 0;
    while (i < n && s->where == OUTER)
        outer_byte(s, p[i++]);
    *ret_n = i;
    return keep_rest(s, p, i);
}

/* ---- elements -------------------------------------------------------------------------------- */

/* How much of p belongs to the element; *ret_end when it ends there. */
static size_t scan_element(struct bh_json_split *s, const char *p, size_t n, bool *ret_end)
{
    static const bool special[256] = {['"'] = 1, ['{'] = 1, ['}'] = 1, ['['] = 1, [']'] = 1};
    const char *q = p, *end = p + n;
    *ret_end = false;
    while (q < end) {
        if (s->in_string) {
            if (s->escaped) {
                s->escaped = false;
                q++;
                continue;
            }
            q = bh_json_scan_quote(q, end);
            if (q < end) {
                s->escaped = *q == '\\';
                s->in_string = s->escaped;
                q++;
            }
            continue;
        }
        while (q < end && !special[(unsigned char)*q])
            q++;
        if (q == end)
            break;
        char c = *q++;
        if (c == '"') {
            s->in_string = true;
        } else if (c == '{' || c == '[') {
            s->depth++;
        } else if (--s->depth == 0) {
            *ret_end = true;
            break;
        }
    }
    return (size_t)(q - p);
}

static size_t scan_string(struct bh_json_split *s, const char *p, size_t n, bool *ret_end)
{
    size_t i = 0;
    *ret_end = false;
    while (i < n && !*ret_end) {
        char c = p[i++];
        *ret_end = c == '"' && !s->escaped;
        s->escaped = c == '\\' && !s->escaped;
    }
    return i;
}

static size_t scan_word(const char *p, size_t n, bool *ret_end)
{
    size_t i = 0;
    while (i < n && !is_space(p[i]) && p[i] != ',' && p[i] != ']')
        i++;
    *ret_end = i < n;
    return i;
}

/* from: where the element begins in this chunk; skip: bytes of it already known to belong to it. */
static int feed_element(struct bh_json_split *s, const char *from, size_t n, size_t skip,
                        size_t *ret_n)
{
    bool ended;
    const char *p = from + skip;
    size_t took = skip;
    if (s->where == ELEMENT)
        took += scan_element(s, p, n - skip, &ended);
    else if (s->where == STRING)
        took += scan_string(s, p, n - skip, &ended);
    else
        took += scan_word(p, n - skip, &ended);
    *ret_n = took;
    if (took > s->max_bytes - s->part.n)
        return -EFBIG;
    if (!ended || s->part.n) {
        bh_buf_add(&s->part, from, took);
        if (!ended)
            return 0;
        from = s->part.p;
        took = s->part.n;
    }
    s->where = s->mode == BH_JSON_SPLIT_DOCS ? BEFORE : AFTER_ITEM;
    int rc = s->on_item(s->arg, from, took);
    bh_buf_reset(&s->part);
    if (s->mode == BH_JSON_SPLIT_ITEMS)
        s->depth = 1;
    return rc;
}

static int begin_element(struct bh_json_split *s, const char *p, size_t n, size_t *ret_n)
{
    char c = *p;
    size_t skip = 1;
    s->in_string = s->escaped = false;
    if (c == '{' || c == '[') {
        s->depth = 1;
        s->where = ELEMENT;
    } else if (c == '"') {
        s->where = STRING;
    } else {
        s->where = WORD;
        skip = 0;
    }
    return feed_element(s, p, n, skip, ret_n);
}

/* One byte or more between elements; p[0] is no white space. */
static int feed_between(struct bh_json_split *s, const char *p, size_t n, size_t *ret_n)
{
    bool list = s->mode == BH_JSON_SPLIT_ITEMS;
    char c = *p;
    *ret_n = 1;
    switch (s->where) {
    case BEFORE:
        if (!list && (c == '{' || c == '['))
            return begin_element(s, p, n, ret_n);
        if (!list || c != '{')
            return -EINVAL;
        s->where = OUTER;
        *ret_n = 0;
        return 0;
    case FIRST_ITEM:
    case AFTER_ITEM:
        if (c == ']') {
            s->where = OUTER;
            return keep_rest(s, p, 1);
        }
        if (s->where == AFTER_ITEM) {
            s->where = WANT_ITEM;
            return c == ',' ? 0 : -EINVAL;
        }
        break;
    case WANT_ITEM:
        break;
    default:
        return -EINVAL; /* DONE: the list object has ended */
    }
    if (c == ',' || c == ']' || c == '}' || c == ':')
        return -EINVAL;
    return begin_element(s, p, n, ret_n);
}

static int feed(struct bh_json_split *s, const char *p, size_t n)
{
    const char *end = p + n;
    int rc = 0;
    while (rc == 0 && p < end) {
        size_t took = 0;
        if (s->where == OUTER) {
            rc = feed_outer(s, p, (size_t)(end - p), &took);
        } else if (s->where == ELEMENT || s->where == STRING || s->where == WORD) {
            rc = feed_element(s, p, (size_t)(end - p), 0, &took);
        } else if (is_space(*p)) {
            took = 1;
        } else {
            rc = feed_between(s, p, (size_t)(end - p), &took);
        }
        p += took;
    }
    return rc;
}

int bh_json_split_feed(struct bh_json_split *s, const char *p, size_t n)
{
    if (!s->dead)
        s->dead = feed(s, p, n);
    return s->dead;
}

int bh_json_split_finish(struct bh_json_split *s, struct bh_buf *rest)
{
    if (s->dead)
        return s->dead;
    if (s->where != (s->mode == BH_JSON_SPLIT_DOCS ? BEFORE : DONE))
        return -EINVAL;
    if (rest)
        bh_buf_add(rest, bh_buf_str(&s->rest), s->rest.n);
    return 0;
}
