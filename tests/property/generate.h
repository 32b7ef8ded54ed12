/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/property/generate.h - private to generate*.c
 *
 * Objects are made as text with ' for " (and ` for ' where a text needs one), because that reads
 * like the object; pieces of a list or of members begin with their comma or are "".
 */
#ifndef BH_PROPERTY_GENERATE_H
#define BH_PROPERTY_GENERATE_H

#include "tests/property/property.h"

#define TEMPLATES 8

struct template
{ /* pods of one template share a shape, which is what the fast path keeps results by */
    const char *namespace_, *labels, *owner, *spec, *status;
};
struct gen {
    struct bh_arena *a;
    struct bh_rand r;
    uint32_t on; /* enum feature */
    unsigned n_nodes, n_profiles, n_pods, serial;
    struct template templates[TEMPLATES];
    struct bh_json *ops;
    bool node_there[64];
    struct bh_map others; /* "kind ns/name" -> struct bh_json: objects whose spec cannot change */
    struct gen_pod {
        const struct template *t;
        const char *key, *name; /* key: ns/name */
        struct bh_json *object; /* as it was applied last */
        unsigned uid;
        bool bound; /* by the generator; whoever is scheduled is not */
        bool gone;
        const char *group; /* of PodGroups; NULL: none */
    } pods[512];
};

#define T(g, ...) bh_arena_printf((g)->a, __VA_ARGS__)
unsigned below(struct gen *g, unsigned n);
bool chance(struct gen *g, unsigned percent);
const char *any(struct gen *g, const char *const *v, unsigned n);
#define ONE(g, ...)                                                                                \
    any((g), (const char *const[]){__VA_ARGS__},                                                   \
        sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *))
static inline bool has(const struct gen *g, uint32_t f)
{
    return (g->on & f) != 0;
}
/* Text with the quotes of this file to a tree. */
struct bh_json *parse(struct gen *g, const char *text);
const char *any_namespace(struct gen *g);
const char *any_node(struct gen *g);
const char *label_selector(struct gen *g); /* an object */
const char *node_requirement(struct gen *g);

/* generate_pod.c */
void make_template(struct gen *g, struct template *t);
const char *pod_text(struct gen *g, const struct gen_pod *p, const char *node,
                     const char *more_meta, const char *more_spec);
/* generate_objects.c */
const char *node_text(struct gen *g, unsigned i);
const char *other_text(struct gen *g); /* an object of a kind that is on; NULL = none is */
void starting_objects(struct gen *g);
const char *pod_volumes(struct gen *g, const char *ns); /* members of a pod's spec */
const char *pod_claims(struct gen *g, const char *ns, const char **ret_status);
/* generate_config.c */
const char *config_text(struct gen *g); /* NULL = defaults */
/* generate_groups.c */
const char *some_group(struct gen *g); /* a name for a new pod; NULL: none */
void change_groups(struct gen *g);     /* one comes, or goes */
const char *gates_text(struct gen *g);

void add_op(struct gen *g, const char *text);
void apply_op(struct gen *g, const char *object);
void apply_tree(struct gen *g, struct bh_json *object);
void other_op(struct gen *g, const char *object); /* an object other than nodes and pods */
#endif
