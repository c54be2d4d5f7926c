/* The loops run over the bits of one document, which stand side by side, so that they become vectors. */

#include "codes.h"

#include <math.h>
#include <string.h>

#include "each_cpu.h"
#include "exponential.h"
#include "random.h"

IN_LOOP float logistic(float x)
{
    const float e = exponential(-fabsf(x)), rest = 1.0f / (1.0f + e);
    return x < 0 ? e * rest : rest;
}

/* log(1 + e^x); what is lost when 1 is added to a small number is added afterwards */
IN_LOOP float softplus(float x)
{
    const float e = exponential(-fabsf(x)), y = 1.0f + e;
    return (x > 0 ? x : 0.0f) + (logarithm(y) + (e - (y - 1.0f)) / y);
}

IN_LOOP float hyperbolic_tangent(float x)
{
    const float e = exponential(-2.0f * fabsf(x)), t = (1.0f - e) / (1.0f + e);
    return x < 0 ? -t : t;
}

/* Where the numbers of a document are */
typedef struct {
    const float *outputs, *e1, *e2, *for_noise, *uniforms;
    float *draws;              /* r (draws x bits) */
    float *deviations;         /* bits */
    float *couplings;          /* tanh (rank x bits): U is this over the rank */
    float *s_tilde, *shares;   /* bits; those of the components in h_k(s~) */
} Document;

size_t kept_of_codes(const Codes *t)
{
    return t->n_bits * (t->n_draws + t->rank + 2) + t->n_draws - 1;
}

size_t room_for_codes(const Codes *t) { return t->n_bits * (t->n_draws + t->rank + 2); }

IN_LOOP Document document_of(const Codes *t, size_t i)
{
    const size_t m = t->n_bits, drawn = t->n_draws * (m + t->rank) + m;
    Document d = {.outputs = t->outputs + i * m * (2 + t->rank), .uniforms = t->uniforms + i * 2 * m};
    d.e1 = t->normals + i * drawn;
    d.e2 = d.e1 + t->n_draws * m;
    d.for_noise = d.e2 + t->n_draws * t->rank;
    d.draws = t->kept + i * kept_of_codes(t);
    d.deviations = d.draws + t->n_draws * m;
    d.couplings = d.deviations + m;
    d.s_tilde = d.couplings + t->rank * m;
    d.shares = d.s_tilde + m;
    return d;
}

/* mu, D^1/2 = softplus and the tanh of U; a network puts them out for its own bits */
IN_LOOP void read_outputs(const Codes *t, const Document *d, float *restrict locations)
{
    const size_t m = t->n_bits, rank = t->rank, width = m / t->n_networks;
    const float *own = d->outputs;
    for (size_t first = 0; first < m; first += width, own += width * (2 + rank)) {
        float *restrict deviations = d->deviations + first;
        for (size_t i = 0; i < width; i++)
            locations[first + i] = own[i];
        for (size_t i = 0; i < width; i++)
            deviations[i] = softplus(own[width + i]);
        for (size_t i = 0; i < width; i++)
            for (size_t j = 0; j < rank; j++)
                d->couplings[j * m + first + i] = own[2 * width + i * rank + j];
    }
    float *restrict couplings = d->couplings;
    for (size_t i = 0; i < rank * m; i++)
        couplings[i] = hyperbolic_tangent(couplings[i]);
}

/* r = mu + D^1/2 e1 + U e2 (eq. 26), every draw */
IN_LOOP void draw_logits(const Codes *t, const Document *d, const float *restrict locations)
{
    const size_t m = t->n_bits, rank = t->rank;
    for (size_t draw = 0; draw < t->n_draws; draw++) {
        float *restrict r = d->draws + draw * m;
        const float *restrict e1 = d->e1 + draw * m, *restrict deviations = d->deviations;
        for (size_t bit = 0; bit < m; bit++)
            r[bit] = locations[bit] + deviations[bit] * e1[bit];
        for (size_t j = 0; j < rank; j++) {
            const float *restrict coupling = d->couplings + j * m;
            const float e2 = d->e2[draw * rank + j] / (float)rank;
            for (size_t bit = 0; bit < m; bit++)
                r[bit] += coupling[bit] * e2;
        }
    }
}

/* log p(s | r) = sum of s r - softplus(r) */
IN_LOOP float bernoulli_log_prob(const float *restrict s, const float *restrict r, size_t m)
{
    float sums[LANES] = {0}, sum = 0;
    size_t bit = 0;
    for (; bit + LANES <= m; bit += LANES)
        for (size_t lane = 0; lane < LANES; lane++)
            sums[lane] += s[bit + lane] * r[bit + lane] - softplus(r[bit + lane]);
    for (; bit < m; bit++)
        sum += s[bit] * r[bit] - softplus(r[bit]);
    for (size_t lane = 0; lane < LANES; lane++)
        sum += sums[lane];
    return sum;
}

/* log h_k(s~) (eq. 21), and each component's share in h_k(s~) */
IN_LOOP float mixture_log_prob(const Codes *t, const Document *d)
{
    const size_t m = t->n_bits, k = t->n_draws - 1;
    float highest = -INFINITY;
    for (size_t c = 0; c < k; c++) {
        d->shares[c] = bernoulli_log_prob(d->s_tilde, d->draws + (1 + c) * m, m);
        highest = d->shares[c] <= highest ? highest : d->shares[c]; /* what is not a number as well */
    }
    float total = 0;
    for (size_t c = 0; c < k; c++)
        total += d->shares[c] = expf(d->shares[c] - highest);
    for (size_t c = 0; c < k; c++)
        d->shares[c] /= total;
    return highest + logf(total / (float)k);
}

IN_LOOP void first_and_last(const Codes *t, int half, size_t *first, size_t *last)
{
    const size_t middle = t->n_documents / 2;
    *first = half ? middle : 0;
    *last = half ? t->n_documents : middle;
}

/* s ~ Bernoulli(sigma(r^(0))) plus noise; s~ ~ Bernoulli(sigma(r^(1))); log h_k(s~) - log p(s~), bits being fair */
FOR_EACH_CPU
void sample_codes(const void *given, int half)
{
    const Codes *t = given;
    const size_t m = t->n_bits;
    size_t first, last;
    first_and_last(t, half, &first, &last);
    for (size_t i = first; i < last; i++) {
        const Document d = document_of(t, i);
        float *restrict locations = t->locations + i * m, *restrict noisy = t->noisy + i * m;
        unsigned char *restrict is_on = t->is_on + i * m;
        read_outputs(t, &d, locations);
        draw_logits(t, &d, locations);
        const float *restrict r = d.draws, *restrict u = d.uniforms, *restrict z = d.for_noise;
        float *restrict s_tilde = d.s_tilde;
        for (size_t bit = 0; bit < m; bit++)
            noisy[bit] = (logistic(r[bit]) > u[bit] ? 1.0f : 0.0f) + t->noise * z[bit];
        for (size_t bit = 0; bit < m; bit++)
            s_tilde[bit] = logistic(r[m + bit]) > u[m + bit] ? 1.0f : 0.0f;
        for (size_t bit = 0; bit < m; bit++)
            is_on[bit] = locations[bit] > 0;
        t->divergences[i] = mixture_log_prob(t, &d) + (float)m * 0.69314718f;
    }
}

/* By every draw, into by_draws. Straight through: ds = scale d sigma(r).
 * d log h_k(s~) = sum_c share_c (s~ - sigma(r_c)) dr_c + sum_c share_c r_c ds~. */
IN_LOOP void derive_draws(const Codes *t, const Document *d, const float *restrict by_noisy, float by_divergence,
                                float *restrict by_draws, float *restrict by_s_tilde)
{
    const size_t m = t->n_bits;
    const float *restrict s_tilde = d->s_tilde, scale = t->scale;
    for (size_t bit = 0; bit < m; bit++) {
        const float p = logistic(d->draws[bit]);
        by_draws[bit] = by_noisy[bit] * scale * p * (1.0f - p);
        by_s_tilde[bit] = 0;
    }
    for (size_t draw = 1; draw < t->n_draws; draw++) {
        const float share = by_divergence * d->shares[draw - 1];
        const float *restrict r = d->draws + draw * m;
        float *restrict by_r = by_draws + draw * m;
        for (size_t bit = 0; bit < m; bit++) {
            by_r[bit] = share * (s_tilde[bit] - logistic(r[bit]));
            by_s_tilde[bit] += share * r[bit];
        }
    }
    for (size_t bit = 0; bit < m; bit++) {
        const float p = logistic(d->draws[m + bit]);
        by_draws[m + bit] += by_s_tilde[bit] * scale * p * (1.0f - p);
    }
}

/* By mu, by D^1/2 and by what U is made of, from all draws: sums over these */
IN_LOOP void derive_posterior(const Codes *t, const Document *d, const float *restrict by_draws,
                                    float *restrict by_locations, float *restrict by_deviations,
                                    float *restrict by_couplings)
{
    const size_t m = t->n_bits, rank = t->rank;
    memset(by_deviations, 0, m * sizeof *by_deviations);
    memset(by_couplings, 0, rank * m * sizeof *by_couplings);
    for (size_t draw = 0; draw < t->n_draws; draw++) {
        const float *restrict by_r = by_draws + draw * m, *restrict e1 = d->e1 + draw * m;
        for (size_t bit = 0; bit < m; bit++) {
            by_locations[bit] += by_r[bit];
            by_deviations[bit] += by_r[bit] * e1[bit];
        }
        for (size_t j = 0; j < rank; j++) {
            const float e2 = d->e2[draw * rank + j] / (float)rank;
            float *restrict by_coupling = by_couplings + j * m;
            for (size_t bit = 0; bit < m; bit++)
                by_coupling[bit] += by_r[bit] * e2;
        }
    }
    const float *restrict couplings = d->couplings;
    for (size_t i = 0; i < rank * m; i++)
        by_couplings[i] *= 1.0f - couplings[i] * couplings[i];
}

FOR_EACH_CPU
void sample_codes_backward(const void *given, int half)
{
    const Codes *t = given;
    const size_t m = t->n_bits, rank = t->rank, width = m / t->n_networks;
    float *by_locations = t->room[half], *by_deviations = by_locations + m;
    float *by_couplings = by_deviations + m, *by_draws = by_couplings + rank * m;
    size_t begin, end;
    first_and_last(t, half, &begin, &end);
    for (size_t i = begin; i < end; i++) {
        const Document d = document_of(t, i);
        /* by_deviations is not in use yet: it is where the derivative by s~ is summed up */
        derive_draws(t, &d, t->by_noisy + i * m, t->by_divergences[i], by_draws, by_deviations);
        memcpy(by_locations, t->by_locations + i * m, m * sizeof *by_locations);
        derive_posterior(t, &d, by_draws, by_locations, by_deviations, by_couplings);
        const float *own = d.outputs;
        float *restrict by_own = t->by_outputs + i * m * (2 + rank);
        for (size_t first = 0; first < m; first += width, own += width * (2 + rank), by_own += width * (2 + rank)) {
            memcpy(by_own, by_locations + first, width * sizeof *by_own);
            for (size_t bit = 0; bit < width; bit++)
                by_own[width + bit] = by_deviations[first + bit] * logistic(own[width + bit]);
            for (size_t bit = 0; bit < width; bit++)
                for (size_t j = 0; j < rank; j++)
                    by_own[2 * width + bit * rank + j] = by_couplings[j * m + first + bit];
        }
    }
}
