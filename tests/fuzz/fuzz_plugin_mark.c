/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/fuzz/fuzz_plugin_mark.c - the mark and the crashes of plugins, with any bytes
 *
 * Input: {u8 flags, u32 plugin, u32 hook, u8 n}, n bytes of the entry of that plugin, the lines.
 * Flags: 1: the entry gets a valid checksum, 2: of another boot, 4: the file ends there.
 */
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "scheduler/native/native_int.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

#define MAGIC UINT64_C(0x326b72616d687462) /* as guard.c writes it */

static char dir[] = "/tmp/berth-fuzz-mark-XXXXXX", mark[96], crashes[96];

static void leave(void)
{
    bh_remove_tree(dir);
}

static void make_dir(void)
{
    bh_assert(mkdtemp(dir));
    snprintf(mark, sizeof(mark), "%s/scheduler", dir);
    bh_assert(mkdir(mark, 0700) == 0);
    snprintf(mark, sizeof(mark), "%s/scheduler/plugin.mark", dir);
    snprintf(crashes, sizeof(crashes), "%s/scheduler/plugin.crashes", dir);
    atexit(leave);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static struct bh_native_mark m;
    struct bh_native_marked entry = {.check = 0};
    uint32_t plugin, hook;
    struct bh_err err;

    if (!*mark)
        make_dir();
    if (n < 10)
        return 0;
    memset((void *)&m, 0, sizeof(m));
    m.magic = MAGIC;
    bh_assert(bh_host_boot(&m.host_boot) == 0);
    const uint8_t flags = data[0];
    memcpy(&plugin, data + 1, sizeof(plugin));
    memcpy(&hook, data + 5, sizeof(hook));
    size_t n_entry = BH_MIN(data[9], n - 10);
    memcpy(&entry, data + 10, BH_MIN(n_entry, offsetof(struct bh_native_marked, check)));
    data += 10 + n_entry, n -= 10 + n_entry;
    if (flags & 1)
        entry.check = bh_hash(&entry, offsetof(struct bh_native_marked, check), MAGIC);
    m.host_boot ^= flags >> 1 & 1;
    m.plugin = plugin;
    m.hook = hook;
    m.of[plugin % BH_NATIVE_MARKED] = entry;
    bh_assert(bh_write_file(mark, &m, flags & 4 ? n_entry : sizeof(m), 0600) == 0);
    bh_assert(bh_write_file(crashes, data, n, 0600) == 0);
    bh_assert(bh_native_guard(dir, "10s", &err) == 0);
    bh_assert(bh_native_mark->magic == MAGIC && bh_native_mark->hook == BH_HOOK_NONE);
    munmap(bh_native_mark, sizeof(*bh_native_mark));
    bh_native_mark = NULL;
    return 0;
}
