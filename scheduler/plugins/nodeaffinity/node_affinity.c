/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/plugins/nodeaffinity/node_affinity.c - node selector, required and preferred node
 * affinity
 *
 * Upstream: pkg/scheduler/framework/plugins/nodeaffinity/node_affinity.go,
 *           component-helpers/scheduling/corev1/nodeaffinity; differences: none.
 */
#include <errno.h>

#include "common/base/buf.h"
#include "common/k8s/codec.h"
#include "common/k8s/compile.h"
#include "proto/kubernetes/kubernetes.pb-c.h"
#include "scheduler/framework/framework.h"
#include "scheduler/plugins/registry.h"

BH_STATUS_CONST(enforced, BH_UNSCHEDULABLE_AND_UNRESOLVABLE, "NodeAffinity",
                "node(s) didn't match scheduler-enforced node affinity");
BH_STATUS_CONST(no_match, BH_UNSCHEDULABLE_AND_UNRESOLVABLE, "NodeAffinity",
                "node(s) didn't match Pod's node affinity/selector");
BH_STATUS_CONST(conflict, BH_UNSCHEDULABLE_AND_UNRESOLVABLE, "NodeAffinity",
                "pod affinity terms conflict");

/* ---- matching ---- */

static int64_t preferred_sum(const struct bh_shape_rec *s, const struct bh_node_rec *n,
                             const struct bh_symtab *tab, bh_sym metadata_name)
{
    const struct bh_node_term *t = bh_rec_at(s, s->preferred_terms, struct bh_node_term);
    int64_t sum = 0;

    for (uint32_t i = 0; i < s->preferred_terms.n; i++)
        if (t[i].weight && bh_node_term_match(s, &t[i], n, tab, metadata_name))
            sum += t[i].weight;
    return sum;
}

/* addedAffinity of the args, compiled like a pod's; NULL = none. */
static const struct bh_shape_rec *added(const void *args)
{
    return args;
}

static bool has_added_required(const void *args)
{
    return added(args) && added(args)->flags & BH_SHAPE_HAS_REQUIRED_AFFINITY;
}

static bool added_match(const void *args, const struct bh_node_rec *n, const struct bh_symtab *tab,
                        bh_sym metadata_name)
{
    return !has_added_required(args) ||
           bh_any_node_term_match(args, added(args)->required_terms, n, tab, metadata_name);
}

/* ---- PreFilter: terms that name their nodes ---- */

/* The names one term leaves: the intersection of its metadata.name In [...] requirements. Whether
 * the requirement is valid does not matter here, as upstream. false: the term names no nodes. */
static bool names_of_term(struct bh_call *c, const struct bh_node_term *t, bh_sym **ret,
                          uint32_t *ret_n)
{
    const struct bh_shape_rec *s = c->pod->shape;
    const struct bh_requirement *r = bh_rec_at(s, t->fields, struct bh_requirement);
    bool found = false;

    for (uint32_t i = 0; i < t->fields.n; i++) {
        const bh_sym *v = bh_rec_at(s, r[i].values, bh_sym);
        if (r[i].key != c->cache->sym.metadata_name || r[i].op != BH_REQ_IN)
            continue;
        bh_sym *mine = bh_arena_new_array(c->arena, bh_sym, r[i].values.n ? r[i].values.n : 1);
        uint32_t n = 0;
        for (uint32_t k = 0; k < r[i].values.n; k++)
            if (!found || bsearch(&v[k], *ret, *ret_n, sizeof **ret, bh_by_sym))
                mine[n++] = v[k];
        *ret = mine;
        *ret_n = (uint32_t)bh_sort_unique(mine, n, sizeof *mine, bh_by_sym);
        found = true;
    }
    return found;
}

static const struct bh_status *pre_filter(struct bh_call *c, struct bh_node_set *ret_nodes)
{
    const struct bh_shape_rec *s = c->pod->shape;
    const struct bh_node_term *t = bh_rec_at(s, s->required_terms, struct bh_node_term);
    bh_sym *all = NULL;
    uint32_t n = 0;

    if (!(s->flags & (BH_SHAPE_HAS_NODE_SELECTOR | BH_SHAPE_HAS_REQUIRED_AFFINITY)) &&
        !has_added_required(c->args))
        return &bh_status_skip;
    for (uint32_t i = 0; i < s->required_terms.n; i++) {
        bh_sym *one = NULL;
        uint32_t m = 0;
        if (!names_of_term(c, &t[i], &one, &m))
            return NULL;
        bh_sym *both = bh_arena_new_array(c->arena, bh_sym, n + m ? n + m : 1);
        if (n)
            memcpy(both, all, n * sizeof *all);
        if (m)
            memcpy(both + n, one, m * sizeof *one);
        all = both;
        n += m;
    }
    if (!s->required_terms.n)
        return NULL;
    n = (uint32_t)bh_sort_unique(all, n, sizeof *all, bh_by_sym);
    if (!n)
        return &conflict;
    *ret_nodes = (struct bh_node_set){.n = n, .names = all};
    return NULL;
}

/* ---- Filter ---- */

static const struct bh_status *check(struct bh_call *c, const struct bh_node_rec *n)
{
    bh_sym name = c->cache->sym.metadata_name;

    if (!added_match(c->args, n, c->tab, name))
        return &enforced;
    return bh_required_node_match(c->pod->shape, n, c->tab, name) ? NULL : &no_match;
}

static const struct bh_status *filter(struct bh_call *c, const struct bh_node_info *node)
{
    return check(c, node->rec);
}

static uint32_t filter_rows(struct bh_call *c, uint32_t *rows, uint32_t n)
{
    uint32_t m = 0;

    for (uint32_t i = 0; i < n; i++) {
        uint32_t row = rows[i];
        rows[m] = row;
        m += check(c, c->cache->rows[row]->rec) == NULL;
    }
    return m;
}

/* ---- Score ---- */

/* A preferred term that does not parse fails the cycle; each gives one error, no text twice. */
static const struct bh_status *parse_errors(struct bh_call *c)
{
    const struct bh_shape_rec *s = c->pod->shape;
    const struct bh_node_term *t = bh_rec_at(s, s->preferred_terms, struct bh_node_term);
    struct bh_field_errors errs = {.a = c->arena};
    bool several = false;

    for (uint32_t i = 0; i < s->preferred_terms.n; i++) {
        if (!(t[i].flags & BH_TERM_INVALID) || !t[i].weight)
            continue;
        /* A term with several errors brings them in brackets of its own. */
        const char *e = bh_sym_text(c->tab, t[i].error);
        bool list = strncmp(e, "[[", 2) == 0;
        several |= list;
        bh_field_error(&errs, "%.*s", (int)strlen(e) - 2 * list, e + list);
    }
    if (!errs.n)
        return NULL;
    return bh_status_new(c->arena, BH_ERROR, "NodeAffinity", several && errs.n == 1 ? "[%s]" : "%s",
                         bh_field_errors_text(&errs));
}

static bool pre_scored; /* its address says: PreScore ran */

static const struct bh_status *pre_score(struct bh_call *c, const uint32_t *rows BH_UNUSED,
                                         uint32_t n BH_UNUSED)
{
    if (!(c->pod->shape->flags & BH_SHAPE_HAS_PREFERRED_LIST) &&
        !(added(c->args) && added(c->args)->preferred_terms.n))
        return &bh_status_skip;
    c->pre_score_state = &pre_scored;
    return parse_errors(c);
}

static int64_t points(struct bh_call *c, const struct bh_node_rec *n)
{
    bh_sym name = c->cache->sym.metadata_name;
    int64_t sum = added(c->args) ? preferred_sum(added(c->args), n, c->tab, name) : 0;

    return sum + preferred_sum(c->pod->shape, n, c->tab, name);
}

static const struct bh_status *score(struct bh_call *c, const struct bh_node_info *ni, int64_t *ret)
{
    const struct bh_status *s = c->pre_score_state ? NULL : parse_errors(c);

    *ret = s ? 0 : points(c, ni->rec);
    return s;
}

static void score_rows(struct bh_call *c, const uint32_t *rows, uint32_t n, int64_t *ret)
{
    for (uint32_t i = 0; i < n; i++)
        ret[i] = points(c, c->cache->rows[rows[i]]->rec);
}

/* ---- args ---- */

#define NO_VALUES "].values: Invalid value: null: "

struct args_errors {
    struct bh_field_errors *errs;
    const struct bh_json *root; /* what path names */
    const char *path;
};

/* "a.b[1].c" below v, n bytes; NULL: it is not there. */
static const struct bh_json *find_field(const struct bh_json *v, const char *p, size_t n)
{
    for (const char *end = p + n; p < end && v;) {
        char name[64];
        if (*p == '[') {
            v = bh_json_at(v, strtoul(p + 1, NULL, 10));
            p += strcspn(p, "]") + 1;
            continue;
        }
        p += *p == '.';
        size_t len = BH_MIN(strcspn(p, ".["), (size_t)(end - p));
        snprintf(name, sizeof name, "%.*s", (int)BH_MIN(len, sizeof name - 1), p);
        v = bh_json_get(v, name);
        p += len;
    }
    return v;
}

/* The decoded form does not tell an empty list of values from none; Go does. */
static void add_error(void *arg, struct bh_str error)
{
    const struct args_errors *x = arg;
    BH_CLEANUP(bh_freep) char *text = bh_strndup(error.p, error.n);
    const size_t n = strlen(x->path);
    char *at = strstr(text, NO_VALUES);

    if (at && strncmp(text, x->path, n) == 0) {
        const char *field = at + sizeof("].values") - 1;
        const struct bh_json *v = find_field(x->root, text + n, (size_t)(field - text) - n);
        if (v && v->type == BH_JSON_ARRAY) {
            at[0] = '\0';
            bh_field_error(x->errs, "%s].values: Invalid value: []: %s", text,
                           at + sizeof(NO_VALUES) - 1);
            return;
        }
    }
    bh_field_error(x->errs, "%s", text);
}

/* What is no NodeAffinity at all is refused when the instance is made. */
static void args_check(const struct bh_plugin *self BH_UNUSED, const struct bh_json *args,
                       const char *path, struct bh_field_errors *errs)
{
    const struct bh_json *aff = bh_json_get(args, "addedAffinity");
    ProtobufCMessage *m;
    struct bh_err ignored;
    char at[256];

    if (!aff || aff->type == BH_JSON_NULL ||
        bh_json_to_pb(errs->a, &k8s__node_affinity__descriptor, aff, &m, NULL, &ignored) < 0)
        return;
    snprintf(at, sizeof at, "%s.addedAffinity", path);
    struct args_errors x = {errs, aff, at};
    bh_node_affinity_errors((const struct K8s__NodeAffinity *)(const void *)m, at, add_error, &x);
}

static int args_new(const struct bh_plugin_env *env, const struct bh_json *args, void **ret,
                    struct bh_err *err)
{
    const struct bh_json *aff = bh_json_get(args, "addedAffinity");
    struct bh_interner in = bh_symtab_interner(env->tab);
    ProtobufCMessage *m;
    struct bh_shape_rec *s;

    *ret = NULL;
    if (!aff || aff->type == BH_JSON_NULL)
        return 0;
    int rc = bh_json_to_pb(env->arena, &k8s__node_affinity__descriptor, aff, &m, NULL, err);
    if (rc >= 0)
        rc = bh_compile_node_affinity(env->arena, (const struct K8s__NodeAffinity *)(const void *)m,
                                      &in, &s, err);
    if (rc < 0)
        return rc;
    const struct bh_slice lists[] = {s->required_terms, s->preferred_terms};
    for (unsigned l = 0; l < BH_ARRAY_LEN(lists); l++) {
        const struct bh_node_term *t = bh_rec_at(s, lists[l], struct bh_node_term);
        for (uint32_t i = 0; i < lists[l].n; i++)
            if (t[i].flags & BH_TERM_INVALID)
                return bh_err_set(err, -EINVAL, "parsing addedAffinity: %s",
                                  bh_sym_text(env->tab, t[i].error));
    }
    *ret = s;
    return 0;
}

/* ---- events ---- */

/* A term does not parse: an error upstream where none of the others matches, and errors wake. */
static bool unparsable(const struct bh_shape_rec *s)
{
    const struct bh_node_term *t = bh_rec_at(s, s->required_terms, struct bh_node_term);

    for (uint32_t i = 0; i < s->required_terms.n; i++)
        if (t[i].flags & BH_TERM_INVALID)
            return true;
    return false;
}

static enum bh_hint on_node(const struct bh_hint_call *c)
{
    const struct bh_node_rec *old = c->ev->old_node, *neu = c->ev->new_node;
    bh_sym name = c->sym->metadata_name;

    if (!added_match(c->args, neu, c->tab, name))
        return BH_QUEUE_SKIP;
    if (!bh_required_node_match(c->shape, neu, c->tab, name))
        return bh_hint_if(unparsable(c->shape));
    if (!old)
        return BH_QUEUE;
    /* Upstream looks at the pod's own affinity only and so misses a node that begins to match the
     * added one; waking a superset is safe. */
    return bh_hint_if(!bh_required_node_match(c->shape, old, c->tab, name) ||
                      !added_match(c->args, old, c->tab, name));
}

static const struct bh_event_reg events[] = {
    {.on = BH_ON_NODE, .actions = BH_EV_ADD | BH_EV_NODE_LABEL, .hint = on_node},
    {.actions = 0},
};

static const struct bh_field requirement_schema[] = {
    {"key", BH_FIELD_STRING, NULL, NULL},
    {"operator", BH_FIELD_STRING, NULL, "v1.NodeSelectorOperator"},
    {"values", BH_FIELD_STRINGS, NULL, NULL},
    {NULL, BH_FIELD_RAW, NULL, NULL},
};
static const struct bh_field term_schema[] = {
    {"matchExpressions", BH_FIELD_OBJECTS, requirement_schema, "NodeSelectorRequirement"},
    {"matchFields", BH_FIELD_OBJECTS, requirement_schema, "NodeSelectorRequirement"},
    {NULL, BH_FIELD_RAW, NULL, NULL},
};
static const struct bh_field selector_schema[] = {
    {"nodeSelectorTerms", BH_FIELD_OBJECTS, term_schema, "NodeSelectorTerm"},
    {NULL, BH_FIELD_RAW, NULL, NULL},
};
static const struct bh_field preferred_schema[] = {
    {"weight", BH_FIELD_INT32, NULL, NULL},
    {"preference", BH_FIELD_OBJECT, term_schema, "NodeSelectorTerm"},
    {NULL, BH_FIELD_RAW, NULL, NULL},
};
static const struct bh_field affinity_schema[] = {
    {"requiredDuringSchedulingIgnoredDuringExecution", BH_FIELD_OBJECT, selector_schema,
     "NodeSelector"},
    {"preferredDuringSchedulingIgnoredDuringExecution", BH_FIELD_OBJECTS, preferred_schema,
     "PreferredSchedulingTerm"},
    {NULL, BH_FIELD_RAW, NULL, NULL},
};
static const struct bh_field schema[] = {
    {"addedAffinity", BH_FIELD_OBJECT, affinity_schema, "NodeAffinity"},
    {NULL, BH_FIELD_RAW, NULL, NULL},
};

const struct bh_plugin bh_plugin_node_affinity = {
    BH_PLUGIN_HEAD("NodeAffinity"),
    .flags = BH_PLUGIN_NODE_LOCAL | BH_PLUGIN_HINTS_BY_ESSENCE | BH_PLUGIN_READS_SUMS |
             BH_PLUGIN_READS_NODE,
    .args_schema = schema,
    .args_check = args_check,
    .args_new = args_new,
    .events = events,
    .pre_filter = pre_filter,
    .filter = filter,
    .filter_rows = filter_rows,
    .pre_score = pre_score,
    .score = score,
    .score_rows = score_rows,
    .normal = BH_NORMAL_MAX,
};
