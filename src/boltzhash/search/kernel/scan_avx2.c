/* AVX2: bits of half bytes looked up in a table of 16, bytes summed by PSADBW. */
#include "paths.h"

#ifdef HAS_X86_PATHS
#include <immintrin.h>

#include "scan.h"

#define TARGET __attribute__((target("avx2,popcnt")))
#define INLINE TARGET static inline __attribute__((always_inline))

/* How many bits each byte of `bits` has on. */
INLINE __m256i counts_of_bytes(__m256i bits) {
    const __m256i of_half = _mm256_setr_epi8(0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4,
                                             0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4);
    const __m256i low = _mm256_set1_epi8(0x0f);
    __m256i halves = _mm256_shuffle_epi8(of_half, _mm256_and_si256(bits, low));
    bits = _mm256_and_si256(_mm256_srli_epi16(bits, 4), low);
    return _mm256_add_epi8(halves, _mm256_shuffle_epi8(of_half, bits));
}

/* How many bits each byte of vector number i differs from the query in. */
INLINE __m256i differing(const uint8_t *codes, size_t i, __m256i query) {
    __m256i code = _mm256_loadu_si256((const __m256i *)(codes + 32 * i));
    return counts_of_bytes(_mm256_xor_si256(code, query));
}

INLINE __m256i sums_of_lanes(__m256i counts) {
    return _mm256_sad_epu8(counts, _mm256_setzero_si256());
}

/* How many bits each 64-bit lane of vector number i differs from the query in. PSADBW adds up differences of
 * bytes: with 4 more than the count in the one and 4 less the count in the other, these are the counts of
 * both half bytes, and need not be added first. */
INLINE __m256i differing_lanes(const uint8_t *codes, size_t i, __m256i query) {
    const __m256i four_more = _mm256_setr_epi8(4, 5, 5, 6, 5, 6, 6, 7, 5, 6, 6, 7, 6, 7, 7, 8,
                                               4, 5, 5, 6, 5, 6, 6, 7, 5, 6, 6, 7, 6, 7, 7, 8);
    const __m256i of_four = _mm256_setr_epi8(4, 3, 3, 2, 3, 2, 2, 1, 3, 2, 2, 1, 2, 1, 1, 0,
                                             4, 3, 3, 2, 3, 2, 2, 1, 3, 2, 2, 1, 2, 1, 1, 0);
    const __m256i low = _mm256_set1_epi8(0x0f);
    __m256i bits = _mm256_xor_si256(_mm256_loadu_si256((const __m256i *)(codes + 32 * i)), query);
    __m256i lower = _mm256_shuffle_epi8(four_more, _mm256_and_si256(bits, low));
    bits = _mm256_and_si256(_mm256_srli_epi16(bits, 4), low);
    return _mm256_sad_epu8(lower, _mm256_shuffle_epi8(of_four, bits));
}

/* Distances fill the lower halves of their 64-bit lanes; the upper halves are 0 on both sides. */
INLINE bool any_below(__m256i distances, uint64_t limit) {
    __m256i below = _mm256_cmpgt_epi32(_mm256_set1_epi64x((long long)limit), distances);
    return !_mm256_testz_si256(below, below);
}

INLINE __m256i least_of(const __m256i vectors[4]) {
    return _mm256_min_epi32(_mm256_min_epi32(vectors[0], vectors[1]),
                            _mm256_min_epi32(vectors[2], vectors[3]));
}

INLINE void store_4(uint16_t *to, __m256i distances) {
    uint64_t lanes[4];
    _mm256_storeu_si256((__m256i *)lanes, distances);
    for (int i = 0; i < 4; i++) to[i] = (uint16_t)lanes[i];
}

INLINE uint64_t near_16_rows(const __m256i vectors[4], uint64_t limit) {
    uint16_t distances[16];
    if (__builtin_expect(!any_below(least_of(vectors), limit), 1)) return 0;
    for (int i = 0; i < 4; i++) store_4(distances + 4 * i, vectors[i]);
    return below(distances, 16, limit);
}

/* 64 bits: a lane is a code. */
INLINE __m256i query_8(const uint8_t *query) {
    return _mm256_set1_epi64x((long long)load_word(query));
}

/* 32 rows at a time: their distances are counted again for the few blocks that have a near one. */
INLINE uint64_t near_8(const uint8_t *codes, __m256i query, uint64_t limit) {
    uint16_t distances[32];
    __m256i least = differing_lanes(codes, 0, query);
    for (size_t i = 1; i < 8; i++) least = _mm256_min_epi32(least, differing_lanes(codes, i, query));
    if (__builtin_expect(!any_below(least, limit), 1)) return 0;
    for (size_t i = 0; i < 8; i++) store_4(distances + 4 * i, differing_lanes(codes, i, query));
    return below(distances, 32, limit);
}

/* 128 bits: two lanes per code, added while they are still bytes. Two vectors a and b give
 * a0 b0 a1 b1, put in the order of the rows on the way out. */
INLINE __m256i query_16(const uint8_t *query) {
    return _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)query));
}

INLINE __m256i sums_of_pairs(__m256i a, __m256i b) {
    return _mm256_add_epi8(_mm256_unpacklo_epi64(a, b), _mm256_unpackhi_epi64(a, b));
}

INLINE uint64_t near_16(const uint8_t *codes, __m256i query, uint64_t limit) {
    uint16_t distances[16];
    __m256i vectors[4];
    for (size_t i = 0; i < 4; i++)
        vectors[i] = sums_of_lanes(sums_of_pairs(differing(codes, 2 * i, query),
                                                 differing(codes, 2 * i + 1, query)));
    if (__builtin_expect(!any_below(least_of(vectors), limit), 1)) return 0;
    for (int i = 0; i < 4; i++)
        store_4(distances + 4 * i, _mm256_permute4x64_epi64(vectors[i], _MM_SHUFFLE(3, 1, 2, 0)));
    return below(distances, 16, limit);
}

/* 256 bits: a vector is a code. */
INLINE __m256i query_32(const uint8_t *query) {
    return _mm256_loadu_si256((const __m256i *)query);
}

INLINE __m256i sums_of_fours(const uint8_t *codes, __m256i query) {
    __m256i a = sums_of_pairs(differing(codes, 0, query), differing(codes, 1, query));
    __m256i b = sums_of_pairs(differing(codes, 2, query), differing(codes, 3, query));
    return _mm256_add_epi8(_mm256_permute2x128_si256(a, b, 0x20),
                           _mm256_permute2x128_si256(a, b, 0x31));
}

INLINE uint64_t near_32(const uint8_t *codes, __m256i query, uint64_t limit) {
    __m256i vectors[4];
    for (size_t i = 0; i < 4; i++) vectors[i] = sums_of_lanes(sums_of_fours(codes + 128 * i, query));
    return near_16_rows(vectors, limit);
}

DEFINE_DISTANCE(TARGET, short_distance, __builtin_popcountll)

/* 384 bits and more. A byte counts at most 8 per vector: 16 vectors, the longest code, stay below 256. */
INLINE uint32_t long_distance(const uint8_t *code, const uint8_t *query, size_t n) {
    __m256i counts = _mm256_setzero_si256();
    size_t i = 0;
    for (; i + 32 <= n; i += 32) {
        __m256i part = _mm256_loadu_si256((const __m256i *)(query + i));
        counts = _mm256_add_epi8(counts, differing(code + i, 0, part));
    }
    __m256i lanes = sums_of_lanes(counts);
    __m128i two = _mm_add_epi64(_mm256_castsi256_si128(lanes), _mm256_extracti128_si256(lanes, 1));
    uint64_t sum = (uint64_t)_mm_cvtsi128_si64(two) + (uint64_t)_mm_extract_epi64(two, 1);
    return (uint32_t)sum + (i < n ? short_distance(code + i, query + i, n - i) : 0);
}

DEFINE_SHORT_SCANS(TARGET, short_distance)
DEFINE_ROW_SCAN(TARGET, scan_long, 0, long_distance)
DEFINE_BLOCK_SCAN(TARGET, scan_8, 8, 32, query_8, near_8, short_distance, short_any, fetch_ahead)
DEFINE_BLOCK_SCAN(TARGET, scan_16, 16, 16, query_16, near_16, short_distance, short_any, fetch_ahead)
DEFINE_BLOCK_SCAN(TARGET, scan_32, 32, 16, query_32, near_32, short_distance, short_any, fetch_ahead)

/* What sliced.h asks for. */
typedef uint64_t VECTOR __attribute__((vector_size(32)));
INLINE VECTOR sum_of_3(VECTOR a, VECTOR b, VECTOR c) { return a ^ b ^ c; }
INLINE VECTOR majority_of_3(VECTOR a, VECTOR b, VECTOR c) { return (a & b) | ((a ^ b) & c); }
INLINE bool any_bit(VECTOR v) { return !_mm256_testz_si256((__m256i)v, (__m256i)v); }
#define TOGETHER 2
#include "sliced.h"

static scan_function *scan_for(size_t n_bytes) {
    switch (n_bytes) {
        case 8: return scan_8;
        case 16: return scan_16;
        case 32: return scan_32;
        default: return n_bytes < 48 ? short_scan(n_bytes) : scan_long;
    }
}

static bool runs_here(void) {
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("popcnt");
}

static const struct slicing slicing = {20, SLICES_TOGETHER, slice, scan_slices};
const struct path avx2_path = {"avx2", runs_here, scan_for, &slicing, true, 16};
#else
typedef int no_avx2_here; /* a file must declare something */
#endif
