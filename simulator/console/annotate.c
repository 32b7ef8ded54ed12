/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/console/annotate.c - kube-scheduler-simulator's annotations on pods
 *
 * A timer looks into the file of decisions; a worker thread makes the annotations of what is new,
 * and the loop writes them. An attempt is written once: a failed one at once, also when it failed
 * as the one before did, one that got a node as soon as its bind is known. The pod must be the one
 * that was decided (its uid). What is older than this server is not written.
 */
#include "simulator/console/parts.h"

#include "common/base/log.h"
#include "scheduler/decisions/decisions.h"

#define LOOK_MS     50u
#define ROUND       200u                /* changes in one go */
#define ROUND_NS    UINT64_C(100000000) /* ... and no longer than that */
#define ROUND_BYTES ((size_t)32 << 20)
#define POD_MAX     ((size_t)262144) /* the API's limit for all annotations of an object */

struct note { /* for one pod */
    const char *ns, *name, *uid;
    struct bh_json *annotations;
};
struct round {
    struct bh_console_annotator *all;
    struct bh_arena a;
    struct note *v;
    uint32_t n;
    bool more;
};
struct bh_console_annotator {
    struct bh_console *c;
    struct bh_decisions *d; /* the round's, while one is under way */
    struct bh_decisions_cursor cursor;
    struct bh_annotations_query query;
    uv_timer_t timer;
    bool busy, gone;
    struct bh_json *left; /* changes of the last round that it had no time for; texts in kept */
    struct bh_arena kept;
};

/* ---- in the worker thread -------------------------------------------------------------------- */

static size_t annotate_one(struct round *r, const struct bh_json *row)
{
    const struct bh_json *pod = bh_json_get(row, "pod");
    struct note *n = &r->v[r->n];
    size_t size = 0;

    if (bh_decisions_annotations(r->all->d, &r->a, bh_json_get_i64(row, "id", 0), &r->all->query,
                                 &n->annotations, NULL) < 0)
        return 0; /* gone already */
    n->ns = bh_arena_strdup(&r->a, bh_json_get_text(pod, "namespace"));
    n->name = bh_arena_strdup(&r->a, bh_json_get_text(pod, "name"));
    n->uid = bh_arena_strdup(&r->a, bh_json_get_text(pod, "uid"));
    r->n++;
    bh_json_each(v, n->annotations)
        size += v->s.n;
    return size;
}

static void run_round(struct bh_console_job *j, void *arg)
{
    struct round *r = arg;
    struct bh_console_annotator *all = r->all;
    uint64_t until = bh_mono_ns() + ROUND_NS;
    struct bh_json *list = all->left, *row, *next = NULL;
    size_t bytes = 0;

    (void)bh_console_job_body(j, 200, NULL);
    if (!list) {
        bh_arena_reset(&all->kept);
        if (bh_decisions_changes(all->d, &all->kept, &all->cursor, ROUND, &list, NULL) < 0)
            return;
    }
    r->v = bh_arena_new_array(&r->a, struct note, ROUND + 1);
    for (row = bh_json_first(list); row; row = next) {
        const struct bh_json *of = bh_json_get(row, "row");
        next = row->next;
        if (!bh_streq(bh_json_get_text(of, "outcome"), "Binding")) /* more will be known */
            bytes += annotate_one(r, of);
        bh_json_remove(list, row);
        if (bytes > ROUND_BYTES || bh_mono_ns() > until || bh_console_job_dropped(j))
            break;
    }
    all->left = list->c.n ? list : NULL;
    r->more = all->left || r->n;
}

/* ---- in the loop ----------------------------------------------------------------------------- */

static size_t size_of(const struct bh_json *annotations)
{
    size_t n = 0;

    bh_json_each(v, annotations)
        n += v->key.n + (v->type == BH_JSON_STRING ? v->s.n : 0);
    return n;
}

/* With what others have written the whole must stay below the limit: then history goes. */
static bool edit(void *arg, struct bh_arena *a, struct bh_json *pod)
{
    const struct note *n = arg;
    struct bh_json *to = bh_json_obj_at(a, bh_json_obj_at(a, pod, "metadata"), "annotations");

    bh_json_unset(to, BH_ANNOTATION_TRUNCATED);
    bh_json_each(v, n->annotations)
        bh_json_set_str(a, to, v->key.p, v->s.p);
    if (size_of(to) > POD_MAX)
        bh_json_set_str(a, to, BH_ANNOTATION_PREFIX "result-history", "[]");
    return size_of(to) <= POD_MAX;
}

static void write_round(struct bh_sim_req *req BH_UNUSED, struct bh_sim *s, void *arg)
{
    const struct bh_sim_type *pods = bh_sim_find_type(s, "", "v1", "pods");
    struct round *r = arg;

    for (uint32_t i = 0; pods && i < r->n; i++) /* 404: the pod is gone */
        (void)bh_sim_edit(s, pods, r->v[i].ns, r->v[i].name, r->v[i].uid, BH_SIM_MAIN, edit,
                          &r->v[i], NULL, NULL);
}

static void on_gone(uv_handle_t *h)
{
    free(h->data);
}

static void destroy(struct bh_console_annotator *all)
{
    bh_decisions_free(all->d);
    bh_arena_fini(&all->kept);
    all->timer.data = all;
    uv_close((uv_handle_t *)&all->timer, on_gone);
}

static void look(uv_timer_t *t);

static void release_round(void *arg)
{
    struct round *r = arg;
    struct bh_console_annotator *all = r->all;

    all->busy = false;
    if (all->gone)
        destroy(all);
    else if (r->more)
        uv_timer_start(&all->timer, look, 1, LOOK_MS);
    bh_arena_fini(&r->a);
    free(r);
}

static void look(uv_timer_t *t)
{
    struct bh_console_annotator *all = t->data;

    if (all->busy)
        return;
    struct round *r = bh_calloc(1, sizeof(*r));
    r->all = all;
    all->busy = true;
    bh_console_background(all->c->sim, run_round, write_round, release_round, r);
}

void bh_console_annotator_start(struct bh_console *c)
{
    const struct bh_sim_options *o = &c->sim->opt;

    if (!o->annotate || !o->decisions_file)
        return;
    struct bh_console_annotator *all = c->annotator = bh_calloc(1, sizeof(*all));
    all->c = c;
    all->d = bh_decisions_new(o->decisions_file);
    all->query.max_nodes = (unsigned)o->annotate_nodes;
    bh_decisions_now(all->d, &all->cursor);
    uv_timer_init(bh_sim_loop(c->sim), &all->timer);
    all->timer.data = all;
    uv_timer_start(&all->timer, look, LOOK_MS, LOOK_MS);
}

void bh_console_annotator_stop(struct bh_console *c)
{
    struct bh_console_annotator *all = c->annotator;

    c->annotator = NULL;
    if (!all)
        return;
    uv_timer_stop(&all->timer);
    all->gone = true;
    if (!all->busy)
        destroy(all);
}
