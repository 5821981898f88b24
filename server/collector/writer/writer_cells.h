// Cardinality limit of rollups (pre-aggregated rows), per run and day.  A cell is a combination of
// record kind, model, device, operation and day.  Each costs rollup rows: without a limit, ever new
// names or times could fill the disk.  A run's first CELLS_FREE cells are free; more, up to
// CELLS_MAX, are charged to its owner's quota QUOTA_CELLS.  Beyond CELLS_MAX or the quota, records
// of a new cell are stored with the name "other" instead of their names.  Per kind and day they
// share one cell, also charged.  Writer thread only.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/wire/message.h"

struct quota;

enum {
    CELLS_FREE = 64,   // cells of a run on a day that count for no quota
    CELLS_MAX = 512,   // most cells of a run on a day, without those of "other"
    CELLS_SIZE = 1024, // bytes of the filter in struct cells
};

// The cells that a run has filled on one day of the collector's clock; all zero: none.
struct cells {
    uint8_t *bits;  // Bloom filter of CELLS_SIZE bytes; NULL: empty
    unsigned count; // cells in the filter, with those of "other": at most 2 * CELLS_MAX
    int64_t day;    // since 1970
};

// The batch whose records are counted; set by the caller.
struct cells_batch {
    struct quota *quota;
    unsigned owner; // the owner's number (quota_owner)
    int64_t received_ns;
    const int64_t *names; // [i]: the store's id of the run's name i + 1
};

void cells_deinit(struct cells *cells);

// Counts the cells of the table's rows from record number `first` on.  Sets fold[i] (the caller's,
// one byte per row) to 1 if the names of row i are to be stored as "other", else to 0, and `*folds`
// to whether there is such a row.
MUST_CHECK enum status cells_add(struct cells *cells, const struct cells_batch *batch,
                                 const struct wire_table *table, uint64_t first, uint8_t *fold,
                                 bool *folds);

// True if the batch must be discarded for now: its owner has used up the quota, and a record is
// older than yesterday.  The producer sends it again, and so waits until the quota has refilled.
bool cells_must_wait(const struct cells_batch *batch, const struct message_batch *message);
