/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/plugins/dynamicresources/device_class.c - extended resources that a DeviceClass
 * provides
 *
 * Upstream: pkg/scheduler/framework/plugins/dynamicresources/extended; differences: none.
 */
#include "proto/kubernetes/kubernetes.pb-c.h"
#include "scheduler/plugins/dynamicresources/device_class.h"

static int64_t created(const K8s__DeviceClass *c)
{
    return c->metadata && c->metadata->creationtimestamp ? c->metadata->creationtimestamp->seconds
                                                         : INT64_MIN;
}

const struct K8s__DeviceClass *bh_device_class_of(const struct bh_objects *o, const char *resource)
{
    size_t prefix = sizeof BH_IMPLICIT_RESOURCE_PREFIX - 1;
    const char *implicit =
        strncmp(resource, BH_IMPLICIT_RESOURCE_PREFIX, prefix) == 0 ? resource + prefix : NULL;
    const K8s__DeviceClass *best = NULL;
    const char *best_name = NULL;

    bh_objects_each(ob, o, BH_KIND_DEVICECLASS) {
        const K8s__DeviceClass *dc = (const K8s__DeviceClass *)(const void *)ob->msg;
        const char *name = dc->spec ? dc->spec->extendedresourcename : NULL;
        if (!(name && bh_streq(name, resource)) && !(implicit && bh_streq(ob->name, implicit)))
            continue;
        if (!best || created(dc) > created(best) ||
            (created(dc) == created(best) && strcmp(ob->name, best_name) < 0)) {
            best = dc;
            best_name = ob->name;
        }
    }
    return best;
}

bool bh_device_class_maps(const struct bh_objects *o, const char *resource)
{
    return o->first[BH_KIND_DEVICECLASS] && bh_device_class_of(o, resource) != NULL;
}
