/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/common/api/test_client_lean.c - what a client promises holds over lanes, too
 *
 * Streams go by libcurl in both; every other request of these tests goes over lanes here.
 */
#define TEST_LEAN true
#include "tests/unit/common/api/test_client.c"
