// FLEET: hosts beside others with the same model and device, and what sets those apart
// that are faster or slower.  Samples of devices and hosts have no model: hosts are compared by the
// means of those with the same name, without a reason.
#include <math.h>
#include <stdlib.h>

#include "common/core/base/array.h"
#include "common/core/stats/stats.h"
#include "common/store/query/fleet.h"
#include "common/store/aggregate/aggregate_scan.h"
#include "common/store/schema/schema_select.h"
#include "common/store/read/answer_cells.h"
#include "common/store/read/reader.h"
#include "common/store/query/query_list.h"

enum {
    VALUES_LEAST = 10, // of a host, for its median to say something
    LOADS_LEAST = 3,   // the same of loads, which are few
    WORKS = 4,         // facts about its work
};

// How far medians of equal hosts differ, before their fleet shows more or less: a standard
// deviation.
#define SPREAD_EXPECTED 0.017
// A host that is off by less is none to look at, however alike the others are.
#define DEVIATION_LEAST 0.03

// What hosts are compared by, where no metric is asked for.
static const char *const compared[] = {
    "inference.tokens_per_second", "inference.prefill_tokens_per_second", "inference.ttft_ns",
    "inference.items_per_second",  "load.load_bytes_per_second",
};

enum { COMPARED_COUNT = sizeof compared / sizeof *compared };

static const struct answer_column columns[] = {
    {"model", UNIT_NONE},
    {"device", UNIT_NONE},
    {"host", UNIT_NONE},
    {"metric", UNIT_NONE},
    {"unit", UNIT_NONE},
    {"verdict", UNIT_NONE},
    {"deviation_ratio", UNIT_RATIO},
    {"score", UNIT_NONE},
    {"value", UNIT_NONE},
    {"median", UNIT_NONE},
    {"spread", UNIT_NONE},
    {"hosts", UNIT_COUNT},
    {"count", UNIT_COUNT},
    {"reason", UNIT_NONE},
};

// How a host does; what comes first is shown first.
enum verdict {
    VERDICT_WORSE,
    VERDICT_OTHER, // of a metric of which neither more nor less is better
    VERDICT_BETTER,
    VERDICT_USUAL,
    VERDICT_FEW_VALUES,
    VERDICT_FEW_HOSTS,
    VERDICT_COUNT,
};

static const char *const verdict_names[VERDICT_COUNT] = {
    [VERDICT_WORSE] = "worse",           [VERDICT_OTHER] = "different",
    [VERDICT_BETTER] = "better",         [VERDICT_USUAL] = "usual",
    [VERDICT_FEW_VALUES] = "few values", [VERDICT_FEW_HOSTS] = "few hosts",
};

// One host's median of one metric, or its mean of samples.
struct member {
    const struct query_metric *metric;
    int64_t model, device, host; // GROUP_KEY_NONE: the records have none
    int64_t count, hosts;        // values; members compared with each other
    double value;
    double error; // standard error of the value
    double median, spread, deviation, score;
    enum verdict verdict;
    double work[WORKS]; // medians of its work; NaN: not known
};

struct fleet {
    struct store *store;
    const struct query *query;
    const struct query_metric *metrics[COMPARED_COUNT];
    size_t metric_count;
    struct member *members;
    size_t count, room;
    struct groups *places; // by host and device: struct fleet_facts
};

// ---- Medians -------------------------------------------------------------------------

// The standard error of a median, from how far the 90th percentile is above it: as of
// a normal distribution, whose median has 1.2533 times the error of its mean.
static double median_error(double p50, double p90, double count)
{
    const double deviation = (p90 - p50) / 1.2816;
    return isnan(deviation) ? 0 : 1.2533 * deviation / sqrt(count);
}

// What members are grouped by, as far as the kind has it.
static const enum query_dimension dimensions[] = {QUERY_BY_MODEL, QUERY_BY_DEVICE, QUERY_BY_HOST};
enum { MODEL, DEVICE, HOST, DIMENSIONS };

static bool is_of_samples(enum record_kind kind)
{
    return kind == RECORD_KIND_DEVICE_SAMPLE || kind == RECORD_KIND_HOST_SAMPLE;
}

static enum status add_member(struct fleet *fleet, const struct query_metric *metric,
                              const struct group *group, struct error *err)
{
    int64_t keys[DIMENSIONS];
    const struct aggregate *values = &aggregate_scan_ratio(group, 0)->values;
    if (values->count == 0)
        return STATUS_OK;
    if (!ARRAY_RESERVE(&fleet->members, &fleet->room, fleet->count + 1))
        return error_no_memory(err, "store");
    for (unsigned i = 0, next = 0; i < DIMENSIONS; i++)
        keys[i] =
            schema_dimension(metric->kind, dimensions[i]) ? group->keys[next++] : GROUP_KEY_NONE;
    const double p50 = aggregate_quantile(values, 0.5), p90 = aggregate_quantile(values, 0.9);
    fleet->members[fleet->count++] = (struct member){
        .metric = metric,
        .model = keys[MODEL],
        .device = keys[DEVICE],
        .host = keys[HOST],
        .count = (int64_t)values->count,
        .value = is_of_samples(metric->kind) ? aggregate_mean(values) : p50,
        .error = median_error(p50, p90, (double)values->count),
        .work = {(double)NAN, (double)NAN, (double)NAN},
    };
    return STATUS_OK;
}

// The values of a metric by model, device and host.  aggregate_scan_deinit is the caller's.
static enum status aggregate_scan_metric(struct fleet *fleet, struct aggregate_scan *scan,
                                         struct query *query, enum record_kind kind,
                                         const char *name, struct error *err)
{
    *query = (struct query){.kind = QUERY_AVERAGE, .filter = fleet->query->filter};
    for (unsigned i = 0; i < DIMENSIONS; i++)
        if (schema_dimension(kind, dimensions[i]))
            query->group_by[query->group_count++] = dimensions[i];
    *scan = (struct aggregate_scan){.query = query, .kind = kind};
    aggregate_scan_want(scan, name, !is_of_samples(kind));
    return aggregate_scan_run(scan, fleet->store, err);
}

static enum status read_metric(struct fleet *fleet, const char *name, struct error *err)
{
    const struct query_metric *metric = NULL;
    enum status status = query_metric_find(&metric, name, err);
    if (status != STATUS_OK)
        return status;
    if (!query_metric_is_of_records(metric))
        return error_set(err, STATUS_INVALID, "%s: hosts are compared by metrics of records",
                         metric->name);
    if (!is_of_samples(metric->kind) && (!schema_dimension(metric->kind, QUERY_BY_MODEL) ||
                                         !schema_dimension(metric->kind, QUERY_BY_DEVICE)))
        return error_set(err, STATUS_INVALID,
                         "records of kind %s have no model and device to compare hosts by",
                         record_kind_info(metric->kind)->name);
    fleet->metrics[fleet->metric_count++] = metric;
    struct query query;
    struct aggregate_scan scan;
    status = aggregate_scan_metric(fleet, &scan, &query, metric->kind, metric->name, err);
    for (size_t i = 0; status == STATUS_OK && i < groups_count(scan.groups); i++)
        status = add_member(fleet, metric, groups_at(scan.groups, i), err);
    aggregate_scan_deinit(&scan);
    return status;
}

static enum status read_members(struct fleet *fleet, struct error *err)
{
    if (fleet->query->metric[0])
        return read_metric(fleet, fleet->query->metric, err);
    enum status status = STATUS_OK;
    for (size_t i = 0; i < COMPARED_COUNT && status == STATUS_OK; i++)
        status = read_metric(fleet, compared[i], err);
    return status;
}

// ---- Verdicts ------------------------------------------------------------------------

static int by_class(const void *left, const void *right)
{
    const struct member *a = left, *b = right;
    if (a->metric != b->metric)
        return a->metric < b->metric ? -1 : 1;
    if (a->model != b->model)
        return a->model < b->model ? -1 : 1;
    if (a->device != b->device)
        return a->device < b->device ? -1 : 1;
    return (a->host > b->host) - (a->host < b->host);
}

static bool same_class(const struct member *a, const struct member *b)
{
    return a->metric == b->metric && a->model == b->model && a->device == b->device;
}

static bool counts(const struct member *member)
{
    const int64_t least = member->metric->kind == RECORD_KIND_LOAD ? LOADS_LEAST : VALUES_LEAST;
    return member->count >= least && !isnan(member->value);
}

static enum verdict judge(const struct member *member)
{
    if (!(fabs(member->score) > STATS_OUTLIER_SCORE) ||
        !(fabs(member->deviation) >= DEVIATION_LEAST))
        return VERDICT_USUAL;
    switch (stats_direction(member->metric->name, member->metric->unit)) {
    case STATS_MORE:
        return member->deviation < 0 ? VERDICT_WORSE : VERDICT_BETTER;
    case STATS_LESS:
        return member->deviation > 0 ? VERDICT_WORSE : VERDICT_BETTER;
    case STATS_NEITHER:
        break;
    }
    return VERDICT_OTHER;
}

// Compares the members of one class, of which `values` are those that count.
static void compare(struct member *members, size_t count, double *values, size_t valid)
{
    stats_sort(values, valid);
    const struct stats_usual usual = stats_find_usual(values, valid, SPREAD_EXPECTED);
    for (size_t i = 0; i < count; i++) {
        struct member *member = &members[i];
        member->hosts = (int64_t)valid;
        if (!counts(member)) {
            member->verdict = VERDICT_FEW_VALUES;
            continue;
        }
        member->verdict = VERDICT_FEW_HOSTS;
        if (valid < FLEET_HOSTS_LEAST)
            continue;
        const double distance = member->value - usual.median;
        member->median = usual.median;
        member->spread = usual.spread;
        // Of a share that is usually 0, the share itself.
        member->deviation = fabs(usual.median) > 0               ? distance / fabs(usual.median)
                            : member->metric->unit == UNIT_RATIO ? distance
                                                                 : 0;
        member->score = distance == 0 ? 0 : distance / hypot(usual.spread, member->error);
        member->verdict = judge(member);
    }
}

static enum status compare_all(struct fleet *fleet, struct error *err)
{
    double *values = calloc(fleet->count ? fleet->count : 1, sizeof *values);
    if (!values)
        return error_no_memory(err, "store");
    if (fleet->count > 1)
        qsort(fleet->members, fleet->count, sizeof *fleet->members, by_class);
    size_t end = 0;
    for (size_t first = 0; first < fleet->count; first = end) {
        size_t valid = 0;
        for (end = first;
             end < fleet->count && same_class(&fleet->members[first], &fleet->members[end]); end++)
            if (counts(&fleet->members[end]))
                values[valid++] = fleet->members[end].value;
        compare(&fleet->members[first], end - first, values, valid);
    }
    free(values);
    return STATUS_OK;
}

// ---- Reasons -------------------------------------------------------------------------

static bool stands_out(const struct member *member)
{
    return member->verdict < VERDICT_USUAL;
}

// A device has the name that its sampler gives it, which is not that of requests: no reason.
static bool has_reason(const struct member *member)
{
    return stands_out(member) && !is_of_samples(member->metric->kind);
}

static enum status read_places(struct fleet *fleet, struct error *err)
{
    if (groups_new(&fleet->places, 2, sizeof(struct fleet_facts), NULL) != STATUS_OK)
        return error_no_memory(err, "store");
    enum status status = STATUS_OK;
    for (size_t i = 0; i < fleet->count && status == STATUS_OK; i++) {
        const int64_t keys[] = {fleet->members[i].host, fleet->members[i].device};
        struct group *place = NULL;
        status = reader_group(fleet->places, keys, &place, err);
    }
    return status == STATUS_OK ? fleet_read(fleet->places, fleet->store, &fleet->query->filter, err)
                               : status;
}

// What the requests or loads of an outlier were like: its medians of these metrics.
static const struct {
    enum record_kind kind;
    const char *metric;
    enum fleet_number number;
} works[WORKS] = {
    {RECORD_KIND_INFERENCE, "concurrent_requests", FLEET_CONCURRENT},
    {RECORD_KIND_INFERENCE, "prompt_tokens", FLEET_PROMPT},
    {RECORD_KIND_INFERENCE, "items", FLEET_ITEMS},
    {RECORD_KIND_LOAD, "page_cache_ratio", FLEET_PAGE_CACHE},
};

static enum status read_work(struct fleet *fleet, size_t work, struct error *err)
{
    bool wanted = false;
    for (size_t i = 0; i < fleet->count; i++)
        wanted = wanted || (stands_out(&fleet->members[i]) &&
                            fleet->members[i].metric->kind == works[work].kind);
    if (!wanted)
        return STATUS_OK;
    struct query query;
    struct aggregate_scan scan;
    enum status status =
        aggregate_scan_metric(fleet, &scan, &query, works[work].kind, works[work].metric, err);
    for (size_t i = 0; status == STATUS_OK && i < fleet->count; i++) {
        struct member *member = &fleet->members[i];
        const int64_t keys[] = {member->model, member->device, member->host};
        const struct group *group = groups_get(scan.groups, keys);
        if (group && member->metric->kind == works[work].kind)
            member->work[work] = aggregate_quantile(&aggregate_scan_ratio(group, 0)->values, 0.5);
    }
    aggregate_scan_deinit(&scan);
    return status;
}

static enum status read_facts(struct fleet *fleet, struct error *err)
{
    bool any = false;
    for (size_t i = 0; i < fleet->count; i++)
        any = any || has_reason(&fleet->members[i]);
    if (!any)
        return STATUS_OK;
    enum status status = read_places(fleet, err);
    for (size_t i = 0; i < WORKS && status == STATUS_OK; i++)
        status = read_work(fleet, i, err);
    return status;
}

static void facts_of(struct fleet *fleet, const struct member *member, struct fleet_facts *out)
{
    const int64_t keys[] = {member->host, member->device};
    *out = *(struct fleet_facts *)groups_get(fleet->places, keys)->data;
    for (unsigned i = 0; i < WORKS; i++)
        out->numbers[works[i].number] = member->work[i];
}

// What sets a member apart from the others of its class that count.
static enum status find_reason(struct fleet *fleet, const struct member *member,
                               char text[FLEET_REASON_SIZE], struct error *err)
{
    size_t first = (size_t)(member - fleet->members), end = first;
    while (first > 0 && same_class(member, &fleet->members[first - 1]))
        first--;
    while (end < fleet->count && same_class(member, &fleet->members[end]))
        end++;
    struct fleet_facts *facts = calloc(end - first + 1, sizeof *facts);
    const struct fleet_facts **others = calloc(end - first + 1, sizeof *others);
    enum status status = STATUS_OK;
    if (facts && others) {
        size_t count = 0;
        for (size_t i = first; i < end; i++) {
            facts_of(fleet, &fleet->members[i], &facts[i - first]);
            if (&fleet->members[i] != member && counts(&fleet->members[i]))
                others[count++] = &facts[i - first];
        }
        (void)fleet_reason(
            text, member->metric->kind == RECORD_KIND_LOAD ? FLEET_OF_LOADS : FLEET_OF_REQUESTS,
            member->verdict != VERDICT_BETTER, &facts[(size_t)(member - fleet->members) - first],
            others, count);
    } else {
        status = error_no_memory(err, "store");
    }
    free(others);
    free(facts);
    return status;
}

// ---- The answer ----------------------------------------------------------------------

static int by_interest(const void *left, const void *right)
{
    const struct member *const *a = left, *const *b = right;
    if ((*a)->verdict != (*b)->verdict)
        return (*a)->verdict < (*b)->verdict ? -1 : 1;
    const double score_a = fabs((*a)->score), score_b = fabs((*b)->score);
    if (score_a < score_b || score_a > score_b)
        return score_a > score_b ? -1 : 1;
    return (*a > *b) - (*a < *b);
}

static enum status set_texts(struct fleet *fleet, struct result *result,
                             const struct member *member, struct error *err)
{
    const int64_t names[] = {member->model, member->device, member->host};
    enum status status = STATUS_OK;
    for (unsigned i = 0; i < 3 && status == STATUS_OK; i++)
        status = answer_name(fleet->store, result, i, names[i], err);
    answer_text(result, "metric", member->metric->name);
    answer_text(result, "unit", unit_name(member->metric->unit));
    answer_text(result, "verdict", verdict_names[member->verdict]);
    if (status != STATUS_OK || !has_reason(member))
        return status;
    char reason[FLEET_REASON_SIZE];
    status = find_reason(fleet, member, reason, err);
    if (status == STATUS_OK && reason[0])
        answer_text(result, "reason", reason);
    return status;
}

static enum status add_row(struct fleet *fleet, struct result *result, const struct member *member,
                           struct error *err)
{
    answer_row(result);
    answer_real(result, "value", member->value);
    answer_int(result, "hosts", member->hosts);
    answer_int(result, "count", member->count);
    if (member->verdict <= VERDICT_USUAL) {
        answer_real(result, "deviation_ratio", member->deviation);
        answer_real(result, "score", member->score);
        answer_real(result, "median", member->median);
        answer_real(result, "spread", member->spread);
    }
    return set_texts(fleet, result, member, err);
}

static enum status add_rows(struct fleet *fleet, struct result *result, struct error *err)
{
    const uint32_t limit = query_rows_most(fleet->query);
    const struct member **list = calloc(fleet->count, sizeof *list);
    if (!list)
        return error_no_memory(err, "store");
    for (size_t i = 0; i < fleet->count; i++)
        list[i] = &fleet->members[i];
    qsort(list, fleet->count, sizeof *list, by_interest);
    enum status status = STATUS_OK;
    for (size_t i = 0; i < fleet->count && i < limit && status == STATUS_OK; i++)
        status = add_row(fleet, result, list[i], err);
    free(list);
    return status;
}

enum status query_fleet(struct store *store, const struct query *query, struct result **out,
                        struct error *err)
{
    struct fleet fleet = {.store = store, .query = query};
    enum status status = read_members(&fleet, err);
    if (status == STATUS_OK && fleet.count == 0)
        status = error_set(err, STATUS_NO_DATA, "no hosts in the store to compare that match");
    if (status == STATUS_OK)
        status = compare_all(&fleet, err);
    if (status == STATUS_OK)
        status = read_facts(&fleet, err);
    if (status == STATUS_OK)
        status = answer_new(out, columns, sizeof columns / sizeof *columns, err);
    if (status == STATUS_OK)
        status = add_rows(&fleet, *out, err);
    groups_free(fleet.places);
    free(fleet.members);
    return status;
}
