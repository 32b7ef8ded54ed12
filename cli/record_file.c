/* SPDX-License-Identifier: Apache-2.0
 *
 * cli/record_file.c - record files, plain or gzip
 *
 * A gzip stream is flushed to a byte border with every flush, so what was written can be unpacked
 * whenever the writer ends.
 */
#include "cli/record.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "simulator/server/sim.h"

#define BUFFER_BYTES (1u << 20)

/* errno is the failed call's; the first one stays. */
static void note_failure(struct bh_record_file *f, bool failed)
{
    if (failed && !f->error)
        f->error = errno ? errno : EIO;
}

static void put(struct bh_record_file *f)
{
    note_failure(f, !f->error && f->line.n &&
                        gzwrite(f->z, f->line.p, (unsigned)f->line.n) != (int)f->line.n);
    f->unflushed = true;
    bh_buf_reset(&f->line);
}

int bh_record_file_open(struct bh_record_file *f, const char *path, bool force, struct bh_err *err)
{
    size_t n = strlen(path);
    int fd = bh_streq(path, "-")
                 ? dup(STDOUT_FILENO)
                 : open(path, O_WRONLY | O_CREAT | O_CLOEXEC | (force ? O_TRUNC : O_EXCL), 0644);

    f->path = path;
    if (fd < 0 && errno == EEXIST)
        return bh_err_set(err, -EEXIST, "\"%s\" is there already; --force replaces it", path);
    if (fd < 0)
        return bh_err_set(err, -errno, "could not write \"%s\": %s", path, strerror(errno));
    f->z = gzdopen(fd, n > 3 && bh_streq(path + n - 3, ".gz") ? "wb6" : "wbT");
    bh_assert(f->z && gzbuffer(f->z, BUFFER_BYTES) == 0);
    return 0;
}

static void flush(struct bh_record_file *f, int how)
{
    note_failure(f, !f->error && gzflush(f->z, how) != Z_OK);
    f->unflushed = false;
    f->bytes = (uint64_t)BH_MAX(gzoffset(f->z), gztell(f->z) * gzdirect(f->z)); /* of a pipe -1 */
}

void bh_record_file_flush(struct bh_record_file *f)
{
    if (f->unflushed)
        flush(f, Z_SYNC_FLUSH);
}

int bh_record_file_close(struct bh_record_file *f, struct bh_err *err)
{
    if (!f->z)
        return 0;
    flush(f, Z_FINISH);
    note_failure(f, gzclose(f->z) != Z_OK);
    bh_buf_fini(&f->line);
    f->z = NULL;
    if (f->error)
        return bh_err_set(err, -f->error, "could not write \"%s\": %s", f->path,
                          strerror(f->error));
    return 0;
}

/* Readers of other programs do not know it: only when asked for. */
void bh_record_file_header(struct bh_record_file *f, int64_t start_ns, bool anonymised)
{
    char time[40];

    bh_time_format_micro_ns(time, start_ns);
    bh_buf_addf(&f->line,
                "{\"berthRecord\":1,\"time\":\"%s\",\"program\":\"berth/%s\",\"anonymised\":%s}\n",
                time, BH_VERSION, anonymised ? "true" : "false");
    put(f);
}

void bh_record_file_add(struct bh_record_file *f, int64_t time_ns, enum bh_record_event e,
                        const struct bh_json *obj)
{
    bh_record_write(&f->line, time_ns, e, obj);
    f->records++;
    put(f);
}

struct bh_json *bh_record_tombstone(struct bh_arena *a, const char *api_version, const char *kind,
                                    const char *ns, const char *name)
{
    return bh_json_make(a, "apiVersion: %s, kind: %s, metadata: {name: %s, namespace?: %s}",
                        api_version, kind, name, ns);
}
