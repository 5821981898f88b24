// iqp: phases over all states, then a Walsh-Hadamard transform.
//
// A state's index is cut into the bits within a *block* (which fits the first cache),
// those of the block within a *stretch* (which fits the next ones), and those of the
// stretch.  A block's phases are base[low] * prod_i (low_i ? g_i : 1), where base is that
// of block 0 and g_i depends on the block's bits alone: two products a state and no sine.
// A block is transformed where it was made, then the blocks of a *group* among each other,
// where the next cache still has them, then the groups of a stretch on their way out, then
// the columns across stretches.
#include <assert.h>
#include <math.h>
#include <stdalign.h>
#include <stdint.h>
#include <string.h>

#include "server/device/cpu/encode_parts.h"

enum {
    BLOCK_BITS = 10,
    BLOCK = 1 << BLOCK_BITS,
    HALF_BITS = BLOCK_BITS / 2, // of the tables whose product a block is multiplied with
    HALF = 1 << HALF_BITS,
    STRETCH_BITS = 16,
    HIGH_BITS_MAX = ENCODE_QUBITS_MAX - BLOCK_BITS,
    GROUP_BITS = 3,           // levels from a stretch's groups to the output
    GROUP_GAP = 5 * 64,       // bytes between groups, so that they do not share cache sets
    COLUMNS_SIZE = 16 * 1024, // bytes of rows that are transformed together
    COLUMN_MIN = 1024,        // bytes of one of them at least: shorter ones are slow to write
    COLUMN_BITS = 7,          // so many levels across rows at once
    WORK_SIZE = 3 * COLUMN_MIN << COLUMN_BITS,
    PIECE_COLUMNS = 8, // columns of a part across stretches
};

static_assert(WORK_SIZE >= 3 * COLUMNS_SIZE, "all rows of a column fit their place");

// ---- Numbers of a sample --------------------------------------------------

// e^(i angle) of every input: the qubits', then the pairs'.
struct phases {
    unsigned int qubits;
    double single[ENCODE_QUBITS_MAX][2];
    double pair[ENCODE_QUBITS_MAX][ENCODE_QUBITS_MAX][2]; // [lower][higher]
};

static void turn(double out[2], double angle)
{
    out[0] = cos(angle);
    out[1] = sin(angle);
}

static void read_phases(struct phases *phases, const struct encode_run *run, size_t sample)
{
    unsigned int n = phases->qubits = run->job->qubits;
    size_t at = n;
    for (unsigned int i = 0; i < n; i++) {
        turn(phases->single[i], encode_input(run, sample, i));
        for (unsigned int j = i + 1; j < n; j++)
            turn(phases->pair[i][j], encode_input(run, sample, at++));
    }
}

// Tables whose product is `first` * prod_i (x_i ? g[i] : 1) over `bits` bits.
struct halves {
    unsigned int low_bits, high_bits;
    double low[HALF][2], high[HALF][2];
};

static void make_halves(struct halves *halves, unsigned int bits, const double first[2],
                        const double (*g)[2])
{
    double factors[BLOCK_BITS][2][2];
    for (unsigned int i = 0; i < bits; i++) {
        factors[i][0][0] = 1.0;
        factors[i][0][1] = 0.0;
        memcpy(factors[i][1], g[i], sizeof factors[i][1]);
    }
    const double one[2] = {1.0, 0.0};
    halves->low_bits = bits / 2;
    halves->high_bits = bits - bits / 2;
    const double(*all)[2][2] = (const double(*)[2][2])factors;
    encode_product_table(halves->low, halves->low_bits, one, all);
    encode_product_table(halves->high, halves->high_bits, first, all + halves->low_bits);
}

// The phases of block 0 times 2^-n, by doubling: those with bit k are those without
// it times e_k * prod_(i<k) (x_i ? e_ik : 1).
static void make_base(double *base, unsigned int bits, const struct phases *phases,
                      const struct encode_kernels *kernels)
{
    base[0] = ldexp(1.0, -(int)phases->qubits);
    base[1] = 0.0;
    for (unsigned int k = 0; k < bits; k++) {
        double g[BLOCK_BITS][2];
        for (unsigned int i = 0; i < k; i++)
            memcpy(g[i], phases->pair[i][k], sizeof g[i]);
        struct halves halves;
        make_halves(&halves, k, phases->single[k], (const double(*)[2])g);
        kernels->spread(base + ((size_t)2 << k), base, halves.high, halves.low,
                        (size_t)1 << halves.high_bits, (size_t)1 << halves.low_bits);
    }
}

// What the higher bits of an index do to the lower ones.  Level j has the product over
// the set bits from j on: of the pairs with every lower qubit, and of all that is
// among them.  Counting on changes few levels.
struct walk {
    const struct phases *phases;
    unsigned int block_bits, bits;
    size_t at;
    double pair[HIGH_BITS_MAX + 1][ENCODE_QUBITS_MAX][2];
    double own[HIGH_BITS_MAX + 1][2];
};

static void walk_level(struct walk *walk, unsigned int j)
{
    unsigned int qubit = walk->block_bits + j;
    memcpy(walk->pair[j], walk->pair[j + 1], qubit * sizeof walk->pair[j][0]);
    memcpy(walk->own[j], walk->own[j + 1], sizeof walk->own[j]);
    if (!(walk->at >> j & 1))
        return;
    for (unsigned int i = 0; i < qubit; i++)
        encode_multiply(walk->pair[j][i], walk->phases->pair[i][qubit]);
    encode_multiply(walk->own[j], walk->phases->single[qubit]);
    encode_multiply(walk->own[j], walk->pair[j + 1][qubit]);
}

static void walk_to(struct walk *walk, size_t at)
{
    size_t changed = walk->at ^ at;
    walk->at = at;
    unsigned int j = 0;
    while (changed >> j)
        j++;
    while (j-- > 0)
        walk_level(walk, j);
}

static void walk_begin(struct walk *walk, const struct phases *phases, unsigned int block_bits,
                       size_t at)
{
    walk->phases = phases;
    walk->block_bits = block_bits;
    walk->bits = phases->qubits - block_bits;
    for (unsigned int i = 0; i < phases->qubits; i++) {
        walk->pair[walk->bits][i][0] = 1.0;
        walk->pair[walk->bits][i][1] = 0.0;
    }
    walk->own[walk->bits][0] = 1.0;
    walk->own[walk->bits][1] = 0.0;
    walk->at = 0;
    for (unsigned int j = walk->bits; j-- > 0;)
        walk_level(walk, j);
    walk_to(walk, at);
}

// ---- Columns --------------------------------------------------------------

// Rows of `size` bytes, 2^bits of them; columns are transformed.
struct columns {
    const struct encode_run *run;
    char *to;
    const char *from;
    size_t to_stride, from_stride, size;
    unsigned int bits;
};

static size_t column_width(size_t size, unsigned int bits)
{
    size_t width = (size_t)COLUMNS_SIZE >> bits;
    width = width < COLUMN_MIN ? COLUMN_MIN : width;
    return width < size ? width : size;
}

// `size` bytes of each row from byte `at` on; `work` holds WORK_SIZE.
static void transform_columns(const struct columns *columns, size_t at, size_t size, void *work)
{
    const struct encode_run *run = columns->run;
    size_t real = encode_type_size(run->job->type);
    size_t width = column_width(columns->size, columns->bits);
    run->kernels->walsh_rows(columns->to + at, columns->to_stride / real, columns->from + at,
                             columns->from_stride / real, work, width / real, size / width,
                             columns->bits, run->stream);
}

// ---- Stretches ------------------------------------------------------------

struct iqp {
    const struct encode_run *run;
    unsigned int block_bits, group_bits, stretch_bits;
    size_t stretches;    // of a sample
    size_t scratch_size; // of a thread
    // Of the pass across stretches under way: rows are 2^low_bits states apart.
    unsigned int low_bits, level_bits;
    size_t pieces; // of what lies between two rows
};

// What a thread works in.
struct work {
    struct phases phases;
    struct walk walk;
    alignas(ENCODE_ALIGNMENT) double base64[BLOCK][2];
    alignas(ENCODE_ALIGNMENT) double base[BLOCK][2]; // of the launch's type
    alignas(ENCODE_ALIGNMENT) double low[HALF][2];   // likewise
    alignas(ENCODE_ALIGNMENT) double high[HALF][2];  // likewise
    alignas(ENCODE_ALIGNMENT) double columns[WORK_SIZE / 8];
};

static size_t align(size_t size)
{
    return (size + ENCODE_ALIGNMENT - 1) / ENCODE_ALIGNMENT * ENCODE_ALIGNMENT;
}

static struct work *work_of(const struct iqp *task, unsigned int thread)
{
    return (struct work *)(void *)((char *)task->run->job->scratch + thread * task->scratch_size);
}

// Makes the phases of the walk's block at `to` and transforms them.
static void make_block(const struct iqp *task, struct work *work, void *to)
{
    const struct encode_run *run = task->run;
    struct halves halves;
    make_halves(&halves, task->block_bits, work->walk.own[0],
                (const double(*)[2])work->walk.pair[0]);
    size_t rows = (size_t)1 << halves.high_bits;
    size_t columns = (size_t)1 << halves.low_bits;
    encode_round(run, work->low, &halves.low[0][0], 2 * columns);
    encode_round(run, work->high, &halves.high[0][0], 2 * rows);
    unsigned int done =
        run->kernels->spread_walsh(to, work->base, work->high, work->low, rows, columns);
    if (done < task->block_bits)
        run->kernels->walsh(to, 2 * rows * columns, (size_t)2 << done, task->block_bits - done);
}

static void copy_small(const struct encode_run *run, void *to, const void *from, size_t size)
{
    if (size % ENCODE_ALIGNMENT == 0)
        run->kernels->copy_rows(to, size, from, size, size, 1, run->stream);
    else
        memcpy(to, from, size);
}

// Group `group` of all blocks at `made`.
static void make_group(const struct iqp *task, size_t group, struct work *work, char *made)
{
    const struct encode_run *run = task->run;
    unsigned int bits = task->group_bits - task->block_bits;
    for (size_t block = 0; block < (size_t)1 << bits; block++) {
        walk_to(&work->walk, (group << bits) + block);
        make_block(task, work, made + (block << task->block_bits) * run->pair_size);
    }
    if (bits > 0)
        run->kernels->walsh(made, (size_t)2 << task->group_bits, (size_t)2 << task->block_bits,
                            bits);
}

// All groups of one stretch, and the levels among them.
static void make_stretch(const struct iqp *task, size_t sample, size_t stretch, struct work *work)
{
    const struct encode_run *run = task->run;
    size_t group_size = run->pair_size << task->group_bits;
    unsigned int bits = task->stretch_bits - task->group_bits;
    size_t first = stretch << bits;
    char *made = (char *)work + align(sizeof *work);

    read_phases(&work->phases, run, sample);
    make_base(&work->base64[0][0], task->block_bits, &work->phases, run->tables);
    encode_round(run, work->base, &work->base64[0][0], (size_t)2 << task->block_bits);
    walk_begin(&work->walk, &work->phases, task->block_bits,
               first << (task->group_bits - task->block_bits));
    for (size_t group = 0; group < (size_t)1 << bits; group++)
        make_group(task, first + group, work, made + group * (group_size + GROUP_GAP));

    void *to = encode_state(run, sample, stretch << task->stretch_bits);
    if (bits == 0) {
        copy_small(run, to, made, group_size);
        return;
    }
    const struct columns columns = {.run = run,
                                    .to = to,
                                    .from = made,
                                    .to_stride = group_size,
                                    .from_stride = group_size + GROUP_GAP,
                                    .size = group_size,
                                    .bits = bits};
    transform_columns(&columns, 0, group_size, work->columns);
}

static void stretch_part(void *context, size_t part, unsigned int thread)
{
    const struct iqp *task = context;
    const struct encode_run *run = task->run;
    size_t sample = part / task->stretches;
    size_t stretch = part % task->stretches;
    bool finite = encode_inputs_finite(run, sample);
    if (stretch == 0)
        run->job->faults[sample] = finite ? ENCODE_FAULT_NONE : ENCODE_FAULT_NOT_FINITE;
    if (finite)
        make_stretch(task, sample, stretch, work_of(task, thread));
    else
        run->kernels->clear(encode_state(run, sample, stretch << task->stretch_bits),
                            run->pair_size << task->stretch_bits, run->stream);
    run->kernels->fence();
}

// A part is one piece of the rows, of one group of rows that belong together.
static void across_part(void *context, size_t part, unsigned int thread)
{
    const struct iqp *task = context;
    const struct encode_run *run = task->run;
    size_t stride = run->pair_size << task->low_bits;
    size_t group = part / task->pieces;
    size_t size = stride / task->pieces;
    char *rows = (char *)run->job->out + (group * stride << task->level_bits);
    const struct columns columns = {run, rows, rows, stride, stride, stride, task->level_bits};
    transform_columns(&columns, part % task->pieces * size, size, work_of(task, thread)->columns);
    run->kernels->fence();
}

static void transform_across(struct iqp *task)
{
    unsigned int qubits = task->run->job->qubits;
    unsigned int left = qubits - task->stretch_bits;
    unsigned int passes = (left + COLUMN_BITS - 1) / COLUMN_BITS;
    task->low_bits = task->stretch_bits;
    for (; passes > 0; passes--) {
        task->level_bits = (left + passes - 1) / passes;
        size_t stride = task->run->pair_size << task->low_bits;
        task->pieces = stride / (column_width(stride, task->level_bits) * PIECE_COLUMNS);
        size_t groups = task->run->job->samples << (qubits - task->low_bits - task->level_bits);
        pool_run(task->run->pool, across_part, task, groups * task->pieces);
        task->low_bits += task->level_bits;
        left -= task->level_bits;
    }
}

static unsigned int least(unsigned int a, unsigned int b)
{
    return a < b ? a : b;
}

static size_t thread_scratch(const struct encode_job *job)
{
    size_t stretch = (size_t)2 * encode_type_size(job->type) << least(job->qubits, STRETCH_BITS);
    return align(sizeof(struct work)) + align(stretch) + ((size_t)GROUP_GAP << GROUP_BITS);
}

void encode_iqp(const struct encode_run *run)
{
    unsigned int qubits = run->job->qubits;
    struct iqp task = {
        .run = run,
        .block_bits = least(qubits, BLOCK_BITS),
        .stretch_bits = least(qubits, STRETCH_BITS),
        .scratch_size = thread_scratch(run->job),
    };
    task.group_bits = task.stretch_bits - least(task.stretch_bits - task.block_bits, GROUP_BITS);
    task.stretches = run->states >> task.stretch_bits;
    pool_run(run->pool, stretch_part, &task, run->job->samples * task.stretches);
    if (task.stretches > 1)
        transform_across(&task);
}

size_t encode_iqp_scratch(const struct encode_job *job, unsigned int threads)
{
    return threads * thread_scratch(job);
}
