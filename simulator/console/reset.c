/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/console/reset.c - back to how everything was at the start
 *
 * The objects of that moment are kept by reference. Whatever is there now and was not, or is not
 * the same any more, goes at once, finalizers or not; then what is missing comes back with its old
 * uid and a new revision. Watchers see DELETED and ADDED, revisions only rise, and it all happens
 * in one turn of the loop, so that no controller sees a half of it.
 * Leases belong to their holders and stay. Definitions of custom kinds that came later go by
 * their own rules, with their objects; one that was there at the start and is gone does not come
 * back.
 */
#include "simulator/console/parts.h"

#include <stdio.h>

#include "simulator/replay/engine.h"

struct bh_console_baseline {
    struct bh_sim_objs objs;
    char **definitions; /* uids of the custom kinds of that moment */
    size_t n_definitions;
    char *config; /* of the scheduler's file at that moment, NULL = there was none */
    size_t config_n;
    char path[180]; /* of the file, "" = none */
};

static bool is_system_namespace(const char *name)
{
    return bh_streq(name, "default") || strncmp(name, "kube-", 5) == 0;
}

bool bh_console_is_system(const struct bh_sim_type *t, const char *ns, const char *name)
{
    static const char groups[] = "rbac.authorization.k8s.io apiregistration.k8s.io "
                                 "apiextensions.k8s.io certificates.k8s.io";
    if (bh_word_at(groups, t->group) >= 0 || bh_streq(t->kind, "Lease"))
        return true;
    if (bh_streq(t->kind, "Namespace"))
        return is_system_namespace(name);
    if (bh_streq(t->kind, "PriorityClass"))
        return strncmp(name, "system-", 7) == 0;
    if (bh_streq(t->kind, "ServiceAccount"))
        return bh_streq(name, "default") || strncmp(ns, "kube-", 5) == 0;
    if (bh_streq(t->kind, "ConfigMap"))
        return bh_streq(name, "kube-root-ca.crt") || strncmp(ns, "kube-", 5) == 0;
    return bh_streq(ns, "default") && bh_streq(name, "kubernetes") &&
           bh_word_at("Service Endpoints EndpointSlice", t->kind) >= 0;
}

static void delete_now(struct bh_sim *s, const struct bh_sim_obj *o)
{
    struct bh_sim_slot *slot = bh_sim_slot_get(s, o->type, o->ns, o->name);

    if (slot)
        bh_sim_commit_delete(s, slot);
}

/* NULL: a custom kind that was withdrawn. */
static bool is_ours(const struct bh_sim_type *t)
{
    return t && bh_sim_type_stores(t) && !(t->flags & BH_SIM_REVIEW) &&
           !bh_streq(t->kind, "Lease") && !bh_streq(t->group, "apiextensions.k8s.io");
}

size_t bh_console_wipe(struct bh_sim *s)
{
    size_t n = 0;

    for (size_t i = 0; i < bh_sim_type_count(s); i++) {
        const struct bh_sim_type *t = bh_sim_type_at(s, i);
        if (!is_ours(t))
            continue;
        BH_CLEANUP(bh_sim_objs_fini) struct bh_sim_objs l = bh_sim_listed(s, t, NULL);
        for (size_t k = 0; k < l.n; k++) {
            const struct bh_sim_obj *o = l.v[k];
            /* what a namespace that goes has for itself goes with it */
            bool stays = bh_console_is_system(o->type, o->ns, o->name) &&
                         (!*o->ns || is_system_namespace(o->ns));
            if (stays)
                continue;
            delete_now(s, o);
            n++;
        }
    }
    return n;
}

/* ---- the start ------------------------------------------------------------------------------- */

static void forget_definitions(struct bh_console_baseline *b)
{
    while (b->n_definitions)
        free(b->definitions[--b->n_definitions]);
    free(b->definitions);
    b->definitions = NULL;
}

static void mark(struct bh_console *c)
{
    struct bh_console_baseline *b = c->baseline;
    struct bh_sim *s = c->sim;
    const struct bh_sim_type *crd = bh_sim_find_kind(s, NULL, "CustomResourceDefinition");
    BH_CLEANUP(bh_sim_objs_fini) struct bh_sim_objs l = bh_sim_listed(s, crd, NULL);

    forget_definitions(b);
    b->definitions = bh_calloc(l.n + 1, sizeof(*b->definitions));
    for (size_t i = 0; i < l.n; i++)
        b->definitions[b->n_definitions++] = bh_strdup(l.v[i]->uid);
    bh_sim_objs_fini(&b->objs);
    for (size_t i = 0; i < bh_sim_type_count(c->sim); i++) {
        const struct bh_sim_type *t = bh_sim_type_at(c->sim, i);
        if (is_ours(t) && !bh_streq(t->kind, "Event"))
            bh_console_list_more(c->sim, t, &b->objs);
    }
}

/* Everything but the revision is as it was. */
static bool unchanged(const struct bh_sim_obj *a, const struct bh_sim_obj *b)
{
    return a == b || (a->json_n == b->json_n && a->rv_n == b->rv_n && a->rv_at == b->rv_at &&
                      memcmp(a->json, b->json, a->rv_at) == 0 &&
                      memcmp(a->json + a->rv_at + a->rv_n, b->json + b->rv_at + b->rv_n,
                             a->json_n - a->rv_at - a->rv_n) == 0);
}

static void clear(struct bh_sim *s, const struct bh_console_baseline *b)
{
    BH_CLEANUP(bh_map_fini) struct bh_map keep = {0};

    for (size_t i = 0; i < b->objs.n; i++)
        (void)bh_map_put(&keep, b->objs.v[i]->uid, strlen(b->objs.v[i]->uid), b->objs.v[i]);
    for (size_t i = 0; i < bh_sim_type_count(s); i++) {
        const struct bh_sim_type *t = bh_sim_type_at(s, i);
        if (!is_ours(t))
            continue;
        BH_CLEANUP(bh_sim_objs_fini) struct bh_sim_objs l = bh_sim_listed(s, t, NULL);
        for (size_t k = 0; k < l.n; k++) {
            const struct bh_sim_obj *was = bh_map_get(&keep, l.v[k]->uid, strlen(l.v[k]->uid));
            if (!was || !unchanged(was, l.v[k]))
                delete_now(s, l.v[k]);
        }
    }
}

static void bring_back(struct bh_sim *s, const struct bh_console_baseline *b)
{
    for (size_t i = 0; i < b->objs.n; i++) {
        struct bh_sim_obj *o = b->objs.v[i];
        bool served = false;
        for (size_t k = 0; k < bh_sim_type_count(s) && !served; k++)
            served = bh_sim_type_at(s, k) == o->type;
        if (served && !bh_sim_get(s, o->type, o->ns, o->name))
            bh_sim_commit(s, NULL, bh_sim_obj_with_rv(o, s->rv + 1), NULL);
    }
}

/* ---- the request ----------------------------------------------------------------------------- */

struct reset_job {
    const char *runtime_dir;
    char *config;
    size_t config_n;
};

/* The scheduler's configuration first: what comes back is decided with it. */
static void run(struct bh_console_job *j, void *arg)
{
    const struct reset_job *k = arg;
    struct bh_err err = {0};
    struct bh_console_place at;

    if (k->config && bh_console_config_apply(k->runtime_dir, k->config, k->config_n, &at, &err) < 0)
        bh_console_job_fail(j, 500, NULL, 0, "%s", err.msg);
}

static void done(struct bh_sim_req *r, struct bh_sim *s, void *arg BH_UNUSED)
{
    if (s->console->importing) {
        if (r)
            bh_console_fail(r, 409, NULL, 0, "an import is under way");
        return;
    }
    bh_player_stop(s->console->replay); /* it would go on filling what is emptied */
    clear(s, s->console->baseline);
    /* Their objects go with them. */
    const struct bh_console_baseline *b = s->console->baseline;
    const struct bh_sim_type *t = bh_sim_find_kind(s, NULL, "CustomResourceDefinition");
    BH_CLEANUP(bh_sim_objs_fini) struct bh_sim_objs l = bh_sim_listed(s, t, NULL);
    for (size_t i = 0; i < l.n; i++) {
        bool was = false;
        for (size_t k = 0; k < b->n_definitions && !was; k++)
            was = bh_streq(b->definitions[k], l.v[i]->uid);
        if (!was)
            (void)bh_sim_delete(s, t, "", l.v[i]->name, NULL, NULL);
    }
    bring_back(s, s->console->baseline);
    bh_console_past_note(s->console, "reset", "");
    if (r)
        bh_sim_reply_raw(r, 202, "application/json", "", 0);
}

static void release(void *arg)
{
    struct reset_job *k = arg;

    free(k->config);
    free(k);
}

void bh_console_reset(struct bh_console_req *c)
{
    struct bh_console *console = c->r->sim->console;
    const struct bh_console_baseline *b = console->baseline;

    if (bh_sim_query_bool(c->r, "mark", false)) { /* from now on, this is the start */
        mark(console);
        bh_sim_reply_raw(c->r, 202, "application/json", "", 0);
        return;
    }
    struct reset_job *k = bh_calloc(1, sizeof(*k));
    k->runtime_dir = c->r->sim->opt.runtime_dir;
    k->config = b->config ? bh_strndup(b->config, b->config_n) : NULL;
    k->config_n = b->config_n;
    bh_console_work_then(c, run, done, release, k);
}

/* ---- life ------------------------------------------------------------------------------------ */

void bh_console_baseline_start(struct bh_console *c)
{
    struct bh_console_baseline *b = bh_calloc(1, sizeof(*b));

    c->baseline = b;
    mark(c);
    if (!c->sim->opt.runtime_dir)
        return;
    snprintf(b->path, sizeof(b->path), "%s/scheduler.yaml", c->sim->opt.runtime_dir);
    if (bh_read_file(b->path, (size_t)4 << 20, &b->config, &b->config_n) < 0)
        b->config = NULL;
}

void bh_console_baseline_stop(struct bh_console *c)
{
    bh_sim_objs_fini(&c->baseline->objs);
    forget_definitions(c->baseline);
    free(c->baseline->config);
    free(c->baseline);
    c->baseline = NULL;
}
