/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/server/docs.h - documents that are built once and answered with an ETag
 */
#ifndef BH_SIM_DOCS_H
#define BH_SIM_DOCS_H

#include "simulator/server/req.h"

struct bh_sim_doc {
    struct bh_buf text;
    char etag[20];
};
typedef void bh_sim_doc_build(const struct bh_sim *s, const char *key, struct bh_buf *out);
/* The document of that key, built on first use. Lives until bh_sim_docs_drop(). */
const struct bh_sim_doc *bh_sim_doc(struct bh_sim *s, const char *key, bh_sim_doc_build *build);
/* What is served has changed: all documents are built anew when they are asked for. */
void bh_sim_docs_drop(struct bh_sim *s);
/* 200, or 304 when the client has it. */
void bh_sim_doc_reply(struct bh_sim_req *r, const struct bh_sim_doc *d, const char *content_type);
void bh_sim_docs_fini(struct bh_sim *s);

#endif
