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

#define BUFFER_MAX ((size_t)1 << 20)

static void write_all(struct bh_record_file *f, const void *p, size_t n)
{
    const char *at = p;

    while (n && !f->error) {
        ssize_t w = write(f->fd, at, n);
        if (w < 0 && errno == EINTR)
            continue;
        if (w <= 0) {
            f->error = w < 0 ? errno : EIO;
            return;
        }
        at += w;
        n -= (size_t)w;
        f->bytes += (uint64_t)w;
    }
}

static void pack(struct bh_record_file *f, int flush)
{
    unsigned char out[65536];

    f->z.next_in = (Bytef *)f->plain.p;
    f->z.avail_in = (uInt)f->plain.n;
    do {
        f->z.next_out = out;
        f->z.avail_out = sizeof(out);
        (void)deflate(&f->z, flush);
        write_all(f, out, sizeof(out) - f->z.avail_out);
    } while (f->z.avail_out == 0);
}

static void write_out(struct bh_record_file *f, bool last)
{
    if (f->gzip && (f->plain.n || last))
        pack(f, last ? Z_FINISH : Z_SYNC_FLUSH);
    else if (f->plain.n)
        write_all(f, f->plain.p, f->plain.n);
    bh_buf_reset(&f->plain);
}

int bh_record_file_open(struct bh_record_file *f, const char *path, bool force, struct bh_err *err)
{
    size_t n = strlen(path);

    f->path = path;
    f->fd = bh_streq(path, "-")
                ? dup(STDOUT_FILENO)
                : open(path, O_WRONLY | O_CREAT | O_CLOEXEC | (force ? O_TRUNC : O_EXCL), 0644);
    if (f->fd < 0 && errno == EEXIST)
        return bh_err_set(err, -EEXIST, "\"%s\" is there already; --force replaces it", path);
    if (f->fd < 0)
        return bh_err_set(err, -errno, "could not write \"%s\": %s", path, strerror(errno));
    f->gzip = n > 3 && bh_streq(path + n - 3, ".gz");
    if (f->gzip)
        bh_assert(deflateInit2(&f->z, 6, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY) ==
                  Z_OK);
    return 0;
}

int bh_record_file_close(struct bh_record_file *f, struct bh_err *err)
{
    if (f->fd < 0)
        return 0;
    write_out(f, true);
    if (close(f->fd) < 0 && !f->error)
        f->error = errno;
    if (f->gzip)
        deflateEnd(&f->z);
    bh_buf_fini(&f->plain);
    f->fd = -1;
    if (f->error)
        return bh_err_set(err, -f->error, "could not write \"%s\": %s", f->path,
                          strerror(f->error));
    return 0;
}

void bh_record_file_flush(struct bh_record_file *f)
{
    write_out(f, false);
}

/* Readers of other programs do not know it: only when asked for. */
void bh_record_file_header(struct bh_record_file *f, int64_t start_ns, bool anonymised)
{
    char time[40];

    bh_time_format_micro_ns(time, start_ns);
    bh_buf_addf(&f->plain,
                "{\"berthRecord\":1,\"time\":\"%s\",\"program\":\"berth/%s\",\"anonymised\":%s}\n",
                time, BH_VERSION, anonymised ? "true" : "false");
}

void bh_record_file_add(struct bh_record_file *f, int64_t time_ns, enum bh_record_event e,
                        const struct bh_json *obj)
{
    bh_record_write(&f->plain, time_ns, e, obj);
    f->records++;
    if (f->plain.n > BUFFER_MAX)
        write_out(f, false);
}

struct bh_json *bh_record_tombstone(struct bh_arena *a, const char *api_version, const char *kind,
                                    const char *ns, const char *name)
{
    struct bh_json *o = bh_json_new(a, BH_JSON_OBJECT), *meta;

    bh_json_set_str(a, o, "apiVersion", api_version);
    bh_json_set_str(a, o, "kind", kind);
    meta = bh_json_obj_at(a, o, "metadata");
    bh_json_set_str(a, meta, "name", name);
    bh_json_set_text(a, meta, "namespace", ns);
    return o;
}
