/* SPDX-License-Identifier: Apache-2.0
 *
 * common/api/lease.h - one Lease of coordination.k8s.io/v1 as a lock: read, created, replaced
 *
 * The object last seen is kept whole, so a replacement carries its resourceVersion (another's
 * write in between is a conflict) and leaves labels and annotations alone; spec is written anew, as
 * client-go does. Which process may write, and when, is the elector's business
 * (watcher/leader.h). One request at a time.
 * Threads:    the loop's; callbacks come from the loop.
 * Upstream:   client-go/tools/leaderelection/resourcelock/leaselock.go; differences: JSON on the
 *             wire.
 */
#ifndef BH_API_LEASE_H
#define BH_API_LEASE_H

#include "common/api/client.h"

#define BH_LEASE_HOLDER_MAX 256 /* a longer one is cut when it is read */

struct bh_lease_record {
    char holder[BH_LEASE_HOLDER_MAX];      /* "" = none */
    int64_t duration_s, transitions;       /* read: from 0 to INT32_MAX */
    char acquire_time[40], renew_time[40]; /* RFC 3339 with microseconds; read: "" = none */
};
enum bh_lease_outcome {
    BH_LEASE_OK,        /* record is what the API server has now */
    BH_LEASE_NOT_FOUND, /* get: there is none; write: it was deleted meanwhile */
    BH_LEASE_CONFLICT,  /* write: another process was faster */
    BH_LEASE_FAILED     /* refused, or no definite answer */
};
struct bh_lease_result {
    enum bh_lease_outcome outcome;
    const struct bh_lease_record *record; /* OK only */
    /* get: what an elector looks at is not what it was at the last get. */
    bool changed;
    const char *error; /* not OK: for people */
};
/* Called once for each request, valid during the call. Not after bh_lease_free. */
typedef void (*bh_lease_done)(void *arg, const struct bh_lease_result *r);

struct bh_lease;
struct bh_lease *bh_lease_new(struct bh_api_client *client, const char *namespace_,
                              const char *name);
/* Asynchronous while a request runs: free the client after it. NULL allowed. */
void bh_lease_free(struct bh_lease *l);
void bh_lease_get(struct bh_lease *l, uint64_t timeout_ns, bh_lease_done done, void *arg);
/* Replaces the object last seen, or creates it when the last get found none. */
void bh_lease_write(struct bh_lease *l, const struct bh_lease_record *record, uint64_t timeout_ns,
                    bh_lease_done done, void *arg);
/* Of the object last seen, "" = none; for events about it. */
const char *bh_lease_uid(const struct bh_lease *l);
const char *bh_lease_version(const struct bh_lease *l);
#endif
