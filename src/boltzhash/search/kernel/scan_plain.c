/* Plain C: any machine, any compiler. */
#include "paths.h"
#include "scan.h"

static inline uint64_t popcount(uint64_t word) {
    word -= word >> 1 & 0x5555555555555555u;
    word = (word & 0x3333333333333333u) + (word >> 2 & 0x3333333333333333u);
    word = (word + (word >> 4)) & 0x0f0f0f0f0f0f0f0fu;
    return (word * 0x0101010101010101u) >> 56;
}

DEFINE_DISTANCE(, word_distance, popcount)
DEFINE_ROW_SCAN(, scan_8, 8, word_distance)
DEFINE_ROW_SCAN(, scan_16, 16, word_distance)
DEFINE_ROW_SCAN(, scan_32, 32, word_distance)
DEFINE_ROW_SCAN(, scan_any, 0, word_distance)

static scan_function *scan_for(size_t n_bytes) {
    return n_bytes == 8 ? scan_8 : n_bytes == 16 ? scan_16 : n_bytes == 32 ? scan_32 : scan_any;
}

static bool runs_here(void) { return true; }

const struct path plain_path = {"plain", runs_here, scan_for, 1};
