/* SPDX-License-Identifier: Apache-2.0
 *
 * plugins/networkaware/objects.c - finding objects, lists by name, and what the log is told
 *
 * Upstream: pkg/networkaware/util/util.go.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "networkaware.h"

const struct berth_value *nw_get(const struct berth_value *v, const char *name)
{
    return v ? nw_host->values->get(v, (struct berth_str){name, strlen(name)}) : NULL;
}

const struct berth_value *nw_find(const struct nw_instance *in, struct berth_call *c, uint32_t kind,
                                  struct berth_str name)
{
    for (uint64_t i = 0; i < in->n_namespaces; i++) {
        const struct berth_object *o = nw_host->objects->find(c, kind, in->namespaces[i], name);
        if (o)
            return nw_host->objects->value(c, o);
    }
    return NULL;
}

/* ---- lists by name --------------------------------------------------------------------------- */

/* As Go compares strings. */
static int compare(struct berth_str a, struct berth_str b)
{
    uint64_t n = a.n < b.n ? a.n : b.n;
    int d = n ? memcmp(a.p, b.p, n) : 0;

    return d ? d : (a.n > b.n) - (a.n < b.n);
}

static int by_name(const void *x, const void *y)
{
    const struct nw_named *a = x, *b = y;
    int d = compare(a->name, b->name);

    return d ? d : (a->at > b->at) - (a->at < b->at);
}

uint64_t nw_list(const struct berth_value *list, const char *path, int sorted,
                 struct nw_named **ret)
{
    const struct berth_host_values *h = nw_host->values;
    uint64_t n = list ? h->count(list) : 0, i = 0;

    *ret = n ? calloc(n, sizeof **ret) : NULL;
    if (!*ret)
        return 0;
    for (const struct berth_value *v = h->first(list); v && i < n; v = h->next(v), i++) {
        const struct berth_value *name = h->path(v, (struct berth_str){path, strlen(path)});
        (*ret)[i] = (struct nw_named){name ? h->text(name) : (struct berth_str){"", 0}, i, v};
    }
    if (sorted)
        qsort(*ret, i, sizeof **ret, by_name);
    return i;
}

const struct nw_named *nw_search(const struct nw_named *a, uint64_t n, struct berth_str name)
{
    uint64_t low = 0, high = n; /* upstream's high + 1 */

    while (low < high) {
        uint64_t mid = (low + high - 1) / 2;
        int d = compare(a[mid].name, name);
        if (d == 0)
            return &a[mid];
        if (d < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return NULL;
}

/* ---- the log --------------------------------------------------------------------------------- */

void nw_tell(const struct nw_instance *in, const char **told, const char *kind,
             struct berth_str name, const char *what)
{
    char line[1024];

    if (what && what != *told) {
        int n = snprintf(line, sizeof line, "%s \"%.*s\" %s", kind,
                         (int)(name.n < 253 ? name.n : 253), name.p, what);
        nw_host->base->log(
            in->home, BERTH_LOG_WARNING,
            (struct berth_str){line, n < (int)sizeof line ? (uint64_t)n : sizeof line - 1});
    }
    *told = what;
}
