/* SPDX-License-Identifier: Apache-2.0
 *
 * watcher/stats.c - metrics of the watcher
 *
 * Everything is counted where it happens in plain integers and copied into cells at a scrape.
 * Labels are kinds' names: a fixed set.
 */
#include "watcher/watcher_int.h"

#define KIND_METRICS 9
struct bh_watcher_stats {
    struct {
        struct bh_cell *cell[KIND_METRICS];
    } kinds[BH_KIND_COUNT];
    struct bh_cell *synced, *bound;
    struct bh_cell *snap[11], *feed[12];
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
};
static const struct family snap_families[11] = {
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
};
static const struct family feed_families[12] = {
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
};

/* Counters have no "set": bring the cell up to the total. */
static void bring(struct bh_cell *c, double total)
{
    bh_cell_add(c, total - bh_cell_value(c));
}

static void fill_kind(struct bh_watcher *w, size_t i)
{
    struct bh_cell **c = w->stats->kinds[i].cell;
    struct bh_reflector_stats s = {0};
    if (!w->kinds[i].reflector)
        return;
    bh_reflector_stats(w->kinds[i].reflector, &s);
    const double values[KIND_METRICS] = {
        (double)s.objects,    (double)s.events,  (double)s.lists,
        (double)s.watches,    (double)s.relists, (double)s.bookmarks,
        (double)s.duplicates, (double)s.bytes,   (double)w->bad_objects[i]};
    for (size_t k = 0; k < KIND_METRICS; k++)
        bring(c[k], values[k]);
}

static void fill_snapshot(struct bh_watcher *w)
{
    struct bh_snap_stats s;
    bh_snap_writer_stats(w->snapshot, &s);
    const double values[] = {(double)s.nodes,   (double)s.pods,       (double)s.shapes,
                             (double)s.symbols, (double)s.bytes_used, (double)s.bytes_size,
                             (double)s.head,    (double)s.moves,      (double)s.hidden,
                             (double)s.refused, (double)s.lost};
    for (size_t k = 0; k < BH_ARRAY_LEN(values); k++)
        bring(w->stats->snap[k], values[k]);
    bring(w->stats->feed[9], (double)s.readers);
    bring(w->stats->feed[10], (double)bh_feed_observers(&w->feed));
}

static void fill_feed(struct bh_watcher *w)
{
    struct bh_bus_stats bus;
    size_t live = 0;
    bh_bus_stats(w->feed.bus, &bus);
    for (size_t i = 0; i < BH_KIND_COUNT; i++)
        live += w->objects.live[i];
    const double values[] = {(double)bh_feed_peers(&w->feed),
                             (double)bh_feed_unacked(&w->feed),
                             (double)(live + w->objects.tombs),
                             (double)w->objects.tombs,
                             (double)(w->objects.bytes + w->feed.raw.bytes),
                             (double)w->feed.stats.batches,
                             (double)w->feed.stats.changes,
                             (double)w->feed.stats.dropped,
                             (double)bus.bad};
    bring(w->stats->feed[11], (double)bus.strangers);
    for (size_t k = 0; k < BH_ARRAY_LEN(values); k++)
        bring(w->stats->feed[k], values[k]);
}

static void on_scrape(void *arg)
{
    struct bh_watcher *w = arg;
    if (w->closing)
        return;
    for (size_t i = 0; i < BH_KIND_COUNT; i++)
        fill_kind(w, i);
    fill_snapshot(w);
    fill_feed(w);
    bh_cell_set(w->stats->synced, w->synced);
    bring(w->stats->bound, (double)w->bound);
}

static struct bh_metric *make(struct bh_watcher *w, const struct family *f, const char *labels)
{
    return bh_metric_new(w->metrics, f->kind, f->name, f->help, labels, NULL, 0);
}

void bh_watcher_stats_init(struct bh_watcher *w)
{
    static const struct family synced = {BH_GAUGE, "berth_watcher_synced",
                                         "1 once every kind has been listed."};
    static const struct family bound = {BH_COUNTER, "berth_watcher_pods_bound_total",
                                        "Pending pods that were seen getting a node."};
    struct bh_watcher_stats *s = w->stats = bh_calloc(1, sizeof(*s));

    for (size_t k = 0; k < KIND_METRICS; k++) {
        struct bh_metric *m = make(w, &kind_families[k], "kind");
        for (size_t i = 0; i < BH_KIND_COUNT; i++)
            if (bh_kinds[i].watched)
                s->kinds[i].cell[k] = bh_metric_cell(m, bh_kinds[i].kind_name);
    }
    for (size_t k = 0; k < BH_ARRAY_LEN(snap_families); k++)
        s->snap[k] = bh_metric_cell(make(w, &snap_families[k], ""));
    for (size_t k = 0; k < BH_ARRAY_LEN(feed_families); k++)
        s->feed[k] = bh_metric_cell(make(w, &feed_families[k], ""));
    s->synced = bh_metric_cell(make(w, &synced, ""));
    s->bound = bh_metric_cell(make(w, &bound, ""));
    bh_metrics_on_scrape(w->metrics, on_scrape, w);
}

void bh_watcher_stats_fini(struct bh_watcher *w)
{
    free(w->stats);
    w->stats = NULL;
}
