// What tests of sealed rows share: a random store whose inferences are sealed, damaged,
// cleared and expire.
#ifndef INFERSTAT_TESTS_UNIT_SEALED_RIG_H
#define INFERSTAT_TESTS_UNIT_SEALED_RIG_H

#include "common/core/error.h"
#include "tests/unit/random_store.h"

enum { STORES = 5, SEGMENT_ROWS = 48 };

#define ALL_ROWS "SELECT * FROM inference ORDER BY id"
#define LEDGER   "SELECT run, kind, stored, expired, cleared, gone_sum FROM ledger ORDER BY 1, 2"

// An integer; fails the test where it fails.
int64_t ask(sqlite3 *of, const char *sql);

// A random store of inferences, of which most can be sealed, with ledgers.
void make_random(int64_t count);

// Seals all that can be, in segments of so many rows.
void seal_all(uint32_t rows);

int64_t segments(void);

// Makes a segment's bytes zeros; the rest of the segments is whole.
void damage(int64_t segment);

// All rows of a statement as a text, bit for bit; the caller's.
char *dump_sql(sqlite3 *of, const char *sql);

// Takes both texts apart.
void assert_same_text(char *a, char *b);

// Clears to the end; clear_both fails the test where that fails.
enum status clear_to_end(const struct query_filter *filter, struct error *err);
void clear_both(const struct query_filter *filter, sqlite3 *of);

// Lets all expire that may; the count of rows that went.
unsigned expire_all(sqlite3 *of, int64_t before_ns, int64_t last_id);

#endif
