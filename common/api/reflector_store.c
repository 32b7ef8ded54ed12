/* SPDX-License-Identifier: Apache-2.0
 *
 * common/api/reflector_store.c - what a reflector has delivered
 *
 * Owns:       one small item an object: key, uid, version. Not the objects.
 * Invariants: the consumer's view and the items are the same set at every return.
 * Runs in:    the loop.
 */
#include "common/api/reflector_int.h"
#include "common/base/key.h"

#define KEY_MAX 1024

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

static size_t make_key(char out[static KEY_MAX], const struct bh_refl_key *k)
{
    return bh_key_pair(out, KEY_MAX, k->ns, k->name);
}

static const char *uid_of(const struct bh_refl_item *it)
{
    return it->text + it->uid_off;
}

static void store(struct bh_refl_store *s, const char *key, size_t n, const struct bh_refl_key *k)
{
    size_t n_rv = strlen(k->rv) + 1, n_uid = strlen(k->uid) + 1;
    struct bh_refl_item *it = bh_malloc(sizeof(*it) + n_rv + n_uid);
    it->mark = s->mark;
    it->uid_off = (uint32_t)n_rv;
    memcpy(it->text, k->rv, n_rv);
    memcpy(it->text + n_rv, k->uid, n_uid);
    free(bh_map_put(&s->items, key, n, it));
}

enum bh_refl_verdict bh_refl_store_put(struct bh_refl_store *s, const struct bh_refl_key *k,
                                       bool from_list, char **ret_old_uid)
{
    char key[KEY_MAX];
    size_t n = make_key(key, k);
    if (n == 0)
        return BH_REFL_INVALID;
    struct bh_refl_item *it = bh_map_get(&s->items, key, n);
    if (!it) {
        store(s, key, n, k);
        return BH_REFL_NEW;
    }
    int cmp = bh_refl_rv_cmp(k->rv, it->text);
    bool same_uid = bh_streq(uid_of(it), k->uid);
    it->mark = s->mark;
    if ((same_uid && cmp == 0) || (cmp < 0 && !from_list))
        return BH_REFL_SAME;
    if (!same_uid) {
        *ret_old_uid = bh_strdup(uid_of(it));
        store(s, key, n, k);
        return BH_REFL_REPLACED;
    }
    if (strlen(k->rv) + 1 == it->uid_off) /* the usual case: as many digits as before */
        memcpy(it->text, k->rv, it->uid_off);
    else
        store(s, key, n, k);
    return BH_REFL_CHANGED;
}

bool bh_refl_store_del(struct bh_refl_store *s, const struct bh_refl_key *k, char **ret_uid)
{
    char key[KEY_MAX];
    size_t n = make_key(key, k);
    struct bh_refl_item *it = n ? bh_map_get(&s->items, key, n) : NULL;
    /* Older than what is known: the end of a predecessor, which was replaced meanwhile. */
    if (!it || bh_refl_rv_cmp(k->rv, it->text) < 0)
        return false;
    *ret_uid = bh_strdup(uid_of(it));
    free(bh_map_del(&s->items, key, n));
    return true;
}

void bh_refl_store_begin_list(struct bh_refl_store *s)
{
    s->mark++;
}

void bh_refl_store_sweep(struct bh_refl_store *s, void (*gone)(void *, const struct bh_refl_key *),
                         void *arg)
{
    struct bh_map_entry *e;
    for (size_t it = 0; (e = bh_map_next(&s->items, &it));) {
        struct bh_refl_item *item = e->value;
        char key[KEY_MAX];
        if (item->mark == s->mark)
            continue;
        memcpy(key, e->key, e->key_len + 1);
        char *slash = strchr(key, '/');
        *slash = 0;
        bh_map_del(&s->items, e->key, e->key_len);
        struct bh_refl_key k = {key, slash + 1, uid_of(item), item->text};
        gone(arg, &k);
        free(item);
    }
}

void bh_refl_store_fini(struct bh_refl_store *s)
{
    struct bh_map_entry *e;
    for (size_t it = 0; (e = bh_map_next(&s->items, &it));)
        free(e->value);
    bh_map_fini(&s->items);
}
