/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/replay/anonymise.c - names, label values and images as keyed hashes
 *
 * One function for all texts, so that whatever was equal stays equal. Members are known by their
 * name and by the one they stand in; keys of labels, topology keys, resource names, names of
 * drivers, device attributes and classes of devices are the structure and stay.
 */
#include "simulator/replay/clean.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdio.h>

#define HASH_BYTES                                                                                 \
    7 /* 14 digits: a million names meet by chance once in a hundred thousand files */

void bh_anon_init(struct bh_anon *n, const char *secret)
{
    unsigned len = 0;

    if (secret) {
        bh_assert(EVP_Digest(secret, strlen(secret), n->key, &len, EVP_sha256(), NULL));
        return;
    }
    for (size_t i = 0; i < sizeof(n->key); i += 8) {
        uint64_t r = bh_rand_entropy();
        memcpy(n->key + i, &r, 8);
    }
}

const char *bh_anon_text(const struct bh_anon *n, struct bh_arena *a, const char *s)
{
    unsigned char md[EVP_MAX_MD_SIZE];
    unsigned len = 0;
    char out[2 * HASH_BYTES + 2] = "x";

    /* What the API and its users give a meaning; numbers are compared by Gt and Lt. */
    static const char all[] =
        "true false yes default kube-system kube-public kube-node-lease system-node-critical "
        "system-cluster-critical amd64 arm64 linux windows default-scheduler";
    if (bh_word_at(all, s) >= 0 || (strlen(s) < 10 && strspn(s, "0123456789") == strlen(s)))
        return s;
    bh_assert(HMAC(EVP_sha256(), n->key, sizeof(n->key), (const unsigned char *)s, strlen(s), md,
                   &len) != NULL);
    for (size_t i = 0; i < HASH_BYTES; i++)
        snprintf(out + 1 + 2 * i, 3, "%02x", md[i]);
    return bh_arena_strdup(a, out);
}

static void set_text(struct bh_arena *a, struct bh_json *v, const char *s)
{
    v->s = (struct bh_str){bh_arena_strdup(a, s), strlen(s)};
}

static void hash(const struct bh_anon *n, struct bh_arena *a, struct bh_json *v)
{
    if (v && v->type == BH_JSON_STRING)
        set_text(a, v, bh_anon_text(n, a, v->s.p));
}

/* "registry/app" is "registry/app:latest" to the plugin that looks for images on nodes. */
static void hash_image(const struct bh_anon *n, struct bh_arena *a, struct bh_json *v)
{
    const char *s = bh_json_cstr(v), *colon, *slash;

    if (!s)
        return;
    colon = strrchr(s, ':');
    slash = strrchr(s, '/');
    if (!colon || (slash && slash > colon))
        s = bh_arena_printf(a, "%s:latest", s);
    set_text(a, v, bh_arena_printf(a, "%s:latest", bh_anon_text(n, a, s)));
}

/* Inside these `name` is a text that a user chose. */
static const char named[] =
    "metadata ownerReferences claimRef reservedFor containers initContainers volumes pool ports";
static const char names[] =
    "namespace nodeName nominatedNodeName claimName volumeName storageClassName "
    "volumeAttributesClassName priorityClassName resourceClaimName resourceClaimTemplateName "
    "persistentVolumeName volumeHandle volumeID pdName iqn serviceName pool";
static const char maps[] = "labels matchLabels nodeSelector selector";

static bool is_map(const char *key)
{
    return bh_word_at(maps, key) >= 0;
}

static void walk(const struct bh_anon *n, struct bh_arena *a, struct bh_json *v, const char *in);

static void hash_all(const struct bh_anon *n, struct bh_arena *a, struct bh_json *v, bool image)
{
    bh_json_each(m, v) {
        if (image)
            hash_image(n, a, m);
        else
            hash(n, a, m);
    }
}

static void member(const struct bh_anon *n, struct bh_arena *a, struct bh_json *m, const char *in)
{
    const char *key = m->key.p;

    if (is_map(in) && m->type == BH_JSON_STRING)
        return; /* hashed with its map, whatever its key looks like */
    bh_json_each(x, bh_streq(key, "annotations") ? m : NULL)
        if (strstr(x->key.p, "selected-node") || strstr(x->key.p, "storage-class") ||
            !strstr(x->key.p, "kubernetes.io/"))
            hash(n, a, x);
    if (bh_streq(key, "names") && bh_streq(in, "images"))
        hash_all(n, a, m, true);
    else if (bh_streq(key, "image"))
        hash_image(n, a, m);
    else if (bh_word_at("values namespaces monitors", key) >= 0)
        hash_all(n, a, m, false);
    else if (bh_streq(key, "value") && (bh_streq(in, "taints") || bh_streq(in, "tolerations")))
        hash(n, a, m);
    else if (bh_word_at(names, key) >= 0 || (bh_streq(key, "name") && bh_word_at(named, in) >= 0))
        hash(n, a, m);
    if (is_map(key) && m->type == BH_JSON_OBJECT)
        hash_all(n, a, m,
                 false); /* members that are no strings stay: this may be a real selector */
    if (m->type == BH_JSON_OBJECT || m->type == BH_JSON_ARRAY)
        walk(n, a, m, is_map(key) && bh_streq(in, "metadata") ? "labels" : key);
}

static void walk(const struct bh_anon *n, struct bh_arena *a, struct bh_json *v, const char *in)
{
    bool skip = bh_word_at("labels matchLabels values annotations names", in) >= 0;

    bh_json_each(m, v) {
        if (skip)
            continue;
        if (v->type == BH_JSON_OBJECT)
            member(n, a, m, in);
        else
            walk(n, a, m, in);
    }
}

void bh_anon_object(const struct bh_anon *n, struct bh_arena *a, struct bh_json *obj)
{
    const char *kind = bh_json_get_text(obj, "kind");
    bool own = !bh_streq(kind, "CSIDriver") && !bh_streq(kind, "DeviceClass");
    struct bh_json *name = bh_json_path(obj, "metadata.name");
    const char *kept = name && !own ? bh_json_cstr(name) : NULL;

    walk(n, a, obj, "");
    if (kept) /* pods and claims name it in ways that cannot be told from a driver's own name */
        set_text(a, name, kept);
}
