/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/docs.h - documents that are built once and answered with an ETag
 */
#ifndef BH_SIM_DOCS_H
#define BH_SIM_DOCS_H

#include "simulator/req.h"

struct bh_sim_doc {
    struct bh_buf text;
    char etag[20];
};
/* The document of that key, built on first use. Lives as long as the server. */
const struct bh_sim_doc *bh_sim_doc(struct bh_sim *s, const char *key,
                                    void (*build)(const char *key, struct bh_buf *out));
/* 200, or 304 when the client has it. */
void bh_sim_doc_reply(struct bh_sim_req *r, const struct bh_sim_doc *d, const char *content_type);
void bh_sim_docs_fini(struct bh_sim *s);

#endif
