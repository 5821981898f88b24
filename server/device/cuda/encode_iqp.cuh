// The phases exp(i theta(x)) of an iqp sample's states, and the steps of a Walsh-Hadamard
// transform.
//
// A state's qubits are low ones, of which there are LOW_QUBITS, and high ones.  Its theta is
// the sum of
//
//   what pairs of low qubits add, which is the same whatever the high ones are;
//   for each low qubit that is set, its input and its pairs with the high ones that are;
//   what the high qubits add among themselves.
//
// So a phase is the product of three numbers out of tables, of which only the first depends
// on more than a few qubits.  Its bits are the same whichever kernel makes it.
#ifndef INFERSTAT_SERVER_DEVICE_CUDA_ENCODE_IQP_CUH
#define INFERSTAT_SERVER_DEVICE_CUDA_ENCODE_IQP_CUH

#include "server/device/cuda/encode_parts.cuh"

constexpr unsigned int LOW_QUBITS = 10, LOW_STATES = 1 << LOW_QUBITS;
constexpr unsigned int FEW_QUBITS = 4, FEW_STATES = 1 << FEW_QUBITS; // the lowest of the low ones
constexpr unsigned int MORE_STATES = LOW_STATES / FEW_STATES;
constexpr unsigned int INPUTS_MAX =
    ENCODE_QUBITS_MAX + ENCODE_QUBITS_MAX * (ENCODE_QUBITS_MAX - 1) / 2;

// Of the states whose high qubits are the same: exp(i theta) without the pairs of low qubits
// is few[lowest low qubits] * more[the other low ones].
struct iqp_factors {
    double angles[LOW_QUBITS + 1]; // of each low qubit; behind them the high ones' own
    cuda_complex<double> few[FEW_STATES], more[MORE_STATES];
};

// The same angle without its whole turns: sums of large ones would lose what counts.
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

// A sample's inputs, to shared memory; whether any is not finite (zeros stand for those).
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

// The contribution of the pairs of `low` qubits to the phase of a state.
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

// The angle of low qubit `i`; of the high ones where that is `low`.
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

// The sum of the angles of those of the low qubits from `first` on that are set.
static __device__ inline double sum_set(const double *angles, unsigned int first, unsigned int low,
                                        unsigned int state)
{
    double sum = 0.0;
    for (unsigned int i = first; i < low; i++)
        if (state >> (i - first) & 1)
            sum += angles[i];
    return sum;
}

// The factors of `count` sets of high qubits, from `first` on, by a block; `scale`, a power
// of two or 0, is in them.
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

// The phase of a state; `low_state` is of its low qubits, `pairs` theirs.
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
