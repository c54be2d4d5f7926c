// The derivative by the logits: t_w - (sum of t) softmax_w. One row of blocks per document.
extern "C" __global__ void word_log_likelihood_backward(const float *logits, const float *targets,
                                                        const float *log_normalizers, const float *totals,
                                                        const float *gradient, int gradient_stride,
                                                        float *by_logits, int n_words)
{
    int w = blockIdx.x * blockDim.x + threadIdx.x, document = blockIdx.y;
    if (w >= n_words)
        return;
    long long place = (long long)document * n_words + w;
    float softmax = expf(logits[place] - log_normalizers[document]);
    by_logits[place] = gradient[document * gradient_stride] * (targets[place] - totals[document] * softmax);
}
