#include "tests/support/test.h"

#include <math.h>

#include "common/core/query/query.h"

TEST_CASE(test_dimensions)
{
    for (unsigned i = 0; i < QUERY_DIMENSION_COUNT; i++)
        assert_int_equal(query_dimension_find(query_dimension_name((enum query_dimension)i)), i);
    assert_int_equal(query_dimension_find("planet"), QUERY_DIMENSION_COUNT);
}

TEST_CASE(test_numbers_of_filters)
{
    static const struct {
        enum query_dimension dimension;
        const char *text;
        int64_t number;
    } cases[] = {
        {QUERY_BY_STATUS, "ok", 0},
        {QUERY_BY_STATUS, "cancelled", 2},
        {QUERY_BY_STATUS, "1", -1},
        {QUERY_BY_SYNC, "periodic", 1},
        {QUERY_BY_SYNC, "sometimes", -1},
        {QUERY_BY_CHUNK_BYTES, "8388608", 8388608},
        {QUERY_BY_CHUNK_BYTES, "8MB", 8388608},
        {QUERY_BY_CHUNK_BYTES, "large", -1},
        {QUERY_BY_CHUNK_BYTES, "-1", -1},
        {QUERY_BY_POOL_SIZE, "4", 4},
        {QUERY_BY_POOL_SIZE, "ok", -1},
        {QUERY_BY_SOURCE, "4", -1},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        assert_int_equal(query_dimension_number(cases[i].dimension, cases[i].text),
                         cases[i].number);
        struct query query = {.kind = QUERY_SUMMARY};
        (void)snprintf(query.filter.by[cases[i].dimension], QUERY_TEXT_SIZE, "%s", cases[i].text);
        const bool is_name = !query_dimension_is_number(cases[i].dimension);
        assert_int_equal(query_check(&query, NULL),
                         is_name || cases[i].number >= 0 ? STATUS_OK : STATUS_INVALID);
    }
}

// Every numeric column with a unit is a metric, once, and every derived one.
TEST_CASE(test_metrics_are_the_table)
{
    unsigned count = 0, derived_count = 0;
    const struct query_metric *metrics = query_metrics(&count);
    const struct record_derived *derived = record_derived(&derived_count);
    static const char *const of_averages[] = {QUERY_METRIC_ITL,
                                              QUERY_METRIC_FLOOR,
                                              QUERY_METRIC_MBU,
                                              QUERY_METRIC_GOODPUT,
                                              QUERY_METRIC_REQUEST_RATE,
                                              QUERY_METRIC_OUTPUT_RATE,
                                              QUERY_METRIC_PROMPT_RATE,
                                              QUERY_METRIC_ITEM_RATE,
                                              QUERY_METRIC_ERRORS,
                                              QUERY_METRIC_CANCELLED,
                                              QUERY_METRIC_BUSY_RATE,
                                              QUERY_METRIC_MFU,
                                              QUERY_METRIC_TOKENS_PER_JOULE,
                                              QUERY_METRIC_JOULES_PER_REQUEST};
    unsigned expected = derived_count + (unsigned)COUNT_OF(of_averages);
    for (unsigned k = RECORD_KIND_RUN + 1; k < RECORD_KIND_COUNT; k++) {
        const struct record_kind_info *info = record_kind_info((enum record_kind)k);
        for (unsigned c = 0; c < info->column_count; c++)
            expected += info->columns[c].unit != UNIT_NONE && info->columns[c].unit != UNIT_TIME;
    }
    assert_int_equal(count, expected);
    count -= (unsigned)COUNT_OF(of_averages);
    for (unsigned i = 0; i < COUNT_OF(of_averages); i++) {
        assert_string_equal(metrics[count + i].name, of_averages[i]);
        assert_false(query_metric_is_of_records(&metrics[count + i]));
    }
    for (unsigned i = 0; i < count; i++) {
        assert_true(query_metric_is_of_records(&metrics[i]));
        if (metrics[i].column >= 0) {
            const struct record_column *column =
                &record_kind_info(metrics[i].kind)->columns[metrics[i].column];
            assert_string_equal(metrics[i].name, column->name);
            assert_int_equal(metrics[i].unit, column->unit);
            assert_true(column->type == COLUMN_INT || column->type == COLUMN_REAL);
        } else {
            const struct record_derived *same = &derived[i - (count - derived_count)];
            assert_string_equal(metrics[i].derived->name, same->name);
            assert_string_equal(metrics[i].derived->denominator, same->denominator);
        }
    }
}

TEST_CASE(test_find)
{
    static const struct {
        const char *name;
        enum record_kind kind;
        int column;
    } found[] = {
        {"ttft_ns", RECORD_KIND_INFERENCE, INFERENCE_TTFT_NS},
        {"load.duration_ns", RECORD_KIND_LOAD, LOAD_DURATION_NS},
        {"load_stage.duration_ns", RECORD_KIND_LOAD_STAGE, LOAD_STAGE_DURATION_NS},
        {"tokens_per_second", RECORD_KIND_INFERENCE, -1},
        {"items_per_second", RECORD_KIND_INFERENCE, -1}, // of several kinds
        {"operation.items_per_second", RECORD_KIND_OPERATION, -1},
        {"items", RECORD_KIND_INFERENCE, INFERENCE_ITEMS},
    };
    static const char *const refused[][2] = {
        {"duration_ns", "load.duration_ns"},
        {"duration_ns", "operation.duration_ns"},
        {"ttft", ""},
        {"tttf_ns", "ttft_ns"},
        {"", ""},
        {"load.", ""},
        {"\x1b[2J", "\\x1B[2J"},
    };
    const struct query_metric *metric = NULL;
    struct error err;
    for (size_t i = 0; i < COUNT_OF(found); i++) {
        assert_int_equal(query_metric_find(&metric, found[i].name, &err), STATUS_OK);
        assert_int_equal(metric->kind, found[i].kind);
        assert_int_equal(metric->column, found[i].column);
        assert_int_equal(metric->derived != NULL, found[i].column < 0);
    }
    for (size_t i = 0; i < COUNT_OF(refused); i++) {
        assert_int_equal(query_metric_find(&metric, refused[i][0], &err), STATUS_INVALID);
        assert_non_null(strstr(err.text, refused[i][1]));
        assert_null(strchr(err.text, '\x1b'));
    }
}

static void check(struct query query, enum status expected)
{
    struct error err;
    assert_int_equal(query_check(&query, &err), expected);
}

TEST_CASE(test_check)
{
    struct query query = {.kind = QUERY_SUMMARY};
    check(query, STATUS_OK);
    query.kind = QUERY_KIND_COUNT;
    check(query, STATUS_INVALID);
    query.kind = (enum query_kind) - 1;
    check(query, STATUS_INVALID);

    query = (struct query){.kind = QUERY_RECORDS, .records.kind = RECORD_KIND_COUNT};
    check(query, STATUS_INVALID);

    query = (struct query){.kind = QUERY_AVERAGE, .group_by = {QUERY_BY_HOST, QUERY_BY_MODEL}};
    query.group_count = 2;
    check(query, STATUS_OK);
    query.group_by[1] = QUERY_BY_HOST;
    check(query, STATUS_INVALID);
    query.group_by[1] = QUERY_DIMENSION_COUNT;
    check(query, STATUS_INVALID);
    query.group_count = QUERY_DIMENSION_COUNT + 1;
    check(query, STATUS_INVALID);

    query = (struct query){.filter = {.since_ns = 5, .until_ns = 5}};
    check(query, STATUS_INVALID);
    query.filter.until_ns = 6;
    check(query, STATUS_OK);

    static const struct {
        const char *run;
        enum status status;
    } runs[] = {
        {"", STATUS_OK},
        {"abc", STATUS_INVALID},
        {"abcd", STATUS_OK},
        {"00112233-4455-6677-8899-aabbccddeeff", STATUS_OK},
        {"00112233-4455-6677-8899-aabbccddeeff0", STATUS_INVALID},
        {"abcd%", STATUS_INVALID},
    };
    for (size_t i = 0; i < COUNT_OF(runs); i++) {
        query = (struct query){.kind = QUERY_RECORDS};
        strcpy(query.filter.by[QUERY_BY_RUN], runs[i].run);
        check(query, runs[i].status);
    }
    query = (struct query){.kind = QUERY_SUMMARY};
    memset(query.filter.by[QUERY_BY_MODEL], 'x', QUERY_TEXT_SIZE);
    check(query, STATUS_INVALID);
    strcpy(query.filter.by[QUERY_BY_MODEL], "\xff");
    check(query, STATUS_INVALID);
}

TEST_CASE(test_check_comparisons)
{
    const double not_a_number = nan("");
    const struct {
        struct query query;
        enum status status;
    } cases[] = {
        {{.kind = QUERY_COMPARE}, STATUS_OK},
        {{.kind = QUERY_COMPARE, .compare = {.baseline = {"may", "June-2_x.1"}, .margin = 1}},
         STATUS_OK},
        {{.kind = QUERY_COMPARE, .compare.margin = 1.01}, STATUS_INVALID},
        {{.kind = QUERY_COMPARE, .compare.margin = -0.01}, STATUS_INVALID},
        {{.kind = QUERY_COMPARE, .compare.margin = not_a_number}, STATUS_INVALID},
        {{.kind = QUERY_COMPARE, .compare.baseline = {"", "a b"}}, STATUS_INVALID},
        {{.kind = QUERY_COMPARE, .compare.other = {.since_ns = 5, .until_ns = 5}}, STATUS_INVALID},
        {{.kind = QUERY_COMPARE, .compare.other = {.by = {[QUERY_BY_RUN] = "x"}}}, STATUS_INVALID},
        {{.kind = QUERY_BASELINE_SAVE}, STATUS_INVALID},
        {{.kind = QUERY_BASELINE_SAVE, .baseline.name = "a"}, STATUS_OK},
        {{.kind = QUERY_BASELINE_DELETE}, STATUS_INVALID},
        {{.kind = QUERY_BASELINES}, STATUS_OK},
        {{.kind = QUERY_ALERTS}, STATUS_OK},
        {{.kind = QUERY_ALERTS, .alert.list = QUERY_ALERT_LIST_COUNT}, STATUS_INVALID},
        {{.kind = QUERY_ALERT_EDIT}, STATUS_INVALID},
        {{.kind = QUERY_ALERT_EDIT, .alert.id = 1}, STATUS_OK},
        {{.kind = QUERY_ALERT_EDIT, .alert.edit = QUERY_ALERT_EDIT_COUNT}, STATUS_INVALID},
        {{.kind = QUERY_ALERT_EDIT, .alert.edit = QUERY_ALERT_SILENCE}, STATUS_INVALID},
        {{.kind = QUERY_ALERT_EDIT, .alert = {.edit = QUERY_ALERT_SILENCE, .for_ns = 1}},
         STATUS_INVALID},
        {{.kind = QUERY_ALERT_EDIT,
          .alert = {.edit = QUERY_ALERT_SILENCE, .for_ns = 1, .rule = "*"}},
         STATUS_OK},
        {{.kind = QUERY_ALERT_EDIT,
          .filter.by[QUERY_BY_DEVICE] = "d",
          .alert = {.edit = QUERY_ALERT_SILENCE, .for_ns = 1}},
         STATUS_OK},
        {{.kind = QUERY_ALERT_EDIT, .alert = {.id = 1, .text = "\xff"}}, STATUS_INVALID},
        {{.kind = QUERY_ALERT_TRY}, STATUS_OK},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        check(cases[i].query, cases[i].status);
}

TEST_MAIN(test_dimensions, test_numbers_of_filters, test_metrics_are_the_table, test_find,
          test_check, test_check_comparisons)
