// Why requests are slow: sets the requests of a window against what is usual, and splits the
// difference into causes.  Used by the query WHY and by alerts.
//
// Usual are, for each model, host and device, the requests of the same hour of former days, as in
// NOW (now.h), if enough of those days have enough of them; else those of the time before the
// window, WHY_BEFORE_WINDOWS times as long.  A bounded sample of both is read (why_sample.h).
//
// Requests are slower if the median or the 95th percentile of their time (e2e_ns; if that is as
// usual, ttft_ns) is surely more than WHY_MARGIN above the usual one (stats.h), for all series of a
// model and host and device together at an error rate of STATS_ERROR_RATE.
//
// The difference of each quantile is split as in latency_attribution.h, between the requests near
// the quantile on both sides: first the time for more tokens or items; then what remains goes to
// causes for the time that they were present beyond their usual share, in proportion if these times
// exceed it: events of the device or host, loads, copies, a changed setting, and more requests in
// progress.  The latter count if more requests arrived than usual, or if there is no other cause:
// otherwise they may be a consequence of slow requests.  The rest is `host` if this host alone is
// slower than usual, among WHY_HOSTS_LEAST or more with that model, else `unexplained`.
//
// A cause was present at the time.  That it caused the delay is likely, not proven.
#ifndef INFERSTAT_STORE_QUERY_WHY_H
#define INFERSTAT_STORE_QUERY_WHY_H

#include <stddef.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/core/query/query.h"
#include "common/core/stats/stats.h"

struct store;

#define WHY_WINDOW_NS INT64_C(600000000000) // unless another one is asked for
#define WHY_MARGIN    0.1                   // differences up to this share count as usual

enum {
    WHY_BEFORE_WINDOWS = 6,
    WHY_HOSTS_LEAST = 3,
    WHY_TEXT_SIZE = 512,
};

// X(enum suffix, name, words).  Those from THROTTLING to COPY_STARVED last for a time; the names of
// events are those of records.
#define WHY_CAUSES(X)                                                                              \
    X(DOWN, "down", "a process ended without closing")                                             \
    X(SILENT, "silent", "nothing is heard of a process")                                           \
    X(KILLED, "killed", "a process ended without closing and was replaced")                        \
    X(THROTTLING, "throttling", "clocks of the device were reduced")                               \
    X(XID, "xid", "the driver reported an error of the device (XID)")                              \
    X(PCIE_DOWNGRADE, "pcie_downgrade", "the device's PCIe link was below its best")               \
    X(ECC_CORRECTED, "ecc_corrected", "memory errors of the device were corrected")                \
    X(ECC_UNCORRECTED, "ecc_uncorrected", "the device had uncorrected memory errors")              \
    X(FOREIGN_PROCESS, "foreign_process", "another process used the device")                       \
    X(DEVICE_LOST, "device_lost", "the device did not answer")                                     \
    X(MEMORY_PRESSURE, "memory_pressure", "the host lacked memory")                                \
    X(CGROUP_THROTTLED, "cgroup_throttled", "a limit on processor time held processes back")       \
    X(DRIVER_HANG, "driver_hang", "the driver did not answer")                                     \
    X(LOAD, "load", "a model was being loaded")                                                    \
    X(COPY, "copy", "a pipeline copied to or from the device")                                     \
    X(COPY_STARVED, "starvation", "a pipeline waited for filled slots")                            \
    X(CONCURRENCY, "concurrency", "more requests were in progress")                                \
    X(SETTING, "setting", "a setting or version changed")                                          \
    X(PROMPT, "prompt", "prompts were longer")                                                     \
    X(TOKENS, "tokens", "answers were longer")                                                     \
    X(ITEMS, "items", "requests had more items")                                                   \
    X(HOST, "host", "this host alone is slower")                                                   \
    X(UNEXPLAINED, "unexplained", "no cause known")                                                \
    X(LOSSES, "losses", "records were lost")                                                       \
    X(AS_USUAL, "as_usual", "as usual")                                                            \
    X(FASTER, "faster", "faster than usual")                                                       \
    X(TOO_FEW, "too_few", "too few requests to compare")

enum why_cause_kind {
#define WHY_CAUSE_ENUM(name, text, words) WHY_##name,
    WHY_CAUSES(WHY_CAUSE_ENUM)
#undef WHY_CAUSE_ENUM
        WHY_CAUSE_COUNT,
    WHY_LASTING = WHY_THROTTLING,
    WHY_LASTING_END = WHY_CONCURRENCY
};

// The name of a cause; static.
const char *why_cause_name(enum why_cause_kind kind);

struct why_question {
    const char *model, *host; // NULL or "": any
    int64_t window_ns;        // up to the present (reader_as_of); 0: WHY_WINDOW_NS
};

enum why_quantile { WHY_P50, WHY_P95, WHY_QUANTILES };

// A model whose requests were compared: of the hosts and devices where it is slower, else of all.
struct why_subject {
    char model[QUERY_TEXT_SIZE];
    const char *metric;              // "e2e_ns" or "ttft_ns"; static
    enum stats_verdict verdict;      // WORSE: slower; UNDECIDED: too few requests
    size_t requests, usual_requests; // that were compared
    unsigned hosts, slow_hosts;      // hosts with requests in the window; of them slower ones
    double now_ns[WHY_QUANTILES];    // NaN: unknown
    double usual_ns[WHY_QUANTILES];  // NaN: unknown
    enum why_quantile main;          // whose difference decides the order of the causes
    const char *usual;               // which time is the usual one; static
};

struct why_cause {
    enum why_cause_kind kind;
    size_t subject;              // index of its model in why.subjects; SIZE_MAX: none
    char model[QUERY_TEXT_SIZE]; // "": of no model
    char host[QUERY_TEXT_SIZE];  // "": several
    // What it explains of the quantile's difference, and the share of that; NaN: it is no part of a
    // difference.
    double explained_ns[WHY_QUANTILES], share[WHY_QUANTILES];
    char text[WHY_TEXT_SIZE];     // one sentence, without a full stop
    char evidence[WHY_TEXT_SIZE]; // the command that shows it
};

struct why {
    int64_t since_ns, as_of_ns; // the window
    struct why_subject *subjects;
    size_t subject_count;
    // First processes that are down, silent or were replaced, then by the share that is explained,
    // of each model the unexplained rest last; then losses; then models that are as usual.
    struct why_cause *causes;
    size_t cause_count; // at least 1 after success
};

// Reads within a read transaction (session.h).  Returns STATUS_NO_DATA if there is no such model or
// host, or neither requests nor processes that ended.  Call why_deinit also after a failure.
MUST_CHECK enum status why_read(struct why *out, struct store *store,
                                const struct why_question *question, struct error *err);
void why_deinit(struct why *why);

#endif
