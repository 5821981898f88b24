// The environment of measurements: hardware, drivers, models and pipeline settings.  It decides
// whether two sets of samples are comparable, and is stored as a baseline's fingerprint.
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

// What the facts are about: the runs' machines, one device, one model, how the pipelines
// of one model (or workload) were set.
#define ENVIRONMENT_SUBJECTS(X)                                                                    \
    X(MACHINE, "machine") X(DEVICE, "device") X(MODEL, "model") X(PIPELINE, "pipeline")

enum environment_subject {
#define ENVIRONMENT_SUBJECT_ENUM(name, text) ENVIRONMENT_##name,
    ENVIRONMENT_SUBJECTS(ENVIRONMENT_SUBJECT_ENUM)
#undef ENVIRONMENT_SUBJECT_ENUM
        ENVIRONMENT_SUBJECT_COUNT
};

// One value that something had: the driver of a machine, a model's digest.
struct environment_fact {
    enum environment_subject subject;
    char *of; // the device's, model's or pipeline's name; "" of machines
    char *property;
    char *value; // a number in decimal digits
    bool is_text;
};

struct environment {
    struct environment_fact *facts; // rising, none twice
    size_t count, room;
    int64_t runs; // how many there were
};

// The structure is the caller's, zeroed before its first use.
void environment_deinit(struct environment *environment);

// Reads what is known of the runs, devices and models that samples are from, and of the
// pipelines that the filter covers.
// Clocks are the highest of each run's last samples, and so is the PCIe generation,
// which devices lower when they have nothing to do.
MUST_CHECK enum status environment_collect(struct environment *environment, struct store *store,
                                           const struct samples *samples,
                                           const struct query_filter *filter, struct error *err);

// The environment as JSON: {"runs": 3, "machine": {"driver": ["550.54"], ...},
// "device": {"NVIDIA H200": {"pcie_width": [16], ...}}, "model": {...}}.
void environment_append_json(struct sqlite3_str *sql, const struct environment *environment);

// Reads such JSON; what else is in it is passed over.  STATUS_CORRUPT where it is none.
MUST_CHECK enum status environment_read_json(struct environment *environment, struct store *store,
                                             const char *json, struct error *err);

// Appends what differs between two environments, of what decides speed (else: of what may), where
// both have a value; nothing where they agree: "driver 550.54 / 560.28;
// model tiny: digest ab12... / cd34...".
void environment_append_differences(struct sqlite3_str *text, const struct environment *before,
                                    const struct environment *after, bool decisive);

#endif
