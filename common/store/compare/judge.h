// Verdicts of a comparison: for each metric of two groups of samples whether its median, its total
// and its tails differ (stats.h).  No I/O.  Used by the query COMPARE.
//
// Several verdicts are many chances to be wrong: each has an error rate such that the sum over all
// verdicts of a comparison is at most JUDGE_ERROR_RATE (Bonferroni), and at most STATS_ERROR_RATE.
// Where there are verdicts on both kinds of sampling, each kind has half of it, so that five loads
// still decide beside many metrics of requests.
//
// A total (output tokens per time with a request in progress) depends on the demand: an engine that
// computes requests together does less while fewer are in progress.  But fewer requests in progress
// reduce the total at most in proportion, since each of them is computed at least as fast.  So the
// total is WORSE only if the tokens per request and time are fewer as well, and BETTER only if they
// are more; else other demand may explain the difference.  The time of a request is taken with its
// queueing or without: either suffices.
//
// Of failures, which may be none, the ratio says nothing: the verdict on error_ratio is that on the
// share of requests that did not fail.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "common/core/base/status.h"
#include "common/core/stats/stats.h"
#include "common/store/compare/samples.h"

#define JUDGE_ERROR_RATE 0.05 // of a whole comparison

enum { BEFORE, AFTER, SIDES };

// What is compared with what.
struct pair {
    const struct sample_group *of[SIDES];
};

struct judge {
    const struct pair *pairs;
    size_t pair_count;
    int only; // place of the only metric that is compared (samples.h); -1: all
    bool force;
    double margin;
    double wall_ns[SIDES];                    // time of the windows
    double error_rates[STATS_SAMPLING_COUNT]; // of one verdict: judge_set_error_rates
};

// The medians of times and rates, or the rate of a total; of times also the tails.
enum judged { JUDGED_MIDDLE, JUDGED_P95, JUDGED_P99, JUDGED_COUNT };

// What the judge found about one metric of a pair.
struct judgement {
    struct judged_value {
        double of[SIDES]; // NaN: the metric has no such value
        struct stats_effect effect;
    } values[JUDGED_COUNT];
    size_t counts[SIDES], needed; // values, and how many a verdict on the middle needs
    // Work on which the metric depends and which differs by more than 10 %, or which requests of
    // only one side have.  Unless forced, all verdicts are then UNDECIDED.
    struct judged_work {
        const char *metric;
        double of[SIDES]; // medians; NaN: no request has it
    } works[3];
    unsigned work_count;
    // Of a total: the mean number of requests in progress, whether the sides differ by more than
    // 10 % in it, and whether that may explain the difference.
    double in_progress[SIDES];
    bool in_progress_differ, demand_may_explain;
};

// True if the metric at `place` is compared and both sides have values of it; a rate of tokens only
// if a request has tokens, which those of some models do not.
bool judge_compares(const struct judge *judge, const struct pair *pair, unsigned place);

// True if the metric has verdicts: what explains another metric has none, unless it alone is asked
// for; what is a matter of demand has none.
bool judge_has_verdict(const struct judge *judge, unsigned place);

// Sets the error rates from the number of verdicts on samples that are large enough.
void judge_set_error_rates(struct judge *judge);

// Judges the metric at `place`.  Fails only with STATUS_NOMEM.
MUST_CHECK enum status judge_metric(struct judgement *out, const struct judge *judge,
                                    const struct pair *pair, unsigned place);
