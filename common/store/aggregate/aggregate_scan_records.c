// The records that no rollup stands for, counted one by one.
#include <sqlite3.h>

#include "common/store/read/filter.h"
#include "common/store/aggregate/aggregate_scan_parts.h"
#include "common/store/schema/schema.h"
#include "common/store/schema/schema_select.h"
#include "common/store/read/reader.h"
#include "common/store/read/session.h"

// A reader of records; places of columns in its rows.
struct record_reader {
    struct aggregate_scan_state *state;
    bool is_tail;
    int64_t highest; // of the watermarks: what is above is the tail's alone
    int first_value;
    struct sketch *spans; // of a record of sketches
};

enum { PLACE_ID, PLACE_STARTED, PLACE_HOST, FIRST_KEY };

// A tail that is no longer is read whole, whatever the window.
enum { SHORT_TAIL = 4000 };

static enum status add_value(struct record_reader *reader, struct ratio *ratio,
                             const struct record_derived *derived, sqlite3_stmt *row, int place,
                             struct error *err)
{
    if (derived)
        ratio_add_columns(ratio, row, place);
    else if (sqlite3_column_type(row, place) == SQLITE_INTEGER)
        aggregate_add_int(&ratio->values, sqlite3_column_int64(row, place));
    else if (sqlite3_column_type(row, place) == SQLITE_FLOAT)
        aggregate_add_real(&ratio->values, sqlite3_column_double(row, place));
    else if (sqlite3_column_type(row, place) == SQLITE_BLOB) {
        if (!reader->spans && sketch_new(&reader->spans) != STATUS_OK)
            return error_no_memory(err, "store");
        const void *bytes = sqlite3_column_blob(row, place);
        aggregate_add_encoded(&ratio->values, reader->spans, bytes,
                              (size_t)sqlite3_column_bytes(row, place));
    }
    return STATUS_OK;
}

static enum status on_record(void *context, sqlite3_stmt *row, struct error *err)
{
    struct record_reader *reader = context;
    struct aggregate_scan_state *state = reader->state;
    struct aggregate_scan *scan = state->of;
    const int64_t id = sqlite3_column_int64(row, PLACE_ID);
    if (!reader->is_tail && id > reader->highest)
        return STATUS_OK;
    int64_t keys[QUERY_DIMENSION_COUNT];
    for (unsigned i = 0; i < scan->query->group_count; i++) {
        const int place = FIRST_KEY + (int)i;
        keys[i] = sqlite3_column_type(row, place) == SQLITE_NULL ? GROUP_KEY_NONE
                                                                 : sqlite3_column_int64(row, place);
    }
    struct ratio *ratios = NULL;
    const int64_t started_ns = sqlite3_column_int64(row, PLACE_STARTED);
    enum status status = aggregate_scan_find(scan, keys, started_ns, &ratios, err);
    if (status != STATUS_OK)
        return status;
    scan->rows++;
    aggregate_scan_see(scan, started_ns, started_ns);
    int place = reader->first_value;
    const int64_t host = sqlite3_column_int64(row, PLACE_HOST);
    for (unsigned i = 0; i < scan->metric_count && status == STATUS_OK; i++) {
        const struct record_derived *derived = scan->metrics[i].derived;
        if ((id > rollup_watermark_of(&state->watermark[i], host)) == reader->is_tail)
            status = add_value(reader, &ratios[i], derived, row, place, err);
        place += derived ? 2 : 1;
    }
    if (status != STATUS_OK)
        return status;
    return reader_budget(&scan->budget, err);
}

static void append_select(sqlite3_str *sql, const struct aggregate_scan_state *state)
{
    const struct aggregate_scan *scan = state->of;
    sqlite3_str_appendf(sql, "SELECT t.id, " SCHEMA_PLACED_TIME ", %s",
                        state->has_ahead ? schema_dimension(scan->kind, QUERY_BY_HOST) : "0");
    for (unsigned i = 0; i < scan->query->group_count; i++)
        sqlite3_str_appendf(sql, ", %s", schema_dimension(scan->kind, scan->query->group_by[i]));
    for (unsigned i = 0; i < scan->metric_count; i++) {
        const struct query_metric *metric = scan->metrics[i].metric;
        sqlite3_str_appendall(sql, ", ");
        if (scan->metrics[i].derived)
            append_derived(sql, scan->metrics[i].derived);
        else
            sqlite3_str_appendf(sql, "t.\"%w\"",
                                record_kind_info(scan->kind)->columns[metric->column].name);
    }
    sqlite3_str_appendf(sql, " FROM main.\"%w\" t", record_kind_info(scan->kind)->name);
}

// Appends the condition that a record counts from $1 to $2.  Records with implausible times count
// in the windows with SCHEMA_CLOCK_UNPLACED_NS, and no index finds them.  Once records have
// expired, those not in the tail are in rollups alone.
static bool append_time(sqlite3_str *sql, const struct record_reader *reader,
                        const struct rollup_span *span, bool by_id)
{
    if (span->first_ns <= SCHEMA_CLOCK_UNPLACED_NS && span->last_ns >= SCHEMA_CLOCK_UNPLACED_NS &&
        (reader->is_tail || reader->state->of->expired_ns <= SCHEMA_CLOCK_UNPLACED_NS)) {
        sqlite3_str_appendall(sql, " AND " SCHEMA_PLACED_TIME " BETWEEN $1 AND $2");
        return true;
    }
    // A plus keeps SQLite from finding rows by that.
    sqlite3_str_appendf(sql, " AND %st.started_ns BETWEEN $1 AND $2 AND " SCHEMA_IS_PLACED,
                        by_id ? "+" : "");
    return by_id;
}

// The records of a time; of the tail those with ids above `low`, found by time or by id.
// Of others ids are not asked for before the row is at hand: each asking of an index's
// entry costs as much as two columns.
static enum status scan_records(struct record_reader *reader, const struct rollup_span *span,
                                int64_t low, bool by_id, struct error *err)
{
    struct aggregate_scan_state *state = reader->state;
    const struct aggregate_scan *scan = state->of;
    struct query_filter filter = scan->query->filter;
    filter.since_ns = 0;
    filter.until_ns = 0;
    sqlite3_str *sql = sqlite3_str_new(state->store->db);
    append_select(sql, state);
    // Ids above a bound are few: better found by id than by run, of which there may be days of
    // samples.
    sqlite3_str_appendall(sql, reader->is_tail && by_id ? " NOT INDEXED" : "");
    filter_where(sql, scan->kind, &filter);
    if (scan->models != AGGREGATE_ALL)
        sqlite3_str_appendf(sql, " AND t.model IS %s",
                            scan->models == AGGREGATE_WITH_MODEL ? "NOT NULL" : "NULL");
    by_id = append_time(sql, reader, span, by_id);
    if (reader->is_tail)
        sqlite3_str_appendf(sql, " AND %st.id > $3", by_id ? "" : "+");
    const int64_t of[] = {span->first_ns, span->last_ns, low};
    return reader_scan_with(state->store, sql, &filter, of, reader->is_tail ? 3 : 2, on_record,
                            reader, err);
}

// Whether the records above an id are fewer than those of the window, about: neither
// is counted further than needed to know.
static enum status is_short_tail(struct aggregate_scan_state *state, int64_t low, bool *out,
                                 struct error *err)
{
    const struct aggregate_scan *scan = state->of;
    const char *name = record_kind_info(scan->kind)->name;
    *out = true;
    if (scan->window.first_ns == INT64_MIN && scan->window.last_ns == INT64_MAX)
        return STATUS_OK;
    int64_t last = 0, in_window = 0;
    sqlite3_str *sql = sqlite3_str_new(state->store->db);
    sqlite3_str_appendf(sql, "SELECT coalesce(max(id), 0) FROM \"%w\"", name);
    enum status status = reader_scan(state->store, sql, NULL, reader_on_integer, &last, err);
    const int64_t tail = last - (low > 0 ? low : 0);
    if (status != STATUS_OK || tail <= SHORT_TAIL)
        return status;
    const int64_t of[] = {scan->window.first_ns, scan->window.last_ns, tail / 4};
    sql = sqlite3_str_new(state->store->db);
    sqlite3_str_appendf(sql,
                        "SELECT count(*) FROM (SELECT 1 FROM \"%w\" WHERE started_ns"
                        " BETWEEN $1 AND $2 LIMIT $3)",
                        name);
    status = reader_scan_with(state->store, sql, NULL, of, 3, reader_on_integer, &in_window, err);
    *out = in_window >= tail / 4;
    return status;
}

enum status aggregate_scan_records(struct aggregate_scan_state *state, struct error *err)
{
    struct aggregate_scan *scan = state->of;
    struct record_reader reader = {.state = state,
                                   .first_value = FIRST_KEY + (int)scan->query->group_count};
    int64_t lowest = INT64_MAX;
    reader.highest = INT64_MIN;
    for (unsigned i = 0; i < scan->metric_count; i++) {
        const struct rollup_watermark *watermark = &state->watermark[i];
        const int64_t highest =
            watermark->ahead_host == INT64_MIN ? watermark->id : watermark->ahead_id;
        lowest = watermark->id < lowest ? watermark->id : lowest;
        reader.highest = highest > reader.highest ? highest : reader.highest;
    }
    enum status status = STATUS_OK;
    for (size_t i = 0; i < scan->plan.count && status == STATUS_OK; i++)
        if (scan->plan.pieces[i].is_raw)
            status = scan_records(&reader, &scan->plan.pieces[i].span, INT64_MIN, false, err);
    bool by_id = true;
    if (status == STATUS_OK)
        status = is_short_tail(state, lowest, &by_id, err);
    reader.is_tail = true;
    if (status == STATUS_OK)
        status = scan_records(&reader, &scan->window, lowest, by_id, err);
    sketch_free(reader.spans);
    return status;
}
