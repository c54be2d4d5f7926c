/* Whether loops can be compiled for AVX-512 and AVX2 by each_width.h, and which of them this CPU takes. */

#ifndef WIDTHS_H
#define WIDTHS_H

#include <stdint.h> /* a header of the library, which says whether it is glibc */

#if defined(__x86_64__) && defined(__linux__) && defined(__GLIBC__) && defined(__GNUC__)
#define HAS_WIDTHS
#include <immintrin.h>

#define ALIGNED 64 /* bytes */

static inline int has_avx512(void) { return __builtin_cpu_supports("avx512f"); }
static inline int has_avx2(void) { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }
#endif

#endif
