// inferstat tail [KIND]...
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/args/known_names.h"
#include "client/cli/commands/record_pages.h"
#include "client/cli/output/columns.h"
#include "common/sys/stop.h"

static const uint64_t wait_ns = UINT64_C(1000000000);

struct tail {
    struct cli *cli;
    struct rows rows; // JSON Lines; counts all rows shown
    uint64_t limit;   // 0: none
    uint64_t missed;  // as last reported
    bool is_away;     // the source does not answer
};

// The value that a filter is compared with.  A request that finished with "stop" or "length"
// has the status "ok".
static struct value filtered_cell(const struct result *page, size_t row,
                                  enum query_dimension dimension)
{
    const struct value value = result_get(page, row, query_dimension_name(dimension));
    if (dimension != QUERY_BY_STATUS || value.type == VALUE_TEXT)
        return value;
    struct value finish = result_get(page, row, "finish");
    if (result_is(page, row, "finish", "stop") || result_is(page, row, "finish", "length")) {
        finish.text.bytes = "ok";
        finish.text.size = strlen("ok");
    }
    return finish;
}

// The columns that filters test; a run matches by the beginning of its UUID.
static bool passes(const struct query_filter *filter, const struct result *page, size_t row)
{
    for (int i = 0; i < (int)QUERY_DIMENSION_COUNT; i++) {
        const char *wanted = filter->by[i];
        if (wanted[0] == '\0')
            continue;
        const struct value value = filtered_cell(page, row, (enum query_dimension)i);
        if (value.type == VALUE_INT) {
            if (value.i != query_dimension_number((enum query_dimension)i, wanted))
                return false;
            continue;
        }
        char name[QUERY_TEXT_SIZE];
        if (value.type != VALUE_TEXT || value.text.size >= sizeof name)
            return false;
        (void)snprintf(name, sizeof name, "%.*s", (int)value.text.size, value.text.bytes);
        if (i == (int)QUERY_BY_RUN ? strncasecmp(name, wanted, strlen(wanted)) != 0
                                   : !query_name_matches(wanted, name))
            return false;
    }
    return true;
}

// "2026-03-29 02:30:00  inference  host=gpu1 model=stories15M speed=45.23 t/s"
static void print_row(FILE *out, enum record_kind kind, const struct result *page, size_t row)
{
    const struct columns *view = columns_of(kind);
    for (unsigned i = 0; i < view->count; i++) {
        char *cell = column_text(&view->columns[i], page, row);
        if (i == 0) // every view begins with the time
            (void)fprintf(out, "%s  %-10s", cell ? cell : "-", record_kind_info(kind)->name);
        else if (cell && strcmp(cell, "-") != 0)
            (void)fprintf(out, "  %s=%s", view->columns[i].title, cell);
        free(cell);
    }
    // Tables have it on a line of its own; of loads it is a column.
    char text[1024];
    if (kind != RECORD_KIND_LOAD && result_get(page, row, "error").type == VALUE_TEXT)
        (void)fprintf(out, "  error=%s", result_text(text, sizeof text, page, row, "error"));
    (void)fputc('\n', out);
}

static bool is_done(const struct tail *tail)
{
    return tail->limit != 0 && tail->rows.count >= tail->limit;
}

static void show(struct tail *tail, enum record_kind kind, const struct result *page)
{
    tail->rows.kind = record_kind_info(kind)->name;
    for (size_t row = 0; row < result_row_count(page) && !is_done(tail); row++) {
        if (!passes(&tail->cli->query.filter, page, row))
            continue;
        if (tail->cli->options.format == FORMAT_TEXT) {
            print_row(tail->rows.out, kind, page, row);
            tail->rows.count++;
        } else {
            rows_write(&tail->rows, page, row, row + 1);
        }
    }
}

static void tell_missed(struct tail *tail, uint64_t missed)
{
    if (missed <= tail->missed)
        return;
    (void)fprintf(tail->cli->env.notes,
                  "inferstat: warning: %s record%s missed: this reader was too slow\n",
                  CLI_COUNT(missed - tail->missed), cli_plural((int64_t)(missed - tail->missed)));
    tail->missed = missed;
}

// Says when the source no longer answers, and when it does again: the live feed is silent then, as
// it is without new records.
static void check_source(struct tail *tail)
{
    const struct query ping = {.kind = QUERY_PING};
    struct result *answer = NULL;
    struct error err = {0};
    struct cli *cli = tail->cli;
    const enum status status = cli_ask(cli, &ping, &answer, &err);
    const bool is_away = status != STATUS_OK;
    result_free(answer);
    if (status == STATUS_CANCELLED || is_away == tail->is_away)
        return;
    tail->is_away = is_away;
    if (is_away)
        (void)fprintf(cli->env.notes, "inferstat: warning: tail: %s\n", err.text);
    else
        (void)fputs("inferstat: tail: the collector answers again\n", cli->env.notes);
}

// Prints records until a stop, the limit, or a closed pipe.
static enum status follow(struct tail *tail, struct remote *remote, struct error *err)
{
    while (!stop_requested() && !is_done(tail)) {
        enum record_kind kind;
        struct result *page;
        uint64_t missed;
        enum status status =
            remote_live_next(remote, wait_ns, stop_fd(), &kind, &page, &missed, err);
        if (status == STATUS_TIMEOUT) {
            check_source(tail);
            continue;
        }
        if (status == STATUS_UNREACHABLE) {
            (void)fputs("inferstat: warning: tail: the connection was lost and made again: records "
                        "of the time between may be missing\n",
                        tail->cli->env.notes);
            continue;
        }
        if (status == STATUS_CANCELLED)
            break;
        if (status != STATUS_OK)
            return status;
        show(tail, kind, page);
        result_free(page);
        tell_missed(tail, missed);
        if (fflush(tail->rows.out) != 0)
            return errno == EPIPE
                       ? STATUS_CANCELLED
                       : error_set(err, STATUS_IO, "tail: cannot write: %s", strerror(errno));
    }
    return STATUS_OK;
}

enum status command_tail(struct cli *cli, struct error *err)
{
    uint32_t kinds;
    enum status status = record_pages_kinds(&kinds, cli, err);
    if (status == STATUS_OK)
        status = stop_install(err);
    if (status != STATUS_OK)
        return status;

    // The live feed waits for records: an unreachable collector and invalid filters are
    // reported first.
    struct query ping = {.kind = QUERY_PING, .filter = cli->query.filter};
    struct result *answer;
    status = cli_ask(cli, &ping, &answer, err);
    if (status != STATUS_OK)
        return status;
    result_free(answer);
    (void)known_names_widen(cli, &cli->query.filter); // what is unknown may come

    struct tail tail = {
        .cli = cli,
        .rows = {.out = cli->env.out, .format = FORMAT_JSONL},
        .limit = cli->options.limit,
    };
    remote_wake_on(cli->remote, stop_fd());
    status = remote_subscribe(cli->remote, kinds, REMOTE_LIVE_RECORDS, err);
    return status == STATUS_OK ? follow(&tail, cli->remote, err) : status;
}
