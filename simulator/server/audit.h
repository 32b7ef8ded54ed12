/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/server/audit.h - every request, and what came of it: kube-apiserver's audit log
 *
 * One line of JSON an answered API request, audit.k8s.io/v1 Events of stage ResponseComplete: level
 * Request with the body for writes in JSON, Metadata for all others. Streams (watches) are left
 * out. A line is written before its answer: whatever a client was told is in the file.
 */
#ifndef BH_SIM_AUDIT_H
#define BH_SIM_AUDIT_H

#include "simulator/server/req.h"

/* Appends to path; NULL = no log. 0 or negative errno with err. */
int bh_sim_audit_open(const char *path, int *ret_fd, struct bh_err *err);
void bh_sim_audit(struct bh_sim_req *r, int code);
/* "create", "patch", ...: the verb as authorisation knows it. */
const char *bh_sim_verb_of(const struct bh_sim_req *r);
/* The second column of the token's line, as far as the client gave a token at all. */
void bh_sim_user_name(const struct bh_sim_req *r, char out[static 128]);
#endif
