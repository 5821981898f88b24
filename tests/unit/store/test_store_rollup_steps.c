// Steps of averages: how many there may be, and where they begin and end over rows that
// have expired.
#include <inttypes.h>

#include "common/store/sqlite/database.h"
#include "tests/support/store/rollup_builder.h"
#include "tests/support/test.h"
#include "tests/unit/store/random_store.h"

static char asked[64]; // which window

TEST_CASE(test_steps_have_a_bound)
{
    seed = 4000;
    make_store(RECORD_KIND_INFERENCE, ROWS_MAX);
    struct store *opened = open_store();
    struct query query = {.kind = QUERY_AVERAGE, .metric = "e2e_ns", .step_ns = 1};
    struct error err = {0};
    struct result *result = NULL;
    assert_int_equal(store_query(opened, &query, &result, &err), STATUS_INVALID);
    assert_non_null(strstr(err.text, "at most 10000 (--step "));
    // What it says to do is enough, and not much too much.
    const char *advice = strstr(err.text, "(--step ") + strlen("(--step ");
    char unit = '\0';
    long long step = 0;
    assert_int_equal(sscanf(advice, "%lld%c or longer", &step, &unit), 2);
    const int64_t unit_ns = unit == 'd'   ? DAY_NS
                            : unit == 'h' ? HOUR_NS
                            : unit == 'm' ? MINUTE_NS
                                          : 0;
    query.step_ns = step * unit_ns;
    assert_int_equal(store_query(opened, &query, &result, &err), STATUS_OK);
    result_free(result);
    query.step_ns /= 4;
    assert_int_equal(store_query(opened, &query, &result, &err), STATUS_INVALID);
    query.step_ns = 1;
    query.filter.since_ns = INT64_MAX - 1; // nothing is there yet
    assert_int_equal(store_query(opened, &query, &result, &err), STATUS_NO_DATA);
    query.filter.since_ns = 0;
    query.filter.until_ns = 1;
    assert_int_equal(store_query(opened, &query, &result, &err), STATUS_NO_DATA);
    store_close(opened);
}

enum { MINUTES = 300, MINUTES_EXPIRED = 240 };

// A record in the middle of each minute from March on, of which the older have expired, and
// of these the minutes' rollups up to `without_minutes`.
static void make_minutes(int64_t expired, int64_t without_minutes)
{
    seed = 5000;
    make_store(RECORD_KIND_INFERENCE, MINUTES);
    exec("BEGIN");
    execf("UPDATE inference SET e2e_ns = id, started_ns = %" PRId64 " + (id - 1) * %" PRId64,
          MARCH_NS + MINUTE_NS / 2, MINUTE_NS);
    if (without_minutes)
        execf("INSERT INTO rollup_gap(kind, grouping, level, since_ns, until_ns, why)"
              " VALUES(%d, %d, %d, %" PRId64 ", %" PRId64 ", %d)",
              (int)RECORD_KIND_INFERENCE, ROLLUP_MODEL, ROLLUP_MINUTE, INT64_MIN,
              MARCH_NS + without_minutes * MINUTE_NS, ROLLUP_OLD);
    rollup_builder_fill(db, metric_of("inference.e2e_ns"), MINUTES, false);
    execf("DELETE FROM inference WHERE id <= %" PRId64, expired);
    execf("INSERT INTO expiry VALUES(%d, %" PRId64 ")", (int)RECORD_KIND_INFERENCE,
          MARCH_NS + expired * MINUTE_NS);
    exec("COMMIT");
}

// Steps of a window, in minutes and seconds of March; until 0: it is open.
static const struct {
    int64_t expired, without_minutes, since, until, step_s;
    int64_t rows, first, first_count, last, last_count;
    const char *note; // a part of it; NULL: there is none
} windows[] = {
    // Open, at its end and at both.
    {MINUTES_EXPIRED, 0, 0, 0, 60, 300, 0, 1, 299, 1, NULL},
    {MINUTES_EXPIRED, 0, 200, 0, 60, 100, 200, 1, 299, 1, NULL},
    {MINUTES_EXPIRED, 0, -1, 0, 60, 300, 0, 1, 299, 1, NULL},
    {MINUTES_EXPIRED, 0, 250, 0, 1, 50, 250, 1, 299, 1, NULL},
    {MINUTES, 0, 200, 0, 1, 100, 200, 1, 299, 1, "counted in the step where it begins"},
    {MINUTES, 0, -1, 0, 60, 300, 0, 1, 299, 1, NULL},
    // Hours in place of minutes count where they begin, or where the window does.
    {MINUTES_EXPIRED, 120, -1, 0, 60, 182, 0, 60, 299, 1, "a whole hour"},
    {MINUTES_EXPIRED, 120, 90, 0, 60, 181, 90, 60, 299, 1, "counted in the step where it begins"},
    {MINUTES_EXPIRED, 120, 0, 0, 3600, 5, 0, 60, 240, 60, NULL},
    {MINUTES, 300, 0, 0, 60, 5, 0, 60, 240, 60, "a whole hour"},
    {MINUTES_EXPIRED, 120, 30, 60, 60, 1, 30, 60, 30, 60, "a whole hour"},
};

static void expect_step(const struct result *result, size_t row, int64_t minute, int64_t count)
{
    const int64_t started_ns = result_integer(result, row, "started_ns", -1);
    const int64_t in_second = (started_ns - MARCH_NS) % MINUTE_NS;
    if (started_ns - in_second != MARCH_NS + minute * MINUTE_NS || in_second > MINUTE_NS / 2 ||
        result_integer(result, row, "count", -1) != count)
        fail_msg("%s: row %zu: %" PRId64 " at %" PRId64 " s, not %" PRId64 " in minute %" PRId64,
                 asked, row, result_integer(result, row, "count", -1),
                 (started_ns - MARCH_NS) / (MINUTE_NS / 60), count, minute);
}

static void check_window(size_t at)
{
    struct query query = {
        .kind = QUERY_AVERAGE, .metric = "e2e_ns", .step_ns = windows[at].step_s * MINUTE_NS / 60};
    (void)snprintf(asked, sizeof asked, "window %zu", at);
    if (windows[at].since >= 0)
        query.filter.since_ns = MARCH_NS + windows[at].since * MINUTE_NS;
    if (windows[at].until)
        query.filter.until_ns = MARCH_NS + windows[at].until * MINUTE_NS;
    struct store *opened = open_store();
    struct error err = {0};
    struct result *result = NULL;
    if (store_query(opened, &query, &result, &err) != STATUS_OK)
        fail_msg("%s: %s", asked, err.text);
    if ((int64_t)result_row_count(result) != windows[at].rows)
        fail_msg("%s: %zu rows", asked, result_row_count(result));
    expect_step(result, 0, windows[at].first, windows[at].first_count);
    expect_step(result, result_row_count(result) - 1, windows[at].last, windows[at].last_count);
    const struct value note = result_cell(result, 0, (unsigned)result_find(result, "note"));
    const char *wanted = windows[at].note;
    if (wanted ? note.type != VALUE_TEXT ||
                     !memmem(note.text.bytes, note.text.size, wanted, strlen(wanted))
               : note.type != VALUE_NULL)
        fail_msg("%s: note \"%.*s\"", asked, note.type == VALUE_TEXT ? (int)note.text.size : 0,
                 note.type == VALUE_TEXT ? note.text.bytes : "");
    result_free(result);
    store_close(opened);
}

TEST_CASE(test_steps_over_expired_rows)
{
    for (size_t i = 0; i < COUNT_OF(windows); i++) {
        make_minutes(windows[i].expired, windows[i].without_minutes);
        check_window(i);
        drop_store();
    }
}

// Records in hours whose newest minutes are in no rollup are not cut off.
TEST_CASE(test_steps_end_behind_gaps)
{
    make_minutes(MINUTES, 0);
    const int64_t of[] = {MARCH_NS + 270 * MINUTE_NS, MARCH_NS + 300 * MINUTE_NS};
    execf("INSERT INTO rollup_gap(kind, grouping, level, since_ns, until_ns, why)"
          " VALUES(%d, %d, %d, %" PRId64 ", %" PRId64 ", %d)",
          (int)RECORD_KIND_INFERENCE, ROLLUP_MODEL, ROLLUP_MINUTE, of[0], of[1], ROLLUP_OLD);
    execf("DELETE FROM rollup WHERE level = %d AND started_ns >= %" PRId64, ROLLUP_MINUTE, of[0]);
    struct query query = {.kind = QUERY_AVERAGE, .metric = "e2e_ns", .step_ns = HOUR_NS};
    query.filter.since_ns = MARCH_NS;
    struct store *opened = open_store();
    struct error err = {0};
    struct result *result = NULL;
    expect_ok(store_query(opened, &query, &result, &err), &err);
    assert_int_equal(result_row_count(result), 5);
    for (size_t i = 0; i < 5; i++)
        expect_step(result, i, (int64_t)i * 60, 60);
    result_free(result);
    store_close(opened);
}

// The end of an open window is the newest record, though its hour is in no rollup.
TEST_CASE(test_steps_end_in_gaps)
{
    make_minutes(MINUTES_EXPIRED, 0);
    const int64_t of[] = {MARCH_NS + MINUTES_EXPIRED * MINUTE_NS, MARCH_NS + 6 * HOUR_NS};
    execf("INSERT INTO rollup_gap(kind, grouping, level, since_ns, until_ns, why)"
          " VALUES(%d, %d, %d, %" PRId64 ", %" PRId64 ", %d)",
          (int)RECORD_KIND_INFERENCE, ROLLUP_MODEL, ROLLUP_HOUR, of[0], of[1], ROLLUP_SPARSE);
    execf("DELETE FROM rollup WHERE level <= %d AND started_ns >= %" PRId64, ROLLUP_HOUR, of[0]);
    struct query query = {.kind = QUERY_AVERAGE, .metric = "e2e_ns", .step_ns = MINUTE_NS / 60};
    query.filter.since_ns = MARCH_NS + 200 * MINUTE_NS;
    struct store *opened = open_store();
    struct error err = {0};
    struct result *result = NULL;
    expect_ok(store_query(opened, &query, &result, &err), &err);
    assert_int_equal(result_row_count(result), 100);
    expect_step(result, 99, 299, 1);
    result_free(result);
    store_close(opened);
}

TEST_MAIN_EACH(random_set_up, random_tear_down, test_steps_have_a_bound,
               test_steps_over_expired_rows, test_steps_end_behind_gaps, test_steps_end_in_gaps)
