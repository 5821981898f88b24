#include "common/store/query/event_cost.h"

#include <math.h>
#include <stdlib.h>

#include <sqlite3.h>

#include "common/core/base/array.h"
#include "common/core/base/saturate.h"
#include "common/store/read/device_names.h"
#include "common/store/read/reader.h"
#include "common/store/read/session.h"

enum { USUAL, DURING, SIDES };

struct request {
    int64_t model, started_ns, first_token_ns, ended_ns;
    int side;              // SIDES: of neither
    double speed, ttft_ns; // NaN: it has none
    double tokens;
};

enum { PARTS = 3 }; // of the time: before, during and after the event

// A second of a part.
struct slot {
    int side; // USUAL or DURING; SIDES: of neither
    double joules, tokens;
    int64_t sampled_ns;
};

struct cost_reader {
    struct store *store;
    const struct event_cost_question *question;
    struct event_span during;
    struct event_span covered; // the time in which all requests have been read
    struct request *requests;
    size_t request_count, request_room;
    size_t part_count; // requests in a part of the time
    int64_t part_last_ns;
    struct event_span parts[PARTS]; // in which energy is looked at
    size_t first_slots[PARTS + 1];
    struct slot *slots;
    int64_t *sampled_until_ns; // by device
    size_t device_room;
};

static int side_of(const struct cost_reader *reader, struct event_span span)
{
    const struct event_span *others = reader->question->others;
    const size_t count = reader->question->other_count;
    if (span.since_ns >= reader->during.since_ns && span.since_ns < reader->during.until_ns)
        return DURING;
    size_t first = 0, end = count;
    while (first < end) { // finds the first that ends after the start of `span`
        const size_t middle = first + (end - first) / 2;
        if (others[middle].until_ns <= span.since_ns)
            first = middle + 1;
        else
            end = middle;
    }
    return first < count && others[first].since_ns < span.until_ns ? SIDES : USUAL;
}

// ---- Requests -------------------------------------------------------------------------------

enum { MODEL, STARTED, TTFT, E2E, SPEED, TOKENS };

static enum status on_request(void *context, sqlite3_stmt *row, struct error *err)
{
    struct cost_reader *reader = context;
    const int64_t started_ns = sqlite3_column_int64(row, STARTED);
    reader->part_count++;
    reader->part_last_ns = started_ns;
    if (!ARRAY_RESERVE(&reader->requests, &reader->request_room, reader->request_count + 1))
        return error_no_memory(err, "store");
    struct request *request = &reader->requests[reader->request_count++];
    *request = (struct request){
        .model = sqlite3_column_int64(row, MODEL),
        .started_ns = started_ns,
        .first_token_ns = saturate_add(started_ns, sqlite3_column_int64(row, TTFT)),
        .ended_ns = saturate_add(started_ns, sqlite3_column_int64(row, E2E)),
        .speed = reader_real(row, SPEED),
        .ttft_ns = reader_real(row, TTFT),
        .tokens = sqlite3_column_double(row, TOKENS),
    };
    request->side =
        side_of(reader, (struct event_span){started_ns, saturate_add(request->ended_ns, 1)});
    return STATUS_OK;
}

// Appends the runs of the host and the names by which they know the event's device; of an event of
// the host, all names of its devices.  A key is equal for names of one device.  $1 is the host, $2
// the device (0: none), $3 the event's run, $4 the start of the time.
static void append_names(sqlite3_str *sql)
{
    sqlite3_str_appendall(
        sql, "WITH wanted(uuid) AS MATERIALIZED (SELECT " DEVICE_NAMES_UUID(
                 "$3", "$2") "),"
                             " ours AS MATERIALIZED (SELECT r.run FROM run r WHERE r.host = $1"
                             " AND r.heard_ns >= $4),"
                             " same(run, name, key) AS MATERIALIZED (SELECT run, name, min(id)"
                             " OVER (PARTITION BY coalesce(uuid, name)) FROM (SELECT o.run, d.name,"
                             " d.uuid, max(d.id) AS id FROM ours o"
                             " CROSS JOIN device d ON d.run = o.run WHERE $2 = 0"
                             " OR " DEVICE_NAMES_SAME(
                                 "d.uuid", "d.name", "(SELECT uuid FROM wanted)",
                                 "$2") " GROUP BY o.run, d.name)"
                                       " UNION SELECT o.run, $2, 0 FROM ours o WHERE NOT EXISTS"
                                       " (SELECT 1 FROM device d WHERE d.run = o.run"
                                       " AND d.name = $2))");
}

// Runs a statement that begins with these names and uses $5 and $6 as the part's start and end.
static enum status scan_part(struct cost_reader *reader, sqlite3_str *sql,
                             const struct event_span *part, row_callback *callback,
                             struct error *err)
{
    const struct event_cost_question *question = reader->question;
    const int64_t numbers[] = {
        question->host, question->device,
        question->run,  saturate_add(question->span.since_ns, -EVENT_COST_AROUND_NS),
        part->since_ns, part->until_ns};
    return reader_scan_with(reader->store, sql, NULL, numbers, sizeof numbers / sizeof *numbers,
                            callback, reader, err);
}

// Narrows a part of the time, to its end or to its start, to so many requests of all hosts as may
// be looked at.
static enum status narrow_part(const struct cost_reader *reader, struct event_span *part,
                               bool from_end, struct error *err)
{
    const int64_t numbers[] = {part->since_ns, part->until_ns, reader->question->rows_max};
    int64_t *edge_ns = from_end ? &part->since_ns : &part->until_ns;
    sqlite3_str *sql = sqlite3_str_new(reader->store->db);
    sqlite3_str_appendf(sql,
                        "SELECT started_ns FROM inference WHERE started_ns >= $1"
                        " AND started_ns < $2 ORDER BY started_ns %s LIMIT 1 OFFSET $3",
                        from_end ? "DESC" : "ASC");
    return reader_scan_with(reader->store, sql, NULL, numbers, sizeof numbers / sizeof *numbers,
                            reader_on_integer, edge_ns, err);
}

// Reads the requests of the host or device that began in a part of the time, from its end on or
// from its start on, and narrows `part` to what has been read.
static enum status read_part(struct cost_reader *reader, struct event_span *part, bool from_end,
                             struct error *err)
{
    enum status status = narrow_part(reader, part, from_end, err);
    if (status != STATUS_OK)
        return status;
    reader->part_count = 0;
    sqlite3_str *sql = sqlite3_str_new(reader->store->db);
    append_names(sql);
    sqlite3_str_appendf(
        sql,
        " SELECT t.model, t.started_ns, t.ttft_ns, max(t.e2e_ns, 0),"
        " iif(t.generated_tokens >= 2 AND t.decode_ns > 0,"
        " (t.generated_tokens - 1) * 1e9 / t.decode_ns, NULL), coalesce(t.generated_tokens, 0)"
        " FROM inference t WHERE t.started_ns >= $5 AND t.started_ns < $6 AND t.finish <> %d"
        " AND t.run IN (SELECT run FROM ours)"
        " AND ($2 = 0 OR (t.run, t.device) IN (SELECT run, name FROM same))"
        " ORDER BY t.started_ns %s LIMIT %d",
        RECORD_FINISH_ERROR, from_end ? "DESC" : "ASC", EVENT_COST_REQUESTS_MAX);
    status = scan_part(reader, sql, part, on_request, err);
    if (reader->part_count == EVENT_COST_REQUESTS_MAX && from_end)
        part->since_ns = saturate_add(reader->part_last_ns, 1);
    else if (reader->part_count == EVENT_COST_REQUESTS_MAX)
        part->until_ns = reader->part_last_ns;
    return status;
}

static enum status read_requests(struct cost_reader *reader, bool *is_cut, struct error *err)
{
    const struct event_span span = reader->question->span;
    const int64_t until_ns = saturate_add(span.until_ns, EVENT_COST_AROUND_NS);
    struct event_span before = {saturate_add(span.since_ns, -EVENT_COST_AROUND_NS), span.since_ns};
    struct event_span during = reader->during, after = {span.until_ns, until_ns};
    enum status status = read_part(reader, &before, true, err);
    if (status == STATUS_OK)
        status = read_part(reader, &during, true, err);
    if (status == STATUS_OK)
        status = read_part(reader, &after, false, err);
    *is_cut = during.since_ns > span.since_ns;
    reader->covered = (struct event_span){before.since_ns, after.until_ns};
    reader->during.since_ns = during.since_ns;
    return status;
}

// ---- Energy -----------------------------------------------------------------------------------

#define SLOT_NS INT64_C(1000000000)

static int side_of_slot(const struct cost_reader *reader, struct event_span slot)
{
    const int side = side_of(reader, slot);
    const bool is_covered = side == DURING ? slot.until_ns <= reader->during.until_ns
                                           : slot.since_ns >= reader->covered.since_ns &&
                                                 slot.until_ns <= reader->covered.until_ns;
    return is_covered ? side : SIDES;
}

// Divides the parts into slots; what is left of the last second is in none.
static bool make_slots(struct cost_reader *reader)
{
    const struct event_span event = reader->question->span;
    reader->parts[0] =
        (struct event_span){saturate_add(event.since_ns, -EVENT_COST_ENERGY_NS), event.since_ns};
    reader->parts[1] = reader->during;
    reader->parts[2] =
        (struct event_span){event.until_ns, saturate_add(event.until_ns, EVENT_COST_ENERGY_NS)};
    for (size_t i = 0; i < PARTS; i++)
        reader->first_slots[i + 1] =
            reader->first_slots[i] +
            (size_t)((reader->parts[i].until_ns - reader->parts[i].since_ns) / SLOT_NS);
    reader->slots = calloc(reader->first_slots[PARTS] + 1, sizeof *reader->slots);
    for (size_t i = 0; reader->slots && i < PARTS; i++)
        for (size_t slot = reader->first_slots[i]; slot < reader->first_slots[i + 1]; slot++) {
            const int64_t since_ns =
                reader->parts[i].since_ns + (int64_t)(slot - reader->first_slots[i]) * SLOT_NS;
            reader->slots[slot].side =
                side_of_slot(reader, (struct event_span){since_ns, since_ns + SLOT_NS});
        }
    return reader->slots != NULL;
}

// Spreads joules of a sample (`are_joules`) or tokens of a request evenly over the slots.
static void spread(struct cost_reader *reader, struct event_span span, double amount,
                   bool are_joules)
{
    const double length_ns = (double)span.until_ns - (double)span.since_ns;
    for (size_t i = 0; i < PARTS; i++) {
        const struct event_span *part = &reader->parts[i];
        int64_t at = span.since_ns > part->since_ns ? span.since_ns : part->since_ns;
        while (at < span.until_ns && at < part->until_ns) {
            const int64_t number = (at - part->since_ns) / SLOT_NS;
            const size_t place = reader->first_slots[i] + (size_t)number;
            if (place >= reader->first_slots[i + 1])
                break;
            int64_t next = part->since_ns + (number + 1) * SLOT_NS;
            next = next < span.until_ns ? next : span.until_ns;
            struct slot *slot = &reader->slots[place];
            const double share = amount * (double)(next - at) / length_ns;
            slot->joules += are_joules ? share : 0;
            slot->sampled_ns += are_joules ? next - at : 0;
            slot->tokens += are_joules ? 0 : share;
            at = next;
        }
    }
}

enum { SAMPLE_STARTED, SAMPLE_DURATION, SAMPLE_JOULES, SAMPLE_DEVICE };

// Several runs may sample a device: of each sample counts the time that those before it lack.
static enum status on_sample(void *context, sqlite3_stmt *row, struct error *err)
{
    struct cost_reader *reader = context;
    const int64_t started_ns = sqlite3_column_int64(row, SAMPLE_STARTED);
    const size_t device = (size_t)sqlite3_column_int64(row, SAMPLE_DEVICE);
    struct event_span span = {started_ns,
                              saturate_add(started_ns, sqlite3_column_int64(row, SAMPLE_DURATION))};
    const size_t room = reader->device_room;
    if (!ARRAY_RESERVE(&reader->sampled_until_ns, &reader->device_room, device + 1))
        return error_no_memory(err, "store");
    for (size_t i = room; i < reader->device_room; i++)
        reader->sampled_until_ns[i] = INT64_MIN;
    const double joules_per_ns =
        sqlite3_column_double(row, SAMPLE_JOULES) / ((double)span.until_ns - (double)span.since_ns);
    if (span.since_ns < reader->sampled_until_ns[device])
        span.since_ns = reader->sampled_until_ns[device];
    if (span.since_ns >= span.until_ns)
        return STATUS_OK;
    reader->sampled_until_ns[device] = span.until_ns;
    spread(reader, span, joules_per_ns * ((double)span.until_ns - (double)span.since_ns), true);
    return STATUS_OK;
}

// The samples of the device in a part of the time, by their start; of a host those of all its
// devices.
static enum status read_samples(struct cost_reader *reader, const struct event_span *part,
                                struct error *err)
{
    sqlite3_str *sql = sqlite3_str_new(reader->store->db);
    append_names(sql);
    sqlite3_str_appendf(sql,
                        " SELECT t.started_ns, t.duration_ns, t.energy_used_joules,"
                        " dense_rank() OVER (ORDER BY coalesce(s.key, -t.device)) FROM"
                        " (SELECT t.* FROM ours o CROSS JOIN device_sample t ON t.run = o.run"
                        " AND t.started_ns >= $5 AND t.started_ns < $6 LIMIT %d) t"
                        " LEFT JOIN same s ON s.run = t.run AND s.name = t.device"
                        " WHERE t.duration_ns > 0 AND t.energy_used_joules >= 0"
                        " AND ($2 = 0 OR s.run IS NOT NULL) ORDER BY t.started_ns",
                        EVENT_COST_SAMPLES_MAX);
    for (size_t i = 0; i < reader->device_room; i++)
        reader->sampled_until_ns[i] = INT64_MIN;
    return scan_part(reader, sql, part, on_sample, err);
}

static enum status judge_energy(struct event_cost *out, const struct cost_reader *reader)
{
    struct stats_median of[SIDES];
    struct stats_part *parts = calloc(reader->first_slots[PARTS] + 1, sizeof *parts);
    if (!parts)
        return STATUS_NOMEM;
    for (int side = 0; side < SIDES; side++) {
        size_t count = 0;
        for (size_t i = 0; i < reader->first_slots[PARTS]; i++) {
            const struct slot *slot = &reader->slots[i];
            if (slot->side != side || slot->sampled_ns < SLOT_NS / 2)
                continue;
            parts[count++] = (struct stats_part){slot->joules, slot->tokens};
            out->joules += side == DURING ? slot->joules : 0;
        }
        of[side] = stats_rate_of(parts, count, STATS_ERROR_RATE);
    }
    free(parts);
    out->joules_per_token = (struct event_cost_figure){
        of[DURING].median, of[USUAL].median,
        stats_compare(&of[USUAL], &of[DURING], STATS_LESS, STATS_MARGIN_DEFAULT)};
    return STATUS_OK;
}

static enum status add_energy(struct event_cost *out, struct cost_reader *reader, struct error *err)
{
    for (size_t i = 1; i < reader->request_count; i++)
        out->has_several |= reader->requests[i].model != reader->requests[0].model;
    if (out->count == 0 || out->has_several)
        return STATUS_OK;
    if (!make_slots(reader))
        return error_no_memory(err, "store");
    enum status status = STATUS_OK;
    for (size_t i = 0; i < PARTS && status == STATUS_OK; i++)
        status = read_samples(reader, &reader->parts[i], err);
    for (size_t i = 0; i < reader->request_count && status == STATUS_OK; i++) {
        const struct request *request = &reader->requests[i];
        spread(reader, (struct event_span){request->first_token_ns, request->ended_ns},
               request->tokens, false);
        if (store_is_over_budget(reader->store))
            status = error_set(err, STATUS_TIMEOUT, "store: out of time");
    }
    if (status == STATUS_OK && judge_energy(out, reader) != STATUS_OK)
        status = error_no_memory(err, "store");
    return status;
}

// ---- Speed and TTFT -----------------------------------------------------------------------------

static enum status compare_medians(struct event_cost_figure *out, const double *values[SIDES],
                                   const size_t counts[SIDES])
{
    const bool is_serial = counts[USUAL] >= STATS_SERIAL_MIN && counts[DURING] >= STATS_SERIAL_MIN;
    struct stats_sample samples[SIDES];
    struct stats_median of[SIDES];
    enum status status = STATUS_OK;
    for (int side = 0; side < SIDES && status == STATUS_OK; side++) {
        samples[side] = (struct stats_sample){values[side], NULL, counts[side],
                                              is_serial ? STATS_SERIAL : STATS_INDEPENDENT};
        status = stats_quantile_of(&of[side], &samples[side], 0.5, STATS_ERROR_RATE);
    }
    if (status != STATUS_OK)
        return status;
    *out = (struct event_cost_figure){
        of[DURING].median, of[USUAL].median, {NAN, NAN, NAN, STATS_UNDECIDED}};
    if (is_serial)
        out->effect = stats_compare(&of[USUAL], &of[DURING], STATS_NEITHER, STATS_MARGIN_DEFAULT);
    else if (counts[USUAL] >= STATS_FEW_MIN && counts[DURING] >= STATS_FEW_MIN)
        status = stats_compare_few(&out->effect, &samples[USUAL], &samples[DURING], STATS_NEITHER,
                                   STATS_MARGIN_DEFAULT, STATS_ERROR_RATE);
    return status;
}

// Compares a value of the model's requests; `values` has room for all requests twice.
static enum status judge_value(struct event_cost_figure *out, const struct cost_reader *reader,
                               int64_t model, bool is_ttft, double *values)
{
    const double *of[SIDES] = {values, values + reader->request_count};
    size_t counts[SIDES] = {0};
    const struct event_span during = reader->during;
    const bool has_edge =
        saturate_add(during.since_ns, EVENT_COST_EDGE_LEAST_NS) <= during.until_ns;
    const int64_t edge_ns = during.until_ns - (has_edge ? EVENT_COST_EDGE_NS : 0);
    for (size_t i = 0; i < reader->request_count; i++) {
        const struct request *request = &reader->requests[i];
        const double value = is_ttft ? request->ttft_ns : request->speed;
        if (request->side == DURING && request->started_ns >= edge_ns)
            continue;
        if (request->model == model && request->side != SIDES && isfinite(value))
            values[(size_t)request->side * reader->request_count + counts[request->side]++] = value;
    }
    return compare_medians(out, of, counts);
}

static enum status judge_models(struct event_cost *out, const struct cost_reader *reader,
                                struct error *err)
{
    double *values = calloc(2 * reader->request_count + 1, sizeof *values);
    enum status status = values ? STATUS_OK : STATUS_NOMEM;
    for (size_t i = 0; i < out->count && status == STATUS_OK; i++) {
        struct event_cost_model *model = &out->models[i];
        status = judge_value(&model->tokens_per_second, reader, model->model, false, values);
        if (status == STATUS_OK)
            status = judge_value(&model->ttft_ns, reader, model->model, true, values);
    }
    free(values);
    return status == STATUS_OK ? status : error_no_memory(err, "store");
}

static struct event_cost_model *find_model(const struct event_cost *cost, int64_t model)
{
    for (size_t i = 0; i < cost->count; i++)
        if (cost->models[i].model == model)
            return &cost->models[i];
    return NULL;
}

static enum status count_models(struct event_cost *out, const struct cost_reader *reader,
                                struct error *err)
{
    size_t room = 0;
    for (size_t i = 0; i < reader->request_count; i++) {
        const struct request *request = &reader->requests[i];
        struct event_cost_model *model = find_model(out, request->model);
        if (request->side != DURING)
            continue;
        if (!model) {
            if (!ARRAY_RESERVE(&out->models, &room, out->count + 1))
                return error_no_memory(err, "store");
            model = &out->models[out->count++];
            *model = (struct event_cost_model){.model = request->model};
        }
        model->requests++;
        model->tokens += request->tokens;
    }
    for (size_t i = 0; i < reader->request_count; i++) {
        struct event_cost_model *model = find_model(out, reader->requests[i].model);
        if (model && reader->requests[i].side == USUAL)
            model->usual_requests++;
    }
    return STATUS_OK;
}

// ---- All together -------------------------------------------------------------------------------

void event_cost_deinit(struct event_cost *cost)
{
    free(cost->models);
    *cost = (struct event_cost){0};
}

enum status event_cost_read(struct event_cost *out, struct store *store,
                            const struct event_cost_question *question, struct error *err)
{
    const struct event_cost_figure unknown = {NAN, NAN, {NAN, NAN, NAN, STATS_UNDECIDED}};
    struct cost_reader reader = {.store = store, .question = question, .during = question->span};
    const int64_t latest_ns = saturate_add(question->span.until_ns, -EVENT_COST_LONGEST_NS);
    *out = (struct event_cost){.joules_per_token = unknown};
    if (reader.during.since_ns < latest_ns)
        reader.during.since_ns = latest_ns;
    enum status status = STATUS_OK;
    if (reader.during.since_ns < reader.during.until_ns)
        status = read_requests(&reader, &out->is_cut, err);
    if (status == STATUS_OK)
        status = count_models(out, &reader, err);
    if (status == STATUS_OK)
        status = judge_models(out, &reader, err);
    if (status == STATUS_OK)
        status = add_energy(out, &reader, err);
    free(reader.requests);
    free(reader.slots);
    free(reader.sampled_until_ns);
    return status;
}
