/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/server/token.c - whose a bearer token is; tokens of service accounts
 *
 * Two kinds: those of the token file (TOKEN,user,uid,"group,group"; a line with the token alone is
 * the administrator's), and what POST serviceaccounts/NAME/token gives: a JWT, signed with a key
 * that lives as long as the server does, so that no file holds what lets anybody in. It ends with
 * its time, its service account, and the pod, secret or node it is bound to.
 * Without a token file any other token is the administrator's.
 * Upstream: pkg/registry/core/serviceaccount/storage/token.go, pkg/serviceaccount/claims.go;
 *           differences: HMAC instead of a public key, for nobody but this server checks them; no
 *           longer life for tokens of pods that ask for 3607 seconds.
 */
#include "simulator/server/req.h"
#include "simulator/server/tree.h"

#include "common/base/base64.h"
#include "proto/kubernetes/kubernetes.pb-c.h"
#include <errno.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#define ISSUER    "https://kubernetes.default.svc.cluster.local"
#define NAMESPACE "kubernetes.io"
#define EXTRA     "authentication.kubernetes.io/"

/* ---- JWT ------------------------------------------------------------------------------------- */

static void swap(char *p, char from, char to)
{
    for (; (p = strchr(p, from)); p++)
        *p = to;
}

static char *encode(struct bh_arena *a, const void *p, size_t n)
{
    struct bh_buf b = {0};

    bh_tree_add_base64(&b, p, n);
    char *text = bh_arena_strdup(a, bh_buf_str(&b));
    bh_buf_fini(&b);
    text[strcspn(text, "=")] = '\0';
    swap(text, '+', '-');
    swap(text, '/', '_');
    return text;
}

/* NULL: it is not JSON in base64. */
static const struct bh_json *decode(struct bh_arena *a, const char *text, size_t n)
{
    static const char pad[] = "===";
    char *s = bh_arena_printf(a, "%.*s%s", (int)n, text, pad + (n + 3) % 4);
    char *out = bh_arena_alloc(a, BH_BASE64_ROOM(strlen(s)) + 1);
    struct bh_json *v = NULL;

    swap(s, '-', '+');
    swap(s, '_', '/');
    return bh_base64_decode(s, strlen(s), out, &n) == 0 &&
                   bh_json_parse(a, out, n, BH_JSON_STRICT, &v, NULL) == 0
               ? v
               : NULL;
}

static const char *sign(const struct bh_sim *s, struct bh_arena *a, const char *text, size_t n)
{
    unsigned char mac[EVP_MAX_MD_SIZE];
    unsigned mac_n = 0;

    if (!HMAC(EVP_sha256(), s->token_key, sizeof(s->token_key), (const unsigned char *)text, n, mac,
              &mac_n))
        mac_n = 0; /* a build of OpenSSL without it: see bh_sim_equal_secret(), nothing equals "" */
    return encode(a, mac, mac_n);
}

static const char *jwt_of(const struct bh_sim *s, struct bh_arena *a, const struct bh_json *claims)
{
    static const char head[] = "{\"alg\":\"HS256\",\"typ\":\"JWT\"}";
    struct bh_buf b = {0};

    bh_json_write(&b, claims);
    const char *text = bh_arena_printf(a, "%s.%s", encode(a, head, sizeof(head) - 1),
                                       encode(a, bh_buf_str(&b), b.n));
    bh_buf_fini(&b);
    return bh_arena_printf(a, "%s.%s", text, sign(s, a, text, strlen(text)));
}

/* ---- users ----------------------------------------------------------------------------------- */

struct bh_json *bh_sim_user_new(struct bh_arena *a, const char *name, const char *uid,
                                const char *groups)
{
    struct bh_json *user = bh_json_make(a, "username: %s, uid?: %s, groups: []", name, uid);
    struct bh_json *list = bh_json_get(user, "groups");

    while (*groups) {
        size_t n = strcspn(groups, ",");
        if (n)
            bh_json_push(list, bh_json_new_str(a, groups, n));
        groups += n + (groups[n] == ',');
    }
    const char *every =
        bh_streq(name, "system:anonymous") ? "system:unauthenticated" : "system:authenticated";
    if (!bh_tree_lists(list, every))
        bh_json_push(list, bh_json_new_cstr(a, every));
    return user;
}

const char *bh_sim_service_account_groups(struct bh_arena *a, const char *user)
{
    static const char prefix[] = "system:serviceaccount:";
    const char *ns = user + sizeof(prefix) - 1;

    if (strncmp(user, prefix, sizeof(prefix) - 1) != 0 || !strchr(ns, ':'))
        return "";
    return bh_arena_printf(a, "system:serviceaccounts,system:serviceaccounts:%.*s",
                           (int)strcspn(ns, ":"), ns);
}

/* user,uid,"groups" behind a token. */
static struct bh_json *listed_user(struct bh_arena *a, struct bh_str line)
{
    char *text = bh_arena_strndup(a, line.p, line.n);
    char *uid = strchr(text, ','), *groups = uid ? strchr(uid + 1, ',') : NULL;

    if (uid)
        *uid++ = '\0';
    if (groups) {
        *groups++ = '\0';
        groups += *groups == '"';
        groups[strcspn(groups, "\"")] = '\0';
    }
    return bh_sim_user_new(a, text, uid ? uid : "", groups ? groups : "");
}

/* The object that claims names under this key, NULL: not, or not that one any more. */
static const struct bh_sim_obj *claimed(struct bh_sim *s, const struct bh_json *claims,
                                        const char *key, const struct bh_sim_type *t,
                                        const char *ns)
{
    const struct bh_json *c = bh_json_get(claims, key);
    const struct bh_sim_obj *o = c ? bh_sim_get(s, t, ns, bh_json_get_text(c, "name")) : NULL;

    return o && bh_streq(o->uid, bh_json_get_text(c, "uid")) ? o : NULL;
}

/* What the token is bound to, as upstream names it in its complaints; NULL: all of it is there. */
static const char *missing(struct bh_sim *s, const struct bh_json *claims, const char *ns)
{
    if (!claimed(s, claims, "serviceaccount", BH_SIM_TYPE("", "v1", "serviceaccounts"), ns))
        return "service account";
    if (bh_json_get(claims, "pod"))
        return claimed(s, claims, "pod", BH_SIM_TYPE("", "v1", "pods"), ns) ? NULL : "pod";
    if (bh_json_get(claims, "secret"))
        return claimed(s, claims, "secret", BH_SIM_TYPE("", "v1", "secrets"), ns) ? NULL : "secret";
    return bh_json_get(claims, "node") &&
                   !claimed(s, claims, "node", BH_SIM_TYPE("", "v1", "nodes"), "")
               ? "node"
               : NULL;
}

static struct bh_json *account_user(struct bh_arena *a, const struct bh_json *all,
                                    const struct bh_json *claims)
{
    static const char *const bound[] = {"pod", "node"};
    const char *name = bh_json_get_text(all, "sub");
    struct bh_json *user =
        bh_sim_user_new(a, name, bh_json_get_text(bh_json_get(claims, "serviceaccount"), "uid"),
                        bh_sim_service_account_groups(a, name));
    struct bh_json *extra = bh_json_obj_at(a, user, "extra");

    bh_json_add(a, extra, "%s: [%s]", EXTRA "credential-id",
                bh_arena_printf(a, "JTI=%s", bh_json_get_text(all, "jti")));
    for (size_t i = 0; i < BH_ARRAY_LEN(bound); i++) {
        const struct bh_json *c = bh_json_get(claims, bound[i]);
        if (c)
            bh_json_add(a, extra, "%s: [%s], %s: [%s]",
                        bh_arena_printf(a, EXTRA "%s-name", bound[i]), bh_json_get_text(c, "name"),
                        bh_arena_printf(a, EXTRA "%s-uid", bound[i]), bh_json_get_text(c, "uid"));
    }
    return user;
}

/* The wanted audiences among the token's; without wanted ones this server is meant. */
static struct bh_json *common_audiences(struct bh_arena *a, const struct bh_json *claims,
                                        const struct bh_json *wanted)
{
    const struct bh_json *own = bh_json_make(a, "aud: [%s]", ISSUER);
    struct bh_json *both = bh_json_new(a, BH_JSON_ARRAY);

    bh_json_each(m, bh_tree_len(wanted) ? wanted : bh_json_get(own, "aud")) {
        if (bh_json_cstr(m) && bh_tree_lists(bh_json_get(claims, "aud"), bh_json_cstr(m)))
            bh_json_push(both, bh_json_clone(a, m));
    }
    return both;
}

static int account_of(struct bh_sim *s, struct bh_arena *a, const char *token, size_t signed_n,
                      struct bh_sim_caller *ret, struct bh_err *err)
{
    const char *body = token + strcspn(token, ".") + 1, *mac = token + signed_n + 1;
    const struct bh_json *all = decode(a, body, (size_t)(mac - 1 - body)), *claims;
    const char *right = sign(s, a, token, signed_n);
    int64_t now = bh_sim_now_ns(s) / 1000000000;

    if (!all || !bh_sim_equal_secret(mac, strlen(mac), right, strlen(right)))
        return bh_err_set(err, -EACCES, "invalid bearer token");
    claims = bh_json_get(all, NAMESPACE);
    if (now >= bh_json_get_i64(all, "exp", 0))
        return bh_err_set(err, -EACCES, "service account token has expired");
    const char *gone = missing(s, claims, bh_json_get_text(claims, "namespace"));
    if (gone)
        return bh_err_set(err, -EACCES, "%s has been deleted", gone);
    ret->audiences = common_audiences(a, all, ret->audiences);
    if (!bh_tree_len(ret->audiences))
        return bh_err_set(err, -EACCES, "token audiences are not among the wanted ones");
    ret->user = account_user(a, all, claims);
    return 0;
}

int bh_sim_token_user(struct bh_sim *s, struct bh_arena *a, const char *token,
                      struct bh_sim_caller *ret, struct bh_err *err)
{
    const char *file = s->opt.tokens, *end = strrchr(token, '.');
    struct bh_str line = BH_STR("");

    if (file && bh_sim_token_find(file, token, &line)) {
        ret->user = line.n ? listed_user(a, line) : NULL;
        return 0;
    }
    if (end && strchr(token, '.') < end)
        return account_of(s, a, token, (size_t)(end - token), ret, err);
    return file || !*token ? bh_err_set(err, -EACCES, "invalid bearer token") : 0;
}

/* ---- POST serviceaccounts/NAME/token --------------------------------------------------------- */

static int invalid(struct bh_sim_req *r, const char *field, int64_t value, const char *why)
{
    bh_sim_field_error(&r->e, field, "Invalid value",
                       bh_arena_printf(r->a, "%lld", (long long)value), "%s", why);
    return bh_sim_fail(&r->e, 422, "Invalid",
                       "TokenRequest.authentication.k8s.io \"\" is invalid: %s: Invalid value: "
                       "%lld: %s",
                       field, (long long)value, why);
}

static void add_claim(struct bh_arena *a, struct bh_json *claims, const char *key,
                      const struct bh_sim_obj *o)
{
    bh_json_add(a, claims, "%s: {name: %s, uid: %s}", key, o->name, o->uid);
}

/* What the token shall be bound to. 0 or a code. */
static int bind_to(struct bh_sim_req *r, const struct bh_json *ref, struct bh_json *claims)
{
    static const char *const kinds[] = {"Pod", "Secret", "Node"};
    static const char *const keys[] = {"pod", "secret", "node"};
    const char *kind = bh_json_get_text(ref, "kind"), *name = bh_json_get_text(ref, "name");
    const char *uid = bh_json_get_text(ref, "uid");
    const struct bh_sim_type *nodes = BH_SIM_TYPE("", "v1", "nodes");
    size_t i = 0;

    while (i < BH_ARRAY_LEN(kinds) && !bh_streq(kinds[i], kind))
        i++;
    if (i == BH_ARRAY_LEN(kinds))
        return bh_sim_fail(&r->e, 400, "BadRequest",
                           "cannot bind token to object of type %s, Kind=%s",
                           bh_json_get_text(ref, "apiVersion"), kind);
    const struct bh_sim_type *t = bh_sim_type_of_kind("v1", kind);
    const struct bh_sim_obj *o = bh_sim_get(r->sim, t, i == 2 ? "" : r->ns, name);
    if (!o)
        return bh_sim_not_found(&r->e, t, name);
    if (*uid && !bh_streq(uid, o->uid))
        return bh_sim_fail(
            &r->e, 409, "Conflict",
            "Operation cannot be fulfilled on %s \"%s\": the UID in the bound object "
            "reference (%s) does not match the UID in record. The object might have "
            "been deleted and then recreated",
            kind, name, uid);
    add_claim(r->a, claims, keys[i], o);
    if (i)
        return 0;
    if (!bh_tree_is(bh_sim_obj_tree(r->a, o), "spec.serviceAccountName", r->name))
        return bh_sim_fail(&r->e, 400, "BadRequest",
                           "cannot bind token for serviceaccount \"%s\" to pod running with "
                           "different serviceaccount name.",
                           r->name);
    const struct bh_sim_obj *node = bh_sim_get(r->sim, nodes, "", o->node_name);
    if (node)
        add_claim(r->a, claims, "node", node);
    return 0;
}

static void issue(struct bh_sim_req *r, struct bh_json *v, const struct bh_sim_obj *account)
{
    struct bh_json *spec = bh_json_obj_at(r->a, v, "spec");
    int64_t now = bh_sim_now_ns(r->sim) / 1000000000;
    int64_t seconds = bh_json_get_i64(spec, "expirationSeconds", 3600);
    char id[37], until[32];

    if (seconds < 600)
        invalid(r, "spec.expirationSeconds", seconds,
                "may not specify a duration less than 10 minutes");
    else if (seconds > (int64_t)1 << 32)
        invalid(r, "spec.expirationSeconds", seconds,
                "may not specify a duration larger than 2^32 seconds");
    struct bh_json *claims = bh_json_make(r->a, "namespace: %s", r->ns);
    const struct bh_json *ref = bh_json_get(spec, "boundObjectRef");
    if (r->e.code || (ref && ref->type == BH_JSON_OBJECT && bind_to(r, ref, claims)))
        return;
    if (!bh_tree_len(bh_json_get(spec, "audiences")))
        bh_json_add(r->a, spec, "audiences: [%s]", ISSUER);
    bh_json_set_i64(r->a, spec, "expirationSeconds", seconds);
    add_claim(r->a, claims, "serviceaccount", account);
    bh_uuid4(id);
    bh_time_format(until, now + seconds);
    const struct bh_json *all = bh_json_make(
        r->a, "aud: %p, exp: %ld, iat: %ld, iss: %s, jti: %s, %s: %p, nbf: %ld, sub: %s",
        bh_json_clone(r->a, bh_json_get(spec, "audiences")), (long)(now + seconds), (long)now,
        ISSUER, id, NAMESPACE, claims, (long)now,
        bh_arena_printf(r->a, "system:serviceaccount:%s:%s", r->ns, r->name));
    bh_json_add(r->a, v,
                "kind: TokenRequest, apiVersion: authentication.k8s.io/v1, metadata: {name: %s, "
                "namespace: %s, uid: %s}, status: {token: %s, expirationTimestamp: %s}",
                r->name, r->ns, account->uid, jwt_of(r->sim, r->a, all), until);
    bh_sim_reply_tree(r, 201, v, &k8s__token_request__descriptor);
}

void bh_sim_do_token(struct bh_sim_req *r)
{
    struct bh_json *v;
    const struct bh_sim_obj *account = bh_sim_get(r->sim, r->type, r->ns, r->name);

    r->verb = "create";
    if (bh_sim_negotiate(r, false) ||
        bh_sim_need_body(r, NULL, &k8s__token_request__descriptor, &v))
        return;
    const char *uid = bh_json_get_text(bh_json_get(v, "metadata"), "uid");
    if (!account)
        bh_sim_not_found(&r->e, r->type, r->name);
    else if (*uid && !bh_streq(uid, account->uid))
        bh_sim_fail(
            &r->e, 409, "Conflict",
            "Operation cannot be fulfilled on TokenRequest.authentication.k8s.io \"%s\": the "
            "UID in the token request (%s) does not match the UID of the service account "
            "(%s)",
            r->name, uid, account->uid);
    else
        issue(r, v, account);
}
