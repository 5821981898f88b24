// Singular values by LAPACKE: factors of random matrices.
#include <math.h>

#include "server/workload/zoo/svd.h"
#include "tests/support/test.h"

static void check(const struct svd *svd, size_t rows, size_t columns)
{
    const size_t k = rows < columns ? rows : columns;
    struct error err = {0};
    double *a = calloc(rows * columns, sizeof *a), *copy = calloc(rows * columns, sizeof *copy);
    double *u = calloc(rows * k, sizeof *u), *s = calloc(k, sizeof *s);
    double *vt = calloc(k * columns, sizeof *vt), squares = 0.0, energy = 0.0;
    uint64_t seed = rows * 1000 + columns;
    for (size_t i = 0; i < rows * columns; i++) {
        a[i] = copy[i] = (double)(test_random(&seed) >> 11) * 0x1p-52 - 1.0;
        squares += a[i] * a[i];
    }
    expect_ok(svd_compute(svd, a, rows, columns, u, s, vt, &err), &err);
    for (size_t i = 0; i < k; i++) {
        assert_true(s[i] >= 0.0 && (i == 0 || s[i] <= s[i - 1]));
        energy += s[i] * s[i];
    }
    // The sum of the squares of the singular values is that of the elements.
    assert_true(fabs(energy - squares) <= 1e-12 * squares);
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < columns; c++) {
            double sum = 0.0;
            for (size_t i = 0; i < k; i++)
                sum += u[r * k + i] * s[i] * vt[i * columns + c];
            assert_true(fabs(sum - copy[r * columns + c]) < 1e-12 * (double)(rows + columns));
        }
    free(a);
    free(copy);
    free(u);
    free(s);
    free(vt);
}

TEST_CASE(factors)
{
    static const size_t shapes[][2] = {{1, 1}, {1, 9}, {9, 1}, {7, 7}, {5, 40}, {40, 5}, {33, 34}};
    struct error err = {0};
    struct svd *svd;
    if (svd_open(&svd, NULL, &err) != STATUS_OK) {
        print_message("%s\n", err.text);
        skip();
    }
    for (size_t i = 0; i < COUNT_OF(shapes); i++)
        check(svd, shapes[i][0], shapes[i][1]);
    double nan = (double)NAN, one[1];
    assert_int_equal(svd_compute(svd, &nan, 1, 1, one, one, one, &err), STATUS_UNSUPPORTED);
    assert_non_null(strstr(err.text, "1 x 1"));
    assert_int_equal(svd_compute(svd, &nan, (size_t)1 << 40, 1, one, one, one, &err),
                     STATUS_UNSUPPORTED);
    svd_close(svd);
}

// The message has the library and its package, whether there is none or it is another.
TEST_CASE(library_is_missing)
{
    static const char *const libraries[] = {"libinferstat-none.so.3", "libm.so.6"};
    for (size_t i = 0; i < COUNT_OF(libraries); i++) {
        struct error err = {0};
        struct svd *svd = NULL;
        assert_int_equal(svd_open(&svd, libraries[i], &err), STATUS_UNSUPPORTED);
        assert_null(svd);
        assert_non_null(strstr(err.text, libraries[i]));
        assert_non_null(strstr(err.text, "liblapacke"));
    }
    svd_close(NULL);
}

int main(void)
{
    return TEST_RUN(factors, library_is_missing);
}
