#include "common/store/read/reader.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <sqlite3.h>

#include "common/core/base/parse.h"
#include "common/core/base/saturate.h"
#include "common/core/base/text.h"
#include "common/store/sqlite/database.h"
#include "common/store/read/filter.h"
#include "common/store/read/session.h"
#include "common/sys/clock.h"

#define SECOND_NS INT64_C(1000000000)
#define CLOCKS_NS (60 * SECOND_NS) // what a client's clock may differ by

static void bind_numbers(sqlite3_stmt *stmt, const int64_t *numbers, unsigned count)
{
    static const char *const names[READER_NUMBERS_MAX] = {"$1", "$2", "$3", "$4", "$5", "$6", "$7"};
    assert(count <= READER_NUMBERS_MAX);
    for (unsigned i = 0; i < count; i++)
        (void)sqlite3_bind_int64(stmt, sqlite3_bind_parameter_index(stmt, names[i]), numbers[i]);
}

enum status reader_scan_with(struct store *store, sqlite3_str *sql,
                             const struct query_filter *filter, const int64_t *numbers,
                             unsigned count, row_callback *callback, void *context,
                             struct error *err)
{
    sqlite3_stmt *stmt = NULL;
    enum status status = statement_cache_acquire(&store->statements, store->db, sql, &stmt, err);
    if (status != STATUS_OK)
        return status;
    if (filter)
        filter_bind(stmt, filter);
    bind_numbers(stmt, numbers, count);
    while (database_step(store->db, stmt, &status, err))
        status = callback(context, stmt, err);
    statement_cache_release(&store->statements, stmt);
    return status;
}

enum status reader_scan(struct store *store, sqlite3_str *sql, const struct query_filter *filter,
                        row_callback *callback, void *context, struct error *err)
{
    return reader_scan_with(store, sql, filter, NULL, 0, callback, context, err);
}

int64_t reader_integer(sqlite3_stmt *row, int place)
{
    return sqlite3_column_type(row, place) == SQLITE_NULL ? GROUP_KEY_NONE
                                                          : sqlite3_column_int64(row, place);
}

double reader_real(struct sqlite3_stmt *row, int place)
{
    return sqlite3_column_type(row, place) == SQLITE_NULL ? (double)NAN
                                                          : sqlite3_column_double(row, place);
}

void reader_copy_text(char *out, size_t size, struct sqlite3_stmt *row, int place)
{
    (void)text_copy(out, size, (const char *)sqlite3_column_text(row, place));
}

enum status reader_on_integer(void *context, sqlite3_stmt *row, struct error *err)
{
    (void)err;
    int64_t *out = context;
    if (sqlite3_column_type(row, 0) != SQLITE_NULL)
        *out = sqlite3_column_int64(row, 0);
    return STATUS_OK;
}

enum status reader_as_of(struct store *store, int64_t *out, struct error *err)
{
    int64_t heard_ns = 0;
    *out = clock_wall_ns();
    if (store->is_live)
        return STATUS_OK;
    sqlite3_str *sql = sqlite3_str_new(store->db);
    // The runs of a bundle keep when they were last heard; one that began later is not of it.
    sqlite3_str_appendf(sql,
                        "SELECT min(max(heard_ns), iif(%s > (SELECT started_ns FROM main.run"
                        " ORDER BY run DESC LIMIT 1), %s, max(heard_ns))) FROM main.run",
                        READER_BUNDLE_UNTIL, READER_BUNDLE_UNTIL);
    enum status status = reader_scan(store, sql, NULL, reader_on_integer, &heard_ns, err);
    if (heard_ns < *out)
        *out = heard_ns;
    return status;
}

// A run is silent after 10 s without a message.
const char *reader_runs(const struct query_filter *filter)
{
    return filter->until_ns == 0
               ? "main.run"
               : "(SELECT run, host, owner, device_count, started_ns, ended_ns, heard_ns,"
                 " iif(received_ns < :until, received_ns, started_ns) AS received_ns,"
                 " iif(went_on, 0, \"end\") AS \"end\","
                 " iif(went_on, (SELECT 'load' FROM main.load l WHERE l.run = r.run"
                 "   AND l.started_ns < :until AND l.started_ns + l.duration_ns > :until),"
                 "  last_activity) AS last_activity"
                 " FROM (SELECT *, \"end\" = 0 OR coalesce(ended_ns, heard_ns + 10000000000)"
                 "   >= :until AS went_on FROM main.run WHERE started_ns < :until) r)";
}

int64_t reader_window_ns(int64_t since_ns, int64_t as_of_ns, int64_t most_ns)
{
    const int64_t until_ns = since_ns <= as_of_ns ? as_of_ns : clock_wall_ns();
    const int64_t length_ns =
        saturate_add(saturate_add(until_ns, -since_ns), SECOND_NS / 2) / SECOND_NS * SECOND_NS;
    if (length_ns > most_ns + CLOCKS_NS)
        return 0;
    return length_ns < most_ns ? length_ns : most_ns;
}

// What a pattern may stand for: a name may be that of a host, and another one that of a model.
static const char *const names_of[QUERY_DIMENSION_COUNT] = {
    [QUERY_BY_HOST] = "SELECT host FROM main.run",
    [QUERY_BY_MODEL] = "SELECT model FROM main.series UNION SELECT name FROM main.model"
                       " UNION SELECT model FROM main.load",
    [QUERY_BY_DEVICE] = "SELECT device FROM main.series UNION SELECT name FROM main.device",
};

struct found_name {
    unsigned count;
    int64_t id;
};

static enum status on_name(void *context, sqlite3_stmt *row, struct error *err)
{
    struct found_name *found = context;
    (void)err;
    *found = (struct found_name){found->count + 1, sqlite3_column_int64(row, 0)};
    return STATUS_OK;
}

enum status reader_name(struct store *store, const struct query_filter *filter,
                        enum query_dimension dimension, int64_t *out, struct error *err)
{
    struct found_name found = {.count = 0};
    sqlite3_str *sql = sqlite3_str_new(store->db);
    sqlite3_str_appendall(sql, "SELECT id FROM main.name WHERE id");
    filter_append_name(sql, filter, dimension);
    if (query_is_pattern(filter->by[dimension]) && names_of[dimension])
        sqlite3_str_appendf(sql, " AND id IN (%s)", names_of[dimension]);
    enum status status = reader_scan(store, sql, filter, on_name, &found, err);
    if (status == STATUS_OK && found.count > 1)
        return error_set(err, STATUS_INVALID, "several %ss match: give one",
                         query_dimension_name(dimension));
    if (found.count == 1)
        *out = found.id;
    return status;
}

enum status reader_is_named(struct store *store, const struct query_filter *filter,
                            enum query_dimension dimension, int64_t id, bool *out,
                            struct error *err)
{
    int64_t count = 0;
    sqlite3_str *sql = sqlite3_str_new(store->db);
    sqlite3_str_appendall(sql, "SELECT count(*) FROM main.name WHERE id = $1 AND id");
    filter_append_name(sql, filter, dimension);
    enum status status =
        reader_scan_with(store, sql, filter, &id, 1, reader_on_integer, &count, err);
    *out = count > 0;
    return status;
}

enum { NAMES_MAX = 1000 }; // among which a nearest name is looked for

enum status reader_unknown_name(sqlite3 *db, const char *sql, const char *what, const char *name,
                                const char *hint, struct error *err)
{
    char *names[NAMES_MAX];
    unsigned count = 0;
    sqlite3_stmt *stmt = NULL;
    enum status status = database_prepare(db, &stmt, sql, false, err);
    if (status != STATUS_OK)
        return status;
    while (count < NAMES_MAX && sqlite3_step(stmt) == SQLITE_ROW) {
        const char *text = (const char *)sqlite3_column_text(stmt, 0);
        names[count] = text ? strdup(text) : NULL;
        count += names[count] != NULL;
    }
    (void)sqlite3_finalize(stmt);
    const char *nearest = parse_nearest(name, (const char *const *)names, count);
    status =
        error_set(err, STATUS_NO_DATA, "no %s is called \"%s\" (%s%s%s)", what, name,
                  nearest ? "did you mean " : hint, nearest ? nearest : "", nearest ? "?" : "");
    while (count > 0)
        free(names[--count]);
    return status;
}

enum status reader_too_many_groups(struct error *err)
{
    return error_set(err, STATUS_FULL,
                     "store: the answer has more than %d groups"
                     " (narrow it with --since or a filter, or group by less)",
                     GROUPS_MAX);
}

enum status reader_group(struct groups *groups, const int64_t *keys, struct group **out,
                         struct error *err)
{
    enum status status = groups_find(groups, keys, out);
    if (status == STATUS_FULL)
        return reader_too_many_groups(err);
    return status == STATUS_OK ? status : error_no_memory(err, "store");
}

enum status reader_budget(const struct sketch_budget *budget, struct error *err)
{
    if (!budget->spent)
        return STATUS_OK;
    return error_set(err, STATUS_FULL,
                     "store: the answer's quantiles take more than %d MiB of memory"
                     " (narrow it with --since or a filter, or group by less)",
                     QUANTILE_BYTES_MAX / (1024 * 1024));
}

void ratio_add_columns(struct ratio *ratio, sqlite3_stmt *row, int place)
{
    if (sqlite3_column_type(row, place) == SQLITE_NULL ||
        sqlite3_column_type(row, place + 1) == SQLITE_NULL)
        return;
    ratio_add(ratio, sqlite3_column_double(row, place), sqlite3_column_double(row, place + 1));
}

// ---- Expired records ---------------------------------------------------------------------

// A run of the window that lost none of the kind to expiry has all that it had.
enum status expiry_info_until(struct store *store, enum record_kind kind,
                              const struct query_filter *filter, int64_t *until_ns,
                              struct error *err)
{
    const int64_t numbers[] = {kind, filter->since_ns};
    *until_ns = 0;
    sqlite3_str *sql = sqlite3_str_new(store->db);
    sqlite3_str_appendall(sql, "SELECT e.until_ns FROM expiry e WHERE e.kind = $1"
                               " AND e.until_ns > $2 AND EXISTS (SELECT 1 FROM run t");
    filter_where(sql, RECORD_KIND_RUN, filter);
    sqlite3_str_appendall(sql, " AND EXISTS (SELECT 1 FROM ledger l WHERE l.run = t.run"
                               " AND l.kind = $1 AND l.expired > 0))");
    return reader_scan_with(store, sql, filter, numbers, sizeof numbers / sizeof *numbers,
                            reader_on_integer, until_ns, err);
}

const char *expiry_info_text(char text[EXPIRY_TEXT_SIZE], int64_t until_ns)
{
    return text_from_time(text, EXPIRY_TEXT_SIZE, "records before %Y-%m-%d %H:%M UTC have expired",
                          until_ns);
}

enum status expiry_info_error(int64_t until_ns, struct error *err)
{
    char text[EXPIRY_TEXT_SIZE];
    (void)error_set(err, STATUS_NO_DATA, "%s", expiry_info_text(text, until_ns));
    if (err)
        err->expired_ns = until_ns;
    return STATUS_NO_DATA;
}
