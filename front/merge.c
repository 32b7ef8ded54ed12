/* SPDX-License-Identifier: Apache-2.0
 *
 * front/merge.c - the metrics of several processes as if they were one's
 *
 * Owns:       families, their series in order of first appearance, and two indices over them.
 * Upstream:   none; the text format is prometheus/common's expfmt.
 */
#include "front/merge.h"

#include <math.h>

#include "common/base/map.h"

struct series {
    char *key; /* "name{labels}" */
    double v;
    struct series *next;
};
struct family {
    char *name, *help, *type; /* help, type: the rest of their lines; NULL = not said */
    struct series *first, **last;
};
struct bh_merge {
    struct bh_map families; /* name -> family */
    struct bh_map series;   /* key -> series */
    const struct bh_label_rules *rules;
    struct bh_buf key; /* as the rules leave it */
    double unexpected;
};

enum rule { ADD, SMALLEST, LARGEST };
static const struct {
    const char *name;
    enum rule rule;
} rules[] = {
    {"process_start_time_seconds", SMALLEST},
    {"rest_client_exec_plugin_ttl_seconds", SMALLEST},
    {"process_max_fds", LARGEST},
    {"process_virtual_memory_max_bytes", LARGEST},
    {"leader_election_master_status", LARGEST},
    {"kubernetes_build_info", LARGEST},
    {"kubernetes_feature_enabled", LARGEST},
    {"kubernetes_healthcheck", LARGEST},
    {"version_info", LARGEST},
    {"berth_build_info", LARGEST},
    {"workqueue_longest_running_processor_seconds", LARGEST},
};
static const char *const own[] = {"process_cpu_seconds_total",
                                  "process_resident_memory_bytes",
                                  "process_virtual_memory_bytes",
                                  "process_open_fds",
                                  "process_max_fds",
                                  "process_start_time_seconds"};

struct bh_merge *bh_merge_new(const struct bh_label_rules *labels)
{
    struct bh_merge *m = bh_calloc(1, sizeof(*m));

    m->rules = labels;
    return m;
}

void bh_merge_free(struct bh_merge *m)
{
    struct bh_map_entry *e;

    for (size_t it = 0; (e = bh_map_next(&m->families, &it));) {
        struct family *f = e->value;
        for (struct series *s = f->first, *next; s; s = next) {
            next = s->next;
            free(s->key);
            free(s);
        }
        free(f->name);
        free(f->help);
        free(f->type);
        free(f);
    }
    bh_map_fini(&m->families);
    bh_map_fini(&m->series);
    bh_buf_fini(&m->key);
    free(m);
}

/* ---- reading --------------------------------------------------------------------------------- */

static struct family *family_of(struct bh_merge *m, struct bh_str name)
{
    struct family *f = bh_map_get(&m->families, name.p, name.n);

    if (f)
        return f;
    f = bh_calloc(1, sizeof(*f));
    f->name = bh_strndup(name.p, name.n);
    f->last = &f->first;
    (void)bh_map_put(&m->families, name.p, name.n, f);
    return f;
}

static size_t name_length(const char *p, const char *end)
{
    size_t n = 0;

    while (p + n < end && ((p[n] >= 'a' && p[n] <= 'z') || (p[n] >= 'A' && p[n] <= 'Z') ||
                           p[n] == '_' || p[n] == ':' || (n && p[n] >= '0' && p[n] <= '9')))
        n++;
    return n;
}

/* Behind the closing brace; NULL = it never closes. p is at the opening one. */
static const char *skip_labels(const char *p, const char *end)
{
    bool quoted = false;

    for (p++; p < end; p++) {
        if (quoted && *p == '\\')
            p++;
        else if (*p == '"')
            quoted = !quoted;
        else if (!quoted && *p == '}')
            return p + 1;
    }
    return NULL;
}

static void put(struct bh_merge *m, struct family *f, struct bh_str key, double v)
{
    struct series *s = bh_map_get(&m->series, key.p, key.n);

    if (!s) {
        s = bh_calloc(1, sizeof(*s));
        s->key = bh_strndup(key.p, key.n);
        s->v = v;
        *f->last = s;
        f->last = &s->next;
        (void)bh_map_put(&m->series, key.p, key.n, s);
        return;
    }
    enum rule rule = ADD;
    for (size_t i = 0; i < BH_ARRAY_LEN(rules); i++)
        if (bh_streq(rules[i].name, f->name))
            rule = rules[i].rule;
    s->v = rule == ADD ? s->v + v : rule == SMALLEST ? fmin(s->v, v) : fmax(s->v, v);
}

static bool belongs_as(const struct family *f, struct bh_str name, const char *suffix)
{
    size_t n = strlen(f->name);

    return bh_str_eqc((struct bh_str){name.p + n, name.n - n}, suffix);
}

/* A histogram's and a summary's series have names longer than the family's. */
static bool belongs(const struct family *f, struct bh_str name)
{
    static const char *const suffixes[] = {"", "_bucket", "_sum", "_count"};
    size_t n = f ? strlen(f->name) : 0;

    if (!f || name.n < n || memcmp(name.p, f->name, n) != 0)
        return false;
    for (size_t i = 0; i < BH_ARRAY_LEN(suffixes); i++)
        if (belongs_as(f, name, suffixes[i]))
            return i == 0 ||
                   (f->type && (bh_streq(f->type, "histogram") || bh_streq(f->type, "summary")));
    return false;
}

static void also_alone(struct bh_merge *m, const char *process, const struct family *from, double v)
{
    char name[96], key[192];

    for (size_t i = 0; i < BH_ARRAY_LEN(own); i++) {
        if (!bh_streq(own[i], from->name))
            continue;
        snprintf(name, sizeof(name), "berth_%s", from->name);
        snprintf(key, sizeof(key), "%s{process=\"%.64s\"}", name, process);
        struct family *f = family_of(m, bh_str_c(name));
        if (!f->help && from->help)
            f->help = bh_strdup(from->help);
        if (!f->type && from->type)
            f->type = bh_strdup(from->type);
        put(m, f, bh_str_c(key), v);
    }
}

/* The key without values that are not on their label's list. */
static struct bh_str constrained(struct bh_merge *m, const struct family *f, struct bh_str name,
                                 struct bh_str key, double v)
{
    bool histogram = f->type && bh_streq(f->type, "histogram");
    bool counts =
        histogram ? belongs_as(f, name, "_count") : f->type && bh_streq(f->type, "counter");
    unsigned n = bh_label_rules_apply(m->rules, f->name, key, &m->key);

    if (!n)
        return key;
    if (!histogram || counts)
        m->unexpected += (counts && isfinite(v) && v > 0 ? v : !counts) * n;
    return (struct bh_str){m->key.p, m->key.n};
}

static bool read_sample(struct bh_merge *m, const char *process, struct family **at, const char *p,
                        const char *end)
{
    struct bh_str name = {p, name_length(p, end)};
    const char *rest = p + name.n;
    char number[64], *number_end;

    if (!name.n)
        return false;
    if (rest < end && *rest == '{' && !(rest = skip_labels(rest, end)))
        return false;
    struct bh_str key = {p, (size_t)(rest - p)};
    while (rest < end && (*rest == ' ' || *rest == '\t'))
        rest++;
    size_t n = 0;
    while (rest + n < end && rest[n] != ' ' && rest[n] != '\t')
        n++;
    if (!n || n >= sizeof(number) || rest == p + name.n)
        return false;
    memcpy(number, rest, n);
    number[n] = '\0';
    double v = strtod(number, &number_end);
    if (*number_end)
        return false;
    if (!belongs(*at, name))
        *at = family_of(m, name);
    if (key.n == name.n + 2) /* "name{}" */
        key.n = name.n;
    put(m, *at, constrained(m, *at, name, key, v), v);
    also_alone(m, process, *at, v);
    return true;
}

static bool read_comment(struct bh_merge *m, struct family **at, const char *p, const char *end)
{
    bool help = end - p >= 7 && memcmp(p, "# HELP ", 7) == 0;
    bool type = end - p >= 7 && memcmp(p, "# TYPE ", 7) == 0;
    size_t n = help || type ? name_length(p + 7, end) : 0;
    const char *rest = p + 7 + n;

    if (!n || (rest < end && *rest != ' '))
        return !help && !type; /* any other comment */
    *at = family_of(m, (struct bh_str){p + 7, n});
    char **to = help ? &(*at)->help : &(*at)->type;
    if (!*to)
        *to = rest < end ? bh_strndup(rest + 1, (size_t)(end - rest - 1)) : bh_strdup("");
    return true;
}

size_t bh_merge_add(struct bh_merge *m, const char *process, const char *text, size_t n)
{
    const char *p = text, *end = text + n;
    struct family *at = NULL;
    size_t bad = 0;

    while (p < end) {
        const char *eol = memchr(p, '\n', (size_t)(end - p));
        const char *line_end = eol ? eol : end;
        bool empty = line_end == p, ok = !memchr(p, '\0', (size_t)(line_end - p));
        if (ok && !empty)
            ok = *p == '#' ? read_comment(m, &at, p, line_end)
                           : read_sample(m, process, &at, p, line_end);
        bad += !ok;
        p = eol ? eol + 1 : end;
    }
    return bad;
}

/* ---- writing --------------------------------------------------------------------------------- */

static int by_name(const void *a, const void *b)
{
    return strcmp((*(struct family *const *)a)->name, (*(struct family *const *)b)->name);
}

static bool may_be_disabled(const char *name)
{
    return strncmp(name, "process_", 8) != 0 && strncmp(name, "go_", 3) != 0;
}

void bh_merge_write(const struct bh_merge *m, const struct bh_opt_list *disabled,
                    struct bh_buf *out)
{
    struct family **list = bh_calloc(m->families.len + 1, sizeof(struct family *));
    struct bh_map_entry *e;
    size_t n = 0;

    for (size_t it = 0; (e = bh_map_next(&m->families, &it));)
        list[n++] = e->value;
    qsort(list, n, sizeof(struct family *), by_name);
    for (size_t i = 0; i < n; i++) {
        bool off = !list[i]->first;
        for (size_t k = 0; disabled && k < disabled->n && !off; k++)
            off = bh_streq(disabled->v[k], list[i]->name) && may_be_disabled(list[i]->name);
        if (!off) {
            const struct family *f = list[i];
            if (f->help)
                bh_buf_addf(out, "# HELP %s %s\n", f->name, f->help);
            if (f->type)
                bh_buf_addf(out, "# TYPE %s %s\n", f->name, f->type);
            for (const struct series *s = f->first; s; s = s->next) {
                bh_buf_adds(out, s->key);
                bh_buf_addc(out, ' ');
                bh_buf_addf64(out, s->v);
                bh_buf_addc(out, '\n');
            }
        }
    }
    free(list);
}

bool bh_merge_can_hide(const struct bh_merge *m, const char *family)
{
    return may_be_disabled(family) && bh_map_get(&m->families, family, strlen(family));
}

double bh_merge_unexpected(const struct bh_merge *m)
{
    return m->unexpected;
}

bool bh_merge_value(const struct bh_merge *m, const char *family, double *ret)
{
    const struct family *f = bh_map_get(&m->families, family, strlen(family));

    if (!f || !f->first)
        return false;
    *ret = f->first->v;
    return true;
}
