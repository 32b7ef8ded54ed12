/* SPDX-License-Identifier: Apache-2.0
 *
 * common/http/selfsigned.c - a certificate for a server that was given none
 */
#include "common/http/selfsigned.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <stdio.h>

#define VALID_SECONDS (10L * 365 * 24 * 3600)

static bool add_extension(X509 *cert, X509 *issuer, int nid, const char *value)
{
    X509V3_CTX ctx;
    X509V3_set_ctx(&ctx, issuer, cert, NULL, NULL, 0);
    X509_EXTENSION *e = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
    bool ok = e && X509_add_ext(cert, e, -1) == 1;
    X509_EXTENSION_free(e);
    return ok;
}

static bool set_serial(X509 *cert)
{
    unsigned char bytes[8];
    uint64_t serial;
    if (RAND_bytes(bytes, sizeof(bytes)) != 1)
        return false;
    memcpy(&serial, bytes, sizeof(serial));
    return ASN1_INTEGER_set_uint64(X509_get_serialNumber(cert), serial >> 1) == 1;
}

/* issuer NULL: self-signed. */
static X509 *make_cert(const char *name, EVP_PKEY *key, X509 *issuer, EVP_PKEY *issuer_key,
                       const char *names)
{
    X509 *c = X509_new();
    X509_NAME *subject = c ? X509_get_subject_name(c) : NULL;
    bool ca = !issuer;
    bool ok = c && X509_set_version(c, 2) == 1 && set_serial(c) &&
              X509_gmtime_adj(X509_getm_notBefore(c), -3600) &&
              X509_gmtime_adj(X509_getm_notAfter(c), VALID_SECONDS) &&
              X509_set_pubkey(c, key) == 1 &&
              X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, (const unsigned char *)name,
                                         -1, -1, 0) == 1 &&
              X509_set_issuer_name(c, ca ? subject : X509_get_subject_name(issuer)) == 1 &&
              add_extension(c, ca ? c : issuer, NID_basic_constraints,
                            ca ? "critical,CA:TRUE,pathlen:0" : "critical,CA:FALSE") &&
              add_extension(c, ca ? c : issuer, NID_key_usage,
                            ca ? "critical,keyCertSign,cRLSign" : "critical,digitalSignature") &&
              add_extension(c, ca ? c : issuer, NID_subject_key_identifier, "hash");
    if (ok && !ca)
        ok = add_extension(c, issuer, NID_ext_key_usage, "serverAuth") &&
             add_extension(c, issuer, NID_authority_key_identifier, "keyid") &&
             add_extension(c, issuer, NID_subject_alt_name, names);
    if (ok && X509_sign(c, ca ? key : issuer_key, EVP_sha256()) > 0)
        return c;
    X509_free(c);
    return NULL;
}

/* Appends what a PEM writer put into the BIO to *text. */
static bool take_pem(BIO *bio, char **text)
{
    char *p = NULL;
    long n = BIO_get_mem_data(bio, &p);
    if (n <= 0)
        return false;
    char *all = bh_asprintf("%s%.*s", *text ? *text : "", (int)n, p);
    free(*text);
    *text = all;
    return BIO_reset(bio) == 1;
}

int bh_selfsigned_make(const char *ca_name, const char *name, const char *alt_names,
                       struct bh_selfsigned *ret, struct bh_err *err)
{
    struct bh_selfsigned t = {0};
    EVP_PKEY *ca_key = EVP_EC_gen("P-256"), *key = EVP_EC_gen("P-256");
    X509 *ca = ca_key ? make_cert(ca_name, ca_key, NULL, NULL, NULL) : NULL;
    X509 *cert = ca && key ? make_cert(name, key, ca, ca_key, alt_names) : NULL;
    BIO *bio = BIO_new(BIO_s_mem());
    bool ok = cert && bio && PEM_write_bio_X509(bio, ca) == 1 && take_pem(bio, &t.ca_pem) &&
              PEM_write_bio_X509(bio, cert) == 1 && PEM_write_bio_X509(bio, ca) == 1 &&
              take_pem(bio, &t.cert_pem) &&
              PEM_write_bio_PrivateKey(bio, key, NULL, NULL, 0, NULL, NULL) == 1 &&
              take_pem(bio, &t.key_pem);
    unsigned long code = ERR_get_error();
    BIO_free(bio);
    X509_free(cert);
    X509_free(ca);
    EVP_PKEY_free(key);
    EVP_PKEY_free(ca_key);
    if (!ok) {
        bh_selfsigned_fini(&t);
        return bh_err_set(err, -EIO, "cannot make a certificate: %s", ERR_error_string(code, NULL));
    }
    *ret = t;
    return 0;
}

void bh_selfsigned_fini(struct bh_selfsigned *t)
{
    free(t->ca_pem);
    free(t->cert_pem);
    bh_wipe(t->key_pem);
    *t = (struct bh_selfsigned){0};
}
