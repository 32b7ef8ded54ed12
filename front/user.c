/* SPDX-License-Identifier: Apache-2.0
 *
 * front/user.c - who a caller is
 */
#include "front/user.h"

struct bh_user *bh_user_new(const char *name, const char *uid)
{
    struct bh_user *u = bh_calloc(1, sizeof(*u));

    u->refs = 1;
    u->name = bh_strdup(name);
    u->uid = bh_strdup(uid ? uid : "");
    return u;
}

struct bh_user *bh_user_ref(struct bh_user *u)
{
    u->refs++;
    return u;
}

void bh_user_unref(struct bh_user *u)
{
    if (!u || --u->refs)
        return;
    for (size_t i = 0; i < u->n_groups; i++)
        free(u->groups[i]);
    for (size_t i = 0; i < u->n_extra; i++) {
        free(u->extra[i].key);
        free(u->extra[i].value);
    }
    free(u->groups);
    free(u->extra);
    free(u->name);
    free(u->uid);
    free(u);
}

void bh_user_add_group(struct bh_user *u, const char *group)
{
    u->groups = bh_reallocarray(u->groups, u->n_groups + 1, sizeof(*u->groups));
    u->groups[u->n_groups++] = bh_strdup(group);
}

void bh_user_add_extra(struct bh_user *u, const char *key, const char *value)
{
    u->extra = bh_reallocarray(u->extra, u->n_extra + 1, sizeof(*u->extra));
    u->extra[u->n_extra++] = (struct bh_user_extra){bh_strdup(key), bh_strdup(value)};
}

bool bh_user_in(const struct bh_user *u, const char *group)
{
    for (size_t i = 0; i < u->n_groups; i++)
        if (bh_streq(u->groups[i], group))
            return true;
    return false;
}

void bh_user_authenticated(struct bh_user *u)
{
    if (!bh_streq(u->name, BH_USER_ANONYMOUS) && !bh_user_in(u, BH_GROUP_AUTHENTICATED) &&
        !bh_user_in(u, BH_GROUP_UNAUTHENTICATED))
        bh_user_add_group(u, BH_GROUP_AUTHENTICATED);
}

/* Texts without NUL; or null, as what is absent. */
static bool is_text_list(const struct bh_json *list)
{
    bh_json_each(e, list)
        if (e->type != BH_JSON_STRING || memchr(e->s.p, 0, e->s.n))
            return false;
    return !list || list->type == BH_JSON_ARRAY || list->type == BH_JSON_NULL;
}

static bool is_extra(const struct bh_json *extra)
{
    bh_json_each(e, extra)
        if (!is_text_list(e))
            return false;
    return !extra || extra->type == BH_JSON_OBJECT || extra->type == BH_JSON_NULL;
}

static bool is_text(const struct bh_json *v)
{
    return !v || (v->type == BH_JSON_STRING && !memchr(v->s.p, 0, v->s.n));
}

struct bh_user *bh_user_of_review(const struct bh_json *user)
{
    const char *name = bh_json_get_text(user, "username");
    const struct bh_json *groups = bh_json_get(user, "groups"), *extra = bh_json_get(user, "extra");

    if (!*name || !is_text(bh_json_get(user, "username")) || !is_text(bh_json_get(user, "uid")) ||
        !is_text_list(groups) || !is_extra(extra))
        return NULL;
    struct bh_user *u = bh_user_new(name, bh_json_get_str(user, "uid"));
    bh_json_each(g, groups)
        bh_user_add_group(u, bh_json_cstr(g));
    bh_json_each(e, extra)
        bh_json_each(v, e)
            bh_user_add_extra(u, e->key.p, bh_json_cstr(v));
    return u;
}

void bh_user_write(const struct bh_user *u, struct bh_buf *out)
{
    bh_buf_add_json(out, "\"user\":%s,\"groups\":[", u->name);
    for (size_t i = 0; i < u->n_groups; i++)
        bh_buf_add_json(out, i ? ",%s" : "%s", u->groups[i]);
    bh_buf_addc(out, ']');
    if (*u->uid)
        bh_buf_add_json(out, ",\"uid\":%s", u->uid);
    if (u->n_extra) {
        /* The values of one key stand together, at the key's first place. */
        bool any = false;
        bh_buf_adds(out, ",\"extra\":{");
        for (size_t i = 0; i < u->n_extra; i++) {
            size_t before = 0;
            while (before < i && !bh_streq(u->extra[before].key, u->extra[i].key))
                before++;
            if (before < i)
                continue;
            bh_buf_add_json(out, any ? ",%s" : "%s", u->extra[i].key);
            for (size_t k = i; k < u->n_extra; k++)
                if (bh_streq(u->extra[k].key, u->extra[i].key))
                    bh_buf_add_json(out, k == i ? ":[%s" : ",%s", u->extra[k].value);
            bh_buf_addc(out, ']');
            any = true;
        }
        bh_buf_addc(out, '}');
    }
}
