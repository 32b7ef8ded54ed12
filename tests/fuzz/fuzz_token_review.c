/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/fuzz/fuzz_token_review.c - answers of an API server to a TokenReview or SubjectAccessReview
 *
 * The first byte chooses: 't' a TokenReview, 'a' a SubjectAccessReview; the rest is the answer. YES comes
 * only from a document of that kind and version, and names the user and groups that stand there, byte by byte.
 */
#include "front/authn.h"
#include "front/authz.h"
#include "tests/fuzz/check_user.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static bool is_text(const struct bh_json *v, const char *text)
{
    return v && v->type == BH_JSON_STRING && bh_str_eqc(v->s, text);
}

static bool is_listed(const struct bh_json *list, const char *text)
{
    bh_json_each(e, list)
        if (is_text(e, text))
            return true;
    return false;
}

static void check_yes(const struct bh_review_form *form, const struct bh_json *v,
                      const struct bh_verdict *verdict)
{
    const struct bh_json *user = bh_json_path(v, "status.user");
    const struct bh_user *u = verdict->user;

    bh_assert(is_text(bh_json_get(v, "kind"), form->kind));
    bh_assert(is_text(bh_json_get(v, "apiVersion"), form->api_version));
    bh_assert((u != NULL) == (form == &bh_token_review));
    if (!u) {
        bh_assert(bh_json_get_bool(bh_json_get(v, "status"), "allowed", false));
        return;
    }
    bh_assert(is_text(bh_json_get(user, "username"), u->name));
    bh_assert(!*u->uid || is_text(bh_json_get(user, "uid"), u->uid));
    for (size_t i = 0; i < u->n_groups; i++)
        bh_assert(is_listed(bh_json_get(user, "groups"), u->groups[i]) ||
                  bh_streq(u->groups[i], BH_GROUP_AUTHENTICATED));
    for (size_t i = 0; i < u->n_extra; i++)
        bh_assert(
            is_listed(bh_json_get(bh_json_get(user, "extra"), u->extra[i].key), u->extra[i].value));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (n < 2)
        return 0;
    const struct bh_review_form *form = data[0] == 't' ? &bh_token_review : &bh_access_review;
    const struct bh_str body = {(const char *)data + 1, n - 1};
    struct bh_verdict *verdict = bh_review_read(form, body);
    struct bh_json *v = NULL;
    struct bh_arena a;

    bh_assert(verdict && (verdict->is != BH_VERDICT_ERROR || *verdict->why));
    bh_arena_init(&a, (size_t)64 << 20);
    if (verdict->is == BH_VERDICT_YES) {
        bh_assert(bh_json_parse(&a, body.p, body.n, BH_JSON_NUL, &v, NULL) == 0);
        check_yes(form, v, verdict);
        if (verdict->user)
            check_user(bh_user_ref(verdict->user));
    }
    bh_arena_fini(&a);
    bh_verdict_unref(verdict);
    return 0;
}
