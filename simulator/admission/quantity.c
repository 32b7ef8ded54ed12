/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/admission/quantity.c - resource lists in the text the real server would store
 *
 * Upstream: apimachinery/pkg/api/resource/quantity.go (UnmarshalJSON, CanonicalizeBytes),
 * pkg/apis/core/v1/defaults.go SetDefaults_ResourceList (v1.36); differences: none known.
 */
#include "simulator/admission/admission.h"

#include "common/k8s/quantity.h"

#define NANOS_PER_MILLI 1000000

bool bh_adm_parse_quantity(const struct bh_json *v, __int128 *ret_nano)
{
    bh_nano q;

    if (!v || (v->type != BH_JSON_STRING && v->type != BH_JSON_NUMBER) ||
        bh_quantity_parse(v->s.p, v->s.n, &q) < 0)
        return false;
    *ret_nano = q;
    return true;
}

int bh_adm_quantities_at(struct bh_sim_write *w, struct bh_json *obj, const char *dotted)
{
    struct bh_json *map = bh_tree_obj(obj, dotted);
    struct bh_buf b = {0};
    int rc = 0;
    if (!map || map->type != BH_JSON_OBJECT)
        return 0;
    bh_json_each(m, map) {
        bh_nano q;
        bool binary = m->type == BH_JSON_STRING && m->s.n && m->s.p[m->s.n - 1] == 'i';
        if (!bh_adm_parse_quantity(m, &q)) {
            rc = bh_sim_fail(
                w->error, 400, "BadRequest",
                "%s in version \"%s\" cannot be handled as a %s: quantities must match the "
                "regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
                w->type->kind, w->type->version, w->type->kind);
            break;
        }
        if (q % NANOS_PER_MILLI) /* a ResourceList is rounded up */
            q += (q > 0 ? NANOS_PER_MILLI : 0) - q % NANOS_PER_MILLI;
        else if (w->warnings && m->type == BH_JSON_STRING)
            continue; /* from a client: in order since bh_oas_normalise() */
        bh_buf_reset(&b);
        bh_quantity_format(&b, q, binary);
        if (m->type == BH_JSON_STRING && bh_str_eqc(m->s, bh_buf_str(&b)))
            continue;
        char *text = bh_arena_strndup(w->arena, bh_buf_str(&b), b.n);
        if (!text)
            break;
        m->type = BH_JSON_STRING;
        m->s = (struct bh_str){text, b.n};
    }
    bh_buf_fini(&b);
    return rc;
}
