/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/cel/quantity.c - quantity() and its methods
 *
 * Upstream: k8s.io/apiserver/pkg/cel/library/quantity.go; differences: values are exact nano-units
 *           that saturate (common/k8s/quantity.h); mul, div and divInt are undeclared.
 */
#include "scheduler/cel/functions.h"

#define NANO ((bh_nano)1000000000)

static bool parse(struct cel_eval *e, const struct cel_value *arg, bh_nano *ret)
{
    bh_cel_work(e, arg->n / 10);
    return bh_quantity_parse(arg->s, arg->n, ret) == 0;
}

static struct cel_value quantity(struct cel_eval *e, bh_nano q)
{
    return (struct cel_value){.kind = CEL_QUANTITY, .q = bh_arena_memdup(e->arena, &q, sizeof(q))};
}

struct cel_value bh_cel_quantity(struct cel_eval *e, const struct cel_value *arg)
{
    bh_nano q;

    if (!parse(e, arg, &q))
        return bh_cel_error(e, "quantities must match the regular expression "
                               "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'");
    return quantity(e, q);
}

struct cel_value bh_cel_is_quantity(struct cel_eval *e, const struct cel_value *arg)
{
    bh_nano q;
    return cel_bool(parse(e, arg, &q));
}

static int compare(bh_nano a, bh_nano b)
{
    return a < b ? -1 : a > b;
}

struct cel_value bh_cel_quantity_sign(struct cel_eval *e, const struct cel_value *arg)
{
    (void)e;
    return cel_int(compare(*arg->q, 0));
}

struct cel_value bh_cel_quantity_less(struct cel_eval *e, const struct cel_value *arg)
{
    (void)e;
    return cel_bool(*arg[0].q < *arg[1].q);
}

struct cel_value bh_cel_quantity_greater(struct cel_eval *e, const struct cel_value *arg)
{
    (void)e;
    return cel_bool(*arg[0].q > *arg[1].q);
}

struct cel_value bh_cel_quantity_compare(struct cel_eval *e, const struct cel_value *arg)
{
    (void)e;
    return cel_int(compare(*arg[0].q, *arg[1].q));
}

struct cel_value bh_cel_quantity_float(struct cel_eval *e, const struct cel_value *arg)
{
    (void)e;
    return (struct cel_value){.kind = CEL_DOUBLE, .d = (double)*arg->q / 1e9};
}

static bool is_int64(bh_nano q)
{
    return q % NANO == 0 && q / NANO <= INT64_MAX && q / NANO >= INT64_MIN;
}

struct cel_value bh_cel_quantity_int(struct cel_eval *e, const struct cel_value *arg)
{
    if (!is_int64(*arg->q))
        return bh_cel_error(e, "cannot convert value to integer");
    return cel_int((int64_t)(*arg->q / NANO));
}

struct cel_value bh_cel_quantity_is_int(struct cel_eval *e, const struct cel_value *arg)
{
    (void)e;
    return cel_bool(is_int64(*arg->q));
}

/* Each operand is within BH_NANO_MAX, so the sum fits the type and is then cut to the same range.
 */
static struct cel_value sum(struct cel_eval *e, const struct cel_value *arg, int sign)
{
    bh_nano b = arg[1].kind == CEL_INT ? (bh_nano)arg[1].i * NANO : *arg[1].q;
    bh_nano r = *arg[0].q + sign * b;

    return quantity(e, r > BH_NANO_MAX ? BH_NANO_MAX : r < -BH_NANO_MAX ? -BH_NANO_MAX : r);
}

struct cel_value bh_cel_quantity_add(struct cel_eval *e, const struct cel_value *arg)
{
    return sum(e, arg, 1);
}

struct cel_value bh_cel_quantity_sub(struct cel_eval *e, const struct cel_value *arg)
{
    return sum(e, arg, -1);
}
