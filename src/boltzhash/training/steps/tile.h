/* A tile of a product, so many rows and two vectors of columns, for the width that each_width.h asks for. */

#define WIDE (2 * LANES)
typedef float NAME(Vector) __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
#define Vector NAME(Vector)
#define INLINE CPU static inline __attribute__((always_inline))

INLINE Vector NAME(spread)(float x) { return x - (Vector){0}; } /* -0 as well, unlike a sum */

/* out = start + a b, of `rows` rows and one or two vectors of columns, summed over `inner` x `outer` terms.
 * Their numbers of a are so far apart: row, term; and those of outer terms `far`. b is without gaps. */
INLINE void NAME(product)(const int rows, const int vectors, const float *restrict a, const size_t row,
                          const size_t term, const size_t far, const float *restrict b, const size_t inner,
                          const size_t outer, const float *start, const size_t start_row, float *out,
                          const size_t out_row)
{
    Vector sums[ROWS][2];
#pragma GCC unroll 16
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 2
        for (int v = 0; v < vectors; v++)
            sums[r][v] = *(const Vector *)(start + (size_t)r * start_row + (size_t)v * LANES);
    for (size_t o = 0; o < outer; o++, a += far)
        for (size_t i = 0; i < inner; i++) {
            Vector of_b[2];
#pragma GCC unroll 2
            for (int v = 0; v < vectors; v++, b += LANES)
                of_b[v] = *(const Vector *)b;
#pragma GCC unroll 16
            for (int r = 0; r < rows; r++) {
                Vector of_a = NAME(spread)(a[(size_t)r * row + i * term]);
#pragma GCC unroll 2
                for (int v = 0; v < vectors; v++)
                    sums[r][v] += of_a * of_b[v];
            }
        }
#pragma GCC unroll 16
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 2
        for (int v = 0; v < vectors; v++)
            *(Vector *)(out + (size_t)r * out_row + (size_t)v * LANES) = sums[r][v];
}

#if ROWS == 12
#define MORE_ROWS(CASE) CASE(7) CASE(8) CASE(9) CASE(10) CASE(11) CASE(12)
#else
#define MORE_ROWS(CASE)
#endif
#define EACH_NUMBER_OF_ROWS(CASE) CASE(1) CASE(2) CASE(3) CASE(4) CASE(5) CASE(6) MORE_ROWS(CASE)

/* out = start + aᵀ b of a that was packed: `rows` numbers, term after term */
CPU static void NAME(packed_product)(int rows, const float *a, const float *b, size_t terms,
                                     const float *start, size_t start_row, float *out, size_t out_row)
{
#define CASE(n)                                                                                     \
    case n:                                                                                         \
        NAME(product)(n, 2, a, 1, n, 0, b, terms, 1, start, start_row, out, out_row);               \
        break;
    switch (rows) {
        EACH_NUMBER_OF_ROWS(CASE)
    }
#undef CASE
}

/* n rows in groups that are as equal as they can be: where a group begins */
INLINE size_t NAME(groups_of)(size_t n) { return (n + ROWS - 1) / ROWS; }
INLINE size_t NAME(begin)(size_t group, size_t n) { return n * group / NAME(groups_of)(n); }

/* Four numbers of each of n rows, at most four, become n numbers of each of four rows, then zeros up to four. */
INLINE void NAME(transpose)(const float *from, size_t n, size_t row, float *to, size_t to_row)
{
    __m128 rows[4];
    for (size_t i = 0; i < 4; i++)
        rows[i] = i < n ? _mm_loadu_ps(from + i * row) : _mm_setzero_ps();
    _MM_TRANSPOSE4_PS(rows[0], rows[1], rows[2], rows[3]);
    for (size_t i = 0; i < 4; i++)
        _mm_storeu_ps(to + i * to_row, rows[i]);
}
