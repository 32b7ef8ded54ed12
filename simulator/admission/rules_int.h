/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/admission/rules_int.h - tables of rules as structs: rules_read.c makes, rules_run.c applies them
 */
#ifndef BH_RULES_INT_H
#define BH_RULES_INT_H

#include "simulator/admission/rules.h"

#define RULE_SEGS_MAX  8
#define RULE_CALLS_MAX 4

enum rule_step { RULE_MEMBER, RULE_EACH, RULE_KEYS };
struct rule_seg {
    enum rule_step step;
    const char *name;
};
enum rule_op {
    RULE_TRUE, /* not empty */
    RULE_HAS,  /* not nil */
    RULE_EQ,
    RULE_NE,
    RULE_LT,
    RULE_LE,
    RULE_GT,
    RULE_GE,
    RULE_IN,
    RULE_NOT,
    RULE_AND,
    RULE_OR
};
struct rule_operand {
    const char *path; /* dotted; "$create" and the like */
    unsigned up;      /* objects further out */
    bool root, old, count;
};
struct rule_cond {
    enum rule_op op;
    struct rule_cond *a, *b;
    struct rule_operand left, right;
    bool has_right;
    size_t n_words;
    const char *word[16];
};
struct rule_line {
    struct rule_line *next;
    size_t n_segs, n_calls;
    struct rule_seg seg[RULE_SEGS_MAX];
    const char *alias;
    struct rule_cond *cond;
    struct bh_rule_call *call[RULE_CALLS_MAX];
};
struct bh_rule_set {
    const char *name;
    const struct bh_oas_type *type;
    struct rule_line *first;
};
#endif
