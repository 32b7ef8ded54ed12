/* SPDX-License-Identifier: Apache-2.0
 *
 * common/control/ask.c - asking the running scheduler
 */
#include "common/control/ask.h"

#include <errno.h>
#include <unistd.h>

#include "common/base/map.h"

#define PAGE_PODS    BH_BUS_CONTROL_PODS
#define ANSWER_BYTES ((size_t)64 << 20)
#define RESTARTS_MAX 20u /* of a listing, before pods that were seen twice are a fact of life */

int bh_ask_probe(const char *runtime_dir, const char *socket, const char *program,
                 struct bh_err *err)
{
    char endpoint[128];
    int rc = bh_bus_endpoint(runtime_dir, socket, endpoint, err);

    if (rc < 0)
        return rc;
    rc = bh_bus_probe(endpoint);
    if (rc == -EACCES || rc == -EPERM)
        return bh_err_set(err, rc,
                          "permission denied for \"%s/%s.sock\": root and members of group berth "
                          "may use it",
                          runtime_dir, socket);
    if (rc < 0)
        return bh_err_set(
            err, -ENOENT,
            "no %s runs in \"%s\" (%s.sock: %s); see --runtime-dir, or start one with "
            "'berth up'",
            program, runtime_dir, socket, strerror(-rc));
    return 0;
}

int bh_ask_open(struct bh_ask *k, const char *runtime_dir, struct bh_err *err)
{
    char endpoint[128], identity[32];
    int rc = bh_ask_probe(runtime_dir, "control", "berth-scheduler", err);

    *k = (struct bh_ask){.id = 0};
    if (rc == 0)
        rc = bh_bus_endpoint(runtime_dir, "control", endpoint, err);
    snprintf(identity, sizeof(identity), "q-%016llx", (unsigned long long)bh_rand_entropy());
    if (rc == 0)
        rc = bh_bus_open(BH_BUS_DEALER_CONNECT, endpoint, identity, &k->bus, err);
    if (rc == 0)
        bh_arena_init(&k->arena, ANSWER_BYTES);
    return rc;
}

void bh_ask_close(struct bh_ask *k)
{
    bh_bus_close(k->bus);
    bh_arena_fini(&k->arena);
    k->bus = NULL;
}

static const Berth__ControlReply *receive(struct bh_ask *k, uint64_t deadline_ns)
{
    Berth__Envelope *e = NULL;

    for (;;) {
        uint64_t now = bh_mono_ns();
        if (now >= deadline_ns)
            return NULL;
        bh_bus_wait(k->bus, (int)((deadline_ns - now) / 1000000 + 1));
        bh_arena_reset(&k->arena);
        enum bh_bus_outcome o = bh_bus_recv(k->bus, &k->arena, NULL, &e);
        if (o == BH_BUS_OK && e->control_reply &&
            (e->control_reply->id == k->id || e->control_reply->id == 0))
            return e->control_reply;
    }
}

int bh_ask(struct bh_ask *k, Berth__ControlRequest *q, const Berth__ControlReply **ret,
           struct bh_err *err)
{
    Berth__Envelope e = BERTH__ENVELOPE__INIT;
    uint64_t timeout_ns = k->timeout_ns ? k->timeout_ns : BH_ASK_TIMEOUT_NS;

    q->has_id = q->has_what = true;
    q->id = ++k->id;
    e.control = q;
    if (bh_bus_send(k->bus, NULL, &e) != BH_BUS_OK)
        return bh_err_set(err, -EIO, "the scheduler's control socket takes no question");
    const Berth__ControlReply *r = *ret = receive(k, bh_mono_ns() + timeout_ns);
    if (!r)
        return bh_err_set(err, -ETIMEDOUT, "the scheduler did not answer within %g s%s",
                          (double)timeout_ns / 1e9,
                          geteuid() ? " (its log says if this user may not ask: --users)" : "");
    return r->error ? bh_err_set(err, -EPROTO, "the scheduler answered: %s", r->error) : 0;
}

int bh_ask_for(struct bh_ask *k, Berth__ControlWhat what, const Berth__ControlReply **ret,
               struct bh_err *err)
{
    Berth__ControlRequest q = BERTH__CONTROL_REQUEST__INIT;

    q.what = what;
    return bh_ask(k, &q, ret, err);
}

int bh_ask_queue(struct bh_ask *k, const char *ns, uint32_t places,
                 void (*fn)(void *arg, const Berth__QueuePod *p), void *arg, struct bh_err *err)
{
    Berth__ControlRequest q = BERTH__CONTROL_REQUEST__INIT;
    const Berth__ControlReply *r;
    struct bh_map seen = {0};
    unsigned restarts = 0;
    int rc;

    q.what = BERTH__CONTROL_WHAT__CONTROL_QUEUE;
    q.namespace_ = (char *)(uintptr_t)ns;
    q.has_limit = q.has_cursor = q.has_places = true;
    q.limit = PAGE_PODS;
    q.places = places;
    do {
        rc = bh_ask(k, &q, &r, err);
        if (rc < 0)
            break;
        for (size_t i = 0; i < r->n_pod; i++)
            if (!bh_map_put(&seen, r->pod[i]->uid, strlen(r->pod[i]->uid), &seen))
                fn(arg, r->pod[i]); /* new to the listing */
        q.cursor = r->cursor;
        if (r->restart && ++restarts > RESTARTS_MAX)
            rc = bh_err_set(err, -EAGAIN, "the queue changes faster than it can be listed");
    } while (rc == 0 && (r->cursor || r->restart));
    bh_map_fini(&seen);
    return rc;
}
