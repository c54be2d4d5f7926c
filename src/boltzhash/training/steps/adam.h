/* Adam, of all weights or of those of words. */

#ifndef ADAM_H
#define ADAM_H

#include <stddef.h>
#include <stdint.h>

#define AT_ONCE 2 /* words whose gradients are made before their weights are updated */

typedef struct {
    float rate;           /* learning rate / (1 - beta1^step) */
    float root;           /* 1 / sqrt(1 - beta2^step) */
    float rest1;          /* 1 - beta1 */
    float beta2, rest2;   /* beta2, 1 - beta2 */
    float epsilon;
} Adam;

typedef struct {
    float *weight, *mean, *square;
    const float *gradient;
    size_t n;
    Adam adam;
} Dense;

typedef struct {
    float *weight, *mean, *square; /* n_words x n_outputs */
    const float *by_output;        /* n_documents x n_outputs: the derivative by what the layer put out */
    const int32_t *documents;      /* in which a word occurs: from ends[word] to ends[word + 1] */
    const float *amounts;
    const int32_t *ends;
    size_t n_outputs, middle, n_words;
    float *gradients[2]; /* room for some rows, of each half */
    Adam adam;
} Words;

void update_dense(const void *task, int half);
void update_words(const void *task, int half);

#endif
