/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/trial/admit.h - the bare API server that manifests pass; private to
 * simulator/trial/{admit,workloads}.c
 */
#ifndef BH_TRIAL_ADMIT_H
#define BH_TRIAL_ADMIT_H

#include "simulator/trial/trial.h"
#include "simulator/server/sim.h"

struct bh_admission {
    struct bh_trial *t;
    uv_loop_t loop;
    struct bh_sim *sim;
    struct bh_arena a;       /* of the object at hand */
    uint32_t n_drawn;        /* names made so far */
    size_t n_made, n_wanted; /* pods of workloads */
};
struct bh_json *bh_admit_parse(struct bh_arena *a, const struct bh_trial_item *it);
/* Creates obj, which is edited. -EEXIST, or -EINVAL with the server's text. */
int bh_admit_store(struct bh_admission *ad, const struct bh_sim_type *type, const char *ns,
                   struct bh_json *obj, struct bh_sim_obj **ret, struct bh_err *err);
/* uid and times that repeat; drawn_name: the name too, from generateName. */
void bh_admit_settle(struct bh_admission *ad, struct bh_json *obj, bool drawn_name);
/* Adds what was made here: like a manifest, it did not come from an API server. */
int bh_admit_add(struct bh_admission *ad, const struct bh_trial_source *at,
                 const struct bh_json *obj, struct bh_err *err);
/* A node that says nothing about its state is ready. */
void bh_admit_vouch_for(struct bh_arena *a, struct bh_json *node);
/* The pod's RuntimeClass, which the server has applied, must be there. */
int bh_admit_runtime_class(struct bh_admission *ad, const struct bh_json *pod, struct bh_err *err);
/* Runs the store's controllers where there is anything for them to do, and adds what they made of
 * workloads: pods, replica sets, claims. */
int bh_admit_workloads(struct bh_admission *ad, struct bh_err *err);
/* Some manifest has or is a claim that controllers care about. */
bool bh_admit_has_claims(const struct bh_trial *t);
/* Takes over the claims that were made for a pod of the store; pod: it, settled; is edited. */
int bh_admit_pod_claims(struct bh_admission *ad, const struct bh_sim_obj *stored,
                        struct bh_json *pod, const struct bh_trial_source *at, struct bh_err *err);
/* The same for manifests of pods, and which claims were bound to which volumes. */
int bh_admit_claims(struct bh_admission *ad, struct bh_err *err);
#endif
