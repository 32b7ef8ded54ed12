/* SPDX-License-Identifier: Apache-2.0
 *
 * common/base/poison.h - memory that AddressSanitizer is told about by hand; without it nothing
 */
#ifndef BH_POISON_H
#define BH_POISON_H

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define BH_POISONS 1
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define BH_POISONS 1
#endif
#ifdef BH_POISONS
#include <sanitizer/asan_interface.h>
#else
#define BH_POISONS                        0
#define ASAN_POISON_MEMORY_REGION(p, n)   ((void)(p), (void)(n))
#define ASAN_UNPOISON_MEMORY_REGION(p, n) ((void)(p), (void)(n))
#endif

#endif
