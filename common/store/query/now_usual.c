#include "common/store/query/now_usual.h"

#include <string.h>

#include <sqlite3.h>

#include "common/store/aggregate/aggregate_scan.h"
#include "common/store/read/reader.h"
#include "common/store/read/session.h"
#include "common/sys/clock.h"

#define HOUR_NS INT64_C(3600000000000)
#define DAY_NS  (24 * HOUR_NS)
#define KEPT_NS UINT64_C(600000000000) // records of former days may arrive late

static bool is_kept(const struct store_usual *usual, const struct store_usual *wanted)
{
    return usual->medians && usual->hour_ns == wanted->hour_ns && usual->acts == wanted->acts &&
           wanted->read_ns - usual->read_ns < KEPT_NS && strcmp(usual->model, wanted->model) == 0 &&
           strcmp(usual->host, wanted->host) == 0;
}

// Of more models and hosts than an answer may have, the last ones stay unknown.
static enum status add_day(struct groups *medians, const struct group *day)
{
    struct group *group = NULL;
    enum status status = STATUS_OK;
    for (unsigned i = 0; i < NOW_TPOT && status == STATUS_OK; i++) {
        const struct aggregate *values = &aggregate_scan_ratio(day, i)->values;
        if (values->count < NOW_REQUESTS_LEAST)
            continue;
        status = groups_find(medians, day->keys, &group);
        if (status != STATUS_OK)
            break;
        struct now_usual *usual = group->data;
        usual->days[i][usual->day_count[i]++] = aggregate_quantile(values, 0.5);
    }
    return status == STATUS_FULL ? STATUS_OK : status;
}

static enum status read_day(struct groups *medians, struct store *store, struct query *query,
                            int64_t since_ns, struct error *err)
{
    query->filter.since_ns = since_ns;
    query->filter.until_ns = since_ns + HOUR_NS;
    struct aggregate_scan scan = {.query = query, .kind = RECORD_KIND_INFERENCE};
    for (unsigned i = 0; i < NOW_TPOT; i++)
        aggregate_scan_want(&scan, now_metrics[i], true);
    enum status status = aggregate_scan_run(&scan, store, err);
    for (size_t i = 0; status == STATUS_OK && i < groups_count(scan.groups); i++)
        if (add_day(medians, groups_at(scan.groups, i)) != STATUS_OK)
            status = error_no_memory(err, "store");
    aggregate_scan_deinit(&scan);
    return status;
}

enum status now_usual_read(const struct groups **out, struct store *store,
                           const struct query_filter *filter, int64_t hour_ns, struct error *err)
{
    struct store_usual wanted = {.hour_ns = hour_ns, .read_ns = clock_monotonic_ns()};
    struct store_usual *usual = &store->usual[filter->until_ns != 0];
    struct query query = {.kind = QUERY_AVERAGE,
                          .filter = *filter,
                          .group_by = {QUERY_BY_MODEL, QUERY_BY_HOST},
                          .group_count = 2};
    memcpy(wanted.model, filter->by[QUERY_BY_MODEL], QUERY_TEXT_SIZE);
    memcpy(wanted.host, filter->by[QUERY_BY_HOST], QUERY_TEXT_SIZE);
    sqlite3_str *sql = sqlite3_str_new(store->db);
    sqlite3_str_appendall(sql, "SELECT max(id) FROM main.admin");
    enum status status = reader_scan(store, sql, NULL, reader_on_integer, &wanted.acts, err);
    *out = usual->medians;
    if (status != STATUS_OK || is_kept(usual, &wanted))
        return status;
    groups_free(usual->medians);
    *usual = (struct store_usual){0};
    if (groups_new(&wanted.medians, 2, sizeof(struct now_usual), NULL) != STATUS_OK)
        return error_no_memory(err, "store");
    for (int64_t day = 1; day <= NOW_DAYS && status == STATUS_OK; day++)
        if (hour_ns > day * DAY_NS)
            status = read_day(wanted.medians, store, &query, hour_ns - day * DAY_NS, err);
    if (status != STATUS_OK) {
        groups_free(wanted.medians);
        return status;
    }
    *usual = wanted;
    *out = wanted.medians;
    return STATUS_OK;
}
