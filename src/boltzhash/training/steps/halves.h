/* Work that is done in two halves, by two threads or by one: what comes out is the same to the last bit. */

#ifndef HALVES_H
#define HALVES_H

typedef void Work(const void *task, int half);

void do_both(Work *work, const void *task, int threads);

#endif
