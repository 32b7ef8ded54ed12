/* SPDX-License-Identifier: Apache-2.0
 *
 * common/api/headers.c - shared header lists
 *
 * Owns:       a small cache of lists by (content type, accept, extra header), all with the token of
 *             the moment. A new token empties the cache; lists in use live on until released.
 * Invariants: at most CACHE_MAX lists are cached; beyond that a list serves one request.
 * Runs in:    the loop.
 */
#include "common/api/api_int.h"

#include <ctype.h>
#include <openssl/evp.h>
#include <strings.h>

#define CACHE_MAX 64

BH_PRINTF(2, 3)
static void append(struct bh_api_headers *h, const char *fmt, ...)
{
    struct bh_buf line = {0};
    va_list ap;
    va_start(ap, fmt);
    bh_buf_vaddf(&line, fmt, ap);
    va_end(ap);
    h->list = curl_slist_append(h->list, bh_buf_str(&line));
    if (!h->list)
        abort(); /* out of memory, as in base.h */
    explicit_bzero(line.p, line.n);
    bh_buf_fini(&line);
}

/* What a lane sends of them: "Host" it knows itself, and lines without a value tell only libcurl
 * what to leave out. */
static void add_field(struct bh_api_headers *h, const char *line)
{
    const char *colon = strchr(line, ':');
    size_t n = colon ? (size_t)(colon - line) : 0;

    if (!n || !colon[1 + strspn(colon + 1, " ")] || (n == 4 && strncasecmp(line, "Host", 4) == 0))
        return;
    struct bh_api_header *f = &h->fields[h->n_fields++];
    f->line = line;
    f->line_n = strlen(line);
    f->name = bh_strndup(line, n);
    for (size_t i = 0; i < n; i++)
        f->name[i] = (char)tolower((unsigned char)line[i]);
    f->name_n = n;
    f->value = colon + 1 + strspn(colon + 1, " ");
    f->value_n = strlen(f->value);
}

static struct bh_api_headers *make(struct bh_api_client *c, const struct bh_api_call *call)
{
    struct bh_api_headers *h = bh_calloc(1, sizeof(*h));
    h->refs = 1;
    h->content_type = call->content_type ? bh_strdup(call->content_type) : NULL;
    h->accept = call->accept ? bh_strdup(call->accept) : NULL;
    h->extra = call->extra_header ? bh_strdup(call->extra_header) : NULL;
    append(h, "Accept: %s", call->accept ? call->accept : "application/json");
    if (call->content_type)
        append(h, "Content-Type: %s", call->content_type);
    else
        append(h, "Content-Type:"); /* libcurl would call an empty POST a form */
    append(h, "Expect:");
    if (c->connect_to)
        append(h, "Host: %s", c->host);
    if (call->extra_header)
        append(h, "%s", call->extra_header);
    if (c->token)
        append(h, "Authorization: Bearer %s", c->token);
    else if (c->cfg->username || c->cfg->password) {
        char *plain = bh_asprintf("%s:%s", c->cfg->username ? c->cfg->username : "",
                                  c->cfg->password ? c->cfg->password : "");
        size_t n = strlen(plain);
        char *text = bh_malloc(n / 3 * 4 + 5);
        EVP_EncodeBlock((unsigned char *)text, (const unsigned char *)plain, (int)n);
        append(h, "Authorization: Basic %s", text);
        bh_wipe(plain);
        bh_wipe(text);
    }
    for (char **as = c->cfg->impersonate; as && *as; as++)
        append(h, "%s", *as);
    if (c->lanes) {
        append(h, "User-Agent: %s", c->user_agent);
        size_t n = 0;
        for (const struct curl_slist *l = h->list; l; l = l->next)
            n++;
        h->fields = bh_calloc(n, sizeof(*h->fields));
        for (const struct curl_slist *l = h->list; l; l = l->next)
            add_field(h, l->data);
    }
    return h;
}

struct bh_api_headers *bh_api_headers_get(struct bh_api_client *c, const struct bh_api_call *call)
{
    struct bh_api_headers *h;
    LIST_FOREACH(h, &c->headers, link) {
        if (bh_api_same(h->content_type, call->content_type) &&
            bh_api_same(h->accept, call->accept) && bh_api_same(h->extra, call->extra_header)) {
            h->refs++;
            return h;
        }
    }
    h = make(c, call);
    if (c->n_headers < CACHE_MAX) {
        LIST_INSERT_HEAD(&c->headers, h, link);
        c->n_headers++;
        h->refs++;
    }
    return h;
}

void bh_api_headers_unref(struct bh_api_headers *h)
{
    if (!h || --h->refs)
        return;
    for (struct curl_slist *l = h->list; l; l = l->next) /* the token is in one of them */
        explicit_bzero(l->data, strlen(l->data));
    curl_slist_free_all(h->list);
    for (size_t i = 0; i < h->n_fields; i++)
        free(h->fields[i].name);
    free(h->fields);
    free(h->content_type);
    free(h->accept);
    free(h->extra);
    free(h);
}

void bh_api_headers_flush(struct bh_api_client *c)
{
    struct bh_api_headers *h;
    while ((h = LIST_FIRST(&c->headers))) {
        LIST_REMOVE(h, link);
        bh_api_headers_unref(h);
    }
    c->n_headers = 0;
}
