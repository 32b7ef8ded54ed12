/* SPDX-License-Identifier: Apache-2.0
 *
 * cli/keygen.c - `berth keygen`: keys of schedulers and of binders on other hosts
 */
#include "cli/cli.h"
#include "common/bus/curve.h"
#include <errno.h>

#define WHO "berth keygen"

int bh_cmd_keygen(int argc, char **argv)
{
    const struct bh_opt table[] = {{0}};
    struct bh_opt_list paths BH_CLEANUP(bh_opt_list_fini) = {0};
    struct bh_err err = {0};
    int rc = bh_opt_parse(table, bh_cli_help(WHO), argc, argv, &paths, &err);

    if (rc == 0 && !paths.n)
        rc = bh_err_set(&err, -EINVAL, "PATH is missing");
    if (rc != 0)
        return bh_cli_usage(WHO, rc, &err);
    for (size_t i = 0; i < paths.n; i++) {
        if (bh_bus_keygen(paths.v[i], &err) < 0)
            return bh_cli_fail(WHO, &err);
        printf("%s.key %s.pub\n", paths.v[i], paths.v[i]);
    }
    return BH_EXIT_OK;
}
