/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/http/head.c - the head of an HTTP/1.x request: request line and headers, as bytes came in
 */
#include "simulator/http/head.h"

#include <strings.h>
#include <sys/types.h>

#define FIELDS_AT_FIRST 16u

static bool is_token(char c)
{
    static const char other[] = "!#$%&'*+-.^_`|~";

    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c && memchr(other, c, sizeof(other) - 1));
}

/* The end of a token, at p or behind it. */
static char *token_end(char *p)
{
    while (is_token(*p))
        p++;
    return p;
}

/* "GET /path HTTP/1.1"; writes NULs into it. */
static bool read_request_line(struct bh_http_head *h, char *line)
{
    char *end = token_end(line), *target = end + 1;

    if (end == line || *end != ' ')
        return false;
    *end = '\0';
    end = target;
    while ((unsigned char)*end > ' ' && *end != 0x7f)
        end++;
    if (end == target || *end != ' ' || strncmp(end + 1, "HTTP/1.", 7) != 0 ||
        (end[8] != '0' && end[8] != '1') || end[9])
        return false;
    *end = '\0';
    h->method = line;
    h->target = target;
    h->http11 = h->keep_alive = end[8] == '1';
    return true;
}

/* True when word is one of the comma-separated words of list. */
static bool has_word(const char *list, const char *word)
{
    size_t n = strlen(word);

    for (const char *p = list; *p; p += strcspn(p, ",")) {
        p += strspn(p, ", \t");
        if (strncasecmp(p, word, n) == 0 && (!p[n] || strchr(", \t", p[n])))
            return true;
    }
    return false;
}

struct seen {
    bool length, host;
};

/* What the connection itself must know. */
static bool note_field(struct bh_http_head *h, const struct bh_http_field *f, struct seen *seen)
{
    switch (f->name[0] | 0x20) {
    case 'c':
        if (strcasecmp(f->name, "Content-Length") == 0) {
            size_t n = 0;
            if (seen->length || !*f->value)
                return false;
            seen->length = true;
            for (const char *v = f->value; *v; v++) {
                if (*v < '0' || *v > '9')
                    return false;
                n = n > (SIZE_MAX - 9) / 10 ? SIZE_MAX : n * 10 + (size_t)(*v - '0');
            }
            h->body_n = n;
            return true;
        }
        if (strcasecmp(f->name, "Connection") == 0 && has_word(f->value, "close"))
            h->keep_alive = false;
        return true;
    case 'e':
        if (strcasecmp(f->name, "Expect") == 0)
            h->expects_continue = strcasecmp(f->value, "100-continue") == 0;
        return true;
    case 'h':
        if (strcasecmp(f->name, "Host") != 0)
            return true;
        if (seen->host)
            return false;
        seen->host = true;
        return true;
    case 't':
        if (strcasecmp(f->name, "Transfer-Encoding") != 0)
            return true;
        if (h->chunked || strcasecmp(f->value, "chunked") != 0)
            return false;
        h->chunked = true;
        return true;
    default:
        return true;
    }
}

static bool read_field(struct bh_http_head *h, char *line, size_t *cap, struct seen *seen)
{
    char *colon = token_end(line), *v = colon + 1, *end;

    if (colon == line || *colon != ':')
        return false;
    *colon = '\0';
    v += strspn(v, " \t");
    for (end = v; *end; end++)
        if (((unsigned char)*end < ' ' && *end != '\t') || *end == 0x7f)
            return false;
    while (end > v && (end[-1] == ' ' || end[-1] == '\t'))
        end--;
    *end = '\0';
    if (h->n_fields == *cap) {
        *cap = *cap ? *cap * 2 : FIELDS_AT_FIRST;
        h->fields = bh_reallocarray(h->fields, *cap, sizeof(*h->fields));
    }
    h->fields[h->n_fields] = (struct bh_http_field){line, v};
    return note_field(h, &h->fields[h->n_fields++], seen);
}

/* text: the head without its last empty line, each line ended by CR LF. */
static bool read_head(struct bh_http_head *h, char *text, size_t n)
{
    size_t cap = 0;
    struct seen seen = {0};
    bool first = true;

    if (memchr(text, '\0', n))
        return false;
    for (char *line = text; line < text + n; first = false) {
        char *end = strchr(line, '\n');
        if (!end || end == line || end[-1] != '\r')
            return false;
        end[-1] = '\0';
        if (!(first ? read_request_line(h, line) : read_field(h, line, &cap, &seen)))
            return false;
        line = end + 1;
    }
    if (h->chunked && seen.length)
        return false;
    return seen.host || !h->http11; /* HTTP/1.1 asks for one; HTTP/1.0 may do without */
}

/* The byte behind the empty line, or NULL. A line that ends without CR is told as *ret_bad. */
static const char *find_end(const char *p, size_t n, size_t from, bool *ret_bad)
{
    for (const char *at = p + from, *end = p + n; (at = memchr(at, '\n', (size_t)(end - at)));
         at++) {
        if (at == p || at[-1] != '\r') {
            *ret_bad = true;
            return NULL;
        }
        if (at - p >= 3 && at[-2] == '\n')
            return at + 1;
    }
    return NULL;
}

ssize_t bh_http_head_read(struct bh_http_head *h, const char *p, size_t n, size_t *seen)
{
    bool bad = false;
    size_t skip = 0;

    /* Some clients end a body with an empty line of their own. */
    while (n - skip >= 2 && p[skip] == '\r' && p[skip + 1] == '\n')
        skip += 2;
    size_t from = BH_MAX(*seen, skip);
    const char *end = find_end(p + skip, n - skip, from - skip, &bad);
    if (bad)
        return -400;
    if ((size_t)((end ? end : p + n) - p) > BH_HTTP_HEAD_MAX)
        return memchr(p, '\n', BH_HTTP_HEAD_MAX) ? -431 : -414;
    *seen = n;
    if (!end)
        return 0;
    size_t used = (size_t)(end - p), head_n = used - skip - 2;
    *h = (struct bh_http_head){.text = bh_strndup(p + skip, head_n)};
    if (memchr(p + skip, '\0', head_n) || !read_head(h, h->text, head_n)) {
        bh_http_head_fini(h);
        return -400;
    }
    return (ssize_t)used;
}

void bh_http_head_fini(struct bh_http_head *h)
{
    free(h->text);
    free(h->fields);
    *h = (struct bh_http_head){0};
}
