/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/server/req.h - one API request: what it asks for, how it wants the answer, the answer
 *
 * A request is handled at once in the server's arena and never outlives its handler, except for the
 * ones that wait (wait.c), which are handled again from the start.
 */
#ifndef BH_SIM_REQ_H
#define BH_SIM_REQ_H

#include "simulator/server/sim_int.h"

enum bh_sim_format {
    BH_SIM_FMT_JSON,
    BH_SIM_FMT_PB,
    BH_SIM_FMT_TABLE,   /* meta.k8s.io Table: v1, or see old_table */
    BH_SIM_FMT_PARTIAL, /* meta.k8s.io/v1 PartialObjectMetadata(List) */
    BH_SIM_FMT_YAML,    /* as JSON, members in the order of their names; never a watch */
};
struct bh_sim_req {
    struct bh_sim *sim;
    struct bh_http_req *http;
    struct bh_arena *a;
    const char *method, *path;
    const struct bh_sim_type *type; /* as asked for; its stored type holds the objects */
    const char *ns, *name, *sub;    /* "" when absent */
    const struct bh_json *user;     /* {username, uid, groups, extra}; NULL: the administrator */
    enum bh_sim_format format;
    struct bh_buf warnings; /* lines */
    const char *verb;       /* for metrics: "get", "list", "watch", ... */
    bool waited;            /* handled again after waiting */
    bool done;              /* answered, streaming or waiting */
    bool immutable;         /* the answer may be cached for ever */
    bool old_table;         /* of v1beta1, which has the same members */
    uint64_t start_ns;
    struct bh_sim_error e; /* last: its causes are not cleared */
};

/* ---- negotiate.c ----------------------------------------------------------------------------- */

/* Chooses r->format. 0 or 406. tables: the answer is an object or a list. A watch (r->verb) is not
 * to be had as YAML, which has no end of a document that a reader could wait for. */
int bh_sim_negotiate(struct bh_sim_req *r, bool tables);
/* The body as a tree of type t's representation (or of desc when t is NULL: options objects).
 * An empty body gives NULL. 0, 400 or 415. */
int bh_sim_body(struct bh_sim_req *r, const struct bh_sim_type *t,
                const ProtobufCMessageDescriptor *desc, struct bh_json **ret_v);
int bh_sim_need_body(struct bh_sim_req *r, const struct bh_sim_type *t,
                     const ProtobufCMessageDescriptor *desc,
                     struct bh_json **ret_v); /* never NULL */
/* A patch: JSON, or YAML for apply. */
int bh_sim_body_text(struct bh_sim_req *r, bool yaml, struct bh_json **ret_v);
/* 413: what came, or what a patch made of it, is too large, too wide or too deep to be kept. */
int bh_sim_check_shape(struct bh_sim_req *r, const struct bh_json *v);
/* What kind of content the body is, without parameters; "" when absent. */
void bh_sim_content_type(const struct bh_sim_req *r, char out[static 96]);
/* Refuses members whose JSON type the schema does not allow (400), as decoding into Go types does.
 * Takes out members that the type does not have: ?fieldValidation=Strict refuses them too, Warn
 * and no value answer with warnings. */
int bh_sim_check_schema(struct bh_sim_req *r, struct bh_json *obj);

/* ---- reply.c --------------------------------------------------------------------------------- */

void bh_sim_reply_obj(struct bh_sim_req *r, int code, const struct bh_sim_obj *o);
/* A tree that is not stored: Status, Scale, reviews. desc NULL: JSON only. */
void bh_sim_reply_tree(struct bh_sim_req *r, int code, const struct bh_json *v,
                       const ProtobufCMessageDescriptor *desc);
/* Of a handler that filled r->e and answered nothing; called behind all of them. */
void bh_sim_reply_error(struct bh_sim_req *r);
/* A tree as YAML; its members are sorted in place. */
void bh_sim_reply_yaml(struct bh_sim_req *r, int code, struct bh_json *v);
void bh_sim_reply_raw(struct bh_sim_req *r, int code, const char *content_type, const void *p,
                      size_t n);

/* The part of bh_sim_reply_raw() before the body: headers, counting, the audit log. r->done. */
void bh_sim_reply_begin(struct bh_sim_req *r, int code);

/* ---- encode.c: objects in the representation a client asked for ------------------------------ */

/* Stored tree -> tree of representation t (in place; t may be the stored type: no change). */
void bh_sim_convert_out(struct bh_arena *a, const struct bh_sim_type *t, struct bh_json *obj);
/* The other way round. */
void bh_sim_convert_in(struct bh_arena *a, const struct bh_sim_type *t, struct bh_json *obj);
/* protobuf: envelope, or bare message for list items. tree of representation t. false: no schema,
 * or a member does not fit it. */
bool bh_sim_encode_pb(struct bh_sim *s, const struct bh_sim_type *t, const struct bh_json *tree,
                      bool envelope, struct bh_buf *out);
/* PartialObjectMetadata of a tree. */
void bh_sim_encode_partial(const struct bh_json *tree, struct bh_buf *out);
enum bh_sim_include { BH_SIM_INCLUDE_METADATA, BH_SIM_INCLUDE_OBJECT, BH_SIM_INCLUDE_NONE };
enum bh_sim_include bh_sim_include_of(const struct bh_sim_req *r); /* ?includeObject= */
/* Whose columns a table of t's objects has. */
const struct bh_sim_type *bh_sim_table_type(const struct bh_sim_type *t);
/* Table text around rows. columns false: "columnDefinitions":null, for later watch events. meta:
 * the list's metadata members as JSON text, e.g. "\"resourceVersion\":\"5\"". */
void bh_sim_table_begin(const struct bh_sim_type *t, bool old, const char *meta, bool columns,
                        struct bh_buf *out);
void bh_sim_table_row(const struct bh_sim_type *t, const struct bh_json *tree, int64_t now_ns,
                      enum bh_sim_include inc, bool first, struct bh_buf *out);
void bh_sim_table_end(struct bh_buf *out);
/* The table of one object of representation t. */
void bh_sim_table_of(const struct bh_sim_type *t, bool old, uint64_t rv, const struct bh_json *tree,
                     int64_t now_ns, enum bh_sim_include inc, bool columns, struct bh_buf *out);

/* ---- list_out.c: the text of a list ---------------------------------------------------------- */

struct bh_sim_list_out {
    const struct bh_sim_type *type, *table_type; /* as asked for; whose columns */
    enum bh_sim_format format;
    bool old_table;
    enum bh_sim_include include;
    int64_t now_ns;
    uint64_t rv;
    char token[1240]; /* continue, "" = the last page */
    size_t remaining; /* 0 = not told */
    struct bh_sim *sim;
    struct bh_arena *a;
    size_t n;           /* items so far */
    struct bh_buf item; /* own; freed by _end */
};
/* Head, items, tail. Protobuf: head and tail are none; bh_sim_list_head_pb() (list.c) writes the
 * head when the items' bytes are known. */
void bh_sim_list_begin(struct bh_sim_list_out *o, struct bh_buf *out);
void bh_sim_list_item(struct bh_sim_list_out *o, const struct bh_sim_obj *obj, struct bh_buf *out);
void bh_sim_list_end(struct bh_sim_list_out *o, struct bh_buf *out);
void bh_sim_list_head_pb(const struct bh_sim_list_out *o, size_t items_n, struct bh_buf *out);
/* Answers r with v[0..n), a portion in each turn of the loop. */
void bh_sim_list_slowly(struct bh_sim_req *r, const struct bh_sim_list_out *o,
                        struct bh_sim_obj *const *v, size_t n);

/* ---- filter.c -------------------------------------------------------------------------------- */

#define BH_SIM_MAX_FIELD_TERMS 16
struct bh_sim_field_term {
    enum { BH_SIM_F_NAME, BH_SIM_F_NS, BH_SIM_F_NODE, BH_SIM_F_PHASE, BH_SIM_F_PATH } what;
    bool equal; /* or: not equal */
    char *path; /* PATH */
    char *value;
};
struct bh_sim_filter {
    struct bh_selector *labels;
    unsigned n_terms;
    struct bh_sim_field_term terms[BH_SIM_MAX_FIELD_TERMS];
    char *ns, *name; /* NULL = any */
};
/* From r's query and path. 0 or 400. */
int bh_sim_filter_init(struct bh_sim_req *r, struct bh_sim_filter *f);
void bh_sim_filter_fini(struct bh_sim_filter *f);
bool bh_sim_filter_match(const struct bh_sim_filter *f, const struct bh_sim_obj *o);

/* ---- handlers -------------------------------------------------------------------------------- */

void bh_sim_do_list(struct bh_sim_req *r);   /* list.c */
void bh_sim_do_get(struct bh_sim_req *r);    /* list.c */
void bh_sim_do_watch(struct bh_sim_req *r);  /* watch.c */
void bh_sim_do_post(struct bh_sim_req *r);   /* verbs.c */
void bh_sim_do_put(struct bh_sim_req *r);    /* verbs.c */
void bh_sim_do_patch(struct bh_sim_req *r);  /* verbs.c */
void bh_sim_do_remove(struct bh_sim_req *r); /* verbs.c; one object or a collection */
/* The request's patch on doc. kind: for strategic merge. 0 or a code. */
int bh_sim_patch(struct bh_sim_req *r, const char *kind, const struct bh_json *doc,
                 struct bh_json **ret);
void bh_sim_do_scale(struct bh_sim_req *r);   /* scale.c */
void bh_sim_do_review(struct bh_sim_req *r);  /* review.c */
void bh_sim_do_log(struct bh_sim_req *r);     /* review.c */
void bh_sim_do_metrics(struct bh_sim_req *r); /* metrics_api.c */
/* discovery.c, openapi.c, nonresource.c: everything outside /api/v1/x and /apis/g/v/x. false = not
 * theirs. */
bool bh_sim_do_discovery(struct bh_sim_req *r);
bool bh_sim_do_openapi(struct bh_sim_req *r);
bool bh_sim_do_misc(struct bh_sim_req *r);

/* Query helpers. */
bool bh_sim_query_bool(const struct bh_sim_req *r, const char *name, bool dflt);
bool bh_sim_dry_run(struct bh_sim_req *r); /* fills r->e when the value is unknown */
/* 0 = parsed into *ret (0 when absent or "0"), else 400. */
int bh_sim_parse_rv(struct bh_sim_req *r, const char *text, uint64_t *ret);
/* Refuses revisions of the future: after waiting a little. true: answered or waiting. */
bool bh_sim_rv_future(struct bh_sim_req *r, uint64_t rv);

/* ---- wait.c ---------------------------------------------------------------------------------- */

/* Handles r again after delay; r->done is set. */
void bh_sim_wait(struct bh_sim_req *r, int64_t delay_ns);

/* ---- route.c, server.c ----------------------------------------------------------------------- */

void bh_sim_handle(struct bh_sim *s, struct bh_http_req *http, bool waited, uint64_t start_ns);
void bh_sim_route(struct bh_sim_req *r);

/* ---- security.c ------------------------------------------------------------------------------ */

/* Host, Origin, token. 0, or 401/403 with r->e filled. */
int bh_sim_check_client(struct bh_sim_req *r);
/* Whether a token file, with lines "token" or "token,user,uid,groups", has this token; *ret_user is
 * what stands behind it. */
bool bh_sim_token_find(const char *file, const char *given, struct bh_str *ret_user);
bool bh_sim_equal_secret(const char *a, size_t an, const char *b, size_t bn);

/* ---- token.c --------------------------------------------------------------------------------- */

struct bh_sim_caller {
    const struct bh_json *user;      /* as bh_sim_req.user */
    const struct bh_json *audiences; /* in: the wanted ones, NULL: this server; out: those of them
                                        that the token is for */
};
/* 0, or -EACCES with err when nobody has this token. */
int bh_sim_token_user(struct bh_sim *s, struct bh_arena *a, const char *token,
                      struct bh_sim_caller *ret, struct bh_err *err);
/* groups: "a,b"; system:authenticated comes by itself. */
struct bh_json *bh_sim_user_new(struct bh_arena *a, const char *name, const char *uid,
                                const char *groups);
/* The groups of system:serviceaccount:NS:NAME, "" of everybody else. */
const char *bh_sim_service_account_groups(struct bh_arena *a, const char *user);
void bh_sim_do_token(struct bh_sim_req *r);

/* ---- rbac.c ---------------------------------------------------------------------------------- */

/* What somebody wants to do: to a resource, or (path) to a path. "" where upstream has nothing. */
struct bh_sim_ask {
    const char *verb, *group, *resource, *sub, *ns, *name;
    const char *path; /* NULL: a resource */
};
/* user NULL: the administrator, who may do all. *ret_why: upstream's reason, "" = none. */
bool bh_sim_may(struct bh_sim *s, struct bh_arena *a, const struct bh_json *user,
                const struct bh_sim_ask *ask, const char **ret_why);
/* The status of a SelfSubjectRulesReview. */
struct bh_json *bh_sim_rules_of(struct bh_sim *s, struct bh_arena *a, const struct bh_json *user,
                                const char *ns);
/* Whom the request's Impersonate- headers name: into r->user, if its sender may. 0 or a code. */
int bh_sim_impersonate(struct bh_sim_req *r);
/* r->user may do what r asks for. 0 or 403. */
int bh_sim_authorize(struct bh_sim_req *r);

#endif
