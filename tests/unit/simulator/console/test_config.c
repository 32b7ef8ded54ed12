/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/simulator/console/test_config.c - a change of the scheduler's configuration: what runs is
 * what its file says, whatever becomes of the scheduler meanwhile
 *
 * The scheduler is a thread with a socket, which reads the file when it is told to.
 */
#include "common/bus/bus.h"
#include "simulator/console/parts.h"
#include "tests/unit/harness.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>

#define TEXT(backoff)                                                                              \
    "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"               \
    "podInitialBackoffSeconds: " backoff "\n"

enum reload {
    TAKES,   /* and runs on as a new process */
    REFUSES, /* reads it, and goes on with the old one */
    DIES     /* the next one starts with the file, and nobody answers */
};

struct scheduler {
    struct bh_bus *bus;
    pthread_t thread;
    _Atomic bool stop;
    enum reload first; /* the later ones are taken */
    unsigned reloads;
    uint64_t epoch;
    char dir[108], path[140], says_path[140];
    char *runs;
};

static char *file_of(const struct scheduler *s)
{
    char *text = NULL;
    size_t n;

    CU_ASSERT_EQUAL_FATAL(bh_read_file(s->path, 4096, &text, &n), 0);
    return text;
}

static void read_file(struct scheduler *s)
{
    free(s->runs);
    s->runs = file_of(s);
    s->epoch++;
}

/* false: no answer. */
static bool reload(struct scheduler *s, Berth__ControlReply *r)
{
    static char why[] = "pluginConfig[0]: no such guest";
    const enum reload how = s->reloads++ ? TAKES : s->first;
    BH_CLEANUP(bh_freep) char *text = file_of(s);

    if (how == REFUSES) {
        r->error = why;
        return true;
    }
    r->has_restart = true;
    r->restart = !bh_streq(text, s->runs);
    if (r->restart)
        read_file(s);
    return how == TAKES;
}

static bool answers(struct scheduler *s, const Berth__ControlRequest *q, Berth__ControlReply *r)
{
    static Berth__ControlStatus status;
    static Berth__ControlConfig config;

    if (q->what == BERTH__CONTROL_WHAT__CONTROL_RELOAD)
        return reload(s, r);
    berth__control_status__init(&status);
    berth__control_config__init(&config);
    status.has_epoch = true;
    status.epoch = s->epoch;
    config.path = s->says_path;
    config.in_force = s->runs;
    r->status = &status;
    r->config = &config;
    return true;
}

static void *serve(void *arg)
{
    struct scheduler *s = arg;
    struct bh_arena a;

    bh_arena_init(&a, 0);
    while (!s->stop) {
        Berth__Envelope *e = NULL, out = BERTH__ENVELOPE__INIT;
        Berth__ControlReply r = BERTH__CONTROL_REPLY__INIT;
        struct bh_peer peer;
        (void)bh_bus_wait(s->bus, 10);
        bh_arena_reset(&a);
        if (bh_bus_recv(s->bus, &a, &peer, &e) != BH_BUS_OK || !e->control)
            continue;
        r.has_id = true;
        r.id = e->control->id;
        out.control_reply = &r;
        if (answers(s, e->control, &r))
            (void)bh_bus_send(s->bus, &peer, &out);
    }
    bh_arena_fini(&a);
    return NULL;
}

static void scheduler_start(struct scheduler *s, enum reload first)
{
    struct bh_err err = {""};
    char endpoint[128];
    static unsigned n;

    *s = (struct scheduler){.first = first};
    snprintf(s->dir, sizeof(s->dir), "%s/c%u", bh_test_tmpdir(), n++);
    snprintf(s->path, sizeof(s->path), "%s/scheduler.yaml", s->dir);
    snprintf(s->says_path, sizeof(s->says_path), "%s", s->path);
    CU_ASSERT_FATAL(mkdir(s->dir, 0750) == 0);
    CU_ASSERT_FATAL(bh_write_file(s->path, TEXT("1"), strlen(TEXT("1")), 0600) == 0);
    read_file(s);
    CU_ASSERT_FATAL(bh_bus_endpoint(s->dir, "control", endpoint, &err) == 0);
    CU_ASSERT_FATAL(bh_bus_open(BH_BUS_ROUTER_BIND, endpoint, NULL, &s->bus, &err) == 0);
    CU_ASSERT_FATAL(pthread_create(&s->thread, NULL, serve, s) == 0);
}

/* What runs in the end is what the file says; and that is the text. */
static void scheduler_stop(struct scheduler *s, const char *text, unsigned reloads)
{
    BH_CLEANUP(bh_freep) char *file = file_of(s);

    s->stop = true;
    CU_ASSERT(pthread_join(s->thread, NULL) == 0);
    bh_bus_close(s->bus);
    CU_ASSERT_STRING_EQUAL(file, text);
    CU_ASSERT_STRING_EQUAL(s->runs, text);
    CU_ASSERT_EQUAL(s->reloads, reloads);
    free(s->runs);
}

static int apply(const struct scheduler *s, const char *text, struct bh_console_place *at,
                 struct bh_err *err)
{
    *err = (struct bh_err){""};
    return bh_console_config_apply(s->dir, text, strlen(text), at, err);
}

static void test_taken(void)
{
    struct bh_console_place at;
    struct scheduler s;
    struct bh_err err;

    scheduler_start(&s, TAKES);
    CU_ASSERT_EQUAL(apply(&s, TEXT("2"), &at, &err), 0);
    scheduler_stop(&s, TEXT("2"), 1);
}

static void test_not_valid(void)
{
    struct bh_console_place at;
    struct scheduler s;
    struct bh_err err;

    scheduler_start(&s, TAKES);
    CU_ASSERT_EQUAL(apply(&s, TEXT("0"), &at, &err), -EINVAL);
    CU_ASSERT_STRING_EQUAL(at.field, "podInitialBackoffSeconds");
    CU_ASSERT_EQUAL(at.line, 3);
    scheduler_stop(&s, TEXT("1"), 0);
}

static void test_not_ours_to_write(void)
{
    struct bh_console_place at;
    struct scheduler s;
    struct bh_err err;

    scheduler_start(&s, TAKES);
    snprintf(s.says_path, sizeof(s.says_path), "/etc/berth/scheduler.yaml");
    CU_ASSERT_EQUAL(apply(&s, TEXT("2"), &at, &err), -EPERM);
    CU_ASSERT_STRING_EQUAL(err.msg,
                           "the scheduler reads /etc/berth/scheduler.yaml, which is not this "
                           "server's to write");
    scheduler_stop(&s, TEXT("1"), 0);
}

static void test_refused(void)
{
    struct bh_console_place at;
    struct scheduler s;
    struct bh_err err;

    scheduler_start(&s, REFUSES);
    CU_ASSERT_EQUAL(apply(&s, TEXT("2"), &at, &err), -EPROTO);
    CU_ASSERT_STRING_EQUAL(err.msg, "the scheduler answered: pluginConfig[0]: no such guest");
    scheduler_stop(&s, TEXT("1"), 2);
}

/* It was killed when it had been told; the one that came after it has read the new file already. */
static void test_killed_in_between(void)
{
    struct bh_console_place at;
    struct scheduler s;
    struct bh_err err;

    scheduler_start(&s, DIES);
    CU_ASSERT_EQUAL(apply(&s, TEXT("2"), &at, &err), -ETIMEDOUT);
    scheduler_stop(&s, TEXT("1"), 2);
}

BH_TESTS("simulator/console/config", {"one that is taken", test_taken},
         {"one that is not valid", test_not_valid},
         {"a file of somebody else", test_not_ours_to_write}, {"one that is refused", test_refused},
         {"the scheduler is killed in between", test_killed_in_between})
