#include "server/workload/zoo/svd.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

// LAPACKE's user guide: numbers are int32_t in the library without a suffix.
enum { LAPACK_ROW_MAJOR = 101, LAPACK_WORK_MEMORY_ERROR = -1010, LAPACK_TRANSPOSE_MEMORY_ERROR };
typedef int32_t lapacke_dgesdd(int layout, char job, int32_t rows, int32_t columns, double *a,
                               int32_t a_stride, double *s, double *u, int32_t u_stride, double *vt,
                               int32_t vt_stride);

struct svd {
    void *library;
    lapacke_dgesdd *dgesdd;
};

enum status svd_open(struct svd **out, const char *library, struct error *err)
{
    struct svd *svd = calloc(1, sizeof *svd);
    if (!svd)
        return error_no_memory(err, "low rank");
    const char *name = library ? library : "liblapacke.so.3";
    svd->library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    void *found = svd->library ? dlsym(svd->library, "LAPACKE_dgesdd") : NULL;
    if (!found) {
        const char *reason = dlerror();
        enum status status =
            error_set(err, STATUS_UNSUPPORTED,
                      "low rank: %s (install LAPACKE: the package liblapacke of Debian)",
                      reason ? reason : name);
        svd_close(svd);
        return status;
    }
    memcpy(&svd->dgesdd, &found, sizeof found);
    *out = svd;
    return STATUS_OK;
}

void svd_close(struct svd *svd)
{
    if (!svd)
        return;
    if (svd->library)
        (void)dlclose(svd->library);
    free(svd);
}

enum status svd_compute(const struct svd *svd, double *a, size_t rows, size_t columns, double *u,
                        double *s, double *vt, struct error *err)
{
    if (rows > INT32_MAX || columns > INT32_MAX)
        return error_set(err, STATUS_UNSUPPORTED, "low rank: a matrix of %zu x %zu is too large",
                         rows, columns);
    const int32_t m = (int32_t)rows, n = (int32_t)columns, k = m < n ? m : n;
    const int32_t info = svd->dgesdd(LAPACK_ROW_MAJOR, 'S', m, n, a, n, s, u, k, vt, n);
    if (info == LAPACK_WORK_MEMORY_ERROR || info == LAPACK_TRANSPOSE_MEMORY_ERROR)
        return error_no_memory(err, "low rank");
    if (info != 0)
        return error_set(err, STATUS_UNSUPPORTED,
                         "low rank: no singular values of a matrix of %zu x %zu (dgesdd: %d)", rows,
                         columns, (int)info);
    return STATUS_OK;
}
