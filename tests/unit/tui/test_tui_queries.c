// What the dashboard asks for.
#include "tests/support/test.h"

#include "client/tui/queries.h"
#include "common/monitor/sampler/health_events.h"
#include "tests/support/tui_fixture.h"

#define HOUR_NS INT64_C(3600000000000)

TEST_CASE(every_ask_is_a_query_that_makes_sense)
{
    const uint64_t about = queries_about(SUBJECT_LOAD) | queries_about(SUBJECT_REQUEST) |
                           queries_about(SUBJECT_LOAD_BEFORE);
    const uint64_t of_a_length = about | POLL(COMPARE) | POLL(TOKENS) | POLL(TTFT) | POLL(ERRORS) |
                                 POLL(OVERLAP) | POLL(EXPOSED) | POLL(STARVED) | POLL(MACHINE_USE) |
                                 POLL(MACHINE_MORE);
    struct queries_scope scope = {.window = WINDOW_DEFAULT};
    strcpy(scope.filter.by[QUERY_BY_HOST], "gpu-17");
    strcpy(scope.machine.by[QUERY_BY_HOST], "gpu-17");
    for (unsigned length = 0; length < window_lengths(); length++) {
        scope.window.length = length;
        for (unsigned polled = 0; polled < POLL_COUNT; polled++) {
            struct query query;
            struct error err;
            const bool cannot =
                (window_length_ns(&scope.window) == 0 ? of_a_length : about) >> polled & 1;
            assert_int_equal(
                queries_fill((enum polled_query)polled, &scope, FIXTURE_WALL_NS, &query), !cannot);
            if (cannot)
                continue;
            if (query_check(&query, &err) != STATUS_OK)
                fail_msg("query %u: %s", polled, err.text);
            assert_string_equal(query.filter.by[QUERY_BY_HOST],
                                polled == POLL_BASELINES || polled == POLL_FLEET ? "" : "gpu-17");
            if (polled == POLL_FLEET) // its peers are needed, and others may be worse
                assert_int_equal(query.limit, 0);
        }
    }
}

// Charts are of the filter's times, in as many steps as those of a window.
TEST_CASE(steps_are_of_the_time_that_is_shown)
{
    static const struct {
        int64_t since_ns, until_ns; // before FIXTURE_WALL_NS; 0: none
        int64_t step_ns;
    } cases[] = {
        {HOUR_NS / 4, 0, HOUR_NS / 360},
        {HOUR_NS, 0, HOUR_NS / 60},
        {24 * HOUR_NS, 0, HOUR_NS / 6},
        {168 * HOUR_NS, 0, HOUR_NS},
        {720 * HOUR_NS, 0, 6 * HOUR_NS},
        {8760 * HOUR_NS, 0, 48 * HOUR_NS},
        {25 * HOUR_NS, HOUR_NS, HOUR_NS / 6},
        {0, HOUR_NS, 0},
        {0, 0, HOUR_NS / 1800},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct queries_scope scope = {.window = WINDOW_DEFAULT};
        struct query query;
        if (cases[i].since_ns != 0)
            scope.filter.since_ns = FIXTURE_WALL_NS - cases[i].since_ns;
        if (cases[i].until_ns != 0)
            scope.filter.until_ns = FIXTURE_WALL_NS - cases[i].until_ns;
        assert_int_equal(queries_fill(POLL_TOKENS, &scope, FIXTURE_WALL_NS, &query),
                         cases[i].step_ns != 0);
        assert_int_equal(query.step_ns, cases[i].step_ns);
        assert_int_equal(queries_span(&scope, FIXTURE_WALL_NS).until_ns,
                         FIXTURE_WALL_NS - cases[i].until_ns);
    }
}

// All time of a file with a day's records at most is as a window of them: hosts, states and charts
// are as of its end.  Lists are of all time.
TEST_CASE(all_time_of_a_short_file_ends_with_it)
{
    static const enum polled_query present[] = {POLL_NOW, POLL_FLEET, POLL_HOSTS, POLL_DEVICES,
                                                POLL_TOKENS};
    struct queries_scope scope = {.window.length = window_lengths() - 1,
                                  .now_ns = FIXTURE_WALL_NS - 100 * HOUR_NS};
    struct query query;
    for (int is_short = 0; is_short < 2; is_short++) {
        scope.first_ns = scope.now_ns - (is_short ? 24 : 25) * HOUR_NS;
        for (size_t i = 0; i < COUNT_OF(present); i++) {
            const bool is_asked = queries_fill(present[i], &scope, FIXTURE_WALL_NS, &query);
            assert_true(is_asked == (is_short || present[i] != POLL_TOKENS));
            assert_int_equal(query.filter.since_ns, is_short ? scope.first_ns : 0);
            if (is_short || present[i] == POLL_NOW)
                assert_int_equal(query.filter.until_ns, scope.now_ns);
        }
        assert_true(queries_fill(POLL_INFERENCES, &scope, FIXTURE_WALL_NS, &query));
        assert_int_equal(query.filter.since_ns, 0);
    }
    scope.now_ns = 0; // of a collector that began now, the hosts are its newest samples
    scope.first_ns = FIXTURE_WALL_NS - HOUR_NS;
    assert_true(queries_fill(POLL_HOSTS, &scope, FIXTURE_WALL_NS, &query));
    assert_int_equal(query.filter.since_ns, 0);
    assert_true(queries_fill(POLL_NOW, &scope, FIXTURE_WALL_NS, &query));
    assert_int_equal(query.filter.since_ns, scope.first_ns);
}

// Where a store is younger than the window, its charts begin with it.
TEST_CASE(charts_begin_with_the_store)
{
    static const struct {
        unsigned length;
        int64_t first_ns, pan_ns; // before FIXTURE_WALL_NS
        int64_t length_ns, step_ns;
    } cases[] = {
        {4, 2 * HOUR_NS, 0, 2 * HOUR_NS, HOUR_NS / 60},        // of 7d
        {4, 2 * HOUR_NS, HOUR_NS, HOUR_NS, HOUR_NS / 60},      // it ended an hour ago
        {4, 2 * HOUR_NS, 3 * HOUR_NS, 168 * HOUR_NS, HOUR_NS}, // before all
        {4, HOUR_NS / 60, 0, HOUR_NS / 6, HOUR_NS / 360},      // a minute is no width
        {4, 400 * HOUR_NS, 0, 168 * HOUR_NS, HOUR_NS},
        {1, HOUR_NS / 60, 0, HOUR_NS / 12, HOUR_NS / 1800}, // of 5m
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct queries_scope scope = {.window.length = cases[i].length,
                                      .first_ns = FIXTURE_WALL_NS - cases[i].first_ns};
        struct query query;
        if (cases[i].pan_ns)
            scope.window.until_ns = FIXTURE_WALL_NS - cases[i].pan_ns;
        const struct queries_span span = queries_span(&scope, FIXTURE_WALL_NS);
        assert_int_equal(span.until_ns - span.since_ns, cases[i].length_ns);
        assert_true(queries_fill(POLL_TOKENS, &scope, FIXTURE_WALL_NS, &query));
        assert_int_equal(query.filter.since_ns, span.since_ns);
        assert_int_equal(query.step_ns, cases[i].step_ns);
        assert_true(queries_fill(POLL_WINDOW, &scope, FIXTURE_WALL_NS, &query));
        assert_int_equal(query.filter.since_ns,
                         FIXTURE_WALL_NS - cases[i].pan_ns - window_length_ns(&scope.window));
    }
}

TEST_CASE(answers_are_of_the_window)
{
    struct queries_scope scope = {.window = {.length = 2}}; // an hour
    struct query query;
    assert_true(queries_fill(POLL_INFERENCES, &scope, FIXTURE_WALL_NS, &query));
    assert_int_equal(query.filter.since_ns, FIXTURE_WALL_NS - HOUR_NS);
    assert_int_equal(query.filter.until_ns, 0);
    assert_true(queries_fill(POLL_RUNS, &scope, FIXTURE_WALL_NS, &query)); // of all time
    assert_int_equal(query.filter.since_ns, 0);

    window_pan(&scope.window, -2, FIXTURE_WALL_NS);
    assert_true(queries_fill(POLL_TTFT, &scope, FIXTURE_WALL_NS + HOUR_NS, &query));
    assert_int_equal(query.filter.since_ns, FIXTURE_WALL_NS - 2 * HOUR_NS);
    assert_int_equal(query.filter.until_ns, FIXTURE_WALL_NS - HOUR_NS);
    assert_int_equal(query.step_ns, HOUR_NS / 60);
    assert_true(queries_fill(POLL_COMPARE, &scope, FIXTURE_WALL_NS, &query));
    assert_int_equal(query.filter.since_ns, FIXTURE_WALL_NS - 3 * HOUR_NS);
    assert_int_equal(query.filter.until_ns, FIXTURE_WALL_NS - 2 * HOUR_NS);
    assert_int_equal(query.compare.other.since_ns, FIXTURE_WALL_NS - 2 * HOUR_NS);
    assert_int_equal(query.compare.other.until_ns, FIXTURE_WALL_NS - HOUR_NS);

    scope.filter.since_ns = 5; // a filter's own times go before
    assert_true(queries_fill(POLL_INFERENCES, &scope, FIXTURE_WALL_NS, &query));
    assert_int_equal(query.filter.since_ns, 5);
    assert_int_equal(query.filter.until_ns, 0);
    assert_false(queries_fill(POLL_COMPARE, &scope, FIXTURE_WALL_NS, &query));
}

// What needs attention now is known whatever the window, of which NOW has a day at most.
TEST_CASE(a_long_window_has_the_states_of_now)
{
    const int64_t now_ns[] = {FIXTURE_WALL_NS, FIXTURE_WALL_NS - 1};
    for (unsigned length = 0; length < window_lengths(); length++) {
        struct queries_scope scope = {.window = {.length = length}};
        struct query query;
        const int64_t length_ns = window_length_ns(&scope.window);
        for (unsigned i = 0; i < 2; i++) {
            scope.now_ns = i == 0 ? 0 : now_ns[1];
            assert_true(queries_fill(POLL_NOW, &scope, FIXTURE_WALL_NS, &query));
            assert_int_equal(query.filter.until_ns, scope.now_ns);
            assert_int_equal(query.filter.since_ns, length_ns > 0 && length_ns <= 24 * HOUR_NS
                                                        ? now_ns[i] - length_ns
                                                        : 0);
        }
    }
}

// The present of a file of another day: rates divide by the window, not by the time until today.
TEST_CASE(windows_of_an_old_file_have_an_end)
{
    static const enum polled_query of_window[] = {POLL_WINDOW,     POLL_OVERVIEW, POLL_TOKENS,
                                                  POLL_INFERENCES, POLL_FAILED,   POLL_DEVICES};
    struct queries_scope scope = {.now_ns = FIXTURE_WALL_NS};
    struct query query;
    for (unsigned length = 1; length < window_lengths(); length++) {
        scope.window.length = length;
        for (size_t i = 0; i < COUNT_OF(of_window); i++) {
            const int64_t length_ns = window_length_ns(&scope.window);
            (void)queries_fill(of_window[i], &scope, FIXTURE_WALL_NS + 999 * HOUR_NS, &query);
            assert_int_equal(query.filter.until_ns, length_ns > 0 ? FIXTURE_WALL_NS : 0);
            assert_int_equal(query.filter.since_ns,
                             length_ns > 0 ? FIXTURE_WALL_NS - length_ns : 0);
        }
    }
    scope.filter.since_ns = FIXTURE_WALL_NS - HOUR_NS; // states need an end, too
    (void)queries_fill(POLL_NOW, &scope, FIXTURE_WALL_NS + 999 * HOUR_NS, &query);
    assert_int_equal(query.filter.until_ns, FIXTURE_WALL_NS);
}

TEST_CASE(marks_of_failures_read_the_failed_alone_while_records_have_them)
{
    struct queries_scope scope = {.window = WINDOW_DEFAULT};
    struct query query;
    assert_true(queries_fill(POLL_ERRORS, &scope, FIXTURE_WALL_NS, &query));
    assert_string_equal(query.filter.by[QUERY_BY_STATUS], "error");
    for (scope.window.length = 2; window_length_ns(&scope.window) > 0; scope.window.length++) {
        assert_true(queries_fill(POLL_ERRORS, &scope, FIXTURE_WALL_NS, &query));
        assert_string_equal(query.filter.by[QUERY_BY_STATUS], "");
    }
}

// A filter by model leaves the runs as they are: a run has no model.
TEST_CASE(a_filter_goes_as_far_as_the_dimensions_do)
{
    struct queries_scope scope = {.filter.since_ns = 5};
    struct query query;
    strcpy(scope.filter.by[QUERY_BY_MODEL], "stories");
    strcpy(scope.filter.by[QUERY_BY_HOST], "gpu-17");
    assert_true(queries_fill(POLL_RUNS, &scope, FIXTURE_WALL_NS, &query));
    assert_string_equal(query.filter.by[QUERY_BY_MODEL], "");
    assert_string_equal(query.filter.by[QUERY_BY_HOST], "gpu-17");
    assert_int_equal(query.filter.since_ns, 5);
    strcpy(scope.filter.by[QUERY_BY_DEVICE], "cpu");
    assert_true(queries_fill(POLL_PIPELINES, &scope, FIXTURE_WALL_NS, &query));
    assert_string_equal(query.filter.by[QUERY_BY_MODEL], "stories"); // which a pipeline has
    assert_string_equal(query.filter.by[QUERY_BY_DEVICE], "cpu");
    assert_true(queries_fill(POLL_INFERENCES, &scope, FIXTURE_WALL_NS, &query));
    assert_memory_equal(&query.filter, &scope.filter, sizeof scope.filter);
}

TEST_CASE(hosts_ask_for_errors_alone)
{
    struct query query;
    struct queries_scope scope = {0};
    assert_true(queries_fill(POLL_EVENTS, &scope, 0, &query));
    assert_string_equal(query.filter.by[QUERY_BY_EVENT], health_kind_name(HEALTH_XID));
}

TEST_CASE(stages_are_those_of_the_load)
{
    struct result *loads = fixture_result("run|started_ns|duration_ns\n"
                                          "abcdef|1|2\n"
                                          "5f0c2f6e-9a51-4c6c-8a4e-0d8f6b2f1a77|9000000000|500\n");
    struct queries_scope scope = {0};
    struct query query;
    struct error err;
    (void)queries_select(&scope, SUBJECT_LOAD, loads, 1);
    assert_true(queries_fill(POLL_STAGES, &scope, 0, &query));
    assert_int_equal(query_check(&query, &err), STATUS_OK);
    assert_string_equal(query.filter.by[QUERY_BY_RUN], "5f0c2f6e-9a51-4c6c-8a4e-0d8f6b2f1a77");
    assert_true(query.filter.since_ns <= 9000000000 && query.filter.until_ns > 9000000500);
    assert_int_equal(query.records.kind, RECORD_KIND_LOAD_STAGE);
    (void)queries_select(&scope, SUBJECT_LOAD, loads, 2);
    assert_false(queries_fill(POLL_STAGES, &scope, 0, &query));
    result_free(loads);
}

// Usual is what was before; the load before is of the same model, host and device.
TEST_CASE(loads_are_set_beside_others)
{
    struct result *loads =
        fixture_result("run|model|host|device|started_ns|duration_ns\n"
                       "aaaa|m|h|d|9000000000000|500\nbbbb|n|h|d|8000000000000|5\n"
                       "cccc|m|h|d|6000000000000|500\ndddd|m|h|d|7000000000000|5\n"
                       "eeee|m|h|x|8000000000000|500\n");
    struct queries_scope scope = {0};
    struct query query;
    struct error err;
    assert_int_equal(queries_load_before(loads, 0), 3);
    assert_int_equal(queries_load_before(loads, 2), SIZE_MAX);
    assert_true(queries_select(&scope, SUBJECT_LOAD, loads, 0));
    assert_false(queries_select(&scope, SUBJECT_LOAD, loads, 0));
    assert_true(queries_fill(POLL_STAGES_USUAL, &scope, 0, &query));
    assert_int_equal(query_check(&query, &err), STATUS_OK);
    assert_int_equal(query.filter.until_ns, 9000000000000);
    assert_string_equal(query.filter.by[QUERY_BY_DEVICE], "d");
    assert_string_equal(query.filter.by[QUERY_BY_RUN], "");
    assert_false(queries_fill(POLL_STAGES_BEFORE, &scope, 0, &query));
    result_free(loads);
}

TEST_CASE(a_request_is_explained_by_its_peers)
{
    struct result *requests = fixture_result("run|model|host|device|started_ns|e2e_ns\n"
                                             "aaaa|m|h|d|1774785000000000000|500\n");
    struct queries_scope scope = {0};
    struct query query;
    struct error err;
    assert_true(queries_select(&scope, SUBJECT_REQUEST, requests, 0));
    assert_true(queries_fill(POLL_EXPLANATION, &scope, 0, &query));
    assert_int_equal(query_check(&query, &err), STATUS_OK);
    assert_int_equal(query.cursor, 1774785000000000000);
    assert_string_equal(query.filter.by[QUERY_BY_MODEL], "m");
    assert_string_equal(query.filter.by[QUERY_BY_HOST], "");
    assert_true(queries_fill(POLL_EVENTS_THEN, &scope, 0, &query));
    assert_string_equal(query.filter.by[QUERY_BY_HOST], "h");
    assert_int_equal(query.filter.until_ns, 1774785000000000501);
    result_free(requests);
}

// What takes long rests, so that a large fleet costs little; a small one is asked every round.
TEST_CASE(costly_answers_rest)
{
    static const struct {
        enum polled_query polled;
        uint64_t took_us, rest_ms;
    } cases[] = {
        {POLL_COMPARE, 0, 30000},    {POLL_FLEET, 100, 30000},      {POLL_NOW, 50000, 0},
        {POLL_SUMMARY, 4999, 0},     {POLL_WINDOW, 9000, 9000},     {POLL_SUMMARY, 50000, 10000},
        {POLL_HOSTS, 1000, 500},     {POLL_HOSTS, 16000, 8000},     {POLL_DEVICES, 64000, 16000},
        {POLL_TOKENS, 400, 1600},    {POLL_TTFT, 7500, 30000},      {POLL_OVERLAP, 5000000, 30000},
        {POLL_RUNS, 5000, 0},        {POLL_EVENTS, 500, 500},       {POLL_COMPARE, 500000, 100000},
        {POLL_OVERVIEW, 1000, 1000}, {POLL_OVERVIEW, 40000, 30000}, {POLL_OVERVIEW, 500000, 100000},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        assert_int_equal(queries_rest_ns(cases[i].polled, cases[i].took_us * 1000),
                         cases[i].rest_ms * 1000000);
}

TEST_CASE(sides_of_a_comparison)
{
    struct queries_scope scope = {.window = {.length = 1}}; // five minutes
    struct query query;
    struct error err;
    scope.comparison.earlier = 2; // a day
    assert_true(queries_fill(POLL_COMPARE, &scope, FIXTURE_WALL_NS, &query));
    assert_int_equal(query.compare.other.since_ns - query.filter.since_ns, 24 * HOUR_NS);
    assert_int_equal(query.filter.until_ns - query.filter.since_ns, HOUR_NS / 12);
    strcpy(scope.comparison.names[0], "june");
    strcpy(scope.comparison.names[1], "july");
    for (unsigned kind = COMPARISON_MODELS; kind < COMPARISON_KINDS; kind++) {
        scope.comparison.kind = (enum comparison_kind)kind;
        scope.window.length = window_lengths() - 1; // all time has two models, too
        assert_true(queries_fill(POLL_COMPARE, &scope, FIXTURE_WALL_NS, &query));
        assert_int_equal(query_check(&query, &err), STATUS_OK);
        assert_string_equal(query.compare.baseline[0], kind >= COMPARISON_BASELINE ? "june" : "");
        assert_string_equal(query.compare.baseline[1], kind == COMPARISON_BASELINES ? "july" : "");
        assert_string_equal(query.compare.other.by[QUERY_BY_HOST],
                            kind == COMPARISON_HOSTS ? "july" : "");
    }
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
    struct queries_scope scope = {0};
    struct query query;
    (void)queries_select(&scope, SUBJECT_LOAD, NULL, 0);
    assert_false(queries_fill(POLL_STAGES, &scope, 0, &query));
    for (size_t i = 0; i < COUNT_OF(answers); i++) {
        struct result *loads = fixture_result(answers[i]);
        (void)queries_select(&scope, SUBJECT_LOAD, loads, 0);
        assert_false(queries_fill(POLL_STAGES, &scope, 0, &query));
        result_free(loads);
    }
}

TEST_CASE(records_make_answers_stale)
{
    uint64_t stale = queries_stale(RECORD_KIND_INFERENCE);
    assert_true(stale >> POLL_INFERENCES & 1 && stale >> POLL_SUMMARY & 1);
    assert_false(stale >> POLL_STAGES & 1);
    assert_true(queries_stale(RECORD_KIND_LOAD_STAGE) >> POLL_STAGES & 1);
    stale = queries_stale(RECORD_KIND_PIPELINE);
    assert_true(stale >> POLL_PIPELINES & 1 && stale >> POLL_RUNS & 1);
    assert_false(stale >> POLL_INFERENCES & 1);
    assert_int_equal(queries_stale(RECORD_KIND_DEVICE_SAMPLE), 0);
    uint32_t kinds = 0;
    for (unsigned kind = 0; kind < RECORD_KIND_COUNT; kind++)
        if (queries_stale((enum record_kind)kind))
            kinds |= UINT32_C(1) << kind;
    assert_int_equal(queries_kinds(), kinds);
}

// Charts are of the host or device that is opened; without one they are not asked for.
TEST_CASE(machines_have_metrics_of_their_own)
{
    struct queries_scope scope = {.window = WINDOW_DEFAULT};
    struct query query;
    struct result *machines = fixture_result("host|device\ngpu-1|-\ngpu-1|cuda:3\n");
    assert_false(queries_fill(POLL_MACHINE_USE, &scope, FIXTURE_WALL_NS, &query));
    assert_true(queries_select_machine(&scope, machines, 0));
    assert_true(queries_fill(POLL_MACHINE_USE, &scope, FIXTURE_WALL_NS, &query));
    assert_string_equal(query.metric, "cpu_util_ratio");
    assert_string_equal(query.filter.by[QUERY_BY_DEVICE], "");
    assert_true(queries_select_machine(&scope, machines, 1));
    assert_false(queries_select_machine(&scope, machines, 1));
    assert_true(queries_fill(POLL_MACHINE_MORE, &scope, FIXTURE_WALL_NS, &query));
    assert_string_equal(query.metric, "power_watts");
    assert_string_equal(query.filter.by[QUERY_BY_DEVICE], "cuda:3");
    assert_true(query.step_ns > 0);
    result_free(machines);
}

TEST_MAIN(steps_are_of_the_time_that_is_shown, machines_have_metrics_of_their_own,
          every_ask_is_a_query_that_makes_sense, answers_are_of_the_window,
          charts_begin_with_the_store, all_time_of_a_short_file_ends_with_it,
          a_filter_goes_as_far_as_the_dimensions_do, hosts_ask_for_errors_alone,
          stages_are_those_of_the_load,
          marks_of_failures_read_the_failed_alone_while_records_have_them,
          a_long_window_has_the_states_of_now, windows_of_an_old_file_have_an_end,
          loads_are_set_beside_others, a_request_is_explained_by_its_peers, sides_of_a_comparison,
          costly_answers_rest, without_a_load_there_are_no_stages_to_ask_for,
          records_make_answers_stale)
