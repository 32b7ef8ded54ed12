/* SPDX-License-Identifier: Apache-2.0
 *
 * front/tls_flags.c - --tls-min-version, --tls-cipher-suites, --tls-curve-preferences for GnuTLS
 */
#include "front/tls_flags.h"

#include <errno.h>

struct suite {
    const char *name;              /* Go's */
    const char *kx, *cipher, *mac; /* GnuTLS's; cipher NULL = GnuTLS has none */
};
static const struct suite suites[] = {
    {"TLS_AES_128_GCM_SHA256", NULL, "AES-128-GCM", "AEAD"},
    {"TLS_AES_256_GCM_SHA384", NULL, "AES-256-GCM", "AEAD"},
    {"TLS_CHACHA20_POLY1305_SHA256", NULL, "CHACHA20-POLY1305", "AEAD"},
    {"TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA", "ECDHE-ECDSA", "AES-128-CBC", "SHA1"},
    {"TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA", "ECDHE-ECDSA", "AES-256-CBC", "SHA1"},
    {"TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA", "ECDHE-RSA", "AES-128-CBC", "SHA1"},
    {"TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA", "ECDHE-RSA", "AES-256-CBC", "SHA1"},
    {"TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", "ECDHE-ECDSA", "AES-128-GCM", "AEAD"},
    {"TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", "ECDHE-ECDSA", "AES-256-GCM", "AEAD"},
    {"TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "ECDHE-RSA", "AES-128-GCM", "AEAD"},
    {"TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", "ECDHE-RSA", "AES-256-GCM", "AEAD"},
    {"TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-RSA", "CHACHA20-POLY1305", "AEAD"},
    {"TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-ECDSA", "CHACHA20-POLY1305", "AEAD"},
    {"TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305", "ECDHE-RSA", "CHACHA20-POLY1305", "AEAD"},
    {"TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305", "ECDHE-ECDSA", "CHACHA20-POLY1305", "AEAD"},
    /* insecure ones, as Go calls them */
    {"TLS_RSA_WITH_RC4_128_SHA", "RSA", NULL, NULL},
    {"TLS_RSA_WITH_3DES_EDE_CBC_SHA", "RSA", "3DES-CBC", "SHA1"},
    {"TLS_RSA_WITH_AES_128_CBC_SHA", "RSA", "AES-128-CBC", "SHA1"},
    {"TLS_RSA_WITH_AES_256_CBC_SHA", "RSA", "AES-256-CBC", "SHA1"},
    {"TLS_RSA_WITH_AES_128_CBC_SHA256", "RSA", "AES-128-CBC", "SHA256"},
    {"TLS_RSA_WITH_AES_128_GCM_SHA256", "RSA", "AES-128-GCM", "AEAD"},
    {"TLS_RSA_WITH_AES_256_GCM_SHA384", "RSA", "AES-256-GCM", "AEAD"},
    {"TLS_ECDHE_ECDSA_WITH_RC4_128_SHA", "ECDHE-ECDSA", NULL, NULL},
    {"TLS_ECDHE_RSA_WITH_RC4_128_SHA", "ECDHE-RSA", NULL, NULL},
    {"TLS_ECDHE_RSA_WITH_3DES_EDE_CBC_SHA", "ECDHE-RSA", "3DES-CBC", "SHA1"},
    {"TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256", "ECDHE-ECDSA", "AES-128-CBC", "SHA256"},
    {"TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256", "ECDHE-RSA", "AES-128-CBC", "SHA256"},
};

static int add_versions(const char *min, struct bh_buf *out, struct bh_err *err)
{
    static const char *const names[] = {"VersionTLS10", "VersionTLS11", "VersionTLS12",
                                        "VersionTLS13"};
    size_t from = 2;

    if (min && *min) {
        for (from = 0; from < BH_ARRAY_LEN(names) && !bh_streq(min, names[from]);)
            from++;
        if (from == BH_ARRAY_LEN(names))
            return bh_err_set(err, -EINVAL, "unknown tls version \"%s\"", min);
    }
    bh_buf_adds(out, ":-VERS-ALL");
    for (size_t v = BH_ARRAY_LEN(names); v-- > from;)
        bh_buf_addf(out, ":+VERS-TLS1.%zu", v);
    return 0;
}

static void add_part(struct bh_buf *out, const char *part)
{
    BH_CLEANUP(bh_freep) char *text = bh_asprintf(":+%s", part);
    size_t n = strlen(text);

    for (const char *p = bh_buf_str(out); (p = strstr(p, text)); p += n)
        if (p[n] == ':' || p[n] == '\0')
            return;
    bh_buf_adds(out, text);
}

/* By number of Go's tls.CurveID; the order stays. */
static int add_curves(const struct bh_opt_list *l, struct bh_buf *out, struct bh_err *err)
{
    static const struct {
        const char *number, *group;
    } known[] = {{"23", "SECP256R1"}, {"24", "SECP384R1"}, {"25", "SECP521R1"}, {"29", "X25519"}};

    bh_buf_adds(out, l->n ? ":-GROUP-ALL" : "");
    for (size_t i = 0; i < l->n; i++) {
        size_t k = 0;
        while (k < BH_ARRAY_LEN(known) && !bh_streq(known[k].number, l->v[i]))
            k++;
        if (k == BH_ARRAY_LEN(known))
            return bh_err_set(err, -ENOTSUP,
                              "curve %s is not available in GnuTLS; 23, 24, 25 and 29 are",
                              l->v[i]);
        bh_buf_addf(out, ":+GROUP-%s", known[k].group);
    }
    return 0;
}

int bh_tls_priorities(const char *min_version, const struct bh_opt_list *list,
                      const struct bh_opt_list *curves, struct bh_buf *out, struct bh_err *err)
{
    bool tls13 = false;

    bh_buf_adds(out, list->n ? "NORMAL:-CIPHER-ALL:-KX-ALL:-MAC-ALL" : "NORMAL:-RSA");
    int rc = add_versions(min_version, out, err);
    if (rc == 0)
        rc = add_curves(curves, out, err);
    for (size_t i = 0; rc == 0 && i < list->n; i++) {
        const struct suite *s = NULL;
        for (size_t k = 0; k < BH_ARRAY_LEN(suites) && !s; k++)
            s = bh_streq(suites[k].name, list->v[i]) ? &suites[k] : NULL;
        if (!s)
            return bh_err_set(err, -EINVAL, "Cipher suite %s not supported or doesn't exist",
                              list->v[i]);
        if (!s->cipher)
            return bh_err_set(err, -ENOTSUP, "Cipher suite %s is not available in GnuTLS",
                              list->v[i]);
        tls13 = tls13 || bh_streq(s->mac, "AEAD"); /* as all of TLS 1.3 */
        add_part(out, s->cipher);
        add_part(out, s->mac);
        /* without one it is only of TLS 1.3: leaves TLS 1.2 as it is with this cipher */
        add_part(out, s->kx ? s->kx : "ECDHE-ECDSA");
        if (!s->kx)
            add_part(out, "ECDHE-RSA");
    }
    if (rc == 0 && list->n && !tls13)
        bh_buf_adds(out, ":-VERS-TLS1.3");
    return rc;
}
