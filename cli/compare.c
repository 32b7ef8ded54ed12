/* SPDX-License-Identifier: Apache-2.0
 *
 * cli/compare.c - `berth compare`: where the observed cluster's scheduler and Berth differ, and why
 */
#include "cli/cluster.h"

#include <errno.h>

#include "scheduler/explain/explain.h"
#include "scheduler/explain/grid.h"

#define WHO    "berth compare"
#define ASK_NS UINT64_C(60000000000)
#define SHOWN  20 /* differences; all that are kept with -o wide */

static int ask(struct bh_session *s, const char *dir, struct bh_json **ret, struct bh_err *err)
{
    const struct bh_api_call call = {
        .method = "GET", .path = "/berth/v1/comparison", .timeout_ns = ASK_NS};
    BH_CLEANUP(bh_freep) char *kubeconfig = bh_asprintf("%s/kubeconfig", dir);
    struct bh_buf reply BH_CLEANUP(bh_buf_fini) = {0};
    int code = 0;
    int rc = bh_cluster_open(&s->from, &s->loop, kubeconfig, NULL, "berth-compare", err);

    if (rc < 0)
        return bh_err_set(err, -ENOENT,
                          "the Berth in %s observes no cluster ('berth up --kubeconfig FILE "
                          "--observe' does)",
                          dir);
    rc = bh_api_do(&s->loop, s->from.client, &call, &code, &reply, err);
    rc = rc < 0 ? rc : bh_json_parse(&s->arena, reply.p, reply.n, 0, ret, err);
    if (rc == 0 && code != 200)
        rc = bh_err_set(err, -ENOENT, "%s", bh_json_get_text(*ret, "message"));
    return rc;
}

static long long number(const struct bh_json *doc, const char *path)
{
    int64_t v = 0;

    (void)bh_json_i64(bh_json_path(doc, path), &v);
    return v;
}

static void table(const struct bh_json *doc, bool wide, struct bh_buf *out)
{
    struct bh_grid g BH_CLEANUP(bh_grid_fini) = {0}, list BH_CLEANUP(bh_grid_fini) = {0};
    const bool colour = bh_colour_wanted(STDOUT_FILENO);
    long long compared = number(doc, "compared"), agreed = number(doc, "agreed");
    long long others = number(doc, "otherSchedulers");
    unsigned n = 0;

    bh_grid_line(&g, "cluster", 0, "%s", bh_json_get_text(doc, "server"));
    bh_grid_line(&g, "since", 0, "%s",
                 bh_json_get_bool(doc, "synced", false) ? bh_json_get_text(doc, "since")
                                                        : "the copy is not complete yet");
    if (*bh_json_get_text(doc, "lost"))
        bh_grid_line(&g, "lost", BH_CELL_BAD, "the copy stays as it is, asked again: %s",
                     bh_json_get_text(doc, "lost"));
    bh_json_each(k, bh_json_get_list(doc, "leftOut"))
        bh_grid_line(&g, "left out", BH_CELL_BAD, "%s: %s", bh_json_get_text(k, "resource"),
                     bh_json_get_text(k, "message"));
    bh_grid_line(&g, "compared", 0, "%lld pods", compared);
    if (compared)
        bh_grid_line(&g, "agreement", agreed == compared ? BH_CELL_GOOD : 0,
                     "%.2f %% (%lld on the same node, %lld on another one of the same score)",
                     100.0 * (double)agreed / (double)compared, number(doc, "same"),
                     number(doc, "tie"));
    if (compared > agreed)
        bh_grid_line(&g, "different", BH_CELL_BAD,
                     "%lld with a lower score, %lld on a node that Berth rejects, %lld for which "
                     "Berth finds none",
                     number(doc, "different.lowerScore"), number(doc, "different.infeasible"),
                     number(doc, "different.noNode"));
    if (others)
        bh_grid_line(&g, "not compared", 0, "%lld pods of other schedulers", others);
    bh_grid_print(&g, out, 0, colour);
    bh_json_each(d, bh_json_get_list(doc, "differences")) {
        if (n++ == 0)
            bh_grid_heading(&list, 0, "TIME", "NAMESPACE", "NAME", "NODE", "BERTH", "WHY", NULL);
        if (n <= SHOWN || wide) {
            bh_grid_members(&list, 0, d, "time namespace name node berth why");
            bh_grid_row(&list);
        }
    }
    bh_buf_adds(out, n ? "\n" : "");
    bh_grid_print(&list, out, 0, colour);
    if (n > SHOWN && !wide)
        bh_buf_addf(out, "... %u more with -o wide\n", n - SHOWN);
}

int bh_cmd_compare(int argc, char **argv)
{
    const char *runtime = NULL, *output = "table";
    struct bh_session s = {0};
    struct bh_buf out = {0};
    struct bh_json *doc = NULL;
    enum bh_form form;
    struct bh_err err = {0};
    char dir[108];
    const struct bh_opt opts[] = {
        {"output", 'o', BH_OPT_STR, &output, BH_FORMS, "form of the output"},
        {"runtime-dir", 0, BH_OPT_STR, &runtime, "DIR", "instance to ask " BH_INSTANCE_DEFAULT},
        {0},
    };
    int rc = bh_opt_parse(opts, bh_cli_help(WHO), argc, argv, NULL, &err);
    rc = rc != 0 ? rc : bh_form_parse(output, &form, &err);

    if (rc != 0)
        return bh_cli_usage(WHO, rc, &err);
    rc = bh_cli_find_dir(WHO, runtime, dir, &err);
    bh_session_begin(&s, 0, NULL, NULL);
    if (rc == 0)
        rc = ask(&s, dir, &doc, &err);
    if (rc == 0 && (form == BH_FORM_TABLE || form == BH_FORM_WIDE))
        table(doc, form == BH_FORM_WIDE, &out);
    else if (rc == 0)
        bh_form_write(&out, doc, form);
    bh_session_end(&s);
    if (rc < 0)
        return bh_cli_fail(WHO, &err);
    return bh_cli_print(WHO, &out);
}
