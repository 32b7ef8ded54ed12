/* SPDX-License-Identifier: Apache-2.0
 *
 * common/flags/component.c - clientConnection and leaderElection of a configuration file
 */
#include "common/flags/component.h"

#include <errno.h>

#include "common/base/opt.h"
#include "common/data/yaml.h"

#define NS_PER_S       ((int64_t)1000000000)
#define FILE_MAX_BYTES ((size_t)4 << 20) /* as much as berth-scheduler takes */
#define JITTER_FACTOR  1.2
#define CONTENT_TYPE   "application/vnd.kubernetes.protobuf"
#define NO_LIMIT       (-1)

struct reader {
    const struct bh_json *block;
    const char *name;
    struct bh_err *err;
    int rc;
};

/* NULL: absent, null, or something is wrong already. */
static const struct bh_json *member(struct reader *r, const char *key)
{
    const struct bh_json *v = r->rc == 0 ? bh_json_get(r->block, key) : NULL;
    return v && v->type != BH_JSON_NULL ? v : NULL;
}

static void wrong(struct reader *r, const char *key, const char *expected)
{
    r->rc = bh_err_set(r->err, -EINVAL, "%s.%s: %s is expected", r->name, key, expected);
}

static void text(struct reader *r, const char *key, const char **target)
{
    const struct bh_json *v = member(r, key);
    if (v && v->type != BH_JSON_STRING)
        wrong(r, key, "a string");
    else if (v)
        *target = v->s.p;
}

static void duration(struct reader *r, const char *key, int64_t *target)
{
    const struct bh_json *v = member(r, key);
    if (v && (v->type != BH_JSON_STRING || bh_parse_duration_ns(v->s.p, target) < 0))
        wrong(r, key, "a duration such as \"15s\"");
}

static void read_leader(struct reader *r, struct bh_leader_config *c)
{
    const struct bh_json *v = member(r, "leaderElect");
    if (v && v->type != BH_JSON_BOOL)
        wrong(r, "leaderElect", "true or false");
    else if (v)
        c->leader_elect = v->b;
    duration(r, "leaseDuration", &c->lease_duration_ns);
    duration(r, "renewDeadline", &c->renew_deadline_ns);
    duration(r, "retryPeriod", &c->retry_period_ns);
    text(r, "resourceLock", &c->resource_lock);
    text(r, "resourceName", &c->resource_name);
    text(r, "resourceNamespace", &c->resource_namespace);
}

static void read_client(struct reader *r, struct bh_client_config *c)
{
    const struct bh_json *qps = member(r, "qps"), *burst = member(r, "burst");
    int64_t n = 0;

    text(r, "kubeconfig", &c->kubeconfig);
    text(r, "acceptContentTypes", &c->accept_content_types);
    text(r, "contentType", &c->content_type);
    if (qps && qps->type != BH_JSON_NUMBER)
        wrong(r, "qps", "a number");
    else if (qps && strtod(qps->s.p, NULL) != 0)
        c->qps = strtod(qps->s.p, NULL);
    if (burst && (!bh_json_i64(burst, &n) || n < INT32_MIN || n > INT32_MAX))
        wrong(r, "burst", "an integer of 32 bits");
    else if (n)
        c->burst = (int32_t)n;
    if (!*c->content_type)
        c->content_type = CONTENT_TYPE;
}

/* The block of this name, or none. */
static struct reader reader_of(const struct bh_json *tree, const char *name, struct bh_err *err)
{
    struct reader r = {.block = bh_json_get(tree, name), .name = name, .err = err};

    if (r.block && r.block->type != BH_JSON_OBJECT && r.block->type != BH_JSON_NULL)
        r.rc = bh_err_set(err, -EINVAL, "%s: an object is expected", name);
    return r;
}

/* Under whatever extension point. */
static bool enables(const struct bh_json *tree, const char *plugin)
{
    bh_json_each(profile, bh_json_get(tree, "profiles")) {
        bh_json_each(point, bh_json_get(profile, "plugins")) {
            bh_json_each(p, bh_json_get(point, "enabled"))
                if (bh_streq(bh_json_get_text(p, "name"), plugin))
                    return true;
        }
    }
    return false;
}

int bh_component_config_of(const struct bh_json *tree, struct bh_component_config *ret,
                           struct bh_err *err)
{
    const char *profile =
        bh_json_get_str(bh_json_at(bh_json_get(tree, "profiles"), 0), "schedulerName");
    struct bh_component_config c = {.leader = {.leader_elect = true,
                                               .lease_duration_ns = 15 * NS_PER_S,
                                               .renew_deadline_ns = 10 * NS_PER_S,
                                               .retry_period_ns = 2 * NS_PER_S,
                                               .resource_lock = "leases",
                                               .resource_name = "kube-scheduler",
                                               .resource_namespace = "kube-system"},
                                    .client = {.kubeconfig = "",
                                               .accept_content_types = "",
                                               .content_type = CONTENT_TYPE,
                                               .qps = NO_LIMIT,
                                               .burst = 100},
                                    .first_profile =
                                        profile && *profile ? profile : "default-scheduler",
                                    .coscheduling = enables(tree, "Coscheduling")};
    struct reader leader = reader_of(tree, "leaderElection", err);

    read_leader(&leader, &c.leader);
    if (leader.rc < 0)
        return leader.rc;
    struct reader client = reader_of(tree, "clientConnection", err);
    read_client(&client, &c.client);
    if (client.rc < 0)
        return client.rc;
    *ret = c;
    return 0;
}

int bh_component_config_load(const char *path, struct bh_arena *a, struct bh_component_config *ret,
                             struct bh_err *err)
{
    BH_CLEANUP(bh_freep) char *bytes = NULL;
    struct bh_json *tree = NULL;
    size_t n;

    if (!path || !*path)
        return bh_component_config_of(NULL, ret, err);
    int rc = bh_read_file(path, FILE_MAX_BYTES, &bytes, &n);
    if (rc < 0)
        return bh_err_set(err, rc, "open %s: %s", path, strerror(-rc));
    rc = bh_yaml_parse(a, bytes, n, 0, &tree, err);
    if (rc == 0 && tree->type != BH_JSON_OBJECT)
        rc = bh_err_set(err, -EINVAL, "an object is expected");
    if (rc == 0)
        rc = bh_component_config_of(tree, ret, err);
    return rc < 0 ? bh_err_prefix(err, rc, "%s", path) : 0;
}

/* ---- checks ---------------------------------------------------------------------------------- */

static int check_lock(const struct bh_leader_config *c, struct bh_err *err)
{
    const char *missing = !*c->resource_name ? "resourceName" : "resourceNamespace";

    if (bh_word_at("endpoints configmaps endpointsleases configmapsleases", c->resource_lock) >= 0)
        return bh_err_set(err, -EINVAL,
                          "couldn't create resource lock: %s lock is removed, migrate to leases",
                          c->resource_lock);
    if (!bh_streq(c->resource_lock, "leases"))
        return bh_err_set(err, -EINVAL, "couldn't create resource lock: Invalid lock-type %s",
                          c->resource_lock);
    if (!*c->resource_name || !*c->resource_namespace)
        return bh_err_set(err, -EINVAL, "leaderElection.%s: Required value: %s is required",
                          missing, missing);
    return 0;
}

int bh_leader_config_check(const struct bh_leader_config *c, struct bh_err *err)
{
    const int64_t lease = c->lease_duration_ns, renew = c->renew_deadline_ns;
    const char *why = NULL;

    if (!c->leader_elect)
        return 0;
    int rc = check_lock(c, err);
    if (rc < 0)
        return rc;
    if (lease <= renew)
        why = "leaseDuration must be greater than renewDeadline";
    else if ((double)renew <= JITTER_FACTOR * (double)c->retry_period_ns)
        why = "renewDeadline must be greater than retryPeriod*JitterFactor";
    else if (lease < 1 || renew < 1 || c->retry_period_ns < 1)
        why = lease < 1   ? "leaseDuration must be greater than zero"
              : renew < 1 ? "renewDeadline must be greater than zero"
                          : "retryPeriod must be greater than zero";
    else if (lease < NS_PER_S) /* what the API server says to leaseDurationSeconds: 0 */
        why = "leaseDuration must be at least one second";
    else if (lease / NS_PER_S > INT32_MAX)
        why = "leaseDuration is too long";
    return why ? bh_err_set(err, -EINVAL, "couldn't create leader elector: %s", why) : 0;
}
