/* SPDX-License-Identifier: Apache-2.0
 *
 * front/x509.h - client certificates: whose they are, and whether an authority vouches for them
 *
 * Upstream:   apiserver/pkg/authentication/request/x509 (Verifier, CommonNameUserConversion):
 *             common name = user, organizations = groups, OID 1.3.6.1.4.1.57683.2 = uid. Any
 *             certificate of the bundle is an anchor, as in Go.
 * Threads:    the loop's.
 */
#ifndef BH_FRONT_X509_H
#define BH_FRONT_X509_H

#include "front/user.h"

struct bh_ca; /* a bundle of authorities */
/* pem: one certificate or more. 0, -EINVAL. */
int bh_ca_new(const char *pem, size_t n, struct bh_ca **ret, struct bh_err *err);
void bh_ca_free(struct bh_ca *ca); /* NULL allowed */
/* chain: DER, leaf first. Is it good for a client, today? 0 and a new user, or -EPERM. */
int bh_ca_verify(const struct bh_ca *ca, const struct bh_str *chain, size_t n,
                 struct bh_user **ret_user, struct bh_err *err);
/* For the serving pairs: -EINVAL when text is no certificate, or key does not belong to it. */
int bh_pair_check(const char *cert_pem, const char *key_pem, struct bh_err *err);
#endif
