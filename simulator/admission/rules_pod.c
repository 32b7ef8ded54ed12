/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/admission/rules_pod.c - rules of pods that look at more than one member
 *
 * Upstream: pkg/apis/core/validation/validation.go (v1.36).
 */
#include "simulator/admission/rules.h"

#include "common/k8s/quantity.h"

#include <ctype.h>
#include <stdlib.h>

static const char *const container_lists[] = {"initContainers", "containers",
                                              "ephemeralContainers"};

/* The pod's spec that the place is in; NULL: none. */
static const struct bh_rule_at *spec_around(const struct bh_rule_at *at)
{
    while (at && !(at->type && bh_streq(at->type->name, "PodSpec")))
        at = at->up;
    return at;
}

static const char *text_at(const struct bh_json *v, const char *member)
{
    return bh_json_get_text(v, member);
}

static bool fails(struct bh_rule_run *r, const struct bh_rule_at *at, const char *kind,
                  const char *value, const char *text)
{
    bh_rule_error(r, at, kind, value, text);
    return false;
}

/* ---- one of several -------------------------------------------------------------------------- */

/* first-of NOUN MEMBER...: the first that is set is checked by its type's rules, no other may be set. */
static bool rule_first_of(struct bh_rule_run *r, const struct bh_rule_at *at,
                          const struct bh_rule_call *c)
{
    size_t n = 0;

    for (size_t i = 1; i < c->n; i++) {
        const char *name = c->arg[i], *shown = strchr(name, '=');
        struct bh_rule_at m = bh_rule_member(
            at, shown ? bh_arena_strndup(r->w->arena, name, (size_t)(shown - name)) : name);
        if (!m.v)
            continue;
        if (n++) {
            fails(r, &m, "Forbidden", NULL,
                  bh_rule_printf(r, "may not specify more than 1 %s type", c->arg[0]));
            n = 1;
            continue;
        }
        const struct bh_rule_set *set = m.type ? bh_rules_find(m.type->name) : NULL;
        m.name = shown ? shown + 1 : m.name;
        if (set)
            bh_rules_apply_at(r, set, &m);
    }
    return n || fails(r, at, "Required value", NULL,
                      bh_rule_printf(r, "must specify a %s type", c->arg[0]));
}

static size_t count_set(const struct bh_json *v, const char *const *names, size_t n)
{
    size_t k = 0;

    for (size_t i = 0; i < n; i++)
        k += bh_tree_has(v, names[i]);
    return k;
}

static bool rule_one_of_env(struct bh_rule_run *r, const struct bh_rule_at *at,
                            const struct bh_rule_call *c)
{
    static const char *const names[] = {"fieldRef", "resourceFieldRef", "configMapKeyRef",
                                        "secretKeyRef", "fileKeyRef"};
    size_t n = count_set(at->v, names, BH_ARRAY_LEN(names));
    const struct bh_rule_at *env = bh_rule_holder(at);

    (void)c;
    if (!n)
        return fails(r, at, "Invalid value", "\"\"",
                     "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, "
                     "`secretKeyRef` or `fileKeyRef`");
    if (*text_at(env->v, "value"))
        return fails(r, at, "Invalid value", "\"\"",
                     "may not be specified when `value` is not empty");
    return n == 1 || fails(r, at, "Invalid value", "\"\"",
                           "may not have more than one field specified at a time");
}

static bool rule_one_projection(struct bh_rule_run *r, const struct bh_rule_at *at,
                                const struct bh_rule_call *c)
{
    static const char *const names[] = {
        "secret",        "configMap", "downwardAPI", "serviceAccountToken", "clusterTrustBundle",
        "podCertificate"};

    (void)c;
    return count_set(at->v, names, BH_ARRAY_LEN(names)) < 2 ||
           fails(r, at, "Forbidden", NULL, "may not specify more than 1 volume type per source");
}

/* ---- names that stand before ----------------------------------------------------------------- */

/* unique-before LIST [LIST...] [text TEXT]: no element before the one around, and none of the other
 * lists, has the same value in this member. */
static bool rule_unique_before(struct bh_rule_run *r, const struct bh_rule_at *at,
                               const struct bh_rule_call *c)
{
    const struct bh_rule_at *element = bh_rule_holder(at);
    const struct bh_rule_at *list = element ? element->up : NULL;
    const char *s = bh_json_cstr(at->v), *text = NULL;
    bool seen = false;

    if (!s || !*s || !list)
        return true;
    for (const struct bh_json *p = bh_json_first(list->v); p && p != element->v && !seen;
         p = p->next)
        seen = bh_streq(text_at(p, at->member), s);
    const struct bh_rule_at *around = bh_rule_holder(list);
    for (size_t i = 1; i < c->n && !text; i++) {
        if (bh_streq(c->arg[i], "text"))
            text = c->arg[i + 1];
        else
            bh_json_each(e, bh_tree_arr(around ? around->v : NULL, c->arg[i]))
                seen = seen || bh_streq(text_at(e, at->member), s);
    }
    if (!seen)
        return true;
    if (text)
        return fails(r, at, "Invalid value", bh_rule_quoted(r, s), text);
    return fails(r, at, "Duplicate value", bh_rule_quoted(r, s), "");
}

static bool in_list(const struct bh_json *list, const char *member, const char *s)
{
    bh_json_each(e, list)
        if (bh_streq(text_at(e, member), s))
            return true;
    return false;
}

/* not-in LIST MEMBER TEXT: no element of the container's other list has this value. */
static bool rule_not_in(struct bh_rule_run *r, const struct bh_rule_at *at,
                        const struct bh_rule_call *c)
{
    const char *s = bh_json_cstr(at->v);
    const struct bh_rule_at *container = bh_rule_holder(bh_rule_holder(at));

    if (!s || !in_list(bh_tree_arr(container->v, c->arg[0]), c->arg[1], s))
        return true;
    return fails(r, at, "Invalid value", bh_rule_quoted(r, s), c->arg[2]);
}

static bool rule_unique_path(struct bh_rule_run *r, const struct bh_rule_at *at,
                             const struct bh_rule_call *c)
{
    const struct bh_rule_at *element = bh_rule_holder(at);
    const char *s = bh_rule_text(at);

    (void)c;
    for (const struct bh_json *p = element->up->v->c.first; p != element->v; p = p->next)
        if (bh_streq(text_at(p, "mountPath"), s))
            return fails(r, at, "Invalid value", bh_rule_quoted(r, s), "must be unique");
    return true;
}

static bool rule_other_container(struct bh_rule_run *r, const struct bh_rule_at *at,
                                 const struct bh_rule_call *c)
{
    const struct bh_rule_at *spec = spec_around(at);
    const char *s = bh_rule_text(at);

    (void)c;
    return in_list(bh_tree_arr(spec->v, "containers"), "name", s) ||
           in_list(bh_tree_arr(spec->v, "initContainers"), "name", s) ||
           fails(r, at, "Not found", bh_rule_quoted(r, s), "");
}

/* ---- ports ----------------------------------------------------------------------------------- */

struct host_port {
    const char *text;
    struct host_port *next;
};

static void check_host_ports(struct bh_rule_run *r, const struct bh_rule_at *container,
                             struct host_port **seen)
{
    struct bh_rule_at ports = bh_rule_member(container, "ports");
    size_t i = 0;

    bh_json_each(p, ports.v) {
        struct bh_rule_at port = bh_rule_element(&ports, p, i++);
        int64_t n = bh_tree_i64(p, "hostPort", 0);
        const struct host_port *same = *seen;
        if (!n)
            continue;
        struct bh_rule_at at = bh_rule_member(&port, "hostPort");
        struct host_port *new = bh_arena_new(r->w->arena, struct host_port);
        new->text = bh_rule_printf(r, "%s/%s/%lld", text_at(p, "protocol"), text_at(p, "hostIP"),
                                   (long long)n);
        while (same && !bh_streq(same->text, new->text))
            same = same->next;
        if (same)
            fails(r, &at, "Duplicate value", bh_rule_quoted(r, new->text), "");
        new->next = *seen;
        *seen = new;
    }
}

static bool rule_unique_host_ports(struct bh_rule_run *r, const struct bh_rule_at *at,
                                   const struct bh_rule_call *c)
{
    struct host_port *seen = NULL;
    size_t i = 0;

    (void)c;
    bh_json_each(e, at->v) {
        struct bh_rule_at container = bh_rule_element(at, e, i++);
        check_host_ports(r, &container, &seen);
    }
    return true;
}

/* Of an init container alone; kube-apiserver reports it as the first one. */
static bool rule_init_host_ports(struct bh_rule_run *r, const struct bh_rule_at *at,
                                 const struct bh_rule_call *c)
{
    struct bh_rule_at container = *bh_rule_holder(at);
    struct host_port *seen = NULL;

    (void)c;
    container.index = 0;
    check_host_ports(r, &container, &seen);
    return true;
}

/* ---- volumes --------------------------------------------------------------------------------- */

static const struct bh_json *find_volume(const struct bh_rule_run *r, const struct bh_rule_at *at,
                                         const char *name, bool *ret_claim)
{
    const struct bh_rule_at *spec = spec_around(at);

    *ret_claim = false;
    bh_json_each(t, bh_tree_arr(bh_rule_root(at)->v, "spec.volumeClaimTemplates")) {
        if (bh_tree_is(t, "metadata.name", name)) {
            *ret_claim = true;
            return t;
        }
    }
    for (const struct bh_rule_fault *f = r->bad_volumes; f; f = f->next)
        if (bh_streq(f->text, name))
            return NULL;
    bh_json_each(v, bh_tree_arr(spec->v, "volumes")) {
        if (!bh_streq(text_at(v, "name"), name))
            continue;
        *ret_claim = bh_tree_has(v, "persistentVolumeClaim") || bh_tree_has(v, "ephemeral");
        return v;
    }
    return NULL;
}

static bool is_claim_template(const struct bh_rule_at *at, const char *name)
{
    bh_json_each(t, bh_tree_arr(bh_rule_root(at)->v, "spec.volumeClaimTemplates"))
        if (bh_tree_is(t, "metadata.name", name))
            return true;
    return false;
}

static void check_volume(struct bh_rule_run *r, const struct bh_rule_at *volume)
{
    struct bh_rule_at name = bh_rule_member(volume, "name");
    const char *s = text_at(volume->v, "name");
    unsigned before = r->w->error->n_causes;

    if (is_claim_template(volume, s)) /* which takes its place */
        return;
    bh_rules_apply_at(r, bh_rules_find("Volume"), volume);
    if (!*s)
        fails(r, &name, "Required value", NULL, "");
    else
        bh_rule_faults(r, &name, s, bh_name_label(r, s));
    for (const struct bh_json *p = volume->up->v->c.first; *s && p != volume->v; p = p->next) {
        if (bh_streq(text_at(p, "name"), s)) {
            fails(r, &name, "Duplicate value", bh_rule_quoted(r, s), "");
            return; /* the first one is there */
        }
    }
    if (r->w->error->n_causes == before)
        return;
    struct bh_rule_fault *f = bh_arena_new(r->w->arena, struct bh_rule_fault);
    *f = (struct bh_rule_fault){.text = s, .next = r->bad_volumes};
    r->bad_volumes = f;
}

static bool rule_volumes(struct bh_rule_run *r, const struct bh_rule_at *at,
                         const struct bh_rule_call *c)
{
    const char *pod = text_at(bh_json_get(bh_rule_root(at)->v, "metadata"), "name");
    size_t i = 0;

    (void)c;
    bh_json_each(v, at->v) {
        struct bh_rule_at volume = bh_rule_element(at, v, i++);
        const char *claim = bh_tree_str(v, "persistentVolumeClaim.claimName");
        check_volume(r, &volume);
        bh_json_each(e, at->v) {
            if (!claim || !*pod || !bh_tree_has(e, "ephemeral") ||
                !bh_streq(r->w->type->kind, "Pod") ||
                !bh_streq(bh_rule_printf(r, "%s-%s", pod, text_at(e, "name")), claim))
                continue;
            struct bh_rule_at source = bh_rule_member(&volume, "persistentVolumeClaim");
            struct bh_rule_at name = bh_rule_member(&source, "claimName");
            bh_rule_invalid(r, &name,
                            "must not reference a PVC that gets created for an ephemeral volume");
        }
    }
    return true;
}

static bool rule_claim_name(struct bh_rule_run *r, const struct bh_rule_at *at,
                            const struct bh_rule_call *c)
{
    const char *pod = text_at(bh_json_get(bh_rule_root(at)->v, "metadata"), "name");
    const char *s = text_at(at->v, "name");
    struct bh_rule_at name = bh_rule_member(at, "name");

    (void)c;
    if (!*pod || !*s || !bh_streq(r->w->type->kind, "Pod"))
        return true;
    const char *claim = bh_rule_printf(r, "%s-%s", pod, s);
    for (const struct bh_rule_fault *f = bh_name_subdomain(r, claim); f; f = f->next)
        bh_rule_invalid_text(
            r, &name, s, bh_rule_printf(r, "PVC name %s: %s", bh_rule_quoted(r, claim), f->text));
    return true;
}

static bool rule_volume_exists(struct bh_rule_run *r, const struct bh_rule_at *at,
                               const struct bh_rule_call *c)
{
    const char *s = bh_rule_text(at);
    bool claim;

    (void)c;
    return find_volume(r, at, s, &claim) || fails(r, at, "Not found", bh_rule_quoted(r, s), "");
}

static bool rule_device_exists(struct bh_rule_run *r, const struct bh_rule_at *at,
                               const struct bh_rule_call *c)
{
    const char *s = bh_rule_text(at);
    bool claim;

    (void)c;
    if (!find_volume(r, at, s, &claim))
        return fails(r, at, "Not found", bh_rule_quoted(r, s), "");
    return claim || fails(r, at, "Invalid value", bh_rule_quoted(r, s),
                          "can only use volume source type of PersistentVolumeClaim or Ephemeral "
                          "for block mode");
}

/* Two projections must not write the same file. */
static bool rule_projected_paths(struct bh_rule_run *r, const struct bh_rule_at *at,
                                 const struct bh_rule_call *c)
{
    static const char *const kinds[] = {"secret", "configMap", "downwardAPI"};
    struct host_port *seen = NULL;

    (void)c;
    bh_json_each(s, bh_tree_arr(at->v, "sources")) {
        for (size_t k = 0; k < BH_ARRAY_LEN(kinds); k++) {
            const struct bh_json *source = bh_json_get(s, kinds[k]);
            bh_json_each(i, bh_tree_arr(source, "items")) {
                const char *path = text_at(i, "path");
                const struct host_port *same = seen;
                while (same && !bh_streq(same->text, path))
                    same = same->next;
                if (same && *path)
                    fails(r, at, "Invalid value",
                          bh_rule_quoted(r, k < 2 ? text_at(source, "name") : path),
                          "conflicting duplicate paths");
                struct host_port *new = bh_arena_new(r->w->arena, struct host_port);
                *new = (struct host_port){path, seen};
                seen = new;
            }
        }
    }
    return true;
}

static bool rule_file_key_volumes(struct bh_rule_run *r, const struct bh_rule_at *at,
                                  const struct bh_rule_call *c)
{
    (void)c;
    for (size_t k = 0; k < BH_ARRAY_LEN(container_lists); k++) {
        size_t i = 0;
        bh_json_each(e, bh_tree_arr(at->v, container_lists[k])) {
            size_t j = 0;
            bh_json_each(env, bh_tree_arr(e, "env")) {
                const char *name = bh_tree_str(env, "valueFrom.fileKeyRef.volumeName");
                struct bh_rule_at place = bh_rule_named(
                    at, bh_rule_printf(r, "%s[%zu].env[%zu].valueFrom.fileKeyRef.volumeName",
                                       container_lists[k], i, j++));
                const struct bh_json *v = NULL;
                bh_json_each(o, bh_tree_arr(at->v, "volumes"))
                    v = name && bh_streq(text_at(o, "name"), name) ? o : v;
                if (name && !v)
                    fails(r, &place, "Not found", bh_rule_quoted(r, name), "");
                else if (name && !bh_tree_has(v, "emptyDir"))
                    bh_rule_invalid_text(r, &place, name,
                                         "referenced volume must be of type emptyDir");
            }
            i++;
        }
    }
    return true;
}

/* ---- environment ----------------------------------------------------------------------------- */

/* ConfigMaps and Secrets as they are named in envFrom: a trailing dash does not matter. */
static bool rule_name_prefix(struct bh_rule_run *r, const struct bh_rule_at *at,
                             const struct bh_rule_call *c)
{
    const char *s = bh_rule_text(at), *masked = s;
    size_t n = s ? strlen(s) : 0;

    (void)c;
    if (n > 1 && s[n - 1] == '-')
        masked = bh_rule_printf(r, "%.*sa", (int)n - 2, s);
    return !s || bh_rule_faults(r, at, s, bh_name_subdomain(r, masked));
}

/* field-ref PATH...: a field of the pod by one of these paths, or a label or an annotation by key. */
static bool rule_field_ref(struct bh_rule_run *r, const struct bh_rule_at *at,
                           const struct bh_rule_call *c)
{
    static const char known[] = "metadata.annotations metadata.labels metadata.name "
                                "metadata.namespace metadata.uid spec.nodeName spec.restartPolicy "
                                "spec.schedulerName spec.serviceAccountName status.hostIP "
                                "status.hostIPs status.phase status.podIP status.podIPs "
                                "spec.hostNetwork";
    if (!at->v)
        return true;
    const char *version = text_at(at->v, "apiVersion"), *path = text_at(at->v, "fieldPath");
    struct bh_rule_at v = bh_rule_member(at, "apiVersion"), p = bh_rule_member(at, "fieldPath");
    const char *open = strchr(path, '[');

    if (!*version)
        return fails(r, &v, "Required value", NULL, "");
    if (!*path)
        return fails(r, &p, "Required value", NULL, "");
    if (!bh_streq(version, "v1"))
        return fails(
            r, &p, "Invalid value", bh_rule_quoted(r, path),
            bh_rule_printf(r, "error converting fieldPath: unsupported pod version: %s", version));
    if (open && path[strlen(path) - 1] == ']' && open[1] == '\'' && strlen(open) > 3) {
        char *key = bh_arena_strndup(r->w->arena, open + 2, strlen(open) - 4);
        const char *map = bh_rule_printf(r, "%.*s", (int)(open - path), path);
        if (bh_streq(map, "metadata.annotations"))
            bh_lower(key);
        if (bh_streq(map, "metadata.annotations") || bh_streq(map, "metadata.labels"))
            return bh_rule_faults(r, at, key, bh_name_key(r, key));
        if (bh_word_at(known, map) < 0)
            return fails(
                r, &p, "Invalid value", bh_rule_quoted(r, path),
                bh_rule_printf(
                    r, "error converting fieldPath: field label does not support subscript"));
        return fails(r, at, "Invalid value", bh_rule_quoted(r, map), "does not support subscript");
    }
    if (bh_word_at(known, path) < 0)
        return fails(
            r, &p, "Invalid value", bh_rule_quoted(r, path),
            bh_rule_printf(r, "error converting fieldPath: field label not supported: %s", path));
    for (size_t i = 0; i < c->n; i++)
        if (bh_streq(c->arg[i], path))
            return true;
    bh_rule_unsupported(r, &p, bh_rule_quoted(r, path), c->n, c->arg);
    return false;
}

static const char *const resource_fields[] = {
    "limits.cpu",   "limits.ephemeral-storage",   "limits.memory",
    "requests.cpu", "requests.ephemeral-storage", "requests.memory"};

static bool is_hugepages_field(const char *s)
{
    return strncmp(s, "limits.hugepages-", 17) == 0 || strncmp(s, "requests.hugepages-", 19) == 0;
}

static bool rule_resource_field(struct bh_rule_run *r, const struct bh_rule_at *at,
                                const struct bh_rule_call *c)
{
    const char *s = bh_rule_text(at);

    (void)c;
    if (!*s)
        return fails(r, at, "Required value", NULL, "");
    for (size_t i = 0; i < BH_ARRAY_LEN(resource_fields); i++)
        if (bh_streq(resource_fields[i], s))
            return true;
    if (is_hugepages_field(s))
        return true;
    bh_rule_unsupported(r, at, bh_rule_quoted(r, s), BH_ARRAY_LEN(resource_fields),
                        resource_fields);
    return false;
}

static bool rule_divisor(struct bh_rule_run *r, const struct bh_rule_at *at,
                         const struct bh_rule_call *c)
{
    static const char sizes[] = "1 1k 1M 1G 1T 1P 1E 1Ki 1Mi 1Gi 1Ti 1Pi 1Ei";
    const char *name = text_at(at->v, "resource");
    struct bh_rule_at d = bh_rule_member(at, "divisor");
    const char *s = d.v ? bh_json_cstr(d.v) : NULL, *what = NULL;
    bh_nano q;

    (void)c;
    if (!s || !bh_adm_parse_quantity(d.v, &q) || !q)
        return true;
    const char *dot = strchr(name, '.');
    const char *resource = dot ? dot + 1 : "";
    if (bh_streq(resource, "cpu"))
        return bh_word_at("1m 1", s) >= 0 ||
               fails(r, &d, "Invalid value", bh_rule_quoted(r, name),
                     "only divisor's values 1m and 1 are supported with the cpu resource");
    if (bh_streq(resource, "memory"))
        what = "memory";
    else if (bh_streq(resource, "ephemeral-storage"))
        what = "local ephemeral storage";
    else if (is_hugepages_field(name))
        what = "hugepages";
    return !what || bh_word_at(sizes, s) >= 0 ||
           fails(r, &d, "Invalid value", bh_rule_quoted(r, name),
                 bh_rule_printf(r,
                                "only divisor's values 1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, "
                                "1Ti, 1Pi, 1Ei are supported with the %s resource",
                                what));
}

/* ---- scheduling ------------------------------------------------------------------------------ */

static bool has_key(const struct bh_json *list, const char *s)
{
    return bh_tree_lists(list, s);
}

/* Keys that become part of the selector must not be in it, nor asked for the other way round. */
static bool rule_merged_keys(struct bh_rule_run *r, const struct bh_rule_at *at,
                             const struct bh_rule_call *c)
{
    const struct bh_rule_at *term = bh_rule_holder(at);
    const struct bh_json *selector = bh_tree_obj(term->v, "labelSelector");
    const struct bh_json *labels = bh_tree_obj(selector, "matchLabels");
    const struct bh_json *all = bh_tree_arr(selector, "matchExpressions");
    size_t i;

    (void)c;
    bh_json_each(e, all) {
        const char *key = text_at(e, "key");
        bool known = bh_json_get(labels, key);
        for (const struct bh_json *p = all->c.first; p != e && !known; p = p->next)
            known = bh_streq(text_at(p, "key"), key);
        i = 0;
        bh_json_each(k, at->v) {
            const char *s = bh_json_cstr(k);
            struct bh_rule_at place = bh_rule_element(term, k, i++);
            if (known && s && bh_streq(s, key))
                bh_rule_invalid_text(r, &place, key,
                                     "exists in both matchLabelKeys and labelSelector");
        }
    }
    i = 0;
    bh_json_each(k, at->v) {
        const char *s = bh_json_cstr(k);
        struct bh_rule_at place = bh_rule_element(at, k, i++);
        if (s && has_key(bh_tree_arr(term->v, "mismatchLabelKeys"), s))
            bh_rule_invalid_text(r, &place, s,
                                 "exists in both matchLabelKeys and mismatchLabelKeys");
    }
    return true;
}

static bool rule_spread_repeated(struct bh_rule_run *r, const struct bh_rule_at *at,
                                 const struct bh_rule_call *c)
{
    const char *key = text_at(at->v, "topologyKey"), *when = text_at(at->v, "whenUnsatisfiable");
    struct bh_rule_at place = bh_rule_named(at, "{topologyKey, whenUnsatisfiable}");

    (void)c;
    for (const struct bh_json *n = at->v->next; n; n = n->next)
        if (bh_streq(text_at(n, "topologyKey"), key) &&
            bh_streq(text_at(n, "whenUnsatisfiable"), when))
            return fails(r, &place, "Duplicate value",
                         bh_rule_quoted(r, bh_rule_printf(r, "{%s, %s}", key, when)), "");
    return true;
}

static bool rule_joined_value(struct bh_rule_run *r, const struct bh_rule_at *at,
                              const struct bh_rule_call *c)
{
    struct bh_buf b = {0};
    const char *s = text_at(bh_rule_holder(at)->v, c->n ? c->arg[0] : "value");

    for (const struct bh_rule_fault *f = bh_name_label_value(r, s); f; f = f->next)
        bh_buf_addf(&b, "%s%s", b.n ? ";" : "", f->text);
    bool fine = !b.n;
    if (!fine)
        bh_rule_invalid_text(r, at, s, bh_rule_printf(r, "%s", b.p));
    bh_buf_fini(&b);
    return fine;
}

/* ---- security -------------------------------------------------------------------------------- */

static bool rule_no_blanks(struct bh_rule_run *r, const struct bh_rule_at *at,
                           const struct bh_rule_call *c)
{
    const char *s = bh_rule_text(at);
    size_t n = s ? strlen(s) : 0;

    if (!n || (!isspace((unsigned char)*s) && !isspace((unsigned char)s[n - 1])))
        return true;
    return fails(r, at, "Invalid value", bh_rule_quoted(r, s),
                 c->n ? c->arg[0] : "must not have leading or trailing whitespace");
}

static bool rule_no_escalation(struct bh_rule_run *r, const struct bh_rule_at *at,
                               const struct bh_rule_call *c)
{
    (void)c;
    if (bh_tree_lists(bh_tree_arr(at->v, "capabilities.add"), "CAP_SYS_ADMIN"))
        bh_rule_invalid(r, at,
                        "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` "
                        "CAP_SYS_ADMIN");
    return true;
}

static bool rule_host_users(struct bh_rule_run *r, const struct bh_rule_at *at,
                            const struct bh_rule_call *c)
{
    static const char *const hosts[][2] = {
        {"hostNetwork", "hostNetwork"}, {"hostPID", "HostPID"}, {"hostIPC", "HostIPC"}};

    (void)c;
    for (size_t i = 0; i < BH_ARRAY_LEN(hosts); i++) {
        struct bh_rule_at m = bh_rule_named(at, hosts[i][1]);
        if (bh_tree_bool(at->v, hosts[i][0], false))
            fails(r, &m, "Forbidden", NULL, "when `hostUsers` is false");
    }
    for (size_t k = 0; k < BH_ARRAY_LEN(container_lists); k++) {
        size_t i = 0;
        bh_json_each(e, bh_tree_arr(at->v, container_lists[k])) {
            struct bh_rule_at m = bh_rule_named(
                at, bh_rule_printf(r, "%s[%zu].volumeDevices", container_lists[k], i++));
            if (bh_tree_len(bh_tree_arr(e, "volumeDevices")))
                fails(r, &m, "Forbidden", NULL, "when `hostUsers` is false");
        }
    }
    return true;
}

static bool rule_host_sysctl(struct bh_rule_run *r, const struct bh_rule_at *at,
                             const struct bh_rule_call *c)
{
    static const char ipc[] = "kernel.shmall kernel.shmmax kernel.shmmni kernel.shm_rmid_forced "
                              "kernel.msgmax kernel.msgmnb kernel.msgmni kernel.sem";
    const struct bh_rule_at *spec = spec_around(at);
    const char *s = bh_rule_text(at);
    char *dotted = bh_arena_strndup(r->w->arena, s, strlen(s));

    (void)c;
    for (char *p = dotted; (p = strchr(p, '/'));)
        *p = '.';
    if (bh_tree_bool(spec->v, "hostNetwork", false) && strncmp(dotted, "net.", 4) == 0)
        return fails(r, at, "Invalid value", bh_rule_quoted(r, s),
                     "may not be specified when 'hostNetwork' is true");
    bool is_ipc = bh_word_at(ipc, dotted) >= 0 || strncmp(dotted, "fs.mqueue.", 10) == 0;
    return !is_ipc || !bh_tree_bool(spec->v, "hostIPC", false) ||
           fails(r, at, "Invalid value", bh_rule_quoted(r, s),
                 "may not be specified when 'hostIPC' is true");
}

static bool rule_windows_host_process(struct bh_rule_run *r, const struct bh_rule_at *at,
                                      const struct bh_rule_call *c)
{
    const struct bh_json *pod = bh_json_path(at->v, "securityContext.windowsOptions.hostProcess");
    size_t n = 0, host = 0;

    (void)c;
    for (size_t k = 0; k < BH_ARRAY_LEN(container_lists); k++) {
        size_t i = 0;
        bh_json_each(e, bh_tree_arr(at->v, container_lists[k])) {
            const struct bh_json *own =
                bh_json_path(e, "securityContext.windowsOptions.hostProcess");
            struct bh_rule_at m = bh_rule_named(
                at, bh_rule_printf(r, "%s[%zu].securityContext.windowsOptions.hostProcess",
                                   container_lists[k], i++));
            n++;
            host += own ? own->b : pod && pod->b;
            if (own && pod && own->b != pod->b)
                fails(r, &m, "Invalid value", own->b ? "true" : "false",
                      bh_rule_printf(r,
                                     "pod hostProcess value must be identical if both are "
                                     "specified, was %s",
                                     pod->b ? "true" : "false"));
        }
    }
    if (host && host != n)
        fails(r, at, "Invalid value", "\"\"",
              "If pod contains any hostProcess containers then all containers must be HostProcess "
              "containers");
    struct bh_rule_at network = bh_rule_member(at, "hostNetwork");
    if (host && !bh_tree_bool(at->v, "hostNetwork", false))
        fails(r, &network, "Invalid value", "false",
              "hostNetwork must be true if pod contains any hostProcess containers");
    return true;
}

static bool rule_windows_user(struct bh_rule_run *r, const struct bh_rule_at *at,
                              const struct bh_rule_call *c)
{
    const char *s = bh_json_cstr(at->v), *text = NULL;

    (void)c;
    if (!s)
        return true;
    const char *slash = strchr(s, '\\'), *user = slash ? slash + 1 : s;
    for (const char *p = s; *p && !text; p++)
        text =
            iscntrl((unsigned char)*p) ? "runAsUserName cannot contain control characters" : NULL;
    if (!*s)
        text = "runAsUserName cannot be an empty string";
    else if (!text && slash && strchr(user, '\\'))
        text = "runAsUserName cannot contain more than one backslash";
    if (text)
        return fails(r, at, "Invalid value", bh_rule_quoted(r, s), text);
    if (slash && slash - s >= 256)
        bh_rule_invalid_text(r, at, s,
                             "runAsUserName's Domain length must be under 256 characters");
    if (slash && (slash == s || s[strcspn(s, "/:*?\"<>|_ ")] != '\0'))
        bh_rule_invalid_text(r, at, s,
                             "runAsUserName's Domain doesn't match the NetBios nor the DNS format");
    if (!*user)
        bh_rule_invalid_text(r, at, s, "runAsUserName's User cannot be empty");
    else if (strlen(user) > 104)
        bh_rule_invalid_text(r, at, s,
                             "runAsUserName's User length must not be longer than 104 characters");
    if (*user && strspn(user, ". ") == strlen(user))
        bh_rule_invalid_text(r, at, s,
                             "runAsUserName's User cannot contain only periods or spaces");
    if (strpbrk(user, "\"/\\:;|=,+*?<>@[]"))
        bh_rule_invalid_text(r, at, s,
                             "runAsUserName's User cannot contain the following characters: "
                             "\"/\\:;|=,+*?<>@[]");
    return true;
}

/* ---- the rest -------------------------------------------------------------------------------- */

static bool rule_sleep_seconds(struct bh_rule_run *r, const struct bh_rule_at *at,
                               const struct bh_rule_call *c)
{
    const struct bh_rule_at *spec = spec_around(at);
    int64_t n, grace = bh_tree_i64(spec->v, "terminationGracePeriodSeconds", 30);

    (void)c;
    if (!bh_rule_number(at, &n) || (n >= 0 && n <= grace))
        return true;
    bh_rule_invalid_number(
        r, at, n,
        bh_rule_printf(r, "must be non-negative and less than terminationGracePeriodSeconds (%lld)",
                       (long long)grace));
    return false;
}

static bool rule_stop_signal(struct bh_rule_run *r, const struct bh_rule_at *at,
                             const struct bh_rule_call *c)
{
    static const char *const names[] = {
        "SIGABRT",     "SIGALRM",     "SIGBUS",      "SIGCHLD",     "SIGCLD",      "SIGCONT",
        "SIGFPE",      "SIGHUP",      "SIGILL",      "SIGINT",      "SIGIO",       "SIGIOT",
        "SIGKILL",     "SIGPIPE",     "SIGPOLL",     "SIGPROF",     "SIGPWR",      "SIGQUIT",
        "SIGRTMAX",    "SIGRTMAX-1",  "SIGRTMAX-10", "SIGRTMAX-11", "SIGRTMAX-12", "SIGRTMAX-13",
        "SIGRTMAX-14", "SIGRTMAX-2",  "SIGRTMAX-3",  "SIGRTMAX-4",  "SIGRTMAX-5",  "SIGRTMAX-6",
        "SIGRTMAX-7",  "SIGRTMAX-8",  "SIGRTMAX-9",  "SIGRTMIN",    "SIGRTMIN+1",  "SIGRTMIN+10",
        "SIGRTMIN+11", "SIGRTMIN+12", "SIGRTMIN+13", "SIGRTMIN+14", "SIGRTMIN+15", "SIGRTMIN+2",
        "SIGRTMIN+3",  "SIGRTMIN+4",  "SIGRTMIN+5",  "SIGRTMIN+6",  "SIGRTMIN+7",  "SIGRTMIN+8",
        "SIGRTMIN+9",  "SIGSEGV",     "SIGSTKFLT",   "SIGSTOP",     "SIGSYS",      "SIGTERM",
        "SIGTRAP",     "SIGTSTP",     "SIGTTIN",     "SIGTTOU",     "SIGURG",      "SIGUSR1",
        "SIGUSR2",     "SIGVTALRM",   "SIGWINCH",    "SIGXCPU",     "SIGXFSZ"};
    static const char *const windows[] = {"SIGKILL", "SIGTERM"};
    const struct bh_rule_at *spec = spec_around(at);
    const char *s = bh_json_cstr(at->v), *os = bh_tree_str(spec->v, "os.name");
    bool is_windows = os && bh_streq(os, "windows");
    const char *const *list = is_windows ? windows : names;
    size_t n = is_windows ? 2 : BH_ARRAY_LEN(names);

    (void)c;
    if (!s)
        return true;
    if (!bh_tree_has(spec->v, "os"))
        return fails(r, at, "Forbidden", NULL,
                     "may not be set for containers with empty `spec.os.name`");
    for (size_t i = 0; i < n; i++)
        if (bh_streq(list[i], s))
            return true;
    bh_rule_unsupported(r, at, bh_rule_quoted(r, s), n, list);
    return false;
}

static bool rule_dns_searches(struct bh_rule_run *r, const struct bh_rule_at *at,
                              const struct bh_rule_call *c)
{
    static const char *format[] = {"dns-subdomain-underscore"};
    const struct bh_rule_call call = {.n = 1, .arg = {format[0]}};
    size_t i = 0, total = 0;

    (void)c;
    bh_json_each(s, at->v)
        total += (s->type == BH_JSON_STRING ? s->s.n : 0) + 1;
    if (total > 2049)
        bh_rule_invalid(r, at,
                        "must not have more than 2048 characters (including spaces) in the search "
                        "list");
    bh_json_each(s, at->v) {
        struct bh_rule_at m = bh_rule_element(at, s, i++);
        struct bh_json short_one = *s;
        if (s->type != BH_JSON_STRING || bh_streq(s->s.p, "."))
            continue;
        if (s->s.n && s->s.p[s->s.n - 1] == '.')
            short_one.s = bh_str_c(bh_rule_printf(r, "%.*s", (int)s->s.n - 1, s->s.p));
        m.v = &short_one;
        bh_rule_format(r, &m, &call);
    }
    return true;
}

static bool rule_iscsi_name(struct bh_rule_run *r, const struct bh_rule_at *at,
                            const struct bh_rule_call *c)
{
    const char *s = bh_json_cstr(at->v);

    (void)c;
    if (!s)
        return true;
    bool iqn = strncmp(s, "iqn", 3) == 0, eui = strncmp(s, "eui", 3) == 0,
         naa = strncmp(s, "naa", 3) == 0;
    if (!iqn && !eui && !naa)
        return fails(r, at, "Invalid value", bh_rule_quoted(r, s),
                     "must be valid format starting with iqn, eui, or naa");
    size_t hex = strlen(s) > 4 ? strspn(s + 4, "0123456789abcdefABCDEF") : 0;
    bool fine = s[3] == '.' && (iqn ? strlen(s) > 12 && s[8] == '-' && s[11] == '.'
                                    : s[4 + hex] == '\0' && (hex == 16 || (naa && hex == 32)));
    return fine || fails(r, at, "Invalid value", bh_rule_quoted(r, s), "must be valid format");
}

static bool rule_invalid_resource(struct bh_rule_run *r, const struct bh_rule_at *at,
                                  const struct bh_rule_call *c)
{
    return fails(r, at, "Invalid value", "\"resource\"", c->arg[0]);
}

static bool rule_without_slash(struct bh_rule_run *r, const struct bh_rule_at *at,
                               const struct bh_rule_call *c)
{
    const char *s = bh_rule_text(at);

    (void)c;
    return !s || !strchr(s, '/') ||
           fails(r, at, "Invalid value", bh_rule_quoted(r, s), "must not contain '/'");
}

/* prefix BEGINNING EXAMPLE: a text that begins so. */
static bool rule_prefix(struct bh_rule_run *r, const struct bh_rule_at *at,
                        const struct bh_rule_call *c)
{
    const char *s = bh_rule_text(at);

    if (!s || strncmp(s, c->arg[0], strlen(c->arg[0])) == 0)
        return true;
    bh_rule_unsupported(r, at, bh_rule_quoted(r, s), 1, c->arg + 1);
    return false;
}

static bool rule_reserved_options(struct bh_rule_run *r, const struct bh_rule_at *at,
                                  const struct bh_rule_call *c)
{
    (void)c;
    bh_json_each(o, at->v) {
        struct bh_rule_at m = bh_rule_entry(at, o);
        char *ns = bh_arena_printf(r->w->arena, ".%.*s", (int)strcspn(o->key.p, "/"), o->key.p);
        size_t n = strlen(ns);
        bh_lower(ns);
        if ((n >= 14 && bh_streq(ns + n - 14, ".kubernetes.io")) ||
            (n >= 7 && bh_streq(ns + n - 7, ".k8s.io")))
            bh_rule_invalid_text(r, &m, o->key.p,
                                 "kubernetes.io and k8s.io namespaces are reserved");
    }
    return true;
}

static bool rule_bundle_name(struct bh_rule_run *r, const struct bh_rule_at *at,
                             const struct bh_rule_call *c)
{
    const char *s = bh_rule_text(at), *colon = strrchr(s, ':');

    (void)c;
    for (const struct bh_rule_fault *f = bh_name_subdomain(r, colon ? colon + 1 : s); f;
         f = f->next)
        bh_rule_invalid_text(r, at, s,
                             bh_rule_printf(r, "not a valid clustertrustbundlename: %s", f->text));
    return true;
}

/* ---- annotations ----------------------------------------------------------------------------- */

static void check_seccomp(struct bh_rule_run *r, const struct bh_rule_at *at, const char *s)
{
    if (bh_word_at("runtime/default docker/default unconfined", s) >= 0 && *s)
        return;
    if (strncmp(s, "localhost/", 10) != 0)
        bh_rule_invalid_text(r, at, s, "must be a valid seccomp profile");
}

static bool has_container(const struct bh_json *spec, const char *name)
{
    for (size_t k = 0; k < BH_ARRAY_LEN(container_lists); k++)
        if (in_list(bh_tree_arr(spec, container_lists[k]), "name", name))
            return true;
    return false;
}

static void check_apparmor(struct bh_rule_run *r, const struct bh_rule_at *m,
                           const struct bh_json *spec, const char *container, const char *s)
{
    if (!has_container(spec, container))
        bh_rule_invalid_text(r, m, container, "container not found");
    if (*s && !bh_streq(s, "runtime/default") && !bh_streq(s, "unconfined") &&
        strncmp(s, "localhost/", 10) != 0)
        bh_rule_invalid_text(
            r, m, s, bh_rule_printf(r, "invalid AppArmor profile name: %s", bh_rule_quoted(r, s)));
}

static bool is_int32(const char *s)
{
    char *end;
    long long n = strtoll(s, &end, 10);

    return *s && !*end && n >= INT32_MIN && n <= INT32_MAX &&
           isdigit((unsigned char)s[*s == '-']) && !(s[*s == '-'] == '0' && s[1 + (*s == '-')]);
}

static bool rule_pod_annotations(struct bh_rule_run *r, const struct bh_rule_at *at,
                                 const struct bh_rule_call *c)
{
    static const char apparmor[] = "container.apparmor.security.beta.kubernetes.io/";
    static const char seccomp[] = "container.seccomp.security.alpha.kubernetes.io/";
    const struct bh_rule_at *holder = bh_rule_holder(bh_rule_holder(at));
    const struct bh_json *spec = bh_tree_obj(holder ? holder->v : NULL, "spec");

    (void)c;
    bh_json_each(a, at->v) {
        const char *key = a->key.p, *s = bh_json_cstr(a);
        struct bh_rule_at entry = bh_rule_entry(at, a), child = bh_rule_named(at, key);
        if (!s)
            continue;
        if (bh_streq(key, "kubernetes.io/config.mirror") && !*bh_json_get_text(spec, "nodeName"))
            bh_rule_invalid_text(r, &entry, s,
                                 "must set spec.nodeName if mirror pod annotation is set");
        else if (bh_streq(key, "controller.kubernetes.io/pod-deletion-cost") && !is_int32(s))
            bh_rule_invalid_text(r, &entry, s, "must be a 32bit integer");
        else if (bh_streq(key, "seccomp.security.alpha.kubernetes.io/pod") ||
                 strncmp(key, seccomp, strlen(seccomp)) == 0)
            check_seccomp(r, &child, s);
        else if (strncmp(key, apparmor, strlen(apparmor)) == 0)
            check_apparmor(r, &entry, spec, key + strlen(apparmor), s);
    }
    return true;
}

/* The elements of old stand at the beginning of new. */
static bool begins_with(const struct bh_json *new, const struct bh_json *old)
{
    const struct bh_json *n = new ? new->c.first : NULL;

    bh_json_each(o, old) {
        if (!n || !bh_json_equal(n, o))
            return false;
        n = n->next;
    }
    return true;
}

static bool adds_only(const struct bh_json *new, const struct bh_json *old)
{
    const struct bh_json *exprs = bh_tree_arr(old, "matchExpressions");
    const struct bh_json *fields = bh_tree_arr(old, "matchFields");

    if (!bh_tree_len(exprs) && !bh_tree_len(fields)) /* it selects nothing, and has to stay so */
        return !bh_tree_len(bh_tree_arr(new, "matchExpressions")) &&
               !bh_tree_len(bh_tree_arr(new, "matchFields"));
    return begins_with(bh_tree_arr(new, "matchExpressions"), exprs) &&
           begins_with(bh_tree_arr(new, "matchFields"), fields);
}

/* Where a gated pod may run can only become less. */
static bool rule_gated_affinity(struct bh_rule_run *r, const struct bh_rule_at *at,
                                const struct bh_rule_call *c)
{
    struct bh_rule_at affinity = bh_rule_member(at, "affinity");
    struct bh_rule_at node = bh_rule_member(&affinity, "nodeAffinity");
    struct bh_rule_at required =
        bh_rule_member(&node, "requiredDuringSchedulingIgnoredDuringExecution");
    struct bh_rule_at terms = bh_rule_member(&required, "nodeSelectorTerms");
    size_t i = 0;

    (void)c;
    if (!bh_tree_len(terms.old))
        return true;
    if (bh_tree_len(terms.v) != bh_tree_len(terms.old))
        return fails(r, &terms, "Invalid value", terms.v ? bh_rule_shown(r, &terms) : "null",
                     "no additions/deletions to non-empty NodeSelectorTerms list are allowed");
    bh_json_each(t, terms.v) {
        struct bh_rule_at one = bh_rule_element(&terms, t, i++);
        if (!adds_only(one.v, one.old))
            bh_rule_invalid(r, &one, "only additions are allowed (no changes or deletions)");
    }
    return true;
}

const struct bh_rule bh_rules_pod[] = {
    {"gated-affinity", rule_gated_affinity},
    {"first-of", rule_first_of},
    {"one-of-env", rule_one_of_env},
    {"one-projection", rule_one_projection},
    {"unique-before", rule_unique_before},
    {"not-in", rule_not_in},
    {"unique-path", rule_unique_path},
    {"other-container", rule_other_container},
    {"unique-host-ports", rule_unique_host_ports},
    {"init-host-ports", rule_init_host_ports},
    {"volumes", rule_volumes},
    {"claim-name-of-volume", rule_claim_name},
    {"volume-exists", rule_volume_exists},
    {"device-exists", rule_device_exists},
    {"projected-paths", rule_projected_paths},
    {"file-key-volumes", rule_file_key_volumes},
    {"name-prefix", rule_name_prefix},
    {"field-ref", rule_field_ref},
    {"resource-field", rule_resource_field},
    {"divisor", rule_divisor},
    {"merged-label-keys", rule_merged_keys},
    {"spread-repeated", rule_spread_repeated},
    {"joined-label-value", rule_joined_value},
    {"no-blanks", rule_no_blanks},
    {"no-escalation", rule_no_escalation},
    {"host-users", rule_host_users},
    {"host-sysctl", rule_host_sysctl},
    {"windows-host-process", rule_windows_host_process},
    {"windows-user", rule_windows_user},
    {"sleep-seconds", rule_sleep_seconds},
    {"stop-signal", rule_stop_signal},
    {"dns-searches", rule_dns_searches},
    {"iscsi-name", rule_iscsi_name},
    {"invalid-resource", rule_invalid_resource},
    {"without-slash", rule_without_slash},
    {"prefix", rule_prefix},
    {"reserved-options", rule_reserved_options},
    {"bundle-name", rule_bundle_name},
    {"pod-annotations", rule_pod_annotations},
    {0},
};
