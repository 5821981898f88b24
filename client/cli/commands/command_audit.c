// inferstat audit
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/cli.h"
#include "client/cli/output/number.h"
#include "client/cli/output/rows.h"
#include "client/cli/output/columns.h"
#include "common/core/base/text.h"
#include "common/sys/clock.h"

enum { BALANCED_SHOWN = 20, LINE_SIZE = 512 };

// How long, and at what interval, a later page is retried while the collector runs another
// client's audit.
#define BUSY_LIMIT_NS UINT64_C(10000000000)
#define BUSY_PAUSE_NS UINT64_C(100000000)

static const struct shown_column columns[] = {
    {"started_ns", "started", SHOWN_PLAIN, TABLE_LEFT, 2},
    {"run", "run", SHOWN_RUN, TABLE_LEFT, 0},
    {"host", "host", SHOWN_PLAIN, TABLE_LEFT, 1},
    {"end", "end", SHOWN_PLAIN, TABLE_LEFT, 0},
    {"verdict", "verdict", SHOWN_PLAIN, TABLE_LEFT, 0},
    {"produced", "produced", SHOWN_PLAIN, TABLE_RIGHT, 0},
    {"stored", "stored", SHOWN_PLAIN, TABLE_RIGHT, 0},
    {"lost", "lost", SHOWN_PLAIN, TABLE_RIGHT, 0},
    {"in_flight", "in flight", SHOWN_PLAIN, TABLE_RIGHT, 0},
    {"rows", "rows", SHOWN_PLAIN, TABLE_RIGHT, 0},
    {"expired", "expired", SHOWN_PLAIN, TABLE_RIGHT, 1},
    {"cleared", "cleared", SHOWN_PLAIN, TABLE_RIGHT, 1},
    {"duplicates", "repeated", SHOWN_PLAIN, TABLE_RIGHT, 3},
};

static const struct columns view = {columns, sizeof columns / sizeof *columns};

// The verdicts, in the order of the summary line.
static const char *const verdicts[] = {"balanced", "unbalanced", "open", "unknown"};

enum { BALANCED, UNBALANCED, VERDICTS = sizeof verdicts / sizeof *verdicts };

struct audit {
    struct cli *cli;
    uint64_t runs, counts[VERDICTS];
    struct rows rows;      // with --json and --csv
    struct result **pages; // without: all of them
    size_t page_count;
};

static void count_verdicts(struct audit *audit, const struct result *page)
{
    for (size_t row = 0; row < result_row_count(page); row++)
        for (size_t i = 0; i < VERDICTS; i++)
            audit->counts[i] += result_is(page, row, "verdict", verdicts[i]);
    audit->runs += result_row_count(page);
}

// Takes ownership of the page.
static enum status consume_page(struct audit *audit, struct result *page, struct error *err)
{
    count_verdicts(audit, page);
    if (audit->cli->options.format != FORMAT_TEXT) {
        rows_write(&audit->rows, page, 0, result_row_count(page));
        result_free(page);
        return STATUS_OK;
    }
    struct result **pages = realloc(audit->pages, (audit->page_count + 1) * sizeof(*pages));
    if (!pages) {
        result_free(page);
        return error_no_memory(err, "audit");
    }
    audit->pages = pages;
    pages[audit->page_count++] = page;
    return STATUS_OK;
}

// Retries while another client's audit is running, so that earlier pages are not lost.
static enum status ask_page(struct cli *cli, const struct query *query, struct result **out,
                            struct error *err)
{
    const uint64_t deadline = clock_monotonic_ns() + (query->cursor != 0 ? BUSY_LIMIT_NS : 0);
    enum status status = cli_ask(cli, query, out, err);
    while (status == STATUS_BUSY && clock_monotonic_ns() < deadline) {
        clock_sleep_until_ns(clock_monotonic_ns() + BUSY_PAUSE_NS);
        status = cli_ask(cli, query, out, err);
    }
    return status;
}

static enum status ask_pages(struct audit *audit, struct error *err)
{
    struct query query = audit->cli->query;
    enum status status;
    do {
        struct result *page;
        status = ask_page(audit->cli, &query, &page, err);
        if (status != STATUS_OK)
            return status;
        query.cursor = result_next_cursor(page);
        status = consume_page(audit, page, err);
    } while (status == STATUS_OK && query.cursor != 0);
    return status;
}

// ---- For people -------------------------------------------------------------------

// Splits the findings at "; " into one line each.
static void add_findings(struct table *table, const struct result *page, size_t row)
{
    const struct value value = result_get(page, row, "finding");
    size_t left = value.type == VALUE_TEXT ? value.text.size : 0;
    const char *text = left ? value.text.bytes : "";
    while (left > 0) {
        const char *end = memmem(text, left, "; ", 2);
        const size_t size = end ? (size_t)(end - text) : left;
        char escaped[LINE_SIZE], line[LINE_SIZE + 8];
        (void)snprintf(line, sizeof line, "    %s",
                       text_escape(escaped, sizeof escaped, text, size));
        table_add_below(table, line);
        text += end ? size + 2 : size;
        left -= end ? size + 2 : size;
    }
}

static void add_rows(const struct audit *audit, struct table *table)
{
    uint64_t balanced = 0;
    for (size_t i = 0; i < audit->page_count; i++) {
        const struct result *page = audit->pages[i];
        for (size_t row = 0; row < result_row_count(page); row++) {
            if (result_is(page, row, "verdict", verdicts[BALANCED]) &&
                ++balanced + BALANCED_SHOWN <= audit->counts[BALANCED])
                continue;
            columns_add_row(&view, table, page, row);
            add_findings(table, page, row);
        }
    }
}

static void print_counts(const struct audit *audit)
{
    FILE *out = audit->cli->env.out;
    (void)fprintf(out, "%" PRIu64 " run%s: ", audit->runs, number_plural((int64_t)audit->runs));
    for (size_t i = 0; i < VERDICTS; i++)
        (void)fprintf(out, "%s%" PRIu64 " %s", i ? ", " : "", audit->counts[i], verdicts[i]);
    if (audit->counts[BALANCED] > BALANCED_SHOWN)
        (void)fprintf(out, " (the %d newest of them shown)", BALANCED_SHOWN);
    (void)fputc('\n', out);
}

static enum status print(const struct audit *audit, struct error *err)
{
    const struct cli_environment *env = &audit->cli->env;
    if (audit->cli->options.format != FORMAT_TEXT || audit->runs == 0)
        return STATUS_OK;
    struct table *table;
    if (columns_new_table(&table, &view) != STATUS_OK)
        return error_no_memory(err, "audit");
    add_rows(audit, table);
    enum status status = table_print(table, env->out, env->width, err);
    if (status == STATUS_OK)
        print_counts(audit);
    table_free(table);
    return status;
}

static enum status verdict(const struct audit *audit, struct error *err)
{
    if (audit->runs == 0)
        return cli_no_data(audit->cli, "audit", err);
    const uint64_t wrong = audit->counts[UNBALANCED];
    if (wrong == 0)
        return STATUS_OK;
    return error_set(err, STATUS_CHECK_FAILED,
                     "audit: %" PRIu64 " of %" PRIu64
                     " runs do not balance (the findings say where)",
                     wrong, audit->runs);
}

enum status command_audit(struct cli *cli, struct error *err)
{
    struct audit audit = {.cli = cli, .rows = {.out = cli->env.out, .format = cli->options.format}};
    enum status status = ask_pages(&audit, err);
    if (status == STATUS_OK && cli->options.format != FORMAT_TEXT)
        rows_end(&audit.rows);
    if (status == STATUS_OK)
        status = print(&audit, err);
    if (status == STATUS_OK)
        status = verdict(&audit, err);
    for (size_t i = 0; i < audit.page_count; i++)
        result_free(audit.pages[i]);
    free(audit.pages);
    return status;
}
