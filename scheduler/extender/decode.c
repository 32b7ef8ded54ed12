/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/extender/decode.c - replies from JSON text
 *
 * As Go's decoder reads into upstream's structs: member names without regard to case, unknown ones
 * ignored, null is absent, what follows the first value is not looked at. Everything here is
 * foreign: sizes are bounded by the reply's, texts are cut before they are printed.
 *
 * Upstream: kube-scheduler/extender/v1/types.go; differences: case matters inside of Node objects,
 *           and invalid UTF-8 is an error.
 */
#include <errno.h>
#include <inttypes.h>
#include <strings.h>

#include "scheduler/extender/ext_int.h"

const char *bh_ext_tame(struct bh_arena *a, struct bh_str s)
{
    size_t n = s.n;

    if (n > BH_EXT_TEXT_MAX) {
        n = BH_EXT_TEXT_MAX - 3;
        while (n && ((unsigned char)s.p[n] & 0xc0) == 0x80) /* not in the middle of a character */
            n--;
    }
    char *text = bh_arena_alloc(a, n + 4);
    if (!text)
        return "";
    for (size_t i = 0; i < n; i++)
        text[i] = (unsigned char)s.p[i] < ' ' || s.p[i] == 0x7f ? ' ' : s.p[i];
    snprintf(text + n, 4, "%s", n < s.n ? "..." : "");
    return text;
}

/* ---- reading as Go does ---------------------------------------------------------------------- */

static int parse(struct bh_arena *a, struct bh_str body, struct bh_json **ret, struct bh_err *err)
{
    const char *p = body.p, *end = body.p + body.n;
    struct bh_err why = {{0}};

    while (p < end && strchr(" \t\r\n", *p) && *p)
        p++;
    if (p == end)
        return bh_err_set(err, -EINVAL, "EOF");
    if (!*p || !strchr("{[\"-0123456789tfn", *p))
        return bh_err_set(err, -EINVAL,
                          (unsigned char)*p > ' ' && (unsigned char)*p < 0x7f
                              ? "invalid character '%c' looking for beginning of value"
                              : "invalid character '\\x%02x' looking for beginning of value",
                          (unsigned char)*p);
    int rc = bh_json_parse(a, body.p, body.n, BH_JSON_FIRST, ret, &why);
    if (rc == -E2BIG)
        return bh_err_set(err, -EINVAL, "the reply is too large: %s", why.msg);
    if (rc < 0 && strstr(why.msg, "end of input"))
        return bh_err_set(err, -EINVAL, "unexpected EOF");
    return rc < 0 ? bh_err_set(err, -EINVAL, "the reply is not JSON: %s", why.msg) : 0;
}

static int mismatch(struct bh_err *err, const struct bh_json *v, const char *field,
                    const char *type)
{
    static const char *const names[] = {"null", "bool", "number", "string", "array", "object"};
    const char *number = "", *blank = "";

    if (v->type == BH_JSON_NUMBER && bh_streq(type, "int64")) {
        number = v->s.p;
        blank = " ";
    }
    return bh_err_set(err, -EINVAL, "json: cannot unmarshal %s%s%.40s into Go %s%s of type %s",
                      names[v->type], blank, number, strchr(field, '.') ? "struct field " : "",
                      field, type);
}

/* Of one type or absent; *ret NULL = absent. */
static int get(const struct bh_json *obj, const char *name, enum bh_json_type t, const char *field,
               const char *type, const struct bh_json **ret, struct bh_err *err)
{
    /* The member, the last of them if it is there more than once; NULL for null. */
    const struct bh_json *found = NULL;
    size_t n = strlen(name);
    bh_json_each(m, obj) {
        if (m->key.n == n && strncasecmp(m->key.p, name, n) == 0)
            found = m;
    }
    const struct bh_json *v = found && found->type != BH_JSON_NULL ? found : NULL;

    if (v && v->type != t)
        return mismatch(err, v, field, type);
    *ret = v;
    return 0;
}

static int get_text(const struct bh_json *obj, const char *name, const char *field,
                    struct bh_str *ret, struct bh_err *err)
{
    const struct bh_json *v = NULL;
    int rc = get(obj, name, BH_JSON_STRING, field, "string", &v, err);

    if (rc == 0)
        *ret = v ? v->s : BH_STR("");
    return rc;
}

static int get_i64(const struct bh_json *obj, const char *name, const char *field, int64_t *ret,
                   struct bh_err *err)
{
    const struct bh_json *v = NULL;
    int rc = get(obj, name, BH_JSON_NUMBER, field, "int64", &v, err);

    *ret = 0;
    /* Go takes 10, but neither 10.0 nor 1e1 */
    if (rc == 0 && v && (strpbrk(v->s.p, ".eE") || !bh_json_i64(v, ret)))
        return mismatch(err, v, field, "int64");
    return rc;
}

static int full(struct bh_err *err)
{
    return bh_err_set(err, -EINVAL, "the reply is too large");
}

static int top(struct bh_arena *a, struct bh_str body, enum bh_json_type t, const char *type,
               struct bh_json **ret, struct bh_err *err)
{
    int rc = parse(a, body, ret, err);

    if (rc == 0 && (*ret)->type == BH_JSON_NULL) /* leaves the zero value alone */
        *ret = bh_json_new(a, t);
    if (rc == 0 && !*ret)
        return full(err);
    return rc == 0 && (*ret)->type != t ? mismatch(err, *ret, "value", type) : rc;
}

/* ---- filter ---------------------------------------------------------------------------------- */

static int read_names(struct bh_arena *a, const struct bh_json *list, struct bh_ext_filtered *ret,
                      struct bh_err *err)
{
    ret->nodes = bh_arena_new_array(a, struct bh_ext_node, list->c.n + 1);
    if (!ret->nodes)
        return full(err);
    bh_json_each(v, list) {
        if (v->type != BH_JSON_STRING && v->type != BH_JSON_NULL)
            return mismatch(err, v, "ExtenderFilterResult.NodeNames", "string");
        ret->nodes[ret->n++].name = v->type == BH_JSON_STRING ? v->s.p : "";
    }
    return 0;
}

static int read_nodes(struct bh_arena *a, const struct bh_json *node_list,
                      struct bh_ext_filtered *ret, struct bh_err *err)
{
    const struct bh_json *items = NULL;
    int rc =
        get(node_list, "items", BH_JSON_ARRAY, "NodeList.Nodes.items", "[]v1.Node", &items, err);

    ret->copies = true;
    ret->nodes = bh_arena_new_array(a, struct bh_ext_node, (items ? items->c.n : 0) + 1);
    if (rc < 0 || !ret->nodes)
        return rc < 0 ? rc : full(err);
    bh_json_each(v, items) {
        if (v->type != BH_JSON_OBJECT)
            return mismatch(err, v, "NodeList.Nodes.items", "v1.Node");
        const char *name = bh_json_get_str(bh_json_get(v, "metadata"), "name");
        ret->nodes[ret->n++] = (struct bh_ext_node){.name = name ? name : "", .object = v};
    }
    return 0;
}

static int read_failed(struct bh_arena *a, const struct bh_json *reply, const char *name,
                       const char *field, bool unresolvable, struct bh_ext_filtered *ret,
                       struct bh_err *err)
{
    const struct bh_json *map = NULL;
    int rc = get(reply, name, BH_JSON_OBJECT, field, "v1.FailedNodesMap", &map, err);

    if (rc < 0 || !map)
        return rc;
    struct bh_ext_failed *v =
        bh_arena_new_array(a, struct bh_ext_failed, ret->n_failed + map->c.n + 1);
    if (!v)
        return full(err);
    if (ret->n_failed)
        memcpy(v, ret->failed, ret->n_failed * sizeof *v);
    ret->failed = v;
    bh_json_each(m, map) {
        if (m->type != BH_JSON_STRING && m->type != BH_JSON_NULL)
            return mismatch(err, m, field, "string");
        v[ret->n_failed++] =
            (struct bh_ext_failed){.node = m->key.p,
                                   .reason = m->type == BH_JSON_STRING ? bh_ext_tame(a, m->s) : "",
                                   .unresolvable = unresolvable};
    }
    return 0;
}

int bh_ext_decode_filter(struct bh_arena *a, struct bh_str body, bool names,
                         struct bh_ext_filtered *ret, const char **ret_says, struct bh_err *err)
{
    struct bh_json *reply = NULL;
    const struct bh_json *list = NULL, *nodes = NULL;
    struct bh_str says = {"", 0};
    int rc = top(a, body, BH_JSON_OBJECT, "v1.ExtenderFilterResult", &reply, err);

    *ret = (struct bh_ext_filtered){.n = 0};
    if (rc == 0)
        rc = get(reply, "NodeNames", BH_JSON_ARRAY, "ExtenderFilterResult.NodeNames", "[]string",
                 &list, err);
    if (rc == 0)
        rc = get(reply, "Nodes", BH_JSON_OBJECT, "ExtenderFilterResult.Nodes", "v1.NodeList",
                 &nodes, err);
    if (rc == 0)
        rc = get_text(reply, "Error", "ExtenderFilterResult.Error", &says, err);
    if (rc == 0) /* a node in both is unresolvable: that one is read last */
        rc = read_failed(a, reply, "FailedNodes", "ExtenderFilterResult.FailedNodes", false, ret,
                         err);
    if (rc == 0)
        rc = read_failed(a, reply, "FailedAndUnresolvableNodes",
                         "ExtenderFilterResult.FailedAndUnresolvableNodes", true, ret, err);
    if (rc == 0 && list && names)
        rc = read_names(a, list, ret, err);
    else if (rc == 0 && nodes)
        rc = read_nodes(a, nodes, ret, err);
    if (rc == 0)
        *ret_says = says.n ? bh_ext_tame(a, says) : NULL;
    return rc;
}

/* ---- prioritize ------------------------------------------------------------------------------ */

int bh_ext_decode_scores(struct bh_arena *a, struct bh_str body, struct bh_ext_scores *ret,
                         struct bh_err *err)
{
    struct bh_json *reply = NULL;
    int rc = top(a, body, BH_JSON_ARRAY, "v1.HostPriorityList", &reply, err);

    if (rc < 0)
        return rc;
    struct bh_ext_host *v = bh_arena_new_array(a, struct bh_ext_host, reply->c.n + 1);
    uint32_t n = 0;
    if (!v)
        return full(err);
    bh_json_each(m, reply) {
        struct bh_str host = {"", 0};
        if (m->type != BH_JSON_OBJECT && m->type != BH_JSON_NULL)
            return mismatch(err, m, "value", "v1.HostPriority");
        if (m->type == BH_JSON_OBJECT) {
            rc = get_text(m, "Host", "HostPriority.Host", &host, err);
            if (rc == 0)
                rc = get_i64(m, "Score", "HostPriority.Score", &v[n].score, err);
            if (rc < 0)
                return rc;
        }
        v[n++].host = host.p;
    }
    *ret = (struct bh_ext_scores){.hosts = v, .n = n};
    return 0;
}

/* ---- preempt --------------------------------------------------------------------------------- */

static int read_victims(struct bh_arena *a, const struct bh_json *m, struct bh_ext_victims *ret,
                        struct bh_err *err)
{
    const struct bh_json *pods = NULL;

    *ret = (struct bh_ext_victims){.node = m->key.p};
    if (m->type == BH_JSON_NULL)
        return 0;
    if (m->type != BH_JSON_OBJECT)
        return mismatch(err, m, "ExtenderPreemptionResult.NodeNameToMetaVictims", "v1.MetaVictims");
    int rc = get_i64(m, "NumPDBViolations", "MetaVictims.NodeNameToMetaVictims.NumPDBViolations",
                     &ret->violations, err);
    if (rc == 0)
        rc = get(m, "Pods", BH_JSON_ARRAY, "MetaVictims.NodeNameToMetaVictims.Pods",
                 "[]*v1.MetaPod", &pods, err);
    if (rc < 0 || !pods)
        return rc;
    ret->pods = bh_arena_new_array(a, struct bh_ext_victim, pods->c.n + 1);
    if (!ret->pods)
        return full(err);
    bh_json_each(p, pods) {
        struct bh_str uid = BH_STR("<nil>"); /* null: as Go prints it */
        if (p->type != BH_JSON_OBJECT && p->type != BH_JSON_NULL)
            return mismatch(err, p, "MetaVictims.NodeNameToMetaVictims.Pods", "v1.MetaPod");
        if (p->type == BH_JSON_OBJECT)
            rc = get_text(p, "UID", "MetaPod.NodeNameToMetaVictims.Pods.UID", &uid, err);
        if (rc < 0)
            return rc;
        ret->pods[ret->n_pods++].uid = uid;
    }
    return 0;
}

static int by_node(const void *a, const void *b)
{
    return strcmp(((const struct bh_ext_victims *)a)->node,
                  ((const struct bh_ext_victims *)b)->node);
}

int bh_ext_decode_victims(struct bh_arena *a, struct bh_str body, struct bh_ext_victims **ret_v,
                          uint32_t *ret_n, struct bh_err *err)
{
    struct bh_json *reply = NULL;
    const struct bh_json *map = NULL;
    uint32_t n = 0;
    int rc = top(a, body, BH_JSON_OBJECT, "v1.ExtenderPreemptionResult", &reply, err);

    if (rc == 0)
        rc = get(reply, "NodeNameToMetaVictims", BH_JSON_OBJECT,
                 "ExtenderPreemptionResult.NodeNameToMetaVictims", "map[string]*v1.MetaVictims",
                 &map, err);
    if (rc < 0)
        return rc;
    struct bh_ext_victims *v =
        bh_arena_new_array(a, struct bh_ext_victims, (map ? map->c.n : 0) + 1);
    if (!v)
        return full(err);
    bh_json_each(m, map) {
        rc = read_victims(a, m, &v[n++], err);
        if (rc < 0)
            return rc;
    }
    if (n > 1)
        qsort(v, n, sizeof *v, by_node);
    *ret_v = v;
    *ret_n = n;
    return 0;
}

/* ---- bind ------------------------------------------------------------------------------------ */

int bh_ext_decode_bound(struct bh_arena *a, struct bh_str body, const char **ret_says,
                        struct bh_err *err)
{
    struct bh_json *reply = NULL;
    struct bh_str says = {"", 0};
    int rc = top(a, body, BH_JSON_OBJECT, "v1.ExtenderBindingResult", &reply, err);

    if (rc == 0)
        rc = get_text(reply, "Error", "ExtenderBindingResult.Error", &says, err);
    if (rc == 0)
        *ret_says = says.n ? bh_ext_tame(a, says) : NULL;
    return rc;
}
