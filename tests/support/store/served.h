// Requests that an engine served, generated: arrivals, a queue, slots that compute requests beside
// each other, and times that vary as real ones do.  What verdicts on totals and tails are tested
// with.
#pragma once

#include <stdbool.h>
#include <stdint.h>

// An engine and its demand.
struct served {
    unsigned requests, runs; // requests of each run; 0 runs: one
    unsigned slots;          // requests that it computes at once; 0: one
    // Demand: so many clients, each with one request after another; or requests a second, in bursts
    // or evenly; or, with neither, all requests at once.
    unsigned clients;
    double rate;
    double
        burst; // 0: none; else the rate changes between rate * (1 + burst) and rate / (1 + burst)
    double slowness;             // all times are so many times the ordinary ones; 0: once
    double noise;                // relative deviation of a request's speed
    double drift;                // the same, shared by neighbours
    double run_noise;            // the same, of a whole run
    double slow_share, slow_add; // so many requests take so many ms more
    double heavy;       // 0: none; else 1 of 20 requests has a Pareto tail of this exponent
    double failures;    // share of requests that fail in the end
    double token_noise; // relative deviation of the work; 0: all the same
};

struct served_request {
    int run;
    int64_t started_ns, queue_ns, prefill_ns, decode_ns, itl_p99_ns;
    int prompt_tokens, generated_tokens;
    bool has_failed;
};

enum { SERVED_MAX = 20000, SERVED_SLOTS = 64 };

// Writes the requests of a run in order of their starts, `requests` of them.  An ordinary request
// takes 3 ms: 0.5 ms for a prompt of 20 tokens, and 2.5 ms for 50 tokens.
void served_run(struct served_request *out, const struct served *engine, int run, uint64_t *seed);
