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

size_t bh_texts_count(char *const *v)
{
    size_t n = 0;

    while (v[n])
        n++;
    return n;
}

char **bh_texts_copy(char **v)
{
    char **c = v ? bh_calloc(bh_texts_count(v) + 1, sizeof(*c)) : NULL;

    for (size_t i = 0; v && v[i]; i++)
        c[i] = bh_strdup(v[i]);
    return c;
}

void bh_texts_free(char **v)
{
    for (char **p = v; p && *p; p++)
        bh_wipe(*p);
    free(v);
}

struct bh_exec_config *bh_exec_config_copy(const struct bh_exec_config *x)
{
    if (!x)
        return NULL;
    struct bh_exec_config *c = bh_memdup(x, sizeof(*x));
    char **const texts[] = {&c->command, &c->api_version, &c->install_hint, &c->cluster_config};
    for (size_t i = 0; i < BH_ARRAY_LEN(texts); i++)
        *texts[i] = *texts[i] ? bh_strdup(*texts[i]) : NULL;
    c->args = bh_texts_copy(x->args);
    c->env = bh_texts_copy(x->env);
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

static char **list_of(const struct bh_json *list, const char *field, struct bh_err *err)
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
    bh_err_set(err, -EINVAL, "user.%s: must be a list of strings", field);
    bh_texts_free(v);
    return NULL;
}

static char **env_of(const struct bh_json *list, struct bh_err *err)
{
    size_t n = 0;
    char **v = bh_calloc(members(list) ? list->c.n + 1 : 1, sizeof(*v));

    bh_json_each(item, list) {
        const char *name = bh_json_get_str(item, "name"), *value = bh_json_get_str(item, "value");
        if (!filled(name) || strchr(name, '=') || !value) {
            bh_err_set(err, -EINVAL, "user.exec.env: must be a list of {name, value}");
            bh_texts_free(v);
            return NULL;
        }
        v[n++] = bh_asprintf("%s=%s", name, value);
    }
    return v;
}

static int check_exec(const struct bh_json *x, struct bh_err *err)
{
    const char *command = bh_json_get_text(x, "command");
    const char *version = bh_json_get_text(x, "apiVersion");
    const char *mode = bh_json_get_text(x, "interactiveMode");

    if (!*command)
        return bh_err_set(err, -EINVAL,
                          "command must be specified for the exec authentication plugin");
    if (!*version)
        return bh_err_set(err, -EINVAL,
                          "apiVersion must be specified for %s to use exec authentication plugin",
                          command);
    if (!bh_streq(version, EXEC_GROUP "v1") && !bh_streq(version, EXEC_GROUP "v1beta1"))
        return bh_err_set(err, -EINVAL, "exec plugin: invalid apiVersion \"%s\"", version);
    if (!*mode && bh_streq(version, EXEC_GROUP "v1"))
        return bh_err_set(
            err, -EINVAL,
            "interactiveMode must be specified for %s to use exec authentication plugin", command);
    if (bh_streq(mode, "Always"))
        return bh_err_set(err, -EINVAL,
                          "exec plugin cannot support interactive mode: a daemon has no terminal");
    if (*mode && !bh_streq(mode, "Never") && !bh_streq(mode, "IfAvailable"))
        return bh_err_set(err, -EINVAL, "invalid interactiveMode for %s: \"%s\"", command, mode);
    return 0;
}

int bh_kubeconfig_exec(const struct bh_json *user, const char *path, struct bh_api_config *c,
                       struct bh_err *err)
{
    const struct bh_json *x = bh_json_get(user, "exec");

    if (!x || x->type == BH_JSON_NULL)
        return 0;
    int rc = check_exec(x, err);
    if (rc < 0)
        return rc;
    c->exec = bh_calloc(1, sizeof(*c->exec));
    const char *command = bh_json_get_str(x, "command"); /* a bare name is looked up in PATH */
    c->exec->command =
        strchr(command, '/') ? bh_kubeconfig_beside(path, command) : bh_strdup(command);
    c->exec->api_version = bh_strdup(bh_json_get_str(x, "apiVersion"));
    c->exec->provide_cluster_info = bh_json_get_bool(x, "provideClusterInfo", false);
    if (filled(bh_json_get_str(x, "installHint")))
        c->exec->install_hint = bh_strdup(bh_json_get_str(x, "installHint"));
    c->exec->args = list_of(bh_json_get(x, "args"), "exec.args", err);
    c->exec->env = env_of(bh_json_get(x, "env"), err);
    return c->exec->args && c->exec->env ? 0 : -EINVAL;
}

void bh_kubeconfig_exec_cluster(const struct bh_json *cluster, struct bh_api_config *c)
{
    bh_json_each(e, bh_json_get(cluster, "extensions")) {
        const struct bh_json *config = bh_json_get(e, "extension");
        struct bh_buf text = {0};
        if (!config || !bh_streq(bh_json_get_text(e, "name"), EXEC_EXTENSION))
            continue;
        bh_json_write(&text, config);
        free(c->exec->cluster_config);
        c->exec->cluster_config = bh_buf_take(&text);
    }
}

/* ---- impersonation --------------------------------------------------------------------------- */

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

int bh_kubeconfig_impersonation(const struct bh_json *user, struct bh_api_config *c,
                                struct bh_err *err)
{
    const char *as = bh_json_get_str(user, "as"), *uid = bh_json_get_str(user, "as-uid");
    const struct bh_json *groups = bh_json_get(user, "as-groups");
    const struct bh_json *extras = bh_json_get(user, "as-user-extra");
    struct lines l = {0};

    if (filled(as))
        line(&l, "Impersonate-User", as);
    if (filled(uid))
        line(&l, "Impersonate-Uid", uid);
    char **list = list_of(groups, "as-groups", err);
    for (char **g = list; g && *g; g++)
        line(&l, "Impersonate-Group", *g);
    bh_json_each(e, extras) {
        char **values = list ? list_of(e, "as-user-extra", err) : NULL;
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
                          "requesting uid, groups or user-extra without impersonating a user (as)");
    return l.bad ? bh_err_set(err, -EINVAL, "user.as*: a value holds a control character") : 0;
}
