/* Exact search of packed codes by Hamming distance: what the parts share.
 *
 *   module.c       Python's view: buffers in, arrays out, GIL released
 *   search.c       threads, tiles of codes, groups of queries, answers in order
 *   multi_index.c  all within a small radius, by tables of the halves of codes
 *   nearest.h      the nearest codes of one query so far
 *   scan_*.c       one file per instruction set: compares one query with the codes of a tile
 *   sliced.h       the same for many queries, by the bits of codes
 *
 * Nothing here knows Python except module.c, so a plain C program can drive the rest.
 */
#ifndef BOLTZHASH_KERNEL_H
#define BOLTZHASH_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MAX_BYTES 512 /* of a code: 4,096 bits */

struct codes {
    const uint8_t *bytes; /* n rows of n_bytes, no gaps, any alignment */
    size_t n;
    size_t n_bytes;
    const uint8_t *allowed; /* one byte per row, 0 leaves the row out; NULL allows all */
    bool ahead;             /* whether scans ask for what comes next, since they are few and wait for memory */
};

struct nearest;

/* Offers the rows first..last-1 that are near enough to `nearest`, in their order. */
typedef void scan_function(const struct codes *codes, size_t first, size_t last,
                           const uint8_t *query, struct nearest *nearest);

/* Rows by their bits, for many queries; see sliced.h. A slice takes SLICE_BYTES, aligned to 64. */
#define SLICE_ROWS 512
#define SLICE_WORDS (SLICE_ROWS / 64)
#define SLICE_BYTES(n_bytes) ((8 * (n_bytes) + 1) * SLICE_ROWS / 8)
#define MAX_SLICED_BYTES 64 /* of a code: a slice then fills the first-level cache */

struct slicing {
    size_t queries;  /* from so many on slices gain more than they cost */
    size_t together; /* slices that are counted together; a last one that is alone takes as long */
    /* Makes a slice of the rows first..first+SLICE_ROWS-1. */
    void (*slice)(const struct codes *codes, size_t first, void *slice);
    /* A scan_function for n slices, one after the other in memory, from row `first` on. */
    void (*scan)(const struct codes *codes, size_t first, size_t n, const void *slices,
                 const uint8_t *query, struct nearest *nearest);
};

struct path {
    const char *name;
    bool (*runs_here)(void);
    scan_function *(*scan_for)(size_t n_bytes);
    const struct slicing *slicing; /* NULL: no gain */
    bool slices_vectors;           /* also of codes that fill vectors: 8, 16, 32 or 64 bytes */
    size_t speed; /* against plain C, roughly: how much work is worth waking a thread for */
};

/* Best first, NULL at the end; those that were compiled, whether or not they run on this machine. */
extern const struct path *const all_paths[];

/* A hit in one word: words sort as (distance, row). */
#define ROW_BITS 51
#define HIT(distance, row) ((uint64_t)(distance) << ROW_BITS | (uint64_t)(row))
#define HIT_DISTANCE(hit) ((uint32_t)((hit) >> ROW_BITS))
#define HIT_ROW(hit) ((hit) & (((uint64_t)1 << ROW_BITS) - 1))

struct answer {
    size_t n;
    uint64_t *hits; /* sorted; freed by the caller */
};

struct request {
    struct codes codes;
    const uint8_t *queries;
    size_t n_queries;
    size_t k;       /* at most that many hits per query; SIZE_MAX: all */
    uint32_t limit; /* only distances below it */
    const struct path *path;
    size_t threads; /* at least 1 */
};

/* Fills one answer per query. False if memory ran out; answers are then empty. */
bool search(const struct request *request, struct answer *answers);

/* A row in a table of one half of the codes, and the first 32 bits of its other half. */
struct entry {
    uint32_t row, other;
};

/* The rows in the order of their keys, once by the first halves of their codes and once by the second. A key
 * is the first bits of a half; those with key x are entries[half][starts[half][x]..starts[half][x + 1]-1]. */
struct tables {
    size_t bits;              /* of a key, at most 31 */
    uint32_t *starts[2];      /* 2^bits + 1 */
    struct entry *entries[2]; /* n */
    size_t lookup_cost;       /* to look up a key or a code is as dear as a scan of so many codes */
};

/* Whether there can be tables: halves of at least `bits` bits, and rows that fit 32. */
bool tables_fit(const struct codes *codes, size_t bits);

/* Fills arrays that the caller has allocated. */
void fill_tables(const struct codes *codes, const struct tables *tables, size_t threads);

/* The same answers as `search` for a radius; queries for which a scan is cheaper are scanned for. */
bool search_tables(const struct request *request, const struct tables *tables, struct answer *answers);

/* Reads a buffer once with that many threads and returns a checksum: what memory allows at best. */
uint64_t read_all(const uint8_t *bytes, size_t n, size_t threads);

#endif
