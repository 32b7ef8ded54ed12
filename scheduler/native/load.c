/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/native/load.c - from a name in the configuration to a loaded plugin
 *
 * The folders are read when the first name is asked for that is not built in: who names no such
 * plugin runs no code of one. A file is loaded in a child process first, so that one that crashes or
 * hangs while it is loaded is an error message.
 *
 * Invariants: what is loaded stays, and its descriptor stays open: the loader tells files by
 *             /proc/self/fd/N, so that N must not become another file.
 * Runs in:    any thread, under one lock.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/trial.h"
#include "common/data/yaml.h"
#include "scheduler/native/process.h"

#define FILES_MAX    256u
#define KEYS_MAX     64u
#define CONFIG_MAX   ((size_t)1 << 20)
#define PER_FILE_MAX 16u
#define ENTRY        "berth_plugin_entry_v1"

/* A file, or an entry of the plugin configuration that names one. */
struct module {
    struct bh_native_file f;
    int fd;              /* -1: refused, or not open */
    const char *only;    /* the plugin that the entry is about; NULL: all of the file's */
    const char *pin;     /* digest that it must have; NULL = any */
    const char *refused; /* why; NULL: it may be loaded, or is */
    struct stat st;
    struct bh_native_plugin *plugin[PER_FILE_MAX];
    uint32_t n_plugins;
    bool loaded, told;
    bool skip;    /* onCrash */
    bool process; /* mode */
};
static struct {
    pthread_mutex_t lock;
    struct bh_arena arena;
    struct module *v[FILES_MAX];
    uint32_t n;
    bool scanned;
    struct bh_native_key key[KEYS_MAX];
    uint32_t n_keys;
    void (*tell)(const char *line);
} all = {.lock = PTHREAD_MUTEX_INITIALIZER};

static const char *setting(const char *variable, const char *otherwise)
{
    const char *v = getenv(variable);

    return v && *v ? v : otherwise;
}

static void refuse(struct module *m, const struct bh_err *err)
{
    m->refused = bh_arena_strdup(&all.arena, err->msg);
}

static void tell(struct module *m)
{
    if (!m->told && all.tell)
        all.tell(m->refused);
    m->told = true;
}

static bool policy_is(const char *name)
{
    return bh_streq(setting("BERTH_PLUGIN_POLICY", BH_PLUGIN_POLICY), name);
}

/* ---- what there is --------------------------------------------------------------------------- */

static int look(struct module *m, const char *path, struct bh_err *err)
{
    m->f.file = bh_arena_strdup(&all.arena, path);
    m->fd = bh_owned_open(path, err);
    if (m->fd < 0)
        return m->fd;
    int rc = fstat(m->fd, &m->st) < 0 ? -errno : 0;
    if (rc == 0)
        rc = bh_native_sha256(m->fd, m->f.sha256);
    if (rc < 0)
        return bh_err_set(err, rc, "%s: %s", path, strerror(-rc));
    char sha[65];
    memcpy(sha, m->f.sha256, sizeof sha);
    if (m->pin && !bh_streq(m->pin, sha))
        return bh_err_set(err, -EPERM, "%s has the SHA-256 %s, its configuration demands %s", path,
                          sha, m->pin);
    if (policy_is("signed") &&
        (rc = bh_native_check_signature(m->fd, path, all.key, all.n_keys, err)) < 0)
        return rc;
    rc = bh_native_read_note(m->fd, path, &all.arena, &m->f, err);
    memcpy(m->f.sha256, sha, sizeof sha);
    return rc;
}

static struct module *module_new(const char *path, const char *only, const char *pin)
{
    struct bh_err err = {0};
    struct module *m = bh_arena_new(&all.arena, struct module);

    *m = (struct module){.fd = -1, .only = only, .pin = pin};
    if (look(m, path, &err) < 0)
        refuse(m, &err);
    else if (only && bh_word_at(m->f.names, only) < 0) {
        bh_err_set(&err, -EINVAL, "%s has no plugin \"%s\": its note names \"%s\"", path, only,
                   m->f.names);
        refuse(m, &err);
    }
    if (m->refused && m->fd >= 0) {
        close(m->fd);
        m->fd = -1;
    }
    return m;
}

static void add(struct module *m)
{
    if (all.n < FILES_MAX)
        all.v[all.n++] = m;
}

static bool is_digest(const char *s)
{
    size_t n = strlen(s);

    for (size_t i = 0; i < n; i++)
        if (bh_hex_value(s[i]) < 0 || (s[i] >= 'A' && s[i] <= 'F'))
            return false;
    return n == 64;
}

/* Of an entry of a *.yaml file: {name, file, sha256, mode}. */
static int check_entry(const char *path, const struct bh_json *e, struct bh_err *err)
{
    const char *pin = bh_json_get_str(e, "sha256"), *mode = bh_json_get_str(e, "mode");
    const char *crash = bh_json_get_str(e, "onCrash");

    if (e->type != BH_JSON_OBJECT)
        return bh_err_set(err, -EINVAL, "%s line %u: an object with name and file is needed", path,
                          e->line);
    bh_json_each(m, e)
        if (bh_word_at("name file sha256 mode onCrash", m->key.p) < 0)
            return bh_err_set(err, -EINVAL,
                              "%s line %u: unknown field \"%s\": name, file, sha256, mode and "
                              "onCrash are known",
                              path, m->line, m->key.p);
    if (!*bh_json_get_text(e, "name"))
        return bh_err_set(err, -EINVAL, "%s line %u: field name: a plugin's name is needed", path,
                          e->line);
    if (!*bh_json_get_text(e, "file"))
        return bh_err_set(err, -EINVAL,
                          "%s line %u: field file: the path of a shared object is needed", path,
                          e->line);
    if (bh_json_get(e, "sha256") && (!pin || !is_digest(pin)))
        return bh_err_set(
            err, -EINVAL,
            "%s line %u: field sha256: 64 small hexadecimal digits in quotes are needed", path,
            e->line);
    if (bh_json_get(e, "mode") && (!mode || bh_word_at("inProcess process", mode) < 0))
        return bh_err_set(err, -EINVAL, "%s line %u: field mode: inProcess or process is needed",
                          path, e->line);
    if (bh_json_get(e, "onCrash") && (!crash || bh_word_at("fail skip", crash) < 0))
        return bh_err_set(err, -EINVAL, "%s line %u: field onCrash: fail or skip is needed", path,
                          e->line);
    return 0;
}

static void add_entry(const char *path, const char *dir, const struct bh_json *e)
{
    struct bh_err err = {0};

    if (check_entry(path, e, &err) < 0) {
        struct module *m = bh_arena_new(&all.arena, struct module);
        *m = (struct module){.fd = -1, .f.file = path, .only = bh_json_get_text(e, "name")};
        refuse(m, &err);
        tell(m);
        add(m); /* its plugin is not to come from elsewhere */
        return;
    }
    const char *file = bh_json_get_text(e, "file");
    struct module *m =
        module_new(*file == '/' ? file : bh_arena_printf(&all.arena, "%s/%s", dir, file),
                   bh_json_get_text(e, "name"), bh_json_get_str(e, "sha256"));
    m->skip = bh_streq(bh_json_get_text(e, "onCrash"), "skip");
    m->process = bh_streq(bh_json_get_text(e, "mode"), "process");
    add(m);
}

static void read_config(const char *path, const char *dir)
{
    struct bh_json *docs = NULL;
    struct bh_err err = {0};
    char *text = NULL;
    size_t n = 0;
    int rc = bh_read_file(path, CONFIG_MAX, &text, &n);

    if (rc < 0)
        bh_err_set(&err, rc, "%s: %s", path, strerror(-rc));
    else if ((rc = bh_yaml_parse_all(&all.arena, text, n, BH_JSON_STRICT, &docs, &err)) < 0)
        bh_err_prefix(&err, rc, "%s", path);
    if (rc < 0 && all.tell)
        all.tell(err.msg);
    bh_json_each(d, docs)
        add_entry(path, dir, d);
    free(text);
}

/* Files of a folder with this ending, by name. fn(path, arg) for each. */
static void each_file(const char *dir, const char *ending, void (*fn)(const char *, const char *),
                      const char *arg)
{
    struct dirent **list = NULL;
    int n = scandir(dir, &list, NULL, alphasort);

    if (n < 0 && errno != ENOENT && all.tell) {
        BH_CLEANUP(bh_freep) char *line = bh_asprintf("plugin folder %s: %s", dir, strerror(errno));
        all.tell(line);
    }
    for (int i = 0; i < n; i++) {
        size_t len = strlen(list[i]->d_name), end = strlen(ending);
        if (len > end && list[i]->d_name[0] != '.' && bh_streq(list[i]->d_name + len - end, ending))
            fn(bh_arena_printf(&all.arena, "%s/%s", dir, list[i]->d_name), arg);
        free(list[i]);
    }
    free(list);
}

static void add_file(const char *path, const char *arg BH_UNUSED)
{
    add(module_new(path, NULL, NULL));
}

static void add_key(const char *path, const char *arg BH_UNUSED)
{
    struct bh_err err = {0};

    if (all.n_keys == KEYS_MAX)
        bh_err_set(&err, -E2BIG, "%s: at most %u keys are read", path, KEYS_MAX);
    else if (bh_native_read_key(path, &all.key[all.n_keys], &err) == 0)
        all.n_keys++;
    if (*err.msg && all.tell)
        all.tell(err.msg);
}

/* Before any file is looked at. */
static void read_keys(void)
{
    all.n_keys = 0;
    if (policy_is("signed"))
        each_file(setting("BERTH_PLUGIN_CONFIG", BH_PLUGIN_CONFIG), ".pub", add_key, NULL);
}

/* Where an installation below another prefix than /usr has them, as make install makes it. NULL: it has none. */
static const char *of_this_prefix(void)
{
    char exe[PATH_MAX] = "", dir[PATH_MAX];

    if (readlink("/proc/self/exe", exe, sizeof exe - 1) < 0)
        return NULL;
    const char *path = bh_arena_printf(&all.arena, "%s/../lib/berth/plugins", dirname(exe));
    return realpath(path, dir) && !bh_streq(dir, BH_PLUGIN_DIR) ? bh_arena_strdup(&all.arena, dir)
                                                                : NULL;
}

static void scan(void)
{
    const char *dir = setting("BERTH_PLUGIN_DIR", BH_PLUGIN_DIR);
    const char *given = getenv("BERTH_PLUGIN_DIR");

    if (all.scanned)
        return;
    all.scanned = true;
    const char *more = given && *given ? NULL : of_this_prefix();
    read_keys();
    each_file(setting("BERTH_PLUGIN_CONFIG", BH_PLUGIN_CONFIG), ".yaml", read_config, dir);
    each_file(dir, ".so", add_file, NULL);
    if (more)
        each_file(more, ".so", add_file, NULL);
}

/* ---- loading --------------------------------------------------------------------------------- */

static int check_names(const struct module *m, struct bh_err *err)
{
    for (uint32_t i = 0; i < m->n_plugins; i++)
        if (bh_word_at(m->f.names, m->plugin[i]->d.name) < 0)
            return bh_err_set(err, -EINVAL,
                              "%s has a plugin \"%s\", its note names \"%s\" only: they must agree",
                              m->f.file, m->plugin[i]->d.name, m->f.names);
    return 0;
}

static int adopt_all(struct module *m, const struct berth_entry *e, struct bh_err *err)
{
    if (!e->n || e->n > PER_FILE_MAX || !e->plugins)
        return bh_err_set(err, -EINVAL, "%s: its " ENTRY " tells %llu plugins, 1 to %u are needed",
                          m->f.file, (unsigned long long)e->n, PER_FILE_MAX);
    for (uint32_t i = 0; i < e->n; i++) {
        struct bh_native_plugin *np = NULL;
        if (!e->plugins[i])
            return bh_err_set(err, -EINVAL, "%s: its plugin %u is NULL", m->f.file, i);
        if (bh_native_adopt(e->plugins[i], &np, err) < 0)
            return bh_err_prefix(err, -EINVAL, "%s", m->f.file);
        m->plugin[m->n_plugins++] = np;
    }
    return check_names(m, err);
}

/* Runs code of the file. */
static int load_here(void *arg, struct bh_err *err)
{
    struct module *m = arg;
    char path[32];
    struct berth_entry e = {.size = sizeof e};
    __typeof__(&berth_plugin_entry_v1) entry;

    snprintf(path, sizeof path, "/proc/self/fd/%d", m->fd);
    void *lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!lib)
        return bh_err_set(err, -EINVAL, "%s could not be loaded: %s", m->f.file, dlerror());
    *(void **)&entry = dlsym(lib, ENTRY);
    if (!entry)
        return bh_err_set(err, -EINVAL, "%s does not export the function " ENTRY, m->f.file);
    int32_t rc = entry(&bh_native_host, &e);
    if (rc != 0)
        return bh_err_set(err, -EINVAL, "%s refuses to work here: its " ENTRY " returned %d",
                          m->f.file, rc);
    return adopt_all(m, &e, err);
}

/* In a process of its own, which is the child that tries as well. */
static int load_there(struct module *m, struct bh_err *err)
{
    int rc = bh_px_open(&m->f, m->fd, m->plugin, &m->n_plugins, err);

    for (uint32_t i = 0; rc >= 0 && i < m->n_plugins; i++)
        m->plugin[i]->on_crash_skips = m->skip;
    return rc < 0 ? rc : check_names(m, err);
}

static int load(struct module *m)
{
    struct bh_err err = {0};

    if (m->refused || m->loaded)
        return m->loaded ? 0 : -EINVAL;
    if (policy_is("pinned") && !m->pin)
        bh_err_set(
            &err, -EPERM,
            "%s has no sha256 in the plugin configuration, which the policy \"pinned\" demands",
            m->f.file);
    else if (m->process
                 ? load_there(m, &err) == 0
                 : bh_try_in_child(m->f.file, load_here, m, &err) == 0 && load_here(m, &err) == 0)
        m->loaded = true;
    for (uint32_t i = 0; m->loaded && i < m->n_plugins; i++)
        bh_native_guarded(&m->f, m->skip, m->plugin[i]);
    if (!m->loaded)
        refuse(m, &err);
    return m->loaded ? 0 : -EINVAL;
}

static const struct bh_plugin *plugin_of(const struct module *m, const char *name)
{
    for (uint32_t i = 0; i < m->n_plugins; i++)
        if (bh_streq(m->plugin[i]->d.name, name))
            return &m->plugin[i]->d;
    return NULL;
}

/* The plugin configuration comes first, and what it says of a name holds alone. */
static const struct bh_plugin *find(const char *name)
{
    const struct bh_plugin *p = NULL;
    bool configured = false;

    pthread_mutex_lock(&all.lock);
    scan();
    for (uint32_t i = 0; i < all.n && !p; i++) {
        struct module *m = all.v[i];
        if (m->only ? !bh_streq(m->only, name)
                    : configured || (!m->refused && bh_word_at(m->f.names, name) < 0))
            continue;
        configured |= m->only != NULL;
        if (!m->refused && load(m) == 0)
            p = plugin_of(m, name);
        if (m->refused)
            tell(m); /* maybe it is the one that is meant */
    }
    pthread_mutex_unlock(&all.lock);
    return p;
}

int bh_native_refresh(struct bh_err *err)
{
    uint32_t n = 0;
    int rc = 0;

    pthread_mutex_lock(&all.lock);
    read_keys();
    for (uint32_t i = 0; i < all.n; i++) {
        struct module *m = all.v[i], *now = m;
        if (m->loaded) {
            now = module_new(m->f.file, m->only, NULL);
            all.v[n++] = m;
        }
        if (now != m && now->refused && rc >= 0 && access(m->f.file, F_OK) == 0)
            rc = bh_err_set(err, -EINVAL, "%s", now->refused);
        else if (now != m && rc == 0)
            rc = !bh_streq(now->f.sha256, m->f.sha256);
        if (now->fd >= 0 && !now->loaded)
            close(now->fd);
    }
    all.n = n;
    if (all.scanned) {
        all.scanned = false;
        scan();
    }
    pthread_mutex_unlock(&all.lock);
    return rc;
}

int bh_native_use(const char *path, bool apart, struct bh_native_file *ret, struct bh_err *err)
{
    pthread_mutex_lock(&all.lock);
    read_keys();
    struct module *m = module_new(path, NULL, NULL);
    m->process = apart;
    all.scanned = true; /* alone */
    all.n = 0;
    add(m);
    pthread_mutex_unlock(&all.lock);
    if (m->refused)
        return bh_err_set(err, -EINVAL, "%s", m->refused);
    *ret = m->f;
    return 0;
}

void bh_native_end_processes(void)
{
    pthread_mutex_lock(&all.lock);
    for (uint32_t i = 0; i < all.n; i++)
        if (all.v[i]->loaded && all.v[i]->process)
            bh_px_rest(all.v[i]->plugin[0]->process);
    pthread_mutex_unlock(&all.lock);
}

static const char *name_places(void)
{
    const char *given = getenv("BERTH_PLUGIN_DIR");

    pthread_mutex_lock(&all.lock);
    const char *more = given && *given ? NULL : of_this_prefix();
    const char *text = bh_arena_printf(
        &all.arena, " (looked in %s%s%s; --plugin-dir DIR: elsewhere)",
        setting("BERTH_PLUGIN_DIR", BH_PLUGIN_DIR), more ? " and " : "", more ? more : "");
    pthread_mutex_unlock(&all.lock);
    return text;
}

void bh_native_start(const struct bh_native_options *o, void (*tell_line)(const char *line))
{
    if (o->dir)
        setenv("BERTH_PLUGIN_DIR", o->dir, 1);
    if (o->config)
        setenv("BERTH_PLUGIN_CONFIG", o->config, 1);
    if (o->policy)
        setenv("BERTH_PLUGIN_POLICY", o->policy, 1);
    all.tell = tell_line ? tell_line : all.tell;
    bh_plugin_places = name_places;
    if (!bh_plugin_find_more) /* else it asks us */
        bh_plugin_find_more = find;
}
