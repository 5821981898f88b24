// Incremental set hash of records: hashes each record's stream and number (its identity within a
// run), and adds up the hashes modulo 2^64.  The order does not matter.  To add or remove a record,
// add or subtract its hash.  The audit checks for each run that the set hash of the rows plus that
// of deleted rows (ledger.gone_sum, schema.h) is the set hash of all numbers that were stored.
#pragma once

#include <stdint.h>

#include "common/core/base/error.h"

struct sqlite3;

// The hash of one record.
uint64_t set_hash_of(int64_t stream, int64_t number);

// Converts a hash to the signed integer with the same bits, as SQLite stores it.
int64_t set_hash_signed(uint64_t bits);

// Registers two SQL functions: set_hash(stream, number), an aggregate function, and set_hash_add(a,
// b), the sum of two set hashes, which is NULL if an argument is.
MUST_CHECK enum status set_hash_register(struct sqlite3 *db, struct error *err);
