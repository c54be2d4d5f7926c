/* Products of matrices: layers of a network, forwards and backwards, and layers of networks side by side. */

#ifndef PRODUCTS_H
#define PRODUCTS_H

#include <stddef.h>

typedef struct {
    const float *a, *b; /* n_rows x n_terms, n_terms x n_columns */
    const float *start; /* n_columns that are added to each row, or NULL */
    float *out;         /* n_rows x n_columns, those of a row without gaps */
    size_t n_groups, n_rows, n_terms, n_columns; /* so many products, of these sizes */
    /* Numbers from one to the next: from a product to the next, from a row, from a term */
    size_t a_group, a_row, a_term, b_group, b_term, b_column, start_group, out_group, out_row;
    float *room[2];
} Product;

/* Whether this CPU has the instructions that it takes. */
int can_multiply(void);

/* Of a's rows or terms, and of b's terms or columns, one must be without gaps. 0 if there is not enough memory,
 * else 1 */
int multiply(Product *product, int threads);

#endif
