// iqp: phases over all states, then a Walsh-Hadamard transform.
//
// A state's index is cut into the bits within a *block*, those of the block within a
// *group*, the *top* bits, which tell a stretch's groups apart, and those of the *stretch*.
// A block's phases are base[low] * prod_i (low_i ? g_i : 1), where base is that of block 0
// and g_i depends on the block's bits alone: two products a state and no sine.  Blocks that
// differ in their top bits are made together, one from the other, and transformed among
// each other while they are in a cache.  Then each group, which fits the second cache, is
// transformed.  Last come the columns across stretches.
#include <assert.h>
#include <math.h>
#include <stdalign.h>
#include <string.h>

#include "server/device/cpu/encode_parts.h"

enum {
    BLOCK_BITS = 9,
    BLOCK = 1 << BLOCK_BITS,
    COLUMN_BITS = 5, // a block's lower ones
    COLUMNS = 1 << COLUMN_BITS,
    ROWS = BLOCK / COLUMNS,
    STRETCH_BITS = 16,
    HIGH_BITS_MAX = ENCODE_QUBITS_MAX - BLOCK_BITS,
    TOP_BITS = 3, // levels among a stretch's groups
    TOPS = 1 << TOP_BITS,
    GAP = 5 * 64,             // bytes between groups, so that they do not share cache sets
    COLUMNS_SIZE = 16 * 1024, // bytes of rows that are transformed together
    COLUMN_MIN = 1024,        // bytes of one of them at least: shorter ones are slow to write
    ACROSS_BITS = 7,          // so many levels across rows at once
    WORK_SIZE = COLUMN_MIN << ACROSS_BITS,
    PIECE_COLUMNS = 8, // columns of a part across stretches
};

static_assert(WORK_SIZE >= COLUMNS_SIZE, "all rows of a column fit their place");

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

static unsigned int least(unsigned int a, unsigned int b)
{
    return a < b ? a : b;
}

// Tables whose product is `first` * prod_i (x_i ? g[i] : 1) over `bits` bits.
struct halves {
    unsigned int low_bits, high_bits;
    double low[COLUMNS][2], high[ROWS][2];
};

static void make_table(double (*table)[2], unsigned int bits, const double first[2],
                       const double (*g)[2], const struct encode_kernels *kernels)
{
    memcpy(table[0], first, sizeof table[0]);
    for (unsigned int k = 0; k < bits; k++)
        kernels->scale(table + ((size_t)1 << k), table, (size_t)1 << k, g[k], false);
}

static void make_halves(struct halves *halves, unsigned int bits, const double first[2],
                        const double (*g)[2], const struct encode_kernels *kernels)
{
    const double one[2] = {1.0, 0.0};
    halves->low_bits = least(bits, COLUMN_BITS);
    halves->high_bits = bits - halves->low_bits;
    make_table(halves->low, halves->low_bits, one, g, kernels);
    make_table(halves->high, halves->high_bits, first, g + halves->low_bits, kernels);
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
        make_halves(&halves, k, phases->single[k], (const double(*)[2])g, kernels);
        kernels->spread(base + ((size_t)2 << k), base, halves.high, halves.low,
                        (size_t)1 << halves.high_bits, (size_t)1 << halves.low_bits);
    }
}

// The effect of an index's higher bits on the lower ones.  Level j has the product over
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

// ---- Stretches ------------------------------------------------------------

struct iqp {
    const struct encode_run *run;
    unsigned int block_bits, inner_bits, top_bits, stretch_bits;
    unsigned int group_bits; // of block and inner
    size_t stretches;        // of a sample
    size_t group_stride;     // bytes from one to the next
    size_t scratch_size;     // of a thread
    // Of the pass across stretches under way: rows are 2^low_bits states apart.
    unsigned int low_bits, level_bits;
    size_t width;  // bytes of a column
    size_t pieces; // of what lies between two rows
};

// A thread's work memory.
struct work {
    struct phases phases;
    struct walk walk;
    // The factors of each top bit for a block's lower states, and for the tops below it: product i
    // of `among` is that of the highest bit of i with the others.
    struct halves tops[TOP_BITS];
    double among[TOPS][2];
    alignas(ENCODE_ALIGNMENT) double base64[BLOCK][2];
    // Of the launch's type, as `spread` takes them: block 0, and the tables of a block and of each
    // top bit.
    alignas(ENCODE_ALIGNMENT) double base[BLOCK][2];
    double high[TOPS][ROWS][2], low[1 + TOP_BITS][COLUMNS][2];
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

static unsigned int highest_bit(size_t i)
{
    unsigned int highest = 0;
    while (i >> highest > 1)
        highest++;
    return highest;
}

// The factors of the top bits, which do not depend on the others.
static void make_tops(const struct iqp *task, struct work *work)
{
    const struct phases *phases = &work->phases;
    for (unsigned int top = 0; top < task->top_bits; top++) {
        unsigned int qubit = task->group_bits + top;
        double g[BLOCK_BITS][2];
        for (unsigned int i = 0; i < task->block_bits; i++)
            memcpy(g[i], phases->pair[i][qubit], sizeof g[i]);
        make_halves(&work->tops[top], task->block_bits, phases->single[qubit],
                    (const double(*)[2])g, task->run->tables);
        encode_round(task->run, work->low[1 + top], &work->tops[top].low[0][0],
                     (size_t)2 * COLUMNS);
    }
    for (size_t i = 1; i < (size_t)1 << task->top_bits; i++) {
        unsigned int highest = highest_bit(i);
        double *among = work->among[i];
        among[0] = 1.0;
        among[1] = 0.0;
        for (unsigned int k = 0; k < highest; k++)
            if (i >> k & 1)
                encode_multiply(among,
                                phases->pair[task->group_bits + k][task->group_bits + highest]);
    }
}

// The factor of top bit `top` with the bits above a block that are set in `above`, without tops.
static void turn_top(const struct iqp *task, const struct phases *phases, unsigned int top,
                     size_t above, double out[2])
{
    unsigned int qubit = task->group_bits + top;
    out[0] = 1.0;
    out[1] = 0.0;
    for (unsigned int k = task->block_bits; above; k++, above >>= 1)
        if (above & 1)
            encode_multiply(out, phases->pair[k < qubit ? k : qubit][k < qubit ? qubit : k]);
}

// Makes the tables of the walk's block in all groups.
static void make_tables(const struct iqp *task, struct work *work)
{
    const struct encode_run *run = task->run;
    struct halves halves;
    double turns[TOP_BITS][2];
    make_halves(&halves, task->block_bits, work->walk.own[0],
                (const double(*)[2])work->walk.pair[0], run->tables);
    encode_round(run, work->low[0], &halves.low[0][0], (size_t)2 << halves.low_bits);
    encode_round(run, work->high[0], &halves.high[0][0], (size_t)2 << halves.high_bits);
    for (unsigned int top = 0; top < task->top_bits; top++)
        turn_top(task, &work->phases, top, work->walk.at, turns[top]);
    for (size_t i = 1; i < (size_t)1 << task->top_bits; i++) {
        unsigned int top = highest_bit(i);
        double turn[2] = {turns[top][0], turns[top][1]};
        double high[ROWS][2];
        encode_multiply(turn, work->among[i]);
        run->tables->scale(high, work->tops[top].high, ROWS, turn, false);
        encode_round(run, work->high[i], &high[0][0], (size_t)2 * ROWS);
    }
}

// Makes the phases of the walk's block in all groups, at `made` in the first, and
// transforms them among the groups: a few rows at a time, which stay in the first cache.
static void make_blocks(const struct iqp *task, struct work *work, char *made)
{
    enum { ROWS_AT_ONCE = 4 };
    const struct encode_run *run = task->run;
    size_t columns = (size_t)1 << least(task->block_bits, COLUMN_BITS);
    size_t block_rows = ((size_t)1 << task->block_bits) / columns;
    size_t rows = block_rows < ROWS_AT_ONCE ? block_rows : ROWS_AT_ONCE;
    make_tables(task, work);
    for (size_t row = 0; row < block_rows; row += rows) {
        char *to = made + row * columns * run->pair_size;
        const char *base = (const char *)work->base + row * columns * run->pair_size;
        const size_t high = row * run->pair_size;
        run->kernels->spread(to, base, (const char *)work->high[0] + high, work->low[0], rows,
                             columns);
        for (size_t i = 1; i < (size_t)1 << task->top_bits; i++) {
            unsigned int top = highest_bit(i);
            const char *from = to + (i - ((size_t)1 << top)) * task->group_stride;
            run->kernels->spread(to + i * task->group_stride, from,
                                 (const char *)work->high[i] + high, work->low[1 + top], rows,
                                 columns);
        }
        if (task->top_bits > 0)
            run->kernels->walsh_rows(to, task->group_stride / (run->pair_size / 2), NULL,
                                     2 * rows * columns, 1, task->top_bits);
    }
}

// All groups of one stretch, and all levels within it.
static void make_stretch(const struct iqp *task, size_t sample, size_t stretch, struct work *work)
{
    const struct encode_run *run = task->run;
    size_t first = stretch << (task->stretch_bits - task->block_bits);
    size_t group_states = (size_t)1 << task->group_bits;
    char *made = (char *)work + align(sizeof *work);

    read_phases(&work->phases, run, sample);
    make_base(&work->base64[0][0], task->block_bits, &work->phases, run->tables);
    encode_round(run, work->base, &work->base64[0][0], (size_t)2 << task->block_bits);
    make_tops(task, work);
    walk_begin(&work->walk, &work->phases, task->block_bits, first);
    for (size_t block = 0; block < (size_t)1 << task->inner_bits; block++) {
        walk_to(&work->walk, first + block);
        make_blocks(task, work, made + (block << task->block_bits) * run->pair_size);
    }
    first = stretch << task->stretch_bits;
    for (size_t group = 0; group < (size_t)1 << task->top_bits; group++)
        run->kernels->transform(encode_state(run, sample, first + group * group_states),
                                made + group * task->group_stride, group_states, run->stream);
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
    size_t real = encode_type_size(run->job->type);
    size_t stride = run->pair_size << task->low_bits;
    size_t group = part / task->pieces;
    size_t size = stride / task->pieces;
    char *rows = (char *)run->job->out + (group * stride << task->level_bits);
    run->kernels->walsh_rows(rows + part % task->pieces * size, stride / real,
                             work_of(task, thread)->columns, task->width / real, size / task->width,
                             task->level_bits);
}

static void transform_across(struct iqp *task)
{
    unsigned int qubits = task->run->job->qubits;
    unsigned int left = qubits - task->stretch_bits;
    unsigned int passes = (left + ACROSS_BITS - 1) / ACROSS_BITS;
    task->low_bits = task->stretch_bits;
    for (; passes > 0; passes--) {
        task->level_bits = (left + passes - 1) / passes;
        size_t width = (size_t)COLUMNS_SIZE >> task->level_bits;
        task->width = width < COLUMN_MIN ? COLUMN_MIN : width;
        task->pieces = (task->run->pair_size << task->low_bits) / (task->width * PIECE_COLUMNS);
        size_t groups = task->run->job->samples << (qubits - task->low_bits - task->level_bits);
        thread_pool_run(task->run->pool, across_part, task, groups * task->pieces);
        task->low_bits += task->level_bits;
        left -= task->level_bits;
    }
}

static size_t thread_scratch(const struct encode_job *job)
{
    size_t stretch = (size_t)2 * encode_type_size(job->type) << least(job->qubits, STRETCH_BITS);
    return align(sizeof(struct work)) + align(stretch) + (size_t)TOPS * GAP;
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
    task.top_bits = least(task.stretch_bits - task.block_bits, TOP_BITS);
    task.inner_bits = task.stretch_bits - task.top_bits - task.block_bits;
    task.group_bits = task.block_bits + task.inner_bits;
    task.group_stride = (run->pair_size << task.group_bits) + GAP;
    task.stretches = run->states >> task.stretch_bits;
    thread_pool_run(run->pool, stretch_part, &task, run->job->samples * task.stretches);
    if (task.stretches > 1)
        transform_across(&task);
}

size_t encode_iqp_scratch(const struct encode_job *job, unsigned int threads)
{
    return threads * thread_scratch(job);
}
