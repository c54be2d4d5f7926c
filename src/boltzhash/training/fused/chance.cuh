// Random numbers that are counted, not remembered: the same seed, draw and place give the same four, so a
// backward pass draws again what the forward pass drew. Philox 4x32-10: Salmon, Moraes, Dror and Shaw
// (2011), Parallel Random Numbers: As Easy as 1, 2, 3.
__device__ uint4 chance(unsigned long long seed, unsigned draw, unsigned place)
{
    uint4 c = make_uint4(place, draw, 0, 0);
    unsigned a = (unsigned)seed, b = (unsigned)(seed >> 32);
    for (int round = 0; round < 10; round++) {
        unsigned high0 = __umulhi(0xD2511F53u, c.x), low0 = 0xD2511F53u * c.x;
        unsigned high1 = __umulhi(0xCD9E8D57u, c.z), low1 = 0xCD9E8D57u * c.z;
        c = make_uint4(high1 ^ c.y ^ a, low1, high0 ^ c.w ^ b, low0);
        a += 0x9E3779B9u;
        b += 0xBB67AE85u;
    }
    return c;
}

// From 0 up to 1, without 1.
__device__ float uniform(unsigned bits) { return (bits >> 8) * 0x1p-24f; }

// Two draws of N(0, 1): Box and Muller.
__device__ float2 normals(unsigned one, unsigned other)
{
    float radius = sqrtf(-2 * logf(((one >> 8) + 1) * 0x1p-24f)), sine, cosine;
    sincospif(2 * uniform(other), &sine, &cosine);
    return make_float2(radius * cosine, radius * sine);
}
