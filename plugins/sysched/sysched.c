/* SPDX-License-Identifier: Apache-2.0
 *
 * plugins/sysched/sysched.c - pods together that may make the same system calls
 *
 * A pod that makes a system call which another one on its node may not make is a risk for that one. A
 * node's score is how many such calls there would be with the pod: those of the node that the pod may
 * not make, and for each pod there those of the others. The fewer the better.
 * Upstream:    sigs.k8s.io/scheduler-plugins, pkg/sysched.
 * Differences: README.md.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "berth/plugin.h"

#define SYSCALLS_MAX 1024u /* kinds of system calls; Linux has less than half of them */
#define WORDS        (SYSCALLS_MAX / 64)
#define SLOTS        (2 * SYSCALLS_MAX)
#define SPO          "seccomp.security.alpha.kubernetes.io"
#define KEY_MAX      512u

static const struct berth_host *host;

struct set { /* of system calls */
    uint64_t w[WORDS];
};
struct profile {
    char *key; /* namespace/name */
    struct set calls;
};
struct instance {
    struct berth_home *home;
    char fallback[KEY_MAX]; /* key of the profile of pods without one */
    /* ---- the profiles, as of a version of the objects ---- */
    uint64_t version;
    int read;
    struct profile *profile; /* by key */
    uint64_t n_profiles;
    char *call[SYSCALLS_MAX]; /* names: a call has one number until the profiles are read anew */
    uint32_t n_calls;
    uint16_t slot[SLOTS]; /* number and one; 0: free */
    int told;             /* that there were too many */
};

/* ---- sets ------------------------------------------------------------------------------------ */

static void add_all(struct set *to, const struct set *from)
{
    for (unsigned i = 0; i < WORDS; i++)
        to->w[i] |= from->w[i];
}

static int64_t count(const struct set *s)
{
    int64_t n = 0;

    for (unsigned i = 0; i < WORDS; i++)
        n += __builtin_popcountll(s->w[i]);
    return n;
}

static int64_t count_without(const struct set *s, const struct set *without)
{
    int64_t n = 0;

    for (unsigned i = 0; i < WORDS; i++)
        n += __builtin_popcountll(s->w[i] & ~without->w[i]);
    return n;
}

/* ---- profiles -------------------------------------------------------------------------------- */

static uint32_t hash(struct berth_str s)
{
    uint32_t h = 2166136261u;

    for (uint64_t i = 0; i < s.n; i++)
        h = (h ^ (unsigned char)s.p[i]) * 16777619u;
    return h;
}

static char *copy(struct berth_str s)
{
    char *c = malloc(s.n + 1);

    if (c) {
        memcpy(c, s.p, s.n);
        c[s.n] = 0;
    }
    return c;
}

/* Adds a call by its name. */
static void add_call(struct instance *in, struct set *to, struct berth_str name)
{
    uint32_t i = hash(name) % SLOTS;

    while (in->slot[i] && !berth_str_is(name, in->call[in->slot[i] - 1]))
        i = (i + 1) % SLOTS;
    if (!in->slot[i]) {
        char *text = in->n_calls < SYSCALLS_MAX ? copy(name) : NULL;
        if (!text) {
            if (!in->told++)
                host->base->log(in->home, BERTH_LOG_WARNING,
                                BERTH_STR("the profiles have more than 1024 different system "
                                          "calls: further ones do not count"));
            return;
        }
        in->call[in->n_calls] = text;
        in->slot[i] = (uint16_t)++in->n_calls;
    }
    to->w[(in->slot[i] - 1u) / 64] |= UINT64_C(1) << (in->slot[i] - 1u) % 64;
}

static void read_profile(struct instance *in, const struct berth_value *v, struct set *ret)
{
    const struct berth_host_values *h = host->values;
    const struct berth_value *list = h->path(v, BERTH_STR("spec.syscalls"));

    for (const struct berth_value *s = h->first(list); s; s = h->next(s)) {
        struct berth_str action = h->text(h->get(s, BERTH_STR("action")));
        if (!berth_str_is(action, "SCMP_ACT_ALLOW") && !berth_str_is(action, "SCMP_ACT_LOG"))
            continue;
        const struct berth_value *names = h->get(s, BERTH_STR("names"));
        for (const struct berth_value *n = h->first(names); n; n = h->next(n))
            if (h->type(n) == BERTH_STRING)
                add_call(in, ret, h->text(n));
    }
}

static int make_key(char key[KEY_MAX], struct berth_str ns, struct berth_str name)
{
    if (!ns.n || !name.n || ns.n > 253 || name.n > 253)
        return 0;
    memcpy(key, ns.p, ns.n);
    key[ns.n] = '/';
    memcpy(key + ns.n + 1, name.p, name.n);
    key[ns.n + 1 + name.n] = 0;
    return 1;
}

static int by_key(const void *a, const void *b)
{
    return strcmp(((const struct profile *)a)->key, ((const struct profile *)b)->key);
}

static void forget_profiles(struct instance *in)
{
    for (uint64_t i = 0; i < in->n_profiles; i++)
        free(in->profile[i].key);
    free(in->profile);
    in->profile = NULL;
    in->n_profiles = 0;
    for (uint32_t i = 0; i < in->n_calls; i++)
        free(in->call[i]);
    in->n_calls = 0;
    memset(in->slot, 0, sizeof in->slot);
    in->told = 0;
    in->read = 0;
}

/* All of them, when one of them is another. 0: out of memory. */
static int read_profiles(struct instance *in, struct berth_call *c)
{
    const struct berth_host_objects *h = host->objects;
    const uint64_t version = h->version(c, 0);
    uint64_t n = 0;
    char key[KEY_MAX];

    if (in->read && in->version == version)
        return 1;
    forget_profiles(in);
    for (const struct berth_object *o = h->first(c, 0); o; o = h->next(c, o))
        n++;
    in->profile = calloc(n + 1, sizeof *in->profile);
    if (!in->profile)
        return 0;
    for (const struct berth_object *o = h->first(c, 0); o; o = h->next(c, o)) {
        struct profile *p = &in->profile[in->n_profiles];
        if (!make_key(key, h->namespace_(c, o), h->name(c, o)))
            continue;
        p->key = copy((struct berth_str){key, strlen(key)});
        if (!p->key)
            return 0;
        in->n_profiles++;
        read_profile(in, h->value(c, o), &p->calls);
    }
    qsort(in->profile, in->n_profiles, sizeof *in->profile, by_key);
    in->version = version;
    in->read = 1;
    return 1;
}

/* 1: there is such a profile. */
static int add_profile(const struct instance *in, char *key, struct set *to)
{
    const struct profile wanted = {.key = key};
    const struct profile *p =
        bsearch(&wanted, in->profile, in->n_profiles, sizeof *in->profile, by_key);

    if (p)
        add_all(to, &p->calls);
    return p != NULL;
}

/* ---- pods ------------------------------------------------------------------------------------ */

/* ".../NAMESPACE/NAME.json", as the operator writes it. 0: it is none. */
static int key_of_path(struct berth_str path, char key[KEY_MAX])
{
    uint64_t name = path.n, ns, end = path.n;

    while (name && path.p[name - 1] != '/')
        name--;
    if (!name)
        return 0;
    for (ns = name - 1; ns && path.p[ns - 1] != '/';)
        ns--;
    for (uint64_t i = path.n; i > name; i--)
        if (path.p[i - 1] == '.') {
            end = i - 1;
            break;
        }
    return make_key(key, (struct berth_str){path.p + ns, name - 1 - ns},
                    (struct berth_str){path.p + name, end - name});
}

static int contains(struct berth_str s, const char *text)
{
    const uint64_t n = strlen(text);

    for (uint64_t i = 0; i + n <= s.n; i++)
        if (memcmp(s.p + i, text, n) == 0)
            return 1;
    return 0;
}

/* What the pod may call. */
static void calls_of(struct instance *in, struct berth_call *c, const struct berth_pod *pod,
                     struct set *ret)
{
    const struct berth_host_pods *h = host->pods;
    struct berth_str v, name;
    char key[KEY_MAX];

    memset(ret, 0, sizeof *ret);
    for (uint32_t i = 0; (v = h->seccomp_profile(c, pod, i)).p; i++)
        if (key_of_path(v, key))
            add_profile(in, key, ret);
    /* The first one that names a profile which is there, or nothing that could. */
    for (uint32_t i = 0; (v = h->annotation_at(c, pod, i, &name)).p; i++)
        if (contains(name, SPO) && (!key_of_path(v, key) || add_profile(in, key, ret)))
            break;
    if (!count(ret))
        add_profile(in, in->fallback, ret);
}

/* ---- scores ---------------------------------------------------------------------------------- */

/* What the pod at hand may call, found out at its first node: configurations name Score alone, as the
 * original has no more. NULL: out of memory. */
static const struct set *own_calls(struct instance *in, struct berth_call *c)
{
    void **state = host->base->score_state(c);

    if (!*state && read_profiles(in, c)) {
        *state = host->base->alloc(c, sizeof(struct set));
        if (*state)
            calls_of(in, c, host->pods->current(c), *state);
    }
    return *state;
}

static int32_t score(void *self, struct berth_call *c, const struct berth_node *node, int64_t *ret,
                     struct berth_why *why)
{
    const struct set *own = own_calls(self, c);
    const uint32_t n = host->nodes->n_pods(c, node);
    struct set there = {{0}}, one;
    int64_t each = 0;

    *ret = 0;
    if (!own) {
        why->reason = BERTH_STR("out of memory");
        return BERTH_ERROR;
    }
    if (!count(own))
        return BERTH_SUCCESS;
    for (uint32_t i = 0; i < n; i++) {
        calls_of(self, c, host->nodes->pod_at(c, node, i), &one);
        add_all(&there, &one);
        each += count(&one);
    }
    *ret = count_without(&there, own);
    add_all(&there, own);
    /* Of all together what each of them may not: each one's are among them. */
    *ret += n * count(&there) - each;
    return BERTH_SUCCESS;
}

/* ---- arguments ------------------------------------------------------------------------------- */

static void check_args(const struct berth_value *args, struct berth_errors *errors)
{
    static const char known[] = "defaultProfileNamespace defaultProfileName";
    const struct berth_host_values *v = host->values;

    berth_check_fields(v, args, "", known, errors);
    for (const struct berth_value *m = v->first(args); m; m = v->next(m))
        if (berth_str_among(v->key(m), known) && v->type(m) != BERTH_NULL &&
            (v->type(m) != BERTH_STRING || v->text(m).n > 253))
            v->error(errors, v->key(m), BERTH_STR("a name of at most 253 bytes is needed"));
}

/* Null stands for the default, an empty text for no profile. */
static struct berth_str name_of(const struct berth_value *args, struct berth_str name,
                                struct berth_str fallback)
{
    const struct berth_value *v = host->values->get(args, name);

    return host->values->type(v) == BERTH_STRING ? host->values->text(v) : fallback;
}

static int32_t create(struct berth_home *home, const struct berth_value *args, void **ret,
                      struct berth_why *why)
{
    struct instance *in = calloc(1, sizeof *in);

    if (!in || !BERTH_HAS(host->pods, seccomp_profile)) {
        why->reason = in ? BERTH_STR("it needs pods->seccomp_profile, which this Berth "
                                     "does not have")
                         : BERTH_STR("out of memory");
        free(in);
        return BERTH_ERROR;
    }
    in->home = home;
    make_key(in->fallback,
             name_of(args, BERTH_STR("defaultProfileNamespace"), BERTH_STR("default")),
             name_of(args, BERTH_STR("defaultProfileName"), BERTH_STR("all-syscalls")));
    *ret = in;
    return BERTH_SUCCESS;
}

static void destroy(void *self)
{
    struct instance *in = self;

    forget_profiles(in);
    free(in);
}

/* ---- the file -------------------------------------------------------------------------------- */

static const struct berth_kind kinds[] = {
    {.group = {"security-profiles-operator.x-k8s.io", 35},
     .version = {"v1beta1", 7},
     .resource = {"seccompprofiles", 15},
     .namespaced = 1},
};
static const struct berth_event none[1];
static const struct berth_plugin plugin = {
    .size = sizeof plugin,
    .name = {"SySched", 7},
    .reads =
        BERTH_READS_PODS | BERTH_READS_IDENTITY | BERTH_READS_OBJECTS | BERTH_READS_ANNOTATIONS,
    .normal = BERTH_NORMAL_MAX_REVERSE,
    .events = none,
    .check_args = check_args,
    .create = create,
    .destroy = destroy,
    .score = score,
    .kinds = kinds,
    .n_kinds = 1,
};

BERTH_NOTE("SySched", "1.0.0", "Apache-2.0");

int32_t berth_plugin_entry_v1(const struct berth_host *h, struct berth_entry *ret)
{
    static const struct berth_plugin *const all[] = {&plugin};

    if (!BERTH_HAS(h, objects)) /* of ABI 1.1 */
        return 1;
    host = h;
    ret->plugins = all;
    ret->n = 1;
    return 0;
}
