// log h_k(s) of one document per block (eq. 21), and the share of each component in h_k(s).
// A warp sums one component's log p(s | r) at a time; logits are (components, documents, bits).
extern "C" __global__ void mixture_log_prob(const float *logits, const float *codes, float *value, float *shares,
                                            int n_components, int n_documents, int bits)
{
    extern __shared__ float log_probs[];
    int document = blockIdx.x, lane = threadIdx.x % 32, n_warps = blockDim.x / 32;
    const float *s = codes + document * bits;
    for (int c = threadIdx.x / 32; c < n_components; c += n_warps) {
        const float *r = logits + (c * n_documents + document) * bits;
        float sum = 0;
        for (int bit = lane; bit < bits; bit += 32)
            sum += s[bit] * r[bit] - fmaxf(r[bit], 0) - log1pf(expf(-fabsf(r[bit])));
        for (int step = 16; step; step /= 2)
            sum += __shfl_down_sync(0xffffffff, sum, step);
        if (lane == 0)
            log_probs[c] = sum;
    }
    __syncthreads();
    float highest = log_probs[0], total = 0;
    for (int c = 1; c < n_components; c++)
        highest = fmaxf(highest, log_probs[c]);
    for (int c = 0; c < n_components; c++)
        total += expf(log_probs[c] - highest);
    float log_total = highest + logf(total);
    if (threadIdx.x == 0)
        value[document] = log_total - logf((float)n_components);
    for (int c = threadIdx.x; c < n_components; c += blockDim.x)
        shares[c * n_documents + document] = expf(log_probs[c] - log_total);
}

// d log h_k(s) = sum_c share_c (s - sigma(r_c)) dr_c + sum_c share_c r_c ds; one thread per bit of a document.
extern "C" __global__ void mixture_log_prob_backward(const float *logits, const float *codes, const float *shares,
                                                     const float *gradient, int gradient_stride, float *by_logits,
                                                     float *by_codes, int n_components, int n_documents, int bits)
{
    int cell = blockIdx.x * blockDim.x + threadIdx.x;
    if (cell >= n_documents * bits)
        return;
    int document = cell / bits;
    float s = codes[cell], g = gradient[document * gradient_stride], by_s = 0;
    for (int c = 0; c < n_components; c++) {
        int place = c * n_documents * bits + cell;
        float r = logits[place], share = shares[c * n_documents + document];
        by_logits[place] = g * share * (s - 1 / (1 + expf(-r)));
        by_s += share * r;
    }
    by_codes[cell] = g * by_s;
}
