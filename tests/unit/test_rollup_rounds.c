// Sheets of rollups end before folding them takes long, and what is cleared in the midst
// of a round leaves nothing half done.
#include <stdio.h>

#include "common/store/clear.h"
#include "common/sys/clock.h"
#include "tests/support/test.h"
#include "tests/unit/rollup_rig.h"

// 2026-03-29 22:30 UTC.
#define BASE_NS INT64_C(1774823400000000000)

enum { BATCH = 12 };

static void insert_batch(enum record_kind kind, int64_t run)
{
    struct record records[BATCH];
    for (unsigned r = 0; r < BATCH; r++)
        rollup_rig_record(&records[r], kind, BASE_NS);
    rollup_rig_exec("BEGIN IMMEDIATE");
    rollup_rig_insert(records, BATCH, run);
    rollup_rig_exec("COMMIT");
}

static void clear_all(const struct query_filter *filter)
{
    struct error err = {0};
    struct clearing clearing;
    bool done = false;
    assert_int_equal(clear_begin(&clearing, rollup_rig.db, filter, &err), STATUS_OK);
    while (!done) {
        const int at = clearing.kind;
        if (clear_slice(&clearing, rollup_rig.db, &done, &err) != STATUS_OK)
            fail_msg("%s", err.text);
        if (at != RECORD_KIND_RUN)
            rollups_rows_removed(rollup_rig.rollups, (enum record_kind)at);
    }
}

// A sheet ends with its groups; what a batch has more than that is read again.
static void sheets_of_many_groups_end_early(void **state)
{
    enum { RECORDS = 2000, BATCHES = 2, FEWER = 1500 };
    (void)state;
    static struct record records[RECORDS];
    for (unsigned batch = 0; batch < BATCHES; batch++) {
        rollup_rig_exec("BEGIN IMMEDIATE");
        for (unsigned i = 0; i < RECORDS; i++) {
            rollup_rig_record(&records[i], RECORD_KIND_STARTUP, BASE_NS);
            records[i].started_ns = BASE_NS + (int64_t)(i % FEWER) * 60000000000;
        }
        rollup_rig_insert(records, RECORDS, 1);
        rollup_rig_exec("COMMIT");
    }
    // It is full, and so is due, though there are few records.
    assert_true(rollups_are_due(rollup_rig.rollups, clock_monotonic_ns()));
    rollup_rig_fold(ROLLUPS_ONE);
    const int64_t folded = rollup_rig_integer("SELECT max(watermark) FROM rollup_state");
    assert_in_range(folded, 512, FEWER - 1);
    assert_int_equal(rollup_rig_integer("SELECT count(*) FROM rollup WHERE grouping = 3"
                                        " AND level = 0") <= folded,
                     1);
    rollup_rig_check(RECORD_KIND_STARTUP, 1);
    unsigned sheets = 0;
    for (; rollup_rig_integer("SELECT min(watermark) < (SELECT max(id) FROM startup)"
                              " OR count(*) < 3 FROM rollup_state"
                              " WHERE metric / 256 = 3");
         sheets++) {
        assert_true(sheets < 100);
        rollup_rig_fold_all();
    }
    assert_in_range(sheets, 1, 99);
    rollup_rig_check(RECORD_KIND_STARTUP, 1);
}

// What one metric had and the others had not was cleared: all say the same again, and the
// rest is repaired, without any new record.
static void a_clear_in_mid_round_leaves_metrics_even(void **state)
{
    static const char *const hosts[] = {"", "host-1"};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(hosts); i++) {
        struct query_filter filter = {0};
        (void)snprintf(filter.by[QUERY_BY_HOST], QUERY_TEXT_SIZE, "%s", hosts[i]);
        insert_batch(RECORD_KIND_OPERATION, 1);
        rollup_rig_fold_all();
        insert_batch(RECORD_KIND_OPERATION, 1);
        insert_batch(RECORD_KIND_OPERATION, 2); // of host-1
        rollup_rig_fold(ROLLUPS_ONE);
        const char *uneven = "SELECT min(watermark) < max(watermark) FROM rollup_state"
                             " WHERE metric / 256 = (SELECT max(metric) / 256 FROM rollup_state)";
        assert_int_equal(rollup_rig_integer(uneven), 1);
        clear_all(&filter);
        rollup_rig_fold_all();
        assert_int_equal(rollup_rig_integer(uneven), 0);
        rollup_rig_repair();
        assert_int_equal(rollup_rig_integer("SELECT count(*) FROM rollup_gap WHERE why = 2"), 0);
        rollup_rig_check(RECORD_KIND_OPERATION, 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(sheets_of_many_groups_end_early, rollup_rig_set_up,
                                        rollup_rig_tear_down),
        cmocka_unit_test_setup_teardown(a_clear_in_mid_round_leaves_metrics_even, rollup_rig_set_up,
                                        rollup_rig_tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
