/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/schema/schema.h - the fields of every built-in type: names, types, what they mean
 *
 * proto/kubernetes is a projection made for scheduling; these tables are whole. They answer three
 * questions: does this member exist (fieldValidation, dropping what a Go client would have
 * dropped), has it the right JSON type, and what does `kubectl explain` say about it.
 *
 * fields.data has them, words.data the descriptions of what scheduler users ask for.
 *
 * Threads: any; the tables are read once (pthread_once) and never change.
 */
#ifndef BH_OAS_H
#define BH_OAS_H

#include "simulator/server/sim.h"

struct bh_oas_type;
struct bh_oas_field {
    const char *name;
    const char *form; /* "", "[", "{", "{[": what is around it */
    char leaf;        /* one letter of fields.data; 0 = type */
    bool required, retain_keys;
    bool pointer;                   /* nil is another value than the zero of its type */
    bool always;                    /* written even when it is empty */
    const char *go;                 /* the name of a leaf's Go type, "" = that of its letter */
    const char *merge_key;          /* NULL = atomic */
    const struct bh_oas_type *type; /* NULL when a leaf */
    const char *words;              /* "" = none */
    size_t declared;                /* its rank in its Go struct */
};
struct bh_oas_type {
    const char *package, *name; /* "core.v1", "PodSpec" */
    const char *words;
    bool plain; /* what its Go type does with empty members is not known */
    size_t n;
    const struct bh_oas_field *fields; /* in the order of their names */
    const size_t *declared;            /* their indices in the order of the Go struct */
};
/* Of the objects of t; NULL for custom resources. */
const struct bh_oas_type *bh_oas_root(const struct bh_sim_type *t);
const struct bh_oas_type *bh_oas_find(const char *package, const char *name);
const struct bh_oas_field *bh_oas_field(const struct bh_oas_type *t, const char *name);
/* What OpenAPI calls a leaf of that letter; "" = nothing. */
struct bh_oas_leaf {
    char letter;
    const char *type, *format;
};
const struct bh_oas_leaf *bh_oas_leaf(char letter);
/* "io.k8s.api.core.v1.PodSpec" */
void bh_oas_full_name(const struct bh_oas_type *t, struct bh_buf *out);

/* What is wrong with an object, in the words of the API server. */
#define BH_OAS_NAMED 16u
struct bh_oas_report {
    unsigned n;            /* unknown or repeated members */
    struct bh_buf unknown; /* `unknown field "spec.foo"`, a line each, the first 16 of them */
    char mismatch
        [512]; /* the first member of a wrong JSON type, or a text that is none of its type, "" = none */
    bool careful; /* a text or a number may still be none of its type (a quantity, a time, base64,
                     "anything"): only decoding tells */
    struct {
        uint32_t line;               /* of the tree; 0 = not known */
        char mean[96];               /* the field that was meant, "" = none comes near */
    } at[BH_OAS_NAMED];              /* of those that are named, when they are unknown */
    const struct bh_oas_type *whole; /* what was checked */
};
/* Takes members out of obj that t does not have, and says which; null in a list or a map becomes the zero value of
 * its type. at: the member of the whole object that obj is, NULL = itself. */
void bh_oas_check(const struct bh_oas_type *t, struct bh_json *obj, const char *at,
                  struct bh_oas_report *rep);
/* normal.c: what obj is after it has been read into its Go type and written again: members that are
 * empty are left out or added, quantities get the text that upstream keeps. */
void bh_oas_normalise(struct bh_arena *a, const struct bh_oas_type *t, struct bh_json *obj);
/* What a person reads of finding i < BH_OAS_NAMED, without its line:
 * `unknown field "spec.foo" (did you mean spec.fool?)`. */
void bh_oas_sentence(const struct bh_oas_report *rep, unsigned i, struct bh_buf *out);
/* For whoever takes manifests without a request: -EINVAL when obj, a whole object, has members that
 * its kind does not have (it has lost them then), `line 12: unknown field ..., line 13: ...`. line:
 * of the file, where obj begins; 0 = its lines are not told. Kinds without tables pass. */
int bh_oas_refuse_unknown(struct bh_json *obj, uint32_t line, struct bh_err *err);
/* The same as a report, with the tree's own lines; the caller frees rep->unknown. */
void bh_oas_check_whole(struct bh_json *obj, struct bh_oas_report *rep);
/* Names members that stand twice in a tree read with BH_JSON_REPEATS. */
void bh_oas_repeats(const struct bh_json *v, struct bh_oas_report *rep);
/* One line of the report; path is printed as it is, name behind a dot. */
void bh_oas_unknown(struct bh_oas_report *rep, const char *what, const char *path,
                    const char *name);

/* emit.c: JSON schemas (OpenAPI v3) of t and of everything it refers to, as members of an object:
 * "io.k8s.api.core.v1.Pod":{...},... done: names written so far (key -> anything). */
struct bh_map;
void bh_oas_emit(const struct bh_sim_type *t, struct bh_map *done, struct bh_buf *out);
/* The same of one of the tables' types. */
void bh_oas_emit_named(const char *package, const char *name, struct bh_map *done,
                       struct bh_buf *out);

/* emit_v2.c: definitions of OpenAPI v2 for t and everything it refers to, as protobuf members of
 * openapi.v2.Definitions. */
void bh_oas_emit_v2(const struct bh_sim_type *t, struct bh_map *done, struct bh_buf *out);
/* One protobuf member; put_msg frees msg. */
void bh_oas_put_str(struct bh_buf *b, unsigned field, const char *s);
void bh_oas_put_msg(struct bh_buf *b, unsigned field, struct bh_buf *msg);
/* openapi.v2.NamedAny: a vendor extension. */
void bh_oas_put_extension(struct bh_buf *b, unsigned field, const char *name, const char *yaml);
#endif
