/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/server/sim.h - the inside of berth-simulator: types, objects, store, admission, controllers
 *
 * The core (this folder) owns the store, HTTP and the watches. Three sub-folders are called by it:
 * admission/ (defaults and validation per kind), tables/ (kubectl's columns) and controllers/
 * (deployments, kubelet, ...). They use nothing but this header and common/.
 *
 * Objects: one immutable, reference-counted value per version. Its JSON text is what was stored; it
 * always carries apiVersion, kind and metadata.{name,uid,resourceVersion,creationTimestamp}.
 * Writes: every write, from HTTP or from a controller, takes the same path: tree -> metadata rules
 * (core) -> bh_sim_default() -> bh_sim_validate() -> commit -> watchers -> listeners. A write that
 * changes nothing commits nothing (same resourceVersion, no event, no listener call). Deletion: the
 * core marks (deletionTimestamp, finalizers `foregroundDeletion` and `orphan` as the propagation
 * policy asks; namespaces: status.phase Terminating, kept while spec.finalizers is not empty) and
 * removes an object as soon as it is marked, out of grace and free of finalizers - also when an
 * edit takes the last finalizer away. Emptying namespaces, deleting or orphaning dependents and
 * stopping pods is the work of controllers/. The namespace's default spec.finalizers, a pod's
 * status {phase, qosClass} at creation and all other per-kind content is the work of admission/;
 * the core only drops or keeps `status` as a whole.
 * Threads: one; everything runs in the loop. Listeners run deferred: never inside a write.
 */
#ifndef BH_SIM_H
#define BH_SIM_H

#include "common/base/arena.h"
#include "common/base/buf.h"
#include "common/data/json.h"
#include "common/k8s/quantity.h"
#include <protobuf-c/protobuf-c.h>
#include <uv.h>

struct bh_sim;
struct bh_sim_obj;

/* ---- types -------------------------------------------------------------------------------------
 * Static table in types.c, in discovery order, and for each server the types of its
 * CustomResourceDefinitions (custom.c). Compare types by pointer; switch by kind string. A type
 * stays where it is until the server ends. */
enum bh_sim_verbs {
    BH_SIM_CREATE = 1 << 0,
    BH_SIM_DELETE = 1 << 1,
    BH_SIM_DELETECOLLECTION = 1 << 2,
    BH_SIM_GET = 1 << 3,
    BH_SIM_LIST = 1 << 4,
    BH_SIM_PATCH = 1 << 5,
    BH_SIM_UPDATE = 1 << 6,
    BH_SIM_WATCH = 1 << 7,
    BH_SIM_ALL_VERBS = 0xff
};
enum bh_sim_type_flags {
    BH_SIM_NAMESPACED = 1 << 0,
    BH_SIM_HAS_STATUS = 1 << 1, /* status subresource: a main update keeps status, a status update
                                   keeps the rest */
    BH_SIM_HAS_SCALE = 1 << 2,
    BH_SIM_GRACEFUL = 1 << 3,       /* delete waits for a grace period (pods) */
    BH_SIM_GENERATION = 1 << 4,     /* metadata.generation counts changes of spec */
    BH_SIM_KEEP_STATUS = 1 << 5,    /* create takes the given status (nodes) */
    BH_SIM_UPSERT = 1 << 6,         /* PUT creates what is missing */
    BH_SIM_NAME_LABEL = 1 << 7,     /* name is a DNS label, not a subdomain */
    BH_SIM_NAME_FREE = 1 << 8,      /* name is any path segment (RBAC) */
    BH_SIM_RETURN_DELETED = 1 << 9, /* DELETE answers with the object, not with a Status */
    BH_SIM_REVIEW = 1 << 10,        /* nothing is stored: POST answers (access reviews) */
    BH_SIM_CUSTOM = 1 << 11,        /* of a CustomResourceDefinition (crd/crd.h) */
    BH_SIM_COMPUTED = 1 << 12,      /* nothing is stored: GET answers (metrics.k8s.io) */
    BH_SIM_DEFINES = 1 << 13,       /* its objects make types: CustomResourceDefinitions */
    BH_SIM_ON_DEMAND = 1 << 14 /* served if gate and --runtime-config ask for it (features.c) */
};
struct bh_sim_bucket;
struct bh_sim_type;
/* What a version of a CustomResourceDefinition adds to its type. Trees are borrowed until the
 * definition is written again. */
struct bh_sim_custom {
    const struct bh_json *schema;     /* openAPIV3Schema; NULL: anything goes */
    struct bh_crd_rules *rules;       /* its CEL rules, NULL = none; the definition's */
    const struct bh_json *columns;    /* additionalPrinterColumns, NULL = none */
    const struct bh_json *scale;      /* subresources.scale, NULL = none */
    const struct bh_sim_type *stored; /* the version whose store holds the objects */
    struct bh_sim_bucket *bucket;     /* that store; core only */
    bool live;                        /* false: the definition is gone */
    bool served;                      /* clients can reach it */
    bool terminating;                 /* nothing may be created any more */
};
struct bh_sim_type {
    const char *group;       /* "" for core */
    const char *version;     /* "v1" */
    const char *kind;        /* "Pod" */
    const char *plural;      /* "pods" */
    const char *singular;    /* "pod" */
    const char *short_names; /* comma separated, "" = none */
    const char *categories;  /* comma separated: "all" */
    const char *fields;      /* extra field selectors, comma separated JSON paths; metadata.name and
                                metadata.namespace always work */
    unsigned flags;          /* enum bh_sim_type_flags */
    unsigned verbs;          /* enum bh_sim_verbs */
    const ProtobufCMessageDescriptor *pb; /* NULL = JSON only */
    const char *stored_as; /* NULL = itself, else "group/version" of the type whose store holds it:
                              events.k8s.io/v1 events live as v1 events. Objects, listeners and
                              admission see the stored type only. */
    const struct bh_sim_custom *custom; /* NULL for the table's types */
};
extern const struct bh_sim_type bh_sim_types[];
extern const size_t bh_sim_n_types;
/* group "" and "core" are the same; NULL when not served. */
const struct bh_sim_type *bh_sim_type_find(const char *group, const char *version,
                                           const char *plural);
/* The same of the table, looked up once in each place. */
#define BH_SIM_TYPE(group, version, plural)                                                        \
    ({                                                                                             \
        static _Thread_local const struct bh_sim_type *found_;                                     \
        if (!found_)                                                                               \
            found_ = bh_sim_type_find(group, version, plural);                                     \
        found_;                                                                                    \
    })
/* api_version "apps/v1"; NULL api_version = first type of that kind in table order. */
const struct bh_sim_type *bh_sim_type_of_kind(const char *api_version, const char *kind);
/* The same among all types of this server. */
const struct bh_sim_type *bh_sim_find_type(const struct bh_sim *s, const char *group,
                                           const char *version, const char *plural);
const struct bh_sim_type *bh_sim_find_kind(const struct bh_sim *s, const char *api_version,
                                           const char *kind);
/* All types of this server; NULL where one was that is gone. */
size_t bh_sim_type_count(const struct bh_sim *s);
const struct bh_sim_type *bh_sim_type_at(const struct bh_sim *s, size_t i);
/* Whether clients see it: not every version of a custom resource is served, nor alpha APIs. */
bool bh_sim_type_served(const struct bh_sim *s, const struct bh_sim_type *t);
/* A gate of --feature-gates (common/flags/feature_gates.data). */
bool bh_sim_feature(const struct bh_sim *s, const char *gate);
const struct bh_feature_gates *bh_sim_gates(const struct bh_sim *s);
/* Whether objects of t are kept under t itself: no review, no metrics, no second representation. */
bool bh_sim_type_stores(const struct bh_sim_type *t);
#define BH_SIM_CRD_GROUP     "apiextensions.k8s.io"
#define BH_SIM_CRD_PLURAL    "customresourcedefinitions"
#define BH_SIM_CRD_FINALIZER "customresourcecleanup.apiextensions.k8s.io"
/* The type whose store holds t's objects: t itself for all but the second representations. */
const struct bh_sim_type *bh_sim_type_stored(const struct bh_sim_type *t);
/* "apps/v1" or "v1" */
void bh_sim_type_api_version(const struct bh_sim_type *t, char out[static 80]);

/* ---- refusals ----------------------------------------------------------------------------------
 * What a client sees as a Status. code 0 = none. Messages live in the struct (no ownership). */
struct bh_sim_cause {
    char type[40];           /* "FieldValueInvalid", "FieldValueRequired", ... */
    uint16_t field, message; /* offsets in texts */
};
#define BH_SIM_MAX_CAUSES  48
#define BH_SIM_CAUSE_BYTES 12288 /* of all causes; what is more is cut */
struct bh_sim_error {
    int code;        /* HTTP */
    char reason[40]; /* "NotFound", "Conflict", "Invalid", "Forbidden", ... */
    char message[8192];
    char details_group[64], details_kind[64], details_name[256], details_uid[40];
    int retry_after_s;
    unsigned n_causes;
    uint16_t n_texts;
    struct bh_sim_cause causes[BH_SIM_MAX_CAUSES];
    char texts[BH_SIM_CAUSE_BYTES];
};
static inline const char *bh_sim_cause_field(const struct bh_sim_error *e, unsigned i)
{
    return e->texts + e->causes[i].field;
}
static inline const char *bh_sim_cause_message(const struct bh_sim_error *e, unsigned i)
{
    return e->texts + e->causes[i].message;
}
/* No refusal; as {0}, without the thousands of bytes that n_causes = 0 hides. */
static inline void bh_sim_error_init(struct bh_sim_error *e)
{
    e->code = 0;
    *e->reason = *e->message = '\0';
    memset(e->details_group, 0,
           offsetof(struct bh_sim_error, causes) - offsetof(struct bh_sim_error, details_group));
}
/* Fills e (the first refusal wins: a second call on a filled e changes nothing) and returns
 * code. */
int bh_sim_fail(struct bh_sim_error *e, int code, const char *reason, const char *fmt, ...)
    BH_PRINTF(4, 5);
/* Adds one field error; all of them together become one 422 Invalid whose message the core writes:
 *   Pod "x" is invalid: spec.containers: Required value
 * kind: "Required value", "Invalid value", "Unsupported value", "Forbidden", "Duplicate value",
 * "Not found", "Too long", "Too many". value: JSON text shown after the kind, so a string comes
 * with its quotes ("\"x\"", "-1"); NULL = not shown. Text "" = none. Errors that do not fit any
 * more are dropped. */
void bh_sim_field_error(struct bh_sim_error *e, const char *field, const char *kind,
                        const char *value, const char *fmt, ...) BH_PRINTF(5, 6);
/* A cause with a type of its own. */
void bh_sim_error_cause(struct bh_sim_error *e, const char *type, const char *field,
                        const char *message);
/* The Status' details: kind is t's kind, or the name of its resource. */
void bh_sim_error_about(struct bh_sim_error *e, const struct bh_sim_type *t, const char *kind,
                        const char *name);

/* What is wrong with a name, a label's key or its value. */
#define BH_SIM_SUBDOMAIN_TEXT                                                                      \
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "   \
    "'.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used "  \
    "for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
#define BH_SIM_LABEL_TEXT                                                                          \
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and "   \
    "must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex "     \
    "used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
#define BH_SIM_KEY_TEXT                                                                            \
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end "  \
    "with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for " \
    "validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
#define BH_SIM_VALUE_TEXT                                                                          \
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or "    \
    "'.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value', " \
    " or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"

/* ---- objects --------------------------------------------------------------------------------- */
struct bh_sim_label {
    const char *key, *value;
};
struct bh_sim_obj {
    uint32_t refs;
    const struct bh_sim_type *type;
    const char *ns, *name, *uid; /* ns "" for cluster-scoped; NUL-terminated, owned by the object */
    uint64_t rv;
    int64_t generation;
    const char *json; /* text, NUL-terminated, compact */
    uint32_t json_n;
    /* hot fields, "" when absent */
    const char *node_name;  /* pods: spec.nodeName */
    const char *phase;      /* status.phase */
    const char *owner_uid;  /* controller owner's uid (ownerReferences[controller=true]) */
    const char *owner_kind; /* its kind */
    bool deleting;          /* metadata.deletionTimestamp present */
    bool has_annotations;   /* metadata.annotations is not empty */
    bool has_finalizers; /* metadata.finalizers, or a namespace's spec.finalizers, is not empty */
    uint32_t n_labels;
    const struct bh_sim_label *labels;
    uint32_t n_owners; /* uids of all ownerReferences */
    const char *const *owner_uids;
    uint32_t head_n; /* core only: bytes of this block before json */
    /* core only: where in json the digits of resourceVersion, the values of spec and of status
     * are */
    uint32_t rv_at, rv_n, spec_at, spec_n, status_at, status_n;
};
struct bh_sim_obj *bh_sim_obj_ref(struct bh_sim_obj *o);
void bh_sim_obj_unref(struct bh_sim_obj *o); /* NULL allowed */
/* The object as a fresh, editable tree. Never fails (stored text is valid). */
struct bh_json *bh_sim_obj_tree(struct bh_arena *a, const struct bh_sim_obj *o);
const char *bh_sim_obj_label(const struct bh_sim_obj *o, const char *key); /* NULL when absent */
const char *bh_sim_get_label(void *obj, const char *key); /* the same for bh_selector_match() */

/* ---- reading -----------------------------------------------------------------------------------
 * Borrowed results stay valid until the next write; take a reference to keep them. */
const char *bh_sim_ca_pem(const struct bh_sim *s); /* "" = none */
struct bh_sim_obj *bh_sim_get(struct bh_sim *s, const struct bh_sim_type *t, const char *ns,
                              const char *name);
/* A set of referenced objects, in (namespace, name) order; free with bh_sim_objs_fini(). Safe
 * against writes made while walking it (the objects are the versions of the moment of the call). */
struct bh_sim_objs {
    struct bh_sim_obj **v;
    size_t n;
};
void bh_sim_objs_fini(struct bh_sim_objs *l);
/* ns NULL or "" = all namespaces. */
void bh_sim_list(struct bh_sim *s, const struct bh_sim_type *t, const char *ns,
                 struct bh_sim_objs *ret);
/* Pods whose spec.nodeName is node ("" = not assigned). Unordered. */
void bh_sim_pods_on_node(struct bh_sim *s, const char *node, struct bh_sim_objs *ret);
/* Objects of every type (t NULL) or of type t whose ownerReferences name uid (controller or not).
 * Unordered. */
void bh_sim_owned_by(struct bh_sim *s, const char *owner_uid, const struct bh_sim_type *t,
                     struct bh_sim_objs *ret);
/* The same as values. */
static inline struct bh_sim_objs bh_sim_listed(struct bh_sim *s, const struct bh_sim_type *t,
                                               const char *ns)
{
    struct bh_sim_objs l;

    bh_sim_list(s, t, ns, &l);
    return l;
}
static inline struct bh_sim_objs bh_sim_owned(struct bh_sim *s, const char *owner_uid,
                                              const struct bh_sim_type *t)
{
    struct bh_sim_objs l;

    bh_sim_owned_by(s, owner_uid, t, &l);
    return l;
}
static inline struct bh_sim_objs bh_sim_on_node(struct bh_sim *s, const char *node)
{
    struct bh_sim_objs l;

    bh_sim_pods_on_node(s, node, &l);
    return l;
}
/* A role's rules; those that an aggregationRule selects, when it has one. NULL: none. */
const struct bh_json *bh_sim_role_rules(struct bh_sim *s, struct bh_arena *a,
                                        const struct bh_json *role);
size_t bh_sim_count(struct bh_sim *s, const struct bh_sim_type *t);
uint64_t bh_sim_revision(const struct bh_sim *s); /* resourceVersion of the last commit */

/* ---- writing -----------------------------------------------------------------------------------
 * Return 0 or the HTTP code of the refusal, with e filled (e may be NULL). *ret_obj (may be NULL)
 * gets a reference. obj is a tree in the caller's arena; the core edits it in place. */
enum bh_sim_sub {
    BH_SIM_MAIN,
    BH_SIM_STATUS,
    BH_SIM_WHOLE,    /* both, for controllers */
    BH_SIM_RESIZE,   /* pods: resources of containers and nothing else */
    BH_SIM_EPHEMERAL /* pods: containers for debugging and nothing else */
};

int bh_sim_create(struct bh_sim *s, const struct bh_sim_type *t, const char *ns, struct bh_arena *a,
                  struct bh_json *obj, struct bh_sim_obj **ret_obj, struct bh_sim_error *e);
/* metadata.resourceVersion in obj, when present, must be the current one (409 Conflict). */
int bh_sim_update(struct bh_sim *s, const struct bh_sim_type *t, const char *ns, const char *name,
                  enum bh_sim_sub sub, struct bh_arena *a, struct bh_json *obj,
                  struct bh_sim_obj **ret_obj, struct bh_sim_error *e);
/* Parses the current version once, lets edit() change the tree, writes it. edit returns false to
 * leave the object alone (result 0, nothing written). 404 when the object is gone, or when uid is
 * not NULL and another object of that name lives there. The cheapest way to change something. */
typedef bool bh_sim_edit_fn(void *arg, struct bh_arena *a, struct bh_json *obj);
int bh_sim_edit(struct bh_sim *s, const struct bh_sim_type *t, const char *ns, const char *name,
                const char *uid, enum bh_sim_sub sub, bh_sim_edit_fn *edit, void *arg,
                struct bh_sim_obj **ret_obj, struct bh_sim_error *e);
struct bh_sim_delete_options {
    int64_t grace_s; /* -1 = the object's own, 0 = at once */
    const char *uid; /* preconditions, NULL = none */
    const char *resource_version;
    const char *propagation; /* "Background" (also NULL), "Foreground", "Orphan" */
};
/* With grace or finalizers left the object stays, marked with deletionTimestamp. o may be NULL.
 * For a pod: grace_s = 0 (the kubelet's final delete) removes it; without finalizers for good. */
int bh_sim_delete(struct bh_sim *s, const struct bh_sim_type *t, const char *ns, const char *name,
                  const struct bh_sim_delete_options *o, struct bh_sim_error *e);
/* Sets spec.nodeName etc. exactly as POST pods/NAME/binding does (labels/annotations NULL =
 * none). */
int bh_sim_bind(struct bh_sim *s, const char *ns, const char *pod, const char *uid,
                const char *node, const struct bh_json *labels, const struct bh_json *annotations,
                struct bh_sim_error *e);
/* As another server has it (--observe): obj, with its uid, in place of what is there. No defaults,
 * no checks, no controllers. NULL obj: it is gone there. */
void bh_sim_mirror(struct bh_sim *s, const struct bh_sim_type *t, const char *ns, const char *name,
                   struct bh_arena *a, struct bh_json *obj);
/* Creates or counts up a v1 Event about regarding (source = component). Best effort. */
void bh_sim_event(struct bh_sim *s, const struct bh_sim_obj *regarding, const char *type,
                  const char *reason, const char *component, const char *fmt, ...) BH_PRINTF(6, 7);

/* ---- listening, time ------------------------------------------------------------------------- */
enum bh_sim_change { BH_SIM_ADDED, BH_SIM_MODIFIED, BH_SIM_DELETED };
/* old NULL when ADDED; new is the last state when DELETED. Called in commit order, once per commit,
 * deferred; what it sees in the store may be newer than new. t NULL = every type. */
typedef void bh_sim_listener(void *arg, enum bh_sim_change c, struct bh_sim_obj *old,
                             struct bh_sim_obj *new_obj);
void bh_sim_listen(struct bh_sim *s, const struct bh_sim_type *t, bh_sim_listener *fn, void *arg);
/* Runs pending listener calls until none is left; for tests. */
void bh_sim_drain(struct bh_sim *s);

uv_loop_t *bh_sim_loop(struct bh_sim *s);
int64_t bh_sim_now_ns(const struct bh_sim *s); /* wall clock of API objects */
/* The clock that timers and durations go by: never runs back. Equal to bh_sim_now_ns() under a
 * manual clock. Controllers ask no other clock than these two. */
uint64_t bh_sim_mono_ns(const struct bh_sim *s);
/* One call of fn after delay_ns (0 = next turn of the loop). Frees itself after the call. */
struct bh_sim_timer;
struct bh_sim_timer *bh_sim_after(struct bh_sim *s, int64_t delay_ns, void (*fn)(void *arg),
                                  void *arg);
void bh_sim_cancel(struct bh_sim_timer *t); /* before it fired; NULL allowed */

/* ---- a clock of its own -------------------------------------------------------------------------
 * With bh_sim_options.manual_clock time stands still until bh_sim_advance() moves it. Neither
 * listeners nor timers run in the loop then: everything the simulated cluster does by itself
 * happens inside bh_sim_advance(), in an order that depends on nothing but what was done to the
 * store. With the same seed, first_revision and the same calls two runs commit the same objects, to
 * the byte: names, uids, versions, times. The loop is needed for HTTP only (whose own timers, for
 * bookmarks and slow clients, follow the machine's clock). Writes may be made at any time; they
 * carry the present virtual time, and controllers hear of them at the next bh_sim_advance().
 * Controllers take no time of their own: what follows from a step at T happens at T, except where
 * the API says otherwise (kubelet delay, grace periods, tolerationSeconds, run times, ...). */
bool bh_sim_manual_clock(const struct bh_sim *s);
/* Moves the clock to to_ns, stopping at each timer that is due until then: tells listeners of all
 * commits, fires one timer, tells again, and so on; ends with nothing left to do at to_ns. Timers
 * of the same time fire in the order in which they were armed. A to_ns of now or before settles
 * what is due now. -ELOOP: something arms itself again and again without time passing. Not from
 * inside a listener or timer. */
int bh_sim_advance(struct bh_sim *s, int64_t to_ns);
/* When the simulation would do something next by itself: now (when commits wait for listeners), a
 * time, or INT64_MAX = never, unless something is written. Server housekeeping does not count. */
int64_t bh_sim_next_ns(const struct bh_sim *s);
/* 5 characters of "bcdfghjklmnpqrstvwxz2456789" */
void bh_sim_suffix(struct bh_sim *s, char out[static 6]);

/* ---- admission/ (called by the core) --------------------------------------------------------- */
enum bh_sim_op {
    BH_SIM_OP_CREATE,
    BH_SIM_OP_UPDATE,
    BH_SIM_OP_UPDATE_STATUS,
    BH_SIM_OP_RESIZE,
    BH_SIM_OP_EPHEMERAL
};
/* One write on its way into the store. The core has already set name, namespace, uid,
 * creationTimestamp, generation, checked the namespace, and (UPDATE) put the old status back or
 * (UPDATE_STATUS) the old rest. obj may be edited; old is never. */
struct bh_sim_write {
    struct bh_sim *sim;
    const struct bh_sim_type *type;
    const struct bh_sim_type *as; /* the representation the client used; NULL = type */
    enum bh_sim_op op;
    struct bh_arena *arena;
    struct bh_json *obj;
    const struct bh_json *old;        /* NULL on create */
    const struct bh_sim_obj *old_obj; /* NULL on create */
    struct bh_sim_error *error;       /* filled on refusal */
    struct bh_buf *warnings;          /* lines for Warning headers */
};
/* Defaulting and mutating admission. 0, or the HTTP code when refused (403 of priority, ...). Must
 * be idempotent: default(default(x)) = default(x), for it also runs on every update and patch. */
int bh_sim_default(struct bh_sim_write *w);
/* Validation, including immutable fields on update. Uses bh_sim_field_error(); the core looks at
 * error->n_causes afterwards. */
void bh_sim_validate(struct bh_sim_write *w);
/* Last step of a creation that is otherwise in order: adds it to the quotas of its namespace, or
 * refuses it with 403. Writes the quotas, unless dry_run. */
int bh_sim_charge(struct bh_sim_write *w, bool dry_run);
/* At binding, on the pod's tree, after the core's own edits (PodTopologyLabels). */
void bh_sim_default_binding(struct bh_sim *s, struct bh_arena *a, struct bh_json *pod,
                            const char *node);

/* ---- tables/ (called by the core)
 * ---------------------------------------------------------------- Appends JSON arrays: the
 * columnDefinitions of the kind ([{"name":...,"type":...,"format":...,
 * "description":...,"priority":0}, ...]) and one row's cells. obj is a parsed object. Unknown kinds
 * get Name and Age. */
void bh_sim_table_columns(const struct bh_sim_type *t, struct bh_buf *out);
void bh_sim_table_cells(const struct bh_sim_type *t, const struct bh_json *obj, int64_t now_ns,
                        struct bh_buf *out);

/* ---- console/ (called by the core) ------------------------------------------------------------- */
struct bh_sim_req;
void bh_console_start(struct bh_sim *s);
/* Before the store goes; waits for jobs in worker threads. NULL console allowed. */
void bh_console_stop(struct bh_sim *s);
/* Called by route.c for every request that passed the checks. false: not one of ours. */
bool bh_console_route(struct bh_sim_req *r);

/* The nodes' kubelets are this server's own. */
bool bh_sim_has_kubelet(const struct bh_sim *s);

/* ---- controllers/ (called by the core) ------------------------------------------------------- */
struct bh_sim_controller_options {
    int64_t kubelet_delay_ns; /* bound -> Running; also graceful delete -> gone */
    bool kubelet;             /* run bound pods, bring up nodes */
    int64_t node_grace_ns;    /* stopped kubelet -> node Unknown; 0 = 40 s */
};
/* Annotations that tell the stand-in kubelet what to do. Of a node: "stopped" = it is silent.
 * Of a pod: how long it runs (Go duration), and with what exit code it ends then (0); without the
 * first one its containers' commands tell. KWOK's name for the run time is understood too. */
#define BH_SIM_KUBELET   "sim.berth.dev/kubelet"
#define BH_SIM_RUN_TIME  "sim.berth.dev/run-time"
#define BH_SIM_EXIT_CODE "sim.berth.dev/exit-code"
#define BH_SIM_KWOK_TIME "pod-complete.stage.kwok.x-k8s.io/delay"

struct bh_sim_controllers;
/* Registers listeners; looks at what is already in the store. */
struct bh_sim_controllers *bh_sim_controllers_start(struct bh_sim *s,
                                                    const struct bh_sim_controller_options *o);
void bh_sim_controllers_stop(
    struct bh_sim_controllers *c); /* before the store goes; NULL allowed */
#endif
