// SIMD kernels of the quantum state encoders (each sample becomes a state vector of 2^qubits
// complex amplitudes; encode.h): one function table per instruction set and element type, selected
// at run time (CPU dispatch).  Any thread may call the functions; all memory is the caller's.
//
// All tables of an element type give bitwise the same results: the sequence of roundings for an
// element does not depend on the vector width.  A complex number is a pair of reals, real part
// first.  `n` counts complex numbers unless stated otherwise.
//
// `stream` selects non-temporal stores, for output that is not read again soon.  The output address
// is then a multiple of ENCODE_ALIGNMENT, and the caller calls `fence` after the last such store.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "server/device/encode.h"

enum {
    ENCODE_ALIGNMENT = 64, // bytes
    ENCODE_SUM_LANES = 16, // partial sums of a reduction, added up as a tree
};

struct encode_kernels {
    const char *name;                 // of the instruction set, for messages
    enum encode_type type;            // of reals, f64 or f32, in all `void` buffers
    const struct encode_kernels *f64; // table for f64 of the same instruction set

    // sum_i (x[i] * scale)^2 of `n` reals, in double precision.
    double (*sum_squares)(const void *x, size_t n, double scale);

    // out[i] = (x[i] * scale) * factor, imaginary part 0; `x` has `n` reals.  Computed in double
    // precision and rounded to the type once.
    void (*widen)(void *out, const void *x, size_t n, double scale, double factor, bool stream);

    // out[i] = a * b[i].
    void (*scale)(void *out, const void *b, size_t n, const double a[2], bool stream);

    // out[r * columns + c] = base[r * columns + c] * (high[r] * low[c]).
    void (*spread)(void *out, const void *base, const void *high, const void *low, size_t rows,
                   size_t columns);

    // to = Walsh-Hadamard transform (unnormalised) of `n` numbers, a power of two; clobbers `from`.
    void (*transform)(void *to, void *from, size_t n, bool stream);

    // The same transform in place, across 2^levels rows that begin `stride` reals apart.  A row has
    // `columns` columns of `width` reals; a column's size is a multiple of ENCODE_ALIGNMENT bytes.
    // `levels` is at least 1.  The caller's `work` holds 2^levels * width reals; it is not used if
    // `levels` is at most 3.
    void (*walsh_rows)(void *rows, size_t stride, void *work, size_t width, size_t columns,
                       unsigned int levels);

    // Copies `rows` rows of `width` bytes, a multiple of ENCODE_ALIGNMENT.  Strides are in bytes.
    void (*copy_rows)(void *to, size_t to_stride, const void *from, size_t from_stride,
                      size_t width, size_t rows, bool stream);

    // Sets `size` bytes to 0.
    void (*clear)(void *to, size_t size, bool stream);

    // Store fence: orders non-temporal stores before later stores, for other threads.
    void (*fence)(void);
};

// The fastest table of a type that this processor supports.
const struct encode_kernels *encode_kernels_best(enum encode_type type);

// Table `index`, slowest first; NULL if the processor lacks it or `index` is out of range.
enum { ENCODE_KERNEL_SETS = 3 };
const struct encode_kernels *encode_kernels_at(unsigned int index, enum encode_type type);

// Portable C with vectors of 16 bytes; AVX2; AVX-512.  The last two exist only on x86-64.
extern const struct encode_kernels encode_kernels_plain_f64, encode_kernels_plain_f32;
extern const struct encode_kernels encode_kernels_avx2_f64, encode_kernels_avx2_f32;
extern const struct encode_kernels encode_kernels_avx512_f64, encode_kernels_avx512_f32;
