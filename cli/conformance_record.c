/* SPDX-License-Identifier: Apache-2.0
 *
 * cli/conformance_record.c - `berth conformance --through-record`: a decision through the bytes in
 * which a scheduler keeps it
 */
#include <errno.h>

#include "cli/conformance.h"
#include "scheduler/decisions/record.h"
#include "scheduler/explain/explain.h"

struct bh_through {
    struct bh_engine *e;
    struct bh_packer packer;
    struct bh_buf head, body, before, after;
    uint32_t *by_name;
};

struct bh_through *bh_through_new(struct bh_engine *e)
{
    struct bh_through *t = bh_calloc(1, sizeof(*t));

    t->e = e;
    return t;
}

void bh_through_free(struct bh_through *t)
{
    if (!t)
        return;
    bh_buf_fini(&t->head);
    bh_buf_fini(&t->body);
    bh_buf_fini(&t->before);
    bh_buf_fini(&t->after);
    bh_packer_fini(&t->packer);
    free(t->by_name);
    free(t);
}

static int by_text(const void *a, const void *b, void *arg)
{
    const struct bh_through *t = arg;
    const bh_sym *name = t->packer.list.name;
    const struct bh_symtab *tab = bh_engine_symtab(t->e);

    return strcmp(bh_sym_text(tab, name[*(const uint32_t *)a]),
                  bh_sym_text(tab, name[*(const uint32_t *)b]));
}

static void explain(struct bh_through *t, struct bh_arena *a, const struct bh_decision *d,
                    struct bh_buf *out)
{
    static const struct bh_explain_subject pod = {.namespace_ = "", .name = ""};

    bh_buf_reset(out);
    bh_json_write(out, bh_explain_decision(a, &pod, bh_engine_symtab(t->e), d));
}

static void pack(struct bh_through *t, const struct bh_decision *d)
{
    static const struct bh_record_after none;
    struct bh_record_head h = {.mode = BH_RECORD_FULL,
                               .n_nodes = d->n_nodes,
                               .evaluated = d->evaluated,
                               .feasible = d->feasible,
                               .profile = "",
                               .trigger = "",
                               .nominated = ""};

    bh_record_set_texts(&h, d);
    bh_buf_reset(&t->head);
    bh_buf_reset(&t->body);
    bh_record_pack_head(&t->head, &h);
    bh_record_pack_points(&t->head, &h);
    bh_record_pack(&t->packer, t->e, d, &t->body);
    bh_record_pack_after(&t->body, &none);
}

const struct bh_decision *bh_through_record(struct bh_through *t, struct bh_arena *a,
                                            const struct bh_decision *d, struct bh_err *err)
{
    struct bh_recorded *got = bh_arena_new(a, struct bh_recorded);
    struct bh_record_head h;

    pack(t, d);
    const struct bh_node_list *l = &t->packer.list;
    t->by_name = bh_reallocarray(t->by_name, l->n + 1, sizeof(*t->by_name));
    for (uint32_t i = 0; i < l->n; i++)
        t->by_name[i] = i;
    if (l->n > 1)
        qsort_r(t->by_name, l->n, sizeof(*t->by_name), by_text, t);
    struct bh_record_names names = {bh_engine_symtab(t->e), l->name, t->by_name, l->n};
    int rc = bh_record_unpack_head(a, t->head.p, t->head.n, &h);
    if (rc == 0)
        rc = bh_record_unpack(a, &names, &h, t->body.p, t->body.n, got);
    if (rc < 0) {
        bh_err_set(err, rc, "the record of a decision cannot be read");
        return NULL;
    }
    explain(t, a, d, &t->before);
    explain(t, a, &got->d, &t->after);
    if (!bh_streq(bh_buf_str(&t->before), bh_buf_str(&t->after))) {
        bh_err_set(err, -EIO, "the record explains a decision otherwise");
        return NULL;
    }
    return &got->d;
}
