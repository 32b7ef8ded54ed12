/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/follow/follow.c - a source's changes, cleaned, without what does not matter
 *
 * A reflector for each kind, begun one after the other in the table's order, so that what is there
 * at the beginning is told in an order in which it can be created. Of every object only a hash of
 * its cleaned text is kept: heartbeats and other changes that scheduling does not see differ in
 * nothing and are dropped. Reconnecting and lists after 410 are the reflectors' work
 * (common/api/reflector.h); what they tell again is found unchanged here.
 */
#include "simulator/follow/follow.h"

#include <errno.h>

#include "common/api/reflector.h"
#include "common/k8s/codec.h"

struct kind {
    struct bh_follow *f;
    const struct bh_clean_kind *k;
    struct bh_reflector *reflector;
    bool done; /* with its first list, or in trouble that shall not hold the others up */
    bool synced, troubled;
};
struct bh_follow {
    struct bh_follow_options o;
    struct kind kinds[BH_KIND_COUNT];
    size_t n, n_started, n_troubled;
    struct bh_map seen; /* plural/ns/name, as in the source -> hash of the cleaned text */
    struct bh_arena arena;
    struct bh_buf text;
    uv_idle_t next; /* starts the next kind, from the loop */
    bool all;
};

static void start_next(uv_idle_t *h);

static char *key_of(struct bh_follow *f, const struct bh_clean_kind *k, const char *ns,
                    const char *name, size_t *ret_n)
{
    char *key = bh_arena_printf(&f->arena, "%s/%s/%s", k->plural, ns, name);

    *ret_n = strlen(key);
    return key;
}

static void gone(struct kind *kd, const char *ns, const char *name)
{
    struct bh_follow *f = kd->f;
    const struct bh_take *t = f->o.take;
    size_t n;
    const char *key = key_of(f, kd->k, ns, name, &n);

    if (!bh_map_del(&f->seen, key, n))
        return; /* never told */
    if (t->anonymise) {
        ns = *ns ? bh_anon_text(&t->anon, &f->arena, ns) : ns;
        if (!bh_streq(kd->k->kind, "CSIDriver") && !bh_streq(kd->k->kind, "DeviceClass"))
            name = bh_anon_text(&t->anon, &f->arena, name);
    }
    f->o.on_gone(f->o.arg, kd->k, ns, name);
}

static void changed(struct kind *kd, const struct bh_reflector_event *ev)
{
    struct bh_follow *f = kd->f;
    const char *why;
    char av[80];
    struct bh_json *o = bh_take_object(f->o.take, &f->arena, kd->k,
                                       bh_json_add(&f->arena, bh_pb_to_json(&f->arena, ev->object),
                                                   "apiVersion: %s, kind: %s",
                                                   bh_clean_api_version(kd->k, av), kd->k->kind),
                                       &why);
    size_t n;
    const char *key = key_of(f, kd->k, ev->ns, ev->name, &n);
    void *before = bh_map_get(&f->seen, key, n);

    if (!o || (why && !before)) { /* labels that are no longer selected; a pod that ended unseen */
        gone(kd, ev->ns, ev->name);
        return;
    }
    bh_buf_reset(&f->text);
    bh_json_write(&f->text, o);
    uintptr_t hash = (uintptr_t)bh_hash(f->text.p, f->text.n, 0) | 1;
    if (before == (void *)hash)
        return;
    bh_map_put(&f->seen, key, n, (void *)hash);
    f->o.on_change(f->o.arg, kd->k, !before, !kd->synced, o);
}

static void on_event(void *arg, const struct bh_kind_info *info,
                     const struct bh_reflector_event *ev)
{
    struct kind *kd = arg;

    (void)info;
    bh_arena_reset(&kd->f->arena);
    if (ev->type == BH_WATCH_DELETED)
        gone(kd, ev->ns, ev->name);
    else
        changed(kd, ev);
}

static void on_synced(void *arg, const struct bh_kind_info *info, bool relist)
{
    struct kind *kd = arg;

    (void)info, (void)relist;
    kd->synced = kd->done = true;
    uv_idle_start(&kd->f->next, start_next);
}

static void on_bad(void *arg, const struct bh_kind_info *info, const char *name, const char *why)
{
    struct kind *kd = arg;

    (void)info;
    fprintf(stderr, "%s: %s %s is left out: %s\n", kd->f->o.program, kd->k->kind, name, why);
}

static void on_trouble(void *arg, const struct bh_kind_info *info, const char *text)
{
    struct kind *kd = arg;
    struct bh_follow *f = kd->f;

    (void)info;
    kd->done = true;
    uv_idle_start(&f->next, start_next);
    if (kd->troubled == (text != NULL))
        return;
    kd->troubled = text != NULL;
    if (f->o.on_trouble)
        f->o.on_trouble(f->o.arg, kd->k, text);
    f->n_troubled += text ? 1 : (size_t)-1;
    if (text && f->n_troubled == 1) /* the others will say the same when the server is gone */
        fprintf(stderr, "%s: %s: %s; trying again\n", f->o.program, kd->k->plural, text);
    else if (!text && f->n_troubled == 0)
        fprintf(stderr, "%s: all kinds are followed again\n", f->o.program);
}

static void start_next(uv_idle_t *h)
{
    struct bh_follow *f = h->data;
    struct bh_reflector_callbacks cb = {
        .on_event = on_event, .on_synced = on_synced, .on_bad = on_bad, .on_trouble = on_trouble};
    bool waits = f->n_started && !f->kinds[f->n_started - 1].done;
    char av[80];

    if (!waits && f->n_started < f->n) {
        struct kind *kd = &f->kinds[f->n_started++];
        cb.arg = kd;
        kd->reflector =
            bh_reflector_new(f->o.from->loop, f->o.from->client,
                             bh_kind_find(bh_clean_api_version(kd->k, av), kd->k->kind), &cb);
        return;
    }
    uv_idle_stop(h); /* on_synced() or on_trouble() of the one that is waited for starts it again */
    if (!waits && !f->all) {
        f->all = true;
        f->o.on_all_synced(f->o.arg);
    }
}

/* ---- start, stop ----------------------------------------------------------------------------- */

static int choose_kinds(struct bh_follow *f, struct bh_err *err)
{
    struct bh_err last = {0};

    for (size_t i = 0; i < bh_clean_n_kinds; i++) {
        const struct bh_clean_kind *k = &bh_clean_kinds[i];
        if (!bh_take_kind(f->o.take, k, false))
            continue;
        int rc = bh_cluster_list(f->o.from, k, "?limit=1", &f->text, &last);
        if (rc == 0) {
            f->kinds[f->n++] = (struct kind){.f = f, .k = k};
        } else if (rc == -ENOENT) {
            bh_err_set(&last, rc, "%s are not served", k->plural);
        } else if (rc == -EACCES || rc == -EIO) {
            fprintf(stderr, "%s: left out: %s: %s\n", f->o.program, k->plural, last.msg);
            if (f->o.on_trouble)
                f->o.on_trouble(f->o.arg, k, last.msg);
        } else {
            return bh_err_set(err, rc, "%s", last.msg);
        }
    }
    if (f->n)
        return 0;
    return bh_err_set(err, -EACCES, "not one kind can be read: %s",
                      *last.msg ? last.msg : "--kinds names none that can be followed");
}

int bh_follow_start(const struct bh_follow_options *o, struct bh_follow **ret, struct bh_err *err)
{
    struct bh_follow *f = bh_calloc(1, sizeof(*f));

    f->o = *o;
    uv_idle_init(o->from->loop, &f->next);
    f->next.data = f;
    int rc = choose_kinds(f, err);
    *ret = f;
    if (rc == 0)
        uv_idle_start(&f->next, start_next);
    return rc;
}

void bh_follow_free(struct bh_follow *f)
{
    if (!f)
        return;
    for (size_t i = 0; i < f->n_started; i++)
        bh_reflector_free(f->kinds[i].reflector);
    if (!uv_is_closing((uv_handle_t *)&f->next))
        uv_close((uv_handle_t *)&f->next, NULL);
    uv_run(f->o.from->loop, UV_RUN_NOWAIT);
    bh_map_fini(&f->seen);
    bh_buf_fini(&f->text);
    bh_arena_fini(&f->arena);
    free(f);
}
