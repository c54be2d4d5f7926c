#include "adam.h"

#include <math.h>
#include <string.h>

#include "each_cpu.h"

/* Kingma and Ba (2015), algorithm 1, of some weights */
IN_LOOP void update(float *restrict weight, const float *restrict gradient, float *restrict mean,
                          float *restrict square, size_t n, const Adam *adam)
{
    const Adam a = *adam;
    for (size_t i = 0; i < n; i++) {
        float g = gradient[i], m = mean[i] + a.rest1 * (g - mean[i]);
        float v = a.beta2 * square[i] + a.rest2 * g * g;
        mean[i] = m;
        square[i] = v;
        weight[i] -= a.rate * m / (sqrtf(v) * a.root + a.epsilon);
    }
}

FOR_EACH_CPU
void update_dense(const void *given, int half)
{
    const Dense *t = given;
    size_t middle = t->n / 2 / LANES * LANES;
    size_t first = half ? middle : 0, n = half ? t->n - middle : middle;
    update(t->weight + first, t->gradient + first, t->mean + first, t->square + first, n, &t->adam);
}

IN_LOOP void gradient_of(const Words *t, size_t word, float *restrict gradient)
{
    const size_t n = t->n_outputs;
    memset(gradient, 0, n * sizeof *gradient);
    int32_t i = t->ends[word];
    const int32_t end = t->ends[word + 1];
    for (; i + 2 <= end; i += 2) {
        const float *restrict a = t->by_output + (size_t)t->documents[i] * n;
        const float *restrict b = t->by_output + (size_t)t->documents[i + 1] * n;
        const float of_a = t->amounts[i], of_b = t->amounts[i + 1];
        for (size_t o = 0; o < n; o++)
            gradient[o] += of_a * a[o] + of_b * b[o];
    }
    if (i < end) {
        const float *restrict a = t->by_output + (size_t)t->documents[i] * n;
        const float of_a = t->amounts[i];
        for (size_t o = 0; o < n; o++)
            gradient[o] += of_a * a[o];
    }
}

FOR_EACH_CPU
void update_words(const void *given, int half)
{
    const Words *t = given;
    const size_t n = t->n_outputs, last = half ? t->n_words : t->middle;
    float *gradient = t->gradients[half];
    for (size_t word = half ? t->middle : 0; word < last; word += AT_ONCE) {
        size_t count = last - word < AT_ONCE ? last - word : AT_ONCE, place = word * n;
        for (size_t i = 0; i < count; i++)
            gradient_of(t, word + i, gradient + i * n);
        update(t->weight + place, gradient, t->mean + place, t->square + place, count * n, &t->adam);
    }
}
