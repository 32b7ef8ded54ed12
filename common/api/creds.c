/* SPDX-License-Identifier: Apache-2.0
 *
 * common/api/creds.c - certificates and tokens, and their rotation
 *
 * Owns:       PEM texts and the bearer token; wiped when given back.
 * Invariants: what is in use never changes: a rotated certificate makes a new object, and new
 *             connections take it. An unreadable file keeps what was there.
 * Runs in:    the loop; small files are read where they are needed.
 * Upstream:   client-go/transport (token_source.go, cert_rotation.go); differences: certificate
 *             files are looked at once a minute, running requests finish on their old connection.
 */
#include "common/api/api_int.h"

#include <errno.h>
#include <sys/stat.h>

#define PEM_MAX_BYTES     ((size_t)4 << 20)
#define TOKEN_MAX_BYTES   ((size_t)64 << 10)
#define CHECK_INTERVAL_NS (UINT64_C(60) * 1000000000)

struct bh_api_creds *bh_api_creds_ref(struct bh_api_creds *k)
{
    k->refs++;
    return k;
}

void bh_api_creds_unref(struct bh_api_creds *k)
{
    if (!k || --k->refs)
        return;
    free(k->ca);
    free(k->cert);
    bh_wipe(k->key);
    free(k);
}

static int load_one(const char *what, const char *file, const char *pem, char **ret,
                    struct bh_err *err)
{
    size_t n;
    if (pem)
        *ret = bh_strdup(pem);
    if (pem || !file)
        return 0;
    int rc = bh_read_file(file, PEM_MAX_BYTES, ret, &n);
    if (rc < 0)
        return bh_err_set(err, rc, "%s \"%s\": %s", what, file, strerror(-rc));
    if (!strstr(*ret, "-----BEGIN"))
        return bh_err_set(err, -EINVAL, "%s \"%s\": holds no PEM block", what, file);
    return 0;
}

int bh_api_creds_load(const struct bh_api_config *cfg, struct bh_api_creds **ret,
                      struct bh_err *err)
{
    struct bh_api_creds *k = bh_calloc(1, sizeof(*k));
    k->refs = 1;
    int rc = load_one("certificate authority", cfg->ca_file, cfg->ca_pem, &k->ca, err);
    if (rc == 0)
        rc = load_one("client certificate", cfg->cert_file, cfg->cert_pem, &k->cert, err);
    if (rc == 0)
        rc = load_one("client key", cfg->key_file, cfg->key_pem, &k->key, err);
    if (rc < 0) {
        bh_api_creds_unref(k);
        return rc;
    }
    *ret = k;
    return 0;
}

bool bh_api_creds_equal(const struct bh_api_creds *a, const struct bh_api_creds *b)
{
    return bh_api_same(a->ca, b->ca) && bh_api_same(a->cert, b->cert) &&
           bh_api_same(a->key, b->key);
}

bool bh_api_certs_refresh(struct bh_api_client *c, bool force)
{
    const struct bh_api_config *cfg = c->cfg;
    struct bh_api_creds *k = NULL;
    const uint64_t now = bh_mono_ns();

    if (!cfg->ca_file && !cfg->cert_file && !cfg->key_file)
        return false;
    if (!force && now - c->certs_checked_ns < CHECK_INTERVAL_NS)
        return false;
    c->certs_checked_ns = now;
    const char *files[] = {cfg->ca_file, cfg->cert_file, cfg->key_file};
    uint64_t identity = 0;
    for (size_t i = 0; i < BH_ARRAY_LEN(files); i++) {
        struct stat st;
        if (!files[i] || stat(files[i], &st) < 0)
            continue;
        uint64_t id[] = {st.st_ino, (uint64_t)st.st_size, (uint64_t)st.st_mtim.tv_sec,
                         (uint64_t)st.st_mtim.tv_nsec, i};
        identity = bh_hash(id, sizeof(id), identity);
    }
    if (!force && identity == c->files_seen)
        return false;
    if (bh_api_creds_load(cfg, &k, NULL) < 0)
        return false;
    c->files_seen = identity;
    if (c->exec && c->creds->cert) { /* a command's: no file has it */
        k->cert = bh_strdup(c->creds->cert);
        k->key = bh_strdup(c->creds->key);
    }
    if (bh_api_creds_equal(k, c->creds)) {
        bh_api_creds_unref(k);
        return false;
    }
    bh_api_creds_unref(c->creds);
    c->creds = k;
    return true;
}

void bh_api_token_refresh(struct bh_api_client *c, bool force)
{
    const uint64_t now = bh_mono_ns();
    char *text = NULL;
    size_t n = 0;

    if (!c->cfg->token_file)
        return;
    if (!force && c->token && now - c->token_checked_ns < CHECK_INTERVAL_NS)
        return;
    c->token_checked_ns = now;
    if (bh_read_file(c->cfg->token_file, TOKEN_MAX_BYTES, &text, &n) < 0)
        return;
    char *start = text + strspn(text, " \t\r\n");
    start[strcspn(start, " \t\r\n")] = 0;
    if (*start && !bh_api_same(start, c->token)) {
        bh_wipe(c->token);
        c->token = bh_strdup(start);
        bh_api_headers_flush(c);
    }
    explicit_bzero(text, n);
    free(text);
}
