/* SPDX-License-Identifier: Apache-2.0
 *
 * front/cert.c - the certificates this server shows
 */
#include "front/cert.h"

#include <arpa/inet.h>
#include <errno.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/base/log.h"
#include "common/http/selfsigned.h"
#include "front/tls_flags.h"
#include "front/x509.h"

#define FILE_BYTES ((size_t)4 << 20)
#define NAMES_MAX  64u

struct pair {
    char *cert_file, *key_file;
    char *names_text;
    const char *names[NAMES_MAX];
    size_t n_names;
    char *cert_pem, *key_pem;
};
struct bh_certs {
    struct pair *pairs;
    size_t n;
    struct bh_tls *tls;
    uint64_t seen; /* what the files looked like when they were read */
};

static struct pair *add_pair(struct bh_certs *c)
{
    c->pairs = bh_reallocarray(c->pairs, c->n + 1, sizeof(*c->pairs));
    c->pairs[c->n] = (struct pair){.n_names = 0};
    return &c->pairs[c->n++];
}

/* "CERT,KEY" or "CERT,KEY:NAME,NAME". */
static int parse_sni(struct bh_certs *c, const char *text, struct bh_err *err)
{
    const char *comma = strchr(text, ','), *colon = strchr(text, ':');
    char *rest, *name;

    if (!comma || comma == text || !comma[1] || (colon && colon < comma) || colon == comma + 1)
        return bh_err_set(err, -EINVAL,
                          "invalid value \"%s\" for --tls-sni-cert-key: expected comma separated "
                          "certificate and key file paths",
                          text);
    struct pair *p = add_pair(c);
    p->cert_file = bh_strndup(text, (size_t)(comma - text));
    p->key_file = colon ? bh_strndup(comma + 1, (size_t)(colon - comma - 1)) : bh_strdup(comma + 1);
    p->names_text = bh_strdup(colon ? colon + 1 : "");
    for (name = strtok_r(p->names_text, ",", &rest); name && p->n_names < NAMES_MAX;
         name = strtok_r(NULL, ",", &rest))
        p->names[p->n_names++] = name;
    return 0;
}

static int read_one(const char *path, char **ret, struct bh_err *err)
{
    char *text = NULL;
    size_t n = 0;
    int rc = bh_read_file(path, FILE_BYTES, &text, &n);

    if (rc < 0)
        return bh_err_set(err, rc, "could not read \"%s\": %s", path, strerror(-rc));
    bh_wipe(*ret);
    *ret = text;
    return 0;
}

static int read_pair(struct pair *p, struct bh_err *err)
{
    char *cert = NULL, *key = NULL;
    int rc = read_one(p->cert_file, &cert, err);

    if (rc == 0)
        rc = read_one(p->key_file, &key, err);
    if (rc == 0)
        rc = bh_pair_check(cert, key, err);
    if (rc < 0) {
        bh_wipe(cert);
        bh_wipe(key);
        return bh_err_prefix(err, rc, "failed to load \"%s\" and \"%s\"", p->cert_file,
                             p->key_file);
    }
    bh_wipe(p->cert_pem);
    bh_wipe(p->key_pem);
    p->cert_pem = cert;
    p->key_pem = key;
    return 0;
}

/* Enough to see that a file is another one, or was written. */
static uint64_t look_at_files(const struct bh_certs *c)
{
    uint64_t seen = 0;

    for (size_t i = 0; i < 2 * c->n; i++) {
        const char *path = i % 2 ? c->pairs[i / 2].key_file : c->pairs[i / 2].cert_file;
        struct stat st = {0};
        if (!path || stat(path, &st) < 0)
            continue;
        const uint64_t id[] = {i,
                               st.st_dev,
                               st.st_ino,
                               (uint64_t)st.st_size,
                               (uint64_t)st.st_mtim.tv_sec,
                               (uint64_t)st.st_mtim.tv_nsec};
        seen = bh_hash(id, sizeof(id), seen + 1);
    }
    return seen;
}

/* ---- made here ------------------------------------------------------------------------------- */

static int make_pair(struct pair *p, const char *host, struct bh_err *err)
{
    struct bh_selfsigned t = {0};
    char name[128], ca[128], alt[256];
    long long now = (long long)(bh_wall_ns() / 1000000000);
    unsigned char ip[16];
    bool is_ip = inet_pton(AF_INET, host, ip) == 1 || inet_pton(AF_INET6, host, ip) == 1;

    snprintf(name, sizeof(name), "%.64s@%lld", host, now);
    snprintf(ca, sizeof(ca), "%.64s-ca@%lld", host, now);
    snprintf(alt, sizeof(alt), "%s:%.128s,DNS:localhost,IP:127.0.0.1,IP:::1", is_ip ? "IP" : "DNS",
             host);
    int rc = bh_selfsigned_make(ca, name, alt, &t, err);
    if (rc < 0)
        return rc;
    p->cert_pem = bh_take_ptr(t.cert_pem);
    p->key_pem = bh_take_ptr(t.key_pem);
    bh_selfsigned_fini(&t);
    return 0;
}

/* The address that is listened on, when it is one; else this machine's name. */
static void host_name(const struct bh_serving_flags *f, char out[static 128])
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-";
    static const char *const any[] = {"", "0.0.0.0", "::", "127.0.0.1", "::1"};
    bool bound = f->bind_address != NULL;

    for (size_t i = 0; bound && i < BH_ARRAY_LEN(any); i++)
        bound = !bh_streq(f->bind_address, any[i]);
    if (bound) {
        snprintf(out, 128, "%.100s", f->bind_address);
        return;
    }
    memset(out, 0, 128);
    if (gethostname(out, 64) < 0 || !*out || out[strspn(out, letters)])
        snprintf(out, 128, "localhost");
}

static int make_default(struct bh_certs *c, const struct bh_serving_flags *f, struct bh_err *err)
{
    struct pair *p = add_pair(c);
    bool keep = f->cert_dir && *f->cert_dir;
    char host[128];

    host_name(f, host);
    if (keep) {
        p->cert_file = bh_asprintf("%s/kube-scheduler.crt", f->cert_dir);
        p->key_file = bh_asprintf("%s/kube-scheduler.key", f->cert_dir);
        if (access(p->cert_file, R_OK) == 0 && access(p->key_file, R_OK) == 0)
            return 0;
    }
    int rc = make_pair(p, host, err);
    if (rc == 0 && keep) {
        if (mkdir(f->cert_dir, 0755) < 0 && errno != EEXIST)
            return bh_err_set(err, -errno, "--cert-dir %s: %s", f->cert_dir, strerror(errno));
        rc = bh_write_file(p->cert_file, p->cert_pem, strlen(p->cert_pem), 0644);
        if (rc == 0)
            rc = bh_write_file(p->key_file, p->key_pem, strlen(p->key_pem), 0600);
        if (rc < 0)
            return bh_err_set(err, rc, "--cert-dir %s: %s", f->cert_dir, strerror(-rc));
        bh_log_info("Generated self-signed cert", bh_kv_s("cert", p->cert_file),
                    bh_kv_s("key", p->key_file));
    } else if (rc == 0) {
        bh_log_info("Generated self-signed cert in-memory", bh_kv_s("host", host));
    }
    return rc;
}

/* ---- life ------------------------------------------------------------------------------------ */

static int read_all(struct bh_certs *c, struct bh_err *err)
{
    int rc = 0;

    for (size_t i = 0; i < c->n && rc == 0; i++)
        if (c->pairs[i].cert_file)
            rc = read_pair(&c->pairs[i], err);
    return rc;
}

static int use(struct bh_certs *c, const char *priorities, struct bh_err *err)
{
    struct bh_tls_pair *list = bh_calloc(c->n, sizeof(*list));

    for (size_t i = 0; i < c->n; i++)
        list[i] = (struct bh_tls_pair){c->pairs[i].cert_pem, c->pairs[i].key_pem, c->pairs[i].names,
                                       c->pairs[i].n_names};
    int rc = c->tls ? bh_tls_replace(c->tls, list, c->n, err)
                    : bh_tls_new(priorities, true, list, c->n, &c->tls, err);
    free(list);
    return rc;
}

static int read_flags(struct bh_certs *c, const struct bh_serving_flags *f, struct bh_err *err)
{
    bool cert = f->tls_cert_file && *f->tls_cert_file;
    bool key = f->tls_private_key_file && *f->tls_private_key_file;
    int rc = 0;

    if (cert != key)
        return bh_err_set(err, -EINVAL,
                          "--tls-cert-file and --tls-private-key-file must be given together");
    if (cert) {
        struct pair *p = add_pair(c);
        p->cert_file = bh_strdup(f->tls_cert_file);
        p->key_file = bh_strdup(f->tls_private_key_file);
    } else {
        rc = make_default(c, f, err);
    }
    for (size_t i = 0; rc == 0 && i < f->tls_sni_cert_key.n; i++)
        rc = parse_sni(c, f->tls_sni_cert_key.v[i], err);
    return rc;
}

int bh_certs_new(const struct bh_serving_flags *f, struct bh_certs **ret, struct bh_err *err)
{
    struct bh_certs *c = bh_calloc(1, sizeof(*c));
    struct bh_buf priorities BH_CLEANUP(bh_buf_fini) = {0};
    int rc = bh_tls_priorities(f->tls_min_version, &f->tls_cipher_suites, &f->tls_curve_preferences,
                               &priorities, err);

    if (rc == 0)
        rc = read_flags(c, f, err);
    c->seen = look_at_files(c);
    if (rc == 0)
        rc = read_all(c, err);
    if (rc == 0)
        rc = use(c, bh_buf_str(&priorities), err);
    if (rc < 0) {
        bh_certs_free(c);
        return rc;
    }
    *ret = c;
    return 0;
}

struct bh_tls *bh_certs_tls(struct bh_certs *c)
{
    return c->tls;
}

int bh_certs_refresh(struct bh_certs *c, bool force, struct bh_err *err)
{
    uint64_t seen = look_at_files(c);

    if (seen == c->seen && !force)
        return 0;
    int rc = read_all(c, err);
    if (rc == 0)
        rc = use(c, NULL, err);
    c->seen = seen; /* a broken pair is looked at again when it changes */
    return rc < 0 ? rc : 1;
}

void bh_certs_free(struct bh_certs *c)
{
    if (!c)
        return;
    bh_tls_free(c->tls);
    for (size_t i = 0; i < c->n; i++) {
        free(c->pairs[i].cert_file);
        free(c->pairs[i].key_file);
        free(c->pairs[i].names_text);
        bh_wipe(c->pairs[i].cert_pem);
        bh_wipe(c->pairs[i].key_pem);
    }
    free(c->pairs);
    free(c);
}
