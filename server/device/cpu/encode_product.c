// Product states: the amplitude of a state is a product of one factor a qubit.  A table
// of the lowest qubits' products, times one number a row of it: one multiplication a
// state, so that writing them is what takes time.
#include <assert.h>
#include <math.h>
#include <stdalign.h>

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
    void (*factors)(double factors[2][2], double x);
    bool real;    // imaginary parts are 0
    double first; // in front of all
};

static struct product product_of(const struct encode_job *job)
{
    if (job->encoder == ENCODER_ANGLE)
        return (struct product){.factors = angle_factors, .real = true, .first = 1.0};
    if (job->encoder == ENCODER_PHASE)
        return (struct product){.factors = phase_factors,
                                .first = exp2(-(double)job->qubits / 2.0)};
    return (struct product){.factors = iqp_z_factors, .first = 1.0};
}

// Rows are long enough to be worth a call each, tables as short as that allows.
static unsigned int low_bits(unsigned int qubits)
{
    unsigned int bits = qubits / 2 + 2;
    bits = bits > qubits ? qubits : bits;
    return bits > LOW_BITS ? LOW_BITS : bits;
}

// For the piece of `count` states from `first` on of a sample.
static void make_tables(struct tables *tables, const struct product *product,
                        const struct encode_run *run, size_t sample, size_t first, size_t count)
{
    unsigned int qubits = run->job->qubits;
    unsigned int bits = 0; // of an index within the piece
    unsigned int low = tables->low_bits = low_bits(qubits);
    double factors[ENCODE_QUBITS_MAX][2][2];
    assert(count >> low <= ROWS_MAX);
    while (count >> bits > 1)
        bits++;
    for (unsigned int k = 0; k < qubits; k++)
        product->factors(factors[k], encode_input(run, sample, k));
    const double(*rest)[2][2] = (const double(*)[2][2])factors;

    const double one[2] = {1.0, 0.0};
    double above[2] = {product->first, 0.0}; // of the qubits that tell pieces apart
    for (unsigned int k = bits; k < qubits; k++)
        encode_multiply(above, factors[k][first >> k & 1]);
    encode_product_table(tables->rows, bits - low, above, rest + low);

    size_t columns = (size_t)1 << low;
    encode_product_table(tables->low, low, one, rest);
    for (size_t i = 0; product->real && i < columns; i++)
        tables->low[i / 2][i % 2] = tables->low[i][0];
    encode_round(run, tables->rounded, &tables->low[0][0], product->real ? columns : 2 * columns);
}

static void product_piece(const struct encode_run *run, size_t sample, size_t first, size_t count)
{
    const struct product product = product_of(run->job);
    bool finite = encode_inputs_finite(run, sample);
    if (first == 0)
        run->job->faults[sample] = finite ? ENCODE_FAULT_NONE : ENCODE_FAULT_NOT_FINITE;
    if (!finite) {
        run->kernels->clear(encode_state(run, sample, first), count * run->pair_size, run->stream);
        return;
    }
    struct tables tables;
    make_tables(&tables, &product, run, sample, first, count);
    size_t columns = (size_t)1 << tables.low_bits;
    for (size_t row = 0; row < count / columns; row++) {
        void *to = encode_state(run, sample, first + row * columns);
        const double *factor = tables.rows[row];
        if (product.real)
            run->kernels->widen(to, tables.rounded, columns, 1.0, factor[0], run->stream);
        else
            run->kernels->scale(to, tables.rounded, columns, factor, run->stream);
    }
}

void encode_product(const struct encode_run *run)
{
    encode_all(run, true, product_piece);
}
