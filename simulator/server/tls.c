/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/server/tls.c - a certificate authority and a server certificate, made at start
 */
#include "simulator/server/tls.h"

#include <stdio.h>

int bh_sim_tls_make(const char *address, struct bh_selfsigned *ret_t, struct bh_err *err)
{
    char names[200];
    bool other = strncmp(address, "127.", 4) != 0 && !strchr(address, ':') &&
                 !bh_streq(address, "localhost");
    snprintf(names, sizeof(names), "DNS:localhost,IP:127.0.0.1,IP:::1%s%.64s", other ? ",IP:" : "",
             other ? address : "");
    return bh_selfsigned_make("berth-simulator-ca", "berth-simulator", names, ret_t, err);
}
