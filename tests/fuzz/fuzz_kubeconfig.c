/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/fuzz/fuzz_kubeconfig.c - any bytes as a kubeconfig
 *
 * A refusal says why, in one line; what is accepted has a server, and at most one of file and text
 * for each certificate.
 */
#include "common/api/kubeconfig.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct bh_api_config *c)
{
    bh_assert(c->server && strstr(c->server, "://") && c->namespace_ && c->source);
    bh_assert(c->server[strlen(c->server) - 1] != '/');
    bh_assert(!(c->ca_file && c->ca_pem) && !(c->cert_file && c->cert_pem));
    bh_assert(!(c->key_file && c->key_pem) && !(c->token && c->token_file));
    bh_assert(!(c->insecure_skip_tls_verify && (c->ca_file || c->ca_pem)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bh_api_config *c = NULL;
    struct bh_err err = {""};
    char path[64];
    int fd = memfd_create("kubeconfig", MFD_CLOEXEC);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size)
        return 0;
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    int rc = bh_kubeconfig_load(path, NULL, &c, &err);
    if (rc == 0) {
        check(c);
        bh_api_config_free(c);
    } else {
        bh_assert(!c && *err.msg && !strchr(err.msg, '\n'));
    }
    close(fd);
    return 0;
}
