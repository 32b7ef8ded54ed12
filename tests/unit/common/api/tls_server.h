/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/common/api/tls_server.h - a TLS server in a thread that says who its client is
 *
 * Answers one request a connection; the body is server_says with the common name of the client's
 * certificate ("nobody" without one) in place of %s. Or does what server_talks says.
 */
#ifndef BH_TEST_TLS_SERVER_H
#define BH_TEST_TLS_SERVER_H

#include "tests/unit/common/api/certs.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

static const char *server_says = "%s";

struct tls_server {
    pthread_t thread;
    int fd;
    uint16_t port;
    SSL_CTX *ctx;
};

static int listen_local(uint16_t *ret_port)
{
    struct sockaddr_in sa = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof(sa);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CU_ASSERT_EQUAL_FATAL(bind(fd, (struct sockaddr *)&sa, n), 0);
    CU_ASSERT_EQUAL_FATAL(listen(fd, 16), 0);
    getsockname(fd, (struct sockaddr *)&sa, &n);
    *ret_port = ntohs(sa.sin_port);
    return fd;
}

/* Head and body: a close with something unread would cut the answer. */
static void read_request(SSL *ssl)
{
    char request[8192];
    size_t n = 0, end = sizeof(request);
    while (n < sizeof(request) - 1 && n < end && SSL_read(ssl, request + n, 1) == 1) {
        request[++n] = 0;
        if (end == sizeof(request) && strstr(request, "\r\n\r\n")) {
            const char *length = strcasestr(request, "\r\nContent-Length:");
            end = n + (length ? strtoul(length + 17, NULL, 10) : 0);
        }
    }
}

static void answer(SSL *ssl)
{
    char body[256], reply[512], cn[64] = "nobody";
    read_request(ssl);
    X509 *peer = SSL_get1_peer_certificate(ssl);
    if (peer)
        X509_NAME_get_text_by_NID(X509_get_subject_name(peer), NID_commonName, cn, sizeof(cn));
    X509_free(peer);
    snprintf(body, sizeof(body), server_says, cn);
    int len = snprintf(reply, sizeof(reply),
                       "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %zu\r\n\r\n%s",
                       strlen(body), body);
    SSL_write(ssl, reply, len);
    SSL_shutdown(ssl);
}

static void (*server_talks)(SSL *ssl) = answer;

static void *serve(void *arg)
{
    struct tls_server *s = arg;
    int fd;
    while ((fd = accept(s->fd, NULL, NULL)) >= 0) {
        SSL *ssl = SSL_new(s->ctx);
        SSL_set_fd(ssl, fd);
        if (SSL_accept(ssl) == 1)
            server_talks(ssl);
        SSL_free(ssl);
        close(fd);
    }
    return NULL;
}

/* client_ca NULL: no client certificate is asked for. */
static void server_start(struct tls_server *s, const struct cert *c, const struct cert *client_ca)
{
    s->ctx = SSL_CTX_new(TLS_server_method());
    SSL_CTX_set_session_id_context(s->ctx, (const unsigned char *)"t", 1);
    SSL_CTX_use_certificate(s->ctx, c->x);
    SSL_CTX_use_PrivateKey(s->ctx, c->key);
    if (client_ca) {
        X509_STORE_add_cert(SSL_CTX_get_cert_store(s->ctx), client_ca->x);
        SSL_CTX_set_verify(s->ctx, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    }
    s->fd = listen_local(&s->port);
    pthread_create(&s->thread, NULL, serve, s);
}

static void server_stop(struct tls_server *s)
{
    shutdown(s->fd, SHUT_RDWR);
    pthread_join(s->thread, NULL);
    close(s->fd);
    SSL_CTX_free(s->ctx);
}
#endif
