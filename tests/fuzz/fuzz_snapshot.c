/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/fuzz/fuzz_snapshot.c - a reader at a damaged data segment
 *
 * Input: a list of patches {u16 place, u8 length, bytes} over a small valid segment; the first byte
 * tells how many of them come after the reader has attached (0: all before). place counts in units
 * of 4 bytes. Property: no report, and every record that is delivered passes the validation that it
 * claims to have passed.
 */
#include "common/snapshot/writer_int.h"
#include "common/base/trusted_file.h"

#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static struct bh_snap_writer *writer;
static char *pristine;

static void fill(struct bh_snap_writer *w)
{
    struct bh_interner in = bh_snap_interner(w);
    struct {
        struct bh_node_rec r;
        struct bh_kv label;
    } node = {.r = {.h = {sizeof(node), BH_REC_NODE, BH_REC_LAYOUT}}};
    struct bh_shape_rec shape = {.h = {sizeof(shape), BH_REC_SHAPE, BH_REC_LAYOUT}};
    struct {
        struct bh_pod_rec r;
        char name[8], ns[8], uid[8];
    } pod = {.r = {.h = {sizeof(pod), BH_REC_POD, BH_REC_LAYOUT}}};
    const uint32_t text = offsetof(struct bh_pod_rec, uid) + sizeof(struct bh_slice);
    node.r.labels = (struct bh_slice){sizeof(node.r), 1};
    node.label = (struct bh_kv){in.intern(in.arg, "zone", 4), in.intern(in.arg, "a", 1)};
    pod.r.name = (struct bh_slice){text, 1};
    pod.r.namespace_ = (struct bh_slice){text + 8, 1};
    pod.r.uid = (struct bh_slice){text + 16, 1};
    pod.name[0] = pod.ns[0] = 'p';
    for (char c = 'a'; c < 'e'; c++) {
        node.r.name = pod.r.node = in.intern(in.arg, &c, 1);
        pod.uid[0] = c;
        shape.priority = c / 2;
        bh_assert(bh_snap_put_node(w, &node.r) == 0);
        bh_assert(bh_snap_put_pod(w, &pod.r, &shape) == 0);
    }
}

/* Nothing is left in /dev/shm; what a crash leaves there is for the sweep of a person. */
static void close_writer(void)
{
    char *dir = bh_strdup(writer->runtime_dir);
    bh_snap_writer_free(writer);
    bh_remove_tree(dir);
    free(dir);
    free(pristine);
}

static void open_writer(void)
{
    const struct bh_snap_options o = {.initial_bytes = 4096, .log_entries = 16};
    char dir[] = "/tmp/berth-fuzz-snapshot-XXXXXX";
    bh_assert(mkdtemp(dir) && bh_snap_writer_new(dir, &o, &writer, NULL) == 0);
    atexit(close_writer);
    fill(writer);
    bh_snap_set_synced(writer, true);
    pristine = bh_memdup(writer->seg.map->base, writer->seg.map->bytes);
}

static void check(void *arg, const struct bh_snap_event *ev)
{
    const void *rec = ev->node ? (const void *)ev->node : (const void *)ev->pod;
    (void)arg;
    for (int i = 0; i < 2; i++, rec = ev->shape) {
        const struct bh_rec_head *h = rec;
        if (!h)
            continue;
        void *copy = bh_memdup(h, h->size);
        bh_assert(bh_rec_remap(copy, h->size, NULL, NULL) == 0);
        free(copy);
    }
}

static size_t patch(const uint8_t *data, size_t n)
{
    char *base = writer->seg.map->base;
    if (n < 4)
        return n;
    size_t at = (data[0] | (size_t)data[1] << 8) * 4, len = data[2] % 17;
    len = BH_MIN(len, n - 3);
    if (at < writer->seg.map->bytes - len)
        memcpy(base + at, data + 3, len);
    return 3 + len;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (!writer)
        open_writer();
    if (n == 0)
        return 0;
    memcpy(writer->seg.map->base, pristine, writer->seg.map->bytes);
    struct bh_symtab *tab = bh_symtab_new();
    struct bh_snap_reader *r = bh_snap_reader_new(writer->runtime_dir, tab);
    uint8_t late = data[0];
    data++, n--;
    /* Four turns: attach, and go on after each late patch. */
    for (unsigned turn = 0; turn < 4; turn++) {
        while (n > 0 && (turn > 0 || late == 0 || n > late)) {
            size_t took = patch(data, n);
            data += took, n -= took;
            if (turn > 0)
                break;
        }
        (void)bh_snap_follow(r, 1000, check, NULL);
    }
    bh_snap_reader_free(r);
    bh_symtab_free(tab);
    return 0;
}
