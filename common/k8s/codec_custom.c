/* SPDX-License-Identifier: Apache-2.0
 *
 * common/k8s/codec_custom.c - objects of kinds that Berth has no schema of
 */
#include "common/k8s/codec.h"

#include <errno.h>

#include "proto/kubernetes/kubernetes.pb-c.h"

int bh_decode_custom(struct bh_arena *a, const void *p, size_t n, ProtobufCMessage **ret_m,
                     struct bh_err *err)
{
    struct bh_json *v;
    struct bh_buf text BH_CLEANUP(bh_buf_fini) = {0};
    ProtobufCMessage *meta = NULL;
    int rc = bh_json_parse(a, p, n, BH_JSON_NUL, &v, err);

    if (rc < 0)
        return rc;
    struct bh_json *m = bh_json_get(v, "metadata");
    if (!m || m->type != BH_JSON_OBJECT)
        return bh_err_set(err, -EINVAL, "metadata: must be an object");
    (void)bh_json_unset(m, "managedFields"); /* read nowhere, and often most of an object */
    rc = bh_json_to_pb(a, &k8s__object_meta__descriptor, m, &meta, NULL, err);
    if (rc < 0)
        return bh_err_prefix(err, rc, "metadata");
    K8s__CustomObject *o = bh_pb_new(a, &k8s__custom_object__descriptor);
    bh_json_write(&text, v);
    uint8_t *json = o ? bh_arena_memdup(a, text.p, text.n) : NULL;
    if (!json)
        return bh_err_set(err, -E2BIG, "it takes more memory than an object may");
    o->metadata = (K8s__ObjectMeta *)meta;
    o->has_json = true;
    o->json = (ProtobufCBinaryData){text.n, json};
    *ret_m = &o->base;
    return 0;
}
