/* Many queries over the same codes: bits of 512 codes side by side.
 *
 * A slice has one plane of 512 bits for every bit of a code, and a last one for the rows that are allowed.
 * Planes that differ from the query's bit are counted by full adders, as a circuit would, 512 codes at once:
 * sums in one plane, carries in the next. The count begins at a power of 2 less the limit, so that the carry
 * out of its last plane says which codes are not near. To cut codes into slices costs as much as a few
 * queries do, and then serves all of a group.
 *
 * A scan_*.c that includes this has defined TARGET, INLINE and short_distance, a VECTOR of uint64_t,
 * sum_of_3 and majority_of_3 of vectors, and any_bit of one.
 */
#ifndef BOLTZHASH_SLICED_H
#define BOLTZHASH_SLICED_H

#include "scan.h"

#define PARTS (SLICE_WORDS * sizeof(uint64_t) / sizeof(VECTOR)) /* vectors of a plane */
/* Slices that are counted together; where a plane is one vector, TOGETHER of them. */
#define SLICES_TOGETHER (PARTS == 1 ? TOGETHER : 1)

/* Swaps bits j.. of each 2 j bits of a with the bits 0..j-1 of b. */
INLINE void swap_bits(VECTOR *a, VECTOR *b, uint64_t j) {
    VECTOR swapped = ((*a >> j) ^ *b) & (UINT64_MAX / (((uint64_t)1 << j) + 1));
    *a ^= swapped << j;
    *b ^= swapped;
}

/* Three of the six steps that transpose 64 words of 64 bits, on 8 of them that are `apart`. */
INLINE void transpose_8(VECTOR *words, size_t apart) {
    VECTOR x[8];
    for (size_t i = 0; i < 8; i++) x[i] = words[i * apart * PARTS];
    for (size_t i = 0; i < 4; i++) swap_bits(&x[i], &x[i + 4], 4 * apart);
    for (size_t i = 0; i < 8; i += i & 1 ? 3 : 1) swap_bits(&x[i], &x[i + 2], 2 * apart);
    for (size_t i = 0; i < 8; i += 2) swap_bits(&x[i], &x[i + 1], apart);
    for (size_t i = 0; i < 8; i++) words[i * apart * PARTS] = x[i];
}

/* Row 8 i + j of a slice is bit i of word j of its planes: so 8 words of codes are a vector as they come. */
TARGET static void slice(const struct codes *codes, size_t first, void *memory) {
    VECTOR *planes = memory;
    size_t n_bytes = codes->n_bytes;
    for (size_t at = 0; at < n_bytes; at += 8) {
        union {
            uint64_t words[SLICE_ROWS];
            VECTOR vectors[64 * PARTS];
        } x;
        const uint8_t *code = codes->bytes + first * n_bytes + at;
        size_t n = n_bytes - at < 8 ? n_bytes - at : 8;
        for (size_t i = 0; i < SLICE_ROWS; i++, code += n_bytes)
            x.words[i] = n == 8 ? load_word(code) : load_tail(code, n);
        for (size_t part = 0; part < PARTS; part++) {
            for (size_t i = 0; i < 8; i++) transpose_8(x.vectors + i * PARTS + part, 8);
            for (size_t i = 0; i < 64; i += 8) transpose_8(x.vectors + i * PARTS + part, 1);
        }
        memcpy(planes, x.vectors, 8 * n * SLICE_WORDS * sizeof(uint64_t));
        planes += 8 * n * PARTS;
    }
    uint64_t allowed[SLICE_WORDS];
    memset(allowed, codes->allowed == NULL ? 0xff : 0, sizeof allowed);
    for (size_t i = 0; codes->allowed != NULL && i < SLICE_ROWS; i++)
        allowed[i % SLICE_WORDS] |= (uint64_t)(codes->allowed[first + i] != 0) << i / SLICE_WORDS;
    memcpy(planes, allowed, sizeof allowed);
}

/* The same plane of several parts or slices. They are counted together: a sum waits for the one before it, and
 * while one waits the other is taken. */
struct side_by_side {
    VECTOR of[TOGETHER];
};

#define EACH(i) for (size_t i = 0; i < TOGETHER; i++)

/* What was counted so far, but for multiples of 64: one plane for each bit of the counts. */
struct counts {
    struct side_by_side ones, twos, fours, eights, sixteens, thirty_twos;
};

/* Adds two bits to a plane of counts; returns the carry. */
INLINE struct side_by_side add(struct side_by_side *sum, struct side_by_side a, struct side_by_side b) {
    struct side_by_side carry;
    EACH(i) carry.of[i] = majority_of_3(sum->of[i], a.of[i], b.of[i]);
    EACH(i) sum->of[i] = sum_of_3(sum->of[i], a.of[i], b.of[i]);
    return carry;
}

/* The planes of codes, from a bit on, and those bits of the query, each as a word. */
struct compared {
    const VECTOR *planes;
    size_t apart; /* what is counted together */
    const uint64_t *query;
};

INLINE struct side_by_side differing_rows(struct compared of, size_t bit) {
    struct side_by_side rows;
    EACH(i) rows.of[i] = of.planes[bit * PARTS + i * of.apart] ^ of.query[bit];
    return rows;
}

INLINE struct compared from_bit(struct compared of, size_t bit) {
    return (struct compared){of.planes + bit * PARTS, of.apart, of.query + bit};
}

INLINE struct side_by_side add_2(struct counts *counts, struct compared of) {
    return add(&counts->ones, differing_rows(of, 0), differing_rows(of, 1));
}

/* Defines NAME: counts as many bits as its name says by HALF of them twice; returns the carry of that. */
#define DEFINE_ADD(NAME, N, HALF, SUM)                                                            \
    INLINE struct side_by_side NAME(struct counts *counts, struct compared of) {                  \
        struct side_by_side carry = HALF(counts, of);                                             \
        return add(&counts->SUM, carry, HALF(counts, from_bit(of, (N) / 2)));                     \
    }
DEFINE_ADD(add_4, 4, add_2, twos)
DEFINE_ADD(add_8, 8, add_4, fours)
DEFINE_ADD(add_16, 16, add_8, eights)
DEFINE_ADD(add_32, 32, add_16, sixteens)
DEFINE_ADD(add_64, 64, add_32, thirty_twos)

/* Counts the last 1 to 7 bytes of codes; each kind of carry goes up to a carry of 64. */
INLINE struct side_by_side add_tail(struct counts *counts, struct compared of, size_t n) {
    const struct side_by_side none = {0};
    struct side_by_side carry = none, up;
    if (n & 4) {
        up = add(&counts->thirty_twos, add_32(counts, of), none);
        EACH(i) carry.of[i] |= up.of[i];
        of = from_bit(of, 32);
    }
    if (n & 2) {
        up = add(&counts->sixteens, add_16(counts, of), none);
        up = add(&counts->thirty_twos, up, none);
        EACH(i) carry.of[i] |= up.of[i];
        of = from_bit(of, 16);
    }
    if (n & 1) {
        up = add(&counts->eights, add_8(counts, of), none);
        up = add(&counts->sixteens, up, none);
        up = add(&counts->thirty_twos, up, none);
        EACH(i) carry.of[i] |= up.of[i];
    }
    return carry; /* less than 64 were added: there was at most one */
}

#define MORE_PLANES 4 /* of counts: up to 64 << 4, more than the limit of a sliced code can be */

INLINE struct side_by_side filled(uint64_t bit) {
    struct side_by_side planes;
    EACH(i) planes.of[i] = (VECTOR){0} - (bit & 1);
    return planes;
}

/* The rows whose distance is below the limit. */
INLINE struct side_by_side near_rows(struct compared of, size_t n_bytes, uint64_t limit) {
    size_t more = 0;
    while ((uint64_t)64 << more < limit) more++;
    uint64_t start = ((uint64_t)64 << more) - limit;
    struct counts counts = {filled(start), filled(start >> 1), filled(start >> 2),
                            filled(start >> 3), filled(start >> 4), filled(start >> 5)};
    struct side_by_side higher[MORE_PLANES], near = filled(1);
    for (size_t i = 0; i < more; i++) higher[i] = filled(start >> (6 + i));
    for (size_t left = n_bytes; left > 0;) {
        size_t n = left < 8 ? left : 8;
        struct side_by_side carry = n == 8 ? add_64(&counts, of) : add_tail(&counts, of, n);
        for (size_t i = 0; i < more; i++) carry = add(&higher[i], carry, (struct side_by_side){0});
        VECTOR any = {0};
        EACH(i) any |= near.of[i] &= ~carry.of[i];
        of = from_bit(of, 8 * n);
        left -= n;
        if (left > 0 && !any_bit(any)) break; /* the rest only adds to the distances */
    }
    return near;
}

/* Offers the rows that are near, in their order. Rare beside the rows that are scanned. */
TARGET static __attribute__((noinline)) void offer_rows(const struct codes *codes, size_t first,
                                                        const uint64_t near[SLICE_WORDS],
                                                        const uint8_t *query, struct nearest *nearest) {
    uint64_t any = 0;
    for (size_t j = 0; j < SLICE_WORDS; j++) any |= near[j];
    for (; any != 0; any &= any - 1) {
        int i = __builtin_ctzll(any);
        unsigned of_8 = 0;
        for (size_t j = 0; j < SLICE_WORDS; j++) of_8 |= (unsigned)(near[j] >> i & 1) << j;
        for (; of_8 != 0; of_8 &= of_8 - 1) {
            size_t row = first + SLICE_WORDS * (size_t)i + (size_t)__builtin_ctz(of_8);
            uint32_t distance =
                short_distance(codes->bytes + row * codes->n_bytes, query, codes->n_bytes);
            if (distance < nearest->limit) nearest_offer(nearest, distance, row);
        }
    }
}

TARGET static void scan_slices(const struct codes *codes, size_t first, size_t n, const void *slices,
                               const uint8_t *query, struct nearest *nearest) {
    uint64_t bits[8 * MAX_SLICED_BYTES]; /* of the query, each as a word */
    const size_t n_bytes = codes->n_bytes, n_planes = SLICE_BYTES(n_bytes) / sizeof(VECTOR);
    for (size_t at = 0; at < n_bytes; at += 8) {
        uint64_t word = n_bytes - at < 8 ? load_tail(query + at, n_bytes - at) : load_word(query + at);
        for (size_t i = 0; i < 64; i++) bits[8 * at + i] = -(word >> i & 1);
    }
    for (size_t i = 0; i < n && nearest->limit > 0; i += SLICES_TOGETHER) {
        /* Where the last is alone it is counted twice. */
        const size_t apart = SLICES_TOGETHER == 1 ? 1 : i + 1 < n ? n_planes : 0;
        const VECTOR *planes = (const VECTOR *)slices + i * n_planes, *allowed = planes + 8 * n_bytes * PARTS;
        VECTOR near[PARTS * SLICES_TOGETHER], any = {0};
        for (size_t part = 0; part < PARTS * SLICES_TOGETHER; part += TOGETHER) {
            struct side_by_side rows =
                near_rows((struct compared){planes + part, apart, bits}, n_bytes, nearest->limit);
            EACH(j) any |= near[part + j] = rows.of[j] & allowed[part + j * apart];
        }
        if (!any_bit(any)) continue;
        for (size_t j = 0; j < SLICES_TOGETHER && i + j < n; j++) {
            uint64_t words[SLICE_WORDS];
            memcpy(words, near + j * PARTS, sizeof words);
            offer_rows(codes, first + (i + j) * SLICE_ROWS, words, query, nearest);
        }
    }
}

#endif
