#include "server/workload/gemm/problem.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "server/device/half.h"
#include "server/workload/llm/random.h"

enum { INT8_LARGEST = 127, ENTRIES = 4096, ENTRIES_SEED = 7 };

uint64_t gemm_problem_bytes(size_t n, enum gemm_type type)
{
    return (uint64_t)n * n * (2 * gemm_type_bytes(type) + sizeof(float));
}

static void write_element(void *out, size_t i, float value, enum gemm_type type)
{
    if (type == GEMM_F32)
        ((float *)out)[i] = value;
    else if (type == GEMM_INT8)
        ((int8_t *)out)[i] = (int8_t)nearbyintf(value * (float)INT8_LARGEST);
    else
        ((uint16_t *)out)[i] = type == GEMM_F16 ? half_from_float(value) : brain_from_float(value);
}

static double read_element(const void *values, size_t i, enum gemm_type type)
{
    if (type == GEMM_F32)
        return (double)((const float *)values)[i];
    if (type == GEMM_INT8)
        return (double)((const int8_t *)values)[i];
    const uint16_t bits = ((const uint16_t *)values)[i];
    return (double)(type == GEMM_F16 ? half_to_float(bits) : brain_to_float(bits));
}

static void *generate(size_t count, enum gemm_type type, uint64_t seed)
{
    struct random random;
    void *out = calloc(count, gemm_type_bytes(type));
    random_seed(&random, seed);
    for (size_t i = 0; out && i < count; i++)
        write_element(out, i, (float)(2.0 * random_unit(&random) - 1.0), type);
    return out;
}

enum status gemm_problem_init(struct gemm_problem *problem, size_t n, enum gemm_type type,
                              struct error *err)
{
    *problem = (struct gemm_problem){.n = n,
                                     .type = type,
                                     .a = generate(n * n, type, 1),
                                     .b = generate(n * n, type, 2),
                                     .c = calloc(n * n, sizeof(float))};
    if (problem->a && problem->b && problem->c)
        return STATUS_OK;
    gemm_problem_deinit(problem);
    return error_no_memory(err, "gemm");
}

void gemm_problem_deinit(struct gemm_problem *problem)
{
    free(problem->a);
    free(problem->b);
    free(problem->c);
    *problem = (struct gemm_problem){0};
}

// Defines loops for factors of the type FACTOR with sums of the type SUM.
#define PLAIN_LOOPS(name, FACTOR, SUM, widen)                                                      \
    static void name(void *product, const void *left, const void *right, size_t n, size_t rows)    \
    {                                                                                              \
        SUM *c = product;                                                                          \
        const FACTOR *a = left, *b = right;                                                        \
        memset(c, 0, rows *n * sizeof *c);                                                         \
        for (size_t i = 0; i < rows; i++)                                                          \
            for (size_t k = 0; k < n; k++) {                                                       \
                const SUM factor = widen(a[i * n + k]); /* a could overlap c: load it once */      \
                for (size_t j = 0; j < n; j++)                                                     \
                    c[i * n + j] += factor * (SUM)widen(b[k * n + j]);                             \
            }                                                                                      \
    }
#define AS_IT_IS(x) (x)

static inline int32_t int8_to_int(int8_t x)
{
    return x;
}

PLAIN_LOOPS(plain_f32, float, float, AS_IT_IS)
PLAIN_LOOPS(plain_f16, uint16_t, float, half_to_float)
PLAIN_LOOPS(plain_bf16, uint16_t, float, brain_to_float)
PLAIN_LOOPS(plain_int8, int8_t, int32_t, int8_to_int)

void gemm_multiply_plain(enum gemm_type type, size_t n, size_t rows, void *c, const void *a,
                         const void *b)
{
    static void (*const loops[])(void *, const void *, const void *, size_t,
                                 size_t) = {[GEMM_F32] = plain_f32,
                                            [GEMM_F16] = plain_f16,
                                            [GEMM_BF16] = plain_bf16,
                                            [GEMM_INT8] = plain_int8};
    loops[type](c, a, b, n, rows);
}

static double entry_error(const struct gemm_problem *problem, size_t entry)
{
    const size_t n = problem->n, row = entry / n, column = entry % n;
    const double found = problem->type == GEMM_INT8 ? (double)((const int32_t *)problem->c)[entry]
                                                    : (double)((const float *)problem->c)[entry];
    double sum = 0.0, magnitude = 0.0;
    for (size_t k = 0; k < n; k++) {
        const double product = read_element(problem->a, row * n + k, problem->type) *
                               read_element(problem->b, k * n + column, problem->type);
        sum += product;
        magnitude += fabs(product);
    }
    const double difference = fabs(found - sum);
    return difference > 0.0 && magnitude > 0.0 ? difference / magnitude : difference;
}

bool gemm_problem_check(const struct gemm_problem *problem, double *error_max)
{
    assert(problem->n > 0);
    const size_t all = problem->n * problem->n, entries = all <= ENTRIES ? all : ENTRIES;
    const double tolerance = problem->type == GEMM_INT8 ? 0.0 : (double)problem->n * 0x1p-23;
    struct random random;
    random_seed(&random, ENTRIES_SEED);
    *error_max = 0.0;
    for (size_t i = 0; i < entries; i++) {
        const double error =
            entry_error(problem, entries == all ? i : (size_t)(random_next(&random) % all));
        if (!(error <= *error_max)) // also where it is NaN
            *error_max = error;
        if (isnan(error))
            return false;
    }
    return *error_max <= tolerance;
}
