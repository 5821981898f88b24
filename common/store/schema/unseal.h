// Migration step for sealed segments (compressed blocks of old rows in stores of schema versions 6
// to 8; seal_decoder.h): moves their rows back into tables.  Called by schema_migrate.
#ifndef INFERSTAT_STORE_SCHEMA_UNSEAL_H
#define INFERSTAT_STORE_SCHEMA_UNSEAL_H

#include "common/core/base/error.h"

struct sqlite3;

// Moves the rows of all segments in the table `sealed`, if it exists, back into their kind's table,
// under their former ids.  One transaction per segment: a killed migration continues at the next
// call.
//
// A damaged segment is deleted and logged as an error, with the count of its records and their
// period; the audit reports these records as missing.
MUST_CHECK enum status unseal(struct sqlite3 *db, struct error *err);

#endif
