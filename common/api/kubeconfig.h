/* SPDX-License-Identifier: Apache-2.0
 *
 * common/api/kubeconfig.h - how to reach an API server, and as which user
 *
 * Sources in order: --kubeconfig FILE, $KUBECONFIG (list, merged as kubectl does), in-cluster
 * service account, ~/.kube/config for the command line tool.
 * Relative paths are relative to the file; -data beats the file of the same name; tokenFile beats
 * token. auth-provider is refused, as upstream does since 1.26. Secrets are wiped when freed and
 * never appear in an error text.
 */
#ifndef BH_KUBECONFIG_H
#define BH_KUBECONFIG_H

#include "common/base/base.h"

/* A command that prints credentials (users[].user.exec). */
struct bh_exec_config {
    char *command;      /* a path relative to the file is made absolute, a bare name is looked up */
    char **args, **env; /* NULL-terminated; env: "NAME=value", added to our own */
    char *api_version;  /* "client.authentication.k8s.io/v1" or "/v1beta1" */
    char *install_hint;
    bool provide_cluster_info;
    char *cluster_config; /* JSON of the cluster's extension for it, NULL = none */
};
struct bh_api_config {
    char *server;          /* "https://10.0.0.1:6443" without trailing slash */
    char *tls_server_name; /* NULL = host of server */
    char *proxy_url;
    char *unix_socket; /* connect there, whatever server says; not read from files */
    bool insecure_skip_tls_verify;
    char *ca_file, *ca_pem;     /* at most one; NULL = the system's CAs */
    char *cert_file, *cert_pem; /* client certificate */
    char *key_file, *key_pem;
    char *token, *token_file; /* bearer */
    char *username, *password;
    struct bh_exec_config *exec; /* NULL = none */
    char **impersonate;          /* header lines, NULL-terminated; NULL = none */
    char *namespace_;            /* of the context, "default" */
    char *cluster;               /* its name in the file; NULL = none */
    char *source;                /* file the configuration came from, or "in-cluster" */
};
/* path NULL: the order above. context NULL: current-context. 0, -ENOENT (nothing found),
 * -EINVAL. */
int bh_kubeconfig_load(const char *path, const char *context, struct bh_api_config **ret,
                       struct bh_err *err);
/* The same for a daemon: master ("" or NULL = none) wins over the kubeconfig's server, or is all
 * there is (then also $KUBERNETES_MASTER); path may be "", too. -ENOENT with upstream's text when
 * nothing says where the API server is. Upstream: client-go/tools/clientcmd BuildConfigFromFlags;
 * differences: $KUBECONFIG and ~/.kube/config count when there is no path. */
int bh_kubeconfig_load_master(const char *path, const char *context, const char *master,
                              struct bh_api_config **ret, struct bh_err *err);
/* An address and nothing else, whatever files and the environment say. */
int bh_kubeconfig_bare(const char *server, struct bh_api_config **ret, struct bh_err *err);
void bh_api_config_free(struct bh_api_config *c);
#endif
