/* SPDX-License-Identifier: Apache-2.0
 *
 * bench/scale/plugins_extender.c - NodeNumber as an HTTP extender, for `berth bench plugins`
 *
 * A process of its own on this host: POST /prioritize with names of nodes (nodeCacheCapable), one
 * score for each. As lean as an extender can be, so what is measured is the way there and back.
 */
#include "bench/scale/plugins.h"

#include <errno.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/data/json.h"
#include "common/http/server.h"

#define BODY_MAX ((size_t)64 << 20)

static void on_request(struct bh_http_req *r, void *arg)
{
    struct bh_arena *a = arg;
    struct bh_str body = bh_http_body(r);
    struct bh_json *args = NULL;
    struct bh_buf out BH_CLEANUP(bh_buf_fini) = {0};

    bh_arena_reset(a);
    if (bh_json_parse(a, body.p, body.n, BH_JSON_STRICT, &args, NULL) < 0) {
        bh_http_reply(r, 400, "text/plain", "", 0);
        return;
    }
    bh_buf_addc(&out, '[');
    bh_json_each(node, bh_json_get(args, "NodeNames")) {
        const struct bh_str s = node->s;
        const char last = s.n ? s.p[s.n - 1] : 0;
        bh_buf_addf(&out, "%s{\"Host\":\"%.*s\",\"Score\":%d}", out.n > 1 ? "," : "", (int)s.n, s.p,
                    bh_is_digit(last) ? last - '0' : 0);
    }
    bh_buf_addc(&out, ']');
    bh_http_reply(r, 200, "application/json", out.p, out.n);
}

/* The child: tells its port, serves until it is killed. */
static int serve(int out)
{
    const struct bh_http_options o = {.address = "127.0.0.1", .max_body_bytes = BODY_MAX};
    struct bh_arena a = {0};
    struct bh_http_server *s = NULL;
    struct bh_err err = {0};
    uv_loop_t loop;

    if (uv_loop_init(&loop) < 0 || bh_http_server_new(&loop, &o, on_request, &a, &s, &err) < 0) {
        fprintf(stderr, "%s\n", err.msg);
        return BH_EXIT_FAIL;
    }
    const uint16_t port = bh_http_server_port(s);
    if (!bh_scale_write(out, &port, sizeof port))
        return BH_EXIT_FAIL;
    uv_run(&loop, UV_RUN_DEFAULT);
    return BH_EXIT_OK;
}

int bh_bench_extender_start(struct bh_bench_extender *x, struct bh_err *err)
{
    int fd[2];

    if (pipe(fd) < 0)
        return bh_err_set(err, -errno, "pipe: %s", strerror(errno));
    fflush(stdout);
    x->pid = fork();
    if (x->pid == 0) {
        close(fd[0]);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        _exit(serve(fd[1]));
    }
    int rc = x->pid < 0 ? bh_err_set(err, -errno, "fork: %s", strerror(errno)) : 0;
    close(fd[1]);
    if (rc == 0 && !bh_scale_read(fd[0], &x->port, sizeof x->port)) {
        bh_bench_extender_stop(x);
        rc = bh_err_set(err, -EIO, "the extender did not start");
    }
    close(fd[0]);
    return rc;
}

void bh_bench_extender_stop(struct bh_bench_extender *x)
{
    if (x->pid <= 0)
        return;
    kill(x->pid, SIGKILL); /* it has nothing to clean up */
    while (waitpid(x->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    x->pid = 0;
}
