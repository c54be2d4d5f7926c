/* Threads that work on one task together. */
#ifndef BOLTZHASH_TEAM_H
#define BOLTZHASH_TEAM_H

#include <stdatomic.h>
#include <stddef.h>

struct team {
    void (*work)(struct team *team, size_t member);
    void *task;
    atomic_size_t next; /* what the members share out among them */
};

/* Runs `work` once in each of that many threads, including this one. */
void run_team(struct team *team, size_t threads);

static inline size_t smaller(size_t a, size_t b) { return a < b ? a : b; }

#endif
