/* SPDX-License-Identifier: Apache-2.0
 *
 * common/cel/functions.c - which functions there are, and how a call finds its overload
 *
 * Letters of operands: b bool, i int, u uint, d double, s string, y bytes, t type, q quantity, v
 * semver, L list, l list of strings, g list of numbers, h list of what has an order (H: which is
 * not looked at again while evaluating), M map, o optional, * anything, p IP address, c CIDR, k time,
 * a span of time, U URL, N named format; B, n,
 * x and z are any of several scalars. Operands behind a ? may be missing. Letters of results: the
 * same, and those of check.c's result_type(). The letter behind the result is the price, see
 * call_cost(). or() and orValue() are found here, but made by alternative().
 * Upstream: cel-go standard library, ext/strings.go, ext/sets.go, ext/lists.go, cel/library.go
 * (optionals), k8s.io/apiserver/pkg/cel/library (also cost.go). What is missing is an undeclared
 * reference.
 */
#include <math.h>

#include "common/cel/cel_int.h"

const struct cel_func bh_cel_funcs[] = {
    {"size", false, "z", 'i', '1', bh_cel_size_fn, 0},
    {"size", true, "z", 'i', '1', bh_cel_size_fn, 0},
    {"int", false, "n", 'i', '1', bh_cel_int, 0},
    {"uint", false, "n", 'u', '1', bh_cel_uint, 0},
    {"double", false, "n", 'd', '1', bh_cel_double, 0},
    {"string", false, "x", 's', '1', bh_cel_string, 0},
    {"string", false, "y", 's', 'y', bh_cel_string, 0},
    {"bool", false, "B", 'b', '1', bh_cel_to_bool, 0},
    {"bytes", false, "y", 'y', '1', bh_cel_bytes, 0},
    {"bytes", false, "s", 'y', 'y', bh_cel_bytes, 0},
    {"dyn", false, "*", '*', '1', bh_cel_dyn, 0},
    {"type", false, "*", 't', '1', bh_cel_type, 0},

    {"timestamp", false, "s", 'k', '1', bh_cel_time, CEL_TIMESTAMP},
    {"timestamp", false, "i", 'k', '1', bh_cel_time, CEL_TIMESTAMP},
    {"timestamp", false, "k", 'k', '1', bh_cel_time, CEL_TIMESTAMP},
    {"duration", false, "s", 'a', '1', bh_cel_time, CEL_DURATION},
    {"duration", false, "i", 'a', '1', bh_cel_time, CEL_DURATION},
    {"duration", false, "a", 'a', '1', bh_cel_time, CEL_DURATION},
    {"int", false, "k", 'i', '1', bh_cel_int, 0},
    {"int", false, "a", 'i', '1', bh_cel_int, 0},
    {"string", false, "k", 's', '1', bh_cel_string, 0},
    {"string", false, "a", 's', '1', bh_cel_string, 0},
    {"getFullYear", true, "k", 'i', '1', bh_cel_time_part, 4},
    {"getMonth", true, "k", 'i', '1', bh_cel_time_part, 5},
    {"getDate", true, "k", 'i', '1', bh_cel_time_part, 6},
    {"getDayOfMonth", true, "k", 'i', '1', bh_cel_time_part, 7},
    {"getDayOfWeek", true, "k", 'i', '1', bh_cel_time_part, 8},
    {"getDayOfYear", true, "k", 'i', '1', bh_cel_time_part, 9},
    {"getHours", true, "k", 'i', '1', bh_cel_time_part, 0},
    {"getMinutes", true, "k", 'i', '1', bh_cel_time_part, 1},
    {"getSeconds", true, "k", 'i', '1', bh_cel_time_part, 2},
    {"getMilliseconds", true, "k", 'i', '1', bh_cel_time_part, 3},
    {"getFullYear", true, "ks", 'i', '1', bh_cel_time_part_at, 4},
    {"getMonth", true, "ks", 'i', '1', bh_cel_time_part_at, 5},
    {"getDate", true, "ks", 'i', '1', bh_cel_time_part_at, 6},
    {"getDayOfMonth", true, "ks", 'i', '1', bh_cel_time_part_at, 7},
    {"getDayOfWeek", true, "ks", 'i', '1', bh_cel_time_part_at, 8},
    {"getDayOfYear", true, "ks", 'i', '1', bh_cel_time_part_at, 9},
    {"getHours", true, "ks", 'i', '1', bh_cel_time_part_at, 0},
    {"getMinutes", true, "ks", 'i', '1', bh_cel_time_part_at, 1},
    {"getSeconds", true, "ks", 'i', '1', bh_cel_time_part_at, 2},
    {"getMilliseconds", true, "ks", 'i', '1', bh_cel_time_part_at, 3},
    {"getHours", true, "a", 'i', '1', bh_cel_time_part, 0},
    {"getMinutes", true, "a", 'i', '1', bh_cel_time_part, 1},
    {"getSeconds", true, "a", 'i', '1', bh_cel_time_part, 2},
    {"getMilliseconds", true, "a", 'i', '1', bh_cel_time_part, 3},

    {"contains", true, "ss", 'b', 'c', bh_cel_contains, 0},
    {"startsWith", true, "ss", 'b', 't', bh_cel_starts_with, 0},
    {"endsWith", true, "ss", 'b', 't', bh_cel_ends_with, 0},
    {"matches", true, "ss", 'b', 'f', bh_cel_matches, 0},
    {"matches", false, "ss", 'b', 'f', bh_cel_matches, 0},
    {"find", true, "ss", 's', 'f', bh_cel_find, 0},
    {"findAll", true, "ss?i", 'l', 'f', bh_cel_find_all, 0},
    {"charAt", true, "si", 's', '1', bh_cel_char_at, 0},
    {"indexOf", true, "ss?i", 'i', 'w', bh_cel_index_of, 0},
    {"indexOf", true, "L*", 'i', 'w', bh_cel_list_index_of, 1},
    {"lastIndexOf", true, "ss?i", 'i', 'w', bh_cel_last_index_of, 0},
    {"lastIndexOf", true, "L*", 'i', 'w', bh_cel_list_index_of, -1},
    {"lowerAscii", true, "s", 's', 't', bh_cel_map_ascii, 'A'},
    {"upperAscii", true, "s", 's', 't', bh_cel_map_ascii, 'a'},
    {"replace", true, "sss?i", 's', 'T', bh_cel_replace, 0},
    {"split", true, "ss?i", 'l', 'T', bh_cel_split, 0},
    {"substring", true, "si?i", 's', 't', bh_cel_substring, 0},
    {"trim", true, "s", 's', 't', bh_cel_trim, 0},
    {"join", true, "l?s", 's', 'j', bh_cel_join, 0},
    {"strings.quote", false, "s", 's', 't', bh_cel_quote, 0},
    {"format", true, "sL", 's', 't', bh_cel_format, 0},

    {"url", false, "s", 'U', 't', bh_cel_url, 0},
    {"isURL", false, "s", 'b', '1', bh_cel_url, CEL_TEST},
    {"getScheme", true, "U", 's', '1', bh_cel_url_part, URL_SCHEME},
    {"getHost", true, "U", 's', '1', bh_cel_url_part, URL_HOST},
    {"getHostname", true, "U", 's', '1', bh_cel_url_part, URL_HOSTNAME},
    {"getPort", true, "U", 's', '1', bh_cel_url_part, URL_PORT},
    {"getEscapedPath", true, "U", 's', '1', bh_cel_url_part, URL_PATH},
    {"getQuery", true, "U", 'Q', '1', bh_cel_url_query, 0},

    {"format.named", false, "s", 'P', '1', bh_cel_format_named, 0},
    {"format.dns1123Label", false, "", 'N', '1', bh_cel_format_of, 0},
    {"format.dns1123Subdomain", false, "", 'N', '1', bh_cel_format_of, 0},
    {"format.dns1035Label", false, "", 'N', '1', bh_cel_format_of, 0},
    {"format.qualifiedName", false, "", 'N', '1', bh_cel_format_of, 0},
    {"format.dns1123LabelPrefix", false, "", 'N', '1', bh_cel_format_of, 0},
    {"format.dns1123SubdomainPrefix", false, "", 'N', '1', bh_cel_format_of, 0},
    {"format.dns1035LabelPrefix", false, "", 'N', '1', bh_cel_format_of, 0},
    {"format.labelValue", false, "", 'N', '1', bh_cel_format_of, 0},
    {"format.uri", false, "", 'N', '1', bh_cel_format_of, 0},
    {"format.uuid", false, "", 'N', '1', bh_cel_format_of, 0},
    {"format.byte", false, "", 'N', '1', bh_cel_format_of, 0},
    {"format.date", false, "", 'N', '1', bh_cel_format_of, 0},
    {"format.datetime", false, "", 'N', '1', bh_cel_format_of, 0},
    {"validate", true, "Ns", 'V', 'v', bh_cel_validate, 0},

    {"sets.contains", false, "LL", 'b', 's', bh_cel_sets, 0},
    {"sets.equivalent", false, "LL", 'b', 'S', bh_cel_sets, 1},
    {"sets.intersects", false, "LL", 'b', 's', bh_cel_sets, 2},
    {"includes", true, "**", 'b', '1', bh_cel_includes, 0},
    {"isSorted", true, "h", 'b', 'w', bh_cel_is_sorted, 0},
    {"sum", true, "g", 'e', 'w', bh_cel_sum, 0},
    {"min", true, "h", 'e', 'w', bh_cel_extreme, -1},
    {"max", true, "h", 'e', 'w', bh_cel_extreme, 1},
    {"slice", true, "Lii", '=', 'o', bh_cel_slice, 0},
    {"flatten", true, "L", 'D', 'F', bh_cel_flatten, 0},
    {"flatten", true, "Li", 'L', 'F', bh_cel_flatten, 0},
    {"lists.range", false, "i", 'I', 'o', bh_cel_range, 0},
    {"distinct", true, "L", '=', 'D', bh_cel_distinct, 0},
    {"reverse", true, "L", '=', 'o', bh_cel_reverse, 0},
    {"sort", true, "H", '=', 'd', bh_cel_sort, 0},
    {"first", true, "L", 'f', '1', bh_cel_end_of, -1},
    {"last", true, "L", 'f', '1', bh_cel_end_of, 1},

    {"ip", false, "s", 'p', 't', bh_cel_ip, 0},
    {"ip", true, "c", 'p', '1', bh_cel_cidr_ip, 0},
    {"isIP", false, "s", 'b', 't', bh_cel_ip, CEL_TEST},
    {"ip.isCanonical", false, "s", 'b', 'T', bh_cel_ip_is_canonical, 0},
    {"family", true, "p", 'i', '1', bh_cel_family, 0},
    {"isUnspecified", true, "p", 'b', '1', bh_cel_net_is, NET_UNSPECIFIED},
    {"isLoopback", true, "p", 'b', '1', bh_cel_net_is, NET_LOOPBACK},
    {"isLinkLocalMulticast", true, "p", 'b', '1', bh_cel_net_is, NET_LINK_LOCAL_MULTICAST},
    {"isLinkLocalUnicast", true, "p", 'b', '1', bh_cel_net_is, NET_LINK_LOCAL_UNICAST},
    {"isGlobalUnicast", true, "p", 'b', '1', bh_cel_net_is, NET_GLOBAL_UNICAST},
    {"cidr", false, "s", 'c', 't', bh_cel_cidr, 0},
    {"isCIDR", false, "s", 'b', 't', bh_cel_cidr, CEL_TEST},
    {"containsIP", true, "cs", 'b', 'n', bh_cel_contains_ip, 0},
    {"containsIP", true, "cp", 'b', 'n', bh_cel_contains_ip, 0},
    {"containsCIDR", true, "cs", 'b', 'N', bh_cel_contains_cidr, 0},
    {"containsCIDR", true, "cc", 'b', 'N', bh_cel_contains_cidr, 0},
    {"prefixLength", true, "c", 'i', '1', bh_cel_prefix_length, 0},
    {"masked", true, "c", 'c', '1', bh_cel_masked, 0},
    {"string", false, "p", 's', '1', bh_cel_net_string, 0},
    {"string", false, "c", 's', '1', bh_cel_net_string, 0},

    {"optional.of", false, "*", 'o', '1', bh_cel_optional_of, 0},
    {"optional.none", false, "", 'O', '1', bh_cel_optional_none, 0},
    {"optional.ofNonZeroValue", false, "*", 'o', '1', bh_cel_optional_non_zero, 0},
    {"hasValue", true, "o", 'b', '1', bh_cel_has_value, 0},
    {"value", true, "o", 'e', '1', bh_cel_value, 0},
    {"or", true, "oo", '=', '0', NULL, 0},
    {"orValue", true, "o*", 'e', '0', NULL, 0},

    {"quantity", false, "s", 'q', 't', bh_cel_quantity, 0},
    {"isQuantity", false, "s", 'b', 't', bh_cel_quantity, CEL_TEST},
    {"sign", false, "q", 'i', '1', bh_cel_quantity_sign, 0},
    {"asApproximateFloat", true, "q", 'd', '1', bh_cel_quantity_float, 0},
    {"asInteger", true, "q", 'i', '1', bh_cel_quantity_int, 0},
    {"isInteger", true, "q", 'b', '1', bh_cel_quantity_int, CEL_TEST},
    {"add", true, "qq", 'q', '1', bh_cel_quantity_sum, 1},
    {"add", true, "qi", 'q', '1', bh_cel_quantity_sum, 1},
    {"sub", true, "qq", 'q', '1', bh_cel_quantity_sum, -1},
    {"sub", true, "qi", 'q', '1', bh_cel_quantity_sum, -1},
    {"isLessThan", true, "qq", 'b', '1', bh_cel_order, '<'},
    {"isLessThan", true, "vv", 'b', '1', bh_cel_order, '<'},
    {"isGreaterThan", true, "qq", 'b', '1', bh_cel_order, '>'},
    {"isGreaterThan", true, "vv", 'b', '1', bh_cel_order, '>'},
    {"compareTo", true, "qq", 'i', '1', bh_cel_order, 0},
    {"compareTo", true, "vv", 'i', '1', bh_cel_order, 0},

    {"semver", false, "s?b", 'v', 't', bh_cel_semver, 0},
    {"isSemver", false, "s?b", 'b', 't', bh_cel_semver, CEL_TEST},
    {"major", true, "v", 'i', '1', bh_cel_semver_part, offsetof(struct cel_semver, major)},
    {"minor", true, "v", 'i', '1', bh_cel_semver_part, offsetof(struct cel_semver, minor)},
    {"patch", true, "v", 'i', '1', bh_cel_semver_part, offsetof(struct cel_semver, patch)},
};
const size_t bh_cel_n_funcs = BH_ARRAY_LEN(bh_cel_funcs);

bool bh_cel_func_accepts(char letter, uint32_t kind)
{
    static const struct {
        char letter;
        const char *any_of;
    } several[] = {{'B', "bs"}, {'n', "iuds"}, {'x', "siudb"}, {'z', "syLM"}};

    if (letter == '*' || bh_cel_letter_kind(letter) == kind)
        return true;
    for (size_t i = 0; i < BH_ARRAY_LEN(several); i++) {
        for (const char *p = several[i].any_of; several[i].letter == letter && *p; p++)
            if (bh_cel_letter_kind(*p) == kind)
                return true;
    }
    return false;
}

uint32_t bh_cel_letter_kind(char letter)
{
    static const char letters[] = "biudsytqvLlghHMopckaUN";
    static const uint8_t kinds[] = {
        CEL_BOOL,      CEL_INT,      CEL_UINT,   CEL_DOUBLE,   CEL_STRING, CEL_BYTES,
        CEL_TYPE,      CEL_QUANTITY, CEL_SEMVER, CEL_LIST,     CEL_LIST,   CEL_LIST,
        CEL_LIST,      CEL_LIST,     CEL_MAP,    CEL_OPTIONAL, CEL_IP,     CEL_CIDR,
        CEL_TIMESTAMP, CEL_DURATION, CEL_URL,    CEL_FORMAT};
    const char *at = letter ? strchr(letters, letter) : NULL;

    return at ? kinds[at - letters] : CEL_DYN;
}

bool bh_cel_func_takes(const struct cel_func *f, uint32_t n, char letters[static CEL_ARGS_MAX])
{
    uint32_t most = 0, least = 0;

    for (const char *p = f->args; *p; p++) {
        if (*p == '?')
            least = most + 1; /* one more than there must be */
        else
            letters[most++] = *p;
    }
    return n <= most && n + 1 >= (least ? least : most + 1);
}

/* May a list given for this letter hold items of this kind? */
bool bh_cel_func_accepts_item(char letter, uint32_t kind)
{
    switch (letter) {
    case 'l':
        return kind == CEL_STRING;
    case 'g':
        return cel_in(kind, CEL_NUMBERS);
    case 'h':
        return cel_in(kind, CEL_ORDERED);
    default:
        return true;
    }
}

static bool row_fits(const struct cel_func *f, const struct cel_func *like,
                     const struct cel_value *arg, uint32_t n)
{
    char letter[CEL_ARGS_MAX];

    if (f->member != like->member || strcmp(f->name, like->name) != 0 ||
        !bh_cel_func_takes(f, n, letter))
        return false;
    for (uint32_t i = 0; i < n; i++) {
        if (!bh_cel_func_accepts(letter[i], arg[i].kind) ||
            (arg[i].kind == CEL_LIST && arg[i].n &&
             !bh_cel_func_accepts_item(letter[i], arg[i].list[0].kind)))
            return false;
    }
    return true;
}

/* The sum of what its items cost to walk over. Finding it is a walk itself, and that of lists which
 * share parts is work. */
static uint64_t traversal(struct cel_eval *e, const struct cel_value *v)
{
    uint64_t sum = 0;

    switch (v->kind) {
    case CEL_STRING:
    case CEL_BYTES:
        return (uint64_t)((double)v->n * 0.1);
    case CEL_LIST:
        bh_cel_work(e, 1 + v->n / 16);
        for (uint32_t i = 0; i < v->n && !e->exhausted; i++)
            sum += traversal(e, &v->list[i]);
        return sum;
    case CEL_MAP:
        bh_cel_work(e, 1 + v->map->n / 16);
        for (uint32_t i = 0; i < v->map->n && !e->exhausted; i++)
            sum += traversal(e, &v->map->entry[i].key) + traversal(e, &v->map->entry[i].value);
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

static uint64_t cidr_cost(struct cel_eval *e, const struct cel_value *arg, bool cidr,
                          bool known_text)
{
    double n = (double)bh_cel_size_paid(e, &arg[0]);
    uint64_t cost = bh_cel_tenths(n + n);

    if (cidr)
        cost += bh_cel_tenths(n) + 1;
    return known_text ? cost + bh_cel_tenths((double)bh_cel_size_paid(e, &arg[1])) : cost;
}

static uint64_t call_cost(struct cel_eval *e, const struct cel_node *n, char rule,
                          const struct cel_value *arg, const struct cel_value *result)
{
    double size = (double)bh_cel_size_paid(e, &arg[0]);
    double other = (double)bh_cel_size_paid(e, &arg[1]);
    const struct cel_type *t;

    switch (rule) {
    case '0':
        return 0;
    case 't':
        return bh_cel_tenths(size);
    case 'T':
        return bh_cel_tenths(size * 2);
    case 'j':
        return bh_cel_tenths((double)bh_cel_size_paid(e, result) * 2);
    case 'y': /* known to upstream only when the operand's type is */
        return e->prog->node[e->prog->arg[n->first]].type->kind == CEL_DYN ? 1
                                                                           : bh_cel_tenths(size);
    case 'c':
        return bh_cel_tenths(size) * bh_cel_tenths(other);
    case 'f':
        return bh_cel_tenths(1.0 + size) * (uint64_t)ceil(other * 0.25);
    case 'w':
        return traversal(e, &arg[0]);
    case 's':
        return 1 + (uint64_t)(size * other);
    case 'S':
        return 1 + (uint64_t)(size * other * 2);
    case 'o':
        return (uint64_t)bh_cel_size_paid(e, result) + 11;
    case 'F':
        return (uint64_t)(size * (n->n_args == 2 ? (double)arg[1].i : 1)) + 11;
    case 'D':
        return bh_cel_self_compare_cost(&arg[0]);
    case 'd': /* upstream knows what sorting costs when it knows what is sorted */
        t = e->prog->node[e->prog->arg[n->first]].type;
        return !t->elem || t->elem->kind == CEL_DYN ? 1 : bh_cel_self_compare_cost(&arg[0]);
    case 'v':
        return arg[0].kind == CEL_FORMAT ? bh_cel_validate_cost(arg[0].i, (size_t)other) : 1;
    case 'n':
    case 'N':
        return cidr_cost(e, arg, rule == 'N',
                         e->prog->node[e->prog->arg[n->first + 1]].type->kind == CEL_STRING);
    default:
        return 1;
    }
}

static struct cel_value dispatch(struct cel_eval *e, const struct cel_node *n,
                                 const struct cel_value *arg)
{
    for (uint32_t i = 0; i < n->n_args; i++)
        if (arg[i].kind == CEL_ERROR)
            return arg[i];
    /* The rows of one name need not be neighbours, but none lies before the first the checker
     * found. */
    for (const struct cel_func *f = n->call.func; f < bh_cel_funcs + bh_cel_n_funcs; f++) {
        if (row_fits(f, n->call.func, arg, n->n_args)) {
            e->node = n;
            e->how = f->how;
            struct cel_value r = f->fn(e, arg);
            return f->how == CEL_TEST ? cel_bool(r.kind != CEL_ERROR) : r;
        }
    }
    /* What upstream declares with one overload of its own kind says less when none fits. */
    const char *name = n->call.func->name;
    if (bh_word_at("contains startsWith endsWith matches", name) >= 0)
        return bh_cel_error(e, "no such overload");
    if (bh_streq(name, "size"))
        return bh_cel_error(e, "no such overload: size");
    return bh_cel_no_overload(e, name, arg, n->n_args);
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
