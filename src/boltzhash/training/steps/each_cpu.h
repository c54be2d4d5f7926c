/* One binary for all x86-64 machines: the loops are compiled for each, and the loader takes the widest. */

#ifndef EACH_CPU_H
#define EACH_CPU_H

#if defined(__x86_64__) && defined(__linux__) && defined(__GLIBC__) && defined(__GNUC__) &&         \
    (!defined(__clang__) || __clang_major__ >= 14)
#define FOR_EACH_CPU __attribute__((target_clones("avx512f", "arch=haswell", "default")))
#else
#define FOR_EACH_CPU
#endif
/* What such a loop calls must be in it, or it would be compiled for the oldest machine alone. */
#ifdef __GNUC__
#define IN_LOOP static inline __attribute__((always_inline))
#else
#define IN_LOOP static inline
#endif
#define LANES 16 /* sums and maxima that are kept side by side, so that they fit a vector */

#endif
