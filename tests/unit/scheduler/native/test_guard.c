/* SPDX-License-Identifier: Apache-2.0
 *
 * Plugins that end the scheduler: what the process after it knows, whom it puts aside, and what the one that
 * is aside still answers.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/data/json.h"
#include "scheduler/native/native_int.h"
#include "tests/unit/harness.h"

#define SHA_A   "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define SHA_B   "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define MARK    "scheduler/plugin.mark"
#define CRASHES "scheduler/plugin.crashes"
#define ASIDE   "it is put aside: it ended the scheduler three times within ten minutes"

static const struct bh_native_file file_a = {
    .file = "/plugins/a.so", .version = "1.2", .license = "MIT", .major = 1, .sha256 = SHA_A};
static const struct bh_native_file file_b = {
    .file = "/plugins/b.so", .version = "1.3", .license = "MIT", .major = 1, .sha256 = SHA_B};

/* ---- a plugin at every extension point, whose code must not run ------------------------------ */

static unsigned ran;

static int32_t create(struct berth_home *h, const struct berth_value *args, void **ret,
                      struct berth_why *why)
{
    (void)h, (void)args, (void)ret, (void)why;
    ran++;
    return BERTH_ERROR;
}
static int32_t pre_enqueue(void *self, struct berth_call *c, struct berth_why *why)
{
    (void)self, (void)c, (void)why;
    ran++;
    return BERTH_UNSCHEDULABLE;
}
static int32_t less(void *self, struct berth_call *c, const struct berth_queued *a,
                    const struct berth_queued *b)
{
    (void)self, (void)c, (void)a, (void)b;
    ran++;
    return 1;
}
static int32_t pre_filter(void *self, struct berth_call *c, const berth_sym **names, uint64_t *n,
                          struct berth_why *why)
{
    (void)names, (void)n;
    return pre_enqueue(self, c, why);
}
static int32_t change_pod(void *self, struct berth_call *c, const struct berth_pod *pod,
                          const struct berth_node *node, int32_t by, struct berth_why *why)
{
    (void)pod, (void)node, (void)by;
    return pre_enqueue(self, c, why);
}
static void *clone_state(void *self, struct berth_call *c, const void *state)
{
    (void)self, (void)c, (void)state;
    ran++;
    return &ran;
}
static int32_t filter(void *self, struct berth_call *c, const struct berth_node *node,
                      struct berth_why *why)
{
    (void)node;
    return pre_enqueue(self, c, why);
}
static int32_t filter_rows(void *self, struct berth_call *c, const uint32_t *rows, uint64_t n,
                           uint64_t *keep, struct berth_why *why)
{
    (void)rows, (void)n, (void)keep;
    return pre_enqueue(self, c, why);
}
static int32_t post_filter(void *self, struct berth_call *c, struct berth_post_filter *ret,
                           struct berth_why *why)
{
    (void)ret;
    return pre_enqueue(self, c, why);
}
static int32_t pre_score(void *self, struct berth_call *c, const uint32_t *rows, uint64_t n,
                         struct berth_why *why)
{
    (void)rows, (void)n;
    return pre_enqueue(self, c, why);
}
static int32_t score(void *self, struct berth_call *c, const struct berth_node *node, int64_t *ret,
                     struct berth_why *why)
{
    (void)node, (void)ret;
    return pre_enqueue(self, c, why);
}
static int32_t score_rows(void *self, struct berth_call *c, const uint32_t *rows, uint64_t n,
                          int64_t *ret, struct berth_why *why)
{
    (void)rows, (void)n, (void)ret;
    return pre_enqueue(self, c, why);
}
static int32_t normalize(void *self, struct berth_call *c, int64_t *scores, uint64_t n,
                         struct berth_why *why)
{
    (void)scores, (void)n;
    return pre_enqueue(self, c, why);
}
static int32_t on_node(void *self, struct berth_call *c, berth_sym node, struct berth_why *why)
{
    (void)node;
    return pre_enqueue(self, c, why);
}
static int32_t permit(void *self, struct berth_call *c, berth_sym node, int64_t *wait_ns,
                      struct berth_why *why)
{
    (void)node, (void)wait_ns;
    return pre_enqueue(self, c, why);
}
static void nothing_on_node(void *self, struct berth_call *c, berth_sym node)
{
    (void)self, (void)c, (void)node;
    ran++;
}

/* For the life of the process, as all. */
static struct bh_native_plugin *adopted(const char *name)
{
    const struct berth_plugin p = {.size = sizeof p,
                                   .name = {name, strlen(name)},
                                   .reads = BERTH_READS_NODE,
                                   .create = create,
                                   .pre_enqueue = pre_enqueue,
                                   .less = less,
                                   .pre_filter = pre_filter,
                                   .change_pod = change_pod,
                                   .clone_state = clone_state,
                                   .filter = filter,
                                   .filter_rows = filter_rows,
                                   .post_filter = post_filter,
                                   .pre_score = pre_score,
                                   .score = score,
                                   .score_rows = score_rows,
                                   .normalize = normalize,
                                   .reserve = on_node,
                                   .unreserve = nothing_on_node,
                                   .permit = permit,
                                   .pre_bind = on_node,
                                   .bind = on_node,
                                   .post_bind = nothing_on_node};
    static struct bh_native_plugin
        *all[64]; /* a plugin stays as long as the program: for the leak checker */
    static unsigned n;
    struct bh_err err = {0};

    CU_ASSERT_FATAL(n < BH_ARRAY_LEN(all));
    CU_ASSERT_EQUAL_FATAL(bh_native_adopt(&p, &all[n], &err), 0);
    return all[n++];
}

/* ---- a runtime directory --------------------------------------------------------------------- */

static char dir[4096], scheduler[4200];

static void new_dir(const char *name)
{
    snprintf(dir, sizeof dir, "%s/%s", bh_test_tmpdir(), name);
    CU_ASSERT_EQUAL_FATAL(mkdir(dir, 0700), 0);
    snprintf(scheduler, sizeof scheduler, "%s/scheduler", dir);
    CU_ASSERT_EQUAL_FATAL(mkdir(scheduler, 0700), 0);
}

static const char *path_of(const char *name)
{
    static char path[4200];

    snprintf(path, sizeof path, "%s/%s", dir, name);
    return path;
}

/* A file's text; "" when it is not there. The caller's. */
static char *text_of(const char *name)
{
    char *text = NULL;
    size_t n = 0;

    return bh_read_file(path_of(name), 1u << 20, &text, &n) < 0 ? bh_strdup("") : text;
}

static void put(const char *name, const void *p, size_t n)
{
    CU_ASSERT_EQUAL_FATAL(bh_write_file(path_of(name), p, n, 0600), 0);
}

static void start_guard(const char *timeout)
{
    struct bh_err err = {0};

    CU_ASSERT_EQUAL_FATAL(bh_native_guard(dir, timeout, &err), 0);
}

/* A number or a text of plugin i in plugins.json; "": it is not there. */
static const char *listed(unsigned i, const char *field)
{
    static struct bh_arena a;
    static char number[32];
    BH_CLEANUP(bh_freep) char *text = text_of(BH_NATIVE_INVENTORY);
    struct bh_json *v = NULL;
    struct bh_err err = {0};

    bh_arena_fini(&a);
    bh_arena_init(&a, 0);
    CU_ASSERT_EQUAL_FATAL(bh_json_parse(&a, text, strlen(text), 0, &v, &err), 0);
    const struct bh_json *p = bh_json_at(bh_json_get(v, "plugins"), i);
    p = p ? bh_json_get(p, field) : NULL;
    if (!p || p->type == BH_JSON_STRING)
        return p ? p->s.p : "";
    snprintf(number, sizeof number, "%.*s", (int)p->s.n, p->s.p);
    return number;
}

/* ---- processes that end ----------------------------------------------------------------------- */

/* A scheduler that ends in this callback of the plugin. Returns by which signal. */
static int ends_in(const char *plugin, enum bh_native_hook hook, const char *timeout)
{
    int status = 0;
    pid_t pid = fork();

    CU_ASSERT_FATAL(pid >= 0);
    if (pid == 0) {
        const struct rlimit no_core = {0, 0};
        struct bh_err err = {0};
        struct bh_native_plugin *np = adopted(plugin);
        (void)setrlimit(RLIMIT_CORE, &no_core);
        if (bh_native_guard(dir, timeout ? timeout : "1h", &err) < 0)
            _exit(1);
        bh_native_guarded(&file_a, false, np);
        bh_native_mark->plugin = np->index;
        bh_native_mark->calls++;
        bh_native_mark->hook = hook;
        while (timeout) /* the watchdog's business */
            pause();
        raise(SIGKILL);
    }
    CU_ASSERT_EQUAL_FATAL(waitpid(pid, &status, 0), pid);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

/* The file of crashes has these plugins and callbacks, in this order. */
static void expect_crashes(const char *want)
{
    BH_CLEANUP(bh_freep) char *text = text_of(CRASHES);
    struct bh_buf got BH_CLEANUP(bh_buf_fini) = {0};
    char *rest = NULL;

    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        int at = 0;
        (void)sscanf(line, "%*d " SHA_A " %n", &at);
        bh_buf_addf(&got, "%s\n", at ? line + at : line);
    }
    CU_ASSERT_STRING_EQUAL(bh_buf_str(&got), want);
}

static void note_aside(void *arg, const char *plugin, const char *aside, bool skips)
{
    if (aside)
        bh_buf_addf(arg, "%s: %s%s\n", plugin, aside, skips ? ", skips" : "");
}

static void test_third_crash(void)
{
    struct bh_buf told BH_CLEANUP(bh_buf_fini) = {0};

    new_dir("third");
    CU_ASSERT_EQUAL(ends_in("Ends", BH_HOOK_FILTER, NULL), SIGKILL);
    CU_ASSERT_EQUAL(ends_in("Ends", BH_HOOK_CHANGE_POD, NULL), SIGKILL);
    CU_ASSERT_EQUAL(ends_in("Ends", BH_HOOK_NONE, NULL), SIGKILL); /* in nobody's code */
    CU_ASSERT_EQUAL(ends_in("Ends", BH_HOOK_CREATE, NULL), SIGKILL);
    start_guard("10s");
    expect_crashes("Ends Filter\nEnds AddPod or RemovePod\nEnds create\n");
    struct bh_native_plugin *ends = adopted("Ends"), *same_name = adopted("Ends"),
                            *other = adopted("Other");
    bh_native_guarded(&file_a, false, ends);
    bh_native_guarded(&file_b, false, same_name); /* another file: maybe the repaired one */
    bh_native_guarded(&file_a, false, other);
    CU_ASSERT_PTR_NOT_NULL_FATAL(ends->aside);
    CU_ASSERT_STRING_EQUAL(ends->aside, ASIDE);
    CU_ASSERT_PTR_NULL(same_name->aside);
    CU_ASSERT_PTR_NULL(other->aside);
    bh_native_each(note_aside, &told);
    CU_ASSERT_STRING_EQUAL(bh_buf_str(&told), "Ends: " ASIDE "\n");

    CU_ASSERT_STRING_EQUAL(listed(0, "name"), "Ends");
    CU_ASSERT_STRING_EQUAL(listed(0, "crashes"), "3");
    CU_ASSERT_STRING_EQUAL(listed(0, "aside"), ASIDE);
    CU_ASSERT_STRING_EQUAL(listed(0, "file"), "/plugins/a.so");
    CU_ASSERT_STRING_EQUAL(listed(0, "abi"), "1.0");
    CU_ASSERT_STRING_EQUAL(listed(0, "mode"), "inProcess");
    CU_ASSERT_STRING_EQUAL(listed(1, "sha256"), SHA_B);
    CU_ASSERT_STRING_EQUAL(listed(1, "crashes"), "0");
    CU_ASSERT_STRING_EQUAL(listed(1, "aside"), "");
    CU_ASSERT_STRING_EQUAL(listed(2, "name"), "Other");
}

/* One that does not return ends the process, and that counts. */
static void test_watchdog(void)
{
    new_dir("watchdog");
    CU_ASSERT_EQUAL(ends_in("Sleeps", BH_HOOK_SCORE, "20ms"), SIGABRT);
    start_guard("10s");
    expect_crashes("Sleeps Score\n");
}

/* Is the plugin put aside for what these lines say? */
static bool aside_for(const char *name, const char *lines)
{
    static unsigned number;
    char folder[32];

    snprintf(folder, sizeof folder, "lines%u", number++);
    new_dir(folder);
    put(CRASHES, lines, strlen(lines));
    start_guard("10s");
    struct bh_native_plugin *np = adopted(name);
    bh_native_guarded(&file_a, true, np);
    CU_ASSERT(!np->aside || np->skips);
    return np->aside != NULL;
}

static void test_which_crashes_count(void)
{
    CU_ASSERT_TRUE(aside_for("P1", "1000 " SHA_A " P1 Filter\n1300 " SHA_A " P1 Filter\n"
                                   "1600 " SHA_A " P1 Filter\n"));
    /* More than ten minutes from the first to the third. */
    CU_ASSERT_FALSE(aside_for("P2", "1000 " SHA_A " P2 Filter\n1300 " SHA_A " P2 Filter\n"
                                    "1601 " SHA_A " P2 Filter\n"));
    CU_ASSERT_STRING_EQUAL(listed(0, "crashes"), "3");
    /* The last three. */
    CU_ASSERT_TRUE(aside_for("P3", "1000 " SHA_A " P3 Filter\n5000 " SHA_A " P3 Filter\n"
                                   "5001 " SHA_A " P3 Filter\n5002 " SHA_A " P3 Filter\n"));
    /* Lines that are none, of another file, of another plugin. */
    CU_ASSERT_FALSE(aside_for("P4", "1000 " SHA_A " P4 Filter\n1000 " SHA_B " P4 Filter\n"
                                    "1000 " SHA_A " P5 Filter\n1000 " SHA_A "\n\nx\n"
                                    "1000 XYZ P4 Filter\n1001 " SHA_A " P4 Filter\n"));
    CU_ASSERT_STRING_EQUAL(listed(0, "crashes"), "2");
    /* A clock that was put back: nobody knows how long it was. */
    CU_ASSERT_FALSE(aside_for("P6", "5000 " SHA_A " P6 Filter\n9000 " SHA_A " P6 Filter\n"
                                    "100 " SHA_A " P6 Filter\n"));
    CU_ASSERT_FALSE(aside_for("P7", "-9223372036854775807 " SHA_A " P7 Filter\n0 " SHA_A
                                    " P7 Filter\n9223372036854775807 " SHA_A " P7 Filter\n"));
}

/* Of a file that grew without end the last lines count. */
static void test_many_crashes(void)
{
    struct bh_buf lines BH_CLEANUP(bh_buf_fini) = {0};

    for (unsigned i = 0; i < 300; i++)
        bh_buf_addf(&lines, "%u " SHA_A " Many Filter\n", 1000 * i);
    CU_ASSERT_FALSE(aside_for("Many", bh_buf_str(&lines)));
    CU_ASSERT_STRING_EQUAL(listed(0, "crashes"), "256");
}

/* The mark that a scheduler leaves which ends in Filter of plugin "Marked". */
static struct bh_native_mark left_mark(void)
{
    static unsigned n;
    char folder[32];
    BH_CLEANUP(bh_freep) char *bytes = NULL;
    struct bh_native_mark m;
    size_t size = 0;

    snprintf(folder, sizeof folder, "mark%u", n++);
    new_dir(folder);
    CU_ASSERT_EQUAL(ends_in("Marked", BH_HOOK_FILTER, NULL), SIGKILL);
    CU_ASSERT_EQUAL_FATAL(bh_read_file(path_of(MARK), sizeof m, &bytes, &size), 0);
    CU_ASSERT_EQUAL_FATAL(size, sizeof m);
    memcpy(&m, bytes, sizeof m);
    return m;
}

/* The mark m counts for what these lines say. */
static void expect_of_mark(const struct bh_native_mark *m, const char *crashes)
{
    put(MARK, m, sizeof *m);
    start_guard("10s");
    expect_crashes(crashes);
    CU_ASSERT_EQUAL(bh_native_mark->hook, BH_HOOK_NONE);
    CU_ASSERT_EQUAL(bh_native_mark->magic, m->magic ? m->magic : bh_native_mark->magic);
}

static void test_marks_that_count_for_no_plugin(void)
{
    struct bh_native_mark m = left_mark();

    expect_of_mark(&m, "Marked Filter\n");
    m = left_mark();
    m.magic = 0; /* of something else */
    expect_of_mark(&m, "");
    m = left_mark();
    m.host_boot++; /* that boot ended by itself */
    expect_of_mark(&m, "");
    m = left_mark();
    m.hook = BH_HOOKS;
    expect_of_mark(&m, "");
    m.hook = UINT32_MAX;
    expect_of_mark(&m, "");
    m = left_mark();
    m.plugin = BH_NATIVE_MARKED;
    expect_of_mark(&m, "");
    m.plugin = UINT32_MAX;
    expect_of_mark(&m, "");
    m.plugin = BH_NATIVE_MARKED - 1; /* none of that number was loaded */
    expect_of_mark(&m, "");
    m = left_mark();
    m.of[m.plugin].name[0] ^= 1;
    expect_of_mark(&m, "");
    m = left_mark();
    m.of[m.plugin].sha256[5] ^= 1;
    expect_of_mark(&m, "");
    m = left_mark();
    m.hook = BH_HOOK_NONE;
    expect_of_mark(&m, "");
    CU_ASSERT_STRING_EQUAL(bh_native_hook_name(BH_HOOK_UNRESERVE), "Unreserve");
    CU_ASSERT_STRING_EQUAL(bh_native_hook_name(BH_HOOKS), "?");
}

static void expect_mark_made_again(void)
{
    struct stat st;

    start_guard("10s");
    expect_crashes("");
    CU_ASSERT(lstat(path_of(MARK), &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
              (st.st_mode & 077) == 0);
}

static void test_a_mark_that_is_not_the_schedulers_own_counts_for_no_plugin(void)
{
    char other[4200];

    (void)left_mark();
    CU_ASSERT_EQUAL_FATAL(truncate(path_of(MARK), 100), 0);
    expect_mark_made_again();
    (void)left_mark();
    CU_ASSERT_EQUAL_FATAL(chmod(path_of(MARK), 0660), 0);
    expect_mark_made_again();
    (void)left_mark();
    snprintf(other, sizeof other, "%s", path_of("other"));
    CU_ASSERT_EQUAL_FATAL(rename(path_of(MARK), other), 0);
    CU_ASSERT_EQUAL_FATAL(symlink(other, path_of(MARK)), 0);
    expect_mark_made_again();
    if (geteuid() != 0)
        return;
    (void)left_mark();
    CU_ASSERT_EQUAL_FATAL(chown(path_of(MARK), 1, 1), 0);
    expect_mark_made_again();
    new_dir("foreign-lines");
    put(CRASHES, "1000 " SHA_A " P Filter\n", strlen("1000 " SHA_A " P Filter\n"));
    CU_ASSERT_EQUAL_FATAL(chown(path_of(CRASHES), 1, 1), 0);
    start_guard("10s");
    struct bh_native_plugin *np = adopted("P");
    bh_native_guarded(&file_a, true, np);
    CU_ASSERT_STRING_EQUAL(listed(0, "crashes"), "0");
}

/* The scheduler runs, its watchdog too; only the next one learns nothing. */
static void test_without_space_the_mark_is_in_memory(void)
{
    struct rlimit limit, none;

    new_dir("full");
    signal(SIGXFSZ, SIG_IGN);
    CU_ASSERT_EQUAL_FATAL(getrlimit(RLIMIT_FSIZE, &limit), 0);
    none = limit;
    none.rlim_cur = 0;
    CU_ASSERT_EQUAL_FATAL(setrlimit(RLIMIT_FSIZE, &none), 0);
    start_guard("10s");
    int ended = ends_in("Stays", BH_HOOK_SCORE, "20ms");
    CU_ASSERT_EQUAL_FATAL(setrlimit(RLIMIT_FSIZE, &limit), 0);
    CU_ASSERT_EQUAL(ended, SIGABRT);
    start_guard("10s");
    expect_crashes("");
}

static void test_no_guard(void)
{
    static const char *const bad[] = {"", "10", "-1s", "0s", "soon"};
    struct bh_err err = {0};

    new_dir("none");
    for (unsigned i = 0; i < BH_ARRAY_LEN(bad); i++) {
        char want[128];
        snprintf(want, sizeof want,
                 "invalid value \"%s\" for --plugin-timeout: a duration like 10s", bad[i]);
        CU_ASSERT_EQUAL(bh_native_guard(dir, bad[i], &err), -EINVAL);
        CU_ASSERT_STRING_EQUAL(err.msg, want);
    }
    CU_ASSERT_EQUAL_FATAL(chmod(scheduler, 0770), 0);
    CU_ASSERT_EQUAL(bh_native_guard(dir, "10s", &err), -EPERM);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.msg, "/scheduler\" has mode 0770"));
    snprintf(dir, sizeof dir, "%s/missing", bh_test_tmpdir());
    CU_ASSERT_EQUAL(bh_native_guard(dir, "10s", &err), -ENOENT);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.msg, "missing/scheduler\": No such file or directory"));
}

/* ---- one that is aside ------------------------------------------------------------------------ */

/* Every callback of one that is aside, in one word each. */
static void ask_all(const struct bh_native_plugin *np, struct bh_buf *said)
{
    const struct berth_plugin *p = &np->p;
    struct bh_native in = {.of = np};
    struct berth_post_filter nominated = {0};
    struct berth_why why = {.size = sizeof why};
    uint64_t keep[2] = {0, 0};
    int64_t scores[65], one = 7, wait = 7;

    memset(scores, 7, sizeof scores);
    bh_native_inside = &in;
    bh_buf_addf(said, "%d %d %d %d %d %d ", p->create(NULL, NULL, NULL, &why),
                p->pre_enqueue(NULL, NULL, &why), p->pre_filter(NULL, NULL, NULL, NULL, &why),
                p->change_pod(NULL, NULL, NULL, NULL, 1, &why), p->filter(NULL, NULL, NULL, &why),
                p->filter_rows(NULL, NULL, NULL, 65, keep, &why));
    bh_buf_addf(said, "post %d ", p->post_filter(NULL, NULL, &nominated, &why));
    bh_buf_addf(said, "score %d %d %d %d ", p->pre_score(NULL, NULL, NULL, 0, &why),
                p->score(NULL, NULL, NULL, &one, &why),
                p->score_rows(NULL, NULL, NULL, 64, scores, &why),
                p->normalize(NULL, NULL, scores + 64, 1, &why));
    bh_buf_addf(said, "bind %d %d %d ", p->reserve(NULL, NULL, 0, &why),
                p->permit(NULL, NULL, 0, &wait, &why), p->pre_bind(NULL, NULL, 0, &why));
    bh_buf_addf(said, "%d %d", p->bind(NULL, NULL, 0, &why), p->less(NULL, NULL, NULL, NULL));
    p->unreserve(NULL, NULL, 0);
    p->post_bind(NULL, NULL, 0);
    bh_native_inside = NULL;
    CU_ASSERT_PTR_NULL(p->clone_state(NULL, NULL, &ran));
    CU_ASSERT(keep[0] == UINT64_MAX && keep[1] == UINT64_MAX);
    for (unsigned i = 0; i < BH_ARRAY_LEN(scores); i++)
        CU_ASSERT_EQUAL(scores[i], 0);
    CU_ASSERT_EQUAL(one, 0);
    CU_ASSERT(why.reason.n == strlen(ASIDE) && memcmp(why.reason.p, ASIDE, why.reason.n) == 0);
}

static void test_stand_ins(void)
{
    for (unsigned skip = 0; skip < 2; skip++) {
        struct bh_buf said BH_CLEANUP(bh_buf_fini) = {0}, want BH_CLEANUP(bh_buf_fini) = {0};
        struct bh_native_plugin *np = adopted("Stands");
        const int32_t all = skip ? BERTH_SUCCESS : BERTH_ERROR;
        bh_native_put_aside(np, skip);
        ran = 0;
        ask_all(np, &said);
        CU_ASSERT_EQUAL(ran, 0);
        bh_buf_addf(&want, "%d %d %d %d %d %d post %d score %d %d %d %d bind %d %d %d %d 0",
                    BERTH_SUCCESS, all, all, all, all, all, skip ? BERTH_UNSCHEDULABLE : all, all,
                    all, all, all, all, all, all, skip ? BERTH_SKIP : all);
        CU_ASSERT_STRING_EQUAL(bh_buf_str(&said), bh_buf_str(&want));
    }
}

/* ---- a plugin in a process of its own --------------------------------------------------------- */

static void note_process(void *arg, const char *plugin, int pid, uint64_t starts, uint64_t calls)
{
    bh_buf_addf(arg, "%s %d %" PRIu64 " %" PRIu64 "\n", plugin, pid, starts, calls);
}

static void test_process_that_ends(void)
{
    struct bh_buf told BH_CLEANUP(bh_buf_fini) = {0};
    struct bh_native_plugin *np = adopted("Apart");
    struct bh_px *process = (struct bh_px *)(void *)&ran; /* asked for nothing but whether it is */

    new_dir("process");
    start_guard("2s");
    CU_ASSERT_EQUAL(bh_native_limit_ns(), INT64_C(2000000000));
    np->process = process;
    np->on_crash_skips = true;
    bh_native_guarded(&file_a, true, np);
    np->pid = 42;
    np->starts = 2;
    np->calls = 99;
    bh_native_process_seen(np);
    BH_CLEANUP(bh_freep) char *seen = text_of(BH_NATIVE_PROCESS ".Apart");
    CU_ASSERT_STRING_EQUAL(seen, "42 2 99\n");
    bh_native_each_process(note_process, &told);
    CU_ASSERT_STRING_EQUAL(bh_buf_str(&told), "Apart 42 2 99\n");
    CU_ASSERT_STRING_EQUAL(listed(0, "mode"), "process");

    bh_buf_reset(&told);
    bh_native_crashed(np, &file_a, BH_HOOK_FILTER);
    bh_native_crashed(np, &file_a, BH_HOOK_NONE);
    bh_native_each_newly_aside(note_aside, &told);
    CU_ASSERT(!np->aside && told.n == 0);
    bh_native_crashed(np, &file_a, BH_HOOK_EPOCH);
    expect_crashes("Apart Filter\nApart between callbacks\nApart epoch\n");
    bh_native_each_newly_aside(note_aside, &told);
    CU_ASSERT_STRING_EQUAL(
        bh_buf_str(&told),
        "Apart: it is put aside: it ended its process three times within ten minutes, skips\n");
    CU_ASSERT_STRING_EQUAL(listed(0, "crashes"), "3");
    CU_ASSERT_STRING_EQUAL(listed(0, "aside"), np->aside);
    bh_buf_reset(&told);
    bh_native_crashed(np, &file_a, BH_HOOK_EPOCH); /* it is known */
    bh_native_each_newly_aside(note_aside, &told);
    CU_ASSERT_EQUAL(told.n, 0);
    np->process = NULL;
}

static void note_measured(void *arg, const char *plugin, int64_t at_ns, uint64_t n_nodes)
{
    bh_buf_addf(arg, "%s %" PRId64 " %" PRIu64 "\n", plugin, at_ns, n_nodes);
}

static void test_measured(void)
{
    struct bh_buf told BH_CLEANUP(bh_buf_fini) = {0};
    struct bh_native_plugin *np = adopted("Measures"), *silent = adopted("Silent");

    new_dir("measured");
    start_guard("10s");
    bh_native_guarded(&file_a, false, np);
    bh_native_guarded(&file_a, false, silent);
    bh_native_measured(np, 5000, 7);
    BH_CLEANUP(bh_freep) char *first = text_of(BH_NATIVE_MEASURED ".Measures");
    CU_ASSERT_STRING_EQUAL(first, "5000 7\n");
    /* The same moment is written once. */
    CU_ASSERT_EQUAL(unlink(path_of(BH_NATIVE_MEASURED ".Measures")), 0);
    bh_native_measured(np, 5000, 7);
    CU_ASSERT_EQUAL(access(path_of(BH_NATIVE_MEASURED ".Measures"), F_OK), -1);
    bh_native_measured(np, 6000, 8);
    BH_CLEANUP(bh_freep) char *later = text_of(BH_NATIVE_MEASURED ".Measures");
    CU_ASSERT_STRING_EQUAL(later, "6000 8\n");
    bh_native_each_measured(note_measured, &told);
    CU_ASSERT_STRING_EQUAL(bh_buf_str(&told), "Measures 6000 8\n");
}

/* The watchdog is a process's first: later ones are forked from one that has it, but not its thread. */
BH_TESTS("scheduler/native/guard",
         {"without space the mark is in memory", test_without_space_the_mark_is_in_memory},
         {"a callback that does not return", test_watchdog},
         {"the third crash within ten minutes", test_third_crash},
         {"which crashes count", test_which_crashes_count},
         {"the last of many crashes", test_many_crashes},
         {"marks that count for no plugin", test_marks_that_count_for_no_plugin},
         {"a mark that is not the scheduler's own counts for no plugin",
          test_a_mark_that_is_not_the_schedulers_own_counts_for_no_plugin},
         {"a guard that cannot be", test_no_guard}, {"what stands in", test_stand_ins},
         {"a process that ends", test_process_that_ends},
         {"when nodes were measured", test_measured})
