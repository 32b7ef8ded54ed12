/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/wasm/instance.c - instances of a guest, and which of them runs a pod's hooks
 *
 * A guest keeps a cycle's state in itself, from prefilter on. So one instance runs the hooks of the
 * pod that is being decided, and those of a pod whose node is chosen stay with the instance that
 * chose it until the pod is bound or has given up. One that trapped is thrown away: the next hook of
 * the pod finds a new one, which is told of the pod by its prefilter.
 *
 * Runs in: the engine's thread.
 */
#include <errno.h>
#include <pthread.h>

#include "common/base/symtab_texts.h"
#include "scheduler/wasm/guest_int.h"

static struct bh_wasm_host *hosts;

static void join_hosts(void)
{
    hosts = bh_calloc(bh_guest_n_host + bh_guest_n_wasi, sizeof *hosts);
    memcpy(hosts, bh_guest_host, bh_guest_n_host * sizeof *hosts);
    memcpy(hosts + bh_guest_n_host, bh_guest_wasi, bh_guest_n_wasi * sizeof *hosts);
}

static void run_free(struct bh_guest_run *r)
{
    if (!r)
        return;
    struct bh_buf *all[] = {&r->uid,        &r->pod,       &r->out,   &r->reason,
                            &r->node_names, &r->nominated, &r->events};
    for (unsigned i = 0; i < BH_ARRAY_LEN(all); i++)
        bh_buf_fini(all[i]);
    bh_arena_fini(&r->arena);
    r->g->of->instances -= r->w != NULL;
    bh_wasm_free(r->w);
    free(r);
}

/* What it wrote before it trapped comes first. */
static void add_error(const struct bh_guest_run *r, struct bh_buf *b)
{
    if (r->out.n) {
        bh_buf_add(b, r->out.p, r->out.n);
        bh_buf_addc(b, '\n');
    }
}

/* Runs what is to run before the first hook. */
static int begin(struct bh_guest_run *r, struct bh_err *err)
{
    const struct bh_wasm_module *m = r->g->of->m;
    struct bh_buf text BH_CLEANUP(bh_buf_fini) = {0};
    const char *name = "start";
    uint64_t v[1] = {0};
    uint32_t func;
    enum bh_wasm_trap trap = bh_wasm_start(r->w);

    if (trap == BH_WASM_DONE && (bh_wasm_find(m, name = "_start", ":", &func, NULL) == 0 ||
                                 bh_wasm_find(m, name = "_initialize", ":", &func, NULL) == 0))
        trap = bh_wasm_call(r->w, func, v);
    if (r->exited && r->exit_code == 0) /* main() is over, the guest is there */
        trap = BH_WASM_DONE;
    if (trap != BH_WASM_DONE) {
        add_error(r, &text);
        bh_buf_addf(&text, "module[1] function[%s] failed: ", name);
        bh_wasm_add_trap(r->w, &text);
        return bh_err_set(err, -EFAULT, "%s", bh_buf_str(&text));
    }
    bh_buf_reset(&r->out);
    return 0;
}

int bh_guest_run_new(struct bh_guest *g, struct bh_guest_run **ret, struct bh_err *err)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct bh_wasm_limits limits = BH_WASM_LIMITS;
    struct bh_guest_run *r = bh_calloc(1, sizeof *r);

    pthread_once(&once, join_hosts);
    r->g = g;
    bh_arena_init(&r->arena, (size_t)16 << 20);
    limits.call_ns = (uint64_t)g->args.timeout_ns;
    int rc =
        bh_wasm_new(g->of->m, hosts, bh_guest_n_host + bh_guest_n_wasi, r, &limits, &r->w, err);
    g->of->instances += rc == 0;
    if (rc == 0 && g->env.verify && bh_wasm_is_compiled(g->of->m))
        rc = bh_wasm_verify(r->w, err);
    if (rc == 0)
        rc = begin(r, err);
    if (rc < 0) {
        run_free(r);
        return bh_err_prefix(err, rc, "failed to create a guest pool: wasm: instantiate error");
    }
    *ret = r;
    return 0;
}

/* ---- whose it is ----------------------------------------------------------------------------- */

static struct bh_str uid_of(const struct bh_call *c)
{
    return bh_rec_uid(c->pod->rec);
}

static void forget(struct bh_guest_run *r)
{
    struct bh_guest *g = r->g;

    if (g->cycle == r)
        g->cycle = NULL;
    if (r->uid.n && bh_map_get(&g->bound, r->uid.p, r->uid.n) == r)
        (void)bh_map_del(&g->bound, r->uid.p, r->uid.n);
    run_free(r);
}

void bh_guest_keep(struct bh_guest_run *r, const struct bh_call *c)
{
    struct bh_guest *g = r->g;
    struct bh_ext *x = g->env.ext ? *g->env.ext : NULL;
    size_t n = 0;

    if (g->cycle != r)
        return;
    g->cycle = NULL;
    bh_wasm_set_due(r->w, 0);
    const void *pod =
        x && g->of->needs & BH_EXT_NEED_PENDING ? bh_ext_whole_pod(x, uid_of(c), &n) : NULL;
    if (pod)
        bh_buf_add(&r->pod, pod, n);
    struct bh_guest_run *was = bh_map_put(&g->bound, r->uid.p, r->uid.n, r);
    if (was != r)
        run_free(was);
}

void bh_guest_release(struct bh_guest *g, struct bh_str uid)
{
    struct bh_guest_run *r = bh_map_del(&g->bound, uid.p, uid.n);

    if (!r)
        return;
    r->next = g->free;
    g->free = r;
}

void bh_guest_fini(struct bh_guest *g)
{
    struct bh_map_entry *e;

    run_free(g->cycle);
    for (struct bh_guest_run *r = g->free, *next; r; r = next) {
        next = r->next;
        run_free(r);
    }
    for (size_t it = 0; (e = bh_map_next(&g->bound, &it));)
        run_free(e->value);
    bh_map_fini(&g->bound);
    bh_buf_fini(&g->cycle_uid);
    free(g->scored);
}

static bool is(const struct bh_buf *uid, struct bh_str s)
{
    return bh_str_eq((struct bh_str){bh_buf_str(uid), uid->n}, s);
}

static bool is_same_cycle(const struct bh_guest *g, const struct bh_call *c, struct bh_str uid)
{
    return g->cycle_at_ns == c->now_ns && is(&g->cycle_uid, uid);
}

/* Before a hook of the cycle: how long it may still take. Instances that trap come and go within one. */
static void set_due(struct bh_guest *g, const struct bh_call *c, struct bh_str uid)
{
    if (!is_same_cycle(g, c, uid)) {
        g->cycle_at_ns = c->now_ns;
        bh_buf_reset(&g->cycle_uid);
        bh_buf_add(&g->cycle_uid, uid.p, uid.n);
        g->due_ns = bh_mono_ns() + (uint64_t)g->args.cycle_ns;
    }
    bh_wasm_set_due(g->cycle->w, g->due_ns);
}

static const char *cycle_over(const struct bh_guest *g, struct bh_arena *a)
{
    char limit[32];

    bh_format_duration_ns(g->args.cycle_ns, limit);
    return bh_arena_printf(a,
                           "the pod's scheduling cycle has taken this guest more than its "
                           "cycleTimeout, %s",
                           limit);
}

/* The cycle's instance, for another pod from now on. */
static struct bh_guest_run *take(struct bh_call *c, const struct bh_status **ret_why)
{
    struct bh_guest *g = (struct bh_guest *)(uintptr_t)c->args;
    struct bh_str uid = uid_of(c);
    struct bh_err err = {0};

    if (!g->cycle && g->free) {
        g->cycle = g->free;
        g->free = g->free->next;
    }
    /* A guest that traps about each node would have as many made, none of which runs for long enough to look at
     * the clock. */
    if (!g->cycle && is_same_cycle(g, c, uid) && bh_mono_ns() >= g->due_ns) {
        *ret_why =
            bh_status_new(c->arena, BH_ERROR, g->of->name, "wasm: %s", cycle_over(g, c->arena));
        return NULL;
    }
    if (!g->cycle && bh_guest_run_new(g, &g->cycle, &err) < 0) {
        *ret_why = bh_status_new(c->arena, BH_ERROR, g->of->name, "%s", err.msg);
        return NULL;
    }
    bh_buf_reset(&g->cycle->pod);
    bh_buf_reset(&g->cycle->uid);
    bh_buf_add(&g->cycle->uid, uid.p, uid.n);
    g->cycle->asked = 0;
    g->n_scored = 0;
    set_due(g, c, uid);
    return g->cycle;
}

struct bh_guest_run *bh_guest_of(struct bh_call *c, bool first, const struct bh_status **ret_why)
{
    struct bh_guest *g = (struct bh_guest *)(uintptr_t)c->args;
    struct bh_str uid = uid_of(c);
    struct bh_guest_run *r = bh_map_get(&g->bound, uid.p, uid.n);

    if (first) { /* an earlier try of the pod is over, and so is its time */
        bh_guest_release(g, uid);
        bh_buf_reset(&g->cycle_uid);
        return take(c, ret_why);
    }
    if (r)
        return r;
    if (g->cycle && is(&g->cycle->uid, uid)) {
        if (bh_unlikely(g->cycle_at_ns != c->now_ns))
            set_due(g, c, uid);
        return g->cycle;
    }
    if (!(r = take(c, ret_why)) || !(g->of->runs & BH_GUEST_BIT(BH_GUEST_PREFILTER)))
        return r;
    r->c = c;
    const char *trap = bh_guest_call(r, BH_GUEST_PREFILTER, c->arena);
    if (!trap)
        return r;
    *ret_why = bh_status_new(c->arena, BH_ERROR, g->of->name, "%s", trap);
    return NULL;
}

/* ---- one hook -------------------------------------------------------------------------------- */

#define ANSWER_KEPT ((size_t)1 << 20) /* bytes of a buffer, for the next answer */

/* What an earlier hook answered is gone. */
static void ready(struct bh_guest_run *r)
{
    struct bh_buf *answers[] = {&r->out, &r->reason, &r->node_names, &r->nominated, &r->events};

    for (unsigned i = 0; i < BH_ARRAY_LEN(answers); i++)
        if (answers[i]->cap > ANSWER_KEPT)
            bh_buf_fini(answers[i]);
        else
            bh_buf_reset(answers[i]);
    bh_arena_reset(&r->arena);
    r->normalized = NULL;
    r->value = 0;
}

/* Under --verify: what is compiled does what is interpreted. */
static void check_alike(const struct bh_guest_run *r, enum bh_guest_hook hook)
{
    const char *what = bh_wasm_differs(r->w);

    if (bh_likely(!what))
        return;
    fprintf(stderr, "verify: guest %s, %s: compiled code differs from interpreted\n%s\n",
            r->g->of->name, bh_guest_exports[hook].name, what);
    abort();
}

/* What the hook was about is gone. NULL, or the text of the trap: then r is gone, too. */
static const char *done(struct bh_guest_run *r, enum bh_guest_hook hook, enum bh_wasm_trap trap,
                        struct bh_arena *a)
{
    struct bh_buf text BH_CLEANUP(bh_buf_fini) = {0};
    struct bh_guest_plugin *p = r->g->of;

    check_alike(r, hook);
    p->traps[hook] += trap != BH_WASM_DONE;
    p->pages = BH_MAX(p->pages, bh_wasm_pages(r->w));
    r->c = NULL;
    r->node = BH_SYM_NONE;
    r->target = NULL;
    r->n_rows = 0;
    r->scores = NULL;
    r->why = NULL;
    if (trap == BH_WASM_DONE)
        return NULL;
    bh_buf_addf(&text, "wasm: %s error: ", bh_guest_exports[hook].name);
    add_error(r, &text);
    if (trap == BH_WASM_TIME && r == r->g->cycle && bh_mono_ns() >= r->g->due_ns)
        bh_buf_addf(&text, "%s\n", cycle_over(r->g, a));
    bh_wasm_add_trap(r->w, &text);
    snprintf(p->last_trap, sizeof p->last_trap, "%s", bh_buf_str(&text));
    forget(r);
    return bh_arena_strndup(a, bh_buf_str(&text), text.n);
}

/* Two looks at the clock cost as much as a small hook. So the first calls are timed, and of those that
 * follow every TIMED_EVERYth, for as many. */
#define TIMED_EVERY 16u
static unsigned stands_for(uint64_t calls)
{
    return calls < TIMED_EVERY ? 1 : calls % TIMED_EVERY ? 0 : TIMED_EVERY;
}

const char *bh_guest_call(struct bh_guest_run *r, enum bh_guest_hook hook, struct bh_arena *a)
{
    struct bh_guest_plugin *p = r->g->of;
    const unsigned timed = stands_for(p->calls[hook]);

    ready(r);
    uint64_t began = timed ? bh_mono_ns() : 0;
    enum bh_wasm_trap trap = bh_wasm_call(r->w, p->func[hook], &r->value);
    if (timed)
        p->ns[hook] += timed * (bh_mono_ns() - began);
    p->calls[hook]++;
    return done(r, hook, trap, a);
}

/* Guests of the original's SDK keep the nodes that they are asked about until the next prefilter, in a list in
 * which they look for each: the list of all nodes of a large cluster is too long. One that says the same
 * whoever asks may forget it. */
#define NODES_A_LIST 128u

const char *bh_guest_renew(struct bh_guest_run *r, struct bh_call *c, enum bh_guest_hook hook,
                           uint32_t n)
{
    static const enum bh_guest_hook again[] = {BH_GUEST_PREFILTER, BH_GUEST_PRESCORE};
    const struct bh_guest_plugin *p = r->g->of;

    r->asked += n;
    r->anew_ns = 0;
    if (r->asked <= NODES_A_LIST || !p->may_forget)
        return NULL;
    r->asked = n;
    const uint64_t began = bh_mono_ns();
    for (unsigned i = 0; i < (hook == BH_GUEST_SCORE ? 2u : 1u); i++) {
        if (!(p->runs & BH_GUEST_BIT(again[i])))
            continue;
        r->c = c;
        r->again = true;
        const char *trap = bh_guest_call(r, again[i], c->arena);
        if (trap)
            return trap;
        r->again = false;
        if ((int32_t)r->value != 0 && (int32_t)r->value != BH_SKIP)
            return bh_arena_printf(c->arena,
                                   "wasm: %s: it has status code %d when it is asked again: the "
                                   "guest is not nodeLocal",
                                   bh_guest_exports[again[i]].name, (int32_t)r->value);
    }
    r->anew_ns = bh_mono_ns() - began;
    return NULL;
}

/* Names of so many nodes at once, which then are near. */
#define NODES_AT_ONCE NODES_A_LIST

static void between(void *user)
{
    struct bh_guest_run *r = user;

    if (bh_unlikely(r->out.n || r->reason.n))
        ready(r);
}

static void name_nodes(struct bh_node_info *const *nodes, const uint32_t *rows, uint32_t n,
                       bh_sym *ret)
{
#pragma GCC unroll 4
    for (uint32_t i = 0; i < n; i++)
        ret[i] = nodes[rows[i]]->name;
}

uint32_t bh_guest_score_rows(struct bh_guest_run *r, const uint32_t *rows, uint32_t n, int64_t *ret,
                             const char **ret_trap)
{
    struct bh_guest_plugin *p = r->g->of;
    struct bh_call *c = r->c;
    bh_sym names[NODES_AT_ONCE];
    struct bh_wasm_questions q = {.func = p->func[BH_GUEST_SCORE],
                                  .about = names,
                                  .reader = bh_guest_current_node_name,
                                  .between = between};
    enum bh_wasm_trap trap = BH_WASM_DONE;
    uint64_t began = bh_mono_ns();
    uint32_t scored = 0, done_now = 0;

    do {
        q.n = BH_MIN(n - scored, NODES_AT_ONCE);
        q.ret = ret + scored;
        if ((*ret_trap = bh_guest_renew(r, c, BH_GUEST_SCORE, q.n)))
            return scored;
        began += r->anew_ns; /* which is told of prefilter and prescore */
        r->c = c;
        name_nodes(c->cache->rows, rows + scored, q.n, names);
        q.texts = bh_symtab_texts(c->tab)->of;
        ready(r);
        trap = bh_wasm_ask(r->w, &q, &done_now, &r->value);
        scored += done_now;
    } while (done_now == q.n && scored < n);
    p->ns[BH_GUEST_SCORE] += bh_mono_ns() - began;
    p->calls[BH_GUEST_SCORE] += BH_MIN(scored + 1, n);
    *ret_trap = done(r, BH_GUEST_SCORE, trap, c->arena);
    return scored;
}
