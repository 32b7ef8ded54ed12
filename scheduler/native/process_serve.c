/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/native/process_serve.c - what a plugin's process asks the scheduler, and tells it
 *
 * The same functions answer that plugins in this process call, with the same checks. No handle of ours
 * comes from there: pods are named by uid, nodes by row.
 *
 * Runs in: the engine's thread, in the middle of a call; bh_px_told() in the connection's reader.
 */
#include <errno.h>

#include "common/base/log.h"
#include "scheduler/cache/pod_facts.h"
#include "scheduler/native/process_int.h"

static struct berth_home *home(struct bh_px_instance *i)
{
    return (struct berth_home *)(void *)i->in;
}
static struct berth_call *call(struct bh_px_instance *i)
{
    return (struct berth_call *)(void *)i->in->call;
}

/* false: the instance has added as much as it may. */
static bool serve_intern(struct bh_px_instance *i, struct bh_px_in *m, struct bh_px_out *o)
{
    struct bh_symtab *tab = i->in->tab;
    struct berth_str s = bh_px_get_str(m);
    bh_sym sym = bh_sym_find(tab, s.p, s.n);

    if (sym == BH_SYM_NONE && s.n <= UINT16_MAX) {
        if (i->interned_bytes + s.n + BH_PX_SYMBOL_BYTES > BH_PX_INTERN_BYTES) {
            i->x->failed_rc = -EDQUOT;
            return false;
        }
        i->interned_bytes += s.n + BH_PX_SYMBOL_BYTES;
        sym = bh_sym_intern(tab, s.p, s.n);
    }
    bh_px_put_u64(o, sym);
    for (; i->fed.symbols <= sym; i->fed.symbols++) {
        struct bh_str t = bh_sym_str(tab, i->fed.symbols);
        bh_px_put_str(o, t.p, t.n);
    }
    return true;
}

static void serve_pods(struct bh_px_instance *i, struct bh_px_in *m, struct bh_px_out *o)
{
    const uint64_t row = bh_px_get_u64(m);
    struct bh_cache *c = i->in->call ? i->in->call->cache : NULL;
    const struct bh_node_info *ni = NULL;

    if (c && i->in->may & BERTH_READS_PODS) {
        ni = row == BH_ROW_NONE ? i->given : row < c->cols.n_rows ? c->rows[row] : NULL;
        c->starts_count = true; /* it may look at when they started */
    }
    bh_px_put_pods(o, ni);
}

static void serve_annotation(struct bh_px_instance *i, struct bh_px_in *m, struct bh_px_out *o)
{
    const uint64_t of = bh_px_get_u64(m);
    struct berth_str object = bh_px_get_str(m), key = bh_px_get_str(m);
    const struct bh_cache *c = i->in->call ? i->in->call->cache : NULL;
    struct bh_str v = {NULL, 0};

    if (c && i->in->may & BERTH_READS_ANNOTATIONS &&
        (of == BH_ANNOTATIONS_NODES || of == BH_ANNOTATIONS_PODS))
        v = bh_annotations_get(&c->annotations, (enum bh_annotations_of)of,
                               (struct bh_str){object.p, object.n}, (struct bh_str){key.p, key.n});
    bh_px_put_u64(o, v.p != NULL);
    bh_px_put_str(o, v.p, v.n);
}

static void put_text(struct bh_px_out *o, struct bh_str s)
{
    bh_px_put_u64(o, s.p != NULL);
    bh_px_put_str(o, s.p, s.p ? s.n : 0);
}

static void serve_facts(struct bh_px_instance *i, struct bh_px_in *m, struct bh_px_out *o)
{
    const uint32_t needs = BERTH_READS_ANNOTATIONS | BERTH_READS_IDENTITY;
    struct berth_str named = bh_px_get_str(m);
    const struct bh_str uid = {named.p, named.n};
    const struct bh_cache *c = i->in->call ? i->in->call->cache : NULL;
    const bool may = c && !(needs & ~i->in->may);
    const struct bh_pod_facts f =
        may ? bh_pod_facts(&c->annotations, uid) : (struct bh_pod_facts){0};
    struct bh_str key, v;

    put_text(o, f.priority_class);
    bh_px_put_u64(o, (uint64_t)f.scheduled_ns);
    bh_px_put_u64(o, f.n_profiles);
    for (uint32_t k = 0; k < f.n_profiles; k++)
        put_text(o, bh_pod_facts_profile(&f, k));
    uint64_t *n = bh_px_room(o, sizeof *n), count = 0;
    for (; may; count++) {
        v = bh_annotations_at(&c->annotations, BH_ANNOTATIONS_PODS, uid, (uint32_t)count, &key);
        if (!v.p)
            break;
        put_text(o, key);
        put_text(o, v);
    }
    if (n)
        *n = count;
}

static void serve_nominated(struct bh_px_instance *i, struct bh_px_in *m, struct bh_px_out *o)
{
    uint64_t at = bh_px_get_u64(m);
    berth_sym node = 0;
    const struct berth_pod *p =
        i->in->call ? bh_native_host.pods->nominated(call(i), &at, &node) : NULL;

    bh_px_put_u64(o, at);
    bh_px_put_u64(o, node);
    bh_px_put_pod(o, bh_pod_behind(p));
}

struct uids {
    struct bh_px_out *o;
    uint64_t n;
};
static void add_uid(void *arg, struct berth_str uid)
{
    struct uids *u = arg;

    u->n++;
    bh_px_put_str(u->o, uid.p, uid.n);
}

static void serve_each(struct bh_px_instance *i, struct bh_px_out *o)
{
    uint64_t *n = bh_px_room(o, sizeof *n);
    struct uids u = {.o = o};

    bh_native_host.waiting->each(home(i), add_uid, &u);
    if (n)
        *n = u.n;
}

static void serve_get(struct bh_px_instance *i, struct bh_px_in *m, struct bh_px_out *o)
{
    berth_sym node = 0;
    const struct berth_pod *p =
        i->in->call ? bh_native_host.waiting->get(call(i), bh_px_get_str(m), &node) : NULL;

    bh_px_put_u64(o, node);
    bh_px_put_pod(o, bh_pod_behind(p));
}

/* The pod of the call, or one on a node. */
static const struct berth_pod *pod_of(const struct bh_native *in, struct berth_str uid)
{
    const struct bh_str key = {uid.p, uid.n};
    const struct bh_pod_info *p = in->call ? in->call->pod : NULL;

    if (!p || !bh_str_eq(bh_rec_uid(p->rec), key)) {
        const struct bh_cache_pod *on =
            in->call && in->call->cache ? bh_cache_pod(in->call->cache, key) : NULL;
        p = on ? &on->info : NULL;
    }
    return bh_pod_handle(p);
}

static int32_t serve_emit(struct bh_px_instance *i, struct bh_px_in *m)
{
    const struct berth_pod *pod = pod_of(i->in, bh_px_get_str(m));
    const uint32_t type = (uint32_t)bh_px_get_u64(m);
    struct berth_str why = bh_px_get_str(m), note = bh_px_get_str(m);

    return i->in->call ? bh_native_host.events->emit(call(i), pod, type, why, note) : 0;
}

static int32_t serve_patch(struct bh_px_instance *i, struct bh_px_in *m)
{
    struct berth_patch p = {0};
    struct berth_str *const texts[] = {&p.api_version,      &p.resource, &p.subresource,
                                       &p.namespace_,       &p.name,     &p.uid,
                                       &p.resource_version, &p.body};
    const bool is = bh_px_get_u64(m);

    p.size = (uint32_t)bh_px_get_u64(m);
    p.type = (uint32_t)bh_px_get_u64(m);
    for (unsigned k = 0; k < BH_ARRAY_LEN(texts); k++)
        *texts[k] = bh_px_get_str(m);
    return i->in->call ? bh_native_host.writes->patch(call(i), is ? &p : NULL) : 0;
}

static uint32_t serve_define(struct bh_px_instance *i, struct bh_px_in *m)
{
    const uint32_t kind = (uint32_t)bh_px_get_u64(m);
    struct berth_str name = bh_px_get_str(m), help = bh_px_get_str(m);
    const bool is = bh_px_get_u64(m);
    const uint64_t n = bh_px_get_u64(m);
    const double *bounds = is && n <= 64 ? bh_px_get(m, n * sizeof *bounds) : NULL;

    return bh_native_host.metrics->define(home(i), kind, name, help, bounds, n);
}

bool bh_px_serve(struct bh_px_instance *i, struct bh_px_in *m, struct bh_px_out *o)
{
    const uint64_t up = bh_px_get_u64(m);
    struct berth_str uid;

    switch (up) {
    case BH_PX_UP_INTERN:
        if (!serve_intern(i, m, o))
            return false;
        break;
    case BH_PX_UP_PODS:
        serve_pods(i, m, o);
        break;
    case BH_PX_UP_ANNOTATION:
        serve_annotation(i, m, o);
        break;
    case BH_PX_UP_FACTS:
        serve_facts(i, m, o);
        break;
    case BH_PX_UP_NOMINATED:
        serve_nominated(i, m, o);
        break;
    case BH_PX_UP_RUN:
        return bh_px_serve_run(i, m, o);
    case BH_PX_UP_ALLOW:
        bh_px_put_u64(o, (uint64_t)bh_native_host.waiting->allow(home(i), bh_px_get_str(m)));
        break;
    case BH_PX_UP_REJECT:
        uid = bh_px_get_str(m);
        bh_px_put_u64(o, (uint64_t)bh_native_host.waiting->reject(home(i), uid, bh_px_get_str(m)));
        break;
    case BH_PX_UP_ACTIVATE:
        bh_native_host.waiting->activate(home(i), bh_px_get_str(m));
        bh_px_put_u64(o, 1);
        break;
    case BH_PX_UP_EACH:
        serve_each(i, o);
        break;
    case BH_PX_UP_GET:
        serve_get(i, m, o);
        break;
    case BH_PX_UP_EMIT:
        bh_px_put_u64(o, (uint64_t)serve_emit(i, m));
        break;
    case BH_PX_UP_PATCH:
        bh_px_put_u64(o, (uint64_t)serve_patch(i, m));
        break;
    case BH_PX_UP_DEFINE:
        bh_px_put_u64(o, serve_define(i, m));
        break;
    case BH_PX_UP_WAKE_AT:
        bh_native_host.base->wake_at(home(i), (int64_t)bh_px_get_u64(m));
        bh_px_put_u64(o, 1);
        break;
    default:
        return false;
    }
    return !m->bad;
}

/* ---- at any time ----------------------------------------------------------------------------- */

static bool may_log(struct bh_px_instance *i)
{
    const uint64_t second = bh_mono_ns() / 1000000000;

    if (second != i->logs_second)
        i->n_logs = 0;
    i->logs_second = second;
    if (i->n_logs == BH_PX_LOGS_A_SECOND)
        bh_log_warn("Lines of a plugin are dropped: it logs too many",
                    bh_kv_s("plugin", i->in->of->d.name), bh_kv_u("aSecond", BH_PX_LOGS_A_SECOND));
    i->n_logs += i->n_logs <= BH_PX_LOGS_A_SECOND;
    return i->n_logs <= BH_PX_LOGS_A_SECOND;
}

static void tell(struct bh_px_instance *i, const struct bh_px_frame *f, const char *text)
{
    const struct berth_host *h = &bh_native_host;

    switch (f->told) {
    case BH_PX_LOG:
        if (!may_log(i))
            break;
        h->base->log(home(i), f->number,
                     bh_native_is_text((struct berth_str){text, f->n})
                         ? (struct berth_str){text, f->n}
                         : BERTH_STR("(a line that is not printable UTF-8)"));
        break;
    case BH_PX_WAKE:
        h->base->wake(home(i));
        break;
    case BH_PX_MEASURED:
        h->user->measured(home(i), f->at_ns, f->n_nodes);
        break;
    case BH_PX_ADD:
        h->metrics->add(home(i), f->number, f->value);
        break;
    case BH_PX_SET:
        h->metrics->set(home(i), f->number, f->value);
        break;
    case BH_PX_OBSERVE:
        h->metrics->observe(home(i), f->number, f->value);
        break;
    default:
        break;
    }
}

void bh_px_told(struct bh_px *x, const struct bh_px_frame *f, const char *text)
{
    pthread_mutex_lock(&x->list);
    for (struct bh_px_instance *i = x->first; i; i = i->next)
        if (i->id == f->instance)
            tell(i, f, text);
    pthread_mutex_unlock(&x->list);
}
