/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/config/config.c - from file to profiles
 *
 * Upstream: cmd/kube-scheduler/app/options, pkg/scheduler/scheduler.go (New), profile/profile.go.
 */
#include <ctype.h>
#include <errno.h>

#include "scheduler/config/config_int.h"
#include "scheduler/framework/plugin.h"

#define CONFIG_FILE_MAX    ((size_t)4 << 20)
#define KUBE_SCHEDULER_QPS 50 /* its clientConnection.qps without a file */

/* ---- building -------------------------------------------------------------------------------- */

static int build_profile(struct bh_config_ctx *x, struct bh_profile_config *p,
                         const struct bh_json *profile)
{
    const struct bh_json *list = bh_json_get(profile, "pluginConfig");
    const struct bh_json *pct = bh_json_get(profile, "percentageOfNodesToScore");

    p->scheduler_name = bh_json_get_text(profile, "schedulerName");
    p->has_percentage = pct != NULL;
    p->percentage_of_nodes_to_score =
        (int32_t)bh_json_get_i64(profile, "percentageOfNodesToScore", 0);
    p->args = bh_arena_new_array(x->a, struct bh_plugin_args, bh_config_len(list) + 1);
    bh_json_each(entry, list) {
        p->args[p->n_args++] = (struct bh_plugin_args){.name = bh_json_get_text(entry, "name"),
                                                       .args = bh_json_get(entry, "args")};
    }
    /* Upstream checks these args when it makes the plugin, so its errors carry the constructor's
     * prefix. */
    for (uint32_t i = 0; i < p->n_args; i++) {
        const struct bh_plugin *pl = bh_plugin_find(p->args[i].name);
        struct bh_field_errors errs = {.a = x->a};
        if (!pl || !pl->check_at_construction ||
            !bh_config_needed(bh_json_get(profile, "plugins"), pl->name))
            continue;
        pl->args_check(pl, p->args[i].args, "", &errs);
        if (errs.n)
            return bh_config_fail_all(
                x, p->args[i].args,
                bh_arena_printf(x->a,
                                "initializing profiles: creating profile for scheduler name %s: "
                                "initializing plugin \"%s\": ",
                                p->scheduler_name, pl->name),
                &errs, false);
    }
    return bh_config_expand(x, p, profile);
}

const struct bh_json *bh_profile_args(const struct bh_profile_config *p, const char *plugin)
{
    for (uint32_t i = 0; i < p->n_args; i++)
        if (bh_streq(p->args[i].name, plugin))
            return p->args[i].args;
    return NULL;
}

/* One queue serves all profiles, whatever their sets look like. */
static int check_same_queue(struct bh_config_ctx *x, const struct bh_profile_config *first,
                            const struct bh_profile_config *p, const struct bh_json *profile)
{
    const char *mine = p->points[BH_POINT_QUEUE_SORT][0].name;
    const char *other = first->points[BH_POINT_QUEUE_SORT][0].name;
    const struct bh_json *args = bh_profile_args(p, mine),
                         *other_args = bh_profile_args(first, other);

    if (!bh_streq(mine, other))
        return bh_config_fail(x, profile,
                              "initializing profiles: different queue sort plugins for profile "
                              "\"%s\": \"%s\", first: \"%s\"",
                              p->scheduler_name, mine, other);
    if (args && other_args ? !bh_json_equal(args, other_args) : args || other_args)
        return bh_config_fail(
            x, profile,
            "initializing profiles: different queue sort plugin args for profile \"%s\"",
            p->scheduler_name);
    return 0;
}

static int build(struct bh_config_ctx *x, struct bh_sched_config *c, struct bh_json *tree)
{
    struct bh_json *profiles = bh_json_get(tree, "profiles");

    struct bh_component_config shared;
    if (bh_component_config_of(tree, &shared, NULL) == 0) { /* its types have been checked */
        c->leader_election = shared.leader;
        c->client_connection = shared.client;
    }
    c->parallelism = (int32_t)bh_json_get_i64(tree, "parallelism", 0);
    c->percentage_of_nodes_to_score = (int32_t)bh_json_get_i64(tree, "percentageOfNodesToScore", 0);
    c->pod_initial_backoff_ns =
        BH_CONFIG_NS_PER_S * bh_json_get_i64(tree, "podInitialBackoffSeconds", 0);
    c->pod_max_backoff_ns = BH_CONFIG_NS_PER_S * bh_json_get_i64(tree, "podMaxBackoffSeconds", 0);
    c->enable_profiling = bh_json_get_bool(tree, "enableProfiling", false);
    c->enable_contention_profiling = bh_json_get_bool(tree, "enableContentionProfiling", false);
    c->delay_cache_until_active = bh_json_get_bool(tree, "delayCacheUntilActive", false);
    int rc = bh_extenders_build(x, c, bh_json_get(tree, "extenders"));
    if (rc >= 0)
        rc = bh_extenders_ignore(x, c, profiles);
    c->profiles = bh_arena_new_array(x->a, struct bh_profile_config, bh_config_len(profiles));
    bh_json_each(profile, profiles) {
        struct bh_profile_config *p = &c->profiles[c->n_profiles++];
        if (rc >= 0)
            rc = build_profile(x, p, profile);
        if (rc >= 0)
            rc = check_same_queue(x, &c->profiles[0], p, profile);
        if (rc < 0)
            return rc;
    }
    bh_config_in_force(x, c, tree);
    c->tree = tree;
    return 0;
}

/* ---- reading --------------------------------------------------------------------------------- */

static void warn_version(struct bh_config_ctx *x, const struct bh_json *tree)
{
    const struct bh_json *at = bh_json_get(tree, "apiVersion");

    if (x->version != BH_CONFIG_V1BETA3 && x->version != BH_CONFIG_V1BETA2)
        return;
    bh_config_warn(x, at,
                   "%s was removed from kube-scheduler in %s; it is read with that version's own "
                   "defaults, and with SchedulingGates, DynamicResources and "
                   "NodeDeclaredFeatures, which pods need today. `berth config show -o yaml` "
                   "prints it as v1",
                   x->version_text, x->version == BH_CONFIG_V1BETA3 ? "1.29" : "1.28");
    /* Old plugins among the version's defaults, and whether this build has them. */
    unsigned point = x->version == BH_CONFIG_V1BETA3 ? BH_POINT_MULTI : BH_POINT_FILTER;
    const struct bh_plugin_ref *d = bh_config_defaults(x, point);
    for (; d->name; d++)
        if (bh_config_is_legacy(d->name))
            bh_config_note(x, at,
                           bh_plugin_find(d->name) ? "%s is enabled, as it was by default in %s"
                                                   : "%s, a default of %s, is not part of this "
                                                     "build: NodeVolumeLimits counts volumes",
                           d->name, x->version_text);
}

/* What kube-scheduler's --write-config-to writes is most likely not meant as a limit for Berth. */
static void warn_limit(struct bh_config_ctx *x, const struct bh_json *v1)
{
    const struct bh_json *qps = bh_json_path(v1, "clientConnection.qps");

    if (strtod(qps->s.p, NULL) == KUBE_SCHEDULER_QPS)
        bh_config_warn(x, qps,
                       "clientConnection.qps: %d, kube-scheduler's default, allows at most %d "
                       "bindings a second; remove qps or set it to -1 for no limit",
                       KUBE_SCHEDULER_QPS, KUBE_SCHEDULER_QPS);
}

/* Plugins that are guests have a name only here, and are looked for before names are looked up. */
static int declare_guests(struct bh_config_ctx *x, struct bh_sched_config *c,
                          const struct bh_json *tree)
{
    if (!bh_plugin_declare_guest)
        return 0;
    bh_json_each(profile, bh_json_get(tree, "profiles")) {
        const char *of = bh_json_get_text(profile, "schedulerName"); /* without defaults yet */
        bh_json_each(e, bh_json_get(profile, "pluginConfig")) {
            const struct bh_json *args = bh_config_present(e, "args");
            const char *name = bh_json_get_text(e, "name");
            struct bh_err err = {0};
            if (!bh_json_get(args, "guestURL") ||
                !bh_config_needed(bh_json_get(profile, "plugins"), name))
                continue;
            int needs = bh_plugin_declare_guest(name, args, &err);
            if (needs < 0)
                return bh_config_fail(x, args,
                                      "initializing profiles: creating profile for scheduler name "
                                      "%s: initializing plugin \"%s\": %s",
                                      *of ? of : "default-scheduler", name, err.msg);
            c->whole_objects |= (unsigned)needs;
        }
    }
    return 0;
}

static int from_tree(struct bh_config_ctx *x, struct bh_sched_config *c, struct bh_json *tree)
{
    struct bh_field_errors errs = {.a = x->a};
    const struct bh_json *source = tree;
    struct bh_json *v1;
    int rc = tree ? bh_config_decode(x, tree) : 0;

    if (rc >= 0 && x->version == BH_CONFIG_POLICY) {
        rc = bh_config_policy(x, tree, &v1);
        source = v1;
    }
    if (rc < 0)
        return rc;
    if ((rc = declare_guests(x, c, source)) < 0)
        return rc;
    warn_version(x, source);
    v1 = bh_config_complete(x, source);
    warn_limit(x, v1);
    bh_config_validate(x, v1, source, &errs);
    if (errs.n)
        return bh_config_fail_all(x, source, "", &errs, false);
    return build(x, c, v1);
}

static int finish(int rc, struct bh_sched_config *c, const struct bh_config_report *r,
                  struct bh_sched_config **ret)
{
    if (rc < 0) {
        bh_sched_config_free(c);
        return rc;
    }
    c->warnings = bh_arena_new_array(&c->arena, const char *, r->warnings.n + 1);
    for (uint32_t i = 0; i < r->warnings.n; i++) {
        const struct bh_config_finding *f = &r->warnings.v[i];
        c->warnings[c->n_warnings++] =
            f->line ? bh_arena_printf(&c->arena, "line %u: %s", f->line, f->text)
                    : bh_arena_strdup(&c->arena, f->text);
    }
    *ret = c;
    return 0;
}

static struct bh_sched_config *begin(struct bh_config_ctx *x, struct bh_config_report *r)
{
    struct bh_sched_config *c = bh_calloc(1, sizeof *c);

    bh_arena_init(&c->arena, 0);
    *x = (struct bh_config_ctx){
        .a = &c->arena,
        .report = r,
        .version_text = "v1",
        .defaults = bh_config_default_values(&c->arena),
        .strict = {.a = &c->arena},
        .repeats = {.a = &c->arena},
    };
    return c;
}

int bh_sched_config_new(const struct bh_json *tree, struct bh_sched_config **ret,
                        struct bh_err *err)
{
    struct bh_config_report r;
    struct bh_config_ctx x;

    bh_config_report_init(&r);
    struct bh_sched_config *c = begin(&x, &r);
    int rc = from_tree(&x, c, bh_json_clone(x.a, tree));
    rc = finish(rc, c, &r, ret);
    if (rc < 0)
        bh_err_set(err, rc, "%s", r.summary);
    bh_config_report_fini(&r);
    return rc;
}

int bh_sched_config_read(const char *text, size_t n, struct bh_sched_config **ret,
                         struct bh_config_report *r)
{
    BH_CLEANUP(bh_freep) char *own = bh_strndup(text, n);
    struct bh_json *tree = NULL;
    struct bh_config_ctx x;
    struct bh_sched_config *c = begin(&x, r);

    x.text = own;
    int rc = bh_config_source(&x, text, n, &tree);
    if (rc >= 0)
        rc = from_tree(&x, c, tree);
    return finish(rc, c, r, ret);
}

int bh_config_open_error(struct bh_err *err, const char *file, int rc)
{
    char text[64];

    snprintf(text, sizeof text, "%s", strerror(-rc));
    text[0] = (char)tolower((unsigned char)text[0]);
    return bh_err_set(err, rc, "open %s: %s", file, text);
}

int bh_sched_config_load_report(const char *path, struct bh_sched_config **ret,
                                struct bh_config_report *r)
{
    BH_CLEANUP(bh_freep) char *text = NULL;
    struct bh_config_ctx x = {.report = r};
    struct bh_err err;
    size_t n;

    if (!path)
        return bh_sched_config_new(NULL, ret, &err);
    int rc = bh_read_file(path, CONFIG_FILE_MAX, &text, &n);
    if (rc < 0) {
        bh_config_open_error(&err, path, rc);
        bh_config_fail(&x, NULL, "%s", err.msg);
        return rc;
    }
    return bh_sched_config_read(text, n, ret, r);
}

int bh_sched_config_load(const char *path, struct bh_sched_config **ret, struct bh_err *err)
{
    struct bh_config_report r;

    bh_config_report_init(&r);
    int rc = bh_sched_config_load_report(path, ret, &r);
    if (rc < 0)
        bh_err_set(err, rc, "%s", bh_config_report_line(&r, path));
    bh_config_report_fini(&r);
    return rc;
}

void bh_sched_config_free(struct bh_sched_config *c)
{
    if (!c)
        return;
    bh_arena_fini(&c->arena);
    free(c);
}
