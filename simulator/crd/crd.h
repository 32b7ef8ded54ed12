/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/crd/crd.h - custom resources: what the schema of their definition says about an object
 *
 * A schema is the tree at spec.versions[i].schema.openAPIV3Schema. It is read as it stands: objects
 * are small and schemas are walked along with them. The core (custom.c) owns definitions, types and
 * stores.
 * Runs in:    the simulator's loop, inside a write; no state.
 * Upstream:   apiextensions-apiserver/pkg/apiserver/{schema,validation} (v1.36); differences: no
 *             list-type checks, `not`, and formats other than
 *             int32, int64, date-time, byte, duration, ipv4, ipv6 and uuid are not looked at.
 */
#ifndef BH_CRD_H
#define BH_CRD_H

#include "simulator/schema/schema.h"
#include "simulator/server/sim.h"

/* Takes out what the schema does not name, except below x-kubernetes-preserve-unknown-fields. rep
 * (may be NULL) gets a line for each. */
void bh_crd_prune(const struct bh_json *schema, struct bh_json *obj, struct bh_oas_report *rep);
/* Puts the schema's default values in; nulls that are not nullable count as absent. */
void bh_crd_default(struct bh_arena *a, const struct bh_json *schema, struct bh_json *obj);
/* Types, required, enum, bounds, lengths, patterns, oneOf/anyOf/allOf: field errors into e. What is as
 * it was in old (may be NULL) is not judged again. */
void bh_crd_validate(struct bh_arena *a, const struct bh_json *schema, const struct bh_json *obj,
                     const struct bh_json *old, struct bh_sim_error *e);
/* What is wrong with the schema itself ("structural"): field errors into e; at: where it stands. */
void bh_crd_check_schema(struct bh_arena *a, const struct bh_json *schema, const char *at,
                         struct bh_sim_error *e);

/* The CEL rules of a schema (borrowed); NULL: it has none. e (may be NULL): what is wrong with
 * them, what they may cost at worst included, at: where the schema stands. old (may be NULL): the
 * schema that the same version had, which may go on with rules that are too dear. */
struct bh_crd_rules;
struct bh_crd_rules *bh_crd_rules_new(const struct bh_json *schema, const struct bh_json *old,
                                      const char *at, struct bh_sim_error *e);
void bh_crd_rules_free(struct bh_crd_rules *r); /* NULL allowed */
/* Asks them about obj, in whose place old (NULL: nothing) was: field errors into e, warnings (may be
 * NULL) about what was as bad before. Behind bh_crd_validate(). r NULL: nothing to ask. */
void bh_crd_rules_check(const struct bh_crd_rules *r, struct bh_arena *a, const struct bh_json *obj,
                        const struct bh_json *old, struct bh_sim_error *e, struct bh_buf *warnings);

/* The item of old that has the same keys, of a list (schema) whose items have some; *ret_i: which. NULL:
 * there is none. */
const struct bh_json *bh_crd_old_item(const struct bh_json *schema, const struct bh_json *old,
                                      const struct bh_json *item, size_t *ret_i);

/* First value at a JSON path as columns and scale use it: .a.b, ['a'], [0], [*], [?(@.a=="b")].
 * NULL when there is none or the path is none. */
const struct bh_json *bh_crd_path(const struct bh_json *v, const char *path);

/* A definition as it came out of protobuf: its schemas' members get the names and the shapes that
 * they have in JSON. */
void bh_crd_from_pb(struct bh_arena *a, struct bh_json *crd);

/* The schema as OpenAPI v3 publishes it: `"com.example.v1.CronTab":{...}`, with apiVersion, kind
 * and metadata added. Refers to io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta. */
void bh_crd_emit(const struct bh_sim_type *t, struct bh_buf *out);
#endif
