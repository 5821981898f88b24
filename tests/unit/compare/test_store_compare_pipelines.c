// Comparisons of runs of pipelines: what decides, and what only explains.

#include "tests/support/test.h"
#include "tests/unit/compare/compare_fixture.h"

// A host's run, "before" or "after", five runs of each of two sizes of batches in it, and what each
// batch took from when it was queued.
static void add_pipelines(int run, double seconds, double overlap, double batch_ms)
{
    char sql[2048];
    add((struct measured){.run = run, .host = run == 1 ? "before" : "after", .requests = 1});
    change("INSERT OR IGNORE INTO name(text) VALUES('encode'), ('iqp 16 qubits f64'), ('bus')");
    (void)snprintf(
        sql, sizeof sql,
        "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 9)"
        " INSERT INTO pipeline(run, stream, number, started_ns, received_ns, workload,"
        "  model, device, status, items, batch_items, duration_ns, chunk_bytes, pool_size,"
        "  prefetch, sync, bytes_h2d, copy_busy_ns, compute_busy_ns, both_busy_ns,"
        "  exposed_copy_ns)"
        " SELECT %d, 9, i + 1, 1790000000000000000 + i, 1790000000000000000 + i,"
        "  (SELECT id FROM name WHERE text = 'encode'),"
        "  (SELECT id FROM name WHERE text = 'iqp 16 qubits f64'),"
        "  (SELECT id FROM name WHERE text = 'bus'), 0, 1000, 16 + 48 * (i %% 2),"
        "  CAST(%f * 1e9 * (1 + i %% 2) * (1 + 0.001 * (i / 2)) AS INTEGER), 1, 1, 1, 0, 1,"
        "  1000000, 1000000, CAST(%f * (1000000 + i) AS INTEGER), 500000 FROM n",
        run, seconds, overlap);
    change(sql);
    (void)snprintf(
        sql, sizeof sql,
        "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 199)"
        " INSERT INTO operation(run, stream, number, started_ns, received_ns, operation,"
        "  duration_ns) SELECT %d, 10, i + 1, 1790000000000000000 + i, 1790000000000000000 + i,"
        "  (SELECT id FROM name WHERE text = 'encode'), CAST(%f * 1e6 AS INTEGER) + i FROM n",
        run, batch_ms);
    change(sql);
}

static void is_judged(const struct result *result, const char *metric, int64_t batch_items,
                      const char *verdict)
{
    for (size_t row = 0; row < result_row_count(result); row++) {
        if (strcmp(text_at(result, row, "metric"), metric) != 0 ||
            result_integer(result, row, "batch_items", 0) != batch_items)
            continue;
        assert_string_equal(text_at(result, row, "model"), "iqp 16 qubits f64");
        assert_string_equal(text_at(result, row, "verdict"), verdict);
        return;
    }
    fail_msg("no row of %s in batches of %lld", metric, (long long)batch_items);
}

// What deeper queues make of a batch's time does not count: the run says how fast it was,
// each size of batches by itself, and what explains it has no verdict.
TEST_CASE(pipelines_by_their_throughput)
{
    add_pipelines(1, 1.5, 0.2, 10);
    add_pipelines(2, 1.0, 0.9, 80);
    saved("before");
    saved("after");
    struct query query = of_two("before", "after");
    for (int live = 0; live < 2; live++) {
        if (live) {
            query.compare.baseline[1][0] = '\0';
            set(query.compare.other.by[QUERY_BY_HOST], "after");
        }
        struct result *result = ask(&query);
        is_judged(result, "pipeline.items_per_second", 16, "BETTER");
        is_judged(result, "pipeline.items_per_second", 64, "BETTER");
        is_judged(result, "overlap_ratio", 16, "");
        is_judged(result, "exposed_copy_ns", 64, "");
        for (size_t row = 0; row < result_row_count(result); row++)
            assert_string_not_equal(text_at(result, row, "metric"), "operation.duration_ns");
        result_free(result);
    }
    set(query.metric, "overlap_ratio"); // it alone is asked for
    struct result *result = ask(&query);
    assert_int_equal(result_row_count(result), 2);
    is_judged(result, "overlap_ratio", 64, "BETTER");
    result_free(result);
    set(query.metric, "operation.duration_ns");
    refused(&query, STATUS_NO_DATA, "no values to compare");
}

// The weights of a load are a part of it, and come from the page cache or do not.
TEST_CASE(loads_are_not_judged_twice)
{
    add_pipelines(1, 1.0, 0.9, 10);
    add_pipelines(2, 9.0, 0.9, 10);
    change("INSERT INTO name(text) VALUES('model_load');"
           "UPDATE pipeline SET workload = (SELECT id FROM name WHERE text = 'model_load')");
    saved("before");
    saved("after");
    struct query query = of_two("before", "after");
    set(query.metric, "pipeline.items_per_second");
    refused(&query, STATUS_NO_DATA, "no values to compare");
}

// A pipeline that says no model is of its workload.
TEST_CASE(pipelines_without_a_model)
{
    add_pipelines(1, 1.0, 0.9, 10);
    add_pipelines(2, 1.0, 0.9, 10);
    change("UPDATE pipeline SET model = NULL, batch_items = NULL");
    saved("before");
    saved("after");
    const struct query query = of_two("before", "after");
    struct result *result = ask(&query);
    const size_t row = row_of(result, "pipeline.items_per_second");
    assert_string_equal(text_at(result, row, "model"), "encode");
    assert_int_equal(result_integer(result, row, "before_count", 0), 10);
    assert_int_equal(result_cell(result, row, (unsigned)result_find(result, "batch_items")).type,
                     VALUE_NULL);
    result_free(result);
}

// How the pipelines were set is told where it is unlike, and refuses nothing.
TEST_CASE(other_settings_are_told)
{
    add_pipelines(1, 1.0, 0.9, 10);
    add_pipelines(2, 1.0, 0.9, 10);
    // One that failed had another pool: it was not measured.
    change("UPDATE pipeline SET sync = 1, chunk_bytes = 4096, prefetch = 2 + number % 2"
           " WHERE run = 2;"
           "UPDATE pipeline SET status = 1, pool_size = 9 WHERE run = 2 AND number = 10;"
           "INSERT INTO name(text) VALUES('generator'), ('file');"
           "UPDATE pipeline SET source = (SELECT id FROM name WHERE text ="
           " CASE run WHEN 1 THEN 'generator' ELSE 'file' END)");
    saved("before");
    saved("after");
    struct query query = of_two("before", "after");
    for (int live = 0; live < 2; live++) {
        if (live) {
            query.compare.baseline[1][0] = '\0';
            set(query.compare.other.by[QUERY_BY_HOST], "after");
        }
        struct result *result = ask(&query);
        assert_string_equal(text_at(result, 0, "differences"),
                            format_text("%s%s",
                                        "pipeline iqp 16 qubits f64: chunk_bytes 1 / 4096; "
                                        "pipeline iqp 16 qubits f64: prefetch 1 / 2, 3; "
                                        "pipeline iqp 16 qubits f64: source generator / file; "
                                        "pipeline iqp 16 qubits f64: sync events / periodic",
                                        live ? "; the filter (host=after) applies to the second "
                                               "alone, the baseline covers host=before"
                                             : ""));
        result_free(result);
    }
}

// What a run's pipelines were set to before the time that is compared is not told.
TEST_CASE(settings_are_those_of_the_window)
{
    add_pipelines(1, 1.0, 0.9, 10);
    add_pipelines(2, 1.0, 0.9, 10);
    change("UPDATE pipeline SET chunk_bytes = iif(number > 6, 4096, 1000 + number) WHERE run = 2");
    saved("before");
    struct query query = of_two("before", "");
    set(query.compare.other.by[QUERY_BY_HOST], "after");
    query.compare.other.since_ns = INT64_C(1790000000000000006);
    query.compare.force = true;
    struct result *result = ask(&query);
    const char *text = text_at(result, 0, "differences");
    if (!strstr(text, "chunk_bytes 1 / 4096"))
        fail_msg("%s", text);
    result_free(result);
}

// Of many settings some are named, the others counted.
TEST_CASE(many_settings_are_counted)
{
    add_pipelines(1, 1.0, 0.9, 10);
    add_pipelines(2, 1.0, 0.9, 10);
    change("UPDATE pipeline SET chunk_bytes = 1000 * number WHERE run = 2;"
           "UPDATE pipeline SET pool_size = 2 + number % 4 WHERE run = 1");
    saved("before");
    saved("after");
    const struct query query = of_two("before", "after");
    struct result *result = ask(&query);
    const char *text = text_at(result, 0, "differences");
    if (!strstr(text, "chunk_bytes 1 / ") || !strstr(text, " and 6 more; ") ||
        !strstr(text, "pool_size 2, 3, 4, 5 / 1"))
        fail_msg("%s", text);
    result_free(result);
}

TEST_MAIN_EACH(compare_set_up, store_tear_down, pipelines_by_their_throughput,
               loads_are_not_judged_twice, pipelines_without_a_model,
               settings_are_those_of_the_window, many_settings_are_counted, other_settings_are_told)
