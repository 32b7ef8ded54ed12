/* SPDX-License-Identifier: Apache-2.0
 *
 * front/resources.h - what every pod asks for: kube_pod_resource_request, kube_pod_resource_limit
 *
 * Read from the watcher's feed as an observer that also wants assigned pods as whole objects
 * (proto/berth.proto). That is work for the watcher, so it begins with the first question and ends
 * BH_RESOURCES_IDLE_NS after the last one. Of each pod only names and amounts are kept.
 * Threads:    the loop's.
 * Upstream:   pkg/scheduler/metrics/resources.
 */
#ifndef BH_FRONT_RESOURCES_H
#define BH_FRONT_RESOURCES_H

#include "common/base/loop.h"
#include "common/bus/bus.h"

#define BH_RESOURCES_IDLE_NS UINT64_C(600000000000)
#define BH_RESOURCES_WAIT_NS UINT64_C(10000000000)

struct bh_resources;
struct bh_resources *bh_resources_new(uv_loop_t *loop, const char *runtime_dir);
/* Callers that wait hear false. NULL allowed; drain the loop. */
void bh_resources_free(struct bh_resources *r);
/* done is called once, from the loop or at once: true = everything is there; false = not within
 * BH_RESOURCES_WAIT_NS. */
void bh_resources_ask(struct bh_resources *r, void (*done)(void *arg, bool complete), void *arg);
/* Appends both families, pods sorted by namespace and name, resources by name. */
void bh_resources_write(const struct bh_resources *r, struct bh_buf *out);
size_t bh_resources_count(const struct bh_resources *r); /* pods */

/* For tests: what the feed delivers. */
void bh_resources_change(struct bh_resources *r, const Berth__ObjectChange *c);
#endif
