/* SPDX-License-Identifier: Apache-2.0
 *
 * common/base/hash_seed.h - a seed for one hash table (used inside common/base)
 */
#ifndef BH_HASH_SEED_H
#define BH_HASH_SEED_H

#include "common/base/base.h"

/* Differs per call and per process and cannot be guessed from outside; one system call a process,
 * so small short-lived tables stay cheap. Any thread. */
uint64_t bh_hash_seed(void);
#endif
