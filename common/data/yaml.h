/* SPDX-License-Identifier: Apache-2.0
 *
 * common/data/yaml.h - YAML into the JSON tree, with Kubernetes' typing rules (sigs.k8s.io/yaml)
 *
 * Text whose first non-blank is `{` goes to the JSON reader. Limits (hostile input): size by the
 * caller, depth 128, aliases expand at most 1,000,000 nodes in total. Duplicate keys are errors
 * when BH_JSON_STRICT. Every node carries its line. Mapping keys become strings as in YAML->JSON.
 */
#ifndef BH_YAML_H
#define BH_YAML_H

#include "common/data/json.h"

/* One document (the first). An empty document gives null. Errors name line and column. */
int bh_yaml_parse(struct bh_arena *a, const char *p, size_t n, unsigned flags,
                  struct bh_json **ret_v, struct bh_err *err);
/* All documents of the stream, as an array; empty documents are left out. */
int bh_yaml_parse_all(struct bh_arena *a, const char *p, size_t n, unsigned flags,
                      struct bh_json **ret_array, struct bh_err *err);
/* Block style, as kubectl prints: strings quoted only where needed. */
void bh_yaml_write(struct bh_buf *b, const struct bh_json *v);
#endif
