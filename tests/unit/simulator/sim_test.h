/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/simulator/sim_test.h - a server in the test's own loop, with or without HTTP
 */
#ifndef BH_SIM_TEST_H
#define BH_SIM_TEST_H

#include "common/base/loop.h"
#include "simulator/server/server.h"
#include "simulator/server/sim.h"
#include "tests/unit/harness.h"
#include <stdio.h>

struct fixture {
    uv_loop_t loop;
    struct bh_sim *s;
    struct bh_arena a;
    struct bh_sim_error e;
};

static inline void fixture_init(struct fixture *f, const struct bh_sim_options *o, bool http)
{
    struct bh_sim_options plain = {.no_controllers = true, .first_revision = 100};
    struct bh_err err = {{0}};
    memset(f, 0, sizeof(*f));
    uv_loop_init(&f->loop);
    bh_arena_init(&f->a, 0);
    int rc = http ? bh_sim_new(&f->loop, o ? o : &plain, &f->s, &err)
                  : bh_sim_new_bare(&f->loop, o ? o : &plain, &f->s, &err);
    if (rc < 0) {
        fprintf(stderr, "cannot start the server: %s\n", err.msg);
        abort();
    }
}

static inline void fixture_fini(struct fixture *f)
{
    bh_sim_free(f->s);
    bh_loop_drain_close(&f->loop);
    bh_arena_fini(&f->a);
}

static inline const struct bh_sim_type *type_of(const char *plural)
{
    for (size_t i = 0; i < bh_sim_n_types; i++) {
        if (bh_streq(bh_sim_types[i].plural, plural))
            return &bh_sim_types[i];
    }
    abort();
}

static inline struct bh_json *parse(struct fixture *f, const char *text)
{
    struct bh_json *v = NULL;
    struct bh_err err = {{0}};
    if (bh_json_parse(&f->a, text, strlen(text), BH_JSON_STRICT, &v, &err) < 0) {
        fprintf(stderr, "bad JSON in the test: %s\n", err.msg);
        abort();
    }
    return v;
}

/* Creates from text; the code goes back, the reason stays in f->e. */
static inline int create(struct fixture *f, const char *plural, const char *ns, const char *text,
                         struct bh_sim_obj **ret)
{
    f->e = (struct bh_sim_error){0};
    return bh_sim_create(f->s, type_of(plural), ns, &f->a, parse(f, text), ret, &f->e);
}

static inline int create_pod(struct fixture *f, const char *name)
{
    char text[300];
    snprintf(text, sizeof(text),
             "{\"metadata\":{\"name\":\"%s\",\"labels\":{\"app\":\"x\"}},\"spec\":{\"containers\":"
             "[{\"name\":\"c\",\"image\":\"i\"}]}}",
             name);
    return create(f, "pods", "default", text, NULL);
}

static inline struct bh_sim_obj *get(struct fixture *f, const char *plural, const char *ns,
                                     const char *name)
{
    return bh_sim_get(f->s, type_of(plural), ns, name);
}

/* A member of a stored object as text; "" when absent. Valid until the arena goes. */
static inline const char *field(struct fixture *f, const struct bh_sim_obj *o, const char *path)
{
    const struct bh_json *v = bh_json_path(bh_sim_obj_tree(&f->a, o), path);
    if (!v)
        return "";
    if (v->type == BH_JSON_STRING || v->type == BH_JSON_NUMBER)
        return v->s.p;
    struct bh_buf b = {0};
    bh_json_write(&b, v);
    const char *text = bh_arena_strdup(&f->a, bh_buf_str(&b));
    bh_buf_fini(&b);
    return text;
}

#endif
