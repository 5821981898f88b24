// Averages from rollups, records and both, against plain SQL over all rows: of random
// stores, windows, filters, groupings and steps, with gaps, expired rows, and
// watermarks anywhere.
#include <inttypes.h>
#include <math.h>

#include "common/core/stats/sketch.h"
#include "common/store/sqlite/database.h"
#include "common/store/rollup/rollup_plan.h"
#include "common/store/schema/database_open.h"
#include "common/store/schema/schema_select.h"
#include "server/collector/rollup/rollups.h"
#include "tests/support/store/rollup_builder.h"
#include "tests/support/test.h"
#include "tests/unit/store/random_store.h"

enum { GROUPS_SEEN_MAX = ROWS_MAX };

struct figure {
    int64_t integer;
    double real;
};

struct group_seen {
    char names[QUERY_DIMENSION_COUNT][64];
    int64_t step_ns;
    struct figure values[ROWS_MAX];
    size_t count;
    size_t samples; // of whole processes
    bool is_real;
};

static struct group_seen *seen; // GROUPS_SEEN_MAX of them
static size_t seen_count;

static struct group_seen *see_group(const struct query *query, sqlite3_stmt *stmt)
{
    struct group_seen wanted = {0};
    for (unsigned i = 0; i < query->group_count; i++) {
        const unsigned char *text = sqlite3_column_text(stmt, (int)i + 2);
        (void)snprintf(wanted.names[i], sizeof wanted.names[i], "%s",
                       text ? (const char *)text : "");
    }
    if (query->step_ns)
        wanted.step_ns = rollup_step(query->step_ns, sqlite3_column_int64(stmt, 1));
    for (size_t i = 0; i < seen_count; i++)
        if (memcmp(seen[i].names, wanted.names, sizeof wanted.names) == 0 &&
            seen[i].step_ns == wanted.step_ns)
            return &seen[i];
    assert_true(seen_count < GROUPS_SEEN_MAX);
    seen[seen_count] = wanted;
    return &seen[seen_count++];
}

static bool is_of_requests(const struct query_metric *metric)
{
    return strcmp(metric->name, "running_requests") == 0;
}

static bool is_by_model(const struct query *query)
{
    bool is = query->filter.by[QUERY_BY_MODEL][0] != '\0';
    for (unsigned i = 0; i < query->group_count; i++)
        is = is || query->group_by[i] == QUERY_BY_MODEL;
    return is;
}

// The rows that a query covers, read from the views that people read.
static sqlite3_stmt *select_plain(const struct query *query, const struct query_metric *metric,
                                  bool of_models)
{
    sqlite3_str *text = sqlite3_str_new(full);
    // An implausible time counts on 2019-12-01, and in no step.
    sqlite3_str_appendf(text, "SELECT \"%w\", placed", metric->name);
    for (unsigned i = 0; i < query->group_count; i++)
        sqlite3_str_appendf(text, ", \"%w\"", query_dimension_name(query->group_by[i]));
    sqlite3_str_appendf(text,
                        " FROM (SELECT *, iif(clock_suspect, 1575158400000000000, started_ns)"
                        " AS placed FROM \"v_%w\") s WHERE \"%w\" IS NOT NULL",
                        record_kind_info(metric->kind)->name, metric->name);
    if (query->step_ns)
        sqlite3_str_appendall(text, " AND NOT clock_suspect");
    if (metric->kind == RECORD_KIND_PROCESS_SAMPLE)
        sqlite3_str_appendf(text, " AND model IS %s", of_models ? "NOT NULL" : "NULL");
    if (is_by_model(query) && is_of_requests(metric) && !of_models)
        sqlite3_str_appendall(
            text, " AND (running_requests = 0 OR EXISTS (SELECT 1 FROM process_sample p"
                  " JOIN process_sample o ON o.run = p.run AND o.started_ns = p.started_ns"
                  "  AND o.model IS NOT NULL WHERE p.id = s.number AND NOT EXISTS (SELECT 1"
                  "   FROM process_sample b WHERE b.run = p.run"
                  "    AND b.id > min(o.id, p.id) AND b.id < max(o.id, p.id))))");
    for (unsigned i = 0; i < QUERY_DIMENSION_COUNT; i++)
        if (query->filter.by[i][0] &&
            (of_models || i != QUERY_BY_MODEL || metric->kind != RECORD_KIND_PROCESS_SAMPLE))
            sqlite3_str_appendf(text, " AND \"%w\" GLOB %Q",
                                query_dimension_name((enum query_dimension)i), query->filter.by[i]);
    if (query->filter.since_ns)
        sqlite3_str_appendf(text, " AND placed >= %lld", (long long)query->filter.since_ns);
    if (query->filter.until_ns)
        sqlite3_str_appendf(text, " AND placed < %lld", (long long)query->filter.until_ns);
    char *sql = sqlite3_str_finish(text);
    sqlite3_stmt *stmt = NULL;
    if (sqlite3_prepare_v2(full, sql, -1, &stmt, NULL) != SQLITE_OK)
        fail_msg("%s: %s", sql, sqlite3_errmsg(full));
    sqlite3_free(sql);
    return stmt;
}

static bool is_of(const struct query *query, const struct group_seen *group, sqlite3_stmt *stmt)
{
    for (unsigned k = 0; k < query->group_count; k++) {
        const char *text = (const char *)sqlite3_column_text(stmt, (int)k + 2);
        if (query->group_by[k] != QUERY_BY_MODEL && strcmp(group->names[k], text ? text : "") != 0)
            return false;
    }
    return true;
}

// The requests of a model are 0 in the samples that have no row of it, if the process had none or
// another model's row is next to it; also in the steps without a row of the only model asked for.
static void see_idle(const struct query *query, const struct query_metric *metric)
{
    sqlite3_stmt *stmt = select_plain(query, metric, false);
    while (sqlite3_step(stmt) == SQLITE_ROW) {
        const int64_t step_ns =
            query->step_ns ? rollup_step(query->step_ns, sqlite3_column_int64(stmt, 1)) : 0;
        const struct group_seen *like = NULL;
        bool has_step = false;
        for (size_t i = 0; i < seen_count; i++)
            if (is_of(query, &seen[i], stmt)) {
                like = &seen[i];
                has_step = has_step || seen[i].step_ns == step_ns;
                seen[i].samples += seen[i].step_ns == step_ns;
            }
        if (!like || has_step || !query->filter.by[QUERY_BY_MODEL][0])
            continue;
        assert_true(seen_count < GROUPS_SEEN_MAX);
        struct group_seen *idle = &seen[seen_count++];
        *idle = (struct group_seen){.step_ns = step_ns, .samples = 1};
        memcpy(idle->names, like->names, sizeof idle->names);
    }
    (void)sqlite3_finalize(stmt);
    for (size_t i = 0; i < seen_count; i++)
        while (seen[i].count < seen[i].samples)
            seen[i].values[seen[i].count++] = (struct figure){0, 0};
}

static void see(const struct query *query, const struct query_metric *metric)
{
    seen_count = 0;
    sqlite3_stmt *stmt = select_plain(query, metric, is_by_model(query));
    while (sqlite3_step(stmt) == SQLITE_ROW) {
        struct group_seen *group = see_group(query, stmt);
        group->is_real = sqlite3_column_type(stmt, 0) == SQLITE_FLOAT;
        assert_true(group->count < ROWS_MAX);
        group->values[group->count++] =
            (struct figure){sqlite3_column_int64(stmt, 0), sqlite3_column_double(stmt, 0)};
    }
    (void)sqlite3_finalize(stmt);
    if (is_by_model(query) && is_of_requests(metric))
        see_idle(query, metric);
}

// ---- Both compared ------------------------------------------------------------------------

static char asked[2048]; // the query in words

static bool is_text(const struct result *result, size_t row, const char *key, const char *text)
{
    const int column = result_find(result, key);
    assert_true(column >= 0);
    const struct value cell = result_cell(result, row, (unsigned)column);
    const char *bytes = cell.type == VALUE_TEXT ? cell.text.bytes : "";
    const size_t size = cell.type == VALUE_TEXT ? cell.text.size : 0;
    return size == strlen(text) && memcmp(bytes, text, size) == 0;
}

static size_t find_row(const struct query *query, const struct result *result,
                       const struct group_seen *group)
{
    for (size_t row = 0; row < result_row_count(result); row++) {
        bool is =
            !query->step_ns || result_integer(result, row, "started_ns", -1) == group->step_ns;
        for (unsigned i = 0; i < query->group_count && is; i++)
            is = is_text(result, row, query_dimension_name(query->group_by[i]), group->names[i]);
        if (is)
            return row;
    }
    fail_msg("%s: no row for %s", asked, group->names[0]);
    return 0;
}

static int by_value(const void *left, const void *right)
{
    const struct figure *a = left, *b = right;
    if (a->real < b->real || a->real > b->real)
        return a->real < b->real ? -1 : 1;
    return (a->integer > b->integer) - (a->integer < b->integer);
}

static void expect_near(double actual, double expected, double allowed, const char *what)
{
    if (!(fabs(actual - expected) <= allowed))
        fail_msg("%s: %s is %.17g, not %.17g", asked, what, actual, expected);
}

static void compare_integers(const struct result *result, size_t row,
                             const struct group_seen *group)
{
    __extension__ __int128 sum = 0;
    int64_t min = INT64_MAX, max = INT64_MIN;
    for (size_t i = 0; i < group->count; i++) {
        const int64_t value = group->values[i].integer;
        sum += value;
        min = value < min ? value : min;
        max = value > max ? value : max;
    }
    const double mean = (double)((long double)sum / (long double)group->count);
    expect_near(result_number(result, row, "mean", NAN), mean, 0, "mean");
    assert_true(result_integer(result, row, "min", 0) == min);
    assert_true(result_integer(result, row, "max", 0) == max);
}

static void compare_reals(const struct result *result, size_t row, const struct group_seen *group)
{
    long double sum = 0, size = 0;
    for (size_t i = 0; i < group->count; i++) {
        sum += (long double)group->values[i].real;
        size += fabsl((long double)group->values[i].real);
    }
    const double count = (double)group->count;
    expect_near(result_number(result, row, "mean", NAN), (double)sum / count,
                1e-12 * (double)size / count, "mean");
    expect_near(result_number(result, row, "min", NAN), group->values[0].real, 0, "min");
    expect_near(result_number(result, row, "max", NAN), group->values[group->count - 1].real, 0,
                "max");
}

static void compare_row(const struct query *query, const struct result *result,
                        struct group_seen *group)
{
    static const struct {
        const char *key;
        double q;
    } quantiles[] = {{"p50", 0.5}, {"p90", 0.9}, {"p95", 0.95}, {"p99", 0.99}};
    const size_t row = find_row(query, result, group);
    if (result_integer(result, row, "count", -1) != (int64_t)group->count)
        fail_msg("%s: count is %" PRId64 ", not %zu", asked,
                 result_integer(result, row, "count", -1), group->count);
    qsort(group->values, group->count, sizeof *group->values, by_value);
    if (group->is_real)
        compare_reals(result, row, group);
    else
        compare_integers(result, row, group);
    for (size_t i = 0; i < COUNT_OF(quantiles); i++) {
        const double exact = group->values[sketch_rank(quantiles[i].q, group->count)].real;
        expect_near(result_number(result, row, quantiles[i].key, NAN), exact, 0.01 * fabs(exact),
                    quantiles[i].key);
    }
}

static void compare(struct store *opened, const struct query *query,
                    const struct query_metric *metric)
{
    struct error err = {0};
    struct result *result = NULL;
    see(query, metric);
    const enum status status = store_query(opened, query, &result, &err);
    if (seen_count == 0) {
        assert_int_equal(status, STATUS_NO_DATA);
        return;
    }
    if (status != STATUS_OK)
        fail_msg("%s: %s", asked, err.text);
    if (result_row_count(result) != seen_count)
        fail_msg("%s: %zu rows, not %zu", asked, result_row_count(result), seen_count);
    for (size_t i = 0; i < seen_count; i++)
        compare_row(query, result, &seen[i]);
    result_free(result);
}

// ---- Random queries -------------------------------------------------------------------------

static void pick_filter(struct query *query, const struct query_metric *metric)
{
    static const enum query_dimension dimensions[] = {
        QUERY_BY_MODEL, QUERY_BY_HOST, QUERY_BY_DEVICE, QUERY_BY_OPERATION, QUERY_BY_RUN};
    for (size_t i = 0; i < COUNT_OF(dimensions); i++) {
        if (!schema_dimension(metric->kind, dimensions[i]) ||
            (dimensions[i] == QUERY_BY_MODEL && metric->kind == RECORD_KIND_PROCESS_SAMPLE &&
             !is_of_requests(metric)))
            continue;
        if (pick(4) == 0 && query->group_count < 3)
            query->group_by[query->group_count++] = dimensions[i];
        static const int64_t first[] = {[QUERY_BY_MODEL] = 5,
                                        [QUERY_BY_HOST] = 0,
                                        [QUERY_BY_DEVICE] = 3,
                                        [QUERY_BY_OPERATION] = 8};
        if (pick(5) == 0 && dimensions[i] != QUERY_BY_RUN)
            (void)snprintf(query->filter.by[dimensions[i]], QUERY_TEXT_SIZE, "%s",
                           pick(12) ? rig_names[first[dimensions[i]] + pick(2)] : "nobody");
        static const char *const patterns[] = {"*a*", "????", "[a-g]*", "*l*", "q*"};
        if (query->filter.by[dimensions[i]][0] && pick(4) == 0 &&
            metric->kind != RECORD_KIND_PROCESS_SAMPLE)
            (void)snprintf(query->filter.by[dimensions[i]], QUERY_TEXT_SIZE, "%s",
                           patterns[pick((int64_t)COUNT_OF(patterns))]);
    }
}

static struct query pick_query(const struct query_metric *metric)
{
    static const int64_t steps[] = {HOUR_NS, 7 * HOUR_NS, DAY_NS, 30 * DAY_NS, 90 * MINUTE_NS + 1};
    struct query query = {.kind = QUERY_AVERAGE};
    (void)snprintf(query.metric, sizeof query.metric, "%s.%s", record_kind_info(metric->kind)->name,
                   metric->name);
    pick_filter(&query, metric);
    if (pick(3))
        query.filter.since_ns = pick_time();
    if (pick(3))
        query.filter.until_ns = pick_time();
    if (query.filter.until_ns && query.filter.until_ns <= query.filter.since_ns)
        query.filter.until_ns = query.filter.since_ns + 1 + pick(40 * DAY_NS);
    if (pick(3) == 0)
        query.step_ns = steps[pick((int64_t)COUNT_OF(steps))];
    (void)snprintf(asked, sizeof asked,
                   "seed %" PRIu64 ": %s by %u, model=%s host=%s device=%s operation=%s, %" PRId64
                   "..%" PRId64 " step %" PRId64,
                   seed, query.metric, query.group_count, query.filter.by[QUERY_BY_MODEL],
                   query.filter.by[QUERY_BY_HOST], query.filter.by[QUERY_BY_DEVICE],
                   query.filter.by[QUERY_BY_OPERATION], query.filter.since_ns,
                   query.filter.until_ns, query.step_ns);
    return query;
}
// By the collector's own code, once all buckets are over.
static void fill_by_writer(void)
{
    struct error err = {0};
    struct rollups *rollups = NULL;
    uint64_t now_ns = 0;
    expect_ok(rollups_new(&rollups, db, &err), &err);
    rollups_tell_time(rollups, MARCH_NS + 400 * DAY_NS);
    for (bool left = true; left;) {
        now_ns += 1000000000;
        while (rollups_are_behind(rollups, now_ns))
            rollups_catch_up(rollups, now_ns, false);
        exec("BEGIN");
        expect_ok(rollups_flush(rollups, ROLLUPS_ALL, now_ns, &left, &err), &err);
        exec("COMMIT");
    }
    while (rollups_prune(rollups, now_ns))
        now_ns += 1000000000;
    rollups_free(rollups);
}

// A third of the stores by the builder at any watermark, a third with wrong rows in the
// gaps, a third by the collector's code; some have no rollups.
static void fill(unsigned round, const struct query_metric *metric, int64_t count)
{
    exec("BEGIN");
    add_gaps(metric->kind);
    if (round % 7 != 6 && round % 3 < 2)
        rollup_builder_fill(db, metric, pick(4) ? pick(count + 1) : count, round % 3 == 0);
    exec("COMMIT");
    if (round % 7 != 6 && round % 3 == 2)
        fill_by_writer();
}

TEST_CASE(test_any_store)
{
    for (unsigned round = 0; round < 3 * RIG_METRICS; round++) {
        seed = 1000 + round;
        implausible_times = round % 2;
        const struct query_metric *metric = metric_of(rig_metrics[(round / 3) % RIG_METRICS]);
        const int64_t count = 1 + pick(ROWS_MAX);
        make_store(metric->kind, count);
        fill(round, metric, count);
        struct store *opened = open_store();
        for (unsigned i = 0; i < 24; i++) {
            const struct query query = pick_query(metric);
            compare(opened, &query, metric);
        }
        store_close(opened);
        drop_store();
    }
    implausible_times = false;
}

static int64_t count_of(const struct query *query, const struct query_metric *metric)
{
    see(query, metric);
    return seen_count ? (int64_t)seen[0].count : 0;
}

// At edges of buckets the rollups say all; between them the bucket counts whole, and
// the answer says so.
TEST_CASE(test_expired_rows)
{
    const struct query_metric *metric = metric_of("inference.e2e_ns");
    for (unsigned round = 0; round < 12; round++) {
        seed = 2000 + round;
        make_store(metric->kind, ROWS_MAX);
        const int64_t expired_ns = rollup_bucket(ROLLUP_MINUTE, pick_time());
        const int64_t watermark = ROWS_MAX / 2 + pick(ROWS_MAX / 2);
        exec("BEGIN");
        execf("INSERT INTO rollup_gap(kind, grouping, level, since_ns, until_ns, why)"
              " VALUES(%d, %d, %d, %" PRId64 ", %" PRId64 ", %d)",
              (int)metric->kind, ROLLUP_MODEL, (int)(round % 2) * ROLLUP_HOUR, INT64_MIN,
              expired_ns, ROLLUP_OLD);
        rollup_builder_fill(db, metric, watermark, true);
        execf("DELETE FROM inference WHERE started_ns < %" PRId64 " AND id <= %" PRId64, expired_ns,
              watermark);
        execf("INSERT INTO expiry VALUES(%d, %" PRId64 ")", (int)metric->kind, expired_ns);
        exec("COMMIT");
        struct store *opened = open_store();
        for (unsigned i = 0; i < 40; i++) {
            struct query query = pick_query(metric);
            memset(&query.filter.by, 0, sizeof query.filter.by);
            query.group_count = 0;
            query.step_ns = 0;
            const int64_t least = count_of(&query, metric);
            struct query wide = query;
            if (wide.filter.since_ns)
                wide.filter.since_ns = rollup_bucket(ROLLUP_DAY, wide.filter.since_ns);
            if (wide.filter.until_ns)
                wide.filter.until_ns =
                    rollup_next(ROLLUP_DAY, rollup_bucket(ROLLUP_DAY, wide.filter.until_ns - 1));
            const int64_t most = count_of(&wide, metric);
            struct error err = {0};
            struct result *result = NULL;
            const enum status status = store_query(opened, &query, &result, &err);
            assert_true(status == STATUS_OK || (status == STATUS_NO_DATA && least == 0));
            const int64_t count = result ? result_integer(result, 0, "count", -1) : 0;
            if (count < least || count > most)
                fail_msg("%s: %" PRId64 " of %" PRId64 " to %" PRId64, asked, count, least, most);
            if (count != least)
                assert_false(is_text(result, 0, "note", ""));
            result_free(result);
            if (!wide.filter.since_ns || !wide.filter.until_ns ||
                wide.filter.since_ns < wide.filter.until_ns)
                compare(opened, &wide, metric);
        }
        store_close(opened);
        drop_store();
    }
}

// Runs are in no rollup: what expired of them is not there, and that is said.
TEST_CASE(test_expired_runs)
{
    const struct query_metric *metric = metric_of("inference.e2e_ns");
    seed = 3000;
    make_store(metric->kind, ROWS_MAX);
    rollup_builder_fill(db, metric, ROWS_MAX, false);
    execf("DELETE FROM inference WHERE started_ns < %" PRId64, MARCH_NS);
    execf("INSERT INTO expiry VALUES(%d, %" PRId64 ")", (int)metric->kind, MARCH_NS);
    struct store *opened = open_store();
    struct query query = {.kind = QUERY_AVERAGE, .metric = "e2e_ns", .group_count = 1};
    query.group_by[0] = QUERY_BY_RUN;
    struct error err = {0};
    struct result *result = NULL;
    assert_int_equal(store_query(opened, &query, &result, &err), STATUS_OK);
    assert_true(is_text(result, 0, "note",
                        "records before 2026-03-01 00:00 UTC have expired; they are in no rollup of"
                        " this question, and not counted"));
    result_free(result);
    store_close(opened);
}

// Whether both answers say the same, sums of reals but for their last digits.
static void expect_same(const struct result *a, const struct result *b)
{
    assert_int_equal(result_row_count(a), result_row_count(b));
    for (size_t row = 0; row < result_row_count(a); row++)
        for (unsigned i = 0; i < result_column_count(a); i++) {
            const struct value left = result_cell(a, row, i), right = result_cell(b, row, i);
            const char *key = result_column(a, i)->key;
            // Windows without an end go on.
            if (strcmp(key, "store_bytes") == 0 || strcmp(key, "window_ns") == 0 ||
                strstr(key, "_rate"))
                continue;
            const bool same =
                left.type == right.type &&
                (left.type == VALUE_NULL || (left.type == VALUE_INT && left.i == right.i) ||
                 (left.type == VALUE_REAL && fabs(left.r - right.r) <= 1e-9 * fabs(right.r)) ||
                 (left.type == VALUE_TEXT && left.text.size == right.text.size &&
                  memcmp(left.text.bytes, right.text.bytes, left.text.size) == 0));
            if (!same)
                fail_msg("%s: row %zu: %s: types %d and %d, %" PRId64 " and %" PRId64 ", %g and %g",
                         asked, row, key, (int)left.type, (int)right.type, left.i, right.i, left.r,
                         right.r);
        }
}

static struct result *ask_either(struct store *opened, const struct query *query,
                                 enum status *status)
{
    struct error err = {0};
    struct result *result = NULL;
    *status = store_query(opened, query, &result, &err);
    if (*status != STATUS_OK && *status != STATUS_NO_DATA)
        fail_msg("%s: %s", asked, err.text);
    return result;
}

// A store with rollups says what the same one without any says.
TEST_CASE(test_summaries)
{
    static const enum record_kind kinds[] = {RECORD_KIND_INFERENCE, RECORD_KIND_LOAD,
                                             RECORD_KIND_OPERATION, RECORD_KIND_STARTUP};
    static const enum query_kind asks[] = {QUERY_SUMMARY, QUERY_OVERVIEW};
    for (unsigned round = 0; round < 4; round++) {
        seed = 5000 + round;
        make_store(RECORD_KIND_INFERENCE, 60);
        exec("BEGIN");
        for (size_t k = 0; k < COUNT_OF(kinds); k++) {
            const struct query_metric *metrics[ROLLUP_METRICS_MAX];
            const unsigned count = rollup_metrics(kinds[k], metrics);
            if (k > 0)
                add_records(kinds[k], 40);
            add_gaps(kinds[k]);
            for (unsigned m = 0; m < count; m++)
                rollup_builder_fill(db, metrics[m], pick(60), false);
        }
        exec("COMMIT");
        database_close(full);
        full = NULL;
        (void)remove(full_path);
        execf("VACUUM INTO '%s'", full_path);
        struct error err = {0};
        if (database_open_writer(&full, full_path, &err) != STATUS_OK ||
            database_exec(full, "DELETE FROM rollup; DELETE FROM rollup_state", &err) != STATUS_OK)
            fail_msg("%s", err.text);
        struct store *stores[2] = {NULL, NULL};
        if (store_open(&stores[0], path, &err) != STATUS_OK ||
            store_open(&stores[1], full_path, &err) != STATUS_OK)
            fail_msg("%s", err.text);
        for (unsigned i = 0; i < 40; i++) {
            struct query query = pick_query(metric_of("inference.e2e_ns"));
            query.kind = asks[i % COUNT_OF(asks)];
            query.group_count = 0;
            query.step_ns = 0;
            enum status statuses[2];
            struct result *answers[2];
            for (size_t s = 0; s < COUNT_OF(stores); s++)
                answers[s] = ask_either(stores[s], &query, &statuses[s]);
            assert_int_equal(statuses[0], statuses[1]);
            if (statuses[0] == STATUS_OK)
                expect_same(answers[0], answers[1]);
            result_free(answers[0]);
            result_free(answers[1]);
        }
        store_close(stores[0]);
        store_close(stores[1]);
        drop_store();
    }
}

TEST_FIXTURE(set_up)
{
    random_set_up(state);
    seen = calloc(GROUPS_SEEN_MAX, sizeof *seen);
    return seen ? 0 : 1;
}

TEST_FIXTURE(tear_down)
{
    free(seen);
    return random_tear_down(state);
}

TEST_MAIN_EACH(set_up, tear_down, test_any_store, test_expired_rows, test_expired_runs,
               test_summaries)
