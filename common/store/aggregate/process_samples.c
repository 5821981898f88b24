#include "common/store/aggregate/process_samples.h"

// The rows of a sample follow each other.
#define NEIGHBOR(of, side)                                                                         \
    "(SELECT " of "(n.id) FROM main.process_sample n WHERE n.run = t.run AND n.id " side " t.id)"
#define UNKNOWN(column)                                                                            \
    {                                                                                              \
        .numerator = "1",                                                                          \
        .denominator =                                                                             \
            "t." column " > 0 AND NOT EXISTS (SELECT 1 FROM main.process_sample o"                 \
            " WHERE o.id IN (" NEIGHBOR("max", "<") ", " NEIGHBOR(                                 \
                "min", ">") ")"                                                                    \
                            " AND o.model IS NOT NULL AND o.started_ns = t.started_ns)",           \
    }
static const struct record_derived unknown_running = UNKNOWN("running_requests"),
                                   unknown_waiting = UNKNOWN("waiting_requests");

static enum status scan_rows(struct aggregate_scan *scan, enum aggregate_scan_models models,
                             const struct query *query, const struct query_metric *metric,
                             struct store *store, struct error *err)
{
    *scan = (struct aggregate_scan){.query = query,
                                    .kind = metric->kind,
                                    .models = models,
                                    .metrics = {{metric, false, NULL}},
                                    .metric_count = 1};
    return aggregate_scan_run(scan, store, err);
}

__extension__ static __int128 sum_of(const struct aggregate_scan *scan)
{
    __extension__ __int128 sum = 0;
    for (size_t i = 0; i < groups_count(scan->groups); i++)
        sum += aggregate_scan_ratio(groups_at(scan->groups, i), 0)->values.integers;
    return sum;
}

// If all models together have as many requests as the processes, which the rollups tell, no sample
// is unknown: then its records need not be read.
static enum status scan_unknown(struct process_samples *samples, const struct query_metric *metric,
                                struct store *store, struct error *err)
{
    const struct query_metric unknown = {
        .kind = metric->kind,
        .name = "unknown",
        .column = -1,
        .derived = metric->column == PROCESS_SAMPLE_RUNNING ? &unknown_running : &unknown_waiting};
    struct aggregate_scan models;
    enum status status =
        scan_rows(&models, AGGREGATE_WITH_MODEL, &samples->query, metric, store, err);
    const bool is_needed = status == STATUS_OK && sum_of(&models) != sum_of(&samples->all);
    aggregate_scan_deinit(&models);
    return is_needed ? scan_rows(&samples->unknown, AGGREGATE_WITHOUT_MODEL, &samples->query,
                                 &unknown, store, err)
                     : status;
}

enum status process_samples_read(struct process_samples *samples, const struct query *query,
                                 const struct query_metric *metric, struct store *store,
                                 struct error *err)
{
    *samples = (struct process_samples){.query = *query};
    samples->query.filter.by[QUERY_BY_MODEL][0] = '\0';
    samples->query.group_count = 0;
    for (unsigned i = 0; i < query->group_count; i++)
        if (query->group_by[i] != QUERY_BY_MODEL)
            samples->query.group_by[samples->query.group_count++] = query->group_by[i];
    enum status status =
        scan_rows(&samples->all, AGGREGATE_WITHOUT_MODEL, &samples->query, metric, store, err);
    return status == STATUS_OK ? scan_unknown(samples, metric, store, err) : status;
}

void process_samples_deinit(struct process_samples *samples)
{
    aggregate_scan_deinit(&samples->all);
    aggregate_scan_deinit(&samples->unknown);
}

static uint64_t count_of(const struct aggregate_scan *scan, const int64_t *keys)
{
    const struct group *group = scan->groups ? groups_get(scan->groups, keys) : NULL;
    return group ? aggregate_scan_ratio(group, 0)->values.count : 0;
}

uint64_t process_samples_known(const struct process_samples *samples, const int64_t *keys)
{
    const uint64_t all = count_of(&samples->all, keys), unknown = count_of(&samples->unknown, keys);
    return all > unknown ? all - unknown : 0;
}

void process_samples_keys(int64_t out[GROUP_KEYS_MAX], const struct query *query,
                          const int64_t *keys)
{
    unsigned count = 0;
    memset(out, 0, GROUP_KEYS_MAX * sizeof *out);
    for (unsigned i = 0; i < query->group_count; i++)
        if (query->group_by[i] != QUERY_BY_MODEL)
            out[count++] = keys[i];
    if (query->step_ns > 0)
        out[count] = keys[query->group_count];
}
