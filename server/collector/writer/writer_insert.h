// Bulk insert of records, in the caller's transaction.  Each kind of record has an SQLite virtual
// table over a decoded batch.  One INSERT ... SELECT inserts all records of that kind directly from
// the message's columns, and SQLite need not search the place of each row.  Writer thread only.
#pragma once

#include <stdint.h>

#include "common/core/base/error.h"
#include "common/core/record/record.h"
#include "common/wire/message.h"
#include "server/collector/rollup/rollup_memtable.h"

struct inserter;
struct rollups;

MUST_CHECK enum status inserter_new(struct inserter **out, struct sqlite3 *db, struct error *err);
void inserter_free(struct inserter *inserter);

// Sets the rollups to which inserted records are added; borrowed; NULL: none.
void inserter_set_rollups(struct inserter *inserter, struct rollups *rollups);

// Reads the highest ids from the store again, and forgets the rows inserted since the last commit.
// Call it after a rollback, and after an import has inserted rows.  Never lowers an id.
MUST_CHECK enum status inserter_reset(struct inserter *inserter, struct error *err);

// Returns the highest assigned id of a kind.
int64_t inserter_last_id(const struct inserter *inserter, enum record_kind kind);

// Returns how many rows of a kind were inserted since the last call.  Call it after a commit.
uint64_t inserter_take_count(struct inserter *inserter, enum record_kind kind);

// Returns NULL if the batch is valid, else the reason, static text: a record refers to a name that
// the run has not sent.  `name_count` is the number of the run's names.
const char *insert_fault(const struct message_batch *batch, uint32_t name_count);

// Inserts the table's rows whose record number is at least `first`, and adds them to the rollups.
// Adds the number of rows to `*stored`, and of rows with implausible times to `*suspects`.
MUST_CHECK enum status insert_table(struct inserter *inserter, const struct batch_run *run,
                                    const struct wire_table *table, uint64_t first, int64_t *stored,
                                    int64_t *suspects, struct error *err);
