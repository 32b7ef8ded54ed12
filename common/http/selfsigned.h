/* SPDX-License-Identifier: Apache-2.0
 *
 * common/http/selfsigned.h - a certificate for a server that was given none
 *
 * Key pairs on P-256, valid for ten years. The key of the authority is thrown away.
 */
#ifndef BH_SELFSIGNED_H
#define BH_SELFSIGNED_H

#include "common/base/base.h"

struct bh_selfsigned {
    char *ca_pem, *cert_pem, *key_pem; /* cert_pem: the server's certificate, then the CA's */
};
/* alt_names: "DNS:localhost,IP:127.0.0.1" (OpenSSL's syntax). 0 or -EIO with err. */
int bh_selfsigned_make(const char *ca_name, const char *name, const char *alt_names,
                       struct bh_selfsigned *ret, struct bh_err *err);
void bh_selfsigned_fini(struct bh_selfsigned *t);
#endif
