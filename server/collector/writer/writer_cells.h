// Cells of rollups that a run fills: combinations of kind, model, device, operation and day.  Each
// costs rows of rollups, so a few records with ever new names or times would fill the disk.  A run
// may fill CELLS_FREE of them a day; further ones count for its owner (QUOTA_CELLS).  Where the
// quota is used up, the names of records that would fill new cells are stored as "other".  Writer
// thread only.
#ifndef INFERSTAT_COLLECTOR_WRITER_WRITER_CELLS_H
#define INFERSTAT_COLLECTOR_WRITER_WRITER_CELLS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/wire/message.h"

struct quota;

enum {
    CELLS_FREE = 64,
    CELLS_MAX = 512,   // of a run on a day
    CELLS_SIZE = 1024, // bytes of the filter
};

// The cells that a run has filled on a day of the collector; all zero: none.
struct cells {
    uint8_t *bits; // Bloom filter of CELLS_SIZE bytes; NULL: empty
    unsigned count;
    int64_t day; // since 1970
};

// The batch of which records are counted.
struct cells_batch {
    struct quota *quota;
    unsigned owner; // in the quota
    int64_t received_ns;
    const int64_t *names; // [i]: the store's id of the run's name i + 1
};

void cells_deinit(struct cells *cells);

// Counts the cells of the table's rows from record number `first` on.  Sets fold[i] to 1 if the
// names of row i are to be stored as "other", else to 0, and `*folds` to whether there is such a
// row.
MUST_CHECK enum status cells_add(struct cells *cells, const struct cells_batch *batch,
                                 const struct wire_table *table, uint64_t first, uint8_t *fold,
                                 bool *folds);

// True if the batch must be discarded for now: its owner has used up the quota, and a record is
// older than yesterday.  The producer sends it again, and so waits until the quota has refilled.
bool cells_must_wait(const struct cells_batch *batch, const struct message_batch *message);

#endif
