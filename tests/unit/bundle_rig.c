#include "tests/unit/bundle_rig.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/store/expire.h"
#include "tests/support/test.h"
#include "tests/unit/copy_fixture.h"
#include "tests/unit/rollup_rig.h"

char bundle_rig_path[FOLDER_PATH_SIZE];

int bundle_rig_set_up(void **state)
{
    const int failed = rollup_rig_set_up(state);
    (void)folder_path(bundle_rig_path, rollup_rig.folder, "bundle.db");
    return failed;
}

// ---- What goes ----------------------------------------------------------------------------

void bundle_rig_expire(int64_t before_ns)
{
    struct error err = {0};
    unsigned gone = 1;
    struct expire_rows rows = {.kind = RECORD_KIND_INFERENCE, .before_ns = before_ns, .count = 500};
    assert_int_equal(expire_last_id(rollup_rig.db, rows.kind, &rows.last_id, &err), STATUS_OK);
    while (gone > 0)
        if (expire_slice(rollup_rig.db, &rows, &gone, &err) != STATUS_OK)
            fail_msg("%s", err.text);
}

void bundle_rig_expire_rollups(enum rollup_grouping grouping, enum rollup_level level,
                               int64_t before_ns)
{
    const struct query_metric *metrics[ROLLUP_METRICS_MAX];
    const unsigned count = rollup_metrics(RECORD_KIND_INFERENCE, metrics);
    for (unsigned i = 0; i < count; i++) {
        struct error err = {0};
        unsigned gone = 1;
        const struct expire_level rollups = {metrics[i], grouping, level, before_ns, 500};
        while (gone > 0)
            if (expire_level_slice(rollup_rig.db, &rollups, &gone, &err) != STATUS_OK)
                fail_msg("%s", err.text);
    }
}

// ---- Bundles ------------------------------------------------------------------------------

static enum status make_bundle(const struct query_filter *filter, struct result **out,
                               struct error *err)
{
    struct query query = {.kind = QUERY_COPY, .bundle = true, .filter = *filter};
    char log[FOLDER_PATH_SIZE + 8]; // of a collector that worked on the last one
    (void)snprintf(log, sizeof log, "%s-wal", bundle_rig_path);
    (void)remove(log);
    (void)remove(bundle_rig_path);
    (void)snprintf(query.path, sizeof query.path, "%s", bundle_rig_path);
    return copy_ask(rollup_rig.path, &query, out, err);
}

void bundle_rig_make(const struct query_filter *filter, const char *what)
{
    struct error err = {0};
    struct result *answer = NULL;
    if (make_bundle(filter, &answer, &err) != STATUS_OK)
        fail_msg("%s: %s", what, err.text);
    result_free(answer);
}

// ---- Answers compared -------------------------------------------------------------------

static bool is_near(double a, double b)
{
    return (isnan(a) && isnan(b)) || a == b || fabs(a - b) <= 1e-12 * fmax(fabs(a), fabs(b));
}

static size_t find_row(const struct result *in, const struct result *of, size_t row,
                       unsigned dimensions)
{
    for (size_t r = 0; r < result_row_count(in); r++) {
        bool is = true;
        for (unsigned c = 0; c < dimensions && is; c++) {
            const struct value a = result_cell(in, r, c), b = result_cell(of, row, c);
            is = a.type == b.type && a.type == VALUE_TEXT
                     ? a.text.size == b.text.size &&
                           memcmp(a.text.bytes, b.text.bytes, a.text.size) == 0
                     : a.type == b.type && (a.type == VALUE_NULL || a.i == b.i);
        }
        if (is)
            return r;
    }
    return SIZE_MAX;
}

void bundle_rig_compare(const char *right, const struct query *asked, const char *path,
                        const struct query *asked_there, const char *what)
{
    static const char *const figures[] = {"count", "mean", "min", "max", "p50", "p95", "p99"};
    struct error err = {0};
    struct result *expected = NULL, *found = NULL;
    const enum status status = copy_ask(right, asked, &expected, &err);
    if (status != STATUS_OK && status != STATUS_NO_DATA)
        fail_msg("%s: what is right: %s", what, err.text);
    const enum status mine = copy_ask(path, asked_there, &found, &err);
    if (mine != status)
        fail_msg("%s: what is not: %s", what, err.text);
    const size_t rows = status == STATUS_OK ? result_row_count(expected) : 0;
    if (rows > 0 && result_row_count(found) != rows)
        fail_msg("%s: %zu rows, not %zu", what, result_row_count(found), rows);
    const unsigned dimensions = asked->group_count + (asked->step_ns > 0);
    for (size_t row = 0; row < rows; row++) {
        const size_t at = find_row(found, expected, row, dimensions);
        if (at == SIZE_MAX)
            fail_msg("%s: a row is missing", what);
        for (size_t i = 0; i < COUNT_OF(figures); i++) {
            const double a = result_number(expected, row, figures[i], NAN);
            const double b = result_number(found, at, figures[i], NAN);
            if (!is_near(a, b))
                fail_msg("%s: %s is %.17g, not %.17g", what, figures[i], b, a);
        }
    }
    result_free(expected);
    result_free(found);
}
