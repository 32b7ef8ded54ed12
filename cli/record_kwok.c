/* SPDX-License-Identifier: Apache-2.0
 *
 * cli/record_kwok.c - a recording of kwokctl (`snapshot export --record`) as a record file
 *
 * YAML documents: objects, the state at the beginning, then ResourcePatch documents with their
 * offset in time, of which some hold only what changed. The present object of each name is kept to
 * merge those into; what is written is cleaned.
 * Upstream: kwok's pkg/apis/action/v1alpha1, pkg/kwokctl/recording.
 */
#include "cli/record.h"

#include <errno.h>

#include "common/base/map.h"
#include "common/data/patch.h"
#include "common/data/yaml.h"
#include "simulator/replay/clean.h"

#define FILE_MAX_BYTES ((size_t)256 << 20)
#define ACTION_GROUP   "action.kwok.x-k8s.io/"

struct kwok {
    struct bh_record_file *file;
    struct bh_map state; /* "plural/ns/name" -> text of the whole object */
    struct bh_arena arena;
    uint64_t skipped;
};

static char *key_of(struct kwok *w, const struct bh_clean_kind *k, const char *ns, const char *name)
{
    return bh_arena_printf(&w->arena, "%s/%s/%s", k->plural, ns, name);
}

static void keep(struct kwok *w, const char *key, const struct bh_json *obj)
{
    struct bh_buf b = {0};

    bh_json_write(&b, obj);
    free(bh_map_put(&w->state, key, strlen(key), bh_buf_take(&b)));
}

static void write_object(struct kwok *w, int64_t at_ns, enum bh_record_event e,
                         const struct bh_clean_kind *k, const struct bh_json *obj)
{
    const char *why;
    struct bh_json *o = bh_clean(&w->arena, k, obj, NULL, &why);

    if (why && !bh_streq(why, "finished"))
        w->skipped++;
    else
        bh_record_file_add(w->file, BH_RECORD_EPOCH_NS + at_ns, e, o);
}

static void add_object(struct kwok *w, int64_t at_ns, const struct bh_clean_kind *k,
                       const struct bh_json *obj)
{
    const struct bh_json *meta = bh_json_get(obj, "metadata");

    keep(w, key_of(w, k, bh_json_get_text(meta, "namespace"), bh_json_get_text(meta, "name")), obj);
    write_object(w, at_ns, BH_RECORD_ADD, k, obj);
}

static int merge(struct kwok *w, int64_t at_ns, const struct bh_clean_kind *k, const char *key,
                 const struct bh_json *patch, struct bh_err *err)
{
    const char *text = bh_map_get(&w->state, key, strlen(key));
    struct bh_json *cur, *now;

    if (!text) {
        w->skipped++; /* of an object that the record never created */
        return 0;
    }
    int rc = bh_json_parse(&w->arena, text, strlen(text), BH_JSON_NUL, &cur, err);
    if (rc == 0)
        rc = bh_patch_strategic(&w->arena, k->kind, cur, patch, &now, err);
    if (rc == -ENOTSUP)
        rc = bh_patch_merge(&w->arena, cur, patch, &now, err);
    if (rc < 0)
        return rc;
    keep(w, key, now);
    write_object(w, at_ns, BH_RECORD_UPDATE, k, now);
    return 0;
}

static int act(struct kwok *w, const struct bh_json *doc, struct bh_err *err)
{
    const struct bh_json *what = bh_json_get(doc, "resource"), *target = bh_json_get(doc, "target");
    const struct bh_json *template = bh_json_get(doc, "template");
    const struct bh_clean_kind *k = bh_clean_kind_named(bh_json_get_text(what, "resource"));
    const char *ns = bh_json_get_text(target, "namespace"), *method, *key;
    const char *name = bh_json_get_text(target, "name");
    int64_t at_ns = bh_json_get_i64(doc, "durationNanosecond", -1);
    char av[80];

    method = bh_json_get_text(doc, "method");
    if (at_ns < 0 || at_ns > INT64_C(1) << 60)
        return bh_err_set(err, -EINVAL, "line %u: durationNanosecond: is missing or out of range",
                          doc->line);
    if (!k || !bh_streq(k->group, bh_json_get_text(what, "group"))) {
        w->skipped++;
        return 0;
    }
    key = key_of(w, k, ns, name);
    if (bh_streq(method, "delete")) {
        free(bh_map_del(&w->state, key, strlen(key)));
        bh_record_file_add(
            w->file, BH_RECORD_EPOCH_NS + at_ns, BH_RECORD_DELETE,
            bh_record_tombstone(&w->arena, bh_clean_api_version(k, av), k->kind, ns, name));
        return 0;
    }
    if (!template || template->type != BH_JSON_OBJECT)
        return bh_err_set(err, -EINVAL, "line %u: template: is missing or no object", doc->line);
    if (bh_streq(method, "patch"))
        return merge(w, at_ns, k, key, template, err);
    if (!bh_streq(method, "create"))
        return bh_err_set(
            err, -EINVAL,
            "line %u: method: unknown method \"%.40s\" (known: create, patch, delete)", doc->line,
            method);
    add_object(w, at_ns, k, template);
    return 0;
}

static int apply_document(struct kwok *w, const struct bh_json *doc, struct bh_err *err)
{
    const char *av = bh_json_get_text(doc, "apiVersion"), *kind = bh_json_get_text(doc, "kind");
    const struct bh_clean_kind *k = bh_clean_kind_find(av, kind);

    if (strncmp(av, ACTION_GROUP, strlen(ACTION_GROUP)) == 0 && bh_streq(kind, "ResourcePatch"))
        return act(w, doc, err);
    if (k)
        add_object(w, 0, k, doc);
    else
        w->skipped++;
    return 0;
}

int bh_record_kwok(struct bh_record_file *f, const char *path, bool header, struct bh_err *err)
{
    struct kwok w = {.file = f};
    struct bh_map_entry *e;
    struct bh_json *docs = NULL;
    struct bh_arena tree;
    BH_CLEANUP(bh_freep) char *text = NULL;
    size_t n = 0;
    int rc = bh_read_file(path, FILE_MAX_BYTES, &text, &n);

    if (rc < 0)
        return bh_err_set(err, rc, "could not read \"%s\": %s", path, strerror(-rc));
    bh_arena_init(&tree, 64 * FILE_MAX_BYTES);
    rc = bh_yaml_parse_all(&tree, text, n, BH_JSON_NUL, &docs, err);
    if (rc == 0 && header)
        bh_record_file_header(f, BH_RECORD_EPOCH_NS, false);
    bh_json_each(doc, docs) {
        bh_arena_reset(&w.arena);
        rc = rc == 0 ? apply_document(&w, doc, err) : rc;
    }
    if (w.skipped)
        fprintf(stderr, "berth record: %llu documents without use for scheduling were left out\n",
                (unsigned long long)w.skipped);
    for (size_t it = 0; (e = bh_map_next(&w.state, &it));)
        free(e->value);
    bh_map_fini(&w.state);
    bh_arena_fini(&w.arena);
    bh_arena_fini(&tree);
    return rc < 0 ? bh_err_prefix(err, rc, "%s", path) : 0;
}
