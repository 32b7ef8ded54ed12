/* SPDX-License-Identifier: Apache-2.0
 *
 * cli/config_table.c - a configuration as columns, extension point by extension point
 */
#include <inttypes.h>
#include <stdio.h>

#include "cli/config.h"
#include "common/base/opt.h"
#include "scheduler/explain/grid.h"

struct page {
    struct bh_buf *out;
    struct bh_grid grid;
    struct bh_arena arena;
    bool colour;
};

static void heading(struct page *p, const char *text)
{
    bh_buf_addc(p->out, '\n');
    bh_text_add(p->out, BH_CELL_BOLD, p->colour, text);
    bh_buf_addc(p->out, '\n');
}

static void end_table(struct page *p)
{
    bh_grid_print(&p->grid, p->out, 2, p->colour);
}

static void row(struct page *p, const char *key, const char *fmt, ...) BH_PRINTF(3, 4);
static void row(struct page *p, const char *key, const char *fmt, ...)
{
    struct bh_buf b BH_CLEANUP(bh_buf_fini) = {0};
    va_list ap;

    va_start(ap, fmt);
    bh_buf_vaddf(&b, fmt, ap);
    va_end(ap);
    bh_grid_cell(&p->grid, 0, "%s", key);
    bh_grid_cell(&p->grid, 0, "%s", bh_buf_str(&b));
    bh_grid_row(&p->grid);
}

static const char *duration(int64_t ns, char out[static 32])
{
    bh_format_duration_ns(ns, out);
    return out;
}

static void points(struct page *p, const struct bh_profile_config *profile)
{
    bh_grid_heading(&p->grid, 0, "POINT", "PLUGIN", ">WEIGHT", NULL);
    for (unsigned pt = 0; pt < BH_POINT_COUNT; pt++) {
        unsigned look = profile->n_points[pt] ? 0 : BH_CELL_DIM;
        bh_grid_cell(&p->grid, look, "%s", bh_sched_point_name(pt));
        if (!profile->n_points[pt]) {
            bh_grid_cell(&p->grid, look, "-");
            bh_grid_row(&p->grid);
        }
        for (uint32_t k = 0; k < profile->n_points[pt]; k++) {
            if (k)
                bh_grid_cell(&p->grid, 0, "%s", "");
            bh_grid_cell(&p->grid, 0, "%s", profile->points[pt][k].name);
            if (profile->points[pt][k].weight)
                bh_grid_cell(&p->grid, BH_CELL_RIGHT, "%d", profile->points[pt][k].weight);
            bh_grid_row(&p->grid);
        }
    }
    end_table(p);
}

/* One line an argument: "scoringStrategy {...}". */
static void args(struct page *p, const struct bh_json *profile)
{
    bh_buf_addc(p->out, '\n');
    bh_grid_heading(&p->grid, 0, "PLUGIN", "ARGUMENT", "VALUE", NULL);
    bh_json_each(e, bh_json_get(profile, "pluginConfig")) {
        const char *name = bh_json_get_text(e, "name");
        bh_json_each(m, bh_json_get(e, "args")) {
            struct bh_buf b BH_CLEANUP(bh_buf_fini) = {0};
            if (bh_streq(m->key.p, "apiVersion") || bh_streq(m->key.p, "kind"))
                continue;
            if (m->type == BH_JSON_STRING)
                bh_buf_add(&b, m->s.p, m->s.n);
            else
                bh_json_write(&b, m);
            bh_grid_cell(&p->grid, 0, "%s", name);
            bh_grid_cell(&p->grid, 0, "%s", m->key.p);
            bh_grid_cell(&p->grid, 0, "%s", bh_buf_str(&b));
            bh_grid_row(&p->grid);
            name = "";
        }
    }
    end_table(p);
}

static void profile(struct page *p, const struct bh_profile_config *c, const struct bh_json *tree)
{
    struct bh_buf b BH_CLEANUP(bh_buf_fini) = {0};

    bh_buf_addf(&b, "Profile \"%s\"", c->scheduler_name);
    if (c->has_percentage)
        bh_buf_addf(&b, ", percentageOfNodesToScore %d", c->percentage_of_nodes_to_score);
    heading(p, bh_buf_str(&b));
    points(p, c);
    args(p, tree);
}

static void tls(struct page *p, const struct bh_extender_config *e)
{
    const char *ca = e->tls.ca_data.n  ? "from this configuration"
                     : *e->tls.ca_file ? e->tls.ca_file
                                       : "";
    bool blind = e->tls.insecure || (e->enable_https && !*ca);

    if (!e->tls.present && !e->enable_https)
        return;
    row(p, "  TLS", "%s%s%s%s",
        blind ? "server not verified"
        : *ca ? "CA "
              : "system's CAs",
        blind ? "" : ca, *e->tls.server_name ? ", server name " : "", e->tls.server_name);
    if (*e->tls.cert_file || e->tls.cert_data.n)
        row(p, "  client certificate", "%s",
            e->tls.cert_data.n ? "from this configuration" : e->tls.cert_file);
}

static void extender(struct page *p, const struct bh_extender_config *e)
{
    const struct {
        const char *what, *verb;
    } verbs[] = {{"filter", e->filter_verb},
                 {"prioritize", e->prioritize_verb},
                 {"preempt", e->preempt_verb},
                 {"bind", e->bind_verb}};
    char timeout[32];

    row(p, e->url_prefix, "%s%s", e->ignorable ? "ignorable" : "required",
        e->node_cache_capable ? ", knows the nodes by name" : "");
    for (unsigned i = 0; i < BH_ARRAY_LEN(verbs); i++)
        if (*verbs[i].verb && i == 1)
            row(p, "  prioritize", "%s, weight %" PRId64, verbs[i].verb, e->weight);
        else if (*verbs[i].verb)
            row(p, bh_arena_printf(&p->arena, "  %s", verbs[i].what), "%s", verbs[i].verb);
    row(p, "  timeout", "%s", duration(e->http_timeout_ns, timeout));
    tls(p, e);
    for (uint32_t i = 0; i < e->n_managed; i++)
        row(p, i ? "" : "  managed resources", "%s%s", e->managed[i].name,
            e->managed[i].ignored_by_scheduler ? " (NodeResourcesFit ignores it)" : "");
}

void bh_config_table(struct bh_buf *out, const struct bh_sched_config *c, bool colour)
{
    struct page p = {.out = out, .colour = colour};
    const struct bh_json *trees = bh_json_get(c->tree, "profiles");

    for (uint32_t i = 0; i < c->n_profiles; i++)
        profile(&p, &c->profiles[i], bh_json_at(trees, i));
    if (c->n_extenders)
        heading(&p, "Extenders");
    for (uint32_t i = 0; i < c->n_extenders; i++)
        extender(&p, &c->extenders[i]);
    end_table(&p);
    char d[3][32];
    heading(&p, "General");
    row(&p, "parallelism", "%d", c->parallelism);
    row(&p, "percentageOfNodesToScore", c->percentage_of_nodes_to_score ? "%d" : "%d (all nodes)",
        c->percentage_of_nodes_to_score);
    row(&p, "pod backoff", "%s to %s", duration(c->pod_initial_backoff_ns, d[0]),
        duration(c->pod_max_backoff_ns, d[1]));
    row(&p, "profiling", "%s, contention %s", c->enable_profiling ? "on" : "off",
        c->enable_contention_profiling ? "on" : "off");
    if (c->delay_cache_until_active)
        row(&p, "delayCacheUntilActive", "true");
    end_table(&p);
    const struct bh_leader_config *l = &c->leader_election;
    heading(&p, "Leader election");
    if (!l->leader_elect) {
        row(&p, "leaderElect", "false");
    } else {
        row(&p, "lock", "%s %s/%s", l->resource_lock, l->resource_namespace, l->resource_name);
        row(&p, "lease, renew, retry", "%s, %s, %s", duration(l->lease_duration_ns, d[0]),
            duration(l->renew_deadline_ns, d[1]), duration(l->retry_period_ns, d[2]));
    }
    end_table(&p);
    const struct bh_client_config *cc = &c->client_connection;
    const struct bh_json *qps = bh_json_path(c->tree, "clientConnection.qps");
    heading(&p, "Client connection");
    row(&p, "kubeconfig", "%s", *cc->kubeconfig ? cc->kubeconfig : "(none)");
    row(&p, "qps, burst", "%s, %d", cc->qps < 0 ? "no limit" : qps->s.p, cc->burst);
    row(&p, "contentType", "%s", cc->content_type);
    if (*cc->accept_content_types)
        row(&p, "acceptContentTypes", "%s", cc->accept_content_types);
    end_table(&p);
    bh_grid_fini(&p.grid);
    bh_arena_fini(&p.arena);
}
