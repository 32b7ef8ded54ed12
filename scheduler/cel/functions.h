/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/cel/functions.h - every function a row of functions.c refers to
 *
 * All have the contract of cel_fn in cel_int.h. What depends on the length of an operand is charged
 * by the dispatcher.
 */
#ifndef BH_CEL_FUNCTIONS_H
#define BH_CEL_FUNCTIONS_H

#include "scheduler/cel/cel_int.h"

/* convert.c */
cel_fn bh_cel_size_fn, bh_cel_int, bh_cel_uint, bh_cel_double, bh_cel_string, bh_cel_to_bool,
    bh_cel_bytes, bh_cel_dyn, bh_cel_type;
/* strings.c */
cel_fn bh_cel_contains, bh_cel_starts_with, bh_cel_ends_with, bh_cel_map_ascii, bh_cel_trim,
    bh_cel_char_at, bh_cel_index_of, bh_cel_last_index_of, bh_cel_substring, bh_cel_split,
    bh_cel_replace, bh_cel_join, bh_cel_quote, bh_cel_matches, bh_cel_find, bh_cel_find_all;
/* lists.c */
cel_fn bh_cel_sets_contains, bh_cel_sets_equivalent, bh_cel_sets_intersects, bh_cel_includes,
    bh_cel_is_sorted, bh_cel_sum, bh_cel_extreme, bh_cel_list_index_of, bh_cel_optional_of,
    bh_cel_optional_none, bh_cel_optional_non_zero, bh_cel_has_value, bh_cel_value;
/* collections.c */
cel_fn bh_cel_slice, bh_cel_flatten, bh_cel_range, bh_cel_distinct, bh_cel_reverse, bh_cel_sort,
    bh_cel_end_of;
/* Items of the list in the order of their keys. */
struct cel_value bh_cel_sort_by(struct cel_eval *e, const struct cel_value *list,
                                const struct cel_value *keys);
/* What it costs to compare each item with each. */
uint64_t bh_cel_self_compare_cost(const struct cel_value *list);
/* net.c */
cel_fn bh_cel_ip, bh_cel_cidr_ip, bh_cel_ip_is_canonical, bh_cel_family, bh_cel_net_is, bh_cel_cidr,
    bh_cel_contains_ip, bh_cel_contains_cidr, bh_cel_prefix_length, bh_cel_masked,
    bh_cel_net_string;
enum {
    NET_UNSPECIFIED,
    NET_LOOPBACK,
    NET_LINK_LOCAL_MULTICAST,
    NET_LINK_LOCAL_UNICAST,
    NET_GLOBAL_UNICAST
};
/* quantity.c */
cel_fn bh_cel_quantity, bh_cel_quantity_sign, bh_cel_quantity_float, bh_cel_quantity_int,
    bh_cel_quantity_sum;
/* semver.c */
cel_fn bh_cel_semver, bh_cel_semver_part, bh_cel_order; /* bh_cel_order: also of quantities */
#endif
