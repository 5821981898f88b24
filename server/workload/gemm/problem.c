#include "server/workload/gemm/problem.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "server/device/half.h"
#include "server/workload/llm/random.h"

enum { BLOCK = 32, INT8_LARGEST = 127, ENTRIES = 4096, ENTRIES_SEED = 7 };

enum status gemm_check_memory(size_t n, enum gemm_type type, int64_t available, struct error *err)
{
    // In F32 both factors, c and the copy to check, and the factors of `own`; written factors and
    // their copies on the device.
    const uint64_t needed = (uint64_t)n * n * (6 * sizeof(float) + 4 * gemm_type_bytes(type));
    if (available < 0 || needed <= (uint64_t)available)
        return STATUS_OK;
    return error_set(err, STATUS_INVALID,
                     "size %zu in %s: %llu bytes of memory are needed, %lld are available", n,
                     gemm_type_name(type), (unsigned long long)needed, (long long)available);
}

enum tensor_type gemm_tensor_type(enum gemm_type type)
{
    static const enum tensor_type types[] = {[GEMM_F32] = TENSOR_F32,
                                             [GEMM_F16] = TENSOR_F16,
                                             [GEMM_BF16] = TENSOR_BF16,
                                             [GEMM_INT8] = TENSOR_Q8_0};
    return types[type];
}

static float draw(struct random *random, enum gemm_type type)
{
    const float value = (float)(2.0 * random_unit(random) - 1.0);
    if (type == GEMM_F16)
        return half_to_float(half_from_float(value));
    if (type == GEMM_BF16)
        return brain_to_float(brain_from_float(value));
    return type == GEMM_INT8 ? nearbyintf(value * (float)INT8_LARGEST) : value;
}

static void generate(float *out, size_t n, enum gemm_type type, uint64_t seed)
{
    struct random random;
    random_seed(&random, seed);
    for (size_t i = 0; i < n * n; i++)
        out[i] = draw(&random, type);
    for (size_t i = 0; type == GEMM_INT8 && i < n * n; i += BLOCK)
        out[i] = out[i] < 0.0F ? -(float)INT8_LARGEST : (float)INT8_LARGEST;
}

enum status gemm_problem_init(struct gemm_problem *problem, size_t n, enum gemm_type type,
                              struct error *err)
{
    *problem = (struct gemm_problem){.n = n, .type = type};
    problem->a = calloc(n * n, sizeof *problem->a);
    problem->b_transposed = calloc(n * n, sizeof *problem->b_transposed);
    if (!problem->a || !problem->b_transposed) {
        gemm_problem_deinit(problem);
        return error_no_memory(err, "gemm");
    }
    generate(problem->a, n, type, 1);
    generate(problem->b_transposed, n, type, 2);
    return STATUS_OK;
}

void gemm_problem_deinit(struct gemm_problem *problem)
{
    free(problem->a);
    free(problem->b_transposed);
    *problem = (struct gemm_problem){0};
}

// ---- Elements of the types ------------------------------------------------

static void write_element(void *out, size_t i, float value, enum gemm_type type)
{
    if (type == GEMM_F32)
        ((float *)out)[i] = value;
    else if (type == GEMM_INT8)
        ((int8_t *)out)[i] = (int8_t)value;
    else
        ((uint16_t *)out)[i] = type == GEMM_F16 ? half_from_float(value) : brain_from_float(value);
}

void gemm_problem_write(const struct gemm_problem *problem, void *a, void *b)
{
    const size_t n = problem->n;
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < n; j++) {
            write_element(a, i * n + j, problem->a[i * n + j], problem->type);
            write_element(b, i * n + j, problem->b_transposed[j * n + i], problem->type);
        }
    }
}

// ---- Plain loops ----------------------------------------------------------

typedef void plain_loops(void *c, const void *a, const void *b, size_t n, size_t rows);

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

void gemm_multiply_plain(const struct gemm_problem *problem, void *c, const void *a, const void *b,
                         size_t rows)
{
    static plain_loops *const loops[] = {[GEMM_F32] = plain_f32,
                                         [GEMM_F16] = plain_f16,
                                         [GEMM_BF16] = plain_bf16,
                                         [GEMM_INT8] = plain_int8};
    loops[problem->type](c, a, b, problem->n, rows);
}

// ---- Checking -------------------------------------------------------------

static double entry_error(const struct gemm_problem *problem, size_t entry, double found)
{
    const size_t n = problem->n;
    const float *a = problem->a + entry / n * n;
    const float *b = problem->b_transposed + entry % n * n;
    double sum = 0.0, magnitude = 0.0;
    for (size_t k = 0; k < n; k++) {
        const double product = (double)a[k] * (double)b[k];
        sum += product;
        magnitude += fabs(product);
    }
    const double difference = fabs(found - sum);
    return difference > 0.0 && magnitude > 0.0 ? difference / magnitude : difference;
}

bool gemm_problem_check(const struct gemm_problem *problem, const void *c, bool is_int,
                        double *error_max)
{
    const size_t n = problem->n;
    assert(n > 0);
    const size_t entries = n * n <= ENTRIES ? n * n : ENTRIES;
    const double tolerance = problem->type == GEMM_INT8 ? 0.0 : (double)n * 0x1p-23;
    struct random random;
    random_seed(&random, ENTRIES_SEED);
    *error_max = 0.0;
    for (size_t i = 0; i < entries; i++) {
        const size_t entry = entries == n * n ? i : (size_t)(random_next(&random) % (n * n));
        const double found =
            is_int ? (double)((const int32_t *)c)[entry] : (double)((const float *)c)[entry];
        const double error = entry_error(problem, entry, found);
        if (!(error <= *error_max)) // also where it is NaN
            *error_max = error;
        if (isnan(error))
            return false;
    }
    return *error_max <= tolerance;
}
