// SQL generator for filters: turns a query's filter into WHERE conditions.  Texts of the filter are
// only bound as parameters, never part of the SQL.
#ifndef INFERSTAT_STORE_READ_FILTER_H
#define INFERSTAT_STORE_READ_FILTER_H

#include <stdbool.h>

#include "common/core/base/error.h"
#include "common/core/query/query.h"

struct sqlite3;
struct sqlite3_stmt;
struct sqlite3_str;

// Whether records of the kind can match: a kind without models never matches a filter by model.  If
// not, `*missing` is that dimension.
bool filter_applies(enum record_kind kind, const struct query_filter *filter,
                    enum query_dimension *missing);

// The same check, as an error; for queries of one kind.
MUST_CHECK enum status filter_check(enum record_kind kind, const struct query_filter *filter,
                                    struct error *err);

// The same; also checks that the kind has the dimensions that the query groups by.
MUST_CHECK enum status filter_check_query(enum record_kind kind, const struct query *query,
                                          struct error *err);

// Appends " WHERE ..." over a row `t` of the kind, at least " WHERE 1".  A run matches a window
// that overlaps its lifetime (started_ns to heard_ns); any other record a window that contains its
// started_ns.
void filter_where(struct sqlite3_str *sql, enum record_kind kind,
                  const struct query_filter *filter);

// The same over a row `t` of the table run; also requires that the run uses the names of the
// filter's model, device, operation and stage.
void filter_where_run_of(struct sqlite3_str *sql, const struct query_filter *filter);

// Binds the filter's texts and times; the filter is borrowed until the statement is reset.
void filter_bind(struct sqlite3_stmt *stmt, const struct query_filter *filter);

// Consumes `sql` (freed even on failure), prepares it and binds the filter.
MUST_CHECK enum status filter_prepare(struct sqlite3 *db, struct sqlite3_stmt **out,
                                      struct sqlite3_str *sql, const struct query_filter *filter,
                                      struct error *err);

#endif
