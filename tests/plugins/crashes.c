/* SPDX-License-Identifier: Apache-2.0
 *
 * Plugins with one callback each, and Writes, which wants patches: what a callback does the
 * first time that it is called stands in $BERTH_CRASHES: "segv" or "sleep". Whether it was called is a
 * file of the callback's name in $BERTH_CRASHES_DIR.
 */
#define _POSIX_C_SOURCE 200809L
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "berth/plugin.h"

static const struct berth_host *host;

static void once(const char *callback)
{
    const char *dir = getenv("BERTH_CRASHES_DIR"), *what = getenv("BERTH_CRASHES");
    char path[4096];

    if (!dir || !what || snprintf(path, sizeof path, "%s/%s", dir, callback) >= (int)sizeof path)
        return;
    int fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
    if (fd < 0)
        return;
    close(fd);
    if (strcmp(what, "segv") == 0)
        raise(SIGSEGV);
    if (strcmp(what, "kill") == 0)
        raise(SIGKILL);
    while (strcmp(what, "sleep") == 0)
        pause();
}

static int32_t pre_enqueue(void *self, struct berth_call *c, struct berth_why *why)
{
    (void)self, (void)c, (void)why;
    once("PreEnqueue");
    return BERTH_SUCCESS;
}
static int32_t less(void *self, struct berth_call *c, const struct berth_queued *a,
                    const struct berth_queued *b)
{
    (void)self, (void)c;
    once("QueueSort");
    return a->timestamp < b->timestamp;
}
static int32_t idle(void *self, struct berth_call *c)
{
    (void)self, (void)c;
    once("idle");
    return 1;
}
static int32_t pre_filter(void *self, struct berth_call *c, const berth_sym **names,
                          uint64_t *n_names, struct berth_why *why)
{
    (void)self, (void)c, (void)names, (void)n_names, (void)why;
    once("PreFilter");
    return BERTH_SUCCESS;
}
static int32_t filter(void *self, struct berth_call *c, const struct berth_node *node,
                      struct berth_why *why)
{
    (void)self, (void)c, (void)node, (void)why;
    once("Filter");
    return BERTH_SUCCESS;
}
static int32_t passes(void *self, struct berth_call *c, const struct berth_node *node,
                      struct berth_why *why)
{
    (void)self, (void)c, (void)node, (void)why;
    return BERTH_SUCCESS;
}
static int32_t post_filter(void *self, struct berth_call *c, struct berth_post_filter *ret,
                           struct berth_why *why)
{
    (void)self, (void)c, (void)ret, (void)why;
    once("PostFilter");
    return BERTH_UNSCHEDULABLE;
}
static int32_t pre_score(void *self, struct berth_call *c, const uint32_t *rows, uint64_t n,
                         struct berth_why *why)
{
    (void)self, (void)c, (void)rows, (void)n, (void)why;
    once("PreScore");
    return BERTH_SUCCESS;
}
static int32_t score(void *self, struct berth_call *c, const struct berth_node *node, int64_t *ret,
                     struct berth_why *why)
{
    (void)self, (void)c, (void)node, (void)why;
    once("Score");
    *ret = 1;
    return BERTH_SUCCESS;
}
static int32_t scores(void *self, struct berth_call *c, const struct berth_node *node, int64_t *ret,
                      struct berth_why *why)
{
    (void)self, (void)c, (void)node, (void)why;
    *ret = 1;
    return BERTH_SUCCESS;
}
static int32_t normalize(void *self, struct berth_call *c, int64_t *all, uint64_t n,
                         struct berth_why *why)
{
    (void)self, (void)c, (void)all, (void)n, (void)why;
    once("NormalizeScore");
    return BERTH_SUCCESS;
}
static int32_t reserve(void *self, struct berth_call *c, berth_sym node, struct berth_why *why)
{
    (void)self, (void)c, (void)node, (void)why;
    once("Reserve");
    return BERTH_SUCCESS;
}
static int32_t permit(void *self, struct berth_call *c, berth_sym node, int64_t *wait_ns,
                      struct berth_why *why)
{
    (void)self, (void)c, (void)node, (void)wait_ns, (void)why;
    once("Permit");
    return BERTH_SUCCESS;
}
static int32_t pre_bind(void *self, struct berth_call *c, berth_sym node, struct berth_why *why)
{
    (void)self, (void)c, (void)node, (void)why;
    once("PreBind");
    return BERTH_SUCCESS;
}
static int32_t bind_(void *self, struct berth_call *c, berth_sym node, struct berth_why *why)
{
    (void)self, (void)c, (void)node, (void)why;
    once("Bind");
    return BERTH_SKIP;
}
static void post_bind(void *self, struct berth_call *c, berth_sym node)
{
    (void)self, (void)c, (void)node;
    once("PostBind");
}

/* ---- one that writes, and is killed between PreBind and Bind ---------------------------------- */

static struct berth_home *home;
static uint32_t bound; /* a metric */

static int32_t create(struct berth_home *h, const struct berth_value *args, void **ret,
                      struct berth_why *why)
{
    (void)args, (void)ret, (void)why;
    home = h;
    bound = host->metrics->define(h, BERTH_COUNTER, BERTH_STR("bound_total"),
                                  BERTH_STR("Pods that were bound."), NULL, 0);
    return BERTH_SUCCESS;
}

/* The node's name into an annotation of the pod. */
static int32_t writes_first(void *self, struct berth_call *c, berth_sym node, struct berth_why *why)
{
    const struct berth_host_pods *p = host->pods;
    const struct berth_pod *pod = p->current(c);
    struct berth_str at = host->base->text(home, node);
    char body[512];

    (void)self, (void)why;
    snprintf(body, sizeof body, "{\"metadata\":{\"annotations\":{\"example.com/node\":\"%.*s\"}}}",
             (int)at.n, at.p);
    const struct berth_patch patch = {.size = sizeof patch,
                                      .type = BERTH_PATCH_MERGE,
                                      .api_version = BERTH_STR("v1"),
                                      .resource = BERTH_STR("pods"),
                                      .namespace_ = p->namespace_(c, pod),
                                      .name = p->name(c, pod),
                                      .uid = p->uid(c, pod),
                                      .body = {body, strlen(body)}};
    host->writes->patch(c, &patch);
    return BERTH_SUCCESS;
}
static int32_t dies_then_skips(void *self, struct berth_call *c, berth_sym node,
                               struct berth_why *why)
{
    (void)self, (void)node, (void)why;
    if (host->base->now(c) <= 0)
        return BERTH_ERROR;
    once("killed");
    return BERTH_SKIP;
}
static void says_bound(void *self, struct berth_call *c, berth_sym node)
{
    struct berth_str at = host->base->text(home, node);

    (void)self;
    host->metrics->add(home, bound, 1);
    host->events->emit(c, host->pods->current(c), BERTH_EVENT_NORMAL, BERTH_STR("BoundAsWritten"),
                       at);
}

#define NAMED(text) .size = sizeof(struct berth_plugin), .name = {text, sizeof text - 1}
#define KEPT        .reads = BERTH_READS_NODE
static const struct berth_plugin plugins[] = {
    {NAMED("AtPreEnqueue"), KEPT, .pre_enqueue = pre_enqueue},
    {NAMED("AtQueueSort"), KEPT, .less = less},
    {NAMED("AtIdle"), .filter = passes, .idle = idle},
    {NAMED("AtPreFilter"), KEPT, .pre_filter = pre_filter},
    {NAMED("AtFilter"), KEPT, .filter = filter},
    {NAMED("AtPostFilter"), KEPT, .post_filter = post_filter},
    {NAMED("AtPreScore"), KEPT, .pre_score = pre_score, .score = scores},
    {NAMED("AtScore"), KEPT, .score = score},
    {NAMED("AtNormalize"), KEPT, .score = scores, .normalize = normalize},
    {NAMED("AtReserve"), KEPT, .reserve = reserve},
    {NAMED("AtPermit"), KEPT, .permit = permit},
    {NAMED("AtPreBind"), KEPT, .pre_bind = pre_bind},
    {NAMED("AtBind"), KEPT, .bind = bind_},
    {NAMED("AtPostBind"), KEPT, .post_bind = post_bind},
    {NAMED("Writes"), KEPT, .create = create, .pre_bind = writes_first, .bind = dies_then_skips,
     .post_bind = says_bound},
};

BERTH_NOTE("AtPreEnqueue AtQueueSort AtIdle AtPreFilter AtFilter AtPostFilter AtPreScore "
           "AtScore AtNormalize AtReserve AtPermit AtPreBind AtBind AtPostBind Writes",
           "0", "Apache-2.0");

int32_t berth_plugin_entry_v1(const struct berth_host *h, struct berth_entry *ret)
{
    static const struct berth_plugin *all[sizeof plugins / sizeof *plugins];

    host = h;
    for (unsigned i = 0; i < sizeof plugins / sizeof *plugins; i++)
        all[i] = &plugins[i];
    ret->plugins = all;
    ret->n = sizeof plugins / sizeof *plugins;
    return 0;
}
