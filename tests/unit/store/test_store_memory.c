// Queries when memory runs out: for each N the N-th allocation fails.  The answer is then an
// error or has all rows, perhaps without quantiles.  The linker sends calls here (CMakeLists.txt).
#include "common/store/query/query_list.h"
#include "common/store/store.h"
#include "tests/support/failing_malloc.h"
#include "tests/support/test.h"
#include "tests/unit/store/store_fixture.h"

#define RECORDS 40U

// What is asked: a query, or NULL for the records between two ids.
static enum status attempt(const struct query *query, struct result **out)
{
    struct error err;
    return query ? store_query(store, query, out, &err)
                 : store_records_between(store, RECORD_KIND_INFERENCE, 1, RECORDS, RECORDS, out,
                                         &err);
}

static size_t count_rows(const struct query *query, enum status *status)
{
    struct result *answer = NULL;
    *status = attempt(query, &answer);
    const size_t rows = *status == STATUS_OK ? result_row_count(answer) : 0;
    result_free(answer);
    return rows;
}

static void starve(const struct query *query)
{
    enum status status;
    const size_t all = count_rows(query, &status);
    assert_true(status == STATUS_OK && all > 0);
    bool was_asked = true;
    for (long n = 0; was_asked; n++) {
        left = n;
        const size_t rows = count_rows(query, &status);
        was_asked = left < 0; // for the allocation that fails
        left = -1;
        if (status != STATUS_OK)
            assert_int_equal(status, STATUS_NOMEM);
        else if (rows != all)
            fail_msg("allocation %ld failed: %zu rows of %zu", n, rows, all);
    }
}

static void starve_all(const struct query *queries, size_t count)
{
    store_add_one_of_each();
    exec("DELETE FROM inference");
    store_add_inferences(RECORDS);
    for (size_t i = 0; i < count; i++)
        starve(&queries[i]);
}

TEST_CASE(test_starved_lists)
{
    starve_all(&(struct query){.kind = QUERY_RECORDS,
                               .records.kind = RECORD_KIND_INFERENCE,
                               .limit = RECORDS},
               1);
    starve(NULL);
}

TEST_CASE(test_starved_causes)
{
    static const struct query queries[] = {
        {.kind = QUERY_STAGES, .group_by = {QUERY_BY_MODEL}, .group_count = 1},
        {.kind = QUERY_ERRORS, .group_by = {QUERY_BY_MODEL}, .group_count = 1},
        {.kind = QUERY_EVENTS},
        {.kind = QUERY_SLOWEST},
    };
    starve_all(queries, COUNT_OF(queries));
}

TEST_CASE(test_starved_summary)
{
    starve_all(&(struct query){.kind = QUERY_SUMMARY}, 1);
}

TEST_CASE(test_starved_overview)
{
    static const struct query queries[] = {
        {.kind = QUERY_OVERVIEW},
        {.kind = QUERY_AUDIT},
        {.kind = QUERY_NOW},
    };
    starve_all(queries, COUNT_OF(queries));
}

TEST_MAIN_EACH(store_set_up, store_tear_down, test_starved_lists, test_starved_causes,
               test_starved_summary, test_starved_overview)
