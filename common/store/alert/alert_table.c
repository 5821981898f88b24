#include "common/store/alert/alert_table.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sqlite3.h>

#include "common/core/base/array.h"
#include "common/core/base/saturate.h"
#include "common/core/base/unit.h"
#include "common/store/alert/alert_config.h"
#include "common/store/alert/alert_queue.h"
#include "common/store/read/answer_cells.h"
#include "common/store/read/reader.h"
#include "common/store/read/session.h"
#include "common/store/sqlite/admin_log.h"
#include "common/store/sqlite/database.h"
#include "common/sys/clock.h"

#define SECOND_NS       INT64_C(1000000000)
#define SILENCE_KEPT_NS (90 * 86400 * SECOND_NS) // after its end
#define DISK_KEPT_NS    (32 * 86400 * SECOND_NS)
#define DISK_EVERY_NS   (55 * SECOND_NS)

// ---- Reading --------------------------------------------------------------------------

// The columns that alert_table_save binds, in this order, from 1.
enum {
    AT_ID,
    AT_STATE,
    AT_SEVERITY,
    AT_LOST,
    AT_STARTED,
    AT_FIRING,
    AT_RESOLVED,
    AT_STEPPED,
    AT_HELD,
    AT_CRITICAL_HELD,
    AT_GOOD,
    AT_LOST_FOR,
    AT_INTEGERS, // how many there are of these
    AT_VALUE = AT_INTEGERS,
    AT_THRESHOLD,
    AT_RULE,
    AT_GROUP,
    AT_UNIT = AT_GROUP + ALERT_GROUP_NAMES,
    AT_WHY,
};
#define COLUMNS                                                                                    \
    "id, state, severity, was_lost, started_ns, firing_ns, resolved_ns, stepped_ns,"               \
    " held_ns, critical_held_ns, good_ns, lost_ns, value, threshold, rule, model, host, device,"   \
    " unit, why"

static enum status on_row(void *context, sqlite3_stmt *row, struct error *err)
{
    struct alert_pass *pass = context;
    const int64_t state = sqlite3_column_int64(row, AT_STATE);
    if (!ARRAY_RESERVE(&pass->rows, &pass->room, pass->count + 1))
        return error_no_memory(err, "alerts");
    if (state <= ALERT_OK || state >= ALERT_RESOLVED)
        return STATUS_OK; // a damaged one
    struct alert_row *out = &pass->rows[pass->count++];
    *out = (struct alert_row){
        .id = sqlite3_column_int64(row, AT_ID),
        .series = {.state = (enum alert_state)state,
                   .severity = sqlite3_column_int64(row, AT_SEVERITY) == ALERT_CRITICAL
                                   ? ALERT_CRITICAL
                                   : ALERT_WARNING,
                   .was_lost = sqlite3_column_int64(row, AT_LOST) != 0,
                   .started_ns = sqlite3_column_int64(row, AT_STARTED),
                   .firing_ns = sqlite3_column_int64(row, AT_FIRING),
                   .stepped_ns = sqlite3_column_int64(row, AT_STEPPED),
                   .held_ns = sqlite3_column_int64(row, AT_HELD),
                   .critical_held_ns = sqlite3_column_int64(row, AT_CRITICAL_HELD),
                   .good_ns = sqlite3_column_int64(row, AT_GOOD),
                   .lost_ns = sqlite3_column_int64(row, AT_LOST_FOR),
                   .value = sqlite3_column_double(row, AT_VALUE)},
        .threshold = sqlite3_column_double(row, AT_THRESHOLD),
    };
    reader_copy_text(out->rule, sizeof out->rule, row, AT_RULE);
    for (int i = 0; i < ALERT_GROUP_NAMES; i++)
        reader_copy_text(out->group[i], sizeof out->group[i], row, AT_GROUP + i);
    reader_copy_text(out->why, sizeof out->why, row, AT_WHY);
    return STATUS_OK;
}

enum status alert_table_load(struct store *store, const struct query *query, void *out,
                             struct error *err)
{
    (void)query;
    sqlite3_str *sql = sqlite3_str_new(store->db);
    sqlite3_str_appendf(sql,
                        "SELECT " COLUMNS " FROM main.alert WHERE resolved_ns IS NULL"
                        " ORDER BY rule, coalesce(model, ''), coalesce(host, ''),"
                        " coalesce(device, '') LIMIT %d",
                        ALERT_OPEN_MAX);
    return reader_scan(store, sql, NULL, on_row, out, err);
}

void alert_pass_deinit(struct alert_pass *pass)
{
    free(pass->rows);
    *pass = (struct alert_pass){0};
}

// ---- Writing --------------------------------------------------------------------------

static enum status save_row(sqlite3 *db, sqlite3_stmt *save, const struct alert_row *row,
                            struct error *err)
{
    const struct alert_series *series = &row->series;
    const int64_t numbers[AT_INTEGERS] = {
        [AT_ID] = row->id,
        [AT_STATE] = series->state,
        [AT_SEVERITY] = series->severity,
        [AT_LOST] = series->was_lost,
        [AT_STARTED] = series->started_ns,
        [AT_FIRING] = series->firing_ns,
        [AT_RESOLVED] = series->resolved_ns,
        [AT_STEPPED] = series->stepped_ns,
        [AT_HELD] = series->held_ns,
        [AT_CRITICAL_HELD] = series->critical_held_ns,
        [AT_GOOD] = series->good_ns,
        [AT_LOST_FOR] = series->lost_ns,
    };
    database_bind(save, numbers, AT_INTEGERS);
    (void)sqlite3_bind_double(save, AT_VALUE + 1, series->value);
    (void)sqlite3_bind_double(save, AT_THRESHOLD + 1, row->threshold);
    (void)sqlite3_bind_text(save, AT_RULE + 1, row->rule, -1, SQLITE_STATIC);
    for (int i = 0; i < ALERT_GROUP_NAMES; i++)
        (void)sqlite3_bind_text(save, AT_GROUP + i + 1, row->group[i], -1, SQLITE_STATIC);
    (void)sqlite3_bind_text(save, AT_UNIT + 1, unit_name(row->unit), -1, SQLITE_STATIC);
    (void)sqlite3_bind_text(save, AT_WHY + 1, row->why, -1, SQLITE_STATIC);
    return database_run(db, save, err);
}

static enum status save_rows(sqlite3 *db, const struct alert_pass *pass, sqlite3_stmt *save,
                             bool *has_resolved, struct error *err)
{
    enum status status = STATUS_OK;
    for (size_t i = 0; i < pass->count && status == STATUS_OK; i++) {
        const struct alert_row *row = &pass->rows[i];
        if (row->series.state == ALERT_OK) {
            status =
                database_execf(db, err, "DELETE FROM alert WHERE id = %lld", (long long)row->id);
            continue;
        }
        status = save_row(db, save, row, err);
        *has_resolved |= row->series.resolved_ns != 0;
    }
    return status;
}

// A sample of the disk a minute, for as long as the longest window; none of a time to come.
static enum status save_disk(sqlite3 *db, const struct alert_pass *pass, struct error *err)
{
    const long long now_ns = pass->now_ns;
    return database_execf(db, err,
                          "DELETE FROM disk_sample WHERE at_ns < %lld OR at_ns > %lld;"
                          "INSERT INTO disk_sample SELECT %lld, %lld WHERE %d AND NOT EXISTS"
                          " (SELECT 1 FROM disk_sample WHERE at_ns > %lld)",
                          now_ns - DISK_KEPT_NS, now_ns, now_ns, (long long)pass->disk_free_bytes,
                          pass->disk_free_bytes != INT64_MAX, now_ns - DISK_EVERY_NS);
}

enum status alert_table_save(struct sqlite3 *db, const void *saved, struct error *err)
{
    const struct alert_pass *pass = saved;
    sqlite3_stmt *save = NULL;
    bool has_resolved = false;
    enum status status = database_prepare(
        db, &save,
        "INSERT INTO alert(" COLUMNS
        ", is_told) VALUES(nullif(?1, 0), ?2, ?3, ?4, ?5, nullif(?6, 0),"
        " nullif(?7, 0), ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, nullif(?16, ''), nullif(?17, ''),"
        " nullif(?18, ''), nullif(?19, ''), nullif(?20, ''), 0)"
        " ON CONFLICT(id) DO UPDATE SET state = ?2, severity = ?3, was_lost = max(?4, was_lost),"
        " started_ns = ?5, firing_ns = nullif(?6, 0), resolved_ns = nullif(?7, 0),"
        " stepped_ns = ?8, held_ns = ?9, critical_held_ns = ?10, good_ns = ?11, lost_ns = ?12,"
        " value = ?13, threshold = ?14, unit = nullif(?19, ''), why = nullif(?20, '')",
        false, err);
    if (status == STATUS_OK)
        status = save_rows(db, pass, save, &has_resolved, err);
    (void)sqlite3_finalize(save);
    if (status == STATUS_OK)
        status = alert_queue_tell(db, pass->now_ns, has_resolved, err);
    if (status == STATUS_OK)
        status = save_disk(db, pass, err);
    if (status == STATUS_OK)
        status = alert_config_save_health(db, pass, err);
    if (status == STATUS_OK)
        status = alert_queue_trim(db, pass->now_ns, pass->given_up, err);
    if (status != STATUS_OK)
        return status;
    return database_execf(db, err,
                          "DELETE FROM alert WHERE id <= (SELECT max(id) FROM alert) - %d"
                          " AND resolved_ns IS NOT NULL;"
                          "DELETE FROM alert_silence WHERE until_ns < %lld",
                          ALERT_HISTORY_ROWS, (long long)(pass->now_ns - SILENCE_KEPT_NS));
}

// ---- Edits ----------------------------------------------------------------------------

static enum status acknowledge(sqlite3 *db, const struct query *query, const char *actor,
                               int64_t now_ns, struct error *err)
{
    const bool is_ack = query->alert.edit == QUERY_ALERT_ACK;
    enum status status = database_execf(
        db, err,
        "UPDATE alert SET acknowledged_ns = iif(%d, %lld, NULL), acknowledged_by = iif(%d, %Q, "
        "NULL),"
        " acknowledged_text = iif(%d, %Q, NULL) WHERE id = %lld AND resolved_ns IS NULL",
        is_ack, (long long)now_ns, is_ack, actor, is_ack, query->alert.text,
        (long long)query->alert.id);
    if (status == STATUS_OK && sqlite3_changes(db) == 0)
        status =
            error_set(err, STATUS_NO_DATA, "no alert %lld is open", (long long)query->alert.id);
    return status;
}

static enum status silence(sqlite3 *db, const struct query *query, const char *actor,
                           int64_t now_ns, struct error *err)
{
    const char *rule = strcmp(query->alert.rule, "*") == 0 ? "" : query->alert.rule;
    int64_t count = 0;
    enum status status = database_integerf(
        db, &count, err, "SELECT count(*) FROM alert_silence WHERE until_ns > %lld",
        (long long)now_ns);
    if (status == STATUS_OK && count >= ALERT_SILENCES_MAX)
        status = error_set(err, STATUS_FULL, "there are %d silences already", ALERT_SILENCES_MAX);
    if (status == STATUS_OK && rule[0])
        status = alert_config_check_rule(db, rule, err);
    if (status != STATUS_OK)
        return status;
    return database_execf(db, err,
                          "INSERT INTO alert_silence(rule, model, host, device, since_ns, until_ns,"
                          " actor, text) VALUES(nullif(%Q, ''), nullif(%Q, ''), nullif(%Q, ''),"
                          " nullif(%Q, ''), %lld, %lld, %Q, %Q)",
                          rule, query->filter.by[QUERY_BY_MODEL], query->filter.by[QUERY_BY_HOST],
                          query->filter.by[QUERY_BY_DEVICE], (long long)now_ns,
                          (long long)saturate_add(now_ns, query->alert.for_ns), actor,
                          query->alert.text);
}

static enum status end_silence(sqlite3 *db, int64_t id, int64_t now_ns, struct error *err)
{
    enum status status = database_execf(
        db, err, "UPDATE alert_silence SET until_ns = %lld WHERE id = %lld AND until_ns > %lld",
        (long long)now_ns, (long long)id, (long long)now_ns);
    if (status == STATUS_OK && sqlite3_changes(db) == 0)
        status = error_set(err, STATUS_NO_DATA, "no silence %lld lasts", (long long)id);
    return status;
}

static enum status edit(sqlite3 *db, const struct query *query, const char *actor, int64_t now_ns,
                        struct error *err)
{
    if (query->alert.edit == QUERY_ALERT_SILENCE)
        return silence(db, query, actor, now_ns, err);
    if (query->alert.edit == QUERY_ALERT_UNSILENCE)
        return end_silence(db, query->alert.id, now_ns, err);
    return acknowledge(db, query, actor, now_ns, err);
}

enum status alert_table_edit(struct sqlite3 *db, const struct query *query, const char *actor,
                             struct result **out, struct error *err)
{
    static const struct answer_column columns[] = {{"id", UNIT_NONE}, {"until_ns", UNIT_TIME}};
    const int64_t now_ns = clock_wall_ns();
    const bool is_new = query->alert.edit == QUERY_ALERT_SILENCE;
    struct result *answer = NULL;
    enum status status = answer_new(&answer, columns, sizeof columns / sizeof *columns, err);
    if (status != STATUS_OK)
        return status;
    status = database_exec(db, "BEGIN IMMEDIATE", err);
    if (status == STATUS_OK) {
        status = edit(db, query, actor, now_ns, err);
        answer_row(answer);
        answer_int(answer, "id", is_new ? sqlite3_last_insert_rowid(db) : query->alert.id);
        if (is_new)
            answer_int(answer, "until_ns", saturate_add(now_ns, query->alert.for_ns));
        if (status == STATUS_OK)
            status = answer_check(answer, err);
        status = database_end(db, status, err);
    }
    if (status != STATUS_OK) {
        result_free(answer);
        return status;
    }
    *out = answer;
    return STATUS_OK;
}

static enum status change_file(struct store *store, struct sqlite3 *db, const struct query *query,
                               void *out, int64_t *rows, struct error *err)
{
    char actor[ADMIN_ACTOR_SIZE];
    (void)store;
    admin_act_set_user(actor, geteuid(), ", file");
    enum status status = alert_table_edit(db, query, actor, out, err);
    *rows = status == STATUS_OK;
    return status;
}

enum status alert_table_edit_file(const char *path, const struct query *query, struct result **out,
                                  struct error *err)
{
    return session_change_file(path, query, change_file, out, err);
}
