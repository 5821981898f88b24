// ALERTS and ALERT_TRY: alerts and silences as the store has them, and what a rule would do now.
#include <string.h>

#include <sqlite3.h>

#include "common/store/alert/alert_config.h"
#include "common/store/alert/alert_evaluate.h"
#include "common/store/alert/alert_queue.h"
#include "common/store/query/query_list.h"
#include "common/store/read/answer_cells.h"
#include "common/store/read/reader.h"
#include "common/store/read/session.h"
#include "common/store/sqlite/database.h"

// The conditions of the query on a row `a`, its filter's times apart.
static void append_where(sqlite3_str *sql, const struct query *query)
{
    for (int i = 0; i < ALERT_GROUP_NAMES; i++) {
        const char *name = query_dimension_name((enum query_dimension)i);
        if (query->filter.by[i][0])
            sqlite3_str_appendf(sql, " AND (a.%s = :%s OR a.%s GLOB :%s)", name, name, name, name);
    }
    if (query->alert.rule[0])
        sqlite3_str_appendf(sql, " AND a.rule = %Q", query->alert.rule);
}

static void append_states(sqlite3_str *sql)
{
    sqlite3_str_appendall(sql, "CASE WHEN a.resolved_ns IS NOT NULL THEN 'resolved'");
    for (int i = 0; i < ALERT_STATE_COUNT; i++)
        sqlite3_str_appendf(sql, " WHEN a.state = %d THEN %Q", i,
                            alert_state_text((enum alert_state)i));
    sqlite3_str_appendf(sql, " END AS state, iif(a.severity, %Q, %Q) AS severity",
                        alert_severity_text(ALERT_CRITICAL), alert_severity_text(ALERT_WARNING));
}

static void append_silences(sqlite3_str *sql, const struct query *query, int64_t now_ns)
{
    sqlite3_str_appendf(sql,
                        "SELECT a.id, a.rule, a.model, a.host, a.device, a.since_ns, a.until_ns,"
                        " a.actor AS silenced_by, a.text FROM main.alert_silence a"
                        " WHERE a.until_ns > %lld",
                        (long long)now_ns);
    append_where(sql, query);
    sqlite3_str_appendall(sql, " ORDER BY a.until_ns, a.id");
}

// A rule or file with an error; a hook with calls that have failed, or were given up within a day.
static void append_trouble(sqlite3_str *sql, int64_t now_ns)
{
    sqlite3_str_appendf(sql,
                        "SELECT c.kind, nullif(c.name, '') AS name,"
                        " coalesce(w.since, c.since_ns) AS since_ns, w.waiting,"
                        " nullif(c.dropped, 0) AS dropped, coalesce(w.error, c.error) AS text"
                        " FROM main.alert_config c LEFT JOIN (SELECT hook, count(*) AS waiting,"
                        "  min(queued_ns) AS since, max(error) AS error, max(attempts) AS attempts"
                        "  FROM main.alert_delivery GROUP BY hook) w"
                        " ON c.kind = 'hook' AND w.hook = c.name"
                        " WHERE w.attempts > 0 OR c.since_ns > iif(c.kind = 'hook', %lld, 0)"
                        " ORDER BY c.kind, c.name",
                        (long long)(now_ns - ALERT_QUEUE_AGE_NS));
}

static void append_alerts(sqlite3_str *sql, const struct query *query, int64_t now_ns)
{
    const struct query_filter *filter = &query->filter;
    const bool is_open = query->alert.list == QUERY_ALERTS_OPEN;
    sqlite3_str_appendall(sql, "SELECT a.id, a.rule, a.model, a.host, a.device, ");
    append_states(sql);
    sqlite3_str_appendf(
        sql,
        ", coalesce(a.firing_ns, a.started_ns) AS since_ns, a.resolved_ns, a.value,"
        " a.threshold, a.unit, a.why, a.acknowledged_ns, a.acknowledged_by,"
        " a.acknowledged_text, " ALERT_SILENCED_UNTIL
        " AS silenced_until_ns, (SELECT m.value FROM main.meta m WHERE m.key = '" ALERT_RULE_KEY
        "' || a.rule) AS rule_text FROM main.alert a WHERE ",
        (long long)now_ns, (long long)now_ns);
    if (is_open)
        sqlite3_str_appendall(sql, "a.resolved_ns IS NULL");
    else
        sqlite3_str_appendf(
            sql, "a.firing_ns < %lld AND (a.resolved_ns IS NULL OR a.resolved_ns >= %lld)",
            (long long)(filter->until_ns ? filter->until_ns : INT64_MAX),
            (long long)filter->since_ns);
    append_where(sql, query);
    sqlite3_str_appendall(sql, " ORDER BY ");
    if (is_open) // those that fire first, critical ones before
        sqlite3_str_appendf(sql, "a.state = %d, a.severity DESC, ", ALERT_PENDING);
    sqlite3_str_appendall(sql, "since_ns DESC, a.id DESC");
}

enum status query_alerts(struct store *store, const struct query *query, struct result **out,
                         struct error *err)
{
    static const struct answer_column alerts[] = {
        {"id", UNIT_NONE},
        {"rule", UNIT_NONE},
        {"model", UNIT_NONE},
        {"host", UNIT_NONE},
        {"device", UNIT_NONE},
        {"state", UNIT_NONE},
        {"severity", UNIT_NONE},
        {"since_ns", UNIT_TIME},
        {"resolved_ns", UNIT_TIME},
        {"value", UNIT_NONE},
        {"threshold", UNIT_NONE},
        {"unit", UNIT_NONE},
        {"why", UNIT_NONE},
        {"acknowledged_ns", UNIT_TIME},
        {"acknowledged_by", UNIT_NONE},
        {"acknowledged_text", UNIT_NONE},
        {"silenced_until_ns", UNIT_TIME},
        {"rule_text", UNIT_NONE},
    };
    static const struct answer_column silences[] = {
        {"id", UNIT_NONE},       {"rule", UNIT_NONE},        {"model", UNIT_NONE},
        {"host", UNIT_NONE},     {"device", UNIT_NONE},      {"since_ns", UNIT_TIME},
        {"until_ns", UNIT_TIME}, {"silenced_by", UNIT_NONE}, {"text", UNIT_NONE},
    };
    static const struct answer_column trouble[] = {
        {"kind", UNIT_NONE},     {"name", UNIT_NONE},     {"since_ns", UNIT_TIME},
        {"waiting", UNIT_COUNT}, {"dropped", UNIT_COUNT}, {"text", UNIT_NONE},
    };
    int64_t now_ns = 0;
    const enum query_alert_list list = query->alert.list;
    enum status status = list == QUERY_ALERTS_SILENCES
                             ? answer_new(out, silences, sizeof silences / sizeof *silences, err)
                         : list == QUERY_ALERTS_TROUBLE
                             ? answer_new(out, trouble, sizeof trouble / sizeof *trouble, err)
                             : answer_new(out, alerts, sizeof alerts / sizeof *alerts, err);
    if (status == STATUS_OK)
        status = reader_as_of(store, &now_ns, err);
    if (status != STATUS_OK)
        return status;
    sqlite3_str *sql = sqlite3_str_new(store->db);
    if (list == QUERY_ALERTS_SILENCES)
        append_silences(sql, query, now_ns);
    else if (list == QUERY_ALERTS_TROUBLE)
        append_trouble(sql, now_ns);
    else
        append_alerts(sql, query, now_ns);
    sqlite3_str_appendf(sql, " LIMIT %u", query_rows_most(query));
    status = reader_scan(store, sql, &query->filter, answer_on_new_row, *out, err);
    int64_t bundles = 0;
    if (status == STATUS_OK && result_row_count(*out) == 0 && !store->is_live &&
        list != QUERY_ALERTS_TROUBLE)
        status = database_integer(store->db, "SELECT count(*) FROM main.meta WHERE key = 'bundle'",
                                  &bundles, err);
    return bundles > 0 ? error_set(err, STATUS_NO_DATA, "alerts: a bundle has none") : status;
}

struct trying {
    const struct alert_rule *rule;
    struct result *answer;
};

static enum status on_reading(void *context, const char *const group[ALERT_GROUP_NAMES],
                              const struct alert_reading *reading, struct error *err)
{
    const struct trying *trying = context;
    const struct alert_rule *rule = trying->rule;
    struct result *answer = trying->answer;
    (void)err;
    answer_row(answer);
    for (int i = 0; i < ALERT_GROUP_NAMES; i++)
        if (group[i][0])
            answer_text(answer, query_dimension_name((enum query_dimension)i), group[i]);
    answer_int(answer, "count", (int64_t)reading->count);
    answer_text(answer, "unit", unit_name(rule->unit));
    if (!reading->has_data)
        return STATUS_OK;
    answer_real(answer, "value", reading->value);
    if (reading->count < rule->least || !alert_is_past(rule, reading->value, rule->warning))
        return STATUS_OK;
    answer_text(answer, "severity",
                alert_severity_text(alert_is_past(rule, reading->value, rule->critical)
                                        ? ALERT_CRITICAL
                                        : ALERT_WARNING));
    return STATUS_OK;
}

enum status query_alert_try(struct store *store, const struct query *query, struct result **out,
                            struct error *err)
{
    static const struct answer_column columns[] = {
        {"model", UNIT_NONE},  {"host", UNIT_NONE},     {"device", UNIT_NONE}, {"value", UNIT_NONE},
        {"count", UNIT_COUNT}, {"severity", UNIT_NONE}, {"unit", UNIT_NONE},
    };
    struct alert_file file;
    struct alert_times times = {0};
    enum status status = alert_file_read(&file, query->alert.text, strlen(query->alert.text), err);
    if (status == STATUS_OK && (file.rule_count == 0 || file.rules[file.rule_count - 1].is_builtin))
        status = error_set(err, STATUS_INVALID, "query: there is no rule");
    if (status == STATUS_OK)
        status = answer_new(out, columns, sizeof columns / sizeof *columns, err);
    if (status == STATUS_OK)
        status = reader_as_of(store, &times.now_ns, err);
    if (status == STATUS_OK) {
        const struct alert_rule *rule = &file.rules[file.rule_count - 1];
        struct alert_source_state *state = NULL;
        status = alert_read_rule(&state, store, rule, &times, on_reading,
                                 &(struct trying){rule, *out}, err);
        alert_source_state_free(state);
    }
    alert_file_deinit(&file);
    return status;
}
