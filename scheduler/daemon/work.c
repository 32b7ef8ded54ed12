/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/daemon/work.c - one item of the ledger: made, and freed
 */
#include "scheduler/daemon/ledger.h"

struct bh_work *bh_work_new(Berth__WorkKind kind, struct bh_str ns, struct bh_str name,
                            struct bh_str uid)
{
    struct bh_work *w = bh_calloc(1, sizeof(*w));

    w->kind = kind;
    w->namespace_ = bh_strndup(ns.p, ns.n);
    w->name = bh_strndup(name.p, name.n);
    w->uid = bh_strndup(uid.p, uid.n);
    return w;
}

/* Copies up to n bytes and a NUL; returns what follows. */
static char *put(char *at, char **slot, const char *s, size_t n)
{
    *slot = at;
    memcpy(at, s, n);
    at[n] = '\0';
    return at + n + 1;
}

static char *extend(char *at, const char *s, size_t n)
{
    memcpy(at - 1, s, n);
    at[n - 1] = '\0';
    return at + n;
}

struct bh_work *bh_work_bind(const struct bh_bind_texts *t, size_t note_max)
{
    static char type[] = "Normal", reason[] = "Scheduled", action[] = "Binding";
    static const char assigned[] = "Successfully assigned ", to[] = " to ", cut[] = " ...";
    const size_t n_node = strlen(t->node), n_by = strlen(t->controller),
                 n_rv = strlen(t->resource_version);
    const size_t n_note = sizeof(assigned) - 1 + t->ns.n + 1 + t->name.n + sizeof(to) - 1 + n_node;
    struct bh_work *w =
        bh_malloc(sizeof(*w) + t->ns.n + t->name.n + t->uid.n + n_node + n_by + n_rv + n_note + 7);
    char *at = w->text;

    *w = (struct bh_work){.kind = BERTH__WORK_KIND__WORK_BIND, .packed = true};
    at = put(at, &w->namespace_, t->ns.p, t->ns.n);
    at = put(at, &w->name, t->name.p, t->name.n);
    at = put(at, &w->uid, t->uid.p, t->uid.n);
    at = put(at, &w->node, t->node, n_node);
    at = put(at, &w->event_controller, t->controller, n_by);
    at = put(at, &w->event_rv, t->resource_version, n_rv);
    at = put(at, &w->event_note, assigned, sizeof(assigned) - 1);
    at = extend(at, t->ns.p, t->ns.n);
    at = extend(at, "/", 1);
    at = extend(at, t->name.p, t->name.n);
    at = extend(at, to, sizeof(to) - 1);
    (void)extend(at, t->node, n_node);
    if (n_note > note_max)
        memcpy(w->event_note + note_max - (sizeof(cut) - 1), cut, sizeof(cut));
    w->event_type = type;
    w->event_reason = reason;
    w->event_action = action;
    return w;
}

static void write_free(struct bh_object_write *o)
{
    if (!o)
        return;
    free(o->namespace_);
    free(o->name);
    free(o->uid);
    free(o->resource_version);
    bh_buf_fini(&o->object);
    bh_buf_fini(&o->pod_status);
    free(o);
}

void bh_work_free(struct bh_work *w)
{
    char *strings[] = {w->namespace_,       w->name,         w->uid,          w->node,
                       w->event_type,       w->event_reason, w->event_action, w->event_note,
                       w->event_controller, w->event_rv,     w->cond_type,    w->cond_status,
                       w->cond_reason,      w->cond_message, w->nominated,    w->on_behalf};

    for (size_t i = 0; i < BH_ARRAY_LEN(strings) && !w->packed; i++)
        free(strings[i]);
    write_free(w->write);
    free(w);
}
