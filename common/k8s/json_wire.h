/* SPDX-License-Identifier: Apache-2.0
 *
 * common/k8s/json_wire.h - JSON tree into protobuf bytes, without a message in between
 *
 * What bh_json_to_pb() and protobuf_c_message_pack() do together, in one walk over the tree and a
 * third of the time; for the API server, which encodes each change. Fields come in the order of the
 * tree's members, not of their numbers, and a message that JSON inlines (a volume's source) may
 * come in parts: readers put both right, as the format demands.
 */
#ifndef BH_JSON_WIRE_H
#define BH_JSON_WIRE_H

#include "common/base/buf.h"
#include "common/data/json.h"
#include <protobuf-c/protobuf-c.h>

/* What is known of the messages met so far: names, numbers, forms. For one thread. */
struct bh_wire_plans;
struct bh_wire_plans *bh_wire_plans_new(void);
void bh_wire_plans_free(struct bh_wire_plans *p); /* NULL allowed */
/* Appends v as a message of type d. -EINVAL where bh_json_to_pb() fails, which then can say why;
 * out is as it was. */
int bh_json_to_wire(struct bh_wire_plans *p, const ProtobufCMessageDescriptor *d,
                    const struct bh_json *v, struct bh_buf *out);
#endif
