// Phase tables of the CUDA iqp encoder, one of the quantum state encoders (encode.h defines iqp and
// theta): compute the diagonal phases exp(i theta(x)) by table lookup.  All kernels compute bitwise
// identical phases.
//
// The low LOW_QUBITS bits of a state index x are its low qubits (all qubits, if there are fewer),
// the other bits its high qubits.  theta(x) is the sum of three terms:
//
//   low pairs    the inputs of the pairs of set low qubits; independent of the high qubits
//   low qubits   for each set low qubit, its input and the inputs of its pairs with set high qubits
//   high qubits  the inputs of the set high qubits and of their pairs
//
// A phase is the product of three factors.  The first is the factor of the low pairs (pairs_phase).
// The other two are an entry of the table `few` and an entry of the table `more`, which together
// cover the other two terms.  These tables exist once per value of the high qubits (iqp_factors).
#ifndef INFERSTAT_SERVER_DEVICE_CUDA_ENCODE_IQP_CUH
#define INFERSTAT_SERVER_DEVICE_CUDA_ENCODE_IQP_CUH

#include "server/device/cuda/encode_parts.cuh"

constexpr unsigned int LOW_QUBITS = 10, LOW_STATES = 1 << LOW_QUBITS;
constexpr unsigned int FEW_QUBITS = 4, FEW_STATES = 1 << FEW_QUBITS; // the lowest low qubits
constexpr unsigned int MORE_STATES = LOW_STATES / FEW_STATES; // values of the other low qubits
constexpr unsigned int INPUTS_MAX =
    ENCODE_QUBITS_MAX + ENCODE_QUBITS_MAX * (ENCODE_QUBITS_MAX - 1) / 2;

// Tables for one value of the high qubits: exp(i theta) without the low-pairs term is few[lowest
// FEW_QUBITS bits of x] * more[the other low bits].
struct iqp_factors {
    double angles[LOW_QUBITS + 1]; // angle of each low qubit; then the high-qubits term
    cuda_complex<double> few[FEW_STATES], more[MORE_STATES];
};

// Reduces an angle modulo 2 pi, since sums of large angles would lose precision.
static __device__ inline double few_turns(double angle)
{
    double sine, cosine;
    if (fabs(angle) <= 8.0)
        return angle;
    sincos(angle, &sine, &cosine);
    return atan2(sine, cosine);
}

static __device__ inline cuda_complex<double> unit(double angle)
{
    double sine, cosine;
    sincos(angle, &sine, &cosine);
    return {cosine, sine};
}

// The index of the pair (i, j), i < j, among the inputs.
static __device__ inline unsigned int pair_place(unsigned int qubits, unsigned int i,
                                                 unsigned int j)
{
    return qubits + i * qubits - i * (i + 1) / 2 + (j - i - 1);
}

// Copies a sample's inputs to shared memory, reduced modulo 2 pi.  Replaces inputs that are not
// finite by 0; returns true if there are any.
template <typename T>
static __device__ inline bool fetch_angles(double *x, const T *in, unsigned int inputs)
{
    int bad = 0;
    for (unsigned int i = threadIdx.x; i < inputs; i += blockDim.x) {
        const double angle = (double)in[i];
        bad = bad || !isfinite(angle);
        x[i] = isfinite(angle) ? few_turns(angle) : 0.0;
    }
    return __syncthreads_or(bad);
}

// The low-pairs factor of the phase of `state`, for `low` low qubits.
static __device__ inline cuda_complex<double> pairs_phase(const double *x, unsigned int qubits,
                                                          unsigned int low, unsigned int state)
{
    double sum = 0.0;
    for (unsigned int i = 0; i + 1 < low; i++) {
        if (!(state >> i & 1))
            continue;
        for (unsigned int j = i + 1; j < low; j++)
            if (state >> j & 1)
                sum += x[pair_place(qubits, i, j)];
    }
    return unit(sum);
}

// The angle of low qubit `i` for the value `high` of the high qubits; the high-qubits term if `i`
// is `low`.
static __device__ inline double sum_angles(const double *x, unsigned int qubits, unsigned int low,
                                           unsigned int i, unsigned int high)
{
    double sum = i < low ? x[i] : 0.0;
    for (unsigned int j = low; j < qubits; j++) {
        if (!(high >> (j - low) & 1))
            continue;
        if (i < low) {
            sum += x[pair_place(qubits, i, j)];
            continue;
        }
        sum += x[j];
        for (unsigned int k = j + 1; k < qubits; k++)
            if (high >> (k - low) & 1)
                sum += x[pair_place(qubits, j, k)];
    }
    return sum;
}

// The sum of the angles of the set low qubits from `first` on; bit 0 of `state` is qubit `first`.
static __device__ inline double sum_set(const double *angles, unsigned int first, unsigned int low,
                                        unsigned int state)
{
    double sum = 0.0;
    for (unsigned int i = first; i < low; i++)
        if (state >> (i - first) & 1)
            sum += angles[i];
    return sum;
}

// Computes the tables for `count` values of the high qubits from `first` on, with all threads of a
// block.  The entries of `few` include the factor `scale`, a power of two or 0.
static __device__ inline void make_factors(struct iqp_factors *factors, const double *x,
                                           unsigned int qubits, unsigned int low,
                                           unsigned int first, unsigned int count, double scale)
{
    for (unsigned int t = threadIdx.x; t < count * (low + 1); t += blockDim.x) {
        const unsigned int high = t / (low + 1), i = t % (low + 1);
        factors[high].angles[i] = sum_angles(x, qubits, low, i, first + high);
    }
    __syncthreads();
    constexpr unsigned int ENTRIES = FEW_STATES + MORE_STATES;
    for (unsigned int t = threadIdx.x; t < count * ENTRIES; t += blockDim.x) {
        struct iqp_factors *own = &factors[t / ENTRIES];
        const unsigned int entry = t % ENTRIES;
        if (entry >= FEW_STATES) {
            const unsigned int state = entry - FEW_STATES;
            own->more[state] = unit(sum_set(own->angles, FEW_QUBITS, low, state));
            continue;
        }
        const unsigned int few = low < FEW_QUBITS ? low : FEW_QUBITS;
        const cuda_complex<double> z = unit(own->angles[low] + sum_set(own->angles, 0, few, entry));
        own->few[entry] = {z.re * scale, z.im * scale};
    }
    __syncthreads();
}

// The phase of a state with the low bits `low_state` and the low-pairs factor `pairs`.
template <typename T>
static __device__ inline cuda_complex<T>
phase_of(const struct iqp_factors *factors, unsigned int low_state, cuda_complex<double> pairs)
{
    const cuda_complex<double> z =
        complex_product(complex_product(factors->few[low_state % FEW_STATES],
                                        factors->more[low_state / FEW_STATES]),
                        pairs);
    return {(T)z.re, (T)z.im};
}

template <typename T>
static __device__ inline void butterfly(cuda_complex<T> *a, cuda_complex<T> *b)
{
    const cuda_complex<T> x = *a, y = *b;
    *a = {x.re + y.re, x.im + y.im};
    *b = {x.re - y.re, x.im - y.im};
}

#endif
