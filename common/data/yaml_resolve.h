/* SPDX-License-Identifier: Apache-2.0
 *
 * common/data/yaml_resolve.h - which type has a plain YAML scalar? Private to the folder.
 *
 * Upstream: sigs.k8s.io/yaml (goyaml.v2/resolve.go): YAML 1.1 booleans, YAML 1.1 and 1.2 integers.
 * The loader asks it to type plain scalars, the writer to know which strings need quotes.
 */
#ifndef BH_YAML_RESOLVE_H
#define BH_YAML_RESOLVE_H

#include "common/base/base.h"

enum bh_yaml_kind {
    BH_YAML_STRING,
    BH_YAML_NULL,
    BH_YAML_BOOL,
    BH_YAML_INT,
    BH_YAML_FLOAT,
    BH_YAML_NOT_FINITE, /* .inf, .nan: have no JSON form */
    BH_YAML_TIMESTAMP   /* a string when read, quoted when written */
};
struct bh_yaml_scalar {
    enum bh_yaml_kind kind;
    bool b;
    double f;
    char number[48]; /* INT, FLOAT: the JSON text */
};
void bh_yaml_resolve(const char *p, size_t n, struct bh_yaml_scalar *ret);
/* A float as a mapping key becomes text as Go's strconv 'g' with 32 bits. */
void bh_yaml_float_key(double f, char out[static 48]);
/* 1:20 and the like: numbers to base 60 for YAML 1.1 readers, strings here. */
bool bh_yaml_is_base60(const char *p, size_t n);
#endif
