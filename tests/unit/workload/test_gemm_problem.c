// Problems of matrix products: their elements, the plain loops, and the check of a result.
#include "server/workload/gemm/problem.h"

#include <math.h>

#include "server/device/half.h"
#include "tests/support/test.h"

enum { LARGEST = 65 }; // above 64 entries are drawn

static struct gemm_problem make(size_t n, enum gemm_type type)
{
    struct gemm_problem problem;
    struct error err;
    assert_int_equal(gemm_problem_init(&problem, n, type, &err), STATUS_OK);
    return problem;
}

// Computes rows of the product by the loops under test.
static void multiply(const struct gemm_problem *problem, size_t rows)
{
    memset(problem->c, 0, problem->n * problem->n * sizeof(float));
    gemm_multiply_plain(problem->type, problem->n, rows, problem->c, problem->a, problem->b);
}

TEST_CASE(plain_products_are_correct)
{
    static const size_t sizes[] = {1, 2, 3, 31, 32, 33, 64, LARGEST};
    for (unsigned int type = 0; type < GEMM_TYPE_COUNT; type++) {
        for (size_t i = 0; i < COUNT_OF(sizes); i++) {
            struct gemm_problem problem = make(sizes[i], (enum gemm_type)type);
            double error;
            multiply(&problem, sizes[i]);
            if (!gemm_problem_check(&problem, &error))
                fail_msg("%s %zu: error %g", gemm_type_name(type), sizes[i], error);
            assert_true(type != GEMM_INT8 || error == 0.0);
            gemm_problem_deinit(&problem);
        }
    }
}

// One entry of a small product is off, each in turn.
TEST_CASE(a_wrong_entry_is_found)
{
    enum { N = 8 };
    for (unsigned int type = 0; type < GEMM_TYPE_COUNT; type++) {
        struct gemm_problem problem = make(N, (enum gemm_type)type);
        multiply(&problem, N);
        for (size_t i = 0; i < N * N; i++) {
            double error = 0.0;
            float *real = (float *)problem.c + i, was = *real;
            int32_t *whole = (int32_t *)problem.c + i;
            if (type == GEMM_INT8)
                ++*whole;
            else
                *real += 1e-4F;
            assert_false(gemm_problem_check(&problem, &error));
            assert_true(error > 0.0);
            *real = was;
        }
        gemm_problem_deinit(&problem);
    }
}

// Rows that were not computed, in a product of which entries are drawn.
TEST_CASE(missing_rows_are_found)
{
    struct gemm_problem problem = make(LARGEST, GEMM_F32);
    const float *c = problem.c;
    double error = 0.0;
    multiply(&problem, LARGEST - 8);
    assert_true(c[(LARGEST - 9) * LARGEST] != 0.0F);
    assert_true(c[(LARGEST - 8) * LARGEST] == 0.0F);
    assert_false(gemm_problem_check(&problem, &error));
    memset(problem.c, 0xff, LARGEST * LARGEST * sizeof *c);
    assert_false(gemm_problem_check(&problem, &error));
    assert_true(isnan(error));
    gemm_problem_deinit(&problem);
}

TEST_CASE(problems_are_reproducible_and_of_the_type)
{
    enum { N = 33 };
    for (unsigned int type = 0; type < GEMM_TYPE_COUNT; type++) {
        struct gemm_problem one = make(N, (enum gemm_type)type);
        struct gemm_problem two = make(N, (enum gemm_type)type);
        const size_t size = gemm_type_bytes((enum gemm_type)type) * N * N;
        assert_memory_equal(one.a, two.a, size);
        assert_memory_equal(one.b, two.b, size);
        assert_memory_not_equal(one.a, one.b, size);
        for (size_t i = 0; i < (size_t)N * N; i++) {
            const float real = type == GEMM_F32    ? ((const float *)one.a)[i]
                               : type == GEMM_F16  ? half_to_float(((const uint16_t *)one.a)[i])
                               : type == GEMM_BF16 ? brain_to_float(((const uint16_t *)one.a)[i])
                                                   : (float)((const int8_t *)one.a)[i] / 127.0F;
            assert_true(real >= -1.0F && real <= 1.0F);
        }
        assert_int_equal(gemm_problem_bytes(N, (enum gemm_type)type), 2 * size + 4 * N * N);
        gemm_problem_deinit(&one);
        gemm_problem_deinit(&two);
    }
}

int main(void)
{
    return TEST_RUN(plain_products_are_correct, a_wrong_entry_is_found, missing_rows_are_found,
                    problems_are_reproducible_and_of_the_type);
}
