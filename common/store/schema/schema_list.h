// What a store's tables and views look like, for who describes them.
#ifndef INFERSTAT_STORE_SCHEMA_SCHEMA_LIST_H
#define INFERSTAT_STORE_SCHEMA_SCHEMA_LIST_H

#include <stdbool.h>

#include "common/core/base/error.h"

struct schema_column {
    const char *table; // or view
    const char *name;
    const char *type; // "INTEGER"; "" where it may be any
    const char *sql;  // the statement that makes the table or view
    bool is_view;
    bool is_first;    // of its table
    bool may_be_null; // of tables
    int key;          // place in the primary key, from 1; 0: none
};

typedef enum status schema_column_take(void *context, const struct schema_column *column,
                                       struct error *err);

// Makes a new store in memory and calls `take` for each column of each table, then of
// each view, in the order in which they are made.
MUST_CHECK enum status schema_each_column(schema_column_take *take, void *context,
                                          struct error *err);

#endif
