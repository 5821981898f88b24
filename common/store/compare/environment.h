// Measurement environment: the hardware, drivers, models and pipeline settings with which samples
// were measured, as facts (values of properties).  It decides whether two sets of samples are
// comparable, and is stored with a baseline as its fingerprint (baseline.h).
#ifndef INFERSTAT_STORE_COMPARE_ENVIRONMENT_H
#define INFERSTAT_STORE_COMPARE_ENVIRONMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/core/query/query.h"
#include "common/store/compare/samples.h"

struct sqlite3_str;
struct store;

// The subject of a fact: the machines of the runs, one device, one model, or the pipeline settings
// of one model (or workload).  Expands X(enum suffix, name in the JSON).
#define ENVIRONMENT_SUBJECTS(X)                                                                    \
    X(MACHINE, "machine") X(DEVICE, "device") X(MODEL, "model") X(PIPELINE, "pipeline")

enum environment_subject {
#define ENVIRONMENT_SUBJECT_ENUM(name, text) ENVIRONMENT_##name,
    ENVIRONMENT_SUBJECTS(ENVIRONMENT_SUBJECT_ENUM)
#undef ENVIRONMENT_SUBJECT_ENUM
        ENVIRONMENT_SUBJECT_COUNT
};

struct environment {
    // Distinct values of each property, sorted: {"runs": 3, "machine": {"driver": ["550.54"], ...},
    // "device": {"NVIDIA H200": {"pcie_width": [16], ...}}, "model": {...}}
    char *json;
    int64_t runs; // how many runs the samples are from
};

// Frees the contents.  The caller zeroes the structure before its first use.
void environment_deinit(struct environment *environment);

// Reads the facts about the samples' runs, devices and models, and about the pipelines that the
// filter covers.  Device clocks and PCIe generation are the maximum over the last device samples of
// each run, since idle devices lower both.
MUST_CHECK enum status environment_collect(struct environment *environment, struct store *store,
                                           const struct samples *samples,
                                           const struct query_filter *filter, struct error *err);

// Reads JSON of a stored baseline; members that this version does not know are left out.
MUST_CHECK enum status environment_read_json(struct environment *environment, struct store *store,
                                             const char *json, struct error *err);

// Appends the properties that are known in both environments but differ: "driver 550.54 / 560.28;
// model tiny: digest ab12... / cd34...".  `decisive` selects those that make samples incomparable,
// else those that may only affect speed.  Appends nothing if there are none.
MUST_CHECK enum status environment_append_differences(struct sqlite3_str *text, struct store *store,
                                                      const struct environment *before,
                                                      const struct environment *after,
                                                      bool decisive, struct error *err);

#endif
