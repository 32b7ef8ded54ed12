/* SPDX-License-Identifier: Apache-2.0
 *
 * common/api/from_flags.h - what configuration file and command line say: which API server, as
 * which user, how fast
 *
 * Upstream: cmd/kube-scheduler/app/options/options.go (ApplyTo, createKubeConfig).
 * Differences: without qps in the file and without --kube-api-qps there is no limit; upstream's 50
 * requests a second are its ceiling of decisions, and the API server has its own fairness. A limit
 * that was asked for holds for all processes of the runtime directory together, as it did for the
 * one process upstream has.
 */
#ifndef BH_API_FROM_FLAGS_H
#define BH_API_FROM_FLAGS_H

#include "common/api/client.h"
#include "common/flags/kube_flags.h"

struct bh_api_setup {
    struct bh_component_config file; /* with the flags applied */
    struct bh_api_config *api;
    double qps; /* 0 = no limit */
    int burst;
    bool json;
    char limit_file[128], event_limit_file[128]; /* in the runtime directory; "" without limit */
    char unit_kubeconfig[256];
    struct bh_arena arena; /* strings of file */
};
/* Flags of Berth's own that say it differently: NULL = not given. */
struct bh_api_own_flags {
    const char *kubeconfig; /* wins over --config and --kubeconfig */
    const char *context;
};
#define BH_API_OWN_OPTS(o)                                                                         \
    {"api-kubeconfig", 0,                                                                          \
     BH_OPT_STR,       &(o)->kubeconfig,                                                           \
     "FILE",           "how to reach the API server, whatever --config and --kubeconfig say"},     \
    {                                                                                              \
        "context", 0, BH_OPT_STR, &(o)->context, "NAME", "context of the kubeconfig to use"        \
    }
/* The kubeconfig that the service manager handed over (LoadCredential=kubeconfig:FILE): wins over
 * all flags but --api-kubeconfig; no other user can read it. False: none, or "-", which is how a
 * unit says that there need not be one. */
bool bh_api_unit_kubeconfig(char out[static 256]);
/* runtime_dir NULL: limits are not shared. 0 or negative errno with upstream's text. _fini after
 * both. */
int bh_api_setup_load(struct bh_api_setup *s, const struct bh_kube_flags *f,
                      const struct bh_api_own_flags *own, const char *runtime_dir,
                      struct bh_err *err);
void bh_api_setup_fini(struct bh_api_setup *s);
/* Options of a client under these limits; events have a limit of their own, as upstream's. */
struct bh_api_options bh_api_setup_options(const struct bh_api_setup *s, bool events);
#endif
