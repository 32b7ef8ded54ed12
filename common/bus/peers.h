/* SPDX-License-Identifier: Apache-2.0
 *
 * common/bus/peers.h - which users of this host may stand at the other end of a socket
 *
 * Berth's processes may each have a user of their own (systemd/berth.sysusers); a socket's mode
 * lets their group in, this lets in the users that belong there: a binder has no business at the
 * control socket, nor the front at the binders'. The kernel says which user the peer is
 * (SO_PEERCRED), the transport hands it on, and here it is judged. Our own user and root always
 * may, so that one user for all processes needs nothing. Names become numbers when a process
 * starts; later changes take a restart.
 * Threads: bh_bus_users is constant; bh_bus_peers_admit is called by one thread of a socket at a time.
 */
#ifndef BH_BUS_PEERS_H
#define BH_BUS_PEERS_H

#include <sys/types.h>

#include "common/base/base.h"

enum bh_bus_party { /* a set of bits */
                    BH_BUS_WATCHER = 1,
                    BH_BUS_SCHEDULER = 2,
                    BH_BUS_BINDER = 4,
                    BH_BUS_FRONT = 8,
                    BH_BUS_OPERATOR = 16 /* people with `berth queue`, `berth explain` */
};
#define BH_BUS_MAX_USERS 64u
struct bh_bus_users {
    struct {
        uid_t uid;
        unsigned is; /* parties */
    } user[BH_BUS_MAX_USERS];
    unsigned n;
};
/* named: "ROLE=USER,..." (a name, a number, or @GROUP for its listed members), a role as
 * often as needed; NULL or "" = nothing. A role that is not named has its usual user, berth-ROLE,
 * if there is one on this host; operators are the members of group berth. -EINVAL, -ENOENT (no such
 * user or group), -E2BIG. */
int bh_bus_users_load(const char *named, struct bh_bus_users *ret, struct bh_err *err);
/* users NULL: none but our own and root. */
bool bh_bus_users_allow(const struct bh_bus_users *users, unsigned parties, uid_t uid);

struct bh_bus_peers { /* of one socket */
    const struct bh_bus_users *users;
    unsigned parties;
    _Atomic uint64_t turned_away; /* read by the socket's owner */
    uint64_t told, told_ns;
};
/* path: of the socket. False: the connection is to be closed; counted, and told once in ten
 * seconds. */
bool bh_bus_peers_admit(struct bh_bus_peers *p, uid_t uid, pid_t pid, const char *path);

#define BH_BUS_USERS_OPT(text)                                                                     \
    {                                                                                              \
        "users", 0, BH_OPT_STR, text, "ROLE=USER,...",                                             \
            "users of this host that watcher, scheduler, binder, front and operator run as: a "    \
            "name, a number, or @GROUP for its members (default berth-ROLE where there is one, "   \
            "@berth for operator); nobody else is talked to but our own and root"                  \
    }
#endif
