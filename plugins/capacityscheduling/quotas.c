/* SPDX-License-Identifier: Apache-2.0
 *
 * plugins/capacityscheduling/quotas.c - the objects ElasticQuota, and what compares with them
 *
 * Upstream: pkg/capacityscheduling/elasticquota.go. Of several in one namespace the oldest counts, and of
 * those the first by name; there it is whichever a watch brings first.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "quota.h"

/* ---- reading --------------------------------------------------------------------------------- */

static void complain(const struct cs_instance *in, struct berth_call *c,
                     const struct berth_object *o, const char *list, struct berth_str resource)
{
    struct berth_str ns = cs_host->objects->namespace_(c, o), name = cs_host->objects->name(c, o);
    char text[512];
    int n = snprintf(text, sizeof text,
                     "ElasticQuota %.*s/%.*s: spec.%s.%.*s: a quantity is needed; taken for 0",
                     (int)ns.n, ns.p, (int)name.n, name.p, list, (int)resource.n, resource.p);

    cs_host->base->log(in->home, BERTH_LOG_WARNING,
                       (struct berth_str){text, (uint64_t)(n < (int)sizeof text ? n : 511)});
}

/* What a list of resources says. Without the list: `absent` of each of the three. */
static void read_list(struct cs_instance *in, struct berth_call *c, const struct berth_object *o,
                      const char *name, int64_t absent, struct cs_amounts *ret)
{
    const struct berth_host_values *v = cs_host->values;
    const struct berth_value *spec = v->get(cs_host->objects->value(c, o), BERTH_STR("spec"));
    const struct berth_value *list = v->get(spec, (struct berth_str){name, strlen(name)});

    memset(ret, 0, sizeof *ret);
    for (uint32_t i = 0; i < CS_ALWAYS && v->type(list) == BERTH_NULL; i++)
        ret->v[i] = absent;
    for (const struct berth_value *m = v->first(list); m; m = v->next(m)) {
        uint32_t i = cs_resource(in, cs_host->base->intern(in->home, v->key(m)));
        if (i == CS_RESOURCES)
            continue;
        if (!v->quantity(m, i == 0, &ret->v[i]))
            complain(in, c, o, name, v->key(m));
        ret->named |= UINT64_C(1) << i;
    }
}

static int64_t created_of(struct berth_call *c, const struct berth_object *o)
{
    const struct berth_host_values *v = cs_host->values;
    int64_t created = 0;

    v->time(v->path(cs_host->objects->value(c, o), BERTH_STR("metadata.creationTimestamp")),
            &created);
    return created;
}

/* Of the objects of one namespace, does this one count? */
static int comes_first(struct berth_call *c, const struct berth_object *o, int64_t created,
                       const struct cs_namespace *ns)
{
    struct berth_str a = cs_host->objects->name(c, o), b = ns->quota_name;
    int by_name = memcmp(a.p, b.p, a.n < b.n ? a.n : b.n);

    if (created != ns->quota_created)
        return created < ns->quota_created;
    return by_name ? by_name < 0 : a.n < b.n;
}

static int read_quota(struct cs_instance *in, struct berth_call *c, const struct berth_object *o)
{
    uint32_t i = cs_namespace_named(in, cs_host->objects->namespace_(c, o));
    int64_t created = created_of(c, o);

    if (!i)
        return 0;
    struct cs_namespace *ns = &in->ns[i];
    if (ns->has_quota && !comes_first(c, o, created, ns))
        return 1;
    ns->has_quota = 1;
    ns->quota_created = created;
    ns->quota_name = cs_host->objects->name(c, o); /* of this callback only */
    read_list(in, c, o, "min", 0, &ns->min);
    read_list(in, c, o, "max", INT64_MAX, &ns->max);
    return 1;
}

int cs_read_quotas(struct cs_instance *in, struct berth_call *c)
{
    const uint64_t version = cs_host->objects->version(c, 0);

    if (in->quotas_read && in->quotas_version == version)
        return 1;
    in->quotas_read = 0;
    for (uint32_t i = 0; i < in->n_ns; i++)
        in->ns[i].has_quota = 0;
    for (const struct berth_object *o = cs_host->objects->first(c, 0); o;
         o = cs_host->objects->next(c, o))
        if (!read_quota(in, c, o))
            return 0;
    memset(in->total_used, 0, sizeof in->total_used);
    memset(in->total_min, 0, sizeof in->total_min);
    for (uint32_t i = 0; i < in->n_ns; i++)
        for (uint32_t k = 0; in->ns[i].has_quota && k < in->n_resources; k++) {
            in->total_used[k] += in->ns[i].used[k];
            in->total_min[k] = cs_sum(in->total_min[k], in->ns[i].min.v[k]);
        }
    in->quotas_read = 1;
    in->quotas_version = version;
    return 1;
}

const struct berth_object **cs_counting_quotas(struct cs_instance *in, struct berth_call *c)
{
    const struct berth_object **ret = calloc(in->n_ns + 1u, sizeof *ret);

    for (const struct berth_object *o = cs_host->objects->first(c, 0); ret && o;
         o = cs_host->objects->next(c, o)) {
        uint32_t i = cs_namespace_named(in, cs_host->objects->namespace_(c, o));
        struct cs_namespace *ns = &in->ns[i];
        if (!ns->has_quota) /* all of those with one have a number */
            continue;
        int64_t created = created_of(c, o);
        if (ret[i] && !comes_first(c, o, created, ns))
            continue;
        ret[i] = o;
        ns->quota_created = created;
        ns->quota_name = cs_host->objects->name(c, o);
    }
    return ret;
}

/* ---- comparing ------------------------------------------------------------------------------- */

static int is_named(const struct cs_amounts *a, uint32_t resource)
{
    return a->named >> resource & 1;
}

/* Extended resources that max does not name have no limit, those that the pods do not name are not
 * compared. */
int cs_over_max_with(const struct cs_instance *in, uint32_t ns, const struct cs_amounts *more)
{
    const struct cs_namespace *q = &in->ns[ns];

    for (uint32_t i = 0; i < in->n_resources; i++)
        if ((i < CS_ALWAYS || (is_named(more, i) && is_named(&q->max, i))) &&
            cs_sum(more->v[i], (int64_t)q->used[i]) > q->max.v[i])
            return 1;
    return 0;
}

int cs_over_min_with(const struct cs_instance *in, uint32_t ns, const struct cs_amounts *more)
{
    const struct cs_namespace *q = &in->ns[ns];

    for (uint32_t i = 0; i < in->n_resources; i++)
        if ((i < CS_ALWAYS || is_named(more, i)) &&
            cs_sum(more->v[i], (int64_t)q->used[i]) > q->min.v[i])
            return 1;
    return 0;
}

int cs_over_min(const struct cs_instance *in, uint32_t ns)
{
    for (uint32_t i = 0; i < in->n_resources; i++)
        if ((int64_t)in->ns[ns].used[i] > in->ns[ns].min.v[i])
            return 1;
    return 0;
}

int cs_total_over_min_with(const struct cs_instance *in, const struct cs_amounts *more)
{
    for (uint32_t i = 0; i < in->n_resources; i++)
        if (cs_sum(more->v[i], (int64_t)in->total_used[i]) > in->total_min[i])
            return 1;
    return 0;
}
