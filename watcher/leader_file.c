/* SPDX-License-Identifier: Apache-2.0
 *
 * watcher/leader_file.c - which watcher held the lease in this runtime directory before us
 *
 * Lines of term, blank, identity, replaced by one pwrite. A process that is killed right after it
 * leaves a rest of the old text behind the new: an identity that does not hold the lease any more.
 * The lock is the kernel's: held as long as the process lives, stopped or not.
 */
#include "watcher/leader.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/file.h>
#include <unistd.h>

#define FILE_BYTES 1024
#define TERM_MAX   (UINT64_MAX / 2) /* leaves room to count on */

static void read_line(struct bh_leader_file *f, const char *line)
{
    struct bh_leader_past *p = &f->past[f->n];
    char *end;

    p->term = strtoull(line, &end, 10); /* 0: no number; more than any term: too large a one */
    if (*end != ' ' || !end[1] || p->term == 0 || p->term > TERM_MAX ||
        strlen(end + 1) >= sizeof(p->identity))
        return;
    snprintf(p->identity, sizeof(p->identity), "%s", end + 1);
    f->n++;
}

int bh_leader_file_open(struct bh_leader_file *f, const char *runtime_dir, struct bh_err *err)
{
    char path[128], text[FILE_BYTES + 1];
    char *rest = text, *line;

    *f = (struct bh_leader_file){.fd = -1};
    if (!runtime_dir)
        return 0;
    snprintf(path, sizeof(path), "%s/lease", runtime_dir);
    f->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0640);
    if (f->fd < 0)
        return bh_err_set(err, -errno, "\"%s\": %s", path, strerror(errno));
    if (flock(f->fd, LOCK_EX | LOCK_NB) < 0) {
        bh_leader_file_close(f);
        return bh_err_set(err, -EBUSY, "\"%s\": another watcher uses this runtime directory", path);
    }
    ssize_t n = pread(f->fd, text, FILE_BYTES, 0);
    text[BH_MAX(n, 0)] = '\0';
    while ((line = strsep(&rest, "\n")) && f->n < BH_ARRAY_LEN(f->past))
        read_line(f, line);
    return 0;
}

void bh_leader_file_close(struct bh_leader_file *f)
{
    if (f->fd >= 0)
        close(f->fd);
    *f = (struct bh_leader_file){.fd = -1};
}

const struct bh_leader_past *bh_leader_file_find(const struct bh_leader_file *f,
                                                 const char *identity)
{
    for (unsigned i = 0; i < f->n; i++)
        if (bh_streq(f->past[i].identity, identity))
            return &f->past[i];
    return NULL;
}

uint64_t bh_leader_file_last_term(const struct bh_leader_file *f)
{
    uint64_t last = 0;

    for (unsigned i = 0; i < f->n; i++)
        last = BH_MAX(last, f->past[i].term);
    return last;
}

void bh_leader_file_write(struct bh_leader_file *f, const char *identity, uint64_t term,
                          const struct bh_leader_past *keep)
{
    struct bh_leader_past kept = keep ? *keep : (struct bh_leader_past){.term = 0};
    char text[FILE_BYTES];
    int n = 0;

    if (f->fd < 0)
        return;
    f->n = 1;
    f->past[0].term = term;
    snprintf(f->past[0].identity, sizeof(f->past[0].identity), "%s", identity);
    if (kept.term)
        f->past[f->n++] = kept;
    for (unsigned i = 0; i < f->n; i++)
        n += snprintf(text + n, sizeof(text) - (size_t)n, "%" PRIu64 " %s\n", f->past[i].term,
                      f->past[i].identity);
    if (pwrite(f->fd, text, (size_t)n, 0) != n || ftruncate(f->fd, n) < 0)
        f->n = 0;
}
