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

void bh_sim_field_error(struct bh_sim_error *e, const char *field, const char *kind,
                        const char *value, const char *fmt, ...)
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
        {"Internal error", "InternalError"},
    };
    struct bh_buf b = {0};
    va_list ap;
    const char *type = "FieldValueInvalid";

    for (size_t i = 0; i < BH_ARRAY_LEN(table); i++)
        if (bh_streq(table[i].kind, kind))
            type = table[i].type;
    bh_buf_adds(&b, kind);
    if (value)
        bh_buf_addf(&b, ": %s", value);
    size_t n = b.n;
    bh_buf_adds(&b, ": ");
    va_start(ap, fmt);
    bh_buf_vaddf(&b, fmt, ap);
    va_end(ap);
    if (b.n == n + 2)
        b.p[n] = '\0';
    bh_sim_error_cause(e, type, field, bh_buf_str(&b));
    bh_buf_fini(&b);
}

static uint16_t keep_text(struct bh_sim_error *e, const char *s)
{
    uint16_t at = e->n_texts;
    size_t n = BH_MIN(strlen(s), sizeof(e->texts) - 2 - at);

    memcpy(e->texts + at, s, n);
    e->texts[at + n] = '\0';
    e->n_texts = (uint16_t)(at + n + 1);
    return at;
}

void bh_sim_error_cause(struct bh_sim_error *e, const char *type, const char *field,
                        const char *message)
{
    if (e->n_causes == BH_SIM_MAX_CAUSES || (size_t)e->n_texts + 4 > sizeof(e->texts))
        return;
    struct bh_sim_cause *c = &e->causes[e->n_causes++];
    snprintf(c->type, sizeof(c->type), "%s", type);
    c->field = keep_text(e, field);
    c->message = keep_text(e, message);
}

void bh_sim_error_about(struct bh_sim_error *e, const struct bh_sim_type *t, const char *kind,
                        const char *name)
{
    snprintf(e->details_group, sizeof(e->details_group), "%s", t->group);
    snprintf(e->details_kind, sizeof(e->details_kind), "%s", kind);
    snprintf(e->details_name, sizeof(e->details_name), "%s", name);
}

static bool is_repeated(const struct bh_sim_error *e, unsigned i)
{
    for (unsigned k = 0; k < i; k++)
        if (bh_streq(bh_sim_cause_field(e, k), bh_sim_cause_field(e, i)) &&
            bh_streq(bh_sim_cause_message(e, k), bh_sim_cause_message(e, i)))
            return true;
    return false;
}

int bh_sim_error_close(struct bh_sim_error *e, const struct bh_sim_type *t, const char *name)
{
    if (e->code || !e->n_causes)
        return e->code;
    struct bh_buf b = {0}, all = {0};
    bool several = false;
    for (unsigned i = 0; i < e->n_causes; i++) {
        if (is_repeated(e, i))
            continue;
        several |= all.n > 0;
        bh_buf_addf(&all, "%s%s: %s", all.n ? ", " : "", bh_sim_cause_field(e, i),
                    bh_sim_cause_message(e, i));
    }
    bh_buf_addf(&b, "%s%s%s \"%s\" is invalid: %s%s%s", t->kind, *t->group ? "." : "", t->group,
                name, several ? "[" : "", bh_buf_str(&all), several ? "]" : "");
    bh_buf_fini(&all);
    bh_sim_error_about(e, t, t->kind, name);
    bh_sim_fail(e, 422, "Invalid", "%s", bh_buf_str(&b));
    bh_buf_fini(&b);
    return e->code;
}

struct bh_json *bh_sim_status_tree(struct bh_arena *a, const struct bh_sim_error *e)
{
    struct bh_json *o = bh_json_make(
        a, "kind: Status, apiVersion: v1, metadata: {}, status: %s, message?: %s, reason?: %s",
        e->code >= 200 && e->code < 300 ? "Success" : "Failure", e->message, e->reason);
    if (*e->details_kind || *e->details_name || e->n_causes || e->retry_after_s) {
        struct bh_json *d = bh_json_obj_at(a, o, "details");
        bh_json_add(a, d, "name?: %s, group?: %s, kind?: %s, uid?: %s", e->details_name,
                    e->details_group, e->details_kind, e->details_uid);
        for (unsigned i = 0; i < e->n_causes; i++)
            bh_json_append(a, bh_json_list_at(a, d, "causes"),
                           "reason?: %s, message?: %s, field?: %s", e->causes[i].type,
                           bh_sim_cause_message(e, i), bh_sim_cause_field(e, i));
        bh_json_add(a, d, "retryAfterSeconds?: %d", e->retry_after_s);
    }
    return bh_json_add(a, o, "code: %d", e->code);
}
