/* SPDX-License-Identifier: Apache-2.0
 *
 * binder/patches.c - what plugins ask for: patches of any object, as far as they are allowed
 */
#include <errno.h>

#include "binder/patches.h"
#include "common/data/patch.h"
#include "common/k8s/codec.h"
#include "common/k8s/selector.h"

#define CONFLICTS_MAX 5u
#define SEEN_MAX      ((size_t)64 << 20)

struct bh_patch_job {
    const Berth__ObjectWrite *w;
    struct bh_arena arena;      /* the job's */
    struct bh_arena seen_arena; /* of the object that was read */
    struct bh_json *patch;      /* with its preconditions */
    struct bh_buf body;         /* the same as text */
    bool reads;
    unsigned conflicts;
    const char *conflict; /* what the API server said to the last one */
};

/* ---- which resources ------------------------------------------------------------------------- */

static bool is_word(struct bh_str s)
{
    return s.n && bh_valid_dns1123_subdomain(s.p, s.n);
}

static struct bh_str upto(struct bh_str *s, char end)
{
    const char *p = memchr(s->p, end, s->n);
    const struct bh_str part = {s->p, p ? (uint32_t)(p - s->p) : s->n};

    s->p += part.n + (p != NULL);
    s->n -= part.n + (p != NULL);
    return part;
}

int bh_plugin_writes_check(const char *list, struct bh_err *err)
{
    struct bh_str rest = bh_str_c(list);

    for (bool more = true; more;) {
        more = memchr(rest.p, ',', rest.n);
        struct bh_str entry = upto(&rest, ','), sub = entry, resource = upto(&sub, '/');
        if (!is_word(resource) || (resource.n != entry.n && !is_word(sub)))
            return bh_err_set(
                err, -EINVAL,
                "--plugin-writes: \"%.*s\" is not RESOURCE[.GROUP][/SUBRESOURCE], such "
                "as pods, pods/status or widgets.example.com",
                (int)entry.n, entry.p);
    }
    return 0;
}

/* The group of "apps/v1", "" of "v1". */
static struct bh_str group_of(const Berth__ObjectPatch *p)
{
    struct bh_str version = bh_str_c(p->api_version), first = upto(&version, '/');

    return strchr(p->api_version, '/') ? first : (struct bh_str){"", 0};
}

static bool is_allowed(const char *list, const char *what)
{
    struct bh_str rest = bh_str_c(list ? list : "");
    const size_t n = strlen(what);

    while (rest.n) {
        const struct bh_str entry = upto(&rest, ',');
        if (entry.n == n && memcmp(entry.p, what, n) == 0)
            return true;
    }
    return false;
}

/* ---- which patches --------------------------------------------------------------------------- */

static bool is_test(const struct bh_json *op)
{
    return bh_streq(bh_json_get_text(op, "op"), "test");
}

static const char *check_operation(const struct bh_json *op)
{
    const char *what = bh_json_get_text(op, "op"), *path = bh_json_get_text(op, "path");
    bool lists = bh_streq(what, "add") || bh_streq(what, "remove");

    if (!is_test(op) && !bh_streq(what, "add") && !bh_streq(what, "replace") &&
        !bh_streq(what, "remove"))
        return "an operation is test, add, replace or remove: others cannot be repeated";
    if (*path != '/')
        return "an operation needs a path, which begins with /";
    const char *last = strrchr(path, '/') + 1;
    if (lists && strspn(last, "-0123456789") == strlen(last))
        return "an operation adds to a list or removes from it: it cannot be repeated";
    if (!is_test(op) && (bh_streq(path, "/metadata") || bh_streq(path, "/metadata/uid") ||
                         bh_streq(path, "/metadata/resourceVersion") ||
                         bh_streq(path, "/metadata/name") || bh_streq(path, "/metadata/namespace")))
        return "an operation changes which object it is";
    return NULL;
}

static const char *check_operations(const struct bh_json *list, bool *ret_tests)
{
    if (list->type != BH_JSON_ARRAY || !list->c.n)
        return "the JSON patch is no list of operations";
    bh_json_each(op, list) {
        const char *why = check_operation(op);
        if (why)
            return why;
        *ret_tests |= is_test(op);
    }
    return NULL;
}

static const char *check_merge(const struct bh_json *m)
{
    static const char *const identity[] = {"uid", "resourceVersion", "name", "namespace"};
    const struct bh_json *meta = bh_json_get(m, "metadata");

    if (m->type != BH_JSON_OBJECT || (meta && meta->type != BH_JSON_OBJECT))
        return "the merge patch, or its metadata, is no object";
    for (unsigned i = 0; i < BH_ARRAY_LEN(identity); i++)
        if (bh_json_get(meta, identity[i]))
            return "the merge patch changes which object it is";
    return NULL;
}

static bool given(const char *s)
{
    return s && *s;
}

/* The operations behind tests of which object it is: these fail before anything is changed. */
static struct bh_json *with_tests(struct bh_arena *a, const Berth__ObjectWrite *w,
                                  const struct bh_json *operations)
{
    struct bh_json *all = bh_json_new(a, BH_JSON_ARRAY);

    if (given(w->uid))
        bh_json_push(all, bh_json_make(a, "op: test, path: /metadata/uid, value: %s", w->uid));
    if (given(w->resource_version))
        bh_json_push(all, bh_json_make(a, "op: test, path: /metadata/resourceVersion, value: %s",
                                       w->resource_version));
    bh_json_each(op, operations)
        bh_json_push(all, bh_json_clone(a, op));
    return all;
}

static int build(struct bh_patch_job *j, struct bh_err *err)
{
    const Berth__ObjectWrite *w = j->w;
    bool json = w->patch->json, tests = false;
    int rc = bh_json_parse(&j->arena, w->patch->body, strlen(w->patch->body), BH_JSON_STRICT,
                           &j->patch, err);

    if (rc < 0)
        return bh_err_prefix(err, rc, "the patch is no JSON");
    const char *why = json ? check_operations(j->patch, &tests) : check_merge(j->patch);
    if (!why && !tests && !given(w->uid) && !given(w->resource_version))
        why = "the patch says neither uid nor resourceVersion of the object that is meant";
    if (why)
        return bh_err_set(err, -EINVAL, "%s", why);
    if (json)
        j->patch = with_tests(&j->arena, w, j->patch);
    else
        bh_json_add(&j->arena, j->patch, "metadata: {uid?: %s, resourceVersion?: %s}", w->uid,
                    w->resource_version);
    bh_json_write(&j->body, j->patch);
    return 0;
}

/* ---- life ------------------------------------------------------------------------------------ */

static int check_target(const Berth__ObjectWrite *w, const char *list, struct bh_err *err)
{
    const Berth__ObjectPatch *p = w->patch;
    const struct bh_str group = group_of(p);
    struct bh_str version = bh_str_c(p->api_version);

    if (strchr(p->api_version, '/'))
        (void)upto(&version, '/');
    if ((strchr(p->api_version, '/') && !is_word(group)) || !is_word(version) ||
        !is_word(bh_str_c(p->resource)) || strchr(p->resource, '.') ||
        (given(p->subresource) && !is_word(bh_str_c(p->subresource))))
        return bh_err_set(err, -EINVAL, "apiVersion, resource or subresource is none: %s, %s, %s",
                          p->api_version, p->resource, p->subresource ? p->subresource : "");
    BH_CLEANUP(bh_freep)
    char *what =
        bh_asprintf("%s%s%.*s%s%s", p->resource, group.n ? "." : "", (int)group.n, group.p,
                    given(p->subresource) ? "/" : "", given(p->subresource) ? p->subresource : "");
    if (!is_allowed(list, what))
        return bh_err_set(
            err, -EPERM,
            "plugins may not write %s: --plugin-writes of berth-binder does not name it", what);
    return 0;
}

struct bh_patch_job *bh_patch_job_new(const Berth__ObjectWrite *w, const char *list,
                                      struct bh_err *err)
{
    struct bh_patch_job *j = bh_calloc(1, sizeof(*j));

    j->w = w;
    j->conflict = "";
    bh_arena_init(&j->arena, SEEN_MAX);
    bh_arena_init(&j->seen_arena, SEEN_MAX);
    int rc = check_target(w, list, err);
    if (rc == 0)
        rc = build(j, err);
    if (rc == 0)
        return j;
    bh_patch_job_free(j);
    return NULL;
}

void bh_patch_job_free(struct bh_patch_job *j)
{
    if (!j)
        return;
    bh_arena_fini(&j->arena);
    bh_arena_fini(&j->seen_arena);
    bh_buf_fini(&j->body);
    free(j);
}

bool bh_patch_job_reads(const struct bh_patch_job *j)
{
    return j->reads;
}

void bh_patch_job_request(struct bh_patch_job *j, struct bh_buf *path, struct bh_buf *body,
                          struct bh_api_call *call)
{
    const Berth__ObjectPatch *p = j->w->patch;

    bh_buf_reset(path);
    bh_buf_reset(body);
    bh_buf_adds(path, strchr(p->api_version, '/') ? "/apis/" : "/api/");
    bh_buf_adds(path, p->api_version); /* checked: two words */
    if (given(j->w->namespace_))
        bh_url_addf(path, "/namespaces/%s", j->w->namespace_);
    bh_url_addf(path, "/%s/%s", p->resource, j->w->name);
    if (given(p->subresource))
        bh_url_addf(path, "/%s", p->subresource);
    call->method = j->reads ? "GET" : "PATCH";
    if (j->reads)
        return;
    call->content_type = p->json ? "application/json-patch+json" : "application/merge-patch+json";
    bh_buf_add(body, j->body.p, j->body.n);
}

/* ---- answers --------------------------------------------------------------------------------- */

static bool end(struct bh_object_end *ret, Berth__Outcome o, int code, const char *reason,
                const char *message)
{
    *ret = (struct bh_object_end){o, code, reason, message};
    return true;
}

/* Would the patch change nothing? Its preconditions are not looked at. */
static bool is_there(struct bh_patch_job *j, const struct bh_json *doc)
{
    struct bh_arena *a = &j->seen_arena;
    struct bh_json *after = NULL, *one;

    if (!j->w->patch->json) {
        struct bh_json *bare = bh_json_clone(a, j->patch);
        bh_json_drop(bh_json_get(bare, "metadata"), "uid resourceVersion");
        return bh_patch_merge(a, doc, bare, &after, NULL) == 0 && bh_json_equal(doc, after);
    }
    bh_json_each(op, j->patch) {
        if (is_test(op))
            continue;
        one = bh_json_new(a, BH_JSON_ARRAY);
        bh_json_push(one, bh_json_clone(a, op));
        int rc = bh_patch_json(a, doc, one, &after, NULL);
        bool gone = rc == -ENOENT && bh_streq(bh_json_get_text(op, "op"), "remove");
        if (!gone && (rc < 0 || !bh_json_equal(doc, after)))
            return false;
    }
    return true;
}

static bool look(struct bh_patch_job *j, const struct bh_api_reply *r, struct bh_object_end *ret)
{
    const Berth__ObjectWrite *w = j->w;
    struct bh_json *doc, *after;

    bh_arena_reset(&j->seen_arena);
    if (bh_json_parse(&j->seen_arena, r->body.p, r->body.n, BH_JSON_NUL, &doc, NULL) < 0)
        return end(ret, BERTH__OUTCOME__OUTCOME_REJECTED, r->code, "",
                   "the API server's answer is no such object");
    const struct bh_json *meta = bh_json_get(doc, "metadata");
    if (given(w->uid) && !bh_streq(bh_json_get_text(meta, "uid"), w->uid))
        return end(ret, BERTH__OUTCOME__OUTCOME_GONE, 409, "Conflict", "the object was re-created");
    if (is_there(j, doc))
        return end(ret, BERTH__OUTCOME__OUTCOME_DONE, 200, "", "");
    bool same = !given(w->resource_version) ||
                bh_streq(bh_json_get_text(meta, "resourceVersion"), w->resource_version);
    if (same && w->patch->json)
        same = bh_patch_json(&j->seen_arena, doc, j->patch, &after, NULL) == 0;
    if (!same || j->conflicts >= CONFLICTS_MAX)
        return end(ret, BERTH__OUTCOME__OUTCOME_REJECTED, 409, "Conflict", j->conflict);
    j->reads = false;
    return false;
}

bool bh_patch_job_reply(struct bh_patch_job *j, const struct bh_api_reply *r,
                        struct bh_object_end *ret)
{
    struct bh_api_status s;

    if (r->code >= 200 && r->code < 300)
        return j->reads ? look(j, r, ret) : end(ret, BERTH__OUTCOME__OUTCOME_DONE, r->code, "", "");
    bh_decode_status(r->body.p, r->body.n, r->code, &s);
    const char *reason = bh_arena_strdup(&j->arena, s.reason),
               *message = bh_arena_strdup(&j->arena, s.message);
    if (r->code == 404)
        return end(ret, BERTH__OUTCOME__OUTCOME_GONE, 404, reason, message);
    if (!j->reads && (r->code == 409 || (r->code == 422 && j->w->patch->json))) {
        j->conflict = message;
        j->conflicts++;
        j->reads = true;
        return false;
    }
    return end(ret, BERTH__OUTCOME__OUTCOME_REJECTED, r->code, reason, message);
}
