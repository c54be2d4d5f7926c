#include "decoder.h"

#include "widths.h"

#ifdef HAS_WIDTHS
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "exponential.h"
#include "halves.h"

#define WIDEST 32 /* two vectors of the widest CPU: halves begin at multiples of it */

typedef struct {
    size_t first, last;           /* words */
    size_t first_block, n_blocks; /* of this half the first, and how many both have */
    size_t padded_bits;           /* to whole vectors */
    float *weights, *transposed, *bias, *codes, *with_one, *of_word; /* packed */
    float *highest;                                       /* of a document so far; below, what it sums up */
    float *of_targets, *by_codes;
    double *sums, *values, *totals;
} Half;

#define LOOPS "decoder_loops.h"
#include "each_width.h"

int can_decode(void)
{
    return has_avx512() || has_avx2();
}

static size_t up_to(size_t n, size_t multiple) { return (n + multiple - 1) / multiple * multiple; }

static size_t middle_of(size_t n_words)
{
    size_t middle = up_to((n_words + 1) / 2, WIDEST);
    return middle < n_words ? middle : n_words;
}

static size_t blocks(size_t n_words) { return (n_words + IN_BLOCK - 1) / IN_BLOCK; }

static size_t blocks_of_both(size_t n_words)
{
    return blocks(middle_of(n_words)) + blocks(n_words - middle_of(n_words));
}

static size_t padded_words(size_t n_words) { return up_to(n_words, WIDEST) + WIDEST; }

size_t kept_by_decoder(size_t n_documents, size_t n_words)
{
    return n_documents * (padded_words(n_words) + blocks_of_both(n_words) + 2);
}

void place_kept(Decoder *t, float *kept)
{
    t->exponentials = kept;
    t->highest = kept + t->n_documents * padded_words(t->n_words);
    t->shares = t->highest + t->n_documents * (blocks_of_both(t->n_words) + 1);
}

/* The arrays of a half lie in one piece of memory, one after the other: first this is called without any, to
 * know how much they need. */
static size_t place_half(Half *half, const Decoder *t, int number, char *memory)
{
    const size_t n = t->n_documents, m = t->n_bits, middle = middle_of(t->n_words);
    half->first = number ? middle : 0;
    half->last = number ? t->n_words : middle;
    half->first_block = number ? blocks(middle) : 0;
    half->n_blocks = blocks_of_both(t->n_words);
    half->padded_bits = up_to(m, WIDEST / 2);
    size_t used = 0;
    float **floats[] = {&half->weights, &half->transposed, &half->bias,    &half->codes,
                        &half->of_word, &half->of_targets, &half->by_codes, &half->highest, &half->with_one};
    const size_t in_block = up_to(IN_BLOCK, WIDEST), padded = half->padded_bits;
    const size_t sizes[] = {in_block * (m + 1), in_block * padded, in_block, n * (m + 1) + WIDEST, m + 1,
                            n * padded,         n * padded,        n,        n * (m + 1 + WIDEST)};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        *floats[i] = memory ? (float *)(memory + used) : NULL;
        used += up_to(sizes[i] * sizeof(float), ALIGNED);
    }
    double **doubles[] = {&half->sums, &half->values, &half->totals};
    for (size_t i = 0; i < 3; i++) {
        *doubles[i] = memory ? (double *)(memory + used) : NULL;
        used += up_to(n * sizeof(double), ALIGNED);
    }
    return used;
}

/* Where the work of both halves is done, or NULL if there is not enough memory. */
static char *with_halves(Decoder *t, Half halves[2])
{
    const size_t bytes = place_half(&halves[0], t, 0, NULL);
    char *memory = aligned_alloc(ALIGNED, 2 * bytes);
    for (int number = 0; memory && number < 2; number++) {
        Half *half = &halves[number];
        place_half(half, t, number, memory + (size_t)number * bytes);
        t->halves[number] = half;
        for (size_t document = 0; document < t->n_documents; document++) {
            half->highest[document] = -INFINITY;
            half->sums[document] = half->values[document] = half->totals[document] = 0;
        }
        memset(half->of_targets, 0, t->n_documents * half->padded_bits * sizeof(float));
        memset(half->by_codes, 0, t->n_documents * half->padded_bits * sizeof(float));
    }
    return memory;
}

/* What both halves found about a document, together */
static void unite(Decoder *t, size_t document)
{
    const Half *a = t->halves[0], *b = t->halves[1];
    const float of_a = a->highest[document], of_b = b->highest[document];
    const float highest = of_a > of_b ? of_a : of_b;
    const double by_a = exponential(of_a - highest), by_b = exponential(of_b - highest);
    const double sum = a->sums[document] * by_a + b->sums[document] * by_b;
    const double total = a->totals[document] + b->totals[document];
    t->values[document] = (float)(a->values[document] + b->values[document] - total * (highest + log(sum)));
    t->highest[a->n_blocks * t->n_documents + document] = highest;
    t->shares[document] = (float)(total / sum);
    for (size_t bit = 0; t->by_codes && bit < t->n_bits; bit++) {
        const size_t place = document * a->padded_bits + bit;
        const double asked = (double)a->of_targets[place] + b->of_targets[place];
        const double expected = a->by_codes[place] * by_a + b->by_codes[place] * by_b;
        t->by_codes[document * t->all_bits + bit] = (float)(asked - total / sum * expected);
    }
}

int decode_words(Decoder *t, int threads)
{
    Half halves[2];
    char *memory = with_halves(t, halves);
    if (memory == NULL)
        return 0;
    do_both(has_avx512() ? decode_half_avx512 : decode_half_avx2, t, threads);
    for (size_t document = 0; document < t->n_documents; document++)
        unite(t, document);
    free(memory);
    return 1;
}

int decode_words_backward(Decoder *t, int threads)
{
    Half halves[2];
    char *memory = with_halves(t, halves);
    if (memory == NULL)
        return 0;
    do_both(has_avx512() ? decode_half_backward_avx512 : decode_half_backward_avx2, t, threads);
    free(memory);
    return 1;
}

#else

int can_decode(void) { return 0; }
size_t kept_by_decoder(size_t n_documents, size_t n_words) { return n_documents * n_words; }
void place_kept(Decoder *decoder, float *kept) { decoder->exponentials = kept; }
int decode_words(Decoder *decoder, int threads) { return decoder != NULL && threads < 0; }
int decode_words_backward(Decoder *decoder, int threads) { return decoder != NULL && threads < 0; }

#endif
