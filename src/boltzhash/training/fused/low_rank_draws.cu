// r = location + D^1/2 e1 + U e2 (eq. 26), of every document n_draws times; one thread per number.
// epsilon holds e1 and e2 of a draw beside each other: (documents, n_draws, bits + rank).
extern "C" __global__ void low_rank_draws(const float *location, int stride, const float *deviation,
                                          const float *factor, const float *epsilon, float *draws,
                                          int n_documents, int n_draws, int bits, int rank)
{
    int place = blockIdx.x * blockDim.x + threadIdx.x;
    if (place >= n_draws * n_documents * bits)
        return;
    int bit = place % bits, document = place / bits % n_documents, draw = place / bits / n_documents;
    const float *e = epsilon + (document * n_draws + draw) * (bits + rank);
    const float *u = factor + (document * bits + bit) * rank;
    float sum = location[document * stride + bit] + deviation[document * bits + bit] * e[bit];
    for (int j = 0; j < rank; j++)
        sum += u[j] * e[bits + j];
    draws[place] = sum;
}

// One thread sums one derivative over the draws: of the location, of the deviation, or of an entry of U.
extern "C" __global__ void low_rank_draws_backward(const float *gradient, const float *epsilon,
                                                   float *by_location, float *by_deviation, float *by_factor,
                                                   int n_documents, int n_draws, int bits, int rank)
{
    int place = blockIdx.x * blockDim.x + threadIdx.x;
    if (place >= n_documents * bits * (rank + 2))
        return;
    int which = place % (rank + 2), cell = place / (rank + 2);
    int bit = cell % bits, document = cell / bits;
    int column = which < 2 ? bit : bits + which - 2;
    const float *e = epsilon + document * n_draws * (bits + rank) + column;
    float sum = 0;
    for (int draw = 0; draw < n_draws; draw++) {
        float g = gradient[(draw * n_documents + document) * bits + bit];
        sum += which == 0 ? g : g * e[draw * (bits + rank)];
    }
    if (which == 0)
        by_location[cell] = sum;
    else if (which == 1)
        by_deviation[cell] = sum;
    else
        by_factor[cell * rank + which - 2] = sum;
}
