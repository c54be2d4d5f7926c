/* Threads, tiles and answers.
 *
 * Many queries: each thread takes a group of queries and goes through all codes with it, a tile that
 * fits the first-level cache at a time (or slices that do), so codes come from memory once per group.
 * Few queries: threads take chunks of codes instead, each keeps its own nearest, and these are merged.
 * Both keep rows in increasing order within a thread, which is what `nearest` asks for.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "paths.h"
#include "scan.h"
#include "team.h"

/* Sizes in bytes. A test sets them so small that little data goes through all that large data does. */
#ifndef TILE_BYTES
#define TILE_BYTES ((size_t)16 << 10)   /* half a first-level cache of 32 KB */
#define SLICES_BYTES ((size_t)24 << 10) /* three quarters of one */
#define CHUNK_BYTES ((size_t)512 << 10) /* small enough to share out evenly */
#define WORK_BYTES ((size_t)1 << 20)    /* of plain C, before a thread gains more than it costs */
#define LOG_BYTES ((size_t)64 << 20)    /* of candidates kept at a time */
#endif
#define GROUP 128 /* queries that go through the codes together */
#define MANY 8    /* queries, from which on codes that were loaded for one serve others for long enough */
#ifndef SLICED_QUERIES
#define SLICED_QUERIES slicing->queries /* a test slices for fewer */
#endif

const struct path *const all_paths[] = {
#ifdef HAS_X86_PATHS
    &avx512_path,
    &avx512bw_path,
    &avx2_path,
#endif
#ifdef HAS_NEON_PATH
    &neon_path,
#endif
    &plain_path,
    NULL,
};

static size_t larger(size_t a, size_t b) { return a > b ? a : b; }

struct member {
    struct team *team;
    size_t number;
    pthread_t thread;
};

static void *run_member(void *argument) {
    struct member *member = argument;
    member->team->work(member->team, member->number);
    return NULL;
}

void run_team(struct team *team, size_t threads) {
    struct member *others = threads > 1 ? calloc(threads, sizeof *others) : NULL;
    size_t started = 1;
    atomic_init(&team->next, 0);
    for (; others != NULL && started < threads; started++) {
        others[started] = (struct member){.team = team, .number = started};
        /* If no more threads can be started, those that run share all the work. */
        if (pthread_create(&others[started].thread, NULL, run_member, &others[started]) != 0) break;
    }
    team->work(team, 0);
    for (size_t i = 1; others != NULL && i < started; i++) pthread_join(others[i].thread, NULL);
    free(others);
}

struct task {
    const struct request *request;
    struct codes codes;
    scan_function *scan;
    size_t first, last;      /* queries */
    size_t group;            /* queries taken at a time; 0: codes are shared out instead */
    struct answer *answers;  /* of all queries of the request */
    struct answer *partial;  /* if codes are shared out: one per member and query */
    atomic_bool out_of_memory;
};

static bool fills_vectors(size_t n_bytes) { return n_bytes >= 8 && 64 % n_bytes == 0; }

/* While many queries go through a tile, each asks for its share of the next one: query number `part` of `parts`. */
static void fetch_share(const struct codes *codes, size_t from, size_t to, size_t part, size_t parts) {
    if (codes->ahead) return; /* scans ask by themselves */
    size_t begin = smaller(from, codes->n), lines = (smaller(to, codes->n) - begin) * codes->n_bytes / 64;
    const uint8_t *bytes = codes->bytes + begin * codes->n_bytes;
    for (size_t i = lines * part / parts; i < lines * (part + 1) / parts; i++)
        __builtin_prefetch(bytes + 64 * i);
}

/* Compares queries first..last-1 with as many of the rows from..to-1 as make whole slices; returns the first
 * row that is left. */
static size_t scan_sliced(const struct task *task, size_t first, size_t last, struct nearest *nearest,
                          size_t from, size_t to) {
    const struct request *request = task->request;
    const struct slicing *slicing = request->path->slicing;
    size_t n_bytes = task->codes.n_bytes, size = SLICE_BYTES(n_bytes);
    if (slicing == NULL || last - first < SLICED_QUERIES || n_bytes > MAX_SLICED_BYTES) return from;
    if (!request->path->slices_vectors && fills_vectors(n_bytes)) return from;
    size_t most = larger(SLICES_BYTES / (size * slicing->together), 1) * slicing->together;
    char *memory = malloc(most * size + 63);
    if (memory == NULL) return from; /* it goes without */
    char *slices = memory + (64 - (uintptr_t)memory % 64) % 64;
    while (to - from >= SLICE_ROWS) {
        size_t n = smaller((to - from) / SLICE_ROWS, most);
        for (size_t i = 0; i < n; i++)
            slicing->slice(&task->codes, from + i * SLICE_ROWS, slices + i * size);
        size_t next = from + n * SLICE_ROWS;
        for (size_t query = first; query < last; query++) {
            fetch_share(&task->codes, next, next + most * SLICE_ROWS, query - first, last - first);
            slicing->scan(&task->codes, from, n, slices, request->queries + query * n_bytes,
                          &nearest[query - first]);
        }
        from = next;
    }
    free(memory);
    return from;
}

/* How many rows there are until one begins a line of the cache, if one ever does. From there on vectors lie in a
 * line each; one that lies in two takes as long to load as two. */
static size_t rows_until_line(const struct codes *codes, size_t row) {
    size_t n_bytes = codes->n_bytes, beyond = (uintptr_t)(codes->bytes + row * n_bytes) % 64;
    return 64 % n_bytes || beyond % n_bytes ? 0 : (64 - beyond) % 64 / n_bytes;
}

/* Compares queries first..last-1 with rows from..to-1. */
static void scan_tiles(const struct task *task, size_t first, size_t last, struct nearest *nearest,
                       size_t from, size_t to) {
    const struct request *request = task->request;
    size_t n_bytes = task->codes.n_bytes;
    size_t rows = larger(TILE_BYTES / n_bytes, 1);
    from = scan_sliced(task, first, last, nearest, from, to);
    for (size_t row = from, next; row < to; row = next) {
        size_t until_line = rows_until_line(&task->codes, row);
        next = smaller(row + (until_line ? until_line : rows), to);
        for (size_t query = first; query < last; query++) {
            fetch_share(&task->codes, next, next + rows, query - first, last - first);
            task->scan(&task->codes, row, next, request->queries + query * n_bytes, &nearest[query - first]);
        }
    }
}

static struct nearest *start_all(const struct task *task, size_t n) {
    struct nearest *nearest = calloc(n, sizeof *nearest);
    bool good = nearest != NULL;
    for (size_t i = 0; good && i < n; i++) good = nearest_start(&nearest[i], task->request);
    if (good) return nearest;
    for (size_t i = 0; nearest != NULL && i < n; i++) nearest_free(&nearest[i]);
    free(nearest);
    return NULL;
}

static void finish_all(struct task *task, struct nearest *nearest, size_t n, struct answer *to) {
    for (size_t i = 0; i < n; i++) {
        if (!nearest_answer(&nearest[i], &to[i])) atomic_store(&task->out_of_memory, true);
        nearest_free(&nearest[i]);
    }
    free(nearest);
}

static void share_out_queries(struct team *team, size_t member) {
    struct task *task = team->task;
    (void)member;
    for (;;) {
        size_t first = task->first + atomic_fetch_add(&team->next, 1) * task->group;
        if (first >= task->last || atomic_load(&task->out_of_memory)) return;
        size_t last = smaller(first + task->group, task->last);
        struct nearest *nearest = start_all(task, last - first);
        if (nearest == NULL) {
            atomic_store(&task->out_of_memory, true);
            return;
        }
        scan_tiles(task, first, last, nearest, 0, task->codes.n);
        finish_all(task, nearest, last - first, &task->answers[first]);
    }
}

static void share_out_codes(struct team *team, size_t member) {
    struct task *task = team->task;
    const struct codes *codes = &task->codes;
    size_t n = task->last - task->first;
    size_t chunk = larger(CHUNK_BYTES / codes->n_bytes, 1);
    struct nearest *nearest = start_all(task, n);
    if (nearest == NULL) {
        atomic_store(&task->out_of_memory, true);
        return;
    }
    for (;;) {
        size_t from = atomic_fetch_add(&team->next, 1) * chunk;
        if (from >= codes->n) break;
        scan_tiles(task, task->first, task->last, nearest, from, smaller(from + chunk, codes->n));
    }
    finish_all(task, nearest, n, &task->partial[member * n]);
}

/* Merges the sorted answers of the members to one query: `parts` of them, `stride` apart. */
static bool merge(struct answer *partial, size_t parts, size_t stride, size_t k, struct answer *to) {
    size_t total = 0;
    for (size_t i = 0; i < parts; i++) total += partial[i * stride].n;
    size_t n = smaller(total, k);
    uint64_t *hits = malloc((n + 1) * sizeof *hits);
    size_t *place = calloc(parts, sizeof *place);
    bool good = hits != NULL && place != NULL;
    for (size_t taken = 0; good && taken < n; taken++) {
        uint64_t least = UINT64_MAX;
        size_t from = 0;
        for (size_t i = 0; i < parts; i++) {
            const struct answer *part = &partial[i * stride];
            if (place[i] < part->n && part->hits[place[i]] < least) {
                least = part->hits[place[i]];
                from = i;
            }
        }
        place[from]++;
        hits[taken] = least;
    }
    free(place);
    if (good)
        *to = (struct answer){.n = n, .hits = hits};
    else
        free(hits);
    return good;
}

static bool search_with_shared_codes(struct task *task, size_t threads) {
    size_t n = task->last - task->first;
    task->partial = calloc(threads * n, sizeof *task->partial);
    if (task->partial == NULL) return false;
    run_team(&(struct team){.work = share_out_codes, .task = task}, threads);
    bool good = !atomic_load(&task->out_of_memory);
    for (size_t i = 0; good && i < n; i++)
        good = merge(&task->partial[i], threads, n, task->request->k, &task->answers[task->first + i]);
    for (size_t i = 0; i < threads * n; i++) free(task->partial[i].hits);
    free(task->partial);
    return good;
}

static bool search_some(const struct request *request, size_t first, size_t last,
                        struct answer *answers) {
    struct task task = {.request = request,
                        .codes = request->codes,
                        .scan = request->path->scan_for(request->codes.n_bytes),
                        .first = first,
                        .last = last,
                        .answers = answers};
    size_t n = last - first;
    task.codes.ahead = n < MANY;
    size_t work = request->codes.n * request->codes.n_bytes * n / request->path->speed;
    size_t worth = work / WORK_BYTES + 1;
    size_t threads = smaller(request->threads, worth);
    if (threads > 1 && n < 8 * threads) return search_with_shared_codes(&task, threads);
    task.group = smaller((n + threads - 1) / threads, GROUP);
    run_team(&(struct team){.work = share_out_queries, .task = &task}, threads);
    return !atomic_load(&task.out_of_memory);
}

bool search(const struct request *request, struct answer *answers) {
    size_t n_bits = 8 * request->codes.n_bytes;
    size_t log_size = request->k == SIZE_MAX ? 0 : nearest_log_size(request->k, request->codes.n);
    size_t state = log_size * sizeof(uint64_t) + (n_bits + 1) * sizeof(size_t);
    size_t at_a_time = larger(LOG_BYTES / state / request->threads, 1);
    bool good = true;
    at_a_time = at_a_time > GROUP ? at_a_time / GROUP * GROUP : at_a_time;
    for (size_t i = 0; i < request->n_queries; i++) answers[i] = (struct answer){0};
    for (size_t first = 0; good && first < request->n_queries; first += at_a_time)
        good = search_some(request, first, smaller(first + at_a_time, request->n_queries), answers);
    for (size_t i = 0; !good && i < request->n_queries; i++) {
        free(answers[i].hits);
        answers[i] = (struct answer){0};
    }
    return good;
}

struct reading {
    const uint8_t *bytes;
    size_t n;
    atomic_uint_fast64_t sum;
};

static void read_chunks(struct team *team, size_t member) {
    struct reading *reading = team->task;
    uint64_t sums[8] = {0};
    (void)member;
    for (;;) {
        size_t from = atomic_fetch_add(&team->next, 1) * CHUNK_BYTES;
        if (from >= reading->n) break;
        size_t to = smaller(from + CHUNK_BYTES, reading->n);
        for (; to - from >= 64; from += 64) {
            fetch_ahead(reading->bytes + from, 64);
            for (size_t i = 0; i < 8; i++) sums[i] ^= load_word(reading->bytes + from + 8 * i);
        }
        for (; from < to; from++) sums[0] ^= reading->bytes[from];
    }
    for (size_t i = 0; i < 8; i++) atomic_fetch_xor(&reading->sum, sums[i]);
}

uint64_t read_all(const uint8_t *bytes, size_t n, size_t threads) {
    struct reading reading = {.bytes = bytes, .n = n};
    run_team(&(struct team){.work = read_chunks, .task = &reading}, threads);
    return atomic_load(&reading.sum);
}
