#include "common/store/aggregate/process_lives.h"

#include <math.h>

#include <sqlite3.h>

#include "common/core/base/saturate.h"
#include "common/store/aggregate/process_samples.h"
#include "common/store/read/filter.h"
#include "common/store/read/reader.h"
#include "common/store/read/session.h"
#include "common/store/schema/schema.h"
#include "common/sys/clock.h"

enum { PROCESS_ID, PROCESS_HOST, PROCESS_BEGAN, PROCESS_HEARD };

static enum status on_process(void *context, sqlite3_stmt *row, struct error *err)
{
    const struct process_lives *lives = context;
    const struct query *query = lives->query;
    int64_t keys[GROUP_KEYS_MAX] = {0};
    unsigned key_count = 0;
    for (unsigned i = 0; i < query->group_count; i++)
        if (query->group_by[i] != QUERY_BY_MODEL)
            keys[key_count++] = sqlite3_column_int64(
                row, query->group_by[i] == QUERY_BY_RUN ? PROCESS_ID : PROCESS_HOST);
    int64_t at = sqlite3_column_int64(row, PROCESS_BEGAN),
            end = sqlite3_column_int64(row, PROCESS_HEARD);
    at = at > lives->span.first_ns ? at : lives->span.first_ns;
    end = end < lives->span.last_ns ? end : lives->span.last_ns;
    enum status status = STATUS_OK;
    while (at < end && status == STATUS_OK) {
        const int64_t step = query->step_ns > 0 ? rollup_step(query->step_ns, at) : 0;
        int64_t next = query->step_ns > 0 ? saturate_add(step, query->step_ns) : end;
        next = next < end ? next : end;
        keys[key_count] = step;
        struct group *group = NULL;
        status = reader_group(lives->groups, keys, &group, err);
        if (status == STATUS_OK)
            *(double *)group->data += (double)(next - at) / 1e9;
        at = next;
    }
    return status;
}

// Sets the time in which processes are counted, whatever was read from rollups: with since_ns up to
// the present (of a file, its last message); without it, from the start of the first process that
// matches to the last message of one.
static enum status find_span(struct process_lives *lives, struct store *store, struct error *err)
{
    const struct query_filter *filter = &lives->query->filter;
    struct query_filter of_any_time = *filter;
    struct rollup_span *span = &lives->span;
    *span = (struct rollup_span){INT64_MAX, INT64_MIN};
    of_any_time.since_ns = of_any_time.until_ns = 0;
    sqlite3_str *sql = sqlite3_str_new(store->db);
    sqlite3_str_appendf(sql, "SELECT min(t.started_ns), %s FROM run t",
                        filter->since_ns ? "(SELECT max(heard_ns) FROM run)" : "max(t.heard_ns)");
    filter_where(sql, RECORD_KIND_RUN, &of_any_time);
    sqlite3_str_appendall(sql, " AND t.started_ns >= " SCHEMA_CLOCK_FLOOR_TEXT);
    enum status status = reader_scan(store, sql, &of_any_time, aggregate_scan_on_span, span, err);
    if (filter->since_ns)
        span->first_ns = filter->since_ns;
    if (filter->since_ns && store->is_live)
        span->last_ns = clock_wall_ns();
    if (filter->until_ns && filter->until_ns < span->last_ns)
        span->last_ns = filter->until_ns;
    return status;
}

enum status process_lives_read(struct process_lives *lives, struct store *store,
                               const struct query *query, struct error *err)
{
    lives->query = query;
    enum status status = find_span(lives, store, err);
    if (status != STATUS_OK)
        return status;
    if (groups_new(&lives->groups, query->group_count + 1, sizeof(double), NULL) != STATUS_OK)
        return error_no_memory(err, "store");
    sqlite3_str *sql = sqlite3_str_new(store->db);
    sqlite3_str_appendall(sql, "SELECT t.run, t.host, t.started_ns, t.heard_ns FROM run t");
    filter_where(sql, RECORD_KIND_RUN, &query->filter);
    return reader_scan(store, sql, &query->filter, on_process, lives, err);
}

void process_lives_deinit(struct process_lives *lives)
{
    groups_free(lives->groups);
    lives->groups = NULL;
}

double process_lives_mean(const struct process_lives *lives, const int64_t *keys)
{
    const struct query *query = lives->query;
    int64_t all[GROUP_KEYS_MAX];
    process_samples_keys(all, query, keys);
    const struct group *group = groups_get(lives->groups, all);
    double first_ns = (double)lives->span.first_ns, last_ns = (double)lives->span.last_ns;
    if (query->step_ns > 0) {
        first_ns = fmax(first_ns, (double)keys[query->group_count]);
        last_ns = fmin(last_ns, (double)keys[query->group_count] + (double)query->step_ns);
    }
    const double seconds = (last_ns - first_ns) / 1e9;
    return group && seconds > 0 ? *(const double *)group->data / seconds : (double)NAN;
}
