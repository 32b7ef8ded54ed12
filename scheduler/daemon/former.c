/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/daemon/former.c - binders that may still have work of the scheduler before us
 *
 * What is on the wire when a scheduler dies is known to its binders alone, and nothing is decided
 * before they had time to say so (BH_BINDER_GRACE_NS). A scheduler that starts where none died has
 * nobody to wait for, and one whose binders have all answered need not wait longer. So each binder
 * is written down before it gets its first work, and the file goes when the process ends in peace:
 * nothing of it can be written any more.
 *
 * The file: <runtime_dir>/scheduler.binders, a name a line. It tells of processes, not of the host:
 * after a reboot the directory is empty and no binder of that time is left.
 */
#include "common/base/log.h"
#include "scheduler/daemon/daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#define FILE_NAME "scheduler.binders"
#define FILE_MAX  ((size_t)64 << 10)

static char *path_of(const struct bh_sched_daemon *d)
{
    return bh_asprintf("%s/" FILE_NAME, d->o.runtime_dir);
}

static struct bh_former_binder *find(struct bh_sched_former *f, const char *name)
{
    for (unsigned i = 0; i < f->n; i++)
        if (bh_streq(f->binder[i].name, name))
            return &f->binder[i];
    return NULL;
}

static struct bh_former_binder *add(struct bh_sched_former *f, const char *name)
{
    struct bh_former_binder *b;

    f->binder = bh_reallocarray(f->binder, f->n + 1, sizeof(*f->binder));
    b = &f->binder[f->n++];
    *b = (struct bh_former_binder){.heard = false};
    snprintf(b->name, sizeof(b->name), "%s", name);
    return b;
}

void bh_sched_former_read(struct bh_sched_daemon *d)
{
    BH_CLEANUP(bh_freep) char *path = path_of(d), *text = NULL;
    char *save = NULL;
    size_t n = 0;
    int rc = bh_read_file(path, FILE_MAX, &text, &n);

    if (rc == -ENOENT)
        return;
    d->former.unknown = rc < 0; /* unreadable: as if somebody had to be waited for */
    for (char *s = rc < 0 ? NULL : strtok_r(text, "\n", &save); s; s = strtok_r(NULL, "\n", &save))
        if (!find(&d->former, s))
            (void)add(&d->former, s);
}

void bh_sched_former_fini(struct bh_sched_daemon *d)
{
    free(bh_take_ptr(d->former.binder));
    d->former.n = 0;
}

static void note(struct bh_sched_daemon *d, const char *name)
{
    BH_CLEANUP(bh_freep) char *path = path_of(d), *line = bh_asprintf("%s\n", name);
    const size_t n = strlen(line);
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0640);

    if (fd < 0 || write(fd, line, n) != (ssize_t)n)
        bh_log_warn("A scheduler after this one will not know of a binder", bh_kv_s("file", path),
                    bh_kv_s("err", strerror(errno)));
    if (fd >= 0)
        close(fd);
}

void bh_sched_former_heard(struct bh_sched_daemon *d, const char *name)
{
    struct bh_former_binder *b = find(&d->former, name);

    if (!b) {
        b = add(&d->former, name);
        note(d, name);
    }
    b->heard = true;
}

static bool all_heard(const struct bh_sched_daemon *d)
{
    for (unsigned i = 0; i < d->former.n; i++)
        if (!d->former.binder[i].heard)
            return false;
    return !d->former.unknown;
}

bool bh_sched_former_silent(const struct bh_sched_daemon *d)
{
    return bh_mono_ns() - d->started_ns < d->timing.binder_grace_ns && !all_heard(d);
}

void bh_sched_former_left(struct bh_sched_daemon *d)
{
    BH_CLEANUP(bh_freep) char *path = path_of(d);

    /* One that never spoke to us may have work of the scheduler before us, however long we ran. */
    if (all_heard(d))
        (void)unlink(path);
}
