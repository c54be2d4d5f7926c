// relu(x) with dropout: kept where u >= rate, and scaled up by what is lost.
extern "C" __global__ void dropped_relu(const float *x, const float *u, const float *rate, float *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = x[i] > 0 && u[i] >= *rate ? x[i] / (1 - *rate) : 0;
}
