/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/server/write.c - create, update, delete: the one path every write takes
 *
 * Upstream: apiserver/pkg/registry/rest/{create,update,delete}.go,
 *           apiserver/pkg/registry/generic/registry/store.go; differences: a name that is generated
 *           is made unique at once instead of answering 409.
 */
#include "simulator/server/data.h"
#include "simulator/server/meta.h"
#include "simulator/server/tree.h"

#include <errno.h>
#include <stdio.h>

static const struct bh_sim_wopt no_options = {.reordered = true};

static void name_details(struct bh_sim_error *e, const struct bh_sim_type *t, const char *name)
{
    if (!e->code)
        bh_sim_error_about(e, t, t->plural, name);
}

int bh_sim_not_found(struct bh_sim_error *e, const struct bh_sim_type *t, const char *name)
{
    name_details(e, t, name);
    return bh_sim_fail(e, 404, "NotFound", "%s%s%s \"%s\" not found", t->plural,
                       *t->group ? "." : "", t->group, name);
}

static int conflict(struct bh_sim_error *e, const struct bh_sim_obj *o, const char *why, ...)
    BH_PRINTF(3, 4);
static int conflict(struct bh_sim_error *e, const struct bh_sim_obj *o, const char *why, ...)
{
    const struct bh_sim_type *t = o->type;
    char text[512];
    va_list ap;
    va_start(ap, why);
    vsnprintf(text, sizeof(text), why, ap);
    va_end(ap);
    name_details(e, t, o->name);
    return bh_sim_fail(e, 409, "Conflict", "Operation cannot be fulfilled on %s%s%s \"%s\": %s",
                       t->plural, *t->group ? "." : "", t->group, o->name, text);
}

int bh_sim_other_uid(struct bh_sim_error *e, const struct bh_sim_obj *o, const char *uid)
{
    return conflict(e, o,
                    "StorageError: invalid object, Code: 4, Key: /registry/%s/%s%s%s, "
                    "ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in "
                    "precondition: %.40s, UID in object meta: %s",
                    o->type->plural, o->ns, *o->ns ? "/" : "", o->name, uid, o->uid);
}

int bh_sim_other_rv(struct bh_sim_error *e, const struct bh_sim_obj *o, const char *rv)
{
    char now[21];
    bh_dec_u64(now, o->rv);
    if (!rv || !*rv || bh_streq(rv, now))
        return 0;
    return conflict(e, o,
                    "the object has been modified; please apply your changes to the latest version "
                    "and try again");
}

static struct bh_sim_write write_of(struct bh_sim *s, const struct bh_sim_type *t,
                                    enum bh_sim_op op, struct bh_arena *a, struct bh_json *obj,
                                    const struct bh_sim_wopt *w, struct bh_sim_error *e)
{
    return (struct bh_sim_write){.sim = s,
                                 .type = t,
                                 .as = w->as,
                                 .op = op,
                                 .arena = a,
                                 .obj = obj,
                                 .error = e,
                                 .warnings = w->warnings};
}

static void give(struct bh_sim_obj **ret, struct bh_sim_obj *o)
{
    if (ret)
        *ret = bh_sim_obj_ref(o);
}

/* The tree goes on to the watchers, so it carries the revision the text will have. */
static void set_revision(const struct bh_sim *s, struct bh_arena *a, struct bh_json *meta)
{
    char digits[21];
    bh_dec_u64(digits, s->rv + 1);
    bh_json_set_str(a, meta, "resourceVersion", digits);
}

/* Notes in managedFields whose fields this write sets. old NULL: create. */
static int track(struct bh_arena *a, const struct bh_sim_wopt *w, const struct bh_json *old,
                 struct bh_json *obj, struct bh_sim_error *e)
{
    struct bh_err err = {{0}};
    if (w->track && bh_apply_track_update(a, w->track, old, obj, &err) < 0)
        return bh_sim_fail(e, 500, "InternalError", "Internal error occurred: %s", err.msg);
    return 0;
}

/* ---- create ---------------------------------------------------------------------------------- */

static int check_namespace(struct bh_sim *s, const struct bh_sim_type *t, const char *ns,
                           const char *name, struct bh_sim_error *e)
{
    if (!(t->flags & BH_SIM_NAMESPACED))
        return 0;
    const struct bh_sim_type *namespaces = BH_SIM_TYPE("", "v1", "namespaces");
    const struct bh_sim_obj *o = bh_sim_get(s, namespaces, "", ns);
    if (!o)
        return bh_sim_not_found(e, namespaces, ns);
    if (!o->deleting)
        return 0;
    name_details(e, t, name);
    bh_sim_field_error(e, "metadata.namespace", "Forbidden", NULL,
                       "namespace %s is being terminated", ns);
    snprintf(e->causes[0].type, sizeof(e->causes[0].type), "NamespaceTerminating");
    return bh_sim_fail(e, 403, "Forbidden",
                       "%s%s%s \"%s\" is forbidden: unable to create new content in namespace %s "
                       "because it is being terminated",
                       t->plural, *t->group ? "." : "", t->group, name, ns);
}

/* The name, generated when asked for; "" when neither is given. */
static const char *settle_name(struct bh_sim *s, const struct bh_sim_type *t, const char *ns,
                               struct bh_arena *a, struct bh_json *meta)
{
    const char *name = bh_json_get_str(meta, "name");
    const char *prefix = bh_json_get_str(meta, "generateName");
    if ((name && *name) || !prefix || !*prefix)
        return name ? name : "";
    for (int tries = 0; tries < 16; tries++) {
        char suffix[6];
        bh_sim_suffix(s, suffix);
        char *made = bh_arena_printf(a, "%.58s%s", prefix, suffix);
        if (!bh_sim_get(s, t, ns, made)) {
            bh_json_set_str(a, meta, "name", made);
            return made;
        }
    }
    return "";
}

static void stamp_new(struct bh_sim *s, const struct bh_sim_type *t, struct bh_arena *a,
                      struct bh_json *obj, struct bh_json *meta)
{
    char uid[37], now[32];
    bh_json_drop(meta, "deletionTimestamp deletionGracePeriodSeconds selfLink generation");
    bh_uuid4_rand(&s->uid_rand, uid);
    bh_time_format_ns(now, bh_sim_now_ns(s));
    bh_json_set_str(a, meta, "uid", uid);
    bh_json_set_str(a, meta, "resourceVersion", "");
    if (t->flags & BH_SIM_GENERATION)
        bh_json_set_i64(a, meta, "generation", 1);
    bh_json_set_str(a, meta, "creationTimestamp", now);
    if ((t->flags & BH_SIM_HAS_STATUS) && !(t->flags & BH_SIM_KEEP_STATUS))
        bh_json_unset(obj, "status");
}

int bh_sim_do_create(struct bh_sim *s, const struct bh_sim_type *t, const char *ns,
                     struct bh_arena *a, struct bh_json *obj, const struct bh_sim_wopt *w,
                     struct bh_sim_obj **ret_obj, struct bh_sim_error *e)
{
    struct bh_json *meta = bh_sim_meta_begin(t, ns, a, obj, e);
    if (!meta || bh_sim_data_refuses(s, e))
        return e->code;
    const char *rv = bh_json_get_str(meta, "resourceVersion");
    if (rv && *rv && !rv[strspn(rv, "0123456789")] && rv[strspn(rv, "0")])
        return bh_sim_fail(e, 400, "BadRequest",
                           "resourceVersion should not be set on objects to be created");
    ns = (t->flags & BH_SIM_NAMESPACED) ? ns : "";
    const char *name = settle_name(s, t, ns, a, meta);
    if (check_namespace(s, t, ns, name, e))
        return e->code;
    stamp_new(s, t, a, obj, meta);
    struct bh_sim_write wr = write_of(s, t, BH_SIM_OP_CREATE, a, obj, w, e);
    if (bh_sim_default(&wr) || bh_sim_check_grants(s, a, t, ns, w->user, NULL, obj, e))
        return e->code;
    bh_sim_validate(&wr);
    if (bh_sim_error_close(e, t, name))
        return e->code;
    if (*name && bh_sim_get(s, t, ns, name)) {
        name_details(e, t, name);
        return bh_sim_fail(e, 409, "AlreadyExists", "%s%s%s \"%s\" already exists", t->plural,
                           *t->group ? "." : "", t->group, name);
    }
    if (track(a, w, NULL, obj, e) || bh_sim_charge(&wr, w->dry_run))
        return e->code;
    set_revision(s, a, meta);
    struct bh_sim_obj *o = bh_sim_obj_new(s, t, obj, s->rv + 1);
    give(ret_obj, o);
    if (w->dry_run)
        bh_sim_obj_unref(o);
    else
        bh_sim_commit(s, NULL, o, obj);
    return 0;
}

/* ---- update ---------------------------------------------------------------------------------- */

/* Out of grace and free of finalizers: nothing holds the object any more. */
static bool may_go(const struct bh_sim_obj *o, const struct bh_json *obj)
{
    return o->deleting && !o->has_finalizers &&
           bh_json_get_i64(bh_json_get(obj, "metadata"), "deletionGracePeriodSeconds", 0) == 0;
}

int bh_sim_store_update(struct bh_sim *s, struct bh_sim_slot *slot, struct bh_arena *a,
                        struct bh_json *obj, unsigned flags, struct bh_sim_obj **ret_obj)
{
    struct bh_sim_obj *old = slot->cur;
    const struct bh_sim_type *t = old->type;
    bool same_spec = true, written = !(flags & BH_SIM_STORE_CHANGED);
    if (written && bh_sim_obj_same(s, old, obj, &same_spec) && !may_go(old, obj)) {
        give(ret_obj, old);
        return 0;
    }
    if (!same_spec && (t->flags & BH_SIM_GENERATION) && !(flags & BH_SIM_STORE_KEEP_GENERATION)) {
        bh_json_set_i64(a, bh_json_get(obj, "metadata"), "generation", old->generation + 1);
        written = false;
    }
    set_revision(s, a, bh_json_get(obj, "metadata"));
    struct bh_sim_obj *o = written ? bh_sim_obj_new_again(s, t, obj, s->rv + 1, old->rv)
                                   : bh_sim_obj_new(s, t, obj, s->rv + 1);
    give(ret_obj, o);
    if (flags & BH_SIM_STORE_DRY_RUN) {
        bh_sim_obj_unref(o);
        return 0;
    }
    bool gone = may_go(o, obj);
    bh_sim_commit(s, slot, o, obj);
    if (gone)
        bh_sim_commit_delete(s, slot);
    return 0;
}

/* The request's identity against the stored object. */
static int check_same(const struct bh_sim_obj *cur, const struct bh_json *meta,
                      struct bh_sim_error *e)
{
    const char *name = bh_json_get_str(meta, "name");
    const char *uid = bh_json_get_str(meta, "uid");
    const char *rv = bh_json_get_str(meta, "resourceVersion");
    if (name && !bh_streq(name, cur->name))
        return bh_sim_fail(e, 400, "BadRequest",
                           "the name of the object (%s) does not match the name on the URL (%s)",
                           name, cur->name);
    if (uid && *uid && !bh_streq(uid, cur->uid))
        return bh_sim_other_uid(e, cur, uid);
    return rv && bh_streq(rv, "0") ? 0 : bh_sim_other_rv(e, cur, rv);
}

/* Kinds that clients may only write over what they have seen. */
static int check_seen(const struct bh_sim_type *t, const struct bh_sim_wopt *w,
                      const struct bh_json *meta, const char *name, struct bh_sim_error *e)
{
    const char *rv = bh_json_get_text(meta, "resourceVersion");

    if (!w->warnings || (*rv && !bh_streq(rv, "0")) ||
        bh_word_at("CSIDriver CSINode CSIStorageCapacity Lease PodDisruptionBudget RuntimeClass "
                   "VolumeAttachment",
                   t->kind) < 0)
        return 0;
    bh_sim_error_about(e, t, t->plural, name);
    bh_sim_field_error(e, "metadata.resourceVersion", "Invalid value", "0",
                       "must be specified for an update");
    return bh_sim_fail(e, 422, "Invalid",
                       "%s%s%s \"%s\" is invalid: metadata.resourceVersion: Invalid value: 0: must "
                       "be specified for an update",
                       t->plural, *t->group ? "." : "", t->group, name);
}

/* Puts what the sub-resource may not touch back to what it was. */
static void restore(const struct bh_sim_type *t, enum bh_sim_sub sub, struct bh_arena *a,
                    struct bh_json *obj, const struct bh_json *old)
{
    if (sub != BH_SIM_STATUS && sub != BH_SIM_WHOLE && (t->flags & BH_SIM_HAS_STATUS)) {
        const struct bh_json *st = bh_json_get(old, "status");
        if (st)
            bh_json_set(a, obj, "status", bh_json_clone(a, st));
        else
            bh_json_unset(obj, "status");
        if (sub == BH_SIM_EPHEMERAL) {
            struct bh_json *list = bh_json_path(obj, "spec.ephemeralContainers");
            struct bh_json *spec = bh_json_clone(a, bh_json_get(old, "spec"));
            if (list && list->type == BH_JSON_ARRAY)
                bh_json_set(a, spec, "ephemeralContainers", bh_json_clone(a, list));
            else
                bh_json_unset(spec, "ephemeralContainers");
            bh_json_set(a, obj, "spec", spec);
        }
    } else if (sub == BH_SIM_STATUS) {
        for (struct bh_json *m = obj->c.first, *next; m; m = next) {
            next = m->next;
            if (bh_word_at("metadata status", m->key.p) < 0 && !bh_json_get(old, m->key.p))
                bh_json_remove(obj, m);
        }
        bh_json_each(m, old) {
            if (bh_word_at("metadata status", m->key.p) < 0)
                bh_json_set(a, obj, m->key.p, bh_json_clone(a, m));
        }
    }
}

int bh_sim_do_update(struct bh_sim *s, const struct bh_sim_type *t, const char *ns,
                     const char *name, enum bh_sim_sub sub, struct bh_arena *a, struct bh_json *obj,
                     const struct bh_sim_wopt *w, struct bh_sim_obj **ret_obj,
                     struct bh_sim_error *e)
{
    struct bh_json *meta = bh_sim_meta_begin(t, ns, a, obj, e);
    if (!meta || bh_sim_data_refuses(s, e))
        return e->code;
    struct bh_sim_slot *slot = bh_sim_slot_get(s, t, ns, name);
    if (!slot && (t->flags & BH_SIM_UPSERT) && sub == BH_SIM_MAIN) {
        bh_json_unset(meta, "resourceVersion");
        return bh_sim_do_create(s, t, ns, a, obj, w, ret_obj, e);
    }
    if (!slot)
        return bh_sim_not_found(e, t, name);
    struct bh_sim_obj *cur = slot->cur;
    if (check_same(cur, meta, e) || check_seen(t, w, meta, name, e))
        return e->code;
    const struct bh_json *old = w->old ? w->old : bh_sim_obj_tree(a, cur);
    restore(t, sub, a, obj, old);
    bh_sim_meta_keep(a, meta, bh_json_get(old, "metadata"), sub);
    static const enum bh_sim_op ops[] = {[BH_SIM_MAIN] = BH_SIM_OP_UPDATE,
                                         [BH_SIM_STATUS] = BH_SIM_OP_UPDATE_STATUS,
                                         [BH_SIM_WHOLE] = BH_SIM_OP_UPDATE,
                                         [BH_SIM_RESIZE] = BH_SIM_OP_RESIZE,
                                         [BH_SIM_EPHEMERAL] = BH_SIM_OP_EPHEMERAL};
    struct bh_sim_write wr = write_of(s, t, ops[sub], a, obj, w, e);
    wr.old = old;
    wr.old_obj = cur;
    if (bh_sim_default(&wr) || bh_sim_check_grants(s, a, t, ns, w->user, old, obj, e))
        return e->code;
    bh_sim_validate(&wr);
    if (bh_sim_error_close(e, t, name))
        return e->code;
    if (sub == BH_SIM_MAIN && (t->flags & BH_SIM_GRACEFUL) && bh_sim_charge(&wr, w->dry_run))
        return e->code;
    if (w->reordered)
        bh_sim_meta_reorder(a, obj, old);
    bool same_spec;
    if (w->track && !bh_sim_obj_same(s, cur, obj, &same_spec) && track(a, w, old, obj, e))
        return e->code;
    return bh_sim_store_update(s, slot, a, obj, w->dry_run ? BH_SIM_STORE_DRY_RUN : 0, ret_obj);
}

/* ---- delete ---------------------------------------------------------------------------------- */

static int check_preconditions(const struct bh_sim_obj *o, const struct bh_sim_delete_options *d,
                               struct bh_sim_error *e)
{
    char now[21];
    bh_dec_u64(now, o->rv);
    if (d->uid && *d->uid && !bh_streq(d->uid, o->uid))
        return conflict(e, o,
                        "Precondition failed: UID in precondition: %.40s, UID in object meta: %s",
                        d->uid, o->uid);
    if (d->resource_version && *d->resource_version && !bh_streq(d->resource_version, now))
        return conflict(e, o,
                        "Precondition failed: ResourceVersion in precondition: %.24s, "
                        "ResourceVersion in object meta: %s",
                        d->resource_version, now);
    return 0;
}

static bool is_namespace(const struct bh_sim_type *t)
{
    return !*t->group && bh_streq(t->kind, "Namespace");
}

static int64_t grace_of(const struct bh_sim_obj *o, const struct bh_json *tree,
                        const struct bh_sim_delete_options *d)
{
    if (!(o->type->flags & BH_SIM_GRACEFUL))
        return 0;
    if (!*o->node_name || bh_streq(o->phase, "Succeeded") || bh_streq(o->phase, "Failed"))
        return 0;
    if (d->grace_s >= 0)
        return d->grace_s;
    return bh_json_get_i64(bh_json_get(tree, "spec"), "terminationGracePeriodSeconds", 30);
}

/* Finalizers that hand the dependents to the garbage collector; only when one is running and there
 * is something to collect, else the object would wait for nothing. */
static void policy_finalizers(struct bh_sim *s, const struct bh_sim_obj *o, struct bh_arena *a,
                              struct bh_json *meta, const char *policy)
{
    const char *wanted = NULL;
    if (policy && bh_streq(policy, "Foreground"))
        wanted = "foregroundDeletion";
    else if (policy && bh_streq(policy, "Orphan"))
        wanted = "orphan";
    if (!wanted || !s->controllers || !bh_map_get(&s->owners, o->uid, strlen(o->uid)))
        return;
    struct bh_json *l = bh_tree_dflt_arr(a, meta, "finalizers");
    if (l && !bh_tree_lists(l, wanted))
        bh_json_push(l, bh_json_new_cstr(a, wanted));
}

static void mark_deleted(struct bh_sim *s, const struct bh_sim_obj *o, struct bh_arena *a,
                         struct bh_json *tree, int64_t grace)
{
    struct bh_json *meta = bh_json_get(tree, "metadata");
    char when[32];
    /* Whatever the client asks for: the year is 9999 at most, as time.c writes it. */
    bh_time_format(when, bh_sim_now_ns(s) / 1000000000 + BH_MIN(grace, (int64_t)1 << 60));
    if (!o->deleting && (o->type->flags & BH_SIM_GENERATION))
        bh_json_set_i64(a, meta, "generation", o->generation + 1);
    bh_json_set_str(a, meta, "deletionTimestamp", when);
    bh_json_set_i64(a, meta, "deletionGracePeriodSeconds", grace);
    if (is_namespace(o->type))
        bh_json_set_str(a, bh_json_obj_at(a, tree, "status"), "phase", "Terminating");
}

static int refuse_delete(const struct bh_sim_obj *o, struct bh_sim_error *e)
{
    if (!is_namespace(o->type) || bh_word_at("default kube-system kube-public", o->name) < 0)
        return 0;
    name_details(e, o->type, o->name);
    return bh_sim_fail(e, 403, "Forbidden",
                       "namespaces \"%s\" is forbidden: this namespace may not be deleted",
                       o->name);
}

int bh_sim_do_delete(struct bh_sim *s, const struct bh_sim_type *t, const char *ns,
                     const char *name, const struct bh_sim_delete_options *d, bool dry_run,
                     bool *ret_gone, struct bh_sim_obj **ret_obj, struct bh_sim_error *e)
{
    static const struct bh_sim_delete_options plain = {.grace_s = -1};
    struct bh_sim_slot *slot = bh_sim_slot_get(s, t, ns, name);
    if (!slot)
        return bh_sim_not_found(e, t, name);
    d = d ? d : &plain;
    struct bh_sim_obj *o = slot->cur;
    if (check_preconditions(o, d, e) || refuse_delete(o, e) || bh_sim_data_refuses(s, e))
        return e->code;
    struct bh_arena a;
    bh_arena_init(&a, 0);
    struct bh_json *tree = bh_sim_obj_tree(&a, o);
    struct bh_json *meta = bh_json_get(tree, "metadata");
    int64_t grace = grace_of(o, tree, d);
    int64_t present = bh_json_get_i64(meta, "deletionGracePeriodSeconds", 0);
    policy_finalizers(s, o, &a, meta, d->propagation);
    bool held = o->has_finalizers || bh_json_get(meta, "finalizers");
    bool gone = grace == 0 && !held;
    if (ret_gone)
        *ret_gone = gone;
    if (gone) {
        give(ret_obj, o);
        if (!dry_run)
            bh_sim_commit_delete(s, slot);
    } else if (o->deleting && grace >= present) {
        give(ret_obj, o);
    } else {
        mark_deleted(s, o, &a, tree, grace);
        bh_sim_store_update(s, slot, &a, tree,
                            BH_SIM_STORE_KEEP_GENERATION | (dry_run ? BH_SIM_STORE_DRY_RUN : 0),
                            ret_obj);
    }
    bh_arena_fini(&a);
    return 0;
}

/* ---- arena of edits -------------------------------------------------------------------------- */

struct bh_arena *bh_sim_edit_begin(struct bh_sim *s)
{
    s->edits++;
    return &s->edit_arena;
}

void bh_sim_edit_end(struct bh_sim *s)
{
    bh_assert(s->edits > 0);
    if (--s->edits == 0)
        bh_arena_reset(&s->edit_arena);
}

/* ---- the in-process interface ---------------------------------------------------------------- */

int bh_sim_create(struct bh_sim *s, const struct bh_sim_type *t, const char *ns, struct bh_arena *a,
                  struct bh_json *obj, struct bh_sim_obj **ret_obj, struct bh_sim_error *e)
{
    struct bh_sim_error own;
    bh_sim_error_init(&own);
    return bh_sim_do_create(s, t, ns, a, obj, &no_options, ret_obj, e ? e : &own);
}

int bh_sim_update(struct bh_sim *s, const struct bh_sim_type *t, const char *ns, const char *name,
                  enum bh_sim_sub sub, struct bh_arena *a, struct bh_json *obj,
                  struct bh_sim_obj **ret_obj, struct bh_sim_error *e)
{
    struct bh_sim_error own;
    bh_sim_error_init(&own);
    return bh_sim_do_update(s, t, ns, name, sub, a, obj, &no_options, ret_obj, e ? e : &own);
}

int bh_sim_edit(struct bh_sim *s, const struct bh_sim_type *t, const char *ns, const char *name,
                const char *uid, enum bh_sim_sub sub, bh_sim_edit_fn *edit, void *arg,
                struct bh_sim_obj **ret_obj, struct bh_sim_error *e)
{
    struct bh_sim_error own;
    bh_sim_error_init(&own);
    e = e ? e : &own;
    struct bh_sim_slot *slot = bh_sim_slot_get(s, t, ns, name);
    if (!slot || (uid && !bh_streq(uid, slot->cur->uid)))
        return bh_sim_not_found(e, t, name);
    if (bh_sim_data_refuses(s, e))
        return e->code;
    struct bh_arena *a = bh_sim_edit_begin(s);
    struct bh_json *tree = bh_sim_obj_tree(a, slot->cur);
    int rc = 0;
    if (!edit(arg, a, tree)) {
        give(ret_obj, slot->cur);
    } else if (sub == BH_SIM_STATUS) {
        /* Our own code changed status and nothing else: there is nothing to default or refuse. */
        rc = bh_sim_store_update(s, slot, a, tree, BH_SIM_STORE_KEEP_GENERATION, ret_obj);
    } else {
        rc = bh_sim_do_update(s, t, ns, name, sub, a, tree, &no_options, ret_obj, e);
    }
    bh_sim_edit_end(s);
    return rc;
}

int bh_sim_delete(struct bh_sim *s, const struct bh_sim_type *t, const char *ns, const char *name,
                  const struct bh_sim_delete_options *o, struct bh_sim_error *e)
{
    struct bh_sim_error own;
    bh_sim_error_init(&own);
    return bh_sim_do_delete(s, t, ns, name, o, false, NULL, NULL, e ? e : &own);
}

void bh_sim_mirror(struct bh_sim *s, const struct bh_sim_type *t, const char *ns, const char *name,
                   struct bh_arena *a, struct bh_json *obj)
{
    struct bh_sim_slot *slot = bh_sim_slot_get(s, t, ns, name);
    struct bh_json *meta = bh_json_get(obj, "metadata");

    if (slot && !bh_streq(slot->cur->uid, bh_json_get_text(meta, "uid"))) {
        bh_sim_commit_delete(s, slot); /* gone, or another one took its name */
        slot = NULL;
    }
    if (!obj)
        return;
    set_revision(s, a, meta);
    bh_sim_commit(s, slot, bh_sim_obj_new(s, t, obj, s->rv + 1), obj);
}
