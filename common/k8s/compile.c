/* SPDX-License-Identifier: Apache-2.0
 *
 * common/k8s/compile.c - parts that node, shape and pod records share
 */
#include "common/k8s/compile.h"

#include <errno.h>

#include "common/k8s/compile_priv.h"
#include "common/k8s/selector.h"
#include "common/k8s/syntax.h"

static bh_sym intern_private(void *arg, const char *s, size_t n)
{
    return bh_sym_intern(arg, s, n);
}

struct bh_interner bh_symtab_interner(struct bh_symtab *t)
{
    return (struct bh_interner){intern_private, t};
}

bh_sym bh_compile_sym(struct bh_compiler *c, const char *s)
{
    return s && *s ? c->in->intern(c->in->arg, s, strlen(s)) : BH_SYM_NONE;
}

struct bh_slice bh_compile_syms(struct bh_compiler *c, char *const *texts, size_t n)
{
    struct bh_slice s;
    bh_sym *out = bh_rec_room(&c->b, n, sizeof(*out), &s);

    /* The interner may be the snapshot writer's, but it never touches this builder. */
    for (size_t i = 0; out && i < n; i++)
        out[i] = bh_compile_sym(c, texts[i]);
    return s;
}

bool bh_is_sidecar(const K8s__Container *k)
{
    return k->restartpolicy && bh_streq(k->restartpolicy, "Always");
}

uint32_t bh_compile_effect(const char *s)
{
    int known = bh_word_at("NoSchedule PreferNoSchedule NoExecute", s);

    return !*s ? BH_EFFECT_NONE : known < 0 ? BH_EFFECT_OTHER : BH_NO_SCHEDULE + (uint32_t)known;
}

uint64_t bh_compile_version(const char *s)
{
    uint64_t v = 0;

    for (; *s; s++) {
        unsigned d = (unsigned char)*s - (unsigned)'0';
        if (d > 9 || v > (UINT64_MAX - d) / 10)
            return 0;
        v = v * 10 + d;
    }
    return v;
}

int bh_compile_no_memory(struct bh_compiler *c, const char *what)
{
    return bh_err_set(c->err, -E2BIG, "%s: needs more memory than allowed", what);
}

int bh_compile_end(struct bh_compiler *c, const char *what, const struct bh_rec_head *head,
                   size_t n, void *ret_rec)
{
    if (n && !c->b.failed)
        memcpy(c->b.p + sizeof(*head), head + 1, n - sizeof(*head));
    void *rec = bh_rec_finish(&c->b);

    if (!rec)
        return bh_err_set(c->err, -E2BIG,
                          "%s: needs more than %u bytes, or more memory than allowed", what,
                          BH_REC_MAX_BYTES);
    *(void **)ret_rec = rec;
    return 0;
}

struct ordered_kv {
    struct bh_kv kv;
    uint32_t order;
};

static int by_key(const void *pa, const void *pb)
{
    const struct ordered_kv *a = pa, *b = pb;

    if (a->kv.key != b->kv.key)
        return a->kv.key < b->kv.key ? -1 : 1;
    return a->order < b->order ? -1 : 1;
}

int bh_compile_map(struct bh_compiler *c, K8s__StringEntry *const *map, size_t n,
                   struct bh_slice *ret)
{
    struct ordered_kv *v = bh_arena_new_array(c->a, struct ordered_kv, n + 1);
    size_t kept = 0;

    *ret = (struct bh_slice){0, 0};
    if (!v || n > UINT32_MAX)
        return bh_compile_no_memory(c, "labels");
    for (size_t i = 0; i < n; i++)
        v[i] = (struct ordered_kv){
            {bh_compile_sym(c, map[i]->key), bh_compile_sym(c, map[i]->value)}, (uint32_t)i};
    bh_rec_sort(v, n, sizeof(*v), by_key);
    for (size_t i = 0; i < n; i++)
        if (i + 1 == n || v[i].kv.key != v[i + 1].kv.key)
            v[kept++] = v[i];
    struct bh_kv *out = bh_rec_room(&c->b, kept, sizeof(*out), ret);
    for (size_t i = 0; out && i < kept; i++)
        out[i] = v[i].kv;
    return 0;
}

/* ---- resource names ---- */
bool bh_resource_is_extended(const char *name)
{
    static const char requests[] = "requests.";
    size_t n = strlen(name);
    char qualified[sizeof(requests) + 253 + 1 + 63];

    if (!strchr(name, '/') || strstr(name, "kubernetes.io/"))
        return false;
    if (strncmp(name, requests, sizeof(requests) - 1) == 0 ||
        n > sizeof(qualified) - sizeof(requests))
        return false;
    memcpy(qualified, requests, sizeof(requests) - 1);
    memcpy(qualified + sizeof(requests) - 1, name, n);
    return bh_valid_label_key(qualified, sizeof(requests) - 1 + n);
}

bool bh_resource_is_scalar(const char *name)
{
    return strncmp(name, "hugepages-", 10) == 0 || strncmp(name, "attachable-volumes-", 19) == 0 ||
           (strchr(name, '/') && (strstr(name, "kubernetes.io/") || bh_resource_is_extended(name)));
}
