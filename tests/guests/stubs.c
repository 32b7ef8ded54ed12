/* SPDX-License-Identifier: Apache-2.0
 *
 * A guest as SDKs make it that export every hook: one scores, the others have nothing in them.
 */
#include "plugins/wasm/guest.h"

#define STUB(hook)                                                                                 \
    GUEST_HOOK(hook, int32_t)                                                                      \
    {                                                                                              \
        return 0;                                                                                  \
    }

STUB(prefilter)
STUB(addpod)
STUB(removepod)
STUB(filter)
STUB(prescore)
STUB(normalizescore)
STUB(reserve)
STUB(prebind)
STUB(bind)

GUEST_HOOK(score, int64_t)
{
    char name[254];
    uint32_t n = guest_current_node_name(name, sizeof name);

    return guest_scored(n && name[n - 1] == 'b' ? 10 : 0, GUEST_SUCCESS);
}

GUEST_HOOK(permit, int64_t)
{
    return 0;
}

GUEST_HOOK(unreserve, void)
{
}

GUEST_HOOK(postbind, void)
{
}
