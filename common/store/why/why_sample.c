#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

#include "common/core/base/array.h"
#include "common/core/base/saturate.h"
#include "common/core/record/record.h"
#include "common/store/compare/environment.h"
#include "common/store/query/now.h"
#include "common/store/query/slowest_peers.h"
#include "common/store/read/reader.h"
#include "common/store/read/session.h"
#include "common/store/why/why_reader.h"

#define HOUR_NS INT64_C(3600000000000)
#define DAY_NS  (24 * HOUR_NS)

#define FIGURE_MAX 0x1p60 // keeps sums exact enough, whatever the store holds

enum {
    SAMPLE_REQUESTS = 12000, // of a time
    SAMPLE_FILTERED = 4,     // with a filter so many times as many are read to find that many
    SAMPLE_SPANS = 4096,     // of a time, of each kind
    PARTS = 24,              // of a time, of which each gives its first requests
};

// ---- Times --------------------------------------------------------------------------------------

// The hour of a former day; a longer window's own time of that day.
static void find_day(const struct why_reader *reader, int64_t day, int64_t *since_ns,
                     int64_t *until_ns)
{
    const int64_t as_of_ns = reader->out->as_of_ns - day * DAY_NS, window_ns = reader->window_ns;
    const int64_t middle_ns = as_of_ns - window_ns / 2;
    *since_ns = window_ns > HOUR_NS ? as_of_ns - window_ns : middle_ns - middle_ns % HOUR_NS;
    *until_ns = *since_ns + (window_ns > HOUR_NS ? window_ns : HOUR_NS);
}

// ---- Requests ---------------------------------------------------------------------------------

enum { ROW_MODEL, ROW_HOST, ROW_DEVICE, ROW_RUN, ROW_STARTED, ROW_FINISH, ROW_FIGURES };

struct part_reader {
    struct why_reader *of;
    enum why_side side;
    size_t read, kept, kept_max; // rows of the part; of these matching ones
    int64_t last_ns;
};

static enum status on_request(void *context, sqlite3_stmt *row, struct error *err)
{
    struct part_reader *reader = context;
    struct why_reader *of = reader->of;
    const int64_t model = sqlite3_column_int64(row, ROW_MODEL);
    const int64_t host = sqlite3_column_int64(row, ROW_HOST);
    const int finish = sqlite3_column_int(row, ROW_FINISH);
    if (reader->kept == reader->kept_max)
        return STATUS_OK;
    reader->read++;
    reader->last_ns = sqlite3_column_int64(row, ROW_STARTED);
    if ((of->model && model != of->model) || (of->host && host != of->host) ||
        finish == RECORD_FINISH_CANCELLED)
        return STATUS_OK;
    if (finish == RECORD_FINISH_ERROR) {
        of->failed += reader->side == WHY_NOW;
        return STATUS_OK;
    }
    reader->kept++;
    if (!ARRAY_RESERVE(&of->requests, &of->request_room, of->request_count + 1))
        return error_no_memory(err, "store");
    struct why_request *request = &of->requests[of->request_count++];
    *request = (struct why_request){
        .model = model,
        .host = host,
        .device = sqlite3_column_int64(row, ROW_DEVICE),
        .run = sqlite3_column_int64(row, ROW_RUN),
        .started_ns = reader->last_ns,
        .side = (int)reader->side,
    };
    for (int i = 0; i < (int)FIGURE_COUNT; i++) {
        const double figure = reader_real(row, ROW_FIGURES + i);
        request->figures[i] = figure < 0 ? 0 : figure > FIGURE_MAX ? FIGURE_MAX : figure;
    }
    return STATUS_OK;
}

static enum status read_part(struct part_reader *reader, int64_t since_ns, int64_t until_ns,
                             size_t rows, struct error *err)
{
    const int64_t numbers[] = {since_ns, until_ns, (int64_t)rows};
    sqlite3_str *sql = sqlite3_str_new(reader->of->store->db);
    sqlite3_str_appendall(
        sql, "SELECT t.model, r.host, coalesce(t.device, 0), t.run, t.started_ns, t.finish,"
             " t.queue_ns, coalesce(" SLOWEST_COMPUTED ", 0), coalesce(t.decode_ns, 0), t.e2e_ns,"
             " t.ttft_ns, coalesce(t.prompt_tokens - t.cached_prompt_tokens, 0),"
             " coalesce(t.generated_tokens, 0), coalesce(t.items, 0), t.concurrent_requests FROM "
             "(SELECT * FROM main.inference WHERE started_ns >= $1"
             " AND started_ns < $2 ORDER BY started_ns LIMIT $3) t"
             " CROSS JOIN main.run r ON r.run = t.run");
    return reader_scan_with(reader->of->store, sql, NULL, numbers, 3, on_request, reader, err);
}

// Adds successful requests that began in a time; `share` is that of SAMPLE_REQUESTS.
static enum status sample_time(struct why_reader *of, enum why_side side, int64_t since_ns,
                               int64_t until_ns, double share, struct error *err)
{
    const int64_t parts = (int64_t)ceil(PARTS * share);
    const size_t kept_max = (size_t)(SAMPLE_REQUESTS * share) / (size_t)parts + 1;
    const size_t rows = of->model || of->host ? kept_max * SAMPLE_FILTERED : kept_max;
    enum status status = STATUS_OK;
    double seconds = 0;
    size_t read = 0;
    for (int64_t i = 0; i < parts && status == STATUS_OK; i++) {
        const int64_t begin_ns = since_ns + (until_ns - since_ns) / parts * i;
        const int64_t end_ns = i == parts - 1 ? until_ns : begin_ns + (until_ns - since_ns) / parts;
        struct part_reader reader = {.of = of, .side = side, .kept_max = kept_max};
        status = read_part(&reader, begin_ns, end_ns, rows, err);
        const bool is_cut = reader.read == rows || reader.kept == kept_max;
        of->is_sampled[side] |= is_cut;
        seconds += (double)((is_cut ? reader.last_ns : end_ns) - begin_ns) / 1e9;
        read += reader.read;
    }
    of->seconds[side] += read > 0 ? seconds : 0;
    return status;
}

enum status why_read_requests(struct why_reader *reader, struct error *err)
{
    const int64_t since_ns = reader->out->since_ns, as_of_ns = reader->out->as_of_ns;
    enum status status = sample_time(reader, WHY_NOW, since_ns, as_of_ns + 1, 1, err);
    if (status != STATUS_OK || reader->request_count == 0)
        return status;
    status = sample_time(reader, WHY_USUAL, since_ns - WHY_BEFORE_WINDOWS * reader->window_ns,
                         since_ns, 1, err);
    // A window of more than a day overlaps former days.
    for (int64_t day = reader->window_ns > DAY_NS ? 0 : NOW_DAYS; day > 0 && status == STATUS_OK;
         day--) {
        int64_t from_ns, to_ns;
        find_day(reader, day, &from_ns, &to_ns);
        if (from_ns > 0)
            status = sample_time(reader, WHY_DAYS, from_ns, to_ns, 1.0 / NOW_DAYS, err);
    }
    return status;
}

// ---- Spans ------------------------------------------------------------------------------------

struct span_reader {
    struct why_reader *of;
    int64_t until_ns;
};

// Host, device, start, end (null: it lasts), name, weight.
static enum status on_span(void *context, sqlite3_stmt *row, struct error *err)
{
    const struct span_reader *reader = context;
    struct why_reader *of = reader->of;
    const char *name = (const char *)sqlite3_column_text(row, 4);
    const bool has_ended = sqlite3_column_type(row, 3) != SQLITE_NULL;
    unsigned kind = WHY_LASTING;
    while (kind < WHY_LASTING_END &&
           (!name || strcmp(name, why_cause_name((enum why_cause_kind)kind)) != 0))
        kind++;
    if (kind == WHY_LASTING_END)
        return STATUS_OK;
    if (!ARRAY_RESERVE(&of->spans, &of->span_room, of->span_count + 1))
        return error_no_memory(err, "store");
    of->spans[of->span_count++] =
        (struct why_span){.kind = (enum why_cause_kind)kind,
                          .host = sqlite3_column_int64(row, 0),
                          .device = sqlite3_column_int64(row, 1),
                          .since_ns = sqlite3_column_int64(row, 2),
                          .until_ns = has_ended ? sqlite3_column_int64(row, 3) : reader->until_ns,
                          .weight = fmin(fmax(sqlite3_column_double(row, 5), 0), 1)};
    return STATUS_OK;
}

// Events; the record of an end has the same start as that of the beginning (query_events.c).  What
// follows an event of a moment may be due to it.
static const char events_sql[] =
    "SELECT host, device, started_ns, iif(lasted > 0, started_ns + lasted, iif(lasted = 0,"
    " started_ns + $6, iif(\"end\" = 0, NULL, ended))) AS until,"
    " (SELECT n.text FROM main.name n WHERE n.id = event), 1 FROM (SELECT r.host,"
    " coalesce(t.device, 0) AS device, t.event, t.started_ns, max(t.duration_ns) AS lasted,"
    " r.\"end\", coalesce(r.ended_ns, r.heard_ns) AS ended FROM (SELECT * FROM main.event"
    " WHERE started_ns >= $3 AND started_ns < $2 ORDER BY started_ns DESC LIMIT $4) t"
    " CROSS JOIN main.run r ON r.run = t.run WHERE $5 IN (0, r.host)"
    " GROUP BY t.run, t.device, t.event, t.started_ns, t.code)"
    " WHERE until IS NULL OR until >= $1";

#define RUNNING(table)                                                                             \
    " FROM (SELECT * FROM main." table " WHERE started_ns >= $3 AND started_ns < $2"               \
    " AND started_ns + duration_ns > $1 ORDER BY started_ns DESC LIMIT $4) t"                      \
    " CROSS JOIN main.run r ON r.run = t.run"

static const char loads_sql[] =
    "SELECT r.host, 0, t.started_ns, t.started_ns + t.duration_ns, 'load', 1" RUNNING(
        "load") " WHERE $5 IN (0, r.host)";

// Copies and starvation, for shares of a pipeline's time.
static const char pipelines_sql[] =
    "SELECT r.host, coalesce(t.device, 0), t.started_ns, t.started_ns + t.duration_ns, c.name,"
    " CAST(iif(c.name = 'copy', t.copy_busy_ns, t.copy_starved_ns) AS REAL)"
    " / nullif(t.duration_ns, 0)" RUNNING(
        "pipeline") " CROSS JOIN (SELECT 'copy' AS name UNION ALL SELECT 'starvation') c"
                    " WHERE $5 IN (0, r.host)";

// Adds the spans that a time overlaps.
static enum status sample_spans(struct why_reader *of, int64_t since_ns, int64_t until_ns,
                                struct error *err)
{
    static const struct {
        const char *sql;
        int64_t before_ns; // the most by which it began before the time
    } kinds[] = {
        {events_sql, DAY_NS}, {loads_sql, EVENTS_BEFORE_NS}, {pipelines_sql, EVENTS_BEFORE_NS}};
    struct span_reader reader = {of, until_ns};
    enum status status = STATUS_OK;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds && status == STATUS_OK; i++) {
        const int64_t numbers[] = {
            since_ns,     until_ns, saturate_add(since_ns, -kinds[i].before_ns),
            SAMPLE_SPANS, of->host, WHY_WINDOW_NS};
        sqlite3_str *sql = sqlite3_str_new(of->store->db);
        sqlite3_str_appendall(sql, kinds[i].sql);
        status = reader_scan_with(of->store, sql, NULL, numbers, 6, on_span, &reader, err);
    }
    return status;
}

enum status why_read_spans(struct why_reader *reader, struct error *err)
{
    bool has_days = false;
    for (size_t i = 0; i < reader->count; i++)
        has_days = has_days || (reader->entries[i].is_slow && reader->entries[i].has_days);
    enum status status =
        sample_spans(reader, reader->out->since_ns - WHY_BEFORE_WINDOWS * reader->window_ns,
                     reader->out->as_of_ns + 1, err);
    for (int64_t day = NOW_DAYS; has_days && day > 0 && status == STATUS_OK; day--) {
        int64_t from_ns, to_ns;
        find_day(reader, day, &from_ns, &to_ns);
        status = sample_spans(reader, from_ns, to_ns, err);
    }
    return status == STATUS_OK ? device_names_read(&reader->names, reader->store, err) : status;
}

// ---- Settings ---------------------------------------------------------------------------------

static enum status read_environment(struct environment *out, struct store *store,
                                    const struct why_request *request, int64_t since_ns,
                                    struct error *err)
{
    const struct sample_key key = {
        .kind = RECORD_KIND_INFERENCE, .subject = request->model, .device = request->device};
    const struct query_filter filter = {.since_ns = since_ns};
    struct samples samples = {.runs.width = 1};
    struct sample_group *group;
    size_t number;
    enum status status = samples_group(&samples, &key, &group, err);
    if (status == STATUS_OK && key_index_add(&samples.runs, &request->run, &number) != STATUS_OK)
        status = error_no_memory(err, "store");
    if (status == STATUS_OK)
        status = environment_collect(out, store, &samples, &filter, err);
    samples_deinit(&samples);
    return status;
}

enum status why_read_settings(struct why_reader *reader, struct why_entry *entry, struct error *err)
{
    const struct why_series *series = &entry->series;
    struct store *store = reader->store;
    struct environment sides[WHY_SIDES] = {{0}};
    const struct why_request *newest[WHY_SIDES];
    for (int i = 0; i < WHY_SIDES; i++)
        newest[i] = series->of[i][series->counts[i] - 1];
    if (newest[WHY_NOW]->run == newest[WHY_USUAL]->run)
        return STATUS_OK;
    sqlite3_str *text = sqlite3_str_new(store->db);
    enum status status = STATUS_OK;
    for (int i = 0; i < WHY_SIDES && status == STATUS_OK; i++)
        status = read_environment(&sides[i], store, newest[i], reader->out->since_ns, err);
    for (int decisive = 1; decisive >= 0 && status == STATUS_OK && sqlite3_str_length(text) == 0;
         decisive--)
        status = environment_append_differences(text, store, &sides[WHY_USUAL], &sides[WHY_NOW],
                                                decisive, err);
    if (status == STATUS_OK && sqlite3_str_length(text) > 0) {
        entry->settings = strdup(sqlite3_str_value(text));
        status = entry->settings ? STATUS_OK : error_no_memory(err, "store");
    }
    sqlite3_free(sqlite3_str_finish(text));
    for (int i = 0; i < WHY_SIDES; i++)
        environment_deinit(&sides[i]);
    return status;
}
