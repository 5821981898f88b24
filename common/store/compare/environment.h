// Environment fingerprint of measurements: the properties of the machines, devices, models and
// pipelines (driver, clocks, model digest, ...) that samples (samples.h) come from, as JSON.
// Stored with a baseline.  Samples are incomparable if a decisive property differs.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/core/query/query.h"
#include "common/store/compare/samples.h"

struct sqlite3_str;

// The subject of a property: the machines of the runs, one device, one model, or the pipelines of
// one model (or workload).  Expands X(enum suffix, name in the JSON).
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
    // "device": {"cuda:0": {"pcie_width": [16], ...}}, "model": {...}}.  Unknown values are absent.
    char *json;
    int64_t runs; // how many runs the samples are from
};

// Frees the contents.  The caller zeroes the structure before its first use.
void environment_deinit(struct environment *environment);

// Reads the properties of the samples' runs, devices and models, and of those of their successful
// pipelines that the filter covers.  Of device clocks and PCIe generation only the maximum over all
// runs is kept (from the last 600 records device_sample of each), since idle devices lower both.
MUST_CHECK enum status environment_collect(struct environment *environment, struct store *store,
                                           const struct samples *samples,
                                           const struct query_filter *filter, struct error *err);

// Reads JSON of a stored baseline; subjects that this version does not know are left out.
MUST_CHECK enum status environment_read_json(struct environment *environment, struct store *store,
                                             const char *json, struct error *err);

// Appends the properties that are known in both environments but differ: "driver 550.54 / 560.28;
// model tiny: digest ab12... / cd34...".  `decisive` selects those that make samples incomparable,
// else those that may only affect speed.  Ignores differences of device clocks up to 3 %.  After 12
// properties appends "and N more".  Appends nothing if there are none.
MUST_CHECK enum status environment_append_differences(struct sqlite3_str *text, struct store *store,
                                                      const struct environment *before,
                                                      const struct environment *after,
                                                      bool decisive, struct error *err);
