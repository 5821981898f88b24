// Row scans: runs SQL on an open store (session.h) and calls a callback for each row.  Also helpers
// of the callbacks: they find groups (values by key; aggregate.h), limit the memory for quantiles,
// and say until when records have expired.  Used by all query handlers.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/core/query/query.h"
#include "common/store/rollup/aggregate.h"
#include "common/core/record/record.h"

struct sqlite3;
struct sqlite3_stmt;
struct sqlite3_str;
struct store;

// Called for each row of a scan; `row` is the statement, positioned on that row.  A status other
// than STATUS_OK ends the scan, which returns it.
typedef enum status row_callback(void *context, struct sqlite3_stmt *row, struct error *err);

// Row callback for queries of one integer: sets the int64_t at `context` to the first column;
// leaves it unchanged if the column is null.
row_callback reader_on_integer;

// The SQL column at index `place` of the current row: an integer, GROUP_KEY_NONE if it is null; a
// number, NaN if it is null; and a text, cut to `size` bytes with its terminating NUL, "" if it is
// null.
int64_t reader_integer(struct sqlite3_stmt *row, int place);
double reader_real(struct sqlite3_stmt *row, int place);
void reader_copy_text(char *out, size_t size, struct sqlite3_stmt *row, int place);

// Binds the filter's parameters (filter.h), runs `sql`, and calls `callback` with `context` for
// each row.  Consumes `sql` (freed even on failure).
MUST_CHECK enum status reader_scan(struct store *store, struct sqlite3_str *sql,
                                   const struct query_filter *filter, row_callback *callback,
                                   void *context, struct error *err);

// Like reader_scan, and also binds the `count` integers at `numbers` (at most READER_NUMBERS_MAX)
// to the parameters $1, $2, ...  `filter` may be NULL.
enum { READER_NUMBERS_MAX = 7 };
MUST_CHECK enum status reader_scan_with(struct store *store, struct sqlite3_str *sql,
                                        const struct query_filter *filter, const int64_t *numbers,
                                        unsigned count, row_callback *callback, void *context,
                                        struct error *err);

// Sets `*out` to the time that counts as now: that of the clock, but of a store that no collector
// keeps up to date (store_set_live) that of its last message, or the end of a bundle, if earlier.
MUST_CHECK enum status reader_as_of(struct store *store, int64_t *out, struct error *err);

// SQL of the times from which on and before which a bundle has records; 0: of all times, or the
// store is no bundle.
#define READER_BUNDLE_SINCE READER_BUNDLE_TIME("since_ns")
#define READER_BUNDLE_UNTIL READER_BUNDLE_TIME("until_ns")
#define READER_BUNDLE_TIME(key)                                                                    \
    "coalesce((SELECT json_extract(value, '$." key "') FROM main.meta"                             \
    " WHERE key = 'bundle' AND json_valid(value)), 0)"

// SQL to read runs FROM: the table or, if the filter has an end, a subquery of the runs as they
// were at :until.  One that went on was open; what it did is not known, but for a load.
const char *reader_runs(const struct query_filter *filter);
#define READER_END(until_ns) ((until_ns) ? ":until" : "9223372036854775807") // SQL of the end

// The length in whole seconds of the window that begins at `since_ns` and ends at `as_of_ns` of
// reader_as_of; if it would begin after its end, as that of a file may, the time from `since_ns` to
// the clock's.  Cut to `most_ns` if that is less than a minute shorter.  Below 1: `since_ns` has
// not come yet, or the window is longer.
int64_t reader_window_ns(int64_t since_ns, int64_t as_of_ns, int64_t most_ns);

// Sets `*out` to the id of the name that the filter has for a dimension of names; leaves it if the
// store has no such name.  Returns STATUS_INVALID if a pattern stands for several names of the
// dimension.
MUST_CHECK enum status reader_name(struct store *store, const struct query_filter *filter,
                                   enum query_dimension dimension, int64_t *out, struct error *err);

// Sets `*out` to whether the name `id` is one that the filter has for the dimension.
MUST_CHECK enum status reader_is_named(struct store *store, const struct query_filter *filter,
                                       enum query_dimension dimension, int64_t id, bool *out,
                                       struct error *err);

// Calls groups_find (aggregate.h); if it fails, sets `err` to a message for the user.
MUST_CHECK enum status reader_group(struct groups *groups, const int64_t *keys, struct group **out,
                                    struct error *err);

// Sets `err`: the answer has more than GROUPS_MAX groups.  Returns STATUS_FULL.
enum status reader_too_many_groups(struct error *err);

// Memory limit for all quantile sketches (sketch.h) of one answer; the first `left` of their
// budget.
enum { QUANTILE_BYTES_MAX = 64 * 1024 * 1024 };

// Returns STATUS_FULL if the sketches have exceeded `budget`.
MUST_CHECK enum status reader_budget(const struct sketch_budget *budget, struct error *err);

// Adds one value of a derived metric: its numerator is the SQL column `place` of `row`, its
// denominator the next column (append_derived in schema_select.h).  Adds nothing if one is null.
void ratio_add_columns(struct ratio *ratio, struct sqlite3_stmt *row, int place);

// Returns STATUS_NO_DATA; `err` says that no `what` ("model") is called `name`, and suggests the
// nearest of the names that `sql` selects (of its first 1,000 rows); if none is near, it ends with
// `hint`.
enum status reader_unknown_name(struct sqlite3 *db, const char *sql, const char *what,
                                const char *name, const char *hint, struct error *err);

// ---- Expired records -----------------------------------------------------------------------
//
// Retention deletes records that started before some time: they have expired.  Queries report that
// time if it concerns their filter, since their answers may be incomplete before it.

// Sets `*until_ns` to the wall-clock time before which records of the kind have expired.  0 if that
// time is before the filter's window, or if no run that the filter covers has expired records.
MUST_CHECK enum status expiry_info_until(struct store *store, enum record_kind kind,
                                         const struct query_filter *filter, int64_t *until_ns,
                                         struct error *err);

// Writes and returns "records before 2026-03-28 12:00 UTC have expired".
enum { EXPIRY_TEXT_SIZE = 64 };
const char *expiry_info_text(char text[EXPIRY_TEXT_SIZE], int64_t until_ns);

// Sets the text of `err` as expiry_info_text does, and its expired_ns to `until_ns`; returns
// STATUS_NO_DATA.
enum status expiry_info_error(int64_t until_ns, struct error *err);
