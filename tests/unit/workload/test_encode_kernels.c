// The encoders of the CPU back end against the plain reference: every instruction
// set, both types, the edges of every way the work is cut.
#include <math.h>

#include "server/workload/encode/reference.h"
#include "server/workload/llm/random.h"
#include "tests/support/test.h"
#include "tests/unit/workload/encode_fixture.h"

// Runs on all sets, alone and with three threads (large states: the one or the other);
// all agree to the last bit.
static void run_everywhere(struct launch *launch)
{
    unsigned char *first = NULL;
    bool large = launch->job.qubits > 12;
    for (unsigned int set = 0; set < ENCODE_KERNEL_SETS; set++) {
        const struct encode_kernels *kernels = encode_kernels_at(set, launch->job.type);
        for (unsigned int threads = 1; kernels && threads <= 3; threads += 2) {
            if (large && (threads == 1) != (set == 0))
                continue;
            launch_run(launch, kernels, threads);
            if (!first) {
                launch_check(launch);
                first = malloc(launch->out_size);
                assert_non_null(first);
                memcpy(first, launch->out, launch->out_size);
            } else if (memcmp(first, launch->out, launch->out_size) != 0) {
                fail_msg("%s %s, %u qubits: %s with %u threads differs",
                         encoder_name(launch->job.encoder), encode_type_name(launch->job.type),
                         launch->job.qubits, kernels->name, threads);
            }
        }
    }
    free(first);
}

static void check_random(enum encoder encoder, enum encode_type type, unsigned int qubits,
                         size_t samples, bool full)
{
    struct launch launch;
    launch_begin(&launch, encoder, type, qubits, samples, launch_inputs(encoder, qubits, full));
    launch_fill(&launch, qubits * 100U + encoder);
    run_everywhere(&launch);
    launch_end(&launch);
}

TEST_CASE(every_size_is_as_the_reference)
{
    for (enum encode_type type = ENCODE_F64; type < ENCODE_TYPE_COUNT; type++)
        for (enum encoder encoder = ENCODER_AMPLITUDE; encoder < ENCODER_COUNT; encoder++)
            for (unsigned int qubits = 1; qubits <= 12; qubits++) {
                check_random(encoder, type, qubits, 3, true);
                check_random(encoder, type, qubits, 2, false);
            }
}

// Where streaming stores, shared samples, stretches and levels across them begin.
TEST_CASE(large_states_are_as_the_reference)
{
    static const unsigned int sizes[] = {13, 14, 15, 16, 17, 18};
    for (enum encode_type type = ENCODE_F64; type < ENCODE_TYPE_COUNT; type++)
        for (enum encoder encoder = ENCODER_AMPLITUDE; encoder < ENCODER_COUNT; encoder++)
            for (size_t i = 0; i < COUNT_OF(sizes); i++)
                check_random(encoder, type, sizes[i], i % 2 + 1, i % 2 == 0);
}

// Both sides of where sums, pieces and padding begin.
TEST_CASE(any_number_of_inputs_is_padded)
{
    static const size_t inputs[] = {1,    2,     4095,  4096,  4097,  8191,
                                    8193, 65535, 65536, 65537, 131071};
    for (enum encode_type type = ENCODE_F64; type < ENCODE_TYPE_COUNT; type++)
        for (size_t i = 0; i < COUNT_OF(inputs); i++) {
            struct launch launch;
            launch_begin(&launch, ENCODER_AMPLITUDE, type, 17, 1, inputs[i]);
            launch_fill(&launch, i);
            run_everywhere(&launch);
            launch_end(&launch);
        }
}

TEST_CASE(known_states_come_out)
{
    static const struct {
        enum encoder encoder;
        unsigned int qubits;
        size_t inputs;
        double in[4];
        double out[8]; // the first real numbers of the state
        size_t outs;
    } cases[] = {
        {ENCODER_AMPLITUDE, 1, 2, {3, 4}, {0.6, 0, 0.8, 0}, 4},
        {ENCODER_AMPLITUDE, 2, 3, {1, 2, 2}, {1. / 3, 0, 2. / 3, 0, 2. / 3, 0, 0, 0}, 8},
        {ENCODER_AMPLITUDE, 2, 1, {-5}, {-1, 0, 0, 0, 0, 0, 0, 0}, 8},
        {ENCODER_ANGLE, 3, 3, {.1, .2, .3}, {0.9316157966884513, 0}, 2},
        {ENCODER_BASIS, 2, 1, {2}, {0, 0, 0, 0, 1, 0, 0, 0}, 8},
        {ENCODER_PHASE,
         1,
         1,
         {1.5707963267948966},
         {0.7071067811865476, 0, 0, 0.7071067811865476},
         4},
        {ENCODER_IQP_Z, 1, 1, {3.141592653589793}, {0, 0, 1, 0}, 4},
        {ENCODER_IQP, 2, 3, {0, 0, 0}, {1, 0, 0, 0, 0, 0, 0, 0}, 8},
        // theta is pi for x = 3 alone.
        {ENCODER_IQP, 2, 3, {0, 0, 3.141592653589793}, {.5, 0, .5, 0, .5, 0, -.5, 0}, 8},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        for (enum encode_type type = ENCODE_F64; type < ENCODE_TYPE_COUNT; type++) {
            struct launch launch;
            launch_begin(&launch, cases[i].encoder, type, cases[i].qubits, 1, cases[i].inputs);
            for (size_t k = 0; k < cases[i].inputs; k++)
                launch_set_input(&launch, k, cases[i].in[k]);
            run_everywhere(&launch);
            double tolerance = type == ENCODE_F64 ? 1e-15 : 1e-7;
            for (size_t k = 0; k < cases[i].outs; k++)
                if (!(fabs(launch_amplitude(&launch, 0, k) - cases[i].out[k]) <= tolerance))
                    fail_msg("case %zu, number %zu: %.17g", i, k, launch_amplitude(&launch, 0, k));
            launch_end(&launch);
        }
}

// iqp as it is defined: 4^qubits terms.
static void sum_by_definition(double *state, const double *in, unsigned int qubits)
{
    memset(state, 0, (2 * sizeof *state) << qubits);
    for (size_t x = 0; x >> qubits == 0; x++) {
        double theta = 0.0;
        size_t pair = qubits;
        for (unsigned int i = 0; i < qubits; i++) {
            theta += x >> i & 1 ? in[i] : 0.0;
            for (unsigned int k = i + 1; k < qubits; k++, pair++)
                theta += (x >> i & 1) && (x >> k & 1) ? in[pair] : 0.0;
        }
        for (size_t b = 0; b >> qubits == 0; b++) {
            double sign = ldexp(__builtin_parityll(x & b) ? -1.0 : 1.0, -(int)qubits);
            state[2 * b] += sign * cos(theta);
            state[2 * b + 1] += sign * sin(theta);
        }
    }
}

TEST_CASE(the_reference_is_the_definition)
{
    for (unsigned int qubits = 1; qubits <= 10; qubits++) {
        struct launch launch;
        launch_begin(&launch, ENCODER_IQP, ENCODE_F64, qubits, 1, 0);
        launch_fill(&launch, qubits);
        double *direct = malloc((2 * sizeof *direct) << qubits);
        double *transform = malloc((2 * sizeof *transform) << qubits);
        assert_non_null(direct);
        assert_non_null(transform);
        sum_by_definition(direct, (const double *)(const void *)launch.in, qubits);
        assert_int_equal(reference_encode(transform, ENCODER_IQP, qubits, ENCODE_F64, launch.in,
                                          launch.job.inputs),
                         0);
        struct reference_difference difference;
        reference_compare(&difference, direct, ENCODE_F64, transform, qubits);
        assert_true(difference.largest < 1e-14);
        assert_true(difference.fidelity > 1.0 - 1e-14);
        free(direct);
        free(transform);
        launch_end(&launch);
    }
}

// Inputs of any size, also together; the reference scales each by itself.
TEST_CASE(extreme_amplitudes_normalise)
{
    static const struct {
        enum encode_type type;
        double from, to; // powers of ten
    } cases[] = {
        {ENCODE_F64, -300, -300},   {ENCODE_F64, 300, 300},   {ENCODE_F64, -150, -150},
        {ENCODE_F64, 150, 150},     {ENCODE_F64, -300, 300},  {ENCODE_F64, -323, -320},
        {ENCODE_F64, 308, 308},     {ENCODE_F64, -125, -110}, {ENCODE_F64, 145, 160},
        {ENCODE_F32, -36, -36},     {ENCODE_F32, 36, 36},     {ENCODE_F32, -36, 36},
        {ENCODE_F32, -44.8, -44.8}, {ENCODE_F32, 38, 38},
    };
    static const unsigned int sizes[] = {1, 4, 13, 15};
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        for (size_t k = 0; k < COUNT_OF(sizes); k++) {
            struct launch launch;
            launch_begin(&launch, ENCODER_AMPLITUDE, cases[i].type, sizes[k], 2,
                         (size_t)1 << sizes[k]);
            struct random random;
            random_seed(&random, i);
            for (size_t at = 0; at < 2 * launch.job.inputs; at++) {
                double span = cases[i].to - cases[i].from;
                double x = pow(10.0, cases[i].from + span * random_unit(&random));
                launch_set_input(&launch, at, random_next(&random) & 1 ? x : -x);
            }
            run_everywhere(&launch);
            assert_int_equal(launch.faults[0], ENCODE_FAULT_NONE);
            launch_end(&launch);
        }
}

TEST_CASE(extreme_angles_turn)
{
    static const enum encoder encoders[] = {ENCODER_ANGLE, ENCODER_PHASE, ENCODER_IQP_Z,
                                            ENCODER_IQP};
    for (size_t e = 0; e < COUNT_OF(encoders); e++)
        for (enum encode_type type = ENCODE_F64; type < ENCODE_TYPE_COUNT; type++) {
            struct launch launch;
            launch_begin(&launch, encoders[e], type, 6, 4, 0);
            struct random random;
            random_seed(&random, e);
            double span = type == ENCODE_F64 ? 300.0 : 36.0;
            for (size_t at = 0; at < 4 * launch.job.inputs; at++)
                launch_set_input(&launch, at, pow(10.0, span * (2.0 * random_unit(&random) - 1.0)));
            run_everywhere(&launch);
            launch_end(&launch);
        }
}

// ---- Roundings ------------------------------------------------------------
//
// Products are rounded before they are added, by every set and at every length: compilers
// that fuse the two give another last bit.

enum { LENGTH_MAX = 40 };

static double rounded(enum encode_type type, double x)
{
    volatile float narrow = (float)x; // GCC 12 would leave the rounding out
    return type == ENCODE_F64 ? x : (double)narrow;
}

// a * b; volatile keeps the compiler of this test from fusing.
static void multiply_unfused(enum encode_type type, double out[2], const double a[2],
                             const double b[2])
{
    volatile double re[2] = {rounded(type, a[0] * b[0]), rounded(type, a[1] * b[1])};
    volatile double im[2] = {rounded(type, a[0] * b[1]), rounded(type, a[1] * b[0])};
    out[0] = rounded(type, re[0] - re[1]);
    out[1] = rounded(type, im[0] + im[1]);
}

// Complex numbers as a test computes them, and as kernels take them.
struct numbers {
    double exact[LENGTH_MAX][2];
    unsigned char memory[LENGTH_MAX * 2 * sizeof(double)];
};

static void numbers_fill(struct numbers *numbers, enum encode_type type, uint64_t seed)
{
    struct random random;
    random_seed(&random, seed);
    for (size_t i = 0; i < (size_t)2 * LENGTH_MAX; i++) {
        double x = rounded(type, 2.0 * random_unit(&random) - 1.0);
        float narrow = (float)x;
        numbers->exact[i / 2][i % 2] = x;
        if (type == ENCODE_F64)
            memcpy(numbers->memory + i * sizeof x, &x, sizeof x);
        else
            memcpy(numbers->memory + i * sizeof narrow, &narrow, sizeof narrow);
    }
}

static void check_number(const struct encode_kernels *kernels, const unsigned char *out, size_t i,
                         const double expected[2])
{
    for (size_t part = 0; part < 2; part++) {
        double wide = 0.0;
        float narrow = 0.0F;
        if (kernels->type == ENCODE_F64)
            memcpy(&wide, out + (2 * i + part) * sizeof wide, sizeof wide);
        else
            memcpy(&narrow, out + (2 * i + part) * sizeof narrow, sizeof narrow);
        double got = kernels->type == ENCODE_F64 ? wide : (double)narrow;
        if (got != expected[part])
            fail_msg("%s %s, number %zu: %.17g instead of %.17g", kernels->name,
                     encode_type_name(kernels->type), i, got, expected[part]);
    }
}

static void check_roundings(const struct encode_kernels *kernels)
{
    static const size_t shapes[][2] = {{1, 1}, {1, 2}, {2, 1}, {3, 2}, {2, 4}, {5, 8}, {2, 16}};
    enum encode_type type = kernels->type;
    struct numbers base;
    struct numbers high;
    struct numbers low;
    unsigned char out[sizeof base.memory];
    double expected[2];
    numbers_fill(&base, type, 1);
    numbers_fill(&high, type, 2);
    numbers_fill(&low, type, 3);
    for (size_t n = 1; n <= LENGTH_MAX; n++) {
        kernels->scale(out, base.memory, n, high.exact[n - 1], false);
        for (size_t i = 0; i < n; i++) {
            multiply_unfused(type, expected, high.exact[n - 1], base.exact[i]);
            check_number(kernels, out, i, expected);
        }
    }
    for (size_t k = 0; k < COUNT_OF(shapes); k++) {
        size_t columns = shapes[k][1];
        kernels->spread(out, base.memory, high.memory, low.memory, shapes[k][0], columns);
        for (size_t i = 0; i < shapes[k][0] * columns; i++) {
            double factor[2];
            multiply_unfused(type, factor, high.exact[i / columns], low.exact[i % columns]);
            multiply_unfused(type, expected, factor, base.exact[i]);
            check_number(kernels, out, i, expected);
        }
    }
}

TEST_CASE(products_are_rounded_before_they_are_added)
{
    for (enum encode_type type = ENCODE_F64; type < ENCODE_TYPE_COUNT; type++)
        for (unsigned int set = 0; set < ENCODE_KERNEL_SETS; set++)
            if (encode_kernels_at(set, type))
                check_roundings(encode_kernels_at(set, type));
}

// A sample that is refused is zero; its neighbours are as they would be without it.
static void check_fault(enum encoder encoder, enum encode_type type, unsigned int qubits,
                        double bad, enum encode_fault fault)
{
    struct launch launch;
    struct launch good;
    size_t inputs = launch_inputs(encoder, qubits, true);
    launch_begin(&launch, encoder, type, qubits, 3, inputs);
    launch_begin(&good, encoder, type, qubits, 3, inputs);
    launch_fill(&launch, 5);
    launch_fill(&good, 5);
    if (fault == ENCODE_FAULT_ZERO)
        for (size_t i = 0; i < inputs; i++)
            launch_set_input(&launch, inputs + i, bad);
    launch_set_input(&launch, inputs + inputs - 1, bad);
    for (unsigned int set = 0; set < ENCODE_KERNEL_SETS; set++) {
        const struct encode_kernels *kernels = encode_kernels_at(set, type);
        if (!kernels)
            continue;
        launch_run(&launch, kernels, 2);
        launch_run(&good, kernels, 2);
        assert_int_equal(launch.faults[0], ENCODE_FAULT_NONE);
        assert_int_equal(launch.faults[1], fault);
        assert_int_equal(launch.faults[2], ENCODE_FAULT_NONE);
        for (size_t k = 0; k < (size_t)2 << qubits; k++)
            assert_true(launch_amplitude(&launch, 1, k) == 0.0);
        assert_memory_equal(launch_state(&launch, 0), launch_state(&good, 0), launch.out_size / 3);
        assert_memory_equal(launch_state(&launch, 2), launch_state(&good, 2), launch.out_size / 3);
    }
    launch_end(&launch);
    launch_end(&good);
}

TEST_CASE(what_cannot_be_encoded_is_refused)
{
    static const unsigned int sizes[] = {1, 3, 12};
    check_fault(ENCODER_AMPLITUDE, ENCODE_F64, 17, (double)NAN, ENCODE_FAULT_NOT_FINITE);
    check_fault(ENCODER_PHASE, ENCODE_F64, 17, (double)NAN, ENCODE_FAULT_NOT_FINITE);
    check_fault(ENCODER_BASIS, ENCODE_F32, 17, -1.0, ENCODE_FAULT_INDEX);
    check_fault(ENCODER_IQP, ENCODE_F32, 17, (double)INFINITY, ENCODE_FAULT_NOT_FINITE);
    for (enum encode_type type = ENCODE_F64; type < ENCODE_TYPE_COUNT; type++)
        for (size_t i = 0; i < COUNT_OF(sizes); i++) {
            unsigned int n = sizes[i];
            for (enum encoder encoder = ENCODER_AMPLITUDE; encoder < ENCODER_COUNT; encoder++) {
                check_fault(encoder, type, n, (double)NAN, ENCODE_FAULT_NOT_FINITE);
                check_fault(encoder, type, n, (double)INFINITY, ENCODE_FAULT_NOT_FINITE);
                check_fault(encoder, type, n, (double)-INFINITY, ENCODE_FAULT_NOT_FINITE);
            }
            check_fault(ENCODER_AMPLITUDE, type, n, 0.0, ENCODE_FAULT_ZERO);
            check_fault(ENCODER_AMPLITUDE, type, n, -0.0, ENCODE_FAULT_ZERO);
            check_fault(ENCODER_BASIS, type, n, -1.0, ENCODE_FAULT_INDEX);
            check_fault(ENCODER_BASIS, type, n, 0.5, ENCODE_FAULT_INDEX);
            check_fault(ENCODER_BASIS, type, n, ldexp(1.0, (int)n), ENCODE_FAULT_INDEX);
            check_fault(ENCODER_BASIS, type, n, 1e30, ENCODE_FAULT_INDEX);
        }
}

TEST_MAIN(known_states_come_out, the_reference_is_the_definition, every_size_is_as_the_reference,
          large_states_are_as_the_reference, any_number_of_inputs_is_padded,
          extreme_amplitudes_normalise, extreme_angles_turn,
          products_are_rounded_before_they_are_added, what_cannot_be_encoded_is_refused)
