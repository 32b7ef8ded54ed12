/* SPDX-License-Identifier: Apache-2.0
 *
 * bench/scale/objects.c - what the nodes and pods of `berth bench scale` look like
 *
 * Objects are written as JSON once for each variant, packed as the API server packs them, and
 * stamped with numbers of a fixed width: what is read afterwards is what a watch brings.
 */
#include "bench/scale/scale.h"

#include <errno.h>
#include <inttypes.h>

#include "common/k8s/codec.h"
#include "proto/kubernetes/kubernetes.pb-c.h"

#define DIGITS     8u /* of a number in a name */
#define PLACES_MAX 6u
#define NODE_MARK  "########"
#define POD_MARK   "@@@@@@@@"
#define SIZES      3u /* of nodes */
#define TAINTS     3u /* none, NoSchedule, PreferNoSchedule */
#define IMAGES     8u

const char *const bh_scale_kind_names[BH_SCALE_KINDS] = {
    "plain", "zone selector", "tolerates", "prefers", "zone spread", "anti-affinity"};

struct stamped { /* a packed object and where its numbers go */
    struct bh_buf bytes;
    size_t node[PLACES_MAX], pod[PLACES_MAX];
    unsigned n_node, n_pod;
};
struct template_ {
    enum bh_scale_kind kind;
    struct stamped pending, assigned;
};
struct bh_scale_objects {
    uint32_t zones, n_templates;
    struct stamped *node; /* by zone, size, taint */
    struct template_ *tmpl;
    struct bh_arena arena;
};

/* ---- stamping -------------------------------------------------------------------------------- */

static unsigned find_marks(const struct bh_buf *b, const char *mark, size_t *at)
{
    unsigned n = 0;

    for (size_t i = 0; i + DIGITS <= b->n && n < PLACES_MAX; i++)
        if (memcmp(b->p + i, mark, DIGITS) == 0)
            at[n++] = i;
    return n;
}

static int pack(struct bh_scale_objects *s, struct stamped *st, const ProtobufCMessageDescriptor *d,
                const struct bh_buf *json, struct bh_err *err)
{
    ProtobufCMessage *m = NULL;
    int rc = bh_decode_object(&s->arena, d, json->p, json->n, &m, err);

    if (rc < 0)
        return rc;
    bh_pb_pack(&st->bytes, m);
    st->n_node = find_marks(&st->bytes, NODE_MARK, st->node);
    st->n_pod = find_marks(&st->bytes, POD_MARK, st->pod);
    bh_arena_reset(&s->arena);
    return 0;
}

static void write_number(char *p, uint32_t x)
{
    for (unsigned i = DIGITS; i-- > 0; x /= 10)
        p[i] = (char)('0' + x % 10);
}

static ProtobufCMessage *unpack(struct stamped *st, const ProtobufCMessageDescriptor *d,
                                uint32_t node, uint32_t pod, struct bh_arena *a, struct bh_err *err)
{
    ProtobufCMessage *m = NULL;

    for (unsigned i = 0; i < st->n_node; i++)
        write_number(st->bytes.p + st->node[i], node);
    for (unsigned i = 0; i < st->n_pod; i++)
        write_number(st->bytes.p + st->pod[i], pod);
    return bh_pb_unpack(a, d, st->bytes.p, st->bytes.n, &m, err) < 0 ? NULL : m;
}

/* ---- nodes -------------------------------------------------------------------------------------
 * 16, 32 or 64 cores; zones in turn; one in 20 is dedicated (NoSchedule), one in 50 is better left
 * alone (PreferNoSchedule); 12 labels, 8 images of a hundred.
 */

static void node_json(struct bh_buf *b, uint32_t zone, unsigned size, unsigned taint)
{
    static const char *const taints[TAINTS] = {
        "", "{\"key\":\"dedicated\",\"value\":\"batch\",\"effect\":\"NoSchedule\"}",
        "{\"key\":\"maintenance\",\"value\":\"soon\",\"effect\":\"PreferNoSchedule\"}"};
    unsigned cores = 16u << size;

    bh_buf_reset(b);
    bh_buf_addf(b,
                "{\"metadata\":{\"name\":\"node-" NODE_MARK "\",\"uid\":"
                "\"9c0ffee0-0000-4000-8000-0000" NODE_MARK "\",\"resourceVersion\":\"1\","
                "\"labels\":{\"kubernetes.io/hostname\":\"node-" NODE_MARK "\","
                "\"topology.kubernetes.io/zone\":\"zone-%" PRIu32 "\","
                "\"topology.kubernetes.io/region\":\"region-1\",\"kubernetes.io/arch\":\"amd64\","
                "\"kubernetes.io/os\":\"linux\",\"beta.kubernetes.io/arch\":\"amd64\","
                "\"beta.kubernetes.io/os\":\"linux\",\"disk\":\"%s\",\"pool\":\"pool-%u\","
                "\"node.kubernetes.io/instance-type\":\"m%u\",\"team\":\"platform\","
                "\"kernel\":\"6.1\"}},\"spec\":{\"taints\":[%s]},\"status\":{\"allocatable\":{"
                "\"cpu\":\"%u\",\"memory\":\"%uGi\",\"ephemeral-storage\":\"200Gi\","
                "\"pods\":\"110\"%s},\"images\":[",
                zone, size == 1 ? "ssd" : "hdd", size, cores, taints[taint], cores, 4 * cores,
                size == 2 ? ",\"example.com/gpu\":\"8\"" : "");
    for (unsigned i = 0; i < IMAGES; i++)
        bh_buf_addf(b, "%s{\"names\":[\"registry.example.com/app-%u:v1\"],\"sizeBytes\":%u}",
                    i ? "," : "", (zone * 7 + size * 31 + i * 13) % 100, 50000000 + 1000000 * i);
    bh_buf_adds(b, "],\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]}}");
}

static int make_nodes(struct bh_scale_objects *s, struct bh_buf *json, struct bh_err *err)
{
    s->node = bh_calloc((size_t)s->zones * SIZES * TAINTS, sizeof(*s->node));
    for (uint32_t i = 0; i < s->zones * SIZES * TAINTS; i++) {
        node_json(json, i / (SIZES * TAINTS), i / TAINTS % SIZES, i % TAINTS);
        int rc = pack(s, &s->node[i], &k8s__node__descriptor, json, err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

int bh_scale_node(struct bh_scale_objects *s, uint32_t node, struct bh_arena *a,
                  const struct bh_interner *in, struct bh_node_rec **ret, struct bh_err *err)
{
    uint32_t variant =
        (node % s->zones * SIZES + (node / s->zones % SIZES)) * TAINTS + (node % 20 == 7    ? 1
                                                                          : node % 50 == 11 ? 2
                                                                                            : 0);
    ProtobufCMessage *m = unpack(&s->node[variant], &k8s__node__descriptor, node, 0, a, err);

    return m ? bh_compile_node(a, (K8s__Node *)m, in, ret, err) : -EINVAL;
}

uint32_t bh_scale_node_number(const char *name)
{
    return (uint32_t)strtoul(name + strlen("node-"), NULL, 10);
}

/* ---- pods ------------------------------------------------------------------------------------ */

/* What is behind the containers; %u: the number of the template, or of a zone. */
static const char *const constraints[BH_SCALE_KINDS] = {
    [BH_SCALE_PLAIN] = "",
    [BH_SCALE_SELECTOR] = ",\"nodeSelector\":{\"topology.kubernetes.io/zone\":\"zone-%u\"}",
    [BH_SCALE_TOLERATES] = ",\"tolerations\":[{\"key\":\"dedicated\",\"operator\":\"Exists\"}]",
    [BH_SCALE_PREFERS] =
        ",\"affinity\":{\"nodeAffinity\":{\"preferredDuringSchedulingIgnoredDuringExecution\":["
        "{\"weight\":50,\"preference\":{\"matchExpressions\":[{\"key\":\"disk\",\"operator\":"
        "\"In\",\"values\":[\"ssd\"]}]}}]}}",
    [BH_SCALE_SPREAD] = ",\"topologySpreadConstraints\":[{\"maxSkew\":5,\"topologyKey\":"
                        "\"topology.kubernetes.io/zone\",\"whenUnsatisfiable\":\"DoNotSchedule\","
                        "\"labelSelector\":{\"matchLabels\":{\"app\":\"app-%u\"}}}]",
    [BH_SCALE_APART] =
        ",\"affinity\":{\"podAntiAffinity\":{\"requiredDuringSchedulingIgnoredDuringExecution\":["
        "{\"topologyKey\":\"kubernetes.io/hostname\",\"labelSelector\":{\"matchLabels\":{"
        "\"app\":\"app-%u\"}}}]}}",
};

static void pod_json(struct bh_buf *b, enum bh_scale_kind kind, uint32_t i, uint32_t zones,
                     bool assigned)
{
    bh_buf_reset(b);
    bh_buf_addf(b,
                "{\"metadata\":{\"name\":\"app-%" PRIu32 "-5d9c7b6f8d-" POD_MARK
                "\",\"namespace\":\"production\",\"uid\":\"6f1d2c3b-0000-4000-8000-0000" POD_MARK
                "\",\"resourceVersion\":\"1\",\"creationTimestamp\":\"2026-01-01T00:00:00Z\","
                "\"labels\":{\"app\":\"app-%" PRIu32 "\",\"pod-template-hash\":\"5d9c7b6f8d\","
                "\"tier\":\"backend\"}},\"spec\":{\"schedulerName\":\"default-scheduler\","
                "\"priority\":%u,\"containers\":[{\"name\":\"main\",\"image\":"
                "\"registry.example.com/app-%" PRIu32
                ":v1\",\"resources\":{\"requests\":{\"cpu\":\"%um\",\"memory\":\"%uMi\"}}}]",
                i, i, i % 3 * 10, i % 200, 50 + i % 12 * 100, 64 + i % 17 * 96);
    bh_buf_addf(b, constraints[kind], kind == BH_SCALE_SELECTOR ? i % zones : i);
    if (assigned)
        bh_buf_adds(b, ",\"nodeName\":\"node-" NODE_MARK "\"},\"status\":{\"phase\":\"Running\","
                       "\"startTime\":\"2026-01-01T00:00:01Z\"}}");
    else
        bh_buf_adds(b, "},\"status\":{\"phase\":\"Pending\"}}");
}

static int make_templates(struct bh_scale_objects *s, const struct bh_scale_options *o,
                          struct bh_buf *json, struct bh_err *err)
{
    int rc = 0;

    s->tmpl = bh_calloc(o->templates, sizeof(*s->tmpl));
    for (uint32_t i = 0; s->n_templates < o->templates && rc >= 0; i++) {
        struct template_ *t = &s->tmpl[s->n_templates];
        /* Of 100: 72 plain, 12 selector, 8 tolerates, 4 prefers, 2 spread, 2 apart; mixed up. */
        unsigned x = i * 37 % 100;
        t->kind = x < 72   ? BH_SCALE_PLAIN
                  : x < 84 ? BH_SCALE_SELECTOR
                  : x < 92 ? BH_SCALE_TOLERATES
                  : x < 96 ? BH_SCALE_PREFERS
                  : x < 98 ? BH_SCALE_SPREAD
                           : BH_SCALE_APART;
        if (o->only && !bh_streq(o->only, bh_scale_kind_names[t->kind]))
            continue;
        s->n_templates++;
        for (unsigned k = 0; k < 2 && rc >= 0; k++) {
            pod_json(json, t->kind, i, s->zones, k);
            rc = pack(s, k ? &t->assigned : &t->pending, &k8s__pod__descriptor, json, err);
        }
    }
    return rc;
}

int bh_scale_pod(struct bh_scale_objects *s, uint32_t tmpl, uint32_t pod, uint32_t node,
                 struct bh_arena *a, const struct bh_interner *in, struct bh_shape_rec **ret_shape,
                 struct bh_pod_rec **ret_pod, struct bh_err *err)
{
    struct template_ *t = &s->tmpl[tmpl];
    struct stamped *st = node == BH_SCALE_NO_NODE ? &t->pending : &t->assigned;
    K8s__Pod *p = (K8s__Pod *)unpack(st, &k8s__pod__descriptor, node, pod, a, err);

    if (!p)
        return -EINVAL;
    int rc = bh_compile_shape(a, p, in, ret_shape, err);
    return rc < 0 ? rc : bh_compile_pod(a, p, in, ret_pod, err);
}

struct bh_str bh_scale_pod_bytes(const struct bh_scale_objects *s, uint32_t tmpl)
{
    const struct bh_buf *b = &s->tmpl[tmpl].pending.bytes;

    return (struct bh_str){b->p, b->n};
}

void bh_scale_uid(uint32_t pod, char out[static BH_SCALE_NAME_BYTES])
{
    snprintf(out, BH_SCALE_NAME_BYTES, "6f1d2c3b-0000-4000-8000-0000%08" PRIu32, pod);
}

/* ---- life ------------------------------------------------------------------------------------ */

uint32_t bh_scale_templates(const struct bh_scale_objects *s)
{
    return s->n_templates;
}

enum bh_scale_kind bh_scale_kind_of(const struct bh_scale_objects *s, uint32_t tmpl)
{
    return s->tmpl[tmpl].kind;
}

struct bh_scale_objects *bh_scale_objects_new(const struct bh_scale_options *o, uint32_t nodes,
                                              struct bh_err *err)
{
    struct bh_scale_objects *s = bh_calloc(1, sizeof(*s));
    struct bh_buf json BH_CLEANUP(bh_buf_fini) = {0};

    s->zones = BH_MIN(o->zones, nodes);
    int rc = make_nodes(s, &json, err);
    if (rc >= 0)
        rc = make_templates(s, o, &json, err);
    if (rc >= 0)
        return s;
    bh_scale_objects_free(s);
    return NULL;
}

void bh_scale_objects_free(struct bh_scale_objects *s)
{
    if (!s)
        return;
    for (uint32_t i = 0; s->node && i < s->zones * SIZES * TAINTS; i++)
        bh_buf_fini(&s->node[i].bytes);
    for (uint32_t i = 0; i < s->n_templates; i++) {
        bh_buf_fini(&s->tmpl[i].pending.bytes);
        bh_buf_fini(&s->tmpl[i].assigned.bytes);
    }
    free(s->node);
    free(s->tmpl);
    bh_arena_fini(&s->arena);
    free(s);
}
