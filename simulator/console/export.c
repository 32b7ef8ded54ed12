/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/console/export.c - GET /api/v1/export: the cluster as one document
 *
 * kube-scheduler-simulator's document: lists of objects without apiVersion and kind, and the
 * scheduler's configuration. ?kinds=all adds every other kind under "others", as whole objects: custom
 * resources too, with their definitions.
 */
#include "simulator/console/parts.h"

#include "common/data/yaml.h"
#include "simulator/server/tree.h"

const struct bh_console_list bh_console_lists[BH_CONSOLE_LISTS] = {
    {"pods", "v1", "Pod", "pods", "podsLastResourceVersion"},
    {"nodes", "v1", "Node", "nodes", "nodesLastResourceVersion"},
    {"pvs", "v1", "PersistentVolume", "persistentvolumes", "pvsLastResourceVersion"},
    {"pvcs", "v1", "PersistentVolumeClaim", "persistentvolumeclaims", "pvcsLastResourceVersion"},
    {"storageClasses", "storage.k8s.io/v1", "StorageClass", "storageclasses.storage.k8s.io",
     "scsLastResourceVersion"},
    {"priorityClasses", "scheduling.k8s.io/v1", "PriorityClass",
     "priorityclasses.scheduling.k8s.io", "pcsLastResourceVersion"},
    {"namespaces", "v1", "Namespace", "namespaces", "namespaceLastResourceVersion"},
    {NULL, NULL, NULL, NULL, NULL},
};

struct export_job {
    const char *runtime_dir;
    bool yaml, all;
    struct bh_sim_objs list[BH_CONSOLE_LISTS]; /* as bh_console_lists; the others last */
};

/* ---- in the loop ----------------------------------------------------------------------------- */

static void append_kind(struct bh_sim *s, const struct bh_sim_type *t, struct bh_sim_objs *out)
{
    size_t n = out->n;

    bh_console_list_more(s, t, out);
    for (size_t i = n; i < out->n; i++) {
        if (!(t->flags & BH_SIM_DEFINES) && bh_console_is_system(t, out->v[i]->ns, out->v[i]->name))
            bh_sim_obj_unref(out->v[i]);
        else
            out->v[n++] = out->v[i];
    }
    out->n = n;
}

static size_t list_of(const struct bh_sim_type *t)
{
    char api_version[80];
    size_t i = 0;

    bh_sim_type_api_version(t, api_version);
    while (bh_console_lists[i].name && !(bh_streq(bh_console_lists[i].kind, t->kind) &&
                                         bh_streq(bh_console_lists[i].api_version, api_version)))
        i++;
    return i;
}

/* ---- in the worker --------------------------------------------------------------------------- */

static void write_document(struct bh_buf *out, const struct export_job *k, const char *config,
                           const struct bh_console_job *j)
{
    BH_CLEANUP(bh_arena_fini) struct bh_arena a = {0};

    bh_buf_addc(out, '{');
    for (size_t i = 0; i < BH_CONSOLE_LISTS; i++) {
        bool whole = !bh_console_lists[i].name;
        if (whole && !k->all)
            continue;
        bh_buf_addf(out, "%s\"%s\":[", i ? "," : "", whole ? "others" : bh_console_lists[i].name);
        for (size_t n = 0; n < k->list[i].n && !bh_console_job_dropped(j); n++) {
            struct bh_json *v = bh_sim_obj_tree(&a, k->list[i].v[n]);
            if (!whole)
                bh_json_drop(v, "apiVersion kind");
            bh_tree_comma(out);
            bh_json_write(out, v);
            bh_arena_reset(&a);
        }
        bh_buf_addc(out, ']');
    }
    bh_buf_addf(out, ",\"schedulerConfig\":%s}\n", config ? config : "null");
}

static void run(struct bh_console_job *j, void *arg)
{
    const struct export_job *k = arg;
    BH_CLEANUP(bh_freep) char *config = NULL;
    BH_CLEANUP(bh_buf_fini) struct bh_buf text = {0};
    struct bh_json *v = NULL;
    struct bh_err err = {0};
    BH_CLEANUP(bh_arena_fini) struct bh_arena a = {0};

    /* no scheduler runs: null */
    (void)bh_console_config_running(k->runtime_dir, false, &config, NULL, &err);
    if (!k->yaml) {
        write_document(bh_console_job_body(j, 200, NULL), k, config, j);
        return;
    }
    write_document(&text, k, config, j);
    if (bh_json_parse(&a, text.p, text.n, BH_JSON_NUL, &v, &err) < 0)
        bh_console_job_fail(j, 500, NULL, 0, "%s", err.msg);
    else
        bh_yaml_write(bh_console_job_body(j, 200, "application/yaml"), v);
}

static void release(void *arg)
{
    struct export_job *k = arg;

    for (size_t i = 0; i < BH_CONSOLE_LISTS; i++)
        bh_sim_objs_fini(&k->list[i]);
    free(k);
}

/* ---- the request ----------------------------------------------------------------------------- */

void bh_console_export(struct bh_console_req *c)
{
    const char *kinds = bh_http_query(c->r->http, "kinds"),
               *format = bh_http_query(c->r->http, "format");

    if (kinds && !bh_streq(kinds, "all")) {
        bh_console_fail(c->r, 400, "kinds", 0, "all, or nothing for the seven kinds");
        return;
    }
    if (format && !bh_streq(format, "yaml") && !bh_streq(format, "json")) {
        bh_console_fail(c->r, 400, "format", 0, "json or yaml");
        return;
    }
    struct export_job *k = bh_calloc(1, sizeof(*k));
    k->runtime_dir = c->r->sim->opt.runtime_dir;
    k->yaml = format && bh_streq(format, "yaml");
    k->all = kinds != NULL;
    for (size_t i = 0; i < bh_sim_type_count(c->r->sim); i++) {
        const struct bh_sim_type *t = bh_sim_type_at(c->r->sim, i);
        if (!t || !bh_sim_type_stores(t) || bh_streq(t->kind, "Event"))
            continue;
        size_t at = list_of(t);
        if (!bh_console_lists[at].name && !k->all)
            continue;
        append_kind(c->r->sim, t, &k->list[at]);
    }
    bh_console_work(c, run, release, k);
}
