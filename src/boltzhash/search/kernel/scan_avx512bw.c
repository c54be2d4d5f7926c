/* AVX-512 without VPOPCNTDQ (Skylake-X, Cascade Lake): batches by slices, single queries as with AVX2, since
 * these wait for memory. */
#include "paths.h"

#ifdef HAS_X86_PATHS
#include <immintrin.h>

#include "scan.h"

#define TARGET __attribute__((target("avx512f,avx512bw,avx512vl,popcnt")))
#define INLINE TARGET static inline __attribute__((always_inline))

DEFINE_DISTANCE(TARGET, short_distance, __builtin_popcountll)

/* What sliced.h asks for: any function of three bits is one instruction. */
typedef uint64_t VECTOR __attribute__((vector_size(64)));
INLINE VECTOR sum_of_3(VECTOR a, VECTOR b, VECTOR c) {
    return (VECTOR)_mm512_ternarylogic_epi64((__m512i)a, (__m512i)b, (__m512i)c, 0x96);
}
INLINE VECTOR majority_of_3(VECTOR a, VECTOR b, VECTOR c) {
    return (VECTOR)_mm512_ternarylogic_epi64((__m512i)a, (__m512i)b, (__m512i)c, 0xe8);
}
INLINE bool any_bit(VECTOR v) { return _mm512_test_epi64_mask((__m512i)v, (__m512i)v) != 0; }
#include "sliced.h"

static scan_function *scan_for(size_t n_bytes) { return avx2_path.scan_for(n_bytes); }

static bool runs_here(void) {
    __builtin_cpu_init();
    return avx2_path.runs_here() && __builtin_cpu_supports("avx512f") &&
           __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
}

static const struct slicing slicing = {8, slice, scan_slices};
const struct path avx512bw_path = {"avx512bw", runs_here, scan_for, &slicing, 32};
#else
typedef int no_avx512bw_here; /* a file must declare something */
#endif
