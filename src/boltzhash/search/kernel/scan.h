/* What the scan_*.c share: distances word by word, and the loop over blocks of rows. */
#ifndef BOLTZHASH_SCAN_H
#define BOLTZHASH_SCAN_H

#include <string.h>

#include "nearest.h"

/* The last 1 to 7 bytes of a code as a word; the order of its bytes does not matter here. */
static inline uint64_t load_tail(const uint8_t *bytes, size_t n) {
    uint64_t word = 0;
    uint32_t four = 0;
    uint16_t two = 0;
    if (n & 4) {
        memcpy(&four, bytes, 4);
        word = four;
        bytes += 4;
    }
    if (n & 2) {
        memcpy(&two, bytes, 2);
        word = word << 16 | two;
        bytes += 2;
    }
    return n & 1 ? word << 8 | *bytes : word;
}

static inline uint64_t load_word(const uint8_t *bytes) {
    uint64_t word;
    memcpy(&word, bytes, 8);
    return word;
}

/* Asks for the n bytes, lines of a cache, that come a page after these. A CPU looks ahead by itself, but not
 * beyond the end of a page of 4 KB, and less far the more it has to do with each line. What lies beyond the
 * end of the codes is asked for in vain, which does no harm. */
#define PAGE_BYTES 4096
static inline void fetch_ahead(const uint8_t *bytes, size_t n) {
    for (size_t i = 0; i < n; i += 64) __builtin_prefetch((const void *)((uintptr_t)bytes + PAGE_BYTES + i));
}

static inline void fetch_nothing(const uint8_t *bytes, size_t n) {
    (void)bytes;
    (void)n;
}

/* How many bits are on, without an instruction for it. */
static inline uint64_t plain_popcount(uint64_t word) {
    word -= word >> 1 & 0x5555555555555555u;
    word = (word & 0x3333333333333333u) + (word >> 2 & 0x3333333333333333u);
    word = (word + (word >> 4)) & 0x0f0f0f0f0f0f0f0fu;
    return (word * 0x0101010101010101u) >> 56;
}

/* Defines DISTANCE(code, query, n_bytes) from POPCOUNT of a word. */
#define DEFINE_DISTANCE(TARGET, DISTANCE, POPCOUNT)                                               \
    TARGET static inline uint32_t DISTANCE(const uint8_t *code, const uint8_t *query, size_t n) { \
        uint32_t distance = 0;                                                                    \
        size_t i = 0;                                                                             \
        for (; i + 8 <= n; i += 8)                                                                \
            distance += (uint32_t)POPCOUNT(load_word(code + i) ^ load_word(query + i));           \
        if (i < n)                                                                                \
            distance += (uint32_t)POPCOUNT(load_tail(code + i, n - i) ^                           \
                                           load_tail(query + i, n - i));                          \
        return distance;                                                                          \
    }

/* Defines a scan_function that goes row by row. */
#define DEFINE_ROW_SCAN(TARGET, NAME, N_BYTES, DISTANCE)                                          \
    TARGET static void NAME(const struct codes *codes, size_t first, size_t last,                 \
                            const uint8_t *query, struct nearest *nearest) {                      \
        const size_t n_bytes = (N_BYTES) ? (N_BYTES) : codes->n_bytes;                            \
        for (size_t row = first; row < last; row++) {                                             \
            uint32_t distance = DISTANCE(codes->bytes + row * n_bytes, query, n_bytes);           \
            if (distance < nearest->limit && (codes->allowed == NULL || codes->allowed[row]))     \
                nearest_offer(nearest, distance, row);                                            \
        }                                                                                         \
    }

/* Defines short_scan(n_bytes): row by row, with loops of their own for some common widths.  */
#define DEFINE_SHORT_SCANS(TARGET, DISTANCE)                                                      \
    DEFINE_ROW_SCAN(TARGET, short_1, 1, DISTANCE)                                                 \
    DEFINE_ROW_SCAN(TARGET, short_2, 2, DISTANCE)                                                 \
    DEFINE_ROW_SCAN(TARGET, short_4, 4, DISTANCE)                                                 \
    DEFINE_ROW_SCAN(TARGET, short_12, 12, DISTANCE)                                               \
    DEFINE_ROW_SCAN(TARGET, short_20, 20, DISTANCE)                                               \
    DEFINE_ROW_SCAN(TARGET, short_24, 24, DISTANCE)                                               \
    DEFINE_ROW_SCAN(TARGET, short_any, 0, DISTANCE)                                               \
    static scan_function *short_scan(size_t n_bytes) {                                            \
        switch (n_bytes) {                                                                        \
            case 1: return short_1;                                                               \
            case 2: return short_2;                                                               \
            case 4: return short_4;                                                               \
            case 12: return short_12;                                                             \
            case 20: return short_20;                                                             \
            case 24: return short_24;                                                             \
            default: return short_any;                                                            \
        }                                                                                         \
    }

/* Which of up to 64 distances are below the limit: a bit for each. */
static inline uint64_t below(const uint16_t *distances, size_t rows, uint64_t limit) {
    uint64_t near = 0;
    for (size_t i = 0; i < rows; i++) near |= (uint64_t)(distances[i] < limit) << i;
    return near;
}

/* Near rows, a bit for each, without eights of which none is allowed: most of them where few rows are. */
static inline uint64_t without_forbidden_eights(uint64_t near, const uint8_t *allowed, size_t rows) {
    for (size_t eight = 0; eight < rows; eight += 8) {
        uint64_t any;
        memcpy(&any, allowed + eight, 8);
        if (any == 0) near &= ~((uint64_t)0xff << eight);
    }
    return near;
}

/* Defines a scan_function that goes ROWS rows at a time, a multiple of 8: NEAR(codes, query, limit) says which of
 * them are below the limit, a bit for each. FETCH is fetch_ahead or, where that was not found to gain,
 * fetch_nothing. */
#define DEFINE_BLOCK_SCAN(TARGET, NAME, N_BYTES, ROWS, LOAD_QUERY, NEAR, DISTANCE, ROW_SCAN, FETCH) \
    TARGET static void NAME(const struct codes *codes, size_t first, size_t last,                 \
                            const uint8_t *query, struct nearest *nearest) {                      \
        const __typeof__(LOAD_QUERY(query)) loaded = LOAD_QUERY(query);                           \
        const uint8_t *const bytes = codes->bytes;                                                \
        const bool ahead = codes->ahead;                                                          \
        for (; last - first >= (ROWS); first += (ROWS)) {                                         \
            const uint8_t *block = bytes + first * (N_BYTES);                                     \
            if (ahead) FETCH(block, (ROWS) * (N_BYTES));                                          \
            uint64_t near = NEAR(block, loaded, nearest->limit);                                  \
            if (__builtin_expect(near == 0, 1)) continue;                                         \
            const uint8_t *allowed = codes->allowed == NULL ? NULL : codes->allowed + first;      \
            if (allowed != NULL) near = without_forbidden_eights(near, allowed, ROWS);            \
            for (; near != 0; near &= near - 1) {                                                 \
                size_t row = (size_t)__builtin_ctzll(near);                                       \
                if (allowed != NULL && !allowed[row]) continue;                                   \
                uint32_t distance = DISTANCE(block + row * (N_BYTES), query, (N_BYTES));          \
                if (distance < nearest->limit) nearest_offer(nearest, distance, first + row);     \
            }                                                                                     \
        }                                                                                         \
        ROW_SCAN(codes, first, last, query, nearest);                                             \
    }

#endif
