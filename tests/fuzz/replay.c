/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/fuzz/replay.c - runs a fuzz target over its corpus without a fuzzing engine
 *
 * usage: PROGRAM CORPUS_DIR...   Every file is one input; a crash names it in the last line printed.
 */
#include "common/base/base.h"
#include <dirent.h>
#include <errno.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static unsigned run_dir(const char *dir)
{
    DIR *d = opendir(dir);
    struct dirent *e;
    char **names = NULL;
    size_t n = 0;

    if (!d) {
        printf("# could not open %s: %s\n", dir, strerror(errno));
        return 0;
    }
    while ((e = readdir(d)))
        if (e->d_name[0] != '.') {
            names = bh_reallocarray(names, n + 1, sizeof(*names));
            names[n++] = bh_strdup(e->d_name);
        }
    closedir(d);
    qsort(names, n, sizeof(*names), by_name);
    for (size_t i = 0; i < n; i++) {
        char *path = bh_asprintf("%s/%s", dir, names[i]), *text = NULL;
        size_t len = 0;
        printf("# %s\n", path);
        fflush(stdout);
        if (bh_read_file(path, 64u << 20, &text, &len) == 0)
            (void)LLVMFuzzerTestOneInput((const uint8_t *)text, len);
        free(text);
        free(path);
        free(names[i]);
    }
    free(names);
    return (unsigned)n;
}

int main(int argc, char **argv)
{
    unsigned n = 0;

    for (int i = 1; i < argc; i++)
        n += run_dir(argv[i]);
    printf("%u passed, %u failed, 0 skipped\n", n, n ? 0u : 1u);
    return n ? 0 : 1;
}
