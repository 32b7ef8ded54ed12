/* SPDX-License-Identifier: Apache-2.0
 *
 * common/k8s/selector.h - label and field selectors over strings
 *
 * For the API server side (list and watch filters) and tools. The engine matches over symbols
 * instead (record.h). Label look-up is by callback so that any representation of labels works.
 * Upstream: apimachinery/pkg/labels, pkg/fields.
 */
#ifndef BH_SELECTOR_H
#define BH_SELECTOR_H

#include "common/data/json.h"
#include "common/k8s/record.h"

struct bh_selector; /* immutable once built */
/* "a=b,c!=d,e in (f,g),h notin (i),j,!k". "" = everything. err as upstream's
 * ("unable to parse requirement: ..."). */
int bh_selector_parse(const char *text, struct bh_selector **ret, struct bh_err *err);
/* metav1.LabelSelector as JSON; NULL -> matches nothing; {} -> everything. */
int bh_selector_from_json(const struct bh_json *v, struct bh_selector **ret, struct bh_err *err);
void bh_selector_free(struct bh_selector *s);
/* get(arg, key): value or NULL when the key is absent. */
bool bh_selector_match(const struct bh_selector *s, const char *(*get)(void *arg, const char *key),
                       void *arg);
bool bh_selector_match_json(const struct bh_selector *s, const struct bh_json *labels);
/* Labels of a node's or a shape's record. */
bool bh_selector_match_labels(const struct bh_selector *s, const struct bh_kv *labels, uint32_t n,
                              const struct bh_symtab *tab);
/* Field selectors: only =, ==, != joined by commas; ops are IN/NOT_IN with one value.
 * each(): visits the requirements, for support checks ("field label not supported: x"). */
int bh_field_selector_parse(const char *text, struct bh_selector **ret, struct bh_err *err);
void bh_selector_each(const struct bh_selector *s,
                      void (*fn)(void *arg, const char *key, enum bh_req_op op, size_t n_values,
                                 const char *const *values),
                      void *arg);

/* Syntax checks shared by selectors, configuration and admission. */
bool bh_valid_label_key(const char *s, size_t n);   /* qualified name */
bool bh_valid_label_value(const char *s, size_t n); /* <= 63, alnum ends, may be empty */
bool bh_valid_dns1123_subdomain(const char *s, size_t n);
bool bh_valid_dns1123_label(const char *s, size_t n);
#endif
