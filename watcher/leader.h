/* SPDX-License-Identifier: Apache-2.0
 *
 * watcher/leader.h - the leader lease: acquired, renewed, given up
 *
 * What this host may do is a term and a deadline (CLOCK_BOOTTIME): renewDeadline after the START of
 * the last renewal that succeeded. Another host may take the lease leaseDuration after it has seen
 * that renewal, which is later. So writing stops first, whether it is noticed or not: nothing has
 * to run for a deadline to pass.
 *
 * The lease is acquired and renewed only while the scheduler and a binder advance (callback
 * `advanced`): a host that cannot schedule does not keep others from it. It watches the lease all
 * the same, and so knows when it runs out.
 *
 * A term is a number that rises with every acquisition (leaseTransitions + 1, or more). It stays
 * the same when the lease never left this host: a watcher that starts in the runtime directory of
 * one that died finds that one's identity there (<runtime>/watcher/lease, locked as long as its
 * owner lives), and takes its lease over without waiting. Everything on this host then goes on as
 * if nothing had been.
 *
 * The lease is released when the process stops, and after it was lost; but only once nothing here
 * can write under it any more: the scheduler says so (callback `quiet`), or the deadline and the
 * requests that were cut to end by it are over. Otherwise it is left to expire.
 *
 * After a loss the host goes back to standing by, with everything warm; kube-scheduler ends there.
 *
 * Threads:    the loop's.
 * Upstream:   client-go/tools/leaderelection/leaderelection.go, healthzadaptor.go; differences: see
 *             above; the deadline counts from the renewal, not from the next try; a lease that
 *             another process holds ends leadership at once; a stand-by host also looks when the
 *             lease runs out, not only every retryPeriod.
 */
#ifndef BH_WATCHER_LEADER_H
#define BH_WATCHER_LEADER_H

#include "common/flags/component.h"
#include "common/api/lease.h"
#include "common/base/metrics.h"
#include "common/bus/bus.h"

#define BH_LEADER_TOLERANCE_NS UINT64_C(20000000000) /* of the health check, as upstream */
#define BH_LEADER_SETTLE_NS    BH_BUS_GRANT_TAIL_NS  /* after the deadline no write is left */
#define BH_LEADER_STOP_NS      UINT64_C(4000000000)  /* stopping takes no longer */

struct bh_leader_callbacks {
    /* Have the scheduler and a binder advanced since the last time this said so? If not, *ret_why
     * is a text for people. */
    bool (*advanced)(void *arg, const char **ret_why);
    /* Nothing decided under this term, or an older one, can be written any more. */
    bool (*quiet)(void *arg, uint64_t term);
    /* May decide and write until then (boot clock); 0 = no more. With each renewal. */
    void (*lease)(void *arg, uint64_t term, uint64_t until_boot_ns);
    void *arg;
};
struct bh_leader_options {
    const struct bh_leader_config *config; /* checked (bh_leader_config_check) */
    const struct bh_api_config *api;
    const char *user_agent;  /* "/leader-election" is added */
    const char *runtime_dir; /* NULL: no predecessor, no successor */
    const char *component;   /* source of events */
    const char *identity;    /* NULL = <hostname>_<uuid> */
    struct bh_metrics *metrics;
    uint64_t (*boot_ns)(void);   /* NULL = bh_boot_ns; tests */
    uint64_t settle_ns, stop_ns; /* 0 = the constants above */
};
struct bh_leader;
/* Begins at once. 0; -EBUSY: another watcher uses the runtime directory; other negative errno. */
int bh_leader_new(uv_loop_t *loop, const struct bh_leader_options *o,
                  const struct bh_leader_callbacks *cb, struct bh_leader **ret, struct bh_err *err);
/* Callback advanced may say yes now: a stand-by host that could not take the lease tries at once.
 * Call it now and then. */
void bh_leader_poke(struct bh_leader *l);
/* Gives the lease up and calls stopped when that is done, after stop_ns at the latest. */
void bh_leader_stop(struct bh_leader *l, void (*stopped)(void *arg), void *arg);
/* No callback after it. Asynchronous: drain the loop. NULL allowed. */
void bh_leader_free(struct bh_leader *l);
void bh_leader_reload(struct bh_leader *l); /* credentials */
bool bh_leader_leads(const struct bh_leader *l);
/* False: this process thinks it leads, but has not renewed for leaseDuration and 20 s more. */
bool bh_leader_healthy(const struct bh_leader *l);

/* ---- <runtime>/watcher/lease (leader_file.c) ------------------------------------------------- */
/* Identities under which watchers of this runtime directory may hold the lease, with their terms:
 * the last one that held it, and the one that was about to. */
struct bh_leader_file {
    int fd;              /* -1 = none */
    uint64_t belongs_to; /* this file on this boot of this host; 0 = nothing can be recorded */
    unsigned n;
    struct bh_leader_past {
        char identity[BH_LEASE_HOLDER_MAX];
        uint64_t term;
    } past[2];
};
/* Opens, locks, reads. A file that is not the watcher's own, is damaged, was copied, or is of
 * another boot counts as empty and is logged; without space there is none. -EBUSY: its owner lives.
 * -EPERM: the directory is not the watcher's own. */
int bh_leader_file_open(struct bh_leader_file *f, const char *runtime_dir, struct bh_err *err);
void bh_leader_file_close(struct bh_leader_file *f);
const struct bh_leader_past *bh_leader_file_find(const struct bh_leader_file *f,
                                                 const char *identity);
uint64_t bh_leader_file_last_term(const struct bh_leader_file *f);
/* Replaces what is in the file; keep: one of what was there, or NULL. Failures only cost the
 * successor its shortcut. */
void bh_leader_file_write(struct bh_leader_file *f, const char *identity, uint64_t term,
                          const struct bh_leader_past *keep);
#endif
