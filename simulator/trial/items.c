/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/trial/items.c - the objects of the files, by kind and name
 *
 * An object is kept as compact text without managedFields: a few kilobytes, where its tree takes
 * ten times as much.
 */
#include <errno.h>

#include "simulator/trial/trial.h"
#include "scheduler/explain/grid.h"
#include "simulator/server/sim.h"

#define NAME_MAX_BYTES 253u

void bh_trial_warn(struct bh_trial *t, const char *fmt, ...)
{
    BH_CLEANUP(bh_buf_fini) struct bh_buf b = {0};
    va_list ap;

    va_start(ap, fmt);
    bh_buf_vaddf(&b, fmt, ap);
    va_end(ap);
    t->warnings = bh_reallocarray(t->warnings, t->n_warnings + 1, sizeof *t->warnings);
    t->warnings[t->n_warnings++] = bh_arena_strdup(&t->names, bh_buf_str(&b));
    if (t->o.watcher.warning)
        t->o.watcher.warning(t->o.watcher.arg, t->n_warnings, bh_buf_str(&b));
}

void bh_trial_progress(struct bh_trial *t, const char *what, size_t done, size_t total)
{
    if (t->o.watcher.progress)
        t->o.watcher.progress(t->o.watcher.arg, what, done, total);
}

bool bh_trial_stopped(const struct bh_trial *t)
{
    return t->o.watcher.stop && t->o.watcher.stop(t->o.watcher.arg);
}

int bh_trial_blame(struct bh_err *err, int rc, const struct bh_trial_item *it)
{
    BH_CLEANUP(bh_buf_fini) struct bh_buf b = {0};

    bh_trial_where(&b, &it->at);
    bh_buf_addf(&b, ": %.80s %.100s%s%.100s", it->kind_name, it->ns, *it->ns ? "/" : "", it->name);
    bh_err_prefix(err, rc, "%.400s", bh_buf_str(&b));
    return rc;
}

/* ---- looking up ------------------------------------------------------------------------------ */

static char *key_of(const char *kind, const char *ns, const char *name)
{
    return bh_asprintf("%s/%s/%s", kind, ns, name);
}

struct bh_trial_item *bh_trial_find_item(const struct bh_trial *t, const char *kind, const char *ns,
                                         const char *name)
{
    BH_CLEANUP(bh_freep) char *key = key_of(kind, ns, name);
    uintptr_t at = (uintptr_t)bh_map_get(&t->by_name, key, strlen(key));

    return at ? &t->items[at - 1] : NULL;
}

/* The later one of a name counts, as with `kubectl apply`. */
static void index_item(struct bh_trial *t, size_t at)
{
    struct bh_trial_item *it = &t->items[at], *old;
    BH_CLEANUP(bh_freep) char *key = key_of(it->kind_name, it->ns, it->name);
    BH_CLEANUP(bh_buf_fini) struct bh_buf was = {0}, is = {0};

    if (!*it->name)
        return; /* not named yet */
    uintptr_t before =
        (uintptr_t)bh_map_put(&t->by_name, key, strlen(key), (void *)(uintptr_t)(at + 1));
    if (!before || before == at + 1)
        return;
    old = &t->items[before - 1];
    old->replaced = true;
    if (old->borrowed)
        return; /* that is what replacing it is for */
    bh_trial_where(&was, &old->at);
    bh_trial_where(&is, &it->at);
    bh_trial_warn(t, "%s %s%s%s: %s replaces %s", it->kind_name, it->ns, *it->ns ? "/" : "",
                  it->name, bh_buf_str(&is), bh_buf_str(&was));
}

/* ---- kinds ----------------------------------------------------------------------------------- */

/* Kinds that say something about placement without being kept by the engine. */
static bool matters_otherwise(const char *api_version, const char *kind)
{
    static const char *const kinds[][2] = {{"apps/v1", "Deployment"},
                                           {"apps/v1", "DaemonSet"},
                                           {"batch/v1", "Job"},
                                           {"v1", "LimitRange"},
                                           {"node.k8s.io/v1", "RuntimeClass"},
                                           {"scheduling.k8s.io/v1alpha2", "Workload"},
                                           {"scheduling.k8s.io/v1alpha3", "Workload"},
                                           {"scheduling.k8s.io/v1beta1", "Workload"}};

    for (size_t i = 0; i < BH_ARRAY_LEN(kinds); i++)
        if (bh_streq(kinds[i][0], api_version) && bh_streq(kinds[i][1], kind))
            return true;
    return false;
}

/* 0, or the refusal of --strict. */
static int leave_out(struct bh_trial *t, const struct bh_trial_source *at, const char *api_version,
                     const char *kind, const char *name, struct bh_err *err)
{
    BH_CLEANUP(bh_buf_fini) struct bh_buf b = {0};
    int rc = 0;

    if (bh_sim_type_of_kind(api_version, kind)) {
        uintptr_t n = (uintptr_t)bh_map_get(&t->left_out, kind, strlen(kind));
        (void)bh_map_put(&t->left_out, kind, strlen(kind), (void *)(n + 1)); /* a number */
        return 0;
    }
    bh_trial_where(&b, at);
    bh_buf_addf(&b, ": %.80s %.100s: kind %.80s in %.80s is not known", kind, name, kind,
                api_version);
    for (size_t i = 0; i < BH_KIND_COUNT; i++)
        if (bh_streq(bh_kinds[i].kind_name, kind)) {
            bh_buf_adds(&b, "; only the kind's v1 is read");
            break;
        }
    if (t->o.strict)
        rc = bh_err_set(err, -EINVAL, "%s", bh_buf_str(&b));
    else
        bh_trial_warn(t, "%s, left out", bh_buf_str(&b));
    return rc;
}

/* ---- adding ---------------------------------------------------------------------------------- */

static void write_item(struct bh_trial_item *it, const struct bh_json *obj)
{
    struct bh_buf b = {0};

    bh_json_write(&b, obj);
    it->n = b.n;
    it->json = bh_buf_take(&b);
}

static int check_name(const struct bh_json *meta, const char *key, bool required,
                      struct bh_err *err)
{
    const struct bh_json *v = bh_json_get(meta, key);

    if (v && v->type != BH_JSON_STRING && v->type != BH_JSON_NULL)
        return bh_err_set(err, -EINVAL,
                          "metadata.%s: expected text; in YAML y, n, yes, no, on, off, true, false "
                          "and numbers are text only in quotes",
                          key);
    size_t n = bh_json_cstr(v) ? v->s.n : 0;
    if (n > NAME_MAX_BYTES)
        return bh_err_set(err, -EINVAL, "metadata.%s: must be no more than 253 characters", key);
    return n == 0 && required ? bh_err_set(err, -EINVAL, "metadata.%s: Required value", key) : 0;
}

static void append(struct bh_trial *t, const struct bh_trial_item *it)
{
    BH_GROW(t->items, t->n_items, t->cap_items);
    t->items[t->n_items++] = *it;
    index_item(t, t->n_items - 1);
}

bool bh_trial_wants(const char *api_version, const char *kind)
{
    return bh_kind_find_any(api_version, kind) || matters_otherwise(api_version, kind);
}

void bh_trial_add_stored(struct bh_trial *t, const struct bh_trial_source *at,
                         const char *api_version, const char *kind, const char *ns,
                         const char *name, const char *json, size_t n)
{
    struct bh_trial_item it = {.at = *at,
                               .kind = bh_kind_find_any(api_version, kind),
                               .api_version = bh_arena_strdup(&t->names, api_version),
                               .kind_name = bh_arena_strdup(&t->names, kind),
                               .ns = bh_arena_strdup(&t->names, ns),
                               .name = bh_arena_strdup(&t->names, name),
                               .json = (char *)(uintptr_t)json,
                               .n = n,
                               .admitted = true,
                               .borrowed = true};

    it.at.rank = ++t->n_read;
    append(t, &it);
}

bool bh_trial_remove_item(struct bh_trial *t, const char *kind, const char *ns, const char *name)
{
    struct bh_trial_item *it = bh_trial_find_item(t, kind, ns, name);
    BH_CLEANUP(bh_freep) char *key = key_of(kind, ns, name);

    if (!it)
        return false;
    it->replaced = true;
    bh_map_del(&t->by_name, key, strlen(key));
    return true;
}

int bh_trial_add_item(struct bh_trial *t, const struct bh_trial_source *at,
                      const struct bh_json *obj, struct bh_err *err)
{
    const char *api_version = bh_json_get_str(obj, "apiVersion"),
               *kind = bh_json_get_str(obj, "kind");
    const struct bh_json *meta = bh_json_get(obj, "metadata");
    const struct bh_kind_info *k = bh_kind_find_any(api_version, kind);
    const struct bh_sim_type *type = bh_sim_type_of_kind(api_version, kind);
    const char *name = bh_json_get_text(meta, "name"), *ns = bh_json_get_text(meta, "namespace");
    bool namespaced = k ? k->namespaced : type && type->flags & BH_SIM_NAMESPACED;
    bool custom = k && k->kind >= BH_KIND_CUSTOM; /* only the object tells */

    if (!k && !matters_otherwise(api_version, kind))
        return leave_out(t, at, api_version, kind, name, err);
    struct bh_trial_item it = {
        .at = *at,
        .kind = k,
        .admitted = *bh_json_get_text(meta, "uid"),
        .api_version = bh_arena_strdup(&t->names, api_version),
        .kind_name = bh_arena_strdup(&t->names, kind),
        .name = bh_arena_strdup(&t->names, name),
        .ns = bh_arena_strdup(&t->names, custom        ? ns
                                         : !namespaced ? ""
                                         : *ns         ? ns
                                                       : "default"),
    };
    bool drawn = !it.admitted && bh_json_get_str(meta, "generateName");
    int rc = check_name(meta, "name", !drawn, err);
    rc = rc < 0 ? rc : check_name(meta, "namespace", false, err);
    if (rc < 0)
        return bh_trial_blame(err, rc, &it);
    write_item(&it, obj);
    append(t, &it);
    return 0;
}

void bh_trial_set_item(struct bh_trial *t, size_t at, const struct bh_json *obj)
{
    struct bh_trial_item *it = &t->items[at];
    const char *name = bh_json_get_str(bh_json_get(obj, "metadata"), "name");

    if (!it->borrowed)
        free(it->json);
    it->borrowed = false;
    write_item(it, obj);
    if (name && !bh_streq(name, it->name)) {
        it->name = bh_arena_strdup(&t->names, name);
        index_item(t, at);
    }
}

void bh_trial_items_fini(struct bh_trial *t)
{
    for (size_t i = 0; i < t->n_items; i++)
        if (!t->items[i].borrowed)
            free(t->items[i].json);
    free(t->items);
    bh_map_fini(&t->by_name);
    bh_map_fini(&t->left_out);
    bh_map_fini(&t->foreign);
}
