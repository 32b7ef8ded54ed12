/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/admission/crd.c - CustomResourceDefinitions, and custom resources by their schema
 *
 * Names are judged at once, so a definition is established in the answer to its creation.
 * Upstream: apiextensions-apiserver/pkg/apis/apiextensions/{v1/defaults.go,validation},
 * pkg/controller/{status,establish}; differences: a definition whose names are taken stays without
 * a type until it is written again; conversion by webhook is refused.
 */
#include "simulator/admission/admission.h"

#include "simulator/crd/crd.h"

/* ---- custom resources ------------------------------------------------------------------------ */

static const struct bh_sim_custom *custom_of(const struct bh_sim_write *w)
{
    return w->as && w->as->custom ? w->as->custom : w->type->custom;
}

void bh_adm_default_custom(struct bh_sim_write *w)
{
    bh_crd_prune(custom_of(w)->schema, w->obj, NULL);
    bh_crd_default(w->arena, custom_of(w)->schema, w->obj);
}

void bh_adm_validate_custom(struct bh_sim_write *w)
{
    bh_crd_validate(w->arena, custom_of(w)->schema, w->obj, w->old, w->error);
    bh_crd_rules_check(custom_of(w)->rules, w->arena, w->obj, w->old, w->error, w->warnings);
}

/* ---- definitions ----------------------------------------------------------------------------- */

/* Why the names cannot be had; NULL when they can. */
static const char *taken(struct bh_sim_write *w, const struct bh_json *spec)
{
    const char *group = bh_json_get_text(spec, "group");
    const char *plural = bh_tree_str(spec, "names.plural"), *kind = bh_tree_str(spec, "names.kind");
    const char *mine = bh_tree_str(w->obj, "metadata.name"), *why = NULL;
    struct bh_sim_objs l;

    bh_sim_list(w->sim, w->type, NULL, &l);
    for (size_t i = 0; i < l.n && !why; i++) {
        const struct bh_json *o = bh_json_get(bh_sim_obj_tree(w->arena, l.v[i]), "spec");
        if ((mine && bh_streq(l.v[i]->name, mine)) ||
            !bh_streq(bh_json_get_text(o, "group"), group))
            continue;
        if (kind && bh_tree_is(o, "names.kind", kind))
            why = bh_arena_printf(w->arena, "\"%s\" is already in use", kind);
        else if (plural && bh_tree_is(o, "names.plural", plural))
            why = bh_arena_printf(w->arena, "\"%s\" is already in use", plural);
    }
    bh_sim_objs_fini(&l);
    return why;
}

static void judge_names(struct bh_sim_write *w, const struct bh_json *spec)
{
    const char *why = taken(w, spec), *status = why ? "False" : "True", *now = bh_adm_now(w);
    struct bh_json *st = bh_json_obj_at(w->arena, w->obj, "status");

    if (!why)
        bh_json_set(w->arena, st, "acceptedNames",
                    bh_json_clone(w->arena, bh_json_get(spec, "names")));
    bh_tree_set_condition(w->arena, w->obj, "NamesAccepted", status,
                          why ? "NameConflict" : "NoConflicts", why ? why : "no conflicts found",
                          now);
    bh_tree_set_condition(
        w->arena, w->obj, "Established", status, why ? "NotAccepted" : "InitialNamesAccepted",
        why ? "not all names are accepted" : "the initial names have been accepted", now);
}

int bh_adm_default_crd(struct bh_sim_write *w)
{
    struct bh_json *spec = bh_json_obj_at(w->arena, w->obj, "spec");
    struct bh_json *names = bh_json_obj_at(w->arena, spec, "names");
    const char *kind = bh_tree_str(names, "kind");

    if (kind && *kind) {
        char lower[128];
        snprintf(lower, sizeof(lower), "%s", kind);
        bh_lower(lower);
        bh_tree_dflt(w->arena, names, "singular: %s, listKind: %s", lower,
                     bh_arena_printf(w->arena, "%sList", kind));
    }
    bh_tree_dflt(w->arena, bh_json_obj_at(w->arena, spec, "conversion"), "strategy: None");
    if (w->op == BH_SIM_OP_CREATE) {
        struct bh_json *meta = bh_json_obj_at(w->arena, w->obj, "metadata");
        struct bh_json *l = bh_tree_dflt_arr(w->arena, meta, "finalizers");
        if (l && !bh_tree_lists(l, BH_SIM_CRD_FINALIZER))
            bh_json_push(l, bh_json_new_cstr(w->arena, BH_SIM_CRD_FINALIZER));
    }
    if (w->op != BH_SIM_OP_UPDATE_STATUS) {
        judge_names(w, spec);
        struct bh_json *st = bh_json_obj_at(w->arena, w->obj, "status");
        struct bh_json *l = bh_tree_dflt_arr(w->arena, st, "storedVersions");
        bh_json_each(v, bh_tree_arr(spec, "versions")) {
            const char *name = bh_tree_str(v, "name");
            if (name && bh_tree_bool(v, "storage", false) && l && !bh_tree_lists(l, name))
                bh_json_push(l, bh_json_new_cstr(w->arena, name));
        }
    }
    return 0;
}

/* Of the version's name, before this write; NULL: there was none. */
static const struct bh_json *schema_before(const struct bh_sim_write *w, const char *name)
{
    bh_json_each(v, bh_tree_arr(bh_json_get(w->old, "spec"), "versions"))
        if (name && bh_streq(bh_json_get_text(v, "name"), name))
            return bh_json_path(v, "schema.openAPIV3Schema");
    return NULL;
}

static void check_version(struct bh_sim_write *w, const char *at, const struct bh_json *v)
{
    const struct bh_json *schema = bh_json_path(v, "schema.openAPIV3Schema");
    const char *schema_at = bh_adm_member(w, at, "schema.openAPIV3Schema");

    bh_adm_dns_label(w, bh_adm_member(w, at, "name"), bh_tree_str(v, "name"));
    if (!schema)
        bh_adm_required(w, "", schema_at, "schemas are required");
    else if (!bh_tree_is(schema, "type", "object"))
        bh_adm_invalid_text(w, bh_adm_member(w, schema_at, "type"),
                            bh_json_get_text(schema, "type"), "must be object at the root");
    else
        bh_crd_check_schema(w->arena, schema, schema_at, w->error);
    if (!w->error->n_causes) /* types of expressions come from a schema that is in order */
        bh_crd_rules_free(bh_crd_rules_new(schema, schema_before(w, bh_tree_str(v, "name")),
                                           schema_at, w->error));
}

/* Names end up in paths and documents: letters, digits and dashes only. */
static void check_words(struct bh_sim_write *w, const struct bh_json *names)
{
    static const char *const words[] = {"kind", "listKind", "singular"};
    static const char *const lists[] = {"shortNames", "categories"};

    for (size_t i = 0; i < BH_ARRAY_LEN(words); i++) {
        char *lower = bh_arena_strdup(w->arena, bh_json_get_text(names, words[i]));
        bh_lower(lower);
        if (*lower)
            bh_adm_dns_label(w, bh_adm_path(w, "spec.names.%s", words[i]), lower);
    }
    for (size_t i = 0; i < BH_ARRAY_LEN(lists); i++) {
        bh_json_each(m, bh_tree_arr(names, lists[i])) {
            bh_adm_dns_label(w, bh_adm_path(w, "spec.names.%s", lists[i]),
                             bh_json_cstr(m) ? bh_json_cstr(m) : "");
        }
    }
}

void bh_adm_validate_crd(struct bh_sim_write *w)
{
    const struct bh_json *spec = bh_json_get(w->obj, "spec"), *names = bh_json_get(spec, "names");
    const char *group = bh_json_get_text(spec, "group"),
               *plural = bh_json_get_text(names, "plural");
    const char *name = bh_tree_str(w->obj, "metadata.name");
    const char *want = bh_arena_printf(w->arena, "%s.%s", plural, group);
    const char *scope = bh_json_get_text(spec, "scope");

    bh_adm_text(w, "spec", spec, "group", "");
    bh_adm_text(w, "spec.names", names, "plural", "");
    bh_adm_text(w, "spec.names", names, "kind", "");
    bh_adm_text(w, "spec", spec, "scope", "");
    if (name && *group && *plural && !bh_streq(name, want))
        bh_adm_invalid_text(w, "metadata.name", name, "must be spec.names.plural+\".\"+spec.group");
    bh_adm_dns_subdomain(w, "spec", spec, "group");
    if (*group && !strchr(group, '.'))
        bh_adm_invalid_text(w, "spec.group", group, "should be a domain with at least one dot");
    if (*plural)
        bh_adm_dns_label(w, "spec.names.plural", plural);
    if (*scope && !bh_streq(scope, "Namespaced") && !bh_streq(scope, "Cluster"))
        bh_sim_field_error(w->error, "spec.scope", "Unsupported value",
                           bh_arena_printf(w->arena, "\"%.40s\"", scope),
                           "supported values: \"Cluster\", \"Namespaced\"");
    if (!bh_tree_is(spec, "conversion.strategy", "None"))
        bh_adm_forbidden(w, "spec", "conversion.strategy",
                         "the simulator converts by apiVersion alone: want None");
    check_words(w, names);
    const struct bh_json *l = bh_tree_arr(spec, "versions");
    size_t stored = 0;
    if (!bh_tree_len(l))
        bh_adm_required(w, "spec", "versions", "");
    bh_adm_each(w, "spec", spec, "versions", check_version);
    bh_json_each(v, l)
        stored += bh_tree_bool(v, "storage", false);
    if (bh_tree_len(l) && stored != 1)
        bh_adm_invalid(w, "spec", spec, "versions",
                       "must have exactly one version marked as storage version");
    bh_json_each(v, l) { /* a kind of the server's own cannot be replaced */
        if (*plural && bh_sim_type_find(group, bh_json_get_text(v, "name"), plural))
            bh_adm_forbidden(w, "spec", "names.plural", "this resource is part of the API already");
    }
    if (w->op == BH_SIM_OP_UPDATE) {
        bh_adm_immutable(w, "spec.group");
        bh_adm_immutable(w, "spec.names.plural");
        bh_adm_immutable(w, "spec.names.kind");
        bh_adm_immutable(w, "spec.scope");
    }
}
