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

#define HASH_LABEL "controller-revision-hash"

static bool raise_number(void *arg, struct bh_arena *a, struct bh_json *o)
{
    bh_json_set_i64(a, o, "revision", *(int64_t *)arg);
    return true;
}

static const char *make(struct bh_sim_controllers *c, struct bh_arena *a, struct bh_sim_obj *owner,
                        const struct bh_json *template, struct bh_json *data, int64_t number)
{
    const char *hash = bh_ctl_hash(a, data, 0);
    struct bh_json *o = bh_json_make(a, "metadata: {name: %s, labels: {" HASH_LABEL ": %s}}",
                                     bh_arena_printf(a, "%s-%s", owner->name, hash), hash);
    struct bh_json *meta = bh_json_get(o, "metadata");

    bh_json_each(l, bh_tree_obj(template, "metadata.labels"))
        bh_json_set(a, bh_json_get(meta, "labels"), l->key.p, bh_json_clone(a, l));
    bh_ctl_own(a, meta, owner);
    bh_json_add(a, o, "data: %p, revision: %ld", data, number);
    bh_sim_create(c->sim, c->t.revisions, owner->ns, a, o, NULL, NULL);
    return hash;
}

const char *bh_ctl_revision(struct bh_sim_controllers *c, struct bh_arena *a,
                            struct bh_sim_obj *owner, const struct bh_json *template)
{
    BH_CLEANUP(bh_sim_objs_fini)
    struct bh_sim_objs l = bh_sim_owned(c->sim, owner->uid, c->t.revisions);
    /* the patch that brings the template back */
    struct bh_json *data = bh_json_make(a, "spec: {template: %p}", bh_json_clone(a, template));
    int64_t *numbers = bh_arena_array(a, l.n + 1, sizeof(*numbers)), highest = 0, mine = 0;
    const struct bh_sim_obj *found = NULL;
    const char *hash;

    bh_json_add(a, data, "spec: {template: {$patch: replace}}");
    for (size_t i = 0; i < l.n; i++) {
        const struct bh_json *o = bh_sim_obj_tree(a, l.v[i]);
        numbers[i] = bh_tree_i64(o, "revision", 0);
        highest = BH_MAX(highest, numbers[i]);
        if (!found && bh_tree_obj(o, "data") && bh_json_equal(bh_tree_obj(o, "data"), data)) {
            found = l.v[i];
            mine = numbers[i];
        }
    }
    highest += !found || mine < highest;
    if (!found) {
        hash = make(c, a, owner, template, data, highest);
        /* The present one and `limit` older ones stay. */
        int64_t limit = 10 - 1;
        for (size_t i = 0; i < l.n; i++) {
            int64_t newer = 0;
            for (size_t k = 0; k < l.n; k++)
                newer += numbers[k] > numbers[i];
            if (newer > limit)
                bh_ctl_delete(c, l.v[i]);
        }
        return hash;
    }
    if (mine < highest)
        bh_ctl_edit(c, found, BH_SIM_MAIN, raise_number, &highest);
    hash = bh_sim_obj_label(found, HASH_LABEL);
    return bh_arena_strdup(a, hash ? hash : "");
}
