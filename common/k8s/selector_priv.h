/* SPDX-License-Identifier: Apache-2.0
 *
 * common/k8s/selector_priv.h - inside of struct bh_selector
 */
#ifndef BH_SELECTOR_PRIV_H
#define BH_SELECTOR_PRIV_H

#include "common/base/arena.h"
#include "common/k8s/selector.h"

struct bh_sel_req {
    const char *key;
    enum bh_req_op op;
    const char *const *values;
    size_t n_values;
    int64_t number; /* Gt, Lt */
    size_t order;   /* of addition */
};
struct bh_selector {
    struct bh_arena a; /* everything the requirements point at */
    bool nothing;
    struct bh_sel_req *r;
    size_t n, cap;
};
struct bh_selector *bh_selector_new(void);
void bh_selector_add(struct bh_selector *s, struct bh_sel_req r);
/* Checks as labels.NewRequirement and adds; -EINVAL with upstream's text in err. */
int bh_selector_add_label(struct bh_selector *s, struct bh_sel_req r, struct bh_err *err);
/* Sorts by key (stable) and hands over; rc: what the caller has met, then s is freed. */
int bh_selector_finish(struct bh_selector *s, int rc, struct bh_selector **ret);
#endif
