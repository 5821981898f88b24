#include "server/device/encode.h"

#include "server/device/device_ops.h"

static const char *const encoder_names[ENCODER_COUNT] = {
    [ENCODER_AMPLITUDE] = "amplitude", [ENCODER_ANGLE] = "angle", [ENCODER_BASIS] = "basis",
    [ENCODER_PHASE] = "phase",         [ENCODER_IQP_Z] = "iqp-z", [ENCODER_IQP] = "iqp",
};

static const struct encode_type_line {
    const char *name;
    size_t size;
} encode_types[ENCODE_TYPE_COUNT] = {[ENCODE_F64] = {"f64", 8}, [ENCODE_F32] = {"f32", 4}};

const char *encoder_name(enum encoder encoder)
{
    return (unsigned int)encoder < ENCODER_COUNT ? encoder_names[encoder] : "?";
}

const char *encode_type_name(enum encode_type type)
{
    return (unsigned int)type < ENCODE_TYPE_COUNT ? encode_types[type].name : "?";
}

size_t encode_type_size(enum encode_type type)
{
    return (unsigned int)type < ENCODE_TYPE_COUNT ? encode_types[type].size : 0;
}

size_t encoder_inputs(enum encoder encoder, unsigned int qubits)
{
    switch (encoder) {
    case ENCODER_ANGLE:
    case ENCODER_PHASE:
    case ENCODER_IQP_Z:
        return qubits;
    case ENCODER_IQP:
        return qubits + (size_t)qubits * (qubits - 1) / 2;
    case ENCODER_BASIS:
        return 1;
    case ENCODER_AMPLITUDE:
    case ENCODER_COUNT:
        break;
    }
    return 0;
}

const char *encode_fault_text(enum encode_fault fault)
{
    static const char *const texts[] = {
        [ENCODE_FAULT_NONE] = "none",
        [ENCODE_FAULT_NOT_FINITE] = "an input is NaN or infinite",
        [ENCODE_FAULT_ZERO] = "all inputs are zero",
        [ENCODE_FAULT_INDEX] = "the index is negative, fractional or past the last state",
    };
    return (unsigned int)fault < sizeof texts / sizeof texts[0] ? texts[fault] : "?";
}

// a * b, or 0 where that does not fit.
static size_t product(size_t a, size_t b)
{
    size_t result;
    return __builtin_mul_overflow(a, b, &result) || result > PTRDIFF_MAX ? 0 : result;
}

size_t encode_in_size(const struct encode_job *job)
{
    return product(product(job->samples, job->inputs), encode_type_size(job->type));
}

size_t encode_out_size(const struct encode_job *job)
{
    if (job->qubits > ENCODE_QUBITS_MAX)
        return 0;
    return product(job->samples, 2 * encode_type_size(job->type) << job->qubits);
}

size_t encode_scratch_size(const struct device *device, const struct encode_job *job)
{
    return device->ops->encode_scratch ? device->ops->encode_scratch(device, job) : 0;
}

// Describes the first inconsistency of a job; NULL: none.
static const char *objection(const struct device *device, const struct encode_job *job)
{
    if ((unsigned int)job->encoder >= ENCODER_COUNT)
        return "no such encoder";
    if ((unsigned int)job->type >= ENCODE_TYPE_COUNT)
        return "no such type";
    if (job->qubits < 1 || job->qubits > ENCODE_QUBITS_MAX)
        return "the number of qubits is out of range";
    size_t inputs = encoder_inputs(job->encoder, job->qubits);
    if (inputs ? job->inputs != inputs : job->inputs < 1 || job->inputs > (size_t)1 << job->qubits)
        return "the number of inputs does not fit the encoder";
    if (job->samples == 0 || encode_in_size(job) == 0 || encode_out_size(job) == 0)
        return "no samples, or more than memory can hold";
    if (!job->in || !job->out || !job->faults)
        return "memory is missing";
    if (!job->scratch && encode_scratch_size(device, job) > 0)
        return "scratch memory is missing";
    return NULL;
}

enum status device_encode(struct device_stream *stream, const struct encode_job *job,
                          struct error *err)
{
    const struct device *device = stream->device;
    const char *wrong = objection(device, job);
    if (wrong)
        return error_set(err, STATUS_INVALID, "encode %s, %u qubits, %zu x %zu inputs: %s",
                         encoder_name(job->encoder), job->qubits, job->samples, job->inputs, wrong);
    if (!device->ops->encode)
        return error_set(err, STATUS_UNSUPPORTED, "encode: the device %s has no encoders",
                         device->ops->name);
    return device->ops->encode(stream, job, err);
}
