/* SPDX-License-Identifier: Apache-2.0
 *
 * common/api/kubeconfig_exec.c - users[].user.exec and users[].user.as*
 *
 * Owns:       nothing between calls.
 * Fails with: -EINVAL; the text names the file and the field.
 * Upstream:   client-go/tools/clientcmd/{client_config,validation}.go,
 *             client-go/transport/round_trippers.go (impersonation headers).
 */
#include "common/api/api_int.h"

#include <ctype.h>
#include <errno.h>

#define EXEC_GROUP     "client.authentication.k8s.io/"
#define EXEC_EXTENSION "client.authentication.k8s.io/exec"

static void wipe(char *s)
{
    if (s)
        explicit_bzero(s, strlen(s));
    free(s);
}

char **bh_texts_copy(char **v)
{
    size_t n = 0;

    if (!v)
        return NULL;
    while (v[n])
        n++;
    char **c = bh_calloc(n + 1, sizeof(*c));
    for (size_t i = 0; i < n; i++)
        c[i] = bh_strdup(v[i]);
    return c;
}

void bh_texts_free(char **v)
{
    for (char **p = v; p && *p; p++)
        wipe(*p);
    free(v);
}

struct bh_exec_config *bh_exec_config_copy(const struct bh_exec_config *x)
{
    if (!x)
        return NULL;
    struct bh_exec_config *c = bh_calloc(1, sizeof(*c));
    c->command = bh_strdup(x->command);
    c->args = bh_texts_copy(x->args);
    c->env = bh_texts_copy(x->env);
    c->api_version = bh_strdup(x->api_version);
    c->install_hint = x->install_hint ? bh_strdup(x->install_hint) : NULL;
    c->provide_cluster_info = x->provide_cluster_info;
    c->cluster_config = x->cluster_config ? bh_strdup(x->cluster_config) : NULL;
    return c;
}

void bh_exec_config_free(struct bh_exec_config *x)
{
    if (!x)
        return;
    free(x->command);
    bh_texts_free(x->args);
    bh_texts_free(x->env);
    free(x->api_version);
    free(x->install_hint);
    free(x->cluster_config);
    free(x);
}

/* Anything that is not a list or mapping counts as absent. */
static const struct bh_json *members(const struct bh_json *v)
{
    return v && (v->type == BH_JSON_ARRAY || v->type == BH_JSON_OBJECT) ? v : NULL;
}

static bool filled(const char *s)
{
    return s && *s;
}

static char **list_of(const struct bh_json *list, const char *path, const char *field,
                      struct bh_err *err)
{
    size_t n = 0;
    char **v = bh_calloc(members(list) ? list->c.n + 1 : 1, sizeof(*v));

    if (list && list->type != BH_JSON_ARRAY && list->type != BH_JSON_NULL)
        goto bad;
    bh_json_each(item, list) {
        if (item->type != BH_JSON_STRING || memchr(item->s.p, 0, item->s.n))
            goto bad;
        v[n++] = bh_strndup(item->s.p, item->s.n);
    }
    return v;
bad:
    bh_err_set(err, -EINVAL, "kubeconfig \"%s\": user.%s: must be a list of strings", path, field);
    bh_texts_free(v);
    return NULL;
}

static char **env_of(const struct bh_json *list, const char *path, struct bh_err *err)
{
    size_t n = 0;
    char **v = bh_calloc(members(list) ? list->c.n + 1 : 1, sizeof(*v));

    bh_json_each(item, list) {
        const char *name = bh_json_get_str(item, "name"), *value = bh_json_get_str(item, "value");
        if (!filled(name) || strchr(name, '=') || !value) {
            bh_err_set(err, -EINVAL,
                       "kubeconfig \"%s\": user.exec.env: must be a list of {name, value}", path);
            bh_texts_free(v);
            return NULL;
        }
        v[n++] = bh_asprintf("%s=%s", name, value);
    }
    return v;
}

/* A name with a slash is a path, relative to the file; a bare name is looked up in PATH. */
static char *command_of(const char *command, const char *path)
{
    const char *slash = strrchr(path, '/');

    if (*command == '/' || !strchr(command, '/') || !slash)
        return bh_strdup(command);
    return bh_asprintf("%.*s/%s", (int)(slash - path), path, command);
}

static int check_exec(const struct bh_json *x, const char *path, struct bh_err *err)
{
    const char *command = bh_json_get_str(x, "command");
    const char *version = bh_json_get_str(x, "apiVersion");
    const char *mode = bh_json_get_str(x, "interactiveMode");

    if (!filled(command))
        return bh_err_set(err, -EINVAL,
                          "kubeconfig \"%s\": command must be specified for the exec "
                          "authentication plugin",
                          path);
    if (!filled(version))
        return bh_err_set(err, -EINVAL,
                          "kubeconfig \"%s\": apiVersion must be specified for %s to use exec "
                          "authentication plugin",
                          path, command);
    if (!bh_streq(version, EXEC_GROUP "v1") && !bh_streq(version, EXEC_GROUP "v1beta1"))
        return bh_err_set(err, -EINVAL, "kubeconfig \"%s\": exec plugin: invalid apiVersion \"%s\"",
                          path, version);
    if (!filled(mode) && bh_streq(version, EXEC_GROUP "v1"))
        return bh_err_set(err, -EINVAL,
                          "kubeconfig \"%s\": interactiveMode must be specified for %s to use exec "
                          "authentication plugin",
                          path, command);
    if (filled(mode) && bh_streq(mode, "Always"))
        return bh_err_set(err, -EINVAL,
                          "kubeconfig \"%s\": exec plugin cannot support interactive mode: a "
                          "daemon has no terminal",
                          path);
    if (filled(mode) && !bh_streq(mode, "Never") && !bh_streq(mode, "IfAvailable"))
        return bh_err_set(err, -EINVAL, "kubeconfig \"%s\": invalid interactiveMode for %s: \"%s\"",
                          path, command, mode);
    return 0;
}

int bh_kubeconfig_exec(const struct bh_json *user, const char *path, struct bh_api_config *c,
                       struct bh_err *err)
{
    const struct bh_json *x = bh_json_get(user, "exec");

    if (!x || x->type == BH_JSON_NULL)
        return 0;
    int rc = check_exec(x, path, err);
    if (rc < 0)
        return rc;
    c->exec = bh_calloc(1, sizeof(*c->exec));
    c->exec->command = command_of(bh_json_get_str(x, "command"), path);
    c->exec->api_version = bh_strdup(bh_json_get_str(x, "apiVersion"));
    c->exec->provide_cluster_info = bh_json_get_bool(x, "provideClusterInfo", false);
    if (filled(bh_json_get_str(x, "installHint")))
        c->exec->install_hint = bh_strdup(bh_json_get_str(x, "installHint"));
    c->exec->args = list_of(bh_json_get(x, "args"), path, "exec.args", err);
    c->exec->env = env_of(bh_json_get(x, "env"), path, err);
    return c->exec->args && c->exec->env ? 0 : -EINVAL;
}

void bh_kubeconfig_exec_cluster(const struct bh_json *cluster, struct bh_api_config *c)
{
    bh_json_each(e, bh_json_get(cluster, "extensions")) {
        const char *name = bh_json_get_str(e, "name");
        const struct bh_json *config = bh_json_get(e, "extension");
        struct bh_buf text = {0};
        if (!config || !name || !bh_streq(name, EXEC_EXTENSION))
            continue;
        bh_json_write(&text, config);
        free(c->exec->cluster_config);
        c->exec->cluster_config = bh_buf_take(&text);
    }
}

/* ---- impersonation -----------------------------------------------------------------------------
 */

struct lines {
    char **v;
    size_t n;
    bool bad;
};

static void line(struct lines *l, const char *name, const char *value)
{
    for (const char *p = value; *p; p++)
        l->bad = l->bad || (unsigned char)*p < ' ' || *p == 0x7f; /* no header of its own */
    l->v = bh_reallocarray(l->v, l->n + 2, sizeof(*l->v));
    l->v[l->n++] = bh_asprintf("%s: %s", name, value);
    l->v[l->n] = NULL;
}

/* A header name may not hold what a key may: percent-encoded, lower case, as upstream. */
static void extra(struct lines *l, const char *key, const char *value)
{
    struct bh_buf name = {0};

    bh_buf_adds(&name, "Impersonate-Extra-");
    for (const char *p = key; *p; p++)
        if (isalnum((unsigned char)*p) || strchr("!#$&'*+-.^_`|~", *p))
            bh_buf_addc(&name, (char)tolower((unsigned char)*p));
        else
            bh_buf_addf(&name, "%%%02X", (unsigned char)*p);
    line(l, bh_buf_str(&name), value);
    bh_buf_fini(&name);
}

int bh_kubeconfig_impersonation(const struct bh_json *user, const char *path,
                                struct bh_api_config *c, struct bh_err *err)
{
    const char *as = bh_json_get_str(user, "as"), *uid = bh_json_get_str(user, "as-uid");
    const struct bh_json *groups = bh_json_get(user, "as-groups");
    const struct bh_json *extras = bh_json_get(user, "as-user-extra");
    struct lines l = {0};

    if (filled(as))
        line(&l, "Impersonate-User", as);
    if (filled(uid))
        line(&l, "Impersonate-Uid", uid);
    char **list = list_of(groups, path, "as-groups", err);
    for (char **g = list; g && *g; g++)
        line(&l, "Impersonate-Group", *g);
    bh_json_each(e, extras) {
        char **values = list ? list_of(e, path, "as-user-extra", err) : NULL;
        for (char **v = values; v && *v; v++)
            extra(&l, e->key.p, *v);
        if (!values) {
            bh_texts_free(list);
            list = NULL;
        }
        bh_texts_free(values);
    }
    c->impersonate = l.v;
    if (!list)
        return -EINVAL;
    bh_texts_free(list);
    if (l.n && !filled(as))
        return bh_err_set(err, -EINVAL,
                          "kubeconfig \"%s\": requesting uid, groups or user-extra without "
                          "impersonating a user (as)",
                          path);
    return l.bad
               ? bh_err_set(err, -EINVAL,
                            "kubeconfig \"%s\": user.as*: a value holds a control character", path)
               : 0;
}
