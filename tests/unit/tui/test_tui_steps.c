// Rows by step that are kept while only the newest are asked for: as if all were asked for.
#include "tests/support/test.h"

#include <math.h>

#include "client/tui/steps.h"
#include "tests/support/failing_malloc.h"
#include "tests/support/tui_fixture.h"

#define SECOND_NS INT64_C(1000000000)

enum { REQUESTS = 1500, SECONDS = 240, STEP = 2, WINDOW = 60 };

// Requests in the order in which they end: a store knows them from then on.
static struct {
    int start, end; // seconds
    double value;
} requests[REQUESTS];

static uint32_t seed;

static int below(int limit)
{
    seed = seed * 1664525 + 1013904223;
    return (int)((seed >> 8) % (uint32_t)limit);
}

// The means of the requests that began from `since` on and ended by `now`, by step; NULL: none.
static struct result *ask(int64_t since_ns, int now)
{
    static char text[16384];
    double sums[SECONDS / STEP] = {0};
    int counts[SECONDS / STEP] = {0}, rows = 0;
    for (unsigned i = 0; i < REQUESTS; i++) {
        if (requests[i].end > now || requests[i].start * SECOND_NS < since_ns)
            continue;
        sums[requests[i].start / STEP] += requests[i].value;
        counts[requests[i].start / STEP]++;
    }
    int size = snprintf(text, sizeof text, "started_ns|mean\n");
    for (int i = 0; i < SECONDS / STEP; i++) {
        rows += counts[i] > 0;
        if (counts[i] > 0)
            size += snprintf(text + size, sizeof text - (size_t)size, "%lld|%.17g\n",
                             (long long)(i * STEP * SECOND_NS), sums[i] / counts[i]);
    }
    return rows > 0 ? fixture_result(text) : NULL;
}

// What the poller does at a time.  Returns true if the whole window was asked for.
static bool refresh(struct steps *steps, int now, bool whole, struct result **answer)
{
    const int64_t since_ns = (now - WINDOW) * SECOND_NS;
    struct query query = {.filter.since_ns = since_ns, .step_ns = STEP * SECOND_NS};
    whole = whole || !steps_narrow(steps, 0, now * SECOND_NS, &query);
    assert_true(whole ||
                (query.filter.since_ns > since_ns && query.filter.since_ns % query.step_ns == 0));
    *answer = ask(query.filter.since_ns, now);
    assert_int_equal(steps_merge(steps, &query, since_ns, answer, NULL), STATUS_OK);
    return whole;
}

// How many rows, of steps that are all inside the window, differ from those of `whole`.
static unsigned differences(const struct result *rows, const struct result *whole, int now)
{
    const int64_t since_ns = (now - WINDOW) * SECOND_NS;
    double is[SECONDS / STEP] = {0}, should[SECONDS / STEP] = {0};
    unsigned count = 0;
    for (size_t row = 0; row < result_row_count(rows); row++) {
        const int64_t start_ns = result_integer(rows, row, "started_ns", 0);
        assert_true(row == 0 || start_ns > result_integer(rows, row - 1, "started_ns", 0));
        assert_true(start_ns > since_ns - STEP * SECOND_NS);
        is[start_ns / SECOND_NS / STEP] = result_number(rows, row, "mean", -1);
    }
    for (size_t row = 0; whole && row < result_row_count(whole); row++)
        should[result_integer(whole, row, "started_ns", 0) / SECOND_NS / STEP] =
            result_number(whole, row, "mean", -1);
    for (int i = 0; i < SECONDS / STEP; i++)
        count += i * STEP * SECOND_NS >= since_ns && fabs(is[i] - should[i]) > 1e-12;
    return count;
}

// Requests, none of them longer than `longest` seconds, for `seconds` seconds.  Returns the sum of
// the differences of all refreshes; `*parts` is how many did not ask for the whole window.
static unsigned run(int longest, unsigned every, unsigned *parts)
{
    struct steps steps = {0};
    unsigned sum = 0;
    *parts = 0;
    for (unsigned i = 0; i < REQUESTS; i++) {
        requests[i].start = below(SECONDS - longest);
        requests[i].start += requests[i].start / 50 % 2 * 20; // with pauses
        requests[i].end = requests[i].start + below(longest + 1);
        requests[i].value = below(1000);
    }
    for (int now = WINDOW + 1; now < SECONDS; now += 1 + below(3)) {
        struct result *answer = NULL, *all = ask((now - WINDOW) * SECOND_NS, now);
        const bool whole = refresh(&steps, now, every != 0 && (unsigned)now % every == 0, &answer);
        *parts += !whole;
        const unsigned found = differences(answer, all, now);
        assert_true(!whole || found == 0);
        sum += found;
        result_free(answer);
        result_free(all);
    }
    result_free(steps.rows);
    return sum;
}

TEST_CASE(rows_are_as_if_all_were_asked_for)
{
    for (seed = 1; seed < 40; seed++) {
        const uint32_t began = seed;
        unsigned parts;
        assert_int_equal(run(10, 0, &parts), 0);
        assert_true(parts > 40);
        seed = began;
    }
}

// Longer requests change older steps: more of these are asked for, and all now and then.
TEST_CASE(long_requests_make_the_reach_longer)
{
    unsigned all = 0, parts = 0, steps = 0;
    for (seed = 1; seed < 40; seed++) {
        const uint32_t began = seed;
        all += run(40, 30, &parts);
        steps += parts * WINDOW / STEP;
        assert_true(parts > 20);
        seed = began;
    }
    assert_true(all > 0);          // or the test has no long requests
    assert_true(all * 10 < steps); // with one reach, half of them
}

TEST_CASE(only_the_newest_steps_of_the_same_question_are_asked_for)
{
    static const struct {
        int64_t now, since, step, newest; // seconds
        uint32_t generation;
    } cases[] = {
        {100, 40, 2, 90, 0},  // from the newest row on
        {80, 40, 2, 70, 0},   // a client's clock that is behind
        {200, 140, 2, -1, 0}, // the rows are no longer in the window
        {100, 90, 2, -1, 0},  // no more than what is asked for
        {100, 40, 4, -1, 0},  // other steps
        {100, 40, 2, -1, 1},  // another question
    };
    struct query asked = {.filter.since_ns = SECOND_NS, .step_ns = 2 * SECOND_NS};
    struct steps steps = {0};
    struct result *rows = fixture_result("started_ns|mean|p50|p95\n"
                                         "90000000000|1|2|-\n100000000000|3|-|4\n");
    assert_false(steps_narrow(&steps, 0, 100 * SECOND_NS, &asked)); // nothing is kept
    assert_int_equal(steps_merge(&steps, &asked, SECOND_NS, &rows, NULL), STATUS_OK);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct query query = {.filter.since_ns = cases[i].since * SECOND_NS,
                              .step_ns = cases[i].step * SECOND_NS};
        assert_int_equal(
            steps_narrow(&steps, cases[i].generation, cases[i].now * SECOND_NS, &query),
            cases[i].newest >= 0);
        assert_int_equal(query.filter.since_ns,
                         (cases[i].newest >= 0 ? cases[i].newest : cases[i].since) * SECOND_NS);
    }
    assert_int_equal(result_row_count(rows), 2);
    assert_int_equal(result_number(rows, 0, "p50", 0), 2);
    assert_int_equal(result_get(rows, 1, "p50").type, VALUE_NULL);
    assert_int_equal(result_number(rows, 1, "p95", 0), 4);
    result_free(rows);

    // Without data, the newest rows go.
    struct query newest = asked;
    rows = NULL;
    newest.filter.since_ns = 100 * SECOND_NS;
    assert_int_equal(steps_merge(&steps, &newest, SECOND_NS, &rows, NULL), STATUS_OK);
    assert_int_equal(result_row_count(rows), 1);
    result_free(rows);
    result_free(steps.rows);
}

TEST_CASE(without_memory_there_is_no_answer)
{
    const struct query asked = {.filter.since_ns = SECOND_NS, .step_ns = SECOND_NS};
    enum status status = STATUS_NOMEM;
    for (long n = 0; status != STATUS_OK; n++) {
        struct error err;
        struct steps steps = {0};
        struct result *answer = fixture_result("started_ns|mean\n90000000000|1\n");
        left = n;
        status = steps_merge(&steps, &asked, SECOND_NS, &answer, &err);
        left = -1;
        assert_true((status == STATUS_OK) == (answer != NULL));
        assert_true(answer || strcmp(err.text, "chart: out of memory") == 0);
        result_free(answer);
        result_free(steps.rows);
    }
}

TEST_MAIN(without_memory_there_is_no_answer, rows_are_as_if_all_were_asked_for,
          long_requests_make_the_reach_longer,
          only_the_newest_steps_of_the_same_question_are_asked_for)
