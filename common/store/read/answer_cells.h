// Query result builder: creates a result (a table of cells; result.h) with named columns, and sets
// cells from values and SQL rows.  Used by all query handlers.  An answer is the result of a query.
// Functions that set a cell set it in the last row; answer_row adds a row.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/core/base/unit.h"
#include "common/core/query/query.h"
#include "common/core/query/result.h"

struct sqlite3_stmt;
struct store;

// A column of a result: its name, and the unit of its values.
struct answer_column {
    const char *key;
    enum unit unit;
};

// Creates a result with these columns and no rows.
MUST_CHECK enum status answer_new(struct result **out, const struct answer_column *columns,
                                  unsigned count, struct error *err);

// Creates one with a column for each dimension that the query groups by, then `figures` (at most
// ANSWER_FIGURES_MAX).
enum { ANSWER_FIGURES_MAX = 24 };
MUST_CHECK enum status answer_new_grouped(struct result **out, const struct query *query,
                                          const struct answer_column *figures, unsigned count,
                                          struct error *err);

// Returns STATUS_NOMEM if a function below lacked memory; those without a status do not report it
// themselves.  To be called at the end; store_query does so for its answers.
MUST_CHECK enum status answer_check(const struct result *answer, struct error *err);

// Adds a row of nulls.
void answer_row(struct result *answer);

// Set a cell of the last row; `key` must be the name of a column.  A null `value` sets nothing.
void answer_int(struct result *answer, const char *key, int64_t value);
void answer_real(struct result *answer, const char *key, double value); // NaN: null
void answer_text(struct result *answer, const char *key, const char *text);
void answer_value(struct result *answer, const char *key, struct value value);

// Copies the SQL column at index `place`, from 0, of the current row of `row` into the last row's
// cell at index `column`; null stays null.
MUST_CHECK enum status answer_cell(struct result *answer, unsigned column, struct sqlite3_stmt *row,
                                   int place, struct error *err);

// Row callback for reader_scan, with a struct result as context: copies each SQL column into the
// last row's cell of the same name.  It adds no row: if the scan has several rows, later values
// replace earlier ones.
MUST_CHECK enum status answer_on_row(void *answer, struct sqlite3_stmt *row, struct error *err);
// The same, into a row that it adds.
MUST_CHECK enum status answer_on_new_row(void *answer, struct sqlite3_stmt *row, struct error *err);

// Set the last row's cell at index `column` to the text of a name id, or to the UUID of a run.
// GROUP_KEY_NONE and unknown ids leave it null.
MUST_CHECK enum status answer_name(struct store *store, struct result *answer, unsigned column,
                                   int64_t id, struct error *err);
MUST_CHECK enum status answer_run(struct store *store, struct result *answer, unsigned column,
                                  int64_t run, struct error *err);

// Writes the text of a name id, cut to fit; "" for an unknown id.  False if it was cut.
bool answer_name_text(struct store *store, int64_t id, char text[QUERY_TEXT_SIZE]);

// Sets the last row's cell at index `column` from a grouping key (aggregate.h): a run's UUID, the
// word of a status, else the text of a name id.
MUST_CHECK enum status answer_key(struct store *store, struct result *answer, unsigned column,
                                  enum query_dimension dimension, int64_t key, struct error *err);
