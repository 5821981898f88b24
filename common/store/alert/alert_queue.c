#include "common/store/alert/alert_queue.h"

#include <stdio.h>
#include <string.h>

#include <sqlite3.h>

#include "common/store/read/reader.h"
#include "common/store/read/session.h"
#include "common/store/sqlite/database.h"

static enum unit unit_of(sqlite3_stmt *row, int place)
{
    const char *text = (const char *)sqlite3_column_text(row, place);
    for (unsigned unit = 0; text && unit < UNIT_COUNT_OF; unit++)
        if (strcmp(text, unit_name((enum unit)unit)) == 0)
            return (enum unit)unit;
    return UNIT_NONE;
}

static enum alert_event event_of(sqlite3_stmt *row, int place)
{
    const char *text = (const char *)sqlite3_column_text(row, place);
    unsigned event = 0;
    while (text && event < ALERT_EVENT_COUNT - 1 &&
           strcmp(text, alert_event_text((enum alert_event)event)) != 0)
        event++;
    return (enum alert_event)event;
}

static enum status on_call(void *context, sqlite3_stmt *row, struct error *err)
{
    struct alert_call *call = context;
    struct alert_row *alert = &call->alert;
    const int64_t state = sqlite3_column_int64(row, 5);
    (void)err;
    *call = (struct alert_call){
        .id = sqlite3_column_int64(row, 0),
        .due_ns = sqlite3_column_int64(row, 1),
        .attempts = (unsigned)sqlite3_column_int64(row, 2),
        .event = event_of(row, 3),
        .alert = {
            .id = sqlite3_column_int64(row, 4),
            .series = {.state = state > 0 && state < ALERT_STATE_COUNT ? (enum alert_state)state
                                                                       : ALERT_FIRING,
                       .severity = sqlite3_column_int64(row, 6) == ALERT_CRITICAL ? ALERT_CRITICAL
                                                                                  : ALERT_WARNING,
                       .started_ns = sqlite3_column_int64(row, 7),
                       .firing_ns = sqlite3_column_int64(row, 8),
                       .resolved_ns = sqlite3_column_int64(row, 9),
                       .value = sqlite3_column_double(row, 10)},
            .threshold = sqlite3_column_double(row, 11),
            .unit = unit_of(row, 12),
        }};
    reader_copy_text(alert->rule, sizeof alert->rule, row, 13);
    reader_copy_text(alert->why, sizeof alert->why, row, 14);
    for (int i = 0; i < ALERT_GROUP_NAMES; i++)
        reader_copy_text(alert->group[i], sizeof alert->group[i], row, 15 + i);
    return STATUS_OK;
}

enum status alert_queue_next(struct alert_call *out, struct store *store, const char *hook,
                             struct error *err)
{
    sqlite3_str *sql = sqlite3_str_new(store->db);
    *out = (struct alert_call){.id = 0};
    sqlite3_str_appendf(
        sql,
        "SELECT d.id, d.due_ns, d.attempts, d.event, a.id, a.state, a.severity, a.started_ns,"
        " a.firing_ns, a.resolved_ns, a.value, a.threshold, a.unit, a.rule, a.why, a.model, a.host,"
        " a.device FROM main.alert_delivery d JOIN main.alert a ON a.id = d.alert"
        " WHERE d.id IN (SELECT min(id) FROM main.alert_delivery WHERE hook = %Q GROUP BY alert)"
        " ORDER BY d.due_ns, d.id LIMIT 1",
        hook);
    return reader_scan(store, sql, NULL, on_call, out, err);
}

enum status alert_queue_note(struct sqlite3 *db, const void *outcome, struct error *err)
{
    const struct alert_outcome *noted = outcome;
    if (noted->due_ns == 0)
        return database_execf(db, err, "DELETE FROM alert_delivery WHERE id = %lld",
                              (long long)noted->id);
    return database_execf(db, err,
                          "UPDATE alert_delivery SET attempts = attempts + 1, due_ns = %lld,"
                          " error = %Q WHERE id = %lld",
                          (long long)noted->due_ns, noted->error, (long long)noted->id);
}

enum status alert_queue_trim(struct sqlite3 *db, const void *hooks, struct error *err)
{
    const struct alert_hooks *kept = hooks;
    sqlite3_str *sql = sqlite3_str_new(db);
    sqlite3_str_appendall(sql, "DELETE FROM alert_delivery WHERE hook NOT IN (''");
    for (size_t i = 0; i < kept->count; i++)
        sqlite3_str_appendf(sql, ", %Q", kept->list[i].name);
    sqlite3_str_appendall(sql, ")");
    return database_exec_built(db, sql, err);
}
