/* SPDX-License-Identifier: Apache-2.0
 *
 * plugins/trimaran/scores.c - four ways to look at nodes' load
 *
 * Expressions are evaluated in the original's order: the last bit decides between two scores.
 * Upstream: sigs.k8s.io/scheduler-plugins, pkg/trimaran.
 */
#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "trimaran.h"

#define REPORTED 60 /* seconds: a pod's load shows in the metrics that long after its start */
#define MEGA     (1.0 / 1024 / 1024)
#define ALLOWED  0.99 /* of the variance that a beta distribution can have */

struct vector {
    int64_t cpu, memory;
};
struct stats { /* of one resource, in its units */
    double capacity, request, avg, std;
};

static double column(struct berth_call *c, const struct berth_node *node, enum column which)
{
    return trimaran_host->user->column(c, which)[trimaran_host->nodes->row(c, node)];
}

static double clamp(double x, double most)
{
    return x > most ? most : x < 0 ? 0 : x;
}

/* As Go converts on amd64. */
static int64_t whole(double x)
{
    return x >= -0x1p63 && x < 0x1p63 ? (int64_t)x : INT64_MIN;
}

/* ---- what pods ask for ----------------------------------------------------------------------- */

typedef int64_t (*amount_fn)(struct berth_call *c, const struct berth_pod *pod, uint32_t i,
                             berth_sym resource);

static int64_t effective_one(struct berth_call *c, const struct berth_pod *pod, amount_fn fn,
                             berth_sym resource)
{
    const struct berth_host_pods *p = trimaran_host->pods;
    int64_t sum = 0, init = 0;

    for (uint32_t i = 0, n = p->n_containers(c, pod); i < n; i++) {
        int64_t v = fn(c, pod, i, resource);
        if (p->container_kind(c, pod, i) == BERTH_CONTAINER)
            sum += v > 0 ? v : 0;
        else if (v > init) /* sidecars are no exception in the original */
            init = v;
    }
    return (sum > init ? sum : init) + p->overhead(c, pod, resource);
}

static struct vector effective(const struct instance *in, struct berth_call *c,
                               const struct berth_pod *pod, amount_fn fn)
{
    return (struct vector){effective_one(c, pod, fn, in->cpu),
                           effective_one(c, pod, fn, in->memory)};
}

static void at_least(struct vector *v, struct vector least)
{
    v->cpu = v->cpu < least.cpu ? least.cpu : v->cpu;
    v->memory = v->memory < least.memory ? least.memory : v->memory;
}

static void at_most(struct vector *v, struct vector most)
{
    v->cpu = v->cpu > most.cpu ? most.cpu : v->cpu;
    v->memory = v->memory > most.memory ? most.memory : v->memory;
}

/* ---- TargetLoadPacking ----------------------------------------------------------------------- */

/* CPU that the pod is going to use, milli. */
static int64_t predicted(const struct instance *in, struct berth_call *c,
                         const struct berth_pod *pod)
{
    const struct berth_host_pods *p = trimaran_host->pods;
    int64_t sum = p->overhead(c, pod, in->cpu);

    for (uint32_t i = 0, n = p->n_containers(c, pod); i < n; i++) {
        int64_t limit = p->container_limit(c, pod, i, in->cpu);
        int64_t request = p->container_request(c, pod, i, in->cpu);
        if (p->container_kind(c, pod, i) == BERTH_CONTAINER)
            sum += limit >= 0     ? limit
                   : request >= 0 ? whole(round((double)request * in->multiplier))
                                  : in->default_cpu;
    }
    return sum;
}

/* Of pods that came so late that the metrics do not show them yet. */
static int64_t missing(const struct instance *in, struct berth_call *c,
                       const struct berth_node *node)
{
    const struct berth_host_nodes *h = trimaran_host->nodes;
    double end = column(c, node, WINDOW_END);
    int64_t sum = 0;

    for (uint32_t i = 0, n = h->n_pods(c, node); i < n; i++) {
        const struct berth_pod *pod = h->pod_at(c, node, i);
        int64_t started_s = trimaran_host->pods->started(c, pod) / 1000000000;
        if (!started_s || end - (double)started_s < REPORTED)
            sum += predicted(in, c, pod);
    }
    return sum;
}

int32_t trimaran_target_load(void *self, struct berth_call *c, const struct berth_node *node,
                             int64_t *ret, struct berth_why *why)
{
    const struct instance *in = self;
    double used = column(c, node, CPU_LAST), p = 0;

    (void)why;
    *ret = 0;
    if (isnan(used))
        return BERTH_SUCCESS;
    double capacity = (double)trimaran_host->nodes->capacity(c, node, in->cpu);
    double used_milli = (used / 100) * capacity;
    int64_t pod = predicted(in, c, trimaran_host->pods->current(c));
    if (capacity != 0)
        p = 100 * (used_milli + (double)pod + (double)missing(in, c, node)) / capacity;
    if (p > in->target)
        *ret = p > 100 ? 0 : whole(round(in->target * (100 - p) / (100 - in->target)));
    else
        *ret = whole(round((100 - in->target) * p / in->target + in->target));
    return BERTH_SUCCESS;
}

/* ---- LoadVariationRiskBalancing -------------------------------------------------------------- */

/* 0: nothing is known of the resource's use. */
static int stats_of(const struct instance *in, struct berth_call *c, const struct berth_node *node,
                    struct vector request, int memory, struct stats *ret)
{
    double avg = column(c, node, memory ? MEMORY_AVG : CPU_AVG);
    double std = column(c, node, memory ? MEMORY_STD : CPU_STD);
    double capacity =
        (double)trimaran_host->nodes->allocatable(c, node, memory ? in->memory : in->cpu);

    if (isnan(avg))
        return 0;
    ret->capacity = memory ? capacity * MEGA : capacity;
    ret->request = memory ? (double)request.memory * MEGA : (double)request.cpu;
    ret->avg = avg * ret->capacity / 100;
    ret->std = std * ret->capacity / 100;
    return 1;
}

static double mu_of(const struct stats *s)
{
    return s->capacity <= 0 ? 0 : clamp((s->avg + s->request) / s->capacity, 1);
}
static double sigma_of(const struct stats *s)
{
    return s->capacity <= 0 ? 0 : clamp(s->std / s->capacity, 1);
}

static double safety(const struct instance *in, struct stats s)
{
    if (s.capacity <= 0)
        return 0;
    s.avg = clamp(s.avg, s.capacity);
    s.std = clamp(s.std, s.capacity);
    double sigma = clamp(pow(sigma_of(&s), 1 / in->sensitivity) * in->margin, 1);
    return (1 - (mu_of(&s) + sigma) / 2) * 100;
}

int32_t trimaran_variation(void *self, struct berth_call *c, const struct berth_node *node,
                           int64_t *ret, struct berth_why *why)
{
    const struct instance *in = self;
    struct vector request =
        effective(in, c, trimaran_host->pods->current(c), trimaran_host->pods->container_request);
    struct stats s;
    double score[2] = {0, 0};
    int known = 0;

    (void)why;
    for (int memory = 0; memory < 2; memory++)
        if (stats_of(in, c, node, request, memory, &s)) {
            score[memory] = safety(in, s);
            known++;
        }
    *ret = (int64_t)round(known == 2 ? fmin(score[0], score[1]) : fmax(score[0], score[1]));
    return BERTH_SUCCESS;
}

/* ---- LowRiskOverCommitment ------------------------------------------------------------------- */

struct load { /* of a node: with the pod, and without it */
    struct vector request, limit, request_before, limit_before, capacity;
};

struct wants { /* of a pod */
    struct vector request, limit;
};

/* What limits less than the request limits the request. */
static struct wants wants_of(const struct instance *in, struct berth_call *c,
                             const struct berth_pod *pod)
{
    struct wants w = {effective(in, c, pod, trimaran_host->pods->container_request),
                      effective(in, c, pod, trimaran_host->pods->container_limit)};

    at_least(&w.limit, w.request);
    return w;
}

static void add(struct vector *v, struct vector more)
{
    v->cpu += more.cpu;
    v->memory += more.memory;
}

static struct load load_of(const struct instance *in, struct berth_call *c,
                           const struct berth_node *node, const struct wants *own)
{
    const struct berth_host_nodes *h = trimaran_host->nodes;
    struct load l = {
        .capacity = {h->allocatable(c, node, in->cpu), h->allocatable(c, node, in->memory)}};

    for (uint32_t i = 0, n = h->n_pods(c, node); i < n; i++) {
        const struct wants w = wants_of(in, c, h->pod_at(c, node, i));
        add(&l.request_before, w.request);
        add(&l.limit_before, w.limit);
    }
    l.request = l.request_before;
    l.limit = l.limit_before;
    add(&l.request, own->request);
    add(&l.limit, own->limit);
    at_most(&l.request, l.capacity);
    at_most(&l.request_before, l.capacity);
    return l;
}

/* A beta distribution of the measured load. 0: there is none with these moments. */
static int fit(double mu, double sigma, double *a, double *b)
{
    double variance = sigma * sigma + mu * mu - mu * mu; /* from the moments, as the original */

    if (mu < 0 || mu > 1 || variance < 0 || variance >= mu * (1 - mu))
        return 0;
    double k = fmax(mu * (1 - mu) / variance - 1, DBL_TRUE_MIN);
    *a = mu * k;
    *b = (1 - mu) * k;
    return 1;
}

static double share_below(double x, double a, double b)
{
    double p = trimaran_beta(x, a, b);

    return isnan(p) || p < 0 || p > 1 ? 0 : p;
}

/* How probable it is that the load stays within what is requested, given that it stays within the
 * limits. */
static double within(const struct instance *in, const struct stats *s, int64_t request,
                     int64_t limit, int64_t capacity)
{
    double mu = mu_of(s), sigma = sigma_of(s) * pow(in->window, 0.5), a = 0, b = 0, p;
    double most = mu > 0 && mu < 1 ? sqrt(mu * (1 - mu) * ALLOWED) : 0;
    double threshold = clamp((double)request / (double)capacity, 1);
    int fitted = 0;

    sigma = sigma > most ? most : sigma;
    if (mu == 0 || (sigma == 0 && mu <= threshold))
        p = 1;
    else if (sigma == 0)
        p = 0;
    else
        p = (fitted = fit(mu, sigma, &a, &b)) ? share_below(threshold, a, b) : 0;
    if (limit < capacity && request <= limit) {
        double at_limit = fitted ? share_below((double)limit / (double)capacity, a, b) : 0;
        if (limit == 0)
            p = 1;
        else if (at_limit > 0)
            p = clamp(p / at_limit, 1);
    }
    return p;
}

static double risk(const struct instance *in, struct berth_call *c, const struct berth_node *node,
                   const struct load *l, int memory)
{
    int64_t capacity = memory ? l->capacity.memory : l->capacity.cpu;
    int64_t request = memory ? l->request.memory : l->request.cpu;
    int64_t limit = memory ? l->limit.memory : l->limit.cpu;
    double of_limit = 0, of_load = 0, w = memory ? in->mem_w : in->cpu_w;
    struct stats s;

    if (limit > capacity)
        of_limit = (double)(limit - capacity) / (double)(limit - request);
    if (stats_of(in, c, node, (struct vector){0, 0}, memory, &s))
        of_load = 1 - within(in, &s, memory ? l->request_before.memory : l->request_before.cpu,
                             memory ? l->limit_before.memory : l->limit_before.cpu, capacity);
    return clamp(w * of_limit + (1 - w) * of_load, 1);
}

int32_t trimaran_low_risk_pre_score(void *self, struct berth_call *c, const uint32_t *rows,
                                    uint64_t n, struct berth_why *why)
{
    struct wants *w = trimaran_host->base->alloc(c, sizeof *w);

    (void)rows, (void)n;
    *trimaran_host->base->score_state(c) = w;
    if (w)
        *w = wants_of(self, c, trimaran_host->pods->current(c));
    why->reason = BERTH_STR("out of memory");
    return w ? BERTH_SUCCESS : BERTH_ERROR;
}

int32_t trimaran_low_risk(void *self, struct berth_call *c, const struct berth_node *node,
                          int64_t *ret, struct berth_why *why)
{
    const struct instance *in = self;
    const struct wants *found = *trimaran_host->base->score_state(c);
    /* A profile may leave PreScore out. */
    const struct wants w = found ? *found : wants_of(in, c, trimaran_host->pods->current(c));

    (void)why;
    *ret = 0;
    if ((!w.limit.cpu && !w.limit.memory) || isnan(column(c, node, PRESENT)))
        return BERTH_SUCCESS;
    struct load l = load_of(in, c, node, &w);
    *ret = (int64_t)round((1 - fmax(risk(in, c, node, &l, 0), risk(in, c, node, &l, 1))) * 100);
    return BERTH_SUCCESS;
}

/* ---- Peaks ----------------------------------------------------------------------------------- */

static int by_node(const void *a, const void *b)
{
    berth_sym x = ((const struct power *)a)->node, y = ((const struct power *)b)->node;

    return x < y ? -1 : x > y;
}

/* CPU as NodeResourcesFit counts it; overhead is of no account where nothing is requested. */
static int64_t requested(const struct instance *in, struct berth_call *c)
{
    const struct berth_host_pods *p = trimaran_host->pods;
    const struct berth_pod *pod = p->current(c);
    int64_t all = p->request(c, pod, in->cpu);

    return all == p->overhead(c, pod, in->cpu) ? 0 : all;
}

int32_t trimaran_peaks(void *self, struct berth_call *c, const struct berth_node *node,
                       int64_t *ret, struct berth_why *why)
{
    static const struct power unknown = {0, 0, 0};
    const struct instance *in = self;
    const struct power key = {trimaran_host->nodes->name(c, node), 0, 0};
    double used = column(c, node, CPU_FIRST), p = 0;

    (void)why;
    *ret = 0;
    if (isnan(used))
        return BERTH_SUCCESS;
    double capacity = (double)trimaran_host->nodes->capacity(c, node, in->cpu);
    if (capacity != 0)
        p = 100 * ((used / 100) * capacity + (double)requested(in, c)) / capacity;
    const struct power *m =
        in->n_power ? bsearch(&key, in->power, in->n_power, sizeof key, by_node) : NULL;
    m = m ? m : &unknown;
    if (p <= 100)
        *ret = whole(m->k1 * (exp(m->k2 * p) - exp(m->k2 * used)) * 1e15);
    return BERTH_SUCCESS;
}

/* The less power, the better. Differences wrap, as Go's do. */
int32_t trimaran_peaks_normalize(void *self, struct berth_call *c, int64_t *scores, uint64_t n,
                                 struct berth_why *why)
{
    int64_t low = n ? scores[0] : 0, high = low;

    (void)self, (void)c, (void)why;
    for (uint64_t i = 0; i < n; i++) {
        low = scores[i] < low ? scores[i] : low;
        high = scores[i] > high ? scores[i] : high;
    }
    const double range = (double)(int64_t)((uint64_t)high - (uint64_t)low);
    for (uint64_t i = 0; i < n && (low || high); i++) {
        const double above = (double)(int64_t)((uint64_t)scores[i] - (uint64_t)low);
        scores[i] = low == high ? 100 : (int64_t)(100 - (uint64_t)whole(100 * above / range));
    }
    return BERTH_SUCCESS;
}
