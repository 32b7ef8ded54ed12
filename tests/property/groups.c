/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/property/groups.c - pods that go together: both engines say the same of them, and nobody goes
 * alone
 */
#include <inttypes.h>

#include "common/base/buf.h"
#include "scheduler/cache/groups.h"
#include "tests/property/property.h"

#define MEMBERS_MAX 16u

struct members {
    struct thing *v[MEMBERS_MAX];
    uint32_t n;
    struct bh_group_try try[ENGINES][MEMBERS_MAX];
    struct bh_group_result result[ENGINES];
};

const char *group_name(const struct thing *pod)
{
    return bh_json_get_str(bh_json_path(pod->object, "spec.schedulingGroup"), "podGroupName");
}

static const char *scheduler_of(const struct thing *t)
{
    const char *s = bh_json_get_str(bh_json_get(t->object, "spec"), "schedulerName");
    return s ? s : "default-scheduler";
}

static bool goes_with(struct world *w, const struct thing *pod, const struct thing *t)
{
    const struct bh_pending p = pending_of(w, t, MAIN);

    return t->place == POD_PENDING && group_name(t) && bh_streq(group_name(t), group_name(pod)) &&
           bh_streq(thing_namespace(t), thing_namespace(pod)) &&
           bh_streq(scheduler_of(t), scheduler_of(pod)) &&
           !bh_json_path(t->object, "metadata.deletionTimestamp") &&
           !bh_engine_pre_enqueue(w->w[MAIN].engine, &p);
}

static void collect(struct world *w, struct members *m, const struct thing *pod)
{
    struct bh_arena a;

    bh_arena_init(&a, 0);
    for (struct thing **v = all_things(w, &a, BH_KIND_POD); *v && m->n < MEMBERS_MAX; v++)
        if (goes_with(w, pod, *v))
            m->v[m->n++] = *v;
    bh_arena_fini(&a);
}

/* ---- what was said --------------------------------------------------------------------------- */

static const char *text_of(const struct bh_symtab *tab, bh_sym s)
{
    return s == BH_SYM_NONE ? "nowhere" : bh_sym_text(tab, s);
}

static void add_placements(struct bh_buf *b, const struct bh_group_result *r)
{
    for (uint32_t i = 0; i < r->n_placements; i++) {
        const struct bh_placement_try *p = &r->placements[i];
        bh_buf_addf(b,
                    "placement %s: %u of %u nodes, fits %d, waiting %d, chosen %d, %" PRId64 "\n",
                    p->name, p->placed, p->nodes, p->fits, p->waiting, p->chosen, p->score);
    }
}

static void add_member(struct bh_buf *b, const struct bh_symtab *tab, const struct bh_group_try *t)
{
    const struct bh_decision *d = &t->decision;

    bh_buf_addf(b, "%s: %s, preempts %d, permitted %d, assumed %d",
                bh_rec_text(t->pod.pod, t->pod.pod->name).p, text_of(tab, t->node), t->preempts,
                t->permitted, t->assumed);
    if (t->node == BH_SYM_NONE && t->decided && d->kind != BH_DECISION_ERROR)
        bh_buf_addf(b, ", %s", d->message ? d->message : "");
    bh_buf_addc(b, '\n');
}

/* Of several errors the first one met is told, and what was tried before it has no meaning. */
static void describe(struct world *w, const struct members *m, unsigned e, struct bh_buf *b)
{
    const struct bh_group_result *r = &m->result[e];
    const struct bh_symtab *tab = bh_engine_symtab(w->w[e].engine);

    bh_buf_addf(b, "%s\n", bh_code_name(r->code));
    if (r->code == BH_ERROR)
        return;
    /* who has no start time yet, as assumed pods, is chosen from by chance */
    bh_buf_addf(b, "%s, waiting %d, %u victims\n", r->message, r->waiting,
                has_assumed(w) ? 0 : r->n_victims);
    add_placements(b, r);
    for (uint32_t i = 0; i < m->n; i++)
        add_member(b, tab, &m->try[e][i]);
}

/* Equal totals are drawn where the first is not taken, and what is drawn decides about the next. */
static void compare(struct world *w, const struct members *m, const struct thing *pod)
{
    struct bh_buf b[ENGINES] = {{0}};
    char difference[4000];

    if (!w->first)
        return;
    for (unsigned e = 0; e < ENGINES; e++)
        describe(w, m, e, &b[e]);
    first_difference(bh_buf_str(&b[MAIN]), bh_buf_str(&b[FAST]), difference, sizeof difference);
    if (!bh_streq(bh_buf_str(&b[MAIN]), bh_buf_str(&b[FAST])))
        fail(w, "fast path of a group", "group %s: %s", group_name(pod), difference);
    for (unsigned e = 0; e < ENGINES; e++)
        bh_buf_fini(&b[e]);
}

/* ---- what must hold -------------------------------------------------------------------------- */

static const char *domain_of(const struct world *w, const char *key, const char *node)
{
    const struct thing *t = find_thing(w, BH_KIND_NODE, NULL, node);
    const char *s = t ? bh_json_get_str(bh_json_path(t->object, "metadata.labels"), key) : NULL;
    return s ? s : "";
}

static bool gate(const struct world *w, const char *name)
{
    return bh_sched_config_gate(w->config, name);
}

/* A gang goes when enough of it have a node, and where its PodGroup says. */
static void check_quorum(struct world *w, const struct members *m, const struct thing *pod)
{
    const struct thing *g = find_thing(w, BH_KIND_PODGROUP, thing_namespace(pod), group_name(pod));
    const int64_t min =
        g ? bh_json_get_i64(bh_json_path(g->object, "spec.schedulingPolicy.gang"), "minCount", 0)
          : 0;
    const char *key = bh_json_get_str(
        bh_json_at(g ? bh_json_path(g->object, "spec.schedulingConstraints.topology") : NULL, 0),
        "key");
    const struct bh_pending p = pending_of(w, m->v[0], MAIN);
    const struct bh_group *members = bh_engine_group_of(w->w[MAIN].engine, &p);
    const struct bh_symtab *tab = bh_engine_symtab(w->w[MAIN].engine);
    const char *first = NULL;

    if (gate(w, "GangScheduling") && (!members || bh_group_scheduled(members) < min))
        fail(w, "quorum", "group %s goes with %u of %" PRId64, group_name(pod),
             members ? bh_group_scheduled(members) : 0, min);
    for (uint32_t i = 0; i < m->n && key && gate(w, "TopologyAwareWorkloadScheduling"); i++) {
        const struct bh_group_try *t = &m->try[MAIN][i];
        const char *domain = t->assumed ? domain_of(w, key, text_of(tab, t->node)) : NULL;
        if (domain && !bh_streq(domain, first ? first : domain))
            fail(w, "domain", "group %s goes into %s %s and %s", group_name(pod), key, first,
                 domain);
        first = domain ? domain : first;
    }
}

static void check_result(struct world *w, const struct members *m, const struct thing *pod)
{
    uint32_t assumed = 0;

    for (uint32_t i = 0; i < m->n; i++)
        assumed += m->try[MAIN][i].assumed;
    if (m->result[MAIN].code != BH_SUCCESS && assumed)
        fail(w, "half a group", "group %s does not go, %u of it are assumed", group_name(pod),
             assumed);
    /* a profile may have the plugins off */
    if (m->result[MAIN].code == BH_SUCCESS && !bh_json_get(w->scenario, "config"))
        check_quorum(w, m, pod);
}

/* ---- a cycle --------------------------------------------------------------------------------- */

static void give_back(struct world *w, const struct members *m)
{
    for (unsigned e = 0; e < ENGINES; e++) {
        struct bh_engine *engine = w->w[e].engine;
        for (uint32_t i = m->n; i > 0; i--) {
            const struct bh_group_try *t = &m->try[e][i - 1];
            if (!t->assumed)
                continue;
            bh_offline_give_back(&w->w[e], &t->pod, t->node);
            if (m->v[i - 1]->nominated)
                bh_engine_nominate(engine, &t->pod, sym_in(engine, m->v[i - 1]->nominated));
        }
    }
}

static void bind_all(struct world *w, const struct members *m)
{
    const struct bh_symtab *tab = bh_engine_symtab(w->w[MAIN].engine);
    const char *node[MEMBERS_MAX];

    for (uint32_t i = 0; i < m->n; i++)
        node[i] = m->try[MAIN][i].assumed
                      ? bh_arena_strdup(&w->arena, text_of(tab, m->try[MAIN][i].node))
                      : NULL;
    for (uint32_t i = 0; i < m->n && !failed(w); i++)
        if (node[i] && assume_pod(w, m->v[i], node[i]))
            bind_pod(w, m->v[i], node[i]);
}

void schedule_group(struct world *w, struct thing *pod, bool bind)
{
    struct members m = {.n = 0};

    if (!goes_with(w, pod, pod)) {
        w->n->gated++;
        return;
    }
    collect(w, &m, pod);
    w->n->groups++;
    w->n->decisions += m.n;
    for (unsigned e = 0; e < ENGINES; e++) {
        for (uint32_t i = 0; i < m.n; i++)
            m.try[e][i].pod = pending_of(w, m.v[i], e);
        bh_engine_schedule_group(w->w[e].engine, m.try[e], m.n, 0, w->w[MAIN].now_ns, &m.result[e]);
    }
    compare(w, &m, pod);
    check_result(w, &m, pod);
    const bool placed = m.result[MAIN].code == BH_SUCCESS;
    w->n->groups_placed += placed;
    give_back(w, &m);
    if (placed && bind && !failed(w))
        bind_all(w, &m);
}
