// Measures products of square matrices: a plain loop and the device's library
// (server/device/gemm.h) multiply the same matrices.
#pragma once

#include "common/monitor/inferstat.h"
#include "server/workload/gemm/problem.h"

enum gemm_implementation { GEMM_PLAIN, GEMM_LIBRARY, GEMM_IMPLEMENTATION_COUNT };

struct gemm_bench {
    struct device *device;
    struct gemm_library *library; // needed for GEMM_LIBRARY only
    struct inferstat_monitor *monitor;
    uint32_t device_id;       // in records (device_record)
    uint32_t warmups, trials; // at most so many, at least one
    // Nanoseconds of the warm-ups, and of the trials, of a measurement: no product begins later but
    // the first.  The plain loop is skipped where one product would take longer.
    uint64_t limit_ns;
    bool (*cancelled)(void); // asked before every product
};

// Real numbers are NaN where nothing was measured.
struct gemm_figures {
    const char *implementation; // "plain", or the library's name
    char skipped[160];          // why nothing was measured; "": it was
    size_t trials;
    double p50_ns, p95_ns, p99_ns; // of a product, by nearest rank
    double flops_per_second;       // 2 n^3 / p50_ns; of INT8 integer operations
    double error_max;              // gemm_problem_check
    bool is_correct;
};

// Measures one implementation; the result is in `problem->c`.  Skips what the library does not
// multiply.  Records the trials as an operation "gemm TYPE N IMPLEMENTATION", with the products as
// items and the bytes of their factors and results.  Fails with STATUS_NOMEM, STATUS_CANCELLED, or
// if the device fails.
MUST_CHECK enum status gemm_measure(struct gemm_figures *out, const struct gemm_bench *bench,
                                    const struct gemm_problem *problem,
                                    enum gemm_implementation implementation, struct error *err);
