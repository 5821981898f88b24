// Parser of service level objectives (SLOs): upper limits of a request's durations, such as
// "ttft=200ms,tpot=30ms".  Only a request within all limits counts in the metric goodput.  A limit
// needs a unit, except 0.  No I/O, no global state.
#pragma once

#include <stdint.h>

#include "common/core/base/error.h"

// X(NAME, "name of the objective"): the name of its metric of an inference, less "_ns".
#define SLO_METRICS(X)                                                                             \
    X(TTFT, "ttft")                                                                                \
    X(TPOT, "tpot")                                                                                \
    X(E2E, "e2e")                                                                                  \
    X(QUEUE, "queue")                                                                              \
    X(PREFILL, "prefill")                                                                          \
    X(DECODE, "decode")                                                                            \
    X(ITL_MAX, "itl_max")                                                                          \
    X(ITL_P99, "itl_p99")

enum slo_metric {
#define SLO_METRIC_ENUM(name, text) SLO_##name,
    SLO_METRICS(SLO_METRIC_ENUM)
#undef SLO_METRIC_ENUM
        SLO_METRIC_COUNT
};

struct slo {
    int64_t limit_ns[SLO_METRIC_COUNT]; // -1: no objective
};

// The name of the objective; static.
const char *slo_name(enum slo_metric metric);

// Parses objectives separated by commas; spaces around words are ignored, and a name may end in
// "_ns".  If the text is invalid or empty, or gives an objective twice, returns STATUS_INVALID;
// `err` names the invalid word.
MUST_CHECK enum status slo_parse(struct slo *out, const char *text, struct error *err);
