/* Rectified layers with dropout, and the first layer, which reads words. */

#ifndef LAYERS_H
#define LAYERS_H

#include <stddef.h>
#include <stdint.h>

typedef struct {
    const float *x; /* what goes in, or what came out */
    uint64_t seed;
    const float *gradient;
    float *out;
    size_t n;
    int32_t threshold; /* of 65,536: what draws less is dropped */
    float scale;
} Dropping;

typedef struct {
    const float *weight, *bias; /* n_words x n_outputs, n_outputs */
    const int32_t *words;       /* of a document: from ends[document] to ends[document + 1] */
    const float *amounts;
    const int32_t *ends;
    float *out; /* n_documents x n_outputs */
    size_t n_documents, n_outputs, middle;
    uint64_t seed;
    int32_t threshold;
    float scale;
} Reading;

void drop(const void *task, int half);
void drop_backward(const void *task, int half);
void read_words(const void *task, int half);

#endif
