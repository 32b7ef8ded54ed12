/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/controllers/podscript.c - how long a container's command runs, and what it ends with
 *
 * No program is run. Commands that a shell script of a manifest is usually made of are understood:
 * sleep, exit, test, touch, if, while, functions, traps. From the first one on that is not, the
 * program is unknown. What files there are is known of those that such scripts make in volumes.
 * Invariants: the same run sees the same files however often it is looked at: those that it has made
 *             itself are not there yet. Who writes a script cannot hold the loop up: MAX_WORK and
 *             MAX_DEPTH bound what is read, of hostile ones, too; more is not understood.
 * Differences from a shell: no pipes, no jobs, no patterns; a loop whose first round does not leave it
 *             goes on for ever; files are there from the start of the run that makes them.
 */
#include "simulator/controllers/podscript.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>

#define FOR_EVER  INT64_MAX
#define SECOND    ((int64_t)1000000000)
#define MAX_WORDS 32
#define MAX_DEPTH 16
#define MAX_FILES 100000 /* of all containers together; more are not remembered */
#define MAX_WORK  65536  /* characters that a program may read, of a function at each call */
#define LOOK_UP   64     /* of these, for a name: its list may have thousands of members */

struct name {
    struct name *next;
    const char *name, *value; /* of a variable; a function's body; a file's key */
};
struct shell {
    const struct bh_ctl_run *run;
    struct bh_ctl_program p;
    struct name *vars, *functions, *made;
    const char *on_term; /* what `trap` has been told */
    int64_t status;      /* of the last command */
    bool stop, errexit;  /* stop: what stands behind is not reached */
    int depth;
    size_t *left; /* of MAX_WORK */
};

static void give_up(struct shell *s)
{
    s->p.unknown = true;
    s->p.run_ns = FOR_EVER;
    s->stop = true;
}

/* n characters were read, or stand for a variable. */
static void charge(struct shell *s, size_t n)
{
    if (n > *s->left && !s->stop)
        give_up(s);
    *s->left -= BH_MIN(n, *s->left);
}

static const char *find(const struct name *list, const char *name)
{
    for (; list; list = list->next)
        if (bh_streq(list->name, name))
            return list->value;
    return NULL;
}

static void add(struct shell *s, struct name **list, const char *name, const char *value)
{
    struct name *n = bh_arena_new(s->run->a, struct name);

    *n = (struct name){*list, name, value};
    *list = n;
}

/* ---- files ----------------------------------------------------------------------------------- */

static const struct bh_json *find_named(const struct bh_json *list, const char *name)
{
    bh_json_each(e, list)
        if (name && bh_tree_is(e, "name", name))
            return e;
    return NULL;
}

/* Under what name everybody who shares the file knows it; NULL: it lies in no volume. */
static const char *file_key(const struct bh_ctl_run *r, const char *path)
{
    const struct bh_json *mount = NULL;
    size_t longest = 0;

    bh_json_each(m, bh_tree_arr(r->container, "volumeMounts")) {
        const char *at = bh_tree_str(m, "mountPath");
        size_t n = at ? strlen(at) : 0;
        if (n > longest && strncmp(path, at, n) == 0 && (path[n] == '/' || at[n - 1] == '/')) {
            mount = m;
            longest = n;
        }
    }
    if (!mount)
        return NULL;
    const char *volume = bh_tree_str(mount, "name"), *rest = path + longest;
    const char *host =
        bh_tree_str(find_named(bh_tree_arr(r->pod, "spec.volumes"), volume), "hostPath.path");
    return host ? bh_arena_printf(r->a, "n %s %s%s", bh_tree_str(r->pod, "spec.nodeName"), host,
                                  rest)
                : bh_arena_printf(r->a, "p %s %s%s", bh_tree_str(r->pod, "metadata.uid"), volume,
                                  rest);
}

static bool file_exists(struct shell *s, const char *path)
{
    const char *key = file_key(s->run, path), *by;

    charge(s, LOOK_UP);
    if (find(s->made, key ? key : path))
        return true;
    by = key && s->run->files ? bh_map_get(s->run->files, key, strlen(key)) : NULL;
    return by && !bh_streq(by, s->run->id);
}

static void make_file(struct shell *s, const char *path)
{
    const char *key = file_key(s->run, path);
    struct bh_map *files = s->run->files;

    charge(s, LOOK_UP);
    add(s, &s->made, key ? key : path, "");
    if (key && files && files->len < MAX_FILES && !bh_map_get(files, key, strlen(key)))
        bh_map_put(files, key, strlen(key), bh_strdup(s->run->id));
}

/* ---- variables ------------------------------------------------------------------------------- */

/* A field that the downward API gives; NULL: none of those known here. */
static const char *field_of(const struct bh_ctl_run *r, const char *path)
{
    static const char *const plain[] = {"metadata.name", "metadata.namespace", "metadata.uid",
                                        "spec.nodeName", "spec.serviceAccountName"};
    static const char labels[] = "metadata.labels['", annotations[] = "metadata.annotations['";
    const char *key = NULL;
    bool label = strncmp(path, labels, sizeof(labels) - 1) == 0;

    for (size_t i = 0; i < BH_ARRAY_LEN(plain); i++)
        if (bh_streq(path, plain[i]))
            return bh_tree_str(r->pod, path);
    if (label)
        key = path + sizeof(labels) - 1;
    else if (strncmp(path, annotations, sizeof(annotations) - 1) == 0)
        key = path + sizeof(annotations) - 1;
    if (!key)
        return NULL;
    key = bh_arena_strndup(r->a, key, strcspn(key, "'"));
    return label ? bh_tree_label(r->pod, key) : bh_tree_annotation(r->pod, key);
}

static const char *value_of(struct shell *s, const char *name)
{
    const struct bh_json *e = find_named(bh_tree_arr(s->run->container, "env"), name);
    const char *v = find(s->vars, name), *path = bh_tree_str(e, "valueFrom.fieldRef.fieldPath");

    if (v)
        return v;
    if (bh_streq(name, "?"))
        return bh_arena_printf(s->run->a, "%" PRId64, s->status);
    if (bh_streq(name, "HOSTNAME"))
        return bh_tree_str(s->run->pod, "metadata.name");
    v = e ? bh_tree_str(e, "value") : NULL;
    if (path)
        v = field_of(s->run, path);
    if (v && !strstr(v, "$("))
        return v;
    if (v || (e && !bh_tree_is(e, "value", "")) || bh_streq(name, "RANDOM") ||
        bh_tree_len(bh_tree_arr(s->run->container, "envFrom")))
        give_up(s);
    return "";
}

/* ---- words ----------------------------------------------------------------------------------- */

/* "A", or "A op B" of whole numbers. */
static bool calculate(const char *text, int64_t *ret)
{
    char *end;
    int64_t a = strtoll(text, &end, 10), b;
    bool number = end != text;

    end += strspn(end, " \t");
    *ret = a;
    if (!*end || !number)
        return number;
    char op = *end++, *rest;
    b = strtoll(end, &rest, 10);
    if (rest == end || rest[strspn(rest, " \t")] || !strchr("+-*/%", op) ||
        (!b && (op == '/' || op == '%')) || b == -1)
        return false;
    if (op == '+')
        return !__builtin_add_overflow(a, b, ret);
    if (op == '-')
        return !__builtin_sub_overflow(a, b, ret);
    if (op == '*')
        return !__builtin_mul_overflow(a, b, ret);
    *ret = op == '/' ? a / b : a % b;
    return true;
}

/* What stands for the variable, which is read as well; "": nothing. */
static const char *read_value(struct shell *s, const char *name)
{
    const char *v = value_of(s, name);

    charge(s, LOOK_UP + (v ? strlen(v) : 0));
    return v && !s->stop ? v : "";
}

static const char *next_word(struct shell *s, const char **at);

/* $(expr ...) and $((...)); at stands behind the first bracket. */
static void substitute(struct shell *s, const char **at, struct bh_buf *b)
{
    struct bh_arena *a = s->run->a;
    const char *from = *at;
    int64_t depth = 1, n;
    BH_CLEANUP(bh_buf_fini) struct bh_buf text = {0};

    for (; **at && depth; ++*at)
        depth += (**at == '(') - (**at == ')');
    if (depth || s->depth >= MAX_DEPTH) {
        give_up(s);
        return;
    }
    charge(s, (size_t)(*at - from));
    bool sum = *from == '(';
    from += sum;
    s->depth++;
    const char *inner = bh_arena_strndup(a, from, (size_t)(*at - from) - 1 - sum);
    for (const char *w; (w = next_word(s, &inner)) && !s->stop;)
        bh_buf_addf(&text, "%s%s", text.n ? " " : "",
                    sum && isalpha((unsigned char)*w) ? read_value(s, w) : w);
    s->depth--;
    const char *t = text.n ? bh_buf_str(&text) : "";
    if (!sum && strncmp(t, "expr ", 5) != 0)
        give_up(s);
    else if (calculate(sum ? t : t + 5, &n))
        bh_buf_addf(b, "%" PRId64, n);
    else
        give_up(s);
}

/* At a dollar. */
static void expand(struct shell *s, const char **at, struct bh_buf *b)
{
    const char *from = ++*at;
    size_t n;

    if (*from == '(') {
        ++*at;
        substitute(s, at, b);
        return;
    }
    bool braced = *from == '{';
    from += braced;
    for (n = 0; isalnum((unsigned char)from[n]) || from[n] == '_'; n++)
        ;
    n += !n && *from == '?';
    *at = from + n + braced;
    if (!n || isdigit((unsigned char)*from) || (braced && from[n] != '}')) {
        give_up(s);
        return;
    }
    bh_buf_adds(b, read_value(s, bh_arena_strndup(s->run->a, from, n)));
}

static void skip_blanks(const char **at)
{
    while (**at == ' ' || **at == '\t' || (**at == '\\' && (*at)[1] == '\n'))
        *at += 1 + (**at == '\\');
    if (**at == '#')
        *at += strcspn(*at, "\n");
}

/* The next word of a command, expanded; NULL: the command ends here. */
static const char *next_word(struct shell *s, const char **at)
{
    BH_CLEANUP(bh_buf_fini) struct bh_buf b = {0};
    char quote = 0;

    skip_blanks(at);
    if (!**at || strchr(";\n&|<>()", **at))
        return NULL;
    while (**at && !s->stop && (quote || !strchr(" \t;\n&|<>()", **at))) {
        if (**at == '$' && quote != '\'') {
            expand(s, at, &b);
            continue;
        }
        char c = *(*at)++;
        if (quote ? c == quote : c == '\'' || c == '"')
            quote = quote ? 0 : c;
        else if (c == '\\' && quote != '\'' && **at)
            bh_buf_addf(&b, "%c", *(*at)++);
        else if (c == '`')
            give_up(s);
        else
            bh_buf_addf(&b, "%c", c);
    }
    if (quote)
        give_up(s);
    return bh_arena_strdup(s->run->a, b.n ? bh_buf_str(&b) : "");
}

/* ---- commands -------------------------------------------------------------------------------- */

static void run_list(struct shell *s, const char **at, bool doing);

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

static void run_sleep(struct shell *s, const char *arg)
{
    static const char units[] = "smhd";
    static const int64_t seconds[] = {1, 60, 3600, 86400};
    char *end;
    double n = strtod(arg, &end);
    const char *unit = *end ? strchr(units, *end) : units;

    if (bh_streq(arg, "infinity")) {
        n = HUGE_VAL;
        unit = units;
    } else if (end == arg || !(n >= 0) || !unit || (*end && end[1])) {
        give_up(s);
        return;
    }
    n *= (double)seconds[unit - units];
    s->status = 0;
    s->stop = n >= 1e6 || s->p.run_ns > FOR_EVER / 2;
    s->p.run_ns = s->stop ? FOR_EVER : s->p.run_ns + (int64_t)(n * (double)SECOND);
}

static bool compare(struct shell *s, const char *a, const char *op, const char *b)
{
    static const char ops[] = "-eq -ne -lt -le -gt -ge";
    int64_t x = strtoll(a, NULL, 10), y = strtoll(b, NULL, 10);

    if (bh_streq(op, "=") || bh_streq(op, "=="))
        return bh_streq(a, b);
    if (bh_streq(op, "!="))
        return !bh_streq(a, b);
    switch (bh_word_at(ops, op)) {
    case 0:
        return x == y;
    case 1:
        return x != y;
    case 2:
        return x < y;
    case 3:
        return x <= y;
    case 4:
        return x > y;
    case 5:
        return x >= y;
    default:
        give_up(s);
        return false;
    }
}

/* The words between the brackets. */
static bool test(struct shell *s, const char *const *w, size_t n)
{
    bool not = n && bh_streq(w[0], "!");

    w += not ;
    n -= not ;
    bool yes = false;
    if (n == 1)
        yes = *w[0] != 0;
    else if (n == 2 && (bh_streq(w[0], "-n") || bh_streq(w[0], "-z")))
        yes = (*w[1] != 0) == (w[0][1] == 'n');
    else if (n == 2 && bh_word_at("-e -f -r -s -w", w[0]) >= 0)
        yes = file_exists(s, w[1]);
    else if (n == 3)
        yes = compare(s, w[0], w[1], w[2]);
    else
        give_up(s);
    return yes != not ;
}

static void call(struct shell *s, const char *body)
{
    if (++s->depth > MAX_DEPTH)
        give_up(s);
    run_list(s, &body, true);
    s->depth--;
}

static void run_exit(struct shell *s, const char *arg)
{
    char *end;
    int64_t n = strtoll(arg, &end, 10);

    s->status = *arg ? (*end || n < 0 || n > 255 ? 255 : n) : s->status;
    s->stop = true;
}

/* A command whose words are known. n > 0 */
static void run_words(struct shell *s, const char *const *w, size_t n)
{
    const char *base = base_name(w[0]), *body = find(s->functions, w[0]);
    bool bracket = bh_streq(base, "["), two = bh_streq(base, "[[");

    if (body) {
        call(s, body);
    } else if (bracket || two || bh_streq(base, "test")) {
        if ((bracket || two) && !bh_streq(w[n - 1], two ? "]]" : "]"))
            give_up(s);
        else
            s->status = !test(s, w + 1, n - 1 - (bracket || two));
    } else if (bh_word_at("true : echo printf date sync mkdir", base) >= 0) {
        s->status = 0;
    } else if (bh_streq(base, "false")) {
        s->status = 1;
    } else if (bh_streq(base, "touch")) {
        for (size_t i = 1; i < n; i++)
            make_file(s, w[i]);
        s->status = 0;
    } else if (bh_streq(base, "cat") && n == 2) {
        s->status = !file_exists(s, w[1]);
    } else if (bh_streq(base, "exit")) {
        run_exit(s, n > 1 ? w[1] : "");
    } else if (bh_streq(base, "set")) {
        s->errexit = s->errexit || (n > 1 && w[1][0] == '-' && strchr(w[1], 'e'));
        s->status = 0;
    } else if (bh_streq(base, "trap") && n > 2) {
        for (size_t i = 2; i < n; i++)
            if (bh_word_at("TERM SIGTERM 15", w[i]) >= 0)
                s->on_term = w[1];
    } else if (bh_streq(base, "sleep") && n == 2) {
        run_sleep(s, w[1]);
    } else {
        give_up(s);
        s->p.unknown = bh_word_at("pause tail", base) < 0;
    }
}

/* `name=value` as a command of its own. */
static bool assign(struct shell *s, const char *word)
{
    size_t n = strcspn(word, "=");

    if (!word[n] || !n || isdigit((unsigned char)*word))
        return false;
    for (size_t i = 0; i < n; i++)
        if (!isalnum((unsigned char)word[i]) && word[i] != '_')
            return false;
    add(s, &s->vars, bh_arena_strndup(s->run->a, word, n), word + n + 1);
    return true;
}

static void redirect(struct shell *s, const char **at, bool doing)
{
    const char *to;

    *at += strspn(*at, ">");
    *at += **at == '&';
    to = next_word(s, at);
    if (!to)
        give_up(s);
    else if (doing && *to == '/' && strncmp(to, "/dev/", 5) != 0)
        make_file(s, to);
}

/* Up to the end of the command; what is not done is only read over. */
static void run_simple(struct shell *s, const char **at, bool doing)
{
    const char *w[MAX_WORDS];
    size_t n = 0;
    struct shell unread = *s;
    struct shell *as =
        doing ? s : &unread; /* expansions of what is not done may fail as they like */

    for (const char *word; !s->stop;) {
        unread.stop = false;
        if (**at == '>') {
            redirect(as, at, doing);
            skip_blanks(at);
            continue;
        }
        if (!(word = next_word(as, at)))
            break;
        if (n < MAX_WORDS)
            w[n++] = word;
        skip_blanks(at);
        if (**at == '>' && n && (bh_streq(w[n - 1], "2") || bh_streq(w[n - 1], "1")))
            n--;
    }
    if (!doing || s->stop || !n)
        return;
    if (n == MAX_WORDS)
        give_up(s);
    else if (n > 1 || !assign(s, w[0]))
        run_words(s, w, n);
}

/* ---- what is made of commands ---------------------------------------------------------------- */

/* A word that the shell itself knows stands here. */
static bool at_word(const char *at, const char *word)
{
    size_t n = strlen(word);

    return strncmp(at, word, n) == 0 && (!at[n] || strchr(" \t\n;&|()", at[n]));
}

static bool take(struct shell *s, const char **at, const char *word)
{
    *at += strspn(*at, " \t\n;");
    if (!at_word(*at, word)) {
        give_up(s);
        return false;
    }
    *at += strlen(word);
    return true;
}

/* `set -e` does not end a script whose condition is false. */
static void run_condition(struct shell *s, const char **at, bool doing)
{
    bool errexit = s->errexit;

    s->errexit = false;
    run_list(s, at, doing);
    s->errexit = errexit;
}

static void run_if(struct shell *s, const char **at, bool doing)
{
    bool done = false;

    do {
        *at += strcspn(*at, " \t\n"); /* if, elif */
        run_condition(s, at, doing && !done);
        bool yes = doing && !done && !s->stop && s->status == 0;
        if (s->stop || !take(s, at, "then"))
            return;
        run_list(s, at, yes);
        done = done || yes;
        if (s->stop)
            return;
        *at += strspn(*at, " \t\n;");
    } while (at_word(*at, "elif"));
    if (at_word(*at, "else")) {
        *at += strlen("else");
        run_list(s, at, doing && !done);
    }
    if (!s->stop && doing && !done)
        s->status = 0;
    if (!s->stop)
        take(s, at, "fi");
}

static void run_while(struct shell *s, const char **at, bool doing)
{
    *at += strlen("while");
    run_condition(s, at, doing);
    bool yes = doing && !s->stop && s->status == 0;
    if (s->stop || !take(s, at, "do"))
        return;
    run_list(s, at, yes);
    if (yes && !s->stop) {
        s->p.run_ns = FOR_EVER;
        s->stop = true;
    }
    if (!s->stop)
        take(s, at, "done");
}

/* `name() {`: its name, in the arena; NULL: no function begins here. */
static const char *function_name(struct shell *s, const char **at)
{
    const char *p = *at;
    size_t n = 0;

    while (isalnum((unsigned char)p[n]) || p[n] == '_')
        n++;
    if (!n || strncmp(p + n, "()", 2) != 0)
        return NULL;
    *at = p + n + 2;
    *at += strspn(*at, " \t\n");
    return bh_arena_strndup(s->run->a, p, n);
}

static void run_command(struct shell *s, const char **at, bool doing)
{
    const char *name = function_name(s, at);

    if (++s->depth > MAX_DEPTH) {
        give_up(s);
    } else if (name || at_word(*at, "{")) {
        if (take(s, at, "{") && name)
            add(s, &s->functions, name, *at);
        run_list(s, at, doing && !name);
        if (!s->stop)
            take(s, at, "}");
    } else if (at_word(*at, "if")) {
        run_if(s, at, doing);
    } else if (at_word(*at, "while")) {
        run_while(s, at, doing);
    } else if (at_word(*at, "for") || at_word(*at, "until") || at_word(*at, "case")) {
        give_up(s);
    } else {
        run_simple(s, at, doing);
    }
    s->depth--;
}

static bool list_ends(const char *at)
{
    static const char *const ends[] = {"then", "elif", "else", "fi", "do", "done", "}"};

    for (size_t i = 0; i < BH_ARRAY_LEN(ends); i++)
        if (at_word(at, ends[i]))
            return true;
    return !*at || *at == ')';
}

/* Commands up to a word that ends them, or to the end. */
static void run_list(struct shell *s, const char **at, bool doing)
{
    bool next = doing;

    while (!s->stop) {
        const char *begin = *at;
        *at += strspn(*at, " \t\n;");
        skip_blanks(at);
        if (**at == '\n')
            continue;
        if (list_ends(*at))
            return;
        const char *from = *at;
        run_command(s, at, next);
        skip_blanks(at);
        bool and = strncmp(*at, "&&", 2) == 0, or = strncmp(*at, "||", 2) == 0;
        if (and || or)
            *at += 2;
        else if (*at == from || (!s->stop && **at && !strchr(";\n", **at) && !list_ends(*at)))
            give_up(s);
        charge(s, (size_t)(*at - begin));
        if (next && s->errexit && s->status && !and&&! or)
            s->stop = true;
        next = doing && (and? s->status == 0 : or ? s->status != 0 : true);
    }
}

/* ---- programs -------------------------------------------------------------------------------- */

/* How long the end takes that the program was told to make of SIGTERM. */
static int64_t term_ns(struct shell *s)
{
    struct shell end = *s;
    const char *at = s->on_term;

    if (!at || !*at)
        return 0;
    end.p = (struct bh_ctl_program){0};
    end.stop = end.errexit = false;
    run_list(&end, &at, true);
    return end.p.unknown ? 0 : end.p.run_ns;
}

struct bh_ctl_program bh_ctl_program_of(const struct bh_ctl_run *run, const struct bh_json *what)
{
    static const char *const lists[] = {"command", "args"};
    const char *w[MAX_WORDS] = {"", "", ""};
    size_t n = 0, left = MAX_WORK;
    struct shell s = {.run = run, .left = &left};

    for (size_t i = 0; i < BH_ARRAY_LEN(lists); i++) {
        bh_json_each(v, bh_tree_arr(what, lists[i])) {
            if (n < MAX_WORDS && bh_json_cstr(v))
                w[n++] = bh_json_cstr(v);
        }
    }
    const char *image = bh_tree_str(what, "image");
    if (!n && image && strncmp(base_name(image), "pause", 5) == 0)
        w[n++] = "pause";
    bool shell = n > 2 && bh_word_at("sh bash ash", base_name(w[0])) >= 0 && *w[1] == '-' &&
                 strchr(w[1], 'c');
    s.errexit = shell && strchr(w[1], 'e');
    if (shell)
        run_list(&s, &w[2], true);
    else if (n)
        run_words(&s, w, n);
    else
        give_up(&s);
    if (shell && *w[2] && !s.stop) /* a bracket or a word too many */
        give_up(&s);
    s.p.exit_code = s.p.run_ns == FOR_EVER ? 0 : s.status;
    s.p.term_ns = term_ns(&s);
    return s.p;
}

void bh_ctl_forget_files(struct bh_map *files, const char *pod_uid)
{
    struct bh_map_entry *e;
    size_t n = strlen(pod_uid);

    for (size_t it = 0; files->len && (e = bh_map_next(files, &it));) {
        if (e->key_len > n + 3 && memcmp(e->key, "p ", 2) == 0 &&
            memcmp(e->key + 2, pod_uid, n) == 0)
            free(bh_map_del(files, e->key, e->key_len));
    }
}
