// Alerts: a thread that evaluates the alert rules at a fixed interval, through a read-only
// connection to the store of its own.  What changes is saved by the writer, with the calls that
// hooks are due, in one transaction, before the next evaluation.  All state is in the store: a
// restart neither repeats an alert nor forgets one.
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "server/collector/threads/channels.h"

#define ALERTS_EVERY_NS INT64_C(15000000000) // the default of alerts_options.every_ns

struct alerts_options {
    char file[PATH_MAX]; // of rules and hooks (alert_file.h); empty: the built-in rules alone
    int64_t every_ns;    // between two evaluations
};

struct alert_file;
struct alerts;

// Checks the file; `with_commands`: also that those of hooks are there (rules_file_check).
MUST_CHECK enum status alerts_check(const struct alerts_options *options, bool with_commands,
                                    struct error *err);

// Starts the thread.  `path` is the store's file.  All pointers are borrowed until alerts_stop.
MUST_CHECK enum status alerts_start(struct alerts **out, const struct alerts_options *options,
                                    const char *path, struct channels *channels, struct error *err);

// Replaces the rules and hooks by those of `file`, which it consumes, for the next evaluation; or
// notes in the store why they could not be read again, if `why` is not NULL.  Main thread.
void alerts_replace(struct alerts *alerts, struct alert_file *file, const struct error *why);

// Ends the thread, while the writer still runs.  Accepts NULL.
void alerts_stop(struct alerts *alerts);
