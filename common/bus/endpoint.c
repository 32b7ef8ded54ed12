/* SPDX-License-Identifier: Apache-2.0
 *
 * common/bus/endpoint.c - paths of sockets, and what may lie there
 *
 * Fails with: see bus_int.h. Binding removes whatever lies at the path (local.c), so what it would
 * remove is looked at first.
 */
#include "common/bus/bus_int.h"

#include <errno.h>

#include "common/base/sockpath.h"

int bh_bus_endpoint(const char *runtime_dir, const char *name, char out[static 128],
                    struct bh_err *err)
{
    char path[BH_SOCKPATH_MAX + 1];
    int n = snprintf(path, sizeof(path), "%s/%s.sock", runtime_dir, name);
    if (n < 0 || (size_t)n >= sizeof(path))
        return bh_err_set(err, -ENAMETOOLONG,
                          "socket path \"%s/%s.sock\" is longer than %u bytes: choose a shorter "
                          "runtime directory",
                          runtime_dir, name, BH_SOCKPATH_MAX);
    snprintf(out, 128, "ipc://%s", path);
    return 0;
}

static const char scheme[] = "ipc://";

int bh_bus_probe(const char *endpoint)
{
    if (strncmp(endpoint, scheme, sizeof(scheme) - 1) != 0)
        return -EINVAL;
    return bh_sockpath_probe(endpoint + sizeof(scheme) - 1);
}

int bh_bus_check_path(const char *endpoint, bool for_bind, const char **ret_path,
                      struct bh_err *err)
{
    if (strncmp(endpoint, scheme, sizeof(scheme) - 1) != 0 || endpoint[sizeof(scheme) - 1] != '/')
        return bh_err_set(err, -EINVAL, "endpoint \"%s\" is not ipc:// and an absolute path",
                          endpoint);
    const char *path = endpoint + sizeof(scheme) - 1;
    int rc = bh_sockpath_check(path, for_bind, err);
    if (rc < 0)
        return rc;
    *ret_path = path;
    return 0;
}
