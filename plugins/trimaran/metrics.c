/* SPDX-License-Identifier: Apache-2.0
 *
 * plugins/trimaran/metrics.c - nodes' metrics out of the file that berth-metrics writes
 *
 * Lines of words: `berth-node-metrics 1`, `window START END` (seconds since 1970), and of each node
 * its name and what is known of it, TYPE/OPERATOR=VALUE, in the source's order:
 *
 *     node-a CPU/AVG=31.5 CPU/STD=4 Memory/Latest=40
 *
 * A thread looks every second whether there is another file, and publishes what it says. What was
 * measured longer ago than maxAgeSeconds is taken away again, and the log says so: no decision hangs
 * on it.
 *
 * Runs in: the thread; the first time in create().
 */
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "trimaran.h"

#define HEAD      "berth-node-metrics 1\n"
#define NODES_MAX 1000000u
#define SKEW_MAX  60 /* seconds that the clocks of two machines may differ */

struct reading {
    struct berth_str *nodes;
    double *values[COLUMNS];
    uint64_t n, cap;
    int64_t end;
    int averaged[2]; /* of the node at hand: CPU, memory */
};

static void tell(struct instance *in, const char *what)
{
    char line[512];

    if (in->told == what)
        return;
    in->told = what;
    if (!what)
        return;
    int n = snprintf(line, sizeof line, "%s: %s", in->file, what);
    trimaran_host->base->log(
        in->home, BERTH_LOG_WARNING,
        (struct berth_str){line, n < (int)sizeof line ? (uint64_t)n : sizeof line - 1});
}

static void forget(struct reading *r)
{
    for (uint64_t i = 0; i < r->n; i++)
        free((char *)r->nodes[i].p);
    free(r->nodes);
    for (int k = 0; k < COLUMNS; k++)
        free(r->values[k]);
}

static int grow(struct reading *r)
{
    uint64_t cap = r->cap ? 2 * r->cap : 64;
    struct berth_str *nodes = realloc(r->nodes, cap * sizeof *nodes);

    if (nodes)
        r->nodes = nodes;
    for (int k = 0; k < COLUMNS; k++) {
        double *v = realloc(r->values[k], cap * sizeof *v);
        if (!v)
            return 0;
        r->values[k] = v;
    }
    r->cap = nodes ? cap : r->cap;
    return nodes != NULL;
}

/* One TYPE/OPERATOR=VALUE of a node. 0: it is none. */
static int add_metric(struct reading *r, const char *word)
{
    char type[32], op[32] = "", rest;
    double v;

    if (sscanf(word, "%31[A-Za-z]/=%lf%c", type, &v, &rest) != 2 &&
        sscanf(word, "%31[A-Za-z]/%31[A-Za-z]=%lf%c", type, op, &v, &rest) != 3)
        return 0;
    int cpu = strcmp(type, "CPU") == 0, memory = strcmp(type, "Memory") == 0;
    int avg = strcmp(op, "AVG") == 0, latest = strcmp(op, "Latest") == 0;
    double *at[COLUMNS];
    for (int k = 0; k < COLUMNS; k++)
        at[k] = &r->values[k][r->n];
    if (!isfinite(v))
        return 0;
    if (cpu && (avg || latest)) {
        *at[CPU_LAST] = v;
        *at[CPU_FIRST] = isnan(*at[CPU_FIRST]) ? v : *at[CPU_FIRST];
    }
    if (!cpu && !memory)
        return 1; /* of nobody's interest */
    double *mean = at[cpu ? CPU_AVG : MEMORY_AVG], *std = at[cpu ? CPU_STD : MEMORY_STD];
    if (isnan(*std)) /* the first of its type: nothing was found is 0 */
        *std = *mean = 0;
    r->averaged[memory] |= avg;
    if (avg || ((latest || !*op) && !r->averaged[memory]))
        *mean = v;
    else if (strcmp(op, "STD") == 0)
        *std = v;
    return 1;
}

/* NULL, or what is wrong with the line. */
static const char *add_node(struct reading *r, char *line)
{
    char *rest = NULL, *name = strtok_r(line, " \n", &rest), *word;

    if (!name)
        return NULL;
    if (r->n == NODES_MAX || (r->n == r->cap && !grow(r)))
        return "it has more than 1000000 nodes, or there is no memory for them";
    for (int k = 0; k < COLUMNS; k++)
        r->values[k][r->n] = NAN;
    r->averaged[0] = r->averaged[1] = 0;
    r->values[PRESENT][r->n] = 1;
    r->values[WINDOW_END][r->n] = (double)r->end;
    while ((word = strtok_r(NULL, " \n", &rest)))
        if (!add_metric(r, word))
            return "a node's line has a word that is not TYPE/OPERATOR=VALUE";
    char *copy = strdup(name);
    if (!copy)
        return "there is no memory for it";
    r->nodes[r->n++] = (struct berth_str){copy, strlen(copy)};
    return NULL;
}

/* Does the directory of the file belong to that user, and may no other write it? */
static bool is_in_directory_of(const char *file, uid_t owner)
{
    const char *slash = strrchr(file, '/');
    struct stat st;
    char dir[4096];

    snprintf(dir, sizeof dir, "%.*s", slash > file ? (int)(slash - file) : 1, slash ? file : ".");
    return stat(dir, &st) == 0 && st.st_uid == owner && !(st.st_mode & (S_IWGRP | S_IWOTH));
}

/* What another user could have written decides nothing. NULL, or what is wrong with the file. */
static const char *check_owner(const char *file, int fd)
{
    struct stat st;

    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return "it is not a regular file";
    if (st.st_mode & (S_IWGRP | S_IWOTH))
        return "others than its owner may write it";
    if (st.st_uid != 0 && st.st_uid != geteuid() && !is_in_directory_of(file, st.st_uid))
        return "it belongs neither to root, nor to the scheduler's user, nor to the owner of its "
               "directory";
    return NULL;
}

/* NULL, or what is wrong with it: then nothing of it counts. */
static const char *read_file(const struct instance *in, struct reading *r)
{
    int fd = open(in->file, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    const char *wrong = fd < 0 ? NULL : check_owner(in->file, fd);
    FILE *f = fd < 0 || wrong ? NULL : fdopen(fd, "r");
    char *line = NULL;
    size_t cap = 0;

    if (!f) {
        if (fd >= 0)
            close(fd);
        return wrong             ? wrong
               : errno == ENOENT ? "it is not there (berth-metrics writes it)"
                                 : "it cannot be read";
    }
    if (getline(&line, &cap, f) < 0 || strcmp(line, HEAD) != 0)
        wrong = "it does not begin with berth-node-metrics 1";
    else if (getline(&line, &cap, f) < 0 || sscanf(line, "window %*d %" SCNd64, &r->end) != 1)
        wrong = "its second line is not `window START END`";
    while (!wrong && getline(&line, &cap, f) >= 0)
        wrong = add_node(r, line);
    free(line);
    fclose(f);
    return wrong;
}

static void publish(const struct instance *in, const struct reading *r)
{
    for (uint32_t k = 0; k < COLUMNS; k++)
        trimaran_host->user->publish(in->home, k, r->nodes, r->values[k], r->n);
}

/* Another file: its moment is the end of its window, or its own where there is none. NULL, or what
 * is wrong with it: what is known stays as long as it is not too old. */
static const char *take(struct instance *in, int64_t now)
{
    struct reading r = {.n = 0};
    const char *wrong = read_file(in, &r);
    int64_t moment = r.end ? r.end : (int64_t)in->seen.st_mtim.tv_sec;

    if (!wrong && moment > now + SKEW_MAX)
        wrong = "its window ends in the future";
    if (!wrong) {
        if (now - moment <= in->max_age)
            publish(in, &r);
        in->moment = moment;
        trimaran_host->user->measured(in->home, moment * 1000000000, r.n);
    }
    forget(&r);
    return wrong;
}

static void refresh(struct instance *in)
{
    static const struct reading nothing = {.n = 0};
    const struct stat was = in->seen;
    int64_t now = time(NULL);

    if (stat(in->file, &in->seen) != 0)
        in->seen = (struct stat){.st_size = -1};
    if (in->seen.st_ino != was.st_ino || in->seen.st_size != was.st_size ||
        in->seen.st_mtim.tv_sec != was.st_mtim.tv_sec ||
        in->seen.st_mtim.tv_nsec != was.st_mtim.tv_nsec)
        in->wrong = take(in, now);
    int stale = now - in->moment > in->max_age;
    if (stale && !in->stale)
        publish(in, &nothing);
    in->stale = stale;
    tell(in, in->wrong ? in->wrong
             : stale   ? "what it says is older than maxAgeSeconds: nodes score as without metrics"
                       : NULL);
}

static void *run(void *arg)
{
    struct instance *in = arg;
    struct timespec until;

    pthread_mutex_lock(&in->lock);
    while (!in->over) {
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec++;
        pthread_cond_timedwait(&in->ends, &in->lock, &until);
        if (!in->over)
            refresh(in);
    }
    pthread_mutex_unlock(&in->lock);
    return NULL;
}

int trimaran_follow(struct instance *in)
{
    pthread_mutex_init(&in->lock, NULL);
    pthread_cond_init(&in->ends, NULL);
    refresh(in);
    in->running = pthread_create(&in->thread, NULL, run, in) == 0;
    return in->running ? 0 : -1;
}

void trimaran_leave(struct instance *in)
{
    if (in->running) {
        pthread_mutex_lock(&in->lock);
        in->over = 1;
        pthread_cond_signal(&in->ends);
        pthread_mutex_unlock(&in->lock);
        pthread_join(in->thread, NULL);
    }
    pthread_cond_destroy(&in->ends);
    pthread_mutex_destroy(&in->lock);
}
