/* SPDX-License-Identifier: Apache-2.0
 *
 * A plugin as the public header has it, in an engine: what it is told, what its answers do, and what
 * becomes of answers that may not be.
 */
#include <pthread.h>

#include "scheduler/native/native_int.h"
#include "tests/unit/scheduler/engine/fixture.h"

/* ---- a plugin that does what `wish` says ----------------------------------------------------- */

enum wish {
    WELL,
    NO_SUCH_CODE,
    WAITS,
    NO_REASON,
    BAD_TEXT,
    LONG_TEXT,
    FAILS,
    HIGH_SCORE,
    NEGATIVE_RAW,
    CHANGES_ROWS,
    ASKS_SUMS,
    ASKS_PODS,
    ASKS_NAME,
    ASKS_TIME,
    ASKS_OTHERS,
    UNKNOWN_NODE,
    BAD_NORMAL,
    ALLOCATES
};
static enum wish wish;
static const struct berth_host *host = &bh_native_host;
struct instance {
    struct berth_home *home;
    berth_sym rank_key, cpu;
};
static struct instance *last;
static struct berth_call *last_call;
static unsigned n_created, n_destroyed, n_filter, n_filter_rows, n_score, n_score_rows;

static int32_t create(struct berth_home *h, const struct berth_value *args, void **ret,
                      struct berth_why *why)
{
    struct instance *in = bh_calloc(1, sizeof *in);

    (void)args;
    *in = (struct instance){h, host->base->intern(h, BERTH_STR("rank")),
                            host->base->intern(h, BERTH_STR("cpu"))};
    if (wish == FAILS) {
        why->reason = BERTH_STR("not today");
        free(in);
        return BERTH_ERROR;
    }
    *ret = last = in;
    n_created++;
    return BERTH_SUCCESS;
}
static void destroy(void *self)
{
    free(self);
    n_destroyed++;
}

/* Which callbacks were seen in the mark, bit by bit. */
static struct bh_native_mark mark;
static uint32_t seen;

/* The codes and texts that every callback may get wrong. */
static int32_t wrong(struct berth_call *c, struct berth_why *why)
{
    static char longer[2000];
    const struct berth_pod *pod = host->pods->current(c);

    last_call = c;
    seen |= 1u << mark.hook;
    memset(longer, 'x', sizeof longer);
    switch (wish) {
    case NO_SUCH_CODE:
        return 17;
    case WAITS:
        return BERTH_WAIT;
    case NO_REASON:
        return BERTH_UNSCHEDULABLE;
    case BAD_TEXT:
        why->reason = BERTH_STR("\xff\xfe");
        return BERTH_UNSCHEDULABLE;
    case LONG_TEXT:
        why->reason = (struct berth_str){longer, sizeof longer};
        return BERTH_UNSCHEDULABLE;
    case FAILS:
        why->reason = BERTH_STR("no idea");
        return BERTH_ERROR;
    case ASKS_NAME:
        CU_ASSERT(host->pods->name(c, pod).n == 0);
        return BERTH_SUCCESS;
    case ASKS_TIME:
        CU_ASSERT(host->base->now(c) == 0);
        return BERTH_SUCCESS;
    case ASKS_OTHERS:
        CU_ASSERT(host->nodes->count(c) == 0 && host->columns->n_rows(c) == 0);
        return BERTH_SUCCESS;
    case ALLOCATES:
        CU_ASSERT(!host->base->alloc(c, UINT64_C(1) << 40));
        for (unsigned i = 0; i < 1000 && host->base->alloc(c, 1 << 20); i++)
            CU_ASSERT_FATAL(i < 300);
        return BERTH_SUCCESS;
    default:
        return BERTH_SUCCESS;
    }
}

/* Nodes without the label are not for it. */
static int32_t filter(void *self, struct berth_call *c, const struct berth_node *node,
                      struct berth_why *why)
{
    const struct instance *in = self;
    int32_t code = wrong(c, why);

    CU_ASSERT(why->size == sizeof *why);
    n_filter++;
    if (wish == ASKS_SUMS)
        CU_ASSERT(host->nodes->requested(c, node, in->cpu) == 0);
    if (wish == ASKS_PODS)
        CU_ASSERT(host->nodes->n_pods(c, node) == 0 && !host->nodes->pod_at(c, node, 0));
    if (code != BERTH_SUCCESS || host->nodes->label(c, node, in->rank_key) != BERTH_SYM_ABSENT)
        return code;
    why->reason = BERTH_STR("node(s) had no rank");
    return BERTH_UNSCHEDULABLE;
}
static int32_t filter_rows(void *self, struct berth_call *c, const uint32_t *rows, uint64_t n,
                           uint64_t *keep, struct berth_why *why)
{
    const struct instance *in = self;
    const berth_sym *label = host->columns->label(c, in->rank_key);

    n_filter_rows++;
    for (uint64_t i = 0; i < n; i++)
        if (label[rows[i]] != BERTH_SYM_ABSENT)
            keep[i / 64] |= UINT64_C(1) << i % 64;
    if (wish == CHANGES_ROWS && n)
        *(uint32_t *)(uintptr_t)rows ^= 1;
    return wrong(c, why);
}

/* The label's number. */
static int64_t rank(const struct instance *in, berth_sym value)
{
    return value == BERTH_SYM_ABSENT ? 0 : strtol(host->base->text(in->home, value).p, NULL, 10);
}
static int32_t score(void *self, struct berth_call *c, const struct berth_node *node, int64_t *ret,
                     struct berth_why *why)
{
    const struct instance *in = self;

    n_score++;
    *ret = wish == HIGH_SCORE     ? 101
           : wish == NEGATIVE_RAW ? -1
                                  : rank(in, host->nodes->label(c, node, in->rank_key));
    return wrong(c, why);
}
static int32_t score_rows(void *self, struct berth_call *c, const uint32_t *rows, uint64_t n,
                          int64_t *ret, struct berth_why *why)
{
    const struct instance *in = self;
    const berth_sym *label = host->columns->label(c, in->rank_key);

    n_score_rows++;
    for (uint64_t i = 0; i < n; i++)
        ret[i] = wish == HIGH_SCORE ? 101 : wish == NEGATIVE_RAW ? -1 : rank(in, label[rows[i]]);
    if (wish == CHANGES_ROWS && n)
        *(uint32_t *)(uintptr_t)rows ^= 1;
    return wrong(c, why);
}
static int32_t normalize(void *self, struct berth_call *c, int64_t *scores, uint64_t n,
                         struct berth_why *why)
{
    (void)self;
    for (uint64_t i = 0; i < n; i++)
        scores[i] = wish == BAD_NORMAL ? 1000 : scores[i] / 2;
    return wrong(c, why);
}
static int32_t pre_filter(void *self, struct berth_call *c, const berth_sym **names,
                          uint64_t *n_names, struct berth_why *why)
{
    static const berth_sym beyond = 1u << 30;

    (void)self;
    if (wish == UNKNOWN_NODE) {
        *names = &beyond;
        *n_names = 1;
    }
    return wrong(c, why);
}
static int32_t reserve(void *self, struct berth_call *c, berth_sym node, struct berth_why *why)
{
    (void)self, (void)node;
    CU_ASSERT(host->pods->name(c, host->pods->current(c)).n > 0); /* free to ask here */
    host->waiting->activate(last->home, BERTH_STR("uid-other"));
    return wrong(c, why);
}

static int32_t pre_enqueue(void *self, struct berth_call *c, struct berth_why *why)
{
    (void)self;
    CU_ASSERT(host->pods->uid(c, host->pods->current(c)).n > 0);
    why->reason = BERTH_STR("not yet");
    return wish == WAITS ? BERTH_PENDING : wrong(c, why);
}
/* Worth it when the node has the label. */
static int32_t hint(void *self, struct berth_call *c, const struct berth_change *change)
{
    const struct instance *in = self;

    CU_ASSERT(change->size == sizeof *change && change->on == BERTH_ON_NODE);
    CU_ASSERT(host->base->alloc(c, 8) == NULL); /* there is no cycle */
    if (wish == ASKS_NAME)
        CU_ASSERT(host->pods->name(c, host->pods->current(c)).n > 0);
    return host->nodes->label(c, change->new_node, in->rank_key) != BERTH_SYM_ABSENT;
}
static int32_t post_filter(void *self, struct berth_call *c, struct berth_post_filter *ret,
                           struct berth_why *why)
{
    const struct instance *in = self;

    ret->nominate =
        wish == UNKNOWN_NODE ? in->rank_key : host->base->intern(in->home, BERTH_STR("a"));
    return wrong(c, why);
}
static int32_t permit(void *self, struct berth_call *c, berth_sym node, int64_t *wait_ns,
                      struct berth_why *why)
{
    const struct instance *in = self;

    CU_ASSERT(host->base->text(in->home, node).n == 1 && host->nodes->find(c, node) != NULL);
    *wait_ns = wish == NEGATIVE_RAW ? -1 : 5;
    return wish == NEGATIVE_RAW ? BERTH_WAIT : wrong(c, why);
}
/* Later names first. */
static int32_t less(void *self, struct berth_call *c, const struct berth_queued *a,
                    const struct berth_queued *b)
{
    const struct berth_host_pods *p = host->pods;

    (void)self;
    seen |= 1u << mark.hook;
    CU_ASSERT(a->size == sizeof *a && a->attempts == 3 && a->timestamp == 10 &&
              a->initial_attempt == 5);
    CU_ASSERT(!p->current(c) && !host->base->alloc(c, 8) && p->priority(c, a->pod) == 7);
    if (wish == ASKS_TIME)
        CU_ASSERT(host->base->now(c) == 0);
    return p->name(c, a->pod).p[0] > p->name(c, b->pod).p[0] ? 1000 : 0;
}
/* Counts pods that come to a node in its state; a node with one of them is full. */
static int32_t count_pods(void *self, struct berth_call *c, const berth_sym **names,
                          uint64_t *n_names, struct berth_why *why)
{
    (void)self, (void)names, (void)n_names, (void)why;
    *host->base->filter_state(c) = host->base->alloc(c, sizeof(int));
    return BERTH_SUCCESS;
}
static int32_t change_pod(void *self, struct berth_call *c, const struct berth_pod *pod,
                          const struct berth_node *node, int32_t by, struct berth_why *why)
{
    (void)self, (void)node, (void)why;
    CU_ASSERT(host->pods->priority(c, pod) == 7);
    CU_ASSERT_EQUAL(host->pods->name(c, pod).n, 1); /* of the one that comes it may be asked */
    if (wish == ASKS_NAME)
        CU_ASSERT_EQUAL(host->pods->name(c, host->pods->current(c)).n, 0);
    *(int *)*host->base->filter_state(c) += by;
    return BERTH_SUCCESS;
}
static void *clone_state(void *self, struct berth_call *c, const void *state)
{
    int *copy = host->base->alloc(c, sizeof *copy);

    (void)self;
    *copy = *(const int *)state;
    return copy;
}
static int32_t filter_counted(void *self, struct berth_call *c, const struct berth_node *node,
                              struct berth_why *why)
{
    (void)self, (void)node;
    why->reason = BERTH_STR("one came before");
    return *(int *)*host->base->filter_state(c) > 0 ? BERTH_UNSCHEDULABLE : BERTH_SUCCESS;
}

/* Nodes with a number from 0 on pass. */
static int32_t filter_user(void *self, struct berth_call *c, const struct berth_node *node,
                           struct berth_why *why)
{
    const double *v = host->user->column(c, 1);

    (void)self;
    n_filter++;
    CU_ASSERT((uintptr_t)v % 64 == 0 && !host->user->column(c, 8));
    why->reason = BERTH_STR("not told");
    return v[host->nodes->row(c, node)] >= 0 ? BERTH_SUCCESS : BERTH_UNSCHEDULABLE;
}

/* Pods of priority 7 are none of its business; it rejects all others. */
static int32_t idle(void *self, struct berth_call *c)
{
    (void)self;
    if (wish == ASKS_SUMS)
        CU_ASSERT(host->nodes->requested(c, host->columns->node(c, 0), 1) == 0);
    return host->pods->priority(c, host->pods->current(c)) == 7;
}
static int32_t filter_all(void *self, struct berth_call *c, const struct berth_node *node,
                          struct berth_why *why)
{
    (void)self, (void)node;
    CU_ASSERT(host->pods->priority(c, host->pods->current(c)) != 7);
    why->reason = BERTH_STR("not mine");
    return BERTH_UNSCHEDULABLE;
}

/* Tells of those that wait, as the wish is. */
static char talked[256];
static void tell_uid(void *arg, struct berth_str uid)
{
    struct berth_call *c = arg;
    berth_sym node = 0;
    const struct berth_pod *pod = host->waiting->get(c, uid, &node);

    CU_ASSERT(!host->waiting->get(c, BERTH_STR("nobody"), NULL));
    if (!pod)
        return;
    CU_ASSERT(host->waiting->get(c, uid, NULL) == pod);
    size_t n = strlen(talked);
    snprintf(talked + n, sizeof talked - n, "%s on %s, ", host->pods->name(c, pod).p,
             host->base->text(last->home, node).p);
    CU_ASSERT(host->waiting->allow(last->home, uid) == 1);
}
static int32_t talks(void *self, struct berth_call *c, berth_sym node, int64_t *wait_ns,
                     struct berth_why *why)
{
    static char longer[1025];
    const struct berth_host_events *e = host->events;
    const struct berth_pod *pod = host->pods->current(c);
    const struct berth_str note = BERTH_STR("all of it"), reason = BERTH_STR("Complete");

    (void)self, (void)node, (void)why;
    *wait_ns = 5;
    memset(longer, 'x', sizeof longer);
    switch (wish) {
    case WAITS:
        return BERTH_WAIT;
    case NO_REASON:
        CU_ASSERT(!e->emit(c, pod, BERTH_EVENT_NORMAL, BERTH_STR("no reason"), note));
        return BERTH_SUCCESS;
    case NO_SUCH_CODE:
        CU_ASSERT(!e->emit(c, pod, 2, reason, note));
        return BERTH_SUCCESS;
    case BAD_TEXT:
        CU_ASSERT(!e->emit(c, pod, BERTH_EVENT_NORMAL, reason, BERTH_STR("\xff")));
        return BERTH_SUCCESS;
    case LONG_TEXT:
        CU_ASSERT(!e->emit(c, pod, 0, reason, (struct berth_str){longer, sizeof longer}));
        return BERTH_SUCCESS;
    case UNKNOWN_NODE:
        CU_ASSERT(!e->emit(c, NULL, 0, reason, note));
        return BERTH_SUCCESS;
    default:
        CU_ASSERT(e->emit(c, pod, BERTH_EVENT_WARNING, reason, note) == 1);
        CU_ASSERT(host->base->now(c) == 77);
        host->waiting->each(last->home, tell_uid, c);
        return BERTH_SUCCESS;
    }
}
static int32_t talks_too_early(void *self, struct berth_call *c, const struct berth_node *node,
                               struct berth_why *why)
{
    (void)self, (void)node, (void)why;
    CU_ASSERT(!host->events->emit(c, host->pods->current(c), 0, BERTH_STR("X"), BERTH_STR("")));
    return BERTH_SUCCESS;
}

/* What the host says of the pod's containers and of the node, and the last start of its pods. */
static int64_t last_start;
static int32_t score_spec(void *self, struct berth_call *c, const struct berth_node *node,
                          int64_t *ret, struct berth_why *why)
{
    const struct instance *in = self;
    const struct berth_pod *pod = host->pods->current(c);
    berth_sym gpu = host->base->intern(in->home, BERTH_STR("x.y/gpu"));

    (void)why;
    n_score++;
    CU_ASSERT_EQUAL(host->pods->n_containers(c, pod), 2);
    CU_ASSERT_EQUAL(host->pods->container_kind(c, pod, 0), BERTH_CONTAINER_INIT);
    CU_ASSERT_EQUAL(host->pods->container_kind(c, pod, 1), BERTH_CONTAINER);
    CU_ASSERT_EQUAL(host->pods->container_name(c, pod, 0),
                    host->base->intern(in->home, BERTH_STR("i")));
    CU_ASSERT_EQUAL(host->pods->container_name(c, pod, 1),
                    host->base->intern(in->home, BERTH_STR("c")));
    CU_ASSERT_EQUAL(host->pods->container_name(c, pod, 2), 0);
    CU_ASSERT_EQUAL(host->pods->container_request(c, pod, 1, in->cpu), 200);
    CU_ASSERT_EQUAL(host->pods->container_request(c, pod, 2, in->cpu), -1);
    CU_ASSERT_EQUAL(host->pods->container_limit(c, pod, 1, in->cpu), -1);
    CU_ASSERT_EQUAL(host->pods->container_limit(c, pod, 0, in->cpu), 50);
    CU_ASSERT_EQUAL(host->pods->overhead(c, pod, in->cpu), 7);
    CU_ASSERT_EQUAL(host->pods->overhead(c, pod, gpu), 0);
    CU_ASSERT_EQUAL(host->pods->n_extended(c, pod), 1);
    CU_ASSERT_EQUAL(host->pods->extended_at(c, pod, 0), gpu);
    CU_ASSERT_EQUAL(host->pods->extended_at(c, pod, 1), BERTH_SYM_ABSENT);
    CU_ASSERT_EQUAL(host->nodes->n_extended(c, node), 1);
    CU_ASSERT_EQUAL(host->nodes->extended_at(c, node, 0), gpu);
    CU_ASSERT_EQUAL(host->nodes->capacity(c, node, gpu), 8);
    CU_ASSERT_EQUAL(host->nodes->capacity(c, node, in->cpu), 5000);
    for (uint32_t i = 0; i < host->nodes->n_pods(c, node); i++)
        last_start = host->pods->started(c, host->nodes->pod_at(c, node, i));
    *ret = 1;
    return BERTH_SUCCESS;
}
/* Of the pod itself it is identity. */
static int32_t score_own_start(void *self, struct berth_call *c, const struct berth_node *node,
                               int64_t *ret, struct berth_why *why)
{
    (void)self, (void)node, (void)why;
    *ret = host->pods->started(c, host->pods->current(c)) + 1;
    return BERTH_SUCCESS;
}

/* Defines metrics. */
static uint32_t defined[4];
static int32_t create_measured(struct berth_home *h, const struct berth_value *args, void **ret,
                               struct berth_why *why)
{
    static const double bounds[] = {1, 2}, falling[] = {2, 1};
    const struct berth_host_metrics *m = host->metrics;
    const struct berth_str help = BERTH_STR("What it is."), name = BERTH_STR("seen_total");
    char full[8];
    int32_t code = create(h, args, ret, why);

    CU_ASSERT(m->define(h, 3, name, help, NULL, 0) == 0);
    CU_ASSERT(m->define(h, 0, BERTH_STR("Seen"), help, NULL, 0) == 0);
    CU_ASSERT(m->define(h, 0, BERTH_STR(""), help, NULL, 0) == 0);
    CU_ASSERT(m->define(h, 0, name, BERTH_STR("\xff"), NULL, 0) == 0);
    CU_ASSERT(m->define(h, 0, name, help, bounds, 2) == 0);
    CU_ASSERT(m->define(h, 2, name, help, falling, 2) == 0);
    CU_ASSERT(m->define(h, 2, name, help, bounds, 33) == 0);
    CU_ASSERT(m->define(h, 2, name, help, NULL, 0) == 0);
    defined[0] = m->define(h, BERTH_COUNTER, name, help, NULL, 0);
    defined[1] = m->define(h, BERTH_GAUGE, BERTH_STR("load"), help, NULL, 0);
    defined[2] = m->define(h, BERTH_HISTOGRAM, BERTH_STR("took"), help, bounds, 2);
    CU_ASSERT(m->define(h, BERTH_COUNTER, name, help, NULL, 0) == defined[0]);
    CU_ASSERT(m->define(h, BERTH_GAUGE, name, help, NULL, 0) == 0);
    for (unsigned i = 0; i < 29; i++) {
        snprintf(full, sizeof full, "m%u", i);
        CU_ASSERT(m->define(h, 0, (struct berth_str){full, strlen(full)}, help, NULL, 0) == i + 4);
    }
    CU_ASSERT(m->define(h, 0, BERTH_STR("one_more"), help, NULL, 0) == 0);
    return code;
}

/* Wants patches of the pod: as many as `patches` says, and the first one twice. */
static unsigned patches = 1, n_posted;
static int32_t answers[20];
static struct berth_patch patch_of(struct berth_call *c, const char *body)
{
    const struct berth_pod *pod = host->pods->current(c);

    return (struct berth_patch){.size = sizeof(struct berth_patch),
                                .api_version = BERTH_STR("v1"),
                                .resource = BERTH_STR("pods"),
                                .namespace_ = host->pods->namespace_(c, pod),
                                .name = host->pods->name(c, pod),
                                .uid = host->pods->uid(c, pod),
                                .body = {body, strlen(body)}};
}
static int32_t pre_bind(void *self, struct berth_call *c, berth_sym node, struct berth_why *why)
{
    (void)self;
    CU_ASSERT(host->base->text(last->home, node).p[0] == 'a' && host->base->now(c) == 78);
    for (unsigned i = 0; i < patches; i++) {
        char body[32];
        snprintf(body, sizeof body, "{\"a\":%u}", i);
        struct berth_patch p = patch_of(c, body);
        answers[i] = host->writes->patch(c, &p);
        if (i == 0)
            CU_ASSERT(host->writes->patch(c, &p) == answers[0]);
    }
    return wrong(c, why);
}
static int32_t bind_by_patch(void *self, struct berth_call *c, berth_sym node,
                             struct berth_why *why)
{
    struct berth_patch p = patch_of(c, "[{\"op\":\"add\",\"path\":\"/a\",\"value\":1}]");

    (void)self, (void)node;
    CU_ASSERT(host->base->now(c) == 77);
    p.type = BERTH_PATCH_JSON;
    if (patches == 0)
        return BERTH_SKIP;
    CU_ASSERT(host->writes->patch(c, &p) == 1);
    if (patches > 1)
        CU_ASSERT(host->writes->patch(c, &p) == 0);
    return wrong(c, why);
}
static void post_bind(void *self, struct berth_call *c, berth_sym node)
{
    (void)self;
    CU_ASSERT(host->base->text(last->home, node).p[0] == 'a' && host->base->now(c) == 77);
    CU_ASSERT(host->pods->name(c, host->pods->current(c)).n == 1);
    n_posted++;
}
/* A patch with one thing wrong about it. */
static const struct {
    const char *why;
    uint32_t size, type;
    const char *resource, *name, *uid, *body;
} bad_patches[] = {
    {"its struct berth_patch has 8 bytes, at least 136 are needed", 8, 0, "pods", "p", "u", "{}"},
    {"its patch has the type 2: ", 136, 2, "pods", "p", "u", "{}"},
    {"needs api_version, resource and name", 136, 0, "", "p", "u", "{}"},
    {"needs api_version, resource and name", 136, 0, "pods", "", "u", "{}"},
    {"needs api_version, resource and name", 136, 0,
     "p\xff"
     "ods",
     "p", "u", "{}"},
    {"is not printable UTF-8 of at most", 136, 0, "pods", "p", "\xc3\x28", "{}"},
    {"the body of its patch has 0 bytes: 1 to 65535", 136, 0, "pods", "p", "u", ""},
    {"the body of its patch is no JSON", 136, 0, "pods", "p", "u", "{"},
    {"the body of its patch is no JSON", 136, 0, "pods", "p", "u", "{\"a\":\"\xff\"}"},
    {"the body of its merge patch is no object", 136, 0, "pods", "p", "u", "[]"},
    {"the body of its JSON patch is no list", 136, 1, "pods", "p", "u", "{}"},
    {"says neither uid nor resource_version", 136, 0, "pods", "p", "", "{}"},
};
static unsigned bad_patch;
static struct berth_str text(const char *s)
{
    return (struct berth_str){s, strlen(s)};
}
static int32_t bad_pre_bind(void *self, struct berth_call *c, berth_sym node, struct berth_why *why)
{
    const struct berth_patch p = {.size = bad_patches[bad_patch].size,
                                  .type = bad_patches[bad_patch].type,
                                  .api_version = BERTH_STR("v1"),
                                  .resource = text(bad_patches[bad_patch].resource),
                                  .name = text(bad_patches[bad_patch].name),
                                  .uid = text(bad_patches[bad_patch].uid),
                                  .body = text(bad_patches[bad_patch].body)};

    (void)self, (void)node, (void)why;
    CU_ASSERT(host->writes->patch(c, &p) == 0);
    return BERTH_SUCCESS;
}
static int32_t writes_at_permit(void *self, struct berth_call *c, berth_sym node, int64_t *wait_ns,
                                struct berth_why *why)
{
    const struct berth_patch p = patch_of(c, "{}");

    (void)self, (void)node, (void)wait_ns, (void)why;
    CU_ASSERT(host->writes->patch(c, &p) == 0);
    return BERTH_SUCCESS;
}

static int32_t tended[66];
static void tend(void *self, struct berth_call *c)
{
    (void)self;
    CU_ASSERT(!host->pods->current(c) && host->nodes->count(c) > 0 && host->base->now(c) == 79);
    for (unsigned i = 0; i < 66; i++) {
        char body[32];
        snprintf(body, sizeof body, "{\"a\":%u}", i);
        const struct berth_patch p = {.size = sizeof p,
                                      .api_version = BERTH_STR("x.io/v1"),
                                      .resource = BERTH_STR("others"),
                                      .subresource = BERTH_STR("status"),
                                      .name = BERTH_STR("o"),
                                      .uid = BERTH_STR("u"),
                                      .body = text(body)};
        tended[i] = host->writes->patch(c, &p);
    }
}

/* ---- one that reads objects: nodes that the ConfigMap "rules" of namespace "x" names pass ----- */

static const struct berth_kind kinds[] = {
    {.group = {"x.io", 4}, .version = {"v1", 2}, .resource = {"others", 6}},
    {.group = {"", 0}, .version = {"v1", 2}, .resource = {"configmaps", 10}, .namespaced = 1}};
static const struct berth_event on_kinds[] = {{BERTH_ON_KIND(1), BERTH_ALL}};
static struct { /* what the hint saw last */
    uint32_t on, action;
    char name[32];
    bool there;
} changed;

static void look_at(struct berth_call *c, const struct berth_object *o)
{
    const struct berth_host_values *v = host->values;
    const struct berth_host_objects *h = host->objects;
    const struct berth_value *all = h->value(c, o), *data = v->get(all, BERTH_STR("data"));
    struct berth_str id = h->uid(c, o), team = h->label(c, o, BERTH_STR("team"));
    int64_t n = 0;

    CU_ASSERT(h->namespace_(c, o).n == 1 && h->name(c, o).n == 5 && id.n == 2);
    CU_ASSERT(team.n == 2 && memcmp(team.p, "t1", 2) == 0);
    CU_ASSERT(!h->label(c, o, BERTH_STR("tea")).p);
    CU_ASSERT(!v->path(all, BERTH_STR("metadata.managedFields")));
    CU_ASSERT(v->count(v->get(data, BERTH_STR("list"))) == 2 && v->count(NULL) == 0);
    CU_ASSERT(v->integer(v->path(data, BERTH_STR("list.1")), &n) && n == 8);
    CU_ASSERT(!v->path(data, BERTH_STR("list.2")) && !v->path(data, BERTH_STR("list.x")) &&
              !v->path(data, BERTH_STR("list.99999999999")) &&
              !v->path(data, BERTH_STR("nodes.0")) && !v->path(data, BERTH_STR("list.")));
    CU_ASSERT(v->quantity(v->get(data, BERTH_STR("cpu")), 1, &n) && n == 1500);
    CU_ASSERT(v->quantity(v->get(data, BERTH_STR("cpu")), 0, &n) && n == 2);
    CU_ASSERT(!v->quantity(v->get(data, BERTH_STR("nodes")), 0, &n) && n == 2);
    CU_ASSERT(v->time(v->get(data, BERTH_STR("at")), &n) && n == INT64_C(1500000000));
    CU_ASSERT(!v->time(v->get(data, BERTH_STR("nodes")), &n));
}
static int32_t filter_object(void *self, struct berth_call *c, const struct berth_node *node,
                             struct berth_why *why)
{
    const struct berth_host_objects *h = host->objects;
    const struct instance *in = self;
    const struct berth_object *o = h->find(c, 1, BERTH_STR("x"), BERTH_STR("rules"));
    struct berth_str name = host->base->text(in->home, host->nodes->name(c, node));

    n_filter++;
    last_call = c;
    CU_ASSERT(!h->find(c, 0, BERTH_STR("x"), BERTH_STR("rules")) && !h->first(c, 2));
    CU_ASSERT(!h->find(c, 1, BERTH_STR("y"), BERTH_STR("rules")));
    CU_ASSERT(h->first(c, 1) == o && (!o || !h->next(c, o)));
    why->reason = BERTH_STR("not named");
    if (!o)
        return BERTH_UNSCHEDULABLE;
    look_at(c, o);
    struct berth_str names =
        host->values->text(host->values->path(h->value(c, o), BERTH_STR("data.nodes")));
    return memchr(names.p, *name.p, names.n) ? BERTH_SUCCESS : BERTH_UNSCHEDULABLE;
}
static int32_t hint_object(void *self, struct berth_call *c, const struct berth_change *change)
{
    (void)self, (void)c;
    changed.on = change->on;
    changed.action = change->action;
    snprintf(changed.name, sizeof changed.name, "%.*s/%.*s", (int)change->object_namespace.n,
             change->object_namespace.p, (int)change->object_name.n, change->object_name.p);
    changed.there = change->object != NULL;
    if (change->object)
        look_at(c, change->object);
    return change->object != NULL;
}
/* Later names first, while there are rules. */
static int32_t less_object(void *self, struct berth_call *c, const struct berth_queued *a,
                           const struct berth_queued *b)
{
    int later = host->pods->name(c, a->pod).p[0] > host->pods->name(c, b->pod).p[0];

    (void)self;
    return later == (host->objects->find(c, 1, BERTH_STR("x"), BERTH_STR("rules")) != NULL);
}
/* What epoch() finds holds for 10 s: by it, and not by the clock, filter decides. */
static int64_t ten_seconds;
static uint64_t by_time(void *self, struct berth_call *c)
{
    (void)self;
    ten_seconds = host->base->now(c) / INT64_C(10000000000);
    return (uint64_t)ten_seconds;
}
static int32_t filter_time(void *self, struct berth_call *c, const struct berth_node *node,
                           struct berth_why *why)
{
    (void)self, (void)c, (void)node;
    n_filter++;
    why->reason = BERTH_STR("not now");
    return ten_seconds % 2 ? BERTH_SUCCESS : BERTH_UNSCHEDULABLE;
}
static int32_t pre_filter_time(void *self, struct berth_call *c, const berth_sym **names,
                               uint64_t *n_names, struct berth_why *why)
{
    (void)self, (void)c, (void)names, (void)n_names, (void)why;
    return BERTH_SUCCESS;
}

/* Nodes that changed and the pods on them, each with who schedules it. */
static char heard[256];
static uint64_t followed;
static void hear(void *arg, const struct berth_node *node)
{
    struct berth_call *c = arg;
    size_t n = strlen(heard);

    n += (size_t)snprintf(heard + n, sizeof heard - n, " %s",
                          host->base->text(last->home, host->nodes->name(c, node)).p);
    for (uint32_t i = 0; i < host->nodes->n_pods(c, node); i++) {
        const struct berth_pod *pod = host->nodes->pod_at(c, node, i);
        n += (size_t)snprintf(heard + n, sizeof heard - n, ":%s/%s", host->pods->name(c, pod).p,
                              host->base->text(last->home, host->pods->scheduler_name(c, pod)).p);
    }
}
static uint64_t follow(void *self, struct berth_call *c)
{
    (void)self;
    followed = host->nodes->changed(c, followed, hear, c);
    return 0;
}
static int32_t filter_following(void *self, struct berth_call *c, const struct berth_node *node,
                                struct berth_why *why)
{
    (void)self, (void)node, (void)why;
    return host->nodes->changed(c, 0, hear, c) ? BERTH_SUCCESS : BERTH_ERROR;
}

/* Nodes (and pods) with the annotation x/ok: yes pass. */
static int says_yes(struct berth_str s)
{
    CU_ASSERT(s.p || !s.n);
    return s.n == 3 && memcmp(s.p, "yes", 3) == 0;
}
static int32_t filter_notes(void *self, struct berth_call *c, const struct berth_node *node,
                            struct berth_why *why)
{
    (void)self;
    n_filter++;
    CU_ASSERT(!host->nodes->annotation(c, node, BERTH_STR("x/o")).p);
    why->reason = BERTH_STR("not annotated");
    return says_yes(host->nodes->annotation(c, node, BERTH_STR("x/ok"))) ? BERTH_SUCCESS
                                                                         : BERTH_UNSCHEDULABLE;
}
static int32_t filter_pod_notes(void *self, struct berth_call *c, const struct berth_node *node,
                                struct berth_why *why)
{
    const struct berth_host_pods *h = host->pods;
    const struct berth_pod *pod = h->current(c);
    const int yes = says_yes(h->annotation(c, pod, BERTH_STR("x/ok")));
    struct berth_str key;

    (void)self, (void)node;
    why->reason = BERTH_STR("not annotated");
    CU_ASSERT((h->annotation_at(c, pod, 0, &key).p != NULL) == yes);
    CU_ASSERT(!yes || (says_yes(h->annotation_at(c, pod, 1, &key)) && key.n == 4));
    CU_ASSERT_PTR_NULL(h->annotation_at(c, pod, 2, &key).p);
    CU_ASSERT(!yes || says_yes(h->annotation_at(c, pod, 1, &key)));
    CU_ASSERT_EQUAL(h->priority_class(c, pod).n, yes ? 5 : 0);
    CU_ASSERT_EQUAL(h->scheduled(c, pod), yes ? 9000000000 : 0);
    CU_ASSERT_EQUAL(h->seccomp_profile(c, pod, 0).n, yes ? 3 : 0);
    CU_ASSERT_EQUAL(h->seccomp_profile(c, pod, 1).n, yes ? 6 : 0); /* one is not Localhost */
    CU_ASSERT_PTR_NULL(h->seccomp_profile(c, pod, 2).p);
    return yes ? BERTH_SUCCESS : BERTH_UNSCHEDULABLE;
}

static int32_t pre_score(void *self, struct berth_call *c, const uint32_t *rows, uint64_t n,
                         struct berth_why *why)
{
    (void)self, (void)c, (void)rows, (void)n, (void)why;
    return BERTH_SUCCESS;
}

static unsigned n_epoch;
static uint64_t count_epoch(void *self, struct berth_call *c)
{
    (void)self, (void)c;
    n_epoch++;
    return 0;
}

#define SIZED(text, bytes)                                                                         \
    .size = (bytes), .name = {text, sizeof text - 1}, .create = create, .destroy = destroy
#define NAMED(text) SIZED(text, sizeof(struct berth_plugin))
static const struct berth_event on_node[] = {{BERTH_ON_NODE, BERTH_ADD | BERTH_NODE_LABEL}};
static const struct berth_plugin plugins[] = {
    {NAMED("Rows"), .reads = BERTH_READS_NODE, .filter = filter, .filter_rows = filter_rows,
     .score = score, .score_rows = score_rows},
    {NAMED("Plain"), .reads = BERTH_READS_NODE, .filter = filter, .score = score},
    {NAMED("Max"), .reads = BERTH_READS_NODE, .normal = BERTH_NORMAL_MAX, .score = score,
     .score_rows = score_rows},
    {NAMED("Each"), .reads = BERTH_READS_NODE, .normal = BERTH_NORMAL_MAX, .score = score},
    {NAMED("Own"), .reads = BERTH_READS_NODE, .score_rows = score_rows, .normalize = normalize},
    {NAMED("Undeclared"), .filter = filter, .score = score},
    {NAMED("Pre"), .reads = BERTH_READS_NODE, .pre_filter = pre_filter},
    {NAMED("Counts"), .reads = BERTH_READS_NODE | BERTH_READS_PODS, .pre_filter = count_pods,
     .change_pod = change_pod, .clone_state = clone_state, .filter = filter_counted},
    {NAMED("Queues"), .pre_enqueue = pre_enqueue, .hint = hint, .events = on_node, .n_events = 1,
     .permit = permit},
    {NAMED("User"), .flags = BERTH_USER_COLUMNS, .reads = BERTH_READS_NODE, .filter = filter_user},
    {NAMED("Nominates"), .post_filter = post_filter},
    {NAMED("Spec"), .reads = BERTH_READS_NODE | BERTH_READS_PODS, .score = score_spec},
    {NAMED("OwnStart"), .reads = BERTH_READS_NODE | BERTH_READS_PODS, .score = score_own_start},
    {NAMED("Objects"), .reads = BERTH_READS_NODE | BERTH_READS_OBJECTS, .filter = filter_object,
     .kinds = kinds, .n_kinds = 2, .events = on_kinds, .n_events = 1, .hint = hint_object},
    {NAMED("Peeks"), .reads = BERTH_READS_NODE, .filter = filter_object, .kinds = kinds,
     .n_kinds = 2},
    {NAMED("Notes"), .reads = BERTH_READS_NODE | BERTH_READS_ANNOTATIONS, .filter = filter_notes},
    {NAMED("PodNotes"), .reads = BERTH_READS_IDENTITY | BERTH_READS_ANNOTATIONS,
     .filter = filter_pod_notes},
    {NAMED("NoNotes"), .filter = filter_notes},
    {NAMED("Timed"), .reads = BERTH_READS_NODE, .epoch = by_time, .pre_filter = pre_filter_time,
     .filter = filter_time},
    /* as one that was built for 1.0 */
    {SIZED("Older", offsetof(struct berth_plugin, less)), .reads = BERTH_READS_NODE,
     .filter = filter, .kinds = kinds, .n_kinds = 99},
    {NAMED("Reserves"), .reads = BERTH_READS_NODE, .reserve = reserve},
    {NAMED("Follows"), .reads = BERTH_READS_NODE, .epoch = follow, .pre_filter = pre_filter_time},
    {NAMED("FollowsLate"), .reads = BERTH_READS_NODE, .filter = filter_following},
    {NAMED("Orders"), .reads = BERTH_READS_NODE, .less = less},
    {NAMED("OrdersByRules"), .reads = BERTH_READS_NODE | BERTH_READS_OBJECTS, .less = less_object,
     .kinds = kinds, .n_kinds = 2},
    {NAMED("OrdersBlindly"), .reads = BERTH_READS_NODE, .less = less_object, .kinds = kinds,
     .n_kinds = 2},
    {NAMED("Idles"), .filter = filter_all, .idle = idle},
    {NAMED("IdlesKept"), .reads = BERTH_READS_NODE, .filter = filter_all, .idle = idle},
    {NAMED("Talks"), .reads = BERTH_READS_NODE, .permit = talks},
    {NAMED("Early"), .filter = talks_too_early},
    {.size = sizeof(struct berth_plugin),
     .name = {"Measures", 8},
     .create = create_measured,
     .destroy = destroy,
     .reads = BERTH_READS_NODE,
     .filter = filter},
    {NAMED("Binds"), .reads = BERTH_READS_NODE, .pre_bind = pre_bind, .bind = bind_by_patch,
     .post_bind = post_bind},
    {NAMED("BadPatch"), .reads = BERTH_READS_NODE, .pre_bind = bad_pre_bind,
     .permit = writes_at_permit},
    {NAMED("Tends"), .reads = BERTH_READS_NODE, .filter = filter_all, .tend = tend},
    {NAMED("Alone"), .flags = BERTH_STANDS_ALONE, .reads = BERTH_READS_NODE,
     .pre_filter = pre_filter, .filter = filter, .pre_score = pre_score, .score = score},
    {NAMED("Refreshes"), .reads = BERTH_READS_NODE, .epoch = count_epoch, .score = score},
    {NAMED("Leans"), .reads = BERTH_READS_NODE, .pre_filter = pre_filter, .filter = filter,
     .pre_score = pre_score, .score = score},
};

static const struct bh_plugin *aside;

/* Adopted once each: the registry remembers what it found. */
static const struct bh_plugin *find(const char *name)
{
    if (strncmp(name, "Gone", 4) == 0)
        return aside;
    static struct bh_native_plugin *made[BH_ARRAY_LEN(plugins)];
    struct bh_err err;

    for (size_t i = 0; i < BH_ARRAY_LEN(plugins); i++) {
        if (!bh_streq(plugins[i].name.p, name))
            continue;
        if (!made[i])
            CU_ASSERT_FATAL(bh_native_adopt(&plugins[i], &made[i], &err) == 0);
        return &made[i]->d;
    }
    return NULL;
}

/* at: the extension points where it is enabled, up to two. */
static void begin_at(struct fx *f, const char *plugin, const char *const at[2], bool verify)
{
#define ENABLED "'%s':{'enabled':[{'name':'%s','weight':10}]}"
    char profile[256], second[96] = "";

    bh_plugin_find_more = find;
    n_created = n_destroyed = n_filter = n_filter_rows = n_score = n_score_rows = 0;
    if (at[1])
        snprintf(second, sizeof second, "," ENABLED, at[1], plugin);
    snprintf(profile, sizeof profile,
             "{'schedulerName':'default-scheduler','plugins':{" ENABLED "%s}}", at[0], plugin,
             second);
    fx_init_with(f, profile,
                 (struct bh_engine_options){.tie_break = BH_TIE_FIRST, .verify = verify});
}
static void begin_empty(struct fx *f, const char *plugin, bool verify)
{
    begin_at(f, plugin, (const char *const[]){"multiPoint", NULL}, verify);
}
static void make_nodes(struct fx *f)
{
    static const char *const nodes[] = {"a", "b", "c"};
    static const char *const labels[] = {"'rank':'20'", "'rank':'30'", ""};

    for (unsigned i = 0; i < 3; i++)
        fx_node(f, nodes[i], "'cpu':'4','memory':'8Gi','pods':'110'", labels[i], "", "");
}
static void begin(struct fx *f, const char *plugin, bool verify)
{
    begin_empty(f, plugin, verify);
    make_nodes(f);
}

static const struct bh_decision *schedule(struct fx *f, const char *name)
{
    struct fx_pod p = fx_pod(f, name, "'cpu':'10m'", "");
    const struct bh_pending pending = {.pod = p.rec, .shape = p.shape};

    return bh_engine_schedule(f->e, &pending, 0, INT64_C(1893456000) * 1000000000);
}

/* ---- what it does ---------------------------------------------------------------------------- */

static void test_decides(void)
{
    static const char *const names[] = {"Rows", "Plain", "Undeclared"};

    for (unsigned i = 0; i < BH_ARRAY_LEN(names); i++) {
        struct fx f;
        wish = WELL;
        begin(&f, names[i], true);
        const struct bh_decision *d = fx_schedule(&f, fx_pod(&f, "p", "'cpu':'10m'", ""));
        FX_STR(fx_text(&f, d->node), "b");
        FX_STR(fx_verdict(&f, d, "c"), "Unschedulable: node(s) had no rank");
        CU_ASSERT(fx_score(&f, d, "b", names[i], true) == 30);
        CU_ASSERT(fx_score(&f, d, "b", names[i], false) == 300);
        fx_fini(&f);
        CU_ASSERT(n_created == 1 && n_destroyed == 1);
    }
}

/* What it declares decides who takes the decision, and both take the same. */
static void test_fast(void)
{
    static const struct {
        const char *name;
        bool fast;
    } rows[] = {{"Rows", true}, {"Plain", true}, {"Max", true},
                {"Each", true}, {"Own", true},   {"Undeclared", false}};

    for (unsigned i = 0; i < BH_ARRAY_LEN(rows); i++) {
        struct bh_engine_stats st;
        struct fx f, v;
        char name[8];
        wish = WELL;
        begin(&v, rows[i].name, true);
        begin(&f, rows[i].name, false);
        for (unsigned k = 0; k < 40; k++) {
            snprintf(name, sizeof name, "p%u", k);
            const char *a = fx_text(&v, schedule(&v, name)->node);
            const char *b = fx_text(&f, schedule(&f, name)->node);
            FX_STR(a, b);
            fx_place(&v, fx_pod(&v, name, "'cpu':'10m'", ""), a);
            fx_place(&f, fx_pod(&f, name, "'cpu':'10m'", ""), b);
        }
        bh_engine_stats(f.e, &st);
        CU_ASSERT(st.cycles == 40 && st.fast_cycles == (rows[i].fast ? 40u : 0u));
        fx_fini(&v);
        fx_fini(&f);
    }
}

/* Without its PreFilter and PreScore answers are kept only if it says that it does without. */
static void test_alone(void)
{
    static const char *const names[] = {"Leans", "Alone"};
    static const char *const at[] = {"filter", "score"};

    for (unsigned i = 0; i < BH_ARRAY_LEN(names); i++) {
        struct bh_engine_stats st;
        struct fx f;
        char name[8];
        wish = WELL;
        begin_at(&f, names[i], at, false);
        make_nodes(&f);
        for (unsigned k = 0; k < 5; k++) {
            snprintf(name, sizeof name, "p%u", k);
            FX_STR(fx_text(&f, schedule(&f, name)->node), "b");
        }
        bh_engine_stats(f.e, &st);
        CU_ASSERT(st.cycles == 5 && st.fast_cycles == (i ? 5u : 0u));
        fx_fini(&f);
    }
}

/* For each pod, whichever way it is decided: a plugin may follow there what its answers are made of. */
static void test_epoch(void)
{
    static const char *const requests[] = {"'cpu':'10m'", "'cpu':'20m'", "'cpu':'10m'",
                                           "'cpu':'10m'"};
    static const unsigned flags[] = {0, BH_EXPLAIN}; /* explained: by the reference path */
    struct fx f;

    wish = WELL;
    for (unsigned i = 0; i < BH_ARRAY_LEN(flags); i++) {
        begin_at(&f, "Refreshes", (const char *const[]){"score", NULL}, false);
        make_nodes(&f);
        for (unsigned k = 0; k < BH_ARRAY_LEN(requests); k++) {
            struct fx_pod p = fx_pod(&f, "p", requests[k], "");
            const struct bh_pending pending = {.pod = p.rec, .shape = p.shape};
            n_epoch = 0;
            CU_ASSERT(bh_engine_schedule(f.e, &pending, flags[i], 1)->kind == BH_DECIDED);
            CU_ASSERT(n_epoch > 0);
        }
        fx_fini(&f);
    }
}

/* Kept results: a plugin that reads nodes' objects only is not asked because pods came. */
static void test_kept(void)
{
    struct fx f;
    char name[8];

    wish = WELL;
    begin(&f, "Rows", false);
    for (unsigned k = 0; k < 20; k++) {
        snprintf(name, sizeof name, "p%u", k);
        fx_place(&f, fx_pod(&f, name, "'cpu':'10m'", ""), fx_text(&f, schedule(&f, name)->node));
    }
    CU_ASSERT(n_filter == 0 && n_score == 0);
    CU_ASSERT(n_filter_rows > 0 && n_filter_rows <= 3 && n_score_rows <= 3);
    unsigned before = n_score_rows;
    fx_node(&f, "c", "'cpu':'4','memory':'8Gi','pods':'110'", "'rank':'90'", "", "");
    FX_STR(fx_text(&f, schedule(&f, "q")->node), "c");
    CU_ASSERT(n_score_rows == before + 1);
    fx_fini(&f);
}

/* Without a batch form: node by node, which metrics tell, and the watchdog sees each. */
static void test_one_by_one(void)
{
    struct fx f;

    wish = WELL;
    bh_native_mark = &mark;
    begin(&f, "Each", false);
    const struct bh_plugin *each = bh_plugin_find("Each"), *max = bh_plugin_find("Max");
    CU_ASSERT(each->score_rows && each->scores_alone && !max->scores_alone);
    const uint64_t before = mark.calls;
    FX_STR(fx_text(&f, schedule(&f, "p")->node), "b");
    CU_ASSERT(n_score == 3 && mark.calls == before + 3 && mark.hook == BH_HOOK_NONE);
    bh_native_mark = NULL;
    fx_fini(&f);
}

/* ---- what it may not ------------------------------------------------------------------------- */

#define FILTER(plugin, text) "running \"" plugin "\" filter plugin: " text
#define SCORE(plugin, text)  "running Score plugins: plugin \"" plugin "\" failed with: " text
#define OUTSIDE(plugin, text)                                                                      \
    "applying score defaultWeights on Score plugins: plugin \"" plugin                             \
    "\" returns an invalid score " text ", it should in the range of [0, 100] after normalizing"

static void test_wrong_answers(void)
{
    static const struct {
        const char *plugin;
        enum wish wish;
        const char *message;
    } rows[] = {
        {"Rows", NO_SUCH_CODE,
         FILTER("Rows", "it returned the status code 17, which there is not")},
        {"Rows", WAITS, FILTER("Rows", "it may not return Wait here")},
        {"Rows", BAD_TEXT, FILTER("Rows", "it gave a reason that is not printable UTF-8")},
        {"Rows", LONG_TEXT, FILTER("Rows", "it gave a reason of more than 1024 bytes")},
        {"Rows", FAILS, FILTER("Rows", "no idea")},
        {"Plain", ASKS_SUMS,
         FILTER("Plain", "it used requested without BERTH_READS_SUMS in its reads")},
        {"Plain", ASKS_PODS,
         FILTER("Plain", "it used pod_at without BERTH_READS_PODS in its reads")},
        {"Plain", ASKS_NAME,
         FILTER("Plain", "it used name without BERTH_READS_IDENTITY in its reads")},
        {"Plain", ASKS_TIME, FILTER("Plain", "it used now without BERTH_READS_TIME in its reads")},
        {"Plain", ASKS_OTHERS,
         FILTER("Plain", "it used n_rows without BERTH_READS_OTHERS in its reads")},
        {"Rows", HIGH_SCORE, OUTSIDE("Rows", "101")},
        {"Max", NEGATIVE_RAW,
         SCORE("Max", "it returned the score -1: from 0 on is needed before normalizing")},
        {"Max", NO_SUCH_CODE, SCORE("Max", "it returned the status code 17, which there is not")},
        {"Each", NEGATIVE_RAW,
         SCORE("Each", "it returned the score -1: from 0 on is needed before normalizing")},
        {"Each", NO_SUCH_CODE, SCORE("Each", "it returned the status code 17, which there is not")},
        {"Each", ASKS_NAME,
         SCORE("Each", "it used name without BERTH_READS_IDENTITY in its reads")},
        {"Own", BAD_NORMAL, OUTSIDE("Own", "1000")},
        {"Own", CHANGES_ROWS, SCORE("Own", "it changed the rows that it was given")},
        {"Pre", UNKNOWN_NODE,
         "running PreFilter plugin \"Pre\": it named a node by a symbol that there is not"},
        {"Pre", WAITS, "running PreFilter plugin \"Pre\": it may not return Wait here"},
        {"Rows", ALLOCATES, ""},
    };

    for (unsigned i = 0; i < BH_ARRAY_LEN(rows); i++) {
        struct fx f;
        wish = rows[i].wish == FAILS ? WELL : rows[i].wish; /* an instance there is */
        begin(&f, rows[i].plugin, false);
        wish = rows[i].wish;
        for (unsigned k = 0; k < 3; k++) { /* seen first, kept, kept again */
            char name[8];
            snprintf(name, sizeof name, "p%u", k);
            const struct bh_decision *d = schedule(&f, name);
            FX_STR(d->message ? d->message : "", rows[i].message);
        }
        fx_fini(&f);
    }
}

/* Its batch form is not believed; filter() and score() are asked then, and decide. */
static void test_changed_rows(void)
{
    struct bh_engine_stats st;
    struct fx f;

    wish = CHANGES_ROWS;
    begin(&f, "Rows", false);
    for (unsigned k = 0; k < 3; k++)
        FX_STR(fx_text(&f, schedule(&f, "p")->node), "b");
    bh_engine_stats(f.e, &st);
    CU_ASSERT(st.fast_cycles == 0 && n_filter > 0);
    fx_fini(&f);
}

static void test_no_reason(void)
{
    struct fx f;

    wish = NO_REASON;
    begin(&f, "Rows", true);
    FX_STR(schedule(&f, "p")->fit_message,
           "0/3 nodes are available: 3 plugin \"Rows\" gave no reason.");
    fx_fini(&f);
}

static void test_no_instance(void)
{
    struct bh_sched_config *config = NULL;
    struct bh_engine *e = NULL;
    struct bh_err err = {{0}};
    struct fx f;

    wish = WELL;
    begin(&f, "Rows", false);
    config = f.config;
    wish = FAILS;
    const struct bh_engine_options o = {.config = config};
    CU_ASSERT(bh_engine_new(&o, &e, &err) == -EINVAL);
    CU_ASSERT(strstr(err.msg, "initializing plugin \"Rows\": not today") != NULL);
    wish = WELL;
    fx_fini(&f);
    CU_ASSERT(n_created == 1 && n_destroyed == 1);
}

/* From a thread of its own, and with a handle that is over. */
static void *call_from_thread(void *arg)
{
    CU_ASSERT(host->base->alloc(last_call, 8) == NULL);
    CU_ASSERT(host->base->intern(last->home, BERTH_STR("x")) == 0);
    CU_ASSERT(host->pods->current(arg) == NULL);
    CU_ASSERT(host->waiting->allow(last->home, BERTH_STR("x")) == 0);
    host->base->log(last->home, BERTH_LOG_DEBUG, BERTH_STR("allowed from anywhere"));
    return NULL;
}
static void test_stray_calls(void)
{
    pthread_t t;
    struct fx f;

    wish = WELL;
    begin(&f, "Rows", false);
    (void)schedule(&f, "p");
    CU_ASSERT(host->base->alloc(last_call, 8) == NULL);
    CU_ASSERT_FATAL(pthread_create(&t, NULL, call_from_thread, last_call) == 0);
    pthread_join(t, NULL);
    fx_fini(&f);
}

static void is_other(void *arg, struct bh_str uid)
{
    *(bool *)arg = bh_str_eq(uid, bh_str_c("uid-other"));
}

static void test_reserve(void)
{
    bool other = false;
    struct fx f;

    wish = WELL;
    begin(&f, "Reserves", false);
    struct fx_pod p = fx_pod(&f, "p", "'cpu':'10m'", "");
    const struct bh_pending pending = {.pod = p.rec, .shape = p.shape};
    bh_sym a = bh_sym_internc(bh_engine_symtab(f.e), "a");
    CU_ASSERT(bh_engine_reserve(f.e, &pending, a) == NULL);
    CU_ASSERT(bh_engine_activations(f.e, is_other, &other) == 1 && other);
    wish = BAD_TEXT;
    const struct bh_status *s = bh_engine_reserve(f.e, &pending, a);
    FX_STR(bh_status_message(&f.arena, s),
           "running Reserve plugin \"Reserves\": it gave a reason that is not printable UTF-8");
    bh_engine_unreserve(f.e, &pending, a);
    fx_fini(&f);
}

static void test_queue(void)
{
    struct fx f;

    wish = WELL;
    begin(&f, "Queues", false);
    struct fx_pod p = fx_pod(&f, "p", "'cpu':'10m'", "");
    const struct bh_pending pending = {.pod = p.rec, .shape = p.shape};
    CU_ASSERT(bh_engine_pre_enqueue(f.e, &pending) == NULL);
    wish = WAITS;
    const struct bh_status *s = bh_engine_pre_enqueue(f.e, &pending);
    CU_ASSERT(bh_status_code(s) == BH_PENDING);
    FX_STR(bh_status_message(&f.arena, s), "not yet");

    struct bh_cluster_event ev = {.resource = BH_EV_NODE, .action = BH_EV_NODE_LABEL};
    bool by_pod = false;
    wish = WELL;
    ev.new_node = fx_node_rec(&f, "c", "'cpu':'4'", "", "", "");
    CU_ASSERT(bh_engine_hint(f.e, "Queues", &pending, &ev, &by_pod) == BH_QUEUE_SKIP && !by_pod);
    ev.old_node = ev.new_node;
    ev.new_node = fx_node_rec(&f, "c", "'cpu':'4'", "'rank':'1'", "", "");
    CU_ASSERT(bh_engine_hint(f.e, "Queues", &pending, &ev, &by_pod) == BH_QUEUE && !by_pod);
    wish = ASKS_NAME; /* from now on the answer is this pod's alone */
    CU_ASSERT(bh_engine_hint(f.e, "Queues", &pending, &ev, &by_pod) == BH_QUEUE && by_pod);
    ev.action = BH_EV_NODE_TAINT; /* not one of its events */
    CU_ASSERT(bh_engine_hint(f.e, "Queues", &pending, &ev, &by_pod) == BH_QUEUE);
    ev.resource = BH_EV_POD_ASSIGNED;
    CU_ASSERT(bh_engine_hint(f.e, "Queues", &pending, &ev, &by_pod) == BH_QUEUE_SKIP);
    fx_fini(&f);
}

static void begin_order(struct fx *f, const char *plugin)
{
    char profile[256];

    bh_plugin_find_more = find;
    snprintf(profile, sizeof profile,
             "{'plugins':{'queueSort':{'enabled':[{'name':'%s'}],'disabled':[{'name':'*'}]}}}",
             plugin);
    fx_init(f, profile);
}

/* The key's pod lives in *room. */
static struct bh_queue_key key_of(struct fx *f, const char *name, int64_t entered,
                                  struct bh_pending *room)
{
    const struct fx_pod p = fx_pod(f, name, "'cpu':'10m'", "'priority':7");

    *room = (struct bh_pending){.pod = p.rec, .shape = p.shape};
    return (struct bh_queue_key){.waiting = room,
                                 .shape = bh_engine_shape_rec(f->e, p.shape),
                                 .attempts = 3,
                                 .timestamp_ns = entered,
                                 .initial_attempt_ns = 5};
}

static void test_queue_sort(void)
{
    struct bh_pending room[3];
    struct fx f;

    wish = WELL;
    seen = 0;
    bh_native_mark = &mark;
    begin_order(&f, "Orders");
    struct bh_queue_key a = key_of(&f, "a", 10, &room[0]), b = key_of(&f, "b", 10, &room[1]);
    CU_ASSERT(bh_engine_sorts(f.e));
    CU_ASSERT(bh_engine_less(f.e, &b, &a) && !bh_engine_less(f.e, &a, &b));
    CU_ASSERT(seen == 1u << BH_HOOK_LESS && mark.hook == BH_HOOK_NONE);
    bh_native_mark = NULL;
    wish = ASKS_TIME; /* what it may not: the pods go by priority and time */
    CU_ASSERT(!bh_engine_less(f.e, &b, &a) && !bh_engine_less(f.e, &a, &b));
    b.timestamp_ns = 11;
    CU_ASSERT(bh_engine_less(f.e, &a, &b));
    fx_fini(&f);
}

static void in_thread(void *(*fn)(void *), void *arg)
{
    pthread_t t;

    CU_ASSERT_FATAL(pthread_create(&t, NULL, fn, arg) == 0);
    pthread_join(t, NULL);
}

static void test_idle(void)
{
    static const char *const names[] = {"Idles", "IdlesKept"};

    for (unsigned i = 0; i < 4; i++) {
        struct bh_engine_stats st;
        struct fx f;
        wish = WELL;
        begin(&f, names[i / 2], i % 2);
        for (unsigned k = 0; k < 6; k++) {
            const struct fx_pod p =
                fx_pod(&f, "p", "'cpu':'10m'", k % 2 ? "'priority':7" : "'priority':1");
            const struct bh_pending pending = {.pod = p.rec, .shape = p.shape};
            const struct bh_decision *d = bh_engine_schedule(f.e, &pending, 0, 1);
            FX_STR(d->kind == BH_DECIDED ? fx_text(&f, d->node) : d->fit_message,
                   k % 2 ? "a" : "0/3 nodes are available: 3 not mine.");
        }
        bh_engine_stats(f.e, &st);
        if (i % 2 == 0) /* its reads close the fast path where it has a say */
            CU_ASSERT(st.fast_cycles >= 3 && (i / 2 || st.fast_cycles == 3));
        fx_fini(&f);
    }
    struct fx f;
    wish = ASKS_SUMS;
    begin(&f, "IdlesKept", false);
    FX_STR(schedule(&f, "p")->message,
           "running PreFilter plugin \"IdlesKept\": it used requested without BERTH_READS_SUMS in "
           "its reads");
    fx_fini(&f);
}

struct asked {
    char events[256], woken[64];
};
static void on_event(void *arg, const struct bh_asked_event *ev)
{
    struct asked *a = arg;
    size_t n = strlen(a->events);

    snprintf(a->events + n, sizeof a->events - n, "%s %s/%s %s %s by %s: %s, ",
             ev->warning ? "Warning" : "Normal", ev->namespace_, ev->name, ev->uid, ev->reason,
             ev->controller, ev->note);
}
static void on_wake(void *arg, const char *plugin)
{
    struct asked *a = arg;
    size_t n = strlen(a->woken);

    snprintf(a->woken + n, sizeof a->woken - n, "%s, ", plugin);
}
static const struct bh_asked asked = {.event = on_event, .wake = on_wake};

static const struct bh_status *permit_on(struct fx *f, const char *pod, const char *node)
{
    const struct fx_pod p = fx_pod(f, pod, "'cpu':'10m'", "");
    const struct bh_pending pending = {.pod = p.rec, .shape = p.shape};
    const bh_sym at = bh_sym_internc(bh_engine_symtab(f->e), node);
    int64_t timeout;

    CU_ASSERT(bh_engine_assume(f->e, &pending, at) == 0);
    return bh_engine_permit(f->e, &pending, at, &timeout);
}

static void on_write(void *arg, const struct bh_write *w)
{
    struct asked *a = arg;
    size_t n = strlen(a->woken);

    CU_ASSERT(w->what == BH_WRITE_PATCH && !*w->namespace_ && !w->patch->json);
    FX_STR(w->patch->api_version, "x.io/v1");
    FX_STR(w->patch->subresource, "status");
    if (n < 20)
        snprintf(a->woken + n, sizeof a->woken - n, "%s %s %s %s, ", w->plugin, w->name, w->uid,
                 w->patch->body);
}

/* Asked by bh_engine_tend() alone; what it wants is told once, and there is a bound. */
static void test_tends(void)
{
    static const struct bh_asked all = {on_event, on_wake, on_write};
    struct asked a = {"", ""};
    struct fx f;

    begin(&f, "Tends", false);
    CU_ASSERT(bh_engine_asked(f.e, &all, &a) == 0);
    bh_engine_tend(f.e, 79);
    CU_ASSERT(tended[0] == 1 && tended[63] == 1 && tended[64] == 0 && tended[65] == 0);
    CU_ASSERT(bh_engine_asked(f.e, &all, &a) == 64 && bh_engine_asked(f.e, &all, &a) == 0);
    FX_STR(a.woken, "Tends o u {\"a\":0}, Tends o u {\"a\":1}, ");
    fx_fini(&f);
}

static void test_waiting_and_events(void)
{
    static const enum wish bad[] = {NO_REASON, NO_SUCH_CODE, BAD_TEXT, LONG_TEXT, UNKNOWN_NODE};
    struct asked a = {"", ""};
    struct fx f;

    wish = WELL;
    *talked = '\0';
    begin(&f, "Talks", false);
    bh_engine_moment(f.e, 77);
    wish = WAITS;
    CU_ASSERT(bh_status_code(permit_on(&f, "p", "a")) == BH_WAIT);
    CU_ASSERT(bh_engine_asked(f.e, &asked, &a) == 0);
    wish = WELL;
    CU_ASSERT(permit_on(&f, "q", "b") == NULL);
    FX_STR(talked, "p on a, ");
    const char *who, *why;
    CU_ASSERT(bh_engine_permit_verdict(f.e, bh_engine_waiting(f.e, bh_str_c("uid-p")), 1, &who,
                                       &why) == BH_PERMIT_ALLOWED);
    CU_ASSERT(bh_engine_asked(f.e, &asked, &a) == 1 && bh_engine_asked(f.e, &asked, &a) == 0);
    FX_STR(a.events, "Warning default/q uid-q Complete by default-scheduler: all of it, ");
    for (unsigned i = 0; i < BH_ARRAY_LEN(bad); i++) {
        char name[4];
        snprintf(name, sizeof name, "b%u", i);
        wish = bad[i];
        const struct bh_status *s = permit_on(&f, name, "a");
        CU_ASSERT(bh_status_code(s) == BH_ERROR);
        CU_ASSERT(s &&
                  strstr(bh_status_message(&f.arena, s),
                         "plugin \"Talks\": it emitted an event without a pod, or whose type") !=
                      NULL);
    }
    CU_ASSERT(bh_engine_asked(f.e, &asked, &a) == 0);
    fx_fini(&f);
    begin(&f, "Early", false);
    CU_ASSERT(strstr(schedule(&f, "p")->message, "it emitted an event where answers may be kept") !=
              NULL);
    fx_fini(&f);
}

/* A few hundred a second of one instance are too many, and so are those that nobody takes. */
static void test_event_rate(void)
{
    struct asked a = {"", ""};
    unsigned n = 0;
    struct fx f;

    wish = WELL;
    begin(&f, "Talks", false);
    struct bh_native *in = (struct bh_native *)(void *)last->home;
    for (unsigned i = 0; i < 1000; i++) {
        struct bh_call c = {.arena = &f.arena};
        const struct fx_pod p = fx_pod(&f, "p", "", "");
        const struct bh_pod_info pod = {
            .rec = p.rec, .shape = bh_engine_shape_rec(f.e, p.shape), .shape_id = p.shape};
        in->call = &c;
        in->hook = BH_HOOK_PERMIT;
        in->broke = NULL;
        bh_native_inside = in;
        n += host->events->emit((void *)&c, (const void *)&pod, 0, BERTH_STR("X"),
                                BERTH_STR("y")) != 0;
        bh_native_inside = NULL;
    }
    CU_ASSERT(n >= 32 && n <= 256 && bh_engine_asked(f.e, &asked, &a) == n);
    fx_fini(&f);
}

/* As the plugin is to be asked first of all at Bind. */
static void begin_bind(struct fx *f, const char *plugin)
{
    char profile[512];

    wish = WELL;
    bh_plugin_find_more = find;
    snprintf(
        profile, sizeof profile,
        "{'schedulerName':'default-scheduler','plugins':{'multiPoint':{'enabled':[{'name':'%s'}"
        "]},'bind':{'enabled':[{'name':'%s'},{'name':'DefaultBinder'}]}}}",
        plugin, plugin);
    fx_init_with(f, profile, (struct bh_engine_options){.tie_break = BH_TIE_FIRST});
    fx_node(f, "a", "'cpu':'4','memory':'8Gi','pods':'110'", "", "", "");
}

static void test_pre_bind(void)
{
    const struct bh_write *v;
    const char *text = "";
    uint32_t n = 0;
    struct fx f;

    patches = 2;
    begin_bind(&f, "Binds");
    const struct fx_pod p = fx_pod(&f, "p", "'cpu':'10m'", "");
    const struct bh_pending pending = {.pod = p.rec, .shape = p.shape};
    const bh_sym a = bh_sym_internc(bh_engine_symtab(f.e), "a");
    CU_ASSERT(bh_engine_prebind_due(f.e, &pending));
    CU_ASSERT(bh_engine_prebind_check(f.e, &pending, a, 1, 78, &text) == BH_PREBIND_WAITS);
    CU_ASSERT(answers[0] == 1 && answers[1] == 1);
    v = bh_engine_prebind_work(f.e, bh_str_c("uid-p"), &n);
    CU_ASSERT_FATAL(n == 2);
    CU_ASSERT(v[0].what == BH_WRITE_PATCH && !v[0].patch->json && !v[0].patch->subresource);
    FX_STR(v[0].patch->body, "{\"a\":0}");
    FX_STR(v[1].patch->body, "{\"a\":1}");
    FX_STR(v[1].name, "p");
    FX_STR(v[1].uid, "uid-p");
    FX_STR(v[1].plugin, "Binds");
    patches = 3; /* all of it is done by now, but that one more is wanted */
    CU_ASSERT(bh_engine_prebind_check(f.e, &pending, a, 1, 78, &text) == BH_PREBIND_WAITS);
    CU_ASSERT(answers[0] == 2 && answers[1] == 2 && answers[2] == 1);
    CU_ASSERT(bh_engine_prebind_check(f.e, &pending, a, 1, 78, &text) == BH_PREBIND_READY);
    wish = WAITS;
    CU_ASSERT(bh_engine_prebind_check(f.e, &pending, a, 1, 78, &text) == BH_PREBIND_WAITS);
    FX_STR(text, "Binds");
    wish = NO_REASON;
    CU_ASSERT(bh_engine_prebind_check(f.e, &pending, a, 1, 78, &text) == BH_PREBIND_REFUSED);
    wish = BAD_TEXT;
    CU_ASSERT(bh_engine_prebind_check(f.e, &pending, a, 1, 78, &text) == BH_PREBIND_FAILED);
    FX_STR(text, "running PreBind plugin \"Binds\": it gave a reason that is not printable UTF-8");
    wish = WELL;
    patches = 17;
    CU_ASSERT(bh_engine_prebind_check(f.e, &pending, a, 1, 78, &text) == BH_PREBIND_FAILED);
    FX_STR(text, "running PreBind plugin \"Binds\": it wants more than 16 patches for one pod");
    bh_engine_unreserve(f.e, &pending, a);
    CU_ASSERT(!bh_engine_prebind_work(f.e, bh_str_c("uid-p"), &n) && n == 0);
    fx_fini(&f);
}

static void test_bind(void)
{
    struct bh_bind_order order;
    struct fx f;

    begin_bind(&f, "Binds");
    bh_engine_moment(f.e, 77);
    const struct fx_pod p = fx_pod(&f, "p", "'cpu':'10m'", "");
    const struct bh_pending pending = {.pod = p.rec, .shape = p.shape};
    const bh_sym a = bh_sym_internc(bh_engine_symtab(f.e), "a");
    patches = 0;
    CU_ASSERT(bh_engine_bind(f.e, &pending, a, &order) == NULL && !order.write);
    FX_STR(order.plugin, "DefaultBinder");
    patches = 1;
    CU_ASSERT(bh_engine_bind(f.e, &pending, a, &order) == NULL && order.write);
    FX_STR(order.plugin, "Binds");
    CU_ASSERT(order.write->patch->json);
    wish = NO_REASON;
    CU_ASSERT(bh_status_code(bh_engine_bind(f.e, &pending, a, &order)) == BH_UNSCHEDULABLE);
    wish = WAITS;
    CU_ASSERT(bh_status_code(bh_engine_bind(f.e, &pending, a, &order)) == BH_ERROR);
    wish = WELL;
    patches = 2;
    FX_STR(bh_status_message(&f.arena, bh_engine_bind(f.e, &pending, a, &order)),
           "running Bind plugin \"Binds\": it wants a second patch in Bind, which is one write");
    n_posted = 0;
    CU_ASSERT(bh_engine_post_bind(f.e, &pending, "a") && n_posted == 1);
    fx_fini(&f);
}

static void test_bad_patches(void)
{
    const char *text = "";
    int64_t timeout;
    struct fx f;

    wish = WELL;
    begin(&f, "BadPatch", false);
    const struct fx_pod p = fx_pod(&f, "p", "'cpu':'10m'", "");
    const struct bh_pending pending = {.pod = p.rec, .shape = p.shape};
    const bh_sym a = bh_sym_internc(bh_engine_symtab(f.e), "a");
    for (bad_patch = 0; bad_patch < BH_ARRAY_LEN(bad_patches); bad_patch++) {
        CU_ASSERT(bh_engine_prebind_check(f.e, &pending, a, 1, 2, &text) == BH_PREBIND_FAILED);
        CU_ASSERT(strstr(text, bad_patches[bad_patch].why) != NULL);
        if (!strstr(text, bad_patches[bad_patch].why))
            fprintf(stderr, "  %s: %s\n", bad_patches[bad_patch].why, text);
    }
    FX_STR(bh_status_message(&f.arena, bh_engine_permit(f.e, &pending, a, &timeout)),
           "running Permit plugin \"BadPatch\": it wants something written outside of PreBind, "
           "Bind and tend()");
    fx_fini(&f);
}

static void on_sample(void *arg, const struct bh_native_sample *s)
{
    char *out = arg;
    size_t n = strlen(out);

    if (n < 400 && s->kind == BERTH_HISTOGRAM)
        snprintf(out + n, 600 - n, "%s %u/%g %u/%g %u/%g, ", s->name, (unsigned)s->counts[0],
                 s->sums[0], (unsigned)s->counts[1], s->sums[1], (unsigned)s->counts[2],
                 s->sums[2]);
    else if (n < 400 && !strstr(s->name, "_m"))
        snprintf(out + n, 600 - n, "%s %g, ", s->name, s->value);
}
static void *measure(void *arg)
{
    const struct berth_host_metrics *m = host->metrics;
    const struct berth_home *h = last->home;

    (void)arg;
    m->add(h, defined[0], 2);
    m->add(h, defined[0], -1);
    m->set(h, defined[0], 9);
    m->set(h, defined[1], 7);
    m->add(h, defined[1], -0.5);
    m->observe(h, defined[1], 3);
    m->observe(h, defined[2], 1);
    m->observe(h, defined[2], 1.5);
    m->observe(h, defined[2], 1.75);
    m->observe(h, defined[2], 30);
    m->observe(h, defined[2], strtod("nan", NULL));
    m->add(h, 0, 1);
    m->observe(h, 1000, 1);
    CU_ASSERT(m->define(last->home, 0, BERTH_STR("late"), BERTH_STR(""), NULL, 0) == 0);
    return NULL;
}

static void test_metrics(void)
{
    char out[600] = "";
    struct fx f;

    wish = WELL;
    begin(&f, "Measures", false);
    CU_ASSERT(defined[0] == 1 && defined[1] == 2 && defined[2] == 3);
    in_thread(measure, NULL);
    struct bh_native_metrics *m = ((struct bh_native *)(void *)last->home)->of->metrics;
    bh_native_metrics_take(m, on_sample, out);
    FX_STR(out, "berth_plugin_Measures_seen_total 2, berth_plugin_Measures_load 6.5, "
                "berth_plugin_Measures_took 1/1 2/3.25 1/30, ");
    *out = '\0';
    bh_native_metrics_take(m, on_sample, out); /* of a histogram what came since */
    CU_ASSERT(strstr(out, "took 0/0 0/0 0/0, ") != NULL);
    fx_fini(&f);
}

static void *ring(void *arg)
{
    (void)arg;
    host->base->wake(last->home);
    host->base->wake(last->home);
    return NULL;
}

static void test_wake(void)
{
    struct asked a = {"", ""};
    struct fx f;

    wish = WELL;
    begin(&f, "Plain", false);
    CU_ASSERT(bh_engine_asked(f.e, &asked, &a) == 0);
    in_thread(ring, NULL);
    CU_ASSERT(bh_engine_asked(f.e, &asked, &a) == 1 && bh_engine_asked(f.e, &asked, &a) == 0);
    FX_STR(a.woken, "Plain, ");
    fx_fini(&f);
}

static void test_permit(void)
{
    static const struct {
        enum wish wish;
        enum bh_code code;
    } rows[] = {{WELL, BH_SUCCESS}, {WAITS, BH_WAIT}, {NEGATIVE_RAW, BH_ERROR}, {FAILS, BH_ERROR}};

    for (unsigned i = 0; i < BH_ARRAY_LEN(rows); i++) {
        struct fx f;
        int64_t timeout = 0;
        wish = WELL;
        begin(&f, "Queues", false);
        wish = rows[i].wish;
        struct fx_pod p = fx_pod(&f, "p", "'cpu':'10m'", "");
        const struct bh_pending pending = {.pod = p.rec, .shape = p.shape};
        const struct bh_status *s =
            bh_engine_permit(f.e, &pending, bh_sym_internc(bh_engine_symtab(f.e), "a"), &timeout);
        CU_ASSERT(bh_status_code(s) == rows[i].code);
        CU_ASSERT(rows[i].code != BH_WAIT || timeout == 5);
        fx_fini(&f);
    }
}

static void test_post_filter(void)
{
    for (unsigned i = 0; i < 2; i++) {
        struct fx f;
        wish = i ? UNKNOWN_NODE : WELL;
        begin(&f, "Nominates", false);
        struct fx_pod p = fx_pod(&f, "p", "'cpu':'99'", "");
        const struct bh_pending pending = {.pod = p.rec, .shape = p.shape};
        const struct bh_decision *d =
            bh_engine_schedule(f.e, &pending, 0, INT64_C(1893456000) * 1000000000);
        FX_STR(fx_text(&f, d->nominated_node), i ? "" : "a");
        fx_fini(&f);
    }
}

/* A pod nominated to a node counts there: AddPod, on a copy of the state. What the one at hand is called
 * is not to be asked. */
static void nominate(enum wish w, const char *message)
{
    struct fx f;

    wish = w;
    begin(&f, "Counts", true);
    struct fx_pod n = fx_pod(&f, "n", "'cpu':'10m'", "'priority':7");
    const struct bh_pending nominated = {.pod = n.rec, .shape = n.shape};
    bh_engine_nominate(f.e, &nominated, bh_sym_internc(bh_engine_symtab(f.e), "a"));
    const struct bh_decision *d = fx_schedule(&f, fx_pod(&f, "p", "'cpu':'10m'", ""));
    FX_STR(d->message ? d->message : "", message);
    if (w == WELL) {
        FX_STR(fx_verdict(&f, d, "a"), "Unschedulable: one came before");
        FX_STR(fx_verdict(&f, d, "b"), "");
    }
    fx_fini(&f);
}

static void test_nominated(void)
{
    nominate(WELL, "");
    nominate(ASKS_NAME, "running AddPod on PreFilter plugin \"Counts\": it used name without "
                        "BERTH_READS_IDENTITY in its reads");
}

/* Whoever ends the process now is known to the next one. */
static void test_mark(void)
{
    struct fx f;

    wish = WELL;
    seen = 0;
    bh_native_mark = &mark;
    begin(&f, "Rows", false);
    (void)schedule(&f, "p");
    (void)fx_schedule(&f, fx_pod(&f, "q", "'cpu':'10m'", ""));
    CU_ASSERT(seen == (1u << BH_HOOK_FILTER | 1u << BH_HOOK_SCORE));
    CU_ASSERT(mark.hook == BH_HOOK_NONE && mark.calls > 4);
    fx_fini(&f);
    seen = 0;
    begin(&f, "Own", false);
    (void)schedule(&f, "p");
    CU_ASSERT(seen == (1u << BH_HOOK_SCORE | 1u << BH_HOOK_NORMALIZE));
    fx_fini(&f);
    bh_native_mark = NULL;
}

/* Published by a thread, seen from the next pod on, on both paths. */
static void *publish(void *arg)
{
    const struct berth_str names[] = {
        {"b", 1}, {"gone", 4}, arg ? *(struct berth_str *)arg : (struct berth_str){"b", 1}};
    const double numbers[] = {1, 2, 0};

    CU_ASSERT(host->user->publish(last->home, 1, names, numbers, 3) == 1);
    CU_ASSERT(host->user->publish(last->home, 8, names, numbers, 3) == 0);
    CU_ASSERT(host->user->publish(last->home, 0, names, numbers, UINT64_C(1) << 40) == 0);
    return NULL;
}
static const char *goes_to(struct fx *f, const char *pod, int64_t now_ns)
{
    struct fx_pod p = fx_pod(f, pod, "'cpu':'10m'", "");
    struct bh_pending pending = {.pod = p.rec, .shape = p.shape};
    const struct bh_decision *d = bh_engine_schedule(f->e, &pending, 0, now_ns);

    return d->kind == BH_DECIDED ? fx_text(f, d->node) : "";
}
static void test_user_columns(void)
{
    struct berth_str a = BERTH_STR("a"), d = BERTH_STR("d");
    struct fx f;

    wish = WELL;
    for (unsigned verify = 0; verify < 2; verify++) {
        begin(&f, "User", verify);
        FX_STR(goes_to(&f, "p", 1), "");
        in_thread(publish, NULL);
        FX_STR(goes_to(&f, "r", 2), "b");
        n_filter = 0;
        FX_STR(goes_to(&f, "s", 3), "b");
        CU_ASSERT(verify || n_filter == 0); /* kept */
        in_thread(publish, &a);
        FX_STR(goes_to(&f, "t", 4), "a");
        in_thread(publish, &d);
        FX_STR(goes_to(&f, "u", 5), "b");
        fx_node(&f, "d", "'cpu':'400','memory':'800Gi','pods':'110'", "", "", "");
        FX_STR(goes_to(&f, "v", 6), "d"); /* told before it came */
        fx_fini(&f);
    }
    begin(&f, "Plain", false); /* without the flag */
    CU_ASSERT(host->user->publish(last->home, 0, &a, NULL, 0) == 0);
    fx_fini(&f);
}

/* Containers, and when pods were started: that is a change of the node's pods once it was asked. */
static struct fx_pod spec_pod(struct fx *f, const char *name, const char *status)
{
    return fx_pod_full(f, name, "",
                       "'overhead':{'cpu':'7m'},'containers':[{'name':'c','resources':{'requests':"
                       "{'cpu':'200m','x.y/gpu':'1'}}}],'initContainers':[{'name':'i',"
                       "'resources':{'limits':{'cpu':'50m'}}}]",
                       status);
}
static void decide(struct fx *f, struct fx_pod p)
{
    const struct bh_pending pending = {.pod = p.rec, .shape = p.shape};

    CU_ASSERT(bh_engine_schedule(f->e, &pending, 0, 1)->kind == BH_DECIDED);
}
static void test_spec(void)
{
    struct fx f;

    wish = WELL;
    for (unsigned verify = 0; verify < 2; verify++) {
        begin_empty(&f, "Spec", verify);
        for (unsigned i = 0; i < 2; i++)
            fx_node(&f, i ? "d" : "e", "'cpu':'4','memory':'8Gi','pods':'110','x.y/gpu':'8'", "",
                    "", "'capacity':{'cpu':'5','x.y/gpu':'8'}");
        fx_place(&f, spec_pod(&f, "there", ""), "d");
        last_start = -1;
        decide(&f, spec_pod(&f, "p", ""));
        CU_ASSERT_EQUAL(last_start, 0);
        decide(&f, spec_pod(&f, "n", ""));
        n_score = 0;
        decide(&f, spec_pod(&f, "o", ""));
        CU_ASSERT(verify || n_score == 0); /* kept */
        fx_place(&f, spec_pod(&f, "there", "'startTime':'2026-01-01T00:00:00Z'"), "d");
        decide(&f, spec_pod(&f, "q", ""));
        CU_ASSERT_EQUAL(last_start, INT64_C(1767225600) * 1000000000);
        fx_fini(&f);
    }
    begin(&f, "OwnStart", false);
    const struct bh_decision *d = schedule(&f, "p");
    CU_ASSERT(d->kind != BH_DECIDED && strstr(d->message, "it used started without"));
    fx_fini(&f);
}

static void rules(struct fx *f, enum bh_event_action action, const char *nodes)
{
    BH_CLEANUP(bh_buf_fini) struct bh_buf bytes = {0};
    ProtobufCMessage *m = NULL;
    struct bh_err err = {{0}};
    enum bh_kind kind;
    const char *text = bh_arena_printf(
        &f->arena,
        "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"rules\","
        "\"namespace\":\"x\",\"uid\":\"u1\",\"labels\":{\"team\":\"t1\"},"
        "\"managedFields\":[{}]},\"data\":{\"nodes\":\"%s\",\"cpu\":\"1500m\","
        "\"at\":\"1970-01-01T00:00:01.5Z\",\"list\":[7,8]}}",
        nodes);
    bool gone = action == BH_EV_DELETE;

    CU_ASSERT(bh_kind_declare("", "v1", "configmaps", &kind, &err) == 0);
    CU_ASSERT_FATAL(bh_decode_custom(&f->arena, text, strlen(text), &m, &err) == 0);
    bh_pb_pack(&bytes, m);
    struct bh_cluster_event ev = {.resource = BH_EV_OBJECT, .kind = kind, .action = action};
    CU_ASSERT(bh_engine_put_object_event(f->e, &ev, "x", "rules", gone ? NULL : bytes.p, bytes.n,
                                         &err) == 0);
    struct fx_pod p = fx_pod(f, "waits", "'cpu':'10m'", "");
    const struct bh_pending pending = {.pod = p.rec, .shape = p.shape};
    bool by_pod = false;
    if (bh_engine_interested(f->e, &ev))
        CU_ASSERT((bh_engine_hint(f->e, "Objects", &pending, &ev, &by_pod) == BH_QUEUE) == !gone);
}
static void test_objects(void)
{
    struct fx f;
    enum bh_kind kind;
    struct bh_err err;

    for (unsigned verify = 0; verify < 2; verify++) {
        const struct bh_kind_info *read[BH_CUSTOM_KINDS];
        begin(&f, "Objects", verify);
        CU_ASSERT(bh_engine_kinds(f.e, read) == 2);
        FX_STR(goes_to(&f, "p", 1), "");
        rules(&f, BH_EV_ADD, "bc");
        CU_ASSERT(changed.on == BERTH_ON_KIND(1) && changed.action == BERTH_ADD && changed.there);
        FX_STR(changed.name, "x/rules");
        FX_STR(goes_to(&f, "q", 2), "b");
        FX_STR(goes_to(&f, "q2", 2), "b");
        n_filter = 0;
        FX_STR(goes_to(&f, "r", 3), "b");
        CU_ASSERT(verify || n_filter == 0); /* kept */
        rules(&f, BH_EV_UPDATE, "c");
        CU_ASSERT(changed.action == BERTH_UPDATE);
        FX_STR(goes_to(&f, "s", 4), "c");
        rules(&f, BH_EV_DELETE, "");
        CU_ASSERT(changed.action == BERTH_DELETE && !changed.there);
        FX_STR(goes_to(&f, "t", 5), "");
        fx_fini(&f);
    }
    begin(&f, "Peeks", true);
    FX_STR(schedule(&f, "p")->message,
           FILTER("Peeks", "it used first of objects without BERTH_READS_OBJECTS in its reads"));
    CU_ASSERT(bh_kind_declare("x.io", "v1", "others", &kind, &err) == 0);
    bh_engine_kind_state(f.e, kind, false, "no rights");
    FX_STR(schedule(&f, "p")->message, "plugin \"Peeks\" reads what is not known: no rights");
    CU_ASSERT(schedule(&f, "p")->kind == BH_DECISION_ERROR);
    bh_engine_kind_state(f.e, kind, true, NULL);
    bh_engine_kind_state(f.e, BH_KIND_SERVICE, false, NULL); /* none of theirs */
    CU_ASSERT_PTR_NULL(strstr(schedule(&f, "p")->message, "not known"));
    fx_fini(&f);
    wish = WELL;
    begin(&f, "Plain", true); /* nobody reads the kind */
    bh_engine_kind_state(f.e, kind, false, "no rights");
    FX_STR(goes_to(&f, "p", 1), "b");
    fx_fini(&f);
    begin(&f, "Older", true);
    FX_STR(goes_to(&f, "p", 1), "a");
    fx_fini(&f);
}
/* QueueSort looks at objects, if it says that it does. */
static void test_queue_sort_objects(void)
{
    struct bh_pending room[2];
    struct fx f;

    for (unsigned blind = 0; blind < 2; blind++) {
        begin_order(&f, blind ? "OrdersBlindly" : "OrdersByRules");
        struct bh_queue_key a = key_of(&f, "a", 10, &room[0]), b = key_of(&f, "b", 11, &room[1]);
        CU_ASSERT(bh_engine_less(f.e, &a, &b) && !bh_engine_less(f.e, &b, &a));
        rules(&f, BH_EV_ADD, "b");
        CU_ASSERT(bh_engine_less(f.e, &b, &a) == !blind && bh_engine_less(f.e, &a, &b) == blind);
        fx_fini(&f);
    }
}
/* As the watcher sends a whole object besides the record. */
static bool annotate(struct fx *f, enum bh_kind kind, const char *key, const char *value)
{
    BH_CLEANUP(bh_buf_fini) struct bh_buf bytes = {0};
    const char *more =
        "'spec':{'priorityClassName':'batch',"
        "'securityContext':{'seccompProfile':{'type':'Localhost','localhostProfile':'a/b'}},"
        "'containers':[{'name':'a'},{'name':'b','securityContext':{'seccompProfile':"
        "{'type':'RuntimeDefault'}}},{'name':'c','securityContext':{'seccompProfile':"
        "{'type':'Localhost','localhostProfile':'c/d/ef'}}}]},"
        "'status':{'conditions':[{'type':'PodScheduled','status':'True',"
        "'lastTransitionTime':'1970-01-01T00:00:09Z'}]},";
    const char *text = bh_arena_printf(
        &f->arena, "{%s'metadata':{'name':'%s','uid':'%s','annotations':{'a':'','x/ok':'%s'}}}",
        kind == BH_KIND_POD ? more : "", key, key, value);

    bh_pb_pack(&bytes, fx_message(f, bh_kinds[kind].desc, fx_json(f, text)));
    return bh_engine_put_raw(f->e, kind, key, bytes.p, bytes.n);
}
static void test_annotations(void)
{
    struct fx f;

    for (unsigned verify = 0; verify < 2; verify++) {
        begin(&f, "Notes", verify);
        CU_ASSERT(bh_engine_raw_needs(f.e) == BH_EXT_NEED_NODES);
        CU_ASSERT(!bh_engine_raw_complete(f.e));
        CU_ASSERT(annotate(&f, BH_KIND_NODE, "a", "no") && annotate(&f, BH_KIND_NODE, "b", "yes"));
        CU_ASSERT(!annotate(&f, BH_KIND_NODE, "b", "yes")); /* the same */
        CU_ASSERT(!bh_engine_raw_complete(f.e));
        CU_ASSERT(annotate(&f, BH_KIND_NODE, "c", "yes") && bh_engine_raw_complete(f.e));
        FX_STR(goes_to(&f, "p", 1), "b");
        FX_STR(goes_to(&f, "q", 2), "b");
        n_filter = 0;
        FX_STR(goes_to(&f, "r", 3), "b");
        CU_ASSERT(verify || n_filter == 0); /* kept */
        CU_ASSERT(annotate(&f, BH_KIND_NODE, "a", "yes"));
        FX_STR(goes_to(&f, "s", 4), "a");
        CU_ASSERT(verify || n_filter == 1); /* of this node alone */
        CU_ASSERT(bh_engine_put_raw(f.e, BH_KIND_NODE, "a", NULL, 0));
        FX_STR(goes_to(&f, "t", 5), "b");
        bh_engine_objects_begin(f.e);
        CU_ASSERT(!annotate(&f, BH_KIND_NODE, "c", "yes"));
        bh_engine_objects_end(f.e);
        CU_ASSERT(!bh_engine_raw_complete(f.e));
        fx_fini(&f);
    }
    begin(&f, "PodNotes", true);
    CU_ASSERT(bh_engine_raw_needs(f.e) == (BH_EXT_NEED_PENDING | BH_EXT_NEED_ASSIGNED));
    CU_ASSERT(bh_engine_raw_complete(f.e)); /* of pods nobody waits for more */
    CU_ASSERT(annotate(&f, BH_KIND_POD, "uid-q", "yes"));
    FX_STR(goes_to(&f, "p", 1), "");
    FX_STR(goes_to(&f, "q", 1), "a");
    fx_fini(&f);
    wish = WELL;
    begin(&f, "NoNotes", true);
    CU_ASSERT(bh_engine_raw_needs(f.e) == 0);
    FX_STR(schedule(&f, "p")->message,
           FILTER("NoNotes", "it used an annotation without BERTH_READS_ANNOTATIONS in its reads"));
    fx_fini(&f);
}
static void test_time(void)
{
    struct fx f;

    for (unsigned verify = 0; verify < 2; verify++) {
        begin(&f, "Timed", verify);
        FX_STR(goes_to(&f, "p", INT64_C(9000000000)), "");
        FX_STR(goes_to(&f, "q", INT64_C(11000000000)), "a");
        FX_STR(goes_to(&f, "q2", INT64_C(11000000000)), "a");
        n_filter = 0;
        FX_STR(goes_to(&f, "r", INT64_C(19000000000)), "a");
        CU_ASSERT(verify || n_filter == 0); /* kept for as long as it holds */
        FX_STR(goes_to(&f, "s", INT64_C(20000000000)), "");
        fx_fini(&f);
    }
}

static void follows(struct fx *f, const char *pod, const char *what)
{
    *heard = '\0';
    FX_STR(goes_to(f, pod, 1), "a");
    FX_STR(heard, what);
}
static void test_changed(void)
{
    struct fx f;

    for (unsigned verify = 0; verify < 2; verify++) {
        begin(&f, "Follows", verify);
        followed = 0;
        follows(&f, "p", " a b c");
        follows(&f, "q", "");
        struct fx_pod there = fx_pod(&f, "there", "'cpu':'1'", "");
        fx_place(&f, there, "b");
        follows(&f, "r", " b:there/default-scheduler");
        follows(&f, "s", "");
        bh_engine_del_pod(f.e, bh_str_c("uid-there"));
        bh_engine_del_node(f.e, bh_sym_internc(bh_engine_symtab(f.e), "c"));
        follows(&f, "t", " b");
        followed += 1000; /* no moment of this scheduler's */
        follows(&f, "u", " a b");
        fx_fini(&f);
    }
    begin(&f, "FollowsLate", false);
    const struct bh_decision *d = schedule(&f, "p");
    CU_ASSERT(d->kind != BH_DECIDED &&
              strstr(d->message, "it used changed without BERTH_READS_OTHERS"));
    fx_fini(&f);
}

/* Its code is not run any more: its callbacks fail, or have no say. */
static void test_aside(void)
{
    static const struct berth_plugin gone = {
        NAMED("Gone"),  .reads = BERTH_READS_NODE, .filter = filter,  .filter_rows = filter_rows,
        .score = score, .score_rows = score_rows,  .reserve = reserve};
    for (unsigned skip = 0; skip < 2; skip++) {
        static struct bh_native_plugin *kept[2]; /* for the life of the process, as all */
        struct bh_native_plugin **np = &kept[skip];
        struct bh_err err;
        CU_ASSERT_FATAL(bh_native_adopt(&gone, np, &err) == 0);
        bh_native_put_aside(*np, skip);
        struct fx f;
        wish = WELL;
        aside = &(*np)->d;
        begin(&f, skip ? "Gone2" : "Gone", true);
        const struct bh_decision *d = schedule(&f, "p");
        if (skip)
            FX_STR(fx_text(&f, d->node), "a");
        else
            FX_STR(d->message, FILTER("Gone", "it is put aside: it ended the scheduler three times "
                                              "within ten minutes"));
        fx_fini(&f);
        CU_ASSERT(n_created == 0 && n_filter == 0 && n_filter_rows == 0 && n_score_rows == 0);
    }
}

static void test_order_aside(void)
{
    static const struct berth_plugin gone = {NAMED("GoneToo"), .less = less};
    static struct bh_native_plugin *kept;
    struct bh_pending room[2];
    struct bh_err err;
    struct fx f;

    CU_ASSERT_FATAL(bh_native_adopt(&gone, &kept, &err) == 0);
    bh_native_put_aside(kept, false);
    aside = &kept->d;
    begin_order(&f, "GoneToo");
    struct bh_queue_key a = key_of(&f, "a", 10, &room[0]), b = key_of(&f, "b", 11, &room[1]);
    CU_ASSERT(bh_engine_less(f.e, &a, &b) && !bh_engine_less(f.e, &b, &a));
    fx_fini(&f);
}

/* ---- what is refused when it is loaded ------------------------------------------------------- */

static void test_refused(void)
{
    static const struct berth_event event[1] = {{BERTH_ON_POD, BERTH_ADD}};
    static const struct berth_event on_kind[1] = {{BERTH_ON_KIND(1), BERTH_ADD}};
    static const struct berth_kind kind[1] = {
        {.version = {"v1", 2}, .resource = {"ConfigMaps", 10}}};
    static const struct {
        struct berth_plugin p;
        const char *why;
    } rows[] = {
        {{SIZED("X", 16)}, "bytes, at least"},
        {{SIZED("X", sizeof(struct berth_plugin) - 3)}, "are needed, in whole members"},
        {{NAMED("X"), .flags = 1u << 16}, "demands what this Berth does not know"},
        {{NAMED("X"), .reads = 1u << 31}, "reads what this Berth does not know"},
        {{NAMED("X"), .reads = BERTH_READS_OBJECTS}, "names no kinds"},
        {{NAMED("X"), .reads = BERTH_READS_ANNOTATIONS}, "neither NODE nor IDENTITY"},
        {{NAMED("X"), .n_kinds = 17, .kinds = kind}, "more than 16 kinds"},
        {{NAMED("X"), .n_kinds = 1}, "more than 16 kinds, or none at their address"},
        {{NAMED("X"), .n_kinds = 1, .kinds = kind}, "kinds[0]: resource: the plural"},
        {{NAMED("X"), .n_kinds = 1, .kinds = kind, .events = on_kind, .n_events = 1},
         "nor one of its kinds"},
        {{NAMED("X"), .normal = 3, .score = score}, "another way of normalizing"},
        {{NAMED("X"), .normal = 1, .normalize = normalize, .score = score}, "has both normal"},
        {{NAMED("X"), .filter_rows = filter_rows}, "but not filter()"},
        {{NAMED("X"), .score_rows = score_rows}, "but not score()"},
        {{NAMED("X"), .score_rows = score_rows, .reads = BERTH_READS_SUMS}, "but not score()"},
        {{NAMED("X"), .normalize = normalize}, "does not score"},
        {{NAMED("X"), .n_events = 1}, "events"},
        {{NAMED("X"), .n_events = 65, .events = event}, "events"},
        {{.size = sizeof(struct berth_plugin)}, "no name"},
    };

    for (unsigned i = 0; i < BH_ARRAY_LEN(rows); i++) {
        struct bh_native_plugin *np = NULL;
        struct bh_err err = {{0}};
        CU_ASSERT(bh_native_adopt(&rows[i].p, &np, &err) == -EINVAL && !np);
        CU_ASSERT(strstr(err.msg, rows[i].why) != NULL);
        if (!strstr(err.msg, rows[i].why))
            fprintf(stderr, "  %s: %s\n", rows[i].why, err.msg);
    }
}

/* Of a struct of the future what is known here counts. */
static void test_future(void)
{
    struct {
        struct berth_plugin p;
        void *more[4];
    } future = {
        .p = {SIZED("Future", sizeof future), .score_rows = score_rows, .reads = BERTH_READS_NODE}};
    static struct bh_native_plugin *np; /* for the life of the process, as all */
    struct bh_err err;

    CU_ASSERT(bh_native_adopt(&future.p, &np, &err) == 0);
    CU_ASSERT(np && np->d.score && !np->d.filter && np->d.flags & BH_PLUGIN_READS_NODE);
}

/* What was built for 1.0 has no members of later minors: what stands behind it is not looked at. */
static void test_past(void)
{
    struct berth_plugin p = {SIZED("Past", offsetof(struct berth_plugin, less)), .filter = filter,
                             .less = less};
    static struct bh_native_plugin *np; /* for the life of the process, as all */
    struct bh_err err;

    CU_ASSERT(bh_native_adopt(&p, &np, &err) == 0);
    CU_ASSERT(np && np->d.filter && !np->d.less);
}

/* ---- reasons --------------------------------------------------------------------------------- */

static char numbered[16];
static int32_t numbered_code;
static int32_t permit_numbered(void *self, struct berth_call *c, berth_sym node, int64_t *wait_ns,
                               struct berth_why *why)
{
    (void)self, (void)c, (void)node, (void)wait_ns;
    why->reason = (struct berth_str){numbered, strlen(numbered)};
    return numbered_code;
}

/* The status that the n-th reason becomes. */
static const struct bh_status *status_of(const struct bh_native_plugin *np, struct bh_call *c,
                                         int32_t code, unsigned n)
{
    int64_t wait_ns;

    numbered_code = code;
    snprintf(numbered, sizeof numbered, "no %u", n);
    const struct bh_status *s = np->d.permit(c, 0, &wait_ns);
    CU_ASSERT_FATAL(s != NULL && (int32_t)s->code == code);
    CU_ASSERT_STRING_EQUAL(bh_status_message(c->arena, s), numbered);
    return s;
}

/* Rejections are made once, up to as many as there is room for; errors each time. */
static void test_only_rejections_are_kept_and_only_so_many(void)
{
    const struct berth_plugin p = {SIZED("Numbers", sizeof p), .permit = permit_numbered};
    static struct bh_native_plugin *np; /* for the life of the process, as all */
    BH_CLEANUP(bh_arena_fini) struct bh_arena kept = {0}, cycle = {0};
    const struct bh_status *first[BH_NATIVE_REASONS + 2];
    struct bh_err err;

    CU_ASSERT_FATAL(bh_native_adopt(&p, &np, &err) == 0);
    struct bh_native in = {.of = np, .arena = &kept};
    struct bh_call c = {.args = &in, .arena = &cycle};
    CU_ASSERT(status_of(np, &c, BERTH_ERROR, 0) != status_of(np, &c, BERTH_ERROR, 0));
    CU_ASSERT_EQUAL(in.n_reasons, 0);
    for (unsigned i = 0; i < BH_ARRAY_LEN(first); i++) {
        first[i] = status_of(np, &c, BERTH_UNSCHEDULABLE, i);
        CU_ASSERT_EQUAL(in.n_reasons, BH_MIN(i + 1, BH_NATIVE_REASONS));
    }
    for (unsigned i = 0; i < BH_ARRAY_LEN(first); i++)
        CU_ASSERT_EQUAL(status_of(np, &c, BERTH_UNSCHEDULABLE, i) == first[i],
                        i < BH_NATIVE_REASONS);
    CU_ASSERT_EQUAL(in.n_reasons, BH_NATIVE_REASONS);
}

/* ---- values ---------------------------------------------------------------------------------- */

static void test_only_booleans_are_read_as_booleans(void)
{
    BH_CLEANUP(bh_arena_fini) struct bh_arena a = {0};
    const char text[] = "[true, false, 1, \"true\", null, [], {}]";
    struct bh_json *all = NULL;
    struct bh_err err;
    unsigned n = 0;

    CU_ASSERT_FATAL(bh_json_parse(&a, text, sizeof text - 1, 0, &all, &err) == 0);
    bh_json_each(v, all) {
        int32_t ret = 42;
        const int32_t is = host->values->boolean((const struct berth_value *)(const void *)v, &ret);
        CU_ASSERT_EQUAL(is, n < 2);
        CU_ASSERT_EQUAL(ret, n == 0 ? 1 : n == 1 ? 0 : 42);
        n++;
    }
    CU_ASSERT_EQUAL(n, 7);
    int32_t ret = 42;
    CU_ASSERT(!host->values->boolean(NULL, &ret) && ret == 42);
}

BH_TESTS("scheduler/native/adapter", {"filters and scores", test_decides},
         {"what it declares keeps the fast path", test_fast},
         {"a profile leaves its PreFilter and PreScore out", test_alone},
         {"it is not asked anew for nothing", test_kept},
         {"answers that may not be are errors with its name", test_wrong_answers},
         {"a batch form that changes its rows is not used", test_changed_rows},
         {"a rejection without a reason", test_no_reason},
         {"no instance, no scheduler", test_no_instance},
         {"calls from outside of callbacks do nothing", test_stray_calls},
         {"in whose code the process is", test_mark}, {"one by one", test_one_by_one},
         {"a plugin put aside", test_aside}, {"containers, extended resources, starts", test_spec},
         {"user columns", test_user_columns}, {"objects", test_objects},
         {"annotations", test_annotations}, {"epoch by time", test_time},
         {"epoch for each pod", test_epoch}, {"nodes that changed", test_changed},
         {"PreEnqueue and hints", test_queue}, {"Permit", test_permit},
         {"PostFilter nominates", test_post_filter}, {"nominated pods count", test_nominated},
         {"Reserve", test_reserve}, {"plugins that are refused", test_refused},
         {"a struct of the future", test_future}, {"a struct of the past", test_past},
         {"no say about a pod", test_idle}, {"pods that wait, and events", test_waiting_and_events},
         {"what is written for no pod", test_tends}, {"events are few", test_event_rate},
         {"wake", test_wake}, {"QueueSort", test_queue_sort},
         {"QueueSort by objects", test_queue_sort_objects},
         {"QueueSort of one that is aside", test_order_aside}, {"metrics", test_metrics},
         {"PreBind", test_pre_bind}, {"Bind and PostBind", test_bind},
         {"patches that are none", test_bad_patches},
         {"only rejections are kept, and only so many",
          test_only_rejections_are_kept_and_only_so_many},
         {"only booleans are read as booleans", test_only_booleans_are_read_as_booleans})
