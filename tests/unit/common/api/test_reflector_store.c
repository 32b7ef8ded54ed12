/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/common/api/test_reflector_store.c - the set of delivered objects against a plain one
 */
#include "common/api/reflector_int.h"
#include "tests/unit/harness.h"

#define OBJECTS 300u
#define OPS     200000u

/* The usual forms, and such as only look like them: each has to come back as it was. */
static const char *const uids[] = {
    "0f8fad5b-d9cb-469f-a165-70867728950e", "0f8fad5b-d9cb-469f-a165-70867728950f",
    "0F8FAD5B-D9CB-469F-A165-70867728950E", "0f8fad5b_d9cb-469f-a165-70867728950e",
    "0f8fad5b-d9cb-469f-a165-70867728950",  "0f8fad5b-d9cb-469f-a165-70867728950e0",
    "0f8fad5b-d9cb-469f-a165-7086772895-e", "u",
    "ffffffff-ffff-ffff-ffff-ffffffffffff"};
static const char *const versions[] = {"0",
                                       "1",
                                       "9",
                                       "10",
                                       "007",
                                       "7",
                                       "9999999999999999999",
                                       "18446744073709551615",
                                       "18446744073709551616",
                                       "99999999999999999999999",
                                       "x1",
                                       "-1"};

struct plain {
    const char *uid, *rv; /* NULL = not there */
    bool seen;            /* by the running list */
};
struct model {
    struct plain o[OBJECTS];
    char text[OBJECTS][64]; /* "ns name" */
    size_t n, gone;
};

static struct bh_refl_key key_of(struct model *m, unsigned i, const char *uid, const char *rv)
{
    return (struct bh_refl_key){i % 3 ? "default" : "", m->text[i], uid, rv};
}

static enum bh_refl_verdict plain_put(struct model *m, unsigned i, const char *uid, const char *rv,
                                      bool from_list)
{
    struct plain *p = &m->o[i];
    const struct plain old = *p;

    if (old.uid) {
        p->seen = true;
        int cmp = bh_refl_rv_cmp(rv, old.rv);
        if ((bh_streq(uid, old.uid) && cmp == 0) || (cmp < 0 && !from_list))
            return BH_REFL_SAME;
    }
    *p = (struct plain){uid, rv, true};
    m->n += !old.uid;
    return !old.uid ? BH_REFL_NEW : bh_streq(uid, old.uid) ? BH_REFL_CHANGED : BH_REFL_REPLACED;
}

static void on_gone(void *arg, const struct bh_refl_key *k)
{
    struct model *m = arg;
    unsigned i = (unsigned)strtoul(k->name + 4, NULL, 10);

    CU_ASSERT_FATAL(i < OBJECTS && m->o[i].uid && !m->o[i].seen);
    CU_ASSERT_STRING_EQUAL(k->name, m->text[i]);
    CU_ASSERT_STRING_EQUAL(k->ns, i % 3 ? "default" : "");
    CU_ASSERT_STRING_EQUAL(k->uid, m->o[i].uid);
    CU_ASSERT_STRING_EQUAL(k->rv, m->o[i].rv);
    m->o[i].uid = NULL;
    m->n--;
    m->gone++;
}

static void sweep(struct bh_refl_store *s, struct model *m)
{
    bh_refl_store_sweep(s, on_gone, m);
    for (unsigned i = 0; i < OBJECTS; i++) {
        CU_ASSERT(!m->o[i].uid || m->o[i].seen);
        m->o[i].seen = false;
    }
    bh_refl_store_begin_list(s);
}

static void one(struct bh_refl_store *s, struct model *m, struct bh_rand *r)
{
    unsigned i = (unsigned)bh_rand_below(r, OBJECTS);
    const char *uid = uids[bh_rand_below(r, BH_ARRAY_LEN(uids))];
    const char *rv = versions[bh_rand_below(r, BH_ARRAY_LEN(versions))];
    const struct plain old = m->o[i];
    bool from_list = bh_rand_below(r, 2);
    struct bh_refl_key k = key_of(m, i, uid, rv);
    char *told BH_CLEANUP(bh_freep) = NULL;

    if (bh_rand_below(r, 4)) {
        enum bh_refl_verdict want = plain_put(m, i, uid, rv, from_list);
        CU_ASSERT_EQUAL(bh_refl_store_put(s, &k, from_list, &told), want);
        CU_ASSERT(want == BH_REFL_REPLACED ? bh_streq(told, old.uid) : !told);
        return;
    }
    bool want = old.uid && bh_refl_rv_cmp(rv, old.rv) >= 0;
    CU_ASSERT_EQUAL(bh_refl_store_del(s, &k, &told), want);
    CU_ASSERT(want ? bh_streq(told, old.uid) : !told);
    if (want) {
        m->o[i].uid = NULL;
        m->n--;
    }
}

static void test_random(void)
{
    static struct model m; /* large */
    struct bh_refl_store s = {0};
    struct bh_rand r;

    m = (struct model){.n = 0};
    bh_rand_seed(&r, 6);
    for (unsigned i = 0; i < OBJECTS; i++)
        snprintf(m.text[i], sizeof(m.text[i]), "name%u%s", i, i % 2 ? "-with-a-longer-text" : "");
    bh_refl_store_begin_list(&s);
    for (unsigned op = 0; op < OPS; op++) {
        one(&s, &m, &r);
        CU_ASSERT_EQUAL(s.len, m.n);
        if (op % 200 == 199)
            sweep(&s, &m);
    }
    CU_ASSERT(m.gone > 100);
    bh_refl_store_fini(&s);
    CU_ASSERT_EQUAL(s.len, 0);
}

/* The key's limit, and that a store without anything answers. */
static void test_edges(void)
{
    static char name[2000];
    struct bh_refl_store s = {0};
    char *uid = NULL;
    struct bh_refl_key k = {"ns", name, "u", "1"};

    CU_ASSERT_FALSE(bh_refl_store_del(&s, &k, &uid));
    bh_refl_store_sweep(&s, on_gone, NULL);
    bh_refl_store_begin_list(&s);
    memset(name, 'n', sizeof(name) - 1);
    CU_ASSERT_EQUAL(bh_refl_store_put(&s, &k, true, &uid), BH_REFL_INVALID);
    CU_ASSERT_FALSE(bh_refl_store_del(&s, &k, &uid));
    name[1020] = 0;
    CU_ASSERT_EQUAL(bh_refl_store_put(&s, &k, true, &uid), BH_REFL_NEW);
    CU_ASSERT_EQUAL(bh_refl_store_put(&s, &k, true, &uid), BH_REFL_SAME);
    CU_ASSERT_TRUE(bh_refl_store_del(&s, &k, &uid));
    CU_ASSERT_STRING_EQUAL(uid, "u");
    free(uid);
    bh_refl_store_fini(&s);
}

BH_TESTS("common/api/reflector_store", {"random changes against a plain model", test_random},
         {"the limit of names, and an empty store", test_edges})
