/* SPDX-License-Identifier: Apache-2.0
 *
 * common/cel/url.c - URLs
 *
 * A URL is kept as its canonical text, which decides equality, and the parts that can be asked for.
 * Upstream: k8s.io/apiserver/pkg/cel/library/urls.go, Go's net/url.
 */
#include "common/cel/cel_int.h"
#include <ctype.h>

/* What has to be escaped where; everything else that is no letter and no digit must. */
#define PATH_SAFE "-_.~$&+,/:;=@"
#define PATH_OK   PATH_SAFE "!'()*[]%" /* left as it was written */
#define HOST_SAFE "-_.~$&+,:;=!'()*[]<>\""
#define USER_OK   "-._:~!$&'()*+,;=%@"

struct parsing {
    struct bh_arena *arena;
    struct bh_buf *why; /* not empty: failed */
    struct cel_url u;
    const char *user, *opaque, *fragment;
    bool authority, query;
};

static bool is_safe(char c, const char *safe)
{
    return c && (isalnum((unsigned char)c) ? (unsigned char)c < 0x80 : strchr(safe, c) != NULL);
}

/* The escapes of s resolved; NULL: why says which one is wrong. In a host only what is not ASCII
 * may be escaped, in a zone what a host may hold, and blanks. */
enum place { ANYWHERE, HOST, ZONE };
static const char *unescape(struct parsing *p, const char *s, size_t n, enum place place)
{
    char *out = bh_arena_alloc(p->arena, n + 1), *o = out;

    for (size_t i = 0; i < n; i++) {
        int hi = s[i] == '%' && i + 2 < n ? bh_hex_value(s[i + 1]) : -1;
        int lo = hi < 0 ? -1 : bh_hex_value(s[i + 2]);
        char c = lo < 0 ? s[i] : (char)(hi << 4 | lo);
        bool percent = lo >= 0 && c == '%';
        if (s[i] == '%' && (lo < 0 || (place == HOST && hi < 8 && !percent) ||
                            (place == ZONE && !percent && c != ' ' && !is_safe(c, HOST_SAFE)))) {
            bh_buf_addf(p->why, "invalid URL escape \"%.*s\"", (int)BH_MIN(n - i, (size_t)3),
                        s + i);
            return NULL;
        }
        if (s[i] != '%' && place != ANYWHERE && !(c & 0x80) && !is_safe(c, HOST_SAFE)) {
            bh_buf_addf(p->why, "invalid character \"%s%c\" in host name", c == '\\' ? "\\" : "",
                        c);
            return NULL;
        }
        *o++ = c;
        i += lo < 0 ? 0 : 2;
    }
    *o = '\0';
    return out;
}

static const char *escaped_path(struct parsing *p, const char *path)
{
    struct bh_buf b BH_CLEANUP(bh_buf_fini) = {0};
    const char *plain = unescape(p, path, strlen(path), ANYWHERE), *c = path;

    if (!plain)
        return NULL;
    while (*c && is_safe(*c, PATH_OK))
        c++;
    if (!*c)
        return bh_arena_strdup(p->arena, path);
    for (c = plain; *c; c++)
        bh_buf_addf(&b, is_safe(*c, PATH_SAFE) ? "%c" : "%%%02X", (unsigned char)*c);
    return bh_arena_strdup(p->arena, bh_buf_str(&b));
}

static bool refuse(struct parsing *p, const char *why)
{
    bh_buf_adds(p->why, why);
    return false;
}

static bool is_port(const char *s)
{
    return !*s || (*s == ':' && !s[1 + strspn(s + 1, "0123456789")]);
}

static bool refuse_port(struct parsing *p, const char *port)
{
    bh_buf_adds(p->why, "invalid port ");
    bh_cel_add_quoted(p->why, bh_str_c(port), true);
    return refuse(p, " after host");
}

/* [address] or [address%25zone], then a port. */
static bool parse_literal(struct parsing *p, const char *host)
{
    const char *close = strrchr(host, ']'), *port = close ? close + 1 : NULL;
    struct cel_net net;

    if (!close)
        return refuse(p, "missing ']' in host");
    if (!is_port(port))
        return refuse_port(p, port);
    size_t n = (size_t)(close - host - 1);
    const char *zone = memmem(host + 1, n, "%25", 3), *rest = "";
    const char *addr = unescape(p, host + 1, zone ? (size_t)(zone - host - 1) : n, HOST);
    if (addr && zone)
        rest = unescape(p, zone, (size_t)(close - zone), ZONE);
    if (!addr || !rest)
        return false;
    const char *full = bh_arena_printf(p->arena, "%s%s", addr, rest);
    struct bh_buf why BH_CLEANUP(bh_buf_fini) = {0};
    if (!bh_cel_parse_ip(full, &net, &why)) {
        bh_buf_addf(p->why, "invalid host: %s", bh_buf_str(&why));
        return false;
    }
    if (net.n == 4)
        return refuse(p, "invalid IP-literal");
    p->u.host = bh_arena_printf(p->arena, "[%s]%s", full, port);
    return true;
}

static bool parse_host(struct parsing *p, const char *host)
{
    const char *open = strrchr(host, '['), *colon = strchr(host, ':');
    bool web = bh_word_at("http https", p->u.scheme) >= 0;

    if (open)
        return open == host ? parse_literal(p, host) : refuse(p, "invalid IP-literal");
    if (colon && !web) /* lists of hosts, as databases have them */
        colon = strrchr(host, ':');
    if (colon && !is_port(colon))
        return refuse_port(p, colon);
    p->u.host = unescape(p, host, strlen(host), HOST);
    return p->u.host != NULL;
}

static bool parse_authority(struct parsing *p, char *text)
{
    char *at = strrchr(text, '@');

    p->authority = true;
    if (!parse_host(p, at ? at + 1 : text))
        return false;
    if (!at)
        return true;
    *at = '\0';
    for (const char *c = text; *c; c++)
        if (!is_safe(*c, USER_OK))
            return refuse(p, "net/url: invalid userinfo");
    p->user = text;
    return unescape(p, text, strlen(text), ANYWHERE) != NULL;
}

/* A scheme is a letter and what may follow one, up to a colon. *ret_rest: behind it. */
static bool parse_scheme(struct parsing *p, char *text, char **ret_rest)
{
    size_t n = 0;

    while (is_safe(text[n], "+-.") && (n || isalpha((unsigned char)text[0])))
        n++;
    *ret_rest = text;
    p->u.scheme = "";
    if (text[n] != ':')
        return true;
    if (n == 0)
        return refuse(p, "missing protocol scheme");
    text[n] = '\0';
    *ret_rest = text + n + 1;
    for (char *c = text; *c; c++)
        *c = (char)tolower((unsigned char)*c);
    p->u.scheme = text;
    return true;
}

/* absolute: as a request has it, where '#' is nothing special. text is taken apart. */
static bool parse(struct parsing *p, char *text, bool absolute)
{
    bool star = bh_streq(text, "*");
    char *rest, *query, *path;

    p->u.host = p->u.path = p->u.query = "";
    for (const char *c = text; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f)
            return refuse(p, "net/url: invalid control character in URL");
    if (!*text && absolute)
        return refuse(p, "empty url");
    if (!parse_scheme(p, text, &rest))
        return false;
    query = strchr(rest, '?');
    if (query) {
        *query = '\0';
        p->query = true;
        p->u.query = query + 1;
    }
    if (*rest != '/' && !star) {
        if (!*p->u.scheme)
            return refuse(p, "invalid URI for request");
        p->opaque = rest;
        return true;
    }
    bool with_host = strncmp(rest, "//", 2) == 0 &&
                     (*p->u.scheme || (!absolute && strncmp(rest, "///", 3) != 0));
    if (with_host) {
        path = rest + 2 + strcspn(rest + 2, "/");
        char *authority = bh_arena_strndup(p->arena, rest + 2, (size_t)(path - rest - 2));
        if (!parse_authority(p, authority))
            return false;
        rest = path;
    }
    p->u.path = escaped_path(p, rest);
    return p->u.path != NULL;
}

static void canonical(struct parsing *p)
{
    p->u.text = bh_arena_printf(
        p->arena, "%s%s%s%s%s%s%s%s%s%s%s", p->u.scheme, *p->u.scheme ? ":" : "",
        p->authority ? "//" : "", p->user ? p->user : "", p->user ? "@" : "", p->u.host,
        p->opaque ? p->opaque : p->u.path, p->query ? "?" : "", p->u.query,
        p->fragment && *p->fragment ? "#" : "", p->fragment ? p->fragment : "");
}

/* `parse "text": why`; the text is upstream's: without the fragment where that was cut off. */
static bool parse_failed(struct bh_buf *why, const char *text, const struct bh_buf *reason)
{
    bh_buf_adds(why, "parse ");
    bh_cel_add_quoted(why, bh_str_c(text), true);
    bh_buf_addf(why, ": %s", bh_buf_str(reason));
    return false;
}

bool bh_cel_parse_url(struct bh_arena *a, const struct cel_value *v, struct cel_url *ret,
                      struct bh_buf *why)
{
    struct bh_buf reason BH_CLEANUP(bh_buf_fini) = {0};
    struct parsing p = {.arena = a, .why = &reason};
    const char *text = bh_arena_strndup(a, v->s, v->n);

    if (memchr(v->s, '\0', v->n)) {
        refuse(&p, "net/url: invalid control character in URL");
        return parse_failed(why, text, &reason);
    }
    if (!parse(&p, bh_arena_strdup(a, text), true))
        return parse_failed(why, text, &reason);
    p = (struct parsing){.arena = a, .why = &reason};
    char *before = bh_arena_strdup(a, text), *hash = strchr(before, '#');
    if (hash)
        *hash = '\0';
    const char *shown = bh_arena_strdup(a, before);
    if (!parse(&p, before, false))
        return parse_failed(why, shown, &reason);
    p.fragment = hash ? hash + 1 : NULL;
    if (hash && !unescape(&p, p.fragment, strlen(p.fragment), ANYWHERE))
        return parse_failed(why, text, &reason);
    canonical(&p);
    *ret = p.u;
    return true;
}

struct cel_value bh_cel_url(struct cel_eval *e, const struct cel_value *arg)
{
    struct bh_buf why BH_CLEANUP(bh_buf_fini) = {0};
    struct cel_url u;

    if (!bh_cel_work(e, 1 + arg->n / 2))
        return *arg;
    if (!bh_cel_parse_url(e->arena, arg, &u, &why))
        return bh_cel_error(e, "URL parse error during conversion from string: %s",
                            bh_buf_str(&why));
    return (struct cel_value){.kind = CEL_URL, .url = bh_arena_memdup(e->arena, &u, sizeof(u))};
}

struct cel_value bh_cel_url_part(struct cel_eval *e, const struct cel_value *arg)
{
    const struct cel_url *u = arg->url;
    const char *const part[] = {[URL_SCHEME] = u->scheme,
                                [URL_HOST] = u->host,
                                [URL_HOSTNAME] = u->host,
                                [URL_PORT] = "",
                                [URL_PATH] = u->path};
    const char *s = part[e->how], *colon = strrchr(u->host, ':');
    size_t n = strlen(s);

    if (!bh_cel_work(e, n / 64))
        return cel_str("", 0);
    if (colon && is_port(colon)) {
        if (e->how == URL_PORT)
            return cel_str(colon + 1, strlen(colon + 1));
        if (e->how == URL_HOSTNAME)
            n = (size_t)(colon - s);
    }
    if (e->how == URL_HOSTNAME && n > 1 && s[0] == '[' && s[n - 1] == ']')
        return cel_str(s + 1, n - 2);
    return cel_str(s, n);
}

static const char *query_text(struct cel_eval *e, const char *s, size_t n)
{
    struct bh_buf why BH_CLEANUP(bh_buf_fini) = {0};
    struct parsing p = {.arena = e->arena, .why = &why};
    char *plus = bh_arena_strndup(e->arena, s, n);

    for (char *c = plus; (c = strchr(c, '+'));)
        *c = ' ';
    return unescape(&p, plus, n, ANYWHERE);
}

/* Another value of the key, which *list holds when it is there already. */
static void add_value(struct cel_eval *e, struct cel_value *list, const char *text)
{
    struct cel_value *item = bh_arena_new_array(e->arena, struct cel_value, list->n + 1);

    bh_cel_work(e, list->n);
    for (uint32_t i = 0; i < list->n; i++)
        item[i] = list->list[i];
    item[list->n] = cel_str(text, strlen(text));
    *list = cel_list(item, list->n + 1);
}

/* Pairs that are malformed are left out. */
struct cel_value bh_cel_url_query(struct cel_eval *e, const struct cel_value *arg)
{
    const char *q = arg->url->query, *next;
    size_t most = 1, n;
    struct cel_map *m = bh_arena_new(e->arena, struct cel_map);

    for (const char *c = q; *c; c++)
        most += *c == '&';
    struct cel_entry *entry = bh_arena_new_array(e->arena, struct cel_entry, most);
    *m = (struct cel_map){.entry = entry};
    for (; *q && bh_cel_work(e, 1 + m->n / 16); q = *next ? next + 1 : next) {
        next = q + (n = strcspn(q, "&"));
        size_t key_n = BH_MIN(strcspn(q, "="), n), from = BH_MIN(key_n + 1, n);
        if (n == 0 || memchr(q, ';', n))
            continue;
        const char *key = query_text(e, q, key_n), *value = query_text(e, q + from, n - from);
        if (!key || !value)
            continue;
        struct cel_value name = cel_str(key, strlen(key));
        const struct cel_value *found = bh_cel_map_find(e, m, &name);
        size_t at = m->n;
        for (size_t i = 0; found && i < m->n; i++)
            at = &entry[i].value == found ? i : at;
        if (at == m->n)
            entry[m->n++] = (struct cel_entry){name, cel_list(NULL, 0)};
        add_value(e, &entry[at].value, value);
    }
    return (struct cel_value){.kind = CEL_MAP, .map = m};
}
