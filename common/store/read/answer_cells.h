// Query result builder: creates a result with named columns and sets cells from values and rows.
#ifndef INFERSTAT_STORE_READ_ANSWER_CELLS_H
#define INFERSTAT_STORE_READ_ANSWER_CELLS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/core/base/unit.h"
#include "common/core/query/query.h"
#include "common/core/query/result.h"

struct sqlite3_stmt;
struct store;

struct answer_column {
    const char *key;
    enum unit unit;
};

// Creates a result with these columns and no rows.
MUST_CHECK enum status answer_new(struct result **out, const struct answer_column *columns,
                                  unsigned count, struct error *err);

// STATUS_NOMEM if there was no memory for all that the functions below have added; to be called at
// the end.  store_query does so for its answers.
MUST_CHECK enum status answer_check(const struct result *answer, struct error *err);

// Adds a row of nulls.
void answer_row(struct result *answer);

// Set a cell of the last row; `key` must be one of the columns.
void answer_int(struct result *answer, const char *key, int64_t value);
void answer_real(struct result *answer, const char *key, double value); // NaN: null
void answer_text(struct result *answer, const char *key, const char *text);

void answer_value(struct result *answer, const char *key, struct value value);

// Copies a column of the statement's current row into a cell; null stays null.
MUST_CHECK enum status answer_cell(struct result *answer, unsigned column, struct sqlite3_stmt *row,
                                   int place, struct error *err);

// Copies each column of a row into the last row's cell of the same name; callback for reader_scan.
MUST_CHECK enum status answer_on_row(void *answer, struct sqlite3_stmt *row, struct error *err);

// Sets a cell to the text of a name id or to a run's UUID; GROUP_KEY_NONE and unknown ids stay
// null.
MUST_CHECK enum status answer_name(struct store *store, struct result *answer, unsigned column,
                                   int64_t id, struct error *err);
MUST_CHECK enum status answer_run(struct store *store, struct result *answer, unsigned column,
                                  int64_t run, struct error *err);

// Writes the text of a name id, cut to fit; "" for unknown ids.  False if it was cut.
bool answer_name_text(struct store *store, int64_t id, char text[QUERY_TEXT_SIZE]);

// Sets the cell of a grouping key: a run's UUID, a status's word, else the text of a name id.
MUST_CHECK enum status answer_key(struct store *store, struct result *answer, unsigned column,
                                  enum query_dimension dimension, int64_t key, struct error *err);

#endif
