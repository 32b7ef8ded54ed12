/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/console/transfer.h - the document that is exported and imported
 */
#ifndef BH_CONSOLE_TRANSFER_H
#define BH_CONSOLE_TRANSFER_H

#include "simulator/console/console.h"

/* Its lists; the last entry has no name and stands for "others" (whole objects of any kind). */
struct bh_console_list {
    const char *name, *api_version, *kind;
};
#define BH_CONSOLE_LISTS 8
extern const struct bh_console_list bh_console_lists[BH_CONSOLE_LISTS];
#endif
