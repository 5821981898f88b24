// Columnar memtable: holds records of one kind in memory until they are in the SQL table rollup.
// Each column that rollups (pre-aggregated rows) need is an array.  The caller fills a memtable
// from batches while they are inserted, or from stored rows; rollup_flush.h writes it to the table.
// Writer thread only.
//
// A sketch is a quantile histogram in a record's column.  A full series is a combination of model,
// host, device and operation (ROLLUP_FULL).
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/core/base/key_index.h"
#include "common/store/rollup/rollup.h"
#include "common/wire/message.h"
#include "server/collector/rollup/rollup_metrics.h"

struct sqlite3;
struct sqlite3_stmt;

enum {
    ROLLUP_MEMTABLE_ROWS = 131072,                       // most records in a memtable
    ROLLUP_MEMTABLE_ROWS_MAX = 3 * ROLLUP_MEMTABLE_ROWS, // in one of samples
    ROLLUP_MEMTABLE_BYTES = 8388608,                     // most bytes of sketches in a memtable
};

// Position of a quantile sketch in rollup_memtable.bytes.
struct rollup_blob {
    uint32_t at, size;
};

// One column; it has arrays only if `used`.
struct rollup_column {
    bool used;                 // a metric of the kind needs the column
    bool lacks;                // some rows have no value
    enum rollup_source source; // which of the arrays below; never ROLLUP_RATIOS
    uint8_t *has;              // [row]: 1 if the row has a value
    union {
        int64_t *integers;
        double *reals;
        struct rollup_blob *blobs;
    };
};

struct rollup_memtable {
    enum record_kind kind;
    size_t count, room;        // of rows, and most of them; a row is a record
    void *memory;              // holds all arrays by row; mapped when the first row is added
    size_t memory_size;        // in bytes
    int64_t *ids, *started_ns; // [row]: the record's id and start time
    uint32_t *series;          // [row]: number of the row's full series in `full_series`
    struct rollup_column columns[MESSAGE_COLUMNS_MAX];

    struct key_index full_series;  // the distinct series by all grouping columns
    unsigned char *bytes;          // all sketches, one after the other
    size_t bytes_used, bytes_room; // used and allocated bytes of `bytes`
};

// Initialises `memtable`, which the caller has zeroed; allocates nothing.
void rollup_memtable_init(struct rollup_memtable *memtable, enum record_kind kind);
void rollup_memtable_deinit(struct rollup_memtable *memtable);

// Drops all records; frees the memory unless `keeps_memory`.
void rollup_memtable_clear(struct rollup_memtable *memtable, bool keeps_memory);

// Drops the first `count` rows.  Their series and sketches stay until all rows are dropped.
void rollup_memtable_drop(struct rollup_memtable *memtable, size_t count);

// Returns full series `number`.
struct rollup_series rollup_memtable_series(const struct rollup_memtable *memtable, size_t number);

// True if `count` more records fit: then rollup_memtable_add may be called.
bool rollup_memtable_fits(const struct rollup_memtable *memtable, size_t count);

// The run to which the records of a batch belong.
struct batch_run {
    int64_t run;
    uint32_t stream;
    int64_t received_ns;  // the collector's wall clock
    const int64_t *names; // [i]: the store's id of the run's name number i + 1
    const uint8_t *fold;  // [row]: 1 if its names are replaced by `other`; NULL: of no row
    int64_t other;        // id of the name "other"
};

// A batch of records of one run.
struct rollup_batch {
    const struct wire_table *table; // NULL: no rows
    size_t first_row;               // rows of the table before it are left out
    int64_t first_id;               // id of that row; the ids of the rows are consecutive
    const struct batch_run *run;
    uint64_t now_ns; // monotonic
};

// Adds the rows of a batch, which must fit.  `host` is the name id of the run's host.  On
// STATUS_NOMEM none is added.
MUST_CHECK enum status rollup_memtable_add(struct rollup_memtable *memtable,
                                           const struct rollup_batch *batch, int64_t host);

// Prepares a statement for rollup_memtable_read that selects the records of a kind from their
// SQL table, as `t`.  `tail` ends the statement: WHERE, ORDER BY and LIMIT.
MUST_CHECK enum status rollup_memtable_prepare(struct sqlite3 *db, enum record_kind kind,
                                               const char *tail, struct sqlite3_stmt **out,
                                               struct error *err);

// Adds the rows of a statement of rollup_memtable_prepare and resets the statement.  Returns
// STATUS_FULL if not all rows fit; then it has added those that fit.
MUST_CHECK enum status rollup_memtable_read(struct rollup_memtable *memtable, struct sqlite3 *db,
                                            struct sqlite3_stmt *stmt, struct error *err);
