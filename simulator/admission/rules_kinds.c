/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/admission/rules_kinds.c - rules of kinds other than pods that look at more than one member
 *
 * Upstream: pkg/apis/{core,apps,batch,storage,scheduling}/validation/validation.go,
 * apimachinery/pkg/api/validation/objectmeta.go (v1.36).
 */
#include "simulator/admission/rules.h"

#include "common/k8s/quantity.h"
#include "common/k8s/selector.h"
#include "simulator/admission/cron.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <strings.h>

static bool fails(struct bh_rule_run *r, const struct bh_rule_at *at, const char *kind,
                  const char *value, const char *text)
{
    bh_rule_error(r, at, kind, value, text);
    return false;
}

static const char *text_at(const struct bh_json *v, const char *member)
{
    return bh_json_get_text(v, member);
}

static bool same(const struct bh_json *a, const struct bh_json *b)
{
    return bh_rule_is_empty(a) || bh_rule_is_empty(b) ? bh_rule_is_empty(a) && bh_rule_is_empty(b)
                                                      : bh_json_equal(a, b);
}

/* ---- metadata -------------------------------------------------------------------------------- */

static struct bh_rule_fault *path_faults(struct bh_rule_run *r, const char *s, bool prefix)
{
    struct bh_rule_fault *f = NULL, **end = &f;
    const char *texts[2];
    size_t n = 0;

    if (!prefix && (bh_streq(s, ".") || bh_streq(s, "..")))
        texts[n++] = bh_rule_printf(r, "may not be '%s'", s);
    else {
        if (strchr(s, '/'))
            texts[n++] = "may not contain '/'";
        if (strchr(s, '%'))
            texts[n++] = "may not contain '%'";
    }
    for (size_t i = 0; i < n; i++) {
        *end = bh_arena_new(r->w->arena, struct bh_rule_fault);
        (*end)->text = texts[i];
        end = &(*end)->next;
    }
    return f;
}

/* metadata.name and metadata.generateName: which syntax is the kind's. */
static bool rule_object_name(struct bh_rule_run *r, const struct bh_rule_at *at,
                             const struct bh_rule_call *c)
{
    const struct bh_sim_type *t = r->w->type;
    const char *s = bh_rule_text(at), *masked = s;
    bool prefix = bh_streq(at->member, "generateName");
    size_t n = strlen(s);

    (void)c;
    if (prefix && n > 1 && s[n - 1] == '-')
        masked = bh_rule_printf(r, "%.*sa", (int)n - 2, s);
    if (t->flags & BH_SIM_NAME_FREE || bh_streq(t->kind, "PodDisruptionBudget"))
        return bh_rule_faults(r, at, s, path_faults(r, s, prefix));
    if (t->flags & BH_SIM_NAME_LABEL || bh_streq(t->kind, "StatefulSet") ||
        bh_streq(t->kind, "Service"))
        return bh_rule_faults(r, at, s, bh_name_label(r, masked));
    struct bh_rule_fault *f = bh_name_subdomain(r, masked);
    if (f && bh_streq(t->kind, "DeviceClass") && n > 253)
        f->text = "must be no more than 253 bytes";
    return bh_rule_faults(r, at, s, f);
}

static bool rule_owner_references(struct bh_rule_run *r, const struct bh_rule_at *at,
                                  const struct bh_rule_call *c)
{
    static const char *const needed[] = {"kind", "name", "uid"};
    const char *first = NULL;

    (void)c;
    bh_json_each(ref, at->v) {
        const char *version = text_at(ref, "apiVersion"), *slash = strchr(version, '/');
        struct bh_rule_at m = bh_rule_named(at, "apiVersion");
        if (!*version || (slash && (!slash[1] || strchr(slash + 1, '/'))))
            bh_rule_invalid_text(r, &m, version, "version must not be empty");
        for (size_t i = 0; i < BH_ARRAY_LEN(needed); i++) {
            m = bh_rule_named(at, needed[i]);
            if (!*text_at(ref, needed[i]))
                bh_rule_invalid_text(r, &m, "", "must not be empty");
        }
        struct bh_rule_at one = bh_rule_element(at, ref, 0);
        if (bh_streq(version, "v1") && bh_tree_is(ref, "kind", "Event"))
            fails(r, at, "Invalid value", bh_rule_shown(r, &one),
                  "/v1, Kind=Event is disallowed from being an owner");
        if (!bh_tree_bool(ref, "controller", false))
            continue;
        const char *name = bh_rule_printf(r, "%s/%s", text_at(ref, "kind"), text_at(ref, "name"));
        if (first)
            bh_rule_invalid(r, at,
                            bh_rule_printf(r,
                                           "Only one reference can have Controller set to true. "
                                           "Found \"true\" in references for %s and %s",
                                           first, name));
        else
            first = name;
    }
    return true;
}

static bool is_standard_finalizer(const char *s)
{
    return *s && bh_word_at("kubernetes orphan foregroundDeletion", s) >= 0;
}

static bool rule_finalizer(struct bh_rule_run *r, const struct bh_rule_at *at,
                           const struct bh_rule_call *c)
{
    const char *s = bh_rule_text(at);
    bool fine = bh_rule_faults(r, at, s, bh_name_key(r, s));

    (void)c;
    if (strchr(s, '/') || is_standard_finalizer(s))
        return fine;
    return fails(r, at, "Invalid value", bh_rule_quoted(r, s),
                 "name is neither a standard finalizer name nor is it fully qualified");
}

/* Of metadata: unqualified ones are refused for pods' sake only in their own list, by index. */
static bool rule_finalizers(struct bh_rule_run *r, const struct bh_rule_at *at,
                            const struct bh_rule_call *c)
{
    static const char both[] = "finalizer orphan and foregroundDeletion cannot be both set";
    size_t i = 0;

    (void)c;
    bh_json_each(f, at->v) {
        const char *s = bh_json_cstr(f) ? bh_json_cstr(f) : "";
        bh_rule_faults(r, at, s, bh_name_key(r, s));
    }
    if (bh_tree_lists(at->v, "orphan") && bh_tree_lists(at->v, "foregroundDeletion"))
        bh_rule_invalid(r, at, both);
    /* Only the kinds of pkg/apis are asked for more than a qualified name. */
    bool own = !r->w->type->custom && !bh_streq(r->w->type->group, BH_SIM_CRD_GROUP);
    bh_json_each(f, own ? at->v : NULL) {
        struct bh_rule_at one = bh_rule_element(at, f, i++);
        const char *s = bh_json_cstr(f) ? bh_json_cstr(f) : "";
        if (!strchr(s, '/') && !is_standard_finalizer(s))
            fails(r, &one, "Invalid value", bh_rule_quoted(r, s),
                  "name is neither a standard finalizer name nor is it fully qualified");
    }
    return true;
}

static bool rule_no_new_finalizers(struct bh_rule_run *r, const struct bh_rule_at *at,
                                   const struct bh_rule_call *c)
{
    struct bh_buf b = {0};

    (void)c;
    bh_json_each(f, at->v) {
        const char *s = bh_json_cstr(f);
        if (s && !bh_tree_lists(at->old, s))
            bh_buf_addf(&b, "%s%s", b.n ? ", " : "", bh_rule_quoted(r, s));
    }
    if (b.n)
        fails(r, at, "Forbidden", NULL,
              bh_rule_printf(r,
                             "no new finalizers can be added if the object is being deleted, found "
                             "new finalizers []string{%s}",
                             b.p));
    bh_buf_fini(&b);
    return true;
}

static bool rule_condition_reason(struct bh_rule_run *r, const struct bh_rule_at *at,
                                  const struct bh_rule_call *c)
{
    const char *s = bh_rule_text(at);
    size_t n = strlen(s);

    (void)c;
    if (n > 1024)
        return fails(r, at, "Too long", NULL, "may not be more than 1024 bytes");
    if (isalpha((unsigned char)*s) && s[n - 1] != ',' && s[n - 1] != ':' &&
        strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_,:") == n)
        return true;
    return fails(
        r, at, "Invalid value", bh_rule_quoted(r, s),
        "a condition reason must start with alphabetic character, optionally followed by a string "
        "of alphanumeric characters or '_,:', and must end with an alphanumeric character or '_' "
        "(e.g. 'my_name',  or 'MY_NAME',  or 'MyName',  or 'ReasonA,ReasonB',  or "
        "'ReasonA:ReasonB', regex used for validation is "
        "'[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?')");
}

/* ---- selectors and templates ----------------------------------------------------------------- */

/* 1 it matches, 0 it does not, -1 it is malformed. */
static int selects(const struct bh_json *selector, const struct bh_json *labels)
{
    struct bh_selector *s;
    struct bh_err err;

    if (bh_selector_from_json(selector, &s, &err) < 0)
        return -1;
    bool yes = bh_selector_match_json(s, labels);
    bh_selector_free(s);
    return yes;
}

static bool well_formed(struct bh_rule_run *r, const struct bh_json *selector)
{
    bh_json_each(l, bh_tree_obj(selector, "matchLabels")) {
        const char *s = bh_json_cstr(l) ? bh_json_cstr(l) : "";
        if (bh_name_key(r, l->key.p) || bh_name_label_value(r, s))
            return false;
    }
    return !selector || selects(selector, NULL) >= 0;
}

static bool rule_selector_syntax(struct bh_rule_run *r, const struct bh_rule_at *at,
                                 const struct bh_rule_call *c)
{
    if (!at->v || well_formed(r, at->v))
        return true;
    bh_rule_invalid(r, at, c->arg[0]);
    return false;
}

static bool is_empty_selector(const struct bh_json *s)
{
    return !bh_tree_len(bh_tree_obj(s, "matchLabels")) &&
           !bh_tree_len(bh_tree_arr(s, "matchExpressions"));
}

static bool rule_selected_labels(struct bh_rule_run *r, const struct bh_rule_at *at,
                                 const struct bh_rule_call *c)
{
    const struct bh_json *selector = bh_tree_obj(bh_rule_holder(at)->v, "selector");
    struct bh_rule_at meta = bh_rule_member(at, "metadata");
    struct bh_rule_at labels = bh_rule_member(&meta, "labels");
    bool matches = selector && selects(selector, labels.v) == 1;

    (void)c;
    if (matches || (selector && (!well_formed(r, selector) || is_empty_selector(selector))))
        return true; /* no selector selects nothing, an empty one everything */
    bh_rule_invalid(r, &labels, "`selector` does not match template `labels`");
    return false;
}

static void check_sets(struct bh_rule_run *r, const struct bh_rule_at *template, const char *kind)
{
    static const char *const always[] = {"Always"};
    struct bh_rule_at spec = bh_rule_member(template, "spec");
    struct bh_rule_at policy = bh_rule_member(&spec, "restartPolicy"),
                      deadline = bh_rule_member(&spec, "activeDeadlineSeconds");

    bh_rules_apply_at(r, bh_rules_find("PodTemplateSpec"), template);
    if (!bh_streq(bh_rule_text(&policy), "Always"))
        bh_rule_unsupported(r, &policy, bh_rule_shown(r, &policy), 1, always);
    if (deadline.v)
        fails(r, &deadline, "Forbidden", NULL,
              bh_rule_printf(r, "activeDeadlineSeconds in %s is not Supported", kind));
}

/* Of a Deployment or a ReplicaSet. */
static bool rule_selected_template(struct bh_rule_run *r, const struct bh_rule_at *at,
                                   const struct bh_rule_call *c)
{
    const struct bh_json *selector = bh_tree_obj(bh_rule_holder(at)->v, "selector");

    if (selector && !well_formed(r, selector))
        return true;
    rule_selected_labels(r, at, c);
    check_sets(r, at, "ReplicaSet");
    return true;
}

static bool rule_selected_by_map(struct bh_rule_run *r, const struct bh_rule_at *at,
                                 const struct bh_rule_call *c)
{
    struct bh_rule_at meta = bh_rule_member(at, "metadata");
    struct bh_rule_at labels = bh_rule_member(&meta, "labels");

    (void)c;
    if (!at->v)
        return true;
    bh_json_each(m, bh_tree_obj(bh_rule_holder(at)->v, "selector")) {
        const struct bh_json *l = bh_json_get(labels.v, m->key.p);
        if (l && bh_json_equal(l, m))
            continue;
        bh_rule_invalid(r, &labels, "`selector` does not match template `labels`");
        break;
    }
    return true;
}

/* frozen TEXT MEMBER...: nothing but these members changes. */
static bool rule_frozen(struct bh_rule_run *r, const struct bh_rule_at *at,
                        const struct bh_rule_call *c)
{
    if (!at->old)
        return true;
    struct bh_json *now = bh_json_clone(r->w->arena, at->v),
                   *old = bh_json_clone(r->w->arena, at->old);
    for (size_t i = 1; now && old && i < c->n; i++) {
        bh_json_unset(now, c->arg[i]);
        bh_json_unset(old, c->arg[i]);
    }
    return !now || !old || bh_json_equal(now, old) || fails(r, at, "Forbidden", NULL, c->arg[0]);
}

/* ---- jobs ------------------------------------------------------------------------------------ */

static bool rule_generated_selector(struct bh_rule_run *r, const struct bh_rule_at *at,
                                    const struct bh_rule_call *c)
{
    const struct bh_json *meta = bh_json_get(at->v, "metadata"), *spec = bh_json_get(at->v, "spec");
    const struct bh_json *selector = bh_tree_obj(spec, "selector");
    struct bh_rule_at s = bh_rule_member(at, "spec");
    struct bh_rule_at place = bh_rule_member(&s, "selector");
    const char *uid = text_at(meta, "uid"), *name = text_at(meta, "name");

    (void)c;
    if (!selector || bh_tree_bool(spec, "manualSelector", false))
        return true;
    struct bh_json *labels = bh_json_make(r->w->arena,
                                          "batch.kubernetes.io/controller-uid: %s, "
                                          "batch.kubernetes.io/job-name: %s, "
                                          "controller-uid: %s, job-name: %s",
                                          uid, name, uid, name);
    if (selects(selector, labels) == 0)
        bh_rule_invalid(r, &place, "`selector` not auto-generated");
    return true;
}

static bool rule_indexed_name(struct bh_rule_run *r, const struct bh_rule_at *at,
                              const struct bh_rule_call *c)
{
    const struct bh_json *spec = bh_json_get(at->v, "spec");
    int64_t n = bh_tree_i64(spec, "completions", 0);
    struct bh_rule_at meta = bh_rule_member(at, "metadata");
    struct bh_rule_at name = bh_rule_member(&meta, "name");

    (void)c;
    if (!bh_tree_is(spec, "completionMode", "Indexed") || n <= 0)
        return true;
    const char *pod = bh_rule_printf(r, "%s-%lld", bh_rule_text(&name), (long long)n - 1);
    if (bh_name_label(r, pod))
        bh_rule_invalid_text(
            r, &name, bh_rule_text(&name),
            bh_rule_printf(r, "will not able to create pod with invalid DNS label: %s", pod));
    return true;
}

static void copy_member(struct bh_arena *a, struct bh_json *to, const struct bh_json *from,
                        const char *key)
{
    const struct bh_json *v = bh_json_get(from, key);

    if (v && to)
        bh_json_set(a, to, key, bh_json_clone(a, v));
    else if (to)
        bh_json_unset(to, key);
}

/* While a job has not begun, where its pods go may still change; while it is suspended, what they
 * ask for, too. */
static bool rule_immutable_template(struct bh_rule_run *r, const struct bh_rule_at *at,
                                    const struct bh_rule_call *c)
{
    static const char *const lists[] = {"containers", "initContainers"};
    struct bh_arena *a = r->w->arena;
    bool suspended = bh_tree_bool(r->w->old, "spec.suspend", false);
    struct bh_json *old = bh_json_clone(a, at->old), *spec = bh_json_get(old, "spec");
    const struct bh_json *now = bh_json_get(at->v, "spec");

    (void)c;
    if (suspended && !bh_tree_has(r->w->old, "status.startTime")) {
        const struct bh_json *affinity = bh_json_get(now, "affinity");
        copy_member(a, spec, now, "nodeSelector");
        copy_member(a, spec, now, "tolerations");
        copy_member(a, spec, now, "schedulingGates");
        copy_member(a, old, at->v, "metadata");
        if (affinity || bh_json_get(spec, "affinity")) {
            struct bh_json *to = bh_json_obj_at(a, spec, "affinity");
            copy_member(a, to, affinity, "nodeAffinity");
            if (!to->c.n && !affinity)
                bh_json_unset(spec, "affinity");
        }
    }
    for (size_t i = 0; suspended && i < 2; i++) {
        struct bh_json *o = bh_json_first(bh_tree_arr(spec, lists[i]));
        bh_json_each(n, bh_tree_arr(now, lists[i])) {
            if (o && bh_streq(text_at(o, "name"), text_at(n, "name")))
                copy_member(a, o, n, "resources");
            o = o ? o->next : NULL;
        }
    }
    if (!same(at->v, old))
        bh_rule_invalid(r, at, "field is immutable");
    return true;
}

static bool rule_domain_path(struct bh_rule_run *r, const struct bh_rule_at *at,
                             const struct bh_rule_call *c)
{
    const char *s = bh_rule_text(at), *slash = s ? strchr(s, '/') : NULL;

    (void)c;
    if (!s)
        return true;
    if (!*s)
        return fails(r, at, "Required value", NULL, "");
    if (!slash || slash == s || !slash[1]) {
        bh_rule_invalid_text(r, at, s, "must be a domain-prefixed path (such as \"acme.io/foo\")");
        return true;
    }
    const char *host = bh_rule_printf(r, "%.*s", (int)(slash - s), s);
    bh_rule_faults(r, at, host, bh_name_subdomain(r, host));
    if (strspn(slash + 1, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789/"
                          "-._~%!$&'()*+,;=:") != strlen(slash + 1))
        bh_rule_invalid_text(r, at, slash + 1,
                             "Invalid path (regex used for validation is "
                             "'[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+')");
    return true;
}

static bool rule_invalid_omitted(struct bh_rule_run *r, const struct bh_rule_at *at,
                                 const struct bh_rule_call *c)
{
    return fails(r, at, "Invalid value", NULL, c->arg[0]);
}

static bool has_name(const struct bh_json *list, const char *name)
{
    bh_json_each(e, list)
        if (bh_streq(text_at(e, "name"), name))
            return true;
    return false;
}

static bool rule_template_container(struct bh_rule_run *r, const struct bh_rule_at *at,
                                    const struct bh_rule_call *c)
{
    const char *s = bh_json_cstr(at->v);
    const struct bh_rule_at *job = at;

    (void)c;
    while (job && !(job->type && bh_streq(job->type->name, "JobSpec")))
        job = job->up;
    return !s || !job || has_name(bh_tree_arr(job->v, "template.spec.containers"), s) ||
           has_name(bh_tree_arr(job->v, "template.spec.initContainers"), s) ||
           fails(r, at, "Invalid value", bh_rule_quoted(r, s),
                 "must be one of the container or initContainer names in the pod template");
}

static bool rule_exit_codes(struct bh_rule_run *r, const struct bh_rule_at *at,
                            const struct bh_rule_call *c)
{
    bool in = bh_tree_is(bh_rule_holder(at)->v, "operator", "In"), ordered = true;
    int64_t last = 0;
    size_t i = 0;

    (void)c;
    bh_json_each(e, at->v) {
        struct bh_rule_at one = bh_rule_element(at, e, i);
        int64_t n = 0;
        bool seen = false;
        bh_json_i64(e, &n);
        if (in && !n)
            bh_rule_invalid(r, &one, "must not be 0 for the In operator");
        for (const struct bh_json *p = at->v->c.first; p != e && !seen; p = p->next)
            seen = bh_json_equal(p, e);
        if (seen)
            fails(r, &one, "Duplicate value", bh_rule_shown(r, &one), "");
        ordered = ordered && (!i++ || last <= n);
        last = n;
    }
    if (!ordered)
        bh_rule_invalid(r, at, "must be ordered");
    return true;
}

static const char *read_index(struct bh_rule_run *r, const char *s, int64_t *ret)
{
    char *end;

    *ret = strtoll(s, &end, 10);
    return *s && !*end && isdigit((unsigned char)s[*s == '-'])
               ? NULL
               : bh_rule_printf(r, "cannot convert string to integer for index: %s",
                                bh_rule_quoted(r, s));
}

/* "1,3-5": how many, or what is wrong. */
static const char *count_indexes(struct bh_rule_run *r, const char *s, int64_t most, int64_t *ret)
{
    int64_t last = -1;

    *ret = 0;
    for (const char *p = s; *s;) {
        size_t n = strcspn(p, ",");
        const char *part = bh_rule_printf(r, "%.*s", (int)n, p), *why;
        const char *dash = strchr(part, '-');
        int64_t x, y;
        if (dash && strchr(dash + 1, '-'))
            return bh_rule_printf(r,
                                  "the fragment %s violates the requirement that an index interval "
                                  "can have at most two parts separated by '-'",
                                  bh_rule_quoted(r, part));
        if ((why = read_index(r, dash ? bh_rule_printf(r, "%.*s", (int)(dash - part), part) : part,
                              &x)))
            return why;
        if (x >= most)
            return bh_rule_printf(r, "too large index: %s",
                                  bh_rule_quoted(r, bh_rule_printf(r, "%lld", (long long)x)));
        y = x;
        if (dash && (why = read_index(r, dash + 1, &y)))
            return why;
        if (dash && y >= most)
            return bh_rule_printf(r, "too large index: %s",
                                  bh_rule_quoted(r, bh_rule_printf(r, "%lld", (long long)y)));
        if (dash && x >= y)
            return bh_rule_printf(r, "non-increasing order, previous: %lld, current: %lld",
                                  (long long)x, (long long)y);
        if (p != s && last >= x)
            return bh_rule_printf(r, "non-increasing order, previous: %lld, current: %lld",
                                  (long long)last, (long long)x);
        *ret += y - x + 1;
        last = y;
        p += n;
        if (!*p++)
            break;
    }
    return NULL;
}

static bool rule_success_indexes(struct bh_rule_run *r, const struct bh_rule_at *at,
                                 const struct bh_rule_call *c)
{
    const struct bh_rule_at *job = bh_rule_holder(bh_rule_holder(at));
    struct bh_rule_at indexes = bh_rule_member(at, "succeededIndexes"),
                      count = bh_rule_member(at, "succeededCount");
    int64_t most = bh_tree_i64(job->v, "completions", 0), total = 0, n = 0;
    const char *s = bh_json_cstr(indexes.v);

    (void)c;
    if (s && strlen(s) > 64 * 1024)
        fails(r, &indexes, "Too long", NULL, "may not be more than 65536 bytes");
    const char *why = s ? count_indexes(r, s, most, &total) : NULL;
    if (why) {
        bh_rule_invalid_text(r, &indexes, s,
                             bh_rule_printf(r, "error parsing succeededIndexes: %s", why));
        total = 0;
    }
    if (!count.v || !bh_rule_number(&count, &n))
        return true;
    if (n < 0)
        bh_rule_invalid(r, &count, "must be greater than or equal to 0");
    if (n > most)
        bh_rule_invalid(
            r, &count,
            bh_rule_printf(
                r, "must be less than or equal to %lld (the number of specified completions)",
                (long long)most));
    if (s && n > total)
        bh_rule_invalid(r, &count,
                        bh_rule_printf(r,
                                       "must be less than or equal to %lld (the number of indexes "
                                       "in the specified succeededIndexes field)",
                                       (long long)total));
    return true;
}

static bool rule_cron_schedule(struct bh_rule_run *r, const struct bh_rule_at *at,
                               const struct bh_rule_call *c)
{
    const char *s = bh_rule_text(at), *old = bh_json_cstr(at->old);
    bool zone = strstr(s, "TZ"), may_zone = old && strstr(old, "TZ");
    struct bh_err err = {{0}};
    struct bh_cron cron;

    (void)c;
    if (!zone && bh_cron_parse(s, &cron, &err) < 0)
        bh_rule_invalid_text(r, at, s, err.msg);
    if (zone && may_zone && bh_tree_has(bh_rule_holder(at)->v, "timeZone"))
        bh_rule_invalid_text(r, at, s,
                             "cannot use both timeZone field and TZ or CRON_TZ in schedule");
    else if (zone && !may_zone)
        bh_rule_invalid_text(r, at, s,
                             "cannot use TZ or CRON_TZ in schedule, use timeZone field instead");
    return true;
}

static bool is_zone_name(const char *name)
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-_+";

    for (const char *part = name;; part += strcspn(part, "/") + 1) {
        size_t n = strcspn(part, "/");
        if (n == 0 || n > 14 || *part == '-' || strspn(part, letters) < n ||
            (*part == '.' && (n == 1 || (n == 2 && part[1] == '.'))))
            return false;
        if (!part[n])
            return true;
    }
}

static bool rule_time_zone(struct bh_rule_run *r, const struct bh_rule_at *at,
                           const struct bh_rule_call *c)
{
    const char *s = bh_json_cstr(at->v);
    struct bh_err err = {{0}};
    struct bh_zone zone;

    (void)c;
    if (!s)
        return true;
    if (!*s)
        return fails(r, at, "Invalid value", "\"\"", "timeZone must be nil or non-empty string");
    if (!is_zone_name(s))
        return fails(r, at, "Invalid value", bh_rule_quoted(r, s),
                     bh_rule_printf(r, "unknown time zone %s", s));
    if (strcasecmp(s, "Local") == 0)
        bh_rule_invalid_text(r, at, s,
                             "timeZone must be an explicit time zone as defined in "
                             "https://www.iana.org/time-zones");
    else if (bh_zone_load(&zone, s, &err) < 0)
        bh_rule_invalid_text(r, at, s, err.msg);
    else
        bh_zone_fini(&zone);
    return true;
}

static bool rule_max_name_52(struct bh_rule_run *r, const struct bh_rule_at *at,
                             const struct bh_rule_call *c)
{
    const char *s = bh_rule_text(at);

    (void)c;
    return strlen(s) <= 52 || fails(r, at, "Invalid value", bh_rule_quoted(r, s),
                                    "must be no more than 52 characters");
}

/* ---- nodes ----------------------------------------------------------------------------------- */

static bool rule_node_annotations(struct bh_rule_run *r, const struct bh_rule_at *at,
                                  const struct bh_rule_call *c)
{
    static const char key[] = "scheduler.alpha.kubernetes.io/preferAvoidPods";
    const char *s = bh_json_get_str(at->v, key);
    struct bh_rule_at place = bh_rule_named(at, "AvoidPods");
    struct bh_err err = {{0}};
    struct bh_json *v;
    size_t i = 0;

    (void)c;
    if (!s || !*s)
        return true;
    if (bh_json_parse(r->w->arena, s, strlen(s), 0, &v, &err) < 0 || v->type != BH_JSON_OBJECT) {
        bh_rule_invalid_text(r, &place, key, err.msg);
        return true;
    }
    bh_json_each(e, bh_tree_arr(v, "preferAvoidPods")) {
        const char *head = bh_rule_printf(r, "%s[%zu].PodSignature", key, i++);
        const struct bh_json *owner = bh_tree_obj(e, "podSignature.podController");
        place = bh_rule_named(at, head);
        if (!owner)
            fails(r, &place, "Required value", NULL, "");
        place = bh_rule_named(at, bh_rule_printf(r, "%s.PodController.Controller", head));
        if (owner && !bh_tree_bool(owner, "controller", false))
            fails(r, &place, "Invalid value", "false", "must point to a controller");
    }
    return true;
}

static bool rule_unique_taints(struct bh_rule_run *r, const struct bh_rule_at *at,
                               const struct bh_rule_call *c)
{
    size_t i = 0;

    (void)c;
    bh_json_each(t, at->v) {
        struct bh_rule_at one = bh_rule_element(at, t, i++);
        bool seen = false;
        for (const struct bh_json *p = at->v->c.first; p != t && !seen; p = p->next)
            seen = bh_streq(text_at(p, "key"), text_at(t, "key")) &&
                   bh_streq(text_at(p, "effect"), text_at(t, "effect"));
        if (seen)
            fails(r, &one, "Duplicate value", bh_rule_shown(r, &one),
                  "taints must be unique by key and effect pair");
    }
    return true;
}

static bool rule_sorted_features(struct bh_rule_run *r, const struct bh_rule_at *at,
                                 const struct bh_rule_call *c)
{
    const char *last = NULL;
    size_t i = 0;

    (void)c;
    bh_json_each(e, at->v) {
        struct bh_rule_at one = bh_rule_element(at, e, i++);
        const char *s = bh_json_cstr(e) ? bh_json_cstr(e) : "";
        if (!isupper((unsigned char)*s) ||
            strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789/") !=
                strlen(s))
            bh_rule_invalid_text(
                r, &one, s,
                bh_rule_printf(r,
                               "invalid feature name %s: must start with an UpperCamelCase "
                               "segment, with subsequent segments separated by '/' (e.g., "
                               "MyFeature or MyFeature/mySubFeature), and contain only "
                               "alphanumeric characters and slashes",
                               bh_rule_quoted(r, s)));
        if (last && bh_streq(last, s))
            fails(r, &one, "Duplicate value", bh_rule_quoted(r, s), "");
        else if (last && strcmp(last, s) > 0)
            bh_rule_invalid_text(r, &one, s, "list must be sorted alphabetically");
        last = s;
    }
    return true;
}

static bool rule_cidr_families(struct bh_rule_run *r, const struct bh_rule_at *at,
                               const struct bh_rule_call *c)
{
    size_t v6 = 0, i = 0;
    const char *bad = NULL;

    (void)c;
    if (bh_tree_len(at->v) < 2)
        return true;
    bh_json_each(e, at->v) {
        const char *s = bh_json_cstr(e) ? bh_json_cstr(e) : "";
        v6 += strchr(s, ':') != NULL;
        if (!bad && !strchr(s, '/'))
            bad = bh_rule_printf(r,
                                 "invalid PodCIDRs. failed to check with dual stack with "
                                 "error:invalid CIDR[%zu]: <nil> (invalid CIDR address: %s)",
                                 i, s);
        i++;
    }
    if (bad)
        fails(r, at, "Internal error", NULL, bad);
    if (bad || !v6 || v6 == i || i > 2)
        bh_rule_invalid(r, at, "may specify no more than one CIDR for each IP family");
    return true;
}

static bool rule_pod_cidrs_kept(struct bh_rule_run *r, const struct bh_rule_at *at,
                                const struct bh_rule_call *c)
{
    static const char text[] = "node updates may not change podCIDR except from \"\" to valid";
    size_t i = 0;

    (void)c;
    if (bh_tree_len(at->v) != bh_tree_len(at->old))
        return fails(r, at, "Forbidden", NULL, text);
    bh_json_each(e, at->v)
        if (!bh_json_equal(e, bh_json_at(at->old, i++)))
            fails(r, at, "Forbidden", NULL, text);
    return true;
}

/* ---- services -------------------------------------------------------------------------------- */

static bool is_headless(const struct bh_json *spec)
{
    const struct bh_json *ips = bh_tree_arr(spec, "clusterIPs");

    return bh_tree_len(ips) == 1 && bh_tree_lists(ips, "None");
}

static bool rule_headless_fits(struct bh_rule_run *r, const struct bh_rule_at *at,
                               const struct bh_rule_call *c)
{
    const struct bh_json *spec = bh_rule_holder(at)->v;
    const char *type = text_at(spec, "type");
    struct bh_rule_at first = bh_rule_element(at, bh_json_at(at->v, 0), 0);

    (void)c;
    if (is_headless(spec) && bh_word_at("LoadBalancer NodePort", type) >= 0 && *type)
        bh_rule_invalid_text(r, &first, "None",
                             bh_rule_printf(r, "may not be set to 'None' for %s services", type));
    return true;
}

static bool rule_external_name(struct bh_rule_run *r, const struct bh_rule_at *at,
                               const struct bh_rule_call *c)
{
    const char *s = bh_rule_text(at);
    size_t n = strlen(s);

    (void)c;
    s = n && s[n - 1] == '.' ? bh_rule_printf(r, "%.*s", (int)n - 1, s) : s;
    return bh_rule_faults(r, at, s, bh_name_subdomain(r, s));
}

static bool rule_first_cluster_ip(struct bh_rule_run *r, const struct bh_rule_at *at,
                                  const struct bh_rule_call *c)
{
    const char *ip = text_at(bh_rule_holder(at)->v, "clusterIP"),
               *first = bh_json_cstr(bh_json_at(at->v, 0));

    (void)c;
    if (*ip && first && !bh_streq(first, ip))
        bh_rule_invalid(r, at, "first value must match `clusterIP`");
    else if (!*ip && bh_tree_len(at->v))
        bh_rule_invalid(r, at, "must be empty when `clusterIP` is not specified");
    return true;
}

static bool rule_cluster_ips(struct bh_rule_run *r, const struct bh_rule_at *at,
                             const struct bh_rule_call *c)
{
    const struct bh_rule_call none = {0};
    bool bad = false;
    size_t i = 0, n = bh_tree_len(at->v);

    (void)c;
    bh_json_each(e, at->v) {
        struct bh_rule_at one = bh_rule_element(at, e, i++);
        if (i == 1 && bh_streq(bh_rule_text(&one), "None")) {
            if (n > 1)
                bh_rule_invalid(r, at, "'None' must be the first and only value");
            bad = bad || n > 1;
            continue;
        }
        if (!(at->old && bh_tree_lists(at->old, bh_rule_text(&one))))
            bad = !bh_rule_ip(r, &one, &none) || bad;
    }
    if (n > 2)
        bh_rule_invalid(r, at, "may only hold up to 2 values");
    if (bad || n < 2)
        return true;
    size_t v6 = 0;
    bh_json_each(e, at->v)
        v6 += strchr(bh_json_cstr(e), ':') != NULL;
    if (!v6 || v6 == n)
        bh_rule_invalid(r, at, "may specify no more than one IP for each IP family");
    return true;
}

static bool rule_unique_service_ports(struct bh_rule_run *r, const struct bh_rule_at *at,
                                      const struct bh_rule_call *c)
{
    size_t i = 0;

    (void)c;
    bh_json_each(p, at->v) {
        struct bh_rule_at one = bh_rule_element(at, p, i++);
        bool seen = false;
        for (const struct bh_json *q = at->v->c.first; q != p && !seen; q = q->next)
            seen = bh_streq(text_at(q, "protocol"), text_at(p, "protocol")) &&
                   bh_tree_i64(q, "port", 0) == bh_tree_i64(p, "port", 0);
        if (seen)
            fails(
                r, &one, "Duplicate value",
                bh_rule_printf(r,
                               "{\"Name\":\"\",\"Protocol\":%s,\"AppProtocol\":null,\"Port\":%lld,"
                               "\"TargetPort\":0,\"NodePort\":0}",
                               bh_rule_quoted(r, text_at(p, "protocol")),
                               (long long)bh_tree_i64(p, "port", 0)),
                "");
    }
    return true;
}

static bool rule_external_policy(struct bh_rule_run *r, const struct bh_rule_at *at,
                                 const struct bh_rule_call *c)
{
    static const char *const words[] = {"Cluster", "Local"};
    const struct bh_json *spec = bh_rule_holder(at)->v;
    const char *type = text_at(spec, "type"), *s = bh_rule_text(at);
    bool outside = (*type && bh_word_at("LoadBalancer NodePort", type) >= 0) ||
                   (bh_streq(type, "ClusterIP") && bh_tree_len(bh_tree_arr(spec, "externalIPs")));

    (void)c;
    if (!outside)
        return !*s || fails(r, at, "Invalid value", bh_rule_quoted(r, s),
                            "may only be set for externally-accessible services");
    if (!*s)
        return fails(r, at, "Required value", NULL, "");
    if (bh_word_at("Cluster Local", s) < 0)
        bh_rule_unsupported(r, at, bh_rule_quoted(r, s), 2, words);
    return true;
}

static bool needs_health_check(const struct bh_json *spec)
{
    return bh_tree_is(spec, "type", "LoadBalancer") &&
           bh_tree_is(spec, "externalTrafficPolicy", "Local");
}

static bool rule_service_update(struct bh_rule_run *r, const struct bh_rule_at *at,
                                const struct bh_rule_call *c)
{
    static const char *const lists[] = {"clusterIPs", "ipFamilies"};
    struct bh_rule_at health = bh_rule_member(at, "healthCheckNodePort");

    (void)c;
    bool named =
        bh_tree_is(at->v, "type", "ExternalName") || bh_tree_is(at->old, "type", "ExternalName");
    for (size_t k = 0; k < 2 && !named; k++) {
        struct bh_rule_at list = bh_rule_member(at, lists[k]);
        size_t i = 0, n = bh_tree_len(list.v), o = bh_tree_len(list.old);
        if (is_headless(at->v) && is_headless(at->old))
            continue;
        if (k == 1 && is_headless(at->v) != is_headless(at->old))
            continue;
        bh_json_each(e, n == o ? list.old : NULL) {
            struct bh_rule_at one = bh_rule_element(&list, e, k ? 0 : i);
            if (!bh_json_equal(e, bh_json_at(list.v, i++)))
                fails(r, &one, "Invalid value", bh_rule_shown(r, &list), "may not change once set");
        }
        struct bh_rule_at one = bh_rule_element(&list, bh_json_at(list.v, 0), 0);
        if (n != o && n && o && !bh_json_equal(bh_json_at(list.v, 0), bh_json_at(list.old, 0)))
            fails(r, &one, "Invalid value", bh_rule_shown(r, &list), "may not change once set");
        if (o > n && !n)
            fails(r, &one, "Invalid value", bh_rule_shown(r, &list),
                  k ? "primary ipFamily can not be unset" : "primary clusterIP can not be unset");
    }
    if (needs_health_check(at->v) && needs_health_check(at->old) && !same(health.v, health.old))
        fails(r, &health, "Forbidden", NULL, "field is immutable");
    struct bh_rule_at class = bh_rule_member(at, "loadBalancerClass");
    if (bh_tree_is(at->v, "type", "LoadBalancer") && bh_tree_is(at->old, "type", "LoadBalancer") &&
        !same(class.v, class.old))
        bh_rule_invalid(r, &class, "may not change once set");
    return true;
}

/* ---- small kinds ----------------------------------------------------------------------------- */

static bool rule_pod_security_labels(struct bh_rule_run *r, const struct bh_rule_at *at,
                                     const struct bh_rule_call *c)
{
    static const char prefix[] = "pod-security.kubernetes.io/";

    (void)c;
    bh_json_each(l, at->v) {
        const char *s = bh_json_cstr(l), *key = l->key.p;
        struct bh_rule_at one = bh_rule_entry(at, l);
        if (!s || strncmp(key, prefix, strlen(prefix)) != 0)
            continue;
        key += strlen(prefix);
        if (bh_word_at("enforce audit warn", key) >= 0) {
            if (!*s || bh_word_at("privileged baseline restricted", s) < 0)
                bh_rule_invalid_text(r, &one, s, "must be one of privileged, baseline, restricted");
        } else if (bh_word_at("enforce-version audit-version warn-version", key) >= 0) {
            size_t n = strncmp(s, "v1.", 3) == 0 ? strspn(s + 3, "0123456789") : 0;
            if (!bh_streq(s, "latest") && (!n || s[3 + n] || (s[3] == '0' && n > 1)))
                bh_rule_invalid_text(r, &one, s, "must be \"latest\" or \"v1.x\"");
        }
    }
    return true;
}

#define DATA_BYTES_MAX 1048576

/* What m's value takes in the store: base64 is counted as what it stands for. */
static size_t data_bytes(const struct bh_json *m, bool base64)
{
    size_t n = m->type == BH_JSON_STRING ? m->s.n : 0, pad = 0;

    if (!base64)
        return n;
    while (pad < n && m->s.p[n - 1 - pad] == '=')
        pad++;
    return (n - pad) * 3 / 4;
}

static size_t check_data(struct bh_rule_run *r, const struct bh_rule_at *map,
                         const struct bh_json *other, bool base64)
{
    size_t n = 0;

    bh_json_each(m, map->v) {
        struct bh_rule_at one = bh_rule_entry(map, m);
        struct bh_json key = {.type = BH_JSON_STRING, .s = m->key};
        one.v = &key;
        bh_rule_config_key(r, &one, NULL);
        if (bh_json_get(other, m->key.p))
            bh_rule_invalid(r, &one, "duplicate of key present in binaryData");
        n += data_bytes(m, base64);
    }
    return n;
}

static bool rule_config_data(struct bh_rule_run *r, const struct bh_rule_at *at,
                             const struct bh_rule_call *c)
{
    struct bh_rule_at binary = bh_rule_member(bh_rule_holder(at), "binaryData");
    struct bh_rule_at whole = bh_rule_named(bh_rule_root(at), "[]");
    size_t n = check_data(r, at, binary.v, false) + check_data(r, &binary, NULL, true);

    (void)c;
    return n <= DATA_BYTES_MAX ||
           fails(r, &whole, "Too long", NULL, "may not be more than 1048576 bytes");
}

static bool rule_secret_data(struct bh_rule_run *r, const struct bh_rule_at *at,
                             const struct bh_rule_call *c)
{
    (void)c;
    return check_data(r, at, NULL, true) <= DATA_BYTES_MAX ||
           fails(r, at, "Too long", NULL, "may not be more than 1048576 bytes");
}

static bool rule_frozen_map(struct bh_rule_run *r, const struct bh_rule_at *at,
                            const struct bh_rule_call *c)
{
    (void)c;
    return !bh_tree_bool(r->w->old, "immutable", false) || same(at->v, at->old) ||
           fails(r, at, "Forbidden", NULL, "field is immutable when `immutable` is set");
}

static bool rule_same_set(struct bh_rule_run *r, const struct bh_rule_at *at,
                          const struct bh_rule_call *c)
{
    bool equal = true;

    (void)c;
    bh_json_each(e, at->v)
        equal = equal && bh_json_cstr(e) && bh_tree_lists(at->old, bh_json_cstr(e));
    bh_json_each(e, at->old)
        equal = equal && bh_json_cstr(e) && bh_tree_lists(at->v, bh_json_cstr(e));
    if (!equal)
        bh_rule_invalid(r, at, "field is immutable");
    return equal;
}

static bool rule_system_class(struct bh_rule_run *r, const struct bh_rule_at *at,
                              const struct bh_rule_call *c)
{
    static const struct {
        const char *name;
        int64_t value;
    } known[] = {{"system-node-critical", 2000001000}, {"system-cluster-critical", 2000000000}};
    const struct bh_rule_at *root = bh_rule_root(at);
    const char *s = bh_rule_text(at), *why = NULL;
    int64_t value = bh_tree_i64(root->v, "value", 0);
    struct bh_rule_at v = bh_rule_member(root, "value");

    (void)c;
    if (strncmp(s, "system-", 7) != 0)
        return value <= 1000000000 ||
               fails(r, &v, "Forbidden", NULL,
                     "maximum allowed value of a user defined priority is 1000000000");
    why = bh_rule_printf(r, "%s is not a known system priority class", s);
    for (size_t i = 0; i < BH_ARRAY_LEN(known); i++) {
        if (!bh_streq(known[i].name, s))
            continue;
        if (known[i].value != value)
            why = bh_rule_printf(r, "value of %s PriorityClass must be %lld", s,
                                 (long long)known[i].value);
        else if (bh_tree_bool(root->v, "globalDefault", false))
            why = bh_rule_printf(r, "globalDefault of %s PriorityClass must be false", s);
        else
            return true;
    }
    return fails(r, at, "Forbidden", NULL,
                 bh_rule_printf(r,
                                "priority class names with 'system-' prefix are reserved for "
                                "system use only. error: %s",
                                why));
}

/* ---- storage --------------------------------------------------------------------------------- */

static bool rule_lower_key(struct bh_rule_run *r, const struct bh_rule_at *at,
                           const struct bh_rule_call *c)
{
    const char *s = bh_rule_text(at);
    char *lower = bh_arena_strndup(r->w->arena, s, strlen(s));

    (void)c;
    bh_lower(lower);
    return bh_rule_faults(r, at, s, bh_name_key(r, lower));
}

static bool rule_storage_parameters(struct bh_rule_run *r, const struct bh_rule_at *at,
                                    const struct bh_rule_call *c)
{
    size_t total = 0;

    (void)c;
    if (bh_tree_len(at->v) > 512)
        return fails(r, at, "Too long", NULL, "may not be more than 512 bytes");
    bh_json_each(m, at->v) {
        total += m->key.n + (m->type == BH_JSON_STRING ? m->s.n : 0);
        if (!m->key.n)
            bh_rule_invalid_text(r, at, "", "field can not be empty.");
    }
    return total <= 262144 || fails(r, at, "Too long", NULL, "may not be more than 262144 bytes");
}

static bool same_terms(const struct bh_json *a, const struct bh_json *b)
{
    const struct bh_json *x = bh_tree_arr(a, "matchLabelExpressions"),
                         *y = bh_tree_arr(b, "matchLabelExpressions");

    if (bh_tree_len(x) != bh_tree_len(y))
        return false;
    bh_json_each(e, x) {
        bool found = false;
        bh_json_each(o, y) {
            const struct bh_json *v = bh_tree_arr(e, "values"), *w = bh_tree_arr(o, "values");
            bool equal =
                bh_streq(text_at(e, "key"), text_at(o, "key")) && bh_tree_len(v) == bh_tree_len(w);
            bh_json_each(s, v)
                equal = equal && bh_json_cstr(s) && bh_tree_lists(w, bh_json_cstr(s));
            found = found || equal;
        }
        if (!found)
            return false;
    }
    return true;
}

static bool rule_unique_topologies(struct bh_rule_run *r, const struct bh_rule_at *at,
                                   const struct bh_rule_call *c)
{
    size_t i = 0;

    (void)c;
    bh_json_each(t, at->v) {
        struct bh_rule_at one = bh_rule_element(at, t, i++);
        struct bh_rule_at m = bh_rule_member(&one, "matchLabelExpressions");
        if (!bh_tree_len(m.v)) /* upstream compares it with the places of a list it has just made */
            fails(r, &m, "Duplicate value", "\"\"", "");
        for (const struct bh_json *p = at->v->c.first; p != t; p = p->next)
            if (bh_tree_len(m.v) && same_terms(p, t))
                fails(r, &m, "Duplicate value", "\"\"", "");
    }
    return true;
}

static bool rule_kept_drivers(struct bh_rule_run *r, const struct bh_rule_at *at,
                              const struct bh_rule_call *c)
{
    (void)c;
    bh_json_each(o, at->old) {
        bh_json_each(n, at->v) {
            struct bh_json *x = bh_json_clone(r->w->arena, n), *y = bh_json_clone(r->w->arena, o);
            if (!x || !y || !bh_streq(text_at(o, "name"), text_at(n, "name")))
                continue;
            struct bh_rule_at one = bh_rule_element(at, x, 0);
            bh_json_unset(x, "allocatable");
            bh_json_unset(y, "allocatable");
            if (!bh_json_equal(x, y))
                fails(r, at, "Invalid value", bh_rule_shown(r, &one), "field is immutable");
        }
    }
    return true;
}

static bool rule_topology_keys(struct bh_rule_run *r, const struct bh_rule_at *at,
                               const struct bh_rule_call *c)
{
    const struct bh_rule_at *driver = bh_rule_holder(at);

    (void)c;
    bh_json_each(k, at->v) {
        const char *s = bh_json_cstr(k) ? bh_json_cstr(k) : "";
        bool seen = false;
        if (!*s)
            fails(r, driver, "Required value", NULL, "");
        for (const struct bh_json *p = at->v->c.first; p != k && !seen; p = p->next)
            seen = bh_json_equal(p, k);
        if (seen)
            fails(r, driver, "Duplicate value", bh_rule_quoted(r, s), "");
        bh_rule_faults(r, driver, s, bh_name_key(r, s));
    }
    return true;
}

static bool rule_lonely_mode(struct bh_rule_run *r, const struct bh_rule_at *at,
                             const struct bh_rule_call *c)
{
    bool once = bh_tree_lists(at->v, "ReadWriteOncePod");
    bool other = bh_tree_lists(at->v, "ReadWriteOnce") || bh_tree_lists(at->v, "ReadOnlyMany") ||
                 bh_tree_lists(at->v, "ReadWriteMany");

    (void)c;
    return !once || !other ||
           fails(r, at, "Forbidden", NULL, "may not use ReadWriteOncePod with other access modes");
}

static bool rule_data_sources(struct bh_rule_run *r, const struct bh_rule_at *at,
                              const struct bh_rule_call *c)
{
    const struct bh_json *source = bh_tree_obj(at->v, "dataSource"),
                         *ref = bh_tree_obj(at->v, "dataSourceRef");

    (void)c;
    if (!source || !ref)
        return true;
    if (*text_at(ref, "namespace"))
        return fails(r, at, "Invalid value", "{}",
                     "may not be specified when dataSourceRef.namespace is specified");
    return (same(bh_json_get(source, "apiGroup"), bh_json_get(ref, "apiGroup")) &&
            bh_streq(text_at(source, "kind"), text_at(ref, "kind")) &&
            bh_streq(text_at(source, "name"), text_at(ref, "name"))) ||
           fails(r, at, "Invalid value", "{}", "must match dataSourceRef");
}

static bool rule_immutable_source(struct bh_rule_run *r, const struct bh_rule_at *at,
                                  const struct bh_rule_call *c)
{
    static const char others[] = "accessModes capacity claimRef mountOptions nodeAffinity "
                                 "persistentVolumeReclaimPolicy storageClassName "
                                 "volumeAttributesClassName volumeMode";
    struct bh_json *now = bh_json_clone(r->w->arena, at->v),
                   *old = bh_json_clone(r->w->arena, at->old);

    (void)c;
    bh_json_drop(now, others);
    bh_json_drop(old, others);
    if (bh_tree_has(old, "csi") && !bh_tree_has(old, "csi.controllerExpandSecretRef") &&
        bh_tree_has(now, "csi.controllerExpandSecretRef"))
        bh_json_unset(bh_json_get(now, "csi"), "controllerExpandSecretRef");
    return bh_json_equal(now, old) ||
           fails(r, at, "Forbidden", NULL,
                 "spec.persistentvolumesource is immutable after creation");
}

static bool rule_immutable_affinity(struct bh_rule_run *r, const struct bh_rule_at *at,
                                    const struct bh_rule_call *c)
{
    static const char *const renamed[][2] = {
        {"failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone"},
        {"failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region"},
        {"beta.kubernetes.io/os", "kubernetes.io/os"},
        {"beta.kubernetes.io/arch", "kubernetes.io/arch"},
        {"beta.kubernetes.io/instance-type", "node.kubernetes.io/instance-type"}};
    struct bh_json *old = bh_json_clone(r->w->arena, at->old);
    const struct bh_json *t = bh_json_first(bh_tree_arr(at->v, "required.nodeSelectorTerms"));

    (void)c;
    bh_json_each(term, bh_tree_arr(old, "required.nodeSelectorTerms")) {
        const struct bh_json *n = bh_json_first(bh_tree_arr(t, "matchExpressions"));
        bh_json_each(e, bh_tree_arr(term, "matchExpressions")) {
            for (size_t i = 0; n && i < BH_ARRAY_LEN(renamed); i++)
                if (bh_streq(text_at(e, "key"), renamed[i][0]) &&
                    bh_streq(text_at(n, "key"), renamed[i][1]))
                    bh_json_set_str(r->w->arena, e, "key", renamed[i][1]);
            n = n ? n->next : NULL;
        }
        t = t ? t->next : NULL;
    }
    if (!same(at->v, old))
        bh_rule_invalid(r, at, "field is immutable, except for updating from beta label to GA");
    return true;
}

/* What is bound may grow and change its attributes; what is not may still get a volume and a class. */
static bool rule_immutable_claim(struct bh_rule_run *r, const struct bh_rule_at *at,
                                 const struct bh_rule_call *c)
{
    struct bh_arena *a = r->w->arena;
    struct bh_json *now = bh_json_clone(a, at->v), *old = bh_json_clone(a, at->old);

    (void)c;
    if (!now || !old)
        return true;
    if (!*text_at(old, "volumeName"))
        copy_member(a, old, now, "volumeName");
    if (bh_json_get(now, "storageClassName") && !bh_json_get(old, "storageClassName"))
        bh_json_unset(now, "storageClassName");
    if (bh_tree_is(r->w->obj, "status.phase", "Bound")) {
        copy_member(a, now, old, "volumeAttributesClassName");
        if (bh_tree_obj(now, "resources.requests"))
            copy_member(a, bh_tree_obj(now, "resources.requests"),
                        bh_tree_obj(old, "resources.requests"), "storage");
    }
    return bh_json_equal(now, old) ||
           fails(r, at, "Forbidden", NULL,
                 "spec is immutable after creation except resources.requests and "
                 "volumeAttributesClassName for bound claims");
}

static bool rule_shrinking(struct bh_rule_run *r, const struct bh_rule_at *at,
                           const struct bh_rule_call *c)
{
    bh_nano now = 0, old = 0, have = 0;
    struct bh_rule_at m = bh_rule_member(at, "storage");

    (void)c;
    m.name = "storage";
    bh_adm_parse_quantity(bh_json_get(at->v, "storage"), &now);
    bh_adm_parse_quantity(bh_json_get(at->old, "storage"), &old);
    bh_adm_parse_quantity(bh_json_get(bh_tree_obj(r->w->old, "status.capacity"), "storage"), &have);
    return now >= old || now > have ||
           fails(r, &m, "Forbidden", NULL, "field can not be less than status.capacity");
}

const struct bh_rule bh_rules_kinds[] = {
    {"object-name", rule_object_name},
    {"owner-references", rule_owner_references},
    {"finalizer", rule_finalizer},
    {"finalizers", rule_finalizers},
    {"no-new-finalizers", rule_no_new_finalizers},
    {"condition-reason", rule_condition_reason},
    {"selector-syntax", rule_selector_syntax},
    {"selected-labels", rule_selected_labels},
    {"selected-template", rule_selected_template},
    {"selected-by-map", rule_selected_by_map},
    {"frozen", rule_frozen},
    {"generated-selector", rule_generated_selector},
    {"indexed-name", rule_indexed_name},
    {"immutable-template", rule_immutable_template},
    {"domain-path", rule_domain_path},
    {"invalid-omitted", rule_invalid_omitted},
    {"template-container", rule_template_container},
    {"exit-codes", rule_exit_codes},
    {"success-indexes", rule_success_indexes},
    {"cron-schedule", rule_cron_schedule},
    {"time-zone", rule_time_zone},
    {"max-name-52", rule_max_name_52},
    {"node-annotations", rule_node_annotations},
    {"unique-taints", rule_unique_taints},
    {"sorted-features", rule_sorted_features},
    {"cidr-families", rule_cidr_families},
    {"pod-cidrs-kept", rule_pod_cidrs_kept},
    {"headless-fits", rule_headless_fits},
    {"external-name", rule_external_name},
    {"first-cluster-ip", rule_first_cluster_ip},
    {"cluster-ips", rule_cluster_ips},
    {"unique-service-ports", rule_unique_service_ports},
    {"external-policy", rule_external_policy},
    {"service-update", rule_service_update},
    {"pod-security-labels", rule_pod_security_labels},
    {"config-data", rule_config_data},
    {"secret-data", rule_secret_data},
    {"frozen-map", rule_frozen_map},
    {"same-set", rule_same_set},
    {"system-class", rule_system_class},
    {"lower-key", rule_lower_key},
    {"storage-parameters", rule_storage_parameters},
    {"unique-topologies", rule_unique_topologies},
    {"kept-drivers", rule_kept_drivers},
    {"topology-keys", rule_topology_keys},
    {"lonely-mode", rule_lonely_mode},
    {"data-sources", rule_data_sources},
    {"immutable-source", rule_immutable_source},
    {"immutable-affinity", rule_immutable_affinity},
    {"immutable-claim", rule_immutable_claim},
    {"shrinking", rule_shrinking},
    {0},
};
