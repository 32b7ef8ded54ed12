/* SPDX-License-Identifier: Apache-2.0
 *
 * common/bus/allow.c - key files, and the folder of keys that may connect
 *
 * Runs in:    the handshake thread and the bus's owner, each with a list of its own.
 */
#include "common/bus/curve_int.h"

#include <dirent.h>
#include <errno.h>
#include <sys/stat.h>
#include <zmq.h>

#define KEY_FILE_BYTES 256 /* a key, white space, an editor's newline */

/* One key in Z85 and nothing else. */
static bool take_key(char *text, char out[static BH_BUS_KEY_TEXT + 1])
{
    uint8_t raw[32];
    char *end = text + strlen(text);

    while (end > text && (end[-1] == '\n' || end[-1] == '\r' || end[-1] == ' '))
        *--end = '\0';
    bool good = end - text == BH_BUS_KEY_TEXT && zmq_z85_decode(raw, text) != NULL;
    if (good)
        memcpy(out, text, BH_BUS_KEY_TEXT + 1);
    explicit_bzero(raw, sizeof(raw));
    return good;
}

int bh_bus_key_read(const char *path, bool secret, char out[static BH_BUS_KEY_TEXT + 1],
                    struct bh_err *err)
{
    struct stat st;
    char *text = NULL;
    size_t n = 0;

    if (secret && stat(path, &st) == 0 && st.st_mode & (S_IROTH | S_IWOTH | S_IWGRP))
        return bh_err_set(err, -EPERM,
                          "key \"%s\": others may read or change it (mode %04o): chmod 0600, or "
                          "0640 with the group of the service",
                          path, (unsigned)st.st_mode & 07777);
    int rc = bh_read_file(path, KEY_FILE_BYTES, &text, &n);
    if (rc < 0)
        return bh_err_set(err, rc, "key \"%s\": %s", path, strerror(-rc));
    if (strlen(text) != n || !take_key(text, out))
        rc = bh_err_set(err, -EINVAL, "key \"%s\": not one key of %u Z85 characters", path,
                        BH_BUS_KEY_TEXT);
    explicit_bzero(text, n);
    free(text);
    return rc;
}

int bh_bus_allow_load(struct bh_bus_allow *a, const char *dir, struct bh_err *err)
{
    DIR *d = opendir(dir);
    struct dirent *e;
    struct stat st;

    a->n = a->unreadable = 0;
    a->mtime = d && fstat(dirfd(d), &st) == 0 ? st.st_mtim : (struct timespec){0};
    if (!d)
        return bh_err_set(err, -errno, "folder of keys \"%s\": %s", dir, strerror(errno));
    while ((e = readdir(d))) {
        BH_CLEANUP(bh_freep) char *path = NULL;

        size_t n = strlen(e->d_name);
        if (!(n > 4 && e->d_name[0] != '.' && strcmp(e->d_name + n - 4, ".pub") == 0))
            continue;
        path = bh_asprintf("%s/%s", dir, e->d_name);
        if (a->n == BH_BUS_MAX_ALLOW || bh_bus_key_read(path, false, a->key[a->n], NULL) < 0)
            a->unreadable++; /* lets no peer in */
        else
            a->n++;
    }
    closedir(d);
    return 0;
}

bool bh_bus_allow_has(const struct bh_bus_allow *a, const char *key)
{
    for (unsigned i = 0; i < a->n; i++)
        if (bh_streq(a->key[i], key))
            return true;
    return false;
}

int bh_bus_keygen(const char *path, struct bh_err *err)
{
    char pub[BH_BUS_KEY_TEXT + 2], key[BH_BUS_KEY_TEXT + 2];
    BH_CLEANUP(bh_freep) char *pub_path = bh_asprintf("%s.pub", path);
    BH_CLEANUP(bh_freep) char *key_path = bh_asprintf("%s.key", path);
    struct stat st;
    int rc;

    if (stat(pub_path, &st) == 0 || stat(key_path, &st) == 0)
        return bh_err_set(err, -EEXIST, "key \"%s\": it is there already", path);
    if (zmq_curve_keypair(pub, key) < 0)
        return bh_err_set(err, -ENOTSUP, "this ZeroMQ library has no CURVE");
    memcpy(pub + BH_BUS_KEY_TEXT, "\n", 2);
    memcpy(key + BH_BUS_KEY_TEXT, "\n", 2);
    rc = bh_write_file(key_path, key, BH_BUS_KEY_TEXT + 1, 0600);
    explicit_bzero(key, sizeof(key));
    if (rc < 0)
        return bh_err_set(err, rc, "key \"%s\": %s", key_path, strerror(-rc));
    rc = bh_write_file(pub_path, pub, BH_BUS_KEY_TEXT + 1, 0644);
    return rc < 0 ? bh_err_set(err, rc, "key \"%s\": %s", pub_path, strerror(-rc)) : 0;
}
