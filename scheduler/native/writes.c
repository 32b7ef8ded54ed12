/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/native/writes.c - what plugins want written, in PreBind, as Bind and while they tend objects
 *
 * Looked at here is that it is a patch at all, and can be told from others; on which resources, in which
 * form and of which object the binder has the last word (binder/patches.h).
 *
 * Runs in: the engine's thread.
 */
#include <inttypes.h>

#include "common/data/json.h"
#include "scheduler/cache/reservations.h"
#include "scheduler/framework/framework.h"
#include "scheduler/native/native_int.h"

#define WRITES_MAX 16u   /* for a pod and plugin */
#define NAME_MAX_N 1024u /* bytes of every text but the body */
#define BODY_MAX   65535u

static bool is_word(struct berth_str s)
{
    return s.n && s.n <= NAME_MAX_N && bh_native_is_text(s);
}
static bool is_none_or_word(struct berth_str s)
{
    return !s.n || is_word(s);
}

/* NULL, or what is wrong with it. */
static const char *wrong_with(struct bh_arena *a, const struct berth_patch *p)
{
    BH_CLEANUP(bh_arena_fini) struct bh_arena tree = {0}; /* BODY_MAX bounds it */
    struct bh_json *v = NULL;
    struct bh_err err;

    if (p->size < sizeof *p)
        return bh_arena_printf(a, "its struct berth_patch has %u bytes, at least %zu are needed",
                               p->size, sizeof *p);
    if (p->type > BERTH_PATCH_JSON)
        return bh_arena_printf(a, "its patch has the type %u: BERTH_PATCH_MERGE or _JSON is needed",
                               p->type);
    if (!is_word(p->api_version) || !is_word(p->resource) || !is_word(p->name))
        return "its patch needs api_version, resource and name: printable UTF-8, at most 1024 "
               "bytes";
    if (!is_none_or_word(p->subresource) || !is_none_or_word(p->namespace_) ||
        !is_none_or_word(p->uid) || !is_none_or_word(p->resource_version))
        return "subresource, namespace, uid or resource_version of its patch is not printable "
               "UTF-8 of "
               "at most 1024 bytes";
    if (!p->body.n || p->body.n > BODY_MAX)
        return bh_arena_printf(
            a, "the body of its patch has %" PRIu64 " bytes: 1 to 65535 are needed", p->body.n);
    if (bh_json_parse(&tree, p->body.p, p->body.n, 0, &v, &err) < 0)
        return bh_arena_printf(a, "the body of its patch is no JSON: %s", err.msg);
    if (v->type != (p->type == BERTH_PATCH_JSON ? BH_JSON_ARRAY : BH_JSON_OBJECT))
        return p->type == BERTH_PATCH_JSON ? "the body of its JSON patch is no list of operations"
                                           : "the body of its merge patch is no object";
    if (p->type == BERTH_PATCH_MERGE && !p->uid.n && !p->resource_version.n)
        return "its merge patch says neither uid nor resource_version of the object that is meant";
    return NULL;
}

static const char *text_of(struct bh_arena *a, struct berth_str s)
{
    return s.n ? bh_arena_strndup(a, s.p, s.n) : "";
}

static struct bh_write write_of(struct bh_arena *a, const struct berth_patch *p, const char *plugin)
{
    struct bh_patch *patch = bh_arena_new(a, struct bh_patch);

    *patch = (struct bh_patch){.api_version = text_of(a, p->api_version),
                               .resource = text_of(a, p->resource),
                               .subresource = p->subresource.n ? text_of(a, p->subresource) : NULL,
                               .json = p->type == BERTH_PATCH_JSON,
                               .body = text_of(a, p->body)};
    return (struct bh_write){.what = BH_WRITE_PATCH,
                             .namespace_ = text_of(a, p->namespace_),
                             .name = text_of(a, p->name),
                             .uid = text_of(a, p->uid),
                             .resource_version = text_of(a, p->resource_version),
                             .patch = patch,
                             .plugin = plugin};
}

static bool is(const char *a, struct berth_str b)
{
    return bh_str_eq(bh_str_c(a ? a : ""), (struct bh_str){b.n ? b.p : "", b.n});
}

/* What it asks for again: the object's version is another one by then. */
static bool is_same(const struct bh_write *w, const struct berth_patch *p)
{
    return is(w->namespace_, p->namespace_) && is(w->name, p->name) &&
           is(w->patch->api_version, p->api_version) && is(w->patch->resource, p->resource) &&
           is(w->patch->subresource, p->subresource) && is(w->patch->body, p->body) &&
           w->patch->json == (p->type == BERTH_PATCH_JSON);
}

/* Into the pod's reservation, after what Reserve and others listed. */
static int32_t before_bind(struct bh_native *in, const struct berth_patch *p)
{
    const struct bh_pod_rec *pod = in->call->pod->rec;
    const char *name = in->of->d.name;
    struct bh_reservation *r = bh_reservation_for(in->reserved, bh_rec_uid(pod), in->node);
    uint32_t mine = 0;

    for (uint32_t i = 0; i < r->n; i++) {
        if (r->v[i].what != BH_WRITE_PATCH || r->v[i].plugin != name)
            continue;
        if (is_same(&r->v[i], p))
            return i + in->n_new < r->n ? 2 : 1; /* 1: asked for twice in one call */
        mine++;
    }
    if (mine == WRITES_MAX) {
        in->broke = "it wants more than 16 patches for one pod";
        return 0;
    }
    const struct bh_write w = write_of(&r->arena, p, name);
    bh_reservation_add(r, &w);
    in->n_new++;
    return 1;
}

static int32_t as_bind(struct bh_native *in, const struct berth_patch *p)
{
    struct bh_arena *a = in->call->arena;

    if (in->order->write) {
        in->broke = "it wants a second patch in Bind, which is one write";
        return 0;
    }
    struct bh_write w = write_of(a, p, in->of->d.name);
    in->order->write = bh_arena_memdup(a, &w, sizeof w);
    return 1;
}

/* Not for a pod: whoever runs the engine takes it after the callback. */
static int32_t while_tending(const struct bh_native *in, const struct berth_patch *p)
{
    BH_CLEANUP(bh_arena_fini) struct bh_arena a = {0}; /* bh_asks_write() copies */
    const struct bh_write w = write_of(&a, p, in->of->d.name);

    return in->asks && bh_asks_write(in->asks, &w);
}

static int32_t patch(struct berth_call *c, const struct berth_patch *p)
{
    struct bh_native *in = bh_native_callback(c, "patch");

    if (!in || in->broke)
        return 0;
    if (in->hook != BH_HOOK_PRE_BIND && in->hook != BH_HOOK_BIND && in->hook != BH_HOOK_TEND) {
        in->broke = "it wants something written outside of PreBind, Bind and tend()";
        return 0;
    }
    const char *wrong = p ? wrong_with(in->call->arena, p) : "its patch is NULL";
    if (wrong) {
        in->broke = wrong;
        return 0;
    }
    return in->hook == BH_HOOK_BIND   ? as_bind(in, p)
           : in->hook == BH_HOOK_TEND ? while_tending(in, p)
                                      : before_bind(in, p);
}

const struct berth_host_writes bh_native_writes = {
    .size = sizeof bh_native_writes,
    .patch = patch,
};
