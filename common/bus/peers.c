/* SPDX-License-Identifier: Apache-2.0
 *
 * common/bus/peers.c - which users of this host may stand at the other end of a socket
 *
 * Fails with: negative errno, see peers.h.
 */
#include "common/bus/peers.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <unistd.h>

#include "common/base/log.h"

#define TELL_EVERY_NS UINT64_C(10000000000)
#define NAME_MAX_TEXT 64

static const struct {
    enum bh_bus_party party;
    const char *name, *usual;
} roles[] = {{BH_BUS_WATCHER, "watcher", "berth-watcher"},
             {BH_BUS_SCHEDULER, "scheduler", "berth-scheduler"},
             {BH_BUS_BINDER, "binder", "berth-binder"},
             {BH_BUS_FRONT, "front", "berth-front"},
             {BH_BUS_OPERATOR, "operator", "@berth"}};

static int add_uid(struct bh_bus_users *u, uid_t uid, unsigned party)
{
    unsigned i = 0;

    while (i < u->n && u->user[i].uid != uid)
        i++;
    if (i == BH_BUS_MAX_USERS)
        return -E2BIG;
    if (i == u->n)
        u->user[u->n++].uid = uid;
    u->user[i].is |= party;
    return 0;
}

/* The members that are listed, not users that have it as primary group: those are Berth's own. */
static int add_group(struct bh_bus_users *u, const char *name, unsigned party)
{
    const struct group *g = getgrnam(name);
    int rc = g ? 0 : -ENOENT;

    for (size_t i = 0; rc == 0 && g->gr_mem[i]; i++) {
        const struct passwd *p = getpwnam(g->gr_mem[i]);
        rc = p ? add_uid(u, p->pw_uid, party) : 0; /* a member without an account cannot come */
    }
    return rc;
}

static int add_name(struct bh_bus_users *u, const char *name, unsigned party)
{
    char *end;

    if (name[0] == '@')
        return add_group(u, name + 1, party);
    const struct passwd *p = getpwnam(name);
    if (p)
        return add_uid(u, p->pw_uid, party);
    errno = 0;
    unsigned long uid = strtoul(name, &end, 10);
    if (!bh_is_digit(name[0]) || *end || errno || uid >= (uid_t)-1)
        return -ENOENT;
    return add_uid(u, (uid_t)uid, party);
}

/* "ROLE=USER", n bytes; the role's index, negative errno. */
static int add_pair(struct bh_bus_users *u, const char *pair, size_t n, struct bh_err *err)
{
    const char *eq = memchr(pair, '=', n);
    char name[NAME_MAX_TEXT];
    int rc;

    for (size_t i = 0; eq && i < BH_ARRAY_LEN(roles); i++) {
        if (strlen(roles[i].name) != (size_t)(eq - pair) ||
            memcmp(roles[i].name, pair, (size_t)(eq - pair)) != 0)
            continue;
        rc = snprintf(name, sizeof(name), "%.*s", (int)(n - (size_t)(eq - pair) - 1), eq + 1);
        rc = (size_t)rc < sizeof(name) ? add_name(u, name, roles[i].party) : -ENOENT;
        if (rc == -E2BIG)
            return bh_err_set(err, rc, "--users: more than %u users", BH_BUS_MAX_USERS);
        if (rc < 0)
            return bh_err_set(err, rc, "--users: \"%.*s\": there is no such %s on this host",
                              (int)n, pair, eq[1] == '@' ? "group" : "user");
        return (int)i;
    }
    return bh_err_set(err, -EINVAL,
                      "--users: \"%.*s\" is not ROLE=USER with one of watcher, scheduler, binder, "
                      "front, operator",
                      (int)n, pair);
}

int bh_bus_users_load(const char *named, struct bh_bus_users *ret, struct bh_err *err)
{
    bool given[BH_ARRAY_LEN(roles)] = {false};
    const char *at = named ? named : "";

    *ret = (struct bh_bus_users){.n = 0};
    while (*at) {
        const size_t n = strcspn(at, ",");
        int i = add_pair(ret, at, n, err);
        if (i < 0)
            return i;
        given[i] = true;
        at += n + (at[n] == ',');
    }
    for (size_t i = 0; i < BH_ARRAY_LEN(roles); i++)
        if (!given[i] && add_name(ret, roles[i].usual, roles[i].party) == -E2BIG)
            return bh_err_set(err, -E2BIG, "--users: more than %u users", BH_BUS_MAX_USERS);
    return 0;
}

bool bh_bus_users_allow(const struct bh_bus_users *users, unsigned parties, uid_t uid)
{
    if (uid == 0 || uid == geteuid())
        return true;
    for (unsigned i = 0; users && i < users->n; i++)
        if (users->user[i].uid == uid)
            return users->user[i].is & parties;
    return false;
}

bool bh_bus_peers_admit(struct bh_bus_peers *p, uid_t uid, pid_t pid, const char *path)
{
    const uint64_t now = bh_mono_ns();

    if (bh_bus_users_allow(p->users, p->parties, uid))
        return true;
    p->turned_away++;
    if (p->told_ns && now - p->told_ns < TELL_EVERY_NS)
        return false;
    bh_log_warn("Not talking to a stranger: its user has no business at this socket (--users)",
                bh_kv_s("socket", path), bh_kv_u("uid", uid), bh_kv_i("pid", pid),
                bh_kv_u("times", p->turned_away - p->told));
    p->told = p->turned_away;
    p->told_ns = now;
    return false;
}
