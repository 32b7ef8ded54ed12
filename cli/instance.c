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
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define SOCKET    "/up.sock"
#define MAX_SHOWN 16u
#define LISTENS   0x10000u /* __SO_ACCEPTCON of linux/net.h */

struct instance {
    char dir[108], kubeconfig[128]; /* kubeconfig "": it uses an API server of others */
    struct timespec since;
};
struct instances {
    struct instance v[MAX_SHOWN];
    unsigned n; /* newest first */
};

int bh_instance_announce(const char *dir, struct bh_err *err)
{
    BH_CLEANUP(bh_freep) char *path = bh_asprintf("%s" SOCKET, dir);
    int rc = bh_sockpath_check(path, true, err);

    if (rc == 0)
        rc = bh_sockpath_listen(path, 1);
    return rc >= 0     ? 0
           : *err->msg ? rc
                       : bh_err_set(err, rc, "socket \"%s\": %s", path, strerror(-rc));
}

void bh_instance_end(const char *dir)
{
    BH_CLEANUP(bh_freep) char *path = bh_asprintf("%s" SOCKET, dir);

    (void)unlink(path);
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
    snprintf(i.kubeconfig, sizeof(i.kubeconfig), "%s/kubeconfig", i.dir);
    if (access(i.kubeconfig, R_OK) < 0)
        *i.kubeconfig = '\0';
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

int bh_cli_find_dir(const char *program, const char *from_option, char out[static 108],
                    struct bh_err *err)
{
    struct bh_buf list BH_CLEANUP(bh_buf_fini) = {0};
    const char *named = getenv("BERTH_RUNTIME_DIR");
    struct instances all = {.n = 0};

    if ((!from_option || !*from_option) && (!named || !*named))
        find_instances(&all);
    if (all.n) {
        memcpy(out, all.v[0].dir, sizeof(all.v[0].dir));
        add_list(&list, &all);
        if (all.n > 1)
            fprintf(stderr,
                    "%s: %u of your 'berth up' run here; this is of the newest, --runtime-dir or "
                    "BERTH_RUNTIME_DIR choose another:%s\n",
                    program, all.n, bh_buf_str(&list));
        return 0;
    }
    int rc = bh_runtime_dir_find(from_option, out, err);
    return rc == -ENOENT ? bh_err_prefix(err, rc, "no Berth runs here ('berth up' starts one)")
                         : rc;
}

int bh_cli_find_cluster(const char *program, const char *from_option, char **ret,
                        struct bh_err *err)
{
    struct bh_buf list BH_CLEANUP(bh_buf_fini) = {0};
    const char *named = getenv("BERTH_RUNTIME_DIR"), *kubeconfig = getenv("KUBECONFIG");
    struct instances all = {.n = 0}, built_in = {.n = 0};

    *ret = from_option ? bh_strdup(from_option) : NULL;
    if (from_option || (kubeconfig && *kubeconfig))
        return 0;
    if (named && *named) {
        *ret = bh_asprintf("%s/kubeconfig", named);
        if (access(*ret, F_OK) < 0) { /* an instance without a server of its own */
            free(*ret);
            *ret = NULL;
        }
        return 0;
    }
    find_instances(&all);
    for (unsigned i = 0; i < all.n; i++)
        if (*all.v[i].kubeconfig)
            built_in.v[built_in.n++] = all.v[i];
    add_list(&list, &built_in);
    if (built_in.n > 1)
        return bh_err_set(err, -EEXIST,
                          "%u of your 'berth up' run here, and this would change one of them; "
                          "BERTH_RUNTIME_DIR=DIR or KUBECONFIG=DIR/kubeconfig says which:%s",
                          built_in.n, bh_buf_str(&list));
    if (!built_in.n)
        return 0;
    *ret = bh_strdup(built_in.v[0].kubeconfig);
    if (isatty(STDERR_FILENO))
        fprintf(stderr, "%s: with the 'berth up' of %s\n", program, built_in.v[0].dir);
    return 0;
}
