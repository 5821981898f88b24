// inferstat inferences | operations | pipelines | devices | runs, inferences --slowest N
#include <stdlib.h>
#include <string.h>

#include "client/cli/commands/record_pages.h"
#include "common/core/base/text.h"
#include "common/core/record/throttle.h"

// A part below this share of the excess is not mentioned.
#define PART_LEAST 0.05

enum { PARTS_MAX = 16, LINE_SIZE = 1024 };

// ---- Parts --------------------------------------------------------------------------

// One "NAME_excess_ns" of a row.
struct part {
    char name[32];
    int64_t ns;
};

static int by_size(const void *left, const void *right)
{
    const struct part *a = left, *b = right;
    return (a->ns < b->ns) - (a->ns > b->ns);
}

// The parts of a row worth mentioning, largest first.
static unsigned find_parts(struct part parts[PARTS_MAX], const struct result *result, size_t row)
{
    static const char end[] = "_excess_ns";
    const double excess = (double)result_integer(result, row, "excess_ns", 0);
    unsigned count = 0;
    for (unsigned i = 0; i < result_column_count(result) && count < PARTS_MAX; i++) {
        const char *key = result_column(result, i)->key;
        const size_t size = strlen(key), stem = size - strlen(end);
        const struct value value = result_cell(result, row, i);
        if (size <= strlen(end) || strcmp(key + stem, end) != 0 || stem >= sizeof parts->name ||
            value.type != VALUE_INT || (double)llabs(value.i) < PART_LEAST * excess || value.i == 0)
            continue;
        struct part *part = &parts[count++];
        memcpy(part->name, key, stem);
        part->name[stem] = '\0';
        part->ns = value.i;
    }
    qsort(parts, count, sizeof *parts, by_size);
    return count;
}

// The rest of the excess, so that the parts add up to it; 0 if it is negligible or negative.
static int64_t find_rest(const struct part *parts, unsigned count, int64_t excess)
{
    char said[UNIT_TEXT_SIZE], whole[UNIT_TEXT_SIZE];
    int64_t sum = 0;
    for (unsigned i = 0; i < count; i++)
        sum += parts[i].ns;
    const bool is_seen = strcmp(unit_format_int(said, UNIT_DURATION, sum),
                                unit_format_int(whole, UNIT_DURATION, excess)) != 0;
    return is_seen && sum < excess ? excess - sum : 0;
}

// "    800.0ms more: throttle 580.0ms (power cap), tokens 200.0ms, rest 20.0ms".
static void add_parts(struct table *table, const struct result *result, size_t row)
{
    char line[LINE_SIZE] = "", text[UNIT_TEXT_SIZE], why[THROTTLE_TEXT_SIZE];
    struct part parts[PARTS_MAX];
    const int64_t excess = result_integer(result, row, "excess_ns", 0);
    const unsigned count = find_parts(parts, result, row);
    table_add_cell_below(table, "    ", result, row, "note"); // what the row lacks
    if (excess <= 0 || count == 0 || result_get(result, row, "blame").type != VALUE_TEXT)
        return;
    (void)snprintf(line, sizeof line,
                   "    %s more: ", unit_format_int(text, UNIT_DURATION, excess));
    for (unsigned i = 0; i < count; i++) {
        const int64_t reasons = result_integer(result, row, "throttle_reasons", 0);
        (void)text_append(line, sizeof line, i > 0 ? ", " : "", "%s %s", parts[i].name,
                          unit_format_int(text, UNIT_DURATION, parts[i].ns));
        if (strcmp(parts[i].name, "throttle") == 0 && throttle_text(why, reasons)[0])
            (void)text_append(line, sizeof line, "", " (%s)", why);
    }
    const int64_t rest = find_rest(parts, count, excess);
    if (rest != 0)
        (void)text_append(line, sizeof line, ", ", "rest %s",
                          unit_format_int(text, UNIT_DURATION, rest));
    table_add_below(table, line);
}

// ---- The table -----------------------------------------------------------------------

static const struct column slowest_columns[] = {
    {"started_ns", "started", COLUMN_LEFT(0)},
    {"run", "run", COLUMN_LEFT(4), .cell = column_run},
    {"host", "host", COLUMN_LEFT(1)},
    {"model", "model", COLUMN_LEFT(0)},
    {"device", "device", COLUMN_LEFT(2)},
    {"request", "request", COLUMN_RIGHT(5)},
    {"finish", "finish", COLUMN_LEFT(4)},
    {"generated_tokens", "output tokens", COLUMN_RIGHT(3)},
    {"items", "items", COLUMN_RIGHT(3), .is_optional = true},
    {"value", "", COLUMN_RIGHT(0)}, // its title is the metric
    {"took_ns", "took", COLUMN_RIGHT(1)},
    {"median_ns", "usual", COLUMN_RIGHT(0)},
    {"blame", "mostly", COLUMN_LEFT(0)},
};

enum { COLUMN_COUNT = sizeof slowest_columns / sizeof *slowest_columns };

static enum status print(struct cli *cli, const struct result *result, struct error *err)
{
    struct column columns[COLUMN_COUNT];
    char title[64] = "value";
    unsigned count = 0;
    const struct value metric = result_get(result, 0, "metric");
    if (metric.type == VALUE_TEXT && metric.text.size < sizeof title) {
        memcpy(title, metric.text.bytes, metric.text.size + 1);
        char *unit = strstr(title, "_ns");
        if (unit) // which values say themselves
            *unit = '\0';
    }
    // The time is omitted if the metric is that time itself.
    const bool is_took =
        result_integer(result, 0, "took_ns", -1) == result_integer(result, 0, "value", -2);
    for (unsigned i = 0; i < COLUMN_COUNT; i++) {
        columns[count] = slowest_columns[i];
        if (!columns[count].title[0])
            columns[count].title = title;
        count += !is_took || strcmp(slowest_columns[i].key, "took_ns") != 0;
    }
    return cli_print(cli, &(struct columns){columns, count, add_parts}, result, err);
}

enum status command_slowest(struct cli *cli, struct error *err)
{
    struct result *result = NULL;
    enum status status = cli_ask_for(cli, &cli->query, "inferences", "no data", &result, err);
    if (status != STATUS_OK)
        return status;
    status = print(cli, result, err);
    if (cli->options.format == FORMAT_TEXT)
        cli_note_expired(cli, result);
    result_free(result);
    return status;
}

enum status command_list(struct cli *cli, struct error *err)
{
    if (option_given(&cli->options, OPTION_SLOWEST))
        return command_slowest(cli, err);
    if (cli->query.records.kind == RECORD_KIND_DEVICE)
        cli->query.group_by[cli->query.group_count++] = QUERY_BY_DEVICE;
    return record_pages_list(cli, NULL, err);
}
