/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/simulator/admission/admission_test.h - objects as YAML, refusals as text
 */
#ifndef BH_ADMISSION_TEST_H
#define BH_ADMISSION_TEST_H

#include "common/data/yaml.h"
#include "tests/unit/simulator/sim_test.h"

static inline struct bh_json *yaml(struct fixture *f, const char *text)
{
    struct bh_json *v = NULL;
    struct bh_err err = {{0}};

    if (bh_yaml_parse(&f->a, text, strlen(text), BH_JSON_STRICT, &v, &err) < 0) {
        fprintf(stderr, "bad YAML in the test: %s\n", err.msg);
        abort();
    }
    return v;
}

/* Creates from YAML; the object goes back (borrowed from the store), NULL when refused. */
static inline struct bh_sim_obj *make(struct fixture *f, const char *kind, const char *ns,
                                      const char *text)
{
    const struct bh_sim_type *t = bh_sim_type_of_kind(NULL, kind);
    struct bh_sim_obj *o = NULL;

    f->e = (struct bh_sim_error){0};
    bh_sim_create(f->s, t, ns, &f->a, yaml(f, text), &o, &f->e);
    if (o)
        bh_sim_obj_unref(o); /* the store holds it */
    return o;
}

/* RFC 7386 merge of the stored object with YAML, then an update. 0 or the code. */
static inline int change(struct fixture *f, const char *kind, const char *ns, const char *name,
                         enum bh_sim_sub sub, const char *path, const char *value)
{
    const struct bh_sim_type *t = bh_sim_type_of_kind(NULL, kind);
    const struct bh_sim_obj *o = bh_sim_get(f->s, t, ns, name);
    struct bh_json *tree, *at;
    char *p, *dot;

    if (!o)
        return 404;
    tree = bh_sim_obj_tree(&f->a, o);
    p = bh_arena_strdup(&f->a, path);
    for (at = tree; (dot = strchr(p, '.')); p = dot + 1) {
        *dot = 0;
        at = bh_json_obj_at(&f->a, at, p);
    }
    if (value)
        bh_json_set(&f->a, at, p, yaml(f, value));
    else
        bh_json_unset(at, p);
    f->e = (struct bh_sim_error){0};
    return bh_sim_update(f->s, t, ns, name, sub, &f->a, tree, NULL, &f->e);
}

/* All causes, one a line: "field: message". */
static inline const char *causes(struct fixture *f)
{
    struct bh_buf b = {0};
    const char *s;

    for (unsigned i = 0; i < f->e.n_causes; i++)
        bh_buf_addf(&b, "%s%s: %s", i ? "\n" : "", bh_sim_cause_field(&f->e, i),
                    bh_sim_cause_message(&f->e, i));
    s = bh_arena_strdup(&f->a, bh_buf_str(&b));
    bh_buf_fini(&b);
    return s;
}

#define EQ(got, want)                                                                              \
    do {                                                                                           \
        const char *got_ = (got), *want_ = (want);                                                 \
        if (!bh_streq(got_, want_))                                                                \
            fprintf(stderr, "%s:%d\n got  %s\n want %s\n", __FILE__, __LINE__, got_, want_);       \
        CU_ASSERT_STRING_EQUAL(got_, want_);                                                       \
    } while (0)

#define POD(spec)                                                                                  \
    "metadata: {name: p, labels: {app: x, rev: \"1\"}}\n"                                          \
    "spec:\n  containers: [{name: c, image: i}]\n" spec

#endif
