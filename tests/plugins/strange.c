/* SPDX-License-Identifier: Apache-2.0
 *
 * A plugin that does what no plugin should: $BERTH_STRANGE says what.
 */
#define _POSIX_C_SOURCE 200809L
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "berth/plugin.h"

static const struct berth_host *host;

static int wish(const char *what)
{
    const char *s = getenv("BERTH_STRANGE");

    return s && strcmp(s, what) == 0;
}

static void *volatile kept;

/* The first process by a signal, those after it by not returning. */
static void end(void)
{
    int fd = open(getenv("BERTH_STRANGE_FILE"), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);

    if (fd >= 0)
        raise(SIGSEGV);
    for (;;)
        pause();
}

static int32_t filter(void *self, struct berth_call *c, const struct berth_node *node,
                      struct berth_why *why)
{
    static uint32_t calls;

    (void)self;
    if (wish("end"))
        end();
    if (wish("leak"))
        kept = malloc(100);
    if (wish("peek"))
        host->nodes->requested(c, node, 0);
    if (wish("note")) { /* for once well-behaved: an annotation decides */
        struct berth_str ok = host->nodes->annotation(c, node, BERTH_STR("strange/ok"));
        why->reason = BERTH_STR("not annotated");
        return ok.n == 3 && memcmp(ok.p, "yes", 3) == 0 ? BERTH_SUCCESS : BERTH_UNSCHEDULABLE;
    }
    if (wish("lie") && ++calls % 2 == 0) {
        why->reason = BERTH_STR("an even call");
        return BERTH_UNSCHEDULABLE;
    }
    return BERTH_SUCCESS;
}

static struct berth_plugin plugin = {
    .size = sizeof plugin, .name = {"Strange", 7}, .reads = BERTH_READS_NODE, .filter = filter};

BERTH_NOTE("Strange", "0", "Apache-2.0");

int32_t berth_plugin_entry_v1(const struct berth_host *h, struct berth_entry *ret)
{
    static const struct berth_plugin *const all[] = {&plugin};

    host = h;
    if (wish("crash"))
        abort();
    if (wish("exit"))
        _exit(0);
    if (wish("refuse"))
        return 3;
    if (wish("past"))
        plugin.size = 24;
    if (wish("note"))
        plugin.reads |= BERTH_READS_ANNOTATIONS;
    if (wish("nameless"))
        plugin.name = BERTH_STR("Other");
    ret->plugins = all;
    ret->n = wish("none") ? 0 : 1;
    return 0;
}
