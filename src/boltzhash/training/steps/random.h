/* Random numbers, many at a time: PyTorch's generator makes one after the other.
 *
 * Each half of the numbers has streams of its own, whose states stand side by side: what is drawn depends on the
 * seed alone, not on threads or on how wide vectors are. xoshiro128++ of Blackman and Vigna (2021), states from
 * Steele, Lea and Flood's SplitMix64 (2014), as they advise. */

#ifndef RANDOM_H
#define RANDOM_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>

#define STREAMS 16

typedef struct {
    uint32_t state[4][STREAMS];
} Random;

static inline uint64_t split_mix(uint64_t *state)
{
    uint64_t x = *state += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

static inline Random random_of(uint64_t seed, int half)
{
    Random random = {{{0}}};
    uint64_t state = seed;
    for (int i = 0; i <= half; i++) /* those of the second half come after those of the first */
        for (int stream = 0; stream < STREAMS; stream++)
            for (int part = 0; part < 4; part += 2) {
                const uint64_t drawn = split_mix(&state);
                random.state[part][stream] = (uint32_t)drawn;
                random.state[part + 1][stream] = (uint32_t)(drawn >> 32);
            }
    return random;
}

static inline uint32_t rotated(uint32_t x, int by) { return x << by | x >> (32 - by); }

/* The next number of each stream */
static inline void draw(Random *random, uint32_t *restrict out)
{
    for (int i = 0; i < STREAMS; i++) {
        uint32_t a = random->state[0][i], b = random->state[1][i], c = random->state[2][i],
                 d = random->state[3][i];
        out[i] = rotated(a + d, 7) + a;
        const uint32_t t = b << 9;
        c ^= a;
        d ^= b;
        b ^= c;
        a ^= d;
        c ^= t;
        random->state[0][i] = a;
        random->state[1][i] = b;
        random->state[2][i] = c;
        random->state[3][i] = rotated(d, 11);
    }
}

/* From 0 to 1, without 1 */
static inline float uniform_of(uint32_t bits) { return (float)(int32_t)(bits >> 8) * 0x1p-24f; }

/* log x of 2^-33 <= x <= 1: the polynomial of Cephes' logf */
static inline float logarithm(float x)
{
    union {
        float number;
        uint32_t bits;
    } f = {x};
    const uint32_t from_root = f.bits - 0x3f3504f3u; /* of sqrt(1/2), from which mantissas are counted */
    const float exponent = (float)((int32_t)from_root >> 23);
    f.bits = (from_root & 0x7fffffu) + 0x3f3504f3u;
    const float y = f.number - 1.0f, square = y * y;
    float p = 7.0376836292e-2f;
    p = p * y - 1.1514610310e-1f;
    p = p * y + 1.1676998740e-1f;
    p = p * y - 1.2420140846e-1f;
    p = p * y + 1.4249322787e-1f;
    p = p * y - 1.6668057665e-1f;
    p = p * y + 2.0000714765e-1f;
    p = p * y - 2.4999993993e-1f;
    p = p * y + 3.3333331174e-1f;
    return exponent * 0.693147181f + (y - 0.5f * square + p * y * square);
}

/* Two independent numbers of N(0, 1) from two of 32 bits (Box and Muller, 1958). The angle's first two bits,
 * rounded, are its quarter; the rest is at most an eighth of a turn, where short polynomials do. */
static inline void normals_of(uint32_t radius, uint32_t turn, float *one, float *other)
{
    const float u = ((float)(int32_t)(radius >> 1) + 0.5f) * 0x1p-31f;
    const float length = sqrtf(-2.0f * logarithm(u));
    const uint32_t quarter = (turn + 0x20000000u) >> 30;
    const float angle = (float)(int32_t)(turn - (quarter << 30)) * (1.57079633f * 0x1p-30f), z = angle * angle;
    const float sine = angle + angle * z * (-1.6666654611e-1f + z * (8.3321608736e-3f - z * 1.9515295891e-4f));
    const float cosine =
        1.0f - 0.5f * z + z * z * (4.166664568298827e-2f + z * (-1.388731625493765e-3f + z * 2.443315711809948e-5f));
    const float x = quarter & 1 ? sine : cosine, y = quarter & 1 ? cosine : sine;
    *one = (quarter + 1) & 2 ? -length * x : length * x;
    *other = quarter & 2 ? -length * y : length * y;
}

#endif
