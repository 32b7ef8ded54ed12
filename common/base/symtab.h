/* SPDX-License-Identifier: Apache-2.0
 *
 * common/base/symtab.h - strings interned to 32-bit symbols, private to one process
 *
 * Symbol 0 is the empty string. Symbols are never removed; the text of a symbol never moves.
 * Equal text <=> equal symbol, so matching compares integers. The snapshot has its own table in
 * shared memory (common/snapshot); a reader maps its symbols to these (record.h, bh_rec_remap).
 * Threads: none; one owner.
 */
#ifndef BH_SYMTAB_H
#define BH_SYMTAB_H

#include "common/base/base.h"

typedef uint32_t bh_sym;
#define BH_SYM_NONE ((bh_sym)0)

struct bh_symtab;
struct bh_symtab *bh_symtab_new(void);
void bh_symtab_free(struct bh_symtab *t);
bh_sym bh_sym_intern(struct bh_symtab *t, const char *s, size_t n);
bh_sym bh_sym_internc(struct bh_symtab *t, const char *s); /* NULL -> BH_SYM_NONE */
/* BH_SYM_NONE when the text was never interned (and for ""). */
bh_sym bh_sym_find(const struct bh_symtab *t, const char *s, size_t n);
const char *bh_sym_text(const struct bh_symtab *t, bh_sym s); /* NUL-terminated, never NULL */
struct bh_str bh_sym_str(const struct bh_symtab *t, bh_sym s);
uint32_t bh_symtab_count(const struct bh_symtab *t); /* symbols are 0 .. count-1 */
#endif
