/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/common/k8s/streams.h - what the tests of lists and of watch streams share
 */
#ifndef BH_TEST_STREAMS_H
#define BH_TEST_STREAMS_H

#include <errno.h>

#include "common/k8s/codec.h"
#include "common/k8s/wire.h"
#include "proto/kubernetes/kubernetes.pb-c.h"
#include "tests/unit/harness.h"

#define PB   "application/vnd.kubernetes.protobuf"
#define JSON "application/json"

struct seen {
    struct bh_buf text; /* names, each followed by a blank */
    int stop_after;     /* then the callback returns 7 */
    int n;
    enum bh_watch_type types[16];
};

/* Decodes a pod and notes its name; bare: without envelope. */
static inline void note(struct seen *s, const void *p, size_t n, bool bare)
{
    struct bh_arena a;
    ProtobufCMessage *m = NULL;
    bh_arena_init(&a, (size_t)1 << 20);
    int rc = bare ? bh_pb_unpack(&a, &k8s__pod__descriptor, p, n, &m, NULL)
                  : bh_decode_object(&a, &k8s__pod__descriptor, p, n, &m, NULL);
    CU_ASSERT_EQUAL_FATAL(rc, 0);
    bh_buf_addf(&s->text, "%s ", bh_object_meta(m) ? bh_object_meta(m)->name : "?");
    bh_arena_fini(&a);
}

static inline void pod_message(struct bh_buf *out, const char *name)
{
    K8s__ObjectMeta meta = K8S__OBJECT_META__INIT;
    K8s__Pod pod = K8S__POD__INIT;
    meta.name = (char *)name;
    pod.metadata = &meta;
    bh_pb_pack(out, &pod.base);
}
#endif
