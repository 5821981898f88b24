// Small networks on the CPU back end: steps with packed weights and a kernel each, from one
// function table per instruction set (template.h).
//
// Products of matrices of the models' sizes are computed by own kernels, since OpenBLAS 0.3 reached
// 9 to 35 GMAC/s where these reach 25 to 48, one thread each with AVX2: (pixels x results x
// products of each) 4096 x 16 x 8: 9 against 25; 1024 x 16 x 24: 17 against 38; 36 x 128 x 128: 34
// against 44; 9 x 256 x 256: 17 against 44; 256 x 48 x 432: 35 against 48.
//
// A result's operations and their order do not depend on the number of threads, on the batch, or on
// the other results that a kernel computes with it.  Tables round differently.
#pragma once

#include "server/device/device_ops.h"
#include "server/device/network.h"

struct int8_conv;
struct network_kernels;

// Output channels that one tile computes for several pixels.
struct network_block {
    const float *weights; // (taps of all runs, vectors * lanes): the channels, then zeros
    const float *bias;    // (vectors * lanes)
    uint32_t channel, channels, vectors;
    uint32_t in; // first input channel of its group
};

// A CONV or DEPTHWISE as tiles see it: a pixel's inputs are runs of elements next to each other.
struct network_tiles {
    size_t in, out, add;                // floats from the arena's begin to those of the first pixel
    size_t in_step, out_step, add_step; // from pixel to pixel of a row
    size_t in_wrap, out_wrap, add_wrap; // from behind a row to the next row
    uint32_t width;                     // pixels of a row
    size_t *runs;                       // begin of each run, from the pixel's first
    size_t run_count, length;           // elements of each run
    struct network_block *blocks;
    size_t block_count;
    bool adds;
    float least, most; // the results' bounds
};

struct cpu_step;

// Computes pixels first..last - 1 of the result, row by row; if `by_block` blocks first..last - 1.
typedef void cpu_network_kernel(const struct cpu_step *step, float *arena, float *scratch,
                                size_t first, size_t last);

struct cpu_step {
    struct network_step step; // its weights are not used
    const struct network_kernels *kernels;
    cpu_network_kernel *run;
    struct network_tiles tiles; // of a GRU: its input's products
    struct int8_conv *int8;     // a CONV in integers; NULL: another step
    float *packed;              // weights and biases; NULL: those of an earlier step
    size_t packed_floats, scratch;
    const float *weights;  // in `packed`, of an EMBED; of a GRU those of its state
    size_t units;          // of which `run` computes a range
    uint64_t work;         // multiplications, or what takes as long
    bool by_block, clears; // clears: other tensors use the memory of its border
};

struct network_kernels {
    size_t lanes;
    cpu_network_kernel *ops[NETWORK_OP_COUNT];
    // Copies `count` pixels of the caller's planes, `plane` floats apart, and back.
    void (*interleave)(float *to, size_t pitch, const float *from, size_t plane, size_t channels,
                       size_t count);
    void (*separate)(float *to, size_t plane, const float *from, size_t pitch, size_t channels,
                     size_t count);
};

extern const struct network_kernels network_kernels_plain;
#if defined(__x86_64__)
extern const struct network_kernels network_kernels_avx2, network_kernels_avx512;
#endif

// The tables that this processor supports, slowest first; NULL behind the last.
const struct network_kernels *network_kernels_at(size_t i);

// Floats from the arena's begin to element (0, 0, 0), and from row to row.
size_t network_tensor_begin(const struct network_tensor *tensor);
size_t network_tensor_row(const struct network_tensor *tensor);

// Packs the weights of `*step`, whose members `step` and `kernels` are set (pack.c).
// Fails with STATUS_NOMEM.
MUST_CHECK enum status cpu_step_pack(struct cpu_step *step, struct error *err);
void cpu_step_free(struct cpu_step *step);

struct thread_pool *cpu_thread_pool(struct device *device); // cpu.c

// Functions of device_cpu_ops.  The second takes a table of kernels, for tests.
enum status cpu_network_new(struct device *device, struct device_network **out,
                            const struct network_plan *plan, size_t batch, struct error *err);
MUST_CHECK enum status cpu_network_new_with(const struct network_kernels *kernels,
                                            struct device *device, struct device_network **out,
                                            const struct network_plan *plan, size_t batch,
                                            struct error *err);
enum status cpu_network_run(struct device_network *network, const float *const *inputs,
                            float *const *outputs, size_t items, struct error *err);
void cpu_network_memory(const struct device_network *network, struct network_memory *out);
void cpu_network_free(struct device_network *network);
