/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/server/server.h - the built-in API server as a component: options, start, stop
 *
 * For main.c, tests and (later) programs that embed it. Runs on the caller's libuv loop.
 */
#ifndef BH_SIM_SERVER_H
#define BH_SIM_SERVER_H

#include "common/base/base.h"
#include <uv.h>

struct bh_feature_gates;
struct bh_opt_list;
struct bh_sim;

struct bh_sim_options {
    const char *address; /* NULL = 127.0.0.1; another one needs a token file and TLS */
    uint16_t port;       /* 0 = any free one */
    const char *tls_cert_pem, *tls_key_pem, *client_ca_pem; /* contents; NULL = plain HTTP */
    const char *ca_pem;           /* of config map kube-root-ca.crt; NULL = "" */
    const char *tokens;           /* contents of a token file, NULL = no authentication */
    const char *faults;           /* specification of faults.h, NULL = none */
    const char *audit_log;        /* file, NULL = none; see audit.h */
    const char *history_file;     /* NULL = none; see history.h */
    const char *data_file;        /* NULL = none; see data.h. Not together with history_file */
    bool data_full;               /* writes are answered when they are on the disk */
    int64_t history_events;       /* per kind, 0 = 20000 */
    int64_t bookmark_interval_ns; /* 0 = 60 s */
    int64_t kubelet_delay_ns, node_grace_ns; /* see bh_sim_controller_options */
    bool no_controllers, no_kubelet;
    const struct bh_feature_gates *features; /* NULL = defaults; read at the start */
    const struct bh_opt_list
        *runtime_config;        /* kube-apiserver's: "GROUP/VERSION=true"; NULL = none */
    const char *runtime_dir;    /* of the scheduler that works here; NULL = none is known */
    const char *decisions_file; /* written by that scheduler (decisions.h); NULL = none */
    bool annotate;              /* its attempts onto the pods, as kube-scheduler-simulator does */
    int64_t annotate_nodes;     /* at most so many nodes in an annotation; 0 = as many as fit */
    const char *lost;           /* what the page says of the server before this one; "" = nothing */
    bool read_only;             /* browsers and the console's paths may change nothing */
    const char
        *observe; /* kubeconfig of the cluster whose copy this is: nobody may change anything;
                            NULL = none */
    size_t watch_buffer_bytes; /* a watcher further behind than this is cut; 0 = 64 MiB */
    uint64_t first_revision; /* 0 = from the clock, so that it never runs backwards over restarts */
    /* A clock that only bh_sim_advance() moves (contract in sim.h), from clock_ns on (wall clock;
     * 0 = 2026-01-01T00:00:00Z). first_revision 0 is 1 then. */
    bool manual_clock;
    int64_t clock_ns;
    uint64_t seed; /* of generated names and uids; 0 = a different one each time */
};
/* Strings in o must outlive the server. 0 or -errno with err. */
int bh_sim_new(uv_loop_t *loop, const struct bh_sim_options *o, struct bh_sim **ret_s,
               struct bh_err *err);
uint16_t bh_sim_port(const struct bh_sim *s);
/* In place of the faults so far; their counters start again. -EINVAL with err: nothing changed. */
int bh_sim_set_faults(struct bh_sim *s, const char *spec, struct bh_err *err);
/* Ends all connections, frees. From the loop, not from inside a request. NULL allowed. */
void bh_sim_free(struct bh_sim *s);
/* The same without HTTP: for tests of store and admission. */
int bh_sim_new_bare(uv_loop_t *loop, const struct bh_sim_options *o, struct bh_sim **ret_s,
                    struct bh_err *err);
#endif
