#include "server/workload/encode/reference.h"

#include <math.h>
#include <string.h>

static double input(enum encode_type type, const void *in, size_t i)
{
    return type == ENCODE_F64 ? ((const double *)in)[i] : (double)((const float *)in)[i];
}

// Reduces an angle to -pi .. pi, so that sums of angles keep their precision.
static double turn(double angle)
{
    return atan2(sin(angle), cos(angle));
}

struct sample {
    unsigned int qubits;
    enum encode_type type;
    const void *in;
    size_t inputs;
};

static double input_of(const struct sample *sample, size_t i)
{
    return input(sample->type, sample->in, i);
}

static enum encode_fault amplitude(double *state, const struct sample *sample)
{
    double largest = 0.0;
    for (size_t i = 0; i < sample->inputs; i++)
        largest = fmax(largest, fabs(input_of(sample, i)));
    if (largest == 0.0)
        return ENCODE_FAULT_ZERO;
    int exponent;
    (void)frexp(largest, &exponent);
    long double sum = 0.0L;
    for (size_t i = 0; i < sample->inputs; i++) {
        long double x = (long double)ldexp(input_of(sample, i), -exponent);
        sum += x * x;
    }
    long double norm = sqrtl(sum);
    for (size_t i = 0; i < sample->inputs; i++)
        state[2 * i] = (double)((long double)ldexp(input_of(sample, i), -exponent) / norm);
    return ENCODE_FAULT_NONE;
}

// state[b] = first * prod_k factors[k][bit k of b].
static void product(double *state, unsigned int qubits, double first, const double (*factors)[2][2])
{
    for (size_t b = 0; b >> qubits == 0; b++) {
        double re = first;
        double im = 0.0;
        for (unsigned int k = 0; k < qubits; k++) {
            const double *factor = factors[k][b >> k & 1];
            double next = re * factor[0] - im * factor[1];
            im = re * factor[1] + im * factor[0];
            re = next;
        }
        state[2 * b] = re;
        state[2 * b + 1] = im;
    }
}

static enum encode_fault angle(double *state, const struct sample *sample)
{
    double factors[ENCODE_QUBITS_MAX][2][2];
    for (unsigned int k = 0; k < sample->qubits; k++) {
        double x = input_of(sample, k);
        memcpy(factors[k], (double[2][2]){{cos(x), 0.0}, {sin(x), 0.0}}, sizeof factors[k]);
    }
    product(state, sample->qubits, 1.0, (const double(*)[2][2])factors);
    return ENCODE_FAULT_NONE;
}

static enum encode_fault basis(double *state, const struct sample *sample)
{
    double x = input_of(sample, 0);
    if (x < 0.0 || x != floor(x) || x >= ldexp(1.0, (int)sample->qubits))
        return ENCODE_FAULT_INDEX;
    state[2 * (size_t)x] = 1.0;
    return ENCODE_FAULT_NONE;
}

enum { ANGLES_MAX = ENCODE_QUBITS_MAX * (ENCODE_QUBITS_MAX + 1) / 2 };

// Reduces the inputs to -pi .. pi.
static void read_angles(double angles[ANGLES_MAX], const struct sample *sample)
{
    for (size_t i = 0; i < sample->inputs; i++)
        angles[i] = turn(input_of(sample, i));
}

static double theta_of_singles(const double *angles, unsigned int qubits, size_t x)
{
    double theta = 0.0;
    for (unsigned int i = 0; i < qubits; i++)
        if (x >> i & 1)
            theta += angles[i];
    return theta;
}

static enum encode_fault phase(double *state, const struct sample *sample)
{
    double angles[ANGLES_MAX] = {0};
    read_angles(angles, sample);
    double size = exp2(-(double)sample->qubits / 2.0);
    for (size_t b = 0; b >> sample->qubits == 0; b++) {
        double theta = theta_of_singles(angles, sample->qubits, b);
        state[2 * b] = size * cos(theta);
        state[2 * b + 1] = size * sin(theta);
    }
    return ENCODE_FAULT_NONE;
}

// The sum over all x, qubit by qubit: two terms each.
static enum encode_fault iqp_z(double *state, const struct sample *sample)
{
    double factors[ENCODE_QUBITS_MAX][2][2];
    for (unsigned int k = 0; k < sample->qubits; k++) {
        double c = cos(input_of(sample, k)) / 2.0;
        double s = sin(input_of(sample, k)) / 2.0;
        memcpy(factors[k], (double[2][2]){{0.5 + c, s}, {0.5 - c, -s}}, sizeof factors[k]);
    }
    product(state, sample->qubits, 1.0, (const double(*)[2][2])factors);
    return ENCODE_FAULT_NONE;
}

// The phase of x, times 2^-n.
static void phase_of(double out[2], const double *angles, unsigned int qubits, size_t x)
{
    double theta = theta_of_singles(angles, qubits, x);
    size_t at = qubits;
    for (unsigned int i = 0; i < qubits; i++)
        for (unsigned int j = i + 1; j < qubits; j++, at++)
            if ((x >> i & 1) && (x >> j & 1))
                theta += angles[at];
    double scale = ldexp(1.0, -(int)qubits);
    out[0] = scale * cos(theta);
    out[1] = scale * sin(theta);
}

// The sum over all x by a Walsh-Hadamard transform.
static enum encode_fault iqp(double *state, const struct sample *sample)
{
    double angles[ANGLES_MAX] = {0};
    read_angles(angles, sample);
    size_t states = (size_t)1 << sample->qubits;
    for (size_t x = 0; x < states; x++)
        phase_of(state + 2 * x, angles, sample->qubits, x);
    for (size_t half = 1; half < states; half *= 2)
        for (size_t i = 0; i < 2 * states; i++)
            if (!(i / 2 & half)) {
                double a = state[i];
                double b = state[i + 2 * half];
                state[i] = a + b;
                state[i + 2 * half] = a - b;
            }
    return ENCODE_FAULT_NONE;
}

enum encode_fault reference_encode(double *state, enum encoder encoder, unsigned int qubits,
                                   enum encode_type type, const void *in, size_t inputs)
{
    static enum encode_fault (*const encoders[])(double *, const struct sample *) = {
        [ENCODER_AMPLITUDE] = amplitude, [ENCODER_ANGLE] = angle, [ENCODER_BASIS] = basis,
        [ENCODER_PHASE] = phase,         [ENCODER_IQP_Z] = iqp_z, [ENCODER_IQP] = iqp,
    };
    const struct sample sample = {qubits, type, in, inputs};
    memset(state, 0, (2 * sizeof *state) << qubits);
    for (size_t i = 0; i < inputs; i++)
        if (!isfinite(input_of(&sample, i)))
            return ENCODE_FAULT_NOT_FINITE;
    return encoders[encoder](state, &sample);
}

void reference_compare(struct reference_difference *out, const void *state, enum encode_type type,
                       const double *reference, unsigned int qubits)
{
    *out = (struct reference_difference){0};
    long double own = 0.0L;
    long double theirs = 0.0L;
    long double re = 0.0L;
    long double im = 0.0L;
    bool number = true;
    for (size_t b = 0; b >> qubits == 0; b++) {
        long double x = (long double)input(type, state, 2 * b);
        long double y = (long double)input(type, state, 2 * b + 1);
        long double u = (long double)reference[2 * b];
        long double v = (long double)reference[2 * b + 1];
        number = number && isfinite(x) && isfinite(y);
        out->largest = fmax(out->largest, (double)fmaxl(fabsl(x - u), fabsl(y - v)));
        own += x * x + y * y;
        theirs += u * u + v * v;
        re += u * x + v * y;
        im += u * y - v * x;
    }
    if (!number)
        out->largest = (double)INFINITY;
    else if (own > 0.0L && theirs > 0.0L)
        out->fidelity = (double)((re * re + im * im) / (own * theirs));
    else
        out->fidelity = own == theirs ? 1.0 : 0.0;
}

double reference_tolerance(enum encode_type type)
{
    return type == ENCODE_F64 ? 1e-10 : 1e-5;
}

double reference_fidelity(enum encode_type type)
{
    return type == ENCODE_F64 ? 1.0 - 1e-14 : 1.0 - 1e-6;
}
