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

/* The dotted path that a walk has come down: leave takes what enter returned. */
size_t bh_patch_enter(struct bh_buf *path, const char *name);
void bh_patch_leave(struct bh_buf *path, size_t keep);
/* What comes after the prefix; NULL: s has another one. */
const char *bh_patch_behind(const char *s, const char *prefix);
bool bh_patch_kind_known(const char *kind);
/* Server-side apply: like bh_patch_merge_key, but several keys ("containerPort,protocol") can make
 * the identity of an element. */
const char *bh_patch_apply_keys(const char *kind, const char *path);
#endif
