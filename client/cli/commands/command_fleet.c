// inferstat fleet [METRIC] [--check]
#include <stdlib.h>
#include <string.h>

#include "client/cli/cli.h"
#include "client/cli/output/rows.h"
#include "client/cli/output/columns.h"

enum { HOSTS_LEAST = 3 };

// Short names of the metrics.
static const struct {
    const char *metric, *word;
} words[] = {
    {"tokens_per_second", "decode"},
    {"prefill_tokens_per_second", "prefill"},
    {"ttft_ns", "ttft"},
    {"load_bytes_per_second", "load"},
};

static const struct table_column columns[] = {
    {"host", TABLE_LEFT, true, 0},       {"model", TABLE_LEFT, true, 1},
    {"device", TABLE_LEFT, true, 2},     {"what", TABLE_LEFT, false, 0},
    {"off by", TABLE_RIGHT, false, 0},   {"median", TABLE_RIGHT, false, 1},
    {"of peers", TABLE_RIGHT, false, 1}, {"hosts", TABLE_RIGHT, false, 2},
    {"why", TABLE_LEFT, true, 0},
};

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

// ---- The table -----------------------------------------------------------------------

static void add_text(struct table *table, const struct result *result, size_t row, const char *key)
{
    table_add_value(table, result_get(result, row, key), UNIT_NONE);
}

static void add_metric(struct table *table, const struct result *result, size_t row)
{
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (result_is(result, row, "metric", words[i].metric)) {
            table_add(table, words[i].word);
            return;
        }
    add_text(table, result, row, "metric");
}

static enum unit unit_of(const struct result *result, size_t row)
{
    for (int i = 0; i < (int)UNIT_COUNT_OF; i++)
        if (result_is(result, row, "unit", unit_name((enum unit)i)))
            return (enum unit)i;
    return UNIT_NONE;
}

static void add_row(struct table *table, const struct result *result, size_t row)
{
    const enum unit unit = unit_of(result, row);
    char text[UNIT_TEXT_SIZE], deviation[UNIT_TEXT_SIZE + 1];
    const double off = result_number(result, row, "deviation_ratio", 0);
    (void)snprintf(deviation, sizeof deviation, "%s%s", off > 0 ? "+" : "",
                   unit_format(text, UNIT_RATIO, off));
    add_text(table, result, row, "host");
    add_text(table, result, row, "model");
    add_text(table, result, row, "device");
    add_metric(table, result, row);
    table_add(table, deviation);
    table_add_value(table, result_get(result, row, "value"), unit);
    table_add_value(table, result_get(result, row, "median"), unit);
    table_add_value(table, result_get(result, row, "hosts"), UNIT_COUNT);
    add_text(table, result, row, "reason");
}

static enum status print_table(struct cli *cli, const struct result *result, size_t count,
                               struct error *err)
{
    struct table *table;
    if (table_new(&table, columns, sizeof columns / sizeof *columns) != STATUS_OK)
        return error_no_memory(err, "fleet");
    for (size_t row = 0; row < count; row++) // those that stand out come first
        add_row(table, result, row);
    enum status status = table_print(table, cli->env.out, cli->env.width, err);
    table_free(table);
    return status;
}

static enum status print_for_people(struct cli *cli, const struct result *result,
                                    const struct tally *tally, struct error *err)
{
    FILE *out = cli->env.out;
    const size_t count = standing_out(tally), compared = count + tally->usual;
    enum status status = count > 0 ? print_table(cli, result, count, err) : STATUS_OK;
    if (status != STATUS_OK)
        return status;
    if (compared > 0)
        (void)fprintf(out, "%s%zu of %zu medians compared stand out.\n", count > 0 ? "\n" : "",
                      count, compared);
    if (tally->few_hosts > 0)
        (void)fprintf(out,
                      "Not compared: %zu, since fewer than %d hosts have the model and device "
                      "(%lld at most).\n",
                      tally->few_hosts, HOSTS_LEAST, (long long)tally->most_hosts);
    if (tally->few_values > 0)
        (void)fprintf(out, "Not compared: %zu with too few requests or loads.\n",
                      tally->few_values);
    return STATUS_OK;
}

// ---- The command ----------------------------------------------------------------------

static enum status judge(const struct tally *tally, struct error *err)
{
    if (tally->worse > 0)
        return error_set(err, STATUS_CHECK_FAILED, "fleet: %zu of %zu medians are worse",
                         tally->worse, standing_out(tally) + tally->usual);
    if (standing_out(tally) + tally->usual == 0)
        return error_set(err, STATUS_UNDECIDED,
                         "fleet: undecided: no model and device has %d hosts with enough requests",
                         HOSTS_LEAST);
    return STATUS_OK;
}

enum status command_fleet(struct cli *cli, struct error *err)
{
    struct result *result = NULL;
    enum status status = cli_ask_for(cli, &cli->query, "fleet", &result, err);
    if (status != STATUS_OK)
        return status;
    const struct tally tally = count_rows(result);
    if (cli->options.format == FORMAT_TEXT)
        status = print_for_people(cli, result, &tally, err);
    else
        rows_print(cli->env.out, cli->options.format, result);
    result_free(result);
    if (status == STATUS_OK && option_given(&cli->options, OPTION_CHECK))
        status = judge(&tally, err);
    return status;
}
