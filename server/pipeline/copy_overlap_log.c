#include "server/pipeline/copy_overlap_log.h"

#include <math.h>

static void add_beside(struct copy_overlap *copy, double start_ns, double end_ns)
{
    const double both_ns = fmin(copy->end_ns, end_ns) - fmax(copy->start_ns, start_ns);
    copy->beside_ns += fmax(both_ns, 0);
}

void copy_overlap_log_add_copy(struct copy_overlap_log *log, uint64_t chunk, double start_ns,
                               double end_ns)
{
    struct copy_overlap *copy = &log->copies[log->copies_in++ % COPY_OVERLAP_LOG_SIZE];
    *copy = (struct copy_overlap){.chunk = chunk, .start_ns = start_ns, .end_ns = end_ns};
    if (log->copies_in - log->copies_out > COPY_OVERLAP_LOG_SIZE)
        log->copies_out++;
    const uint64_t kept =
        log->computes_in < COPY_OVERLAP_LOG_SIZE ? log->computes_in : COPY_OVERLAP_LOG_SIZE;
    for (uint64_t i = log->computes_in - kept; i < log->computes_in; i++)
        add_beside(copy, log->computes[i % COPY_OVERLAP_LOG_SIZE].start_ns,
                   log->computes[i % COPY_OVERLAP_LOG_SIZE].end_ns);
}

void copy_overlap_log_add_compute(struct copy_overlap_log *log, double start_ns, double end_ns)
{
    const uint64_t place = log->computes_in++ % COPY_OVERLAP_LOG_SIZE;
    log->computes[place].start_ns = start_ns;
    log->computes[place].end_ns = end_ns;
    for (uint64_t i = log->copies_out; i < log->copies_in; i++)
        add_beside(&log->copies[i % COPY_OVERLAP_LOG_SIZE], start_ns, end_ns);
}

bool copy_overlap_log_pop(struct copy_overlap_log *log, bool none_comes, struct copy_overlap *out)
{
    if (log->copies_out == log->copies_in)
        return false;
    const struct copy_overlap *copy = &log->copies[log->copies_out % COPY_OVERLAP_LOG_SIZE];
    const bool known =
        log->computes_in > 0 &&
        log->computes[(log->computes_in - 1) % COPY_OVERLAP_LOG_SIZE].end_ns >= copy->end_ns;
    if (!known && !none_comes)
        return false;
    *out = *copy;
    log->copies_out++;
    return true;
}
