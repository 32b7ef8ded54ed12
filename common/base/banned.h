/* SPDX-License-Identifier: Apache-2.0
 *
 * common/base/banned.h - library functions that have no safe use here
 *
 * Each name becomes a compile error. Use instead: bh_buf / snprintf for strings, strtol-family via
 * the parsers of common/k8s for numbers, *_r variants for time, bh_rand for randomness.
 *
 * The headers that declare these names come first: a later #include of them is then empty, so
 * system headers may stand before or after base.h.
 */
#ifndef BH_BANNED_H
#define BH_BANNED_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BH_BANNED(f) sorry_##f##_is_a_banned_function
#undef strcpy
#define strcpy(d, s) BH_BANNED(strcpy)
#undef strcat
#define strcat(d, s) BH_BANNED(strcat)
#undef strncpy
#define strncpy(d, s, n) BH_BANNED(strncpy)
#undef sprintf
#define sprintf(...) BH_BANNED(sprintf)
#undef vsprintf
#define vsprintf(...) BH_BANNED(vsprintf)
#undef strtok
#define strtok(s, d) BH_BANNED(strtok)
#undef atoi
#define atoi(s) BH_BANNED(atoi)
#undef gmtime
#define gmtime(t) BH_BANNED(gmtime)
#undef localtime
#define localtime(t) BH_BANNED(localtime)
#undef rand
#define rand() BH_BANNED(rand)
#endif
