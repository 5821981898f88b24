// inferstat fleet [METRIC] [--check]
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/cli.h"

enum { HOSTS_LEAST = 3 };

static char *metric_text(const struct column *column, const struct result *result, size_t row)
{
    char name[64];
    return strdup(query_metric_short(result_text(name, sizeof name, result, row, column->key)));
}

static char *deviation_text(const struct column *column, const struct result *result, size_t row)
{
    char text[UNIT_TEXT_SIZE];
    return strdup(result_change_by(text, result, row, "median",
                                   1 + result_number(result, row, column->key, 0)));
}

// What a reason begins with, before its first number, names the cause.
static bool is_same_cause(const struct result *result, size_t a, size_t b)
{
    static const char *const keys[] = {"host", "model", "verdict"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (!value_is_same(result_get(result, a, keys[i]), result_get(result, b, keys[i])))
            return false;
    const struct value of = result_get(result, a, "reason"),
                       other = result_get(result, b, "reason");
    if (of.type != VALUE_TEXT || other.type != VALUE_TEXT)
        return of.type == other.type;
    const size_t size = strcspn(of.text.bytes, "0123456789");
    return size == strcspn(other.text.bytes, "0123456789") &&
           strncmp(of.text.bytes, other.text.bytes, size) == 0;
}

// Values with the cause of a row, itself included, from the row `first` on.
static size_t count_cause(const struct result *result, size_t row, size_t first)
{
    size_t count = 0;
    for (size_t i = first; i < result_row_count(result); i++)
        count += is_same_cause(result, row, i);
    return count;
}

static char *values_text(const struct column *column, const struct result *result, size_t row)
{
    char *text = NULL;
    (void)column;
    return asprintf(&text, "%zu", count_cause(result, row, 0)) < 0 ? NULL : text;
}

static const struct column columns[] = {
    {"host", "host", COLUMN_LEFT(0)},
    {"model", "model", COLUMN_LEFT(1)},
    {"device", "device", COLUMN_LEFT(0)},
    {"metric", "what", COLUMN_LEFT(0), .cell = metric_text, .is_whole = true},
    {"deviation_ratio", "off by", COLUMN_RIGHT(0), .cell = deviation_text},
    {"value", "value", COLUMN_RIGHT(1), .cell = column_in_row_unit},
    {"median", "of peers", COLUMN_RIGHT(1), .cell = column_in_row_unit},
    {"hosts", "hosts", COLUMN_RIGHT(2)},
    {"verdict", "values", COLUMN_RIGHT(2), .cell = values_text},
    {"reason", "why", COLUMN_LEFT(0)},
};

static const struct columns view = {columns, sizeof columns / sizeof *columns, NULL};

// Totals over all rows.
struct tally {
    size_t worse, better, different, usual, few_hosts, few_values;
    int64_t most_hosts; // the largest number of hosts that is too few
};

static struct tally count_rows(const struct result *result)
{
    struct tally tally = {0};
    for (size_t row = 0; row < result_row_count(result); row++) {
        tally.worse += result_is(result, row, "verdict", "worse");
        tally.better += result_is(result, row, "verdict", "better");
        tally.different += result_is(result, row, "verdict", "different");
        tally.usual += result_is(result, row, "verdict", "usual");
        tally.few_values += result_is(result, row, "verdict", "few values");
        if (!result_is(result, row, "verdict", "few hosts"))
            continue;
        tally.few_hosts++;
        const int64_t hosts = result_integer(result, row, "hosts", 0);
        tally.most_hosts = hosts > tally.most_hosts ? hosts : tally.most_hosts;
    }
    return tally;
}

static size_t standing_out(const struct tally *tally)
{
    return tally->worse + tally->better + tally->different;
}

// Notes the values that stand out or were not compared.
static void print_notes(const struct cli *cli, const struct tally *tally)
{
    FILE *out = cli->env.out;
    const size_t count = standing_out(tally), compared = count + tally->usual;
    if (compared > 0)
        (void)fprintf(out, "%s%s of %s value%s compared stand%s out.\n", count > 0 ? "\n" : "",
                      CLI_COUNT(count), CLI_COUNT(compared), cli_plural((int64_t)compared),
                      count == 1 ? "s" : "");
    if (tally->few_hosts > 0)
        cli_say(cli,
                "Values not compared, since fewer than %d hosts have the model and device (%lld at "
                "most): %s.",
                HOSTS_LEAST, (long long)tally->most_hosts, CLI_COUNT(tally->few_hosts));
    if (tally->few_values > 0)
        (void)fprintf(out, "Values not compared, since they have too few records: %s.\n",
                      CLI_COUNT(tally->few_values));
}

// A table has only those that stand out, which come first, and of each cause the one that does
// most.
static enum status print(struct cli *cli, const struct result *result, const struct tally *tally,
                         struct error *err)
{
    struct rows rows = cli_rows(cli, &view);
    const bool is_table = rows.format == FORMAT_TEXT;
    const size_t end = is_table ? standing_out(tally) : result_row_count(result);
    const uint32_t limit = cli->options.limit;
    uint64_t count = 0;
    rows_write(&rows, result, 0, 0);
    for (size_t row = 0; row < end; row++) {
        if (is_table && count_cause(result, row, 0) != count_cause(result, row, row))
            continue;
        if (count++ < limit || limit == 0)
            rows_write(&rows, result, row, row + 1);
    }
    enum status status = rows_end(&rows, STATUS_OK, err);
    if (status == STATUS_OK && is_table) {
        cli_note_limit(cli, rows.count, count);
        print_notes(cli, tally);
    }
    return status;
}

// ---- The command ----------------------------------------------------------------------

static enum status judge(const struct tally *tally, struct error *err)
{
    if (tally->worse > 0)
        return error_set(err, STATUS_CHECK_FAILED, "fleet: %zu of %zu values %s worse",
                         tally->worse, standing_out(tally) + tally->usual,
                         tally->worse == 1 ? "is" : "are");
    if (standing_out(tally) + tally->usual == 0)
        return error_set(err, STATUS_UNDECIDED,
                         "fleet: undecided: no model and device has %d hosts with enough requests",
                         HOSTS_LEAST);
    return STATUS_OK;
}

enum status command_fleet(struct cli *cli, struct error *err)
{
    struct result *result = NULL;
    cli->query.limit = 0; // the verdict is of all
    enum status status = cli_ask_for(cli, &cli->query, "fleet", "no data", &result, err);
    if (status != STATUS_OK)
        return status;
    const struct tally tally = count_rows(result);
    status = print(cli, result, &tally, err);
    result_free(result);
    if (status == STATUS_OK)
        cli_note_file(cli);
    if (status == STATUS_OK && option_given(&cli->options, OPTION_CHECK))
        status = judge(&tally, err);
    return status;
}
