/* SPDX-License-Identifier: Apache-2.0
 *
 * common/regex/regex_int.h - the program a pattern becomes
 */
#ifndef BH_REGEX_INT_H
#define BH_REGEX_INT_H

#include "common/regex/regex.h"

#define REGEX_RUNE_MAX 0x10ffffu

enum regex_op {
    RE_MATCH,
    RE_CLASS, /* one code point of the ranges */
    RE_ANY,
    RE_ANY_NOT_NL,
    RE_SPLIT, /* both ways, x before y */
    RE_JUMP,
    RE_BEGIN, /* of the text */
    RE_END,
    RE_LINE_BEGIN,
    RE_LINE_END,
    RE_WORD, /* at the edge of a word */
    RE_NOT_WORD,
};
struct regex_range {
    uint32_t lo, hi; /* inclusive */
};
struct regex_inst {
    uint32_t op;  /* enum regex_op */
    int32_t x, y; /* relative to this instruction */
    uint32_t n_ranges;
    const struct regex_range *range; /* sorted, apart from each other */
};
struct bh_regex {
    const struct regex_inst *inst;
    uint32_t n;
};
#endif
