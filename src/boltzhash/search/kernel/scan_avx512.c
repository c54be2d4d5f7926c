/* AVX-512 with VPOPCNTDQ: eight 64-bit counts in one instruction. */
#include "paths.h"

#ifdef HAS_X86_PATHS
#include <immintrin.h>

#include "scan.h"

#define TARGET __attribute__((target("avx512f,avx512bw,avx512vl,avx512vpopcntdq,popcnt")))
#define INLINE TARGET static inline __attribute__((always_inline))

/* How many bits each 64-bit lane of vector number i differs from the query in. */
INLINE __m512i differing(const uint8_t *codes, size_t i, __m512i query) {
    return _mm512_popcnt_epi64(_mm512_xor_si512(_mm512_loadu_si512(codes + 64 * i), query));
}

/* Which of eight distances are below the limit: a bit for each. */
INLINE uint64_t eight_below(__m512i distances, uint64_t limit) {
    return _mm512_cmplt_epu64_mask(distances, _mm512_set1_epi64((long long)limit));
}

/* 64 bits: a lane is a code. */
INLINE __m512i query_8(const uint8_t *query) {
    return _mm512_set1_epi64((long long)load_word(query));
}

INLINE uint64_t near_8(const uint8_t *codes, __m512i query, uint64_t limit) {
    __m512i least = differing(codes, 0, query), also = differing(codes, 1, query);
    for (size_t i = 2; i < 8; i += 2) {
        least = _mm512_min_epu16(least, differing(codes, i, query));
        also = _mm512_min_epu16(also, differing(codes, i + 1, query));
    }
    uint64_t near = 0;
    if (__builtin_expect(eight_below(_mm512_min_epu16(least, also), limit) == 0, 1)) return near;
    for (size_t i = 0; i < 8; i++) near |= eight_below(differing(codes, i, query), limit) << 8 * i;
    return near;
}

/* 128 bits: two lanes per code. The sums of two vectors a and b come as a0 b0 a1 b1 a2 b2 a3 b3. */
INLINE __m512i query_16(const uint8_t *query) {
    return _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)query));
}

/* Of sixteen rows whose distances are two vectors, in order once they are permuted. */
INLINE uint64_t near_of_16(__m512i a, __m512i b, __m512i in_order, uint64_t limit) {
    if (__builtin_expect(eight_below(_mm512_min_epu16(a, b), limit) == 0, 1)) return 0;
    return eight_below(_mm512_permutexvar_epi64(in_order, a), limit) |
           eight_below(_mm512_permutexvar_epi64(in_order, b), limit) << 8;
}

INLINE __m512i sums_of_pairs(__m512i a, __m512i b) {
    return _mm512_add_epi64(_mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b));
}

INLINE uint64_t near_16(const uint8_t *codes, __m512i query, uint64_t limit) {
    __m512i a = sums_of_pairs(differing(codes, 0, query), differing(codes, 1, query));
    __m512i b = sums_of_pairs(differing(codes, 2, query), differing(codes, 3, query));
    const __m512i in_order = _mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7);
    return near_of_16(a, b, in_order, limit);
}

/* 256 bits: four lanes per code, two codes per vector. Four vectors give rows 0 2 1 3 4 6 5 7. */
INLINE __m512i query_32(const uint8_t *query) {
    return _mm512_broadcast_i64x4(_mm256_loadu_si256((const __m256i *)query));
}

INLINE __m512i sums_of_quarters(__m512i a, __m512i b) {
    return _mm512_add_epi64(_mm512_shuffle_i64x2(a, b, 0x88), _mm512_shuffle_i64x2(a, b, 0xdd));
}

INLINE __m512i sums_of_fours(const uint8_t *codes, __m512i query) {
    __m512i a = sums_of_pairs(differing(codes, 0, query), differing(codes, 1, query));
    __m512i b = sums_of_pairs(differing(codes, 2, query), differing(codes, 3, query));
    return sums_of_quarters(a, b);
}

INLINE uint64_t near_32(const uint8_t *codes, __m512i query, uint64_t limit) {
    __m512i a = sums_of_fours(codes, query), b = sums_of_fours(codes + 256, query);
    const __m512i in_order = _mm512_setr_epi64(0, 2, 1, 3, 4, 6, 5, 7);
    return near_of_16(a, b, in_order, limit);
}

/* 512 bits: a vector is a code; eight of them come out in order. */
INLINE __m512i query_64(const uint8_t *query) { return _mm512_loadu_si512(query); }

INLINE uint64_t near_64(const uint8_t *codes, __m512i query, uint64_t limit) {
    __m512i sums = sums_of_quarters(sums_of_fours(codes, query), sums_of_fours(codes + 256, query));
    return eight_below(sums, limit);
}

DEFINE_DISTANCE(TARGET, short_distance, __builtin_popcountll)

/* 384 bits and more, the last bytes through a mask. */
INLINE uint32_t long_distance(const uint8_t *code, const uint8_t *query, size_t n) {
    __m512i sum = _mm512_setzero_si512();
    size_t i = 0;
    for (; i + 64 <= n; i += 64)
        sum = _mm512_add_epi64(sum, differing(code + i, 0, _mm512_loadu_si512(query + i)));
    if (i < n) {
        __mmask64 rest = ((__mmask64)1 << (n - i)) - 1;
        __m512i tail = _mm512_xor_si512(_mm512_maskz_loadu_epi8(rest, code + i),
                                        _mm512_maskz_loadu_epi8(rest, query + i));
        sum = _mm512_add_epi64(sum, _mm512_popcnt_epi64(tail));
    }
    return (uint32_t)_mm512_reduce_add_epi64(sum);
}

DEFINE_SHORT_SCANS(TARGET, short_distance)
DEFINE_ROW_SCAN(TARGET, scan_long, 0, long_distance)
DEFINE_BLOCK_SCAN(TARGET, scan_8, 8, 64, query_8, near_8, short_distance, short_any, fetch_ahead)
DEFINE_BLOCK_SCAN(TARGET, scan_16, 16, 16, query_16, near_16, short_distance, short_any, fetch_ahead)
DEFINE_BLOCK_SCAN(TARGET, scan_32, 32, 16, query_32, near_32, short_distance, short_any, fetch_ahead)
DEFINE_BLOCK_SCAN(TARGET, scan_64, 64, 8, query_64, near_64, long_distance, scan_long, fetch_ahead)

static scan_function *scan_for(size_t n_bytes) {
    switch (n_bytes) {
        case 8: return scan_8;
        case 16: return scan_16;
        case 32: return scan_32;
        case 64: return scan_64;
        default: return n_bytes < 48 ? short_scan(n_bytes) : scan_long;
    }
}

static bool runs_here(void) {
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vpopcntdq") &&
           __builtin_cpu_supports("popcnt");
}

const struct path avx512_path = {"avx512", runs_here, scan_for, &avx512_slicing, false, 32};
#else
typedef int no_avx512_here; /* a file must declare something */
#endif
