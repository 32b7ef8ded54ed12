/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/config/flags.c - what the command line changes in a configuration that has been read
 *
 * Upstream: cmd/kube-scheduler/app/options/options.go (ApplyTo, ApplyDeprecated,
 *           ApplyLeaderElectionTo), apis/config/v1/default_plugins.go (applyFeatureGates).
 */
#include <pthread.h>

#include "common/base/buf.h"
#include "common/base/log.h"
#include "scheduler/config/config_int.h"
#include "scheduler/framework/plugin.h"

/* ---- the tree that people are shown ---------------------------------------------------------- */

static void put_number(struct bh_arena *a, struct bh_json *o, const char *key, double v)
{
    const struct bh_json *old = bh_json_get(o, key);

    if (old && old->type == BH_JSON_NUMBER && strtod(old->s.p, NULL) == v)
        return;
    struct bh_json *n = bh_json_new(a, BH_JSON_NUMBER);
    struct bh_buf text = {0};
    bh_buf_addf64(&text, v);
    n->s = (struct bh_str){bh_arena_strdup(a, text.p), text.n};
    bh_buf_fini(&text);
    bh_json_set(a, o, key, n);
}

static void put_duration(struct bh_arena *a, struct bh_json *o, const char *key, int64_t ns)
{
    char text[32];

    bh_format_duration_ns(ns, text);
    bh_json_set_str(a, o, key, text);
}

/* ---- plugins that belong to a gate ----------------------------------------------------------- */

static void drop_plugin(struct bh_sched_config *c, const char *name)
{
    for (uint32_t i = 0; i < c->n_profiles; i++) {
        struct bh_profile_config *p = &c->profiles[i];
        for (unsigned pt = 0; pt < BH_POINT_COUNT; pt++) {
            uint32_t kept = 0;
            for (uint32_t k = 0; k < p->n_points[pt]; k++)
                if (!bh_streq(p->points[pt][k].name, name))
                    p->points[pt][kept++] = p->points[pt][k];
            p->n_points[pt] = kept;
        }
    }
}

static bool keeps_out(const struct bh_json *set, const char *name)
{
    const struct bh_json *off = bh_json_get(set, "disabled");

    return bh_config_named(off, "*") || bh_config_named(off, name);
}

/* Behind multiPoint's others, unless the file names the plugin itself: as a default of upstream's. */
static bool add_plugin(struct bh_sched_config *c, const char *gate, const char *name)
{
    bool any = false;

    bh_json_each(p, bh_feature_enabled(c->gates, gate) ? bh_json_get(c->tree, "profiles") : NULL) {
        struct bh_json *plugins = bh_json_get(p, "plugins");
        struct bh_json *multi = bh_json_get(plugins, bh_point_names[BH_POINT_MULTI]);
        if (keeps_out(multi, name) || bh_config_named(bh_json_get(multi, "enabled"), name))
            continue;
        bh_config_push_plugin(&c->arena, multi, "enabled", name, 0, 0);
        any = true;
    }
    return any;
}

/* multiPoint has more plugins than when the profiles were made. */
static void expand_again(struct bh_sched_config *c)
{
    struct bh_config_report r;
    struct bh_config_ctx x = {.a = &c->arena, .report = &r};
    uint32_t i = 0;

    bh_config_report_init(&r);
    bh_json_each(p, bh_json_get(c->tree, "profiles")) {
        const struct bh_profile_config before = c->profiles[i];
        memset(c->profiles[i].n_points, 0, sizeof c->profiles[i].n_points);
        if (bh_config_expand(&x, &c->profiles[i], p) < 0) {
            bh_log_error("Plugins of feature gates do not run", bh_kv_s("err", r.summary));
            c->profiles[i] = before;
        }
        i++;
    }
    bh_config_report_fini(&r);
}

void bh_sched_config_apply_gates(struct bh_sched_config *c, const struct bh_feature_gates *g)
{
    static const struct {
        const char *gate, *plugin;
        bool listed; /* among the defaults whatever the gate says */
    } rows[] = {{"NodeDeclaredFeatures", "NodeDeclaredFeatures", true},
                {"DynamicResourceAllocation", "DynamicResources", true},
                {"GangScheduling", "GangScheduling", false},
                {"TopologyAwareWorkloadScheduling", "TopologyPlacementGenerator", false},
                {"TopologyAwareWorkloadScheduling", "PodGroupPodsCount", false}};
    bool any = false;

    c->gates = g;
    for (size_t i = 0; i < BH_ARRAY_LEN(rows); i++)
        any |= !rows[i].listed && add_plugin(c, rows[i].gate, rows[i].plugin);
    if (any)
        expand_again(c);
    for (size_t i = 0; i < BH_ARRAY_LEN(rows); i++)
        if (!bh_feature_enabled(g, rows[i].gate))
            drop_plugin(c, rows[i].plugin);
}

void bh_sched_config_apply_flags(struct bh_sched_config *c, const struct bh_kube_flags *f)
{
    struct bh_component_config shared = {.leader = c->leader_election,
                                         .client = c->client_connection};

    bh_kube_flags_apply(f, &shared);
    c->leader_election = shared.leader;
    c->client_connection = shared.client;
    if (!*f->config && bh_kube_flags_given(f, "profiling"))
        c->enable_profiling = f->profiling;
    if (!*f->config && bh_kube_flags_given(f, "contention-profiling"))
        c->enable_contention_profiling = f->contention_profiling;
    struct bh_json *tree = (struct bh_json *)c->tree;
    struct bh_json *l = bh_json_get(tree, "leaderElection");
    struct bh_json *k = bh_json_get(tree, "clientConnection");
    struct bh_arena *a = &c->arena;
    bh_json_set_bool(a, tree, "enableProfiling", c->enable_profiling);
    bh_json_set_bool(a, tree, "enableContentionProfiling", c->enable_contention_profiling);
    bh_json_set_bool(a, l, "leaderElect", c->leader_election.leader_elect);
    put_duration(a, l, "leaseDuration", c->leader_election.lease_duration_ns);
    put_duration(a, l, "renewDeadline", c->leader_election.renew_deadline_ns);
    put_duration(a, l, "retryPeriod", c->leader_election.retry_period_ns);
    bh_json_set_str(a, l, "resourceLock", c->leader_election.resource_lock);
    bh_json_set_str(a, l, "resourceName", c->leader_election.resource_name);
    bh_json_set_str(a, l, "resourceNamespace", c->leader_election.resource_namespace);
    bh_json_set_str(a, k, "kubeconfig", c->client_connection.kubeconfig);
    bh_json_set_str(a, k, "contentType", c->client_connection.content_type);
    put_number(a, k, "qps", c->client_connection.qps);
    put_number(a, k, "burst", c->client_connection.burst);
    bh_config_sort(tree);
    bh_sched_config_apply_gates(c, &f->gates);
}

/* Of every engine of the process; constant once made. */
static struct bh_feature_gates default_gates;

static void make_default_gates(void)
{
    bh_feature_gates_init(&default_gates);
}

bool bh_sched_config_gate(const struct bh_sched_config *c, const char *name)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    if (c && c->gates)
        return bh_feature_enabled(c->gates, name);
    pthread_once(&once, make_default_gates);
    return bh_feature_enabled(&default_gates, name);
}

/* ---- gates that Berth cannot switch ---------------------------------------------------------- */

static char gate_lines[] =
#include "scheduler/config/gates.data.h"
    ;

static void end_gate_lines(void)
{
    for (char *p = gate_lines; (p = strchr(p, '\n'));)
        *p++ = '\0';
}

const char *bh_sched_gate_instead(const char *name)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    const size_t n = strlen(name);

    pthread_once(&once, end_gate_lines);
    for (const char *p = gate_lines; *p; p += strlen(p) + 1)
        if (strncmp(p, name, n) == 0 && p[n] == ' ')
            return p + n + 1;
    return NULL;
}

struct idle_gates {
    void (*fn)(void *arg, const char *name, bool enabled, const char *instead);
    void *arg;
};

static void on_gate(void *arg, const struct bh_feature_state *s)
{
    const struct idle_gates *x = arg;
    const char *instead = s->differs ? bh_sched_gate_instead(s->name) : NULL;

    if (instead)
        x->fn(x->arg, s->name, s->enabled, instead);
}

void bh_sched_gates_each_idle(const struct bh_feature_gates *g,
                              void (*fn)(void *arg, const char *name, bool enabled,
                                         const char *instead),
                              void *arg)
{
    bh_feature_gates_each(g, on_gate, &(struct idle_gates){fn, arg});
}

static void warn(void *arg BH_UNUSED, const char *name, bool enabled, const char *instead)
{
    bh_log_warn("Feature gate has no effect", bh_kv_s("featureGate", name),
                bh_kv_s("value", enabled ? "true" : "false"), bh_kv_s("instead", instead));
}

void bh_sched_gates_warn(const struct bh_feature_gates *g)
{
    bh_sched_gates_each_idle(g, warn, NULL);
}
