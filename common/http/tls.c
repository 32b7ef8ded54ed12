/* SPDX-License-Identifier: Apache-2.0
 *
 * common/http/tls.c - what a TLS server of ours shows and accepts
 *
 * A set of certificates lives as long as some session uses it.
 */
#include "common/http/tls.h"

#include <errno.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <stdio.h>
#include <sys/socket.h>

#define CHAIN_MAX      16u
#define NAME_MAX_BYTES 256u
/* RSA key exchange has no forward secrecy; Go's server does not offer it either. */
#define PRIORITIES "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2:-RSA"

struct pair {
    gnutls_certificate_credentials_t gnutls;
    char **names; /* lower case */
    size_t n_names;
};
struct creds { /* all pairs of one time */
    unsigned refs;
    struct pair *pairs;
    size_t n;
};
struct bh_tls {
    struct creds *now;
    gnutls_priority_t priorities;
    bool ask_client;
};

static void creds_unref(struct creds *c)
{
    if (!c || --c->refs)
        return;
    for (size_t i = 0; i < c->n; i++) {
        gnutls_certificate_free_credentials(c->pairs[i].gnutls);
        for (size_t k = 0; k < c->pairs[i].n_names; k++)
            free(c->pairs[i].names[k]);
        free(c->pairs[i].names);
    }
    free(c->pairs);
    free(c);
}

static gnutls_datum_t datum(const char *text)
{
    return (gnutls_datum_t){(unsigned char *)(uintptr_t)text, (unsigned)strlen(text)};
}

static void add_name(struct pair *p, const char *name)
{
    char *lower = bh_strdup(name);

    bh_lower(lower);
    p->names = bh_reallocarray(p->names, p->n_names + 1, sizeof(*p->names));
    p->names[p->n_names++] = lower;
}

/* The names that the leaf carries. */
static void add_own_names(struct pair *p, const gnutls_datum_t *pem)
{
    gnutls_x509_crt_t list[CHAIN_MAX];
    unsigned n = CHAIN_MAX;

    if (gnutls_x509_crt_list_import(list, &n, pem, GNUTLS_X509_FMT_PEM, 0) < 0)
        return;
    for (unsigned i = 0;; i++) {
        char name[NAME_MAX_BYTES];
        size_t size = sizeof(name);
        int rc = gnutls_x509_crt_get_subject_alt_name(list[0], i, name, &size, NULL);
        if (rc == GNUTLS_E_REQUESTED_DATA_NOT_AVAILABLE)
            break;
        if (rc == GNUTLS_SAN_DNSNAME && size < sizeof(name)) {
            name[size] = '\0';
            add_name(p, name);
        }
    }
    for (unsigned i = 0; i < n; i++)
        gnutls_x509_crt_deinit(list[i]);
}

static int add_pair(struct creds *c, const struct bh_tls_pair *from)
{
    const gnutls_datum_t cert = datum(from->cert_pem), key = datum(from->key_pem);
    struct pair *p = &c->pairs[c->n];
    int rc = gnutls_certificate_allocate_credentials(&p->gnutls);

    if (rc < 0)
        return rc;
    c->n++;
    rc = gnutls_certificate_set_x509_key_mem(p->gnutls, &cert, &key, GNUTLS_X509_FMT_PEM);
    for (size_t i = 0; rc >= 0 && i < from->n_names; i++)
        add_name(p, from->names[i]);
    if (rc >= 0 && !from->n_names)
        add_own_names(p, &cert);
    return rc;
}

static int creds_new(const struct bh_tls_pair *pairs, size_t n, struct creds **ret,
                     struct bh_err *err)
{
    struct creds *c = bh_calloc(1, sizeof(*c));
    int rc = 0;

    c->refs = 1;
    c->pairs = bh_calloc(n, sizeof(*c->pairs));
    for (size_t i = 0; i < n && rc >= 0; i++)
        rc = add_pair(c, &pairs[i]);
    if (rc < 0) {
        creds_unref(c);
        return bh_err_set(err, -EINVAL, "%s", gnutls_strerror(rc));
    }
    *ret = c;
    return 0;
}

static const struct pair *pair_named(const struct creds *c, const char *name)
{
    for (size_t i = 0; i < c->n; i++)
        for (size_t k = 0; k < c->pairs[i].n_names; k++)
            if (bh_streq(c->pairs[i].names[k], name))
                return &c->pairs[i];
    return NULL;
}

/* As Go: the name itself, then with one label after the other made a star. */
static const struct pair *choose_pair(const struct creds *c, const char *name)
{
    const struct pair *p = pair_named(c, name);
    char pattern[2 * NAME_MAX_BYTES] = "";

    for (const char *rest = name; !p && (rest = strchr(rest, '.')); rest++) {
        size_t n = strlen(pattern);
        snprintf(pattern + n, sizeof(pattern) - n, n ? ".*" : "*");
        char whole[3 * NAME_MAX_BYTES];
        snprintf(whole, sizeof(whole), "%s%s", pattern, rest);
        p = pair_named(c, whole);
    }
    return p ? p : &c->pairs[0];
}

/* The client has named the server it wants. */
static int on_client_hello(gnutls_session_t s)
{
    const struct creds *c = gnutls_session_get_ptr(s);
    char name[NAME_MAX_BYTES];
    size_t size = sizeof(name);
    unsigned type = 0;

    if (gnutls_server_name_get(s, name, &size, &type, 0) < 0 || type != GNUTLS_NAME_DNS)
        return 0;
    bh_lower(name);
    return gnutls_credentials_set(s, GNUTLS_CRD_CERTIFICATE, choose_pair(c, name)->gnutls);
}

int bh_tls_new(const char *priorities, bool ask_client, const struct bh_tls_pair *pairs, size_t n,
               struct bh_tls **ret, struct bh_err *err)
{
    struct creds *c;
    gnutls_priority_t parsed;
    const char *bad;

    bh_assert(n > 0);
    if (gnutls_priority_init(&parsed, priorities ? priorities : PRIORITIES, &bad) < 0)
        return bh_err_set(err, -EINVAL, "TLS priorities near \"%s\" make no sense", bad);
    int rc = creds_new(pairs, n, &c, err);
    if (rc < 0) {
        gnutls_priority_deinit(parsed);
        return rc;
    }
    struct bh_tls *t = bh_calloc(1, sizeof(*t));
    t->now = c;
    t->priorities = parsed;
    t->ask_client = ask_client;
    *ret = t;
    return 0;
}

int bh_tls_replace(struct bh_tls *t, const struct bh_tls_pair *pairs, size_t n, struct bh_err *err)
{
    struct creds *c;
    int rc = creds_new(pairs, n, &c, err);

    if (rc < 0)
        return rc;
    creds_unref(t->now);
    t->now = c;
    return 0;
}

void bh_tls_free(struct bh_tls *t)
{
    if (!t)
        return;
    creds_unref(t->now);
    gnutls_priority_deinit(t->priorities);
    free(t);
}

gnutls_session_t bh_tls_session_new(struct bh_tls *t, int fd)
{
    gnutls_session_t s;

    if (gnutls_init(&s, GNUTLS_SERVER | GNUTLS_NONBLOCK | GNUTLS_NO_SIGNAL) < 0)
        return NULL;
    t->now->refs++;
    gnutls_session_set_ptr(s, t->now);
    gnutls_priority_set(s, t->priorities);
    gnutls_credentials_set(s, GNUTLS_CRD_CERTIFICATE, t->now->pairs[0].gnutls);
    gnutls_handshake_set_post_client_hello_function(s, on_client_hello);
    gnutls_handshake_set_timeout(s, GNUTLS_INDEFINITE_TIMEOUT); /* gate.c has its own */
    if (t->ask_client) {
        gnutls_certificate_server_set_request(s, GNUTLS_CERT_REQUEST);
        gnutls_certificate_send_x509_rdn_sequence(s, 1); /* 1 = do not */
    }
    gnutls_transport_set_int(s, fd);
    return s;
}

void bh_tls_session_free(gnutls_session_t s)
{
    struct creds *c = gnutls_session_get_ptr(s);

    gnutls_deinit(s);
    creds_unref(c);
}

int bh_tls_handshake(gnutls_session_t s)
{
    int rc = gnutls_handshake(s);

    if (rc < 0 && gnutls_error_is_fatal(rc)) {
        (void)gnutls_alert_send_appropriate(s, rc);
        return -1;
    }
    return rc == 0;
}

/* What the last call on s, or on the plain socket, means. */
static bool interrupted(gnutls_session_t s, ssize_t n)
{
    return s ? n == GNUTLS_E_INTERRUPTED : n < 0 && errno == EINTR;
}

static ssize_t outcome(gnutls_session_t s, ssize_t n)
{
    if (n >= 0)
        return n;
    return (s ? n == GNUTLS_E_AGAIN : errno == EAGAIN) ? -EAGAIN : -EIO;
}

ssize_t bh_tls_read(gnutls_session_t s, int fd, void *buf, size_t size)
{
    ssize_t n;

    do
        n = s ? gnutls_record_recv(s, buf, size) : recv(fd, buf, size, 0);
    while (interrupted(s, n));
    return outcome(s, n);
}

ssize_t bh_tls_write(gnutls_session_t s, int fd, const void *p, size_t n, bool *flush)
{
    ssize_t sent;

    do
        sent = !s       ? send(fd, p, n, MSG_NOSIGNAL)
               : *flush ? gnutls_record_send(s, NULL, 0)
                        : gnutls_record_send(s, p, n);
    while (interrupted(s, sent));
    sent = outcome(s, sent);
    *flush = s && sent == -EAGAIN;
    return sent;
}
