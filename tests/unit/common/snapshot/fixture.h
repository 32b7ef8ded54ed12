/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/common/snapshot/fixture.h - records by hand, a plain model, and a reader that checks
 *
 * Every object carries the number of the operation that wrote it, and everything else in it follows
 * from (index, number). So a delivered record proves itself, and a state is known by the sum of
 * hash(kind, index, number) over its live objects: two numbers tell whether two states are equal.
 */
#ifndef BH_TEST_SNAPSHOT_FIXTURE_H
#define BH_TEST_SNAPSHOT_FIXTURE_H

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/snapshot/announce.h"
#include "common/snapshot/writer_int.h"
#include "tests/unit/harness.h"

/* ---- names ----------------------------------------------------------------------------------- */
#define FX_NAME 256
static uint64_t fx_instances[1024]; /* of the runtime directories of this process's tests */
static unsigned fx_instances_n;

/* A runtime directory of its own. */
static inline const char *fx_name(void)
{
    static char name[FX_NAME];
    bh_assert(fx_instances_n < BH_ARRAY_LEN(fx_instances));
    snprintf(name, sizeof(name), "%s/run%u", bh_test_tmpdir(), fx_instances_n);
    bh_assert(mkdir(name, 0750) == 0);
    fx_instances[fx_instances_n++] = bh_snap_instance(name);
    return name;
}

static inline bool fx_is_ours(const char *file)
{
    char prefix[BH_SNAP_NAME_MAX];
    for (unsigned i = 0; i < fx_instances_n; i++) {
        snprintf(prefix, sizeof(prefix), "berth-%016llx", (unsigned long long)fx_instances[i]);
        if (strncmp(file, prefix, strlen(prefix)) == 0)
            return true;
    }
    return false;
}

/* Objects in /dev/shm of those runtime directories. */
static inline unsigned fx_left_over(bool remove_them)
{
    unsigned n = 0;
    DIR *d = opendir(BH_SNAP_FOLDER);
    for (struct dirent *e; d && (e = readdir(d));) {
        if (!fx_is_ours(e->d_name))
            continue;
        n++;
        if (remove_them)
            unlinkat(dirfd(d), e->d_name, 0);
    }
    if (d)
        closedir(d);
    return n;
}

static inline void test_nothing_is_left_in_dev_shm(void)
{
    CU_ASSERT_EQUAL(fx_left_over(true), 0);
}

static inline bool fx_before(uint64_t deadline_ns)
{
    return bh_mono_ns() < deadline_ns;
}

/* Against a hang, not a judgement of speed: a machine may be busy with other things. */
static inline uint64_t fx_in(unsigned seconds)
{
    return bh_mono_ns() + 5 * seconds * 1000000000ull;
}

/* ---- records --------------------------------------------------------------------------------- */
struct fx_blob {
    _Alignas(16) char b[2048];
    size_t n;
};

static inline struct bh_slice fx_put(struct fx_blob *o, const void *p, size_t n, size_t count)
{
    struct bh_slice s = {(uint32_t)o->n, (uint32_t)count};
    if (n == 0)
        return (struct bh_slice){0};
    bh_assert(o->n + n + 8 <= sizeof(o->b));
    memcpy(o->b + o->n, p, n);
    o->n = (o->n + n + 7) & ~(size_t)7;
    return s;
}

static inline struct bh_slice fx_text(struct fx_blob *o, const char *s)
{
    return fx_put(o, s, strlen(s) + 1, strlen(s));
}

static inline bh_sym fx_sym(struct bh_interner in, const char *fmt, uint64_t x)
{
    char text[96];
    int n = snprintf(text, sizeof(text), fmt, (unsigned long long)x);
    return in.intern(in.arg, text, (size_t)n);
}

static inline void *fx_finish(struct fx_blob *o, uint16_t type)
{
    *(struct bh_rec_head *)o->b =
        (struct bh_rec_head){.size = (uint32_t)o->n, .type = type, .layout = BH_REC_LAYOUT};
    return o->b;
}

#define FX_LABELS(op) ((unsigned)((op)*7 % 6)) /* 0..5: sizes differ from update to update */
#define FX_VARIANTS   40u

/* Most pods share a few shapes; every eighth operation brings one of its own. */
static inline uint64_t fx_variant(uint64_t op)
{
    return op % 8 ? op % FX_VARIANTS : FX_VARIANTS + op;
}

static inline struct bh_node_rec *fx_node(struct fx_blob *o, struct bh_interner in, uint64_t idx,
                                          uint64_t op)
{
    struct bh_kv kv[8];
    memset(o->b, 0, sizeof(o->b));
    struct bh_node_rec *r = (void *)o->b;
    o->n = sizeof(*r);
    r->name = fx_sym(in, "node-%llu", idx);
    r->uid = fx_sym(in, "node-uid-%llu", idx);
    r->resource_version = op;
    r->alloc_cpu_milli = (int64_t)(idx * 1000 + op);
    r->alloc_pods = 110;
    r->conditions_hash = op;
    for (unsigned i = 0; i < FX_LABELS(op); i++)
        kv[i] = (struct bh_kv){fx_sym(in, "label-%llu", i), fx_sym(in, "value-%llu", op % 97 + i)};
    r->labels = fx_put(o, kv, FX_LABELS(op) * sizeof(kv[0]), FX_LABELS(op));
    return fx_finish(o, BH_REC_NODE);
}

static inline struct bh_shape_rec *fx_shape(struct fx_blob *o, struct bh_interner in,
                                            uint64_t variant)
{
    memset(o->b, 0, sizeof(o->b));
    struct bh_shape_rec *r = (void *)o->b;
    o->n = sizeof(*r);
    r->namespace_ = fx_sym(in, "namespace-%llu", variant % 3);
    r->scheduler_name = fx_sym(in, "default-scheduler", 0);
    r->priority = (int32_t)variant;
    r->fit.cpu_milli = r->used.cpu_milli = (int64_t)variant * 10;
    struct bh_kv kv[2] = {{fx_sym(in, "app", 0), fx_sym(in, "app-%llu", variant)}};
    r->labels = fx_put(o, kv, sizeof(kv[0]), 1);
    return fx_finish(o, BH_REC_SHAPE);
}

static inline struct bh_pod_rec *fx_pod(struct fx_blob *o, struct bh_interner in, uint64_t idx,
                                        uint64_t op)
{
    char text[64];
    memset(o->b, 0, sizeof(o->b));
    struct bh_pod_rec *r = (void *)o->b;
    o->n = sizeof(*r);
    r->node = fx_sym(in, "node-%llu", op % 50);
    r->resource_version = op;
    r->generation = (int64_t)op;
    snprintf(text, sizeof(text), "pod-%llu", (unsigned long long)idx);
    r->name = fx_text(o, text);
    snprintf(text, sizeof(text), "namespace-%llu", (unsigned long long)(op % FX_VARIANTS % 3));
    r->namespace_ = fx_text(o, text);
    snprintf(text, sizeof(text), "%llu", (unsigned long long)idx);
    r->uid = fx_text(o, text);
    return fx_finish(o, BH_REC_POD);
}

/* ---- the model: what must be there after n operations ---------------------------------------- */
#define FX_MAX_OBJECTS 4096u

enum { FX_NODES, FX_PODS, FX_KINDS };
struct fx_state {
    uint64_t op[FX_KINDS][FX_MAX_OBJECTS]; /* 0 = absent */
    uint64_t count[FX_KINDS];
    uint64_t sum;
};

static inline uint64_t fx_hash(unsigned kind, uint64_t idx, uint64_t op)
{
    uint64_t k[3] = {kind, idx, op};
    return op ? bh_hash(k, sizeof(k), 1) : 0;
}

static inline void fx_set(struct fx_state *s, unsigned kind, uint64_t idx, uint64_t op)
{
    uint64_t *at = &s->op[kind][idx];
    s->sum += fx_hash(kind, idx, op) - fx_hash(kind, idx, *at);
    s->count[kind] += (op != 0) - (*at != 0);
    *at = op;
}

static inline bool fx_equal(const struct fx_state *a, const struct fx_state *b)
{
    return a->sum == b->sum && memcmp(a, b, sizeof(*a)) == 0;
}

/* Operation number op (from 1) of the sequence with this seed over n objects of each kind. */
struct fx_op {
    unsigned kind;
    uint64_t idx;
    bool del;
};

static inline struct fx_op fx_op(uint64_t seed, uint64_t op, uint64_t n)
{
    uint64_t k[2] = {seed, op};
    uint64_t h = bh_hash(k, sizeof(k), 2);
    return (struct fx_op){
        .kind = h % 3 == 0 ? FX_NODES : FX_PODS, .idx = (h >> 8) % n, .del = (h >> 40) % 4 == 0};
}

static inline void fx_model(struct fx_state *s, uint64_t seed, uint64_t op, uint64_t n)
{
    struct fx_op o = fx_op(seed, op, n);
    fx_set(s, o.kind, o.idx, o.del ? 0 : op);
}

/* The same on a writer. */
static inline int fx_write_node(struct bh_snap_writer *w, uint64_t idx, uint64_t op)
{
    struct fx_blob o;
    return bh_snap_put_node(w, fx_node(&o, bh_snap_interner(w), idx, op));
}

static inline int fx_write_pod(struct bh_snap_writer *w, uint64_t idx, uint64_t op)
{
    struct fx_blob p, s;
    struct bh_interner in = bh_snap_interner(w);
    return bh_snap_put_pod(w, fx_pod(&p, in, idx, op), fx_shape(&s, in, fx_variant(op)));
}

static inline int fx_delete(struct bh_snap_writer *w, unsigned kind, uint64_t idx)
{
    char text[64];
    int n = snprintf(text, sizeof(text), kind == FX_NODES ? "node-%llu" : "%llu",
                     (unsigned long long)idx);
    return kind == FX_NODES ? bh_snap_del_node(w, text, (size_t)n)
                            : bh_snap_del_pod(w, text, (size_t)n);
}

static inline int fx_write(struct bh_snap_writer *w, uint64_t seed, uint64_t op, uint64_t n)
{
    struct fx_op o = fx_op(seed, op, n);
    if (o.del) {
        int rc = fx_delete(w, o.kind, o.idx);
        return rc == -ENOENT ? 0 : rc;
    }
    return o.kind == FX_NODES ? fx_write_node(w, o.idx, op) : fx_write_pod(w, o.idx, op);
}

/* ---- a reader's owner that checks all it is told --------------------------------------------- */
struct fx_reader {
    struct bh_symtab *tab;
    struct bh_snap_reader *r;
    struct fx_state state;
    uint64_t wrong; /* records that contradict themselves */
    uint64_t events, begins, ends, overruns, incarnations, shapes;
    uint64_t last_pos, end_pos;
    bool rebuilding;
    void (*on_event)(struct fx_reader *x, const struct bh_snap_event *ev); /* may be NULL */
};

#define FX_SELF(x, cond)                                                                           \
    do {                                                                                           \
        if (!(cond)) {                                                                             \
            (x)->wrong++;                                                                          \
            fprintf(stderr, "# %s:%d: contradiction: %s\n", __FILE__, __LINE__, #cond);            \
        }                                                                                          \
    } while (0)

static inline bool fx_is(const struct bh_symtab *t, bh_sym s, const char *fmt, uint64_t x)
{
    char text[96];
    snprintf(text, sizeof(text), fmt, (unsigned long long)x);
    return bh_streq(bh_sym_text(t, s), text);
}

static inline uint64_t fx_check_node(struct fx_reader *x, const struct bh_node_rec *r)
{
    uint64_t op = r->conditions_hash, idx = ((uint64_t)r->alloc_cpu_milli - op) / 1000;
    char key[32], value[32];
    FX_SELF(x, idx < FX_MAX_OBJECTS && fx_is(x->tab, r->name, "node-%llu", idx));
    FX_SELF(x, fx_is(x->tab, r->uid, "node-uid-%llu", idx));
    FX_SELF(x, r->labels.n == FX_LABELS(op));
    for (unsigned i = 0; i < r->labels.n; i++) {
        bh_sym got = 0;
        snprintf(key, sizeof(key), "label-%u", i);
        snprintf(value, sizeof(value), "value-%u", (unsigned)(op % 97 + i));
        const struct bh_kv *kv = bh_rec_at(r, r->labels, struct bh_kv);
        for (unsigned j = 0; j < r->labels.n; j++)
            if (kv[j].key == bh_sym_find(x->tab, key, strlen(key)))
                got = kv[j].value;
        FX_SELF(x, bh_streq(bh_sym_text(x->tab, got), value));
    }
    return idx % FX_MAX_OBJECTS;
}

static inline uint64_t fx_check_pod(struct fx_reader *x, const struct bh_snap_event *ev)
{
    const struct bh_pod_rec *r = ev->pod;
    uint64_t op = (uint64_t)r->generation, variant = fx_variant(op);
    uint64_t idx = strtoull(bh_rec_text(r, r->uid).p, NULL, 10);
    char text[32];
    snprintf(text, sizeof(text), "pod-%llu", (unsigned long long)idx);
    FX_SELF(x, idx < FX_MAX_OBJECTS && bh_str_eqc(bh_rec_text(r, r->name), text));
    FX_SELF(x, fx_is(x->tab, r->node, "node-%llu", op % 50));
    FX_SELF(x, ev->shape && ev->shape->h.type == BH_REC_SHAPE && ev->shape_key == r->shape);
    FX_SELF(x, ev->shape->priority == (int32_t)variant && ev->shape->labels.n == 1);
    FX_SELF(x, fx_is(x->tab, bh_rec_at(ev->shape, ev->shape->labels, struct bh_kv)->value,
                     "app-%llu", variant));
    return idx % FX_MAX_OBJECTS;
}

static inline void fx_on_event(void *arg, const struct bh_snap_event *ev)
{
    struct fx_reader *x = arg;
    x->events++;
    switch (ev->op) {
    case BH_SNAP_BEGIN:
        x->begins++;
        x->rebuilding = true;
        x->shapes = 0;
        memset(&x->state, 0, sizeof(x->state));
        break;
    case BH_SNAP_END:
        x->ends++;
        x->end_pos = ev->pos;
        x->rebuilding = false;
        break;
    case BH_SNAP_NODE_PUT:
        fx_set(&x->state, FX_NODES, fx_check_node(x, ev->node), ev->node->conditions_hash);
        break;
    case BH_SNAP_NODE_DEL:
        fx_set(&x->state, FX_NODES, fx_check_node(x, ev->node), 0);
        break;
    case BH_SNAP_POD_PUT:
        fx_set(&x->state, FX_PODS, fx_check_pod(x, ev), (uint64_t)ev->pod->generation);
        break;
    case BH_SNAP_POD_DEL:
        fx_set(&x->state, FX_PODS, fx_check_pod(x, ev), 0);
        break;
    case BH_SNAP_SHAPE_PUT:
        x->shapes++;
        break;
    case BH_SNAP_SHAPE_DEL:
        x->shapes--;
        break;
    }
    FX_SELF(x, x->begins > 0);
    x->last_pos = ev->pos;
    if (x->on_event)
        x->on_event(x, ev);
}

static inline void fx_reader_init(struct fx_reader *x, const char *name, struct bh_snap_writer *w)
{
    memset(x, 0, sizeof(*x));
    x->tab = bh_symtab_new();
    x->r = bh_snap_reader_new(name ? name : w->runtime_dir, x->tab);
}

static inline void fx_reader_fini(struct fx_reader *x)
{
    bh_snap_reader_free(x->r);
    bh_symtab_free(x->tab);
    x->r = NULL;
}

static inline enum bh_snap_outcome fx_once(struct fx_reader *x)
{
    return bh_snap_follow(x->r, 0, fx_on_event, x);
}

/* Follows until nothing is left to do or the outcome is not one of the ordinary ones. */
static inline enum bh_snap_outcome fx_follow(struct fx_reader *x, unsigned max_events)
{
    for (;;) {
        enum bh_snap_outcome o = bh_snap_follow(x->r, max_events, fx_on_event, x);
        switch (o) {
        case BH_SNAP_OVERRUN:
            x->overruns++;
            continue;
        case BH_SNAP_NEW_INCARNATION:
            x->incarnations++;
            continue;
        case BH_SNAP_MORE:
            continue;
        default:
            return o;
        }
    }
}

static inline struct bh_snap_writer *fx_writer(const char *name, size_t bytes, uint32_t log)
{
    struct bh_snap_options o = {.initial_bytes = bytes, .log_entries = log};
    struct bh_snap_writer *w = NULL;
    struct bh_err err = {{0}};
    if (bh_snap_writer_new(name ? name : fx_name(), &o, &w, &err) < 0)
        fprintf(stderr, "# %s\n", err.msg);
    return w;
}

/* ---- processes ------------------------------------------------------------------------------- */
/* Runs fn(arg) in a child that ends with its result. */
static inline pid_t fx_spawn(int (*fn)(void *arg), void *arg)
{
    fflush(stdout);
    fflush(stderr);
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* the harness's limit of the test is the child's, too */
        _exit(fn(arg));
    }
    return pid;
}

/* Exit status, or 128 + signal. */
static inline int fx_wait(pid_t pid)
{
    int st = 0;
    while (waitpid(pid, &st, 0) < 0 && errno == EINTR)
        ;
    return WIFSIGNALED(st) ? 128 + WTERMSIG(st) : WEXITSTATUS(st);
}

/* Memory that parent and children share. */
static inline void *fx_shared(size_t n)
{
    void *p =
        mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    bh_assert(p != MAP_FAILED);
    return p;
}
#endif
