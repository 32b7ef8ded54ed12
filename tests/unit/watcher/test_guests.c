/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/watcher/test_guests.c - guests that the configuration has a URL for: downloaded, checked
 * against their digest, put into the store; and what becomes of those that are not there, not what
 * was wanted, or no longer wanted
 */
#include "watcher/guests.h"

#include <errno.h>
#include <unistd.h>

#include "common/api/download.h"
#include "common/base/loop.h"
#include "common/wasm/store.h"
#include "tests/unit/common/api/raw_server.h"

#define BODY "a guest's bytes"

struct env {
    uv_loop_t loop;
    struct raw_server server;
    char dir[200], store[300], config[300], digest[65];
    struct bh_guests *guests;
    bool gone; /* 404, for now */
};

static void handle(struct raw_server *s, const struct raw_request *r)
{
    const struct env *e = s->arg;

    if (e->gone || bh_streq(r->target, "/gone"))
        raw_reply(r->conn, 404, "", "", 0);
    else if (bh_streq(r->target, "/moved"))
        raw_reply(r->conn, 302, "Location: /guest\r\n", "", 0);
    else if (bh_streq(r->target, "/round"))
        raw_reply(r->conn, 302, "Location: /round\r\n", "", 0);
    else if (bh_streq(r->target, "/elsewhere"))
        raw_reply(r->conn, 302, "Location: file:///etc/passwd\r\n", "", 0);
    else if (!bh_streq(r->target, "/silent"))
        raw_reply(r->conn, 200, "", BODY, strlen(BODY));
}

static void begin(struct env *e)
{
    *e = (struct env){.gone = false};
    uv_loop_init(&e->loop);
    raw_start(&e->server, &e->loop, handle, e);
    snprintf(e->dir, sizeof e->dir, "%s/guestsXXXXXX", bh_test_tmpdir());
    CU_ASSERT_FATAL(mkdtemp(e->dir) != NULL);
    snprintf(e->store, sizeof e->store, "%s/" BH_WATCHER_DIR, e->dir); /* the watcher made it */
    CU_ASSERT_EQUAL_FATAL(mkdir(e->store, 0700), 0);
    snprintf(e->store, sizeof e->store, "%s/" BH_WASM_STORE, e->dir);
    snprintf(e->config, sizeof e->config, "%s/config.yaml", e->dir);
    bh_wasm_digest(BODY, strlen(BODY), e->digest);
}

static void end(struct env *e)
{
    bh_guests_free(e->guests);
    raw_stop(&e->server);
    bh_loop_drain_close(&e->loop);
}

/* One guest of that path; and some that are not for us. */
static void configure(const struct env *e, const char *path, const char *digest)
{
    BH_CLEANUP(bh_freep)
    char *text =
        bh_asprintf("apiVersion: kubescheduler.config.k8s.io/v1\nkind: "
                    "KubeSchedulerConfiguration\nprofiles:\n- pluginConfig:\n"
                    "  - {name: A, args: {guestURL: 'http://127.0.0.1:%u%s', guestDigest: "
                    "'sha256:%s'}}\n"
                    "  - {name: B, args: {guestURL: 'file:///x', guestDigest: 'sha256:%s'}}\n"
                    "  - {name: C, args: {guestURL: 'http://127.0.0.1:%u/unpinned'}}\n"
                    "  - {name: D, args: {other: 1}}\n  - {name: E}\n",
                    e->server.port, path, digest, digest, e->server.port);
    CU_ASSERT(bh_write_file(e->config, text, strlen(text), 0600) == 0);
}

static bool is_there(struct env *e)
{
    struct bh_err err;
    char *p = NULL;
    size_t n = 0;
    bool good = bh_wasm_store_get(e->store, e->digest, &p, &n, &err) == 0 && bh_streq(p, BODY);

    free(p);
    return good;
}

static const char *failure(struct env *e, const char *digest)
{
    static char text[4200];
    BH_CLEANUP(bh_freep) char *why = bh_wasm_store_failure(e->store, digest, 0);

    snprintf(text, sizeof text, "%s", why ? why : "");
    return text;
}

static void test_downloads(void)
{
    struct env e;

    begin(&e);
    configure(&e, "/moved", e.digest);
    e.guests = bh_guests_new(&e.loop, e.config, e.dir);
    while (!is_there(&e))
        uv_run(&e.loop, UV_RUN_ONCE);
    CU_ASSERT_EQUAL(e.server.requests, 2); /* and where it has moved to */
    for (unsigned i = 0; i < 3; i++)
        uv_run(&e.loop, UV_RUN_ONCE);
    CU_ASSERT_EQUAL(e.server.requests, 2); /* once is enough */
    end(&e);
    begin(&e);
    CU_ASSERT(!is_there(&e));
    end(&e);
}

static void test_again(void)
{
    struct env e;

    begin(&e);
    e.gone = true;
    configure(&e, "/guest", e.digest);
    e.guests = bh_guests_new(&e.loop, e.config, e.dir);
    while (!*failure(&e, e.digest))
        uv_run(&e.loop, UV_RUN_ONCE);
    CU_ASSERT_STRING_EQUAL(failure(&e, e.digest), "received 404 status code");
    e.gone = false;
    while (!is_there(&e))
        uv_run(&e.loop, UV_RUN_ONCE);
    CU_ASSERT_STRING_EQUAL(failure(&e, e.digest), "");
    end(&e);
}

static void test_not_what_was_wanted(void)
{
    static const char wanted[] = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
    char *p = NULL;
    struct bh_err err;
    struct env e;
    size_t n;

    begin(&e);
    configure(&e, "/guest", wanted);
    e.guests = bh_guests_new(&e.loop, e.config, e.dir);
    while (!*failure(&e, wanted))
        uv_run(&e.loop, UV_RUN_ONCE);
    CU_ASSERT(strstr(failure(&e, wanted), e.digest) && strstr(failure(&e, wanted), wanted));
    CU_ASSERT_EQUAL(bh_wasm_store_get(e.store, wanted, &p, &n, &err), -ENOENT);
    /* Whoever writes it there past us is found out as well. */
    BH_CLEANUP(bh_freep) char *path = bh_asprintf("%s/%s.wasm", e.store, wanted);
    CU_ASSERT(bh_write_file(path, BODY, strlen(BODY), 0600) == 0);
    CU_ASSERT_EQUAL(bh_wasm_store_get(e.store, wanted, &p, &n, &err), -EBADMSG);
    CU_ASSERT(strstr(err.msg, e.digest) && strstr(err.msg, wanted));
    end(&e);
}

static void test_other_configuration(void)
{
    static const char first[] = "0000000000000000000000000000000000000000000000000000000000000000";
    struct env e;

    begin(&e);
    bh_wasm_store_fail(e.store, first, "an old one");
    CU_ASSERT(bh_guests_new(&e.loop, "", e.dir) == NULL);
    configure(&e, "/gone", first);
    e.guests = bh_guests_new(&e.loop, e.config, e.dir);
    while (!strstr(failure(&e, first), "404"))
        uv_run(&e.loop, UV_RUN_ONCE);
    configure(&e, "/guest", e.digest);
    while (!is_there(&e))
        uv_run(&e.loop, UV_RUN_ONCE);
    CU_ASSERT_STRING_EQUAL(failure(&e, first), ""); /* nobody wants it any more */
    CU_ASSERT(bh_write_file(e.config, "{", 1, 0600) == 0);
    for (unsigned i = 0; i < 2; i++) /* a turn at least for the broken file */
        uv_run(&e.loop, UV_RUN_ONCE);
    CU_ASSERT(is_there(&e));
    end(&e);
}

/* The answer would not come for a long time. */
static void test_closed_while_it_downloads(void)
{
    struct env e;

    begin(&e);
    configure(&e, "/silent", e.digest);
    e.guests = bh_guests_new(&e.loop, e.config, e.dir);
    while (e.server.requests == 0)
        uv_run(&e.loop, UV_RUN_ONCE);
    CU_ASSERT(!is_there(&e));
    end(&e);
}

/* ---- one file -------------------------------------------------------------------------------- */

struct one {
    struct env *e;
    const char *url;
    size_t max;
    atomic_bool stop;
    struct bh_buf got;
    struct bh_err err;
    int rc;
    bool done;
};
static void work(uv_work_t *w)
{
    struct one *o = w->data;

    o->rc = bh_download(o->url, o->max, &o->stop, &o->got, &o->err);
}
static void worked(uv_work_t *w, int status BH_UNUSED)
{
    ((struct one *)w->data)->done = true;
}

static void test_download(void)
{
    static const struct {
        const char *path;
        size_t max;
        bool stop;
        int rc;
        const char *why;
    } rows[] = {
        {"/guest", strlen(BODY), false, 0, ""},
        {"/guest", strlen(BODY) - 1, false, -EFBIG, "it has more than 14 bytes"},
        {"/gone", 100, false, -ENOENT, "received 404 status code"},
        {"/round", 100, false, -EIO, "redirects"},
        {"/elsewhere", 100, false, -EIO, "rotocol"},
        {"/silent", 100, true, -ECANCELED, "it was given up"},
    };
    struct env e;

    begin(&e);
    for (unsigned i = 0; i < BH_ARRAY_LEN(rows); i++) {
        BH_CLEANUP(bh_freep)
        char *url = bh_asprintf("http://127.0.0.1:%u%s", e.server.port, rows[i].path);
        struct one o = {.url = url, .max = rows[i].max};
        uv_work_t w = {.data = &o};
        unsigned requests = e.server.requests;
        uv_queue_work(&e.loop, &w, work, worked);
        while (!o.done) {
            uv_run(&e.loop, UV_RUN_ONCE);
            if (rows[i].stop && e.server.requests > requests)
                atomic_store(&o.stop, true);
        }
        CU_ASSERT_EQUAL(o.rc, rows[i].rc);
        CU_ASSERT(strstr(o.err.msg, rows[i].why) != NULL);
        CU_ASSERT_EQUAL(o.got.n, rows[i].rc ? 0 : strlen(BODY));
        bh_buf_fini(&o.got);
    }
    end(&e);
}

static void test_digests(void)
{
    char out[65];

    CU_ASSERT(
        bh_wasm_digest_read("sha256:"
                            "ABCDEF0123456789abcdef0123456789abcdef0123456789abcdef0123456789",
                            out) == 0);
    CU_ASSERT_STRING_EQUAL(out, "abcdef0123456789abcdef0123456789abcdef0123456789abcdef0123456789");
    CU_ASSERT(bh_wasm_digest_read("sha256:", out) == -EINVAL);
    CU_ASSERT(bh_wasm_digest_read("abcdef", out) == -EINVAL);
    CU_ASSERT(
        bh_wasm_digest_read("sha256:"
                            "/../../../etc/passwd0123456789abcdef0123456789abcdef012345678901",
                            out) == -EINVAL);
}

BH_TESTS("watcher/guests", {"downloads", test_downloads}, {"again after a failure", test_again},
         {"not what was wanted", test_not_what_was_wanted},
         {"another configuration", test_other_configuration},
         {"closed while it downloads", test_closed_while_it_downloads}, {"one file", test_download},
         {"digests", test_digests})
