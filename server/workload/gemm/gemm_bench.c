#include "server/workload/gemm/gemm_bench.h"

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
    enum gemm_implementation implementation;
    size_t count, factor_bytes;     // elements of a matrix; bytes of a factor
    void *host[MATRICES];           // c, and factors as the implementation takes them
    struct tensor device[MATRICES]; // of `own` and the library
    double *ns;                     // of the trials
};

// ---- Preparing ------------------------------------------------------------

static enum status prepare_plain(struct job *job, struct error *err)
{
    job->host[A] = malloc(job->factor_bytes);
    job->host[B] = malloc(job->factor_bytes);
    if (!job->host[A] || !job->host[B])
        return error_no_memory(err, "gemm");
    gemm_problem_write(job->problem, job->host[A], job->host[B]);
    return STATUS_OK;
}

static enum status upload(struct job *job, int matrix, const void *from, struct error *err)
{
    struct tensor *to = &job->device[matrix];
    return device_upload(job->bench->device, to, 0, from, tensor_bytes(to), err);
}

static enum status prepare_own(struct job *job, struct error *err)
{
    const size_t n = job->problem->n;
    struct device *device = job->bench->device;
    const enum tensor_type type = gemm_tensor_type(job->problem->type);
    const struct tensor_format *format = &tensor_formats[type];
    if (!device_computes(device, type) || n % format->block_elements != 0)
        return error_set(err, STATUS_UNSUPPORTED,
                         "the device has no kernel for %s weights of %zu columns", format->name, n);
    enum status status = device_tensor_new(device, &job->device[A], TENSOR_F32, n, n, err);
    if (status == STATUS_OK)
        status = device_tensor_new(device, &job->device[B], type, n, n, err);
    if (status == STATUS_OK)
        status = device_tensor_new(device, &job->device[C], TENSOR_F32, n, n, err);
    if (status == STATUS_OK)
        status = upload(job, A, job->problem->a, err);
    if (status != STATUS_OK)
        return status;
    job->host[B] = malloc(tensor_bytes(&job->device[B]));
    if (!job->host[B])
        return error_no_memory(err, "gemm");
    format->narrow(job->host[B], job->problem->b_transposed, job->count);
    return upload(job, B, job->host[B], err);
}

// There is no tensor type of every factor: these lie in tensors of F32 that have enough bytes.
static enum status prepare_library(struct job *job, struct error *err)
{
    const size_t floats = (job->factor_bytes + sizeof(float) - 1) / sizeof(float);
    enum status status = prepare_plain(job, err);
    for (int i = 0; status == STATUS_OK && i < MATRICES; i++)
        status = device_tensor_new(job->bench->device, &job->device[i], TENSOR_F32, 1,
                                   i == C ? job->count : floats, err);
    for (int i = A; status == STATUS_OK && i <= B; i++)
        status = device_upload(job->bench->device, &job->device[i], 0, job->host[i],
                               job->factor_bytes, err);
    return status;
}

// ---- Multiplying ----------------------------------------------------------

static enum status multiply_plain(struct job *job, struct error *err)
{
    (void)err;
    gemm_multiply_plain(job->problem, job->host[C], job->host[A], job->host[B], job->problem->n);
    return STATUS_OK;
}

static enum status multiply_own(struct job *job, struct error *err)
{
    return device_matmul(job->bench->device, &job->device[C], &job->device[A], &job->device[B],
                         err);
}

static enum status multiply_library(struct job *job, struct error *err)
{
    return gemm_multiply(job->bench->library, job->problem->type, job->problem->n,
                         job->device[C].data, job->device[A].data, job->device[B].data, err);
}

static const struct {
    enum status (*prepare)(struct job *job, struct error *err);
    enum status (*multiply)(struct job *job, struct error *err); // may only queue the product
} implementations[] = {
    [GEMM_PLAIN] = {prepare_plain, multiply_plain},
    [GEMM_OWN] = {prepare_own, multiply_own},
    [GEMM_LIBRARY] = {prepare_library, multiply_library},
};

static enum status multiply(struct job *job, uint64_t *ns, struct error *err)
{
    if (job->bench->cancelled && job->bench->cancelled())
        return error_set(err, STATUS_CANCELLED, "gemm: stopped");
    const uint64_t begin_ns = clock_monotonic_ns();
    enum status status = implementations[job->implementation].multiply(job, err);
    if (status == STATUS_OK)
        status = device_synchronize(job->bench->device, err);
    *ns = clock_monotonic_ns() - begin_ns;
    return status;
}

// Fails with STATUS_UNSUPPORTED where one product by the plain loop would take too long, as its
// first rows tell.
static enum status check_plain(struct job *job, struct error *err)
{
    enum { ROWS = 4 };
    const size_t n = job->problem->n, rows = n < ROWS ? n : ROWS;
    const uint64_t begin_ns = clock_monotonic_ns();
    gemm_multiply_plain(job->problem, job->host[C], job->host[A], job->host[B], rows);
    const double ns = (double)(clock_monotonic_ns() - begin_ns) * (double)n / (double)rows;
    if (ns <= (double)job->bench->limit_ns)
        return STATUS_OK;
    return error_set(err, STATUS_UNSUPPORTED,
                     "one product would take %.3g s, more than the limit of %.3g s", ns / 1e9,
                     (double)job->bench->limit_ns / 1e9);
}

// Also finds out whether the library takes type and size.
static enum status warm_up(struct job *job, struct error *err)
{
    const uint64_t begin_ns = clock_monotonic_ns();
    size_t count = 0;
    uint64_t ns;
    enum status status = STATUS_OK;
    do
        status = multiply(job, &ns, err);
    while (status == STATUS_OK && ++count < job->bench->warmups &&
           clock_monotonic_ns() - begin_ns < job->bench->limit_ns);
    return status;
}

static enum status run_trials(struct job *job, struct gemm_figures *out, struct error *err)
{
    const uint64_t begin_ns = clock_monotonic_ns();
    do {
        uint64_t ns;
        const enum status status = multiply(job, &ns, err);
        if (status != STATUS_OK)
            return status;
        job->ns[out->trials++] = (double)ns;
        if (job->bench->until_steady > 0.0) {
            struct convergence convergence;
            convergence_measure(&convergence, job->ns, out->trials);
            out->is_steady = convergence_is_reached(&convergence, job->bench->until_steady);
        }
    } while (!out->is_steady && out->trials < job->bench->trials &&
             clock_monotonic_ns() - begin_ns < job->bench->limit_ns);
    return STATUS_OK;
}

static enum status record_trials(struct job *job, struct gemm_figures *out, struct error *err)
{
    char name[64];
    struct inferstat_timer timer;
    (void)snprintf(name, sizeof name, "gemm %s %zu %s", gemm_type_name(job->problem->type),
                   job->problem->n, out->implementation);
    inferstat_timer_begin(&timer, job->bench->monitor, inferstat_name(job->bench->monitor, name));
    const enum status status = run_trials(job, out, err);
    timer.device = job->implementation == GEMM_PLAIN ? 0 : job->bench->device_id;
    timer.items = (int64_t)out->trials;
    timer.bytes = timer.items * (int64_t)(2 * job->factor_bytes + job->count * sizeof(float));
    if (status == STATUS_OK)
        (void)inferstat_timer_end(&timer, NULL);
    else
        (void)inferstat_timer_fail(&timer, err->text);
    return status;
}

// ---- Measuring ------------------------------------------------------------

// An entry that no product writes stays NaN, of integers -1.
static enum status poison(struct job *job, struct error *err)
{
    memset(job->host[C], 0xff, job->count * sizeof(float));
    return job->device[C].data ? upload(job, C, job->host[C], err) : STATUS_OK;
}

static enum status check(struct job *job, struct gemm_figures *out, struct error *err)
{
    const bool is_int = job->problem->type == GEMM_INT8 && job->implementation != GEMM_OWN;
    enum status status = STATUS_OK;
    if (job->device[C].data)
        status = device_download(job->bench->device, job->host[C], &job->device[C], 0,
                                 job->count * sizeof(float), err);
    if (status == STATUS_OK)
        out->is_correct = gemm_problem_check(job->problem, job->host[C], is_int, &out->error_max);
    return status;
}

static enum status measure(struct job *job, struct gemm_figures *out, struct error *err)
{
    job->host[C] = malloc(job->count * sizeof(float));
    job->ns = calloc(job->bench->trials, sizeof *job->ns);
    if (!job->host[C] || !job->ns)
        return error_no_memory(err, "gemm");
    enum status status = implementations[job->implementation].prepare(job, err);
    if (status == STATUS_OK && job->implementation == GEMM_PLAIN)
        status = check_plain(job, err);
    if (status == STATUS_OK)
        status = warm_up(job, err);
    if (status == STATUS_OK)
        status = poison(job, err);
    if (status == STATUS_OK)
        status = record_trials(job, out, err);
    if (status != STATUS_OK)
        return status;
    stats_sort(job->ns, out->trials);
    const double n = (double)job->problem->n;
    out->p50_ns = job->ns[sketch_rank(0.50, out->trials)];
    out->p95_ns = job->ns[sketch_rank(0.95, out->trials)];
    out->p99_ns = job->ns[sketch_rank(0.99, out->trials)];
    out->flops_per_second = 2e9 * n * n * n / (out->p50_ns > 0.0 ? out->p50_ns : 1.0);
    return check(job, out, err);
}

enum status gemm_measure(struct gemm_figures *out, const struct gemm_bench *bench,
                         const struct gemm_problem *problem,
                         enum gemm_implementation implementation, struct error *err)
{
    const size_t count = problem->n * problem->n;
    struct job job = {.bench = bench,
                      .problem = problem,
                      .implementation = implementation,
                      .count = count,
                      .factor_bytes = count * gemm_type_bytes(problem->type)};
    *out = (struct gemm_figures){.implementation = implementation == GEMM_PLAIN ? "plain"
                                                   : implementation == GEMM_OWN
                                                       ? "own"
                                                       : bench->library->name};
    enum status status = measure(&job, out, err);
    for (int i = 0; i < MATRICES; i++) {
        device_tensor_free(bench->device, &job.device[i]);
        free(job.host[i]);
    }
    free(job.ns);
    if (status != STATUS_UNSUPPORTED)
        return status;
    (void)snprintf(out->skipped, sizeof out->skipped, "%.150s", err->text);
    return STATUS_OK;
}
