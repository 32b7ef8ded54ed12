/* SPDX-License-Identifier: Apache-2.0
 *
 * common/api/reflector_store.c - what a reflector has delivered
 *
 * Owns:       one small item an object: key, uid, version. Not the objects.
 * Invariants: the consumer's view and the items are the same set at every return. A uid or version
 *             that has its usual form is kept in binary and printed again as it was.
 * Runs in:    the loop.
 */
#include "common/api/reflector_int.h"
#include "common/base/key.h"

#define KEY_MAX     1024
#define BUCKETS_MIN 16
#define UUID_TEXT   36 /* bytes, without NUL */

struct bh_refl_item {
    struct bh_refl_item *next;
    uint64_t version;
    uint8_t uid[16];
    uint32_t hash, mark; /* mark: of the last list that had it */
    uint16_t key_n;
    bool uid_binary, version_binary;
    char text[]; /* key NUL, then uid NUL and version NUL, each only if it is not binary */
};

static bool is_decimal(const char *s)
{
    return *s && s[strspn(s, "0123456789")] == 0;
}

int bh_refl_rv_cmp(const char *a, const char *b)
{
    if (bh_streq(a, b))
        return 0;
    if (!is_decimal(a) || !is_decimal(b))
        return 1;
    a += strspn(a, "0");
    b += strspn(b, "0");
    size_t na = strlen(a), nb = strlen(b);
    if (na != nb)
        return na < nb ? -1 : 1;
    int c = strcmp(a, b);
    return c < 0 ? -1 : c > 0;
}

/* ---- what a uid and a version usually look like ---------------------------------------------- */

/* Lower case. No branches: which of a uid's digits are letters cannot be foretold. */
static unsigned hex_digit(unsigned c, bool *all)
{
    *all &= (c - '0' < 10) | (c - 'a' < 6);
    return (c & 15) + (c >> 6) * 9;
}

/* Only what bh_uuid_text() would print: dashes in their places. */
static bool read_uuid(const char *s, uint8_t out[static 16])
{
    static const uint8_t at[16] = {0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34};
    bool all = true;

    if (strnlen(s, UUID_TEXT + 1) != UUID_TEXT || s[8] != '-' || s[13] != '-' || s[18] != '-' ||
        s[23] != '-')
        return false;
    for (unsigned i = 0; i < 16; i++) {
        const unsigned high = hex_digit((uint8_t)s[at[i]], &all);
        out[i] = (uint8_t)(high << 4 | hex_digit((uint8_t)s[at[i] + 1], &all));
    }
    return all;
}

static bool read_version(const char *s, uint64_t *ret)
{
    uint64_t v = 0;
    size_t n = strlen(s);

    if (n == 0 || n > 19 || !is_decimal(s) || (*s == '0' && n > 1))
        return false;
    for (; *s; s++)
        v = v * 10 + (uint64_t)(*s - '0');
    *ret = v;
    return true;
}

/* ---- items ----------------------------------------------------------------------------------- */

static const char *uid_of(const struct bh_refl_item *it, char tmp[static UUID_TEXT + 1])
{
    if (!it->uid_binary)
        return it->text + it->key_n + 1;
    bh_uuid_text(it->uid, tmp);
    return tmp;
}

static const char *version_of(const struct bh_refl_item *it, char tmp[static 21])
{
    const char *rest = it->text + it->key_n + 1;

    if (!it->version_binary)
        return it->uid_binary ? rest : rest + strlen(rest) + 1;
    bh_dec_u64(tmp, it->version);
    return tmp;
}

static bool has_uid(const struct bh_refl_item *it, const char *uid)
{
    uint8_t b[16];

    return it->uid_binary ? read_uuid(uid, b) && memcmp(b, it->uid, sizeof(b)) == 0
                          : bh_streq(uid_of(it, (char[UUID_TEXT + 1]){0}), uid);
}

/* As bh_refl_rv_cmp(rv, the item's). */
static int compare_version(const char *rv, const struct bh_refl_item *it)
{
    char tmp[21];
    uint64_t v;

    if (it->version_binary && read_version(rv, &v))
        return v < it->version ? -1 : v > it->version;
    return bh_refl_rv_cmp(rv, version_of(it, tmp));
}

static struct bh_refl_item *make_item(const char *key, size_t n, uint32_t hash,
                                      const struct bh_refl_key *k)
{
    struct bh_refl_item head = {.hash = hash, .key_n = (uint16_t)n}, *it;
    head.uid_binary = read_uuid(k->uid, head.uid);
    head.version_binary = read_version(k->rv, &head.version);
    const size_t n_uid = head.uid_binary ? 0 : strlen(k->uid) + 1;
    const size_t n_rv = head.version_binary ? 0 : strlen(k->rv) + 1;

    it = bh_malloc(BH_MAX(offsetof(struct bh_refl_item, text) + n + 1 + n_uid + n_rv, sizeof(*it)));
    *it = head;
    memcpy(it->text, key, n + 1);
    memcpy(it->text + n + 1, k->uid, n_uid);
    memcpy(it->text + n + 1 + n_uid, k->rv, n_rv);
    return it;
}

/* ---- table ----------------------------------------------------------------------------------- */

static struct bh_refl_item **chain(const struct bh_refl_store *s, uint32_t hash)
{
    return &s->bucket[hash & (s->n_buckets - 1)];
}

static void grow(struct bh_refl_store *s)
{
    const struct bh_refl_store old = *s;

    if (!old.n_buckets)
        s->seed = bh_rand_entropy();
    s->n_buckets = old.n_buckets ? old.n_buckets * 2 : BUCKETS_MIN;
    s->bucket = bh_calloc(s->n_buckets, sizeof(struct bh_refl_item *));
    for (size_t i = 0; i < old.n_buckets; i++) {
        for (struct bh_refl_item *it = old.bucket[i], *next; it; it = next) {
            struct bh_refl_item **head = chain(s, it->hash);
            next = it->next;
            it->next = *head;
            *head = it;
        }
    }
    free(old.bucket);
}

/* Where the pointer to key's item is, or NULL. */
static struct bh_refl_item **find_link(const struct bh_refl_store *s, const char *key, size_t n,
                                       uint32_t hash)
{
    if (!s->n_buckets)
        return NULL;
    for (struct bh_refl_item **at = chain(s, hash); *at; at = &(*at)->next)
        if ((*at)->hash == hash && (*at)->key_n == n && memcmp((*at)->text, key, n) == 0)
            return at;
    return NULL;
}

static void add(struct bh_refl_store *s, struct bh_refl_item *it)
{
    struct bh_refl_item **head = chain(s, it->hash);

    it->mark = s->mark;
    it->next = *head;
    *head = it;
    s->len++;
}

static struct bh_refl_item *unlink_item(struct bh_refl_store *s, struct bh_refl_item **at)
{
    struct bh_refl_item *it = *at;

    *at = it->next;
    s->len--;
    return it;
}

/* ---------------------------------------------------------------------------------------------- */

enum bh_refl_verdict bh_refl_store_put(struct bh_refl_store *s, const struct bh_refl_key *k,
                                       bool from_list, char **ret_old_uid)
{
    char key[KEY_MAX], tmp[UUID_TEXT + 1];
    size_t n = bh_key_pair(key, KEY_MAX, k->ns, k->name);
    if (n == 0)
        return BH_REFL_INVALID;
    if (s->len >= s->n_buckets)
        grow(s);
    const uint32_t hash = (uint32_t)bh_hash(key, n, s->seed);
    struct bh_refl_item **at = find_link(s, key, n, hash);
    if (!at) {
        add(s, make_item(key, n, hash, k));
        return BH_REFL_NEW;
    }
    struct bh_refl_item *it = *at;
    int cmp = compare_version(k->rv, it);
    bool same_uid = has_uid(it, k->uid);
    it->mark = s->mark;
    if ((same_uid && cmp == 0) || (cmp < 0 && !from_list))
        return BH_REFL_SAME;
    if (!same_uid)
        *ret_old_uid = bh_strdup(uid_of(it, tmp));
    if (!same_uid || !it->version_binary || !read_version(k->rv, &it->version)) {
        free(unlink_item(s, at));
        add(s, make_item(key, n, hash, k));
    }
    return same_uid ? BH_REFL_CHANGED : BH_REFL_REPLACED;
}

bool bh_refl_store_del(struct bh_refl_store *s, const struct bh_refl_key *k, char **ret_uid)
{
    char key[KEY_MAX], tmp[UUID_TEXT + 1];
    size_t n = bh_key_pair(key, KEY_MAX, k->ns, k->name);
    struct bh_refl_item **at = n ? find_link(s, key, n, (uint32_t)bh_hash(key, n, s->seed)) : NULL;
    /* Older than what is known: the end of a predecessor, which was replaced meanwhile. */
    if (!at || compare_version(k->rv, *at) < 0)
        return false;
    *ret_uid = bh_strdup(uid_of(*at, tmp));
    free(unlink_item(s, at));
    return true;
}

void bh_refl_store_begin_list(struct bh_refl_store *s)
{
    s->mark++;
}

void bh_refl_store_sweep(struct bh_refl_store *s, void (*gone)(void *, const struct bh_refl_key *),
                         void *arg)
{
    for (size_t i = 0; i < s->n_buckets; i++) {
        for (struct bh_refl_item **at = &s->bucket[i]; *at;) {
            char uid[UUID_TEXT + 1], rv[21];
            if ((*at)->mark == s->mark) {
                at = &(*at)->next;
                continue;
            }
            struct bh_refl_item *it = unlink_item(s, at);
            char *slash = strchr(it->text, '/');
            *slash = 0;
            struct bh_refl_key k = {it->text, slash + 1, uid_of(it, uid), version_of(it, rv)};
            gone(arg, &k);
            free(it);
        }
    }
}

void bh_refl_store_fini(struct bh_refl_store *s)
{
    for (size_t i = 0; i < s->n_buckets; i++)
        while (s->bucket[i])
            free(unlink_item(s, &s->bucket[i]));
    free(s->bucket);
    *s = (struct bh_refl_store){.mark = s->mark};
}
