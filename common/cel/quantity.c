/* SPDX-License-Identifier: Apache-2.0
 *
 * common/cel/quantity.c - quantity() and its methods
 *
 * Upstream: k8s.io/apiserver/pkg/cel/library/quantity.go; differences: values are exact nano-units
 *           that saturate (common/k8s/quantity.h); mul, div and divInt are undeclared.
 */
#include "common/cel/cel_int.h"

#define NANO ((bh_nano)1000000000)

static struct cel_value quantity(struct cel_eval *e, bh_nano q)
{
    return (struct cel_value){.kind = CEL_QUANTITY, .q = bh_arena_memdup(e->arena, &q, sizeof(q))};
}

struct cel_value bh_cel_quantity(struct cel_eval *e, const struct cel_value *arg)
{
    bh_nano q;

    bh_cel_work(e, arg->n / 10);
    if (bh_quantity_parse(arg->s, arg->n, &q) != 0)
        return bh_cel_error(e, "quantities must match the regular expression "
                               "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'");
    return quantity(e, q);
}

struct cel_value bh_cel_quantity_sign(struct cel_eval *e BH_UNUSED, const struct cel_value *arg)
{
    return cel_int((*arg->q > 0) - (*arg->q < 0));
}

struct cel_value bh_cel_quantity_float(struct cel_eval *e BH_UNUSED, const struct cel_value *arg)
{
    return (struct cel_value){.kind = CEL_DOUBLE, .d = (double)*arg->q / 1e9};
}

struct cel_value bh_cel_quantity_int(struct cel_eval *e, const struct cel_value *arg)
{
    bh_nano units = *arg->q / NANO;

    if (*arg->q % NANO != 0 || units > INT64_MAX || units < INT64_MIN)
        return bh_cel_error(e, "cannot convert value to integer");
    return cel_int((int64_t)units);
}

/* Each operand is within BH_NANO_MAX, so the sum fits the type; it is cut to the same range. */
struct cel_value bh_cel_quantity_sum(struct cel_eval *e, const struct cel_value *arg)
{
    bh_nano b = arg[1].kind == CEL_INT ? (bh_nano)arg[1].i * NANO : *arg[1].q;
    bh_nano r = *arg[0].q + e->how * b;

    return quantity(e, r > BH_NANO_MAX ? BH_NANO_MAX : r < -BH_NANO_MAX ? -BH_NANO_MAX : r);
}
