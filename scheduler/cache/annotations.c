/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/cache/annotations.c - annotations of nodes and pods, for the plugins that ask for them
 */
#include "common/base/buf.h"
#include "proto/kubernetes/kubernetes.pb-c.h"
#include "scheduler/cache/pod_facts.h"

#define NS_PER_S INT64_C(1000000000)

struct block { /* of one object: "name NUL value NUL" after each other */
    uint64_t feed;
    size_t n;
    /* Where bh_annotations_at() was last, and in which one: a pod may have tens of thousands. */
    size_t at;
    uint32_t next;
    /* Of a pod, behind them: its priority class, NUL, and each profile, NUL. */
    int64_t scheduled_ns;
    uint32_t n_profiles;
    bool has_facts;
    char text[];
};

static struct bh_map *map_of(struct bh_annotations *a, enum bh_annotations_of of)
{
    return &a->of[of == BH_ANNOTATIONS_PODS];
}

void bh_annotations_fini(struct bh_annotations *a)
{
    bh_map_fini_values(&a->of[0]);
    bh_map_fini_values(&a->of[1]);
}

/* The same annotations in another order count as others: once too often made anew. */
static void write_block(struct bh_buf *out, const K8s__ObjectMeta *meta)
{
    for (size_t i = 0; i < meta->n_annotations; i++) {
        bh_buf_add(out, meta->annotations[i]->key, strlen(meta->annotations[i]->key) + 1);
        bh_buf_add(out, meta->annotations[i]->value, strlen(meta->annotations[i]->value) + 1);
    }
}

bool bh_annotations_put(struct bh_annotations *a, enum bh_annotations_of of, struct bh_str key,
                        const K8s__ObjectMeta *meta)
{
    BH_CLEANUP(bh_buf_fini) struct bh_buf text = {0};
    BH_CLEANUP(bh_freep) struct block *old = NULL;

    if (!(a->wanted & of) || !key.n)
        return false;
    if (!meta) {
        old = bh_map_del(map_of(a, of), key.p, key.n);
        return old && old->n;
    }
    write_block(&text, meta);
    struct block *b = bh_malloc(sizeof *b + text.n);
    *b = (struct block){.feed = a->feed, .n = text.n};
    if (text.n)
        memcpy(b->text, text.p, text.n);
    old = bh_map_put(map_of(a, of), key.p, key.n, b);
    return old ? old->n != b->n || memcmp(old->text, b->text, b->n) != 0 : b->n != 0;
}

bool bh_annotations_known(const struct bh_annotations *a, enum bh_annotations_of of,
                          struct bh_str key)
{
    return bh_map_get(&a->of[of == BH_ANNOTATIONS_PODS], key.p, key.n) != NULL;
}

void bh_annotations_sweep(struct bh_annotations *a)
{
    for (unsigned i = 0; i < BH_ARRAY_LEN(a->of); i++) {
        struct bh_map_entry *e;
        for (size_t it = 0; (e = bh_map_next(&a->of[i], &it));)
            if (((struct block *)e->value)->feed != a->feed)
                free(bh_map_del(&a->of[i], e->key, e->key_len));
    }
}

struct bh_str bh_annotations_get(const struct bh_annotations *a, enum bh_annotations_of of,
                                 struct bh_str key, struct bh_str name)
{
    const struct block *b = bh_map_get(&a->of[of == BH_ANNOTATIONS_PODS], key.p, key.n);

    for (const char *p = b ? b->text : NULL; p && p < b->text + b->n;) {
        struct bh_str k = bh_str_c(p), v = bh_str_c(p + k.n + 1);
        if (bh_str_eq(k, name))
            return v;
        p = v.p + v.n + 1;
    }
    return (struct bh_str){NULL, 0};
}

struct bh_str bh_annotations_at(const struct bh_annotations *a, enum bh_annotations_of of,
                                struct bh_str key, uint32_t i, struct bh_str *ret_name)
{
    struct block *b = bh_map_get(&a->of[of == BH_ANNOTATIONS_PODS], key.p, key.n);

    if (b && i < b->next)
        b->next = b->at = 0;
    while (b && b->at < b->n) {
        struct bh_str k = bh_str_c(b->text + b->at), v = bh_str_c(k.p + k.n + 1);
        *ret_name = k;
        if (b->next == i)
            return v;
        b->at += k.n + v.n + 2;
        b->next++;
    }
    return (struct bh_str){NULL, 0};
}

/* ---- what else is kept of pods --------------------------------------------------------------- */

static int64_t scheduled_ns(const K8s__PodStatus *s)
{
    for (size_t i = 0; s && i < s->n_conditions; i++) {
        const K8s__PodCondition *c = s->conditions[i];
        if (strcmp(c->type, "PodScheduled") != 0) /* the first one counts */
            continue;
        const int64_t at = c->lasttransitiontime ? c->lasttransitiontime->seconds : 0;
        bool is = strcmp(c->status, "True") == 0;
        /* Without a time it is as good as long ago. */
        return !is ? 0 : at > 0 && at < INT64_MAX / NS_PER_S ? at * NS_PER_S : 1;
    }
    return 0;
}

static uint32_t add_profile(struct bh_buf *out, const K8s__SeccompProfile *p)
{
    if (!p || !p->localhostprofile || strcmp(p->type, "Localhost") != 0)
        return 0;
    bh_buf_add(out, p->localhostprofile, strlen(p->localhostprofile) + 1);
    return 1;
}

static uint32_t add_profiles(struct bh_buf *out, const K8s__PodSpec *s)
{
    uint32_t n = s->securitycontext ? add_profile(out, s->securitycontext->seccompprofile) : 0;

    for (size_t i = 0; i < s->n_containers; i++)
        if (s->containers[i]->securitycontext)
            n += add_profile(out, s->containers[i]->securitycontext->seccompprofile);
    return n;
}

void bh_pod_facts_put(struct bh_annotations *a, struct bh_str uid, const K8s__Pod *pod)
{
    BH_CLEANUP(bh_buf_fini) struct bh_buf text = {0};
    const struct block *had = bh_map_get(map_of(a, BH_ANNOTATIONS_PODS), uid.p, uid.n);

    if (!had || !pod->spec)
        return;
    bh_buf_add(&text, pod->spec->priorityclassname, strlen(pod->spec->priorityclassname) + 1);
    const uint32_t n_profiles = add_profiles(&text, pod->spec);
    struct block *b = bh_malloc(sizeof *b + had->n + text.n);
    *b = (struct block){.feed = had->feed,
                        .n = had->n,
                        .scheduled_ns = scheduled_ns(pod->status),
                        .n_profiles = n_profiles,
                        .has_facts = true};
    memcpy(b->text, had->text, had->n);
    memcpy(b->text + had->n, text.p, text.n);
    free(bh_map_put(map_of(a, BH_ANNOTATIONS_PODS), uid.p, uid.n, b));
}

struct bh_pod_facts bh_pod_facts(const struct bh_annotations *a, struct bh_str uid)
{
    const struct block *b = bh_map_get(&a->of[1], uid.p, uid.n);

    if (!b || !b->has_facts)
        return (struct bh_pod_facts){0};
    struct bh_str class = bh_str_c(b->text + b->n);
    return (struct bh_pod_facts){.priority_class = class.n ? class : (struct bh_str){NULL, 0},
                                 .scheduled_ns = b->scheduled_ns,
                                 .profiles = class.p + class.n + 1,
                                 .n_profiles = b->n_profiles};
}

struct bh_str bh_pod_facts_profile(const struct bh_pod_facts *f, uint32_t i)
{
    struct bh_str s = bh_str_c(f->profiles);

    for (; i; i--)
        s = bh_str_c(s.p + s.n + 1);
    return s;
}
