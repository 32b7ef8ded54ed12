/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/admission/admission.h - what the per-kind files of this folder share
 *
 * The folder's doors are bh_sim_default(), bh_sim_validate() and bh_sim_default_binding() in
 * simulator/server/sim.h. Per kind there is at most one default function (fills what upstream's
 * defaulting, mutating admission plugins and create strategies fill) and one validate function
 * (field errors). Defaulting comes first and must survive any shape of tree; it refuses only what
 * upstream refuses while decoding or admitting (400, 403).
 */
#ifndef BH_SIM_ADMISSION_H
#define BH_SIM_ADMISSION_H

#include "simulator/server/tree.h"
#include "simulator/server/sim.h"

typedef int bh_adm_default_fn(struct bh_sim_write *w);
typedef void bh_adm_validate_fn(struct bh_sim_write *w);

bh_adm_default_fn bh_adm_default_pod, bh_adm_default_node, bh_adm_default_namespace,
    bh_adm_default_service, bh_adm_default_maker, bh_adm_default_replicationcontroller,
    bh_adm_default_job, bh_adm_default_cronjob, bh_adm_default_pv, bh_adm_default_pvc,
    bh_adm_default_pdb, bh_adm_default_secret, bh_adm_default_claim, bh_adm_default_limitrange,
    bh_adm_default_crd, bh_adm_default_quota, bh_adm_default_event, bh_adm_default_clusterrole,
    bh_adm_default_podgroup, bh_adm_default_workload;
bh_adm_validate_fn bh_adm_validate_pod, bh_adm_validate_service, bh_adm_validate_crd,
    bh_adm_validate_pvc, bh_adm_validate_podgroup, bh_adm_validate_workload;
/* Custom resources, by the schema of their definition (crd/crd.h). */
void bh_adm_default_custom(struct bh_sim_write *w);
void bh_adm_validate_custom(struct bh_sim_write *w);

/* ---- shared defaults ------------------------------------------------------------------------- */

/* spec of a pod or of a pod template. 0 or 400 (a quantity that is none). */
int bh_adm_default_pod_spec(struct bh_sim_write *w, struct bh_json *spec);
/* Requests from limits, pod-level requests, host ports. */
void bh_adm_default_requests(struct bh_arena *a, struct bh_json *spec);
/* From capacity. */
void bh_adm_default_allocatable(struct bh_arena *a, struct bh_json *node);
/* A pod or node that no API server has seen gets what decisions depend on: the two above and a
 * scheduler's name. */
void bh_api_defaults(struct bh_arena *a, struct bh_json *obj);
/* obj's "template" member: metadata cleaned, spec defaulted. */
int bh_adm_default_template(struct bh_sim_write *w, struct bh_json *holder);
/* A map of quantities in canonical text ("1000m" -> "1", 2 -> "2"). 0 or 400. */
int bh_adm_quantities_at(struct bh_sim_write *w, struct bh_json *obj, const char *dotted);
/* Priority, DefaultTolerationSeconds and LimitRanger of a pod that is created. 0 or 403. */
int bh_adm_pod_priority(struct bh_sim_write *w, struct bh_json *spec);
/* JobValidation: 403 if the number of pods of a gang is changed. */
int bh_adm_job_gang(struct bh_sim_write *w);
int bh_adm_group_priority(struct bh_sim_write *w, struct bh_json *spec); /* of a PodGroup */
int bh_adm_pod_runtime_class(struct bh_sim_write *w, struct bh_json *spec);
/* An overhead that no class gives: 403, of a pod that is in order otherwise. */
void bh_adm_pod_overhead(struct bh_sim_write *w);
int bh_adm_pod_limits(struct bh_sim_write *w, struct bh_json *spec);
void bh_adm_pod_tolerations(struct bh_sim_write *w, struct bh_json *spec);
/* matchLabelKeys and mismatchLabelKeys become selector requirements. */
void bh_adm_pod_label_keys(struct bh_sim_write *w, struct bh_json *spec);
/* "Guaranteed", "Burstable" or "BestEffort". */
const char *bh_adm_pod_qos(const struct bh_json *spec);

/* ---- shared validation ----------------------------------------------------------------------- */

/* 403: `pods "NAME" is forbidden: ...`. */
int bh_adm_forbid(struct bh_sim_write *w, const char *fmt, ...) BH_PRINTF(2, 3);
/* Path text in the write's arena. */
const char *bh_adm_path(struct bh_sim_write *w, const char *fmt, ...) BH_PRINTF(2, 3);
/* "AT.MEMBER", or the member alone when at is "", the object itself. Most functions below take the
 * two apart, with holder, the value at `at`; members can be dotted paths. */
const char *bh_adm_member(struct bh_sim_write *w, const char *at, const char *member);
/* check() for each element of the list, with its path. */
void bh_adm_each(struct bh_sim_write *w, const char *at, const struct bh_json *holder,
                 const char *list,
                 void (*check)(struct bh_sim_write *w, const char *at,
                               const struct bh_json *element));
void bh_adm_required(struct bh_sim_write *w, const char *at, const char *member, const char *text);
void bh_adm_forbidden(struct bh_sim_write *w, const char *at, const char *member, const char *text);
/* An absent value is shown as "". */
void bh_adm_invalid(struct bh_sim_write *w, const char *at, const struct bh_json *holder,
                    const char *member, const char *text);
void bh_adm_invalid_value(struct bh_sim_write *w, const char *field, const struct bh_json *v,
                          const char *text);
void bh_adm_invalid_text(struct bh_sim_write *w, const char *field, const char *v,
                         const char *text);
void bh_adm_duplicate(struct bh_sim_write *w, const char *field, const char *v);
/* No element of the list before this one has its name. */
void bh_adm_unique(struct bh_sim_write *w, const char *field, const struct bh_json *list,
                   const struct bh_json *element);
/* The member's text; NULL when it is absent or empty, which is an error. */
const char *bh_adm_text(struct bh_sim_write *w, const char *at, const struct bh_json *holder,
                        const char *member, const char *why);
/* One of the words, which stand in alphabetical order. */
void bh_adm_one_of(struct bh_sim_write *w, const char *at, const struct bh_json *holder,
                   const char *member, const char *words, bool required);
/* Differs from the old value: "field is immutable". */
void bh_adm_immutable(struct bh_sim_write *w, const char *dotted);
bool bh_adm_same(const struct bh_json *a, const struct bh_json *b, const char *dotted);
void bh_adm_dns_label(struct bh_sim_write *w, const char *field, const char *v);
/* Absent is fine. */
void bh_adm_dns_subdomain(struct bh_sim_write *w, const char *at, const struct bh_json *holder,
                          const char *member);
void bh_adm_label_key(struct bh_sim_write *w, const char *field, const char *v);

/* ---- shared knowledge ------------------------------------------------------------------------ */

/* Now as RFC 3339, in the arena. */
const char *bh_adm_now(struct bh_sim_write *w);
/* What a pod's containers have of a resource in map ("requests", "limits"), in nano-units: side
 * cars add up and stay, an ordinary init container needs its own on top of those before it. */
__int128 bh_adm_containers_sum(const struct bh_json *spec, const char *map, const char *resource);
/* The same of one container; dflt: it says nothing. */
__int128 bh_adm_container_amount(const struct bh_json *container, const char *map,
                                 const char *resource, __int128 dflt);
/* Fills in status.hard and status.used of a ResourceQuota from what its namespace holds. */
void bh_adm_quota_count(struct bh_sim *s, struct bh_arena *a, struct bh_json *quota);
bool bh_adm_parse_quantity(const struct bh_json *v, __int128 *ret_nano);
#endif
