/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/server/features.c - what --feature-gates and --runtime-config switch on in this server
 *
 * An API that is not stable is served when both say so: its gate, and its version in the runtime
 * configuration. Versions of a cluster of 1.36 (v1alpha2) and of later ones (v1alpha3, v1beta1) may be
 * served side by side, which no real cluster does; they show the same objects.
 * Upstream: apiserver/pkg/server/resourceconfig, pkg/registry/scheduling/rest (v1.36); differences: what
 *           is stable cannot be switched off.
 */
#include "simulator/server/features.h"

#include "common/base/opt.h"
#include "common/flags/feature_gates.h"
#include <errno.h>

struct bh_sim_features {
    struct bh_feature_gates gates;
    bool on[]; /* by place in bh_sim_types: the runtime configuration has its version */
};

static bool is_alpha(const char *version)
{
    return strstr(version, "alpha") != NULL;
}

/* What "api/all", "api/alpha", "api/beta" or "GROUP/VERSION" means t. */
static bool means(struct bh_str key, const struct bh_sim_type *t)
{
    char version[80];

    bh_sim_type_api_version(t, version);
    return bh_str_eqc(key, version) || bh_str_eqc(key, "api/all") ||
           bh_str_eqc(key, is_alpha(t->version) ? "api/alpha" : "api/beta");
}

static int configure(struct bh_sim_features *f, const char *item, struct bh_err *err)
{
    const char *eq = strchr(item, '=');
    const struct bh_str key = {item, (uint32_t)(eq ? (size_t)(eq - item) : strlen(item))};
    const int value = eq ? bh_parse_bool(eq + 1) : 1;
    bool known = bh_str_eqc(key, "api/ga") || bh_str_eqc(key, "api/all") ||
                 bh_str_eqc(key, "api/alpha") || bh_str_eqc(key, "api/beta");

    if (value < 0)
        return bh_err_set(err, -EINVAL,
                          "runtime-config \"%s\": want true or false behind the =", item);
    for (size_t i = 0; i < bh_sim_n_types; i++) {
        const struct bh_sim_type *t = &bh_sim_types[i];
        char version[80];
        bh_sim_type_api_version(t, version);
        if (t->flags & BH_SIM_ON_DEMAND && means(key, t))
            f->on[i] = value, known = true;
        else if (!(t->flags & BH_SIM_ON_DEMAND) && bh_str_eqc(key, version)) {
            if (!value)
                return bh_err_set(err, -EINVAL, "runtime-config \"%s\": this server always has it",
                                  item);
            known = true;
        }
    }
    return known ? 0
                 : bh_err_set(err, -EINVAL,
                              "runtime-config \"%s\": want GROUP/VERSION=true of an API of this "
                              "server, or api/all, api/alpha, api/beta",
                              item);
}

int bh_sim_features_init(struct bh_sim *s, struct bh_err *err)
{
    const struct bh_opt_list *l = s->opt.runtime_config;
    int rc = 0;

    s->features = bh_calloc(1, sizeof(*s->features) + bh_sim_n_types * sizeof(bool));
    if (s->opt.features)
        s->features->gates = *s->opt.features;
    else
        bh_feature_gates_init(&s->features->gates);
    for (size_t i = 0; l && i < l->n && rc == 0; i++)
        rc = *l->v[i] ? configure(s->features, l->v[i], err) : 0;
    return rc;
}

bool bh_sim_feature(const struct bh_sim *s, const char *gate)
{
    return bh_feature_enabled(&s->features->gates, gate);
}

const struct bh_feature_gates *bh_sim_gates(const struct bh_sim *s)
{
    return &s->features->gates;
}

bool bh_sim_type_served(const struct bh_sim *s, const struct bh_sim_type *t)
{
    if (t->custom)
        return t->custom->served;
    return !(t->flags & BH_SIM_ON_DEMAND) ||
           (s->features->on[t - bh_sim_types] && bh_sim_feature(s, "GenericWorkload"));
}
