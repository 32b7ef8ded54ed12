/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/replay/load.c - a record file as an index of cleaned records
 *
 * Runs in a worker thread and touches nothing of the server.
 */
#include "simulator/replay/engine_int.h"

#include <errno.h>
#include <stdio.h>

void bh_player_error(struct bh_player_errors *e, unsigned line, const char *fmt, ...)
{
    va_list ap;

    e->total++;
    if (e->n == BH_REPLAY_LISTED)
        return;
    if (!e->v)
        e->v = bh_calloc(BH_REPLAY_LISTED, sizeof(*e->v));
    struct bh_player_error *x = &e->v[e->n++];
    x->line = line;
    va_start(ap, fmt);
    vsnprintf(x->message, sizeof(x->message), fmt, ap);
    va_end(ap);
}

/* The record with what is left of its object; false when nothing is to be done for it. */
static bool cleaned(struct bh_arena *a, const struct bh_record *rec, struct bh_json **ret,
                    bool *ret_takes)
{
    const struct bh_clean_kind *k = bh_clean_kind_find(rec->api_version, rec->kind);
    const char *why = NULL;

    if (!k)
        return false;
    *ret = bh_clean(a, k, rec->resource, NULL, &why);
    if (why && !bh_streq(why, "finished"))
        return false;
    *ret_takes = bh_streq(k->kind, "Node") ||
                 (bh_streq(k->kind, "Pod") && (why || rec->event == BH_RECORD_DELETE));
    /* A pod that has ended is worth telling only when it was seen before. */
    return !why || rec->event != BH_RECORD_ADD;
}

static void add(struct bh_player_file *f, struct bh_arena *a, const struct bh_record *rec)
{
    struct bh_json *obj = NULL;
    bool takes;

    if (!cleaned(a, rec, &obj, &takes)) {
        f->skipped++;
        return;
    }
    if ((f->n & (f->n - 1)) == 0)
        f->v = bh_reallocarray(f->v, f->n ? f->n * 2 : 1, sizeof(*f->v));
    struct bh_player_entry *e = &f->v[f->n];
    *e = (struct bh_player_entry){.time_ns = rec->time_ns,
                                  .at = f->text.n,
                                  .line = rec->line,
                                  .event = rec->event,
                                  .takes = takes};
    if (f->n && e->time_ns < e[-1].time_ns)
        e->time_ns = e[-1].time_ns;
    bh_json_write(&f->text, obj);
    e->n = (uint32_t)(f->text.n - e->at);
    f->n++;
}

void bh_player_file_read(struct bh_player_file *f, const void *p, size_t n, const atomic_bool *drop)
{
    struct bh_record_reader *r = bh_record_reader_new(p, n);
    BH_CLEANUP(bh_arena_fini) struct bh_arena a = {.limit_bytes = 64 * BH_RECORD_LINE_MAX};
    struct bh_err err;
    int rc = 1;

    while (rc != 0 && !atomic_load(drop)) {
        struct bh_record rec;
        rc = bh_record_next(r, &a, &rec, &err);
        if (rc == 1)
            add(f, &a, &rec);
        else if (rc == -EINVAL)
            bh_player_error(&f->errors, rec.line, "line %u: %s", rec.line, err.msg);
        if (f->text.n > BH_REPLAY_TEXT_MAX)
            rc = bh_err_set(&err, -E2BIG, "the file holds more than %zu MiB of records",
                            BH_REPLAY_TEXT_MAX >> 20);
        if (rc == -E2BIG || (rc == -EBADMSG && !f->n)) {
            f->fatal = err;
            break;
        }
        if (rc == -EBADMSG) { /* play what could be read */
            bh_player_error(&f->errors, rec.line, "line %u: %s", rec.line, err.msg);
            break;
        }
        bh_arena_reset(&a);
    }
    if (!f->n && !*f->fatal.msg) {
        if (f->errors.n)
            bh_err_set(&f->fatal, -EINVAL, "not one line is a record; %s", f->errors.v[0].message);
        else
            bh_err_set(&f->fatal, -EINVAL, "there is no record in it");
    }
    f->torn = bh_record_torn(r);
    bh_record_reader_free(r);
}

void bh_player_file_fini(struct bh_player_file *f)
{
    bh_buf_fini(&f->text);
    free(f->v);
    free(f->errors.v);
    *f = (struct bh_player_file){0};
}
