/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/common/api/test_tls.c - whom the client trusts, who it says it is, and HTTP/2
 *
 * The TLS server (tls_server.h) answers with the common name of the client's certificate. HTTP/2
 * needs nginx and is skipped without it.
 */
#include "common/api/client.h"
#include "common/base/loop.h"
#include "tests/unit/common/api/tls_server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef TEST_LEAN /* test_tls_lean.c: the same over lanes */
#define TEST_LEAN false
#endif
#define TIMEOUT_NS (UINT64_C(120) * 1000000000)

/* ---- client ---------------------------------------------------------------------------------- */

struct session {
    uv_loop_t loop;
    struct bh_api_client *client;
    struct bh_buf body;
    struct bh_err err;
};

static void session_open(struct session *s, struct bh_api_config *cfg, uint16_t port)
{
    const struct bh_api_options o = {.qps = 0, .lean = TEST_LEAN};
    char url[64];
    snprintf(url, sizeof(url), "https://127.0.0.1:%u", port);
    *s = (struct session){.err = {""}};
    cfg->server = url;
    uv_loop_init(&s->loop);
    CU_ASSERT_EQUAL_FATAL(bh_api_client_new(&s->loop, cfg, &o, &s->client, &s->err), 0);
}

static int session_get(struct session *s)
{
    const struct bh_api_call call = {.method = "GET", .path = "/", .timeout_ns = TIMEOUT_NS};
    int code = 0;
    bh_buf_reset(&s->body);
    int rc = bh_api_do(&s->loop, s->client, &call, &code, &s->body, &s->err);
    return rc < 0 ? rc : code;
}

static void session_close(struct session *s)
{
    bh_api_client_free(s->client);
    bh_loop_drain_close(&s->loop);
    bh_buf_fini(&s->body);
}

static int get_once(struct bh_api_config *cfg, uint16_t port)
{
    struct session s;
    session_open(&s, cfg, port);
    int rc = session_get(&s);
    session_close(&s);
    return rc;
}

static char *write_file(const char *name, const char *text)
{
    char *path = bh_asprintf("%s/%s", bh_test_tmpdir(), name);
    CU_ASSERT_EQUAL_FATAL(bh_write_file(path, text, strlen(text), 0600), 0);
    return path;
}

/* ---- trust ----------------------------------------------------------------------------------- */

static void test_own_ca(void)
{
    struct cert ca = cert_make("ca", NULL, NULL), other = cert_make("other", NULL, NULL);
    struct cert leaf = cert_make("server", &ca, "IP:127.0.0.1");
    struct tls_server s;
    server_start(&s, &leaf, NULL);
    char *file = write_file("ca.pem", ca.pem);

    CU_ASSERT_EQUAL(get_once(&(struct bh_api_config){.ca_pem = ca.pem}, s.port), 200);
    CU_ASSERT_EQUAL(get_once(&(struct bh_api_config){.ca_file = file}, s.port), 200);
    CU_ASSERT_EQUAL(get_once(&(struct bh_api_config){.ca_pem = other.pem}, s.port), -EIO);
    CU_ASSERT_EQUAL(get_once(&(struct bh_api_config){.server = NULL}, s.port), -EIO);
    CU_ASSERT_EQUAL(get_once(&(struct bh_api_config){.insecure_skip_tls_verify = true}, s.port),
                    200);

    server_stop(&s);
    cert_free(&ca);
    cert_free(&other);
    cert_free(&leaf);
    free(file);
}

static void test_names(void)
{
    struct cert ca = cert_make("ca", NULL, NULL);
    struct cert leaf = cert_make("server", &ca, "DNS:kubernetes");
    struct tls_server s;
    server_start(&s, &leaf, NULL);
    CU_ASSERT_EQUAL(get_once(&(struct bh_api_config){.ca_pem = ca.pem}, s.port), -EIO);
    CU_ASSERT_EQUAL(
        get_once(&(struct bh_api_config){.ca_pem = ca.pem, .tls_server_name = (char *)"kubernetes"},
                 s.port),
        200);
    CU_ASSERT_EQUAL(
        get_once(&(struct bh_api_config){.ca_pem = ca.pem, .tls_server_name = (char *)"elsewhere"},
                 s.port),
        -EIO);
    server_stop(&s);
    cert_free(&ca);
    cert_free(&leaf);
}

static void test_old_tls(void)
{
    struct cert ca = cert_make("ca", NULL, NULL);
    struct cert leaf = cert_make("server", &ca, "IP:127.0.0.1");
    struct tls_server s;
    server_start(&s, &leaf, NULL);
    SSL_CTX_set_security_level(s.ctx, 0);
    SSL_CTX_set_min_proto_version(s.ctx, TLS1_VERSION);
    SSL_CTX_set_max_proto_version(s.ctx, TLS1_1_VERSION);
    CU_ASSERT_EQUAL(get_once(&(struct bh_api_config){.ca_pem = ca.pem}, s.port), -EIO);
    server_stop(&s);
    cert_free(&ca);
    cert_free(&leaf);
}

/* A certificate that only the system's folder of CAs vouches for must not do when the configuration
 * names a CA. In a child with its own mounts, where /etc/ssl/certs holds our second CA. */
static int capath_child(const char *dir, const struct cert *named, const struct cert *system_ca,
                        uint16_t port)
{
    char *bundle = bh_asprintf("%s/ca-certificates.crt", dir); /* libcurl wants it to be there */
    if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        return 77;
    char *path = bh_asprintf("%s/%08lx.0", dir, X509_subject_name_hash(system_ca->x));
    if (bh_write_file(bundle, named->pem, strlen(named->pem), 0644) ||
        bh_write_file(path, system_ca->pem, strlen(system_ca->pem), 0644) ||
        mount(dir, "/etc/ssl/certs", NULL, MS_BIND, NULL) < 0)
        return 77;
    if (get_once(&(struct bh_api_config){.server = NULL}, port) != 200)
        return 2; /* the folder is not used at all: this test would prove nothing */
    return get_once(&(struct bh_api_config){.ca_pem = named->pem}, port) == -EIO ? 0 : 1;
}

static void test_capath(void)
{
    struct cert named = cert_make("named", NULL, NULL), public_ca = cert_make("public", NULL, NULL);
    struct cert leaf = cert_make("server", &public_ca, "IP:127.0.0.1");
    struct tls_server s;
    int status = 0;
    char *dir = bh_asprintf("%s/certs", bh_test_tmpdir());
    CU_ASSERT_EQUAL(mkdir(dir, 0755), 0);
    server_start(&s, &leaf, NULL);
    pid_t pid = fork();
    if (pid == 0)
        _exit(capath_child(dir, &named, &public_ca, s.port));
    waitpid(pid, &status, 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
        bh_test_skip("needs the right to make a mount namespace");
    else
        CU_ASSERT_EQUAL(status, 0);
    server_stop(&s);
    free(dir);
    cert_free(&named);
    cert_free(&public_ca);
    cert_free(&leaf);
}

/* ---- client certificates --------------------------------------------------------------------- */

static void test_client_certificate(void)
{
    struct cert ca = cert_make("ca", NULL, NULL), leaf = cert_make("server", &ca, "IP:127.0.0.1");
    struct cert one = cert_make("one", &ca, NULL), two = cert_make("two", &ca, NULL);
    struct tls_server s;
    struct session c;
    server_start(&s, &leaf, &ca);
    char *cert_file = write_file("client.pem", one.pem),
         *key = write_file("client.key", one.key_pem);

    CU_ASSERT_EQUAL(get_once(&(struct bh_api_config){.ca_pem = ca.pem}, s.port), -EIO);
    struct bh_api_config by_data = {.ca_pem = ca.pem, .cert_pem = two.pem, .key_pem = two.key_pem};
    session_open(&c, &by_data, s.port);
    CU_ASSERT_EQUAL(session_get(&c), 200);
    CU_ASSERT_STRING_EQUAL(bh_buf_str(&c.body), "two");
    session_close(&c);

    struct bh_api_config by_file = {.ca_pem = ca.pem, .cert_file = cert_file, .key_file = key};
    session_open(&c, &by_file, s.port);
    CU_ASSERT_EQUAL(session_get(&c), 200);
    CU_ASSERT_STRING_EQUAL(bh_buf_str(&c.body), "one");
    free(write_file("client.pem", two.pem)); /* rotated: new connections take the new one */
    free(write_file("client.key", two.key_pem));
    bh_api_client_reload(c.client);
    CU_ASSERT_EQUAL(session_get(&c), 200);
    CU_ASSERT_STRING_EQUAL(bh_buf_str(&c.body), "two");
    free(write_file("client.pem", "half written")); /* keeps what works */
    bh_api_client_reload(c.client);
    CU_ASSERT_EQUAL(session_get(&c), 200);
    session_close(&c);

    server_stop(&s);
    cert_free(&ca);
    cert_free(&leaf);
    cert_free(&one);
    cert_free(&two);
    free(cert_file);
    free(key);
}

static void test_ca_rotation(void)
{
    struct cert old = cert_make("old", NULL, NULL), new = cert_make("new", NULL, NULL);
    struct cert leaf = cert_make("server", &new, "IP:127.0.0.1");
    struct tls_server s;
    struct session c;
    server_start(&s, &leaf, NULL);
    char *file = write_file("rotating.pem", old.pem);
    struct bh_api_config cfg = {.ca_file = file};
    session_open(&c, &cfg, s.port);
    CU_ASSERT_EQUAL(session_get(&c), -EIO);
    free(write_file("rotating.pem", new.pem));
    bh_api_client_reload(c.client);
    CU_ASSERT_EQUAL(session_get(&c), 200);
    session_close(&c);
    server_stop(&s);
    cert_free(&old);
    cert_free(&new);
    cert_free(&leaf);
    free(file);
}

static void test_bad_files(void)
{
    struct bh_api_client *c = NULL;
    struct bh_err err = {""};
    const struct bh_api_options o = {.qps = 0};
    uv_loop_t loop;
    uv_loop_init(&loop);
    char *file = write_file("nopem", "not a certificate");
    struct bh_api_config cfg = {.server = (char *)"https://127.0.0.1:1", .ca_file = file};
    CU_ASSERT_EQUAL(bh_api_client_new(&loop, &cfg, &o, &c, &err), -EINVAL);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.msg, "nopem"));
    cfg.ca_file = (char *)"/no/such/ca.pem";
    CU_ASSERT_EQUAL(bh_api_client_new(&loop, &cfg, &o, &c, &err), -ENOENT);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.msg, "/no/such/ca.pem"));
    CU_ASSERT_PTR_NULL(c);
    uv_loop_close(&loop);
    free(file);
}

/* ---- HTTP/2 through nginx -------------------------------------------------------------------- */

#define H2_REQUESTS 350

struct h2_run {
    unsigned done, bad, h2, connections;
    unsigned long seen[64];
};

static void on_h2_done(void *arg, const struct bh_api_reply *r)
{
    struct h2_run *h = arg;
    char protocol[16] = "";
    unsigned long connection = 0;
    h->done++;
    if (r->outcome != BH_API_OK || r->code != 200 ||
        sscanf(r->body.p, "%15s %lu", protocol, &connection) != 2) {
        h->bad++;
        return;
    }
    h->h2 += bh_streq(protocol, "h2");
    for (unsigned i = 0; i < h->connections; i++)
        if (h->seen[i] == connection)
            return;
    if (h->connections < BH_ARRAY_LEN(h->seen))
        h->seen[h->connections++] = connection;
}

static pid_t start_nginx(const struct cert *leaf, uint16_t port)
{
    extern char **environ;
    const char *dir = bh_test_tmpdir();
    pid_t pid;
    free(write_file("h2.pem", leaf->pem));
    free(write_file("h2.key", leaf->key_pem));
    char *conf = bh_asprintf(
        "daemon off; master_process off; pid %s/nginx.pid; error_log %s/nginx.log;\n"
        "events { worker_connections 512; }\n"
        "http { access_log off; client_body_temp_path %s/b; proxy_temp_path %s/p;\n"
        "fastcgi_temp_path %s/f; uwsgi_temp_path %s/u; scgi_temp_path %s/s;\n"
        "server { listen 127.0.0.1:%u ssl http2; ssl_certificate %s/h2.pem;\n"
        "ssl_certificate_key %s/h2.key; location / { return 200 \"$http2 $connection\"; } } }\n",
        dir, dir, dir, dir, dir, dir, dir, port, dir, dir);
    char *path = write_file("nginx.conf", conf);
    char *argv[] = {(char *)"nginx", (char *)"-p", (char *)(uintptr_t)dir,
                    (char *)"-c",    path,         NULL};
    int rc = posix_spawnp(&pid, "nginx", NULL, NULL, argv, environ);
    free(conf);
    free(path);
    return rc == 0 ? pid : -1;
}

static bool can_connect(uint16_t port)
{
    struct sockaddr_in sa = {
        .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons(port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool ok = connect(fd, (struct sockaddr *)&sa, sizeof(sa)) == 0;
    close(fd);
    return ok;
}

/* Without a body: this nginx answers before it has read one and then resets the stream, which no
 * API server does. */
static void h2_requests(const struct cert *ca, uint16_t port)
{
    struct bh_api_config cfg = {.ca_pem = ca->pem};
    struct session c;
    struct h2_run h = {0};
    session_open(&c, &cfg, port);
    for (int round = 0; round < 2; round++) {
        h = (struct h2_run){0};
        for (int i = 0; i < H2_REQUESTS; i++)
            bh_api_start(c.client, &(struct bh_api_call){.method = "GET",
                                                         .path = "/x",
                                                         .timeout_ns = TIMEOUT_NS,
                                                         .on_done = on_h2_done,
                                                         .arg = &h});
        while (h.done < H2_REQUESTS)
            uv_run(&c.loop, UV_RUN_ONCE);
        CU_ASSERT_EQUAL(h.bad, 0);
        CU_ASSERT_EQUAL(h.h2, H2_REQUESTS);
        CU_ASSERT(h.connections <= 4); /* a hundred streams each */
    }
    session_close(&c);
}

static void test_http2(void)
{
    struct cert ca = cert_make("ca", NULL, NULL);
    struct cert leaf = cert_make("server", &ca, "IP:127.0.0.1");
    uint16_t port;
    close(listen_local(&port));
    pid_t pid = start_nginx(&leaf, port);
    bool up = false;
    for (uint64_t until = bh_mono_ns() + TIMEOUT_NS; pid > 0 && !up && bh_mono_ns() < until;) {
        if (waitpid(pid, NULL, WNOHANG) == pid)
            pid = -1;
        up = can_connect(port);
        poll(NULL, 0, up ? 0 : 10);
    }
    if (pid < 0)
        bh_test_skip("nginx is not installed or does not start");
    else
        h2_requests(&ca, port);
    if (pid > 0) {
        kill(pid, SIGTERM);
        waitpid(pid, NULL, 0);
    }
    cert_free(&ca);
    cert_free(&leaf);
}

int main(int argc, char **argv)
{
    static const struct bh_test tests[] = {
        {"the CA that is named is trusted, and no other", test_own_ca},
        {"the name must fit; tls-server-name decides which", test_names},
        {"TLS 1.1 is refused", test_old_tls},
        {"a CA of the system's folder does not do when one is named", test_capath},
        {"client certificates are shown, and rotate", test_client_certificate},
        {"a rotated CA file is taken without a restart", test_ca_rotation},
        {"unusable files are named at start", test_bad_files},
        {"HTTP/2: hundreds of requests over a few connections", test_http2},
    };
    signal(SIGPIPE, SIG_IGN); /* as every daemon does */
    return bh_test_main("common/api/tls", tests, BH_ARRAY_LEN(tests), argc, argv);
}
