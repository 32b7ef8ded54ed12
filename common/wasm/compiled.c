/* SPDX-License-Identifier: Apache-2.0
 *
 * common/wasm/compiled.c - guests that were compiled ahead of time: found in the cache, loaded
 *
 * A shared object is code of this process, so its file has to be as safe as a native plugin's: owner and
 * mode, the digest that berth wasmc wrote beside it, and the first load in a child process. What is
 * loaded stays loaded.
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/owned.h"
#include "common/base/trial.h"
#include "common/wasm/store.h"
#include "common/wasm/wasm_int.h"

/* ---- what compiled code calls ------------------------------------------------------------------ */

static struct bh_wasm *of(struct bh_wasm_view *x)
{
    return bh_container_of(x, struct bh_wasm, x);
}

static bool look(struct bh_wasm_view *x)
{
    x->host_func = 0; /* the call did more than to read what it is about: bh_wasm_ask() */
    return bh_wasm_more_time(of(x), &x->steps);
}

static uint32_t memory_grow(struct bh_wasm_view *x, uint32_t pages)
{
    return bh_wasm_memory_grow(of(x), pages);
}

static bool memory_init(struct bh_wasm_view *x, uint32_t data, uint32_t to, uint32_t from,
                        uint32_t n)
{
    return bh_wasm_memory_init(of(x), data, to, from, n);
}

static bool table_init(struct bh_wasm_view *x, uint32_t table, uint32_t elem, uint32_t to,
                       uint32_t from, uint32_t n)
{
    return bh_wasm_table_init(of(x), table, elem, to, from, n);
}

static bool table_copy(struct bh_wasm_view *x, uint32_t table, uint32_t other, uint32_t to,
                       uint32_t from, uint32_t n)
{
    return bh_wasm_table_copy(of(x), table, other, to, from, n);
}

static bool table_fill(struct bh_wasm_view *x, uint32_t table, uint32_t at, uint32_t ref,
                       uint32_t n)
{
    return bh_wasm_table_fill(of(x), table, at, ref, n);
}

static uint32_t table_grow(struct bh_wasm_view *x, uint32_t table, uint32_t n, uint32_t ref)
{
    return bh_wasm_table_grow(of(x), table, n, ref);
}

const struct bh_wasm_help bh_wasm_help = {look,       memory_grow, memory_init, table_init,
                                          table_copy, table_fill,  table_grow};

/* ---- the cache --------------------------------------------------------------------------------- */

const char *bh_wasm_cache_dir(void)
{
    const char *dir = getenv("BERTH_WASM_CACHE");

    return dir && *dir ? dir : BH_WASM_CACHE;
}

#define HEADER_SUFFIX ".header"

/* Files whose code is in this process, for its life: the loader knows them by the descriptor's number
 * and by their inode, so that neither may become another file's. */
struct loaded {
    struct loaded *next;
    dev_t dev;
    ino_t ino;
    const struct bh_wasm_compiled *c;
};
static struct {
    pthread_mutex_t lock;
    struct loaded *first;
} all = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* A compiled guest that is looked for. */
struct candidate {
    const struct bh_wasm_module *m;
    const char *path, *sha256;
    int fd; /* of the shared object: what is checked is what is loaded */
    struct bh_wasm_header header;
    const struct bh_wasm_compiled *c; /* once it is loaded */
};

static int read_header(struct candidate *x, struct bh_err *err)
{
    BH_CLEANUP(bh_freep) char *path = bh_asprintf("%s" HEADER_SUFFIX, x->path), *text = NULL;
    size_t n = 0;

    if (access(path, F_OK) < 0 && errno == ENOENT)
        return bh_err_set(err, -ENOENT,
                          "%s has no digest beside it (%s): make it again with berth wasmc",
                          x->path, path);
    int fd = bh_owned_open(path, err);
    if (fd < 0)
        return fd;
    int rc = bh_read_fd(fd, BH_WASM_HEADER_BYTES, &text, &n);
    close(fd);
    if (rc < 0 && rc != -EFBIG)
        return bh_err_set(err, rc, "%s: %s", path, strerror(-rc));
    if (rc < 0 || bh_wasm_header_read(text, n, &x->header) < 0)
        return bh_err_set(err, -EBADMSG, "%s is damaged: make the guest again with berth wasmc",
                          path);
    return 0;
}

static int check_names(const struct candidate *x, const char *made_with, const char *guest,
                       struct bh_err *err)
{
    char ours[65];

    bh_wasm_made_with(ours);
    if (memcmp(made_with, ours, sizeof ours) != 0)
        return bh_err_set(err, -ESTALE,
                          "%s was made by another version of berth wasmc: make it again", x->path);
    return memcmp(guest, x->sha256, 65) == 0
               ? 0
               : bh_err_set(err, -EINVAL, "%s is of another guest: sha256:%.64s", x->path, guest);
}

static int check_code(const struct candidate *x, struct bh_err *err)
{
    BH_CLEANUP(bh_freep) char *code = NULL;
    size_t n = 0;
    int rc = bh_read_fd(x->fd, BH_WASM_CODE_MAX, &code, &n);

    if (rc < 0)
        return bh_err_set(err, rc, "%s: %s", x->path, strerror(-rc));
    if (n == x->header.bytes && bh_wasm_digest_check(code, n, x->header.code, NULL) == 0)
        return 0;
    return bh_err_set(err, -EBADMSG,
                      "%s is damaged, it is not what berth wasmc wrote (%zu bytes, %llu were "
                      "written): make it again",
                      x->path, n, (unsigned long long)x->header.bytes);
}

/* Runs code of the file. */
static int load_code(void *arg, struct bh_err *err)
{
    struct candidate *x = arg;
    char name[32];

    snprintf(name, sizeof name, "/proc/self/fd/%d", x->fd);
    void *lib = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!lib)
        return bh_err_set(err, -EINVAL, "%s could not be loaded: %s", x->path, dlerror());
    x->c = dlsym(lib, BH_WASM_COMPILED_SYMBOL);
    if (!x->c)
        return bh_err_set(err, -EINVAL, "%s is no guest that berth wasmc has compiled", x->path);
    int rc = check_names(x, x->c->made_with, x->c->sha256, err);
    if (rc == 0 && x->c->n != x->m->n_funcs - x->m->n_imported_funcs)
        rc = bh_err_set(err, -EINVAL, "%s has %u functions, the guest has %u", x->path, x->c->n,
                        x->m->n_funcs - x->m->n_imported_funcs);
    return rc;
}

/* Takes the descriptor. */
static int load_locked(struct candidate *x, struct bh_err *err)
{
    struct loaded *l = all.first;
    struct stat st;
    int rc =
        fstat(x->fd, &st) < 0 ? bh_err_set(err, -errno, "%s: %s", x->path, strerror(errno)) : 0;

    while (rc == 0 && l && (l->dev != st.st_dev || l->ino != st.st_ino))
        l = l->next;
    if (rc == 0 && l) {
        close(x->fd);
        x->c = l->c;
        return check_names(x, x->c->made_with, x->c->sha256, err);
    }
    rc = rc < 0 ? rc : check_code(x, err);
    rc = rc < 0 ? rc : bh_try_in_child(x->path, load_code, x, err);
    rc = rc < 0 ? rc : load_code(x, err);
    if (rc < 0) {
        close(x->fd);
        return rc;
    }
    l = bh_calloc(1, sizeof *l);
    *l = (struct loaded){all.first, st.st_dev, st.st_ino, x->c};
    all.first = l;
    return 0;
}

int bh_wasm_use_compiled(struct bh_wasm_module *m, const char *sha256, struct bh_err *err)
{
    BH_CLEANUP(bh_freep) char *path = bh_asprintf("%s/%s.so", bh_wasm_cache_dir(), sha256);
    struct candidate x = {.m = m, .path = path, .sha256 = sha256};

    bh_assert(!m->compiled);
    if (access(path, F_OK) < 0 && (errno == ENOENT || errno == ENOTDIR))
        return 0;
    if ((x.fd = bh_owned_open(path, err)) < 0)
        return x.fd;
    int rc = read_header(&x, err);
    rc = rc < 0 ? rc : check_names(&x, x.header.made_with, x.header.guest, err);
    if (rc < 0) {
        close(x.fd);
        return rc;
    }
    pthread_mutex_lock(&all.lock);
    rc = load_locked(&x, err);
    pthread_mutex_unlock(&all.lock);
    if (rc < 0)
        return rc;
    m->compiled = x.c;
    return 1;
}

int bh_wasm_seal(const char *path, const char *sha256, struct bh_err *err)
{
    BH_CLEANUP(bh_freep) char *to = bh_asprintf("%s" HEADER_SUFFIX, path), *code = NULL;
    BH_CLEANUP(bh_freep) char *dir = bh_strndup(path, (size_t)(strrchr(path, '/') - path));
    char text[BH_WASM_HEADER_BYTES + 1];
    struct bh_wasm_header h;
    size_t n = 0;
    int rc = bh_sync_path(path);

    rc = rc < 0 ? rc : bh_read_file(path, BH_WASM_CODE_MAX, &code, &n);
    if (rc < 0)
        return bh_err_set(err, rc, "%s: %s", path, strerror(-rc));
    bh_wasm_made_with(h.made_with);
    snprintf(h.guest, sizeof h.guest, "%s", sha256);
    bh_wasm_digest(code, n, h.code);
    h.bytes = n;
    bh_wasm_header_write(&h, text);
    rc = bh_write_file(to, text, BH_WASM_HEADER_BYTES, 0644);
    rc = rc < 0 ? rc : bh_sync_path(dir);
    return rc < 0 ? bh_err_set(err, rc, "%s: %s", to, strerror(-rc)) : 0;
}

bool bh_wasm_is_compiled(const struct bh_wasm_module *m)
{
    return m->compiled;
}
