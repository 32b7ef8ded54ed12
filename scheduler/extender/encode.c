/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/extender/encode.c - requests as JSON text
 *
 * Members stand in the order of upstream's Go structs, with capitals; what is not used is null,
 * never left out. Whole objects are the text that objects.c keeps.
 *
 * Upstream: kube-scheduler/extender/v1/types.go (ExtenderArgs, ExtenderPreemptionArgs,
 *           ExtenderBindingArgs).
 */
#include "scheduler/extender/ext_int.h"

static void add_text(struct bh_buf *out, const char *before, struct bh_str s)
{
    bh_buf_adds(out, before);
    bh_buf_add_json_str(out, s.p ? s.p : "", s.n);
}

static const char *add_pod(struct bh_ext *x, struct bh_buf *out, const struct bh_ext_pod *pod)
{
    bh_buf_adds(out, "{\"Pod\":");
    if (bh_ext_add_pod(x, out, pod->uid, ""))
        return NULL;
    return bh_arena_printf(&x->arena, "the object of pod %.*s/%.*s is not known",
                           (int)pod->namespace_.n, pod->namespace_.p, (int)pod->name.n,
                           pod->name.p);
}

const char *bh_ext_encode_args(struct bh_ext *x, struct bh_buf *out, bool names,
                               const struct bh_ext_pod *pod, const struct bh_ext_node *nodes,
                               uint32_t n)
{
    const char *error = add_pod(x, out, pod);

    if (error)
        return error;
    bh_buf_adds(out, names ? ",\"Nodes\":null,\"NodeNames\":["
                           : ",\"Nodes\":{\"metadata\":{},\"items\":[");
    for (uint32_t i = 0; i < n; i++) {
        bh_buf_adds(out, i ? "," : "");
        if (names)
            add_text(out, "", bh_str_c(nodes[i].name));
        else if (nodes[i].object)
            bh_json_write(out, nodes[i].object);
        else if (!bh_ext_add_node(x, out, nodes[i].name))
            return bh_arena_printf(&x->arena, "the object of node %s is not known", nodes[i].name);
    }
    bh_buf_adds(out, names ? "]}" : "]},\"NodeNames\":null}");
    return NULL;
}

/* An object that is not known (any more) is sent as what is certain about it: a victim is chosen
 * already. */
static void add_victim(struct bh_ext *x, struct bh_buf *out, const struct bh_ext_victim *v,
                       const char *node)
{
    if (bh_ext_add_pod(x, out, v->uid, node))
        return;
    add_text(out, "{\"metadata\":{\"name\":", v->name);
    add_text(out, ",\"namespace\":", v->namespace_);
    add_text(out, ",\"uid\":", v->uid);
    add_text(out, "},\"spec\":{\"containers\":null,\"nodeName\":", bh_str_c(node));
    bh_buf_adds(out, "},\"status\":{}}");
}

const char *bh_ext_encode_victims(struct bh_ext *x, struct bh_buf *out, bool meta,
                                  const struct bh_ext_pod *pod, const struct bh_ext_victims *v,
                                  uint32_t n)
{
    const char *error = add_pod(x, out, pod);

    if (error)
        return error;
    bh_buf_adds(out, meta ? ",\"NodeNameToVictims\":null,\"NodeNameToMetaVictims\":{"
                          : ",\"NodeNameToVictims\":{");
    for (uint32_t i = 0; i < n; i++) {
        add_text(out, i ? "," : "", bh_str_c(v[i].node));
        bh_buf_adds(out, ":{\"Pods\":[");
        for (uint32_t k = 0; k < v[i].n_pods; k++) {
            bh_buf_adds(out, k ? "," : "");
            if (!meta) {
                add_victim(x, out, &v[i].pods[k], v[i].node);
                continue;
            }
            add_text(out, "{\"UID\":", v[i].pods[k].uid);
            bh_buf_addc(out, '}');
        }
        bh_buf_adds(out, "],\"NumPDBViolations\":");
        bh_buf_addi64(out, v[i].violations);
        bh_buf_addc(out, '}');
    }
    bh_buf_adds(out, meta ? "}}" : "},\"NodeNameToMetaVictims\":null}");
    return NULL;
}

void bh_ext_encode_bind(struct bh_buf *out, const struct bh_ext_pod *pod, const char *node)
{
    add_text(out, "{\"PodName\":", pod->name);
    add_text(out, ",\"PodNamespace\":", pod->namespace_);
    add_text(out, ",\"PodUID\":", pod->uid);
    add_text(out, ",\"Node\":", bh_str_c(node));
    bh_buf_addc(out, '}');
}
