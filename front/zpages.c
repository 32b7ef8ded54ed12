/* SPDX-License-Identifier: Apache-2.0
 *
 * front/zpages.c - /configz, /flagz, /statusz, /metrics/resources
 *
 * Upstream: component-base/configz, component-base/zpages/{flagz,statusz}.
 */
#include <stdio.h>
#include <time.h>

#include "front/front.h"

#define METRICS_TYPE "text/plain; version=0.0.4; charset=utf-8; escaping=underscores"
#define WARNING                                                                                    \
    "Warning: This endpoint is not meant to be machine parseable, has no formatting "              \
    "compatibility guarantees and is for debugging purposes only.\n\n"
#define KUBE_VERSION "1.36.2" /* whose behaviour this is */
#define KUBE_MINOR   "1.36"

/* ---- /configz -------------------------------------------------------------------------------- */

static void unavailable(struct bh_call *c, const char *why)
{
    if (c->http)
        bh_http_set_header(c->http, "Retry-After", "1");
    bh_call_error(c, 503, why);
}

static void on_config(void *arg, const Berth__ControlReply *r, const char *why)
{
    struct bh_call *c = arg;
    struct bh_buf out BH_CLEANUP(bh_buf_fini) = {0};

    if (!r || !r->config || !r->config->in_force_json) {
        unavailable(c, why ? why : "berth-scheduler gave no configuration");
        return;
    }
    bh_buf_addf(&out, "{\"componentconfig\":%s}", r->config->in_force_json);
    bh_call_reply(c, 200, "application/json", out.p, out.n);
}

void bh_front_configz(struct bh_call *c)
{
    bh_asker_ask(c->f->control, BERTH__CONTROL_WHAT__CONTROL_CONFIG, on_config, c);
}

/* ---- /flagz, /statusz ------------------------------------------------------------------------ */

enum form { FORM_TEXT, FORM_V1ALPHA1, FORM_V1BETA1, FORM_NONE };

/* "application/json;v=v1beta1;g=config.k8s.io;as=Flagz" among what the client accepts. */
static enum form form_of(const struct bh_call *c, const char *as)
{
    const char *h = c->http ? bh_http_header(c->http, "Accept") : NULL;
    char *copy, *item, *rest, want[32];
    enum form form = FORM_NONE;

    if (!h || !*h)
        return FORM_TEXT;
    copy = bh_strdup(h);
    snprintf(want, sizeof(want), "as=%s", as);
    for (item = strtok_r(copy, ",", &rest); item && form == FORM_NONE;
         item = strtok_r(NULL, ",", &rest)) {
        item += strspn(item, " \t");
        size_t n = strcspn(item, "; \t");
        bool json = n == 16 && strncmp(item, "application/json", n) == 0;
        if ((n == 3 && strncmp(item, "*/*", 3) == 0) ||
            (n == 6 && strncmp(item, "text/*", 6) == 0) ||
            (n == 10 && strncmp(item, "text/plain", 10) == 0))
            form = FORM_TEXT;
        else if (json && strstr(item, want) && strstr(item, "g=config.k8s.io"))
            form = strstr(item, "v=v1beta1")    ? FORM_V1BETA1
                   : strstr(item, "v=v1alpha1") ? FORM_V1ALPHA1
                                                : FORM_NONE;
    }
    free(copy);
    return form;
}

static void not_acceptable(struct bh_call *c)
{
    bh_call_error(c, 406,
                  "media type in Accept header is not supported; supported types are: text/plain, "
                  "application/json;v=v1beta1;g=config.k8s.io, "
                  "application/json;v=v1alpha1;g=config.k8s.io (each with its as=)");
}

static void begin_json(struct bh_buf *out, const char *kind, enum form form)
{
    bh_buf_addf(out,
                "{\"kind\":\"%s\",\"apiVersion\":\"config.k8s.io/%s\",\"metadata\":{\"name\":"
                "\"kube-scheduler\"},",
                kind, form == FORM_V1BETA1 ? "v1beta1" : "v1alpha1");
}

struct flags {
    struct bh_buf *out;
    bool json, any;
};

/* Lists stand as Go prints a slice: "[a b]". */
static void add_flag(void *arg, const char *name, const char *value, bool given)
{
    struct flags *w = arg;
    BH_CLEANUP(bh_freep) char *text = bh_strdup(value);
    size_t n = strlen(text);

    (void)given;
    if (n >= 2 && text[0] == '[' && text[n - 1] == ']')
        for (char *p = text; *p; p++)
            if (*p == ',')
                *p = ' ';
    if (w->json)
        bh_buf_add_json(w->out, w->any ? ",%s:%s" : "%s:%s", name, text);
    else
        bh_buf_addf(w->out, "%s:%s\n", name, text);
    w->any = true;
}

void bh_front_flagz(struct bh_call *c)
{
    enum form form = form_of(c, "Flagz");
    struct bh_buf out BH_CLEANUP(bh_buf_fini) = {0};
    struct flags w = {&out, form != FORM_TEXT, false};

    if (form == FORM_NONE) {
        not_acceptable(c);
        return;
    }
    if (w.json) {
        begin_json(&out, "Flagz", form);
        bh_buf_adds(&out, "\"flags\":{");
    } else {
        bh_buf_adds(&out, "\nkube-scheduler flagz\n" WARNING);
    }
    bh_kube_flags_each(c->f->o.flags, add_flag, &w);
    bh_buf_adds(&out, w.json ? "}}\n" : "");
    bh_call_reply(c, 200, w.json ? "application/json" : NULL, out.p, out.n);
}

void bh_front_statusz(struct bh_call *c)
{
    enum form form = form_of(c, "Statusz");
    uint64_t up_s = (bh_mono_ns() - c->f->started_mono_ns) / 1000000000;
    time_t t = (time_t)(c->f->started_wall_ns / 1000000000);
    struct bh_buf out BH_CLEANUP(bh_buf_fini) = {0};
    char started[64];
    struct tm tm;

    if (form == FORM_NONE) {
        not_acceptable(c);
        return;
    }
    gmtime_r(&t, &tm);
    strftime(started, sizeof(started),
             form == FORM_TEXT ? "%a %b %e %H:%M:%S UTC %Y" : "%Y-%m-%dT%H:%M:%SZ", &tm);
    if (form == FORM_TEXT) {
        bh_buf_adds(&out, "\nkube-scheduler statusz\n" WARNING);
        bh_buf_addf(&out, "Started  %s\nUp  %u hr %02u min %02u sec\n", started,
                    (unsigned)(up_s / 3600), (unsigned)(up_s / 60 % 60), (unsigned)(up_s % 60));
        bh_buf_adds(&out, "Go version  none (C, " __VERSION__ ")\n"
                          "Binary version  " KUBE_VERSION "\n"
                          "Emulation version  " KUBE_MINOR "\n"
                          "Berth version  " BH_VERSION "\n"
                          "Paths  /configz /flagz /healthz /livez /metrics /readyz\n");
    } else {
        begin_json(&out, "Statusz", form);
        bh_buf_addf(
            &out,
            "\"startTime\":\"%s\",\"uptimeSeconds\":%llu,\"goVersion\":\"none (C, " __VERSION__
            ")\",\"binaryVersion\":\"" KUBE_VERSION "\",\"emulationVersion\":\"" KUBE_MINOR
            "\",\"paths\":[\"/configz\",\"/flagz\",\"/healthz\",\"/livez\",\"/metrics\","
            "\"/readyz\"]}\n",
            started, (unsigned long long)up_s);
    }
    bh_call_reply(c, 200, form == FORM_TEXT ? NULL : "application/json", out.p, out.n);
}

/* ---- /metrics/resources ---------------------------------------------------------------------- */

static void on_resources(void *arg, bool complete)
{
    struct bh_call *c = arg;
    struct bh_buf out BH_CLEANUP(bh_buf_fini) = {0};

    if (!complete) {
        unavailable(c, "the pods have not been read yet");
        return;
    }
    bh_resources_write(c->f->resources, &out);
    bh_call_reply(c, 200, METRICS_TYPE, bh_buf_str(&out), out.n);
}

static void on_status(void *arg, const Berth__ControlReply *r, const char *why)
{
    struct bh_call *c = arg;

    if (!r || !r->status)
        unavailable(c, why ? why : "berth-scheduler gave no status");
    else if (!r->status->leading) /* as upstream's standby: empty */
        bh_call_reply(c, 200, METRICS_TYPE, "", 0);
    else
        bh_resources_ask(c->f->resources, on_resources, c);
}

void bh_front_pod_resources(struct bh_call *c)
{
    bh_asker_ask(c->f->control, BERTH__CONTROL_WHAT__CONTROL_STATUS, on_status, c);
}
