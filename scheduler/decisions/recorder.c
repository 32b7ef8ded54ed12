/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/decisions/recorder.c - the scheduler's side, and the thread between it and the file
 */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <time.h>

#include "common/base/log.h"
#include "scheduler/decisions/writer.h"

#define GATHER_NS 20000000 /* between two transactions */
/* The same after one with many attempts: each writes the indices' pages anew, and an outcome that
 * comes with its attempt costs nothing. */
#define BUSY_NS     500000000
#define MANY        64u
#define TICK_S      1 /* without work: retries, ages */
#define FAREWELL_NS UINT64_C(2000000000)
#define KEEP_BUFFER ((size_t)1 << 20)
/* Mode auto: one part in so many of the time goes to full attempts, and as much is saved up for
 * quiet times. docs/decisions.md has what that costs. */
#define SHARE     256u
#define CREDIT_NS INT64_C(40000000)

const char *const bh_record_outcomes[] = {"", "Binding", "Bound", "Failed", "GroupWaits"};

struct bh_recorder {
    struct bh_recorder_options o;
    /* the scheduler's thread */
    struct bh_packer packer;
    struct bh_buf *mine;
    struct bh_buf head, body;
    struct bh_recorder_pod pod; /* of the attempt under way; its texts are borrowed until end */
    struct bh_record_head h;
    bh_sym node;
    const struct bh_symtab *tab;
    uint64_t number;             /* the last one given */
    bool open, full;             /* every node of the attempt is kept */
    int64_t credit_ns, began_ns; /* auto: CPU time that full attempts may take; of this one */
    uint64_t credited_ns, n_full, full_ns;
    enum bh_record_outcome outcome;
    struct bh_buf outcome_text;
    uint32_t told_list, told_names; /* names the thread was told */
    /* between both */
    _Atomic(struct bh_buf *) slot, spare;
    sem_t wake;
    atomic_bool stopping;
    _Atomic uint64_t dropped, written, lost, attempts, bytes;
    /* the thread */
    pthread_t thread;
    bool runs;
    struct bh_writer w;
};

/* ---- the thread ------------------------------------------------------------------------------ */

static void publish(struct bh_recorder *r)
{
    atomic_store(&r->written, r->w.recorded);
    atomic_store(&r->lost, r->w.dropped);
    atomic_store(&r->attempts, r->w.rows);
    atomic_store(&r->bytes, r->w.bytes);
}

static void *serve(void *arg)
{
    struct bh_recorder *r = arg;

    bh_writer_tick(&r->w, 0);
    publish(r);
    for (;;) {
        struct timespec until;
        bool stop = atomic_load(&r->stopping);
        struct bh_buf *b = atomic_exchange(&r->slot, NULL);
        if (b) {
            bh_writer_write(&r->w, b, atomic_load(&r->dropped));
            if (b->cap > KEEP_BUFFER)
                bh_buf_fini(b);
            bh_buf_reset(b);
            struct bh_buf *former = atomic_exchange(&r->spare, b);
            if (former) {
                bh_buf_fini(former);
                free(former);
            }
        } else if (stop) {
            break;
        } else {
            clock_gettime(CLOCK_REALTIME, &until);
            until.tv_sec += TICK_S;
            (void)sem_timedwait(&r->wake, &until);
        }
        bh_writer_tick(&r->w, atomic_load(&r->dropped));
        publish(r);
        if (b && !stop)
            nanosleep(&(struct timespec){.tv_nsec = r->w.batch_n < MANY ? GATHER_NS : BUSY_NS},
                      NULL);
    }
    bh_writer_fini(&r->w);
    return NULL;
}

struct bh_recorder *bh_recorder_new(const struct bh_recorder_options *o)
{
    struct bh_recorder *r = bh_calloc(1, sizeof(*r));
    sigset_t all, former;

    r->o = *o;
    r->full = o->mode == BH_RECORD_FULL;
    r->credit_ns = CREDIT_NS;
    r->credited_ns = bh_mono_ns();
    r->mine = bh_calloc(1, sizeof(*r->mine));
    bh_assert(sem_init(&r->wake, 0, 0) == 0);
    bh_writer_init(&r->w, o);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &former);
    int rc = pthread_create(&r->thread, NULL, serve, r);
    pthread_sigmask(SIG_SETMASK, &former, NULL);
    if (rc)
        bh_log_error("Decisions are not recorded: no thread to write them",
                     bh_kv_s("file", r->w.path), bh_kv_s("err", strerror(rc)));
    r->runs = rc == 0;
    return r;
}

/* A thread that hangs in a write (a dead network file system) is left behind: the process ends. */
void bh_recorder_free(struct bh_recorder *r)
{
    static const struct timespec pause = {.tv_nsec = 1000000};
    uint64_t until = bh_mono_ns() + FAREWELL_NS;
    struct timespec end;

    if (!r)
        return;
    while (r->runs && r->mine->n && bh_mono_ns() < until) {
        bh_recorder_turn(r);
        if (r->mine->n)
            nanosleep(&pause, NULL);
    }
    atomic_store(&r->stopping, true);
    sem_post(&r->wake);
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += (time_t)(FAREWELL_NS / 1000000000);
    if (!r->runs || pthread_timedjoin_np(r->thread, NULL, &end) == 0) {
        struct bh_buf *v[] = {r->mine, atomic_load(&r->slot), atomic_load(&r->spare)};
        for (size_t i = 0; i < BH_ARRAY_LEN(v); i++) {
            if (v[i])
                bh_buf_fini(v[i]);
            free(v[i]);
        }
        if (!r->runs)
            bh_writer_fini(&r->w);
        bh_packer_fini(&r->packer);
        bh_buf_fini(&r->head);
        bh_buf_fini(&r->body);
        bh_buf_fini(&r->outcome_text);
        sem_destroy(&r->wake);
        free(r);
    }
}

/* ---- the scheduler's thread ------------------------------------------------------------------ */

static int64_t cpu_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

bool bh_recorder_next(struct bh_recorder *r, bool again)
{
    uint64_t now;

    if (r->o.mode == BH_RECORD_AUTO) {
        now = bh_mono_ns();
        r->credit_ns += (int64_t)((now - r->credited_ns) / SHARE);
        r->credit_ns = BH_MIN(r->credit_ns, CREDIT_NS);
        r->credited_ns = now;
        r->full = r->credit_ns > (again ? 0 : CREDIT_NS / 2);
    }
    if (r->full)
        r->began_ns = cpu_ns();
    return r->full;
}

enum bh_record_mode bh_recorder_mode(const struct bh_recorder *r)
{
    return r->full ? BH_RECORD_FULL : BH_RECORD_SUMMARY;
}

void bh_recorder_turn(struct bh_recorder *r)
{
    if (bh_likely(!r->mine->n) || atomic_load_explicit(&r->slot, memory_order_relaxed))
        return;
    struct bh_buf *next = atomic_exchange(&r->spare, NULL);
    atomic_store(&r->slot, r->mine);
    r->mine = next ? next : bh_calloc(1, sizeof(*r->mine));
    sem_post(&r->wake);
}

uint64_t bh_recorder_begin(struct bh_recorder *r, struct bh_engine *e,
                           const struct bh_recorder_pod *pod, const struct bh_decision *d,
                           uint64_t duration_ns)
{
    struct bh_record_head *h = &r->h;

    r->open = true;
    r->outcome = BH_OUTCOME_NONE;
    r->pod = *pod;
    r->tab = bh_engine_symtab(e);
    r->node = d->node;
    bh_buf_reset(&r->head);
    bh_buf_reset(&r->body);
    h->mode = bh_recorder_mode(r);
    h->attempt = pod->attempt;
    h->n_nodes = bh_engine_node_count(e);
    h->evaluated = d->evaluated;
    h->feasible = d->feasible;
    h->n_victims = d->n_victims;
    h->priority = pod->priority;
    h->duration_ns = duration_ns;
    h->profile = pod->profile;
    h->trigger = pod->trigger;
    h->nominated = bh_sym_text(r->tab, d->nominated_node);
    bh_record_set_texts(h, d);
    bh_record_pack_head(&r->head, h);
    if (r->full)
        bh_record_pack(&r->packer, e, d, &r->body);
    return ++r->number;
}

void bh_recorder_clear(struct bh_recorder *r)
{
    r->h.n_points = 0;
}

void bh_recorder_point(struct bh_recorder *r, const char *point, uint64_t ns)
{
    struct bh_record_head *h = &r->h;

    for (uint32_t i = 0; i < h->n_points; i++) {
        if (h->points[i].point == point) {
            h->points[i].ns += ns;
            return;
        }
    }
    if (h->n_points < BH_ARRAY_LEN(h->points))
        h->points[h->n_points++] = (struct bh_record_point){point, ns};
}

static uint32_t add_new_names(struct bh_recorder *r, struct bh_buf *b)
{
    const struct bh_node_list *l = &r->packer.list;
    uint32_t n = 0;

    if (!r->full)
        return 0;
    if (l->id != r->told_list) {
        r->told_list = l->id;
        r->told_names = 0;
    }
    for (uint32_t i = r->told_names; i < l->n; i++, n++) {
        struct bh_str s = bh_sym_str(r->tab, l->name[i]);
        bh_buf_add(b, s.p, s.n);
        bh_buf_addc(b, '\0');
    }
    return n;
}

static void add_attempt(struct bh_recorder *r, struct bh_buf *b)
{
    struct bh_str node =
        r->h.result == BH_DECIDED ? bh_sym_str(r->tab, r->node) : bh_str_c(r->h.nominated);
    struct bh_message m = {
        .kind = BH_MESSAGE_ATTEMPT,
        .number = r->number,
        .time_ns = r->pod.time_ns,
        .result = r->h.result,
        .outcome = r->outcome                  ? r->outcome
                   : r->h.result == BH_DECIDED ? BH_OUTCOME_BINDING
                                               : 0,
        .n_namespace = (uint32_t)r->pod.namespace_.n,
        .n_name = (uint32_t)r->pod.name.n,
        .n_uid = (uint32_t)r->pod.uid.n,
        .n_node = (uint32_t)node.n,
        .n_outcome = r->outcome ? (uint32_t)r->outcome_text.n : 0,
        .n_head = (uint32_t)r->head.n,
        .n_body = (uint32_t)r->body.n,
    };
    size_t at = b->n;

    bh_buf_add(b, &m, sizeof(m));
    bh_buf_add(b, r->pod.namespace_.p, r->pod.namespace_.n);
    bh_buf_add(b, r->pod.name.p, r->pod.name.n);
    bh_buf_add(b, r->pod.uid.p, r->pod.uid.n);
    bh_buf_add(b, node.p, node.n);
    bh_buf_add(b, r->outcome_text.p, m.n_outcome);
    bh_buf_add(b, r->head.p, r->head.n);
    bh_buf_add(b, r->body.p, r->body.n);
    size_t names = b->n;
    m.n_names = add_new_names(r, b);
    m.list = r->told_list;
    m.first_name = r->told_names;
    m.n_names_text = (uint32_t)(b->n - names);
    m.size = (uint32_t)(b->n - at);
    memcpy(b->p + at, &m, sizeof(m));
}

/* No room any more: what was added last is taken back. */
static bool fits(struct bh_recorder *r, size_t before)
{
    if (r->mine->n <= BH_RECORDER_QUEUE_MAX && r->runs)
        return true;
    r->mine->n = before;
    if (r->mine->p)
        r->mine->p[before] = '\0';
    return false;
}

void bh_recorder_end(struct bh_recorder *r, const struct bh_record_after *after,
                     const struct bh_decision *overruled)
{
    size_t before = r->mine->n;

    if (!r->open)
        return;
    r->open = false;
    if (overruled) {
        bh_record_set_texts(&r->h, overruled);
        bh_buf_reset(&r->head);
        bh_record_pack_head(&r->head, &r->h);
    }
    bh_record_pack_points(&r->head, &r->h);
    if (r->full)
        bh_record_pack_after(&r->body, after);
    add_attempt(r, r->mine);
    r->h.n_points = 0;
    if (fits(r, before))
        r->told_names = r->packer.list.n;
    else
        atomic_fetch_add(&r->dropped, 1);
    if (!r->full)
        return;
    int64_t took = cpu_ns() - r->began_ns;
    r->n_full++;
    r->full_ns += (uint64_t)took;
    r->credit_ns =
        BH_MAX(r->credit_ns - took, -CREDIT_NS); /* at worst nothing is full for a while */
}

void bh_recorder_outcome(struct bh_recorder *r, uint64_t number, enum bh_record_outcome o,
                         const char *message)
{
    size_t n = strlen(message), before = r->mine->n;
    struct bh_message m = {.kind = BH_MESSAGE_OUTCOME, .number = number, .outcome = o};

    if (!number)
        return;
    if (r->open && number == r->number) { /* over before the attempt is */
        r->outcome = o;
        bh_buf_reset(&r->outcome_text);
        bh_buf_adds(&r->outcome_text, message);
        return;
    }
    m.n_outcome = (uint32_t)BH_MIN(n, (size_t)16384);
    m.size = (uint32_t)sizeof(m) + m.n_outcome;
    bh_buf_add(r->mine, &m, sizeof(m));
    bh_buf_add(r->mine, message, m.n_outcome);
    (void)fits(r, before);
}

static uint64_t writing_ns(const struct bh_recorder *r)
{
    struct timespec t;
    clockid_t clock;

    return r->runs && pthread_getcpuclockid(r->thread, &clock) == 0 && clock_gettime(clock, &t) == 0
               ? (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec
               : 0;
}

void bh_recorder_stats(const struct bh_recorder *r, struct bh_recorder_stats *ret)
{
    *ret = (struct bh_recorder_stats){
        .recorded = atomic_load(&r->written),
        .dropped = atomic_load(&r->dropped) + atomic_load(&r->lost),
        .full = r->n_full,
        .writing_ns = writing_ns(r),
        .full_ns = r->full_ns,
        .attempts = atomic_load(&r->attempts),
        .bytes = atomic_load(&r->bytes),
    };
}
