/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/fuzz/fuzz_nodemetrics.c - replies of a load watcher, Prometheus and metrics-server with any bytes
 *
 * Input: {u8 source}, the reply. For metrics-server it is the list of nodes as well. Whatever it
 * says, the text has its form: a head, the window, and lines of a name and words.
 */
#include "nodemetrics/nodemetrics.h"

#include <inttypes.h>
#include <math.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void check_word(const char *word)
{
    const char *value = strchr(word, '='), *slash = strchr(word, '/');
    char *end;

    bh_assert(value && slash && word < slash && slash < value && value[1]);
    bh_assert(isfinite(strtod(value + 1, &end)) && !*end);
}

static void check_text(struct bh_buf *b)
{
    char *rest = (char *)bh_buf_str(b), *line = strsep(&rest, "\n");
    int64_t from, to;
    char more;

    bh_assert(bh_streq(line, "berth-node-metrics 1"));
    line = strsep(&rest, "\n");
    bh_assert(sscanf(line, "window %" SCNd64 " %" SCNd64 "%c", &from, &to, &more) == 2);
    while ((line = strsep(&rest, "\n")) && rest) {
        char *name = strsep(&line, " ");
        bh_assert(*name && line);
        for (char *word; (word = strsep(&line, " "));)
            check_word(word);
    }
    bh_assert(!*line);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct bh_nm m BH_CLEANUP(bh_nm_fini) = {0};
    struct bh_buf text BH_CLEANUP(bh_buf_fini) = {0};
    struct bh_err err = {""};
    struct bh_arena a;
    struct bh_json *v = NULL;
    int rc = -1;

    if (!n)
        return 0;
    bh_arena_init(&a, (size_t)16 << 20);
    if (bh_json_parse(&a, (const char *)data + 1, n - 1, BH_JSON_NUL, &v, &err) == 0) {
        rc = data[0] % 3 == 0   ? bh_nm_add_watcher(&m, v, &err)
             : data[0] % 3 == 1 ? bh_nm_add_vector(&m, v, "instance", "CPU/AVG", &err)
                                : bh_nm_add_usage(&m, v, v, &err);
        bh_assert(rc == 0 || *err.msg);
    }
    bh_nm_text(&m, &text);
    check_text(&text);
    bh_arena_fini(&a);
    return 0;
}
