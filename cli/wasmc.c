/* SPDX-License-Identifier: Apache-2.0
 *
 * cli/wasmc.c - `berth wasmc`: a WebAssembly guest compiled ahead of time
 */
#include <errno.h>

#include "cli/cli.h"
#include "common/wasm/store.h"
#include "common/wasm/wasm.h"

#define WHO "berth wasmc"

struct wasmc {
    const char *cache;
    struct bh_wasm_build how;
    bool print;
};

/* What was made is loaded as the scheduler is going to. */
static int made(struct bh_wasm_module *m, const char *sha256, const char *path, struct bh_err *err)
{
    int rc = bh_wasm_use_compiled(m, sha256, err);

    if (rc < 0)
        return bh_err_prefix(err, rc, "it is made, but will not be used");
    bh_assert(rc == 1);
    printf("%s\n", path);
    return 0;
}

static int one(struct wasmc *o, const char *file, struct bh_err *err)
{
    struct bh_buf b BH_CLEANUP(bh_buf_fini) = {0}, c BH_CLEANUP(bh_buf_fini) = {0};
    BH_CLEANUP(bh_freep) char *path = NULL;
    struct bh_wasm_module *m = NULL;
    char sha256[65];
    int rc = bh_cli_read(file, BH_WASM_BYTES_MAX, &b);

    if (rc < 0)
        return bh_err_set(err, rc, "%s: %s", file, strerror(-rc));
    bh_wasm_digest(bh_buf_str(&b), b.n, sha256);
    rc = bh_wasm_load(bh_buf_str(&b), b.n, &m, err);
    if (rc == 0 && o->print) {
        rc = bh_wasm_add_c(m, sha256, &c, err);
        rc = rc < 0 ? rc : bh_cli_print(WHO, &c) == BH_EXIT_OK ? 0 : -EIO;
    } else if (rc == 0) {
        rc = bh_wasm_build(m, sha256, bh_wasm_cache_dir(), &o->how, &path, err);
        rc = rc < 0 ? rc : made(m, sha256, path, err);
        if (rc == 0 && o->how.hasty)
            fprintf(stderr, WHO ": %s: %u of %u parts were compiled with -O1: -O2 took too long\n",
                    file, o->how.hasty, o->how.files);
    }
    bh_wasm_unload(m);
    return rc < 0 ? bh_err_prefix(err, rc, "%s", file) : 0;
}

int bh_cmd_wasmc(int argc, char **argv)
{
    struct wasmc o = {.how.cc = "cc"};
    int64_t cpu_s = 60;
    const struct bh_opt table[] = {
        {"cache", 0, BH_OPT_STR, &o.cache, "DIR",
         "where it is put (default $BERTH_WASM_CACHE or " BH_WASM_CACHE ")"},
        {"cc", 0, BH_OPT_STR, &o.how.cc, "PROGRAM", "the C compiler"},
        {"cpu", 0, BH_OPT_INT, &cpu_s, "SECONDS",
         "what it may take of a processor for a part of the guest (default 60); then the part is "
         "compiled with -O1"},
        {"print", 0, BH_OPT_BOOL, &o.print, NULL, "print the C instead of compiling it"},
        {0}};
    struct bh_opt_list files BH_CLEANUP(bh_opt_list_fini) = {0};
    struct bh_err err = {0};
    int rc = bh_opt_parse(table, bh_cli_help(WHO), argc, argv, &files, &err);

    if (rc == 0 && !files.n)
        rc = bh_err_set(&err, -EINVAL, "say which guest to compile");
    if (rc == 0 && o.print && files.n > 1)
        rc = bh_err_set(&err, -EINVAL, "--print takes one guest");
    if (rc == 0 && (cpu_s < 1 || cpu_s > 86400))
        rc = bh_err_set(&err, -EINVAL, "invalid value for --cpu: 1 to 86400");
    if (rc != 0)
        return bh_cli_usage(WHO, rc, &err);
    o.how.cpu_s = (uint32_t)cpu_s;
    if (o.cache)
        setenv("BERTH_WASM_CACHE", o.cache, 1);
    for (size_t i = 0; i < files.n; i++)
        if (one(&o, files.v[i], &err) < 0)
            return bh_cli_fail(WHO, &err);
    return BH_EXIT_OK;
}
