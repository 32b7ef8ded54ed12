/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/fuzz/fuzz_admission.c - any JSON as an object of any kind: stored or refused
 *
 * First line: the kind. Rest: the object. What is stored must print as a table row, and writing it
 * back as it is must be accepted and change nothing: defaults are idempotent, and what was valid
 * once stays valid.
 */
#include "common/base/loop.h"
#include "simulator/server/server.h"
#include "simulator/server/sim.h"

#include <stdio.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct bh_sim *server(void)
{
    static const struct bh_sim_options o = {.no_controllers = true, .first_revision = 1};
    static uv_loop_t loop;
    static struct bh_sim *s;
    struct bh_err err;

    if (!s) {
        uv_loop_init(&loop);
        if (bh_sim_new_bare(&loop, &o, &s, &err) < 0)
            abort();
    }
    return s;
}

static void check_stored(struct bh_sim *s, struct bh_arena *a, struct bh_sim_obj *o)
{
    struct bh_sim_error e = {0};
    struct bh_sim_obj *again = NULL;
    struct bh_buf b = {0};
    struct bh_json *row = NULL;
    struct bh_err err;

    bh_sim_table_cells(o->type, bh_sim_obj_tree(a, o), bh_sim_now_ns(s), &b);
    if (bh_json_parse(a, b.p, b.n, BH_JSON_STRICT | BH_JSON_NUL, &row, &err) < 0)
        abort();
    bh_buf_fini(&b);
    bh_sim_update(s, o->type, o->ns, o->name, BH_SIM_MAIN, a, bh_sim_obj_tree(a, o), &again, &e);
    if (e.code || again->rv != o->rv) {
        fprintf(stderr, "%s\n%s\n%s\n", e.message, o->json, again ? again->json : "");
        abort();
    }
    bh_sim_obj_unref(again);
}

/* A fresh store would be slow; what is left by one input must not meet the next. */
static void remove_it(struct bh_sim *s, struct bh_sim_obj *o)
{
    const struct bh_sim_delete_options now = {.grace_s = 0};

    bh_sim_delete(s, o->type, o->ns, o->name, &now, NULL);
}

/* *ret_at: where the object begins. */
static const struct bh_sim_type *kind_of(const uint8_t *data, size_t size, size_t *ret_at)
{
    const uint8_t *nl = memchr(data, '\n', BH_MIN(size, (size_t)60));
    const struct bh_sim_type *t;
    char kind[64] = "";

    if (!nl)
        return NULL;
    memcpy(kind, data, (size_t)(nl - data));
    *ret_at = (size_t)(nl - data) + 1;
    t = bh_sim_type_of_kind(NULL, kind);
    return t && !(t->flags & BH_SIM_REVIEW) && !t->stored_as ? t : NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bh_sim *s = server();
    struct bh_sim_error e = {0};
    struct bh_sim_obj *o = NULL;
    struct bh_json *v = NULL, *meta;
    const struct bh_sim_type *t;
    struct bh_arena a;
    struct bh_err err;
    size_t at;

    t = kind_of(data, size, &at);
    if (!t)
        return 0;
    bh_arena_init(&a, 64 << 20);
    if (bh_json_parse(&a, (const char *)data + at, size - at, BH_JSON_NUL, &v, &err) == 0 &&
        v->type == BH_JSON_OBJECT) {
        meta = bh_json_get(v, "metadata");
        if (meta && meta->type == BH_JSON_OBJECT) {
            /* What other code tests: names, and finalizers that would keep the object. */
            bh_json_unset(meta, "name");
            bh_json_unset(meta, "namespace");
            bh_json_unset(meta, "resourceVersion");
            bh_json_unset(meta, "finalizers");
            bh_json_set_str(&a, meta, "name", "f");
        }
        bh_sim_create(s, t, "default", &a, v, &o, &e);
    }
    if (o) {
        check_stored(s, &a, o);
        remove_it(s, o);
        bh_sim_obj_unref(o);
    }
    bh_arena_fini(&a);
    return 0;
}
