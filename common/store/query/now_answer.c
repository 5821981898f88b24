#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/core/base/text.h"
#include "common/store/query/now_devices.h"
#include "common/store/query/now_parts.h"
#include "common/store/read/answer_cells.h"
#include "common/store/read/session.h"

static const struct answer_column columns[] = {
    {"model", UNIT_NONE},
    {"host", UNIT_NONE},
    {"state", UNIT_NONE},
    {"since_ns", UNIT_TIME},
    {"reason", UNIT_NONE},
    {"window_ns", UNIT_DURATION},
    {"requests", UNIT_COUNT},
    {"failed", UNIT_COUNT},
    {"error_ratio", UNIT_RATIO},
    {"request_rate", UNIT_REQUEST_RATE},
    {"output_token_rate", UNIT_TOKEN_RATE},
    {"prompt_token_rate", UNIT_TOKEN_RATE},
    {"ttft_p50_ns", UNIT_DURATION},
    {"ttft_p95_ns", UNIT_DURATION},
    {"tokens_per_second_p50", UNIT_TOKENS_PER_SECOND},
    {"tpot_p95_ns", UNIT_DURATION},
    {QUERY_METRIC_ITEM_RATE, UNIT_ITEMS_PER_SECOND},
    {"e2e_p50_ns", UNIT_DURATION},
    {"e2e_p95_ns", UNIT_DURATION},
    {"running_requests", UNIT_COUNT},
    {"waiting_requests", UNIT_COUNT},
    {"gpu_util_ratio", UNIT_RATIO},
    {"device_memory_ratio", UNIT_RATIO},
    {"joules_per_token", UNIT_NONE},
    {"trend", UNIT_NONE},
    {"group_by", UNIT_NONE},
    {"group_size", UNIT_COUNT},
    {"group_live", UNIT_COUNT},
    {"as_of_ns", UNIT_TIME},
    {"note", UNIT_NONE},
    {"store_error", UNIT_NONE},
    {"has_trouble", UNIT_NONE}, // 1, or null
};

// Power is known if its mean is of about as long as the figures.
#define COVERAGE_LEAST 0.9

// Figures of a row, or of a group of rows.
struct figures {
    bool has_requests, makes_items;
    double sums[THROUGHPUT_SUM_COUNT], rates[THROUGHPUT_SUM_COUNT]; // each row's over its window
    double tokens[NOW_PARTS], items[NOW_PARTS];
    int64_t began_ns; // of the longest window
    struct now_device_sums devices;
    double watts, token_rate; // of rows of which the power is known
    int64_t running, waiting; // -1: unknown
    double p50[NOW_METRICS], p95[NOW_METRICS];
};

// ---- Figures of a row and of a group ------------------------------------------------------

static void add_device_sums(struct figures *out, const struct now_device_sums *more)
{
    out->devices.util += more->util;
    out->devices.util_count += more->util_count;
    out->devices.used_bytes += more->used_bytes;
    out->devices.total_bytes += more->total_bytes;
}

static int64_t sum_known(int64_t a, int64_t b)
{
    return b < 0 ? a : a < 0 ? b : a + b;
}

// NULL: there is no such group.
static const void *data_of(const struct groups *groups, const int64_t *keys)
{
    const struct group *group = groups_get(groups, keys);
    return group ? group->data : NULL;
}

static void add_requests(const struct now *now, const struct now_row *row, struct figures *out)
{
    const struct now_figures *figures = data_of(now->figures, row->keys);
    const double seconds = (double)row->window_ns / 1e9;
    out->has_requests = true;
    for (unsigned i = 0; figures && i < THROUGHPUT_SUM_COUNT; i++) {
        out->sums[i] += figures->sums[i];
        out->rates[i] += figures->sums[i] / seconds;
    }
    for (unsigned i = 0; figures && i < NOW_METRICS; i++) {
        out->p50[i] = figures->count[i] > 0 ? figures->p50[i] : (double)NAN;
        out->p95[i] = figures->count[i] > 0 ? figures->p95[i] : (double)NAN;
    }
}

static void add_parts(const struct now_figures *figures, struct figures *out)
{
    for (unsigned i = 0; figures && i < NOW_PARTS; i++) {
        out->tokens[i] += figures->tokens[i];
        out->items[i] += figures->items[i];
        out->makes_items = out->makes_items || figures->has_items;
    }
}

// Adds a row's figures.  The quantiles are those of the row.
static void add_row_figures(const struct now *now, const struct now_row *row, struct figures *out)
{
    const struct now_device_sums *devices = data_of(now->devices, row->keys);
    const int64_t began_ns = now->as_of_ns - row->window_ns;
    out->began_ns = out->began_ns == 0 || began_ns < out->began_ns ? began_ns : out->began_ns;
    out->running = sum_known(out->running, row->running);
    out->waiting = sum_known(out->waiting, row->waiting);
    add_parts(data_of(now->figures, row->keys), out); // also if it is down: since when
    const double before = out->rates[THROUGHPUT_OUTPUT_TOKENS];
    if (row->has_figures && row->keys[0] != GROUP_KEY_NONE)
        add_requests(now, row, out);
    if (!devices || !row->is_live)
        return;
    add_device_sums(out, devices);
    if (devices->watts > 0 && !devices->is_shared &&
        devices->seconds >= COVERAGE_LEAST * (double)row->window_ns / 1e9) {
        out->watts += devices->watts;
        out->token_rate += out->rates[THROUGHPUT_OUTPUT_TOKENS] - before;
    }
}

static struct figures no_figures(void)
{
    struct figures figures = {.running = -1, .waiting = -1};
    for (unsigned i = 0; i < NOW_METRICS; i++)
        figures.p50[i] = figures.p95[i] = (double)NAN;
    return figures;
}

// The quantiles of all requests of a group's rows.
static void set_whole(const struct now_whole *whole, struct figures *out)
{
    for (unsigned i = 0; i < NOW_METRICS; i++) {
        const bool has = whole && whole->ratios[i].values.count > 0;
        out->p50[i] = has ? aggregate_quantile(&whole->ratios[i].values, 0.5) : (double)NAN;
        out->p95[i] = has ? aggregate_quantile(&whole->ratios[i].values, 0.95) : (double)NAN;
    }
}

// ---- Cells --------------------------------------------------------------------------------

// Output per second in each part of the window that is over, oldest first: ",,12.5,13"; of a part
// before the processes began nothing.
static void set_trend(const struct now *now, const struct figures *figures, struct result *answer)
{
    enum { NUMBER = 16 };
    char text[NOW_PARTS * NUMBER] = "";
    double tokens = 0;
    for (unsigned i = 0; i < NOW_PARTS; i++)
        tokens += figures->tokens[i];
    const double *amounts =
        figures->makes_items && tokens < 1e-6 ? figures->items : figures->tokens;
    const int64_t last_ns = now->as_of_ns / now->part_ns * now->part_ns;
    size_t used = 0;
    for (int i = 0; i < NOW_PARTS - 1; i++) {
        const int64_t start_ns = last_ns - (NOW_PARTS - 1 - i) * now->part_ns;
        const int64_t from_ns = start_ns > figures->began_ns ? start_ns : figures->began_ns;
        const int64_t length_ns = start_ns + now->part_ns - from_ns;
        if (i > 0)
            text[used++] = ',';
        if (length_ns > 0) // what rounding leaves is nothing
            used += (size_t)snprintf(text + used, NUMBER - 1, "%.4g",
                                     amounts[i] > 1e-6 ? amounts[i] * 1e9 / (double)length_ns : 0);
    }
    text[used] = '\0';
    answer_text(answer, "trend", text);
}

static void set_requests(const struct figures *figures, struct result *answer)
{
    static const struct {
        const char *name;
        enum throughput_sum sum;
    } rates[] = {{QUERY_METRIC_REQUEST_RATE, THROUGHPUT_REQUESTS},
                 {QUERY_METRIC_OUTPUT_RATE, THROUGHPUT_OUTPUT_TOKENS},
                 {QUERY_METRIC_PROMPT_RATE, THROUGHPUT_PROMPT_TOKENS},
                 {QUERY_METRIC_ITEM_RATE, THROUGHPUT_ITEMS}};
    answer_int(answer, "requests", (int64_t)figures->sums[THROUGHPUT_REQUESTS]);
    answer_int(answer, "failed", (int64_t)figures->sums[THROUGHPUT_FAILED]);
    answer_real(answer, QUERY_METRIC_ERRORS,
                throughput_value(QUERY_METRIC_ERRORS, figures->sums, 0));
    for (size_t i = 0; i < sizeof rates / sizeof *rates; i++)
        if (throughput_applies(rates[i].name, figures->sums))
            answer_real(answer, rates[i].name, figures->rates[rates[i].sum]);
    answer_real(answer, "ttft_p50_ns", figures->p50[NOW_TTFT]);
    answer_real(answer, "ttft_p95_ns", figures->p95[NOW_TTFT]);
    answer_real(answer, "tokens_per_second_p50", figures->p50[NOW_SPEED]);
    answer_real(answer, "tpot_p95_ns", figures->p95[NOW_TPOT]);
    if (figures->sums[THROUGHPUT_ITEMS] > 0) {
        answer_real(answer, "e2e_p50_ns", figures->p50[NOW_E2E]);
        answer_real(answer, "e2e_p95_ns", figures->p95[NOW_E2E]);
    }
}

static void set_figures(const struct now *now, const struct figures *figures, struct result *answer)
{
    const struct now_device_sums *devices = &figures->devices;
    if (now->by >= 0)
        answer_text(answer, "group_by", query_dimension_name(now->query->group_by[0]));
    answer_int(answer, "window_ns", now->as_of_ns - figures->began_ns);
    if (figures->has_requests)
        set_requests(figures, answer);
    if (now->has_parts)
        set_trend(now, figures, answer);
    if (figures->running >= 0)
        answer_int(answer, "running_requests", figures->running);
    if (figures->waiting >= 0)
        answer_int(answer, "waiting_requests", figures->waiting);
    if (devices->util_count > 0)
        answer_real(answer, "gpu_util_ratio", devices->util / (double)devices->util_count);
    if (devices->total_bytes > 0)
        answer_real(answer, "device_memory_ratio", devices->used_bytes / devices->total_bytes);
    if (figures->watts > 0 && figures->token_rate > 0)
        answer_real(answer, "joules_per_token", figures->watts / figures->token_rate);
    answer_int(answer, "as_of_ns", now->as_of_ns);
    if (!now->store->is_live && now->as_of_ns == now->present_ns)
        answer_text(answer, "note", "read from a file: as of its last message");
}

static enum status add_row(const struct now *now, struct result *answer, const struct now_row *row,
                           struct error *err)
{
    answer_row(answer);
    enum status status = answer_name(now->store, answer, 0, row->keys[0], err);
    if (status == STATUS_OK)
        status = answer_name(now->store, answer, 1, row->keys[1], err);
    answer_text(answer, "state", now_state_text(row->verdict.state));
    if (row->verdict.since_ns)
        answer_int(answer, "since_ns", row->verdict.since_ns);
    if (row->verdict.reason[0])
        answer_text(answer, "reason", row->verdict.reason);
    if (row->has_trouble)
        answer_int(answer, "has_trouble", 1);
    struct figures figures = no_figures();
    add_row_figures(now, row, &figures);
    set_figures(now, &figures, answer);
    return status;
}

// ---- Groups -------------------------------------------------------------------------------

static void set_group(const struct now *now, const struct figures *figures, int64_t size,
                      int64_t live, struct result *answer)
{
    answer_int(answer, "group_size", size);
    answer_int(answer, "group_live", live);
    set_figures(now, figures, answer);
}

// Whether a row is what its group is in trouble for.  That of a host is no trouble of one model.
static bool is_bad(const struct now *now, const struct now_row *row)
{
    return row->verdict.state <= NOW_SLOW || (row->has_trouble && now->by == 0);
}

// Rows of one group follow each other.  A group of one row that has not ended needs no row of its
// own.
static enum status add_group(const struct now *now, struct result *answer,
                             const struct now_row *rows, size_t count, struct error *err)
{
    struct figures figures = no_figures();
    int64_t size = 0, live = 0, bad = 0;
    for (size_t i = 0; i < count; i++) {
        if (rows[i].verdict.state == NOW_ENDED)
            continue;
        add_row_figures(now, &rows[i], &figures);
        size++;
        live += rows[i].is_live;
        bad += is_bad(now, &rows[i]);
    }
    if (size < 2)
        return STATUS_OK;
    const bool has_figures = figures.has_requests;
    for (size_t i = 0; i < count && has_figures; i++) // what others ended before they were down
        if (!rows[i].has_figures && rows[i].keys[0] != GROUP_KEY_NONE)
            add_requests(now, &rows[i], &figures);
    char member[QUERY_TEXT_SIZE], reason[QUERY_TEXT_SIZE + NOW_REASON_SIZE + 32];
    (void)answer_name_text(now->store, rows->keys[!now->by], member);
    const bool is_of_one = member[0] && is_bad(now, rows);
    (void)snprintf(reason, sizeof reason, "%s%s%s", is_of_one ? member : "", is_of_one ? ": " : "",
                   rows->verdict.reason);
    if (is_of_one && bad > 1)
        (void)text_append(reason, sizeof reason, "; ", "%lld more in trouble", (long long)bad - 1);
    set_whole(data_of(now->wholes, &rows->keys[now->by]), &figures);
    answer_row(answer);
    enum status status =
        answer_name(now->store, answer, (unsigned)now->by, rows->keys[now->by], err);
    answer_text(answer, "state", now_state_text(rows->verdict.state));
    if (rows->verdict.since_ns)
        answer_int(answer, "since_ns", rows->verdict.since_ns);
    if (reason[0])
        answer_text(answer, "reason", reason);
    if (rows->has_trouble)
        answer_int(answer, "has_trouble", 1);
    set_group(now, &figures, size, live, answer);
    return status;
}

// Sets what all requests of the window did, over the longest window of the rows.
static enum status set_all(struct now *now, struct figures *out, struct error *err)
{
    const double seconds = (double)(now->as_of_ns - out->began_ns) / 1e9;
    struct now_whole all = {0};
    enum status status = STATUS_OK;
    for (unsigned k = 0; k < THROUGHPUT_SUM_COUNT; k++)
        out->sums[k] = 0;
    for (unsigned k = 0; k < NOW_PARTS; k++)
        out->tokens[k] = out->items[k] = 0;
    for (size_t i = 0; i < groups_count(now->figures); i++) {
        const struct now_figures *figures = groups_at(now->figures, i)->data;
        for (unsigned k = 0; k < THROUGHPUT_SUM_COUNT; k++)
            out->sums[k] += figures->sums[k];
        add_parts(figures, out);
    }
    for (unsigned k = 0; k < THROUGHPUT_SUM_COUNT; k++)
        out->rates[k] = out->sums[k] / seconds;
    for (size_t i = 0; i < groups_count(now->wholes) && status == STATUS_OK; i++) {
        const struct now_whole *whole = groups_at(now->wholes, i)->data;
        status = now_whole_add(now, &all, whole->ratios, err);
    }
    set_whole(&all, out);
    now_whole_deinit(&all);
    return status;
}

// The row of all rows.
static enum status add_all(struct now *now, struct result *answer, struct error *err)
{
    struct figures figures = no_figures();
    int64_t size = 0, live = 0;
    for (size_t i = 0; i < now->row_count; i++) {
        add_row_figures(now, &now->rows[i], &figures);
        size += now->rows[i].verdict.state != NOW_ENDED;
        live += now->rows[i].is_live;
    }
    const enum status status = set_all(now, &figures, err);
    answer_row(answer);
    figures.has_requests = true;
    set_group(now, &figures, size, live, answer);
    return status;
}

static int order(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

// By state; groups by that of their worst row.
static int by_state(const void *left, const void *right, void *context)
{
    const struct now_row *a = left, *b = right;
    const int by = *(const int *)context;
    int result = by < 0 ? 0 : order(a->worst, b->worst);
    if (result == 0 && by >= 0)
        result = order(a->keys[by], b->keys[by]);
    if (result == 0)
        result = order(a->verdict.state, b->verdict.state);
    if (result == 0)
        result = order(b->has_trouble, a->has_trouble);
    if (result == 0)
        result = order(a->keys[0], b->keys[0]);
    return result ? result : order(a->keys[1], b->keys[1]);
}

static size_t group_end(const struct now *now, size_t first)
{
    size_t end = first + 1;
    while (now->by >= 0 && end < now->row_count &&
           now->rows[end].keys[now->by] == now->rows[first].keys[now->by])
        end++;
    return end;
}

static void sort_rows(struct now *now)
{
    qsort_r(now->rows, now->row_count, sizeof *now->rows, by_state, &now->by);
    if (now->by < 0)
        return;
    for (size_t first = 0, end; first < now->row_count; first = end) {
        end = group_end(now, first);
        for (size_t i = first; i < end; i++) // the first one is the worst
            now->rows[i].worst = now->rows[first].verdict.state;
    }
    qsort_r(now->rows, now->row_count, sizeof *now->rows, by_state, &now->by);
}

enum status now_answer(struct now *now, struct result **out, struct error *err)
{
    if (now->row_count == 0)
        return error_set(err, STATUS_NO_DATA, "no process reported in the last 24 hours");
    sort_rows(now);
    enum status status = answer_new(out, columns, sizeof columns / sizeof *columns, err);
    if (status == STATUS_OK && now->by >= 0)
        status = add_all(now, *out, err);
    for (size_t first = 0; first < now->row_count && status == STATUS_OK;) {
        const size_t end = group_end(now, first);
        if (now->by >= 0 && now->rows[first].keys[now->by] != GROUP_KEY_NONE)
            status = add_group(now, *out, &now->rows[first], end - first, err);
        for (; first < end && status == STATUS_OK; first++)
            if (result_row_count(*out) < QUERY_ROWS_MAX)
                status = add_row(now, *out, &now->rows[first], err);
    }
    return status;
}
