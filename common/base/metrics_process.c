/* SPDX-License-Identifier: Apache-2.0
 *
 * common/base/metrics_process.c - what the kernel knows about this process
 *
 * Runs in:    the loop thread, at each scrape.
 * Fails with: nothing; a value that /proc does not give keeps its last state.
 * Upstream:   client_golang prometheus/{process_collector,go_collector}.go; differences: goroutines
 *             are threads, nothing else of go_*.
 */
#include "common/base/metrics.h"

#include <dirent.h>
#include <math.h>
#include <sys/resource.h>
#include <unistd.h>

struct process_metrics {
    const struct bh_metrics *all;
    struct bh_cell *cpu, *resident, *virtual_bytes, *virtual_max, *open_fds, *max_fds, *start;
    struct bh_cell *goroutines, *threads, *registered[3];
};
struct network_metrics {
    struct bh_cell *received, *sent;
};
static const char *const levels[3][2] = {
    {"STABLE", "[STABLE]"}, {"BETA", "[BETA]"}, {"ALPHA", "[ALPHA]"}};

static double boot_time_s(void)
{
    char *text;
    double t = NAN;

    if (bh_read_file("/proc/stat", 4 << 20, &text, NULL) < 0)
        return t;
    char *line = strstr(text, "\nbtime ");
    if (line)
        t = strtod(line + sizeof("\nbtime ") - 1, NULL);
    free(text);
    return t;
}

/* Field number (from 1, as in proc(5)) of /proc/self/stat, from 3 on. */
static double stat_field(const char *text, int field)
{
    const char *p = strrchr(text, ')'); /* the command's name may contain blanks */
    for (int at = 2; p && at < field; at++)
        p = strchr(p + 1, ' ');
    return p ? strtod(p, NULL) : NAN;
}

static double count_fds(void)
{
    DIR *d = opendir("/proc/self/fd");
    if (!d)
        return NAN;
    int n = 0;
    while (readdir(d))
        n++;
    closedir(d);
    return n - 3; /* ".", ".." and the folder itself */
}

static void set_if(struct bh_cell *c, double v)
{
    if (!isnan(v))
        bh_cell_set(c, v);
}

static void on_scrape(void *arg)
{
    struct process_metrics *p = arg;
    struct rusage ru;
    struct rlimit limit;
    char *text;

    if (getrusage(RUSAGE_SELF, &ru) == 0)
        bh_cell_advance(p->cpu, (double)(ru.ru_utime.tv_sec + ru.ru_stime.tv_sec) +
                                    (double)(ru.ru_utime.tv_usec + ru.ru_stime.tv_usec) / 1e6);
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
        bh_cell_set(p->max_fds, (double)limit.rlim_cur);
    if (getrlimit(RLIMIT_AS, &limit) == 0)
        bh_cell_set(p->virtual_max, (double)limit.rlim_cur);
    for (size_t i = 0; i < BH_ARRAY_LEN(levels); i++)
        bh_cell_advance(p->registered[i], (double)bh_metrics_count(p->all, levels[i][1]));
    set_if(p->open_fds, count_fds());
    if (bh_read_file("/proc/self/stat", 4096, &text, NULL) == 0) {
        set_if(p->threads, stat_field(text, 20));
        set_if(p->goroutines, stat_field(text, 20));
        set_if(p->virtual_bytes, stat_field(text, 23));
        set_if(p->resident, stat_field(text, 24) * (double)sysconf(_SC_PAGESIZE));
        free(text);
    }
}

/* IpExt of /proc/self/net/netstat: a line of names, then a line of values. */
static double net_field(const char *text, const char *name)
{
    const char *names = strstr(text, "IpExt: "), *values, *at;
    size_t n = strlen(name);

    values = names ? strstr(names + 1, "\nIpExt: ") : NULL;
    at = names;
    while (values && at && at < values) {
        const char *word = strchr(at, ' '), *value = strchr(values + 1, ' ');
        if (!word || word > values || !value)
            break;
        if (strncmp(word + 1, name, n) == 0 && (word[1 + n] == ' ' || word[1 + n] == '\n'))
            return strtod(value, NULL);
        at = word + 1;
        values = value;
    }
    return NAN;
}

static void on_network_scrape(void *arg)
{
    struct network_metrics *n = arg;
    char *text;

    if (bh_read_file("/proc/self/net/netstat", 1 << 16, &text, NULL) < 0)
        return;
    double in = net_field(text, "InOctets"), out = net_field(text, "OutOctets");
    if (!isnan(in) && !isnan(out)) {
        bh_cell_advance(n->received, in);
        bh_cell_advance(n->sent, out);
    }
    free(text);
}

static struct bh_cell *cell(struct bh_metrics *m, enum bh_metric_kind kind, const char *name,
                            const char *help)
{
    return bh_metric_cell(bh_metric_new(m, kind, name, help, "", NULL, 0));
}

void bh_metrics_add_network(struct bh_metrics *m)
{
    struct network_metrics *n = bh_calloc(1, sizeof(*n));

    n->received = cell(m, BH_COUNTER, "process_network_receive_bytes_total",
                       "Number of bytes received by the process over the network.");
    n->sent = cell(m, BH_COUNTER, "process_network_transmit_bytes_total",
                   "Number of bytes sent by the process over the network.");
    bh_metrics_own(m, n);
    bh_metrics_on_scrape(m, on_network_scrape, n);
}

void bh_metrics_add_process(struct bh_metrics *m, const char *program)
{
    struct process_metrics *p = bh_calloc(1, sizeof(*p));
    char *text;

    p->cpu = cell(m, BH_COUNTER, "process_cpu_seconds_total",
                  "Total user and system CPU time spent in seconds.");
    p->resident =
        cell(m, BH_GAUGE, "process_resident_memory_bytes", "Resident memory size in bytes.");
    p->virtual_bytes =
        cell(m, BH_GAUGE, "process_virtual_memory_bytes", "Virtual memory size in bytes.");
    p->virtual_max = cell(m, BH_GAUGE, "process_virtual_memory_max_bytes",
                          "Maximum amount of virtual memory available in bytes.");
    p->open_fds = cell(m, BH_GAUGE, "process_open_fds", "Number of open file descriptors.");
    p->max_fds = cell(m, BH_GAUGE, "process_max_fds", "Maximum number of open file descriptors.");
    p->start = cell(m, BH_GAUGE, "process_start_time_seconds",
                    "Start time of the process since unix epoch in seconds.");
    /* What a dashboard made for a Go program asks of any process. */
    p->goroutines = cell(m, BH_GAUGE, "go_goroutines",
                         "Number of goroutines that currently exist. Berth has none: its threads.");
    p->threads = cell(m, BH_GAUGE, "go_threads", "Number of OS threads created.");
    struct bh_metric *f = bh_metric_new(
        m, BH_COUNTER, "registered_metrics_total",
        "[BETA] The count of registered metrics broken by stability level and deprecation version.",
        "deprecated_version,stability_level", NULL, 0);
    p->all = m;
    for (size_t i = 0; i < BH_ARRAY_LEN(levels); i++)
        p->registered[i] = bh_metric_cell(f, "", levels[i][0]);
    if (bh_read_file("/proc/self/stat", 4096, &text, NULL) == 0) {
        set_if(p->start, boot_time_s() + stat_field(text, 22) / (double)sysconf(_SC_CLK_TCK));
        free(text);
    }
    struct bh_metric *info =
        bh_metric_new(m, BH_GAUGE, "berth_build_info",
                      "Version of the program; the value is always 1.", "program,version", NULL, 0);
    bh_cell_set(bh_metric_cell(info, program, BH_VERSION), 1);
    bh_metrics_own(m, p);
    bh_metrics_on_scrape(m, on_scrape, p);
}
