/* SPDX-License-Identifier: Apache-2.0
 *
 * common/base/pages.h - memory of large arrays that are read and written here and there
 *
 * Where a hundred arrays of a megabyte are touched at one place each, most of the cost is finding
 * the pages. So blocks of BH_PAGES_MIN and more stand in areas that begin at a large page and for
 * which the kernel is asked to use large pages (it need not); several smaller ones share one.
 * Smaller blocks come from the heap, on a cache line's boundary. Large pages are asked for once a
 * process has BH_PAGES_FEW: a small process pays for what it touches only.
 *
 * Owns:       areas of BH_PAGES_LARGE; one without blocks is returned at once.
 * Memory:     a block of BH_PAGES_MIN and more takes a multiple of BH_PAGES_UNIT.
 * Errors:     none; out of memory aborts, as in base.h. Counts as an allocation (bh_allocations).
 * Threads:    any, as malloc.
 */
#ifndef BH_PAGES_H
#define BH_PAGES_H

#include "common/base/base.h"

#define BH_PAGES_LARGE ((size_t)2 << 20)
#define BH_PAGES_UNIT  ((size_t)64 << 10)
#define BH_PAGES_MIN   ((size_t)128 << 10)
#define BH_PAGES_FEW   ((size_t)32 << 20)

void *bh_pages_new(size_t n);          /* all zero, on a 64 byte boundary */
void bh_pages_free(void *p, size_t n); /* n as asked for; NULL allowed */
/* n bytes more or less of the same contents; what is added is zero. NULL with old 0 allowed. */
void *bh_pages_resize(void *p, size_t old, size_t n);
#endif
