// Kernels of the emulated CUDA runtime (cuda_runtime.h), run thread by thread.
#pragma once

#include "tests/support/cuda/cuda_runtime.h"

constexpr unsigned int EMULATED_THREADS_MAX = 1024;   // of a block
constexpr unsigned int EMULATED_CLUSTER_MAX = 8;      // blocks, of which the grid is made up in x
constexpr size_t EMULATED_SHARED_MAX = 227 * 1024;    // of a block, where the kernel asked for it
constexpr size_t EMULATED_SHARED_UNASKED = 48 * 1024; // where it did not

struct emulated_shape {
    dim3 grid, block;
    unsigned int cluster; // blocks beside each other in x that make one up
    size_t shared;        // bytes of dynamic shared memory
};

// Runs the kernel to its end.  One call at a time.
void emulation_run(const emulated_shape &shape, const std::function<void()> &kernel);
