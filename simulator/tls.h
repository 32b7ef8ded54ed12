/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/tls.h - a certificate authority and a server certificate, made at start
 */
#ifndef BH_SIM_TLS_H
#define BH_SIM_TLS_H

#include "common/base/base.h"

struct bh_sim_tls {
    char *ca_pem, *cert_pem, *key_pem; /* cert_pem: the server's certificate, then the CA's */
};
/* Key pairs on P-256, valid for ten years, for localhost, 127.0.0.1 and ::1 (and address when it is
 * another one). The CA's key is thrown away. 0 or -EIO with err. */
int bh_sim_tls_make(const char *address, struct bh_sim_tls *ret_t, struct bh_err *err);
void bh_sim_tls_fini(struct bh_sim_tls *t);

#endif
