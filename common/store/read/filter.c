#include "common/store/read/filter.h"

#include <string.h>

#include <sqlite3.h>

#include "common/store/sqlite/database.h"
#include "common/store/schema/schema_select.h"

static const char *const parameters[QUERY_DIMENSION_COUNT] = {
#define PARAMETER(name, text) [QUERY_BY_##name] = ":" text,
    QUERY_DIMENSIONS(PARAMETER)
#undef PARAMETER
};

bool filter_applies(enum record_kind kind, const struct query_filter *filter,
                    enum query_dimension *missing)
{
    for (unsigned i = 0; i < QUERY_DIMENSION_COUNT; i++) {
        *missing = (enum query_dimension)i;
        if (filter->by[i][0] && !schema_dimension(kind, *missing))
            return false;
    }
    return true;
}

enum status filter_check(enum record_kind kind, const struct query_filter *filter,
                         struct error *err)
{
    enum query_dimension missing;
    if (filter_applies(kind, filter, &missing))
        return STATUS_OK;
    return error_set(err, STATUS_INVALID, "records of kind %s have no %s to filter by",
                     record_kind_info(kind)->name, query_dimension_name(missing));
}

enum status filter_check_query(enum record_kind kind, const struct query *query, struct error *err)
{
    for (unsigned i = 0; i < query->group_count; i++)
        if (!schema_dimension(kind, query->group_by[i]))
            return error_set(err, STATUS_INVALID, "records of kind %s have no %s to group by",
                             record_kind_info(kind)->name,
                             query_dimension_name(query->group_by[i]));
    return filter_check(kind, &query->filter, err);
}

void filter_append_name(sqlite3_str *sql, const struct query_filter *filter,
                        enum query_dimension dimension)
{
    const char *parameter = parameters[dimension];
    if (query_is_pattern(filter->by[dimension]))
        sqlite3_str_appendf(sql,
                            " IN (SELECT n.id FROM main.name n WHERE n.text = %s OR (n.text GLOB %s"
                            " AND NOT EXISTS (SELECT 1 FROM main.name e WHERE e.text = %s)))",
                            parameter, parameter, parameter);
    else
        sqlite3_str_appendf(sql, " = (SELECT n.id FROM main.name n WHERE n.text = %s)", parameter);
}

// Runs by UUID or its first characters, numbers as they are; the rest by name.
static void append_condition(sqlite3_str *sql, const struct query_filter *filter,
                             enum query_dimension dimension, const char *of)
{
    if (dimension == QUERY_BY_RUN) {
        sqlite3_str_appendf(sql,
                            " AND %s IN (SELECT r.run FROM run r"
                            " WHERE substr(r.uuid, 1, length(:run)) = lower(:run))",
                            of);
    } else if (query_dimension_is_number(dimension)) {
        sqlite3_str_appendf(sql, " AND %s = %s", of, parameters[dimension]);
    } else {
        const bool is_host = dimension == QUERY_BY_HOST;
        sqlite3_str_appendf(sql, " AND %s",
                            is_host ? "t.run IN (SELECT r.run FROM run r WHERE r.host" : of);
        filter_append_name(sql, filter, dimension);
        sqlite3_str_appendall(sql, is_host ? ")" : "");
    }
}

static void append_window(sqlite3_str *sql, enum record_kind kind,
                          const struct query_filter *filter)
{
    if (filter->since_ns)
        sqlite3_str_appendf(sql, " AND t.%s >= :since",
                            kind == RECORD_KIND_RUN ? "heard_ns" : "started_ns");
    if (filter->until_ns)
        sqlite3_str_appendall(sql, " AND t.started_ns < :until");
}

void filter_where(sqlite3_str *sql, enum record_kind kind, const struct query_filter *filter)
{
    sqlite3_str_appendall(sql, " WHERE 1");
    for (unsigned i = 0; i < QUERY_DIMENSION_COUNT; i++) {
        const enum query_dimension dimension = (enum query_dimension)i;
        const char *of = schema_dimension(kind, dimension);
        if (filter->by[i][0] && of)
            append_condition(sql, filter, dimension, of);
    }
    // The status is computed; this is not, and an index has the failed requests.
    if (kind == RECORD_KIND_INFERENCE && strcmp(filter->by[QUERY_BY_STATUS], "error") == 0)
        sqlite3_str_appendf(sql, " AND t.finish = %d", RECORD_FINISH_ERROR);
    append_window(sql, kind, filter);
}

void filter_where_run_of(sqlite3_str *sql, const struct query_filter *filter)
{
    // What describes these, for runs whose names are not kept: of imports of before.
    static const char *const described[QUERY_DIMENSION_COUNT] = {
        [QUERY_BY_MODEL] = "model",
        [QUERY_BY_DEVICE] = "device",
    };
    filter_where(sql, RECORD_KIND_RUN, filter);
    for (unsigned i = 0; i < QUERY_DIMENSION_COUNT; i++) {
        if (!filter->by[i][0] || i == QUERY_BY_HOST || i == QUERY_BY_RUN ||
            query_dimension_is_number((enum query_dimension)i))
            continue;
        sqlite3_str_appendall(sql, " AND (EXISTS (SELECT 1 FROM run_name m WHERE m.run = t.run"
                                   " AND m.name");
        filter_append_name(sql, filter, (enum query_dimension)i);
        sqlite3_str_appendall(sql, ")");
        if (described[i]) {
            sqlite3_str_appendf(sql, " OR t.run IN (SELECT d.run FROM %s d WHERE d.name",
                                described[i]);
            filter_append_name(sql, filter, (enum query_dimension)i);
            sqlite3_str_appendall(sql, ")");
        }
        sqlite3_str_appendall(sql, ")");
    }
}

void filter_bind(sqlite3_stmt *stmt, const struct query_filter *filter)
{
    for (unsigned i = 0; i < QUERY_DIMENSION_COUNT; i++) {
        const int place = sqlite3_bind_parameter_index(stmt, parameters[i]);
        const enum query_dimension dimension = (enum query_dimension)i;
        if (place > 0 && query_dimension_is_number(dimension))
            (void)sqlite3_bind_int64(stmt, place, query_dimension_number(dimension, filter->by[i]));
        else if (place > 0)
            (void)sqlite3_bind_text(stmt, place, filter->by[i], -1, SQLITE_STATIC);
    }
    const int since = sqlite3_bind_parameter_index(stmt, ":since");
    const int until = sqlite3_bind_parameter_index(stmt, ":until");
    if (since > 0)
        (void)sqlite3_bind_int64(stmt, since, filter->since_ns);
    if (until > 0)
        (void)sqlite3_bind_int64(stmt, until, filter->until_ns);
}

enum status filter_prepare(sqlite3 *db, sqlite3_stmt **out, sqlite3_str *sql,
                           const struct query_filter *filter, struct error *err)
{
    enum status status = database_prepare_built(db, out, sql, false, err);
    if (status == STATUS_OK && filter)
        filter_bind(*out, filter);
    return status;
}

enum status filter_run(sqlite3 *db, sqlite3_str *sql, const struct query_filter *filter,
                       struct error *err)
{
    sqlite3_stmt *stmt = NULL;
    enum status status = filter_prepare(db, &stmt, sql, filter, err);
    if (status == STATUS_OK)
        status = database_run(db, stmt, err);
    (void)sqlite3_finalize(stmt);
    return status;
}
