/* SPDX-License-Identifier: Apache-2.0
 *
 * common/wasm/trap.h - how a call of a guest can end
 *
 * Its text stands in the C of a compiled guest (emit.c), so it includes nothing.
 */
#ifndef BH_WASM_TRAP_H
#define BH_WASM_TRAP_H

enum bh_wasm_trap {
    BH_WASM_DONE,
    BH_WASM_UNREACHABLE,
    BH_WASM_BAD_MEMORY, /* an address outside of the memory, or of a segment */
    BH_WASM_BAD_TABLE,  /* an index outside of a table or of a segment, or nothing there */
    BH_WASM_BAD_CALL,   /* what is there has another type */
    BH_WASM_DIVIDE,
    BH_WASM_OVERFLOW,
    BH_WASM_CONVERT, /* not a number, and so no integer */
    BH_WASM_DEPTH,   /* limits.depth or .slots */
    BH_WASM_TIME,    /* limits.call_ns or .steps, or what is due */
    BH_WASM_HOST,    /* a host function said so */
    BH_WASM_TRAPS
};
#endif
