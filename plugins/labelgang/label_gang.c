/* SPDX-License-Identifier: Apache-2.0
 *
 * plugins/labelgang/label_gang.c - pods with one label value are bound together
 *
 * A pod with the label groupLabel waits at Permit until as many pods of its namespace and group have
 * a node as its label sizeLabel says; then all that wait go on. Who comes later goes on at once. When
 * one of those that wait times out it goes back to the queue alone: the others wait until their own
 * time is over.
 *
 * Nothing is remembered: who waits the host knows, and after a restart of the scheduler they come
 * again.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "berth/plugin.h"

#define SECOND ((int64_t)1000000000)

static const struct berth_host *host;

struct instance {
    struct berth_home *home;
    berth_sym group_label, size_label;
    int64_t timeout_ns;
};

/* ---- arguments ------------------------------------------------------------------------------- */

static void check_args(const struct berth_value *args, struct berth_errors *errors)
{
    const struct berth_host_values *v = host->values;
    const struct berth_value *timeout = v->get(args, BERTH_STR("timeoutSeconds"));
    int64_t seconds = 60;

    berth_check_fields(v, args, "", "groupLabel sizeLabel timeoutSeconds", errors);
    if (!v->text(v->get(args, BERTH_STR("groupLabel"))).n)
        v->error(errors, BERTH_STR("groupLabel"), BERTH_STR("the key of a label is needed"));
    if (!v->text(v->get(args, BERTH_STR("sizeLabel"))).n)
        v->error(errors, BERTH_STR("sizeLabel"), BERTH_STR("the key of a label is needed"));
    if (timeout && (!v->integer(timeout, &seconds) || seconds < 1 || seconds > 900))
        v->error(errors, BERTH_STR("timeoutSeconds"), BERTH_STR("1 to 900 is needed"));
}

static int32_t create(struct berth_home *home, const struct berth_value *args, void **ret,
                      struct berth_why *why)
{
    const struct berth_host_values *v = host->values;
    struct instance *in = calloc(1, sizeof *in);
    int64_t seconds = 60;

    if (!in) {
        why->reason = BERTH_STR("out of memory");
        return BERTH_ERROR;
    }
    v->integer(v->get(args, BERTH_STR("timeoutSeconds")), &seconds);
    in->home = home;
    in->timeout_ns = seconds * SECOND;
    in->group_label = host->base->intern(home, v->text(v->get(args, BERTH_STR("groupLabel"))));
    in->size_label = host->base->intern(home, v->text(v->get(args, BERTH_STR("sizeLabel"))));
    *ret = in;
    return BERTH_SUCCESS;
}

static void destroy(void *self)
{
    free(self);
}

/* ---- groups ---------------------------------------------------------------------------------- */

/* How many of the pod's group have a node, the pod among them: a pod that waits has one, too. */
static uint64_t count(const struct instance *in, struct berth_call *c, berth_sym group)
{
    const struct berth_host_pods *p = host->pods;
    const struct berth_pod *own = p->current(c);
    uint64_t n = 1;

    for (uint32_t row = host->columns->n_rows(c); row-- > 0;) {
        const struct berth_node *node = host->columns->node(c, row);
        for (uint32_t i = node ? host->nodes->n_pods(c, node) : 0; i-- > 0;) {
            const struct berth_pod *pod = host->nodes->pod_at(c, node, i);
            n += p->label(c, pod, in->group_label) == group && !p->terminating(c, pod) &&
                 berth_str_equal(p->namespace_(c, pod), p->namespace_(c, own)) &&
                 !berth_str_equal(p->uid(c, pod), p->uid(c, own));
        }
    }
    return n;
}

struct walk { /* over the pods that wait */
    const struct instance *in;
    struct berth_call *c;
    berth_sym group;
    struct berth_str namespace_;
    unsigned allowed;
};

static void allow_member(void *arg, struct berth_str uid)
{
    struct walk *w = arg;
    const struct berth_pod *pod = host->waiting->get(w->c, uid, NULL);

    if (pod && host->pods->label(w->c, pod, w->in->group_label) == w->group &&
        berth_str_equal(host->pods->namespace_(w->c, pod), w->namespace_))
        w->allowed += host->waiting->allow(w->in->home, uid) == 1;
}

/* Once a group: whoever comes later finds nobody waiting. */
static void tell(const struct walk *w, const struct berth_pod *pod)
{
    struct berth_str group = host->base->text(w->in->home, w->group);
    char note[256];

    snprintf(note, sizeof note, "All pods of %.*s have a node: %u waited for this one",
             (int)group.n, group.p, w->allowed);
    host->events->emit(w->c, pod, BERTH_EVENT_NORMAL, BERTH_STR("GangComplete"),
                       (struct berth_str){note, strlen(note)});
}

static int32_t permit(void *self, struct berth_call *c, berth_sym node, int64_t *wait_ns,
                      struct berth_why *why)
{
    const struct instance *in = self;
    const struct berth_pod *pod = host->pods->current(c);
    berth_sym group = host->pods->label(c, pod, in->group_label);
    berth_sym size = host->pods->label(c, pod, in->size_label);
    struct walk w = {in, c, group, host->pods->namespace_(c, pod), 0};

    (void)node, (void)why;
    if (group == BERTH_SYM_ABSENT || size == BERTH_SYM_ABSENT)
        return BERTH_SUCCESS;
    *wait_ns = in->timeout_ns;
    if (count(in, c, group) < strtoull(host->base->text(in->home, size).p, NULL, 10))
        return BERTH_WAIT;
    host->waiting->each(in->home, allow_member, &w);
    if (w.allowed)
        tell(&w, pod);
    return BERTH_SUCCESS;
}

/* ---- the file -------------------------------------------------------------------------------- */

static const struct berth_event events[] = {{BERTH_ON_POD, BERTH_ADD}, {BERTH_ON_NODE, BERTH_ADD}};
static const struct berth_plugin plugin = {
    .size = sizeof plugin,
    .name = {"LabelGang", 9},
    .reads = BERTH_READS_NODE,
    .events = events,
    .n_events = 2,
    .check_args = check_args,
    .create = create,
    .destroy = destroy,
    .permit = permit,
};

BERTH_NOTE("LabelGang", "1.0.0", "Apache-2.0");

int32_t berth_plugin_entry_v1(const struct berth_host *h, struct berth_entry *ret)
{
    static const struct berth_plugin *const all[] = {&plugin};

    if (!BERTH_HAS(h, events)) /* and with it what else came with ABI 1.1 */
        return 1;
    host = h;
    ret->plugins = all;
    ret->n = 1;
    return 0;
}
