/* SPDX-License-Identifier: Apache-2.0
 *
 * common/http/tls.h - what a TLS server of ours shows and accepts (GnuTLS)
 *
 * Certificates can be replaced while the server runs: connections that exist keep theirs, new ones
 * take the new ones. Several pairs are told apart by the server name a client asks for; the first
 * one is for all other names. Clients may be asked for a certificate; it is not checked here
 * (bh_http_client_certs), and no list of acceptable CAs is sent, so any client sends what it has.
 * Threads: the loop's.
 */
#ifndef BH_HTTP_TLS_H
#define BH_HTTP_TLS_H

#include "common/base/base.h"

struct gnutls_session_int;
struct bh_tls;
struct bh_tls_pair {
    const char *cert_pem, *key_pem; /* leaf first; contents, not paths */
    const char *const *names;       /* server names; none = those of the certificate */
    size_t n_names;
};
/* priorities: GnuTLS's syntax, NULL = its defaults with TLS 1.2 and up. 0, -EINVAL. */
int bh_tls_new(const char *priorities, bool ask_client, const struct bh_tls_pair *pairs, size_t n,
               struct bh_tls **ret, struct bh_err *err);
/* For connections from now on; nothing changes on failure. 0, -EINVAL. */
int bh_tls_replace(struct bh_tls *t, const struct bh_tls_pair *pairs, size_t n, struct bh_err *err);
void bh_tls_free(struct bh_tls *t); /* after the server; NULL allowed */
/* For carriers (carrier.h). A session of one connection, NULL: it could not be made. */
struct gnutls_session_int *bh_tls_session_new(struct bh_tls *t, int fd);
void bh_tls_session_free(struct gnutls_session_int *s);
/* One step. 1: done; 0: more has to come or go; -1: it failed, which the client was told. */
int bh_tls_handshake(struct gnutls_session_int *s);
/* Of a socket that does not block, or of its session (NULL: plain). Bytes; 0, at reading: the end;
 * -EAGAIN: not now; -EIO: the connection is over. *flush, false at first: the session holds a
 * record that did not go out whole, so it is to be called again even when there is nothing more. */
ssize_t bh_tls_read(struct gnutls_session_int *s, int fd, void *buf, size_t size);
ssize_t bh_tls_write(struct gnutls_session_int *s, int fd, const void *p, size_t n, bool *flush);
#endif
