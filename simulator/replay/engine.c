/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/replay/engine.c - when each record is applied, and what became of it
 *
 * Invariants: exactly one of {load, timer} is set while the replay has something to do by itself;
 *             next counts the records that were applied; pods are watched from creation on, so
 *             waiting and undecided never count one twice.
 */
#include "simulator/replay/engine_int.h"

#include <errno.h>
#include <math.h>

#define TURN_NS       UINT64_C(3000000)    /* of applying, before the clients get their turn */
#define GATE_NS       UINT64_C(2000000000) /* speed 0: how long decisions are waited for */
#define POLL_NS       1000000
#define UNDECIDED_MAX 256 /* speed 0: pods on their way through the scheduler */
#define NEVER_NS      (INT64_C(3600) * 1000000000)

static void turn(void *arg);

/* ---- position -------------------------------------------------------------------------------- */

static int64_t first_ns(const struct bh_player *r)
{
    return r->file.n ? r->file.v[0].time_ns : 0;
}

static int64_t last_ns(const struct bh_player *r)
{
    return r->file.n ? r->file.v[r->file.n - 1].time_ns : 0;
}

/* Where the file's clock stands now. */
static int64_t position(const struct bh_player *r)
{
    if (r->phase != BH_REPLAY_RUNNING || r->speed <= 0)
        return r->base_ns;
    double passed = (double)(bh_sim_mono_ns(r->sim) - r->base_mono_ns) * r->speed;
    if (passed >= (double)(last_ns(r) - r->base_ns))
        return last_ns(r);
    return r->base_ns + (int64_t)passed;
}

static void anchor(struct bh_player *r, int64_t at_ns)
{
    r->base_ns = at_ns;
    r->base_mono_ns = bh_sim_mono_ns(r->sim);
}

static void arm(struct bh_player *r, int64_t delay_ns)
{
    bh_sim_cancel(r->timer);
    r->timer = bh_sim_after(r->sim, delay_ns, turn, r);
}

static void disarm(struct bh_player *r)
{
    bh_sim_cancel(r->timer);
    r->timer = NULL;
}

/* ---- applying -------------------------------------------------------------------------------- */

static void apply_next(struct bh_player *r)
{
    bh_player_apply(r, &r->file.v[r->next++]);
    r->version++;
}

/* Whether the next record may be applied now; else how long to wait. */
static bool is_due(struct bh_player *r, int64_t *ret_wait_ns)
{
    const struct bh_player_entry *e = &r->file.v[r->next];
    uint64_t now = bh_sim_mono_ns(r->sim);
    double wait;

    if (r->speed > 0) {
        wait = (double)(e->time_ns - r->base_ns) / r->speed - (double)(now - r->base_mono_ns);
        *ret_wait_ns = (int64_t)fmin(ceil(wait), (double)NEVER_NS);
        return wait <= 0;
    }
    *ret_wait_ns = POLL_NS;
    r->given_up = BH_MIN(r->given_up, r->undecided);
    if (r->undecided - r->given_up < (e->takes ? 1 : UNDECIDED_MAX)) {
        r->gate_ns = 0;
        return true;
    }
    if (!r->gate_ns)
        r->gate_ns = now;
    if (now - r->gate_ns < GATE_NS)
        return false;
    r->gate_ns = 0; /* no scheduler decides about these: go on */
    r->given_up = r->undecided;
    return true;
}

static void finish(struct bh_player *r)
{
    r->phase = BH_REPLAY_DONE;
    r->base_ns = last_ns(r);
    bh_buf_fini(&r->file.text); /* the times are kept, to tell */
    r->version++;
}

static void run_some(struct bh_player *r)
{
    uint64_t end = bh_mono_ns() + TURN_NS;
    int64_t wait;

    while (r->next < r->file.n) {
        if (!is_due(r, &wait)) {
            arm(r, wait);
            return;
        }
        if (r->speed > 0) {
            /* When the clock should have shown this record, against what it shows. */
            int64_t time_ns = r->file.v[r->next].time_ns;
            double due = (double)(time_ns - r->base_ns) / r->speed;
            double late = (double)(bh_sim_mono_ns(r->sim) - r->base_mono_ns) - due;
            uint64_t ns = late > 0 ? (uint64_t)late : 0;
            r->late_max_ns = BH_MAX(r->late_max_ns, ns);
            r->late_sum_ns += ns;
            r->late_n++;
        } else
            r->base_ns = r->file.v[r->next].time_ns;
        apply_next(r);
        if (bh_mono_ns() > end && !bh_sim_manual_clock(r->sim)) {
            arm(r, 0);
            return;
        }
    }
    finish(r);
}

static void turn(void *arg)
{
    struct bh_player *r = arg;

    r->timer = NULL;
    if (r->clear_kind) {
        if (bh_player_clear_some(r)) {
            arm(r, 0);
            return;
        }
        anchor(r, r->base_ns);
    }
    if (r->phase == BH_REPLAY_RUNNING)
        run_some(r);
    else if (r->phase == BH_REPLAY_PAUSED && r->to_step) {
        uint64_t end = bh_mono_ns() + TURN_NS;
        while (r->to_step && r->next < r->file.n && bh_mono_ns() <= end) {
            r->base_ns = r->file.v[r->next].time_ns;
            apply_next(r);
            r->to_step--;
        }
        if (r->next == r->file.n) {
            r->to_step = 0;
            finish(r);
        } else if (r->to_step) {
            arm(r, 0);
        }
    }
}

/* ---- what becomes of pods -------------------------------------------------------------------- */

static void pod_decided(struct bh_player *r, struct bh_player_pod *p)
{
    if (!p->decided)
        r->undecided--;
    p->decided = true;
    r->version++;
}

static void on_pod(void *arg, enum bh_sim_change c, struct bh_sim_obj *old BH_UNUSED,
                   struct bh_sim_obj *o)
{
    struct bh_player *r = arg;
    struct bh_player_pod *p = r->pods.len ? bh_player_pod_get(r, o->ns, o->name) : NULL;

    if (!p || p->gone || !bh_streq(p->uid, o->uid))
        return;
    if (!p->node && *o->node_name) {
        p->node = bh_strdup(o->node_name);
        r->waiting--;
        pod_decided(r, p);
        bh_player_compare(r, o->ns, o->name, p);
    } else if (!p->decided &&
               (strstr(o->json, "\"Unschedulable\"") || strstr(o->json, "\"SchedulingGated\""))) {
        pod_decided(r, p);
    }
    if (c != BH_SIM_DELETED)
        return;
    if (!p->node)
        r->waiting--;
    pod_decided(r, p);
    p->gone = true;
}

/* ---- loading --------------------------------------------------------------------------------- */

/* Belongs to the thread until after_load(), which frees it. */
struct bh_player_load {
    uv_work_t work;
    struct bh_player *owner; /* the loop's; NULL: the replay was stopped */
    void *body;
    size_t body_n;
    struct bh_player_file file;
    atomic_bool drop;
};

static void load_work(uv_work_t *w)
{
    struct bh_player_load *l = w->data;

    bh_player_file_read(&l->file, l->body, l->body_n, &l->drop);
}

static void after_load(uv_work_t *w, int status BH_UNUSED)
{
    struct bh_player_load *l = w->data;
    struct bh_player *r = l->owner;

    if (r) {
        r->load = NULL;
        r->file = l->file;
        l->file = (struct bh_player_file){0};
        r->version++;
        r->phase = *r->file.fatal.msg ? BH_REPLAY_FAILED
                   : r->paused        ? BH_REPLAY_PAUSED
                                      : BH_REPLAY_RUNNING;
        anchor(r, first_ns(r));
        if (r->phase == BH_REPLAY_FAILED)
            r->clear_kind = 0;
        else
            arm(r, 0);
    }
    bh_player_file_fini(&l->file);
    free(l->body);
    free(l);
}

int bh_player_start(struct bh_player *r, const void *p, size_t n, const struct bh_player_options *o,
                    struct bh_err *err)
{
    if (bh_player_active(r))
        return bh_err_set(err, -EBUSY, "\"%s\" is being replayed; stop it first", r->name);
    if (!n)
        return bh_err_set(err, -EINVAL, "the body is empty: a record file is expected");
    bh_player_stop(r);
    struct bh_player_load *l = bh_calloc(1, sizeof(*l));
    l->work.data = l;
    l->owner = r;
    l->body = bh_memdup(p, n);
    l->body_n = n;
    atomic_init(&l->drop, false);
    r->load = l;
    r->name = bh_strdup(o->name ? o->name : "");
    r->speed = o->speed;
    r->follow = o->follow;
    r->paused = o->paused;
    r->clear_kind = o->clear ? bh_clean_n_kinds : 0;
    r->phase = BH_REPLAY_LOADING;
    r->version++;
    bh_assert(uv_queue_work(bh_sim_loop(r->sim), &l->work, load_work, after_load) == 0);
    return 0;
}

/* ---- control --------------------------------------------------------------------------------- */

bool bh_player_active(const struct bh_player *r)
{
    return r->phase == BH_REPLAY_LOADING || r->phase == BH_REPLAY_RUNNING ||
           r->phase == BH_REPLAY_PAUSED;
}

void bh_player_set_speed(struct bh_player *r, double speed)
{
    int64_t at = position(r);

    r->speed = speed;
    anchor(r, at);
    r->version++;
    if (r->phase == BH_REPLAY_RUNNING)
        arm(r, 0);
}

void bh_player_pause(struct bh_player *r, bool paused)
{
    r->paused = paused;
    if (r->phase == BH_REPLAY_RUNNING && paused) {
        anchor(r, position(r));
        r->phase = BH_REPLAY_PAUSED;
        if (!r->clear_kind)
            disarm(r);
    } else if (r->phase == BH_REPLAY_PAUSED && !paused) {
        anchor(r, r->base_ns);
        r->phase = BH_REPLAY_RUNNING;
        r->to_step = 0;
        arm(r, 0);
    }
    r->version++;
}

int bh_player_step(struct bh_player *r, uint64_t records, struct bh_err *err)
{
    if (r->phase != BH_REPLAY_PAUSED)
        return bh_err_set(err, -EINVAL, "only what is paused can be played step by step");
    r->to_step += BH_MIN(records, r->file.n);
    if (r->to_step)
        arm(r, 0);
    return 0;
}

void bh_player_stop(struct bh_player *r)
{
    struct bh_player fresh = {.sim = r->sim,
                              .pod_type = r->pod_type,
                              .claim_type = r->claim_type,
                              .namespace_type = r->namespace_type,
                              .version = r->version + 1,
                              .arena = r->arena};

    if (r->load) {
        r->load->owner = NULL;
        atomic_store(&r->load->drop, true);
    }
    disarm(r);
    struct bh_map_entry *e;
    for (size_t it = 0; (e = bh_map_next(&r->pods, &it));) {
        struct bh_player_pod *p = e->value;
        free(p->recorded);
        free(p->node);
        free(p);
    }
    bh_map_fini(&r->pods);
    bh_player_file_fini(&r->file);
    bh_arena_fini(&r->told);
    free(r->diffs);
    free(r->errors.v);
    free(r->name);
    *r = fresh;
}

struct bh_player *bh_player_new(struct bh_sim *s)
{
    struct bh_player *r = bh_calloc(1, sizeof(*r));

    r->sim = s;
    r->version = 1;
    r->pod_type = bh_sim_type_find("", "v1", "pods");
    r->claim_type = bh_sim_type_find("", "v1", "persistentvolumeclaims");
    r->namespace_type = bh_sim_type_find("", "v1", "namespaces");
    bh_arena_init(&r->arena, 0);
    bh_sim_listen(s, r->pod_type, on_pod, r);
    return r;
}

void bh_player_free(struct bh_player *r)
{
    if (!r)
        return;
    bh_player_stop(r);
    bh_arena_fini(&r->arena);
    free(r);
}

/* ---- state ----------------------------------------------------------------------------------- */

uint64_t bh_player_version(const struct bh_player *r)
{
    return r->version;
}

static void add_errors(struct bh_arena *a, struct bh_json *list, const struct bh_player_errors *e)
{
    for (size_t i = 0; i < e->n && list->c.n < BH_REPLAY_LISTED; i++)
        bh_json_append(a, list, "line: %u, message: %s", e->v[i].line, e->v[i].message);
}

static struct bh_json *number(struct bh_arena *a, double v)
{
    struct bh_json *n = bh_json_new(a, BH_JSON_NUMBER);
    BH_CLEANUP(bh_buf_fini) struct bh_buf b = {0};

    bh_buf_addf64(&b, v);
    n->s = (struct bh_str){bh_arena_strdup(a, bh_buf_str(&b)), b.n};
    return n;
}

static int by_pod(const void *a, const void *b)
{
    const struct bh_player_difference *x = a, *y = b;
    int c = strcmp(x->ns, y->ns);

    return c ? c : strcmp(x->name, y->name);
}

struct bh_json *bh_player_state(const struct bh_player *r, struct bh_arena *a)
{
    static const char *const phases[] = {"None", "Loading", "Running", "Paused", "Done", "Failed"};
    struct bh_json *errors = bh_json_new(a, BH_JSON_ARRAY), *o, *list;

    o = bh_json_make(a, "phase: %s, name: %s, message?: %s, speed: %p, follow: %i",
                     phases[r->phase], r->name, r->file.fatal.msg, number(a, r->speed), r->follow);
    if (r->file.n) {
        const char *const names[] = {"start", "end", "at"};
        const int64_t times[] = {first_ns(r), last_ns(r), position(r)};
        char t[40];
        for (size_t i = 0; i < BH_ARRAY_LEN(names); i++) {
            bh_time_format_micro_ns(t, times[i]);
            bh_json_set_str(a, o, names[i], t);
        }
    }
    add_errors(a, errors, &r->file.errors);
    add_errors(a, errors, &r->errors);
    bh_json_add(a, o,
                "applied: %zu, total: %zu, skipped: %lu, waiting: %lu, errors: %p, "
                "errorCount: %lu, torn?: %i, lateness: {max_ns: %lu, mean_ns: %lu}, "
                "compared: {same: %lu, different: %lu, differences: []}",
                r->next, r->file.n, r->file.skipped, r->waiting, errors,
                r->file.errors.total + r->errors.total, r->file.torn, r->late_max_ns,
                r->late_n ? r->late_sum_ns / r->late_n : 0, r->same, r->different);
    list = bh_json_path(o, "compared.differences");
    if (r->n_diffs > 1)
        qsort(r->diffs, r->n_diffs, sizeof(*r->diffs), by_pod);
    for (size_t i = 0; i < r->n_diffs; i++)
        bh_json_append(a, list, "namespace: %s, name: %s, recorded: %s, actual: %s", r->diffs[i].ns,
                       r->diffs[i].name, r->diffs[i].recorded, r->diffs[i].node);
    return o;
}
