/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/schema/load.c - the tables, read once into structs
 */
#include "common/base/map.h"
#include "simulator/schema/schema.h"

#include <pthread.h>

static const char field_lines[] =
#include "simulator/schema/fields.data.h"
    ;
static const char word_lines[] =
#include "simulator/schema/words.data.h"
    ;

struct tables {
    struct bh_arena arena;
    struct bh_map types; /* "core.v1.PodSpec" -> bh_oas_type */
    struct bh_map words; /* "PodSpec", "PodSpec.tolerations", ".kind" -> text */
};
static struct tables tables;
static const struct bh_oas_type **roots; /* by index in bh_sim_types */
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* field NULL: of the type itself. */
static const char *words_of(const char *type, const char *field)
{
    char of[160];
    int n = snprintf(of, sizeof(of), "%s%s%s", type, field ? "." : "", field ? field : "");
    const char *words = bh_map_get(&tables.words, of, (size_t)n);
    if (!words && field) /* of that field of any type */
        words = bh_map_get(&tables.words, of + strlen(type), strlen(of + strlen(type)));
    return words ? words : "";
}

static struct bh_oas_type *type_at(const char *name, size_t n)
{
    struct bh_oas_type *t = bh_map_get(&tables.types, name, n);
    if (t)
        return t;
    t = bh_arena_new(&tables.arena, struct bh_oas_type);
    const char *dot = memrchr(name, '.', n);
    t->package = bh_arena_strndup(&tables.arena, name, (size_t)(dot - name));
    t->name = bh_arena_strndup(&tables.arena, dot + 1, n - (size_t)(dot + 1 - name));
    t->words = words_of(t->name, NULL);
    bh_map_put(&tables.types, name, n, t);
    return t;
}

/* Takes the marks off the end of "TYPE~key&=!"; returns the new end. */
static const char *read_marks(struct bh_oas_field *f, const char *type, const char *end)
{
    bool by_value = false, flipped = false;

    for (; end > type && strchr("!*&=?", end[-1]); end--) {
        f->required |= end[-1] == '!';
        f->pointer |= end[-1] == '*';
        by_value |= end[-1] == '&';
        flipped |= end[-1] == '=' || end[-1] == '?';
    }
    f->always = f->required != flipped;
    bool leaf = end - type == 1 || type[1] == '(' || type[1] == '~';
    if (!leaf && !*f->form)
        f->pointer = !by_value;
    return end;
}

/* "containers:[Container~name!" */
static void read_field(struct bh_oas_type *t, struct bh_oas_field *f, const char *p, size_t n)
{
    struct bh_arena *a = &tables.arena;
    const char *colon = memchr(p, ':', n), *end = p + n, *type = colon + 1;
    size_t form = strspn(type, "[{");
    f->name = bh_arena_strndup(a, p, (size_t)(colon - p));
    f->words = words_of(t->name, f->name);
    f->form = bh_arena_strndup(a, type, form);
    type += form;
    end = read_marks(f, type, end);
    f->retain_keys = end[-1] == '~';
    end -= f->retain_keys ? 2 : 0;
    const char *key = memchr(type, '~', (size_t)(end - type));
    if (key) {
        f->merge_key = bh_arena_strndup(a, key + 1, (size_t)(end - key - 1));
        end = key;
    }
    const char *open = memchr(type, '(', (size_t)(end - type));
    f->go = open ? bh_arena_strndup(a, open + 1, (size_t)(end - open - 2)) : "";
    end = open ? open : end;
    size_t len = (size_t)(end - type);
    if (len == 1) {
        f->leaf = *type;
    } else if (memchr(type, '.', len)) {
        f->type = type_at(type, len);
    } else {
        const char *full = bh_arena_printf(a, "%s.%.*s", t->package, (int)len, type);
        f->type = type_at(full, strlen(full));
    }
}

static int by_name(const void *a, const void *b)
{
    const struct bh_oas_field *x = a, *y = b;

    return strcmp(x->name, y->name);
}

static void read_type(const char *package, const char *line, size_t n, bool plain)
{
    size_t name = strcspn(line, " \n");
    const char *full = bh_arena_printf(&tables.arena, "%s.%.*s", package, (int)name, line);
    struct bh_oas_type *t = type_at(full, strlen(full));
    struct bh_oas_field *fields;
    size_t count = 0, i = 0;
    for (size_t k = 0; k < n; k++)
        count += line[k] == ' ';
    t->plain = plain;
    t->fields = fields = bh_arena_new_array(&tables.arena, struct bh_oas_field, count + 1);
    t->n = count;
    for (const char *p = line + name; p < line + n; i++) {
        size_t len = strcspn(++p, " \n");
        read_field(t, &fields[i], p, len);
        fields[i].declared = i;
        p += len;
    }
    qsort(fields, count, sizeof(*fields), by_name);
    size_t *declared = bh_arena_new_array(&tables.arena, size_t, count + 1);
    for (i = 0; i < count; i++)
        declared[fields[i].declared] = i;
    t->declared = declared;
}

static const struct bh_oas_type *find_type(const char *package, const char *name)
{
    char full[160];
    int n = snprintf(full, sizeof(full), "%s.%s", package, name);
    return n < (int)sizeof(full) ? bh_map_get(&tables.types, full, (size_t)n) : NULL;
}

static void load(void)
{
    bh_arena_init(&tables.arena, 0);
    char package[80] = "";
    bool plain = false;
    size_t n;
    for (const char *p = word_lines; *p; p += n + 1) {
        const char *text = strstr(p, ": ") + 2;
        n = strcspn(p, "\n");
        bh_map_put(&tables.words, p, (size_t)(text - 2 - p),
                   bh_arena_strndup(&tables.arena, text, (size_t)(p + n - text)));
    }
    for (const char *p = field_lines; *p; p += n + 1) {
        n = strcspn(p, "\n");
        if (*p == '@') {
            plain = p[n - 1] == '-';
            snprintf(package, sizeof(package), "%.*s", (int)n - 1 - 2 * plain, p + 1);
        } else {
            read_type(package, p, n, plain);
        }
    }
    roots = bh_arena_new_array(&tables.arena, const struct bh_oas_type *, bh_sim_n_types);
    for (size_t i = 0; i < bh_sim_n_types; i++) {
        const struct bh_sim_type *t = &bh_sim_types[i];
        snprintf(package, sizeof(package), "%.*s.%s", *t->group ? (int)strcspn(t->group, ".") : 4,
                 *t->group ? t->group : "core", t->version);
        roots[i] = find_type(package, t->kind);
    }
}

const struct bh_oas_type *bh_oas_find(const char *package, const char *name)
{
    pthread_once(&once, load);
    return find_type(package, name);
}

const struct bh_oas_type *bh_oas_root(const struct bh_sim_type *t)
{
    pthread_once(&once, load);
    return t->flags & BH_SIM_CUSTOM ? NULL : roots[t - bh_sim_types];
}

const struct bh_oas_field *bh_oas_field(const struct bh_oas_type *t, const char *name)
{
    size_t lo = 0, hi = t->n;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        int c = strcmp(name, t->fields[mid].name);
        if (!c)
            return &t->fields[mid];
        if (c < 0)
            hi = mid;
        else
            lo = mid + 1;
    }
    return NULL;
}

const struct bh_oas_leaf *bh_oas_leaf(char letter)
{
    static const struct bh_oas_leaf leaves[] = {
        {'s', "string", ""},          {'i', "integer", "int32"},
        {'l', "integer", "int64"},    {'d', "number", "double"},
        {'b', "boolean", ""},         {'y', "string", "byte"},
        {'q', "string", ""},          {'t', "string", "date-time"},
        {'m', "string", "date-time"}, {'x', "string", "int-or-string"},
        {'r', "object", ""},          {'a', "", ""},
    };
    const struct bh_oas_leaf *l = leaves;
    while (l->letter != letter)
        bh_assert(++l < leaves + BH_ARRAY_LEN(leaves));
    return l;
}

void bh_oas_full_name(const struct bh_oas_type *t, struct bh_buf *out)
{
    const char *prefix = "io.k8s.api.";
    if (bh_streq(t->package, "meta.v1"))
        prefix = "io.k8s.apimachinery.pkg.apis.";
    else if (bh_streq(t->package, "apiextensions.v1"))
        prefix = "io.k8s.apiextensions-apiserver.pkg.apis.";
    else if (bh_streq(t->package, "apiregistration.v1"))
        prefix = "io.k8s.kube-aggregator.pkg.apis.";
    else if (bh_streq(t->package, "metrics.v1beta1"))
        prefix = "io.k8s.metrics.pkg.apis.";
    bh_buf_addf(out, "%s%s.%s", prefix, t->package, t->name);
}
