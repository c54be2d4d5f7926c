// A warp has one part of the code of one row; documents come first, then a neighbour of each.
struct Part { int row, part, first, width; };  // the place of its first bit among the locations; its bits

__device__ bool part_of_warp(int n_rows, int bits, int n_parts, Part &mine)
{
    int warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    mine.row = warp % n_rows;
    mine.part = warp / n_rows;
    mine.width = bits / n_parts;
    mine.first = mine.row * bits + mine.part * mine.width;
    return mine.part < n_parts;
}

__device__ float sum_of_warp(float x)
{
    for (int step = 16; step; step /= 2)
        x += __shfl_xor_sync(0xffffffff, x, step);
    return x;
}

__device__ float probability(float location) { return 1 / (1 + expf(-location)); }

// The code as +1 and -1, or its mean.
__device__ float code_of(float location, int are_bits)
{
    float p = probability(location);
    return are_bits ? (p > 0.5f ? 1.0f : -1.0f) : 2 * p - 1;
}

__device__ float length_of(const float *locations, const Part &mine, int are_bits)
{
    float sum = 0;
    for (int i = threadIdx.x % 32; i < mine.width; i += 32) {
        float code = code_of(locations[mine.first + i], are_bits);
        sum += code * code;
    }
    return fmaxf(sqrtf(sum_of_warp(sum)), 1e-12f);
}

// Codes over their lengths: (parts, rows, bits of a part).
extern "C" __global__ void contrast_codes(const float *locations, float *units, int n_rows, int bits, int n_parts,
                                          int are_bits)
{
    Part mine;
    if (!part_of_warp(n_rows, bits, n_parts, mine))
        return;
    float length = length_of(locations, mine, are_bits);
    float *unit = units + ((long long)mine.part * n_rows + mine.row) * mine.width;
    for (int i = threadIdx.x % 32; i < mine.width; i += 32)
        unit[i] = code_of(locations[mine.first + i], are_bits) / length;
}

// By the locations; through a threshold as if it were not there. d (x / |x|) = (dx - x (x dx) / |x|^2) / |x|.
extern "C" __global__ void contrast_codes_backward(const float *locations, const float *by_units,
                                                   float *by_locations, int n_rows, int bits, int n_parts,
                                                   int are_bits)
{
    Part mine;
    if (!part_of_warp(n_rows, bits, n_parts, mine))
        return;
    float length = length_of(locations, mine, are_bits), along = 0;
    const float *by_unit = by_units + ((long long)mine.part * n_rows + mine.row) * mine.width;
    for (int i = threadIdx.x % 32; i < mine.width; i += 32)
        along += by_unit[i] * code_of(locations[mine.first + i], are_bits) / length;
    along = sum_of_warp(along);
    for (int i = threadIdx.x % 32; i < mine.width; i += 32) {
        float location = locations[mine.first + i], p = probability(location);
        float by_code = (by_unit[i] - along * code_of(location, are_bits) / length) / length;
        by_locations[mine.first + i] = by_code * 2 * p * (1 - p);
    }
}
