#include "server/device/cpu/kernels.h"

#if defined(__x86_64__)

#include <cpuid.h>
#include <immintrin.h>

#include "server/device/cpu/lanes_avx2.h"
#include "server/device/half.h"

// Eight weights from element `i` on.  `type` is a constant at every call.
AVX2_INLINE __m256 load_weights(const void *weight, size_t i, enum tensor_type type)
{
    if (type == TENSOR_F32)
        return _mm256_loadu_ps((const float *)weight + i);
    const __m128i shorts = _mm_loadu_si128((const __m128i *)((const uint16_t *)weight + i));
    if (type == TENSOR_F16)
        return _mm256_cvtph_ps(shorts);
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(shorts), 16));
}

AVX2_INLINE float load_weight(const void *weight, size_t i, enum tensor_type type)
{
    if (type == TENSOR_F32)
        return ((const float *)weight)[i];
    const uint16_t bits = ((const uint16_t *)weight)[i];
    return type == TENSOR_F16 ? half_to_float(bits) : brain_to_float(bits);
}

enum { TILE_ROWS_MAX = 4, TILE_COLUMNS_MAX = 8, LINE = 64 };

// `rows` rows of `in` from `r` on times `columns` rows of the weight from `o` on;
// both are constants at every call, and this file is compiled with -O3, so that
// the loops over them vanish and the sums live in registers.  Each sum has a vector
// of its own and grows along k, in the same order whatever the tile.
AVX2_INLINE void tile(const struct cpu_product *p, size_t r, size_t o, size_t rows, size_t columns,
                      enum tensor_type type)
{
    const size_t k = p->k, element = type == TENSOR_F32 ? sizeof(float) : sizeof(uint16_t);
    const float *in = p->in + r * k;
    __m256 sums[TILE_ROWS_MAX][TILE_COLUMNS_MAX];
    for (size_t a = 0; a < rows; a++)
        for (size_t b = 0; b < columns; b++)
            sums[a][b] = _mm256_setzero_ps();

    size_t i = 0;
    for (; i + LANES <= k; i += LANES) {
        __m256 weights[TILE_COLUMNS_MAX];
        if (columns == TILE_COLUMNS_MAX && i % (LINE / element) == 0)
            for (size_t b = 0; b < columns; b++)
                _mm_prefetch((const char *)p->weight + ((o + columns + b) * k + i) * element,
                             _MM_HINT_T0);
        for (size_t b = 0; b < columns; b++)
            weights[b] = load_weights(p->weight, (o + b) * k + i, type);
        for (size_t a = 0; a < rows; a++) {
            __m256 x = _mm256_loadu_ps(in + a * k + i);
            for (size_t b = 0; b < columns; b++)
                sums[a][b] = _mm256_fmadd_ps(x, weights[b], sums[a][b]);
        }
    }

    for (size_t a = 0; a < rows; a++) {
        for (size_t b = 0; b < columns; b++) {
            float sum = add_lanes(sums[a][b]);
            for (size_t j = i; j < k; j++)
                sum += in[a * k + j] * load_weight(p->weight, (o + b) * k + j, type);
            p->out[(r + a) * p->out_stride + o + b] = sum;
        }
    }
}

// One row alone waits for memory, so it takes many weight rows at once and fetches those that
// follow; a batch uses every weight it loads for four rows, as many sums as there are registers.
AVX2_INLINE void matmul(const struct cpu_product *p, size_t first, size_t last,
                        enum tensor_type type)
{
    size_t batched = p->rows / TILE_ROWS_MAX * TILE_ROWS_MAX;
    size_t o = first;
    for (; batched > 0 && o + 3 <= last; o += 3) {
        for (size_t r = 0; r < batched; r += TILE_ROWS_MAX)
            tile(p, r, o, TILE_ROWS_MAX, 3, type);
        for (size_t r = batched; r < p->rows; r++)
            tile(p, r, o, 1, 3, type);
    }
    for (; batched == 0 && o + TILE_COLUMNS_MAX <= last; o += TILE_COLUMNS_MAX)
        for (size_t r = 0; r < p->rows; r++)
            tile(p, r, o, 1, TILE_COLUMNS_MAX, type);
    for (; o < last; o++)
        for (size_t r = 0; r < p->rows; r++)
            tile(p, r, o, 1, 1, type);
}

AVX2 static void matmul_f32(const struct cpu_product *p, size_t first, size_t last)
{
    matmul(p, first, last, TENSOR_F32);
}

AVX2 static void matmul_f16(const struct cpu_product *p, size_t first, size_t last)
{
    matmul(p, first, last, TENSOR_F16);
}

AVX2 static void matmul_bf16(const struct cpu_product *p, size_t first, size_t last)
{
    matmul(p, first, last, TENSOR_BF16);
}

AVX2 static float dot(const float *x, const float *y, size_t n)
{
    __m256 sums = _mm256_setzero_ps();
    size_t i = 0;
    for (; i + LANES <= n; i += LANES)
        sums = _mm256_fmadd_ps(_mm256_loadu_ps(x + i), _mm256_loadu_ps(y + i), sums);
    float sum = add_lanes(sums);
    for (; i < n; i++)
        sum += x[i] * y[i];
    return sum;
}

AVX2 static void accumulate(float *y, float a, const float *x, size_t n)
{
    __m256 factor = _mm256_set1_ps(a);
    size_t i = 0;
    for (; i + LANES <= n; i += LANES)
        _mm256_storeu_ps(y + i,
                         _mm256_fmadd_ps(factor, _mm256_loadu_ps(x + i), _mm256_loadu_ps(y + i)));
    for (; i < n; i++)
        y[i] += a * x[i];
}

static const struct cpu_kernels kernels = {
    .name = "avx2",
    .matmul = {[TENSOR_F32] = matmul_f32, [TENSOR_F16] = matmul_f16, [TENSOR_BF16] = matmul_bf16},
    .matmul_blocks = cpu_matmul_blocks_avx2,
    .round = cpu_round_avx2,
    .dot = dot,
    .accumulate = accumulate,
    .scores = cpu_scores_avx2,
    .softmax = cpu_softmax_avx2,
    .mix = cpu_mix_avx2,
    .swiglu = cpu_swiglu_avx2,
};

const struct cpu_kernels *cpu_kernels_avx2(void)
{
    // The compiler's own test knows whether the system saves the wide registers.
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma"))
        return NULL;
    unsigned int eax, ebx, ecx, edx;
    if (!__get_cpuid(1, &eax, &ebx, &ecx, &edx) || !(ecx & bit_F16C))
        return NULL;
    return &kernels;
}

#else

const struct cpu_kernels *cpu_kernels_avx2(void)
{
    return NULL;
}

#endif
