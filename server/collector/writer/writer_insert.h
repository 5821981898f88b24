// Bulk insertion of records.  Each kind has a virtual table of SQLite over a decoded batch; one
// INSERT ... SELECT inserts a batch's whole table directly from the message's columns, and SQLite's
// cursors stay at the position of the last row.  Writer thread only.
#ifndef INFERSTAT_COLLECTOR_WRITER_WRITER_INSERT_H
#define INFERSTAT_COLLECTOR_WRITER_WRITER_INSERT_H

#include <stdbool.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/core/record/record.h"
#include "common/wire/message.h"

struct sqlite3;
struct inserter;
struct rollups;

MUST_CHECK enum status inserter_new(struct inserter **out, struct sqlite3 *db, struct error *err);
void inserter_free(struct inserter *inserter);

// Sets the rollups that inserted records are added to; borrowed; NULL: none.
void inserter_set_rollups(struct inserter *inserter, struct rollups *rollups);

// Reads the highest ids again, after a rollback or after another writer has inserted rows.
// Ids known to be higher stay.
MUST_CHECK enum status inserter_reset(struct inserter *inserter, struct error *err);

// The highest assigned id of a kind.
int64_t inserter_last_id(const struct inserter *inserter, enum record_kind kind);

// The run of the records.
struct insert_run {
    int64_t run;
    uint32_t stream;
    int64_t received_ns;
    const int64_t *names; // [i]: the store's id of the run's name i + 1
};

// Why the batch's tables are invalid, NULL if they are not: a record refers to a name that the
// run has not sent.  Static text.
const char *insert_fault(const struct message_batch *batch, uint32_t name_count);

// Inserts the table's rows from number `first` on.  Adds their count to `*stored`, and the
// count of those with implausible times to `*suspects`.
MUST_CHECK enum status insert_table(struct inserter *inserter, const struct insert_run *run,
                                    const struct wire_table *table, uint64_t first, int64_t *stored,
                                    int64_t *suspects, struct error *err);

#endif
