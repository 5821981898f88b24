// Row scans: runs SQL on an open store and calls a callback for each row.
#ifndef INFERSTAT_STORE_READ_READER_H
#define INFERSTAT_STORE_READ_READER_H

#include <stdint.h>

#include "common/core/base/error.h"
#include "common/core/query/query.h"
#include "common/store/rollup/aggregate.h"

struct sqlite3_stmt;
struct sqlite3_str;
struct store;

// Callback for each row of a scan, on which the statement is positioned; a status other than
// STATUS_OK ends the scan and is returned.
typedef enum status row_callback(void *context, struct sqlite3_stmt *row, struct error *err);

// Callback for queries of one integer: sets the int64_t at `context` to the first column, unless it
// is null.
row_callback reader_on_integer;

// Runs `sql`, which it frees (also on failure), with the filter's parameters bound, and calls
// `callback` for each row.
MUST_CHECK enum status reader_scan(struct store *store, struct sqlite3_str *sql,
                                   const struct query_filter *filter, row_callback *callback,
                                   void *context, struct error *err);

// The same with integers for the parameters $1, $2, ... (at most READER_NUMBERS_MAX); `filter` may
// be NULL.
enum { READER_NUMBERS_MAX = 6 };
MUST_CHECK enum status reader_scan_with(struct store *store, struct sqlite3_str *sql,
                                        const struct query_filter *filter, const int64_t *numbers,
                                        unsigned count, row_callback *callback, void *context,
                                        struct error *err);

// Like groups_find; also sets the error's message.
MUST_CHECK enum status reader_group(struct groups *groups, const int64_t *keys, struct group **out,
                                    struct error *err);

// Memory limit of all sketches of one answer; a sketch usually takes 4 KB.
enum { QUANTILE_BYTES_MAX = 64 * 1024 * 1024 };

// STATUS_FULL if the sketches of an answer exceed that limit.
MUST_CHECK enum status reader_budget(const struct sketch_budget *budget, struct error *err);

// Adds the two columns of a derived metric (schema_select.h), unless one is null.
void ratio_add_columns(struct ratio *ratio, struct sqlite3_stmt *row, int place);

#endif
