#include "logits.h"

#include <math.h>
#include <string.h>

#include "each_cpu.h"
#include "exponential.h"

IN_LOOP float highest_with_bias(float *restrict x, const float *restrict bias, size_t n)
{
    float highest[LANES];
    for (size_t lane = 0; lane < LANES; lane++)
        highest[lane] = -INFINITY;
    size_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (size_t lane = 0; lane < LANES; lane++) {
            float y = x[i + lane] + bias[i + lane];
            x[i + lane] = y;
            highest[lane] = y > highest[lane] ? y : highest[lane];
        }
    for (; i < n; i++) {
        x[i] += bias[i];
        highest[0] = x[i] > highest[0] ? x[i] : highest[0];
    }
    for (size_t lane = 1; lane < LANES; lane++)
        highest[0] = highest[lane] > highest[0] ? highest[lane] : highest[0];
    return highest[0];
}

IN_LOOP double exponentials(float *restrict x, float highest, size_t n)
{
    float sums[LANES] = {0};
    double sum = 0;
    size_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (size_t lane = 0; lane < LANES; lane++) {
            float e = exponential(x[i + lane] - highest);
            x[i + lane] = e;
            sums[lane] += e;
        }
    for (; i < n; i++) {
        x[i] = exponential(x[i] - highest);
        sum += x[i];
    }
    for (size_t lane = 0; lane < LANES; lane++)
        sum += sums[lane];
    return sum;
}

FOR_EACH_CPU
void decode_documents(const void *given, int half)
{
    const Decoding *t = given;
    const size_t n = t->n_words, middle = t->n_documents / 2, last = half ? t->n_documents : middle;
    float *restrict by_bias = t->by_bias[half];
    memset(by_bias, 0, n * sizeof *by_bias);
    for (size_t document = half ? middle : 0; document < last; document++) {
        float *restrict x = t->logits + document * n;
        const int32_t first = t->ends[document], end = t->ends[document + 1];
        float highest = highest_with_bias(x, t->bias, n);
        double total = 0, value = 0;
        for (int32_t i = first; i < end; i++) {
            total += t->amounts[i];
            value += (double)t->amounts[i] * ((double)x[t->words[i]] - highest);
        }
        double sum = exponentials(x, highest, n);
        t->values[document] = (float)(value - total * log(sum));
        const float share = (float)(-total / sum);
        for (size_t w = 0; w < n; w++) {
            x[w] *= share;
            by_bias[w] += x[w];
        }
        for (int32_t i = first; i < end; i++) {
            x[t->words[i]] += t->amounts[i];
            by_bias[t->words[i]] += t->amounts[i];
        }
    }
}
