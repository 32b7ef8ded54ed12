/* SPDX-License-Identifier: Apache-2.0
 *
 * What guests may call, function by function: WASI's and the log's answers, and what addresses that are none,
 * files that there are not and texts that would be another line of the log come to.
 */
#include <fcntl.h>
#include <unistd.h>

#include "common/wasm/wasm_int.h"
#include "scheduler/wasm/guest_int.h"
#include "tests/unit/harness.h"

#define PAGE  65536u
#define BADF  8u
#define FAULT 21u
#define INVAL 28u
#define NOSYS 52u

/* A module that has memory, and nothing else. */
struct world {
    struct bh_wasm_module *m;
    struct bh_wasm *w;
    struct bh_guest_plugin plugin;
    struct bh_guest g;
    struct bh_guest_run run;
};

static void begin_with(struct world *t, uint8_t pages)
{
    const uint8_t bytes[] = {0, 'a', 's', 'm', 1, 0, 0, 0, 5, 4, 1, 0, pages | 0x80, pages >> 7};
    static const char *argv[] = {"guest", "-x"};
    static char name[] = "Guest";
    const struct bh_wasm_limits limits = {
        .pages = pages, .elements = 1, .depth = 10, .slots = 1000};
    struct bh_err err = {0};

    memset(t, 0, sizeof *t);
    CU_ASSERT_EQUAL_FATAL(bh_wasm_load(bytes, sizeof bytes, &t->m, &err), 0);
    CU_ASSERT_EQUAL_FATAL(bh_wasm_new(t->m, NULL, 0, NULL, &limits, &t->w, &err), 0);
    t->plugin.name = name;
    t->g = (struct bh_guest){.of = &t->plugin, .args = {.argv = argv, .argc = 2, .severity = 1}};
    t->run = (struct bh_guest_run){.g = &t->g, .w = t->w};
    bh_arena_init(&t->run.arena, 1u << 20);
}

static void begin(struct world *t)
{
    begin_with(t, 1);
}

static void end(struct world *t)
{
    bh_buf_fini(&t->run.out);
    bh_buf_fini(&t->run.reason);
    bh_buf_fini(&t->run.node_names);
    bh_buf_fini(&t->run.nominated);
    bh_buf_fini(&t->run.events);
    bh_arena_fini(&t->run.arena);
    bh_wasm_free(t->w);
    bh_wasm_unload(t->m);
}

static char *at(struct world *t, uint32_t address)
{
    return bh_wasm_memory(t->w, address, 1);
}

static uint32_t word(struct world *t, uint32_t address)
{
    uint32_t v;

    memcpy(&v, at(t, address), sizeof v);
    return v;
}

static const struct bh_wasm_host *function(const char *name)
{
    for (size_t i = 0; i < bh_guest_n_wasi; i++)
        if (bh_streq(bh_guest_wasi[i].name, name))
            return &bh_guest_wasi[i];
    for (size_t i = 0; i < bh_guest_n_host; i++)
        if (bh_streq(bh_guest_host[i].name, name))
            return &bh_guest_host[i];
    CU_FAIL_FATAL("no such function");
    return NULL;
}

/* Its result; UINT64_MAX: it ended the hook. */
static uint64_t ask(struct world *t, const char *name, uint64_t a, uint64_t b, uint64_t c,
                    uint64_t d)
{
    uint64_t v[9] = {a, b, c, d};

    return function(name)->call(t->w, &t->run, v) ? v[0] : UINT64_MAX;
}

static void put_iov(struct world *t, uint32_t address, uint32_t p, uint32_t n)
{
    memcpy(at(t, address), &p, 4);
    memcpy(at(t, address + 4), &n, 4);
}

/* ---- WASI ------------------------------------------------------------------------------------- */

static void test_output(void)
{
    struct world t;

    begin(&t);
    memcpy(at(&t, 100), "hello world", 11);
    put_iov(&t, 0, 100, 6);
    put_iov(&t, 8, 106, 5);
    CU_ASSERT_EQUAL(ask(&t, "fd_write", 1, 0, 2, 40), 0);
    CU_ASSERT_EQUAL(word(&t, 40), 11);
    CU_ASSERT_STRING_EQUAL(bh_buf_str(&t.run.out), "hello world");
    CU_ASSERT_EQUAL(ask(&t, "fd_write", 2, 0, 1, 40), 0);
    CU_ASSERT_EQUAL(t.run.out.n, 17);
    CU_ASSERT_EQUAL(ask(&t, "fd_write", 0, 0, 1, 40), BADF);
    CU_ASSERT_EQUAL(ask(&t, "fd_write", 3, 0, 1, 40), BADF);
    /* Lists, texts and places for the answer beyond the memory. */
    CU_ASSERT_EQUAL(ask(&t, "fd_write", 1, PAGE - 8, 2, 40), FAULT);
    CU_ASSERT_EQUAL(ask(&t, "fd_write", 1, 0, 0x20000001, 40), FAULT); /* 8 bytes each: 8 */
    put_iov(&t, 0, PAGE - 4, 5);
    CU_ASSERT_EQUAL(ask(&t, "fd_write", 1, 0, 1, 40), FAULT);
    put_iov(&t, 0, 100, 1);
    CU_ASSERT_EQUAL(ask(&t, "fd_write", 1, 0, 1, PAGE - 3), FAULT);
    /* Of very much the beginning is kept; the guest is told that all was written. */
    put_iov(&t, 0, 0, PAGE);
    for (unsigned i = 0; i < 3; i++)
        CU_ASSERT_EQUAL(ask(&t, "fd_write", 1, 0, 1, 40), 0);
    CU_ASSERT_EQUAL(word(&t, 40), PAGE);
    CU_ASSERT_EQUAL(t.run.out.n, 64 << 10);
    end(&t);
}

static void test_arguments(void)
{
    struct world t;

    begin(&t);
    CU_ASSERT_EQUAL(ask(&t, "args_sizes_get", 0, 4, 0, 0), 0);
    CU_ASSERT(word(&t, 0) == 2 && word(&t, 4) == sizeof "guest" + sizeof "-x");
    CU_ASSERT_EQUAL(ask(&t, "args_get", 0, 100, 0, 0), 0);
    CU_ASSERT(word(&t, 0) == 100 && word(&t, 4) == 106);
    CU_ASSERT_STRING_EQUAL(at(&t, 100), "guest");
    CU_ASSERT_STRING_EQUAL(at(&t, 106), "-x");
    CU_ASSERT_EQUAL(ask(&t, "args_sizes_get", PAGE - 3, 4, 0, 0), FAULT);
    CU_ASSERT_EQUAL(ask(&t, "args_sizes_get", 0, UINT32_MAX, 0, 0), FAULT);
    CU_ASSERT_EQUAL(ask(&t, "args_get", 0, PAGE - 7, 0, 0), FAULT); /* the second one */
    CU_ASSERT_EQUAL(ask(&t, "args_get", PAGE - 4, 100, 0, 0), FAULT);
    memset(at(&t, 0), 0xff, 8);
    CU_ASSERT_EQUAL(ask(&t, "environ_sizes_get", 0, 4, 0, 0), 0);
    CU_ASSERT(word(&t, 0) == 0 && word(&t, 4) == 0); /* nothing of the scheduler's */
    CU_ASSERT_EQUAL(ask(&t, "environ_sizes_get", 0, PAGE, 0, 0), FAULT);
    CU_ASSERT_EQUAL(ask(&t, "environ_get", 0, 0, 0, 0), 0);
    end(&t);
}

static void test_clocks_and_random(void)
{
    struct world t;
    int64_t ns, before = bh_wall_ns();

    begin(&t);
    CU_ASSERT_EQUAL(ask(&t, "clock_time_get", 0, 1, 8, 0), 0);
    memcpy(&ns, at(&t, 8), sizeof ns);
    CU_ASSERT(ns >= before);
    CU_ASSERT_EQUAL(ask(&t, "clock_time_get", 1, 1, 16, 0), 0);
    CU_ASSERT(word(&t, 16) || word(&t, 20));
    CU_ASSERT_EQUAL(ask(&t, "clock_time_get", 2, 1, 8, 0), INVAL);
    CU_ASSERT_EQUAL(ask(&t, "clock_time_get", 0, 1, PAGE - 7, 0), FAULT);
    CU_ASSERT_EQUAL(ask(&t, "random_get", 64, 64, 0, 0), 0);
    uint32_t any = 0;
    for (uint32_t i = 64; i < 128; i += 4)
        any |= word(&t, i);
    CU_ASSERT(any && !word(&t, 128));
    CU_ASSERT_EQUAL(ask(&t, "random_get", PAGE - 1, 2, 0, 0), FAULT);
    CU_ASSERT_EQUAL(ask(&t, "random_get", 0, UINT32_MAX, 0, 0), FAULT);
    end(&t);
}

/* There are no files, whatever their number; the three that a process is born with are characters. */
static void test_no_files(void)
{
    static const char *const none[] =
        {"fd_fdstat_set_flags", "fd_prestat_get", "fd_read", "fd_pread", "fd_pwrite",
         "fd_readdir",          "fd_close",       "fd_seek", "fd_sync",  "fd_filestat_get",
         "sock_accept",         "sock_shutdown"},
                             *const unknown[] = {"poll_oneoff", "path_open",    "path_unlink_file",
                                                 "path_rename", "path_symlink", "path_readlink"};
    struct world t;

    begin(&t);
    for (size_t i = 0; i < BH_ARRAY_LEN(none); i++)
        CU_ASSERT_EQUAL(ask(&t, none[i], 3, 0, 0, 0), BADF);
    for (size_t i = 0; i < BH_ARRAY_LEN(unknown); i++)
        CU_ASSERT_EQUAL(ask(&t, unknown[i], 3, 0, 0, 0), NOSYS);
    CU_ASSERT_EQUAL(ask(&t, "sched_yield", 0, 0, 0, 0), 0);
    for (uint32_t fd = 0; fd < 3; fd++) {
        memset(at(&t, 0), 0xff, 24);
        CU_ASSERT_EQUAL(ask(&t, "fd_fdstat_get", fd, 0, 0, 0), 0);
        CU_ASSERT(word(&t, 0) == 2 && word(&t, 8) == 0 && word(&t, 20) == 0);
    }
    CU_ASSERT_EQUAL(ask(&t, "fd_fdstat_get", 3, 0, 0, 0), BADF);
    CU_ASSERT_EQUAL(ask(&t, "fd_fdstat_get", 1, PAGE - 23, 0, 0), FAULT);
    end(&t);
}

/* What the function said before it ended the hook. */
static void expect_trap(struct world *t, const char *want)
{
    CU_ASSERT_PTR_NOT_NULL(strstr(bh_buf_str(&t->w->why), want));
    if (!strstr(bh_buf_str(&t->w->why), want))
        fprintf(stderr, "  have %s, want %s\n", bh_buf_str(&t->w->why), want);
    bh_buf_reset(&t->w->why);
}

static void test_exit(void)
{
    struct world t;

    begin(&t);
    CU_ASSERT_EQUAL(ask(&t, "proc_exit", 7, 0, 0, 0), UINT64_MAX);
    CU_ASSERT(t.run.exited && t.run.exit_code == 7);
    expect_trap(&t, "module closed with exit_code(7)");
    end(&t);
}

/* ---- the scheduler's -------------------------------------------------------------------------- */

/* Answers of a guest: kept, or an address beyond its memory ends the hook. */
static void test_answers(void)
{
    static const struct {
        const char *function, *trap;
    } rows[] = {
        {"result.cluster_events", "out of memory reading clusterEvents"},
        {"result.node_names", "out of memory reading nodeNames"},
        {"result.nominated_node_name", "out of memory reading nominatedNodeName"},
        {"result.normalized_score_list", "out of memory reading normalizedScoreList"},
        {"handle.eventrecorder.eventf", "out of memory reading event"},
        {"handle.get_waiting_pod", "out of memory reading uid"},
        {"nodeImageStates", "out of memory reading nodeName"},
        {"node", "out of memory reading nodeName"},
    };
    struct world t;

    begin(&t);
    for (size_t i = 0; i < BH_ARRAY_LEN(rows); i++) {
        CU_ASSERT_EQUAL(ask(&t, rows[i].function, PAGE - 1, 2, 0, 0), UINT64_MAX);
        expect_trap(&t, rows[i].trap);
    }
    memcpy(at(&t, 0), "because", 7);
    (void)ask(&t, "result.status_reason", 0, 7, 0, 0);
    CU_ASSERT_STRING_EQUAL(bh_buf_str(&t.run.reason), "because");
    (void)ask(&t, "result.status_reason", PAGE - 1, 2, 0, 0); /* the original goes on, too */
    CU_ASSERT_STRING_EQUAL(bh_buf_str(&t.run.reason), "BUG: out of memory reading message");
    memset(at(&t, 0), 'x', 2000); /* of a long one the beginning, in whole characters */
    memcpy(at(&t, 1023), "\xc3\xa9", 2);
    (void)ask(&t, "result.status_reason", 0, 2000, 0, 0);
    CU_ASSERT(t.run.reason.n == 1023 && !strchr(bh_buf_str(&t.run.reason), '\xc3'));
    memset(at(&t, 0), '\x80', 2000); /* not one */
    (void)ask(&t, "result.status_reason", 0, 2000, 0, 0);
    CU_ASSERT_EQUAL(t.run.reason.n, 0);
    (void)ask(&t, "result.node_names", 0, 0, 0, 0);
    CU_ASSERT_EQUAL(t.run.node_names.n, 0);
    memcpy(at(&t, 0), "{\"a\":1}{", 8);
    CU_ASSERT_NOT_EQUAL(ask(&t, "result.normalized_score_list", 0, 7, 0, 0), UINT64_MAX);
    CU_ASSERT_EQUAL(bh_json_get_i64(t.run.normalized, "a", 0), 1);
    CU_ASSERT_EQUAL(ask(&t, "result.normalized_score_list", 0, 8, 0, 0), UINT64_MAX);
    expect_trap(&t, "normalized scores: ");
    CU_ASSERT_PTR_NULL(t.run.normalized);
    end(&t);
}

/* Of each answer so many bytes, whatever the guest's memory holds. */
static void test_answers_are_bounded(void)
{
    static const struct {
        const char *function;
        uint32_t most;
        const char *trap;
    } rows[] = {
        {"result.cluster_events", 4096, "clusterEvents has 4097 bytes, at most 4096 are allowed"},
        {"result.nominated_node_name", 253, "nominatedNodeName has 254 bytes, at most 253"},
        {"result.node_names", 8 << 20, "nodeNames has 8388609 bytes, at most 8388608"},
        {"result.normalized_score_list", 0, NULL},
        {"handle.eventrecorder.eventf", 0, NULL},
    };
    struct world t;

    begin_with(&t, 255);
    memset(at(&t, 0), '[', 9 << 20);
    for (size_t i = 0; i < BH_ARRAY_LEN(rows); i++) {
        if (!rows[i].trap) { /* JSON that would be larger than its arena */
            CU_ASSERT_EQUAL(ask(&t, rows[i].function, 0, 8 << 20, 0, 0), UINT64_MAX);
            expect_trap(&t, "object is too large");
            continue;
        }
        CU_ASSERT_NOT_EQUAL(ask(&t, rows[i].function, 0, rows[i].most, 0, 0), UINT64_MAX);
        CU_ASSERT_EQUAL(ask(&t, rows[i].function, 0, rows[i].most + 1, 0, 0), UINT64_MAX);
        expect_trap(&t, rows[i].trap);
    }
    CU_ASSERT(t.run.nominated.n == 253 && t.run.events.n == 4096);
    end(&t);
}

/* Readers tell the length; what does not fit is not written, what fits goes to memory or nowhere. */
static void test_readers(void)
{
    struct world t;

    begin(&t);
    t.g.args.config = "abc";
    memset(at(&t, 0), '-', 8);
    CU_ASSERT_EQUAL(ask(&t, "get_config", 0, 2, 0, 0), 3);
    CU_ASSERT_EQUAL(memcmp(at(&t, 0), "--------", 8), 0);
    CU_ASSERT_EQUAL(ask(&t, "get_config", 0, 8, 0, 0), 3);
    CU_ASSERT_EQUAL(memcmp(at(&t, 0), "abc-----", 8), 0);
    CU_ASSERT_EQUAL(ask(&t, "get_config", PAGE - 2, 3, 0, 0), 3);
    t.g.args.config = NULL;
    CU_ASSERT_EQUAL(ask(&t, "get_config", 0, 8, 0, 0), 0);
    /* Outside of a pod's hooks there is none, and no node. */
    CU_ASSERT_EQUAL(ask(&t, "currentPod", 0, 100, 0, 0), 0);
    CU_ASSERT_EQUAL(ask(&t, "targetPod", 0, 100, 0, 0), 0);
    CU_ASSERT_EQUAL(ask(&t, "currentNodeName", 0, 100, 0, 0), 0);
    CU_ASSERT_EQUAL(ask(&t, "filteredNodeList", 0, 2, 0, 0), 2);
    CU_ASSERT_EQUAL(memcmp(at(&t, 0), "[]", 2), 0);
    CU_ASSERT_EQUAL(ask(&t, "nodeToStatusMap", 0, 2, 0, 0), 2);
    CU_ASSERT_EQUAL(ask(&t, "nodeScoreList", 0, 2, 0, 0), 2);
    CU_ASSERT_EQUAL(memcmp(at(&t, 0), "{}", 2), 0);
    CU_ASSERT_EQUAL(ask(&t, "nodeList", 0, 100, 0, 0), 8);
    CU_ASSERT_EQUAL(ask(&t, "nodeList", PAGE - 1, 100, 0, 0), UINT64_MAX);
    expect_trap(&t, "out of memory");
    CU_ASSERT_EQUAL(ask(&t, "node", 0, 2, 16, 100), 0);
    CU_ASSERT_EQUAL(ask(&t, "nodeImageStates", 0, 1, 16, 8), 4);
    CU_ASSERT_EQUAL(memcmp(at(&t, 16), "null", 4), 0);
    /* Nobody waits: no pod, and none that was rejected. */
    memset(at(&t, 32), 0xff, 8);
    (void)ask(&t, "handle.reject_waiting_pod", 0, 1, 32, 0);
    CU_ASSERT(word(&t, 32) == 0 && word(&t, 36) == 0);
    memset(at(&t, 32), 0xff, 8);
    (void)ask(&t, "handle.get_waiting_pod", 0, 1, 32, 0);
    CU_ASSERT(word(&t, 32) == 0 && word(&t, 36) == 0);
    CU_ASSERT_EQUAL(ask(&t, "handle.get_waiting_pod", 0, 1, PAGE - 7, 0), UINT64_MAX);
    expect_trap(&t, "out of memory");
    end(&t);
}

/* What logs while standard error is a file. */
static char *logged(struct world *t, const char *function_name, const uint64_t *args)
{
    char path[4200], *text = NULL;
    uint64_t v[9] = {0};
    size_t n = 0;

    memcpy(v, args, 5 * sizeof *v);
    snprintf(path, sizeof path, "%s/log", bh_test_tmpdir());
    int was = dup(2), fd = open(path, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
    CU_ASSERT_FATAL(was >= 0 && fd >= 0 && dup2(fd, 2) == 2);
    CU_ASSERT(function(function_name)->call(t->w, &t->run, v));
    fflush(stderr);
    CU_ASSERT_FATAL(dup2(was, 2) == 2);
    close(was);
    close(fd);
    CU_ASSERT_EQUAL_FATAL(bh_read_file(path, 1u << 20, &text, &n), 0);
    return text;
}

static void test_log(void)
{
    static const char words[] = "key\0value\0\0ev il=\"\nE0101 forged\0x\0lone";
    struct world t;

    begin(&t);
    memcpy(at(&t, 0), "a line\n\n", 8);
    memcpy(at(&t, 100), words, sizeof words);
    CU_ASSERT_EQUAL(ask(&t, "severity", 0, 0, 0, 0), 1);
    BH_CLEANUP(bh_freep)
    char *line = logged(&t, "logs", (uint64_t[]){2, 0, 8, 100, sizeof words});
    CU_ASSERT_EQUAL(*line, 'E');
    CU_ASSERT_PTR_NOT_NULL(
        strstr(line, "] \"a line\" plugin=\"Guest\" key=\"value\" ev_il___E0101_forged=\"x\"\n"));
    CU_ASSERT_PTR_EQUAL(strchr(line, '\n') + 1, line + strlen(line)); /* one line */
    BH_CLEANUP(bh_freep)
    char *warning = logged(&t, "log", (uint64_t[]){1, 0, 6, 0, 0});
    CU_ASSERT(*warning == 'W' && strstr(warning, "\"a line\" plugin=\"Guest\"\n"));
    BH_CLEANUP(bh_freep)
    char *below = logged(&t, "log", (uint64_t[]){0, 0, 6, 0, 0});
    CU_ASSERT_STRING_EQUAL(below, "");
    BH_CLEANUP(bh_freep)
    char *nowhere = logged(&t, "log", (uint64_t[]){2, PAGE - 1, 6, 0, 0});
    CU_ASSERT_STRING_EQUAL(nowhere, "");
    /* More words than a line has room for. */
    for (unsigned i = 0; i < 200; i++)
        memcpy(at(&t, 1000 + 2 * i), i % 2 ? "v" : "k", 2);
    BH_CLEANUP(bh_freep)
    char *longest = logged(&t, "logs", (uint64_t[]){2, 0, 6, 1000, 400});
    unsigned n = 0;
    for (const char *p = longest; (p = strstr(p, " k=\"v\"")); p++)
        n++;
    CU_ASSERT_EQUAL(n, 32);
    end(&t);
}

/* A line has so many bytes, and a second so many lines. */
static void test_log_is_bounded(void)
{
    struct world t;
    char *dropped[2] = {NULL};
    uint64_t second;

    begin_with(&t, 255);
    memset(at(&t, 0), 'm', 8 << 20);
    BH_CLEANUP(bh_freep)
    char *line = logged(&t, "logs", (uint64_t[]){2, 0, 4 << 20, 4 << 20, 4 << 20});
    CU_ASSERT(strlen(line) < 5000);
    do { /* until both are of one second */
        free(dropped[0]);
        free(dropped[1]);
        second = t.plugin.logs_second = bh_mono_ns() / 1000000000;
        t.plugin.n_logs = 256;
        for (unsigned i = 0; i < 2; i++)
            dropped[i] = logged(&t, "log", (uint64_t[]){2, 0, 6, 0, 0});
    } while (second != bh_mono_ns() / 1000000000);
    CU_ASSERT(strstr(dropped[0], "Lines of a guest are dropped") && !strstr(dropped[0], "mmmmmm"));
    CU_ASSERT_STRING_EQUAL(dropped[1], "");
    t.plugin.logs_second = UINT64_MAX; /* another second */
    BH_CLEANUP(bh_freep)
    char *again = logged(&t, "log", (uint64_t[]){2, 0, 6, 0, 0});
    CU_ASSERT_PTR_NOT_NULL(strstr(again, "mmmmmm"));
    free(dropped[0]);
    free(dropped[1]);
    end(&t);
}

/* ---- events ----------------------------------------------------------------------------------- */

#define NAME_63 "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn"
#define EVENT(about, type, reason, action)                                                         \
    "{\"RegardingReference\":" about ",\"Eventtype\":\"" type "\",\"Reason\":\"" reason            \
    "\",\"Action\":\"" action "\",\"Note\":\"a note\"}"
#define POD "{\"Kind\":\"Pod\",\"Namespace\":\"ns\",\"Name\":\"p\",\"UID\":\"u\"}"

/* What an API server would not take is not written, and the log says why. */
static void test_events(void)
{
    static const struct {
        const char *event, *says;
    } rows[] = {
        {EVENT(POD, "Normal", "R", "A"), "\"Event of a guest\" plugin=\"Guest\" object=\"p\""},
        {EVENT("{\"Kind\":\"Node\",\"Name\":\"n\"}", "Warning", "R", "A"), "object=\"n\""},
        {EVENT("{\"Kind\":\"Secret\",\"Name\":\"s\"}", "Normal", "R", "A"),
         "RegardingReference.Kind: Pod or Node is needed"},
        {EVENT("7", "Normal", "R", "A"), "RegardingReference.Kind: Pod or Node is needed"},
        {EVENT("{\"Kind\":\"Pod\"}", "Normal", "R", "A"),
         "RegardingReference.Name: 1 to 253 bytes are needed"},
        {EVENT("{\"Kind\":\"Pod\",\"Name\":\"" NAME_63 NAME_63 NAME_63 NAME_63 "xx\"}", "Normal",
               "R", "A"),
         "RegardingReference.Name: 1 to 253 bytes are needed"},
        {EVENT("{\"Kind\":\"Pod\",\"Name\":\"p\",\"Namespace\":\"" NAME_63 NAME_63 NAME_63 NAME_63
               "xx\"}",
               "Normal", "R", "A"),
         "RegardingReference: 253 bytes at most are a name"},
        {EVENT(POD, "Odd", "R", "A"), "Eventtype: Normal or Warning is needed"},
        {EVENT(POD, "Normal", "", "A"), "Reason: 1 to 128 bytes are needed"},
        {EVENT(POD, "Normal", "R", NAME_63 NAME_63 "xxx"), "Action: 1 to 128 bytes are needed"},
    };
    struct world t;

    begin(&t);
    for (size_t i = 0; i < BH_ARRAY_LEN(rows); i++) {
        const size_t n = strlen(rows[i].event);
        memcpy(at(&t, 0), rows[i].event, n);
        BH_CLEANUP(bh_freep)
        char *line = logged(&t, "handle.eventrecorder.eventf", (uint64_t[]){0, n, 0, 0, 0});
        CU_ASSERT_PTR_NOT_NULL(strstr(line, rows[i].says));
        if (!strstr(line, rows[i].says))
            fprintf(stderr, "  %s: %s\n", rows[i].event, line);
    }
    memcpy(at(&t, 0), "[7]{", 4);
    CU_ASSERT_EQUAL(ask(&t, "handle.eventrecorder.eventf", 0, 3, 0, 0), UINT64_MAX);
    expect_trap(&t, "event: an object is needed");
    CU_ASSERT_EQUAL(ask(&t, "handle.eventrecorder.eventf", 3, 1, 0, 0), UINT64_MAX);
    expect_trap(&t, "event: ");
    CU_ASSERT_EQUAL(t.plugin.events, BH_ARRAY_LEN(rows)); /* those that are none count for none */
    end(&t);
}

static void hear(void *arg, const struct bh_guest_event *e)
{
    snprintf(arg, 2000, "%s", e->note ? e->note : "(null)");
}

/* Notes of every length, up to one that fills all that is there for an event: the first 1,024 bytes are heard. */
static void test_long_notes(void)
{
    static const char head[] =
        "{\"RegardingReference\":" POD
        ",\"Eventtype\":\"Normal\",\"Reason\":\"R\",\"Action\":\"A\",\"Note\":\"";
    const struct bh_wasm_limits limits = {.pages = 32, .elements = 1, .depth = 10, .slots = 1000};
    static const uint8_t bytes[] = {0, 'a', 's', 'm', 1, 0, 0, 0, 5, 3, 1, 0, 32};
    const size_t n_head = sizeof head - 1, most = (1u << 20) - n_head - 2;
    struct bh_err err = {0};
    char heard[2000];
    size_t n_heard = 0;
    struct world t;

    begin(&t);
    bh_wasm_free(t.w);
    bh_wasm_unload(t.m);
    CU_ASSERT_EQUAL_FATAL(bh_wasm_load(bytes, sizeof bytes, &t.m, &err), 0);
    CU_ASSERT_EQUAL_FATAL(bh_wasm_new(t.m, NULL, 0, NULL, &limits, &t.w, &err), 0);
    t.run.w = t.w;
    bh_guest_set_events(hear, heard);
    char *p = bh_wasm_memory(t.w, 0, 32 * PAGE);
    memset(p, 'n', 32 * PAGE);
    memcpy(p, head, n_head);
    for (size_t n = most - 4096; n <= most; n += 128) {
        *heard = '\0';
        t.plugin.events_ns = 0; /* as if none had been recorded */
        memcpy(p + n_head + n, "\"}", 2);
        const bool good =
            ask(&t, "handle.eventrecorder.eventf", 0, n_head + n + 2, 0, 0) != UINT64_MAX;
        memset(p + n_head + n, 'n', 2);
        CU_ASSERT_EQUAL(strlen(heard), good ? 1024 : 0);
        n_heard += good;
        bh_buf_reset(&t.w->why);
    }
    CU_ASSERT(n_heard > 10); /* and above a length it is too large */
    CU_ASSERT(n_heard < 33);
    bh_guest_set_events(NULL, NULL);
    end(&t);
}

BH_TESTS("scheduler/wasm/host", {"what it writes", test_output},
         {"arguments and environment", test_arguments},
         {"clocks and random numbers", test_clocks_and_random}, {"no files", test_no_files},
         {"an exit", test_exit}, {"answers", test_answers}, {"readers", test_readers},
         {"the log", test_log}, {"answers are bounded", test_answers_are_bounded},
         {"the log is bounded", test_log_is_bounded}, {"events", test_events},
         {"long notes", test_long_notes})
