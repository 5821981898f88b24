// ERRORS: failed requests, loads and operations, counted by the pattern of their error's text.
#include <string.h>

#include <sqlite3.h>

#include "common/core/base/text.h"
#include "common/core/base/text_pattern.h"
#include "common/store/query/query_list.h"
#include "common/store/read/answer_cells.h"
#include "common/store/read/filter.h"
#include "common/store/read/reader.h"
#include "common/store/read/session.h"
#include "common/store/schema/schema_select.h"

enum {
    FAILURES_MAX = 100000, // of a kind that are read: the newest
    ROWS_USUAL = 100,
    ROWS_MAX = 1000,
    TEXT_MAX = 255, // bytes of a text that are looked at
};

// The kinds whose records can fail.  Each condition is that of a partial index on started_ns.
static const struct source {
    enum record_kind kind;
    const char *index, *failed;
} sources[] = {
    {RECORD_KIND_INFERENCE, "inference_failed", "t.finish = 3"},
    {RECORD_KIND_LOAD, "load_failed", "t.status = 1"},
    {RECORD_KIND_OPERATION, "operation_failed", "t.error IS NOT NULL"},
};
enum { SOURCES = sizeof sources / sizeof *sources };

_Static_assert(RECORD_FINISH_ERROR == 3 && RECORD_STATUS_ERROR == 1, "what has failed");

// The answer has the dimensions before these.
static const struct answer_column figures[] = {
    {"kind", UNIT_NONE},    {"error", UNIT_NONE},   {"count", UNIT_COUNT}, {"first_ns", UNIT_TIME},
    {"last_ns", UNIT_TIME}, {"example", UNIT_NONE}, {"note", UNIT_NONE},
};
enum { FIGURE_COUNT = sizeof figures / sizeof *figures };

// ---- The statement ---------------------------------------------------------------------

// Writes the pattern of a row's text and returns its length.
static size_t read_pattern(char pattern[TEXT_MAX + 1], const char *text, int size)
{
    return text_pattern(pattern, text, text_cut(text, (size_t)size, TEXT_MAX));
}

// SQL function error_hash(error): the hash of the text's pattern (FNV-1a); null for null.  Texts
// with equal hashes count as one.
static void on_hash(sqlite3_context *context, int count, sqlite3_value **values)
{
    (void)count;
    char pattern[TEXT_MAX + 1];
    const char *text = (const char *)sqlite3_value_text(values[0]);
    if (!text)
        return;
    const size_t size = read_pattern(pattern, text, sqlite3_value_bytes(values[0]));
    sqlite3_result_int64(context, (int64_t)(text_hash(pattern, size) >> 1));
}

static void append_failures(sqlite3_str *sql, const struct source *source,
                            const struct query *query)
{
    sqlite3_str_appendf(sql,
                        "SELECT * FROM (SELECT %d AS kind, error_hash(t.error) AS hash,"
                        " t.started_ns AS at, t.id AS id",
                        source->kind);
    for (unsigned i = 0; i < query->group_count; i++) {
        const char *dimension = schema_dimension(source->kind, query->group_by[i]);
        sqlite3_str_appendf(sql, ", %s AS k%u", dimension ? dimension : "NULL", i);
    }
    sqlite3_str_appendf(sql, " FROM %s t INDEXED BY %s", record_kind_info(source->kind)->name,
                        source->index);
    filter_where(sql, source->kind, &query->filter);
    sqlite3_str_appendf(sql, " AND %s ORDER BY t.started_ns DESC LIMIT %d)", source->failed,
                        FAILURES_MAX);
}

// Columns: kind, text that arrived last, count, first and last time, the count of the kind that has
// most, dimensions.  Texts are read of rows of the answer only: others need no memory for them.  A
// row of kind null has what is beyond the limit.
static void append_all(sqlite3_str *sql, const struct query *query)
{
    const uint32_t wanted = query->limit > 0 ? query->limit : ROWS_USUAL;
    const unsigned most = wanted < ROWS_MAX ? wanted : ROWS_MAX;
    const char *between = "WITH failed AS (";
    enum query_dimension missing;
    for (unsigned i = 0; i < SOURCES; i++) {
        // Records without a model match no filter by model.
        if (!filter_applies(sources[i].kind, &query->filter, &missing))
            continue;
        sqlite3_str_appendall(sql, between);
        append_failures(sql, &sources[i], query);
        between = " UNION ALL ";
    }
    char keys[QUERY_DIMENSION_COUNT * 8 + 1] = "";
    for (unsigned i = 0; i < query->group_count; i++)
        (void)sqlite3_snprintf(8, keys + strlen(keys), ", k%u", i);
    sqlite3_str_appendf(
        sql,
        "), counted AS MATERIALIZED (SELECT kind, hash, count(*) AS n, min(at) AS first,"
        " max(at) AS last, max(id) AS id%s FROM failed GROUP BY kind, hash%s),"
        " ranked AS MATERIALIZED (SELECT *, row_number() OVER"
        " (ORDER BY n DESC, last DESC, kind, hash) AS place FROM counted)"
        " SELECT iif(place <= %u, kind, NULL), CASE WHEN place > %u THEN 'other'",
        keys, keys, most, most);
    for (unsigned i = 0; i < SOURCES; i++)
        sqlite3_str_appendf(sql,
                            " WHEN kind = %d THEN (SELECT t.error FROM %s t WHERE t.id = r.id)",
                            sources[i].kind, record_kind_info(sources[i].kind)->name);
    sqlite3_str_appendf(sql,
                        " END, sum(n), min(first), max(last), (SELECT max(total) FROM"
                        " (SELECT sum(n) AS total FROM counted GROUP BY kind))%s FROM ranked r"
                        " GROUP BY min(place, %u) ORDER BY place",
                        keys, most + 1);
}

// ---- The answer ------------------------------------------------------------------------

struct listing {
    struct store *store;
    const struct query *query;
    struct result *answer;
    char note[EXPIRY_TEXT_SIZE + 80]; // what the counts lack; "": nothing
};

// Columns of a row.
enum { ROW_KIND, ROW_TEXT, ROW_COUNT, ROW_FIRST, ROW_LAST, ROW_LARGEST, ROW_KEYS };

static void write_note(struct listing *listing, int64_t largest)
{
    if (result_row_count(listing->answer) == 0 && largest >= FAILURES_MAX)
        (void)text_append(listing->note, sizeof listing->note, "; ",
                          "only the newest %d failures of each kind are counted", FAILURES_MAX);
}

static enum status on_row(void *context, sqlite3_stmt *row, struct error *err)
{
    struct listing *listing = context;
    struct result *answer = listing->answer;
    const unsigned keys = listing->query->group_count;
    const char *text = (const char *)sqlite3_column_text(row, ROW_TEXT);
    const bool is_rest = sqlite3_column_type(row, ROW_KIND) == SQLITE_NULL;
    char pattern[TEXT_MAX + 1];
    enum status status = STATUS_OK;
    write_note(listing, sqlite3_column_int64(row, ROW_LARGEST));
    answer_row(answer);
    for (unsigned i = 0; i < keys && status == STATUS_OK && !is_rest; i++)
        status = answer_key(listing->store, answer, i, listing->query->group_by[i],
                            reader_integer(row, ROW_KEYS + (int)i), err);
    if (!is_rest)
        answer_text(answer, "kind",
                    record_kind_info((enum record_kind)sqlite3_column_int(row, ROW_KIND))->name);
    if (text) {
        (void)read_pattern(pattern, text, sqlite3_column_bytes(row, ROW_TEXT));
        answer_text(answer, "error", pattern);
    }
    if (text && !is_rest)
        answer_text(answer, "example", text);
    answer_int(answer, "count", sqlite3_column_int64(row, ROW_COUNT));
    answer_int(answer, "first_ns", sqlite3_column_int64(row, ROW_FIRST));
    answer_int(answer, "last_ns", sqlite3_column_int64(row, ROW_LAST));
    if (listing->note[0])
        answer_text(answer, "note", listing->note);
    return status;
}

static enum status no_failures(struct error *err)
{
    return error_set(err, STATUS_NO_DATA, "no failures in the store that match");
}

// A dimension must be one of some kind that can fail; all that are found have the same status.
static enum status check(const struct query *query, struct error *err)
{
    for (unsigned d = 0; d < QUERY_DIMENSION_COUNT; d++) {
        const enum query_dimension dimension = (enum query_dimension)d;
        bool is_used = query->filter.by[d][0] != '\0', is_known = false;
        for (unsigned i = 0; i < query->group_count; i++)
            is_used = is_used || query->group_by[i] == dimension;
        for (unsigned i = 0; i < SOURCES; i++)
            is_known = is_known || schema_dimension(sources[i].kind, dimension);
        if (is_used && (!is_known || dimension == QUERY_BY_STATUS))
            return error_set(err, STATUS_INVALID, "errors have no %s",
                             query_dimension_name(dimension));
    }
    // No record has all dimensions of the filter: a model and an operation.
    enum query_dimension missing;
    bool applies = false;
    for (unsigned i = 0; i < SOURCES; i++)
        applies = applies || filter_applies(sources[i].kind, &query->filter, &missing);
    return applies ? STATUS_OK : no_failures(err);
}

// When the last of such records expired.
static enum status find_expired(struct store *store, const struct query *query, int64_t *out,
                                struct error *err)
{
    enum status status = STATUS_OK;
    for (unsigned i = 0; i < SOURCES && status == STATUS_OK; i++) {
        int64_t until_ns = 0;
        status = expiry_info_until(store, sources[i].kind, &query->filter, &until_ns, err);
        *out = until_ns > *out ? until_ns : *out;
    }
    return status;
}

enum status query_errors(struct store *store, const struct query *query, struct result **out,
                         struct error *err)
{
    struct listing listing = {.store = store, .query = query};
    int64_t expired_ns = 0;
    enum status status = check(query, err);
    if (status == STATUS_OK)
        status = find_expired(store, query, &expired_ns, err);
    if (status == STATUS_OK)
        status = answer_new_grouped(out, query, figures, FIGURE_COUNT, err);
    if (status != STATUS_OK)
        return status;
    listing.answer = *out;
    if (expired_ns)
        (void)expiry_info_text(listing.note, expired_ns);
    if (sqlite3_create_function(store->db, "error_hash", 1, SQLITE_UTF8, NULL, on_hash, NULL,
                                NULL) != SQLITE_OK)
        return error_no_memory(err, "errors");
    sqlite3_str *sql = sqlite3_str_new(store->db);
    append_all(sql, query);
    status = reader_scan(store, sql, &query->filter, on_row, &listing, err);
    if (status == STATUS_OK)
        status = answer_check(*out, err);
    if (status == STATUS_OK && result_row_count(*out) == 0)
        status = expired_ns ? expiry_info_error(expired_ns, err) : no_failures(err);
    return status;
}
