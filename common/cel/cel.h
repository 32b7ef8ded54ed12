/* SPDX-License-Identifier: Apache-2.0
 *
 * common/cel/cel.h - CEL as device selectors and the rules of custom resources use it
 *
 * compile once per expression text, evaluate once per (expression, device): the result is a bool or
 * an error text as upstream's. A program is immutable and may be shared; it lives in its own arena.
 * Limits (hostile input): expression 10 KiB, nesting 64, evaluation cost 1,000,000 units counted
 * while evaluating (message as upstream's "... cost limit exceeded"); regular expressions are
 * linear time.
 * Upstream: k8s.io/dynamic-resource-allocation/cel,
 * apiextensions-apiserver/pkg/apiserver/schema/cel, google/cel-go; what is not supported fails at
 * compile time, never silently at evaluation.
 */
#ifndef BH_CEL_H
#define BH_CEL_H

#include "common/base/arena.h"
#include "common/data/json.h"
#include "proto/kubernetes/kubernetes.pb-c.h"

struct bh_cel_program;
#define BH_CEL_COST_LIMIT UINT64_C(1000000)

/* The variable `device`: driver, attributes by domain, capacities by domain,
 * allowMultipleAllocations. Built from the API object; attribute and capacity names without a
 * domain belong to the driver's. */
struct bh_cel_device {
    const char *driver;
    const K8s__Device *device;
};
/* 0 or -EINVAL with upstream-like compile error text in err. */
int bh_cel_compile(const char *expression, struct bh_cel_program **ret, struct bh_err *err);
void bh_cel_free(struct bh_cel_program *p);
/* Evaluates in scratch (not reset here). 0 with *ret_match; -EINVAL with err (evaluation error:
 * missing key, wrong type, not a bool); -E2BIG when the cost limit was exceeded. ret_cost may be
 * NULL. */
int bh_cel_match_device(const struct bh_cel_program *p, const struct bh_cel_device *d,
                        struct bh_arena *scratch, bool *ret_match, uint64_t *ret_cost,
                        struct bh_err *err);

/* ---- rules about the values of a schema (x-kubernetes-validations) --------------------------- */
enum {
    BH_CEL_ROOT = 1,         /* the object has kind, apiVersion and metadata, too */
    BH_CEL_OPTIONAL_OLD = 2, /* oldSelf is an optional */
    BH_CEL_MESSAGE = 4,      /* the result is a text, not a bool */
};
struct cel_value; /* as expressions see it */
/* An expression about self and oldSelf, which are as the schema says; it is looked at here only.
 * -EINVAL with upstream's text. */
int bh_cel_compile_rule(const char *expression, const struct bh_json *schema, unsigned flags,
                        struct bh_cel_program **ret, struct bh_err *err);
/* What the same expression may cost at worst, by the schema's maxLength, maxItems and maxProperties:
 * what kube-apiserver estimates; UINT64_MAX: without bound. 0; -EINVAL: it does not compile. */
int bh_cel_estimate_rule(const char *expression, const struct bh_json *schema, unsigned flags,
                         uint64_t *ret_cost);
/* How many values of the schema have room in the largest request. */
uint64_t bh_cel_max_cardinality(const struct bh_json *schema, bool root);
bool bh_cel_uses_old_self(const struct bh_cel_program *p);
/* v as schema (NULL: not known) says: made once, for any number of rules. In a; refers to v. Its
 * children are in the order of v's. */
const struct cel_value *bh_cel_value_of(struct bh_arena *a, const struct bh_json *schema,
                                        const struct bh_json *v);
const struct cel_value *bh_cel_child(const struct cel_value *v, size_t i);
/* old NULL: there is none, and the rule does not need one. 0 with *ret_true, or of a message
 * with *ret_text, in scratch; -EINVAL or -E2BIG as above. */
int bh_cel_eval_rule(const struct bh_cel_program *p, const struct cel_value *self,
                     const struct cel_value *old, struct bh_arena *scratch, bool *ret_true,
                     struct bh_str *ret_text, uint64_t *ret_cost, struct bh_err *err);
#endif
