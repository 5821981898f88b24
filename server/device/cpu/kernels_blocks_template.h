// SIMD kernel template of the CPU back end (kernels.h): products with weights of the types with
// blocks, by integers of 8 bits.  The including file defines
//
//   VNNI    0 (AVX2) or 1 (AVX-512 with VNNI, in vectors of 32 bytes); for x86-64 only
//
// Both give the same results, bit for bit.
#pragma once

#include <immintrin.h>
#include <stdbool.h>
#include <string.h>

#include "server/device/cpu/kernels.h"
#include "server/device/cpu/lanes_avx2.h"
#include "server/device/tensor_blocks.h"

#if VNNI
#define KERNELS_TARGET target("avx2,fma,f16c,avx512f,avx512bw,avx512vl,avx512vnni")
#define MATMUL_BLOCKS  cpu_matmul_blocks_vnni
#else
#define KERNELS_TARGET target("avx2,fma,f16c")
#define MATMUL_BLOCKS  cpu_matmul_blocks_avx2
#endif
#define KERNEL        __attribute__((KERNELS_TARGET)) static
#define KERNEL_INLINE __attribute__((KERNELS_TARGET, always_inline)) static inline

// A strip is the part of a row that is computed at once: 8 groups of 32 elements, or one block of
// 256.
enum { STRIP = 8, LINE = 64, AHEAD = 2048 };

// The scales and offsets of a strip's groups; zero behind the last group.
struct strip_scales {
    __m256 scales, offsets;
};

// ---- Reading a strip ----------------------------------------------------------------------
// `type` is a constant at every call.

// Bytes of a block: as in tensor_formats, but known to the compiler.
KERNEL_INLINE size_t block_bytes(enum tensor_type type)
{
    return type == TENSOR_Q8_0   ? sizeof(struct block_q8_0)
           : type == TENSOR_Q4_0 ? sizeof(struct block_q4_0)
           : type == TENSOR_Q4_1 ? sizeof(struct block_q4_1)
           : type == TENSOR_Q5_0 ? sizeof(struct block_q5_0)
           : type == TENSOR_Q5_1 ? sizeof(struct block_q5_1)
           : type == TENSOR_Q4_K ? sizeof(struct block_q4_k)
           : type == TENSOR_Q5_K ? sizeof(struct block_q5_k)
                                 : sizeof(struct block_q6_k);
}

KERNEL_INLINE bool has_super_blocks(enum tensor_type type)
{
    return type == TENSOR_Q4_K || type == TENSOR_Q5_K || type == TENSOR_Q6_K;
}

KERNEL_INLINE size_t strip_bytes(enum tensor_type type)
{
    return has_super_blocks(type) ? block_bytes(type) : STRIP * block_bytes(type);
}

// Halves at the same place of consecutive blocks.
KERNEL_INLINE __m256 load_halves(const unsigned char *at, size_t stride, size_t count)
{
    short halves[STRIP] = {0};
    for (size_t g = 0; g < count; g++)
        memcpy(&halves[g], at + g * stride, sizeof halves[g]);
    // Stores to the array would not be forwarded to a wider load.
    return _mm256_cvtph_ps(_mm_setr_epi16(halves[0], halves[1], halves[2], halves[3], halves[4],
                                          halves[5], halves[6], halves[7]));
}

// Of the types Q4_K and Q5_K: multiples of six bits, the upper two bits of the last four apart.
KERNEL_INLINE struct strip_scales load_multiples(const uint8_t packed[12], float scale,
                                                 float minimum)
{
    uint32_t words[3];
    memcpy(words, packed, sizeof words);
    const uint32_t six = 0x3f3f3f3fU, four = 0x0f0f0f0fU, two = 0x03030303U;
    const uint32_t multiples[2] = {words[0] & six, (words[2] & four) | (words[0] >> 6 & two) << 4};
    const uint32_t least[2] = {words[1] & six, (words[2] >> 4 & four) | (words[1] >> 6 & two) << 4};
    const __m256i a = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)multiples));
    const __m256i b = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)least));
    return (struct strip_scales){
        _mm256_mul_ps(_mm256_cvtepi32_ps(a), _mm256_set1_ps(scale)),
        _mm256_mul_ps(_mm256_cvtepi32_ps(b), _mm256_set1_ps(-minimum)),
    };
}

KERNEL_INLINE struct strip_scales load_scales(enum tensor_type type, const unsigned char *at,
                                              size_t groups)
{
    const size_t stride = block_bytes(type);
    if (type == TENSOR_Q4_K || type == TENSOR_Q5_K) { // which begin alike
        const struct block_q4_k *block = (const struct block_q4_k *)at;
        return load_multiples(block->scales, _cvtsh_ss(block->scale), _cvtsh_ss(block->minimum));
    }
    if (type == TENSOR_Q6_K)
        return (struct strip_scales){
            _mm256_set1_ps(_cvtsh_ss(((const struct block_q6_k *)at)->scale)), _mm256_setzero_ps()};
    struct strip_scales strip = {load_halves(at, stride, groups), _mm256_setzero_ps()};
    if (type == TENSOR_Q4_0) // integers are stored from 0 on: 8 too many
        strip.offsets = _mm256_mul_ps(strip.scales, _mm256_set1_ps(-8.0F));
    if (type == TENSOR_Q5_0)
        strip.offsets = _mm256_mul_ps(strip.scales, _mm256_set1_ps(-16.0F));
    if (type == TENSOR_Q4_1 || type == TENSOR_Q5_1)
        strip.offsets = load_halves(at + sizeof(uint16_t), stride, groups);
    return strip;
}

// Low four bits of 16 bytes, then their high four bits.
KERNEL_INLINE __m256i load_fours(const uint8_t *low)
{
    const __m128i bytes = _mm_loadu_si128((const __m128i *)low);
    const __m256i both = _mm256_set_m128i(_mm_srli_epi16(bytes, 4), bytes);
    return _mm256_and_si256(both, _mm256_set1_epi8(15));
}

// 16 in each byte whose bit is set.
KERNEL_INLINE __m256i load_fifths(const uint8_t *high)
{
    uint32_t bits;
    memcpy(&bits, high, sizeof bits);
    const __m256i spread = _mm256_shuffle_epi8(
        _mm256_set1_epi32((int)bits), _mm256_setr_epi64x(0x0000000000000000, 0x0101010101010101,
                                                         0x0202020202020202, 0x0303030303030303));
    const __m256i bit = _mm256_set1_epi64x((long long)0x8040201008040201ULL);
    return _mm256_and_si256(_mm256_cmpeq_epi8(_mm256_and_si256(spread, bit), bit),
                            _mm256_set1_epi8(16));
}

// Integers of group `g` < 8 of a block of 256 elements, or of block `g` of a strip.  Those of Q8_0
// and Q6_K have a sign.
KERNEL_INLINE __m256i load_values(enum tensor_type type, const unsigned char *at, size_t g)
{
    if (type == TENSOR_Q8_0)
        return _mm256_loadu_si256((const __m256i *)((const struct block_q8_0 *)at)[g].values);
    if (type == TENSOR_Q4_0)
        return load_fours(((const struct block_q4_0 *)at)[g].low);
    if (type == TENSOR_Q4_1)
        return load_fours(((const struct block_q4_1 *)at)[g].low);
    if (type == TENSOR_Q5_0) {
        const struct block_q5_0 *block = (const struct block_q5_0 *)at + g;
        return _mm256_or_si256(load_fours(block->low), load_fifths(block->high));
    }
    if (type == TENSOR_Q5_1) {
        const struct block_q5_1 *block = (const struct block_q5_1 *)at + g;
        return _mm256_or_si256(load_fours(block->low), load_fifths(block->high));
    }
    const __m256i fifteen = _mm256_set1_epi8(15);
    if (type == TENSOR_Q6_K) {
        const struct block_q6_k *block = (const struct block_q6_k *)at;
        const size_t half = g / 4, place = g % 4;
        __m256i low =
            _mm256_loadu_si256((const __m256i *)(block->low + half * 64 + place % 2 * CPU_GROUP));
        __m256i high = _mm256_loadu_si256((const __m256i *)(block->high + half * CPU_GROUP));
        low = _mm256_and_si256(place < 2 ? low : _mm256_srli_epi16(low, 4), fifteen);
        high = _mm256_and_si256(_mm256_srli_epi16(high, (int)(2 * place)), _mm256_set1_epi8(3));
        low = _mm256_or_si256(low, _mm256_slli_epi16(high, 4));
        return _mm256_sub_epi8(low, _mm256_set1_epi8(32));
    }
    const bool has_fifth = type == TENSOR_Q5_K;
    const uint8_t *low =
        has_fifth ? ((const struct block_q5_k *)at)->low : ((const struct block_q4_k *)at)->low;
    __m256i four = _mm256_loadu_si256((const __m256i *)(low + g / 2 * CPU_GROUP));
    four = _mm256_and_si256(g % 2 ? _mm256_srli_epi16(four, 4) : four, fifteen);
    if (!has_fifth)
        return four;
    __m256i fifth = _mm256_loadu_si256((const __m256i *)((const struct block_q5_k *)at)->high);
    fifth = _mm256_and_si256(_mm256_srli_epi16(fifth, (int)g), _mm256_set1_epi8(1));
    return _mm256_or_si256(four, _mm256_slli_epi16(fifth, 4));
}

// What sums of two products are multiplied by before they are added in pairs: 1, or the scale of
// each half of the group.
KERNEL_INLINE __m256i load_factors(enum tensor_type type, const unsigned char *at, size_t g)
{
    if (type != TENSOR_Q6_K)
        return _mm256_set1_epi16(1);
    const int8_t *scales = ((const struct block_q6_k *)at)->scales + 2 * g;
    return _mm256_set_m128i(_mm_set1_epi16(scales[1]), _mm_set1_epi16(scales[0]));
}

// ---- Products -----------------------------------------------------------------------------

// Products of 32 integers, in eight sums.  The first factors of _mm256_maddubs_epi16 have no sign:
// where weights have one, it moves to the others.  Two products fit 16 bits: 2 * 128 * 127.
KERNEL_INLINE __m256 multiply(enum tensor_type type, __m256i weights, __m256i factors,
                              const int8_t *in)
{
    __m256i values = _mm256_loadu_si256((const __m256i *)in);
    if (type == TENSOR_Q8_0 || type == TENSOR_Q6_K) {
        values = _mm256_sign_epi8(values, weights);
        weights = _mm256_abs_epi8(weights);
    }
#if VNNI
    __m256i sums = _mm256_dpbusd_epi32(_mm256_setzero_si256(), weights, values);
    if (type == TENSOR_Q6_K)
        sums = _mm256_mullo_epi32(sums, _mm256_srai_epi32(factors, 16));
#else
    const __m256i sums = _mm256_madd_epi16(_mm256_maddubs_epi16(weights, values), factors);
#endif
    return _mm256_cvtepi32_ps(sums);
}

KERNEL_INLINE bool has_offsets(enum tensor_type type)
{
    return type != TENSOR_Q8_0 && type != TENSOR_Q6_K;
}

// A strip's product with one row, from group `first` on, is added to `*sum`.
KERNEL_INLINE void add_scales(enum tensor_type type, float scales[STRIP], __m256 *sum,
                              const struct strip_scales *strip, const struct cpu_rounded *in,
                              size_t place)
{
    _mm256_storeu_ps(scales, _mm256_mul_ps(strip->scales, _mm256_loadu_ps(in->scales + place)));
    if (has_offsets(type))
        *sum = _mm256_fmadd_ps(strip->offsets, _mm256_loadu_ps(in->sums + place), *sum);
}

// One row of `in`: weights are used as they are read.
KERNEL_INLINE void multiply_strip(enum tensor_type type, const struct cpu_rounded *in,
                                  const unsigned char *at, size_t first, __m256 sums[2])
{
    const struct strip_scales strip = load_scales(type, at, STRIP);
    float scales[STRIP];
    add_scales(type, scales, &sums[0], &strip, in, first);
    for (size_t g = 0; g < STRIP; g++)
        sums[g % 2] =
            _mm256_fmadd_ps(_mm256_broadcast_ss(&scales[g]),
                            multiply(type, load_values(type, at, g), load_factors(type, at, g),
                                     in->values + (first + g) * CPU_GROUP),
                            sums[g % 2]);
}

// The groups from `first` on, fewer than a strip, of `rows` rows of `in` from `row` on.
KERNEL_INLINE void multiply_rest(enum tensor_type type, const struct cpu_rounded *in,
                                 const unsigned char *at, size_t first, size_t groups, size_t row,
                                 size_t rows, __m256 (*sums)[2])
{
    for (; !has_super_blocks(type) && first < groups; first++, at += block_bytes(type)) {
        const struct strip_scales strip = load_scales(type, at, 1);
        const __m256i weights = load_values(type, at, 0), factors = load_factors(type, at, 0);
        for (size_t r = 0; r < rows; r++) {
            const size_t place = (row + r) * in->groups + first;
            const __m128 scale =
                _mm_mul_ss(_mm256_castps256_ps128(strip.scales), _mm_load_ss(in->scales + place));
            __m256 *sum = &sums[r][first % 2];
            if (has_offsets(type))
                *sum = _mm256_fmadd_ps(strip.offsets,
                                       _mm256_zextps128_ps256(_mm_load_ss(in->sums + place)), *sum);
            *sum = _mm256_fmadd_ps(_mm256_broadcastss_ps(scale),
                                   multiply(type, weights, factors, in->values + place * CPU_GROUP),
                                   *sum);
        }
    }
}

KERNEL_INLINE float multiply_row(enum tensor_type type, const struct cpu_product *p,
                                 const unsigned char *at, size_t groups)
{
    const size_t bytes = strip_bytes(type);
    __m256 sums[1][2] = {{_mm256_setzero_ps(), _mm256_setzero_ps()}};
    size_t first = 0;
    for (; first + STRIP <= groups; first += STRIP, at += bytes) {
        for (size_t line = 0; line < bytes; line += LINE)
            _mm_prefetch((const char *)at + AHEAD + line, _MM_HINT_T0);
        multiply_strip(type, &p->rounded, at, first, sums[0]);
    }
    multiply_rest(type, &p->rounded, at, first, groups, 0, 1, sums);
    return add_lanes(_mm256_add_ps(sums[0][0], sums[0][1]));
}

enum { ROWS_MAX = 64 };

#if VNNI

// Two groups of a strip side by side.
struct group_pair {
    __m512i weights; // without their signs
    __mmask64 minus; // where they have one
    __m512i factors; // of type Q6_K
    __m512i places;  // of the groups' scales
};

KERNEL_INLINE struct group_pair load_pair(enum tensor_type type, const unsigned char *at, size_t g)
{
    const __m512i weights = _mm512_inserti64x4(_mm512_castsi256_si512(load_values(type, at, g)),
                                               load_values(type, at, g + 1), 1);
    const __m512i factors = _mm512_inserti64x4(_mm512_castsi256_si512(load_factors(type, at, g)),
                                               load_factors(type, at, g + 1), 1);
    const __m256i place = _mm256_set1_epi32((int)g), next = _mm256_set1_epi32((int)g + 1);
    return (struct group_pair){
        .weights = has_offsets(type) ? weights : _mm512_abs_epi8(weights),
        .minus = has_offsets(type) ? 0 : _mm512_movepi8_mask(weights),
        .factors = _mm512_srai_epi32(factors, 16),
        .places = _mm512_inserti64x4(_mm512_castsi256_si512(place), next, 1),
    };
}

// A strip is read once for `rows` rows of `in` from `row` on.  Each row's sums grow in the same
// order as in multiply_strip, those of even and odd groups in the halves of one vector.
KERNEL_INLINE void multiply_strip_rows(enum tensor_type type, const struct cpu_rounded *in,
                                       const unsigned char *at, size_t first, size_t row,
                                       size_t rows, __m256 (*sums)[2])
{
    const struct strip_scales strip = load_scales(type, at, STRIP);
    struct group_pair pairs[STRIP / 2];
    for (size_t j = 0; j < STRIP / 2; j++)
        pairs[j] = load_pair(type, at, 2 * j);
    for (size_t r = 0; r < rows; r++) {
        const size_t place = (row + r) * in->groups + first;
        const __m512 scales = _mm512_castps256_ps512(
            _mm256_mul_ps(strip.scales, _mm256_loadu_ps(in->scales + place)));
        __m512 sum = _mm512_loadu_ps((float *)sums[r]);
        if (has_offsets(type)) // of all groups, in the first half
            sum = _mm512_fmadd_ps(_mm512_zextps256_ps512(strip.offsets),
                                  _mm512_zextps256_ps512(_mm256_loadu_ps(in->sums + place)), sum);
        for (size_t j = 0; j < STRIP / 2; j++) {
            __m512i values = _mm512_loadu_si512(in->values + (place + 2 * j) * CPU_GROUP);
            if (!has_offsets(type))
                values =
                    _mm512_mask_sub_epi8(values, pairs[j].minus, _mm512_setzero_si512(), values);
            __m512i products =
                _mm512_dpbusd_epi32(_mm512_setzero_si512(), pairs[j].weights, values);
            if (type == TENSOR_Q6_K)
                products = _mm512_mullo_epi32(products, pairs[j].factors);
            sum = _mm512_fmadd_ps(_mm512_permutexvar_ps(pairs[j].places, scales),
                                  _mm512_cvtepi32_ps(products), sum);
        }
        _mm512_storeu_ps((float *)sums[r], sum);
    }
}

#else

// A strip is read once for `rows` rows of `in` from `row` on.  Each row's sums grow in the same
// order as in multiply_strip.
KERNEL_INLINE void multiply_strip_rows(enum tensor_type type, const struct cpu_rounded *in,
                                       const unsigned char *at, size_t first, size_t row,
                                       size_t rows, __m256 (*sums)[2])
{
    const struct strip_scales strip = load_scales(type, at, STRIP);
    __m256i values[STRIP], factors[STRIP];
    for (size_t g = 0; g < STRIP; g++) {
        values[g] = load_values(type, at, g);
        factors[g] = load_factors(type, at, g);
    }
    for (size_t r = 0; r < rows; r++) {
        const size_t place = (row + r) * in->groups + first;
        __m256 both[2] = {sums[r][0], sums[r][1]};
        float scales[STRIP];
        add_scales(type, scales, &both[0], &strip, in, place);
        for (size_t g = 0; g < STRIP; g++)
            both[g % 2] = _mm256_fmadd_ps(
                _mm256_broadcast_ss(&scales[g]),
                multiply(type, values[g], factors[g], in->values + (place + g) * CPU_GROUP),
                both[g % 2]);
        sums[r][0] = both[0];
        sums[r][1] = both[1];
    }
}

#endif

// Up to ROWS_MAX rows.
KERNEL_INLINE void multiply_rows(enum tensor_type type, const struct cpu_product *p,
                                 const unsigned char *at, size_t groups, size_t row, size_t rows,
                                 float *out)
{
    __m256 sums[ROWS_MAX][2];
    size_t first = 0;
    for (size_t r = 0; r < rows; r++)
        sums[r][0] = sums[r][1] = _mm256_setzero_ps();
    for (; first + STRIP <= groups; first += STRIP, at += strip_bytes(type))
        multiply_strip_rows(type, &p->rounded, at, first, row, rows, sums);
    multiply_rest(type, &p->rounded, at, first, groups, row, rows, sums);
    for (size_t r = 0; r < rows; r++)
        out[(row + r) * p->out_stride] = add_lanes(_mm256_add_ps(sums[r][0], sums[r][1]));
}

KERNEL_INLINE void matmul(enum tensor_type type, const struct cpu_product *p, size_t first,
                          size_t last)
{
    const size_t groups = p->k / CPU_GROUP, row_bytes = tensor_row_bytes(type, p->k);
    for (size_t o = first; o < last; o++) {
        const unsigned char *at = (const unsigned char *)p->weight + o * row_bytes;
        if (p->rows == 1)
            p->out[o] = multiply_row(type, p, at, groups);
        for (size_t r = 0; p->rows > 1 && r < p->rows; r += ROWS_MAX)
            multiply_rows(type, p, at, groups, r, p->rows - r < ROWS_MAX ? p->rows - r : ROWS_MAX,
                          p->out + o);
    }
}

#define BLOCK_TYPES(X) X(Q8_0) X(Q4_0) X(Q4_1) X(Q5_0) X(Q5_1) X(Q4_K) X(Q5_K) X(Q6_K)

#define MATMUL(name)                                                                               \
    KERNEL void matmul_##name(const struct cpu_product *p, size_t first, size_t last)              \
    {                                                                                              \
        matmul(TENSOR_##name, p, first, last);                                                     \
    }
BLOCK_TYPES(MATMUL)
#undef MATMUL

void MATMUL_BLOCKS(const struct cpu_product *p, size_t first, size_t last)
{
    static cpu_matmul_kernel *const kernels[TENSOR_TYPE_COUNT] = {
#define ENTRY(name) [TENSOR_##name] = matmul_##name,
        BLOCK_TYPES(ENTRY)
#undef ENTRY
    };
    kernels[p->type](p, first, last);
}
