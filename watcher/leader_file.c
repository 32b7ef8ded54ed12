/* SPDX-License-Identifier: Apache-2.0
 *
 * watcher/leader_file.c - which watcher held the lease in this runtime directory before us
 *
 * A block of FILE_BYTES: a head with the file it belongs to and a checksum, then lines of term,
 * blank, identity. It is replaced by one pwrite. It belongs to this file (device and inode) on this
 * boot of this host: a copied directory gives nothing. The lock is the kernel's: held as long as
 * the process lives, stopped or not; no other user can open the file to lock it.
 */
#include "watcher/leader.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/log.h"
#include "common/base/trusted_file.h"

#define FILE_NAME  "lease"                                         /* in BH_WATCHER_DIR */
#define HEAD       "berth lease 2 %016" PRIx64 " %016" PRIx64 "\n" /* belongs to, checksum */
#define HEAD_BYTES 48
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

static uint64_t checksum(const struct bh_leader_file *f, const char block[static FILE_BYTES])
{
    return bh_hash(block + HEAD_BYTES, FILE_BYTES - HEAD_BYTES, f->belongs_to);
}

/* What the block is not believed for; NULL: it is believed. */
static const char *find_fault(const struct bh_leader_file *f, const char *block, ssize_t n)
{
    char head[HEAD_BYTES + 1], found[HEAD_BYTES + 1];

    if (n != FILE_BYTES)
        return "its length is not that of a record";
    snprintf(head, sizeof(head), HEAD, f->belongs_to, checksum(f, block));
    snprintf(found, sizeof(found), "%.*s", HEAD_BYTES, block);
    if (memcmp(found, head, strlen("berth lease 2 ")) != 0)
        return "it is of another version";
    if (memcmp(found, head, strlen("berth lease 2 ") + 16) != 0)
        return "it belongs to another host, another boot, or another directory";
    return bh_streq(found, head) ? NULL : "its checksum is wrong";
}

static void read_block(struct bh_leader_file *f, const char *path)
{
    char block[FILE_BYTES + 1];
    ssize_t n = pread(f->fd, block, FILE_BYTES, 0);
    const char *fault = n == 0 ? NULL : find_fault(f, block, n);

    if (fault)
        bh_log_warn("The lease of the watcher before is not taken over without waiting: its record "
                    "is not believed",
                    bh_kv_s("file", path), bh_kv_s("why", fault));
    if (fault || n == 0)
        return;
    block[n] = '\0';
    char *rest = block + HEAD_BYTES, *line;
    while ((line = strsep(&rest, "\n")) && f->n < BH_ARRAY_LEN(f->past))
        read_line(f, line);
}

/* Versions before kept it in the runtime directory itself. Another user's stays. */
static void remove_old_file(const char *runtime_dir)
{
    BH_CLEANUP(bh_freep) char *old = bh_asprintf("%s/" FILE_NAME, runtime_dir);
    struct stat st;

    if (lstat(old, &st) < 0 || st.st_uid != geteuid() || !S_ISREG(st.st_mode))
        return;
    if (st.st_size)
        bh_log_info("The record of a watcher of an earlier version is not used",
                    bh_kv_s("file", old));
    (void)unlink(old);
}

/* What a record has to belong to. */
static int find_belonging(struct bh_leader_file *f)
{
    struct stat st;
    uint64_t host_boot = 0;
    int rc = fstat(f->fd, &st) < 0 ? -errno : bh_host_boot(&host_boot);
    const uint64_t words[] = {host_boot, st.st_dev, st.st_ino};

    f->belongs_to = rc == 0 ? bh_hash(words, sizeof(words), 0) | 1 : 0;
    return rc;
}

int bh_leader_file_open(struct bh_leader_file *f, const char *runtime_dir, struct bh_err *err)
{
    bool made = false, refused;
    struct bh_trusted_dir d;

    *f = (struct bh_leader_file){.fd = -1};
    if (!runtime_dir)
        return 0;
    int rc = bh_trusted_dir_open(&d, runtime_dir, BH_WATCHER_DIR, err);
    if (rc == 0)
        rc = f->fd = bh_trusted_open_own(&d, FILE_NAME, 0600, &made, &refused, err);
    BH_CLEANUP(bh_freep) char *path = bh_asprintf("%s/" FILE_NAME, d.path ? d.path : runtime_dir);
    bh_trusted_dir_close(&d);
    if (rc == -ENOSPC) { /* a full disk must not keep a process down */
        bh_log_warn("No space for the record of the lease: a watcher that starts after this one "
                    "waits until the lease expires",
                    bh_kv_s("err", err->msg));
        return 0;
    }
    if (rc < 0)
        return rc;
    if (flock(f->fd, LOCK_EX | LOCK_NB) < 0) {
        bh_leader_file_close(f);
        return bh_err_set(err, -EBUSY, "\"%s\": another watcher uses this runtime directory", path);
    }
    remove_old_file(runtime_dir);
    rc = find_belonging(f);
    if (rc == 0)
        read_block(f, path);
    else
        bh_log_warn("The lease is not recorded: this boot has no name", bh_kv_s("file", path),
                    bh_kv_s("err", strerror(-rc)));
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
    char block[FILE_BYTES + 1], head[HEAD_BYTES + 1];
    size_t n = HEAD_BYTES;

    if (f->fd < 0 || !f->belongs_to)
        return;
    f->n = 1;
    f->past[0].term = term;
    snprintf(f->past[0].identity, sizeof(f->past[0].identity), "%s", identity);
    if (kept.term)
        f->past[f->n++] = kept;
    memset(block, '\n', FILE_BYTES);
    for (unsigned i = 0; i < f->n; i++) {
        n += (size_t)snprintf(block + n, sizeof(block) - n, "%" PRIu64 " %s", f->past[i].term,
                              f->past[i].identity);
        block[n++] = '\n';
    }
    snprintf(head, sizeof(head), HEAD, f->belongs_to, checksum(f, block));
    memcpy(block, head, HEAD_BYTES);
    if (pwrite(f->fd, block, FILE_BYTES, 0) != FILE_BYTES)
        f->n = 0;
}
