/* SPDX-License-Identifier: Apache-2.0
 *
 * plugins/nodemetadata/node_metadata.c - nodes by a number or a time in one of their labels or annotations
 *
 * A time's score is the time itself: between the extremes it lies where its age does, and no clock
 * is needed, so that answers can be kept. What annotations say is read when their node changes, not for
 * each pod.
 * Upstream: sigs.k8s.io/scheduler-plugins, pkg/nodemetadata; differences: raw scores of times.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "node_metadata.h"

#define RFC3339 "2006-01-02T15:04:05Z07:00"
#define MEMO    4096u

static const struct berth_host *host;

struct instance {
    const struct berth_home *home;
    berth_sym key;
    int annotation, time, reverse; /* reverse: the lowest number, the oldest time is the best */
    struct berth_str layout;
    /* ---- labels: by symbol, values are read once ---- */
    struct {
        berth_sym value;
        int64_t score;
    } memo[MEMO];
    /* ---- annotations: by row ---- */
    uint64_t seen;
    uint32_t n_scores;
    int64_t *scores;
};

/* ---- values ---------------------------------------------------------------------------------- */

static int64_t score_of(const struct instance *in, struct berth_str text)
{
    const int64_t v = in->time ? nm_time(in->layout, text) : nm_number(text);

    return in->reverse && v != NM_NO_VALUE ? -v : v;
}

static int64_t label_score(struct instance *in, berth_sym value)
{
    uint32_t at = value % MEMO;

    if (value == BERTH_SYM_ABSENT)
        return NM_NO_VALUE;
    if (in->memo[at].value != value || !value) {
        in->memo[at].score = score_of(in, host->base->text(in->home, value));
        in->memo[at].value = value;
    }
    return in->memo[at].score;
}

static int64_t annotation_score(const struct instance *in, struct berth_call *c,
                                const struct berth_node *node)
{
    struct berth_str v = host->nodes->annotation(c, node, host->base->text(in->home, in->key));

    return v.p ? score_of(in, v) : NM_NO_VALUE;
}

/* ---- arguments ------------------------------------------------------------------------------- */

struct args {
    struct berth_str key, source, type, strategy, layout;
};

static struct args args_of(const struct berth_value *v)
{
    const struct berth_host_values *h = host->values;
    struct args a = {h->text(h->get(v, BERTH_STR("metadataKey"))),
                     h->text(h->get(v, BERTH_STR("metadataSource"))),
                     h->text(h->get(v, BERTH_STR("metadataType"))),
                     h->text(h->get(v, BERTH_STR("scoringStrategy"))),
                     h->text(h->get(v, BERTH_STR("timestampFormat")))};
    return a;
}

static int by_time(const struct args *a)
{
    return berth_str_is(a->strategy, "Newest") || berth_str_is(a->strategy, "Oldest");
}

static int by_number(const struct args *a)
{
    return berth_str_is(a->strategy, "Highest") || berth_str_is(a->strategy, "Lowest");
}

static void complain(struct berth_errors *errors, const char *path, struct berth_str value,
                     const char *what)
{
    char text[512];
    int n = snprintf(text, sizeof text, "Invalid value: \"%.*s\": %s",
                     (int)(value.n < 256 ? value.n : 256), value.n ? value.p : "", what);

    host->values->error(errors, (struct berth_str){path, strlen(path)},
                        (struct berth_str){text, (uint64_t)n});
}

static void check_fields(const struct berth_value *v, struct berth_errors *errors)
{
    static const char known[] =
        "metadataKey metadataSource metadataType scoringStrategy timestampFormat";
    const struct berth_host_values *h = host->values;

    berth_check_fields(h, v, "", known, errors);
    for (const struct berth_value *m = h->first(v); m; m = h->next(m))
        if (berth_str_among(h->key(m), known) && h->type(m) != BERTH_STRING &&
            h->type(m) != BERTH_NULL)
            h->error(errors, h->key(m), BERTH_STR("a string is needed"));
}

/* Every timestampFormat is a layout: what is none of its parts stands for itself. */
static void check_args(const struct berth_value *v, struct berth_errors *errors)
{
    const struct args a = args_of(v);
    const int number = berth_str_is(a.type, "Number"), time = berth_str_is(a.type, "Timestamp");

    check_fields(v, errors);
    if (!a.key.n)
        complain(errors, "metadataKey", a.key, "metadataKey cannot be empty");
    if (!berth_str_is(a.source, "Label") && !berth_str_is(a.source, "Annotation"))
        complain(errors, "metadataSource", a.source,
                 "metadataSource must be either \"Label\" or \"Annotation\"");
    if (!number && !time)
        complain(errors, "metadataType", a.type,
                 "metadataType must be either \"Number\" or \"Timestamp\"");
    if (!by_time(&a) && !by_number(&a))
        complain(errors, "scoringStrategy", a.strategy,
                 "scoringStrategy must be one of \"Highest\", \"Lowest\", \"Newest\", or "
                 "\"Oldest\"");
    if (number && by_time(&a))
        complain(errors, "scoringStrategy", a.strategy,
                 "scoringStrategy \"Newest\" and \"Oldest\" are only valid for metadataType "
                 "\"Timestamp\"");
    if (time && by_number(&a))
        complain(errors, "scoringStrategy", a.strategy,
                 "scoringStrategy \"Highest\" and \"Lowest\" are only valid for metadataType "
                 "\"Number\"");
}

static void destroy(void *self)
{
    struct instance *in = self;

    free((void *)(uintptr_t)in->layout.p);
    free(in->scores);
    free(in);
}

static int32_t create(struct berth_home *home, const struct berth_value *v, void **ret,
                      struct berth_why *why)
{
    const struct args a = args_of(v);
    const struct berth_str layout = a.layout.n ? a.layout : BERTH_STR(RFC3339);
    struct instance *in = calloc(1, sizeof *in);
    char *copy = malloc(layout.n);

    if (!in || !copy) {
        free(in);
        free(copy);
        why->reason = BERTH_STR("out of memory");
        return BERTH_ERROR;
    }
    memcpy(copy, layout.p, layout.n);
    in->home = home;
    in->key = host->base->intern(home, a.key);
    in->annotation = berth_str_is(a.source, "Annotation");
    in->time = by_time(&a);
    in->reverse = berth_str_is(a.strategy, "Lowest") || berth_str_is(a.strategy, "Oldest");
    in->layout = (struct berth_str){copy, layout.n};
    *ret = in;
    return BERTH_SUCCESS;
}

/* ---- scores ---------------------------------------------------------------------------------- */

struct look {
    struct instance *in;
    struct berth_call *c;
};

/* 0: no memory; then the node is asked each time. */
static int make_room(struct instance *in, uint32_t row)
{
    const uint32_t n = row < 512 ? 1024 : 2 * row;

    if (row < in->n_scores)
        return 1;
    int64_t *more = realloc(in->scores, n * sizeof *more);
    if (!more)
        return 0;
    for (uint32_t i = in->n_scores; i < n; i++)
        more[i] = NM_NO_VALUE;
    in->scores = more;
    in->n_scores = n;
    return 1;
}

static void on_node(void *arg, const struct berth_node *node)
{
    const struct look *l = arg;
    const uint32_t row = host->nodes->row(l->c, node);

    if (row < UINT32_MAX / 2 && make_room(l->in, row))
        l->in->scores[row] = annotation_score(l->in, l->c, node);
}

/* Nothing but the nodes' objects changes what it says. */
static uint64_t epoch(void *self, struct berth_call *c)
{
    struct look l = {self, c};

    if (l.in->annotation)
        l.in->seen = host->nodes->changed(c, l.in->seen, on_node, &l);
    return 0;
}

static int32_t score(void *self, struct berth_call *c, const struct berth_node *node, int64_t *ret,
                     struct berth_why *why)
{
    struct instance *in = self;

    (void)why;
    *ret = in->annotation ? annotation_score(in, c, node)
                          : label_score(in, host->nodes->label(c, node, in->key));
    return BERTH_SUCCESS;
}

static int32_t score_rows(void *self, struct berth_call *c, const uint32_t *rows, uint64_t n,
                          int64_t *ret, struct berth_why *why)
{
    struct instance *in = self;
    const berth_sym *label = in->annotation ? NULL : host->columns->label(c, in->key);

    (void)why;
    for (uint64_t i = 0; i < n; i++)
        ret[i] = label             ? label_score(in, label[rows[i]])
                 : !in->annotation ? NM_NO_VALUE
                 : rows[i] < in->n_scores
                     ? in->scores[rows[i]]
                     : annotation_score(in, c, host->columns->node(c, rows[i]));
    return label || in->annotation ? BERTH_SUCCESS : BERTH_ERROR;
}

/* 1 to 100 between the extremes; nodes without a value: 0. */
static int32_t normalize(void *self, struct berth_call *c, int64_t *scores, uint64_t n,
                         struct berth_why *why)
{
    int64_t low = INT64_MAX, high = NM_NO_VALUE;

    (void)self, (void)c, (void)why;
    for (uint64_t i = 0; i < n; i++) {
        if (scores[i] == NM_NO_VALUE)
            continue;
        low = scores[i] < low ? scores[i] : low;
        high = scores[i] > high ? scores[i] : high;
    }
    for (uint64_t i = 0; i < n; i++) {
        if (scores[i] == NM_NO_VALUE)
            scores[i] = 0;
        else if (low == high)
            scores[i] = 1;
        else
            scores[i] = (int64_t)(((uint64_t)scores[i] - (uint64_t)low) * 99) /
                            (int64_t)((uint64_t)high - (uint64_t)low) +
                        1;
    }
    return BERTH_SUCCESS;
}

/* ---- the file -------------------------------------------------------------------------------- */

static const struct berth_event none[1];
static const struct berth_plugin plugin = {
    .size = sizeof plugin,
    .name = {"NodeMetadata", 12},
    .reads = BERTH_READS_NODE | BERTH_READS_ANNOTATIONS,
    .events = none,
    .check_args = check_args,
    .create = create,
    .destroy = destroy,
    .epoch = epoch,
    .score = score,
    .score_rows = score_rows,
    .normalize = normalize,
};

BERTH_NOTE("NodeMetadata", "1.0.0", "Apache-2.0");

int32_t berth_plugin_entry_v1(const struct berth_host *h, struct berth_entry *ret)
{
    static const struct berth_plugin *const all[] = {&plugin};

    if (!BERTH_HAS(h->nodes, annotation) || !BERTH_HAS(h->nodes, changed))
        return 1;
    host = h;
    ret->plugins = all;
    ret->n = 1;
    return 0;
}
