// What the queries share: the open store, scans over rows, cells by key.
#ifndef INFERSTAT_STORE_READER_H
#define INFERSTAT_STORE_READER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/core/delivery/delivery.h"
#include "common/core/query/query.h"
#include "common/core/query/result.h"
#include "common/core/record/record.h"
#include "common/store/aggregate.h"
#include "common/store/statements.h"
#include "common/store/store.h"

struct sqlite3;
struct sqlite3_stmt;
struct sqlite3_str;

struct store {
    struct sqlite3 *db;
    struct sqlite3_stmt *name; // SELECT text FROM name WHERE id = ?
    struct sqlite3_stmt *uuid; // SELECT uuid FROM run WHERE run = ?
    struct statements statements;
    char *path;
    char *warning; // or NULL
    uint64_t budget_ns;
    int64_t log_limit;     // bytes that the log may grow by during a query; 0: any
    int64_t log_before;    // its bytes when the running query began
    uint64_t deadline_ns;  // of the running query; 0: none
    atomic_bool cancelled; // publishes nothing else
};

// Whether the running query has taken all its time, for loops that are not SQLite's.
bool store_is_over_budget(const struct store *store);

// What is done with one state of the store, and leaves its product in `*out`; freed by
// whoever fails.
typedef enum status reader_work(struct store *store, const struct query *query, void *out,
                                struct error *err);

// Checks the query and does the work in a transaction, within the store's budget.
MUST_CHECK enum status reader_run(struct store *store, reader_work *work, const struct query *query,
                                  void *out, struct error *err);

// Called for each row of a scan.  The statement is positioned on it; anything but
// STATUS_OK ends the scan.
typedef enum status row_take(void *context, struct sqlite3_stmt *row, struct error *err);

// Runs `sql` (taken apart, also when out of memory) with the filter's parameters
// bound and hands over its rows.
MUST_CHECK enum status reader_scan(struct store *store, struct sqlite3_str *sql,
                                   const struct query_filter *filter, row_take *take, void *context,
                                   struct error *err);

// The same with numbers for the parameters $1, $2, ... (at most READER_NUMBERS_MAX),
// without a filter and with one.
enum { READER_NUMBERS_MAX = 6 };
MUST_CHECK enum status reader_scan_bound(struct store *store, struct sqlite3_str *sql,
                                         const int64_t *numbers, unsigned count, row_take *take,
                                         void *context, struct error *err);
MUST_CHECK enum status reader_scan_with(struct store *store, struct sqlite3_str *sql,
                                        const struct query_filter *filter, const int64_t *numbers,
                                        unsigned count, row_take *take, void *context,
                                        struct error *err);

// ---- Answers -----------------------------------------------------------------

struct answer_column {
    const char *key;
    enum unit unit;
};

// A result with those columns, and no rows.
MUST_CHECK enum status answer_new(struct result **out, const struct answer_column *columns,
                                  unsigned count, struct error *err);

// Cells of the last row by key, which must be one of the columns.
void answer_int(struct result *answer, const char *key, int64_t value);
void answer_real(struct result *answer, const char *key, double value); // NaN: null
MUST_CHECK enum status answer_text(struct result *answer, const char *key, const char *text,
                                   struct error *err);

// Copies a cell of a row; null stays null.
MUST_CHECK enum status answer_cell(struct result *answer, unsigned column, struct sqlite3_stmt *row,
                                   int place, struct error *err);

// Sets a cell to the text of a name's id or a run's id; GROUP_KEY_NONE and
// unknown ids stay null.
MUST_CHECK enum status answer_name(struct store *store, struct result *answer, unsigned column,
                                   int64_t id, struct error *err);
MUST_CHECK enum status answer_run(struct store *store, struct result *answer, unsigned column,
                                  int64_t run, struct error *err);

// The group of those keys, as groups_find; what fails is said in words.
MUST_CHECK enum status reader_group(struct groups *groups, const int64_t *keys, struct group **out,
                                    struct error *err);

// What the quantiles of one answer may take: 16 KB a group, where 4 KB is usual.
enum { QUANTILE_BYTES_MAX = 64 * 1024 * 1024 };

// STATUS_FULL, in words, where an answer's quantiles want more memory than that.
MUST_CHECK enum status reader_budget(const struct sketch_budget *budget, struct error *err);

// ---- The queries ------------------------------------------------------------------

typedef enum status store_answer(struct store *store, const struct query *query,
                                 struct result **out, struct error *err);

store_answer query_ping;
store_answer query_summary;
store_answer query_average;
store_answer query_overview;
store_answer query_records;
store_answer query_audit;
store_answer query_baselines;
store_answer query_compare;
store_answer query_slowest;
store_answer query_stages;
store_answer query_fleet;

// Counts the two columns of a derived metric (schema_select.h), where both are present.
void ratio_add_columns(struct ratio *ratio, struct sqlite3_stmt *row, int place);

#endif
