/* All codes within a small radius, without a look at the others: multi-index hashing.
 *
 * If two codes differ in at most r bits, then either their first halves differ in at most r / 2, or their
 * second halves in at most (r - 1) / 2: otherwise they would differ in more. (Norouzi, Punjani and Fleet,
 * "Fast Search in Hamming Space with Multi-Index Hashing", CVPR 2012, with two substrings.) So two tables,
 * one a half, are asked for all keys near the query's. Beside a row they have some bits of its other half,
 * which lie together where codes are anywhere in memory: few rows are left whose codes are looked at.
 *
 * How much there is to look at depends on the query, since codes are not spread evenly. It is counted
 * first, and where a scan is cheaper, the query is left to the scan.
 */
#include <stdlib.h>
#include <string.h>

#include "scan.h"
#include "team.h"

#define QUERIES_AT_A_TIME 8 /* that a thread takes */
#define AHEAD 16            /* rows whose codes are on their way from memory */
#define ENTRIES_A_LOOKUP 16 /* that are gone through in the time of a look at a code anywhere in memory */

/* The first 32 bits of a half; zeros follow those of a shorter one. */
static uint32_t first_of_half(const uint8_t *code, size_t n_bytes, size_t half) {
    const uint8_t *first = half == 0 ? code : code + n_bytes / 2;
    size_t n = half == 0 ? n_bytes / 2 : n_bytes - n_bytes / 2;
    uint32_t bits = 0;
    if (n >= 4) /* in one load */
        return (uint32_t)first[0] << 24 | (uint32_t)first[1] << 16 | (uint32_t)first[2] << 8 | first[3];
    for (size_t i = 0; i < n; i++) bits |= (uint32_t)first[i] << (24 - 8 * i);
    return bits;
}

static uint32_t key_of(uint32_t first_bits, size_t bits) { return first_bits >> (32 - bits); }

bool tables_fit(const struct codes *codes, size_t bits) {
    return bits >= 1 && bits <= 31 && bits <= 8 * (codes->n_bytes / 2) && codes->n <= UINT32_MAX;
}

struct filling {
    const struct codes *codes;
    const struct tables *tables;
};

/* Counts the keys and deals the rows out by these counts, in their order. */
static void fill_table(const struct codes *codes, const struct tables *tables, size_t half) {
    size_t n_bytes = codes->n_bytes, n_keys = (size_t)1 << tables->bits;
    uint32_t *starts = tables->starts[half];
    memset(starts, 0, (n_keys + 1) * sizeof *starts);
    for (size_t row = 0; row < codes->n; row++)
        starts[key_of(first_of_half(codes->bytes + row * n_bytes, n_bytes, half), tables->bits)]++;
    uint32_t place = 0;
    for (size_t key = 0; key <= n_keys; key++) {
        uint32_t count = starts[key];
        starts[key] = place;
        place += count;
    }
    for (size_t row = 0; row < codes->n; row++) {
        const uint8_t *code = codes->bytes + row * n_bytes;
        uint32_t key = key_of(first_of_half(code, n_bytes, half), tables->bits);
        tables->entries[half][starts[key]++] =
            (struct entry){.row = (uint32_t)row, .other = first_of_half(code, n_bytes, 1 - half)};
    }
    /* Each start has moved on to the next one. */
    memmove(starts + 1, starts, n_keys * sizeof *starts);
    starts[0] = 0;
}

static void fill_halves(struct team *team, size_t member) {
    struct filling *filling = team->task;
    (void)member;
    for (size_t half; (half = atomic_fetch_add(&team->next, 1)) < 2;)
        fill_table(filling->codes, filling->tables, half);
}

void fill_tables(const struct codes *codes, const struct tables *tables, size_t threads) {
    struct filling filling = {codes, tables};
    run_team(&(struct team){.work = fill_halves, .task = &filling}, smaller(threads, 2));
}

/* How far the keys of a half may be from the query's; -1 if that half need not be asked. */
static int radius_of(const struct request *request, size_t half) {
    size_t radius = request->limit - 1;
    return (int)((radius + 2 - half) / 2) - 1;
}

/* How many keys are within a radius of one. */
static size_t keys_within(size_t bits, int radius) {
    size_t keys = 0, of_weight = 1;
    for (size_t weight = 0; (int)weight <= radius && weight <= bits; weight++) {
        keys += of_weight;
        of_weight = of_weight * (bits - weight) / (weight + 1);
    }
    return keys;
}

/* The next larger number with as many bits on. */
static uint64_t next_of_weight(uint64_t mask) {
    uint64_t lowest = mask & -mask, carried = mask + lowest;
    return carried | ((mask ^ carried) / lowest >> 2);
}

struct range {
    uint32_t key;
    uint32_t differing; /* bits of the key from the query's */
    uint32_t first, last;
};

/* All keys of a half that are near the query's; what the table says of them is on its way from memory. */
static void list_keys(const struct tables *tables, size_t half, uint32_t key, int radius,
                      struct range *ranges) {
    for (int weight = 0; weight <= radius && weight <= (int)tables->bits; weight++) {
        uint64_t mask = ((uint64_t)1 << weight) - 1;
        while (mask >> tables->bits == 0) {
            *ranges = (struct range){.key = key ^ (uint32_t)mask, .differing = (uint32_t)weight};
            __builtin_prefetch(&tables->starts[half][ranges->key]);
            ranges++;
            if (mask == 0) break;
            mask = next_of_weight(mask);
        }
    }
}

/* Where the entries of these keys stand, and how many they are. */
static size_t find_ranges(const struct tables *tables, size_t half, struct range *ranges, size_t n) {
    size_t entries = 0;
    for (size_t i = 0; i < n; i++) {
        ranges[i].first = tables->starts[half][ranges[i].key];
        ranges[i].last = tables->starts[half][ranges[i].key + 1];
        entries += ranges[i].last - ranges[i].first;
        __builtin_prefetch(&tables->entries[half][ranges[i].first]);
    }
    return entries;
}

struct task {
    const struct request *request;
    const struct tables *tables;
    scan_function *scan;
    size_t n_keys[2];
    bool *is_left; /* by query: a scan is cheaper */
    struct answer *answers;
    atomic_bool out_of_memory;
};

/* What one query is looked up with. */
struct lookup {
    const uint8_t *query;
    uint32_t first_bits[2]; /* of its halves */
    struct range *ranges[2];
    uint32_t *rows; /* that may be near, as far as the tables tell */
    size_t n_rows;
};

/* Keeps the rows of a half whose known bits do not differ in too many; none that the other half has named. */
static void keep_near(const struct task *task, size_t half, struct lookup *lookup) {
    const struct tables *tables = task->tables;
    uint32_t other = lookup->first_bits[1 - half], radius = task->request->limit - 1;
    uint64_t named = half == 1 ? (uint64_t)radius_of(task->request, 0) : 0;
    size_t n = lookup->n_rows;
    for (size_t i = 0; i < task->n_keys[half]; i++) {
        const struct range *range = &lookup->ranges[half][i];
        for (uint32_t place = range->first; place < range->last; place++) {
            struct entry entry = tables->entries[half][place];
            uint32_t differing = entry.other ^ other;
            lookup->rows[n] = entry.row;
            n += range->differing + plain_popcount(differing) <= radius &&
                 (half == 0 || plain_popcount(key_of(differing, tables->bits)) > named);
        }
    }
    lookup->n_rows = n;
}

static void compare_rows(const struct task *task, const struct lookup *lookup, struct nearest *nearest) {
    const struct codes *codes = &task->request->codes;
    for (size_t i = 0; i < lookup->n_rows; i++) {
        if (i + AHEAD < lookup->n_rows)
            __builtin_prefetch(codes->bytes + lookup->rows[i + AHEAD] * codes->n_bytes);
        task->scan(codes, lookup->rows[i], (size_t)lookup->rows[i] + 1, lookup->query, nearest);
    }
}

/* By the bytes of the row, the last one first; `n_rows` says how many bytes count. */
static bool sort_by_row(struct nearest *nearest, size_t n_rows) {
    size_t n = nearest->used;
    uint64_t *from = nearest->log, *to = malloc((n + 1) * sizeof *to), *spare = to;
    if (to == NULL) return false;
    for (size_t shift = 0; n > 1 && n_rows >> shift > 0; shift += 8) {
        size_t places[257] = {0};
        for (size_t i = 0; i < n; i++) places[(from[i] >> shift & 255) + 1]++;
        for (size_t i = 0; i < 256; i++) places[i + 1] += places[i];
        for (size_t i = 0; i < n; i++) to[places[from[i] >> shift & 255]++] = from[i];
        uint64_t *swapped = from;
        from = to;
        to = swapped;
    }
    if (from != nearest->log) memcpy(nearest->log, from, n * sizeof *from);
    free(spare);
    return true;
}

static bool answer_from_rows(const struct task *task, const struct lookup *lookup, struct answer *answer) {
    struct nearest nearest;
    bool good = nearest_start(&nearest, task->request);
    if (good) {
        compare_rows(task, lookup, &nearest);
        good = sort_by_row(&nearest, task->request->codes.n) && nearest_answer(&nearest, answer);
    }
    nearest_free(&nearest);
    return good;
}

/* Whether so many keys or codes, anywhere in memory, and entries, side by side, cost more than a scan. */
static bool costs_more(const struct task *task, size_t lookups, size_t entries) {
    size_t cost = task->tables->lookup_cost;
    return lookups * cost + entries * cost / ENTRIES_A_LOOKUP > task->request->codes.n;
}

static bool answer_query(const struct task *task, size_t number) {
    size_t n_bytes = task->request->codes.n_bytes, n_keys = task->n_keys[0] + task->n_keys[1], n_entries = 0;
    struct lookup lookup = {.query = task->request->queries + number * n_bytes};
    lookup.ranges[0] = malloc(n_keys * sizeof *lookup.ranges[0]);
    if (lookup.ranges[0] == NULL) return false;
    lookup.ranges[1] = lookup.ranges[0] + task->n_keys[0];
    for (size_t half = 0; half < 2; half++) {
        lookup.first_bits[half] = first_of_half(lookup.query, n_bytes, half);
        list_keys(task->tables, half, key_of(lookup.first_bits[half], task->tables->bits),
                  radius_of(task->request, half), lookup.ranges[half]);
    }
    for (size_t half = 0; half < 2; half++)
        n_entries += find_ranges(task->tables, half, lookup.ranges[half], task->n_keys[half]);
    bool good = true, is_left = costs_more(task, n_keys, n_entries);
    if (!is_left) {
        lookup.rows = malloc((n_entries + 1) * sizeof *lookup.rows);
        good = lookup.rows != NULL;
        for (size_t half = 0; good && half < 2; half++) keep_near(task, half, &lookup);
        is_left = costs_more(task, n_keys + lookup.n_rows, n_entries);
        good = good && (is_left || answer_from_rows(task, &lookup, &task->answers[number]));
    }
    task->is_left[number] = is_left;
    free(lookup.rows);
    free(lookup.ranges[0]);
    return good;
}

static void share_out_queries(struct team *team, size_t member) {
    struct task *task = team->task;
    (void)member;
    for (;;) {
        size_t first = atomic_fetch_add(&team->next, 1) * QUERIES_AT_A_TIME;
        size_t last = smaller(first + QUERIES_AT_A_TIME, task->request->n_queries);
        if (first >= last || atomic_load(&task->out_of_memory)) return;
        for (size_t number = first; number < last; number++)
            if (!answer_query(task, number)) atomic_store(&task->out_of_memory, true);
    }
}

/* Scans for the queries that were left. */
static bool search_left(const struct task *task) {
    struct request request = *task->request;
    size_t n_bytes = request.codes.n_bytes, n = 0;
    for (size_t i = 0; i < task->request->n_queries; i++) n += task->is_left[i];
    if (n == 0) return true;
    uint8_t *queries = malloc(n * n_bytes);
    struct answer *answers = calloc(n, sizeof *answers);
    bool good = queries != NULL && answers != NULL;
    for (size_t i = 0, to = 0; good && i < task->request->n_queries; i++)
        if (task->is_left[i]) memcpy(queries + n_bytes * to++, request.queries + n_bytes * i, n_bytes);
    request.queries = queries;
    request.n_queries = n;
    good = good && search(&request, answers);
    for (size_t i = 0, from = 0; good && i < task->request->n_queries; i++)
        if (task->is_left[i]) task->answers[i] = answers[from++];
    free(queries);
    free(answers);
    return good;
}

bool search_tables(const struct request *request, const struct tables *tables, struct answer *answers) {
    struct task task = {.request = request,
                        .tables = tables,
                        .scan = request->path->scan_for(request->codes.n_bytes),
                        .is_left = calloc(request->n_queries + 1, sizeof(bool)),
                        .answers = answers};
    for (size_t half = 0; half < 2; half++)
        task.n_keys[half] = keys_within(tables->bits, radius_of(request, half));
    if (costs_more(&task, task.n_keys[0] + task.n_keys[1], 0)) {
        free(task.is_left);
        return search(request, answers);
    }
    for (size_t i = 0; i < request->n_queries; i++) answers[i] = (struct answer){0};
    size_t takes = (request->n_queries + QUERIES_AT_A_TIME - 1) / QUERIES_AT_A_TIME;
    bool good = task.is_left != NULL;
    struct team team = {.work = share_out_queries, .task = &task};
    if (good) run_team(&team, smaller(request->threads, takes));
    good = good && !atomic_load(&task.out_of_memory) && search_left(&task);
    for (size_t i = 0; !good && i < request->n_queries; i++) {
        free(answers[i].hits);
        answers[i] = (struct answer){0};
    }
    free(task.is_left);
    return good;
}
