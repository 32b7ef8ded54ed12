/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/plugins/podtopologyspread/go_log.c - the natural logarithm, bit for bit as Go on amd64
 *
 * The order of the operations is the contract; the build keeps them apart (no contraction).
 *
 * Upstream: Go, src/math/log.go (FreeBSD's e_log.c).
 */
#include <math.h>

#include "scheduler/plugins/podtopologyspread/spread.h"

double bh_go_log(double x)
{
    const double ln2_hi = 6.93147180369123816490e-01, ln2_lo = 1.90821492927058770002e-10;
    const double l1 = 6.666666666666735130e-01, l2 = 3.999999999940941908e-01,
                 l3 = 2.857142874366239149e-01, l4 = 2.222219843214978396e-01,
                 l5 = 1.818357216161805012e-01, l6 = 1.531383769920937332e-01,
                 l7 = 1.479819860511658591e-01;
    int exponent;
    double f1 = frexp(x, &exponent);

    if (f1 < M_SQRT1_2) {
        f1 *= 2;
        exponent--;
    }
    double f = f1 - 1, k = exponent;
    double s = f / (2 + f), s2 = s * s, s4 = s2 * s2;
    double t1 = s2 * (l1 + s4 * (l3 + s4 * (l5 + s4 * l7)));
    double t2 = s4 * (l2 + s4 * (l4 + s4 * l6));
    double r = t1 + t2, h = 0.5 * f * f;
    return k * ln2_hi - ((h - (s * (h + r) + k * ln2_lo)) - f);
}
