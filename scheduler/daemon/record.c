/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/daemon/record.c - what is kept of decisions (--record-decisions)
 *
 * Runs in:    the duty cycle, and only with a recorder.
 * Upstream:   none.
 */
#include "scheduler/daemon/daemon.h"

void bh_sched_record_begin(struct bh_sched_daemon *d, struct bh_queued_pod *p,
                           const struct bh_decision *dec)
{
    const struct bh_pod_rec *rec = p->pending.pod;
    const struct bh_shape_rec *shape = bh_engine_shape_rec(d->engine, p->pending.shape);
    const struct bh_recorder_pod pod = {
        .namespace_ = bh_rec_text(rec, rec->namespace_),
        .name = bh_rec_text(rec, rec->name),
        .uid = bh_rec_text(rec, rec->uid),
        .profile = bh_sym_text(d->symtab, shape->scheduler_name),
        .trigger = bh_queue_trigger(d->queue, p),
        .attempt = p->attempts,
        .priority = shape->priority,
        .time_ns = p->popped_ns,
    };

    p->decision =
        bh_recorder_begin(d->recorder, d->engine, &pod, dec, bh_engine_took_ns(d->engine));
}

/* What each plugin of a point said: all were asked up to the one whose status s is. */
static uint32_t steps(struct bh_sched_daemon *d, const struct bh_pending *p, enum bh_point at,
                      const struct bh_status *s, int64_t timeout_ns, struct bh_arena *a,
                      struct bh_record_step *ret)
{
    const char *names[BH_RECORD_STEPS];
    uint32_t n = bh_engine_plugins_at(d->engine, p, at, names, BH_RECORD_STEPS);

    for (uint32_t i = 0; i < n; i++) {
        bool said = s && s->plugin && bh_streq(s->plugin, names[i]);
        ret[i] = (struct bh_record_step){.plugin = names[i], .message = "success"};
        if (!said)
            continue;
        if (s->code == BH_WAIT) {
            ret[i].message = "wait";
            ret[i].timeout_ns = timeout_ns;
        } else {
            ret[i].message = bh_status_message(a, s);
            return i + 1;
        }
    }
    return n;
}

void bh_sched_record_commit(struct bh_sched_daemon *d, const struct bh_pending *p, enum bh_point at,
                            const struct bh_status *s, int64_t timeout_ns,
                            const struct bh_decision *dec)
{
    struct bh_record_after after = {.overruled = dec != NULL};
    struct bh_arena a;

    if (bh_recorder_mode(d->recorder) != BH_RECORD_FULL) {
        bh_recorder_end(d->recorder, &after, dec);
        return;
    }
    bh_arena_init(&a, 0);
    after.n_reserve =
        steps(d, p, BH_POINT_RESERVE, at == BH_POINT_RESERVE ? s : NULL, 0, &a, after.reserve);
    if (at == BH_POINT_PERMIT)
        after.n_permit = steps(d, p, BH_POINT_PERMIT, s, timeout_ns, &a, after.permit);
    if (!dec) {
        after.n_pre_bind =
            bh_engine_plugins_at(d->engine, p, BH_POINT_PRE_BIND, after.pre_bind, BH_RECORD_STEPS);
        after.n_bind = bh_engine_plugins_at(d->engine, p, BH_POINT_BIND, after.bind, 1);
    }
    bh_recorder_end(d->recorder, &after, dec);
    bh_arena_fini(&a);
}

void bh_sched_record_no_fit(struct bh_sched_daemon *d)
{
    static const struct bh_record_after nothing;

    bh_recorder_end(d->recorder, &nothing, NULL);
}
