/* SPDX-License-Identifier: Apache-2.0
 *
 * common/wasm/operations.h - what operations on numbers and memory mean: one table for the
 * interpreter and for compiled guests
 *
 * Its text stands in the C of a compiled guest (emit.c), so it includes nothing of Berth's. A row is
 * made code by the macro that is given to its table; what traps says TRAP(kind), which is that
 * macro's to define.
 */
#ifndef BH_WASM_OPERATIONS_H
#define BH_WASM_OPERATIONS_H

#include <math.h>
#include <stdint.h>
#include <string.h>

static inline float as_f32(uint64_t v)
{
    uint32_t u = (uint32_t)v;
    float f;

    memcpy(&f, &u, sizeof f);
    return f;
}
static inline double as_f64(uint64_t v)
{
    double f;

    memcpy(&f, &v, sizeof f);
    return f;
}
static inline uint64_t of_f32(float f)
{
    uint32_t u;

    memcpy(&u, &f, sizeof u);
    return u;
}
static inline uint64_t of_f64(double f)
{
    uint64_t u;

    memcpy(&u, &f, sizeof u);
    return u;
}

/* A NaN among the operands is the result, made quiet by the addition; -0 is less than 0. */
#define MIN_MAX(T, name)                                                                           \
    static inline T min_##name(T a, T b)                                                           \
    {                                                                                              \
        if (a != a || b != b)                                                                      \
            return a + b;                                                                          \
        return a < b || (a == b && signbit(a)) ? a : b;                                            \
    }                                                                                              \
    static inline T max_##name(T a, T b)                                                           \
    {                                                                                              \
        if (a != a || b != b)                                                                      \
            return a + b;                                                                          \
        return a > b || (a == b && !signbit(a)) ? a : b;                                           \
    }
MIN_MAX(float, f32)
MIN_MAX(double, f64)

/* clang-format off */
/* Comparisons of integers: opcode, type, whether a and b fulfil it. */
#define COMPARISONS(X)                                                                             \
    X(0x46, uint32_t, a == b) X(0x47, uint32_t, a != b)                                            \
    X(0x48, int32_t, a < b)   X(0x49, uint32_t, a < b)                                             \
    X(0x4a, int32_t, a > b)   X(0x4b, uint32_t, a > b)                                             \
    X(0x4c, int32_t, a <= b)  X(0x4d, uint32_t, a <= b)                                            \
    X(0x4e, int32_t, a >= b)  X(0x4f, uint32_t, a >= b)                                            \
    X(0x51, uint64_t, a == b) X(0x52, uint64_t, a != b)                                            \
    X(0x53, int64_t, a < b)   X(0x54, uint64_t, a < b)                                             \
    X(0x55, int64_t, a > b)   X(0x56, uint64_t, a > b)                                             \
    X(0x57, int64_t, a <= b)  X(0x58, uint64_t, a <= b)                                            \
    X(0x59, int64_t, a >= b)  X(0x5a, uint64_t, a >= b)
/* Arithmetic of integers: opcode, type, its unsigned type, what traps, the result. */
#define TRAP_IF(cond, trap) if (__builtin_expect(!!(cond), 0)) TRAP(trap)
#define INTEGERS(X)                                                                                \
    X(0x6a, uint32_t, uint32_t, , a + b)                                                           \
    X(0x6b, uint32_t, uint32_t, , a - b)                                                           \
    X(0x6c, uint32_t, uint32_t, , a * b)                                                           \
    X(0x6d, int32_t, uint32_t, TRAP_IF(!b, BH_WASM_DIVIDE);                                        \
                               TRAP_IF(a == INT32_MIN && b == -1, BH_WASM_OVERFLOW), a / b)        \
    X(0x6e, uint32_t, uint32_t, TRAP_IF(!b, BH_WASM_DIVIDE), a / b)                                \
    X(0x6f, int32_t, uint32_t, TRAP_IF(!b, BH_WASM_DIVIDE), b == -1 ? 0 : a % b)                   \
    X(0x70, uint32_t, uint32_t, TRAP_IF(!b, BH_WASM_DIVIDE), a % b)                                \
    X(0x71, uint32_t, uint32_t, , a & b)                                                           \
    X(0x72, uint32_t, uint32_t, , a | b)                                                           \
    X(0x73, uint32_t, uint32_t, , a ^ b)                                                           \
    X(0x74, uint32_t, uint32_t, , a << (b & 31))                                                   \
    X(0x75, int32_t, uint32_t, , a >> (b & 31))                                                    \
    X(0x76, uint32_t, uint32_t, , a >> (b & 31))                                                   \
    X(0x77, uint32_t, uint32_t, , a << (b & 31) | a >> (-b & 31))                                  \
    X(0x78, uint32_t, uint32_t, , a >> (b & 31) | a << (-b & 31))                                  \
    X(0x7c, uint64_t, uint64_t, , a + b)                                                           \
    X(0x7d, uint64_t, uint64_t, , a - b)                                                           \
    X(0x7e, uint64_t, uint64_t, , a * b)                                                           \
    X(0x7f, int64_t, uint64_t, TRAP_IF(!b, BH_WASM_DIVIDE);                                        \
                               TRAP_IF(a == INT64_MIN && b == -1, BH_WASM_OVERFLOW), a / b)        \
    X(0x80, uint64_t, uint64_t, TRAP_IF(!b, BH_WASM_DIVIDE), a / b)                                \
    X(0x81, int64_t, uint64_t, TRAP_IF(!b, BH_WASM_DIVIDE), b == -1 ? 0 : a % b)                   \
    X(0x82, uint64_t, uint64_t, TRAP_IF(!b, BH_WASM_DIVIDE), a % b)                                \
    X(0x83, uint64_t, uint64_t, , a & b)                                                           \
    X(0x84, uint64_t, uint64_t, , a | b)                                                           \
    X(0x85, uint64_t, uint64_t, , a ^ b)                                                           \
    X(0x86, uint64_t, uint64_t, , a << (b & 63))                                                   \
    X(0x87, int64_t, uint64_t, , a >> (b & 63))                                                    \
    X(0x88, uint64_t, uint64_t, , a >> (b & 63))                                                   \
    X(0x89, uint64_t, uint64_t, , a << (b & 63) | a >> (-b & 63))                                  \
    X(0x8a, uint64_t, uint64_t, , a >> (b & 63) | a << (-b & 63))
/* Two floats: opcode, how they are read, how the result is written, the result. */
#define FLOATS(X)                                                                                  \
    X(0x5b, as_f32, (uint64_t), a == b) X(0x5c, as_f32, (uint64_t), a != b)                        \
    X(0x5d, as_f32, (uint64_t), a < b)  X(0x5e, as_f32, (uint64_t), a > b)                         \
    X(0x5f, as_f32, (uint64_t), a <= b) X(0x60, as_f32, (uint64_t), a >= b)                        \
    X(0x61, as_f64, (uint64_t), a == b) X(0x62, as_f64, (uint64_t), a != b)                        \
    X(0x63, as_f64, (uint64_t), a < b)  X(0x64, as_f64, (uint64_t), a > b)                         \
    X(0x65, as_f64, (uint64_t), a <= b) X(0x66, as_f64, (uint64_t), a >= b)                        \
    X(0x92, as_f32, of_f32, a + b)      X(0x93, as_f32, of_f32, a - b)                             \
    X(0x94, as_f32, of_f32, a * b)      X(0x95, as_f32, of_f32, a / b)                             \
    X(0x96, as_f32, of_f32, min_f32(a, b)) X(0x97, as_f32, of_f32, max_f32(a, b))                  \
    X(0xa0, as_f64, of_f64, a + b)      X(0xa1, as_f64, of_f64, a - b)                             \
    X(0xa2, as_f64, of_f64, a * b)      X(0xa3, as_f64, of_f64, a / b)                             \
    X(0xa4, as_f64, of_f64, min_f64(a, b)) X(0xa5, as_f64, of_f64, max_f64(a, b))                  \
    X(0x98, (uint32_t), (uint64_t), (a & 0x7fffffffu) | (b & 0x80000000u))                         \
    X(0xa6, (uint64_t), (uint64_t), (a & INT64_MAX) | (b & (uint64_t)INT64_MIN))
/* One operand: opcode, how it is read, the slot that results. Signs of floats are bits: a NaN
 * keeps its other ones; rounding makes it quiet. */
#define UNARY(X)                                                                                   \
    X(0x45, (uint32_t), !a)                                                                        \
    X(0x50, (uint64_t), !a)                                                                        \
    X(0x67, (uint32_t), a ? (uint64_t)__builtin_clz(a) : 32)                                       \
    X(0x68, (uint32_t), a ? (uint64_t)__builtin_ctz(a) : 32)                                       \
    X(0x69, (uint32_t), (uint64_t)__builtin_popcount(a))                                           \
    X(0x79, (uint64_t), a ? (uint64_t)__builtin_clzll(a) : 64)                                     \
    X(0x7a, (uint64_t), a ? (uint64_t)__builtin_ctzll(a) : 64)                                     \
    X(0x7b, (uint64_t), (uint64_t)__builtin_popcountll(a))                                         \
    X(0x8b, (uint32_t), a & 0x7fffffffu)                                                           \
    X(0x8c, (uint32_t), a ^ 0x80000000u)                                                           \
    X(0x8d, as_f32, of_f32(a == a ? ceilf(a) : a + a))                                                              \
    X(0x8e, as_f32, of_f32(a == a ? floorf(a) : a + a))                                                             \
    X(0x8f, as_f32, of_f32(a == a ? truncf(a) : a + a))                                                             \
    X(0x90, as_f32, of_f32(a == a ? rintf(a) : a + a))                                                              \
    X(0x91, as_f32, of_f32(sqrtf(a)))                                                              \
    X(0x99, (uint64_t), a & INT64_MAX)                                                             \
    X(0x9a, (uint64_t), a ^ (uint64_t)INT64_MIN)                                                   \
    X(0x9b, as_f64, of_f64(a == a ? ceil(a) : a + a))                                                               \
    X(0x9c, as_f64, of_f64(a == a ? floor(a) : a + a))                                                              \
    X(0x9d, as_f64, of_f64(a == a ? trunc(a) : a + a))                                                              \
    X(0x9e, as_f64, of_f64(a == a ? rint(a) : a + a))                                                               \
    X(0x9f, as_f64, of_f64(sqrt(a)))                                                               \
    X(0xa7, (uint32_t), a)                                                                         \
    X(0xac, (int32_t), (uint64_t)(int64_t)a)                                                       \
    X(0xb2, (int32_t), of_f32((float)a))                                                           \
    X(0xb3, (uint32_t), of_f32((float)a))                                                          \
    X(0xb4, (int64_t), of_f32((float)a))                                                           \
    X(0xb5, (uint64_t), of_f32((float)a))                                                          \
    X(0xb6, as_f64, of_f32((float)a))                                                              \
    X(0xb7, (int32_t), of_f64((double)a))                                                          \
    X(0xb8, (uint32_t), of_f64((double)a))                                                         \
    X(0xb9, (int64_t), of_f64((double)a))                                                          \
    X(0xba, (uint64_t), of_f64((double)a))                                                         \
    X(0xbb, as_f32, of_f64((double)a))                                                             \
    X(0xc0, (int8_t), (uint64_t)(uint32_t)a)                                                       \
    X(0xc1, (int16_t), (uint64_t)(uint32_t)a)                                                      \
    X(0xc2, (int8_t), (uint64_t)(int64_t)a)                                                        \
    X(0xc3, (int16_t), (uint64_t)(int64_t)a)                                                       \
    X(0xc4, (int32_t), (uint64_t)(int64_t)a)
/* Floats to integers: opcode that traps, the one that saturates, how the float is read, the integer,
 * above and below what the float has to be, the integers for less and for more. */
#define TRUNCATIONS(X)                                                                             \
    X(0xa8, 0xc8, as_f32, int32_t, a >= -0x1p31f, a < 0x1p31f, (uint32_t)INT32_MIN, INT32_MAX)     \
    X(0xa9, 0xc9, as_f32, uint32_t, a > -1.0f, a < 0x1p32f, 0, UINT32_MAX)                         \
    X(0xaa, 0xca, as_f64, int32_t, a > -0x1.00000002p31, a < 0x1p31, (uint32_t)INT32_MIN, INT32_MAX) \
    X(0xab, 0xcb, as_f64, uint32_t, a > -1.0, a < 0x1p32, 0, UINT32_MAX)                           \
    X(0xae, 0xcc, as_f32, int64_t, a >= -0x1p63f, a < 0x1p63f, (uint64_t)INT64_MIN, INT64_MAX)     \
    X(0xaf, 0xcd, as_f32, uint64_t, a > -1.0f, a < 0x1p64f, 0, UINT64_MAX)                         \
    X(0xb0, 0xce, as_f64, int64_t, a >= -0x1p63, a < 0x1p63, (uint64_t)INT64_MIN, INT64_MAX)       \
    X(0xb1, 0xcf, as_f64, uint64_t, a > -1.0, a < 0x1p64, 0, UINT64_MAX)
/* Loads: opcode, what lies in memory, how wide the value is. */
#define LOADS(X)                                                                                   \
    X(0x28, uint32_t, uint32_t) X(0x29, uint64_t, uint64_t)                                        \
    X(0x2a, uint32_t, uint32_t) X(0x2b, uint64_t, uint64_t)                                        \
    X(0x2c, int8_t, uint32_t)   X(0x2d, uint8_t, uint32_t)                                         \
    X(0x2e, int16_t, uint32_t)  X(0x2f, uint16_t, uint32_t)                                        \
    X(0x30, int8_t, uint64_t)   X(0x31, uint8_t, uint64_t)                                         \
    X(0x32, int16_t, uint64_t)  X(0x33, uint16_t, uint64_t)                                        \
    X(0x34, int32_t, uint64_t)  X(0x35, uint32_t, uint64_t)
#define STORES(X)                                                                                  \
    X(0x36, uint32_t) X(0x37, uint64_t) X(0x38, uint32_t) X(0x39, uint64_t)                        \
    X(0x3a, uint8_t) X(0x3b, uint16_t) X(0x3c, uint8_t) X(0x3d, uint16_t) X(0x3e, uint32_t)
#define SLOT_OF(T, v) (sizeof(T) == 4 ? (uint64_t)(uint32_t)(v) : (uint64_t)(v))
/* clang-format on */
#endif
