/* SPDX-License-Identifier: Apache-2.0
 *
 * A plugin at every extension point, for `mode: process`: what a callback does to its process, for a pod
 * with the label at: CALLBACK, stands in its label do: segv, hang, exit, memory, lie1 to lie3, or look: what the
 * sandbox lets it do becomes its reason. once: a signal the first time, of which a file of the callback's name in
 * $BERTH_CRASHES_DIR tells. Other pods go to nodes with a rank of at least that of their label
 * `least`, and to the highest; pod and node are seen through as many accessors as there are. ApartKept: a smaller
 * one, whose answers and states are kept for all pods of a template. ApartOthers: one that keeps account of all
 * nodes by what changed, and lets no node have more than its share. ApartRows: batch forms, which for a pod with
 * the label do give what may not be: code, text, long, score, rows (changed), undeclared, thread (the host is called
 * by one of its own, and answers nothing: that decides). do: stop logs the callback and never returns, so that a test
 * can kill the process there. ApartWaits: a pod with the label `size` waits at Permit until as many have come; which
 * ones they are is in the plugin's memory. Its argument `wrong` is how many errors it finds in its arguments.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "berth/plugin.h"

static const struct berth_host *host;

struct instance {
    struct berth_home *home;
    berth_sym at, does, rank, least, cpu, pods;
    uint32_t decided; /* a metric */
};

static int32_t create(struct berth_home *home, const struct berth_value *args, void **ret,
                      struct berth_why *why)
{
    struct instance *in = calloc(1, sizeof *in);

    (void)args, (void)why;
    in->home = home;
    in->at = host->base->intern(home, BERTH_STR("at"));
    in->does = host->base->intern(home, BERTH_STR("do"));
    in->rank = host->base->intern(home, BERTH_STR("rank"));
    in->least = host->base->intern(home, BERTH_STR("least"));
    in->cpu = host->base->intern(home, BERTH_STR("cpu"));
    in->pods = host->base->intern(home, BERTH_STR("pods"));
    in->decided = host->metrics->define(home, BERTH_COUNTER, BERTH_STR("decided_total"),
                                        BERTH_STR("Pods that Reserve saw"), NULL, 0);
    *ret = in;
    return BERTH_SUCCESS;
}

static long number(struct instance *in, berth_sym s)
{
    struct berth_str t = {"0", 1};
    char text[32];

    if (s != BERTH_SYM_ABSENT)
        t = host->base->text(in->home, s);
    snprintf(text, sizeof text, "%.*s", (int)t.n, t.p);
    return strtol(text, NULL, 10);
}

static int is(struct instance *in, berth_sym s, const char *text)
{
    struct berth_str t = {"", 0};

    if (s != BERTH_SYM_ABSENT)
        t = host->base->text(in->home, s);
    return t.n == strlen(text) && memcmp(t.p, text, t.n) == 0;
}

static void *nothing(void *arg)
{
    return arg;
}

/* What it came to while the file was loaded: a descriptor of a file that a constructor opened, and what the entry's
 * attempt says (0, or an errno). */
static int opened = -1, at_entry;
__attribute__((constructor)) static void open_early(void)
{
    opened = open("/etc/passwd", O_RDONLY | O_CLOEXEC);
}

/* Each is what it came to: 0, or an errno. */
static const char *look(void)
{
    static char text[256];
    char *const argv[] = {(char *)(size_t) "/bin/true", NULL};
    struct rlimit r;
    pthread_t t;
    int at = 0;
    char c;

    errno = 0;
    int fd = open("/etc/passwd", O_RDONLY);
    at += snprintf(text + at, sizeof text - (size_t)at, "open %d", fd < 0 ? errno : 0);
    fd = socket(AF_INET, SOCK_STREAM, 0);
    at += snprintf(text + at, sizeof text - (size_t)at, " socket %d", fd < 0 ? errno : 0);
    int rc = execv("/bin/true", argv);
    at += snprintf(text + at, sizeof text - (size_t)at, " exec %d", rc < 0 ? errno : 0);
    rc = fork();
    if (rc == 0)
        _exit(0);
    at += snprintf(text + at, sizeof text - (size_t)at, " fork %d", rc < 0 ? errno : 0);
    rc = kill(getppid(), 0);
    at += snprintf(text + at, sizeof text - (size_t)at, " kill %d", rc < 0 ? errno : 0);
    void *p =
        mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    at += snprintf(text + at, sizeof text - (size_t)at, " code %d", p == MAP_FAILED ? errno : 0);
    p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, 4, 0);
    at += snprintf(text + at, sizeof text - (size_t)at, " down %d", p == MAP_FAILED ? errno : 0);
    p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    at += snprintf(text + at, sizeof text - (size_t)at, " shared %d", p == MAP_FAILED ? errno : 0);
    rc = prlimit(INT_MAX, RLIMIT_CPU, NULL, &r); /* there is none: ESRCH, were it looked for */
    at += snprintf(text + at, sizeof text - (size_t)at, " limits %d", rc < 0 ? errno : 0);
    rc = prlimit(0, RLIMIT_STACK, NULL, &r); /* the C library asks for a thread's stack */
    at += snprintf(text + at, sizeof text - (size_t)at, " own %d", rc < 0 ? errno : 0);
    rc = opened < 0 ? 0 : (int)read(opened, &c, 1);
    at += snprintf(text + at, sizeof text - (size_t)at, " kept %d entry %d", rc < 0 ? errno : 0,
                   at_entry);
    rc = pthread_create(&t, NULL, nothing, NULL);
    if (rc == 0)
        pthread_join(t, NULL);
    at += snprintf(text + at, sizeof text - (size_t)at, " thread %d environment %d", rc,
                   getenv("PATH") != NULL);
    /* Signals by which only others end it. */
    static const int external[] = {SIGKILL, SIGTERM, SIGINT, SIGHUP, SIGQUIT};
    int denied = 0;
    for (size_t i = 0; i < sizeof external / sizeof *external; i++)
        denied += raise(external[i]) != 0 && kill(getpid(), external[i]) != 0;
    at += snprintf(text + at, sizeof text - (size_t)at, " ends %d", denied);
    return text;
}

/* An answer that its process would never give, in the memory that the scheduler reads. */
static void lie(uint64_t bytes, uint32_t aside, const uint64_t *words, size_t n)
{
    char *up = mmap(NULL, (size_t)32 << 20, PROT_READ | PROT_WRITE, MAP_SHARED, 5, 0);

    if (up == MAP_FAILED)
        _exit(9);
    memcpy(up + 8, &bytes, sizeof bytes);
    memcpy(up + 16, &aside, sizeof aside);
    memcpy(up + 64 + (aside ? (size_t)24 << 20 : 0), words, n * sizeof *words);
    __atomic_fetch_add((uint32_t *)(void *)up, 1, __ATOMIC_SEQ_CST);
    for (;;)
        pause();
}

static int path_of(const char *callback, char *path, size_t n)
{
    const char *dir = getenv("BERTH_CRASHES_DIR");

    return dir && snprintf(path, n, "%s/%s", dir, callback) < (int)n;
}

static void once(const char *callback)
{
    char path[4096];
    int fd = path_of(callback, path, sizeof path)
                 ? open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600)
                 : -1;

    if (fd < 0)
        return;
    close(fd);
    raise(SIGSEGV);
}

static int was_there(const char *callback)
{
    char path[4096];

    return path_of(callback, path, sizeof path) && access(path, F_OK) == 0;
}

static const char *meets(struct instance *in, struct berth_call *c, const char *callback)
{
    const struct berth_pod *pod = host->pods->current(c);

    if (!pod || !is(in, host->pods->label(c, pod, in->at), callback))
        return NULL;
    const berth_sym what = host->pods->label(c, pod, in->does);
    if (is(in, what, "segv"))
        raise(SIGSEGV);
    while (is(in, what, "hang"))
        pause();
    if (is(in, what, "stop")) {
        host->base->log(in->home, BERTH_LOG_INFO, BERTH_STR("stops"));
        for (;;)
            pause();
    }
    if (is(in, what, "exit"))
        _exit(3);
    while (is(in, what, "memory")) {
        char *p = malloc((size_t)64 << 20);
        memset(p, 1, 4096);
    }
    static char text[UINT16_MAX];
    for (uint32_t n = 0; is(in, what, "intern"); n++) { /* a symbol after the other */
        memcpy(text, &n, sizeof n);
        host->base->intern(in->home, (struct berth_str){text, sizeof text});
    }
    if (is(in, what, "once"))
        once(callback);
    if (is(in, what, "lie1")) /* longer than the memory is */
        lie(UINT64_MAX, 0, NULL, 0);
    if (is(in, what, "lie2")) /* texts and results beyond its end */
        lie(48, 0, (const uint64_t[]){0, 0, 0, UINT64_MAX - 7, UINT64_MAX, 0}, 6);
    if (is(in, what, "lie3")) /* a question that there is not */
        lie(8, 1, (const uint64_t[]){99}, 1);
    return is(in, what, "look") ? look() : NULL;
}

static int32_t pre_enqueue(void *self, struct berth_call *c, struct berth_why *why)
{
    (void)why;
    meets(self, c, "PreEnqueue");
    return BERTH_SUCCESS;
}
static uint64_t epoch(void *self, struct berth_call *c)
{
    meets(self, c, "epoch");
    return 1;
}
static int32_t idle(void *self, struct berth_call *c)
{
    meets(self, c, "idle");
    return 0;
}
static int32_t hint(void *self, struct berth_call *c, const struct berth_change *ch)
{
    (void)ch;
    meets(self, c, "hint");
    return 1;
}

struct state {
    long least;
    long pods; /* that were added to or taken from nodes */
};

static int32_t pre_filter(void *self, struct berth_call *c, const berth_sym **names,
                          uint64_t *n_names, struct berth_why *why)
{
    struct instance *in = self;
    const char *seen = meets(in, c, "PreFilter");
    struct state *s = host->base->alloc(c, sizeof *s);

    (void)names, (void)n_names;
    if (seen) {
        why->reason = (struct berth_str){seen, strlen(seen)};
        return BERTH_UNSCHEDULABLE;
    }
    s->least = number(in, host->pods->label(c, host->pods->current(c), in->least));
    *host->base->filter_state(c) = s;
    return BERTH_SUCCESS;
}
static int32_t change_pod(void *self, struct berth_call *c, const struct berth_pod *pod,
                          const struct berth_node *node, int32_t by, struct berth_why *why)
{
    struct state *s = *host->base->filter_state(c);

    (void)pod, (void)node, (void)why;
    meets(self, c, "AddPod");
    s->pods += by;
    return BERTH_SUCCESS;
}
static void *clone_state(void *self, struct berth_call *c, const void *state)
{
    struct state *s = host->base->alloc(c, sizeof *s);

    (void)self;
    memcpy(s, state, sizeof *s);
    return s;
}

/* At most 40 pods' worth of labels, so that pods are looked at. */
static long labels_there(struct berth_call *c, const struct berth_node *node)
{
    long n = 0;

    for (uint32_t i = 0; i < host->nodes->n_pods(c, node); i++)
        n += host->pods->n_labels(c, host->nodes->pod_at(c, node, i));
    return n;
}

static int32_t filter(void *self, struct berth_call *c, const struct berth_node *node,
                      struct berth_why *why)
{
    struct instance *in = self;
    const struct state *s = *host->base->filter_state(c);

    meets(in, c, "Filter");
    if (labels_there(c, node) + s->pods > 40) {
        why->reason = BERTH_STR("too many labels");
        return BERTH_UNSCHEDULABLE;
    }
    if (number(in, host->nodes->label(c, node, in->rank)) < s->least) {
        why->reason = BERTH_STR("too low a rank");
        return BERTH_UNRESOLVABLE;
    }
    return BERTH_SUCCESS;
}
static int32_t post_filter(void *self, struct berth_call *c, struct berth_post_filter *ret,
                           struct berth_why *why)
{
    (void)ret, (void)why;
    meets(self, c, "PostFilter");
    return BERTH_UNSCHEDULABLE;
}
static int32_t pre_score(void *self, struct berth_call *c, const uint32_t *rows, uint64_t n,
                         struct berth_why *why)
{
    (void)rows, (void)n, (void)why;
    meets(self, c, "PreScore");
    return BERTH_SUCCESS;
}
static int32_t score(void *self, struct berth_call *c, const struct berth_node *node, int64_t *ret,
                     struct berth_why *why)
{
    struct instance *in = self;

    (void)why;
    meets(in, c, "Score");
    *ret = 10 * number(in, host->nodes->label(c, node, in->rank)) +
           host->nodes->requested(c, node, in->cpu) / 100 -
           host->nodes->requested(c, node, in->pods);
    return BERTH_SUCCESS;
}
static int32_t normalize(void *self, struct berth_call *c, int64_t *scores, uint64_t n,
                         struct berth_why *why)
{
    int64_t least = n ? scores[0] : 0, most = least;

    (void)why;
    meets(self, c, "NormalizeScore");
    for (uint64_t i = 0; i < n; i++) {
        least = scores[i] < least ? scores[i] : least;
        most = scores[i] > most ? scores[i] : most;
    }
    for (uint64_t i = 0; i < n; i++)
        scores[i] = most > least ? 100 * (scores[i] - least) / (most - least) : 0;
    return BERTH_SUCCESS;
}
static int32_t reserve(void *self, struct berth_call *c, berth_sym node, struct berth_why *why)
{
    struct instance *in = self;

    (void)node, (void)why;
    meets(in, c, "Reserve");
    host->metrics->add(in->home, in->decided, 1);
    return BERTH_SUCCESS;
}
static void unreserve(void *self, struct berth_call *c, berth_sym node)
{
    (void)node;
    meets(self, c, "Unreserve");
}
static int32_t permit(void *self, struct berth_call *c, berth_sym node, int64_t *wait_ns,
                      struct berth_why *why)
{
    struct instance *in = self;

    (void)node;
    meets(in, c, "Permit");
    if (is(in, host->pods->label(c, host->pods->current(c), in->at), "Unreserve") &&
        !was_there("Unreserve")) {
        why->reason = BERTH_STR("not permitted");
        return BERTH_UNSCHEDULABLE;
    }
    *wait_ns = 0;
    return BERTH_SUCCESS;
}
static int32_t pre_bind(void *self, struct berth_call *c, berth_sym node, struct berth_why *why)
{
    (void)node, (void)why;
    meets(self, c, "PreBind");
    return BERTH_SUCCESS;
}
static int32_t bind_(void *self, struct berth_call *c, berth_sym node, struct berth_why *why)
{
    (void)node, (void)why;
    meets(self, c, "Bind");
    return BERTH_SKIP;
}
static void post_bind(void *self, struct berth_call *c, berth_sym node)
{
    struct instance *in = self;

    (void)node;
    meets(in, c, "PostBind");
    host->events->emit(c, host->pods->current(c), BERTH_EVENT_NORMAL, BERTH_STR("SeenApart"),
                       BERTH_STR("PostBind ran"));
    host->base->log(in->home, BERTH_LOG_INFO, BERTH_STR("one more is bound"));
}

static const struct berth_event events[] = {{BERTH_ON_NODE, BERTH_ALL},
                                            {BERTH_ON_POD, BERTH_DELETE}};
static const struct berth_plugin plugin = {
    .size = sizeof plugin,
    .name = {"Apart", 5},
    .reads = BERTH_READS_NODE | BERTH_READS_SUMS | BERTH_READS_PODS,
    .events = events,
    .n_events = 2,
    .create = create,
    .destroy = free,
    .epoch = epoch,
    .pre_enqueue = pre_enqueue,
    .hint = hint,
    .pre_filter = pre_filter,
    .change_pod = change_pod,
    .clone_state = clone_state,
    .filter = filter,
    .post_filter = post_filter,
    .pre_score = pre_score,
    .score = score,
    .normalize = normalize,
    .reserve = reserve,
    .unreserve = unreserve,
    .permit = permit,
    .idle = idle,
    .pre_bind = pre_bind,
    .bind = bind_,
    .post_bind = post_bind,
};

static int32_t pre_score_kept(void *self, struct berth_call *c, const uint32_t *rows, uint64_t n,
                              struct berth_why *why)
{
    struct instance *in = self;
    struct state *s = host->base->alloc(c, sizeof *s);

    (void)rows, (void)n, (void)why;
    s->least = number(in, host->pods->label(c, host->pods->current(c), in->least));
    *host->base->score_state(c) = s;
    return BERTH_SUCCESS;
}
static int32_t score_kept(void *self, struct berth_call *c, const struct berth_node *node,
                          int64_t *ret, struct berth_why *why)
{
    struct instance *in = self;
    const struct state *s = *host->base->score_state(c);

    (void)why;
    *ret = 10 * number(in, host->nodes->label(c, node, in->rank)) + s->least;
    return BERTH_SUCCESS;
}

static const struct berth_plugin kept = {
    .size = sizeof kept,
    .name = {"ApartKept", 9},
    .reads = BERTH_READS_NODE | BERTH_READS_SUMS | BERTH_READS_PODS,
    .create = create,
    .destroy = free,
    .pre_filter = pre_filter,
    .filter = filter,
    .pre_score = pre_score_kept,
    .score = score_kept,
};

/* ---- all nodes, by what changed -------------------------------------------------------------- */

struct account {
    struct instance in; /* first */
    uint64_t at;
    uint32_t n_rows, n_nodes, sum;
    int32_t *pods; /* by row; -1: no node */
};

static int32_t create_account(struct berth_home *home, const struct berth_value *args, void **ret,
                              struct berth_why *why)
{
    void *in = NULL;
    int32_t code = create(home, args, &in, why);
    struct account *a = calloc(1, sizeof *a);

    memcpy(&a->in, in, sizeof a->in);
    free(in);
    *ret = a;
    return code;
}
static void free_account(void *self)
{
    struct account *a = self;

    free(a->pods);
    free(a);
}

static void look_at(struct account *a, struct berth_call *c, uint32_t row)
{
    const struct berth_node *node = host->columns->node(c, row);

    a->pods[row] = node ? (int32_t)host->nodes->n_pods(c, node) : -1;
}

static int32_t pre_filter_account(void *self, struct berth_call *c, const berth_sym **names,
                                  uint64_t *n_names, struct berth_why *why)
{
    struct account *a = self;
    const uint32_t n_rows = host->columns->n_rows(c);
    uint32_t rows[4], n;

    (void)names, (void)n_names, (void)why;
    a->pods = realloc(a->pods, (n_rows + 1) * sizeof *a->pods);
    for (; a->n_rows < n_rows; a->n_rows++)
        a->pods[a->n_rows] = -1;
    while ((n = host->columns->changed(c, &a->at, rows, 4)) != 0 && n != UINT32_MAX)
        for (uint32_t i = 0; i < n; i++)
            look_at(a, c, rows[i]);
    for (uint32_t row = 0; n == UINT32_MAX && row < n_rows; row++)
        look_at(a, c, row);
    a->n_nodes = a->sum = 0;
    for (uint32_t row = 0; row < n_rows; row++) {
        a->n_nodes += a->pods[row] >= 0;
        a->sum += a->pods[row] > 0 ? (uint32_t)a->pods[row] : 0;
    }
    return BERTH_SUCCESS;
}
static int32_t filter_account(void *self, struct berth_call *c, const struct berth_node *node,
                              struct berth_why *why)
{
    const struct account *a = self;
    const uint32_t n = (uint32_t)a->pods[host->nodes->row(c, node)];

    meets(self, c, "Filter");
    if (n != host->nodes->n_pods(c, node))
        why->reason = BERTH_STR("others than it was told");
    else if (n * a->n_nodes > a->sum)
        why->reason = BERTH_STR("more than its share");
    else
        return BERTH_SUCCESS;
    return BERTH_UNRESOLVABLE;
}

static const struct berth_plugin account = {
    .size = sizeof account,
    .name = {"ApartOthers", 11},
    .reads = BERTH_READS_NODE | BERTH_READS_PODS | BERTH_READS_OTHERS,
    .create = create_account,
    .destroy = free_account,
    .pre_filter = pre_filter_account,
    .filter = filter_account,
};

/* ---- batch forms, and answers that may not be ------------------------------------------------- */

struct stray {
    struct instance *in;
    struct berth_call *c;
    int got; /* anything */
};
static void *calls_host(void *arg)
{
    struct stray *s = arg;

    s->got = host->pods->current(s->c) != NULL || host->nodes->count(s->c) != 0 ||
             host->base->alloc(s->c, 8) != NULL ||
             host->base->intern(s->in->home, BERTH_STR("of a thread")) != 0 ||
             host->columns->label(s->c, s->in->rank) != NULL;
    return NULL;
}

static int wants(struct instance *in, struct berth_call *c, const char *what)
{
    return is(in, host->pods->label(c, host->pods->current(c), in->does), what);
}

static int32_t strange(struct instance *in, struct berth_call *c, struct berth_why *why)
{
    static char text[2048];
    struct stray s = {in, c, 0};
    pthread_t t;

    if (wants(in, c, "code"))
        return 17;
    why->reason = BERTH_STR("\xc3\x28");
    if (wants(in, c, "text"))
        return BERTH_UNRESOLVABLE;
    memset(text, 'x', sizeof text);
    why->reason = (struct berth_str){text, sizeof text};
    if (wants(in, c, "long"))
        return BERTH_UNRESOLVABLE;
    if (wants(in, c, "undeclared"))
        host->base->now(c);
    if (wants(in, c, "thread") && pthread_create(&t, NULL, calls_host, &s) == 0) {
        pthread_join(t, NULL);
        why->reason = s.got ? BERTH_STR("a thread was answered") : BERTH_STR("no thread is");
        return BERTH_UNRESOLVABLE;
    }
    return BERTH_SUCCESS;
}

static int32_t filter_strange(void *self, struct berth_call *c, const struct berth_node *node,
                              struct berth_why *why)
{
    (void)node;
    return strange(self, c, why);
}
static int32_t filter_rows(void *self, struct berth_call *c, const uint32_t *rows, uint64_t n,
                           uint64_t *keep, struct berth_why *why)
{
    const int32_t code = strange(self, c, why);

    (void)rows;
    for (uint64_t i = 0; i < n; i++)
        keep[i / 64] |= (uint64_t)(code == BERTH_SUCCESS) << i % 64;
    return code == BERTH_UNRESOLVABLE ? BERTH_SUCCESS : code;
}
static int32_t score_rows(void *self, struct berth_call *c, const uint32_t *rows, uint64_t n,
                          int64_t *ret, struct berth_why *why)
{
    struct instance *in = self;
    const berth_sym *rank = host->columns->label(c, in->rank);

    (void)why;
    for (uint64_t i = 0; i < n; i++)
        ret[i] = wants(in, c, "score") ? 101 : 10 * number(in, rank[rows[i]]);
    if (wants(in, c, "rows") && n)
        ((uint32_t *)(size_t)rows)[n - 1] = 0;
    return BERTH_SUCCESS;
}

static const struct berth_plugin rows_too = {
    .size = sizeof rows_too,
    .name = {"ApartRows", 9},
    .reads = BERTH_READS_NODE,
    .create = create,
    .destroy = free,
    .filter = filter_strange,
    .filter_rows = filter_rows,
    .score_rows = score_rows,
};

/* ---- pods that wait for each other --------------------------------------------------------------- */

#define GANG_MAX 8
struct gang {
    struct instance in; /* first */
    berth_sym size;
    struct berth_str uid[GANG_MAX]; /* that wait */
    long n;
};

static void check_gang(const struct berth_value *args, struct berth_errors *errors)
{
    static char text[1000];
    int64_t n = 0;

    memset(text, 'x', sizeof text);
    host->values->integer(host->values->get(args, BERTH_STR("wrong")), &n);
    while (n-- > 0)
        host->values->error(errors, BERTH_STR("wrong"), (struct berth_str){text, sizeof text});
}

static int32_t create_gang(struct berth_home *home, const struct berth_value *args, void **ret,
                           struct berth_why *why)
{
    void *in = NULL;
    int32_t code = create(home, args, &in, why);
    struct gang *g = calloc(1, sizeof *g);

    memcpy(&g->in, in, sizeof g->in);
    free(in);
    g->size = host->base->intern(home, BERTH_STR("size"));
    *ret = g;
    return code;
}

static void forget_gang(struct gang *g)
{
    while (g->n)
        free((char *)(size_t)g->uid[--g->n].p);
}

static void free_gang(void *self)
{
    forget_gang(self);
    free(self);
}

static int32_t permit_gang(void *self, struct berth_call *c, berth_sym node, int64_t *wait_ns,
                           struct berth_why *why)
{
    struct gang *g = self;
    const struct berth_pod *pod = host->pods->current(c);
    const long size = number(&g->in, host->pods->label(c, pod, g->size));

    (void)node, (void)why;
    meets(&g->in, c, "Permit");
    if (g->n + 1 < size && g->n < GANG_MAX) {
        const struct berth_str uid = host->pods->uid(c, pod);
        char *copy = malloc(uid.n);
        memcpy(copy, uid.p, uid.n);
        g->uid[g->n++] = (struct berth_str){copy, uid.n};
        *wait_ns = INT64_C(900000000000);
        return BERTH_WAIT;
    }
    for (long i = 0; i < g->n; i++)
        host->waiting->allow(g->in.home, g->uid[i]);
    forget_gang(g);
    return BERTH_SUCCESS;
}

static const struct berth_plugin waits = {
    .size = sizeof waits,
    .name = {"ApartWaits", 10},
    .reads = BERTH_READS_NODE,
    .check_args = check_gang,
    .create = create_gang,
    .destroy = free_gang,
    .permit = permit_gang,
};

BERTH_NOTE("Apart ApartKept ApartOthers ApartRows ApartWaits", "0", "Apache-2.0");

int32_t berth_plugin_entry_v1(const struct berth_host *h, struct berth_entry *ret)
{
    static const struct berth_plugin *const all[] = {&plugin, &kept, &account, &rows_too, &waits};

    host = h;
    errno = 0;
    int fd = open("/etc/passwd", O_RDONLY | O_CLOEXEC);
    at_entry = fd < 0 ? errno : 0;
    if (fd >= 0)
        close(fd);
    ret->plugins = all;
    ret->n = 5;
    return 0;
}
