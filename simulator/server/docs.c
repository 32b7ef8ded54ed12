/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/server/docs.c - documents that are built once and answered with an ETag
 */
#include "simulator/server/docs.h"

#include <stdio.h>

const struct bh_sim_doc *bh_sim_doc(struct bh_sim *s, const char *key, bh_sim_doc_build *build)
{
    struct bh_sim_doc *d = bh_map_get(&s->docs, key, strlen(key));
    if (d)
        return d;
    d = bh_calloc(1, sizeof(*d));
    build(s, key, &d->text);
    snprintf(d->etag, sizeof(d->etag), "%016llX",
             (unsigned long long)bh_hash(d->text.p, d->text.n, 0));
    bh_map_put(&s->docs, key, strlen(key), d);
    return d;
}

void bh_sim_doc_reply(struct bh_sim_req *r, const struct bh_sim_doc *d, const char *content_type)
{
    char quoted[24];
    const char *have = bh_http_header(r->http, "If-None-Match");
    snprintf(quoted, sizeof(quoted), "\"%s\"", d->etag);
    bh_http_set_header(r->http, "ETag", quoted);
    bh_http_set_header(r->http, "Vary", "Accept");
    if (have && bh_streq(have, quoted))
        bh_sim_reply_raw(r, 304, content_type, "", 0);
    else
        bh_sim_reply_raw(r, 200, content_type, d->text.p, d->text.n);
}

void bh_sim_docs_drop(struct bh_sim *s)
{
    struct bh_map_entry *e;
    for (size_t it = 0; (e = bh_map_next(&s->docs, &it));) {
        struct bh_sim_doc *d = e->value;
        bh_buf_fini(&d->text);
        free(d);
    }
    bh_map_clear(&s->docs);
}

void bh_sim_docs_fini(struct bh_sim *s)
{
    bh_sim_docs_drop(s);
    bh_map_fini(&s->docs);
}
