/* SPDX-License-Identifier: Apache-2.0
 *
 * front/tls_flags.h - --tls-min-version, --tls-cipher-suites, --tls-curve-preferences for GnuTLS
 *
 * Names are Go's. GnuTLS chooses by key exchange, cipher and MAC apart, so a list becomes the
 * suites that can be made of its parts. TLS 1.3 stays on when one of its ciphers is among them (Go
 * leaves it on always).
 * Upstream: component-base/cli/flag/ciphersuites_flag.go.
 */
#ifndef BH_FRONT_TLS_FLAGS_H
#define BH_FRONT_TLS_FLAGS_H

#include "common/base/buf.h"
#include "common/base/opt.h"

/* Appends GnuTLS's priorities. 0; -EINVAL with upstream's text; -ENOTSUP: a suite that GnuTLS has
 * not. */
int bh_tls_priorities(const char *min_version, const struct bh_opt_list *suites,
                      const struct bh_opt_list *curves, struct bh_buf *out, struct bh_err *err);
#endif
