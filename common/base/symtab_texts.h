/* SPDX-License-Identifier: Apache-2.0
 *
 * common/base/symtab_texts.h - where a symbol's text stands, for who looks up very many
 *
 * Owns: nothing: it is part of the table, as current and as long-lived as that.
 */
#ifndef BH_SYMTAB_TEXTS_H
#define BH_SYMTAB_TEXTS_H

#include "common/base/symtab.h"

struct bh_sym_texts {
    struct bh_str *of; /* by symbol; moves when symbols are added */
    uint32_t n;        /* as bh_symtab_count() */
};
const struct bh_sym_texts *bh_symtab_texts(const struct bh_symtab *t);
#endif
