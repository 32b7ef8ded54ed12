/* SPDX-License-Identifier: Apache-2.0
 *
 * watcher/guests.c - WebAssembly guests that the configuration has a URL for, downloaded
 */
#include "watcher/guests.h"

#include <errno.h>
#include <stdatomic.h>
#include <sys/stat.h>

#include "common/api/download.h"
#include "common/base/log.h"
#include "common/data/yaml.h"
#include "common/wasm/store.h"
#include "common/wasm/wasm.h"

#define LOOK_MS    1000u
#define CONFIG_MAX ((size_t)4 << 20)
#define PAUSE_NS   UINT64_C(1000000000) /* after the first failure; doubles */
#define PAUSE_MAX  UINT64_C(60000000000)

struct wanted { /* a guest */
    struct wanted *next;
    char *url;
    char sha256[65];
    bool there;
    uint64_t not_before_ns, pause_ns;
};
struct bh_guests {
    uv_loop_t *loop;
    uv_timer_t timer;
    uv_work_t work;
    char *config, *store;
    struct stat seen; /* the file, as it was read */
    struct wanted *first;
    bool working, closing, closed; /* closed: the timer is */
    atomic_bool stop;
    /* ---- of the download that runs ---- */
    char *url, sha256[65];
    struct bh_err err;
    int rc;
};

/* ---- the list -------------------------------------------------------------------------------- */

static void forget(struct bh_guests *g)
{
    for (struct wanted *w = g->first, *next; w; w = next) {
        next = w->next;
        free(w->url);
        free(w);
    }
    g->first = NULL;
}

static struct wanted *find_wanted(const struct bh_guests *g, const char *sha256)
{
    struct wanted *w = g->first;

    while (w && !bh_streq(w->sha256, sha256))
        w = w->next;
    return w;
}

static bool is_wanted(void *arg, const char *sha256)
{
    return find_wanted(arg, sha256);
}

static void add(struct bh_guests *g, const struct bh_json *args)
{
    const char *url = bh_json_get_text(args, "guestURL");
    char sha256[65], *bytes = NULL;
    struct bh_err ignored;
    size_t n;

    if ((strncmp(url, "http://", 7) != 0 && strncmp(url, "https://", 8) != 0) ||
        bh_wasm_digest_read(bh_json_get_text(args, "guestDigest"), sha256) < 0 ||
        find_wanted(g, sha256))
        return; /* a file, not pinned (which the scheduler refuses), or the same once more */
    struct wanted *w = bh_calloc(1, sizeof *w);
    w->url = bh_strdup(url);
    memcpy(w->sha256, sha256, sizeof sha256);
    w->there = bh_wasm_store_get(g->store, sha256, &bytes, &n, &ignored) == 0;
    w->next = g->first;
    g->first = w;
    free(bytes);
}

static void read_config(struct bh_guests *g)
{
    struct bh_arena a BH_CLEANUP(bh_arena_fini) = {0};
    BH_CLEANUP(bh_freep) char *text = NULL;
    struct bh_json *tree = NULL;
    struct bh_err err = {0};
    size_t n = 0;

    if (bh_read_file(g->config, CONFIG_MAX, &text, &n) < 0 ||
        bh_yaml_parse(&a, text, n, 0, &tree, &err) < 0)
        return; /* what was wanted still is */
    forget(g);
    bh_json_each(profile, bh_json_get_list(tree, "profiles"))
        bh_json_each(e, bh_json_get_list(profile, "pluginConfig"))
            add(g, bh_json_get(e, "args"));
    bh_wasm_store_keep(g->store, is_wanted, g);
}

static bool has_changed(struct bh_guests *g)
{
    struct stat st;

    if (stat(g->config, &st) < 0)
        return false;
    bool same = st.st_ino == g->seen.st_ino && st.st_dev == g->seen.st_dev &&
                st.st_size == g->seen.st_size && st.st_mtim.tv_sec == g->seen.st_mtim.tv_sec &&
                st.st_mtim.tv_nsec == g->seen.st_mtim.tv_nsec;
    g->seen = st;
    return !same;
}

/* ---- downloads ------------------------------------------------------------------------------- */

static void download(uv_work_t *work)
{
    struct bh_guests *g = work->data;
    struct bh_buf b BH_CLEANUP(bh_buf_fini) = {0};

    g->rc = bh_download(g->url, BH_WASM_BYTES_MAX, &g->stop, &b, &g->err);
    if (g->rc == 0)
        g->rc = bh_wasm_store_put(g->store, g->sha256, bh_buf_str(&b), b.n, &g->err);
    if (g->rc < 0 && g->rc != -ECANCELED)
        bh_wasm_store_fail(g->store, g->sha256, g->err.msg);
}

static void release(struct bh_guests *g)
{
    if (!g->closed || g->working)
        return;
    forget(g);
    free(g->url);
    free(g->config);
    free(g->store);
    free(g);
}

static void look(struct bh_guests *g);

static void on_downloaded(uv_work_t *work, int status BH_UNUSED)
{
    struct bh_guests *g = work->data;
    struct wanted *w = find_wanted(g, g->sha256);

    g->working = false;
    if (g->closing) {
        release(g);
        return;
    }
    if (g->rc < 0)
        bh_log_error("A guest could not be downloaded", bh_kv_s("guestURL", g->url),
                     bh_kv_s("err", g->err.msg));
    else
        bh_log_info("A guest was downloaded", bh_kv_s("guestURL", g->url),
                    bh_kv_s("sha256", g->sha256));
    if (w && g->rc == 0) {
        w->there = true;
    } else if (w) {
        w->pause_ns = w->pause_ns ? BH_MIN(2 * w->pause_ns, PAUSE_MAX) : PAUSE_NS;
        w->not_before_ns = bh_mono_ns() + w->pause_ns;
    }
    look(g);
}

static void look(struct bh_guests *g)
{
    uint64_t now = bh_mono_ns();
    struct wanted *w = g->first;

    if (g->working)
        return;
    while (w && (w->there || w->not_before_ns > now))
        w = w->next;
    if (!w)
        return;
    free(g->url);
    g->url = bh_strdup(w->url);
    memcpy(g->sha256, w->sha256, sizeof g->sha256);
    g->err = (struct bh_err){0};
    g->work.data = g;
    g->working = uv_queue_work(g->loop, &g->work, download, on_downloaded) == 0;
}

static void on_timer(uv_timer_t *t)
{
    struct bh_guests *g = t->data;

    if (has_changed(g))
        read_config(g);
    look(g);
}

struct bh_guests *bh_guests_new(uv_loop_t *loop, const char *config, const char *runtime_dir)
{
    if (!config || !*config)
        return NULL;
    struct bh_guests *g = bh_calloc(1, sizeof *g);
    g->loop = loop;
    g->config = bh_strdup(config);
    g->store = bh_asprintf("%s/" BH_WASM_STORE, runtime_dir);
    uv_timer_init(loop, &g->timer);
    g->timer.data = g;
    uv_timer_start(&g->timer, on_timer, 0, LOOK_MS);
    return g;
}

static void on_closed(uv_handle_t *h)
{
    struct bh_guests *g = h->data;

    g->closed = true;
    release(g);
}

void bh_guests_free(struct bh_guests *g)
{
    if (!g)
        return;
    g->closing = true;
    atomic_store(&g->stop, true);
    uv_close((uv_handle_t *)&g->timer, on_closed);
}
