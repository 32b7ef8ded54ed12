/* SPDX-License-Identifier: Apache-2.0
 *
 * common/data/apply.c - managedFields: server-side apply and the record of ordinary writes
 *
 * Invariants: one entry for each manager, operation, subresource and (Update only) apiVersion; an
 *             entry whose set became empty is dropped. Entries are sorted as upstream sorts them.
 * Fails with: -EINVAL, -EBUSY (conflicts), -E2BIG (arena limit).
 * Upstream:   apimachinery/pkg/util/managedfields/internal, structured-merge-diff merge/update.go.
 *             differences: all sets are taken as of one API version (no conversion between them).
 */
#include "common/data/apply.h"
#include "common/data/apply_set.h"
#include "common/data/json_priv.h"

#include <errno.h>

#define UPDATE_ENTRIES_MAX 10
#define MANAGERS_MAX       1000 /* appliers are not capped upstream; this only bounds hostile input */
static const char before_first_apply[] = "before-first-apply";
static const char ancient_changes[] = "ancient-changes";

struct manager {
    const char *name, *operation, *api_version, *subresource, *time;
    struct bh_json *set; /* NULL: empty */
    struct bh_json *conflict;
};
struct managers {
    struct manager *v;
    size_t n;
};
struct run {
    struct bh_arena *a;
    const struct bh_apply_op *op;
    struct managers m;
    struct bh_fwalk walk;
    struct bh_err *err;
};

static int too_big(struct run *r)
{
    return bh_err_set(r->err, -E2BIG, "object is too large");
}

static const char *or_empty(const char *s)
{
    return s ? s : "";
}

/* ---- entries --------------------------------------------------------------------------------- */

static bool is_update(const struct manager *m)
{
    return bh_streq(m->operation, "Update");
}

/* -EINVAL when the list is not one that a server wrote. */
static int decode(struct run *r, const struct bh_json *list)
{
    size_t n = list && list->type == BH_JSON_ARRAY ? list->c.n : 0;
    r->m.n = 0;
    if (n > MANAGERS_MAX)
        return -EINVAL;
    r->m.v =
        bh_arena_new_array(r->a, struct manager, n + 2); /* the caller's own, before-first-apply */
    if (!r->m.v)
        return too_big(r);
    for (const struct bh_json *e = n ? list->c.first : NULL; e; e = e->next) {
        const struct bh_json *set = bh_json_get(e, "fieldsV1");
        struct manager m = {
            .name = bh_json_get_text(e, "manager"),
            .operation = bh_json_get_text(e, "operation"),
            .api_version = bh_json_get_text(e, "apiVersion"),
            .subresource = bh_json_get_text(e, "subresource"),
            .time = bh_json_get_text(e, "time"),
        };
        if (!set || !bh_fset_valid(set) || (!is_update(&m) && !bh_streq(m.operation, "Apply")))
            return -EINVAL;
        m.set = bh_json_clone(r->a, set);
        if (m.set && m.set->c.n)
            r->m.v[r->m.n++] = m;
    }
    return 0;
}

static int by_time(const void *x, const void *y)
{
    const struct manager *a = x, *b = y;
    int c = strcmp(a->operation, b->operation);
    if (c == 0)
        c = strcmp(a->time, b->time);
    if (c == 0)
        c = strcmp(a->name, b->name);
    if (c == 0)
        c = strcmp(a->api_version, b->api_version);
    return c ? c : strcmp(a->subresource, b->subresource);
}

/* False: the record would be too deep, so that the object has none. */
static bool encode(struct run *r, struct bh_json *obj)
{
    struct bh_json *list = bh_json_new(r->a, BH_JSON_ARRAY);
    struct bh_json *meta = bh_json_obj_at(r->a, obj, "metadata");
    qsort(r->m.v, r->m.n, sizeof(*r->m.v), by_time);
    for (size_t i = 0; i < r->m.n; i++) {
        const struct manager *m = &r->m.v[i];
        if (!m->set || m->set->c.n == 0)
            continue;
        bh_fset_sort(r->a, m->set);
        bh_json_append(r->a, list,
                       "manager: %s, operation: %s, apiVersion: %s, time?: %s,"
                       "fieldsType: FieldsV1, fieldsV1: %p, subresource?: %s",
                       m->name, m->operation, m->api_version, m->time, (void *)m->set,
                       m->subresource);
    }
    bool fits = bh_json_depth(list) + 2 <= BH_APPLY_MAX_DEPTH;
    if (list && list->c.n && fits)
        bh_json_set(r->a, meta, "managedFields", list);
    else if (meta)
        bh_json_unset(meta, "managedFields");
    return fits;
}

/* The entry of this request's manager; NULL when there is none. */
static struct manager *find_own(struct run *r, const char *operation)
{
    for (size_t i = 0; i < r->m.n; i++) {
        struct manager *m = &r->m.v[i];
        if (bh_streq(m->name, r->op->manager) && bh_streq(m->operation, operation) &&
            bh_streq(m->subresource, or_empty(r->op->subresource)) &&
            (!is_update(m) || bh_streq(m->api_version, r->op->api_version)))
            return m;
    }
    return NULL;
}

static struct manager *add_manager(struct run *r, const char *name, const char *operation)
{
    struct manager *m = &r->m.v[r->m.n++];
    *m = (struct manager){.name = name,
                          .operation = operation,
                          .api_version = r->op->api_version,
                          .subresource = or_empty(r->op->subresource),
                          .time = r->op->time};
    return m;
}

/* Fields that belong to the server. */
static void strip(struct bh_json *set)
{
    struct bh_json *meta = bh_json_get(set, "f:metadata");
    bh_json_drop(set, "f:apiVersion f:kind");
    bh_json_drop(meta, ". f:name f:namespace f:creationTimestamp f:selfLink f:uid f:clusterName "
                       "f:generation f:resourceVersion f:managedFields");
    if (meta && meta->c.n == 0)
        bh_json_remove(set, meta);
}

static void drop_nulls(struct bh_json *v)
{
    if (v->type != BH_JSON_OBJECT && v->type != BH_JSON_ARRAY)
        return;
    for (struct bh_json *m = v->c.first, *next; m; m = next) {
        next = m->next;
        if (m->type == BH_JSON_NULL && v->type == BH_JSON_OBJECT)
            bh_json_remove(v, m);
        else
            drop_nulls(m);
    }
}

/* ---- conflicts ------------------------------------------------------------------------------- */

struct report {
    struct run *r;
    struct bh_buf who, lines;
    struct bh_json *causes;
};

static void add_cause(void *arg, const char *path)
{
    struct report *p = arg;
    struct bh_arena *a = p->r->a;
    bh_json_append(a, p->causes, "type: FieldManagerConflict, message: %s, field: %s",
                   bh_arena_printf(a, "conflict with %s", bh_buf_str(&p->who)), path);
    bh_buf_addf(&p->lines, "\n- %s", path);
}

static struct bh_json *report(struct run *r)
{
    struct report p = {.r = r, .causes = bh_json_new(r->a, BH_JSON_ARRAY)};
    const char *message = NULL;
    for (size_t i = 0; p.causes && i < r->m.n; i++) {
        if (!r->m.v[i].conflict)
            continue;
        bh_buf_reset(&p.who);
        /* "kubectl-edit" using apps/v1 */
        bh_buf_add_json_str(&p.who, r->m.v[i].name, strlen(r->m.v[i].name));
        if (*r->m.v[i].subresource)
            bh_buf_addf(&p.who, " with subresource \"%s\"", r->m.v[i].subresource);
        if (is_update(&r->m.v[i]))
            bh_buf_addf(&p.who, " using %s", r->m.v[i].api_version);
        bh_buf_addf(&p.lines, "%sconflicts with %s:", p.lines.n ? "\n" : "", bh_buf_str(&p.who));
        bh_fset_each(r->m.v[i].conflict, add_cause, &p);
    }
    if (p.causes && p.causes->c.n == 1)
        message = bh_arena_printf(r->a, "Apply failed with 1 conflict: %s: %s",
                                  bh_json_get_text(p.causes->c.first, "message"),
                                  bh_json_get_text(p.causes->c.first, "field"));
    else if (p.causes)
        message = bh_arena_printf(r->a, "Apply failed with %zu conflicts: %s", p.causes->c.n,
                                  bh_buf_str(&p.lines));
    bh_buf_fini(&p.who);
    bh_buf_fini(&p.lines);
    return bh_json_make(r->a, "message: %s, causes: %p", message, (void *)p.causes);
}

/* ---- what a change means for the others ------------------------------------------------------ */

/* Notes which fields of other managers the change takes; true when there are any. */
static bool find_conflicts(struct run *r, const struct manager *own, const struct bh_fdiff *d)
{
    bool any = false;
    struct bh_json *taken = bh_fset_combine(r->a, BH_FSET_UNION, d->added, d->modified);
    for (size_t i = 0; i < r->m.n; i++) {
        struct manager *m = &r->m.v[i];
        if (m == own)
            continue;
        m->conflict = bh_fset_combine(r->a, BH_FSET_COMMON, m->set, taken);
        any = any || m->conflict;
    }
    return any;
}

static void take_over(struct run *r, const struct manager *own, const struct bh_fdiff *d)
{
    for (size_t i = 0; i < r->m.n; i++) {
        struct manager *m = &r->m.v[i];
        if (m == own)
            continue;
        if (m->conflict)
            m->set = bh_fset_combine(r->a, BH_FSET_MINUS, m->set, m->conflict);
        if (d->removed)
            m->set = bh_fset_combine(r->a, BH_FSET_MINUS, m->set, d->removed);
    }
}

static struct bh_json *all_owned(struct run *r)
{
    struct bh_json *all = NULL;
    for (size_t i = 0; i < r->m.n; i++)
        all = bh_fset_combine(r->a, BH_FSET_UNION, all, r->m.v[i].set);
    return all;
}

/* ---- apply ----------------------------------------------------------------------------------- */

static int read_record(struct run *r, struct bh_json *live)
{
    struct bh_json *meta = bh_json_get(live, "metadata");
    const struct bh_json *list = bh_json_get(meta, "managedFields");
    int rc = decode(r, list);
    if (rc == -EINVAL)
        rc = decode(r, NULL); /* not readable: start anew, like upstream */
    if (rc < 0)
        return rc;
    bh_json_unset(meta, "managedFields");
    if (live && r->m.n == 0) {
        /* Without any record everything that stands in the object counts as set by another. */
        struct bh_fdiff d = bh_fwalk_compare(&r->walk, NULL, live);
        strip(d.added);
        if (d.added && d.added->c.n)
            add_manager(r, before_first_apply, "Update")->set = d.added;
    }
    return 0;
}

static int apply(struct run *r, const struct bh_json *live, const struct bh_json *config,
                 struct bh_json **ret_obj, struct bh_json **ret_conflicts)
{
    struct bh_json *set = NULL, *base = bh_json_clone(r->a, live);
    struct bh_json *over = bh_json_clone(r->a, config), *obj = over;
    if (!over || (live && !base))
        return too_big(r);
    drop_nulls(over);
    if (bh_json_path(over, "metadata.managedFields"))
        return bh_err_set(r->err, -EINVAL, "metadata.managedFields must be nil");
    int rc = read_record(r, base);
    if (rc == 0)
        rc = bh_fwalk_fields(&r->walk, over, &set);
    if (r->a->failed) /* a list without room for its keys looks like one without keys */
        return too_big(r);
    if (rc < 0)
        return rc;
    strip(set);

    struct manager *own = find_own(r, "Apply");
    struct bh_json *last = own ? own->set : NULL;
    const char *old_time = own ? own->time : NULL;
    if (!own)
        own = add_manager(r, r->op->manager, "Apply");
    own->set = set;
    own->api_version = r->op->api_version;
    own->time = r->op->time;

    struct bh_fdiff d = {0};
    if (base) {
        struct bh_json *before = bh_json_clone(r->a, base);
        if (!before)
            return too_big(r);
        obj = bh_fwalk_merge(&r->walk, base, over);
        bh_fwalk_prune(&r->walk, obj, last, all_owned(r));
        d = bh_fwalk_compare(&r->walk, before, obj);
        if (old_time && bh_fset_equal(last, set) && bh_json_equal(before, obj))
            own->time = old_time;
    }
    bool conflicts = find_conflicts(r, own, &d);
    if (conflicts && !r->op->force) {
        struct bh_json *c = report(r);
        if (r->a->failed)
            return too_big(r);
        *ret_conflicts = c;
        return bh_err_set(r->err, -EBUSY, "%s", bh_json_get_text(c, "message"));
    }
    take_over(r, own, &d);
    bool fits = encode(r, obj);
    if (r->a->failed)
        return too_big(r);
    if (!fits)
        return bh_err_set(r->err, -E2BIG, "fields are nested too deep to be applied");
    *ret_obj = obj;
    return 0;
}

int bh_apply_ssa(struct bh_arena *a, const struct bh_apply_op *op, const struct bh_json *live,
                 const struct bh_json *config, struct bh_json **ret_obj,
                 struct bh_json **ret_conflicts, struct bh_err *err)
{
    struct run r = {.a = a, .op = op, .walk = {.a = a, .kind = op->kind, .err = err}, .err = err};
    if (config->type != BH_JSON_OBJECT)
        return bh_err_set(err, -EINVAL, "apply: must be an object");
    int rc = apply(&r, live, config, ret_obj, ret_conflicts);
    bh_fwalk_fini(&r.walk);
    return rc;
}

/* ---- ordinary writes ------------------------------------------------------------------------- */

/* The record the write starts from: the client's own, else the stored one. */
static int start_record(struct run *r, const struct bh_json *old, const struct bh_json *obj)
{
    const struct bh_json *sent = bh_json_path(obj, "metadata.managedFields");
    const struct bh_json *stored = bh_json_path(old, "metadata.managedFields");
    bool array = sent && sent->type == BH_JSON_ARRAY;
    if (array && sent->c.n == 1 && sent->c.first->type == BH_JSON_OBJECT && sent->c.first->c.n == 0)
        return decode(r, NULL); /* [{}] asks for a fresh start */
    int rc = decode(r, array && sent->c.n ? sent : stored);
    if (rc == -EINVAL)
        rc = decode(r, stored);
    return rc == -EINVAL ? decode(r, NULL) : rc;
}

static int track(struct run *r, const struct bh_json *old, struct bh_json *obj)
{
    int rc = start_record(r, old, obj);
    if (rc < 0)
        return rc;
    struct bh_fdiff d = bh_fwalk_compare(&r->walk, old, obj);
    strip(d.added);
    strip(d.modified);
    strip(d.removed);
    struct bh_json *taken = bh_fset_combine(r->a, BH_FSET_UNION, d.added, d.modified);
    find_conflicts(r, NULL, &d);
    struct manager *own = find_own(r, "Update");
    struct bh_json *kept = own ? own->set : NULL;
    if (kept && d.removed)
        kept = bh_fset_combine(r->a, BH_FSET_MINUS, kept, d.removed);
    take_over(r, own, &d);
    if (taken && taken->c.n) {
        if (!own)
            own = add_manager(r, r->op->manager, "Update");
        own->time = r->op->time;
        kept = bh_fset_combine(r->a, BH_FSET_UNION, kept, taken);
    }
    if (own)
        own->set = kept;
    /* Merges the oldest Update entries until few enough are left. */
    size_t updates = 0;
    qsort(r->m.v, r->m.n, sizeof(*r->m.v), by_time);
    for (size_t i = 0; i < r->m.n; i++)
        updates += is_update(&r->m.v[i]) && r->m.v[i].set;
    for (size_t i = 0; i + 1 < r->m.n && updates > UPDATE_ENTRIES_MAX; i++) {
        struct manager *m = &r->m.v[i];
        if (!is_update(m) || !m->set)
            continue;
        for (size_t k = i + 1; k < r->m.n; k++) {
            struct manager *next = &r->m.v[k];
            if (!is_update(next) || !next->set || !bh_streq(next->api_version, m->api_version))
                continue;
            next->set = bh_fset_combine(r->a, BH_FSET_UNION, next->set, m->set);
            next->name = ancient_changes;
            next->subresource = "";
            m->set = NULL;
            updates--;
            break;
        }
    }
    (void)encode(r, obj);
    return r->a->failed ? too_big(r) : 0;
}

int bh_apply_track_update(struct bh_arena *a, const struct bh_apply_op *op,
                          const struct bh_json *old, struct bh_json *obj, struct bh_err *err)
{
    struct run r = {.a = a, .op = op, .walk = {.a = a, .kind = op->kind, .err = err}, .err = err};
    int rc = track(&r, old, obj);
    bh_fwalk_fini(&r.walk);
    return rc;
}
