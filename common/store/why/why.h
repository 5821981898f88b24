// Why requests are slow: sets the requests of a window against what is usual, and splits the
// difference into causes.  Used by the query WHY and by alerts.
//
// Usual are, for each model, host and device, the requests of the same hour of former days, as in
// NOW (now.h), if enough of those days have enough of them and the window has at most a day; else
// those of the time before the window, WHY_BEFORE_WINDOWS times as long.  A bounded sample of both
// is read (why_sample.c).
//
// Requests are slower if the median or the 95th percentile of their time (e2e_ns; if that is as
// usual, ttft_ns) is surely more than WHY_MARGIN above the usual one (stats.h): in a series (a
// model, host and device), or of all series of a model together.  The error rate of each verdict is
// STATS_ERROR_RATE / the number of series.
//
// The difference of the median, or if only that is worse of the 95th percentile, is split as in
// latency_attribution.h, between the requests near the quantile on both sides: first the time for
// more tokens or items; then what remains goes to causes for the time that they were present beyond
// their usual share, in proportion if these times exceed it: events of the device or host, loads,
// copies, a changed setting, and more requests in progress.  The latter count if more requests
// arrived than usual, or if their number hardly varies, as that of clients that wait for their
// answers; otherwise they are a consequence of slow requests.  The rest is `host` if this host
// alone is slower than usual, among WHY_HOSTS_LEAST or more with that model, else `unexplained`.
//
// A cause was present at the time.  That it caused the delay is likely, not proven.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/core/base/text.h"
#include "common/core/query/query.h"
#include "common/core/stats/stats.h"
#include "common/store/why/why_cause.h"

struct store;

enum {
    WHY_BEFORE_WINDOWS = 6,
    WHY_HOSTS_LEAST = 3,
    WHY_TEXT_SIZE = 512,
    WHY_EVIDENCE_SIZE = 2 * TEXT_QUOTED_SIZE(QUERY_TEXT_SIZE) + 128,
};

struct why_question {
    const char *model, *host; // NULL or "": any
    // The start of the window (reader_window_ns), which ends now (reader_as_of); 0: WHY_WINDOW_NS
    // before.
    int64_t since_ns;
    bool with_peers; // with a host: also whether it is worse than its peers (WHY_APART)
};

// A model whose requests were compared: of the hosts and devices where it is slower, else of all.
struct why_subject {
    enum why_metric metric;          // that is slower; WHY_E2E: none
    enum stats_verdict verdict;      // WORSE: slower; UNDECIDED: too few requests
    size_t requests, usual_requests; // that were compared
    unsigned hosts, slow_hosts;      // hosts with requests in the window; of them slower ones
    double now_ns[WHY_QUANTILES];    // NaN: unknown
    double usual_ns[WHY_QUANTILES];  // NaN: unknown
    enum why_quantile main;          // its difference decides the order of the causes
    const char *usual;               // which time is the usual one; static
    size_t first, end;               // internal: its series
};

struct why_cause {
    enum why_cause_kind kind;
    size_t subject;              // index of its model in why.subjects; SIZE_MAX: none
    char model[QUERY_TEXT_SIZE]; // "": of no model
    char host[QUERY_TEXT_SIZE];  // "": several
    // What it explains of the difference of the subject's main quantile, and the share of that;
    // NaN: it is no part of a difference.
    double explained_ns, share;
    double excess;            // of the subject: that quantile / the usual one; 0: none
    int64_t began_ns;         // of no part of a difference: when it happened or began; 0: unknown
    bool is_moment;           // it does not last
    char text[WHY_TEXT_SIZE]; // one sentence, without a full stop
    size_t untimed_size; // of the text without for how long, or how long ago, at its end; 0: all
    char evidence[WHY_EVIDENCE_SIZE]; // the command that shows it
};

struct why {
    int64_t since_ns, as_of_ns; // the window
    struct why_subject *subjects;
    size_t subject_count;
    // First processes that are down, silent or were replaced, or that all requests failed; then
    // model by model, the one that is slowest against its usual first, by the share that is
    // explained, the unexplained rest last; then losses; then models that are as usual; then models
    // of which the host is worse.
    struct why_cause *causes;
    size_t cause_count; // at least 1 after success
};

// Reads within a read transaction (session.h).  Returns STATUS_NO_DATA if there is no such model or
// host, or neither requests nor processes that ended.  Call why_deinit also after a failure.
MUST_CHECK enum status why_read(struct why *out, struct store *store,
                                const struct why_question *question, struct error *err);
void why_deinit(struct why *why);
