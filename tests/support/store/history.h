// A history of inferences as a fleet of hosts would have left it, written into a
// store by the collector's own writer: encoded, decoded, inserted and committed as
// ever; only the sockets are missing.  Rollups are made of it afterwards, in the order of
// time, by the collector's own code, too (history_rollups.h).
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/core/base/error.h"

enum { HISTORY_MODELS_MAX = 64, HISTORY_HOSTS_MAX = 256 };

struct history {
    const char *path;          // of the store: new, or gone on with
    uint64_t inferences;       // exactly so many
    unsigned models, hosts;    // "model-00".., "host-000"..
    unsigned days;             // the history's length
    int64_t until_ns;          // its end
    uint64_t seed;             // of all that is left to chance
    bool has_all_kinds;        // also the other kinds of records, a few each day
    bool keeps_last_runs_open; // nobody says goodbye at the end
};

// A day has its busy hours and its quiet ones, models their own speeds and shares,
// latencies long tails.  A host serves one model at a time, as those with one GPU do: for
// three hours up to three days, then another one, the popular ones more often.  Its
// program starts anew every thirty days: a run.
// Sets `*seconds` to how long the writing took, from the first record to the closed
// store.
MUST_CHECK enum status history_write(const struct history *history, double *seconds,
                                     struct error *err);
