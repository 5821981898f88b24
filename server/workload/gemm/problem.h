// A matrix product to be measured, c = a * b of (n, n) matrices with generated elements, and the
// check of a result.  Any thread, one at a time per problem.
//
// Elements are reproducible.  Those of the floating-point types are uniform in [-1, 1), rounded to
// the type; those of INT8 are integers from -127 to 127.
#pragma once

#include "server/device/gemm.h"

enum { GEMM_SIZE_MAX = 16384 };

// All matrices are dense and row-major.
struct gemm_problem {
    size_t n;
    enum gemm_type type;
    void *a, *b; // elements of the type
    void *c;     // F32, of INT8 int32_t
};

uint64_t gemm_problem_bytes(size_t n, enum gemm_type type);

// Generates a and b; c is not set.  Fails with STATUS_NOMEM.
MUST_CHECK enum status gemm_problem_init(struct gemm_problem *problem, size_t n,
                                         enum gemm_type type, struct error *err);

// Accepts a zeroed problem.
void gemm_problem_deinit(struct gemm_problem *problem);

// Computes the first `rows` rows of c by the textbook loops, the one over columns innermost (order
// i, k, j).
void gemm_multiply_plain(enum gemm_type type, size_t n, size_t rows, void *c, const void *a,
                         const void *b);

// Compares entries of c with sums in double precision: all up to n = 64, else 4096 drawn at random.
// The error of an entry is its difference divided by the sum of |a b|; `*error_max` is the largest,
// NaN if an entry is no number.  Returns true if it is at most n * 2^-23, of INT8 0.
bool gemm_problem_check(const struct gemm_problem *problem, double *error_max);
