// Records put straight into the tables of a store, for tests that need to know every
// one of them.  Without ledgers: such a store does not balance.
#pragma once

#include <stdint.h>

#include "common/core/record/record.h"

struct sqlite3;
struct sqlite3_stmt;

// The id of a name, made where it is new.  Ends the test where that fails, as all here.
uint32_t rows_name(struct sqlite3 *db, const char *text);

// Adds a run of that host, heard of until `heard_ns`, with UUID
// 000000RR-0000-4000-8000-000000000000 (its number in hexadecimal).
void rows_run(struct sqlite3 *db, int64_t run, const char *host, int64_t started_ns,
              int64_t heard_ns);

// Adds a record, whose names are ids of rows_name, and returns its number: that of
// the row.
int64_t rows_add(struct sqlite3 *db, int64_t run, const struct record *record);

// Adds the description of a device, of one byte; `uuid` NULL: it has none.
void rows_device(struct sqlite3 *db, int64_t run, int64_t started_ns, uint32_t name,
                 const char *uuid);

// The statement that adds records of the kind, for many of them; and its use, with the number of
// the record, which is that of the row.
struct sqlite3_stmt *rows_prepare(struct sqlite3 *db, enum record_kind kind);
void rows_insert(struct sqlite3_stmt *stmt, int64_t id, int64_t run, const struct record *record);

// Runs statements.
void rows_exec(struct sqlite3 *db, const char *sql);
