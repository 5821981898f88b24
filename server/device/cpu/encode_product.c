// Product states: the amplitude of a state is a product of one factor a qubit.  A table
// of the lowest qubits' products, times one number a row of it: one multiplication a
// state, so that writing them is what takes time.
#include <assert.h>
#include <math.h>
#include <stdalign.h>
#include <stdint.h>

#include "server/device/cpu/encode_parts.h"

enum {
    LOW_BITS = 8, // tables are computed per sample, and must not take longer than rows
    LOW = 1 << LOW_BITS,
    ROWS_MAX = 1 << 9, // of a piece
};

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

// A piece's tables: state (y << low_bits) + x is low[x] * rows[y].
struct tables {
    unsigned int low_bits;
    alignas(
        ENCODE_ALIGNMENT) double rounded[LOW][2]; // low, of the launch's type; angle: reals only
    double low[LOW][2], rows[ROWS_MAX][2];
};

struct product {
    const struct encode_run *run;
    struct encode_split split;
    void (*factors)(double factors[2][2], double x);
    bool real;    // imaginary parts are 0
    double first; // in front of all
};

// Rows are long enough to be worth a call each, tables as short as that allows.
static unsigned int low_bits(unsigned int qubits)
{
    unsigned int bits = qubits / 2 + 2;
    bits = bits > qubits ? qubits : bits;
    return bits > LOW_BITS ? LOW_BITS : bits;
}

// Bits of an index within a piece.
static unsigned int piece_bits(const struct product *task)
{
    unsigned int bits = 0;
    while (task->split.piece >> bits > 1)
        bits++;
    return bits;
}

// For the piece that begins with state `first` of a sample.
static void make_tables(struct tables *tables, const struct product *task, size_t sample,
                        size_t first)
{
    unsigned int qubits = task->run->job->qubits;
    unsigned int bits = piece_bits(task);
    unsigned int low = tables->low_bits = low_bits(qubits);
    double factors[ENCODE_QUBITS_MAX][2][2];
    assert(task->split.piece >> low <= ROWS_MAX);
    for (unsigned int k = 0; k < qubits; k++)
        task->factors(factors[k], encode_input(task->run, sample, k));
    const double(*rest)[2][2] = (const double(*)[2][2])factors;

    const double one[2] = {1.0, 0.0};
    double above[2] = {task->first, 0.0}; // of the qubits that tell pieces apart
    for (unsigned int k = bits; k < qubits; k++)
        encode_multiply(above, factors[k][first >> k & 1]);
    encode_product_table(tables->rows, bits - low, above, rest + low);

    size_t count = (size_t)1 << low;
    encode_product_table(tables->low, low, one, rest);
    for (size_t i = 0; task->real && i < count; i++)
        tables->low[i / 2][i % 2] = tables->low[i][0];
    encode_round(task->run, tables->rounded, &tables->low[0][0], task->real ? count : 2 * count);
}

// Writes row `row` of a piece at `to`.
static void write_row(const struct product *task, const struct tables *tables, void *to, size_t row)
{
    const struct encode_run *run = task->run;
    size_t count = (size_t)1 << tables->low_bits;
    const double *factor = tables->rows[row];
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
    make_tables(&tables, task, sample, first);
    for (size_t row = 0; row < task->split.piece >> tables.low_bits; row++)
        write_row(task, &tables, encode_state(run, sample, first + (row << tables.low_bits)), row);
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
    thread_pool_run(run->pool, product_part, &task, task.split.parts);
}
