/* SPDX-License-Identifier: Apache-2.0
 *
 * A guest with all hooks, each of which does what the configuration wishes: "filter=panic",
 * "score=5". Without a wish it says Success.
 */
#include "plugins/wasm/guest.h"

#define WASI(name) GUEST_IMPORT("wasi_snapshot_preview1", name)
WASI("fd_write") uint32_t fd_write(uint32_t fd, const void *iov, uint32_t n, uint32_t *written);
WASI("proc_exit") void proc_exit(uint32_t code);

static char config[256], answer[1024];
static uint8_t object[1 << 16];
static uint32_t n_prefilters; /* of this instance, with the pod of now */

static void say(const char *text)
{
    struct {
        const char *p;
        uint32_t n;
    } iov = {text, guest_length(text)};
    uint32_t written;

    fd_write(1, &iov, 1, &written);
}

/* What is wished of the hook; NULL: nothing. */
static const char *wish(const char *hook)
{
    uint32_t n = guest_config(config, sizeof config - 1), k = guest_length(hook);

    config[n < sizeof config ? n : 0] = '\0';
    for (const char *p = config; *p; p++)
        if (p == config || p[-1] == ' ') {
            uint32_t i = 0;
            while (i < k && p[i] == hook[i])
                i++;
            if (i == k && p[k] == '=')
                return p + k + 1;
        }
    return NULL;
}

static bool starts(const char *s, const char *with)
{
    while (*with && *s == *with)
        s++, with++;
    return !*with;
}

static int32_t number(const char *s)
{
    bool minus = *s == '-';
    uint32_t v = 0;

    for (s += minus; *s >= '0' && *s <= '9'; s++)
        v = 10 * v + (uint32_t)(*s - '0');
    return (int32_t)(minus ? 0 - v : v);
}

static volatile uint32_t sink;
static uint32_t deeper(uint32_t n)
{
    return n ? deeper(n + 1) + sink : 0;
}

/* "default/p" of the object's protobuf: namespace and name of its metadata. */
static uint32_t full_name(const void *o, uint32_t n, char *to)
{
    struct guest_field meta, ns, name;
    uint32_t k = 0;

    if (!guest_find(guest_open(o, n), 1, &meta) ||
        !guest_find(guest_open(meta.bytes, meta.n), 1, &name))
        return 0;
    if (guest_find(guest_open(meta.bytes, meta.n), 3, &ns) && ns.n) {
        for (uint32_t i = 0; i < ns.n; i++)
            to[k++] = (char)ns.bytes[i];
        to[k++] = '/';
    }
    for (uint32_t i = 0; i < name.n; i++)
        to[k++] = (char)name.bytes[i];
    return k;
}

/* Names of a v1.NodeList. */
static uint32_t names_of(uint32_t n)
{
    struct guest_message m = guest_open(object, n);
    struct guest_field f;
    uint32_t k = 0;

    while (guest_next(&m, &f))
        if (f.number == 2) {
            k += full_name(f.bytes, f.n, answer + k);
            answer[k++] = ' ';
        }
    return k;
}

/* "images:a": what it is told is the reason, of objects their names. Nothing: Success. */
static int32_t tell(const char *what)
{
    const char *name = what;
    uint32_t n = 0, n_name = 0, size = 0;

    while (*name && *name != ':' && *name != ' ')
        name++;
    for (name += *name == ':'; name[n_name] && name[n_name] != ' ';)
        n_name++;
    if (starts(what, "images")) {
        n = guest_node_images(name, n_name, answer, sizeof answer);
    } else if (starts(what, "nodes")) {
        n = names_of(guest_all_nodes(object, sizeof object));
    } else if (starts(what, "node")) {
        size = guest_node(name, n_name, object, sizeof object);
    } else if (starts(what, "target")) {
        size = guest_target_pod(object, sizeof object);
    } else if (starts(what, "waiting")) {
        for (uint32_t i = 0; i < 8; i++)
            object[i] = 0xff;
        guest_waiting_pod(name, n_name, object, sizeof object);
        size = object[0] ? sizeof object : 0;
    } else if (starts(what, "reject")) {
        uint64_t done = 7;
        guest_reject(name, n_name, &done, sizeof done);
        answer[n++] = (char)('0' + (uint32_t)done);
        n = done ? n : 0;
    } else if (starts(what, "short")) { /* what does not fit is not there */
        size = guest_current_pod(object, sizeof object);
        object[0] = 0;
        n = guest_current_pod(object, size - 1) == size && !object[0] ? 1 : 0;
        answer[0] = '-';
        size = 0;
    }
    if (size)
        n = full_name(object, size, answer);
    guest_reason(answer, n);
    return n ? GUEST_UNSCHEDULABLE : GUEST_SUCCESS;
}

/* Traps where that is wished; else the number wished, or 0. */
static int32_t act(const char *hook)
{
    const char *w = wish(hook);
    uint32_t address = 0xfffffff0u;

    if (!w)
        return 0;
    if (starts(w, "panic")) {
        say("panic!");
        __builtin_trap();
    } else if (starts(w, "loop")) {
        for (;;)
            sink++;
    } else if (starts(w, "memory")) {
        while (__builtin_wasm_memory_grow(0, 16) != (size_t)-1)
            sink++;
        say("out of memory");
        __builtin_trap();
    } else if (starts(w, "address")) {
        sink = *(volatile uint32_t *)address;
    } else if (starts(w, "pointer")) {
        guest_current_pod((void *)address, 0xffffffffu);
    } else if (starts(w, "names")) {
        guest_only_nodes((const char *)address, 100);
    } else if (starts(w, "reason")) {
        guest_reason((const char *)address, 100);
        return GUEST_ERROR;
    } else if (starts(w, "depth")) {
        sink = deeper(1);
    } else if (starts(w, "exit")) {
        proc_exit(3);
    } else if (starts(w, "event")) {
        uint32_t n = guest_current_pod(object, sizeof object);
        struct guest_about pod = guest_about("Pod", object, n <= sizeof object ? n : 0);
        for (int32_t i = starts(w, "events") ? 1000 : 1; i > 0; i--)
            guest_record(&pod, true, "Wished", "Wishing", "a \"note\"\t100%");
    } else if (starts(w, "noevent")) {
        guest_event_json("{\"Eventtype\":\"Strange\"}", 23);
    } else if (starts(w, "tell:")) {
        return tell(w + 5);
    } else if (*w == '-' || (*w >= '0' && *w <= '9')) {
        guest_reason(hook, guest_length(hook));
        return number(w);
    }
    return 0;
}

void start(void) __attribute__((export_name("_start")));
void start(void)
{
    act("start");
}

GUEST_HOOK(enqueue, void)
{
    const struct guest_event node_add = {1, 1}, anything = {10, 63},
                             strange[] = {{4, 1}, {11, 1}, {1, 0}, {0, 60}, {9, 63}},
                             twice[] = {{1, 1}, {0, 2}, {1, 2}, {1, 1}};
    const char *w = wish("events");

    act("enqueue");
    if (w && starts(w, "any"))
        guest_events(&anything, sizeof anything);
    else if (w && starts(w, "strange")) /* ... and a part of one more */
        guest_events(strange, sizeof strange - 1);
    else if (w && starts(w, "twice"))
        guest_events(twice, sizeof twice);
    else if (w)
        guest_events(&node_add, sizeof node_add);
}

GUEST_HOOK(prefilter, int32_t)
{
    struct guest_field f;
    const char *only = wish("only");
    uint32_t n = guest_current_pod(object, sizeof object);

    n_prefilters++;
    if (!n || n > sizeof object || !guest_find(guest_open(object, n), 2, &f))
        return guest_status(GUEST_ERROR, "no pod");
    if (only && starts(only, "million")) { /* and a few more */
        while (__builtin_wasm_memory_size(0) < 60)
            __builtin_wasm_memory_grow(0, 1);
        for (char *c = (char *)(20u << 16), *end = c + 2000100; c < end; c += 2)
            c[0] = 'a', c[1] = '\0';
        guest_only_nodes((const char *)(20u << 16), starts(only, "million:") ? 2000100 : 2000000);
    } else if (only)
        guest_only_nodes(only, guest_length(only) + 1);
    return act("prefilter");
}

GUEST_HOOK(addpod, int32_t)
{
    return act("addpod");
}
GUEST_HOOK(removepod, int32_t)
{
    return act("removepod");
}

/* "filter=node": the node's object is what its name says. */
GUEST_HOOK(filter, int32_t)
{
    struct guest_field f, name;
    uint32_t n = guest_current_node_name(answer, sizeof answer);
    const char *w = wish("filter");

    if (!w || !starts(w, "node"))
        return act("filter");
    uint32_t size = guest_node(answer, n, object, sizeof object);
    if (size && size <= sizeof object && guest_find(guest_open(object, size), 1, &f) &&
        guest_find(guest_open(f.bytes, f.n), 1, &name) && name.n == n)
        return GUEST_SUCCESS;
    return guest_status(GUEST_UNSCHEDULABLE, "no such node");
}

/* It tells the statuses that it sees. */
GUEST_HOOK(postfilter, int64_t)
{
    const char *w = wish("nominate");
    int32_t code = act("postfilter");
    uint32_t n = guest_node_statuses(answer, sizeof answer);

    if (w)
        guest_nominate(w, guest_length(w));
    if (code)
        guest_reason(answer, n);
    return guest_nominated(w != NULL, code);
}

GUEST_HOOK(prescore, int32_t)
{
    int32_t code = act("prescore");
    uint32_t n = guest_filtered_nodes(answer, sizeof answer);

    if (code)
        guest_reason(answer, n);
    return code;
}

GUEST_HOOK(score, int64_t)
{
    const char *w = wish("points");
    uint32_t n = guest_current_node_name(answer, sizeof answer);
    int32_t code = act("score");

    return guest_scored(w ? number(w) : (int32_t)(n ? (uint8_t)answer[0] : 0) - 'a', code);
}

/* The list as it is, or half of one. */
GUEST_HOOK(normalizescore, int32_t)
{
    uint32_t n = guest_node_scores(answer, sizeof answer);
    const char *w = wish("normalizescore");

    if (w && starts(w, "short"))
        guest_normalized("{\"a\":1}", 7);
    else if (w && starts(w, "bad"))
        guest_normalized("[", 1);
    else if (w && starts(w, "none"))
        guest_normalized("{}", 2);
    else if (w && starts(w, "other"))
        guest_normalized("{\"a\":1,\"b\":2,\"x\":3}", 19);
    else
        guest_normalized(answer, n);
    return act("normalizescore");
}

GUEST_HOOK(reserve, int32_t)
{
    return act("reserve");
}
GUEST_HOOK(unreserve, void)
{
    act("unreserve");
}
GUEST_HOOK(permit, int64_t)
{
    return guest_permitted(act("permit"), 2000);
}
GUEST_HOOK(prebind, int32_t)
{
    return act("prebind");
}
GUEST_HOOK(bind, int32_t)
{
    return act("bind");
}
GUEST_HOOK(postbind, void)
{
    act("postbind");
}
