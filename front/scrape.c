/* SPDX-License-Identifier: Apache-2.0
 *
 * front/scrape.c - /metrics of all processes, and their verbosity
 */
#include <errno.h>
#include <zlib.h>

#include "common/base/log.h"
#include "front/front.h"
#include "front/merge.h"

#define SCRAPE_NS    UINT64_C(5000000000)
#define METRICS_TYPE "text/plain; version=0.0.4; charset=utf-8; escaping=underscores"

/* "gzip" stands in the header, and not with q=0. */
static bool takes_gzip(const struct bh_call *c)
{
    const char *h = c->http ? bh_http_header(c->http, "Accept-Encoding") : NULL;
    const char *p = h ? strstr(h, "gzip") : NULL;

    if (!p)
        return false;
    p += 4;
    p += strspn(p, " \t;");
    return strncmp(p, "q=0", 3) != 0 || (p[3] == '.' && strspn(p + 4, "0") != strcspn(p + 4, ", "));
}

static bool compress_into(const struct bh_buf *in, struct bh_buf *out)
{
    z_stream z = {0};

    if (deflateInit2(&z, Z_BEST_SPEED, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
        return false;
    size_t room = deflateBound(&z, in->n);
    bh_buf_reserve(out, room);
    z.next_in = (unsigned char *)in->p;
    z.avail_in = (unsigned)in->n;
    z.next_out = (unsigned char *)out->p;
    z.avail_out = (unsigned)room;
    int rc = deflate(&z, Z_FINISH);
    out->n = z.total_out;
    deflateEnd(&z);
    return rc == Z_STREAM_END;
}

static void on_scraped(void *arg, struct bh_peer_answer *v, size_t n)
{
    struct bh_call *c = arg;
    struct bh_front *f = c->f;
    struct bh_merge *m = bh_merge_new(f->label_rules);
    struct bh_buf own BH_CLEANUP(bh_buf_fini) = {0}, out BH_CLEANUP(bh_buf_fini) = {0},
                      packed BH_CLEANUP(bh_buf_fini) = {0};
    double started;
    char text[32];

    for (size_t i = 0; i < n; i++) {
        bool ok = v[i].code == 200;
        /* Each name of a process is counted apart: so that it cannot grow without bound, binders
         * that come and go under ever new names are one. */
        bool other = strncmp(v[i].name, "binder-", 7) == 0 && strlen(v[i].name) > 10;
        if (ok && bh_merge_add(m, v[i].name, v[i].body, v[i].n))
            bh_log_v(2, "Metrics that make no sense", bh_kv_s("process", v[i].name));
        bh_cell_add(bh_metric_cell(f->m_scrape_errors, other ? "binder-other" : v[i].name), !ok);
    }
    /* Of the other processes' metrics: what --disabled-metrics and --allow-metric-labels did.
     * Twice the same name counts once. */
    const struct bh_opt_list *off = &f->o.flags->disabled_metrics;
    unsigned hidden = 0, disabled = 0;
    for (size_t i = 0; i < off->n; i++) {
        bool again = false;
        for (size_t k = 0; k < i && !again; k++)
            again = bh_streq(off->v[i], off->v[k]);
        disabled += !again;
        hidden += !again && bh_merge_can_hide(m, off->v[i]);
    }
    bh_cell_advance(bh_metric_cell(f->m_disabled), disabled);
    bh_cell_advance(bh_metric_cell(f->m_hidden), hidden);
    bh_cell_advance(bh_metric_cell(f->m_unexpected), bh_merge_unexpected(m));
    bh_metrics_render(f->metrics, &own);
    (void)bh_merge_add(m, "front", bh_buf_str(&own), own.n);
    bh_merge_write(m, &f->o.flags->disabled_metrics, &out);
    if (c->http && bh_merge_value(m, "process_start_time_seconds", &started)) {
        snprintf(text, sizeof(text), "%.0f", started);
        bh_http_set_header(c->http, "Process-Start-Time-Unix", text);
    }
    bh_merge_free(m);
    if (out.n > 1024 && out.n < UINT32_MAX && takes_gzip(c) && compress_into(&out, &packed)) {
        bh_http_set_header(c->http, "Content-Encoding", "gzip");
        bh_call_reply(c, 200, METRICS_TYPE, packed.p, packed.n);
    } else {
        bh_call_reply(c, 200, METRICS_TYPE, bh_buf_str(&out), out.n);
    }
}

void bh_front_metrics(struct bh_call *c)
{
    bh_peers_ask_all(c->f->peers, "GET", "/metrics", NULL, SCRAPE_NS, on_scraped, c);
}

void bh_front_slis(struct bh_call *c)
{
    struct bh_buf out BH_CLEANUP(bh_buf_fini) = {0};

    bh_health_render(c->f->health, &out);
    bh_call_reply(c, 200, METRICS_TYPE, bh_buf_str(&out), out.n);
}

/* ---- /debug/flags/v -------------------------------------------------------------------------- */

struct verbosity {
    struct bh_call *call;
    char text[16];
};

static void on_told(void *arg, struct bh_peer_answer *v, size_t n)
{
    struct verbosity *w = arg;
    struct bh_buf out BH_CLEANUP(bh_buf_fini) = {0};
    unsigned missed = 0;

    bh_buf_addf(&out, "successfully set klog.logging.verbosity to %s", w->text);
    for (size_t i = 0; i < n; i++)
        if (v[i].code != 200)
            bh_buf_addf(&out, "%s%s", missed++ ? ", " : " (but not of: ", v[i].name);
    bh_buf_adds(&out, missed ? ")" : "");
    bh_call_text(w->call, 200, bh_buf_str(&out));
    free(w);
}

void bh_front_verbosity(struct bh_call *c)
{
    struct verbosity *w;
    char text[16], *end;

    if (!bh_streq(c->verb, "put")) {
        bh_call_text(c, 406, "unsupported http method");
        return;
    }
    if (!c->http) {
        bh_call_text(c, 500, "");
        return;
    }
    struct bh_str body = bh_http_body(c->http);
    snprintf(text, sizeof(text), "%.*s", (int)BH_MIN(body.n, sizeof(text) - 1), body.p);
    errno = 0;
    long v = strtol(text, &end, 10);
    if (body.n >= sizeof(text) || end == text || *end || errno || v < INT32_MIN || v > INT32_MAX) {
        BH_CLEANUP(bh_freep)
        char *why = bh_asprintf("failed set klog.logging.verbosity %.*s: strconv.ParseInt: parsing "
                                "the body: invalid syntax",
                                (int)BH_MIN(body.n, 32u), body.p);
        bh_call_text(c, 400, why);
        return;
    }
    bh_log_set_verbosity((int)v);
    w = bh_calloc(1, sizeof(*w));
    w->call = c;
    snprintf(w->text, sizeof(w->text), "%ld", v);
    bh_peers_ask_all(c->f->peers, "PUT", "/debug/flags/v", w->text, SCRAPE_NS, on_told, w);
}
