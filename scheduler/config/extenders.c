/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/config/extenders.c - the list of HTTP extenders
 *
 * Three steps, as upstream: the fields' types while decoding, the values in the validation, and the
 * TLS files when the extenders are built.
 *
 * Upstream: pkg/scheduler/apis/config/validation/validation.go (validateExtenders),
 *           pkg/scheduler/extender.go (NewHTTPExtender, makeTransport),
 *           pkg/scheduler/scheduler.go (buildExtenders), client-go/transport (TLSConfigFor).
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <unistd.h>

#include "common/base/map.h"
#include "common/base/opt.h"
#include "common/k8s/compile.h"
#include "common/k8s/syntax.h"
#include "scheduler/config/config_int.h"

#define DEFAULT_TIMEOUT_NS ((int64_t)5000000000)
/* Upstream reads a negative timeout as "none"; far enough to be that, near enough to be added. */
#define NO_TIMEOUT_NS (INT64_MAX / 4)

/* ---- validation ------------------------------------------------------------------------------ */

void bh_extenders_check(const struct bh_json *extenders, struct bh_field_errors *errs)
{
    unsigned i = 0, binders = 0;
    struct bh_map seen = {0};

    bh_json_each(e, extenders) {
        int64_t weight = bh_json_get_i64(e, "weight", 0);
        if (*bh_json_get_text(e, "prioritizeVerb") && weight <= 0)
            bh_field_error(errs,
                           "extenders[%u].weight: Invalid value: %" PRId64
                           ": must have a positive weight applied to it",
                           i, weight);
        binders += *bh_json_get_text(e, "bindVerb") != 0;
        /* Names are unique over all extenders: seen. */
        unsigned k = 0;
        bh_json_each(r, bh_json_get(e, "managedResources")) {
            const char *name = bh_json_get_text(r, "name");
            const char *at =
                bh_arena_printf(errs->a, "extenders[%u].managedResources[%u].name", i, k++);
            if (!bh_field_qualified_name(errs, at, name) && !bh_resource_is_extended(name))
                bh_field_error(errs,
                               "%s: Invalid value: \"%s\": is an invalid extended resource name",
                               at, name);
            if (bh_map_put(&seen, name, strlen(name), r))
                bh_field_error(
                    errs, "%s: Invalid value: \"%s\": duplicate extender managed resource name", at,
                    name);
        }
        i++;
    }
    bh_map_fini(&seen);
    if (binders > 1)
        bh_field_error(errs,
                       "extenders: Invalid value: \"found %u extenders implementing bind\": only "
                       "one extender can implement bind",
                       binders);
}

/* ---- building -------------------------------------------------------------------------------- */

/* The text was checked while decoding. */
static struct bh_str bytes_of(struct bh_arena *a, const struct bh_json *v, const char *key)
{
    struct bh_str ret = {"", 0};

    (void)bh_field_base64(a, bh_json_get_text(v, key), &ret);
    return ret;
}

/* Upstream reads the files here, the client of this scheduler when it connects. */
static int check_readable(const char *file, const struct bh_str *data, struct bh_err *err)
{
    if (data->n || !*file)
        return 0;
    int fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return bh_config_open_error(err, file, -errno);
    close(fd);
    return 0;
}

static int check_tls(const struct bh_extender_config *e, struct bh_err *err)
{
    const struct bh_extender_tls *t = &e->tls;
    bool has_ca = *t->ca_file || t->ca_data.n;
    bool has_cert = (*t->cert_file || t->cert_data.n) && (*t->key_file || t->key_data.n);
    bool insecure = t->insecure || (e->enable_https && !has_ca);

    if (!has_ca && !has_cert && !insecure && !*t->server_name)
        return 0;
    if (has_ca && insecure)
        return bh_err_set(
            err, -EINVAL,
            "specifying a root certificates file with the insecure flag is not allowed");
    int rc = check_readable(t->ca_file, &t->ca_data, err);
    if (rc >= 0)
        rc = check_readable(t->cert_file, &t->cert_data, err);
    return rc < 0 ? rc : check_readable(t->key_file, &t->key_data, err);
}

static void read_extender(struct bh_arena *a, const struct bh_json *v,
                          struct bh_extender_config *ret)
{
    const struct bh_json *managed = bh_json_get(v, "managedResources");
    const char *timeout = bh_json_get_text(v, "httpTimeout");
    const struct bh_json *tls = bh_json_get(v, "tlsConfig");
    int64_t ns = 0;

    if (bh_parse_duration_ns(timeout, &ns) < 0 || ns == 0)
        ns = DEFAULT_TIMEOUT_NS;
    *ret = (struct bh_extender_config){
        .url_prefix = bh_json_get_text(v, "urlPrefix"),
        .filter_verb = bh_json_get_text(v, "filterVerb"),
        .prioritize_verb = bh_json_get_text(v, "prioritizeVerb"),
        .preempt_verb = bh_json_get_text(v, "preemptVerb"),
        .bind_verb = bh_json_get_text(v, "bindVerb"),
        .weight = bh_json_get_i64(v, "weight", 0),
        .http_timeout_ns = ns < 0 ? NO_TIMEOUT_NS : BH_MIN(ns, NO_TIMEOUT_NS),
        .enable_https = bh_json_get_bool(v, "enableHTTPS", false),
        .node_cache_capable = bh_json_get_bool(v, "nodeCacheCapable", false),
        .ignorable = bh_json_get_bool(v, "ignorable", false),
        .managed = bh_arena_new_array(a, struct bh_managed_resource, bh_config_len(managed) + 1),
        .tls = {.present = tls && tls->type == BH_JSON_OBJECT,
                .insecure = bh_json_get_bool(tls, "insecure", false),
                .server_name = bh_json_get_text(tls, "serverName"),
                .cert_file = bh_json_get_text(tls, "certFile"),
                .key_file = bh_json_get_text(tls, "keyFile"),
                .ca_file = bh_json_get_text(tls, "caFile"),
                .cert_data = bytes_of(a, tls, "certData"),
                .key_data = bytes_of(a, tls, "keyData"),
                .ca_data = bytes_of(a, tls, "caData")},
    };
    bh_json_each(m, managed) {
        ret->managed[ret->n_managed++] = (struct bh_managed_resource){
            .name = bh_json_get_text(m, "name"),
            .ignored_by_scheduler = bh_json_get_bool(m, "ignoredByScheduler", false)};
    }
}

int bh_extenders_build(struct bh_config_ctx *x, struct bh_sched_config *c,
                       const struct bh_json *list)
{
    struct bh_extender_config *all =
        bh_arena_new_array(x->a, struct bh_extender_config, bh_config_len(list) + 1);
    struct bh_err err;
    uint32_t n = 0;

    bh_json_each(v, list) {
        read_extender(x->a, v, &all[n]);
        if (check_tls(&all[n++], &err) < 0)
            return bh_config_fail(x, v, "couldn't build extenders: %s", err.msg);
    }
    /* Those whose failure does not matter come last, otherwise the order stays. */
    c->extenders = bh_arena_new_array(x->a, struct bh_extender_config, n + 1);
    for (unsigned ignorable = 0; ignorable < 2; ignorable++)
        for (uint32_t i = 0; i < n; i++)
            if (all[i].ignorable == ignorable)
                c->extenders[c->n_extenders++] = all[i];
    return 0;
}

int bh_extenders_ignore(struct bh_config_ctx *x, const struct bh_sched_config *c,
                        struct bh_json *profiles)
{
    struct bh_json *names = bh_json_new(x->a, BH_JSON_ARRAY);

    for (uint32_t i = 0; i < c->n_extenders; i++)
        for (uint32_t k = 0; k < c->extenders[i].n_managed; k++)
            if (c->extenders[i].managed[k].ignored_by_scheduler)
                bh_json_push(names, bh_json_new_cstr(x->a, c->extenders[i].managed[k].name));
    if (!names->c.n)
        return 0;
    bh_json_each(p, profiles) {
        const struct bh_json *list = bh_json_get(p, "pluginConfig");
        struct bh_json *args = bh_json_get(bh_config_named(list, "NodeResourcesFit"), "args");
        if (!args)
            return bh_config_fail(
                x, p, "couldn't build extenders: can't find NodeResourcesFitArgs in plugin config");
        const struct bh_json *own = bh_json_get(args, "ignoredResources");
        if (own && !bh_json_equal(own, names))
            bh_config_warn(
                x, args,
                "ignoredResources of NodeResourcesFit are replaced by the resources that "
                "extenders mark ignoredByScheduler");
        bh_json_set(x->a, args, "ignoredResources", bh_json_clone(x->a, names));
    }
    return 0;
}
