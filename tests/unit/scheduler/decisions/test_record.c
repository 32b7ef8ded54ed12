/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/scheduler/decisions/test_record.c - an attempt as bytes and back: nothing is lost,
 * nothing is believed, and recording decides nothing
 */
#include "tests/unit/scheduler/decisions/world.h"

#include <errno.h>

struct trip { /* packed and unpacked */
    struct bh_packer packer;
    struct bh_buf head, body;
    struct bh_symtab *tab; /* as a reader's */
    bh_sym *name;
    uint32_t *by_name;
    struct bh_record_names names;
    struct bh_arena a;
    struct bh_record_head h;
    struct bh_recorded got;
};

static struct trip *sorting;

static int by_text(const void *a, const void *b)
{
    return strcmp(bh_sym_text(sorting->tab, sorting->name[*(const uint32_t *)a]),
                  bh_sym_text(sorting->tab, sorting->name[*(const uint32_t *)b]));
}

static void names_of(struct trip *t, struct fx *f)
{
    const struct bh_node_list *l = &t->packer.list;

    t->tab = bh_symtab_new();
    t->name = bh_calloc(l->n + 1, sizeof(*t->name));
    t->by_name = bh_calloc(l->n + 1, sizeof(*t->by_name));
    for (uint32_t i = 0; i < l->n; i++) {
        t->name[i] = bh_sym_internc(t->tab, fx_text(f, l->name[i]));
        t->by_name[i] = i;
    }
    sorting = t;
    qsort(t->by_name, l->n, sizeof(*t->by_name), by_text);
    t->names = (struct bh_record_names){t->tab, t->name, t->by_name, l->n};
}

static void trip_init(struct trip *t, struct fx *f, const struct bh_decision *d)
{
    static const struct bh_record_after none;

    memset(t, 0, sizeof(*t));
    bh_arena_init(&t->a, 0);
    t->h = (struct bh_record_head){.mode = BH_RECORD_FULL,
                                   .attempt = 3,
                                   .n_nodes = d->n_nodes,
                                   .evaluated = d->evaluated,
                                   .feasible = d->feasible,
                                   .priority = -7,
                                   .profile = "p",
                                   .trigger = "NodeAdd",
                                   .nominated = ""};
    bh_record_set_texts(&t->h, d);
    bh_record_pack_head(&t->head, &t->h);
    bh_record_pack_points(&t->head, &t->h);
    bh_record_pack(&t->packer, f->e, d, &t->body);
    bh_record_pack_after(&t->body, &none);
    names_of(t, f);
}

static int trip_back(struct trip *t)
{
    int rc = bh_record_unpack_head(&t->a, t->head.p, t->head.n, &t->h);

    return rc < 0 ? rc : bh_record_unpack(&t->a, &t->names, &t->h, t->body.p, t->body.n, &t->got);
}

static void trip_fini(struct trip *t)
{
    bh_packer_fini(&t->packer);
    bh_buf_fini(&t->head);
    bh_buf_fini(&t->body);
    bh_symtab_free(t->tab);
    free(t->name);
    free(t->by_name);
    bh_arena_fini(&t->a);
}

static char *explained(const struct bh_symtab *tab, const struct bh_decision *d)
{
    static const struct bh_explain_subject pod = {.namespace_ = "default", .name = "p"};
    struct bh_arena a;
    struct bh_buf b = {0};

    bh_arena_init(&a, 0);
    bh_json_write(&b, bh_explain_decision(&a, &pod, tab, d));
    bh_arena_fini(&a);
    return bh_buf_take(&b);
}

static void survives(struct fx *f, struct fx_pod p, enum bh_decision_kind kind)
{
    const struct bh_pending pending = {.pod = p.rec, .shape = p.shape};
    const struct bh_decision *d = fx_schedule(f, p);
    char *want = explained(bh_engine_symtab(f->e), d), *have;
    struct trip t;

    FX_INT(d->kind, kind);
    /* As it is recorded: without the order that explain gives. */
    d = bh_engine_schedule(f->e, &pending, BH_EXPLAIN | BH_RECORD,
                           (int64_t)1893456000 * 1000000000);
    trip_init(&t, f, d);
    FX_INT(trip_back(&t), 0);
    have = explained(t.tab, &t.got.d);
    FX_STR(have, want);
    CU_ASSERT(t.got.d.n_filter_plugins >= 3);
    CU_ASSERT(t.h.priority == -7 && t.h.attempt == 3 && bh_streq(t.h.trigger, "NodeAdd"));
    free(want);
    free(have);
    trip_fini(&t);
}

static const char *const pods[][2] = {
    {"'cpu':'1'", ""},
    {"'cpu':'3500m'", ""},
    {"'cpu':'1'", "'tolerations':[{'operator':'Exists'}]"},
    {"'cpu':'100'", ""},
    {"'cpu':'1'", "'nodeSelector':{'topology.kubernetes.io/zone':'z1'}"},
    {"'cpu':'1'", "'nodeSelector':{'topology.kubernetes.io/zone':'nowhere'}"},
    {"'cpu':'1'", "'affinity':{'nodeAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':"
                  "{'nodeSelectorTerms':[{'matchFields':[{'key':'metadata.name','operator':'In',"
                  "'values':['node-7919']}]}]}}}"},
    {"'cpu':'1'", "'affinity':{'nodeAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':"
                  "{'nodeSelectorTerms':[{'matchFields':[{'key':'metadata.name','operator':'In',"
                  "'values':['no such node']}]}]}}}"},
    {"'cpu':'1900m'", "'priority':100"},
    {"'cpu':'3900m','memory':'7Gi'",
     "'priority':100,'nodeSelector':{'kubernetes.io/hostname':'node-7919'}"},
};

static void test_round_trip(void)
{
    static const enum bh_decision_kind kind[] = {BH_DECIDED, BH_DECIDED, BH_DECIDED, BH_NO_FIT,
                                                 BH_DECIDED, BH_NO_FIT,  BH_DECIDED, BH_NO_FIT,
                                                 BH_DECIDED, BH_NO_FIT};
    struct fx f;

    for (unsigned n = 12; n <= 300; n += 288) {
        fx_init(&f, NULL);
        world_nodes(&f, n);
        for (unsigned i = 0; i < BH_ARRAY_LEN(pods); i++)
            survives(&f, fx_pod(&f, bh_arena_printf(&f.arena, "p%u", i), pods[i][0], pods[i][1]),
                     kind[i]);
        fx_fini(&f);
    }
}

static void test_no_nodes(void)
{
    struct trip t;
    struct fx f;

    fx_init(&f, NULL);
    trip_init(&t, &f, fx_schedule(&f, fx_pod(&f, "p", "'cpu':'1'", "")));
    FX_INT(trip_back(&t), 0);
    FX_INT(t.got.d.kind, BH_DECISION_ERROR);
    FX_STR(t.got.d.message, "no nodes available to schedule pods");
    trip_fini(&t);
    fx_fini(&f);
}

/* Every byte cut off, and bytes changed at random: an error or other numbers, never a crash. */
static void test_foreign_bytes(void)
{
    struct bh_rand r;
    struct trip t;
    struct fx f;
    unsigned refused = 0;

    bh_rand_seed(&r, 5);
    fx_init(&f, NULL);
    world_nodes(&f, 40);
    trip_init(&t, &f, fx_schedule(&f, fx_pod(&f, "p", pods[8][0], pods[8][1])));
    for (size_t n = 0; n < t.body.n; n++) {
        char *cut = bh_memdup(t.body.p, n ? n : 1);
        bh_arena_reset(&t.a);
        CU_ASSERT(bh_record_unpack(&t.a, &t.names, &t.h, cut, n, &t.got) == -EIO);
        free(cut);
    }
    for (unsigned i = 0; i < 4000; i++) {
        char *other = bh_memdup(t.body.p, t.body.n);
        for (unsigned k = 0; k < 1 + i % 4; k++)
            other[bh_rand_below(&r, t.body.n)] = (char)bh_rand_u64(&r);
        bh_arena_reset(&t.a);
        if (bh_record_unpack(&t.a, &t.names, &t.h, other, t.body.n, &t.got) < 0)
            refused++;
        else
            free(explained(t.tab, &t.got.d));
        free(other);
    }
    CU_ASSERT(refused > 500);
    trip_fini(&t);
    fx_fini(&f);
}

/* The same pods in the same order, with seeded ties and preemption: the same nodes. */
static void test_decides_nothing(void)
{
    static const struct bh_engine_options o = {.tie_break = BH_TIE_RANDOM, .seed = 42};
    static const unsigned flags[2] = {0, BH_EXPLAIN | BH_RECORD};
    struct bh_packer packer = {0};
    struct bh_buf text[2] = {{0}}, body = {0};

    for (unsigned run = 0; run < 2; run++) {
        struct fx f;
        fx_init_with(&f, NULL, o);
        world_nodes(&f, 60);
        for (unsigned i = 0; i < 400; i++) {
            struct fx_pod p =
                fx_pod(&f, bh_arena_printf(&f.arena, "p%u", i), pods[i % 10][0], pods[i % 10][1]);
            const struct bh_pending pending = {.pod = p.rec, .shape = p.shape};
            const struct bh_decision *d = bh_engine_schedule(f.e, &pending, flags[run], i);
            bh_buf_reset(&body);
            if (run)
                bh_record_pack(&packer, f.e, d, &body);
            bh_buf_addf(&text[run], "%u %s %s %u/%u %u %s\n", i, fx_text(&f, d->node),
                        fx_text(&f, d->nominated_node), d->feasible, d->evaluated, d->n_victims,
                        d->kind == BH_NO_FIT ? d->message : "");
            if (d->kind == BH_DECIDED)
                (void)bh_engine_assume(f.e, &pending, d->node);
            else if (d->nominated_node != BH_SYM_NONE)
                bh_engine_nominate(f.e, &pending, d->nominated_node);
        }
        fx_fini(&f);
    }
    FX_STR(bh_buf_str(&text[1]), bh_buf_str(&text[0]));
    CU_ASSERT(strstr(bh_buf_str(&text[0]), "preemption") != NULL);
    bh_packer_fini(&packer);
    bh_buf_fini(&body);
    bh_buf_fini(&text[0]);
    bh_buf_fini(&text[1]);
}

/* Nodes come and go: a list that is mostly dead names is left for a new one. */
static void test_node_list(void)
{
    struct bh_node_list l = {0};

    for (bh_sym s = 1; s <= 5000; s++)
        FX_INT(bh_node_list_place(&l, s), s - 1);
    FX_INT(bh_node_list_place(&l, 17), 16);
    bh_node_list_review(&l, 2500);
    FX_INT(l.n, 5000);
    bh_node_list_review(&l, 2499);
    FX_INT(l.n, 0);
    FX_INT(l.id, 2);
    FX_INT(bh_node_list_place(&l, 4000), 0);
    bh_node_list_fini(&l);
}

BH_TESTS("scheduler/decisions/record",
         {"what is packed comes back as explain has it", test_round_trip},
         {"an empty cluster", test_no_nodes}, {"bytes of somebody else", test_foreign_bytes},
         {"recording decides nothing", test_decides_nothing},
         {"lists of node names", test_node_list})
