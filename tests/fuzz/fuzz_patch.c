/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/fuzz/fuzz_patch.c - the three patch languages and server-side apply on any two documents
 *
 * Input: one line with the document, one with the patch. All languages run; results must be
 * writable and no deeper than the reader accepts. A diff of document and patch, applied, must give
 * the patch's value when that holds no null (which a merge patch cannot express). What a manager
 * applied it can apply again without a change.
 */
#include "common/data/apply.h"
#include "common/data/patch.h"

#include <errno.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void readable(struct bh_arena *a, const struct bh_json *v)
{
    struct bh_json *back;
    struct bh_err err;
    struct bh_buf b = {0};
    bh_json_write(&b, v);
    bh_assert(bh_json_parse(a, b.p, b.n, BH_JSON_STRICT | BH_JSON_NUL, &back, &err) == 0);
    bh_assert(bh_json_equal(v, back));
    bh_buf_fini(&b);
}

static bool has_null(const struct bh_json *v)
{
    bool found = v->type == BH_JSON_NULL;
    if (v->type == BH_JSON_OBJECT) {
        bh_json_each(m, v)
            found = found || has_null(m);
    }
    return found;
}

static void apply(struct bh_arena *a, const struct bh_json *live, const struct bh_json *config)
{
    struct bh_apply_op op = {.kind = "Pod",
                             .api_version = "v1",
                             .manager = "fuzz",
                             .time = "2026-01-01T00:00:00Z",
                             .force = true};
    struct bh_json *out, *again, *why;
    struct bh_err err;
    if (live->type != BH_JSON_OBJECT || config->type != BH_JSON_OBJECT)
        return;
    if (bh_apply_ssa(a, &op, live, config, &out, &why, &err) == 0) {
        readable(a, out);
        int rc = bh_apply_ssa(a, &op, out, config, &again, &why, &err);
        bh_assert(rc == -E2BIG || (rc == 0 && bh_json_equal(out, again)));
    }
    out = bh_json_clone(a, config);
    if (out && bh_apply_track_update(a, &op, live, out, &err) == 0)
        readable(a, out);
}

static void run(struct bh_arena *a, const struct bh_json *doc, const struct bh_json *patch)
{
    static const char *const kinds[] = {"Pod", "Deployment", "Node", "Service"};
    struct bh_json *out;
    struct bh_err err;
    if (bh_patch_json(a, doc, patch, &out, &err) == 0)
        readable(a, out);
    if (bh_patch_merge(a, doc, patch, &out, &err) == 0)
        readable(a, out);
    for (size_t i = 0; i < BH_ARRAY_LEN(kinds); i++) {
        if (bh_patch_strategic(a, kinds[i], doc, patch, &out, &err) == 0)
            readable(a, out);
    }
    apply(a, doc, patch);
    struct bh_json *diff = bh_patch_diff(a, doc, patch);
    if (diff && !has_null(patch) && bh_patch_merge(a, doc, diff, &out, &err) == 0)
        bh_assert(bh_json_equal(out, patch));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *p = (const char *)data, *nl = size ? memchr(p, '\n', size) : NULL;
    struct bh_json *doc, *patch;
    struct bh_arena a;
    if (!nl || size > 16384)
        return 0;
    size_t n = (size_t)(nl - p);
    bh_arena_init(&a, 16 << 20);
    if (bh_json_parse(&a, p, n, BH_JSON_NUL, &doc, NULL) == 0 &&
        bh_json_parse(&a, nl + 1, size - n - 1, BH_JSON_NUL, &patch, NULL) == 0)
        run(&a, doc, patch);
    bh_arena_fini(&a);
    return 0;
}
