// A store in a folder of the test's, empty or with two runs of two hosts of which the second
// has lost records.
#pragma once

#include "common/core/query/query.h"
#include "common/core/query/result.h"
#include "common/core/record/record.h"
#include "tests/support/folder.h"

struct sqlite3;
struct store;

#define START_NS INT64_C(1790000000000000000) // when both runs began

extern char folder[FOLDER_PATH_SIZE];
extern char path[FOLDER_PATH_SIZE]; // of the store
extern struct sqlite3 *db;          // open for writing
extern struct store *store;         // open for reading

// An empty store, `db` alone; store_read opens `store`.
int store_make(void **state);
int store_read(void);

// A store with the two runs, both open.
int store_set_up(void **state);
int store_tear_down(void **state);

// None of these fails but by ending the test.
void exec(const char *sql);
void execf(const char *format, ...) __attribute__((format(printf, 1, 2)));
int64_t integer(const char *sql);
double store_number(const char *sql); // NaN where it is null

// Adds a run of no records, with UUID RRRRRRRR-0000-4000-8000-000000000000 (its number).
void store_run(int64_t run, int host, enum record_run_end end, int64_t started_ns,
               int64_t heard_ns);

// Inferences with random figures, some absent, some huge.
void store_add_inferences(unsigned count);

// A record of each other kind, of the first run.
void store_add_one_of_each(void);

struct result *ask(const struct query *query);

// For a query that fails so, with these words in its message.
void expect_error(const struct query *query, enum status expected, const char *words);

// Equal but for their last digits; NaN is as NaN.
void expect_close(double actual, double expected, const char *what);
void expect_same_cell(struct value a, struct value b, const char *what);

// The average of a metric, of all there is.
struct query store_average_of(const char *metric);
