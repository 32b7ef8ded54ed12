/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/console/scenarios.c - scenarios beside the server: uploaded, or objects of its own kind
 *
 * One runs at a time, in a worker thread, in a world of its own; the others wait. What a scenario
 * that starts from the cluster needs is taken in the loop as references to objects, and becomes
 * text in the worker. An object of kind Scenario is read when it is created, and told in its status
 * what becomes of it.
 *
 * Owns: the runs, newest last, at most RUNS_MOST; the oldest that is over makes room. The worker
 * sees a run's scenario, cluster, progress, and writes its outcome; everything else is the loop's.
 */
#include "simulator/console/parts.h"

#include <errno.h>
#include <stdio.h>

#include "simulator/scenario/scenario.h"

#define RUNS_MOST    32
#define RESULT_MOST  ((size_t)64 << 20)
#define EVENTS_MOST  5000
#define OBJECTS_MOST 300000
#define LONGEST_NS   (UINT64_C(900) * 1000000000)
#define REPORT_POLICY                                                                              \
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; "         \
    "frame-ancestors 'self'"

enum phase { PENDING, RUNNING, SUCCEEDED, FAILED, GONE };
static const char *const phase_names[] = {"Pending", "Running", "Succeeded", "Failed", "Gone"};

struct run {
    struct bh_console_scenarios *all; /* NULL: the server stops */
    struct run *next;
    unsigned id;
    char *name, *object; /* object: name of the Scenario it came from, or NULL */
    char uid[40];
    enum phase phase;
    uint64_t version; /* of the last change, for watchers */
    int64_t started_ns, seen_at_ns;
    uint64_t began_ns, took_ns;
    struct bh_scenario *scenario;
    struct bh_sim_objs objs;    /* of the cluster */
    struct bh_console_job *job; /* while the worker is at it */
    struct bh_scenario_progress progress;
    /* the outcome */
    bool ran, passed;
    char *message;
    struct bh_buf json, html;
    struct bh_json *summary; /* for the object's status; in arena */
    struct bh_arena arena;
};
struct bh_console_scenarios {
    struct bh_sim *sim;
    struct run *first, *running;
    const struct bh_sim_type *type;
    unsigned last_id, n;
    uint64_t version;
    struct {
        unsigned id;
        uint64_t version;
    } gone[RUNS_MOST]; /* the last ones that were forgotten, for watchers */
    unsigned n_gone;
};

/* What only the worker needs. References go back in the loop. */
static void drop_inputs(struct run *r)
{
    bh_sim_objs_fini(&r->objs);
    bh_scenario_free(r->scenario);
    r->scenario = NULL;
}

static void run_free(struct run *r)
{
    drop_inputs(r);
    free(r->name);
    free(r->object);
    free(r->message);
    bh_buf_fini(&r->json);
    bh_buf_fini(&r->html);
    bh_arena_fini(&r->arena);
    free(r);
}

static void changed(struct run *r)
{
    if (r->all)
        r->version = ++r->all->version;
}

/* ---- in the worker --------------------------------------------------------------------------- */

static void on_tick(void *arg)
{
    struct run *r = arg;

    if (bh_console_job_dropped(r->job) || bh_mono_ns() - r->began_ns > LONGEST_NS)
        atomic_store(&r->progress.cancel, true);
}

/* Of each scheduler: name and summary. */
static void keep_summary(struct run *r)
{
    BH_CLEANUP(bh_arena_fini) struct bh_arena a = {0};
    struct bh_json *v;

    r->summary = bh_json_new(&r->arena, BH_JSON_ARRAY);
    if (bh_json_parse(&a, r->json.p, r->json.n, 0, &v, NULL) < 0)
        return;
    bh_json_each(s, bh_json_get(v, "schedulers"))
        bh_json_append(&r->arena, r->summary, "name: %s, summary: %p", bh_json_get_text(s, "name"),
                       bh_json_clone(&r->arena, bh_json_get(s, "summary")));
}

static void run_scenario(struct bh_console_job *j, void *arg)
{
    struct run *r = arg;
    BH_CLEANUP(bh_buf_fini) struct bh_buf cluster = {0};
    struct bh_err err = {0};

    r->job = j;
    if (r->scenario->start_cluster) {
        bh_buf_adds(&cluster, "{\"apiVersion\":\"v1\",\"kind\":\"List\",\"items\":[");
        for (size_t i = 0; i < r->objs.n; i++) {
            if (i)
                bh_buf_addc(&cluster, ',');
            bh_buf_add(&cluster, r->objs.v[i]->json, r->objs.v[i]->json_n);
        }
        bh_buf_adds(&cluster, "]}");
    }
    const struct bh_scenario_options o = {.progress = &r->progress,
                                          .tick = on_tick,
                                          .arg = r,
                                          .cluster = cluster.p,
                                          .max_events = EVENTS_MOST,
                                          .max_objects = OBJECTS_MOST};
    int rc = bh_scenario_run(r->scenario, &o, &r->json, &r->passed, &err);
    if (rc >= 0 && r->json.n > RESULT_MOST)
        rc = bh_err_set(&err, -EFBIG, "the result is larger than %zu MiB", RESULT_MOST >> 20);
    rc = rc < 0 ? rc : bh_scenario_html(r->json.p, r->json.n, &r->html, &err);
    if (rc >= 0)
        keep_summary(r);
    r->ran = rc >= 0;
    if (!r->ran)
        bh_buf_fini(&r->json);
    r->message = bh_strdup(r->ran ? (r->passed ? "" : "an expectation was not met") : err.msg);
}

/* ---- status of an object --------------------------------------------------------------------- */

static bool edit_status(void *arg, struct bh_arena *a, struct bh_json *obj)
{
    const struct run *r = arg;

    bh_json_add(a, obj, "status: {phase: %s, message: %s}", phase_names[r->phase], r->message);
    if (r->id)
        bh_json_add(a, obj, "status: {id: %s}", bh_arena_printf(a, "s%u", r->id));
    if (r->phase == SUCCEEDED || (r->phase == FAILED && r->ran))
        bh_json_add(a, obj, "status: {passed: %i}", r->passed);
    if (r->summary)
        bh_json_add(a, obj, "status: {schedulers: %p}", bh_json_clone(a, r->summary));
    return true;
}

static void tell_object(struct bh_sim *s, const struct bh_sim_type *t, const struct run *r)
{
    if (r->object && t)
        (void)bh_sim_edit(s, t, "", r->object, r->uid, BH_SIM_STATUS, edit_status,
                          (void *)(uintptr_t)r, NULL, NULL); /* the Scenario is gone: no loss */
}

/* ---- in the loop ----------------------------------------------------------------------------- */

static void start_next(struct bh_console_scenarios *all);

static void unlink_run(struct bh_console_scenarios *all, struct run *r)
{
    for (struct run **at = &all->first; *at; at = &(*at)->next)
        if (*at == r) {
            *at = r->next;
            all->n--;
            all->gone[all->n_gone % RUNS_MOST].id = r->id;
            all->gone[all->n_gone++ % RUNS_MOST].version = ++all->version;
            return;
        }
}

static void run_done(struct bh_sim_req *req BH_UNUSED, struct bh_sim *s, void *arg)
{
    struct run *r = arg;
    struct bh_console_scenarios *all = r->all;

    if (!all)
        return;
    all->running = NULL;
    r->took_ns = bh_mono_ns() - r->began_ns;
    if (r->phase == RUNNING) {
        r->phase = r->ran && r->passed ? SUCCEEDED : FAILED;
        changed(r);
        tell_object(s, all->type, r);
    }
    start_next(all);
}

/* The references go back here, whatever became of the run. */
static void run_release(void *arg)
{
    struct run *r = arg;

    drop_inputs(r);
    if (!r->all || r->phase == GONE)
        run_free(r);
}

static void start_next(struct bh_console_scenarios *all)
{
    struct run *r = all->first;

    while (r && r->phase != PENDING)
        r = r->next;
    if (!r || all->running)
        return;
    all->running = r;
    r->phase = RUNNING;
    r->started_ns = bh_wall_ns();
    r->began_ns = bh_mono_ns();
    for (size_t i = 0; r->scenario->start_cluster && i < bh_sim_type_count(all->sim); i++) {
        const struct bh_sim_type *t = bh_sim_type_at(all->sim, i);
        if (t && bh_sim_type_stores(t) && !bh_streq(t->kind, "Event") &&
            !bh_streq(t->kind, "Scenario"))
            bh_console_list_more(all->sim, t, &r->objs);
    }
    changed(r);
    tell_object(all->sim, all->type, r);
    bh_console_background(all->sim, run_scenario, run_done, run_release, r);
}

static bool is_over(const struct run *r)
{
    return r->phase == SUCCEEDED || r->phase == FAILED;
}

/* Room for one more: the oldest that is over goes. */
static bool make_room(struct bh_console_scenarios *all)
{
    if (all->n < RUNS_MOST)
        return true;
    for (struct run *r = all->first; r; r = r->next)
        if (is_over(r)) {
            unlink_run(all, r);
            run_free(r);
            return true;
        }
    return false;
}

static struct run *add_run(struct bh_console_scenarios *all, struct bh_scenario *s,
                           const char *name)
{
    struct run *r = bh_calloc(1, sizeof *r), **at = &all->first;

    *r = (struct run){
        .all = all, .id = ++all->last_id, .name = bh_strdup(name), .scenario = s, .seen_at_ns = -1};
    while (*at)
        at = &(*at)->next;
    *at = r;
    all->n++;
    changed(r);
    return r;
}

/* Stops it if it runs; it is freed now, or when the worker is done with it. */
static void forget(struct bh_console_scenarios *all, struct run *r)
{
    bool busy = all->running == r;

    unlink_run(all, r);
    atomic_store(&r->progress.cancel, true);
    r->phase = GONE;
    if (!busy)
        run_free(r);
}

/* ---- what is told ---------------------------------------------------------------------------- */

static struct bh_json *state_of(const struct run *r, struct bh_arena *a)
{
    uint64_t took = is_over(r) ? r->took_ns : r->began_ns ? bh_mono_ns() - r->began_ns : 0;
    char started[40] = "";

    if (r->started_ns)
        bh_time_format_micro_ns(started, r->started_ns);
    struct bh_json *o =
        bh_json_make(a,
                     "id: %s, name: %s, phase: %s, message: %s, progress: {at_ns: %ld, "
                     "end_ns: %ld}, started?: %s, took_ns: %lu",
                     bh_arena_printf(a, "s%u", r->id), r->name, phase_names[r->phase],
                     is_over(r) ? r->message : "", atomic_load(&r->progress.at_ns),
                     atomic_load(&r->progress.end_ns), started, took);
    if (is_over(r) && r->ran)
        bh_json_set_bool(a, o, "passed", r->passed);
    bh_json_add(a, o, "object?: %s", r->object);
    return o;
}

/* Rows of the watch: whatever changed after the cursor. */
static int scenario_rows(struct bh_sim *s, uint64_t *cursor, struct bh_buf *out)
{
    struct bh_console_scenarios *all = s->console->scenarios;
    BH_CLEANUP(bh_arena_fini) struct bh_arena a = {0};

    if (all->running && atomic_load(&all->running->progress.at_ns) != all->running->seen_at_ns) {
        all->running->seen_at_ns = atomic_load(&all->running->progress.at_ns);
        changed(all->running);
    }
    if (*cursor == all->version + 1)
        return 0;
    for (struct run *r = all->first; r; r = r->next) {
        if (*cursor && r->version < *cursor)
            continue;
        bh_console_change(out, *cursor ? "MODIFIED" : "ADDED", state_of(r, &a));
    }
    for (unsigned i = 0; *cursor && i < BH_MIN(all->n_gone, (unsigned)RUNS_MOST); i++) {
        const char *id = bh_arena_printf(&a, "s%u", all->gone[i].id);
        if (all->gone[i].version >= *cursor)
            bh_console_change(out, "DELETED", bh_json_make(&a, "id: %s", id));
    }
    *cursor = all->version + 1;
    return 0;
}

/* ---- endpoints ------------------------------------------------------------------------------- */

void bh_console_scenarios_post(struct bh_console_req *c)
{
    struct bh_console_scenarios *all = c->r->sim->console->scenarios;
    const char *name = bh_http_query(c->r->http, "name");
    struct bh_str body = bh_http_body(c->r->http);
    const struct bh_scenario_source src = {.text = body.p ? body.p : "", .n = body.n};
    struct bh_scenario_error e = {0};
    struct bh_scenario *s = NULL;

    if (bh_scenario_read(&src, &s, &e, NULL) < 0) {
        bh_console_fail(c->r, 400, *e.field ? e.field : NULL, e.line, "%s%s%s", e.field,
                        *e.field ? ": " : "", e.message);
        return;
    }
    if (!make_room(all)) {
        bh_scenario_free(s);
        bh_console_fail(c->r, 429, NULL, 0, "%u scenarios wait already", all->n);
        return;
    }
    struct run *r = add_run(all, s, name && *name ? name : s->name);
    start_next(all);
    bh_console_reply(c->r, 202, state_of(r, c->r->a));
}

static struct run *find_run(struct bh_console_req *c)
{
    struct run *r = c->r->sim->console->scenarios->first;
    char id[24];

    for (; r; r = r->next) {
        snprintf(id, sizeof id, "s%u", r->id);
        if (bh_streq(id, c->seg[1]))
            return r;
    }
    bh_console_fail(c->r, 404, NULL, 0, "there is no scenario %s", c->seg[1]);
    return NULL;
}

static void get_report(struct bh_console_req *c, const struct run *r)
{
    if (!r->html.n || !is_over(r)) {
        bh_console_fail(c->r, 404, NULL, 0, "scenario s%u has no report%s", r->id,
                        is_over(r) ? "" : " yet");
        return;
    }
    bh_http_set_header(c->r->http, "Content-Security-Policy", REPORT_POLICY);
    bh_http_set_header(c->r->http, "X-Content-Type-Options", "nosniff");
    bh_http_set_header(c->r->http, "Referrer-Policy", "no-referrer");
    bh_sim_reply_raw(c->r, 200, "text/html; charset=utf-8", r->html.p, r->html.n);
}

void bh_console_scenarios_get(struct bh_console_req *c)
{
    struct run *r;

    if (c->n == 1) {
        struct bh_json *v = bh_json_make(c->r->a, "items: []");
        for (r = c->r->sim->console->scenarios->first; r; r = r->next)
            bh_json_push(bh_json_get(v, "items"), state_of(r, c->r->a));
        bh_console_reply(c->r, 200, v);
    } else if (!(r = find_run(c))) {
        return;
    } else if (c->n == 2) {
        /* The state, and the result as it was written. */
        struct bh_buf *b = &c->r->sim->reply;
        bh_buf_reset(b);
        bh_json_write(b, state_of(r, c->r->a));
        if (is_over(r) && r->json.n) {
            b->n--; /* the closing brace */
            bh_buf_adds(b, ",\"result\":");
            bh_buf_add(b, r->json.p, r->json.n);
            bh_buf_addc(b, '}');
        }
        bh_buf_addc(b, '\n');
        bh_sim_reply_raw(c->r, 200, "application/json", b->p, b->n);
    } else if (bh_streq(c->seg[2], "report")) {
        get_report(c, r);
    } else {
        bh_console_fail(c->r, 404, NULL, 0, "a scenario has no %s", c->seg[2]);
    }
}

void bh_console_scenarios_delete(struct bh_console_req *c)
{
    struct run *r = find_run(c);

    if (!r)
        return;
    bh_console_reply(c->r, 200, state_of(r, c->r->a));
    forget(c->r->sim->console->scenarios, r);
}

/* ---- objects of kind Scenario ---------------------------------------------------------------- */

static void refuse_object(struct bh_console_scenarios *all, const struct bh_sim_obj *obj,
                          const char *why)
{
    struct run r = {.phase = FAILED, .object = (char *)(uintptr_t)obj->name, .all = all};

    r.message = bh_strdup(why);
    snprintf(r.uid, sizeof r.uid, "%s", obj->uid);
    tell_object(all->sim, all->type, &r);
    free(r.message);
}

static void object_added(struct bh_console_scenarios *all, const struct bh_sim_obj *obj)
{
    const struct bh_scenario_source src = {.text = obj->json, .n = obj->json_n};
    struct bh_scenario_error e = {0};
    struct bh_scenario *s = NULL;
    char why[800];

    if (bh_streq(obj->phase, "Succeeded") || bh_streq(obj->phase, "Failed"))
        return; /* of a store that was kept */
    if (bh_scenario_read(&src, &s, &e, NULL) < 0) {
        snprintf(why, sizeof why, "%s%s%s", e.field, *e.field ? ": " : "", e.message);
        refuse_object(all, obj, why);
        return;
    }
    if (!make_room(all)) {
        bh_scenario_free(s);
        refuse_object(all, obj, "too many scenarios wait already");
        return;
    }
    struct run *r = add_run(all, s, obj->name);
    r->object = bh_strdup(obj->name);
    snprintf(r->uid, sizeof r->uid, "%s", obj->uid);
    tell_object(all->sim, all->type, r);
    start_next(all);
}

static void on_commit(void *arg, enum bh_sim_change change, struct bh_sim_obj *old BH_UNUSED,
                      struct bh_sim_obj *obj)
{
    struct bh_console_scenarios *all = *(struct bh_console_scenarios **)arg;

    if (!all)
        return;
    if (change == BH_SIM_ADDED)
        object_added(all, obj);
    else if (change == BH_SIM_DELETED) {
        struct run *r = all->first;
        while (r && !(r->object && bh_streq(r->uid, obj->uid)))
            r = r->next;
        if (r)
            forget(all, r);
    }
}

/* ---- life ------------------------------------------------------------------------------------ */

void bh_console_scenarios_start(struct bh_console *c)
{
    c->scenarios = bh_calloc(1, sizeof *c->scenarios);
    c->scenarios->sim = c->sim;
    c->scenarios->type = bh_sim_type_find("sim.berth.dev", "v1alpha1", "scenarios");
    bh_console_publish(c->sim, "scenarios", scenario_rows);
    if (!c->scenarios->type)
        return;
    BH_CLEANUP(bh_sim_objs_fini)
    struct bh_sim_objs l = bh_sim_listed(c->sim, c->scenarios->type, NULL);
    for (size_t i = 0; i < l.n; i++)
        object_added(c->scenarios, l.v[i]);
    bh_sim_listen(c->sim, c->scenarios->type, on_commit, &c->scenarios);
}

void bh_console_scenarios_stop(struct bh_console *c)
{
    struct bh_console_scenarios *all = c->scenarios;
    struct run *next;

    c->scenarios = NULL;
    for (struct run *r = all->first; r; r = next) {
        next = r->next;
        r->all = NULL;
        if (all->running == r)
            atomic_store(&r->progress.cancel, true); /* run_release frees it */
        else
            run_free(r);
    }
    if (all->running)
        all->running->all = NULL; /* also when it was forgotten before */
    free(all);
}
