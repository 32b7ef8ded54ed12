/* SPDX-License-Identifier: Apache-2.0
 *
 * cli/keygen.c - `berth keygen`: keys of schedulers and of binders on other hosts
 */
#include "cli/cli.h"
#include "common/bus/curve.h"
#include <errno.h>

static const struct bh_opt_usage usage = {
    .program = "berth keygen",
    .synopsis = "PATH...",
    .about =
        "Makes key pairs for the connection between a scheduler and binders on other hosts: the "
        "secret PATH.key, which stays on its host, and the public PATH.pub. The scheduler lets "
        "in the binders whose public keys are in its folder (--binder-keys); a binder is told "
        "the scheduler's (--scheduler-key).",
    .examples = "  berth keygen /etc/berth/keys/scheduler\n"
                "  berth keygen /etc/berth/keys/$(hostname)\n",
    .exits = "  0  all were made\n  1  one could not be made, see the message\n  2  wrong usage\n",
};

int bh_cmd_keygen(int argc, char **argv)
{
    const struct bh_opt table[] = {{0}};
    struct bh_opt_list paths BH_CLEANUP(bh_opt_list_fini) = {0};
    struct bh_err err = {0};
    int rc = bh_opt_parse(table, &usage, argc, argv, &paths, &err);

    if (rc == 0 && !paths.n)
        rc = bh_err_set(&err, -EINVAL, "PATH is missing");
    if (rc != 0)
        return bh_cli_usage(usage.program, rc, &err);
    for (size_t i = 0; i < paths.n; i++) {
        if (bh_bus_keygen(paths.v[i], &err) < 0)
            return bh_cli_fail(usage.program, &err);
        printf("%s.key %s.pub\n", paths.v[i], paths.v[i]);
    }
    return BH_EXIT_OK;
}
