// inferstat now
#include <math.h>
#include <string.h>

#include "client/cli/cli.h"
#include "client/cli/commands/device_trouble.h"
#include "common/core/base/text.h"
#include "common/core/base/unit.h"

// How long the state has lasted.
static char *since_text(const struct column *column, const struct result *result, size_t row)
{
    char text[UNIT_TEXT_SIZE];
    const struct value since = result_get(result, row, column->key);
    const int64_t as_of_ns = result_integer(result, row, "as_of_ns", 0);
    if (since.type != VALUE_INT || since.i >= as_of_ns)
        return strdup("-");
    return strdup(unit_format_int(text, UNIT_DURATION, as_of_ns - since.i));
}

// The state; "ok!" where the reason names trouble of a device or the host.
static char *state_text(const struct column *column, const struct result *result, size_t row)
{
    const bool is_marked = result_is(result, row, column->key, "ok") &&
                           result_get(result, row, "has_trouble").type != VALUE_NULL;
    return is_marked ? strdup("ok!") : column_value(column, result, row);
}

static const struct column columns[] = {
    {"state", "state", COLUMN_LEFT(0), .cell = state_text, .is_whole = true},
    {"model", "model", COLUMN_LEFT(0)},
    {"host", "host", COLUMN_LEFT(0)},
    {"since_ns", "for", COLUMN_RIGHT(0), .cell = since_text},
    {"running_requests", "running", COLUMN_RIGHT(3)},
    {"waiting_requests", "waiting", COLUMN_RIGHT(3)},
    {"request_rate", "requests", COLUMN_RIGHT(1)},
    {"error_ratio", "failed", COLUMN_RIGHT(0)},
    {"output_token_rate", "output", COLUMN_RIGHT(2)},
    {"ttft_p50_ns", "TTFT p50", COLUMN_RIGHT(3)},
    {"ttft_p95_ns", "TTFT p95", COLUMN_RIGHT(0)},
    {"tokens_per_second_p50", "t/s p50", COLUMN_RIGHT(2)},
    {"tpot_p95_ns", "TPOT p95", COLUMN_RIGHT(3)},
    {"item_rate", "items", COLUMN_RIGHT(1), .is_optional = true},
    {"e2e_p50_ns", "E2E p50", COLUMN_RIGHT(2), .is_optional = true},
    {"e2e_p95_ns", "E2E p95", COLUMN_RIGHT(3), .is_optional = true},
    {"gpu_util_ratio", "GPU", COLUMN_RIGHT(2), .is_optional = true},
    {"device_memory_ratio", "VRAM", COLUMN_RIGHT(3), .is_optional = true},
    {"joules_per_token", "J/token", COLUMN_RIGHT(3), .is_optional = true},
    {"group_live", "live", COLUMN_RIGHT(1), .is_optional = true},
    {"reason", "why", COLUMN_LEFT(0), .is_below = true},
};

static const struct columns view = {columns, sizeof columns / sizeof *columns, NULL};

// Says of which time the figures are.
static void print_notes(struct cli *cli, const struct result *result)
{
    char length[2 * UNIT_TEXT_SIZE + 8], time[UNIT_TEXT_SIZE], why[ERROR_TEXT_SIZE];
    const int64_t as_of_ns = result_integer(result, 0, "as_of_ns", 0);
    const bool is_past = as_of_ns == cli->query.filter.until_ns;
    double longest = 0, shortest = NAN; // a process may have begun within the window
    for (size_t i = 0; i < result_row_count(result); i++) {
        longest = fmax(longest, result_number(result, i, "window_ns", NAN));
        shortest = fmin(shortest, result_number(result, i, "window_ns", NAN));
    }
    const struct value error = result_get(result, result_row_count(result) - 1, "store_error");
    (void)fprintf(cli->env.out, "\n");
    (void)unit_format(length, UNIT_DURATION, longest);
    if (shortest < longest && strcmp(unit_format(time, UNIT_DURATION, shortest), length) != 0) {
        (void)snprintf(length, sizeof length, "%s to ", time);
        (void)unit_format(length + strlen(length), UNIT_DURATION, longest);
    }
    if (result_get(result, 0, "note").type == VALUE_NULL && !is_past)
        cli_say(cli, "Figures of the last %s.", length);
    else
        cli_say(cli, "Figures of the last %s before %s%s.", length,
                unit_format_int(time, UNIT_TIME, as_of_ns),
                is_past ? "" : ", the last message in this file");
    if (error.type == VALUE_TEXT)
        cli_say(cli, "The store cannot be written, figures may lack requests: %s",
                text_escape(why, sizeof why, error.text.bytes, error.text.size));
    if (!is_past) // trouble of devices is that of the present
        device_trouble_note(cli, "Trouble: ");
}

enum status command_now(struct cli *cli, struct error *err)
{
    struct result *result = NULL;
    enum status status = cli_ask_for(cli, &cli->query, "now", "no data", &result, err);
    if (status != STATUS_OK)
        return status;
    result_free(result_take_all(result));
    status = cli_print(cli, &view, result, err);
    if (status == STATUS_OK && cli->options.format == FORMAT_TEXT)
        print_notes(cli, result);
    result_free(result);
    return status;
}
