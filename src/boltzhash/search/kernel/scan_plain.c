/* Plain C: any machine, any compiler. */
#include "paths.h"
#include "scan.h"

DEFINE_DISTANCE(, word_distance, plain_popcount)
DEFINE_ROW_SCAN(, scan_8, 8, word_distance)
DEFINE_ROW_SCAN(, scan_16, 16, word_distance)
DEFINE_ROW_SCAN(, scan_32, 32, word_distance)
DEFINE_ROW_SCAN(, scan_any, 0, word_distance)

static scan_function *scan_for(size_t n_bytes) {
    return n_bytes == 8 ? scan_8 : n_bytes == 16 ? scan_16 : n_bytes == 32 ? scan_32 : scan_any;
}

static bool runs_here(void) { return true; }

const struct path plain_path = {"plain", runs_here, scan_for, 1};
