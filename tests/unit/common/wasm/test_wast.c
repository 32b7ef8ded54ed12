/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/common/wasm/test_wast.c - scripts in the format of the specification's test suite
 *
 * wabt's wast2json makes modules and a list of assertions of each .wast file beside this one (and
 * of those in BERTH_WAST_DIR, which may be the official test suite: there what this engine refuses
 * by name is counted, not failed). Without wabt the tests are skipped; test_wasm.c needs nothing.
 */
#include <dirent.h>
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/wasm/store.h"
#include "common/wasm/wasm.h"
#include "tests/unit/harness.h"

#define SPECTEST(name, type)                                                                       \
    {                                                                                              \
        "spectest", name, type, print                                                              \
    }

struct script {
    char *folder, *file;
    struct bh_wasm_module *modules[512];
    struct bh_wasm *instances[512];
    json_t *names;           /* $name -> number */
    int last;                /* -1: the last module could not be loaded here */
    bool registered, shared; /* a module was refused that may have changed another one */
    bool compiled;           /* modules are compiled ahead of time */
    unsigned n, passed, failed, refused;
};

static bool print(struct bh_wasm *w, void *user, uint64_t *v)
{
    (void)w, (void)user, (void)v;
    return true;
}

static const struct bh_wasm_host spectest[] = {
    SPECTEST("print", ":"),           SPECTEST("print_i32", "i:"), SPECTEST("print_i64", "I:"),
    SPECTEST("print_f32", "f:"),      SPECTEST("print_f64", "F:"), SPECTEST("print_i32_f32", "if:"),
    SPECTEST("print_f64_f64", "FF:"),
};

static const char *text_of(const json_t *o, const char *key)
{
    const char *s = json_string_value(json_object_get(o, key));
    return s ? s : "";
}

static void fail(struct script *s, const json_t *command, const char *what, const char *details)
{
    if (s->shared) {
        s->refused++;
        return;
    }
    printf("# %s:%d: %s: %s (%s)\n", s->file,
           (int)json_integer_value(json_object_get(command, "line")), text_of(command, "type"),
           what, details);
    s->failed++;
}

/* What this engine does not have, and says so. */
static bool refused(const char *why)
{
    static const char *const texts[] = {"not supported", "only functions can be imported",
                                        "there is no such function", "are supported"};
    for (size_t i = 0; i < BH_ARRAY_LEN(texts); i++)
        if (strstr(why, texts[i]))
            return true;
    return false;
}

static int load_file(struct script *s, const json_t *command, struct bh_wasm_module **ret,
                     struct bh_err *err)
{
    BH_CLEANUP(bh_freep) char *path = bh_asprintf("%s/%s", s->folder, text_of(command, "filename"));
    BH_CLEANUP(bh_freep) char *bytes = NULL;
    size_t n = 0;

    bh_assert(bh_read_file(path, BH_WASM_BYTES_MAX, &bytes, &n) == 0);
    return bh_wasm_load(bytes, n, ret, err);
}

static int compile(struct script *s, const json_t *command, struct bh_wasm_module *m,
                   struct bh_err *err)
{
    BH_CLEANUP(bh_freep) char *path = bh_asprintf("%s/%s", s->folder, text_of(command, "filename"));
    BH_CLEANUP(bh_freep) char *bytes = NULL, *made = NULL;
    struct bh_wasm_build how = {.cc = "cc"};
    char sha256[65];
    size_t n = 0;

    bh_assert(bh_read_file(path, BH_WASM_BYTES_MAX, &bytes, &n) == 0);
    bh_wasm_digest(bytes, n, sha256);
    setenv("BERTH_WASM_CACHE", s->folder, 1);
    if (bh_wasm_build(m, sha256, s->folder, &how, &made, err) < 0)
        return -EIO;
    CU_ASSERT_FATAL(bh_wasm_use_compiled(m, sha256, err) == 1);
    CU_ASSERT(bh_wasm_is_compiled(m));
    return 0;
}

/* A module that has to load; it becomes the last one. */
static int instantiate(struct script *s, const json_t *command, struct bh_err *err)
{
    struct bh_wasm_limits limits = BH_WASM_LIMITS;
    struct bh_wasm_module *m = NULL;
    struct bh_wasm *w = NULL;
    int rc;

    limits.call_ns = 0;
    limits.steps = 1u << 30;
    limits.pages = 65536;
    limits.elements = 20000000;
    s->last = -1;
    if ((rc = load_file(s, command, &m, err)) < 0)
        return rc;
    if (s->compiled && (rc = compile(s, command, m, err)) < 0) {
        bh_wasm_unload(m);
        return rc;
    }
    if ((rc = bh_wasm_new(m, spectest, BH_ARRAY_LEN(spectest), NULL, &limits, &w, err)) < 0) {
        bh_wasm_unload(m);
        return rc;
    }
    bh_assert(s->n < BH_ARRAY_LEN(s->modules));
    s->modules[s->n] = m;
    s->instances[s->n] = w;
    s->last = (int)s->n++;
    if (bh_wasm_start(w) == BH_WASM_DONE)
        return 0;
    s->last = -1;
    return bh_err_set(err, -EFAULT, "trap in start");
}

static char letter_of(const char *type)
{
    return bh_streq(type, "i32")       ? 'i'
           : bh_streq(type, "i64")     ? 'I'
           : bh_streq(type, "f32")     ? 'f'
           : bh_streq(type, "f64")     ? 'F'
           : bh_streq(type, "funcref") ? 'r'
                                       : 'x';
}

/* Is v what is expected? wast2json writes floats as the number that their bits are. */
static bool is_value(const json_t *expected, uint64_t v)
{
    const char *text = text_of(expected, "value");
    char type = letter_of(text_of(expected, "type"));
    bool wide = type == 'F';
    uint64_t quiet = wide ? 0x7ff8000000000000 : 0x7fc00000;
    uint64_t sign = wide ? (uint64_t)1 << 63 : 0x80000000u;

    if (type == 'r' || type == 'x')
        return bh_streq(text, "null") == (v == 0);
    if (bh_streq(text, "nan:canonical"))
        return (v & ~sign) == quiet;
    if (bh_streq(text, "nan:arithmetic"))
        return (v & quiet) == quiet;
    return v == strtoull(text, NULL, 10);
}

/* -1: the module or its function is not there. */
static int run_action(struct script *s, const json_t *action, uint64_t v[static 64],
                      const char **ret_type)
{
    const char *name = text_of(action, "module");
    int i = s->last;
    uint32_t func;

    if (*name) {
        const json_t *n = json_object_get(s->names, name);
        i = n ? (int)json_integer_value(n) : -1;
    }
    if (i < 0 || !bh_streq(text_of(action, "type"), "invoke"))
        return -1;
    if (bh_wasm_find(s->modules[i], text_of(action, "field"), NULL, &func, ret_type) < 0)
        return -1;
    const json_t *args = json_object_get(action, "args");
    for (size_t a = 0; a < json_array_size(args); a++) {
        const json_t *arg = json_array_get(args, a);
        if (strchr("rx", letter_of(text_of(arg, "type"))))
            return -1; /* references do not come from outside */
        v[a] = strtoull(text_of(arg, "value"), NULL, 10);
    }
    return (int)bh_wasm_call(s->instances[i], func, v);
}

/* The suite's texts of traps. */
static bool trap_fits(int trap, const char *text)
{
    static const struct {
        const char *text;
        enum bh_wasm_trap trap;
    } all[] = {
        {"unreachable", BH_WASM_UNREACHABLE},
        {"out of bounds memory access", BH_WASM_BAD_MEMORY},
        {"out of bounds table access", BH_WASM_BAD_TABLE},
        {"undefined element", BH_WASM_BAD_TABLE},
        {"undefined", BH_WASM_BAD_TABLE},
        {"uninitialized", BH_WASM_BAD_TABLE},
        {"indirect call type mismatch", BH_WASM_BAD_CALL},
        {"indirect call", BH_WASM_BAD_CALL},
        {"integer divide by zero", BH_WASM_DIVIDE},
        {"integer overflow", BH_WASM_OVERFLOW},
        {"invalid conversion to integer", BH_WASM_CONVERT},
        {"call stack exhausted", BH_WASM_DEPTH},
    };

    for (size_t i = 0; i < BH_ARRAY_LEN(all); i++)
        if (strncmp(text, all[i].text, strlen(all[i].text)) == 0)
            return (int)all[i].trap == trap;
    return false;
}

static void check_action(struct script *s, const json_t *command, const char *type)
{
    uint64_t v[64] = {0};
    const char *word = NULL;
    int trap = run_action(s, json_object_get(command, "action"), v, &word);

    if (trap < 0) {
        s->refused++;
    } else if (bh_streq(type, "assert_trap") || bh_streq(type, "assert_exhaustion")) {
        if (!trap_fits(trap, text_of(command, "text")))
            fail(s, command, "another trap", text_of(command, "text"));
        else
            s->passed++;
    } else if (trap != BH_WASM_DONE) {
        fail(s, command, "a trap", "");
    } else {
        const json_t *expected = json_object_get(command, "expected");
        bool right = true;
        for (size_t i = 0; bh_streq(type, "assert_return") && i < json_array_size(expected); i++)
            if (!is_value(json_array_get(expected, i), v[i]))
                right = false;
        if (right)
            s->passed++;
        else
            fail(s, command, "another result",
                 text_of(json_object_get(command, "action"), "field"));
    }
}

static void check_rejected(struct script *s, const json_t *command, const char *type)
{
    struct bh_wasm_module *m = NULL;
    struct bh_err err = {""};
    int rc;

    if (bh_streq(text_of(command, "module_type"), "text"))
        return; /* wabt's own work */
    if (bh_streq(type, "assert_unlinkable") || bh_streq(type, "assert_uninstantiable")) {
        int last = s->last;
        rc = instantiate(s, command, &err);
        s->last = last;
    } else {
        rc = load_file(s, command, &m, &err);
        bh_wasm_unload(m);
    }
    if (rc < 0 && err.msg[0])
        s->passed++;
    else
        fail(s, command, "was accepted", text_of(command, "text"));
}

static void run_command(struct script *s, const json_t *command)
{
    const char *type = text_of(command, "type"), *name = text_of(command, "name");
    struct bh_err err = {""};

    if (bh_streq(type, "module")) {
        if (instantiate(s, command, &err) == 0)
            s->passed++;
        else if (refused(err.msg)) {
            s->refused++;
            s->shared = s->shared || s->registered;
        } else
            fail(s, command, "was not accepted", err.msg);
        if (*name)
            json_object_set_new(s->names, name, json_integer(s->last));
    } else if (bh_streq(type, "register")) {
        s->registered = true;
    } else if (json_object_get(command, "action")) {
        check_action(s, command, type);
    } else {
        check_rejected(s, command, type);
    }
}

static void run_script(const char *dir, const char *file, bool compiled, unsigned *refusals)
{
    struct script s = {.file = (char *)file, .last = -1, .compiled = compiled};
    static unsigned number;

    s.folder = bh_asprintf("%s/%u", bh_test_tmpdir(), number++);
    BH_CLEANUP(bh_freep)
    char *command =
        bh_asprintf("mkdir -p '%s' && wast2json '%s/%s' -o '%s/all.json' >'%s/log' 2>&1", s.folder,
                    dir, file, s.folder, s.folder);
    BH_CLEANUP(bh_freep) char *json = bh_asprintf("%s/all.json", s.folder);
    int status = system(command);
    if (status != 0) {
        printf("# %s: wast2json cannot read it\n", file);
        s.refused++;
        s.failed += !refusals;
    } else {
        json_t *all = json_load_file(json, 0, NULL);
        const json_t *commands = json_object_get(all, "commands");
        s.names = json_object();
        for (size_t i = 0; i < json_array_size(commands); i++)
            run_command(&s, json_array_get(commands, i));
        json_decref(s.names);
        json_decref(all);
    }
    for (unsigned i = 0; i < s.n; i++) {
        bh_wasm_free(s.instances[i]);
        bh_wasm_unload(s.modules[i]);
    }
    free(s.folder);
    printf("# %s: %u right, %u wrong, %u not for this engine\n", file, s.passed, s.failed,
           s.refused);
    CU_ASSERT(s.failed == 0);
    if (refusals)
        *refusals += s.refused;
    else
        CU_ASSERT(s.refused == 0 && s.passed > 0);
}

static int is_wast(const struct dirent *e)
{
    size_t n = strlen(e->d_name);
    return n > 5 && bh_streq(e->d_name + n - 5, ".wast");
}

static void run_folder(const char *dir, bool compiled, unsigned *refusals)
{
    struct dirent **files = NULL;
    int n;

    if (system("command -v wast2json >/dev/null") != 0) {
        bh_test_skip("wast2json (package wabt) is not installed");
        return;
    }
    n = scandir(dir, &files, is_wast, alphasort);
    CU_ASSERT(n > 0);
    for (int i = 0; i < n; i++) {
        run_script(dir, files[i]->d_name, compiled, refusals);
        free(files[i]);
    }
    free(files);
}

static void test_our_own_scripts(void)
{
    run_folder("tests/unit/common/wasm", false, NULL);
}

static void test_our_own_scripts_compiled(void)
{
    run_folder("tests/unit/common/wasm", true, NULL);
}

static void test_scripts_of_a_folder(void)
{
    const char *dir = getenv("BERTH_WAST_DIR");
    unsigned refusals = 0;

    if (!dir) {
        bh_test_skip("BERTH_WAST_DIR is not set");
        return;
    }
    run_folder(dir, getenv("BERTH_WAST_COMPILED"), &refusals);
    printf("# %u not for this engine\n", refusals);
}

BH_TESTS("common/wasm/wast", {"our own scripts", test_our_own_scripts},
         {"our own scripts, compiled", test_our_own_scripts_compiled},
         {"scripts of a folder", test_scripts_of_a_folder})
