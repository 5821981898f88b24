#include "common/store/read/latest_hint.h"

#include <sqlite3.h>

#include "common/store/read/filter.h"
#include "common/store/read/reader.h"
#include "common/store/rollup/rollup.h"
#include "common/store/read/session_state.h"

struct search {
    struct store *store;
    enum record_kind kind;
    const struct query_filter *filter;
    enum rollup_grouping grouping;
    int number; // of a metric that every record of the kind has
};

struct found {
    int64_t value;
    bool is_there;
};

static enum status take_value(void *context, sqlite3_stmt *row, struct error *err)
{
    (void)err;
    struct found *found = context;
    if (sqlite3_column_type(row, 0) != SQLITE_NULL)
        *found = (struct found){sqlite3_column_int64(row, 0), true};
    return STATUS_OK;
}

// The first metric whose values are never absent.
static int always_there(enum record_kind kind)
{
    unsigned count = 0;
    const struct query_metric *metrics = query_metrics(&count);
    const struct record_kind_info *info = record_kind_info(kind);
    for (unsigned i = 0; i < count; i++)
        if (metrics[i].kind == kind && metrics[i].column >= 0 &&
            !info->columns[metrics[i].column].maybe)
            return rollup_metric_number(&metrics[i]);
    return -1;
}

// The columns of the table series are named as the dimensions.
static void append_series(sqlite3_str *sql, const struct query_filter *filter)
{
    sqlite3_str_appendall(sql, " AND series IN (SELECT s.id FROM series s WHERE s.grouping = $2");
    for (unsigned i = 0; i < QUERY_DIMENSION_COUNT; i++)
        if (filter->by[i][0])
            sqlite3_str_appendf(sql, " AND s.%s = (SELECT n.id FROM name n WHERE n.text = :%s)",
                                query_dimension_name((enum query_dimension)i),
                                query_dimension_name((enum query_dimension)i));
    sqlite3_str_appendall(sql, ")");
}

// The start of the last bucket of a level between two times that has such records.
static enum status last_bucket(const struct search *search, enum rollup_level level,
                               int64_t first_ns, int64_t last_ns, struct found *found,
                               struct error *err)
{
    const int64_t of[] = {search->number, search->grouping, level, first_ns, last_ns};
    sqlite3_str *sql = sqlite3_str_new(search->store->db);
    sqlite3_str_appendall(sql, "SELECT started_ns FROM rollup WHERE metric = $1 AND grouping = $2"
                               " AND level = $3 AND started_ns BETWEEN $4 AND $5");
    append_series(sql, search->filter);
    sqlite3_str_appendall(sql, " ORDER BY started_ns DESC LIMIT 1");
    return reader_scan_with(search->store, sql, search->filter, of, sizeof of / sizeof *of,
                            take_value, found, err);
}

// Whether there is such a record at or behind a time and in the filter's window.
static enum status has_records(const struct search *search, int64_t since_ns, bool *has,
                               struct error *err)
{
    struct query_filter filter = *search->filter;
    filter.since_ns = since_ns;
    struct found found = {0};
    sqlite3_str *sql = sqlite3_str_new(search->store->db);
    sqlite3_str_appendf(sql, "SELECT t.started_ns FROM main.\"%w\" t",
                        record_kind_info(search->kind)->name);
    filter_where(sql, search->kind, &filter);
    sqlite3_str_appendall(sql, " ORDER BY t.started_ns DESC LIMIT 1");
    enum status status = reader_scan(search->store, sql, &filter, take_value, &found, err);
    *has = found.is_there;
    return status;
}

// The first start of a record that is in no rollup yet.
static enum status tail_start(const struct search *search, int64_t watermark, struct found *found,
                              struct error *err)
{
    const int64_t of[] = {watermark};
    sqlite3_str *sql = sqlite3_str_new(search->store->db);
    sqlite3_str_appendf(sql, "SELECT min(t.started_ns) FROM main.\"%w\" t WHERE t.id > $1",
                        record_kind_info(search->kind)->name);
    return reader_scan_bound(search->store, sql, of, 1, take_value, found, err);
}

// From the month to the minute: each level narrows what the one above has found.
static enum status narrow(const struct search *search, struct found *found, struct error *err)
{
    int64_t first_ns = INT64_MIN, last_ns = INT64_MAX;
    if (search->filter->until_ns)
        last_ns = search->filter->until_ns - 1;
    enum status status = STATUS_OK;
    for (unsigned level = ROLLUP_LEVEL_COUNT; level-- > 0 && status == STATUS_OK;) {
        struct found bucket = {0};
        status = last_bucket(search, (enum rollup_level)level, first_ns, last_ns, &bucket, err);
        if (status != STATUS_OK || !bucket.is_there)
            break;
        *found = bucket;
        first_ns = bucket.value;
    }
    return status;
}

enum status latest_hint_since(struct store *store, enum record_kind kind,
                              const struct query_filter *filter, int64_t *since_ns, bool *is_there,
                              struct error *err)
{
    struct query query = {.filter = *filter};
    struct search search = {
        .store = store, .kind = kind, .filter = filter, .number = always_there(kind)};
    struct found bucket = {0}, tail = {0}, watermark = {0};
    const int64_t of[] = {search.number};
    *since_ns = filter->since_ns;
    *is_there = true;
    if (search.number < 0 || !rollup_grouping_for(&search.grouping, &query))
        return STATUS_OK;
    // Nothing is known of the kind while rollups are made again (ROLLUP_CLEARED, ROLLUP_EXPIRING).
    sqlite3_str *sql = sqlite3_str_new(store->db);
    sqlite3_str_appendf(sql,
                        "SELECT watermark FROM rollup_state WHERE metric = $1 AND NOT EXISTS"
                        " (SELECT 1 FROM rollup_gap WHERE kind = %d AND why IN (%d, %d))",
                        (int)kind, ROLLUP_CLEARED, ROLLUP_EXPIRING);
    enum status status = reader_scan_bound(store, sql, of, 1, take_value, &watermark, err);
    if (status != STATUS_OK || watermark.value <= 0)
        return status;
    status = narrow(&search, &bucket, err);
    bool has = false;
    if (status == STATUS_OK && bucket.is_there && bucket.value > *since_ns)
        status = has_records(&search, bucket.value, &has, err);
    if (has)
        *since_ns = bucket.value;
    if (status != STATUS_OK || bucket.is_there)
        return status;
    status = tail_start(&search, watermark.value, &tail, err);
    *is_there = tail.is_there;
    if (tail.is_there && tail.value > *since_ns)
        *since_ns = tail.value;
    return status;
}
