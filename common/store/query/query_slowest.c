// SLOWEST: the slowest requests, each with its excess over the median attributed to phases and
// causes.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

#include "common/store/query/latency_attribution.h"
#include "common/store/query/slowest_peers.h"
#include "common/store/read/filter.h"
#include "common/store/read/reader.h"
#include "common/store/read/answer_cells.h"
#include "common/store/query/query_list.h"
#include "common/store/read/session.h"
#include "common/store/schema/schema_select.h"

enum {
    SLOWEST_DEFAULT = 10,
    SLOWEST_MAX = 1000,
    PEERS_LEAST = 5,   // requests for a median to say what is usual
    BEFORE_MAX = 4096, // requests that began before a slow one ended, at which it looks
};

#define EXCESS_COLUMN(name, text) {text "_excess_ns", UNIT_DURATION},
static const struct answer_column columns[] = {
    {"run", UNIT_NONE},
    {"host", UNIT_NONE},
    {"model", UNIT_NONE},
    {"device", UNIT_NONE},
    {"request", UNIT_NONE},
    {"finish", UNIT_NONE},
    {"started_ns", UNIT_TIME},
    {"metric", UNIT_NONE},
    {"value", UNIT_NONE}, // in the metric's unit
    {"e2e_ns", UNIT_DURATION},
    {"queue_ns", UNIT_DURATION},
    {"prefill_ns", UNIT_DURATION},
    {"decode_ns", UNIT_DURATION},
    {"prompt_tokens", UNIT_TOKENS},
    {"cached_prompt_tokens", UNIT_TOKENS},
    {"generated_tokens", UNIT_TOKENS},
    {"items", UNIT_COUNT},
    {"concurrent_requests", UNIT_COUNT},
    {"peers", UNIT_COUNT},
    {"took_ns", UNIT_DURATION},
    {"median_ns", UNIT_DURATION},
    {"excess_ns", UNIT_DURATION},
    ATTRIBUTION_PARTS(EXCESS_COLUMN){"blame", UNIT_NONE},
    {"throttle_reasons", UNIT_NONE},
    {"note", UNIT_NONE},
    {"expired_ns", UNIT_TIME}, // requests before are gone; null: none
};
#undef EXCESS_COLUMN

enum { VALUE_COLUMN = 8, PARTS_COLUMN = 22 };

// The duration and the phases that a metric is about.  For a rate, the request is compared with
// the time that its work takes at the median rate.
struct scope {
    const char *metric;
    enum median whole;
    bool phases[ATTRIBUTION_PHASES];
    bool is_rate;
};

static const struct scope scopes[] = {
    {"e2e_ns", MEDIAN_E2E, {true, true, true}, false},
    {"ttft_ns", MEDIAN_TTFT, {[PHASE_QUEUE] = true, [PHASE_PREFILL] = true}, false},
    {"queue_ns", MEDIAN_QUEUE, {[PHASE_QUEUE] = true}, false},
    {"prefill_ns", MEDIAN_PREFILL, {[PHASE_PREFILL] = true}, false},
    {"prefill_tokens_per_second", MEDIAN_PREFILL, {[PHASE_PREFILL] = true}, true},
    {"decode_ns", MEDIAN_DECODE, {[PHASE_DECODE] = true}, false},
    {"tokens_per_second", MEDIAN_DECODE, {[PHASE_DECODE] = true}, true},
    {"tpot_ns", MEDIAN_DECODE, {[PHASE_DECODE] = true}, true},
    {"itl_max_ns", MEDIAN_DECODE, {[PHASE_DECODE] = true}, true},
    {"itl_p99_ns", MEDIAN_DECODE, {[PHASE_DECODE] = true}, true},
};

// One slow request.
struct request {
    double value;              // of the metric asked for
    const struct peers *peers; // what it is compared with
    int64_t run, host, model, device, number, finish, started_ns;
    int64_t queue_ns, prefill_ns, e2e_ns;          // prefill_ns: SLOWEST_COMPUTED
    int64_t ttft_ns, decode_ns, concurrent, items; // below 0: absent
    int64_t prompt_tokens, cached_tokens, generated_tokens;
};

struct answer {
    struct store *store;
    const struct query *query;
    const struct query_metric *metric;
    const struct scope *scope;
    struct request *requests; // the slowest first
    size_t count, limit;
    struct groups *peers; // by model and device: struct peers
    int64_t expired_ns;   // requests that the filter covers, until then; 0: none
    int64_t unsampled_ns; // samples of devices that it covers, until then; 0: none
    struct result *result;
};

// ---- The metric ------------------------------------------------------------------

static enum status choose_metric(struct answer *answer, struct error *err)
{
    const char *name = answer->query->metric[0] ? answer->query->metric : "e2e_ns";
    const char *dot = strchr(name, '.');
    const bool with_kind = dot && strncmp(name, "inference.", (size_t)(dot + 1 - name)) == 0;
    char full[QUERY_TEXT_SIZE + 16];
    (void)sqlite3_snprintf(sizeof full, full, dot ? "%s" : "inference.%s", name);
    for (size_t i = 0; i < sizeof scopes / sizeof *scopes; i++)
        if (strcmp(scopes[i].metric, with_kind ? dot + 1 : name) == 0)
            answer->scope = &scopes[i];
    enum status status = query_metric_find(&answer->metric, full, err);
    if (status == STATUS_OK && !answer->scope)
        status = error_set(err, STATUS_INVALID,
                           "%s: requests are not slow in that, but in e2e_ns, ttft_ns, queue_ns,"
                           " prefill_ns, decode_ns, tpot_ns, itl_max_ns, itl_p99_ns,"
                           " tokens_per_second or prefill_tokens_per_second",
                           name);
    return status;
}

// ---- The requests -------------------------------------------------------------------

// Keeps sums of times within 64 bits, whatever the store holds.
static int64_t clamp(int64_t ns)
{
    return ns < 0 ? 0 : ns < ATTRIBUTION_TIME_MAX_NS ? ns : ATTRIBUTION_TIME_MAX_NS;
}

static int64_t column_or_absent(sqlite3_stmt *row, int place)
{
    return sqlite3_column_type(row, place) == SQLITE_NULL ? -1
                                                          : clamp(sqlite3_column_int64(row, place));
}

static enum status on_request(void *context, sqlite3_stmt *row, struct error *err)
{
    (void)err;
    struct answer *answer = context;
    answer->requests[answer->count++] = (struct request){
        .value = sqlite3_column_double(row, 0),
        .run = sqlite3_column_int64(row, 1),
        .host = sqlite3_column_int64(row, 2),
        .model = sqlite3_column_int64(row, 3),
        .device = sqlite3_column_int64(row, 4),
        .number = sqlite3_column_int64(row, 5),
        .finish = sqlite3_column_int64(row, 6),
        .started_ns = sqlite3_column_int64(row, 7),
        .queue_ns = clamp(sqlite3_column_int64(row, 8)),
        .prefill_ns = clamp(sqlite3_column_int64(row, 9)),
        .e2e_ns = clamp(sqlite3_column_int64(row, 10)),
        .ttft_ns = column_or_absent(row, 11),
        .decode_ns = column_or_absent(row, 12),
        .concurrent = column_or_absent(row, 13),
        .prompt_tokens = sqlite3_column_int64(row, 14),
        .cached_tokens = sqlite3_column_int64(row, 15),
        .generated_tokens = sqlite3_column_int64(row, 16),
        .items = column_or_absent(row, 17),
    };
    return STATUS_OK;
}

// Of times the highest, of rates the lowest.  Reads every request in the window, within
// the query's budget.
static enum status read_requests(struct answer *answer, struct error *err)
{
    const struct query_metric *metric = answer->metric;
    const struct query_filter *filter = &answer->query->filter;
    answer->requests = calloc(answer->limit, sizeof *answer->requests);
    if (!answer->requests)
        return error_no_memory(err, "store");
    sqlite3_str *sql = sqlite3_str_new(answer->store->db);
    sqlite3_str_appendall(sql, "SELECT ");
    schema_select_metric(sql, metric);
    sqlite3_str_appendall(
        sql, " AS value, t.run, (SELECT r.host FROM run r WHERE r.run = t.run),"
             " t.model, t.device, t.request, t.finish, t.started_ns, t.queue_ns,"
             " " SLOWEST_COMPUTED ", t.e2e_ns, t.ttft_ns, t.decode_ns, t.concurrent_requests,"
             " t.prompt_tokens, t.cached_prompt_tokens, t.generated_tokens, t.items"
             " FROM inference t");
    filter_where(sql, metric->kind, filter);
    if (answer->query->cursor != 0)
        sqlite3_str_appendf(sql, " AND t.started_ns = %lld", (long long)answer->query->cursor);
    sqlite3_str_appendf(sql, " AND value IS NOT NULL ORDER BY value %s, t.id LIMIT %d",
                        metric->unit == UNIT_DURATION ? "DESC" : "ASC", (int)answer->limit);
    return reader_scan(answer->store, sql, filter, on_request, answer, err);
}

static enum status read_peers(struct answer *answer, struct error *err)
{
    if (groups_new(&answer->peers, 2, sizeof(struct peers), NULL) != STATUS_OK)
        return error_no_memory(err, "store");
    enum status status = STATUS_OK;
    for (size_t i = 0; i < answer->count && status == STATUS_OK; i++) {
        struct request *request = &answer->requests[i];
        struct group *group = NULL;
        status =
            reader_group(answer->peers, (int64_t[]){request->model, request->device}, &group, err);
        if (status == STATUS_OK)
            request->peers = group->data;
    }
    return status == STATUS_OK
               ? slowest_peers_read(answer->peers, answer->store, &answer->query->filter,
                                    answer->scope->whole, err)
               : status;
}

// ---- Attribution -----------------------------------------------------------------------

static int64_t median_ns(const struct peers *peers, enum median median)
{
    const double value = peers->medians[median];
    return value > 0 ? clamp(value < 0x1p60 ? llround(value) : ATTRIBUTION_TIME_MAX_NS) : 0;
}

static bool has_median(const struct peers *peers, enum median median)
{
    return !isnan(peers->medians[median]);
}

// The median time of one token; 0: not known.
static double unit_ns(const struct peers *peers, enum median rate)
{
    return peers->medians[rate] > 0 ? 1e9 / peers->medians[rate] : 0;
}

static double tokens_beyond(int64_t tokens, double usual)
{
    return isnan(usual) ? 0 : (double)tokens - usual;
}

// The request's own time, of which `whole` is the median.
static int64_t whole_ns(const struct request *request, enum median whole)
{
    const int64_t times[MEDIAN_COUNT] = {
        [MEDIAN_E2E] = request->e2e_ns,         [MEDIAN_QUEUE] = request->queue_ns,
        [MEDIAN_PREFILL] = request->prefill_ns, [MEDIAN_TTFT] = request->ttft_ns,
        [MEDIAN_DECODE] = request->decode_ns,
    };
    return times[whole];
}

static struct concurrent_events_request place_in_time(const struct request *request)
{
    const int64_t phases[ATTRIBUTION_PHASES] = {request->queue_ns, request->prefill_ns,
                                                request->decode_ns};
    struct concurrent_events_request place = {
        .run = request->run, .host = request->host, .device = request->device};
    concurrent_events_place(&place, request->started_ns, phases);
    return place;
}

// Of a request of items: its computing is one phase, and its work are items.
static struct attribution_times compute_phase(const struct request *request,
                                              const struct peers *peers)
{
    const int64_t median =
        median_ns(peers, MEDIAN_E2E) - median_ns(peers, MEDIAN_QUEUE); // of the peers
    return (struct attribution_times){
        .known = has_median(peers, MEDIAN_E2E) && has_median(peers, MEDIAN_QUEUE),
        .took_ns = request->prefill_ns,
        .median_ns = median > 0 ? median : 0,
        .more_units = tokens_beyond(request->items, peers->medians[MEDIAN_ITEMS]),
        .unit_ns = unit_ns(peers, MEDIAN_ITEM_RATE),
    };
}

static void set_phases(struct attribution *attribution, const struct request *request,
                       const struct peers *peers, const struct concurrent_events *events)
{
    const double usual_prompt = peers->medians[MEDIAN_PROMPT] - peers->medians[MEDIAN_CACHED];
    const bool has_failed =
        request->finish == RECORD_FINISH_ERROR || request->finish == RECORD_FINISH_CANCELLED;
    const bool is_computed = request->ttft_ns >= 0 || !has_failed; // its prompt
    const int64_t prompt = request->prompt_tokens - request->cached_tokens;
    attribution->phases[PHASE_QUEUE] = (struct attribution_times){
        .known = has_median(peers, MEDIAN_QUEUE),
        .took_ns = request->queue_ns,
        .median_ns = median_ns(peers, MEDIAN_QUEUE),
    };
    attribution->phases[PHASE_PREFILL] = (struct attribution_times){
        .known = has_median(peers, MEDIAN_PREFILL) && request->prefill_ns > 0, // else refused
        .took_ns = request->prefill_ns,
        .median_ns = median_ns(peers, MEDIAN_PREFILL),
        .more_units = is_computed ? tokens_beyond(prompt, usual_prompt) : 0,
        .unit_ns = unit_ns(peers, MEDIAN_PREFILL_RATE),
    };
    if (request->items >= 0)
        attribution->phases[PHASE_PREFILL] = compute_phase(request, peers);
    attribution->phases[PHASE_DECODE] = (struct attribution_times){
        .known = has_median(peers, MEDIAN_DECODE) && request->decode_ns >= 0,
        .took_ns = request->decode_ns,
        .median_ns = median_ns(peers, MEDIAN_DECODE),
        .more_units = tokens_beyond(request->generated_tokens, peers->medians[MEDIAN_GENERATED]),
        .unit_ns = unit_ns(peers, MEDIAN_DECODE_RATE),
    };
    for (unsigned i = 0; i < ATTRIBUTION_PHASES; i++) {
        struct attribution_times *phase = &attribution->phases[i];
        for (unsigned cause = 0; cause < ATTRIBUTION_CAUSES; cause++)
            phase->overlap_ns[cause] = attribution_beyond_usual_ns(
                events->ns[i][cause], phase->took_ns, peers->usual_shares[i][cause]);
        if (i != PHASE_QUEUE) // those in a queue wait for others, however many these are
            phase->overlap_ns[ATTRIBUTION_CONCURRENCY - ATTRIBUTION_COPY] =
                attribution_concurrency_ns(phase->took_ns, request->concurrent,
                                           peers->medians[MEDIAN_CONCURRENT]);
    }
    // A request waits in the queue before it reaches the device: of the causes only a load or a
    // stop makes this wait longer.
    struct attribution_times *queue = &attribution->phases[PHASE_QUEUE];
    for (unsigned i = 0; i < ATTRIBUTION_CAUSES; i++)
        if (ATTRIBUTION_COPY + i != ATTRIBUTION_LOAD && ATTRIBUTION_COPY + i != ATTRIBUTION_STOPPED)
            queue->overlap_ns[i] = 0;
}

// Replaces the median by the time that this much work takes at the median rate.
static void use_rate(struct attribution *attribution, const struct scope *scope,
                     const struct request *request)
{
    for (unsigned i = 0; i < ATTRIBUTION_PHASES; i++) {
        struct attribution_times *phase = &attribution->phases[i];
        const double units =
            (double)(i == PHASE_DECODE ? request->generated_tokens - 1
                                       : request->prompt_tokens - request->cached_tokens);
        const double usual = fmin(fmax(units * phase->unit_ns, 0), 0x1p60);
        if (!scope->phases[i] || !(phase->unit_ns > 0))
            continue;
        phase->median_ns = llround(usual);
        phase->more_units = 0;
        attribution->median_ns = phase->median_ns;
    }
}

static enum status on_other_device(void *context, sqlite3_stmt *row, struct error *err)
{
    (void)row;
    (void)err;
    struct request *request = context;
    request->concurrent = -1;
    return STATUS_OK;
}

// The requests in progress are counted of a process: where they ran on several devices, how many
// were on this one is unknown.
static enum status forget_other_devices(struct request *request, struct store *store,
                                        struct error *err)
{
    const int64_t numbers[] = {request->started_ns > INT64_MAX - request->e2e_ns
                                   ? INT64_MAX
                                   : request->started_ns + request->e2e_ns,
                               EVENTS_BEFORE_NS, BEFORE_MAX, request->run, request->device};
    sqlite3_str *sql = sqlite3_str_new(store->db);
    sqlite3_str_appendall(sql, "SELECT 1 FROM (SELECT run, device FROM main.inference WHERE"
                               " started_ns <= $1 AND started_ns > $1 - $2"
                               " ORDER BY started_ns DESC LIMIT $3)"
                               " WHERE run = $4 AND device <> $5 LIMIT 1");
    return reader_scan_with(store, sql, NULL, numbers, 5, on_other_device, request, err);
}

static enum status add_attribution(struct answer *answer, const struct request *request,
                                   const struct peers *peers, struct error *err)
{
    const struct scope *scope = answer->scope;
    struct attribution attribution = {.took_ns = whole_ns(request, scope->whole)};
    if (attribution.took_ns < 0 || !has_median(peers, scope->whole))
        return STATUS_OK; // such as a rate of a request without the time
    struct concurrent_events events;
    const struct concurrent_events_request place = place_in_time(request);
    struct request alone = *request;
    enum status status = concurrent_events_read(&events, answer->store, &place, err);
    if (status == STATUS_OK && request->concurrent >= 0)
        status = forget_other_devices(&alone, answer->store, err);
    if (status != STATUS_OK)
        return status;
    attribution.median_ns = median_ns(peers, scope->whole);
    set_phases(&attribution, &alone, peers, &events);
    if (scope->is_rate)
        use_rate(&attribution, scope, request);
    for (unsigned i = 0; i < ATTRIBUTION_PHASES; i++)
        attribution.phases[i].known = attribution.phases[i].known && scope->phases[i];
    int64_t parts[ATTRIBUTION_PART_COUNT];
    attribution_split(&attribution, parts);
    answer_int(answer->result, "took_ns", attribution.took_ns);
    answer_int(answer->result, "median_ns", attribution.median_ns);
    answer_int(answer->result, "excess_ns", attribution.took_ns - attribution.median_ns);
    for (unsigned i = 0; i < ATTRIBUTION_PART_COUNT; i++)
        answer_int(answer->result, columns[PARTS_COLUMN + i].key, parts[i]);
    if (events.throttle_reasons)
        answer_int(answer->result, "throttle_reasons", events.throttle_reasons);
    const enum attribution_part most = attribution_main(parts, attribution.median_ns);
    if (most != ATTRIBUTION_PART_COUNT && peers->count >= PEERS_LEAST)
        answer_text(answer->result, "blame", attribution_part_name(most));
    return STATUS_OK;
}

// ---- The answer ----------------------------------------------------------------------

static void set_or_null(struct result *result, const char *key, int64_t value)
{
    if (value >= 0)
        answer_int(result, key, value);
}

static enum status set_names(struct answer *answer, const struct request *request,
                             struct error *err)
{
    const char *finish = column_enum_text(COLUMN_FINISH, request->finish);
    const int64_t names[] = {request->host, request->model, request->device};
    enum status status = answer_run(answer->store, answer->result, 0, request->run, err);
    for (unsigned i = 0; i < 3 && status == STATUS_OK; i++)
        status = answer_name(answer->store, answer->result, 1 + i, names[i], err);
    if (finish)
        answer_text(answer->result, "finish", finish);
    answer_text(answer->result, "metric", answer->metric->name);
    return status;
}

static void set_figures(struct answer *answer, const struct request *request)
{
    struct result *result = answer->result;
    if (answer->metric->derived)
        answer_real(result, "value", request->value);
    else
        answer_int(result, "value", llround(fmin(fmax(request->value, -0x1p62), 0x1p62)));
    answer_int(result, "request", request->number);
    answer_int(result, "started_ns", request->started_ns);
    answer_int(result, "e2e_ns", request->e2e_ns);
    answer_int(result, "queue_ns", request->queue_ns);
    set_or_null(result, "items", request->items);
    if (request->items < 0) {
        answer_int(result, "prefill_ns", request->prefill_ns);
        answer_int(result, "prompt_tokens", request->prompt_tokens);
        answer_int(result, "cached_prompt_tokens", request->cached_tokens);
        answer_int(result, "generated_tokens", request->generated_tokens);
    }
    set_or_null(result, "decode_ns", request->decode_ns);
    set_or_null(result, "concurrent_requests", request->concurrent);
}

static enum status add_row(struct answer *answer, const struct request *request, struct error *err)
{
    answer_row(answer->result);
    enum status status = set_names(answer, request, err);
    set_figures(answer, request);
    const struct peers *peers = request->peers;
    answer_int(answer->result, "peers", (int64_t)peers->count);
    if (answer->expired_ns)
        answer_int(answer->result, "expired_ns", answer->expired_ns);
    if (peers->count < PEERS_LEAST)
        answer_text(answer->result, "note",
                    "too few requests of this model and device to say what is usual");
    else if (request->started_ns < answer->unsampled_ns)
        answer_text(answer->result, "note",
                    "the device's samples have expired: whether clocks were held back is unknown");
    return status == STATUS_OK ? add_attribution(answer, request, peers, err) : status;
}

static enum status add_rows(struct answer *answer, struct result **out, struct error *err)
{
    struct answer_column with_unit[sizeof columns / sizeof *columns];
    memcpy(with_unit, columns, sizeof columns);
    with_unit[VALUE_COLUMN].unit = answer->metric->unit;
    enum status status = answer_new(out, with_unit, sizeof columns / sizeof *columns, err);
    answer->result = *out;
    for (size_t i = 0; i < answer->count && status == STATUS_OK; i++)
        status = add_row(answer, &answer->requests[i], err);
    return status;
}

enum status query_slowest(struct store *store, const struct query *query, struct result **out,
                          struct error *err)
{
    struct answer answer = {
        .store = store, .query = query, .limit = query->limit ? query->limit : SLOWEST_DEFAULT};
    enum status status = choose_metric(&answer, err);
    if (status == STATUS_OK)
        status = filter_check(RECORD_KIND_INFERENCE, &query->filter, err);
    if (status == STATUS_OK && query->limit > SLOWEST_MAX)
        status = error_set(err, STATUS_INVALID, "the slowest are %d at most", SLOWEST_MAX);
    if (status == STATUS_OK)
        status = read_requests(&answer, err);
    if (status == STATUS_OK)
        status = expiry_info_until(store, RECORD_KIND_INFERENCE, &query->filter, &answer.expired_ns,
                                   err);
    if (status == STATUS_OK)
        status = expiry_info_until(store, RECORD_KIND_DEVICE_SAMPLE, &query->filter,
                                   &answer.unsampled_ns, err);
    if (status == STATUS_OK && answer.count == 0)
        status = answer.expired_ns
                     ? expiry_info_error(answer.expired_ns, err)
                     : error_set(err, STATUS_NO_DATA, "no inference.%s in the store that match",
                                 answer.metric->name);
    if (status == STATUS_OK)
        status = read_peers(&answer, err);
    if (status == STATUS_OK)
        status = add_rows(&answer, out, err);
    groups_free(answer.peers);
    free(answer.requests);
    return status;
}
