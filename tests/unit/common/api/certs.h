/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/common/api/certs.h - certificates made for one test run
 */
#ifndef BH_TEST_CERTS_H
#define BH_TEST_CERTS_H

#include "tests/unit/harness.h"

#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

struct cert {
    X509 *x;
    EVP_PKEY *key;
    char *pem, *key_pem;
};

BH_UNUSED static char *bio_text(BIO *b)
{
    char *p = NULL;
    long n = BIO_get_mem_data(b, &p);
    char *s = bh_strndup(p, (size_t)n);
    BIO_free(b);
    return s;
}

BH_UNUSED static void cert_extension(X509 *x, X509 *issuer, int nid, const char *value)
{
    X509V3_CTX ctx;
    X509V3_set_ctx(&ctx, issuer, x, NULL, NULL, 0);
    X509_EXTENSION *e = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
    CU_ASSERT_PTR_NOT_NULL_FATAL(e);
    X509_add_ext(x, e, -1);
    X509_EXTENSION_free(e);
}

/* issuer NULL: a CA. san e.g. "IP:127.0.0.1,DNS:kubernetes"; NULL for clients. */
BH_UNUSED static struct cert cert_make(const char *cn, const struct cert *issuer, const char *san)
{
    static long serial = 1;
    struct cert c = {.x = X509_new(), .key = EVP_EC_gen("P-256")};
    X509_set_version(c.x, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(c.x), serial++);
    X509_gmtime_adj(X509_getm_notBefore(c.x), -60);
    X509_gmtime_adj(X509_getm_notAfter(c.x), 3600);
    X509_set_pubkey(c.x, c.key);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(c.x), "CN", MBSTRING_ASC,
                               (const unsigned char *)cn, -1, -1, 0);
    X509_set_issuer_name(c.x, X509_get_subject_name(issuer ? issuer->x : c.x));
    cert_extension(c.x, issuer ? issuer->x : c.x, NID_basic_constraints,
                   issuer ? "CA:FALSE" : "critical,CA:TRUE");
    if (san)
        cert_extension(c.x, issuer ? issuer->x : c.x, NID_subject_alt_name, san);
    X509_sign(c.x, issuer ? issuer->key : c.key, EVP_sha256());
    BIO *b = BIO_new(BIO_s_mem()), *k = BIO_new(BIO_s_mem());
    PEM_write_bio_X509(b, c.x);
    PEM_write_bio_PrivateKey(k, c.key, NULL, NULL, 0, NULL, NULL);
    c.pem = bio_text(b);
    c.key_pem = bio_text(k);
    return c;
}

BH_UNUSED static void cert_free(struct cert *c)
{
    X509_free(c->x);
    EVP_PKEY_free(c->key);
    free(c->pem);
    free(c->key_pem);
}
#endif
