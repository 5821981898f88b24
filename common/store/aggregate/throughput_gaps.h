// Gaps between tokens in records `itl`: when the tokens of a throughput (throughput.h) were put
// out.  Part of its reading.
#pragma once

#include <stdint.h>

#include "common/core/base/error.h"
#include "common/store/aggregate/throughput_place.h"
#include "common/store/rollup/rollup_plan.h"

struct store;

// What was read.
struct throughput_gaps {
    int64_t sketches, rows;  // rollups and records
    struct rollup_span seen; // first and last start of the records; first > last: none was read
};

// Adds THROUGHPUT_GAPS of groups and steps, from the records that the session keeps or from the
// store.
MUST_CHECK enum status throughput_gaps_add(const struct throughput_place *place,
                                           struct store *store, int64_t now_ns,
                                           struct throughput_gaps *read, struct error *err);

// Lets gaps tell when tokens were put out, in groups that have no fewer gaps than their requests:
// those of unfinished requests are in records `itl` alone, those whose record is missing or is not
// written yet in requests alone.  Steps of a group count together.
MUST_CHECK enum status throughput_gaps_use(const struct throughput_place *place, struct error *err);
