// The encoders of the CUDA back end against the plain reference: on a device where this
// was built for one, else on the emulated runtime (tests/support/cuda).
#include <math.h>

#include "server/device/cuda/encode_ways.h"
#include "server/workload/encode/reference.h"
#include "tests/support/test.h"

static struct device *device;
static struct device_stream *stream;

TEST_FIXTURE(open_device)
{
    struct error err = {0};
    if (device_open(&device, &(struct device_options){.spec = "cuda"}, &err) != STATUS_OK ||
        device_stream_new(device, &stream, "encode", &err) != STATUS_OK)
        fail_msg("%s", err.text);
    return 0;
}

TEST_FIXTURE(close_device)
{
    device_stream_free(stream);
    assert_int_equal(device_memory_used(device), 0);
    device_close(device);
    return 0;
}

static void *new_memory(size_t size)
{
    void *memory = NULL;
    assert_int_equal(device_memory_new(stream, &memory, size, NULL), STATUS_OK);
    return memory;
}

// Encodes `in` on the device; states and faults as the host sees them, to be freed.
static enum status encode_by(enum cuda_encode_way way, struct encode_job job, const void *in,
                             void **states, uint8_t **faults)
{
    const size_t in_size = encode_in_size(&job), out_size = encode_out_size(&job);
    const size_t scratch_size = encode_scratch_size(device, &job);
    void *device_in = new_memory(in_size);
    job.in = device_in;
    job.out = new_memory(out_size);
    job.faults = new_memory(job.samples);
    job.scratch = scratch_size ? new_memory(scratch_size) : NULL;
    *states = malloc(out_size);
    *faults = malloc(job.samples);
    assert_non_null(*states);
    assert_non_null(*faults);
    assert_int_equal(device_copy_in(stream, device_in, in, in_size, NULL), STATUS_OK);
    const enum status status = way == CUDA_ENCODE_CHOSEN ? device_encode(stream, &job, NULL)
                                                         : cuda_encode_by(stream, &job, way, NULL);
    assert_int_equal(device_copy_out(stream, *states, job.out, out_size, NULL), STATUS_OK);
    assert_int_equal(device_copy_out(stream, *faults, job.faults, job.samples, NULL), STATUS_OK);
    assert_int_equal(device_stream_synchronize(stream, NULL), STATUS_OK);
    device_memory_free(stream, device_in, in_size);
    device_memory_free(stream, job.out, out_size);
    device_memory_free(stream, job.faults, job.samples);
    device_memory_free(stream, job.scratch, scratch_size);
    return status;
}

static void encode(struct encode_job job, const void *in, void **states, uint8_t **faults)
{
    assert_int_equal(encode_by(CUDA_ENCODE_CHOSEN, job, in, states, faults), STATUS_OK);
}

static void set_input(const struct encode_job *job, void *in, size_t i, double value)
{
    if (job->type == ENCODE_F64)
        ((double *)in)[i] = value;
    else
        ((float *)in)[i] = (float)value;
}

// Encodes and compares every sample; twice, for the same bits.
static void check(const struct encode_job *job, const void *in)
{
    void *states, *again;
    uint8_t *faults, *faults_again;
    encode(*job, in, &states, &faults);
    encode(*job, in, &again, &faults_again);
    assert_memory_equal(states, again, encode_out_size(job));
    double *reference = malloc((2 * sizeof *reference) << job->qubits);
    assert_non_null(reference);
    for (size_t s = 0; s < job->samples; s++) {
        const unsigned char *sample =
            (const unsigned char *)in + s * job->inputs * encode_type_size(job->type);
        const unsigned char *state =
            (const unsigned char *)states + s * (encode_out_size(job) / job->samples);
        const enum encode_fault fault =
            reference_encode(reference, job->encoder, job->qubits, job->type, sample, job->inputs);
        struct reference_difference difference;
        assert_int_equal(faults[s], fault);
        reference_compare(&difference, state, job->type, reference, job->qubits);
        if (difference.largest > reference_tolerance(job->type) ||
            difference.fidelity <= reference_fidelity(job->type))
            fail_msg("%s %s, %u qubits, sample %zu of %zu: off by %g, fidelity 1 - %g",
                     encoder_name(job->encoder), encode_type_name(job->type), job->qubits, s,
                     job->samples, difference.largest, 1.0 - difference.fidelity);
    }
    free(reference);
    free(states);
    free(again);
    free(faults);
    free(faults_again);
}

static double random_real(uint64_t *seed)
{
    return (double)(test_random(seed) >> 11) * 0x1p-53 * 2.0 - 1.0;
}

static void *new_inputs(const struct encode_job *job)
{
    void *in = calloc(1, encode_in_size(job));
    assert_non_null(in);
    return in;
}

static void random_job(struct encode_job *job, uint64_t *seed)
{
    void *in = new_inputs(job);
    const double scale = job->encoder == ENCODER_AMPLITUDE ? 1.0 : 10.0;
    for (size_t i = 0; i < job->samples * job->inputs; i++)
        set_input(job, in, i,
                  job->encoder == ENCODER_BASIS
                      ? (double)(test_random(seed) % ((uint64_t)1 << job->qubits))
                      : random_real(seed) * scale);
    check(job, in);
    free(in);
}

TEST_CASE(every_encoder)
{
    uint64_t seed = 1;
    for (int encoder = 0; encoder < ENCODER_COUNT; encoder++)
        for (int type = 0; type < ENCODE_TYPE_COUNT; type++)
            for (unsigned int qubits = 1; qubits <= 13; qubits++) {
                struct encode_job job = {.encoder = (enum encoder)encoder,
                                         .type = (enum encode_type)type,
                                         .qubits = qubits,
                                         .samples = qubits > 9 ? 2 : 1 + qubits % 4};
                job.inputs = encoder_inputs(job.encoder, qubits);
                if (job.inputs == 0)
                    job.inputs = (size_t)1 << qubits;
                random_job(&job, &seed);
            }
}

// Inputs that do not fill the state, and lengths about the stretches sums are cut into.
TEST_CASE(amplitudes_of_any_length)
{
    static const size_t lengths[] = {1, 2, 3, 255, 256, 257, 4095, 4096, 4097, 16385, 32768};
    uint64_t seed = 2;
    for (size_t i = 0; i < COUNT_OF(lengths); i++)
        for (int type = 0; type < ENCODE_TYPE_COUNT; type++) {
            struct encode_job job = {.encoder = ENCODER_AMPLITUDE,
                                     .type = (enum encode_type)type,
                                     .qubits = 15,
                                     .samples = 2,
                                     .inputs = lengths[i]};
            random_job(&job, &seed);
        }
}

// More stretches than a block has threads, and longer ones than of smaller states.
TEST_CASE(amplitudes_of_a_large_state)
{
    uint64_t seed = 6;
    struct encode_job job = {.encoder = ENCODER_AMPLITUDE,
                             .type = ENCODE_F32,
                             .qubits = 23,
                             .samples = 1,
                             .inputs = ((size_t)1 << 22) + 4097};
    random_job(&job, &seed);
}

TEST_CASE(amplitudes_of_any_size)
{
    static const double sizes[] = {1e-300, 1e-160, 1e-150, 1.0, 1e150, 1e160, 1e300};
    for (size_t i = 0; i < COUNT_OF(sizes); i++)
        for (size_t j = 0; j < COUNT_OF(sizes); j++) {
            struct encode_job job = {.encoder = ENCODER_AMPLITUDE,
                                     .type = ENCODE_F64,
                                     .qubits = 3,
                                     .samples = 1,
                                     .inputs = 8};
            double in[8] = {3.0 * sizes[i], 4.0 * sizes[i], 0.0, -1.0 * sizes[j], 2.0 * sizes[j]};
            check(&job, in);
        }
    const float small[] = {3e-36F, 4e-36F}, large[] = {3e36F, -4e36F};
    struct encode_job job = {
        .encoder = ENCODER_AMPLITUDE, .type = ENCODE_F32, .qubits = 1, .samples = 1, .inputs = 2};
    check(&job, small);
    check(&job, large);
}

// Angles are what they are modulo 2 pi, however many turns they make.
TEST_CASE(angles_of_any_size)
{
    static const double sizes[] = {1e-300, 1e-30, 1.0, 1e8, 1e16, 1e30};
    static const enum encoder encoders[] = {ENCODER_ANGLE, ENCODER_PHASE, ENCODER_IQP_Z,
                                            ENCODER_IQP};
    uint64_t seed = 4;
    for (size_t i = 0; i < COUNT_OF(sizes); i++)
        for (size_t e = 0; e < COUNT_OF(encoders); e++)
            for (int type = 0; type < ENCODE_TYPE_COUNT; type++)
                for (unsigned int qubits = 5; qubits <= 12; qubits += 7) {
                    struct encode_job job = {.encoder = encoders[e],
                                             .type = (enum encode_type)type,
                                             .qubits = qubits,
                                             .samples = 1,
                                             .inputs = encoder_inputs(encoders[e], qubits)};
                    void *in = new_inputs(&job);
                    // Every other one is small: sums must not lose it beside the large.
                    for (size_t k = 0; k < job.inputs; k++)
                        set_input(&job, in, k, random_real(&seed) * (k % 2 ? 1.0 : sizes[i]));
                    check(&job, in);
                    free(in);
                }
    double in[15];
    struct encode_job job = {
        .encoder = ENCODER_IQP, .type = ENCODE_F64, .qubits = 5, .samples = 1, .inputs = 15};
    for (size_t k = 0; k < COUNT_OF(in); k++)
        in[k] = random_real(&seed) * 1e300;
    check(&job, in);
}

TEST_CASE(known_states)
{
    const double in[] = {3.0, 4.0};
    struct encode_job job = {
        .encoder = ENCODER_AMPLITUDE, .type = ENCODE_F64, .qubits = 1, .samples = 1, .inputs = 2};
    void *states;
    uint8_t *faults;
    encode(job, in, &states, &faults);
    const double *amplitudes = states;
    assert_true(fabs(amplitudes[0] - 0.6) < 1e-15 && fabs(amplitudes[2] - 0.8) < 1e-15);
    assert_true(amplitudes[1] == 0.0 && amplitudes[3] == 0.0);
    free(states);
    free(faults);

    const double angles[] = {0.1, 0.2, 0.3};
    job = (struct encode_job){
        .encoder = ENCODER_ANGLE, .type = ENCODE_F64, .qubits = 3, .samples = 1, .inputs = 3};
    encode(job, angles, &states, &faults);
    amplitudes = states;
    assert_true(fabs(amplitudes[0] - 0.9316157966884513) < 1e-15);
    free(states);
    free(faults);
}

// A sample that is refused names its fault, has a state of zeros and leaves its
// neighbours alone.
TEST_CASE(refused_samples)
{
    static const struct {
        enum encoder encoder;
        double value;
        bool all;
    } cases[] = {
        {ENCODER_AMPLITUDE, NAN, false},       {ENCODER_AMPLITUDE, INFINITY, false},
        {ENCODER_AMPLITUDE, -INFINITY, false}, {ENCODER_AMPLITUDE, 0.0, true},
        {ENCODER_ANGLE, NAN, false},           {ENCODER_PHASE, INFINITY, false},
        {ENCODER_BASIS, -1.0, false},          {ENCODER_BASIS, 0.5, false},
        {ENCODER_BASIS, 2048.0, false},        {ENCODER_BASIS, NAN, false},
        {ENCODER_IQP_Z, -INFINITY, false},     {ENCODER_IQP, NAN, false},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        for (int type = 0; type < ENCODE_TYPE_COUNT; type++) {
            struct encode_job job = {.encoder = cases[i].encoder,
                                     .type = (enum encode_type)type,
                                     .qubits = 11,
                                     .samples = 3};
            job.inputs = encoder_inputs(job.encoder, job.qubits);
            if (job.inputs == 0)
                job.inputs = 2000;
            void *in = new_inputs(&job);
            for (size_t k = 0; k < job.samples * job.inputs; k++)
                set_input(&job, in, k, 1.0);
            for (size_t k = 0; k < (cases[i].all ? job.inputs : 1); k++)
                set_input(&job, in, job.inputs + job.inputs - 1 - k, cases[i].value);
            check(&job, in);
            free(in);
        }
}

// The transform is done in passes: past every seam.
TEST_CASE(transforms_in_several_passes)
{
    uint64_t seed = 3;
    for (unsigned int qubits = 15; qubits <= 17; qubits++) {
        struct encode_job job = {
            .encoder = ENCODER_IQP, .type = ENCODE_F64, .qubits = qubits, .samples = 1};
        job.inputs = encoder_inputs(job.encoder, qubits);
        random_job(&job, &seed);
    }
}

// A device that has clusters gives the same bits as one that has none, and what fits in no
// cluster is refused by the way that would need it.
static void same_bits(const struct encode_job *job, const void *in, bool fits)
{
    void *resident, *passes;
    uint8_t *faults, *faults_passes;
    const enum status status = encode_by(CUDA_ENCODE_RESIDENT, *job, in, &resident, &faults);
    assert_int_equal(encode_by(CUDA_ENCODE_PASSES, *job, in, &passes, &faults_passes), STATUS_OK);
    if (status == STATUS_UNSUPPORTED && !cuda_encode_has_clusters(device)) {
        print_message("%u qubits: no clusters here\n", job->qubits);
    } else if (fits) {
        assert_int_equal(status, STATUS_OK);
        assert_memory_equal(resident, passes, encode_out_size(job));
        assert_memory_equal(faults, faults_passes, job->samples);
    } else {
        assert_int_equal(status, STATUS_UNSUPPORTED);
    }
    free(resident);
    free(passes);
    free(faults);
    free(faults_passes);
    if (fits)
        check(job, in);
}

// From a part of a block's share to the most that eight blocks keep, aligned and not.
TEST_CASE(amplitudes_have_the_same_bits_whichever_way)
{
    static const struct {
        enum encode_type type;
        unsigned int qubits;
        size_t inputs, samples;
        bool fits;
    } cases[] = {
        {ENCODE_F64, 1, 1, 5, true},        {ENCODE_F32, 1, 2, 5, true},
        {ENCODE_F64, 9, 300, 3, true},      {ENCODE_F32, 9, 511, 3, true},
        {ENCODE_F64, 12, 4096, 2, true},    {ENCODE_F64, 13, 8191, 3, true},
        {ENCODE_F64, 14, 16384, 2, true},   {ENCODE_F64, 15, 20001, 2, true},
        {ENCODE_F64, 16, 65536, 2, true},   {ENCODE_F64, 16, 4097, 1, true},
        {ENCODE_F32, 16, 65536, 2, true},   {ENCODE_F32, 16, 65535, 2, true},
        {ENCODE_F64, 17, 131072, 1, true},  {ENCODE_F32, 18, 262141, 1, true},
        {ENCODE_F64, 18, 262144, 1, false}, {ENCODE_F32, 19, 17, 1, false},
    };
    uint64_t seed = 7;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct encode_job job = {.encoder = ENCODER_AMPLITUDE,
                                 .type = cases[i].type,
                                 .qubits = cases[i].qubits,
                                 .samples = cases[i].samples,
                                 .inputs = cases[i].inputs};
        void *in = new_inputs(&job);
        for (size_t k = 0; k < job.samples * job.inputs; k++)
            set_input(&job, in, k, random_real(&seed) * (k % 5 ? 1.0 : 1e-20));
        same_bits(&job, in, cases[i].fits);
        // The last number of the last sample, which another block has than its first.
        if (job.qubits <= 15) {
            set_input(&job, in, job.samples * job.inputs - 1, (double)NAN);
            same_bits(&job, in, cases[i].fits);
            memset(in, 0, encode_in_size(&job));
            same_bits(&job, in, cases[i].fits);
        }
        free(in);
    }
}

// Qubits within a row of a thread's, within a block, and of one to three more; with steps left
// over between a block's rows and the last.
TEST_CASE(transforms_have_the_same_bits_whichever_way)
{
    static const struct {
        enum encode_type type;
        unsigned int qubits;
        size_t samples;
        bool fits;
    } cases[] = {
        {ENCODE_F64, 1, 3, true},  {ENCODE_F32, 3, 3, true},   {ENCODE_F64, 4, 3, true},
        {ENCODE_F64, 5, 3, true},  {ENCODE_F64, 9, 2, true},   {ENCODE_F32, 10, 2, true},
        {ENCODE_F64, 11, 2, true}, {ENCODE_F64, 12, 2, true},  {ENCODE_F64, 13, 2, true},
        {ENCODE_F32, 13, 2, true}, {ENCODE_F64, 14, 1, true},  {ENCODE_F64, 15, 1, true},
        {ENCODE_F32, 15, 1, true}, {ENCODE_F64, 16, 2, true},  {ENCODE_F32, 16, 1, true},
        {ENCODE_F32, 17, 1, true}, {ENCODE_F64, 17, 1, false},
    };
    uint64_t seed = 8;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct encode_job job = {.encoder = ENCODER_IQP,
                                 .type = cases[i].type,
                                 .qubits = cases[i].qubits,
                                 .samples = cases[i].samples,
                                 .inputs = encoder_inputs(ENCODER_IQP, cases[i].qubits)};
        void *in = new_inputs(&job);
        for (size_t k = 0; k < job.samples * job.inputs; k++)
            set_input(&job, in, k, random_real(&seed) * 30.0);
        same_bits(&job, in, cases[i].fits);
        free(in);
    }
    struct encode_job job = {
        .encoder = ENCODER_IQP, .type = ENCODE_F64, .qubits = 14, .samples = 2, .inputs = 105};
    double in[210] = {0};
    in[104] = (double)INFINITY; // a pair of the highest qubits
    same_bits(&job, in, true);
}

TEST_CASE(ways_there_are_not)
{
    const double in[] = {3.0, 4.0};
    struct encode_job job = {
        .encoder = ENCODER_ANGLE, .type = ENCODE_F64, .qubits = 2, .samples = 1, .inputs = 2};
    void *states;
    uint8_t *faults;
    assert_int_equal(encode_by(CUDA_ENCODE_RESIDENT, job, in, &states, &faults),
                     STATUS_UNSUPPORTED);
    free(states);
    free(faults);
    assert_int_equal(encode_by(CUDA_ENCODE_PASSES, job, in, &states, &faults), STATUS_OK);
    free(states);
    free(faults);
}

int main(void)
{
    struct error err = {0};
    struct device *probe = NULL;
    if (device_open(&probe, &(struct device_options){.spec = "cuda"}, &err) != STATUS_OK) {
        print_message("skipped: %s\n", err.text);
        return 77;
    }
    device_close(probe);
    return TEST_RUN_ONCE(open_device, close_device, every_encoder, amplitudes_of_any_length,
                         amplitudes_of_any_size, amplitudes_of_a_large_state, known_states,
                         refused_samples, transforms_in_several_passes, angles_of_any_size,
                         amplitudes_have_the_same_bits_whichever_way,
                         transforms_have_the_same_bits_whichever_way, ways_there_are_not);
}
