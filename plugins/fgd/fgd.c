/* SPDX-License-Identifier: Apache-2.0
 *
 * plugins/fgd/fgd.c - GPUs that are shared by thousandths, with as little waste as can be
 *
 * FGD keeps an eye on single GPUs: a fraction has to fit into one of them, whole GPUs have to be free.
 * A node's waste is what typical pods could not use of its GPUs; the score says how much a pod adds
 * to it (fragmentation gradient descent). GPUBestFit prefers nodes with little left; beside FGD, with
 * a thousandth of its weight, it decides where FGD sees no difference: without it ties, which are
 * many, cost more than FGD wins.
 *
 * Which GPU a pod has is not in the API. It is derived: a node's pods in the order of their starts,
 * each where this plugin would have put it. A device plugin that decides in another way makes it
 * an estimate.
 *
 * Upstream:   Weng et al., "Beware of Fragmentation", USENIX ATC 2023, and its simulator.
 * Difference: typical pods are given (bench/fgd.py writes them), not gathered.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "berth/plugin.h"

#define GPUS_MAX    32
#define PODS_MAX    1024 /* of one node that have GPUs, or CPU */
#define TYPICAL_MAX 256
#define MODELS_MAX  16
#define WHOLE       1000 /* thousandths */

static const struct berth_host *host;

struct demand { /* of a pod: gpus of milli each */
    int64_t cpu, milli, gpus;
};
struct typical {
    struct demand d;
    double share; /* of all pods */
    uint32_t n_models;
    berth_sym model[MODELS_MAX]; /* those that it may have; none = any */
};
struct gpus {
    int64_t cpu; /* left, milli */
    int64_t left[GPUS_MAX];
    uint32_t n;
    berth_sym model;
};
/* What a node's pods came to when it was looked at last: a pod more is one step from there. */
struct memo {
    uint64_t node, pods; /* hashes of what it follows from */
    uint32_t n_pods;
    struct gpus g;
    double waste;
};
struct instance {
    berth_sym cpu, whole, shared, model_label;
    int best_fit; /* the GPU with the least room that does, instead of the least waste */
    double max_cpu, max_gpus;
    struct typical *typical;
    uint32_t n_typical;
    struct memo *memo; /* by row */
    uint32_t n_memo;
};

/* ---- waste ----------------------------------------------------------------------------------- */

static int may_have(const struct typical *t, berth_sym model)
{
    uint32_t i = 0;

    while (i < t->n_models && t->model[i] != model)
        i++;
    return !t->n_models || i < t->n_models;
}

/* What the pod could not use of the GPUs, thousandths. */
static int64_t unusable(const struct gpus *g, const struct typical *t, int64_t all)
{
    int64_t small = 0, fitting = 0;

    if (!t->d.milli || !may_have(t, g->model) || g->cpu < t->d.cpu)
        return all;
    for (uint32_t i = 0; i < g->n; i++) {
        fitting += g->left[i] >= t->d.milli;
        small += g->left[i] < t->d.milli ? g->left[i] : 0;
    }
    return fitting >= t->d.gpus ? small : all;
}

static double waste(const struct instance *in, const struct gpus *g)
{
    double sum = 0;
    int64_t all = 0;

    for (uint32_t i = 0; i < g->n; i++)
        all += g->left[i];
    for (uint32_t i = 0; i < in->n_typical && all; i++)
        sum += in->typical[i].share * (double)unusable(g, &in->typical[i], all);
    return sum;
}

/* 0 to 100; 50: the waste stays as it is. */
static int64_t grade(double before, double after)
{
    return (int64_t)(100 / (1 + exp(-(before - after) / 1000)));
}

/* ---- placing a pod --------------------------------------------------------------------------- */

/* The best GPU for a fraction, and how good it is; -1: none has the room. */
static int pick(const struct instance *in, const struct gpus *g, double before, struct demand d,
                int64_t *ret_grade)
{
    int best = -1;

    *ret_grade = -1;
    for (uint32_t i = 0; i < g->n; i++) {
        if (g->left[i] < d.milli)
            continue;
        struct gpus after = *g;
        after.left[i] -= d.milli;
        after.cpu -= d.cpu;
        int64_t s = in->best_fit ? WHOLE - after.left[i] : grade(before, waste(in, &after));
        if (s > *ret_grade) {
            *ret_grade = s;
            best = (int)i;
        }
    }
    return best;
}

/* 0: there is no room; then what there is was taken. */
static int take_whole(struct gpus *g, int64_t n)
{
    for (uint32_t i = 0; i < g->n && n; i++)
        if (g->left[i] == WHOLE) {
            g->left[i] = 0;
            n--;
        }
    return n == 0;
}

/* Puts the pod where the plugin would. before: the GPUs' waste, where a fraction is placed. */
static int place(const struct instance *in, struct gpus *g, double before, struct demand d)
{
    int64_t unused;
    int i = -1, fits = 1;

    if (d.milli == WHOLE)
        fits = take_whole(g, d.gpus);
    else if (d.milli) {
        i = pick(in, g, before, d, &unused);
        if (i >= 0)
            g->left[i] -= d.milli;
        fits = i >= 0;
    }
    g->cpu -= d.cpu;
    return fits;
}

/* ---- a node's GPUs --------------------------------------------------------------------------- */

static struct demand demand_of(const struct instance *in, struct berth_call *c,
                               const struct berth_pod *pod)
{
    struct demand d = {.cpu = host->pods->request(c, pod, in->cpu),
                       .gpus = host->pods->request(c, pod, in->whole)};

    d.milli = d.gpus ? WHOLE : host->pods->request(c, pod, in->shared);
    d.gpus = d.milli && !d.gpus ? 1 : d.gpus;
    return d;
}

static uint64_t mix(uint64_t h, uint64_t v)
{
    h = (h ^ v) * UINT64_C(0x9e3779b97f4a7c15);
    return h ^ h >> 29;
}

static void empty(const struct instance *in, struct berth_call *c, const struct berth_node *node,
                  struct gpus *g)
{
    int64_t n = host->nodes->allocatable(c, node, in->whole);

    memset(g, 0, sizeof *g);
    n = n ? n : host->nodes->allocatable(c, node, in->shared) / WHOLE;
    g->cpu = host->nodes->allocatable(c, node, in->cpu);
    g->model = host->nodes->label(c, node, in->model_label);
    g->n = n < 0 ? 0 : n > GPUS_MAX ? GPUS_MAX : (uint32_t)n;
    for (uint32_t i = 0; i < g->n; i++)
        g->left[i] = WHOLE;
}

/* In the order of their starts; those that did not start yet as they came, last. */
static uint32_t pods_of(const struct instance *in, struct berth_call *c,
                        const struct berth_node *node, struct demand *ret)
{
    uint64_t start[PODS_MAX];
    uint32_t n = host->nodes->n_pods(c, node), m = n < PODS_MAX ? n : PODS_MAX;

    for (uint32_t i = 0; i < m; i++) {
        const struct berth_pod *pod = host->nodes->pod_at(c, node, i);
        struct demand d = demand_of(in, c, pod);
        uint64_t at = (uint64_t)host->pods->started(c, pod) - 1; /* 0 becomes the latest */
        uint32_t k = i;
        for (; k > 0 && start[k - 1] > at; k--) {
            start[k] = start[k - 1];
            ret[k] = ret[k - 1];
        }
        start[k] = at;
        ret[k] = d;
    }
    return m;
}

/* The row's memory; NULL: a node without a row, or no memory. */
static struct memo *memo_of(struct instance *in, uint32_t row)
{
    if (row == UINT32_MAX)
        return NULL;
    if (row >= in->n_memo) {
        uint32_t n = row + row / 2 + 64;
        struct memo *more = realloc(in->memo, n * sizeof *more);
        if (!more)
            return NULL;
        memset(more + in->n_memo, 0, (n - in->n_memo) * sizeof *more);
        in->memo = more;
        in->n_memo = n;
    }
    return &in->memo[row];
}

/* The node's GPUs as its pods leave them, and their waste. */
static void gpus_of(struct instance *in, struct berth_call *c, const struct berth_node *node,
                    struct gpus *g, double *ret_waste)
{
    struct memo *m = memo_of(in, host->nodes->row(c, node));
    struct demand pods[PODS_MAX];
    uint32_t n = pods_of(in, c, node, pods), from = 0;
    uint64_t h = 1, base;

    empty(in, c, node, g);
    base = mix(mix(mix(g->n, (uint64_t)g->cpu), g->model), 7);
    for (uint32_t i = 0; m && m->node == base && i <= n; i++) {
        if (i == m->n_pods && h == m->pods) {
            *g = m->g;
            *ret_waste = m->waste;
            from = i;
        }
        if (i < n)
            h = mix(mix(mix(h, (uint64_t)pods[i].cpu), (uint64_t)pods[i].milli),
                    (uint64_t)pods[i].gpus);
    }
    if (m && m->node == base && m->n_pods == n && m->pods == h)
        return;
    for (uint32_t i = from; i < n; i++)
        (void)place(in, g, !in->best_fit && pods[i].milli % WHOLE ? waste(in, g) : 0, pods[i]);
    *ret_waste = in->best_fit ? 0 : waste(in, g);
    if (!m)
        return;
    h = 1;
    for (uint32_t i = 0; i < n; i++)
        h = mix(mix(mix(h, (uint64_t)pods[i].cpu), (uint64_t)pods[i].milli),
                (uint64_t)pods[i].gpus);
    *m = (struct memo){base, h, n, *g, *ret_waste};
}

/* ---- callbacks ------------------------------------------------------------------------------- */

static int32_t filter(void *self, struct berth_call *c, const struct berth_node *node,
                      struct berth_why *why)
{
    struct instance *in = self;
    struct demand d = demand_of(in, c, host->pods->current(c));
    struct gpus g;
    double before;
    int64_t fitting = 0;

    if (!d.milli)
        return BERTH_SUCCESS;
    gpus_of(in, c, node, &g, &before);
    for (uint32_t i = 0; i < g.n; i++)
        fitting += g.left[i] >= d.milli;
    if (fitting >= d.gpus)
        return BERTH_SUCCESS;
    why->reason = d.milli == WHOLE ? BERTH_STR("node(s) had too few free GPUs")
                                   : BERTH_STR("node(s) had no GPU with enough left of it");
    return BERTH_UNSCHEDULABLE;
}

static int32_t score(void *self, struct berth_call *c, const struct berth_node *node, int64_t *ret,
                     struct berth_why *why)
{
    struct instance *in = self;
    struct demand d = demand_of(in, c, host->pods->current(c));
    struct gpus g;
    double before;

    (void)why;
    *ret = in->best_fit ? 0 : 100;
    if (in->best_fit || (!d.cpu && !d.milli))
        return BERTH_SUCCESS;
    gpus_of(in, c, node, &g, &before);
    if (d.milli && d.milli < WHOLE) {
        if (pick(in, &g, before, d, ret) < 0)
            *ret = 0;
    } else {
        (void)place(in, &g, before, d);
        *ret = grade(before, waste(in, &g));
    }
    return BERTH_SUCCESS;
}

/* How little is left of the node with the pod, of the largest node there is. */
static int32_t best_fit(void *self, struct berth_call *c, const struct berth_node *node,
                        int64_t *ret, struct berth_why *why)
{
    const struct instance *in = self;
    const struct berth_host_nodes *h = host->nodes;
    struct demand d = demand_of(in, c, host->pods->current(c));
    int64_t cpu = h->allocatable(c, node, in->cpu) - h->requested(c, node, in->cpu) - d.cpu;
    int64_t all = h->allocatable(c, node, in->shared);
    int64_t used =
        all ? h->requested(c, node, in->shared) : h->requested(c, node, in->whole) * WHOLE;
    int64_t gpu =
        (all ? all : h->allocatable(c, node, in->whole) * WHOLE) - used - d.milli * d.gpus;
    double s = (1 - (0.5 * (double)cpu / (in->max_cpu * 1000) +
                     0.5 * (double)gpu / (in->max_gpus * WHOLE))) *
               100;

    (void)why;
    *ret = s < 0 ? 0 : s > 100 ? 100 : (int64_t)s;
    return BERTH_SUCCESS;
}

/* ---- arguments ------------------------------------------------------------------------------- */

static const struct berth_value *get(const struct berth_value *v, const char *name)
{
    return v ? host->values->get(v, (struct berth_str){name, strlen(name)}) : NULL;
}

/* errors NULL: the instance's values are taken; they were looked at before. */
static void complain(struct berth_errors *errors, const char *path, const char *text)
{
    if (errors)
        host->values->error(errors, (struct berth_str){path, strlen(path)},
                            (struct berth_str){text, strlen(text)});
}

static void natural(const struct berth_value *v, const char *name, int64_t most,
                    struct berth_errors *errors, const char *path, int64_t *ret)
{
    char text[96], where[128];

    snprintf(where, sizeof where, "%s.%s", path, name);
    snprintf(text, sizeof text, "an integer from 0 to %lld is needed", (long long)most);
    if (get(v, name) && (!host->values->integer(get(v, name), ret) || *ret < 0 || *ret > most))
        complain(errors, where, text);
}

static void read_typical(struct instance *in, struct berth_home *home, const struct berth_value *v,
                         uint32_t i, struct berth_errors *errors)
{
    const struct berth_value *models = get(v, "models");
    struct typical t = {.share = 0};
    int64_t count = 0;
    char path[32], fields[32];

    snprintf(path, sizeof path, "typicalPods[%u]", i);
    snprintf(fields, sizeof fields, "typicalPods[%u].", i);
    berth_check_fields(host->values, v, fields, "cpuMilli gpuMilli gpus count models", errors);
    natural(v, "cpuMilli", 10000000, errors, path, &t.d.cpu);
    natural(v, "gpuMilli", WHOLE, errors, path, &t.d.milli);
    natural(v, "gpus", GPUS_MAX, errors, path, &t.d.gpus);
    natural(v, "count", INT32_MAX, errors, path, &count);
    if (!count)
        complain(errors, path, "count: how many pods are like it is needed");
    if (!t.d.milli != !t.d.gpus)
        complain(errors, path, "gpuMilli and gpus: both are needed, or none");
    for (const struct berth_value *m = host->values->first(models); m && home;
         m = host->values->next(m))
        if (t.n_models < MODELS_MAX)
            t.model[t.n_models++] = host->base->intern(home, host->values->text(m));
    t.share = (double)count;
    if (in->typical && i < TYPICAL_MAX)
        in->typical[in->n_typical++] = t;
}

static berth_sym name_of(struct berth_home *home, const struct berth_value *args, const char *name,
                         const char *otherwise, struct berth_errors *errors)
{
    struct berth_str s = host->values->text(get(args, name));

    if (get(args, name) && (!s.n || host->values->type(get(args, name)) != BERTH_STRING))
        complain(errors, name, "a name is needed");
    return home ? host->base->intern(home,
                                     s.n ? s : (struct berth_str){otherwise, strlen(otherwise)})
                : 0;
}

static void read_common(struct instance *in, struct berth_home *home,
                        const struct berth_value *args, struct berth_errors *errors)
{
    in->cpu = home ? host->base->intern(home, BERTH_STR("cpu")) : 0;
    in->whole = name_of(home, args, "wholeResource", "nvidia.com/gpu", errors);
    in->shared = name_of(home, args, "sharedResource", "example.com/gpu-milli", errors);
}

static void read_fgd(struct instance *in, struct berth_home *home, const struct berth_value *args,
                     struct berth_errors *errors)
{
    const struct berth_value *list = get(args, "typicalPods");
    struct berth_str policy = host->values->text(get(args, "gpuPolicy"));
    uint32_t n = 0;
    double sum = 0;

    berth_check_fields(host->values, args, "",
                       "wholeResource sharedResource modelLabel gpuPolicy typicalPods", errors);
    read_common(in, home, args, errors);
    in->model_label = name_of(home, args, "modelLabel", "gpu-model", errors);
    in->best_fit = berth_str_is(policy, "BestFit");
    if (policy.n && !in->best_fit && !berth_str_is(policy, "Fragmentation"))
        complain(errors, "gpuPolicy", "Fragmentation or BestFit is needed");
    for (const struct berth_value *v = host->values->first(list); v; v = host->values->next(v))
        read_typical(in, home, v, n++, errors);
    if (n > TYPICAL_MAX)
        complain(errors, "typicalPods", "at most 256 are allowed");
    if (!n && !in->best_fit)
        complain(errors, "typicalPods", "what pods are like is needed: a list");
    for (uint32_t i = 0; i < in->n_typical; i++)
        sum += in->typical[i].share;
    for (uint32_t i = 0; i < in->n_typical; i++)
        in->typical[i].share /= sum;
}

static void check_fgd(const struct berth_value *args, struct berth_errors *errors)
{
    struct instance in = {.typical = NULL};

    read_fgd(&in, NULL, args, errors);
}

static void limit(const struct berth_value *args, const char *name, double otherwise, double *ret,
                  struct berth_errors *errors)
{
    *ret = otherwise;
    if (get(args, name) && (!host->values->number(get(args, name), ret) || *ret <= 0))
        complain(errors, name, "a number above 0 is needed");
}

static void read_best_fit(struct instance *in, struct berth_home *home,
                          const struct berth_value *args, struct berth_errors *errors)
{
    berth_check_fields(host->values, args, "",
                       "wholeResource sharedResource largestCPUs largestGPUs", errors);
    read_common(in, home, args, errors);
    limit(args, "largestCPUs", 128, &in->max_cpu, errors);
    limit(args, "largestGPUs", 8, &in->max_gpus, errors);
}

static void check_best_fit(const struct berth_value *args, struct berth_errors *errors)
{
    struct instance in = {.typical = NULL};

    read_best_fit(&in, NULL, args, errors);
}

/* ---- instances ------------------------------------------------------------------------------- */

static void destroy(void *self)
{
    struct instance *in = self;

    free(in->typical);
    free(in->memo);
    free(in);
}

static int32_t make(struct berth_home *home, const struct berth_value *args, void **ret,
                    struct berth_why *why,
                    void (*read)(struct instance *, struct berth_home *, const struct berth_value *,
                                 struct berth_errors *))
{
    struct instance *in = calloc(1, sizeof *in);

    if (in)
        in->typical = calloc(TYPICAL_MAX, sizeof *in->typical);
    if (!in || !in->typical) {
        free(in);
        why->reason = BERTH_STR("out of memory");
        return BERTH_ERROR;
    }
    read(in, home, args, NULL);
    *ret = in;
    return BERTH_SUCCESS;
}

static int32_t create_fgd(struct berth_home *home, const struct berth_value *args, void **ret,
                          struct berth_why *why)
{
    return make(home, args, ret, why, read_fgd);
}

static int32_t create_best_fit(struct berth_home *home, const struct berth_value *args, void **ret,
                               struct berth_why *why)
{
    return make(home, args, ret, why, read_best_fit);
}

/* ---- the file -------------------------------------------------------------------------------- */

static const struct berth_event events[] = {
    {BERTH_ON_POD, BERTH_DELETE | BERTH_POD_SCALE_DOWN},
    {BERTH_ON_NODE, BERTH_ADD | BERTH_NODE_ALLOCATABLE},
};
static const struct berth_event none[1];
static const struct berth_plugin fgd = {
    .size = sizeof fgd,
    .name = {"FGD", 3},
    .reads = BERTH_READS_NODE | BERTH_READS_PODS,
    .events = events,
    .n_events = 2,
    .check_args = check_fgd,
    .create = create_fgd,
    .destroy = destroy,
    .filter = filter,
    .score = score,
};
static const struct berth_plugin gpu_best_fit = {
    .size = sizeof gpu_best_fit,
    .name = {"GPUBestFit", 10},
    .reads = BERTH_READS_NODE | BERTH_READS_SUMS,
    .events = none,
    .check_args = check_best_fit,
    .create = create_best_fit,
    .destroy = destroy,
    .score = best_fit,
};

BERTH_NOTE("FGD GPUBestFit", "1.0.0", "Apache-2.0");

int32_t berth_plugin_entry_v1(const struct berth_host *h, struct berth_entry *ret)
{
    static const struct berth_plugin *const all[] = {&fgd, &gpu_best_fit};

    host = h;
    ret->plugins = all;
    ret->n = 2;
    return 0;
}
