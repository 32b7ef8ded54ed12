/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/wasm/wasi.c - the functions of WASI preview 1 that compilers' run times call
 *
 * No files, no environment, no network: a guest has arguments, two clocks, random numbers, and an
 * output that decorates its errors. All others say that they are not supported.
 */
#include <endian.h>
#include <sys/random.h>
#include <time.h>

#include "scheduler/wasm/guest_int.h"

#define EBADF_  8u
#define EFAULT_ 21u
#define EINVAL_ 28u
#define ENOSYS_ 52u
#define OUT_MAX ((size_t)64 << 10) /* of what a hook writes; the rest is dropped */

static bool answer(uint64_t *v, uint32_t errno_)
{
    v[0] = errno_;
    return true;
}

static bool put32(struct bh_wasm *w, uint64_t at, uint32_t value)
{
    void *p = bh_wasm_memory(w, (uint32_t)at, 4);

    value = htole32(value);
    if (p)
        memcpy(p, &value, 4);
    return p;
}

static bool fd_write(struct bh_wasm *w, void *user, uint64_t *v)
{
    struct bh_guest_run *r = user;
    uint64_t written = 0, out = v[3];
    uint32_t iov[2], n = (uint32_t)v[2];
    const char *list;

    if ((uint32_t)v[0] != 1 && (uint32_t)v[0] != 2)
        return answer(v, EBADF_);
    if (n > UINT32_MAX / sizeof iov ||
        !(list = bh_wasm_memory(w, (uint32_t)v[1], n * (uint32_t)sizeof iov)))
        return answer(v, EFAULT_);
    for (uint32_t i = 0; i < n; i++) {
        memcpy(iov, list + i * sizeof iov, sizeof iov);
        uint32_t len = le32toh(iov[1]);
        const char *p = bh_wasm_memory(w, le32toh(iov[0]), len);
        if (!p)
            return answer(v, EFAULT_);
        bh_buf_add(&r->out, p, BH_MIN(len, OUT_MAX - BH_MIN(r->out.n, OUT_MAX)));
        written += len;
    }
    return answer(v, put32(w, out, (uint32_t)written) ? 0 : EFAULT_);
}

static bool clock_time_get(struct bh_wasm *w, void *user BH_UNUSED, uint64_t *v)
{
    struct timespec t;
    void *p = bh_wasm_memory(w, (uint32_t)v[2], 8);

    if ((uint32_t)v[0] > 1)
        return answer(v, EINVAL_);
    clock_gettime((uint32_t)v[0] ? CLOCK_MONOTONIC : CLOCK_REALTIME, &t);
    uint64_t ns = htole64((uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec);
    if (p)
        memcpy(p, &ns, 8);
    return answer(v, p ? 0 : EFAULT_);
}

static bool random_get(struct bh_wasm *w, void *user BH_UNUSED, uint64_t *v)
{
    uint32_t n = (uint32_t)v[1];
    char *p = bh_wasm_memory(w, (uint32_t)v[0], n);

    for (ssize_t got; p && n; n -= (uint32_t)got, p += got)
        if ((got = getrandom(p, n, 0)) < 0)
            return answer(v, ENOSYS_);
    return answer(v, p ? 0 : EFAULT_);
}

static bool args_sizes_get(struct bh_wasm *w, void *user, uint64_t *v)
{
    const struct bh_guest_args *a = &((struct bh_guest_run *)user)->g->args;
    size_t n = 0;

    for (uint32_t i = 0; i < a->argc; i++)
        n += strlen(a->argv[i]) + 1;
    return answer(v, put32(w, v[0], a->argc) && put32(w, v[1], (uint32_t)n) ? 0 : EFAULT_);
}

static bool args_get(struct bh_wasm *w, void *user, uint64_t *v)
{
    const struct bh_guest_args *a = &((struct bh_guest_run *)user)->g->args;
    uint32_t list = (uint32_t)v[0], to = (uint32_t)v[1];

    for (uint32_t i = 0; i < a->argc; i++) {
        uint32_t n = (uint32_t)strlen(a->argv[i]) + 1;
        void *p = bh_wasm_memory(w, to, n);
        if (!p || !put32(w, list + (uint64_t)4 * i, to))
            return answer(v, EFAULT_);
        memcpy(p, a->argv[i], n);
        to += n;
    }
    return answer(v, 0);
}

static bool environ_sizes_get(struct bh_wasm *w, void *user BH_UNUSED, uint64_t *v)
{
    return answer(v, put32(w, v[0], 0) && put32(w, v[1], 0) ? 0 : EFAULT_);
}

static bool nothing(struct bh_wasm *w BH_UNUSED, void *user BH_UNUSED, uint64_t *v)
{
    return answer(v, 0);
}

static bool no_file(struct bh_wasm *w BH_UNUSED, void *user BH_UNUSED, uint64_t *v)
{
    return answer(v, EBADF_);
}

static bool not_supported(struct bh_wasm *w BH_UNUSED, void *user BH_UNUSED, uint64_t *v)
{
    return answer(v, ENOSYS_);
}

static bool fd_fdstat_get(struct bh_wasm *w, void *user BH_UNUSED, uint64_t *v)
{
    char *p = bh_wasm_memory(w, (uint32_t)v[1], 24);

    if ((uint32_t)v[0] > 2)
        return answer(v, EBADF_);
    if (p) {
        memset(p, 0, 24);
        *p = 2; /* a character device */
    }
    return answer(v, p ? 0 : EFAULT_);
}

static bool proc_exit(struct bh_wasm *w, void *user, uint64_t *v)
{
    struct bh_guest_run *r = user;

    r->exited = true;
    r->exit_code = (uint32_t)v[0];
    return bh_wasm_fail(w, "module closed with exit_code(%u)", r->exit_code);
}

#define F(name_, type_, call_)                                                                     \
    {                                                                                              \
        "wasi_snapshot_preview1", name_, type_, call_                                              \
    }
const struct bh_wasm_host bh_guest_wasi[] = {
    F("fd_write", "iiii:i", fd_write),
    F("clock_time_get", "iIi:i", clock_time_get),
    F("random_get", "ii:i", random_get),
    F("args_sizes_get", "ii:i", args_sizes_get),
    F("args_get", "ii:i", args_get),
    F("environ_sizes_get", "ii:i", environ_sizes_get),
    F("environ_get", "ii:i", nothing),
    F("proc_exit", "i:", proc_exit),
    F("sched_yield", ":i", nothing),
    F("poll_oneoff", "iiii:i", not_supported),
    F("fd_fdstat_get", "ii:i", fd_fdstat_get),
    F("fd_fdstat_set_flags", "ii:i", no_file),
    F("fd_prestat_get", "ii:i", no_file),
    F("fd_prestat_dir_name", "iii:i", no_file),
    F("fd_read", "iiii:i", no_file),
    F("fd_pread", "iiiIi:i", no_file),
    F("fd_pwrite", "iiiIi:i", no_file),
    F("fd_readdir", "iiiIi:i", no_file),
    F("fd_close", "i:i", no_file),
    F("fd_seek", "iIii:i", no_file),
    F("fd_sync", "i:i", no_file),
    F("fd_filestat_get", "ii:i", no_file),
    F("fd_filestat_set_size", "iI:i", no_file),
    F("path_open", "iiiiiIIii:i", not_supported),
    F("path_filestat_get", "iiiii:i", not_supported),
    F("path_filestat_set_times", "iiiiIIi:i", not_supported),
    F("path_create_directory", "iii:i", not_supported),
    F("path_remove_directory", "iii:i", not_supported),
    F("path_unlink_file", "iii:i", not_supported),
    F("path_rename", "iiiiii:i", not_supported),
    F("path_link", "iiiiiii:i", not_supported),
    F("path_symlink", "iiiii:i", not_supported),
    F("path_readlink", "iiiiii:i", not_supported),
    F("sock_accept", "iii:i", no_file),
    F("sock_shutdown", "ii:i", no_file),
};
const size_t bh_guest_n_wasi = BH_ARRAY_LEN(bh_guest_wasi);
