// A matrix product to be measured, c = a * b of (n, n) matrices with generated elements, and the
// check of a result.  Any thread, one at a time per problem.
//
// Elements are reproducible.  Those of the floating-point types are uniform in [-1, 1), rounded to
// the type.  Those of INT8 are integers, of which each 32 along the sum have one of +-127, so that
// blocks of Q8_0 hold them exactly.
#ifndef INFERSTAT_SERVER_WORKLOAD_GEMM_PROBLEM_H
#define INFERSTAT_SERVER_WORKLOAD_GEMM_PROBLEM_H

#include "server/device/gemm.h"

enum { GEMM_SIZE_MAX = 16384 };

struct gemm_problem {
    size_t n;
    enum gemm_type type;
    float *a;            // (n, n)
    float *b_transposed; // (n, n): row j is column j of b
};

// Fails with STATUS_INVALID, naming both numbers, if a product and its copies for the
// implementations need more than `available` bytes (negative: unknown).
MUST_CHECK enum status gemm_check_memory(size_t n, enum gemm_type type, int64_t available,
                                         struct error *err);

// Fails with STATUS_NOMEM.
MUST_CHECK enum status gemm_problem_init(struct gemm_problem *problem, size_t n,
                                         enum gemm_type type, struct error *err);

// Accepts a zeroed problem.
void gemm_problem_deinit(struct gemm_problem *problem);

// The tensor type with the elements of `type`, Q8_0 of INT8.
enum tensor_type gemm_tensor_type(enum gemm_type type);

// Writes a, and b not transposed, as n * n elements of the type each.
void gemm_problem_write(const struct gemm_problem *problem, void *a, void *b);

// Computes the first `rows` rows of c by the textbook loops, the one over columns innermost (order
// i, k, j).  Sums are of F32, of INT8 factors int32_t.  `a` and `b` as written.
void gemm_multiply_plain(const struct gemm_problem *problem, void *c, const void *a, const void *b,
                         size_t rows);

// Compares entries of `c` with sums in double precision: all up to n = 64, else 4096 drawn at
// random.  `c` holds F32, or int32_t if `is_int`.  The error of an entry is its difference divided
// by the sum of |a b|; `*error_max` is the largest, NaN if an entry is no number.  Returns true if
// it is at most n * 2^-23, of INT8 0.
bool gemm_problem_check(const struct gemm_problem *problem, const void *c, bool is_int,
                        double *error_max);

#endif
