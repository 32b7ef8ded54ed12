/* SPDX-License-Identifier: Apache-2.0
 *
 * common/api/exec.c - credentials that a command prints
 *
 * Owns:       one run of the command at a time: process, pipe, timer. It is spawned, never forked:
 *             the process has threads and sockets (ZeroMQ's) that no copy of it may touch, and the
 *             command gets three descriptors, whatever is open here.
 * Invariants: requests wait while a command runs and all end when it does; a command is not started
 *             again within PAUSE_NS, whatever it printed, so that neither a broken one nor one that
 *             prints expired tokens is run for every request.
 * Runs in:    the loop. The command gets no standard input; its standard error is ours.
 * Upstream:   client-go/plugin/pkg/client/auth/exec/exec.go; differences: a hanging command is
 *             killed after BH_API_EXEC_TIMEOUT_NS.
 */
#include "common/api/api_int.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/log.h"
#include "common/k8s/quantity.h"

#define PAUSE_NS         (UINT64_C(1) * 1000000000)
#define OUTPUT_MAX_BYTES ((size_t)4 << 20)

extern char **environ;

static void forget_text(struct bh_api_exec *x)
{
    if (x->text.p)
        explicit_bzero(x->text.p, x->text.n);
    bh_buf_reset(&x->text);
}

/* ---- what it is told ------------------------------------------------------------------------- */

static void member(struct bh_buf *b, const char *key, const char *value)
{
    if (value)
        bh_buf_add_json(b, ",%s:%s", key, value);
}

static void add_cluster(struct bh_buf *b, const struct bh_api_client *c)
{
    const struct bh_api_config *cfg = c->cfg;

    bh_buf_add_json(b, "\"cluster\":{\"server\":%s", cfg->server);
    member(b, "tls-server-name", cfg->tls_server_name);
    if (cfg->insecure_skip_tls_verify)
        bh_buf_adds(b, ",\"insecure-skip-tls-verify\":true");
    if (c->creds->ca) {
        size_t n = strlen(c->creds->ca);
        char *out = bh_malloc(n / 3 * 4 + 8);
        EVP_EncodeBlock((unsigned char *)out, (const unsigned char *)c->creds->ca, (int)n);
        member(b, "certificate-authority-data", out);
        free(out);
    }
    member(b, "proxy-url", cfg->proxy_url);
    if (cfg->exec->cluster_config)
        bh_buf_addf(b, ",\"config\":%s", cfg->exec->cluster_config);
    bh_buf_adds(b, "},");
}

/* Ours, then the configured ones (the last of a name wins: the earlier is left out), then the
 * information. NOTIFY_SOCKET is the service manager's and ours alone. */
static char **environment(const struct bh_api_client *c)
{
    char **extra = c->cfg->exec->env;
    size_t n = bh_texts_count(environ), n_extra = bh_texts_count(extra), at = 0;
    char **env = bh_calloc(n + n_extra + 2, sizeof(*env));

    for (size_t i = 0; i < n; i++) {
        size_t name = strcspn(environ[i], "=") + 1;
        bool skip = strncmp(environ[i], "NOTIFY_SOCKET=", 14) == 0 ||
                    strncmp(environ[i], "KUBERNETES_EXEC_INFO=", 21) == 0;
        for (size_t k = 0; k < n_extra && !skip; k++)
            skip = strncmp(environ[i], extra[k], name) == 0;
        if (!skip)
            env[at++] = bh_strdup(environ[i]);
    }
    for (size_t k = 0; k < n_extra; k++)
        env[at++] = bh_strdup(extra[k]);
    struct bh_buf b = {0};
    bh_buf_addf(&b,
                "KUBERNETES_EXEC_INFO={\"kind\":\"ExecCredential\",\"apiVersion\":\"%s\","
                "\"spec\":{",
                c->cfg->exec->api_version);
    if (c->cfg->exec->provide_cluster_info)
        add_cluster(&b, c);
    bh_buf_adds(&b, "\"interactive\":false}}");
    env[at] = bh_buf_take(&b);
    return env;
}

/* ---- what it prints -------------------------------------------------------------------------- */

static int take_status(struct bh_api_client *c, const struct bh_json *status, struct bh_err *err)
{
    const char *token = bh_json_get_str(status, "token");
    const char *cert = bh_json_get_str(status, "clientCertificateData");
    const char *key = bh_json_get_str(status, "clientKeyData");
    const char *expires = bh_json_get_str(status, "expirationTimestamp");
    int64_t expires_s = INT64_MAX;
    bool has_token = token && *token, has_cert = cert && *cert, has_key = key && *key;

    if (!status || status->type != BH_JSON_OBJECT)
        return bh_err_set(err, -EPROTO, "exec plugin didn't return a status field");
    if (!has_token && !has_cert && !has_key)
        return bh_err_set(err, -EPROTO, "exec plugin didn't return a token or cert/key pair");
    if (has_cert != has_key)
        return bh_err_set(err, -EPROTO, "exec plugin returned only certificate or key, not both");
    if (expires && bh_time_parse(expires, strlen(expires), &expires_s, NULL) < 0)
        return bh_err_set(err, -EPROTO, "exec plugin: expirationTimestamp is not an RFC 3339 time");
    if (has_token && strpbrk(token, "\r\n"))
        return bh_err_set(err, -EPROTO, "exec plugin returned a token with a line end in it");

    bh_wipe(c->token);
    c->token = has_token ? bh_strdup(token) : NULL;
    bh_api_headers_flush(c);
    if (has_cert) {
        struct bh_api_creds *k = bh_calloc(1, sizeof(*k));
        k->refs = 1;
        k->ca = c->creds->ca ? bh_strdup(c->creds->ca) : NULL;
        k->cert = bh_strdup(cert);
        k->key = bh_strdup(key);
        if (bh_api_creds_equal(k, c->creds))
            bh_api_creds_unref(k);
        else
            bh_api_use(c, k);
    }
    c->exec->expires_s = expires_s;
    return 0;
}

static int take_output(struct bh_api_exec *x, struct bh_err *err)
{
    const struct bh_exec_config *cfg = x->c->cfg->exec;
    struct bh_arena a;
    struct bh_json *tree = NULL;

    if (x->text.n > OUTPUT_MAX_BYTES)
        return bh_err_set(err, -EPROTO, "exec: executable %s printed more than %zu bytes",
                          cfg->command, OUTPUT_MAX_BYTES);
    if (x->signal)
        return bh_err_set(err, -EPROTO, "exec: executable %s was killed by signal %d", cfg->command,
                          x->signal);
    if (x->status)
        return bh_err_set(err, -EPROTO, "exec: executable %s failed with exit code %d",
                          cfg->command, x->status);
    bh_arena_init(&a, 0);
    int rc = bh_json_parse(&a, bh_buf_str(&x->text), x->text.n, 0, &tree, err);
    if (rc < 0) {
        rc = bh_err_prefix(err, rc, "decoding stdout");
    } else {
        const char *version = bh_json_get_str(tree, "apiVersion");
        const char *kind = bh_json_get_str(tree, "kind");
        if (!version || !kind || !bh_streq(kind, "ExecCredential"))
            rc = bh_err_set(err, -EPROTO, "decoding stdout: not an ExecCredential");
        else if (!bh_streq(version, cfg->api_version))
            rc = bh_err_set(err, -EPROTO,
                            "exec plugin is configured to use API version %s, plugin returned "
                            "version %s",
                            cfg->api_version, version);
        else
            rc = take_status(x->c, bh_json_get(tree, "status"), err);
    }
    bh_arena_fini(&a);
    return rc;
}

/* ---- one run --------------------------------------------------------------------------------- */

static void finish(struct bh_api_exec *x)
{
    struct bh_err err = {0};

    x->running = false;
    x->ready = false;
    x->failure.msg[0] = 0;
    if (x->c->closing) {
        forget_text(x);
        return;
    }
    x->ready = take_output(x, &err) == 0;
    bh_api_metrics_exec(x->c, x, x->ready);
    if (!x->ready) {
        bh_err_set(&x->failure, -EACCES, "getting credentials: %.400s", err.msg);
        bh_log_warn("Cannot get credentials", bh_kv_s("err", x->failure.msg));
    }
    forget_text(x);
    bh_api_unhold(x->c);
}

static void on_closed(uv_handle_t *h)
{
    struct bh_api_exec *x = h->data;
    struct bh_api_client *c = x->c;

    if (--x->open == 0)
        finish(x);
    bh_api_handle_closed(c);
}

static void close_run(struct bh_api_exec *x)
{
    uv_handle_t *handles[] = {(uv_handle_t *)&x->ended, (uv_handle_t *)&x->out,
                              (uv_handle_t *)&x->timer};

    for (size_t i = 0; i < BH_ARRAY_LEN(handles); i++)
        if (!uv_is_closing(handles[i]))
            uv_close(handles[i], on_closed);
}

static void on_child_ended(uv_signal_t *h, int signum)
{
    struct bh_api_exec *x = h->data;
    int status;

    (void)signum;
    if (x->exited || waitpid(x->pid, &status, WNOHANG) != x->pid)
        return;
    x->status = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
    x->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    x->exited = true;
    if (uv_is_closing((uv_handle_t *)&x->out))
        close_run(x);
}

static void on_alloc(uv_handle_t *h, size_t hint, uv_buf_t *buf)
{
    struct bh_api_exec *x = h->data;

    (void)hint;
    bh_buf_reserve(&x->text, 4096);
    *buf = uv_buf_init(x->text.p + x->text.n, 4096);
}

static void on_read(uv_stream_t *s, ssize_t n, const uv_buf_t *buf)
{
    struct bh_api_exec *x = s->data;

    (void)buf;
    if (n > 0) {
        x->text.n += (size_t)n;
        x->text.p[x->text.n] = 0;
    }
    if (n >= 0 && x->text.n <= OUTPUT_MAX_BYTES)
        return;
    uv_close((uv_handle_t *)s, on_closed); /* its end, or more than is ever needed */
    if (x->exited)
        close_run(x);
}

static void on_timeout(uv_timer_t *t)
{
    struct bh_api_exec *x = t->data;

    if (x->exited) { /* a grandchild may hold the pipe open for ever */
        close_run(x);
        return;
    }
    (void)kill(-x->pid, SIGKILL); /* its process group */
    if (!uv_is_closing((uv_handle_t *)&x->out))
        uv_close((uv_handle_t *)&x->out, on_closed);
}

/* In a session of its own, with nothing on standard input, out on standard output, and no other
 * descriptor but standard error. */
static int spawn(const char *file, char **argv, char **env, int out, pid_t *ret)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attr;
    sigset_t all, none;

    sigfillset(&all);
    sigemptyset(&none);
    posix_spawnattr_init(&attr);
    posix_spawnattr_setsigdefault(&attr, &all);
    posix_spawnattr_setsigmask(&attr, &none);
    posix_spawnattr_setflags(&attr,
                             POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&files, out, STDOUT_FILENO);
    posix_spawn_file_actions_addclosefrom_np(&files, STDERR_FILENO + 1);
    int rc = -posix_spawnp(ret, file, &files, &attr, argv, env);
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attr);
    return rc;
}

static int run_command(struct bh_api_client *c)
{
    struct bh_api_exec *x = c->exec;
    const struct bh_exec_config *cfg = c->cfg->exec;
    int out[2];
    size_t n = bh_texts_count(cfg->args);

    if (pipe2(out, O_CLOEXEC) < 0)
        return -errno;
    char **argv = bh_calloc(n + 2, sizeof(*argv));
    char **env = environment(c);
    argv[0] = cfg->command;
    memcpy(argv + 1, cfg->args, n * sizeof(*argv));
    int rc = spawn(cfg->command, argv, env, out[1], &x->pid);
    free(argv);
    bh_texts_free(env);
    close(out[1]);
    if (rc < 0)
        close(out[0]);
    else
        (void)uv_pipe_open(&x->out, out[0]);
    return rc;
}

static void start(struct bh_api_client *c)
{
    struct bh_api_exec *x = c->exec;
    const struct bh_exec_config *cfg = c->cfg->exec;

    x->running = true;
    x->exited = false;
    x->status = x->signal = 0;
    x->last_run_ns = bh_mono_ns();
    uv_pipe_init(c->loop, &x->out, 0);
    uv_timer_init(c->loop, &x->timer);
    uv_signal_init(c->loop, &x->ended);
    x->open = 3;
    c->open_handles += 3;
    x->ended.data = x->out.data = x->timer.data = x;
    uv_signal_start(&x->ended, on_child_ended, SIGCHLD); /* before there is a child to end */
    int rc = run_command(c);
    if (rc < 0) { /* told when the handles are closed, like any other end */
        x->exited = true;
        x->status = 127;
        bh_log_warn("Cannot run the credential command", bh_kv_s("command", cfg->command),
                    bh_kv_s("err", strerror(-rc)),
                    bh_kv_s("hint", cfg->install_hint ? cfg->install_hint : ""));
        close_run(x);
        return;
    }
    uv_timer_start(&x->timer, on_timeout, BH_API_EXEC_TIMEOUT_NS / 1000000, 0);
    uv_read_start((uv_stream_t *)&x->out, on_alloc, on_read);
}

bool bh_api_exec_ready(struct bh_api_client *c)
{
    struct bh_api_exec *x = c->exec;

    if (!x)
        return true;
    if (x->running)
        return false;
    if (x->ready && bh_wall_ns() / 1000000000 < x->expires_s)
        return true;
    if (x->last_run_ns && bh_mono_ns() - x->last_run_ns < PAUSE_NS)
        return !x->failure.msg[0]; /* just ran: what it gave is what there is */
    x->failure.msg[0] = 0;
    start(c);
    return false;
}

void bh_api_exec_expire(struct bh_api_client *c)
{
    if (c->exec)
        c->exec->ready = false;
}

/* The loop may be closed next: nothing of the run waits for it any more. */
void bh_api_exec_close(struct bh_api_client *c)
{
    struct bh_api_exec *x = c->exec;

    if (!x || !x->running)
        return;
    on_timeout(&x->timer);
    while (!x->exited && waitpid(x->pid, NULL, 0) < 0 && errno == EINTR)
        ; /* it was killed */
    x->exited = true;
    close_run(x);
}
