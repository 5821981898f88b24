#include "common/store/aggregate/throughput_place.h"

#include "common/core/base/saturate.h"
#include "common/store/read/reader.h"

enum status throughput_find_sums(struct groups *groups, const int64_t *keys, double **sums,
                                 struct error *err)
{
    struct group *group = NULL;
    enum status status = reader_group(groups, keys, &group, err);
    if (status == STATUS_OK)
        *sums = group->data;
    return status;
}

// The sums of the request's group and the step that holds a time.
static enum status find_step(const struct throughput_place *place, struct crossing_request *request,
                             int64_t time_ns, double **sums, struct error *err)
{
    const struct query *query = place->query;
    if (query->step_ns > 0)
        request->keys[query->group_count] = rollup_step(query->step_ns, time_ns);
    return throughput_find_sums(place->groups, request->keys, sums, err);
}

static void count_end(double *sums, const struct crossing_request *request, double sign)
{
    sums[THROUGHPUT_REQUESTS] += sign;
    sums[THROUGHPUT_JUDGED] += sign;
    sums[THROUGHPUT_FAILED] += request->failed ? sign : 0;
    sums[THROUGHPUT_CANCELLED] += request->cancelled ? sign : 0;
    sums[THROUGHPUT_PROMPT_TOKENS] += sign * (double)request->prompt_tokens;
    sums[THROUGHPUT_ITEMS] += sign * (double)request->items;
}

static void count_tokens(double *sums, const struct crossing_request *request, double share)
{
    sums[THROUGHPUT_OUTPUT_TOKENS] += share * (double)request->generated_tokens;
    sums[THROUGHPUT_STREAMED] += share * (double)request->streamed_tokens;
    sums[THROUGHPUT_GAPS] += share * (double)request->gaps;
}

enum status throughput_add_start(const struct throughput_place *place,
                                 struct crossing_request *request, double sign, struct error *err)
{
    double *sums = NULL;
    enum status status = find_step(place, request, request->started_ns, &sums, err);
    if (status != STATUS_OK)
        return status;
    count_end(sums, request, sign);
    if (place->has_tokens)
        count_tokens(sums, request, sign);
    return STATUS_OK;
}

static enum status add_end(const struct throughput_place *place, struct crossing_request *request,
                           struct error *err)
{
    double *sums = NULL;
    enum status status = find_step(place, request, request->ended_ns, &sums, err);
    if (status == STATUS_OK)
        count_end(sums, request, 1);
    return status;
}

enum status throughput_add_tokens(const struct throughput_place *place,
                                  struct crossing_request *request, int64_t time_ns, double share,
                                  struct error *err)
{
    double *sums = NULL;
    enum status status = find_step(place, request, time_ns, &sums, err);
    if (status == STATUS_OK)
        count_tokens(sums, request, share);
    return status;
}

enum status throughput_spread_tokens(const struct throughput_place *place,
                                     struct crossing_request *request, struct error *err)
{
    const struct query *query = place->query;
    const struct query_filter *filter = &query->filter;
    const int64_t end_ns = filter->until_ns && filter->until_ns <= request->ended_ns
                               ? filter->until_ns
                               : request->ended_ns;
    int64_t at = request->first_token_ns > filter->since_ns || !filter->since_ns
                     ? request->first_token_ns
                     : filter->since_ns;
    const double length_ns = (double)(request->ended_ns - request->first_token_ns);
    if (length_ns <= 0)
        return request->ends_inside
                   ? throughput_add_tokens(place, request, request->ended_ns, 1, err)
                   : STATUS_OK;
    enum status status = STATUS_OK;
    while (at < end_ns && status == STATUS_OK) {
        int64_t next = end_ns;
        if (query->step_ns > 0)
            next = saturate_add(rollup_step(query->step_ns, at), query->step_ns);
        next = next < end_ns ? next : end_ns;
        status = throughput_add_tokens(place, request, at, (double)(next - at) / length_ns, err);
        at = next;
    }
    return status;
}

enum status throughput_on_crossing(void *context, struct crossing_request *request,
                                   struct error *err)
{
    const struct throughput_place *place = context;
    enum status status = STATUS_OK;
    if (request->begins_inside)
        status = throughput_add_start(place, request, -1, err);
    if (status == STATUS_OK && request->ends_inside)
        status = add_end(place, request, err);
    return status == STATUS_OK && place->has_tokens ? throughput_spread_tokens(place, request, err)
                                                    : status;
}
