/* Compiles LOOPS, the name of a file, for CPUs with AVX-512 and for those with AVX2. There these are defined:
 *   NAME(x)  the name of x for this kind of CPU
 *   CPU      the attribute that a function of this kind has
 *   LANES    numbers in a vector
 *   ROWS     rows of a product that are made at once, so that twice as many vectors fit the registers
 * and what tile.h defines, if it includes that. */

#define NAME(x) x##_avx512
#define CPU __attribute__((target("avx512f,prefer-vector-width=512")))
#define LANES 16
#define ROWS 12
#include LOOPS
#include "width_done.h"

#define NAME(x) x##_avx2
#define CPU __attribute__((target("avx2,fma")))
#define LANES 8
#define ROWS 6
#include LOOPS
#include "width_done.h"

#undef LOOPS
