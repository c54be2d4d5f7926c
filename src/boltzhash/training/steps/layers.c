#include "layers.h"

#include <string.h>

#include "each_cpu.h"
#include "random.h"

static inline void half_of(const Dropping *t, int half, size_t *first, size_t *last)
{
    size_t middle = (t->n + 1) / 2;
    *first = half ? middle : 0;
    *last = half ? t->n : middle;
}

/* relu(x), scaled or dropped. Each number that is drawn has two chances of 16 bits. */
IN_LOOP void drop_some(const float *from, float *to, size_t n, int32_t threshold, float scale, Random *random)
{
    for (size_t i = 0; i < n; i += 32 * STREAMS) {
        uint32_t drawn[16 * STREAMS];
        int32_t chances[32 * STREAMS];
        for (size_t j = 0; j < 16; j++)
            draw(random, drawn + j * STREAMS);
        for (size_t j = 0; j < 16 * STREAMS; j++) {
            chances[j] = (int32_t)(drawn[j] & 0xffff);
            chances[16 * STREAMS + j] = (int32_t)(drawn[j] >> 16);
        }
        const float *restrict x = from + i;
        float *restrict out = to + i;
        const size_t count = n - i < 32 * STREAMS ? n - i : 32 * STREAMS;
        for (size_t j = 0; j < count; j++) {
            float positive = x[j] <= 0 ? 0.0f : x[j] * scale; /* what is not a number stays so, to be noticed */
            out[j] = chances[j] < threshold ? 0.0f : positive;
        }
    }
}

FOR_EACH_CPU
void drop(const void *given, int half)
{
    const Dropping *t = given;
    size_t first, last;
    half_of(t, half, &first, &last);
    Random random = random_of(t->seed, half);
    drop_some(t->x + first, t->out + first, last - first, t->threshold, t->scale, &random);
}

/* Where something came out, the derivative is the factor that scaled it. */
FOR_EACH_CPU
void drop_backward(const void *given, int half)
{
    const Dropping *t = given;
    const float *restrict came_out = t->x, *restrict gradient = t->gradient;
    float *restrict by_x = t->out;
    const float scale = t->scale;
    size_t first, last;
    half_of(t, half, &first, &last);
    for (size_t i = first; i < last; i++)
        by_x[i] = came_out[i] > 0 ? gradient[i] * scale : 0.0f;
}

/* The first layer: relu(x W + b) of sparse rows x, with dropout */

IN_LOOP void add_rows(const Reading *t, size_t document, float *restrict out)
{
    const size_t n = t->n_outputs;
    int32_t i = t->ends[document];
    const int32_t end = t->ends[document + 1];
    for (; i + 4 <= end; i += 4) {
        const float *restrict row[4], *amount = t->amounts + i;
        for (int j = 0; j < 4; j++)
            row[j] = t->weight + (size_t)t->words[i + j] * n;
        const float a = amount[0], b = amount[1], c = amount[2], d = amount[3];
        const float *restrict of_a = row[0], *restrict of_b = row[1], *restrict of_c = row[2], *restrict of_d = row[3];
        for (size_t o = 0; o < n; o++)
            out[o] += (a * of_a[o] + b * of_b[o]) + (c * of_c[o] + d * of_d[o]);
    }
    for (; i < end; i++) {
        const float *restrict row = t->weight + (size_t)t->words[i] * n;
        const float amount = t->amounts[i];
        for (size_t o = 0; o < n; o++)
            out[o] += amount * row[o];
    }
}

FOR_EACH_CPU
void read_words(const void *given, int half)
{
    const Reading *t = given;
    const size_t n = t->n_outputs, last = half ? t->n_documents : t->middle;
    Random random = random_of(t->seed, half);
    for (size_t document = half ? t->middle : 0; document < last; document++) {
        float *out = t->out + document * n;
        memcpy(out, t->bias, n * sizeof *out);
        add_rows(t, document, out);
        drop_some(out, out, n, t->threshold, t->scale, &random);
    }
}
