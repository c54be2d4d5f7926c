/* The instruction sets there is code for. */
#ifndef BOLTZHASH_PATHS_H
#define BOLTZHASH_PATHS_H

#include "kernel.h"

#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#define HAS_X86_PATHS 1
extern const struct path avx512_path, avx512bw_path, avx2_path;
extern const struct slicing avx512_slicing; /* which needs no more than avx512bw_path does */
#endif

#if defined(__aarch64__) && (defined(__GNUC__) || defined(__clang__))
#define HAS_NEON_PATH 1
extern const struct path neon_path;
#endif

extern const struct path plain_path;

#endif
