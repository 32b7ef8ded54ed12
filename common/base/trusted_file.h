/* SPDX-License-Identifier: Apache-2.0
 *
 * common/base/trusted_file.h - files of the runtime directory that a process maps or believes
 *
 * Several users may create names in a runtime directory (/run/berth is 1770 root:berth). A service
 * therefore keeps what it believes in a directory of its own, <runtime_dir>/<service>, in which no
 * other user can create or replace a name. Files are checked again when they are opened.
 *
 * A directory is accepted if it belongs to the expected user and neither group nor others may write
 * it. It is made with mode 0711: others may open names that they know and may read, but not the
 * directory itself, so they cannot lock it.
 * A file is accepted if it is a regular file, belongs to the expected user, and neither group nor
 * others may write it. Only that user and root can change or truncate it: it may be mapped. The
 * number of its links is not checked: a further link gives no right to write, and where the kernel
 * lets other users make one (fs.protected_hardlinks), they could have the file refused.
 *
 * Owns:    nothing; descriptors and texts belong to the caller. Every descriptor is O_CLOEXEC.
 * Errors:  negative errno with a text that names the path, the owner or mode found, and the needed.
 *          -EPERM: it exists and is not acceptable.
 * Threads: any.
 */
#ifndef BH_TRUSTED_FILE_H
#define BH_TRUSTED_FILE_H

#include <sys/types.h>

#include "common/base/base.h"

/* Directories in the runtime directory. Binders, the front and berth-metrics have one, too
 * (systemd/berth.tmpfiles). */
#define BH_WATCHER_DIR   "watcher"
#define BH_SCHEDULER_DIR "scheduler"
#define BH_METRICS_DIR   "metrics"

struct bh_trusted_dir {
    int fd; /* -1: not open */
    char *path;
};
/* The calling process's own directory; created when it is missing. */
int bh_trusted_dir_open(struct bh_trusted_dir *d, const char *runtime_dir, const char *service,
                        struct bh_err *err);
void bh_trusted_dir_close(struct bh_trusted_dir *d);
/* The same of another process, for readers: an O_PATH descriptor. The caller judges the owner. */
int bh_trusted_dir_find(const char *runtime_dir, const char *service, uid_t *ret_owner,
                        struct bh_err *err);

/* Removes a directory of our own with all that is below it; links are not followed. Best effort. */
void bh_remove_tree(const char *dir);

/* Opens an existing file. access: O_RDONLY or O_RDWR. A descriptor; -ENOENT, -EPERM, -errno. */
int bh_trusted_open(const struct bh_trusted_dir *d, const char *name, int access, uid_t owner,
                    struct bh_err *err);
/* Makes a file that does not exist, for reading and writing. A descriptor; -EEXIST, -ENOSPC,
 * -errno. */
int bh_trusted_create(const struct bh_trusted_dir *d, const char *name, mode_t mode,
                      struct bh_err *err);
/* Opens the process's own file, or makes it. One that is not acceptable is logged, removed and
 * made again: *ret_refused. *ret_made: it is empty and new. */
int bh_trusted_open_own(const struct bh_trusted_dir *d, const char *name, mode_t mode,
                        bool *ret_made, bool *ret_refused, struct bh_err *err);
/* The whole content of an acceptable file, NUL-terminated; the caller frees *ret. -EFBIG above
 * max. */
int bh_trusted_read(const struct bh_trusted_dir *d, const char *name, size_t max, uid_t owner,
                    char **ret, size_t *ret_n, struct bh_err *err);

/* A number for this boot of this host (boot id, and /etc/machine-id or else the host's name). Never
 * 0. A record with it does not hold on another host, nor after a reboot. -errno: the boot id
 * cannot be read. */
int bh_host_boot(uint64_t *ret);
#endif
