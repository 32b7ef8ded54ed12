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

/* What libyaml itself says of the first document, before the loader, which does not look behind the
 * root of it. */
static int check_yaml(struct bh_config_ctx *x, const char *text, size_t n)
{
    yaml_parser_t p;
    yaml_event_t ev;
    unsigned depth = 0;
    bool end = false, ended = false, more = false; /* the document; reading; another document */
    int rc = 0;

    if (!yaml_parser_initialize(&p))
        abort(); /* out of ordinary memory, see base.h */
    yaml_parser_set_input_string(&p, (const unsigned char *)text, n);
    while (!ended && yaml_parser_parse(&p, &ev)) {
        depth += ev.type == YAML_SEQUENCE_START_EVENT || ev.type == YAML_MAPPING_START_EVENT;
        depth -= ev.type == YAML_SEQUENCE_END_EVENT || ev.type == YAML_MAPPING_END_EVENT;
        more = end && ev.type == YAML_DOCUMENT_START_EVENT;
        /* What is too deep is the loader's to refuse; libyaml takes its time with it. */
        ended = end || ev.type == YAML_STREAM_END_EVENT || depth > BH_JSON_MAX_DEPTH;
        end |= ev.type == YAML_DOCUMENT_END_EVENT;
        yaml_event_delete(&ev);
    }
    if (more)
        bh_config_warn(x, NULL, "only the first document of the file is read");
    if (p.error != YAML_NO_ERROR && !end) { /* what comes behind the document does not matter */
        /* As upstream counts: some from 0; 0 = not told. */
        size_t line = p.problem_mark.line ? p.problem_mark.line + (p.error == YAML_SCANNER_ERROR)
                                          : p.context_mark.line;
        struct bh_json at = {.line = (uint32_t)p.problem_mark.line + 1};
        const char *what = p.problem ? p.problem : "unknown problem parsing YAML content";
        if (p.error == YAML_READER_ERROR) {
            at.line = 1;
            for (size_t i = 0; i < p.problem_offset && i < n; i++)
                at.line += text[i] == '\n';
        }
        rc = line ? bh_config_fail(x, &at, "yaml: line %zu: %s", line, what)
                  : bh_config_fail(x, &at, "yaml: %s", what);
    }
    yaml_parser_delete(&p);
    return rc;
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
        /* goyaml tells the line on which the value begins, which is the next one for a block. */
        const struct bh_json *first = m;
        while (bh_json_first(first))
            first = first->c.first;
        x->repeats.line = first->line;
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
    bh_json_clear(v);
    for (i = 0; i < n; i++)
        bh_json_push(v, sorted[i]);
    free(sorted);
}

/* ---- reading --------------------------------------------------------------------------------- */

int bh_config_source(struct bh_config_ctx *x, const char *text, size_t n, struct bh_json **ret)
{
    struct bh_json *tree = NULL;
    struct bh_err err = {{0}};
    struct bh_arena a;
    size_t blank = 0;
    int rc = 0;

    bh_arena_init(&a, TREE_MAX);
    while (blank < n && strchr(" \t\r\n", text[blank]) && text[blank])
        blank++;
    x->json = blank < n && text[blank] == '{';
    if (x->json) {
        if (bh_json_parse(&a, text, n, BH_JSON_REPEATS | BH_JSON_NUL, &tree, &err) < 0)
            rc = load_failed(x, "couldn't get version/kind; json parse error: ", &err);
    } else {
        rc = check_yaml(x, text, n);
        if (rc == 0 && bh_yaml_parse(&a, text, n, BH_JSON_REPEATS | BH_JSON_NUL, &tree, &err) < 0)
            rc = load_failed(x, "yaml: ", &err);
        if (rc == 0) {
            find_repeats(x, tree);
            bh_config_sort(tree);
        }
    }
    if (rc == 0)
        *ret = bh_json_clone(x->a, tree);
    bh_arena_fini(&a);
    return rc;
}
