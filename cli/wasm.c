/* SPDX-License-Identifier: Apache-2.0
 *
 * cli/wasm.c - `berth wasm`: what a WebAssembly guest is, and its functions called by hand
 */
#include <errno.h>
#include <float.h>
#include <limits.h>

#include "cli/cli.h"
#include "common/wasm/store.h"
#include "scheduler/wasm/guest.h"

#define WHO_CHECK "berth wasm check"
#define WHO_RUN   "berth wasm run"

/* What berth wasmc has made of it has to be there. */
static int use_compiled(struct bh_wasm_module *m, const struct bh_buf *b, struct bh_err *err)
{
    char sha256[65];

    bh_wasm_digest(b->p, b->n, sha256);
    int rc = bh_wasm_use_compiled(m, sha256, err);
    if (rc == 0)
        rc = bh_err_set(err, -ENOENT, "it is not compiled: there is no %s.so in %s", sha256,
                        bh_wasm_cache_dir());
    return rc < 0 ? rc : 0;
}

static int load(const char *path, bool compiled, struct bh_wasm_module **ret, size_t *ret_bytes,
                struct bh_err *err)
{
    struct bh_buf b BH_CLEANUP(bh_buf_fini) = {0};
    int rc = bh_cli_read(path, BH_WASM_BYTES_MAX, &b);

    if (rc < 0)
        return bh_err_set(err, rc, "%s: %s", path, strerror(-rc));
    *ret_bytes = b.n;
    rc = bh_wasm_load(bh_buf_str(&b), b.n, ret, err);
    if (rc == 0 && compiled)
        rc = use_compiled(*ret, &b, err);
    return rc < 0 ? bh_err_prefix(err, rc, "%s", path) : 0;
}

/* ---- check ------------------------------------------------------------------------------------- */
static void add_items(const struct bh_wasm_module *m, struct bh_buf *b, const char *title,
                      const struct bh_wasm_item *v, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        bh_buf_addf(b, "  %-9s ", i ? "" : title);
        if (v[i].module.p) {
            bh_buf_add_json_str(b, v[i].module.p, v[i].module.n);
            bh_buf_addc(b, ' ');
        }
        bh_buf_add_json_str(b, v[i].name.p, v[i].name.n);
        bh_buf_addc(b, ' ');
        bh_wasm_add_type(m, &v[i], b);
        bh_buf_addc(b, '\n');
    }
}

/* false: a hook has another type than the scheduler calls. */
static bool add_hooks(const struct bh_wasm_module *m, struct bh_buf *b)
{
    const char *between = "", *type = NULL;
    uint32_t func;
    bool right = true;

    bh_buf_adds(b, "  hooks     ");
    for (size_t i = 0; i < BH_GUEST_HOOKS; i++) {
        const struct bh_guest_export *e = &bh_guest_exports[i];
        int rc = bh_wasm_find(m, e->name, e->type, &func, &type);
        if (rc == -ENOENT)
            continue;
        bh_buf_addf(b, "%s%s", between, e->name);
        if (rc < 0)
            bh_buf_addf(b, " (wrong signature, should be %s)", bh_guest_signature(e->type));
        between = ", ";
        right = right && rc == 0;
    }
    bh_buf_adds(b, *between ? "\n" : "none\n");
    return right;
}

static bool check_one(const char *path, struct bh_buf *b)
{
    struct bh_wasm_module *m = NULL;
    struct bh_err err = {0};
    size_t bytes = 0, n;

    if (load(path, false, &m, &bytes, &err) < 0) {
        bh_buf_addf(b, "%s\n", err.msg);
        return false;
    }
    bh_buf_addf(b, "%s: valid\n  size      %zu bytes, %zu when translated\n", path, bytes,
                bh_wasm_code_bytes(m));
    bool right = add_hooks(m, b);
    size_t at = b->n;
    bh_buf_adds(b, "  uses      ");
    n = b->n;
    bh_wasm_add_features(m, b);
    if (b->n == n)
        b->n = at;
    else
        bh_buf_addc(b, '\n');
    if (bh_wasm_has_start(m))
        bh_buf_adds(b, "  start     runs a function when it is instantiated\n");
    const struct bh_wasm_item *v = bh_wasm_imports(m, &n);
    add_items(m, b, "imports", v, n);
    v = bh_wasm_exports(m, &n);
    add_items(m, b, "exports", v, n);
    bh_wasm_unload(m);
    return right;
}

static int check(int argc, char **argv)
{
    const struct bh_opt table[] = {{0}};
    struct bh_opt_list files BH_CLEANUP(bh_opt_list_fini) = {0};
    struct bh_buf out = {0};
    struct bh_err err = {0};
    int rc = bh_opt_parse(table, bh_cli_help(WHO_CHECK), argc, argv, &files, &err);
    bool right = true;

    if (rc == 0 && !files.n)
        rc = bh_err_set(&err, -EINVAL, "say which file to check, or - for standard input");
    if (rc != 0)
        return bh_cli_usage(WHO_CHECK, rc, &err);
    for (size_t i = 0; i < files.n; i++)
        right = check_one(files.v[i], &out) && right;
    rc = bh_cli_print(WHO_CHECK, &out);
    return right ? rc : BH_EXIT_FAIL;
}

/* ---- run --------------------------------------------------------------------------------------- */
static int read_number(const char *text, char type, uint64_t *ret, struct bh_err *err)
{
    char *end = NULL;
    bool minus = text[0] == '-', wide = type == 'I';
    float f;
    double d;

    errno = 0;
    if (type == 'f') {
        f = strtof(text, &end);
        memset(ret, 0, sizeof *ret);
        memcpy(ret, &f, sizeof f);
    } else if (type == 'F') {
        d = strtod(text, &end);
        memcpy(ret, &d, sizeof d);
    } else if (minus) {
        long long v = strtoll(text, &end, 0);
        *ret = wide ? (uint64_t)v : (uint32_t)v;
        errno = errno || (!wide && v < INT32_MIN) ? ERANGE : 0;
    } else {
        *ret = strtoull(text, &end, 0);
        errno = errno || (!wide && *ret > UINT32_MAX) ? ERANGE : 0;
    }
    if (end == text || *end || (errno == ERANGE && type != 'f' && type != 'F'))
        return bh_err_set(err, -EINVAL, "argument %s is no %s", text,
                          type == 'f'   ? "f32"
                          : type == 'F' ? "f64"
                          : wide        ? "i64"
                                        : "i32");
    return 0;
}

static void add_result(struct bh_buf *b, char type, uint64_t v)
{
    float f;
    double d;

    memcpy(&f, &v, sizeof f);
    memcpy(&d, &v, sizeof d);
    switch (type) {
    case 'i':
        bh_buf_addf(b, "i32:%d\n", (int32_t)v);
        break;
    case 'I':
        bh_buf_addf(b, "i64:%lld\n", (long long)v);
        break;
    case 'f':
        bh_buf_addf(b, "f32:%.*g\n", FLT_DECIMAL_DIG, (double)f);
        break;
    case 'F':
        bh_buf_addf(b, "f64:%.*g\n", DBL_DECIMAL_DIG, d);
        break;
    default:
        bh_buf_addf(b, "%s\n", v ? "reference" : "null");
    }
}

/* words: FILE EXPORT ARGUMENT... */
static int run_export(const struct bh_wasm_module *m, const struct bh_opt_list *words,
                      const struct bh_wasm_limits *limits, struct bh_buf *out, struct bh_err *err)
{
    struct bh_wasm *w = NULL;
    struct bh_buf trap BH_CLEANUP(bh_buf_fini) = {0};
    const char *type = NULL, *name = words->v[1];
    uint64_t v[256] = {0};
    uint32_t func;
    int rc = bh_wasm_find(m, name, NULL, &func, &type);

    if (rc < 0)
        return bh_err_set(err, rc, "no function %s is exported", name);
    size_t takes = (size_t)(strchr(type, ':') - type), has = words->n - 2;
    if (strcspn(type, "rx") < takes)
        return bh_err_set(err, -EINVAL, "%s takes references", name);
    if (takes != has)
        return bh_err_set(err, -EINVAL, "%s takes %zu arguments, there are %zu", name, takes, has);
    for (size_t i = 0; i < takes; i++)
        if ((rc = read_number(words->v[2 + i], type[i], &v[i], err)) < 0)
            return rc;
    if ((rc = bh_wasm_new(m, NULL, 0, NULL, limits, &w, err)) < 0)
        return rc;
    if (bh_wasm_start(w) != BH_WASM_DONE || bh_wasm_call(w, func, v) != BH_WASM_DONE) {
        bh_wasm_add_trap(w, &trap);
        rc = bh_err_set(err, -EFAULT, "%s", bh_buf_str(&trap));
    }
    bh_wasm_free(w);
    if (rc < 0)
        return rc;
    for (size_t i = 0; type[takes + 1 + i]; i++)
        add_result(out, type[takes + 1 + i], v[i]);
    return 0;
}

static int run(int argc, char **argv)
{
    struct bh_wasm_limits limits = BH_WASM_LIMITS;
    int64_t limit_ns = (int64_t)limits.call_ns, pages = limits.pages;
    bool compiled = false;
    const struct bh_opt table[] = {
        {"limit", 0, BH_OPT_DURATION_NS, &limit_ns, "DURATION",
         "time that the call may take, 0 for any"},
        {"pages", 0, BH_OPT_LEVEL, &pages, "N", "memory that it may have, in 64 KiB"},
        {"compiled", 0, BH_OPT_BOOL, &compiled, NULL, "run what berth wasmc has made of it"},
        {0},
    };
    struct bh_opt_list words BH_CLEANUP(bh_opt_list_fini) = {0};
    struct bh_wasm_module *m = NULL;
    struct bh_buf out = {0};
    struct bh_err err = {0};
    size_t bytes = 0;
    int rc = bh_opt_parse(table, bh_cli_help(WHO_RUN), argc, argv, &words, &err);

    if (rc == 0 && words.n < 2)
        rc = bh_err_set(&err, -EINVAL, "say which file, and which of its functions");
    if (rc == 0 && limit_ns < 0)
        rc = bh_err_set(&err, -EINVAL, "--limit: expected 0s or more");
    if (rc != 0)
        return bh_cli_usage(WHO_RUN, rc, &err);
    limits.call_ns = (uint64_t)limit_ns;
    limits.pages = (uint32_t)pages;
    if ((rc = load(words.v[0], compiled, &m, &bytes, &err)) == 0)
        rc = run_export(m, &words, &limits, &out, &err);
    bh_wasm_unload(m);
    if (rc == 0)
        return bh_cli_print(WHO_RUN, &out);
    bh_buf_fini(&out);
    return bh_cli_fail(WHO_RUN, &err);
}

int bh_cmd_wasm(int argc, char **argv)
{
    static const struct bh_cli_command commands[] = {
        {"check", check, "what is in a guest, and what is wrong with it"},
        {"run", run, "call a function that a module exports"}};

    return bh_cli_dispatch("berth wasm", "WebAssembly guests: plugins in any language", commands,
                           BH_ARRAY_LEN(commands), argc, argv);
}
