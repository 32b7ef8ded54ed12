/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/front/test_certs.c - whom a client's certificate names, and what this server shows
 */
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "front/cert.h"
#include "front/x509.h"
#include "tests/unit/front/certs.h"

static char dir[64];
static struct bh_err err;

static void begin(void)
{
    snprintf(dir, sizeof(dir), "/tmp/berth-certs-XXXXXX");
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(dir));
}

static void end(void)
{
    char command[100];

    snprintf(command, sizeof(command), "rm -rf %s", dir);
    CU_ASSERT_EQUAL(system(command), 0);
}

/* ---- clients --------------------------------------------------------------------------------- */

static int verify(const struct cert *ca, const struct bh_str *chain, size_t n, struct bh_user **u)
{
    struct bh_ca *authority = NULL;

    CU_ASSERT_EQUAL_FATAL(bh_ca_new(ca->pem, strlen(ca->pem), &authority, &err), 0);
    int rc = bh_ca_verify(authority, chain, n, u, &err);
    bh_ca_free(authority);
    return rc;
}

static void refused(const struct cert *ca, struct cert c, const char *why)
{
    struct bh_user *u = NULL;

    CU_ASSERT_EQUAL(verify(ca, &c.der, 1, &u), -EPERM);
    CU_ASSERT_PTR_NULL(u);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.msg, why));
    cert_free(&c);
}

static void test_whom_a_certificate_names(void)
{
    struct cert ca = cert_make("ca", NULL, NULL, NULL, 3);
    struct cert other = cert_make("other", NULL, NULL, NULL, 3);
    struct cert alice = cert_make("alice", "dev", &ca, "clientAuth", 3);
    struct bh_user *u = NULL;
    const struct bh_str junk = {"junk", 4}, chain[] = {alice.der, junk};

    CU_ASSERT_EQUAL_FATAL(verify(&ca, chain, 2, &u), 0);
    CU_ASSERT_STRING_EQUAL(u->name, "alice");
    CU_ASSERT(bh_user_in(u, "dev"));
    CU_ASSERT_EQUAL(u->n_groups, 1);
    bh_user_unref(u);
    u = NULL;
    CU_ASSERT_EQUAL_FATAL(verify(&alice, chain, 1, &u), 0); /* any certificate is an anchor */
    bh_user_unref(u);
    u = NULL;
    CU_ASSERT_EQUAL(verify(&other, chain, 1, &u), -EPERM);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.msg, "verifying certificate SN=7 failed: "));
    CU_ASSERT_EQUAL(verify(&ca, &junk, 1, &u), -EPERM);
    const struct bh_str behind[] = {junk, alice.der}; /* not who shows it */
    CU_ASSERT_EQUAL(verify(&ca, behind, 2, &u), -EPERM);
    CU_ASSERT_EQUAL(verify(&ca, NULL, 0, &u), -EPERM);
    CU_ASSERT_STRING_EQUAL(err.msg, "the client's certificate cannot be read");
    refused(&ca, cert_make("alice", NULL, &ca, "serverAuth", 3), "purpose");
    refused(&ca, cert_make("alice", NULL, &ca, "clientAuth", 0), "expired");
    refused(&ca, cert_make(NULL, "dev", &ca, "clientAuth", 3), "no common name");
    cert_free(&ca), cert_free(&other), cert_free(&alice);
}

static void test_uids_and_forged_names(void)
{
    struct cert ca = cert_make("ca", NULL, NULL, NULL, 3);
    struct cert c = cert_make("first", "g", &ca, "clientAuth", 3);
    X509_NAME *n = X509_get_subject_name(c.x);
    ASN1_OBJECT *uid = OBJ_txt2obj("1.3.6.1.4.1.57683.2", 1);
    struct bh_user *u = NULL;

    X509_NAME_add_entry_by_OBJ(n, uid, MBSTRING_ASC, (const unsigned char *)"42", -1, -1, 0);
    X509_NAME_add_entry_by_txt(n, "O", MBSTRING_ASC, (const unsigned char *)"h\0i", 3, -1, 0);
    X509_NAME_add_entry_by_txt(n, "CN", MBSTRING_ASC, (const unsigned char *)"last", -1, -1, 0);
    ASN1_OBJECT_free(uid);
    X509_sign(c.x, ca.key, EVP_sha256());
    OPENSSL_free((void *)(uintptr_t)c.der.p);
    free(c.pem), free(c.key_pem);
    cert_export(&c);
    CU_ASSERT_EQUAL_FATAL(verify(&ca, &c.der, 1, &u), 0);
    CU_ASSERT_STRING_EQUAL(u->name, "last");
    CU_ASSERT_STRING_EQUAL(u->uid, "42");
    CU_ASSERT_EQUAL(u->n_groups, 1); /* a NUL in a name is a forger's */
    bh_user_unref(u);
    cert_free(&ca), cert_free(&c);
}

/* ---- what is shown --------------------------------------------------------------------------- */

static void test_pairs_that_do_not_match(void)
{
    struct cert a = cert_make("a", NULL, NULL, NULL, 3), b = cert_make("b", NULL, NULL, NULL, 3);

    CU_ASSERT_EQUAL(bh_pair_check(a.pem, a.key_pem, &err), 0);
    CU_ASSERT_EQUAL(bh_pair_check(a.pem, b.key_pem, &err), -EINVAL);
    CU_ASSERT_STRING_EQUAL(err.msg, "tls: private key does not match public key");
    CU_ASSERT_EQUAL(bh_pair_check("x", b.key_pem, &err), -EINVAL);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.msg, "failed to find any PEM data"));
    CU_ASSERT_EQUAL(bh_pair_check(a.pem, "x", &err), -EINVAL);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.msg, "failed to parse private key"));
    cert_free(&a), cert_free(&b);
}

static const char *write_file(const char *name, const char *text, char path[static 128])
{
    snprintf(path, 128, "%s/%s", dir, name);
    CU_ASSERT_EQUAL(bh_write_file(path, text, strlen(text), 0600), 0);
    return path;
}

static void test_files_are_read_again(void)
{
    struct cert a = cert_make("a", NULL, NULL, NULL, 3), b = cert_make("b", NULL, NULL, NULL, 3);
    char crt[128], key[128], sni[400];
    struct bh_certs *c = NULL;

    begin();
    struct bh_serving_flags f = {.tls_cert_file = write_file("crt", a.pem, crt),
                                 .tls_private_key_file = write_file("key", a.key_pem, key)};
    snprintf(sni, sizeof(sni), "%s,%s:x.example,*.x.example", crt, key);
    const char *one = sni;
    f.tls_sni_cert_key = (struct bh_opt_list){&one, 1};
    CU_ASSERT_EQUAL_FATAL(bh_certs_new(&f, &c, &err), 0);
    CU_ASSERT_PTR_NOT_NULL(bh_certs_tls(c));
    CU_ASSERT_EQUAL(bh_certs_refresh(c, false, &err), 0);
    CU_ASSERT_EQUAL(bh_certs_refresh(c, true, &err), 1);
    bh_certs_free(c);
    snprintf(sni, sizeof(sni), "%s,%s", crt, key); /* for the names that stand in it */
    CU_ASSERT_EQUAL_FATAL(bh_certs_new(&f, &c, &err), 0);
    write_file("crt", b.pem, crt); /* the key is another one's still */
    CU_ASSERT_EQUAL(bh_certs_refresh(c, false, &err), -EINVAL);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.msg, "failed to load \""));
    CU_ASSERT_EQUAL(bh_certs_refresh(c, false, &err), 0); /* said once */
    write_file("key", b.key_pem, key);
    CU_ASSERT_EQUAL(bh_certs_refresh(c, false, &err), 1);
    unlink(key);
    CU_ASSERT_EQUAL(bh_certs_refresh(c, false, &err), -ENOENT);
    bh_certs_free(c);
    bh_certs_free(NULL);
    end();
    cert_free(&a), cert_free(&b);
}

static void test_bad_flags(void)
{
    static const char *const bad[] = {"x", ",k", "c,", "a:b,c", "c,:n"};
    struct bh_serving_flags f = {.tls_cert_file = "/nonexistent"};
    struct bh_certs *c = NULL;

    CU_ASSERT_EQUAL(bh_certs_new(&f, &c, &err), -EINVAL);
    f.tls_private_key_file = "/nonexistent";
    CU_ASSERT_EQUAL(bh_certs_new(&f, &c, &err), -ENOENT);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.msg, "could not read \"/nonexistent\""));
    f = (struct bh_serving_flags){.bind_address = "192.0.2.1"};
    for (size_t i = 0; i < BH_ARRAY_LEN(bad); i++) {
        const char *one = bad[i];
        f.tls_sni_cert_key = (struct bh_opt_list){&one, 1};
        CU_ASSERT_EQUAL(bh_certs_new(&f, &c, &err), -EINVAL);
        CU_ASSERT_PTR_NOT_NULL(strstr(err.msg, "--tls-sni-cert-key"));
    }
}

static void test_one_is_made_and_kept(void)
{
    struct bh_serving_flags f = {.bind_address = "127.0.0.1"};
    char sub[100], path[128], *before = NULL, *after = NULL;
    struct bh_certs *c = NULL;
    struct stat st;
    size_t n;

    begin();
    snprintf(sub, sizeof(sub), "%s/certs", dir);
    f.cert_dir = sub;
    CU_ASSERT_EQUAL_FATAL(bh_certs_new(&f, &c, &err), 0);
    bh_certs_free(c);
    snprintf(path, sizeof(path), "%s/kube-scheduler.key", sub);
    CU_ASSERT_EQUAL(stat(path, &st), 0);
    CU_ASSERT_EQUAL(st.st_mode & 0777, 0600);
    CU_ASSERT_EQUAL(bh_read_file(path, 1 << 20, &before, &n), 0);
    CU_ASSERT_EQUAL_FATAL(bh_certs_new(&f, &c, &err), 0);
    bh_certs_free(c);
    CU_ASSERT_EQUAL(bh_read_file(path, 1 << 20, &after, &n), 0);
    CU_ASSERT_STRING_EQUAL(before, after);
    f.cert_dir = "/proc/nonexistent";
    CU_ASSERT(bh_certs_new(&f, &c, &err) < 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.msg, "--cert-dir /proc/nonexistent: "));
    free(before), free(after);
    end();
}

BH_TESTS("front/certs", {"whom a certificate names", test_whom_a_certificate_names},
         {"uids and forged names", test_uids_and_forged_names},
         {"pairs that do not match", test_pairs_that_do_not_match},
         {"files are read again", test_files_are_read_again}, {"bad flags", test_bad_flags},
         {"one is made and kept", test_one_is_made_and_kept})
