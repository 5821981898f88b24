#include "server/device/cpu/blas.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

// Of CBLAS (BLAS Technical Forum Standard, 2001, appendix B) and OpenBLAS's cblas.h, with integers
// of 32 bits.
enum { ROW_MAJOR = 101, AS_IS = 111 };
typedef void sgemm(int order, int transpose_a, int transpose_b, int m, int n, int k, float alpha,
                   const float *a, int a_stride, const float *b, int b_stride, float beta, float *c,
                   int c_stride);
typedef void sbgemm(int order, int transpose_a, int transpose_b, int m, int n, int k, float alpha,
                    const uint16_t *a, int a_stride, const uint16_t *b, int b_stride, float beta,
                    float *c, int c_stride);

struct blas {
    struct gemm_library base; // must be the first member
    void *library;
    sgemm *sgemm;
    sbgemm *sbgemm; // NULL: the library was built without it
    void (*set_num_threads)(int most);
};

// Sets the function pointer at `out` to the library's function `name`; false where it has none.
static bool find(void *library, const char *name, void *out)
{
    void *found = dlsym(library, name);
    memcpy(out, &found, sizeof found);
    return found;
}

static enum status multiply(struct gemm_library *library, enum gemm_type type, size_t n, void *c,
                            const void *a, const void *b, struct error *err)
{
    (void)err;
    const struct blas *blas = (struct blas *)library;
    const int m = (int)n;
    if (type == GEMM_F32)
        blas->sgemm(ROW_MAJOR, AS_IS, AS_IS, m, m, m, 1.0F, a, m, b, m, 0.0F, c, m);
    else
        blas->sbgemm(ROW_MAJOR, AS_IS, AS_IS, m, m, m, 1.0F, a, m, b, m, 0.0F, c, m);
    return STATUS_OK;
}

static void close_library(struct gemm_library *library)
{
    struct blas *blas = (struct blas *)library;
    if (blas->library)
        (void)dlclose(blas->library);
    free(blas);
}

static enum status load(struct blas *blas, const char *name, struct error *err)
{
    struct device_description device;
    blas->library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!blas->library)
        return error_set(err, STATUS_NOT_FOUND,
                         "%s cannot be opened: %.120s (Debian package libopenblas0-pthread)", name,
                         dlerror());
    if (!find(blas->library, "cblas_sgemm", &blas->sgemm) ||
        !find(blas->library, "openblas_set_num_threads", &blas->set_num_threads))
        return error_set(err, STATUS_UNSUPPORTED,
                         "%s has no cblas_sgemm or no openblas_set_num_threads: no OpenBLAS", name);
    if (find(blas->library, "cblas_sbgemm", &blas->sbgemm))
        blas->base.types |= 1U << GEMM_BF16;
    device_describe(blas->base.device, &device);
    blas->set_num_threads((int)device.threads);
    return STATUS_OK;
}

enum status cpu_blas_open(struct device *device, const char *name, struct gemm_library **out,
                          struct error *err)
{
    struct blas *blas = calloc(1, sizeof *blas);
    if (!blas)
        return error_no_memory(err, "openblas");
    blas->base = (struct gemm_library){.device = device,
                                       .name = "openblas",
                                       .types = 1U << GEMM_F32,
                                       .multiply = multiply,
                                       .close = close_library};
    const enum status status = load(blas, name, err);
    if (status != STATUS_OK) {
        close_library(&blas->base);
        return status;
    }
    *out = &blas->base;
    return STATUS_OK;
}

enum status cpu_gemm_open(struct device *device, struct gemm_library **out, struct error *err)
{
    return cpu_blas_open(device, "libopenblas.so.0", out, err);
}
