/* SPDX-License-Identifier: Apache-2.0
 *
 * common/cel/named.c - formats with a name: format.dns1123Label().validate(text)
 *
 * Upstream: k8s.io/apiserver/pkg/cel/library/format.go; a text that is too long and malformed, too,
 * has only the first of the two errors here.
 */
#include "common/base/base64.h"
#include "common/cel/cel_int.h"
#include "common/k8s/quantity.h"
#include "common/k8s/selector.h"
#include "common/k8s/syntax.h"
#include <ctype.h>

typedef bool fits_fn(struct cel_eval *e, const char *s, size_t n);

static bool is_label(struct cel_eval *e BH_UNUSED, const char *s, size_t n)
{
    return bh_valid_dns1123_label(s, n);
}

static bool is_subdomain(struct cel_eval *e BH_UNUSED, const char *s, size_t n)
{
    return bh_valid_dns1123_subdomain(s, n);
}

static bool is_dns1035(struct cel_eval *e BH_UNUSED, const char *s, size_t n)
{
    return bh_valid_dns1123_label(s, n) && !bh_is_digit(*s);
}

static bool is_label_value(struct cel_eval *e BH_UNUSED, const char *s, size_t n)
{
    return bh_valid_label_value(s, n);
}

static bool is_uuid(struct cel_eval *e BH_UNUSED, const char *s, size_t n BH_UNUSED)
{
    for (unsigned digits = 0; digits < 32; digits++, s++) {
        if (*s == '-' && (digits == 8 || digits == 12 || digits == 16 || digits == 20))
            s++;
        if (bh_hex_value(*s) < 0)
            return false;
    }
    return !*s;
}

static bool is_base64(struct cel_eval *e, const char *s, size_t n)
{
    size_t bytes;

    return n && strcspn(s, "\r\n\t ") == n &&
           bh_base64_decode(s, n, bh_arena_alloc(e->arena, BH_BASE64_ROOM(n) + 1), &bytes) == 0;
}

static bool is_datetime(struct cel_eval *e, const char *s, size_t n)
{
    char *text = bh_arena_strndup(e->arena, s, n);
    int64_t ns;

    for (char *c = text; *c; c++)
        *c = (char)toupper((unsigned char)*c);
    return bh_time_parse_ns(text, &ns) != -EINVAL;
}

static bool is_date(struct cel_eval *e, const char *s, size_t n)
{
    return n == 10 && is_datetime(e, bh_arena_printf(e->arena, "%sT00:00:00Z", s), n + 10);
}

#define DNS1123   "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
#define ALNUM_END "and must start and end with an alphanumeric character (e.g. "
#define LABEL                                                                                      \
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or "            \
    "'-', " ALNUM_END "'my-name',  or '123-abc', regex used for validation is '" DNS1123 "')"
#define SUBDOMAIN                                                                                  \
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "   \
    "'.', " ALNUM_END "'example.com', regex used for validation is '" DNS1123 "(\\." DNS1123       \
    ")*')"
#define DNS1035                                                                                    \
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an "   \
    "alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or "           \
    "'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"
#define LABEL_VALUE                                                                                \
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or "    \
    "'.', " ALNUM_END "'MyValue',  or 'my_value',  or '12345', regex used for validation is "      \
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"

static const struct named {
    const char *name;
    fits_fn *fits; /* NULL: the two whose errors are not known ahead */
    size_t most;   /* bytes; 0: any number */
    const char *why;
    uint8_t price; /* of a regular expression as long as upstream takes it for */
    bool prefix;   /* what a name may begin with: one dash at its end is no error */
} formats[] = {
    {"dns1123Label", is_label, 63, LABEL, 8, false},
    {"dns1123Subdomain", is_subdomain, 253, SUBDOMAIN, 15, false},
    {"dns1035Label", is_dns1035, 63, DNS1035, 8, false},
    {"qualifiedName", NULL, 0, NULL, 15, false},
    {"dns1123LabelPrefix", is_label, 63, LABEL, 8, true},
    {"dns1123SubdomainPrefix", is_subdomain, 253, SUBDOMAIN, 15, true},
    {"dns1035LabelPrefix", is_dns1035, 63, DNS1035, 8, true},
    {"labelValue", is_label_value, 63, LABEL_VALUE, 10, false},
    {"uri", NULL, 0, NULL, 0, false},
    {"uuid", is_uuid, 0, "does not match the UUID format", 18, false},
    {"byte", is_base64, 0, "invalid base64", 21, false},
    {"date", is_date, 0, "invalid date", 18, false},
    {"datetime", is_datetime, 0, "invalid datetime", 18, false},
};

static const struct named *known(const char *name, size_t n)
{
    for (size_t i = 0; i < BH_ARRAY_LEN(formats); i++)
        if (bh_str_eqc((struct bh_str){name, n}, formats[i].name))
            return &formats[i];
    return NULL;
}

static struct cel_value named(const struct named *f)
{
    return (struct cel_value){.kind = CEL_FORMAT, .i = f - formats};
}

/* format.uri(): the name stands behind the dot of the function's own. */
struct cel_value bh_cel_format_of(struct cel_eval *e, const struct cel_value *arg BH_UNUSED)
{
    const char *name = strchr(e->node->call.func->name, '.') + 1;

    return named(known(name, strlen(name)));
}

struct cel_value bh_cel_format_named(struct cel_eval *e, const struct cel_value *arg)
{
    const struct named *f = known(arg->s, arg->n);
    struct cel_value v = named(f ? f : formats);

    return cel_optional(f ? bh_arena_memdup(e->arena, &v, sizeof(v)) : NULL);
}

/* In units, of a text of this length. */
uint64_t bh_cel_validate_cost(int64_t format, size_t size)
{
    uint64_t price = formats[format].price;

    return bh_cel_tenths(1.0 + (double)size) * (price ? price : 276);
}

/* Fails with the errors in *why, "; " between them. */
static bool refuses(struct cel_eval *e, const struct named *f, const struct cel_value *text,
                    struct bh_buf *why)
{
    const char *s = bh_arena_strndup(e->arena, text->s, text->n);
    size_t n = text->n;
    struct cel_url u;

    if (bh_streq(f->name, "uri"))
        return !bh_cel_parse_url(e->arena, text, &u, why);
    if (!f->fits)
        return bh_label_key_why(why, s, n);
    if (f->prefix && n > 1 && s[n - 1] == '-') {
        s = bh_arena_printf(e->arena, "%.*sa", (int)n - 2, s);
        n--;
    }
    if (f->most && n > f->most)
        bh_buf_addf(why, "must be no more than %zu characters", f->most);
    else if (strlen(s) < n || !f->fits(e, s, n))
        bh_buf_adds(why, f->fits == is_label && bh_valid_dns1123_subdomain(s, n)
                             ? "must not contain dots"
                             : f->why);
    return why->n > 0;
}

struct cel_value bh_cel_validate(struct cel_eval *e, const struct cel_value *arg)
{
    struct bh_buf why BH_CLEANUP(bh_buf_fini) = {0};
    struct cel_value item[4], list;
    size_t n = 0, len;

    if (!bh_cel_work(e, 1 + arg[1].n / 2) || !refuses(e, &formats[arg->i], &arg[1], &why))
        return cel_optional(NULL);
    for (const char *s = bh_buf_str(&why), *end; *s && n < BH_ARRAY_LEN(item); s = end) {
        end = bh_streq(formats[arg->i].name, "qualifiedName") ? strstr(s, "; ") : NULL;
        len = end ? (size_t)(end - s) : strlen(s);
        item[n++] = cel_str(bh_arena_strndup(e->arena, s, len), len);
        end = end ? end + 2 : s + len;
    }
    list = cel_list(bh_arena_memdup(e->arena, item, n * sizeof(*item)), n);
    return cel_optional(bh_arena_memdup(e->arena, &list, sizeof(list)));
}
