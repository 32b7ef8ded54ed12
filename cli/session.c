/* SPDX-License-Identifier: Apache-2.0
 *
 * cli/session.c - a command at work on clusters: its loop, its ends, how it is stopped
 */
#include "cli/cluster.h"

#define ASK_NS    UINT64_C(30000000000)
#define REPLY_MAX ((size_t)1 << 28)

static void on_stop(void *arg)
{
    ((struct bh_session *)arg)->stopping = true;
}

static void on_turn(uv_timer_t *t)
{
    (void)t; /* ends a turn of the loop */
}

void bh_session_begin(struct bh_session *s, unsigned every_ms, uv_timer_cb on_timer, void *arg)
{
    uv_loop_init(&s->loop);
    bh_progress_init(&s->progress);
    s->signals = bh_signals_new(&s->loop, on_stop, NULL, s);
    uv_timer_init(&s->loop, &s->timer);
    s->timer.data = arg;
    if (every_ms)
        uv_timer_start(&s->timer, on_timer ? on_timer : on_turn, every_ms, every_ms);
}

int bh_scheduler_get(uv_loop_t *loop, const char *dir, const char *path, int *ret_code,
                     struct bh_buf *body, struct bh_err *err)
{
    BH_CLEANUP(bh_freep) char *socket = bh_asprintf("%s/scheduler.http", dir);
    char server[] = "http://localhost";
    const struct bh_api_config cfg = {.server = server, .unix_socket = socket};
    const struct bh_api_options o = {.user_agent = "berth"};
    const struct bh_api_call call = {
        .method = "GET", .path = path, .timeout_ns = ASK_NS, .max_reply_bytes = REPLY_MAX};
    struct bh_api_client *client = NULL;
    int rc = bh_api_client_new(loop, &cfg, &o, &client, err);

    bh_buf_reset(body);
    if (rc >= 0)
        rc = bh_api_do(loop, client, &call, ret_code, body, err);
    bh_api_client_free(client);
    return rc < 0 ? bh_err_prefix(err, rc, "the scheduler's %s", path) : 0;
}

int bh_session_connect(struct bh_session *s, const char *user_agent, struct bh_err *err)
{
    int rc = bh_cluster_open(&s->from, &s->loop, s->from_spec, s->context, user_agent, err);

    if (rc == 0)
        rc = bh_cluster_reach(&s->from, "source", err);
    if (rc == 0 && s->to_spec)
        rc = bh_cluster_open(&s->to, &s->loop, s->to_spec, s->to_context, user_agent, err);
    if (rc == 0 && s->to_spec)
        rc = bh_cluster_reach(&s->to, "destination", err);
    return rc;
}

void bh_session_end(struct bh_session *s)
{
    bh_cluster_close(&s->from);
    bh_cluster_close(&s->to);
    bh_signals_close(s->signals);
    bh_loop_drain_close(&s->loop);
    bh_arena_fini(&s->arena);
}
