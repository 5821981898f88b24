// Coverage and losses beside averages are those of the window: as plain SQL has them, by
// host, run and step, whatever is rolled up.
#include <inttypes.h>
#include <math.h>

#include "common/core/delivery/delivery.h"
#include "common/store/sqlite/database.h"
#include "common/store/schema/database_open.h"
#include "tests/support/store/rollup_builder.h"
#include "tests/support/test.h"
#include "tests/unit/store/random_store.h"

// Times and counts of what a host lost, as its producers and the collector tell it.
#define DAY(n)  (MARCH_NS + (n)*DAY_NS)
#define HOUR(n) (MARCH_NS + (n)*HOUR_NS)

static sqlite3 *plain; // the store before anything of it was rolled up

TEST_FIXTURE(tear_down)
{
    database_close(plain);
    plain = NULL;
    return random_tear_down(state);
}

static struct result *answer(struct store *opened, const struct query *query)
{
    struct error err = {0};
    struct result *result = NULL;
    expect_ok(store_query(opened, query, &result, &err), &err);
    return result;
}

static void expect_near(double actual, double expected)
{
    if (!(fabs(actual - expected) <= 1e-12))
        fail_msg("%.17g is not %.17g", actual, expected);
}

static void add_samples(int run, int64_t since_ns, int64_t step_ns, int count)
{
    execf("WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < %d - 1)"
          " INSERT INTO process_sample(run, stream, number, started_ns, received_ns,"
          " cpu_ratio, host_memory_bytes) SELECT %d, 0, i + 1, %" PRId64 " + i * %" PRId64
          ", %" PRId64 " + i * %" PRId64 ", 1.5, 7 FROM n",
          count, run, since_ns, step_ns, since_ns, step_ns);
}

// Runs 2 and 3, of two hosts, live from day 0 to 40 and take a sample an hour.
static void make_year(void)
{
    make_store(RECORD_KIND_PROCESS_SAMPLE, 0);
    execf("UPDATE run SET started_ns = %" PRId64 ", heard_ns = %" PRId64, DAY(0), DAY(40));
    exec("DELETE FROM run WHERE run NOT IN (2, 3)");
    for (int run = 2; run <= 3; run++)
        add_samples(run, DAY(0), HOUR_NS, 960);
    exec("INSERT INTO ledger(run, kind, stored) SELECT run, 11, 960 FROM run");
}

static void drop(int run, int stream, int64_t count, enum delivery_reason reason, int64_t since_ns,
                 int64_t until_ns)
{
    execf("INSERT INTO range(run, stream, first, last, state, reason, since_ns, until_ns)"
          " VALUES(%d, %d, 1, %" PRId64 ", 1, %d, nullif(%" PRId64 ", 0), nullif(%" PRId64 ", 0))",
          run, stream, count, (int)reason, since_ns, until_ns);
}

struct expected {
    int64_t since_ns, until_ns;
    const char *host;
    int64_t lost, stored;
};

static void expect_all(const struct expected *cases, size_t count)
{
    struct store *opened = open_store();
    for (size_t i = 0; i < count; i++) {
        struct query query = {.kind = QUERY_AVERAGE, .metric = "process_sample.cpu_ratio"};
        query.filter.since_ns = cases[i].since_ns;
        query.filter.until_ns = cases[i].until_ns;
        (void)snprintf(query.filter.by[QUERY_BY_HOST], QUERY_TEXT_SIZE, "%s", cases[i].host);
        struct result *result = answer(opened, &query);
        if (result_integer(result, 0, "lost", -1) != cases[i].lost)
            fail_msg("case %zu: lost %" PRId64, i, result_integer(result, 0, "lost", -1));
        expect_near(result_number(result, 0, "coverage_ratio", NAN),
                    cases[i].lost
                        ? (double)cases[i].stored / (double)(cases[i].stored + cases[i].lost)
                        : 1);
        result_free(result);
        query.average.uncovered = true;
        result = answer(opened, &query);
        assert_true(result_integer(result, 0, "count", 0) > 0);
        assert_int_equal(result_integer(result, 0, "lost", -1), -1);
        assert_true(isnan(result_number(result, 0, "coverage_ratio", NAN)));
        result_free(result);
    }
    store_close(opened);
}

// What a long run loses in its last hour is seen in that hour, and hardly in the year; and
// what went a month before is not of this hour.
TEST_CASE(test_a_loss_counts_where_it_was)
{
    make_year();
    const char *host = rig_names[2 % HOSTS], *other = rig_names[3 % HOSTS];
    drop(2, 1, 9, DELIVERY_SPOOL_FULL, DAY(39), DAY(39) + HOUR_NS);
    drop(2, 2, 500, DELIVERY_SPOOL_DAMAGED, DAY(3), DAY(4));
    const struct expected cases[] = {
        {DAY(39), DAY(39) + HOUR_NS, host, 9, 1},
        {DAY(39), DAY(39) + HOUR_NS, other, 0, 0},
        {DAY(39), DAY(39) + HOUR_NS, "", 9, 2},
        {DAY(39), 0, host, 9, 24},
        {DAY(20), DAY(30), host, 0, 0},
        {DAY(3), DAY(4) + 1, host, 500, 25},
        {DAY(4) + 1, DAY(5), host, 0, 0},
        {0, DAY(3), host, 0, 0},
        {0, 0, host, 509, 960},
        {0, 0, "", 509, 1920},
        {0, 0, other, 0, 0},
    };
    expect_all(cases, COUNT_OF(cases));
}

// A loss counts wherever it may have been: all of its run's life where no time is known, and
// where what is known is of another life; before its producer noticed where another store
// had acknowledged it.
TEST_CASE(test_losses_of_unknown_times)
{
    make_year();
    const char *host = rig_names[2 % HOSTS];
    drop(2, 1, 1, DELIVERY_SPOOL_FULL, 0, 0);
    exec("INSERT INTO stream(run, stream, next, produced, unnumbered) VALUES(2, 0, 961, 960, 2)");
    drop(2, 2, 4, DELIVERY_ACKNOWLEDGED_ELSEWHERE, DAY(10), DAY(10));
    drop(2, 3, 8, DELIVERY_HOST_LOST, DAY(99), DAY(99)); // told when it was up again
    // Of 18 without numbers it is known of 16 when they were told.
    exec("UPDATE stream SET unnumbered = 18");
    execf("INSERT INTO unnumbered(run, told_ns, lost, since_ns, until_ns) VALUES(2, 0, 16, %" PRId64
          ", %" PRId64 ")",
          DAY(19), DAY(20));
    const struct expected cases[] = {
        {DAY(1), DAY(2), host, 7, 24},
        {DAY(20), DAY(21), host, 19, 24},
        {DAY(20) + 1, DAY(21), host, 3, 23},
        {DAY(39), 0, host, 11, 24},
        {0, 0, host, 31, 960},
    };
    expect_all(cases, COUNT_OF(cases));
    struct store *opened = open_store();
    struct query query = {.kind = QUERY_AVERAGE, .metric = "process_sample.cpu_ratio"};
    struct result *all = answer(opened, &query);
    query.filter.since_ns = DAY(1);
    struct result *some = answer(opened, &query);
    assert_int_equal(result_cell(all, 0, (unsigned)result_find(all, "note")).type, VALUE_NULL);
    assert_int_equal(result_cell(some, 0, (unsigned)result_find(some, "note")).type, VALUE_TEXT);
    result_free(all);
    result_free(some);
    store_close(opened);
}

// What has expired was stored: ledgers know it of runs that are in the window whole; of
// others the answer says that it is left out.  What was cleared is neither stored nor lost.
TEST_CASE(test_coverage_of_what_is_gone)
{
    make_year();
    const char *host = rig_names[2 % HOSTS];
    drop(2, 1, 60, DELIVERY_SPOOL_FULL, DAY(1), DAY(1));
    drop(2, 2, 40, DELIVERY_SPOOL_FULL, DAY(30), DAY(30));
    execf("DELETE FROM process_sample WHERE started_ns < %" PRId64, DAY(20));
    execf("INSERT INTO expiry(kind, until_ns) VALUES(11, %" PRId64 ")", DAY(20));
    exec("UPDATE ledger SET expired = 480");
    execf("DELETE FROM process_sample WHERE run = 2 AND started_ns >= %" PRId64, DAY(39));
    exec("UPDATE ledger SET cleared = 24 WHERE run = 2");
    const struct expected cases[] = {
        {0, 0, host, 100, 936},
        {DAY(25), 0, host, 40, 336},
        {DAY(25), DAY(39), host, 40, 336},
        {DAY(-1), DAY(41), host, 100, 936},
        {DAY(10), 0, host, 40, 456},
    };
    expect_all(cases, COUNT_OF(cases));
    for (int is_known = 0; is_known < 2; is_known++) {
        struct query query = {.kind = QUERY_AVERAGE, .metric = "process_sample.cpu_ratio"};
        struct store *opened = open_store();
        query.filter.since_ns = is_known ? DAY(21) : DAY(10);
        struct result *result = answer(opened, &query);
        const struct value value = result_cell(result, 0, (unsigned)result_find(result, "note"));
        assert_int_equal(
            strstr(format_text("%.*s", value.type == VALUE_TEXT ? (int)value.text.size : 0,
                               value.text.bytes),
                   "coverage leaves out") == NULL,
            is_known);
        result_free(result);
        store_close(opened);
    }
}

// An answer comes without its coverage where there is no time for that; here what was lost
// is too much to be told by step.
TEST_CASE(test_a_coverage_that_cannot_be_had)
{
    make_store(RECORD_KIND_PROCESS_SAMPLE, 0);
    execf("UPDATE run SET started_ns = %" PRId64 ", heard_ns = %" PRId64, DAY(0), DAY(40));
    for (int run = 1; run <= 5; run++) {
        add_samples(run, DAY(0), HOUR_NS, 10);
        add_samples(run, DAY(0) + 5000 * MINUTE_NS, HOUR_NS, 1);
        drop(run, 1, 1, DELIVERY_SPOOL_FULL, DAY(0), DAY(40));
    }
    struct query query = {.kind = QUERY_AVERAGE,
                          .metric = "process_sample.cpu_ratio",
                          .step_ns = MINUTE_NS,
                          .group_by = {QUERY_BY_RUN},
                          .group_count = 1};
    struct store *opened = open_store();
    struct result *result = answer(opened, &query);
    const struct value value = result_cell(result, 0, (unsigned)result_find(result, "note"));
    assert_int_equal(result_row_count(result), 55);
    assert_int_equal(value.type, VALUE_TEXT);
    assert_int_equal(result_cell(result, 0, (unsigned)result_find(result, "coverage_ratio")).type,
                     VALUE_NULL);
    result_free(result);
    store_close(opened);
}

// The dashboard's rows, and baselines, have it of the window, too.
TEST_CASE(test_coverage_of_an_overview)
{
    make_year();
    drop(2, 1, 6, DELIVERY_SPOOL_FULL, DAY(39), DAY(39));
    struct query query = {.kind = QUERY_OVERVIEW};
    exec("UPDATE run SET \"end\" = 0");
    struct store *opened = open_store();
    for (int is_late = 0; is_late < 2; is_late++) {
        query.filter.since_ns = is_late ? DAY(39) : DAY(10);
        query.filter.until_ns = is_late ? 0 : DAY(11);
        struct result *result = answer(opened, &query);
        assert_int_equal(result_row_count(result), 2);
        for (size_t row = 0; row < 2; row++) {
            const struct value host = result_cell(result, row, 0);
            const bool has_lost =
                is_late && strncmp(host.text.bytes, rig_names[2 % HOSTS], host.text.size) == 0;
            assert_int_equal(result_integer(result, row, "lost", -1), has_lost ? 6 : 0);
            expect_near(result_number(result, row, "coverage_ratio", NAN),
                        has_lost ? 24.0 / 30 : 1);
        }
        result_free(result);
    }
    store_close(opened);
}

static const enum record_kind kinds[] = {
    RECORD_KIND_DEVICE,         RECORD_KIND_LOAD,
    RECORD_KIND_LOAD_STAGE,     RECORD_KIND_ITL,
    RECORD_KIND_OPERATION,      RECORD_KIND_PIPELINE,
    RECORD_KIND_PROCESS_SAMPLE, RECORD_KIND_DEVICE_SAMPLE,
    RECORD_KIND_HOST_SAMPLE,    RECORD_KIND_EVENT,
};

static void add_losses(void)
{
    exec("CREATE TABLE life AS SELECT run, min(started_ns) AS a, max(started_ns) AS b"
         " FROM everything GROUP BY run");
    exec("UPDATE run SET started_ns = (SELECT a FROM life l WHERE l.run = run.run),"
         " heard_ns = (SELECT b FROM life l WHERE l.run = run.run);"
         "DROP TABLE life");
    for (int stream = 0; stream < 12; stream++) {
        const int64_t since_ns = pick(4) ? pick_time() : 0;
        drop(1 + (int)pick(RUNS - 1), stream, 1 + pick(90), (enum delivery_reason)pick(7), since_ns,
             since_ns + pick(3 * HOUR_NS));
    }
    execf("INSERT INTO stream(run, stream, next, produced, unnumbered)"
          " SELECT run, 99, 1, 1, %" PRId64 " FROM run WHERE run %% 3 = 1",
          30 + pick(40));
    for (int told = 0; told < 3; told++) {
        const int64_t since_ns = pick_time();
        execf(
            "INSERT INTO unnumbered(run, told_ns, lost, since_ns, until_ns) VALUES(%d, %d, %" PRId64
            ", %" PRId64 ", %" PRId64 ")",
            told == 0 ? 4 : 1, told, 1 + pick(10), since_ns, since_ns + pick(3 * HOUR_NS));
    }
}

static void make_random_store(bool with_rollups)
{
    struct error err;
    char name[FOLDER_PATH_SIZE];
    make_random(250);
    exec("CREATE VIEW everything AS SELECT run, started_ns FROM inference");
    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        const char *kind = record_kind_info(kinds[i])->name;
        add_records(kinds[i], 20 + pick(60));
        execf("INSERT INTO ledger(run, kind, stored) SELECT run, %d, count(*) FROM \"%s\""
              " GROUP BY run",
              (int)kinds[i], kind);
    }
    exec(
        "DROP VIEW everything; CREATE VIEW everything AS SELECT run, started_ns FROM inference"
        " UNION ALL SELECT run, started_ns FROM device UNION ALL SELECT run, started_ns FROM load"
        " UNION ALL SELECT run, started_ns FROM load_stage"
        " UNION ALL SELECT run, started_ns FROM itl UNION ALL SELECT run, started_ns FROM operation"
        " UNION ALL SELECT run, started_ns FROM pipeline"
        " UNION ALL SELECT run, started_ns FROM process_sample"
        " UNION ALL SELECT run, started_ns FROM device_sample"
        " UNION ALL SELECT run, started_ns FROM host_sample"
        " UNION ALL SELECT run, started_ns FROM event");
    exec("UPDATE device_sample SET memory_used_bytes_stored ="
         " coalesce(memory_used_bytes_stored, '1')");
    exec("UPDATE host_sample SET load_1m = coalesce(load_1m, 1)");
    add_losses();
    (void)folder_path(name, folder, "plain.db");
    execf("VACUUM INTO '%s'", name);
    expect_ok(database_open_reader(&plain, name, &err), &err);
    static const char *const rolled_up[] = {"e2e_ns",
                                            "load.duration_ns",
                                            "itl.duration_ns",
                                            "operation.duration_ns",
                                            "pipeline.duration_ns",
                                            "memory_used_bytes",
                                            "host_sample.memory_total_bytes",
                                            "load_1m",
                                            "gpu_util_ratio",
                                            "temperature_celsius",
                                            "process_sample.host_memory_bytes"};
    exec("BEGIN");
    for (size_t i = 0; i < COUNT_OF(rolled_up) && with_rollups; i++)
        rollup_builder_fill(db, metric_of(rolled_up[i]), pick(300), false);
    exec("COMMIT");
}

// What a row of an answer is of.
struct row_key {
    int64_t host, run; // 0: any
    int64_t first_ns, last_ns;
};

static int64_t sum_plain(const char *format, ...) __attribute__((format(printf, 1, 2)));
static int64_t sum_plain(const char *format, ...)
{
    char sql[1024];
    va_list list;
    va_start(list, format);
    (void)vsnprintf(sql, sizeof sql, format, list);
    va_end(list);
    return integer_in(plain, sql);
}

#define OF_RUN                                                                                     \
    "(%" PRId64 " = 0 OR r.host = %" PRId64 ") AND (%" PRId64 " = 0 OR r.run = %" PRId64 ")"

static void expect_row(const struct result *result, size_t row, const struct row_key *key)
{
    const int64_t lost = sum_plain(
        "SELECT CAST(total(n) AS INTEGER) FROM (SELECT x.n,"
        " CASE WHEN coalesce(x.since, 0) = 0 OR x.reason = 3 THEN r.started_ns"
        "  ELSE max(r.started_ns, min(x.since, r.heard_ns)) END AS a,"
        " CASE WHEN coalesce(x.since, 0) = 0 THEN r.heard_ns"
        "  ELSE max(r.started_ns, min(x.until, r.heard_ns)) END AS b"
        " FROM run r JOIN (SELECT run, last - first + 1 AS n, reason, since_ns AS since,"
        "  until_ns AS until FROM range WHERE state = 1"
        "  UNION ALL SELECT run, lost, NULL, since_ns, until_ns FROM unnumbered"
        "  UNION ALL SELECT s.run, s.unnumbered - (SELECT coalesce(sum(lost), 0) FROM unnumbered u"
        "   WHERE u.run = s.run), NULL, NULL, NULL FROM stream s) x ON x.run = r.run"
        " WHERE " OF_RUN ") WHERE a <= %" PRId64 " AND b >= %" PRId64,
        key->host, key->host, key->run, key->run, key->last_ns, key->first_ns);
    const int64_t stored =
        sum_plain("SELECT count(*) FROM everything e JOIN run r ON r.run = e.run WHERE " OF_RUN
                  " AND e.started_ns BETWEEN %" PRId64 " AND %" PRId64,
                  key->host, key->host, key->run, key->run, key->first_ns, key->last_ns);
    assert_int_equal(result_integer(result, row, "lost", -1), lost);
    expect_near(result_number(result, row, "coverage_ratio", NAN),
                lost ? (double)stored / (double)(stored + lost) : 1);
}

static int64_t id_of(const struct result *result, size_t row, const char *key, bool is_run)
{
    const int column = result_find(result, key);
    const struct value value = result_cell(result, row, column < 0 ? 0 : (unsigned)column);
    if (column < 0 || value.type != VALUE_TEXT)
        return 0;
    if (is_run)
        return strtoll(value.text.bytes, NULL, 10); // its number leads its UUID
    for (int64_t i = 0; i < RIG_NAMES; i++)
        if (strlen(rig_names[i]) == value.text.size &&
            memcmp(rig_names[i], value.text.bytes, value.text.size) == 0)
            return i + 1;
    return 0;
}

static void pick_query(struct query *query)
{
    static const enum query_dimension by[][2] = {{QUERY_BY_HOST, QUERY_BY_MODEL},
                                                 {QUERY_BY_RUN, QUERY_BY_HOST},
                                                 {QUERY_BY_MODEL, QUERY_BY_HOST}};
    *query = (struct query){.kind = QUERY_AVERAGE, .metric = "e2e_ns"};
    const size_t which = (size_t)pick(COUNT_OF(by));
    query->group_count = (unsigned)pick(3);
    memcpy(query->group_by, by[which], sizeof by[which]);
    query->filter.since_ns = pick(3) ? pick_time() : 0;
    query->filter.until_ns = pick(3) ? pick_time() + 1 : 0;
    if (query->filter.until_ns && query->filter.since_ns >= query->filter.until_ns)
        query->filter.until_ns = query->filter.since_ns + DAY_NS;
    if (pick(3) == 0)
        query->step_ns = pick(2) ? DAY_NS : 10 * DAY_NS;
    if (pick(4) == 0)
        (void)snprintf(query->filter.by[QUERY_BY_HOST], QUERY_TEXT_SIZE, "%s",
                       rig_names[pick(HOSTS)]);
    if (pick(5) == 0)
        (void)snprintf(query->filter.by[QUERY_BY_RUN], QUERY_TEXT_SIZE, "%08d",
                       1 + (int)pick(RUNS));
}

// Whether there was an answer.
static bool check_query(struct store *opened, const struct query *query)
{
    struct error err = {0};
    struct result *result = NULL;
    const enum status status = store_query(opened, query, &result, &err);
    if (status == STATUS_NO_DATA || status == STATUS_INVALID) // nothing there, or too many steps
        return false;
    expect_ok(status, &err);
    for (size_t row = 0; row < result_row_count(result); row++) {
        struct row_key key = {
            .host = id_of(result, row, "host", false),
            .run = id_of(result, row, "run", true),
            .first_ns = query->filter.since_ns ? query->filter.since_ns : INT64_MIN,
            .last_ns = query->filter.until_ns ? query->filter.until_ns - 1 : INT64_MAX};
        if (!key.host && query->filter.by[QUERY_BY_HOST][0])
            for (int64_t i = 0; i < HOSTS; i++)
                if (strcmp(rig_names[i], query->filter.by[QUERY_BY_HOST]) == 0)
                    key.host = i + 1;
        if (!key.run && query->filter.by[QUERY_BY_RUN][0])
            key.run = strtoll(query->filter.by[QUERY_BY_RUN], NULL, 10);
        if (query->step_ns > 0) {
            const int64_t step_ns = result_integer(result, row, "started_ns", 0);
            const int64_t last_ns = step_ns + query->step_ns - 1;
            key.first_ns = step_ns > key.first_ns ? step_ns : key.first_ns;
            key.last_ns = last_ns < key.last_ns ? last_ns : key.last_ns;
        }
        expect_row(result, row, &key);
    }
    result_free(result);
    return true;
}

TEST_CASE(test_coverage_is_that_of_sql)
{
    int answered = 0;
    for (int i = 0; i < 8; i++) {
        seed = 7700 + (uint64_t)i;
        make_random_store(i & 1);
        struct store *opened = open_store();
        for (int n = 0; n < 60; n++) {
            struct query query;
            pick_query(&query);
            answered += check_query(opened, &query);
        }
        store_close(opened);
        database_close(plain);
        plain = NULL;
        drop_store();
    }
    assert_true(answered > 100);
}

// Averages and summaries say the same of a filter by model: losses are those of the runs that used
// it, and what such a run stored is taken to be spread over its life.
TEST_CASE(test_coverage_of_a_model)
{
    make_year();
    for (int run = 2; run <= 3; run++)
        execf("INSERT INTO run_name(run, number, name) VALUES(%d, 1, %d);"
              "INSERT INTO inference(run, stream, number, started_ns, received_ns, model, device,"
              " request, finish, prompt_tokens, cached_prompt_tokens, generated_tokens, queue_ns,"
              " prefill_ns, e2e_ns, host_memory_bytes) VALUES(%d, 9, 1, %" PRId64 ", %" PRId64
              ", %d, 4, 1, 0, 1, 0, 1, 0, 1, 5, 7)",
              run, 4 + run, run, DAY(15), DAY(15), 4 + run);
    drop(2, 1, 60, DELIVERY_SPOOL_FULL, DAY(1), DAY(1));
    drop(3, 1, 40, DELIVERY_SPOOL_FULL, DAY(12), DAY(12));
    static const struct {
        const char *model;
        int64_t since_ns, until_ns, lost, stored;
    } cases[] = {
        {"tiny", 0, 0, 60, 960},
        {"small", 0, 0, 40, 960},
        {"", 0, 0, 100, 1920},
        {"small", DAY(10), DAY(20), 40, 240},
        {"tiny", DAY(10), DAY(20), 0, 0},
        {"small", DAY(-1), DAY(20), 40, 480},
    };
    struct store *opened = open_store();
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        for (int is_summary = 0; is_summary < 2; is_summary++) {
            struct query query = {.kind = is_summary ? QUERY_SUMMARY : QUERY_AVERAGE,
                                  .metric = "e2e_ns"};
            query.filter.since_ns = cases[i].since_ns;
            query.filter.until_ns = cases[i].until_ns;
            (void)snprintf(query.filter.by[QUERY_BY_MODEL], QUERY_TEXT_SIZE, "%s", cases[i].model);
            struct result *result = answer(opened, &query);
            assert_int_equal(result_integer(result, 0, "lost", -1), cases[i].lost);
            expect_near(result_number(result, 0, "coverage_ratio", NAN),
                        cases[i].lost
                            ? (double)cases[i].stored / (double)(cases[i].stored + cases[i].lost)
                            : 1);
            result_free(result);
        }
    store_close(opened);
}

TEST_MAIN_EACH(random_set_up, tear_down, test_a_loss_counts_where_it_was,
               test_losses_of_unknown_times, test_coverage_of_what_is_gone,
               test_a_coverage_that_cannot_be_had, test_coverage_of_an_overview,
               test_coverage_is_that_of_sql, test_coverage_of_a_model)
