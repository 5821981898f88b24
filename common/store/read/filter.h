// A query's filter as conditions of SQL.  Texts of the filter are only ever
// bound as parameters: a model named like SQL is data.
#ifndef INFERSTAT_STORE_READ_FILTER_H
#define INFERSTAT_STORE_READ_FILTER_H

#include <stdbool.h>

#include "common/core/base/error.h"
#include "common/core/query/query.h"

struct sqlite3;
struct sqlite3_stmt;
struct sqlite3_str;

// Whether records of the kind can match at all: a kind without models has none
// that match a filter by model.  When not, `*missing` is that dimension.
bool filter_applies(enum record_kind kind, const struct query_filter *filter,
                    enum query_dimension *missing);

// The same as an error, for queries of one kind.
MUST_CHECK enum status filter_check(enum record_kind kind, const struct query_filter *filter,
                                    struct error *err);

// The same, and that its groups are of dimensions that the kind has.
MUST_CHECK enum status filter_check_query(enum record_kind kind, const struct query *query,
                                          struct error *err);

// Appends " WHERE ..." over a row `t` of the kind, always at least " WHERE 1".
// A run matches a window that overlaps its life (started_ns to heard_ns); any
// other record one that holds its started_ns.
void filter_where(struct sqlite3_str *sql, enum record_kind kind,
                  const struct query_filter *filter);

// Appends conditions on the run only (host, run, and a window overlapping its
// life) over a row `t` of the table run.
void filter_where_run(struct sqlite3_str *sql, const struct query_filter *filter);

// The same, and that the run has to do with the filter's model, device, operation and
// stage: it has named them.
void filter_where_run_of(struct sqlite3_str *sql, const struct query_filter *filter);

// Binds what those conditions refer to; the filter is borrowed until the
// statement is reset.
void filter_bind(struct sqlite3_stmt *stmt, const struct query_filter *filter);

// Consumes `sql` (freed even on failure), prepares it and binds the filter.
MUST_CHECK enum status filter_prepare(struct sqlite3 *db, struct sqlite3_stmt **out,
                                      struct sqlite3_str *sql, const struct query_filter *filter,
                                      struct error *err);

#endif
