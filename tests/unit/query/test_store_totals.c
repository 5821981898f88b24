// Running totals: they begin at zero and equal what SQL counts of later records; they are limited
// in number, and nothing lowers them.

#include <sqlite3.h>

#include "common/core/base/error.h"
#include "common/store/query/totals.h"
#include "tests/support/store/rows.h"
#include "tests/support/test.h"
#include "tests/unit/store/store_fixture.h"

#define SECOND INT64_C(1000000000)
#define MS     INT64_C(1000000)

enum { MODELS = 4, DEVICES = 2, REQUESTS = 300 };

static uint32_t models[MODELS], devices[DEVICES];
static uint64_t random_state;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

TEST_FIXTURE(set_up)
{
    store_make(state);
    for (unsigned i = 0; i < MODELS; i++)
        models[i] = rows_name(db, format_text("model-%u", i));
    for (unsigned i = 0; i < DEVICES; i++)
        devices[i] = rows_name(db, format_text("gpu%u", i));
    rows_run(db, 1, "alpha", START_NS, START_NS + 1000 * SECOND);
    rows_run(db, 2, "beta", START_NS, START_NS + 1000 * SECOND);
    exec("UPDATE run SET owner = 1");
    random_state = 1;
    return store_read();
}

static unsigned draw(unsigned below)
{
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (unsigned)(random_state >> 33) % below;
}

static void add_request(unsigned at, unsigned model)
{
    struct record record;
    const int64_t output = draw(40);
    const int64_t ttft = (1 + draw(9000)) * MS / 10;
    record_init(&record, RECORD_KIND_INFERENCE, START_NS + at * SECOND);
    for (unsigned i = INFERENCE_REQUEST; i <= INFERENCE_HOST_MEMORY; i++)
        if (!record_kind_info(RECORD_KIND_INFERENCE)->columns[i].maybe)
            record_set_int(&record, i, 1);
    record_set_name(&record, INFERENCE_MODEL, models[model]);
    record_set_name(&record, INFERENCE_DEVICE, devices[draw(DEVICES)]);
    record_set_int(&record, INFERENCE_FINISH, draw(4));
    record_set_int(&record, INFERENCE_E2E_NS, ttft + output * (1 + draw(300)) * MS / 10);
    if (model == 0) { // makes no tokens
        record_set_int(&record, INFERENCE_ITEMS, 1 + draw(9));
    } else {
        record_set_int(&record, INFERENCE_PROMPT_TOKENS, draw(500));
        record_set_int(&record, INFERENCE_GENERATED_TOKENS, output);
        if (output > 0)
            record_set_int(&record, INFERENCE_TTFT_NS, ttft);
    }
    (void)rows_add(db, 1 + draw(2), &record);
}

static void add_load(unsigned at, unsigned model)
{
    struct record record;
    record_init(&record, RECORD_KIND_LOAD, START_NS + at * SECOND);
    record_set_name(&record, LOAD_MODEL, models[model]);
    record_set_name(&record, LOAD_DEVICE, devices[0]);
    record_set_int(&record, LOAD_DURATION_NS, (1 + draw(90)) * SECOND / 2);
    record_set_int(&record, LOAD_STATUS, draw(3));
    record_set_int(&record, LOAD_MODEL_BYTES, 1);
    record_set_int(&record, LOAD_HOST_MEMORY_BEFORE, 1);
    record_set_int(&record, LOAD_HOST_MEMORY_AFTER, 1);
    (void)rows_add(db, 1 + draw(2), &record);
}

static void add_records(void)
{
    exec("BEGIN");
    for (unsigned i = 0; i < REQUESTS; i++) {
        add_request(i, draw(MODELS));
        if (i % 20 == 0)
            add_load(i, draw(MODELS));
    }
    exec("COMMIT");
}

static struct totals *new_totals(size_t most)
{
    struct error err;
    struct totals *totals = NULL;
    expect_ok(totals_new(&totals, store, most, &err), &err);
    return totals;
}

static void feed(struct totals *totals, uint32_t limit)
{
    struct error err;
    bool more = true;
    while (more)
        expect_ok(totals_feed(totals, store, limit, &lock, &more, &err), &err);
}

static const struct totals_series *find(const struct totals *totals, const char *host,
                                        const char *model, const char *device)
{
    for (size_t i = 0; i < totals_count(totals); i++) {
        const struct totals_series *series = totals_at(totals, i);
        if (strcmp(series->host, host) == 0 && strcmp(series->model, model) == 0 &&
            strcmp(series->device, device) == 0)
            return series;
    }
    return NULL;
}

// SQL's count of the rows of a series.
static double counted(const char *what, const char *table, const struct totals_series *series)
{
    return store_number(format_text("SELECT %s FROM v_%s WHERE host = '%s' AND model = '%s' AND"
                                    " device = '%s'",
                                    what, table, series->host, series->model, series->device));
}

static void expect_series(const struct totals_series *series)
{
    static const struct {
        enum totals_counter counter;
        const char *sql, *table;
    } counters[] = {
        {TOTALS_REQUESTS, "count(*)", "inference"},
        {TOTALS_FAILED, "total(finish = 'error')", "inference"},
        {TOTALS_CANCELLED, "total(finish = 'cancelled')", "inference"},
        {TOTALS_PROMPT_TOKENS, "total(prompt_tokens)", "inference"},
        {TOTALS_OUTPUT_TOKENS, "total(generated_tokens)", "inference"},
        {TOTALS_ITEMS, "total(items)", "inference"},
        {TOTALS_LOADS, "count(*)", "load"},
        {TOTALS_LOADS_FAILED, "total(status = 'error')", "load"},
    };
    static const char *const values[] = {[TOTALS_E2E] = "e2e_ns",
                                         [TOTALS_TTFT] = "ttft_ns",
                                         [TOTALS_TPOT] = "tpot_ns",
                                         [TOTALS_LOAD] = "duration_ns"};
    for (size_t i = 0; i < COUNT_OF(counters); i++)
        assert_int_equal(series->counters[counters[i].counter],
                         counted(counters[i].sql, counters[i].table, series));
    for (unsigned h = 0; h < TOTALS_HISTOGRAM_COUNT; h++) {
        const struct totals_bins *bins = &series->bins[h];
        const char *table = h == TOTALS_LOAD ? "load" : "inference";
        uint64_t sum = 0;
        assert_int_equal(bins->count, counted(format_text("count(%s)", values[h]), table, series));
        expect_close(bins->sum_seconds,
                     counted(format_text("total(%s) / 1e9", values[h]), table, series), values[h]);
        for (unsigned b = 0; b < totals_edges[h].count; b++) {
            sum += bins->counts[b];
            assert_int_equal(sum, counted(format_text("total(%s <= %.17g)", values[h],
                                                      totals_edges[h].seconds[b] * 1e9),
                                          table, series));
        }
        assert_int_equal(sum + bins->counts[totals_edges[h].count], bins->count);
    }
}

static void expect_all(const struct totals *totals)
{
    assert_int_equal(totals_count(totals), 2 * MODELS * DEVICES);
    assert_int_equal(totals_folded(totals), 0);
    for (size_t i = 0; i < totals_count(totals); i++)
        expect_series(totals_at(totals, i));
}

TEST_CASE(test_counts_records)
{
    struct totals *totals = new_totals(100);
    feed(totals, 7); // nothing yet
    assert_int_equal(totals_count(totals), 0);
    add_records();
    feed(totals, 7);
    expect_all(totals);
    feed(totals, 7); // nothing more
    expect_all(totals);
    add_records();
    feed(totals, 1000);
    expect_all(totals);
    totals_free(totals);
}

// What the store had before is not counted.
TEST_CASE(test_begins_at_zero)
{
    add_records();
    struct totals *totals = new_totals(100);
    feed(totals, 100);
    assert_int_equal(totals_count(totals), 0);
    add_request(0, 1);
    feed(totals, 100);
    assert_int_equal(totals_count(totals), 1);
    assert_int_equal(totals_at(totals, 0)->counters[TOTALS_REQUESTS], 1);
    totals_free(totals);
}

TEST_CASE(test_imported_runs)
{
    struct totals *totals = new_totals(100);
    exec("UPDATE run SET owner = 0");
    add_records();
    feed(totals, 7); // goes on after them
    assert_int_equal(totals_count(totals), 0);
    exec("UPDATE run SET owner = 1");
    add_request(0, 1);
    feed(totals, 7);
    assert_int_equal(totals_count(totals), 1);
    assert_int_equal(totals_at(totals, 0)->counters[TOTALS_REQUESTS], 1);
    totals_free(totals);
}

// An exact edge belongs to the bin below it, as `le` says.
TEST_CASE(test_edges)
{
    struct totals *totals = new_totals(100);
    add_request(0, 0);
    exec("UPDATE inference SET e2e_ns = 10000000");
    feed(totals, 10);
    const struct totals_bins *bins = &totals_at(totals, 0)->bins[TOTALS_E2E];
    for (unsigned i = 0; i < totals_edges[TOTALS_E2E].count; i++)
        assert_int_equal(bins->counts[i], totals_edges[TOTALS_E2E].seconds[i] == 0.01);
    totals_free(totals);
}

TEST_CASE(test_clearing_lowers_nothing)
{
    struct totals *totals = new_totals(100);
    add_records();
    feed(totals, 1000);
    const struct totals_series before = *totals_at(totals, 3);
    exec("DELETE FROM inference; DELETE FROM load; DELETE FROM rollup");
    feed(totals, 10);
    assert_memory_equal(totals_at(totals, 3), &before, sizeof before);
    totals_free(totals);
}

// A model of which all was forgotten comes back with another id of its name: as the same series.
TEST_CASE(test_name_comes_back)
{
    struct totals *totals = new_totals(100);
    add_load(1, 2);
    exec("UPDATE load SET run = 1");
    feed(totals, 10);
    exec("UPDATE name SET id = 1000 WHERE text = 'model-2'");
    models[2] = 1000;
    add_load(1, 2);
    exec("UPDATE load SET run = 1");
    feed(totals, 10);
    assert_int_equal(totals_count(totals), 1);
    assert_int_equal(totals_at(totals, 0)->counters[TOTALS_LOADS], 2);
    totals_free(totals);
}

static uint64_t requests_of(const struct totals *totals)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < totals_count(totals); i++)
        sum += totals_at(totals, i)->counters[TOTALS_REQUESTS];
    return sum;
}

TEST_CASE(test_limit_of_series)
{
    struct totals *totals = new_totals(5);
    add_records();
    feed(totals, 100);
    assert_int_equal(totals_count(totals), 6);
    assert_int_equal(totals_folded(totals), 2 * MODELS * DEVICES - 5);
    assert_int_equal(requests_of(totals), REQUESTS);
    const struct totals_series *other = find(totals, "other", "other", "other");
    assert_ptr_equal(other, totals_at(totals, 5));
    add_records();
    feed(totals, 100);
    assert_int_equal(totals_count(totals), 6);
    assert_int_equal(requests_of(totals), 2 * REQUESTS);
    assert_int_equal(totals_folded(totals), 2 * MODELS * DEVICES - 5);
    totals_free(totals);
    totals_free(NULL);
}

TEST_MAIN_EACH(set_up, store_tear_down, test_counts_records, test_begins_at_zero,
               test_imported_runs, test_edges, test_clearing_lowers_nothing, test_name_comes_back,
               test_limit_of_series)
