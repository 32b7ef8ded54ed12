/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/fuzz/fuzz_lease_file.c - the record of the lease with any bytes
 *
 * Input: {u8 flags}, the lines. Flags: 1: they get a valid head, 2: the file has no fixed length.
 * Without a valid head nothing is believed; with one at most two identities with their terms.
 */
#include "watcher/leader.h"
#include "common/base/trusted_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

#define FILE_BYTES 1024u /* as leader_file.c writes it */
#define HEAD_BYTES 48u

static char dir[] = "/tmp/berth-fuzz-lease-XXXXXX", path[96];

static void leave(void)
{
    bh_remove_tree(dir);
}

static struct bh_leader_file open_file(void)
{
    struct bh_leader_file f;
    struct bh_err err;

    bh_assert(bh_leader_file_open(&f, dir, &err) == 0);
    return f;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    char block[FILE_BYTES], head[HEAD_BYTES + 1];

    if (!*path) {
        bh_assert(mkdtemp(dir));
        snprintf(path, sizeof(path), "%s/watcher/lease", dir);
        atexit(leave);
    }
    if (n == 0)
        return 0;
    const uint8_t flags = *data++;
    struct bh_leader_file f = open_file();
    n = BH_MIN(n - 1, (flags & 1) ? FILE_BYTES - HEAD_BYTES : FILE_BYTES);
    memset(block, '\n', sizeof(block));
    memcpy(block + (flags & 1 ? HEAD_BYTES : 0), data, n);
    if (flags & 1) {
        snprintf(
            head, sizeof(head), "berth lease 2 %016llx %016llx\n", (unsigned long long)f.belongs_to,
            (unsigned long long)bh_hash(block + HEAD_BYTES, FILE_BYTES - HEAD_BYTES, f.belongs_to));
        memcpy(block, head, HEAD_BYTES);
    }
    const size_t size = flags & 2 ? n : FILE_BYTES;
    bh_assert(ftruncate(f.fd, 0) == 0 && pwrite(f.fd, block, size, 0) == (ssize_t)size);
    bh_leader_file_close(&f);
    f = open_file();
    bh_assert(f.n <= BH_ARRAY_LEN(f.past) && ((flags & 1) || f.n == 0));
    for (unsigned i = 0; i < f.n; i++) {
        bh_assert(f.past[i].term > 0 && f.past[i].term <= UINT64_MAX / 2);
        bh_assert(*f.past[i].identity && strlen(f.past[i].identity) < BH_LEASE_HOLDER_MAX);
    }
    if (f.n) { /* what was read can be written, and read again */
        const struct bh_leader_past past = f.past[0];
        bh_leader_file_write(&f, past.identity, past.term, NULL);
        bh_leader_file_close(&f);
        f = open_file();
        bh_assert(f.n == 1 && f.past[0].term == past.term &&
                  bh_streq(f.past[0].identity, past.identity));
    }
    bh_leader_file_close(&f);
    return 0;
}
