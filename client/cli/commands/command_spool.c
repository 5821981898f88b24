// inferstat spool list | flush
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/cli.h"
#include "common/core/base/text.h"
#include "common/monitor/delivery/replay.h"
#include "common/store/read/answer_cells.h"
#include "common/sys/log.h"

enum { PATH_ROOM = 4096 };

static const struct answer_column keys[] = {
    {"run", UNIT_NONE},    {"host", UNIT_NONE},  {"collector", UNIT_NONE}, {"records", UNIT_COUNT},
    {"bytes", UNIT_BYTES}, {"state", UNIT_NONE}, {"since_ns", UNIT_TIME},
};

static const struct column columns[] = {
    {"run", "run", COLUMN_LEFT(0), .cell = column_run},
    {"state", "state", COLUMN_LEFT(0)},
    {"records", "records", COLUMN_RIGHT(0)},
    {"bytes", "spooled", COLUMN_RIGHT(2)},
    {"since_ns", "since", COLUMN_LEFT(1)},
    {"host", "host", COLUMN_LEFT(3)},
    {"collector", "collector", COLUMN_LEFT(0)},
};

static const struct columns view = {columns, sizeof columns / sizeof *columns, NULL};

// The folders where runs of this user keep run files and spools.
struct places {
    char runs[PATH_ROOM], spools[PATH_ROOM];
    struct orphans_folders folders;
};

static enum status find_places(struct places *places, const struct cli *cli, struct error *err)
{
    enum status status = runfile_default_folder(places->runs, sizeof places->runs, err);
    if (status == STATUS_OK)
        status =
            spool_default_folder(places->spools, sizeof places->spools, cli->options.spool, err);
    places->folders = (struct orphans_folders){.runs = places->runs, .spools = places->spools};
    return status;
}

static enum status nothing(struct error *err)
{
    return error_set(err, STATUS_NO_DATA,
                     "spool: no data: no run left records here (INFERSTAT_RUN_DIR and "
                     "INFERSTAT_SPOOL say where to look)");
}

// ---- List -------------------------------------------------------------------------

struct row {
    struct runfile_run run;
    const char *state;
    bool counted;             // `left` is known
    struct spool_totals left; // records: of a live run only those in its spool
};

// Where the records of a dead run wait.
static const char *state_of(const struct orphan *orphan, const struct orphans_place *place)
{
    for (uint32_t i = 0; i < runfile_stream_count(orphan->file); i++)
        if (atomic_load(&runfile_stream(orphan->file, i).header->given_up) > 0)
            return "given up";
    return orphan->spool || place->on_disk ? "on disk" : "dead";
}

static void add_orphan(struct row *row, const struct orphan *orphan,
                       const struct orphans_place *place)
{
    row->state = state_of(orphan, place);
    row->run = *runfile_run(orphan->file);
    row->counted = true;
    if (orphan->spool)
        row->left = spool_totals(orphan->spool);
    row->left.records = orphan_records(orphan);
}

// Reads the state of a run.  False: nothing is left of it.
static bool read_row(struct row *row, const struct orphans_folders *folders,
                     const struct orphans_place *place)
{
    struct orphan orphan;
    struct error err = {.status = STATUS_OK};
    *row = (struct row){.state = "live"};
    memcpy(row->run.uuid, place->uuid, sizeof place->uuid);
    const enum status status = orphan_open(&orphan, folders, place, &err);
    if (status == STATUS_NOT_FOUND)
        return false;
    if (status == STATUS_OK) {
        add_orphan(row, &orphan, place);
        orphan_close(&orphan);
    } else if (status != STATUS_BUSY) {
        row->state = "unusable";
        log_write(LOG_LEVEL_WARNING, "%s", err.text);
    } else {
        row->counted = orphans_look(folders, place, &row->run, &row->left, &err) == STATUS_OK;
    }
    if (row->left.since_ns == 0)
        row->left.since_ns = row->run.started_ns;
    return true;
}

static void add_row(struct result *result, const struct row *row)
{
    char uuid[37];
    text_from_uuid(uuid, row->run.uuid);
    answer_row(result);
    answer_text(result, "run", uuid);
    if (row->run.host.host[0])
        answer_text(result, "host", row->run.host.host);
    if (row->run.collector[0])
        answer_text(result, "collector", row->run.collector);
    answer_text(result, "state", row->state);
    if (row->counted)
        answer_int(result, "records", (int64_t)row->left.records);
    answer_int(result, "bytes", (int64_t)row->left.bytes);
    if (row->left.since_ns > 0)
        answer_int(result, "since_ns", row->left.since_ns);
}

static enum status list_runs(struct cli *cli, const struct places *places, struct error *err)
{
    struct orphans_list list;
    struct result *result = NULL;
    enum status status = orphans_find(&list, &places->folders, err);
    if (status != STATUS_OK)
        return status;
    status = answer_new(&result, keys, sizeof keys / sizeof *keys, err);
    for (size_t i = 0; i < list.count && status == STATUS_OK; i++) {
        struct row row;
        if (read_row(&row, &places->folders, &list.places[i]))
            add_row(result, &row);
    }
    orphans_deinit(&list);
    if (status == STATUS_OK)
        status = answer_check(result, err);
    if (status == STATUS_OK)
        status = cli_print(cli, &view, result, err);
    if (status == STATUS_OK && result_row_count(result) == 0)
        status = nothing(err);
    result_free(result);
    return status;
}

// ---- Flush ------------------------------------------------------------------------

struct flush {
    struct cli *cli;
    uint64_t records;  // sent
    char trouble[256]; // why the first run was not sent; "": unknown
};

static void on_report(void *context, const struct replay_report *report)
{
    struct flush *flush = context;
    FILE *out = flush->cli->env.out;
    char uuid[37], host[sizeof report->run->host.host * 4], trouble[1024];
    text_from_uuid(uuid, report->run->uuid);
    if (report->end == REPLAY_SENT)
        flush->records += report->records;
    else if (report->end != REPLAY_FORGOTTEN && !*flush->trouble)
        (void)snprintf(flush->trouble, sizeof flush->trouble, "%s", report->trouble);
    if (flush->cli->options.format != FORMAT_TEXT || report->end == REPLAY_UNUSABLE)
        return;
    const char *how = report->end == REPLAY_SENT        ? "sent to "
                      : report->end == REPLAY_FORGOTTEN ? "discarded: the run was removed from "
                      : *report->trouble                ? "stay: "
                                                        : "stay: no answer from ";
    (void)fprintf(
        out, "%.8s  %s  %" PRIu64 " record%s  %s%s%s%s\n", uuid,
        text_escape(host, sizeof host, report->run->host.host, strlen(report->run->host.host)),
        report->records, cli_plural((int64_t)report->records), how, report->collector,
        *report->trouble ? ": " : "",
        text_escape(trouble, sizeof trouble, report->trouble, strlen(report->trouble)));
    (void)fflush(out);
}

static void log_of_replay(void *context, enum inferstat_log_level level, const char *text)
{
    static const enum log_level levels[] = {
        [INFERSTAT_LOG_ERROR] = LOG_LEVEL_ERROR,
        [INFERSTAT_LOG_WARNING] = LOG_LEVEL_WARNING,
        [INFERSTAT_LOG_INFO] = LOG_LEVEL_INFO,
    };
    (void)context;
    log_write(levels[level], "%s", text);
}

// The most important reason why runs were not sent.
static const char *why_left(const struct replay_counts *counts)
{
    static const struct {
        enum replay_end end;
        const char *why;
    } reasons[] = {
        {REPLAY_AWAY, "no answer from the collector (start it, or name another with --collector)"},
        {REPLAY_HELD,
         "a run file is not here, and may hold more records (where it is lost, --force "
         "sends what is here)"},
        {REPLAY_LATER, "it cannot be read just now (try again)"},
    };
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
        if (counts->ends[reasons[i].end])
            return reasons[i].why;
    return "it cannot be used";
}

static enum status flush_runs(struct cli *cli, const struct places *places, struct error *err)
{
    struct flush flush = {.cli = cli};
    struct replay_settings settings = {
        .folders = places->folders,
        .collector = cli->options.collector,
        .log = {log_of_replay, NULL},
    };
    settings.folders.patience_ns = option_given(&cli->options, OPTION_FORCE) ? 0 : ORPHANS_FOR_EVER;
    struct address address;
    if (settings.collector && address_parse(&address, settings.collector, err) != STATUS_OK)
        return err->status;
    struct trust_source trust = {0};
    struct replay_counts counts;
    enum status status = trust_source_read(&trust, &cli->options.trust, err);
    settings.trust = &trust;
    if (status == STATUS_OK)
        status = replay_all(&settings, NULL, on_report, &flush, &counts, err);
    if (status != STATUS_OK)
        return status;
    const unsigned sent = counts.ends[REPLAY_SENT];
    const unsigned left = counts.ends[REPLAY_AWAY] + counts.ends[REPLAY_HELD] +
                          counts.ends[REPLAY_LATER] + counts.ends[REPLAY_UNUSABLE];
    if (cli->options.format == FORMAT_JSON)
        (void)fprintf(cli->env.out, "{\"sent\": %u, \"records\": %" PRIu64 ", \"left\": %u}\n",
                      sent, flush.records, left);
    if (left > 0)
        return error_set(err, STATUS_UNREACHABLE, "spool: records of %u run%s were not sent: %s",
                         left, left == 1 ? "" : "s",
                         *flush.trouble ? flush.trouble : why_left(&counts));
    return sent > 0 ? STATUS_OK : nothing(err);
}

enum status command_spool(struct cli *cli, struct error *err)
{
    static const struct {
        const char *name;
        enum status (*run)(struct cli *cli, const struct places *places, struct error *err);
    } actions[] = {{"list", list_runs}, {"flush", flush_runs}};
    const char *wanted = cli->options.arguments[0];
    for (size_t i = 0; i < sizeof actions / sizeof *actions; i++) {
        if (strcmp(actions[i].name, wanted) != 0)
            continue;
        struct places places;
        enum status status = find_places(&places, cli, err);
        return status == STATUS_OK ? actions[i].run(cli, &places, err) : status;
    }
    return error_set(err, STATUS_INVALID, "spool: unknown action '%.40s' (list or flush)", wanted);
}
