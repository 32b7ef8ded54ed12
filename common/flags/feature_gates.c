/* SPDX-License-Identifier: Apache-2.0
 *
 * common/flags/feature_gates.c - what the flags about features come to
 *
 * Fails with: -EINVAL and upstream's text.
 * Upstream:   component-base/featuregate/feature_gate.go (unsafeSetFromMap),
 *             component-base/compatibility/registry.go (Set); differences: where upstream walks a
 *             map, errors come in the order of the table or of the command line.
 */
#include "common/flags/feature_gates.h"

#include <ctype.h>
#include <errno.h>
#include <pthread.h>

static char lines[] =
#include "common/flags/feature_gates.data.h"
    ;
static struct bh_feature_row rows[BH_FEATURE_GATES_MAX];
const struct bh_feature_row *const bh_feature_rows = rows;
size_t bh_n_feature_rows;

static void read_rows(void)
{
    char *rest = lines, *line;

    for (; (line = strsep(&rest, "\n")) && *line; bh_n_feature_rows++) {
        bh_assert(bh_n_feature_rows < BH_FEATURE_GATES_MAX);
        struct bh_feature_row *r = &rows[bh_n_feature_rows];
        r->name = strsep(&line, " ");
        r->states = strsep(&line, " ");
        r->needs = line;
    }
}

void bh_feature_gates_init(struct bh_feature_gates *g)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, read_rows);
    *g = (struct bh_feature_gates){.emulated = BH_FEATURE_MINOR,
                                   .min_compatibility = BH_FEATURE_MINOR - 1};
    memset(g->set, -1, sizeof(g->set));
}

static size_t find_gate(const char *name, size_t n)
{
    for (size_t i = 0; i < bh_n_feature_rows; i++)
        if (strncmp(rows[i].name, name, n) == 0 && !rows[i].name[n])
            return i;
    return SIZE_MAX;
}

static char letter(const struct bh_feature_gates *g, size_t row)
{
    int at = g->emulated - BH_FEATURE_MINOR_FLOOR;

    if (at < 0)
        return '-'; /* refused later; until then nothing is there */
    return bh_feature_rows[row].states[BH_MIN(at, BH_FEATURE_MINOR - BH_FEATURE_MINOR_FLOOR)];
}

static bool on_by_default(char l)
{
    return l >= 'A' && l <= 'Z';
}

static bool enabled(const struct bh_feature_gates *g, size_t row)
{
    return g->set[row] < 0 ? on_by_default(letter(g, row)) : g->set[row];
}

/* ---- errors ---------------------------------------------------------------------------------- */

static bool has_error(const struct bh_flag_errors *e, const char *text, size_t n)
{
    const char *all = e->n ? e->text.p : "";

    for (const char *p = all; (p = strstr(p, text)); p++)
        if ((p == all || p[-1] == ' ') && (!p[n] || strncmp(p + n, ", ", 2) == 0))
            return true;
    return false;
}

void bh_flag_err(struct bh_flag_errors *e, const char *fmt, ...)
{
    struct bh_buf b = {0};
    va_list ap;

    va_start(ap, fmt);
    bh_buf_vaddf(&b, fmt, ap);
    va_end(ap);
    if (!has_error(e, bh_buf_str(&b), b.n))
        bh_buf_addf(&e->text, "%s%s", e->n++ ? ", " : "", bh_buf_str(&b));
    bh_buf_fini(&b);
}

int bh_flag_errors_close(struct bh_flag_errors *e, struct bh_err *err)
{
    int rc = e->n ? bh_err_set(err, -EINVAL, e->n > 1 ? "[%s]" : "%s", e->text.p) : 0;

    bh_buf_fini(&e->text);
    *e = (struct bh_flag_errors){.n = 0};
    return rc;
}

/* ---- versions -------------------------------------------------------------------------------- */

/* apimachinery's version.Parse: at least two numbers, what follows them does not matter. */
static int parse_version(const char *text, int v[static 3], struct bh_err *err)
{
    const char *p = text + strspn(text, " \t\r\n");
    int n = 0;

    p += *p == 'v';
    if (!isdigit((unsigned char)*p))
        return bh_err_set(err, -EINVAL, "could not parse \"%.64s\" as version", text);
    for (v[0] = v[1] = v[2] = 0;;) {
        char *end;
        long long number = strtoll(p, &end, 10);
        if (n == 0 && *p == '0' && end > p + 1)
            return bh_err_set(err, -EINVAL,
                              "illegal zero-prefixed version component \"%.*s\" in "
                              "\"%.64s\"",
                              (int)BH_MIN(end - p, 64), p, text);
        if (n < 3)
            v[n] = (int)BH_MIN(number, INT32_MAX);
        n++;
        if (*end != '.' || !isdigit((unsigned char)end[1]))
            break;
        p = end + 1;
    }
    return n < 2 ? bh_err_set(err, -EINVAL, "illegal version string \"%.64s\"", text) : 0;
}

/* One of "1.35", "kube=1.35". *minor stays when the list is empty. */
static int read_version(const struct bh_opt_list *list, int *minor, struct bh_err *err)
{
    int kube[3] = {-1, 0, 0};

    for (size_t i = 0; i < list->n; i++) {
        const char *eq = strchr(list->v[i], '='), *text = eq ? eq + 1 : list->v[i];
        size_t n = eq ? (size_t)(eq - list->v[i]) : 0;
        int v[3], rc = parse_version(text, v, err);

        if (rc < 0)
            return rc;
        if (v[2])
            return bh_err_set(err, -EINVAL, "patch version not allowed, got: %.*s=%d.%d.%d",
                              eq ? (int)BH_MIN(n, 64) : 4, eq ? list->v[i] : "kube", v[0], v[1],
                              v[2]);
        if (eq && (n != 4 || strncmp(list->v[i], "kube", 4) != 0))
            return bh_err_set(err, -EINVAL, "component not registered: %.*s", (int)BH_MIN(n, 64),
                              list->v[i]);
        if (kube[0] >= 0)
            return bh_err_set(err, -EINVAL, "duplicate version flag, kube=%d.%d and kube=%d.%d",
                              kube[0], kube[1], v[0], v[1]);
        memcpy(kube, v, sizeof(kube));
        *minor = v[0] == 1 ? v[1] : v[0] < 1 ? 0 : 1000 * BH_MIN(v[0], 1000) + BH_MIN(v[1], 999);
    }
    return 0;
}

static void version_text(int minor, char out[static 16])
{
    snprintf(out, 16, "%d.%d", minor >= 1000 ? minor / 1000 : 1, minor % 1000);
}

void bh_feature_gates_check_versions(const struct bh_feature_gates *g,
                                     void (*add)(void *arg, const char *text), void *arg)
{
    char text[160], floor[16], emulated[16], min[16], newest[16];

    version_text(BH_FEATURE_MINOR_FLOOR, floor);
    version_text(BH_FEATURE_MINOR, newest);
    version_text(g->emulated, emulated);
    version_text(g->min_compatibility, min);
    if (g->emulated > BH_FEATURE_MINOR || g->emulated < BH_FEATURE_MINOR_FLOOR) {
        snprintf(text, sizeof(text), "emulation version %s is not between [%s, %s.0]", emulated,
                 floor, newest);
        add(arg, text);
    }
    if (g->min_compatibility > g->emulated || g->min_compatibility < BH_FEATURE_MINOR_FLOOR) {
        snprintf(text, sizeof(text), "minCompatibilityVersion version %s is not between [%s, %s]",
                 min, floor, emulated);
        add(arg, text);
    }
}

/* ---- gates ----------------------------------------------------------------------------------- */

static struct bh_str trimmed(const char *p, size_t n)
{
    while (n && isspace((unsigned char)*p))
        p++, n--;
    while (n && isspace((unsigned char)p[n - 1]))
        n--;
    return (struct bh_str){p, (uint32_t)n};
}

struct wish { /* of one gate, in the order of the command line; the last word counts */
    struct bh_str name;
    int value;
};

/* "Name=true" or "kube:Name=true". */
static int read_wish(const char *item, int *prefixed, struct wish *w, struct bh_err *err)
{
    const char *colon = strchr(item, ':'), *pair = colon ? colon + 1 : item;
    const char *eq = strchr(pair, '=');
    struct bh_str component = trimmed(item, colon ? (size_t)(colon - item) : 0);

    w->name = trimmed(pair, eq ? (size_t)(eq - pair) : strlen(pair));
    if (component.n && (component.n != 4 || memcmp(component.p, "kube", 4) != 0))
        return bh_err_set(err, -EINVAL, "component not registered: %.*s",
                          (int)BH_MIN(component.n, 64), component.p);
    if (*prefixed >= 0 && *prefixed != (component.n > 0))
        return bh_err_set(err, -EINVAL,
                          "set kube feature gates with default empty prefix or kube: prefix "
                          "consistently, do not mix use");
    *prefixed = component.n > 0;
    if (!eq)
        return bh_err_set(err, -EINVAL, "missing bool value for %.*s", (int)BH_MIN(w->name.n, 64),
                          w->name.p);
    struct bh_str v = trimmed(eq + 1, strlen(eq + 1));
    char text[8];
    snprintf(text, sizeof(text), "%.*s", (int)BH_MIN(v.n, sizeof(text) - 1), v.p);
    w->value = v.n < sizeof(text) ? bh_parse_bool(text) : -1;
    if (w->value < 0)
        return bh_err_set(err, -EINVAL,
                          "invalid value of %.*s=%.*s, err: strconv.ParseBool: parsing \"%.*s\": "
                          "invalid syntax",
                          (int)BH_MIN(w->name.n, 64), w->name.p, (int)BH_MIN(v.n, 64), v.p,
                          (int)BH_MIN(v.n, 64), v.p);
    return 0;
}

/* AllAlpha and AllBeta: whatever of that stage was not named itself. */
static void set_class(struct bh_feature_gates *g, char stage, bool value)
{
    for (size_t i = 0; i < bh_n_feature_rows; i++)
        if ((letter(g, i) | 0x20) == stage && !g->given[i] &&
            strncmp(bh_feature_rows[i].name, "All", 3) != 0)
            g->set[i] = value;
}

static void check_row(const struct bh_feature_gates *g, size_t row, struct bh_flag_errors *e)
{
    const char *name = bh_feature_rows[row].name, *value = g->set[row] ? "true" : "false";
    char l = letter(g, row), emulated[16], min[16];

    if ((strchr("lLxX", l) != NULL) && on_by_default(l) != (g->set[row] == 1)) {
        bh_flag_err(e, "cannot set feature gate %s to %s, feature is locked to %s", name, value,
                    on_by_default(l) ? "true" : "false");
    } else if (l == '-') {
        version_text(g->emulated, emulated);
        version_text(g->min_compatibility, min);
        bh_flag_err(e,
                    "cannot set feature gate %s to %s, feature is PreAlpha at emulated version %s, "
                    "min compatibility version %s",
                    name, value, emulated, min);
    }
}

static int set_gates(struct bh_feature_gates *g, const struct bh_opt_list *gates,
                     struct bh_err *err)
{
    struct bh_flag_errors e = {0};
    int prefixed = -1;

    for (size_t i = 0; i < gates->n; i++) {
        struct wish w = {{NULL, 0}, 0};
        if (!*gates->v[i])
            continue;
        int rc = read_wish(gates->v[i], &prefixed, &w, err);
        if (rc < 0)
            return rc;
        size_t row = find_gate(w.name.p, w.name.n);
        if (row == SIZE_MAX)
            return bh_err_set(err, -EINVAL, "unrecognized feature gate: %.*s",
                              (int)BH_MIN(w.name.n, 128), w.name.p);
        g->given[row] = true;
        g->set[row] = (int8_t)w.value;
    }
    for (size_t i = 0; i < bh_n_feature_rows; i++)
        if (g->given[i])
            check_row(g, i, &e);
    if (e.n)
        return bh_flag_errors_close(&e, err);
    size_t alpha = find_gate("AllAlpha", 8), beta = find_gate("AllBeta", 7);
    if (g->given[alpha])
        set_class(g, 'a', g->set[alpha]);
    if (g->given[beta])
        set_class(g, 'b', g->set[beta]);
    for (size_t i = 0; i < bh_n_feature_rows; i++) {
        struct bh_buf off = {0};
        for (const char *p = enabled(g, i) ? bh_feature_rows[i].needs : NULL; p && *p;) {
            size_t n = strcspn(p, " ");
            if (!enabled(g, find_gate(p, n)))
                bh_buf_addf(&off, "%s%.*s", off.n ? " " : "", (int)n, p);
            p += n + (p[n] == ' ');
        }
        if (off.n)
            bh_flag_err(&e, "%s is enabled, but depends on features that are disabled: [%s]",
                        bh_feature_rows[i].name, off.p);
        bh_buf_fini(&off);
    }
    return bh_flag_errors_close(&e, err);
}

int bh_feature_gates_set(struct bh_feature_gates *g, const struct bh_opt_list *gates,
                         const struct bh_opt_list *emulated,
                         const struct bh_opt_list *min_compatibility, struct bh_err *err)
{
    int rc = read_version(emulated, &g->emulated, err);

    if (rc == 0 && emulated->n)
        g->min_compatibility = BH_MAX(g->emulated - 1, BH_FEATURE_MINOR_FLOOR);
    if (rc == 0)
        rc = read_version(min_compatibility, &g->min_compatibility, err);
    return rc < 0 ? rc : set_gates(g, gates, err);
}

int bh_feature_gates_parse(struct bh_feature_gates *g, const char *text, struct bh_err *err)
{
    const struct bh_opt_list none = {0};
    struct bh_opt_list list = {.v = bh_calloc(BH_FEATURE_GATES_MAX, sizeof *list.v)};
    BH_CLEANUP(bh_freep) char *copy = bh_strdup(text ? text : "");
    char *rest = copy, *one;

    while (*copy && (one = strsep(&rest, ",")) && list.n < BH_FEATURE_GATES_MAX)
        list.v[list.n++] = one;
    bh_feature_gates_init(g);
    int rc = bh_feature_gates_set(g, &list, &none, &none, err);
    free(list.v);
    return rc;
}

bool bh_feature_enabled(const struct bh_feature_gates *g, const char *name)
{
    size_t row = find_gate(name, strlen(name));

    bh_assert(row != SIZE_MAX);
    return enabled(g, row);
}

void bh_feature_gates_each(const struct bh_feature_gates *g,
                           void (*fn)(void *arg, const struct bh_feature_state *s), void *arg)
{
    for (size_t i = 0; i < bh_n_feature_rows; i++) {
        char l = letter(g, i), stage = (char)(l | 0x20);
        bool ours =
            on_by_default(bh_feature_rows[i].states[BH_FEATURE_MINOR - BH_FEATURE_MINOR_FLOOR]);
        const struct bh_feature_state s = {.name = bh_feature_rows[i].name,
                                           .stage = stage == 'a'                   ? "ALPHA"
                                                    : stage == 'b'                 ? "BETA"
                                                    : stage == 'd' || stage == 'x' ? "DEPRECATED"
                                                                                   : "",
                                           .enabled = enabled(g, i),
                                           .differs = enabled(g, i) != ours,
                                           .given = g->given[i]};
        if (l != '-')
            fn(arg, &s);
    }
}
