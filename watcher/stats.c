/* SPDX-License-Identifier: Apache-2.0
 *
 * watcher/stats.c - metrics of the watcher
 *
 * Everything is counted where it happens in plain integers and copied into cells at a scrape.
 * Labels are kinds' names: a fixed set.
 */
#include "watcher/watcher_int.h"

#define KIND_METRICS 10
#define METRICS      25
struct bh_watcher_stats {
    struct bh_metric *kind_metrics[KIND_METRICS];
    struct bh_cell *kinds[BH_KIND_ALL][KIND_METRICS];
    struct bh_cell *cells[METRICS];
};

struct family {
    enum bh_metric_kind kind;
    const char *name, *help;
};
static const struct family kind_families[KIND_METRICS] = {
    {BH_GAUGE, "berth_watcher_objects", "Objects of a kind that exist now."},
    {BH_COUNTER, "berth_watcher_events_total", "Changes of objects that were applied."},
    {BH_COUNTER, "berth_watcher_lists_total", "LIST requests begun."},
    {BH_COUNTER, "berth_watcher_watches_total", "WATCH requests begun."},
    {BH_COUNTER, "berth_watcher_relists_total", "Lists completed after the first one."},
    {BH_COUNTER, "berth_watcher_bookmarks_total", "Bookmarks received."},
    {BH_COUNTER, "berth_watcher_duplicates_total", "Events that brought nothing new."},
    {BH_COUNTER, "berth_watcher_received_bytes_total", "Bytes of lists and watches, uncompressed."},
    {BH_COUNTER, "berth_watcher_bad_objects_total", "Objects that were skipped as malformed."},
    {BH_GAUGE, "berth_watcher_troubled", "1 while a kind cannot be listed or watched."},
};
/* In the order of `values`. */
static const struct family families[METRICS] = {
    {BH_GAUGE, "berth_watcher_snapshot_nodes", "Nodes in the snapshot."},
    {BH_GAUGE, "berth_watcher_snapshot_pods", "Assigned pods in the snapshot."},
    {BH_GAUGE, "berth_watcher_snapshot_shapes", "Distinct pod shapes in the snapshot."},
    {BH_GAUGE, "berth_watcher_snapshot_symbols", "Interned texts in the snapshot."},
    {BH_GAUGE, "berth_watcher_snapshot_used_bytes", "Bytes of live and retired records."},
    {BH_GAUGE, "berth_watcher_snapshot_size_bytes", "Size of the current segment."},
    {BH_COUNTER, "berth_watcher_snapshot_changes_total", "Entries written to the change log."},
    {BH_COUNTER, "berth_watcher_snapshot_moves_total", "Moves to a new segment."},
    {BH_GAUGE, "berth_watcher_snapshot_hidden",
     "1 while readers have no snapshot, because there is no room in /dev/shm."},
    {BH_COUNTER, "berth_watcher_snapshot_refused_total",
     "Times that /dev/shm or the runtime directory had no room."},
    {BH_COUNTER, "berth_watcher_snapshot_lost_total",
     "Names of the snapshot that somebody removed, and that were made again."},
    {BH_GAUGE, "berth_watcher_feed_schedulers", "Schedulers that are being fed."},
    {BH_GAUGE, "berth_watcher_feed_unacknowledged_batches", "Batches under way, largest."},
    {BH_GAUGE, "berth_watcher_feed_objects", "Objects kept for schedulers, tombstones included."},
    {BH_GAUGE, "berth_watcher_feed_tombstones", "Deletions some scheduler has yet to be told."},
    {BH_GAUGE, "berth_watcher_feed_object_bytes", "Bytes of the objects kept for schedulers."},
    {BH_COUNTER, "berth_watcher_feed_batches_total", "Batches sent."},
    {BH_COUNTER, "berth_watcher_feed_changes_total", "Changes sent."},
    {BH_COUNTER, "berth_watcher_feed_dropped_total", "Schedulers that went away or were dropped."},
    {BH_COUNTER, "berth_watcher_bus_bad_messages_total", "Messages dropped as invalid."},
    {BH_GAUGE, "berth_watcher_snapshot_readers", "Processes that follow the snapshot."},
    {BH_GAUGE, "berth_watcher_feed_observers", "Observers (berth explain) that are being fed."},
    {BH_COUNTER, "berth_watcher_feed_strangers_total",
     "Connections of users that have no business here."},
    {BH_GAUGE, "berth_watcher_synced", "1 once every kind has been listed."},
    {BH_COUNTER, "berth_watcher_pods_bound_total", "Pending pods that were seen getting a node."},
};

/* Counters have no "set": bring the cells up to the totals. */
static void bring(struct bh_cell **cells, const uint64_t *totals, size_t n)
{
    for (size_t i = 0; i < n; i++)
        bh_cell_add(cells[i], (double)totals[i] - bh_cell_value(cells[i]));
}

static void add_counts(struct bh_reflector_stats *to, const struct bh_reflector_stats *s)
{
    to->events += s->events;
    to->lists += s->lists;
    to->watches += s->watches;
    to->relists += s->relists;
    to->bookmarks += s->bookmarks;
    to->duplicates += s->duplicates;
    to->bytes += s->bytes;
}

static void fill_kind(struct bh_watcher *w, size_t i)
{
    struct bh_reflector_stats s = {0};
    if (!w->stats->kinds[i][0])
        return;
    const struct bh_reflector_stats *b = &w->kinds[i].before;
    if (w->kinds[i].reflector)
        bh_reflector_stats(w->kinds[i].reflector, &s);
    add_counts(&s, b);
    const uint64_t values[KIND_METRICS] = {
        s.objects,   s.events,     s.lists, s.watches,         s.relists,
        s.bookmarks, s.duplicates, s.bytes, w->bad_objects[i], w->kinds[i].troubled};
    bring(w->stats->kinds[i], values, KIND_METRICS);
}

static void on_scrape(void *arg)
{
    struct bh_watcher *w = arg;
    const struct bh_feed *f = &w->feed;
    struct bh_snap_stats s;
    struct bh_bus_stats bus;
    size_t objects = w->objects.tombs;

    if (w->closing)
        return;
    bh_snap_writer_stats(w->snapshot, &s);
    bh_bus_stats(f->bus, &bus);
    for (size_t i = 0; i < BH_KIND_ALL; i++) {
        fill_kind(w, i);
        objects += w->objects.live[i];
    }
    const uint64_t values[METRICS] = {s.nodes,
                                      s.pods,
                                      s.shapes,
                                      s.symbols,
                                      s.bytes_used,
                                      s.bytes_size,
                                      s.head,
                                      s.moves,
                                      s.hidden,
                                      s.refused,
                                      s.lost,
                                      bh_feed_peers(f),
                                      bh_feed_unacked(f),
                                      objects,
                                      w->objects.tombs,
                                      w->objects.bytes + f->raw.bytes,
                                      f->stats.batches,
                                      f->stats.changes,
                                      f->stats.dropped,
                                      bus.bad,
                                      s.readers,
                                      bh_feed_observers(f),
                                      bus.strangers,
                                      w->synced,
                                      w->bound};
    bring(w->stats->cells, values, METRICS);
}

static struct bh_metric *make(struct bh_watcher *w, const struct family *f, const char *labels)
{
    return bh_metric_new(w->metrics, f->kind, f->name, f->help, labels, NULL, 0);
}

/* There are two kinds of PodGroups. */
static const char *label_of(const struct bh_kind_info *k)
{
    return k->kind == BH_KIND_COSCHEDULING_PODGROUP ? k->event_resource : k->kind_name;
}

void bh_watcher_stats_kind(struct bh_watcher *w, const struct bh_kind_info *k)
{
    struct bh_watcher_stats *s = w->stats;
    struct bh_reflector_stats *b = &w->kinds[k->kind].before, last;

    if (w->kinds[k->kind].reflector) {
        bh_reflector_stats(w->kinds[k->kind].reflector, &last);
        add_counts(b, &last);
    }
    for (size_t i = 0; i < KIND_METRICS && !s->kinds[k->kind][i]; i++)
        s->kinds[k->kind][i] = bh_metric_cell(s->kind_metrics[i], label_of(k));
}

void bh_watcher_stats_init(struct bh_watcher *w)
{
    struct bh_watcher_stats *s = w->stats = bh_calloc(1, sizeof(*s));

    for (size_t k = 0; k < KIND_METRICS; k++) {
        struct bh_metric *m = s->kind_metrics[k] = make(w, &kind_families[k], "kind");
        for (size_t i = 0; i < BH_KIND_COUNT; i++)
            if (bh_watcher_watches(w, (enum bh_kind)i))
                s->kinds[i][k] = bh_metric_cell(m, label_of(&bh_kinds[i]));
    }
    for (size_t k = 0; k < METRICS; k++)
        s->cells[k] = bh_metric_cell(make(w, &families[k], ""));
    bh_metrics_on_scrape(w->metrics, on_scrape, w);
}

void bh_watcher_stats_fini(struct bh_watcher *w)
{
    free(w->stats);
    w->stats = NULL;
}
