/* SPDX-License-Identifier: Apache-2.0
 *
 * cli/objects.c - creating objects from YAML or JSON, whatever their kind
 *
 * Kinds are resolved by the server's own discovery (one GET a group and version), so this knows no
 * kind by name.
 */
#include "cli/cli.h"
#include "common/base/map.h"
#include "common/data/yaml.h"
#include "common/k8s/codec.h"
#include <errno.h>

#define FILE_MAX_BYTES (256u << 20)
#define REQUEST_NS     UINT64_C(30000000000)

struct bh_creator {
    uv_loop_t *loop;
    struct bh_api_client *client;
    struct bh_arena arena; /* discovery documents */
    struct bh_map lists;   /* apiVersion -> APIResourceList tree */
};

struct bh_creator *bh_creator_new(uv_loop_t *loop, struct bh_api_client *c)
{
    struct bh_creator *cr = bh_calloc(1, sizeof(*cr));

    cr->loop = loop;
    cr->client = c;
    bh_arena_init(&cr->arena, 0);
    return cr;
}

void bh_creator_free(struct bh_creator *cr)
{
    if (!cr)
        return;
    bh_map_fini(&cr->lists);
    bh_arena_fini(&cr->arena);
    free(cr);
}

static const struct bh_json *resources(struct bh_creator *cr, const char *api_version,
                                       struct bh_err *err)
{
    struct bh_json *tree = bh_map_get(&cr->lists, api_version, strlen(api_version));
    BH_CLEANUP(bh_freep)
    char *path = bh_asprintf("%s/%s", strchr(api_version, '/') ? "/apis" : "/api", api_version);
    const struct bh_api_call call = {.method = "GET", .path = path, .timeout_ns = REQUEST_NS};
    struct bh_buf body = {0};
    int code = 0;

    if (tree)
        return tree;
    if (bh_api_do(cr->loop, cr->client, &call, &code, &body, err) < 0) {
        bh_buf_fini(&body);
        return NULL;
    }
    if (code != 200)
        bh_err_set(err, -ENOENT, "the server does not serve %s (HTTP %d)", api_version, code);
    else if (bh_json_parse(&cr->arena, body.p, body.n, 0, &tree, err) == 0)
        (void)bh_map_put(&cr->lists, api_version, strlen(api_version), tree);
    bh_buf_fini(&body);
    return tree;
}

/* The collection's path for an object: "/apis/apps/v1/namespaces/default/deployments". */
static int creator_path(struct bh_creator *cr, const struct bh_json *obj, struct bh_buf *out,
                        struct bh_err *err)
{
    const char *av = bh_json_get_str(obj, "apiVersion"), *kind = bh_json_get_str(obj, "kind");
    const char *ns = bh_json_get_str(bh_json_get(obj, "metadata"), "namespace");
    const struct bh_json *list;

    if (!av || !kind)
        return bh_err_set(err, -EINVAL, "object without apiVersion or kind (line %u)", obj->line);
    list = resources(cr, av, err);
    if (!list)
        return -ENOENT;
    bh_json_each(r, bh_json_get(list, "resources")) {
        const char *plural = bh_json_get_str(r, "name"), *k = bh_json_get_str(r, "kind");
        if (!plural || !k || !bh_streq(k, kind) || strchr(plural, '/'))
            continue;
        bh_buf_reset(out);
        bh_buf_addf(out, "%s/%s", strchr(av, '/') ? "/apis" : "/api", av);
        if (bh_json_get_bool(r, "namespaced", false)) {
            bh_buf_adds(out, "/namespaces/");
            bh_url_escape(out, ns ? ns : "default");
        }
        bh_buf_addf(out, "/%s", plural);
        return 0;
    }
    return bh_err_set(err, -ENOENT, "the server has no kind %s in %s", kind, av);
}

static int create_one(struct bh_creator *cr, const struct bh_json *obj, struct bh_err *err)
{
    struct bh_buf path = {0}, body = {0}, reply = {0};
    struct bh_api_call call = {.method = "POST",
                               .content_type = "application/json",
                               .timeout_ns = REQUEST_NS,
                               .retry_429_5xx = true};
    const char *name = bh_json_get_str(bh_json_get(obj, "metadata"), "name");
    int code = 0, rc;

    rc = creator_path(cr, obj, &path, err);
    if (rc == 0) {
        bh_json_write(&body, obj);
        call.path = bh_buf_str(&path);
        call.body = body.p;
        call.body_n = body.n;
        rc = bh_api_do(cr->loop, cr->client, &call, &code, &reply, err);
    }
    if (rc == 0 && code == 409) {
        rc = 0;
    } else if (rc == 0 && (code == 200 || code == 201)) {
        rc = 1;
    } else if (rc == 0) {
        struct bh_api_status s;
        bh_decode_status(reply.p, reply.n, code, &s);
        rc = bh_err_set(err, -EINVAL, "%s \"%s\" was refused: %s", bh_json_get_str(obj, "kind"),
                        name ? name : "", s.message);
    }
    bh_buf_fini(&path);
    bh_buf_fini(&body);
    bh_buf_fini(&reply);
    return rc;
}

static int create_tree(struct bh_creator *cr, const struct bh_json *doc, struct bh_err *err)
{
    const char *kind = bh_json_get_str(doc, "kind");
    int n = 0, rc;

    if (!kind || !bh_streq(kind, "List"))
        return create_one(cr, doc, err);
    bh_json_each(item, bh_json_get(doc, "items")) {
        rc = create_one(cr, item, err);
        if (rc < 0)
            return rc;
        n += rc;
    }
    return n;
}

int bh_creator_file(struct bh_creator *cr, const char *path, struct bh_err *err)
{
    BH_CLEANUP(bh_freep) char *text = NULL;
    struct bh_arena a;
    struct bh_json *docs = NULL;
    size_t n = 0;
    int created = 0, rc = bh_read_file(path, FILE_MAX_BYTES, &text, &n);

    if (rc < 0)
        return bh_err_set(err, rc, "could not read \"%s\": %s", path, strerror(-rc));
    bh_arena_init(&a, 0);
    rc = bh_yaml_parse_all(&a, text, n, BH_JSON_STRICT, &docs, err);
    if (rc < 0)
        bh_err_prefix(err, rc, "%s", path);
    if (rc == 0)
        bh_json_each(doc, docs) {
            rc = create_tree(cr, doc, err);
            if (rc < 0)
                break;
            created += rc;
        }
    bh_arena_fini(&a);
    return rc < 0 ? rc : created;
}
