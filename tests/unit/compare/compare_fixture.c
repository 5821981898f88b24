#include "tests/unit/compare/compare_fixture.h"

#include <sqlite3.h>

#include "common/store/compare/baseline.h"
#include "common/store/sqlite/database.h"
#include "common/store/store.h"
#include "common/store/schema/database_open.h"
#include "tests/support/test.h"

int compare_set_up(void **state)
{
    store_make(state);
    return store_read();
}

void add(struct measured run)
{
    if (run.noise == 0)
        run.noise = 0.05;
    if (!measured_add(db, &run))
        fail_msg("run %d: %s", run.run, sqlite3_errmsg(db));
}

struct query about(enum query_kind kind, const char *name)
{
    struct query query = {.kind = kind};
    char *to = kind == QUERY_COMPARE ? query.compare.baseline[0] : query.baseline.name;
    (void)snprintf(to, QUERY_KEY_SIZE, "%s", name);
    return query;
}

void set(char out[QUERY_TEXT_SIZE], const char *text)
{
    (void)snprintf(out, QUERY_TEXT_SIZE, "%s", text);
}

enum status save(const char *host, bool force, struct error *err)
{
    struct query query = about(QUERY_BASELINE_SAVE, host);
    set(query.filter.by[QUERY_BY_HOST], host);
    query.baseline.force = force;
    struct baseline *baseline = NULL;
    struct result *result = NULL;
    enum status status = baseline_prepare(&baseline, store, &query, err);
    if (status == STATUS_OK)
        status = baseline_write(db, &query, baseline, &result, err);
    if (status == STATUS_OK)
        assert_true(result_integer(result, 0, "values", 0) > 0);
    result_free(result);
    baseline_free(baseline);
    return status;
}

void saved(const char *host)
{
    struct error err = {0};
    expect_ok(save(host, false, &err), &err);
}

struct query of_two(const char *before, const char *after)
{
    struct query query = about(QUERY_COMPARE, before);
    (void)snprintf(query.compare.baseline[1], sizeof query.compare.baseline[1], "%s", after);
    return query;
}

void refused(const struct query *query, enum status expected, const char *words)
{
    struct error err = {0};
    struct result *result = NULL;
    assert_int_equal(store_query(store, query, &result, &err), expected);
    if (!strstr(err.text, words))
        fail_msg("\"%s\" does not say \"%s\"", err.text, words);
}

const char *text_at(const struct result *result, size_t row, const char *key)
{
    static char text[1024];
    const struct value value = result_cell(result, row, (unsigned)result_find(result, key));
    if (value.type != VALUE_TEXT)
        return "";
    (void)snprintf(text, sizeof text, "%.*s", (int)value.text.size, value.text.bytes);
    return text;
}

size_t row_of(const struct result *result, const char *metric)
{
    for (size_t row = 0; row < result_row_count(result); row++)
        if (strcmp(text_at(result, row, "metric"), metric) == 0)
            return row;
    fail_msg("no row of %s", metric);
    return 0;
}

void verdict_is(const struct result *result, const char *metric, const char *verdict)
{
    const size_t row = row_of(result, metric);
    if (strcmp(text_at(result, row, "verdict"), verdict) != 0)
        fail_msg("%s is %s, not %s (%s)", metric, text_at(result, row, "verdict"), verdict,
                 text_at(result, row, "note"));
}

void change(const char *sql)
{
    struct error err;
    expect_ok(database_exec(db, sql, &err), &err);
}
