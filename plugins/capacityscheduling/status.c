/* SPDX-License-Identifier: Apache-2.0
 *
 * plugins/capacityscheduling/status.c - status.used of the ElasticQuotas
 *
 * Compared with what the API server told last, so that a quota is written when it is another one only, by whichever
 * scheduler leads. What it names is there, if only as 0.
 *
 * Upstream:   pkg/controllers/elasticquota_controller.go, a process of its own.
 * Difference: what counts is what the plugin decides by: the pods that have a node. There it is the running ones.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "quota.h"

#define NAME_MAX_N 317u /* of a resource: a domain, a slash and a label */

/* Else it is no resource's name, whatever the object says. */
static int is_plain(struct berth_str s)
{
    for (uint64_t i = 0; i < s.n; i++) {
        const char ch = s.p[i];
        if (!(ch >= 'a' && ch <= 'z') && !(ch >= 'A' && ch <= 'Z') && !(ch >= '0' && ch <= '9') &&
            !strchr("./-_", ch))
            return 0;
    }
    return s.n > 0 && s.n <= NAME_MAX_N;
}

static struct berth_str name_of(const struct cs_instance *in, uint32_t i)
{
    return cs_host->base->text(in->home, in->resource[i]);
}

/* Bits by resource. */
static uint64_t wanted(const struct cs_instance *in, const struct cs_namespace *ns)
{
    uint64_t all = ns->min.named | ns->max.named;

    for (uint32_t i = 0; i < in->n_resources; i++) {
        if (ns->used[i])
            all |= UINT64_C(1) << i;
        if (!is_plain(name_of(in, i)))
            all &= ~(UINT64_C(1) << i);
    }
    return all;
}

static uint32_t number_of(const struct cs_instance *in, struct berth_str name)
{
    for (uint32_t i = 0; i < in->n_resources; i++) {
        struct berth_str s = name_of(in, i);
        if (s.n == name.n && memcmp(s.p, name.p, s.n) == 0)
            return i;
    }
    return CS_RESOURCES;
}

/* Of the list that is there: which are right; *ret_stale: how many are not to be there. */
static uint64_t right(const struct cs_instance *in, const struct cs_namespace *ns,
                      const struct berth_value *list, uint64_t want, uint64_t *ret_stale)
{
    const struct berth_host_values *v = cs_host->values;
    uint64_t good = 0;
    int64_t is;

    *ret_stale = 0;
    for (const struct berth_value *m = v->first(list); m; m = v->next(m)) {
        uint32_t i = number_of(in, v->key(m));
        if (i == CS_RESOURCES || !(want >> i & 1))
            *ret_stale += (uint64_t)is_plain(v->key(m));
        else if (v->quantity(m, i == 0, &is) && is == (int64_t)ns->used[i])
            good |= UINT64_C(1) << i;
    }
    return good;
}

/* As Kubernetes writes it. */
static int write_quantity(char *to, size_t size, struct berth_str name, int milli, int64_t v)
{
    static const char suffix[] = "KMGTPE";
    char text[NAME_MAX_N + 1];
    unsigned k = 0;

    snprintf(text, sizeof text, "%.*s", (int)name.n, name.p);
    const int binary =
        strstr(text, "memory") || strstr(text, "storage") || strstr(text, "hugepages-");
    if (milli)
        return v % 1000 ? snprintf(to, size, "%" PRId64 "m", v)
                        : snprintf(to, size, "%" PRId64, v / 1000);
    for (; binary && v && v % 1024 == 0 && suffix[k]; k++)
        v /= 1024;
    return k ? snprintf(to, size, "%" PRId64 "%ci", v, suffix[k - 1])
             : snprintf(to, size, "%" PRId64, v);
}

/* NULL: no memory. */
static char *body_of(const struct cs_instance *in, struct berth_call *c,
                     const struct cs_namespace *ns, const struct berth_value *list, uint64_t want,
                     uint64_t n_stale)
{
    const struct berth_host_values *v = cs_host->values;
    const size_t size = (in->n_resources + n_stale) * (NAME_MAX_N + 40) + 64;
    char *text = cs_host->base->alloc(c, size), *at = text, *end = text + size;
    const char *comma = "";

    if (!text)
        return NULL;
    at += snprintf(at, (size_t)(end - at), "{\"status\":{\"used\":{");
    for (uint32_t i = 0; i < in->n_resources; i++) {
        struct berth_str name = name_of(in, i);
        if (!(want >> i & 1))
            continue;
        at += snprintf(at, (size_t)(end - at), "%s\"%.*s\":\"", comma, (int)name.n, name.p);
        at += write_quantity(at, (size_t)(end - at), name, i == 0, (int64_t)ns->used[i]);
        at += snprintf(at, (size_t)(end - at), "\"");
        comma = ",";
    }
    for (const struct berth_value *m = v->first(list); m; m = v->next(m)) {
        struct berth_str name = v->key(m);
        uint32_t i = number_of(in, name);
        if ((i != CS_RESOURCES && want >> i & 1) || !is_plain(name))
            continue;
        at += snprintf(at, (size_t)(end - at), "%s\"%.*s\":null", comma, (int)name.n, name.p);
        comma = ",";
    }
    snprintf(at, (size_t)(end - at), "}}}");
    return text;
}

/* 0: no more than has been said. */
static int tend_one(const struct cs_instance *in, struct berth_call *c,
                    const struct cs_namespace *ns, const struct berth_object *o)
{
    const struct berth_host_objects *h = cs_host->objects;
    const struct berth_value *list =
        cs_host->values->path(h->value(c, o), BERTH_STR("status.used"));
    const uint64_t want = wanted(in, ns);
    uint64_t n_stale;

    if (right(in, ns, list, want, &n_stale) == want && !n_stale)
        return 1;
    char *body = body_of(in, c, ns, list, want, n_stale);
    if (!body)
        return 0;
    const struct berth_patch p = {.size = sizeof p,
                                  .type = BERTH_PATCH_MERGE,
                                  .api_version = BERTH_STR("scheduling.x-k8s.io/v1alpha1"),
                                  .resource = BERTH_STR("elasticquotas"),
                                  .subresource = BERTH_STR("status"),
                                  .namespace_ = h->namespace_(c, o),
                                  .name = h->name(c, o),
                                  .uid = h->uid(c, o),
                                  .body = {body, strlen(body)}};
    return cs_host->writes->patch(c, &p) != 0;
}

void cs_tend(void *self, struct berth_call *c)
{
    struct cs_instance *in = self;
    const struct berth_object **quota = cs_current(in, c) ? cs_counting_quotas(in, c) : NULL;

    for (uint32_t i = 1; quota && i < in->n_ns; i++)
        if (quota[i] && !tend_one(in, c, &in->ns[i], quota[i]))
            break;
    free(quota);
}
