/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/simulator/server/test_history.c - the history file: what is in it, and a server made of it
 */
#include "simulator/server/history.h"
#include "tests/unit/simulator/sim_test.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

struct sandbox {
    char path[64];
    struct bh_sim_options o;
};

static void sandbox_init(struct sandbox *b)
{
    *b = (struct sandbox){.path = "/tmp/berth-history-XXXXXX"};
    int fd = mkstemp(b->path);
    CU_ASSERT_FATAL(fd >= 0);
    close(fd);
    unlink(b->path);
    b->o = (struct bh_sim_options){
        .no_controllers = true, .first_revision = 100, .history_file = b->path};
}

static const struct bh_json *line(struct fixture *f, const char *path, unsigned i)
{
    char *text, *p;
    size_t n;
    CU_ASSERT_FATAL(bh_read_file(path, (size_t)1 << 20, &text, &n) == 0);
    p = text;
    for (; i && *p; i--)
        p = strchrnul(p, '\n') + 1;
    char *copy = bh_arena_strndup(&f->a, p, strcspn(p, "\n"));
    free(text);
    return *copy ? parse(f, copy) : NULL;
}

static void append(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_APPEND);
    CU_ASSERT_FATAL(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    close(fd);
}

static void test_a_line_a_change(void)
{
    struct sandbox b;
    struct fixture f;
    unsigned n = 0;
    const struct bh_json *v = NULL, *last = NULL;
    int64_t rv = 0;

    sandbox_init(&b);
    fixture_init(&f, &b.o, false);
    CU_ASSERT_EQUAL(create_pod(&f, "p"), 0);
    CU_ASSERT_EQUAL(bh_sim_bind(f.s, "default", "p", NULL, "n1", NULL, NULL, &f.e), 0);
    CU_ASSERT_EQUAL(bh_sim_delete(f.s, type_of("pods"), "default", "p",
                                  &(struct bh_sim_delete_options){.grace_s = 0}, &f.e),
                    0);
    for (; (v = line(&f, b.path, n)); n++) {
        CU_ASSERT(!rv || bh_json_get_i64(v, "rv", 0) == rv + 1);
        rv = bh_json_get_i64(v, "rv", 0);
        CU_ASSERT(bh_json_get_i64(v, "boot_ns", 0) > 0);
        last = v;
    }
    CU_ASSERT_EQUAL(rv, (int64_t)bh_sim_revision(f.s));
    CU_ASSERT(bh_streq(bh_json_get_str(last, "change"), "DELETED"));
    CU_ASSERT(bh_streq(bh_json_get_str(bh_json_path(last, "object.spec"), "nodeName"), "n1"));
    v = line(&f, b.path, n - 2);
    CU_ASSERT(bh_streq(bh_json_get_str(v, "change"), "MODIFIED"));
    fixture_fini(&f);
    unlink(b.path);
}

static void test_a_server_made_of_it(void)
{
    struct sandbox b;
    struct fixture f;
    char uid[40];

    sandbox_init(&b);
    fixture_init(&f, &b.o, false);
    CU_ASSERT_EQUAL(create_pod(&f, "stays"), 0);
    CU_ASSERT_EQUAL(create_pod(&f, "goes"), 0);
    CU_ASSERT_EQUAL(bh_sim_bind(f.s, "default", "stays", NULL, "n1", NULL, NULL, &f.e), 0);
    CU_ASSERT_EQUAL(bh_sim_delete(f.s, type_of("pods"), "default", "goes",
                                  &(struct bh_sim_delete_options){.grace_s = 0}, &f.e),
                    0);
    const struct bh_sim_obj *o = bh_sim_get(f.s, type_of("pods"), "default", "stays");
    uint64_t rv = o->rv, last = bh_sim_revision(f.s);
    size_t services = bh_sim_count(f.s, type_of("services"));
    snprintf(uid, sizeof(uid), "%s", o->uid);
    fixture_fini(&f);

    append(b.path, "{\"rv\":1,\"cha"); /* killed while it wrote */
    fixture_init(&f, &b.o, false);
    o = bh_sim_get(f.s, type_of("pods"), "default", "stays");
    CU_ASSERT_PTR_NOT_NULL_FATAL(o);
    CU_ASSERT(bh_streq(o->uid, uid) && o->rv == rv && bh_streq(o->node_name, "n1"));
    CU_ASSERT_PTR_NULL(bh_sim_get(f.s, type_of("pods"), "default", "goes"));
    CU_ASSERT_EQUAL(bh_sim_count(f.s, type_of("services")), services);
    CU_ASSERT_EQUAL(bh_sim_revision(f.s), last);
    struct bh_sim_objs on = {0};
    bh_sim_pods_on_node(f.s, "n1", &on);
    CU_ASSERT_EQUAL(on.n, 1);
    bh_sim_objs_fini(&on);
    /* nothing of the past is known: a watch from there has to list again */
    CU_ASSERT_EQUAL(bh_sim_bucket(f.s, type_of("pods"))->evicted_rv, last);
    CU_ASSERT_EQUAL(create_pod(&f, "new"), 0);
    CU_ASSERT_EQUAL(bh_sim_revision(f.s), last + 1);
    fixture_fini(&f);
    fixture_init(&f, &b.o, false); /* the torn line is gone, or this would not start */
    CU_ASSERT_EQUAL(bh_sim_count(f.s, type_of("pods")), 2);
    fixture_fini(&f);
    unlink(b.path);
}

static void refused(const char *text, const char *why)
{
    struct sandbox b;
    struct bh_sim *s = NULL;
    struct bh_err err = {""};
    uv_loop_t loop;

    sandbox_init(&b);
    CU_ASSERT_FATAL(bh_write_file(b.path, text, strlen(text), 0600) == 0);
    uv_loop_init(&loop);
    CU_ASSERT(bh_sim_new_bare(&loop, &b.o, &s, &err) < 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.msg, b.path));
    CU_ASSERT_PTR_NOT_NULL(strstr(err.msg, why));
    bh_loop_drain_close(&loop);
    unlink(b.path);
}

#define LINE(rv)                                                                                   \
    "{\"rv\":" rv ",\"change\":\"ADDED\",\"object\":{\"apiVersion\":\"v1\",\"kind\":\"Pod\","      \
    "\"metadata\":{\"name\":\"p" rv "\",\"namespace\":\"d\",\"uid\":\"u\","                        \
    "\"resourceVersion\":\"1\"}}}\n"

static void test_files_that_are_no_history(void)
{
    refused("rubbish\n", "line 1");
    refused("{}\n", "line 1: want change and object");
    refused("{\"rv\":5,\"change\":\"ADDED\",\"object\":{\"apiVersion\":\"v1\",\"kind\":\"X\"}}\n",
            "want an object of a kind that is stored, got v1 X");
    refused(LINE("7") LINE("8") LINE("8"), "line 3: want versions that rise from line to line");
    refused("{\"rv\":5,\"change\":\"ADDED\",\"object\":{\"apiVersion\":\"v1\",\"kind\":\"Pod\"}}\n",
            "line 1: want metadata with name");
}

BH_TESTS("simulator/history", {"a line a change", test_a_line_a_change},
         {"a server made of it", test_a_server_made_of_it},
         {"files that are no history", test_files_that_are_no_history})
