// Singular values of a matrix, by LAPACKE, opened at run time.
#pragma once

#include <stddef.h>

#include "common/core/base/error.h"

struct svd;

// Opens the library: NULL is liblapacke.so.3.  Fails with STATUS_UNSUPPORTED if it is missing or is
// another library (`err` names the package), or STATUS_NOMEM.
MUST_CHECK enum status svd_open(struct svd **out, const char *library, struct error *err);
void svd_close(struct svd *svd); // accepts NULL

// a (rows, columns) = u (rows, k) * diag(s) * vt (k, columns), all by rows, k the smaller of rows
// and columns; s falls.  Destroys `a`.  Fails with STATUS_UNSUPPORTED if it does not converge or
// the matrix is too large for the library, or STATUS_NOMEM.
MUST_CHECK enum status svd_compute(const struct svd *svd, double *a, size_t rows, size_t columns,
                                   double *u, double *s, double *vt, struct error *err);
