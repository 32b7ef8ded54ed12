/* SPDX-License-Identifier: Apache-2.0
 *
 * common/wasm/compiled.c - guests that were compiled ahead of time: found in the cache, loaded
 *
 * A shared object is code of this process, so its file has to be as safe as a native plugin's. What is
 * loaded stays loaded.
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/owned.h"
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

/* Files whose code is in this process, for its life: the loader knows them by the descriptor's number
 * and by their inode, so that neither may become another file's. */
struct loaded {
    struct loaded *next;
    dev_t dev;
    ino_t ino;
    const struct bh_wasm_compiled *c; /* NULL: it has none */
};
static struct {
    pthread_mutex_t lock;
    struct loaded *first;
} all = {.lock = PTHREAD_MUTEX_INITIALIZER};

static int check(const struct bh_wasm_module *m, const struct bh_wasm_compiled *c, const char *path,
                 const char *sha256, struct bh_err *err)
{
    char made_with[65];

    if (!c)
        return bh_err_set(err, -EINVAL, "%s is no guest that berth wasmc has compiled", path);
    bh_wasm_made_with(made_with);
    if (memcmp(c->made_with, made_with, sizeof made_with) != 0)
        return bh_err_set(err, -ESTALE,
                          "%s was made by another version of berth wasmc: make it again", path);
    if (memcmp(c->sha256, sha256, 65) != 0 || c->n != m->n_funcs - m->n_imported_funcs)
        return bh_err_set(err, -EINVAL, "%s is of another guest: sha256:%.64s", path, c->sha256);
    return 0;
}

/* Takes the descriptor. NULL: err. */
static const struct loaded *load_locked(int fd, const char *path, struct bh_err *err)
{
    char name[32];
    struct loaded *l = all.first;
    struct stat st;

    if (fstat(fd, &st) < 0) {
        bh_err_set(err, -errno, "%s: %s", path, strerror(errno));
        close(fd);
        return NULL;
    }
    while (l && (l->dev != st.st_dev || l->ino != st.st_ino))
        l = l->next;
    if (l) {
        close(fd);
    } else {
        snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
        void *lib = dlopen(name, RTLD_NOW | RTLD_LOCAL);
        if (!lib) {
            bh_err_set(err, -EINVAL, "%s could not be loaded: %s", path, dlerror());
            close(fd);
            return NULL;
        }
        l = bh_calloc(1, sizeof *l);
        *l = (struct loaded){all.first, st.st_dev, st.st_ino, dlsym(lib, BH_WASM_COMPILED_SYMBOL)};
        all.first = l;
    }
    return l;
}

int bh_wasm_use_compiled(struct bh_wasm_module *m, const char *sha256, struct bh_err *err)
{
    BH_CLEANUP(bh_freep) char *path = bh_asprintf("%s/%s.so", bh_wasm_cache_dir(), sha256);

    bh_assert(!m->compiled);
    if (access(path, F_OK) < 0 && (errno == ENOENT || errno == ENOTDIR))
        return 0;
    int fd = bh_owned_open(path, err);
    if (fd < 0)
        return fd;
    pthread_mutex_lock(&all.lock);
    const struct loaded *l = load_locked(fd, path, err);
    pthread_mutex_unlock(&all.lock);
    int rc = l ? check(m, l->c, path, sha256, err) : -EINVAL;
    if (rc < 0)
        return rc;
    m->compiled = l->c;
    return 1;
}

bool bh_wasm_is_compiled(const struct bh_wasm_module *m)
{
    return m->compiled;
}
