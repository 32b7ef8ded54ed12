/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/config/field.h - reading a configuration tree strictly, with upstream's error texts
 *
 * Two kinds of errors, as upstream: a wrong type stops the reading; unknown and repeated fields and
 * values that are not allowed are collected and printed as one list.
 *
 * Upstream: sigs.k8s.io/json (strict), apimachinery/pkg/util/validation/field.
 */
#ifndef BH_FIELD_H
#define BH_FIELD_H

#include "common/data/json.h"

#define BH_FIELD_ERRORS_MAX 1000 /* more are counted, not kept: nothing reads them */

struct bh_field_errors {
    struct bh_arena *a;
    const char **v;
    uint32_t *lines; /* of the file; 0 = not known here */
    uint32_t n, cap;
    uint32_t line;    /* given to what is added next */
    uint32_t dropped; /* beyond the maximum */
};
/* Texts that are already there are not added again. */
void bh_field_error(struct bh_field_errors *e, const char *fmt, ...) BH_PRINTF(2, 3);
/* One alone, or "[a, b]", in the arena. */
const char *bh_field_errors_text(const struct bh_field_errors *e);
const char *bh_field_errors_list(const struct bh_field_errors *e); /* "a, b", without brackets */

enum bh_field_type {
    BH_FIELD_STRING,
    BH_FIELD_BOOL,
    BH_FIELD_INT32,
    BH_FIELD_INT64,
    BH_FIELD_FLOAT,
    BH_FIELD_DURATION, /* Go duration text */
    BH_FIELD_BYTES,    /* base64 */
    BH_FIELD_STRINGS,  /* list of strings */
    BH_FIELD_OBJECT,   /* sub */
    BH_FIELD_OBJECTS,  /* list of sub */
    BH_FIELD_RAW       /* anything */
};
struct bh_field {
    const char *name; /* NULL ends a table */
    enum bh_field_type type;
    const struct bh_field *sub;
    /* Name of the Go struct that sub describes, or of a string's type, for error texts; with its package
     * when that is not the reader's: "v1alpha1.LeaderElectionConfiguration". */
    const char *go_type;
};
extern const struct bh_field bh_field_shape_point[]; /* UtilizationShapePoint, of several args */
/* One strict reading. Members that the file repeats are reported only when repeats is set (JSON; in
 * YAML the whole document was looked at before). */
struct bh_field_reader {
    struct bh_field_errors *strict; /* gets `unknown field "a.b"` and `duplicate field "a.b"` */
    const char *package;            /* of the Go types: "v1" */
    bool repeats;
    /* the first wrong type, in the arena of strict */
    const char *error;
    uint32_t error_line;
};
/* Checks v against the table; go_type names the struct v stands for. 0, or -EINVAL with r->error as
 * upstream words it. */
int bh_fields_check(struct bh_field_reader *r, const struct bh_json *v,
                    const struct bh_field *table, const char *go_type);
/* JSON of v as upstream prints invalid values. */
const char *bh_field_value(struct bh_arena *a, const struct bh_json *v);
/* "null", "bool", "number" ... as error texts name it. */
const char *bh_field_json_type(const struct bh_json *v);
/* Adds upstream's explanations, one error each, when s is no qualified name. True when it did. */
bool bh_field_qualified_name(struct bh_field_errors *e, const char *path, const char *s);
/* Undoes base64 as Go's StdEncoding reads it (line ends are skipped) into ret, in the arena.
 * -1, or the place of the first bad byte. */
int64_t bh_field_base64(struct bh_arena *a, const char *s, struct bh_str *ret);
#endif
