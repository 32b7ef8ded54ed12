/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/console/replay.c - /berth/v1/replay: upload, watch, steer and stop a replay
 */
#include "simulator/console/parts.h"

#include <errno.h>
#include <math.h>

#include "simulator/replay/engine.h"

#define SPEED_MAX 1e6
#define STEP_MAX  1000000

static int replay_rows(struct bh_sim *s, uint64_t *cursor, struct bh_buf *out)
{
    const struct bh_player *r = s->console->replay;
    BH_CLEANUP(bh_arena_fini) struct bh_arena a = {0};

    if (*cursor == bh_player_version(r))
        return 0;
    bh_console_change(out, *cursor ? "MODIFIED" : "ADDED", bh_player_state(r, &a));
    *cursor = bh_player_version(r);
    return 0;
}

void bh_console_replay_start(struct bh_console *c)
{
    c->replay = bh_player_new(c->sim);
    bh_console_publish(c->sim, "replay", replay_rows);
}

void bh_console_replay_stop(struct bh_console *c)
{
    bh_player_free(c->replay);
    c->replay = NULL;
}

static struct bh_player *replay_of(struct bh_console_req *c)
{
    return c->r->sim->console->replay;
}

static void answer(struct bh_console_req *c, int code)
{
    bh_console_reply(c->r, code, bh_player_state(replay_of(c), c->r->a));
}

void bh_console_replay_get(struct bh_console_req *c)
{
    answer(c, 200);
}

/* "max", or a number from 0 (the same) to SPEED_MAX. */
static bool speed_of(const char *text, double *ret)
{
    char *end;

    if (bh_streq(text, "max")) {
        *ret = 0;
        return true;
    }
    double v = strtod(text, &end);
    if (end == text || *end || !isfinite(v) || v < 0 || v > SPEED_MAX)
        return false;
    *ret = v;
    return true;
}

static bool refuse_speed(struct bh_console_req *c)
{
    return bh_console_fail(c->r, 400, "speed", 0, "speed: a number above 0 up to %.0f, or \"max\"",
                           SPEED_MAX);
}

void bh_console_replay_post(struct bh_console_req *c)
{
    const char *speed = bh_http_query(c->r->http, "speed");
    struct bh_player_options o = {.name = bh_http_query(c->r->http, "name"),
                                  .speed = 1,
                                  .paused = bh_sim_query_bool(c->r, "paused", false),
                                  .clear = bh_sim_query_bool(c->r, "clear", false),
                                  .follow = bh_sim_query_bool(c->r, "follow", false)};
    struct bh_str body = bh_http_body(c->r->http);
    struct bh_err err;

    if (speed && !speed_of(speed, &o.speed)) {
        refuse_speed(c);
        return;
    }
    int rc = bh_player_start(replay_of(c), body.p, body.n, &o, &err);
    if (rc < 0)
        bh_console_fail(c->r, rc == -EBUSY ? 409 : 400, NULL, 0, "%s", err.msg);
    else
        answer(c, 202);
}

struct patch {
    bool has_speed, has_paused, paused;
    double speed;
    int64_t step;
};

static bool read_patch(struct bh_console_req *c, const struct bh_json *v, struct patch *p)
{
    bh_json_each(m, v) {
        const char *text = m->type == BH_JSON_NUMBER ? m->s.p : bh_json_cstr(m);
        if (bh_streq(m->key.p, "speed")) {
            if (!text || !speed_of(text, &p->speed))
                return refuse_speed(c);
            p->has_speed = true;
        } else if (bh_streq(m->key.p, "paused") && m->type == BH_JSON_BOOL) {
            p->has_paused = true;
            p->paused = m->b;
        } else if (bh_streq(m->key.p, "step") && bh_json_i64(m, &p->step) && p->step > 0 &&
                   p->step <= STEP_MAX) {
            continue;
        } else
            return bh_console_fail(
                c->r, 400, m->key.p, 0,
                "%s: speed (number or \"max\"), paused (true, false) or step (1 to %d) "
                "is expected",
                m->key.p, STEP_MAX);
    }
    return true;
}

void bh_console_replay_patch(struct bh_console_req *c)
{
    struct bh_player *r = replay_of(c);
    struct bh_str body = bh_http_body(c->r->http);
    struct patch p = {.step = 0};
    struct bh_json *v = NULL;
    struct bh_err err;

    if (bh_json_parse(c->r->a, body.p, body.n, BH_JSON_STRICT, &v, &err) < 0) {
        bh_console_fail(c->r, 400, NULL, 0, "%s", err.msg);
        return;
    }
    if (v->type != BH_JSON_OBJECT) {
        bh_console_fail(c->r, 400, NULL, 0, "an object is expected");
        return;
    }
    if (!read_patch(c, v, &p))
        return;
    if (!bh_player_active(r)) {
        bh_console_fail(c->r, 409, NULL, 0, "nothing is being replayed");
        return;
    }
    if (p.has_speed)
        bh_player_set_speed(r, p.speed);
    if (p.has_paused)
        bh_player_pause(r, p.paused);
    if (p.step && bh_player_step(r, (uint64_t)p.step, &err) < 0)
        bh_console_fail(c->r, 409, "step", 0, "%s", err.msg);
    else
        answer(c, 200);
}

void bh_console_replay_delete(struct bh_console_req *c)
{
    bh_player_stop(replay_of(c));
    answer(c, 200);
}
