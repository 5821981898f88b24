#include "common/store/alert/alert_queue.h"

#include <stdio.h>
#include <string.h>

#include <sqlite3.h>

#include "common/store/alert/alert_config.h"
#include "common/store/read/reader.h"
#include "common/store/read/session.h"
#include "common/store/sqlite/database.h"
#include "common/sys/clock.h"

const char *alert_event_text(enum alert_event event)
{
    static const char *const texts[ALERT_EVENT_COUNT] = {
#define EVENT_TEXT(name, text) [ALERT_EVENT_##name] = text,
        ALERT_EVENTS(EVENT_TEXT)
#undef EVENT_TEXT
    };
    return texts[event];
}

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

struct calls {
    struct alert_call *list;
    size_t count;
};

static enum status on_call(void *context, sqlite3_stmt *row, struct error *err)
{
    struct calls *calls = context;
    struct alert_call *call = &calls->list[calls->count++];
    struct alert_row *alert = &call->alert;
    const int64_t state = sqlite3_column_int64(row, 6);
    (void)err;
    *call = (struct alert_call){
        .id = sqlite3_column_int64(row, 0),
        .due_ns = sqlite3_column_int64(row, 1),
        .queued_ns = sqlite3_column_int64(row, 2),
        .attempts = (unsigned)sqlite3_column_int64(row, 3),
        .event = event_of(row, 4),
        .alert = {
            .id = sqlite3_column_int64(row, 5),
            .series = {.state = state > 0 && state < ALERT_STATE_COUNT ? (enum alert_state)state
                                                                       : ALERT_FIRING,
                       .severity = sqlite3_column_int64(row, 7) == ALERT_CRITICAL ? ALERT_CRITICAL
                                                                                  : ALERT_WARNING,
                       .started_ns = sqlite3_column_int64(row, 8),
                       .firing_ns = sqlite3_column_int64(row, 9),
                       .resolved_ns = sqlite3_column_int64(row, 10),
                       .value = sqlite3_column_double(row, 11)},
            .threshold = sqlite3_column_double(row, 12),
            .unit = unit_of(row, 13),
        }};
    reader_copy_text(alert->rule, sizeof alert->rule, row, 14);
    reader_copy_text(alert->why, sizeof alert->why, row, 15);
    for (int i = 0; i < ALERT_GROUP_NAMES; i++)
        reader_copy_text(alert->group[i], sizeof alert->group[i], row, 16 + i);
    const char *rule = (const char *)sqlite3_column_text(row, 19);
    (void)query_text_alert_window(alert->window, rule ? rule : "");
    return STATUS_OK;
}

#define COLUMNS                                                                                    \
    " a.started_ns, a.firing_ns, a.resolved_ns, a.value, a.threshold, a.unit, a.rule, a.why,"      \
    " a.model, a.host, a.device, (SELECT m.value FROM main.meta m WHERE m.key = '" ALERT_RULE_KEY  \
    "' || a.rule)"

enum status alert_queue_next(struct alert_call *out, struct store *store, const char *hook,
                             int64_t now_ns, struct error *err)
{
    struct calls calls = {.list = out};
    sqlite3_str *sql = sqlite3_str_new(store->db);
    *out = (struct alert_call){.id = 0};
    sqlite3_str_appendf(sql,
                        "SELECT d.id, d.due_ns, d.queued_ns, d.attempts, d.event, a.id, a.state,"
                        " a.severity," COLUMNS " FROM main.alert_delivery d"
                        " JOIN main.alert a ON a.id = d.alert WHERE d.hook = %Q"
                        " ORDER BY max(d.due_ns, %lld), d.queued_ns DESC, d.id DESC LIMIT 1",
                        hook, (long long)now_ns);
    return reader_scan(store, sql, NULL, on_call, &calls, err);
}

enum status alert_queue_told(struct alert_call *out, size_t *count, struct store *store,
                             int64_t after, int64_t now_ns, struct error *err)
{
    struct calls calls = {.list = out};
    sqlite3_str *sql = sqlite3_str_new(store->db);
    sqlite3_str_appendf(sql,
                        "SELECT 0, 0, 0, 0, 'firing', a.id, a.state, a.is_told - 1," COLUMNS
                        " FROM main.alert a WHERE a.resolved_ns IS NULL AND a.is_told > 0"
                        " AND a.id > %lld AND " ALERT_SILENCED_UNTIL " IS NULL"
                        " ORDER BY a.id LIMIT %d",
                        (long long)after, (long long)now_ns, (long long)now_ns, ALERT_TOLD_MOST);
    enum status status = reader_scan(store, sql, NULL, on_call, &calls, err);
    *count = calls.count;
    return status;
}

enum status alert_queue_tell(struct sqlite3 *db, int64_t now_ns, bool has_resolved,
                             struct error *err)
{
    static const struct {
        const char *event, *condition, *noted;
        enum alert_state least; // also those of this state, else only NO_DATA
    } kinds[] = {
        {"iif(a.is_told, 'escalated', 'firing')", "a.is_told <= a.severity",
         "is_told = 1 + severity", ALERT_FIRING},
        {"'no data'", "a.was_lost = 1", "was_lost = 2", ALERT_NO_DATA},
    };
    static const char queue[] =
        "INSERT INTO alert_delivery(alert, hook, event, due_ns, attempts, queued_ns)"
        " SELECT a.id, h.name, %s, %lld, 0, %lld FROM alert a JOIN alert_config h"
        " WHERE h.kind = 'hook' AND %s ON CONFLICT(hook, alert) DO UPDATE"
        " SET event = excluded.event, queued_ns = excluded.queued_ns"
        " WHERE excluded.event <> 'no data' OR event NOT IN ('firing', 'escalated')";
    const long long now = now_ns;
    char condition[1024];
    enum status status = STATUS_OK;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds && status == STATUS_OK; i++) {
        (void)sqlite3_snprintf(sizeof condition, condition,
                               "a.resolved_ns IS NULL AND a.state IN (%d, %d) AND %s"
                               " AND " ALERT_SILENCED_UNTIL " IS NULL",
                               kinds[i].least, ALERT_NO_DATA, kinds[i].condition, now, now);
        status = database_execf(db, err, queue, kinds[i].event, now, now, condition);
        if (status == STATUS_OK)
            status = database_execf(db, err,
                                    "UPDATE alert AS a SET %s WHERE %s AND EXISTS"
                                    " (SELECT 1 FROM alert_config WHERE kind = 'hook')",
                                    kinds[i].noted, condition);
    }
    (void)snprintf(condition, sizeof condition, "a.resolved_ns = %lld AND a.is_told", now);
    return status == STATUS_OK && has_resolved
               ? database_execf(db, err, queue, "'resolved'", now, now, condition)
               : status;
}

// Removes calls, and counts them, also for their hooks.
static enum status give_up(sqlite3 *db, const char *condition, int64_t now_ns, uint64_t *count,
                           struct error *err)
{
    const enum status status = database_execf(
        db, err,
        "UPDATE alert_config SET dropped = dropped + g.count, since_ns = %lld, error = g.error"
        " FROM (SELECT hook, count(*) AS count, coalesce(max(error), 'too many calls wait')"
        " AS error FROM alert_delivery WHERE %s GROUP BY hook) g"
        " WHERE kind = 'hook' AND name = g.hook;"
        "DELETE FROM alert_delivery WHERE %s",
        (long long)now_ns, condition, condition);
    if (count)
        *count = (uint64_t)sqlite3_changes64(db); // of the last statement
    return status;
}

enum status alert_queue_note(struct sqlite3 *db, const void *outcome, struct error *err)
{
    const struct alert_outcome *noted = outcome;
    const struct alert_call *call = noted->call;
    char condition[96]; // false if a newer event has come
    (void)snprintf(condition, sizeof condition, "id = %lld AND queued_ns = %lld",
                   (long long)call->id, (long long)call->queued_ns);
    if (!noted->has_failed)
        return database_execf(db, err, "DELETE FROM alert_delivery WHERE %s", condition);
    enum status status = database_execf(
        db, err,
        "UPDATE alert_delivery SET attempts = attempts + 1, due_ns = %lld, error = %Q"
        " WHERE id = %lld",
        (long long)noted->due_ns, noted->error, (long long)call->id);
    if (status == STATUS_OK && noted->due_ns == 0)
        status = give_up(db, condition, clock_wall_ns(), noted->given_up, err);
    return status;
}

enum status alert_queue_trim(struct sqlite3 *db, int64_t now_ns, uint64_t *given_up,
                             struct error *err)
{
    char condition[320];
    (void)snprintf(condition, sizeof condition,
                   "queued_ns < %lld OR id IN (SELECT id FROM (SELECT id, row_number() OVER"
                   " (PARTITION BY hook ORDER BY queued_ns DESC, id DESC) AS place"
                   " FROM alert_delivery) WHERE place > %d)",
                   (long long)(now_ns - ALERT_QUEUE_AGE_NS), ALERT_QUEUE_ROWS);
    return give_up(db, condition, now_ns, given_up, err);
}
