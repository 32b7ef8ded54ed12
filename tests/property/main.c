/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/property/main.c - rounds of random scenarios; see README.md
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/opt.h"
#include "common/data/yaml.h"
#include "tests/property/property.h"

#define ROUND_SECONDS 120

struct run {
    int64_t seed, rounds, seconds, nodes, ops, shrink_tries, shrink_seconds, max_findings;
    const char *features, *replay, *out;
    bool dump, no_fork;
    struct counts n;
    unsigned passed, failed;
};

static const struct {
    const char *name;
    uint32_t bit;
} feature_names[] = {
    {"taints", F_TAINTS},     {"affinity", F_AFFINITY},     {"ports", F_PORTS},
    {"images", F_IMAGES},     {"spread", F_SPREAD},         {"pod-affinity", F_POD_AFFINITY},
    {"priority", F_PRIORITY}, {"gates", F_GATES},           {"volumes", F_VOLUMES},
    {"devices", F_DEVICES},   {"services", F_SERVICES},     {"profiles", F_PROFILES},
    {"features", F_FEATURES}, {"nominate", F_NOMINATE},     {"terminating", F_TERMINATING},
    {"odd", F_ODD},           {"namespaces", F_NAMESPACES}, {"sampling", F_SAMPLING},
    {"crowded", F_CROWDED},   {"groups", F_GROUPS},
};

/* ---- a process per round --------------------------------------------------------------------- */

struct shared { /* between a round's process and us */
    struct finding f;
    struct counts n;
    bool done;
};

static void limits(unsigned seconds)
{
    const struct rlimit no_core = {0, 0}, cpu = {seconds, seconds};

    (void)setrlimit(RLIMIT_CORE, &no_core);
    (void)setrlimit(RLIMIT_CPU, &cpu);
    (void)alarm(seconds * 4); /* a hang that does not burn: waits for something */
}

/* What the process said at its end, e.g. verify's dump or a sanitizer's report. */
static void read_all(int fd, char *out, size_t n)
{
    size_t have = 0;
    char rest[4096];

    for (;;) {
        ssize_t k = have + 1 < n ? read(fd, out + have, n - have - 1) : read(fd, rest, sizeof rest);
        if (k <= 0)
            break;
        have += have + 1 < n ? (size_t)k : 0;
    }
    out[have] = 0;
}

/* "verify: kept results differs ..." is a better kind than the signal. */
static void name_death(struct finding *f, int status, const char *said)
{
    const char *kinds[] = {"verify:", "AddressSanitizer:", "runtime error:", "assertion"};

    snprintf(f->kind, sizeof f->kind, "killed by signal %d", WTERMSIG(status));
    if (WIFEXITED(status))
        snprintf(f->kind, sizeof f->kind, "exit status %d", WEXITSTATUS(status));
    for (unsigned i = 0; i < BH_ARRAY_LEN(kinds); i++) {
        const char *p = strstr(said, kinds[i]);
        if (p) {
            snprintf(f->kind, sizeof f->kind, "%.*s", (int)BH_MIN(strcspn(p, "\n"), (size_t)60), p);
            break;
        }
    }
    snprintf(f->text, sizeof f->text, "%s", said);
}

bool play_apart(const struct bh_json *scenario, unsigned seconds, struct counts *n,
                struct finding *f)
{
    struct shared *s =
        mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    static char said[7000];
    int fd[2], status = 0;

    if (s == MAP_FAILED || pipe(fd) < 0)
        abort();
    fflush(NULL);
    pid_t pid = fork();
    if (pid < 0)
        abort();
    if (pid == 0) {
        close(fd[0]);
        (void)dup2(fd[1], 2);
        limits(seconds);
        (void)play(scenario, &s->n, &s->f);
        s->done = true;
        exit(0);
    }
    close(fd[1]);
    read_all(fd[0], said, sizeof said);
    close(fd[0]);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    *n = s->n;
    *f = s->f;
    if (!s->done || status != 0)
        name_death(f, status, said);
    (void)munmap(s, sizeof *s);
    return f->kind[0] == 0;
}

/* ---- findings -------------------------------------------------------------------------------- */

static void print_indented(const char *text)
{
    printf("#     ");
    for (const char *p = text; *p; p++) {
        putchar(*p);
        if (*p == '\n' && p[1])
            printf("#     ");
    }
    putchar('\n');
}

static void save(const struct run *r, const struct bh_json *scenario, const char *seed)
{
    struct bh_buf b = {0};

    bh_yaml_write(&b, scenario);
    if (r->out) {
        BH_CLEANUP(bh_freep) char *path = bh_asprintf("%s/%s.yaml", r->out, seed);
        if (bh_write_file(path, b.p, b.n, 0644) < 0)
            printf("#   cannot write %s\n", path);
        else
            printf("#   saved as %s, play it again with --replay\n", path);
    } else {
        printf("%s", bh_buf_str(&b));
    }
    bh_buf_fini(&b);
}

static void report(struct run *r, struct bh_arena *a, const struct bh_json *scenario,
                   const struct finding *f, const char *name)
{
    struct finding again = *f;
    struct counts n;

    printf("not ok - %s: %s\n", name, f->kind);
    print_indented(f->text);
    fflush(stdout);
    if (r->shrink_tries > 0 && !r->no_fork) {
        struct bh_json *small =
            shrink(a, scenario, f, (unsigned)r->shrink_tries, (unsigned)r->shrink_seconds);
        printf("#   %zu of %zu operations suffice:\n", bh_json_get(small, "ops")->c.n,
               bh_json_get(scenario, "ops")->c.n);
        (void)play_apart(small, ROUND_SECONDS, &n, &again);
        print_indented(again.text);
        scenario = small;
    }
    save(r, scenario, name);
    fflush(stdout);
}

static void add_counts(struct counts *all, const struct counts *n)
{
    uint64_t *a = (uint64_t *)all;
    const uint64_t *b = (const uint64_t *)n;

    for (size_t i = 0; i < sizeof *all / sizeof *a; i++)
        a[i] += b[i];
}

static void play_and_report(struct run *r, struct bh_arena *a, const struct bh_json *scenario,
                            const char *name)
{
    struct finding f = {.kind = ""};
    struct counts n = {0};
    bool fine = r->no_fork ? play(scenario, &n, &f) : play_apart(scenario, ROUND_SECONDS, &n, &f);

    add_counts(&r->n, &n);
    r->passed += fine;
    r->failed += !fine;
    if (!fine)
        report(r, a, scenario, &f, name);
}

/* ---- rounds ---------------------------------------------------------------------------------- */

static int features_of(const char *list, uint32_t *ret, struct bh_err *err)
{
    *ret = 0;
    while (list && *list) {
        size_t n = strcspn(list, ",");
        unsigned i = 0;
        while (i < BH_ARRAY_LEN(feature_names) &&
               (strlen(feature_names[i].name) != n || strncmp(feature_names[i].name, list, n) != 0))
            i++;
        if (i == BH_ARRAY_LEN(feature_names))
            return bh_err_set(err, -EINVAL, "--features: %.*s is none", (int)n, list);
        *ret |= feature_names[i].bit;
        list += n + (list[n] == ',');
    }
    return 0;
}

static void one_round(struct run *r, uint64_t seed, uint32_t features)
{
    struct generate_options o = {.seed = seed,
                                 .nodes = (unsigned)r->nodes,
                                 .ops = (unsigned)r->ops,
                                 .features = features,
                                 .exact = features != 0};
    struct bh_arena a;
    char name[40];

    bh_arena_init(&a, 0);
    const struct bh_json *scenario = generate(&a, &o);
    snprintf(name, sizeof name, "seed-%llu", (unsigned long long)seed);
    if (r->dump)
        save(r, scenario, name);
    else
        play_and_report(r, &a, scenario, name);
    bh_arena_fini(&a);
}

static int replay(struct run *r, const char *path, struct bh_err *err)
{
    struct bh_json *scenario = NULL;
    struct bh_arena a;
    char *text = NULL;
    size_t n = 0;

    bh_arena_init(&a, 0);
    int rc = bh_read_file(path, (size_t)64 << 20, &text, &n);
    if (rc < 0)
        rc = bh_err_set(err, rc, "%s: %s", path, strerror(-rc));
    else
        rc = bh_yaml_parse(&a, text, n, 0, &scenario, err);
    if (rc == 0) {
        const char *slash = strrchr(path, '/');
        play_and_report(r, &a, scenario, slash ? slash + 1 : path);
    }
    free(text);
    bh_arena_fini(&a);
    return rc;
}

static void rounds(struct run *r, uint32_t features)
{
    uint64_t end = r->seconds ? bh_mono_ns() + (uint64_t)r->seconds * 1000000000 : UINT64_MAX;
    uint64_t seed = (uint64_t)r->seed;

    for (int64_t i = 0; (r->rounds ? i < r->rounds : r->seconds != 0) && bh_mono_ns() < end; i++) {
        one_round(r, seed + (uint64_t)i, features);
        if (r->max_findings && r->failed >= r->max_findings)
            break;
    }
}

static void print_counts(const struct counts *n)
{
    printf("# %llu changes, %llu decisions (%llu decided, %llu refused, %llu errors, %llu gated, "
           "%llu preempted)\n",
           (unsigned long long)n->ops, (unsigned long long)n->decisions,
           (unsigned long long)n->decided, (unsigned long long)n->refused,
           (unsigned long long)n->errors, (unsigned long long)n->gated,
           (unsigned long long)n->preemptions);
    printf("# %llu states compared with new engines, %llu forgotten, %llu nodes suit, %llu do not, "
           "%llu events, %llu pods tried again, %llu looked at asleep, %llu writes\n",
           (unsigned long long)n->fresh, (unsigned long long)n->forgets,
           (unsigned long long)n->checked, (unsigned long long)n->complete,
           (unsigned long long)n->events, (unsigned long long)n->woken,
           (unsigned long long)n->slept, (unsigned long long)n->writes);
    printf("# %llu groups tried, %llu placed\n", (unsigned long long)n->groups,
           (unsigned long long)n->groups_placed);
}

static const struct bh_opt_usage usage = {
    .program = "property",
    .synopsis = "[flags] [FILE...]",
    .about =
        "Plays random scenarios (clusters, pods, changes) and checks what must hold for all of "
        "them. Round i has the seed SEED + i; a finding is made as small as may be and printed "
        "as YAML. Files are scenarios that were saved before.",
    .examples = "  property --rounds 500 --seed 1\n"
                "  property --seconds 600 --out /tmp/findings\n"
                "  property --rounds 1 --seed 4711 --no-fork\n"
                "  property tests/property/cases/*.yaml\n",
    .exits = "  0  everything holds\n"
             "  1  something does not\n"
             "  2  wrong usage\n",
};

int main(int argc, char **argv)
{
    struct run r = {.seed = -1, .shrink_tries = 3000, .shrink_seconds = 60, .max_findings = 5};
    struct bh_opt_list files = {0};
    struct bh_err err = {{0}};
    uint32_t features = 0;
    const struct bh_opt table[] = {
        {"seed", 0, BH_OPT_INT, &r.seed, "N", "of the first round (random, printed)"},
        {"rounds", 0, BH_OPT_INT, &r.rounds, "N", "how many"},
        {"seconds", 0, BH_OPT_INT, &r.seconds, "N", "begin no round after so long"},
        {"nodes", 0, BH_OPT_INT, &r.nodes, "N", "nodes of every cluster (some number up to 40)"},
        {"ops", 0, BH_OPT_INT, &r.ops, "N", "changes of every round (some number up to 120)"},
        {"features", 0, BH_OPT_STR, &r.features, "LIST",
         "what objects have (drawn for each round)"},
        {"out", 0, BH_OPT_STR, &r.out, "DIR", "save findings there instead of printing them"},
        {"max-findings", 0, BH_OPT_INT, &r.max_findings, "N", "stop after so many (5; 0 = never)"},
        {"shrink-tries", 0, BH_OPT_INT, &r.shrink_tries, "N",
         "scenarios played per finding (3000)"},
        {"shrink-seconds", 0, BH_OPT_INT, &r.shrink_seconds, "N", "per finding (60)"},
        {"no-wake", 0, BH_OPT_BOOL, &wake_off, NULL, "do not look for lost wake-ups"},
        {"dump", 0, BH_OPT_BOOL, &r.dump, NULL, "print the scenarios, play nothing"},
        {"no-fork", 0, BH_OPT_BOOL, &r.no_fork, NULL, "play in this process, for debuggers"},
        {NULL, 0, BH_OPT_BOOL, NULL, NULL, NULL},
    };

    int rc = bh_opt_parse(table, &usage, argc, argv, &files, &err);
    if (rc == 1)
        return BH_EXIT_OK;
    if (rc == 0)
        rc = features_of(r.features, &features, &err);
    if (rc == 0 && !r.rounds && !r.seconds && !files.n)
        rc = bh_err_set(&err, -EINVAL, "say --rounds, --seconds or a file");
    for (size_t i = 0; rc == 0 && i < files.n; i++)
        rc = replay(&r, files.v[i], &err);
    if (rc < 0) {
        fprintf(stderr, "property: %s\n", err.msg);
        return BH_EXIT_USAGE;
    }
    if (r.seed < 0)
        r.seed = (int64_t)(bh_rand_entropy() >> 20);
    if (r.rounds || r.seconds)
        printf("# --seed %lld\n", (long long)r.seed);
    fflush(stdout);
    rounds(&r, features);
    free(files.v);
    print_counts(&r.n);
    printf("%u passed, %u failed, 0 skipped\n", r.passed, r.failed);
    return r.failed ? BH_EXIT_FAIL : BH_EXIT_OK;
}
