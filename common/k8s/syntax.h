/* SPDX-License-Identifier: Apache-2.0
 *
 * common/k8s/syntax.h - syntax of label keys, values and numbers with upstream's explanations;
 * private to the folder (the plain checks are public, selector.h), except
 * bh_label_key_why, which checks of the configuration use, too
 */
#ifndef BH_SYNTAX_H
#define BH_SYNTAX_H

#include "common/k8s/record.h"

/* Base 10, optional sign, whole text, range of int64: what Gt and Lt accept. */
bool bh_parse_int64(const char *s, size_t n, int64_t *ret);
/* Appends why the text is no label key ("name part must be non-empty; ..."); appends
 * nothing and returns false when it is one. */
bool bh_label_key_why(struct bh_buf *out, const char *s, size_t n);

extern const char *const bh_req_op_names[]; /* "In" ... */
/* Of the first n operators; -1: none of them. */
int bh_req_op_of(const char *name, size_t n);
#define BH_WHY_MAX 32u
/* Errors of one selector, as upstream prints an aggregate: one alone, or "[a, b]". */
struct bh_why {
    struct bh_buf text;
    unsigned n;
    size_t start[BH_WHY_MAX]; /* of each error begun with bh_why_begin, in text */
};
/* Begins the next error with "path: "; the caller appends the rest to w->text. False once there are
 * so many that they are never read (hostile input): then nothing may be appended. */
bool bh_why_begin(struct bh_why *w, const char *path);
/* Checks one requirement as upstream's labels.NewRequirement does. path names it, "" for none. */
void bh_why_requirement(struct bh_why *w, const char *path, const char *key, enum bh_req_op op,
                        const char *const *values, size_t n_values);
void bh_why_finish(struct bh_why *w); /* adds the brackets */
void bh_why_values(struct bh_why *w, const char *const *values, size_t n_values); /* ["a","b"] */
#endif
