// Virtual tables of SQLite over a decoded batch, one per kind: one INSERT ... SELECT inserts a
// batch's whole table directly from the message's columns, and SQLite's cursors stay at the
// position of the last row.  Writer thread only.
#ifndef INFERSTAT_COLLECTOR_WRITER_WRITER_ROWS_H
#define INFERSTAT_COLLECTOR_WRITER_WRITER_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/core/record/record.h"
#include "common/wire/message.h"

struct sqlite3;
struct sqlite3_stmt;

// The content of a kind's virtual table while its statement runs; borrowed.
struct rows {
    enum record_kind kind;
    const struct wire_table *table; // NULL: no rows
    size_t first_row;               // earlier rows are skipped
    int64_t first_id;               // of that row; ids are consecutive
    int64_t run;
    uint32_t stream;
    int64_t received_ns;
    const int64_t *names; // [i]: the store's id of the run's name i + 1
};

// Creates the virtual table of rows->kind, which reads `*rows` when the statement runs, and
// prepares the statement that inserts all of its rows into the kind's table.  The statement
// stops at a row that fails; the caller must roll back the transaction.
MUST_CHECK enum status rows_prepare(struct sqlite3 *db, struct rows *rows,
                                    struct sqlite3_stmt **insert, struct error *err);

#endif
