/* SPDX-License-Identifier: Apache-2.0
 *
 * front/extension.c - what the API server tells extension servers about its clients
 *
 * Upstream: apiserver/pkg/server/dynamiccertificates/configmap_cafile_content.go,
 * authentication/request/headerrequest/requestheader_controller.go: lists are JSON arrays of
 * strings inside the configmap's strings.
 */
#include "front/authn.h"

#include <errno.h>

void bh_proxy_names_add(struct bh_proxy_names *l, const char *name)
{
    l->v = bh_reallocarray(l->v, l->n + 1, sizeof(*l->v));
    l->v[l->n++] = bh_strdup(name);
}

void bh_front_proxy_fini(struct bh_front_proxy *p)
{
    bh_ca_free(p->ca);
    for (size_t k = 0; k < BH_PROXY_LISTS; k++) {
        for (size_t i = 0; i < p->list[k].n; i++)
            free(p->list[k].v[i]);
        free(p->list[k].v);
    }
    *p = (struct bh_front_proxy){0};
}

/* data[name] = "[\"a\",\"b\"]"; absent = none. */
static int read_list(const struct bh_json *data, const char *name, struct bh_proxy_names *ret,
                     struct bh_err *err)
{
    const char *text = bh_json_get_str(data, name);
    struct bh_arena a;
    struct bh_json *v = NULL;

    if (!text || !*text)
        return 0;
    bh_arena_init(&a, (size_t)1 << 20);
    int rc = bh_json_parse(&a, text, strlen(text), 0, &v, err);
    if (rc == 0 && v->type == BH_JSON_ARRAY) {
        bh_json_each(e, v)
            if (bh_json_cstr(e))
                bh_proxy_names_add(ret, bh_json_cstr(e));
    } else if (rc == 0 && v->type != BH_JSON_NULL) {
        rc = bh_err_set(err, -EINVAL, "not a list of strings");
    }
    bh_arena_fini(&a);
    return rc < 0 ? bh_err_prefix(err, rc, "data[%s]", name) : 0;
}

static int read_ca(const struct bh_json *data, const char *name, struct bh_ca **ret,
                   struct bh_err *err)
{
    const char *pem = bh_json_get_str(data, name);
    int rc = pem && *pem ? bh_ca_new(pem, strlen(pem), ret, err) : 0;

    return rc < 0 ? bh_err_prefix(err, rc, "data[%s]", name) : 0;
}

int bh_extension_read(const struct bh_json *configmap, struct bh_ca **client_ca,
                      struct bh_front_proxy *proxy, struct bh_err *err)
{
    static const char *const names[BH_PROXY_LISTS] = {
        "requestheader-allowed-names", "requestheader-username-headers",
        "requestheader-group-headers", "requestheader-uid-headers",
        "requestheader-extra-headers-prefix"};
    const struct bh_json *data = bh_json_get(configmap, "data");
    struct bh_front_proxy p = {0};
    int rc = read_ca(data, "client-ca-file", client_ca, err);
    int rc2 = read_ca(data, "requestheader-client-ca-file", &p.ca, err);

    for (size_t i = 0; i < BH_PROXY_LISTS && rc2 == 0; i++)
        rc2 = read_list(data, names[i], &p.list[i], err);
    if (rc2 == 0)
        *proxy = p;
    else
        bh_front_proxy_fini(&p);
    return rc < 0 ? rc : rc2;
}
