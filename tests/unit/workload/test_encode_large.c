// The encoders of the CPU back end on states as large as users are promised.
#include <complex.h>
#include <math.h>

#include "server/workload/encode/reference.h"
#include "server/workload/llm/random.h"
#include "tests/support/test.h"
#include "tests/unit/workload/encode_fixture.h"

// What the largest states are by formula.
TEST_CASE(huge_states_are_as_the_reference)
{
    static const struct {
        enum encoder encoder;
        enum encode_type type;
        unsigned int qubits;
        size_t samples;
    } cases[] = {
        {ENCODER_AMPLITUDE, ENCODE_F64, 20, 2}, {ENCODER_ANGLE, ENCODE_F64, 20, 1},
        {ENCODER_PHASE, ENCODE_F32, 21, 1},     {ENCODER_IQP_Z, ENCODE_F64, 20, 1},
        {ENCODER_IQP, ENCODE_F64, 20, 1},       {ENCODER_BASIS, ENCODE_F64, 20, 1},
        {ENCODER_ANGLE, ENCODE_F32, 22, 1},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct launch launch;
        size_t inputs = launch_inputs(cases[i].encoder, cases[i].qubits, false);
        launch_begin(&launch, cases[i].encoder, cases[i].type, cases[i].qubits, cases[i].samples,
                     inputs);
        launch_fill(&launch, 7);
        launch_run(&launch, encode_kernels_best(cases[i].type), 2);
        launch_check(&launch);
        launch_end(&launch);
    }
}

// Two passes across stretches: all weight is in state 0, and nowhere else.
TEST_CASE(iqp_of_zeros_is_state_zero)
{
    static const unsigned int sizes[] = {1, 2, 5, 10, 11, 16, 17, 24};
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        struct launch launch;
        launch_begin(&launch, ENCODER_IQP, ENCODE_F32, sizes[i], 1, 0);
        launch_run(&launch, encode_kernels_best(ENCODE_F32), 2);
        assert_true(launch_amplitude(&launch, 0, 0) == 1.0);
        for (size_t k = 1; k < (size_t)2 << sizes[i]; k++)
            assert_true(launch_amplitude(&launch, 0, k) == 0.0);
        launch_end(&launch);
    }
}

// ---- 24 qubits ------------------------------------------------------------
//
// As large as users are promised, and too large for the reference: amplitudes here and
// there by formula, all of them by their norm (memory that was never written has NaN).

enum { QUBITS_LARGE = 24, ENTANGLED = 8 };

static void run_large(const struct launch *launch)
{
    launch_run(launch, encode_kernels_best(launch->job.type), 2);
    assert_int_equal(launch->faults[0], ENCODE_FAULT_NONE);
}

static void check_norm(const struct launch *launch)
{
    double sum = 0.0;
    for (size_t b = 0; b < (size_t)1 << launch->job.qubits; b++) {
        double re = launch_amplitude(launch, 0, 2 * b);
        double im = launch_amplitude(launch, 0, 2 * b + 1);
        sum += re * re + im * im;
    }
    assert_true(fabs(sum - 1.0) <= (launch->job.type == ENCODE_F64 ? 1e-10 : 1e-5));
}

// One qubit's part of a product state.
static double complex factor(enum encoder encoder, double x, bool set)
{
    if (encoder == ENCODER_ANGLE)
        return set ? sin(x) : cos(x);
    if (encoder == ENCODER_PHASE)
        return (set ? CMPLX(cos(x), sin(x)) : 1.0) / sqrt(2.0);
    const double re = cos(x / 2.0), im = sin(x / 2.0);
    return CMPLX(re, im) * (set ? CMPLX(0.0, -im) : re);
}

// Qubits that are entangled, of every part of an index that iqp treats apart; the others
// are not, so that the state is theirs times a product.
static const unsigned int entangled[ENTANGLED] = {0, 4, 9, 10, 12, 15, 16, 18};

static void fill_entangled(struct launch *launch, double complex *state)
{
    unsigned int n = launch->job.qubits;
    double in[ENTANGLED + ENTANGLED * (ENTANGLED - 1) / 2];
    struct random random;
    random_seed(&random, n);
    for (unsigned int i = 0; i < n; i++)
        launch_set_input(launch, i, random_unit(&random) * 6.0);
    size_t at = ENTANGLED;
    for (unsigned int i = 0; i < ENTANGLED; i++) {
        in[i] = launch_input(launch, entangled[i]);
        for (unsigned int k = i + 1; k < ENTANGLED; k++, at++) {
            size_t a = entangled[i];
            size_t pair = n + a * n - a * (a + 1) / 2 + (entangled[k] - a - 1);
            launch_set_input(launch, pair, random_unit(&random) * 6.0);
            in[at] = launch_input(launch, pair);
        }
    }
    assert_int_equal(reference_encode((double *)state, ENCODER_IQP, ENTANGLED, ENCODE_F64, in,
                                      encoder_inputs(ENCODER_IQP, ENTANGLED)),
                     0);
}

static double complex amplitude_by_formula(const struct launch *launch, size_t b,
                                           const double complex *state)
{
    double complex a = 1.0;
    size_t index = 0;
    unsigned int part = 0;
    for (unsigned int k = 0; k < launch->job.qubits; k++) {
        bool set = b >> k & 1;
        if (launch->job.encoder == ENCODER_IQP && part < ENTANGLED && entangled[part] == k)
            index |= (size_t)set << part++;
        else
            a *= factor(launch->job.encoder, launch_input(launch, k), set);
    }
    return launch->job.encoder == ENCODER_IQP ? a * state[index] : a;
}

// Relative to the largest amplitudes, which are near 1 / sqrt(2^qubits).
static void check_amplitude(const struct launch *launch, size_t b, const double complex *state)
{
    const double complex expected = amplitude_by_formula(launch, b, state);
    double off = hypot(launch_amplitude(launch, 0, 2 * b) - creal(expected),
                       launch_amplitude(launch, 0, 2 * b + 1) - cimag(expected));
    double scale = cabs(expected) + ldexp(1.0, -(int)launch->job.qubits / 2);
    if (!(off <= (launch->job.type == ENCODE_F64 ? 1e-12 : 1e-5) * scale))
        fail_msg("%s %s, %u qubits, state %zu: off by %g", encoder_name(launch->job.encoder),
                 encode_type_name(launch->job.type), launch->job.qubits, b, off);
}

static void check_large(enum encoder encoder, enum encode_type type, unsigned int qubits)
{
    static double complex state[1 << ENTANGLED];
    struct launch launch;
    launch_begin(&launch, encoder, type, qubits, 1, 0);
    launch_fill(&launch, 11);
    if (encoder == ENCODER_IQP) {
        memset(launch.in, 0, launch.in_size);
        fill_entangled(&launch, state);
    }
    run_large(&launch);
    check_norm(&launch);
    size_t last = ((size_t)1 << qubits) - 1;
    struct random random;
    random_seed(&random, 12);
    for (size_t i = 0; i < 20000; i++)
        check_amplitude(&launch, (size_t)(random_unit(&random) * (double)last), state);
    // Both sides of every border that work may be cut at.
    for (size_t b = 0; b < last; b += (size_t)1 << 10) {
        check_amplitude(&launch, b, state);
        check_amplitude(&launch, b + (1 << 10) - 1, state);
    }
    launch_end(&launch);
}

TEST_CASE(large_products_are_as_the_formula)
{
    static const enum encoder encoders[] = {ENCODER_ANGLE, ENCODER_PHASE, ENCODER_IQP_Z};
    for (size_t i = 0; i < COUNT_OF(encoders); i++) {
        check_large(encoders[i], ENCODE_F64, QUBITS_LARGE);
        check_large(encoders[i], ENCODE_F32, QUBITS_LARGE);
    }
}

// One to eight levels across stretches, in one pass and in two.
TEST_CASE(large_iqp_is_as_the_formula)
{
    static const unsigned int sizes[] = {19, 21, 22, 23, QUBITS_LARGE};
    for (size_t i = 0; i < COUNT_OF(sizes); i++)
        check_large(ENCODER_IQP, ENCODE_F32, sizes[i]);
    check_large(ENCODER_IQP, ENCODE_F64, 20);
    check_large(ENCODER_IQP, ENCODE_F64, QUBITS_LARGE);
}

TEST_CASE(large_vectors_are_as_the_formula)
{
    for (enum encode_type type = ENCODE_F64; type < ENCODE_TYPE_COUNT; type++) {
        struct launch launch;
        launch_begin(&launch, ENCODER_AMPLITUDE, type, QUBITS_LARGE, 1,
                     ((size_t)1 << QUBITS_LARGE) - 3);
        launch_fill(&launch, 13);
        long double sum = 0.0L;
        for (size_t i = 0; i < launch.job.inputs; i++)
            sum += (long double)launch_input(&launch, i) * (long double)launch_input(&launch, i);
        double norm = sqrt((double)sum);
        run_large(&launch);
        double tolerance = type == ENCODE_F64 ? 1e-15 : 1e-7;
        for (size_t b = 0; b < (size_t)1 << QUBITS_LARGE; b++) {
            double x = b < launch.job.inputs ? launch_input(&launch, b) / norm : 0.0;
            assert_true(fabs(launch_amplitude(&launch, 0, 2 * b) - x) <= tolerance * fabs(x));
            assert_true(launch_amplitude(&launch, 0, 2 * b + 1) == 0.0);
        }
        launch_end(&launch);

        const size_t index = ((size_t)1 << QUBITS_LARGE) - 2;
        launch_begin(&launch, ENCODER_BASIS, type, QUBITS_LARGE, 1, 0);
        launch_set_input(&launch, 0, (double)index);
        run_large(&launch);
        for (size_t k = 0; k < (size_t)2 << QUBITS_LARGE; k++)
            assert_true(launch_amplitude(&launch, 0, k) == (k == 2 * index ? 1.0 : 0.0));
        launch_end(&launch);
    }
}

TEST_MAIN(huge_states_are_as_the_reference, iqp_of_zeros_is_state_zero,
          large_products_are_as_the_formula, large_iqp_is_as_the_formula,
          large_vectors_are_as_the_formula)
