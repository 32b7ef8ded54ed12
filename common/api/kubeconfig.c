/* SPDX-License-Identifier: Apache-2.0
 *
 * common/api/kubeconfig.c - how to reach an API server, and as which user
 *
 * Owns:       nothing between calls; the result is the caller's.
 * Invariants: text that held a secret is wiped before its memory is given back.
 * Runs in:    any thread; reads the environment.
 * Fails with: -ENOENT (nothing found), -EINVAL (says which entry), what reading a file gives.
 * Upstream:   client-go/tools/clientcmd (loader.go, client_config.go, validation.go); differences:
 *             auth-provider is refused.
 */
#include "common/api/kubeconfig.h"
#include "common/api/api_int.h"
#include "common/base/base64.h"
#include "common/data/yaml.h"

#include <errno.h>
#include <unistd.h>

#define FILE_MAX_BYTES  ((size_t)4 << 20)
#define TREE_MAX_BYTES  ((size_t)64 << 20)
#define FILES_MAX       32
#define SERVICE_ACCOUNT "/var/run/secrets/kubernetes.io/serviceaccount"

/* The files of one look-up. In a merge the first file that names an entry wins. */
struct files {
    struct bh_arena arena;
    size_t n;
    struct {
        char *path;
        struct bh_json *root;
    } f[FILES_MAX];
};
/* An entry and the file it stands in (relative paths start there). */
struct entry {
    const struct bh_json *v;
    const char *path;
};

static void wipe_tree(struct bh_json *v)
{
    if (v->type == BH_JSON_STRING)
        explicit_bzero((char *)(uintptr_t)v->s.p, v->s.n);
    bh_json_each(c, v)
        wipe_tree(c);
}

static int files_add(struct files *fs, const char *path, struct bh_err *err)
{
    char *text = NULL;
    size_t n = 0;
    struct bh_json *root = NULL;

    if (fs->n == FILES_MAX)
        return bh_err_set(err, -EINVAL, "more than %d kubeconfig files", FILES_MAX);
    int rc = bh_read_file(path, FILE_MAX_BYTES, &text, &n);
    if (rc < 0)
        return bh_err_set(err, rc, "kubeconfig \"%s\": %s", path, strerror(-rc));
    rc = bh_yaml_parse(&fs->arena, text, n, 0, &root, err);
    explicit_bzero(text, n);
    free(text);
    if (rc < 0)
        return bh_err_prefix(err, rc, "kubeconfig \"%s\"", path);
    if (root->type != BH_JSON_OBJECT && root->type != BH_JSON_NULL)
        return bh_err_set(err, -EINVAL, "kubeconfig \"%s\": is not a mapping", path);
    fs->f[fs->n].path = bh_strdup(path);
    fs->f[fs->n++].root = root;
    return 0;
}

/* $KUBECONFIG: missing files are left out, as kubectl does. */
static int files_add_list(struct files *fs, const char *list, struct bh_err *err)
{
    for (const char *p = list; *p;) {
        size_t n = strcspn(p, ":");
        char *path BH_CLEANUP(bh_freep) = bh_strndup(p, n);
        p += n + (p[n] == ':');
        int rc = *path ? files_add(fs, path, err) : 0;
        if (rc < 0 && rc != -ENOENT)
            return rc;
    }
    return fs->n ? 0 : -ENOENT;
}

/* The value of the entry called name in a list such as clusters[].{name,cluster}. */
static struct entry find_entry(const struct files *fs, const char *list, const char *member,
                               const char *name)
{
    for (size_t i = 0; i < fs->n; i++)
        bh_json_each(c, bh_json_get_list(fs->f[i].root, list)) {
            const char *have = bh_json_get_str(c, "name");
            if (have && bh_streq(have, name))
                return (struct entry){bh_json_get(c, member), fs->f[i].path};
        }
    return (struct entry){NULL, NULL};
}

static const char *get(const struct entry *e, const char *key)
{
    const char *s = bh_json_get_str(e->v, key);
    return s && *s ? s : NULL;
}

static char *get_dup(const struct entry *e, const char *key)
{
    const char *s = get(e, key);
    return s ? bh_strdup(s) : NULL;
}

char *bh_kubeconfig_beside(const char *path, const char *s)
{
    const char *slash = strrchr(path, '/');

    return *s == '/' || !slash ? bh_strdup(s)
                               : bh_asprintf("%.*s/%s", (int)(slash - path), path, s);
}

static char *get_path(const struct entry *e, const char *key)
{
    const char *s = get(e, key);
    return s ? bh_kubeconfig_beside(e->path, s) : NULL;
}

/* PEM out of base64. NULL when it is not base64. */
static char *base64_text(const char *s)
{
    size_t room = BH_BASE64_ROOM(strlen(s)) + 1, n;
    char *out = bh_calloc(1, room);
    if (bh_base64_decode(s, strlen(s), out, &n) == 0)
        return out;
    explicit_bzero(out, room);
    free(out);
    return NULL;
}

/* key-data beats key. */
static int get_pem(const struct entry *e, const char *key, char **ret_file, char **ret_pem,
                   struct bh_err *err)
{
    char *data_key BH_CLEANUP(bh_freep) = bh_asprintf("%s-data", key);
    const char *data = get(e, data_key);
    if (!data) {
        *ret_file = get_path(e, key);
        return 0;
    }
    *ret_pem = base64_text(data);
    if (!*ret_pem || !strstr(*ret_pem, "-----BEGIN"))
        return bh_err_set(err, -EINVAL, "%s does not hold base64 of PEM", data_key);
    return 0;
}

/* "host:port" without a scheme is https when anything about TLS is configured. */
static int set_server(struct bh_api_config *c, const char *server, struct bh_err *err)
{
    bool tls =
        c->ca_file || c->ca_pem || c->cert_file || c->cert_pem || c->insecure_skip_tls_verify;
    const char *scheme = strstr(server, "://") ? "" : tls ? "https://" : "http://";
    c->server = bh_asprintf("%s%s", scheme, server);
    const char *host = strstr(c->server, "://") + 3;
    if ((strncmp(c->server, "https://", 8) != 0 && strncmp(c->server, "http://", 7) != 0) ||
        !*host || strpbrk(c->server, "@?# \t\r\n"))
        /* not repeated: it may hold a password */
        return bh_err_set(err, -EINVAL,
                          "kubeconfig \"%s\": server is not a URL of a server (http or https, no "
                          "user, query or fragment)",
                          c->source);
    for (size_t n = strlen(c->server); n && c->server[n - 1] == '/'; n--)
        c->server[n - 1] = 0;
    return 0;
}

static int read_cluster(struct bh_api_config *c, const struct entry *e, struct bh_err *err)
{
    int rc = get_pem(e, "certificate-authority", &c->ca_file, &c->ca_pem, err);
    if (rc < 0)
        return bh_err_prefix(err, rc, "cluster");
    c->insecure_skip_tls_verify = bh_json_get_bool(e->v, "insecure-skip-tls-verify", false);
    if (c->insecure_skip_tls_verify && (c->ca_file || c->ca_pem))
        return bh_err_set(
            err, -EINVAL,
            "specifying a root certificates file with the insecure flag is not allowed");
    c->tls_server_name = get_dup(e, "tls-server-name");
    c->proxy_url = get_dup(e, "proxy-url");
    return 0;
}

static int read_identity(struct bh_api_config *c, const struct entry *e, struct bh_err *err)
{
    int rc = get_pem(e, "client-certificate", &c->cert_file, &c->cert_pem, err);
    if (rc == 0)
        rc = get_pem(e, "client-key", &c->key_file, &c->key_pem, err);
    if (rc < 0)
        return rc;
    if ((c->cert_file || c->cert_pem) != (c->key_file || c->key_pem))
        return bh_err_set(err, -EINVAL, "client-certificate and client-key belong together");
    c->token_file = get_path(e, "tokenFile");
    if (!c->token_file)
        c->token = get_dup(e, "token");
    c->username = get_dup(e, "username");
    c->password = get_dup(e, "password");
    if ((c->username || c->password) && (c->token || c->token_file))
        return bh_err_set(err, -EINVAL,
                          "more than one authentication method: token and basic auth");
    return 0;
}

static int read_user(struct bh_api_config *c, const struct entry *e, struct bh_err *err)
{
    const struct bh_json *provider = bh_json_get(e->v, "auth-provider");
    if (provider)
        return bh_err_set(err, -EINVAL, "no Auth Provider found for name \"%s\"",
                          bh_json_get_text(provider, "name"));
    int rc = bh_kubeconfig_exec(e->v, e->path, c, err);
    if (rc == 0)
        rc = bh_kubeconfig_impersonation(e->v, c, err);
    if (rc == 0 && (rc = read_identity(c, e, err)) < 0)
        bh_err_prefix(err, rc, "user");
    return rc;
}

static int resolve(const struct files *fs, const char *context, struct bh_api_config *c,
                   struct bh_err *err)
{
    const char *first = fs->f[0].path;
    for (size_t i = 0; i < fs->n && !context; i++)
        context = get(&(struct entry){fs->f[i].root, NULL}, "current-context");
    if (!context)
        return bh_err_set(err, -EINVAL, "kubeconfig \"%s\": current-context is not set", first);
    struct entry ctx = find_entry(fs, "contexts", "context", context);
    if (!ctx.v)
        return bh_err_set(err, -EINVAL, "kubeconfig \"%s\": context \"%s\" does not exist", first,
                          context);
    c->source = bh_strdup(ctx.path);
    c->namespace_ = bh_strdup(get(&ctx, "namespace") ? get(&ctx, "namespace") : "default");
    const char *cluster_name = get(&ctx, "cluster"), *user_name = get(&ctx, "user");
    struct entry cluster = find_entry(fs, "clusters", "cluster", cluster_name ? cluster_name : "");
    struct entry user = find_entry(fs, "users", "user", user_name ? user_name : "");
    if (!cluster.v)
        return bh_err_set(err, -EINVAL,
                          "kubeconfig \"%s\": context \"%s\": cluster \"%s\" does "
                          "not exist",
                          ctx.path, context, cluster_name ? cluster_name : "");
    if (!user.path && user_name)
        return bh_err_set(err, -EINVAL,
                          "kubeconfig \"%s\": context \"%s\": user \"%s\" does not exist", ctx.path,
                          context, user_name);
    if (!get(&cluster, "server"))
        return bh_err_set(err, -EINVAL, "kubeconfig \"%s\": cluster \"%s\": no server", ctx.path,
                          cluster_name);
    c->cluster = bh_strdup(cluster_name);
    int rc = read_cluster(c, &cluster, err);
    if (rc < 0)
        return bh_err_prefix(err, rc, "kubeconfig \"%s\"", cluster.path);
    if (user.v && (rc = read_user(c, &user, err)) < 0)
        return bh_err_prefix(err, rc, "kubeconfig \"%s\"", user.path);
    if (c->exec)
        bh_kubeconfig_exec_cluster(cluster.v, c);
    return set_server(c, get(&cluster, "server"), err);
}

static int in_cluster(struct bh_api_config *c, struct bh_err *err)
{
    const char *host = getenv("KUBERNETES_SERVICE_HOST"), *port = getenv("KUBERNETES_SERVICE_PORT");
    const char *ns_file = SERVICE_ACCOUNT "/namespace";
    char *ns = NULL;
    size_t n = 0;

    if (!host || !*host || !port || !*port)
        return bh_err_set(err, -ENOENT,
                          "unable to load in-cluster configuration, KUBERNETES_SERVICE_HOST and "
                          "KUBERNETES_SERVICE_PORT must be defined");
    c->token_file = bh_strdup(SERVICE_ACCOUNT "/token");
    c->ca_file = bh_strdup(SERVICE_ACCOUNT "/ca.crt");
    if (access(c->token_file, R_OK) < 0)
        return bh_err_set(err, -errno, "in-cluster configuration: \"%s\": %s", c->token_file,
                          strerror(errno));
    c->server = bh_asprintf(strchr(host, ':') ? "https://[%s]:%s" : "https://%s:%s", host, port);
    c->source = bh_strdup("in-cluster");
    if (bh_read_file(ns_file, 256, &ns, &n) == 0)
        ns[strcspn(ns, " \t\r\n")] = 0;
    c->namespace_ = ns && *ns ? bh_strdup(ns) : bh_strdup("default");
    free(ns);
    return 0;
}

/* Fills fs from the first source that has files. -ENOENT when none has. */
static int gather(struct files *fs, const char *path, struct bh_err *err)
{
    const char *list = getenv("KUBECONFIG"), *home = getenv("HOME");
    int rc = -ENOENT;
    if (path)
        return files_add(fs, path, err);
    if (list && *list)
        rc = files_add_list(fs, list, err);
    else if (!getenv("KUBERNETES_SERVICE_HOST") && home) {
        char *file BH_CLEANUP(bh_freep) = bh_asprintf("%s/.kube/config", home);
        rc = files_add(fs, file, err);
    }
    return rc;
}

int bh_kubeconfig_load(const char *path, const char *context, struct bh_api_config **ret,
                       struct bh_err *err)
{
    const char *list = getenv("KUBECONFIG");
    struct files fs = {.n = 0};
    struct bh_api_config *c = bh_calloc(1, sizeof(*c));

    bh_arena_init(&fs.arena, TREE_MAX_BYTES);
    int rc = gather(&fs, path, err);
    if (rc == 0) {
        rc = resolve(&fs, context, c, err);
    } else if (rc == -ENOENT && !path) {
        rc = in_cluster(c, err);
        if (rc == -ENOENT && !getenv("KUBERNETES_SERVICE_HOST"))
            bh_err_set(err, rc,
                       list && *list
                           ? "no kubeconfig: KUBECONFIG is \"%s\", and no such file exists"
                           : "no kubeconfig: give --kubeconfig, set KUBECONFIG or create "
                             "~/.kube/config%.0s",
                       list && *list ? list : "");
    }
    for (size_t i = 0; i < fs.n; i++) {
        wipe_tree(fs.f[i].root);
        free(fs.f[i].path);
    }
    bh_arena_fini(&fs.arena);
    if (rc < 0) {
        /* Names come from the file and may hold anything. */
        for (char *p = err ? err->msg : NULL; p && *p; p++)
            if ((unsigned char)*p < ' ')
                *p = ' ';
        bh_api_config_free(c);
        return rc;
    }
    *ret = c;
    return 0;
}

/* Only an address: no credentials. */
int bh_kubeconfig_bare(const char *master, struct bh_api_config **ret, struct bh_err *err)
{
    struct bh_api_config *c = bh_calloc(1, sizeof(*c));

    c->source = bh_strdup("--master");
    c->namespace_ = bh_strdup("default");
    int rc = set_server(c, master, err);
    if (rc < 0)
        bh_api_config_free(c);
    else
        *ret = c;
    return rc;
}

int bh_kubeconfig_load_master(const char *path, const char *context, const char *master,
                              struct bh_api_config **ret, struct bh_err *err)
{
    const char *list = getenv("KUBECONFIG"), *fallback = getenv("KUBERNETES_MASTER");
    bool file = path && *path;
    struct bh_api_config *c = NULL;

    if (master && *master && !file && !(list && *list))
        return bh_kubeconfig_bare(master, ret, err);
    int rc = bh_kubeconfig_load(file ? path : NULL, context, &c, err);
    if (rc == -ENOENT && !file && fallback && *fallback)
        return bh_kubeconfig_bare(fallback, ret, err);
    if (rc == -ENOENT && !file && !getenv("KUBERNETES_SERVICE_HOST"))
        return bh_err_set(err, rc,
                          "invalid configuration: no configuration has been provided, try setting "
                          "KUBERNETES_MASTER environment variable");
    if (rc == 0 && master && *master) {
        free(c->server);
        rc = set_server(c, master, err);
    }
    if (rc < 0)
        bh_api_config_free(c);
    else
        *ret = c;
    return rc;
}

static const size_t texts[] = {
#define TEXT(member) offsetof(struct bh_api_config, member)
    TEXT(server), TEXT(tls_server_name), TEXT(proxy_url), TEXT(unix_socket), TEXT(ca_file),
    TEXT(ca_pem), TEXT(cert_file),       TEXT(cert_pem),  TEXT(key_file),    TEXT(key_pem),
    TEXT(token),  TEXT(token_file),      TEXT(username),  TEXT(password),    TEXT(namespace_),
    TEXT(source), TEXT(cluster),
#undef TEXT
};

struct bh_api_config *bh_api_config_copy(const struct bh_api_config *from)
{
    struct bh_api_config *c = bh_memdup(from, sizeof(*from));

    for (size_t i = 0; i < BH_ARRAY_LEN(texts); i++) {
        char **text = (char **)((char *)c + texts[i]);
        *text = *text ? bh_strdup(*text) : NULL;
    }
    c->exec = bh_exec_config_copy(from->exec);
    c->impersonate = bh_texts_copy(from->impersonate);
    return c;
}

void bh_api_config_free(struct bh_api_config *c)
{
    if (!c)
        return;
    for (size_t i = 0; i < BH_ARRAY_LEN(texts); i++)
        bh_wipe(*(char **)((char *)c + texts[i])); /* some are secrets, or hold one */
    bh_exec_config_free(c->exec);
    bh_texts_free(c->impersonate);
    free(c);
}
