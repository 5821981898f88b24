// Causes of slow requests (why.h), and what else its modules share.
#ifndef INFERSTAT_STORE_WHY_WHY_CAUSE_H
#define INFERSTAT_STORE_WHY_WHY_CAUSE_H

#include <stdint.h>

#define WHY_WINDOW_NS     INT64_C(600000000000)    // unless another one is asked for
#define WHY_WINDOW_MAX_NS INT64_C(604800000000000) // a week
#define WHY_MARGIN        0.1                      // differences up to this share count as usual

enum why_quantile { WHY_P50, WHY_P95, WHY_QUANTILES };
enum why_metric { WHY_E2E, WHY_TTFT, WHY_METRICS };

// X(enum suffix, name, words).  Those from THROTTLING to COPY_STARVED last for a time; the names of
// events are those of records.
#define WHY_CAUSES(X)                                                                              \
    X(DOWN, "down", "a process ended without closing")                                             \
    X(SILENT, "silent", "nothing was heard of a process")                                          \
    X(KILLED, "killed", "a process ended without closing and was replaced")                        \
    X(THROTTLING, "throttling", "clocks of the device were reduced")                               \
    X(XID, "xid", "the driver reported an error of the device (XID)")                              \
    X(PCIE_DOWNGRADE, "pcie_downgrade", "the device's PCIe link was below its best")               \
    X(ECC_CORRECTED, "ecc_corrected", "memory errors of the device were corrected")                \
    X(ECC_UNCORRECTED, "ecc_uncorrected", "the device had uncorrected memory errors")              \
    X(MEMORY_FULL, "memory_full", "the device's memory was full")                                  \
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
    X(TOO_FEW, "too_few", "too few requests to be sure")                                           \
    X(NOTHING_BEFORE, "nothing_before", "nothing to compare with yet")

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

#endif
