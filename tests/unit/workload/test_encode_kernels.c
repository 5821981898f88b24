// The encoders of the CPU back end against the plain reference: every instruction
// set, both types, the edges of every way the work is cut.
#include <math.h>

#include "server/device/cpu/encode_parts.h"
#include "server/workload/encode/reference.h"
#include "server/workload/llm/random.h"
#include "tests/support/test.h"

enum { CANARY = 64 };

// A launch with memory of its own; `out` and `scratch` are followed by canaries.
struct launch {
    struct encode_job job;
    unsigned char *in, *out, *faults, *scratch;
    size_t in_size, out_size, scratch_size;
};

static void *new_memory(size_t size, int byte)
{
    void *memory = NULL;
    size_t rounded = (size + CANARY + 255) / 256 * 256;
    assert_int_equal(posix_memalign(&memory, 256, rounded), 0);
    memset(memory, byte, rounded);
    return memory;
}

static void launch_begin(struct launch *launch, enum encoder encoder, enum encode_type type,
                         unsigned int qubits, size_t samples, size_t inputs)
{
    *launch = (struct launch){
        .job = {.encoder = encoder, .type = type, .qubits = qubits, .samples = samples}};
    struct encode_job *job = &launch->job;
    job->inputs = inputs ? inputs : encoder_inputs(encoder, qubits);
    launch->in_size = encode_in_size(job);
    launch->out_size = encode_out_size(job);
    launch->scratch_size = cpu_encode_scratch_size(job, 3);
    job->in = launch->in = new_memory(launch->in_size, 0);
    job->out = launch->out = new_memory(launch->out_size, 0xa5);
    job->faults = launch->faults = new_memory(samples, 0xa5);
    job->scratch = launch->scratch = new_memory(launch->scratch_size, 0xa5);
}

static void check_canary(const unsigned char *memory, size_t size)
{
    for (size_t i = size; i < size + CANARY; i++)
        assert_int_equal(memory[i], 0xa5);
}

static void launch_end(struct launch *launch)
{
    check_canary(launch->out, launch->out_size);
    check_canary(launch->faults, launch->job.samples);
    check_canary(launch->scratch, launch->scratch_size);
    free(launch->in);
    free(launch->out);
    free(launch->faults);
    free(launch->scratch);
}

static void set_input(struct launch *launch, size_t i, double value)
{
    if (launch->job.type == ENCODE_F64)
        ((double *)(void *)launch->in)[i] = value;
    else
        ((float *)(void *)launch->in)[i] = (float)value;
}

static void run(const struct launch *launch, const struct encode_kernels *kernels,
                unsigned int threads)
{
    struct thread_pool *pool = NULL;
    struct error err = {0};
    assert_int_equal(thread_pool_new(&pool, threads, &err), STATUS_OK);
    memset(launch->out, 0xa5, launch->out_size);
    cpu_encode_run(&launch->job, kernels, pool);
    thread_pool_free(pool);
}

static const unsigned char *input_at(const struct launch *launch, size_t sample)
{
    return launch->in + sample * (launch->in_size / launch->job.samples);
}

static const unsigned char *state_at(const struct launch *launch, size_t sample)
{
    return launch->out + sample * (launch->out_size / launch->job.samples);
}

static double amplitude_at(const struct launch *launch, size_t sample, size_t real)
{
    const unsigned char *state = state_at(launch, sample);
    return launch->job.type == ENCODE_F64 ? ((const double *)(const void *)state)[real]
                                          : (double)((const float *)(const void *)state)[real];
}

// Every sample as the reference has it.
static void check(const struct launch *launch)
{
    const struct encode_job *job = &launch->job;
    double *reference = malloc((2 * sizeof *reference) << job->qubits);
    assert_non_null(reference);
    for (size_t s = 0; s < job->samples; s++) {
        enum encode_fault fault = reference_encode(reference, job->encoder, job->qubits, job->type,
                                                   input_at(launch, s), job->inputs);
        assert_int_equal(launch->faults[s], fault);
        struct reference_difference difference;
        reference_compare(&difference, state_at(launch, s), job->type, reference, job->qubits);
        if (difference.largest > reference_tolerance(job->type) ||
            difference.fidelity <= reference_fidelity(job->type))
            fail_msg("%s %s, %u qubits, sample %zu: off by %g, fidelity 1 - %g",
                     encoder_name(job->encoder), encode_type_name(job->type), job->qubits, s,
                     difference.largest, 1.0 - difference.fidelity);
    }
    free(reference);
}

// ---- Inputs ---------------------------------------------------------------

static double random_input(struct random *random, enum encoder encoder, unsigned int qubits)
{
    if (encoder == ENCODER_BASIS)
        return floor(ldexp(random_unit(random), (int)qubits));
    double x = 2.0 * random_unit(random) - 1.0;
    return encoder == ENCODER_AMPLITUDE ? x : x * 7.0;
}

static void fill_random(struct launch *launch, uint64_t seed)
{
    struct random random;
    random_seed(&random, seed);
    for (size_t i = 0; i < launch->job.samples * launch->job.inputs; i++)
        set_input(launch, i, random_input(&random, launch->job.encoder, launch->job.qubits));
}

// As many inputs as can be, or for amplitude one less than that now and then.
static size_t inputs_of(enum encoder encoder, unsigned int qubits, bool full)
{
    size_t inputs = encoder_inputs(encoder, qubits);
    return inputs ? inputs : full ? (size_t)1 << qubits : (((size_t)1 << qubits) * 2 + 2) / 3;
}

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
            run(launch, kernels, threads);
            if (!first) {
                check(launch);
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
    launch_begin(&launch, encoder, type, qubits, samples, inputs_of(encoder, qubits, full));
    fill_random(&launch, qubits * 100U + encoder);
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
            for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
                check_random(encoder, type, sizes[i], i % 2 + 1, i % 2 == 0);
}

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
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct launch launch;
        size_t inputs = inputs_of(cases[i].encoder, cases[i].qubits, false);
        launch_begin(&launch, cases[i].encoder, cases[i].type, cases[i].qubits, cases[i].samples,
                     inputs);
        fill_random(&launch, 7);
        run(&launch, encode_kernels_best(cases[i].type), 2);
        check(&launch);
        launch_end(&launch);
    }
}

// Two passes across stretches: all weight is in state 0, and nowhere else.
TEST_CASE(iqp_of_zeros_is_state_zero)
{
    static const unsigned int sizes[] = {1, 2, 5, 10, 11, 16, 17, 24};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct launch launch;
        launch_begin(&launch, ENCODER_IQP, ENCODE_F32, sizes[i], 1, 0);
        run(&launch, encode_kernels_best(ENCODE_F32), 2);
        assert_true(amplitude_at(&launch, 0, 0) == 1.0);
        for (size_t k = 1; k < (size_t)2 << sizes[i]; k++)
            assert_true(amplitude_at(&launch, 0, k) == 0.0);
        launch_end(&launch);
    }
}

// ---- 24 qubits ------------------------------------------------------------
//
// As large as users are promised, and too large for the reference: amplitudes here and
// there by formula, all of them by their norm (memory that was never written has NaN).

enum { QUBITS_LARGE = 24, ENTANGLED = 8 };

static void run_large(struct launch *launch)
{
    struct thread_pool *pool = NULL;
    struct error err = {0};
    assert_int_equal(thread_pool_new(&pool, 2, &err), STATUS_OK);
    memset(launch->out, 0xff, launch->out_size);
    cpu_encode_run(&launch->job, encode_kernels_best(launch->job.type), pool);
    thread_pool_free(pool);
    assert_int_equal(launch->faults[0], ENCODE_FAULT_NONE);
}

static void check_norm(const struct launch *launch)
{
    double sum = 0.0;
    for (size_t b = 0; b < (size_t)1 << launch->job.qubits; b++) {
        double re = amplitude_at(launch, 0, 2 * b);
        double im = amplitude_at(launch, 0, 2 * b + 1);
        sum += re * re + im * im;
    }
    assert_true(fabs(sum - 1.0) <= (launch->job.type == ENCODE_F64 ? 1e-10 : 1e-5));
}

static double input_of(const struct launch *launch, size_t i)
{
    return launch->job.type == ENCODE_F64 ? ((const double *)(void *)launch->in)[i]
                                          : (double)((const float *)(void *)launch->in)[i];
}

struct complex {
    double re, im;
};

static struct complex times(struct complex a, double re, double im)
{
    return (struct complex){a.re * re - a.im * im, a.re * im + a.im * re};
}

// One qubit's part of a product state.
static struct complex times_factor(struct complex a, enum encoder encoder, double x, bool set)
{
    double half = x / 2.0;
    double magnitude = set ? sin(half) : cos(half);
    if (encoder == ENCODER_ANGLE)
        return times(a, set ? sin(x) : cos(x), 0.0);
    if (encoder == ENCODER_PHASE)
        return times(a, (set ? cos(x) : 1.0) / sqrt(2.0), set ? sin(x) / sqrt(2.0) : 0.0);
    a = times(a, magnitude * cos(half), magnitude * sin(half));
    return set ? times(a, 0.0, -1.0) : a;
}

// Qubits that are entangled, of every part of an index that iqp treats apart; the others
// are not, so that the state is theirs times a product.
static const unsigned int entangled[ENTANGLED] = {0, 4, 9, 10, 12, 15, 16, 18};

static void fill_entangled(struct launch *launch, double (*state)[2])
{
    unsigned int n = launch->job.qubits;
    double in[ENTANGLED + ENTANGLED * (ENTANGLED - 1) / 2];
    struct random random;
    random_seed(&random, n);
    for (unsigned int i = 0; i < n; i++)
        set_input(launch, i, random_unit(&random) * 6.0);
    size_t at = ENTANGLED;
    for (unsigned int i = 0; i < ENTANGLED; i++) {
        in[i] = input_of(launch, entangled[i]);
        for (unsigned int k = i + 1; k < ENTANGLED; k++, at++) {
            size_t a = entangled[i];
            size_t pair = n + a * n - a * (a + 1) / 2 + (entangled[k] - a - 1);
            set_input(launch, pair, random_unit(&random) * 6.0);
            in[at] = input_of(launch, pair);
        }
    }
    assert_int_equal(reference_encode(&state[0][0], ENCODER_IQP, ENTANGLED, ENCODE_F64, in,
                                      encoder_inputs(ENCODER_IQP, ENTANGLED)),
                     0);
}

static struct complex amplitude_by_formula(const struct launch *launch, size_t b,
                                           double (*state)[2])
{
    struct complex a = {1.0, 0.0};
    size_t index = 0;
    unsigned int part = 0;
    for (unsigned int k = 0; k < launch->job.qubits; k++) {
        bool set = b >> k & 1;
        if (launch->job.encoder == ENCODER_IQP && part < ENTANGLED && entangled[part] == k)
            index |= (size_t)set << part++;
        else
            a = times_factor(a, launch->job.encoder, input_of(launch, k), set);
    }
    return launch->job.encoder == ENCODER_IQP ? times(a, state[index][0], state[index][1]) : a;
}

// Relative to the largest amplitudes, which are near 1 / sqrt(2^qubits).
static void check_amplitude(const struct launch *launch, size_t b, double (*state)[2])
{
    struct complex expected = amplitude_by_formula(launch, b, state);
    double off = hypot(amplitude_at(launch, 0, 2 * b) - expected.re,
                       amplitude_at(launch, 0, 2 * b + 1) - expected.im);
    double scale = hypot(expected.re, expected.im) + ldexp(1.0, -(int)launch->job.qubits / 2);
    if (!(off <= (launch->job.type == ENCODE_F64 ? 1e-12 : 1e-5) * scale))
        fail_msg("%s %s, %u qubits, state %zu: off by %g", encoder_name(launch->job.encoder),
                 encode_type_name(launch->job.type), launch->job.qubits, b, off);
}

static void check_large(enum encoder encoder, enum encode_type type, unsigned int qubits)
{
    static double state[1 << ENTANGLED][2];
    struct launch launch;
    launch_begin(&launch, encoder, type, qubits, 1, 0);
    fill_random(&launch, 11);
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
    for (size_t i = 0; i < sizeof encoders / sizeof encoders[0]; i++) {
        check_large(encoders[i], ENCODE_F64, QUBITS_LARGE);
        check_large(encoders[i], ENCODE_F32, QUBITS_LARGE);
    }
}

// One to eight levels across stretches, in one pass and in two.
TEST_CASE(large_iqp_is_as_the_formula)
{
    static const unsigned int sizes[] = {19, 21, 22, 23, QUBITS_LARGE};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
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
        fill_random(&launch, 13);
        long double sum = 0.0L;
        for (size_t i = 0; i < launch.job.inputs; i++)
            sum += (long double)input_of(&launch, i) * (long double)input_of(&launch, i);
        double norm = sqrt((double)sum);
        run_large(&launch);
        double tolerance = type == ENCODE_F64 ? 1e-15 : 1e-7;
        for (size_t b = 0; b < (size_t)1 << QUBITS_LARGE; b++) {
            double x = b < launch.job.inputs ? input_of(&launch, b) / norm : 0.0;
            assert_true(fabs(amplitude_at(&launch, 0, 2 * b) - x) <= tolerance * fabs(x));
            assert_true(amplitude_at(&launch, 0, 2 * b + 1) == 0.0);
        }
        launch_end(&launch);

        const size_t index = ((size_t)1 << QUBITS_LARGE) - 2;
        launch_begin(&launch, ENCODER_BASIS, type, QUBITS_LARGE, 1, 0);
        set_input(&launch, 0, (double)index);
        run_large(&launch);
        for (size_t k = 0; k < (size_t)2 << QUBITS_LARGE; k++)
            assert_true(amplitude_at(&launch, 0, k) == (k == 2 * index ? 1.0 : 0.0));
        launch_end(&launch);
    }
}

// Both sides of where sums, pieces and padding begin.
TEST_CASE(any_number_of_inputs_is_padded)
{
    static const size_t inputs[] = {1,    2,     4095,  4096,  4097,  8191,
                                    8193, 65535, 65536, 65537, 131071};
    for (enum encode_type type = ENCODE_F64; type < ENCODE_TYPE_COUNT; type++)
        for (size_t i = 0; i < sizeof inputs / sizeof inputs[0]; i++) {
            struct launch launch;
            launch_begin(&launch, ENCODER_AMPLITUDE, type, 17, 1, inputs[i]);
            fill_random(&launch, i);
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
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (enum encode_type type = ENCODE_F64; type < ENCODE_TYPE_COUNT; type++) {
            struct launch launch;
            launch_begin(&launch, cases[i].encoder, type, cases[i].qubits, 1, cases[i].inputs);
            for (size_t k = 0; k < cases[i].inputs; k++)
                set_input(&launch, k, cases[i].in[k]);
            run_everywhere(&launch);
            double tolerance = type == ENCODE_F64 ? 1e-15 : 1e-7;
            for (size_t k = 0; k < cases[i].outs; k++)
                if (!(fabs(amplitude_at(&launch, 0, k) - cases[i].out[k]) <= tolerance))
                    fail_msg("case %zu, number %zu: %.17g", i, k, amplitude_at(&launch, 0, k));
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
        fill_random(&launch, qubits);
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
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
            struct launch launch;
            launch_begin(&launch, ENCODER_AMPLITUDE, cases[i].type, sizes[k], 2,
                         (size_t)1 << sizes[k]);
            struct random random;
            random_seed(&random, i);
            for (size_t at = 0; at < 2 * launch.job.inputs; at++) {
                double span = cases[i].to - cases[i].from;
                double x = pow(10.0, cases[i].from + span * random_unit(&random));
                set_input(&launch, at, random_next(&random) & 1 ? x : -x);
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
    for (size_t e = 0; e < sizeof encoders / sizeof encoders[0]; e++)
        for (enum encode_type type = ENCODE_F64; type < ENCODE_TYPE_COUNT; type++) {
            struct launch launch;
            launch_begin(&launch, encoders[e], type, 6, 4, 0);
            struct random random;
            random_seed(&random, e);
            double span = type == ENCODE_F64 ? 300.0 : 36.0;
            for (size_t at = 0; at < 4 * launch.job.inputs; at++)
                set_input(&launch, at, pow(10.0, span * (2.0 * random_unit(&random) - 1.0)));
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
    for (size_t k = 0; k < sizeof shapes / sizeof shapes[0]; k++) {
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
    size_t inputs = inputs_of(encoder, qubits, true);
    launch_begin(&launch, encoder, type, qubits, 3, inputs);
    launch_begin(&good, encoder, type, qubits, 3, inputs);
    fill_random(&launch, 5);
    fill_random(&good, 5);
    if (fault == ENCODE_FAULT_ZERO)
        for (size_t i = 0; i < inputs; i++)
            set_input(&launch, inputs + i, bad);
    set_input(&launch, inputs + inputs - 1, bad);
    for (unsigned int set = 0; set < ENCODE_KERNEL_SETS; set++) {
        const struct encode_kernels *kernels = encode_kernels_at(set, type);
        if (!kernels)
            continue;
        run(&launch, kernels, 2);
        run(&good, kernels, 2);
        assert_int_equal(launch.faults[0], ENCODE_FAULT_NONE);
        assert_int_equal(launch.faults[1], fault);
        assert_int_equal(launch.faults[2], ENCODE_FAULT_NONE);
        for (size_t k = 0; k < (size_t)2 << qubits; k++)
            assert_true(amplitude_at(&launch, 1, k) == 0.0);
        assert_memory_equal(state_at(&launch, 0), state_at(&good, 0), launch.out_size / 3);
        assert_memory_equal(state_at(&launch, 2), state_at(&good, 2), launch.out_size / 3);
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
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
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

int main(int count, char **arguments)
{
    if (count > 1 && strcmp(arguments[1], "large") == 0)
        return TEST_RUN(huge_states_are_as_the_reference, iqp_of_zeros_is_state_zero,
                        large_products_are_as_the_formula, large_iqp_is_as_the_formula,
                        large_vectors_are_as_the_formula);
    return TEST_RUN(known_states_come_out, the_reference_is_the_definition,
                    every_size_is_as_the_reference, large_states_are_as_the_reference,
                    any_number_of_inputs_is_padded, extreme_amplitudes_normalise,
                    extreme_angles_turn, products_are_rounded_before_they_are_added,
                    what_cannot_be_encoded_is_refused);
}
