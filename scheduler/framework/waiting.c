/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/framework/waiting.c - pods that wait at Permit, and what plugins say about them
 */
#include "scheduler/framework/waiting.h"
#include "common/base/opt.h"

struct pending {
    const char *plugin;
    int64_t timeout_ns;
    bool allowed;
};
struct bh_waiting_pod {
    struct pending *v;
    uint32_t n;
    int64_t since_ns; /* 0: not asked yet */
    enum bh_permit_verdict verdict;
    char *plugin, *message; /* REJECTED, FAILED */
    size_t n_uid;
    char uid[];
};

static void free_pod(struct bh_waiting_pod *p)
{
    if (!p)
        return;
    free(p->v);
    free(p->plugin);
    free(p->message);
    free(p);
}

void bh_waiting_fini(struct bh_waiting_pods *w)
{
    struct bh_map_entry *m;

    for (size_t it = 0; (m = bh_map_next(&w->by_uid, &it));)
        free_pod(m->value);
    bh_map_fini(&w->by_uid);
    bh_map_fini(&w->activate);
}

struct bh_waiting_pod *bh_waiting_find(const struct bh_waiting_pods *w, struct bh_str uid)
{
    return w->by_uid.len ? bh_map_get(&w->by_uid, uid.p, uid.n) : NULL;
}

void bh_waiting_add(struct bh_waiting_pods *w, struct bh_str uid, const char *plugin,
                    int64_t timeout_ns)
{
    struct bh_waiting_pod *p = bh_waiting_find(w, uid);

    if (!p) {
        p = bh_calloc(1, sizeof *p + uid.n);
        p->n_uid = uid.n;
        memcpy(p->uid, uid.p, uid.n);
        (void)bh_map_put(&w->by_uid, uid.p, uid.n, p);
    }
    p->v = bh_reallocarray(p->v, p->n + 1, sizeof *p->v);
    p->v[p->n++] = (struct pending){.plugin = plugin, .timeout_ns = timeout_ns};
}

void bh_waiting_drop(struct bh_waiting_pods *w, struct bh_waiting_pod *p)
{
    if (p)
        free_pod(bh_map_del(&w->by_uid, p->uid, p->n_uid));
}

bool bh_waiting_allow(struct bh_waiting_pods *w, struct bh_str uid, const char *plugin)
{
    struct bh_waiting_pod *p = bh_waiting_find(w, uid);
    bool all = true;

    if (!p)
        return false;
    for (uint32_t i = 0; i < p->n; i++) {
        p->v[i].allowed |= bh_streq(p->v[i].plugin, plugin);
        all &= p->v[i].allowed;
    }
    if (all && p->verdict == BH_PERMIT_WAITS)
        p->verdict = BH_PERMIT_ALLOWED;
    return true;
}

static bool settle_against(struct bh_waiting_pod *p, enum bh_permit_verdict verdict,
                           const char *plugin, const char *message)
{
    if (!p || p->verdict != BH_PERMIT_WAITS)
        return false;
    p->verdict = verdict;
    p->plugin = bh_strdup(plugin);
    p->message = bh_strdup(message);
    return true;
}

bool bh_waiting_reject(struct bh_waiting_pods *w, struct bh_str uid, const char *plugin,
                       const char *message)
{
    return settle_against(bh_waiting_find(w, uid), BH_PERMIT_REJECTED, plugin, message);
}

static bool waits_for(const struct bh_waiting_pod *p, const char *plugin)
{
    for (uint32_t i = 0; i < p->n; i++)
        if (!p->v[i].allowed && bh_streq(p->v[i].plugin, plugin))
            return true;
    return false;
}

void bh_waiting_fail(struct bh_waiting_pods *w, const char *plugin, const char *message)
{
    struct bh_map_entry *m;

    for (size_t it = 0; (m = bh_map_next(&w->by_uid, &it));)
        if (waits_for(m->value, plugin))
            (void)settle_against(m->value, BH_PERMIT_FAILED, plugin, message);
}

bool bh_waiting_activate(struct bh_waiting_pods *w, struct bh_str uid)
{
    if (uid.n > BH_ACTIVATE_UID ||
        (w->activate.len >= BH_ACTIVATE_MAX && !bh_map_get(&w->activate, uid.p, uid.n)))
        return false;
    (void)bh_map_put(&w->activate, uid.p, uid.n, w);
    return true;
}

uint32_t bh_waiting_for(const struct bh_waiting_pod *p, const char **ret, uint32_t max,
                        int64_t *ret_until_ns)
{
    uint32_t n = 0;

    *ret_until_ns = 0;
    for (uint32_t i = 0; p && p->verdict == BH_PERMIT_WAITS && i < p->n; i++) {
        const struct pending *v = &p->v[i];
        if (v->allowed)
            continue;
        if (!*ret_until_ns || p->since_ns + v->timeout_ns < *ret_until_ns)
            *ret_until_ns = p->since_ns + v->timeout_ns;
        if (n < max)
            ret[n++] = v->plugin;
    }
    return n;
}

void bh_waiting_each(const struct bh_waiting_pods *w, void (*fn)(void *arg, struct bh_str uid),
                     void *arg)
{
    struct bh_map_entry *m;

    for (size_t it = 0; (m = bh_map_next(&w->by_uid, &it));)
        fn(arg, (struct bh_str){m->key, m->key_len});
}

/* The timer that has run out first, if one has. */
static void run_timers(struct bh_waiting_pod *p, int64_t now_ns)
{
    const struct pending *first = NULL;
    char text[32];

    for (uint32_t i = 0; i < p->n; i++)
        if (!p->v[i].allowed && now_ns - p->since_ns >= p->v[i].timeout_ns &&
            (!first || p->v[i].timeout_ns < first->timeout_ns))
            first = &p->v[i];
    if (!first)
        return;
    bh_format_duration_ns(first->timeout_ns, text);
    BH_CLEANUP(bh_freep)
    char *message =
        bh_asprintf("rejected due to timeout after waiting %s at plugin %s", text, first->plugin);
    (void)settle_against(p, BH_PERMIT_REJECTED, first->plugin, message);
}

enum bh_permit_verdict bh_waiting_verdict(struct bh_waiting_pod *p, int64_t now_ns,
                                          const char **ret_plugin, const char **ret_message)
{
    *ret_plugin = *ret_message = "";
    if (!p)
        return BH_PERMIT_ALLOWED;
    if (!p->since_ns)
        p->since_ns = now_ns;
    if (p->verdict == BH_PERMIT_WAITS)
        run_timers(p, now_ns);
    if (p->plugin) {
        *ret_plugin = p->plugin;
        *ret_message = p->message;
    }
    return p->verdict;
}
