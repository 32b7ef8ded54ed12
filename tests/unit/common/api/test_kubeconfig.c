/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/common/api/test_kubeconfig.c - kubeconfig files: merging, paths, precedence, refusals
 */
#include "common/api/kubeconfig.h"
#include "tests/unit/harness.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#define CLUSTER "apiVersion: v1\nkind: Config\nclusters:\n- name: c\n  cluster:\n    server: "
#define CONTEXT                                                                                    \
    "contexts:\n- name: x\n  context:\n    cluster: c\n    user: u\ncurrent-context: x\n"
#define NOBODY "contexts:\n- name: x\n  context:\n    cluster: c\ncurrent-context: x\n"
#define USER   "users:\n- name: u\n  user:\n"
#define EXEC(version, rest)                                                                        \
    "    exec: {command: get-token, apiVersion: client.authentication.k8s.io/" version rest "}\n"

static struct bh_err err;

static char *file(const char *name, const char *text)
{
    char *path = bh_asprintf("%s/%s", bh_test_tmpdir(), name);
    CU_ASSERT_EQUAL_FATAL(bh_write_file(path, text, strlen(text), 0600), 0);
    return path;
}

static int load_text(const char *text, const char *context, struct bh_api_config **ret)
{
    char *path = file("config", text);
    int rc = bh_kubeconfig_load(path, context, ret, &err);
    free(path);
    return rc;
}

static struct bh_api_config *load_ok(const char *text)
{
    struct bh_api_config *c = NULL;
    int rc = load_text(text, NULL, &c);
    if (rc < 0)
        printf("# %s\n", err.msg);
    CU_ASSERT_EQUAL_FATAL(rc, 0);
    return c;
}

static void refused(const char *text, const char *why)
{
    struct bh_api_config *c = NULL;
    CU_ASSERT_EQUAL(load_text(text, NULL, &c), -EINVAL);
    CU_ASSERT_PTR_NULL(c);
    if (!strstr(err.msg, why))
        printf("# \"%s\" does not say \"%s\"\n", err.msg, why);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.msg, why));
}

static void clean_environment(void)
{
    unsetenv("KUBECONFIG");
    unsetenv("KUBERNETES_SERVICE_HOST");
    unsetenv("KUBERNETES_SERVICE_PORT");
    setenv("HOME", bh_test_tmpdir(), 1);
}

static void test_plain(void)
{
    struct bh_api_config *c = load_ok(CLUSTER "http://127.0.0.1:8080/\n" NOBODY);
    CU_ASSERT_STRING_EQUAL(c->server, "http://127.0.0.1:8080");
    CU_ASSERT_STRING_EQUAL(c->namespace_, "default");
    CU_ASSERT_PTR_NULL(c->token);
    CU_ASSERT_PTR_NULL(c->ca_file);
    CU_ASSERT_PTR_NOT_NULL(strstr(c->source, "/config"));
    bh_api_config_free(c);
}

static void test_paths_and_data(void)
{
    struct bh_api_config *c =
        load_ok(CLUSTER "https://h:6443/k8s/a//\n    certificate-authority: pki/ca.crt\n"
                        "    tls-server-name: kubernetes\n    proxy-url: http://p:1\n" CONTEXT USER
                        "    client-certificate: /abs/c.crt\n    client-certificate-data: "
                        "LS0tLS1CRUdJTiBYLS0tLS0K\n    client-key: keys/k.pem\n    tokenFile: tok\n"
                        "    token: ignored\n");
    char *ca = bh_asprintf("%s/pki/ca.crt", bh_test_tmpdir());
    char *key = bh_asprintf("%s/keys/k.pem", bh_test_tmpdir());
    char *token = bh_asprintf("%s/tok", bh_test_tmpdir());
    CU_ASSERT_STRING_EQUAL(c->server, "https://h:6443/k8s/a");
    CU_ASSERT_STRING_EQUAL(c->ca_file, ca);
    CU_ASSERT_PTR_NULL(c->cert_file); /* -data beats the file of the same name */
    CU_ASSERT_STRING_EQUAL(c->cert_pem, "-----BEGIN X-----\n");
    CU_ASSERT_STRING_EQUAL(c->key_file, key);
    CU_ASSERT_STRING_EQUAL(c->token_file, token);
    CU_ASSERT_PTR_NULL(c->token); /* tokenFile beats token */
    CU_ASSERT_STRING_EQUAL(c->tls_server_name, "kubernetes");
    CU_ASSERT_STRING_EQUAL(c->proxy_url, "http://p:1");
    free(ca);
    free(key);
    free(token);
    bh_api_config_free(c);
}

static void test_scheme(void)
{
    struct bh_api_config *c = load_ok(CLUSTER "10.0.0.1:8080\n" NOBODY);
    CU_ASSERT_STRING_EQUAL(c->server, "http://10.0.0.1:8080");
    bh_api_config_free(c);
    c = load_ok(CLUSTER "10.0.0.1:6443\n    insecure-skip-tls-verify: true\n" NOBODY);
    CU_ASSERT_STRING_EQUAL(c->server, "https://10.0.0.1:6443");
    CU_ASSERT(c->insecure_skip_tls_verify);
    bh_api_config_free(c);
}

static void test_json(void)
{
    struct bh_api_config *c =
        load_ok("{\"clusters\":[{\"name\":\"c\",\"cluster\":{\"server\":\"https://h\"}}],"
                "\"contexts\":[{\"name\":\"x\",\"context\":{\"cluster\":\"c\",\"user\":\"u\","
                "\"namespace\":\"n\"}}],\"current-context\":\"x\",\"users\":[{\"name\":\"u\","
                "\"user\":{\"token\":\"t0ken\"}}]}");
    CU_ASSERT_STRING_EQUAL(c->token, "t0ken");
    CU_ASSERT_STRING_EQUAL(c->cluster, "c");
    CU_ASSERT_STRING_EQUAL(c->namespace_, "n");
    bh_api_config_free(c);
}

static void test_refusals(void)
{
    refused("[]", "is not a mapping");
    refused("a: [", "line");
    refused("", "current-context is not set");
    refused(CLUSTER "https://h\ncurrent-context: nope\n", "context \"nope\" does not exist");
    refused("contexts:\n- name: x\n  context: {cluster: gone}\ncurrent-context: x\n",
            "cluster \"gone\" does not exist");
    refused(CLUSTER "https://h\n" NOBODY "users: []\n"
                    "x: y\ncontexts: []\n",
            "does not exist");
    refused("clusters:\n- name: c\n  cluster: {}\n" NOBODY, "no server");
    refused(CLUSTER "ftp://h\n" NOBODY, "server is not a URL");
    refused(CLUSTER "https://user:pw@h\n" NOBODY, "server is not a URL");
    refused(CLUSTER "https://h\n    insecure-skip-tls-verify: true\n"
                    "    certificate-authority: ca\n" NOBODY,
            "root certificates file with the insecure flag is not allowed");
    refused(CLUSTER "https://h\n" CONTEXT USER "    token: t\n    username: a\n    password: b\n",
            "more than one authentication method");
    refused(CLUSTER "https://h\n" CONTEXT USER "    client-certificate: c.pem\n",
            "belong together");
    refused(CLUSTER "https://h\n" CONTEXT USER "    client-key-data: '@@@'\n    "
                    "client-certificate: c.pem\n",
            "client-key-data does not hold base64 of PEM");
    /* "-----BEGIN" and more, without its padding, and with something behind it */
    refused(CLUSTER "https://h\n" CONTEXT USER "    client-key-data: LS0tLS1CRUdJTi0tLS0\n    "
                    "client-certificate: c.pem\n",
            "client-key-data does not hold base64 of PEM");
    refused(CLUSTER "https://h\n" CONTEXT USER "    client-key-data: LS0tLS1CRUdJTg==LS0t\n    "
                    "client-certificate: c.pem\n",
            "client-key-data does not hold base64 of PEM");
    refused(CLUSTER "https://h\n" CONTEXT USER "    exec: {args: [a]}\n", "command must be");
    refused(CLUSTER "https://h\n" CONTEXT USER "    exec: {command: aws}\n",
            "apiVersion must be specified for aws");
    refused(CLUSTER "https://h\n" CONTEXT USER "    exec: {command: aws, apiVersion: v9}\n",
            "invalid apiVersion \"v9\"");
    refused(CLUSTER "https://h\n" CONTEXT USER EXEC("v1", ""), "interactiveMode must be specified");
    refused(CLUSTER "https://h\n" CONTEXT USER EXEC("v1", ", interactiveMode: Always"),
            "cannot support interactive mode");
    refused(CLUSTER "https://h\n" CONTEXT USER EXEC("v1", ", interactiveMode: Maybe"),
            "invalid interactiveMode for get-token: \"Maybe\"");
    refused(CLUSTER "https://h\n" CONTEXT USER EXEC("v1beta1", ", args: [1]"),
            "user.exec.args: must be a list of strings");
    refused(CLUSTER "https://h\n" CONTEXT USER EXEC("v1beta1", ", env: [{name: 'A=B'}]"),
            "user.exec.env: must be a list of {name, value}");
    refused(CLUSTER "https://h\n" CONTEXT USER "    auth-provider: {name: gcp}\n",
            "no Auth Provider found for name \"gcp\"");
    refused(CLUSTER "https://h\n" CONTEXT USER "    as-groups: [g]\n",
            "without impersonating a user");
    refused(CLUSTER "https://h\n" CONTEXT USER "    as: \"a\\r\\nX-Evil: 1\"\n",
            "holds a control character");
    refused(CLUSTER "https://h\n" CONTEXT USER "    as: a\n    as-groups: g\n",
            "user.as-groups: must be a list of strings");
}

static void test_exec_and_impersonation(void)
{
    struct bh_api_config *c = load_ok(
        "clusters:\n- name: c\n  cluster:\n    server: https://h\n    extensions:\n"
        "    - {name: client.authentication.k8s.io/exec, extension: {audience: x}}\n" CONTEXT USER
        "    as: jane\n    as-uid: '7'\n    as-groups: [dev, ops]\n"
        "    as-user-extra: {Example.com/Reason: [why not]}\n"
        "    exec: {command: bin/get-token, apiVersion: "
        "client.authentication.k8s.io/v1, interactiveMode: IfAvailable, args: [-a, b], "
        "env: [{name: K, value: 'v=w'}], provideClusterInfo: true, installHint: read}\n");
    static const char *const want[] = {"Impersonate-User: jane", "Impersonate-Uid: 7",
                                       "Impersonate-Group: dev", "Impersonate-Group: ops",
                                       "Impersonate-Extra-example.com%2Freason: why not"};
    char *command = bh_asprintf("%s/bin/get-token", bh_test_tmpdir());

    for (size_t i = 0; i < BH_ARRAY_LEN(want); i++)
        CU_ASSERT_STRING_EQUAL(c->impersonate[i], want[i]);
    CU_ASSERT_PTR_NULL(c->impersonate[BH_ARRAY_LEN(want)]);
    CU_ASSERT_STRING_EQUAL(c->exec->command, command); /* a path starts at the file */
    CU_ASSERT_STRING_EQUAL(c->exec->args[1], "b");
    CU_ASSERT_STRING_EQUAL(c->exec->env[0], "K=v=w");
    CU_ASSERT_STRING_EQUAL(c->exec->install_hint, "read");
    CU_ASSERT_STRING_EQUAL(c->exec->cluster_config, "{\"audience\":\"x\"}");
    CU_ASSERT(c->exec->provide_cluster_info);
    free(command);
    bh_api_config_free(c);
}

static void test_secrets_stay_out_of_errors(void)
{
    struct bh_api_config *c = NULL;
    CU_ASSERT_EQUAL(load_text(CLUSTER "https://h\n" CONTEXT USER "    token: s3cret\n"
                                      "    password: hunter2\n",
                              NULL, &c),
                    -EINVAL);
    CU_ASSERT_PTR_NULL(strstr(err.msg, "s3cret"));
    CU_ASSERT_PTR_NULL(strstr(err.msg, "hunter2"));
    CU_ASSERT_EQUAL(load_text(CLUSTER "https://me:hunter2@h\n" NOBODY, NULL, &c), -EINVAL);
    CU_ASSERT_PTR_NULL(strstr(err.msg, "hunter2"));
}

static void test_odd_names_stay_on_one_line(void)
{
    struct bh_api_config *c = NULL;
    CU_ASSERT_EQUAL(load_text("current-context: \"a\\nb\\tc\"\n", NULL, &c), -EINVAL);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.msg, "\"a b c\""));
}

static void test_context_option(void)
{
    struct bh_api_config *c = NULL;
    const char *text = CLUSTER "https://one\n- name: d\n  cluster: {server: 'https://two'}\n"
                               "contexts:\n- name: x\n  context: {cluster: c}\n"
                               "- name: second\n  context: {cluster: d}\ncurrent-context: x\n";
    int rc = load_text(text, "second", &c);
    if (rc < 0)
        printf("# %s\n", err.msg);
    CU_ASSERT_EQUAL_FATAL(rc, 0);
    CU_ASSERT_STRING_EQUAL(c->server, "https://two");
    bh_api_config_free(c);
    c = NULL;
    CU_ASSERT_EQUAL(load_text(text, "z", &c), -EINVAL);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.msg, "\"z\""));
}

static void test_merge(void)
{
    struct bh_api_config *c = NULL;
    clean_environment();
    char *one = file("one", "current-context: x\nclusters:\n- name: c\n  cluster:\n"
                            "    server: https://first\n    certificate-authority: ca\n");
    char *two = file("two", CLUSTER "https://second\n" CONTEXT USER "    token: t\n");
    char *list = bh_asprintf("/no/such/file:%s::%s", one, two);
    setenv("KUBECONFIG", list, 1);
    CU_ASSERT_EQUAL_FATAL(bh_kubeconfig_load(NULL, NULL, &c, &err), 0);
    CU_ASSERT_STRING_EQUAL(c->server, "https://first");
    CU_ASSERT_STRING_EQUAL(c->token, "t");
    bh_api_config_free(c);
    clean_environment();
    free(list);
    free(one);
    free(two);
}

static void test_nothing_found(void)
{
    struct bh_api_config *c = NULL;
    clean_environment();
    CU_ASSERT_EQUAL(bh_kubeconfig_load(NULL, NULL, &c, &err), -ENOENT);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.msg, "--kubeconfig"));
    CU_ASSERT_EQUAL(bh_kubeconfig_load("/no/such/file", NULL, &c, &err), -ENOENT);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.msg, "/no/such/file"));
    setenv("KUBECONFIG", "/no/such/list", 1); /* as kubectl: nothing else is tried */
    setenv("HOME", bh_test_tmpdir(), 1);
    char *dir = file(".kube", ""), *home = NULL;
    CU_ASSERT(unlink(dir) == 0 && mkdir(dir, 0700) == 0);
    home = file(".kube/config", CLUSTER "https://home\n" CONTEXT USER "    token: t\n");
    CU_ASSERT_EQUAL(bh_kubeconfig_load(NULL, NULL, &c, &err), -ENOENT);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.msg, "KUBECONFIG is \"/no/such/list\""));
    CU_ASSERT(unlink(home) == 0 && rmdir(dir) == 0);
    free(home);
    free(dir);
    clean_environment();
    setenv("KUBERNETES_SERVICE_HOST", "10.96.0.1", 1);
    setenv("KUBERNETES_SERVICE_PORT", "443", 1);
    if (access("/var/run/secrets/kubernetes.io/serviceaccount/token", R_OK) < 0) {
        CU_ASSERT_EQUAL(bh_kubeconfig_load(NULL, NULL, &c, &err), -ENOENT);
        CU_ASSERT_PTR_NOT_NULL(strstr(err.msg, "serviceaccount/token"));
    }
    clean_environment();
}

static void test_master(void)
{
    struct bh_api_config *c = NULL;
    char *path = file("config", CLUSTER "https://first\n" CONTEXT USER "    token: t\n");

    clean_environment();
    unsetenv("KUBERNETES_MASTER");
    CU_ASSERT_EQUAL_FATAL(bh_kubeconfig_load_master(path, NULL, "10.0.0.1:6443/", &c, &err), 0);
    CU_ASSERT_STRING_EQUAL(c->server, "http://10.0.0.1:6443"); /* no TLS in the file */
    CU_ASSERT_STRING_EQUAL(c->token, "t");
    bh_api_config_free(c);
    CU_ASSERT_EQUAL_FATAL(bh_kubeconfig_load_master(path, NULL, "", &c, &err), 0);
    CU_ASSERT_STRING_EQUAL(c->server, "https://first");
    bh_api_config_free(c);
    /* alone: an address and nobody in particular */
    CU_ASSERT_EQUAL_FATAL(bh_kubeconfig_load_master("", NULL, "https://m", &c, &err), 0);
    CU_ASSERT(bh_streq(c->server, "https://m") && !c->token && !c->ca_file);
    bh_api_config_free(c);
    CU_ASSERT_EQUAL(bh_kubeconfig_load_master("", NULL, "https://a@b", &c, &err), -EINVAL);
    CU_ASSERT_EQUAL(bh_kubeconfig_load_master("", NULL, "", &c, &err), -ENOENT);
    CU_ASSERT_STRING_EQUAL(err.msg,
                           "invalid configuration: no configuration has been provided, try setting "
                           "KUBERNETES_MASTER environment variable");
    setenv("KUBERNETES_MASTER", "https://e", 1);
    CU_ASSERT_EQUAL_FATAL(bh_kubeconfig_load_master("", NULL, "", &c, &err), 0);
    CU_ASSERT_STRING_EQUAL(c->server, "https://e");
    bh_api_config_free(c);
    unsetenv("KUBERNETES_MASTER");
    unlink(path);
    free(path);
}

static void test_home(void)
{
    struct bh_api_config *c = NULL;
    clean_environment();
    char *dir = bh_asprintf("%s/.kube", bh_test_tmpdir());
    CU_ASSERT_EQUAL(bh_runtime_dir(dir, (char[108]){0}, &err), 0); /* makes the folder */
    char *path = file(".kube/config", CLUSTER "https://home\n" NOBODY);
    CU_ASSERT_EQUAL_FATAL(bh_kubeconfig_load(NULL, NULL, &c, &err), 0);
    CU_ASSERT_STRING_EQUAL(c->server, "https://home");
    bh_api_config_free(c);
    unlink(path);
    free(path);
    free(dir);
}

BH_TESTS("common/api/kubeconfig", {"a plain server with nothing else", test_plain},
         {"relative paths start at the file, data beats files, tokenFile beats token",
          test_paths_and_data},
         {"a server without scheme is https when TLS is configured", test_scheme},
         {"a kubeconfig may be JSON", test_json},
         {"what cannot be honoured is refused and named", test_refusals},
         {"exec commands and impersonation are read whole", test_exec_and_impersonation},
         {"secrets never appear in an error text", test_secrets_stay_out_of_errors},
         {"names with control characters stay on one line", test_odd_names_stay_on_one_line},
         {"--context chooses, and an unknown one is named", test_context_option},
         {"$KUBECONFIG is a list: first entry wins, missing files are left out", test_merge},
         {"finding nothing says what to give", test_nothing_found},
         {"--master wins over the file, or stands alone", test_master},
         {"~/.kube/config is the last resort", test_home})
