/* From what the network puts out to codes, and back. */

#ifndef CODES_H
#define CODES_H

#include <stddef.h>

typedef struct {
    size_t n_documents, n_draws, n_bits, rank, n_networks;
    float noise; /* deviation of what is added to a code before it is decoded */
    float scale; /* of the straight-through gradient */

    const float *outputs;  /* of a document, by each network: locations, deviations, couplings of its bits */
    const float *normals;  /* of a document: e1 (draws x bits), e2 (draws x rank), the decoder's noise (bits) */
    const float *uniforms; /* of a document: two for each bit */
    float *kept;           /* kept_of_codes numbers of a document, from the way forward for the way back */

    float *locations, *noisy, *divergences; /* what comes out on the way forward */
    unsigned char *is_on;

    const float *by_noisy, *by_divergences, *by_locations;
    float *by_outputs;
    float *room[2]; /* room_for_codes numbers of each half */
} Codes;

size_t kept_of_codes(const Codes *codes);
size_t room_for_codes(const Codes *codes);
void sample_codes(const void *codes, int half);
void sample_codes_backward(const void *codes, int half);

#endif
