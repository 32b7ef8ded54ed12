/* SPDX-License-Identifier: Apache-2.0
 *
 * cli/record_openb.c - the production trace "openb" as a record file
 *
 * Nodes are there from the beginning. A pod's Add stands at its creation, its Delete at its
 * deletion. Where its own scheduler put a pod the trace does not tell.
 */
#include "cli/record.h"
#include "simulator/scenario/openb.h"

#include <errno.h>

struct moment {
    int64_t at_s;
    size_t pod;
    bool end;
};
struct trace {
    struct bh_record_file *file;
    const struct bh_record_openb *o;
    char **pods; /* JSON */
    struct moment *m;
    size_t n_pods, cap_pods, n_moments, cap_moments;
    struct bh_arena arena;
};

/* What ends makes room for what begins in the same second. */
static int by_time(const void *pa, const void *pb)
{
    const struct moment *a = pa, *b = pb;

    if (a->at_s != b->at_s)
        return a->at_s < b->at_s ? -1 : 1;
    if (a->end != b->end)
        return a->end ? -1 : 1;
    return (a->pod > b->pod) - (a->pod < b->pod);
}

static int64_t wall_ns(int64_t at_s)
{
    return BH_RECORD_EPOCH_NS + at_s * INT64_C(1000000000);
}

static int add_object(struct trace *t, int64_t at_s, bool end, const char *text, struct bh_err *err)
{
    struct bh_json *obj;

    bh_arena_reset(&t->arena);
    int rc = bh_json_parse(&t->arena, text, strlen(text), BH_JSON_NUL, &obj, err);
    if (rc < 0)
        return rc;
    struct bh_json *meta = bh_json_get(obj, "metadata");
    if (end)
        obj = bh_record_tombstone(
            &t->arena, bh_json_get_text(obj, "apiVersion"), bh_json_get_text(obj, "kind"),
            bh_json_get_text(meta, "namespace"), bh_json_get_text(meta, "name"));
    bh_record_file_add(t->file, wall_ns(at_s), end ? BH_RECORD_DELETE : BH_RECORD_ADD, obj);
    return 0;
}

static int on_node(void *arg, struct bh_openb_row *row, struct bh_err *err)
{
    struct trace *t = arg;

    return add_object(t, t->o->start_s, false, bh_buf_str(&row->json), err);
}

static void add_moment(struct trace *t, int64_t at_s, bool end)
{
    BH_GROW(t->m, t->n_moments, t->cap_moments);
    t->m[t->n_moments++] = (struct moment){at_s, t->n_pods, end};
}

static int on_pod(void *arg, struct bh_openb_row *row, struct bh_err *err)
{
    struct trace *t = arg;
    int64_t start = t->o->start_s, stop = t->o->end_s < 0 ? INT64_MAX : t->o->end_s;
    int64_t begins = BH_MAX(row->created_s, start);

    (void)err;
    if (begins > stop || (row->deleted_s >= 0 && row->deleted_s < start))
        return 0;
    add_moment(t, begins, false);
    if (row->deleted_s >= 0 && row->deleted_s <= stop)
        add_moment(t, BH_MAX(row->deleted_s, begins + 1), true); /* every pod lives a second */
    BH_GROW(t->pods, t->n_pods, t->cap_pods);
    t->pods[t->n_pods++] = bh_buf_take(&row->json);
    return 0;
}

int bh_record_openb(struct bh_record_file *f, const struct bh_record_openb *o, struct bh_err *err)
{
    struct trace t = {.file = f, .o = o};

    if (o->header)
        bh_record_file_header(f, wall_ns(o->start_s), false);
    int rc = bh_openb_read(o->nodes, false, on_node, &t, err);
    if (rc == 0)
        rc = bh_openb_read(o->pods, true, on_pod, &t, err);
    if (t.n_moments)
        qsort(t.m, t.n_moments, sizeof(*t.m), by_time);
    for (size_t i = 0; i < t.n_moments && rc == 0; i++)
        rc = add_object(&t, t.m[i].at_s, t.m[i].end, t.pods[t.m[i].pod], err);
    for (size_t i = 0; i < t.n_pods; i++)
        free(t.pods[i]);
    free(t.pods);
    free(t.m);
    bh_arena_fini(&t.arena);
    return rc;
}
