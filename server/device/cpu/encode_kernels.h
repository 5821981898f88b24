// The inner loops of the encoders, in one set for every instruction set and type.
// Pure functions on the caller's memory, callable from any thread.
//
// All sets compute every element by the same sequence of roundings, whatever the
// width of their vectors: their results are equal to the last bit.  Complex numbers
// are pairs, real part first; `n` counts reals where it says so, else complex ones.
//
// `stream` writes past the caches, for output that is not read again soon: then the
// address written to is a multiple of ENCODE_ALIGNMENT.
#ifndef INFERSTAT_SERVER_DEVICE_CPU_ENCODE_KERNELS_H
#define INFERSTAT_SERVER_DEVICE_CPU_ENCODE_KERNELS_H

#include <stdbool.h>
#include <stddef.h>

#include "server/device/encode.h"

enum {
    ENCODE_ALIGNMENT = 64,
    // Sums are kept in so many lanes, added up as a tree.
    ENCODE_SUM_LANES = 16,
    // Complex numbers of a block that is transformed, and of a row of it.
    ENCODE_BLOCK = 512,
    ENCODE_COLUMNS = 32,
};

struct encode_kernels {
    const char *name;
    enum encode_type type;

    // sum_i (x[i] * scale)^2 of `n` reals, in double precision.
    double (*sum_squares)(const void *x, size_t n, double scale);

    // out[i] = (x[i] * scale) * factor, imaginary part 0; `x` has `n` reals.  Rounded to
    // the type once, at the end.
    void (*widen)(void *out, const void *x, size_t n, double scale, double factor, bool stream);

    // out[i] = a * b[i].
    void (*scale)(void *out, const void *b, size_t n, const double a[2], bool stream);

    // out[r * columns + c] = base[r * columns + c] * (high[r] * low[c]).
    void (*spread)(void *out, const void *base, const void *high, const void *low, size_t rows,
                   size_t columns);

    // Rounds `n` complex numbers to the type and puts them in the order in which the next two
    // take them; a power of two, here and there.
    void (*arrange)(void *out, const double *in, size_t n);

    // As spread, of 2^tops outputs at once, `stride` reals apart, and their Walsh-Hadamard
    // transform among each other; `base`, `low` and `out` are arranged, `high` is not.
    // Output t is output 0 times
    //
    //   high[t mod 2^(k+1) * rows + r] * low[(1 + k) * columns + c]
    //
    // for every bit k that is set in t.  `tops` is at most 3, and 0 where there are less than
    // ENCODE_COLUMNS columns.
    void (*spread_tops)(void *out, size_t stride, const void *base, const void *high,
                        const void *low, size_t rows, size_t columns, unsigned int tops);

    // to = the Walsh-Hadamard transform of 2^levels arranged blocks of `n`, `stride` reals
    // apart, which are overwritten.  `n` is a power of two, at most ENCODE_BLOCK; `levels` is
    // at most 4, and 0 where `n` is less than that.
    void (*transform)(void *to, void *from, size_t stride, size_t n, unsigned int levels,
                      bool stream);

    // The levels of a transform between rows, 2^levels of them, column by column: `columns`
    // of `width` reals each, a multiple of ENCODE_ALIGNMENT bytes and of 8 vectors.
    // Strides are in reals.  `levels` at least 1; `to` may be `from`; `work` holds 3 *
    // 2^levels * width reals.
    void (*walsh_rows)(void *to, size_t to_stride, const void *from, size_t from_stride, void *work,
                       size_t width, size_t columns, unsigned int levels, bool stream);

    // Copies `rows` rows of `width` bytes, a multiple of ENCODE_ALIGNMENT.
    void (*copy_rows)(void *to, size_t to_stride, const void *from, size_t from_stride,
                      size_t width, size_t rows, bool stream);

    // Sets `size` bytes to 0.
    void (*clear)(void *to, size_t size, bool stream);

    // Makes streamed writes visible to other threads.
    void (*fence)(void);
};

// The fastest set of a type that this processor can run.
const struct encode_kernels *encode_kernels_best(enum encode_type type);

// The sets in turn, slowest first; NULL where the processor or the compiler lacks set
// `index`, or there is none.
enum { ENCODE_KERNEL_SETS = 3 };
const struct encode_kernels *encode_kernels_at(unsigned int index, enum encode_type type);

// Plain C, vectors of 16 bytes; AVX2; AVX-512.
extern const struct encode_kernels encode_kernels_plain_f64, encode_kernels_plain_f32;
extern const struct encode_kernels encode_kernels_avx2_f64, encode_kernels_avx2_f32;
extern const struct encode_kernels encode_kernels_avx512_f64, encode_kernels_avx512_f32;

#endif
