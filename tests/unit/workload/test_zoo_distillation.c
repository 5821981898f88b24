// The distillation loss against PyTorch's (scripts/zoo/distillation.py).
#include <math.h>

#include "server/workload/zoo/losses.h"
#include "tests/support/test.h"

static const struct {
    float teacher[4], student[4];
    size_t classes;
    double temperature, alpha, loss;
} cases[] = {
    {{1.0F, 2.0F, 3.0F}, {1.0F, 2.0F, 3.0F}, 3, 4.0, 0.7, 0.12228178933331414},
    {{1.0F, 2.0F, 3.0F}, {3.0F, 2.0F, 1.0F}, 3, 4.0, 0.7, 1.6460227278410162},
    {{1.0F, 2.0F, 3.0F}, {3.0F, 2.0F, 1.0F}, 3, 1.0, 1.0, 1.1504207652088827},
    {{1.0F, 2.0F, 3.0F}, {3.0F, 2.0F, 1.0F}, 3, 4.0, 0.0, 2.4076059644443806},
    {{-0.5F, 0.25F, 4.0F, -7.0F}, {0.5F, 0.0F, 3.5F, -2.0F}, 4, 2.0, 0.3, 0.1272665229923782},
    {{10000.0F, -10000.0F, 0.0F}, {-10000.0F, 10000.0F, 0.0F}, 3, 4.0, 0.7, 62000},
};

TEST_CASE(agrees_with_pytorch)
{
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const struct zoo_distillation how = {cases[i].temperature, cases[i].alpha};
        const double loss =
            zoo_distillation_loss(&how, cases[i].teacher, cases[i].student, cases[i].classes, 1);
        if (!(fabs(loss - cases[i].loss) <= 1e-12 * fmax(1.0, cases[i].loss)))
            fail_msg("case %zu: %.17g, not %.17g", i, loss, cases[i].loss);
    }
}

// The loss does not depend on where the logits lie.
TEST_CASE(strided_logits)
{
    float teacher[4 * 7], student[4 * 7];
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const struct zoo_distillation how = {cases[i].temperature, cases[i].alpha};
        for (size_t c = 0; c < cases[i].classes; c++) {
            teacher[c * 7] = cases[i].teacher[c];
            student[c * 7] = cases[i].student[c];
        }
        assert_true(
            zoo_distillation_loss(&how, teacher, student, cases[i].classes, 7) ==
            zoo_distillation_loss(&how, cases[i].teacher, cases[i].student, cases[i].classes, 1));
    }
}

// For a high temperature KL shrinks by 1 / T^2, which T^2 undoes: T^2 KL(t / T || s / T) goes to
// the mean square of the centred differences / 2.
TEST_CASE(temperature_does_not_shrink_the_loss)
{
    const float teacher[] = {1.0F, -2.0F, 0.5F, 3.0F}, student[] = {0.0F, -1.0F, 2.5F, 2.0F};
    double mean = 0.0, squares = 0.0;
    for (size_t i = 0; i < 4; i++)
        mean += (double)(teacher[i] - student[i]) / 4.0;
    for (size_t i = 0; i < 4; i++)
        squares += pow((double)(teacher[i] - student[i]) - mean, 2.0) / 4.0;
    const struct zoo_distillation hot = {1000.0, 1.0};
    const double loss = zoo_distillation_loss(&hot, teacher, student, 4, 1);
    assert_true(fabs(loss - squares / 2.0) < 0.01 * squares);
}

TEST_CASE(large_logits_stay_finite)
{
    static const float teacher[] = {1e4F, 0.0F, -1e4F}, student[] = {-1e4F, 1e4F, 0.0F};
    static const float huge[] = {3e38F, -3e38F, 0.0F};
    for (double t = 0.01; t < 1000.0; t *= 10.0) {
        const struct zoo_distillation how = {t, 0.5};
        assert_true(isfinite(zoo_distillation_loss(&how, teacher, student, 3, 1)));
        assert_true(isfinite(zoo_distillation_loss(&how, huge, student, 3, 1)));
        assert_true(isfinite(zoo_distillation_loss(&how, student, huge, 3, 1)));
        assert_true(zoo_distillation_loss(&how, teacher, teacher, 3, 1) < 1e-9);
    }
}

TEST_CASE(first_of_the_largest)
{
    const float values[] = {1.0F, 3.0F, 2.0F, 3.0F};
    assert_int_equal(zoo_top1(values, 4, 1), 1);
    assert_int_equal(zoo_top1(values, 2, 2), 1);
    assert_int_equal(zoo_top1(values, 1, 1), 0);
}

int main(void)
{
    return TEST_RUN(agrees_with_pytorch, strided_logits, temperature_does_not_shrink_the_loss,
                    large_logits_stay_finite, first_of_the_largest);
}
