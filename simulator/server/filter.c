/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/server/filter.c - label and field selectors of list and watch
 *
 * Terms about names, the pod's node and the phase are answered from the object's hot fields; all
 * others parse the object, which only kubectl describe and its like ask for.
 * Upstream: pkg/registry/core/{pod,node,event}/strategy.go, pkg/apis/core/v1/conversion.go
 */
#include "simulator/server/req.h"

#include <stdio.h>

static const struct {
    const char *alias, *path;
} aliases[] = {
    /* events.k8s.io names of what the stored event calls otherwise */
    {"regarding.kind", "involvedObject.kind"},
    {"regarding.namespace", "involvedObject.namespace"},
    {"regarding.name", "involvedObject.name"},
    {"regarding.uid", "involvedObject.uid"},
    {"regarding.apiVersion", "involvedObject.apiVersion"},
    {"regarding.resourceVersion", "involvedObject.resourceVersion"},
    {"regarding.fieldPath", "involvedObject.fieldPath"},
    {"reportingController", "reportingComponent"},
};

static bool listed(const char *csv, const char *word)
{
    size_t n = strlen(word);
    for (const char *p = csv; p && *p; p = strchr(p, ',') ? strchr(p, ',') + 1 : NULL) {
        if (strncmp(p, word, n) == 0 && (p[n] == ',' || p[n] == 0))
            return true;
    }
    return false;
}

struct collect {
    struct bh_sim_req *r;
    struct bh_sim_filter *f;
};

static void add_term(void *arg, const char *key, enum bh_req_op op, size_t n_values,
                     const char *const *values)
{
    struct collect *c = arg;
    const struct bh_sim_type *t = bh_sim_type_stored(c->r->type);
    struct bh_sim_field_term term = {.equal = op == BH_REQ_IN, .what = BH_SIM_F_PATH};
    const char *path = key;
    for (size_t i = 0; !*t->group && bh_streq(t->kind, "Event") && i < BH_ARRAY_LEN(aliases); i++) {
        if (bh_streq(aliases[i].alias, key))
            path = aliases[i].path;
    }
    if (bh_streq(path, "metadata.name"))
        term.what = BH_SIM_F_NAME;
    else if (bh_streq(path, "metadata.namespace") && (t->flags & BH_SIM_NAMESPACED))
        term.what = BH_SIM_F_NS;
    else if (!listed(t->fields, path) || c->f->n_terms == BH_SIM_MAX_FIELD_TERMS) {
        const char *labels = bh_http_query(c->r->http, "labelSelector");
        const char *fields = bh_http_query(c->r->http, "fieldSelector");
        bh_sim_fail(&c->r->e, 400, "BadRequest",
                    "Unable to find \"%s%s%s, Resource=%s\" that match label selector \"%s\", "
                    "field selector \"%s\": field label not supported: %s",
                    t->group, "/", t->version, t->plural, labels ? labels : "",
                    fields ? fields : "", key);
        return;
    } else if (bh_streq(path, "spec.nodeName") && (t->flags & BH_SIM_GRACEFUL))
        term.what = BH_SIM_F_NODE;
    else if (bh_streq(path, "status.phase"))
        term.what = BH_SIM_F_PHASE;
    term.path = bh_strdup(path); /* of a custom resource: as long as its definition likes */
    term.value = bh_strdup(n_values ? values[0] : "");
    c->f->terms[c->f->n_terms++] = term;
}

int bh_sim_filter_init(struct bh_sim_req *r, struct bh_sim_filter *f)
{
    const char *labels = bh_http_query(r->http, "labelSelector");
    const char *fields = bh_http_query(r->http, "fieldSelector");
    struct bh_err err = {{0}};
    *f = (struct bh_sim_filter){0};
    if (labels && *labels && bh_selector_parse(labels, &f->labels, &err) < 0)
        bh_sim_fail(&r->e, 400, "BadRequest", "%s", err.msg);
    struct bh_selector *fs = NULL;
    if (!r->e.code && fields && *fields) {
        struct collect c = {r, f};
        if (bh_field_selector_parse(fields, &fs, &err) < 0)
            bh_sim_fail(&r->e, 400, "BadRequest", "%s", err.msg);
        else
            bh_selector_each(fs, add_term, &c);
        bh_selector_free(fs);
    }
    f->ns = *r->ns ? bh_strdup(r->ns) : NULL;
    f->name = *r->name ? bh_strdup(r->name) : NULL;
    if (r->e.code)
        bh_sim_filter_fini(f);
    return r->e.code;
}

void bh_sim_filter_fini(struct bh_sim_filter *f)
{
    bh_selector_free(f->labels);
    for (unsigned i = 0; i < f->n_terms; i++) {
        free(f->terms[i].path);
        free(f->terms[i].value);
    }
    free(f->ns);
    free(f->name);
    *f = (struct bh_sim_filter){0};
}

const char *bh_sim_get_label(void *obj, const char *key)
{
    return bh_sim_obj_label(obj, key);
}

static bool path_equal(const struct bh_sim_obj *o, const char *path, const char *value)
{
    struct bh_arena a;
    bh_arena_init(&a, 0);
    const struct bh_json *tree = bh_sim_obj_tree(&a, o);
    const struct bh_json *v = bh_json_path(tree, path);
    const char *text = "";
    if (v && v->type == BH_JSON_OBJECT && bh_streq(path, "source")) {
        text = bh_json_get_str(v, "component");
        if (!text || !*text)
            text = bh_json_get_str(tree, "reportingComponent");
    } else if (v && (v->type == BH_JSON_STRING || v->type == BH_JSON_NUMBER)) {
        text = v->type == BH_JSON_STRING ? bh_json_cstr(v) : v->s.p;
    } else if (bh_streq(path, "spec.unschedulable") || bh_streq(path, "spec.hostNetwork")) {
        text = v && v->type == BH_JSON_BOOL && v->b ? "true" : "false";
    } else if (bh_streq(path, "status.successful") || bh_streq(path, "status.replicas")) {
        text = "0";
    }
    bool equal = bh_streq(text ? text : "", value);
    bh_arena_fini(&a);
    return equal;
}

static bool term_holds(const struct bh_sim_field_term *t, const struct bh_sim_obj *o)
{
    const char *const hot[] = {[BH_SIM_F_NAME] = o->name,
                               [BH_SIM_F_NS] = o->ns,
                               [BH_SIM_F_NODE] = o->node_name,
                               [BH_SIM_F_PHASE] = o->phase};
    bool equal = t->what == BH_SIM_F_PATH ? path_equal(o, t->path, t->value)
                                          : bh_streq(hot[t->what], t->value);
    return equal == t->equal;
}

bool bh_sim_filter_match(const struct bh_sim_filter *f, const struct bh_sim_obj *o)
{
    if (f->ns && !bh_streq(f->ns, o->ns))
        return false;
    if (f->name && !bh_streq(f->name, o->name))
        return false;
    for (unsigned i = 0; i < f->n_terms; i++) {
        if (!term_holds(&f->terms[i], o))
            return false;
    }
    return !f->labels || bh_selector_match(f->labels, bh_sim_get_label, (void *)o);
}
