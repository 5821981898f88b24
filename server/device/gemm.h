// Products of square matrices by a library of the device: OpenBLAS of the CPU, cuBLAS of CUDA.
// Both are opened at run time and need not be installed.  For measurements: device_matmul
// (device.h) multiplies without a library.
#pragma once

#include "server/device/device.h"

// Elements of the factors.  The product has F32 elements, of INT8 factors int32_t.
enum gemm_type { GEMM_F32, GEMM_F16, GEMM_BF16, GEMM_INT8, GEMM_TYPE_COUNT };

// An open library.  A back end's own struct has it as first member.
struct gemm_library {
    struct device *device;
    const char *name;   // "openblas", "cublas"
    unsigned int types; // bit t: multiplies factors of the type t
    enum status (*multiply)(struct gemm_library *library, enum gemm_type type, size_t n, void *c,
                            const void *a, const void *b, struct error *err);
    void (*close)(struct gemm_library *library);
};

// "f32", "f16", "bf16", "int8"; NULL: there is no such type.
const char *gemm_type_name(unsigned int type);

// Bytes of an element of a factor.
size_t gemm_type_bytes(enum gemm_type type);

// Opens the library of the device, which must stay open until it is closed.  It uses as many
// threads as the device.  Fails with STATUS_NOT_FOUND if it is not installed, naming it, or with
// STATUS_UNSUPPORTED if the back end has none or the library lacks a function.
MUST_CHECK enum status gemm_library_open(struct gemm_library **out, struct device *device,
                                         struct error *err);

// Accepts NULL.
void gemm_library_close(struct gemm_library *library);

// c = a * b, where all are (n, n), dense and row-major at device addresses.  In the order of the
// device's operations on tensors.  Fails with STATUS_UNSUPPORTED if the library does not multiply
// the type, or not in this size.
MUST_CHECK enum status gemm_multiply(struct gemm_library *library, enum gemm_type type, size_t n,
                                     void *c, const void *a, const void *b, struct error *err);
