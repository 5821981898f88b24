#include <math.h>
#include <string.h>

#include <sqlite3.h>

#include "common/store/aggregate/coverage.h"
#include "common/store/query/lasting.h"
#include "common/store/query/query_list.h"
#include "common/store/why/why_reader.h"
#include "common/store/read/answer_cells.h"
#include "common/store/read/reader.h"
#include "common/store/read/session.h"

#define MINUTE_NS INT64_C(60000000000)
#define DAY_NS    (24 * 60 * MINUTE_NS)

#define LEAST_COVERAGE 0.99 // of the records; more losses are told

// One cause for all processes of a host: the newest.
static bool is_known(const struct why *why, enum why_cause_kind kind, const char *host)
{
    for (size_t i = 0; i < why->cause_count; i++)
        if (why->causes[i].kind == kind && strcmp(why->causes[i].host, host) == 0)
            return true;
    return false;
}

// Whether the model that is asked for has requests on the host, in the window or shortly before.
static bool has_requests(const struct why_reader *reader, int64_t host)
{
    bool found = reader->model == 0;
    for (size_t i = 0; i < reader->request_count && !found; i++)
        found = reader->requests[i].host == host && reader->requests[i].side != WHY_DAYS;
    return found;
}

// Host, model, kind, time, whether its host ran the model that is asked for.
static enum status on_process(void *context, sqlite3_stmt *row, struct error *err)
{
    struct why_reader *reader = context;
    const int64_t host = sqlite3_column_int64(row, 0), model = sqlite3_column_int64(row, 1);
    const int64_t ago_ns = reader->out->as_of_ns - sqlite3_column_int64(row, 3);
    const enum why_cause_kind kind = (enum why_cause_kind)sqlite3_column_int(row, 2);
    char name[QUERY_TEXT_SIZE], ago[UNIT_TEXT_SIZE];
    struct why_cause *cause;
    (void)answer_name_text(reader->store, host, name);
    if (is_known(reader->out, kind, name) ||
        (model == 0 && !sqlite3_column_int(row, 4) && !has_requests(reader, host)))
        return STATUS_OK;
    enum status status = why_add_cause(reader, &cause, kind, model, host, err);
    if (status != STATUS_OK)
        return status;
    cause->began_ns = reader->out->as_of_ns - ago_ns;
    cause->is_moment = kind == WHY_KILLED;
    cause->untimed_size = strlen(cause->text);
    if (ago_ns > 0)
        why_say(cause, kind == WHY_SILENT ? " for %s" : " %s ago",
                unit_format_int(ago, UNIT_DURATION, ago_ns));
    return status;
}

// Runs without an owner are imported: this collector never heard of them.  A process that never
// described a model may be of any that ran on its host.
enum status why_add_processes(struct why_reader *reader, struct error *err)
{
    const int64_t numbers[] = {reader->out->as_of_ns - DAY_NS, reader->out->since_ns, reader->model,
                               reader->host};
    sqlite3_str *sql = sqlite3_str_new(reader->store->db);
    sqlite3_str_appendf(
        sql,
        "WITH lost AS MATERIALIZED (SELECT r.*, coalesce(r.ended_ns, r.heard_ns) AS at,"
        " (SELECT m.name FROM main.model m WHERE m.run = r.run ORDER BY m.name = $3 DESC LIMIT 1)"
        " AS model FROM main.run r WHERE r.heard_ns >= $1 AND r.\"end\" IN (%d, %d)"
        " AND (r.\"end\" = %d OR r.owner <> 0)), judged AS (SELECT *, EXISTS (SELECT 1"
        " FROM main.run n WHERE n.host = l.host AND n.run <> l.run AND n.started_ns > l.at"
        " AND (l.model IS NULL OR EXISTS (SELECT 1 FROM main.model m WHERE m.run = n.run"
        " AND m.name = l.model))) AS replaced FROM lost l)"
        " SELECT host, coalesce(model, 0), CASE WHEN replaced THEN %d WHEN ended_ns THEN %d ELSE %d"
        " END, at, EXISTS (SELECT 1 FROM main.run n CROSS JOIN main.model m ON m.run = n.run"
        " WHERE n.host = j.host AND m.name = $3) FROM judged j"
        " WHERE (at >= $2 OR NOT replaced) AND $3 IN (0, coalesce(model, $3))"
        " AND $4 IN (0, host) ORDER BY at DESC",
        RECORD_RUN_END_KILLED, RECORD_RUN_END_SILENT, RECORD_RUN_END_KILLED, WHY_KILLED, WHY_DOWN,
        WHY_SILENT);
    return reader_scan_with(reader->store, sql, NULL, numbers, 4, on_process, reader, err);
}

static enum status add_event(struct why_reader *reader, const struct lasting_event *event,
                             struct error *err)
{
    struct why_cause *cause;
    char ago[UNIT_TEXT_SIZE];
    unsigned kind = WHY_LASTING;
    while (kind < WHY_LASTING_END &&
           strcmp(event->name, why_cause_name((enum why_cause_kind)kind)) != 0)
        kind++;
    char host[QUERY_TEXT_SIZE];
    (void)answer_name_text(reader->store, event->host, host);
    if (kind == WHY_LASTING_END || is_known(reader->out, (enum why_cause_kind)kind, host))
        return STATUS_OK;
    enum status status =
        why_add_cause(reader, &cause, (enum why_cause_kind)kind, 0, event->host, err);
    if (status != STATUS_OK)
        return status;
    lasting_append(cause->text, sizeof cause->text, event);
    cause->untimed_size = strlen(cause->text);
    cause->is_moment = event->is_moment;
    cause->began_ns = event->is_moment ? event->newest_ns : event->since_ns;
    if (event->times == 0)
        return STATUS_OK;
    (void)unit_format_int(ago, UNIT_DURATION, reader->out->as_of_ns - cause->began_ns);
    if (!event->is_moment)
        why_say(cause, ", for %s", ago);
    else if (event->times == 1)
        why_say(cause, ", %s ago", ago);
    else
        why_say(cause, ", %u times in %d minutes, last %s ago", event->times,
                (int)(LASTING_ERROR_NS / MINUTE_NS), ago);
    return STATUS_OK;
}

enum status why_add_lasting(struct why_reader *reader, struct error *err)
{
    struct lasting lasting = {0};
    enum status status = lasting_read(&lasting, reader->store, reader->host, 0, err);
    for (size_t i = 0; i < lasting.count && status == STATUS_OK; i++)
        if (has_requests(reader, lasting.list[i].host))
            status = add_event(reader, &lasting.list[i], err);
    lasting_deinit(&lasting);
    return status;
}

enum status why_add_losses(struct why_reader *reader, struct error *err)
{
    struct query query = {.kind = QUERY_AVERAGE,
                          .filter = {.since_ns = reader->out->since_ns},
                          .group_by = {QUERY_BY_HOST},
                          .group_count = 1};
    struct coverage coverage = {0};
    if (reader->host)
        (void)answer_name_text(reader->store, reader->host, query.filter.by[QUERY_BY_HOST]);
    enum status status = coverage_read(&coverage, reader->store, &query, err);
    for (size_t i = 0; status == STATUS_OK && i < groups_count(coverage.shares); i++) {
        const int64_t of = groups_at(coverage.shares, i)->keys[0];
        struct why_cause *cause;
        double ratio;
        int64_t lost;
        coverage_of(&coverage, of, 0, 0, &ratio, &lost);
        if (!(ratio < LEAST_COVERAGE))
            continue;
        status = why_add_cause(reader, &cause, WHY_LOSSES, 0, of, err);
        if (status == STATUS_OK)
            why_say(cause, ": %lld, %.0f %% of all: figures may be wrong", (long long)lost,
                    (1 - ratio) * 100);
    }
    coverage_deinit(&coverage);
    return status;
}

enum status why_add_peers(struct why_reader *reader, struct error *err)
{
    struct query query = {.kind = QUERY_FLEET, .filter.since_ns = reader->out->since_ns};
    char model[QUERY_TEXT_SIZE], host[QUERY_TEXT_SIZE], metric[QUERY_TEXT_SIZE];
    struct result *fleet = NULL;
    if (reader->model)
        (void)answer_name_text(reader->store, reader->model, query.filter.by[QUERY_BY_MODEL]);
    enum status status = query_fleet(reader->store, &query, &fleet, err);
    (void)answer_name_text(reader->store, reader->host, host);
    for (size_t i = 0; i < reader->out->subject_count && status == STATUS_OK; i++) {
        const struct why_subject *subject = &reader->out->subjects[i];
        const int64_t model_id = reader->entries[subject->first].model;
        struct why_cause *cause;
        size_t row = 0;
        (void)answer_name_text(reader->store, model_id, model);
        while (row < result_row_count(fleet) && // the worst metric is the first one
               !(result_is(fleet, row, "verdict", "worse") && result_is(fleet, row, "host", host) &&
                 result_is(fleet, row, "model", model)))
            row++;
        if (row == result_row_count(fleet) || subject->verdict == STATS_WORSE)
            continue;
        const double deviation = result_number(fleet, row, "deviation_ratio", 0);
        status = why_add_cause(reader, &cause, WHY_APART, model_id, reader->host, err);
        if (status == STATUS_OK)
            why_say(cause, ": %s %.0f %% %s the median of %lld hosts",
                    result_text(metric, sizeof metric, fleet, row, "metric"), fabs(deviation) * 100,
                    deviation > 0 ? "above" : "below",
                    (long long)result_integer(fleet, row, "hosts", 0));
    }
    result_free(fleet);
    return status == STATUS_NO_DATA ? STATUS_OK : status;
}
