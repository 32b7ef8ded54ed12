/* SPDX-License-Identifier: Apache-2.0
 *
 * common/api/do.c - one request, waited for
 *
 * Runs in:    the thread of the loop, which it runs; never from inside one of the loop's callbacks.
 * Fails with: -ETIMEDOUT, -ECANCELED, -EIO (no reply); any HTTP code is success here.
 */
#include "common/api/client.h"

#include <errno.h>

struct waiting {
    const struct bh_api_call *call;
    struct bh_buf *body;
    struct bh_err *err;
    uv_loop_t *loop;
    int rc, code;
    bool done;
};

static void on_done(void *arg, const struct bh_api_reply *r)
{
    static const int rcs[] = {[BH_API_OK] = 0,
                              [BH_API_TRANSPORT] = -EIO,
                              [BH_API_TIMEOUT] = -ETIMEDOUT,
                              [BH_API_CANCELED] = -ECANCELED};
    struct waiting *w = arg;
    w->done = true;
    uv_stop(w->loop); /* the reply may come from a timer: do not sleep after it */
    w->rc = rcs[r->outcome];
    w->code = r->code;
    if (w->rc < 0)
        bh_err_set(w->err, w->rc, "%s %s: %s", w->call->method, w->call->path, r->error);
    else if (w->body)
        bh_buf_add(w->body, r->body.p, r->body.n);
}

int bh_api_do(uv_loop_t *loop, struct bh_api_client *c, const struct bh_api_call *call,
              int *ret_code, struct bh_buf *ret_body, struct bh_err *err)
{
    struct waiting w = {.call = call, .body = ret_body, .err = err, .loop = loop};
    struct bh_api_call mine = *call;
    mine.on_done = on_done;
    mine.arg = &w;
    if (!bh_api_start(c, &mine))
        return bh_err_set(err, -ECANCELED, "%s %s: the client is closing", call->method,
                          call->path);
    while (!w.done)
        uv_run(loop, UV_RUN_ONCE);
    if (w.rc == 0)
        *ret_code = w.code;
    return w.rc;
}
