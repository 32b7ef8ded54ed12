/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/common/api/test_from_flags.c - which kubeconfig of several is used
 */
#include "common/api/from_flags.h"
#include "tests/unit/harness.h"

#include <unistd.h>

#define KUBECONFIG                                                                                 \
    "clusters: [{name: c, cluster: {server: 'https://%s'}}]\n"                                     \
    "contexts: [{name: x, context: {cluster: c}}]\ncurrent-context: x\n"

/* server NULL: what a unit's SetCredential= says where there is no file. */
static char *file(const char *name, const char *server)
{
    char *path = bh_asprintf("%s/%s", bh_test_tmpdir(), name), text[512];
    int n = snprintf(text, sizeof(text), server ? KUBECONFIG : "-", server);

    CU_ASSERT_EQUAL_FATAL(bh_write_file(path, text, (size_t)n, 0600), 0);
    return path;
}

static void is_used(const struct bh_kube_flags *f, const char *own, const char *server)
{
    const struct bh_api_own_flags o = {.kubeconfig = own};
    struct bh_api_setup s;
    struct bh_err err = {""};

    CU_ASSERT_EQUAL(bh_api_setup_load(&s, f, &o, NULL, &err), 0);
    CU_ASSERT_TRUE(s.api && bh_streq(s.api->server, server));
    bh_api_setup_fini(&s);
}

static void test_unit_kubeconfig(void)
{
    char *flag = file("flag", "flag"), *own = file("own", "own"), found[256];
    char *args[] = {(char[]){"test"}, (char[]){"--kubeconfig"}, flag, NULL};
    const struct bh_opt none[] = {{0}};
    const struct bh_opt_usage usage = {.program = "test"};
    struct bh_kube_flags f;

    unsetenv("CREDENTIALS_DIRECTORY");
    CU_ASSERT_EQUAL_FATAL(bh_kube_flags_start(&f, none, &usage, 3, args), -1);
    is_used(&f, NULL, "https://flag");
    setenv("CREDENTIALS_DIRECTORY", bh_test_tmpdir(), 1);
    CU_ASSERT_FALSE(bh_api_unit_kubeconfig(found)); /* there is a folder, and nothing in it */
    is_used(&f, NULL, "https://flag");
    char *given = file("kubeconfig", NULL);
    CU_ASSERT_FALSE(bh_api_unit_kubeconfig(found)); /* the unit's "there need not be one" */
    is_used(&f, NULL, "https://flag");
    free(file("kubeconfig", "unit"));
    CU_ASSERT_TRUE(bh_api_unit_kubeconfig(found));
    CU_ASSERT_STRING_EQUAL(found, given);
    is_used(&f, NULL, "https://unit");
    is_used(&f, own, "https://own");
    setenv("CREDENTIALS_DIRECTORY", "relative", 1);
    CU_ASSERT_FALSE(bh_api_unit_kubeconfig(found));
    unsetenv("CREDENTIALS_DIRECTORY");
    bh_kube_flags_free(&f);
    free(flag);
    free(own);
    free(given);
}

BH_TESTS("common/api/from_flags",
         {"what the service manager hands over wins over flags", test_unit_kubeconfig})
