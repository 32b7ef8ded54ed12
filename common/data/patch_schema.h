/* SPDX-License-Identifier: Apache-2.0
 *
 * common/data/patch_schema.h - what the folder's own files ask the table of list kinds
 *
 * Paths are dotted field names without indices ("spec.template.spec.containers.ports"). An unknown
 * kind has the metadata every object has and nothing else.
 */
#ifndef BH_PATCH_SCHEMA_H
#define BH_PATCH_SCHEMA_H

#include "common/data/patch.h"

bool bh_patch_kind_known(const char *kind);
/* Server-side apply: like bh_patch_merge_key, but several keys ("containerPort,protocol") can make
 * the identity of an element. */
const char *bh_patch_apply_keys(const char *kind, const char *path);
#endif
