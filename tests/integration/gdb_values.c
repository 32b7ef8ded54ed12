/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/integration/gdb_values.c - values for gdb's pretty-printers to show (gdb.sh)
 */
#include "common/base/map.h"
#include "common/k8s/record.h"

#include <stddef.h>

struct pod {
    struct bh_pod_rec rec;
    char text[16];
};
struct node {
    struct bh_node_rec rec;
    struct bh_kv labels[2];
};

__attribute__((noinline)) static void show(const struct bh_str *text, const struct bh_map *map,
                                           const struct bh_umap *numbers,
                                           const struct bh_pod_rec *pod,
                                           const struct bh_node_rec *node)
{
    __asm__ volatile("" ::"r"(text), "r"(map), "r"(numbers), "r"(pod), "r"(node) : "memory");
}

int main(void)
{
    struct bh_str text = BH_STR("a \"quoted\" text");
    struct bh_map map = {0};
    struct bh_umap numbers = {0};
    struct pod pod = {.rec.name = {offsetof(struct pod, text), 5},
                      .rec.uid = {offsetof(struct pod, text) + 6, 4},
                      .rec.node = 7,
                      .text = "web-1\0u-12"};
    struct node node = {.rec.name = 3,
                        .rec.labels = {offsetof(struct node, labels), 2},
                        .labels = {{11, 12}, {13, 14}}};

    bh_map_put(&map, "alpha", 5, &map);
    bh_map_put(&map, "beta", 4, &map);
    bh_map_put(&map, "gone", 4, &map);
    bh_map_del(&map, "gone", 4);
    bh_umap_put(&numbers, 41, 42);
    pod.rec.h.size = sizeof(pod);
    node.rec.h.size = sizeof(node);
    show(&text, &map, &numbers, &pod.rec, &node.rec);
    bh_map_fini(&map);
    bh_umap_fini(&numbers);
    return 0;
}
