/* SPDX-License-Identifier: Apache-2.0
 *
 * plugins/nodemetadata/node_metadata.h - values out of texts, as Go reads them
 *
 * Upstream: strconv.ParseFloat and time.Parse. Texts are borrowed; no function keeps anything.
 */
#ifndef NODE_METADATA_H
#define NODE_METADATA_H

#include "berth/plugin.h"

#define NM_NO_VALUE INT64_MIN

/* A number without its fraction. NM_NO_VALUE: it is none, or none of 64 bits. */
int64_t nm_number(struct berth_str text);

/* A time by a layout of Go's ("2006-01-02T15:04:05Z07:00"): whole seconds since 1970, in UTC where it
 * names no offset. 292 years from now are the farthest that Go's differences tell. NM_NO_VALUE: it is
 * not of this layout. */
int64_t nm_time(struct berth_str layout, struct berth_str text);
#endif
