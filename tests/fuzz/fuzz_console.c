/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/fuzz/fuzz_console.c - what a browser may ask the page's own paths
 *
 * As fuzz_sim_api.c, whose input and judgement these are, for the paths of simulator/console: in a
 * small cluster, so that what-if and capacity have something to decide.
 */
#include "common/base/base.h"

static bool of_the_console(const char *path)
{
    static const char *const prefixes[] = {
        "/berth/v1/",     "/ui/",           "/api/v1/schedulerconfiguration", "/api/v1/reset",
        "/api/v1/export", "/api/v1/import", "/api/v1/listwatchresources"};

    for (size_t i = 0; i < BH_ARRAY_LEN(prefixes); i++)
        if (strncmp(path, prefixes[i], strlen(prefixes[i])) == 0)
            return true;
    return false;
}

#define FUZZ_ONLY(path)   of_the_console(path)
#define INPUTS_PER_SERVER 50 /* there is a path that empties it */
#define FUZZ_FIRST                                                                                 \
    "POST /api/v1/import\napplication/json\napplication/json\n"                                    \
    "{\"nodes\":[{\"metadata\":{\"name\":\"n1\"},\"status\":{\"allocatable\":{\"cpu\":\"4\","      \
    "\"memory\":\"8Gi\",\"pods\":\"10\"}}},{\"metadata\":{\"name\":\"n2\"},\"status\":{"           \
    "\"allocatable\":{\"cpu\":\"2\",\"pods\":\"2\"}}}],\"pods\":[{\"metadata\":{\"name\":\"p1\","  \
    "\"namespace\":\"default\"},\"spec\":{\"nodeName\":\"n1\",\"containers\":[{\"name\":\"c\","    \
    "\"image\":\"i\",\"resources\":{\"requests\":{\"cpu\":\"1\"}}}]}},{\"metadata\":{\"name\":"    \
    "\"p2\",\"namespace\":\"default\"},\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":"       \
    "\"i\"}]}}]}"
#include "tests/fuzz/fuzz_sim_api.c"
