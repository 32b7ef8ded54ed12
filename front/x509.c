/* SPDX-License-Identifier: Apache-2.0
 *
 * front/x509.c - client certificates: whose they are, and whether an authority vouches for them
 */
#include "front/x509.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#define UID_OID "1.3.6.1.4.1.57683.2"

struct bh_ca {
    X509_STORE *store;
};

static const char *last_error(void)
{
    static char text[160];

    ERR_error_string_n(ERR_peek_last_error(), text, sizeof(text));
    ERR_clear_error();
    return text;
}

int bh_ca_new(const char *pem, size_t n, struct bh_ca **ret, struct bh_err *err)
{
    BIO *bio = BIO_new_mem_buf(pem, (int)BH_MIN(n, (size_t)INT32_MAX));
    X509_STORE *store = X509_STORE_new();
    X509 *c;
    unsigned count = 0;

    if (!bio || !store)
        abort(); /* out of memory, as in base.h */
    while ((c = PEM_read_bio_X509(bio, NULL, NULL, NULL))) {
        (void)X509_STORE_add_cert(store, c);
        X509_free(c);
        count++;
    }
    ERR_clear_error(); /* the end of the text is one */
    BIO_free(bio);
    if (!count) {
        X509_STORE_free(store);
        return bh_err_set(err, -EINVAL,
                          "data does not contain any valid RSA or ECDSA certificates");
    }
    *ret = bh_calloc(1, sizeof(**ret));
    (*ret)->store = store;
    return 0;
}

void bh_ca_free(struct bh_ca *ca)
{
    if (!ca)
        return;
    X509_STORE_free(ca->store);
    free(ca);
}

static STACK_OF(X509) * parse_chain(const struct bh_str *chain, size_t n)
{
    STACK_OF(X509) *list = sk_X509_new_null();

    for (size_t i = 0; i < n; i++) {
        const unsigned char *p = (const unsigned char *)chain[i].p;
        X509 *c = d2i_X509(NULL, &p, (long)chain[i].n);
        if (c)
            sk_X509_push(list, c);
        else if (i == 0)
            break;
    }
    ERR_clear_error();
    return list;
}

/* The entry's text in UTF-8; NULL when it holds a NUL, as only a forger's would. Caller frees. */
static char *entry_text(const X509_NAME_ENTRY *e)
{
    unsigned char *utf8 = NULL;
    int n = ASN1_STRING_to_UTF8(&utf8, X509_NAME_ENTRY_get_data(e));
    char *text = n >= 0 && !memchr(utf8, 0, (size_t)n) ? bh_strndup((char *)utf8, (size_t)n) : NULL;

    OPENSSL_free(utf8);
    return text;
}

static struct bh_user *user_of(const X509 *cert)
{
    const X509_NAME *name = X509_get_subject_name(cert);
    int at = -1, last = -1;

    while ((at = X509_NAME_get_index_by_NID(name, NID_commonName, at)) >= 0)
        last = at; /* Go keeps the last one */
    BH_CLEANUP(bh_freep) char *cn = last < 0 ? NULL : entry_text(X509_NAME_get_entry(name, last));
    if (!cn || !*cn)
        return NULL;
    ASN1_OBJECT *oid = OBJ_txt2obj(UID_OID, 1);
    at = X509_NAME_get_index_by_OBJ(name, oid, -1);
    ASN1_OBJECT_free(oid);
    BH_CLEANUP(bh_freep) char *uid = at < 0 ? NULL : entry_text(X509_NAME_get_entry(name, at));
    struct bh_user *u = bh_user_new(cn, uid);
    for (at = -1; (at = X509_NAME_get_index_by_NID(name, NID_organizationName, at)) >= 0;) {
        BH_CLEANUP(bh_freep) char *o = entry_text(X509_NAME_get_entry(name, at));
        if (o && *o)
            bh_user_add_group(u, o);
    }
    return u;
}

static int verify(const struct bh_ca *ca, X509 *leaf, STACK_OF(X509) * chain, struct bh_err *err)
{
    X509_STORE_CTX *ctx = X509_STORE_CTX_new();
    int rc = 0;

    if (!ctx || X509_STORE_CTX_init(ctx, ca->store, leaf, chain) != 1)
        abort();
    X509_STORE_CTX_set_flags(ctx, X509_V_FLAG_PARTIAL_CHAIN);
    X509_STORE_CTX_set_purpose(ctx, X509_PURPOSE_SSL_CLIENT);
    if (X509_verify_cert(ctx) != 1) {
        BIGNUM *serial = ASN1_INTEGER_to_BN(X509_get0_serialNumber(leaf), NULL);
        char *number = serial ? BN_bn2dec(serial) : NULL;
        rc =
            bh_err_set(err, -EPERM, "verifying certificate SN=%s failed: %s", number ? number : "?",
                       X509_verify_cert_error_string(X509_STORE_CTX_get_error(ctx)));
        OPENSSL_free(number);
        BN_free(serial);
    }
    X509_STORE_CTX_free(ctx);
    ERR_clear_error();
    return rc;
}

int bh_ca_verify(const struct bh_ca *ca, const struct bh_str *chain, size_t n,
                 struct bh_user **ret_user, struct bh_err *err)
{
    STACK_OF(X509) *list = parse_chain(chain, n);
    X509 *leaf = sk_X509_num(list) > 0 ? sk_X509_value(list, 0) : NULL;
    int rc = leaf ? verify(ca, leaf, list, err)
                  : bh_err_set(err, -EPERM, "the client's certificate cannot be read");

    if (rc == 0) {
        struct bh_user *u = user_of(leaf);
        if (u)
            *ret_user = u;
        else
            rc = bh_err_set(err, -EPERM, "the client's certificate has no common name");
    }
    sk_X509_pop_free(list, X509_free);
    return rc;
}

int bh_pair_check(const char *cert_pem, const char *key_pem, struct bh_err *err)
{
    BIO *c = BIO_new_mem_buf(cert_pem, -1), *k = BIO_new_mem_buf(key_pem, -1);
    X509 *cert = PEM_read_bio_X509(c, NULL, NULL, NULL);
    EVP_PKEY *key = cert ? PEM_read_bio_PrivateKey(k, NULL, NULL, NULL) : NULL;
    int rc = 0;

    if (!cert)
        rc = bh_err_set(err, -EINVAL, "tls: failed to find any PEM data in certificate input");
    else if (!key)
        rc = bh_err_set(err, -EINVAL, "tls: failed to parse private key: %s", last_error());
    else if (X509_check_private_key(cert, key) != 1)
        rc = bh_err_set(err, -EINVAL, "tls: private key does not match public key");
    ERR_clear_error();
    EVP_PKEY_free(key);
    X509_free(cert);
    BIO_free(k);
    BIO_free(c);
    return rc;
}
