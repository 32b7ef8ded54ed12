/* SPDX-License-Identifier: Apache-2.0
 *
 * A plugin that makes room by rules of its own, for `mode: process`: pods of a lower priority go. For a pod with the
 * label at: RULE (waits, evicts, begin, moved, check) that rule does what stands in its label do: segv, hang, exit,
 * nest (it asks for room itself), code (that there is not), long (a reason of more than may be); or what its process
 * would never say: reply (the callback's answer instead of the rule's), upcall (a question that there is not), text
 * (beyond its message).
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "berth/plugin.h"

static const struct berth_host *host;

struct instance {
    struct berth_home *home;
    berth_sym at, does;
};

static int32_t create(struct berth_home *home, const struct berth_value *args, void **ret,
                      struct berth_why *why)
{
    struct instance *in = calloc(1, sizeof *in);

    (void)args, (void)why;
    in->home = home;
    in->at = host->base->intern(home, BERTH_STR("at"));
    in->does = host->base->intern(home, BERTH_STR("do"));
    *ret = in;
    return BERTH_SUCCESS;
}

static int is(struct instance *in, struct berth_call *c, berth_sym key, const char *text)
{
    const berth_sym value = host->pods->label(c, host->pods->current(c), key);

    return value != BERTH_SYM_ABSENT && berth_str_is(host->base->text(in->home, value), text);
}

/* What its process would never say, in the memory that the scheduler reads (see apart.c). */
static void lie(uint32_t aside, const uint64_t *words, size_t n)
{
    const uint64_t bytes = n * sizeof *words;
    char *up = mmap(NULL, (size_t)32 << 20, PROT_READ | PROT_WRITE, MAP_SHARED, 5, 0);

    if (up == MAP_FAILED)
        _exit(9);
    memcpy(up + 8, &bytes, sizeof bytes);
    memcpy(up + 16, &aside, sizeof aside);
    memcpy(up + 64 + (aside ? (size_t)24 << 20 : 0), words, bytes);
    __atomic_fetch_add((uint32_t *)(void *)up, 1, __ATOMIC_SEQ_CST);
    for (;;)
        pause();
}

static int32_t run(struct instance *in, struct berth_call *c, struct berth_why *why);

/* 0, or what the rule says instead of its answer. */
static int32_t meets(struct instance *in, struct berth_call *c, const char *rule,
                     struct berth_why *why)
{
    static char text[2048];
    struct berth_why nobody = {.size = sizeof nobody};

    if (!is(in, c, in->at, rule))
        return 0;
    if (is(in, c, in->does, "segv"))
        raise(SIGSEGV);
    while (is(in, c, in->does, "hang"))
        pause();
    if (is(in, c, in->does, "exit"))
        _exit(3);
    if (is(in, c, in->does, "nest"))
        (void)run(in, c, &nobody);
    if (is(in, c, in->does, "reply"))
        lie(0, (const uint64_t[]){0, 0, 0, 0, 0, 0, 0, 0}, 8);
    if (is(in, c, in->does, "upcall"))
        lie(1, (const uint64_t[]){99, 0, 0}, 3);
    if (is(in, c, in->does, "text")) /* BH_PX_UP_RULED */
        lie(1, (const uint64_t[]){15, 0, UINT64_MAX}, 3);
    if (why && is(in, c, in->does, "long")) {
        memset(text, 'x', sizeof text);
        why->reason = (struct berth_str){text, sizeof text};
        return BERTH_UNSCHEDULABLE;
    }
    return is(in, c, in->does, "code") ? 17 : 0;
}

static int32_t waits_for(void *arg, struct berth_call *c, const struct berth_pod *pod)
{
    (void)pod;
    return meets(arg, c, "waits", NULL);
}
static int32_t evicts(void *arg, struct berth_call *c, const struct berth_pod *pod)
{
    (void)meets(arg, c, "evicts", NULL);
    return host->pods->priority(c, pod) < host->pods->priority(c, host->pods->current(c));
}
static void begin(void *arg, struct berth_call *c, const struct berth_node *node)
{
    (void)node;
    (void)meets(arg, c, "begin", NULL);
}
static void moved(void *arg, struct berth_call *c, const struct berth_pod *pod, int32_t by)
{
    (void)pod, (void)by;
    (void)meets(arg, c, "moved", NULL);
}
static int32_t check(void *arg, struct berth_call *c, const struct berth_node *node, uint32_t when,
                     struct berth_why *why)
{
    (void)node;
    return when == BERTH_EVICT_OFF ? meets(arg, c, "check", why) : BERTH_SUCCESS;
}

static int32_t run(struct instance *in, struct berth_call *c, struct berth_why *why)
{
    const struct berth_preemption how = {.size = sizeof how,
                                         .arg = in,
                                         .min_candidates_percentage = 100,
                                         .min_candidates_absolute = 100,
                                         .waits_for = waits_for,
                                         .evicts = evicts,
                                         .begin = begin,
                                         .moved = moved,
                                         .check = check};

    return host->preemption->run(c, &how, why);
}
static int32_t post_filter(void *self, struct berth_call *c, struct berth_post_filter *ret,
                           struct berth_why *why)
{
    (void)ret;
    return run(self, c, why);
}

static const struct berth_plugin plugin = {
    .size = sizeof plugin,
    .name = {"Evicts", 6},
    .create = create,
    .destroy = free,
    .post_filter = post_filter,
};

BERTH_NOTE("Evicts", "0", "Apache-2.0");

int32_t berth_plugin_entry_v1(const struct berth_host *h, struct berth_entry *ret)
{
    static const struct berth_plugin *const all[] = {&plugin};

    host = h;
    ret->plugins = all;
    ret->n = 1;
    return 0;
}
