/* SPDX-License-Identifier: Apache-2.0 */
#include "common/bus/bus.h"
#include "tests/unit/harness.h"

#include <errno.h>
#include <grp.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define DEADLINE_NS (UINT64_C(120) * 1000 * 1000 * 1000)
#define STRANGER    ((uid_t)61234)

/* ---- names ----------------------------------------------------------------------------------- */

static void test_names(void)
{
    struct bh_bus_users u;
    struct bh_err err = {""};
    const struct passwd *p = getpwuid(0);

    CU_ASSERT_EQUAL_FATAL(
        bh_bus_users_load("binder=4001,binder=4002,operator=4001,watcher=root", &u, &err), 0);
    CU_ASSERT_TRUE(bh_bus_users_allow(&u, BH_BUS_BINDER, 4001));
    CU_ASSERT_TRUE(bh_bus_users_allow(&u, BH_BUS_BINDER | BH_BUS_FRONT, 4002));
    CU_ASSERT_TRUE(bh_bus_users_allow(&u, BH_BUS_OPERATOR, 4001));
    CU_ASSERT_FALSE(bh_bus_users_allow(&u, BH_BUS_OPERATOR, 4002));
    CU_ASSERT_FALSE(bh_bus_users_allow(&u, BH_BUS_SCHEDULER, 4001));
    CU_ASSERT_FALSE(bh_bus_users_allow(&u, BH_BUS_BINDER, 4003));
    CU_ASSERT_TRUE(p && bh_bus_users_allow(&u, BH_BUS_WATCHER, p->pw_uid));
    CU_ASSERT_EQUAL(bh_bus_users_load(NULL, &u, &err), 0);
    CU_ASSERT_FALSE(bh_bus_users_allow(&u, BH_BUS_BINDER, STRANGER));
    CU_ASSERT_TRUE(bh_bus_users_allow(&u, BH_BUS_BINDER, geteuid()));
    CU_ASSERT_TRUE(bh_bus_users_allow(NULL, 0, geteuid()));
    CU_ASSERT_TRUE(bh_bus_users_allow(NULL, 0, 0));
    CU_ASSERT_FALSE(bh_bus_users_allow(NULL, ~0u, STRANGER));
}

/* Any group of this machine that lists somebody. */
static void test_members_of_a_group(void)
{
    struct bh_bus_users u;
    struct bh_err err = {""};
    const struct passwd *member = NULL;
    struct group *g;

    setgrent();
    while (!member && (g = getgrent()))
        member = g->gr_mem[0] ? getpwnam(g->gr_mem[0]) : NULL;
    if (!member) {
        bh_test_skip("no group here lists a member");
        endgrent();
        return;
    }
    BH_CLEANUP(bh_freep) char *named = bh_asprintf("operator=@%s", g->gr_name);
    const uid_t uid = member->pw_uid;
    endgrent();
    CU_ASSERT_EQUAL(bh_bus_users_load(named, &u, &err), 0);
    CU_ASSERT_TRUE(bh_bus_users_allow(&u, BH_BUS_OPERATOR, uid));
    CU_ASSERT_EQUAL(u.user[0].uid, uid);
    CU_ASSERT_EQUAL(u.user[0].is, BH_BUS_OPERATOR);
}

static void test_wrong_names(void)
{
    static const struct {
        const char *named;
        int rc;
        const char *said;
    } cases[] = {
        {"binder", -EINVAL, "--users: \"binder\" is not ROLE=USER with one of watcher, "},
        {"cook=1", -EINVAL, "--users: \"cook=1\" is not ROLE=USER with one of watcher, "},
        {"bind=1", -EINVAL, "--users: \"bind=1\" is not"},
        {",", -EINVAL, "--users: \"\" is not"},
        {"binder=", -ENOENT, "--users: \"binder=\": there is no such user on this host"},
        {"front=1,binder=no-such-user-1", -ENOENT,
         "--users: \"binder=no-such-user-1\": there is no such user on this host"},
        {"binder=-1", -ENOENT, "--users: \"binder=-1\": there is no such user"},
        {"binder=4294967295", -ENOENT, "no such user"}, /* means "nobody" to the kernel */
        {"binder=12x", -ENOENT, "no such user"},
        {"operator=@no-such-group-1", -ENOENT,
         "--users: \"operator=@no-such-group-1\": there is no such group on this host"},
        {"binder=a-name-that-is-longer-than-any-user-of-any-system-may-ever-have-been", -ENOENT,
         "no such user"},
    };
    struct bh_bus_users u;

    for (size_t i = 0; i < BH_ARRAY_LEN(cases); i++) {
        struct bh_err err = {""};
        CU_ASSERT_EQUAL(bh_bus_users_load(cases[i].named, &u, &err), cases[i].rc);
        if (!strstr(err.msg, cases[i].said))
            printf("# %s: %s\n", cases[i].named, err.msg);
        CU_ASSERT_PTR_NOT_NULL(strstr(err.msg, cases[i].said));
    }
    struct bh_buf many = {0};
    struct bh_err err = {""};
    for (unsigned i = 0; i <= BH_BUS_MAX_USERS; i++)
        bh_buf_addf(&many, "binder=%u,", 5000 + i);
    CU_ASSERT_EQUAL(bh_bus_users_load(bh_buf_str(&many), &u, &err), -E2BIG);
    CU_ASSERT_STRING_EQUAL(err.msg, "--users: more than 64 users");
    bh_buf_fini(&many);
}

/* ---- sockets --------------------------------------------------------------------------------- */

struct scene {
    char *endpoint;
    struct bh_arena arena;
    pid_t stranger;
};

static bool scene_open(struct scene *s)
{
    static unsigned n;

    if (geteuid() != 0) {
        bh_test_skip("only root can be somebody else");
        return false;
    }
    CU_ASSERT_EQUAL_FATAL(chmod(bh_test_tmpdir(), 0770), 0); /* the group is the stranger's, too */
    *s = (struct scene){.endpoint = bh_asprintf("ipc://%s/p%u.sock", bh_test_tmpdir(), n++)};
    bh_arena_init(&s->arena, 0);
    return true;
}

static void scene_close(struct scene *s)
{
    if (s->stranger > 0) {
        kill(s->stranger, SIGKILL);
        waitpid(s->stranger, NULL, 0);
    }
    bh_arena_fini(&s->arena);
    free(s->endpoint);
}

static void send_heartbeat(struct bh_bus *b, const struct bh_peer *to)
{
    Berth__Heartbeat h = BERTH__HEARTBEAT__INIT;
    Berth__Envelope e = BERTH__ENVELOPE__INIT;

    h.has_progress = 1;
    h.progress = 1;
    e.heartbeat = &h;
    (void)bh_bus_send(b, to, &e);
}

/* A process of another user in our group, at the other end until it is killed: speaks, or
 * answers. */
static void stranger_works(const struct scene *s, enum bh_bus_role role)
{
    const gid_t group = getegid();
    struct bh_peer peer;
    struct bh_bus *b = NULL;
    struct bh_arena a;
    Berth__Envelope *e;

    if (setgroups(1, &group) < 0 || setresuid(STRANGER, STRANGER, STRANGER) < 0 ||
        bh_bus_open(role, s->endpoint, role == BH_BUS_DEALER_CONNECT ? "x" : NULL, &b, NULL) < 0)
        _exit(1);
    bh_arena_init(&a, 0);
    for (;;) {
        if (role == BH_BUS_DEALER_CONNECT)
            send_heartbeat(b, NULL);
        bh_bus_wait(b, 20);
        while (bh_bus_recv(b, &a, &peer, &e) != BH_BUS_EMPTY)
            if (role != BH_BUS_DEALER_CONNECT)
                send_heartbeat(b, &peer);
    }
}

/* Before this process has a bus: what ZeroMQ has open does not survive a fork. */
static void stranger_start(struct scene *s, enum bh_bus_role role)
{
    s->stranger = fork();
    if (s->stranger == 0)
        stranger_works(s, role);
    CU_ASSERT_FATAL(s->stranger > 0);
}

/* True: a message came. False: he was turned away (*ret_strangers), or nothing happened. */
static bool heard(struct scene *s, struct bh_bus *b, uint64_t *ret_strangers)
{
    struct bh_bus_stats st = {0};
    struct bh_peer peer;
    Berth__Envelope *e;
    enum bh_bus_outcome o = BH_BUS_EMPTY;

    for (uint64_t until = bh_mono_ns() + DEADLINE_NS; bh_mono_ns() < until;) {
        o = bh_bus_recv(b, &s->arena, &peer, &e);
        bh_bus_stats(b, &st);
        if (o == BH_BUS_OK || st.strangers > 1) /* he tries again */
            break;
        bh_bus_wait(b, 20);
    }
    *ret_strangers = st.strangers;
    return o == BH_BUS_OK;
}

static struct bh_bus *listen_among(const struct scene *s, const char *named, unsigned parties,
                                   struct bh_bus_users *u)
{
    struct bh_bus *b = NULL;
    struct bh_err err = {""};

    CU_ASSERT_EQUAL_FATAL(bh_bus_users_load(named, u, &err), 0);
    CU_ASSERT_EQUAL_FATAL(
        bh_bus_open_among(BH_BUS_ROUTER_BIND, s->endpoint, NULL, u, parties, &b, &err), 0);
    return b;
}

static void test_who_connects(void)
{
    static const struct {
        const char *named;
        bool heard;
    } cases[] = {{"front=61234", false}, {"binder=61233", false}, {"binder=61234", true}};
    struct bh_bus_users u;

    for (size_t i = 0; i < BH_ARRAY_LEN(cases); i++) {
        struct scene s;
        uint64_t strangers;
        if (!scene_open(&s))
            return;
        stranger_start(&s, BH_BUS_DEALER_CONNECT);
        struct bh_bus *b = listen_among(&s, cases[i].named, BH_BUS_BINDER, &u);
        CU_ASSERT_EQUAL(heard(&s, b, &strangers), cases[i].heard);
        CU_ASSERT_EQUAL(strangers > 1, !cases[i].heard);
        bh_bus_close(b);
        scene_close(&s);
    }
}

/* A socket that nobody opened among anybody is our own user's and root's. */
static void test_unnamed(void)
{
    struct scene s;
    struct bh_bus *b = NULL;
    struct bh_err err;
    uint64_t strangers;

    if (!scene_open(&s))
        return;
    stranger_start(&s, BH_BUS_DEALER_CONNECT);
    CU_ASSERT_EQUAL_FATAL(bh_bus_open(BH_BUS_ROUTER_BIND, s.endpoint, NULL, &b, &err), 0);
    CU_ASSERT_FALSE(heard(&s, b, &strangers));
    CU_ASSERT_TRUE(strangers > 1);
    bh_bus_close(b);
    scene_close(&s);
}

static bool reached(struct scene *s, const char *named)
{
    struct bh_bus_users u;
    struct bh_bus *b = NULL;
    struct bh_err err = {""};
    uint64_t strangers;

    CU_ASSERT_EQUAL_FATAL(bh_bus_users_load(named, &u, &err), 0);
    CU_ASSERT_EQUAL_FATAL(
        bh_bus_open_among(BH_BUS_DEALER_CONNECT, s->endpoint, "d", &u, BH_BUS_WATCHER, &b, &err),
        0);
    send_heartbeat(b, NULL);
    bool answered = heard(s, b, &strangers);
    CU_ASSERT_EQUAL(strangers > 1, !answered);
    bh_bus_close(b);
    return answered;
}

/* The name of a socket is free while its owner restarts. */
static void test_who_listens(void)
{
    struct scene s;

    if (!scene_open(&s))
        return;
    stranger_start(&s, BH_BUS_ROUTER_BIND);
    CU_ASSERT_FALSE(reached(&s, "scheduler=61234"));
    CU_ASSERT_TRUE(reached(&s, "watcher=61234"));
    scene_close(&s);
}

static void test_it_is_told_once_in_a_while(void)
{
    struct bh_bus_peers p = {.parties = BH_BUS_BINDER};

    for (unsigned i = 0; i < 3; i++)
        CU_ASSERT_FALSE(bh_bus_peers_admit(&p, STRANGER, 1, "a socket"));
    CU_ASSERT_EQUAL(p.turned_away, 3);
    CU_ASSERT_EQUAL(p.told, 1);
    p.told_ns -= UINT64_C(10000000000); /* as if that time had passed */
    CU_ASSERT_FALSE(bh_bus_peers_admit(&p, STRANGER, 1, "a socket"));
    CU_ASSERT_EQUAL(p.told, 4);
}

static bool came(struct bh_bus *router, struct bh_arena *a)
{
    struct bh_peer peer;
    Berth__Envelope *e;

    for (uint64_t until = bh_mono_ns() + DEADLINE_NS; bh_mono_ns() < until;) {
        if (bh_bus_recv(router, a, &peer, &e) == BH_BUS_OK)
            return true;
        bh_bus_wait(router, 20);
    }
    return false;
}

/* A scheduler looks at who listens as the watcher and as the binders' socket: each asks for itself. */
static void test_two_that_look_at_who_listens(void)
{
    struct bh_bus *router[2], *dealer[2];
    struct bh_bus_users u;
    struct bh_err err = {""};
    struct bh_arena a;

    bh_arena_init(&a, 0);
    CU_ASSERT_EQUAL_FATAL(bh_bus_users_load(NULL, &u, &err), 0);
    for (unsigned i = 0; i < 2; i++) {
        BH_CLEANUP(bh_freep) char *to = bh_asprintf("ipc://%s/t%u.sock", bh_test_tmpdir(), i);
        CU_ASSERT_EQUAL_FATAL(bh_bus_open(BH_BUS_ROUTER_BIND, to, NULL, &router[i], &err), 0);
        CU_ASSERT_EQUAL_FATAL(
            bh_bus_open_among(BH_BUS_DEALER_CONNECT, to, "d", &u, BH_BUS_WATCHER, &dealer[i], &err),
            0);
    }
    for (unsigned i = 0; i < 2; i++) {
        send_heartbeat(dealer[i], NULL);
        CU_ASSERT_TRUE(came(router[i], &a));
    }
    bh_bus_close(dealer[0]);
    bh_bus_close(router[0]);
    send_heartbeat(dealer[1], NULL);
    CU_ASSERT_TRUE(came(router[1], &a));
    bh_bus_close(dealer[1]);
    bh_bus_close(router[1]);
    bh_arena_fini(&a);
}

BH_TESTS("common/bus/peers", {"names, numbers and roles", test_names},
         {"the members of a group", test_members_of_a_group},
         {"what is no user of this host is said", test_wrong_names},
         {"another user is turned away where he is not expected", test_who_connects},
         {"and wherever nobody said who is", test_unnamed},
         {"another user that listens is not spoken to", test_who_listens},
         {"it is told once in a while", test_it_is_told_once_in_a_while},
         {"two that look at who listens", test_two_that_look_at_who_listens})
