/* Value and gradient of the two-parameter logistic likelihood in two dimensions, one pass over the cells: what a loop by hand
   costs. For the benchmark only; nothing else uses it. Compiled with -O3 -march=native -ffast-math. */
#include <math.h>
#include <stdint.h>

double value_and_gradient(int models, int items, const float *restrict theta, const float *restrict a,
                          const float *restrict d, const int8_t *restrict y, float *restrict theta_gradient,
                          float *restrict a_gradient, float *restrict d_gradient) {
    const float *restrict a0 = a, *restrict a1 = a + items;
    float *restrict g0 = a_gradient, *restrict g1 = a_gradient + items;
    double total = 0.0;
    for (int j = 0; j < items; j++) g0[j] = g1[j] = d_gradient[j] = 0.0f;
    for (int i = 0; i < models; i++) {
        const float t0 = theta[2 * i], t1 = theta[2 * i + 1];
        const int8_t *restrict row = y + (long)i * items;
        float sum = 0.0f, s0 = 0.0f, s1 = 0.0f;
        for (int j = 0; j < items; j++) {
            const float eta = a0[j] * t0 + a1[j] * t1 + d[j];
            const float seen = row[j] >= 0 ? 1.0f : 0.0f;
            const float size = fabsf(eta), shrink = expf(-size);
            const float larger = 1.0f / (1.0f + shrink);
            const float p = eta >= 0.0f ? larger : shrink * larger;
            const float right = row[j] == 1 ? 1.0f : 0.0f;
            const float score = seen * (right - p);
            sum += seen * (right * eta - (eta > 0.0f ? eta : 0.0f) + logf(larger));
            s0 += score * a0[j];
            s1 += score * a1[j];
            g0[j] += score * t0;
            g1[j] += score * t1;
            d_gradient[j] += score;
        }
        total += sum;
        theta_gradient[2 * i] = s0;
        theta_gradient[2 * i + 1] = s1;
    }
    return total;
}
