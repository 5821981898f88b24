// The setting of measurements: on which machines, with which devices and models they
// were made.  What makes two samples comparable, or not: a baseline's fingerprint.
#ifndef INFERSTAT_STORE_SETTING_H
#define INFERSTAT_STORE_SETTING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/core/query/query.h"
#include "common/store/samples.h"

struct sqlite3_str;
struct store;

// What the facts are about: the runs' machines, one device, one model, how the pipelines
// of one model (or workload) were set.
#define SETTING_SUBJECTS(X)                                                                        \
    X(MACHINE, "machine") X(DEVICE, "device") X(MODEL, "model") X(PIPELINE, "pipeline")

enum setting_subject {
#define SETTING_SUBJECT_ENUM(name, text) SETTING_##name,
    SETTING_SUBJECTS(SETTING_SUBJECT_ENUM)
#undef SETTING_SUBJECT_ENUM
        SETTING_SUBJECT_COUNT
};

// One value that something had: the driver of a machine, a model's digest.
struct setting_fact {
    enum setting_subject subject;
    char *of; // the device's, model's or pipeline's name; "" of machines
    char *property;
    char *value; // a number in decimal digits
    bool is_text;
};

struct setting {
    struct setting_fact *facts; // rising, none twice
    size_t count, room;
    int64_t runs; // how many there were
};

// The structure is the caller's, zeroed before its first use.
void setting_deinit(struct setting *setting);

// Reads what is known of the runs, devices and models that samples are from, and of the
// pipelines that the filter covers.
// Clocks are the highest of each run's last samples, and so is the PCIe generation,
// which devices lower when they have nothing to do.
MUST_CHECK enum status setting_collect(struct setting *setting, struct store *store,
                                       const struct samples *samples,
                                       const struct query_filter *filter, struct error *err);

// The setting as JSON: {"runs": 3, "machine": {"driver": ["550.54"], ...},
// "device": {"NVIDIA H200": {"pcie_width": [16], ...}}, "model": {...}}.
void setting_append_json(struct sqlite3_str *sql, const struct setting *setting);

// Reads such JSON; what else is in it is passed over.  STATUS_CORRUPT where it is none.
MUST_CHECK enum status setting_read_json(struct setting *setting, struct store *store,
                                         const char *json, struct error *err);

// Whether two settings differ in what decides speed (else: in what may), where both
// say something; in words, ends with what differs, or nothing: "driver 550.54 / 560.28;
// model tiny: digest ab12... / cd34...".
void setting_append_differences(struct sqlite3_str *text, const struct setting *before,
                                const struct setting *after, bool decisive);

#endif
