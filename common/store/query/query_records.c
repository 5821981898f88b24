// RECORDS: rows of one kind as people read them, newest (or oldest) first.

#include <sqlite3.h>

#include "common/store/read/filter.h"
#include "common/store/read/reader.h"
#include "common/store/schema/schema_select.h"
#include "common/store/query/query_list.h"
#include "common/store/read/answer_cells.h"
#include "common/store/read/session.h"

// An answer ends early beyond so many bytes of text, so that it fits a message.
enum { TEXT_BYTES_MAX = 4 * 1024 * 1024 };

// Rows on their way into an answer.  Behind the listed columns each row has its
// id: where a listing goes on.
struct listing {
    struct result *answer;
    unsigned columns;
    uint32_t limit;
    uint64_t text_bytes;
    int64_t last_id;
    bool more;
};

static enum status on_record(void *context, sqlite3_stmt *row, struct error *err)
{
    struct listing *listing = context;
    if (result_row_count(listing->answer) >= listing->limit ||
        listing->text_bytes > TEXT_BYTES_MAX) {
        listing->more = true;
        return STATUS_CANCELLED;
    }
    answer_row(listing->answer);
    enum status status = STATUS_OK;
    for (unsigned i = 0; i < listing->columns && status == STATUS_OK; i++) {
        status = answer_cell(listing->answer, i, row, (int)i, err);
        if (sqlite3_column_type(row, (int)i) == SQLITE_TEXT)
            listing->text_bytes += (uint64_t)sqlite3_column_bytes(row, (int)i);
    }
    listing->last_id = sqlite3_column_int64(row, (int)listing->columns);
    return status;
}

// A run's id is its number.
static const char *id_of(enum record_kind kind)
{
    return kind == RECORD_KIND_RUN ? "run" : "id";
}

// Restricts a listing to the newest record of each device, with the number of its runs.  The uuid
// tells devices of a host apart, where they have one: ordinals may differ between processes.
static void append_devices(sqlite3_str *sql, const struct query_filter *filter)
{
    sqlite3_str_appendall(sql,
                          " JOIN (SELECT t.id, max(t.started_ns), count(DISTINCT t.run) AS runs"
                          " FROM main.device t");
    filter_where(sql, RECORD_KIND_DEVICE, filter);
    sqlite3_str_appendall(sql, " GROUP BY (SELECT r.host FROM run r WHERE r.run = t.run), t.name,"
                               " coalesce(t.uuid, t.ordinal)) g ON g.id = t.id");
}

// Begins the answer and its statement: "SELECT list, id FROM KIND t".  `by_device` is the filter of
// a listing of devices by device, else NULL.
static enum status begin_listing(struct listing *listing, sqlite3_str *sql, enum record_kind kind,
                                 uint32_t limit, const struct query_filter *by_device,
                                 struct error *err)
{
    *listing =
        (struct listing){.limit = limit == 0 || limit > QUERY_ROWS_MAX ? QUERY_ROWS_MAX : limit};
    enum status status = answer_new(&listing->answer, NULL, 0, err);
    if (status != STATUS_OK)
        return status;
    sqlite3_str_appendall(sql, "SELECT ");
    if (schema_select_list(sql, kind, listing->answer) != STATUS_OK ||
        (by_device && result_add_column(listing->answer, "runs", UNIT_COUNT) != STATUS_OK))
        return error_no_memory(err, "store");
    listing->columns = result_column_count(listing->answer);
    sqlite3_str_appendf(sql, "%s, t.%s FROM main.\"%w\" t", by_device ? ", g.runs" : "",
                        id_of(kind), record_kind_info(kind)->name);
    if (by_device)
        append_devices(sql, by_device);
    return STATUS_OK;
}

static enum status run_listing(struct store *store, struct listing *listing, sqlite3_str *sql,
                               const struct query_filter *filter, struct result **out,
                               struct error *err)
{
    enum status status = reader_scan(store, sql, filter, on_record, listing, err);
    if (status == STATUS_OK || (status == STATUS_CANCELLED && listing->more))
        status = answer_check(listing->answer, err);
    if (status != STATUS_OK)
        return status;
    if (listing->more)
        result_set_next_cursor(listing->answer, (uint64_t)listing->last_id);
    *out = listing->answer;
    listing->answer = NULL;
    return STATUS_OK;
}

// Continues the listing after the row of the query's cursor, which may be gone by now.
static enum status append_cursor(sqlite3_str *sql, struct store *store, const struct query *query,
                                 struct error *err)
{
    const char *id = id_of(query->records.kind);
    const char *table = record_kind_info(query->records.kind)->name;
    int64_t rows = 0;
    if (query->cursor > INT64_MAX)
        return error_set(err, STATUS_INVALID, "query: no such cursor");
    sqlite3_str *count = sqlite3_str_new(store->db);
    sqlite3_str_appendf(count, "SELECT count(*) FROM main.\"%w\" t WHERE t.%s = %lld", table, id,
                        (long long)query->cursor);
    enum status status = reader_scan(store, count, NULL, reader_on_integer, &rows, err);
    if (status == STATUS_OK && rows == 0)
        status =
            error_set(err, STATUS_INVALID,
                      "query: the listing cannot continue, its last row was cleared (start again)");
    sqlite3_str_appendf(sql,
                        " AND (t.started_ns, t.%s) %s (SELECT c.started_ns, c.%s FROM main.\"%w\" c"
                        " WHERE c.%s = %lld)",
                        id, query->records.oldest_first ? ">" : "<", id, table, id,
                        (long long)query->cursor);
    return status;
}

static void append_order(sqlite3_str *sql, const struct query *query)
{
    const char *order = query->records.oldest_first ? "ASC" : "DESC";
    sqlite3_str_appendf(sql, " ORDER BY t.started_ns %s, t.%s %s", order,
                        id_of(query->records.kind), order);
}

// Where a listing is empty since its records have expired, that is said.
static enum status say_expired(struct store *store, const struct query *query, struct result **out,
                               struct error *err)
{
    int64_t until_ns = 0;
    enum status status =
        expiry_info_until(store, query->records.kind, &query->filter, &until_ns, err);
    if (status == STATUS_OK && until_ns != 0)
        status = expiry_info_error(until_ns, err);
    if (status != STATUS_OK) {
        result_free(*out);
        *out = NULL;
    }
    return status;
}

// Runs can be filtered by the names that they used, such as of a model.
static enum status check_filter(const struct query *query, struct error *err)
{
    struct query_filter filter = query->filter;
    for (unsigned i = 0; i < QUERY_DIMENSION_COUNT && query->records.kind == RECORD_KIND_RUN; i++)
        if (!query_dimension_is_number((enum query_dimension)i))
            filter.by[i][0] = '\0';
    return filter_check(query->records.kind, &filter, err);
}

static void append_filter(sqlite3_str *sql, const struct query *query)
{
    if (query->records.kind == RECORD_KIND_RUN)
        filter_where_run_of(sql, &query->filter);
    else
        filter_where(sql, query->records.kind, &query->filter);
}

enum status query_records(struct store *store, const struct query *query, struct result **out,
                          struct error *err)
{
    enum status status = check_filter(query, err);
    if (status != STATUS_OK)
        return status;
    struct listing listing;
    sqlite3_str *sql = sqlite3_str_new(store->db);
    const bool is_by_device = query->records.kind == RECORD_KIND_DEVICE &&
                              query->group_count == 1 && query->group_by[0] == QUERY_BY_DEVICE;
    status = begin_listing(&listing, sql, query->records.kind, query->limit,
                           is_by_device ? &query->filter : NULL, err);
    append_filter(sql, query);
    if (status == STATUS_OK && query->cursor != 0)
        status = append_cursor(sql, store, query, err);
    append_order(sql, query);
    // One row beyond the limit tells whether there are more.
    sqlite3_str_appendf(sql, " LIMIT %lld", (long long)listing.limit + 1);
    if (status == STATUS_OK)
        status = run_listing(store, &listing, sql, &query->filter, out, err);
    else
        sqlite3_free(sqlite3_str_finish(sql));
    result_free(listing.answer);
    if (status == STATUS_OK && query->cursor == 0 && result_row_count(*out) == 0)
        status = say_expired(store, query, out, err);
    return status;
}

enum status store_records_between(struct store *store, enum record_kind kind, int64_t first,
                                  int64_t last, uint32_t limit, struct result **out,
                                  struct error *err)
{
    struct listing listing;
    sqlite3_str *sql = sqlite3_str_new(store->db);
    enum status status = begin_listing(&listing, sql, kind, limit, NULL, err);
    sqlite3_str_appendf(sql, " WHERE t.rowid BETWEEN %lld AND %lld ORDER BY t.rowid",
                        (long long)first, (long long)last);
    if (status == STATUS_OK)
        status = run_listing(store, &listing, sql, NULL, out, err);
    else
        sqlite3_free(sqlite3_str_finish(sql));
    result_free(listing.answer);
    return status;
}

enum status store_last_id(struct store *store, enum record_kind kind, int64_t *out,
                          struct error *err)
{
    sqlite3_str *sql = sqlite3_str_new(store->db);
    sqlite3_str_appendf(sql, "SELECT coalesce(max(rowid), 0) FROM \"%w\"",
                        record_kind_info(kind)->name);
    *out = 0;
    return reader_scan(store, sql, NULL, reader_on_integer, out, err);
}
