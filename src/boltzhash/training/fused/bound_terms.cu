// Means over the minibatch, by one block of 256 threads: what is minimised, the log likelihood of words and the
// divergence; and the derivative of the first by each value, each divergence and each contrast. `values` are those of
// all readings of all documents, `contrasts` those of all parts; there may be none.
__device__ float sum_of(const float *numbers, int n)
{
    __shared__ float parts[256];
    float sum = 0;
    for (int i = threadIdx.x; i < n; i += 256)
        sum += numbers[i];
    __syncthreads();
    parts[threadIdx.x] = sum;
    for (int step = 128; step; step /= 2) {
        __syncthreads();
        if (threadIdx.x < step)
            parts[threadIdx.x] += parts[threadIdx.x + step];
    }
    __syncthreads();
    return parts[0];
}

extern "C" __global__ void bound_terms(const float *values, const float *divergences, const float *contrasts,
                                       const float *beta, const float *weight, float *loss, float *likelihood,
                                       float *kl, float *by, int n_documents, int n_readings, int n_contrasts)
{
    float value = sum_of(values, n_readings * n_documents) / (n_readings * n_documents);
    float divergence = sum_of(divergences, n_documents) / n_documents;
    float contrast = n_contrasts ? sum_of(contrasts, n_contrasts * n_documents) / n_documents : 0;
    if (threadIdx.x == 0) {
        *loss = -value + *beta * divergence + *weight * contrast;
        *likelihood = value;
        *kl = divergence / n_readings;
        by[0] = -1.0f / (n_readings * n_documents);
        by[1] = *beta / n_documents;
        by[2] = *weight / n_documents;
    }
}
