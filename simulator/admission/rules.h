/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/admission/rules.h - tables of rules (rules/NAME.data), and how they are applied to an object
 *
 * A set of rules belongs to a type of the schema; its lines name for each member what has to hold, in
 * the order in which kube-apiserver reports. rules/README.md has the grammar. What a line cannot state
 * is a function that it names.
 *
 * Errors:  bh_rule_error(); a table that is wrong ends the process when the tables are read.
 * Threads: any; tables are read once and never change.
 */
#ifndef BH_RULES_H
#define BH_RULES_H

#include "simulator/admission/admission.h"
#include "simulator/schema/schema.h"

struct bh_rule_set;
struct bh_rule_call;
struct bh_rule_run {
    struct bh_sim_write *w;
    bool defaults;                     /* fill in, do not check */
    struct bh_rule_fault *bad_volumes; /* names of the pod's volumes that are not in order */
};
/* A place in an object: its value, and the one that the stored object has there. On the stack. */
struct bh_rule_at {
    const struct bh_rule_at *up;
    const struct bh_rule_at *base; /* whose path its own begins with, when that is not up */
    const char *member;            /* of an object; NULL: element, entry or the whole */
    const char *name;              /* how its path ends: the member, or what the table has */
    const char *key;               /* of a map's entry */
    size_t index;                  /* of an element */
    bool silent;                   /* its path ends there already */
    struct bh_json *v;             /* NULL: absent or null */
    const struct bh_json *old;
    const struct bh_oas_field *field; /* NULL: the whole object */
    const char *form;                 /* what of the field's form is left: "" = a value */
    const struct bh_oas_type *type;   /* of an object; NULL: of anything else */
};
/* False: it does not hold, an error has been added; the line's other rules are not looked at. */
typedef bool bh_rule_fn(struct bh_rule_run *r, const struct bh_rule_at *at,
                        const struct bh_rule_call *c);
struct bh_rule {
    const char *name;
    bh_rule_fn *fn;
};
struct bh_rule_call {
    bh_rule_fn *fn;
    const struct bh_rule_set *set; /* instead of fn */
    size_t n;
    const char *arg[80];
    int64_t num[2];              /* of the first two, when they are numbers */
    const struct bh_json *value; /* what is filled in */
    const char *of;              /* the member that is shown, NULL = the one that is checked */
};
/* The functions of each file; the last has no name. */
extern const struct bh_rule bh_rules_basic[], bh_rules_names[], bh_rules_pod[],
    bh_rules_resources[], bh_rules_kinds[], bh_rules_devices[];

/* Applies the set of that name to a whole object, or to the one at a place. */
void bh_rules_apply(struct bh_sim_write *w, const char *set);
/* Fills in what the set NAMEDefault has; obj: of the set's type. */
void bh_rules_default(struct bh_sim_write *w, const char *name, struct bh_json *obj);
/* The rules of metadata, which all kinds have. */
void bh_rules_apply_meta(struct bh_sim_write *w);
void bh_rules_apply_at(struct bh_rule_run *r, const struct bh_rule_set *set,
                       const struct bh_rule_at *at);
const struct bh_rule_set *bh_rules_find(const char *name); /* NULL: there is none */

/* ---- for functions --------------------------------------------------------------------------- */

/* The member of an object at `at` (no path: one level), an element of a list, an entry of a map. */
struct bh_rule_at bh_rule_member(const struct bh_rule_at *at, const char *name);
struct bh_rule_at bh_rule_element(const struct bh_rule_at *at, struct bh_json *v, size_t index);
struct bh_rule_at bh_rule_entry(const struct bh_rule_at *at, struct bh_json *v);
/* A place below at that exists in paths only: "NAME". */
struct bh_rule_at bh_rule_named(const struct bh_rule_at *at, const char *name);
/* The object around: the nearest with members, then the next. */
const struct bh_rule_at *bh_rule_holder(const struct bh_rule_at *at);
const struct bh_rule_at *bh_rule_root(const struct bh_rule_at *at);
/* A text that is absent: NULL when it is a pointer, else "". */
const char *bh_rule_text(const struct bh_rule_at *at);
/* False: absent, and a pointer. */
bool bh_rule_number(const struct bh_rule_at *at, int64_t *ret);
bool bh_rule_is_empty(const struct bh_json *v);
/* kind: "Required value" ... value NULL: not shown. */
void bh_rule_error(struct bh_rule_run *r, const struct bh_rule_at *at, const char *kind,
                   const char *value, const char *text);
/* "Invalid value" of the place itself; of a text; of a number. */
void bh_rule_invalid(struct bh_rule_run *r, const struct bh_rule_at *at, const char *text);
void bh_rule_invalid_text(struct bh_rule_run *r, const struct bh_rule_at *at, const char *value,
                          const char *text);
void bh_rule_invalid_number(struct bh_rule_run *r, const struct bh_rule_at *at, int64_t value,
                            const char *text);
void bh_rule_unsupported(struct bh_rule_run *r, const struct bh_rule_at *at, const char *value,
                         size_t n, const char *const *words);
const char *bh_rule_printf(struct bh_rule_run *r, const char *fmt, ...) BH_PRINTF(2, 3);
/* The place's value as Go prints it in errors. */
const char *bh_rule_shown(struct bh_rule_run *r, const struct bh_rule_at *at);
const char *bh_rule_quoted(struct bh_rule_run *r, const char *s);

/* rules_names.c: what is wrong with a text, as a list of sentences in the arena; NULL = nothing. */
struct bh_rule_fault {
    const char *text;
    struct bh_rule_fault *next;
};
typedef struct bh_rule_fault *bh_name_check(struct bh_rule_run *r, const char *s);
bh_name_check bh_name_label, bh_name_subdomain, bh_name_key, bh_name_label_value;
bh_rule_fn bh_rule_format; /* of the format that the first argument names */
bh_rule_fn bh_rule_ip, bh_rule_config_key;
/* An "Invalid value" for each; true when there are none. */
bool bh_rule_faults(struct bh_rule_run *r, const struct bh_rule_at *at, const char *value,
                    const struct bh_rule_fault *f);
#endif
