/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/server/tls.h - a certificate authority and a server certificate, made at start
 */
#ifndef BH_SIM_TLS_H
#define BH_SIM_TLS_H

#include "common/http/selfsigned.h"

/* For localhost, 127.0.0.1 and ::1 (and address when it is another one). 0 or -EIO with err. */
int bh_sim_tls_make(const char *address, struct bh_selfsigned *ret_t, struct bh_err *err);

#endif
