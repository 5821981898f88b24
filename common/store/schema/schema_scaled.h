// Columns of device samples that are stored as integers of a larger unit.  There is a sample of
// each device a second, so their size counts: a real takes eight bytes, 57 % as 5700 takes two.
//
// The table stores such a column in one called NAME_stored: ratios in 1/10000, watts and joules in
// 1/1000, hertz in millions, bytes in KiB.  A value that is no whole number of them, or a real
// below 0, is stored as it is: a real, or the digits of an integer as text.  NAME itself is a
// generated column, which gives the same value as was inserted; it takes no space, and INSERT and
// UPDATE cannot name it.
#pragma once

#include <stdbool.h>

#include "common/core/record/record.h"

struct sqlite3_str;

// True if the kind's column is stored so.
bool schema_is_scaled(enum record_kind kind, const struct record_column *column);

// Appends the definitions of NAME_stored and NAME, for CREATE TABLE.
void schema_append_scaled(struct sqlite3_str *sql, const struct record_column *column);

// Appends the name of the column that INSERT names for the kind's column.
void schema_append_target(struct sqlite3_str *sql, enum record_kind kind,
                          const struct record_column *column);

// Appends the SQL expression to insert there, of one for the column's value.  A device whose memory
// is 0 does not tell it: NULL.
void schema_append_stored(struct sqlite3_str *sql, enum record_kind kind,
                          const struct record_column *column, const char *value);
