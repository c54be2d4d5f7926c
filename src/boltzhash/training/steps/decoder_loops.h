/* The loops of the decoder, for each width. */

#include "tile.h"

/* by_codes += exponentials Eᵀ, of some documents and the words of a block; E transposed, `vectors` of its columns */
CPU static void NAME(add_by_codes)(int rows, int vectors, const float *exponentials, size_t n_documents,
                                   const float *transposed, size_t n_panels, float *out, size_t out_row)
{
#define CASE(n)                                                                                     \
    case n:                                                                                         \
        if (vectors == 2)                                                                           \
            NAME(product)(n, 2, exponentials, WIDE, 1, n_documents * WIDE, transposed, WIDE,        \
                          n_panels, out, out_row, out, out_row);                                    \
        else                                                                                        \
            NAME(product)(n, 1, exponentials, WIDE, 1, n_documents * WIDE, transposed, WIDE,        \
                          n_panels, out, out_row, out, out_row);                                    \
        break;
    switch (rows) {
        EACH_NUMBER_OF_ROWS(CASE)
    }
#undef CASE
}

/* The highest of a document's logits and of what was so before; `far` are the next of its words. */
INLINE float NAME(highest_of)(const float *restrict x, size_t n_panels, size_t far, float before)
{
    float most[LANES];
    for (int lane = 0; lane < LANES; lane++)
        most[lane] = before;
    for (size_t panel = 0; panel < n_panels; panel++, x += far)
        for (int part = 0; part < WIDE; part += LANES)
            for (int lane = 0; lane < LANES; lane++)
                most[lane] = x[part + lane] > most[lane] ? x[part + lane] : most[lane];
#pragma GCC unroll 4
    for (int apart = LANES / 2; apart >= 8; apart /= 2)
        for (int lane = 0; lane < apart; lane++)
            most[lane] = most[lane] > most[lane + apart] ? most[lane] : most[lane + apart];
    for (int lane = 1; lane < 8; lane++)
        most[0] = most[lane] > most[0] ? most[lane] : most[0];
    return most[0];
}

/* x becomes e^(x - highest); their sums are added */
INLINE void NAME(exponentials)(float *restrict x, float highest, float *restrict sums)
{
    for (int lane = 0; lane < LANES; lane++) {
        float a = exponential(x[lane] - highest), b = exponential(x[LANES + lane] - highest);
        x[lane] = a;
        x[LANES + lane] = b;
        sums[lane] += a + b;
    }
}

/* E of a block of words, as both products read it. What is beyond the last word is 0, and its bias so low that
 * its exponential is. */
CPU static void NAME(pack_weights)(const Decoder *t, Half *half, size_t first, size_t n)
{
    const size_t m = t->n_bits, padded = half->padded_bits, n_all = (n + WIDE - 1) / WIDE * WIDE;
    for (size_t bit = 0; bit < m; bit++) {
        const float *from = t->weight + bit * t->n_words + first;
        float *to = half->weights + bit * WIDE;
        size_t word = 0;
        for (; word + WIDE <= n; word += WIDE, to += m * WIDE) {
            *(Vector *)to = *(const Vector *)(from + word);
            *(Vector *)(to + LANES) = *(const Vector *)(from + word + LANES);
        }
        for (; word < n_all; word++)
            to[word % WIDE] = word < n ? from[word] : 0.0f;
    }
    /* The columns of two vectors of bits lie together, of all words. */
    for (size_t column = 0; column < padded; column += WIDE) {
        const size_t width = padded - column < WIDE ? LANES : WIDE;
        for (size_t word = 0; word < n_all; word += 4)
            for (size_t bit = 0; bit < width; bit += 4)
                NAME(transpose)(half->weights + word / WIDE * WIDE * m + word % WIDE + (column + bit) * WIDE,
                                m > column + bit ? m - column - bit : 0, WIDE,
                                half->transposed + column * n_all + word * width + bit, width);
    }
    for (size_t word = 0; word < n_all; word++)
        half->bias[word] = word < n ? t->bias[first + word] : -1e30f;
}

/* What the words that are asked for add: their logits to the values, their columns of E to the derivative. */
CPU static void NAME(add_targets)(const Decoder *t, Half *half, const float *logits, size_t first, size_t n)
{
    const size_t padded = half->padded_bits, n_all = (n + WIDE - 1) / WIDE * WIDE;
    for (size_t word = 0; word < n; word++)
        for (int32_t i = t->ends[first + word]; i < t->ends[first + word + 1]; i++) {
            const size_t document = (size_t)t->documents[i];
            const float amount = t->amounts[i];
            const float *x = logits + (word / WIDE * t->n_documents + document) * WIDE + word % WIDE;
            half->values[document] += (double)amount * *x;
            half->totals[document] += amount;
            for (size_t column = 0; t->by_codes && column < padded; column += WIDE) {
                const size_t width = padded - column < WIDE ? padded - column : WIDE;
                const float *from = half->transposed + column * n_all + word * width;
                float *to = half->of_targets + document * padded + column;
                for (size_t bit = 0; bit < width; bit++)
                    to[bit] += amount * from[bit];
            }
        }
}

/* Logits become exponentials, relative to the highest logit of their document so far. */
CPU static void NAME(exponentiate)(const Decoder *t, Half *half, float *logits, float *highest, size_t n_panels)
{
    const size_t padded = half->padded_bits;
    for (size_t document = 0; document < t->n_documents; document++) {
        float *x = logits + document * WIDE, sums[LANES] = {0};
        const float before = half->highest[document];
        const float now = NAME(highest_of)(x, n_panels, t->n_documents * WIDE, before);
        if (now > before) {
            const float less = exponential(before - now);
            half->sums[document] *= less;
            for (size_t bit = 0; t->by_codes && bit < padded; bit++)
                half->by_codes[document * padded + bit] *= less;
        }
        for (size_t panel = 0; panel < n_panels; panel++)
            NAME(exponentials)(x + panel * t->n_documents * WIDE, now, sums);
        for (int lane = 0; lane < LANES; lane++)
            half->sums[document] += sums[lane];
        half->highest[document] = highest[document] = now;
    }
}

CPU static void NAME(decode_half)(const void *given, int number)
{
    const Decoder *t = given;
    Half *half = t->halves[number];
    const size_t n = t->n_documents, m = t->n_bits, padded = half->padded_bits;
    const size_t groups = NAME(groups_of)(n);
    for (size_t group = 0; group < groups; group++) {
        const size_t first = NAME(begin)(group, n), rows = NAME(begin)(group + 1, n) - first;
        for (size_t bit = 0; bit < m; bit++)
            for (size_t row = 0; row < rows; row++)
                half->codes[first * m + bit * rows + row] = t->codes[(first + row) * t->all_bits + bit];
    }
    size_t block = half->first_block;
    for (size_t word = half->first; word < half->last; word += IN_BLOCK, block++) {
        const size_t count = half->last - word < IN_BLOCK ? half->last - word : IN_BLOCK;
        const size_t n_panels = (count + WIDE - 1) / WIDE;
        float *logits = t->exponentials + word * n;
        NAME(pack_weights)(t, half, word, count);
        for (size_t panel = 0; panel < n_panels; panel++)
            for (size_t group = 0; group < groups; group++) {
                const size_t first = NAME(begin)(group, n), rows = NAME(begin)(group + 1, n) - first;
                NAME(packed_product)((int)rows, half->codes + first * m, half->weights + panel * m * WIDE, m,
                                     half->bias + panel * WIDE, 0, logits + (panel * n + first) * WIDE, WIDE);
            }
        NAME(add_targets)(t, half, logits, word, count);
        NAME(exponentiate)(t, half, logits, t->highest + block * n, n_panels);
        for (size_t column = 0; t->by_codes && column < padded; column += WIDE)
            for (size_t group = 0; group < groups; group++) {
                const size_t first = NAME(begin)(group, n), rows = NAME(begin)(group + 1, n) - first;
                NAME(add_by_codes)((int)rows, padded - column < WIDE ? 1 : 2, logits + first * WIDE, n,
                                   half->transposed + column * n_panels * WIDE, n_panels,
                                   half->by_codes + first * padded + column, padded);
            }
    }
}

/* The rows of Eᵀ's derivative, and as one more that by the bias, begin with the words that were asked for. */
CPU static void NAME(start_with_targets)(const Decoder *t, Half *half, float *restrict out, size_t first, size_t n)
{
    const size_t m = t->n_bits;
    memset(out, 0, (m + 1) * WIDE * sizeof *out);
    for (size_t word = 0; word < n; word++) {
        const int32_t begin = t->ends[first + word], end = t->ends[first + word + 1];
        if (begin == end)
            continue;
        float *restrict sum = half->of_word;
        memset(sum, 0, (m + 1) * sizeof *sum);
        for (int32_t i = begin; i < end; i++) {
            const size_t document = (size_t)t->documents[i];
            const float *restrict code = t->codes + document * t->all_bits;
            const float amount = t->amounts[i] * t->each[document];
            for (size_t bit = 0; bit < m; bit++)
                sum[bit] += amount * code[bit];
            sum[m] += amount;
        }
        for (size_t bit = 0; bit <= m; bit++)
            out[bit * WIDE + word] = sum[bit];
    }
}

/* n numbers, or as many as two vectors hold */
INLINE void NAME(copy)(const float *from, size_t n, float *to)
{
    if (n >= WIDE) {
        *(Vector *)to = *(const Vector *)from;
        *(Vector *)(to + LANES) = *(const Vector *)(from + LANES);
        return;
    }
    for (size_t i = 0; i < n; i++)
        to[i] = from[i];
}

CPU static void NAME(decode_half_backward)(const void *given, int number)
{
    const Decoder *t = given;
    Half *half = t->halves[number];
    const size_t n = t->n_documents, m = t->n_bits, rows_of_all = m + 1, groups = NAME(groups_of)(rows_of_all);
    const float *last = t->highest + (size_t)half->n_blocks * n;
    const size_t with_one = rows_of_all + LANES; /* a code, 1 for the bias, and what a vector reads beyond */
    for (size_t document = 0; document < n; document++)
        for (size_t bit = 0; bit < with_one; bit++)
            half->with_one[document * with_one + bit] =
                bit < m ? t->codes[document * t->all_bits + bit] : (float)(bit == m);
    size_t block = half->first_block;
    for (size_t word = half->first; word < half->last; word += IN_BLOCK, block++) {
        const size_t count = half->last - word < IN_BLOCK ? half->last - word : IN_BLOCK;
        const size_t n_panels = (count + WIDE - 1) / WIDE;
        float *out = half->weights, *shares = half->highest;
        for (size_t document = 0; document < n; document++)
            shares[document] = -t->each[document] * t->shares[document] *
                               exponential(t->highest[block * n + document] - last[document]);
        /* A vector is longer than a group has rows: the next overwrites what is beyond. */
        for (size_t group = 0; group < groups; group++) {
            const size_t first = NAME(begin)(group, rows_of_all);
            const size_t rows = NAME(begin)(group + 1, rows_of_all) - first;
            for (size_t document = 0; document < n; document++)
                *(Vector *)(half->codes + first * n + document * rows) =
                    NAME(spread)(shares[document]) *
                    *(const Vector *)(half->with_one + document * with_one + first);
        }
        for (size_t panel = 0; panel < n_panels; panel++) {
            const size_t left = count - panel * WIDE;
            float *of_panel = out + panel * rows_of_all * WIDE;
            NAME(start_with_targets)(t, half, of_panel, word + panel * WIDE, left < WIDE ? left : WIDE);
            for (size_t group = 0; group < groups; group++) {
                const size_t first = NAME(begin)(group, rows_of_all);
                const size_t rows = NAME(begin)(group + 1, rows_of_all) - first;
                NAME(packed_product)((int)rows, half->codes + first * n,
                                     t->exponentials + (word + panel * WIDE) * n, n, of_panel + first * WIDE,
                                     WIDE, of_panel + first * WIDE, WIDE);
            }
        }
        for (size_t bit = 0; bit <= m; bit++) {
            float *to = (bit < m ? t->by_weight + bit * t->n_words : t->by_bias) + word;
            for (size_t panel = 0; panel < n_panels; panel++)
                NAME(copy)(out + (panel * rows_of_all + bit) * WIDE, count - panel * WIDE, to + panel * WIDE);
        }
    }
}
