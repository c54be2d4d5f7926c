#ifndef _WIN32
#define _GNU_SOURCE /* RTLD_DEFAULT */
#include <dlfcn.h>
#include <stdatomic.h>
#endif
#include <stddef.h>

#include "halves.h"

size_t middle_of_rows(const int32_t *ends, size_t n_rows, size_t step)
{
    const double a_row = 6; /* a row costs as much as some of its values */
    double all = ends[n_rows] + a_row * (double)n_rows;
    size_t row = 0;
    while (row < n_rows && ends[row] + a_row * (double)row < all / 2)
        row += step;
    return row < n_rows ? row : n_rows;
}

#ifdef _WIN32
void do_both(Work *work, const void *task, int threads)
{
    (void)threads;
    work(task, 0);
    work(task, 1);
}
#else
typedef struct {
    Work *work;
    const void *task;
    atomic_int next;
} Halves;

static void take_halves(void *given)
{
    Halves *halves = given;
    for (int half; (half = atomic_fetch_add(&halves->next, 1)) < 2;)
        halves->work(halves->task, half);
}

/* Two threads are PyTorch's own: between its operations they keep their CPUs busy waiting, so that others would
 * have to share those. They belong to the OpenMP library that it has loaded for all to see; where there is none
 * by that name, this thread does both halves. */
void do_both(Work *work, const void *task, int threads)
{
    Halves halves = {work, task, 0};
    void (*parallel)(void (*)(void *), void *, unsigned n_threads, unsigned flags) = NULL;
    if (threads > 1)
        *(void **)&parallel = dlsym(RTLD_DEFAULT, "GOMP_parallel");
    if (parallel != NULL)
        parallel(take_halves, &halves, 2, 0);
    else
        take_halves(&halves);
}
#endif
