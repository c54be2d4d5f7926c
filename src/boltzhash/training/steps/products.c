#include "products.h"

#include "widths.h"

#ifdef HAS_WIDTHS
#include <stdlib.h>
#include <string.h>

#include "halves.h"

/* As much of both matrices as stays in a core's own cache */
#define MOST_ROWS 240
#define MOST_TERMS 512
#define WIDEST 32 /* columns of a panel */

typedef struct {
    size_t group, row, n_rows, term, n_terms;
    float *rows, *panel; /* packed */
} Block;

#define LOOPS "products_loops.h"
#include "each_width.h"

int can_multiply(void) { return has_avx512() || has_avx2(); }

int multiply(Product *t, int threads)
{
    const size_t numbers = (MOST_ROWS + WIDEST) * MOST_TERMS;
    float *room = aligned_alloc(ALIGNED, 2 * numbers * sizeof *room);
    if (room == NULL)
        return 0;
    t->room[0] = room;
    t->room[1] = room + numbers;
    do_both(has_avx512() ? multiply_half_avx512 : multiply_half_avx2, t, threads);
    free(room);
    return 1;
}

#else

int can_multiply(void) { return 0; }
int multiply(Product *product, int threads) { return product != NULL && threads < 0; }

#endif
