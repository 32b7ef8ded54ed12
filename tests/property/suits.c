/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/property/suits.c - a second opinion on nodes, from the raw objects
 *
 * A few dozen lines per rule, written from the API's documentation and sharing nothing with the
 * engine: requests against allocatable, host ports, taints, spec.unschedulable, node selectors. It
 * says SUITS only when nothing else of the pod or of the cluster could object.
 */
#include "tests/property/property.h"

typedef __int128 nano;
#define NANO    ((nano)1000000000)
#define ROUNDED ((nano)INT64_MAX * NANO)

/* ---- quantities ------------------------------------------------------------------------------ */

static nano power(nano base, int n)
{
    nano v = 1;

    while (n-- > 0)
        v *= base;
    return v;
}

/* false: beyond what this parser wants to know. */
static bool quantity(const char *s, nano *ret)
{
    static const char *const binary[] = {"", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"};
    static const char decimal[] = "kMGTPE";
    nano v = 0, scale = NANO;
    bool point = false, minus = *s == '-';

    for (s += minus || *s == '+'; (*s >= '0' && *s <= '9') || *s == '.'; s++) {
        if (*s == '.') {
            point = true;
        } else if (v < (nano)1 << 100) {
            v = v * 10 + (*s - '0');
            scale = point ? scale / 10 : scale;
        }
    }
    if (scale == 0)
        return false;
    for (int i = 1; i < 7; i++)
        if (bh_streq(s, binary[i])) {
            if (v >= (nano)1 << 60)
                return false;
            *ret = (minus ? -1 : 1) * v * scale * power(1024, i);
            return true;
        }
    if ((*s == 'e' || *s == 'E') && s[1]) {
        int e = (int)strtol(s + 1, NULL, 10);
        if (e > 18 || e < -9 || v >= (nano)1 << 60)
            return false;
        *ret = e >= 0 ? v * scale * power(10, e) : (v * scale + power(10, -e) - 1) / power(10, -e);
        return true;
    }
    if (bh_streq(s, "m"))
        *ret = (v * scale + 999) / 1000;
    else if (bh_streq(s, "u"))
        *ret = (v * scale + 999999) / 1000000;
    else if (*s && strchr(decimal, *s) && v < (nano)1 << 60)
        *ret = v * scale * power(1000, (int)(strchr(decimal, *s) - decimal) + 1);
    else if (!*s)
        *ret = v * scale;
    else
        return false;
    *ret *= minus ? -1 : 1;
    return true;
}

static nano up(nano v, nano unit)
{
    return v > 0 ? (v + unit - 1) / unit * unit : v / unit * unit;
}

/* cpu counts in milli, everything else in wholes */
static nano rounded(const char *resource, nano v)
{
    return up(v, bh_streq(resource, "cpu") ? NANO / 1000 : NANO);
}

static bool counted(const char *resource)
{
    return bh_streq(resource, "cpu") || bh_streq(resource, "memory") ||
           bh_streq(resource, "ephemeral-storage") || strchr(resource, '/') ||
           strncmp(resource, "hugepages-", 10) == 0 ||
           strncmp(resource, "attachable-volumes-", 19) == 0;
}

static bool amount(const struct bh_json *list, const char *resource, nano *ret, bool *known)
{
    const char *s = bh_json_get_str(list, resource);

    if (!s)
        return false;
    if (!quantity(s, ret) || *ret > ROUNDED || *ret < 0) {
        *known = false;
        *ret = 0;
    }
    return true;
}

/* ---- requests -------------------------------------------------------------------------------- */

static nano request_of(const struct bh_json *container, const char *resource, bool *known)
{
    nano v = 0;

    (void)amount(bh_json_path(container, "resources.requests"), resource, &v, known);
    return v;
}

/* What the spec asks: containers and sidecars together, or the hungriest moment of
 * initialisation. */
static nano asked(const struct bh_json *spec, const char *resource, bool *known)
{
    nano together = 0, sidecars = 0, peak = 0, v;
    bool pod_level = bh_streq(resource, "cpu") || bh_streq(resource, "memory") ||
                     strncmp(resource, "hugepages-", 10) == 0;

    bh_json_each(c, bh_json_get(spec, "containers")) {
        together += request_of(c, resource, known);
    }
    bh_json_each(c, bh_json_get(spec, "initContainers")) {
        const char *policy = bh_json_get_str(c, "restartPolicy");
        v = request_of(c, resource, known);
        if (policy && bh_streq(policy, "Always"))
            sidecars += v;
        else
            peak = BH_MAX(peak, sidecars + v);
    }
    together = BH_MAX(together + sidecars, BH_MAX(peak, sidecars));
    if (pod_level && amount(bh_json_path(spec, "resources.requests"), resource, &v, known))
        together = v;
    if (amount(bh_json_get(spec, "overhead"), resource, &v, known))
        together += v;
    return rounded(resource, together);
}

static bool is_on(const struct thing *pod, const struct thing *node)
{
    return pod->kind == BH_KIND_POD && pod->place != POD_PENDING &&
           bh_streq(pod->node, thing_name(node));
}

struct view { /* the question, and what could spoil the answer */
    const struct world *w;
    const struct thing *pod, *node;
    struct thing **pods; /* all */
    const struct bh_json *spec;
    bool known;
    char *reason; /* of 128 bytes */
};

static bool no(struct view *v, const char *why, const char *what)
{
    snprintf(v->reason, 128, "%s %s", why, what ? what : "");
    return false;
}

static bool fits_one(struct view *v, const char *resource)
{
    nano want = asked(v->spec, resource, &v->known), have = 0, used = 0;

    if (want <= 0)
        return true;
    (void)amount(bh_json_path(v->node->object, "status.allocatable"), resource, &have, &v->known);
    have = rounded(resource, have);
    for (struct thing **p = v->pods; *p; p++)
        if (is_on(*p, v->node))
            used += asked(bh_json_get((*p)->object, "spec"), resource, &v->known);
    return want <= have - used || no(v, "not enough", resource);
}

static bool fits_list(struct view *v, const struct bh_json *list)
{
    bh_json_each(q, list) {
        if (counted(q->key.p) && !fits_one(v, q->key.p))
            return false;
    }
    return true;
}

static bool fits(struct view *v)
{
    const char *const lists[] = {"containers", "initContainers"};
    nano n = 0, have = 0;

    (void)amount(bh_json_path(v->node->object, "status.allocatable"), "pods", &have, &v->known);
    for (struct thing **p = v->pods; *p; p++) {
        if (!is_on(*p, v->node))
            continue;
        n += NANO;
        v->known &= !bh_json_path((*p)->object, "status.containerStatuses");
    }
    if (n + NANO > rounded("pods", have))
        return no(v, "too many", "pods");
    for (unsigned i = 0; i < 2; i++)
        bh_json_each(c, bh_json_get(v->spec, lists[i])) {
            if (!fits_list(v, bh_json_path(c, "resources.requests")))
                return false;
        }
    return fits_list(v, bh_json_path(v->spec, "resources.requests")) &&
           fits_list(v, bh_json_get(v->spec, "overhead"));
}

/* ---- taints, ports, selectors ---------------------------------------------------------------- */

static const char *str(const struct bh_json *obj, const char *key)
{
    const char *s = bh_json_get_str(obj, key);
    return s ? s : "";
}

static bool tolerates(const struct bh_json *spec, const char *key, const char *value,
                      const char *effect)
{
    bh_json_each(t, bh_json_get(spec, "tolerations")) {
        const char *op = str(t, "operator");
        if (*str(t, "effect") && !bh_streq(str(t, "effect"), effect))
            continue;
        if (*str(t, "key") && !bh_streq(str(t, "key"), key))
            continue;
        if (bh_streq(op, "Exists") ||
            ((!*op || bh_streq(op, "Equal")) && bh_streq(str(t, "value"), value)))
            return true;
    }
    return false;
}

static bool welcome(struct view *v)
{
    const struct bh_json *spec = bh_json_get(v->node->object, "spec");

    if (bh_json_get_bool(spec, "unschedulable", false) &&
        !tolerates(v->spec, "node.kubernetes.io/unschedulable", "", "NoSchedule"))
        return no(v, "unschedulable", NULL);
    bh_json_each(t, bh_json_get(spec, "taints")) {
        const char *effect = str(t, "effect");
        if ((bh_streq(effect, "NoSchedule") || bh_streq(effect, "NoExecute")) &&
            !tolerates(v->spec, str(t, "key"), str(t, "value"), effect))
            return no(v, "taint", str(t, "key"));
    }
    return true;
}

static bool holds_port(const struct bh_json *container, bool init)
{
    return !init || bh_streq(str(container, "restartPolicy"), "Always");
}

static bool same_port(const struct bh_json *a, const struct bh_json *b)
{
    const char *x = *str(a, "hostIP") ? str(a, "hostIP") : "0.0.0.0";
    const char *y = *str(b, "hostIP") ? str(b, "hostIP") : "0.0.0.0";
    const char *p = *str(a, "protocol") ? str(a, "protocol") : "TCP";
    const char *q = *str(b, "protocol") ? str(b, "protocol") : "TCP";
    int64_t n = bh_json_get_i64(a, "hostPort", 0);

    return n > 0 && n == bh_json_get_i64(b, "hostPort", 0) && bh_streq(p, q) &&
           (bh_streq(x, "0.0.0.0") || bh_streq(y, "0.0.0.0") || bh_streq(x, y));
}

/* Some port of mine against all ports of the other. */
static bool ports_meet(const struct bh_json *mine, const struct bh_json *other)
{
    const char *const lists[] = {"containers", "initContainers"};

    for (unsigned i = 0; i < 2; i++)
        bh_json_each(c, bh_json_get(other, lists[i])) {
            bh_json_each(p, holds_port(c, i == 1) ? bh_json_get(c, "ports") : NULL) {
                if (same_port(mine, p))
                    return true;
            }
        }
    return false;
}

static bool specs_meet(const struct bh_json *mine, const struct bh_json *other)
{
    const char *const lists[] = {"containers", "initContainers"};

    for (unsigned i = 0; i < 2; i++)
        bh_json_each(c, bh_json_get(mine, lists[i])) {
            bh_json_each(p, holds_port(c, i == 1) ? bh_json_get(c, "ports") : NULL) {
                if (ports_meet(p, other))
                    return true;
            }
        }
    return false;
}

static bool ports_free(struct view *v)
{
    for (struct thing **p = v->pods; *p; p++)
        if (is_on(*p, v->node) && specs_meet(v->spec, bh_json_get((*p)->object, "spec")))
            return no(v, "port taken by", (*p)->id);
    return true;
}

static bool in_list(const struct bh_json *list, const char *text)
{
    bh_json_each(s, list) {
        if (bh_json_cstr(s) && bh_streq(bh_json_cstr(s), text))
            return true;
    }
    return false;
}

static bool requirement(const struct bh_json *r, const char *value)
{
    const char *op = str(r, "operator");
    const struct bh_json *values = bh_json_get(r, "values");

    if (bh_streq(op, "Exists"))
        return value != NULL;
    if (bh_streq(op, "DoesNotExist"))
        return value == NULL;
    if (bh_streq(op, "In"))
        return value && in_list(values, value);
    if (bh_streq(op, "NotIn"))
        return !value || !in_list(values, value);
    if (!value || !*value || strspn(value, "0123456789") != strlen(value))
        return false;
    long have = strtol(value, NULL, 10),
         want = strtol(bh_json_cstr(bh_json_at(values, 0)), NULL, 10);
    return bh_streq(op, "Gt") ? have > want : have < want;
}

static bool node_term(const struct bh_json *term, const struct thing *node)
{
    const struct bh_json *labels = bh_json_path(node->object, "metadata.labels");
    const struct bh_json *exprs = bh_json_get(term, "matchExpressions");
    const struct bh_json *fields = bh_json_get(term, "matchFields");

    if (!exprs && !fields)
        return false;
    bh_json_each(r, exprs) {
        if (!requirement(r, bh_json_get_str(labels, str(r, "key"))))
            return false;
    }
    bh_json_each(r, fields) {
        if (!requirement(r, thing_name(node)))
            return false;
    }
    return true;
}

static bool selected(struct view *v)
{
    const struct bh_json *labels = bh_json_path(v->node->object, "metadata.labels");
    const struct bh_json *required = bh_json_path(
        v->spec, "affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution");

    bh_json_each(s, bh_json_get(v->spec, "nodeSelector")) {
        if (!bh_streq(str(labels, s->key.p), bh_json_cstr(s)))
            return no(v, "node selector", s->key.p);
    }
    if (!required)
        return true;
    bh_json_each(t, bh_json_get(required, "nodeSelectorTerms")) {
        if (node_term(t, v->node))
            return true;
    }
    return no(v, "node affinity", NULL);
}

/* ---- the answer ------------------------------------------------------------------------------ */

/* A profile of its own may leave plugins out or give them args. */
static bool usual_profile(const struct world *w, const struct bh_json *spec)
{
    bh_json_each(p, bh_json_path(w->scenario, "config.profiles")) {
        if (bh_streq(str(p, "schedulerName"), str(spec, "schedulerName")))
            return !bh_json_get(p, "plugins") && !bh_json_get(p, "pluginConfig");
    }
    return true;
}

/* Nothing that this file does not look at has a say. */
static bool nothing_else(const struct view *v, uint32_t features)
{
    const char *const others[] = {"topologySpreadConstraints", "volumes", "resourceClaims",
                                  "schedulingGates", "hostNetwork"};

    for (unsigned i = 0; i < BH_ARRAY_LEN(others); i++)
        if (bh_json_get(v->spec, others[i]))
            return false;
    for (struct thing **p = v->pods; *p; p++)
        if ((*p)->nominated)
            return false;
    return !(features & (F_POD_AFFINITY | F_DEVICES | F_FEATURES));
}

enum suits suits(const struct world *w, const struct thing *pod, const struct thing *node,
                 char reason[static 128])
{
    uint32_t features = (uint32_t)bh_json_get_i64(w->scenario, "features", F_ALL);
    struct bh_arena a;
    enum suits s = SUITS_PERHAPS;

    bh_arena_init(&a, 0);
    struct view v = {.w = w,
                     .pod = pod,
                     .node = node,
                     .pods = all_things(w, &a, BH_KIND_POD),
                     .spec = bh_json_get(pod->object, "spec"),
                     .known = true,
                     .reason = reason};
    reason[0] = 0;
    if (usual_profile(w, v.spec)) {
        bool ports = w->rebuilt || !(features & F_PORTS), resources = !(features & F_DEVICES);
        bool fine = welcome(&v) && selected(&v) && (!ports || ports_free(&v));
        if (fine && resources)
            fine = fits(&v) || !v.known;
        if (!fine)
            s = SUITS_NOT;
        else if (v.known && ports && resources && nothing_else(&v, features))
            s = SUITS;
    }
    bh_arena_fini(&a);
    return s;
}

void check_suits(struct world *w, const struct thing *pod, const struct bh_decision *d)
{
    struct bh_symtab *tab = bh_engine_symtab(w->w[MAIN].engine);
    char reason[128];

    for (uint32_t i = 0; i < d->n_scores && d->kind != BH_DECISION_ERROR; i++) {
        const char *name = bh_sym_text(tab, d->scores[i].node);
        const struct thing *node = find_thing(w, BH_KIND_NODE, "", name);
        if (!node)
            fail(w, "no such node", "%s: %s is feasible and does not exist", pod->id, name);
        else if (suits(w, pod, node, reason) == SUITS_NOT)
            fail(w, "does not suit", "%s: %s is feasible, but: %s", pod->id, name, reason);
        w->n->checked++;
    }
    for (uint32_t i = 0; i < d->n_rejected && d->kind != BH_DECISION_ERROR; i++) {
        const char *name = bh_sym_text(tab, d->rejected[i].node);
        const struct thing *node = find_thing(w, BH_KIND_NODE, "", name);
        if (node && suits(w, pod, node, reason) == SUITS)
            fail(w, "suits", "%s: %s was rejected by %s, but nothing speaks against it", pod->id,
                 name, d->rejected[i].status->plugin ? d->rejected[i].status->plugin : "nobody");
        w->n->complete++;
    }
}
