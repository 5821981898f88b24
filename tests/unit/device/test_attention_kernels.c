// Kernels of attention and SwiGLU, of every table, against their definitions.
#include <math.h>

#include "server/device/cpu/kernels.h"
#include "tests/support/test.h"

enum { SIZE = 75, COUNT = 21, STRIDE = SIZE + 3 };

static float values[COUNT * STRIDE], query[SIZE], out[STRIDE];
static double expected[STRIDE];

static void fill(float *x, size_t n, double scale)
{
    static uint64_t seed = 3;
    for (size_t i = 0; i < n; i++)
        x[i] = (float)(((double)(test_random(&seed) >> 11) * 0x1p-52 - 1.0) * scale);
}

static void check(const char *what, size_t n, double most)
{
    for (size_t i = 0; i < n; i++)
        if (!(fabs((double)out[i] - expected[i]) <= most * fmax(1.0, fabs(expected[i]))))
            fail_msg("%s, %zu of %zu: %.9g, not %.9g", what, i, n, (double)out[i], expected[i]);
}

// Heads of every size, of every number of positions.
TEST_CASE(sums_of_heads)
{
    const struct cpu_kernels *table;
    fill(values, sizeof values / sizeof *values, 1.0);
    fill(query, SIZE, 1.0);
    for (size_t t = 0; (table = cpu_kernels_at(t)) != NULL; t++) {
        for (size_t size = 1; size <= SIZE; size++) {
            for (size_t count = 1; count <= COUNT; count++) {
                const struct cpu_heads heads = {values, STRIDE, count, size};
                memset(expected, 0, sizeof expected);
                for (size_t i = 0; i < count; i++)
                    for (size_t j = 0; j < size; j++)
                        expected[i] += 0.5 * (double)query[j] * (double)values[i * STRIDE + j];
                table->scores(out, &heads, query, 0.5F);
                check("scores", count, 1e-5);
                memset(expected, 0, sizeof expected);
                for (size_t i = 0; i < count; i++)
                    for (size_t j = 0; j < size; j++)
                        expected[j] += (double)query[i] * (double)values[i * STRIDE + j];
                table->mix(out, &heads, query);
                check("mix", size, 1e-5);
            }
        }
    }
}

TEST_CASE(softmax_of_near_and_far_scores)
{
    const struct cpu_kernels *table;
    for (size_t t = 0; (table = cpu_kernels_at(t)) != NULL; t++) {
        for (size_t n = 1; n <= SIZE; n++) {
            const double scales[] = {1.0, 30.0, 1000.0};
            for (size_t s = 0; s < sizeof scales / sizeof *scales; s++) {
                double largest = -INFINITY, sum = 0.0;
                fill(out, n, scales[s]);
                for (size_t i = 0; i < n; i++)
                    largest = fmax(largest, (double)out[i]);
                for (size_t i = 0; i < n; i++)
                    sum += exp((double)out[i] - largest);
                for (size_t i = 0; i < n; i++)
                    expected[i] = exp((double)out[i] - largest) / sum;
                table->softmax(out, n);
                check("softmax", n, 1e-6);
            }
        }
    }
}

TEST_CASE(gates)
{
    const struct cpu_kernels *table;
    for (size_t t = 0; (table = cpu_kernels_at(t)) != NULL; t++) {
        for (size_t n = 1; n <= SIZE; n++) {
            fill(query, n, 2.0);
            fill(out, n, n % 2 ? 10.0 : 300.0);
            for (size_t i = 0; i < n; i++)
                expected[i] = (double)out[i] / (1.0 + exp(-(double)out[i])) * (double)query[i];
            table->swiglu(out, query, n);
            check("swiglu", n, 1e-6);
        }
        // What is no number stays none, so that the caller sees it.
        for (size_t i = 0; i < 16; i++)
            out[i] = i == 5 ? NAN : 1.0F;
        table->swiglu(out, query, 16);
        assert_true(isnan(out[5]) && !isnan(out[4]));
    }
}

int main(void)
{
    return TEST_RUN(sums_of_heads, softmax_of_near_and_far_scores, gates);
}
