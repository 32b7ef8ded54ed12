/* SPDX-License-Identifier: Apache-2.0
 *
 * common/api/download.c - one file from an http:// or https:// URL, into memory
 */
#include "common/api/download.h"

#include <curl/curl.h>
#include <errno.h>

#define TOTAL_S   300L
#define CONNECT_S 10L
#define QUIET_S   30L /* with less than a byte a second */
#define REDIRECTS 5L

struct transfer {
    struct bh_buf *to;
    size_t max;
    const atomic_bool *stop;
    bool too_long;
};

static size_t on_data(char *p, size_t size, size_t n, void *arg)
{
    struct transfer *t = arg;

    n *= size;
    t->too_long = n > t->max - t->to->n;
    if (t->too_long)
        return 0; /* ends the transfer */
    bh_buf_add(t->to, p, n);
    return n;
}

static int on_progress(void *arg, curl_off_t total BH_UNUSED, curl_off_t now BH_UNUSED,
                       curl_off_t up_total BH_UNUSED, curl_off_t up_now BH_UNUSED)
{
    const struct transfer *t = arg;

    return t->stop && atomic_load(t->stop);
}

static void set_up(CURL *c, const char *url, struct transfer *t, char *text)
{
    const char *after = strncmp(url, "https:", 6) == 0 ? "https" : "http,https";

    curl_easy_setopt(c, CURLOPT_URL, url);
    curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(c, CURLOPT_REDIR_PROTOCOLS_STR, after);
    curl_easy_setopt(c, CURLOPT_FOLLOWLOCATION, 1L);
    curl_easy_setopt(c, CURLOPT_MAXREDIRS, REDIRECTS);
    curl_easy_setopt(c, CURLOPT_ACCEPT_ENCODING, "");
    curl_easy_setopt(c, CURLOPT_USERAGENT, "berth/" BH_VERSION);
    curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT, CONNECT_S);
    curl_easy_setopt(c, CURLOPT_TIMEOUT, TOTAL_S);
    curl_easy_setopt(c, CURLOPT_LOW_SPEED_LIMIT, 1L);
    curl_easy_setopt(c, CURLOPT_LOW_SPEED_TIME, QUIET_S);
    curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, on_data);
    curl_easy_setopt(c, CURLOPT_WRITEDATA, t);
    curl_easy_setopt(c, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(c, CURLOPT_XFERINFOFUNCTION, on_progress);
    curl_easy_setopt(c, CURLOPT_XFERINFODATA, t);
    curl_easy_setopt(c, CURLOPT_ERRORBUFFER, text);
}

int bh_download(const char *url, size_t max, const atomic_bool *stop, struct bh_buf *ret,
                struct bh_err *err)
{
    struct transfer t = {.to = ret, .max = max, .stop = stop};
    char text[CURL_ERROR_SIZE] = "";
    long code = 0;
    CURL *c = curl_easy_init();
    int rc = 0;

    if (!c)
        return bh_err_set(err, -ENOMEM, "curl cannot begin");
    set_up(c, url, &t, text);
    CURLcode result = curl_easy_perform(c);
    curl_easy_getinfo(c, CURLINFO_RESPONSE_CODE, &code);
    if (result == CURLE_ABORTED_BY_CALLBACK)
        rc = bh_err_set(err, -ECANCELED, "it was given up");
    else if (t.too_long)
        rc = bh_err_set(err, -EFBIG, "it has more than %zu bytes", max);
    else if (result != CURLE_OK)
        rc = bh_err_set(err, result == CURLE_OPERATION_TIMEDOUT ? -ETIMEDOUT : -EIO, "%s",
                        *text ? text : curl_easy_strerror(result));
    else if (code != 200)
        rc = bh_err_set(err, -ENOENT, "received %ld status code", code);
    if (rc < 0)
        bh_buf_reset(ret);
    curl_easy_cleanup(c);
    return rc;
}
