/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/console/moment.h - the cluster at one moment, for questions in worker threads
 *
 * Taken in the loop: references to every object that may say something about placement, custom
 * resources too. In the worker those that the engine or a profile's plugins ask for become a trial
 * (simulator/trial/trial.h), whose engine decides as the scheduler would.
 * Extenders are not asked. What the scheduler has decided and no binder has written yet counts, as
 * in `berth explain`.
 */
#ifndef BH_CONSOLE_MOMENT_H
#define BH_CONSOLE_MOMENT_H

#include "simulator/console/console.h"
#include "simulator/trial/trial.h"

/* Custom resources of one kind. What their type says may change with its definition, in the loop. */
struct bh_console_customs {
    char *group, *plural, *kind;
    bool namespaced;
    struct bh_sim_objs objs;
};
struct bh_console_moment {
    uint64_t revision;
    struct bh_sim_objs objs; /* of built-in kinds */
    struct bh_console_customs *customs;
    size_t n_customs, cap_customs;
    struct bh_feature_gates gates; /* the server's, and of the scheduler that works here */
    const char *runtime_dir;       /* NULL = no scheduler is known */
    char *body;                    /* of the request, NUL-terminated */
    size_t body_n;
};
/* In the loop. */
struct bh_console_moment *bh_console_moment_take(struct bh_sim_req *r, bool with_objects);
void bh_console_moment_drop(void *m); /* a bh_console_release_fn */
/* NULL: there are no custom resources of that kind, no object of that name. The moment's. */
const struct bh_console_customs *bh_console_moment_custom(const struct bh_console_moment *m,
                                                          const char *kind);
const struct bh_sim_obj *bh_console_moment_find(const struct bh_console_moment *m, const char *kind,
                                                const char *ns, const char *name);

/* ---- in the worker --------------------------------------------------------------------------- */

/* One question: its job, moment, and memory. */
struct bh_console_question {
    struct bh_console_job *job;
    const struct bh_console_moment *moment;
    struct bh_arena a; /* the caller's to release, whatever came of it */
    uint64_t started_ns;
    const struct bh_json *body;
    const struct bh_json *running; /* configuration in force, without extenders; NULL = defaults */
    const char *configuration;     /* where that came from: a path or "defaults" */
};
/* These return 0, or -1 with the job answered. */
/* Begins one: its body is an object with no other members than these ("pods:list max:number pod";
 * kinds: list, text, number (a whole one), bool). */
int bh_console_question_open(struct bh_console_question *q, struct bh_console_job *j,
                             const struct bh_console_moment *m, const char *members);
int bh_console_question_members(struct bh_console_question *q, const struct bh_json *obj,
                                const char *field, const char *members);
/* Fills running and configuration. */
int bh_console_question_running(struct bh_console_question *q);
/* A configuration given as text; text NULL: the running one. */
int bh_console_question_config(struct bh_console_question *q, const char *field, const char *text,
                               const struct bh_json **ret);
/* The pod as its controller would make it anew, in place of the one that is there. */
int bh_console_question_unbind(struct bh_console_question *q, struct bh_trial *t,
                               const struct bh_sim_obj *pod);
/* A trial with all objects of the moment, to which more may be added before it is prepared.
 * unbind: "ns/name" or NULL. */
int bh_console_question_trial(struct bh_console_question *q, const struct bh_json *config,
                              const char *unbind, struct bh_trial **ret);
/* Objects of a manifest, which is text or an object, into the trial. fn may be NULL. */
int bh_console_question_add(struct bh_console_question *q, struct bh_trial *t, const char *field,
                            const struct bh_json *manifest, bh_trial_object_fn *fn, void *arg);
/* Then this, before anything is decided. field: what to blame for objects that are not valid. */
int bh_console_question_prepare(struct bh_console_question *q, struct bh_trial *t,
                                const char *field);
/* err as the answer, with the line that its text names. */
int bh_console_question_fail(struct bh_console_question *q, int code, const char *field,
                             const struct bh_err *err);
#endif
