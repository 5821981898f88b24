// Migration steps of record tables, called by schema_migrate.  schema_rebuild rewrites a table in
// the current column layout.  schema_allow_nulls makes columns optional, without a rewrite.  unseal
// unpacks sealed segments: compressed blocks of old rows in stores of schema versions 6 to 8
// (seal_decoder.h).
#pragma once

#include "common/core/base/error.h"
#include "common/core/record/record.h"

struct sqlite3;

// Replaces the kind's table by one with the layout of schema_append_table (schema_select.h): copies
// all rows by column name, then recreates the old table's indexes and triggers.  Views need not be
// recreated: they refer to the table by its name, which stays.  Returns STATUS_UNSUPPORTED if the
// old table has an unknown column, whose values would be lost.
//
// Runs within the caller's transaction.  SQLite's page cache bounds the memory use.  The
// write-ahead log grows by the table's size.  The file hardly grows, since copied rows are deleted
// and their pages reused; retention returns its free pages later.
MUST_CHECK enum status schema_rebuild(struct sqlite3 *db, enum record_kind kind, struct error *err);

// Removes NOT NULL from the columns of record tables that may be absent (MAYBE in record_table.h),
// where an older version has it.  No row is read or written.  Runs within the caller's transaction,
// which must make a view or table afterwards, so that other connections read the schema again.
MUST_CHECK enum status schema_allow_nulls(struct sqlite3 *db, struct error *err);

// Moves the rows of all segments in the table `sealed`, if it exists, back into the table inference
// under their former ids; no other kind was sealed.  One transaction per segment: a killed
// migration continues at the next call.
// A damaged segment is deleted; an error in the program's log has the count of its records and
// their period, and the audit reports them as missing.  Returns STATUS_UNSUPPORTED if the
// format of a segment is unknown.
MUST_CHECK enum status unseal(struct sqlite3 *db, struct error *err);
