// SIMD fast Walsh-Hadamard transform (FWHT), and the phases of the iqp encoder: part of
// encode_template.h, which documents REAL and VECTOR_SIZE.
//
// From `arrange` to `transform` complex numbers are stored in *tiles* of TILE numbers, the same
// for every vector width: pairs of vectors, one of real parts and one of imaginary parts.  This
// layout needs no shuffles for products.  A *level* is one of the transform's log2(n) butterfly
// stages.  All tables execute the levels in one order: those between tiles, from the largest
// stride down, then those within a tile, from the smallest stride up, together with the
// conversion back to interleaved complex numbers.
#ifndef INFERSTAT_SERVER_DEVICE_CPU_ENCODE_WALSH_H
#define INFERSTAT_SERVER_DEVICE_CPU_ENCODE_WALSH_H

enum {
    TILE_BITS = REAL_SIZE == 8 ? 3 : 4,
    TILE = 1 << TILE_BITS,
    TILE_PAIRS = TILE / LANES,
    TILE_REALS = 2 * TILE,
    UNIT_BITS = 2, // levels between tiles in a transform's last pass; a unit is 2^UNIT_BITS tiles
    UNIT_VECTORS = (2 * TILE_PAIRS) << UNIT_BITS,
    UNIT_REALS = TILE_REALS << UNIT_BITS,
};

// ---- Levels ---------------------------------------------------------------

// Vectors at a stride of `step` reals.
struct stride {
    REAL *at;
    size_t step;
};

KERNEL_INLINE void level_of(vector *a, vector *b)
{
    vector difference = *a - *b;
    *a += *b;
    *b = difference;
}

KERNEL_INLINE void level(vector *v, size_t i, size_t half)
{
    level_of(v + i, v + i + half);
}

// The levels between the 2^levels vectors v[from], v[from + step] ..; at most 2 levels.
KERNEL_INLINE void few_levels(vector *v, size_t from, size_t step, unsigned int levels)
{
    if (levels == 2) {
        level(v, from, 2 * step);
        level(v, from + step, 2 * step);
        level(v, from + 2 * step, step);
    }
    if (levels > 0)
        level(v, from, step);
}

// The levels between 2^levels vectors; `levels` is a constant at each call, at most 4.  Computed
// in two passes, which need fewer registers.  `to` may be `from`.
KERNEL_INLINE void butterfly(struct stride to, struct stride from, unsigned int levels)
{
    const unsigned int near = levels < 2 ? levels : 2;
    const size_t count = (size_t)1 << levels;
    const size_t nears = (size_t)1 << near;
    vector v[16];
#pragma GCC unroll 4
    for (size_t i = 0; i < nears; i++) {
#pragma GCC unroll 4
        for (size_t k = i; k < count; k += nears)
            v[k] = get(from.at + k * from.step);
        few_levels(v, i, nears, levels - near);
    }
#pragma GCC unroll 4
    for (size_t i = 0; i < count; i += nears) {
        few_levels(v, i, 1, near);
#pragma GCC unroll 4
        for (size_t k = i; k < i + nears; k++)
            put(to.at + k * to.step, v[k], false);
    }
}

// ---- Tiles ----------------------------------------------------------------

struct pair {
    vector re, im;
};

KERNEL_INLINE struct pair get_pair(const REAL *from)
{
    return (struct pair){get(from), get(from + LANES)};
}

KERNEL_INLINE void levels_of(struct pair *a, struct pair *b)
{
    level_of(&a->re, &b->re);
    level_of(&a->im, &b->im);
}

KERNEL_INLINE struct pair between(struct pair v)
{
    return (struct pair){v.re + v.im, v.re - v.im};
}

// The lane of a number within a pair, chosen so that interleaving the parts takes one shuffle.
#if REAL_SIZE == 8
#define LANE(i)    (i)
#define PAIR_OF(i) ((i) & ~1)
#define PAIR_GAP   1
#else
#define LANE(i)    (((i) & ~(size_t)3) | ((i)&1) << 1 | ((i) >> 1 & 1))
#define PAIR_OF(i) (((i) & ~3) + ((i) >> 1 & 1))
#define PAIR_GAP   2
#endif
// Interleaves real and imaginary parts: PAIRED of every second number, PAIRED_OTHER of the others.
#define PAIRED(i)       (PAIR_OF(i) + ((i)&1 ? LANES : 0))
#define PAIRED_OTHER(i) (PAIRED(i) + PAIR_GAP)
// Interleaves every second run of `d` elements of two vectors; RUNS_OTHER: the other runs.
#define RUNS(i, d)       ((i) & (d) ? LANES + (i) - (d) : (i))
#define RUNS_OTHER(i, d) (RUNS(i, d) + (d))
#define RUNS_2(i)        RUNS(i, 2)
#define RUNS_4(i)        RUNS(i, 4)
#define RUNS_8(i)        RUNS(i, 8)
#define RUNS_OTHER_2(i)  RUNS_OTHER(i, 2)
#define RUNS_OTHER_4(i)  RUNS_OTHER(i, 4)
#define RUNS_OTHER_8(i)  RUNS_OTHER(i, 8)
#define LEVEL_INSIDE(v, of, of_other)                                                              \
    between((struct pair){__builtin_shufflevector((v).re, (v).im, MASK(of)),                       \
                          __builtin_shufflevector((v).re, (v).im, MASK(of_other))})

// The levels within a pair; the result is interleaved complex numbers.
KERNEL_INLINE struct pair levels_inside(struct pair v)
{
    v = LEVEL_INSIDE(v, PAIRED, PAIRED_OTHER);
#if VECTOR_SIZE / REAL_SIZE >= 4
    v = LEVEL_INSIDE(v, RUNS_2, RUNS_OTHER_2);
#endif
#if VECTOR_SIZE / REAL_SIZE >= 8
    v = LEVEL_INSIDE(v, RUNS_4, RUNS_OTHER_4);
#endif
#if VECTOR_SIZE / REAL_SIZE >= 16
    v = LEVEL_INSIDE(v, RUNS_8, RUNS_OTHER_8);
#endif
    return v;
}

// Computes the levels within a tile and writes it to `to`.
KERNEL_INLINE void leave_tile(REAL *to, const struct pair tile[TILE_PAIRS], bool stream)
{
    struct pair v[TILE_PAIRS];
#pragma GCC unroll 4
    for (size_t i = 0; i < TILE_PAIRS; i++)
        v[i] = levels_inside(tile[i]);
#pragma GCC unroll 2
    for (size_t half = 1; half < TILE_PAIRS; half *= 2)
#pragma GCC unroll 4
        for (size_t i = 0; i < TILE_PAIRS; i++)
            if (!(i & half))
                levels_of(&v[i], &v[i + half]);
#pragma GCC unroll 4
    for (size_t i = 0; i < TILE_PAIRS; i++) {
        put(to + 2 * i * LANES, v[i].re, stream);
        put(to + (2 * i + 1) * LANES, v[i].im, stream);
    }
}

// Computes the last levels of 2^levels tiles and writes them to `to`.
KERNEL_INLINE void leave(REAL *to, const REAL *from, unsigned int levels, bool stream)
{
    // Four arrays, since compilers would spill a single one to memory.
    struct pair a[TILE_PAIRS];
    struct pair b[TILE_PAIRS];
    struct pair c[TILE_PAIRS];
    struct pair d[TILE_PAIRS];
#pragma GCC unroll 4
    for (size_t i = 0; i < TILE_PAIRS; i++) {
        const REAL *at = from + 2 * i * LANES;
        a[i] = get_pair(at);
        if (levels > 0)
            b[i] = get_pair(at + TILE_REALS);
        if (levels > 1) {
            c[i] = get_pair(at + 2 * TILE_REALS);
            d[i] = get_pair(at + 3 * TILE_REALS);
            levels_of(&a[i], &c[i]);
            levels_of(&b[i], &d[i]);
            levels_of(&c[i], &d[i]);
        }
        if (levels > 0)
            levels_of(&a[i], &b[i]);
    }
    leave_tile(to, a, stream);
    if (levels > 0)
        leave_tile(to + TILE_REALS, b, stream);
    if (levels > 1) {
        leave_tile(to + 2 * TILE_REALS, c, stream);
        leave_tile(to + 3 * TILE_REALS, d, stream);
    }
}

KERNEL void arrange(void *out, const double *in, size_t n)
{
    REAL *to = out;
    for (size_t i = 0; i < 2 * n && n < TILE; i++)
        to[i] = (REAL)in[i];
    for (size_t i = 0; i < 2 * n && n >= TILE; i += 2 * LANES)
#pragma GCC unroll 16
        for (size_t lane = 0; lane < LANES; lane++) {
            to[i + LANE(lane)] = (REAL)in[i + 2 * lane];
            to[i + LANES + LANE(lane)] = (REAL)in[i + 2 * lane + 1];
        }
}

// ---- Transform ------------------------------------------------------------

// Blocks of `n` reals, `stride` apart.
struct blocks {
    REAL *at;
    size_t stride, n, count;
};

// Transforms parts of 2^levels units: the levels between units in place, then those within a unit
// while writing to `to`.  The writes of a part are interleaved with the upper levels of the next
// part, so that memory bandwidth is used evenly.
KERNEL_INLINE void parts_out(REAL *to, const struct blocks *from, unsigned int levels, bool stream)
{
    const size_t size = (size_t)UNIT_REALS << levels;
    const size_t end = from->n * from->count;
    const REAL *last = NULL;
    for (size_t start = 0; start <= end; start += size) {
        REAL *part = from->at + start / from->n * from->stride + start % from->n;
        size_t left = 0; // units of the last part that were written
        for (size_t i = 0; i < UNIT_VECTORS; i++) {
            if (start < end) {
                const struct stride both = {part + i * LANES, UNIT_REALS};
                butterfly(both, both, levels);
            }
            for (; last && left * UNIT_VECTORS < (i + 1) << levels; left++)
                leave(to + (start - size) + left * UNIT_REALS, last + left * UNIT_REALS, UNIT_BITS,
                      stream);
        }
        last = part;
    }
}

KERNEL_INLINE void blocks_out(REAL *to, const struct blocks *from, unsigned int levels, bool stream)
{
    switch (levels) {
    case 0:
        leave(to, from->at, 0, stream);
        break;
    case 1:
        leave(to, from->at, 1, stream);
        break;
    case 2:
        parts_out(to, from, 0, stream);
        break;
    case 3:
        parts_out(to, from, 1, stream);
        break;
    case 4:
        parts_out(to, from, 2, stream);
        break;
    case 5:
        parts_out(to, from, 3, stream);
        break;
    default:
        parts_out(to, from, 4, stream);
    }
}

// The levels between blocks, column by column.
KERNEL_INLINE void between_blocks(const struct blocks *blocks, unsigned int levels)
{
    for (size_t i = 0; i < blocks->n; i += LANES) {
        const struct stride both = {blocks->at + i, blocks->stride};
        butterfly(both, both, levels);
    }
}

KERNEL_INLINE void between_blocks_any(const struct blocks *blocks, unsigned int levels)
{
    if (levels == 4)
        between_blocks(blocks, 4);
    else if (levels == 3)
        between_blocks(blocks, 3);
    else if (levels == 2)
        between_blocks(blocks, 2);
    else if (levels == 1)
        between_blocks(blocks, 1);
}

// All levels of a transform smaller than a tile.
KERNEL_INLINE void transform_few(REAL *to, const REAL *from, size_t n)
{
    memcpy(to, from, 2 * n * sizeof *to);
    for (size_t half = 2; half < 2 * n; half *= 2)
        for (size_t i = 0; i < 2 * n; i++)
            if (!(i & half)) {
                REAL a = to[i];
                REAL b = to[i + half];
                to[i] = a + b;
                to[i + half] = a - b;
            }
}

KERNEL void transform(void *to, void *from, size_t stride, size_t n, unsigned int levels,
                      bool stream)
{
    const struct blocks blocks = {from, stride, 2 * n, (size_t)1 << levels};
    if (n < TILE) {
        transform_few(to, from, n);
        return;
    }
    between_blocks_any(&blocks, levels);
    unsigned int inner = 0; // levels between tiles of a block
    while ((size_t)TILE << inner < n)
        inner++;
    if (stream)
        blocks_out(to, &blocks, inner, true);
    else
        blocks_out(to, &blocks, inner, false);
}

// ---- Phases ---------------------------------------------------------------

KERNEL_INLINE struct pair product(struct pair a, struct pair b)
{
    return (struct pair){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

// The levels between 2^levels vectors, at most 3.
KERNEL_INLINE void levels_between(vector v[8], unsigned int levels)
{
    if (levels == 3) {
        for (size_t i = 0; i < 4; i++)
            level(v, i, 4);
        few_levels(v, 4, 1, 2);
    }
    few_levels(v, 0, 1, levels < 2 ? levels : 2);
}

// Computes one pair of each of the 2^tops outputs of spread_tops.
KERNEL_INLINE void spread_pair(struct stride to, const REAL *base, const struct pair rows[8],
                               const REAL *low, size_t columns, unsigned int tops)
{
    const size_t count = (size_t)1 << tops;
    struct pair phases[8];
    phases[0] = product(get_pair(base), product(rows[0], get_pair(low)));
#pragma GCC unroll 8
    for (size_t i = 1; i < count; i++) {
        const size_t top = i >= 4 ? 2 : i >= 2 ? 1 : 0;
        const struct pair g = get_pair(low + (1 + top) * 2 * columns);
        phases[i] = product(phases[i - ((size_t)1 << top)], product(rows[i], g));
    }
    vector re[8];
    vector im[8];
#pragma GCC unroll 8
    for (size_t i = 0; i < count; i++) {
        re[i] = phases[i].re;
        im[i] = phases[i].im;
    }
    levels_between(re, tops);
    levels_between(im, tops);
#pragma GCC unroll 8
    for (size_t i = 0; i < count; i++) {
        put(to.at + i * to.step, re[i], false);
        put(to.at + i * to.step + LANES, im[i], false);
    }
}

KERNEL_INLINE void spread_all(struct stride to, const REAL *base, const REAL *high, const REAL *low,
                              size_t rows, size_t columns, unsigned int tops)
{
    for (size_t r = 0; r < rows; r++) {
        struct pair row[8];
        for (size_t i = 0; i < (size_t)1 << tops; i++) {
            const REAL *factor = high + 2 * (i * rows + r);
            row[i] = (struct pair){splat(factor[0]), splat(factor[1])};
        }
        for (size_t i = 0; i < 2 * columns; i += 2 * LANES) {
            const size_t at = 2 * r * columns + i;
            spread_pair((struct stride){to.at + at, to.step}, base + at, row, low + i, columns,
                        tops);
        }
    }
}

KERNEL void spread_tops(void *out, size_t stride, const void *base, const void *high,
                        const void *low, size_t rows, size_t columns, unsigned int tops)
{
    const struct stride to = {out, stride};
    if (rows * columns < TILE)
        spread(out, base, high, low, rows, columns);
    else if (tops == 0)
        spread_all(to, base, high, low, rows, columns, 0);
    else if (tops == 1)
        spread_all(to, base, high, low, rows, columns, 1);
    else if (tops == 2)
        spread_all(to, base, high, low, rows, columns, 2);
    else
        spread_all(to, base, high, low, rows, columns, 3);
}

// ---- Rows -----------------------------------------------------------------

// Rows of `width` reals to be written with non-temporal stores: whole rows, since scattered writes
// of few bytes take several times as long.
struct outgoing {
    REAL *to;
    const REAL *from; // contiguous rows
    size_t stride, width, at;
    size_t left; // vectors
};

KERNEL_INLINE void send(struct outgoing *out, size_t count)
{
    if (out->left == 0)
        return;
#pragma GCC unroll 8
    for (size_t i = 0; i < count; i++)
        put(out->to + out->at + i * LANES, get(out->from + i * LANES), true);
    out->left -= count;
    out->from += count * LANES;
    out->at += count * LANES;
    if (out->at < out->width)
        return;
    out->at = 0;
    out->to += out->stride;
}

// Levels between `rows` rows of `width` reals, the first between rows `distance` apart.  After
// each butterfly 2^levels vectors of `out` are written.
KERNEL_INLINE void pass_rows(struct stride to, struct stride from, size_t width, size_t rows,
                             size_t distance, unsigned int levels, struct outgoing *out)
{
    for (size_t start = 0; start < rows; start += distance << levels)
        for (size_t row = start; row < start + distance; row++)
            for (size_t i = 0; i < width; i += LANES) {
                butterfly((struct stride){to.at + row * to.step + i, distance * to.step},
                          (struct stride){from.at + row * from.step + i, distance * from.step},
                          levels);
                send(out, (size_t)1 << levels);
            }
}

KERNEL_INLINE void pass_rows_any(struct stride to, struct stride from, size_t width, size_t rows,
                                 size_t distance, unsigned int levels, struct outgoing *out)
{
    if (levels == 3)
        pass_rows(to, from, width, rows, distance, 3, out);
    else if (levels == 2)
        pass_rows(to, from, width, rows, distance, 2, out);
    else
        pass_rows(to, from, width, rows, distance, 1, out);
}

// All levels of one column; writes `out` during the last levels.
KERNEL_INLINE void walsh_column(struct stride to, struct stride from, struct stride work,
                                size_t width, unsigned int levels, struct outgoing *out)
{
    const size_t rows = (size_t)1 << levels;
    const unsigned int first = levels % 3 > 0 ? levels % 3 : 3;
    struct outgoing none = {.left = 0};
    if (first == levels) {
        pass_rows_any(to, from, width, rows, 1, first, out);
        return;
    }
    pass_rows_any(work, from, width, rows, 1, first, &none);
    unsigned int done = first;
    for (; done + 3 < levels; done += 3)
        pass_rows(work, work, width, rows, (size_t)1 << done, 3, &none);
    pass_rows(to, work, width, rows, (size_t)1 << done, 3, out);
}

KERNEL void walsh_rows(void *to, size_t to_stride, const void *from, size_t from_stride, void *work,
                       size_t width, size_t columns, unsigned int levels, bool stream)
{
    const size_t size = width << levels;
    const struct stride between = {work, width};
    struct outgoing out = {.left = 0};
    for (size_t c = 0; c < columns; c++) {
        struct stride done = {(REAL *)to + c * width, to_stride};
        const struct stride in = {(REAL *)(uintptr_t)from + c * width, from_stride}; // only read
        if (!stream) {
            walsh_column(done, in, between, width, levels, &out);
            continue;
        }
        const struct stride kept = {(REAL *)work + (1 + c % 2) * size, width};
        walsh_column(kept, in, between, width, levels, &out);
        out = (struct outgoing){.to = done.at,
                                .from = kept.at,
                                .stride = to_stride,
                                .width = width,
                                .left = size / LANES};
    }
    while (out.left > 0)
        send(&out, 1);
}

#endif
