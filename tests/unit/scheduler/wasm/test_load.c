/* SPDX-License-Identifier: Apache-2.0
 *
 * From args to a guest: what args may be, where guests come from, which of two by one name, and what is measured.
 */
#include <sys/stat.h>

#include "common/base/metrics.h"
#include "common/wasm/store.h"
#include "tests/unit/scheduler/wasm/wish.h"

#define NO_DIGEST "sha256:0000000000000000000000000000000000000000000000000000000000000000"

/* ---- args ------------------------------------------------------------------------------------- */

static void test_args(void)
{
    static const struct {
        const char *args, *wrong; /* wrong NULL: nothing is */
    } rows[] = {
        {"{}", NULL},
        {"{'guestURL':null,'guestConfig':null,'hookTimeout':null,'logSeverity':null,'Args':null,"
         "'nodeLocal':null}",
         NULL},
        {"{'args':['guest','-x'],'logSeverity':-1,'nodeLocal':true,'hookTimeout':'2s',"
         "'guestDigest':'SHA256:"
         "ABCDEF0000000000000000000000000000000000000000000000000000000000'}",
         "guestDigest \"SHA256:"},
        {"{'args':['guest',true]}", "cannot unmarshal bool into Go struct field "
                                    "PluginConfig.Args of type string"},
        {"{'Args':{}}", "cannot unmarshal object into Go struct field PluginConfig.Args of type "
                        "[]string"},
        {"{'args':['a\\u0000b']}", "PluginConfig: Args must not contain a NUL byte"},
        {"{'guestConfig':'\\u0000'}", "PluginConfig: guestConfig must not contain a NUL byte"},
        {"{'guestURL':['x']}", "cannot unmarshal array into Go struct field "
                               "PluginConfig.guestURL of type string"},
        {"{'guestConfig':true}", "cannot unmarshal bool into Go struct field "
                                 "PluginConfig.guestConfig of type string"},
        {"{'hookTimeout':5}", "PluginConfig.hookTimeout of type string"},
        {"{'hookTimeout':'-1s'}", "hookTimeout \"-1s\" is no duration above 0, as \"50ms\""},
        {"{'hookTimeout':'-2000000h'}", "hookTimeout \"-2000000h\" is no duration above 0"},
        {"{'hookTimeout':'soon'}", "hookTimeout \"soon\" is no duration above 0"},
        {"{'guestDigest':7}", "PluginConfig.guestDigest of type string"},
        {"{'logSeverity':2147483648}", "cannot unmarshal number into Go struct field "
                                       "PluginConfig.logSeverity of type int32"},
        {"{'logSeverity':'1'}", "cannot unmarshal string into Go struct field "
                                "PluginConfig.logSeverity of type int32"},
    };

    for (unsigned i = 0; i < BH_ARRAY_LEN(rows); i++) {
        struct bh_guest_args args;
        struct bh_err err = {0};
        struct fx f = {0};
        bh_arena_init(&f.arena, 0);
        const int rc =
            bh_guest_args_read(&f.arena, "Guest", fx_json(&f, rows[i].args), &args, &err);
        FX_INT(rc, rows[i].wrong ? -EINVAL : 0);
        HAS(err.msg, rows[i].wrong ? rows[i].wrong : "");
        bh_arena_fini(&f.arena);
    }
    struct bh_guest_args args;
    struct bh_err err = {0};
    struct fx f = {0};
    bh_arena_init(&f.arena, 0);
    CU_ASSERT(bh_guest_args_read(&f.arena, "Guest",
                                 fx_json(&f, "{'args':['guest','-x'],'logSeverity':-1,"
                                             "'nodeLocal':true,'hookTimeout':'2s'}"),
                                 &args, &err) == 0);
    CU_ASSERT(args.argc == 2 && bh_streq(args.argv[1], "-x"));
    CU_ASSERT(args.severity == -1 && args.node_local && args.timeout_ns == 2000000000);
    CU_ASSERT_EQUAL(args.cycle_ns, 200000000000);
    CU_ASSERT(bh_guest_args_read(&f.arena, "Guest", fx_json(&f, "{'hookTimeout':'2000000h'}"),
                                 &args, &err) == 0);
    CU_ASSERT(args.cycle_ns > args.timeout_ns);
    CU_ASSERT(bh_guest_args_read(&f.arena, "Guest", fx_json(&f, "{'cycleTimeout':'1s'}"), &args,
                                 &err) == 0);
    CU_ASSERT_EQUAL(args.cycle_ns, 1000000000);
    bh_arena_fini(&f.arena);
}

/* ---- files ------------------------------------------------------------------------------------ */

/* tests/guests/NAME. The caller frees it. */
static char *guest_file(const char *name)
{
    const char *wish = wish_file() + strlen("file://");

    return bh_asprintf("%.*s%s", (int)(strlen(wish) - strlen("wish.wasm")), wish, name);
}

static char *read_all(const char *name, size_t *ret_n, char sha256[static 65])
{
    BH_CLEANUP(bh_freep) char *path = guest_file(name);
    char *bytes = NULL;

    CU_ASSERT_FATAL(bh_read_file(path, BH_WASM_BYTES_MAX, &bytes, ret_n) == 0);
    bh_wasm_digest(bytes, *ret_n, sha256);
    return bytes;
}

/* Declares a guest; what went wrong is in err. */
static int declare(const char *name, const char *args, struct bh_err *err)
{
    struct fx f = {0};

    *err = (struct bh_err){0};
    bh_arena_init(&f.arena, 0);
    bh_guest_start();
    const int rc = bh_plugin_declare_guest(name, fx_json(&f, args), err);
    bh_arena_fini(&f.arena);
    return rc;
}

/* A file in the tests' folder, with what is in the guest's. */
static char *put(const char *as, const char *guest)
{
    char *to = bh_asprintf("%s/%s", bh_test_tmpdir(), as), sha256[65];
    size_t n;
    BH_CLEANUP(bh_freep) char *bytes = read_all(guest, &n, sha256);
    FILE *f = fopen(to, "we");

    CU_ASSERT_FATAL(f && fwrite(bytes, 1, n, f) == n && fclose(f) == 0);
    return to;
}

/* A name has one guest, and one nodeLocal. */
static void test_one_name(void)
{
    struct bh_err err;

    if (absent())
        return;
    bh_guest_set_sources(&(struct bh_guest_sources){0});
    BH_CLEANUP(bh_freep) char *file = put("one.wasm", "local.wasm");
    BH_CLEANUP(bh_freep) char *args = bh_asprintf("{'guestURL':'file://%s'}", file);
    BH_CLEANUP(bh_freep)
    char *local = bh_asprintf("{'guestURL':'file://%s','nodeLocal':true}", file);
    FX_INT(declare("One", args, &err), BH_EXT_NEED_NODES);
    FX_INT(declare("One", args, &err), BH_EXT_NEED_NODES);
    FX_INT(declare("One", local, &err), -EBUSY);
    HAS(err.msg, "nodeLocal of One is false in this process");
    free(put("one.wasm", "stubs.wasm"));
    FX_INT(declare("One", args, &err), -EBUSY);
    HAS(err.msg, "one.wasm is another guest than the one this process has loaded as One");
    CU_ASSERT(!bh_guest_changed());
    CU_ASSERT(bh_plugin_find("One") && !bh_plugin_find("Two"));
}

/* In a process that starts anew for it another one is taken, if it can be. */
static void test_changes(void)
{
    struct bh_err err;

    if (absent())
        return;
    bh_guest_set_sources(&(struct bh_guest_sources){.may_change = true});
    BH_CLEANUP(bh_freep) char *file = put("changes.wasm", "local.wasm");
    BH_CLEANUP(bh_freep) char *args = bh_asprintf("{'guestURL':'file://%s'}", file);
    BH_CLEANUP(bh_freep)
    char *local = bh_asprintf("{'guestURL':'file://%s','nodeLocal':true}", file);
    (void)bh_guest_changed();
    FX_INT(declare("Changes", args, &err), BH_EXT_NEED_NODES);
    CU_ASSERT(!bh_guest_changed());
    FX_INT(declare("Changes", args, &err), BH_EXT_NEED_NODES); /* of two profiles */
    FX_INT(declare("Changes", args, &err), BH_EXT_NEED_NODES);
    FX_INT(declare("Changes", local, &err), -EINVAL);
    HAS(err.msg,
        "wasm: Changes has another guest or nodeLocal in another profile: one name has one");
    CU_ASSERT(!bh_guest_changed());
    FX_INT(declare("Changes", local, &err), BH_EXT_NEED_NODES);
    CU_ASSERT(bh_guest_changed() && !bh_guest_changed());
    free(put("changes.wasm", "stubs.wasm"));
    CU_ASSERT(declare("Changes", args, &err) >= 0);
    free(put("changes.wasm", "local.wasm"));
    FX_INT(declare("Changes", args, &err), -EINVAL);
    HAS(err.msg, "has another guest or nodeLocal in another profile");
    CU_ASSERT(bh_guest_changed());
    FILE *f = fopen(file, "we");
    CU_ASSERT_FATAL(f && fputs("no module", f) > 0 && fclose(f) == 0);
    FX_INT(declare("Changes", args, &err), -EINVAL);
    HAS(err.msg, "wasm: error compiling guest: ");
    CU_ASSERT(!bh_guest_changed());
    bh_guest_set_sources(&(struct bh_guest_sources){0});
}

/* ---- those with a URL ------------------------------------------------------------------------- */

static int downloads(const char *from, size_t max, const atomic_bool *stop, struct bh_buf *ret,
                     struct bh_err *err)
{
    char sha256[65];
    size_t n;

    CU_ASSERT(max == BH_WASM_BYTES_MAX && !stop);
    if (!strstr(from, "local"))
        return bh_err_set(err, -ENOENT, "received 404 status code from \"%s\"", from);
    BH_CLEANUP(bh_freep) char *bytes = read_all("local.wasm", &n, sha256);
    bh_buf_add(ret, bytes, n);
    return 0;
}

static void test_downloaded(void)
{
    char sha256[65];
    struct bh_err err;
    size_t n;

    if (absent())
        return;
    free(read_all("local.wasm", &n, sha256));
    BH_CLEANUP(bh_freep)
    char *good =
        bh_asprintf("{'guestURL':'https://host/local.wasm','guestDigest':'sha256:%s'}", sha256);
    bh_guest_set_sources(&(struct bh_guest_sources){0});
    FX_INT(declare("Far", good, &err), -EOPNOTSUPP);
    HAS(err.msg, "wasm: error reading guestURL https://host/local.wasm: this program does not "
                 "download guests");
    bh_guest_set_sources(&(struct bh_guest_sources){.download = downloads});
    FX_INT(declare("Far", "{'guestURL':'http://host/x.wasm','guestDigest':'" NO_DIGEST "'}", &err),
           -ENOENT);
    HAS(err.msg, "reading guestURL http://host/x.wasm: received 404 status code from");
    FX_INT(
        declare("Far", "{'guestURL':'http://host/local.wasm','guestDigest':'" NO_DIGEST "'}", &err),
        -EBADMSG);
    HAS(err.msg, "wanted is " NO_DIGEST);
    CU_ASSERT(!bh_plugin_find("Far"));
    FX_INT(declare("Far", good, &err), BH_EXT_NEED_NODES);
    bh_guest_set_sources(&(struct bh_guest_sources){0});
    /* A file, too, has to be the one that was meant. */
    BH_CLEANUP(bh_freep) char *file = guest_file("local.wasm");
    BH_CLEANUP(bh_freep)
    char *wrong = bh_asprintf("{'guestURL':'file://%s','guestDigest':'" NO_DIGEST "'}", file);
    FX_INT(declare("Near", wrong, &err), -EBADMSG);
    HAS(err.msg, "wanted is " NO_DIGEST);
}

static void test_stored(void)
{
    BH_CLEANUP(bh_freep) char *store = bh_asprintf("%s/store", bh_test_tmpdir());
    char sha256[65];
    struct bh_err err;
    size_t n;

    if (absent())
        return;
    BH_CLEANUP(bh_freep) char *bytes = read_all("local.wasm", &n, sha256);
    BH_CLEANUP(bh_freep)
    char *args =
        bh_asprintf("{'guestURL':'https://host/x.wasm','guestDigest':'sha256:%s'}", sha256);
    bh_guest_set_sources(&(struct bh_guest_sources){.store = store, .wait_ns = 1});
    FX_INT(declare("Stored", args, &err), -ENOENT);
    HAS(err.msg, "wasm: error reading guestURL https://host/x.wasm: berth-watcher has not "
                 "downloaded it yet");
    CU_ASSERT(bh_wasm_store_put(store, sha256, bytes, n, &err) == 0); /* the folder is there */
    BH_CLEANUP(bh_freep) char *path = bh_asprintf("%s/%s.wasm", store, sha256);
    CU_ASSERT(unlink(path) == 0);
    bh_wasm_store_fail(store, sha256, "received 404 status code");
    bh_guest_set_sources(&(struct bh_guest_sources){.store = store});
    FX_INT(declare("Stored", args, &err), -ENOENT);
    HAS(err.msg, "https://host/x.wasm: received 404 status code");
    FILE *f = fopen(path, "we");
    CU_ASSERT_FATAL(f && fputs("another", f) > 0 && fclose(f) == 0);
    CU_ASSERT(declare("Stored", args, &err) < 0);
    HAS(err.msg, "its digest is sha256:");
    CU_ASSERT(bh_wasm_store_put(store, sha256, bytes, n, &err) == 0);
    FX_INT(declare("Stored", args, &err), BH_EXT_NEED_NODES);
    bh_guest_set_sources(&(struct bh_guest_sources){0});
}

/* ---- metrics ---------------------------------------------------------------------------------- */

static void test_metrics(void)
{
    struct bh_metrics *m = bh_metrics_new();
    struct bh_buf out BH_CLEANUP(bh_buf_fini) = {0};
    struct fx f;

    if (absent()) {
        bh_metrics_free(m);
        return;
    }
    begin(&f, "filter=panic");
    (void)decide(&f, "p");
    bh_guest_set_metrics(m);
    bh_guest_set_metrics(m); /* of a second engine */
    bh_metrics_render(m, &out);
    HAS(bh_buf_str(&out), "berth_wasm_calls_total{plugin=\"Wish\",hook=\"prefilter\"} ");
    const int64_t traps = bh_json_get_i64(of_wish(&f), "traps", 0);
    CU_ASSERT(traps > 0);
    HAS(bh_buf_str(&out),
        bh_arena_printf(&f.arena, "berth_wasm_traps_total{plugin=\"Wish\",hook=\"filter\"} %lld\n",
                        (long long)traps));
    HAS(bh_buf_str(&out), "berth_wasm_seconds_total{plugin=\"Wish\",hook=\"filter\"} ");
    HAS(bh_buf_str(&out), "berth_wasm_memory_bytes{plugin=\"Wish\"} ");
    HAS(bh_buf_str(&out), "berth_wasm_compiled{plugin=\"Wish\"} 0\n");
    HAS(bh_buf_str(&out), "berth_wasm_instances{plugin=\"Wish\"} 0\n"); /* it trapped */
    bh_metrics_free(m);
    fx_fini(&f);
}

/* Without a guest there are no families. */
static void test_no_guest(void)
{
    struct bh_metrics *m = bh_metrics_new();

    bh_guest_set_metrics(m);
    CU_ASSERT(!bh_metric_find(m, "berth_wasm_calls_total"));
    CU_ASSERT_STRING_EQUAL(bh_guest_signature(":"), "() -> ()");
    bh_metrics_free(m);
}

BH_TESTS("scheduler/wasm/load", {"args", test_args}, {"no guest", test_no_guest},
         {"one name", test_one_name}, {"changes", test_changes}, {"downloaded", test_downloaded},
         {"stored", test_stored}, {"metrics", test_metrics})
