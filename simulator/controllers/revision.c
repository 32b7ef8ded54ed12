/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/controllers/revision.c - ControllerRevisions of daemon sets and stateful sets
 *
 * Each template has one; the present one has the highest number, so that `kubectl rollout history`
 * and `undo` work; it carries the template's labels, by which kubectl looks for it.
 * Upstream: pkg/controller/history/controller_history.go (v1.36); differences: the hash is our own;
 * revisions beyond the limit are forgotten by number only.
 */
#include "simulator/controllers/controllers.h"

#include <inttypes.h>

#define HASH_LABEL "controller-revision-hash"

/* The patch that brings the template back. */
static struct bh_json *data_of(struct bh_arena *a, const struct bh_json *template)
{
    struct bh_json *d = bh_json_new(a, BH_JSON_OBJECT), *t = bh_json_clone(a, template);

    bh_json_set_str(a, t, "$patch", "replace");
    bh_json_set(a, bh_json_obj_at(a, d, "spec"), "template", t);
    return d;
}

static bool raise_number(void *arg, struct bh_arena *a, struct bh_json *o)
{
    bh_json_set_i64(a, o, "revision", *(int64_t *)arg);
    return true;
}

static const char *make(struct bh_sim_controllers *c, struct bh_arena *a, struct bh_sim_obj *owner,
                        const struct bh_json *template, struct bh_json *data, int64_t number)
{
    struct bh_json *o = bh_json_new(a, BH_JSON_OBJECT), *meta = bh_json_obj_at(a, o, "metadata");
    const char *hash = bh_ctl_hash(a, data, 0);

    bh_json_set_str(a, meta, "name", bh_arena_printf(a, "%s-%s", owner->name, hash));
    bh_json_set_str(a, bh_json_obj_at(a, meta, "labels"), HASH_LABEL, hash);
    bh_json_each(l, bh_tree_obj(template, "metadata.labels"))
        bh_json_set(a, bh_json_obj_at(a, meta, "labels"), l->key.p, bh_json_clone(a, l));
    bh_ctl_own(a, meta, owner);
    bh_json_set(a, o, "data", data);
    bh_json_set_i64(a, o, "revision", number);
    bh_sim_create(c->sim, c->t.revisions, owner->ns, a, o, NULL, NULL);
    return hash;
}

static void forget(struct bh_sim_controllers *c, struct bh_sim_obj *owner,
                   const struct bh_sim_objs *l, const int64_t *numbers, int64_t limit)
{
    struct bh_sim_delete_options o = {.grace_s = -1};

    /* The present one and `limit` older ones stay. */
    for (size_t i = 0; i < l->n; i++) {
        int64_t newer = 0;
        for (size_t k = 0; k < l->n; k++)
            newer += numbers[k] > numbers[i];
        o.uid = l->v[i]->uid;
        if (newer > limit)
            bh_sim_delete(c->sim, c->t.revisions, owner->ns, l->v[i]->name, &o, NULL);
    }
}

const char *bh_ctl_revision(struct bh_sim_controllers *c, struct bh_arena *a,
                            struct bh_sim_obj *owner, const struct bh_json *template)
{
    struct bh_json *data = data_of(a, template);
    const char *hash = NULL;
    struct bh_sim_objs l;
    int64_t *numbers, highest = 0, mine = 0;
    struct bh_sim_obj *found = NULL;

    bh_sim_owned_by(c->sim, owner->uid, c->t.revisions, &l);
    numbers = bh_calloc(l.n + 1, sizeof(*numbers));
    for (size_t i = 0; i < l.n; i++) {
        const struct bh_json *o = bh_sim_obj_tree(a, l.v[i]);
        numbers[i] = bh_tree_i64(o, "revision", 0);
        highest = BH_MAX(highest, numbers[i]);
        if (!found && bh_tree_obj(o, "data") && bh_json_equal(bh_tree_obj(o, "data"), data)) {
            found = l.v[i];
            mine = numbers[i];
            hash = bh_arena_strdup(
                a, bh_sim_obj_label(found, HASH_LABEL) ? bh_sim_obj_label(found, HASH_LABEL) : "");
        }
    }
    highest += !found || mine < highest;
    if (!found) {
        hash = make(c, a, owner, template, data, highest);
        forget(c, owner, &l, numbers, 10 - 1);
    } else if (mine < highest) {
        bh_sim_edit(c->sim, c->t.revisions, owner->ns, found->name, found->uid, BH_SIM_MAIN,
                    raise_number, &highest, NULL, NULL);
    }
    free(numbers);
    bh_sim_objs_fini(&l);
    return hash;
}
