#include "server/device/cpu/blas.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>

// Sets the function pointer at `out` to the library's function `name`; false where it has none.
static bool find(void *library, const char *name, void *out)
{
    void *found = dlsym(library, name);
    memcpy(out, &found, sizeof found);
    return found;
}

enum status cpu_blas_open(struct cpu_blas *out, const char *name, unsigned int threads,
                          struct error *err)
{
    *out = (struct cpu_blas){0};
    if (!name)
        name = "libopenblas.so.0";
    out->library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!out->library)
        return error_set(err, STATUS_NOT_FOUND,
                         "%s cannot be opened: %.120s (Debian package libopenblas0-pthread)", name,
                         dlerror());
    if (!find(out->library, "cblas_sgemm", &out->sgemm) ||
        !find(out->library, "openblas_set_num_threads", &out->set_num_threads)) {
        cpu_blas_close(out);
        return error_set(err, STATUS_UNSUPPORTED,
                         "%s has no cblas_sgemm or no openblas_set_num_threads: no OpenBLAS", name);
    }
    (void)find(out->library, "cblas_sbgemm", &out->sbgemm);
    out->set_num_threads(threads <= INT_MAX ? (int)threads : INT_MAX);
    return STATUS_OK;
}

void cpu_blas_close(struct cpu_blas *blas)
{
    if (blas->library)
        (void)dlclose(blas->library);
    *blas = (struct cpu_blas){0};
}
