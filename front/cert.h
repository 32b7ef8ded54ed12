/* SPDX-License-Identifier: Apache-2.0
 *
 * front/cert.h - the certificates this server shows
 *
 * --tls-cert-file and --tls-private-key-file, then --tls-sni-cert-key (CERT,KEY[:NAME,...]); they
 * are read again when they changed. Without a pair one is made for the host, localhost and
 * 127.0.0.1: in memory, or, with --cert-dir, in <dir>/kube-scheduler.crt and .key.
 * Threads:    the loop's.
 * Upstream:   apiserver/pkg/server/options/serving.go, dynamiccertificates/tlsconfig.go.
 */
#ifndef BH_FRONT_CERT_H
#define BH_FRONT_CERT_H

#include "common/flags/kube_flags.h"
#include "common/http/tls.h"

struct bh_certs;
/* 0, or -errno with a text that names flag and file. */
int bh_certs_new(const struct bh_serving_flags *f, struct bh_certs **ret, struct bh_err *err);
void bh_certs_free(struct bh_certs *c); /* NULL allowed */
struct bh_tls *bh_certs_tls(struct bh_certs *c);
/* Reads the files again when one changed, or always with force. 1 = new ones are in use, 0 =
 * nothing new, -errno: what was in use stays. */
int bh_certs_refresh(struct bh_certs *c, bool force, struct bh_err *err);
#endif
