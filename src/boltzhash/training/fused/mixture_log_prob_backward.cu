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
