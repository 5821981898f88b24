// The rows of a batch as SQLite sees a table: a virtual table a kind on the
// writer's connection, so that one INSERT ... SELECT takes a whole table of a
// batch straight from the columns as they lie in the message, and its cursors
// stay where the last row went.  Writer thread only.
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

// What the virtual table of a kind shows while its statement runs; borrowed.
struct rows {
    enum record_kind kind;
    const struct wire_table *table; // NULL: nothing
    size_t first_row;               // rows before it are left out
    int64_t first_id;               // of that row; ids follow each other
    int64_t run;
    uint32_t stream;
    int64_t received_ns;
    const int64_t *names; // [i]: the store's id of the run's name i + 1
};

// Makes the virtual table of rows->kind, which shows `*rows` as it is when the
// statement runs, and prepares the statement that inserts them all into the kind's
// table.  A row that fails ends it; those before it are the transaction's to undo.
MUST_CHECK enum status rows_prepare(struct sqlite3 *db, struct rows *rows,
                                    struct sqlite3_stmt **insert, struct error *err);

#endif
