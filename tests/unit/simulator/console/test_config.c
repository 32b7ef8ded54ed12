/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/simulator/console/test_config.c - a change of the scheduler's configuration: what runs is
 * what its file says, whatever becomes of the scheduler meanwhile
 *
 * The scheduler is a thread with a socket, which reads the file when it is told to.
 */
#include "simulator/console/parts.h"
#include "tests/unit/common/control/played.h"

#include <errno.h>

#define TEXT(backoff)                                                                              \
    "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"               \
    "podInitialBackoffSeconds: " backoff "\n"

enum reload {
    TAKES,   /* and runs on as a new process */
    REFUSES, /* reads it, and goes on with the old one */
    DIES     /* the next one starts with the file, and nobody answers */
};

struct scheduler {
    struct played played;
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

static bool answers(struct played *p, const Berth__ControlRequest *q, Berth__ControlReply *r)
{
    static Berth__ControlStatus status;
    static Berth__ControlConfig config;
    struct scheduler *s = bh_container_of(p, struct scheduler, played);

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

static void scheduler_start(struct scheduler *s, enum reload first)
{
    *s = (struct scheduler){.first = first};
    played_dir(s->dir);
    snprintf(s->path, sizeof(s->path), "%s/scheduler.yaml", s->dir);
    snprintf(s->says_path, sizeof(s->says_path), "%s", s->path);
    CU_ASSERT_FATAL(bh_write_file(s->path, TEXT("1"), strlen(TEXT("1")), 0600) == 0);
    read_file(s);
    played_start(&s->played, s->dir, answers);
}

/* What runs in the end is what the file says; and that is the text. */
static void scheduler_stop(struct scheduler *s, const char *text, unsigned reloads)
{
    BH_CLEANUP(bh_freep) char *file = file_of(s);

    played_stop(&s->played);
    CU_ASSERT_STRING_EQUAL(file, text);
    CU_ASSERT_STRING_EQUAL(s->runs, text);
    CU_ASSERT_EQUAL(s->reloads, reloads);
    free(s->runs);
}

struct change {
    enum reload first;
    const char *file; /* that the scheduler reads; NULL: that of its folder */
    const char *text;
    int rc;
    const char *message, *field;
    unsigned line;
    const char *runs;
    unsigned reloads;
};

static void apply(const struct change *c)
{
    struct bh_console_place at;
    struct bh_err err = {""};
    struct scheduler s;

    scheduler_start(&s, c->first);
    if (c->file)
        snprintf(s.says_path, sizeof(s.says_path), "%s", c->file);
    CU_ASSERT_EQUAL(bh_console_config_apply(s.dir, c->text, strlen(c->text), &at, &err), c->rc);
    CU_ASSERT_STRING_EQUAL(err.msg, c->message);
    CU_ASSERT_STRING_EQUAL(at.field, c->field);
    CU_ASSERT_EQUAL(at.line, c->line);
    scheduler_stop(&s, c->runs, c->reloads);
}

static void test_taken(void)
{
    apply(&(struct change){TAKES, NULL, TEXT("2"), 0, "", "", 0, TEXT("2"), 1});
}

static void test_not_valid(void)
{
    apply(&(struct change){TAKES, NULL, TEXT("0"), -EINVAL,
                           "podInitialBackoffSeconds: Invalid value: 0: must be greater than 0",
                           "podInitialBackoffSeconds", 3, TEXT("1"), 0});
}

static void test_not_ours_to_write(void)
{
    apply(&(struct change){TAKES, "/etc/berth/scheduler.yaml", TEXT("2"), -EPERM,
                           "the scheduler reads /etc/berth/scheduler.yaml, which is not this "
                           "server's to write",
                           "", 0, TEXT("1"), 0});
}

static void test_refused(void)
{
    apply(&(struct change){REFUSES, NULL, TEXT("2"), -EPROTO,
                           "the scheduler answered: pluginConfig[0]: no such guest", "", 0,
                           TEXT("1"), 2});
}

/* It was killed when it had been told; the one that came after it has read the new file already. */
static void test_killed_in_between(void)
{
    apply(&(struct change){DIES, NULL, TEXT("2"), -ETIMEDOUT,
                           "the scheduler did not answer within 5 s", "", 0, TEXT("1"), 2});
}

BH_TESTS("simulator/console/config", {"one that is taken", test_taken},
         {"one that is not valid", test_not_valid},
         {"a file of somebody else", test_not_ours_to_write}, {"one that is refused", test_refused},
         {"the scheduler is killed in between", test_killed_in_between})
