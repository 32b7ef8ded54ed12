/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/config/field.h - reading a configuration tree strictly, with upstream's error texts
 *
 * Two kinds of errors, as upstream: decode errors (wrong type, unknown field; the first stops the
 * reading) and validation errors (collected, printed as one list).
 *
 * Upstream: sigs.k8s.io/json (strict), apimachinery/pkg/util/validation/field.
 */
#ifndef BH_FIELD_H
#define BH_FIELD_H

#include "common/data/json.h"

struct bh_field_errors {
    struct bh_arena *a;
    const char **v;
    uint32_t n, cap;
};
/* Texts that are already there are not added again. */
void bh_field_error(struct bh_field_errors *e, const char *fmt, ...) BH_PRINTF(2, 3);
/* One alone, or "[a, b]"; in err. */
void bh_field_errors_join(const struct bh_field_errors *e, struct bh_err *err);

enum bh_field_type {
    BH_FIELD_STRING,
    BH_FIELD_BOOL,
    BH_FIELD_INT32,
    BH_FIELD_INT64,
    BH_FIELD_FLOAT,
    BH_FIELD_DURATION, /* Go duration text */
    BH_FIELD_STRINGS,  /* list of strings */
    BH_FIELD_OBJECT,   /* sub */
    BH_FIELD_OBJECTS,  /* list of sub */
    BH_FIELD_RAW       /* anything */
};
struct bh_field {
    const char *name; /* NULL ends a table */
    enum bh_field_type type;
    const struct bh_field *sub;
    const char *go_type; /* name of the struct that sub describes, for error texts */
};
/* Checks types of v against the table; go_type names the struct v stands for. Unknown members are
 * added to unknown as `unknown field "a.b"`. 0 or -EINVAL with upstream's text. */
int bh_fields_check(const struct bh_json *v, const struct bh_field *table, const char *go_type,
                    struct bh_field_errors *unknown, struct bh_err *err);
/* JSON of v as upstream prints invalid values. */
const char *bh_field_value(struct bh_arena *a, const struct bh_json *v);
#endif
