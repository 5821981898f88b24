// inferstat audit
#include <string.h>

#include "client/cli/commands/record_pages.h"
#include "client/cli/output/progress.h"
#include "common/core/base/text.h"

enum { BALANCED_SHOWN = 20, LINE_SIZE = 512, PAGES_SHOWN = 4 };

// Splits the findings at "; " into one line each.
static void add_findings(struct table *table, const struct result *page, size_t row)
{
    const struct value value = result_get(page, row, "finding");
    const char *text = value.type == VALUE_TEXT ? value.text.bytes : NULL;
    while (text) {
        const char *end = strstr(text, "; ");
        char escaped[LINE_SIZE], line[LINE_SIZE + 8];
        (void)snprintf(
            line, sizeof line, "    %s",
            text_escape(escaped, sizeof escaped, text, end ? (size_t)(end - text) : strlen(text)));
        table_add_below(table, line);
        text = end ? end + 2 : NULL;
    }
}

static const struct column columns[] = {
    {"started_ns", "started", COLUMN_LEFT(2)},
    {"run", "run", COLUMN_LEFT(0), .cell = column_run},
    {"host", "host", COLUMN_LEFT(1)},
    {"end", "end", COLUMN_LEFT(0)},
    {"verdict", "verdict", COLUMN_LEFT(0)},
    {"produced", "produced", COLUMN_RIGHT(0)},
    {"stored", "stored", COLUMN_RIGHT(0)},
    {"lost", "lost", COLUMN_RIGHT(0)},
    {"in_flight", "in flight", COLUMN_RIGHT(0)},
    {"rows", "rows", COLUMN_RIGHT(0)},
    {"expired", "expired", COLUMN_RIGHT(1)},
    {"cleared", "cleared", COLUMN_RIGHT(1)},
    {"duplicates", "repeated", COLUMN_RIGHT(3)},
};

static const struct columns view = {columns, sizeof columns / sizeof *columns, add_findings};

// The verdicts, in the order of the summary line.
static const char *const verdicts[] = {"balanced", "unbalanced", "open", "unknown"};

enum { BALANCED, UNBALANCED, VERDICTS = sizeof verdicts / sizeof *verdicts };

struct audit {
    struct cli *cli;
    uint64_t counts[VERDICTS];
    struct rows rows;
    struct record_pages pages; // of a table: all of them
    uint64_t runs, forgotten;  // rows of runs, and of sums of removed runs
    struct progress progress;
};

static enum status on_page(void *context, struct result *page, struct error *err)
{
    struct audit *audit = context;
    for (size_t row = 0; row < result_row_count(page); row++) {
        for (size_t i = 0; i < VERDICTS; i++)
            audit->counts[i] += result_is(page, row, "verdict", verdicts[i]);
        const bool is_sum = result_is(page, row, "verdict", "forgotten");
        audit->forgotten += is_sum;
        audit->runs += !is_sum;
    }
    progress_set(&audit->progress, audit->runs);
    return audit->rows.format == FORMAT_TEXT ? record_pages_keep(&audit->pages, page, err)
                                             : record_pages_to_rows(&audit->rows, page, err);
}

static void add_rows(struct audit *audit)
{
    uint64_t balanced = 0;
    for (size_t i = 0; i < audit->pages.count; i++) {
        const struct result *page = audit->pages.all[i];
        for (size_t row = 0; row < result_row_count(page); row++) {
            if (result_is(page, row, "verdict", verdicts[BALANCED]) &&
                ++balanced + BALANCED_SHOWN <= audit->counts[BALANCED])
                continue;
            rows_write(&audit->rows, page, row, row + 1);
        }
    }
}

static void print_counts(const struct audit *audit)
{
    FILE *out = audit->cli->env.out;
    (void)fprintf(out, "%s run%s: ", CLI_COUNT(audit->runs), cli_plural((int64_t)audit->runs));
    for (size_t i = 0; i < VERDICTS; i++)
        (void)fprintf(out, "%s%s %s", i ? ", " : "", CLI_COUNT(audit->counts[i]), verdicts[i]);
    if (audit->counts[BALANCED] > BALANCED_SHOWN)
        (void)fprintf(out, " (the %d newest of them shown)", BALANCED_SHOWN);
    (void)fputc('\n', out);
}

static enum status verdict(const struct audit *audit, struct error *err)
{
    if (audit->runs + audit->forgotten == 0)
        return cli_no_data(audit->cli, "audit", err);
    const uint64_t wrong = audit->counts[UNBALANCED];
    if (wrong == 0)
        return STATUS_OK;
    return error_set(err, STATUS_CHECK_FAILED,
                     "audit: %s of %s runs do not balance (the findings say where)",
                     CLI_COUNT(wrong), CLI_COUNT(audit->runs));
}

static const struct column act_columns[] = {
    {"at_ns", "time", COLUMN_LEFT(0)},      {"actor", "who", COLUMN_LEFT(0)},
    {"action", "action", COLUMN_LEFT(0)},   {"detail", "of", COLUMN_LEFT(0)},
    {"outcome", "outcome", COLUMN_LEFT(0)}, {"rows", "rows", COLUMN_RIGHT(0)},
};

static const struct columns acts = {act_columns, sizeof act_columns / sizeof *act_columns, NULL};

static enum status list_acts(struct cli *cli, struct error *err)
{
    static const enum cli_option others[] = {OPTION_RUN, OPTION_HOST, OPTION_COUNT};
    const enum cli_option other = options_first_given(&cli->options, others);
    if (other != OPTION_COUNT)
        return options_refuse(other, "audit --admin", err);
    cli->query.kind = QUERY_ADMIN_LOG;
    return cli_show(cli, &cli->query, &acts, "no data: no act of an administrator", err);
}

enum status command_audit(struct cli *cli, struct error *err)
{
    if (option_given(&cli->options, OPTION_ADMIN))
        return list_acts(cli, err);
    struct audit audit = {.cli = cli, .rows = cli_rows(cli, &view)};
    const uint64_t total = cli_total(cli, "runs");
    // Each page reads the whole store, most of it quickly: where progress shows, there are some.
    cli->query.limit = (uint32_t)((total + PAGES_SHOWN - 1) / PAGES_SHOWN);
    progress_begin(&audit.progress, cli->env.notes, "audit", "runs", UNIT_COUNT, total);
    enum status status = record_pages_ask(cli, &cli->query, on_page, &audit, err);
    progress_end(&audit.progress);
    if (status == STATUS_OK)
        add_rows(&audit);
    status = rows_end(&audit.rows, status, err);
    if (status == STATUS_OK && audit.rows.format == FORMAT_TEXT && audit.runs > 0)
        print_counts(&audit);
    record_pages_free(&audit.pages);
    return status == STATUS_OK ? verdict(&audit, err) : status;
}
