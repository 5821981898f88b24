// SIMD fast Walsh-Hadamard transform (FWHT), not normalised.  Included only by encode_template.h,
// after this has defined REAL, VECTOR_SIZE and the vector functions.  The entry points, `transform`
// and `walsh_rows`, are described in encode_kernels.h.
//
// A *level* is one of the transform's log2(n) butterfly stages.  Its *distance* is how many reals
// the two inputs of a butterfly are apart; it is even, since complex numbers are pairs of reals.
// `transform` executes its levels in the same order for every instruction set, so that the results
// are bitwise the same: first the distances of TILE_VECTORS vectors or more, the largest first;
// then the smaller distances, the smallest first.
#pragma once

enum {
    TILE_VECTORS = 128 / VECTOR_SIZE, // 128 bytes, the same distance in all tables
    // 2^PASS_LEVELS vectors and their temporaries fit the registers.
    PASS_LEVELS = VECTOR_SIZE == 64 ? 4 : 3,
    LEAF_VECTORS = 1 << PASS_LEVELS, // of a leaf: a part transformed within the registers
    LEAF_REALS = LEAF_VECTORS * LANES,
    ROW_LEVELS = 3, // levels that walsh_rows executes in one pass
};

// ---- Levels between vectors -----------------------------------------------

// Executes the level whose distance is `half` vectors on `count` vectors.
KERNEL_INLINE void level(vector *v, size_t count, size_t half)
{
#pragma GCC unroll 16
    for (size_t i = 0; i < count; i++)
        if (!(i & half)) {
            vector difference = v[i] - v[i + half];
            v[i] += v[i + half];
            v[i + half] = difference;
        }
}

// Executes the levels between 2^levels rows of `width` reals, which begin `step` reals apart, the
// largest distance first.  `levels` is a compile-time constant, at most PASS_LEVELS.
KERNEL_INLINE void pass(REAL *rows, size_t step, size_t width, unsigned int levels)
{
    const size_t count = (size_t)1 << levels;
    for (REAL *at = rows; at < rows + width; at += LANES) {
        vector v[1 << PASS_LEVELS];
#pragma GCC unroll 16
        for (size_t i = 0; i < count; i++)
            v[i] = get(at + i * step);
        if (levels > 3)
            level(v, count, 8);
        if (levels > 2)
            level(v, count, 4);
        if (levels > 1)
            level(v, count, 2);
        level(v, count, 1);
#pragma GCC unroll 16
        for (size_t i = 0; i < count; i++)
            put(at + i * step, v[i], false);
    }
}

KERNEL void pass_any(REAL *rows, size_t step, size_t width, unsigned int levels)
{
    if (levels == PASS_LEVELS)
        pass(rows, step, width, PASS_LEVELS);
    else if (levels == 3)
        pass(rows, step, width, 3);
    else if (levels == 2)
        pass(rows, step, width, 2);
    else
        pass(rows, step, width, 1);
}

// ---- Transform ------------------------------------------------------------

// A level whose distance (2, 4 or 8 reals) lies within a vector: replaces a by a + b, b by a - b.
#define FLIP_2(i)                   ((i) ^ 2)
#define FLIP_4(i)                   ((i) ^ 4)
#define FLIP_8(i)                   ((i) ^ 8)
#define SIGN_2(i)                   ((i)&2 ? (REAL)-1 : (REAL)1)
#define SIGN_4(i)                   ((i)&4 ? (REAL)-1 : (REAL)1)
#define SIGN_8(i)                   ((i)&8 ? (REAL)-1 : (REAL)1)
#define LEVEL_INSIDE(v, flip, sign) (SHUFFLE(v, flip) + (v) * (const vector){MASK(sign)})

KERNEL_INLINE vector levels_inside(vector v)
{
#if VECTOR_SIZE / REAL_SIZE >= 4
    v = LEVEL_INSIDE(v, FLIP_2, SIGN_2);
#endif
#if VECTOR_SIZE / REAL_SIZE >= 8
    v = LEVEL_INSIDE(v, FLIP_4, SIGN_4);
#endif
#if VECTOR_SIZE / REAL_SIZE >= 16
    v = LEVEL_INSIDE(v, FLIP_8, SIGN_8);
#endif
    return v;
}

KERNEL_INLINE void leaf(REAL *to, const REAL *from, bool stream)
{
    vector v[LEAF_VECTORS];
#pragma GCC unroll 16
    for (size_t i = 0; i < LEAF_VECTORS; i++)
        v[i] = get(from + i * LANES);
    if (LEAF_VECTORS > 8)
        level(v, LEAF_VECTORS, 8);
    if (4 >= TILE_VECTORS)
        level(v, LEAF_VECTORS, 4);
    if (2 >= TILE_VECTORS)
        level(v, LEAF_VECTORS, 2);
    if (1 >= TILE_VECTORS)
        level(v, LEAF_VECTORS, 1);
#pragma GCC unroll 16
    for (size_t i = 0; i < LEAF_VECTORS; i++)
        v[i] = levels_inside(v[i]);
    if (1 < TILE_VECTORS)
        level(v, LEAF_VECTORS, 1);
    if (2 < TILE_VECTORS)
        level(v, LEAF_VECTORS, 2);
    if (4 < TILE_VECTORS)
        level(v, LEAF_VECTORS, 4);
#pragma GCC unroll 16
    for (size_t i = 0; i < LEAF_VECTORS; i++)
        put(to + i * LANES, v[i], stream);
}

// One level of a transform of fewer than LEAF_REALS reals.
static void level_few(REAL *x, size_t n, size_t half)
{
    for (size_t i = 0; i < n; i++)
        if (!(i & half)) {
            REAL difference = x[i] - x[i + half];
            x[i] += x[i + half];
            x[i + half] = difference;
        }
}

static void transform_few(REAL *to, const REAL *from, size_t n)
{
    const size_t tile = TILE_VECTORS * LANES;
    memcpy(to, from, n * sizeof *to);
    for (size_t half = n / 2; half >= tile; half /= 2)
        level_few(to, n, half);
    for (size_t half = 2; half < n && half < tile; half *= 2)
        level_few(to, n, half);
}

// Transforms `n` reals (a power of two, at least LEAF_REALS) recursively: one pass over all, then
// each part by itself while it is in a cache.  Overwrites `from`.
KERNEL void transform_parts(REAL *to, REAL *from, size_t n, bool stream)
{
    unsigned int levels = 0;
    while (n >> levels > LEAF_REALS)
        levels++;
    if (levels > PASS_LEVELS)
        levels = levels % PASS_LEVELS > 0 ? levels % PASS_LEVELS : PASS_LEVELS;
    const size_t part = n >> levels;
    if (levels > 0)
        pass_any(from, part, part, levels);
    for (size_t i = 0; i < n; i += part) {
        if (part > LEAF_REALS)
            transform_parts(to + i, from + i, part, stream);
        else
            leaf(to + i, from + i, stream);
    }
}

KERNEL void transform(void *to, void *from, size_t n, bool stream)
{
    if (2 * n < LEAF_REALS)
        transform_few(to, from, 2 * n);
    else
        transform_parts(to, from, 2 * n, stream);
}

// ---- Rows -----------------------------------------------------------------

// Executes all levels of one column of 2^levels rows: ROW_LEVELS per pass, the nearest rows first.
// If `levels` is no multiple of ROW_LEVELS, the first pass executes the remainder.
KERNEL_INLINE void walsh_column(REAL *rows, size_t step, size_t width, unsigned int levels)
{
    unsigned int count = levels % ROW_LEVELS > 0 ? levels % ROW_LEVELS : ROW_LEVELS;
    for (unsigned int done = 0; done < levels; done += count, count = ROW_LEVELS)
        for (size_t row = 0; row >> levels == 0; row++)
            if (!(row >> done & (((size_t)1 << count) - 1)))
                pass_any(rows + row * step, step << done, width, count);
}

KERNEL void walsh_rows(void *rows, size_t stride, void *work, size_t width, size_t columns,
                       unsigned int levels)
{
    const size_t count = (size_t)1 << levels;
    for (size_t c = 0; c < columns; c++) {
        REAL *column = (REAL *)rows + c * width;
        if (levels <= ROW_LEVELS) {
            pass_any(column, stride, width, levels);
            continue;
        }
        copy_rows(work, width * REAL_SIZE, column, stride * REAL_SIZE, width * REAL_SIZE, count,
                  false);
        walsh_column(work, width, width, levels);
        copy_rows(column, stride * REAL_SIZE, work, width * REAL_SIZE, width * REAL_SIZE, count,
                  false);
    }
}
