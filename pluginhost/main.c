/* SPDX-License-Identifier: Apache-2.0
 *
 * pluginhost/main.c - berth-plugin-host: runs the plugins of one file, for a scheduler that does not
 * trust them
 *
 * The scheduler starts it, with everything that it needs already open (scheduler/native/process.h).
 */
#include <fcntl.h>
#include <stdio.h>

#include "scheduler/native/process.h"

int main(int argc, char **argv)
{
    if (fcntl(BH_PX_FD_DOWN, F_GETFD) < 0 || fcntl(BH_PX_FD_SOCK, F_GETFD) < 0) {
        fprintf(stderr, "berth-plugin-host: the scheduler starts it, for plugins with `mode: "
                        "process` (docs/plugins.md)\n");
        return 2;
    }
    return bh_px_host_main(argc, argv);
}
