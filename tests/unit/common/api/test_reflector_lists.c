/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/common/api/test_reflector_lists.c - protobuf and compressed lists, whole and broken
 */
#include <zlib.h>

#include "tests/unit/common/api/reflector_env.h"

/* ---- protobuf -------------------------------------------------------------------------------- */

static void add_object(struct bh_buf *out, const char *name, const char *uid, const char *rv)
{
    K8s__ObjectMeta meta = K8S__OBJECT_META__INIT;
    K8s__Node node = K8S__NODE__INIT;
    meta.name = (char *)(uintptr_t)name;
    meta.uid = (char *)(uintptr_t)uid;
    meta.resourceversion = (char *)(uintptr_t)rv;
    node.metadata = &meta;
    bh_pb_pack(out, &node.base);
}

static void pb_list(struct env *e, struct raw_conn *c, const char *target)
{
    struct bh_buf raw = {0}, item = {0}, env = {0};
    (void)e, (void)target;
    bh_buf_add(&raw,
               "\x0a\x04\x12\x02"
               "10",
               6); /* metadata {2 resourceVersion "10"} */
    add_object(&item, "a", "ua", "5");
    bh_buf_addc(&raw, 0x12);
    bh_buf_addc(&raw, (char)item.n);
    bh_buf_add(&raw, item.p, item.n);
    bh_buf_add(&raw, "\x12\x03\x0a\x01\xff", 5); /* an item whose metadata is cut */
    bh_envelope_write(&env, "v1", "NodeList", raw.p, raw.n);
    raw_reply(c, 200, "Content-Type: application/vnd.kubernetes.protobuf\r\n", env.p, env.n);
    bh_buf_fini(&raw);
    bh_buf_fini(&item);
    bh_buf_fini(&env);
}

static void pb_watch(struct env *e, struct raw_conn *c, const char *target)
{
    static const char *const types[] = {"ADDED", "MODIFIED", "BOOKMARK", "DELETED"};
    static const char *const rvs[] = {"11", "12", "15", "16"};
    struct bh_buf frames = {0};
    (void)e, (void)target;
    for (size_t i = 0; i < 4; i++) {
        struct bh_buf item = {0}, env = {0};
        add_object(&item, i == 2 ? "" : "b", i == 2 ? "" : "ub", rvs[i]);
        bh_envelope_write(&env, "v1", "Node", item.p, item.n);
        bh_watch_frame_pb(&frames, types[i], env.p, env.n);
        bh_buf_fini(&item);
        bh_buf_fini(&env);
    }
    raw_stream(c, "application/vnd.kubernetes.protobuf;stream=watch");
    for (size_t i = 0; i < frames.n; i++) /* a byte a chunk */
        raw_chunk(c, frames.p + i, 1);
    bh_buf_fini(&frames);
}

static void test_protobuf(void)
{
    static step_fn *const steps[] = {pb_list, pb_watch};
    struct env e = {.kind = BH_KIND_NODE};
    struct bh_reflector_stats st;
    play(&e, steps, 2, "+a/ua@5 ! | +b/ub@11 ~b/ub@12 -b/ub@16 ");
    bh_reflector_stats(e.reflector, &st);
    CU_ASSERT_EQUAL(st.bookmarks, 1);
    finish(&e);
}

/* ---- lists that break off -------------------------------------------------------------------- */
#define PB_TYPE "Content-Type: application/vnd.kubernetes.protobuf\r\n"

/* "a5b6" = node a with uid ua in version 5, node b with uid ub in version 6. */
static void make_list(struct bh_buf *out, const char *kind, const char *nodes)
{
    struct bh_buf raw = {0};
    bh_buf_add(&raw,
               "\x0a\x04\x12\x02"
               "20",
               6);
    for (; *nodes; nodes += 2) {
        const char name[] = {nodes[0], 0}, uid[] = {'u', nodes[0], 0}, rv[] = {nodes[1], 0};
        struct bh_buf item = {0};
        add_object(&item, name, uid, rv);
        bh_buf_addc(&raw, 0x12);
        bh_buf_addc(&raw, (char)item.n);
        bh_buf_add(&raw, item.p, item.n);
        bh_buf_fini(&item);
    }
    bh_envelope_write(out, "v1", kind, raw.p, raw.n);
    bh_buf_fini(&raw);
}

static void send_list(struct raw_conn *c, const char *kind, const char *nodes, size_t cut)
{
    struct bh_buf body = {0}, head = {0};
    make_list(&body, kind, nodes);
    bh_buf_addf(&head, "HTTP/1.1 200 X\r\n" PB_TYPE "Content-Length: %zu\r\n\r\n", body.n);
    bh_buf_add(&head, body.p, body.n - cut);
    raw_send(c, head.p, head.n);
    if (cut)
        raw_close(c);
    bh_buf_fini(&body);
    bh_buf_fini(&head);
}

static void pb_a5_then_cut(struct env *e, struct raw_conn *c, const char *target)
{
    (void)e, (void)target;
    send_list(c, "NodeList", "a5b6", 8); /* in the middle of b */
}

static void pb_a7_then_cut(struct env *e, struct raw_conn *c, const char *target)
{
    (void)e, (void)target;
    send_list(c, "NodeList", "a7b6", 8);
}

static void pb_b6(struct env *e, struct raw_conn *c, const char *target)
{
    (void)e, (void)target;
    send_list(c, "NodeList", "b6", 0);
}

static void pb_status(struct env *e, struct raw_conn *c, const char *target)
{
    (void)e, (void)target;
    send_list(c, "Status", "a5", 0);
}

static void watch_expired(struct env *e, struct raw_conn *c, const char *target)
{
    (void)e, (void)target;
    raw_json(c, 410, EXPIRED);
}

/* What came is there; what did not come is not gone, before a whole list has said so. */
static void test_list_breaks_off(void)
{
    static step_fn *const steps[] = {pb_a5_then_cut, pb_b6, watch_silent};
    static step_fn *const again[] = {list_ab, watch_expired, pb_a7_then_cut, pb_b6, watch_silent};
    struct env e = {.kind = BH_KIND_NODE};
    play(&e, steps, 3, "+a/ua@5 +b/ub@6 -a/ua@5? | ");
    CU_ASSERT_EQUAL(e.bad, 0);
    finish(&e);
    struct env f = {.kind = BH_KIND_NODE};
    play(&f, again, 5, "+a/ua@5 +b/ub@6 | ~a/ua@7 -a/ua@7? | ");
    CU_ASSERT_EQUAL(f.synced, 2);
    finish(&f);
}

static void test_no_list(void)
{
    static step_fn *const steps[] = {pb_status, list_ab, watch_silent};
    struct env e = {.kind = BH_KIND_NODE};
    play(&e, steps, 3, "+a/ua@5 +b/ub@6 | ");
    CU_ASSERT_STRING_EQUAL(e.trouble, "list: reply is a Status");
    finish(&e);
}

/* ---- compressed lists ------------------------------------------------------------------------ */

static void send_gzip(struct raw_conn *c, size_t cut, bool spoil)
{
    struct bh_buf body = {0}, head = {0};
    unsigned char out[1024];
    z_stream z = {0};
    make_list(&body, "NodeList", "a5b6");
    CU_ASSERT_EQUAL_FATAL(deflateInit2(&z, 1, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    z.next_in = (unsigned char *)body.p;
    z.avail_in = (unsigned)body.n;
    z.next_out = out;
    z.avail_out = sizeof(out);
    CU_ASSERT_EQUAL(deflate(&z, Z_FINISH), Z_STREAM_END);
    if (spoil)
        out[z.total_out / 2] ^= 0x55;
    bh_buf_addf(
        &head, "HTTP/1.1 200 X\r\n" PB_TYPE "Content-Encoding: gzip\r\nContent-Length: %zu\r\n\r\n",
        (size_t)z.total_out);
    bh_buf_add(&head, out, z.total_out - cut);
    raw_send(c, head.p, head.n);
    if (cut)
        raw_close(c);
    deflateEnd(&z);
    bh_buf_fini(&body);
    bh_buf_fini(&head);
}

static void gzip_whole(struct env *e, struct raw_conn *c, const char *target)
{
    (void)e, (void)target;
    send_gzip(c, 0, false);
}

static void gzip_cut(struct env *e, struct raw_conn *c, const char *target)
{
    (void)e, (void)target;
    send_gzip(c, 9, false); /* its checksum and more */
}

static void gzip_spoilt(struct env *e, struct raw_conn *c, const char *target)
{
    (void)e, (void)target;
    send_gzip(c, 0, true);
}

static void test_gzip(void)
{
    static step_fn *const steps[] = {gzip_whole, watch_silent};
    static step_fn *const broken[] = {gzip_cut, gzip_spoilt, gzip_whole, watch_silent};
    struct env e = {.kind = BH_KIND_NODE};
    play(&e, steps, 2, "+a/ua@5 +b/ub@6 | ");
    CU_ASSERT_EQUAL(e.gzip, 1); /* the list, not the watch */
    finish(&e);
    struct env f = {.kind = BH_KIND_NODE};
    play(&f, broken, 4, "+a/ua@5 +b/ub@6 | ");
    CU_ASSERT_EQUAL(f.synced, 1);
    CU_ASSERT_EQUAL(f.gzip, 3);
    CU_ASSERT(*f.trouble);
    finish(&f);
}

BH_TESTS("common/api/reflector_lists",
         {"protobuf lists and streams, a byte at a time", test_protobuf},
         {"a protobuf list that breaks off takes nothing away", test_list_breaks_off},
         {"an envelope with something else is no list", test_no_list},
         {"lists may come compressed, watches not", test_gzip})
