/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/config/source.c - the text of a file into a tree, as upstream's decoder reads it
 *
 * What begins with `{` is JSON and nothing else; all other text is YAML. Keys that YAML repeats are
 * collected for the strict reading (decode.c), the later one wins. Members of YAML are sorted, as
 * they are there on the way through a Go map; so the first error is the same.
 *
 * Upstream: apimachinery/pkg/runtime/serializer/{json,recognizer}, sigs.k8s.io/yaml (goyaml.v2).
 */
#include <errno.h>
#include <yaml.h>

#include "common/base/map.h"
#include "common/data/yaml.h"
#include "scheduler/config/config_int.h"

#define TREE_MAX ((size_t)256 << 20)

/* ---- syntax errors --------------------------------------------------------------------------- */

struct yaml_look { /* what libyaml itself says of the first document */
    bool bad, more;
    char what[128];
    size_t line;      /* as upstream counts: some from 0; 0 = not told */
    uint32_t at_line; /* from 1 */
};

static void note_problem(const yaml_parser_t *p, const char *text, size_t n, struct yaml_look *ret)
{
    ret->bad = true;
    ret->line = p->problem_mark.line   ? p->problem_mark.line + (p->error == YAML_SCANNER_ERROR)
                : p->context_mark.line ? p->context_mark.line
                                       : 0;
    ret->at_line = (uint32_t)p->problem_mark.line + 1;
    if (p->error == YAML_READER_ERROR) {
        ret->at_line = 1;
        for (size_t i = 0; i < p->problem_offset && i < n; i++)
            ret->at_line += text[i] == '\n';
    }
    snprintf(ret->what, sizeof ret->what, "%s",
             p->problem ? p->problem : "unknown problem parsing YAML content");
}

static void look_at_yaml(const char *text, size_t n, struct yaml_look *ret)
{
    yaml_parser_t p;
    yaml_event_t ev;
    unsigned depth = 0;
    bool end = false, ended = false; /* the document; reading */

    *ret = (struct yaml_look){0};
    if (!yaml_parser_initialize(&p))
        abort(); /* out of ordinary memory, see base.h */
    yaml_parser_set_input_string(&p, (const unsigned char *)text, n);
    while (!ended && yaml_parser_parse(&p, &ev)) {
        depth += ev.type == YAML_SEQUENCE_START_EVENT || ev.type == YAML_MAPPING_START_EVENT;
        depth -= ev.type == YAML_SEQUENCE_END_EVENT || ev.type == YAML_MAPPING_END_EVENT;
        ret->more = end && ev.type == YAML_DOCUMENT_START_EVENT;
        /* What is too deep is the loader's to refuse; libyaml takes its time with it. */
        ended = end || ev.type == YAML_STREAM_END_EVENT || depth > BH_JSON_MAX_DEPTH;
        end |= ev.type == YAML_DOCUMENT_END_EVENT;
        yaml_event_delete(&ev);
    }
    if (p.error != YAML_NO_ERROR && !end) /* what comes behind the document does not matter */
        note_problem(&p, text, n, ret);
    yaml_parser_delete(&p);
}

/* Before the loader, which does not look behind the root of the document. */
static int check_yaml(struct bh_config_ctx *x, const char *text, size_t n)
{
    struct yaml_look look;
    struct bh_json at = {0};

    look_at_yaml(text, n, &look);
    if (look.more)
        bh_config_warn(x, NULL, "only the first document of the file is read");
    if (!look.bad)
        return 0;
    at.line = look.at_line;
    return look.line ? bh_config_fail(x, &at, "yaml: line %zu: %s", look.line, look.what)
                     : bh_config_fail(x, &at, "yaml: %s", look.what);
}

/* Well formed, but not for us: aliases, tags, depth, size. err: "line 3, column 7: ...". */
static int load_failed(struct bh_config_ctx *x, const char *prefix, const struct bh_err *err)
{
    const char *colon = strstr(err->msg, ": ");
    struct bh_json at = {0};
    bool placed = sscanf(err->msg, "line %u", &at.line) == 1 && colon;

    return bh_config_fail(x, &at, "%s%s", prefix, placed ? colon + 2 : err->msg);
}

/* ---- repeated keys --------------------------------------------------------------------------- */

/* goyaml tells the line on which the value begins, which is the next one for a block. */
static uint32_t value_line(const struct bh_json *v)
{
    while ((v->type == BH_JSON_OBJECT || v->type == BH_JSON_ARRAY) && v->c.first)
        v = v->c.first;
    return v->line;
}

/* The later member of a name stays. */
static void find_repeats(struct bh_config_ctx *x, struct bh_json *v)
{
    struct bh_map last = {0};

    if (v->type != BH_JSON_OBJECT && v->type != BH_JSON_ARRAY)
        return;
    for (struct bh_json *m = v->c.first, *next; m; m = next) {
        next = m->next;
        find_repeats(x, m);
        if (v->type == BH_JSON_ARRAY)
            continue;
        struct bh_json *before = bh_map_put(&last, m->key.p, m->key.n, m);
        if (!before)
            continue;
        x->repeats.line = value_line(m);
        bh_field_error(&x->repeats, "line %u: key \"%s\" already set in map", x->repeats.line,
                       m->key.p);
        if (!x->repeats.dropped) /* the tree is not used then */
            bh_json_remove(v, before);
    }
    bh_map_fini(&last);
}

static int by_name(const void *a, const void *b)
{
    const struct bh_json *x = *(struct bh_json *const *)a, *y = *(struct bh_json *const *)b;
    int c = memcmp(x->key.p, y->key.p, BH_MIN(x->key.n, y->key.n));

    return c ? c : (x->key.n > y->key.n) - (x->key.n < y->key.n);
}

void bh_config_sort(struct bh_json *v)
{
    if (v->type != BH_JSON_OBJECT && v->type != BH_JSON_ARRAY)
        return;
    bh_json_each(m, v)
        bh_config_sort(m);
    if (v->type == BH_JSON_ARRAY || v->c.n < 2)
        return;
    size_t n = v->c.n, i = 0;
    struct bh_json **sorted = bh_reallocarray(NULL, n, sizeof *sorted);
    bh_json_each(m, v)
        sorted[i++] = m;
    qsort(sorted, n, sizeof *sorted, by_name);
    v->c.first = v->c.last = NULL;
    v->c.n = 0;
    for (i = 0; i < n; i++)
        bh_json_push(v, sorted[i]);
    free(sorted);
}

/* ---- reading --------------------------------------------------------------------------------- */

static int parse_json(struct bh_config_ctx *x, struct bh_arena *a, const char *text, size_t n,
                      struct bh_json **ret)
{
    struct bh_err err = {{0}};

    if (bh_json_parse(a, text, n, BH_JSON_REPEATS, ret, &err) == 0)
        return 0;
    return load_failed(x, "couldn't get version/kind; json parse error: ", &err);
}

static int parse_yaml(struct bh_config_ctx *x, struct bh_arena *a, const char *text, size_t n,
                      struct bh_json **ret)
{
    struct bh_err err = {{0}};

    if (check_yaml(x, text, n) < 0)
        return -EINVAL;
    if (bh_yaml_parse(a, text, n, BH_JSON_REPEATS, ret, &err) < 0)
        return load_failed(x, "yaml: ", &err);
    find_repeats(x, *ret);
    bh_config_sort(*ret);
    return 0;
}

int bh_config_source(struct bh_config_ctx *x, const char *text, size_t n, struct bh_json **ret)
{
    struct bh_json *tree = NULL;
    struct bh_arena a;
    size_t blank = 0;

    bh_arena_init(&a, TREE_MAX);
    while (blank < n && strchr(" \t\r\n", text[blank]) && text[blank])
        blank++;
    x->json = blank < n && text[blank] == '{';
    int rc = x->json ? parse_json(x, &a, text, n, &tree) : parse_yaml(x, &a, text, n, &tree);
    if (rc == 0)
        *ret = bh_json_clone(x->a, tree);
    bh_arena_fini(&a);
    return rc;
}
