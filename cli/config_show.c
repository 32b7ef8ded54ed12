/* SPDX-License-Identifier: Apache-2.0
 *
 * cli/config_show.c - `berth config show`: the configuration in force, with every default
 *
 * Comes from a file, from the running scheduler (scheduler/daemon/control.h), or, when none runs,
 * is what a scheduler without a file would use.
 */
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "common/control/ask.h"
#include "cli/cli.h"
#include "cli/config.h"
#include "scheduler/native/native.h"
#include "scheduler/explain/grid.h"

#define WHO "berth config show"

struct show {
    const char *config, *runtime, *output;
    bool defaults;
    struct bh_sched_config *c;
    char source[512]; /* for people: where it comes from */
};

/* ---- where it comes from --------------------------------------------------------------------- */

static int from_file(struct show *s)
{
    struct bh_config_report r;

    bh_config_report_init(&r);
    int rc = bh_config_read_from(s->config, &s->c, &r);
    bh_config_print(stderr, s->config, &r.warnings, false);
    if (rc < 0)
        fprintf(stderr, "berth config show: %s\n",
                bh_config_report_line(&r, r.errors.n ? bh_config_name_of(s->config) : NULL));
    snprintf(s->source, sizeof s->source, "%s", bh_config_name_of(s->config));
    bh_config_report_fini(&r);
    return rc;
}

/* -ENOENT: no scheduler runs there. */
static int from_scheduler(struct show *s, struct bh_err *err)
{
    const Berth__ControlReply *r;
    struct bh_ask k = {0};
    char dir[108];
    int rc = bh_cli_find_dir(WHO, s->runtime, dir, err);

    if (rc == 0)
        rc = bh_ask_open(&k, dir, err);
    if (rc == 0)
        rc = bh_ask_for(&k, BERTH__CONTROL_WHAT__CONTROL_CONFIG, &r, err);
    if (rc == 0 && !(r->config && r->config->in_force && *r->config->in_force)) {
        rc = bh_err_set(err, -EPROTO, "the scheduler tells no configuration");
    } else if (rc == 0) {
        const char *text = r->config->in_force, *path = r->config->path ? r->config->path : "";
        struct bh_config_report report;
        bh_config_report_init(&report);
        rc = bh_sched_config_read(text, strlen(text), &s->c, &report);
        if (rc < 0)
            bh_err_set(err, rc, "the scheduler's configuration: %s", report.summary);
        bh_config_report_fini(&report);
        snprintf(s->source, sizeof s->source, "the scheduler running in %s, %s%s", dir,
                 *path ? "from " : "with defaults", path);
    }
    bh_ask_close(&k);
    return rc;
}

static int get(struct show *s)
{
    struct bh_err err = {0};
    int rc = 0;

    if (s->config)
        return from_file(s);
    if (!s->defaults) {
        rc = from_scheduler(s, &err);
        if (rc == -ENOENT && !s->runtime) {
            fprintf(stderr, "berth config show: no scheduler runs here; these are the defaults\n");
            rc = 0;
        }
    }
    if (rc == 0 && !s->c) {
        rc = bh_sched_config_load(NULL, &s->c, &err);
        snprintf(s->source, sizeof s->source, "defaults");
    }
    if (rc < 0)
        fprintf(stderr, "berth config show: %s\n", err.msg);
    return rc;
}

/* ---- command --------------------------------------------------------------------------------- */

int bh_config_show(int argc, char **argv)
{
    struct bh_native_options plugins = {0};
    struct show s = {.output = "table"};
    const struct bh_opt table[] = {
        {"config", 0, BH_OPT_STR, &s.config, "FILE",
         "what this file would put in force; - = stdin"},
        {"defaults", 0, BH_OPT_BOOL, &s.defaults, NULL, "what is in force without any file"},
        {"runtime-dir", 0, BH_OPT_STR, &s.runtime, "DIR", "instance to ask " BH_INSTANCE_DEFAULT},
        {"output", 'o', BH_OPT_CHOICE, &s.output, "table|yaml|json", "form of the output"},
        BH_NATIVE_OPTIONS(plugins),
        {0},
    };
    struct bh_err err = {0};
    int rc = bh_opt_parse(table, bh_cli_help(WHO), argc, argv, NULL, &err);

    if (rc == 0 && !!s.config + s.defaults + !!s.runtime > 1)
        rc = bh_err_set(&err, -EINVAL, "--config, --defaults and --runtime-dir exclude each other");
    if (rc != 0)
        return bh_cli_usage(WHO, rc, &err);
    bh_native_start(&plugins, NULL);
    rc = get(&s);
    if (rc == 0) {
        bool colour = bh_colour_wanted(STDOUT_FILENO);
        struct bh_buf out = {0};
        if (bh_streq(s.output, "table")) {
            bh_buf_adds(&out, "Configuration: ");
            bh_text_add(&out, BH_CELL_BOLD, colour, s.source);
            bh_buf_addc(&out, '\n');
            bh_config_table(&out, s.c, colour);
        } else {
            bh_sched_config_write(s.c,
                                  bh_streq(s.output, "yaml") ? BH_SCHED_CONFIG_YAML
                                                             : BH_SCHED_CONFIG_JSON_PRETTY,
                                  true, &out);
            if (out.n && out.p[out.n - 1] != '\n')
                bh_buf_addc(&out, '\n');
        }
        rc = bh_cli_print(WHO, &out) == BH_EXIT_OK ? 0 : -EIO;
    }
    bh_sched_config_free(s.c);
    return rc < 0 ? BH_EXIT_FAIL : BH_EXIT_OK;
}
