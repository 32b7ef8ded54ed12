/* SPDX-License-Identifier: Apache-2.0
 *
 * common/k8s/schema.h - what a protobuf descriptor alone does not tell about an API type's JSON
 * form; private to the folder
 *
 * Three facts per message: types whose JSON is not an object (Quantity, Time ...), members that
 * JSON inlines into their parent, and scalars that Kubernetes prints even when zero. Everything
 * else follows from the descriptor: JSON names are field names, a scalar with a declared default is
 * value-typed upstream (proto/kubernetes/kubernetes.proto).
 * Threads: any; constant tables only.
 */
#ifndef BH_SCHEMA_H
#define BH_SCHEMA_H

#include "common/base/base.h"
#include <protobuf-c/protobuf-c.h>

enum bh_json_form {
    BH_FORM_OBJECT,
    BH_FORM_MAP_ENTRY, /* key, value: the repeated field is a JSON object */
    BH_FORM_QUANTITY,  /* string or number */
    BH_FORM_TIME,      /* RFC 3339, whole seconds */
    BH_FORM_MICRO_TIME,
    BH_FORM_INT_OR_STRING,
    BH_FORM_RAW,        /* any JSON value, kept as text */
    BH_FORM_STRING_LIST /* array of strings (authorization.k8s.io ExtraValue) */
};
enum bh_json_form bh_json_form_of(const ProtobufCMessageDescriptor *d);
/* The member without a JSON level of its own, or NULL. */
const ProtobufCFieldDescriptor *bh_schema_inlined(const ProtobufCMessageDescriptor *d);
/* The words of the scalars that are printed even when zero. */
const char *bh_schema_always(const ProtobufCMessageDescriptor *d);
/* Bytes of one element in the array of a repeated field. */
size_t bh_pb_element_size(ProtobufCType t);
#endif
