// What an LTTng-UST tracepoint costs, for bench_record, which starts this program
// while a session has it enabled: the nanoseconds from before to after each
// tracepoint less those of two clock reads in a row, median of REQUESTS, each after
// the clock reads of an answer's tokens.
//
//   bench_tracepoint REQUESTS TOKENS
#include <stdio.h>
#include <stdlib.h>

#include "common/sys/clock.h"
#include "tests/bench/bench.h"

#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "tests/bench/tracepoint.h"

enum { REQUESTS_MAX = 100000 };

static double times[REQUESTS_MAX];

static double time_nothing(size_t requests)
{
    for (size_t i = 0; i < requests; i++) {
        const uint64_t begun = clock_monotonic_ns();
        times[i] = (double)(clock_monotonic_ns() - begun);
    }
    return bench_stepped_median(times, requests);
}

static void run_requests(size_t requests, unsigned tokens)
{
    for (size_t i = 0; i < requests; i++) {
        uint64_t first = 0, last = 0;
        for (unsigned token = 0; token <= tokens; token++) {
            last = clock_monotonic_ns();
            first = first ? first : last;
        }
        const uint64_t begun = clock_monotonic_ns();
        lttng_ust_tracepoint(inferstat_bench, inference, 1, 2, i, 32, tokens, first & 0xfffff,
                             last - first, last & 0xfffff);
        times[i] = (double)(clock_monotonic_ns() - begun);
    }
}

int main(int argc, char **argv)
{
    const size_t requests = argc == 3 ? strtoul(argv[1], NULL, 10) : 0;
    const unsigned tokens = argc == 3 ? (unsigned)strtoul(argv[2], NULL, 10) : 0;
    if (requests < 1 || requests > REQUESTS_MAX) {
        fprintf(stderr, "usage: bench_tracepoint REQUESTS TOKENS\n");
        return 2;
    }
    if (!lttng_ust_tracepoint_enabled(inferstat_bench, inference)) {
        fprintf(stderr, "bench_tracepoint: no session has the tracepoint enabled\n");
        return 3;
    }
    run_requests(requests / 2, tokens); // warms its memory
    run_requests(requests, tokens);
    const double median = bench_stepped_median(times, requests);
    printf("%.2f\n", median - time_nothing(requests));
    return 0;
}
