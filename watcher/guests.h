/* SPDX-License-Identifier: Apache-2.0
 *
 * watcher/guests.h - WebAssembly guests that the configuration has a URL for, downloaded
 *
 * The scheduler has no network. So the process that has one reads the configuration's file for
 * args.guestURL of http:// and https:// with their guestDigest, and puts what they name into the
 * store of the runtime directory (common/wasm/store.h). The file is looked at every second: another
 * one is taken up without being told. What fails is told, and tried again with a growing pause.
 *
 * Owns:    the store's files; the list.
 * Errors:  a configuration that cannot be read has none; the scheduler says what is wrong with it.
 * Runs in: the loop's thread, downloads in a thread of libuv's pool, one at a time.
 */
#ifndef BH_WATCHER_GUESTS_H
#define BH_WATCHER_GUESTS_H

#include <uv.h>

struct bh_guests;
/* config: path of the file, "" or NULL: none, and NULL is returned. */
struct bh_guests *bh_guests_new(uv_loop_t *loop, const char *config, const char *runtime_dir);
/* Asynchronous: drain the loop. NULL allowed. */
void bh_guests_free(struct bh_guests *g);
#endif
