#include "chance.cuh"
// relu(sum of the parts + bias), then dropout: kept where u >= rate, and scaled up by what is lost. A thread does
// four outputs of a document. What is not a number stays so, to be noticed.
__device__ float dropped(float x, unsigned bits, float rate)
{
    return x <= 0 || uniform(bits) < rate ? 0 : x / (1 - rate);
}

extern "C" __global__ void dropped_layer(const float4 *parts, int n_parts, const float4 *bias, const float *rate,
                                         const unsigned long long *seed, int draw, float4 *out, int n, int width)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float4 x = bias[i % width];
    for (int part = 0; part < n_parts; part++) {
        float4 more = parts[(long long)part * n + i];
        x.x += more.x;
        x.y += more.y;
        x.z += more.z;
        x.w += more.w;
    }
    uint4 c = chance(*seed, draw, i);
    out[i] = make_float4(dropped(x.x, c.x, *rate), dropped(x.y, c.y, *rate), dropped(x.z, c.z, *rate),
                         dropped(x.w, c.w, *rate));
}

// Where something came out, the derivative is the factor that scaled it.
extern "C" __global__ void dropped_layer_backward(const float *out, const float *gradient, const float *rate,
                                                 float *by_x, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        by_x[i] = out[i] > 0 ? gradient[i] / (1 - *rate) : 0;
}
