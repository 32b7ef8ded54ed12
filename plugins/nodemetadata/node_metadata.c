/* SPDX-License-Identifier: Apache-2.0
 *
 * plugins/nodemetadata/node_metadata.c - nodes by a number or a time in one of their labels
 *
 * A time's score is the time itself: between the extremes it lies where its age does, and no clock
 * is needed, so that answers can be kept.
 * Upstream: sigs.k8s.io/scheduler-plugins, pkg/nodemetadata; differences: labels only (plugins do not
 *           see annotations of nodes); of Go's layouts those of numbers and zone; raw scores of times.
 */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "berth/plugin.h"

#define NO_VALUE INT64_MIN
#define RFC3339  "2006-01-02T15:04:05Z07:00"
#define MEMO     4096u

static const struct berth_host *host;

struct instance {
    const struct berth_home *home;
    berth_sym key;
    int time, reverse; /* reverse: the lowest number, the oldest time is the best */
    char layout[64];
    struct {
        berth_sym value;
        int64_t score;
    } memo[MEMO]; /* by symbol: values are read once */
};

/* ---- values ---------------------------------------------------------------------------------- */

static int64_t number_score(const char *text)
{
    char *end;
    double d;

    if (!*text || isspace((unsigned char)*text))
        return NO_VALUE;
    d = strtod(text, &end);
    return *end || !(d > -9223372036854775808.0 && d < 9223372036854775808.0) ? NO_VALUE
                                                                              : (int64_t)d;
}

/* Digits at *s, n of them. */
static int digits(const char **s, int n, int *ret)
{
    *ret = 0;
    for (; n > 0; n--, (*s)++) {
        if (!isdigit((unsigned char)**s))
            return 0;
        *ret = *ret * 10 + (**s - '0');
    }
    return 1;
}

static int64_t days_since_1970(int y, int m, int d)
{
    int64_t era, of_era, of_year;

    y -= m <= 2;
    era = (y >= 0 ? y : y - 399) / 400;
    of_year = (153 * (m + (m > 2 ? -3 : 9)) + 2) / 5 + d - 1;
    of_era = (y - era * 400) * 365 + (y - era * 400) / 4 - (y - era * 400) / 100 + of_year;
    return era * 146097 + of_era - 719468;
}

static int days_of(int y, int m)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};

    return m == 2 && y % 4 == 0 && (y % 100 != 0 || y % 400 == 0) ? 29 : days[m - 1];
}

/* Z or +hh:mm; seconds. */
static int zone(const char **s, int *ret)
{
    int sign = **s == '-' ? -1 : 1, h, m;

    *ret = 0;
    if (**s == 'Z') {
        (*s)++;
        return 1;
    }
    if (**s != '+' && **s != '-')
        return 0;
    (*s)++;
    if (!digits(s, 2, &h) || *(*s)++ != ':' || !digits(s, 2, &m) || h > 24 || m > 59)
        return 0;
    *ret = sign * (h * 3600 + m * 60);
    return 1;
}

/* Go's layout: which of the parts stands at its beginning, and how long it is there. */
static const char *const parts[] = {"2006", "01", "02", "15", "04", "05", "Z07:00"};
enum { PARTS = sizeof parts / sizeof *parts };
static int part_at(const char *layout)
{
    for (int i = 0; i < PARTS; i++)
        if (strncmp(layout, parts[i], strlen(parts[i])) == 0)
            return i;
    return -1;
}

static int64_t time_score(const char *layout, const char *text)
{
    int v[PARTS] = {0, 1, 1, 0, 0, 0, 0};

    while (*layout) {
        int p = part_at(layout);
        if (p < 0 ? *layout != *text
                  : !(p == PARTS - 1 ? zone(&text, &v[p])
                                     : digits(&text, (int)strlen(parts[p]), &v[p])))
            return NO_VALUE;
        layout += p < 0 ? 1 : strlen(parts[p]);
        text += p < 0;
        if (p == 5 && *text == '.' && *layout != '.') /* Go reads fractions that no layout has */
            for (text++; isdigit((unsigned char)*text);)
                text++;
    }
    if (*text || v[1] < 1 || v[1] > 12 || v[2] < 1 || v[2] > days_of(v[0], v[1]) || v[3] > 23 ||
        v[4] > 59 || v[5] > 59)
        return NO_VALUE;
    return days_since_1970(v[0], v[1], v[2]) * 86400 + v[3] * 3600 + v[4] * 60 + v[5] - v[6];
}

static int64_t value_score(struct instance *in, berth_sym value)
{
    uint32_t at = value % MEMO;
    int64_t s;

    if (value == BERTH_SYM_ABSENT)
        return NO_VALUE;
    if (in->memo[at].value == value && value)
        return in->memo[at].score;
    s = in->time ? time_score(in->layout, host->base->text(in->home, value).p)
                 : number_score(host->base->text(in->home, value).p);
    if (in->reverse && s != NO_VALUE)
        s = -s;
    in->memo[at].value = value;
    in->memo[at].score = s;
    return s;
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

#define COMPLAIN(path, text) host->values->error(errors, BERTH_STR(path), BERTH_STR(text))

/* Letters and digits that are none of the parts mean other things to Go. */
static int known_layout(struct berth_str s)
{
    char text[64];

    if (s.n >= sizeof text)
        return 0;
    memcpy(text, s.p, s.n);
    text[s.n] = 0;
    for (const char *p = text; *p;) {
        int k = part_at(p);
        if (k < 0 && isalnum((unsigned char)*p) && *p != 'T')
            return 0;
        p += k < 0 ? 1 : strlen(parts[k]);
    }
    return 1;
}

static void check_args(const struct berth_value *v, struct berth_errors *errors)
{
    static const char *const known[] = {"metadataKey", "metadataSource", "metadataType",
                                        "scoringStrategy", "timestampFormat"};
    const struct args a = args_of(v);
    char text[256];

    for (const struct berth_value *m = host->values->first(v); m; m = host->values->next(m)) {
        struct berth_str key = host->values->key(m);
        unsigned i = 0;
        while (i < sizeof known / sizeof *known && !berth_str_is(key, known[i]))
            i++;
        int n = snprintf(text, sizeof text, "unknown field \"%.*s\"",
                         (int)(key.n < 128 ? key.n : 128), key.p);
        if (i == sizeof known / sizeof *known)
            host->values->error(errors, BERTH_STR(""), (struct berth_str){text, (uint64_t)n});
    }
    if (!a.key.n)
        COMPLAIN("metadataKey", "metadataKey cannot be empty");
    if (berth_str_is(a.source, "Annotation"))
        COMPLAIN("metadataSource", "Annotation: plugins see labels of nodes, not annotations");
    else if (!berth_str_is(a.source, "Label"))
        COMPLAIN("metadataSource", "metadataSource must be either \"Label\" or \"Annotation\"");
    if (!berth_str_is(a.type, "Number") && !berth_str_is(a.type, "Timestamp"))
        COMPLAIN("metadataType", "metadataType must be either \"Number\" or \"Timestamp\"");
    if (!by_time(&a) && !by_number(&a))
        COMPLAIN("scoringStrategy",
                 "scoringStrategy must be one of \"Highest\", \"Lowest\", \"Newest\", or "
                 "\"Oldest\"");
    else if (berth_str_is(a.type, "Number") && !by_number(&a))
        COMPLAIN("scoringStrategy", "Number goes with the strategies \"Highest\" and \"Lowest\"");
    else if (berth_str_is(a.type, "Timestamp") && !by_time(&a))
        COMPLAIN("scoringStrategy", "Timestamp goes with the strategies \"Newest\" and \"Oldest\"");
    if (!known_layout(a.layout))
        COMPLAIN("timestampFormat", "of Go's layouts 2006, 01, 02, 15, 04, 05, Z07:00, T and "
                                    "characters between them are known");
}

static int32_t create(struct berth_home *home, const struct berth_value *v, void **ret,
                      struct berth_why *why)
{
    const struct args a = args_of(v);
    struct instance *in = calloc(1, sizeof *in);

    if (!in) {
        why->reason = BERTH_STR("out of memory");
        return BERTH_ERROR;
    }
    in->home = home;
    in->key = host->base->intern(home, a.key);
    in->time = by_time(&a);
    in->reverse = berth_str_is(a.strategy, "Lowest") || berth_str_is(a.strategy, "Oldest");
    memcpy(in->layout, a.layout.n ? a.layout.p : RFC3339, a.layout.n ? a.layout.n : sizeof RFC3339);
    *ret = in;
    return BERTH_SUCCESS;
}

/* ---- scores ---------------------------------------------------------------------------------- */

static int32_t score(void *self, struct berth_call *c, const struct berth_node *node, int64_t *ret,
                     struct berth_why *why)
{
    struct instance *in = self;

    (void)why;
    *ret = value_score(in, host->nodes->label(c, node, in->key));
    return BERTH_SUCCESS;
}

static int32_t score_rows(void *self, struct berth_call *c, const uint32_t *rows, uint64_t n,
                          int64_t *ret, struct berth_why *why)
{
    struct instance *in = self;
    const berth_sym *label = host->columns->label(c, in->key);

    (void)why;
    for (uint64_t i = 0; label && i < n; i++)
        ret[i] = value_score(in, label[rows[i]]);
    return label ? BERTH_SUCCESS : BERTH_ERROR;
}

/* 1 to 100 between the extremes; nodes without a value: 0. */
static int32_t normalize(void *self, struct berth_call *c, int64_t *scores, uint64_t n,
                         struct berth_why *why)
{
    int64_t low = INT64_MAX, high = NO_VALUE;

    (void)self, (void)c, (void)why;
    for (uint64_t i = 0; i < n; i++) {
        if (scores[i] == NO_VALUE)
            continue;
        low = scores[i] < low ? scores[i] : low;
        high = scores[i] > high ? scores[i] : high;
    }
    for (uint64_t i = 0; i < n; i++) {
        if (scores[i] == NO_VALUE)
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
    .reads = BERTH_READS_NODE,
    .events = none,
    .check_args = check_args,
    .create = create,
    .destroy = free,
    .score = score,
    .score_rows = score_rows,
    .normalize = normalize,
};

BERTH_NOTE("NodeMetadata", "1.0.0", "Apache-2.0");

int32_t berth_plugin_entry_v1(const struct berth_host *h, struct berth_entry *ret)
{
    static const struct berth_plugin *const all[] = {&plugin};

    host = h;
    ret->plugins = all;
    ret->n = 1;
    return 0;
}
