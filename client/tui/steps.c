#include "client/tui/steps.h"

#include <math.h>

#include "common/core/base/saturate.h"

// Most requests take less.
#define REACH_NS INT64_C(10000000000)

enum { REACH_STEPS = 4 };

static const char *const keys[] = {"started_ns", "mean", "p50", "p95", "window_ns"};
enum { KEYS = sizeof keys / sizeof *keys };

static int64_t start_of(const struct result *rows, size_t row)
{
    return result_integer(rows, row, keys[0], 0);
}

bool steps_narrow(const struct steps *steps, uint32_t generation, int64_t now_ns,
                  struct query *query)
{
    const size_t count = steps->rows ? result_row_count(steps->rows) : 0;
    if (count == 0 || generation != steps->generation || query->step_ns != steps->step_ns)
        return false;
    const int64_t newest_ns = start_of(steps->rows, count - 1);
    int64_t since_ns = saturate_add(newest_ns < now_ns ? newest_ns : now_ns, -steps->reach_ns);
    since_ns -= since_ns % steps->step_ns;
    if (since_ns <= query->filter.since_ns)
        return false;
    query->filter.since_ns = since_ns;
    return true;
}

// Appends the rows of the steps that begin from one time on, before another.
static void copy(struct result *out, const struct result *from, int64_t since_ns, int64_t until_ns)
{
    for (size_t row = 0; from && row < result_row_count(from); row++) {
        if (start_of(from, row) < since_ns || start_of(from, row) >= until_ns)
            continue;
        if (result_add_row(out) != STATUS_OK)
            return; // result_status says so
        result_set_int(out, 0, start_of(from, row));
        for (unsigned i = 1; i < KEYS; i++)
            result_set_real(out, i, result_number(from, row, keys[i], NAN));
    }
}

// The value of the step that begins at a time; NaN: none.
static double value_at(const struct result *rows, int64_t start_ns)
{
    for (size_t row = 0; rows && row < result_row_count(rows); row++)
        if (start_of(rows, row) == start_ns)
            return result_number(rows, row, keys[1], NAN);
    return (double)NAN;
}

static enum status combine(struct result **out, const struct result *before, int64_t since_ns,
                           const struct result *newest, int64_t from_ns)
{
    enum status status = result_new(out);
    for (unsigned i = 0; i < KEYS && status == STATUS_OK; i++)
        status = result_add_column(*out, keys[i], UNIT_NONE);
    if (status != STATUS_OK)
        return status;
    copy(*out, before, since_ns, from_ns);
    copy(*out, newest, from_ns, INT64_MAX);
    return result_status(*out);
}

enum status steps_merge(struct steps *steps, const struct query *asked, int64_t since_ns,
                        struct result **answer, struct error *err)
{
    const int64_t from_ns = asked->filter.since_ns, step_ns = asked->step_ns;
    const bool is_whole = from_ns == since_ns;
    struct result *all = NULL, *shown = NULL;
    const double was = value_at(steps->rows, from_ns), is = value_at(*answer, from_ns);
    // Of the whole window the first step may begin before it.
    enum status status = combine(&all, is_whole ? NULL : steps->rows, since_ns - step_ns + 1,
                                 *answer, is_whole ? INT64_MIN : from_ns);
    if (status == STATUS_OK)
        status = combine(&shown, NULL, 0, all, INT64_MIN);
    result_free(*answer);
    result_free(steps->rows);
    if (status != STATUS_OK) {
        result_free(shown);
        shown = NULL;
    }
    *answer = shown;
    steps->rows = all;
    const int64_t least_ns = REACH_NS > REACH_STEPS * step_ns ? REACH_NS : REACH_STEPS * step_ns;
    if (is_whole)
        steps->reach_ns = steps->reach_ns > 2 * least_ns ? steps->reach_ns / 2 : least_ns;
    else if (fabs(is - was) > 1e-9 * fabs(was) || isnan(is) != isnan(was)) // not by rounding
        steps->reach_ns *= 2;
    steps->step_ns = step_ns;
    return status == STATUS_OK ? status : error_no_memory(err, "chart");
}
