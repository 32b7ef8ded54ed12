/* SPDX-License-Identifier: Apache-2.0
 *
 * common/base/log.h - one line an event, structured, to stderr or journald
 *
 *   bh_log_info("Bound pod", bh_kv_s("pod", "default/web-0"), bh_kv_i("attempts", 2));
 *   I1121 09:15:02.000123   4711 bind.c:88] "Bound pod" pod="default/web-0" attempts=2
 *
 * Formats: klog text (default), JSON lines (--logging-format=json); when stderr is the journal
 * ($JOURNAL_STREAM) the time is dropped and the line gets a <N> priority prefix.
 * Values are escaped: text of API objects can contain anything. Secrets are never passed here.
 * One write(2) per line; a full or closed stderr never blocks or fails the caller (drops, counted).
 * Library rooms (common, proto) do not log above debug: they return the cause.
 */
#ifndef BH_LOG_H
#define BH_LOG_H

#include "common/base/base.h"

enum bh_log_level { BH_LOG_ERROR, BH_LOG_WARN, BH_LOG_INFO, BH_LOG_DEBUG };
enum bh_log_format { BH_LOG_TEXT, BH_LOG_JSON };
enum bh_log_kind { BH_LOG_END, BH_LOG_STR, BH_LOG_I64, BH_LOG_U64, BH_LOG_F64 };
struct bh_log_kv {
    const char *key;
    enum bh_log_kind kind;
    union {
        const char *s;
        int64_t i;
        uint64_t u;
        double f;
    };
};
#define bh_kv_s(k, v) ((struct bh_log_kv){.key = (k), .kind = BH_LOG_STR, .s = (v)})
#define bh_kv_i(k, v) ((struct bh_log_kv){.key = (k), .kind = BH_LOG_I64, .i = (v)})
#define bh_kv_u(k, v) ((struct bh_log_kv){.key = (k), .kind = BH_LOG_U64, .u = (v)})
#define bh_kv_f(k, v) ((struct bh_log_kv){.key = (k), .kind = BH_LOG_F64, .f = (v)})

/* verbosity as kube-scheduler's -v: 0 info, 2+ adds debug lines. Call once from main. */
void bh_log_init(const char *program, int verbosity, enum bh_log_format format);
/* klog's --vmodule: "queue=4,bind*=3" by the name of the source file without its folder and ending.
 * _check: 0; -EINVAL with klog's text. _set takes what was checked; borrowed, kept; after
 * bh_log_init, before there are threads. */
int bh_log_check_vmodule(const char *patterns, struct bh_err *err);
void bh_log_set_vmodule(const char *patterns);
bool bh_log_v_on(int v, const char *file); /* is a line of level v of this file written? */
/* From now on, as PUT /debug/flags/v does. */
void bh_log_set_verbosity(int verbosity);
uint64_t bh_log_dropped(void);
void bh_log_write(enum bh_log_level level, const char *file, int line, const char *msg,
                  const struct bh_log_kv *kv);
/* A line of level v ("v":v in JSON); the caller asked bh_log_v_on. */
void bh_log_write_v(int v, const char *file, int line, const char *msg, const struct bh_log_kv *kv);
/* klog's Infof: the text stands as it is, without quotes. */
void bh_log_plain(int v, const char *file, int line, const char *text);
/* One value of several lines, however long (a configuration): key=< ... >, written at once. For the
 * start of a process: it may wait for a full pipe. */
void bh_log_block(int v, const char *file, int line, const char *msg, const char *key,
                  const char *text);
#define bh_log_at(level, msg, ...)                                                                 \
    bh_log_write((level), __FILE__, __LINE__, (msg),                                               \
                 (const struct bh_log_kv[]){__VA_ARGS__ __VA_OPT__(, ){.kind = BH_LOG_END}})
#define bh_log_error(msg, ...) bh_log_at(BH_LOG_ERROR, msg __VA_OPT__(, ) __VA_ARGS__)
#define bh_log_warn(msg, ...)  bh_log_at(BH_LOG_WARN, msg __VA_OPT__(, ) __VA_ARGS__)
#define bh_log_info(msg, ...)  bh_log_at(BH_LOG_INFO, msg __VA_OPT__(, ) __VA_ARGS__)
#define bh_log_v(v, msg, ...)                                                                      \
    do {                                                                                           \
        if (bh_log_v_on((v), __FILE__))                                                            \
            bh_log_write_v(                                                                        \
                (v), __FILE__, __LINE__, (msg),                                                    \
                (const struct bh_log_kv[]){__VA_ARGS__ __VA_OPT__(, ){.kind = BH_LOG_END}});       \
    } while (0)
#define bh_log_debug(msg, ...) bh_log_v(2, msg __VA_OPT__(, ) __VA_ARGS__)
#endif
