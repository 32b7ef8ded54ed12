/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/console/config.c - the scheduler's configuration: what runs, and another one in its
 * place
 *
 * The scheduler of `berth up` reads <runtime directory>/scheduler.yaml, which is a copy of ours to
 * write. A change is validated here, written, and taken over by the scheduler itself (RELOAD of its
 * control socket), which starts again; the answer comes when it runs.
 */
#include "simulator/console/parts.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <time.h>

#include "common/data/yaml.h"
#include "scheduler/config/config.h"
#include "common/control/ask.h"

#define FILE_BYTES ((size_t)4 << 20)
#define WAIT_NS    UINT64_C(60000000000)
#define LOOK_NS    20000000
#define SHORT_NS   UINT64_C(300000000)

static pthread_mutex_t one_change = PTHREAD_MUTEX_INITIALIZER;

/* ---- the scheduler --------------------------------------------------------------------------- */

static int open_scheduler(const char *runtime_dir, struct bh_ask *k, struct bh_err *err)
{
    *k = (struct bh_ask){.id = 0};
    if (!runtime_dir)
        return bh_err_set(err, -ENOENT, "no scheduler belongs to this server");
    return bh_ask_open(k, runtime_dir, err);
}

int bh_console_config_running(const char *runtime_dir, bool yaml, char **ret, char **ret_path,
                              struct bh_err *err)
{
    const Berth__ControlReply *r = NULL;
    struct bh_ask k;
    int rc = open_scheduler(runtime_dir, &k, err);
    const char *text = NULL;

    rc = rc < 0 ? rc : bh_ask_for(&k, BERTH__CONTROL_WHAT__CONTROL_CONFIG, &r, err);
    if (rc == 0 && r->config)
        text = yaml ? r->config->in_force : r->config->in_force_json;
    if (rc == 0 && !text)
        rc = bh_err_set(err, -EPROTO, "the scheduler tells no configuration");
    *ret = text ? bh_strdup(text) : NULL;
    if (text && ret_path)
        *ret_path = bh_strdup(r->config->path ? r->config->path : "");
    bh_ask_close(&k);
    return rc;
}

/* The file is ours to write only where `berth up` put it. */
static int check_path(struct bh_ask *k, const char *path, struct bh_err *err)
{
    const Berth__ControlReply *r = NULL;
    int rc = bh_ask_for(k, BERTH__CONTROL_WHAT__CONTROL_CONFIG, &r, err);

    if (rc < 0)
        return rc;
    if (!r->config || !r->config->path || !bh_streq(r->config->path, path))
        return bh_err_set(
            err, -EPERM, "the scheduler reads %s, which is not this server's to write",
            r->config && r->config->path && *r->config->path ? r->config->path : "no file");
    return 0;
}

static int epoch_of(struct bh_ask *k, uint64_t *ret, struct bh_err *err)
{
    const Berth__ControlReply *r = NULL;
    int rc = bh_ask_for(k, BERTH__CONTROL_WHAT__CONTROL_STATUS, &r, err);

    *ret = rc == 0 && r->status ? r->status->epoch : 0;
    return rc;
}

/* A question without parameters to whoever answers now; *epoch: of a status. */
static int ask_once(const char *runtime_dir, Berth__ControlWhat what, uint64_t timeout_ns,
                    uint64_t *epoch, struct bh_err *err)
{
    const Berth__ControlReply *r = NULL;
    struct bh_ask k;
    int rc = open_scheduler(runtime_dir, &k, err);

    k.timeout_ns = timeout_ns;
    rc = rc < 0 ? rc : bh_ask_for(&k, what, &r, err);
    *epoch = rc == 0 && r->status ? r->status->epoch : 0;
    bh_ask_close(&k);
    return rc;
}

/* Until it answers with a later epoch; a question to the one that ends is lost. */
static int wait_for_start(const char *runtime_dir, uint64_t epoch, struct bh_err *err)
{
    const uint64_t end = bh_mono_ns() + WAIT_NS;
    uint64_t now_epoch = 0, patience_ns = SHORT_NS;
    int rc = -ETIMEDOUT;

    while (rc != 0 && bh_mono_ns() < end) {
        rc = ask_once(runtime_dir, BERTH__CONTROL_WHAT__CONTROL_STATUS, patience_ns, &now_epoch,
                      err);
        if (rc == -ETIMEDOUT) /* lost, or the machine is slow */
            patience_ns = BH_MIN(2 * patience_ns, BH_ASK_TIMEOUT_NS);
        if (rc == 0 && now_epoch == epoch)
            rc = -EAGAIN;
        if (rc != 0)
            (void)nanosleep(&(struct timespec){.tv_nsec = LOOK_NS}, NULL);
    }
    return rc == 0 ? 0 : bh_err_set(err, -ETIMEDOUT, "the scheduler did not come back with it");
}

/* The file is again what it was, but a scheduler that began in between has read the one that is gone:
 * until whoever runs has read this one. */
static void read_again(const char *runtime_dir)
{
    const uint64_t end = bh_mono_ns() + WAIT_NS;
    struct bh_err ignored = {0};
    uint64_t epoch;
    int rc = -ETIMEDOUT;

    while (rc < 0 && rc != -EPROTO && bh_mono_ns() < end) {
        rc = ask_once(runtime_dir, BERTH__CONTROL_WHAT__CONTROL_RELOAD, BH_ASK_TIMEOUT_NS, &epoch,
                      &ignored);
        if (rc < 0)
            (void)nanosleep(&(struct timespec){.tv_nsec = LOOK_NS}, NULL);
    }
}

static int reload(const char *runtime_dir, struct bh_ask *k, struct bh_err *err)
{
    const Berth__ControlReply *r = NULL;
    uint64_t epoch;
    int rc = epoch_of(k, &epoch, err);

    rc = rc < 0 ? rc : bh_ask_for(k, BERTH__CONTROL_WHAT__CONTROL_RELOAD, &r, err);
    return rc == 0 && r->restart ? wait_for_start(runtime_dir, epoch, err) : rc;
}

/* ---- a change -------------------------------------------------------------------------------- */

size_t bh_console_field_of(const char *finding)
{
    const char *end = strstr(finding, ": ");
    size_t n = end ? (size_t)(end - finding) : 0;

    return strcspn(finding, " ") > n ? n : 0;
}

/* Over the old file, which stays whole until the new one is. */
static int replace_file(const char *path, const char *text, size_t n, struct bh_err *err)
{
    char next[200];

    snprintf(next, sizeof(next), "%s.new", path);
    int rc = bh_write_file(next, text, n, 0600);
    if (rc == 0 && rename(next, path) < 0)
        rc = -errno;
    return rc < 0 ? bh_err_set(err, rc, "could not write %s: %s", path, strerror(-rc)) : 0;
}

static int change(const char *runtime_dir, const char *text, size_t n, struct bh_err *err)
{
    BH_CLEANUP(bh_freep) char *before = NULL;
    struct bh_err ignored = {0};
    struct bh_ask k;
    char path[180];
    size_t before_n = 0;
    int rc = open_scheduler(runtime_dir, &k, err);

    snprintf(path, sizeof(path), "%s/scheduler.yaml", runtime_dir ? runtime_dir : "");
    rc = rc < 0 ? rc : check_path(&k, path, err);
    if (rc == 0 && bh_read_file(path, FILE_BYTES, &before, &before_n) < 0)
        rc = bh_err_set(err, -EIO, "could not read %s", path);
    rc = rc < 0 ? rc : replace_file(path, text, n, err);
    if (rc == 0) {
        rc = reload(runtime_dir, &k, err);
        if (rc < 0) { /* the next scheduler starts with what ran before */
            (void)replace_file(path, before, before_n, &ignored);
            read_again(runtime_dir);
        }
    }
    bh_ask_close(&k);
    return rc;
}

int bh_console_config_apply(const char *runtime_dir, const char *text, size_t n,
                            struct bh_console_place *ret, struct bh_err *err)
{
    struct bh_sched_config *c = NULL;
    struct bh_config_report r;

    *ret = (struct bh_console_place){.line = 0};
    bh_config_report_init(&r);
    int rc = bh_sched_config_read(text, n, &c, &r);
    if (rc < 0) {
        const char *first = r.errors.n ? r.errors.v[0].text : "";
        ret->line = r.errors.n ? r.errors.v[0].line : 0;
        snprintf(ret->field, sizeof(ret->field), "%.*s", (int)bh_console_field_of(first), first);
        rc = bh_err_set(err, -EINVAL, "%s", r.summary);
    }
    bh_sched_config_free(c);
    bh_config_report_fini(&r);
    if (rc < 0)
        return rc;
    if (pthread_mutex_trylock(&one_change) != 0)
        return bh_err_set(err, -EBUSY, "another change of the configuration is under way");
    rc = change(runtime_dir, text, n, err);
    pthread_mutex_unlock(&one_change);
    return rc;
}

/* ---- requests -------------------------------------------------------------------------------- */

struct config_job {
    const char *runtime_dir;
    char *text;
    size_t n;
    bool yaml;
};

static struct config_job *job_of(struct bh_sim_req *r)
{
    struct config_job *k = bh_calloc(1, sizeof(*k));
    const char *format = bh_http_query(r->http, "format");

    k->runtime_dir = r->sim->opt.runtime_dir;
    k->text = bh_console_body(r, &k->n);
    k->yaml = format && bh_streq(format, "yaml");
    return k;
}

static void release(void *arg)
{
    struct config_job *k = arg;

    free(k->text);
    free(k);
}

static void run_get(struct bh_console_job *j, void *arg)
{
    const struct config_job *k = arg;
    BH_CLEANUP(bh_freep) char *text = NULL;
    struct bh_err err = {0};

    if (bh_console_config_running(k->runtime_dir, k->yaml, &text, NULL, &err) < 0)
        bh_console_job_fail(j, 503, NULL, 0, "%s", err.msg);
    else
        bh_buf_adds(bh_console_job_body(j, 200, k->yaml ? "application/yaml" : NULL), text);
}

void bh_console_config_get(struct bh_console_req *c)
{
    bh_console_work(c, run_get, release, job_of(c->r));
}

/* What the scheduler says of its guests, as it says it. */
static void run_guests(struct bh_console_job *j, void *arg)
{
    const struct config_job *k = arg;
    const Berth__ControlReply *r = NULL;
    struct bh_err err = {0};
    struct bh_ask ask;
    int rc = open_scheduler(k->runtime_dir, &ask, &err);

    rc = rc < 0 ? rc : bh_ask_for(&ask, BERTH__CONTROL_WHAT__CONTROL_CONFIG, &r, &err);
    if (rc < 0)
        bh_console_job_fail(j, 503, NULL, 0, "%s", err.msg);
    else
        bh_buf_addf(bh_console_job_body(j, 200, NULL), "{\"items\":%s}",
                    r->config && r->config->guests_json ? r->config->guests_json : "[]");
    bh_ask_close(&ask);
}

void bh_console_guests(struct bh_console_req *c)
{
    bh_console_work(c, run_guests, release, job_of(c->r));
}

static void run_post(struct bh_console_job *j, void *arg)
{
    const struct config_job *k = arg;
    struct bh_console_place at;
    struct bh_err err = {0};
    int rc = bh_console_config_apply(k->runtime_dir, k->text, k->n, &at, &err);

    if (rc < 0)
        bh_console_job_fail(j,
                            rc == -EINVAL  ? 400
                            : rc == -EBUSY ? 409
                                           : 503,
                            *at.field ? at.field : NULL, at.line, "%s", err.msg);
}

static void done_post(struct bh_sim_req *r, struct bh_sim *s, void *arg BH_UNUSED)
{
    bh_console_past_note(s->console, "config", "");
    if (r)
        bh_sim_reply_raw(r, 202, "application/json", "", 0);
}

void bh_console_config_post(struct bh_console_req *c)
{
    bh_console_work_then(c, run_post, done_post, release, job_of(c->r));
}
