// The CPU's library of matrix products (gemm.h): OpenBLAS.
#include <stdlib.h>

#include "server/device/cpu/blas.h"
#include "server/device/gemm.h"

struct cpu_gemm {
    struct gemm_library base; // must be the first member
    struct cpu_blas blas;
};

static enum status multiply(struct gemm_library *library, enum gemm_type type, size_t n, void *c,
                            const void *a, const void *b, struct error *err)
{
    (void)err;
    const struct cpu_blas *blas = &((struct cpu_gemm *)library)->blas;
    const int m = (int)n;
    if (type == GEMM_F32)
        blas->sgemm(CPU_BLAS_ROW_MAJOR, CPU_BLAS_AS_IS, CPU_BLAS_AS_IS, m, m, m, 1.0F, a, m, b, m,
                    0.0F, c, m);
    else
        blas->sbgemm(CPU_BLAS_ROW_MAJOR, CPU_BLAS_AS_IS, CPU_BLAS_AS_IS, m, m, m, 1.0F, a, m, b, m,
                     0.0F, c, m);
    return STATUS_OK;
}

static void close_library(struct gemm_library *library)
{
    struct cpu_gemm *gemm = (struct cpu_gemm *)library;
    cpu_blas_close(&gemm->blas);
    free(gemm);
}

enum status cpu_gemm_open(struct device *device, struct gemm_library **out, struct error *err)
{
    struct device_description description;
    device_describe(device, &description);
    struct cpu_gemm *gemm = calloc(1, sizeof *gemm);
    if (!gemm)
        return error_no_memory(err, "openblas");
    const enum status status = cpu_blas_open(&gemm->blas, NULL, description.threads, err);
    if (status != STATUS_OK) {
        free(gemm);
        return status;
    }
    gemm->base =
        (struct gemm_library){.device = device,
                              .name = "openblas",
                              .types = 1U << GEMM_F32 | (gemm->blas.sbgemm ? 1U << GEMM_BF16 : 0U),
                              .multiply = multiply,
                              .close = close_library};
    *out = &gemm->base;
    return STATUS_OK;
}
