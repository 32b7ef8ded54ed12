/* SPDX-License-Identifier: Apache-2.0
 *
 * plugins/maintenance/maintenance.c - no pods for nodes that somebody is about to work on
 *
 * A MaintenanceWindow (crd.yaml) says which nodes, from when until when. From leadSeconds before it begins
 * until it ends no pod gets a node of it.
 *
 * Windows are read when an object has changed, or when the next of them begins or ends; what they say
 * until then is the same, so that the host keeps the answers. epoch() notices, and all answers come from
 * what it found. A window that ends is no change in the cluster: epoch() has pods tried again then.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "berth/plugin.h"

#define WINDOWS      0u /* index in kinds */
#define LEAD_DEFAULT 900
#define LEAD_MAX     604800
#define NS_PER_S     INT64_C(1000000000)
#define TERMS_MAX    32u
#define VALUES_MAX   256u
#define REASON_MAX   256u
#define WINDOWS_MAX  10000u

static const struct berth_host *host;

enum op { OP_IN, OP_NOT_IN, OP_EXISTS, OP_DOES_NOT_EXIST };
struct term { /* of a selector */
    enum op op;
    berth_sym key;
    uint64_t n_values;
    berth_sym *values;
};
struct window { /* one that keeps pods away now */
    uint64_t n_terms;
    struct term terms[TERMS_MAX];
    char reason[REASON_MAX];
};
struct instance {
    struct berth_home *home;
    int64_t lead_ns;
    struct window **windows;
    uint64_t n;
    /* What they were made of: the objects' version, and the time within which it holds. */
    int made;
    uint64_t version, epoch;
    int64_t since_ns, until_ns;
    int64_t ends_ns; /* the first of those that keep pods away now */
};

/* ---- arguments ------------------------------------------------------------------------------- */

static void check_args(const struct berth_value *args, struct berth_errors *errors)
{
    const struct berth_value *v = host->values->get(args, BERTH_STR("leadSeconds"));
    int64_t n;

    berth_check_fields(host->values, args, "", "leadSeconds", errors);
    if (v && (!host->values->integer(v, &n) || n < 0 || n > LEAD_MAX))
        host->values->error(errors, BERTH_STR("leadSeconds"), BERTH_STR("0 to 604800 is needed"));
}

/* ---- what a window says ---------------------------------------------------------------------- */

static void free_window(struct window *w)
{
    for (uint64_t i = 0; w && i < w->n_terms; i++)
        free(w->terms[i].values);
    free(w);
}

/* Room for one more. NULL: there are too many. */
static struct term *add_term(struct window *w, enum op op, struct berth_home *home,
                             struct berth_str key, uint64_t n_values)
{
    struct term *t =
        w->n_terms < TERMS_MAX && n_values <= VALUES_MAX ? &w->terms[w->n_terms] : NULL;
    berth_sym *values = t ? calloc(n_values + 1, sizeof *values) : NULL;

    if (!values)
        return NULL;
    w->n_terms++;
    *t = (struct term){op, host->base->intern(home, key), 0, values};
    return t;
}

/* NULL, or what is wrong with the selector's labels. */
static const char *read_labels(struct window *w, struct berth_home *home,
                               const struct berth_value *labels)
{
    const struct berth_host_values *v = host->values;

    for (const struct berth_value *l = v->first(labels); l; l = v->next(l)) {
        struct term *t = add_term(w, OP_IN, home, v->key(l), 1);
        if (!t)
            return "spec.nodeSelector has more than 32 terms";
        t->values[t->n_values++] = host->base->intern(home, v->text(l));
    }
    return NULL;
}

static const char *read_expressions(struct window *w, struct berth_home *home,
                                    const struct berth_value *list)
{
    static const char *const names[] = {"In", "NotIn", "Exists", "DoesNotExist"};
    const struct berth_host_values *v = host->values;

    for (const struct berth_value *e = v->first(list); e; e = v->next(e)) {
        struct berth_str name = v->text(v->get(e, BERTH_STR("operator")));
        const struct berth_value *values = v->get(e, BERTH_STR("values"));
        unsigned op = 0;
        while (op < 4 && !berth_str_is(name, names[op]))
            op++;
        if (op == 4)
            return "spec.nodeSelector.matchExpressions: the operator is none of In, NotIn, Exists "
                   "and DoesNotExist";
        if (op <= OP_NOT_IN ? !v->count(values) : v->count(values) != 0)
            return "spec.nodeSelector.matchExpressions: In and NotIn need values, Exists and "
                   "DoesNotExist must not have any";
        struct term *t =
            add_term(w, (enum op)op, home, v->text(v->get(e, BERTH_STR("key"))), v->count(values));
        if (!t)
            return "spec.nodeSelector has more than 32 terms, or 256 values";
        for (const struct berth_value *x = v->first(values); x; x = v->next(x))
            t->values[t->n_values++] = host->base->intern(home, v->text(x));
    }
    return NULL;
}

/* One line, however the note is written; cut before a character that would be the last in part. */
static void write_reason(struct window *w, struct berth_str name, struct berth_str note)
{
    int n = snprintf(w->reason, REASON_MAX, "node(s) were in the maintenance window \"%.*s\"%s%.*s",
                     (int)(name.n < 100 ? name.n : 100), name.p, note.n ? ": " : "",
                     (int)(note.n < REASON_MAX ? note.n : REASON_MAX), note.n ? note.p : "");

    for (char *p = w->reason; *p; p++)
        if ((unsigned char)*p < 0x20 || *p == 0x7f)
            *p = ' ';
    if (n >= (int)REASON_MAX) {
        char *end = w->reason + REASON_MAX - 1;
        while (end > w->reason && ((unsigned char)end[-1] & 0xc0) == 0x80)
            end--;
        if (end > w->reason && (unsigned char)end[-1] >= 0xc0)
            end--;
        *end = '\0';
    }
}

/* NULL and *ret (NULL: it keeps nothing away now), or what is wrong with the object. */
static const char *read_window(struct instance *in, struct berth_call *c,
                               const struct berth_object *o, int64_t now, struct window **ret)
{
    const struct berth_host_values *v = host->values;
    const struct berth_value *spec = v->get(host->objects->value(c, o), BERTH_STR("spec"));
    int64_t from, until;

    *ret = NULL;
    if (!v->time(v->get(spec, BERTH_STR("from")), &from) ||
        !v->time(v->get(spec, BERTH_STR("until")), &until) || until <= from)
        return "spec.from and spec.until must be times, the second behind the first";
    int64_t begins = from - in->lead_ns < from ? from - in->lead_ns : INT64_MIN;
    /* Until when is what is found now the same? */
    int64_t change = now < begins ? begins : now < until ? until : INT64_MAX;
    if (change < in->until_ns)
        in->until_ns = change;
    if (now < begins || now >= until)
        return NULL;
    if (until < in->ends_ns)
        in->ends_ns = until;
    struct window *w = calloc(1, sizeof *w);
    if (!w)
        return "out of memory";
    write_reason(w, host->objects->name(c, o), v->text(v->get(spec, BERTH_STR("note"))));
    const char *wrong =
        read_labels(w, in->home, v->path(spec, BERTH_STR("nodeSelector.matchLabels")));
    if (!wrong)
        wrong = read_expressions(w, in->home,
                                 v->path(spec, BERTH_STR("nodeSelector.matchExpressions")));
    if (wrong)
        free_window(w);
    else
        *ret = w;
    return wrong;
}

static void forget(struct instance *in)
{
    for (uint64_t i = 0; i < in->n; i++)
        free_window(in->windows[i]);
    in->n = 0;
}

/* A window that cannot be read keeps nobody away; the log says so, once for each version of the objects. */
static void complain(const struct instance *in, struct berth_str name, const char *wrong)
{
    char line[512];
    int n = snprintf(line, sizeof line, "MaintenanceWindow \"%.*s\" counts for nothing: %s",
                     (int)(name.n < 253 ? name.n : 253), name.p, wrong);

    host->base->log(in->home, BERTH_LOG_WARNING,
                    (struct berth_str){line, n < (int)sizeof line ? (uint64_t)n : sizeof line - 1});
}

static void read_all(struct instance *in, struct berth_call *c, uint64_t version, int64_t now)
{
    int anew = !in->made || version != in->version;

    forget(in);
    in->made = 1;
    in->version = version;
    in->since_ns = now;
    in->until_ns = in->ends_ns = INT64_MAX;
    in->epoch++;
    for (const struct berth_object *o = host->objects->first(c, WINDOWS); o;
         o = host->objects->next(c, o)) {
        struct window *w, **more;
        const char *wrong = read_window(in, c, o, now, &w);
        if (w && (in->n == WINDOWS_MAX ||
                  !(more = realloc(in->windows, (in->n + 1) * sizeof(struct window *))))) {
            free_window(w);
            wrong = "there are more than 10000, or there is no memory";
        } else if (w) {
            in->windows = more;
            in->windows[in->n++] = w;
        }
        if (wrong && anew)
            complain(in, host->objects->name(c, o), wrong);
    }
    if (BERTH_HAS(host->base, wake_at))
        host->base->wake_at(in->home, in->ends_ns);
}

static uint64_t epoch(void *self, struct berth_call *c)
{
    struct instance *in = self;
    uint64_t version = host->objects->version(c, WINDOWS);
    int64_t now = host->base->now(c);

    if (!in->made || version != in->version || now < in->since_ns || now >= in->until_ns)
        read_all(in, c, version, now);
    return in->epoch;
}

/* ---- filtering ------------------------------------------------------------------------------- */

static int fulfills(struct berth_call *c, const struct berth_node *node, const struct term *t)
{
    berth_sym have = host->nodes->label(c, node, t->key);
    int among = 0;

    for (uint64_t i = 0; i < t->n_values && !among; i++)
        among = have == t->values[i];
    switch (t->op) {
    case OP_IN:
        return among;
    case OP_NOT_IN:
        return !among;
    case OP_EXISTS:
        return have != BERTH_SYM_ABSENT;
    default:
        return have == BERTH_SYM_ABSENT;
    }
}

/* The first window that the node is in; NULL. */
static const struct window *window_of(const struct instance *in, struct berth_call *c,
                                      const struct berth_node *node)
{
    for (uint64_t i = 0; i < in->n; i++) {
        const struct window *w = in->windows[i];
        uint64_t k = 0;
        while (k < w->n_terms && fulfills(c, node, &w->terms[k]))
            k++;
        if (k == w->n_terms)
            return w;
    }
    return NULL;
}

static int32_t pre_filter(void *self, struct berth_call *c, const berth_sym **names,
                          uint64_t *n_names, struct berth_why *why)
{
    const struct instance *in = self;

    (void)c, (void)names, (void)n_names, (void)why;
    return in->n ? BERTH_SUCCESS : BERTH_SKIP;
}

static int32_t filter(void *self, struct berth_call *c, const struct berth_node *node,
                      struct berth_why *why)
{
    const struct window *w = window_of(self, c, node);

    if (!w)
        return BERTH_SUCCESS;
    why->reason = (struct berth_str){w->reason, strlen(w->reason)};
    return BERTH_UNRESOLVABLE;
}

static int32_t filter_rows(void *self, struct berth_call *c, const uint32_t *rows, uint64_t n,
                           uint64_t *keep, struct berth_why *why)
{
    (void)why;
    for (uint64_t i = 0; i < n; i++)
        if (!window_of(self, c, host->columns->node(c, rows[i])))
            keep[i / 64] |= UINT64_C(1) << i % 64;
    return BERTH_SUCCESS;
}

/* ---- an instance ----------------------------------------------------------------------------- */

static int32_t create(struct berth_home *home, const struct berth_value *args, void **ret,
                      struct berth_why *why)
{
    struct instance *in = calloc(1, sizeof *in);
    int64_t lead = LEAD_DEFAULT;

    if (!in) {
        why->reason = BERTH_STR("out of memory");
        return BERTH_ERROR;
    }
    host->values->integer(host->values->get(args, BERTH_STR("leadSeconds")), &lead);
    in->home = home;
    in->lead_ns = lead * NS_PER_S;
    *ret = in;
    return BERTH_SUCCESS;
}

static void destroy(void *self)
{
    struct instance *in = self;

    forget(in);
    free(in->windows);
    free(in);
}

static const struct berth_kind kinds[] = {
    [WINDOWS] = {.group = {"berth.dev", 9},
                 .version = {"v1alpha1", 8},
                 .resource = {"maintenancewindows", 18}},
};
static const struct berth_event events[] = {
    {BERTH_ON_KIND(WINDOWS), BERTH_UPDATE | BERTH_DELETE},
    {BERTH_ON_NODE, BERTH_ADD | BERTH_NODE_LABEL},
};

static struct berth_plugin plugin = {
    .size = sizeof plugin,
    .name = {"Maintenance", 11},
    .reads = BERTH_READS_NODE | BERTH_READS_OBJECTS,
    .events = events,
    .n_events = sizeof events / sizeof events[0],
    .kinds = kinds,
    .n_kinds = sizeof kinds / sizeof kinds[0],
    .check_args = check_args,
    .create = create,
    .destroy = destroy,
    .epoch = epoch,
    .pre_filter = pre_filter,
    .filter = filter,
    .filter_rows = filter_rows,
};

BERTH_NOTE("Maintenance", "1.0.0", "Apache-2.0");

int32_t berth_plugin_entry_v1(const struct berth_host *h, struct berth_entry *ret)
{
    static const struct berth_plugin *const all[] = {&plugin};

    if (!BERTH_HAS(h, objects))
        return 1;
    host = h;
    ret->plugins = all;
    ret->n = 1;
    return 0;
}
