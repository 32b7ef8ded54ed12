/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/server/nonresource.c - version, health, metrics, the list of paths
 */
#include "simulator/server/req.h"

#include <stdio.h>

static bool is_health(const char *path, const char *name)
{
    size_t n = strlen(name);
    return strncmp(path, name, n) == 0 && (path[n] == 0 || path[n] == '/');
}

bool bh_sim_do_misc(struct bh_sim_req *r)
{
    if (!bh_streq(r->method, "GET") && !bh_streq(r->method, "HEAD"))
        return false;
    r->verb = "probe";
    if (bh_streq(r->path, "/version") || bh_streq(r->path, "/version/")) {
        struct bh_buf b = {0};
        bh_buf_addf(
            &b,
            "{\n  \"major\": \"1\",\n  \"minor\": \"36\",\n  \"gitVersion\": "
            "\"v1.36.0+berth.%s\",\n  \"gitCommit\": \"\",\n  \"gitTreeState\": \"clean\",\n  "
            "\"buildDate\": \"1970-01-01T00:00:00Z\",\n  \"goVersion\": \"\",\n  \"compiler\": "
            "\"gcc\",\n  \"platform\": \"linux/amd64\"\n}\n",
            BH_VERSION);
        bh_sim_reply_raw(r, 200, "application/json", b.p, b.n);
        bh_buf_fini(&b);
    } else if (is_health(r->path, "/healthz") || is_health(r->path, "/livez") ||
               is_health(r->path, "/readyz")) {
        char text[64];
        if (bh_sim_query_bool(r, "verbose", false))
            snprintf(text, sizeof(text), "[+]ping ok\n%.8s check passed\n", r->path + 1);
        else
            snprintf(text, sizeof(text), "ok");
        bh_sim_reply_raw(r, 200, "text/plain; charset=utf-8", text, strlen(text));
    } else if (bh_streq(r->path, "/metrics")) {
        struct bh_buf b = {0};
        bh_metrics_render(r->sim->metrics.m, &b);
        bh_sim_reply_raw(r, 200, "text/plain; version=0.0.4; charset=utf-8", b.p, b.n);
        bh_buf_fini(&b);
    } else if (bh_streq(r->path, "/")) {
        static const char text[] =
            "{\n  \"paths\": [\n    \"/api\",\n    \"/api/v1\",\n    \"/apis\",\n    "
            "\"/healthz\",\n"
            "    \"/livez\",\n    \"/metrics\",\n    \"/openapi/v2\",\n    \"/openapi/v3\",\n"
            "    \"/readyz\",\n    \"/version\"\n  ]\n}\n";
        bh_sim_reply_raw(r, 200, "application/json", text, sizeof(text) - 1);
    } else
        return false;
    return true;
}
