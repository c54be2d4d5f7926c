// Where something came out, the derivative is the factor that scaled it.
extern "C" __global__ void dropped_relu_backward(const float *out, const float *gradient, const float *rate,
                                                 float *by_x, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        by_x[i] = out[i] > 0 ? gradient[i] / (1 - *rate) : 0;
}
