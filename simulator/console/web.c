/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/console/web.c - the files of the page
 *
 * The folder is looked for beside the program: <bin>/../share/berth/web. Only plain file names are
 * served, so no path leads out of it. A browser that asks for / is sent to the page.
 * The policy forbids everything that does not come from this server, and code inside the document.
 */
#include "simulator/console/console.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_MAX_BYTES ((size_t)4 << 20)
#define POLICY                                                                                     \
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "              \
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

static const char *type_of(const char *name)
{
    static const char *const types[][2] = {
        {".html", "text/html; charset=utf-8"},
        {".css", "text/css; charset=utf-8"},
        {".js", "text/javascript; charset=utf-8"},
        {".svg", "image/svg+xml"},
    };
    size_t n = strlen(name);

    for (size_t i = 0; i < BH_ARRAY_LEN(types); i++) {
        size_t e = strlen(types[i][0]);
        if (n > e && bh_streq(name + n - e, types[i][0]))
            return types[i][1];
    }
    return NULL;
}

static int read_file(const char *name, struct bh_buf *out)
{
    char path[PATH_MAX], exe[PATH_MAX / 2];
    ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1), got;
    struct stat st;

    if (n < 0)
        return -errno;
    exe[n] = '\0';
    *strrchr(exe, '/') = '\0';
    snprintf(path, sizeof(path), "%s/../share/berth/web/%s", exe, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return -errno;
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || (size_t)st.st_size > FILE_MAX_BYTES) {
        close(fd);
        return -EINVAL;
    }
    do {
        char part[16384];
        got = read(fd, part, sizeof(part));
        if (got > 0)
            bh_buf_add(out, part, (size_t)got);
    } while (got > 0);
    close(fd);
    return got < 0 ? -EIO : 0;
}

bool bh_console_web(struct bh_sim_req *r)
{
    const char *accept = bh_http_header(r->http, "Accept"), *name;
    BH_CLEANUP(bh_buf_fini) struct bh_buf b = {0};

    if (!bh_streq(r->method, "GET") && !bh_streq(r->method, "HEAD"))
        return false;
    r->verb = "web";
    if (bh_streq(r->path, "/ui") ||
        (bh_streq(r->path, "/") && accept && strstr(accept, "text/html"))) {
        bh_http_set_header(r->http, "Location", "/ui/");
        bh_sim_reply_raw(r, 302, "text/plain", "", 0);
        return true;
    }
    if (strncmp(r->path, "/ui/", 4) != 0)
        return false;
    name = r->path[4] ? r->path + 4 : "index.html";
    bool plain =
        *name != '.' && strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-_.") == strlen(name);
    if (!plain || !type_of(name) || read_file(name, &b) < 0) {
        bh_console_fail(r, 404, NULL, 0, "the page has no file %s", name);
    } else {
        bh_http_set_header(r->http, "Content-Security-Policy", POLICY);
        bh_http_set_header(r->http, "X-Content-Type-Options", "nosniff");
        bh_http_set_header(r->http, "Referrer-Policy", "no-referrer");
        bh_sim_reply_raw(r, 200, type_of(name), b.p, b.n);
    }
    return true;
}
