/* SPDX-License-Identifier: Apache-2.0
 *
 * cli/load_sources.c - where `berth load` gets its objects: the openb trace, a synthetic cluster
 */
#include "cli/load.h"
#include "simulator/scenario/openb.h"

#include <stdio.h>

void bh_load_set_fini(struct bh_load_set *s)
{
    struct {
        struct bh_load_item *v;
        size_t n;
    } lists[] = {{s->nodes, s->n_nodes}, {s->pods, s->n_pods}};

    for (size_t l = 0; l < BH_ARRAY_LEN(lists); l++) {
        for (size_t i = 0; i < lists[l].n; i++) {
            free(lists[l].v[i].name);
            free(lists[l].v[i].namespace_);
            free(lists[l].v[i].json);
        }
        free(lists[l].v);
    }
    *s = (struct bh_load_set){0};
}

/* takes json's memory */
static void load_add(struct bh_load_set *s, bool pod, const char *ns, const char *name,
                     struct bh_buf *json)
{
    struct bh_load_item **list = pod ? &s->pods : &s->nodes;
    size_t *n = pod ? &s->n_pods : &s->n_nodes, json_n = json->n;

    if ((*n & (*n - 1)) == 0) /* 0, 1, 2, 4 ...: room for twice as many */
        *list = bh_reallocarray(*list, *n ? *n * 2 : 1, sizeof(**list));
    (*list)[(*n)++] = (struct bh_load_item){.name = bh_strdup(name),
                                            .namespace_ = ns ? bh_strdup(ns) : NULL,
                                            .json_n = json_n,
                                            .json = bh_buf_take(json)};
}

/* ---- openb ----------------------------------------------------------------------------------- */

static int openb_row(void *arg, struct bh_openb_row *row, struct bh_err *err)
{
    (void)err;
    load_add(arg, row->pod, row->pod ? "default" : NULL, row->name, &row->json);
    return 0;
}

int bh_load_openb(struct bh_load_set *s, const char *nodes_file, const char *pods_file,
                  struct bh_err *err)
{
    int rc = nodes_file ? bh_openb_read(nodes_file, false, openb_row, s, err) : 0;

    return rc == 0 && pods_file ? bh_openb_read(pods_file, true, openb_row, s, err) : rc;
}

/* ---- synthetic ------------------------------------------------------------------------------- */

void bh_load_synth(struct bh_load_set *s, int64_t n_nodes, int64_t n_pods, const char *ns,
                   const char *prefix)
{
    struct bh_buf b = {0};
    char name[300];

    for (int64_t i = 0; i < n_nodes; i++) {
        snprintf(name, sizeof(name), "node-%06lld", (long long)i);
        bh_buf_addf(
            &b,
            "{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":\"%s\",\"labels\":{"
            "\"kubernetes.io/hostname\":\"%s\",\"topology.kubernetes.io/zone\":\"zone-%d\"}},"
            "\"spec\":{},\"status\":{\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}],"
            "\"capacity\":{\"cpu\":\"32\",\"memory\":\"256Gi\",\"pods\":\"110\"},"
            "\"allocatable\":{\"cpu\":\"32\",\"memory\":\"256Gi\",\"pods\":\"110\"}}}",
            name, name, (int)(i % 3));
        load_add(s, false, NULL, name, &b);
    }
    for (int64_t i = 0; i < n_pods; i++) {
        snprintf(name, sizeof(name), "%.200s-%06lld", prefix, (long long)i);
        bh_buf_addf(
            &b,
            "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"namespace\":\"%s\",\"name\":"
            "\"%s\",\"labels\":{\"app\":\"%s\"}},\"spec\":{\"containers\":[{\"name\":\"c\","
            "\"image\":\"registry.k8s.io/pause:3.9\",\"resources\":{\"requests\":{\"cpu\":"
            "\"100m\",\"memory\":\"200Mi\"}}}]}}",
            ns, name, prefix);
        load_add(s, true, ns, name, &b);
    }
}
