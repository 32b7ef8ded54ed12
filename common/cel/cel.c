/* SPDX-License-Identifier: Apache-2.0
 *
 * common/cel/cel.c - compile, evaluate, free
 *
 * Owns: the program's arena, which holds its text, nodes, types and patterns.
 */
#include "common/cel/cel.h"
#include "common/cel/cel_int.h"

int bh_cel_compile(const char *expression, struct bh_cel_program **ret, struct bh_err *err)
{
    size_t n = strlen(expression);

    if (n > CEL_TEXT_MAX)
        return bh_err_set(err, -EINVAL, "expression too long: %zu bytes, at most %d", n,
                          CEL_TEXT_MAX);
    struct bh_cel_program *p = bh_calloc(1, sizeof(*p));
    bh_arena_init(&p->arena, 0);
    p->text = bh_arena_strndup(&p->arena, expression, n);
    p->text_n = n;
    int rc = bh_cel_parse(p, err);
    if (rc == 0)
        *ret = bh_take_ptr(p);
    bh_cel_free(p);
    return rc;
}

void bh_cel_free(struct bh_cel_program *p)
{
    if (!p)
        return;
    bh_arena_fini(&p->arena);
    free(p);
}

int bh_cel_match_device(const struct bh_cel_program *p, const struct bh_cel_device *d,
                        struct bh_arena *scratch, bool *ret_match, uint64_t *ret_cost,
                        struct bh_err *err)
{
    struct cel_eval e = {.prog = p, .arena = scratch};

    if (ret_cost)
        *ret_cost = 0;
    int rc = bh_cel_bind_device(&e, d, err);
    if (rc != 0)
        return rc;
    e.slot = bh_arena_new_array(scratch, struct cel_value, p->n_slots + 1u);
    struct cel_value v = bh_cel_eval(&e, p->root);
    if (ret_cost)
        *ret_cost = e.cost;
    if (e.exhausted)
        return bh_err_set(err, -E2BIG, "operation cancelled: actual cost limit exceeded");
    if (v.kind == CEL_ERROR)
        return bh_err_set(err, -EINVAL, "%s", v.s);
    if (v.kind != CEL_BOOL) /* in the words of each type; only what an attribute can be gets here */
        return bh_err_set(
            err, -EINVAL, "CEL result of type %s could not be converted to bool: %s",
            bh_cel_kind_name(v.kind),
            v.kind == CEL_STRING   ? "unsupported native conversion from string to 'bool'"
            : v.kind == CEL_SEMVER ? "type conversion error from 'Semver' to 'bool'"
                                   : "unsupported type conversion from 'int' to bool");
    *ret_match = v.b;
    return 0;
}
