// Problems of matrix products: their elements, the plain loops, and the check of a result.
#include "server/workload/gemm/problem.h"

#include <math.h>

#include "tests/support/test.h"

enum { LARGEST = 65 }; // above 64 entries are drawn

static struct gemm_problem make(size_t n, enum gemm_type type)
{
    struct gemm_problem problem;
    struct error err;
    assert_int_equal(gemm_problem_init(&problem, n, type, &err), STATUS_OK);
    return problem;
}

// The product, by the loops under test.
static void *multiply(const struct gemm_problem *problem, size_t rows)
{
    const size_t count = problem->n * problem->n;
    void *a = calloc(count, sizeof(float)), *b = calloc(count, sizeof(float));
    void *c = calloc(count, sizeof(float));
    assert_true(a && b && c);
    gemm_problem_write(problem, a, b);
    gemm_multiply_plain(problem, c, a, b, rows);
    free(a);
    free(b);
    return c;
}

TEST_CASE(plain_products_are_correct)
{
    static const size_t sizes[] = {1, 2, 3, 31, 32, 33, 64, LARGEST};
    for (unsigned int type = 0; type < GEMM_TYPE_COUNT; type++) {
        for (size_t i = 0; i < COUNT_OF(sizes); i++) {
            struct gemm_problem problem = make(sizes[i], (enum gemm_type)type);
            void *c = multiply(&problem, sizes[i]);
            double error;
            if (!gemm_problem_check(&problem, c, type == GEMM_INT8, &error))
                fail_msg("%s %zu: error %g", gemm_type_name(type), sizes[i], error);
            assert_true(type != GEMM_INT8 || error == 0.0);
            free(c);
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
        void *c = multiply(&problem, N);
        for (size_t i = 0; i < N * N; i++) {
            double error = 0.0;
            float *real = (float *)c + i, was = *real;
            int32_t *whole = (int32_t *)c + i;
            if (type == GEMM_INT8)
                ++*whole;
            else
                *real += 1e-4F;
            assert_false(gemm_problem_check(&problem, c, type == GEMM_INT8, &error));
            assert_true(error > 0.0);
            *real = was;
        }
        free(c);
        gemm_problem_deinit(&problem);
    }
}

// Rows that were not computed, in a product of which entries are drawn.
TEST_CASE(missing_rows_are_found)
{
    struct gemm_problem problem = make(LARGEST, GEMM_F32);
    float *c = multiply(&problem, LARGEST - 8);
    double error = 0.0;
    assert_true(c[(LARGEST - 9) * LARGEST] != 0.0F);
    assert_true(c[(LARGEST - 8) * LARGEST] == 0.0F);
    assert_false(gemm_problem_check(&problem, c, false, &error));
    free(c);
    c = multiply(&problem, LARGEST);
    memset(c, 0xff, LARGEST * LARGEST * sizeof *c);
    assert_false(gemm_problem_check(&problem, c, false, &error));
    assert_true(isnan(error));
    free(c);
    gemm_problem_deinit(&problem);
}

// Blocks of Q8_0 hold the integers exactly, so that the device's own kernels are checked exactly.
TEST_CASE(integers_survive_blocks)
{
    enum { N = 96 };
    struct gemm_problem problem = make(N, GEMM_INT8);
    unsigned char blocks[N * N / 32 * 34];
    float back[N * N];
    const float *const factors[] = {problem.a, problem.b_transposed};
    for (size_t i = 0; i < COUNT_OF(factors); i++) {
        tensor_narrow_q8_0(blocks, factors[i], (size_t)N * N);
        tensor_widen(TENSOR_Q8_0, back, blocks, (size_t)N * N);
        for (size_t k = 0; k < COUNT_OF(back); k++)
            assert_true(back[k] == factors[i][k]);
    }
    gemm_problem_deinit(&problem);
}

TEST_CASE(problems_are_reproducible_and_of_the_type)
{
    for (unsigned int type = 0; type < GEMM_TYPE_COUNT; type++) {
        struct gemm_problem one = make(33, (enum gemm_type)type);
        struct gemm_problem two = make(33, (enum gemm_type)type);
        assert_memory_equal(one.a, two.a, sizeof(float) * 33 * 33);
        assert_memory_equal(one.b_transposed, two.b_transposed, sizeof(float) * 33 * 33);
        assert_memory_not_equal(one.a, one.b_transposed, sizeof(float) * 33 * 33);
        const float largest = type == GEMM_INT8 ? 127.0F : 1.0F;
        for (size_t i = 0; i < 33 * 33; i++)
            assert_true(one.a[i] >= -largest && one.a[i] <= largest);
        gemm_problem_deinit(&one);
        gemm_problem_deinit(&two);
    }
}

TEST_CASE(what_does_not_fit_is_refused_with_numbers)
{
    struct error err;
    const int64_t needed = INT64_C(40) * 1000 * 1000; // six matrices and four factors of 4 bytes
    assert_int_equal(gemm_check_memory(1000, GEMM_F32, needed, &err), STATUS_OK);
    assert_int_equal(gemm_check_memory(1000, GEMM_F32, -1, &err), STATUS_OK);
    assert_int_equal(gemm_check_memory(1000, GEMM_F32, needed - 1, &err), STATUS_INVALID);
    assert_non_null(strstr(err.text, "size 1000 in f32: 40000000 bytes"));
    assert_non_null(strstr(err.text, "39999999 are available"));
    assert_int_equal(gemm_check_memory(1000, GEMM_INT8, needed - 1, &err), STATUS_OK);
    assert_int_equal(gemm_check_memory(GEMM_SIZE_MAX, GEMM_F32, INT64_MAX, &err), STATUS_OK);
}

int main(void)
{
    return TEST_RUN(plain_products_are_correct, a_wrong_entry_is_found, missing_rows_are_found,
                    integers_survive_blocks, problems_are_reproducible_and_of_the_type,
                    what_does_not_fit_is_refused_with_numbers);
}
