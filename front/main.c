/* SPDX-License-Identifier: Apache-2.0
 *
 * front/main.c - the program berth-front
 */
#include <errno.h>

#include "common/api/from_flags.h"
#include "common/base/log.h"
#include "common/base/loop.h"
#include "common/base/notify.h"
#include "front/front.h"

#define CONFIG_ARENA_BYTES ((size_t)256 << 20)
#define SETTLE_MS          20u

static const struct bh_opt_usage usage = {
    .program = "berth-front",
    .synopsis = "[flags]",
    .about =
        "Serves kube-scheduler's HTTPS port (10259) for all of Berth on this host: health, metrics "
        "of all processes as one, configuration, flags. Asks the API server who a caller is and "
        "what he may read.\n"
        "Takes kube-scheduler's flags as they are; those of serving, authentication and "
        "authorization are what it uses.",
    .examples =
        "  berth-front --authentication-kubeconfig /etc/kubernetes/scheduler.conf "
        "--authorization-kubeconfig /etc/kubernetes/scheduler.conf\n"
        "  berth-front --bind-address 0.0.0.0 --tls-cert-file tls.crt --tls-private-key-file "
        "tls.key --client-ca-file ca.crt\n"
        "  curl -k https://127.0.0.1:10259/readyz?verbose\n",
    .exits = BH_KUBE_FLAGS_EXITS,
};

struct program {
    uv_loop_t loop;
    struct bh_front front;
    struct bh_signals *signals;
    struct bh_keepalive *keepalive;
    uv_timer_t drain;
    uint64_t drain_until_ns;
    int exit_code;
};

/* Answers until nothing is under way; checks say meanwhile that the process ends. */
static void on_drain(uv_timer_t *t)
{
    struct program *p = t->data;

    if (!p->front.under_way || bh_mono_ns() >= p->drain_until_ns)
        uv_stop(&p->loop);
}

static void on_stop(void *arg)
{
    struct program *p = arg;

    bh_log_info("Stopping");
    bh_notify("STOPPING=1");
    p->front.stopping = true;
    p->drain_until_ns = bh_mono_ns() + BH_FRONT_DRAIN_MS * UINT64_C(1000000);
    uv_timer_start(&p->drain, on_drain, SETTLE_MS, SETTLE_MS);
}

static void on_reload(void *arg)
{
    struct program *p = arg;

    bh_log_info("Reading credentials and certificates again");
    bh_front_reload(&p->front);
}

static bool healthy(void *arg)
{
    (void)arg;
    return true; /* asked from the loop: it turns */
}

static int serve(struct program *p, const struct bh_front_options *o, struct bh_err *err)
{
    int rc = bh_front_open(&p->front, o, &p->loop, err);

    if (rc < 0)
        return rc;
    p->signals = bh_signals_new(&p->loop, on_stop, on_reload, p);
    if (!o->flags->authn.tolerate_lookup_failure) {
        /* The first look at the cluster's authorities may be fatal (--authentication-
         * tolerate-...=false). */
        while (!bh_authn_settled(p->front.authn) && !p->front.stopping)
            uv_run(&p->loop, UV_RUN_ONCE);
        const char *failure = bh_authn_failure(p->front.authn);
        rc = failure ? bh_err_set(err, -EIO, "%s", failure) : 0;
    }
    if (rc < 0)
        return rc;
    p->keepalive = bh_keepalive_new(&p->loop, healthy, p);
    bh_log_info("Serving securely", bh_kv_s("address", o->flags->serving.bind_address),
                bh_kv_u("port", bh_front_port(&p->front)), bh_kv_s("runtime_dir", o->runtime_dir));
    uv_run(&p->loop, UV_RUN_DEFAULT);
    return 0;
}

static int run(struct program *p, const struct bh_kube_flags *flags, const char *dir,
               struct bh_err *err)
{
    char runtime_dir[108];
    struct bh_component_config file = {0};
    struct bh_arena arena;

    bh_arena_init(&arena, CONFIG_ARENA_BYTES);
    int rc = bh_runtime_dir(dir, runtime_dir, err);
    if (rc == 0)
        rc = bh_component_config_load(flags->config, &arena, &file, err);
    if (rc == 0) {
        bh_kube_flags_apply(flags, &file);
        const struct bh_front_options o = {.flags = flags,
                                           .file = &file,
                                           .runtime_dir = runtime_dir,
                                           .port = (uint16_t)flags->serving.secure_port};
        rc = serve(p, &o, err);
        bh_keepalive_close(p->keepalive, true);
        bh_front_close(&p->front);
    }
    bh_arena_fini(&arena);
    return rc;
}

static void stand_by_stop(void *arg)
{
    uv_stop(arg);
}

int main(int argc, char **argv)
{
    struct bh_kube_flags flags;
    char unit_kubeconfig[256];
    const char *dir = NULL;
    struct program p = {.exit_code = BH_EXIT_OK};
    struct bh_err err = {""};
    const struct bh_opt own[] = {
        {"runtime-dir", 0, BH_OPT_STR, &dir, "DIR",
         "sockets of this instance (default: $BERTH_RUNTIME_DIR, /run/berth)"},
        {0},
    };
    int rc = bh_kube_flags_start(&flags, own, &usage, argc, argv);

    if (rc >= 0)
        return rc;
    if (bh_api_unit_kubeconfig(unit_kubeconfig))
        flags.authn.kubeconfig = flags.authz.kubeconfig = unit_kubeconfig;
    uv_loop_init(&p.loop);
    uv_timer_init(&p.loop, &p.drain);
    p.drain.data = &p;
    rc = 0;
    if (flags.serving.secure_port == 0) {
        /* --secure-port=0: there is nothing to do, and a unit that runs is no unit that
         * failed. */
        p.signals = bh_signals_new(&p.loop, stand_by_stop, NULL, &p.loop);
        p.keepalive = bh_keepalive_new(&p.loop, healthy, &p);
        bh_log_info("Not serving: --secure-port is 0");
        uv_run(&p.loop, UV_RUN_DEFAULT);
        bh_keepalive_close(p.keepalive, true);
    } else
        rc = run(&p, &flags, dir, &err);
    if (rc < 0) {
        bh_log_error("command failed", bh_kv_s("err", err.msg));
        p.exit_code = BH_EXIT_FAIL;
    }
    bh_signals_close(p.signals);
    bh_loop_drain_close(&p.loop);
    bh_kube_flags_free(&flags);
    return p.exit_code;
}
