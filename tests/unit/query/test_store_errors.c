// Failures counted by their text: small stores whose counts can be worked out by hand, and a peer
// that fails with a different text each time.
#include <sqlite3.h>

#include "common/store/sqlite/database.h"
#include "common/store/store.h"
#include "tests/support/store/rows.h"
#include "tests/support/test.h"
#include "tests/unit/store/store_fixture.h"

#define SECOND INT64_C(1000000000)

static uint32_t models[2], device, operation;

TEST_FIXTURE(set_up)
{
    store_make(state);
    models[0] = rows_name(db, "small");
    models[1] = rows_name(db, "large");
    device = rows_name(db, "gpu");
    operation = rows_name(db, "tokenise");
    rows_run(db, 1, "alpha", START_NS, START_NS + 1000 * SECOND);
    rows_run(db, 2, "beta", START_NS, START_NS + 1000 * SECOND);
    return store_read();
}

static void set_error(struct record *record, unsigned column, const char *error)
{
    if (error)
        (void)record_set_text(record, column, error, strlen(error));
}

static void add_inference(int64_t run, int64_t at_s, unsigned model, enum record_finish finish,
                          const char *error)
{
    struct record record;
    record_init(&record, RECORD_KIND_INFERENCE, START_NS + at_s * SECOND);
    for (unsigned i = INFERENCE_REQUEST; i <= INFERENCE_HOST_MEMORY; i++)
        if (!record_kind_info(RECORD_KIND_INFERENCE)->columns[i].maybe)
            record_set_int(&record, i, 1);
    record_set_name(&record, INFERENCE_MODEL, models[model]);
    record_set_name(&record, INFERENCE_DEVICE, device);
    record_set_int(&record, INFERENCE_FINISH, (int64_t)finish);
    set_error(&record, INFERENCE_ERROR, error);
    (void)rows_add(db, run, &record);
}

static void add_load(int64_t run, int64_t at_s, enum record_status status, const char *error)
{
    struct record record;
    record_init(&record, RECORD_KIND_LOAD, START_NS + at_s * SECOND);
    record_set_name(&record, LOAD_MODEL, models[1]);
    record_set_name(&record, LOAD_DEVICE, device);
    record_set_int(&record, LOAD_DURATION_NS, 1);
    record_set_int(&record, LOAD_STATUS, (int64_t)status);
    record_set_int(&record, LOAD_MODEL_BYTES, 1);
    record_set_int(&record, LOAD_HOST_MEMORY_BEFORE, 1);
    record_set_int(&record, LOAD_HOST_MEMORY_AFTER, 1);
    set_error(&record, LOAD_ERROR, error);
    (void)rows_add(db, run, &record);
}

static void add_operation(int64_t run, int64_t at_s, const char *error)
{
    struct record record;
    record_init(&record, RECORD_KIND_OPERATION, START_NS + at_s * SECOND);
    record_set_name(&record, OPERATION_OPERATION, operation);
    record_set_int(&record, OPERATION_DURATION_NS, 1);
    set_error(&record, OPERATION_ERROR, error);
    (void)rows_add(db, run, &record);
}

static void add_failures(void)
{
    add_inference(1, 10, 0, RECORD_FINISH_ERROR, "slot 7 is gone");
    add_inference(1, 30, 1, RECORD_FINISH_ERROR, "slot 12 is gone");
    add_inference(2, 20, 0, RECORD_FINISH_ERROR, "slot 9 is gone");
    add_inference(2, 40, 0, RECORD_FINISH_ERROR, NULL);
    add_inference(2, 41, 0, RECORD_FINISH_STOP, NULL);
    add_inference(2, 42, 0, RECORD_FINISH_CANCELLED, "the client left");
    add_load(1, 50, RECORD_STATUS_ERROR, "slot 3 is gone");
    add_load(1, 51, RECORD_STATUS_CANCELLED, "stopped");
    add_load(1, 52, RECORD_STATUS_OK, NULL);
    add_operation(2, 60, "no merges");
    add_operation(2, 61, "no merges");
    add_operation(2, 62, NULL);
}

// "model|host|kind|error|count|first|last|example" of each row; times in seconds after the start.
static void expect_rows(const struct query *query, const char *expected)
{
    char text[2048] = "";
    size_t used = 0;
    struct result *result = ask(query);
    static const char *const keys[] = {"model", "host",     "kind",    "error",
                                       "count", "first_ns", "last_ns", "example"};
    for (size_t row = 0; row < result_row_count(result); row++) {
        for (size_t i = 0; i < COUNT_OF(keys); i++) {
            const struct value value = result_get(result, row, keys[i]);
            const char *end = i + 1 == COUNT_OF(keys) ? "\n" : "|";
            int written = 0;
            if (value.type == VALUE_INT)
                written = snprintf(
                    text + used, sizeof text - used, "%lld%s",
                    (long long)(value.i < START_NS ? value.i : (value.i - START_NS) / SECOND), end);
            else if (value.type == VALUE_TEXT)
                written = snprintf(text + used, sizeof text - used, "%.*s%s", (int)value.text.size,
                                   value.text.bytes, end);
            else
                written = snprintf(text + used, sizeof text - used, "%s", end);
            used += (size_t)written;
        }
        assert_int_equal(result_get(result, row, "note").type, VALUE_NULL);
    }
    assert_string_equal(text, expected);
    result_free(result);
}

TEST_CASE(test_counts)
{
    add_failures();
    struct query query = {.kind = QUERY_ERRORS};
    expect_rows(&query, "||inference|slot # is gone|3|10|30|slot 9 is gone\n"
                        "||operation|no merges|2|60|61|no merges\n"
                        "||load|slot # is gone|1|50|50|slot 3 is gone\n"
                        "||inference||1|40|40|\n");
    query.limit = 2;
    expect_rows(&query, "||inference|slot # is gone|3|10|30|slot 9 is gone\n"
                        "||operation|no merges|2|60|61|no merges\n"
                        "|||other|2|40|50|\n");
    query.limit = 0;
    query.filter.since_ns = START_NS + 20 * SECOND;
    query.filter.until_ns = START_NS + 50 * SECOND;
    expect_rows(&query, "||inference|slot # is gone|2|20|30|slot 9 is gone\n"
                        "||inference||1|40|40|\n");
}

TEST_CASE(test_groups_and_filters)
{
    add_failures();
    struct query query = {
        .kind = QUERY_ERRORS, .group_by = {QUERY_BY_MODEL, QUERY_BY_HOST}, .group_count = 2};
    (void)snprintf(query.filter.by[QUERY_BY_HOST], QUERY_TEXT_SIZE, "beta");
    expect_rows(&query, "|beta|operation|no merges|2|60|61|no merges\n"
                        "small|beta|inference||1|40|40|\n"
                        "small|beta|inference|slot # is gone|1|20|20|slot 9 is gone\n");
    // Operations have no model.
    query = (struct query){.kind = QUERY_ERRORS};
    (void)snprintf(query.filter.by[QUERY_BY_MODEL], QUERY_TEXT_SIZE, "large");
    expect_rows(&query, "||load|slot # is gone|1|50|50|slot 3 is gone\n"
                        "||inference|slot # is gone|1|30|30|slot 12 is gone\n");
    query = (struct query){.kind = QUERY_ERRORS};
    (void)snprintf(query.filter.by[QUERY_BY_OPERATION], QUERY_TEXT_SIZE, "tokenise");
    expect_rows(&query, "||operation|no merges|2|60|61|no merges\n");
}

// 20,000 texts that occur once do not displace one that occurs 80 times among the older of them;
// the answer is as large as it may be, and its counts add up to all failures.
TEST_CASE(test_a_different_text_each_time)
{
    add_operation(1, 1, "no merges");
    exec("WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 20099)"
         " INSERT INTO operation(run, stream, number, started_ns, received_ns, operation,"
         " duration_ns, error) SELECT 1, 0, 100 + i, 1790000000000000000 + i, 1790000000000000000,"
         " (SELECT operation FROM operation), 1, CASE WHEN i % 200 = 7 AND i < 16000 THEN 'again' "
         "ELSE 'text '"
         " || char(97 + i % 26) || char(97 + i / 26 % 26) || char(97 + i / 676 % 26)"
         " || char(97 + i / 17576) END FROM n");
    struct query query = {.kind = QUERY_ERRORS, .limit = 5000};
    struct result *result = ask(&query);
    int64_t sum = 0;
    assert_int_equal(result_row_count(result), 1001);
    for (size_t row = 0; row < 1001; row++)
        sum += result_integer(result, row, "count", 0);
    assert_int_equal(sum, 20101);
    assert_true(result_is(result, 0, "error", "again"));
    assert_int_equal(result_integer(result, 0, "count", 0), 80);
    assert_true(result_is(result, 1000, "error", "other"));
    result_free(result);
}

TEST_CASE(test_refusals_and_notes)
{
    static const enum query_dimension unknown[] = {QUERY_BY_STAGE, QUERY_BY_WORKLOAD,
                                                   QUERY_BY_STATUS};
    struct query query = {.kind = QUERY_ERRORS};
    expect_error(&query, STATUS_NO_DATA, "no failures");
    for (size_t i = 0; i < COUNT_OF(unknown); i++) {
        query = (struct query){.kind = QUERY_ERRORS, .group_by = {unknown[i]}, .group_count = 1};
        expect_error(&query, STATUS_INVALID, query_dimension_name(unknown[i]));
        query = (struct query){.kind = QUERY_ERRORS};
        (void)snprintf(query.filter.by[unknown[i]], QUERY_TEXT_SIZE, "ok");
        expect_error(&query, STATUS_INVALID, query_dimension_name(unknown[i]));
    }
    query = (struct query){.kind = QUERY_ERRORS};
    (void)snprintf(query.filter.by[QUERY_BY_MODEL], QUERY_TEXT_SIZE, "small");
    (void)snprintf(query.filter.by[QUERY_BY_OPERATION], QUERY_TEXT_SIZE, "tokenise");
    expect_error(&query, STATUS_NO_DATA, "no failures");
    query = (struct query){.kind = QUERY_ERRORS};
    exec("INSERT INTO expiry VALUES(6, 1790000005000000000);"
         "INSERT OR REPLACE INTO ledger(run, kind, stored, expired) VALUES(1, 6, 1, 1)");
    expect_error(&query, STATUS_NO_DATA, "have expired");
    add_operation(1, 1, "no merges");
    struct result *result = ask(&query);
    const struct value note = result_get(result, 0, "note");
    assert_int_equal(note.type, VALUE_TEXT);
    assert_non_null(strstr(note.text.bytes, "have expired"));
    result_free(result);
}

TEST_MAIN_EACH(set_up, store_tear_down, test_counts, test_groups_and_filters,
               test_a_different_text_each_time, test_refusals_and_notes)
