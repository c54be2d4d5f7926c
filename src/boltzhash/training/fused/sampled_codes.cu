#include "chance.cuh"
// What the two kernels of sampled codes share: where a document's numbers are, and what is drawn for it.
struct Sizes { int n_documents, n_draws, bits, rank, networks; };

__device__ float softplus(float x) { return fmaxf(x, 0) + log1pf(expf(-fabsf(x))); }

__device__ float sigmoid(float x) { return 1 / (1 + expf(-x)); }

// Where the network that makes a bit puts its location, its deviation, and the first of its couplings.
struct Places { int location, deviation, couplings; };

__device__ Places places_of(int bit, const Sizes &n)
{
    int width = n.bits / n.networks, first = bit / width * width * (2 + n.rank), i = bit % width;
    Places places = {first + i, first + width + i, first + 2 * width + i * n.rank};
    return places;
}

// In shared memory, by a whole block: e1 (draws x bits), e2 (draws x rank), the decoder's noise (bits), all
// N(0, 1); then two uniform numbers of each bit.
__device__ int n_normals(const Sizes &n) { return n.n_draws * (n.bits + n.rank) + n.bits; }

__device__ void draw_all(float *numbers, unsigned long long seed, int draw, int document, const Sizes &n)
{
    int normal_fours = (n_normals(n) + 3) / 4, fours = normal_fours + (2 * n.bits + 3) / 4;
    for (int four = threadIdx.x; four < fours; four += blockDim.x) {
        uint4 c = chance(seed, draw, document * fours + four);
        float4 drawn;
        if (four < normal_fours) {
            float2 one = normals(c.x, c.y), other = normals(c.z, c.w);
            drawn = make_float4(one.x, one.y, other.x, other.y);
        } else
            drawn = make_float4(uniform(c.x), uniform(c.y), uniform(c.z), uniform(c.w));
        ((float4 *)numbers)[four] = drawn;
    }
}

__device__ const float *uniforms_in(const float *numbers, const Sizes &n)
{
    return numbers + (n_normals(n) + 3) / 4 * 4;
}

// A block for each row of what the network put out, of the documents and then of their neighbours, if there are
// any. Of all: the location. Of a document: r^(0..k) ~ N(mu, D + UU^T) (eq. 26), D^1/2 = softplus, U = tanh / v;
// s ~ Bernoulli(sigma(r^(0))) plus noise; s~ ~ Bernoulli(sigma(r^(1))), log h_k(s~) (eq. 21) - log 2^-m, and each
// component's share in h_k(s~). What is drawn is not kept: it can be drawn again.
extern "C" __global__ void sampled_codes(const float *heads, const float *bias, const float *noise,
                                         const unsigned long long *seed, int draw, float *locations, float *draws,
                                         float *noisy, float *divergence, float *shares, unsigned char *is_on,
                                         int n_documents, int n_draws, int bits, int rank, int networks)
{
    extern __shared__ float4 memory[];
    Sizes n = {n_documents, n_draws, bits, rank, networks};
    int row = blockIdx.x, lane = threadIdx.x % 32, k = n_draws - 1;
    const float *own = heads + (long long)row * bits * (2 + rank);
    for (int bit = threadIdx.x; bit < bits; bit += blockDim.x) {
        int place = places_of(bit, n).location;
        locations[row * bits + bit] = own[place] + bias[place];
    }
    if (row >= n_documents)
        return;
    float *numbers = (float *)memory;
    const float *u = uniforms_in(numbers, n), *e2 = numbers + n_draws * bits, *for_noise = e2 + n_draws * rank;
    float *factor = (float *)u + (2 * bits + 3) / 4 * 4, *r = factor + bits * rank, *s = r + n_draws * bits;
    float *log_probs = s + bits;
    draw_all(numbers, *seed, draw, row, n);
    for (int i = threadIdx.x; i < bits * rank; i += blockDim.x) {
        int place = places_of(i / rank, n).couplings + i % rank;
        factor[i] = tanhf(own[place] + bias[place]) / rank;
    }
    __syncthreads();
    for (int i = threadIdx.x; i < n_draws * bits; i += blockDim.x) {
        int number = i / bits, bit = i % bits;
        Places at = places_of(bit, n);
        float sum = own[at.location] + bias[at.location];
        sum += softplus(own[at.deviation] + bias[at.deviation]) * numbers[i];
        for (int j = 0; j < rank; j++)
            sum += factor[bit * rank + j] * e2[number * rank + j];
        r[i] = sum;
        draws[(long long)row * n_draws * bits + i] = sum;
    }
    __syncthreads();
    for (int bit = threadIdx.x; bit < bits; bit += blockDim.x) {
        Places at = places_of(bit, n);
        noisy[row * bits + bit] = (sigmoid(r[bit]) > u[bit]) + *noise * for_noise[bit];
        s[bit] = sigmoid(r[bits + bit]) > u[bits + bit];
        is_on[row * bits + bit] = own[at.location] + bias[at.location] > 0;
    }
    __syncthreads();
    for (int c = threadIdx.x / 32; c < k; c += blockDim.x / 32) {
        float sum = 0;
        for (int bit = lane; bit < bits; bit += 32)
            sum += s[bit] * r[(1 + c) * bits + bit] - softplus(r[(1 + c) * bits + bit]);
        for (int step = 16; step; step /= 2)
            sum += __shfl_down_sync(0xffffffff, sum, step);
        if (lane == 0)
            log_probs[c] = sum;
    }
    __syncthreads();
    float highest = log_probs[0], total = 0;
    for (int c = 1; c < k; c++)
        highest = fmaxf(highest, log_probs[c]);
    for (int c = 0; c < k; c++)
        total += expf(log_probs[c] - highest);
    float log_total = highest + logf(total);
    if (threadIdx.x == 0)
        divergence[row] = log_total - logf((float)k) + bits * 0.69314718f;
    for (int c = threadIdx.x; c < k; c += blockDim.x)
        shares[row * k + c] = expf(log_probs[c] - log_total);
}

// The derivative by what the network put out, of documents and their neighbours; by_locations may be missing.
// Straight through: ds = scale * d sigma(r). d log h_k(s~) = sum_c share_c (s~ - sigma(r_c)) dr_c + sum_c share_c r_c ds~.
extern "C" __global__ void sampled_codes_backward(const float *heads, const float *bias, const float *scale,
                                                  const unsigned long long *seed, int draw, const float *draws,
                                                  const float *shares, const float *by_noisy,
                                                  const float *by_divergence, int by_divergence_stride,
                                                  const float *by_locations, int has_locations, float *by_heads,
                                                  int n_documents, int n_draws, int bits, int rank, int networks)
{
    extern __shared__ float4 memory[];
    Sizes n = {n_documents, n_draws, bits, rank, networks};
    int row = blockIdx.x, k = n_draws - 1, width = bits * (2 + rank);
    const float *own = heads + (long long)row * width;
    float *by_own = by_heads + (long long)row * width;
    if (row >= n_documents) {
        for (int i = threadIdx.x; i < width; i += blockDim.x)
            by_own[i] = 0;
        __syncthreads();
        for (int bit = threadIdx.x; has_locations && bit < bits; bit += blockDim.x)
            by_own[places_of(bit, n).location] = by_locations[row * bits + bit];
        return;
    }
    float *numbers = (float *)memory;
    const float *u = uniforms_in(numbers, n), *e2 = numbers + n_draws * bits;
    float *by_r = (float *)u + (2 * bits + 3) / 4 * 4;
    draw_all(numbers, *seed, draw, row, n);
    __syncthreads();
    const float *r = draws + (long long)row * n_draws * bits, *share = shares + row * k;
    float g = by_divergence[row * by_divergence_stride];
    for (int bit = threadIdx.x; bit < bits; bit += blockDim.x) {
        float p = sigmoid(r[bit]), first = sigmoid(r[bits + bit]), s = first > u[bits + bit], by_s = 0;
        by_r[bit] = by_noisy[row * bits + bit] * *scale * p * (1 - p);
        for (int c = 0; c < k; c++) {
            float of_c = r[(1 + c) * bits + bit];
            by_r[(1 + c) * bits + bit] = g * share[c] * (s - sigmoid(of_c));
            by_s += share[c] * of_c;
        }
        by_r[bits + bit] += g * by_s * *scale * first * (1 - first);
        float by_location = has_locations ? by_locations[row * bits + bit] : 0, by_deviation = 0;
        for (int i = bit; i < n_draws * bits; i += bits) {
            by_location += by_r[i];
            by_deviation += by_r[i] * numbers[i];
        }
        Places at = places_of(bit, n);
        by_own[at.location] = by_location;
        by_own[at.deviation] = by_deviation * sigmoid(own[at.deviation] + bias[at.deviation]);
    }
    __syncthreads();
    for (int i = threadIdx.x; i < bits * rank; i += blockDim.x) {
        int bit = i / rank, j = i % rank, place = places_of(bit, n).couplings + j;
        float sum = 0, coupling = tanhf(own[place] + bias[place]);
        for (int number = 0; number < n_draws; number++)
            sum += by_r[number * bits + bit] * e2[number * rank + j];
        by_own[place] = sum * (1 - coupling * coupling) / rank;
    }
}
