/* SPDX-License-Identifier: Apache-2.0
 *
 * plugins/trimaran/beta.c - the regularised incomplete beta function
 *
 * Its continued fraction, evaluated by Lentz's method as Thompson and Barnett have it; the original
 * uses Cephes. They agree to about 1e-12.
 */
#define _DEFAULT_SOURCE
#include <float.h>
#include <math.h>

#include "trimaran.h"

#define TERMS_MAX 10000
#define TINY      1e-300

static double not_zero(double x)
{
    return fabs(x) < TINY ? TINY : x;
}

static double fraction(double x, double a, double b)
{
    double c = 1, d = 1 / not_zero(1 - (a + b) * x / (a + 1)), f = d;

    for (int m = 1; m <= TERMS_MAX; m++) {
        double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
        double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
        d = 1 / not_zero(1 + even * d);
        c = not_zero(1 + even / c);
        f *= c * d;
        d = 1 / not_zero(1 + odd * d);
        c = not_zero(1 + odd / c);
        f *= c * d;
        if (fabs(c * d - 1) < 4 * DBL_EPSILON)
            break;
    }
    return f;
}

double trimaran_beta(double x, double a, double b)
{
    int sign;

    if (!(a > 0) || !(b > 0) || !(x >= 0 && x <= 1))
        return NAN;
    if (x == 0 || x == 1)
        return x;
    double front = exp(lgamma_r(a + b, &sign) - lgamma_r(a, &sign) - lgamma_r(b, &sign) +
                       a * log(x) + b * log1p(-x));
    /* On one side of the mean the fraction converges fast, on the other its mirror image does. */
    return x < (a + 1) / (a + b + 2) ? front * fraction(x, a, b) / a
                                     : 1 - front * fraction(1 - x, b, a) / b;
}
