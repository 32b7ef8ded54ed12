/* SPDX-License-Identifier: Apache-2.0
 *
 * common/wasm/store.h - guests that were downloaded, by their digest
 *
 * berth-watcher has a network and puts them there, berth-scheduler has none and takes them out; both
 * look at the digest, so a file that is there is the one that was wanted, or is refused. A folder in
 * the watcher's own directory (common/base/trusted_file.h): HEX.wasm; HEX.error has the reason why
 * there is none.
 *
 * Owns:    nothing.
 * Errors:  negative errno, with a text that names digest found and wanted.
 * Threads: any; files come and go as a whole.
 */
#ifndef BH_WASM_STORE_H
#define BH_WASM_STORE_H

#include "common/base/trusted_file.h"

#define BH_WASM_STORE BH_WATCHER_DIR "/guests" /* in the runtime directory */

void bh_wasm_digest(const void *p, size_t n, char out[static 65]);
/* "sha256:" and 64 hexadecimal digits, as lower case digits in out. -EINVAL: it is something else. */
int bh_wasm_digest_read(const char *text, char out[static 65]);
/* -EBADMSG: "its digest is sha256:..., wanted is sha256:...". */
int bh_wasm_digest_check(const void *p, size_t n, const char *sha256, struct bh_err *err);

/* dir: the store's. Checked; makes the folder. */
int bh_wasm_store_put(const char *dir, const char *sha256, const void *p, size_t n,
                      struct bh_err *err);
/* Why it could not be had; replaced by the next put. Best effort. */
void bh_wasm_store_fail(const char *dir, const char *sha256, const char *why);
/* Checked; the caller frees *ret. -ENOENT: it is not there. */
int bh_wasm_store_get(const char *dir, const char *sha256, char **ret, size_t *ret_n,
                      struct bh_err *err);
/* Why it is not there, said after since_s (seconds of the file system's clock); NULL: nothing was.
 * The caller frees it. */
char *bh_wasm_store_failure(const char *dir, const char *sha256, int64_t since_s);
/* Removes what is not wanted. */
void bh_wasm_store_keep(const char *dir, bool (*wanted)(void *arg, const char *sha256), void *arg);
#endif
