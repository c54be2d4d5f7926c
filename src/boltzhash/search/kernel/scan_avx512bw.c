/* AVX-512 without VPOPCNTDQ (Skylake-X, Cascade Lake): many queries by slices, few as with AVX2, since a single
 * one waits for memory; of codes of 64 bits twice as many are taken at a time, from which a few queries gain. */
#include "paths.h"

#ifdef HAS_X86_PATHS
#include <immintrin.h>

#include "scan.h"

#define TARGET __attribute__((target("avx512f,avx512bw,avx512vl,popcnt")))
#define INLINE TARGET static inline __attribute__((always_inline))

DEFINE_DISTANCE(TARGET, short_distance, __builtin_popcountll)

/* How many bits each 64-bit lane of vector number i differs from the query in, as in scan_avx2.c. */
INLINE __m512i differing_lanes(const uint8_t *codes, size_t i, __m512i query) {
    const __m512i four_more = _mm512_broadcast_i32x4(
        _mm_setr_epi8(4, 5, 5, 6, 5, 6, 6, 7, 5, 6, 6, 7, 6, 7, 7, 8));
    const __m512i of_four = _mm512_broadcast_i32x4(
        _mm_setr_epi8(4, 3, 3, 2, 3, 2, 2, 1, 3, 2, 2, 1, 2, 1, 1, 0));
    const __m512i low = _mm512_set1_epi8(0x0f);
    __m512i bits = _mm512_xor_si512(_mm512_loadu_si512(codes + 64 * i), query);
    __m512i lower = _mm512_shuffle_epi8(four_more, _mm512_and_si512(bits, low));
    bits = _mm512_and_si512(_mm512_srli_epi16(bits, 4), low);
    return _mm512_sad_epu8(lower, _mm512_shuffle_epi8(of_four, bits));
}

/* 64 bits: a lane is a code. */
INLINE __m512i query_8(const uint8_t *query) {
    return _mm512_set1_epi64((long long)load_word(query));
}

INLINE uint64_t near_8(const uint8_t *codes, __m512i query, uint64_t limit) {
    __m512i least = differing_lanes(codes, 0, query);
    for (size_t i = 1; i < 4; i++) least = _mm512_min_epu32(least, differing_lanes(codes, i, query));
    const __m512i limits = _mm512_set1_epi64((long long)limit);
    uint64_t near = 0;
    if (__builtin_expect(!_mm512_cmplt_epu64_mask(least, limits), 1)) return near;
    for (size_t i = 0; i < 4; i++)
        near |= (uint64_t)_mm512_cmplt_epu64_mask(differing_lanes(codes, i, query), limits) << 8 * i;
    return near;
}

DEFINE_ROW_SCAN(TARGET, scan_rest, 8, short_distance)
DEFINE_BLOCK_SCAN(TARGET, scan_8, 8, 32, query_8, near_8, short_distance, scan_rest, fetch_ahead)

/* What sliced.h asks for: any function of three bits is one instruction. */
typedef uint64_t VECTOR __attribute__((vector_size(64)));
INLINE VECTOR sum_of_3(VECTOR a, VECTOR b, VECTOR c) {
    return (VECTOR)_mm512_ternarylogic_epi64((__m512i)a, (__m512i)b, (__m512i)c, 0x96);
}
INLINE VECTOR majority_of_3(VECTOR a, VECTOR b, VECTOR c) {
    return (VECTOR)_mm512_ternarylogic_epi64((__m512i)a, (__m512i)b, (__m512i)c, 0xe8);
}
INLINE bool any_bit(VECTOR v) { return _mm512_test_epi64_mask((__m512i)v, (__m512i)v) != 0; }
#define TOGETHER 2
#include "sliced.h"

static scan_function *scan_for(size_t n_bytes) {
    return n_bytes == 8 ? scan_8 : avx2_path.scan_for(n_bytes);
}

static bool runs_here(void) {
    __builtin_cpu_init();
    return avx2_path.runs_here() && __builtin_cpu_supports("avx512f") &&
           __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
}

const struct slicing avx512_slicing = {8, SLICES_TOGETHER, slice, scan_slices};
const struct path avx512bw_path = {"avx512bw", runs_here, scan_for, &avx512_slicing, true, 32};
#else
typedef int no_avx512bw_here; /* a file must declare something */
#endif
