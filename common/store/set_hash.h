// The fingerprint of a set of numbers: the sum, modulo 2^64, of a mix of each with
// its stream.  No order changes it, and what is taken out can be taken off.
#ifndef INFERSTAT_STORE_SET_HASH_H
#define INFERSTAT_STORE_SET_HASH_H

#include <stdint.h>

#include "common/core/base/error.h"

struct sqlite3;

// The fingerprint of one number.
uint64_t set_hash_of(int64_t stream, int64_t number);

// The same bits as the signed integer that SQLite keeps.
int64_t set_hash_signed(uint64_t bits);

// Gives a connection the functions fingerprint(stream, number), an aggregate, and
// fingerprint_add(a, b), which is NULL where one of them is.
MUST_CHECK enum status set_hash_register(struct sqlite3 *db, struct error *err);

#endif
