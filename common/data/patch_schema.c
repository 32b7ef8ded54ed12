/* SPDX-License-Identifier: Apache-2.0
 *
 * common/data/patch_schema.c - how do the lists of the built-in types merge?
 *
 * Strategic merge and server-side apply disagree in places; then `apply` differs from `key`.
 */
#include "common/base/map.h"
#include "common/data/patch_schema.h"

#include <pthread.h>

struct kind {
    const char *name;
    const char *template; /* path prefix of its pod template's metadata and spec; NULL = none */
};
struct list {
    const char *key;   /* strategic merge: "" atomic, "-" set of primitives */
    const char *apply; /* server-side apply: comma separated keys in order */
};

static char lines[] =
#include "common/data/patch_schema.data.h"
    ;
static struct bh_map kinds; /* name -> struct kind */
static struct bh_map lists; /* "Kind path" -> struct list */

/* "KIND", "KIND PREFIX" or "KIND PATH KEY [APPLY]": see patch_schema.data. */
static void read_lines(void)
{
    char *rest = lines, *line;

    while ((line = strsep(&rest, "\n")) && *line) {
        char *name = strsep(&line, " "), *where = strsep(&line, " "), *key = strsep(&line, " ");
        if (!key) {
            struct kind *k = bh_calloc(1, sizeof(*k));
            *k = (struct kind){name, where && bh_streq(where, ".") ? "" : where};
            bh_map_put(&kinds, name, strlen(name), k);
            continue;
        }
        struct list *l = bh_calloc(1, sizeof(*l));
        l->key = bh_streq(key, "atomic") ? "" : key;
        l->apply = !line ? l->key : bh_streq(line, "atomic") ? "" : line;
        where[-1] = ' '; /* "KIND PATH" again */
        bh_map_put(&lists, name, strlen(name), l);
    }
}

static const struct kind *find_kind(const char *name)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, read_lines);
    return bh_map_get(&kinds, name, strlen(name));
}

static const struct list *find_in(const char *kind, const char *path)
{
    char name[256];
    int n = snprintf(name, sizeof(name), "%s %s", kind, path);

    return (size_t)n < sizeof(name) ? bh_map_get(&lists, name, (size_t)n) : NULL;
}

size_t bh_patch_enter(struct bh_buf *path, const char *name)
{
    size_t keep = path->n;
    if (keep)
        bh_buf_addc(path, '.');
    bh_buf_adds(path, name);
    return keep;
}

void bh_patch_leave(struct bh_buf *path, size_t keep)
{
    path->n = keep;
    path->p[keep] = 0;
}

const char *bh_patch_behind(const char *path, const char *prefix)
{
    size_t n = strlen(prefix);
    return strncmp(path, prefix, n) == 0 ? path + n : NULL;
}

static const struct list *find_in_pod_spec(const char *path)
{
    const char *rest = bh_patch_behind(path, "containers.");
    if (!rest)
        rest = bh_patch_behind(path, "initContainers.");
    if (!rest)
        rest = bh_patch_behind(path, "ephemeralContainers.");
    return rest ? find_in("Container", rest) : find_in("PodSpec", path);
}

static const struct list *find_list(const char *kind, const char *path)
{
    const struct kind *k = find_kind(kind ? kind : "");
    const char *rest = bh_patch_behind(path, "metadata.");

    if (rest)
        return find_in("Metadata", rest);
    if (!k)
        return NULL;
    if (k->template && (rest = bh_patch_behind(path, k->template))) {
        const char *spec = bh_patch_behind(rest, "spec."),
                   *meta = bh_patch_behind(rest, "metadata.");
        const struct list *l = spec   ? find_in_pod_spec(spec)
                               : meta ? find_in("Metadata", meta)
                                      : NULL;
        if (l)
            return l;
    }
    return find_in(k->name, path);
}

bool bh_patch_kind_known(const char *kind)
{
    return kind && find_kind(kind);
}

const char *bh_patch_merge_key(const char *kind, const char *path)
{
    const struct list *l = find_list(kind, path);
    return l ? l->key : "";
}

const char *bh_patch_apply_keys(const char *kind, const char *path)
{
    const struct list *l = find_list(kind, path);
    return l ? l->apply : "";
}
