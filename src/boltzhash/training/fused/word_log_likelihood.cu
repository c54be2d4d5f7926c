// sum_w t_w log softmax(logits)_w of one document per block, in one pass: every thread keeps the highest logit
// it has seen and the sum of exponentials relative to it. 1024 threads. What the derivative needs is kept.
__device__ void join(float &highest, float &sum, float other_highest, float other_sum)
{
    float top = fmaxf(highest, other_highest);
    sum = sum * expf(highest - top) + other_sum * expf(other_highest - top);
    highest = top;
}

extern "C" __global__ void word_log_likelihood(const float *logits, const float *targets, float *value,
                                               float *log_normalizers, float *totals, int n_words)
{
    __shared__ float parts[4][32];
    const float *x = logits + (long long)blockIdx.x * n_words, *t = targets + (long long)blockIdx.x * n_words;
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    float highest = -1e30f, sum = 0, found = 0, total = 0;
    for (int w = threadIdx.x; w < n_words; w += blockDim.x) {
        join(highest, sum, x[w], 1);
        found += t[w] * x[w];
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
