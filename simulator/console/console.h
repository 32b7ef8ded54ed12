/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/console/console.h - what the simulator answers besides the Kubernetes API
 *
 * Three groups of paths, on the same port and behind the same checks (simulator/server/security.c):
 *   /ui/...        the web page: files of share/berth/web, nothing else (web.c)
 *   /api/v1/X      kube-scheduler-simulator's own paths (schedulerconfiguration, reset, export,
 *                  import, listwatchresources): no name of a core resource collides with them
 *   /berth/v1/X    Berth's own; docs/simulator-api.md is their contract
 *
 * An endpoint is a line in routes[] (console.c) and a function in the file of its subject. Handlers
 * run in the loop and must be quick; what takes longer than a few milliseconds is given to
 * bh_console_work(), which runs it in a worker thread and answers later.
 *
 * Errors are {"message": TEXT} with a status code; "field" and "line" where they are known.
 * This folder may use simulator/server/req.h and the scheduler's libraries (as the core may).
 */
#ifndef BH_SIM_CONSOLE_H
#define BH_SIM_CONSOLE_H

#include "simulator/server/req.h"

#include <stdarg.h>

/* The path without its group's prefix, cut at '/': seg[0] is the endpoint's name. Decoded. */
#define BH_CONSOLE_SEGMENTS 6
struct bh_console_req {
    struct bh_sim_req *r;
    unsigned n;
    const char *seg[BH_CONSOLE_SEGMENTS];
};
typedef void bh_console_fn(struct bh_console_req *c);

/* Serves /ui/... (web.c). */
bool bh_console_web(struct bh_sim_req *r);

/* ---- state ------------------------------------------------------------------------------------
 * One for each server, sim->console. Every subject has a pointer here, made by its start function
 * and given back by its stop function; both stand in parts[] (console.c). NULL while the server has
 * no HTTP (bh_sim_new_bare). */
struct bh_console {
    struct bh_sim *sim;
    struct bh_console_jobs *jobs;           /* work.c */
    struct bh_console_totals *totals;       /* totals.h */
    struct bh_console_streams *streams;     /* stream.c */
    struct bh_console_scheduler *scheduler; /* scheduler.h */
    struct bh_console_baseline *baseline;   /* reset.c */
    struct bh_console_past *past;           /* past.h */
    struct bh_console_applying *importing;  /* import.c; NULL = none is under way */
    struct bh_player *replay;               /* replay.h */
    struct bh_console_decisions *decisions; /* decisions.h */
    struct bh_console_annotator *annotator; /* decisions.h; NULL: no annotations */
    struct bh_console_scenarios *scenarios; /* scenarios.h */
    struct bh_console_observe *observe;     /* observe.h; NULL: no other cluster is followed */
};

/* ---- work that takes longer (work.c) -----------------------------------------------------------
 * run() is called in a worker thread and sees nothing of the server: no store, no types of others,
 * only what arg holds. Texts of objects are immutable, so arg may hold references to objects
 * (bh_sim_obj_ref) that were taken in the loop; run() reads their json, ns, name, rv, ..., but
 * never counts references. release() is called in the loop, exactly once, after run() or instead of
 * it (client gone, server stopping): it gives references back and frees arg.
 * A job that takes longer than some milliseconds at a time looks at bh_console_job_dropped(). */
struct bh_console_job;
typedef void bh_console_run_fn(struct bh_console_job *j, void *arg);
typedef void bh_console_release_fn(void *arg);
/* At most BH_CONSOLE_JOBS at a time; beyond that the answer is 429 and arg is released at once. */
#define BH_CONSOLE_JOBS 8
void bh_console_work(struct bh_console_req *c, bh_console_run_fn *run,
                     bh_console_release_fn *release, void *arg);
/* The answer, from run(): the last one counts; none at all is a 500. */
void bh_console_job_reply(struct bh_console_job *j, int code, const struct bh_json *v);
int bh_console_job_fail(struct bh_console_job *j, int code, const char *field, unsigned line,
                        const char *fmt, ...) BH_PRINTF(5, 6); /* -1 */
/* The body to write by hand instead; content_type: a literal, NULL = JSON. */
struct bh_buf *bh_console_job_body(struct bh_console_job *j, int code, const char *content_type);
/* The client left or the server stops: no answer is wanted any more. Any thread. */
bool bh_console_job_dropped(const struct bh_console_job *j);
/* Back in the loop, after run() and before the answer goes: for jobs whose result is to be written
 * into the store. done() answers on r as a handler does; r is NULL when the client left while run()
 * was at it. Not called when run() was not, or left a code of 300 or more (which is the answer). */
typedef void bh_console_done_fn(struct bh_sim_req *r, struct bh_sim *s, void *arg);
void bh_console_work_then(struct bh_console_req *c, bh_console_run_fn *run,
                          bh_console_done_fn *done, bh_console_release_fn *release, void *arg);
/* The same without a client: r is NULL. The caller sees to it that one of a kind is under way. */
void bh_console_background(struct bh_sim *s, bh_console_run_fn *run, bh_console_done_fn *done,
                           bh_console_release_fn *release, void *arg);

/* ---- rows of pseudo kinds in GET /berth/v1/watch (stream.c) ------------------------------------
 * Called in the loop, about every 100 ms for each stream that asked for kind, and only while its
 * reader keeps up: appends to out the changes after *cursor with bh_console_change(), oldest first,
 * and moves *cursor behind them. *cursor 0: the state, as ADDED. At most some hundred rows a call.
 * Returns 1 when more is left at once, 0 when out is up to date, -ESTALE when *cursor is too far
 * back (the stream then tells its reader "reset" and starts again from 0). */
typedef int bh_console_rows_fn(struct bh_sim *s, uint64_t *cursor, struct bh_buf *out);
void bh_console_publish(struct bh_sim *s, const char *kind, bh_console_rows_fn *fn);
/* One change: {"type":TYPE,"row":ROW}. */
void bh_console_change(struct bh_buf *out, const char *type, const struct bh_json *row);

/* ---- what several handlers need -------------------------------------------------------------- */
/* Appends references to all objects of type t. */
void bh_console_list_more(struct bh_sim *s, const struct bh_sim_type *t, struct bh_sim_objs *to);
/* A copy of the body, which ends in NUL. */
char *bh_console_body(struct bh_sim_req *r, size_t *ret_n);
/* The number behind the first "line " of an error's text, 0 when it names none. */
unsigned bh_console_line_of(const struct bh_err *err);

/* ---- answers --------------------------------------------------------------------------------- */
void bh_console_reply(struct bh_sim_req *r, int code, const struct bh_json *v); /* NULL: empty */
/* {"message": ...}; field NULL and line 0: left out. Returns false. */
bool bh_console_fail(struct bh_sim_req *r, int code, const char *field, unsigned line,
                     const char *fmt, ...) BH_PRINTF(5, 6);
/* The text of such an answer. */
void bh_console_error_text(struct bh_buf *out, const char *field, unsigned line, const char *fmt,
                           va_list ap) BH_PRINTF(4, 0);
#endif
