/* The loops of products, for each width. */

#include "tile.h"

/* Some rows of a, term after term. Stores are of whole vectors: the next ones overwrite what is beyond a term. */
CPU static void NAME(pack_group)(const float *from, size_t row, size_t term, size_t n_rows, size_t n_terms,
                                 float *to)
{
    size_t i = 0;
    if (row == 1 && term >= ROWS)
        for (; i + 1 < n_terms; i++)
            memcpy(to + i * n_rows, from + i * term, ROWS * sizeof *to);
    else if (term == 1)
        for (; i + 8 < n_terms; i += 4) {
            __m128 four[(ROWS + 3) / 4][4];
#pragma GCC unroll 3
            for (size_t r = 0; r < (ROWS + 3) / 4; r++) {
                for (size_t j = 0; j < 4; j++) {
                    size_t at = 4 * r + j < n_rows ? 4 * r + j : n_rows - 1;
                    four[r][j] = _mm_loadu_ps(from + at * row + i);
                }
                _MM_TRANSPOSE4_PS(four[r][0], four[r][1], four[r][2], four[r][3]);
            }
#pragma GCC unroll 4
            for (size_t j = 0; j < 4; j++)
#pragma GCC unroll 3
                for (size_t r = 0; r < (ROWS + 3) / 4; r++)
                    _mm_storeu_ps(to + (i + j) * n_rows + 4 * r, four[r][j]);
        }
    for (; i < n_terms; i++)
        for (size_t r = 0; r < n_rows; r++)
            to[i * n_rows + r] = from[r * row + i * term];
}

/* Two vectors of columns of b, term after term; what is beyond the last column is 0. */
CPU static void NAME(pack_panel)(const float *from, size_t term, size_t column, size_t n_columns,
                                 size_t n_terms, float *to)
{
    size_t i = 0;
    if (column == 1 && n_columns == WIDE)
        for (; i < n_terms; i++)
            memcpy(to + i * WIDE, from + i * term, WIDE * sizeof *to);
    else if (term == 1)
        for (; i + 4 <= n_terms; i += 4)
            for (size_t c = 0; c < WIDE; c += 4)
                NAME(transpose)(from + c * column + i, c < n_columns ? n_columns - c : 0, column, to + i * WIDE + c,
                                WIDE);
    for (; i < n_terms; i++)
        for (size_t c = 0; c < WIDE; c++)
            to[i * WIDE + c] = c < n_columns ? from[i * term + c * column] : 0.0f;
}

/* out = start + a b of packed rows and a packed panel, which may have fewer columns than two vectors */
CPU static void NAME(multiply_tile)(size_t rows, size_t columns, const float *a, const float *b, size_t terms,
                                    const float *start, size_t start_row, float *out, size_t out_row)
{
    if (columns == WIDE) {
        NAME(packed_product)((int)rows, a, b, terms, start, start_row, out, out_row);
        return;
    }
    float tile[ROWS * WIDE] = {0};
    for (size_t row = 0; row < rows; row++)
        memcpy(tile + row * WIDE, start + row * start_row, columns * sizeof *tile);
    NAME(packed_product)((int)rows, a, b, terms, tile, WIDE, tile, WIDE);
    for (size_t row = 0; row < rows; row++)
        memcpy(out + row * out_row, tile + row * WIDE, columns * sizeof *tile);
}

/* A block of a, packed, times two vectors of columns of b. The first of its terms begin with `start`. */
CPU static void NAME(multiply_panel)(const Product *t, const Block *block, size_t column)
{
    static const float zeros[WIDE];
    const size_t columns = t->n_columns - column < WIDE ? t->n_columns - column : WIDE;
    NAME(pack_panel)(t->b + block->group * t->b_group + block->term * t->b_term + column * t->b_column, t->b_term,
                     t->b_column, columns, block->n_terms, block->panel);
    float *out = t->out + block->group * t->out_group + block->row * t->out_row + column;
    const size_t groups = NAME(groups_of)(block->n_rows);
    for (size_t group = 0; group < groups; group++) {
        const size_t first = NAME(begin)(group, block->n_rows);
        const size_t rows = NAME(begin)(group + 1, block->n_rows) - first;
        float *of_group = out + first * t->out_row;
        const float *start = of_group;
        if (block->term == 0)
            start = t->start ? t->start + block->group * t->start_group + column : zeros;
        NAME(multiply_tile)(rows, columns, block->rows + first * block->n_terms, block->panel, block->n_terms,
                            start, block->term ? t->out_row : 0, of_group, t->out_row);
    }
}

CPU static void NAME(pack_rows)(const Product *t, const Block *block)
{
    const float *from = t->a + block->group * t->a_group + block->row * t->a_row + block->term * t->a_term;
    const size_t groups = NAME(groups_of)(block->n_rows);
    for (size_t group = 0; group < groups; group++) {
        const size_t first = NAME(begin)(group, block->n_rows);
        NAME(pack_group)(from + first * t->a_row, t->a_row, t->a_term, NAME(begin)(group + 1, block->n_rows) - first,
                         block->n_terms, block->rows + first * block->n_terms);
    }
}

/* Halves are of the panels of all products. */
CPU static void NAME(multiply_half)(const void *given, int half)
{
    const Product *t = given;
    const size_t n_panels = (t->n_columns + WIDE - 1) / WIDE, middle = t->n_groups * n_panels / 2;
    const size_t first = half ? middle : 0, last = half ? t->n_groups * n_panels : middle;
    const size_t row_blocks = (t->n_rows + MOST_ROWS - 1) / MOST_ROWS;
    const size_t term_blocks = (t->n_terms + MOST_TERMS - 1) / MOST_TERMS;
    Block block = {.rows = t->room[half], .panel = t->room[half] + MOST_ROWS * MOST_TERMS};
    for (size_t panel = first; panel < last; panel = (block.group + 1) * n_panels) {
        block.group = panel / n_panels;
        for (size_t i = 0; i < term_blocks * row_blocks; i++) {
            block.term = i / row_blocks * t->n_terms / term_blocks;
            block.n_terms = (i / row_blocks + 1) * t->n_terms / term_blocks - block.term;
            block.row = i % row_blocks * t->n_rows / row_blocks;
            block.n_rows = (i % row_blocks + 1) * t->n_rows / row_blocks - block.row;
            NAME(pack_rows)(t, &block);
            for (size_t p = panel; p < last && p < (block.group + 1) * n_panels; p++)
                NAME(multiply_panel)(t, &block, p % n_panels * WIDE);
        }
    }
}
