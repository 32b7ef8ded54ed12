/* SPDX-License-Identifier: Apache-2.0
 *
 * cli/bench.c - `berth bench`: executes berth-bench, which lies next to this program
 */
#include "cli/cli.h"

#include <errno.h>
#include <limits.h>
#include <unistd.h>

#define PROGRAM "berth-bench"

int bh_cmd_bench(int argc, char **argv)
{
    char exe[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe));

    (void)argc; /* argv ends with NULL */
    while (n > 0 && exe[n - 1] != '/')
        n--;
    BH_CLEANUP(bh_freep) char *path = bh_asprintf("%.*s" PROGRAM, (int)BH_MAX(n, 0), exe);
    execv(path, argv);
    fprintf(stderr, "berth bench: could not run %s: %s\n", path, strerror(errno));
    return BH_EXIT_FAIL;
}
