/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/server/kubeconfig_out.h - a kubeconfig that leads to this server
 */
#ifndef BH_SIM_KUBECONFIG_OUT_H
#define BH_SIM_KUBECONFIG_OUT_H

#include "common/base/base.h"

/* Writes path (mode 0600). ca_pem NULL = plain HTTP; token NULL = none. 0 or -errno. */
int bh_sim_kubeconfig_write(const char *path, const char *address, uint16_t port,
                            const char *ca_pem, const char *token, struct bh_err *err);

#endif
