#include "server/workload/gemm/gemm_bench.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/core/stats/sketch.h"
#include "common/core/stats/stats.h"
#include "common/sys/clock.h"

enum { A, B, C, MATRICES };

// A measurement in progress.
struct job {
    const struct gemm_bench *bench;
    const struct gemm_problem *problem;
    bool is_plain;
    struct tensor tensors[MATRICES]; // of the library
    double *ns;                      // of the warm-ups, then of the trials
};

static size_t bytes_of(const struct job *job, int matrix)
{
    const size_t count = job->problem->n * job->problem->n;
    return count * (matrix == C ? sizeof(float) : gemm_type_bytes(job->problem->type));
}

// There is no tensor type of every factor: these lie in tensors of F32 that have enough bytes.
static enum status upload(struct job *job, struct error *err)
{
    const void *const from[] = {job->problem->a, job->problem->b, job->problem->c};
    enum status status = STATUS_OK;
    for (int i = A; i < MATRICES && status == STATUS_OK; i++) {
        const size_t floats = (bytes_of(job, i) + sizeof(float) - 1) / sizeof(float);
        status =
            device_tensor_new(job->bench->device, &job->tensors[i], TENSOR_F32, 1, floats, err);
        if (status == STATUS_OK)
            status = device_upload(job->bench->device, &job->tensors[i], 0, from[i],
                                   bytes_of(job, i), err);
    }
    return status;
}

// Fails with STATUS_UNSUPPORTED where one product by the plain loop would take too long, as its
// first rows tell.
static enum status check_plain(const struct job *job, struct error *err)
{
    enum { ROWS = 4 };
    const struct gemm_problem *problem = job->problem;
    const size_t n = problem->n, rows = n < ROWS ? n : ROWS;
    const uint64_t begin_ns = clock_monotonic_ns();
    gemm_multiply_plain(problem->type, n, rows, problem->c, problem->a, problem->b);
    const double ns = (double)(clock_monotonic_ns() - begin_ns) * (double)n / (double)rows;
    if (ns <= (double)job->bench->limit_ns)
        return STATUS_OK;
    return error_set(err, STATUS_UNSUPPORTED,
                     "one product would take %.3g s, more than the limit of %.3g s", ns / 1e9,
                     (double)job->bench->limit_ns / 1e9);
}

static enum status multiply(const struct job *job, struct error *err)
{
    const struct gemm_problem *problem = job->problem;
    if (job->is_plain) {
        gemm_multiply_plain(problem->type, problem->n, problem->n, problem->c, problem->a,
                            problem->b);
        return STATUS_OK;
    }
    const enum status status =
        gemm_multiply(job->bench->library, problem->type, problem->n, job->tensors[C].data,
                      job->tensors[A].data, job->tensors[B].data, err);
    return status == STATUS_OK ? device_synchronize(job->bench->device, err) : status;
}

// Multiplies at most `most` times, at least once.
static enum status repeat(const struct job *job, size_t most, size_t *count, struct error *err)
{
    const uint64_t begin_ns = clock_monotonic_ns();
    uint64_t end_ns = begin_ns;
    *count = 0;
    do {
        if (job->bench->cancelled && job->bench->cancelled())
            return error_set(err, STATUS_CANCELLED, "gemm: stopped");
        const uint64_t from_ns = end_ns;
        const enum status status = multiply(job, err);
        if (status != STATUS_OK)
            return status;
        end_ns = clock_monotonic_ns();
        job->ns[(*count)++] = (double)(end_ns - from_ns);
    } while (*count < most && end_ns - begin_ns < job->bench->limit_ns);
    return STATUS_OK;
}

static enum status record_trials(const struct job *job, struct gemm_figures *out, struct error *err)
{
    char name[64];
    struct inferstat_timer timer;
    (void)snprintf(name, sizeof name, "gemm %s %zu %s", gemm_type_name(job->problem->type),
                   job->problem->n, out->implementation);
    inferstat_timer_begin(&timer, job->bench->monitor, inferstat_name(job->bench->monitor, name));
    const enum status status = repeat(job, job->bench->trials, &out->trials, err);
    timer.device = job->is_plain ? 0 : job->bench->device_id;
    timer.items = (int64_t)out->trials;
    timer.bytes = timer.items * (int64_t)(2 * bytes_of(job, A) + bytes_of(job, C));
    if (status == STATUS_OK)
        (void)inferstat_timer_end(&timer, NULL);
    else
        (void)inferstat_timer_fail(&timer, err->text);
    return status;
}

static enum status measure(struct job *job, struct gemm_figures *out, struct error *err)
{
    const struct gemm_bench *bench = job->bench;
    const double n = (double)job->problem->n;
    size_t warmups;
    job->ns =
        calloc(bench->warmups > bench->trials ? bench->warmups : bench->trials, sizeof *job->ns);
    if (!job->ns)
        return error_no_memory(err, "gemm");
    // An entry that no product writes stays NaN, of integers -1.
    memset(job->problem->c, 0xff, bytes_of(job, C));
    enum status status = job->is_plain ? check_plain(job, err) : upload(job, err);
    if (status == STATUS_OK)
        status = repeat(job, bench->warmups, &warmups, err);
    if (status == STATUS_OK)
        status = record_trials(job, out, err);
    if (status == STATUS_OK && !job->is_plain)
        status = device_download(bench->device, job->problem->c, &job->tensors[C], 0,
                                 bytes_of(job, C), err);
    if (status != STATUS_OK)
        return status;
    stats_sort(job->ns, out->trials);
    out->p50_ns = job->ns[sketch_rank(0.50, out->trials)];
    out->p95_ns = job->ns[sketch_rank(0.95, out->trials)];
    out->p99_ns = job->ns[sketch_rank(0.99, out->trials)];
    out->flops_per_second = 2e9 * n * n * n / fmax(out->p50_ns, 1.0);
    out->is_correct = gemm_problem_check(job->problem, &out->error_max);
    return STATUS_OK;
}

enum status gemm_measure(struct gemm_figures *out, const struct gemm_bench *bench,
                         const struct gemm_problem *problem,
                         enum gemm_implementation implementation, struct error *err)
{
    const double none = (double)NAN;
    struct job job = {.bench = bench, .problem = problem, .is_plain = implementation == GEMM_PLAIN};
    *out = (struct gemm_figures){.implementation = job.is_plain ? "plain" : bench->library->name,
                                 .p50_ns = none,
                                 .p95_ns = none,
                                 .p99_ns = none,
                                 .flops_per_second = none,
                                 .error_max = none};
    const enum status status = measure(&job, out, err);
    for (int i = A; i < MATRICES; i++)
        device_tensor_free(bench->device, &job.tensors[i]);
    free(job.ns);
    if (status != STATUS_UNSUPPORTED)
        return status;
    (void)snprintf(out->skipped, sizeof out->skipped, "%.150s", err->text);
    return STATUS_OK;
}
