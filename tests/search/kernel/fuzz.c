/* Random searches on every path that runs here, each compared with a reference that sorts.
 *
 *   fuzz SECONDS [SEED]
 *
 * Arrays are allocated to the byte, so that AddressSanitizer sees one read too many; the last line says
 * how many searches were compared on which paths. Needs no Python: it is also cross-compiled.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kernel.h"

static uint64_t state;

static uint64_t next_random(void) { /* xorshift64* */
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return state * 0x2545f4914f6cdd1du;
}

static size_t below(size_t n) { return (size_t)(next_random() % n); }

static size_t one_of(const size_t *choices, size_t n) { return choices[below(n)]; }
#define ONE_OF(...) \
    one_of((const size_t[]){__VA_ARGS__}, sizeof((const size_t[]){__VA_ARGS__}) / sizeof(size_t))

static uint32_t slow_distance(const uint8_t *a, const uint8_t *b, size_t n) {
    uint32_t distance = 0;
    for (size_t i = 0; i < n; i++)
        for (unsigned differing = a[i] ^ b[i]; differing; differing >>= 1) distance += differing & 1;
    return distance;
}

static int compare(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* All hits of a query sorted; returns how many belong to the answer. */
static size_t reference(const struct request *request, size_t query, uint64_t *hits) {
    const struct codes *codes = &request->codes;
    size_t n = 0;
    for (size_t row = 0; row < codes->n; row++) {
        uint32_t distance = slow_distance(codes->bytes + row * codes->n_bytes,
                                          request->queries + query * codes->n_bytes, codes->n_bytes);
        if (distance < request->limit && (codes->allowed == NULL || codes->allowed[row]))
            hits[n++] = HIT(distance, row);
    }
    qsort(hits, n, sizeof *hits, compare);
    return n < request->k ? n : request->k;
}

/* Codes of which few differ (ties), or drawn near one another, or at random. */
static void fill_codes(uint8_t *codes, size_t n, size_t n_bytes, const uint8_t *like) {
    size_t kind = below(4), different = 1 + below(9);
    for (size_t row = 0; row < n; row++) {
        uint8_t *code = codes + row * n_bytes;
        if (kind == 0 && row >= different) {
            memcpy(code, codes + below(different) * n_bytes, n_bytes);
            continue;
        }
        for (size_t i = 0; i < n_bytes; i++) {
            uint8_t noise = (uint8_t)(next_random() & next_random() & next_random());
            code[i] = kind == 1 ? like[i] ^ noise : kind == 2 ? (uint8_t)~like[i] : (uint8_t)next_random();
        }
    }
}

static uint8_t *allocate(size_t n) {
    uint8_t *bytes = malloc(n > 0 ? n : 1);
    if (bytes == NULL) abort();
    return bytes;
}

static bool same(const struct request *request, const struct answer *answers, uint64_t *expected) {
    for (size_t query = 0; query < request->n_queries; query++) {
        size_t n = reference(request, query, expected);
        if (answers[query].n != n || memcmp(answers[query].hits, expected, n * sizeof *expected) != 0) {
            fprintf(stderr, "%s: %zu codes of %zu bytes, k %zu, limit %u, %zu threads, mask %d, query %zu\n",
                    request->path->name, request->codes.n, request->codes.n_bytes, request->k,
                    request->limit, request->threads, request->codes.allowed != NULL, query);
            return false;
        }
    }
    return true;
}

/* Tables with keys of any length, costs at which some queries are scanned for and some are not. */
static struct tables *make_tables(const struct codes *codes) {
    size_t bits = 1 + below(10);
    struct tables *tables = calloc(1, sizeof *tables);
    if (tables == NULL) abort();
    if (bits > 8 * (codes->n_bytes / 2)) bits = 8 * (codes->n_bytes / 2);
    if (!tables_fit(codes, bits)) return tables;
    tables->bits = bits;
    tables->lookup_cost = ONE_OF(0, 0, 1, 30, 1000);
    for (size_t half = 0; half < 2; half++) {
        tables->starts[half] = (uint32_t *)(void *)allocate((((size_t)1 << bits) + 1) * sizeof(uint32_t));
        tables->entries[half] = (struct entry *)(void *)allocate(codes->n * sizeof(struct entry));
    }
    fill_tables(codes, tables, 1 + below(3));
    return tables;
}

static void free_tables(struct tables *tables) {
    for (size_t half = 0; half < 2; half++) {
        free(tables->starts[half]);
        free(tables->entries[half]);
    }
    free(tables);
}

/* One collection searched on all paths; returns how many searches were compared, 0 for a mistake. */
static size_t one_case(void) {
    size_t any_bytes = 1 + below(MAX_BYTES), few_bytes = 1 + below(80);
    size_t n_bytes = ONE_OF(8, 8, 16, 16, 32, 32, 1, 2, 4, 64, few_bytes, few_bytes, any_bytes);
    size_t n = ONE_OF(0, 1, 2, 31, 32, 33, below(300), below(5000), below(60000));
    if (n * n_bytes > 2000000) n = 2000000 / n_bytes;
    size_t n_queries = ONE_OF(1, 1, 2, 3, 17, 40);
    if (n > 20000 && n_queries > 3) n_queries = 3;
    uint8_t *queries = allocate(n_queries * n_bytes);
    uint8_t *codes = allocate(n * n_bytes);
    uint8_t *allowed = allocate(n);
    uint64_t *expected = (uint64_t *)(void *)allocate(n * sizeof *expected);
    struct answer *answers = calloc(n_queries, sizeof *answers);
    size_t cases = 0, rarity = ONE_OF(1, 2, 2, 100, 5000);
    if (answers == NULL) abort();
    uint8_t like[MAX_BYTES];
    for (size_t i = 0; i < MAX_BYTES; i++) like[i] = (uint8_t)next_random();
    fill_codes(queries, n_queries, n_bytes, like);
    fill_codes(codes, n, n_bytes, like);
    for (size_t row = 0; row < n; row++) allowed[row] = below(rarity) == 0 || rarity == 1;
    bool all = below(2), radius = below(3) == 0;
    struct request request = {
        .codes = {.bytes = codes, .n = n, .n_bytes = n_bytes, .allowed = all ? NULL : allowed},
        .queries = queries,
        .n_queries = n_queries,
        .k = radius ? SIZE_MAX : 1 + below(ONE_OF(1, 10, 100, 3000, n + 10)),
        .limit = (uint32_t)(radius ? 1 + below(8 * n_bytes + 1) : 8 * n_bytes + 1),
        .threads = 1 + below(5),
    };
    if (radius && below(2)) request.limit = (uint32_t)(1 + below(6));
    struct tables *tables = make_tables(&request.codes);
    for (size_t i = 0; all_paths[i] != NULL; i++) {
        if (!all_paths[i]->runs_here()) continue;
        request.path = all_paths[i];
        bool good = search(&request, answers) && same(&request, answers, expected);
        for (size_t query = 0; query < n_queries; query++) free(answers[query].hits);
        if (good && radius && tables->bits > 0) {
            good = search_tables(&request, tables, answers) && same(&request, answers, expected);
            for (size_t query = 0; query < n_queries; query++) free(answers[query].hits);
            cases++;
        }
        cases = good ? cases + 1 : 0;
        if (!good) break;
    }
    free_tables(tables);
    free(queries);
    free(codes);
    free(allowed);
    free(expected);
    free(answers);
    return cases;
}

int main(int argc, char **argv) {
    double seconds = argc > 1 ? atof(argv[1]) : 10;
    uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    size_t cases = 0, rounds = 0;
    time_t start = time(NULL);
    for (; difftime(time(NULL), start) < seconds; rounds++) {
        state = (seed << 32 | rounds) * 0x9e3779b97f4a7c15u | 1;
        for (int i = 0; i < 8; i++) next_random();
        size_t compared = one_case();
        if (compared == 0) {
            fprintf(stderr, "wrong in round %zu of seed %" PRIu64 "\n", rounds, seed);
            return 1;
        }
        cases += compared;
    }
    printf("%zu searches of %zu collections compared on", cases, rounds);
    for (size_t i = 0; all_paths[i] != NULL; i++)
        if (all_paths[i]->runs_here()) printf(" %s", all_paths[i]->name);
    printf("\n");
    return 0;
}
