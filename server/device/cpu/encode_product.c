// Product states: the amplitude of a state is a product of one factor a qubit.  A
// table of the lower qubits' products, times one number a row of it.
#include <math.h>
#include <stdint.h>

#include "server/device/cpu/encode_parts.h"

enum { TABLE_BITS = 10, TABLE = 1 << TABLE_BITS };

// The factors of a qubit's two values, complex.
static void angle_factors(double factors[2][2], double x)
{
    factors[0][0] = cos(x);
    factors[1][0] = sin(x);
    factors[0][1] = factors[1][1] = 0.0;
}

// The 2^(-n/2) in front is the table's.
static void phase_factors(double factors[2][2], double x)
{
    factors[0][0] = 1.0;
    factors[0][1] = 0.0;
    factors[1][0] = cos(x);
    factors[1][1] = sin(x);
}

// (1 + e^ix) / 2 = cos(x/2) e^(ix/2) and (1 - e^ix) / 2 = -i sin(x/2) e^(ix/2).
static void iqp_z_factors(double factors[2][2], double x)
{
    double c = cos(x / 2.0);
    double s = sin(x / 2.0);
    factors[0][0] = c * c;
    factors[0][1] = c * s;
    factors[1][0] = s * s;
    factors[1][1] = -(s * c);
}

// A sample's tables: states are low[x] * middle[y] * high[z], x the lowest qubits.
struct tables {
    unsigned int low_bits, middle_bits;
    double rounded[TABLE][2]; // low, of the launch's type; angle: reals only
    double middle[TABLE][2], high[TABLE][2];
};

struct product {
    const struct encode_run *run;
    struct encode_split split;
    void (*factors)(double factors[2][2], double x);
    bool real;    // imaginary parts are 0
    double first; // in front of all
};

// Low tables as large as the rows are many, within reason: both cost time.
static unsigned int low_bits(unsigned int qubits)
{
    unsigned int bits = qubits / 2 + 2;
    bits = bits > qubits ? qubits : bits;
    return bits > TABLE_BITS ? TABLE_BITS : bits;
}

static void make_tables(struct tables *tables, const struct product *task, size_t sample)
{
    unsigned int qubits = task->run->job->qubits;
    double factors[ENCODE_QUBITS_MAX][2][2];
    for (unsigned int k = 0; k < qubits; k++)
        task->factors(factors[k], encode_input(task->run, sample, k));
    const double one[2] = {1.0, 0.0};
    const double first[2] = {task->first, 0.0};
    const double(*rest)[2][2] = (const double(*)[2][2])factors;

    unsigned int low = low_bits(qubits);
    unsigned int middle = qubits - low > TABLE_BITS ? TABLE_BITS : qubits - low;
    tables->low_bits = low;
    tables->middle_bits = middle;
    size_t count = (size_t)1 << low;
    encode_product_table(tables->middle, low, first, rest); // only on its way
    for (size_t i = 0; task->real && i < count; i++)
        tables->middle[i / 2][i % 2] = tables->middle[i][0];
    encode_round(task->run, tables->rounded, &tables->middle[0][0], task->real ? count : 2 * count);
    encode_product_table(tables->middle, middle, one, rest + low);
    encode_product_table(tables->high, qubits - low - middle, one, rest + low + middle);
}

// Row `row` of a sample: 2^low_bits states.
static void write_row(const struct product *task, const struct tables *tables, size_t sample,
                      size_t row)
{
    const struct encode_run *run = task->run;
    size_t count = (size_t)1 << tables->low_bits;
    size_t y = row & (((size_t)1 << tables->middle_bits) - 1);
    double factor[2] = {tables->middle[y][0], tables->middle[y][1]};
    encode_multiply(factor, tables->high[row >> tables->middle_bits]);
    void *to = encode_state(run, sample, row * count);
    if (task->real)
        run->kernels->widen(to, tables->rounded, count, 1.0, factor[0], run->stream);
    else
        run->kernels->scale(to, tables->rounded, count, factor, run->stream);
}

static void product_piece(const struct product *task, size_t sample, size_t first)
{
    const struct encode_run *run = task->run;
    bool finite = encode_inputs_finite(run, sample);
    if (first == 0)
        run->job->faults[sample] = finite ? ENCODE_FAULT_NONE : ENCODE_FAULT_NOT_FINITE;
    if (!finite) {
        run->kernels->clear(encode_state(run, sample, first), task->split.piece * run->pair_size,
                            run->stream);
        return;
    }
    struct tables tables;
    make_tables(&tables, task, sample);
    for (size_t at = first; at < first + task->split.piece; at += (size_t)1 << tables.low_bits)
        write_row(task, &tables, sample, at >> tables.low_bits);
}

static void product_part(void *context, size_t part, unsigned int thread)
{
    (void)thread;
    const struct product *task = context;
    const struct encode_split *split = &task->split;
    size_t first = part / split->pieces * split->samples;
    for (size_t s = first; s < first + split->samples && s < task->run->job->samples; s++)
        product_piece(task, s, part % split->pieces * split->piece);
    task->run->kernels->fence();
}

void encode_product(const struct encode_run *run)
{
    struct product task = {.run = run, .split = encode_split(run, true), .first = 1.0};
    switch ((int)run->job->encoder) {
    case ENCODER_ANGLE:
        task.factors = angle_factors;
        task.real = true;
        break;
    case ENCODER_PHASE:
        task.factors = phase_factors;
        task.first = exp2(-(double)run->job->qubits / 2.0);
        break;
    default:
        task.factors = iqp_z_factors;
    }
    pool_run(run->pool, product_part, &task, task.split.parts);
}
