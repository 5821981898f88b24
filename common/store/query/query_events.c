// EVENTS: what happened to devices and hosts, newest first, and what it cost.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

#include "common/core/base/array.h"
#include "common/core/base/saturate.h"
#include "common/core/base/text.h"
#include "common/store/query/event_cost.h"
#include "common/store/query/query_list.h"
#include "common/store/read/answer_cells.h"
#include "common/store/read/device_names.h"
#include "common/store/read/filter.h"
#include "common/store/read/reader.h"
#include "common/store/read/session.h"

enum {
    EVENTS_USUAL = 100,
    EVENTS_ROWS_MAX = 20000, // records that are looked at, the newest
    EVENTS_EARLIER_MAX = 64, // and of each open run, of those before
    // Requests of all hosts that are looked at, for all events together, and of each.  A request
    // takes half a microsecond.
    REQUESTS_ALL_MAX = 4000000,
    REQUESTS_EACH_MIN = 5000,
    REQUESTS_EACH_MAX = 100000,
};

// How long before the window events are looked for that may have ended in it; such as still last
// are found before that, too.
#define LOOK_BACK_NS INT64_C(86400000000000)

// An event of a moment, such as an XID, has its cost in the time that follows.
#define AFTER_MOMENT_NS INT64_C(60000000000)

#define FIGURE(name, unit)                                                                         \
    {name, unit},                                                                                  \
    {                                                                                              \
        "usual_" name, unit                                                                        \
    }
#define RATIO(name)                                                                                \
    {name "_ratio", UNIT_RATIO}, {name "_ratio_low", UNIT_RATIO},                                  \
    {                                                                                              \
        name "_ratio_high", UNIT_RATIO                                                             \
    }
#define LOST(name, unit)                                                                           \
    {name "_lost", unit}, {name "_lost_low", unit},                                                \
    {                                                                                              \
        name "_lost_high", unit                                                                    \
    }

static const struct answer_column columns[] = {
    {"run", UNIT_NONE},
    {"host", UNIT_NONE},
    {"device", UNIT_NONE},
    {"model", UNIT_NONE},
    {"event", UNIT_NONE},
    {"started_ns", UNIT_TIME},
    {"ended_ns", UNIT_TIME},
    {"duration_ns", UNIT_DURATION},
    {"code", UNIT_NONE},
    {"detail", UNIT_NONE},
    {"requests", UNIT_COUNT},
    {"usual_requests", UNIT_COUNT},
    FIGURE("tokens_per_second", UNIT_TOKENS_PER_SECOND),
    RATIO("tokens_per_second"),
    FIGURE("ttft_ns", UNIT_DURATION),
    RATIO("ttft"),
    FIGURE("joules_per_token", UNIT_JOULES),
    RATIO("joules_per_token"),
    LOST("tokens", UNIT_TOKENS),
    LOST("joules", UNIT_JOULES),
    {"note", UNIT_NONE},
    {"left_out", UNIT_COUNT}, // events that match, too, beyond the limit
};
enum { RUN_COLUMN, HOST_COLUMN, DEVICE_COLUMN, MODEL_COLUMN, EVENT_COLUMN };

struct event {
    int64_t run, host, device, name; // ids of the table name; device 0: it is of the host
    int64_t device_key;              // equal for names of one device
    bool is_asked_for;               // of the query's device and name
    struct event_span span;
    bool lasts;
    bool has_code;
    int64_t code;
    char *detail; // NULL: none
};

struct events {
    struct store *store;
    const struct query *query;
    struct query_filter filter; // of what is read
    int64_t as_of_ns;
    int64_t device;     // of the query's filter; 0: any, -1: unknown
    struct event *list; // newest first
    size_t count, room;
    struct event_span *others; // room for one per event
    int64_t rows_max;          // that are looked at for the cost of an event (event_cost.h)
    int64_t left_out;
    struct result *answer;
    bool has_rows;
};

// ---- Reading --------------------------------------------------------------------------------

enum {
    ROW_RUN,
    ROW_HOST,
    ROW_DEVICE,
    ROW_KEY,
    ROW_IS_ASKED_FOR,
    ROW_EVENT,
    ROW_STARTED,
    ROW_ENDED,
    ROW_CODE,
    ROW_DETAIL
};

static enum status on_event(void *context, sqlite3_stmt *row, struct error *err)
{
    struct events *events = context;
    if (!ARRAY_RESERVE(&events->list, &events->room, events->count + 1))
        return error_no_memory(err, "store");
    struct event *event = &events->list[events->count++];
    *event = (struct event){
        .run = sqlite3_column_int64(row, ROW_RUN),
        .host = sqlite3_column_int64(row, ROW_HOST),
        .device = sqlite3_column_int64(row, ROW_DEVICE),
        .device_key = sqlite3_column_int64(row, ROW_KEY),
        .is_asked_for = sqlite3_column_int(row, ROW_IS_ASKED_FOR) != 0,
        .name = sqlite3_column_int64(row, ROW_EVENT),
        .span = {sqlite3_column_int64(row, ROW_STARTED), sqlite3_column_int64(row, ROW_ENDED)},
        .lasts = sqlite3_column_type(row, ROW_ENDED) == SQLITE_NULL,
        .has_code = sqlite3_column_type(row, ROW_CODE) != SQLITE_NULL,
        .code = sqlite3_column_int64(row, ROW_CODE),
    };
    if (event->lasts)
        event->span.until_ns = events->as_of_ns;
    if (event->span.until_ns < event->span.since_ns)
        event->span.until_ns = event->span.since_ns;
    const char *detail = (const char *)sqlite3_column_text(row, ROW_DETAIL);
    event->detail = detail ? strdup(detail) : NULL;
    return detail && !event->detail ? error_no_memory(err, "store") : STATUS_OK;
}

// SQL: the UUID of the event's device, and whether it is the device $2 that is asked for, by this
// or another name.
#define UUID_OF_EVENT DEVICE_NAMES_UUID("t.run", "t.device")
#define IS_OF_DEVICE                                                                               \
    "(t.device = $2 OR (r.host, " UUID_OF_EVENT ") IN (SELECT host, uuid FROM asked))"

// A record of an end belongs to that of the beginning with the same run, device, name and start:
// the one that came last is the event.  Some events have namesakes that begin at the same time and
// differ in their code, which never changes.  What has not ended when its run has, ended with it;
// ECC errors do not last.
// With a device in the filter, those of other devices are left out.
static enum status read_events(struct events *events, struct error *err)
{
    const struct query_filter *asked = &events->query->filter;
    struct query_filter *filter = &events->filter;
    if (asked->since_ns)
        filter->since_ns = saturate_add(asked->since_ns, -LOOK_BACK_NS);
    if (asked->until_ns)
        filter->until_ns = saturate_add(asked->until_ns, EVENT_COST_AROUND_NS);
    sqlite3_str *sql = sqlite3_str_new(events->store->db);
    sqlite3_str_appendall(sql, "WITH asked AS MATERIALIZED (SELECT DISTINCT r.host, d.uuid"
                               " FROM device d CROSS JOIN run r ON r.run = d.run"
                               " WHERE $2 <> 0 AND d.name = $2 AND d.uuid IS NOT NULL),"
                               " found AS MATERIALIZED (SELECT * FROM (SELECT t.*"
                               " FROM main.event t CROSS JOIN main.run r ON r.run = t.run");
    filter_where(sql, RECORD_KIND_EVENT, filter);
    sqlite3_str_appendf(sql,
                        " AND ($2 = 0 OR t.device IS NULL OR " IS_OF_DEVICE ")"
                        " ORDER BY t.started_ns DESC LIMIT %d)"
                        " UNION SELECT t.* FROM main.run o CROSS JOIN main.event t"
                        " ON t.id IN (SELECT b.id FROM main.event b WHERE b.run = o.run"
                        " AND b.started_ns < $1 ORDER BY b.started_ns DESC LIMIT %d)"
                        " WHERE o.\"end\" = 0",
                        EVENTS_ROWS_MAX, EVENTS_EARLIER_MAX);
    sqlite3_str_appendall(sql, filter->by[QUERY_BY_HOST][0] ? " AND o.host" : "");
    if (filter->by[QUERY_BY_HOST][0])
        filter_append_name(sql, filter, QUERY_BY_HOST);
    sqlite3_str_appendall(
        sql, " AND t.duration_ns IS NULL AND NOT EXISTS"
             " (SELECT 1 FROM main.event e WHERE e.run = t.run"
             " AND e.started_ns = t.started_ns AND e.event = t.event"
             " AND e.device IS t.device AND e.duration_ns IS NOT NULL)),"
             " last AS (SELECT max(t.id), t.*, " UUID_OF_EVENT " AS uuid"
             " FROM found t GROUP BY t.run, t.device,"
             " t.event, t.started_ns, (SELECT iif(n.text IN ('xid', 'foreign_process'),"
             " t.code, NULL) FROM main.name n WHERE n.id = t.event))"
             " SELECT t.run, r.host, t.device, dense_rank() OVER (ORDER BY r.host, "
             "coalesce(t.uuid, t.device)),"
             " ($2 = 0 OR " IS_OF_DEVICE ")");
    if (asked->by[QUERY_BY_EVENT][0]) { // the others are left out of what is usual
        memcpy(filter->by[QUERY_BY_EVENT], asked->by[QUERY_BY_EVENT], QUERY_TEXT_SIZE);
        sqlite3_str_appendall(sql, " AND t.event");
        filter_append_name(sql, filter, QUERY_BY_EVENT);
    }
    sqlite3_str_appendall(sql,
                          ", t.event, t.started_ns,"
                          " coalesce(t.started_ns + max(t.duration_ns, 0),"
                          " iif(t.event IN (SELECT id FROM main.name WHERE text IN"
                          " ('ecc_corrected', 'ecc_uncorrected')), t.started_ns,"
                          " iif(r.\"end\" = 0, NULL, coalesce(r.ended_ns, r.heard_ns)))),"
                          " t.code, t.detail FROM last t CROSS JOIN main.run r ON r.run = t.run"
                          " ORDER BY t.started_ns DESC, t.id DESC");
    const int64_t numbers[] = {filter->since_ns, events->device};
    return reader_scan_with(events->store, sql, filter, numbers, 2, on_event, events, err);
}

// ---- The answer ---------------------------------------------------------------------------------

static bool is_asked_for(const struct events *events, const struct event *event)
{
    const struct query_filter *filter = &events->query->filter;
    const struct event_span span = event->span;
    return event->is_asked_for && (!filter->until_ns || span.since_ns < filter->until_ns) &&
           (span.until_ns > filter->since_ns || span.since_ns >= filter->since_ns);
}

static void set_figure(struct result *answer, const char *name, const char *ratio_name,
                       const struct event_cost_figure *figure)
{
    char key[64];
    const struct stats_effect *effect = &figure->effect;
    answer_real(answer, name, figure->during);
    (void)snprintf(key, sizeof key, "usual_%s", name);
    answer_real(answer, key, figure->usual);
    if (!isfinite(effect->ratio))
        return;
    (void)snprintf(key, sizeof key, "%s_ratio", ratio_name);
    answer_real(answer, key, effect->ratio);
    if (!(effect->low > 0) || !isfinite(effect->high))
        return;
    (void)snprintf(key, sizeof key, "%s_ratio_low", ratio_name);
    answer_real(answer, key, effect->low);
    (void)snprintf(key, sizeof key, "%s_ratio_high", ratio_name);
    answer_real(answer, key, effect->high);
}

// What is lost of an amount if the ratio of what it is to what it usually is has this value.
static double lost(double amount, double ratio, bool is_used)
{
    return is_used ? amount * (1 - 1 / ratio) : amount * (1 / ratio - 1);
}

// Of energy what was used in excess; of tokens what would have been put out beside these.
static void set_lost(struct result *answer, const char *name, double amount, bool is_used,
                     const struct stats_effect *effect)
{
    char key[64];
    if (!(effect->low > 0) || !isfinite(effect->high))
        return;
    const double ends[] = {lost(amount, effect->low, is_used), lost(amount, effect->high, is_used)};
    (void)snprintf(key, sizeof key, "%s_lost", name);
    answer_real(answer, key, lost(amount, effect->ratio, is_used));
    (void)snprintf(key, sizeof key, "%s_lost_low", name);
    answer_real(answer, key, fmin(ends[0], ends[1]));
    (void)snprintf(key, sizeof key, "%s_lost_high", name);
    answer_real(answer, key, fmax(ends[0], ends[1]));
}

static void set_cost(struct result *answer, const struct event_cost *cost,
                     const struct event_cost_model *model)
{
    char note[256] = "";
    answer_int(answer, "requests", (int64_t)model->requests);
    answer_int(answer, "usual_requests", (int64_t)model->usual_requests);
    set_figure(answer, "tokens_per_second", "tokens_per_second", &model->tokens_per_second);
    set_figure(answer, "ttft_ns", "ttft", &model->ttft_ns);
    set_lost(answer, "tokens", model->tokens, false, &model->tokens_per_second.effect);
    set_figure(answer, "joules_per_token", "joules_per_token", &cost->joules_per_token);
    set_lost(answer, "joules", cost->joules, true, &cost->joules_per_token.effect);
    if (model->requests < STATS_FEW_MIN || model->usual_requests < STATS_FEW_MIN)
        (void)text_append(note, sizeof note, "; ", "not compared: too few requests %s",
                          model->requests < STATS_FEW_MIN ? "meanwhile" : "before and after it");
    if (cost->is_cut)
        (void)text_append(note, sizeof note, "; ", "compares only the end of the event");
    if (cost->has_several)
        (void)text_append(note, sizeof note, "; ",
                          "several models ran: the energy of one is unknown");
    if (note[0])
        answer_text(answer, "note", note);
}

// Producers may send any times: their difference may not fit.
static int64_t length_of(struct event_span span)
{
    int64_t length;
    return __builtin_sub_overflow(span.until_ns, span.since_ns, &length) ? INT64_MAX : length;
}

static enum status begin_row(struct events *events, const struct event *event, struct error *err)
{
    struct result *answer = events->answer;
    events->has_rows = true;
    answer_row(answer);
    enum status status = answer_run(events->store, answer, RUN_COLUMN, event->run, err);
    if (status == STATUS_OK)
        status = answer_name(events->store, answer, HOST_COLUMN, event->host, err);
    if (status == STATUS_OK && event->device)
        status = answer_name(events->store, answer, DEVICE_COLUMN, event->device, err);
    if (status == STATUS_OK)
        status = answer_name(events->store, answer, EVENT_COLUMN, event->name, err);
    answer_int(answer, "started_ns", event->span.since_ns);
    if (!event->lasts)
        answer_int(answer, "ended_ns", event->span.until_ns);
    answer_int(answer, "duration_ns", length_of(event->span));
    if (event->has_code)
        answer_int(answer, "code", event->code);
    if (event->detail)
        answer_text(answer, "detail", event->detail);
    answer_int(answer, "left_out", events->left_out);
    return status;
}

// The rows of an event: one for each model that ran requests then.
static enum status add_rows(struct events *events, const struct event *event,
                            const struct event_cost *cost, struct error *err)
{
    const struct query_filter *filter = &events->query->filter;
    bool is_first = true;
    enum status status = STATUS_OK;
    for (size_t i = 0; i < cost->count && status == STATUS_OK; i++) {
        bool is_wanted = true;
        if (filter->by[QUERY_BY_MODEL][0])
            status = reader_is_named(events->store, filter, QUERY_BY_MODEL, cost->models[i].model,
                                     &is_wanted, err);
        if (!is_wanted)
            continue;
        is_first = false;
        if (status == STATUS_OK)
            status = begin_row(events, event, err);
        if (status == STATUS_OK)
            status = answer_name(events->store, events->answer, MODEL_COLUMN, cost->models[i].model,
                                 err);
        set_cost(events->answer, cost, &cost->models[i]);
    }
    if (status != STATUS_OK || !is_first || filter->by[QUERY_BY_MODEL][0])
        return status;
    status = begin_row(events, event, err);
    answer_int(events->answer, "requests", 0);
    return status;
}

// The time in which the event has its cost.
static struct event_span cost_span(const struct events *events, const struct event *event)
{
    struct event_span span = event->span;
    if (span.until_ns == span.since_ns && span.since_ns < events->as_of_ns) {
        const int64_t until_ns = saturate_add(span.since_ns, AFTER_MOMENT_NS);
        span.until_ns = until_ns < events->as_of_ns ? until_ns : events->as_of_ns;
    }
    return span;
}

static enum status add_event(struct events *events, const struct event *event, struct error *err)
{
    struct event_cost_question question = {.run = event->run,
                                           .host = event->host,
                                           .device = event->device,
                                           .span = cost_span(events, event),
                                           .rows_max = events->rows_max,
                                           .others = events->others};
    struct event_span *last = NULL;
    for (size_t i = events->count; i-- > 0;) {
        const struct event *other = &events->list[i];
        if (other->host != event->host ||
            (event->device && other->device && other->device_key != event->device_key))
            continue;
        const struct event_span span = cost_span(events, other);
        if (last && span.since_ns <= last->until_ns) {
            if (span.until_ns > last->until_ns)
                last->until_ns = span.until_ns;
            continue;
        }
        last = &events->others[question.other_count++];
        *last = span;
    }
    struct event_cost cost;
    enum status status = event_cost_read(&cost, events->store, &question, err);
    if (status == STATUS_OK)
        status = add_rows(events, event, &cost, err);
    event_cost_deinit(&cost);
    return status;
}

static enum status add_all(struct events *events, struct error *err)
{
    const size_t limit = events->query->limit ? events->query->limit : EVENTS_USUAL;
    size_t asked = 0, shown = 0;
    enum status status = STATUS_OK;
    for (size_t i = 0; i < events->count; i++)
        asked += is_asked_for(events, &events->list[i]);
    if (asked > limit) {
        events->left_out = (int64_t)(asked - limit);
        asked = limit;
    }
    events->rows_max = REQUESTS_ALL_MAX / 3 / (int64_t)(asked ? asked : 1);
    if (events->rows_max < REQUESTS_EACH_MIN)
        events->rows_max = REQUESTS_EACH_MIN;
    if (events->rows_max > REQUESTS_EACH_MAX)
        events->rows_max = REQUESTS_EACH_MAX;
    events->others = calloc(events->count + 1, sizeof *events->others);
    if (!events->others)
        return error_no_memory(err, "store");
    for (size_t i = 0; i < events->count && shown < limit && status == STATUS_OK; i++) {
        if (!is_asked_for(events, &events->list[i]))
            continue;
        status = add_event(events, &events->list[i], err);
        shown++;
    }
    if (status == STATUS_OK && !events->has_rows)
        status = error_set(err, STATUS_NO_DATA, "no events that match");
    return status;
}

enum status query_events(struct store *store, const struct query *query, struct result **out,
                         struct error *err)
{
    struct events events = {.store = store, .query = query};
    for (unsigned i = 0; i < QUERY_DIMENSION_COUNT; i++)
        if (query->filter.by[i][0] && i != QUERY_BY_HOST && i != QUERY_BY_DEVICE &&
            i != QUERY_BY_MODEL && i != QUERY_BY_EVENT)
            return error_set(err, STATUS_INVALID,
                             "events: filters are host, device, model and event, not %s",
                             query_dimension_name((enum query_dimension)i));
    if (query->limit > QUERY_EVENTS_MAX)
        return error_set(err, STATUS_INVALID, "events are %d at most", QUERY_EVENTS_MAX);
    memcpy(events.filter.by[QUERY_BY_HOST], query->filter.by[QUERY_BY_HOST], QUERY_TEXT_SIZE);
    enum status status = reader_as_of(store, &events.as_of_ns, err);
    if (status == STATUS_OK && query->filter.by[QUERY_BY_DEVICE][0]) {
        events.device = -1; // unless the store knows its name
        status = reader_name(store, &query->filter, QUERY_BY_DEVICE, &events.device, err);
    }
    if (status == STATUS_OK)
        status = read_events(&events, err);
    if (status == STATUS_OK)
        status = answer_new(out, columns, sizeof columns / sizeof *columns, err);
    events.answer = *out;
    if (status == STATUS_OK)
        status = add_all(&events, err);
    for (size_t i = 0; i < events.count; i++)
        free(events.list[i].detail);
    free(events.list);
    free(events.others);
    return status;
}
