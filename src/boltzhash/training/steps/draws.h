/* Arrays of random numbers. */

#ifndef DRAWS_H
#define DRAWS_H

#include <stddef.h>
#include <stdint.h>

typedef struct {
    float *out;
    size_t n;
    uint64_t seed;
    int are_normal;
} Drawing;

void draw_numbers(const void *task, int half);

#endif
