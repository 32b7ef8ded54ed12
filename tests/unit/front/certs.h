/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/front/certs.h - authorities and certificates made up for a test
 */
#ifndef BH_TEST_FRONT_CERTS_H
#define BH_TEST_FRONT_CERTS_H

#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "tests/unit/harness.h"

struct cert {
    X509 *x;
    EVP_PKEY *key;
    char *pem, *key_pem;
    struct bh_str der;
};

static inline char *bio_text(BIO *b)
{
    char *p;
    size_t n = (size_t)BIO_get_mem_data(b, &p);
    char *text = bh_strndup(p, n);

    BIO_free(b);
    return text;
}

static inline void cert_extend(X509 *x, int nid, const char *value)
{
    X509_EXTENSION *e = X509V3_EXT_conf_nid(NULL, NULL, nid, value);

    CU_ASSERT_PTR_NOT_NULL_FATAL(e);
    X509_add_ext(x, e, -1);
    X509_EXTENSION_free(e);
}

static inline void cert_export(struct cert *c)
{
    unsigned char *der = NULL;
    BIO *b = BIO_new(BIO_s_mem());

    PEM_write_bio_X509(b, c->x);
    c->pem = bio_text(b);
    b = BIO_new(BIO_s_mem());
    PEM_write_bio_PrivateKey(b, c->key, NULL, NULL, 0, NULL, NULL);
    c->key_pem = bio_text(b);
    c->der.n = (size_t)i2d_X509(c->x, &der);
    c->der.p = (char *)der;
}

/* issuer NULL = an authority. usage: "clientAuth"; valid for `days` from yesterday. */
static inline struct cert cert_make(const char *name, const char *group, const struct cert *issuer,
                                    const char *usage, long days)
{
    struct cert c = {X509_new(), EVP_EC_gen("P-256"), NULL, NULL, {NULL, 0}};
    X509_NAME *n = X509_get_subject_name(c.x);

    X509_set_version(c.x, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(c.x), 7);
    X509_gmtime_adj(X509_getm_notBefore(c.x), -86400);
    X509_gmtime_adj(X509_getm_notAfter(c.x), (days - 1) * 86400);
    X509_set_pubkey(c.x, c.key);
    if (group)
        X509_NAME_add_entry_by_txt(n, "O", MBSTRING_ASC, (const unsigned char *)group, -1, -1, 0);
    if (name)
        X509_NAME_add_entry_by_txt(n, "CN", MBSTRING_ASC, (const unsigned char *)name, -1, -1, 0);
    X509_set_issuer_name(c.x, issuer ? X509_get_subject_name(issuer->x) : n);
    if (issuer)
        cert_extend(c.x, NID_ext_key_usage, usage);
    else
        cert_extend(c.x, NID_basic_constraints, "critical,CA:TRUE");
    X509_sign(c.x, issuer ? issuer->key : c.key, EVP_sha256());
    cert_export(&c);
    return c;
}

static inline void cert_free(struct cert *c)
{
    X509_free(c->x);
    EVP_PKEY_free(c->key);
    OPENSSL_free((void *)(uintptr_t)c->der.p);
    free(c->pem);
    free(c->key_pem);
}
#endif
