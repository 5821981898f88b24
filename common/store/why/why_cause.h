// Causes of slow requests (why.h), and what else its modules share.
#pragma once

#include <stdint.h>

#define WHY_WINDOW_NS     INT64_C(600000000000)    // unless another one is asked for
#define WHY_WINDOW_MAX_NS INT64_C(604800000000000) // a week
#define WHY_MARGIN        0.1                      // differences up to this share count as usual

enum why_quantile { WHY_P50, WHY_P95, WHY_QUANTILES };
enum why_metric { WHY_E2E, WHY_TTFT, WHY_METRICS };

// X(enum suffix, name, words, command that shows it).  Those from THROTTLING to COPY_STARVED last
// for a time; the names of events are those of records.
#define WHY_CAUSES(X)                                                                              \
    X(DOWN, "down", "a process ended without closing", "runs")                                     \
    X(SILENT, "silent", "nothing was heard of a process", "runs")                                  \
    X(KILLED, "killed", "a process ended without closing and was replaced", "runs")                \
    X(FAILED, "failed", "no request succeeded", "errors")                                          \
    X(THROTTLING, "throttling", "clocks of the device were reduced", "events")                     \
    X(XID, "xid", "the driver reported an error of the device (XID)", "events")                    \
    X(PCIE_DOWNGRADE, "pcie_downgrade", "the device's PCIe link was below its best", "events")     \
    X(ECC_CORRECTED, "ecc_corrected", "memory errors of the device were corrected", "events")      \
    X(ECC_UNCORRECTED, "ecc_uncorrected", "the device had uncorrected memory errors", "events")    \
    X(MEMORY_FULL, "memory_full", "the device's memory was full", "events")                        \
    X(FOREIGN_PROCESS, "foreign_process", "another process used the device", "events")             \
    X(DEVICE_LOST, "device_lost", "the device did not answer", "events")                           \
    X(MEMORY_PRESSURE, "memory_pressure", "the host lacked memory", "events")                      \
    X(CGROUP_THROTTLED, "cgroup_throttled", "a limit on processor time held processes back",       \
      "events")                                                                                    \
    X(DRIVER_HANG, "driver_hang", "the driver did not answer", "events")                           \
    X(LOAD, "load", "a model was being loaded", "loads")                                           \
    X(COPY, "copy", "a pipeline copied to or from the device", "pipelines")                        \
    X(COPY_STARVED, "starvation", "a pipeline waited for filled slots", "pipelines")               \
    X(CONCURRENCY, "concurrency", "more requests were in progress", "avg concurrent_requests")     \
    X(SETTING, "setting", "a setting or version changed", "runs")                                  \
    X(PROMPT, "prompt", "prompts were longer", "avg prompt_tokens")                                \
    X(TOKENS, "tokens", "answers were longer", "avg generated_tokens")                             \
    X(ITEMS, "items", "requests had more items", "avg items")                                      \
    X(HOST, "host", "this host alone is slower", "fleet")                                          \
    X(UNEXPLAINED, "unexplained", "no cause known", "inferences --slowest 10")                     \
    X(LOSSES, "losses", "records were lost", "summary")                                            \
    X(AS_USUAL, "as_usual", "as usual", "avg e2e_ns")                                              \
    X(FASTER, "faster", "faster than usual", "avg e2e_ns")                                         \
    X(TOO_FEW, "too_few", "too few requests to be sure", "avg e2e_ns")                             \
    X(NOTHING_BEFORE, "nothing_before", "nothing to compare with yet", "fleet")                    \
    X(APART, "apart", "worse than its peers with the same model and device", "fleet")

enum why_cause_kind {
#define WHY_CAUSE_ENUM(name, text, words, command) WHY_##name,
    WHY_CAUSES(WHY_CAUSE_ENUM)
#undef WHY_CAUSE_ENUM
        WHY_CAUSE_COUNT,
    WHY_LASTING = WHY_THROTTLING,
    WHY_LASTING_END = WHY_CONCURRENCY
};

// The name of a cause; static.
const char *why_cause_name(enum why_cause_kind kind);
