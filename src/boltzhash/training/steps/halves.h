/* Work that is done in two halves, by two threads or by one: what comes out is the same to the last bit. */

#ifndef HALVES_H
#define HALVES_H

#include <stddef.h>
#include <stdint.h>

typedef void Work(const void *task, int half);

void do_both(Work *work, const void *task, int threads);

/* The first row of the second half, a multiple of `step`; rows end where `ends` says. */
size_t middle_of_rows(const int32_t *ends, size_t n_rows, size_t step);

#endif
