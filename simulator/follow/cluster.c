/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/follow/cluster.c - an API server to read from or write to, and what is wanted of it
 */
#include "simulator/follow/follow.h"

#include <errno.h>

#include "common/k8s/codec.h"
#include "simulator/server/sim.h"

#define REQUEST_NS UINT64_C(60000000000)

int bh_cluster_open(struct bh_cluster *c, uv_loop_t *loop, const char *spec, const char *context,
                    const char *user_agent, struct bh_err *err)
{
    const struct bh_api_options o = {
        .user_agent = user_agent, .field_manager = "berth", .max_connections = 16};
    bool url = spec && (strncmp(spec, "http://", 7) == 0 || strncmp(spec, "https://", 8) == 0);
    int rc = url ? bh_kubeconfig_bare(spec, &c->cfg, err)
                 : bh_kubeconfig_load(spec, context, &c->cfg, err);

    c->loop = loop;
    return rc < 0 ? rc : bh_api_client_new(loop, c->cfg, &o, &c->client, err);
}

void bh_cluster_close(struct bh_cluster *c)
{
    bh_api_client_free(c->client);
    bh_api_config_free(c->cfg);
    *c = (struct bh_cluster){0};
}

void bh_cluster_path(struct bh_buf *out, const struct bh_sim_type *t, const char *ns,
                     const char *name, const char *sub)
{
    bh_buf_addf(out, *t->group ? "/apis/%s/" : "/api%s/", t->group);
    bh_buf_addf(out, "%s/", t->version);
    if (ns && *ns) {
        bh_buf_adds(out, "namespaces/");
        bh_url_escape(out, ns);
        bh_buf_addc(out, '/');
    }
    bh_buf_adds(out, t->plural);
    if (name && *name) {
        bh_buf_addc(out, '/');
        bh_url_escape(out, name);
    }
    if (sub && *sub)
        bh_buf_addf(out, "/%s", sub);
}

/* GET; 0 with the code and the body, or a transport error. */
static int get(struct bh_cluster *c, const char *path, int *ret_code, struct bh_buf *body,
               struct bh_err *err)
{
    const struct bh_api_call call = {.method = "GET",
                                     .path = path,
                                     .timeout_ns = REQUEST_NS,
                                     .max_reply_bytes = (size_t)256 << 20,
                                     .long_lived = true,
                                     .retry_429_5xx = true};

    bh_buf_reset(body);
    return bh_api_do(c->loop, c->client, &call, ret_code, body, err);
}

int bh_cluster_reach(struct bh_cluster *c, const char *whose, struct bh_err *err)
{
    struct bh_buf body BH_CLEANUP(bh_buf_fini) = {0};
    int code = 0, rc = get(c, "/version", &code, &body, err);

    if (rc < 0)
        rc = bh_err_prefix(err, rc, "the %s at %s cannot be reached", whose, c->cfg->server);
    else if (code == 401)
        rc = bh_err_set(err, -EACCES, "the %s at %s does not accept these credentials (401)", whose,
                        c->cfg->server);
    return rc;
}

int bh_cluster_list(struct bh_cluster *c, const struct bh_clean_kind *k, const char *query,
                    struct bh_buf *body, struct bh_err *err)
{
    struct bh_buf path BH_CLEANUP(bh_buf_fini) = {0};
    struct bh_api_status s;
    int code = 0;

    bh_clean_path(k, NULL, &path);
    bh_buf_adds(&path, query);
    int rc = get(c, bh_buf_str(&path), &code, body, err);
    if (rc < 0 || code == 200)
        return rc;
    bh_decode_status(body->p, body->n, code, &s);
    return bh_err_set(err,
                      code == 410   ? -ESTALE
                      : code == 401 ? -EPERM
                      : code == 403 ? -EACCES
                      : code == 404 ? -ENOENT
                                    : -EIO,
                      "%s (%d)", s.message, code);
}

/* ---- what is taken --------------------------------------------------------------------------- */

int bh_take_init(struct bh_take *t, struct bh_err *err)
{
    int rc = 0;

    for (size_t i = 0; i < t->kinds.n && rc == 0; i++)
        if (!bh_clean_kind_named(t->kinds.v[i]))
            rc = bh_err_set(err, -EINVAL,
                            "unknown kind \"%s\" for --kinds: plural names of kinds that "
                            "scheduling looks at, as in \"nodes,pods\"",
                            t->kinds.v[i]);
    if (rc == 0 && t->selector)
        rc = bh_selector_parse(t->selector, &t->labels, err);
    if (rc == 0 && t->node_selector)
        rc = bh_selector_parse(t->node_selector, &t->node_labels, err);
    if (t->anonymise_key)
        t->anonymise = true;
    if (t->anonymise)
        bh_anon_init(&t->anon, t->anonymise_key);
    return rc;
}

void bh_take_fini(struct bh_take *t)
{
    bh_selector_free(t->labels);
    bh_selector_free(t->node_labels);
    free(t->kinds.v);
    free(t->namespaces.v);
    free(t->exclude.v);
}

static bool in_list(const struct bh_opt_list *l, const char *s)
{
    for (size_t i = 0; i < l->n; i++)
        if (bh_streq(l->v[i], s))
            return true;
    return false;
}

bool bh_take_kind(const struct bh_take *t, const struct bh_clean_kind *k, bool once)
{
    char av[80];

    if (t->mirror)
        return bh_kind_find(bh_clean_api_version(k, av), k->kind);
    if ((k->flags & BH_CLEAN_ONCE) && !once)
        return false;
    if (t->kinds.n)
        return in_list(&t->kinds, k->plural) || in_list(&t->kinds, k->kind);
    return !(k->flags & BH_CLEAN_WORKLOAD);
}

static bool takes_namespace(const struct bh_take *t, const char *ns)
{
    return (!t->namespaces.n || in_list(&t->namespaces, ns)) && !in_list(&t->exclude, ns);
}

/* Why pods wait and since when, what nodes run: for people, not for the scheduler. Without the
 * heartbeats of nodes, which would be a change each. */
static void add_reports(struct bh_arena *a, const struct bh_json *from, struct bh_json *to)
{
    static const char *const versions[] = {"kubeletVersion", "containerRuntimeVersion",
                                           "kernelVersion",  "osImage",
                                           "architecture",   "operatingSystem"};
    const struct bh_json *info = bh_json_get(from, "nodeInfo");
    struct bh_json *conditions = bh_json_clone(a, bh_json_get_list(from, "conditions"));

    bh_json_each(c, conditions)
        bh_json_drop(c, "lastHeartbeatTime lastProbeTime");
    if (conditions)
        bh_json_set(a, to, "conditions", conditions);
    for (size_t i = 0; i < BH_ARRAY_LEN(versions); i++)
        if (bh_json_get(info, versions[i]))
            bh_json_set(a, bh_json_obj_at(a, to, "nodeInfo"), versions[i],
                        bh_json_clone(a, bh_json_get(info, versions[i])));
}

static void add_state(struct bh_arena *a, const struct bh_json *from, struct bh_json *to)
{
    static const char *const marks[] = {"deletionTimestamp", "deletionGracePeriodSeconds"};
    const struct bh_json *meta = bh_json_get(from, "metadata");
    const struct bh_json *status = bh_json_get(from, "status");

    for (size_t i = 0; i < BH_ARRAY_LEN(marks); i++)
        if (bh_json_get(meta, marks[i]))
            bh_json_set(a, bh_json_get(to, "metadata"), marks[i],
                        bh_json_clone(a, bh_json_get(meta, marks[i])));
    if (status && !bh_json_get(to, "status"))
        bh_json_set(a, to, "status", bh_json_clone(a, status));
    else if (status)
        add_reports(a, status, bh_json_get(to, "status"));
}

static const char *refuses(const struct bh_take *t, const struct bh_clean_kind *k,
                           const struct bh_json *meta)
{
    const struct bh_json *labels = bh_json_get(meta, "labels");
    const char *name = bh_json_get_text(meta, "name");

    if (k->flags & BH_CLEAN_NAMESPACED) {
        if (!takes_namespace(t, bh_json_get_text(meta, "namespace")))
            return "namespace not selected";
        if (t->labels && !bh_selector_match_json(t->labels, labels))
            return "labels not selected";
    } else if (bh_streq(k->kind, "Namespace") && !takes_namespace(t, name)) {
        return "namespace not selected";
    } else if (bh_streq(k->kind, "Node") && t->node_labels &&
               !bh_selector_match_json(t->node_labels, labels)) {
        return "node not selected";
    } else if (bh_streq(k->kind, "PriorityClass") && strncmp(name, "system-", 7) == 0) {
        return "every cluster has it";
    }
    if (bh_streq(k->kind, "Service") && bh_streq(name, "kubernetes"))
        return "every cluster has it";
    return NULL;
}

struct bh_json *bh_take_object(const struct bh_take *t, struct bh_arena *a,
                               const struct bh_clean_kind *k, const struct bh_json *obj,
                               const char **ret_why)
{
    *ret_why = t->mirror ? NULL : refuses(t, k, bh_json_get(obj, "metadata"));
    if (*ret_why)
        return NULL;
    struct bh_json *o = bh_clean(a, k, obj, t->annotations, ret_why);
    if (*ret_why && !bh_streq(*ret_why, "finished"))
        return NULL;
    if (t->mirror)
        add_state(a, obj, o);
    if (t->anonymise)
        bh_anon_object(&t->anon, a, o);
    return o;
}
