// Adam of some weights, by a block of threads. Which ones: fused/adam.py puts the calls behind this.
struct Settings { float log_beta1, log_beta2, rest1, beta2, rest2, epsilon; };

__device__ void update_one(float &weight, float gradient, float &mean, float &square,
                           float rate, float root, const Settings &s)
{
    mean += s.rest1 * (gradient - mean);
    square = s.beta2 * square + s.rest2 * gradient * gradient;
    weight -= rate * mean / (sqrtf(square) / root + s.epsilon);
}

__device__ void update(float *weights, const float *gradients, float *means, float *squares,
                       int n, int block, float rate, float step, const Settings &s)
{
    rate /= -expm1f(step * s.log_beta1);  // averages that started at 0 are too small by this
    float root = sqrtf(-expm1f(step * s.log_beta2));
    int i = 4 * (block * blockDim.x + threadIdx.x);
    size_t together = (size_t)weights | (size_t)gradients | (size_t)means | (size_t)squares;
    if (n % 4 == 0 && together % 16 == 0 && i < n) {
        float4 w = *(float4 *)(weights + i), g = *(const float4 *)(gradients + i);
        float4 m = *(float4 *)(means + i), v = *(float4 *)(squares + i);
        update_one(w.x, g.x, m.x, v.x, rate, root, s);
        update_one(w.y, g.y, m.y, v.y, rate, root, s);
        update_one(w.z, g.z, m.z, v.z, rate, root, s);
        update_one(w.w, g.w, m.w, v.w, rate, root, s);
        *(float4 *)(weights + i) = w;
        *(float4 *)(means + i) = m;
        *(float4 *)(squares + i) = v;
    } else
        for (int j = i; j < i + 4 && j < n; j++)
            update_one(weights[j], gradients[j], means[j], squares[j], rate, root, s);
}

// Words x of documents, (documents, words), and the derivative by what the layer put out, (documents, outputs).
// A warp lists the documents of one word; then a thread updates four of its weights at a time.
__device__ void update_words(float *weights, const float *x, const float *by_output, float *means,
                             float *squares, int n_words, int n_outputs, int n_documents, int block,
                             float rate, float step, const Settings &s)
{
    __shared__ float amounts[WORDS][DOCUMENTS];
    __shared__ short documents[WORDS][DOCUMENTS];
    __shared__ int counts[WORDS];
    rate /= -expm1f(step * s.log_beta1);
    float root = sqrtf(-expm1f(step * s.log_beta2));
    int first = block * WORDS, lane = threadIdx.x % 32, own = threadIdx.x / 32;
    if (first + own < n_words) {
        int count = 0;
        for (int start = 0; start < n_documents; start += 32) {
            int document = start + lane;
            float amount = document < n_documents ? x[(long long)document * n_words + first + own] : 0;
            unsigned has = __ballot_sync(0xffffffff, amount != 0);
            if (amount != 0) {
                int place = count + __popc(has & ((1u << lane) - 1));
                amounts[own][place] = amount;
                documents[own][place] = document;
            }
            count += __popc(has);
        }
        if (lane == 0)
            counts[own] = count;
    }
    __syncthreads();
    int fours = n_outputs / 4;
    for (int item = threadIdx.x; item < WORDS * fours; item += blockDim.x) {
        int word = item / fours, four = item % fours;
        if (first + word >= n_words)
            break;
        float4 g = make_float4(0, 0, 0, 0);
        for (int i = 0; i < counts[word]; i++) {
            float4 o = ((const float4 *)by_output)[documents[word][i] * fours + four];
            float amount = amounts[word][i];
            g.x += amount * o.x;
            g.y += amount * o.y;
            g.z += amount * o.z;
            g.w += amount * o.w;
        }
        long long place = (long long)(first + word) * fours + four;
        float4 w = ((float4 *)weights)[place], m = ((float4 *)means)[place], v = ((float4 *)squares)[place];
        update_one(w.x, g.x, m.x, v.x, rate, root, s);
        update_one(w.y, g.y, m.y, v.y, rate, root, s);
        update_one(w.z, g.z, m.z, v.z, rate, root, s);
        update_one(w.w, g.w, m.w, v.w, rate, root, s);
        ((float4 *)weights)[place] = w;
        ((float4 *)means)[place] = m;
        ((float4 *)squares)[place] = v;
    }
}

// The derivative by what a layer put out, (rows, outputs), whose sum over the rows is that by its bias. A block has
// 64 outputs, and each of its four groups of threads every fourth row.
__device__ void update_sums(float *weights, const float *by_output, float *means, float *squares, int n_outputs,
                            int n_rows, int block, float rate, float step, const Settings &s)
{
    __shared__ float sums[4][64];
    int own = threadIdx.x % 64, group = threadIdx.x / 64, i = block * 64 + own;
    float sum = 0;
    if (i < n_outputs)
#pragma unroll 8
        for (int row = group; row < n_rows; row += 4)
            sum += by_output[(long long)row * n_outputs + i];
    sums[group][own] = sum;
    __syncthreads();
    if (group > 0 || i >= n_outputs)
        return;
    rate /= -expm1f(step * s.log_beta1);
    float root = sqrtf(-expm1f(step * s.log_beta2));
    float gradient = sums[0][own] + sums[1][own] + sums[2][own] + sums[3][own];
    update_one(weights[i], gradient, means[i], squares[i], rate, root, s);
}
