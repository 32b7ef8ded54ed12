/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/simulation/plugin.c - a plugin that writes: at Reserve for its pod, and a few times for no pod
 *
 * A pod's mark names the node that it was meant for when it was written. A patch that is applied late
 * leaves the mark of another node on a pod that is bound: load_wrong_mark() finds it.
 */
#include "scheduler/cache/reservations.h"
#include "scheduler/framework/asks.h"
#include "scheduler/framework/plugin.h"
#include "tests/simulation/simulation.h"

#define TENDS 3u /* so often each instance wants something written for no pod */

struct instance {
    struct bh_reservations *reserved;
    struct bh_plugin_asks *asks;
    struct process *of;
    unsigned life, tended;
};
static struct instance *newest[1 + MAX_HOSTS * (2 + MAX_BINDERS)]; /* by place in processes */

static int create_instance(const struct bh_plugin_env *env, const struct bh_json *args, void **ret,
                           struct bh_err *err)
{
    struct instance *i = bh_arena_alloc(env->arena, sizeof(*i));

    (void)args, (void)err;
    *i = (struct instance){.reserved = env->reserved, .asks = env->asks, .of = world.running};
    if (i->of) {
        i->life = i->of->life;
        newest[i->of - processes] = i;
    }
    *ret = i;
    return 0;
}

static const struct bh_status *reserve(struct bh_call *c, bh_sym node)
{
    const struct instance *i = c->args;
    const struct bh_pod_rec *r = c->pod->rec;
    struct bh_reservation *v = bh_reservation_for(i->reserved, bh_rec_uid(r), node);
    const struct bh_patch mark = {
        .api_version = "v1",
        .resource = "pods",
        .body = bh_arena_printf(&v->arena, "{\"metadata\":{\"annotations\":{\"" MARK "\":\"%s\"}}}",
                                bh_sym_text(c->tab, node))};
    const struct bh_write w = {.what = BH_WRITE_PATCH,
                               .namespace_ =
                                   bh_arena_strdup(&v->arena, bh_rec_text(r, r->namespace_).p),
                               .name = bh_arena_strdup(&v->arena, bh_rec_text(r, r->name).p),
                               .uid = bh_arena_strdup(&v->arena, bh_rec_text(r, r->uid).p),
                               .patch = bh_arena_memdup(&v->arena, &mark, sizeof(mark)),
                               .plugin = PLUGIN};

    bh_reservation_add(v, &w);
    return NULL;
}

/* The mark stays: the next attempt writes another. */
static void unreserve(struct bh_call *c, bh_sym node)
{
    (void)c, (void)node;
}

static void tend(struct bh_call *c)
{
    static const struct bh_patch p = {
        .api_version = "v1",
        .resource = "configmaps",
        .json = true,
        .body = "[{\"op\":\"test\",\"path\":\"/metadata/name\",\"value\":\"" TENDED "\"},"
                "{\"op\":\"add\",\"path\":\"/metadata/labels/tended\",\"value\":\"yes\"}]"};
    struct instance *i = (struct instance *)(uintptr_t)c->args;

    if (i->tended == TENDS || !bh_asks_write(i->asks, &(struct bh_write){.what = BH_WRITE_PATCH,
                                                                         .namespace_ = "default",
                                                                         .name = TENDED,
                                                                         .uid = "",
                                                                         .patch = &p,
                                                                         .plugin = PLUGIN}))
        return;
    i->tended++;
    reach(plugin_tended);
}

static const struct bh_plugin plugin = {BH_PLUGIN_HEAD(PLUGIN),      .flags = BH_PLUGIN_NODE_LOCAL,
                                        .args_new = create_instance, .reserve = reserve,
                                        .unreserve = unreserve,      .tend = tend};
const struct bh_plugin *const bh_plugins_extra[] = {&plugin, NULL};

bool plugin_is_tended(const struct process *p)
{
    const struct instance *i = newest[p - processes];

    return i && i->life == p->life && i->tended == TENDS;
}
