/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/server/error.c - refusals: filling them, and the Status object a client sees
 *
 * Upstream: apimachinery/pkg/api/errors/errors.go, pkg/util/validation/field/errors.go;
 * differences: texts are cut at fixed sizes.
 */
#include "simulator/server/sim_int.h"

#include <stdio.h>

int bh_sim_fail(struct bh_sim_error *e, int code, const char *reason, const char *fmt, ...)
{
    if (e->code)
        return e->code;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(e->message, sizeof(e->message), fmt, ap);
    va_end(ap);
    e->code = code;
    snprintf(e->reason, sizeof(e->reason), "%s", reason);
    return code;
}

static const char *cause_type(const char *kind)
{
    static const struct {
        const char *kind, *type;
    } table[] = {
        {"Required value", "FieldValueRequired"},
        {"Invalid value", "FieldValueInvalid"},
        {"Unsupported value", "FieldValueNotSupported"},
        {"Forbidden", "FieldValueForbidden"},
        {"Duplicate value", "FieldValueDuplicate"},
        {"Not found", "FieldValueNotFound"},
        {"Too long", "FieldValueTooLong"},
        {"Too many", "FieldValueTooMany"},
    };
    for (size_t i = 0; i < BH_ARRAY_LEN(table); i++) {
        if (bh_streq(table[i].kind, kind))
            return table[i].type;
    }
    return "FieldValueInvalid";
}

void bh_sim_field_error(struct bh_sim_error *e, const char *field, const char *kind,
                        const char *value, const char *fmt, ...)
{
    if (e->n_causes == BH_SIM_MAX_CAUSES)
        return;
    struct bh_sim_cause *c = &e->causes[e->n_causes++];
    char text[sizeof(c->message)];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    snprintf(c->type, sizeof(c->type), "%s", cause_type(kind));
    snprintf(c->field, sizeof(c->field), "%s", field);
    struct bh_buf b = {0};
    bh_buf_adds(&b, kind);
    if (value)
        bh_buf_addf(&b, ": %s", value);
    if (*text)
        bh_buf_addf(&b, ": %s", text);
    snprintf(c->message, sizeof(c->message), "%s", bh_buf_str(&b));
    bh_buf_fini(&b);
}

int bh_sim_error_close(struct bh_sim_error *e, const struct bh_sim_type *t, const char *name)
{
    if (e->code || !e->n_causes)
        return e->code;
    struct bh_buf b = {0};
    bh_buf_addf(&b, "%s%s%s \"%s\" is invalid: %s", t->kind, *t->group ? "." : "", t->group, name,
                e->n_causes > 1 ? "[" : "");
    for (unsigned i = 0; i < e->n_causes; i++)
        bh_buf_addf(&b, "%s%s: %s", i ? ", " : "", e->causes[i].field, e->causes[i].message);
    if (e->n_causes > 1)
        bh_buf_addc(&b, ']');
    snprintf(e->details_group, sizeof(e->details_group), "%s", t->group);
    snprintf(e->details_kind, sizeof(e->details_kind), "%s", t->kind);
    snprintf(e->details_name, sizeof(e->details_name), "%s", name);
    bh_sim_fail(e, 422, "Invalid", "%s", bh_buf_str(&b));
    bh_buf_fini(&b);
    return e->code;
}

static void set_if(struct bh_arena *a, struct bh_json *obj, const char *key, const char *v)
{
    if (*v)
        bh_json_set_str(a, obj, key, v);
}

struct bh_json *bh_sim_status_tree(struct bh_arena *a, const struct bh_sim_error *e)
{
    struct bh_json *o = bh_json_new(a, BH_JSON_OBJECT);
    bh_json_set_str(a, o, "kind", "Status");
    bh_json_set_str(a, o, "apiVersion", "v1");
    bh_json_obj_at(a, o, "metadata");
    bh_json_set_str(a, o, "status", e->code >= 200 && e->code < 300 ? "Success" : "Failure");
    set_if(a, o, "message", e->message);
    set_if(a, o, "reason", e->reason);
    if (*e->details_kind || *e->details_name || e->n_causes || e->retry_after_s) {
        struct bh_json *d = bh_json_obj_at(a, o, "details");
        set_if(a, d, "name", e->details_name);
        set_if(a, d, "group", e->details_group);
        set_if(a, d, "kind", e->details_kind);
        set_if(a, d, "uid", e->details_uid);
        struct bh_json *l = NULL;
        for (unsigned i = 0; i < e->n_causes; i++) {
            if (!l)
                l = bh_json_set(a, d, "causes", bh_json_new(a, BH_JSON_ARRAY));
            struct bh_json *c = bh_json_new(a, BH_JSON_OBJECT);
            set_if(a, c, "reason", e->causes[i].type);
            set_if(a, c, "message", e->causes[i].message);
            set_if(a, c, "field", e->causes[i].field);
            bh_json_push(l, c);
        }
        if (e->retry_after_s)
            bh_json_set_i64(a, d, "retryAfterSeconds", e->retry_after_s);
    }
    bh_json_set_i64(a, o, "code", e->code);
    return o;
}
