/* SPDX-License-Identifier: Apache-2.0
 *
 * plugins/noderesourcetopologymatch/fingerprint.c - whether an object knows of the pods on its node
 *
 * Upstream: pkg/noderesourcetopology/cache/store.go, podprovider, github.com/k8stopologyawareschedwg/
 * podfingerprint: XXH64 of a pod's name, seeded by its namespace's; XXH64 of these, sorted; in hex.
 * Difference: a pod counts from when the kubelet took it up (status.startTime), not from Running on; pods
 * that have ended are never seen here, as with upstream's informerMode Shared.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "nrt.h"

#define FINGERPRINT 24 /* bytes: pfp0v001 and 16 digits */

static uint64_t hash(const void *p, uint64_t n, uint64_t seed)
{
    return p && n ? XXH64(p, n, seed) : XXH64("", 0, seed);
}

uint64_t nrt_pod_hash(struct berth_call *c, const struct berth_pod *pod)
{
    struct berth_str ns = nrt_host->pods->namespace_(c, pod), name = nrt_host->pods->name(c, pod);

    return hash(name.p, name.n, hash(ns.p, ns.n, 0));
}

uint64_t nrt_container_hash(const struct nrt_instance *in, struct berth_call *c,
                            const struct berth_pod *pod, uint32_t i)
{
    const struct berth_str part[] = {
        nrt_host->pods->namespace_(c, pod), nrt_host->pods->name(c, pod),
        nrt_host->base->text(in->home, nrt_host->pods->container_name(c, pod, i))};
    XXH64_state_t state;

    XXH64_reset(&state, 0);
    for (int k = 0; k < 3; k++) {
        if (k)
            XXH64_update(&state, "", 1);
        if (part[k].n)
            XXH64_update(&state, part[k].p, part[k].n);
    }
    return XXH64_digest(&state);
}

static int by_value(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

/* p NULL or empty: there is none. *exclusive: only of pods with exclusive resources. */
static struct berth_str given(const struct nrt_instance *in, const struct berth_value *object,
                              int *exclusive)
{
    const struct berth_host_values *h = nrt_host->values;
    const struct berth_value *list = h->get(object, BERTH_STR("attributes")),
                             *notes = h->path(object, BERTH_STR("metadata.annotations"));
    struct berth_str s = nrt_attribute(list, "nodeTopologyPodsFingerprint");

    *exclusive = 0;
    if (!s.p)
        return h->text(h->get(notes, BERTH_STR("topology.node.k8s.io/fingerprint")));
    *exclusive = in->method == NRT_METHOD_EXCLUSIVE ||
                 (in->method == NRT_METHOD_AUTODETECT &&
                  nrt_is(nrt_attribute(list, "nodeTopologyPodsFingerprintMethod"),
                         "with-exclusive-resources"));
    return s;
}

/* The pods that run there. 0: no memory. */
static int gather(struct nrt_instance *in, struct berth_call *c, const struct berth_node *node,
                  const struct nrt_topology *t, int exclusive, uint32_t *ret)
{
    const uint32_t n = nrt_host->nodes->n_pods(c, node);

    *ret = 0;
    if (n > in->cap_hash) {
        uint64_t *more = realloc(in->hash, n * sizeof *more);
        if (!more)
            return 0;
        in->hash = more;
        in->cap_hash = n;
    }
    for (uint32_t i = 0; i < n; i++) {
        const struct berth_pod *pod = nrt_host->nodes->pod_at(c, node, i);
        if (pod && nrt_host->pods->started(c, pod) &&
            (!exclusive || nrt_is_exclusive(in, c, pod, t)))
            in->hash[(*ret)++] = nrt_pod_hash(c, pod);
    }
    return 1;
}

int nrt_knows_pods(struct nrt_instance *in, struct berth_call *c, const struct berth_node *node,
                   const struct nrt_topology *t, const struct berth_value *object)
{
    char text[FINGERPRINT + 1];
    int exclusive;
    uint32_t n;
    struct berth_str s = given(in, object, &exclusive);

    if (!s.n)
        return -1;
    if (!gather(in, c, node, t, exclusive, &n))
        return 0;
    if (n)
        qsort(in->hash, n, sizeof *in->hash, by_value);
    snprintf(text, sizeof text, "pfp0v001%016" PRIx64, hash(in->hash, n * sizeof *in->hash, 0));
    return nrt_is(s, text);
}
