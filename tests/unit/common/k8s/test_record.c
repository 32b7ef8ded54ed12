/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/common/k8s/test_record.c - records are moved between symbol tables, and foreign bytes
 * are rejected or harmless
 */
#include <errno.h>

#include "common/k8s/codec.h"
#include "common/k8s/compile.h"
#include "common/k8s/record_layout.h"
#include "proto/kubernetes/kubernetes.pb-c.h"
#include "tests/unit/harness.h"

static struct bh_arena arena;

static const char pod_text[] =
    "{\"metadata\":{\"name\":\"web-1\",\"namespace\":\"shop\",\"uid\":\"0f\",\"labels\":{\"app\":"
    "\"web\","
    "\"tier\":\"front\",\"a\":\"b\"}},\"spec\":{\"nodeName\":\"n1\",\"priority\":7,"
    "\"schedulerName\":\"d\","
    "\"nodeSelector\":{\"disk\":\"ssd\",\"zone\":\"z1\"},\"tolerations\":[{\"key\":\"k\","
    "\"operator\":"
    "\"Exists\"},{\"key\":\"k2\",\"value\":\"v2\",\"effect\":\"NoExecute\"}],\"affinity\":{"
    "\"nodeAffinity\":{"
    "\"requiredDuringSchedulingIgnoredDuringExecution\":{\"nodeSelectorTerms\":[{"
    "\"matchExpressions\":[{"
    "\"key\":\"zone\",\"operator\":\"In\",\"values\":[\"z1\",\"z2\",\"z3\"]},{\"key\":\"gen\","
    "\"operator\":"
    "\"Gt\",\"values\":[\"5\"]}],\"matchFields\":[{\"key\":\"metadata.name\",\"operator\":"
    "\"NotIn\","
    "\"values\":[\"n9\"]}]},{},{\"matchExpressions\":[{\"key\":\"x\",\"operator\":\"Like\"}]}]},"
    "\"preferredDuringSchedulingIgnoredDuringExecution\":[{\"weight\":5,\"preference\":{"
    "\"matchExpressions\":[{\"key\":\"zone\",\"operator\":\"Exists\"}]}}]},\"podAffinity\":{"
    "\"requiredDuringSchedulingIgnoredDuringExecution\":[{\"topologyKey\":\"zone\","
    "\"labelSelector\":{\"matchLabels\":{\"app\":\"db\"},\"matchExpressions\":[{\"key\":\"tier\","
    "\"operator\":\"NotIn\",\"values\":[\"x\",\"y\"]}]},\"namespaces\":[\"n1\",\"n2\"],"
    "\"namespaceSelector\":{\"matchLabels\":{\"team\":\"t\"}}},{\"topologyKey\":\"host\"}]},"
    "\"podAntiAffinity\":{\"preferredDuringSchedulingIgnoredDuringExecution\":[{\"weight\":3,"
    "\"podAffinityTerm\":{\"topologyKey\":\"zone\",\"labelSelector\":{\"matchExpressions\":[{"
    "\"key\":\"app\",\"operator\":\"Like\"}]}}}]}},\"topologySpreadConstraints\":[{\"maxSkew\":1,"
    "\"topologyKey\":\"zone\",\"whenUnsatisfiable\":\"DoNotSchedule\",\"labelSelector\":{"
    "\"matchLabels\":{\"app\":\"web\"}},\"matchLabelKeys\":[\"tier\"]}],\"volumes\":[{"
    "\"name\":\"v\",\"persistentVolumeClaim\":{\"claimName\":\"c1\"}},{\"name\":\"r\",\"rbd\":{"
    "\"monitors\":[\"m1\",\"m2\"],\"image\":\"i\",\"readOnly\":true}}],\"resourceClaims\":[{"
    "\"name\":\"x\",\"resourceClaimName\":\"rc\"},{\"name\":\"y\","
    "\"resourceClaimTemplateName\":\"t\"}],\"schedulingGates\":[{"
    "\"name\":"
    "\"g\"}],\"containers\":[{\"name\":\"c\",\"image\":\"web\",\"ports\":[{\"hostPort\":80},{"
    "\"hostPort\":"
    "81}],\"resources\":{\"requests\":{\"cpu\":\"1\",\"x/y\":\"2\",\"a/b\":\"1\",\"m/"
    "n\":\"3\"},\"limits\":{\"cpu\":\"2\"}}}],\"overhead\":{\"cpu\":\"1\"}},\"status\":{"
    "\"resourceClaimStatuses\":[{\"name\":\"y\",\"resourceClaimName\":"
    "\"ry\"},{\"name\":\"x\"}]}}";
static const char node_text[] =
    "{\"metadata\":{\"name\":\"n1\",\"uid\":\"u\",\"labels\":{\"zone\":"
    "\"z2\",\"gen\":\"6\",\"disk\":\"ssd\"}},"
    "\"spec\":{\"taints\":[{\"key\":\"k2\",\"value\":\"v2\",\"effect\":"
    "\"NoExecute\"}]},\"status\":{"
    "\"allocatable\":{\"cpu\":\"4\",\"x/y\":\"2\",\"a/"
    "b\":\"7\"},\"capacity\":{\"cpu\":\"4\",\"x/y\":\"3\"},\"images\":[{\"names\":[\"web:latest\"],"
    "\"sizeBytes\":9}],\"declaredFeatures\":[\"F\"]}}";

struct world {
    struct bh_symtab *tab;
    void *rec[3]; /* node, shape, pod */
};

static void build(struct world *w)
{
    ProtobufCMessage *pod, *node;
    bh_arena_fini(&arena);
    bh_arena_init(&arena, 0);
    w->tab = bh_symtab_new();
    struct bh_interner in = bh_symtab_interner(w->tab);
    CU_ASSERT_EQUAL_FATAL(
        bh_decode_object(&arena, &k8s__pod__descriptor, pod_text, strlen(pod_text), &pod, NULL), 0);
    CU_ASSERT_EQUAL_FATAL(
        bh_decode_object(&arena, &k8s__node__descriptor, node_text, strlen(node_text), &node, NULL),
        0);
    CU_ASSERT_EQUAL_FATAL(
        bh_compile_node(&arena, (K8s__Node *)node, &in, (struct bh_node_rec **)&w->rec[0], NULL),
        0);
    CU_ASSERT_EQUAL_FATAL(
        bh_compile_shape(&arena, (K8s__Pod *)pod, &in, (struct bh_shape_rec **)&w->rec[1], NULL),
        0);
    CU_ASSERT_EQUAL_FATAL(
        bh_compile_pod(&arena, (K8s__Pod *)pod, &in, (struct bh_pod_rec **)&w->rec[2], NULL), 0);
}

static size_t size_of(const void *rec)
{
    return ((const struct bh_rec_head *)rec)->size;
}

static void *copy_of(const void *rec)
{
    return bh_memdup(rec, size_of(rec));
}

struct tables {
    const struct bh_symtab *from;
    struct bh_symtab *to;
};

static bh_sym translate(void *arg, bh_sym s)
{
    struct tables *t = arg;
    struct bh_str text = bh_sym_str(t->from, s);
    return bh_sym_intern(t->to, text.p, text.n);
}

static bool matches(const struct world *w, const struct bh_symtab *tab)
{
    const struct bh_shape_rec *s = w->rec[1];
    const struct bh_node_term *t = bh_rec_at(s, s->required_terms, struct bh_node_term);
    return bh_node_term_match(s, &t[0], w->rec[0], tab, bh_sym_find(tab, "metadata.name", 13));
}

static bool kvs_sorted(const void *rec, struct bh_slice s)
{
    const struct bh_kv *v = bh_rec_at(rec, s, struct bh_kv);
    for (uint32_t i = 1; i < s.n; i++) {
        if (v[i - 1].key >= v[i].key)
            return false;
    }
    return true;
}

static void test_remap_keeps_meaning(void)
{
    struct world w, moved;
    build(&w);
    CU_ASSERT(matches(&w, w.tab));
    struct tables t = {w.tab, bh_symtab_new()};
    /* Another order of symbols: the last interned first. */
    for (bh_sym s = bh_symtab_count(w.tab); s-- > 0;)
        translate(&t, s);
    moved.tab = t.to;
    for (int i = 0; i < 3; i++) {
        moved.rec[i] = copy_of(w.rec[i]);
        CU_ASSERT_EQUAL(bh_rec_remap(moved.rec[i], size_of(moved.rec[i]), translate, &t), 0);
        CU_ASSERT_EQUAL(bh_rec_remap(moved.rec[i], size_of(moved.rec[i]), NULL, NULL), 0);
    }
    CU_ASSERT(matches(&moved, moved.tab));
    const struct bh_node_rec *n = moved.rec[0];
    const struct bh_shape_rec *s = moved.rec[1];
    const struct bh_pod_rec *p = moved.rec[2];
    CU_ASSERT_STRING_EQUAL(bh_sym_text(t.to, n->name), "n1");
    CU_ASSERT_STRING_EQUAL(bh_sym_text(t.to, p->node), "n1");
    CU_ASSERT(kvs_sorted(n, n->labels) && kvs_sorted(s, s->labels) &&
              kvs_sorted(s, s->node_selector));
    const struct bh_res *r = bh_rec_at(s, s->fit.scalars, struct bh_res);
    CU_ASSERT_EQUAL_FATAL(s->fit.scalars.n, 3);
    for (uint32_t i = 0; i < 3; i++) {
        const char *name = bh_sym_text(t.to, r[i].name);
        CU_ASSERT(i == 0 || r[i - 1].name < r[i].name);
        CU_ASSERT_EQUAL(r[i].value, *name == 'x' ? 2 : *name == 'a' ? 1 : 3);
    }
    /* and back again: the same bytes */
    struct tables back = {t.to, w.tab};
    for (int i = 0; i < 3; i++) {
        CU_ASSERT_EQUAL(bh_rec_remap(moved.rec[i], size_of(moved.rec[i]), translate, &back), 0);
        CU_ASSERT_EQUAL(memcmp(moved.rec[i], w.rec[i], size_of(w.rec[i])), 0);
        CU_ASSERT_EQUAL(bh_rec_hash(moved.rec[i]), bh_rec_hash(w.rec[i]));
        free(moved.rec[i]);
    }
    bh_symtab_free(t.to);
    bh_symtab_free(w.tab);
}

struct counter {
    size_t calls;
    bh_sym max;
};

static bh_sym count(void *arg, bh_sym s)
{
    struct counter *c = arg;
    c->calls++;
    CU_ASSERT(s != BH_SYM_NONE && s < c->max);
    return s;
}

static void test_every_symbol_is_mapped_once(void)
{
    struct world w;
    static const size_t want[] = {
        /* node: name, uid, 3 labels, 1 taint (key, value), 2 scalars, 1 image, 1 feature, 2 of
         * capacity */
        2 + 6 + 2 + 2 + 1 + 1 + 2,
        /* shape: namespace, scheduler, 9 scalars, 3 labels, 3 of 2 tolerations, 2 selectors,
         * error, 3 requirements with 5 values, 1 requirement, 2 ports, image, gate;
         * affinity: 2 keys, 3 requirements with 4 values, 3 namespaces; anti-affinity: key, error,
         * namespace; spread: key, 2 requirements with 2 values; volumes: 2 of a claim, 5 of a disk;
         * 4 of claims, 3 extended resources and their
         * containers; 4 requests, 1 limit, 1 overhead, 1 name of a container */
        2 + 9 + 6 + 3 + 4 + 1 + 3 + 5 + 1 + 4 + 1 + 1 + (2 + 3 + 4 + 3) + 3 + (1 + 2 + 2) +
            (2 + 5) + 4 + 3 * 2 + (4 + 1 + 1 + 1),
        1 + 3, /* pod: node, statuses of claims */
    };
    build(&w);
    for (int i = 0; i < 3; i++) {
        struct counter c = {0, bh_symtab_count(w.tab)};
        CU_ASSERT_EQUAL(bh_rec_remap(w.rec[i], size_of(w.rec[i]), count, &c), 0);
        if (c.calls != want[i])
            printf("  record %d: %zu symbols\n", i, c.calls);
        CU_ASSERT_EQUAL(c.calls, want[i]);
    }
    bh_symtab_free(w.tab);
}

static void test_wrong_sizes(void)
{
    struct world w;
    build(&w);
    for (int i = 0; i < 3; i++) {
        size_t n = size_of(w.rec[i]);
        for (size_t k = 0; k < n; k++) {
            void *p = bh_memdup(w.rec[i], k ? k : 1);
            CU_ASSERT_EQUAL(bh_rec_remap(p, k, NULL, NULL), -EBADMSG);
            if (k >= sizeof(struct bh_rec_head)) { /* a head that claims what there is */
                ((struct bh_rec_head *)p)->size = (uint32_t)k;
                CU_ASSERT_EQUAL(bh_rec_remap(p, k, NULL, NULL), -EBADMSG);
            }
            free(p);
        }
        struct bh_rec_head *h = bh_realloc(copy_of(w.rec[i]), n + 8);
        memset((char *)h + n, 0, 8);
        h->size = (uint32_t)n + 8;
        CU_ASSERT_EQUAL(bh_rec_remap(h, n + 8, NULL, NULL), -EBADMSG); /* bytes behind the end */
        h->size = (uint32_t)n;
        h->layout++;
        CU_ASSERT_EQUAL(bh_rec_remap(h, n, NULL, NULL), -EBADMSG);
        h->layout--;
        for (unsigned t = 0; t < 8; t++) {
            unsigned was = h->type;
            h->type = (uint16_t)t;
            CU_ASSERT_EQUAL(bh_rec_remap(h, n, NULL, NULL), t == was ? 0 : -EBADMSG);
            h->type = (uint16_t)was;
        }
        free(h);
    }
    bh_symtab_free(w.tab);
}

static void test_overlap_is_rejected(void)
{
    struct world w;
    build(&w);
    struct bh_shape_rec *s = copy_of(w.rec[1]);
    struct bh_slice was = s->labels;
    s->labels = s->node_selector; /* in range and aligned, but used twice */
    CU_ASSERT_EQUAL(bh_rec_remap(s, s->h.size, NULL, NULL), -EBADMSG);
    s->labels = was;
    s->labels.n--;
    CU_ASSERT_EQUAL(bh_rec_remap(s, s->h.size, NULL, NULL), -EBADMSG);
    s->labels.n += 2;
    CU_ASSERT_EQUAL(bh_rec_remap(s, s->h.size, NULL, NULL), -EBADMSG);
    s->labels = (struct bh_slice){was.off, 0};
    CU_ASSERT_EQUAL(bh_rec_remap(s, s->h.size, NULL, NULL), -EBADMSG);
    s->labels = (struct bh_slice){was.off, UINT32_MAX};
    CU_ASSERT_EQUAL(bh_rec_remap(s, s->h.size, NULL, NULL), -EBADMSG);
    s->labels = was;
    CU_ASSERT_EQUAL(bh_rec_remap(s, s->h.size, NULL, NULL), 0);
    free(s);
    bh_symtab_free(w.tab);
}

static void test_enums_and_padding(void)
{
    struct world w;
    build(&w);
    struct bh_shape_rec *s = copy_of(w.rec[1]);
    struct bh_toleration *t = (void *)((char *)s + s->tolerations.off);
    struct bh_node_term *term = (void *)((char *)s + s->required_terms.off);
    struct bh_requirement *r = (void *)((char *)s + term->expressions.off);
    struct bh_host_port *port = (void *)((char *)s + s->host_ports.off);
    struct bh_pod_term *near = (void *)((char *)s + s->affinity.off);
    struct bh_spread *spread = (void *)((char *)s + s->spread.off);
    struct bh_volume *volume = (void *)((char *)s + s->volumes.off);
    struct bh_pod_claim *asked = (void *)((char *)s + s->claims.off);
    struct bh_extended_request *extended = (void *)((char *)s + s->extended.off);
    uint32_t *const fields[] = {&t->op,
                                &t->effect,
                                &term->flags,
                                &term->pad,
                                &r->op,
                                &port->pad,
                                &s->flags,
                                &s->pad,
                                &s->owner_kind,
                                &near->selector.flags,
                                &near->namespace_selector.flags,
                                &spread->flags,
                                &spread->selector.flags,
                                &volume->type,
                                &volume->flags,
                                &asked->pad,
                                &extended->flags,
                                &extended->pad,
                                (uint32_t *)&port->port};
    for (size_t i = 0; i < BH_ARRAY_LEN(fields); i++) {
        uint32_t was = *fields[i];
        *fields[i] = 0x80000000u;
        CU_ASSERT_EQUAL(bh_rec_remap(s, s->h.size, NULL, NULL), -EBADMSG);
        *fields[i] = was;
        CU_ASSERT_EQUAL(bh_rec_remap(s, s->h.size, NULL, NULL), 0);
    }
    volume[1].type = BH_VOL_CLAIM; /* has monitors */
    CU_ASSERT_EQUAL(bh_rec_remap(s, s->h.size, NULL, NULL), -EBADMSG);
    volume[1].type = BH_VOL_RBD;
    near->selector.flags = BH_SELECTOR_NIL; /* has requirements */
    CU_ASSERT_EQUAL(bh_rec_remap(s, s->h.size, NULL, NULL), -EBADMSG);
    struct bh_pod_rec *p = copy_of(w.rec[2]);
    char *name = (char *)p + p->name.off;
    name[1] = '\0'; /* text must not end early */
    CU_ASSERT_EQUAL(bh_rec_remap(p, p->h.size, NULL, NULL), -EBADMSG);
    name[1] = 'e';
    name[p->name.n] = 'x';
    CU_ASSERT_EQUAL(bh_rec_remap(p, p->h.size, NULL, NULL), -EBADMSG);
    name[p->name.n] = '\0';
    name[p->name.n + 1] = 'x'; /* padding */
    CU_ASSERT_EQUAL(bh_rec_remap(p, p->h.size, NULL, NULL), -EBADMSG);
    free(p);
    free(s);
    bh_symtab_free(w.tab);
}

static bh_sym identity(void *arg, bh_sym s)
{
    (*(size_t *)arg)++;
    return s;
}

/* Whatever survives the check can be read without leaving the blob (ASan sees to that). */
static void use_all(const void *rec, const struct world *w)
{
    const struct bh_rec_head *h = rec;
    static volatile uint64_t sink; /* keeps the reads */
    uint64_t sum = bh_rec_hash(rec);
    if (h->type == BH_REC_SHAPE) {
        const struct bh_shape_rec *s = rec;
        const struct bh_slice lists[] = {s->required_terms, s->preferred_terms};
        for (size_t k = 0; k < 2; k++) {
            const struct bh_node_term *t = bh_rec_at(s, lists[k], struct bh_node_term);
            for (uint32_t i = 0; i < lists[k].n; i++)
                sum += bh_node_term_match(s, &t[i], w->rec[0], w->tab, 1);
        }
        const struct bh_slice terms[] = {s->affinity, s->anti_affinity, s->preferred_affinity,
                                         s->preferred_anti_affinity};
        const struct bh_kv *labels = bh_rec_at(s, s->labels, struct bh_kv);
        for (size_t k = 0; k < BH_ARRAY_LEN(terms); k++) {
            const struct bh_pod_term *t = bh_rec_at(s, terms[k], struct bh_pod_term);
            for (uint32_t i = 0; i < terms[k].n; i++) {
                const bh_sym *ns = bh_rec_at(s, t[i].namespaces, bh_sym);
                sum += bh_selector_matches(s, &t[i].selector, labels, s->labels.n, w->tab);
                sum +=
                    bh_selector_matches(s, &t[i].namespace_selector, labels, s->labels.n, w->tab);
                sum += t[i].namespaces.n ? ns[t[i].namespaces.n - 1] : 0;
            }
        }
        const struct bh_spread *spread = bh_rec_at(s, s->spread, struct bh_spread);
        for (uint32_t i = 0; i < s->spread.n; i++)
            sum += bh_selector_matches(s, &spread[i].selector, labels, s->labels.n, w->tab);
        const struct bh_volume *volume = bh_rec_at(s, s->volumes, struct bh_volume);
        for (uint32_t i = 0; i < s->volumes.n; i++)
            for (uint32_t k = 0; k < volume[i].monitors.n; k++)
                sum += bh_rec_at(s, volume[i].monitors, bh_sym)[k];
    } else if (h->type == BH_REC_POD) {
        const struct bh_pod_rec *p = rec;
        sum += strlen(bh_rec_text(p, p->name).p) + strlen(bh_rec_text(p, p->uid).p);
    }
    sink = sum;
    (void)sink;
}

static void test_corrupted_bytes(void)
{
    struct world w;
    struct bh_rand r;
    build(&w);
    bh_rand_seed(&r, 7);
    for (int i = 0; i < 3; i++) {
        size_t n = size_of(w.rec[i]), accepted = 0;
        for (size_t at = 0; at < n; at++) { /* each byte, a few values */
            static const uint8_t values[] = {0x01, 0x80, 0xff};
            for (size_t v = 0; v < sizeof(values); v++) {
                uint8_t *p = copy_of(w.rec[i]);
                size_t calls = 0;
                p[at] ^= values[v];
                if (bh_rec_remap(p, n, identity, &calls) == 0) {
                    accepted++;
                    use_all(p, &w);
                }
                CU_ASSERT(calls <= n / 4);
                free(p);
            }
        }
        CU_ASSERT(accepted > 0 && accepted < 3 * n); /* amounts and symbols may be anything */
        for (int k = 0; k < 20000; k++) {
            uint8_t *p = copy_of(w.rec[i]);
            size_t calls = 0;
            for (unsigned j = 0; j < 1 + bh_rand_below(&r, 8); j++)
                p[bh_rand_below(&r, n)] = (uint8_t)bh_rand_u64(&r);
            if (bh_rec_remap(p, n, identity, &calls) == 0)
                use_all(p, &w);
            CU_ASSERT(calls <= n / 4);
            free(p);
        }
    }
    bh_symtab_free(w.tab);
}

static void test_gt_lt_read_label_text(void)
{
    struct bh_symtab *tab = bh_symtab_new();
    static const struct {
        const char *label;
        bool gt, lt; /* than 10 */
    } rows[] = {{"11", true, false},
                {"9", false, true},
                {"10", false, false},
                {"x", false, false},
                {"", false, false},
                {"-3", false, true},
                {"+11", true, false},
                {"011", true, false},
                {"9223372036854775807", true, false},
                {"9223372036854775808", false, false},
                {"1.5", false, false}};
    for (size_t i = 0; i < BH_ARRAY_LEN(rows); i++) {
        struct bh_kv kv = {bh_sym_internc(tab, "k"), bh_sym_internc(tab, rows[i].label)};
        struct bh_requirement r = {.key = kv.key, .op = BH_REQ_GT, .number = 10};
        CU_ASSERT_EQUAL(bh_requirement_match(&r, &r, &kv, 1, tab), rows[i].gt);
        r.op = BH_REQ_LT;
        CU_ASSERT_EQUAL(bh_requirement_match(&r, &r, &kv, 1, tab), rows[i].lt);
        CU_ASSERT(!bh_requirement_match(&r, &r, NULL, 0, tab));
    }
    bh_symtab_free(tab);
}

static void test_what_just_fits_needs_no_more_room(void)
{
    struct bh_rec_builder b;
    struct bh_slice s;

    bh_arena_init(&arena, 0);
    bh_rec_begin(&b, &arena, BH_REC_NODE, sizeof(struct bh_node_rec));
    const char *before = b.p;
    const size_t cap = b.cap;
    CU_ASSERT_PTR_NOT_NULL(bh_rec_room(&b, cap - b.n, 1, &s));
    CU_ASSERT(b.p == before && b.n == cap && b.cap == cap);
    CU_ASSERT_PTR_NOT_NULL(bh_rec_room(&b, 1, 1, &s));
    CU_ASSERT(b.cap == 2 * cap && s.off == cap && !b.failed);
    bh_arena_fini(&arena);
}

BH_TESTS("common/k8s/record",
         {"what just fits needs no more room", test_what_just_fits_needs_no_more_room},
         {"a remapped record means the same", test_remap_keeps_meaning},
         {"every symbol is mapped exactly once", test_every_symbol_is_mapped_once},
         {"wrong sizes, types and layouts are rejected", test_wrong_sizes},
         {"slices that overlap or leave gaps are rejected", test_overlap_is_rejected},
         {"enums, padding and text ends are checked", test_enums_and_padding},
         {"corrupted bytes are rejected or harmless", test_corrupted_bytes},
         {"Gt and Lt parse the label's text", test_gt_lt_read_label_text}, )
