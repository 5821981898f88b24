#include "common/store/why/why.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/core/base/array.h"
#include "common/store/query/now.h"
#include "common/store/why/why_reader.h"
#include "common/store/read/reader.h"
#include "common/store/read/session.h"

#define SECOND_NS INT64_C(1000000000)
#define MINUTE_NS (60 * SECOND_NS)
#define HOUR_NS   (60 * MINUTE_NS)
#define DAY_NS    (24 * HOUR_NS)

enum status why_go_on(const struct why_reader *reader, struct error *err)
{
    return store_is_over_budget(reader->store)
               ? error_set(err, STATUS_TIMEOUT, "store: out of time")
               : STATUS_OK;
}

// ---- Series -------------------------------------------------------------------------------------

static int by_series(const void *left, const void *right)
{
    const struct why_request *a = *(const struct why_request *const *)left;
    const struct why_request *b = *(const struct why_request *const *)right;
    const int64_t pairs[][2] = {{a->model, b->model},           {a->host, b->host},
                                {a->device, b->device},         {a->side, b->side},
                                {a->started_ns, b->started_ns}, {a->run, b->run}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        if (pairs[i][0] != pairs[i][1])
            return pairs[i][0] < pairs[i][1] ? -1 : 1;
    return 0;
}

// Whether enough former days have enough requests.
static bool has_enough_days(const struct why_request *const *requests, size_t count)
{
    unsigned days = 0;
    size_t of_day = 0;
    for (size_t i = 0; i < count; i++) {
        const bool is_next =
            i > 0 && requests[i]->started_ns - requests[i - 1]->started_ns > DAY_NS / 2;
        of_day = is_next ? 1 : of_day + 1;
        days += of_day == NOW_REQUESTS_LEAST;
    }
    return days >= NOW_DAYS_LEAST;
}

// `first` is the place of its requests, of which the sides have `counts`.
static enum status add_entry(struct why_reader *reader, const struct why_request **first,
                             const size_t counts[WHY_READ], struct error *err)
{
    const size_t before = counts[WHY_NOW] + counts[WHY_USUAL];
    if (counts[WHY_NOW] == 0)
        return STATUS_OK;
    if (!ARRAY_RESERVE(&reader->entries, &reader->room, reader->count + 1))
        return error_no_memory(err, "store");
    struct why_entry *entry = &reader->entries[reader->count++];
    *entry = (struct why_entry){
        .model = (*first)->model, .host = (*first)->host, .device = (*first)->device};
    entry->has_days = has_enough_days(first + before, counts[WHY_DAYS]);
    const int side = entry->has_days ? WHY_DAYS : WHY_USUAL;
    entry->series =
        (struct why_series){.of = {first, first + (entry->has_days ? before : counts[WHY_NOW])},
                            .counts = {counts[WHY_NOW], counts[side]},
                            .rates = {(double)counts[WHY_NOW] / reader->seconds[WHY_NOW],
                                      (double)counts[side] / reader->seconds[side]},
                            .window_ns = reader->window_ns};
    return STATUS_OK;
}

static bool is_same_series(const struct why_request *a, const struct why_request *b)
{
    return a->model == b->model && a->host == b->host && a->device == b->device;
}

static enum status make_entries(struct why_reader *reader, struct error *err)
{
    const size_t count = reader->request_count;
    reader->order = calloc(count + 1, sizeof *reader->order);
    reader->merged = calloc(count + 1, sizeof *reader->merged);
    reader->ranked = calloc(count + 1, sizeof *reader->ranked);
    reader->values = calloc(count + 1, sizeof *reader->values);
    if (!reader->order || !reader->merged || !reader->ranked || !reader->values)
        return error_no_memory(err, "store");
    for (size_t i = 0; i < count; i++)
        reader->order[i] = &reader->requests[i];
    qsort(reader->order, count, sizeof *reader->order, by_series);
    enum status status = STATUS_OK;
    for (size_t i = 0; i < count && status == STATUS_OK;) {
        const struct why_request **first = &reader->order[i];
        size_t counts[WHY_READ] = {0};
        for (; i < count && is_same_series(*first, reader->order[i]); i++)
            counts[reader->order[i]->side]++;
        status = why_go_on(reader, err);
        if (status == STATUS_OK)
            status = add_entry(reader, first, counts, err);
    }
    return status;
}

// ---- Models -------------------------------------------------------------------------------------

static enum status compare_models(struct why_reader *reader, struct error *err)
{
    struct why *why = reader->out;
    enum status status = STATUS_OK;
    for (size_t i = 0; i < reader->count && status == STATUS_OK;) {
        if (!ARRAY_RESERVE(&why->subjects, &reader->subject_room, why->subject_count + 1))
            return error_no_memory(err, "store");
        struct why_subject *subject = &why->subjects[why->subject_count++];
        *subject = (struct why_subject){.first = i};
        while (i < reader->count &&
               reader->entries[i].model == reader->entries[subject->first].model)
            i++;
        subject->end = i;
        status = why_compare_model(reader, subject, err);
    }
    return status;
}

static enum status explain_models(struct why_reader *reader, struct error *err)
{
    bool has_slow = false;
    for (size_t i = 0; i < reader->out->subject_count; i++)
        has_slow = has_slow || reader->out->subjects[i].verdict == STATS_WORSE;
    enum status status = has_slow ? why_read_spans(reader, err) : STATUS_OK;
    for (size_t i = 0; i < reader->out->subject_count && status == STATUS_OK; i++) {
        status = why_split_model(reader, &reader->out->subjects[i], err);
        if (status == STATUS_OK)
            status = why_add_model(reader, i, err);
    }
    return status;
}

// ---- All together -------------------------------------------------------------------------------

// Processes first, then that all requests failed, parts of differences, losses and verdicts.  Parts
// model by model, the one that is slowest against its usual first; by their shares, but what is
// unexplained last.
static int rank_of(const struct why_cause *cause)
{
    if (cause->kind <= WHY_SILENT)
        return 0;
    return cause->kind <= WHY_FAILED || cause->kind > WHY_UNEXPLAINED ? (int)cause->kind
                                                                      : WHY_UNEXPLAINED;
}

static int by_rank(const void *left, const void *right)
{
    const struct why_cause *a = left, *b = right;
    const bool is_rest = a->kind == WHY_UNEXPLAINED, is_other_rest = b->kind == WHY_UNEXPLAINED;
    const int ranks = rank_of(a) - rank_of(b);
    if (ranks != 0 || a->kind <= WHY_FAILED)
        return ranks;
    if (a->subject != b->subject)
        return a->excess > b->excess || (!(b->excess > a->excess) && a->subject < b->subject) ? -1
                                                                                              : 1;
    if (is_rest != is_other_rest)
        return is_rest ? 1 : -1;
    return (a->share < b->share) - (a->share > b->share);
}

static enum status find_name(struct why_reader *reader, enum query_dimension dimension,
                             const char *name, int64_t *out, struct error *err)
{
    struct query_filter filter = {.since_ns = 0};
    if (!name || !*name)
        return STATUS_OK;
    (void)snprintf(filter.by[dimension], QUERY_TEXT_SIZE, "%s", name);
    enum status status = reader_name(reader->store, &filter, dimension, out, err);
    if (status == STATUS_OK && *out == 0)
        status = error_set(err, STATUS_NO_DATA, "why: the store has no %s %s",
                           query_dimension_name(dimension), name);
    return status;
}

// Sets the window.  The commands of causes name its length, or, where the present is that of a
// file, its start.
static enum status set_window(struct why_reader *reader, int64_t asked_ns, struct error *err)
{
    struct why *out = reader->out;
    enum status status = reader_as_of(reader->store, &out->as_of_ns, err);
    if (status != STATUS_OK)
        return status;
    reader->window_ns =
        asked_ns > 0 ? reader_window_ns(asked_ns, out->as_of_ns, WHY_WINDOW_MAX_NS) : WHY_WINDOW_NS;
    if (reader->window_ns <= 0)
        return error_set(err, STATUS_INVALID, "why: the window begins at most 7 days before now");
    out->since_ns = out->as_of_ns - reader->window_ns;
    if (!reader->store->is_live)
        (void)text_from_time(reader->since, sizeof reader->since, "%Y-%m-%dT%H:%M:%SZ",
                             out->since_ns);
    else
        (void)snprintf(reader->since, sizeof reader->since,
                       reader->window_ns % MINUTE_NS ? "%llds" : "%lldm",
                       (long long)(reader->window_ns /
                                   (reader->window_ns % MINUTE_NS ? SECOND_NS : MINUTE_NS)));
    return STATUS_OK;
}

static enum status begin(struct why_reader *reader, const struct why_question *question,
                         struct error *err)
{
    enum status status = set_window(reader, question->since_ns, err);
    if (status == STATUS_OK)
        status = find_name(reader, QUERY_BY_MODEL, question->model, &reader->model, err);
    if (status == STATUS_OK)
        status = find_name(reader, QUERY_BY_HOST, question->host, &reader->host, err);
    return status;
}

static enum status read_all(struct why_reader *reader, bool with_peers, struct error *err)
{
    enum status status = why_read_requests(reader, err);
    if (status == STATUS_OK)
        status = why_add_processes(reader, err);
    if (status == STATUS_OK)
        status = make_entries(reader, err);
    if (status == STATUS_OK)
        status = compare_models(reader, err);
    if (status == STATUS_OK)
        status = explain_models(reader, err);
    if (status == STATUS_OK && reader->request_count == 0 && reader->failed > 0)
        status = why_add_failed(reader, err);
    if (status == STATUS_OK)
        status = why_add_lasting(reader, err);
    if (status == STATUS_OK)
        status = why_add_losses(reader, err);
    if (status == STATUS_OK && with_peers && reader->host)
        status = why_add_peers(reader, err);
    return status;
}

enum status why_read(struct why *out, struct store *store, const struct why_question *question,
                     struct error *err)
{
    struct why_reader reader = {.store = store, .out = out};
    *out = (struct why){0};
    enum status status = begin(&reader, question, err);
    if (status == STATUS_OK)
        status = read_all(&reader, question->with_peers, err);
    if (status == STATUS_OK && out->cause_count == 0)
        status = error_set(err, STATUS_NO_DATA, "no requests in the window");
    if (status == STATUS_OK)
        qsort(out->causes, out->cause_count, sizeof *out->causes, by_rank);
    for (size_t i = 0; i < reader.count; i++)
        free(reader.entries[i].settings);
    free(reader.entries);
    free(reader.order);
    free(reader.merged);
    free(reader.ranked);
    free(reader.values);
    device_names_deinit(&reader.names);
    free(reader.requests);
    free(reader.spans);
    return status;
}

void why_deinit(struct why *why)
{
    free(why->subjects);
    free(why->causes);
    *why = (struct why){0};
}
