/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/fuzz/check_user.h - what holds for every user that the HTTPS port's authenticators accept
 */
#ifndef BH_FUZZ_CHECK_USER_H
#define BH_FUZZ_CHECK_USER_H

#include "front/user.h"

/* Takes u. */
static inline void check_user(struct bh_user *u)
{
    struct bh_buf b = {0};
    struct bh_arena a;
    struct bh_json *v = NULL;

    if (!u)
        return;
    bh_assert(*u->name);
    bh_user_authenticated(u);
    bh_buf_addc(&b, '{');
    bh_user_write(u, &b);
    bh_buf_addc(&b, '}');
    bh_arena_init(&a, 0);
    bh_assert(bh_json_parse(&a, b.p, b.n, 0, &v, NULL) == 0);
    bh_assert(bh_json_get_str(v, "user") && *bh_json_get_str(v, "user"));
    size_t groups = 0;
    bh_json_each(g, bh_json_get(v, "groups"))
        groups++;
    bh_assert(groups == u->n_groups);
    bh_arena_fini(&a);
    bh_buf_fini(&b);
    bh_user_unref(u);
}
#endif
