/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/schema/check.c - members that do not exist, stand twice or have the wrong JSON type
 *
 * Runs in: the simulator's loop, for every body. The path is written down only when there is
 * something to say: it is kept as a chain of frames on the stack.
 * Upstream: apimachinery/pkg/runtime/serializer/json (strict decoding), sigs.k8s.io/json (v1.36); differences: a time that has no time zone is
 * shown as one that has no year.
 */
#include "simulator/schema/schema.h"

#include "common/k8s/codec.h"
#include "common/k8s/quantity.h"

#include <errno.h>
#include <stdarg.h>

#define NEAR_EDITS 3u
#define DEEP_MAX   4

struct frame {
    const struct frame *up;
    const char *name; /* NULL: index */
    size_t index;
    const struct bh_oas_type *in; /* whose member it is; NULL: an entry of a map or a list */
};

static void put_path(struct bh_buf *b, const struct frame *f)
{
    if (!f)
        return;
    put_path(b, f->up);
    if (!f->name)
        bh_buf_addf(b, "[%zu]", f->index);
    else
        bh_buf_addf(b, "%s%s", b->n ? "." : "", f->name);
}

void bh_oas_unknown(struct bh_oas_report *rep, const char *what, const char *path, const char *name)
{
    if (rep->n++ < BH_OAS_NAMED)
        bh_buf_addf(&rep->unknown, "%s field \"%.200s%s%.100s\"\n", what, path, *path ? "." : "",
                    name);
}

/* ---- which field was meant ------------------------------------------------------------------- */

/* A field of that name somewhere inside of t, on a way without lists: its path into out. */
static bool find_inside(const struct bh_oas_type *t, const char *name, int deep,
                        char out[static 96])
{
    const struct bh_oas_field *f = bh_oas_field(t, name);

    if (f) {
        snprintf(out, 96, "%.95s", name);
        return true;
    }
    for (size_t i = 0; deep > 1 && i < t->n; i++) {
        char rest[96];
        f = &t->fields[i];
        if (!f->type || *f->form || !find_inside(f->type, name, deep - 1, rest))
            continue;
        snprintf(out, 96, "%.40s.%.54s", f->name, rest);
        return true;
    }
    return false;
}

/* A slip of the finger in this object, else the same name at another place of the whole one. */
static void find_meant(const struct bh_oas_report *rep, const struct bh_oas_type *t,
                       const char *name, char out[static 96])
{
    unsigned best = NEAR_EDITS + 1;

    *out = '\0';
    for (size_t i = 0; i < t->n; i++) {
        unsigned n = bh_edits(t->fields[i].name, name);
        if (n >= best || 3 * n > strlen(name))
            continue;
        best = n;
        snprintf(out, 96, "%.95s", t->fields[i].name);
    }
    for (int deep = 2; !*out && deep <= DEEP_MAX; deep++)
        if (!find_inside(t, name, deep, out))
            (void)find_inside(rep->whole, name, deep, out);
}

static void named(struct bh_oas_report *rep, const char *what, const struct frame *at,
                  const char *name)
{
    struct bh_buf path = {0};
    put_path(&path, at);
    bh_oas_unknown(rep, what, bh_buf_str(&path), name);
    bh_buf_fini(&path);
}

/* m: a member that t does not have. */
static void unknown(struct bh_oas_report *rep, const struct bh_oas_type *t, const struct frame *at,
                    const struct bh_json *m)
{
    if (rep->n < BH_OAS_NAMED) {
        rep->at[rep->n].line = m->line;
        find_meant(rep, t, m->key.p, rep->at[rep->n].mean);
    }
    named(rep, "unknown", at, m->key.p);
}

/* The Go struct that is embedded in t and has this member; "" = t has it itself. */
static const char *embedded(const struct bh_oas_type *t, const char *member)
{
    static const struct {
        const char *type, *own, *embedded;
    } all[] = {
        {"Volume", "name", "VolumeSource."},
        {"Probe",
         "failureThreshold initialDelaySeconds periodSeconds successThreshold "
         "terminationGracePeriodSeconds timeoutSeconds",
         "ProbeHandler."},
        {"EphemeralContainer", "targetContainerName", "EphemeralContainerCommon."},
        {"DeviceClaimConfiguration", "requests", "DeviceConfiguration."},
        {"DeviceClassConfiguration", "", "DeviceConfiguration."},
        {"PersistentVolumeSpec",
         "accessModes capacity claimRef mountOptions nodeAffinity persistentVolumeReclaimPolicy "
         "storageClassName volumeAttributesClassName volumeMode",
         "PersistentVolumeSource."},
    };

    for (size_t i = 0; i < BH_ARRAY_LEN(all); i++)
        if (bh_streq(t->name, all[i].type) && bh_word_at(all[i].own, member) < 0)
            return all[i].embedded;
    return "";
}

/* As encoding/json counts: members of structs only. */
static void put_go_path(struct bh_buf *b, const struct frame *f)
{
    if (!f)
        return;
    put_go_path(b, f->up);
    if (f->in)
        bh_buf_addf(b, ".%s%s", embedded(f->in, f->name), f->name);
}

static void put_go_type(struct bh_buf *b, const struct bh_oas_field *f, const char *form,
                        const struct bh_oas_type *in)
{
    static const struct {
        char leaf;
        const char *name;
    } leaves[] = {{'b', "bool"},  {'i', "int32"},   {'l', "int64"}, {'d', "float64"},
                  {'x', "int32"}, {'y', "[]uint8"}, {0, "string"}};
    size_t i = 0;

    if (*form == '{' && f->leaf == 'q') {
        bh_buf_adds(b, "v1.ResourceList");
    } else if (*form) {
        bh_buf_adds(b, *form == '[' ? "[]" : "map[string]");
        put_go_type(b, f, form + 1, in);
    } else if (f->type) {
        bh_buf_addf(b, "%s.%s", strrchr(f->type->package, '.') + 1, f->type->name);
    } else if (*f->go) {
        bh_buf_addf(b, "%s%s%s", strchr(f->go, '.') ? "" : strrchr(in->package, '.') + 1,
                    strchr(f->go, '.') ? "" : ".", f->go);
    } else {
        while (leaves[i].leaf && leaves[i].leaf != f->leaf)
            i++;
        bh_buf_adds(b, leaves[i].name);
    }
}

static const char *kind_of(const struct bh_json *v)
{
    static const char *const names[] = {"null", "bool", "number", "string", "array", "object"};

    return names[v->type];
}

static void mismatch(struct bh_oas_report *rep, const struct frame *at, const struct bh_json *v,
                     const struct bh_oas_field *f, const char *form)
{
    const struct frame *member = at;
    struct bh_buf b = {0};

    while (member && !member->in)
        member = member->up;
    if (*rep->mismatch || !member)
        return;
    bh_buf_addf(&b, "json: cannot unmarshal %s", kind_of(v));
    if (v->type == BH_JSON_NUMBER && !*form && f->leaf && strchr("ilx", f->leaf))
        bh_buf_addf(&b, " %s", v->s.p);
    bh_buf_addf(&b, " into Go struct field %s", member->in->name);
    put_go_path(&b, at);
    bh_buf_adds(&b, " of type ");
    put_go_type(&b, f, form, member->in);
    snprintf(rep->mismatch, sizeof(rep->mismatch), "%s", bh_buf_str(&b));
    bh_buf_fini(&b);
}

static void refuse_text(struct bh_oas_report *rep, const char *fmt, ...) BH_PRINTF(2, 3);
static void refuse_text(struct bh_oas_report *rep, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    if (!*rep->mismatch)
        vsnprintf(rep->mismatch, sizeof(rep->mismatch), fmt, ap);
    va_end(ap);
}

/* Go's layout, up to the first element that does not fit. */
static void check_time(const struct bh_json *v, bool micro, struct bh_oas_report *rep)
{
    static const char *const parts[] = {"2006", "-", "01", "-", "02", "T",
                                        "15",   ":", "04", ":", "05"};
    const char *p = v->s.p;
    int64_t s;
    int32_t ns;

    if (v->s.n && !bh_time_parse(v->s.p, v->s.n, &s, &ns))
        return;
    for (size_t i = 0; i < BH_ARRAY_LEN(parts); i++) {
        size_t n = strlen(parts[i]);
        bool number = n > 1;
        if (number ? strspn(p, "0123456789") < n : *p != *parts[i]) {
            refuse_text(rep,
                        "parsing time \"%.60s\" as \"2006-01-02T15:04:05%sZ07:00\": cannot parse "
                        "\"%.60s\" as \"%s\"",
                        v->s.p, micro ? ".000000" : "", p, parts[i]);
            return;
        }
        p += n;
    }
    refuse_text(rep,
                "parsing time \"%.60s\" as \"2006-01-02T15:04:05%sZ07:00\": cannot parse \"%.60s\" "
                "as \"Z07:00\"",
                v->s.p, micro ? ".000000" : "", p);
}

static const char *fault_of_quantity(const struct bh_json *v)
{
    const char *p = v->type == BH_JSON_STRING || v->type == BH_JSON_NUMBER ? v->s.p : "";
    p += *p == '+' || *p == '-';
    size_t digits = strspn(p, "0123456789.");

    p += digits;
    p += strspn(p, "eEinumkKMGTP");
    p += *p == '+' || *p == '-';
    p += strspn(p, "0123456789");
    return digits && !*p ? "unable to parse quantity's suffix"
                         : "quantities must match the regular expression "
                           "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
}

static void check_base64(const struct bh_json *v, struct bh_oas_report *rep)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    size_t n = strspn(v->s.p, digits), pads = strspn(v->s.p + n, "=");

    if (n + pads != v->s.n || pads > 2 || (n + pads) % 4)
        refuse_text(rep, "illegal base64 data at input byte %zu",
                    n + pads != v->s.n || !n ? n : (n + pads) / 4 * 4);
}

static void check_leaf(const struct bh_oas_field *f, const struct bh_json *v,
                       const struct frame *at, struct bh_oas_report *rep)
{
    bool text = v->type == BH_JSON_STRING, number = v->type == BH_JSON_NUMBER, fits = true;
    bh_nano ignored;
    int64_t n;

    switch (f->leaf) {
    case 's':
    case 'y':
    case 't':
    case 'm':
        fits = text;
        if (text && f->leaf == 'y')
            check_base64(v, rep);
        else if (text && f->leaf != 's')
            check_time(v, f->leaf == 'm', rep);
        break;
    case 'b':
        fits = v->type == BH_JSON_BOOL;
        break;
    case 'i':
    case 'l':
    case 'x':
        fits = (f->leaf == 'x' && text) ||
               (bh_json_i64(v, &n) && (f->leaf == 'l' || (n >= INT32_MIN && n <= INT32_MAX)));
        break;
    case 'd':
        fits = number;
        break;
    case 'q':
        if ((!text && !number) || bh_quantity_parse(v->s.p, v->s.n, &ignored) != 0)
            refuse_text(rep, "%s", fault_of_quantity(v));
        break;
    default: /* anything */
        rep->careful = true;
        break;
    }
    if (!fits)
        mismatch(rep, at, v, f, "");
}

static void check_object(const struct bh_oas_field *f, const struct bh_oas_type *t,
                         struct bh_json *v, const struct frame *at, struct bh_oas_report *rep);

/* An element of a list or a map that is null: what decoding it into Go's type leaves, so that whoever reads a list
 * of texts finds texts. Times and "anything" are null there, too. */
static void fill_null(const struct bh_oas_field *f, const char *form, struct bh_json *v)
{
    if (*form || f->type) {
        v->type = *form == '[' ? BH_JSON_ARRAY : BH_JSON_OBJECT;
        v->c.first = v->c.last = NULL;
        v->c.n = 0;
    } else if (strchr("sy", f->leaf)) {
        v->type = BH_JSON_STRING;
        v->s = BH_STR("");
    } else if (f->leaf == 'q') {
        v->type = BH_JSON_STRING;
        v->s = BH_STR("0");
    } else if (strchr("ildx", f->leaf)) {
        v->type = BH_JSON_NUMBER;
        v->s = BH_STR("0");
    } else if (f->leaf == 'b') {
        v->type = BH_JSON_BOOL;
        v->b = false;
    }
}

static void check_value(const struct bh_oas_field *f, const char *form, struct bh_json *v,
                        const struct frame *at, struct bh_oas_report *rep)
{
    struct frame here = {.up = at};
    if (v->type == BH_JSON_NULL)
        return;
    if (!*form) {
        if (f->type)
            check_object(f, f->type, v, at, rep);
        else
            check_leaf(f, v, at, rep);
        return;
    }
    if (v->type != (*form == '[' ? BH_JSON_ARRAY : BH_JSON_OBJECT)) {
        mismatch(rep, at, v, f, form);
        return;
    }
    bh_json_each(m, v) {
        here.name = *form == '{' ? m->key.p : NULL;
        if (m->type == BH_JSON_NULL)
            fill_null(f, form + 1, m);
        check_value(f, form + 1, m, &here, rep);
        here.index++;
    }
}

/* f: NULL when it is the whole. */
static void check_object(const struct bh_oas_field *f, const struct bh_oas_type *t,
                         struct bh_json *v, const struct frame *at, struct bh_oas_report *rep)
{
    if (v->type == BH_JSON_NULL)
        return;
    if (v->type != BH_JSON_OBJECT) {
        if (f)
            mismatch(rep, at, v, f, "");
        else
            refuse_text(rep, "json: cannot unmarshal %s into Go value of type %s.%s", kind_of(v),
                        strrchr(t->package, '.') + 1, t->name);
        return;
    }
    for (struct bh_json *m = v->c.first, *next; m; m = next) {
        const struct bh_oas_field *own = bh_oas_field(t, m->key.p);
        struct frame here = {.up = at, .name = m->key.p, .in = t};
        next = m->next;
        if (own) {
            check_value(own, own->form, m, &here, rep);
        } else {
            unknown(rep, t, at, m);
            bh_json_remove(v, m);
        }
    }
}

void bh_oas_check(const struct bh_oas_type *t, struct bh_json *obj, const char *at,
                  struct bh_oas_report *rep)
{
    struct frame here = {.name = at};
    rep->whole = t;
    check_object(NULL, t, obj, at ? &here : NULL, rep);
}

/* ---- manifests that no request brings -------------------------------------------------------- */

void bh_oas_sentence(const struct bh_oas_report *rep, unsigned i, struct bh_buf *out)
{
    const char *p = rep->unknown.p, *mean = rep->at[i].mean;

    for (; i; i--)
        p = strchr(p, '\n') + 1;
    bh_buf_add(out, p, strcspn(p, "\n"));
    if (*mean)
        bh_buf_addf(out, " (did you mean %s?)", mean);
}

void bh_oas_check_whole(struct bh_json *obj, struct bh_oas_report *rep)
{
    const struct bh_sim_type *t =
        bh_sim_type_of_kind(bh_json_get_text(obj, "apiVersion"), bh_json_get_text(obj, "kind"));
    const struct bh_oas_type *root = t ? bh_oas_root(t) : NULL;

    if (root)
        bh_oas_check(root, obj, NULL, rep);
}

int bh_oas_refuse_unknown(struct bh_json *obj, uint32_t line, struct bh_err *err)
{
    BH_CLEANUP(bh_buf_fini) struct bh_buf all = {0};
    struct bh_oas_report rep = {0};

    bh_oas_check_whole(obj, &rep);
    for (unsigned i = 0; i < BH_MIN(rep.n, BH_OAS_NAMED); i++) {
        bh_buf_adds(&all, i ? ", " : "");
        if (line && rep.at[i].line)
            bh_buf_addf(&all, "line %u: ", line + rep.at[i].line - obj->line);
        bh_oas_sentence(&rep, i, &all);
    }
    bh_buf_fini(&rep.unknown);
    return rep.n ? bh_err_set(err, -EINVAL, "%s", bh_buf_str(&all)) : 0;
}

/* ---- members that stand twice ---------------------------------------------------------------- */

static void repeats(const struct bh_json *v, const struct frame *at, struct bh_oas_report *rep)
{
    struct frame here = {.up = at};
    bh_json_each(m, v) {
        here.name = m->key.p; /* NULL: of a list */
        for (const struct bh_json *o = v->c.first; here.name && o != m && rep->n < BH_OAS_NAMED;
             o = o->next) {
            if (!o->key.p || !bh_streq(o->key.p, here.name))
                continue;
            named(rep, "duplicate", at, here.name);
            break;
        }
        repeats(m, &here, rep);
        here.index++;
    }
}

void bh_oas_repeats(const struct bh_json *v, struct bh_oas_report *rep)
{
    repeats(v, NULL, rep);
}
