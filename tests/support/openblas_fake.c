// Libraries in place of OpenBLAS, for tests: one with its functions, and with PARTIAL defined one
// that lacks openblas_set_num_threads.

#define EXPORT __attribute__((visibility("default")))

EXPORT void cblas_sgemm(int order, int transpose_a, int transpose_b, int m, int n, int k,
                        float alpha, const float *a, int a_stride, const float *b, int b_stride,
                        float beta, float *c, int c_stride);

// Writes its arguments to `c`, so that a test sees that each arrives.
void cblas_sgemm(int order, int transpose_a, int transpose_b, int m, int n, int k, float alpha,
                 const float *a, int a_stride, const float *b, int b_stride, float beta, float *c,
                 int c_stride)
{
    const float said[] = {(float)order,
                          (float)transpose_a,
                          (float)transpose_b,
                          (float)m,
                          (float)n,
                          (float)k,
                          alpha,
                          a[0],
                          (float)a_stride,
                          b[0],
                          (float)b_stride,
                          beta,
                          (float)c_stride};
    for (int i = 0; i < (int)(sizeof said / sizeof said[0]); i++)
        c[i] = said[i];
}

#ifndef PARTIAL
EXPORT void openblas_set_num_threads(int most);
EXPORT int openblas_get_num_threads(void);

static int threads;

void openblas_set_num_threads(int most)
{
    threads = most;
}

int openblas_get_num_threads(void)
{
    return threads;
}
#endif
