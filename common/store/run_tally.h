// Counts and fingerprints of the rows of many runs, of one kind at a time.
#ifndef INFERSTAT_STORE_RUN_TALLY_H
#define INFERSTAT_STORE_RUN_TALLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/core/record/record.h"

struct sqlite3;

// Of one run.
struct run_tally {
    int64_t run;
    int64_t count; // rows
    uint64_t sum;  // and their fingerprint (fingerprint.h)
};

// The runs that are looked at; zeroed at first.
struct run_tallies {
    struct run_tally *list; // rising by run
    size_t count, room, at;
};

void run_tally_deinit(struct run_tallies *tallies);

// Adds a run, which is above those that are there.
MUST_CHECK enum status run_tally_add(struct run_tallies *tallies, int64_t run, struct error *err);

// The run's, or NULL.
struct run_tally *run_tally_find(struct run_tallies *tallies, int64_t run);

// Adds the rows of the kind's table in `schema` ("main", "bundle"), or takes them off
// again.  Reads the whole table.
MUST_CHECK enum status run_tally_rows(struct run_tallies *tallies, struct sqlite3 *db,
                                      const char *schema, enum record_kind kind, bool off,
                                      struct error *err);

// The bits of a fingerprint as the integer that tables hold.
int64_t run_tally_bits(uint64_t sum);

#endif
