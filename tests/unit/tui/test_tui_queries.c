// What the dashboard asks for.
#include "tests/support/test.h"

#include "client/tui/queries.h"
#include "tests/support/tui_fixture.h"

TEST_CASE(every_ask_is_a_query_that_makes_sense)
{
    struct query_filter filter = {.since_ns = 5};
    strcpy(filter.by[QUERY_BY_HOST], "gpu-17");
    for (unsigned polled = 0; polled < POLL_COUNT; polled++) {
        struct query query;
        struct error err;
        if (polled == POLL_STAGES)
            continue;
        assert_true(queries_fill((enum polled_query)polled, &filter, NULL, &query));
        assert_int_equal(query_check(&query, &err), STATUS_OK);
        assert_memory_equal(&query.filter, &filter, sizeof filter);
    }
}

// A filter by model leaves the runs as they are: a run has no model.
TEST_CASE(a_filter_goes_as_far_as_the_dimensions_do)
{
    struct query_filter filter = {.since_ns = 5};
    strcpy(filter.by[QUERY_BY_MODEL], "stories");
    strcpy(filter.by[QUERY_BY_HOST], "gpu-17");
    struct query query;
    assert_true(queries_fill(POLL_RUNS, &filter, NULL, &query));
    assert_string_equal(query.filter.by[QUERY_BY_MODEL], "");
    assert_string_equal(query.filter.by[QUERY_BY_HOST], "gpu-17");
    assert_int_equal(query.filter.since_ns, 5);
    strcpy(filter.by[QUERY_BY_DEVICE], "cpu");
    assert_true(queries_fill(POLL_PIPELINES, &filter, NULL, &query));
    assert_string_equal(query.filter.by[QUERY_BY_MODEL], "stories"); // which a pipeline has
    assert_string_equal(query.filter.by[QUERY_BY_DEVICE], "cpu");
    assert_string_equal(query.filter.by[QUERY_BY_HOST], "gpu-17");
    assert_true(queries_fill(POLL_INFERENCES, &filter, NULL, &query));
    assert_memory_equal(&query.filter, &filter, sizeof filter);
}

TEST_CASE(stages_are_those_of_the_load)
{
    struct result *loads = fixture_result("run|started_ns|duration_ns\n"
                                          "5f0c2f6e-9a51-4c6c-8a4e-0d8f6b2f1a77|9000000000|500\n");
    struct query query;
    struct error err;
    assert_true(queries_fill(POLL_STAGES, NULL, loads, &query));
    assert_int_equal(query_check(&query, &err), STATUS_OK);
    assert_string_equal(query.filter.by[QUERY_BY_RUN], "5f0c2f6e-9a51-4c6c-8a4e-0d8f6b2f1a77");
    assert_true(query.filter.since_ns <= 9000000000 && query.filter.until_ns > 9000000500);
    assert_int_equal(query.records.kind, RECORD_KIND_LOAD_STAGE);
    result_free(loads);
}

TEST_CASE(without_a_load_there_are_no_stages_to_ask_for)
{
    static const char *const answers[] = {
        "run|started_ns|duration_ns\n",
        "started_ns|duration_ns\n9000000000|500\n",
        "run|started_ns|duration_ns\n-|9000000000|500\n",
        "run|started_ns|duration_ns\n7|9000000000|500\n",
        "run|started_ns|duration_ns\nabcd|-|500\n",
        "run|started_ns|duration_ns\nabcd|9000000000|-3\n",
        "run|started_ns|duration_ns\nabcd|9223372036854775807|500\n",
        "run|started_ns|duration_ns\nabcd|9000000000|9223372036854775807\n",
    };
    struct query query;
    assert_false(queries_fill(POLL_STAGES, NULL, NULL, &query));
    for (size_t i = 0; i < COUNT_OF(answers); i++) {
        struct result *loads = fixture_result(answers[i]);
        assert_false(queries_fill(POLL_STAGES, NULL, loads, &query));
        result_free(loads);
    }
}

TEST_CASE(records_make_answers_stale)
{
    unsigned stale = queries_stale(RECORD_KIND_INFERENCE);
    assert_true(stale >> POLL_INFERENCES & 1 && stale >> POLL_SUMMARY & 1);
    assert_false(stale >> POLL_STAGES & 1);
    assert_true(queries_stale(RECORD_KIND_LOAD_STAGE) >> POLL_STAGES & 1);
    stale = queries_stale(RECORD_KIND_PIPELINE);
    assert_true(stale >> POLL_PIPELINES & 1 && stale >> POLL_RUNS & 1 && stale >> POLL_SUMMARY & 1);
    assert_false(stale >> POLL_INFERENCES & 1);
    assert_int_equal(queries_stale(RECORD_KIND_DEVICE_SAMPLE), 0);
    uint32_t kinds = 0;
    for (unsigned kind = 0; kind < RECORD_KIND_COUNT; kind++)
        if (queries_stale((enum record_kind)kind))
            kinds |= UINT32_C(1) << kind;
    assert_int_equal(queries_kinds(), kinds);
}

TEST_MAIN(every_ask_is_a_query_that_makes_sense, a_filter_goes_as_far_as_the_dimensions_do,
          stages_are_those_of_the_load, without_a_load_there_are_no_stages_to_ask_for,
          records_make_answers_stale)
