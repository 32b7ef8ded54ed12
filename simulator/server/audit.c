/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/server/audit.c - kube-apiserver's audit log
 *
 * Upstream: apiserver/pkg/apis/audit/v1; differences: see audit.h, and only what tests and people
 * look at is filled in.
 */
#include "simulator/server/audit.h"
#include "simulator/server/tree.h"

#include "common/k8s/quantity.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

int bh_sim_audit_open(const char *path, int *ret_fd, struct bh_err *err)
{
    *ret_fd = path ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640) : -1;
    if (path && *ret_fd < 0)
        return bh_err_set(err, -errno, "audit log %s: %s", path, strerror(errno));
    return 0;
}

const char *bh_sim_verb_of(const struct bh_sim_req *r)
{
    if (bh_streq(r->method, "POST"))
        return "create";
    if (bh_streq(r->method, "PUT"))
        return "update";
    if (bh_streq(r->method, "PATCH"))
        return "patch";
    if (bh_streq(r->method, "DELETE"))
        return *r->name ? "delete" : "deletecollection";
    return *r->name || !r->type ? "get" : "list";
}

void bh_sim_user_name(const struct bh_sim_req *r, char out[static 128])
{
    snprintf(out, 128, "%s", r->user ? bh_json_get_text(r->user, "username") : "system:anonymous");
}

struct uri {
    struct bh_buf text;
    bool more;
};

static void add_query(void *arg, const char *name, const char *value)
{
    struct uri *u = arg;

    bh_buf_addf(&u->text, "%c%s=%s", u->more ? '&' : '?', name, value);
    u->more = true;
}

static void add_ref(const struct bh_sim_req *r, struct bh_buf *b)
{
    bh_buf_adds(b, ",\"objectRef\":{");
    bh_tree_add_str(b, "resource", bh_streq(r->sub, "binding") ? "pods" : r->type->plural);
    if (*r->ns)
        bh_tree_add_str(b, "namespace", r->ns);
    if (*r->name)
        bh_tree_add_str(b, "name", r->name);
    if (*r->type->group)
        bh_tree_add_str(b, "apiGroup", r->type->group);
    bh_tree_add_str(b, "apiVersion", r->type->version);
    if (*r->sub)
        bh_tree_add_str(b, "subresource", r->sub);
    bh_buf_addc(b, '}');
}

static void add_body(struct bh_sim_req *r, struct bh_buf *b)
{
    struct bh_str body = bh_http_body(r->http);
    struct bh_json *tree = NULL;

    if (body.n && bh_json_parse(r->a, body.p, body.n, BH_JSON_NUL, &tree, NULL) == 0) {
        bh_buf_adds(b, ",\"requestObject\":");
        bh_json_write(b, tree);
    }
}

static void add_time(struct bh_buf *b, const char *key, int64_t wall_ns)
{
    char text[40];

    bh_time_format_micro(text, wall_ns / 1000000000, (int32_t)(wall_ns % 1000000000));
    bh_tree_add_str(b, key, text);
}

void bh_sim_audit(struct bh_sim_req *r, int code)
{
    bool writes = !bh_streq(r->method, "GET") && !bh_streq(r->method, "HEAD");
    const char *agent = bh_http_header(r->http, "User-Agent");
    int64_t now = bh_wall_ns();
    struct uri u = {.more = false};
    struct bh_buf b = {0};
    char id[37];

    if (r->sim->audit_fd < 0)
        return;
    bh_uuid4(id);
    bh_buf_adds(&u.text, r->path);
    bh_http_query_each(r->http, add_query, &u);
    bh_buf_adds(&b, "{\"kind\":\"Event\",\"apiVersion\":\"audit.k8s.io/v1\"");
    bh_tree_add_str(&b, "level", writes ? "Request" : "Metadata");
    bh_tree_add_str(&b, "auditID", id);
    bh_tree_add_str(&b, "stage", "ResponseComplete");
    bh_tree_add_str(&b, "requestURI", bh_buf_str(&u.text));
    bh_tree_add_str(&b, "verb", bh_sim_verb_of(r));
    char name[128];
    bh_sim_user_name(r, name);
    bh_buf_adds(&b, ",\"user\":{");
    bh_tree_add_str(&b, "username", name);
    bh_buf_addc(&b, '}');
    bh_buf_adds(&b, ",\"sourceIPs\":[");
    bh_buf_add_json_str(&b, bh_http_peer(r->http), strlen(bh_http_peer(r->http)));
    bh_buf_addc(&b, ']');
    bh_tree_add_str(&b, "userAgent", agent ? agent : "");
    if (r->type)
        add_ref(r, &b);
    bh_buf_addf(&b, ",\"responseStatus\":{\"code\":%d}", code);
    if (writes)
        add_body(r, &b);
    add_time(&b, "requestReceivedTimestamp", now - (int64_t)(bh_mono_ns() - r->start_ns));
    add_time(&b, "stageTimestamp", now);
    bh_buf_adds(&b, "}\n");
    if (write(r->sim->audit_fd, b.p, b.n) < 0) { /* a full disk is not the clients' affair */
        close(r->sim->audit_fd);
        r->sim->audit_fd = -1;
    }
    bh_buf_fini(&b);
    bh_buf_fini(&u.text);
}
