/* The decoder's softmax, a document at a time: for CPUs that decoder.c has no loops for. */

#ifndef LOGITS_H
#define LOGITS_H

#include <stddef.h>
#include <stdint.h>

typedef struct {
    float *logits; /* n_documents x n_words, without the bias; then the derivative by them */
    const float *bias;
    const int32_t *words; /* of a document: from ends[document] to ends[document + 1] */
    const float *amounts;
    const int32_t *ends;
    float *values;
    float *by_bias[2];
    size_t n_documents, n_words;
} Decoding;

void decode_documents(const void *task, int half);

#endif
