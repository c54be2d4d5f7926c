/* NEON, which every 64-bit ARM has: CNT counts bits of bytes, pairwise additions bring them together. */
#include "paths.h"

#ifdef HAS_NEON_PATH
#include <arm_neon.h>

#include "scan.h"

#define INLINE static inline __attribute__((always_inline))

/* How many bits each byte of vector number i differs from the query in. */
INLINE uint8x16_t differing(const uint8_t *codes, size_t i, uint8x16_t query) {
    return vcntq_u8(veorq_u8(vld1q_u8(codes + 16 * i), query));
}

/* The sum of each 8 neighbouring bytes of 8 vectors, in order; no sum may pass 255. */
INLINE uint8x16_t sums_of_eights(const uint8x16_t v[8]) {
    uint8x16_t a = vpaddq_u8(vpaddq_u8(v[0], v[1]), vpaddq_u8(v[2], v[3]));
    uint8x16_t b = vpaddq_u8(vpaddq_u8(v[4], v[5]), vpaddq_u8(v[6], v[7]));
    return vpaddq_u8(a, b);
}

/* A limit for bytes: distances of up to 128 bits never reach 255. */
INLINE uint8x16_t byte_limit(uint64_t limit) { return vdupq_n_u8(limit < 255 ? (uint8_t)limit : 255); }

INLINE uint64_t near_16_rows(uint8x16_t sums, uint64_t limit) {
    uint16_t distances[16];
    if (__builtin_expect(vmaxvq_u8(vcltq_u8(sums, byte_limit(limit))) == 0, 1)) return 0;
    vst1q_u16(distances, vmovl_u8(vget_low_u8(sums)));
    vst1q_u16(distances + 8, vmovl_u8(vget_high_u8(sums)));
    return below(distances, 16, limit);
}

/* 64 bits: two codes per vector. */
INLINE uint8x16_t query_8(const uint8_t *query) {
    return vreinterpretq_u8_u64(vdupq_n_u64(load_word(query)));
}

INLINE uint64_t near_8(const uint8_t *codes, uint8x16_t query, uint64_t limit) {
    uint8x16_t v[8];
    for (size_t i = 0; i < 8; i++) v[i] = differing(codes, i, query);
    return near_16_rows(sums_of_eights(v), limit);
}

/* 128 bits: a vector is a code. */
INLINE uint8x16_t query_16(const uint8_t *query) { return vld1q_u8(query); }

INLINE uint64_t near_16(const uint8_t *codes, uint8x16_t query, uint64_t limit) {
    uint8x16_t v[8];
    for (size_t i = 0; i < 8; i++)
        v[i] = vpaddq_u8(differing(codes, 2 * i, query), differing(codes, 2 * i + 1, query));
    return near_16_rows(sums_of_eights(v), limit);
}

/* 256 bits: two vectors per code. The last addition widens, since a sum may be 256. */
INLINE uint8x16x2_t query_32(const uint8_t *query) {
    return (uint8x16x2_t){{vld1q_u8(query), vld1q_u8(query + 16)}};
}

INLINE uint64_t near_32(const uint8_t *codes, uint8x16x2_t query, uint64_t limit) {
    uint16_t distances[8];
    uint8x16_t v[8];
    for (size_t i = 0; i < 8; i++)
        v[i] = vaddq_u8(differing(codes, 2 * i, query.val[0]),
                        differing(codes, 2 * i + 1, query.val[1]));
    uint16x8_t sums = vpaddlq_u8(sums_of_eights(v));
    if (__builtin_expect(vmaxvq_u16(vcltq_u16(sums, vdupq_n_u16((uint16_t)limit))) == 0, 1))
        return 0;
    vst1q_u16(distances, sums);
    return below(distances, 8, limit);
}

/* Other widths: vectors, then words, then bytes. */
INLINE uint64_t word_popcount(uint64_t word) { return vaddv_u8(vcnt_u8(vcreate_u8(word))); }

DEFINE_DISTANCE(, short_distance, word_popcount)

INLINE uint32_t any_distance(const uint8_t *code, const uint8_t *query, size_t n) {
    uint32x4_t sum = vdupq_n_u32(0);
    size_t i = 0;
    for (; i + 16 <= n; i += 16)
        sum = vpadalq_u16(sum, vpaddlq_u8(differing(code + i, 0, vld1q_u8(query + i))));
    return vaddvq_u32(sum) + short_distance(code + i, query + i, n - i);
}

DEFINE_ROW_SCAN(, scan_any, 0, any_distance)
DEFINE_BLOCK_SCAN(, scan_8, 8, 16, query_8, near_8, any_distance, scan_any, fetch_nothing)
DEFINE_BLOCK_SCAN(, scan_16, 16, 16, query_16, near_16, any_distance, scan_any, fetch_nothing)
DEFINE_BLOCK_SCAN(, scan_32, 32, 8, query_32, near_32, any_distance, scan_any, fetch_nothing)

static scan_function *scan_for(size_t n_bytes) {
    return n_bytes == 8 ? scan_8 : n_bytes == 16 ? scan_16 : n_bytes == 32 ? scan_32 : scan_any;
}

static bool runs_here(void) { return true; }

const struct path neon_path = {"neon", runs_here, scan_for, NULL, false, 8};
#else
typedef int no_neon_here; /* a file must declare something */
#endif
