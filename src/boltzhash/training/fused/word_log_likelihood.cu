// sum_w t_w log softmax(logits + bias)_w of one row per block, in one pass: every thread keeps the highest logit
// it has seen and the sum of exponentials relative to it. 1024 threads. What the derivative needs is kept. There may
// be several readings of the documents, one after the other.
__device__ void join(float &highest, float &sum, float other_highest, float other_sum)
{
    float top = fmaxf(highest, other_highest);
    sum = sum * expf(highest - top) + other_sum * expf(other_highest - top);
    highest = top;
}

extern "C" __global__ void word_log_likelihood(const float *logits, const float *bias, const float *targets,
                                               float *value, float *log_normalizers, float *totals,
                                               int n_documents, int n_words)
{
    __shared__ float parts[4][32];
    const float *x = logits + (long long)blockIdx.x * n_words;
    const float *t = targets + (long long)(blockIdx.x % n_documents) * n_words;
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    float highest = -1e30f, sum = 0, found = 0, total = 0;
    for (int w = threadIdx.x; w < n_words; w += blockDim.x) {
        float logit = x[w] + bias[w];
        join(highest, sum, logit, 1);
        found += t[w] * logit;
        total += t[w];
    }
    for (int round = 0; round < 2; round++) {
        for (int step = 16; step; step /= 2) {
            join(highest, sum, __shfl_down_sync(0xffffffff, highest, step),
                 __shfl_down_sync(0xffffffff, sum, step));
            found += __shfl_down_sync(0xffffffff, found, step);
            total += __shfl_down_sync(0xffffffff, total, step);
        }
        if (round == 1)
            break;
        if (lane == 0) {
            parts[0][warp] = highest;
            parts[1][warp] = sum;
            parts[2][warp] = found;
            parts[3][warp] = total;
        }
        __syncthreads();
        if (warp > 0)
            return;
        highest = parts[0][lane];
        sum = parts[1][lane];
        found = parts[2][lane];
        total = parts[3][lane];
    }
    if (lane == 0) {
        float log_normalizer = highest + logf(sum);
        value[blockIdx.x] = found - total * log_normalizer;
        log_normalizers[blockIdx.x] = log_normalizer;
        totals[blockIdx.x] = total;
    }
}

// The derivative by the logits: t_w - (sum of t) softmax_w, which may take their place. One row of blocks per row.
extern "C" __global__ void word_log_likelihood_backward(const float *logits, const float *bias,
                                                        const float *targets, const float *log_normalizers,
                                                        const float *totals, const float *gradient,
                                                        int gradient_stride, float *by_logits, int n_documents,
                                                        int n_words)
{
    int w = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y;
    if (w >= n_words)
        return;
    long long place = (long long)row * n_words + w;
    float target = targets[(long long)(row % n_documents) * n_words + w];
    float softmax = expf(logits[place] + bias[w] - log_normalizers[row]);
    by_logits[place] = gradient[row * gradient_stride] * (target - totals[row] * softmax);
}
