// Of each document and part, by a warp: log sum exp of its row and of its column of cosines over the temperature,
// and how hard it is to tell whose neighbour is whose, the mean of both. Cosines are (parts, n, n).
__device__ float log_sum_exp(const float *x, int n, int stride, float temperature)
{
    float highest = -1e30f, sum = 0;
    for (int i = threadIdx.x % 32; i < n; i += 32)
        highest = fmaxf(highest, x[(long long)i * stride] / temperature);
    for (int step = 16; step; step /= 2)
        highest = fmaxf(highest, __shfl_xor_sync(0xffffffff, highest, step));
    for (int i = threadIdx.x % 32; i < n; i += 32)
        sum += expf(x[(long long)i * stride] / temperature - highest);
    for (int step = 16; step; step /= 2)
        sum += __shfl_xor_sync(0xffffffff, sum, step);
    return highest + logf(sum);
}

extern "C" __global__ void contrast_values(const float *cosines, const float *temperature, float *of_rows,
                                           float *of_columns, float *values, int n, int n_parts)
{
    int warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32, i = warp % n;
    if (warp >= n * n_parts)
        return;
    const float *part = cosines + (long long)(warp / n) * n * n;
    float row = log_sum_exp(part + (long long)i * n, n, 1, *temperature);
    float column = log_sum_exp(part + i, n, n, *temperature);
    if (threadIdx.x % 32 == 0) {
        of_rows[warp] = row;
        of_columns[warp] = column;
        values[warp] = (row + column) / 2 - part[(long long)i * n + i] / *temperature;
    }
}

// By the cosines: half of both softmaxes, less 1 on the diagonal, over the temperature.
extern "C" __global__ void contrast_values_backward(const float *cosines, const float *temperature,
                                                    const float *of_rows, const float *of_columns,
                                                    const float *gradient, int gradient_stride, float *by_cosines,
                                                    int n, int n_parts)
{
    long long place = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (place >= (long long)n_parts * n * n)
        return;
    int column = place % n, row = place / n % n, first = place / n / n * n;
    float x = cosines[place] / *temperature;
    float of_row = gradient[(first + row) * gradient_stride], of_column = gradient[(first + column) * gradient_stride];
    float by = of_row * expf(x - of_rows[first + row]) + of_column * expf(x - of_columns[first + column]);
    by_cosines[place] = (by / 2 - (row == column ? of_row : 0)) / *temperature;
}
