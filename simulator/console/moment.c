/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/console/moment.c - the cluster at one moment, and trials made of it
 */
#include "simulator/console/moment.h"
#include "simulator/console/parts.h"

#include <errno.h>

#include "common/data/yaml.h"
#include "scheduler/config/config.h"
#include "common/control/ask.h"

#define TREE_BYTES ((size_t)256 << 20)

/* ---- in the loop ----------------------------------------------------------------------------- */

/* Which kinds plugins read is known when their profiles are, in the worker. A custom kind may have the
 * name of one of Kubernetes'. */
static bool may_matter(const struct bh_sim_type *t)
{
    static const char none_of[] = "Deployment DaemonSet Job " /* they have their pods already */
                                  "Event Scenario Lease";

    return bh_sim_type_stores(t) && (t->custom || bh_word_at(none_of, t->kind) < 0);
}

static void take_customs(struct bh_sim *s, const struct bh_sim_type *t, struct bh_console_moment *m)
{
    BH_GROW(m->customs, m->n_customs, m->cap_customs);
    struct bh_console_customs *c = &m->customs[m->n_customs++];
    *c = (struct bh_console_customs){.group = bh_strdup(t->group),
                                     .plural = bh_strdup(t->plural),
                                     .kind = bh_strdup(t->kind),
                                     .namespaced = t->flags & BH_SIM_NAMESPACED};
    bh_console_list_more(s, t, &c->objs);
}

struct bh_console_moment *bh_console_moment_take(struct bh_sim_req *r, bool with_objects)
{
    struct bh_console_moment *m = bh_calloc(1, sizeof(*m));

    m->revision = r->sim->rv;
    m->gates = *bh_sim_gates(r->sim);
    m->runtime_dir = r->sim->opt.runtime_dir;
    m->body = bh_console_body(r, &m->body_n);
    for (size_t i = 0; with_objects && i < bh_sim_type_count(r->sim); i++) {
        const struct bh_sim_type *t = bh_sim_type_at(r->sim, i);
        if (!t || !may_matter(t))
            continue;
        if (t->custom)
            take_customs(r->sim, t, m);
        else
            bh_console_list_more(r->sim, t, &m->objs);
    }
    return m;
}

void bh_console_moment_drop(void *arg)
{
    struct bh_console_moment *m = arg;

    for (size_t i = 0; i < m->n_customs; i++) {
        struct bh_console_customs *c = &m->customs[i];
        bh_sim_objs_fini(&c->objs);
        free(c->group);
        free(c->plural);
        free(c->kind);
    }
    free(m->customs);
    bh_sim_objs_fini(&m->objs);
    free(m->body);
    free(m);
}

/* ---- in the worker --------------------------------------------------------------------------- */

const struct bh_console_customs *bh_console_moment_custom(const struct bh_console_moment *m,
                                                          const char *kind)
{
    for (size_t i = 0; i < m->n_customs; i++)
        if (bh_streq(m->customs[i].kind, kind))
            return &m->customs[i];
    return NULL;
}

const struct bh_sim_obj *bh_console_moment_find(const struct bh_console_moment *m, const char *kind,
                                                const char *ns, const char *name)
{
    const struct bh_console_customs *c = bh_console_moment_custom(m, kind);

    for (size_t i = 0; i < m->objs.n; i++) {
        const struct bh_sim_obj *o = m->objs.v[i];
        if (bh_streq(o->name, name) && bh_streq(o->ns, ns) && bh_streq(o->type->kind, kind))
            return o;
    }
    for (size_t i = 0; c && i < c->objs.n; i++)
        if (bh_streq(c->objs.v[i]->name, name) && bh_streq(c->objs.v[i]->ns, ns))
            return c->objs.v[i];
    return NULL;
}

/* Texts about manifests begin with the field they came from: "changes[0].manifest: document 1". */
int bh_console_question_fail(struct bh_console_question *q, int code, const char *field,
                             const struct bh_err *err)
{
    const char *end = strstr(err->msg, ": document ");

    if (end && end - err->msg < 100 && !memchr(err->msg, ' ', (size_t)(end - err->msg)))
        field = bh_arena_strndup(&q->a, err->msg, (size_t)(end - err->msg));
    return bh_console_job_fail(q->job, code, field, bh_console_line_of(err), "%s", err->msg);
}

/* The kind that members ("pods:list max:number pod") want of the named member: "" any; NULL: it is none
 * of them. */
static const char *kind_of(struct bh_arena *a, const char *members, const char *name)
{
    size_t n = strlen(name);

    for (const char *w = members; *w; w += strcspn(w, " "), w += *w == ' ') {
        size_t len = strcspn(w, ": ");
        if (len == n && memcmp(w, name, n) == 0)
            return w[len] == ':' ? bh_arena_strndup(a, w + len + 1, strcspn(w + len + 1, " ")) : "";
    }
    return NULL;
}

/* null is as good as absent. */
static bool is_of_kind(const struct bh_json *v, const char *kind)
{
    static const char kinds[] = "list text number bool";
    static const enum bh_json_type types[] = {BH_JSON_ARRAY, BH_JSON_STRING, BH_JSON_NUMBER,
                                              BH_JSON_BOOL};
    int64_t i;

    if (!*kind || v->type == BH_JSON_NULL)
        return true;
    return v->type == types[bh_word_at(kinds, kind)] &&
           (v->type != BH_JSON_NUMBER || bh_json_i64(v, &i));
}

int bh_console_question_members(struct bh_console_question *q, const struct bh_json *obj,
                                const char *field, const char *members)
{
    if (!obj || obj->type != BH_JSON_OBJECT)
        return bh_console_job_fail(q->job, 400, field, obj ? obj->line : 0, "expected an object");
    bh_json_each(m, obj) {
        const char *kind = kind_of(&q->a, members, m->key.p);
        char name[300];
        if (kind && is_of_kind(m, kind))
            continue;
        snprintf(name, sizeof(name), "%s%s%.100s", field ? field : "", field ? "." : "", m->key.p);
        if (!kind)
            return bh_console_job_fail(q->job, 400, name, m->line, "unknown member");
        return bh_console_job_fail(q->job, 400, name, m->line, "expected %s",
                                   bh_streq(kind, "bool")     ? "true or false"
                                   : bh_streq(kind, "number") ? "a whole number"
                                   : bh_streq(kind, "list")   ? "a list"
                                                              : "a text");
    }
    return 0;
}

int bh_console_question_open(struct bh_console_question *q, struct bh_console_job *j,
                             const struct bh_console_moment *m, const char *members)
{
    struct bh_err err = {0};
    struct bh_json *v = NULL;

    *q = (struct bh_console_question){.job = j, .moment = m, .started_ns = bh_mono_ns()};
    if (bh_json_parse(&q->a, m->body, m->body_n, BH_JSON_STRICT | BH_JSON_NUL, &v, &err) < 0)
        return bh_console_question_fail(q, 400, NULL, &err);
    q->body = v;
    return bh_console_question_members(q, v, NULL, members);
}

/* ---- configuration --------------------------------------------------------------------------- */

/* They are not asked, so what they are asked with is not needed. */
static void forget_extenders_tls(struct bh_json *config)
{
    bh_json_each(e, bh_json_get_list(config, "extenders"))
        if (e->type == BH_JSON_OBJECT)
            (void)bh_json_unset(e, "tlsConfig");
}

int bh_console_question_running(struct bh_console_question *q)
{
    BH_CLEANUP(bh_freep) char *text = NULL, *path = NULL;
    struct bh_json *doc = NULL;
    struct bh_err err = {0};
    int rc = bh_console_config_running(q->moment->runtime_dir, false, &text, &path, &err);

    q->configuration = path && *path ? bh_arena_strdup(&q->a, path) : "defaults";
    if (rc == -ENOENT) /* no scheduler runs: the defaults */
        return 0;
    rc = rc < 0 ? rc : bh_json_parse(&q->a, text, strlen(text), 0, &doc, &err);
    forget_extenders_tls(doc);
    q->running = doc;
    return rc < 0 ? bh_console_question_fail(q, 503, NULL, &err) : 0;
}

int bh_console_question_config(struct bh_console_question *q, const char *field, const char *text,
                               const struct bh_json **ret)
{
    struct bh_sched_config *c = NULL;
    struct bh_config_report report;
    struct bh_json *doc = NULL;

    *ret = q->running;
    if (!text)
        return 0;
    bh_config_report_init(&report);
    int rc = bh_sched_config_read(text, strlen(text), &c, &report);
    if (rc < 0)
        bh_console_job_fail(q->job, 400, field, report.errors.n ? report.errors.v[0].line : 0, "%s",
                            report.summary && *report.summary ? report.summary : "not readable");
    else if (c->tree)
        doc = bh_json_clone(&q->a, c->tree);
    bh_sched_config_free(c);
    bh_config_report_fini(&report);
    forget_extenders_tls(doc);
    *ret = doc;
    return rc < 0 ? -1 : 0;
}

/* ---- trials ---------------------------------------------------------------------------------- */

static bool is_dropped(void *arg)
{
    return bh_console_job_dropped(arg);
}

static void add_stored(struct bh_trial *t, const char *api_version, const char *kind,
                       const struct bh_sim_obj *x)
{
    static const struct bh_trial_source at = {.file = "the cluster", .document = 1};

    bh_trial_add_stored(t, &at, api_version, kind, x->ns, x->name, x->json, x->json_n);
}

/* In whichever version the engine or a plugin of the profiles, which are loaded, reads them. */
static void add_customs(struct bh_trial *t, const struct bh_console_customs *c)
{
    for (unsigned i = 0; i < BH_KIND_ALL; i++) {
        const struct bh_kind_info *k = bh_kind_of(i);
        if (!k || !bh_streq(k->group, c->group) || !bh_streq(k->plural, c->plural))
            continue;
        BH_CLEANUP(bh_freep) char *api_version = bh_asprintf("%s/%s", k->group, k->version);
        for (size_t n = 0; n < c->objs.n; n++)
            add_stored(t, api_version, c->kind, c->objs.v[n]);
    }
}

int bh_console_question_trial(struct bh_console_question *q, const struct bh_json *config,
                              const char *unbind, struct bh_trial **ret)
{
    const struct bh_trial_options o = {.config_object = config,
                                       .tie_break = BH_TIE_FIRST,
                                       .unbind = unbind,
                                       .no_extenders = true,
                                       .form = BH_FORM_JSON,
                                       .watcher = {.stop = is_dropped, .arg = q->job},
                                       .now_ns = bh_wall_ns(),
                                       .gates = &q->moment->gates};
    struct bh_err err = {0};

    if (bh_trial_new(&o, ret, &err) < 0)
        return bh_console_question_fail(q, 400, "config", &err);
    for (size_t i = 0; i < q->moment->objs.n; i++) {
        const struct bh_sim_obj *x = q->moment->objs.v[i];
        char api_version[80];
        bh_sim_type_api_version(x->type, api_version);
        if (bh_trial_wants(api_version, x->type->kind))
            add_stored(*ret, api_version, x->type->kind, x);
    }
    for (size_t i = 0; i < q->moment->n_customs; i++)
        add_customs(*ret, &q->moment->customs[i]);
    return 0;
}

int bh_console_question_unbind(struct bh_console_question *q, struct bh_trial *t,
                               const struct bh_sim_obj *pod)
{
    const struct bh_trial_source at = {.file = "the cluster", .document = 1};
    BH_CLEANUP(bh_arena_fini) struct bh_arena a = {0};
    struct bh_json *v = bh_sim_obj_tree(&a, pod);
    struct bh_err err = {0};

    bh_json_unset(bh_json_get(v, "spec"), "nodeName");
    bh_json_unset(v, "status");
    bh_json_unset(bh_json_get(v, "metadata"), "managedFields");
    return bh_trial_add_item(t, &at, v, &err) < 0 ? bh_console_question_fail(q, 500, NULL, &err)
                                                  : 0;
}

struct adding {
    struct bh_trial *t;
    bh_trial_object_fn *fn;
    void *arg;
};

static int on_object(void *arg, const struct bh_trial_source *at, struct bh_arena *a,
                     struct bh_json *obj, struct bh_err *err)
{
    struct adding *x = arg;
    struct bh_trial_source place = *at;
    int rc = 0;

    if (x->fn)
        rc = x->fn(x->arg, at, a, obj, err);
    if (rc < 0)
        return rc;
    if (!bh_trial_wants(bh_json_get_text(obj, "apiVersion"), bh_json_get_text(obj, "kind")))
        return bh_err_set(err, -EINVAL,
                          "%s: document %u (line %u): kind %.80s says nothing about placement",
                          at->file, at->document, at->line, bh_json_get_text(obj, "kind"));
    place.rank = ++x->t->n_read;
    bh_json_unset(bh_json_get(obj, "metadata"), "managedFields");
    rc = bh_trial_known(at, obj, err);
    return rc < 0 ? rc : bh_trial_add_item(x->t, &place, obj, err);
}

int bh_console_question_add(struct bh_console_question *q, struct bh_trial *t, const char *field,
                            const struct bh_json *manifest, bh_trial_object_fn *fn, void *arg)
{
    struct adding x = {.t = t, .fn = fn, .arg = arg};
    const char *text = bh_json_cstr(manifest);
    char *label = bh_arena_strdup(&q->a, field);
    BH_CLEANUP(bh_buf_fini) struct bh_buf b = {0};
    struct bh_err err = {0};
    uint32_t before = t->n_read;

    if (!text && manifest && manifest->type == BH_JSON_OBJECT) {
        bh_json_write(&b, manifest);
        text = bh_buf_str(&b);
    }
    if (!text)
        return bh_console_job_fail(q->job, 400, field, 0, "expected YAML text or an object");
    if (bh_trial_read_text(label, text, strlen(text), &t->names, on_object, &x, &err) < 0)
        return bh_console_question_fail(q, 400, field, &err);
    if (t->n_read == before)
        return bh_console_job_fail(q->job, 400, field, 0, "there is no object in it");
    return 0;
}

/* Pods whose bind is on its way count on their node, as in the scheduler. */
static void on_binding(void *arg, const Berth__QueuePod *p)
{
    struct bh_trial *t = arg;
    const struct bh_trial_pod *x = bh_trial_pod_of(t, bh_str_c(p->uid));

    if (!x || !p->node || (t->o.unbind && bh_streq(p->name, strchr(t->o.unbind, '/') + 1)))
        return;
    struct bh_pending pending = (struct bh_pending){.pod = x->rec, .shape = x->shape};
    bh_sym node = bh_sym_internc(bh_engine_symtab(t->w.engine), p->node);
    if (bh_engine_assume(t->w.engine, &pending, node) == 0)
        bh_queue_delete(t->w.queue, bh_queue_pod(t->w.queue, bh_trial_uid(x)));
}

int bh_console_question_prepare(struct bh_console_question *q, struct bh_trial *t,
                                const char *field)
{
    const uint32_t places =
        1u << BERTH__QUEUE_PLACE__QUEUE_BINDING | 1u << BERTH__QUEUE_PLACE__QUEUE_IN_FLIGHT;
    struct bh_ask ask = {0};
    struct bh_err err = {0};

    if (bh_trial_prepare(t, &err) < 0)
        return bh_console_question_fail(q, 400, field, &err);
    if (!q->moment->runtime_dir)
        return 0;
    if (bh_ask_open(&ask, q->moment->runtime_dir, NULL) == 0)
        (void)bh_ask_queue(&ask, NULL, places, on_binding, t, NULL);
    bh_ask_close(&ask);
    return 0;
}
