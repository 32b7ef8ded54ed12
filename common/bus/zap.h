/* SPDX-License-Identifier: Apache-2.0
 *
 * common/bus/zap.h - which peers may be at the other end: libzmq's questions (ZAP, RFC 27)
 *
 * Where a socket has a ZAP domain, libzmq asks about each connection before a byte of a message
 * goes over it. The questions of all buses come to one thread of the process, which hands each to
 * the function of its domain: the folder of keys for tcp (curve.c), the users of this host for a
 * bus that connects to a socket (bus.c).
 */
#ifndef BH_BUS_ZAP_H
#define BH_BUS_ZAP_H

#include "common/base/base.h"

#define BH_BUS_ZAP_DOOR "door" /* its peers were checked by the door (door.h) */

struct bh_bus_zap_request { /* frames in the order of RFC 27 */
    char version[8], id[64], domain[64], address[256], identity[256], mechanism[16];
    uint8_t key[32]; /* of CURVE */
    size_t key_n;
};
/* In the thread. May this peer connect? ret_user: goes with each of its messages as "User-Id". */
typedef bool bh_bus_zap_answer(void *arg, const struct bh_bus_zap_request *r,
                               char ret_user[static 64]);
struct bh_bus_zap; /* what answers for one domain */
/* context: of a bus that lives at least as long. The domain is unique in the process. */
int bh_bus_zap_open(void *context, const char *domain, bh_bus_zap_answer *fn, void *arg,
                    struct bh_bus_zap **ret, struct bh_err *err);
/* Afterwards the function is not called any more. NULL allowed. */
void bh_bus_zap_close(struct bh_bus_zap *z);
#endif
