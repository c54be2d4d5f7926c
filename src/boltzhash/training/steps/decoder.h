/* log p(x | s) of documents by a linear decoder, sᵀE + b, and its derivatives, a block of words at a time.
 *
 * The logits of all documents and words are a matrix of megabytes. Here those of a block of words are made,
 * become exponentials and are multiplied by E again while they are in the cache; only the exponentials are
 * kept, for the derivative by E. As the highest logit of a document is known only at the end, those of a
 * block are taken relative to the highest so far, which is kept as well.
 *
 * Each thread has half of the words. */

#ifndef DECODER_H
#define DECODER_H

#include <stddef.h>
#include <stdint.h>

#define IN_BLOCK 256 /* words */

typedef struct {
    const float *codes; /* s of a document: n_bits numbers, all_bits from one document to the next */
    const float *weight; /* E, n_bits x n_words */
    const float *bias;
    const int32_t *documents; /* in which a word is asked for: from ends[word] to ends[word + 1] */
    const float *amounts;
    const int32_t *ends;
    size_t n_documents, n_words, n_bits, all_bits;
    /* what is kept for the derivative */
    float *exponentials; /* as many words at a time as two vectors hold, of all documents */
    float *highest;      /* of each block so far, n_documents each, and in the end of all */
    float *shares;       /* of each document: what its words count, over its sum of exponentials */
    /* what comes out */
    float *values;
    float *by_codes; /* NULL if it is not asked for; as codes */
    const float *each; /* the derivative by the values, n_documents */
    float *by_weight;
    float *by_bias;
    void *halves[2];
} Decoder;

/* Whether this CPU has the instructions that it takes. */
int can_decode(void);

/* How many numbers are kept: exponentials, highest and shares, one after the other. */
size_t kept_by_decoder(size_t n_documents, size_t n_words);
void place_kept(Decoder *decoder, float *kept);

/* 0 if there is not enough memory, else 1 */
int decode_words(Decoder *decoder, int threads);
int decode_words_backward(Decoder *decoder, int threads);

#endif
