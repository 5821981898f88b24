#include "server/workload/encode/inputs.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/sys/clock.h"
#include "server/workload/encode/npy.h"

// ---- Random numbers -------------------------------------------------------

// 64 random bits for index `at`: splitmix64 (Steele, Lea and Flood, 2014).
static uint64_t bits_at(uint64_t seed, uint64_t at)
{
    uint64_t z = seed + (at + 1) * UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

// x * scale + shift for uniform 0 <= x < 1, in steps that the type represents; or rounded down.
struct range {
    double scale, shift;
    bool whole;
};

static struct range range_of(const struct generator *generator)
{
    if (generator->encoder == ENCODER_AMPLITUDE)
        return (struct range){.scale = 2.0, .shift = -1.0};
    if (generator->encoder == ENCODER_BASIS)
        return (struct range){.scale = ldexp(1.0, (int)generator->qubits), .whole = true};
    return (struct range){.scale = 6.283185307179586};
}

static void fill_f64(double *to, struct range range, uint64_t seed, uint64_t first, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        double x = (double)(bits_at(seed, first + i) >> 11) * 0x1p-53 * range.scale + range.shift;
        to[i] = range.whole ? floor(x) : x;
    }
}

static void fill_f32(float *to, struct range range, uint64_t seed, uint64_t first, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        double x = (double)(bits_at(seed, first + i) >> 40) * 0x1p-24 * range.scale + range.shift;
        to[i] = (float)(range.whole ? floor(x) : x);
    }
}

void generator_fill(const struct generator *generator, uint64_t first, size_t count, void *to)
{
    struct range range = range_of(generator);
    // Mixed, so that similar seeds give independent sequences.
    uint64_t seed = bits_at(UINT64_C(0x2545f4914f6cdd1d), generator->seed);
    if (generator->type == ENCODE_F64)
        fill_f64(to, range, seed, first, count);
    else
        fill_f32(to, range, seed, first, count);
}

// ---- Inputs ---------------------------------------------------------------

const char *inputs_source_name(const struct inputs_options *options)
{
    static const char *const names[INPUTS_FROM_COUNT] = {"generator", "pageable", "pinned"};
    return options->path ? "file" : names[options->from];
}

struct inputs {
    struct inputs_shape shape;
    enum inputs_from from;
    struct npy_reader *reader; // NULL: generated
    struct generator generator;
    unsigned char *stretch; // generated in advance
    struct device *device;  // that pinned it
};

// ---- Shapes ---------------------------------------------------------------

// A one-dimensional file is one sample; for basis one index per sample.
static void read_shape(struct inputs_shape *shape, const struct npy_header *header,
                       enum encoder encoder)
{
    bool column = header->dimensions == 1 && encoder != ENCODER_BASIS;
    shape->samples = column ? 1 : header->shape[0];
    shape->inputs = column ? header->shape[0] : header->shape[1];
}

static enum status check_shape(const struct inputs_shape *shape,
                               const struct inputs_options *options, struct error *err)
{
    size_t wanted = encoder_inputs(options->encoder, options->qubits);
    size_t most = (size_t)1 << options->qubits;
    if (wanted > 0 ? shape->inputs == wanted : shape->inputs >= 1 && shape->inputs <= most)
        return STATUS_OK;
    return error_set(err, STATUS_CORRUPT,
                     "%s: %" PRIu64 " x %zu numbers: %s of %u qubits takes %s%zu a sample",
                     options->path, shape->samples, shape->inputs, encoder_name(options->encoder),
                     options->qubits, wanted ? "" : "up to ", wanted ? wanted : most);
}

static enum status open_file(struct inputs *inputs, const struct inputs_options *options,
                             struct error *err)
{
    enum status status = npy_open(&inputs->reader, options->path, err);
    if (status != STATUS_OK)
        return status;
    const struct npy_header *header = npy_get_header(inputs->reader);
    struct inputs_shape *shape = &inputs->shape;
    if (options->type >= 0 && (enum encode_type)options->type != header->type)
        return error_set(err, STATUS_INVALID, "%s: the numbers are %s (--type says %s)",
                         options->path, encode_type_name(header->type),
                         encode_type_name((enum encode_type)options->type));
    shape->type = header->type;
    shape->name = options->path;
    read_shape(shape, header, options->encoder);
    uint64_t most = (uint64_t)options->batch * options->batches; // checked by inputs_open
    if (options->batches > 0 && most < shape->samples)
        shape->samples = most;
    return check_shape(shape, options, err);
}

static void choose_generated(struct inputs *inputs, const struct inputs_options *options)
{
    struct inputs_shape *shape = &inputs->shape;
    size_t wanted = encoder_inputs(options->encoder, options->qubits);
    shape->type = options->type < 0 ? ENCODE_F64 : (enum encode_type)options->type;
    shape->name = "generated";
    shape->inputs = wanted ? wanted : (size_t)1 << options->qubits;
    shape->samples = (options->batches ? options->batches : 1) * options->batch;
    inputs->from = options->from;
    inputs->generator =
        (struct generator){options->encoder, shape->type, options->qubits, options->seed};
}

static size_t stretch_size(const struct inputs *inputs, size_t batch)
{
    if (inputs->reader || inputs->from == INPUTS_FROM_GENERATOR)
        return 0;
    uint64_t batch_size = (uint64_t)batch * inputs->shape.sample_size;
    uint64_t batches = (inputs->shape.samples + batch - 1) / batch;
    uint64_t most = INPUTS_STRETCH / batch_size > 1 ? INPUTS_STRETCH / batch_size : 1;
    return (size_t)(batch_size * (batches < most ? batches : most));
}

static enum status open_inputs(struct inputs *inputs, const struct inputs_options *options,
                               struct error *err)
{
    uint64_t samples;
    uint64_t bytes;
    enum status status = STATUS_OK;
    struct inputs_shape *shape = &inputs->shape;
    if (__builtin_mul_overflow((uint64_t)options->batch, options->batches, &samples))
        return error_set(err, STATUS_INVALID, "encode: %" PRIu64 " batches of %zu: too many",
                         options->batches, options->batch);
    if (options->path)
        status = open_file(inputs, options, err);
    else
        choose_generated(inputs, options);
    if (status != STATUS_OK)
        return status;
    shape->sample_size = shape->inputs * encode_type_size(shape->type);
    if (__builtin_mul_overflow(shape->samples, shape->sample_size, &bytes) || bytes > INT64_MAX ||
        __builtin_mul_overflow(options->batch, shape->sample_size, &bytes) || bytes > INT64_MAX)
        return error_set(err, STATUS_INVALID,
                         "encode: %" PRIu64 " samples of %zu bytes, %zu at once: too many",
                         shape->samples, shape->sample_size, options->batch);
    shape->stretch = stretch_size(inputs, options->batch);
    return STATUS_OK;
}

enum status inputs_open(struct inputs **out, const struct inputs_options *options,
                        struct error *err)
{
    struct inputs *inputs = calloc(1, sizeof *inputs);
    if (!inputs)
        return error_no_memory(err, "encode");
    enum status status = open_inputs(inputs, options, err);
    if (status != STATUS_OK) {
        inputs_close(inputs);
        return status;
    }
    *out = inputs;
    return STATUS_OK;
}

const struct inputs_shape *inputs_get_shape(const struct inputs *inputs)
{
    return &inputs->shape;
}

void inputs_close(struct inputs *inputs)
{
    if (!inputs)
        return;
    npy_close(inputs->reader);
    if (inputs->device)
        device_pinned_free(inputs->device, inputs->stretch, inputs->shape.stretch);
    else
        free(inputs->stretch);
    free(inputs);
}

// ---- Numbers --------------------------------------------------------------

static enum status new_stretch(struct inputs *inputs, struct device *device, struct error *err)
{
    void *memory = NULL;
    if (inputs->from == INPUTS_FROM_PINNED) {
        enum status status = device_pinned_new(device, &memory, inputs->shape.stretch, err);
        if (status != STATUS_OK)
            return status;
        inputs->device = device;
    } else {
        memory = malloc(inputs->shape.stretch);
        if (!memory)
            return error_set(err, STATUS_NOMEM, "encode: no memory for %zu bytes of inputs",
                             inputs->shape.stretch);
    }
    inputs->stretch = memory;
    return STATUS_OK;
}

enum status inputs_prepare(struct inputs *inputs, struct device *device, uint64_t *took_ns,
                           struct error *err)
{
    *took_ns = 0;
    if (inputs->shape.stretch == 0)
        return STATUS_OK;
    enum status status = new_stretch(inputs, device, err);
    if (status != STATUS_OK)
        return status;
    uint64_t begun = clock_monotonic_ns();
    generator_fill(&inputs->generator, 0,
                   inputs->shape.stretch / encode_type_size(inputs->shape.type), inputs->stretch);
    *took_ns = clock_monotonic_ns() - begun;
    return STATUS_OK;
}

enum status inputs_fill(const struct inputs *inputs, uint64_t offset, void *to, size_t size,
                        struct error *err)
{
    size_t each = encode_type_size(inputs->shape.type);
    if (inputs->reader)
        return npy_read(inputs->reader, offset, to, size, err);
    if (inputs->stretch)
        memcpy(to, inputs_borrow(inputs, offset), size);
    else
        generator_fill(&inputs->generator, offset / each, size / each, to);
    return STATUS_OK;
}

const void *inputs_borrow(const struct inputs *inputs, uint64_t offset)
{
    return inputs->stretch + offset % inputs->shape.stretch;
}
