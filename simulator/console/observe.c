/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/console/observe.c - a copy of a cluster that others run, and how its scheduler's choices
 * compare with Berth's (berth up --observe)
 *
 * Only this file has the credentials of that cluster, and all it sends there are GETs (lists and
 * watches). The copy is written by nobody else: security.c refuses every other change.
 */
#include "simulator/console/observe.h"
#include "simulator/console/parts.h"

#include "common/base/log.h"
#include "scheduler/config/config.h"
#include "simulator/console/compare.h"
#include "simulator/follow/follow.h"

struct bh_console_observe {
    struct bh_sim *sim;
    struct bh_cluster from;
    struct bh_take take;
    struct bh_follow *follow;
    struct bh_sched_config *config;
    struct bh_comparison *comparison;
    struct bh_arena arena; /* of one change */
    int64_t since_ns;
    uint64_t synced_rv; /* what is bound from then on is compared; 0 = not yet */
    char **trouble;     /* of each of bh_clean_kinds, NULL = none */
};

/* ---- from the cluster into the copy ----------------------------------------------------------- */

static const struct bh_sim_type *type_of(const struct bh_clean_kind *k)
{
    char version[80];

    return bh_sim_type_of_kind(bh_clean_api_version(k, version), k->kind);
}

static void on_change(void *arg, const struct bh_clean_kind *k, bool added BH_UNUSED,
                      bool initial BH_UNUSED, const struct bh_json *obj)
{
    struct bh_console_observe *o = arg;
    const struct bh_json *meta = bh_json_get(obj, "metadata");

    bh_arena_reset(&o->arena);
    bh_sim_mirror(o->sim, type_of(k), bh_json_get_text(meta, "namespace"),
                  bh_json_get_text(meta, "name"), &o->arena, bh_json_clone(&o->arena, obj));
}

static void on_gone(void *arg, const struct bh_clean_kind *k, const char *ns, const char *name)
{
    struct bh_console_observe *o = arg;

    bh_sim_mirror(o->sim, type_of(k), ns, name, &o->arena, NULL);
}

static void on_all_synced(void *arg)
{
    struct bh_console_observe *o = arg;

    o->synced_rv = bh_sim_revision(o->sim);
    o->since_ns = bh_sim_now_ns(o->sim);
    bh_log_info("The copy is complete, bindings are compared from now on",
                bh_kv_s("server", o->from.cfg->server));
}

static void on_trouble(void *arg, const struct bh_clean_kind *k, const char *text)
{
    struct bh_console_observe *o = arg;
    char **t = &o->trouble[k - bh_clean_kinds];

    free(*t);
    *t = text ? bh_strdup(text) : NULL;
}

static void on_commit(void *arg, enum bh_sim_change change, struct bh_sim_obj *old,
                      struct bh_sim_obj *obj)
{
    struct bh_console_observe *o = ((struct bh_console *)arg)->observe;

    if (o) /* else stopped */
        bh_comparison_commit(o->comparison, change, old, obj,
                             o->synced_rv && obj->rv > o->synced_rv);
}

/* ---- telling --------------------------------------------------------------------------------- */

struct bh_json *bh_console_observed(struct bh_console *c, struct bh_arena *a)
{
    const struct bh_console_observe *o = c->observe;
    struct bh_json *doc, *left_out;
    const char *lost = "";
    char since[32] = "";

    if (!o)
        return NULL;
    if (o->synced_rv)
        bh_time_format_ns(since, o->since_ns);
    /* Without the right to pods nothing begins: later it is the cluster that does not answer, and all
     * kinds say the same. */
    for (size_t i = 0; i < bh_clean_n_kinds; i++)
        if (o->trouble[i] && bh_streq(bh_clean_kinds[i].plural, "pods"))
            lost = o->trouble[i];
    doc = bh_json_make(a, "server: %s, name?: %s, synced: %i, since?: %s, lost?: %s, leftOut: []",
                       o->from.cfg->server, o->from.cfg->cluster, o->synced_rv != 0, since, lost);
    left_out = bh_json_get(doc, "leftOut");
    for (size_t i = 0; i < bh_clean_n_kinds && !*lost; i++)
        if (o->trouble[i])
            bh_json_append(a, left_out, "resource: %s, message: %s", bh_clean_kinds[i].plural,
                           o->trouble[i]);
    return doc;
}

void bh_console_comparison(struct bh_console_req *c)
{
    struct bh_console *console = c->r->sim->console;
    struct bh_json *doc = bh_console_observed(console, c->r->a);

    if (!doc) {
        bh_console_fail(c->r, 404, NULL, 0,
                        "this server observes no other cluster (berth up --observe)");
        return;
    }
    bh_comparison_tell(console->observe->comparison, c->r->a, doc);
    bh_console_reply(c->r, 200, doc);
}

/* ---- life ------------------------------------------------------------------------------------ */

int bh_console_observe(struct bh_sim *s, const char *config, struct bh_err *err)
{
    struct bh_console_observe *o = s->console->observe = bh_calloc(1, sizeof(*o));
    const struct bh_follow_options fo = {.from = &o->from,
                                         .take = &o->take,
                                         .on_change = on_change,
                                         .on_gone = on_gone,
                                         .on_all_synced = on_all_synced,
                                         .on_trouble = on_trouble,
                                         .arg = o,
                                         .program = "berth-simulator"};

    o->sim = s;
    o->take.mirror = true;
    o->trouble = bh_calloc(bh_clean_n_kinds, sizeof(*o->trouble));
    int rc = bh_sched_config_load(config, &o->config, err);
    if (rc == 0)
        rc = bh_comparison_new(s, o->config, &o->comparison, err);
    if (rc == 0)
        rc = bh_cluster_open(&o->from, bh_sim_loop(s), s->opt.observe, NULL, "berth-observe", err);
    if (rc == 0)
        rc = bh_cluster_reach(&o->from, "cluster to observe", err);
    if (rc < 0)
        return rc;
    bh_sim_listen(s, NULL, on_commit, s->console);
    return bh_follow_start(&fo, &o->follow, err);
}

void bh_console_observe_stop(struct bh_console *c)
{
    struct bh_console_observe *o = c->observe;

    if (!o)
        return;
    c->observe = NULL;
    bh_follow_free(o->follow);
    bh_cluster_close(&o->from);
    bh_comparison_free(o->comparison);
    bh_sched_config_free(o->config);
    for (size_t i = 0; i < bh_clean_n_kinds; i++)
        free(o->trouble[i]);
    free(o->trouble);
    bh_arena_fini(&o->arena);
    free(o);
}
