/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/config/schema.c - the tables of the files' fields, from schema.data
 */
#include "scheduler/config/config_int.h"

#define FIELDS_MAX 15u /* of one struct */

static const char lines[] = "\n"
#include "scheduler/config/schema.data.h"
    ;

const struct bh_field *bh_config_schema(struct bh_arena *a, enum bh_config_version v,
                                        const char *go_type)
{
    static const char leaves[] = "sbilfdyS..a"; /* by enum bh_field_type */
    const char *at = strstr(lines, bh_arena_printf(a, "\n@%s\n", go_type));
    struct bh_field *table = bh_arena_new_array(a, struct bh_field, FIELDS_MAX + 1), *f = table;

    bh_assert(at);
    at = strchr(at, '@') + strlen(go_type) + 2;
    char *rest = bh_arena_strndup(a, at, strcspn(at, "@")), *line;
    while ((line = strsep(&rest, "\n")) && *line) {
        const char *name = strsep(&line, " "), *type = strsep(&line, " ");
        bool list = *type == '[';
        if (line && !strchr(line, "132"[v]))
            continue;
        bh_assert(f < table + FIELDS_MAX);
        f->name = name;
        if (type[1]) {
            f->type = list ? BH_FIELD_OBJECTS : BH_FIELD_OBJECT;
            f->go_type = type + list;
            f->sub = bh_config_schema(a, v, f->go_type);
        } else {
            f->type = (enum bh_field_type)(strchr(leaves, *type) - leaves);
        }
        f++;
    }
    return table;
}
