#include "common/store/medians.h"

#include <math.h>
#include <stdlib.h>

#include <sqlite3.h>

#include "common/store/filter.h"
#include "common/store/reader.h"

static const char *const names[MEDIAN_COUNT] = {
#define MEDIAN_NAME(name, metric) [MEDIAN_##name] = metric,
    MEDIANS(MEDIAN_NAME)
#undef MEDIAN_NAME
};

// The sketches of one pair.
struct sums {
    struct aggregate values[MEDIAN_COUNT];
};

struct reading {
    struct peers *peers;
    struct sums *sums;
    size_t count;
    struct sketch_budget budget;
    const struct query_metric *metrics[MEDIAN_COUNT];
};

static enum status find_metrics(struct reading *reading, struct error *err)
{
    for (unsigned i = 0; i < MEDIAN_COUNT; i++) {
        char name[QUERY_TEXT_SIZE];
        (void)sqlite3_snprintf(sizeof name, name, "inference.%s", names[i]);
        enum status status = query_metric_find(&reading->metrics[i], name, err);
        if (status != STATUS_OK)
            return status;
    }
    return STATUS_OK;
}

static enum status take_request(void *context, sqlite3_stmt *row, struct error *err)
{
    struct reading *reading = context;
    const int64_t model = sqlite3_column_int64(row, 0);
    const int64_t device = sqlite3_column_int64(row, 1);
    size_t place = 0;
    while (place < reading->count &&
           (reading->peers[place].model != model || reading->peers[place].device != device))
        place++;
    if (place == reading->count)
        return STATUS_OK;
    reading->peers[place].count++;
    for (unsigned i = 0; i < MEDIAN_COUNT; i++)
        if (sqlite3_column_type(row, 2 + (int)i) != SQLITE_NULL)
            aggregate_add_real(&reading->sums[place].values[i],
                               sqlite3_column_double(row, 2 + (int)i));
    return reader_budget(&reading->budget, err);
}

static enum status read_requests(struct reading *reading, struct store *store,
                                 const struct query_filter *filter, struct error *err)
{
    sqlite3_str *sql = sqlite3_str_new(store->db);
    sqlite3_str_appendall(sql, "SELECT t.model, t.device");
    for (unsigned i = 0; i < MEDIAN_COUNT; i++) {
        const struct record_derived *derived = reading->metrics[i]->derived;
        if (derived)
            sqlite3_str_appendf(sql, ", CASE WHEN (%s) > 0 THEN CAST(%s AS REAL) / (%s) END",
                                derived->denominator, derived->numerator, derived->denominator);
        else
            sqlite3_str_appendf(sql, ", t.\"%w\"", names[i]);
    }
    sqlite3_str_appendall(sql, " FROM inference t");
    filter_where(sql, RECORD_KIND_INFERENCE, filter);
    return reader_scan(store, sql, filter, take_request, reading, err);
}

static enum status want_quantiles(struct reading *reading, struct error *err)
{
    for (size_t i = 0; i < reading->count; i++)
        for (unsigned k = 0; k < MEDIAN_COUNT; k++)
            if (aggregate_want_quantiles(&reading->sums[i].values[k], &reading->budget) !=
                STATUS_OK)
                return error_set(err, STATUS_NOMEM, "store: out of memory");
    return STATUS_OK;
}

static void deinit(struct reading *reading)
{
    for (size_t i = 0; reading->sums && i < reading->count; i++)
        for (unsigned k = 0; k < MEDIAN_COUNT; k++)
            aggregate_deinit(&reading->sums[i].values[k]);
    free(reading->sums);
}

enum status medians_read(struct peers *peers, size_t count, struct store *store,
                         const struct query_filter *filter, struct error *err)
{
    struct reading reading = {
        .peers = peers,
        .sums = calloc(count ? count : 1, sizeof *reading.sums),
        .count = count,
        .budget = {.left = QUANTILE_BYTES_MAX},
    };
    if (!reading.sums)
        return error_set(err, STATUS_NOMEM, "store: out of memory");
    enum status status = find_metrics(&reading, err);
    if (status == STATUS_OK)
        status = want_quantiles(&reading, err);
    if (status == STATUS_OK)
        status = read_requests(&reading, store, filter, err);
    for (size_t i = 0; i < count && status == STATUS_OK; i++)
        for (unsigned k = 0; k < MEDIAN_COUNT; k++)
            peers[i].medians[k] = aggregate_quantile(&reading.sums[i].values[k], 0.5);
    deinit(&reading);
    return status;
}
