/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/fuzz/fuzz_front.c - what callers of the HTTPS port, and the API server about them, may say
 *
 * The first byte chooses:
 *   'h'  a configmap extension-apiserver-authentication, NUL, header lines: who is calling?
 *   'c'  certificates {u16 length, DER}: a client's chain, its last one being the authority
 *   'p'  a bundle of authorities in PEM, NUL, a serving key in PEM
 * A refusal says why; a user has a name, and what is asked about him is JSON that says the same.
 */
#include "front/authn.h"

#include <openssl/pem.h>

#include "tests/fuzz/check_user.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* Lines "key: value" of text, which is changed. */
static size_t read_headers(char *text, struct bh_front_header *h, size_t max)
{
    size_t n = 0;
    char *save = NULL;

    for (char *line = strtok_r(text, "\n", &save); line && n < max;
         line = strtok_r(NULL, "\n", &save)) {
        char *colon = strchr(line, ':');
        if (!colon)
            continue;
        *colon = '\0';
        h[n++] = (struct bh_front_header){line, colon + 1 + strspn(colon + 1, " ")};
    }
    return n;
}

static void headers(const char *configmap, char *lines)
{
    struct bh_front_header h[32];
    struct bh_credentials c = {.headers = h, .from = "192.0.2.1"};
    struct bh_front_proxy proxy = {0};
    struct bh_ca *ca = NULL;
    struct bh_err err = {""};
    struct bh_json *v = NULL;
    struct bh_arena a;

    bh_arena_init(&a, (size_t)16 << 20);
    if (bh_json_parse(&a, configmap, strlen(configmap), 0, &v, &err) == 0 &&
        bh_extension_read(v, &ca, &proxy, &err) < 0)
        bh_assert(*err.msg);
    c.n_headers = read_headers(lines, h, BH_ARRAY_LEN(h));
    check_user(bh_front_proxy_user(&proxy, &c));
    for (size_t i = 0; i < c.n_headers; i++) {
        const char *token = bh_bearer_token(h[i].value);
        bh_assert(!token || *token);
    }
    bh_front_proxy_fini(&proxy);
    bh_ca_free(ca);
    bh_arena_fini(&a);
}

static void certificates(const uint8_t *p, size_t n)
{
    struct bh_str chain[8];
    struct bh_ca *ca = NULL;
    struct bh_user *u = NULL;
    struct bh_err err = {""};
    BIO *pem = BIO_new(BIO_s_mem());
    size_t k = 0;
    char *text = NULL;

    for (; n > 2 && k < BH_ARRAY_LEN(chain); k++) {
        size_t len = BH_MIN((size_t)p[0] << 8 | p[1], n - 2);
        chain[k] = (struct bh_str){(const char *)p + 2, len};
        p += 2 + len;
        n -= 2 + len;
    }
    if (k)
        (void)PEM_write_bio(pem, "CERTIFICATE", "", (const uint8_t *)chain[k - 1].p,
                            (long)chain[k - 1].n);
    long pem_n = BIO_get_mem_data(pem, &text);
    if (bh_ca_new(text ? text : "", (size_t)pem_n, &ca, &err) == 0 &&
        bh_ca_verify(ca, chain, k, &u, &err) == 0)
        check_user(u);
    else
        bh_assert(*err.msg);
    bh_ca_free(ca);
    BIO_free(pem);
}

static void authorities(const char *bundle, const char *key)
{
    struct bh_ca *ca = NULL;
    struct bh_err err = {""};

    if (bh_ca_new(bundle, strlen(bundle), &ca, &err) < 0)
        bh_assert(*err.msg);
    bh_ca_free(ca);
    err.msg[0] = '\0';
    if (bh_pair_check(bundle, key, &err) < 0)
        bh_assert(*err.msg);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (n < 2)
        return 0;
    char *text = bh_strndup((const char *)data + 1, n - 1);
    size_t first = strlen(text);
    char *rest =
        first < n - 1 ? bh_strndup((const char *)data + 2 + first, n - 2 - first) : bh_strdup("");

    if (data[0] == 'h')
        headers(text, rest);
    else if (data[0] == 'c')
        certificates(data + 1, n - 1);
    else if (data[0] == 'p')
        authorities(text, rest);
    free(text);
    free(rest);
    return 0;
}
