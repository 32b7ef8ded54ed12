/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/simulation/world.c - time, events, coroutines, and what the C library tells processes
 *
 * clock_gettime, epoll_wait and their like are this program's own, for our libraries and for
 * libuv: a process that waits gives the thread back, and is resumed when its time has come or when
 * one of its sources has something. getrandom, shm_open and locks are those of our libraries only
 * (ld --wrap).
 */
#undef _FORTIFY_SOURCE /* its longjmp knows of one stack only */
#include "tests/simulation/simulation.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/base/heap.h"
#include "common/base/log.h"
#include "common/base/loop.h"
#include "common/base/poison.h"
#include "common/snapshot/snapshot.h"

#define STACK_BYTES ((size_t)1 << 20)
#define BOOT_NS     (1000 * SECOND)
#define WALL_NS     INT64_C(1767225600000000000) /* 2026-01-01 */
#define TURN_MIN_NS 20000
#define TURN_MAX_NS 300000
#define LOOK_NS     150 /* a look at the clock takes time: nothing waits for it in vain */
/* A wait may end so much later than asked for: polling is rare in made-up time. */
#define LATE_MAX       (20 * MS)
#define LATE_MAX_PEACE (160 * MS)
#define CAUGHT_UP_NS   (12 * SECOND) /* what a stopped process has missed is seen to, and written */

struct world world = {.now_ns = BOOT_NS};
static jmp_buf outside;

/* ---- random numbers, words ------------------------------------------------------------------- */

void draw_for(enum stream s, uint64_t nth)
{
    const uint64_t from[] = {world.seed, s, nth};

    bh_rand_seed(&world.draw[s], bh_hash(from, sizeof(from), 0));
}

uint64_t draw(enum stream s, uint64_t below)
{
    return below ? bh_rand_below(&world.draw[s], below) : 0;
}

uint64_t draw_between(enum stream s, uint64_t from, uint64_t to)
{
    return from + draw(s, to - from + 1);
}

bool chance(enum stream s, unsigned percent)
{
    return draw(s, 100) < percent;
}

void note(const void *p, size_t n)
{
    world.trace = bh_hash(p, n, world.trace);
}

void say(const char *fmt, ...)
{
    char text[400];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    /* The folder has a random name: no two runs would be the same. */
    for (char *at = text; (at = strstr(at, FOLDER)); at += strlen(FOLDER))
        for (char *c = at + strlen(FOLDER); *c && *c != '/'; c++)
            *c = 'X';
    note(text, strlen(text));
    note(&world.now_ns, sizeof(world.now_ns));
    if (world.verbose)
        fprintf(stderr, "%12.6f %-14s %s\n", (double)(world.now_ns - BOOT_NS) / 1e9,
                world.running ? world.running->name : "-", text);
}

void fail(const char *fmt, ...)
{
    va_list ap;

    if (world.failure[0])
        return;
    va_start(ap, fmt);
    vsnprintf(world.failure, sizeof(world.failure), fmt, ap);
    va_end(ap);
}

/* ---- events ---------------------------------------------------------------------------------- */

struct event {
    uint64_t at_ns, order;
    uint32_t pos;
    void (*fn)(void *arg);
    void *arg;
};

static bool earlier(const void *x, const void *y)
{
    const struct event *a = x, *b = y;
    return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->order < b->order;
}

static struct bh_heap *events(void)
{
    static struct bh_heap heap;

    if (!heap.less)
        bh_heap_init(&heap, offsetof(struct event, pos), earlier);
    return &heap;
}

/* Those of one time come in a drawn order. */
void at(uint64_t when_ns, void (*fn)(void *arg), void *arg)
{
    struct event *e = bh_malloc(sizeof(*e));

    *e = (struct event){.at_ns = BH_MAX(when_ns, world.now_ns),
                        .order = bh_rand_u64(&world.draw[DRAW_ORDER]),
                        .pos = BH_HEAP_NONE,
                        .fn = fn,
                        .arg = arg};
    bh_heap_push(events(), e);
}

void run_until(uint64_t when_ns, bool (*done)(void))
{
    struct bh_heap *h = events();
    struct event *e;

    while ((e = bh_heap_peek(h)) && e->at_ns <= when_ns && !world.failure[0] && !(done && done())) {
        void (*fn)(void *) = e->fn;
        void *arg = e->arg;
        world.now_ns = BH_MAX(world.now_ns, e->at_ns);
        world.n_events++;
        bh_heap_remove(h, e);
        free(e);
        fn(arg);
    }
    if (!world.failure[0] && !(done && done()))
        world.now_ns = BH_MAX(world.now_ns, when_ns);
}

/* ---- processes ------------------------------------------------------------------------------- */

struct wakeup {
    struct process *p;
    unsigned life;
    uint64_t serial;
};

/* Not swapcontext, which asks the kernel for the signal mask each time. */
static __attribute__((noinline)) void go_in(struct process *p)
{
    if (_setjmp(outside) != 0)
        return;
    if (p->begun)
        _longjmp(p->inside, 1);
    p->begun = true;
    setcontext(&p->context);
}

static __attribute__((noinline)) void go_out(struct process *p)
{
    if (_setjmp(p->inside) == 0)
        _longjmp(outside, 1);
}

static void resume(struct process *p)
{
    world.running = p;
    go_in(p);
    world.running = NULL;
    if (!p->alive)
        process_over(p);
}

static void on_wakeup(void *arg)
{
    struct wakeup w = *(struct wakeup *)arg;

    free(arg);
    if (w.p->alive && w.life == w.p->life && w.serial == w.p->serial)
        resume(w.p);
}

static void wake_at(struct process *p, uint64_t when_ns)
{
    struct wakeup *w = bh_malloc(sizeof(*w));

    *w = (struct wakeup){p, p->life, ++p->serial};
    p->resume_ns = when_ns;
    if (when_ns == FOREVER)
        free(w);
    else
        at(when_ns, on_wakeup, w);
}

static void pause_until(uint64_t when_ns, bool may_wake)
{
    struct process *p = world.running;
    int e = errno;

    p->may_wake = may_wake;
    wake_at(p, when_ns);
    go_out(p);
    p->may_wake = false;
    errno = e;
}

void process_wait(uint64_t ns)
{
    pause_until(world.now_ns + ns, false);
}

static void process_body(void)
{
    struct process *p = world.running;

    p->main(p);
    p->alive = false;
    go_out(p);
    abort();
}

static void on_start(void *arg)
{
    struct process *p = arg;

    if (p->alive || !p->wanted)
        return;
    if (p->host && world.now_ns < p->host->up_ns) {
        process_start(p, p->host->up_ns - world.now_ns);
        return;
    }
    p->life++;
    p->alive = true;
    p->stopped = false;
    p->begun = p->killed = p->copying = false;
    p->steps_left = 0;
    p->in_publication = p->in_request = false;
    LIST_INIT(&p->sources);
    LIST_INIT(&p->held);
    p->on_term = p->on_hup = NULL;
    if (!p->stack)
        p->stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    bh_assert(p->stack != MAP_FAILED);
    ASAN_UNPOISON_MEMORY_REGION(p->stack,
                                STACK_BYTES); /* frames of the life before were never left */
    getcontext(&p->context);
    p->context.uc_stack.ss_sp = p->stack;
    p->context.uc_stack.ss_size = STACK_BYTES;
    makecontext(&p->context, process_body, 0);
    resume(p);
}

void process_start(struct process *p, uint64_t delay_ns)
{
    at(world.now_ns + delay_ns, on_start, p);
}

struct held {
    LIST_ENTRY(held) link;
    int fd;
};

/* What the kernel does when a process ends: its locks are free, its connections closed. */
static void let_go(struct process *p)
{
    struct held *h;

    while ((h = LIST_FIRST(&p->held))) {
        LIST_REMOVE(h, link);
        syscall(SYS_close, h->fd);
        free(h);
    }
    bus_process_gone(p);
    if (p->host)
        api_process_gone(p);
    else
        api_server_gone();
}

void process_kill(struct process *p)
{
    if (!p->alive)
        return;
    say("kill %s", p->name);
    if (p->in_publication)
        reach(killed_in_publication);
    p->alive = false;
    p->killed = true;
    let_go(p);
    if (world.running == p) {
        go_out(p);
        abort();
    }
    process_over(p);
}

static void on_continue(void *arg)
{
    struct wakeup w = *(struct wakeup *)arg;

    free(arg);
    if (!w.p->alive || w.life != w.p->life || !w.p->stopped)
        return;
    say("continue %s", w.p->name);
    w.p->stopped = false;
    wake_at(w.p, world.now_ns);
}

void process_stop(struct process *p, uint64_t ns)
{
    struct wakeup *w;

    if (!p->alive || p->stopped)
        return;
    w = bh_malloc(sizeof(*w));
    *w = (struct wakeup){p, p->life, 0};
    say("stop %s for %.3f s", p->name, (double)ns / 1e9);
    if (ns > 15 * SECOND)
        reach(stopped_past_lease);
    p->stopped = true;
    world.doubt_until_ns = BH_MAX(world.doubt_until_ns, world.now_ns + ns + CAUGHT_UP_NS);
    at(world.now_ns + ns, on_continue, w);
    p->serial++; /* nothing else wakes it */
    if (p->in_publication)
        reach(stopped_in_publication);
    if (world.running == p) {
        reach(stopped_in_a_step);
        p->may_wake = false;
        go_out(p);
    }
}

void step(void)
{
    struct process *p = world.running;

    world.n_steps++;
    if (!p || !p->steps_left || (p->publication_only && !p->in_publication) ||
        (p->request_only && !p->in_request) || --p->steps_left)
        return;
    if (p->stop_ns)
        process_stop(p, p->stop_ns);
    else
        process_kill(p);
}

/* ---- the product's log ----------------------------------------------------------------------- */

void __real_bh_log_write(enum bh_log_level level, const char *file, int line, const char *msg,
                         const struct bh_log_kv *kv);
void __wrap_bh_log_write(enum bh_log_level level, const char *file, int line, const char *msg,
                         const struct bh_log_kv *kv);

/* A host that is stopped takes itself for the leader when the next one is it already. */
static void see_lease(const char *msg)
{
    struct host *h = world.running ? world.running->host : NULL;

    if (h && world.running->kind == P_SCHEDULER) {
        h->decides |= strcmp(msg, "Scheduler decides") == 0;
        h->decides &= strcmp(msg, "Scheduler pauses") != 0;
    }
    if (!h || world.running->kind != P_WATCHER)
        return;
    if (strcmp(msg, "Successfully acquired lease") == 0) {
        for (unsigned i = 0; i < world.n_hosts; i++)
            if (world.host[i].leads && &world.host[i] != h)
                reach(leader_unaware_of_next);
        h->leads = true;
        world.leader = h;
        world.doubt_until_ns = BH_MAX(world.doubt_until_ns, world.now_ns + CAUGHT_UP_NS);
    } else if (strcmp(msg, "Leaderelection lost") == 0 || strcmp(msg, "Giving up the lease") == 0) {
        h->leads = false;
    }
}

static uint64_t number_of(const struct bh_log_kv *kv, const char *key)
{
    for (; kv && kv->key; kv++)
        if (strcmp(kv->key, key) == 0)
            return kv->u;
    return 0;
}

void __wrap_bh_log_write(enum bh_log_level level, const char *file, int line, const char *msg,
                         const struct bh_log_kv *kv)
{
    static const struct {
        const char *text;
        enum reached what;
    } known[] = {
#define L(name, text) {text, R_##name},
        LOGGED_LIST
#undef L
    };

    note(msg, strlen(msg));
    see_lease(msg);
    for (size_t i = 0; i < BH_ARRAY_LEN(known); i++) {
        if (strcmp(known[i].text, msg) != 0)
            continue;
        world.reached[known[i].what]++;
        if (known[i].what == R_former_binder_silent || known[i].what == R_bind_adopted ||
            (known[i].what == R_binders_heard_first && number_of(kv, "binds")))
            world.doubt_until_ns = BH_MAX(world.doubt_until_ns, world.now_ns + DOUBT_NS);
    }
    if (strncmp(msg, "A pending pod was lost", 22) == 0)
        fail("%s: %s", world.running ? world.running->name : "?", msg);
    if (world.verbose)
        __real_bh_log_write(level, file, line, msg, kv);
}

/* ---- sources --------------------------------------------------------------------------------- */

static void on_source(uv_poll_t *h, int status, int what)
{
    struct source *s = h->data;

    (void)status, (void)what;
    if (!s->closing)
        s->fn(s->arg);
}

struct source *source_new(uv_loop_t *loop, void (*fn)(void *arg), void *arg)
{
    struct source *s = bh_calloc(1, sizeof(*s));
    int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

    bh_assert(fd >= 0 && world.running);
    s->of = world.running;
    s->fn = fn;
    s->arg = arg;
    uv_poll_init(loop, &s->poll, fd);
    s->poll.data = s;
    uv_poll_start(&s->poll, UV_READABLE, on_source);
    LIST_INSERT_HEAD(&s->of->sources, s, link);
    return s;
}

/* It takes a moment until a process runs. */
void source_set(struct source *s)
{
    struct process *p = s->of;
    uint64_t soon = world.now_ns + draw_between(DRAW_ORDER, 5000, 80000);

    if (s->set || s->closing)
        return;
    s->set = true;
    if (p->may_wake && !p->stopped && p->resume_ns > soon)
        wake_at(p, soon);
}

static void on_source_closed(uv_handle_t *h)
{
    struct source *s = h->data;
    int fd;

    if (uv_fileno(h, &fd) == 0)
        syscall(SYS_close, fd);
    free(s);
}

void source_close(struct source *s)
{
    int fd = -1;

    if (!s || s->closing)
        return;
    s->closing = true;
    LIST_REMOVE(s, link);
    (void)uv_fileno((uv_handle_t *)&s->poll, &fd);
    uv_close((uv_handle_t *)&s->poll, on_source_closed);
    if (fd >= 0)
        syscall(SYS_close, fd);
}

/* As many as fit; the flag is the event. */
static int collect(struct process *p, struct epoll_event *out, int max)
{
    struct source *s;
    int n = 0;

    LIST_FOREACH(s, &p->sources, link) {
        uv_os_fd_t fd;
        if (!s->set || n == max || uv_fileno((uv_handle_t *)&s->poll, &fd) < 0)
            continue;
        s->set = false;
        out[n] = (struct epoll_event){.events = EPOLLIN};
        out[n++].data.fd = fd;
    }
    return n;
}

static bool has_news(const struct process *p)
{
    const struct source *s;

    LIST_FOREACH(s, &p->sources, link)
        if (s->set)
            return true;
    return false;
}

int epoll_pwait(int fd, struct epoll_event *events, int max, int timeout, const sigset_t *mask)
{
    struct process *p = world.running;
    uint64_t turn = world.now_ns + draw_between(DRAW_ORDER, TURN_MIN_NS, TURN_MAX_NS);
    uint64_t late = draw(DRAW_ORDER, world.peace ? LATE_MAX_PEACE : LATE_MAX);
    uint64_t until = timeout < 0 ? FOREVER : world.now_ns + (uint64_t)timeout * MS + late;

    (void)mask, (void)fd;
    bh_assert(p);
    if (timeout && until > turn && !has_news(p))
        pause_until(until, true);
    else
        pause_until(turn, false);
    return collect(p, events, max);
}

int epoll_wait(int fd, struct epoll_event *events, int max, int timeout)
{
    return epoll_pwait(fd, events, max, timeout, NULL);
}

int epoll_ctl(int fd, int op, int what, struct epoll_event *e)
{
    (void)fd, (void)op, (void)what, (void)e;
    return 0;
}

/* ---- signals --------------------------------------------------------------------------------- */

struct bh_signals {
    struct source *stop, *hup;
};
struct bh_signals *__wrap_bh_signals_new(uv_loop_t *loop, void (*on_stop)(void *),
                                         void (*on_hup)(void *), void *arg);
void __wrap_bh_signals_close(struct bh_signals *s);

struct bh_signals *__wrap_bh_signals_new(uv_loop_t *loop, void (*on_stop)(void *),
                                         void (*on_hup)(void *), void *arg)
{
    struct bh_signals *s = bh_calloc(1, sizeof(*s));

    s->stop = world.running->on_term = source_new(loop, on_stop, arg);
    uv_unref((uv_handle_t *)&s->stop->poll);
    if (on_hup) {
        s->hup = world.running->on_hup = source_new(loop, on_hup, arg);
        uv_unref((uv_handle_t *)&s->hup->poll);
    }
    return s;
}

void __wrap_bh_signals_close(struct bh_signals *s)
{
    if (!s)
        return;
    s->stop->of->on_term = s->stop->of->on_hup = NULL;
    source_close(s->stop);
    source_close(s->hup);
    free(s);
}

void process_term(struct process *p)
{
    if (!p->alive || !p->on_term)
        return;
    say("end %s", p->name);
    reach(told_to_end);
    source_set(p->on_term);
}

void process_hup(struct process *p)
{
    if (!p->alive || !p->on_hup)
        return;
    say("reload %s", p->name);
    source_set(p->on_hup);
}

/* ---- clocks ---------------------------------------------------------------------------------- */

static int64_t wall_ns(void)
{
    const struct process *p = world.running;

    return WALL_NS + (int64_t)(world.now_ns - BOOT_NS) + (p && p->host ? p->host->wall_off_ns : 0);
}

/* Each machine counts from its own start, and none as fast as another. */
uint64_t boot_ns(void)
{
    const struct host *h = world.running ? world.running->host : NULL;
    const int64_t now = (int64_t)world.now_ns;

    return (uint64_t)(h ? now + now / 1000000 * h->boot_ppm + h->boot_off_ns : now);
}

/* A process may be stopped before it looks, or right after. */
static uint64_t look(void)
{
    uint64_t now;

    step();
    world.now_ns += LOOK_NS;
    now = boot_ns();
    step();
    return now;
}

uint64_t bh_mono_ns(void)
{
    return look();
}

uint64_t bh_boot_ns(void)
{
    return look();
}

int64_t bh_wall_ns(void)
{
    return wall_ns();
}

int clock_gettime(clockid_t id, struct timespec *ts)
{
    int64_t ns =
        id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE ? wall_ns() : (int64_t)boot_ns();
    *ts = (struct timespec){ns / 1000000000, ns % 1000000000};
    return 0;
}

/* ---- what the kernel has --------------------------------------------------------------------- */

ssize_t __wrap_getrandom(void *p, size_t n, unsigned flags);
int __wrap_gethostname(char *name, size_t n);
int __wrap_shm_open(const char *name, int flags, mode_t mode);
int __real_shm_open(const char *name, int flags, mode_t mode);
int __wrap_flock(int fd, int op);
int __wrap_fcntl(int fd, int cmd, ...);
int __wrap_close(int fd);
int __wrap_bh_reserve_file(int fd, uint64_t bytes);
int __real_bh_reserve_file(int fd, uint64_t bytes);

int __wrap_bh_read_file(const char *path, size_t max, char **ret_p, size_t *ret_n);
int __real_bh_read_file(const char *path, size_t max, char **ret_p, size_t *ret_n);

static bool is_shared[1 << 14]; /* descriptors */

/* Files are real; the identity of a boot is the host's. */
int __wrap_bh_read_file(const char *path, size_t max, char **ret_p, size_t *ret_n)
{
    const struct host *h = world.running ? world.running->host : NULL;

    if (!h || !bh_streq(path, "/proc/sys/kernel/random/boot_id"))
        return __real_bh_read_file(path, max, ret_p, ret_n);
    *ret_p = bh_asprintf("%08x-0000-4000-8000-%012x\n", (unsigned)h->n, h->boots);
    *ret_n = strlen(*ret_p);
    return 0;
}

ssize_t __wrap_getrandom(void *p, size_t n, unsigned flags)
{
    uint8_t *out = p;

    (void)flags;
    for (size_t i = 0; i < n; i++)
        out[i] = (uint8_t)draw(DRAW_ENTROPY, 256);
    return (ssize_t)n;
}

int __wrap_gethostname(char *name, size_t n)
{
    snprintf(name, n, "%s",
             world.running && world.running->host ? world.running->host->name : "nowhere");
    return 0;
}

/* Real shared memory; its names are kept for whoever clears up after this run. */
int __wrap_shm_open(const char *name, int flags, mode_t mode)
{
    int fd = __real_shm_open(name, flags, mode), list;
    char path[96];

    if (fd >= 0)
        is_shared[fd % BH_ARRAY_LEN(is_shared)] = true;
    if (fd < 0 || !(flags & O_CREAT))
        return fd;
    snprintf(path, sizeof(path), "%s/" SHM_NAMES, world.dir);
    list = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    dprintf(list, "%s %d\n", name,
            world.running && world.running->host ? world.running->host->n : -1);
    syscall(SYS_close, list);
    return fd;
}

void shared_memory_gone(const char *dir, const struct host *h)
{
    char path[96], name[128];
    int of;
    FILE *f;

    snprintf(path, sizeof(path), "%s/" SHM_NAMES, dir);
    f = fopen(path, "re");
    while (f && fscanf(f, "%127s %d", name, &of) == 2)
        if (!h || h->n == of)
            (void)shm_unlink(name);
    if (f)
        fclose(f);
}

/* Of a file or of shared memory; where there is no room for a while. */
int __wrap_bh_reserve_file(int fd, uint64_t bytes)
{
    const struct host *h = world.running ? world.running->host : NULL;
    const bool shared = is_shared[fd % BH_ARRAY_LEN(is_shared)];

    step();
    if (!h || !(shared ? h->shm_full : h->disk_full))
        return __real_bh_reserve_file(fd, bytes);
    if (shared)
        reach(shared_memory_full);
    else
        reach(disk_full);
    if (!shared) /* what is on the wire is not written down */
        world.doubt_until_ns = BH_MAX(world.doubt_until_ns, world.now_ns + DOUBT_NS);
    return -ENOSPC;
}

static void hold(int fd)
{
    struct held *h;

    if (!world.running)
        return;
    LIST_FOREACH(h, &world.running->held, link)
        if (h->fd == fd)
            return;
    h = bh_malloc(sizeof(*h));
    h->fd = fd;
    LIST_INSERT_HEAD(&world.running->held, h, link);
}

int __wrap_flock(int fd, int op)
{
    hold(fd);
    return (int)syscall(SYS_flock, fd, op);
}

int __wrap_fcntl(int fd, int cmd, ...)
{
    va_list ap;

    va_start(ap, cmd);
    long arg = va_arg(ap, long);
    va_end(ap);
    if (cmd == F_OFD_SETLK)
        hold(fd);
    return (int)syscall(SYS_fcntl, fd, cmd, arg);
}

int __wrap_close(int fd)
{
    struct held *h;

    if (fd >= 0)
        is_shared[fd % BH_ARRAY_LEN(is_shared)] = false;

    if (world.running) {
        LIST_FOREACH(h, &world.running->held, link) {
            if (h->fd != fd)
                continue;
            LIST_REMOVE(h, link);
            free(h);
            break;
        }
    }
    return (int)syscall(SYS_close, fd);
}
