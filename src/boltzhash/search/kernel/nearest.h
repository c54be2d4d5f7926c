/* The nearest codes of one query so far.
 *
 * Rows are offered in increasing order. Those nearer than `limit` are appended to a log and counted
 * by distance. Once k of them are no farther than `worst`, a code at that same distance comes too
 * late: the limit falls to `worst`, and `worst` itself as soon as k are nearer. When the log is full
 * the hits that no longer matter are dropped from it. So memory depends on k, not on the number of
 * codes, and a last pass that deals the log out by its counts gives (distance, row) without a sort.
 */
#ifndef BOLTZHASH_NEAREST_H
#define BOLTZHASH_NEAREST_H

#include <stdlib.h>
#include <string.h>

#include "kernel.h"

struct nearest {
    uint64_t limit; /* offer only distances below it */
    size_t k;
    size_t close;    /* hits counted at a distance of at most `worst` */
    uint32_t worst;  /* the largest distance that can still be in the answer */
    size_t used;     /* of the log */
    size_t capacity; /* of the log */
    size_t most;     /* that the log may grow to */
    uint64_t *log;
    size_t *counts; /* hits at each distance up to `worst` */
    bool out_of_memory;
};

#ifndef LOG_SPARE
#define LOG_SPARE 1024
#endif

/* A log that is compacted when full leaves room for at least as much as it keeps. */
static inline size_t nearest_log_size(size_t k, size_t n) {
    size_t spare = k > LOG_SPARE ? k : LOG_SPARE;
    return k > n || n - k < spare ? n : k + spare;
}

static inline bool nearest_start(struct nearest *nearest, const struct request *request) {
    size_t n_bits = 8 * request->codes.n_bytes;
    size_t most = nearest_log_size(request->k, request->codes.n);
    size_t capacity = most < 512 ? most : 512;
    *nearest = (struct nearest){
        .limit = request->limit,
        .k = request->k,
        .worst = (uint32_t)n_bits,
        .capacity = capacity,
        .most = most,
        .log = malloc((capacity + 1) * sizeof(uint64_t)),
        .counts = calloc(n_bits + 1, sizeof(size_t)),
    };
    return nearest->log != NULL && nearest->counts != NULL;
}

static inline void nearest_free(struct nearest *nearest) {
    free(nearest->log);
    free(nearest->counts);
    nearest->log = NULL;
    nearest->counts = NULL;
}

static inline void nearest_drop(struct nearest *nearest) {
    size_t kept = 0;
    size_t at_worst = nearest->k - (nearest->close - nearest->counts[nearest->worst]);
    nearest->counts[nearest->worst] = at_worst;
    nearest->close = nearest->k;
    for (size_t i = 0; i < nearest->used; i++) {
        uint64_t hit = nearest->log[i];
        uint32_t distance = HIT_DISTANCE(hit);
        if (distance < nearest->worst || (distance == nearest->worst && at_worst > 0)) {
            at_worst -= distance == nearest->worst;
            nearest->log[kept++] = hit;
        }
    }
    nearest->used = kept;
}

static inline bool nearest_grow(struct nearest *nearest) {
    size_t capacity = 2 * nearest->capacity < nearest->most ? 2 * nearest->capacity : nearest->most;
    uint64_t *log = realloc(nearest->log, (capacity + 1) * sizeof(uint64_t));
    if (log == NULL) {
        nearest->out_of_memory = true;
        nearest->limit = 0; /* nothing more is offered; the search fails as a whole */
        return false;
    }
    nearest->log = log;
    nearest->capacity = capacity;
    return true;
}

/* Rare beside the rows that are scanned, and out of the way of that loop. */
__attribute__((noinline, unused)) static void nearest_offer(struct nearest *nearest, uint32_t distance,
                                                    size_t row) {
    if (nearest->used == nearest->capacity) {
        if (nearest->capacity < nearest->most) {
            if (!nearest_grow(nearest)) return;
        } else {
            nearest_drop(nearest);
        }
    }
    nearest->log[nearest->used++] = HIT(distance, row);
    nearest->counts[distance]++;
    if (++nearest->close < nearest->k) return;
    while (nearest->close - nearest->counts[nearest->worst] >= nearest->k)
        nearest->close -= nearest->counts[nearest->worst--];
    if (nearest->worst < nearest->limit) nearest->limit = nearest->worst;
}

/* The hits in order, in memory of their own. False when there is none left. */
static inline bool nearest_answer(struct nearest *nearest, struct answer *answer) {
    size_t n = nearest->close < nearest->k ? nearest->close : nearest->k;
    uint64_t *hits = malloc((n + 1) * sizeof(uint64_t));
    if (hits == NULL || nearest->out_of_memory) {
        free(hits);
        return false;
    }
    size_t place = 0;
    for (uint32_t distance = 0; distance <= nearest->worst; distance++) {
        size_t count = nearest->counts[distance];
        nearest->counts[distance] = place;
        place += count;
    }
    for (size_t i = 0; i < nearest->used; i++) {
        uint32_t distance = HIT_DISTANCE(nearest->log[i]);
        if (distance > nearest->worst) continue;
        place = nearest->counts[distance]++;
        if (place < n) hits[place] = nearest->log[i];
    }
    *answer = (struct answer){.n = n, .hits = hits};
    return true;
}

#endif
