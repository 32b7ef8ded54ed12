/* SPDX-License-Identifier: Apache-2.0
 *
 * cli/sync_compare.c - where the source put a pod, and where the destination's scheduler did
 */
#include "cli/sync_compare.h"

#include "common/api/reflector.h"
#include "proto/kubernetes/kubernetes.pb-c.h"

struct pair {
    char *source, *here; /* NULL: not known (yet) */
    bool counted;
};
struct bh_compare {
    bh_compare_fn *on_different;
    void *arg;
    struct bh_reflector *pods;
    struct bh_map pairs; /* "ns/name" */
    struct bh_compare_counts counts;
};

static struct pair *pair_of(struct bh_compare *c, const char *ns, const char *name, char key[600])
{
    int n = snprintf(key, 600, "%.253s/%.253s", ns, name);

    return bh_map_get(&c->pairs, key, (size_t)n);
}

static void settle(struct bh_compare *c, const char *key, struct pair *p)
{
    if (p->counted || !p->source || !p->here)
        return;
    bool same = bh_streq(p->source, p->here);
    p->counted = true;
    c->counts.waiting--;
    c->counts.same += same;
    c->counts.different += !same;
    if (!same)
        c->on_different(c->arg, key, p->source, p->here);
}

static void pair_free(struct pair *p)
{
    free(p->source);
    free(p->here);
    free(p);
}

void bh_compare_source(struct bh_compare *c, const struct bh_json *pod, bool added, bool given)
{
    const struct bh_json *meta = bh_json_get(pod, "metadata");
    const char *node = bh_json_get_text(bh_json_get(pod, "spec"), "nodeName");
    char key[600];
    struct pair *p =
        pair_of(c, bh_json_get_text(meta, "namespace"), bh_json_get_text(meta, "name"), key);

    if (!p && added && !given) {
        p = bh_calloc(1, sizeof(*p));
        bh_map_put(&c->pairs, key, strlen(key), p);
    }
    if (!p || p->source || !*node)
        return;
    p->source = bh_strdup(node);
    c->counts.waiting++;
    settle(c, key, p);
}

void bh_compare_gone(struct bh_compare *c, const char *ns, const char *name)
{
    char key[600];
    struct pair *p = pair_of(c, ns, name, key);

    if (!p)
        return;
    bh_map_del(&c->pairs, key, strlen(key));
    c->counts.waiting -= p->source && !p->counted;
    pair_free(p);
}

static void on_pod(void *arg, const struct bh_kind_info *k, const struct bh_reflector_event *ev)
{
    struct bh_compare *c = arg;
    const K8s__Pod *pod = (const K8s__Pod *)ev->object;
    char key[600];
    struct pair *p = pair_of(c, ev->ns, ev->name, key);

    (void)k;
    if (!p || p->here || ev->type == BH_WATCH_DELETED || !pod || !pod->spec ||
        !*pod->spec->nodename)
        return;
    p->here = bh_strdup(pod->spec->nodename);
    settle(c, key, p);
}

struct bh_compare *bh_compare_new(struct bh_cluster *to, bh_compare_fn *on_different, void *arg)
{
    struct bh_compare *c = bh_calloc(1, sizeof(*c));
    const struct bh_reflector_callbacks cb = {.on_event = on_pod, .arg = c};

    c->on_different = on_different;
    c->arg = arg;
    c->pods = bh_reflector_new(to->loop, to->client, &bh_kinds[BH_KIND_POD], &cb);
    return c;
}

void bh_compare_free(struct bh_compare *c)
{
    struct bh_map_entry *e;

    if (!c)
        return;
    bh_reflector_free(c->pods);
    for (size_t it = 0; (e = bh_map_next(&c->pairs, &it));)
        pair_free(e->value);
    bh_map_fini(&c->pairs);
    free(c);
}

struct bh_compare_counts bh_compare_counts(const struct bh_compare *c)
{
    return c->counts;
}
