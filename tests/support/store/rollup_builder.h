// Rollups made from a store's rows in the plainest way: what readers of rollups are
// tested with, whatever the collector's writer does.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/core/query/query.h"

struct sqlite3;

// Makes the rollups of a metric from the rows with ids up to the watermark, and sets
// that.  Where a gap (table rollup_gap) forbids a row, there is none, or with `poison` a
// wrong one, which nobody may read.  Ends the test where anything fails.
void rollup_builder_fill(struct sqlite3 *db, const struct query_metric *metric, int64_t watermark,
                         bool poison);
