/* SPDX-License-Identifier: Apache-2.0
 *
 * common/cel/cel.c - compile, evaluate, free
 *
 * Owns: the program's arena, which holds its text, nodes, types and patterns.
 */
#include "common/cel/cel.h"
#include "common/cel/cel_int.h"

/* schema NULL: of a device. */
static int compile(const char *expression, const struct bh_json *schema, unsigned flags,
                   struct bh_cel_program **ret, struct bh_err *err)
{
    size_t n = strlen(expression);
    int rc = 0;

    if (n > CEL_TEXT_MAX)
        return bh_err_set(err, -EINVAL, "expression too long: %zu bytes, at most %d", n,
                          CEL_TEXT_MAX);
    struct bh_cel_program *p = bh_calloc(1, sizeof(*p));
    bh_arena_init(&p->arena, 0);
    p->text = bh_arena_strndup(&p->arena, expression, n);
    p->text_n = n;
    p->flags = flags;
    if (schema) {
        p->self = bh_cel_schema_type(&p->arena, schema, flags & BH_CEL_ROOT);
        if (!p->self)
            rc = bh_err_set(
                err, -EINVAL,
                "rule declared on schema that does not support validation rules type: '%s' "
                "x-kubernetes-preserve-unknown-fields: '%s'",
                bh_json_get_text(schema, "type"),
                bh_json_get_bool(schema, "x-kubernetes-preserve-unknown-fields", false) ? "true"
                                                                                        : "false");
    }
    if (rc == 0)
        rc = bh_cel_parse(p, err);
    if (rc == 0)
        *ret = bh_take_ptr(p);
    bh_cel_free(p);
    return rc;
}

int bh_cel_compile(const char *expression, struct bh_cel_program **ret, struct bh_err *err)
{
    return compile(expression, NULL, 0, ret, err);
}

int bh_cel_compile_rule(const char *expression, const struct bh_json *schema, unsigned flags,
                        struct bh_cel_program **ret, struct bh_err *err)
{
    return compile(expression, schema, flags, ret, err);
}

int bh_cel_estimate_rule(const char *expression, const struct bh_json *schema, unsigned flags,
                         uint64_t *ret_cost)
{
    struct bh_cel_program *p = NULL;
    int rc = compile(expression, schema, flags | CEL_UNFOLDED, &p, NULL);

    if (rc == 0)
        *ret_cost = bh_cel_estimate(p, schema);
    bh_cel_free(p);
    return rc;
}

bool bh_cel_uses_old_self(const struct bh_cel_program *p)
{
    return p->uses_old;
}

void bh_cel_free(struct bh_cel_program *p)
{
    if (!p)
        return;
    bh_arena_fini(&p->arena);
    free(p);
}

/* e->slot may be there already. */
static int run(struct cel_eval *e, struct cel_value *ret, uint64_t *ret_cost, struct bh_err *err)
{
    if (!e->slot)
        e->slot = bh_arena_new_array(e->arena, struct cel_value, e->prog->n_slots + 1u);
    *ret = bh_cel_eval(e, e->prog->root);
    if (ret_cost)
        *ret_cost = e->cost;
    if (e->exhausted)
        return bh_err_set(err, -E2BIG, "operation cancelled: actual cost limit exceeded");
    return ret->kind == CEL_ERROR ? bh_err_set(err, -EINVAL, "%s", ret->s) : 0;
}

int bh_cel_eval_rule(const struct bh_cel_program *p, const struct cel_value *self,
                     const struct cel_value *old, struct bh_arena *scratch, bool *ret_true,
                     struct bh_str *ret_text, uint64_t *ret_cost, struct bh_err *err)
{
    struct cel_eval e = {.prog = p, .arena = scratch};
    struct cel_value v;

    if (p->uses_old && !old && !(p->flags & BH_CEL_OPTIONAL_OLD))
        return bh_err_set(err, -EINVAL, "no such attribute(s): oldSelf");
    e.slot = bh_arena_new_array(scratch, struct cel_value, p->n_slots + 1u);
    e.slot[0] = *self;
    if (p->flags & BH_CEL_OPTIONAL_OLD)
        e.slot[1] = cel_optional(old);
    else if (old)
        e.slot[1] = *old;
    int rc = run(&e, &v, ret_cost, err);
    if (rc == 0 && v.kind == CEL_BOOL)
        *ret_true = v.b;
    if (rc == 0 && v.kind == CEL_STRING)
        *ret_text = (struct bh_str){v.s, v.n};
    return rc;
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
    struct cel_value v;
    rc = run(&e, &v, ret_cost, err);
    if (rc != 0)
        return rc;
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
