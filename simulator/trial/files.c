/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/trial/files.c - files into objects, one at a time
 *
 * YAML is cut at its document marks and JSON by the splitter before anything is parsed, so that one
 * object's tree is in memory, not a cluster's. A YAML document that is one long list is the
 * exception.
 */
#include <dirent.h>
#include <errno.h>
#include <sys/stat.h>

#include "simulator/trial/trial.h"
#include "common/data/yaml.h"
#include "simulator/schema/schema.h"

#define FILE_MAX_BYTES   ((size_t)1 << 30)
#define OBJECT_MAX_BYTES ((size_t)64 << 20)
#define NESTED_LISTS_MAX 4
/* A tree takes more than its text, an alias far more; beyond this it is hostile. */
#define TREE_MAX(n) (((size_t)16 << 20) + 64 * (n))

struct reader {
    struct bh_arena *names;
    bh_trial_object_fn *fn;
    void *arg;
    struct bh_err *err;
    struct bh_trial_source at;
    const char *list_kind, *list_version; /* of the list being taken apart, "" = none */
    uint32_t first_line;                  /* of the file, where the text of the tree begins */
    const char *rest, *end;               /* JSON: of the file, behind what was read of it */
    uint32_t rest_line;
};

void bh_trial_where(struct bh_buf *out, const struct bh_trial_source *at)
{
    bh_buf_addf(out, "%s: document %u", bh_streq(at->file, "-") ? "standard input" : at->file,
                at->document);
    if (at->item)
        bh_buf_addf(out, ", item %u", at->item);
    if (at->line)
        bh_buf_addf(out, " (line %u)", at->line);
}

static int blame(struct reader *r, int rc)
{
    BH_CLEANUP(bh_buf_fini) struct bh_buf b = {0};

    bh_trial_where(&b, &r->at);
    bh_err_prefix(r->err, rc, "%.300s", bh_buf_str(&b));
    return rc;
}

static int fail(struct reader *r, const char *text)
{
    return blame(r, bh_err_set(r->err, -EINVAL, "%s", text));
}

/* ---- one object ------------------------------------------------------------------------------ */

static bool is_list(const char *kind)
{
    size_t n = strlen(kind);

    return n >= 4 && bh_streq(kind + n - 4, "List");
}

static uint32_t line_of(const struct reader *r, const struct bh_json *v)
{
    return r->first_line && v->line ? r->first_line + v->line - 1 : 0;
}

static int take(struct reader *r, struct bh_arena *a, struct bh_json *obj, int depth);

static int take_list(struct reader *r, struct bh_arena *a, struct bh_json *list, int depth)
{
    struct bh_json *items = bh_json_get(list, "items"), *next;
    const char *kind = r->list_kind, *version = r->list_version;
    uint32_t item = r->at.item;
    int rc = 0;

    if (!items || items->type == BH_JSON_NULL)
        return 0;
    if (items->type != BH_JSON_ARRAY)
        return fail(r, "items: expected a list");
    if (depth == NESTED_LISTS_MAX)
        return fail(r, "lists inside lists inside lists");
    r->list_kind = bh_json_get_text(list, "kind");
    r->list_version = bh_json_get_text(list, "apiVersion");
    for (struct bh_json *i = items->c.first; i && rc >= 0; i = next) {
        next = i->next; /* the object's taker may link it elsewhere */
        r->at.item = ++item;
        r->at.line = line_of(r, i);
        rc = take(r, a, i, depth + 1);
    }
    r->list_kind = kind;
    r->list_version = version;
    return rc;
}

static int take(struct reader *r, struct bh_arena *a, struct bh_json *obj, int depth)
{
    size_t n = strlen(r->list_kind);

    if (obj->type == BH_JSON_NULL)
        return 0;
    if (obj->type != BH_JSON_OBJECT)
        return fail(r, "expected an object with apiVersion and kind");
    if (n > 4 && !bh_json_get(obj, "kind")) { /* as the elements of a PodList */
        bh_json_set(a, obj, "kind", bh_json_new_str(a, r->list_kind, n - 4));
        if (!bh_json_get(obj, "apiVersion"))
            bh_json_set_str(a, obj, "apiVersion", r->list_version);
    }
    if (!*bh_json_get_text(obj, "apiVersion"))
        return fail(r, "apiVersion: expected text, for example \"v1\"");
    if (!*bh_json_get_text(obj, "kind"))
        return fail(r, "kind: expected text, for example \"Pod\"");
    if (is_list(bh_json_get_text(obj, "kind")))
        return take_list(r, a, obj, depth);
    const struct bh_json *meta = bh_json_get(obj, "metadata");
    if (!meta || meta->type != BH_JSON_OBJECT)
        return fail(r, "metadata: expected an object with a name");
    return r->fn(r->arg, &r->at, a, obj, r->err);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

/* The splitter hands out copies of what stands in the file, in its order. */
static void find_line(struct reader *r, const char *p, size_t n)
{
    const char *at = memmem(r->rest, (size_t)(r->end - r->rest), p, n);

    r->first_line = 0;
    if (!at)
        return;
    for (const char *q = r->rest; (q = memchr(q, '\n', (size_t)(at - q))); q++)
        r->rest_line++;
    r->first_line = r->rest_line;
    r->rest = at;
}

static int parse_and_take(struct reader *r, const char *p, size_t n)
{
    struct bh_json *v;
    BH_CLEANUP(bh_arena_fini) struct bh_arena a = {.limit_bytes = TREE_MAX(n)};

    find_line(r, p, n);
    int rc = bh_json_parse(&a, p, n, BH_JSON_STRICT | BH_JSON_NUL, &v, r->err);
    r->at.line = rc < 0 ? 0 : line_of(r, v);
    return rc < 0 ? blame(r, rc) : take(r, &a, v, 1);
}

static int on_item(void *arg, const char *p, size_t n)
{
    struct reader *r = arg;

    r->at.item++;
    return parse_and_take(r, p, n);
}

static int count_item(void *arg, const char *p BH_UNUSED, size_t n BH_UNUSED)
{
    ++*(size_t *)arg;
    return 0;
}

/* The elements of "items", then the rest of the document. */
static int split_items(const char *p, size_t n, int (*fn)(void *, const char *, size_t), void *arg,
                       struct bh_buf *rest)
{
    struct bh_json_split *s = bh_json_split_new(BH_JSON_SPLIT_ITEMS, OBJECT_MAX_BYTES, fn, arg);
    int rc = bh_json_split_feed(s, p, n);

    rc = rc < 0 ? rc : bh_json_split_finish(s, rest);
    bh_json_split_free(s);
    return rc;
}

/* Kind and version of a list may stand behind its elements: they are looked up first. */
static int on_document(void *arg, const char *p, size_t n)
{
    struct reader *r = arg;
    BH_CLEANUP(bh_buf_fini) struct bh_buf rest = {0};
    struct bh_json *head = NULL;
    BH_CLEANUP(bh_arena_fini) struct bh_arena a = {.limit_bytes = TREE_MAX(n)};
    size_t items = 0;

    r->at.document++;
    r->at.item = 0;
    if (split_items(p, n, count_item, &items, &rest) == 0 &&
        bh_json_parse(&a, bh_buf_str(&rest), rest.n, BH_JSON_NUL, &head, NULL) == 0 && items &&
        is_list(bh_json_get_text(head, "kind"))) {
        r->list_kind = bh_json_get_text(head, "kind");
        r->list_version = bh_json_get_text(head, "apiVersion");
        int rc = split_items(p, n, on_item, r, &rest);
        r->list_kind = r->list_version = "";
        return rc;
    }
    return parse_and_take(r, p, n); /* one object, or a text that is none: says why */
}

static int read_json(struct reader *r, const char *p, size_t n)
{
    r->rest = p;
    r->end = p + n;
    r->rest_line = 1;
    struct bh_json_split *s = bh_json_split_new(BH_JSON_SPLIT_DOCS, FILE_MAX_BYTES, on_document, r);
    BH_CLEANUP(bh_buf_fini) struct bh_buf rest = {0};
    int rc = bh_json_split_feed(s, p, n);
    bool ours = rc < 0 && r->err->msg[0];

    if (rc == 0) {
        rc = bh_json_split_finish(s, &rest);
        if (rc < 0 && !r->err->msg[0])
            rc = bh_err_set(r->err, -EINVAL, "%s: document %u: the JSON text is cut short",
                            r->at.file, r->at.document + 1);
    } else if (!ours) {
        rc = bh_err_set(r->err, rc, "%s: document %u: not JSON", r->at.file, r->at.document + 1);
    }
    bh_json_split_free(s);
    return rc;
}

/* ---- YAML ------------------------------------------------------------------------------------ */

static int read_yaml_part(struct reader *r, const char *p, size_t n, uint32_t first_line)
{
    struct bh_json *docs;
    BH_CLEANUP(bh_arena_fini) struct bh_arena a = {.limit_bytes = TREE_MAX(n)};

    r->first_line = first_line;
    int rc = bh_yaml_parse_all(&a, p, n, BH_JSON_STRICT | BH_JSON_NUL, &docs, r->err);
    if (rc < 0) {
        r->at.document++;
        r->at.item = 0;
        r->at.line = 0;
        if (first_line > 1)
            bh_err_prefix(r->err, rc, "counted from line %u of the file", first_line);
        rc = blame(r, rc);
    }
    for (struct bh_json *d = rc < 0 ? NULL : docs->c.first, *next; d && rc >= 0; d = next) {
        next = d->next;
        r->at.document++;
        r->at.item = 0;
        r->at.line = line_of(r, d);
        rc = take(r, &a, d, 0);
    }
    return rc;
}

static bool is_mark(const char *line, const char *end)
{
    return end - line >= 3 && memcmp(line, "---", 3) == 0 &&
           (end - line == 3 || line[3] == ' ' || line[3] == '\t' || line[3] == '\r');
}

/* Directives, comments and blank lines belong to the document after them. */
static bool is_content(const char *line, const char *end)
{
    while (line < end && (*line == ' ' || *line == '\t' || *line == '\r'))
        line++;
    return line < end && *line != '#' && *line != '%';
}

static int read_yaml(struct reader *r, const char *p, size_t n)
{
    const char *end = p + n, *part = p;
    uint32_t line_no = 1, part_line = 1;
    bool content = false;
    int rc = 0;

    for (const char *line = p; line < end && rc >= 0; line_no++) {
        const char *eol = memchr(line, '\n', (size_t)(end - line));
        eol = eol ? eol : end;
        if (is_mark(line, eol) && content) {
            rc = read_yaml_part(r, part, (size_t)(line - part), part_line);
            part = line;
            part_line = line_no;
            content = false;
        }
        content |= is_mark(line, eol) ? eol - line > 4 : is_content(line, eol);
        line = eol < end ? eol + 1 : end;
    }
    return rc < 0 || !content ? rc : read_yaml_part(r, part, (size_t)(end - part), part_line);
}

/* ---- files ----------------------------------------------------------------------------------- */

static int read_text(struct reader *r, const char *p, size_t n)
{
    size_t i = 0;

    if (n >= 3 && memcmp(p, "\xEF\xBB\xBF", 3) == 0) { /* a byte order mark */
        p += 3;
        n -= 3;
    }
    while (i < n && strchr(" \t\r\n", p[i]))
        i++;
    if (i == n)
        return 0;
    return p[i] == '{' ? read_json(r, p, n) : read_yaml(r, p, n);
}

static int read_file(struct reader *r, const char *path)
{
    char *text = NULL;
    size_t n;
    int rc = bh_read_file(path, FILE_MAX_BYTES, &text, &n);

    r->at = (struct bh_trial_source){.file = path};
    if (rc == -EFBIG)
        return bh_err_set(r->err, rc, "%s: larger than 1 GiB", path);
    if (rc < 0)
        return bh_err_set(r->err, rc, "could not read %s: %s", path, strerror(-rc));
    rc = read_text(r, text, n);
    free(text);
    return rc;
}

static int read_stdin(struct reader *r)
{
    BH_CLEANUP(bh_buf_fini) struct bh_buf b = {0};
    char chunk[65536];
    size_t n;
    int rc = 0;

    while (rc == 0 && (n = fread(chunk, 1, sizeof chunk, stdin)) > 0) {
        bh_buf_add(&b, chunk, n);
        if (b.n > FILE_MAX_BYTES)
            rc = bh_err_set(r->err, -EFBIG, "standard input: larger than 1 GiB");
    }
    if (rc == 0 && ferror(stdin))
        rc = bh_err_set(r->err, -EIO, "could not read standard input");
    r->at = (struct bh_trial_source){.file = "-"};
    rc = rc < 0 ? rc : read_text(r, bh_buf_str(&b), b.n);
    return rc;
}

static int is_readable(const struct dirent *d)
{
    const char *end = strrchr(d->d_name, '.');

    return end && end != d->d_name && bh_word_at(".yaml .yml .json", end) >= 0;
}

static int read_folder(struct reader *r, const char *path)
{
    struct dirent **names = NULL;
    int n = scandir(path, &names, is_readable, alphasort), rc = 0;

    if (n < 0)
        return bh_err_set(r->err, -errno, "could not read %s: %s", path, strerror(errno));
    if (n == 0)
        rc = bh_err_set(r->err, -ENOENT, "%s: no *.yaml, *.yml or *.json in this folder", path);
    for (int i = 0; i < n; i++) {
        rc = rc < 0 ? rc : read_file(r, bh_arena_printf(r->names, "%s/%s", path, names[i]->d_name));
        free(names[i]);
    }
    free(names);
    return rc;
}

int bh_trial_known(const struct bh_trial_source *at, struct bh_json *obj, struct bh_err *err)
{
    const struct bh_json *meta = bh_json_get(obj, "metadata");
    const char *ns = bh_json_get_text(meta, "namespace");
    BH_CLEANUP(bh_buf_fini) struct bh_buf b = {0};
    struct bh_trial_source place = *at;
    int rc = bh_oas_refuse_unknown(obj, at->line, err);

    if (rc == 0)
        return 0;
    place.line = 0; /* the fields' lines are told */
    bh_trial_where(&b, &place);
    return bh_err_prefix(err, rc, "%.200s: %.80s %.80s%s%.80s", bh_buf_str(&b),
                         bh_json_get_text(obj, "kind"), ns, *ns ? "/" : "",
                         bh_json_get_text(meta, "name"));
}

int bh_trial_read(const char *path, struct bh_arena *names, bh_trial_object_fn *fn, void *arg,
                  struct bh_err *err)
{
    struct reader r = {
        .names = names, .fn = fn, .arg = arg, .err = err, .list_kind = "", .list_version = ""};
    struct stat st;

    if (bh_streq(path, "-"))
        return read_stdin(&r);
    if (stat(path, &st) < 0)
        return bh_err_set(err, -errno, "could not read %s: %s", path, strerror(errno));
    return S_ISDIR(st.st_mode) ? read_folder(&r, path) : read_file(&r, path);
}

int bh_trial_read_text(const char *label, const char *p, size_t n, struct bh_arena *names,
                       bh_trial_object_fn *fn, void *arg, struct bh_err *err)
{
    struct reader r = {
        .names = names, .fn = fn, .arg = arg, .err = err, .list_kind = "", .list_version = ""};

    r.at = (struct bh_trial_source){.file = label};
    return read_text(&r, p, n);
}
