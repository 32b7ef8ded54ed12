/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/integration/extender_server.c - HTTP extenders of all characters, for tests/integration
 *
 * The path says who is asked: POST /<who>/<verb>
 *   only-X filter       keeps nodes with X in their name; the others: "not for X"
 *   never-X filter      nodes with X in their name are unresolvable: "never here"
 *   likes-X prioritize  10 points for nodes with X in their name
 *   spares-X preempt    no victims on nodes with X in their name
 *   binder bind         writes the binding to the API server
 *   hangs, rubbish, fails ...   whatever is asked
 * GET /heard says how often each path was asked, GET /last?path=P what was sent to P last.
 */
#include <errno.h>
#include <stdio.h>

#include "common/api/client.h"
#include "common/base/loop.h"
#include "common/base/map.h"
#include "common/base/opt.h"
#include "common/data/json.h"
#include "common/http/server.h"

struct heard {
    unsigned n;
    char *last;
};
struct server {
    uv_loop_t loop;
    struct bh_http_server *http;
    const char *kubeconfig;
    struct bh_api_client *api; /* made for the first bind */
    struct bh_map heard;
    struct bh_arena a; /* one request */
};

static void reply_json(struct bh_http_req *r, const struct bh_json *v)
{
    struct bh_buf b = {0};

    bh_json_write(&b, v);
    bh_http_reply(r, 200, "application/json", b.p, b.n);
    bh_buf_fini(&b);
}

static const char *name_of(const struct bh_json *node)
{
    const char *name = bh_json_cstr(node);

    return name ? name : bh_json_get_str(bh_json_get(node, "metadata"), "name");
}

/* The list of names or of objects that was sent. */
static const struct bh_json *candidates(const struct bh_json *args, bool *ret_names)
{
    const struct bh_json *names = bh_json_get(args, "NodeNames");

    *ret_names = names && names->type == BH_JSON_ARRAY;
    return *ret_names ? names : bh_json_path(args, "Nodes.items");
}

static void filter(struct server *s, struct bh_http_req *r, const struct bh_json *args,
                   const char *x, bool never)
{
    bool names;
    const struct bh_json *list = candidates(args, &names);
    struct bh_json *out = bh_json_new(&s->a, BH_JSON_OBJECT);
    struct bh_json *kept = bh_json_new(&s->a, BH_JSON_ARRAY);
    struct bh_json *failed = bh_json_new(&s->a, BH_JSON_OBJECT);
    const char *reason = never ? "never here" : bh_arena_printf(&s->a, "not for %s", x);

    bh_json_each(node, list) {
        if ((strstr(name_of(node), x) != NULL) != never)
            bh_json_push(kept, bh_json_clone(&s->a, node));
        else
            bh_json_set_str(&s->a, failed, name_of(node), reason);
    }
    if (names)
        bh_json_set(&s->a, out, "NodeNames", kept);
    else
        bh_json_set(&s->a, bh_json_obj_at(&s->a, out, "Nodes"), "items", kept);
    bh_json_set(&s->a, out, never ? "FailedAndUnresolvableNodes" : "FailedNodes", failed);
    reply_json(r, out);
}

static void prioritize(struct server *s, struct bh_http_req *r, const struct bh_json *args,
                       const char *x)
{
    bool names;
    struct bh_json *out = bh_json_new(&s->a, BH_JSON_ARRAY);

    bh_json_each(node, candidates(args, &names)) {
        struct bh_json *host = bh_json_new(&s->a, BH_JSON_OBJECT);
        bh_json_set_str(&s->a, host, "Host", name_of(node));
        bh_json_set_i64(&s->a, host, "Score", strstr(name_of(node), x) ? 10 : 0);
        bh_json_push(out, host);
    }
    reply_json(r, out);
}

static struct bh_json *uids_of(struct server *s, const struct bh_json *victims)
{
    struct bh_json *pods = bh_json_new(&s->a, BH_JSON_ARRAY);

    bh_json_each(p, bh_json_get(victims, "Pods")) {
        const char *uid = bh_json_get_str(p, "UID"); /* or the whole pod */
        struct bh_json *meta = bh_json_new(&s->a, BH_JSON_OBJECT);
        if (!uid)
            uid = bh_json_get_str(bh_json_get(p, "metadata"), "uid");
        bh_json_set_str(&s->a, meta, "UID", uid);
        bh_json_push(pods, meta);
    }
    return pods;
}

static void preempt(struct server *s, struct bh_http_req *r, const struct bh_json *args,
                    const char *x)
{
    struct bh_json *out = bh_json_new(&s->a, BH_JSON_OBJECT);
    struct bh_json *map = bh_json_obj_at(&s->a, out, "NodeNameToMetaVictims");
    const struct bh_json *in = bh_json_get(args, "NodeNameToMetaVictims");

    if (!in || in->type != BH_JSON_OBJECT)
        in = bh_json_get(args, "NodeNameToVictims");
    bh_json_each(node, in) {
        if (strstr(node->key.p, x))
            continue;
        struct bh_json *victims = bh_json_obj_at(&s->a, map, node->key.p);
        bh_json_set(&s->a, victims, "Pods", uids_of(s, node));
        bh_json_set_i64(&s->a, victims, "NumPDBViolations",
                        bh_json_get_i64(node, "NumPDBViolations", 0));
    }
    reply_json(r, out);
}

/* ---- bind ------------------------------------------------------------------------------------ */

static void on_written(void *arg, const struct bh_api_reply *reply)
{
    struct bh_http_req *r = arg;
    char text[256];

    snprintf(text, sizeof text, "{\"Error\":\"%s\"}",
             reply->outcome == BH_API_OK && reply->code == 201 ? "" : "the API server says no");
    bh_http_reply(r, 200, "application/json", text, strlen(text));
}

static bool connect_api(struct server *s)
{
    const struct bh_api_options o = {.user_agent = "extender"};
    struct bh_api_config *cfg = NULL;
    struct bh_err err = {{0}};

    if (s->api)
        return true;
    int rc = bh_kubeconfig_load(s->kubeconfig, NULL, &cfg, &err);
    if (rc == 0)
        rc = bh_api_client_new(&s->loop, cfg, &o, &s->api, &err);
    bh_api_config_free(cfg);
    if (rc < 0)
        fprintf(stderr, "%s\n", err.msg);
    return rc == 0;
}

static void bind_pod(struct server *s, struct bh_http_req *r, const struct bh_json *args)
{
    const char *ns = bh_json_get_str(args, "PodNamespace"), *pod = bh_json_get_str(args, "PodName");
    struct bh_json *b = bh_json_new(&s->a, BH_JSON_OBJECT);
    struct bh_json *meta = bh_json_obj_at(&s->a, b, "metadata");
    struct bh_json *target = bh_json_obj_at(&s->a, b, "target");
    struct bh_buf body = {0};

    if (!connect_api(s)) {
        bh_http_reply(r, 500, "text/plain", "", 0);
        return;
    }
    bh_json_set_str(&s->a, b, "kind", "Binding");
    bh_json_set_str(&s->a, b, "apiVersion", "v1");
    bh_json_set_str(&s->a, meta, "name", pod);
    bh_json_set_str(&s->a, meta, "namespace", ns);
    bh_json_set_str(&s->a, meta, "uid", bh_json_get_str(args, "PodUID"));
    bh_json_set_str(&s->a, target, "kind", "Node");
    bh_json_set_str(&s->a, target, "name", bh_json_get_str(args, "Node"));
    bh_json_write(&body, b);
    const struct bh_api_call call = {
        .method = "POST",
        .path = bh_arena_printf(&s->a, "/api/v1/namespaces/%s/pods/%s/binding", ns, pod),
        .content_type = "application/json",
        .body = body.p,
        .body_n = body.n,
        .timeout_ns = UINT64_C(10) * 1000000000,
        .on_done = on_written,
        .arg = r};
    (void)bh_api_start(s->api, &call);
    bh_buf_fini(&body);
}

/* ---- requests -------------------------------------------------------------------------------- */

static void tell(struct server *s, struct bh_http_req *r, const char *path)
{
    struct bh_json *out = bh_json_new(&s->a, BH_JSON_OBJECT);
    struct bh_map_entry *e;

    if (bh_streq(path, "/last")) {
        const char *which = bh_http_query(r, "path");
        const struct heard *h = which ? bh_map_get(&s->heard, which, strlen(which)) : NULL;
        const char *text = h ? h->last : "";
        bh_http_reply(r, h ? 200 : 404, "application/json", text, strlen(text));
        return;
    }
    for (size_t it = 0; (e = bh_map_next(&s->heard, &it));)
        bh_json_set_i64(&s->a, out, e->key, ((struct heard *)e->value)->n);
    reply_json(r, out);
}

static void remember(struct server *s, const char *path, struct bh_str body)
{
    struct heard *h = bh_map_get(&s->heard, path, strlen(path));

    if (!h) {
        h = bh_calloc(1, sizeof *h);
        (void)bh_map_put(&s->heard, path, strlen(path), h);
    }
    h->n++;
    free(h->last);
    h->last = bh_strndup(body.p, body.n);
}

static void gone(void *arg)
{
    (void)arg;
}

static bool is(const char *who, const char *name, const char **ret_x)
{
    size_t n = strlen(name);

    *ret_x = who + n;
    return strncmp(who, name, n) == 0;
}

static void on_request(struct bh_http_req *r, void *arg)
{
    static const char html[] = "<html><body>It works!</body></html>";
    struct server *s = arg;
    const char *path = bh_http_path(r), *who = path + 1, *x;
    struct bh_str body = bh_http_body(r);
    struct bh_json *args = NULL;

    bh_arena_reset(&s->a);
    if (bh_streq(bh_http_method(r), "GET")) {
        tell(s, r, path);
        return;
    }
    remember(s, path, body);
    if (bh_json_parse(&s->a, body.p, body.n, BH_JSON_STRICT, &args, NULL) < 0)
        bh_http_reply(r, 400, "text/plain", "", 0);
    else if (is(who, "only-", &x))
        filter(s, r, args, bh_arena_strndup(&s->a, x, strcspn(x, "/")), false);
    else if (is(who, "never-", &x))
        filter(s, r, args, bh_arena_strndup(&s->a, x, strcspn(x, "/")), true);
    else if (is(who, "likes-", &x))
        prioritize(s, r, args, bh_arena_strndup(&s->a, x, strcspn(x, "/")));
    else if (is(who, "spares-", &x))
        preempt(s, r, args, bh_arena_strndup(&s->a, x, strcspn(x, "/")));
    else if (is(who, "binder/", &x))
        bind_pod(s, r, args);
    else if (is(who, "hangs/", &x))
        bh_http_on_abort(r, gone, NULL);
    else if (is(who, "rubbish/", &x))
        bh_http_reply(r, 200, "text/html", html, sizeof html - 1);
    else
        bh_http_reply(r, 500, "text/plain", "", 0);
}

/* ---------------------------------------------------------------------------------------------- */

static void on_stop(void *arg)
{
    uv_stop(&((struct server *)arg)->loop);
}

static int start(struct server *s, int64_t port, const char *port_file, struct bh_err *err)
{
    const struct bh_http_options ho = {
        .address = "127.0.0.1", .port = (uint16_t)port, .max_body_bytes = (size_t)64 << 20};
    char text[16];
    int rc = bh_http_server_new(&s->loop, &ho, on_request, s, &s->http, err);

    if (rc < 0 || !port_file)
        return rc;
    snprintf(text, sizeof text, "%u\n", bh_http_server_port(s->http));
    return bh_write_file(port_file, text, strlen(text), 0644);
}

int main(int argc, char **argv)
{
    static const struct bh_opt_usage usage = {.program = "extender_server",
                                              .synopsis = "[flags]",
                                              .about = "HTTP extenders for tests.",
                                              .examples = "",
                                              .exits = ""};
    const char *port_file = NULL;
    struct server s = {.http = NULL};
    int64_t port = 0;
    const struct bh_opt table[] = {
        {"port", 0, BH_OPT_INT, &port, "N", "where to listen; 0 takes a free one"},
        {"port-file", 0, BH_OPT_STR, &port_file, "FILE", "gets the number of the port"},
        {"kubeconfig", 0, BH_OPT_STR, &s.kubeconfig, "FILE",
         "of the API server, for bind; read when the first bind comes"},
        {0},
    };
    struct bh_opt_list rest = {0};
    struct bh_err err = {{0}};

    if (bh_opt_parse(table, &usage, argc, argv, &rest, &err) != 0) {
        fprintf(stderr, "%s\n", err.msg);
        return 2;
    }
    free(rest.v);
    uv_loop_init(&s.loop);
    bh_arena_init(&s.a, 0);
    (void)bh_signals_new(&s.loop, on_stop, NULL, &s);
    if (start(&s, port, port_file, &err) < 0) {
        fprintf(stderr, "%s\n", err.msg);
        return 1;
    }
    uv_run(&s.loop, UV_RUN_DEFAULT);
    return 0; /* everything goes with the process */
}
