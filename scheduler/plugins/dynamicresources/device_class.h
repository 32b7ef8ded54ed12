/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/plugins/dynamicresources/device_class.h - extended resources that a DeviceClass
 * provides
 *
 * Upstream: pkg/scheduler/framework/plugins/dynamicresources/extended (DeviceClassMapping).
 */
#ifndef BH_DEVICE_CLASS_H
#define BH_DEVICE_CLASS_H

#include "scheduler/cache/objects.h"

#define BH_IMPLICIT_RESOURCE_PREFIX "deviceclass.resource.kubernetes.io/"

/* The class that maps the resource, NULL without one: by spec.extendedResourceName, or by the
 * implicit name. Of several the newest, then the one with the smaller name. */
struct K8s__DeviceClass;
const struct K8s__DeviceClass *bh_device_class_of(const struct bh_objects *o, const char *resource);
/* Does some class map the resource? */
bool bh_device_class_maps(const struct bh_objects *o, const char *resource);
#endif
