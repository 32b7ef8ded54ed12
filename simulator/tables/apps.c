/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/tables/apps.c - rows of the workload kinds: apps, batch, ReplicationController
 *
 * Upstream: pkg/printers/internalversion/printers.go (v1.36); differences: none known.
 */
#include "simulator/tables/table.h"

#include "common/k8s/quantity.h"

#include <inttypes.h>

#define COLS_TEMPLATE                                                                              \
    BH_COL_WIDE("Containers", "names of the template's containers"),                               \
        BH_COL_WIDE("Images", "images of the template's containers")
#define COL_SELECTOR BH_COL_WIDE("Selector", "selector of the pods")

static int64_t replicas(const struct bh_json *o)
{
    return bh_tree_i64(o, "spec.replicas", 1);
}

static void template_cells(struct bh_table_row *r, const struct bh_json *o)
{
    bh_cell_containers(r, bh_tree_obj(o, "spec.template.spec"));
}

/* ---- Deployment, ReplicaSet, ReplicationController, StatefulSet -------------------------------
 */

static const struct bh_table_col deployment_cols[] = {
    BH_COL_NAME,
    BH_COL_S("Ready", "ready pods, of those wanted"),
    BH_COL_I("Up-to-date", "pods of the present template"),
    BH_COL_I("Available", "pods ready for minReadySeconds"),
    BH_COL_AGE,
    COLS_TEMPLATE,
    COL_SELECTOR,
};
static void deployment_cells(struct bh_table_row *r, const struct bh_json *o)
{
    bh_cell_name(r, o);
    bh_cell_fmt(r, "%" PRId64 "/%" PRId64, bh_tree_i64(o, "status.readyReplicas", 0), replicas(o));
    bh_cell_i64(r, bh_tree_i64(o, "status.updatedReplicas", 0));
    bh_cell_i64(r, bh_tree_i64(o, "status.availableReplicas", 0));
    bh_cell_age(r, o);
    template_cells(r, o);
    bh_cell_label_selector(r, bh_tree_obj(o, "spec.selector"));
}

static const struct bh_table_col replicaset_cols[] = {
    BH_COL_NAME,
    BH_COL_I("Desired", "pods wanted"),
    BH_COL_I("Current", "pods that exist"),
    BH_COL_I("Ready", "pods that are ready"),
    BH_COL_AGE,
    COLS_TEMPLATE,
    COL_SELECTOR,
};
static void replicaset_head(struct bh_table_row *r, const struct bh_json *o)
{
    bh_cell_name(r, o);
    bh_cell_i64(r, replicas(o));
    bh_cell_i64(r, bh_tree_i64(o, "status.replicas", 0));
    bh_cell_i64(r, bh_tree_i64(o, "status.readyReplicas", 0));
    bh_cell_age(r, o);
    template_cells(r, o);
}
static void replicaset_cells(struct bh_table_row *r, const struct bh_json *o)
{
    replicaset_head(r, o);
    bh_cell_label_selector(r, bh_tree_obj(o, "spec.selector"));
}
/* The older kind's selector is a plain map. */
static void replicationcontroller_cells(struct bh_table_row *r, const struct bh_json *o)
{
    replicaset_head(r, o);
    bh_cell_label_map(r, bh_tree_obj(o, "spec.selector"));
}

static const struct bh_table_col statefulset_cols[] = {
    BH_COL_NAME, BH_COL_S("Ready", "ready pods, of those wanted"), BH_COL_AGE, COLS_TEMPLATE};
static void statefulset_cells(struct bh_table_row *r, const struct bh_json *o)
{
    bh_cell_name(r, o);
    bh_cell_fmt(r, "%" PRId64 "/%" PRId64, bh_tree_i64(o, "status.readyReplicas", 0), replicas(o));
    bh_cell_age(r, o);
    template_cells(r, o);
}

/* ---- DaemonSet --------------------------------------------------------------------------------
 */

static const struct bh_table_col daemonset_cols[] = {
    BH_COL_NAME,
    BH_COL_I("Desired", "nodes that should run the pod"),
    BH_COL_I("Current", "nodes that run it"),
    BH_COL_I("Ready", "nodes whose pod is ready"),
    BH_COL_I("Up-to-date", "nodes that run the present template"),
    BH_COL_I("Available", "nodes whose pod is ready for minReadySeconds"),
    BH_COL_S("Node Selector", "the template's node selector"),
    BH_COL_AGE,
    COLS_TEMPLATE,
    COL_SELECTOR,
};
static void daemonset_cells(struct bh_table_row *r, const struct bh_json *o)
{
    bh_cell_name(r, o);
    bh_cell_i64(r, bh_tree_i64(o, "status.desiredNumberScheduled", 0));
    bh_cell_i64(r, bh_tree_i64(o, "status.currentNumberScheduled", 0));
    bh_cell_i64(r, bh_tree_i64(o, "status.numberReady", 0));
    bh_cell_i64(r, bh_tree_i64(o, "status.updatedNumberScheduled", 0));
    bh_cell_i64(r, bh_tree_i64(o, "status.numberAvailable", 0));
    bh_cell_label_map(r, bh_tree_obj(o, "spec.template.spec.nodeSelector"));
    bh_cell_age(r, o);
    template_cells(r, o);
    bh_cell_label_selector(r, bh_tree_obj(o, "spec.selector"));
}

/* ---- Job, CronJob -----------------------------------------------------------------------------
 */

static const char *job_status(const struct bh_json *o)
{
    if (bh_tree_condition_true(o, "Complete"))
        return "Complete";
    if (bh_tree_condition_true(o, "Failed"))
        return "Failed";
    if (bh_tree_deleting(o))
        return "Terminating";
    if (bh_tree_condition_true(o, "Suspended"))
        return "Suspended";
    if (bh_tree_condition_true(o, "FailureTarget"))
        return "FailureTarget";
    if (bh_tree_condition_true(o, "SuccessCriteriaMet"))
        return "SuccessCriteriaMet";
    return "Running";
}

static void job_completions_cell(struct bh_table_row *r, const struct bh_json *o)
{
    int64_t done = bh_tree_i64(o, "status.succeeded", 0);
    int64_t want = bh_tree_i64(o, "spec.completions", -1);
    int64_t parallel = bh_tree_i64(o, "spec.parallelism", 0);

    if (want >= 0)
        bh_cell_fmt(r, "%" PRId64 "/%" PRId64, done, want);
    else if (parallel > 1)
        bh_cell_fmt(r, "%" PRId64 "/1 of %" PRId64, done, parallel);
    else
        bh_cell_fmt(r, "%" PRId64 "/1", done);
}

static void job_duration_cell(struct bh_table_row *r, const struct bh_json *o)
{
    const char *start = bh_tree_str(o, "status.startTime");
    const char *end = bh_tree_str(o, "status.completionTime");
    int64_t s, e = r->now_s;
    int32_t ns;
    struct bh_buf b = {0};

    if (start && bh_time_parse(start, strlen(start), &s, &ns) == 0) {
        if (end && bh_time_parse(end, strlen(end), &e, &ns) < 0)
            e = r->now_s;
        bh_human_duration(&b, e - s);
    }
    bh_cell_buf(r, &b, "");
}

static const struct bh_table_col job_cols[] = {
    BH_COL_NAME,
    BH_COL_S("Status", "what the job's conditions say"),
    BH_COL_S("Completions", "pods that succeeded, of those wanted"),
    BH_COL_S("Duration", "from start to completion or now"),
    BH_COL_AGE,
    COLS_TEMPLATE,
    COL_SELECTOR,
};
static void job_cells(struct bh_table_row *r, const struct bh_json *o)
{
    bh_cell_name(r, o);
    bh_cell_str(r, job_status(o));
    job_completions_cell(r, o);
    job_duration_cell(r, o);
    bh_cell_age(r, o);
    template_cells(r, o);
    bh_cell_label_selector(r, bh_tree_obj(o, "spec.selector"));
}

static const struct bh_table_col cronjob_cols[] = {
    BH_COL_NAME,
    BH_COL_S("Schedule", "when jobs are created"),
    BH_COL_S("Timezone", "time zone of the schedule"),
    BH_COL_B("Suspend", "no jobs are created"),
    BH_COL_I("Active", "jobs that run"),
    BH_COL_S("Last Schedule", "time since the last job"),
    BH_COL_AGE,
    COLS_TEMPLATE,
    COL_SELECTOR,
};
static void cronjob_cells(struct bh_table_row *r, const struct bh_json *o)
{
    const struct bh_json *active = bh_tree_arr(o, "status.active");
    const struct bh_json *suspend = bh_json_path(o, "spec.suspend");
    const char *last = bh_tree_str(o, "status.lastScheduleTime");

    bh_cell_name(r, o);
    bh_cell_str(r, bh_tree_str(o, "spec.schedule"));
    bh_cell_or(r, bh_tree_str(o, "spec.timeZone"), "<none>");
    bh_cell_str(r, !suspend || suspend->type != BH_JSON_BOOL ? "<unset>"
                   : suspend->b                              ? "True"
                                                             : "False");
    bh_cell_i64(r, active ? (int64_t)active->c.n : 0);
    if (last)
        bh_cell_since(r, last);
    else
        bh_cell_str(r, "<none>");
    bh_cell_age(r, o);
    bh_cell_containers(r, bh_tree_obj(o, "spec.jobTemplate.spec.template.spec"));
    bh_cell_label_selector(r, bh_tree_obj(o, "spec.jobTemplate.spec.selector"));
}

/* ---- PodTemplate ------------------------------------------------------------------------------
 */

static const struct bh_table_col podtemplate_cols[] = {
    BH_COL_NAME, BH_COL_S("Containers", "names of the template's containers"),
    BH_COL_S("Images", "images of the template's containers"),
    BH_COL_S("Pod Labels", "labels of the template")};
static void podtemplate_cells(struct bh_table_row *r, const struct bh_json *o)
{
    bh_cell_name(r, o);
    bh_cell_containers(r, bh_tree_obj(o, "template.spec"));
    bh_cell_label_map(r, bh_tree_obj(o, "template.metadata.labels"));
}

/* ---- ControllerRevision -----------------------------------------------------------------------
 */

static const struct bh_table_col revision_cols[] = {
    BH_COL_NAME,
    BH_COL_S("Controller", "object that owns the revision"),
    BH_COL_S("Revision", "number of the revision"),
    BH_COL_AGE,
};
static void revision_cells(struct bh_table_row *r, const struct bh_json *o)
{
    struct bh_buf b = {0};

    bh_json_each(ref, bh_tree_arr(o, "metadata.ownerReferences")) {
        const char *api = bh_tree_str(ref, "apiVersion"), *kind = bh_tree_str(ref, "kind");
        const char *name = bh_tree_str(ref, "name"), *slash = api ? strchr(api, '/') : NULL;
        if (!bh_tree_bool(ref, "controller", false) || !kind || !name)
            continue;
        for (const char *c = kind; *c; c++)
            bh_buf_addc(&b, *c >= 'A' && *c <= 'Z' ? (char)(*c + 32) : *c);
        if (slash)
            bh_buf_addf(&b, ".%.*s", (int)(slash - api), api);
        bh_buf_addf(&b, "/%s", name);
        break;
    }
    bh_cell_name(r, o);
    bh_cell_buf(r, &b, "<none>");
    bh_cell_i64(r, bh_tree_i64(o, "revision", 0));
    bh_cell_age(r, o);
}

#define KIND(group, kind, cols, cells)                                                             \
    {                                                                                              \
        group, kind, cols, BH_ARRAY_LEN(cols), cells                                               \
    }
static const struct bh_table_kind apps_kinds[] = {
    KIND("apps", "Deployment", deployment_cols, deployment_cells),
    KIND("apps", "ReplicaSet", replicaset_cols, replicaset_cells),
    KIND("", "ReplicationController", replicaset_cols, replicationcontroller_cells),
    KIND("apps", "StatefulSet", statefulset_cols, statefulset_cells),
    KIND("apps", "DaemonSet", daemonset_cols, daemonset_cells),
    KIND("batch", "Job", job_cols, job_cells),
    KIND("batch", "CronJob", cronjob_cols, cronjob_cells),
    KIND("", "PodTemplate", podtemplate_cols, podtemplate_cells),
    KIND("apps", "ControllerRevision", revision_cols, revision_cells),
};
const struct bh_table_set bh_table_set_apps = {apps_kinds, BH_ARRAY_LEN(apps_kinds)};
