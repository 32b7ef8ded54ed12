/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/common/api/test_tls_lean.c - trust, rotation and HTTP/2 hold over lanes, too
 */
#define TEST_LEAN true
#include "tests/unit/common/api/test_tls.c"
