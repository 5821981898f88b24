// A store with two runs of two hosts, the second of which has lost records: what tests
// of queries and of clearing begin with.
#ifndef INFERSTAT_TESTS_STORE_FIXTURE_H
#define INFERSTAT_TESTS_STORE_FIXTURE_H

#include "common/core/query/query.h"
#include "common/core/query/result.h"
#include "tests/support/folder.h"

struct sqlite3;
struct store;

#define START_NS INT64_C(1790000000000000000) // when both runs began

extern char folder[FOLDER_PATH_SIZE];
extern char path[FOLDER_PATH_SIZE]; // of the store
extern struct sqlite3 *db;          // open for writing
extern struct store *store;         // open for reading

// For cmocka.
int store_set_up(void **state);
int store_tear_down(void **state);

// None of these fails but by ending the test.
void store_exec(const char *sql);
double store_number(const char *sql); // NaN where it is null

// Inferences with random figures, some absent, some huge.
void store_add_inferences(unsigned count);

// A record of each other kind, of the first run.
void store_add_one_of_each(void);

struct result *store_ask(const struct query *query);

// For a query that fails so, with these words in its message.
void store_expect_error(const struct query *query, enum status expected, const char *words);

// Equal but for their last digits; NaN is as NaN.
void store_expect_close(double actual, double expected, const char *what);

// The average of a metric, of all there is.
struct query store_average_of(const char *metric);

#endif
