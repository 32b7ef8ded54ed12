/* SPDX-License-Identifier: Apache-2.0
 *
 * common/snapshot/name.c - the name of an instance's control segment
 *
 * Two spellings of one folder ("/run/berth/", "/var/run/berth") must give one name, so the path is
 * resolved first; a folder that does not exist yet is taken as written, without trailing slashes.
 */
#include "common/snapshot/snapshot.h"

#include <inttypes.h>

void bh_snap_name(const char *runtime_dir, char out[static 64])
{
    BH_CLEANUP(bh_freep) char *real = realpath(runtime_dir, NULL);
    const char *path = real ? real : runtime_dir;
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/')
        n--;
    snprintf(out, 64, "/berth-%016" PRIx64, bh_hash(path, n, 0));
}
