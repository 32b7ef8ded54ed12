/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/console/asof.c - GET /berth/v1/asof: pods and nodes as they were
 *
 * What is there now, and what has happened since, undone from the newest on. In the loop references
 * are taken, the rest is a worker's. It reaches back as far as the store's history does.
 */
#include "simulator/console/parts.h"

#include <errno.h>

#include "simulator/console/rows.h"
#include "simulator/server/tree.h"

struct kind {
    struct bh_sim_objs now;
    struct undo {
        struct bh_sim_obj *before, *after; /* before NULL: it was created */
    } * undo;                              /* oldest first */
    size_t n_undo;
};
struct asof_job {
    uint64_t revision;
    struct kind pods, nodes;
};

/* ---- in the loop ----------------------------------------------------------------------------- */

static bool copy_kind(struct bh_sim *s, const char *plural, uint64_t rv, struct kind *k)
{
    struct bh_sim_bucket *b = bh_sim_bucket(s, bh_sim_type_find("", "v1", plural));

    if (rv < b->evicted_rv)
        return false;
    bh_sim_list(s, b->type, NULL, &k->now);
    k->undo = bh_calloc(b->ring.n + 1, sizeof(*k->undo));
    for (size_t i = bh_sim_history_after(b, rv); i < b->ring.n; i++) {
        const struct bh_sim_event *e = bh_sim_history_at(b, i);
        k->undo[k->n_undo++] =
            (struct undo){e->old ? bh_sim_obj_ref(e->old) : NULL, bh_sim_obj_ref(e->obj)};
    }
    return true;
}

static void drop(struct kind *k)
{
    bh_sim_objs_fini(&k->now);
    for (size_t i = 0; i < k->n_undo; i++) {
        bh_sim_obj_unref(k->undo[i].before);
        bh_sim_obj_unref(k->undo[i].after);
    }
    free(k->undo);
}

static void release(void *arg)
{
    struct asof_job *k = arg;

    drop(&k->pods);
    drop(&k->nodes);
    free(k);
}

/* ---- in the worker --------------------------------------------------------------------------- */

/* uid -> object, as of the revision. */
static void go_back(const struct kind *k, struct bh_map *state)
{
    for (size_t i = 0; i < k->now.n; i++)
        (void)bh_map_put(state, k->now.v[i]->uid, strlen(k->now.v[i]->uid), k->now.v[i]);
    for (size_t i = k->n_undo; i--;) {
        const struct undo *u = &k->undo[i];
        if (u->before)
            (void)bh_map_put(state, u->before->uid, strlen(u->before->uid), u->before);
        else
            (void)bh_map_del(state, u->after->uid, strlen(u->after->uid));
    }
}

static void add_sum(struct bh_map *sums, const struct bh_sim_obj *o, const struct bh_json *pod,
                    struct bh_arena *names)
{
    struct bh_console_amounts x, *sum = bh_map_get(sums, o->node_name, strlen(o->node_name));

    if (!*o->node_name || *o->phase == 'S' || *o->phase == 'F')
        return;
    if (!sum) {
        sum = bh_arena_zalloc(names, sizeof(*sum));
        (void)bh_map_put(sums, o->node_name, strlen(o->node_name), sum);
    }
    bh_console_requests(pod, &x);
    for (unsigned i = 0; i < x.n; i++)
        x.more[i].name = bh_arena_strdup(names, x.more[i].name);
    bh_console_amounts_add(sum, &x, 1);
}

static void run(struct bh_console_job *j, void *arg)
{
    static const struct bh_console_amounts nothing;
    const struct asof_job *k = arg;
    BH_CLEANUP(bh_map_fini) struct bh_map pods = {0}, nodes = {0}, sums = {0};
    struct bh_buf *out = bh_console_job_body(j, 200, NULL);
    BH_CLEANUP(bh_arena_fini) struct bh_arena names = {0};

    go_back(&k->pods, &pods);
    go_back(&k->nodes, &nodes);
    bh_buf_addf(out, "{\"revision\":%llu,\"pods\":[", (unsigned long long)k->revision);
    struct bh_map_entry *e;
    BH_CLEANUP(bh_arena_fini) struct bh_arena a = {0};
    for (size_t it = 0; (e = bh_map_next(&pods, &it));) {
        const struct bh_sim_obj *o = e->value;
        const struct bh_json *v = bh_sim_obj_tree(&a, o);
        bh_tree_comma(out);
        bh_json_write(out, bh_console_pod_row(&a, o, v));
        add_sum(&sums, o, v, &names);
        bh_arena_reset(&a);
    }
    bh_buf_adds(out, "],\"nodes\":[");
    for (size_t it = 0; (e = bh_map_next(&nodes, &it));) {
        const struct bh_sim_obj *o = e->value;
        const struct bh_console_amounts *sum = bh_map_get(&sums, o->name, strlen(o->name));
        bh_tree_comma(out);
        bh_json_write(out,
                      bh_console_node_row(&a, o, bh_sim_obj_tree(&a, o), sum ? sum : &nothing));
        bh_arena_reset(&a);
    }
    bh_buf_adds(out, "]}\n");
}

void bh_console_asof(struct bh_console_req *c)
{
    struct bh_sim *s = c->r->sim;
    const char *text = bh_http_query(c->r->http, "revision");
    char *end = NULL;

    errno = 0;
    uint64_t rv = text ? strtoull(text, &end, 10) : 0;
    if (!rv || *end || errno || rv > s->rv) {
        bh_console_fail(c->r, 400, "revision", 0, "\"%.40s\" is no revision up to %llu",
                        text ? text : "", (unsigned long long)s->rv);
        return;
    }
    struct asof_job *k = bh_calloc(1, sizeof(*k));
    k->revision = rv;
    if (copy_kind(s, "pods", rv, &k->pods) && copy_kind(s, "nodes", rv, &k->nodes)) {
        bh_console_work(c, run, release, k);
        return;
    }
    release(k);
    bh_console_fail(c->r, 410, "revision", 0, "the history does not reach back to %llu",
                    (unsigned long long)rv);
}
