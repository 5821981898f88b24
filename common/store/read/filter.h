// SQL generator for filters: turns a query's filter into WHERE conditions.  Texts of the filter are
// only bound as parameters; they are never part of the SQL (no injection).
#pragma once

#include <stdbool.h>

#include "common/core/base/error.h"
#include "common/core/query/query.h"

struct sqlite3;
struct sqlite3_stmt;
struct sqlite3_str;

// True if records of the kind have all dimensions (host, model, ...) of the filter: records without
// a model never match a filter by model.  If false, `*missing` is the dimension that they lack.
bool filter_applies(enum record_kind kind, const struct query_filter *filter,
                    enum query_dimension *missing);

// Returns STATUS_INVALID if filter_applies is false.  For queries of one kind.
MUST_CHECK enum status filter_check(enum record_kind kind, const struct query_filter *filter,
                                    struct error *err);

// Calls filter_check, and checks that the kind has the dimensions that the query groups by.
MUST_CHECK enum status filter_check_query(enum record_kind kind, const struct query *query,
                                          struct error *err);

// Appends " WHERE ..." for a row `t` of the kind's table; " WHERE 1" if the filter is empty.  A
// record is in the window if the window contains its started_ns; a run, if the window overlaps its
// lifetime (started_ns to heard_ns).  Dimensions that the kind lacks are ignored.
void filter_where(struct sqlite3_str *sql, enum record_kind kind,
                  const struct query_filter *filter);

// Appends " WHERE ..." for a row `t` of the table run.  In addition to filter_where, the run must
// have used the names of the filter's model, device, operation, stage, workload and source in some
// record.
void filter_where_run_of(struct sqlite3_str *sql, const struct query_filter *filter);

// Appends " = ..." or " IN ..." for a column with the id of a name: what the filter's text of
// `dimension` stands for.
void filter_append_name(struct sqlite3_str *sql, const struct query_filter *filter,
                        enum query_dimension dimension);

// Binds the filter's texts and times to the conditions' parameters.  The filter is borrowed
// until the statement is reset.
void filter_bind(struct sqlite3_stmt *stmt, const struct query_filter *filter);

// Consumes `sql` (freed even on failure), prepares it and binds the filter (may be NULL).
MUST_CHECK enum status filter_prepare(struct sqlite3 *db, struct sqlite3_stmt **out,
                                      struct sqlite3_str *sql, const struct query_filter *filter,
                                      struct error *err);

// The same, and runs the statement, which returns no rows.
MUST_CHECK enum status filter_run(struct sqlite3 *db, struct sqlite3_str *sql,
                                  const struct query_filter *filter, struct error *err);
