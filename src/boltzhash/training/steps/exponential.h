#ifndef EXPONENTIAL_H
#define EXPONENTIAL_H

#include <stdint.h>

typedef union {
    float number;
    uint32_t bits;
} Float;

/* e^x for x <= 0, to 2 units of the last place: Cody and Waite's reduction, a polynomial of degree 6 */
static inline float exponential(float x)
{
    const float shift = 12582912.0f; /* 1.5 * 2^23: what is added to it is rounded to an integer */
    x = x < -87.0f ? -87.0f : x;
    Float scale = {x * 1.44269504f + shift};
    float n = scale.number - shift;
    float r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * r * r + r + 1.0f;
    scale.bits = (scale.bits + 127u) << 23;
    return p * scale.number;
}

#endif
