/* Plain C: any machine, any compiler. */
#include "paths.h"
#include "scan.h"

DEFINE_DISTANCE(, word_distance, plain_popcount)
DEFINE_ROW_SCAN(, scan_8, 8, word_distance)
DEFINE_ROW_SCAN(, scan_16, 16, word_distance)
DEFINE_ROW_SCAN(, scan_32, 32, word_distance)
DEFINE_ROW_SCAN(, scan_any, 0, word_distance)

/* What sliced.h asks for. */
#define TARGET
#define INLINE static inline __attribute__((always_inline))
#define short_distance word_distance
typedef uint64_t VECTOR __attribute__((vector_size(16)));
INLINE VECTOR sum_of_3(VECTOR a, VECTOR b, VECTOR c) { return a ^ b ^ c; }
INLINE VECTOR majority_of_3(VECTOR a, VECTOR b, VECTOR c) { return (a & b) | ((a ^ b) & c); }
INLINE bool any_bit(VECTOR v) { return (v[0] | v[1]) != 0; }
#define TOGETHER 2
#include "sliced.h"

static scan_function *scan_for(size_t n_bytes) {
    return n_bytes == 8 ? scan_8 : n_bytes == 16 ? scan_16 : n_bytes == 32 ? scan_32 : scan_any;
}

static bool runs_here(void) { return true; }

static const struct slicing slicing = {4, SLICES_TOGETHER, slice, scan_slices};
const struct path plain_path = {"plain", runs_here, scan_for, &slicing, true, 1};
