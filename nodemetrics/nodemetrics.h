/* SPDX-License-Identifier: Apache-2.0
 *
 * nodemetrics/nodemetrics.h - what is known of nodes' load, from where it is known
 *
 * Three sources, as Trimaran's metricProvider and watcherAddress have them; whatever the source, the
 * result is a text that plugins/trimaran reads (its metrics.c has the form).
 *
 * Replies are foreign input: a node's name, a metric's type or a value that could not stand in the
 * text is left out, and counted.
 */
#ifndef BH_NODEMETRICS_H
#define BH_NODEMETRICS_H

#include "common/api/client.h"
#include "common/base/map.h"
#include "common/data/json.h"

enum bh_nm_source { BH_NM_KUBERNETES, BH_NM_PROMETHEUS, BH_NM_LOAD_WATCHER };

struct bh_nm_options {
    enum bh_nm_source source;
    const char *cpu, *memory; /* Prometheus: series of CPU and memory use, 0 to 1 */
    const char *node_label;   /* whose label names the node */
    const char *window;       /* "15m" */
    const char *watcher_path; /* load watcher: "/watcher" */
};

struct bh_nm {
    int64_t start_s, end_s; /* the window; 0: the source does not tell */
    struct bh_map nodes;    /* name -> struct bh_buf *: " CPU/AVG=1 ..." */
    uint32_t n_left_out;    /* of what it told could not be taken */
};
void bh_nm_fini(struct bh_nm *m);

/* parse.c: a reply of each source, added to m. 0; -EBADMSG with what is missing. */
int bh_nm_add_watcher(struct bh_nm *m, const struct bh_json *v, struct bh_err *err);
/* One query's vector; word: "CPU/AVG". Values are times 100. */
int bh_nm_add_vector(struct bh_nm *m, const struct bh_json *v, const char *node_label,
                     const char *word, struct bh_err *err);
/* A list of NodeMetrics, and one of Nodes, for their capacity. */
int bh_nm_add_usage(struct bh_nm *m, const struct bh_json *metrics, const struct bh_json *nodes,
                    struct bh_err *err);
/* The text, nodes by name. */
void bh_nm_text(const struct bh_nm *m, struct bh_buf *out);

/* fetch.c: asks the source once, turning the loop until it has answered. 0; negative errno. */
int bh_nm_fetch(uv_loop_t *loop, struct bh_api_client *c, const struct bh_nm_options *o,
                struct bh_nm *m, struct bh_err *err);
#endif
