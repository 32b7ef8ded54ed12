/* SPDX-License-Identifier: Apache-2.0
 *
 * common/bus/curve_int.h - between allow.c, curve.c and bus.c
 */
#ifndef BH_BUS_CURVE_INT_H
#define BH_BUS_CURVE_INT_H

#include "common/bus/curve.h"
#include <time.h>

struct bh_bus_allow {
    unsigned n, unreadable; /* unreadable: files that are no key, or too many */
    struct timespec mtime;  /* of the folder, before it was read */
    char key[BH_BUS_MAX_ALLOW][BH_BUS_KEY_TEXT + 1];
};
/* err may be NULL. */
int bh_bus_key_read(const char *path, bool secret, char out[static BH_BUS_KEY_TEXT + 1],
                    struct bh_err *err);
int bh_bus_allow_load(struct bh_bus_allow *a, const char *dir, struct bh_err *err);
bool bh_bus_allow_has(const struct bh_bus_allow *a, const char *key);

struct bh_bus_gate; /* of a bus that listens on tcp: the folder of keys */
void bh_bus_gate_free(struct bh_bus_gate *g);
/* The owner's thread: may the peer with this key still talk? */
bool bh_bus_gate_open(struct bh_bus_gate *g, const char *key);
uint64_t bh_bus_gate_turned_away(const struct bh_bus_gate *g);
#endif
