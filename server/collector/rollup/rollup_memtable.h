// Records of one kind that are not in the table rollup yet: the columns that rollups
// aggregate, as arrays.  Filled from batches while they are inserted, or from stored rows.
//
// Writer thread only.
#ifndef INFERSTAT_COLLECTOR_ROLLUP_MEMTABLE_H
#define INFERSTAT_COLLECTOR_ROLLUP_MEMTABLE_H

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
    ROLLUP_MEMTABLE_ROWS = 131072, // most records in one
    ROLLUP_MEMTABLE_BYTES = 8388608,
};

// Position of a sketch in the memtable's bytes.
struct rollup_blob {
    uint32_t at, size;
};

// One column; arrays only where it is used.
struct rollup_column {
    bool used;
    bool lacks;                // some rows have no value
    enum rollup_source source; // not ROLLUP_RATIOS
    uint8_t *has;              // [row]: whether it has a value
    union {
        int64_t *integers;
        double *reals;
        struct rollup_blob *blobs;
    };
};

struct rollup_memtable {
    enum record_kind kind;
    size_t count;
    size_t touched; // the most rows there were since the memory was mapped, at the last clear
    void *memory;   // of all arrays by row
    size_t memory_size;
    int64_t *ids, *started_ns;
    uint32_t *series; // [row]: number of its full series
    struct rollup_column columns[MESSAGE_COLUMNS_MAX];

    struct key_index full_series;
    unsigned char *bytes;
    size_t bytes_used, bytes_room;
};

// `memtable` is zeroed; allocates nothing yet.
void rollup_memtable_init(struct rollup_memtable *memtable, enum record_kind kind);
void rollup_memtable_deinit(struct rollup_memtable *memtable);

// Drops all records; frees the memory if more than `rows_kept` rows have used it.
void rollup_memtable_clear(struct rollup_memtable *memtable, size_t rows_kept);

// A full series, by its number.
struct rollup_series rollup_memtable_series(const struct rollup_memtable *memtable, size_t number);

// Whether `count` more records fit.
bool rollup_memtable_fits(const struct rollup_memtable *memtable, size_t count);

// A batch of records of one run.
struct rollup_batch {
    const struct wire_table *table;
    size_t first_row; // rows before it are left out
    int64_t first_id; // of that row; ids follow each other
    int64_t run;
    const int64_t *names; // [i]: the store's id of the run's name i + 1
    uint64_t now_ns;      // monotonic
};

// Adds the rows of a batch, whose run is of that host (a name id); they must fit.  On STATUS_NOMEM
// none is added.
MUST_CHECK enum status rollup_memtable_add(struct rollup_memtable *memtable,
                                           const struct rollup_batch *batch, int64_t host);

// Prepares a statement for rollup_memtable_read: the records of a kind, whose table is `t`,
// limited by `tail`.
MUST_CHECK enum status rollup_memtable_prepare(struct sqlite3 *db, enum record_kind kind,
                                               const char *tail, struct sqlite3_stmt **out,
                                               struct error *err);

// Adds the rows of such a statement and resets it.  STATUS_FULL: not all of them fit.
MUST_CHECK enum status rollup_memtable_read(struct rollup_memtable *memtable, struct sqlite3 *db,
                                            struct sqlite3_stmt *stmt, struct error *err);

#endif
