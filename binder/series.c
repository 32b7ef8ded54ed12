/* SPDX-License-Identifier: Apache-2.0
 *
 * binder/series.c - which event is a repetition, and when its count is written
 */
#include "binder/series.h"

#include "common/k8s/quantity.h"

struct bh_series {
    TAILQ_ENTRY(bh_series) link;
    char *key, *name; /* name: of the Event, as its creation said */
    size_t key_n;
    char *path, *body;  /* the request that creates it */
    uint32_t count;     /* 1 = no series yet */
    int64_t seen_ns;    /* last time */
    int64_t written_ns; /* last PATCH */
};

static void forget(struct bh_series_set *s, struct bh_series *e)
{
    TAILQ_REMOVE(&s->list, e, link);
    (void)bh_map_del(&s->by_key, e->key, e->key_n);
    free(e->key);
    free(e->name);
    free(e->path);
    free(e->body);
    free(e);
}

void bh_series_fini(struct bh_series_set *s)
{
    while (!TAILQ_EMPTY(&s->list))
        forget(s, TAILQ_FIRST(&s->list));
    bh_map_fini(&s->by_key);
    bh_buf_fini(&s->key);
}

static void make_key(struct bh_series_set *s, const Berth__WorkItem *it)
{
    const Berth__EventText *e = it->event;
    const Berth__ObjectReference none = BERTH__OBJECT_REFERENCE__INIT;
    const Berth__ObjectReference *r = e->related ? e->related : &none;
    const char *parts[] = {
        e->type,        e->action,          e->reason, e->reporting_controller,
        it->namespace_, it->name,           it->uid,   e->regarding_resource_version,
        r->kind,        r->api_version,     r->name,   r->namespace_,
        r->uid,         r->resource_version};

    bh_buf_reset(&s->key);
    for (size_t i = 0; i < BH_ARRAY_LEN(parts); i++) {
        bh_buf_adds(&s->key, parts[i] ? parts[i] : "");
        bh_buf_addc(&s->key, '\0');
    }
}

static void fill_write(const struct bh_series *e, struct bh_series_write *w)
{
    struct bh_buf series BH_CLEANUP(bh_buf_fini) = {0};
    size_t object = strlen(e->body) - 1; /* without the closing brace */
    char now[40];

    bh_time_format_micro(now, e->seen_ns / 1000000000, (int32_t)(e->seen_ns % 1000000000));
    bh_buf_addf(&series, "\"series\":{\"count\":%u,\"lastObservedTime\":\"%s\"}}", e->count, now);
    bh_buf_reset(&w->patch_path);
    bh_buf_addf(&w->patch_path, "%s/%s", e->path, e->name);
    bh_buf_reset(&w->patch_body);
    bh_buf_addf(&w->patch_body, "{%s", bh_buf_str(&series));
    bh_buf_reset(&w->post_path);
    bh_buf_adds(&w->post_path, e->path);
    bh_buf_reset(&w->post_body);
    bh_buf_add(&w->post_body, e->body, object);
    bh_buf_addf(&w->post_body, ",%s", bh_buf_str(&series));
}

enum bh_series_verdict bh_series_observe(struct bh_series_set *s, const Berth__WorkItem *it,
                                         int64_t wall_ns, struct bh_series_write *w)
{
    if (bh_streq(it->event->reason, "Scheduled"))
        return BH_SERIES_ONCE;
    make_key(s, it);
    struct bh_series *e = bh_map_get(&s->by_key, s->key.p, s->key.n);
    if (!e)
        return BH_SERIES_FIRST;
    TAILQ_REMOVE(&s->list, e, link);
    TAILQ_INSERT_TAIL(&s->list, e, link);
    e->seen_ns = wall_ns;
    if (e->count < UINT32_MAX)
        e->count++;
    if (e->count > 2)
        return BH_SERIES_COUNTED;
    e->written_ns = wall_ns;
    fill_write(e, w);
    return BH_SERIES_SECOND;
}

bool bh_series_start(struct bh_series_set *s, const Berth__WorkItem *it, int64_t wall_ns,
                     const char *event_name, const struct bh_buf *post_path,
                     const struct bh_buf *post_body, struct bh_series_write *w)
{
    struct bh_series *e = TAILQ_FIRST(&s->list);
    const bool full = s->by_key.len >= BH_SERIES_MAX;
    const bool write = full && e->count > 2; /* the second was written when it came */

    if (write)
        fill_write(e, w);
    if (full)
        forget(s, e);
    e = bh_calloc(1, sizeof(*e));
    make_key(s, it);
    e->key = bh_memdup(s->key.p, s->key.n);
    e->key_n = s->key.n;
    e->name = bh_strdup(event_name);
    e->path = bh_strdup(bh_buf_str(post_path));
    e->body = bh_strdup(bh_buf_str(post_body));
    e->count = 1;
    e->seen_ns = e->written_ns = wall_ns;
    (void)bh_map_put(&s->by_key, e->key, e->key_n, e);
    TAILQ_INSERT_TAIL(&s->list, e, link);
    return write;
}

bool bh_series_due(struct bh_series_set *s, int64_t wall_ns, struct bh_series_write *w)
{
    struct bh_series *e;

    while ((e = TAILQ_FIRST(&s->list)) && wall_ns - e->seen_ns > BH_SERIES_FINISH_NS) {
        bool write = e->count > 1;
        if (write)
            fill_write(e, w);
        forget(s, e);
        if (write)
            return true;
    }
    TAILQ_FOREACH_REVERSE(e, &s->list, bh_series_list, link)
    if (e->count > 1 && wall_ns - e->written_ns >= BH_SERIES_REFRESH_NS) {
        e->written_ns = wall_ns;
        fill_write(e, w);
        return true;
    }
    return false;
}

size_t bh_series_count(const struct bh_series_set *s)
{
    return s->by_key.len;
}

void bh_series_write_fini(struct bh_series_write *w)
{
    bh_buf_fini(&w->patch_path);
    bh_buf_fini(&w->patch_body);
    bh_buf_fini(&w->post_path);
    bh_buf_fini(&w->post_body);
}
