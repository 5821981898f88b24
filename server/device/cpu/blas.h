// OpenBLAS, the CPU's library of matrix products (gemm.h), opened at run time: programs that use it
// also start where it is not installed.
#pragma once

#include "server/device/gemm.h"

// Opens the library `name` and lets it use the device's threads, in the whole process.  Fails with
// STATUS_NOT_FOUND, naming the Debian package, if it is missing, STATUS_UNSUPPORTED if it lacks a
// function, or STATUS_NOMEM.
MUST_CHECK enum status cpu_blas_open(struct device *device, const char *name,
                                     struct gemm_library **out, struct error *err);

// The entry gemm_open of the back end (device_ops.h): opens libopenblas.so.0.
MUST_CHECK enum status cpu_gemm_open(struct device *device, struct gemm_library **out,
                                     struct error *err);
