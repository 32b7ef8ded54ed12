/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/cel/functions.c - which functions there are, and how a call finds its overload
 *
 * Letters of operands: b bool, i int, u uint, d double, s string, y bytes, t type, q quantity, v
 * semver, L list, l list of strings, M map, o optional, * anything. Letters of results: the same,
 * and those of check.c's result_type(). Upstream: cel-go standard library, ext/strings.go,
 * ext/sets.go, cel/library.go (optionals), k8s.io/apiserver/pkg/cel/library. What is missing is an
 * undeclared reference.
 */
#include "scheduler/cel/functions.h"

const struct cel_func bh_cel_funcs[] = {
    {"size", false, "s", 'i', bh_cel_size_fn},
    {"size", false, "y", 'i', bh_cel_size_fn},
    {"size", false, "L", 'i', bh_cel_size_fn},
    {"size", false, "M", 'i', bh_cel_size_fn},
    {"size", true, "s", 'i', bh_cel_size_fn},
    {"size", true, "y", 'i', bh_cel_size_fn},
    {"size", true, "L", 'i', bh_cel_size_fn},
    {"size", true, "M", 'i', bh_cel_size_fn},
    {"int", false, "i", 'i', bh_cel_int},
    {"int", false, "u", 'i', bh_cel_int},
    {"int", false, "d", 'i', bh_cel_int},
    {"int", false, "s", 'i', bh_cel_int},
    {"uint", false, "i", 'u', bh_cel_uint},
    {"uint", false, "u", 'u', bh_cel_uint},
    {"uint", false, "d", 'u', bh_cel_uint},
    {"uint", false, "s", 'u', bh_cel_uint},
    {"double", false, "i", 'd', bh_cel_double},
    {"double", false, "u", 'd', bh_cel_double},
    {"double", false, "d", 'd', bh_cel_double},
    {"double", false, "s", 'd', bh_cel_double},
    {"string", false, "s", 's', bh_cel_string},
    {"string", false, "y", 's', bh_cel_string},
    {"string", false, "i", 's', bh_cel_string},
    {"string", false, "u", 's', bh_cel_string},
    {"string", false, "d", 's', bh_cel_string},
    {"string", false, "b", 's', bh_cel_string},
    {"bool", false, "b", 'b', bh_cel_to_bool},
    {"bool", false, "s", 'b', bh_cel_to_bool},
    {"bytes", false, "y", 'y', bh_cel_bytes},
    {"bytes", false, "s", 'y', bh_cel_bytes},
    {"dyn", false, "*", '*', bh_cel_dyn},
    {"type", false, "*", 't', bh_cel_type},

    {"contains", true, "ss", 'b', bh_cel_contains},
    {"startsWith", true, "ss", 'b', bh_cel_starts_with},
    {"endsWith", true, "ss", 'b', bh_cel_ends_with},
    {"matches", true, "ss", 'b', bh_cel_matches},
    {"matches", false, "ss", 'b', bh_cel_matches},
    {"find", true, "ss", 's', bh_cel_find},
    {"findAll", true, "ss", 'l', bh_cel_find_all},
    {"findAll", true, "ssi", 'l', bh_cel_find_all_n},
    {"charAt", true, "si", 's', bh_cel_char_at},
    {"indexOf", true, "ss", 'i', bh_cel_index_of},
    {"indexOf", true, "ssi", 'i', bh_cel_index_of_from},
    {"indexOf", true, "L*", 'i', bh_cel_list_index_of},
    {"lastIndexOf", true, "ss", 'i', bh_cel_last_index_of},
    {"lastIndexOf", true, "L*", 'i', bh_cel_list_last_index_of},
    {"lowerAscii", true, "s", 's', bh_cel_lower},
    {"upperAscii", true, "s", 's', bh_cel_upper},
    {"replace", true, "sss", 's', bh_cel_replace},
    {"replace", true, "sssi", 's', bh_cel_replace_n},
    {"split", true, "ss", 'l', bh_cel_split},
    {"split", true, "ssi", 'l', bh_cel_split_n},
    {"substring", true, "si", 's', bh_cel_substring},
    {"substring", true, "sii", 's', bh_cel_substring},
    {"trim", true, "s", 's', bh_cel_trim},
    {"join", true, "l", 's', bh_cel_join},
    {"join", true, "ls", 's', bh_cel_join_with},
    {"reverse", true, "s", 's', bh_cel_reverse_string},

    {"sets.contains", false, "LL", 'b', bh_cel_sets_contains},
    {"sets.equivalent", false, "LL", 'b', bh_cel_sets_equivalent},
    {"sets.intersects", false, "LL", 'b', bh_cel_sets_intersects},
    {"includes", true, "**", 'b', bh_cel_includes},
    {"isSorted", true, "L", 'b', bh_cel_is_sorted},
    {"sum", true, "L", 'e', bh_cel_sum},
    {"min", true, "L", 'e', bh_cel_min},
    {"max", true, "L", 'e', bh_cel_max},

    {"optional.of", false, "*", 'o', bh_cel_optional_of},
    {"optional.none", false, "", 'O', bh_cel_optional_none},
    {"optional.ofNonZeroValue", false, "*", 'o', bh_cel_optional_non_zero},
    {"hasValue", true, "o", 'b', bh_cel_has_value},
    {"value", true, "o", 'e', bh_cel_value},
    {"or", true, "oo", '=', bh_cel_or},
    {"orValue", true, "o*", 'e', bh_cel_or_value},

    {"quantity", false, "s", 'q', bh_cel_quantity},
    {"isQuantity", false, "s", 'b', bh_cel_is_quantity},
    {"sign", true, "q", 'i', bh_cel_quantity_sign},
    {"asApproximateFloat", true, "q", 'd', bh_cel_quantity_float},
    {"asInteger", true, "q", 'i', bh_cel_quantity_int},
    {"isInteger", true, "q", 'b', bh_cel_quantity_is_int},
    {"add", true, "qq", 'q', bh_cel_quantity_add},
    {"add", true, "qi", 'q', bh_cel_quantity_add},
    {"sub", true, "qq", 'q', bh_cel_quantity_sub},
    {"sub", true, "qi", 'q', bh_cel_quantity_sub},
    {"isLessThan", true, "qq", 'b', bh_cel_quantity_less},
    {"isLessThan", true, "vv", 'b', bh_cel_semver_less},
    {"isGreaterThan", true, "qq", 'b', bh_cel_quantity_greater},
    {"isGreaterThan", true, "vv", 'b', bh_cel_semver_greater},
    {"compareTo", true, "qq", 'i', bh_cel_quantity_compare},
    {"compareTo", true, "vv", 'i', bh_cel_semver_compare_to},

    {"semver", false, "s", 'v', bh_cel_semver},
    {"semver", false, "sb", 'v', bh_cel_semver_normal},
    {"isSemver", false, "s", 'b', bh_cel_is_semver},
    {"isSemver", false, "sb", 'b', bh_cel_is_semver_normal},
    {"major", true, "v", 'i', bh_cel_semver_major},
    {"minor", true, "v", 'i', bh_cel_semver_minor},
    {"patch", true, "v", 'i', bh_cel_semver_patch},
};
const size_t bh_cel_n_funcs = BH_ARRAY_LEN(bh_cel_funcs);

bool bh_cel_func_accepts(char letter, uint32_t kind)
{
    static const struct {
        char letter;
        uint8_t kind;
    } known[] = {{'b', CEL_BOOL},    {'i', CEL_INT},   {'u', CEL_UINT}, {'d', CEL_DOUBLE},
                 {'s', CEL_STRING},  {'y', CEL_BYTES}, {'t', CEL_TYPE}, {'q', CEL_QUANTITY},
                 {'v', CEL_SEMVER},  {'L', CEL_LIST},  {'l', CEL_LIST}, {'M', CEL_MAP},
                 {'o', CEL_OPTIONAL}};

    if (letter == '*')
        return true;
    for (size_t i = 0; i < BH_ARRAY_LEN(known); i++) {
        if (known[i].letter == letter)
            return known[i].kind == kind;
    }
    return false;
}

static bool row_fits(const struct cel_func *f, const struct cel_func *like,
                     const struct cel_value *arg, uint32_t n)
{
    if (f->member != like->member || strcmp(f->name, like->name) != 0 || strlen(f->args) != n)
        return false;
    for (uint32_t i = 0; i < n; i++) {
        if (!bh_cel_func_accepts(f->args[i], arg[i].kind))
            return false;
    }
    return true;
}

/* The rows of one name need not be neighbours, but none lies before the first the checker found. */
struct cel_value bh_cel_call(struct cel_eval *e, const struct cel_node *n)
{
    struct cel_value arg[CEL_ARGS_MAX] = {{.kind = CEL_NULL}};

    for (uint32_t i = 0; i < n->n_args; i++) {
        arg[i] = bh_cel_eval(e, e->prog->arg[n->first + i]);
        if (arg[i].kind == CEL_ERROR)
            return arg[i];
    }
    if (!bh_cel_charge(e, 1))
        return cel_bool(false);
    for (const struct cel_func *f = n->call.func; f < bh_cel_funcs + bh_cel_n_funcs; f++) {
        if (row_fits(f, n->call.func, arg, n->n_args)) {
            e->node = n;
            return f->fn(e, arg);
        }
    }
    return bh_cel_no_overload(e, n->call.func->name, arg, n->n_args);
}
