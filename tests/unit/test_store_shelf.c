// A reader that keeps rollups says what one says that has just opened the store, whatever
// the collector's code does to them in between: new and late records, clearing and making
// again, expiry, rows that are damaged and healed.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/store/clear.h"
#include "common/store/gap_table.h"
#include "common/store/reader.h"
#include "common/store/shelf.h"
#include "common/store/store.h"
#include "tests/support/test.h"
#include "tests/unit/rollup_rig.h"

#define MINUTE_NS INT64_C(60000000000)
#define HOUR_NS   (60 * MINUTE_NS)
#define DAY_NS    (24 * HOUR_NS)
#define BASE_NS   INT64_C(1774823400000000000) // 2026-03-29 22:30 UTC

static uint64_t below(uint64_t limit)
{
    return test_random(&rollup_rig.random) % limit;
}

// ---- Changes -----------------------------------------------------------------------------

static void insert(enum record_kind kind, unsigned count, int64_t base_ns)
{
    static struct record records[256];
    rollup_rig_exec("BEGIN IMMEDIATE");
    for (unsigned i = 0; i < count; i++)
        rollup_rig_record(&records[i], kind, base_ns);
    rollup_rig_insert(records, count, 1 + (int64_t)below(ROLLUP_RIG_RUNS));
    rollup_rig_exec("COMMIT");
}

static void add_new(void)
{
    insert(RECORD_KIND_INFERENCE, 200, BASE_NS + (int64_t)below(48) * HOUR_NS);
    rollup_rig_fold_all();
}

static void add_unfolded(void)
{
    insert(RECORD_KIND_INFERENCE, 30, BASE_NS + (int64_t)below(48) * HOUR_NS);
}

static void add_late(void)
{
    insert(RECORD_KIND_INFERENCE, 3, BASE_NS - (int64_t)below(40) * DAY_NS);
    rollup_rig_fold_all();
}

static void clear_some(void)
{
    struct error err = {0};
    struct clearing clearing;
    const int64_t since_ns = BASE_NS + (int64_t)below(72) * HOUR_NS - DAY_NS;
    const struct query_filter filter = {.since_ns = since_ns,
                                        .until_ns = since_ns + 1 + (int64_t)below(5) * HOUR_NS};
    bool done = false;
    assert_int_equal(clear_begin(&clearing, rollup_rig.db, &filter, &err), STATUS_OK);
    while (!done)
        assert_int_equal(clear_slice(&clearing, rollup_rig.db, &done, &err), STATUS_OK);
    rollups_rows_removed(rollup_rig.rollups, RECORD_KIND_INFERENCE);
}

// What was cleared comes back with other values, as many as before.
static void replace_some(void)
{
    const int64_t before = rollup_rig_integer("SELECT count(*) FROM inference");
    clear_some();
    rollup_rig_repair();
    const int64_t gone = before - rollup_rig_integer("SELECT count(*) FROM inference");
    insert(RECORD_KIND_INFERENCE, (unsigned)(gone < 250 ? gone : 250) + 1, BASE_NS);
    rollup_rig_fold_all();
}

static void prune(void)
{
    rollups_tell_time(rollup_rig.rollups, BASE_NS + (int64_t)below(20) * DAY_NS);
    for (unsigned i = 0; i < 20 && rollups_prune(rollup_rig.rollups, rollup_rig.now_ns); i++)
        rollup_rig.now_ns += UINT64_C(1000000000);
}

// As retention does with a level that is old.
static void expire_level(void)
{
    struct error err = {0};
    struct gap gap = {.kind = RECORD_KIND_INFERENCE,
                      .grouping = (enum rollup_grouping)below(ROLLUP_GROUPING_COUNT),
                      .level = (enum rollup_level)below(ROLLUP_MONTH),
                      .since_ns = INT64_MIN,
                      .until_ns = rollup_bucket(ROLLUP_DAY, BASE_NS - (int64_t)below(20) * DAY_NS),
                      .why = ROLLUP_OLD};
    char sql[256];
    (void)snprintf(sql, sizeof sql,
                   "DELETE FROM rollup WHERE metric / 256 = %d AND grouping = %d AND level = %d"
                   " AND started_ns < %" PRId64,
                   (int)gap.kind, (int)gap.grouping, (int)gap.level, gap.until_ns);
    rollup_rig_exec("BEGIN IMMEDIATE");
    assert_int_equal(gap_add(rollup_rig.db, &gap, &err), STATUS_OK);
    rollup_rig_exec(sql);
    rollup_rig_exec("COMMIT");
    rollups_gaps_changed(rollup_rig.rollups);
}

// Nothing that an answer is made of.
static void commit_only(void)
{
    rollup_rig_exec("UPDATE run SET heard_ns = heard_ns + 1");
}

// By hand: nothing else tells that it is gone.
static void lose_a_row(void)
{
    rollup_rig_exec("DELETE FROM rollup WHERE (metric, grouping, level, started_ns, series) IN"
                    " (SELECT metric, grouping, level, started_ns, series FROM rollup"
                    " WHERE level = 1 ORDER BY random() LIMIT 1)");
}

static void (*const changes[])(void) = {add_new,      add_unfolded,      add_late, clear_some,
                                        replace_some, rollup_rig_repair, prune,    expire_level,
                                        commit_only,  lose_a_row};

// ---- Questions ---------------------------------------------------------------------------

static char asked[512];

static struct query pick_query(void)
{
    static const char *const metrics[] = {"ttft_ns", "e2e_ns", "tokens_per_second"};
    static const enum query_dimension dimensions[] = {QUERY_BY_MODEL, QUERY_BY_HOST,
                                                      QUERY_BY_DEVICE};
    static const int64_t lengths[] = {HOUR_NS, 5 * HOUR_NS, DAY_NS, 40 * DAY_NS};
    struct query query = {.kind = QUERY_AVERAGE};
    (void)snprintf(query.metric, sizeof query.metric, "%s", metrics[below(COUNT_OF(metrics))]);
    if (below(4) > 0)
        query.group_by[query.group_count++] = dimensions[below(COUNT_OF(dimensions))];
    if (below(4) > 0) {
        const int64_t offset = (int64_t)below(60) * HOUR_NS + (int64_t)below(3) * MINUTE_NS;
        query.filter.until_ns = BASE_NS + offset + (int64_t)below(2);
        query.filter.since_ns = query.filter.until_ns - lengths[below(COUNT_OF(lengths))];
    }
    if (below(5) == 0)
        query.step_ns = HOUR_NS * (1 + (int64_t)below(30));
    (void)snprintf(asked, sizeof asked, "%s by %u of them, %" PRId64 "..%" PRId64 " step %" PRId64,
                   query.metric, query.group_count ? query.group_by[0] : 99, query.filter.since_ns,
                   query.filter.until_ns, query.step_ns);
    return query;
}

static bool are_same(const struct value *a, const struct value *b)
{
    if (a->type != b->type)
        return false;
    switch (a->type) {
    case VALUE_INT:
        return a->i == b->i;
    case VALUE_REAL:
        return !(a->r < b->r) && !(a->r > b->r);
    case VALUE_TEXT:
        return a->text.size == b->text.size &&
               memcmp(a->text.bytes, b->text.bytes, a->text.size) == 0;
    case VALUE_NULL:
        break;
    }
    return true;
}

static void expect_same(const struct result *kept, const struct result *fresh)
{
    if (result_row_count(kept) != result_row_count(fresh))
        fail_msg("%s: %zu rows, not %zu", asked, result_row_count(kept), result_row_count(fresh));
    for (size_t row = 0; row < result_row_count(fresh); row++)
        for (unsigned i = 0; i < result_column_count(fresh); i++) {
            const struct value a = result_cell(kept, row, i), b = result_cell(fresh, row, i);
            if (!are_same(&a, &b))
                fail_msg("%s: row %zu: %s is %" PRId64 " or %.17g, not %" PRId64 " or %.17g", asked,
                         row, result_column(fresh, i)->key, a.i, a.r, b.i, b.r);
        }
}

static void compare(struct store *kept, struct store *fresh)
{
    const struct query query = pick_query();
    struct error errs[2] = {0};
    struct result *answers[2] = {NULL, NULL};
    const enum status status = store_query(kept, &query, &answers[0], &errs[0]);
    const enum status wanted = store_query(fresh, &query, &answers[1], &errs[1]);
    if (status != wanted)
        fail_msg("%s: %s, not %s", asked, errs[0].text, errs[1].text);
    if (status == STATUS_OK)
        expect_same(answers[0], answers[1]);
    else
        assert_string_equal(errs[0].text, errs[1].text);
    result_free(answers[0]);
    result_free(answers[1]);
}

// The same question again: of what was summed the first time.
static void compare_again(struct store *kept, struct store *fresh)
{
    const uint64_t before = rollup_rig.random;
    for (unsigned i = 0; i < 3; i++) {
        rollup_rig.random = before;
        compare(kept, fresh);
    }
}

static struct store *open_store(size_t kept_bytes)
{
    struct error err = {0};
    struct store *store = NULL;
    if (store_open(&store, rollup_rig.path, &err) != STATUS_OK ||
        (kept_bytes && store_keep_rollups(store, kept_bytes, &err) != STATUS_OK))
        fail_msg("%s", err.text);
    return store;
}

static void never_a_stale_answer(void **state)
{
    (void)state;
    static const size_t sizes[] = {1 << 20, 20000}; // plenty, and less than one answer needs
    struct store *kept[COUNT_OF(sizes)];
    add_new();
    for (size_t s = 0; s < COUNT_OF(sizes); s++)
        kept[s] = open_store(sizes[s]);
    for (unsigned round = 0; round < 60; round++) {
        changes[round < COUNT_OF(changes) ? round : below(COUNT_OF(changes))]();
        struct store *fresh = open_store(0);
        for (unsigned i = 0; i < 12; i++)
            for (size_t s = 0; s < COUNT_OF(sizes); s++) {
                compare_again(kept[s], fresh);
                assert_true(shelf_bytes(kept[s]->shelf) <= sizes[s]);
            }
        store_close(fresh);
    }
    assert_true(shelf_bytes(kept[0]->shelf) > 0);
    for (size_t s = 0; s < COUNT_OF(sizes); s++)
        store_close(kept[s]);
}

static int64_t count_of_all(struct store *store, enum status *status)
{
    struct error err = {0};
    struct result *result = NULL;
    const struct query query = {
        .kind = QUERY_AVERAGE,
        .metric = "e2e_ns",
        .filter = {.since_ns = rollup_bucket(ROLLUP_DAY, BASE_NS),
                   .until_ns = rollup_bucket(ROLLUP_DAY, BASE_NS) + DAY_NS}};
    *status = store_query(store, &query, &result, &err);
    const int64_t count = result ? result_integer(result, 0, "count", -1) : -1;
    result_free(result);
    return count;
}

// A row that does not look as it did is read again, and found to be damaged.
static void damage_is_found(void **state)
{
    (void)state;
    enum status status;
    insert(RECORD_KIND_INFERENCE, 200, BASE_NS);
    rollup_rig_fold_all();
    struct store *store = open_store(1 << 20);
    const int64_t before = count_of_all(store, &status);
    assert_int_equal(status, STATUS_OK);
    assert_true(before > 0);
    rollup_rig_exec("UPDATE rollup SET count = count + 1 WHERE metric / 256 = 6");
    (void)count_of_all(store, &status);
    assert_int_equal(status, STATUS_CORRUPT);
    rollup_rig_exec("UPDATE rollup SET count = count - 1 WHERE metric / 256 = 6");
    assert_int_equal(count_of_all(store, &status), before);
    assert_int_equal(status, STATUS_OK);
    store_close(store);
}

static void move_store(const char *to)
{
    static const char *const endings[] = {"", "-wal", "-shm"};
    char from_path[FOLDER_PATH_SIZE + 8], to_path[FOLDER_PATH_SIZE + 8];
    for (size_t i = 0; i < COUNT_OF(endings); i++) {
        (void)snprintf(from_path, sizeof from_path, "%s%s", rollup_rig.path, endings[i]);
        (void)snprintf(to_path, sizeof to_path, "%s%s", to, endings[i]);
        assert_int_equal(rename(from_path, to_path), 0);
    }
}

// Another store comes to lie at its path: whoever has this one open goes on with this one,
// with what it kept of it and with what is written to it from then on.
static void another_store_in_its_place(void **state)
{
    (void)state;
    enum status status;
    char sql[FOLDER_PATH_SIZE + 32], other[FOLDER_PATH_SIZE], moved[FOLDER_PATH_SIZE];
    insert(RECORD_KIND_INFERENCE, 200, BASE_NS);
    rollup_rig_fold_all();
    (void)folder_path(other, rollup_rig.folder, "other.db");
    (void)snprintf(sql, sizeof sql, "VACUUM INTO '%s'", other);
    rollup_rig_exec(sql);
    struct store *kept = open_store(1 << 20);
    const int64_t before = count_of_all(kept, &status);
    insert(RECORD_KIND_INFERENCE, 200, BASE_NS);
    rollup_rig_fold_all();
    const int64_t more = count_of_all(kept, &status);
    assert_true(more > before);
    move_store(folder_path(moved, rollup_rig.folder, "moved.db"));
    assert_int_equal(rename(other, rollup_rig.path), 0);

    struct store *fresh = open_store(0);
    assert_int_equal(count_of_all(fresh, &status), before);
    store_close(fresh);
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(count_of_all(kept, &status), more);
        assert_int_equal(status, STATUS_OK);
    }
    insert(RECORD_KIND_INFERENCE, 200, BASE_NS);
    rollup_rig_fold_all();
    const int64_t last = count_of_all(kept, &status);
    assert_true(last > more);
    struct error err = {0};
    assert_int_equal(store_open(&fresh, moved, &err), STATUS_OK);
    assert_int_equal(count_of_all(fresh, &status), last);
    store_close(fresh);
    store_close(kept);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(never_a_stale_answer, rollup_rig_set_up,
                                        rollup_rig_tear_down),
        cmocka_unit_test_setup_teardown(damage_is_found, rollup_rig_set_up, rollup_rig_tear_down),
        cmocka_unit_test_setup_teardown(another_store_in_its_place, rollup_rig_set_up,
                                        rollup_rig_tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
