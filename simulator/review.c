/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/review.c - answers that are made up: access reviews, who am I, logs
 *
 * Whoever may talk to this server may do everything, so every review says yes.
 */
#include "simulator/req.h"

#include <stdio.h>

static void user_info(struct bh_arena *a, struct bh_json *user)
{
    static const char *const groups[] = {"system:masters", "system:authenticated"};
    bh_json_set_str(a, user, "username", "kubernetes-admin");
    struct bh_json *l = bh_json_set(a, user, "groups", bh_json_new(a, BH_JSON_ARRAY));
    for (size_t i = 0; i < BH_ARRAY_LEN(groups); i++)
        bh_json_push(l, bh_json_new_cstr(a, groups[i]));
}

void bh_sim_do_review(struct bh_sim_req *r)
{
    struct bh_json *v;
    char api_version[80];
    r->verb = "review";
    if (bh_sim_negotiate(r, false) || bh_sim_body(r, r->type, r->type->pb, &v)) {
        bh_sim_reply_error(r);
        return;
    }
    if (!v)
        v = bh_json_new(r->a, BH_JSON_OBJECT);
    bh_sim_type_api_version(r->type, api_version);
    bh_json_set_str(r->a, v, "kind", r->type->kind);
    bh_json_set_str(r->a, v, "apiVersion", api_version);
    struct bh_json *st = bh_json_set(r->a, v, "status", bh_json_new(r->a, BH_JSON_OBJECT));
    if (bh_streq(r->type->kind, "SelfSubjectReview")) {
        user_info(r->a, bh_json_obj_at(r->a, st, "userInfo"));
    } else if (bh_streq(r->type->kind, "TokenReview")) {
        bh_json_set_bool(r->a, st, "authenticated", true);
        user_info(r->a, bh_json_obj_at(r->a, st, "user"));
    } else {
        bh_json_set_bool(r->a, st, "allowed", true);
        bh_json_set_str(r->a, st, "reason", "the simulator allows everything");
    }
    bh_sim_reply_tree(r, 201, v, r->type->pb);
}

void bh_sim_do_log(struct bh_sim_req *r)
{
    char text[700];
    const struct bh_sim_obj *o = bh_sim_get(r->sim, r->type, r->ns, r->name);
    const char *container = bh_http_query(r->http, "container");
    r->verb = "get";
    if (!o) {
        bh_sim_not_found(&r->e, r->type, r->name);
    } else {
        const struct bh_json *spec = bh_json_get(bh_sim_obj_tree(r->a, o), "spec");
        const struct bh_json *first = bh_json_at(bh_json_get(spec, "containers"), 0);
        if (!container || !*container)
            container = bh_json_get_str(first, "name");
        container = container ? container : "";
        if (bh_streq(o->phase, "Pending"))
            bh_sim_fail(&r->e, 400, "BadRequest",
                        "container \"%s\" in pod \"%s\" is waiting to start: ContainerCreating",
                        container, o->name);
    }
    if (r->e.code) {
        bh_sim_reply_error(r);
        return;
    }
    int n = snprintf(text, sizeof(text),
                     "container %.64s of pod %.63s/%.253s is simulated: it writes no log\n",
                     container, o->ns, o->name);
    bh_sim_reply_raw(r, 200, "text/plain", text, (size_t)n);
}
