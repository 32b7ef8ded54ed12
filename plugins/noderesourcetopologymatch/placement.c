/* SPDX-License-Identifier: Apache-2.0
 *
 * plugins/noderesourcetopologymatch/placement.c - which zone each container is in, as the node's agent says
 *
 * The containers with exclusive resources, sorted by their hash, have numbers; each zone's attribute lists
 * those that are there as differences, each written with 64 last and 25 further digits. The zone with the
 * most of them has no list: it has the rest.
 *
 * Upstream:   github.com/k8stopologyawareschedwg/numaplacement (npv0v001, leb89),
 *             pkg/noderesourcetopology/cache/store.go.
 * Difference: what is malformed where that ends with a panic is no placement here.
 */
#include <stdlib.h>
#include <string.h>

#include "nrt.h"

#define METADATA  "topology.node.k8s.io/numaplacement-metadata"
#define VECTOR    "topology.node.k8s.io/numaplacement-vector"
#define PREFIX    "npv0v001"
#define SEPARATOR "::"

#define LAST_DIGITS    64
#define FURTHER_DIGITS 25

struct metadata { /* -1: it does not say */
    int64_t containers, nodes, busiest;
    int leb89;
};

void nrt_forget_placement(struct nrt_seen *s)
{
    free(s->placed);
    s->placed = NULL;
    s->n_placed = 0;
}

int nrt_zone_of(const struct nrt_seen *s, uint64_t container)
{
    for (uint32_t low = 0, high = s->n_placed; low < high;) {
        uint32_t mid = low + (high - low) / 2;
        if (s->placed[mid].container == container)
            return s->placed[mid].zone;
        if (s->placed[mid].container < container)
            low = mid + 1;
        else
            high = mid;
    }
    return -1;
}

/* ---- the object's attributes ----------------------------------------------------------------- */

/* Up to nine digits, with a sign; 0: it is no such number. */
static int read_number(struct berth_str s, int64_t *ret)
{
    const int sign = s.n && (s.p[0] == '-' || s.p[0] == '+');

    *ret = 0;
    for (uint64_t i = (uint64_t)sign; i < s.n; i++) {
        if (s.p[i] < '0' || s.p[i] > '9')
            return 0;
        *ret = *ret * 10 + (s.p[i] - '0');
    }
    *ret = sign && s.p[0] == '-' ? -*ret : *ret;
    return s.n > (uint64_t)sign && s.n < 10;
}

/* "cc=12" */
static int read_field(struct berth_str s, struct metadata *m)
{
    const char *eq = s.n ? memchr(s.p, '=', s.n) : NULL;

    if (!eq || eq == s.p || eq == s.p + s.n - 1)
        return 0;
    const struct berth_str name = {s.p, (uint64_t)(eq - s.p)}, value = {eq + 1, s.n - name.n - 1};
    if (nrt_is(name, "ve")) {
        m->leb89 = nrt_is(value, "leb89");
        return 1;
    }
    int64_t *to = nrt_is(name, "cc")   ? &m->containers
                  : nrt_is(name, "nn") ? &m->nodes
                  : nrt_is(name, "bn") ? &m->busiest
                                       : NULL;
    return to && read_number(value, to);
}

/* "npv0v001::ve=leb89::cc=12::nn=2::bn=0" */
static int read_metadata(struct berth_str s, struct metadata *m)
{
    const uint64_t n = strlen(PREFIX SEPARATOR);

    *m = (struct metadata){-1, -1, -1, 0};
    if (s.n < n || memcmp(s.p, PREFIX SEPARATOR, n) != 0)
        return 0;
    for (uint64_t i = n, end; i <= s.n; i = end + 2) {
        for (end = i; end < s.n && !(end + 1 < s.n && memcmp(s.p + end, SEPARATOR, 2) == 0);)
            end++;
        if (!read_field((struct berth_str){s.p + i, end - i}, m))
            return 0;
    }
    return m->leb89 && m->containers > 0 && m->nodes > 0 && m->busiest >= 0 &&
           m->busiest < m->nodes;
}

/* Printable, without what JSON escapes; -1: it is none. */
static int digit_of(char c)
{
    static const char left_out[] = "\"&<>\\";
    int n = c - '!';

    if (c < '!' || c > '~')
        return -1;
    for (unsigned i = 0; left_out[i]; i++) {
        if (c == left_out[i])
            return -1;
        n -= c > left_out[i];
    }
    return n;
}

/* The next number of a list; 0: there is none. */
static int next_number(struct berth_str *s, int64_t *ret)
{
    int64_t high = 0;

    for (int further = 0; s->n; further++) {
        const int digit = digit_of(*s->p);
        s->p++;
        s->n--;
        if (digit < 0 || high > INT32_MAX)
            return 0;
        if (digit < LAST_DIGITS) {
            *ret = digit + (further ? LAST_DIGITS + high * LAST_DIGITS : 0);
            return 1;
        }
        high = high * FURTHER_DIGITS + digit - LAST_DIGITS;
    }
    return 0;
}

/* ---- the node's containers ------------------------------------------------------------------- */

static int by_container(const void *a, const void *b)
{
    const struct nrt_placed *x = a, *y = b;

    return (x->container > y->container) - (x->container < y->container);
}

/* Those that hold something exclusive, of pods that run. 0: they are not as many, or no memory. */
static int gather(struct nrt_instance *in, struct berth_call *c, struct nrt_seen *s,
                  const struct berth_node *node, int64_t max)
{
    s->placed = calloc((uint64_t)max, sizeof *s->placed);
    if (!s->placed)
        return 0;
    for (uint32_t i = 0; i < nrt_host->nodes->n_pods(c, node); i++) {
        const struct berth_pod *pod = nrt_host->nodes->pod_at(c, node, i);
        if (!pod || !nrt_host->pods->started(c, pod))
            continue;
        const int guaranteed = nrt_is_guaranteed(in, c, pod);
        for (uint32_t k = 0; k < nrt_host->pods->n_containers(c, pod); k++) {
            if (!nrt_container_is_exclusive(in, c, pod, k, guaranteed, s->topology))
                continue;
            if (s->n_placed == max)
                return 0;
            s->placed[s->n_placed++] =
                (struct nrt_placed){.container = nrt_container_hash(in, c, pod, k), .zone = -1};
        }
    }
    return s->n_placed == max;
}

/* One zone's list. 0: it is not of these containers. */
static int read_list(struct nrt_seen *s, int zone, struct berth_str list)
{
    int64_t at = 0, by;

    while (list.n) {
        if (!next_number(&list, &by))
            return 0;
        at += by;
        if (at >= s->n_placed || s->placed[at].zone >= 0)
            return 0;
        s->placed[at].zone = zone;
    }
    return 1;
}

static int read_lists(struct nrt_seen *s, const struct metadata *m,
                      const struct berth_value *object)
{
    const struct berth_host_values *h = nrt_host->values;
    int64_t n = 0;

    for (const struct berth_value *z = h->first(h->get(object, BERTH_STR("zones"))); z;
         z = h->next(z)) {
        struct berth_str list = nrt_attribute(h->get(z, BERTH_STR("attributes")), VECTOR);
        if (!list.p)
            continue;
        const uint32_t id = nrt_zone_id(h->text(h->get(z, BERTH_STR("name"))));
        if (id >= NRT_ZONES || id >= m->nodes || id == m->busiest || ++n >= m->nodes ||
            !read_list(s, (int)id, list))
            return 0;
    }
    for (uint32_t i = 0; i < s->n_placed; i++)
        if (s->placed[i].zone < 0)
            s->placed[i].zone = (int)m->busiest;
    return 1;
}

static int is_set(const struct nrt_seen *s)
{
    for (uint32_t i = 1; i < s->n_placed; i++)
        if (s->placed[i].container == s->placed[i - 1].container)
            return 0;
    return 1;
}

void nrt_place(struct nrt_instance *in, struct berth_call *c, struct nrt_seen *s,
               const struct berth_node *node, const struct berth_value *object)
{
    const struct berth_value *list = nrt_host->values->get(object, BERTH_STR("attributes"));
    struct metadata m;

    nrt_forget_placement(s);
    if (!in->preempts ||
        !nrt_is(nrt_attribute(list, "topologyManagerPolicy"), "single-numa-node") ||
        !read_metadata(nrt_attribute(list, METADATA), &m) || m.containers > NRT_PLACED)
        return;
    int known = gather(in, c, s, node, m.containers);
    if (known)
        qsort(s->placed, s->n_placed, sizeof *s->placed, by_container);
    if (!known || !is_set(s) || !read_lists(s, &m, object))
        nrt_forget_placement(s);
}
