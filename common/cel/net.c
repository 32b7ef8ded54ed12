/* SPDX-License-Identifier: Apache-2.0
 *
 * common/cel/net.c - IP addresses and CIDRs
 *
 * Addresses with a zone and IPv4 addresses written as IPv6 are refused.
 * Upstream: k8s.io/apiserver/pkg/cel/library/{ip,cidr}.go, Go's net/netip.
 */
#include "common/cel/cel_int.h"

/* The message of upstream's library, with the rest of the text from where it went wrong. */
struct why {
    const char *text;
    const char *at; /* may be NULL */
};

static struct why parse_v4(const char *s, uint8_t addr[static 4])
{
    unsigned fields = 0, value = 0, n = 0;

    for (const char *p = s; *p; p++) {
        if (*p >= '0' && *p <= '9') {
            if (n == 1 && value == 0)
                return (struct why){"IPv4 field has octet with leading zero", NULL};
            value = value * 10 + (unsigned)(*p - '0');
            n++;
            if (value > 255)
                return (struct why){"IPv4 field has value >255", NULL};
        } else if (*p == '.') {
            if (n == 0 || p[1] == '\0')
                return (struct why){"IPv4 field must have at least one digit", p};
            if (fields == 3)
                return (struct why){"IPv4 address too long", NULL};
            addr[fields++] = (uint8_t)value;
            value = n = 0;
        } else {
            return (struct why){"unexpected character", p};
        }
    }
    if (fields < 3)
        return (struct why){"IPv4 address too short", NULL};
    addr[3] = (uint8_t)value;
    return (struct why){NULL, NULL};
}

/* One group of hexadecimal digits. */
static struct why parse_group(const char *s, unsigned *ret, const char **ret_end)
{
    const char *p = s;
    unsigned v = 0;

    for (; bh_hex_value(*p) >= 0; p++) {
        v = v << 4 | (unsigned)bh_hex_value(*p);
        if (p - s > 3)
            return (struct why){"each group must have 4 or less digits", s};
        if (v > 0xffff)
            return (struct why){"IPv6 field has value >=2^16", s};
    }
    *ret = v;
    *ret_end = p;
    return p == s ? (struct why){"each colon-separated field must have at least one digit", s}
                  : (struct why){NULL, NULL};
}

/* An IPv4 address at the end stands for the last two groups. */
static struct why parse_tail_v4(const char *s, unsigned at, int ellipsis, uint8_t addr[static 16])
{
    if (ellipsis < 0 && at != 12)
        return (struct why){"embedded IPv4 address must replace the final 2 fields of the address",
                            s};
    if (at + 4 > 16)
        return (struct why){"too many hex fields to fit an embedded IPv4 at the end of the address",
                            s};
    return parse_v4(s, addr + at);
}

static struct why parse_v6(const char *s, uint8_t addr[static 16])
{
    int ellipsis = -1;
    unsigned at = 0, v;

    if (s[0] == ':' && s[1] == ':') {
        ellipsis = 0;
        s += 2;
        if (!*s)
            return (struct why){NULL, NULL};
    }
    while (at < 16) {
        const char *end;
        struct why w = parse_group(s, &v, &end);
        if (w.text)
            return w;
        if (*end == '.') {
            w = parse_tail_v4(s, at, ellipsis, addr);
            if (w.text)
                return w;
            at += 4;
            s = "";
            break;
        }
        addr[at++] = (uint8_t)(v >> 8);
        addr[at++] = (uint8_t)v;
        s = end;
        if (!*s)
            break;
        if (*s != ':')
            return (struct why){"unexpected character, want colon", s};
        if (!s[1])
            return (struct why){"colon must be followed by more characters", s};
        s++;
        if (*s == ':') {
            if (ellipsis >= 0)
                return (struct why){"multiple :: in address", s};
            ellipsis = (int)at;
            if (!*++s)
                break;
        }
    }
    if (*s)
        return (struct why){"trailing garbage after address", s};
    if (at == 16)
        return ellipsis < 0
                   ? (struct why){NULL, NULL}
                   : (struct why){"the :: must expand to at least one field of zeros", NULL};
    if (ellipsis < 0)
        return (struct why){"address string too short", NULL};
    memmove(addr + 16 - (at - (unsigned)ellipsis), addr + ellipsis, at - (unsigned)ellipsis);
    memset(addr + ellipsis, 0, 16 - at);
    return (struct why){NULL, NULL};
}

static struct why parse_addr(const char *s, struct cel_net *ret)
{
    size_t kind = strcspn(s, ".:%");

    *ret = (struct cel_net){.n = s[kind] == '.' ? 4 : 16};
    switch (s[kind]) {
    case '.':
        return parse_v4(s, ret->addr);
    case ':':
        return parse_v6(s, ret->addr);
    case '%':
        return (struct why){"missing IPv6 address", NULL};
    default:
        return (struct why){"unable to parse IP", NULL};
    }
}

/* `ParseAddr("x"): why (at "rest")` */
static void why_text(struct bh_buf *b, const char *addr, struct why w)
{
    bh_buf_addf(b, "ParseAddr(\"%s\"): %s", addr, w.text);
    if (w.at)
        bh_buf_addf(b, " (at \"%s\")", w.at);
}

static bool is_mapped(const struct cel_net *a)
{
    static const uint8_t prefix[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

    return a->n == 16 && memcmp(a->addr, prefix, sizeof(prefix)) == 0;
}

/* The text of a string value, cut where no address is that long. */
static bool text_of(const struct cel_value *v, char out[static 128])
{
    if (v->n >= 128 || memchr(v->s, '\0', v->n))
        return false;
    memcpy(out, v->s, v->n);
    out[v->n] = '\0';
    return true;
}

/* What netip says about a prefix; false = it is one. */
static bool refuse_prefix(const char *text, struct cel_net *ret, struct bh_buf *why)
{
    const char *slash = strrchr(text, '/');
    char addr[128];
    struct why w;

    bh_buf_addf(why, "netip.ParsePrefix(\"%s\"): ", text);
    if (!slash) {
        bh_buf_adds(why, "no '/'");
        return true;
    }
    snprintf(addr, sizeof(addr), "%.*s", (int)(slash - text), text);
    w = parse_addr(addr, ret);
    if (strchr(addr, ':') && strchr(addr, '%')) {
        bh_buf_adds(why, "IPv6 zones cannot be present in a prefix");
        return true;
    }
    if (w.text) {
        why_text(why, addr, w);
        return true;
    }
    const char *text_bits = slash + 1;
    size_t digits = strspn(text_bits, "0123456789");
    if (!digits || digits > 3 || text_bits[digits] || (*text_bits == '0' && digits > 1)) {
        bh_buf_addf(why, "bad bits after slash: \"%s\"", text_bits);
        return true;
    }
    unsigned long bits = strtoul(text_bits, NULL, 10);
    ret->bits = (uint8_t)bits;
    if (bits > ret->n * 8u)
        bh_buf_adds(why, "prefix length out of range");
    return bits > ret->n * 8u;
}

static struct cel_value net(struct cel_eval *e, enum cel_kind kind, struct cel_net n)
{
    return (struct cel_value){.kind = kind, .net = bh_arena_memdup(e->arena, &n, sizeof(n))};
}

/* The longest run of at least two groups of zeros; *ret_n is 0 when there is none. */
static unsigned longest_zeros(const uint8_t *a, unsigned *ret_n)
{
    unsigned best = 0;

    *ret_n = 0;
    for (unsigned i = 0; i < 8; i++) {
        unsigned n = 0;
        while (i + n < 8 && a[2 * (i + n)] == 0 && a[2 * (i + n) + 1] == 0)
            n++;
        if (n >= 2 && n > *ret_n) {
            best = i;
            *ret_n = n;
        }
        i += n;
    }
    return best;
}

struct cel_value bh_cel_net_string(struct cel_eval *e, const struct cel_value *v)
{
    const uint8_t *a = v->net->addr;
    struct bh_buf b = {0};

    if (v->net->n == 4)
        bh_buf_addf(&b, "%u.%u.%u.%u", a[0], a[1], a[2], a[3]);
    else {
        unsigned run, from = longest_zeros(a, &run);
        for (unsigned i = 0; i < 8; i++) {
            if (run && i == from) {
                bh_buf_adds(&b, "::");
                i += run - 1;
                continue;
            }
            bh_buf_addf(&b, "%s%x", i && !(run && i == from + run) ? ":" : "",
                        (unsigned)(a[2 * i] << 8 | a[2 * i + 1]));
        }
    }
    if (v->kind == CEL_CIDR)
        bh_buf_addf(&b, "/%u", v->net->bits);
    return bh_cel_take_text(e, &b);
}

/* ---- addresses ---- */

static const char *zone_of(const char *addr)
{
    return strchr(addr, ':') ? strchr(addr, '%') : NULL;
}

bool bh_cel_parse_ip(const char *text, struct cel_net *ret, struct bh_buf *why)
{
    const char *zone = zone_of(text);
    char addr[128];

    snprintf(addr, sizeof(addr), "%.*s", (int)(zone ? (size_t)(zone - text) : strlen(text)), text);
    struct why w = parse_addr(addr, ret);
    if (zone && !w.text && !zone[1])
        w.text = "zone must be a non-empty string";
    if (w.text)
        why_text(why, text, w);
    return !w.text;
}

struct cel_value bh_cel_ip(struct cel_eval *e, const struct cel_value *arg)
{
    struct bh_buf why BH_CLEANUP(bh_buf_fini) = {0};
    char text[128];
    struct cel_net n;

    if (!text_of(arg, text))
        return bh_cel_error(e, "IP Address parse error during conversion from string: "
                               "unable to parse IP");
    if (!bh_cel_parse_ip(text, &n, &why))
        return bh_cel_error(e, "IP Address \"%s\" parse error during conversion from string: %s",
                            text, bh_buf_str(&why));
    if (zone_of(text))
        return bh_cel_error(e, "IP address \"%s\" with zone value is not allowed", text);
    if (is_mapped(&n))
        return bh_cel_error(e, "IPv4-mapped IPv6 address \"%s\" is not allowed", text);
    return net(e, CEL_IP, n);
}

struct cel_value bh_cel_ip_is_canonical(struct cel_eval *e, const struct cel_value *arg)
{
    struct cel_value v = bh_cel_ip(e, arg), text;

    if (v.kind == CEL_ERROR)
        return v;
    text = bh_cel_net_string(e, &v);
    return cel_bool(bh_cel_equal(e, &text, arg));
}

struct cel_value bh_cel_family(struct cel_eval *e BH_UNUSED, const struct cel_value *arg)
{
    return cel_int(arg->net->n == 4 ? 4 : 6);
}

static bool is_zero(const uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (p[i])
            return false;
    return true;
}

static bool net_is(const struct cel_net *n, int what)
{
    const uint8_t *a = n->addr;
    bool v4 = n->n == 4;

    switch (what) {
    case NET_UNSPECIFIED:
        return is_zero(a, n->n);
    case NET_LOOPBACK:
        return v4 ? a[0] == 127 : is_zero(a, 15) && a[15] == 1;
    case NET_LINK_LOCAL_MULTICAST:
        return v4 ? a[0] == 224 && a[1] == 0 && a[2] == 0 : a[0] == 0xff && (a[1] & 0x0f) == 0x02;
    case NET_LINK_LOCAL_UNICAST:
        return v4 ? a[0] == 169 && a[1] == 254 : a[0] == 0xfe && (a[1] & 0xc0) == 0x80;
    default: /* NET_GLOBAL_UNICAST: none of the others, no broadcast, no multicast */
        return !(v4 && memcmp(a, "\xff\xff\xff\xff", 4) == 0) &&
               !(v4 ? (a[0] & 0xf0) == 0xe0 : a[0] == 0xff) && !net_is(n, NET_UNSPECIFIED) &&
               !net_is(n, NET_LOOPBACK) && !net_is(n, NET_LINK_LOCAL_UNICAST);
    }
}

struct cel_value bh_cel_net_is(struct cel_eval *e, const struct cel_value *arg)
{
    return cel_bool(net_is(arg->net, e->how));
}

/* ---- prefixes ---- */

/* Upstream says "network address parse error ..." twice, at both places where it can fail. */
struct cel_value bh_cel_cidr(struct cel_eval *e, const struct cel_value *arg)
{
#define FAILED "network address parse error during conversion from string: "
    struct bh_buf why BH_CLEANUP(bh_buf_fini) = {0};
    char text[128];
    struct cel_net n;

    if (!text_of(arg, text))
        return bh_cel_error(e, FAILED FAILED "no '/'");
    if (refuse_prefix(text, &n, &why))
        return bh_cel_error(e, FAILED FAILED "%s", bh_buf_str(&why));
    if (is_mapped(&n))
        return bh_cel_error(e, FAILED "IPv4-mapped IPv6 address \"%s\" is not allowed", text);
    return net(e, CEL_CIDR, n);
#undef FAILED
}

static bool same_prefix(const struct cel_net *a, const struct cel_net *b, unsigned bits)
{
    unsigned whole = bits / 8, rest = bits % 8;

    if (a->n != b->n || memcmp(a->addr, b->addr, whole) != 0)
        return false;
    return rest == 0 || ((a->addr[whole] ^ b->addr[whole]) >> (8 - rest)) == 0;
}

struct cel_value bh_cel_contains_ip(struct cel_eval *e, const struct cel_value *arg)
{
    struct cel_value ip = arg[1].kind == CEL_STRING ? bh_cel_ip(e, &arg[1]) : arg[1];

    if (ip.kind == CEL_ERROR)
        return bh_cel_error(e, "no such overload");
    return cel_bool(same_prefix(arg->net, ip.net, arg->net->bits));
}

struct cel_value bh_cel_contains_cidr(struct cel_eval *e, const struct cel_value *arg)
{
    struct cel_value other = arg[1].kind == CEL_STRING ? bh_cel_cidr(e, &arg[1]) : arg[1];

    if (other.kind == CEL_ERROR)
        return other;
    return cel_bool(arg->net->bits <= other.net->bits &&
                    same_prefix(arg->net, other.net, arg->net->bits));
}

struct cel_value bh_cel_prefix_length(struct cel_eval *e BH_UNUSED, const struct cel_value *arg)
{
    return cel_int(arg->net->bits);
}

struct cel_value bh_cel_masked(struct cel_eval *e, const struct cel_value *arg)
{
    struct cel_net n = *arg->net;

    for (unsigned i = 0; i < n.n; i++) {
        unsigned left = n.bits > i * 8 ? BH_MIN(n.bits - i * 8, 8u) : 0;
        n.addr[i] &= (uint8_t)(0xff00 >> left);
    }
    return net(e, CEL_CIDR, n);
}

struct cel_value bh_cel_cidr_ip(struct cel_eval *e, const struct cel_value *arg)
{
    struct cel_net n = *arg->net;

    n.bits = 0;
    return net(e, CEL_IP, n);
}
