/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/watcher/test_objects.c - the list of objects and its readers, against a plain model
 */
#include "watcher/objects.h"
#include "tests/unit/harness.h"

static void put(struct bh_objects *o, const char *name, const char *uid, const char *bytes)
{
    const struct bh_object_key k = {BH_KIND_POD, "ns", name, uid, "1"};
    bh_objects_put(o, &k, bytes, strlen(bytes), 7);
}

static bool end(struct bh_objects *o, const char *name, const char *uid, enum bh_object_state how)
{
    const struct bh_object_key k = {BH_KIND_POD, "ns", name, uid, "2"};
    return bh_objects_end(o, &k, how, 8);
}

/* What a reader is given from where it stands, as "+a ~b -c =d ". */
static void drain(struct bh_objects *o, unsigned reader, char out[static 256])
{
    const struct bh_object *ob;
    bool known;
    size_t n = 0;
    out[0] = 0;
    while ((ob = bh_objects_peek(o, reader, &known))) {
        char sign = ob->state == BH_OBJ_DELETED ? '-'
                    : ob->state == BH_OBJ_BOUND ? '='
                    : known                     ? '~'
                                                : '+';
        n += (size_t)snprintf(out + n, 256 - n, "%c%s:%.*s ", sign, ob->name, (int)ob->bytes_n,
                              (const char *)ob->bytes);
        bh_objects_advance(o, reader);
    }
}

static void expect(struct bh_objects *o, int reader, const char *want)
{
    char got[256];
    drain(o, (unsigned)reader, got);
    if (!bh_streq(got, want))
        printf("# got \"%s\", want \"%s\"\n", got, want);
    CU_ASSERT_STRING_EQUAL(got, want);
}

static void test_life(void)
{
    struct bh_objects o;
    bh_objects_init(&o);
    put(&o, "a", "1", "x");
    int r = bh_objects_reader_open(&o);
    put(&o, "b", "2", "y");
    expect(&o, r, "+a:x +b:y ");
    expect(&o, r, "");
    put(&o, "a", "1", "xx");
    put(&o, "c", "3", "z");
    CU_ASSERT(end(&o, "b", "2", BH_OBJ_BOUND));
    CU_ASSERT(!end(&o, "b", "2", BH_OBJ_BOUND));
    expect(&o, r, "~a:xx +c:z =b: ");
    CU_ASSERT(!end(&o, "a", "other uid", BH_OBJ_DELETED));
    CU_ASSERT(end(&o, "a", "1", BH_OBJ_DELETED));
    CU_ASSERT_EQUAL(o.tombs, 1);
    expect(&o, r, "-a: ");
    CU_ASSERT_EQUAL(o.tombs, 0);
    CU_ASSERT_EQUAL(o.live[BH_KIND_POD], 1);
    CU_ASSERT_EQUAL(o.bytes, 1);
    const struct bh_object *c = bh_objects_find(&o, BH_KIND_POD, "ns", "c");
    CU_ASSERT_PTR_NOT_NULL_FATAL(c);
    CU_ASSERT_EQUAL(c->log_pos, 7);
    bh_objects_fini(&o);
}

static void test_coalescing(void)
{
    struct bh_objects o;
    bh_objects_init(&o);
    int r = bh_objects_reader_open(&o);
    put(&o, "a", "1", "v1");
    put(&o, "b", "2", "v1");
    put(&o, "a", "1", "v2");
    put(&o, "a", "1", "v3");
    CU_ASSERT(end(&o, "b", "2", BH_OBJ_DELETED)); /* came and went unseen: not a word */
    CU_ASSERT_EQUAL(o.tombs, 0);
    expect(&o, r, "+a:v3 ");
    bh_objects_fini(&o);
}

static void test_same_name_again(void)
{
    struct bh_objects o;
    bh_objects_init(&o);
    int r = bh_objects_reader_open(&o);
    put(&o, "a", "1", "old");
    expect(&o, r, "+a:old ");
    put(&o, "a", "2", "new"); /* the deletion was never seen */
    expect(&o, r, "-a: +a:new ");
    CU_ASSERT(end(&o, "a", "2", BH_OBJ_DELETED));
    put(&o, "a", "3", "newer");
    expect(&o, r, "-a: +a:newer ");
    CU_ASSERT_EQUAL(o.live[BH_KIND_POD], 1);
    bh_objects_fini(&o);
}

static void test_readers(void)
{
    struct bh_objects o;
    bh_objects_init(&o);
    int fast = bh_objects_reader_open(&o), slow = bh_objects_reader_open(&o);
    put(&o, "a", "1", "x");
    expect(&o, fast, "+a:x ");
    expect(&o, slow, "+a:x ");
    end(&o, "a", "1", BH_OBJ_DELETED);
    expect(&o, fast, "-a: ");
    CU_ASSERT_EQUAL(o.tombs, 1); /* for the slow one */
    bh_objects_reader_close(&o, (unsigned)slow);
    CU_ASSERT_EQUAL(o.tombs, 0);
    put(&o, "b", "2", "y");
    expect(&o, fast, "+b:y ");
    bh_objects_reader_restart(&o, (unsigned)fast); /* hello again: everything */
    expect(&o, fast, "+b:y ");
    unsigned n = 1;
    while (bh_objects_reader_open(&o) >= 0)
        n++;
    CU_ASSERT_EQUAL(n, BH_OBJECTS_READERS);
    bh_objects_fini(&o);
}

/* Random changes and readers that stop anywhere; each reader's fold of what it was given must end
 * equal to the live objects. */
#define NAMES   20
#define READERS 4

struct model {
    char value[NAMES][16]; /* "" = absent */
    int uid[NAMES];
};

static void fold(struct bh_objects *o, unsigned reader, struct model *m, unsigned steps)
{
    const struct bh_object *ob;
    bool known;
    while (steps-- && (ob = bh_objects_peek(o, reader, &known))) {
        long i = strtol(ob->name, NULL, 10);
        CU_ASSERT_EQUAL(known, m->value[i][0] != 0);
        if (ob->state == BH_OBJ_LIVE)
            snprintf(m->value[i], 16, "%.*s", (int)ob->bytes_n, (const char *)ob->bytes);
        else
            m->value[i][0] = 0;
        bh_objects_advance(o, reader);
    }
}

static void random_change(struct bh_objects *o, struct model *m, struct bh_rand *rand, int step)
{
    char name[8], uid[16], value[16];
    int i = (int)bh_rand_below(rand, NAMES);
    snprintf(name, sizeof(name), "%d", i);
    if (m->value[i][0] && bh_rand_below(rand, 3) == 0) {
        snprintf(uid, sizeof(uid), "%d", m->uid[i]);
        CU_ASSERT(end(o, name, uid, bh_rand_below(rand, 2) ? BH_OBJ_BOUND : BH_OBJ_DELETED));
        m->value[i][0] = 0;
        return;
    }
    if (!m->value[i][0] || bh_rand_below(rand, 10) == 0)
        m->uid[i] = step;
    snprintf(uid, sizeof(uid), "%d", m->uid[i]);
    snprintf(value, sizeof(value), "v%d", step);
    put(o, name, uid, value);
    snprintf(m->value[i], 16, "%s", value);
}

static void test_random(void)
{
    struct bh_objects o;
    struct bh_rand rand;
    static struct model truth, seen[READERS];
    bh_rand_seed(&rand, 42);
    bh_objects_init(&o);
    for (int r = 0; r < READERS; r++)
        CU_ASSERT_EQUAL(bh_objects_reader_open(&o), r);
    for (int step = 1; step < 20000; step++) {
        random_change(&o, &truth, &rand, step);
        unsigned r = (unsigned)bh_rand_below(&rand, READERS * 3);
        if (r < READERS)
            fold(&o, r, &seen[r], (unsigned)bh_rand_below(&rand, 8));
        if (bh_rand_below(&rand, 500) == 0) {
            r = (unsigned)bh_rand_below(&rand, READERS);
            memset(&seen[r], 0, sizeof(seen[r]));
            bh_objects_reader_restart(&o, r);
        }
    }
    for (unsigned r = 0; r < READERS; r++) {
        fold(&o, r, &seen[r], UINT32_MAX);
        for (int i = 0; i < NAMES; i++)
            CU_ASSERT_STRING_EQUAL(seen[r].value[i], truth.value[i]);
    }
    CU_ASSERT_EQUAL(o.tombs, 0);
    bh_objects_fini(&o);
}

BH_TESTS("watcher/objects", {"a reader gets what is there and then each change", test_life},
         {"a late reader gets the newest version only", test_coalescing},
         {"another object of the same name is a deletion and an addition", test_same_name_again},
         {"tombstones live as long as somebody has to be told", test_readers},
         {"20000 random changes: every reader ends with the truth", test_random})
