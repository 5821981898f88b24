#include "common/store/aggregate/energy.h"

#include <math.h>

#include "common/core/base/text.h"
#include "common/store/read/device_names.h"
#include "common/store/read/reader.h"

enum { MODEL, HOST, DEVICE, STEP, KEYS }; // of the groups of requests

// Devices are keyed by host, the name that samples have for them (the least of several), and step.
enum { DEVICE_KEYS = 3 };

struct device {
    bool is_covered;
    double joules, seconds; // of its samples; once all are added, joules of the whole time
    int64_t model;          // of its requests; 0: none yet
    bool has_several;
};

// Reads what the groups need, and what is known of devices.
struct energy_reader {
    struct energy *energy;
    struct store *store;
    const struct query *query;
    struct query by_device; // of requests: by model, host and device
    struct device_names names;
    struct groups *devices; // struct device
    struct groups *counted; // the keys of a group, then host and device: its energy has been added
    bool by_model;
    int64_t model;             // of the filter; 0: any
    int64_t unsampled, shared; // devices left out, of each step
};

bool energy_has(const char *metric)
{
    return strcmp(metric, QUERY_METRIC_TOKENS_PER_JOULE) == 0 ||
           strcmp(metric, QUERY_METRIC_JOULES_PER_REQUEST) == 0;
}

double energy_sum(const char *metric, const struct energy_sums *sums)
{
    return strcmp(metric, QUERY_METRIC_TOKENS_PER_JOULE) == 0 ? sums->tokens : sums->joules;
}

double energy_value(const char *metric, const struct energy_sums *sums)
{
    if (!(sums->joules > 0))
        return (double)NAN;
    if (strcmp(metric, QUERY_METRIC_TOKENS_PER_JOULE) == 0)
        return sums->tokens / sums->joules;
    return sums->requests > 0.5 ? sums->joules / sums->requests : (double)NAN;
}

void energy_deinit(struct energy *energy)
{
    groups_free(energy->groups);
    throughput_deinit(&energy->throughput);
    energy->groups = NULL;
}

// ---- What was asked ---------------------------------------------------------------------------

static enum status check(struct energy_reader *reader, const char *metric, struct error *err)
{
    static const unsigned known =
        1U << QUERY_BY_MODEL | 1U << QUERY_BY_HOST | 1U << QUERY_BY_DEVICE;
    const struct query *query = reader->query;
    unsigned asked = 0;
    for (unsigned i = 0; i < query->group_count; i++)
        asked |= 1U << query->group_by[i];
    for (unsigned i = 0; i < QUERY_DIMENSION_COUNT; i++)
        asked |= query->filter.by[i][0] ? 1U << i : 0;
    for (unsigned i = 0; i < QUERY_DIMENSION_COUNT; i++)
        if (asked & ~known & 1U << i)
            return error_set(err, STATUS_INVALID,
                             "%s: groups and filters are model, host and device, not %s", metric,
                             query_dimension_name((enum query_dimension)i));
    reader->by_model = asked & 1U << QUERY_BY_MODEL;
    reader->by_device = (struct query){
        .kind = QUERY_AVERAGE,
        .filter = query->filter,
        .group_by = {[MODEL] = QUERY_BY_MODEL, [HOST] = QUERY_BY_HOST, [DEVICE] = QUERY_BY_DEVICE},
        .group_count = STEP,
        .step_ns = query->step_ns};
    reader->by_device.filter.by[QUERY_BY_MODEL][0] = '\0';
    return STATUS_OK;
}

static enum status read_model(struct energy_reader *reader, struct error *err)
{
    const struct query_filter *filter = &reader->query->filter;
    if (!filter->by[QUERY_BY_MODEL][0])
        return STATUS_OK;
    reader->model = -1;
    return reader_name(reader->store, filter, QUERY_BY_MODEL, &reader->model, err);
}

// ---- Devices ----------------------------------------------------------------------------------

static int64_t step_of(const struct energy_reader *reader, const struct group *group,
                       unsigned place)
{
    return reader->query->step_ns > 0 ? group->keys[place] : 0;
}

static enum status add_samples(struct energy_reader *reader, const struct aggregate_scan *scan,
                               struct error *err)
{
    enum { JOULES, DURATION };
    enum status status = STATUS_OK;
    for (size_t i = 0; i < groups_count(scan->groups) && status == STATUS_OK; i++) {
        const struct group *group = groups_at(scan->groups, i);
        const struct aggregate *joules = &aggregate_scan_ratio(group, JOULES)->values;
        const struct aggregate *duration = &aggregate_scan_ratio(group, DURATION)->values;
        const int64_t keys[DEVICE_KEYS] = {
            group->keys[0], device_names_device(&reader->names, group->keys[0], group->keys[1]),
            step_of(reader, group, 2)};
        struct group *found = NULL;
        if (joules->count == 0 || duration->count == 0)
            continue;
        status = reader_group(reader->devices, keys, &found, err);
        if (status != STATUS_OK)
            break;
        struct device *device = found->data;
        device->joules += real_sum_total(&joules->reals);
        device->seconds += (double)aggregate_sum(duration) / 1e9 *
                           fmin((double)joules->count / (double)duration->count, 1);
    }
    return status;
}

// What samples lack of the time is taken to be like them; of what several runs sampled, the mean
// counts.
static void cover_time(struct energy_reader *reader)
{
    for (size_t i = 0; i < groups_count(reader->devices); i++) {
        const struct group *group = groups_at(reader->devices, i);
        struct device *device = group->data;
        const double seconds = throughput_seconds(&reader->energy->throughput, group->keys[2]);
        device->is_covered =
            device->seconds > 0 && device->seconds >= ENERGY_COVERAGE_LEAST * seconds;
        if (device->is_covered)
            device->joules *= seconds / device->seconds;
    }
}

// Samples are not filtered by device: they may have another name for it.
static enum status read_samples(struct energy_reader *reader, struct error *err)
{
    const struct rollup_span *span = &reader->energy->throughput.span;
    struct query query = {.kind = QUERY_AVERAGE,
                          .filter = reader->query->filter,
                          .group_by = {QUERY_BY_HOST, QUERY_BY_DEVICE},
                          .group_count = 2,
                          .step_ns = reader->query->step_ns};
    query.filter.by[QUERY_BY_MODEL][0] = query.filter.by[QUERY_BY_DEVICE][0] = '\0';
    if (query.step_ns == 0 && span->first_ns < span->last_ns) {
        query.filter.since_ns = span->first_ns;
        query.filter.until_ns = span->last_ns;
    }
    struct aggregate_scan scan = {.query = &query, .kind = RECORD_KIND_DEVICE_SAMPLE};
    aggregate_scan_want(&scan, "energy_used_joules", false);
    aggregate_scan_want(&scan, "duration_ns", false);
    enum status status = aggregate_scan_run(&scan, reader->store, err);
    if (status == STATUS_OK)
        status = add_samples(reader, &scan, err);
    cover_time(reader);
    reader->energy->throughput.sketches += scan.sketches;
    reader->energy->throughput.rows += scan.rows;
    aggregate_scan_deinit(&scan);
    return status;
}

// Calls `visit` for each device, as sampled, on which a group of requests ran.
typedef enum status visit_device(struct energy_reader *reader, const struct group *requests,
                                 struct device *device, const int64_t keys[DEVICE_KEYS],
                                 struct error *err);

static enum status visit_devices(struct energy_reader *reader, const struct group *requests,
                                 visit_device *visit, struct error *err)
{
    size_t count = 0;
    const struct device_names_pair *pairs =
        device_names_find(&reader->names, requests->keys[HOST], requests->keys[DEVICE],
                          requests->keys[MODEL], &count);
    enum status status = STATUS_OK;
    for (size_t i = 0; i < (count ? count : 1) && status == STATUS_OK; i++) {
        const int64_t keys[DEVICE_KEYS] = {requests->keys[HOST],
                                           count ? pairs[i].device : requests->keys[DEVICE],
                                           step_of(reader, requests, STEP)};
        struct group *group = NULL;
        status = reader_group(reader->devices, keys, &group, err);
        if (status == STATUS_OK)
            status = visit(reader, requests, group->data, keys, err);
    }
    return status;
}

static enum status note_model(struct energy_reader *reader, const struct group *requests,
                              struct device *device, const int64_t keys[DEVICE_KEYS],
                              struct error *err)
{
    (void)reader, (void)keys, (void)err;
    device->has_several |= device->model && device->model != requests->keys[MODEL];
    device->model = requests->keys[MODEL];
    return STATUS_OK;
}

// ---- Groups -----------------------------------------------------------------------------------

// The keys of the group, of the query, that requests belong to.
static unsigned project(const struct energy_reader *reader, const struct group *requests,
                        int64_t out[GROUP_KEYS_MAX])
{
    static const unsigned places[QUERY_DIMENSION_COUNT] = {
        [QUERY_BY_MODEL] = MODEL, [QUERY_BY_HOST] = HOST, [QUERY_BY_DEVICE] = DEVICE};
    const struct query *query = reader->query;
    unsigned count = 0;
    memset(out, 0, GROUP_KEYS_MAX * sizeof *out);
    for (unsigned i = 0; i < query->group_count; i++)
        out[count++] = requests->keys[places[query->group_by[i]]];
    if (query->step_ns > 0)
        out[count++] = requests->keys[STEP];
    return count;
}

static enum status leave_out(struct energy_reader *reader, const struct group *requests,
                             struct device *device, const int64_t keys[DEVICE_KEYS],
                             struct error *err)
{
    (void)requests, (void)keys, (void)err;
    reader->unsampled += !device->is_covered;
    reader->shared += device->is_covered && reader->by_model && device->has_several;
    return STATUS_OK;
}

// Returns STATUS_NO_DATA for a device whose energy is not known of these requests.
static enum status is_known(struct energy_reader *reader, const struct group *requests,
                            struct device *device, const int64_t keys[DEVICE_KEYS],
                            struct error *err)
{
    (void)requests, (void)keys, (void)err;
    return device->is_covered && !(reader->by_model && device->has_several) ? STATUS_OK
                                                                            : STATUS_NO_DATA;
}

// Adds the device's energy to the group, unless other requests have brought it.
static enum status add_energy(struct energy_reader *reader, const struct group *requests,
                              struct device *device, const int64_t keys[DEVICE_KEYS],
                              struct error *err)
{
    int64_t all[GROUP_KEYS_MAX];
    struct group *group = NULL, *counted = NULL;
    const unsigned count = project(reader, requests, all);
    enum status status = reader_group(reader->energy->groups, all, &group, err);
    all[count] = keys[0];
    all[count + 1] = keys[1];
    if (status == STATUS_OK)
        status = reader_group(reader->counted, all, &counted, err);
    if (status != STATUS_OK || *(bool *)counted->data)
        return status;
    *(bool *)counted->data = true;
    ((struct energy_sums *)group->data)->joules += device->joules;
    return STATUS_OK;
}

static enum status add_requests(struct energy_reader *reader, const struct group *requests,
                                struct error *err)
{
    const double *sums = throughput_sums(requests);
    int64_t keys[GROUP_KEYS_MAX];
    struct group *group = NULL;
    if (reader->model && requests->keys[MODEL] != reader->model)
        return STATUS_OK;
    (void)project(reader, requests, keys);
    enum status status = reader_group(reader->energy->groups, keys, &group, err);
    if (status == STATUS_OK)
        status = visit_devices(reader, requests, is_known, err);
    if (status == STATUS_NO_DATA) {
        ((struct energy_sums *)group->data)->left_out++;
        return visit_devices(reader, requests, leave_out, err);
    }
    if (status != STATUS_OK)
        return status;
    struct energy_sums *out = group->data;
    out->requests += sums[THROUGHPUT_REQUESTS];
    out->tokens += sums[THROUGHPUT_OUTPUT_TOKENS];
    return visit_devices(reader, requests, add_energy, err);
}

// What rounding leaves of no requests.
static bool is_empty(const struct group *requests)
{
    const double *sums = throughput_sums(requests);
    return sums[THROUGHPUT_REQUESTS] < 1e-6 && sums[THROUGHPUT_OUTPUT_TOKENS] < 1e-6;
}

static enum status add_all(struct energy_reader *reader, struct error *err)
{
    const struct groups *requests = reader->energy->throughput.groups;
    enum status status = STATUS_OK;
    for (size_t i = 0; i < groups_count(requests) && status == STATUS_OK; i++)
        if (!is_empty(groups_at(requests, i)))
            status = visit_devices(reader, groups_at(requests, i), note_model, err);
    for (size_t i = 0; i < groups_count(requests) && status == STATUS_OK; i++)
        if (!is_empty(groups_at(requests, i)))
            status = add_requests(reader, groups_at(requests, i), err);
    return status;
}

static void say(const struct energy_reader *reader)
{
    const struct {
        int64_t count;
        const char *why;
    } left_out[] = {{reader->unsampled, "no samples with its energy cover the time"},
                    {reader->shared, "requests of several models ran on it"}};
    for (size_t i = 0; i < sizeof left_out / sizeof *left_out; i++)
        if (left_out[i].count > 0)
            (void)text_append(reader->energy->note, ENERGY_NOTE_SIZE, "; ",
                              "a device and its requests are left out %lld times: %s",
                              (long long)left_out[i].count, left_out[i].why);
}

enum status energy_read(struct energy *energy, struct store *store, const struct query *query,
                        const char *metric, int64_t now_ns, struct error *err)
{
    struct energy_reader reader = {.energy = energy, .store = store, .query = query};
    const unsigned keys = query->group_count + (query->step_ns > 0);
    *energy = (struct energy){.groups = NULL};
    enum status status = check(&reader, metric, err);
    if (status != STATUS_OK)
        return status;
    if (groups_new(&energy->groups, keys, sizeof(struct energy_sums), NULL) != STATUS_OK ||
        groups_new(&reader.devices, DEVICE_KEYS, sizeof(struct device), NULL) != STATUS_OK ||
        groups_new(&reader.counted, keys + 2, sizeof(bool), NULL) != STATUS_OK)
        status = error_no_memory(err, "store");
    if (status == STATUS_OK)
        status = read_model(&reader, err);
    if (status == STATUS_OK)
        status = throughput_read(&energy->throughput, store, &reader.by_device,
                                 strcmp(metric, QUERY_METRIC_TOKENS_PER_JOULE) == 0
                                     ? QUERY_METRIC_OUTPUT_RATE
                                     : QUERY_METRIC_REQUEST_RATE,
                                 now_ns, err);
    if (status == STATUS_OK)
        status = device_names_read(&reader.names, store, err);
    if (status == STATUS_OK)
        status = read_samples(&reader, err);
    if (status == STATUS_OK)
        status = add_all(&reader, err);
    say(&reader);
    device_names_deinit(&reader.names);
    groups_free(reader.devices);
    groups_free(reader.counted);
    return status;
}
