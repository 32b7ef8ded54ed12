/* SPDX-License-Identifier: Apache-2.0
 *
 * plugins/loadaware/load_aware.c - no pods for nodes that are busy, whatever their pods request
 *
 * A thread reads a file with lines `node load`, which somebody writes anew every few seconds (and
 * renames into place), and publishes what it says as a user column: Filter compares one number. When the
 * file is older than maxAgeSeconds it says nothing about now, and nodes are filtered as if none were
 * known: by default they all pass, with `onStale: Reject` none does.
 *
 * What a thread knows about time is published as well: callbacks look at no clock. When the file says
 * something new, pods that were rejected are worth another attempt.
 */
#define _POSIX_C_SOURCE 200809L
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "berth/plugin.h"

#define LOAD      0u /* the column */
#define LINES_MAX 100000u

static const struct berth_host *host;

struct instance {
    struct berth_home *home;
    double threshold;
    int64_t max_age, every; /* seconds */
    int rejects;            /* nodes of which nothing is known */
    char *file;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t ends;
    int over;
    struct timespec seen; /* of the file that was read last */
};
struct loads { /* of one reading */
    struct berth_str *nodes;
    double *values;
    uint64_t n;
};

/* ---- arguments ------------------------------------------------------------------------------- */

static void seconds(const struct berth_value *args, struct berth_errors *errors,
                    struct berth_str name, int64_t *ret)
{
    const struct berth_value *v = host->values->get(args, name);

    if (v && (!host->values->integer(v, ret) || *ret < 1 || *ret > 86400) && errors)
        host->values->error(errors, name, BERTH_STR("1 to 86400 is needed"));
}

static void check_args(const struct berth_value *args, struct berth_errors *errors)
{
    const struct berth_host_values *v = host->values;
    const struct berth_value *stale = v->get(args, BERTH_STR("onStale"));
    double threshold = -1;
    int64_t n;

    berth_check_fields(v, args, "", "file threshold maxAgeSeconds everySeconds onStale", errors);
    if (!v->text(v->get(args, BERTH_STR("file"))).n)
        v->error(errors, BERTH_STR("file"), BERTH_STR("the path of a file is needed"));
    if (!v->number(v->get(args, BERTH_STR("threshold")), &threshold) || threshold < 0)
        v->error(errors, BERTH_STR("threshold"), BERTH_STR("a number from 0 on is needed"));
    if (stale && !berth_str_is(v->text(stale), "Accept") && !berth_str_is(v->text(stale), "Reject"))
        v->error(errors, BERTH_STR("onStale"), BERTH_STR("Accept or Reject is needed"));
    seconds(args, errors, BERTH_STR("maxAgeSeconds"), &n);
    seconds(args, errors, BERTH_STR("everySeconds"), &n);
}

/* ---- the file -------------------------------------------------------------------------------- */

static void tell(const struct instance *in, const char *what)
{
    char line[512];
    int n = snprintf(line, sizeof line, "%s: %s", in->file, what);

    host->base->log(in->home, BERTH_LOG_WARNING,
                    (struct berth_str){line, n < (int)sizeof line ? (uint64_t)n : sizeof line - 1});
}

static void forget(struct loads *l)
{
    for (uint64_t i = 0; i < l->n; i++)
        free((char *)l->nodes[i].p);
    free(l->nodes);
    free(l->values);
    *l = (struct loads){NULL, NULL, 0};
}

/* One line. 0: it is not one. */
static int add(struct loads *l, const char *node, double load)
{
    struct berth_str *nodes = realloc(l->nodes, (l->n + 1) * sizeof *nodes);
    double *values = realloc(l->values, (l->n + 1) * sizeof *values);
    char *name = strdup(node);

    l->nodes = nodes ? nodes : l->nodes;
    l->values = values ? values : l->values;
    if (!nodes || !values || !name || l->n == LINES_MAX) {
        free(name);
        return 0;
    }
    l->nodes[l->n] = (struct berth_str){name, strlen(name)};
    l->values[l->n++] = load;
    return 1;
}

/* NULL, or what is wrong with it: then nothing of it counts. */
static const char *read_file(struct instance *in, struct loads *l, int *ret_news)
{
    FILE *f = fopen(in->file, "re");
    struct stat st;
    char line[512], node[256], rest;
    double load;
    const char *wrong = NULL;

    if (!f)
        return "it cannot be read";
    if (fstat(fileno(f), &st) != 0 || time(NULL) - st.st_mtime > in->max_age)
        wrong = "it is older than maxAgeSeconds";
    if (!wrong) {
        *ret_news = st.st_mtim.tv_sec != in->seen.tv_sec || st.st_mtim.tv_nsec != in->seen.tv_nsec;
        in->seen = st.st_mtim;
    }
    while (!wrong && fgets(line, sizeof line, f))
        if (sscanf(line, "%255s %lf %c", node, &load, &rest) != 2 || !isfinite(load) ||
            !add(l, node, load))
            wrong = "a line is not `node load`, or there are more than 100000";
    fclose(f);
    return wrong;
}

static void refresh(struct instance *in, const char **told)
{
    struct loads l = {NULL, NULL, 0};
    int news = 0;
    const char *wrong = read_file(in, &l, &news);

    if (wrong)
        forget(&l);
    if (wrong && wrong != *told)
        tell(in, wrong);
    news |= wrong != *told; /* with onStale: Accept that nothing is known makes room, too */
    *told = wrong;
    host->user->publish(in->home, LOAD, l.nodes, l.values, l.n);
    if (news && BERTH_HAS(host->base, wake))
        host->base->wake(in->home);
    forget(&l);
}

static void *run(void *arg)
{
    struct instance *in = arg;
    const char *told = NULL;
    struct timespec until;

    pthread_mutex_lock(&in->lock);
    while (!in->over) {
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec += in->every;
        pthread_cond_timedwait(&in->ends, &in->lock, &until);
        if (!in->over)
            refresh(in, &told);
    }
    pthread_mutex_unlock(&in->lock);
    return NULL;
}

/* ---- an instance ----------------------------------------------------------------------------- */

static void let_go(struct instance *in)
{
    pthread_cond_destroy(&in->ends);
    pthread_mutex_destroy(&in->lock);
    free(in->file);
    free(in);
}

static int32_t create(struct berth_home *home, const struct berth_value *args, void **ret,
                      struct berth_why *why)
{
    const struct berth_host_values *v = host->values;
    struct berth_str file = v->text(v->get(args, BERTH_STR("file")));
    struct instance *in = calloc(1, sizeof *in);
    const char *told = NULL;

    if (!in || !(in->file = strndup(file.p, file.n))) {
        free(in);
        why->reason = BERTH_STR("out of memory");
        return BERTH_ERROR;
    }
    in->home = home;
    in->max_age = 60;
    in->every = 5;
    v->number(v->get(args, BERTH_STR("threshold")), &in->threshold);
    seconds(args, NULL, BERTH_STR("maxAgeSeconds"), &in->max_age);
    seconds(args, NULL, BERTH_STR("everySeconds"), &in->every);
    in->rejects = berth_str_is(v->text(v->get(args, BERTH_STR("onStale"))), "Reject");
    pthread_mutex_init(&in->lock, NULL);
    pthread_cond_init(&in->ends, NULL);
    refresh(in, &told); /* the first pod is to see it */
    if (pthread_create(&in->thread, NULL, run, in) != 0) {
        let_go(in);
        why->reason = BERTH_STR("no thread could be made");
        return BERTH_ERROR;
    }
    *ret = in;
    return BERTH_SUCCESS;
}

static void destroy(void *self)
{
    struct instance *in = self;

    pthread_mutex_lock(&in->lock);
    in->over = 1;
    pthread_cond_signal(&in->ends);
    pthread_mutex_unlock(&in->lock);
    pthread_join(in->thread, NULL);
    let_go(in);
}

/* ---- filtering ------------------------------------------------------------------------------- */

static int passes(const struct instance *in, double load)
{
    return isnan(load) ? !in->rejects : load <= in->threshold;
}

static int32_t filter(void *self, struct berth_call *c, const struct berth_node *node,
                      struct berth_why *why)
{
    const struct instance *in = self;
    double load = host->user->column(c, LOAD)[host->nodes->row(c, node)];

    if (passes(in, load))
        return BERTH_SUCCESS;
    why->reason =
        isnan(load) ? BERTH_STR("node(s) had no recent load") : BERTH_STR("node(s) were too busy");
    return BERTH_UNRESOLVABLE;
}

static int32_t filter_rows(void *self, struct berth_call *c, const uint32_t *rows, uint64_t n,
                           uint64_t *keep, struct berth_why *why)
{
    const double *load = host->user->column(c, LOAD);

    (void)why;
    for (uint64_t i = 0; i < n; i++)
        if (passes(self, load[rows[i]]))
            keep[i / 64] |= UINT64_C(1) << i % 64;
    return BERTH_SUCCESS;
}

/* And what its thread wakes. */
static const struct berth_event events[] = {{BERTH_ON_NODE, BERTH_ADD}};
static struct berth_plugin plugin = {
    .size = sizeof plugin,
    .flags = BERTH_USER_COLUMNS,
    .name = {"LoadAware", 9},
    .reads = BERTH_READS_NODE,
    .events = events,
    .n_events = 1,
    .check_args = check_args,
    .create = create,
    .destroy = destroy,
    .filter = filter,
    .filter_rows = filter_rows,
};

BERTH_NOTE("LoadAware", "1.0.0", "Apache-2.0");

int32_t berth_plugin_entry_v1(const struct berth_host *h, struct berth_entry *ret)
{
    static const struct berth_plugin *const all[] = {&plugin};

    if (!BERTH_HAS(h, user))
        return 1;
    host = h;
    ret->plugins = all;
    ret->n = 1;
    return 0;
}
