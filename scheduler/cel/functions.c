/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/cel/functions.c - which functions there are, and how a call finds its overload
 *
 * Letters of operands: b bool, i int, u uint, d double, s string, y bytes, t type, q quantity, v
 * semver, L list, l list of strings, g list of numbers, h list of what has an order (H: which is
 * not looked at again while evaluating), M map, o optional, * anything. Letters of results: the
 * same, and those of check.c's result_type(). p is an IP address, c a CIDR. The letter behind the
 * result is the price, see call_cost().
 * Upstream: cel-go standard library, ext/strings.go, ext/sets.go, ext/lists.go, cel/library.go
 * (optionals), k8s.io/apiserver/pkg/cel/library (also cost.go). What is missing is an undeclared
 * reference.
 */
#include <math.h>

#include "scheduler/cel/functions.h"

const struct cel_func bh_cel_funcs[] = {
    {"size", false, "s", 'i', '1', bh_cel_size_fn},
    {"size", false, "y", 'i', '1', bh_cel_size_fn},
    {"size", false, "L", 'i', '1', bh_cel_size_fn},
    {"size", false, "M", 'i', '1', bh_cel_size_fn},
    {"size", true, "s", 'i', '1', bh_cel_size_fn},
    {"size", true, "y", 'i', '1', bh_cel_size_fn},
    {"size", true, "L", 'i', '1', bh_cel_size_fn},
    {"size", true, "M", 'i', '1', bh_cel_size_fn},
    {"int", false, "i", 'i', '1', bh_cel_int},
    {"int", false, "u", 'i', '1', bh_cel_int},
    {"int", false, "d", 'i', '1', bh_cel_int},
    {"int", false, "s", 'i', '1', bh_cel_int},
    {"uint", false, "i", 'u', '1', bh_cel_uint},
    {"uint", false, "u", 'u', '1', bh_cel_uint},
    {"uint", false, "d", 'u', '1', bh_cel_uint},
    {"uint", false, "s", 'u', '1', bh_cel_uint},
    {"double", false, "i", 'd', '1', bh_cel_double},
    {"double", false, "u", 'd', '1', bh_cel_double},
    {"double", false, "d", 'd', '1', bh_cel_double},
    {"double", false, "s", 'd', '1', bh_cel_double},
    {"string", false, "s", 's', '1', bh_cel_string},
    {"string", false, "y", 's', 'y', bh_cel_string},
    {"string", false, "i", 's', '1', bh_cel_string},
    {"string", false, "u", 's', '1', bh_cel_string},
    {"string", false, "d", 's', '1', bh_cel_string},
    {"string", false, "b", 's', '1', bh_cel_string},
    {"bool", false, "b", 'b', '1', bh_cel_to_bool},
    {"bool", false, "s", 'b', '1', bh_cel_to_bool},
    {"bytes", false, "y", 'y', '1', bh_cel_bytes},
    {"bytes", false, "s", 'y', 'y', bh_cel_bytes},
    {"dyn", false, "*", '*', '1', bh_cel_dyn},
    {"type", false, "*", 't', '1', bh_cel_type},

    {"contains", true, "ss", 'b', 'c', bh_cel_contains},
    {"startsWith", true, "ss", 'b', 't', bh_cel_starts_with},
    {"endsWith", true, "ss", 'b', 't', bh_cel_ends_with},
    {"matches", true, "ss", 'b', 'f', bh_cel_matches},
    {"matches", false, "ss", 'b', 'f', bh_cel_matches},
    {"find", true, "ss", 's', 'f', bh_cel_find},
    {"findAll", true, "ss", 'l', 'f', bh_cel_find_all},
    {"findAll", true, "ssi", 'l', 'f', bh_cel_find_all_n},
    {"charAt", true, "si", 's', '1', bh_cel_char_at},
    {"indexOf", true, "ss", 'i', 'w', bh_cel_index_of},
    {"indexOf", true, "ssi", 'i', 'w', bh_cel_index_of_from},
    {"indexOf", true, "L*", 'i', 'w', bh_cel_list_index_of},
    {"lastIndexOf", true, "ss", 'i', 'w', bh_cel_last_index_of},
    {"lastIndexOf", true, "ssi", 'i', 'w', bh_cel_last_index_of_from},
    {"lastIndexOf", true, "L*", 'i', 'w', bh_cel_list_last_index_of},
    {"lowerAscii", true, "s", 's', 't', bh_cel_lower},
    {"upperAscii", true, "s", 's', 't', bh_cel_upper},
    {"replace", true, "sss", 's', 'T', bh_cel_replace},
    {"replace", true, "sssi", 's', 'T', bh_cel_replace_n},
    {"split", true, "ss", 'l', 'T', bh_cel_split},
    {"split", true, "ssi", 'l', 'T', bh_cel_split_n},
    {"substring", true, "si", 's', 't', bh_cel_substring},
    {"substring", true, "sii", 's', 't', bh_cel_substring},
    {"trim", true, "s", 's', 't', bh_cel_trim},
    {"join", true, "l", 's', 'j', bh_cel_join},
    {"join", true, "ls", 's', 'j', bh_cel_join_with},
    {"strings.quote", false, "s", 's', 't', bh_cel_quote},

    {"sets.contains", false, "LL", 'b', 's', bh_cel_sets_contains},
    {"sets.equivalent", false, "LL", 'b', 'S', bh_cel_sets_equivalent},
    {"sets.intersects", false, "LL", 'b', 's', bh_cel_sets_intersects},
    {"includes", true, "**", 'b', '1', bh_cel_includes},
    {"isSorted", true, "h", 'b', 'w', bh_cel_is_sorted},
    {"sum", true, "g", 'e', 'w', bh_cel_sum},
    {"min", true, "h", 'e', 'w', bh_cel_min},
    {"max", true, "h", 'e', 'w', bh_cel_max},
    {"slice", true, "Lii", '=', 'o', bh_cel_slice},
    {"flatten", true, "L", 'D', 'F', bh_cel_flatten},
    {"flatten", true, "Li", 'L', 'F', bh_cel_flatten},
    {"lists.range", false, "i", 'I', 'o', bh_cel_range},
    {"distinct", true, "L", '=', 'D', bh_cel_distinct},
    {"reverse", true, "L", '=', 'o', bh_cel_reverse},
    {"sort", true, "H", '=', 'd', bh_cel_sort},
    {"first", true, "L", 'f', '1', bh_cel_first},
    {"last", true, "L", 'f', '1', bh_cel_last},

    {"ip", false, "s", 'p', 't', bh_cel_ip},
    {"ip", true, "c", 'p', '1', bh_cel_cidr_ip},
    {"isIP", false, "s", 'b', 't', bh_cel_is_ip},
    {"ip.isCanonical", false, "s", 'b', 'T', bh_cel_ip_is_canonical},
    {"family", true, "p", 'i', '1', bh_cel_family},
    {"isUnspecified", true, "p", 'b', '1', bh_cel_is_unspecified},
    {"isLoopback", true, "p", 'b', '1', bh_cel_is_loopback},
    {"isLinkLocalMulticast", true, "p", 'b', '1', bh_cel_is_link_local_multicast},
    {"isLinkLocalUnicast", true, "p", 'b', '1', bh_cel_is_link_local_unicast},
    {"isGlobalUnicast", true, "p", 'b', '1', bh_cel_is_global_unicast},
    {"cidr", false, "s", 'c', 't', bh_cel_cidr},
    {"isCIDR", false, "s", 'b', 't', bh_cel_is_cidr},
    {"containsIP", true, "cs", 'b', 'n', bh_cel_contains_ip},
    {"containsIP", true, "cp", 'b', 'n', bh_cel_contains_ip},
    {"containsCIDR", true, "cs", 'b', 'N', bh_cel_contains_cidr},
    {"containsCIDR", true, "cc", 'b', 'N', bh_cel_contains_cidr},
    {"prefixLength", true, "c", 'i', '1', bh_cel_prefix_length},
    {"masked", true, "c", 'c', '1', bh_cel_masked},
    {"string", false, "p", 's', '1', bh_cel_net_string},
    {"string", false, "c", 's', '1', bh_cel_net_string},

    {"optional.of", false, "*", 'o', '1', bh_cel_optional_of},
    {"optional.none", false, "", 'O', '1', bh_cel_optional_none},
    {"optional.ofNonZeroValue", false, "*", 'o', '1', bh_cel_optional_non_zero},
    {"hasValue", true, "o", 'b', '1', bh_cel_has_value},
    {"value", true, "o", 'e', '1', bh_cel_value},
    {"or", true, "oo", '=', '0', bh_cel_or},
    {"orValue", true, "o*", 'e', '0', bh_cel_or_value},

    {"quantity", false, "s", 'q', 't', bh_cel_quantity},
    {"isQuantity", false, "s", 'b', 't', bh_cel_is_quantity},
    {"sign", false, "q", 'i', '1', bh_cel_quantity_sign},
    {"asApproximateFloat", true, "q", 'd', '1', bh_cel_quantity_float},
    {"asInteger", true, "q", 'i', '1', bh_cel_quantity_int},
    {"isInteger", true, "q", 'b', '1', bh_cel_quantity_is_int},
    {"add", true, "qq", 'q', '1', bh_cel_quantity_add},
    {"add", true, "qi", 'q', '1', bh_cel_quantity_add},
    {"sub", true, "qq", 'q', '1', bh_cel_quantity_sub},
    {"sub", true, "qi", 'q', '1', bh_cel_quantity_sub},
    {"isLessThan", true, "qq", 'b', '1', bh_cel_quantity_less},
    {"isLessThan", true, "vv", 'b', '1', bh_cel_semver_less},
    {"isGreaterThan", true, "qq", 'b', '1', bh_cel_quantity_greater},
    {"isGreaterThan", true, "vv", 'b', '1', bh_cel_semver_greater},
    {"compareTo", true, "qq", 'i', '1', bh_cel_quantity_compare},
    {"compareTo", true, "vv", 'i', '1', bh_cel_semver_compare_to},

    {"semver", false, "s", 'v', 't', bh_cel_semver},
    {"semver", false, "sb", 'v', 't', bh_cel_semver_normal},
    {"isSemver", false, "s", 'b', 't', bh_cel_is_semver},
    {"isSemver", false, "sb", 'b', 't', bh_cel_is_semver_normal},
    {"major", true, "v", 'i', '1', bh_cel_semver_major},
    {"minor", true, "v", 'i', '1', bh_cel_semver_minor},
    {"patch", true, "v", 'i', '1', bh_cel_semver_patch},
};
const size_t bh_cel_n_funcs = BH_ARRAY_LEN(bh_cel_funcs);

bool bh_cel_func_accepts(char letter, uint32_t kind)
{
    static const struct {
        char letter;
        uint8_t kind;
    } known[] = {{'b', CEL_BOOL},   {'i', CEL_INT},   {'u', CEL_UINT}, {'d', CEL_DOUBLE},
                 {'s', CEL_STRING}, {'y', CEL_BYTES}, {'t', CEL_TYPE}, {'q', CEL_QUANTITY},
                 {'v', CEL_SEMVER}, {'L', CEL_LIST},  {'l', CEL_LIST}, {'g', CEL_LIST},
                 {'h', CEL_LIST},   {'H', CEL_LIST},  {'M', CEL_MAP},  {'o', CEL_OPTIONAL},
                 {'p', CEL_IP},     {'c', CEL_CIDR}};

    if (letter == '*')
        return true;
    for (size_t i = 0; i < BH_ARRAY_LEN(known); i++) {
        if (known[i].letter == letter)
            return known[i].kind == kind;
    }
    return false;
}

/* May a list given for this letter hold items of this kind? */
bool bh_cel_func_accepts_item(char letter, uint32_t kind)
{
    bool number = kind == CEL_INT || kind == CEL_UINT || kind == CEL_DOUBLE;

    switch (letter) {
    case 'l':
        return kind == CEL_STRING;
    case 'g':
        return number;
    case 'h':
        return number || kind == CEL_BOOL || kind == CEL_STRING || kind == CEL_BYTES;
    default:
        return true;
    }
}

static bool row_fits(const struct cel_func *f, const struct cel_func *like,
                     const struct cel_value *arg, uint32_t n)
{
    if (f->member != like->member || strcmp(f->name, like->name) != 0 || strlen(f->args) != n)
        return false;
    for (uint32_t i = 0; i < n; i++) {
        if (!bh_cel_func_accepts(f->args[i], arg[i].kind) ||
            (arg[i].kind == CEL_LIST && arg[i].n &&
             !bh_cel_func_accepts_item(f->args[i], arg[i].list[0].kind)))
            return false;
    }
    return true;
}

/* What upstream declares with one overload of its own kind says less when none fits. */
static struct cel_value no_row(struct cel_eval *e, const struct cel_node *n,
                               const struct cel_value *arg)
{
    static const char *const terse[] = {"contains", "startsWith", "endsWith", "matches"};
    const char *name = n->call.func->name;

    for (size_t i = 0; i < BH_ARRAY_LEN(terse); i++) {
        if (bh_streq(name, terse[i]))
            return bh_cel_error(e, "no such overload");
    }
    if (bh_streq(name, "size"))
        return bh_cel_error(e, "no such overload: size");
    return bh_cel_no_overload(e, name, arg, n->n_args);
}

/* The sum of what its items cost to walk over. */
static uint64_t traversal(const struct cel_value *v)
{
    uint64_t sum = 0;

    switch (v->kind) {
    case CEL_STRING:
    case CEL_BYTES:
        return (uint64_t)((double)v->n * 0.1);
    case CEL_LIST:
        for (uint32_t i = 0; i < v->n; i++)
            sum += traversal(&v->list[i]);
        return sum;
    case CEL_MAP:
        for (uint32_t i = 0; i < v->map->n; i++)
            sum += traversal(&v->map->entry[i].key) + traversal(&v->map->entry[i].value);
        return sum;
    default:
        return 1;
    }
}

/* Comparing each item with each. */
uint64_t bh_cel_self_compare_cost(const struct cel_value *list)
{
    double factor = 2.0;

    if (list->kind != CEL_LIST || list->n == 0)
        return 11;
    if (list->list[0].kind == CEL_STRING || list->list[0].kind == CEL_BYTES)
        factor += 0.1;
    return (uint64_t)((double)list->n * list->n * factor) + 11;
}

static uint64_t cidr_cost(const struct cel_value *arg, bool cidr, bool known_text)
{
    double n = (double)bh_cel_size(&arg[0]);
    uint64_t cost = bh_cel_tenths(n + n);

    if (cidr)
        cost += bh_cel_tenths(n) + 1;
    return known_text ? cost + bh_cel_tenths((double)bh_cel_size(&arg[1])) : cost;
}

/* Upstream knows what sorting costs when it knows what is sorted. */
static bool dyn_elem(const struct cel_eval *e, const struct cel_node *n)
{
    const struct cel_type *t = e->prog->node[e->prog->arg[n->first]].type;

    return !t->elem || t->elem->kind == CEL_DYN;
}

static uint64_t call_cost(const struct cel_eval *e, const struct cel_node *n, char rule,
                          const struct cel_value *arg, const struct cel_value *result)
{
    double size = (double)bh_cel_size(&arg[0]), other = (double)bh_cel_size(&arg[1]);

    switch (rule) {
    case '0':
        return 0;
    case 't':
        return bh_cel_tenths(size);
    case 'T':
        return bh_cel_tenths(size * 2);
    case 'j':
        return bh_cel_tenths((double)bh_cel_size(result) * 2);
    case 'y': /* known to upstream only when the operand's type is */
        return e->prog->node[e->prog->arg[n->first]].type->kind == CEL_DYN ? 1
                                                                           : bh_cel_tenths(size);
    case 'c':
        return bh_cel_tenths(size) * bh_cel_tenths(other);
    case 'f':
        return bh_cel_tenths(1.0 + size) * (uint64_t)ceil(other * 0.25);
    case 'w':
        return traversal(&arg[0]);
    case 's':
        return 1 + (uint64_t)(size * other);
    case 'S':
        return 1 + (uint64_t)(size * other * 2);
    case 'o':
        return (uint64_t)bh_cel_size(result) + 11;
    case 'F':
        return (uint64_t)(size * (n->n_args == 2 ? (double)arg[1].i : 1)) + 11;
    case 'D':
        return bh_cel_self_compare_cost(&arg[0]);
    case 'd':
        return dyn_elem(e, n) ? 1 : bh_cel_self_compare_cost(&arg[0]);
    case 'n':
    case 'N':
        return cidr_cost(arg, rule == 'N',
                         e->prog->node[e->prog->arg[n->first + 1]].type->kind == CEL_STRING);
    default:
        return 1;
    }
}

static struct cel_value dispatch(struct cel_eval *e, const struct cel_node *n,
                                 const struct cel_value *arg)
{
    for (uint32_t i = 0; i < n->n_args; i++) {
        if (arg[i].kind == CEL_ERROR)
            return arg[i];
    }
    /* The rows of one name need not be neighbours, but none lies before the first the checker
     * found. */
    for (const struct cel_func *f = n->call.func; f < bh_cel_funcs + bh_cel_n_funcs; f++) {
        if (row_fits(f, n->call.func, arg, n->n_args)) {
            e->node = n;
            return f->fn(e, arg);
        }
    }
    return no_row(e, n, arg);
}

/* or() and orValue(), which look at their operand only when it is needed. */
static struct cel_value alternative(struct cel_eval *e, const struct cel_node *n)
{
    struct cel_value arg[2] = {bh_cel_eval(e, e->prog->arg[n->first])};

    if (arg[0].kind == CEL_ERROR)
        return arg[0];
    if (arg[0].kind == CEL_OPTIONAL && arg[0].n)
        return n->call.func->ret == '=' ? arg[0] : *arg[0].opt;
    if (arg[0].kind != CEL_OPTIONAL)
        return arg[0];
    return bh_cel_eval(e, e->prog->arg[n->first + 1]);
}

/* One or two operands are found before it is asked whether they are errors; of more than two the
 * first error ends the call without its price unless it is the last operand, and so it does where
 * the overload is not known: the way of upstream's planner. */
struct cel_value bh_cel_call(struct cel_eval *e, const struct cel_node *n)
{
    struct cel_value arg[CEL_ARGS_MAX] = {{.kind = CEL_NULL}}, r = {.kind = CEL_NULL};
    char rule = n->call.func->cost;

    if (rule == '0')
        return alternative(e, n);
    for (uint32_t i = 0; i < n->n_args; i++) {
        arg[i] = bh_cel_eval(e, e->prog->arg[n->first + i]);
        if (arg[i].kind == CEL_ERROR && i + 1 < n->n_args && (n->n_args > 2 || n->many))
            return arg[i];
    }
    bool after = rule == 'j' || rule == 'o';
    if (!after && !bh_cel_charge(e, call_cost(e, n, rule, arg, &r)))
        return cel_bool(false);
    r = dispatch(e, n, arg);
    if (after)
        bh_cel_charge(e, call_cost(e, n, rule, arg, &r));
    return r;
}
