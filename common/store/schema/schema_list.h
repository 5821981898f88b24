// Schema introspection: lists the columns of a store's tables and views.  Used to generate
// documentation.
#ifndef INFERSTAT_STORE_SCHEMA_SCHEMA_LIST_H
#define INFERSTAT_STORE_SCHEMA_SCHEMA_LIST_H

#include <stdbool.h>

#include "common/core/base/error.h"

// A column; its texts are borrowed until the callback returns.
struct schema_column {
    const char *table; // table or view
    const char *name;
    const char *type; // "INTEGER"; "": any
    bool is_view;
    bool is_first;    // first column of its table
    bool may_be_null; // known for tables only
    int key;          // position in the primary key, from 1; 0: none
};

typedef enum status on_schema_column(void *context, const struct schema_column *column,
                                     struct error *err);

// Creates a new store in memory and calls `callback` for each column of each table, then of each
// view, in order of creation.  Stops at the callback's first error and returns it.
MUST_CHECK enum status schema_each_column(on_schema_column *callback, void *context,
                                          struct error *err);

#endif
