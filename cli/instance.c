/* SPDX-License-Identifier: Apache-2.0
 *
 * cli/instance.c - which Berth a command means when it is not told
 *
 * `berth up` listens at up.sock of its runtime directory, wherever that is; the kernel's list of
 * sockets names those that live, so nothing has to be tidied up after a kill. The socket's time is
 * when the instance came up, its owner whose it is.
 */
#include "cli/cli.h"
#include "common/base/sockpath.h"
#include <errno.h>
#include <limits.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define SOCKET    "/up.sock"
#define OWN       "/kubeconfig"      /* of the built-in server */
#define USED      "/used-kubeconfig" /* a link to that of another API server */
#define MAX_SHOWN 16u
#define LISTENS   0x10000u /* __SO_ACCEPTCON of linux/net.h */

struct instance {
    char dir[108], kubeconfig[128]; /* of its API server, built-in or not; "": not known */
    struct timespec since;
    bool named; /* $KUBECONFIG is its file */
};
struct instances {
    struct instance v[MAX_SHOWN];
    unsigned n; /* newest first */
};

int bh_instance_announce(const char *dir, const char *kubeconfig, struct bh_err *err)
{
    BH_CLEANUP(bh_freep) char *path = bh_asprintf("%s" SOCKET, dir);
    BH_CLEANUP(bh_freep) char *used = bh_asprintf("%s" USED, dir);
    int rc = bh_sockpath_check(path, true, err);

    (void)unlink(used);
    if (kubeconfig && symlink(kubeconfig, used) < 0)
        return bh_err_set(err, -errno, "link \"%s\": %s", used, strerror(errno));
    if (rc == 0)
        rc = bh_sockpath_listen(path, 1);
    return rc >= 0     ? 0
           : *err->msg ? rc
                       : bh_err_set(err, rc, "socket \"%s\": %s", path, strerror(-rc));
}

void bh_instance_end(const char *dir)
{
    BH_CLEANUP(bh_freep) char *path = bh_asprintf("%s" SOCKET, dir);
    BH_CLEANUP(bh_freep) char *used = bh_asprintf("%s" USED, dir);

    (void)unlink(path);
    (void)unlink(used);
}

/* The first file of $KUBECONFIG that is there, as kubectl takes it; "": none. */
static void find_named_file(char out[static PATH_MAX])
{
    const char *list = getenv("KUBECONFIG");

    for (*out = '\0'; list && *list; list += strcspn(list, ":"), list += *list == ':') {
        snprintf(out, PATH_MAX, "%.*s", (int)strcspn(list, ":"), list);
        if (access(out, F_OK) == 0)
            return;
    }
    *out = '\0';
}

static bool is_same_file(const char *a, const char *b)
{
    struct stat x, y;

    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* Which kubeconfig leads to the instance's API server, and whether $KUBECONFIG does. */
static void find_kubeconfig(struct instance *i)
{
    static const char *const names[] = {USED, OWN};
    char named[PATH_MAX];

    find_named_file(named);
    for (size_t k = 0; k < BH_ARRAY_LEN(names); k++) {
        char path[sizeof(i->kubeconfig)];
        snprintf(path, sizeof(path), "%s%s", i->dir, names[k]);
        if (access(path, R_OK) < 0)
            continue;
        memcpy(i->kubeconfig, path, sizeof(path));
        i->named |= is_same_file(named, path);
    }
}

static bool later(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec != b->tv_sec ? a->tv_sec > b->tv_sec : a->tv_nsec > b->tv_nsec;
}

/* A line of /proc/net/unix. */
static void add_line(struct instances *all, char *line)
{
    struct instance i = {0};
    unsigned flags = 0, at = 0;
    struct stat st;
    int path = 0;

    line[strcspn(line, "\n")] = '\0';
    if (sscanf(line, "%*s %*x %*x %x %*x %*x %*u %n", &flags, &path) != 1 || !path ||
        !(flags & LISTENS) || line[path] != '/')
        return;
    char *dir = line + path, *name = strrchr(dir, '/');
    if (!bh_streq(name, SOCKET) || (size_t)(name - dir) >= sizeof(i.dir) || lstat(dir, &st) < 0 ||
        st.st_uid != geteuid())
        return; /* another user's, or out of our sight */
    snprintf(i.dir, sizeof(i.dir), "%.*s", (int)(name - dir), dir);
    i.since = st.st_mtim;
    find_kubeconfig(&i);
    while (at < all->n && later(&all->v[at].since, &i.since))
        at++;
    if (at == MAX_SHOWN)
        return;
    all->n = BH_MIN(all->n + 1, MAX_SHOWN);
    memmove(&all->v[at + 1], &all->v[at], (all->n - 1 - at) * sizeof(i));
    all->v[at] = i;
}

static void find_instances(struct instances *all)
{
    FILE *f = fopen("/proc/net/unix", "re");
    char line[512];

    all->n = 0;
    while (f && fgets(line, sizeof(line), f))
        add_line(all, line);
    if (f)
        fclose(f);
}

static void add_list(struct bh_buf *b, const struct instances *all)
{
    for (unsigned i = 0; i < all->n; i++) {
        char since[32];
        struct tm tm;
        strftime(since, sizeof(since), "%F %T", localtime_r(&all->v[i].since.tv_sec, &tm));
        bh_buf_addf(b, "\n  %s (since %s)", all->v[i].dir, since);
    }
}

static const struct instance *find_named(const struct instances *all)
{
    for (unsigned i = 0; i < all->n; i++)
        if (all->v[i].named)
            return &all->v[i];
    return NULL;
}

/* kubectl shows another cluster than the one that this command is about. */
static void report_other_cluster(const char *program, const char *dir)
{
    char named[PATH_MAX];

    find_named_file(named);
    if (*named)
        fprintf(stderr, "%s: with the instance in %s; KUBECONFIG=%s leads to another cluster\n",
                program, dir, named);
}

int bh_cli_find_dir(const char *program, const char *from_option, char out[static 108],
                    struct bh_err *err)
{
    struct bh_buf list BH_CLEANUP(bh_buf_fini) = {0};
    const char *variable = getenv("BERTH_RUNTIME_DIR");
    const bool by_option = from_option && *from_option, by_variable = variable && *variable;
    struct instances all;

    find_instances(&all);
    const struct instance *named = find_named(&all);
    if (!by_option && !by_variable && all.n) {
        memcpy(out, (named ? named : all.v)->dir, sizeof(all.v->dir));
        add_list(&list, &all);
        if (all.n > 1 && !named)
            fprintf(stderr,
                    "%s: %u of your 'berth up' run here; this is of the newest, --runtime-dir or "
                    "BERTH_RUNTIME_DIR choose another:%s\n",
                    program, all.n, bh_buf_str(&list));
        if (!named)
            report_other_cluster(program, out);
        return 0;
    }
    int rc = bh_runtime_dir_find(from_option, out, err);
    if (rc == 0 && !by_option && named && !is_same_file(named->dir, out))
        report_other_cluster(program, out);
    return rc == -ENOENT ? bh_err_prefix(err, rc, "no Berth runs here ('berth up' starts one)")
                         : rc;
}

/* NULL: the instance in dir has no kubeconfig that is known here. The caller frees. */
static char *copy_kubeconfig(const char *dir)
{
    struct instance i = {0};

    snprintf(i.dir, sizeof(i.dir), "%s", dir);
    find_kubeconfig(&i);
    return *i.kubeconfig ? bh_strdup(i.kubeconfig) : NULL;
}

int bh_cli_find_cluster(const char *program, const char *from_option, const char *runtime_dir,
                        char **ret, struct bh_err *err)
{
    struct bh_buf list BH_CLEANUP(bh_buf_fini) = {0};
    const char *kubeconfig = getenv("KUBECONFIG");
    const char *dir = runtime_dir && *runtime_dir ? runtime_dir : getenv("BERTH_RUNTIME_DIR");
    struct instances all;

    *ret = from_option ? bh_strdup(from_option) : dir && *dir ? copy_kubeconfig(dir) : NULL;
    if (*ret || (dir && *dir) || (kubeconfig && *kubeconfig))
        return 0;
    find_instances(&all);
    add_list(&list, &all);
    if (all.n > 1)
        return bh_err_set(err, -EEXIST,
                          "%u of your 'berth up' run here, and this would change one of them; "
                          "BERTH_RUNTIME_DIR=DIR or KUBECONFIG=DIR/kubeconfig says which:%s",
                          all.n, bh_buf_str(&list));
    if (!all.n || !*all.v->kubeconfig)
        return 0;
    *ret = bh_strdup(all.v->kubeconfig);
    if (isatty(STDERR_FILENO))
        fprintf(stderr, "%s: with the 'berth up' of %s\n", program, all.v->dir);
    return 0;
}
